//! An archipelago driven in every possible way: outcomes in any order, repeated, late, given up and begun again, with
//! crashes that lose whatever was not stored. Synchronous runs always come out the same; asynchronous ones always as
//! their records say.

use archipelago::{
    Archipelago, Completion, CompletionError, End, IslandHistory, Mark, Reason, Remains, solo,
};
use evolution::digest::Digest;
use evolution::epoch::{self, EpochOutcome, EpochTask, Evolver, Packet};
use experiment::{Experiment, Plan};
use proptest::prelude::*;
use proptest::sample::Index;
use std::sync::Arc;

fn experiment(mode: &str, topology: &str, islands: u32, budget: &str, seed: u64) -> Experiment {
    let text = format!(
        r#"
        name = "any-order"
        seed = {seed}
        problem = {{ kind = "onemax", length = 24 }}
        algorithm = {{ kind = "ga", population = 6 }}
        islands = {{ count = {islands}, topology = "{topology}" }}
        migration = {{ interval = 3, count = 1, mode = "{mode}" }}
        budget = {budget}
        "#
    );
    match experiment::parse("any-order.toml", &text, None) {
        Ok(Plan::Single(experiment)) => *experiment,
        other => panic!("{other:?}"),
    }
}

/// Something that happens to a run. Indices choose among what there is.
#[derive(Clone, Debug)]
enum Happening {
    /// An epoch that is ready is begun.
    Begin(Index),
    /// An epoch that was begun is done.
    Finish(Index),
    /// An epoch that was begun is given up; its worker may still finish it.
    Release(Index),
    /// An outcome comes once more, from any time before, even from before a crash.
    Repeat(Index),
    /// What has been done so far is stored.
    Store,
    /// Everything that is not stored is lost.
    Crash,
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let one = prop_oneof![
        6 => any::<Index>().prop_map(Happening::Begin),
        6 => any::<Index>().prop_map(Happening::Finish),
        1 => any::<Index>().prop_map(Happening::Release),
        2 => any::<Index>().prop_map(Happening::Repeat),
        1 => Just(Happening::Store),
        1 => Just(Happening::Crash),
    ];
    prop::collection::vec(one, 0..120)
}

/// A run, what is stored of it, and everything that is under way.
struct Drive {
    experiment: Experiment,
    evolver: Arc<dyn Evolver>,
    archipelago: Archipelago,
    /// All marks and remains of each island, and how many of them are stored.
    histories: Vec<IslandHistory>,
    stored: Vec<usize>,
    begun: Vec<EpochTask>,
    done: Vec<(EpochTask, EpochOutcome)>,
    /// The end that was written down because the time was up.
    decided: Option<End>,
}

impl Drive {
    fn new(experiment: &Experiment) -> Self {
        let islands = experiment.setting().islands.len();
        Self {
            experiment: experiment.clone(),
            evolver: experiment.evolver(),
            archipelago: Archipelago::new(experiment, None),
            histories: vec![IslandHistory::default(); islands],
            stored: vec![0; islands],
            begun: vec![],
            done: vec![],
            decided: None,
        }
    }

    fn happen(&mut self, happening: &Happening) {
        match happening {
            Happening::Begin(which) => self.begin(*which),
            Happening::Finish(which) => self.finish(*which),
            Happening::Release(which) if !self.begun.is_empty() => {
                let island = self.begun[which.index(self.begun.len())].island;
                self.archipelago.release(island);
            }
            Happening::Repeat(which) if !self.done.is_empty() => {
                let (task, outcome) = self.done[which.index(self.done.len())].clone();
                self.deliver(&task, &outcome);
            }
            Happening::Store => self.stored = self.histories.iter().map(|h| h.marks.len()).collect(),
            Happening::Crash => self.crash(),
            Happening::Release(_) | Happening::Repeat(_) => {}
        }
    }

    fn begin(&mut self, which: Index) {
        let ready = self.archipelago.ready();
        if !ready.is_empty() {
            let task = self.archipelago.begin(ready[which.index(ready.len())]);
            self.begun.push(task);
        }
    }

    fn finish(&mut self, which: Index) {
        if !self.begun.is_empty() {
            let task = self.begun.swap_remove(which.index(self.begun.len()));
            let outcome = epoch::run(&*self.evolver, &task).expect("its inputs are right");
            self.deliver(&task, &outcome);
            self.done.push((task, outcome));
        }
    }

