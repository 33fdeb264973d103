//! Random sequences of what operators do and what breaks, over all kinds of plans, against a small reference model: the
//! real coordinator and the real worker, with a store in memory whose calls take up to 50 ms, and a clock that nobody
//! waits for. Some events of a run's journal are written without an acknowledgement.
//!
//! After each step the coordinator agrees with the model about the state of every run. Where a sequence asks for progress,
//! every open run makes some before the next step. At the end every open run finishes, with the digest of an undisturbed
//! one, or with the digest that its journal replays to.
//!
//! `ATOLL_MODEL_CASES` says how many sequences. A sequence that fails is shrunk to the fewest steps that still fail.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../tests/support/replay.rs"]
mod replay;
#[path = "scripted/slow_store.rs"]
mod slow_store;

use bytes::Bytes;
use coordinator::dashboard::DashboardSettings;
use coordinator::leases::Terms;
use coordinator::{Background, Cluster, CoordinatorSettings, Permissions, Rejection};
use experiment::Plan;
use experiment::file::BudgetKeys;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use proto::calls::WorkerCalls;
use proto::v1;
use proto::v1::run_status::State;
use run::RunId;
use slow_store::SlowStore;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;
use store::{Nonce, Store};
use tokio::task::JoinHandle;
use tonic::Status;

/// Longer than anything takes after all has healed, in virtual time.
const PATIENCE: Duration = Duration::from_mins(10);

/// The longest call of the store.
const LATENCY: Duration = Duration::from_millis(50);

/// Longer than a piece takes that another worker had, and that expired with it.
const PROGRESS: Duration = Duration::from_mins(2);

const PLANS: [(&str, &str); 7] = [
    (
        "evolution",
        r#"
        name = "evolution"
        seed = 3
        problem = { kind = "onemax", length = 12 }
        algorithm = { kind = "ga", population = 4 }
        islands = { count = 3 }
        migration = { interval = 2, count = 1 }
        budget = { generations = 12 }
        checkpoint = { every = 5 }
        "#,
    ),
    (
        "asynchronous",
        r#"
        name = "asynchronous"
        problem = { kind = "onemax", length = 12 }
        algorithm = { kind = "ga", population = 4 }
        islands = { count = 3 }
        migration = { interval = 2, count = 1, mode = "asynchronous" }
        budget = { generations = 8 }
        "#,
    ),
    (
        "sweep",
        r#"
        name = "sweep"
        problem = { kind = "onemax", length = 10 }
        algorithm = { kind = "ga", population = 4 }
        islands = { count = 1 }
        budget = { generations = 2 }
        sweep = { repeats = 3, axis = [{ keys = ["problem.length"], values = [10, 12] }] }
        "#,
    ),
    (
        "tournament",
        r#"
        name = "tournament"
        [tournament]
        openings = 1
        players = [{ name = "one", player = "random" }, { name = "other", player = "random" }]
        "#,
    ),
    (
        "study",
        r#"
        name = "study"
        problem = { kind = "onemax", length = 12 }
        algorithm = { kind = "ga", population = 4 }
        islands = { count = 2 }
        budget = { generations = 4 }
        study = { first = {}, second = { guests = "first" }, third = { seed = 5 } }
        [tournament]
        openings = 1
        players = [{ name = "one", player = "random" }, { name = "other", player = "random" }]
        "#,
    ),
    (
        "look-ups",
        r#"
        name = "look-ups"
        problem = { kind = "checkers", depth = 1, games = 1, draw = { moves = 2 } }
        algorithm = { kind = "es", parents = 2, offspring = 1 }
        islands = { count = 1 }
        budget = { generations = 1 }
        study = { first = {} }
        [tournament]
        openings = 1
        species = { min_points = 1, noise = "nearest", depth = 1 }
        players = [
            { name = "champion", player = "first/0" },
            { name = "vote", ensemble = "first" },
            { name = "gambler", player = "random" },
        ]
        "#,
    ),
    // Its end waits for the measurements of its last champions.
    (
        "measured",
        r#"
        name = "measured"
        problem = { kind = "checkers", depth = 1, games = 1, draw = { moves = 2 } }
        algorithm = { kind = "es", parents = 2, offspring = 1 }
        islands = { count = 2 }
        migration = { interval = 1 }
        budget = { generations = 2 }
        retention = { milestones = 1 }
        yardstick = { depth = 1, pairs = 1, opponents = ["material 1 plain"] }
        "#,
    ),
];

