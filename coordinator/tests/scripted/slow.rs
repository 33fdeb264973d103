//! What happens while a store call is under way, or fails for a while.

use super::slow_store::SlowStore;
use super::*;
use coordinator::{AuditTerms, UntrustedCalls};
use experiment::file::BudgetKeys;
use run::Journal;
use std::sync::atomic::Ordering::SeqCst;
use tokio::time::{Instant, timeout};

/// Longer than anything here takes, in virtual time.
pub(super) const LONG: Duration = Duration::from_mins(1);

impl Script {
    /// A cluster over a slow store, without a run.
    pub(super) async fn slow(settings: &CoordinatorSettings) -> (Self, SlowStore) {
        let slow = SlowStore::default();
        let store = slow.store();
        let (cluster, background) = coordinator::start(store.clone(), settings, || 0).await.unwrap();
        (Self { store, cluster, background: Some(background), run: String::new(), lives: 1 }, slow)
    }

    pub(super) async fn submit(&mut self, text: &str) {
        self.run = self.cluster.submit(parse(text), vec![], 0, false).await.unwrap();
    }

    /// Delivers everything that can be computed now, as a worker that has no state at hand.
    pub(super) async fn work(&self) {
        static WORKERS: AtomicUsize = AtomicUsize::new(0);
        let worker = format!("worker-{}", WORKERS.fetch_add(1, SeqCst));
        for grant in self.acquire(&worker, 10).await {
            self.deliver(&worker, &grant).await;
        }
    }

    /// Has three workers fail at the same piece, until that the run failed is written.
    async fn fail(&self) {
        // Workers that were there before do not count as connected any more.
        tokio::time::sleep(10 * Terms::default().lease).await;
        for worker in ["a", "b", "c"] {
            let grant = self.acquire(worker, 1).await.remove(0);
            self.release(worker, grant).await;
        }
        self.until("the failure", || self.state() == State::Failed).await;
    }

    pub(super) fn generation(&self) -> u64 {
        self.cluster.status(&self.run).unwrap().standing.map_or(0, |standing| standing.generation)
    }

    async fn openings(&self) -> usize {
        let is_opening = |event: &&RunEvent| matches!(event, RunEvent::Opened { .. });
        self.events().await.iter().filter(is_opening).count()
    }
}

pub(super) fn start_worker(
    line: &Arc<Line>,
) -> tokio::task::JoinHandle<Result<worker::SessionEnd, worker::WorkerError>> {
    let identity = worker::Identity {
        id: "worker".to_owned(),
        name: "worker".to_owned(),
        version: "scripted".to_owned(),
        give_up_after: None,
        seed: 0,
        look: None,
    };
    let config = worker::Config {
        identity,
        cache_bytes: 1 << 20,
        undurable_bytes: 1 << 20,
        memory_bytes: u64::MAX,
        engines: BTreeMap::new(),
    };
    let calls = line.clone();
    tokio::spawn(worker::run(config, calls, worker::Pool::inline(), std::future::pending()))
}

#[tokio::test(start_paused = true)]
async fn what_comes_while_a_budget_is_written_does_not_lie_beyond_it() {
    for generations in [9, 10] {
        let (mut script, slow) = Script::slow(&settings(1)).await;
        script.submit(EXPERIMENT).await;
        for _ in 0..4 {
            script.work().await;
        }
        assert_eq!(script.generation(), 8);
        slow.delay_writes(Duration::from_secs(1));
        let (cluster, run) = (script.cluster.clone(), script.run.clone());
        let budget = BudgetKeys { generations: Some(generations), ..BudgetKeys::default() };
        let extending = tokio::spawn(async move { cluster.extend(&run, budget).await });
        tokio::task::yield_now().await;
        for _ in 0..4 {
            script.work().await;
        }
        assert!(!extending.is_finished(), "it is being written");
        extending.await.unwrap().unwrap();
        slow.delay_writes(Duration::ZERO);
        for _ in 0..4 {
            script.work().await;
        }
        script.until("the end", || script.state() == State::Finished).await;
        assert_eq!(script.generation(), generations);
        let (status, run) = (script.cluster.status(&script.run).unwrap(), RunId::new(&script.run).unwrap());
        let replayed = super::replay::replay(&script.store, &run).await.unwrap();
        assert_eq!(&status.digest.unwrap()[..], &replayed.0[..], "as the journal says");
    }
}

