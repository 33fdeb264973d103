//! How long evaluations take on this machine: a short piece of the experiment itself is evolved.

use archipelago::solo;
use evolution::activity::Activity;
use experiment::file::BudgetKeys;
use experiment::tournament::PlayerKeys;
use experiment::{Estimate, Experiment, Sweep, Tournament};
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use tournament::Schedule;

/// A trial of this length says enough.
const ENOUGH: Duration = Duration::from_millis(150);
/// All trials of one command together end after this time, or when the evaluations that have begun then are done.
const LONGEST: Duration = Duration::from_secs(2);
/// How many combinations of a sweep are tried, at most, unless there are more kinds of them: each trial takes a fraction of a
/// second.
const MOST_TRIALS: usize = 8;
/// How long such an evaluation is waited for.
const LAST_EVALUATION: Duration = Duration::from_secs(1);

/// Trials that end together.
pub(crate) struct Trials {
    longest: Duration,
    /// How long trials have taken so far.
    spent: Cell<Duration>,
    /// Whether the thread of a trial was left behind: it computes on, and would slow the next trial down.
    is_stuck: Cell<bool>,
}

/// What a trial has measured.
#[derive(Clone, Copy, Debug)]
struct Measured {
    evaluations: u64,
    /// How long they took on one thread, with breeding and everything else that belongs to them.
    time: Duration,
    /// Whether whole generations were measured. Otherwise these are the first evaluations of one.
    is_whole: bool,
}

impl Measured {
    /// Seconds of one evaluation.
    fn each(self) -> f64 {
        self.time.as_secs_f64() / self.evaluations.max(1) as f64
    }
}

impl Trials {
    pub(crate) fn new() -> Self {
        Self::within(LONGEST)
    }

    /// Nothing is tried.
    pub(crate) fn none() -> Self {
        Self::within(Duration::ZERO)
    }

    pub(crate) fn within(longest: Duration) -> Self {
        Self { longest, spent: Cell::default(), is_stuck: Cell::new(false) }
    }

    /// An estimate with the time that this machine needs.
    pub(crate) fn calibrated(&self, experiment: &Experiment, threads: usize) -> Estimate {
        with_time(experiment, threads, self.measure(experiment, self.left()).map(Measured::each))
    }

    /// The estimates of all cells of a sweep, each on one thread. Of many combinations some are tried; the others of the same
    /// kind are as much slower or faster than expected. Kinds differ in other values than numbers, for example in their
    /// variant: one evaluation may be a whole search, and another one a lookup.
    pub(crate) fn calibrated_cells<'a>(&'a self, sweep: &'a Sweep) -> impl Iterator<Item = Estimate> + 'a {
        // Repeats of one combination follow each other, and cost the same.
        let repeats = sweep.repeats.max(1) as usize;
        let mut kinds: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for cell in (0..sweep.len()).step_by(repeats) {
            kinds.entry(kind(sweep, cell)).or_default().push(cell);
        }
        let of_each = (MOST_TRIALS / kinds.len().max(1)).max(1);
        let mut trials = vec![];
        for (kind, cells) in &kinds {
            let every = cells.len().div_ceil(of_each);
            trials.extend(cells.chunks(every).map(|cells| (kind.as_str(), cells[cells.len() / 2])));
        }
        // Of each kind: how long its trials took, and how long they would have taken as expected.
        let mut tried: BTreeMap<String, (f64, f64)> = BTreeMap::new();
        for ((kind, cell), left) in trials.iter().zip((1..=trials.len() as u32).rev()) {
            let experiment = sweep.cell(*cell).experiment;
            if let Some(found) = self.measure(&experiment, self.left() / left) {
                let (time, by_cost) = tried.entry((*kind).to_owned()).or_default();
                *time += found.time.as_secs_f64();
                *by_cost += found.evaluations as f64 * expected(&experiment);
            }
        }
        (0..sweep.len()).step_by(repeats).flat_map(move |cell| {
            let experiment = sweep.cell(cell).experiment;
            let slower = tried.get(&kind(sweep, cell)).filter(|(_, by_cost)| *by_cost > 0.0);
            let each = slower.map(|(time, by_cost)| time / by_cost * expected(&experiment));
            std::iter::repeat_n(with_time(&experiment, 1, each), repeats)
        })
    }

