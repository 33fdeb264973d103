//! Scripted clusters: what one call leaves behind, with a store in memory and a virtual clock.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "scripted/blame.rs"]
mod blame;
#[path = "scripted/liars.rs"]
mod liars;
#[path = "scripted/log_lines.rs"]
mod log_lines;
#[path = "../../tests/support/replay.rs"]
mod replay;
#[path = "scripted/slow.rs"]
mod slow;
#[path = "scripted/slow_store.rs"]
mod slow_store;
#[path = "scripted/start_stop.rs"]
mod start_stop;
#[path = "scripted/untrusted.rs"]
mod untrusted;
#[path = "scripted/withheld.rs"]
mod withheld;
#[path = "scripted/yardstick.rs"]
mod yardstick;

use archipelago::cell::{CellPlan, CellResult};
use bytes::Bytes;
use coordinator::dashboard::DashboardSettings;
use coordinator::leases::Terms;
use coordinator::{Background, Cluster, CoordinatorSettings, Permissions, Rejection};
use evolution::codec;
use evolution::digest::Digest;
use evolution::epoch::{self, EpochOutcome, EpochTask, Packet};
use experiment::{Experiment, Plan, SEMANTICS};
use proto::calls::WorkerCalls;
use proto::v1;
use proto::v1::complete_reply::DeliveryStatus;
use proto::v1::run_status::State;
use run::RunEvent;
use run::RunId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Duration;
use store::{Nonce, Store};
use tonic::Code;

const EXPERIMENT: &str = r#"
name = "scripted"
seed = 3
problem = { kind = "onemax", length = 20 }
algorithm = { kind = "ga", population = 10 }
islands = { count = 3 }
migration = { interval = 2, count = 1 }
budget = { generations = 24 }
checkpoint = { every = "1h" }
"#;

