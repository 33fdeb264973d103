//! Scripted clusters in simulated time: workers come, vanish, deliver twice or late, and the coordinator forgets.

use super::*;
use crate::turn::{Turn, Written};
use archipelago::cell::{CellPlan, CellResult};
use archipelago::solo;
use evolution::epoch::{self, EpochTask, Packet};
use experiment::{Experiment, Plan as Parsed};
use proto::convert;

const EXPERIMENT: &str = r#"
name = "scripted"
seed = 3
problem = { kind = "onemax", length = 20 }
algorithm = { kind = "ga", population = 10 }
islands = { count = 3 }
migration = { interval = 2, count = 1 }
budget = { generations = 24 }
checkpoint = { every = 5 }
"#;

fn experiment() -> Experiment {
    match experiment::parse("scripted.toml", EXPERIMENT, None).unwrap() {
        Parsed::Single(experiment) => *experiment,
        _ => unreachable!("it is one experiment"),
    }
}

/// One cluster, and what its workers hold.
struct Script {
    store: Store,
    office: Office,
    now: Moment,
    experiment: Experiment,
    run: String,
    held: Vec<(String, Work, v1::Task)>,
    /// What is written, while nobody in the office knows yet.
    unsettled: Option<Written>,
    dice: u64,
}

impl Script {
    async fn new(seed: u64) -> Self {
        let (store, now) = (Store::memory(), Moment { elapsed: Duration::ZERO, unix: 0 });
        let mut office = Office::open(store.clone(), settings(seed, 0), now).await.unwrap();
        let experiment = experiment();
        let plan = Parsed::Single(Box::new(experiment.clone()));
        let run = office.submit(plan, vec![], 0, false, now).await.unwrap();
        Self { store, office, now, experiment, run, held: vec![], unsettled: None, dice: seed }
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % sides
    }

    fn join(&mut self, worker: &str) {
        let (name, version) = (worker.to_owned(), "scripted".to_owned());
        let request =
            v1::JoinRequest { worker: name.clone(), name, version, semantics: SEMANTICS, threads: 1 };
        self.office.join(&request, self.now).unwrap();
    }

    fn acquire(&mut self, worker: &str) {
        self.join(worker);
        let holding =
            self.held.iter().filter(|(holder, ..)| holder == worker).map(|(_, work, _)| work.clone());
        let grants = self.office.acquire(worker, 2, &holding.collect(), self.now).unwrap();
        for grant in grants {
            let work = convert::work(grant.piece).unwrap();
            self.held.push((worker.to_owned(), work, grant.task.unwrap()));
        }
    }

    /// A body as a worker gets it; nothing if the coordinator has forgotten it.
    fn body(&mut self, worker: &str, work: &Work, digest: &[u8], inline: Option<Bytes>) -> Option<Bytes> {
        let digest = convert::digest("digest", digest).unwrap();
        inline.or_else(|| self.office.body(worker, work, &digest, self.now).ok())
    }

    /// Computes what is held at a place, and delivers it so often.
    fn deliver(&mut self, at: usize, times: u64) {
        let (worker, work, wire) = self.held.remove(at);
        self.join(&worker);
        let Piece::Epoch { island, epoch } = work.piece else { unreachable!("there are only epochs") };
        let mut task = EpochTask { island, epoch, until: wire.until, state: None, packets: vec![] };
        if let Some(before) = wire.before {
            let Some(bytes) = self.body(&worker, &work, &before.digest, before.inline) else { return };
            task.state = Some(bytes.slice(..before.state_length as usize));
        }
        for v1::Packet { from, epoch, departure } in wire.packets {
            let v1::Body { digest, inline, .. } = departure.unwrap();
            let Some(departure) = self.body(&worker, &work, &digest, inline) else { return };
            task.packets.push(Packet { from, epoch, departure });
        }
        let outcome = epoch::run(&*self.experiment.evolver(), &task).unwrap();
        for _ in 0..times {
            let delivery = Delivery {
                inputs: convert::digest("inputs", &wire.inputs).unwrap(),
                reported: outcome.digest,
                digest: outcome.digest,
                standing: outcome.standing,
                state: outcome.state.clone(),
                departure: outcome.departure.clone(),
                statistics: codec::encode(&outcome.statistics).unwrap(),
            };
            self.office.complete_epoch(&worker, &work, delivery, 1, self.now).unwrap();
        }
    }

    /// Has one worker work until something has to be written.
    fn work_until_due(&mut self) -> Turn {
        loop {
            self.acquire("a");
            self.deliver(0, 1);
            if let Some(turn) = self.office.turn() {
                return turn;
            }
        }
    }

