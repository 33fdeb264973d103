//! `atoll play`: a person plays checkers against a player, in the terminal.

mod board;
pub(crate) mod web;

use crate::clock;
use crate::dashboard;
use crate::failure::Failure;
use crate::player::PlayerArguments;
use crate::signals::Signals;
use crate::terminal::{message, out};
use board::Board;
use checkers::{
    DrawReason, DrawRules, Game, Limits, MAX_DEPTH, Move, MoveError, Outcome, PdnGame, Player, PlayerSpec,
    Position, Side, Tag, Thought, openings,
};
use clap::ValueEnum;
use coordinator::dashboard::{Offers, serve_store};
use report::dashboard::{PlayForm, PlayStrength};
use report::text::plies;
use std::fs::OpenOptions;
use std::io::{self, BufRead, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use store::Store;
use web::FindPlayer;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    player: PlayerArguments,
    /// Your side; black moves first
    #[arg(long, value_enum, default_value_t = Colour::Black)]
    side: Colour,
    /// Seconds for each move, instead of a depth
    #[arg(long, value_name = "SECONDS", conflicts_with = "clock", value_parser = parse_seconds)]
    seconds: Option<Duration>,
    /// Clock for both sides, `MINUTES` or `MINUTES+SECONDS` (increment for each move); running out of time loses
    #[arg(long, value_name = "CLOCK", value_parser = parse_clock)]
    clock: Option<(Duration, Duration)>,
    /// The position to start from [default: the initial one]
    #[arg(long)]
    fen: Option<String>,
    /// File to append the finished game to
    #[arg(long, value_name = "FILE", default_value = "atoll-games.pdn")]
    pdn: PathBuf,
    /// Seed of the player's random choices [default: the time]
    #[arg(long)]
    seed: Option<u64>,
    /// Play in a browser: serve a board until Ctrl-C
    #[arg(long, conflicts_with_all = ["clock", "fen", "seed", "pdn"])]
    web: bool,
    /// The address to serve the board on, on loopback; port 0 selects a free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7443", requires = "web")]
    listen: String,
    /// Open the board in a browser (`$BROWSER`, or the default browser)
    #[arg(long, requires = "web")]
    open: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Colour {
    Black,
    White,
}

/// The longest accepted input line.
const LONGEST_LINE: u64 = 1 << 10;

const HELP: &str = "\
a move   its squares, as 11-15 or 15x22; a jump over several may need all of them, as 6x15x24
moves    what you may play
hint     what the player would do in your place
eval     what the player makes of the position
undo     take back your last move
resign   give up
quit     leave the game unfinished
In the end the game is saved as PDN.";

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    if arguments.web { serve(arguments).await } else { play(&arguments).await }
}

/// Serves a board in the browser, with one player.
async fn serve(arguments: Arguments) -> Result<ExitCode, Failure> {
    let form = arguments.form()?;
    let mut signals = Signals::listen()?;
    let player = arguments.player.load(arguments.limits()).await?;
    let database = arguments.player.database()?;
    let (listener, url) = dashboard::listen(&arguments.listen).await?;
    let name = arguments.player.player.clone();
    let url = format!("{url}play");
    message!("board at {url}; stop with Ctrl-C");
    if arguments.open {
        crate::report::open_url(&url)?;
    }
    let find: FindPlayer = Arc::new(move |_, asked| {
        let mut player = player.clone();
        if let PlayerSpec::Playing { limits, .. } = &mut player {
            *limits = asked;
        }
        Box::pin(async move { Ok(player) })
    });
    let place = format!("player {name}");
    let offers = Offers { exhibit: None, table: Some(web::table(find, database)), form };
    let asked = Box::pin(signals.asked());
    serve_store(listener, (Store::memory(), place), offers, clock::now, asked).await;
    Ok(ExitCode::SUCCESS)
}

