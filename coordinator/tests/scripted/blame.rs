//! Workers that lie about cells, jobs and checkpoints, and which is blamed for it: never an honest worker.

use super::slow_store::SlowStore;
use super::untrusted::{refusal, true_digest};
use super::*;
use archipelago::CellProgress;
use archipelago::job::JobResult;
use coordinator::{AuditTerms, UntrustedCalls};
use evolution::epoch::Evolver;
use futures::FutureExt;
use run::jobs::StoredJobs;

fn audited(share: f64) -> CoordinatorSettings {
    CoordinatorSettings { audit: AuditTerms { share, secret: 7 }, ..settings(1) }
}

/// The experiment with another seed: what it comes to could have evolved, and did not.
fn lying(seed: u64) -> Arc<dyn Evolver> {
    match parse(&EXPERIMENT.replace("seed = 3", &format!("seed = {seed}"))) {
        Plan::Single(experiment) => experiment.evolver(),
        _ => unreachable!("it is one experiment"),
    }
}

impl Script {
    /// Whether a worker may take part.
    async fn is_welcome(&self, worker: &str) -> bool {
        match self.untrusted(worker).join(join_request(worker)).await {
            Ok(_) => true,
            Err(status) => {
                assert_eq!(status.code(), Code::PermissionDenied, "{status}");
                false
            }
        }
    }

    async fn lie(
        &self,
        worker: &str,
        grant: &v1::Grant,
        seed: u64,
    ) -> Result<v1::CompleteReply, tonic::Status> {
        let outcome = epoch::run(&*lying(seed), &task_of(grant)).unwrap();
        let (head, bodies) = delivery(worker, grant, outcome);
        self.untrusted(worker).complete(head, bodies).await
    }

    async fn deliver_cells_of(&self, worker: &str, results: &[(u32, CellResult)]) {
        self.untrusted(worker).join(join_request(worker)).await.unwrap();
        let (head, bodies) = cells_delivery(self, worker, results);
        self.untrusted(worker).complete(head, bodies).await.unwrap();
    }

    /// What is stored of a sweep, which must be whole.
    async fn stored_cells(&self) -> StoredJobs {
        let run = RunId::new(&self.run).unwrap();
        let stored = StoredJobs::read(&self.store, &run, CellPlan::of(parse(SWEEP)).unwrap()).await.unwrap();
        assert_eq!(stored.damage, []);
        stored
    }
}

/// A worker that changes what it delivers.
struct Tampering<F> {
    calls: UntrustedCalls,
    tamper: F,
}

#[tonic::async_trait]
impl<F: Fn(&v1::CompleteHead, Vec<Bytes>) -> Vec<Bytes> + Send + Sync + 'static> WorkerCalls
    for Tampering<F>
{
    async fn join(&self, request: v1::JoinRequest) -> Result<v1::JoinReply, tonic::Status> {
        self.calls.join(request).await
    }
    async fn acquire(&self, request: v1::AcquireRequest) -> Result<v1::AcquireReply, tonic::Status> {
        tokio::time::sleep(Duration::from_millis(10)).await;
        self.calls.acquire(request).await
    }
    async fn plan(&self, request: v1::PlanRequest) -> Result<v1::PlanReply, tonic::Status> {
        self.calls.plan(request).await
    }
    async fn fetch(&self, request: v1::FetchRequest, length: u64) -> Result<Bytes, tonic::Status> {
        self.calls.fetch(request, length).await
    }
    async fn renew(&self, request: v1::RenewRequest) -> Result<v1::RenewReply, tonic::Status> {
        self.calls.renew(request).await
    }
    async fn checkpoint(
        &self,
        head: v1::CheckpointHead,
        bytes: Bytes,
    ) -> Result<v1::CheckpointReply, tonic::Status> {
        self.calls.checkpoint(head, bytes).await
    }
    async fn complete(
        &self,
        head: v1::CompleteHead,
        bodies: Vec<Bytes>,
    ) -> Result<v1::CompleteReply, tonic::Status> {
        let bodies = (self.tamper)(&head, bodies);
        self.calls.complete(head, bodies).await
    }
    async fn release(&self, request: v1::ReleaseRequest) -> Result<v1::ReleaseReply, tonic::Status> {
        self.calls.release(request).await
    }
    async fn leave(&self, request: v1::LeaveRequest) -> Result<v1::LeaveReply, tonic::Status> {
        self.calls.leave(request).await
    }
}

const STUDY: &str = r#"
name = "studied"
algorithm = { kind = "es", parents = 2, offspring = 2 }
islands = { count = 2 }
migration = { interval = 1, count = 1 }
budget = { generations = 2 }
study = { first = {}, second = { guests = "first", seed = 5 } }

