//! The causes why a run makes no progress, each staged on purpose.

use super::health;
use crate::cluster::{Background, Cluster};
use crate::serve::{CoordinatorSettings, Permissions, start};
use crate::state::AuditTerms;
use crate::state::leases::Terms;
use bytes::Bytes;
use evolution::codec;
use evolution::epoch::{self, EpochTask, Packet};
use experiment::{Experiment, Plan, SEMANTICS};
use proto::calls::WorkerCalls;
use proto::v1;
use report::dashboard::{Cause, WorkerState};
use std::time::Duration;
use store::{Nonce, Store};

const EXPERIMENT: &str = r#"
name = "staged"
seed = 3
problem = { kind = "onemax", length = 20 }
algorithm = { kind = "ga", population = 10 }
islands = { count = 3 }
migration = { interval = 2, count = 1 }
budget = { generations = 4 }
checkpoint = { every = "1h" }
"#;

fn settings() -> CoordinatorSettings {
    CoordinatorSettings {
        terms: Terms { failures: 100, ..Terms::default() },
        nonce: Nonce(1),
        version: "staged".to_owned(),
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
        audit: AuditTerms::default(),
        inline: true,
        dashboard: super::DashboardSettings::default(),
    }
}

fn plan(text: &str) -> Plan {
    experiment::parse("staged.toml", text, None).unwrap()
}

fn experiment() -> Experiment {
    let Plan::Single(experiment) = plan(EXPERIMENT) else { unreachable!("it is one experiment") };
    *experiment
}

pub(super) struct Stage {
    pub(super) cluster: Cluster,
    _background: Background,
    pub(super) run: String,
}

impl Stage {
    pub(super) async fn new() -> Self {
        let (cluster, background) = start(Store::memory(), &settings(), || 0).await.unwrap();
        let run = cluster.submit(plan(EXPERIMENT), vec![], 0, false).await.unwrap();
        Self { cluster, _background: background, run }
    }

    pub(super) async fn acquire(&self, worker: &str, slots: u32) -> Vec<v1::Grant> {
        let name = worker.to_owned();
        let join = v1::JoinRequest {
            worker: name.clone(),
            name,
            version: "1".to_owned(),
            semantics: SEMANTICS,
            threads: 1,
            ..v1::JoinRequest::default()
        };
        self.cluster.join(join).await.unwrap();
        let request =
            v1::AcquireRequest { worker: worker.to_owned(), slots, holding: vec![], wait_milliseconds: 0 };
        self.cluster.acquire(request).await.unwrap().grants
    }

