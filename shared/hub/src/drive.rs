//! The driver's side of the protocol: another program's engine, in a process of its own.

use crate::line::{Line, quoted, read_line};
use crate::text::{move_text, parse_move, position_text};
use checkers::{Game, Limits, Move, MoveError, Player};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{self, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// Why an engine can't continue. In a game this may count as a forfeit.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// It can't be started.
    #[error("expected an engine that can be started: {0}")]
    Start(io::Error),
    /// It has ended, or closed its output.
    #[error("expected `{expected}` from the engine, which has gone")]
    Gone {
        /// What was waited for.
        expected: &'static str,
    },
    /// It takes too long.
    #[error("expected `{expected}` from the engine within {patience:?}")]
    Hung {
        /// What was waited for.
        expected: &'static str,
        /// How long.
        patience: Duration,
    },
    /// It answered with a move that can't be played.
    #[error("the engine's move: {0}")]
    Move(#[from] MoveError),
    /// It reports an error.
    #[error("the engine says: {0}")]
    Complaint(String),
    /// It wants to continue a game that has ended.
    #[error("expected a game under way")]
    Over,
}

/// An engine that speaks Hub. It is killed, with all that it started, when this is dropped.
pub struct HubEngine {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    patience: Duration,
    name: String,
}

impl HubEngine {
    /// Starts an engine and waits until it is ready. Each reply may take `patience`; a move may take its thinking time as
    /// well.
    ///
    /// # Errors
    /// If it can't be started, or does not speak Hub.
    pub fn start(command: &mut Command, patience: Duration) -> Result<Self, HubError> {
        // In a group of its own, so that whatever it starts goes with it.
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().map_err(HubError::Start)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(HubError::Gone { expected: "pipes" });
        };
        let (sender, lines) = sync_channel(1024);
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Ok(Some(line)) = read_line(&mut output) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut engine = Self { child, input, lines, patience, name: String::new() };
        engine.shake_hands()?;
        Ok(engine)
    }

    fn shake_hands(&mut self) -> Result<(), HubError> {
        self.send("hub", "wait")?;
        let deadline = Instant::now() + self.patience;
        loop {
            let line = self.hear("wait", deadline, self.patience)?;
            match line.command.as_str() {
                "wait" => break,
                "id" => line.value("name").unwrap_or_default().clone_into(&mut self.name),
                // Only to engines that have the parameter: others reject unknown parameters.
                "param" if line.value("name") == Some("variant") => {
                    self.send("set-param name=variant value=english", "wait")?;
                }
                _ => {}
            }
        }
        self.send("init", "ready")?;
        self.wait_for("ready", Duration::ZERO).map(|_| ())
    }

    /// How long each further answer may take: an engine may need longer to get ready than to move.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Starts a new game.
    ///
    /// # Errors
    /// If it has gone.
    pub fn new_game(&mut self) -> Result<(), HubError> {
        self.send("new-game", "a new game")
    }

    /// The move it plays in a game, within limits.
    ///
    /// # Errors
    /// If it takes too long, has exited, or replies with an illegal move.
    pub fn choose(&mut self, game: &Game, limits: &Limits) -> Result<Move, HubError> {
        if game.outcome().is_some() {
            return Err(HubError::Over);
        }
        let moves: Vec<String> = game.moves().iter().map(move_text).collect();
        let position = position_text(game.start());
        self.send(&format!("pos pos={position} moves={}", quoted(&moves.join(" "))), "a move")?;
        self.send(&level(limits), "a move")?;
        self.send("go think", "a move")?;
        let done = self.wait_for("done", limits.time.unwrap_or_default())?;
        let text = done.value("move").unwrap_or_default();
        Ok(parse_move(game.position(), text)?)
    }

    fn send(&mut self, line: &str, expected: &'static str) -> Result<(), HubError> {
        let sent = writeln!(self.input, "{line}").and_then(|()| self.input.flush());
        sent.map_err(|_| HubError::Gone { expected })
    }

    /// Waits for one command, `extra` longer than usual, and passes over others.
    fn wait_for(&mut self, expected: &'static str, extra: Duration) -> Result<Line, HubError> {
        let patience = self.patience.saturating_add(extra);
        let deadline = Instant::now() + patience;
        loop {
            let line = self.hear(expected, deadline, patience)?;
            match line.command.as_str() {
                command if command == expected => return Ok(line),
                "error" => {
                    let message = line.value("message").unwrap_or_default();
                    return Err(HubError::Complaint(message.chars().take(200).collect()));
                }
                _ => {}
            }
        }
    }

    fn hear(&self, expected: &'static str, deadline: Instant, patience: Duration) -> Result<Line, HubError> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            // A talkative engine gets no more time than a silent one.
            Ok(_) if left.is_zero() => Err(HubError::Hung { expected, patience }),
            Ok(text) => Ok(Line::parse(&text)),
            Err(RecvTimeoutError::Timeout) => Err(HubError::Hung { expected, patience }),
            Err(RecvTimeoutError::Disconnected) => Err(HubError::Gone { expected }),
        }
    }
}

impl Drop for HubEngine {
    fn drop(&mut self) {
        // Whether it was still there does not matter any more.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// The line that sets the limits of an engine.
fn level(limits: &Limits) -> String {
    let nodes = limits.nodes.map(|nodes| format!(" nodes={nodes}"));
    let time = limits.time.map(|time| format!(" move-time={}", time.as_secs_f64()));
    format!("level depth={}{}{}", limits.depth, nodes.unwrap_or_default(), time.unwrap_or_default())
}

/// An engine as a player. If it fails, it loses: it makes no further moves, and keeps the reason.
pub struct HubPlayer {
    engine: HubEngine,
    limits: Limits,
    failure: Option<HubError>,
}

impl HubPlayer {
    /// Plays with these limits for each move.
    pub fn new(engine: HubEngine, limits: Limits) -> Self {
        Self { engine, limits, failure: None }
    }

    /// Why it lost, if it was no fault of its play.
    pub fn failure(&self) -> Option<&HubError> {
        self.failure.as_ref()
    }
}

impl Player for HubPlayer {
    fn new_game(&mut self, _seed: u64) {
        if self.failure.is_none() {
            self.failure = self.engine.new_game().err();
        }
    }

    fn choose(&mut self, game: &Game) -> Option<Move> {
        if self.failure.is_some() {
            return None;
        }
        self.engine.choose(game, &self.limits).map_err(|failure| self.failure = Some(failure)).ok()
    }
}