/// The plan whose digest depends on what was there when its epochs began.
const ASYNCHRONOUS: usize = 1;

#[derive(Clone, Copy, Debug)]
enum Op {
    Submit(usize, i32),
    Fresh(usize),
    Pause(usize),
    Resume(usize),
    Cancel(usize),
    Extend(usize, u64),
    /// Gives each part of a study another budget, which is refused.
    ExtendParts(usize, u64),
    WallTime(usize, u64),
    Fail(usize),
    StartWorker,
    KillWorker,
    Restart,
    TakeOver,
    Wait(u64),
    Progress,
    /// The next change of an operator meets a store that writes this number of events without acknowledging them.
    LoseAnswers(u32),
}

fn op() -> impl Strategy<Value = Op> {
    let plan = 0..PLANS.len();
    prop_oneof![
        4 => (plan.clone(), 0..2_i32).prop_map(|(plan, priority)| Op::Submit(plan, priority)),
        1 => plan.clone().prop_map(Op::Fresh),
        2 => plan.clone().prop_map(Op::Pause),
        2 => plan.clone().prop_map(Op::Resume),
        3 => plan.clone().prop_map(Op::Cancel),
        2 => (0..2_usize, 1..24_u64).prop_map(|(plan, generations)| Op::Extend(plan, generations)),
        1 => (4..6_usize, 1..24_u64).prop_map(|(plan, generations)| Op::ExtendParts(plan, generations)),
        1 => (0..2_usize, 0..500_u64).prop_map(|(plan, time)| Op::WallTime(plan, time)),
        1 => plan.prop_map(Op::Fail),
        2 => Just(Op::StartWorker),
        1 => Just(Op::KillWorker),
        2 => Just(Op::Restart),
        1 => Just(Op::TakeOver),
        4 => (0..4_000_u64).prop_map(Op::Wait),
        2 => Just(Op::Progress),
        2 => (1..4_u32).prop_map(Op::LoseAnswers),
    ]
}

/// The coordinator that workers call just now.
#[derive(Clone, Default)]
struct Line(Arc<Mutex<Option<Cluster>>>);

impl Line {
    fn cluster(&self) -> Result<Cluster, Status> {
        self.0.lock().unwrap().clone().ok_or_else(|| Status::unavailable("there is none"))
    }
}

#[tonic::async_trait]
impl WorkerCalls for Line {
    async fn join(&self, request: v1::JoinRequest) -> Result<v1::JoinReply, Status> {
        self.cluster()?.join(request).await
    }
    async fn acquire(&self, request: v1::AcquireRequest) -> Result<v1::AcquireReply, Status> {
        self.cluster()?.acquire(request).await
    }
    async fn plan(&self, request: v1::PlanRequest) -> Result<v1::PlanReply, Status> {
        self.cluster()?.plan(request).await
    }
    async fn fetch(&self, request: v1::FetchRequest, length: u64) -> Result<Bytes, Status> {
        self.cluster()?.fetch(request, length).await
    }
    async fn renew(&self, request: v1::RenewRequest) -> Result<v1::RenewReply, Status> {
        self.cluster()?.renew(request).await
    }
    async fn checkpoint(
        &self,
        head: v1::CheckpointHead,
        bytes: Bytes,
    ) -> Result<v1::CheckpointReply, Status> {
        self.cluster()?.checkpoint(head, bytes).await
    }
    async fn complete(
        &self,
        head: v1::CompleteHead,
        bodies: Vec<Bytes>,
    ) -> Result<v1::CompleteReply, Status> {
        self.cluster()?.complete(head, bodies).await
    }
    async fn release(&self, request: v1::ReleaseRequest) -> Result<v1::ReleaseReply, Status> {
        self.cluster()?.release(request).await
    }
    async fn leave(&self, request: v1::LeaveRequest) -> Result<v1::LeaveReply, Status> {
        self.cluster()?.leave(request).await
    }
}