async fn play(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let start = match &arguments.fen {
        None => Position::START,
        Some(fen) => fen.parse().map_err(|error| Failure::Config(format!("--fen: {error}")))?,
    };
    let limits = arguments.limits();
    let mut player = arguments.player.load(limits).await?.build();
    player.new_game(arguments.seed.unwrap_or_else(seed_of_the_moment));
    let person = match arguments.side {
        Colour::Black => Side::Black,
        Colour::White => Side::White,
    };
    let mut table = Table {
        game: Game::from_position(start, DrawRules::default()),
        player: &mut *player,
        limits,
        clocks: arguments.clock.map(|(time, increment)| Clocks { left: [time; 2], increment }),
        person,
        board: Board { bottom: person, colours: io::stdout().is_terminal() },
        resigned: false,
        late: None,
    };
    let failed = |error: io::Error| Failure::Other(format!("the terminal: {error}"));
    table.play(&mut io::stdin().lock(), &mut io::stdout().lock()).map_err(failed)?;
    let saved = save(&arguments.pdn, &table.record(&arguments.player.player));
    saved.map_err(|error| Failure::Other(format!("{}: {error}", arguments.pdn.display())))?;
    out!("The game is in {}.", arguments.pdn.display());
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    /// The form of a new game in a browser, where searches are bounded.
    fn form(&self) -> Result<PlayForm, Failure> {
        let strength = match self.seconds {
            Some(time) if time > web::LONGEST => {
                let (longest, found) = (web::LONGEST.as_secs(), time.as_secs_f64());
                return Err(Failure::Usage(format!(
                    "--seconds: expected at most {longest} with --web, found {found}"
                )));
            }
            Some(time) => PlayStrength::Seconds(time.as_secs_f64()),
            None if self.player.depth > web::DEEPEST => {
                let (deepest, found) = (web::DEEPEST, self.player.depth);
                return Err(Failure::Usage(format!(
                    "--depth: expected at most {deepest} with --web, found {found}"
                )));
            }
            None => PlayStrength::Plies(self.player.depth),
        };
        let (player, plays_white) = (self.player.player.clone(), self.side == Colour::White);
        Ok(PlayForm { player, is_fixed: true, plays_white, strength })
    }

    /// What the player may use for a move, where a clock does not say.
    fn limits(&self) -> Limits {
        match (self.seconds, self.clock) {
            (None, None) => Limits::depth(self.player.depth),
            (time, _) => Limits { time, ..Limits::depth(MAX_DEPTH) },
        }
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.001..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "expected seconds between 0.001 and 86400".to_owned())
}

/// `MINUTES` or `MINUTES+SECONDS`.
fn parse_clock(text: &str) -> Result<(Duration, Duration), String> {
    let (minutes, increment) = text.split_once('+').unwrap_or((text, "0"));
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| (0.0..=10_000.0).contains(number));
    match (number(minutes), number(increment)) {
        (Some(minutes), Some(increment)) if minutes > 0.0 => {
            Ok((Duration::from_secs_f64(60.0 * minutes), Duration::from_secs_f64(increment)))
        }
        _ => Err("expected `MINUTES` or `MINUTES+SECONDS`, such as `5` or `3+2`".to_owned()),
    }
}

fn seed_of_the_moment() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}

/// A game between a person and a player.
struct Table<'a> {
    game: Game,
    player: &'a mut (dyn Player + Send),
    limits: Limits,
    clocks: Option<Clocks>,
    person: Side,
    board: Board,
    /// The person has given up.
    resigned: bool,
    /// Who has run out of time.
    late: Option<Side>,
}

/// What is left of the time of both sides.
struct Clocks {
    /// Black's and White's.
    left: [Duration; 2],
    increment: Duration,
}

impl Clocks {
    /// Subtracts the time of a move from a side's clock; false if less was left.
    fn spend(&mut self, side: Side, spent: Duration) -> bool {
        let left = &mut self.left[side as usize];
        let in_time = spent <= *left;
        *left = left.saturating_sub(spent) + if in_time { self.increment } else { Duration::ZERO };
        in_time
    }

    /// A fair share for the next move of a side: most games have no more than 30 left.
    fn share(&self, side: Side) -> Duration {
        const MOVES: u32 = 30;
        let left = self.left[side as usize];
        (left / MOVES + self.increment.mul_f64(0.8)).min(left.mul_f64(0.8))
    }
}

/// What a person may say.
enum Wish {
    Move(Result<Move, MoveError>),
    Moves,
    Hint,
    Eval,
    Undo,
    Resign,
    Quit,
    Help,
}

