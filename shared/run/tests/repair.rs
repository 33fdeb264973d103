//! Damaged runs are repaired without losing an object, and copies are whole or refused.

use crate::reopen::{Process, block_on, experiment, id, opening, play};
use codec::Digest;
use run::backup::copy_run;
use run::journal::JournalHead;
use run::summary::Ended;
use run::{Place, Repair, RunError, RunEvent, RunHead, Summary};
use store::{Kind, Path, Store};

/// A run with some commits, after which a process ended.
async fn interrupted(mode: &str) -> Store {
    let store = Store::memory();
    let mut process = Process::start(&store, &experiment(mode), 1).await;
    for _ in 0..3 {
        for _ in 0..5 {
            process.work(0);
        }
        process.write(vec![0, 1, 2]).await;
    }
    store
}

async fn objects(store: &Store) -> Vec<Path> {
    store.list(&id().folder()).await.unwrap()
}

async fn places(store: &Store, of: fn(&Place) -> bool) -> Vec<Path> {
    let all = objects(store).await.into_iter();
    all.filter(|path| Place::of(path).is_some_and(|(_, place)| of(&place))).collect()
}

/// What can happen to an object.
enum Mishap {
    Deleted,
    /// Its bytes are another's.
    Nonsense,
}

#[test]
fn a_repaired_run_comes_to_the_same_digest_and_loses_no_object() {
    let kinds: [fn(&Place) -> bool; 3] = [
        |place| matches!(place, Place::Event(_)),
        |place| matches!(place, Place::Commit { .. }),
        |place| matches!(place, Place::State(_)),
    ];
    block_on(async {
        let (_, calm) = play(&experiment("synchronous"), vec![]).await;
        for kind in kinds {
            for mishap in [Mishap::Deleted, Mishap::Nonsense] {
                let store = interrupted("synchronous").await;
                let path = places(&store, kind).await.pop().unwrap();
                store.delete(&path).await.unwrap();
                if matches!(mishap, Mishap::Nonsense) {
                    store.create_text(&path, "nonsense").await.unwrap();
                }
                let before = objects(&store).await;
                let repair = Repair::plan(&store, &id()).await.unwrap();
                assert_eq!(objects(&store).await, before, "a plan changes nothing");
                // The last commit and its states may be missing after a crash, too.
                if !repair.is_needed() {
                    assert!(matches!(mishap, Mishap::Deleted) && kind(&Place::Commit { term: 0, number: 0 }));
                    continue;
                }
                repair.carry_out(&store, &opening(8)).await.unwrap();
                let after = objects(&store).await;
                let name = |path: &Path| path.filename().unwrap().to_owned();
                let is_kept = |path: &&Path| after.iter().any(|kept| name(kept) == name(path));
                assert!(before.iter().all(|path| is_kept(&path)), "{before:?} {after:?}");
                assert!(!Repair::plan(&store, &id()).await.unwrap().is_needed());
                let head = RunHead::read(&store, &id()).await.unwrap();
                assert!(head.events.iter().any(|event| matches!(event, RunEvent::Retracted { .. })));
                let mut process = Process::start(&store, &experiment("synchronous"), 9).await;
                assert_eq!(process.finish().await, calm, "without {path}");
            }
        }
    });
}

/// As a store leaves it that has written an object to another place.
#[test]
fn an_object_with_an_unknown_name_is_moved_out_of_the_way() {
    block_on(async {
        let store = interrupted("synchronous").await;
        let path = places(&store, |place| matches!(place, Place::Commit { .. })).await.pop().unwrap();
        let stray = Path::from(format!("{path}9"));
        store.create_text(&stray, "misdirected").await.unwrap();
        let repair = Repair::plan(&store, &id()).await.unwrap();
        assert_eq!(repair.moved, [(stray.clone(), "no object of a run has such a name".to_owned())]);
        repair.carry_out(&store, &opening(8)).await.unwrap();
        assert!(!objects(&store).await.contains(&stray));
        assert!(!Repair::plan(&store, &id()).await.unwrap().is_needed());
        let (_, calm) = play(&experiment("synchronous"), vec![]).await;
        let mut process = Process::start(&store, &experiment("synchronous"), 9).await;
        assert_eq!(process.finish().await, calm);
    });
}

