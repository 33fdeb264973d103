//! `atoll analyse`: what a player makes of recorded games.

use crate::failure::Failure;
use crate::player::PlayerArguments;
use crate::terminal::out;
use checkers::{Comment, DrawRules, Game, Limits, MAX_DEPTH, Move, PdnGame, Player, Score, read_pdn};
use experiment::document::explain;
use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A file of games as PDN
    file: PathBuf,
    #[command(flatten)]
    player: PlayerArguments,
    /// Milliseconds for each position, instead of a depth
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    milliseconds: Option<u64>,
    /// Number of better moves to show
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=20))]
    lines: u8,
    /// Comment moves that lose more than this, in men
    #[arg(long, value_name = "MEN", default_value_t = 0.3)]
    loss: f64,
}

/// Bytes that a file of games may have.
const LONGEST_FILE: u64 = 64 << 20;

pub(crate) async fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let path = arguments.file.display();
    let refused = |error: &dyn std::fmt::Display| Failure::Config(format!("{path}: {error}"));
    let file = std::fs::File::open(&arguments.file)
        .map_err(|error| Failure::Config(explain(&arguments.file, error)))?;
    // A device says that it has no bytes, and never ends.
    let mut bytes = vec![];
    file.take(LONGEST_FILE + 1).read_to_end(&mut bytes).map_err(|error| refused(&error))?;
    if bytes.len() as u64 > LONGEST_FILE {
        return Err(refused(&format!("expected at most {LONGEST_FILE} bytes, found more")));
    }
    let text = String::from_utf8(bytes).map_err(|_| refused(&"expected text (UTF-8), found other bytes"))?;
    let games = read_pdn(&text).map_err(|error| refused(&error))?;
    let limits = Limits {
        time: arguments.milliseconds.map(Duration::from_millis),
        lines: usize::from(arguments.lines),
        ..Limits::depth(if arguments.milliseconds.is_some() { MAX_DEPTH } else { arguments.player.depth })
    };
    let mut player = arguments.player.load(limits).await?.build();
    for mut game in games {
        player.new_game(0);
        annotate(&mut game, &mut *player, &limits, arguments.loss);
        out!("{game}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds remarks: what each position is worth, and what would have been better.
fn annotate(record: &mut PdnGame, player: &mut dyn Player, limits: &Limits, loss: f64) {
    let rules = DrawRules { repetitions: None, quiet_plies: None, max_plies: u32::MAX, adjudicate: 0 };
    let mut game = Game::from_position(record.start, rules);
    let man = f64::from(player.man().unwrap_or(1.0));
    for (ply, mv) in record.moves.iter().enumerate() {
        let thought = player.think(&game, limits);
        let mut remark = None;
        if let Some(thought) = thought {
            let best = thought.score.map_or(0.0, |score| in_men(score, man));
            let played =
                if thought.best == *mv { Some(best) } else { after(&game, *mv, player, limits, man) };
            if let Some(played) = played.filter(|played| best - played > loss) {
                let lines: Vec<String> = if thought.lines.is_empty() {
                    vec![line_text(best, &thought.line)]
                } else {
                    thought.lines.iter().map(|line| line_text(in_men(line.score, man), &line.moves)).collect()
                };
                remark = Some(format!("{played:+.2}; better {}", lines.join(", ")));
            }
        }
        if game.play(*mv).is_err() {
            return;
        }
        if let Some(text) = remark {
            let place = record.comments.iter().position(|other| other.after > ply + 1);
            let place = place.unwrap_or(record.comments.len());
            record.comments.insert(place, Comment { after: ply + 1, text });
        }
    }
}

/// What a move is worth to the side that plays it, in men.
fn after(game: &Game, mv: Move, player: &mut dyn Player, limits: &Limits, man: f64) -> Option<f64> {
    let mut next = game.clone();
    next.play(mv).ok()?;
    if next.outcome().is_some() {
        return Some(100.0);
    }
    let shallower = Limits { depth: limits.depth.saturating_sub(1).max(1), lines: 1, ..*limits };
    player.think(&next, &shallower)?.score.map(|score| -in_men(score, man))
}

fn in_men(score: Score, man: f64) -> f64 {
    match (score.win_in(), score.lost_in()) {
        (Some(plies), _) => 100.0 - f64::from(plies) / 100.0,
        (_, Some(plies)) => f64::from(plies) / 100.0 - 100.0,
        _ => f64::from(score.value()) / man,
    }
}

fn line_text(score: f64, moves: &[Move]) -> String {
    let moves: Vec<String> = moves.iter().take(8).map(ToString::to_string).collect();
    format!("{score:+.2} {}", moves.join(" "))
}
