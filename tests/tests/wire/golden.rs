//! The files.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("wire")
}

fn is_recording() -> bool {
    std::env::var_os("KORTYX_WIRE").is_some_and(|value| value == "record")
}

/// Compares what crossed the wire with what did when the file was recorded.
pub(crate) fn compare(name: &str, script: &str) -> Result<(), String> {
    let path = folder().join(format!("{name}.http"));
    if is_recording() {
        return fs::write(&path, script).map_err(|error| format!("{}: {error}", path.display()));
    }
    let recorded = fs::read_to_string(&path)
        .map_err(|error| format!("{}: {error}; record it with KORTYX_WIRE=record", path.display()))?;
    let (mut now, mut then) = (script.lines(), recorded.lines());
    for line in 1.. {
        match (now.next(), then.next()) {
            (None, None) => break,
            (now, then) if now == then => {}
            (Some(now), Some(then)) if is_same_object(now, then) => {}
            (now, then) => {
                let [now, then] = [now, then].map(|line| line.unwrap_or("(the end)"));
                return Err(format!("{}:{line}\n  recorded: {then}\n  now:      {now}", path.display()));
            }
        }
    }
    Ok(())
}

/// Whether two bodies are one JSON value. In what order a value's keys are depends on how `serde_json` was built.
fn is_same_object(now: &str, then: &str) -> bool {
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    value(now).is_some_and(|now| Some(now) == value(then))
}

/// Every file has its case, and no two cases share one.
pub(crate) fn check_names(names: Vec<String>) -> Result<(), String> {
    let mut cases = BTreeSet::new();
    for name in names {
        if !cases.insert(format!("{name}.http")) {
            return Err(format!("two cases are called {name}"));
        }
    }
    for file in fs::read_dir(folder()).map_err(|error| error.to_string())? {
        let name = file.map_err(|error| error.to_string())?.file_name().to_string_lossy().into_owned();
        if !cases.contains(&name) && name != "README.md" {
            return Err(format!("tests/wire/{name} belongs to no case"));
        }
    }
    Ok(())
}