    /// How many epochs each island has done.
    fn done(&mut self) -> Vec<u64> {
        let archipelago = self.office.epochs(&self.run).unwrap().keeper().archipelago();
        (0..3).map(|island| archipelago.done(island)).collect()
    }

    /// Writes what is due, as far as the store: others may come before it is noted.
    async fn write(&mut self) {
        self.settle().await;
        if let Some(turn) = self.office.turn() {
            self.unsettled = Some(turn.write().await);
        }
    }

    async fn settle(&mut self) {
        if let Some(written) = self.unsettled.take() {
            assert!(self.office.settle_turn(written, self.now).await, "a store in memory takes everything");
        }
    }

    async fn prune(&mut self) {
        if let Some((run, pruning)) = self.office.pruning() {
            let pruned = pruning.delete(&self.store, Some(&self.office.claim)).await;
            self.office.settle_pruning((run, pruning), pruned, self.now).await;
        }
    }

    /// The coordinator dies with all that it has not written down, and another takes its place.
    async fn restart(&mut self) {
        self.unsettled = None;
        let settings = settings(self.dice, self.now.elapsed.as_millis());
        self.office = Office::open(self.store.clone(), settings, self.now).await.unwrap();
    }

    async fn step(&mut self) {
        let worker = format!("worker-{}", self.roll(4));
        let at = self.roll(self.held.len().max(1) as u64) as usize;
        match self.roll(20) {
            0 => self.held.retain(|(holder, ..)| *holder != worker),
            1 => self.restart().await,
            2..5 => {
                let passed = Duration::from_millis(self.roll(8_000));
                self.now.elapsed += passed;
                self.office.tick(self.now).await;
            }
            5..7 => self.write().await,
            7..9 => self.settle().await,
            9 => self.prune().await,
            10..14 => self.acquire(&worker),
            roll if at < self.held.len() => self.deliver(at, 1 + u64::from(roll == 14)),
            _ => {}
        }
    }
}

fn settings(seed: u64, life: u128) -> Settings {
    Settings {
        terms: Terms { vanished: 1000, ..Terms::default() },
        nonce: Nonce(u128::from(seed) << 64 | life),
        version: "scripted".to_owned(),
        exit_when_done: false,
        max_runs: 1,
        guard: Guard::default(),
        tls: None,
        first: None,
        trial: None,
        linger: Duration::ZERO,
    }
}

#[tokio::test]
async fn one_digest_whatever_is_killed_dropped_repeated_or_late() {
    let expected = solo::evolve(&experiment(), || false).unwrap().unwrap().digest;
    for seed in 0..100 {
        let mut script = Script::new(seed).await;
        let mut steps = 0;
        while script.office.plan.has_open_runs() {
            script.step().await;
            steps += 1;
            assert!(steps < 100_000, "seed {seed} does not come to an end");
        }
        let state = script.office.plan.state(&script.run).cloned();
        assert!(matches!(state, Some(RunState::Finished(_))), "seed {seed}: {state:?}");
        assert_eq!(script.office.runs[&script.run].digest, Some(expected), "seed {seed}");
    }
}

#[tokio::test]
async fn what_a_worker_leaves_with_the_next_coordinator_waits_for_others() {
    let mut script = Script::new(1).await;
    script.acquire("a");
    let (_, work, task) = script.held.remove(0);
    script.held.clear();
    script.restart().await;
    script.join("a");
    let inputs = convert::digest("inputs", &task.inputs).unwrap();
    let standing = Standing { generation: 1, evaluations: 20, best: 1.0 };
    let bytes = Bytes::from_static(b"one generation");
    script.office.checkpoint("a", &work, &inputs, standing, bytes, script.now).unwrap();
    // It is never heard of again.
    script.acquire("b");
    script.acquire("b");
    let granted: Vec<&Work> = script.held.iter().map(|(_, work, _)| work).collect();
    assert!(granted.contains(&&work), "{granted:?}");
}

#[tokio::test]
async fn the_work_of_a_paused_run_is_handed_back() {
    let mut script = Script::new(1).await;
    script.acquire("a");
    let (_, work, task) = script.held[0].clone();
    let token = script.office.leases.grant(&work, "a", script.now.elapsed);
    let inputs = convert::digest("inputs", &task.inputs).ok();
    let renewal = |token| Renewal { work: work.clone(), token, inputs, standing: None, progress: 0 };
    let run = script.run.clone();
    for (paused, expected) in [(true, Instruction::HandBack), (false, Instruction::GoOn)] {
        script.office.pause(&run, paused, script.now).await.unwrap();
        assert_eq!(script.office.renew("a", &renewal(token), script.now).unwrap(), expected);
    }
    assert_eq!(script.office.renew("a", &renewal(token + 99), script.now).unwrap(), Instruction::Stop);
    script.restart().await;
    script.join("a");
    let taken_up = script.office.renew("a", &renewal(token), script.now).unwrap();
    assert_eq!(taken_up, Instruction::GoOn, "the next coordinator knows the work by its inputs");
    script.office.cancel(&run, script.now).await.unwrap();
    assert_eq!(script.office.renew("a", &renewal(token), script.now).unwrap(), Instruction::Stop);
}

