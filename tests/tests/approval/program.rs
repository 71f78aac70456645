//! The program, built, with a store of its own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
    time::SystemTime,
};

use tempfile::TempDir;

use crate::terminal::Terminal;

/// A review and all that the program ever printed about it.
pub(crate) struct Review {
    directory: TempDir,
    pub(crate) printed: String,
}

/// How one invocation ended.
pub(crate) struct Said {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) is_well: bool,
}

impl Review {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), printed: String::new() }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(program());
        command.arg("--store").arg(self.directory.path().join("runs.sqlite"));
        command
    }

    /// Runs the program without a terminal.
    pub(crate) fn run(&mut self, arguments: &[&str]) -> Said {
        let output = self.command().args(arguments).stdin(Stdio::null()).output().unwrap();
        let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        self.printed.push_str(&stdout);
        self.printed.push_str(&stderr);
        Said { stdout, stderr, is_well: output.status.success() }
    }

    /// Starts the program in a terminal.
    pub(crate) fn start(&self) -> Terminal {
        Terminal::start(self.command())
    }

    /// The only open question, as `--list` shows it.
    pub(crate) fn open_question(&mut self) -> String {
        let listed = self.run(&["--list"]).stdout;
        let ids: Vec<_> = listed.split_whitespace().filter(|word| word.starts_with("human-")).collect();
        assert_eq!(ids.len(), 1, "{listed}");
        ids[0].to_owned()
    }

    /// Answers the only open question.
    pub(crate) fn answer(&mut self, value: &str) -> Said {
        let id = self.open_question();
        self.run(&["--answer", &id, value])
    }

    /// How often the program told of its notification.
    pub(crate) fn notifications(&self) -> usize {
        self.printed.matches("Notification sent").count()
    }
}

/// The program, which is built when it is absent or older than what it is made of.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let built = Path::new(env!("CARGO_BIN_EXE_driver")).with_file_name("examples").join("approval");
        let changed = |path: &Path| fs::metadata(path).and_then(|found| found.modified()).ok();
        if changed(&built)
            .is_none_or(|built| built < newest_source(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../crates"))))
        {
            build();
        }
        built
    })
}

fn newest_source(directory: &Path) -> SystemTime {
    let newest = fs::read_dir(directory).unwrap().map(|entry| {
        let entry = entry.unwrap();
        let path = entry.path();
        let is_test = path.file_name().is_some_and(|name| name == "tests" || name == "fuzz");
        match entry.file_type().unwrap().is_dir() {
            true if is_test => SystemTime::UNIX_EPOCH,
            true => newest_source(&path),
            false => entry.metadata().unwrap().modified().unwrap(),
        }
    });
    newest.max().unwrap_or(SystemTime::UNIX_EPOCH)
}

fn build() {
    let target = Path::new(env!("CARGO_BIN_EXE_driver")).ancestors().nth(2).unwrap();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into()));
    cargo.args(["build", "--quiet", "--package", "kortyx", "--example", "approval", "--target-dir"]).arg(target);
    assert!(cargo.status().unwrap().success(), "the program does not build");
}
