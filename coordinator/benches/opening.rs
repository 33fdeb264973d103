//! How long a coordinator takes from its start until it serves what is in its store; an error if it takes longer than it
//! may. It is measured, not tested: `tests/long opening`.

#![allow(clippy::unwrap_used, reason = "a bench that cannot go on has failed")]

use archipelago::cell::{CellPlan, CellResult, Evolved};
use codec::Digest;
use coordinator::dashboard::DashboardSettings;
use coordinator::leases::Terms;
use coordinator::{AuditTerms, Cluster, CoordinatorSettings, Permissions};
use evolution::epoch::{self, EpochOutcome};
use experiment::{Experiment, Plan};
use object_store::memory::InMemory;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use proto::v1::run_status::State;
use run::jobs::{JobLog, StoredJobs};
use run::plan::PlanJournal;
use run::record::Labour;
use run::{Opening, Owner, Place, RunId, Summary};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Nonce, Store};

const CELLS: u32 = 100_000;
/// The results of one lease of short cells.
const TOGETHER: usize = 64;

fn opening(nonce: u128) -> Opening {
    Opening { nonce: Nonce(nonce), now: 0, owner: Owner::default(), claim: None }
}

fn settings() -> CoordinatorSettings {
    CoordinatorSettings {
        terms: Terms::default(),
        nonce: Nonce(2),
        version: "opening".to_owned(),
        exit_when_done: false,
        revive: false,
        give_up_after: None,
        batch: String::new(),
        address: String::new(),
        takeover_after: None,
        reload: None,
        finish: None,
        traces: None,
        max_runs: 100,
        only_submitted: false,
        first: None,
        trial: None,
        linger: Duration::ZERO,
        await_worker: Duration::ZERO,
        permissions: Permissions::default(),
        tls: None,
        audit: AuditTerms::default(),
        inline: false,
        dashboard: DashboardSettings::default(),
    }
}

/// Starts a coordinator; returns how long that took.
async fn start(store: &Store) -> (Cluster, Duration) {
    let start = Instant::now();
    let (cluster, background) = coordinator::start(store.clone(), &settings(), || 0).await.unwrap();
    let time = start.elapsed();
    background.abort();
    (cluster, time)
}

/// One cell more than is stored, so that the run is open.
fn sweep() -> CellPlan {
    let text = format!(
        r#"
        name = "many"
        problem = {{ kind = "onemax", length = 8 }}
        algorithm = {{ kind = "ga", population = 8 }}
        islands = {{ count = 1 }}
        budget = {{ generations = 1 }}
        sweep = {{ repeats = {}, axis = [{{ keys = ["problem.length"], values = [8] }}] }}
        "#,
        CELLS + 1
    );
    match experiment::parse("many.toml", &text, None) {
        Ok(plan) => CellPlan::of(plan).unwrap(),
        Err(report) => panic!("{report}"),
    }
}

/// Stores the results of all cells, without having computed them.
async fn fill(store: &Store, run: &RunId) {
    let plan = sweep();
    let (digest, text) = (plan.digest(), plan.text().to_owned());
    store.create_text(&Place::Experiment.in_run(run), &text).await.unwrap();
    let mut journal = PlanJournal::open(store, run, &opening(1)).await.unwrap();
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
    let (cluster, time) = start(store).await;
    let done = cluster.status(run.as_str()).unwrap().standing.unwrap().generation;
    assert_eq!(done, u64::from(CELLS));
    time
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

/// What the 10,000 epochs come to.
fn outcomes() -> Vec<EpochOutcome> {
    let experiment = long_run();
    let evolver = experiment.evolver();
    let mut archipelago = archipelago::Archipelago::new(&experiment, None);
    let mut outcomes = vec![];
    while let Some(island) = archipelago.next_ready() {
        let task = archipelago.begin(island);
        let outcome = epoch::run(&*evolver, &task).unwrap();
        archipelago.complete(&task, &outcome).unwrap();
        outcomes.push(outcome);
    }
    outcomes
}

/// A run of these epochs, written in batches, and finished if they are all.
async fn run_long(store: &Store, id: &RunId, outcomes: &[EpochOutcome]) {
    let experiment = long_run();
    let (mut open, mut journal) = run::create(store, id, &experiment, None, opening(1)).await.unwrap();
    for (outcome, done) in outcomes.iter().zip(1..) {
        let assignment = open.assign().unwrap();
        open.complete(&assignment.task, outcome, Labour::default()).unwrap();
        if done % 1000 == 0 || done == outcomes.len() {
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

async fn many_runs() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::local(folder.path()).await.unwrap();
    let outcomes = outcomes();
    for number in 0..1000 {
        let left = usize::from(number < 10);
        let id = RunId::new(format!("long-{number}")).unwrap();
        run_long(&store, &id, &outcomes[..outcomes.len() - left]).await;
    }
    let (cluster, time) = start(&store).await;
    let state = |number: u32| cluster.status(&format!("long-{number}")).unwrap().state();
    let is = |state: State| move |found: &State| *found == state;
    assert_eq!((0..10).map(state).filter(is(State::Waiting)).count(), 10);
    assert_eq!((10..1000).map(state).filter(is(State::Finished)).count(), 990);
    println!("990 finished runs and 10 open ones of 10,000 epochs: {time:.2?}");
    assert!(time < Duration::from_secs(5), "{time:?}");
}

#[tokio::main]
async fn main() {
    cells_in_a_folder().await;
    cells_far_away().await;
    many_runs().await;
}
