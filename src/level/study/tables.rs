//! The tables of a study: ranks of difficulty beside E, scores beside the simulated player's, and the order of play.

use super::log::{Board, Level, Log, Order, Ranking};
use match3::{Game, Play, Player, Rating, Tally};
use serde_json::{Value, json};
use std::fmt::Write;

/// The seed of the simulated player's plays.
const SEED: u64 = 2;
/// The normal quantile of a two-sided 95 % interval.
const QUANTILE_95: f64 = 1.959_963_984_540_054;

/// What the sessions of one set of levels show.
pub(super) struct Study {
    groups: Vec<RankedGroup>,
    mazes: Vec<Maze>,
    stages: Vec<Stage>,
}

/// A group of mazes that people ranked.
struct RankedGroup {
    name: String,
    levels: Vec<String>,
    /// Nodes that A* visits.
    difficulty: Vec<u32>,
    /// Ranks by E; equal difficulties share their mean rank.
    by_difficulty: Vec<f64>,
    /// Who ranked how.
    ranks: Vec<(String, Vec<u32>)>,
    agreement: Option<Agreement>,
}

/// How far people agree with E.
struct Agreement {
    people: usize,
    /// People whose order is that of E.
    same: usize,
    /// Kendall's tau between a person's ranks and E, in the mean, with its 95 % interval.
    tau: f64,
    interval: (f64, f64),
}

/// How a maze was walked.
struct Maze {
    name: String,
    difficulty: u32,
    games: usize,
    solved: usize,
    steps: f64,
    visited: f64,
    seconds: f64,
}

/// A Match-3 board.
struct Stage {
    name: String,
    people: Rating,
    simulated: Rating,
    /// Games and their mean score, of those who played upwards and downwards.
    by_order: [(usize, f64); 2],
}

impl Study {
    pub(super) fn of(logs: &[Log], plays: u32) -> Result<Self, String> {
        let levels = shared_levels(logs)?;
        let mut study = Self { groups: vec![], mazes: vec![], stages: vec![] };
        let mut groups: Vec<&str> = vec![];
        for level in levels {
            if !groups.contains(&level.group.as_str()) {
                groups.push(&level.group);
            }
        }
        study.groups.extend(groups.into_iter().filter_map(|group| RankedGroup::of(group, levels, logs)));
        for (index, level) in levels.iter().enumerate() {
            match &level.board {
                Board::LockKey(maze) => study.mazes.push(Maze::of(index, level, maze, logs)),
                Board::Match3(board) => study.stages.extend(Stage::of(index, level, board, logs, plays)?),
            }
        }
        Ok(study)
    }

    pub(super) fn markdown(&self) -> String {
        let mut text = String::new();
        if !self.groups.is_empty() {
            text.push_str("\n## Ranks of difficulty\n\n1 is the easiest level. E is the number of nodes that A* visits.\n");
            self.groups.iter().for_each(|group| text.push_str(&group.markdown()));
        }
        if self.mazes.iter().any(|maze| maze.games > 0) {
            text.push_str(
                "\n## Mazes as they were walked\n\nMeans of all games.\n\n\
                 | level | E | games | solved | steps | cells visited | seconds |\n|---|---|---|---|---|---|---|\n",
            );
            for Maze { name, difficulty, games, solved, steps, visited, seconds } in &self.mazes {
                put(
                    &mut text,
                    &format!(
                        "| {name} | {difficulty} | {games} | {solved} | {steps:.1} | {visited:.1} | {seconds:.1} |\n"
                    ),
                );
            }
        }
        if !self.stages.is_empty() {
            text.push_str(
                "\n## Scores\n\nProbability: the normal estimate of reaching the pass score, with its standard error. \
                 Passed: the share of games, with its 95 % interval.\n\n\
                 | stage | player | games | average | deviation | probability | passed |\n|---|---|---|---|---|---|---|\n",
            );
            for stage in &self.stages {
                put(&mut text, &scores_row(&stage.name, "sessions", &stage.people));
                put(&mut text, &scores_row(&stage.name, "simulated", &stage.simulated));
            }
            text.push_str("\n## Average score by the order of stages\n\n| order |");
            self.stages.iter().for_each(|stage| put(&mut text, &format!(" {} |", stage.name)));
            put(&mut text, &format!("\n|---|{}\n", "---|".repeat(self.stages.len())));
            for (index, name) in ["first to last", "last to first"].into_iter().enumerate() {
                put(&mut text, &format!("| {name} |"));
                for (games, mean) in self.stages.iter().map(|stage| stage.by_order[index]) {
                    let cell =
                        if games == 0 { "–".to_owned() } else { format!("{mean:.2} ({games} games)") };
                    put(&mut text, &format!(" {cell} |"));
                }
                text.push('\n');
            }
        }
        text
    }