    fn deliver(&mut self, task: &EpochTask, outcome: &EpochOutcome) {
        match self.archipelago.complete(task, outcome) {
            Ok(Completion::New(mark)) => {
                let history = &mut self.histories[task.island as usize];
                assert_eq!(mark.epoch, history.marks.len() as u64);
                history.recent.push(Remains {
                    epoch: mark.epoch,
                    state: outcome.state.to_vec(),
                    departure: outcome.departure.to_vec(),
                });
                history.marks.push(mark);
            }
            // What was run before a crash may be ahead of what was stored, or belong to a past that was lost.
            Ok(Completion::Repeated | Completion::Late)
            | Err(CompletionError::Early { .. } | CompletionError::Inputs { .. }) => {}
            // Asynchronously another past may have led to another outcome of the same epoch.
            Err(CompletionError::Differs { .. }) if self.is_asynchronous() => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn is_asynchronous(&self) -> bool {
        self.experiment.mode() == experiment::file::Mode::Asynchronous
    }

    fn crash(&mut self) {
        for (history, &stored) in self.histories.iter_mut().zip(&self.stored) {
            history.marks.truncate(stored);
            history.recent.truncate(stored);
        }
        let complete = *self.stored.iter().min().expect("there is an island");
        let needed = complete.saturating_sub(1);
        let restored = self.histories.iter().map(|history| IslandHistory {
            marks: history.marks.clone(),
            recent: history.recent[needed.min(history.recent.len())..].to_vec(),
        });
        self.archipelago = Archipelago::new(&self.experiment, None);
        self.decided.iter().for_each(|end| self.archipelago.decide(end.clone()));
        self.archipelago.restore(restored.collect());
    }

    /// Continues, lowest epoch first, until nothing is ready.
    fn run_out(&mut self) {
        while let Some(&island) = self.archipelago.ready().first() {
            let task = self.archipelago.begin(island);
            let outcome = epoch::run(&*self.evolver, &task).expect("its inputs are right");
            self.deliver(&task, &outcome);
        }
        // What is still running somewhere finishes too.
        while !self.begun.is_empty() && self.archipelago.end().is_none() {
            let task = self.begun.remove(0);
            self.archipelago.release(task.island);
            while let Some(&island) = self.archipelago.ready().first() {
                let task = self.archipelago.begin(island);
                let outcome = epoch::run(&*self.evolver, &task).expect("its inputs are right");
                self.deliver(&task, &outcome);
            }
        }
    }

    fn result(&self) -> (Option<End>, Option<Digest>) {
        (self.archipelago.end().cloned(), self.archipelago.digest())
    }

    /// Computes every epoch again from what its record says it took.
    fn check_records(&self) {
        let recall = |island: u32, epoch: u64| &self.histories[island as usize].recent[epoch as usize];
        for (island, history) in (0..).zip(&self.histories) {
            for mark in &history.marks {
                let packet = |&(from, epoch): &(u32, u64)| Packet {
                    from,
                    epoch,
                    departure: recall(from, epoch).departure.clone().into(),
                };
                let Mark { epoch, digest, standing, took, .. } = mark;
                let before = epoch.checked_sub(1).map(|before| recall(island, before).state.clone().into());
                let task = EpochTask {
                    island,
                    epoch: *epoch,
                    until: standing.generation,
                    state: before,
                    packets: took.iter().map(packet).collect(),
                };
                let again = epoch::run(&*self.evolver, &task).expect("its inputs are right");
                assert_eq!(again.digest, *digest, "island {island}, epoch {epoch}");
            }
        }
    }
}

fn solo(experiment: &Experiment) -> (Option<End>, Option<Digest>) {
    let outcome = solo::evolve(experiment, || false).expect("it runs").expect("nobody stops it");
    (Some(outcome.end), Some(outcome.digest))
}

/// A budget, and why the run ends with it.
fn budgets() -> impl Strategy<Value = (String, Reason)> {
    prop_oneof![
        (0u64..20)
            .prop_map(|generations| (format!("{{ generations = {generations} }}"), Reason::Generations)),
        (1u64..400)
            .prop_map(|evaluations| (format!("{{ evaluations = {evaluations} }}"), Reason::Evaluations)),
        Just(("{ target_fitness = 19, evaluations = 100000 }".to_owned(), Reason::Target)),
        (1u64..12).prop_map(|stagnation| (format!("{{ stagnation = {stagnation} }}"), Reason::Stagnation)),
    ]
}

fn topologies() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("ring"), Just("isolated"), Just("star"), Just("fully-connected"), Just("two-way-ring")]
}

