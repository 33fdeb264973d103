//! The engine's side of the protocol: a player that follows the commands of a driver.

use crate::line::{Line, quoted, read_line};
use crate::text::{move_text, parse_move, parse_position};
use checkers::{DrawRules, Game, Limits, Line as Variation, MAX_DEPTH, Player, Score, Thought, Watch};
use std::collections::VecDeque;
use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel, sync_channel};
use std::time::{Duration, Instant};

/// How an engine presents itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineSettings {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// How deep it searches where the driver sets no level.
    pub depth: u32,
    /// Seed of the player's random choices; each game has a seed of its own that follows from it.
    pub seed: u64,
}

impl Default for EngineSettings {
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
    settings: &EngineSettings,
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
    settings: &'a EngineSettings,
    game: Game,
    level: Level,
    games: u64,
    /// The driver has said that a game is new, and not yet where it starts.
    fresh: bool,
    /// Lines that were heard while the player thought, and come next.
    waiting: VecDeque<String>,
    /// Whether the driver ended the last thought.
    interrupted: bool,
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
    /// The level of a line; what is no number is an error, because nobody wants a search without that limit.
    fn of(line: &Line) -> Result<Self, String> {
        for name in ["depth", "nodes", "move-time", "time", "moves", "inc"] {
            if let Some(value) = line.value(name)
                && line.number(name).is_none()
            {
                return Err(format!("expected a number for {name}, found `{}`", shortened(value)));
            }
        }
        Ok(Self {
            depth: line.number("depth").map(|depth| depth as u32),
            nodes: line.number("nodes").map(|nodes| nodes as u64),
            time: line.number("move-time").or_else(|| share_of_clock(line)).map(Duration::from_secs_f64),
            infinite: line.value("infinite").is_some(),
        })
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
const PLAY_ON: DrawRules =
    DrawRules { repetitions: None, quiet_plies: None, max_plies: u32::MAX, adjudicate: 0 };

/// How often what the driver says is looked at while the player thinks.
const LOOK: Duration = Duration::from_millis(2);
/// Lines that may wait while the player thinks; a driver that says more is not listening.
const MOST_WAITING: usize = 1024;

impl<'a, W: Write> Engine<'a, W> {
    fn new(
        output: W,
        lines: Receiver<Heard>,
        player: &'a mut (dyn Player + Send),
        settings: &'a EngineSettings,
    ) -> Self {
        player.new_game(settings.seed);
        let (game, level) = (Game::new(PLAY_ON), Level::default());
        Self {
            output,
            lines,
            player,
            settings,
            game,
            level,
            games: 0,
            fresh: true,
            waiting: VecDeque::new(),
            interrupted: false,
        }
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
                "level" => match Level::of(&line) {
                    Ok(level) => self.level = level,
                    Err(message) => self.complain(&message)?,
                },
                "go" => self.go(&line)?,
                "quit" => break,
                other => self.complain(&format!("expected a command, found `{}`", shortened(other)))?,
            }
        }
        Ok(())
    }

    /// The next line; nothing if the driver has gone, or says what is no text.
    fn hear(&mut self) -> Option<String> {
        self.waiting.pop_front().or_else(|| self.lines.recv().ok().and_then(Result::ok))
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        say(&mut self.output, text)
    }

    fn complain(&mut self, message: &str) -> io::Result<()> {
        self.say(&format!("error message={}", quoted(message)))
    }

    fn introduce(&mut self) -> io::Result<()> {
        let EngineSettings { name, version, .. } = self.settings;
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
                // Some drivers never say that a game is new: it is if it does not continue the last one.
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
        let position = *self.game.position();
        if position.is_lost() {
            return self.complain(&format!("expected a position with a legal move, found `{position}`"));
        }
        let open = self.level.infinite || line.value("analyze").is_some();
        let pondering = line.value("ponder").is_some();
        let limits = self.limits(open);
        let thought = if pondering { self.ponder(&limits)? } else { self.think(&limits, None)? };
        if let Some(thought) = thought {
            return self.answer(&thought);
        }
        Ok(())
    }

