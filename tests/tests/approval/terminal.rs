//! A person at a terminal: reads what a program shows, presses keys, and may kill it.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    os::fd::OwnedFd,
    process::{Child, Command, ExitStatus},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

/// How long a program may take to show something.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program in a terminal.
pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<Screen>,
    /// What was read up to here is not read again.
    read: usize,
}

/// All that was shown so far.
#[derive(Default)]
struct Screen {
    shown: Mutex<Shown>,
    changed: Condvar,
}

#[derive(Default)]
struct Shown {
    bytes: Vec<u8>,
    is_over: bool,
}

impl Terminal {
    pub(crate) fn start(mut command: Command) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        tcsetwinsize(&ours, Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let theirs = || ioctl_tiocgptpeer(&ours, flags).unwrap();
        command.env("TERM", "xterm-256color").stdin(theirs()).stdout(theirs()).stderr(theirs());
        let child = command.spawn().unwrap();
        // Their end is closed when the program ends, not when the command is dropped.
        drop(command);
        let screen = Arc::new(Screen::default());
        watch(ours.try_clone().unwrap(), screen.clone());
        Self { child, keyboard: ours.into(), screen, read: 0 }
    }

    /// Waits until this is shown.
    pub(crate) fn see(&mut self, text: &str) {
        self.see_one_of(&[text]);
    }

    /// Waits until one of these is shown, and says which comes first.
    pub(crate) fn see_one_of(&mut self, texts: &[&str]) -> usize {
        let deadline = Instant::now() + PATIENCE;
        let mut shown = self.screen.shown.lock().unwrap();
        loop {
            let fresh = String::from_utf8_lossy(&shown.bytes[self.read..]).into_owned();
            let places = (0..).zip(texts).filter_map(|(nth, text)| Some((fresh.find(text)?, text.len(), nth)));
            if let Some((at, length, nth)) = places.min() {
                self.read += at + length;
                return nth;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!shown.is_over && !left.is_zero(), "none of {texts:?} is shown, but: {fresh}");
            shown = self.screen.changed.wait_timeout(shown, left).unwrap().0;
        }
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Kills the program, and returns all that it showed.
    pub(crate) fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.end().1
    }

    /// Waits for the end of the program, and returns all that it showed.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        let mut shown = self.screen.shown.lock().unwrap();
        while !shown.is_over {
            shown = self.screen.changed.wait(shown).unwrap();
        }
        (status, String::from_utf8_lossy(&shown.bytes).into_owned())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop((self.child.kill(), self.child.wait()));
    }
}

/// Collects what is shown until nobody can show any more.
fn watch(ours: OwnedFd, screen: Arc<Screen>) {
    thread::spawn(move || {
        let (mut ours, mut buffer) = (File::from(ours), [0; 4096]);
        loop {
            // Linux fails the read once the program's end is closed.
            let count = ours.read(&mut buffer).unwrap_or(0);
            let mut shown = screen.shown.lock().unwrap();
            shown.bytes.extend_from_slice(&buffer[..count]);
            shown.is_over = count == 0;
            screen.changed.notify_all();
            if count == 0 {
                return;
            }
        }
    });
}