    pub(super) fn json(&self) -> Value {
        let groups = self.groups.iter().map(|group| {
            let ranks = group.ranks.iter().map(|(code, ranks)| json!({ "code": code, "ranks": ranks }));
            json!({
                "group": group.name, "levels": group.levels, "difficulty": group.difficulty,
                "ranks_by_difficulty": group.by_difficulty, "ranks": ranks.collect::<Vec<_>>(),
                "agreement": group.agreement.as_ref().map(|found| json!({
                    "people": found.people, "same_order": found.same, "tau": found.tau,
                    "interval": [found.interval.0, found.interval.1],
                })),
            })
        });
        let mazes = self.mazes.iter().map(|maze| {
            json!({
                "level": maze.name, "difficulty": maze.difficulty, "games": maze.games, "solved": maze.solved,
                "steps": maze.steps, "visited": maze.visited, "seconds": maze.seconds,
            })
        });
        let stages = self.stages.iter().map(|stage| {
            let order = stage.by_order.map(|(games, mean)| json!({ "games": games, "mean": mean }));
            json!({
                "stage": stage.name, "sessions": stage.people, "simulated": stage.simulated,
                "first_to_last": order[0], "last_to_first": order[1],
            })
        });
        json!({
            "groups": groups.collect::<Vec<_>>(), "mazes": mazes.collect::<Vec<_>>(),
            "stages": stages.collect::<Vec<_>>(),
        })
    }
}

/// The levels that all sessions played.
fn shared_levels(logs: &[Log]) -> Result<&[Level], String> {
    let Some(first) = logs.first() else { return Err("expected at least one log, found none".to_owned()) };
    match logs.iter().find(|log| log.levels != first.levels) {
        None => Ok(&first.levels),
        Some(other) => Err(format!(
            "expected sessions of the same levels, found others in `{}` than in `{}`",
            other.code, first.code
        )),
    }
}

impl RankedGroup {
    fn of(group: &str, levels: &[Level], logs: &[Log]) -> Option<Self> {
        let members: Vec<&Level> = levels.iter().filter(|level| level.group == group).collect();
        let difficulty: Option<Vec<u32>> = members.iter().map(|level| difficulty(level)).collect();
        let difficulty = difficulty?;
        let ranks: Vec<(String, Vec<u32>)> = logs
            .iter()
            .flat_map(|log| log.rankings.iter().map(move |ranking| (&log.code, ranking)))
            .filter(|(_, ranking)| ranking.group == group)
            .map(|(code, Ranking { ranks, .. })| (code.clone(), ranks.clone()))
            .collect();
        if ranks.is_empty() {
            return None;
        }
        let by_difficulty = ranks_of(&difficulty);
        let agreement = Agreement::of(&difficulty, ranks.iter().map(|(_, ranks)| ranks.as_slice()));
        let levels = members.iter().map(|level| level.name.clone()).collect();
        Some(Self { name: group.to_owned(), levels, difficulty, by_difficulty, ranks, agreement })
    }