    /// Thinks while the opponent does. When the opponent has moved as expected the player continues, for as long as it may
    /// use for a move, or from what it has found so far.
    fn ponder(&mut self, limits: &Limits) -> io::Result<Option<Thought>> {
        let endless = Limits { depth: MAX_DEPTH, nodes: None, time: None, ..*limits };
        let thought = self.think(&endless, Some(limits))?;
        let ended = self.waiting.front().map(|text| Line::parse(text).command);
        match ended.as_deref() {
            Some("quit") => Ok(None),
            Some("ponder-hit") => {
                self.waiting.pop_front();
                self.think(limits, None)
            }
            _ if self.interrupted => Ok(thought),
            _ => Ok(if self.wait_for_the_opponent()? { thought } else { None }),
        }
    }

    /// Waits until the opponent has moved or the driver wants an answer; false if it has gone.
    fn wait_for_the_opponent(&mut self) -> io::Result<bool> {
        while let Some(text) = self.hear() {
            match Line::parse(&text).command.as_str() {
                "ponder-hit" | "stop" => return Ok(true),
                "ping" => self.say("pong")?,
                "quit" => {
                    self.waiting.push_front(text);
                    break;
                }
                _ => {}
            }
        }
        Ok(false)
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

    /// Lets the player think within limits on a thread of its own, and hears what the driver says meanwhile: `stop` ends
    /// it, and when it ponders `ponder-hit` gives it the time of a move, or ends it where that is not limited by time.
    fn think(&mut self, limits: &Limits, pondering: Option<&Limits>) -> io::Result<Option<Thought>> {
        let (start, man) = (Instant::now(), self.player.man());
        let stop = AtomicBool::new(false);
        let (told, reports) = channel();
        let Self { output, lines, player, game, waiting, .. } = self;
        let (player, game) = (&mut **player, &*game);
        let mut deadline: Option<Instant> = None;
        let thought = std::thread::scope(|scope| {
            let thinking = scope.spawn(|| {
                let mut report = |depth: u32, nodes: u64, lines: &[Variation]| {
                    let told = told.send((depth, nodes, lines.to_vec(), start.elapsed()));
                    drop(told);
                };
                player.watch(game, limits, &mut Watch { stop: &stop, report: &mut report })
            });
            // If the driver no longer reads, the search ends: a failed write ends it.
            let mut failed: Option<io::Error> = None;
            let mut note = |said: io::Result<()>| {
                if let Err(error) = said {
                    stop.store(true, Ordering::Relaxed);
                    failed.get_or_insert(error);
                }
            };
            let mut gone = false;
            while !thinking.is_finished() {
                for (depth, nodes, lines, time) in reports.try_iter() {
                    // While the opponent thinks, nothing is written to the driver.
                    if pondering.is_none() || deadline.is_some() {
                        note(inform(output, man, depth, nodes, &lines, time));
                    }
                }
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    stop.store(true, Ordering::Relaxed);
                }
                if gone {
                    std::thread::sleep(LOOK);
                    continue;
                }
                let text = match lines.recv_timeout(LOOK) {
                    Ok(Ok(text)) => text,
                    Err(RecvTimeoutError::Timeout) => continue,
                    Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                        // A driver that has gone would never stop a search without limits.
                        gone = true;
                        if limits.depth >= MAX_DEPTH && limits.time.is_none() && limits.nodes.is_none() {
                            stop.store(true, Ordering::Relaxed);
                        }
                        continue;
                    }
                };
                match Line::parse(&text).command.as_str() {
                    // What comes after a `stop` is answered after the move.
                    _ if stop.load(Ordering::Relaxed) && waiting.len() < MOST_WAITING => {
                        waiting.push_back(text);
                    }
                    "stop" => stop.store(true, Ordering::Relaxed),
                    "ping" => note(say(output, "pong")),
                    "ponder-hit" => match pondering {
                        Some(Limits { time: Some(time), .. }) => deadline = Instant::now().checked_add(*time),
                        Some(_) => {
                            waiting.push_front(text);
                            stop.store(true, Ordering::Relaxed);
                        }
                        None => {}
                    },
                    "quit" => {
                        waiting.push_front(text);
                        stop.store(true, Ordering::Relaxed);
                    }
                    _ if waiting.len() < MOST_WAITING => waiting.push_back(text),
                    _ => {}
                }
            }
            for (depth, nodes, lines, time) in reports.try_iter() {
                if pondering.is_none() || deadline.is_some() {
                    note(inform(output, man, depth, nodes, &lines, time));
                }
            }
            let thought = thinking.join().map_err(|_| io::Error::other("the player broke down"));
            failed.map_or(thought, Err)
        });
        self.interrupted = deadline.is_some() || stop.load(Ordering::Relaxed);
        thought
    }

    fn answer(&mut self, thought: &Thought) -> io::Result<()> {
        let expected = thought.line.get(1).map_or(String::new(), |mv| format!(" ponder={}", move_text(mv)));
        self.say(&format!("done move={}{expected}", move_text(&thought.best)))
    }
}