impl Table<'_> {
    /// Plays until the game is over or the person leaves.
    fn play(&mut self, input: &mut impl BufRead, output: &mut impl Write) -> io::Result<()> {
        writeln!(output, "You have {}. Type `help` for the commands.", self.person)?;
        self.show(output)?;
        // A side's time passes until it has moved, whatever else is said or asked for before.
        let mut start = Instant::now();
        while self.game.outcome().is_none() && self.late.is_none() {
            let side = self.game.position().side_to_move();
            let plies = self.game.moves().len();
            if self.game.position().side_to_move() == self.person {
                if !self.persons_turn(input, output)? {
                    break;
                }
            } else {
                self.players_turn(output)?;
            }
            if self.game.moves().len() > plies {
                self.stop_clock(side, start.elapsed(), output)?;
                start = Instant::now();
            }
        }
        match self.outcome() {
            Some(outcome) => writeln!(output, "{}", self.result(outcome)),
            None => writeln!(output, "The game is not finished."),
        }
    }

    fn stop_clock(&mut self, side: Side, spent: Duration, output: &mut impl Write) -> io::Result<()> {
        let Some(clocks) = &mut self.clocks else { return Ok(()) };
        if !clocks.spend(side, spent) {
            self.late = Some(side);
            return Ok(());
        }
        let [black, white] =
            clocks.left.map(|left| format!("{}:{:02}", left.as_secs() / 60, left.as_secs() % 60));
        writeln!(output, "Black {black}, White {white}.")
    }

    /// Lets the person say one thing; false if it was the last.
    fn persons_turn(&mut self, input: &mut impl BufRead, output: &mut impl Write) -> io::Result<bool> {
        write!(output, "Your move: ")?;
        output.flush()?;
        let mut text = Vec::new();
        if io::Read::take(input, LONGEST_LINE).read_until(b'\n', &mut text)? == 0 {
            writeln!(output)?;
            return Ok(false);
        }
        match self.understand(String::from_utf8_lossy(&text).trim()) {
            Wish::Move(Ok(mv)) => self.advance(mv, output)?,
            Wish::Move(Err(error)) => self.explain(&error, output)?,
            Wish::Moves => writeln!(output, "You can play {}.", self.choices())?,
            Wish::Hint => self.hint(output)?,
            Wish::Eval => self.evaluate(output)?,
            Wish::Undo => self.undo(output)?,
            Wish::Help => writeln!(output, "{HELP}")?,
            Wish::Resign => {
                self.resigned = true;
                return Ok(false);
            }
            Wish::Quit => return Ok(false),
        }
        Ok(true)
    }

    fn understand(&self, text: &str) -> Wish {
        match text.to_ascii_lowercase().as_str() {
            "help" | "?" => Wish::Help,
            "moves" => Wish::Moves,
            "hint" => Wish::Hint,
            "eval" => Wish::Eval,
            "undo" => Wish::Undo,
            "resign" => Wish::Resign,
            "quit" | "exit" => Wish::Quit,
            _ => Wish::Move(self.game.position().parse_move(text)),
        }
    }

    /// What the player may use for a move of a side: with a clock, a share of that side's time.
    fn limits_of(&self, side: Side) -> Limits {
        let share = self.clocks.as_ref().map(|clocks| clocks.share(side));
        Limits { time: share.or(self.limits.time), ..self.limits }
    }

    fn players_turn(&mut self, output: &mut impl Write) -> io::Result<()> {
        let limits = self.limits_of(!self.person);
        let Some(thought) = self.player.think(&self.game, &limits) else {
            return Err(io::Error::other("the player found no move in a game under way"));
        };
        writeln!(output, "Atoll plays {}{}", thought.best, remarks(&thought))?;
        self.advance(thought.best, output)
    }

    fn advance(&mut self, mv: Move, output: &mut impl Write) -> io::Result<()> {
        self.game.play(mv).map_err(io::Error::other)?;
        self.show(output)?;
        let opening = openings().iter().find(|opening| opening.moves == self.game.moves());
        if let Some(opening) = opening.filter(|_| *self.game.start() == Position::START) {
            let name = opening.name.unwrap_or_else(|| opening.family());
            writeln!(
                output,
                "Opening: {name} (number {} in the list of the American Checker Federation).",
                opening.number
            )?;
        }
        Ok(())
    }

    /// Shows the board, and the captures that are mandatory.
    fn show(&self, output: &mut impl Write) -> io::Result<()> {
        writeln!(output, "{}", self.board.draw(self.game.position(), self.game.moves().last()))?;
        let position = self.game.position();
        if position.side_to_move() == self.person && position.must_capture() && self.game.outcome().is_none()
        {
            writeln!(output, "You must capture: {}.", self.choices())?;
        }
        Ok(())
    }

    fn choices(&self) -> String {
        let moves: Vec<String> = self.game.position().legal_moves().iter().map(ToString::to_string).collect();
        moves.join(", ")
    }

    /// Says why a move can't be played.
    fn explain(&self, error: &MoveError, output: &mut impl Write) -> io::Result<()> {
        match error {
            MoveError::Unreadable(text) => {
                writeln!(output, "`{text}` is no move: write its squares, as 11-15, or `help`.")
            }
            MoveError::Illegal { text, position } if position.must_capture() => {
                writeln!(
                    output,
                    "`{text}` can't be played: who can capture must, so play {}.",
                    self.choices()
                )
            }
            MoveError::Illegal { text, .. } => {
                writeln!(output, "`{text}` can't be played; you can play {}.", self.choices())
            }
            MoveError::Ambiguous { text, .. } => {
                writeln!(output, "`{text}` can be several jumps; write all squares: {}.", self.choices())
            }
        }
    }

    fn hint(&mut self, output: &mut impl Write) -> io::Result<()> {
        let limits = self.limits_of(self.person);
        match self.player.think(&self.game, &limits) {
            Some(thought) => writeln!(output, "Atoll would play {}{}", thought.best, remarks(&thought)),
            None => writeln!(output, "There is nothing to play."),
        }
    }

    fn evaluate(&mut self, output: &mut impl Write) -> io::Result<()> {
        let limits = self.limits_of(self.person);
        let thought = self.player.think(&self.game, &limits);
        match thought.as_ref().and_then(|thought| thought.score) {
            Some(score) => writeln!(output, "Evaluation for your side: {score}"),
            None => writeln!(output, "This player does not evaluate positions."),
        }
    }

    /// Goes back to before the person's last move.
    fn undo(&mut self, output: &mut impl Write) -> io::Result<()> {
        let played = self.game.moves().to_vec();
        let Some(keep) = played.len().checked_sub(2) else {
            return writeln!(output, "There is nothing to take back.");
        };
        let start = *self.game.start();
        self.game.restart(start);
        for mv in &played[..keep] {
            self.game.play(*mv).map_err(io::Error::other)?;
        }
        self.show(output)
    }

    fn outcome(&self) -> Option<Outcome> {
        match self.late {
            Some(late) => Some(Outcome::Win(!late)),
            None if self.resigned => Some(Outcome::Win(!self.person)),
            None => self.game.outcome(),
        }
    }

    fn result(&self, outcome: Outcome) -> String {
        match outcome {
            Outcome::Win(side) if self.late == Some(!side) => {
                format!("{} on time.", if side == self.person { "You win" } else { "Atoll wins" })
            }
            outcome => result_text(outcome, self.person, false),
        }
    }

    /// The game for those who read PDN.
    fn record(&self, player: &str) -> PdnGame {
        let name = |side| if side == self.person { "Person".to_owned() } else { format!("Atoll ({player})") };
        let tag = |name: &str, value| Tag { name: name.to_owned(), value };
        PdnGame {
            tags: vec![
                tag("Event", "Atoll".to_owned()),
                tag("Black", name(Side::Black)),
                tag("White", name(Side::White)),
            ],
            start: *self.game.start(),
            moves: self.game.moves().to_vec(),
            comments: Vec::new(),
            result: self.outcome().into(),
        }
    }
}