    fn markdown(&self) -> String {
        let row = |name: &str, cells: Vec<String>| format!("| {name} | {} |\n", cells.join(" | "));
        let mut text = format!("\n### {}\n\n", self.name);
        text += &row("", self.levels.clone());
        put(&mut text, &format!("|---|{}\n", "---|".repeat(self.levels.len())));
        text += &row("E", self.difficulty.iter().map(u32::to_string).collect());
        text += &row("rank by E", self.by_difficulty.iter().map(f64::to_string).collect());
        for (code, ranks) in &self.ranks {
            text += &row(code, ranks.iter().map(u32::to_string).collect());
        }
        if let Some(Agreement { people, same, tau, interval: (low, high) }) = &self.agreement {
            put(
                &mut text,
                &format!(
                    "\n{same} of {people} sessions have the order of E. Kendall's tau with E: {tau:.2} \
                 (95 % interval {low:.2} to {high:.2}).\n"
                ),
            );
        }
        text
    }
}

impl Agreement {
    /// Nothing, where E orders nothing.
    fn of<'a>(difficulty: &[u32], rankings: impl Iterator<Item = &'a [u32]>) -> Option<Self> {
        let taus: Vec<f64> = rankings.map(|ranks| tau(difficulty, ranks)).collect::<Option<_>>()?;
        let people = taus.len();
        let tau = taus.iter().sum::<f64>() / people as f64;
        // A tau is a share of pairs, moved to -1 to 1. The pairs of one person hang together: a person counts once,
        // which makes the interval rather too wide than too narrow, and never a point.
        let (low, high) = wilson(f64::midpoint(tau, 1.0), people as f64);
        let same = taus.iter().filter(|&&tau| tau == 1.0).count();
        Some(Self { people, same, tau, interval: (2.0 * low - 1.0, 2.0 * high - 1.0) })
    }
}

/// Kendall's tau between difficulties and ranks: of all pairs of levels whose difficulties differ, the share that is
/// ranked alike less the share that is ranked the other way.
fn tau(difficulty: &[u32], ranks: &[u32]) -> Option<f64> {
    let (mut alike, mut pairs) = (0_i64, 0_i64);
    for one in 0..difficulty.len() {
        for other in one + 1..difficulty.len() {
            if difficulty[one] != difficulty[other] {
                pairs += 1;
                let is_alike = (difficulty[one] < difficulty[other]) == (ranks[one] < ranks[other]);
                alike += if is_alike { 1 } else { -1 };
            }
        }
    }
    (pairs > 0).then(|| alike as f64 / pairs as f64)
}

fn ranks_of(values: &[u32]) -> Vec<f64> {
    let rank = |&value: &u32| {
        let below = values.iter().filter(|&&other| other < value).count() as f64;
        let equal = values.iter().filter(|&&other| other == value).count() as f64;
        below + f64::midpoint(equal, 1.0)
    };
    values.iter().map(rank).collect()
}

fn difficulty(level: &Level) -> Option<u32> {
    match &level.board {
        Board::LockKey(level) => level.difficulty().ok().map(|figures| figures.plain),
        Board::Match3(_) => None,
    }
}

fn wilson(share: f64, n: f64) -> (f64, f64) {
    let z2 = QUANTILE_95 * QUANTILE_95;
    let centre = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = QUANTILE_95 / (1.0 + z2 / n) * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    ((centre - half).max(0.0), (centre + half).min(1.0))
}

impl Maze {
    fn of(index: usize, level: &Level, maze: &lockkey::Level, logs: &[Log]) -> Self {
        let games: Vec<_> =
            logs.iter().flat_map(|log| &log.games).filter(|game| game.level == index).collect();
        let mean = |value: &dyn Fn(&super::log::Played) -> f64| {
            games.iter().map(|game| value(game)).sum::<f64>() / games.len().max(1) as f64
        };
        Self {
            name: level.name.clone(),
            difficulty: maze.difficulty().map_or(0, |figures| figures.plain),
            games: games.len(),
            solved: games.iter().filter(|game| game.passed).count(),
            steps: mean(&|game| game.moves as f64),
            visited: mean(&|game| game.visited.unwrap_or(0) as f64),
            seconds: mean(&|game| game.milliseconds as f64 / 1000.0),
        }
    }
}