#[tokio::test]
async fn a_flood_of_workers_keeps_others_out_for_no_longer_than_a_lease() {
    let mut script = Script::new(1).await;
    let request = |worker: String| v1::JoinRequest {
        name: worker.clone(),
        worker,
        version: "scripted".to_owned(),
        semantics: SEMANTICS,
        threads: 1,
    };
    while !script.office.members.is_full() {
        let number = script.office.members.count();
        script.office.join(&request(format!("flood-{number}")), script.now).unwrap();
    }
    let refused = script.office.join(&request("late".to_owned()), script.now).unwrap_err();
    assert!(matches!(refused, Refusal::Member(MemberError::TooMany)), "{refused}");
    script.now.elapsed += script.office.settings.terms.lease / 2;
    script.office.members.see("flood-7", script.now.elapsed).unwrap();
    script.now.elapsed += script.office.settings.terms.lease;
    script.office.join(&request("late".to_owned()), script.now).unwrap();
    assert!(script.office.members.see("flood-8", script.now.elapsed).is_err(), "it was silent");
}

#[tokio::test]
async fn work_that_fails_everywhere_fails_its_run() {
    let mut script = Script::new(1).await;
    for worker in ["a", "b", "c"] {
        script.acquire(worker);
        script.now.elapsed += script.office.settings.terms.hedge_after;
        let (_, work, _) = script.held[0].clone();
        let token = script.office.leases.grant(&work, worker, script.now.elapsed);
        script.office.release(worker, (&work, token), "it broke", script.now).await.unwrap();
    }
    let Some(RunState::Failed(reason)) = script.office.plan.state(&script.run) else {
        panic!("it is poison")
    };
    assert!(reason.ends_with("failed 3 times on 3 workers: it broke"), "{reason}");
    script.restart().await;
    let state = script.office.plan.state(&script.run);
    assert!(matches!(state, Some(RunState::Failed(_))), "it is written down: {state:?}");
}

/// A tournament whose second player came along as these bytes.
fn tournament_with(bytes: &Bytes) -> Parsed {
    let digest = Digest::of(bytes);
    let text = format!(
        "name = \"games\"\n[tournament]\nopenings = 1\nplayers = [{{ name = \"counter\", player = \"material\" }}, \
         {{ name = \"stranger\", player = \"stranger.acp\", digest = \"{digest}\" }}]"
    );
    experiment::parse("games.toml", &text, None).unwrap()
}

#[tokio::test]
async fn bytes_that_are_no_player_are_refused_before_anybody_works_on_them() {
    let (store, now) = (Store::memory(), Moment { elapsed: Duration::ZERO, unix: 0 });
    let mut office = Office::open(store.clone(), settings(1, 0), now).await.unwrap();
    let nonsense = Bytes::from_static(b"no player at all");
    let refused = office.submit(tournament_with(&nonsense), vec![nonsense.clone()], 0, false, now).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.starts_with("player stranger: "), "{refused}");
    let absent = office.submit(tournament_with(&nonsense), vec![], 0, false, now).await.unwrap_err();
    assert!(absent.to_string().contains("player stranger: expected a player file"), "{absent}");
    assert!(office.statuses().is_empty());
    assert!(store.folders(&run::layout::runs()).await.unwrap().is_empty(), "nothing of it is kept");
}

#[tokio::test]
async fn what_is_written_comes_with_all_that_it_depends_on() {
    let mut script = Script::new(1).await;
    // Somewhere five generations are at stake; elsewhere less, but that is where immigrants came from.
    let turn = script.work_until_due();
    let done = script.done();
    assert!(done.iter().any(|epochs| *epochs < 3) && done.contains(&3), "{done:?}");
    // It dies before it knows that it has written anything.
    turn.write().await;
    script.restart().await;
    assert_eq!(script.done(), done);
}

