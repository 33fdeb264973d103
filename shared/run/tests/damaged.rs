//! A store that was damaged after its objects were written: whole objects with true checksums, which are deleted, swapped
//! or say something else. Opening such a run is refused, and nothing is changed by that.

use crate::reopen::{Process, block_on, experiment, id, play};
use archipelago::Remains;
use codec::Digest;
use proptest::sample::Index;
use run::record::{Commit, EpochRecord};
use run::{Damage, Place, RunError, StateName};
use store::{Kind, Path, Store};

/// Every object of a run, with its bytes as a file has them.
async fn objects(store: &Store) -> Vec<Path> {
    store.list(&id().folder()).await.unwrap()
}

/// A run that a crash has interrupted: some of its epochs are written.
async fn interrupted(mode: &str) -> Store {
    let (store, experiment) = (Store::memory(), experiment(mode));
    let mut process = Process::start(&store, &experiment, 1).await;
    for _ in 0..12 {
        process.work(0);
    }
    process.write(vec![0, 1, 2]).await;
    store
}

/// Opens a run that is damaged; returns what is said, after nothing was changed.
async fn refused(store: &Store) -> RunError {
    let before = objects(store).await;
    let opening = crate::reopen::opening(77);
    let error = match run::open(store, &id(), opening).await {
        Ok((open, _)) => {
            panic!("opened at {:?}", (0..3).map(|i| open.archipelago().done(i)).collect::<Vec<_>>())
        }
        Err(error) => error,
    };
    assert_eq!(objects(store).await, before, "nothing is written or deleted: {error}");
    assert!(error.to_string().contains("atoll repair small"), "{error}");
    error
}

async fn alter<T: bincode::Encode + bincode::Decode<()>>(
    store: &Store,
    path: &Path,
    kind: Kind,
    change: impl FnOnce(&mut T),
) {
    let mut value: T = store.read_value(path, kind).await.unwrap();
    change(&mut value);
    store.delete(path).await.unwrap();
    store.create_value(path, kind, &value).await.unwrap();
}

async fn states(store: &Store) -> Vec<StateName> {
    let places = objects(store).await;
    let states = places.iter().filter_map(|path| match Place::of(path)?.1 {
        Place::State(name) => Some(name),
        _ => None,
    });
    states.collect()
}

async fn newest_state(store: &Store, island: u32) -> Path {
    let states = states(store).await;
    let newest = states.into_iter().filter(|name| name.island == island).max_by_key(|name| name.epoch);
    Place::State(newest.unwrap()).in_run(&id())
}

#[test]
fn states_that_were_deleted_are_missed_and_nothing_is_cut() {
    block_on(async {
        for mode in ["synchronous", "asynchronous"] {
            let store = interrupted(mode).await;
            for name in states(&store).await.into_iter().filter(|name| name.island == 1) {
                store.delete(&Place::State(name).in_run(&id())).await.unwrap();
            }
            match refused(&store).await {
                RunError::Damaged { damage: Damage::State { island: 1, .. }, .. } => {}
                other => panic!("{other:?}"),
            }
        }
    });
}

#[test]
fn a_finished_run_without_its_last_states_is_not_begun_again() {
    block_on(async {
        let (store, _) = play(&experiment("synchronous"), vec![]).await;
        store.delete(&newest_state(&store, 2).await).await.unwrap();
        assert!(matches!(
            refused(&store).await,
            RunError::Damaged { damage: Damage::State { island: 2, epoch: 6 }, .. }
        ));
    });
}

#[test]
fn states_of_two_islands_that_were_swapped_are_not_taken_up() {
    block_on(async {
        let store = interrupted("synchronous").await;
        let [one, other] = [newest_state(&store, 0).await, newest_state(&store, 1).await];
        let [first, second] = [
            store.read(&one, Kind::IslandState).await.unwrap(),
            store.read(&other, Kind::IslandState).await.unwrap(),
        ];
        for (path, body) in [(&one, second), (&other, first)] {
            store.delete(path).await.unwrap();
            store.create(path, Kind::IslandState, body).await.unwrap();
        }
        assert!(matches!(refused(&store).await, RunError::Altered { .. }));
    });
}