/// As somebody leaves it who can write to the store: with a checksum that is right.
#[test]
fn a_summary_that_says_something_else_than_the_journal_is_damage_and_is_moved() {
    block_on(async {
        let (store, digest) = play(&experiment("synchronous"), vec![]).await;
        let summary = Summary::newest(&store, &id()).await.unwrap().unwrap();
        let path = Place::Summary(summary.journal.events).in_run(&id());
        let other = |ended| Summary { ended, ..summary.clone() };
        for forged in [
            other(Ended::Finished("generation limit reached".to_owned(), Digest::of(b"another"))),
            other(Ended::Cancelled),
            Summary { priority: 9, ..summary.clone() },
            Summary {
                journal: JournalHead { last: Digest::of(b"another"), ..summary.journal },
                ..summary.clone()
            },
        ] {
            let is_seen_by_lists = forged.priority == summary.priority;
            store.delete(&path).await.unwrap();
            store.create_value(&path, Kind::Summary, &forged).await.unwrap();
            if is_seen_by_lists {
                let row = run::listing::row(&store, &id()).await.unwrap();
                assert_eq!((row.state.as_str(), row.digest), ("damaged", None), "{forged:?}");
            }
            let repair = Repair::plan(&store, &id()).await.unwrap();
            assert_eq!(repair.moved.iter().map(|(path, _)| path).collect::<Vec<_>>(), [&path], "{forged:?}");
            repair.carry_out(&store, &opening(8)).await.unwrap();
            assert!(!Repair::plan(&store, &id()).await.unwrap().is_needed());
            let row = run::listing::row(&store, &id()).await.unwrap();
            if forged.journal != summary.journal {
                // It may be the journal that was altered: the run comes to its end once more.
                assert_eq!((row.state.as_str(), row.digest), ("unfinished", None));
                break;
            }
            assert_eq!((row.state.as_str(), row.digest), ("finished", Some(digest.to_string())));
            store.create_value(&path, Kind::Summary, &summary).await.unwrap();
        }
    });
}

#[test]
fn a_run_that_is_whole_is_left_alone() {
    block_on(async {
        for mode in ["synchronous", "asynchronous"] {
            let store = interrupted(mode).await;
            assert!(!Repair::plan(&store, &id()).await.unwrap().is_needed());
            let (store, _) = play(&experiment(mode), vec![]).await;
            assert!(!Repair::plan(&store, &id()).await.unwrap().is_needed());
        }
    });
}

/// What was dropped after the journal was cut short does not come back with the numbers of new events.
#[test]
fn results_of_events_that_are_gone_are_moved_and_not_taken_for_new_ones() {
    block_on(async {
        let store = interrupted("asynchronous").await;
        for path in places(&store, |place| matches!(place, Place::Event(_))).await {
            store.delete(&path).await.unwrap();
        }
        let repair = Repair::plan(&store, &id()).await.unwrap();
        assert_eq!(repair.islands.iter().map(|(_, left)| *left).collect::<Vec<_>>(), [0, 0, 0]);
        repair.carry_out(&store, &opening(8)).await.unwrap();
        assert!(places(&store, |place| matches!(place, Place::Commit { .. })).await.is_empty());
        let mut process = Process::start(&store, &experiment("asynchronous"), 9).await;
        assert_eq!(process.open.archipelago().complete_epochs(), 0);
        process.finish().await;
        assert_eq!(run::reader::Reader::read(&store, &id()).await.unwrap().damage, []);
    });
}

#[test]
fn an_altered_experiment_cannot_be_repaired() {
    block_on(async {
        let store = interrupted("synchronous").await;
        let path = Place::Experiment.in_run(&id());
        let text = store.read_text(&path, 1 << 20).await.unwrap();
        store.delete(&path).await.unwrap();
        store.create_text(&path, &text.replace("seed = 3", "seed = 4")).await.unwrap();
        assert!(matches!(Repair::plan(&store, &id()).await, Err(RunError::Damaged { .. })));
    });
}

#[test]
fn a_copy_holds_what_was_durable_and_a_damaged_run_is_not_copied() {
    block_on(async {
        let (_, calm) = play(&experiment("synchronous"), vec![]).await;
        let store = interrupted("synchronous").await;
        let copy = Store::memory();
        let copied = copy_run(&store, &copy, &id()).await.unwrap();
        assert_eq!(copied.objects, objects(&copy).await.len() as u64);
        assert_eq!(objects(&copy).await, objects(&store).await);
        let mut process = Process::start(&copy, &experiment("synchronous"), 9).await;
        assert!(process.open.archipelago().complete_epochs() >= 4);
        assert_eq!(process.finish().await, calm);

        // Without a state, or with a commit that knows more than the journal, it is no copy of anything.
        let state = places(&store, |place| matches!(place, Place::State(_))).await.pop().unwrap();
        let body = store.read(&state, Kind::IslandState).await.unwrap();
        store.delete(&state).await.unwrap();
        let refused = copy_run(&store, &Store::memory(), &id()).await.unwrap_err().to_string();
        assert!(refused.contains("is missing") && refused.contains("atoll repair small"), "{refused}");
        store.create(&state, Kind::IslandState, body).await.unwrap();
        store.delete(&Place::Event(1).in_run(&id())).await.unwrap();
        let target = Store::memory();
        let refused = copy_run(&store, &target, &id()).await.unwrap_err().to_string();
        assert!(refused.contains("does not explain it"), "{refused}");
        assert!(target.read_text(&Place::Experiment.in_run(&id()), 1 << 20).await.is_err(), "it is no run");
    });
}
