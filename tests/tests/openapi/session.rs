//! One run of schemathesis against one server.

use std::{
    env,
    fmt::Write as _,
    fs,
    fs::File,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

/// Longer than it takes on a machine that does much else.
const LIMIT: Duration = Duration::from_mins(6);

/// Names the program, where it is not where the matrix installs it.
const PROGRAM: &str = "KORTYX_TEST_SCHEMATHESIS";

/// What it left.
pub(crate) struct Session {
    pub(crate) ended: ExitStatus,
    /// What it said, for people.
    pub(crate) log: String,
    /// The counts.
    pub(crate) report: Value,
    /// What happened, one after another.
    pub(crate) events: Vec<Value>,
}

/// Starts a server, lets schemathesis ask it, and reads what it found.
pub(crate) fn run() -> Result<Session, String> {
    let program = program()?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("openapi");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let site = Site::start()?;
    fs::write(folder.join("schemathesis.toml"), config(&site.known)).map_err(|error| error.to_string())?;
    fs::write(folder.join("hooks.py"), include_str!("hooks.py")).map_err(|error| error.to_string())?;

    let log = folder.join("schemathesis.log");
    let output = File::create(&log).map_err(|error| error.to_string())?;
    let mut command = Command::new(&program);
    command.args(["run", "--no-color", "--phases", "coverage,fuzzing,stateful", "--report", "json,ndjson"]);
    command.args(["--report-json-path", "report.json", "--report-ndjson-path", "events.ndjson"]);
    command.arg(format!("http://{}/openapi.json", site.address));
    command.env("KORTYX_TEST_KNOWN", site.known.to_string()).env("PYTHONUTF8", "1").current_dir(&folder);
    command.stdin(Stdio::null()).stderr(output.try_clone().map_err(|error| error.to_string())?).stdout(output);
    let child = command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
    let ended = wait(child)?;
    drop(site);

    let read = |name: &str| fs::read_to_string(folder.join(name)).map_err(|error| format!("{name}: {error}"));
    let log = read("schemathesis.log")?;
    println!("{log}");
    let report = serde_json::from_str(&read("report.json")?).map_err(|error| error.to_string())?;
    let events = read("events.ndjson")?.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    Ok(Session { ended, log, report, events })
}

/// Where the matrix installs it: below the target folder, in which cargo keeps notes.
fn program() -> Result<PathBuf, String> {
    if let Some(program) = env::var_os(PROGRAM) {
        return Ok(program.into());
    }
    let test = env::current_exe().map_err(|error| error.to_string())?;
    let target = test.ancestors().find(|folder| folder.join(".rustc_info.json").exists());
    let program = target.map(|target| target.join("xtask/schemathesis/bin/schemathesis"));
    program.filter(|program| program.exists()).ok_or_else(|| {
        format!(
            "schemathesis is not installed: run `cargo xtask test-matrix --lane openapi --provision`, or set {PROGRAM}"
        )
    })
}

/// The settings, with what is known of the site.
fn config(known: &Value) -> String {
    let mut config = include_str!("schemathesis.toml").to_owned();
    for (name, values) in known.as_object().unwrap() {
        if values.is_array() {
            // An array of plain strings is the same in JSON and in TOML.
            let _ = write!(config, "\n[dictionaries.{name}]\nvalues = {values}\n");
        }
    }
    config
}

fn wait(mut child: Child) -> Result<ExitStatus, String> {
    let start = Instant::now();
    loop {
        if let Some(ended) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(ended);
        }
        if start.elapsed() > LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("schemathesis ran for more than {LIMIT:?}"));
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// The server's process, which ends with this value.
struct Site {
    process: Child,
    address: String,
    known: Value,
}

impl Site {
    fn start() -> Result<Self, String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_site"));
        let process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = process.map_err(|error| error.to_string())?;
        let mut line = String::new();
        let _ = BufReader::new(process.stdout.take().unwrap()).read_line(&mut line);
        let mut site = Self { process, address: String::new(), known: Value::Null };
        let said: Value = serde_json::from_str(&line).map_err(|error| format!("the server says {line:?}: {error}"))?;
        said["address"].as_str().unwrap().clone_into(&mut site.address);
        site.known = said["known"].clone();
        Ok(site)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // It ends when its input does.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
