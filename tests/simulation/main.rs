//! The real coordinator and worker over a simulated network, with seeded crashes, partitions and delays, with coordinators
//! that take each other's place while writes of the older one are still on their way, with stores that fail or lie, and
//! with workers that do not do what they should.
//!
//! `ATOLL_SIMULATIONS` says how many seeds of each kind, `ATOLL_SIMULATION_SEED` with which to begin. A seed brings the
//! same course every time, and with takeovers nearly the same. So one that fails is looked into by itself, with
//! `ATOLL_LOG=info` to see what happens.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod byzantine;
mod faulty_store;
mod model;
#[path = "../support/mutate.rs"]
mod mutate;
mod network;
#[path = "../support/replay.rs"]
mod replay;
mod replies;
mod scenario;

use archipelago::solo;
use experiment::Plan;
use faulty_store::FaultyStore;
use network::{COORDINATORS, Serving, coordinate, misbehave, settings, watch, work};
use object_store::memory::InMemory;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use proto::calls::WorkerCalls;
use proto::v1;
use run::reader::Reader;
use run::repair::Repair;
use run::{Opening, Owner, Recorded, RunEvent, RunId};
use scenario::{Scenario, StoreTrouble, Trouble};
use std::collections::BTreeMap;
use std::ops::Range;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::Store;
use tokio::time::Instant;
use turmoil::{Builder, Sim};

const SYNCHRONOUS: &str = r#"
name = "synchronous"
seed = 3
problem = { kind = "onemax", length = 20 }
algorithm = { kind = "ga", population = 10 }
islands = { count = 3 }
migration = { interval = 3, count = 1 }
budget = { generations = 90 }
checkpoint = { every = 2 }
"#;

const ASYNCHRONOUS: &str = r#"
name = "asynchronous"
seed = 3
problem = { kind = "onemax", length = 20 }
algorithm = { kind = "ga", population = 10 }
islands = { count = 3 }
migration = { interval = 3, count = 1, mode = "asynchronous" }
budget = { generations = 90 }
checkpoint = { every = 2 }
"#;

/// Two experiments, one with the champions of the other, and the tournament of what they evolve.
const STUDY: &str = r#"
name = "study"
algorithm = { kind = "es", parents = 2, offspring = 2 }
islands = { count = 2 }
migration = { interval = 1, count = 1 }
budget = { generations = 3 }
checkpoint = { every = 1 }
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
players = [{ name = "champion", player = "second/0" }, { name = "other", player = "random" }]
"#;

/// Sixteen small evolutions.
const SWEEP: &str = r#"
name = "sweep"
problem = { kind = "onemax", length = 20 }
algorithm = { kind = "ga", population = 10 }
islands = { count = 2 }
migration = { interval = 2, count = 1 }
budget = { generations = 8 }
sweep = { repeats = 8, axis = [{ keys = ["algorithm.population"], values = [6, 8] }] }
"#;

/// Games of two players.
const TOURNAMENT: &str = r#"
name = "games"
[tournament]
openings = 12
depth = 1
draw = { max_plies = 10 }
players = [{ name = "counter", player = "material" }, { name = "other", player = "random" }]
"#;

const WORKERS: u64 = 3;
/// The shortest time that is simulated.
const TICK: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_mins(5);

fn plan(text: &str) -> Plan {
    experiment::parse("simulated.toml", text, None).unwrap()
}

/// Numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// A cluster and what happens to it.
struct Cluster<'a> {
    sim: Sim<'a>,
    dice: Dice,
    store: FaultyStore,
    serving: Serving,
    scenario: Arc<Scenario>,
    /// When the next coordinator takes over, if one is to.
    takeover: Option<Duration>,
    faults: usize,
    takeovers: usize,
    healed: bool,
}

