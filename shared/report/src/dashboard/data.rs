//! What the dashboard shows, as plain data. The JSON API returns the same.
//!
//! Times are milliseconds: points in time since 1970, ages and rests as durations.

use super::why::Why;
use crate::chart::thinned;
use crate::run::{Run, Strength};
use crate::text::time;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Rows of one page of runs.
pub const ROWS: usize = 100;

/// One run in a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    /// Its name.
    pub run: String,
    /// `evolution`, `sweep`, `tournament` or `study`; empty if that cannot be read.
    pub kind: String,
    /// `waiting`, `running`, `paused`, `finished`, `cancelled`, `failed`, `stopped` or `damaged`.
    pub state: String,
    /// Why it is in that state, if there is more to say.
    pub reason: String,
    /// Runs with a higher priority are computed first.
    pub priority: i32,
    /// The best fitness so far.
    pub best: Option<f64>,
    /// How much is done, in [`unit`](Self::unit).
    pub done: u64,
    /// How much there is to do, if that is known.
    pub goal: Option<u64>,
    /// The evaluations after which its budget ends it, if it limits them.
    pub goal_evaluations: Option<u64>,
    /// The time after which its budget ends it, if it limits that.
    pub goal_milliseconds: Option<u64>,
    /// `generations`, `cells`, `batches` or `parts`.
    pub unit: String,
    /// Evaluations of all islands; of a tournament the games.
    pub evaluations: u64,
    /// How many islands, cells or parts it has.
    pub islands: u32,
    /// Pieces of work that workers hold.
    pub leases: u32,
    /// For how long it has been worked on.
    pub elapsed_milliseconds: u64,
    /// Of what is done, what was done before that time began to be counted.
    #[serde(default)]
    pub done_before: u64,
    /// The same of the evaluations.
    #[serde(default)]
    pub evaluations_before: u64,
    /// An estimate of how long it takes until the first of its goals ends it.
    pub remaining_milliseconds: Option<u64>,
    /// When it was created.
    pub created: u64,
    /// The digest of its results, once it is finished.
    pub digest: Option<String>,
    /// The best fitness over time, in a few points; empty if it is not known yet.
    pub spark: Vec<f64>,
    /// The run of the same experiment before this one.
    pub before: Option<Predecessor>,
    /// The strongest champion of the newest milestone that was measured, if champions are measured.
    #[serde(default)]
    pub strength: Option<StrengthView>,
    /// The labels that people gave to it, in alphabetical order.
    #[serde(default)]
    pub labels: Vec<String>,
}

/// How strong a champion is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StrengthView {
    /// Its island.
    pub island: u32,
    /// The epoch.
    pub epoch: u64,
    /// The generation that the epoch ended with.
    pub generation: u64,
    /// The rating in Elo.
    pub elo: f64,
    /// The lower end of its 95 % confidence interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl StrengthView {
    /// The rating with its interval, in few words.
    pub fn words(&self) -> String {
        let Self { elo, low, high, .. } = self;
        format!("{elo:+.0} Elo ({low:+.0} to {high:+.0})")
    }
}

/// The run before, of the same experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Predecessor {
    /// Its name.
    pub run: String,
    /// How it stands.
    pub state: String,
    /// Its best fitness.
    pub best: Option<f64>,
}

impl RunRow {
    /// Whether nothing will change any more, unless the run is continued.
    pub fn has_ended(&self) -> bool {
        matches!(self.state.as_str(), "finished" | "cancelled" | "failed")
    }

    /// Whether nothing is known of how far it is, as it cannot be read.
    pub fn is_unknown(&self) -> bool {
        self.state == "damaged" && self.done == 0 && self.evaluations == 0
    }

    /// How long it takes from now on, or once it continues, in words.
    pub fn rest(&self) -> Option<String> {
        let word =
            if matches!(self.state.as_str(), "paused" | "stopped") { "once it continues" } else { "left" };
        self.remaining_milliseconds.map(|rest| format!("about {} {word}", time(rest)))
    }

    /// An estimate of the rest from what was done so far: until the first of the budgets ends the run.
    pub fn estimate(&mut self) {
        let elapsed = self.elapsed_milliseconds;
        let at_this_rate = |done: u64, before: u64, goal: Option<u64>| {
            let new = done.saturating_sub(before);
            let rest = goal.filter(|_| new > 0 && elapsed > 0)?.saturating_sub(done);
            Some((elapsed as f64 / new as f64 * rest as f64) as u64)
        };
        let by_goal = at_this_rate(self.done, self.done_before, self.goal);
        let by_evaluations = at_this_rate(self.evaluations, self.evaluations_before, self.goal_evaluations);
        let by_time = self.goal_milliseconds.map(|goal| goal.saturating_sub(elapsed));
        let first = [by_goal, by_evaluations, by_time].into_iter().flatten().min();
        self.remaining_milliseconds = first.filter(|_| !self.has_ended());
    }

