//! How coordinators start and stop: what they find, what they leave alone, and what a store that fails meanwhile says of
//! their runs: nothing.

use super::slow::{GUESTS, LONG, audited, quarantine, start_worker};
use super::slow_store::SlowStore;
use super::*;
use coordinator::{First, ServeError};
use experiment::file::BudgetKeys;
use run::reader::Reader;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

impl Script {
    /// Ends the coordinator at once, and starts another one with these settings.
    async fn start_again(&mut self, settings: &CoordinatorSettings) -> Result<(), ServeError> {
        if let Some(background) = self.background.take() {
            background.abort();
        }
        let (cluster, background) = coordinator::start(self.store.clone(), settings, || 0).await?;
        (self.cluster, self.background) = (cluster, Some(background));
        Ok(())
    }

    /// Asks the coordinator to stop, while the store takes seconds for an epoch that is not written yet.
    async fn stop_slowly(&mut self, slow: &SlowStore) {
        slow.delay_writes(Duration::from_secs(2));
        assert!(self.cluster.stop(self.background.take().unwrap(), LONG).await, "everything is written");
        slow.delay_writes(Duration::ZERO);
    }

    /// Submits a run; one of its epochs is not written before the coordinator stops.
    async fn leave_unwritten(&mut self) {
        self.submit(EXPERIMENT).await;
        let grant = self.acquire("a", 1).await.remove(0);
        assert_eq!(self.deliver("a", &grant).await.durable, 0);
    }

    async fn has_event(&self, is_it: impl Fn(&RunEvent) -> bool) -> bool {
        self.events().await.iter().any(is_it)
    }
}

#[tokio::test(start_paused = true)]
async fn a_single_command_computes_what_is_submitted_and_nothing_else() {
    let mut script = Script::new(EXPERIMENT).await;
    let other = script.run.clone();
    let rules = CoordinatorSettings { only_submitted: true, exit_when_done: true, ..settings(2) };
    script.start_again(&rules).await.unwrap();
    script.submit(SWEEP).await;
    deliver_cells(&script, "a", &swept()).await.unwrap();
    script.until("the end", || script.state() == State::Finished).await;
    let request =
        v1::AcquireRequest { worker: "a".to_owned(), slots: 1, holding: vec![], wait_milliseconds: 0 };
    assert!(script.cluster.acquire(request).await.unwrap().done, "the other run was not asked for");
    assert!(script.cluster.status(&other).is_err());
}

#[tokio::test(start_paused = true)]
async fn what_was_paused_continues_in_a_single_command_with_its_priority() {
    for (text, resumes) in
        [(EXPERIMENT, true), (EXPERIMENT, false), (SWEEP, true), (GUESTS, true), (GUESTS, false)]
    {
        let (mut script, _) = Script::slow(&settings(1)).await;
        script.run = script.cluster.submit(parse(text), vec![], 3, false).await.unwrap();
        if text == GUESTS {
            let part = format!("{}.first", script.run);
            script.until("the part", || script.cluster.status(&part).is_ok()).await;
            script.cluster.pause(&part, true).await.unwrap();
        }
        script.cluster.pause(&script.run, true).await.unwrap();
        script.background.take().unwrap().abort();
        let local = coordinator::start_local(script.store.clone(), Nonce(2), "scripted", || 0).await.unwrap();
        (script.cluster, script.background) = (local.0, Some(local.1));
        if resumes {
            script.cluster.resume(&RunId::new(&script.run).unwrap()).await.unwrap();
        } else {
            script.submit(text).await;
        }
        let worker = start_worker(&Arc::new(Line::new(script.cluster.clone())));
        script.until("the end", || script.state() == State::Finished).await;
        worker.abort();
        assert!(script.has_event(|event| matches!(event, RunEvent::Continued { .. })).await);
        let priorities: Vec<i32> = script
            .events()
            .await
            .iter()
            .filter_map(|event| match event {
                RunEvent::Prioritised { priority, .. } => Some(*priority),
                _ => None,
            })
            .collect();
        assert_eq!(priorities, [3], "nobody asked for another one");
    }
}