impl Cluster<'_> {
    fn new(store: FaultyStore, seed: u64, scenario: Arc<Scenario>) -> Self {
        let mut dice = Dice(seed);
        let mut sim = Builder::new()
            .rng_seed(seed)
            .tick_duration(TICK)
            .simulation_duration(LONGEST)
            .min_message_latency(Duration::from_millis(1))
            .max_message_latency(Duration::from_millis(10 + 10 * dice.roll(10)))
            .build();
        let serving = Serving::default();
        for host in COORDINATORS {
            let (serving, store, scenario) = (serving.clone(), store.clone(), scenario.clone());
            sim.host(host, move || {
                coordinate((host, serving.clone()), store.client(), seed, scenario.clone())
            });
        }
        sim.crash(COORDINATORS[1]);
        for number in 0..WORKERS {
            let (serving, poison) = (serving.clone(), scenario.poison);
            sim.host(format!("worker-{number}"), move || work(serving.clone(), number, seed, poison));
        }
        for (number, &manner) in scenario.byzantine.iter().enumerate() {
            let (serving, name) = (serving.clone(), format!("byzantine-{number}"));
            sim.host(name.clone(), move || misbehave(serving.clone(), name.clone(), manner, seed));
        }
        if scenario.store == StoreTrouble::Lies {
            store.lie(seed, 30);
        }
        let (takeover, faults, takeovers, healed) = (None, 0, 0, false);
        Self { sim, dice, store, serving, scenario, takeover, faults, takeovers, healed }
    }

    /// Lets a moment pass. Returns whether the operator has seen the end.
    fn step(&mut self) -> Result<bool, Box<dyn std::error::Error>> {
        let is_over = self.sim.step()?;
        let now = self.sim.elapsed();
        self.store.advance(now);
        if now < self.scenario.lasting {
            if self.dice.roll(10) == 0 {
                self.disturb();
            }
        } else if !self.healed {
            self.heal();
        }
        if self.takeover.is_some_and(|at| at <= now) {
            self.take_over();
        }
        Ok(is_over)
    }

    /// Lets something go wrong.
    fn disturb(&mut self) {
        let kinds = match self.scenario.trouble {
            Trouble::Nothing => return,
            Trouble::Workers => 7,
            Trouble::Faults => 8,
            Trouble::Takeovers => 9,
        };
        self.faults += 1;
        let Self { sim, dice, serving, store, .. } = self;
        if self.scenario.store == StoreTrouble::Outages && dice.roll(3) == 0 {
            let duration = Duration::from_millis(50 + 50 * dice.roll(12));
            return match dice.roll(4) {
                0 => store.fall_silent(duration),
                _ => store.fail(duration, 5 + dice.roll(60)),
            };
        }
        let worker = format!("worker-{}", dice.roll(WORKERS));
        match dice.roll(kinds) {
            0 | 1 => sim.bounce(worker),
            2 | 3 => sim.partition(serving.host(), worker),
            4 => sim.hold(serving.host(), worker),
            5 => sim.release(serving.host(), worker),
            6 => sim.repair(serving.host(), worker),
            7 => sim.bounce(serving.host()),
            _ => self.announce_takeover(),
        }
    }

    /// From now on the writes of the coordinator are slow, and soon another begins.
    fn announce_takeover(&mut self) {
        if self.takeover.is_none() {
            let Self { sim, dice, store, .. } = self;
            store.delay(Duration::from_millis(100 + 100 * dice.roll(40)));
            self.takeover = Some(sim.elapsed() + Duration::from_millis(10 * dice.roll(60)));
        }
    }

    /// Another coordinator begins, in the place of the one before the last.
    fn take_over(&mut self) {
        self.serving.switch();
        self.sim.bounce(self.serving.host());
        self.takeover = None;
        self.takeovers += 1;
    }

    fn heal(&mut self) {
        for coordinator in COORDINATORS {
            for worker in (0..WORKERS).map(|number| format!("worker-{number}")) {
                self.sim.repair(coordinator, worker.as_str());
                self.sim.release(coordinator, worker.as_str());
            }
        }
        self.store.heal();
        self.healed = true;
    }
}

/// What came of one simulation.
#[derive(Debug, PartialEq)]
struct Course {
    run: String,
    /// The digest that an operator got, or why the run failed.
    digest: Result<Vec<u8>, String>,
    /// How much went wrong until its end, and when that was.
    faults: usize,
    ended: Duration,
    /// How many coordinators took over, and how many writes arrived after that from the one before.
    takeovers: usize,
    late: usize,
    /// How many calls of the store returned an error, and how many writes did not arrive as they were sent.
    errors: usize,
    lies: usize,
}

