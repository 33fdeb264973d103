//! The engine's side of the protocol: a player at the service of whoever writes the commands.

use crate::line::{Line, quoted, read_line};
use crate::text::{move_text, parse_move, parse_position};
use checkers::{DrawRules, Game, Limits, MAX_DEPTH, Player, Thought};
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// How an engine presents itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// How deep it searches where the driver sets no level.
    pub depth: u32,
    /// Decides what the player leaves to chance; each game has a seed of its own that follows from it.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { name: "Atoll".to_owned(), version, depth: 8, seed: 0 }
    }
}

/// A line that was read, or why none could be.
type Heard = io::Result<String>;

/// Lets a driver at the other end of `input` and `output` use a player, until it says `quit` or goes away. Whatever it
/// says wrongly is answered with an error of the protocol.
///
/// # Errors
/// If the answers can't be written.
pub fn serve(
    input: impl BufRead + Send + 'static,
    output: impl Write,
    player: &mut (dyn Player + Send),
    settings: &Settings,
) -> io::Result<()> {
    // Lines are read on a thread of their own, so that a `stop` is heard while the player thinks. The thread may stay
    // behind in its last read; it ends with the process.
    let (sender, lines) = sync_channel::<Heard>(64);
    std::thread::spawn(move || {
        let mut input = input;
        while let Some(heard) = read_line(&mut input).transpose() {
            let broken = heard.is_err();
            if sender.send(heard).is_err() || broken {
                break;
            }
        }
    });
    Engine::new(output, lines, player, settings).run()
}

/// An engine at work.
struct Engine<'a, W> {
    output: W,
    lines: Receiver<Heard>,
    player: &'a mut (dyn Player + Send),
    settings: &'a Settings,
    game: Game,
    level: Level,
    games: u64,
    /// The driver has said that a game is new, and not yet where it starts.
    fresh: bool,
    /// A line that was heard while the player thought, and comes next.
    next: Option<String>,
}

/// What came while the opponent thought.
enum Waited {
    /// The opponent's move, which was the expected one.
    Hit,
    /// The wish for an answer at once.
    Stopped,
    /// Nothing any more.
    Gone,
}

/// What the driver allows for a move.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Level {
    depth: Option<u32>,
    nodes: Option<u64>,
    time: Option<Duration>,
    infinite: bool,
}

impl Level {
    fn of(line: &Line) -> Self {
        Self {
            depth: line.number("depth").map(|depth| depth as u32),
            nodes: line.number("nodes").map(|nodes| nodes as u64),
            time: line.number("move-time").or_else(|| share_of_clock(line)).map(Duration::from_secs_f64),
            infinite: line.value("infinite").is_some(),
        }
    }

    fn is_open(self) -> bool {
        self.depth.is_none() && self.nodes.is_none() && self.time.is_none()
    }
}

/// Seconds for a move of a game on a clock: a fair share of what is left, and most of the increment.
fn share_of_clock(line: &Line) -> Option<f64> {
    const MOVES_TO_GO: f64 = 30.0;
    let time = line.number("time")?;
    let moves = line.number("moves").unwrap_or(MOVES_TO_GO).clamp(1.0, MOVES_TO_GO);
    let share = time / (moves + 1.0) + 0.8 * line.number("inc").unwrap_or(0.0);
    Some(share.min(0.8 * time).max(0.001))
}

/// A driver decides when a game is over, the engine plays on.
const PLAY_ON: DrawRules = DrawRules { repetitions: None, quiet_plies: None, max_plies: u32::MAX };

/// How long a player thinks before a `stop` is heard, at first.
const SHORTEST_SLICE: Duration = Duration::from_millis(200);

impl<'a, W: Write> Engine<'a, W> {
    fn new(
        output: W,
        lines: Receiver<Heard>,
        player: &'a mut (dyn Player + Send),
        settings: &'a Settings,
    ) -> Self {
        player.new_game(settings.seed);
        let (game, level) = (Game::new(PLAY_ON), Level::default());
        Self { output, lines, player, settings, game, level, games: 0, fresh: true, next: None }
    }

