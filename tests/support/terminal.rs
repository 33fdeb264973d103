//! Commands in a real terminal, which is a pair of files of the system.
#![allow(dead_code, reason = "each test uses its part")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Longer than anything takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// A command that believes to be watched.
pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    screen: Receiver<String>,
    seen: String,
}

impl Terminal {
    /// Starts a command in a terminal of a size, as rows and columns; one that is 0 by 0 has no whole screen.
    pub(crate) fn of(mut command: Command, (rows, columns): (u16, u16)) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let name = std::ffi::OsString::from_vec(ptsname(&master, vec![]).unwrap().into_bytes());
        let line = || OpenOptions::new().read(true).write(true).open(&name).unwrap();
        let child = command.stdin(line()).stdout(line()).stderr(line()).spawn().unwrap();
        let keyboard = File::from(master);
        let mut glass = keyboard.try_clone().unwrap();
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let (mut bytes, mut rest) = ([0; 4096], vec![]);
            // The terminal is gone when no process holds its other end any more.
            while let Ok(count @ 1..) = glass.read(&mut bytes) {
                rest.extend_from_slice(&bytes[..count]);
                // A letter may come in two parts.
                let whole = std::str::from_utf8(&rest).map_or_else(|error| error.valid_up_to(), str::len);
                let text: Vec<u8> = rest.drain(..whole).collect();
                if sender.send(String::from_utf8(text).unwrap()).is_err() {
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

    /// Waits until a screen of this size, on which everything is drawn that was shown since the last call, holds something.
    pub(crate) fn wait_until(&mut self, screen: &mut Screen, what: &str, holds: impl Fn(&[String]) -> bool) {
        loop {
            screen.draw(&std::mem::take(&mut self.seen));
            if holds(&screen.rows()) {
                return;
            }
            let shown = self.screen.recv_timeout(PATIENCE);
            self.seen += &shown.unwrap_or_else(|_| panic!("waited in vain for {what}: {:#?}", screen.rows()));
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
            std::thread::sleep(Duration::from_millis(2));
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

/// What a terminal shows, as far as our screens need it: it knows a few sequences, wraps and scrolls.
pub(crate) struct Screen {
    cells: Vec<Vec<char>>,
    at: (usize, usize),
    /// What came of a sequence that is not whole yet.
    sequence: Option<String>,
}

impl Screen {
    pub(crate) fn new((rows, columns): (u16, u16)) -> Self {
        Self { cells: vec![vec![' '; columns.into()]; rows.into()], at: (0, 0), sequence: None }
    }

    fn rows(&self) -> Vec<String> {
        self.cells.iter().map(|row| row.iter().collect::<String>().trim_end().to_owned()).collect()
    }

    fn draw(&mut self, text: &str) {
        for letter in text.chars() {
            match (self.sequence.take(), letter) {
                (Some(begun), 'A'..='Z' | 'a'..='z') => self.obey(&format!("{begun}{letter}")),
                (Some(begun), _) => self.sequence = Some(format!("{begun}{letter}")),
                (None, '\x1b') => self.sequence = Some(String::new()),
                (None, '\r') => self.at.1 = 0,
                (None, '\n') => self.move_down(),
                (None, letter) => {
                    if self.at.1 == self.cells[0].len() {
                        self.at.1 = 0;
                        self.move_down();
                    }
                    self.cells[self.at.0][self.at.1] = letter;
                    self.at.1 += 1;
                }
            }
        }
    }

    fn move_down(&mut self) {
        if self.at.0 + 1 < self.cells.len() {
            self.at.0 += 1;
        } else {
            let first = self.cells.remove(0);
            self.cells.push(vec![' '; first.len()]);
        }
    }

    fn obey(&mut self, sequence: &str) {
        let (row, column) = self.at;
        match sequence {
            "[H" => self.at = (0, 0),
            "[K" => self.cells[row][column..].fill(' '),
            "[J" => {
                self.cells[row][column..].fill(' ');
                for below in &mut self.cells[row + 1..] {
                    below.fill(' ');
                }
            }
            // Another screen.
            "[?1049h" | "[?1049l" => {
                for cells in &mut self.cells {
                    cells.fill(' ');
                }
                self.at = (0, 0);
            }
            _ => {}
        }
    }
}
