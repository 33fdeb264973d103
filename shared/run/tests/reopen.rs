//! Random histories of a run with crashes in the middle of writing: what is opened again continues, and ends with the
//! digest of the undisturbed run.

use codec::Digest;
use evolution::epoch;
use experiment::{Experiment, Plan};
use proptest::prelude::*;
use run::reader::Reader;
use run::record::Labour;
use run::{Damage, Journal, OpenRun, Opening, Owner, Place, RunEvent, RunHead, RunId, Status, Summary};
use std::collections::BTreeSet;
use std::time::Duration;
use store::{Nonce, Path, Store};

const SYNCHRONOUS: &str = r#"
name = "small"
seed = 3
[problem]
kind = "onemax"
length = 24
[algorithm]
kind = "ga"
population = 8
[islands]
count = 3
[migration]
interval = 2
[budget]
generations = 13
[retention]
keep = 2
milestones = 3
"#;

pub(crate) fn experiment(mode: &str) -> Experiment {
    let text = SYNCHRONOUS.replace("interval = 2", &format!("interval = 2\nmode = \"{mode}\""));
    match experiment::parse("small.toml", &text, None) {
        Ok(Plan::Single(experiment)) => *experiment,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn id() -> RunId {
    RunId::new("small").unwrap()
}

pub(crate) fn opening(number: u64) -> Opening {
    let owner = Owner { process: number as u32, ..Owner::default() };
    Opening { nonce: Nonce(number.into()), now: number, owner, claim: None }
}

/// One process that has the run open.
pub(crate) struct Process {
    pub(crate) open: OpenRun,
    pub(crate) journal: Journal,
    store: Store,
    experiment: Experiment,
}

/// What happens next.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// An epoch of one of the islands that are ready is computed.
    Work(usize),
    /// Some islands are written.
    Write(Vec<u32>),
    /// The process ends while it writes some islands: this number of objects arrives.
    Crash(Vec<u32>, prop::sample::Index),
    /// What retention does not keep is deleted.
    Prune,
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let islands = || prop::collection::vec(0..3u32, 0..4);
    prop_oneof![
        6 => any::<usize>().prop_map(Step::Work),
        2 => islands().prop_map(Step::Write),
        1 => (islands(), any::<prop::sample::Index>()).prop_map(|(islands, at)| Step::Crash(islands, at)),
        1 => Just(Step::Prune),
    ]
}

impl Process {
    pub(crate) async fn start(store: &Store, experiment: &Experiment, number: u64) -> Self {
        let (open, journal) = run::create(store, &id(), experiment, None, opening(number)).await.unwrap();
        Self { open, journal, store: store.clone(), experiment: experiment.clone() }
    }

    pub(crate) fn work(&mut self, which: usize) {
        let ready = self.open.archipelago().ready();
        if ready.is_empty() {
            return;
        }
        let assignment = self.open.assign_ready(ready[which % ready.len()]);
        let outcome = epoch::run(&*self.experiment.evolver(), &assignment.task).unwrap();
        self.open.complete(&assignment.task, &outcome, Labour::default()).unwrap();
    }

    pub(crate) async fn write(&mut self, islands: Vec<u32>) {
        let batch = self.open.take_batch(islands);
        batch.write(&self.store).await.unwrap();
        self.open.settle(&batch);
    }

    /// Writes, and takes back the last of the new objects: as if the process had ended before.
    async fn crash(mut self, islands: Vec<u32>, at: prop::sample::Index) {
        self.write_partly(islands, at).await;
    }

    /// Writes, and takes back the last of the new objects: as if the store had failed in between.
    pub(crate) async fn write_partly(&mut self, islands: Vec<u32>, at: prop::sample::Index) {
        let before = self.store.list(&id().folder()).await.unwrap();
        let batch = self.open.take_batch(islands);
        batch.write(&self.store).await.unwrap();
        let mut new = self.store.list(&id().folder()).await.unwrap();
        new.retain(|path| !before.contains(path));
        // States come first, then the commit that promises them, then checkpoints.
        new.sort_by_key(|path| match Place::of(path).unwrap().1 {
            Place::State(_) => 0,
            Place::Commit { .. } => 1,
            _ => 2,
        });
        for path in &new[at.index(new.len() + 1)..] {
            self.store.delete(path).await.unwrap();
        }
    }

    /// Writes, and ends before the commit arrives.
    pub(crate) async fn crash_before_the_commit(mut self, islands: Vec<u32>) {
        let before = self.store.list(&id().commits()).await.unwrap();
        let batch = self.open.take_batch(islands);
        batch.write(&self.store).await.unwrap();
        for path in self.store.list(&id().commits()).await.unwrap() {
            if !before.contains(&path) {
                self.store.delete(&path).await.unwrap();
            }
        }
    }

    /// Makes a checkpoint inside the next epoch of an island, and returns its generation.
    pub(crate) fn checkpoint(&mut self, island: u32) -> u64 {
        let assignment = self.open.assign_ready(island);
        let evolver = self.experiment.evolver();
        let mut epoch = evolver.begin(&assignment.task).unwrap();
        epoch.generation();
        let (standing, bytes) = (epoch.standing(), epoch.checkpoint().unwrap());
        self.open.note_checkpoint(&assignment.task, standing, &bytes, Labour::default());
        standing.generation
    }

    pub(crate) async fn prune(&mut self) {
        self.open.prune_everything();
        while let Some(pruning) = self.open.pruning() {
            pruning.delete(&self.store, None).await.unwrap();
            self.open.settle_pruning(&pruning);
        }
    }

    pub(crate) async fn finish(&mut self) -> Digest {
        while self.open.archipelago().next_ready().is_some() {
            self.work(0);
        }
        let all = self.open.take_everything();
        all.write(&self.store).await.unwrap();
        self.open.settle(&all);
        self.prune().await;
        if let Some(event) = self.open.finish(9, 9) {
            self.journal.append(&event).await.unwrap();
            let summary =
                Summary::of(&event, self.open.outline(9), (self.open.created(), 0), self.journal.head())
                    .unwrap();
            summary.write(&self.store, &id()).await.unwrap();
            self.open.note_finished();
        }
        self.open.archipelago().digest().unwrap()
    }
}

pub(crate) async fn play(experiment: &Experiment, steps: Vec<Step>) -> (Store, Digest) {
    let store = Store::memory();
    let mut process = follow(&store, experiment, steps).await;
    let digest = process.finish().await;
    (store, digest)
}

/// The same, up to a crash.
pub(crate) async fn play_unfinished(experiment: &Experiment, steps: Vec<Step>) -> Store {
    let store = Store::memory();
    drop(follow(&store, experiment, steps).await);
    store
}

async fn follow(store: &Store, experiment: &Experiment, steps: Vec<Step>) -> Process {
    let mut number = 0;
    let mut process = Process::start(store, experiment, number).await;
    for step in steps {
        match step {
            Step::Work(which) => process.work(which),
            Step::Write(islands) => process.write(islands).await,
            Step::Prune => process.prune().await,
            Step::Crash(islands, at) => {
                process.crash(islands, at).await;
                number += 1;
                process = Process::start(store, experiment, number).await;
            }
        }
    }
    process
}

async fn check_reopened(store: &Store, experiment: &Experiment, digest: Digest) {
    let reader = Reader::read(store, &id()).await.unwrap();
    assert_eq!(reader.damage, []);
    assert_eq!(reader.recorded.status, Status::Finished);
    let before = store.list(&id().folder()).await.unwrap();
    let again = Process::start(store, experiment, 99).await;
    assert!(again.open.is_finished());
    assert_eq!(again.open.archipelago().digest(), Some(digest));
    assert_eq!(store.list(&id().folder()).await.unwrap(), before, "an ended run is only read");
    let summary = Summary::read(store, &id()).await.unwrap().unwrap();
    assert_eq!(summary.digest(), Some(digest));
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn crashes_change_no_digest(steps in prop::collection::vec(step(), 0..60)) {
        block_on(async {
            let experiment = experiment("synchronous");
            let (_, calm) = play(&experiment, vec![]).await;
            let (store, digest) = play(&experiment, steps).await;
            assert_eq!(digest, calm);
            check_reopened(&store, &experiment, digest).await;
        });
    }

    #[test]
    fn an_asynchronous_run_is_what_its_records_say(steps in prop::collection::vec(step(), 0..60)) {
        block_on(async {
            let experiment = experiment("asynchronous");
            let (store, digest) = play(&experiment, steps).await;
            check_reopened(&store, &experiment, digest).await;
        });
    }
}

/// An older process writes after a newer one has opened the run: nothing of that counts, and nothing is in the way.
#[test]
fn late_writes_of_an_older_process_do_not_count() {
    block_on(async {
        let experiment = experiment("asynchronous");
        let store = Store::memory();
        let mut old = Process::start(&store, &experiment, 1).await;
        for _ in 0..6 {
            old.work(0);
        }
        old.write(vec![0, 1, 2]).await;
        for _ in 0..4 {
            old.work(0);
        }
        let mut new = Process::start(&store, &experiment, 2).await;
        old.write(vec![0, 1, 2]).await;
        let digest = new.finish().await;
        check_reopened(&store, &experiment, digest).await;
        let event = RunEvent::Paused { at: 5 };
        assert!(old.journal.append(&event).await.is_err(), "and it finds out with its next event");
    });
}

/// What was taken back is computed again under other names; nothing of before is changed.
#[test]
fn retracted_results_are_computed_again() {
    block_on(async {
        let experiment = experiment("synchronous");
        let (_, calm) = play(&experiment, vec![]).await;
        let store = Store::memory();
        let mut first = Process::start(&store, &experiment, 1).await;
        for _ in 0..9 {
            first.work(0);
        }
        first.write(vec![0, 1, 2]).await;
        let retracted =
            RunEvent::Retracted { cuts: vec![1, 1, 1], reason: "a broken worker".to_owned(), at: 7 };
        first.journal.append(&retracted).await.unwrap();
        let mut second = Process::start(&store, &experiment, 2).await;
        let done: Vec<u64> = (0..3).map(|island| second.open.archipelago().done(island)).collect();
        assert!(done.iter().all(|&done| done <= 1), "{done:?}");
        assert_eq!(second.finish().await, calm);
        let head = RunHead::read(&store, &id()).await.unwrap();
        assert_eq!(head.recorded().attempt, 1);
        check_reopened(&store, &experiment, calm).await;
    });
}

/// Deletes the objects that a function chooses, and returns what a reader finds.
async fn damage_after(choose: impl Fn(&Place) -> bool) -> Vec<Damage> {
    let (store, _) = play(&experiment("synchronous"), vec![]).await;
    let paths: Vec<Path> = store.list(&id().folder()).await.unwrap();
    for path in paths.iter().filter(|path| choose(&Place::of(path).unwrap().1)) {
        store.delete(path).await.unwrap();
    }
    Reader::read(&store, &id()).await.unwrap().damage
}

#[test]
fn whatever_is_missing_is_named() {
    block_on(async {
        assert_eq!(damage_after(|_| false).await, []);
        let last = damage_after(|place| *place == Place::Event(2)).await;
        assert_eq!(last, [Damage::Journal { expected: 3 }]);
        let whole = damage_after(|place| matches!(place, Place::Event(_))).await;
        assert!(whole.contains(&Damage::Journal { expected: 1 }), "{whole:?}");
        let records = damage_after(|place| matches!(place, Place::Commit { .. })).await;
        assert!(records.contains(&Damage::Records { island: 2, first: 0, last: 6 }), "{records:?}");
        let state = damage_after(|place| matches!(place, Place::State(name) if name.island == 1)).await;
        assert_eq!(state, [Damage::State { island: 1, epoch: 6 }]);
    });
}

#[test]
fn the_leading_champions_are_those_of_the_best_islands() {
    block_on(async {
        let (store, _) = play(&experiment("synchronous"), vec![]).await;
        let mut reader = Reader::read(&store, &id()).await.unwrap();
        let all = reader.champions().await;
        assert_eq!(reader.leading_champions(3).await, all);
        let highest = all.iter().flatten().map(|champion| champion.fitness).fold(f64::MIN, f64::max);
        for most in [1, 2] {
            let leading = reader.leading_champions(most).await;
            let read: Vec<_> = leading.iter().zip(&all).filter(|(leading, _)| leading.is_some()).collect();
            assert_eq!((leading.len(), read.len()), (3, most));
            assert!(read.iter().all(|(leading, known)| leading == known));
            assert!(read.iter().any(|(leading, _)| leading.as_ref().unwrap().fitness == highest));
        }
    });
}

/// A reader of a run lists states after its commits, and reads them after that; meanwhile the run goes on and deletes them.
#[test]
fn a_run_that_continues_while_it_is_read_is_whole() {
    const CALL: Duration = Duration::from_millis(10);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut ends = BTreeSet::new();
        for moment in 0..60 {
            let store = Store::memory();
            let mut process = Process::start(&store, &experiment("synchronous"), 1).await;
            let go_on = async |process: &mut Process, epochs| {
                (0..3 * epochs).for_each(|_| process.work(0));
                process.write(vec![0, 1, 2]).await;
                process.prune().await;
            };
            go_on(&mut process, 2).await;
            let far = store.clone().delayed(CALL);
            let reading = async {
                let mut reader = Reader::read(&far, &id()).await.unwrap();
                let champions = reader.champions().await;
                (reader, champions)
            };
            let living = async {
                tokio::time::sleep(moment * CALL / 2).await;
                go_on(&mut process, 3).await;
            };
            let ((reader, champions), ()) = tokio::join!(reading, living);
            assert_eq!(reader.damage, [], "the run went on after {moment} half calls");
            assert!(champions.iter().all(Option::is_some), "the run went on after {moment} half calls");
            ends.insert(reader.stored().records[0].len());
        }
        assert_eq!(ends, BTreeSet::from([2, 5]), "the run went on before, while and after it was read");
    });
}

