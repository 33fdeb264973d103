//! The tables of a study: ranks of difficulty beside E, scores beside the simulated player's, and the order of play.

use super::log::{Board, Level, Log, Order, Ranking};
use lockkey::{AStar, Method};
use match3::{Game, Play, Player, Rating, Tally};
use serde_json::{Value, json};
use std::fmt::Write;

/// The seed of the simulated player's plays.
const SEED: u64 = 2;
/// The normal quantile of a two-sided 95 % interval.
const QUANTILE_95: f64 = 1.959_963_984_540_054;

/// How E is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Measure {
    /// How A* chooses the next node.
    pub(super) astar: AStar,
    /// Which nodes count.
    pub(super) count: Method,
}

impl Measure {
    /// The difficulty E of a maze; nothing for what is no maze, or has no way out.
    fn of(self, level: &Level) -> Option<u32> {
        match &level.board {
            Board::LockKey(level) => self.of_maze(level),
            Board::Match3(_) => None,
        }
    }

    fn of_maze(self, level: &lockkey::Level) -> Option<u32> {
        let figures = level.difficulty_by(self.astar).ok()?;
        Some(match self.count {
            Method::Plain => figures.plain,
            Method::Optimised => figures.optimised,
        })
    }

    fn json(self) -> Value {
        json!({ "count": self.count, "heuristic": self.astar.heuristic, "ties": self.astar.ties })
    }

    /// What E is, in a sentence.
    fn sentence(self) -> String {
        let word = |name: &str| self.json()[name].as_str().unwrap_or_default().to_owned();
        format!(
            "E is the number of nodes that A* visits (count {}, heuristic {}, ties {}).",
            word("count"),
            word("heuristic"),
            word("ties")
        )
    }
}

/// What the sessions of one set of levels show.
pub(super) struct Study {
    measure: Measure,
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
    /// Sessions that played it, and their games; games of one person are not independent, which its errors allow for.
    sessions: usize,
    people: Rating,
    simulated: Rating,
    /// Games and their mean score, of those who played upwards and downwards.
    by_order: [(usize, f64); 2],
}

impl Study {
    pub(super) fn of(logs: &[Log], plays: u32, measure: Measure) -> Result<Self, String> {
        let levels = shared_levels(logs)?;
        let mut study = Self { measure, groups: vec![], mazes: vec![], stages: vec![] };
        let mut groups: Vec<&str> = vec![];
        for level in levels {
            if !groups.contains(&level.group.as_str()) {
                groups.push(&level.group);
            }
        }
        let ranked = |group: &str| RankedGroup::of(group, levels, logs, measure);
        study.groups.extend(groups.into_iter().filter_map(ranked));
        for (index, level) in levels.iter().enumerate() {
            match &level.board {
                Board::LockKey(maze) => study.mazes.push(Maze::of(index, level, maze, logs, measure)),
                Board::Match3(board) => study.stages.extend(Stage::of(index, level, board, logs, plays)?),
            }
        }
        Ok(study)
    }