    /// The name of what was run: the id without the digits that tell seeds apart.
    pub fn experiment(&self) -> &str {
        match self.run.rsplit_once('-') {
            Some((name, digits)) if digits.len() == 8 && digits.bytes().all(|b| b.is_ascii_hexdigit()) => {
                name
            }
            _ => &self.run,
        }
    }
}

/// Which runs are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunsQuery {
    /// Only runs in this state; any if empty.
    pub state: String,
    /// Only runs whose name or one of whose labels contains this; any if empty.
    pub search: String,
    /// The page, counted from 0; the last one if there are fewer.
    pub page: usize,
}

/// A page of runs, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunsPage {
    /// The runs.
    pub runs: Vec<RunRow>,
    /// How many there are that match, on all pages.
    pub matching: usize,
    /// How many there are of each state, whether they match or not.
    pub states: BTreeMap<String, usize>,
    /// What was asked for.
    pub query: RunsQuery,
    /// How many pages there are.
    pub pages: usize,
    /// How many runs of a store are not read yet; they are missing here.
    #[serde(default)]
    pub unread: usize,
}

impl RunsPage {
    /// The page of all these runs that a query asks for.
    pub fn of(rows: &[RunRow], query: RunsQuery) -> Self {
        let mut states = BTreeMap::new();
        for row in rows {
            *states.entry(row.state.clone()).or_default() += 1;
        }
        let mut rows: Vec<&RunRow> = rows.iter().collect();
        rows.sort_by(|one, other| (other.created, &one.run).cmp(&(one.created, &other.run)));
        let before = predecessors(&rows);
        let search = query.search.to_lowercase();
        let is_found = |text: &String| text.to_lowercase().contains(&search);
        let is_asked_for = |row: &RunRow| {
            (query.state.is_empty() || row.state == query.state)
                && (is_found(&row.run) || row.labels.iter().any(is_found))
        };
        let matching = rows.iter().filter(|row| is_asked_for(row)).count();
        let pages = matching.div_ceil(ROWS).max(1);
        let page = query.page.min(pages - 1);
        let shown = rows.iter().filter(|row| is_asked_for(row)).skip(page * ROWS).take(ROWS);
        let runs =
            shown.map(|row| RunRow { before: before.get(&row.run).cloned(), ..(*row).clone() }).collect();
        Self { runs, matching, states, query: RunsQuery { page, ..query }, pages, unread: 0 }
    }
}

/// The runs that a study consists of, of all these, in the order of their names.
pub fn parts(rows: &[RunRow], study: &str) -> Vec<RunRow> {
    let is_part = |row: &&RunRow| row.run.strip_prefix(study).is_some_and(|rest| rest.starts_with('.'));
    let mut parts: Vec<RunRow> = rows.iter().filter(is_part).cloned().collect();
    parts.sort_by(|one, other| one.run.cmp(&other.run));
    parts
}

/// The run of the same experiment before this one, of all these.
pub fn predecessor(rows: &[RunRow], run: &str) -> Option<Predecessor> {
    let own = rows.iter().find(|row| row.run == run)?;
    let age = |row: &RunRow| (row.created, std::cmp::Reverse(row.run.clone()));
    let older = rows.iter().filter(|row| row.experiment() == own.experiment() && age(row) < age(own));
    let RunRow { run, state, best, .. } = older.max_by_key(|row| age(row))?.clone();
    Some(Predecessor { run, state, best })
}

/// For each run the one of the same experiment before it; the newest come first.
fn predecessors(rows: &[&RunRow]) -> BTreeMap<String, Predecessor> {
    let mut newer: BTreeMap<&str, &RunRow> = BTreeMap::new();
    let mut found = BTreeMap::new();
    for &row in rows {
        if let Some(after) = newer.insert(row.experiment(), row) {
            let RunRow { run, state, best, .. } = row.clone();
            found.insert(after.run.clone(), Predecessor { run, state, best });
        }
    }
    found
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunView {
    /// What lists show of it.
    pub row: RunRow,
    /// The state of the run, or why it makes no progress.
    pub why: Why,
    /// Its islands, if it evolves.
    pub islands: Vec<IslandView>,
    /// The work that workers hold.
    pub leases: Vec<LeaseView>,
    /// What can be done with it: `pause`, `resume`, `cancel`, `extend`.
    pub actions: Vec<String>,
    /// The runs that it consists of, if it is a study.
    #[serde(default)]
    pub parts: Vec<RunRow>,
}

/// One island.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IslandView {
    /// Its number.
    pub island: u32,
    /// Epochs that are done.
    pub epochs: u64,
    /// Generations that are done.
    pub generation: u64,
    /// Its best fitness.
    pub best: Option<f64>,
    /// What it does now.
    pub state: IslandState,
    /// The worker that computes its next epoch, by name.
    pub worker: Option<String>,
}