/// Simulations take turns, because tasks are numbered for all of them together.
static TURN: Mutex<()> = Mutex::new(());

/// Lets the numbers of tasks begin at a multiple of a power of two. A host that crashes drops its tasks by their numbers
/// modulo one, so what it leaves undone would depend on the simulations before.
fn round_task_numbers() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let number = || tokio::spawn(async {}).id().to_string().parse::<u64>().unwrap();
    runtime.block_on(async { while !(number() + 1).is_multiple_of(64) {} });
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(future)
}

/// One cluster with the trouble of one seed, from the submission of its run to its end; and the store that it leaves.
fn simulate(scenario: &Scenario, seed: u64) -> (Course, FaultyStore) {
    let store = FaultyStore::default();
    let run = block_on(submit(store.client(), scenario, seed));
    let course = simulate_run(scenario, seed, &store, run);
    (course, store)
}

/// One cluster with a run that is in its store, to the end of the run.
fn simulate_run(scenario: &Scenario, seed: u64, store: &FaultyStore, run: String) -> Course {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    round_task_numbers();
    let mut cluster = Cluster::new(store.clone(), seed, Arc::new(scenario.clone()));
    let (answer, mut digest) = tokio::sync::oneshot::channel();
    let (serving, watched) = (cluster.serving.clone(), run.clone());
    cluster.sim.client("operator", async move {
        let _ = answer.send(watch(serving, watched).await);
        Ok(())
    });
    while !cluster.step().unwrap_or_else(|error| panic!("seed {seed}: {error}: {scenario:?}")) {}
    let digest =
        digest.try_recv().unwrap_or_else(|_| panic!("seed {seed}: nobody saw the end: {scenario:?}"));
    let Cluster { sim, faults, takeovers, .. } = cluster;
    let ended = sim.elapsed();
    drop(sim);
    // What is still on its way arrives too.
    store.heal();
    store.advance(Duration::MAX);
    let (late, (errors, lies)) = (store.late(), store.failures());
    Course { run, digest, faults, ended, takeovers, late, errors, lies }
}

/// Has a run submitted by a coordinator that crashes at once.
async fn submit(store: Store, scenario: &Scenario, seed: u64) -> String {
    let settings = settings(u128::MAX - u128::from(seed), scenario);
    let (cluster, background) = coordinator::start(store, &settings, || 0).await.unwrap();
    let run = cluster.submit(plan(&scenario.text), vec![], 0, false).await.unwrap();
    background.abort();
    run
}

/// Has `atoll verify` look at a run and its parts, and computes every epoch again that is recorded: nothing is missing or
/// unexplained, and each comes out as its record says.
fn check(store: &FaultyStore, course: &Course) {
    verify(store, course).unwrap_or_else(|words| panic!("{words}"));
    block_on(replay_all(&store.client(), course));
}

/// What `atoll verify` finds wrong.
fn verify(store: &FaultyStore, course: &Course) -> Result<(), String> {
    let state = if course.digest.is_ok() { "finished" } else { "failed" };
    let folder = tempfile::tempdir().unwrap();
    store.copy_to(folder.path());
    let mut atoll = Command::new(env!("CARGO_BIN_EXE_atoll"));
    let arguments = ["verify", &course.run, "--json", "--threads", "1", "--store"];
    let verified = atoll.args(arguments).arg(folder.path()).output().unwrap();
    let printed = String::from_utf8_lossy(&verified.stdout);
    let words = String::from_utf8_lossy(&verified.stderr);
    if !verified.status.success() {
        return Err(format!("{}: {printed}{words}", course.run));
    }
    let found: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert!(found["state"].as_str().unwrap().starts_with(state), "{found}: expected {state}");
    Ok(())
}

async fn replay_all(store: &Store, course: &Course) {
    let run = RunId::new(&course.run).unwrap();
    let events = run::journal::read_all::<RunEvent>(store, &run).await.unwrap();
    let finished = Recorded::of(events.iter().map(|event| &event.body)).finished;
    let (told, finished) = (course.digest.as_deref().ok(), finished.map(|finished| finished.digest.0));
    assert_eq!(told, finished.as_ref().map(|digest| &digest[..]), "what an operator was told is written");
    for folder in store.folders(&run::layout::runs()).await.unwrap() {
        let run = run::layout::run_of_folder(&folder).unwrap();
        let plan = run::stored::read_plan(store, &run).await.unwrap().0;
        if told.is_some() && matches!(plan, Plan::Single(_)) {
            assert_eq!(check_evolution(store, &run).await, [], "{run}");
        }
    }
}

