//! How long evaluations take on this machine: a short piece of the experiment itself is evolved.

use archipelago::solo;
use experiment::file::BudgetKeys;
use experiment::{Estimate, Experiment};
use rustix::time::{ClockId, clock_gettime};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A trial of this length says enough.
const ENOUGH: Duration = Duration::from_millis(150);
/// All trials of one command together end after this time.
const LONGEST: Duration = Duration::from_secs(2);

/// Trials that end together.
pub(crate) struct Trials {
    deadline: Instant,
}

impl Trials {
    pub(crate) fn new() -> Self {
        Self::within(LONGEST)
    }

    /// Nothing is tried.
    pub(crate) fn none() -> Self {
        Self::within(Duration::ZERO)
    }

    fn within(longest: Duration) -> Self {
        Self { deadline: Instant::now() + longest }
    }

    /// An estimate with the time that this machine needs, where a trial is short enough to tell.
    pub(crate) fn calibrated(&self, experiment: &Experiment, threads: usize) -> Estimate {
        let estimate = experiment.estimate(threads);
        let islands = experiment.setting().islands.len();
        let parallel = threads.min(islands).max(1) as f64;
        let computing = self.per_evaluation(experiment).zip(estimate.evaluations);
        let computing = computing.map(|(each, evaluations)| {
            Duration::try_from_secs_f64(each.as_secs_f64() * evaluations as f64 / parallel)
                .unwrap_or(Duration::MAX)
        });
        match computing {
            Some(computing) => Estimate {
                time: Some(experiment.budget().wall_time.map_or(computing, |most| most.min(computing))),
                ..estimate
            },
            None => estimate,
        }
    }

    /// The time of one evaluation, with breeding and everything else that belongs to it. One generation may take minutes, and
    /// cannot be stopped: then its thread is left behind, and ends with this process.
    fn per_evaluation(&self, experiment: &Experiment) -> Option<Duration> {
        let left = || self.deadline.saturating_duration_since(Instant::now());
        if left().is_zero() {
            return None;
        }
        let (sender, measured) = mpsc::channel();
        let (experiment, deadline) = (experiment.clone(), self.deadline);
        std::thread::spawn(move || measure(&experiment, deadline, &sender));
        let mut found = None;
        while let Ok(each) = measured.recv_timeout(left()) {
            found = Some(each);
        }
        found
    }
}

/// Evolves longer and longer pieces of an experiment, until one is long enough to be believed.
fn measure(experiment: &Experiment, deadline: Instant, measured: &mpsc::Sender<Duration>) {
    for generations in (0..16).map(|power| 1 << power) {
        let budget = BudgetKeys { generations: Some(generations), ..BudgetKeys::default() };
        let Ok(short) = experiment.with_budget(budget) else { return };
        let start = thread_time();
        let Ok(Some(outcome)) = solo::evolve(&short, || Instant::now() > deadline) else { return };
        let time = thread_time().saturating_sub(start);
        let evaluations: u64 = outcome.islands.iter().map(|(_, standing)| standing.evaluations).sum();
        if measured.send(time.div_f64(evaluations.max(1) as f64)).is_err() || time >= ENOUGH {
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
    fn a_wall_time_bounds_the_estimate() {
        let text = "name = \"trial\"\nproblem = { kind = \"onemax\", length = 40 }\n\
                    algorithm = { kind = \"ga\", population = 100 }\nislands = { count = 2 }\n\
                    budget = { generations = 1000000000, wall_time = \"3m\" }\n";
        assert_eq!(Trials::new().calibrated(&experiment(text), 2).time, Some(Duration::from_mins(3)));
    }
}