/// What an island does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IslandState {
    /// A worker computes its next epoch.
    Computing,
    /// Its next epoch may begin.
    Ready,
    /// It waits for the epoch of a neighbour.
    Waiting,
    /// It is not worked on.
    #[default]
    Idle,
}

/// A piece of work that a worker holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LeaseView {
    /// The run.
    pub run: String,
    /// The piece, such as `island 3, epoch 17`.
    pub piece: String,
    /// The island, if it is an epoch.
    pub island: Option<u32>,
    /// The epoch, if it is one.
    pub epoch: Option<u64>,
    /// The worker's id.
    pub worker: String,
    /// The worker's name.
    pub name: String,
    /// For how long it is held.
    pub age_milliseconds: u64,
    /// When it expires unless it is renewed.
    pub expires_milliseconds: u64,
    /// For how long nothing was evaluated.
    pub progress_age_milliseconds: u64,
    /// Whether it makes no progress for far longer than usual.
    pub stalled: bool,
}

/// One worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerView {
    /// Its id.
    pub worker: String,
    /// Its name.
    pub name: String,
    /// The version of its program.
    pub version: String,
    /// Its threads.
    pub threads: u32,
    /// How it does.
    pub state: WorkerState,
    /// For how long it was not heard of.
    pub silent_milliseconds: u64,
    /// Pieces that it holds.
    pub leases: u32,
    /// For how long it has held the oldest of them.
    pub lease_age_milliseconds: Option<u64>,
    /// The longest time for which one of them made no progress.
    pub progress_age_milliseconds: Option<u64>,
    /// Results of it that were accepted.
    pub deliveries: u64,
    /// Evaluations in a second of its computing time, lately.
    pub rate: Option<f64>,
    /// Its rate as a multiple of the median of all workers in the same runs: 1 is usual.
    pub pace: Option<f64>,
    /// What failed on it last.
    pub last_error: Option<String>,
}

impl WorkerView {
    /// A worker with a relative rate below this stands out.
    pub(crate) const SLOW: f64 = 0.7;

    /// The order in which workers need attention, the most urgent first.
    pub fn urgency(&self) -> u8 {
        match self.state {
            WorkerState::Quarantined => 0,
            WorkerState::Silent => 1,
            WorkerState::Resting => 2,
            _ if self.pace.is_some_and(|pace| pace < Self::SLOW) => 3,
            _ if self.last_error.is_some() => 4,
            WorkerState::Draining => 5,
            WorkerState::Busy => 6,
            WorkerState::Idle => 7,
        }
    }
}

/// How a worker does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkerState {
    /// It is connected and holds work.
    Busy,
    /// It is connected and holds none.
    #[default]
    Idle,
    /// It is given no more work.
    Draining,
    /// It has failed too often, and is given nothing for a while.
    Resting,
    /// It was not heard of within a lease.
    Silent,
    /// Its results cannot be trusted.
    Quarantined,
}

impl WorkerState {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Idle => "idle",
            Self::Draining => "draining",
            Self::Resting => "resting",
            Self::Silent => "silent",
            Self::Quarantined => "quarantined",
        }
    }
}

/// All workers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkersPage {
    /// The workers.
    pub workers: Vec<WorkerView>,
    /// How long a lease lasts without a renewal.
    pub lease_milliseconds: u64,
    /// Whether there is a coordinator: a store alone has no workers.
    pub is_live: bool,
}

/// Something that happened to a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventView {
    /// Its number in the run's journal.
    pub number: u64,
    /// When.
    pub at: u64,
    /// `created`, `opened`, `lost` and so on.
    pub kind: String,
    /// What, in a sentence.
    pub text: String,
}

/// An epoch of an island.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EpochView {
    /// The island.
    pub island: u32,
    /// The epoch.
    pub epoch: u64,
    /// The generation that it ended with.
    pub generation: u64,
    /// The best fitness of the island by then.
    pub best: Option<f64>,
    /// How different its individuals were.
    pub diversity: f64,
    /// The worker that computed it.
    pub worker: String,
    /// How long that took.
    pub milliseconds: u64,
}