    pub(super) fn markdown(&self) -> String {
        let mut text = String::new();
        if !self.groups.is_empty() {
            text.push_str("\n## Ranks of difficulty\n\n1 is the easiest level. ");
            put(&mut text, &format!("{}\n", self.measure.sentence()));
            self.groups.iter().for_each(|group| text.push_str(&group.markdown()));
            if let Some((same, people)) = in_every_group(&self.groups) {
                put(
                    &mut text,
                    &format!("\n{same} of {people} sessions have the order of E in every group.\n"),
                );
            }
        }
        if self.mazes.iter().any(|maze| maze.games > 0) {
            text.push_str("\n## Mazes as they were walked\n\nMeans of all games. ");
            put(&mut text, &format!("{}\n\n", self.measure.sentence()));
            text.push_str(
                "| level | E | games | solved | steps | cells visited | seconds |\n|---|---|---|---|---|---|---|\n",
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
                 Passed: the share of games, with its 95 % interval. Errors of sessions are those over people, whose \
                 games are not independent.\n\n\
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
                "stage": stage.name, "people": stage.sessions, "sessions": stage.people,
                "simulated": stage.simulated,
                "first_to_last": order[0], "last_to_first": order[1],
            })
        });
        let every = in_every_group(&self.groups);
        json!({
            "measure": self.measure.json(),
            "same_order_in_every_group": every.map(|(same, people)| json!({ "people": people, "same_order": same })),
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
    fn of(group: &str, levels: &[Level], logs: &[Log], measure: Measure) -> Option<Self> {
        let members: Vec<&Level> = levels.iter().filter(|level| level.group == group).collect();
        let difficulty: Option<Vec<u32>> = members.iter().map(|level| measure.of(level)).collect();
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

/// Of the sessions that ranked every group, how many have the order of E in all of them; nothing for a single group.
fn in_every_group(groups: &[RankedGroup]) -> Option<(usize, usize)> {
    let (first, others) = groups.split_first().filter(|(_, others)| !others.is_empty())?;
    let agrees = |group: &RankedGroup, code: &str| {
        let (_, ranks) = group.ranks.iter().find(|(other, _)| other == code)?;
        Some(tau(&group.difficulty, ranks)? == 1.0)
    };
    let sessions: Vec<bool> = first
        .ranks
        .iter()
        .filter_map(|(code, _)| {
            let all: Option<Vec<bool>> =
                std::iter::once(first).chain(others).map(|group| agrees(group, code)).collect();
            all.map(|all| all.into_iter().all(|same| same))
        })
        .collect();
    Some((sessions.iter().filter(|&&same| same).count(), sessions.len()))
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

fn wilson(share: f64, n: f64) -> (f64, f64) {
    let z2 = QUANTILE_95 * QUANTILE_95;
    let centre = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = QUANTILE_95 / (1.0 + z2 / n) * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    ((centre - half).max(0.0), (centre + half).min(1.0))
}

impl Maze {
    fn of(index: usize, level: &Level, maze: &lockkey::Level, logs: &[Log], measure: Measure) -> Self {
        let games: Vec<_> =
            logs.iter().flat_map(|log| &log.games).filter(|game| game.level == index).collect();
        let mean = |value: &dyn Fn(&super::log::Played) -> f64| {
            games.iter().map(|game| value(game)).sum::<f64>() / games.len().max(1) as f64
        };
        Self {
            name: level.name.clone(),
            difficulty: measure.of_maze(maze).unwrap_or(0),
            games: games.len(),
            solved: games.iter().filter(|game| game.passed).count(),
            steps: mean(&|game| game.moves as f64),
            visited: mean(&|game| game.visited.unwrap_or(0) as f64),
            seconds: mean(&|game| game.milliseconds as f64 / 1000.0),
        }
    }
}

impl Stage {
    /// None where it was not played.
    fn of(
        index: usize,
        level: &Level,
        board: &match3::Level,
        logs: &[Log],
        plays: u32,
    ) -> Result<Option<Self>, String> {
        let mut tally = Tally::new(board.rules.pass);
        let mut by_order = [(0, 0.0); 2];
        let mut by_session: Vec<Vec<f64>> = vec![];
        for log in logs {
            let scores = log.games.iter().filter(|game| game.level == index).filter_map(|game| game.score);
            let scores: Vec<f64> = scores.collect();
            for &score in &scores {
                tally.add(&Play { score, ..Play::default() });
                let (games, sum): &mut (usize, f64) = match log.order {
                    Order::Up => &mut by_order[0],
                    Order::Down => &mut by_order[1],
                    Order::Shuffled => continue,
                };
                *games += 1;
                *sum += score;
            }
            by_session.extend(Some(scores).filter(|scores| !scores.is_empty()));
        }
        if by_session.is_empty() {
            return Ok(None);
        }
        let people = by_sessions(tally.rating(), &by_session, board.rules.pass);
        let game = Game::new(&board.rules).map_err(|error| error.to_string())?;
        let simulated =
            game.rate(&board.board, Player::Random, SEED, plays).map_err(|error| error.to_string())?;
        let by_order = by_order.map(|(games, sum): (usize, f64)| (games, sum / games.max(1) as f64));
        let sessions = by_session.len();
        Ok(Some(Self { name: level.name.clone(), sessions, people, simulated, by_order }))
    }
}

/// A rating of games that come in sessions, with errors over sessions: what one person scores hangs together. The error of
/// the normal estimate is that of the sums of its influence function; a single session gives none. The interval of the
/// share that passed is Wilson's for as many independent games as would have its error over sessions.
fn by_sessions(rating: Rating, sessions: &[Vec<f64>], pass: f64) -> Rating {
    let Rating { mean, deviation, passed, .. } = rating;
    let games = rating.plays as f64;
    let error = |influence: &dyn Fn(f64) -> f64| {
        let sums = sessions.iter().map(|scores| scores.iter().map(|&score| influence(score)).sum::<f64>());
        let squares: f64 = sums.map(|sum| (sum / games) * (sum / games)).sum();
        let count = sessions.len() as f64;
        (squares * count / (count - 1.0)).sqrt()
    };
    let z = (mean - pass) / deviation;
    let density = (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let estimate_error = error(&|score| {
        let away = (score - mean) / deviation;
        density * (away - z / 2.0 * (away * away - 1.0))
    });
    let share_error = error(&|score| f64::from(u8::from(score >= pass)) - passed);
    let alike = passed * (1.0 - passed) / (share_error * share_error);
    let people = sessions.len() as f64;
    // Where all games or none were passed, they show nothing of how much those of one person hang together: then a person
    // counts once, which makes the interval rather too wide than too narrow.
    let shows_dependence = sessions.len() > 1 && 0.0 < passed && passed < 1.0;
    let independent = if shows_dependence { alike.min(games).max(people) } else { people };
    let is_known = deviation > 0.0 && sessions.len() > 1;
    Rating {
        error: if is_known { estimate_error } else { f64::NAN },
        interval: wilson(passed, independent),
        ..rating
    }
}

fn scores_row(stage: &str, player: &str, rating: &Rating) -> String {
    let Rating { plays, mean, deviation, estimate, error, passed, interval: (low, high), .. } = *rating;
    let percent = |share: f64| 100.0 * share;
    let error = if error.is_nan() { "–".to_owned() } else { format!("{:.1}", percent(error)) };
    format!(
        "| {stage} | {player} | {plays} | {mean:.2} | {deviation:.2} | {:.1} ± {error} % | {:.1} % ({:.1} to {:.1}) |\n",
        percent(estimate),
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
    fn games_of_one_person_are_not_independent() {
        let rate = |sessions: &[Vec<f64>]| {
            let mut tally = Tally::new(15.0);
            sessions.iter().flatten().for_each(|&score| tally.add(&Play { score, ..Play::default() }));
            (tally.rating(), by_sessions(tally.rating(), sessions, 15.0))
        };
        let scores: Vec<f64> = (0..40).map(|at| f64::from(at * 7 % 40) / 2.0 + 4.0).collect();
        // One game a person: as if games were independent, but for the degree of freedom of the mean.
        let single: Vec<Vec<f64>> = scores.iter().map(|&score| vec![score]).collect();
        let (apart, over) = rate(&single);
        assert!((over.error / apart.error - (40.0_f64 / 39.0).sqrt()).abs() < 0.02, "{apart:?} {over:?}");
        let width = |rating: &Rating| rating.interval.1 - rating.interval.0;
        assert!((width(&over) / width(&apart) - 1.0).abs() < 0.02, "{apart:?} {over:?}");
        // The same game five times over says no more than once, but for what is lost by one of eight people.
        let copies: Vec<Vec<f64>> = scores[..8].iter().map(|&score| vec![score; 5]).collect();
        let (naive, over) = rate(&copies);
        let (_, once) = rate(&scores[..8].iter().map(|&score| vec![score]).collect::<Vec<_>>());
        assert!((over.error / once.error - 1.0).abs() < 0.1, "{once:?} {over:?}");
        assert!(over.error > 2.0 * naive.error && width(&over) > 1.8 * width(&naive), "{naive:?} {over:?}");
        // If all games were passed, or none, five games of a person carry no more information than one.
        for score in [20.0, 1.0] {
            let certain: Vec<Vec<f64>> = (0..8).map(|_| vec![score; 5]).collect();
            let (naive, over) = rate(&certain);
            assert_eq!(over.interval, wilson(naive.passed, 8.0), "{naive:?} {over:?}");
            assert!(width(&over) > 2.0 * width(&naive), "{naive:?} {over:?}");
        }
        // One person alone gives no error, and an interval of a single game.
        let (_, alone) = rate(&[scores[..5].to_vec()]);
        assert!(alone.error.is_nan() && width(&alone) > 0.75, "{alone:?}");
    }

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
        let group = |difficulty: [u32; 3], ranks: [[u32; 3]; 7]| RankedGroup {
            name: String::new(),
            levels: vec![],
            difficulty: difficulty.to_vec(),
            by_difficulty: vec![],
            ranks: ranks.iter().enumerate().map(|(at, ranks)| (at.to_string(), ranks.to_vec())).collect(),
            agreement: None,
        };
        let groups = [group(G1, RANKS.map(|both| both.0)), group(G2, RANKS.map(|both| both.1))];
        assert_eq!(in_every_group(&groups), Some((5, 7)), "as printed");
        assert_eq!(in_every_group(&groups[..1]), None);
        assert_eq!(tau(&[1, 2, 3], &[3, 2, 1]), Some(-1.0));
        assert_eq!(tau(&[7, 7], &[1, 2]), None);
    }
}