#[test]
fn what_arrives_after_the_end_is_late() {
    let mut ended = Drive::new(&experiment("synchronous", "isolated", 3, "{ stagnation = 1 }", 30));
    ended.run_out();
    let result = ended.result();
    let end = result.0.clone().expect("it ends");
    // The same run as it would have continued.
    let mut longer = Drive::new(&experiment("synchronous", "isolated", 3, "{ generations = 20 }", 30));
    while let Some(&island) = longer.archipelago.ready().first() {
        let task = longer.archipelago.begin(island);
        let outcome = epoch::run(&*longer.evolver, &task).expect("its inputs are right");
        longer.deliver(&task, &outcome);
        if task.epoch > end.epoch {
            assert!(matches!(ended.archipelago.complete(&task, &outcome), Ok(Completion::Late)));
        }
    }
    assert!(longer.result().0.expect("it ends").epoch > end.epoch);
    assert_eq!(ended.result(), result);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn there_is_one_digest(
        happenings in happenings(), topology in topologies(), islands in 1u32..6, (budget, reason) in budgets(), seed in 0u64..1000,
    ) {
        let experiment = experiment("synchronous", topology, islands, &budget, seed);
        let expected = solo(&experiment);
        let mut drive = Drive::new(&experiment);
        for happening in &happenings {
            drive.happen(happening);
        }
        drive.run_out();
        prop_assert_eq!(drive.result(), expected.clone());
        prop_assert_eq!(expected.0.map(|end| end.reason), Some(reason));
        // The stored objects give the same result again.
        drive.happen(&Happening::Store);
        drive.crash();
        drive.run_out();
        prop_assert_eq!(drive.result(), solo(&experiment));
    }

    #[test]
    fn a_run_ends_where_that_was_decided_whatever_happens_meanwhile(
        before in happenings(), meanwhile in happenings(), after in happenings(), written in any::<bool>(),
        mode in prop_oneof![Just("synchronous"), Just("asynchronous")], topology in topologies(), islands in 1u32..5, seed in 0u64..1000,
    ) {
        let experiment_until =
            |generations: u64| experiment(mode, topology, islands, &format!("{{ generations = {generations} }}"), seed);
        let mut drive = Drive::new(&experiment_until(60));
        for happening in &before {
            drive.happen(happening);
        }
        let proposed = drive.archipelago.propose_end();
        prop_assert!(drive.archipelago.propose_end().is_none(), "one at a time");
        for happening in meanwhile.iter().filter(|happening| !matches!(happening, Happening::Crash)) {
            drive.happen(happening);
        }
        match proposed.filter(|_| written) {
            Some(end) => {
                drive.archipelago.decide(end.clone());
                drive.decided = Some(end);
            }
            None => drive.archipelago.withdraw(),
        }
        for happening in &after {
            drive.happen(happening);
        }
        prop_assert!(drive.decided.is_none() || drive.archipelago.propose_end().is_none(), "it is decided");
        drive.run_out();
        let last = drive.decided.clone().unwrap_or(End { epoch: 19, reason: Reason::Generations });
        let result = drive.result();
        prop_assert_eq!(result.0.as_ref(), Some(&last));
        if mode == "synchronous" {
            prop_assert_eq!(result.1, solo(&experiment_until(3 * (last.epoch + 1))).1);
        }
        drive.check_records();
        drive.happen(&Happening::Store);
        drive.crash();
        prop_assert_eq!(drive.result(), result);
    }

    #[test]
    fn records_tell_what_an_asynchronous_run_took(
        happenings in happenings(), topology in topologies(), islands in 1u32..6, seed in 0u64..1000,
    ) {
        let experiment = experiment("asynchronous", topology, islands, "{ generations = 14 }", seed);
        let mut drive = Drive::new(&experiment);
        for happening in &happenings {
            drive.happen(happening);
        }
        drive.run_out();
        drive.check_records();
        let result = drive.result();
        prop_assert!(result.1.is_some());
        drive.happen(&Happening::Store);
        drive.crash();
        prop_assert_eq!(drive.result(), result);
    }

    #[test]
    fn extending_at_a_whole_epoch_is_asking_for_more(
        epochs in 1u64..4, more in 1u64..14, happenings in happenings(), seed in 0u64..1000,
    ) {
        let at_first = experiment("synchronous", "ring", 3, &format!("{{ generations = {} }}", 3 * epochs), seed);
        let at_once = experiment("synchronous", "ring", 3, &format!("{{ generations = {} }}", 3 * epochs + more), seed);
        let mut drive = Drive::new(&at_first);
        for happening in &happenings {
            drive.happen(happening);
        }
        drive.run_out();
        let complete = drive.archipelago.complete_epochs();
        drive.archipelago.extend(complete, *at_once.budget());
        drive.archipelago.judge_again();
        drive.run_out();
        prop_assert_eq!(drive.result(), solo(&at_once));
    }
}