#[tokio::test]
async fn an_older_coordinator_writes_and_deletes_nothing_any_more() {
    let mut script = Script::new(1).await;
    // States of several epochs are there, of which all but the newest may go.
    for _ in 0..4 {
        let turn = script.work_until_due();
        script.unsettled = Some(turn.write().await);
        script.settle().await;
    }
    let (run, pruning) = script.office.pruning().expect("the older states are not needed any more");
    let turn = script.work_until_due();
    let before = script.store.list(&run::layout::runs()).await.unwrap();
    let _claim = Claim::take(&script.store, Nonce(9)).await.unwrap();
    let pruned = pruning.delete(&script.store, Some(&script.office.claim)).await;
    script.office.settle_pruning((run, pruning), pruned, script.now).await;
    let written = turn.write().await;
    assert!(!script.office.settle_turn(written, script.now).await);
    assert!(script.office.succeeded);
    assert_eq!(script.store.list(&run::layout::runs()).await.unwrap(), before);
}

#[tokio::test]
async fn workers_that_are_lost_at_once_are_one_event() {
    let mut script = Script::new(5).await;
    script.acquire("a");
    script.acquire("b");
    assert_eq!(script.held.len(), 3, "each island is with somebody");
    script.now.elapsed += 2 * script.office.settings.terms.lease;
    script.office.tick(script.now).await;
    let run = run::RunId::new(&script.run).unwrap();
    let events: Vec<run::journal::Event<RunEvent>> =
        run::journal::read_all(&script.store, &run).await.unwrap();
    let lost = events.into_iter().filter_map(|event| match event.body {
        RunEvent::Expired { losses, .. } => Some(losses),
        _ => None,
    });
    let lost: Vec<Vec<(u32, String)>> =
        lost.map(|losses| losses.into_iter().map(|loss| (loss.island, loss.worker)).collect()).collect();
    let all = [(0, "a"), (1, "a"), (2, "b")].map(|(island, worker)| (island, worker.to_owned()));
    assert_eq!(lost, [all.to_vec()]);
}

/// An office with a sweep of three cells, all of them with worker `a`, and what the cells bring.
async fn sweep() -> (Office, Work, Vec<(u32, CellResult)>, Moment) {
    let text = "name = \"swept\"\nproblem = { kind = \"onemax\", length = 10 }\n\
                algorithm = { kind = \"ga\", population = 4 }\nbudget = { generations = 2 }\n\
                sweep = { repeats = 3, axis = [{ keys = [\"problem.length\"], values = [10] }] }";
    let plan = experiment::parse("swept.toml", text, None).unwrap();
    let cells = CellPlan::of(plan.clone()).unwrap();
    let result = |number| cells.compute(number, &[], || false).unwrap().unwrap();
    let results = (0..cells.len()).map(|number| (number, result(number))).collect();
    let now = Moment { elapsed: Duration::ZERO, unix: 0 };
    let mut office = Office::open(Store::memory(), settings(1, 0), now).await.unwrap();
    let run = office.submit(plan, vec![], 0, false, now).await.unwrap();
    for worker in ["a", "b"] {
        let (name, version) = (worker.to_owned(), "scripted".to_owned());
        let request =
            v1::JoinRequest { worker: name.clone(), name, version, semantics: SEMANTICS, threads: 1 };
        office.join(&request, now).unwrap();
    }
    let work = Work { run, piece: Piece::Cells { first: 0, count: 3 } };
    (office, work, results, now)
}

#[tokio::test]
async fn a_run_that_is_cancelled_while_its_last_cells_are_written_stays_cancelled() {
    let (mut office, work, results, now) = sweep().await;
    let kept = office.archive("a", &work, now).unwrap().unwrap().keep(results).await;
    office.cancel(&work.run, now).await.unwrap();
    office.complete_cells("a", &work, kept, now).await.unwrap();
    assert_eq!(office.plan.state(&work.run), Some(&RunState::Cancelled));
}

#[tokio::test]
async fn what_is_stored_of_cells_counts_whoever_was_wrong() {
    let (mut office, work, results, now) = sweep().await;
    let archive = office.archive("a", &work, now).unwrap().unwrap();
    let CellResult::Evolved(mut wrong) = results[1].1.clone() else { unreachable!("it is a sweep") };
    wrong.best += 1.0;
    let wrong = archive.keep(vec![(1, CellResult::Evolved(wrong))]).await;
    office.complete_cells("b", &work, wrong, now).await.unwrap();
    let kept = archive.keep(results).await;
    let refused = office.complete_cells("a", &work, kept, now).await.unwrap_err();
    assert!(matches!(refused, Refusal::Corrupt(_)), "{refused}");
    office.settle(&work.run, now).await;
    let state = office.plan.state(&work.run);
    assert!(matches!(state, Some(RunState::Finished(_))), "nothing is left to be computed: {state:?}");
}
