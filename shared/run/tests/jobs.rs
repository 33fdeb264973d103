//! Results of jobs: one writer at a time, and none is counted twice or late.

use archipelago::cell::{CellPlan, CellResult, Evolved};
use codec::Digest;
use run::jobs::{JobLog, StoredJobs};
use run::plan::PlanJournal;
use run::{Damage, Opening, Owner, Place, Repair, RunEvent, RunId};
use store::{Nonce, Store, StoreError};

fn sweep() -> CellPlan {
    let text = r#"
        name = "few"
        problem = { kind = "onemax", length = 8 }
        algorithm = { kind = "ga", population = 8 }
        islands = { count = 1 }
        budget = { generations = 1 }
        sweep = { repeats = 4, axis = [{ keys = ["problem.length"], values = [8] }] }
    "#;
    match experiment::parse("few.toml", text, None) {
        Ok(plan) => CellPlan::of(plan).unwrap(),
        Err(report) => panic!("{report}"),
    }
}

fn result(number: u32, best: f64) -> (u32, CellResult) {
    let digest = Digest::of(&number.to_le_bytes());
    (
        number,
        CellResult::Evolved(Evolved { digest, best, generations: 1, evaluations: 16, genome: vec![1.0; 8] }),
    )
}

/// A writer that has opened the plan after what is stored of it.
async fn open(store: &Store, writer: u128) -> (PlanJournal, JobLog) {
    let (run, plan) = (id(), sweep());
    let opening = Opening { nonce: Nonce(writer), now: 0, owner: Owner::default(), claim: None };
    let mut journal = PlanJournal::open(store, &run, &opening).await.unwrap();
    let StoredJobs { progress, batches, .. } = StoredJobs::read(store, &run, plan.clone()).await.unwrap();
    let term = journal.begin(plan.digest(), plan.text(), &opening, batches).await.unwrap();
    (journal, JobLog::new(store, &run, term, &progress))
}

fn id() -> RunId {
    RunId::new("few").unwrap()
}

async fn done(store: &Store) -> Vec<u32> {
    let stored = StoredJobs::read(store, &id(), sweep()).await.unwrap().sound(&id()).unwrap();
    stored.progress.done().keys().copied().collect()
}

#[tokio::test]
async fn what_an_older_writer_adds_later_does_not_count() {
    let (store, plan) = (Store::memory(), sweep());
    let (_, mut older) = open(&store, 1).await;
    older.keep(&plan, vec![result(0, 8.0)]).await;
    let (_, mut newer) = open(&store, 2).await;
    assert!(older.keep(&plan, vec![result(1, 8.0)]).await.error.is_none());
    assert_eq!(done(&store).await, [0]);
    let kept = newer.keep(&plan, vec![result(0, 8.0), result(1, 8.0), result(2, 8.0)]).await;
    assert_eq!(kept.new.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2], "0 is known");
    assert_eq!(done(&store).await, [0, 1, 2]);
}

#[tokio::test]
async fn another_result_of_the_same_job_is_told_and_the_others_are_kept() {
    let (store, plan) = (Store::memory(), sweep());
    let (_, mut log) = open(&store, 1).await;
    log.keep(&plan, vec![result(0, 8.0)]).await;
    let kept = log.keep(&plan, vec![result(0, 7.0), result(1, 8.0)]).await;
    assert!(matches!(kept.differing[..], [(0, StoreError::Differs { .. })]), "{kept:?}");
    assert_eq!(done(&store).await, [0, 1]);
}

#[tokio::test]
async fn results_that_were_retracted_count_again_once_they_are_written_again() {
    let (store, plan) = (Store::memory(), sweep());
    let (_, mut older) = open(&store, 1).await;
    older.keep(&plan, vec![result(0, 1.0)]).await;
    let (mut journal, mut log) = open(&store, 2).await;
    log.keep(&plan, vec![result(1, 1.0), result(2, 8.0)]).await;
    let (kept, batches) = log.settle().await;
    assert!(kept.error.is_none() && batches == 1);
    let (jobs, reason) = (vec![0, 1], "a worker lies".to_owned());
    journal.log(&RunEvent::RetractedJobs { jobs, batches, reason, at: 7 }).await.unwrap();
    log.retract(&[0, 1]);
    assert_eq!(done(&store).await, [2]);
    assert!(log.keep(&plan, vec![result(0, 8.0), result(1, 8.0)]).await.differing.is_empty());
    assert_eq!(done(&store).await, [0, 1, 2]);
    let (_, mut newer) = open(&store, 3).await;
    newer.keep(&plan, vec![result(3, 8.0)]).await;
    let stored = StoredJobs::read(&store, &id(), plan).await.unwrap().sound(&id()).unwrap();
    assert!(stored.progress.evolved().iter().all(|evolved| evolved.best > 7.5), "{:?}", stored.progress);
    assert_eq!(stored.progress.done().len(), 4);
}

#[tokio::test]
async fn results_that_are_missing_from_a_finished_plan_are_named() {
    let (store, plan) = (Store::memory(), sweep());
    let (mut journal, mut log) = open(&store, 1).await;
    log.keep(&plan, (0..3).map(|number| result(number, 8.0)).collect()).await;
    let digest = Digest::of(b"all of it");
    journal.log(&RunEvent::Finished { end: None, digest, at: 1, elapsed: 1 }).await.unwrap();
    let stored = StoredJobs::read(&store, &id(), plan).await.unwrap();
    assert_eq!(stored.damage, [Damage::Jobs { count: 1, first: 3 }]);
}

/// What is wrong with the plan, and what is left after a repair.
async fn repaired(store: &Store) -> (Vec<Damage>, Vec<u32>) {
    let damage = StoredJobs::read(store, &id(), sweep()).await.unwrap().damage;
    let opening = Opening { nonce: Nonce(99), now: 0, owner: Owner::default(), claim: None };
    let repair = Repair::plan(store, &id()).await.unwrap();
    repair.carry_out(store, &opening).await.unwrap();
    (damage, done(store).await)
}

#[tokio::test]
async fn batches_that_are_missing_from_an_unfinished_plan_are_named() {
    let path = |term: u64, number: u64| Place::Jobs { term, number }.in_run(&id());
    for (term, number, is_last) in [(1, 0, false), (1, 1, false), (2, 0, false), (2, 1, true)] {
        let (store, plan) = (Store::memory(), sweep());
        store.create_text(&Place::Experiment.in_run(&id()), plan.text()).await.unwrap();
        for writer in [1, 2] {
            let (_, mut log) = open(&store, writer).await;
            let first = 2 * (writer as u32 - 1);
            log.keep(&plan, vec![result(first, 8.0)]).await;
            log.keep(&plan, vec![result(first + 1, 8.0)]).await;
        }
        assert_eq!(done(&store).await, [0, 1, 2, 3]);
        store.delete(&path(term, number)).await.unwrap();
        if is_last {
            // It may never have been written.
            assert_eq!(done(&store).await, [0, 1, 2]);
            continue;
        }
        let (damage, left) = repaired(&store).await;
        assert_eq!(damage, [Damage::Batch { term, number }]);
        assert_eq!(left.len(), 3, "the others count");
        let (_, mut log) = open(&store, 3).await;
        log.keep(&plan, (0..4).map(|number| result(number, 8.0)).collect()).await;
        assert_eq!(done(&store).await, [0, 1, 2, 3]);
    }
}