#[test]
fn impossible_outcomes_are_refused() {
    let experiment = experiment("synchronous", "ring", 2, "{ generations = 9 }", 1);
    let evolver = experiment.evolver();
    let mut archipelago = Archipelago::new(&experiment, None);
    let task = archipelago.begin(0);
    let outcome = epoch::run(&*evolver, &task).unwrap();
    let mut refuse = |change: &dyn Fn(&mut EpochTask, &mut EpochOutcome)| {
        let (mut task, mut outcome) = (task.clone(), outcome.clone());
        change(&mut task, &mut outcome);
        archipelago.complete(&task, &outcome).expect_err("it cannot be").to_string()
    };
    assert_eq!(refuse(&|task, _| task.island = 2), "expected an island from 0 to 1, found `2`");
    assert_eq!(refuse(&|task, _| task.epoch = 1), "island 0: expected epoch 0 or earlier, found `1`");
    let message = refuse(&|_, outcome| outcome.standing.generation = 7);
    assert_eq!(message, "island 0, epoch 0: expected generation 3 at its end, found `7`");
    assert!(matches!(archipelago.complete(&task, &outcome), Ok(Completion::New(_))));
    assert_eq!(archipelago.complete(&task, &outcome), Ok(Completion::Repeated));
    let mut corrupt = outcome.clone();
    corrupt.digest = Digest::of(b"another");
    let error = archipelago.complete(&task, &corrupt).expect_err("it is not what was accepted");
    assert!(error.to_string().ends_with("corruption"), "{error}");
}

#[test]
fn outcomes_of_a_lost_past_are_refused() {
    let experiment = experiment("asynchronous", "ring", 2, "{ generations = 9 }", 1);
    let evolver = experiment.evolver();
    let mut archipelago = Archipelago::new(&experiment, None);
    for island in [0, 1] {
        let task = archipelago.begin(island);
        let outcome = epoch::run(&*evolver, &task).unwrap();
        archipelago.complete(&task, &outcome).unwrap();
    }
    let right = archipelago.begin(0);
    let outcome = epoch::run(&*evolver, &right).unwrap();
    let mut other_state = right.clone();
    other_state.state = Some(vec![1, 2, 3].into());
    let mut other_packet = right.clone();
    other_packet.packets[0].departure = vec![4, 5, 6].into();
    for wrong in [other_state, other_packet] {
        let error = archipelago.complete(&wrong, &outcome).expect_err("nobody gave it these inputs");
        assert!(matches!(error, CompletionError::Inputs { island: 0, epoch: 1 }), "{error}");
    }
    assert!(matches!(archipelago.complete(&right, &outcome), Ok(Completion::New(_))));
}

/// Whatever a run is extended by, reading it back from its records gives what the living run had.
#[test]
fn a_smaller_budget_does_not_undo_the_past() {
    let long = experiment("synchronous", "ring", 3, "{ generations = 30 }", 4);
    for budget in ["{ evaluations = 20 }", "{ stagnation = 1 }", "{ target_fitness = 1, generations = 60 }"] {
        let mut drive = Drive::new(&long);
        drive.run_out();
        let complete = drive.archipelago.complete_epochs();
        let budget = *experiment("synchronous", "ring", 3, budget, 4).budget();
        drive.archipelago.extend(complete, budget);
        drive.archipelago.judge_again();
        drive.run_out();
        let living = drive.result();
        assert!(living.1.is_some());

        let mut read_back = Archipelago::new(&long, None);
        read_back.extend(complete, budget);
        read_back.restore(drive.histories.clone());
        assert_eq!((read_back.end().cloned(), read_back.digest()), living, "{budget:?}");
    }
}

#[test]
fn slower_islands_take_nothing_from_beyond_a_decided_end() {
    let experiment = experiment("asynchronous", "ring", 2, "{ generations = 60 }", 1);
    let evolver = experiment.evolver();
    let mut archipelago = Archipelago::new(&experiment, None);
    let compute = |archipelago: &mut Archipelago, task: &EpochTask| {
        archipelago.complete(task, &epoch::run(&*evolver, task).unwrap()).unwrap()
    };
    for island in [0, 1, 0] {
        let task = archipelago.begin(island);
        compute(&mut archipelago, &task);
    }
    let beyond = archipelago.begin(0);
    let end = archipelago.propose_end().unwrap();
    assert_eq!((beyond.epoch, end.epoch), (2, 1));
    archipelago.decide(end);
    assert!(matches!(compute(&mut archipelago, &beyond), Completion::Late));
    let last = archipelago.begin(1);
    assert_eq!(last.packets.iter().map(|packet| packet.epoch).collect::<Vec<_>>(), [0, 1]);
    compute(&mut archipelago, &last);
    assert_eq!(archipelago.end().map(|end| end.epoch), Some(1));
}