async fn check_evolution(store: &Store, run: &RunId) -> Vec<run::Damage> {
    let reader = Reader::read(store, run).await.unwrap();
    if reader.damage.is_empty() {
        let replayed = replay::replay(store, run).await.unwrap_or_else(|error| panic!("{run}: {error}"));
        assert_eq!(replayed, reader.recorded.finished.unwrap().digest, "{run}");
    }
    reader.damage
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// How much happened in some simulations.
#[derive(Default)]
struct Tally {
    seeds: u64,
    faults: usize,
    takeovers: usize,
    late: usize,
    errors: usize,
    lies: usize,
}

impl Tally {
    fn add(&mut self, course: &Course) {
        self.seeds += 1;
        self.faults += course.faults;
        self.takeovers += course.takeovers;
        self.late += course.late;
        self.errors += course.errors;
        self.lies += course.lies;
    }

    fn print(&self, kind: &str, first: u64) {
        let Self { seeds, faults, takeovers, late, errors, lies } = self;
        println!(
            "{kind}: seeds {first} to {}, {faults} faults, {takeovers} takeovers, {errors} store errors, {lies} store lies, \
             {late} late writes",
            first + seeds - 1
        );
        assert!(*faults as u64 >= 5 * seeds, "only {faults} faults: the runs were too short to be disturbed");
    }
}

/// The seeds of a test: a number of them from this one on, unless the environment names others.
fn seeds(first: u64, default: u64) -> Range<u64> {
    if let Ok(level) = std::env::var("ATOLL_LOG") {
        let level: tracing::Level = level.parse().unwrap();
        let _ = tracing_subscriber::fmt().with_max_level(level).without_time().try_init();
    }
    let first = number("ATOLL_SIMULATION_SEED", first);
    first..first + number("ATOLL_SIMULATIONS", default)
}

/// Simulates some seeds. Each run comes to its end, to this digest if it has only one, and what is stored of it is whole.
fn simulate_all(kind: &str, text: &str, trouble: Trouble, digest: Option<&[u8]>, default: u64) {
    let (seeds, mut tally) = (seeds(0, default), Tally::default());
    for seed in seeds.clone() {
        let (course, store) = simulate(&Scenario::of(text, trouble), seed);
        if let Some(digest) = digest {
            assert_eq!(course.digest.as_deref(), Ok(digest), "{kind}, seed {seed}");
        }
        check(&store, &course);
        tally.add(&course);
    }
    tally.print(kind, seeds.start);
    if trouble == Trouble::Takeovers {
        let Tally { late, takeovers, .. } = tally;
        assert!(late as u64 >= tally.seeds / 2, "only {late} late writes after {takeovers} takeovers");
    }
}

/// The digest of an evolution, computed without a cluster.
fn evolved(text: &str) -> Vec<u8> {
    let Plan::Single(experiment) = plan(text) else { unreachable!("it is one experiment") };
    solo::evolve(&experiment, || false).unwrap().unwrap().digest.0.to_vec()
}

/// The digest of any plan, computed by a cluster that nothing happens to.
fn undisturbed(text: &str) -> Vec<u8> {
    simulate(&Scenario::of(text, Trouble::Nothing), 0).0.digest.unwrap()
}

/// Without takeovers: a server that stops wakes its connections in an order that tokio draws at random.
#[test]
fn a_seed_brings_the_same_course_again() {
    for (seed, text) in (0..).zip([SYNCHRONOUS, ASYNCHRONOUS, STUDY].repeat(2)) {
        let [first, again] = [(); 2].map(|()| simulate(&Scenario::of(text, Trouble::Faults), seed).0);
        assert_eq!(first, again, "seed {seed}");
    }
}

/// Has every call of a store take this long.
fn every_call_takes(pause: Duration) -> ThrottleConfig {
    ThrottleConfig {
        wait_put_per_call: pause,
        wait_get_per_call: pause,
        wait_delete_per_call: pause,
        wait_list_per_call: pause,
        wait_list_with_delimiter_per_call: pause,
        ..ThrottleConfig::default()
    }
}

#[test]
fn calls_wait_while_a_coordinator_reads_its_store() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut sim = Builder::new().tick_duration(TICK).simulation_duration(LONGEST).build();
    let slow = || ThrottledStore::new(InMemory::new(), every_call_takes(Duration::from_secs(8)));
    let scenario = Arc::new(Scenario::of(SYNCHRONOUS, Trouble::Nothing));
    let only = || (COORDINATORS[0], Serving::default());
    sim.host(COORDINATORS[0], move || coordinate(only(), Store::over(Arc::new(slow())), 0, scenario.clone()));
    sim.client("operator", async {
        let reply = Serving::default().operator().list_runs(v1::ListRunsRequest::default()).await;
        assert!(reply.is_ok(), "{reply:?}");
        let waited = turmoil::elapsed();
        assert!(waited > Duration::from_secs(20), "a silent connection would be kept for less: {waited:?}");
        Ok(())
    });
    sim.run().unwrap();
}

