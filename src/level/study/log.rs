//! A log of plays, read and replayed.

use lockkey::{Direction, Fixture};
use match3::{Game, Move, Stream};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

/// What the `format` key of a log says.
const FORMAT: &str = "atoll.play/1";
/// Logs larger than this are none.
const LARGEST: u64 = 16 << 20;
/// The most levels, games and moves of a log.
const MOST_LEVELS: usize = 1_000;
const MOST_GAMES: usize = 10_000;
const MOST_MOVES: usize = 100_000;
/// Scores are saved with six digits behind the point.
const ROUNDING: f64 = 1e-5;

/// A log as it stands in its file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    format: String,
    code: String,
    simulated: bool,
    settings: Settings,
    levels: Vec<WrittenLevel>,
    plays: Vec<WrittenPlay>,
    #[serde(default)]
    rankings: Vec<Ranking>,
    /// Whether all games were played and all groups ranked; logs of older pages do not say.
    #[serde(default)]
    finished: Option<bool>,
    /// How often the session was resumed after an interruption.
    #[serde(default)]
    resumed: u32,
}

#[derive(Deserialize)]
struct Settings {
    order: Order,
    /// The others: what people saw, and how many games they played.
    #[serde(flatten)]
    others: BTreeMap<String, serde_json::Value>,
}