fn settings(life: u128) -> CoordinatorSettings {
    CoordinatorSettings {
        terms: Terms::default(),
        nonce: Nonce(life),
        version: "scripted".to_owned(),
        exit_when_done: false,
        revive: false,
        give_up_after: None,
        batch: String::new(),
        address: String::new(),
        takeover_after: None,
        reload: None,
        finish: None,
        traces: None,
        max_runs: 5,
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

fn parse(text: &str) -> Plan {
    experiment::parse("scripted.toml", text, None).unwrap()
}

fn experiment() -> Experiment {
    match parse(EXPERIMENT) {
        Plan::Single(experiment) => *experiment,
        _ => unreachable!("it is one experiment"),
    }
}

/// One cluster with one run.
struct Script {
    store: Store,
    cluster: Cluster,
    background: Option<Background>,
    run: String,
    lives: u128,
}

impl Script {
    async fn new(text: &str) -> Self {
        Self::with(text, &settings(1)).await
    }

    async fn with(text: &str, settings: &CoordinatorSettings) -> Self {
        let store = Store::memory();
        let (cluster, background) = coordinator::start(store.clone(), settings, || 0).await.unwrap();
        let run = cluster.submit(parse(text), vec![], 0, false).await.unwrap();
        Self { store, cluster, background: Some(background), run, lives: 1 }
    }

    /// The coordinator dies with all that it has not written down, and another takes its place.
    async fn restart(&mut self) {
        self.restart_with(&settings(1)).await;
    }

    /// The same, with these settings from then on.
    async fn restart_with(&mut self, settings: &CoordinatorSettings) {
        self.background.take().unwrap().abort();
        self.lives += 1;
        let settings = CoordinatorSettings { nonce: Nonce(self.lives), ..settings.clone() };
        let started = coordinator::start(self.store.clone(), &settings, || 0).await.unwrap();
        (self.cluster, self.background) = (started.0, Some(started.1));
    }

    async fn join(&self, worker: &str) -> v1::JoinReply {
        self.cluster.join(join_request(worker)).await.unwrap()
    }

    async fn acquire(&self, worker: &str, slots: u32) -> Vec<v1::Grant> {
        self.join(worker).await;
        let worker = worker.to_owned();
        let request = v1::AcquireRequest { worker, slots, holding: vec![], wait_milliseconds: 0 };
        self.cluster.acquire(request).await.unwrap().grants
    }

    async fn renew(&self, worker: &str, grant: &v1::Grant) -> v1::RenewReply {
        let renewal = v1::Renewal {
            piece: grant.piece.clone(),
            inputs: grant.task.as_ref().map(|task| task.inputs.clone()).unwrap_or_default(),
            standing: None,
            progress: 0,
            token: grant.token,
        };
        let request = v1::RenewRequest { worker: worker.to_owned(), renewals: vec![renewal] };
        self.cluster.renew(request).await.unwrap()
    }

    /// Gives back what cannot be computed.
    async fn release(&self, worker: &str, grant: v1::Grant) {
        let (worker, failure) = (worker.to_owned(), "it broke".to_owned());
        let request = v1::ReleaseRequest {
            worker,
            piece: grant.piece,
            failure,
            token: grant.token,
            unfit: false,
            lacks_program: false,
        };
        self.cluster.release(request).await.unwrap();
    }

    /// Computes a granted epoch, and delivers it.
    async fn deliver(&self, worker: &str, grant: &v1::Grant) -> v1::CompleteReply {
        let (head, bodies) = computed(worker, grant);
        self.cluster.complete(head, bodies).await.unwrap()
    }

    fn state(&self) -> State {
        self.cluster.status(&self.run).unwrap().state()
    }

    async fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        for _ in 0..10_000 {
            if holds() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("waited in vain for {what}");
    }

    async fn events(&self) -> Vec<RunEvent> {
        let run = RunId::new(&self.run).unwrap();
        let events: Vec<run::journal::Event<RunEvent>> =
            run::journal::read_all(&self.store, &run).await.unwrap();
        events.into_iter().map(|event| event.body).collect()
    }
}

fn join_request(worker: &str) -> v1::JoinRequest {
    v1::JoinRequest {
        worker: worker.to_owned(),
        name: worker.to_owned(),
        version: "scripted".to_owned(),
        semantics: SEMANTICS,
        threads: 1,
        ..v1::JoinRequest::default()
    }
}

/// What an epoch comes to, as a worker delivers it.
fn computed(worker: &str, grant: &v1::Grant) -> (v1::CompleteHead, Vec<Bytes>) {
    computed_of(&experiment(), worker, grant)
}

fn computed_of(experiment: &Experiment, worker: &str, grant: &v1::Grant) -> (v1::CompleteHead, Vec<Bytes>) {
    let outcome = epoch::run(&*experiment.evolver(), &task_of(grant)).unwrap();
    delivery(worker, grant, outcome)
}

/// The task of a grant with everything inline.
fn task_of(grant: &v1::Grant) -> EpochTask {
    let Some(v1::piece::What::Epoch(v1::EpochPiece { island, epoch })) = grant.piece.clone().unwrap().what
    else {
        unreachable!("there are only epochs")
    };
    let wire = grant.task.clone().unwrap();
    let state = wire.before.map(|before| before.inline.unwrap().slice(..before.state_length as usize));
    let packet = |packet: v1::Packet| Packet {
        from: packet.from,
        epoch: packet.epoch,
        departure: packet.departure.unwrap().inline.unwrap(),
    };
    let packets = wire.packets.into_iter().map(packet).collect();
    EpochTask { island, epoch, until: wire.until, state, packets }
}

/// An outcome as a worker delivers it.
fn delivery(worker: &str, grant: &v1::Grant, outcome: EpochOutcome) -> (v1::CompleteHead, Vec<Bytes>) {
    let statistics = codec::encode(&outcome.statistics).unwrap();
    let result = v1::EpochResult {
        inputs: grant.task.clone().unwrap().inputs,
        digest: Bytes::copy_from_slice(&outcome.digest.0),
        standing: Some((&outcome.standing).into()),
        state_length: outcome.state.len() as u64,
        departure_length: outcome.departure.len() as u64,
        statistics_length: statistics.len() as u64,
    };
    let head = v1::CompleteHead {
        worker: worker.to_owned(),
        piece: grant.piece.clone(),
        milliseconds: 1,
        what: Some(v1::complete_head::What::Epoch(result)),
        slots: 0,
    };
    (head, vec![outcome.state, outcome.departure, statistics])
}

#[tokio::test(start_paused = true)]
async fn the_work_of_a_paused_run_is_handed_back() {
    let mut script = Script::new(EXPERIMENT).await;
    let grant = script.acquire("a", 1).await.remove(0);
    script.cluster.pause(&script.run, true).await.unwrap();
    assert_eq!(script.renew("a", &grant).await.hand_back, [grant.token]);
    script.cluster.pause(&script.run, false).await.unwrap();
    let reply = script.renew("a", &grant).await;
    assert_eq!((reply.hand_back, reply.lost), (vec![], vec![]));
    let other = v1::Grant { token: grant.token + 99, ..grant.clone() };
    assert_eq!(script.renew("a", &other).await.lost, [other.token]);
    script.restart().await;
    script.join("a").await;
    let reply = script.renew("a", &grant).await;
    assert_eq!(reply.lost, [0; 0], "the next coordinator knows the work by its inputs");
    script.cluster.cancel(&script.run).await.unwrap();
    assert_eq!(script.renew("a", &grant).await.lost, [grant.token]);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_workers_blocks_others_for_no_longer_than_a_lease() {
    let script = Script::new(EXPERIMENT).await;
    let mut number = 0;
    let rejected = loop {
        match script.cluster.join(join_request(&format!("flood-{number}"))).await {
            Ok(_) => number += 1,
            Err(status) => break status,
        }
    };
    assert_eq!(rejected.code(), Code::ResourceExhausted);
    tokio::time::sleep(Terms::default().lease + Duration::from_secs(1)).await;
    script.cluster.join(join_request("late")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn work_that_fails_everywhere_fails_its_run_until_it_is_submitted_again() {
    let mut script = Script::new(EXPERIMENT).await;
    for worker in ["a", "b", "c"] {
        let grant = script.acquire(worker, 1).await.remove(0);
        script.release(worker, grant).await;
    }
    // That it failed is written first.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let status = script.cluster.status(&script.run).unwrap();
    assert_eq!(status.state(), State::Failed);
    assert!(status.reason.ends_with("failed 3 times on 3 workers: it broke"), "{}", status.reason);
    script.restart().await;
    assert_eq!(script.state(), State::Failed, "it is written down");
    let run = script.cluster.submit(parse(EXPERIMENT), vec![], 0, false).await.unwrap();
    assert_eq!(run, script.run);
    assert_eq!(script.acquire("a", 5).await.len(), 3, "every island can be computed");
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_no_player_are_rejected_before_any_worker_gets_them() {
    let (store, nonsense) = (Store::memory(), Bytes::from_static(b"no player at all"));
    let (cluster, _background) = coordinator::start(store.clone(), &settings(1), || 0).await.unwrap();
    let digest = Digest::of(&nonsense);
    let text = format!(
        "name = \"games\"\n[tournament]\nopenings = 1\nplayers = [{{ name = \"counter\", player = \"material\" }}, \
         {{ name = \"stranger\", player = \"stranger.acp\", digest = \"{digest}\" }}]"
    );
    let rejected = cluster.submit(parse(&text), vec![nonsense], 0, false).await.unwrap_err().to_string();
    assert!(rejected.starts_with("player stranger: "), "{rejected}");
    let absent = cluster.submit(parse(&text), vec![], 0, false).await.unwrap_err();
    assert!(absent.to_string().contains("player stranger: expected a player file"), "{absent}");
    assert!(store.folders(&run::layout::runs()).await.unwrap().is_empty(), "nothing of it is kept");
}

#[tokio::test(start_paused = true)]
async fn workers_that_are_lost_at_once_are_one_event() {
    let script = Script::new(EXPERIMENT).await;
    assert_eq!(script.acquire("a", 2).await.len(), 2);
    assert_eq!(script.acquire("b", 2).await.len(), 1);
    tokio::time::sleep(2 * Terms::default().lease).await;
    let lost = script.events().await.into_iter().filter_map(|event| match event {
        RunEvent::Expired { losses, .. } => Some(losses),
        _ => None,
    });
    let lost: Vec<Vec<(u32, String)>> =
        lost.map(|losses| losses.into_iter().map(|loss| (loss.island, loss.worker)).collect()).collect();
    let all = [(0, "a"), (1, "a"), (2, "b")].map(|(island, worker)| (island, worker.to_owned()));
    assert_eq!(lost, [all.to_vec()]);
}

#[tokio::test(start_paused = true)]
async fn a_delivery_is_accepted_at_once_and_durable_later() {
    let script = Script::new(EXPERIMENT).await;
    let grants = script.acquire("a", 3).await;
    let first = script.deliver("a", &grants[0]).await;
    assert_eq!((first.status(), first.delivery, first.durable), (DeliveryStatus::Accepted, 1, 0));
    let second = script.deliver("a", &grants[1]).await;
    assert_eq!((second.delivery, second.durable), (2, 0));
    let again = script.deliver("a", &grants[1]).await;
    assert_eq!((again.status(), again.delivery), (DeliveryStatus::Repeated, 0));
    // Whatever a run has is written when it is paused.
    script.cluster.pause(&script.run, true).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(script.renew("a", &grants[2]).await.durable, 2);
}

#[tokio::test(start_paused = true)]
async fn what_was_not_durable_is_delivered_to_the_next_coordinator() {
    let mut script = Script::new(EXPERIMENT).await;
    let line = Arc::new(Line::new(script.cluster.clone()));
    let config = config("a");
    // It computes an epoch now and then, so that the coordinator is lost in the middle.
    let working =
        tokio::spawn(worker::run(config, line.clone(), worker::Pool::inline(), std::future::pending()));
    let generation = |cluster: &Cluster, run: &str| {
        cluster.status(run).unwrap().standing.map_or(0, |standing| standing.generation)
    };
    script.until("some epochs", || generation(&script.cluster, &script.run) >= 4).await;
    let before = generation(&script.cluster, &script.run);
    script.restart().await;
    assert_eq!(generation(&script.cluster, &script.run), 0, "nothing was written");
    *line.cluster.lock().unwrap() = script.cluster.clone();
    script.until("the end", || script.state() == State::Finished).await;
    let records = script.events().await;
    assert!(records.iter().any(|event| matches!(event, RunEvent::Finished { .. })));
    assert!(before >= 4);
    working.abort();
}

/// The settings of a worker.
fn config(id: &str) -> worker::Config {
    let identity = worker::Identity {
        id: id.to_owned(),
        name: id.to_owned(),
        version: "scripted".to_owned(),
        give_up_after: None,
        seed: 0,
        look: None,
    };
    worker::Config {
        identity,
        cache_bytes: 1 << 20,
        undurable_bytes: 1 << 20,
        memory_bytes: u64::MAX,
        engines: BTreeMap::new(),
    }
}

/// The coordinator that a worker calls just now.
struct Line {
    cluster: std::sync::Mutex<Cluster>,
    /// How many jobs were delivered.
    jobs: AtomicUsize,
    /// How many plans were asked for, and how often leases were renewed.
    plans: AtomicUsize,
    renewals: AtomicUsize,
    /// Whether the next call for work panics.
    panics: AtomicBool,
}

impl Line {
    fn new(cluster: Cluster) -> Self {
        Self {
            cluster: std::sync::Mutex::new(cluster),
            jobs: AtomicUsize::new(0),
            plans: AtomicUsize::new(0),
            renewals: AtomicUsize::new(0),
            panics: AtomicBool::new(false),
        }
    }

    fn get(&self) -> Cluster {
        self.cluster.lock().unwrap().clone()
    }
}

#[tonic::async_trait]
impl WorkerCalls for Line {
    async fn join(&self, request: v1::JoinRequest) -> Result<v1::JoinReply, tonic::Status> {
        self.get().join(request).await
    }
    async fn acquire(&self, request: v1::AcquireRequest) -> Result<v1::AcquireReply, tonic::Status> {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!self.panics.load(std::sync::atomic::Ordering::SeqCst), "on purpose");
        self.get().acquire(request).await
    }
    async fn plan(&self, request: v1::PlanRequest) -> Result<v1::PlanReply, tonic::Status> {
        self.plans.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        self.get().plan(request).await
    }
    async fn fetch(&self, request: v1::FetchRequest, length: u64) -> Result<Bytes, tonic::Status> {
        self.get().fetch(request, length).await
    }
    async fn renew(&self, request: v1::RenewRequest) -> Result<v1::RenewReply, tonic::Status> {
        self.renewals.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        self.get().renew(request).await
    }
    async fn checkpoint(
        &self,
        head: v1::CheckpointHead,
        bytes: Bytes,
    ) -> Result<v1::CheckpointReply, tonic::Status> {
        self.get().checkpoint(head, bytes).await
    }
    async fn complete(
        &self,
        head: v1::CompleteHead,
        bodies: Vec<Bytes>,
    ) -> Result<v1::CompleteReply, tonic::Status> {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if matches!(head.what, Some(v1::complete_head::What::Job(_))) {
            self.jobs.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
        self.get().complete(head, bodies).await
    }
    async fn release(&self, request: v1::ReleaseRequest) -> Result<v1::ReleaseReply, tonic::Status> {
        self.get().release(request).await
    }
    async fn leave(&self, request: v1::LeaveRequest) -> Result<v1::LeaveReply, tonic::Status> {
        self.get().leave(request).await
    }
}

const SWEEP: &str = "name = \"swept\"\nproblem = { kind = \"onemax\", length = 10 }\n\
                     algorithm = { kind = \"ga\", population = 4 }\nbudget = { generations = 2 }\n\
                     sweep = { repeats = 3, axis = [{ keys = [\"problem.length\"], values = [10] }] }";

async fn deliver_cells(script: &Script, worker: &str, results: &[(u32, CellResult)]) -> Result<(), String> {
    script.join(worker).await;
    let (head, bodies) = cells_delivery(script, worker, results);
    let delivered = script.cluster.complete(head, bodies).await;
    delivered.map(|_| ()).map_err(|status| status.message().to_owned())
}

fn cells_delivery(
    script: &Script,
    worker: &str,
    results: &[(u32, CellResult)],
) -> (v1::CompleteHead, Vec<Bytes>) {
    let what = v1::piece::What::Cells(v1::CellsPiece { first: 0, count: 3 });
    let body = codec::encode(&results.to_vec()).unwrap();
    let head = v1::CompleteHead {
        worker: worker.to_owned(),
        piece: Some(v1::Piece { run: script.run.clone(), what: Some(what) }),
        milliseconds: 1,
        what: Some(v1::complete_head::What::Cells(v1::CellsResult { length: body.len() as u64 })),
        slots: 0,
    };
    (head, vec![body])
}

fn swept() -> Vec<(u32, CellResult)> {
    let cells = CellPlan::of(parse(SWEEP)).unwrap();
    (0..cells.len()).map(|number| (number, cells.compute(number, &[], || false).unwrap().unwrap())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_sweep_that_is_cancelled_stays_cancelled_and_continues_when_it_is_submitted_again() {
    let script = Script::new(SWEEP).await;
    script.cluster.cancel(&script.run).await.unwrap();
    deliver_cells(&script, "a", &swept()).await.unwrap();
    assert_eq!(script.state(), State::Cancelled);
    let refused = script.cluster.pause(&script.run, true).await.unwrap_err();
    assert!(matches!(refused, Rejection::Queue(_)), "{refused}");
    script.cluster.submit(parse(SWEEP), vec![], 0, false).await.unwrap();
    assert_eq!(script.acquire("a", 1).await.len(), 1);
    deliver_cells(&script, "a", &swept()).await.unwrap();
    script.until("the end", || script.state() == State::Finished).await;
}