/// The reply to a call that must not wait for the store.
async fn soon<T>(call: impl Future<Output = Result<T, tonic::Status>>) -> T {
    let start = Instant::now();
    let reply = call.await.unwrap();
    let took = start.elapsed();
    assert!(took <= Duration::from_millis(100), "it took {took:?}");
    reply
}

/// Asks for work, renews it, and looks at the run, all the time while the store hangs.
async fn call_while_the_store_hangs(objects: Arc<ThrottledStore<InMemory>>, run: String) -> turmoil::Result {
    let (hanging, serving) = (Duration::from_secs(14), Serving::default());
    let (calls, mut operator) = (serving.worker(), serving.operator());
    let worker = "caller".to_owned();
    let join = v1::JoinRequest {
        worker: worker.clone(),
        name: worker.clone(),
        version: "simulated".to_owned(),
        semantics: experiment::SEMANTICS,
        threads: 1,
        ..v1::JoinRequest::default()
    };
    let acquire =
        v1::AcquireRequest { worker: worker.clone(), slots: 1, holding: vec![], wait_milliseconds: 0 };
    calls.join(join).await?;
    let mut grants = vec![];
    while grants.is_empty() {
        grants = calls.acquire(acquire.clone()).await?.grants;
    }
    objects.config_mut(|config| *config = every_call_takes(hanging));
    let start = Instant::now();
    let submission = v1::SubmitRequest {
        file: "second.toml".to_owned(),
        text: ASYNCHRONOUS.to_owned(),
        ..Default::default()
    };
    let mut second = operator.clone();
    let submitting = tokio::spawn(async move { second.submit(submission).await });
    while start.elapsed() < hanging {
        grants.extend(soon(calls.acquire(acquire.clone())).await.grants);
        let renewal = |grant: &v1::Grant| v1::Renewal {
            piece: grant.piece.clone(),
            inputs: grant.task.as_ref().unwrap().inputs.clone(),
            standing: None,
            progress: 1,
            token: grant.token,
        };
        let renewals = grants.iter().map(renewal).collect();
        soon(calls.renew(v1::RenewRequest { worker: worker.clone(), renewals })).await;
        let request = v1::StatusRequest { run: run.clone(), known_version: 0, wait_milliseconds: 0 };
        soon(operator.status(request)).await;
        assert!(!submitting.is_finished(), "what has to be written waits");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    objects.config_mut(|config| *config = ThrottleConfig::default());
    submitting.await??;
    Ok(())
}

#[test]
fn calls_are_answered_while_a_store_call_hangs() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let objects = Arc::new(ThrottledStore::new(InMemory::new(), ThrottleConfig::default()));
    let store = Store::over(objects.clone());
    let scenario = Arc::new(Scenario::of(SYNCHRONOUS, Trouble::Nothing));
    let run = block_on(submit(store.clone(), &scenario, 0));
    let latency = Duration::from_millis(5);
    let mut sim = Builder::new()
        .tick_duration(latency)
        .simulation_duration(LONGEST)
        .max_message_latency(latency)
        .build();
    let only = || (COORDINATORS[0], Serving::default());
    sim.host(COORDINATORS[0], move || coordinate(only(), store.clone(), 0, scenario.clone()));
    sim.host("worker-0", || work(Serving::default(), 0, 0, None));
    sim.client("caller", call_while_the_store_hangs(objects, run));
    sim.run().unwrap();
}