    /// The estimates of the parts of a study, which share the time of the trials. Where a part's generation does not fit in
    /// its share, the first evaluations of all such parts are taken together: single ones may take far longer than others.
    pub(crate) fn calibrated_parts(&self, parts: &[&Experiment], threads: usize) -> Vec<Estimate> {
        let left = (1..=parts.len() as u32).rev();
        let measured: Vec<Option<Measured>> =
            parts.iter().zip(left).map(|(part, left)| self.measure(part, self.left() / left)).collect();
        let some = || parts.iter().zip(&measured).filter_map(|(part, found)| Some((part, (*found)?)));
        let pooled = |is_whole: bool| {
            let chosen = || some().filter(|(_, found)| found.is_whole == is_whole);
            let found: f64 = chosen().map(|(_, found)| found.time.as_secs_f64()).sum();
            let by_cost: f64 = chosen().map(|(part, found)| expected(part) * found.evaluations as f64).sum();
            (by_cost > 0.0).then_some(found / by_cost)
        };
        let slower = pooled(false).or_else(|| pooled(true));
        let each = |part: &Experiment, found: Option<Measured>| match found {
            Some(found) if found.is_whole => Some(found.each()),
            _ => slower.map(|slower| slower * expected(part)),
        };
        parts
            .iter()
            .zip(&measured)
            .map(|(part, found)| with_time(part, threads, each(part, *found)))
            .collect()
    }

    /// The estimate of a tournament with the time that this machine needs for some of its games. Players that are not known
    /// yet, build a database first or think for minutes are not tried.
    pub(crate) fn calibrated_games(&self, games: &Tournament, threads: usize) -> Estimate {
        let estimate = games.estimate(threads);
        let needs_more = |player: &PlayerKeys| player.endgame.is_some() || player.engine.is_some();
        let is_special = games.keys().milliseconds.is_some() || games.keys().adjudicate > 0;
        let pair = games.batch_time() / Schedule::BATCH as u32;
        if is_special || pair > LONGEST / 4 || games.players().iter().any(needs_more) {
            return estimate;
        }
        let Ok(contestants) = games.contestants::<Vec<u8>>(&BTreeMap::new(), &BTreeMap::new()) else {
            return estimate;
        };
        let schedule = games.schedule();
        let every = schedule.pairings().len().div_ceil(MOST_TRIALS).max(1);
        // Seconds of a pair, of each pairing that was tried: some take many times as long as others.
        let mut each = vec![];
        let tried = (0..schedule.pairings().len()).step_by(every);
        for (pairing, left) in tried.zip((1..=MOST_TRIALS as u32).rev()) {
            let (start, before) = (Instant::now(), thread_time());
            let deadline = start + self.left() / left;
            let duel = games.duel(pairing, &contestants);
            let mut runner = duel.runner();
            let due = schedule.pairs().iter().take(Schedule::BATCH).take_while(|_| Instant::now() < deadline);
            let played = due.map(|pair| duel.pair(&mut runner, *pair)).count();
            if played > 0 {
                each.push(thread_time().saturating_sub(before).as_secs_f64() / played as f64);
            }
            self.spent.set(self.spent.get() + start.elapsed());
        }
        if each.is_empty() {
            return estimate;
        }
        let mean = each.iter().sum::<f64>() / each.len() as f64;
        let all = mean * schedule.games() as f64 / 2.0 / threads.max(1) as f64;
        Estimate { time: Some(Duration::try_from_secs_f64(all).unwrap_or(Duration::MAX)), ..estimate }
    }

    fn left(&self) -> Duration {
        self.longest.saturating_sub(self.spent.get())
    }