fn say(output: &mut impl Write, text: &str) -> io::Result<()> {
    writeln!(output, "{text}")?;
    output.flush()
}

/// Writes what the player has found so far to the driver. A score is in men, where the player knows what a man is worth to it.
fn inform(
    output: &mut impl Write,
    man: Option<f32>,
    depth: u32,
    nodes: u64,
    lines: &[Variation],
    time: Duration,
) -> io::Result<()> {
    for line in lines {
        let score = in_men(line.score, man);
        let moves: Vec<String> = line.moves.iter().map(move_text).collect();
        let seconds = time.as_secs_f64();
        let rate = nodes as f64 / seconds.max(1e-6);
        let text = format!(
            "info depth={depth} score={score:.2} nodes={nodes} time={seconds:.2} nps={rate:.0} pv={}",
            quoted(&moves.join(" "))
        );
        say(output, &text)?;
    }
    Ok(())
}

/// A score in men, to a hundredth; a proved end is 100 less a hundredth for each ply until then.
fn in_men(score: Score, man: Option<f32>) -> f64 {
    match (score.win_in(), score.lost_in()) {
        (Some(plies), _) => 100.0 - f64::from(plies) / 100.0,
        (_, Some(plies)) => f64::from(plies) / 100.0 - 100.0,
        _ => {
            let men = (f64::from(score.value()) / f64::from(man.unwrap_or(1.0))).clamp(-99.0, 99.0);
            // Next to nothing is 0, not -0.
            (100.0 * men).round() / 100.0 + 0.0
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_to_nothing_is_not_minus_zero() {
        let shown = |value| format!("{:.2}", in_men(Score::from_value(value), Some(1.0)));
        assert_eq!([-0.001, 0.0, -0.006, 0.5].map(shown), ["0.00", "0.00", "-0.01", "0.50"]);
    }

    #[test]
    fn a_level_without_a_number_is_none_and_a_clock_that_ran_out_is_no_time() {
        let level = |text: &str| Level::of(&Line::parse(&format!("level {text}")));
        for text in ["depth=x", "move-time=nan", "time=1 inc=inf", "nodes="] {
            assert!(level(text).unwrap_err().contains("expected a number"), "{text}");
        }
        for text in ["time=-3", "move-time=-0.01"] {
            assert!(level(text).unwrap().time.is_some_and(|time| time <= Duration::from_millis(1)), "{text}");
        }
        assert_eq!(level("depth=99999999999999").unwrap().depth, Some(1_000_000_000));
        assert_eq!(level("infinite").unwrap(), Level { infinite: true, ..Level::default() });
    }

    #[test]
    fn a_move_takes_a_fair_share_of_the_clock() {
        let share = |level: &str| share_of_clock(&Line::parse(&format!("level {level}")));
        let is = |level: &str, due: f64| {
            let found = share(level).unwrap_or(f64::NAN);
            assert!((found - due).abs() < 1e-9, "{level}: {found} instead of {due}");
        };
        is("time=31", 1.0);
        is("time=31 inc=1", 1.8);
        is("time=31 moves=9", 3.1);
        // Never more than most of what is left, and never nothing.
        is("time=1 moves=1 inc=10", 0.8);
        is("time=0", 0.001);
        assert_eq!(share("depth=3"), None);
        // A game of any length is played without running out of time.
        let mut left = 60.0;
        for number in 0..300 {
            let spent = share(&format!("time={left} inc=0.1")).expect("a share");
            assert!(spent < left, "move {number}: {spent} of {left}");
            left += 0.1 - spent;
        }
    }
}
