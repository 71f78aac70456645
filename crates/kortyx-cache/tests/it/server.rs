//! The servers that tests use.

use std::{
    env,
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

pub(crate) fn postgres_url() -> String {
    named("KORTYX_TEST_POSTGRES_URL")
}

pub(crate) fn redis_url() -> String {
    named("KORTYX_TEST_REDIS_URL")
}

fn named(variable: &str) -> String {
    env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set: run `cargo xtask test-matrix --lane postgres+cache`, which starts the server")
    })
}

/// A port that nothing listens at.
pub(crate) fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A Redis of the test's own, gone when dropped.
pub(crate) struct Redis {
    child: Option<Child>,
    port: u16,
    directory: tempfile::TempDir,
}

impl Redis {
    pub(crate) fn start() -> Self {
        let mut server = Self { child: None, port: closed_port(), directory: tempfile::tempdir().unwrap() };
        server.run();
        server
    }

    /// Starts it, also again, on the same port and empty.
    pub(crate) fn run(&mut self) {
        let mut command = Command::new("redis-server");
        command.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"]);
        command.arg(self.directory.path()).stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().unwrap());
        let until = Instant::now() + Duration::from_secs(20);
        while !self.cli(&["PING"]).starts_with("PONG") {
            assert!(Instant::now() < until, "redis-server did not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Sends a signal (`STOP`, `CONT`).
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([format!("-{name}"), pid]).status().unwrap().success());
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn cli(&self, args: &[&str]) -> String {
        let output = Command::new("redis-cli").args(["-p", &self.port.to_string()]).args(args).output();
        String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