#[test]
fn a_state_that_says_something_else_is_not_taken_up() {
    type Change = fn(&mut Remains);
    let changes: [Change; 4] = [
        |remains| remains.epoch = u64::MAX,
        |remains| *remains.state.last_mut().unwrap() ^= 1,
        |remains| *remains.departure.last_mut().unwrap() ^= 1,
        |remains| remains.state.clear(),
    ];
    block_on(async {
        for change in changes {
            let store = interrupted("synchronous").await;
            alter(&store, &newest_state(&store, 1).await, Kind::IslandState, change).await;
            assert!(matches!(refused(&store).await, RunError::Altered { .. }));
        }
    });
}

/// What commits say may be anything, and no number in them makes a reader panic.
#[test]
fn records_that_say_something_else_are_not_built_upon() {
    type Change = fn(&mut EpochRecord);
    let changes: [Change; 8] = [
        |record| record.mark.epoch = u64::MAX,
        |record| record.mark.epoch = u64::MAX - 1,
        |record| record.mark.standing.generation = u64::MAX,
        |record| record.mark.standing.generation -= 1,
        |record| record.mark.digest = Digest::of(b"another"),
        |record| record.mark.chain = Digest::of(b"another"),
        |record| record.statistics.diversity += 1.0,
        |record| record.mark.took = vec![(2, u64::MAX)],
    ];
    block_on(async {
        for (number, change) in changes.into_iter().enumerate() {
            let store = interrupted("synchronous").await;
            let commit = store.list(&id().commits()).await.unwrap().pop().unwrap();
            alter(&store, &commit, Kind::Commit, |commit: &mut Commit| {
                change(commit.islands[1].1.last_mut().unwrap());
            })
            .await;
            // What was taken is compared by `verify`, which has what was sent.
            if number < 7 {
                refused(&store).await;
            } else {
                drop(run::open(&store, &id(), crate::reopen::opening(77)).await);
            }
        }
    });
}

#[test]
fn evaluations_without_end_are_no_panic() {
    block_on(async {
        let store = interrupted("synchronous").await;
        for path in store.list(&id().commits()).await.unwrap() {
            alter(&store, &path, Kind::Commit, |commit: &mut Commit| {
                let records = commit.islands.iter_mut().flat_map(|(_, records)| records);
                records.for_each(|record| record.mark.standing.evaluations = u64::MAX);
            })
            .await;
        }
        refused(&store).await;
        let reader = run::reader::Reader::read(&store, &id()).await.unwrap();
        assert_eq!(reader.stored().standing().evaluations, u64::MAX);
    });
}

#[test]
fn an_altered_experiment_is_not_run() {
    block_on(async {
        for (from, to) in [("seed = 3", "seed = 4"), ("keep = 2", "keep = 3")] {
            let store = interrupted("synchronous").await;
            let path = Place::Experiment.in_run(&id());
            let text = store.read_text(&path, 1 << 20).await.unwrap();
            assert!(text.contains(from), "{text}");
            store.delete(&path).await.unwrap();
            store.create_text(&path, &text.replace(from, to)).await.unwrap();
            assert!(matches!(
                refused(&store).await,
                RunError::Damaged { damage: Damage::Experiment { .. }, .. }
            ));
        }
    });
}

#[test]
fn commits_and_events_that_were_deleted_are_missed() {
    block_on(async {
        for mode in ["synchronous", "asynchronous"] {
            let store = Store::memory();
            let mut process = Process::start(&store, &experiment(mode), 1).await;
            for _ in 0..3 {
                for _ in 0..6 {
                    process.work(0);
                }
                process.write(vec![0, 1, 2]).await;
            }
            let commits = store.list(&id().commits()).await.unwrap();
            assert_eq!(commits.len(), 3);
            let middle = store.read(&commits[1], Kind::Commit).await.unwrap();
            store.delete(&commits[1]).await.unwrap();
            assert!(matches!(
                refused(&store).await,
                RunError::Damaged { damage: Damage::Records { .. }, .. }
            ));
            store.create(&commits[1], Kind::Commit, middle).await.unwrap();
            store.delete(&Place::Event(1).in_run(&id())).await.unwrap();
            refused(&store).await;
            store.delete(&Place::Event(0).in_run(&id())).await.unwrap();
            refused(&store).await;
        }
    });
}