/// How a game ended, for the person.
fn result_text(outcome: Outcome, person: Side, resigned: bool) -> String {
    let text = match outcome {
        Outcome::Win(side) if side == person => "You win.",
        Outcome::Win(_) if resigned => "You resigned. Atoll wins.",
        Outcome::Win(_) => "Atoll wins.",
        Outcome::Draw(DrawReason::Repetition) => "Draw (repetition).",
        Outcome::Draw(DrawReason::NoProgress) => "Draw (no progress).",
        Outcome::Draw(DrawReason::TooLong) => "Draw (move limit).",
        Outcome::Draw(DrawReason::Adjudicated) => "Draw: neither side can win.",
    };
    text.to_owned()
}

/// What a player thought, in brackets: value, plies, the line, and the votes of those who decide together.
fn remarks(thought: &Thought) -> String {
    let mut remarks = Vec::new();
    if let Some(score) = thought.score {
        remarks.push(format!("value {score}"));
    }
    if thought.depth > 0 {
        remarks.push(plies(thought.depth));
    }
    if thought.line.len() > 1 {
        let line: Vec<String> = thought.line[1..].iter().take(4).map(ToString::to_string).collect();
        remarks.push(format!("then {}", line.join(" ")));
    }
    if !thought.votes.is_empty() {
        let votes: Vec<String> =
            thought.votes.iter().map(|(mv, count)| format!("{count} for {mv}")).collect();
        remarks.push(format!("votes: {}", votes.join(", ")));
    }
    if remarks.is_empty() { ".".to_owned() } else { format!(" ({}).", remarks.join("; ")) }
}