impl Stage {
    /// Nothing, where nobody played it.
    fn of(
        index: usize,
        level: &Level,
        board: &match3::Level,
        logs: &[Log],
        plays: u32,
    ) -> Result<Option<Self>, String> {
        let mut tally = Tally::new(board.rules.pass);
        let mut by_order = [(0, 0.0); 2];
        for log in logs {
            for score in log.games.iter().filter(|game| game.level == index).filter_map(|game| game.score) {
                tally.add(&Play { score, ..Play::default() });
                let (games, sum): &mut (usize, f64) = match log.order {
                    Order::Up => &mut by_order[0],
                    Order::Down => &mut by_order[1],
                    Order::Shuffled => continue,
                };
                *games += 1;
                *sum += score;
            }
        }
        let people = tally.rating();
        if people.plays == 0 {
            return Ok(None);
        }
        let game = Game::new(&board.rules).map_err(|error| error.to_string())?;
        let simulated =
            game.rate(&board.board, Player::Random, SEED, plays).map_err(|error| error.to_string())?;
        let by_order = by_order.map(|(games, sum): (usize, f64)| (games, sum / games.max(1) as f64));
        Ok(Some(Self { name: level.name.clone(), people, simulated, by_order }))
    }
}

fn scores_row(stage: &str, player: &str, rating: &Rating) -> String {
    let Rating { plays, mean, deviation, estimate, error, passed, interval: (low, high), .. } = *rating;
    let percent = |share: f64| 100.0 * share;
    format!(
        "| {stage} | {player} | {plays} | {mean:.2} | {deviation:.2} | {:.1} ± {:.1} % | {:.1} % ({:.1} to {:.1}) |\n",
        percent(estimate),
        percent(error),
        percent(passed),
        percent(low),
        percent(high)
    )
}

fn put(text: &mut String, more: &str) {
    // Writing into a string cannot fail.
    let _ = text.write_str(more);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published Table 2: the nodes of both groups, and the ranks that seven people gave.
    const G1: [u32; 3] = [53, 46, 101];
    const G2: [u32; 3] = [124, 112, 101];
    const RANKS: [([u32; 3], [u32; 3]); 7] = [
        ([2, 1, 3], [3, 2, 1]),
        ([2, 1, 3], [3, 1, 2]),
        ([3, 1, 2], [3, 2, 1]),
        ([2, 1, 3], [3, 2, 1]),
        ([2, 1, 3], [3, 2, 1]),
        ([2, 1, 3], [3, 2, 1]),
        ([2, 1, 3], [3, 2, 1]),
    ];

    #[test]
    fn six_of_seven_agreed_in_each_published_group() {
        assert_eq!((ranks_of(&G1), ranks_of(&G2)), (vec![2.0, 1.0, 3.0], vec![3.0, 2.0, 1.0]));
        assert_eq!(ranks_of(&[5, 5, 1]), [2.5, 2.5, 1.0]);
        for (difficulty, ranks) in [(G1, RANKS.map(|both| both.0)), (G2, RANKS.map(|both| both.1))] {
            let found = Agreement::of(&difficulty, ranks.iter().map(|ranks| &ranks[..])).unwrap();
            assert_eq!((found.people, found.same), (7, 6));
            // Six agree in all three pairs, one in two of three: (6 + 1/3) / 7.
            assert!((found.tau - 19.0 / 21.0).abs() < 1e-12, "{}", found.tau);
            // Wilson's interval of a share of 40/42 among 7: 0.5877 to 0.9964.
            let (low, high) = found.interval;
            assert!((low - 0.175_457).abs() < 1e-6 && (high - 0.992_897).abs() < 1e-6, "{low} {high}");
        }
        assert_eq!(tau(&[1, 2, 3], &[3, 2, 1]), Some(-1.0));
        assert_eq!(tau(&[7, 7], &[1, 2]), None);
    }
}