/// Opening a run deletes nothing: a request that is delayed past a takeover would hit what the successor wrote under the
/// same name. What lay beyond the cut is deleted later, when its name can no longer be needed.
#[test]
fn opening_deletes_nothing_and_strays_are_pruned_once_their_epochs_are_written() {
    block_on(async {
        for mode in ["synchronous", "asynchronous"] {
            let (store, experiment) = (Store::memory(), experiment(mode));
            let mut first = Process::start(&store, &experiment, 1).await;
            for _ in 0..6 {
                first.work(0);
            }
            first.write(vec![0, 1, 2]).await;
            for _ in 0..6 {
                first.work(0);
            }
            // All states arrive, and the commit that promises them does not.
            first.crash_before_the_commit(vec![0, 1, 2]).await;
            let before = objects(&store).await;
            let mut second = Process::start(&store, &experiment, 2).await;
            let after = objects(&store).await;
            assert!(before.iter().all(|path| after.contains(path)), "opening deletes nothing");
            let strays: Vec<StateName> =
                states(&store).await.into_iter().filter(|name| name.epoch > 1).collect();
            assert!(strays.len() >= 3, "{strays:?}");
            // The first step of pruning takes nothing whose name may still be written.
            while let Some(pruning) = second.open.pruning() {
                let is_free =
                    |place: &Place| place.state().is_some_and(|of| mode == "asynchronous" || of.epoch < 1);
                assert!(pruning.places.iter().all(is_free), "{pruning:?}");
                second.open.settle_pruning(&pruning);
            }
            let mut second = Process::start(&store, &experiment, 3).await;
            second.finish().await;
            let left = states(&store).await;
            let strays: Vec<_> = strays.iter().filter(|name| left.contains(name) && name.epoch < 4).collect();
            assert!(strays.is_empty() || mode == "synchronous", "{strays:?}");
            assert!(left.len() <= 3 * 4 + 3, "two of each island, and milestones: {left:?}");
        }
    });
}

/// A checkpoint of another island, at a name that is not its own, is not taken for the epoch's.
#[test]
fn a_checkpoint_of_another_island_is_not_resumed() {
    block_on(async {
        let (store, experiment) = (Store::memory(), experiment("synchronous"));
        let mut first = Process::start(&store, &experiment, 1).await;
        let [zero, one] = [first.checkpoint(0), first.checkpoint(1)];
        first.write(vec![0, 1]).await;
        let path = |island, generation| {
            let of = StateName { island, epoch: 0, attempt: 0, term: 0 };
            Place::Checkpoint { generation, of }.in_run(&id())
        };
        let swapped = [path(0, zero), path(1, one)];
        let bodies = [
            store.read(&swapped[1], Kind::Checkpoint).await.unwrap(),
            store.read(&swapped[0], Kind::Checkpoint).await.unwrap(),
        ];
        for (path, body) in swapped.iter().zip(bodies) {
            store.delete(path).await.unwrap();
            store.create(path, Kind::Checkpoint, body).await.unwrap();
        }
        let mut second = Process::start(&store, &experiment, 2).await;
        assert!(second.open.assign_ready(0).checkpoint.is_none());
        assert!(second.open.assign_ready(1).checkpoint.is_none());
        let (_, calm) = play(&experiment, vec![]).await;
        second.open.release(0);
        second.open.release(1);
        assert_eq!(second.finish().await, calm);
    });
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]

    /// Whatever a history of crashes leaves behind is no damage; whatever is taken away from the states that its last
    /// records promise is.
    #[test]
    fn crashes_are_told_from_damage(
        steps in proptest::collection::vec(crate::reopen::step(), 0..40),
        at: Index,
        asynchronous: bool,
    ) {
        let mode = if asynchronous { "asynchronous" } else { "synchronous" };
        block_on(async {
            let experiment = experiment(mode);
            let store = crate::reopen::play_unfinished(&experiment, steps).await;
            let reader = run::reader::Reader::read(&store, &id()).await.unwrap();
            assert_eq!(reader.damage, []);
            let newest: Vec<_> = (0..3).filter_map(|i| Some((i, *reader.stored().states[i as usize].last_key_value()?.1))).collect();
            let records = |i: u32| reader.stored().records[i as usize].len() as u64;
            let newest: Vec<_> = newest.into_iter().filter(|(i, name)| name.epoch + 1 == records(*i)).collect();
            if !newest.is_empty() {
                let (island, name) = newest[at.index(newest.len())];
                store.delete(&Place::State(name).in_run(&id())).await.unwrap();
                let found = run::reader::Reader::read(&store, &id()).await.unwrap().damage;
                let complete = (0..3).map(records).min().unwrap();
                let is_promised = name.epoch + 1 >= complete;
                assert_eq!(found.contains(&Damage::State { island, epoch: name.epoch }), is_promised, "{found:?}");
            }
        });
    }
}