/// In which order the levels were played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Order {
    /// From the first to the last.
    Up,
    /// From the last to the first.
    Down,
    /// At random.
    Shuffled,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLevel {
    name: String,
    group: String,
    level: serde_json::Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPlay {
    level: usize,
    moves: Moves,
    times: Vec<u64>,
    done: bool,
    score: Option<f64>,
    visited: Option<usize>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Moves {
    /// Letters of directions.
    Steps(String),
    /// Blocks and where they go.
    Swaps(Vec<(u8, u8, match3::Direction)>),
}

/// The ranks that a person gave to the levels of a group, 1 for the easiest.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ranking {
    pub(super) group: String,
    pub(super) ranks: Vec<u32>,
}

/// A level that was played.
#[derive(PartialEq)]
pub(super) struct Level {
    pub(super) name: String,
    pub(super) group: String,
    pub(super) board: Board,
}

#[derive(PartialEq)]
pub(super) enum Board {
    LockKey(lockkey::Level),
    Match3(match3::Level),
}

/// A game as its replay shows it.
pub(super) struct Played {
    /// The number of its level.
    pub(super) level: usize,
    pub(super) moves: usize,
    /// Milliseconds up to the last move.
    pub(super) milliseconds: u64,
    /// Whether the exit was reached, or the pass score.
    pub(super) passed: bool,
    /// Of a Match-3 board.
    pub(super) score: Option<f64>,
    /// Cells of a maze that were entered.
    pub(super) visited: Option<usize>,
}

/// A session that was replayed.
pub(super) struct Log {
    pub(super) code: String,
    pub(super) simulated: bool,
    pub(super) order: Order,
    pub(super) levels: Vec<Level>,
    pub(super) games: Vec<Played>,
    pub(super) rankings: Vec<Ranking>,
    /// Whether games or ranks are missing.
    pub(super) is_unfinished: bool,
    /// Whether it was interrupted: the game in which that happened was started again.
    pub(super) is_resumed: bool,
    /// The settings beside the order, by name.
    pub(super) settings: BTreeMap<String, serde_json::Value>,
}

impl Log {
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
        let mut text = String::new();
        file.take(LARGEST + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
        if text.len() as u64 > LARGEST {
            return Err(format!("expected a log of at most {LARGEST} bytes, found more"));
        }
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let log: Written =
            serde_json::from_str(text).map_err(|error| format!("expected a log of plays: {error}"))?;
        if log.format != FORMAT {
            return Err(format!("expected the format `{FORMAT}`, found `{}`", log.format));
        }
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        if !(1..=32).contains(&log.code.len()) || !log.code.chars().all(is_letter) {
            return Err("expected a code of 1 to 32 letters, digits and hyphens, found another".to_owned());
        }
        if log.levels.len() > MOST_LEVELS || log.plays.len() > MOST_GAMES {
            return Err(format!("expected at most {MOST_LEVELS} levels and {MOST_GAMES} games, found more"));
        }
        let levels: Result<Vec<Level>, String> = log.levels.into_iter().map(Level::parse).collect();
        let levels = levels?;
        let games: Result<Vec<Played>, String> = log
            .plays
            .iter()
            .enumerate()
            .map(|(number, play)| {
                replay(&levels, play).map_err(|reason| format!("game {}: {reason}", number + 1))
            })
            .collect();
        let log = Self {
            code: log.code,
            simulated: log.simulated,
            order: log.settings.order,
            games: games?,
            levels,
            rankings: log.rankings,
            is_unfinished: log.finished == Some(false),
            is_resumed: log.resumed > 0,
            settings: log.settings.others.into_iter().filter(|(name, _)| name != "sequence").collect(),
        };
        log.check_rankings()?;
        Ok(log)
    }

    fn check_rankings(&self) -> Result<(), String> {
        let mut groups = BTreeSet::new();
        for Ranking { group, ranks } in &self.rankings {
            let members = self.levels.iter().filter(|level| level.group == *group).count();
            let mut sorted = ranks.clone();
            sorted.sort_unstable();
            let is_whole = sorted.iter().enumerate().all(|(index, &rank)| rank as usize == index + 1);
            if members == 0 || ranks.len() != members || !is_whole || !groups.insert(group) {
                return Err(format!(
                    "expected one ranking from 1 to {members} of the levels of `{group}`, found {ranks:?}"
                ));
            }
        }
        Ok(())
    }
}

impl Level {
    fn parse(written: WrittenLevel) -> Result<Self, String> {
        let WrittenLevel { name, group, level } = written;
        let board = match super::super::Level::parse(&level.to_string()) {
            Ok(super::super::Level::LockKey(level)) => {
                level.validate().map_err(|fault| format!("level `{name}`: {fault}"))?;
                Board::LockKey(level)
            }
            Ok(super::super::Level::Match3(level)) if level.rules.refill => {
                return Err(format!(
                    "level `{name}`: expected a board without refill, whose games can be replayed"
                ));
            }
            Ok(super::super::Level::Match3(level)) => Board::Match3(level),
            Err(error) => return Err(format!("level `{name}`: {error}")),
        };
        Ok(Self { name, group, board })
    }
}

fn replay(levels: &[Level], play: &WrittenPlay) -> Result<Played, String> {
    let level = levels.get(play.level).ok_or_else(|| {
        format!("expected the number of a level below {}, found `{}`", levels.len(), play.level)
    })?;
    let moves = match &play.moves {
        Moves::Steps(steps) => steps.len(),
        Moves::Swaps(swaps) => swaps.len(),
    };
    if moves > MOST_MOVES || play.times.len() != moves || !play.times.is_sorted() {
        return Err(format!("expected {moves} rising times, one for each of at most {MOST_MOVES} moves"));
    }
    let milliseconds = play.times.last().copied().unwrap_or(0);
    let empty = Moves::Swaps(vec![]);
    let (passed, score, visited) = match (&level.board, &play.moves) {
        (Board::LockKey(level), Moves::Steps(steps)) => {
            let (passed, visited) = walk(level, steps)?;
            (passed, None, Some(visited))
        }
        // No moves at all are written as text.
        (Board::Match3(level), Moves::Steps(steps)) if steps.is_empty() => {
            let (passed, score) = swap(level, &empty)?;
            (passed, Some(score), None)
        }
        (Board::Match3(level), swaps @ Moves::Swaps(_)) => {
            let (passed, score) = swap(level, swaps)?;
            (passed, Some(score), None)
        }
        _ => return Err("expected moves of the game that its level belongs to, found others".to_owned()),
    };
    if passed != play.done || visited != play.visited {
        return Err("expected what the replay shows, found another end or other visits".to_owned());
    }
    match (score, play.score) {
        (None, None) => {}
        (Some(score), Some(claimed)) if (score - claimed).abs() <= ROUNDING * score.abs().max(1.0) => {}
        (Some(score), claimed) => {
            return Err(format!("expected the replayed score {score:.6}, found {claimed:?}"));
        }
        (None, Some(claimed)) => return Err(format!("expected no score of a maze, found `{claimed}`")),
    }
    Ok(Played { level: play.level, moves, milliseconds, passed, score, visited })
}

/// Walks through a maze: whether the exit was reached, and how many cells were entered.
fn walk(level: &lockkey::Level, steps: &str) -> Result<(bool, usize), String> {
    let mut cell = level.entry();
    let mut visited = BTreeSet::from([cell]);
    let mut keys: Vec<Fixture> = level.keys().to_vec();
    let mut locks: Vec<Fixture> = level.locks().to_vec();
    let mut hand = vec![];
    for (number, letter) in steps.chars().enumerate() {
        let blocked = || format!("expected a possible step, found `{letter}` as number {}", number + 1);
        let way = match letter {
            'U' => Direction::North,
            'D' => Direction::South,
            'L' => Direction::West,
            'R' => Direction::East,
            _ => return Err(blocked()),
        };
        if cell == level.exit() || !level.grid().is_open(cell, way) {
            return Err(blocked());
        }
        cell = level.grid().neighbour(cell, way).ok_or_else(blocked)?;
        if let Some(at) = locks.iter().position(|lock| lock.cell == cell) {
            let key = hand.iter().position(|&colour| colour == locks[at].colour).ok_or_else(blocked)?;
            hand.swap_remove(key);
            locks.swap_remove(at);
        }
        if let Some(at) = keys.iter().position(|key| key.cell == cell) {
            hand.push(keys.swap_remove(at).colour);
        }
        visited.insert(cell);
    }
    Ok((cell == level.exit(), visited.len()))
}

/// Plays a board: whether the pass score was reached, and the score.
fn swap(level: &match3::Level, moves: &Moves) -> Result<(bool, f64), String> {
    let game = Game::new(&level.rules).map_err(|error| error.to_string())?;
    let mut supply = Stream::new(0);
    let (mut board, mut score) = game.start(&level.board, &mut supply).map_err(|error| error.to_string())?;
    let Moves::Swaps(swaps) = moves else { return Err("expected moves of blocks".to_owned()) };
    if swaps.len() > level.rules.moves as usize {
        return Err(format!("expected at most {} moves, found `{}`", level.rules.moves, swaps.len()));
    }
    for &(x, y, direction) in swaps {
        let outcome = game.play(&mut board, Move { x, y, direction }, &mut supply);
        score += outcome.map_err(|error| error.to_string())?.score;
    }
    Ok((score >= level.rules.pass, score))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = r########"{"format":"atoll.play/1","code":"AB","simulated":true,"settings":{"order":"up"},
        "levels":[{"name":"m","group":"g","level":{"format":"atoll.lock-key/1",
        "rows":["#######","#<.A.>#","#.#####","#....a#","#######"]}}],
        "plays":[{"level":0,"moves":"DRRLLURR","times":[1,2,3,4,5,6,7,8],"done":true,"visited":6}]}"########;

    #[test]
    fn a_game_is_replayed_and_nothing_else_is_believed() {
        let log = Log::parse(LOG).unwrap();
        assert_eq!((log.games[0].moves, log.games[0].visited, log.games[0].milliseconds), (8, Some(6), 8));
        let refused = |from: &str, to: &str, reason: &str| {
            let error = Log::parse(&LOG.replace(from, to)).map(|_| ()).unwrap_err();
            assert!(error.contains(reason), "{error}");
        };
        refused("DRRLLURR", "RRRRRRRR", "expected a possible step, found `R` as number 1");
        refused("\"visited\":6", "\"visited\":5", "found another end or other visits");
        refused("\"done\":true", "\"done\":false", "found another end or other visits");
        refused("5,6,7,8]", "5,6,7,1]", "expected 8 rising times");
        refused("\"level\":0", "\"level\":1", "expected the number of a level below 1, found `1`");
        refused("atoll.play/1", "atoll.play/2", "expected the format `atoll.play/1`");
        refused("\"AB\"", "\"Jane Doe\"", "expected a code of 1 to 32 letters");
        refused(
            "\"visited\":6}]",
            "\"visited\":6}],\"rankings\":[{\"group\":\"g\",\"ranks\":[2]}]",
            "from 1 to 1",
        );
        refused("\"visited\":6", "\"visited\":6,\"name\":\"x\"", "unknown field `name`");
    }
}