/// What the store does with the next events of a run.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    /// It writes none for a while.
    Refused,
    /// It writes one, and the answer is lost.
    Unacknowledged,
}

impl Trouble {
    fn begin(self, slow: &SlowStore) {
        match self {
            Self::Refused => slow.fail(Some("events")),
            Self::Unacknowledged => slow.leave_unacknowledged("events", 1),
        }
    }
}

impl Script {
    /// Works until the run is finished. What it ended with is what its journal says.
    async fn work_to_the_end(&self) {
        for _ in 0..1000 {
            if self.state() == State::Finished {
                break;
            }
            self.work().await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let (status, run) = (self.cluster.status(&self.run).unwrap(), RunId::new(&self.run).unwrap());
        assert_eq!(status.state(), State::Finished, "{}", status.reason);
        let replayed = super::replay::replay(&self.store, &run).await.unwrap();
        assert_eq!(&status.digest.unwrap()[..], &replayed.0[..], "as the journal says");
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_not_acknowledged_is_written_again_and_counts() {
    for trouble in [Trouble::Refused, Trouble::Unacknowledged] {
        for generations in [2, 12, 30] {
            let (mut script, slow) = Script::slow(&settings(1)).await;
            script.submit(EXPERIMENT).await;
            script.work().await;
            trouble.begin(&slow);
            let budget = BudgetKeys { generations: Some(generations), ..BudgetKeys::default() };
            let asked = Instant::now();
            let told = script.cluster.extend(&script.run, budget).await.unwrap_err().to_string();
            assert!(told.contains("as soon as the store can write"), "{told}");
            assert!(asked.elapsed() <= Duration::from_secs(2), "an operator does not wait for the store");
            script.work().await;
            slow.fail(None);
            script.work_to_the_end().await;
            assert_eq!(script.generation(), generations, "{trouble:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_whose_decision_is_not_acknowledged_is_the_end() {
    let (mut script, slow) = Script::slow(&settings(1)).await;
    script.submit(&EXPERIMENT.replace("generations = 24", "generations = 24, wall_time = \"2s\"")).await;
    for _ in 0..11 {
        script.work().await;
    }
    assert_eq!(script.generation(), 22);
    let last = script.acquire("last", 3).await;
    // The answer is lost between two ticks.
    slow.delay_writes(Duration::from_millis(30));
    slow.leave_unacknowledged("events", 1);
    script.until("the decision", || slow.unacknowledged() == 0).await;
    for _ in 0..200 {
        for grant in &last {
            script.deliver("last", grant).await;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    script.work_to_the_end().await;
    assert_eq!(script.generation(), 22, "it ends where the journal first said");
}

#[tokio::test(start_paused = true)]
async fn operators_change_a_run_in_the_order_in_which_they_asked() {
    for trouble in [Trouble::Refused, Trouble::Unacknowledged] {
        let (mut script, slow) = Script::slow(&settings(1)).await;
        script.submit(EXPERIMENT).await;
        trouble.begin(&slow);
        script.cluster.pause(&script.run, true).await.unwrap_err();
        let (cluster, run) = (script.cluster.clone(), script.run.clone());
        let continuing = tokio::spawn(async move { cluster.pause(&run, false).await });
        tokio::task::yield_now().await;
        slow.fail(None);
        drop(continuing.await.unwrap());
        script.until("both", || script.state() != State::Paused).await;
        let changes = script.events().await.into_iter().filter_map(|event| match event {
            RunEvent::Paused { .. } => Some("paused"),
            RunEvent::Continued { .. } => Some("continued"),
            _ => None,
        });
        assert_eq!(changes.collect::<Vec<_>>(), ["paused", "continued"]);
        script.work_to_the_end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_cancellation_is_not_acknowledged_is_cancelled() {
    for trouble in [Trouble::Refused, Trouble::Unacknowledged] {
        let (mut script, slow) = Script::slow(&settings(1)).await;
        script.submit(EXPERIMENT).await;
        script.work().await;
        script.cluster.pause(&script.run, true).await.unwrap();
        script.cluster.pause(&script.run, false).await.unwrap();
        trouble.begin(&slow);
        let told = timeout(LONG, script.cluster.cancel(&script.run)).await.expect("it is answered");
        let told = told.unwrap_err().to_string();
        assert!(told.contains("as soon as the store can write"), "{told}");
        assert!(script.acquire("a", 5).await.is_empty(), "nothing of it is handed out any more");
        slow.fail(None);
        script.until("the end", || script.state() == State::Cancelled).await;
        let events = script.events().await;
        let last = events.last().unwrap();
        assert!(matches!(last, RunEvent::Cancelled { .. }), "{last:?}");
    }
}

const PLAYERS: &str = r#"
name = "evolved"
problem = { kind = "checkers", depth = 1, games = 1, draw = { moves = 4 } }
algorithm = { kind = "es", parents = 2, offspring = 2 }
islands = { count = 1, topology = "isolated" }
migration = { interval = 1 }
budget = { generations = 1 }
"#;

#[tokio::test(start_paused = true)]
async fn a_tournament_with_the_champion_of_a_run_is_one_run_however_often_it_is_submitted() {
    let (mut script, _) = Script::slow(&settings(1)).await;
    script.submit(PLAYERS).await;
    let line = Arc::new(Line::new(script.cluster.clone()));
    let worker = start_worker(&line);
    script.until("the players", || script.state() == State::Finished).await;
    worker.abort();
    let games = format!(
        "name = \"games\"\n[tournament]\nopenings = 1\nplayers = [{{ name = \"gambler\", player = \"random\" }}, \
         {{ name = \"evolved\", player = \"{}/0\" }}]",
        script.run
    );
    script.submit(&games).await;
    for _ in 0..2 {
        let again = timeout(LONG, script.cluster.submit(parse(&games), vec![], 0, false)).await;
        assert_eq!(again.expect("it is answered").unwrap(), script.run);
        assert_eq!(script.openings().await as u128, script.lives, "it is not opened beside its own writer");
        script.restart().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_failed_is_not_forgotten_because_another_one_is_opened() {
    let rules = CoordinatorSettings { exit_when_done: true, ..settings(1) };
    let (mut script, _) = Script::slow(&rules).await;
    script.submit(EXPERIMENT).await;
    for worker in ["a", "b", "c"] {
        let grant = script.acquire(worker, 1).await.remove(0);
        script.release(worker, grant).await;
    }
    script.until("the failure", || script.state() == State::Failed).await;
    script.submit(SWEEP).await;
    deliver_cells(&script, "a", &swept()).await.unwrap();
    script.until("the end", || script.state() == State::Finished).await;
    let request =
        v1::AcquireRequest { worker: "a".to_owned(), slots: 1, holding: vec![], wait_milliseconds: 0 };
    let reply = script.cluster.acquire(request).await.unwrap();
    assert!(reply.done);
    assert_eq!(reply.outcome(), v1::Outcome::Failed, "{}", reply.reason);
}

/// A state is stored and the records that would promise it are not, because the coordinator died in between; what is computed
/// by the next one is something else, because one of both is a lie.
#[tokio::test(start_paused = true)]
async fn a_stored_state_without_a_record_that_differs_does_not_fail_its_run() {
    for (lies_first, share) in [(true, 0.0), (false, 0.0), (true, 1e-9), (false, 1e-9)] {
        let audit = AuditTerms { share, secret: 7 };
        let rules = CoordinatorSettings { audit, ..settings(1) };
        let (mut script, slow) = Script::slow(&rules).await;
        script.submit(EXPERIMENT).await;
        let deliver = async |script: &Script, lies: bool| {
            let worker = if lies { "liar" } else { "honest" };
            let grants = script.acquire_elsewhere(worker, 3).await;
            let text = EXPERIMENT.replace("seed = 3", if lies { "seed = 4" } else { "seed = 3" });
            let Plan::Single(computed) = parse(&text) else { unreachable!("it is one experiment") };
            for grant in &grants {
                let (head, bodies) = computed_of(&computed, worker, grant);
                script.untrusted(worker).complete(head, bodies).await.unwrap();
            }
            assert_eq!(grants.len(), 3);
        };
        deliver(&script, lies_first).await;
        slow.fail(Some("commits"));
        script.cluster.pause(&script.run, true).await.unwrap();
        script.cluster.pause(&script.run, false).await.unwrap();
        tokio::time::sleep(Duration::from_secs(2)).await;
        // The one before has no turn any more.
        slow.fail(None);
        script.restart_with(&rules).await;
        deliver(&script, !lies_first).await;
        script.cluster.pause(&script.run, true).await.unwrap();
        tokio::time::sleep(Duration::from_secs(2)).await;
        script.cluster.pause(&script.run, false).await.unwrap();
        script.finish_honestly("last").await;
        assert_eq!(script.digest(), super::untrusted::true_digest(), "{lies_first}, {share}");
        script.restart().await;
        assert_eq!(script.state(), State::Finished);
        let run = RunId::new(&script.run).unwrap();
        assert_eq!(run::reader::Reader::read(&script.store, &run).await.unwrap().damage, []);
    }
}

#[tokio::test(start_paused = true)]
async fn cells_are_not_computed_again_because_the_store_failed_for_a_while() {
    let (mut script, slow) = Script::slow(&settings(1)).await;
    script.submit(SWEEP).await;
    let grant = script.acquire("a", 1).await.remove(0);
    slow.fail(Some("/"));
    deliver_cells(&script, "a", &swept()).await.unwrap();
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(script.renew("a", &grant).await.durable, 0, "it is not stored");
        assert_eq!(script.acquire("b", 5).await.len(), 0, "it is computed");
    }
    slow.fail(None);
    script.until("the end", || script.state() == State::Finished).await;
    assert_eq!(script.renew("a", &grant).await.durable, 1);
}

/// What a coordinator shows of a cancelled sweep is what the next one reads of it.
#[tokio::test(start_paused = true)]
async fn a_cancelled_sweep_has_the_cells_that_are_stored() {
    for is_late in [false, true] {
        let (mut script, slow) = Script::slow(&settings(1)).await;
        script.submit(SWEEP).await;
        script.acquire("a", 1).await;
        slow.delay_writes(Duration::from_millis(300));
        if !is_late {
            deliver_cells(&script, "a", &swept()[..2]).await.unwrap();
        }
        let (cluster, run) = (script.cluster.clone(), script.run.clone());
        slow.hold("events", 0);
        let cancelling = tokio::spawn(async move { cluster.cancel(&run).await });
        script.until("the event", || slow.is_holding()).await;
        if is_late {
            deliver_cells(&script, "a", &swept()[..2]).await.unwrap();
        }
        slow.let_go();
        cancelling.await.unwrap().unwrap();
        tokio::time::sleep(LONG).await;
        assert_eq!(script.state(), State::Cancelled);
        let shown = script.generation();
        assert_eq!(shown, if is_late { 0 } else { 2 });
        script.restart().await;
        assert_eq!((script.state(), script.generation()), (State::Cancelled, shown), "late: {is_late}");
    }
}

pub(super) const GUESTS: &str = r#"
name = "guests"
problem = { kind = "onemax", length = 12 }
algorithm = { kind = "ga", population = 4 }
islands = { count = 2 }
budget = { generations = 2 }
study = { first = {}, second = { guests = "first" } }
"#;

#[tokio::test(start_paused = true)]
async fn jobs_are_not_computed_again_because_the_store_failed_for_a_while() {
    let (mut script, slow) = Script::slow(&settings(1)).await;
    script.submit(GUESTS).await;
    slow.fail(Some("job-"));
    let line = Arc::new(Line::new(script.cluster.clone()));
    let worker = start_worker(&line);
    script.until("the job", || line.jobs.load(SeqCst) > 0).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    slow.fail(None);
    script.until("the end", || script.state() == State::Finished).await;
    assert_eq!(line.jobs.load(SeqCst), 1);
    worker.abort();
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_opened_holds_up_no_other_run() {
    let (mut script, slow) = Script::slow(&settings(1)).await;
    slow.fail(Some(".first"));
    script.submit(GUESTS).await;
    let study = script.run.clone();
    tokio::time::sleep(Duration::from_secs(1)).await;
    timeout(LONG, script.submit(EXPERIMENT)).await.expect("it is answered");
    assert_eq!(script.acquire("a", 5).await.len(), 3);
    slow.fail(None);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(script.cluster.status(&format!("{study}.first")).is_ok(), "it was opened later");
}

const RETRACTED: &str = r#"
name = "retracted"
problem = { kind = "onemax", length = 20 }
algorithm = { kind = "ga", population = 4 }
islands = { count = 2 }
migration = { interval = 2, count = 1 }
budget = { generations = 20 }
study = { first = {} }
"#;

/// Has a worker deliver something right and then something wrong, so that results are retracted.
pub(super) async fn quarantine(script: &Script, experiment: &Experiment) {
    let (worker, calls) = ("liar".to_owned(), UntrustedCalls::new(script.cluster.clone(), "liar"));
    calls.join(join_request("liar")).await.unwrap();
    let request =
        v1::AcquireRequest { worker: worker.clone(), slots: 2, holding: vec![], wait_milliseconds: 0 };
    let grants = calls.acquire(request).await.unwrap().grants;
    let (head, bodies) = computed_of(experiment, "liar", &grants[0]);
    assert_eq!(calls.complete(head, bodies).await.unwrap().status(), DeliveryStatus::Accepted);
    let (head, bodies) = computed_of(experiment, "liar", &grants[1]);
    let altered = bodies.into_iter().map(|body| [&body[..], b"!"].concat().into()).collect();
    let rejected = calls.complete(head, altered).await.unwrap_err();
    assert_eq!(rejected.code(), Code::PermissionDenied, "{rejected}");
}

pub(super) fn audited() -> CoordinatorSettings {
    CoordinatorSettings { audit: AuditTerms { share: 0.1, secret: 7 }, ..settings(1) }
}

fn first_part(text: &str) -> Experiment {
    match parse(text) {
        Plan::Study(study) => study.parts[0].experiment.clone(),
        _ => unreachable!("it is a study"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_study_is_cancelled_whose_part_is_being_retracted() {
    let (mut script, slow) = Script::slow(&audited()).await;
    script.submit(RETRACTED).await;
    let part = format!("{}.first", script.run);
    script.until("the part", || script.cluster.status(&part).is_ok()).await;
    slow.delay_writes(Duration::from_secs(1));
    quarantine(&script, &first_part(RETRACTED)).await;
    timeout(LONG, script.cluster.cancel(&script.run)).await.expect("it is answered").unwrap();
    assert_eq!(script.state(), State::Cancelled);
    assert_eq!(script.cluster.status(&part).unwrap().state(), State::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_run_fails_if_its_results_cannot_be_retracted() {
    let (mut script, _) = Script::slow(&audited()).await;
    script.submit(EXPERIMENT).await;
    // Another process has resumed the run: on a bucket nothing else shows that.
    let run = RunId::new(&script.run).unwrap();
    let (mut journal, _) = Journal::open::<RunEvent>(&script.store, &run, Nonce(99)).await.unwrap();
    journal.append(&RunEvent::Paused { at: 0 }).await.unwrap();
    quarantine(&script, &experiment()).await;
    script.until("the failure", || script.state() == State::Failed).await;
}

#[tokio::test(start_paused = true)]
async fn a_study_fails_if_a_part_that_is_retracted_cannot_be_opened_again() {
    let (mut script, slow) = Script::slow(&audited()).await;
    script.submit(RETRACTED).await;
    let part = format!("{}.first", script.run);
    script.until("the part", || script.cluster.status(&part).is_ok()).await;
    slow.delay_writes(Duration::from_secs(1));
    quarantine(&script, &first_part(RETRACTED)).await;
    slow.delay_writes(Duration::ZERO);
    script.store.delete(&run::Place::Experiment.in_run(&RunId::new(&part).unwrap())).await.unwrap();
    script.until("the failure", || script.state() == State::Failed).await;
    let [study, part] = [&script.run, &part].map(|run| script.cluster.status(run).unwrap());
    assert_eq!(part.state(), State::Failed);
    assert!(part.reason.starts_with("it cannot be opened again: "), "{}", part.reason);
    assert_eq!(study.reason, format!("first: {}", part.reason));
}

#[tokio::test(start_paused = true)]
async fn workers_are_woken_when_a_study_continues() {
    let (mut script, _) = Script::slow(&settings(1)).await;
    script.submit(GUESTS).await;
    let part = format!("{}.first", script.run);
    script.until("the part", || script.cluster.status(&part).is_ok()).await;
    script.cluster.pause(&script.run, true).await.unwrap();
    script.join("a").await;
    let cluster = script.cluster.clone();
    let waiting = tokio::spawn(async move {
        let worker = "a".to_owned();
        let request = v1::AcquireRequest { worker, slots: 1, holding: vec![], wait_milliseconds: 20_000 };
        (cluster.acquire(request).await.unwrap().grants.len(), Instant::now())
    });
    tokio::time::sleep(Duration::from_millis(250)).await;
    let continued = Instant::now();
    script.cluster.pause(&script.run, false).await.unwrap();
    let (grants, woken) = waiting.await.unwrap();
    assert_eq!((grants, woken - continued), (1, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn runs_that_are_being_opened_count() {
    let rules = CoordinatorSettings { max_runs: 1, ..settings(1) };
    let (script, slow) = Script::slow(&rules).await;
    slow.delay_writes(Duration::from_secs(1));
    let (first, second) = tokio::join!(
        script.cluster.submit(parse(EXPERIMENT), vec![], 0, false),
        script.cluster.submit(parse(SWEEP), vec![], 0, false)
    );
    let run = first.unwrap();
    assert!(matches!(second, Err(Rejection::TooMany { .. })));
    script.cluster.cancel(&run).await.unwrap();
    script.cluster.submit(parse(SWEEP), vec![], 0, false).await.unwrap();
    let again = script.cluster.submit(parse(EXPERIMENT), vec![], 0, false).await;
    assert!(matches!(again, Err(Rejection::TooMany { .. })), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn a_fresh_study_does_not_take_the_name_of_a_part() {
    let text = GUESTS.replace("first", "\"2\"").replace("\"\"2\"\"", "\"2\"");
    let (script, _) = Script::slow(&settings(1)).await;
    let first = script.cluster.submit(parse(&text), vec![], 0, true).await.unwrap();
    let second = script.cluster.submit(parse(&text), vec![], 0, true).await.unwrap();
    assert_eq!(second, format!("{first}.3"));
}

#[tokio::test(start_paused = true)]
async fn what_a_cancelled_run_held_is_freed() {
    let (mut script, _) = Script::slow(&settings(1)).await;
    script.submit(EXPERIMENT).await;
    let grant = script.acquire("a", 1).await.remove(0);
    let (head, bodies) = computed("a", &grant);
    let state = bodies[0].clone();
    script.cluster.complete(head, bodies).await.unwrap();
    assert!(!state.is_unique(), "its neighbours may need it");
    script.cluster.cancel(&script.run).await.unwrap();
    script.until("its memory", || state.is_unique()).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_failed_run_held_is_freed() {
    let (mut script, _) = Script::slow(&settings(1)).await;
    script.submit(EXPERIMENT).await;
    let grant = script.acquire("z", 1).await.remove(0);
    let (head, bodies) = computed("z", &grant);
    let state = bodies[0].clone();
    script.cluster.complete(head, bodies).await.unwrap();
    assert!(!state.is_unique(), "its neighbours may need it");
    script.fail().await;
    script.until("its memory", || state.is_unique()).await;
    let status = script.cluster.status(&script.run).unwrap();
    assert_eq!((status.state(), status.leases), (State::Failed, 0));
}

/// Counts how often a task is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl std::task::Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_wakes_no_worker_that_waits_for_work() {
    let (mut script, _) = Script::slow(&settings(1)).await;
    script.submit(EXPERIMENT).await;
    let grants = script.acquire("busy", 10).await;
    assert_eq!(grants.len(), 3);
    script.join("idle").await;
    let (cluster, worker) = (script.cluster.clone(), "idle".to_owned());
    let request = v1::AcquireRequest { worker, slots: 1, holding: vec![], wait_milliseconds: 20_000 };
    let mut waiting = std::pin::pin!(cluster.acquire(request));
    let wakes = Arc::new(Wakes::default());
    let waker = std::task::Waker::from(wakes.clone());
    let mut context = std::task::Context::from_waker(&waker);
    assert!(waiting.as_mut().poll(&mut context).is_pending(), "everything is handed out");
    for _ in 0..100 {
        script.renew("busy", &grants[0]).await;
    }
    assert_eq!(wakes.0.load(SeqCst), 0, "a renewal brings no work");
    for grant in &grants {
        script.deliver("busy", grant).await;
    }
    assert!(wakes.0.load(SeqCst) > 0, "a delivery does");
    assert!(waiting.as_mut().poll(&mut context).is_ready());
}

/// What is logged by this thread: the text of each event.
#[derive(Clone, Default)]
struct Logged(Arc<std::sync::Mutex<Vec<String>>>);

impl tracing::Subscriber for Logged {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        use std::fmt::Write;
        struct Text(String);
        impl tracing::field::Visit for Text {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                let _ = write!(self.0, "{}={value:?} ", field.name());
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test(start_paused = true)]
async fn a_piece_that_stands_still_is_named_and_ends_normally_all_the_same() {
    let logged = Logged::default();
    let _logging = tracing::subscriber::set_default(logged.clone());
    let stall = Duration::from_mins(1);
    let rules = CoordinatorSettings { terms: Terms { stall, ..Terms::default() }, ..settings(1) };
    let (mut script, _) = Script::slow(&rules).await;
    script.submit(EXPERIMENT).await;
    let grants = script.acquire("still", 10).await;
    // One generation takes longer than the limit: its worker renews, and counts nothing.
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(script.renew("still", &grants[0]).await.lost, [0; 0], "a lease lasts while it is renewed");
    }
    let status = script.cluster.status(&script.run).unwrap();
    assert_eq!(status.reason, "island 0, epoch 0 makes no progress on worker still");
    let lines = logged.0.lock().unwrap().clone();
    let named = |line: &&String| line.contains("no progress") && line.contains("worker=still");
    assert!(lines.iter().any(|line| named(&line)), "{lines:?}");
    assert_eq!(script.deliver("still", &grants[0]).await.status(), DeliveryStatus::Accepted);
    script.work_to_the_end().await;
    assert_eq!(script.cluster.status(&script.run).unwrap().reason, "generation limit reached");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_failed_and_is_submitted_again_ends_as_an_undisturbed_one() {
    let (mut script, _) = Script::slow(&settings(1)).await;
    script.submit(EXPERIMENT).await;
    script.work_to_the_end().await;
    let undisturbed = script.cluster.status(&script.run).unwrap().digest;
    let (mut script, _) = Script::slow(&settings(1)).await;
    script.submit(EXPERIMENT).await;
    script.work().await;
    script.fail().await;
    script.submit(EXPERIMENT).await;
    script.work_to_the_end().await;
    assert_eq!(script.cluster.status(&script.run).unwrap().digest, undisturbed);
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_call_panics_ends_with_an_error() {
    let (mut script, _) = Script::slow(&settings(1)).await;
    script.submit(EXPERIMENT).await;
    let line = Arc::new(Line::new(script.cluster.clone()));
    line.panics.store(true, SeqCst);
    let ended = timeout(LONG, start_worker(&line)).await.expect("it ends").unwrap();
    assert!(matches!(ended, Err(worker::WorkerError::Panicked(_))), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_repeated_while_any_run_has_other_work() {
    let text = EXPERIMENT.replace("count = 3", "count = 3, topology = \"isolated\"");
    let mut script = Script::new(&text).await;
    let first = (script.run.clone(), text.clone());
    let other = text.replace("seed = 3", "seed = 4");
    script.submit(&other).await;
    let texts = BTreeMap::from([first, (script.run.clone(), other)]);
    let slow = script.acquire("slow", 1).await.remove(0);
    let mut others = 0;
    loop {
        tokio::time::sleep(Duration::from_secs(5)).await;
        script.renew("slow", &slow).await;
        // A worker that has no state at hand.
        let worker = format!("quick-{others}");
        let grant = script.acquire(&worker, 1).await.remove(0);
        let piece = grant.piece.clone().unwrap();
        if Some(&piece) == slow.piece.as_ref() {
            break;
        }
        others += 1;
        let Plan::Single(experiment) = parse(&texts[&piece.run]) else { unreachable!("both are one") };
        let (head, bodies) = computed_of(&experiment, &worker, &grant);
        assert_eq!(script.cluster.complete(head, bodies).await.unwrap().status(), DeliveryStatus::Accepted);
    }
    assert!(others > 36, "all of the second run, and what does not wait for the slow one: {others}");
}

#[tokio::test(start_paused = true)]
async fn a_piece_within_twice_its_usual_time_is_not_repeated() {
    let script = Script::new(EXPERIMENT).await;
    let grants = script.acquire("a", 3).await;
    let work_on = async |seconds: u64| {
        for _ in 0..seconds / 5 {
            tokio::time::sleep(Duration::from_secs(5)).await;
            for grant in &grants {
                script.renew("a", grant).await;
            }
        }
    };
    work_on(60).await;
    script.deliver("a", &grants[0]).await;
    for _ in 0..11 {
        assert!(script.acquire("idle", 1).await.is_empty(), "such a piece takes a minute");
        work_on(5).await;
    }
    work_on(10).await;
    assert_eq!(script.acquire("idle", 1).await.len(), 1, "two minutes have passed");
}