/// Fitness of an island after one generation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatisticsPoint {
    /// The island.
    pub island: u32,
    /// The generation.
    pub generation: u64,
    /// Evaluations of the island so far.
    pub evaluations: u64,
    /// The best fitness of its population.
    pub best: Option<f64>,
    /// The mean fitness.
    pub mean: Option<f64>,
    /// The standard deviation.
    pub deviation: Option<f64>,
}

/// The best individual of an island.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChampionRow {
    /// The island.
    pub island: u32,
    /// Its fitness.
    pub fitness: Option<f64>,
    /// The generation in which it appeared.
    pub generation: u64,
    /// Its genome, as its problem writes it.
    pub genome: String,
}

/// A file of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactView {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// How a run went, thinned out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Epochs of all islands.
    pub epochs: Vec<EpochView>,
    /// Fitness of all islands.
    pub statistics: Vec<StatisticsPoint>,
    /// The champions of all islands.
    pub champions: Vec<ChampionRow>,
    /// The strength of the champions that were measured, by epoch and island.
    pub strength: Vec<StrengthView>,
}

fn finite(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite())
}

impl History {
    /// The strongest champion of the newest epoch that was measured.
    pub fn last_strength(&self) -> Option<StrengthView> {
        let newest = self.strength.iter().map(|one| one.epoch).max()?;
        let last = self.strength.iter().filter(|one| one.epoch == newest);
        last.max_by(|one, other| one.elo.total_cmp(&other.elo)).copied()
    }

    /// What is shown of a run, with a maximum number of epochs and generations of each island.
    pub fn of(run: &Run, most: usize) -> Self {
        let measured = run.strengths.iter().flat_map(|strengths| &strengths.champions);
        let measured = measured.map(|&Strength { island, epoch, generation, elo, low, high, .. }| {
            StrengthView { island, epoch, generation, elo, low, high }
        });
        let mut history = Self { strength: measured.collect(), ..Self::default() };
        for (number, island) in (0..).zip(&run.islands) {
            history.epochs.extend(thinned(island.epochs.len(), most).into_iter().map(|at| {
                let epoch = &island.epochs[at];
                EpochView {
                    island: number,
                    epoch: epoch.number,
                    generation: epoch.standing.generation,
                    best: finite(epoch.standing.best),
                    diversity: epoch.statistics.diversity,
                    worker: epoch.worker.clone(),
                    milliseconds: epoch.milliseconds,
                }
            }));
            let rows: Vec<_> = island.epochs.iter().flat_map(|epoch| &epoch.statistics.rows).collect();
            history.statistics.extend(thinned(rows.len(), most).into_iter().map(|at| StatisticsPoint {
                island: number,
                generation: rows[at].generation,
                evaluations: rows[at].evaluations,
                best: finite(rows[at].best),
                mean: finite(rows[at].mean),
                deviation: finite(rows[at].deviation),
            }));
            history.champions.extend(island.champion.iter().map(|champion| ChampionRow {
                island: number,
                fitness: finite(champion.fitness),
                generation: champion.generation,
                genome: champion.genome.clone(),
            }));
        }
        history
    }

    /// The same with fewer points of each island.
    pub fn thinned(&self, most: usize) -> Self {
        Self {
            epochs: thin(&self.epochs, most, |epoch| epoch.island),
            statistics: thin(&self.statistics, most, |point| point.island),
            champions: self.champions.clone(),
            strength: self.strength.clone(),
        }
    }
}