    /// Evolves a short piece of an experiment for some time. A generation that takes longer is abandoned after the evaluation
    /// that it is at. If that does not end soon, the thread is left behind, and ends with this process: nothing was measured
    /// then, because what keeps it busy is none of the evaluations that were counted.
    fn measure(&self, experiment: &Experiment, longest: Duration) -> Option<Measured> {
        if longest.is_zero() || self.is_stuck.get() {
            return None;
        }
        experiment.prepare();
        let start = Instant::now();
        let measured = self.measure_prepared(experiment, start + longest);
        self.spent.set(self.spent.get() + start.elapsed());
        measured
    }

    fn measure_prepared(&self, experiment: &Experiment, deadline: Instant) -> Option<Measured> {
        let left = || deadline.saturating_duration_since(Instant::now());
        let (sender, measured) = mpsc::channel();
        let (experiment, activity) = (experiment.clone(), Activity::default());
        // On one thread, which then also has all of the time.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().ok()?;
        let counter = activity.clone();
        pool.spawn(move || counter.watch(|| evolve(&experiment, &counter, &sender)));
        let mut found = None;
        loop {
            let wait = if activity.is_abandoned() { LAST_EVALUATION } else { left() };
            match measured.recv_timeout(wait) {
                Ok(next) => found = Some(next),
                Err(RecvTimeoutError::Disconnected) => return found,
                Err(RecvTimeoutError::Timeout) if activity.is_abandoned() => {
                    self.is_stuck.set(true);
                    return found;
                }
                Err(RecvTimeoutError::Timeout) => activity.abandon(),
            }
        }
    }
}

/// The values of a cell that are no numbers.
fn kind(sweep: &Sweep, cell: u32) -> String {
    let values = sweep.values(cell).into_iter().filter(|value| !value.is_number());
    values.map(|value| value.to_string()).collect::<Vec<_>>().join(" ")
}

/// Seconds of one evaluation by the problem's own estimate.
fn expected(experiment: &Experiment) -> f64 {
    experiment.traits().cost.nanoseconds.max(1) as f64 / 1e9
}

/// An estimate with a measured time of one evaluation, in seconds.
fn with_time(experiment: &Experiment, threads: usize, each: Option<f64>) -> Estimate {
    let estimate = experiment.estimate(threads);
    let islands = experiment.setting().islands.len();
    let parallel = threads.min(islands).max(1) as f64;
    let computing = each.zip(estimate.evaluations).map(|(each, evaluations)| {
        Duration::try_from_secs_f64(each * evaluations as f64 / parallel).unwrap_or(Duration::MAX)
    });
    match computing {
        Some(computing) => Estimate {
            time: Some(experiment.budget().wall_time.map_or(computing, |most| most.min(computing))),
            ..estimate
        },
        None => estimate,
    }
}

/// Evolves longer and longer pieces of an experiment, until one is long enough to be believed. Of a first piece that was
/// abandoned, the evaluations count that were done.
fn evolve(experiment: &Experiment, activity: &Activity, measured: &mpsc::Sender<Measured>) {
    let most = experiment.budget().generations.unwrap_or(u64::MAX);
    for generations in (0..16).map(|power| most.min(1 << power)) {
        let budget = BudgetKeys { generations: Some(generations), ..BudgetKeys::default() };
        let Ok(short) = experiment.with_budget(budget) else { return };
        let start = thread_time();
        let outcome = solo::evolve(&short, || activity.is_abandoned());
        let time = thread_time().saturating_sub(start);
        let found = match outcome {
            Ok(Some(outcome)) if !activity.is_abandoned() => {
                let evaluations = outcome.islands.iter().map(|(_, standing)| standing.evaluations).sum();
                Measured { evaluations, time, is_whole: true }
            }
            // The last evaluation counts as well as its time: it is not longer than others on the average.
            _ if generations <= 1 && activity.count() > 0 => {
                Measured { evaluations: activity.count(), time, is_whole: false }
            }
            _ => return,
        };
        // Where nothing evolves, one evaluation is a whole search: children would cost less than it does.
        if measured.send(found).is_err() || time >= ENOUGH || generations == most {
            return;
        }
    }
}

