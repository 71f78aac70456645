//! The program under test, as a child process.

use std::{
    io::{BufRead as _, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;
use tokio::sync::oneshot;

/// The demo, on a file of its own.
pub(crate) struct Demo {
    child: Child,
    port: u16,
    expires_in: String,
    folder: TempDir,
}

impl Demo {
    /// Starts it, on a free port.
    pub(crate) async fn start(expires_in: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (child, port) = spawn(0, &file(&folder), expires_in).await;
        Self { child, port, expires_in: expires_in.to_owned(), folder }
    }

    /// Kills it, without a chance to say good-bye.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again, at the same place.
    pub(crate) async fn restart(&mut self) {
        let (child, port) = spawn(self.port, &file(&self.folder), &self.expires_in).await;
        assert_eq!(port, self.port);
        self.child = child;
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn file(folder: &TempDir) -> PathBuf {
    folder.path().join("demo.sqlite")
}

async fn spawn(port: u16, store: &Path, expires_in: &str) -> (Child, u16) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kortyx-demo"))
        .args(["--port", &port.to_string(), "--expires-in", expires_in, "--store"])
        .arg(store)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = line_with(child.stdout.take().unwrap(), "Open http://127.0.0.1:").await;
    let port = said.trim_start_matches("Open http://127.0.0.1:").split('/').next().unwrap().parse().unwrap();
    (child, port)
}

/// The first line of a program with this text. What it says after that is read and forgotten, so that it is never held back.
pub(crate) async fn line_with(output: impl Read + Send + 'static, text: &'static str) -> String {
    let (found, line) = oneshot::channel();
    std::thread::spawn(move || {
        let mut found = Some(found);
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if line.contains(text)
                && let Some(found) = found.take()
            {
                drop(found.send(line));
            }
        }
    });
    let line = tokio::time::timeout(Duration::from_mins(1), line).await.expect("the program says nothing");
    line.unwrap_or_else(|_| panic!("the program ended before it said `{text}`"))
}