fn thin<T: Clone>(all: &[T], most: usize, island: impl Fn(&T) -> u32) -> Vec<T> {
    let of_islands = all.chunk_by(|one, other| island(one) == island(other));
    of_islands.flat_map(|own| thinned(own.len(), most).into_iter().map(|at| own[at].clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(run: &str, state: &str, created: u64) -> RunRow {
        RunRow { run: run.to_owned(), state: state.to_owned(), created, ..RunRow::default() }
    }

    #[test]
    fn runs_are_found_by_their_labels() {
        let rows = [
            RunRow { labels: vec!["paper".to_owned()], ..row("maze-00000001", "finished", 1) },
            row("maze-00000002", "finished", 2),
        ];
        let found = |search: &str| {
            RunsPage::of(&rows, RunsQuery { search: search.to_owned(), ..RunsQuery::default() })
        };
        assert_eq!(found("Pap").matching, 1);
        assert_eq!(found("maze").matching, 2);
        assert_eq!(found("draft").matching, 0);
    }

    #[test]
    fn the_strongest_of_the_newest_epoch_is_the_last_strength() {
        let one = |epoch, island, elo| StrengthView { island, epoch, elo, ..StrengthView::default() };
        let strength = vec![one(1, 0, 300.0), one(4, 0, 10.0), one(4, 1, 20.0)];
        let history = History { strength, ..History::default() };
        assert_eq!(history.last_strength(), Some(one(4, 1, 20.0)));
        assert_eq!(History::default().last_strength(), None);
    }

    #[test]
    fn a_page_holds_the_newest_runs_that_match() {
        let rows: Vec<RunRow> = (0..250)
            .map(|n| row(&format!("maze-{n:08x}"), if n % 2 == 0 { "finished" } else { "running" }, n))
            .collect();
        let query = RunsQuery { state: "finished".to_owned(), search: "MAZE".to_owned(), page: 1 };
        let page = RunsPage::of(&rows, query);
        assert_eq!((page.matching, page.pages, page.runs.len()), (125, 2, 25));
        assert_eq!(page.runs[0].created, 48, "the newest 100 stand on the first page");
        assert_eq!(page.states["running"], 125);
        let none = RunsPage::of(&rows, RunsQuery { search: "nope".to_owned(), ..RunsQuery::default() });
        assert_eq!((none.matching, none.pages), (0, 1));
        let far = RunsPage::of(&[row("a", "finished", 1)], RunsQuery { page: 9, ..RunsQuery::default() });
        assert_eq!((far.query.page, far.runs.len()), (0, 1), "there is no page beyond the last");
    }

    #[test]
    fn a_run_stands_beside_the_one_before_of_the_same_experiment() {
        let rows = vec![
            RunRow { best: Some(1.0), ..row("maze-00000001", "finished", 1) },
            row("other-00000001", "finished", 2),
            row("maze-00000002", "running", 3),
        ];
        let page = RunsPage::of(&rows, RunsQuery::default());
        let before: Vec<Option<&str>> =
            page.runs.iter().map(|row| row.before.as_ref().map(|before| before.run.as_str())).collect();
        assert_eq!(before, [Some("maze-00000001"), None, None]);
        assert_eq!(page.runs[0].before.as_ref().unwrap().best, Some(1.0));
        for row in &page.runs {
            assert_eq!(predecessor(&page.runs, &row.run), row.before, "the page of a run shows the same");
        }
        assert_eq!(predecessor(&page.runs, "nope"), None);
    }

    #[test]
    fn a_study_has_its_parts() {
        let rows = ["s-1.b", "s-1", "s-1.a", "s-12.a", "other"].map(|run| row(run, "running", 1));
        let names: Vec<String> = parts(&rows, "s-1").into_iter().map(|row| row.run).collect();
        assert_eq!(names, ["s-1.a", "s-1.b"]);
    }

    #[test]
    fn the_rest_is_estimated_from_what_was_done() {
        let mut row =
            RunRow { done: 10, goal: Some(40), elapsed_milliseconds: 100, ..row("a", "running", 1) };
        row.estimate();
        assert_eq!(row.remaining_milliseconds, Some(300));
        let mut reopened = RunRow { done_before: 5, ..row.clone() };
        reopened.estimate();
        assert_eq!(reopened.remaining_milliseconds, Some(600), "5 were done in that time");
        row.done = 0;
        row.estimate();
        assert_eq!(row.remaining_milliseconds, None);
        let mut study = RunRow { done: 2, goal: Some(3), ..row.clone() };
        study.elapsed_milliseconds = 0;
        study.estimate();
        assert_eq!(study.remaining_milliseconds, None, "a time that is not counted tells nothing");
    }

    #[test]
    fn the_rest_is_that_of_the_budget_that_ends_the_run_first() {
        let run = RunRow {
            done: 10,
            goal: Some(40),
            evaluations: 500,
            elapsed_milliseconds: 100,
            ..row("a", "running", 1)
        };
        let rest = |goal_evaluations, goal_milliseconds| {
            let mut row = RunRow { goal_evaluations, goal_milliseconds, ..run.clone() };
            row.estimate();
            row.remaining_milliseconds
        };
        assert_eq!(rest(Some(1000), None), Some(100), "500 evaluations at 5 a millisecond");
        assert_eq!(rest(Some(1_000_000), Some(150)), Some(50), "50 ms are left of the time");
        assert_eq!(rest(None, Some(10)), Some(0), "the time is over");
        let mut begun = RunRow { goal_milliseconds: Some(60_000), ..row("b", "running", 1) };
        begun.estimate();
        assert_eq!(begun.remaining_milliseconds, Some(60_000), "a time is known before anything is done");
        begun.state = "finished".to_owned();
        begun.estimate();
        assert_eq!(begun.remaining_milliseconds, None);
    }
}