/// Has the store fail until nothing more is computed, and then lets the run come to its end.
async fn outlast_the_store(store: FaultyStore, run: String) -> turmoil::Result {
    let request = v1::StatusRequest { run: run.clone(), ..Default::default() };
    let status = async || loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        if let Ok(reply) = Serving::default().operator().status(request.clone()).await {
            break reply.into_inner().status.unwrap();
        }
    };
    let evaluations = |status: &v1::RunStatus| status.standing.unwrap().evaluations;
    while evaluations(&status().await) == 0 {}
    store.fail(LONGEST, 100);
    let (mut before, mut last) = (status().await, status().await);
    while evaluations(&before) < evaluations(&last) {
        tokio::time::sleep(Duration::from_secs(5)).await;
        (before, last) = (last, status().await);
    }
    let epochs = evaluations(&last) / 4;
    assert!((2000..5000).contains(&epochs), "{epochs} epochs, of 6400");
    assert!(last.reason.contains("the store cannot write: "), "{last:?}");
    store.heal();
    watch(Serving::default(), run).await?;
    Ok(())
}

#[test]
fn while_the_store_fails_work_waits_and_then_continues() {
    const SHORT_EPOCHS: &str = r#"
name = "short-epochs"
problem = { kind = "onemax", length = 8 }
algorithm = { kind = "ga", population = 4 }
islands = { count = 64, topology = "isolated" }
migration = { interval = 1, count = 1 }
budget = { generations = 100 }
"#;
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let store = FaultyStore::default();
    let scenario = Scenario { store: StoreTrouble::Outages, ..Scenario::of(SHORT_EPOCHS, Trouble::Nothing) };
    let run = block_on(submit(store.client(), &scenario, 0));
    let mut sim = Builder::new().tick_duration(TICK).simulation_duration(LONGEST).build();
    let (client, scenario) = (store.client(), Arc::new(scenario));
    let only = || (COORDINATORS[0], Serving::default());
    sim.host(COORDINATORS[0], move || coordinate(only(), client.clone(), 0, scenario.clone()));
    for number in 0..WORKERS {
        sim.host(format!("worker-{number}"), move || work(Serving::default(), number, 0, None));
    }
    sim.client("operator", outlast_the_store(store, run));
    sim.run().unwrap();
}

#[test]
fn synchronous_runs_have_one_digest() {
    let digest = evolved(SYNCHRONOUS);
    simulate_all("synchronous", SYNCHRONOUS, Trouble::Faults, Some(&digest), 10);
}

#[test]
fn asynchronous_runs_are_as_recorded() {
    simulate_all("asynchronous", ASYNCHRONOUS, Trouble::Faults, None, 10);
}

#[test]
fn studies_have_one_digest() {
    let digest = undisturbed(STUDY);
    simulate_all("study", STUDY, Trouble::Faults, Some(&digest), 5);
}

#[test]
fn synchronous_runs_have_one_digest_with_late_writes() {
    let digest = evolved(SYNCHRONOUS);
    simulate_all("synchronous, late writes", SYNCHRONOUS, Trouble::Takeovers, Some(&digest), 10);
}

#[test]
fn asynchronous_runs_are_as_recorded_with_late_writes() {
    simulate_all("asynchronous, late writes", ASYNCHRONOUS, Trouble::Takeovers, None, 15);
}

#[test]
fn studies_have_one_digest_with_late_writes() {
    let digest = undisturbed(STUDY);
    simulate_all("study, late writes", STUDY, Trouble::Takeovers, Some(&digest), 5);
}