[problem]
kind = "checkers"
depth = 1
games = 1
draw = { moves = 5 }
champion = { contenders = 2, pairs = 1 }
quiescence = false

[tournament]
openings = 1
depth = 1
draw = { max_plies = 10 }
species = { min_points = 2, noise = "own", depth = 1 }
players = [
    { name = "kind", representatives = "first" },
    { name = "all", ensemble = "first" },
    { name = "champion", player = "second/0" },
]
"#;

/// Has a worker compute until the run has ended; how it did, and the digest.
async fn finish(script: &Script, worker: &str) -> Vec<u8> {
    let calls = Arc::new(script.untrusted(worker));
    let working =
        tokio::spawn(worker::run(config(worker), calls, worker::Pool::inline(), std::future::pending()));
    script
        .until("the end", || {
            let status = script.cluster.status(&script.run).unwrap();
            assert_ne!(status.state(), State::Failed, "{}", status.reason);
            status.state() == State::Finished
        })
        .await;
    working.abort();
    script.cluster.status(&script.run).unwrap().digest.unwrap().to_vec()
}

#[tokio::test(start_paused = true)]
async fn a_lie_about_a_job_is_found_before_it_is_kept() {
    let truth = finish(&Script::new(STUDY).await, "honest").await;
    let lies: [(u32, JobResult); 4] =
        [(1, vec![]), (1, vec![b"no guests".to_vec()]), (2, vec![]), (2, vec![b"no player".to_vec(); 3])];
    for (job, lie) in lies {
        let mut script = Script::new(STUDY).await;
        let lie = codec::encode(&lie).unwrap();
        let tamper = move |head: &v1::CompleteHead, bodies: Vec<Bytes>| {
            let what = head.piece.as_ref().unwrap().what;
            let is_meant =
                matches!(what, Some(v1::piece::What::Job(v1::JobPiece { number })) if number == job);
            if is_meant { vec![lie.clone()] } else { bodies }
        };
        let calls = Arc::new(Tampering { calls: script.untrusted("liar"), tamper });
        let liar =
            tokio::spawn(worker::run(config("liar"), calls, worker::Pool::inline(), std::future::pending()));
        script.until("the liar is found", || liar.is_finished()).await;
        assert!(!script.is_welcome("liar").await);
        assert_eq!(finish(&script, "honest").await, truth);
        script.restart().await;
        assert_eq!(script.state(), State::Finished);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stored_job_that_is_none_sets_its_study_aside_and_nothing_else() {
    for garbage in [vec![], vec![b"no player".to_vec()]] {
        let mut script = Script::new(STUDY).await;
        let run = RunId::new(&script.run).unwrap();
        let path = run::study::job_path(&run, 2);
        script.store.create_value(&path, store::Kind::Artifact, &garbage).await.unwrap();
        script.restart().await;
        let status = script.cluster.status(&script.run).unwrap();
        assert_eq!(status.state(), State::Failed);
        assert!(status.reason.contains("job 2: a stored result does not fit"), "{}", status.reason);
        script.run = script.cluster.submit(parse(EXPERIMENT), vec![], 0, false).await.unwrap();
        assert_eq!(finish(&script, "honest").await, true_digest());
    }
}

/// The results of the sweep with a wrong one, and the digest of the true ones.
fn swept_wrongly(wrong: u32) -> (Vec<(u32, CellResult)>, Vec<u8>) {
    let mut results = swept();
    let mut progress = CellProgress::new(CellPlan::of(parse(SWEEP)).unwrap());
    for (number, result) in results.clone() {
        progress.add(number, result);
    }
    let CellResult::Evolved(evolved) = &mut results[wrong as usize].1 else { unreachable!("it is a sweep") };
    evolved.best += 1.0;
    evolved.digest = Digest::of(b"another run");
    (results, progress.digest().unwrap().0.to_vec())
}

#[tokio::test(start_paused = true)]
async fn of_two_workers_whose_cells_differ_the_one_that_was_wrong_is_blamed() {
    let (wrong, truth) = swept_wrongly(1);
    for liar_comes_first in [true, false] {
        let mut script = Script::new(SWEEP).await;
        let deliveries = [("liar", &wrong[..2]), ("honest", &swept()[..2])];
        let (first, second) = if liar_comes_first { (0, 1) } else { (1, 0) };
        for (worker, results) in [deliveries[first], deliveries[second]] {
            script.deliver_cells_of(worker, results).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert!(script.is_welcome("honest").await && !script.is_welcome("liar").await, "{liar_comes_first}");
        assert_eq!(finish(&script, "honest").await, truth);
        let events = script.events().await;
        let is_explained = events.iter().any(|event| matches!(event, RunEvent::RetractedJobs { .. }));
        assert_eq!(is_explained, liar_comes_first);
        assert_eq!(script.stored_cells().await.progress.digest().unwrap().0.to_vec(), truth);
        script.restart().await;
        assert_eq!(script.state(), State::Finished);
    }
}

/// While the lie is on its way to the store, nobody can compute the cell again.
#[tokio::test(start_paused = true)]
async fn a_liar_cannot_confirm_its_own_cell_while_that_is_being_stored() {
    for other in ["liar", "accomplice"] {
        let (mut script, slow) = Script::slow(&settings(1)).await;
        script.submit(SWEEP).await;
        let (wrong, truth) = swept_wrongly(1);
        slow.delay_writes(Duration::from_secs(1));
        let start = tokio::time::Instant::now();
        script.deliver_cells_of("liar", &wrong).await;
        script.deliver_cells_of("honest", &swept()[..2]).await;
        script.deliver_cells_of(other, &wrong[..2]).await;
        assert!(start.elapsed() < Duration::from_secs(1), "nothing is stored yet");
        slow.delay_writes(Duration::ZERO);
        assert_eq!(finish(&script, "honest").await, truth, "{other}");
        assert!(!script.is_welcome("liar").await && script.is_welcome("honest").await, "{other}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_lies_about_cells_is_found_where_they_are_audited() {
    // All of them are audited, or the last one of each worker alone.
    for (share, wrong) in [(1.0, 0), (1.0, 2), (1e-9, 2)] {
        let mut script = Script::with(SWEEP, &audited(share)).await;
        let (results, truth) = swept_wrongly(wrong);
        script.deliver_cells_of("liar", &results).await;
        assert_eq!(finish(&script, "honest").await, truth, "{share}, {wrong}");
        assert!(!script.is_welcome("liar").await && script.is_welcome("honest").await);
        assert_eq!(script.stored_cells().await.progress.digest().unwrap().0.to_vec(), truth);
        script.restart().await;
        assert_eq!(script.state(), State::Finished);
    }
}

#[tokio::test(start_paused = true)]
async fn honest_cells_are_audited_by_another_worker_or_by_the_coordinator() {
    let (_, truth) = swept_wrongly(0);
    let script = Script::with(SWEEP, &audited(1.0)).await;
    assert_eq!(finish(&script, "alone").await, truth);
    let script = Script::with(SWEEP, &audited(1.0)).await;
    script.untrusted("other").join(join_request("other")).await.unwrap();
    script.deliver_cells_of("author", &swept()).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(script.state(), State::Waiting, "nothing is audited yet");
    let request = |worker: &str| {
        let worker = worker.to_owned();
        v1::AcquireRequest { worker, slots: 5, holding: vec![], wait_milliseconds: 0 }
    };
    assert_eq!(script.untrusted("author").acquire(request("author")).await.unwrap().grants, []);
    assert_eq!(script.untrusted("other").acquire(request("other")).await.unwrap().grants.len(), 3);
    script.deliver_cells_of("other", &swept()).await;
    script.until("the end", || script.state() == State::Finished).await;
    assert_eq!(script.digest(), truth);
}

const GAMES: &str = r#"
name = "games"
[tournament]
openings = 1
players = [{ name = "a", player = "random" }, { name = "b", player = "random" }, { name = "c", engine = "elsewhere" }]
"#;

/// The players of the games; the engine is never started.
fn players(plan: &CellPlan) -> Vec<tournament::Contestant> {
    let CellPlan::Tournament(games) = plan else { unreachable!("it is a tournament") };
    let command = tournament::EngineCommand { command: vec![], patience: Duration::ZERO };
    let engines = BTreeMap::from([("elsewhere".to_owned(), command)]);
    games.contestants(&BTreeMap::<Digest, Bytes>::new(), &engines).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_status_shows_that_results_could_not_be_audited() {
    let script = Script::with(GAMES, &audited(1.0)).await;
    let plan = CellPlan::of(parse(GAMES)).unwrap();
    let contestants = players(&plan);
    let pure: Vec<u32> = (0..plan.len()).filter(|&number| plan.is_pure(number)).collect();
    let played = |&number: &u32| (number, plan.compute(number, &contestants, || false).unwrap().unwrap());
    let results: Vec<(u32, CellResult)> = pure.iter().map(played).collect();
    // No other worker is there to audit it, and the coordinator has no engines.
    script.deliver_cells_of("alone", &results).await;
    let reason = || script.cluster.status(&script.run).unwrap().reason;
    script.until("the audits are given up", || reason().contains("run unaudited: ")).await;
    assert!(reason().ends_with("could not be audited"), "{}", reason());
    assert!(script.is_welcome("alone").await);
}

#[test]
fn a_pairing_is_counted_anew_once_a_lie_about_its_games_is_found() {
    let text = GAMES
        .replace(", { name = \"c\", engine = \"elsewhere\" }", "")
        .replace("openings = 1", "openings = 3");
    let plan = CellPlan::of(parse(&text)).unwrap();
    let contestants = players(&plan);
    let mut progress = CellProgress::new(plan.clone());
    for number in 0..plan.len() {
        progress.add(number, plan.compute(number, &contestants, || false).unwrap().unwrap());
    }
    let truth = (progress.digest().unwrap(), progress.cross_table());
    let first = progress.done()[&0].clone();
    progress.retract(&[0]);
    assert!(progress.digest().is_none() && progress.wants(0));
    assert_ne!(progress.cross_table(), truth.1);
    progress.add(0, first);
    assert_eq!((progress.digest().unwrap(), progress.cross_table()), truth);
}

#[tokio::test(start_paused = true)]
async fn two_different_lies_about_one_epoch_fail_no_run() {
    for (share, liars) in [(0.0, ["liar", "liar"]), (0.0, ["liar", "other liar"]), (1.0, ["liar", "liar"])] {
        let script = Script::with(EXPERIMENT, &audited(share)).await;
        let grant = script.acquire_elsewhere(liars[0], 1).await.remove(0);
        script.lie(liars[0], &grant, 4).await.unwrap();
        script.untrusted(liars[1]).join(join_request(liars[1])).await.unwrap();
        drop(script.lie(liars[1], &grant, 5).await);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!script.is_welcome(liars[0]).await && !script.is_welcome(liars[1]).await, "{liars:?}");
        script.finish_honestly("honest").await;
        assert_eq!(script.digest(), true_digest(), "{liars:?}");
    }
}

/// A checkpoint after one generation of a granted epoch, as a worker sends it.
fn checkpoint(worker: &str, grant: &v1::Grant, evolver: &dyn Evolver) -> (v1::CheckpointHead, Bytes) {
    let task = task_of(grant);
    let mut evolving = evolver.begin(&task).unwrap();
    assert!(evolving.generation());
    let bytes = evolving.checkpoint().unwrap();
    let head = v1::CheckpointHead {
        worker: worker.to_owned(),
        piece: grant.piece.clone(),
        inputs: grant.task.as_ref().unwrap().inputs.clone(),
        standing: Some((&evolving.standing()).into()),
        length: bytes.len() as u64,
    };
    (head, bytes)
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_resumes_the_checkpoint_of_a_liar_is_not_blamed() {
    let script = Script::with(EXPERIMENT, &audited(1.0)).await;
    let lie = script.acquire_elsewhere("liar", 1).await.remove(0);
    let (head, bytes) = checkpoint("liar", &lie, &*lying(4));
    script.untrusted("liar").checkpoint(head, bytes).await.unwrap();
    script.untrusted("liar").release(refusal("liar", &lie, "", false)).await.unwrap();
    let grants = script.acquire_elsewhere("honest", 3).await;
    let resumed = grants.iter().find(|grant| grant.piece == lie.piece).unwrap();
    let bytes = resumed.task.as_ref().unwrap().checkpoint.as_ref().unwrap().inline.clone().unwrap();
    let evolver = experiment().evolver();
    let mut evolving = evolver.resume(&task_of(&lie), &bytes).unwrap();
    while evolving.generation() {}
    let (head, bodies) = delivery("honest", resumed, evolving.finish().unwrap());
    script.untrusted("honest").complete(head, bodies).await.unwrap();
    // There is no other worker: the coordinator audits it.
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert!(script.is_welcome("honest").await && !script.is_welcome("liar").await);
    script.finish_honestly("honest").await;
    assert_eq!(script.digest(), true_digest());
}

impl Script {
    /// Has a worker deliver a wrong checkpoint of an epoch that it was granted, and give the epoch back.
    async fn poison(&self, worker: &str, grant: &v1::Grant) {
        let (head, bytes) = checkpoint(worker, grant, &*lying(4));
        self.untrusted(worker).checkpoint(head, bytes).await.unwrap();
        self.untrusted(worker).release(refusal(worker, grant, "", false)).await.unwrap();
    }

    /// Has a worker deliver what an epoch comes to from the checkpoint that it was given.
    async fn deliver_resumed(&self, worker: &str, grant: &v1::Grant) -> v1::CompleteReply {
        let given = grant.task.as_ref().unwrap().checkpoint.as_ref().expect("it was given a checkpoint");
        let evolver = experiment().evolver();
        let mut evolving = evolver.resume(&task_of(grant), given.inline.as_ref().unwrap()).unwrap();
        while evolving.generation() {}
        let (head, bodies) = delivery(worker, grant, evolving.finish().unwrap());
        self.untrusted(worker).complete(head, bodies).await.unwrap()
    }

    async fn renew_elsewhere(&self, worker: &str, grant: &v1::Grant) {
        let calls = self.untrusted(worker);
        calls.join(join_request(worker)).await.unwrap();
        let renewal = v1::Renewal {
            piece: grant.piece.clone(),
            inputs: grant.task.as_ref().unwrap().inputs.clone(),
            standing: None,
            progress: 1,
            token: grant.token,
        };
        let request = v1::RenewRequest { worker: worker.to_owned(), renewals: vec![renewal] };
        assert_eq!(calls.renew(request).await.unwrap().lost, [0; 0], "it may go on");
    }

    async fn retractions(&self) -> Vec<Vec<u64>> {
        let retracted = self.events().await.into_iter().filter_map(|event| match event {
            RunEvent::Retracted { cuts, .. } => Some(cuts),
            _ => None,
        });
        retracted.collect()
    }
}

/// One of its lies is found, because another worker has computed that epoch too; the other follows from the first.
#[tokio::test(start_paused = true)]
async fn every_epoch_that_was_begun_from_a_checkpoint_of_a_liar_is_taken_back() {
    let script = Script::with(EXPERIMENT, &audited(1e-9)).await;
    let lies = script.acquire_elsewhere("liar", 2).await;
    for lie in &lies {
        script.poison("liar", lie).await;
    }
    let grants = script.acquire_elsewhere("misled", 3).await;
    for grant in &grants {
        if lies.iter().any(|lie| lie.piece == grant.piece) {
            script.deliver_resumed("misled", grant).await;
        } else {
            let (head, bodies) = computed("misled", grant);
            script.untrusted("misled").complete(head, bodies).await.unwrap();
        }
    }
    script.untrusted("honest").join(join_request("honest")).await.unwrap();
    let (head, bodies) = computed("honest", &lies[0]);
    script.untrusted("honest").complete(head, bodies).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let poisoned = |island: u32| lies.iter().any(|lie| task_of(lie).island == island);
    let cuts: Vec<u64> = (0..3).map(|island| u64::from(!poisoned(island))).collect();
    assert_eq!(script.retractions().await, [cuts]);
    assert!(script.is_welcome("misled").await && !script.is_welcome("liar").await);
    script.finish_honestly("honest").await;
    assert_eq!(script.digest(), true_digest());
}

/// The misled worker keeps its epoch beyond the moment in which the liar is found.
#[tokio::test(start_paused = true)]
async fn who_goes_on_from_the_checkpoint_of_a_liar_after_that_was_found_is_audited_and_not_blamed() {
    let script = Script::with(EXPERIMENT, &audited(1e-9)).await;
    let lies = script.acquire_elsewhere("liar", 2).await;
    script.poison("liar", &lies[0]).await;
    let resumed = script.acquire_elsewhere("misled", 1).await.remove(0);
    assert_eq!(resumed.piece, lies[0].piece);
    script.lie("liar", &lies[1], 4).await.unwrap();
    let (head, bodies) = computed("honest", &lies[1]);
    script.untrusted("honest").join(join_request("honest")).await.unwrap();
    script.untrusted("honest").complete(head, bodies).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!script.is_welcome("liar").await);
    assert_eq!(script.retractions().await.len(), 1, "of what it delivered");
    script.renew_elsewhere("misled", &resumed).await;
    assert_eq!(script.deliver_resumed("misled", &resumed).await.status(), DeliveryStatus::Accepted);
    script.finish_honestly("honest").await;
    assert_eq!(script.digest(), true_digest());
    assert!(script.is_welcome("misled").await, "it was misled before the run was opened again");
}

#[tokio::test(start_paused = true)]
async fn nobody_is_blamed_for_what_follows_from_a_checkpoint_of_an_earlier_coordinator() {
    // It goes on with what it was given, or another begins with the stored checkpoint.
    for goes_on in [true, false] {
        let mut script = Script::with(EXPERIMENT, &audited(1.0)).await;
        let lie = script.acquire_elsewhere("liar", 1).await.remove(0);
        script.poison("liar", &lie).await;
        let before = script.acquire_elsewhere("misled", 1).await.remove(0);
        tokio::time::sleep(Duration::from_secs(1)).await;
        script.restart_with(&audited(if goes_on { 1.0 } else { 1e-9 })).await;
        let resumed = if goes_on {
            script.renew_elsewhere("misled", &before).await;
            before
        } else {
            script.acquire_elsewhere("misled", 1).await.remove(0)
        };
        assert_eq!(script.deliver_resumed("misled", &resumed).await.status(), DeliveryStatus::Accepted);
        script.finish_honestly("honest").await;
        assert!(script.is_welcome("misled").await, "{goes_on}");
        assert_eq!(script.digest(), true_digest(), "{goes_on}");
        assert_eq!(script.retractions().await.len(), 1, "{goes_on}");
    }
}

/// A liar that says of every lie that an earlier coordinator misled it.
#[tokio::test(start_paused = true)]
async fn a_liar_is_not_excused_for_ever_because_there_was_an_earlier_coordinator() {
    let mut script = Script::with(EXPERIMENT, &audited(1.0)).await;
    script.restart_with(&audited(1.0)).await;
    script.untrusted("liar").join(join_request("liar")).await.unwrap();
    script.untrusted("honest").join(join_request("honest")).await.unwrap();
    let mut lies = 0;
    while script.is_welcome("liar").await {
        lies += 1;
        assert!(lies < 20, "it is found");
        // It learns what an epoch needs from another worker.
        let grants = script.acquire_elsewhere("accomplice", 1).await;
        for grant in &grants {
            drop(script.lie("liar", grant, 4).await);
        }
        // The coordinator computes it, because nobody else does in time.
        tokio::time::sleep(Duration::from_secs(40)).await;
    }
    script.finish_honestly("honest").await;
    assert_eq!(script.digest(), true_digest());
}

#[tokio::test(start_paused = true)]
async fn finished_runs_with_unaudited_results_of_a_liar_that_is_found_later_are_named() {
    let mut script = Script::with(EXPERIMENT, &audited(1e-9)).await;
    let first = script.acquire_elsewhere("sleeper", 1).await.remove(0);
    let (head, bodies) = computed("sleeper", &first);
    script.untrusted("sleeper").complete(head, bodies).await.unwrap();
    // Its last delivery is audited, so there has to be another one.
    let second = script.acquire_elsewhere("sleeper", 1).await.remove(0);
    let (head, bodies) = computed("sleeper", &second);
    script.untrusted("sleeper").complete(head, bodies).await.unwrap();
    script.finish_honestly("honest").await;
    let finished = script.run.clone();
    script.run = script.cluster.submit(parse(EXPERIMENT), vec![], 0, true).await.unwrap();
    let grant = script.acquire_elsewhere("sleeper", 1).await.remove(0);
    let garbage = vec![Bytes::from_static(b"garbage")];
    let head = computed_head("sleeper", &grant);
    script.untrusted("sleeper").complete(head, garbage).await.unwrap_err();
    let status = script.cluster.status(&finished).unwrap();
    assert!(status.reason.contains("run unaudited: 1 result"), "{}", status.reason);
    script.finish_honestly("honest").await;
    assert_eq!(script.digest(), true_digest());
}

#[tokio::test(start_paused = true)]
async fn all_ids_of_a_principal_answer_for_its_lies() {
    let script = Script::with(EXPERIMENT, &audited(1e-9)).await;
    let calls = script.untrusted("liar");
    let mut grants = vec![];
    for id in ["liar-1", "liar-2"] {
        calls.join(join_request(id)).await.unwrap();
        let request =
            v1::AcquireRequest { worker: id.to_owned(), slots: 1, holding: vec![], wait_milliseconds: 0 };
        grants.push(calls.acquire(request).await.unwrap().grants.remove(0));
    }
    for (id, grant) in ["liar-1", "liar-2"].into_iter().zip(&grants) {
        let outcome = epoch::run(&*lying(4), &task_of(grant)).unwrap();
        let (head, bodies) = delivery(id, grant, outcome);
        calls.complete(head, bodies).await.unwrap();
    }
    // The first is found because another worker has computed the same epoch.
    script.untrusted("honest").join(join_request("honest")).await.unwrap();
    let (head, bodies) = computed("honest", &grants[0]);
    script.untrusted("honest").complete(head, bodies).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let cuts = script.events().await.into_iter().find_map(|event| match event {
        RunEvent::Retracted { cuts, .. } => Some(cuts),
        _ => None,
    });
    assert_eq!(cuts, Some(vec![0, 0, 0]), "what the other id delivered is taken back too");
    // From now on everything is audited that comes from there, whatever the share.
    calls.join(join_request("liar-3")).await.unwrap();
    let request =
        v1::AcquireRequest { worker: "liar-3".to_owned(), slots: 1, holding: vec![], wait_milliseconds: 0 };
    let grant = calls.acquire(request).await.unwrap().grants.remove(0);
    let (head, bodies) = delivery("liar-3", &grant, epoch::run(&*lying(4), &task_of(&grant)).unwrap());
    calls.complete(head, bodies).await.unwrap();
    script.finish_honestly("honest").await;
    assert_eq!(script.digest(), true_digest());
    assert_eq!(calls.join(join_request("liar-3")).await.unwrap_err().code(), Code::PermissionDenied);
    calls.join(join_request("liar-2")).await.expect("it has not been found to lie");
}

/// What cannot be, of a granted epoch.
fn computed_head(worker: &str, grant: &v1::Grant) -> v1::CompleteHead {
    let (mut head, _) = computed(worker, grant);
    if let Some(v1::complete_head::What::Epoch(epoch)) = &mut head.what {
        (epoch.state_length, epoch.departure_length) = (3, 2);
        epoch.digest = Bytes::copy_from_slice(&Digest::of(b"garbage").0);
    }
    head
}

#[tokio::test(start_paused = true)]
async fn nobody_can_speak_for_a_worker_of_another_principal() {
    let script = Script::new(EXPERIMENT).await;
    let grant = script.acquire_elsewhere("honest", 1).await.remove(0);
    let mallory = script.untrusted("mallory");
    mallory.join(join_request("mallory")).await.unwrap();
    let garbage = vec![Bytes::from_static(b"garbage")];
    let rejected = mallory.complete(computed_head("honest", &grant), garbage.clone()).await.unwrap_err();
    assert_eq!(rejected.code(), Code::Aborted, "{rejected}: it has to join first");
    mallory
        .leave(v1::LeaveRequest { worker: "honest".to_owned(), reason: String::new(), misconfigured: false })
        .await
        .unwrap();
    mallory.release(refusal("honest", &grant, "it broke", false)).await.unwrap_err();
    // Nor does it help to join under the same id.
    mallory.join(join_request("honest")).await.unwrap();
    let rejected = mallory.complete(computed_head("honest", &grant), garbage).await.unwrap_err();
    assert_eq!(rejected.code(), Code::PermissionDenied, "{rejected}");
    let reply = script.renew("honest", &grant).await;
    assert_eq!((reply.lost, reply.hand_back), (vec![], vec![]));
    assert!(script.is_welcome("honest").await);
    script.finish_honestly("honest").await;
    assert_eq!(script.digest(), true_digest());
}

/// A worker that is slow delivers an epoch when the run has got further.
#[tokio::test(start_paused = true)]
async fn a_late_delivery_that_differs_finds_a_liar() {
    let script = Script::new(EXPERIMENT).await;
    let slow = script.acquire_elsewhere("liar", 1).await.remove(0);
    script.lie("liar", &slow, 4).await.unwrap();
    script
        .untrusted("liar")
        .leave(v1::LeaveRequest { worker: "liar".to_owned(), reason: String::new(), misconfigured: false })
        .await
        .unwrap();
    let generation =
        || script.cluster.status(&script.run).unwrap().standing.map_or(0, |standing| standing.generation);
    while generation() < 10 {
        for grant in script.acquire_elsewhere("honest", 3).await {
            let (head, bodies) = computed("honest", &grant);
            script.untrusted("honest").complete(head, bodies).await.unwrap();
        }
    }
    let (head, bodies) = computed("honest", &slow);
    script.untrusted("honest").complete(head, bodies).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    script.finish_honestly("honest").await;
    assert_eq!(script.digest(), true_digest());
}

/// Has the store fail to write the end of the run, during which a worker is found to lie by what cannot be.
async fn find_while_the_end_is_written(script: &Script, slow: &SlowStore, liar: &str, grant: &v1::Grant) {
    script.until("the end is written", || slow.is_writing("events")).await;
    let garbage = vec![Bytes::from_static(b"garbage")];
    let rejected = script.untrusted(liar).complete(computed_head(liar, grant), garbage).await.unwrap_err();
    assert_eq!(rejected.code(), Code::PermissionDenied, "{rejected}");
    assert_ne!(script.state(), State::Finished);
    tokio::time::sleep(Duration::from_secs(2)).await;
    slow.fail(None);
    slow.delay_writes(Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_liar_that_is_found_while_the_end_cannot_be_written_is_taken_back() {
    let (mut script, slow) = Script::slow(&audited(1e-9)).await;
    script.submit(EXPERIMENT).await;
    let lie = script.acquire_elsewhere("liar", 1).await.remove(0);
    script.lie("liar", &lie, 4).await.unwrap();
    // Its last delivery is true: that one alone is audited before the end.
    let true_one = script.acquire_elsewhere("liar", 1).await.remove(0);
    let (head, bodies) = computed("liar", &true_one);
    script.untrusted("liar").complete(head, bodies).await.unwrap();
    let mut is_last = false;
    while !is_last {
        for grant in script.acquire_elsewhere("honest", 3).await {
            is_last |= task_of(&grant).until == 24;
            let (head, bodies) = computed("honest", &grant);
            if is_last {
                slow.delay_writes(Duration::from_secs(1));
                slow.fail(Some("events"));
            }
            script.untrusted("honest").complete(head, bodies).await.unwrap();
        }
    }
    let rest = async {
        while script.state() != State::Finished {
            for grant in script.acquire_elsewhere("honest", 3).await {
                let (head, bodies) = computed("honest", &grant);
                script.untrusted("honest").complete(head, bodies).await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::join!(rest, find_while_the_end_is_written(&script, &slow, "liar", &lie));
    assert_eq!(script.digest(), true_digest());
    assert!(script.events().await.iter().any(|event| matches!(event, RunEvent::Retracted { .. })));
}

#[tokio::test(start_paused = true)]
async fn cells_of_a_liar_that_is_found_while_the_end_cannot_be_written_are_taken_back() {
    let (mut script, slow) = Script::slow(&audited(1e-9)).await;
    script.submit(EXPERIMENT).await;
    let grant = script.acquire_elsewhere("liar", 1).await.remove(0);
    script.cluster.cancel(&script.run).await.unwrap();
    script.submit(SWEEP).await;
    // The last cell alone is audited before the end, by another worker that is there.
    script.untrusted("honest").join(join_request("honest")).await.unwrap();
    let (results, truth) = swept_wrongly(0);
    script.deliver_cells_of("liar", &results).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    slow.delay_writes(Duration::from_secs(1));
    slow.fail(Some("events"));
    let grant = v1::Grant {
        piece: Some(v1::Piece { run: script.run.clone(), ..grant.piece.clone().unwrap() }),
        ..grant
    };
    script.deliver_cells_of("honest", &swept()[2..]).await;
    find_while_the_end_is_written(&script, &slow, "liar", &grant).await;
    assert_eq!(finish(&script, "honest").await, truth);
    assert_eq!(script.stored_cells().await.progress.digest().unwrap().0.to_vec(), truth);
}

/// The run is not open when its cells are looked at, and open when they are taken.
#[test]
fn cells_are_compared_with_the_plan_that_accepts_them() {
    // Its only thread for other work is kept busy, so that the look takes as long as it should.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build();
    runtime.unwrap().block_on(deliver_cells_while_their_run_is_opened());
}

async fn deliver_cells_while_their_run_is_opened() {
    let mut script = Script::with(SWEEP, &CoordinatorSettings { inline: false, ..settings(1) }).await;
    script.cluster.cancel(&script.run).await.unwrap();
    let mut results = swept();
    results[0].0 = 99;
    let calls = script.untrusted("careless");
    calls.join(join_request("careless")).await.unwrap();
    let (head, bodies) = cells_delivery(&script, "careless", &results);
    {
        let (release, released) = std::sync::mpsc::channel::<()>();
        let busy = tokio::task::spawn_blocking(move || released.recv());
        let mut delivering = std::pin::pin!(calls.complete(head.clone(), bodies.clone()));
        assert!(delivering.as_mut().now_or_never().is_none(), "they are looked at elsewhere");
        script.cluster.submit(parse(SWEEP), vec![], 0, false).await.unwrap();
        drop(release);
        drop(busy.await);
        let rejected = delivering.await.unwrap_err();
        assert_eq!(rejected.code(), Code::Unavailable, "{rejected}");
    }
    let rejected = calls.complete(head, bodies).await.unwrap_err();
    assert_eq!(rejected.code(), Code::PermissionDenied, "{rejected}");
    deliver_cells(&script, "honest", &swept()).await.unwrap();
    script.until("the end", || script.state() == State::Finished).await;
    script.restart().await;
    assert_eq!(script.state(), State::Finished);
    script.stored_cells().await;
}
