//! Commands in a real terminal, which is a pair of files of the system.

use crate::support::{PATIENCE, Place, pause};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// A command that believes to be watched.
pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    screen: Receiver<String>,
    seen: String,
}

impl Terminal {
    pub(crate) fn start(place: &Place, arguments: &[&str]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = std::ffi::OsString::from_vec(ptsname(&master, vec![]).unwrap().into_bytes());
        let line = || OpenOptions::new().read(true).write(true).open(&name).unwrap();
        let child = place.command(arguments).stdin(line()).stdout(line()).stderr(line()).spawn().unwrap();
        let keyboard = File::from(master);
        let mut glass = keyboard.try_clone().unwrap();
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The terminal is gone when nobody holds its other end any more.
            while let Ok(count @ 1..) = glass.read(&mut bytes) {
                if sender.send(String::from_utf8_lossy(&bytes[..count]).into_owned()).is_err() {
                    break;
                }
            }
        });
        Self { child, keyboard, screen, seen: String::new() }
    }

    /// Waits for one of some texts; what was shown up to there.
    pub(crate) fn wait_for(&mut self, texts: &[&str]) -> String {
        loop {
            let found = texts.iter().filter_map(|text| Some(self.seen.find(text)? + text.len())).min();
            if let Some(end) = found {
                return self.seen.drain(..end).collect();
            }
            let shown = self.screen.recv_timeout(PATIENCE);
            self.seen += &shown.unwrap_or_else(|_| panic!("waited in vain for {texts:?}: {}", self.seen));
        }
    }

    pub(crate) fn say(&mut self, text: &str) {
        writeln!(self.keyboard, "{text}").unwrap();
    }

    /// Sends a signal by its name, as the keyboard of a real terminal does.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success(), "{kill}");
    }

    /// Waits for the end of the command; its exit code.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(start.elapsed() < PATIENCE, "it does not end: {}", self.rest());
            pause();
        }
    }

    /// What else was shown until now.
    pub(crate) fn rest(&mut self) -> String {
        self.seen.extend(self.screen.try_iter());
        std::mem::take(&mut self.seen)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
