//! How long it takes until a store is back to serving; an error if it takes longer than it may. It is measured, not tested:
//! `tests/long opening`.

#![allow(clippy::unwrap_used, reason = "a bench that cannot go on has failed")]

use archipelago::cell::{CellPlan, CellResult, Evolved};
use codec::Digest;
use evolution::epoch;
use experiment::{Experiment, Plan};
use futures::{StreamExt, stream};
use object_store::memory::InMemory;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use run::jobs::{JobLog, StoredJobs};
use run::plan::PlanJournal;
use run::record::Labour;
use run::{Opening, Owner, RunId, Summary};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Nonce, Store};

const CELLS: u32 = 100_000;
/// The results of one lease of short cells.
const TOGETHER: usize = 64;

fn opening(nonce: u128) -> Opening {
    Opening { nonce: Nonce(nonce), now: 0, owner: Owner::default(), claim: None }
}

fn sweep() -> CellPlan {
    let text = format!(
        r#"
        name = "many"
        problem = {{ kind = "onemax", length = 8 }}
        algorithm = {{ kind = "ga", population = 8 }}
        islands = {{ count = 1 }}
        budget = {{ generations = 1 }}
        sweep = {{ repeats = {CELLS}, axis = [{{ keys = ["problem.length"], values = [8] }}] }}
        "#
    );
    match experiment::parse("many.toml", &text, None) {
        Ok(plan) => CellPlan::of(plan).unwrap(),
        Err(report) => panic!("{report}"),
    }
}

/// Stores the results of all cells, without having computed them.
async fn fill(store: &Store, run: &RunId) {
    let mut journal = PlanJournal::open(store, run, &opening(1)).await.unwrap();
    let plan = sweep();
    let (digest, text) = (plan.digest(), plan.text().to_owned());
    let term = journal.begin(digest, &text, &opening(1), 0).await.unwrap();
    let stored = StoredJobs::read(store, run, plan.clone()).await.unwrap();
    let mut log = JobLog::new(store, run, term, &stored.progress);
    let result = |number: u32| {
        let digest = Digest::of(&number.to_le_bytes());
        let evolved = Evolved { digest, best: 8.0, generations: 1, evaluations: 16, genome: vec![1.0; 8] };
        (number, CellResult::Evolved(evolved))
    };
    for first in (0..CELLS).step_by(TOGETHER) {
        let batch = (first..CELLS.min(first + TOGETHER as u32)).map(result).collect();
        assert!(log.keep(&plan, batch).await.error.is_none());
    }
}

async fn reading(store: &Store, run: &RunId) -> Duration {
    let start = Instant::now();
    let stored = StoredJobs::read(store, run, sweep()).await.unwrap();
    assert_eq!((stored.progress.done().len(), stored.damage.len()), (CELLS as usize, 0));
    start.elapsed()
}

async fn cells_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (store, run) = (Store::local(folder.path()).await.unwrap(), RunId::new("many").unwrap());
    fill(&store, &run).await;
    let time = reading(&store, &run).await;
    println!("100,000 cells in a folder: {time:.2?}");
    assert!(time < Duration::from_secs(3), "{time:?}");
}

async fn cells_far_away() {
    let memory = Arc::new(InMemory::new());
    let run = RunId::new("many").unwrap();
    fill(&Store::over(memory.clone()), &run).await;
    let latency = Duration::from_millis(20);
    let throttle = ThrottleConfig {
        wait_get_per_call: latency,
        wait_list_per_call: latency,
        wait_list_with_delimiter_per_call: latency,
        wait_put_per_call: latency,
        ..ThrottleConfig::default()
    };
    let far = Store::over(Arc::new(ThrottledStore::new(memory, throttle)));
    let time = reading(&far, &run).await;
    println!("100,000 cells at 20 ms: {time:.2?}");
    assert!(time < Duration::from_secs(20), "{time:?}");
}

fn long_run() -> Experiment {
    let text = "name = \"long\"\nseed = 1\n[problem]\nkind = \"onemax\"\nlength = 8\n[algorithm]\nkind = \"ga\"\n\
                population = 4\n[islands]\ncount = 1\n[migration]\ninterval = 1\n[budget]\ngenerations = 10000\n";
    match experiment::parse("long.toml", text, None) {
        Ok(Plan::Single(experiment)) => *experiment,
        other => panic!("{other:?}"),
    }
}

/// A run of 10,000 epochs, all but `left` of them done, written in batches.
async fn run_long(store: &Store, id: &RunId, left: u64) {
    let experiment = long_run();
    let (mut open, mut journal) = run::create(store, id, &experiment, None, opening(1)).await.unwrap();
    let evolver = experiment.evolver();
    let mut done = 0;
    while let Some(assignment) = open.assign().filter(|_| done < 10_000 - left) {
        let outcome = epoch::run(&*evolver, &assignment.task).unwrap();
        open.complete(&assignment.task, &outcome, Labour::default()).unwrap();
        done += 1;
        if done % 100 == 0 {
            let batch = open.take_everything();
            batch.write(store).await.unwrap();
            open.settle(&batch);
            while let Some(pruning) = open.pruning() {
                pruning.delete(store, None).await.unwrap();
                open.settle_pruning(&pruning);
            }
        }
    }
    if let Some(event) = open.finish(1, 1) {
        journal.append(&event).await.unwrap();
        let summary = Summary::of(&event, open.outline(1), (open.created(), 0), journal.head()).unwrap();
        summary.write(store, id).await.unwrap();
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

async fn many_runs() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::local(folder.path()).await.unwrap();
    let runs = folder.path().join("runs");
    for (kind, left, count) in [("ended", 0, 990), ("begun", 1, 10)] {
        for number in 0..count {
            let id = RunId::new(format!("{kind}-{number}")).unwrap();
            // The journal of each run begins with its own name, so that none can be a copy of another's.
            if number == 0 || kind == "begun" {
                run_long(&store, &id, left).await;
            } else {
                copy(&runs.join("ended-0"), &runs.join(id.as_str()));
            }
        }
    }
    let start = Instant::now();
    let folders = store.folders(&run::layout::runs()).await.unwrap();
    let ids: Vec<RunId> = folders.iter().filter_map(run::layout::run_of_folder).collect();
    let read = |id: RunId| {
        let store = store.clone();
        async move { (Summary::read(&store, &id).await.unwrap(), id) }
    };
    let summaries: Vec<_> = stream::iter(ids).map(read).buffered(64).collect().await;
    let open: Vec<RunId> =
        summaries.into_iter().filter(|(summary, _)| summary.is_none()).map(|(_, id)| id).collect();
    assert_eq!(open.len(), 10);
    for id in open {
        let (open, _) = run::open(&store, &id, opening(2)).await.unwrap();
        assert!(!open.is_finished());
    }
    let time = start.elapsed();
    println!("990 ended runs and 10 open ones of 10,000 epochs: {time:.2?}");
    assert!(time < Duration::from_secs(5), "{time:?}");
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    cells_in_a_folder().await;
    cells_far_away().await;
    many_runs().await;
}