/// What the reference model knows of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Open,
    Paused,
    Cancelled,
    Failed,
}

#[derive(Clone, Debug)]
struct Reference {
    run: String,
    plan: usize,
    state: Expected,
    /// Whether it was given another budget.
    is_extended: bool,
    /// The generations of the last budget that it was given, if nothing else ends it.
    generations: Option<u64>,
}

struct World {
    store: Store,
    slow: SlowStore,
    /// How many events are written without an acknowledgement during the next change.
    unacknowledged: u32,
    line: Line,
    background: Option<Background>,
    workers: Vec<JoinHandle<()>>,
    lives: u64,
    runs: BTreeMap<String, Reference>,
}

fn settings(life: u64) -> CoordinatorSettings {
    CoordinatorSettings {
        terms: Terms::default(),
        nonce: Nonce(u128::from(life) + 1),
        version: "model".to_owned(),
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
        audit: coordinator::AuditTerms::default(),
        inline: true,
        dashboard: DashboardSettings::default(),
    }
}

fn plan(number: usize) -> Plan {
    experiment::parse(PLANS[number].0, PLANS[number].1, None).unwrap()
}

impl World {
    async fn new(seed: u64) -> Self {
        let slow = SlowStore::default();
        slow.delay_calls(seed, LATENCY);
        let (store, line) = (slow.store(), Line::default());
        let mut world = Self {
            store,
            slow,
            unacknowledged: 0,
            line,
            background: None,
            workers: vec![],
            lives: 0,
            runs: BTreeMap::new(),
        };
        world.start().await;
        world
    }

    /// Starts a coordinator; another one that is there notices.
    async fn start(&mut self) {
        self.lives += 1;
        let (cluster, background) =
            coordinator::start(self.store.clone(), &settings(self.lives), || 0).await.unwrap();
        *self.line.0.lock().unwrap() = Some(cluster);
        self.background = Some(background);
    }

    fn cluster(&self) -> Cluster {
        self.line.cluster().unwrap()
    }

    fn start_worker(&mut self) {
        self.lives += 1;
        let id = format!("worker-{}", self.lives);
        let identity = worker::Identity {
            id: id.clone(),
            name: id,
            version: "model".to_owned(),
            give_up_after: None,
            seed: self.lives,
            look: None,
        };
        let config = worker::Config {
            identity,
            cache_bytes: 1 << 20,
            undurable_bytes: 1 << 20,
            memory_bytes: u64::MAX,
            engines: BTreeMap::new(),
        };
        let calls = Arc::new(self.line.clone());
        self.workers.push(tokio::spawn(async move {
            let _ = worker::run(config, calls, worker::Pool::inline(), std::future::pending()).await;
        }));
    }