#[test]
fn a_part_of_a_run_has_its_newest_epochs_and_champions() {
    block_on(async {
        let store = Store::memory();
        let mut process = Process::start(&store, &experiment("synchronous"), 1).await;
        for _ in 0..7 {
            (0..3).for_each(|_| process.work(0));
            process.write(vec![0, 1, 2]).await;
        }
        process.finish().await;
        let mut whole = Reader::read(&store, &id()).await.unwrap();
        let mut part = Reader::read_part(&store, &id(), 1).await.unwrap();
        let champions = [whole.champions().await, part.champions().await];
        assert_eq!((&champions[0], &part.damage), (&champions[1], &vec![]));
        let all = whole.stored().commits.len();
        let [whole, part] = [whole, part].map(|reader| run::history::of(&id(), reader, vec![None; 3]));
        assert_eq!((whole.part, part.part), (None, Some((2, all as u64))));
        assert_eq!((part.generations(), part.evaluations()), (whole.generations(), whole.evaluations()));
        for island in &part.islands {
            let epochs: Vec<u64> = island.epochs.iter().map(|epoch| epoch.number).collect();
            assert_eq!(epochs, [0, 6], "the first and the newest commit");
        }
    });
}

#[test]
fn an_outline_has_the_last_generation_of_each_epoch_and_is_whole() {
    block_on(async {
        let experiment = experiment("synchronous");
        let store = Store::memory();
        let mut process = Process::start(&store, &experiment, 1).await;
        // Several epochs of an island share a commit.
        for _ in 0..12 {
            process.work(0);
        }
        process.write(vec![0, 1, 2]).await;
        process.finish().await;
        let mut whole = Reader::read(&store, &id()).await.unwrap();
        let mut outline = Reader::read_outline(&store, &id()).await.unwrap();
        let champions = [whole.champions().await, outline.champions().await];
        assert_eq!(champions[0], champions[1]);
        assert_eq!((&whole.damage, &outline.damage), (&vec![], &vec![]));
        let rows = |reader: &Reader| -> Vec<usize> {
            let records = reader.stored().records.iter().flatten();
            records.map(|record| record.statistics.rows.len()).collect()
        };
        assert!(rows(&outline).iter().sum::<usize>() < rows(&whole).iter().sum());
        let [whole, outline] = [whole, outline].map(|reader| run::history::of(&id(), reader, vec![None; 3]));
        for (whole, outline) in whole.islands.iter().zip(&outline.islands) {
            assert_eq!(whole.epochs.len(), outline.epochs.len());
            for (whole, outline) in whole.epochs.iter().zip(&outline.epochs) {
                assert_eq!(whole.standing, outline.standing);
                assert_eq!(
                    outline.statistics.rows.as_slice(),
                    &whole.statistics.rows[whole.statistics.rows.len() - 1..]
                );
            }
        }
    });
}

#[test]
fn a_doubled_event_breaks_the_chain() {
    block_on(async {
        let (store, _) = play(&experiment("synchronous"), vec![]).await;
        let event = store.read(&Place::Event(2).in_run(&id()), store::Kind::Event).await.unwrap();
        store.create(&Place::Event(3).in_run(&id()), store::Kind::Event, event).await.unwrap();
        let reader = Reader::read(&store, &id()).await.unwrap();
        assert!(
            reader.damage[0].to_string().contains("does not follow the one before"),
            "{:?}",
            reader.damage
        );
        assert_eq!(reader.state(), "damaged");
    });
}