    async fn release(&self, worker: &str, grant: &v1::Grant, failure: &str, lack: (bool, bool)) {
        let (unfit, lacks_program) = lack;
        let (worker, failure) = (worker.to_owned(), failure.to_owned());
        let (piece, token) = (grant.piece.clone(), grant.token);
        let request = v1::ReleaseRequest { worker, piece, failure, token, unfit, lacks_program };
        self.cluster.release(request).await.unwrap();
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

    pub(super) async fn deliver(&self, worker: &str, grant: &v1::Grant, is_wrong: bool) -> bool {
        let (mut head, bodies) = computed(worker, grant);
        if is_wrong && let Some(v1::complete_head::What::Epoch(result)) = &mut head.what {
            result.digest = Bytes::from_static(&[7; 32]);
        }
        self.cluster.complete(head, bodies).await.is_ok()
    }

    /// Has workers compute everything that there is to do, and waits until the run has ended. Each comes once: it is
    /// sent the states that another would remember.
    pub(super) async fn finish(&self, worker: &str) {
        for number in 0.. {
            let worker = format!("{worker}{number}");
            let grants = self.acquire(&worker, 3).await;
            for grant in &grants {
                assert!(self.deliver(&worker, grant, false).await);
            }
            if self.cluster.look(|state| state.row(&self.run, self.cluster.now()).unwrap().has_ended()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn cause(&self) -> (Cause, String) {
        self.cause_of(&self.run)
    }

    fn cause_of(&self, run: &str) -> (Cause, String) {
        let why = self.cluster.explain(run).unwrap();
        (why.cause, why.text)
    }

    fn expect(&self, cause: Cause, word: &str) {
        let (found, text) = self.cause();
        assert_eq!(found, cause, "{text}");
        assert!(text.contains(word), "expected {word} in {text}");
        let (row, workers) = self
            .cluster
            .look(|state| (state.row(&self.run, self.cluster.now()).unwrap(), state.workers.count()));
        // A list gives no other reason than a page.
        if row.state == "waiting" && workers > 0 {
            assert_eq!(row.reason, self.cluster.explain(&self.run).unwrap().clause());
        }
    }
}

/// What an epoch comes to, as a worker delivers it.
fn computed(worker: &str, grant: &v1::Grant) -> (v1::CompleteHead, Vec<Bytes>) {
    let piece = grant.piece.clone().unwrap();
    let Some(v1::piece::What::Epoch(v1::EpochPiece { island, epoch })) = piece.what else {
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
    let task = EpochTask { island, epoch, until: wire.until, state, packets };
    let outcome = epoch::run(&*experiment().evolver(), &task).unwrap();
    let statistics = codec::encode(&outcome.statistics).unwrap();
    let result = v1::EpochResult {
        inputs: wire.inputs,
        digest: Bytes::copy_from_slice(&outcome.digest.0),
        standing: Some((&outcome.standing).into()),
        state_length: outcome.state.len() as u64,
        departure_length: outcome.departure.len() as u64,
        statistics_length: statistics.len() as u64,
    };
    let (worker, what) = (worker.to_owned(), Some(v1::complete_head::What::Epoch(result)));
    let head = v1::CompleteHead { worker, piece: Some(piece), milliseconds: 1, what, slots: 0 };
    (head, vec![outcome.state, outcome.departure, statistics])
}

#[tokio::test(start_paused = true)]
async fn no_worker_is_connected_and_then_one_computes() {
    let stage = Stage::new().await;
    stage.expect(Cause::NoWorker, "No worker is connected");
    let grants = stage.acquire("a", 3).await;
    assert_eq!(grants.len(), 3);
    stage.expect(Cause::Running, "1 worker computes 3 pieces");
}

#[tokio::test(start_paused = true)]
async fn islands_wait_for_a_neighbour() {
    let stage = Stage::new().await;
    let grants = stage.acquire("a", 2).await;
    let slow = stage.acquire("slow", 1).await.remove(0);
    for grant in &grants {
        assert!(stage.deliver("a", grant, false).await);
    }
    // On a ring of three one island may continue, and one waits for the slow one.
    stage.acquire("a", 3).await;
    assert!(stage.acquire("idle", 3).await.is_empty());
    stage.expect(Cause::WaitsForNeighbour, "which worker `slow` computes");
    drop(slow);
}

#[tokio::test(start_paused = true)]
async fn workers_are_busy_with_a_run_that_comes_first() {
    let stage = Stage::new().await;
    let first = EXPERIMENT.replace("staged", "first");
    let first = stage.cluster.submit(plan(&first), vec![], 5, false).await.unwrap();
    assert_eq!(stage.acquire("a", 3).await.len(), 3);
    stage.expect(Cause::BusyElsewhere, &first);
    assert_eq!(stage.cause_of(&first).0, Cause::Running);
}

/// A study makes progress if one of its parts does, whatever the others wait for.
#[tokio::test(start_paused = true)]
async fn a_study_is_explained_by_the_part_that_is_computed() {
    let stage = Stage::new().await;
    stage.cluster.cancel(&stage.run).await.unwrap();
    let study = format!("{EXPERIMENT}[study.one]\n[study.two]\n").replace("staged", "both");
    let study = stage.cluster.submit(plan(&study), vec![], 0, false).await.unwrap();
    let grants = loop {
        let grants = stage.acquire("a", 6).await;
        if grants.len() == 6 {
            break grants;
        }
        for grant in &grants {
            stage.release("a", grant, "", (false, false)).await;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let [one, two] = ["one", "two"].map(|part| format!("{study}.{part}"));
    for (idle, busy) in [(&one, &two), (&two, &one)] {
        let is_of = |grant: &&v1::Grant| grant.piece.as_ref().is_some_and(|piece| piece.run == *idle);
        for grant in grants.iter().filter(is_of) {
            stage.release("a", grant, "", (false, false)).await;
        }
        assert_eq!(stage.cause_of(idle).0, Cause::BusyElsewhere);
        assert_eq!(stage.cause_of(busy).0, Cause::Running);
        assert_eq!(stage.cause_of(&study).0, Cause::Running, "{}", stage.cause_of(&study).1);
        stage.cluster.pause(idle, true).await.unwrap();
        assert_eq!(stage.cause_of(&study).0, Cause::Running, "{}", stage.cause_of(&study).1);
        stage.cluster.pause(idle, false).await.unwrap();
        if idle == &one {
            for _ in 0..3 {
                stage.acquire("a", 6).await;
            }
        }
    }
}

/// Time is counted from the first lease to the last result, and not by what is held at a tick.
#[tokio::test(start_paused = true)]
async fn the_time_of_a_run_is_that_in_which_it_was_worked_on() {
    let stage = Stage::new().await;
    tokio::time::sleep(Duration::from_millis(1234)).await;
    let start = tokio::time::Instant::now();
    let mut grants = stage.acquire("a", 3).await;
    tokio::time::sleep(Duration::from_millis(70)).await;
    for grant in grants.drain(..) {
        assert!(stage.deliver("a", &grant, false).await);
    }
    stage.finish("b").await;
    let most = start.elapsed().as_millis() as u64;
    let found = stage.cluster.look(|state| state.row(&stage.run, stage.cluster.now()).unwrap());
    let time = found.elapsed_milliseconds;
    assert!((70..=most).contains(&time), "expected 70 to {most}, found {time}");
}

/// Workers that are idle because they are given nothing do not hide that the others are busy.
#[tokio::test(start_paused = true)]
async fn only_workers_that_could_take_the_run_say_what_keeps_it_waiting() {
    let stage = Stage::new().await;
    let grant = stage.acquire("small", 1).await.remove(0);
    stage.release("small", &grant, "expected more", (true, false)).await;
    stage.acquire("drained", 0).await;
    stage.cluster.drain("drained", true);
    // One is drained, and the only other one has too little memory.
    stage.expect(Cause::NoMemory, "expected more");
    let first = EXPERIMENT.replace("staged", "first");
    let first = stage.cluster.submit(plan(&first), vec![], 5, false).await.unwrap();
    assert_eq!(stage.acquire("large", 3).await.len(), 3);
    stage.expect(Cause::BusyElsewhere, &format!("busy with `{first}`, which comes first"));
}

#[tokio::test(start_paused = true)]
async fn a_run_of_high_priority_behind_long_epochs_of_a_low_one_comes_next() {
    let stage = Stage::new().await;
    assert_eq!(stage.acquire("a", 3).await.len(), 3);
    let urgent = EXPERIMENT.replace("staged", "urgent");
    let urgent = stage.cluster.submit(plan(&urgent), vec![], 5, false).await.unwrap();
    let why = stage.cluster.explain(&urgent).unwrap();
    assert_eq!(why.cause, Cause::BusyElsewhere, "{}", why.text);
    assert!(why.text.starts_with("This run comes next") && why.text.contains(&stage.run), "{}", why.text);
    assert!(!why.advice.contains("priority"), "{}", why.advice);
}

#[tokio::test(start_paused = true)]
async fn a_reason_of_a_worker_steers_no_terminal() {
    let stage = Stage::new().await;
    let grant = stage.acquire("a", 1).await.remove(0);
    stage.release("a", &grant, "out\x1b[2J\nof\u{9b}31m luck", (false, false)).await;
    stage.expect(Cause::BackingOff, "out [2J of 31m luck");
    let page = stage.cluster.look(|state| state.worker_views(stage.cluster.now()));
    assert_eq!(page[0].last_error.as_deref(), Some("out [2J of 31m luck"));
}

/// A list reads no records, so only the first look at a run that has ended shows that they are damaged.
#[tokio::test]
async fn records_that_are_gone_damage_a_finished_run_of_a_store() {
    let stage = Stage::new().await;
    stage.finish("w").await;
    let store = stage.cluster.store().clone();
    let look = async |path: &str, copy: &super::StoreView| {
        let shown = copy.view(path).await.unwrap();
        let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let [row, why] =
            [&shown["row"], &shown["why"]].map(|part| if part.is_null() { &shown } else { part });
        let row = if shown["runs"].is_array() { &shown["runs"][0] } else { row };
        (word(&row["state"]), word(&why["cause"]))
    };
    let page = format!("runs/{}", stage.run);
    let explain = format!("{page}/explain");
    let copy = super::StoreView::new(store.clone(), || 0);
    assert_eq!(look(&explain, &copy).await.1, "ended");
    let run = run::RunId::new(&stage.run).unwrap();
    for path in store.list(&run.commits()).await.unwrap() {
        store.delete(&path).await.unwrap();
    }
    let copy = super::StoreView::new(store.clone(), || 0);
    assert_eq!(look(&explain, &copy).await.1, "damaged");
    assert_eq!(look(&page, &copy).await, ("damaged".to_owned(), "damaged".to_owned()));
    assert_eq!(look("runs", &copy).await.0, "damaged", "lists remember what was found");
}

#[tokio::test(start_paused = true)]
async fn a_paused_run_and_one_that_has_ended_say_so() {
    let stage = Stage::new().await;
    stage.cluster.pause(&stage.run, true).await.unwrap();
    stage.expect(Cause::Paused, "paused");
    stage.cluster.cancel(&stage.run).await.unwrap();
    stage.expect(Cause::Ended, "cancelled");
}

#[tokio::test(start_paused = true)]
async fn no_worker_has_enough_memory_or_the_program() {
    for (lacks_program, cause) in [(false, Cause::NoMemory), (true, Cause::NoProgram)] {
        let stage = Stage::new().await;
        let grant = stage.acquire("small", 1).await.remove(0);
        stage.release("small", &grant, "expected more", (true, lacks_program)).await;
        stage.expect(cause, "expected more");
        stage.acquire("large", 1).await;
        stage.expect(Cause::Running, "1 piece");
    }
}

#[tokio::test(start_paused = true)]
async fn the_only_worker_is_quarantined() {
    let stage = Stage::new().await;
    let grant = stage.acquire("liar", 1).await.remove(0);
    assert!(!stage.deliver("liar", &grant, true).await);
    stage.expect(Cause::Quarantined, "quarantined");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_silent_loses_its_lease_at_a_time_that_is_known() {
    let stage = Stage::new().await;
    let _grant = stage.acquire("gone", 1).await;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (cause, text) = stage.cause();
    assert_eq!(cause, Cause::SilentWorker, "{text}");
    assert!(text.contains("`gone` is silent") && text.contains("expires in 5.0s"), "{text}");
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    stage.expect(Cause::NoWorker, "1 that was is silent");
}

#[tokio::test(start_paused = true)]
async fn work_stands_still_on_a_worker_that_renews() {
    let stage = Stage::new().await;
    let grant = stage.acquire("stuck", 1).await.remove(0);
    for _ in 0..130 {
        for _ in 0..50 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        stage.renew("stuck", &grant).await;
    }
    stage.expect(Cause::Stalled, "no progress on worker `stuck`");
}

#[tokio::test(start_paused = true)]
async fn the_store_is_slow_and_then_silent() {
    let stage = Stage::new().await;
    let _grant = stage.acquire("a", 1).await;
    let writing = stage.cluster.store_watch().begin();
    tokio::time::sleep(Duration::from_secs(3)).await;
    stage.expect(Cause::Store, "slow");
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert!(health(stage.cluster.store_watch()).is_silent);
    stage.expect(Cause::Store, "silent");
    writing.done(true);
    assert_ne!(stage.cause().0, Cause::Store);
}

#[tokio::test(start_paused = true)]
async fn a_piece_that_failed_backs_off() {
    let stage = Stage::new().await;
    let grant = stage.acquire("a", 1).await.remove(0);
    stage.release("a", &grant, "out of luck", (false, false)).await;
    stage.expect(Cause::BackingOff, "out of luck");
    let page = stage.cluster.look(|state| state.worker_views(stage.cluster.now()));
    assert_eq!(page[0].last_error.as_deref(), Some("out of luck"));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_drained_returns_what_it_holds_and_is_given_nothing() {
    let stage = Stage::new().await;
    let grant = stage.acquire("a", 1).await.remove(0);
    assert!(stage.cluster.drain("a", true) && !stage.cluster.drain("nobody", true));
    assert_eq!(stage.renew("a", &grant).await.hand_back, [grant.token]);
    stage.release("a", &grant, "", (false, false)).await;
    assert!(stage.acquire("a", 1).await.is_empty());
    stage.expect(Cause::Draining, "drained");
    let state = |stage: &Stage| stage.cluster.look(|state| state.worker_views(stage.cluster.now())[0].state);
    assert_eq!(state(&stage), WorkerState::Draining);
    stage.cluster.drain("a", false);
    assert_eq!(stage.acquire("a", 1).await.len(), 1);
    assert_eq!(state(&stage), WorkerState::Busy);
}