/// Random plans, settings and trouble: with processes, with the network, with the store, with workers that do not do what
/// they should, and with work that no worker can do.
fn simulate_random(seeds: Range<u64>) {
    let (mut tally, mut missed, mut digests) = (Tally::default(), 0, BTreeMap::new());
    let mut may_miss = 0;
    for seed in seeds.clone() {
        let scenario = Scenario::random(seed);
        let (course, store) = simulate(&scenario, seed);
        let digest = course.digest.as_deref();
        if scenario.poison.is_some() {
            let is_poison =
                |reason: &String| reason.contains(" failed ") || reason.contains("vanished with it");
            assert!(digest.is_err_and(is_poison), "seed {seed}: {digest:?}, {scenario:?}");
        } else if scenario.has_one_digest() {
            let expected = digests.entry(scenario.text.clone()).or_insert_with_key(|text| undisturbed(text));
            may_miss += u64::from(scenario.may_miss_lies());
            if digest != Ok(expected) && digest.is_ok() && scenario.may_miss_lies() {
                missed += 1;
                tally.add(&course);
                continue;
            }
            assert_eq!(digest, Ok(&expected[..]), "seed {seed}: {scenario:?}");
        } else {
            assert!(digest.is_ok(), "seed {seed}: {digest:?}, {scenario:?}");
            if scenario.may_miss_lies() {
                tally.add(&course);
                continue;
            }
        }
        check(&store, &course);
        tally.add(&course);
    }
    println!("random: {missed} of {may_miss} runs with lies that outlived a coordinator, or its audits");
    tally.print("random", seeds.start);
    assert!(tally.errors as u64 >= tally.seeds, "only {} store errors", tally.errors);
}

#[test]
fn random_runs_come_to_their_end() {
    simulate_random(seeds(0, 100));
}

#[test]
fn random_runs_come_to_their_end_from_100() {
    simulate_random(seeds(100, 100));
}

#[test]
fn random_runs_come_to_their_end_from_200() {
    simulate_random(seeds(200, 100));
}

#[test]
fn random_runs_come_to_their_end_from_300() {
    simulate_random(seeds(300, 100));
}

/// A store that loses, alters and misdirects writes which it has acknowledged: no run ends with a wrong digest; what cannot
/// be continued is set aside, and after a repair it comes to its end. What `atoll verify` finds wrong with a run that has
/// finished is repaired like that too. What is stored then is whole.
#[test]
fn runs_on_a_store_that_lies_have_no_wrong_digest() {
    let (seeds, mut tally, mut repaired, mut digests) = (seeds(0, 50), Tally::default(), 0, BTreeMap::new());
    for seed in seeds.clone() {
        let scenario = Scenario::with_lying_store(seed);
        let expected = scenario.has_one_digest().then(|| {
            digests.entry(scenario.text.clone()).or_insert_with_key(|text| undisturbed(text)).clone()
        });
        let is_right = |course: &Course| match (&course.digest, &expected) {
            (Ok(found), Some(expected)) => found == expected,
            (found, _) => found.is_ok(),
        };
        let (course, store) = simulate(&scenario, seed);
        assert!(course.digest.is_err() || is_right(&course), "seed {seed}: {course:?}, {scenario:?}");
        let damage = course.digest.as_ref().map_or_else(|why| Err(why.clone()), |_| verify(&store, &course));
        match damage {
            Ok(()) => check(&store, &course),
            Err(damage) => {
                repaired += 1;
                block_on(repair(&store.client(), &course.run));
                let calm = Scenario::of(&scenario.text, Trouble::Nothing);
                let again = simulate_run(&calm, seed, &store, course.run.clone());
                assert!(is_right(&again), "seed {seed}: {damage}: {again:?}, {scenario:?}");
                check(&store, &again);
            }
        }
        tally.add(&course);
    }
    println!("lying store: {repaired} of {} runs were repaired", tally.seeds);
    tally.print("lying store", seeds.start);
    // Sweeps and tournaments write little that a store could lie about.
    assert!(2 * tally.lies as u64 >= tally.seeds, "only {} lies", tally.lies);
    assert!(tally.seeds < 20 || repaired > 0, "no lie did any harm");
}

async fn repair(store: &Store, run: &str) {
    let repair = Repair::plan(store, &RunId::new(run).unwrap()).await.unwrap();
    assert!(repair.is_needed(), "{repair:?}");
    let opening = Opening { nonce: store::Nonce(77), now: 0, owner: Owner::default(), claim: None };
    repair.carry_out(store, &opening).await.unwrap();
}