#[tokio::test(start_paused = true)]
async fn runs_keep_the_order_of_their_submission_through_a_restart() {
    let later = || {
        static NOW: AtomicU64 = AtomicU64::new(0);
        NOW.fetch_add(1, SeqCst)
    };
    let store = Store::memory();
    let (cluster, background) = coordinator::start(store.clone(), &settings(1), later).await.unwrap();
    let mut script = Script { store, cluster, background: Some(background), run: String::new(), lives: 1 };
    for name in ["zebra", "ape"] {
        script.submit(&EXPERIMENT.replace("scripted", name)).await;
    }
    for life in [1, 2] {
        let grant = script.acquire("a", 1).await.remove(0);
        let run = grant.piece.unwrap().run;
        assert!(run.starts_with("zebra"), "coordinator {life} begins with {run}");
        script.background.take().unwrap().abort();
        let next = settings(2);
        let (cluster, background) = coordinator::start(script.store.clone(), &next, later).await.unwrap();
        (script.cluster, script.background) = (cluster, Some(background));
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_at_the_start_fails_no_run() {
    let (mut script, slow) = Script::slow(&settings(1)).await;
    script.submit(EXPERIMENT).await;
    slow.fail(Some(&script.run));
    let first = First { file: "scripted.toml".to_owned(), text: EXPERIMENT.to_owned(), players: vec![] };
    let rules = CoordinatorSettings { first: Some(first), exit_when_done: true, ..settings(2) };
    let refused = script.start_again(&rules).await.unwrap_err();
    assert!(matches!(refused, ServeError::Open(_)) && !refused.is_permanent(), "{refused}");
    // One that serves reads it as soon as the store can.
    script.start_again(&settings(3)).await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    slow.fail(None);
    let is_there = || script.cluster.status(&script.run).is_ok_and(|status| status.state() == State::Waiting);
    script.until("the run", is_there).await;
    assert_eq!(script.acquire("a", 5).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_run_does_not_end_without_its_audit_because_the_coordinator_stops() {
    let rules =
        CoordinatorSettings { audit: coordinator::AuditTerms { share: 1.0, secret: 7 }, ..settings(1) };
    let (mut script, slow) = Script::slow(&rules).await;
    script.leave_unwritten().await;
    script.submit(SWEEP).await;
    let mut wrong = swept();
    wrong[0].1 = wrong[1].1.clone();
    for (worker, results) in [("one", &wrong), ("other", &swept())] {
        let calls = script.untrusted(worker);
        calls.join(join_request(worker)).await.unwrap();
        let (head, bodies) = cells_delivery(&script, worker, results);
        calls.complete(head, bodies).await.unwrap();
        if worker == "one" {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
    // The coordinator is about to decide which of the two is right.
    script.stop_slowly(&slow).await;
    assert!(!script.has_event(|event| matches!(event, RunEvent::Finished { .. })).await);
}

#[tokio::test(start_paused = true)]
async fn a_study_does_not_fail_because_the_store_does_while_the_coordinator_stops() {
    // What a part is opened from, and what the guests of the next part are made of.
    for failing in [".first/", ".first/experiment"] {
        let (mut script, slow) = Script::slow(&settings(1)).await;
        if failing == ".first/" {
            slow.fail(Some(failing));
        }
        script.submit(GUESTS).await;
        let study = script.run.clone();
        if failing != ".first/" {
            let part = format!("{study}.first");
            script.until("the part", || script.cluster.status(&part).is_ok()).await;
            slow.fail(Some(failing));
            let worker = start_worker(&Arc::new(Line::new(script.cluster.clone())));
            let is_done = || script.cluster.status(&part).unwrap().state() == State::Finished;
            script.until("the part's end", is_done).await;
            worker.abort();
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        script.leave_unwritten().await;
        script.stop_slowly(&slow).await;
        script.run = study;
        assert!(!script.has_event(|event| matches!(event, RunEvent::Failed { .. })).await, "{failing}");
        slow.fail(None);
        script.start_again(&settings(2)).await.unwrap();
        let worker = start_worker(&Arc::new(Line::new(script.cluster.clone())));
        script.until("the end", || script.state() == State::Finished).await;
        worker.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn no_cells_are_handed_out_while_the_store_does_not_keep_up() {
    let (mut script, slow) = Script::slow(&settings(1)).await;
    script.submit(&SWEEP.replace("repeats = 3", "repeats = 6000")).await;
    slow.fail(Some("/jobs/"));
    let one = swept().remove(0).1;
    let results: Vec<(u32, CellResult)> = (0..5000).map(|number| (number, one.clone())).collect();
    assert_eq!(script.acquire("a", 1).await.len(), 1);
    deliver_cells(&script, "a", &results).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(script.acquire("b", 5).await, [], "5,000 results wait for the store");
    slow.fail(None);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(script.acquire("b", 5).await.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn nobody_works_for_longer_than_a_year() {
    let (mut script, _) = Script::slow(&settings(1)).await;
    script.submit(EXPERIMENT).await;
    let grant = script.acquire("a", 1).await.remove(0);
    let (head, bodies) = computed("a", &grant);
    script.cluster.complete(v1::CompleteHead { milliseconds: u64::MAX, ..head }, bodies).await.unwrap();
    script.cluster.pause(&script.run, true).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let reader = Reader::read(&script.store, &RunId::new(&script.run).unwrap()).await.unwrap();
    let times: Vec<u64> =
        reader.stored().records.iter().flatten().map(|record| record.labour.milliseconds).collect();
    assert_eq!(times, [365 * 24 * 3600 * 1000]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_fails_while_results_are_taken_back_stays_failed() {
    let (mut script, slow) = Script::slow(&audited()).await;
    script.submit(EXPERIMENT).await;
    for worker in ["a", "b"] {
        let grant = script.acquire(worker, 1).await.remove(0);
        script.release(worker, grant).await;
    }
    let grant = script.acquire("c", 1).await.remove(0);
    slow.delay_writes(Duration::from_secs(1));
    quarantine(&script, &experiment()).await;
    script.release("c", grant).await;
    script.until("the failure", || script.state() == State::Failed).await;
    tokio::time::sleep(LONG).await;
    assert_eq!(script.state(), State::Failed);
    assert!(script.has_event(|event| matches!(event, RunEvent::Retracted { .. })).await);
    assert!(!script.has_event(|event| matches!(event, RunEvent::Continued { .. })).await);
}

#[tokio::test(start_paused = true)]
async fn what_came_after_a_write_that_failed_is_written_before_the_coordinator_stops() {
    let (mut script, slow) = Script::slow(&settings(1)).await;
    script.submit(&EXPERIMENT.replace("every = \"1h\"", "every = 2")).await;
    slow.fail(Some("/commits/"));
    for _ in 0..4 {
        script.work().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(script.generation(), 8);
    slow.fail(None);
    assert!(script.cluster.stop(script.background.take().unwrap(), LONG).await);
    script.start_again(&settings(2)).await.unwrap();
    assert_eq!(script.generation(), 8, "the commit that failed, and those after it");
}

/// The worker's only thread for what takes long is busy: it cannot parse the plan, and renews all the same.
#[test]
fn a_worker_calls_its_coordinator_while_a_plan_is_parsed() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build();
    runtime.unwrap().block_on(async {
        let terms = Terms { renew: Duration::from_millis(20), ..Terms::default() };
        let script = Script::with(EXPERIMENT, &CoordinatorSettings { terms, ..settings(1) }).await;
        let line = Arc::new(Line::new(script.cluster.clone()));
        let (release, released) = std::sync::mpsc::channel::<()>();
        let busy = tokio::task::spawn_blocking(move || released.recv());
        let pool = worker::Pool::new(1).unwrap();
        let working = tokio::spawn(worker::run(config("a"), line.clone(), pool, std::future::pending()));
        script.until("the plan", || line.plans.load(SeqCst) > 0).await;
        let before = line.renewals.load(SeqCst);
        script.until("renewals", || line.renewals.load(SeqCst) > before + 3).await;
        assert_eq!(script.generation(), 0, "the plan is not parsed yet");
        drop(release);
        drop(busy.await);
        script.until("the end", || script.state() == State::Finished).await;
        working.abort();
    });
}

#[tokio::test(start_paused = true)]
async fn what_happens_to_a_run_while_another_process_opens_it_counts_there() {
    for wanted in [State::Finished, State::Cancelled, State::Paused] {
        let (mut script, slow) = Script::slow(&settings(1)).await;
        script.submit(EXPERIMENT).await;
        let id = RunId::new(&script.run).unwrap();
        let local = coordinator::start_local(script.store.clone(), Nonce(2), "scripted", || 0).await.unwrap();
        // Its plan is read to see what it is, then with its head, and then once it is claimed.
        slow.hold("experiment.toml", 2);
        let (other, opened) = (local.0.clone(), id.clone());
        let opening = tokio::spawn(async move { other.list(&opened).await });
        script.until("the second look", || slow.is_holding()).await;
        match wanted {
            State::Finished => {
                let worker = start_worker(&Arc::new(Line::new(script.cluster.clone())));
                script.until("the end", || script.state() == State::Finished).await;
                worker.abort();
            }
            State::Cancelled => script.cluster.cancel(&script.run).await.unwrap(),
            _ => script.cluster.pause(&script.run, true).await.unwrap(),
        }
        slow.let_go();
        opening.await.unwrap().unwrap();
        let (status, expected) =
            (local.0.status(&script.run).unwrap(), script.cluster.status(&script.run).unwrap());
        assert_eq!(status.state(), wanted);
        assert_eq!((status.digest, status.reason), (expected.digest, expected.reason));
        // It is no run that nobody writes.
        if wanted == State::Paused {
            local.0.cancel(&script.run).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_part_has_the_budget_the_priority_and_the_pause_of_its_study() {
    let (mut script, _) = Script::slow(&settings(1)).await;
    script.submit(GUESTS).await;
    let part = format!("{}.first", script.run);
    let longer = || BudgetKeys { generations: Some(2000), ..BudgetKeys::default() };
    script.until("the part", || script.cluster.status(&part).is_ok()).await;
    script.cluster.submit(parse(GUESTS), vec![], 7, false).await.unwrap();
    let priority = |script: &Script, run: &str| script.cluster.status(run).unwrap().priority;
    script.until("its priority", || priority(&script, &part) == 7).await;
    // Without a priority it keeps its own.
    script.cluster.submit(parse(GUESTS), vec![], None, false).await.unwrap();
    assert_eq!((priority(&script, &script.run), priority(&script, &part)), (7, 7));
    script.cluster.pause(&script.run, true).await.unwrap();
    let refused = script.cluster.pause(&part, false).await.unwrap_err().to_string();
    assert!(refused.contains(&format!("`atoll pause {} --off`", script.run)), "{refused}");
    script.start_again(&settings(2)).await.unwrap();
    assert_eq!((priority(&script, &script.run), priority(&script, &part)), (7, 7));
    let refused = script.cluster.extend(&part, longer()).await.unwrap_err().to_string();
    assert!(refused.contains("a part of the study"), "{refused}");
    // A command that opens the part alone does not have its study.
    script.background.take().unwrap().abort();
    let local = coordinator::start_local(script.store.clone(), Nonce(3), "scripted", || 0).await.unwrap();
    let id = RunId::new(&part).unwrap();
    local.0.list(&id).await.unwrap();
    let refused = local.0.extend(&part, longer()).await.unwrap_err().to_string();
    assert!(refused.contains("a part of the study"), "{refused}");
    script.run = part;
    assert!(!script.has_event(|event| matches!(event, RunEvent::Extended { .. })).await);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_submitted_while_it_is_being_cancelled_is_not_lost() {
    let (mut script, slow) = Script::slow(&settings(1)).await;
    script.submit(EXPERIMENT).await;
    slow.delay_writes(Duration::from_secs(2));
    let (cluster, run) = (script.cluster.clone(), script.run.clone());
    let cancelling = tokio::spawn(async move { cluster.cancel(&run).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let refused = script.cluster.submit(parse(EXPERIMENT), vec![], 0, false).await.unwrap_err().to_string();
    assert!(refused.contains("it is just ending: try again"), "{refused}");
    cancelling.await.unwrap().unwrap();
    script.submit(EXPERIMENT).await;
    assert_eq!(script.state(), State::Waiting);
}