/// Adds a game to a file.
fn save(path: &Path, game: &PdnGame) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    writeln!(file, "{game}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_run_for_their_own_side_and_last_for_a_game() {
        for text in ["5", "0.01", "3+2"] {
            let (time, increment) = parse_clock(text).expect("a clock");
            let mut clocks = Clocks { left: [time; 2], increment };
            for number in 0..300 {
                let (share, left) = (clocks.share(Side::Black), clocks.left[Side::Black as usize]);
                assert!(share <= left.mul_f64(0.8), "{text}, move {number}: {share:?} of {left:?}");
                assert!(clocks.spend(Side::Black, share));
                assert_eq!(clocks.left[Side::Black as usize], left.saturating_sub(share) + increment);
            }
            assert_eq!(clocks.left[Side::White as usize], time, "the other clock stands");
        }
        for bad in ["0", "-1", "5+", "x", "99999", "3+-2"] {
            assert!(parse_clock(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_move_that_takes_longer_than_what_is_left_loses_on_time() {
        let (time, increment) = (Duration::from_secs(2), Duration::from_secs(1));
        let mut clocks = Clocks { left: [time; 2], increment };
        assert!(clocks.spend(Side::White, time), "the whole time may be used");
        assert_eq!(clocks.left[Side::White as usize], increment);
        assert!(!clocks.spend(Side::White, increment + Duration::from_nanos(1)));
        assert_eq!(clocks.left[Side::White as usize], Duration::ZERO, "and no increment comes after that");
    }

    /// A person who takes a while for each line.
    struct Slow<'a>(&'a [u8]);

    const WHILE: Duration = Duration::from_millis(20);

    impl io::Read for Slow<'_> {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let mut line = self.fill_buf()?;
            let count = io::Read::read(&mut line, bytes)?;
            self.consume(count);
            Ok(count)
        }
    }

    impl BufRead for Slow<'_> {
        fn fill_buf(&mut self) -> io::Result<&[u8]> {
            std::thread::sleep(WHILE);
            let end = self.0.iter().position(|byte| *byte == b'\n').map_or(self.0.len(), |end| end + 1);
            Ok(&self.0[..end])
        }

        fn consume(&mut self, count: usize) {
            self.0 = &self.0[count..];
        }
    }

    #[test]
    fn a_clock_runs_while_a_person_asks_and_bounds_hints() {
        let time = Duration::from_mins(1);
        let mut player = PlayerSpec::Material { depth: 8 }.build();
        player.new_game(1);
        let mut table = Table {
            game: Game::from_position(Position::START, DrawRules::default()),
            player: &mut *player,
            limits: Limits::depth(MAX_DEPTH),
            clocks: Some(Clocks { left: [Duration::from_secs(3), time], increment: Duration::ZERO }),
            person: Side::Black,
            board: Board { bottom: Side::Black, colours: false },
            resigned: false,
            late: None,
        };
        let mut output = vec![];
        table.play(&mut Slow(b"moves\nhelp\nhint\nnonsense\n11-15\nquit\n"), &mut output).unwrap();
        let output = String::from_utf8(output).unwrap();
        assert!(output.contains("Atoll would play "), "{output}");
        let [black, white] = table.clocks.as_ref().unwrap().left;
        let spent = Duration::from_secs(3).saturating_sub(black);
        assert!(spent >= 5 * WHILE, "{spent:?} for five lines and a hint");
        assert!(white < time, "the player has moved");
    }
}