    fn run(&mut self) -> io::Result<()> {
        while let Some(text) = self.hear() {
            let line = Line::parse(&text);
            match line.command.as_str() {
                "" | "stop" | "ponder-hit" => {}
                "hub" => self.introduce()?,
                "init" => self.say("ready")?,
                "ping" => self.say("pong")?,
                "set-param" => self.set(&line)?,
                "new-game" => self.new_game(),
                "pos" => self.set_up(&line)?,
                "level" => self.level = Level::of(&line),
                "go" => self.go(&line)?,
                "quit" => break,
                other => self.complain(&format!("expected a command, found `{}`", shortened(other)))?,
            }
        }
        Ok(())
    }

    /// The next line; nothing if the driver has gone, or says what is no text.
    fn hear(&mut self) -> Option<String> {
        self.next.take().or_else(|| self.lines.recv().ok().and_then(Result::ok))
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.output, "{text}")?;
        self.output.flush()
    }

    fn complain(&mut self, message: &str) -> io::Result<()> {
        self.say(&format!("error message={}", quoted(message)))
    }

    fn introduce(&mut self) -> io::Result<()> {
        let Settings { name, version, .. } = self.settings;
        self.say(&format!(
            "id name={} version={} author={}",
            quoted(name),
            quoted(version),
            quoted("Atoll")
        ))?;
        self.say("param name=variant value=english type=enum values=\"english\"")?;
        self.say("wait")
    }

    fn set(&mut self, line: &Line) -> io::Result<()> {
        match (line.value("name"), line.value("value")) {
            (Some("variant"), Some("english")) => Ok(()),
            (name, value) => {
                let found = shortened(&format!("{}={}", name.unwrap_or_default(), value.unwrap_or_default()));
                self.complain(&format!("expected variant=english, found `{found}`"))
            }
        }
    }

    fn new_game(&mut self) {
        self.games += 1;
        self.player.new_game(self.settings.seed.wrapping_add(self.games));
        self.game = Game::new(PLAY_ON);
        self.fresh = true;
    }

    fn set_up(&mut self, line: &Line) -> io::Result<()> {
        match read_game(line) {
            Ok(game) => {
                // Some drivers never say that a game is new: it is if it does not go on from the last one.
                let goes_on =
                    game.start() == self.game.start() && game.moves().starts_with(self.game.moves());
                if !self.fresh && !goes_on {
                    self.new_game();
                }
                self.game = game;
                self.fresh = false;
                Ok(())
            }
            Err(message) => self.complain(&message),
        }
    }

    fn go(&mut self, line: &Line) -> io::Result<()> {
        let waited = if line.value("ponder").is_some() { self.wait_for_the_opponent()? } else { Waited::Hit };
        let open = self.level.infinite || line.value("analyze").is_some();
        let limits = match waited {
            Waited::Hit => self.limits(open),
            Waited::Stopped => Limits::depth(1),
            Waited::Gone => return Ok(()),
        };
        if let Some(thought) = self.think(&limits)? {
            return self.answer(&thought);
        }
        let position = *self.game.position();
        self.complain(&format!("expected a position with a legal move, found `{position}`"))
    }

    /// Waits until the opponent has moved, or the driver wants an answer.
    fn wait_for_the_opponent(&mut self) -> io::Result<Waited> {
        while let Some(text) = self.hear() {
            match Line::parse(&text).command.as_str() {
                "ponder-hit" => return Ok(Waited::Hit),
                "stop" => return Ok(Waited::Stopped),
                "ping" => self.say("pong")?,
                "quit" => {
                    self.next = Some(text);
                    break;
                }
                _ => {}
            }
        }
        Ok(Waited::Gone)
    }

    fn limits(&self, open: bool) -> Limits {
        let Level { depth, nodes, time, .. } = self.level;
        let depth = match depth {
            _ if open => MAX_DEPTH,
            None if self.level.is_open() => self.settings.depth,
            depth => depth.unwrap_or(MAX_DEPTH).clamp(1, MAX_DEPTH),
        };
        Limits { depth, nodes: nodes.filter(|_| !open), time: time.filter(|_| !open), lines: 1 }
    }

    /// Searches deeper and deeper until the limits are reached, in slices of time between which a `stop` is heard.
    fn think(&mut self, limits: &Limits) -> io::Result<Option<Thought>> {
        let start = Instant::now();
        let mut best: Option<Thought> = None;
        let (mut nodes, mut slice) = (0, SHORTEST_SLICE);
        // Two plies at a time, as searches deepen.
        let mut depth = 2 - limits.depth % 2;
        loop {
            let left = limits.time.map_or(slice, |time| slice.min(time.saturating_sub(start.elapsed())));
            let nodes_left = limits.nodes.map(|all| all.saturating_sub(nodes));
            let now = Limits { depth, time: Some(left), nodes: nodes_left, lines: 1 };
            let Some(thought) = self.player.think(&self.game, &now) else { return Ok(best) };
            nodes += thought.nodes;
            let searched = thought.depth;
            let last = searched == 0 || is_proved(&thought) || searched >= limits.depth;
            if best.as_ref().is_none_or(|best| searched > best.depth) {
                self.inform(&thought, nodes, start.elapsed())?;
                best = Some(thought);
            }
            let late = limits.time.is_some_and(|time| start.elapsed() >= time);
            if last || late || limits.nodes.is_some_and(|all| nodes >= all) || self.is_told_to_stop(limits) {
                return Ok(best);
            }
            if searched >= depth {
                depth += 2;
            } else {
                // What a slice was too short for begins again in the next.
                slice *= 2;
            }
        }
    }

    /// True if the driver wants an answer now, or has gone and would never stop a search without limits; other lines
    /// wait.
    fn is_told_to_stop(&mut self, limits: &Limits) -> bool {
        if self.next.is_some() {
            return false;
        }
        match self.lines.recv_timeout(Duration::ZERO) {
            Ok(Ok(text)) if Line::parse(&text).command == "stop" => true,
            Ok(Ok(text)) if Line::parse(&text).command == "ping" => self.say("pong").is_err(),
            Ok(Ok(text)) => {
                let leaves = Line::parse(&text).command == "quit";
                self.next = Some(text);
                leaves
            }
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => limits.depth >= MAX_DEPTH,
            Err(RecvTimeoutError::Timeout) => false,
        }
    }

    fn inform(&mut self, thought: &Thought, nodes: u64, time: Duration) -> io::Result<()> {
        let Some(score) = thought.score else { return Ok(()) };
        let score = match (score.win_in(), score.lost_in()) {
            (Some(plies), _) => 100.0 - f64::from(plies) / 100.0,
            (_, Some(plies)) => f64::from(plies) / 100.0 - 100.0,
            _ => f64::from(score.value()),
        };
        let line: Vec<String> = thought.line.iter().map(move_text).collect();
        let (seconds, depth) = (time.as_secs_f64(), thought.depth);
        let rate = nodes as f64 / seconds.max(1e-6);
        self.say(&format!(
            "info depth={depth} score={score:.3} nodes={nodes} time={seconds:.2} nps={rate:.0} pv={}",
            quoted(&line.join(" "))
        ))
    }

    fn answer(&mut self, thought: &Thought) -> io::Result<()> {
        let expected = thought.line.get(1).map_or(String::new(), |mv| format!(" ponder={}", move_text(mv)));
        self.say(&format!("done move={}{expected}", move_text(&thought.best)))
    }
}

/// True if searching deeper can't change the result.
fn is_proved(thought: &Thought) -> bool {
    thought
        .score
        .is_some_and(|score| score.win_in().or(score.lost_in()).is_some_and(|plies| plies <= thought.depth))
}

/// The game of a `pos` line.
fn read_game(line: &Line) -> Result<Game, String> {
    let position = line.value("pos").unwrap_or("Wbbbbbbbbbbbbeeeeeeeewwwwwwwwwwww");
    let mut game = Game::from_position(parse_position(position).map_err(|error| error.to_string())?, PLAY_ON);
    for text in line.value("moves").unwrap_or_default().split_whitespace() {
        let mv = parse_move(game.position(), text).map_err(|error| error.to_string())?;
        game.play(mv).map_err(|error| error.to_string())?;
    }
    Ok(game)
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}