    /// Has the pieces of a run fail until it does; whether it did.
    async fn fail(&mut self, run: &str) -> bool {
        let cluster = self.cluster();
        for number in 0..3 {
            self.lives += 1;
            let worker = format!("saboteur-{number}-{}", self.lives);
            let join = v1::JoinRequest {
                worker: worker.clone(),
                name: worker.clone(),
                version: "model".to_owned(),
                semantics: experiment::SEMANTICS,
                threads: 1,
                ..v1::JoinRequest::default()
            };
            cluster.join(join).await.unwrap();
            let request = v1::AcquireRequest {
                worker: worker.clone(),
                slots: 1000,
                holding: vec![],
                wait_milliseconds: 0,
            };
            let grants = cluster.acquire(request).await.unwrap().grants;
            let is_of_run = |grant: &v1::Grant| {
                let of = &grant.piece.as_ref().unwrap().run;
                of.strip_prefix(run).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            let grants = grants.into_iter().filter(is_of_run);
            if let Some(grant) = grants.into_iter().next() {
                let failure = "on purpose".to_owned();
                let (piece, token) = (grant.piece, grant.token);
                let request = v1::ReleaseRequest {
                    worker: worker.clone(),
                    piece,
                    failure,
                    token,
                    unfit: false,
                    lacks_program: false,
                };
                cluster.release(request).await.unwrap();
            }
            let leave = v1::LeaveRequest { worker, reason: "done".to_owned(), misconfigured: false };
            cluster.leave(leave).await.unwrap();
        }
        // That it failed is written first.
        tokio::time::sleep(20 * LATENCY).await;
        cluster.status(run).unwrap().state() == State::Failed
    }

    async fn apply(&mut self, op: Op) -> Result<(), TestCaseError> {
        match op {
            Op::Submit(number, priority) => {
                let mut run = self.cluster().submit(plan(number), vec![], priority, false).await;
                while run.as_ref().is_err_and(|error| error.to_string().contains("it is just ending")) {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    run = self.cluster().submit(plan(number), vec![], priority, false).await;
                }
                self.submitted(
                    number,
                    run.map_err(|error| TestCaseError::fail(format!("submit: {error}")))?,
                )?;
            }
            Op::Fresh(number) => {
                let run = self.cluster().submit(plan(number), vec![], 0, true).await;
                let run = run.map_err(|error| TestCaseError::fail(format!("submit --fresh: {error}")))?;
                prop_assert!(!self.runs.contains_key(&run), "{run} is not new");
                self.submitted(number, run)?;
            }
            Op::Pause(number) => self.change(number, true).await,
            Op::Resume(number) => self.change(number, false).await,
            Op::Cancel(number) => {
                let Some(known) = self.known(number) else { return Ok(()) };
                self.lose_answers();
                let cancelled = self.cluster().cancel(&known.run).await;
                if self.is_settled(cancelled).await {
                    self.runs.get_mut(&known.run).unwrap().state = Expected::Cancelled;
                }
            }
            Op::Extend(number, generations) => {
                let budget = BudgetKeys { generations: Some(generations), ..BudgetKeys::default() };
                self.extend(number, budget).await;
            }
            Op::ExtendParts(number, generations) => {
                let Some(known) = self.known(number) else { return Ok(()) };
                for part in ["first", "second", "third", "games"] {
                    let part = format!("{}.{part}", known.run);
                    let budget = BudgetKeys { generations: Some(generations), ..BudgetKeys::default() };
                    let extended = self.cluster().extend(&part, budget).await;
                    prop_assert!(extended.is_err(), "{part} has another budget");
                }
            }
            Op::WallTime(number, milliseconds) => {
                let time = Some(format!("{}ms", milliseconds + 1));
                let budget = BudgetKeys { wall_time: time, generations: Some(40), ..BudgetKeys::default() };
                self.extend(number, budget).await;
            }
            Op::Fail(number) => {
                let Some(known) = self.known(number) else { return Ok(()) };
                if known.state == Expected::Open && self.fail(&known.run).await {
                    self.runs.get_mut(&known.run).unwrap().state = Expected::Failed;
                }
            }
            Op::StartWorker => self.start_worker(),
            Op::KillWorker => {
                if let Some(worker) = self.workers.pop() {
                    worker.abort();
                }
            }
            Op::Restart => {
                *self.line.0.lock().unwrap() = None;
                if let Some(background) = self.background.take() {
                    background.abort();
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
                self.start().await;
            }
            Op::TakeOver => {
                // The old one continues until it notices.
                let old = self.background.take();
                self.start().await;
                tokio::time::sleep(Duration::from_millis(300)).await;
                if let Some(old) = old {
                    old.abort();
                }
            }
            Op::Wait(milliseconds) => tokio::time::sleep(Duration::from_millis(milliseconds)).await,
            Op::Progress => self.progress().await?,
            Op::LoseAnswers(count) => self.unacknowledged = count,
        }
        self.compare()
    }

    /// The last of the runs of a plan.
    fn known(&self, plan: usize) -> Option<Reference> {
        self.runs.values().rfind(|known| known.plan == plan).cloned()
    }

    fn submitted(&mut self, plan: usize, run: String) -> Result<(), TestCaseError> {
        let new = Reference {
            run: run.clone(),
            plan,
            state: Expected::Open,
            is_extended: false,
            generations: None,
        };
        let known = self.runs.entry(run).or_insert(new);
        prop_assert_eq!(known.plan, plan);
        if matches!(known.state, Expected::Cancelled | Expected::Failed) {
            known.state = Expected::Open;
        }
        Ok(())
    }

    async fn extend(&mut self, number: usize, budget: BudgetKeys) {
        let Some(known) = self.known(number) else { return };
        let generations = budget.generations.filter(|_| budget.wall_time.is_none());
        // What has ended is opened again before its budget changes: whether it was is not known after an error.
        if !self.has_ended(&known.run) {
            self.lose_answers();
        }
        let extended = self.cluster().extend(&known.run, budget).await;
        if self.is_settled(extended).await {
            let known = self.runs.get_mut(&known.run).unwrap();
            (known.is_extended, known.generations) = (true, generations);
            known.state = Expected::Open;
        }
    }

    /// How far open runs are, and how many of them are finished.
    fn standings(&self) -> Vec<(u64, State)> {
        let open = self.runs.values().filter(|known| known.state == Expected::Open);
        let status = open.map(|known| self.cluster().status(&known.run).unwrap());
        let mut standings: Vec<(u64, State)> = vec![];
        for status in status {
            standings.push((status.standing.map_or(0, |standing| standing.generation), status.state()));
        }
        standings
    }

    /// If there is a worker, something is done for every open run.
    async fn progress(&mut self) -> Result<(), TestCaseError> {
        let before = self.standings();
        if self.workers.is_empty() {
            return Ok(());
        }
        let is_over = |(_, state): &(u64, State)| *state == State::Finished;
        let deadline = tokio::time::Instant::now() + PROGRESS;
        while self
            .standings()
            .iter()
            .zip(&before)
            .any(|(now, before)| now.0 == before.0 && !is_over(now) && !is_over(before))
        {
            let standings = self.standings();
            prop_assert!(
                tokio::time::Instant::now() < deadline,
                "{:?}: {before:?}, {standings:?}",
                self.runs
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Ok(())
    }

    async fn change(&mut self, number: usize, paused: bool) {
        if let Some(known) = self.known(number) {
            self.change_run(&known.run, paused).await;
        }
    }

    async fn change_run(&mut self, run: &str, paused: bool) {
        self.lose_answers();
        let changed = self.cluster().pause(run, paused).await;
        if self.is_settled(changed).await && !self.is_finished(run) {
            let known = self.runs.get_mut(run).unwrap();
            known.state = if paused { Expected::Paused } else { Expected::Open };
        }
    }

    /// From now on the store acknowledges the next events no more.
    fn lose_answers(&mut self) {
        self.slow.leave_unacknowledged("/events/", std::mem::take(&mut self.unacknowledged));
    }

    /// Whether a change happened, perhaps only after the store had acknowledged it at last.
    async fn is_settled(&mut self, changed: Result<(), Rejection>) -> bool {
        match changed {
            Err(error) if error.to_string().contains("as soon as the store can write") => {
                // Each lost answer costs a second.
                tokio::time::sleep(Duration::from_secs(10)).await;
                self.slow.leave_unacknowledged("", 0);
                true
            }
            changed => {
                self.slow.leave_unacknowledged("", 0);
                changed.is_ok()
            }
        }
    }

    fn has_ended(&self, run: &str) -> bool {
        let state = self.cluster().status(run).unwrap().state();
        matches!(state, State::Finished | State::Failed | State::Cancelled)
    }

    fn is_finished(&self, run: &str) -> bool {
        self.cluster().status(run).is_ok_and(|status| status.state() == State::Finished)
    }

    /// The coordinator agrees with the model.
    fn compare(&self) -> Result<(), TestCaseError> {
        for known in self.runs.values() {
            let status = self.cluster().status(&known.run);
            let status = status.map_err(|error| TestCaseError::fail(format!("{}: {error}", known.run)))?;
            let (state, reason) = (status.state(), &status.reason);
            let agrees = match known.state {
                Expected::Open => matches!(state, State::Waiting | State::Running | State::Finished),
                Expected::Paused => matches!(state, State::Paused | State::Finished),
                Expected::Cancelled => matches!(state, State::Cancelled),
                Expected::Failed => state == State::Failed,
            };
            prop_assert!(agrees, "{known:?} is {state:?}: {reason}");
        }
        Ok(())
    }

    /// After everything has healed, every open run comes to its end, with the digest of an undisturbed one.
    async fn conclude(&mut self) -> Result<(), TestCaseError> {
        self.start_worker();
        for run in self.runs.keys().cloned().collect::<Vec<_>>() {
            self.change_run(&run, false).await;
        }
        let deadline = tokio::time::Instant::now() + PATIENCE;
        for known in self.runs.clone().into_values() {
            if known.state != Expected::Open {
                continue;
            }
            loop {
                let status = self.cluster().status(&known.run).unwrap();
                prop_assert!(
                    !matches!(status.state(), State::Failed | State::Cancelled),
                    "{known:?}: {}",
                    status.reason
                );
                if status.state() == State::Finished {
                    let digest = status.digest.unwrap();
                    if let Some(generations) = known.generations {
                        prop_assert_eq!(status.standing.unwrap().generation, generations, "{:?}", known);
                    }
                    let run = RunId::new(&known.run).unwrap();
                    let sound = run::stored::check(&self.store, &run).await;
                    sound.map_err(|error| TestCaseError::fail(error.to_string()))?;
                    if known.is_extended || known.plan == ASYNCHRONOUS {
                        let replayed = replay::replay(&self.store, &run).await;
                        let replayed = replayed.map_err(|error| TestCaseError::fail(error.to_string()))?;
                        prop_assert_eq!(&digest[..], &replayed.0[..], "{:?}", known);
                    } else {
                        prop_assert_eq!(&digest[..], &DIGESTS[known.plan][..], "{:?}", known);
                    }
                    break;
                }
                prop_assert!(tokio::time::Instant::now() < deadline, "{known:?} stands still: {status:?}");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
        self.compare()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for worker in &self.workers {
            worker.abort();
        }
        if let Some(background) = self.background.take() {
            background.abort();
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// The digest of each plan when nothing happens to it.
static DIGESTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let digest = |number: usize| {
        runtime().block_on(async {
            let mut world = World::new(0).await;
            world.start_worker();
            let run = world.cluster().submit(plan(number), vec![], 0, false).await.unwrap();
            while !world.is_finished(&run) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            world.cluster().status(&run).unwrap().digest.unwrap().to_vec()
        })
    };
    (0..PLANS.len()).map(digest).collect()
});

fn run(seed: u64, ops: &[Op]) -> Result<(), TestCaseError> {
    runtime().block_on(async {
        let mut world = World::new(seed).await;
        for op in ops {
            world.apply(*op).await?;
        }
        world.conclude().await
    })
}

#[test]
fn a_part_whose_creation_was_cut_short_is_no_damage() {
    LazyLock::force(&DIGESTS);
    run(12_403_186_628_757_090_200, &[Op::Submit(5, 1), Op::Cancel(5), Op::Restart]).unwrap();
}

#[test]
fn a_part_that_two_coordinators_open_at_once_is_opened_by_the_later_one() {
    LazyLock::force(&DIGESTS);
    let ops = [Op::Restart, Op::Restart, Op::Fresh(4), Op::TakeOver, Op::Wait(0)];
    run(16_661_946_861_040_586_349, &ops).unwrap();
}

#[test]
fn every_sequence_comes_to_its_end() {
    let cases = std::env::var("ATOLL_MODEL_CASES").map_or(2000, |cases| cases.parse().unwrap());
    LazyLock::force(&DIGESTS);
    let config = Config { cases, failure_persistence: None, max_shrink_time: 60_000, ..Config::default() };
    let sequences = (any::<u64>(), prop::collection::vec(op(), 1..14));
    let result = TestRunner::new(config).run(&sequences, |(seed, ops)| {
        if std::env::var("ATOLL_MODEL_SHOW").is_ok() {
            eprintln!("{seed} {ops:?}");
        }
        run(seed, &ops)
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}