/// How long this thread has computed: what others do on the machine does not count.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::Plan;

    fn experiment(text: &str) -> Experiment {
        match experiment::parse("trial.toml", text, None).unwrap() {
            Plan::Single(experiment) => *experiment,
            _ => panic!("expected an experiment"),
        }
    }

    #[test]
    fn an_estimate_is_right_within_a_factor_of_two() {
        for problem in
            ["kind = \"maze\", width = 20, height = 20, turns = 50", "kind = \"rastrigin\", dimensions = 30"]
        {
            let text = format!(
                "name = \"trial\"\nproblem = {{ {problem} }}\nalgorithm = {{ kind = \"ga\", population = 100 }}\n\
                 islands = {{ count = 2 }}\nbudget = {{ generations = 2000 }}\n"
            );
            let experiment = experiment(&text);
            let expected =
                Trials::within(Duration::from_mins(1)).calibrated(&experiment, 1).time.unwrap().as_secs_f64();
            let start = thread_time();
            solo::evolve(&experiment, || false).unwrap().unwrap();
            let found = thread_time().saturating_sub(start).as_secs_f64();
            assert!(
                (0.5..2.0).contains(&(expected / found)),
                "{problem}: {expected} s expected, {found} s found"
            );
        }
    }

    #[test]
    fn an_estimate_of_games_is_right_within_a_factor_of_two() {
        let text = "name = \"games\"\n[tournament]\nopenings = 20\ndepth = 2\n\
                    [[tournament.players]]\nname = \"deep\"\nplayer = \"material\"\ndepth = 3\n\
                    [[tournament.players]]\nname = \"flat\"\nplayer = \"material\"\n\
                    [[tournament.players]]\nname = \"random\"\nplayer = \"random\"\n";
        let Plan::Tournament(games) = experiment::parse("trial.toml", text, None).unwrap() else {
            panic!("expected a tournament")
        };
        let trials = Trials::within(Duration::from_mins(1));
        let expected = trials.calibrated_games(&games, 1).time.unwrap().as_secs_f64();
        let contestants = games.contestants::<Vec<u8>>(&BTreeMap::new(), &BTreeMap::new()).unwrap();
        let start = thread_time();
        for pairing in 0..games.schedule().pairings().len() {
            let duel = games.duel(pairing, &contestants);
            let mut runner = duel.runner();
            for pair in games.schedule().pairs() {
                duel.pair(&mut runner, *pair);
            }
        }
        let found = thread_time().saturating_sub(start).as_secs_f64();
        assert!((0.5..2.0).contains(&(expected / found)), "{expected} s expected, {found} s found");
        let untried = Trials::none().calibrated_games(&games, 1).time;
        assert_eq!(untried, games.estimate(1).time, "without a trial nothing is played");
    }

    /// Boards that are all played the same number of times, whatever they are.
    fn boards(plays: u32, target: f64) -> Experiment {
        experiment(&format!(
            "name = \"trial\"\nalgorithm = {{ kind = \"ga\", population = 40 }}\nislands = {{ count = 1 }}\n\
             budget = {{ generations = 2 }}\n[problem]\nkind = \"match3\"\ntargets = [{target}]\n\
             plays = {{ least = {plays}, most = {plays}, worth = 0.0, precision = 0.0 }}\n"
        ))
    }

    /// Seconds of an experiment on one thread.
    fn found(experiment: &Experiment) -> f64 {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        pool.install(|| {
            let start = thread_time();
            solo::evolve(experiment, || false).unwrap().unwrap();
            thread_time().saturating_sub(start).as_secs_f64()
        })
    }

    #[test]
    fn an_estimate_is_right_where_no_generation_fits_in_the_trial() {
        let experiment = boards(2_000, 0.7);
        let found = found(&experiment);
        let trials = Trials::within(Duration::from_secs_f64(found / 20.0));
        let expected = trials.calibrated(&experiment, 1).time.unwrap().as_secs_f64();
        assert!((0.5..2.0).contains(&(expected / found)), "{expected} s expected, {found} s found");
    }

    #[test]
    fn the_parts_of_a_study_share_the_time_of_the_trials() {
        let parts = [boards(2_000, 0.3), boards(2_000, 0.5), boards(1_000, 0.7)];
        let found: f64 = parts.iter().map(found).sum();
        let trials = Trials::within(Duration::from_secs_f64(found / 20.0));
        let parts: Vec<&Experiment> = parts.iter().collect();
        let estimates = trials.calibrated_parts(&parts, 1);
        let expected: f64 = estimates.iter().map(|estimate| estimate.time.unwrap().as_secs_f64()).sum();
        assert!((0.5..2.0).contains(&(expected / found)), "{expected} s expected, {found} s found");
        assert!(!trials.is_stuck.get(), "every trial ends with the evaluation that it is at");
    }

    #[test]
    fn cells_of_a_sweep_stay_calibrated_once_the_time_of_the_trials_is_spent() {
        let text = "name = \"trial\"\nalgorithm = { kind = \"ga\", population = 40 }\nislands = { count = 1 }\n\
                    budget = { generations = 2 }\n[problem]\nkind = \"match3\"\ntargets = [0.7]\n\
                    plays = { least = 2000, most = 2000, worth = 0.0, precision = 0.0 }\n\
                    [sweep]\nrepeats = 2\n[[sweep.axis]]\nkeys = [\"algorithm.population\"]\nvalues = [40, 50, 60]\n";
        let Plan::Sweep(sweep) = experiment::parse("trial.toml", text, None).unwrap() else {
            panic!("expected a sweep")
        };
        let ratios = |trials: &Trials| -> Vec<f64> {
            let cells = trials.calibrated_cells(&sweep);
            let seconds = cells.map(|cell| cell.time.unwrap().as_secs_f64());
            let untried = (0..sweep.len()).map(|cell| sweep.cell(cell).experiment.estimate(1).time.unwrap());
            seconds.zip(untried).map(|(tried, untried)| tried / untried.as_secs_f64()).collect()
        };
        // No generation fits into this: the first trial takes all of it.
        let tried = ratios(&Trials::within(Duration::from_millis(50)));
        assert_eq!(tried.len(), 6);
        // Estimates are whole nanoseconds, so that equal ratios differ by that much. A machine is never as fast as assumed.
        let is_same = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-6;
        assert!(!is_same(tried[0], 1.0), "nothing was tried: {tried:?}");
        assert!(tried.iter().all(|&ratio| is_same(ratio, tried[0])), "{tried:?}");
        assert!(ratios(&Trials::none()).iter().all(|&ratio| is_same(ratio, 1.0)));
    }

    /// A beam's one evaluation is a whole search; the evaluations of the genetic algorithm are far shorter.
    #[test]
    fn each_kind_of_cells_has_its_own_factor() {
        let text = "name = \"trial\"\nproblem = { kind = \"maze\", width = 20, height = 20, turns = 25 }\n\
                    algorithm = { kind = \"ga\", population = 200 }\nislands = { count = 1 }\nbudget = {}\n\
                    [sweep]\nrepeats = 3\n[sweep.variants.beam]\n\
                    problem.founders = { kind = \"beam\", width = 50 }\nalgorithm.population = 1\n\
                    budget.generations = 0\n[sweep.variants.ga]\nbudget.generations = 200\n";
        let Plan::Sweep(sweep) = experiment::parse("trial.toml", text, None).unwrap() else {
            panic!("expected a sweep")
        };
        let estimates: Vec<Estimate> =
            Trials::within(Duration::from_mins(1)).calibrated_cells(&sweep).collect();
        for (cell, estimate) in (0..sweep.len()).zip(estimates) {
            let found = found(&sweep.cell(cell).experiment);
            let expected = estimate.time.unwrap().as_secs_f64();
            assert!((0.2..5.0).contains(&(expected / found)), "cell {cell}: {expected} s, {found} s found");
        }
    }

    #[test]
    fn a_wall_time_bounds_the_estimate() {
        let text = "name = \"trial\"\nproblem = { kind = \"onemax\", length = 40 }\n\
                    algorithm = { kind = \"ga\", population = 100 }\nislands = { count = 2 }\n\
                    budget = { generations = 1000000000, wall_time = \"3m\" }\n";
        assert_eq!(Trials::new().calibrated(&experiment(text), 2).time, Some(Duration::from_mins(3)));
    }
}
