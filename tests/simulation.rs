//! The real coordinator and worker over a simulated network, with seeded crashes, partitions and delays.
//!
//! `ATOLL_SIMULATIONS` says how many seeds, `ATOLL_SIMULATION_SEED` with which to begin. A seed brings the same course
//! every time, so one that fails is looked into by itself, with `ATOLL_LOG=info` to see what happens.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use archipelago::solo;
use coordinator::leases::Terms;
use coordinator::{Ending, Permissions, Settings};
use experiment::{Experiment, Plan};
use hyper_util::rt::TokioIo;
use object_store::memory::InMemory;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use proto::v1;
use proto::v1::operator_client::OperatorClient;
use proto::v1::run_status::State;
use run::{Opening, RunId};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use store::promises::Trial;
use store::{Nonce, Store};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::Channel;
use tonic::transport::server::Connected;
use turmoil::net::{TcpListener, TcpStream};
use turmoil::{Builder, Sim};

const EXPERIMENT: &str = r#"
name = "simulated"
seed = 3
problem = { kind = "onemax", length = 20 }
algorithm = { kind = "ga", population = 10 }
islands = { count = 3 }
migration = { interval = 3, count = 1 }
budget = { generations = 90 }
checkpoint = { every = 2 }
"#;

const PORT: u16 = 7440;
const WORKERS: u64 = 3;
/// Faults happen for so long; after that, everything heals and the run must come to its end.
const FAULTS: Duration = Duration::from_secs(6);
const LONGEST: Duration = Duration::from_mins(5);

fn experiment() -> Experiment {
    match experiment::parse("simulated.toml", EXPERIMENT, None).unwrap() {
        Plan::Single(experiment) => *experiment,
        _ => unreachable!("it is one experiment"),
    }
}

/// A stream of the simulation, as a connection of the server.
struct Wire(TcpStream);

impl Connected for Wire {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

async fn coordinate(store: Store, seed: u64) -> turmoil::Result {
    let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
    let incoming = futures::stream::unfold(listener, |listener| async move {
        let connection = listener.accept().await.map(|(stream, _)| Wire(stream));
        Some((connection, listener))
    });
    let lease = Duration::from_millis(600);
    let terms = Terms { lease, hedge_after: lease, vanished: 1000, ..Terms::default() };
    let nonce = Nonce(u128::from(seed) << 64 | turmoil::elapsed().as_nanos());
    let settings = Settings {
        terms,
        nonce,
        version: "simulated".to_owned(),
        exit_when_done: false,
        max_runs: 10,
        permissions: Permissions::default(),
        tls: None,
        first: None,
        trial: Some(Trial::SHORT),
        linger: Duration::ZERO,
        inline: true,
    };
    let ending = coordinator::run(incoming, None, store, settings, || 0, std::future::pending()).await?;
    assert_eq!(ending, Ending::Stopped);
    Ok(())
}

fn channel() -> Channel {
    let endpoint = worker::endpoint("http://coordinator:7440", &worker::Trust::default()).unwrap();
    endpoint.connect_with_connector_lazy(tower::service_fn(|_| async {
        Ok::<_, io::Error>(TokioIo::new(TcpStream::connect(("coordinator", PORT)).await?))
    }))
}

async fn work(number: u64, seed: u64) -> turmoil::Result {
    let life = turmoil::elapsed().as_nanos();
    let identity = worker::Identity {
        id: format!("{number}-{life}"),
        name: format!("worker-{number}"),
        version: "simulated".to_owned(),
        give_up_after: None,
        seed: seed + number,
        look: None,
    };
    let config = worker::Config {
        identity,
        cache_bytes: 1 << 20,
        undurable_bytes: 1 << 20,
        memory_bytes: u64::MAX,
        engines: std::collections::BTreeMap::new(),
    };
    let calls = Arc::new(worker::Grpc::new(channel(), None));
    worker::run(config, calls, worker::Pool::inline(), std::future::pending()).await?;
    Ok(())
}

/// Waits until the run is finished; answers its digest.
async fn watch(run: String) -> Vec<u8> {
    let mut client = OperatorClient::new(channel());
    loop {
        let request = v1::StatusRequest { run: run.clone(), known_version: 0, wait_milliseconds: 0 };
        if let Ok(Ok(reply)) = tokio::time::timeout(Duration::from_secs(2), client.status(request)).await {
            let status = reply.into_inner().status.unwrap();
            assert_ne!(status.state(), State::Failed, "{}", status.reason);
            if status.state() == State::Finished {
                return status.digest.unwrap().to_vec();
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Lets something go wrong, now and then.
fn disturb(sim: &mut Sim<'_>, dice: &mut Dice) {
    let worker = format!("worker-{}", dice.roll(WORKERS));
    match dice.roll(8) {
        0 => sim.bounce("coordinator"),
        1 | 2 => sim.bounce(worker),
        3 | 4 => sim.partition("coordinator", worker),
        5 => sim.hold("coordinator", worker),
        6 => sim.release("coordinator", worker),
        _ => sim.repair("coordinator", worker),
    }
}

fn heal(sim: &mut Sim<'_>) {
    for worker in (0..WORKERS).map(|number| format!("worker-{number}")) {
        sim.repair("coordinator", worker.as_str());
        sim.release("coordinator", worker.as_str());
    }
}

/// What came of one simulation.
#[derive(Debug, PartialEq)]
struct Course {
    digest: Vec<u8>,
    /// How much went wrong until its end, and when that was.
    faults: usize,
    ended: Duration,
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

/// One cluster with the faults of one seed, from the creation of its run to its end.
fn simulate(seed: u64) -> Course {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    round_task_numbers();
    let (store, run) = create(seed);
    let mut dice = Dice(seed);
    let mut sim = Builder::new()
        .rng_seed(seed)
        .tick_duration(Duration::from_millis(5))
        .simulation_duration(LONGEST)
        .min_message_latency(Duration::from_millis(1))
        .max_message_latency(Duration::from_millis(10 + 10 * dice.roll(10)))
        .build();
    let kept = store.clone();
    sim.host("coordinator", move || coordinate(kept.clone(), seed));
    for number in 0..WORKERS {
        sim.host(format!("worker-{number}"), move || work(number, seed));
    }
    let (answer, mut digest) = tokio::sync::oneshot::channel();
    let run = run.to_string();
    sim.client("operator", async move {
        let _ = answer.send(watch(run).await);
        Ok(())
    });
    let mut healed = false;
    let mut faults = 0;
    loop {
        match sim.step() {
            Ok(true) => break,
            Ok(false) => {}
            Err(error) => panic!("seed {seed}: {error}"),
        }
        if sim.elapsed() < FAULTS {
            if dice.roll(20) == 0 {
                disturb(&mut sim, &mut dice);
                faults += 1;
            }
        } else if !healed {
            heal(&mut sim);
            healed = true;
        }
    }
    let digest = digest.try_recv().unwrap_or_else(|_| panic!("seed {seed}: nobody saw the end"));
    Course { digest, faults, ended: sim.elapsed() }
}

/// A store that outlives every crash, with one run in it.
fn create(seed: u64) -> (Store, RunId) {
    let (store, run) = (Store::memory(), RunId::new("simulated").unwrap());
    let opening =
        Opening { nonce: Nonce(u128::from(seed)), now: 0, owner: run::Owner::default(), claim: None };
    let experiment = experiment();
    let created = run::create(&store, &run, &experiment, None, opening);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    drop(runtime.block_on(created).unwrap());
    (store, run)
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

#[test]
fn a_seed_brings_the_same_course_again() {
    for seed in 0..20 {
        assert_eq!(simulate(seed), simulate(seed), "seed {seed}");
    }
}

/// A store that thinks about everything for a while.
fn slow_store() -> Store {
    let pause = Duration::from_secs(8);
    let config = ThrottleConfig {
        wait_put_per_call: pause,
        wait_get_per_call: pause,
        wait_delete_per_call: pause,
        wait_list_per_call: pause,
        ..ThrottleConfig::default()
    };
    Store::over(Arc::new(ThrottledStore::new(InMemory::new(), config)))
}

#[test]
fn calls_wait_while_a_coordinator_reads_its_store() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut sim = Builder::new().simulation_duration(LONGEST).build();
    sim.host("coordinator", || coordinate(slow_store(), 0));
    sim.client("operator", async {
        let reply = OperatorClient::new(channel()).list_runs(v1::ListRunsRequest {}).await;
        assert!(reply.is_ok(), "{reply:?}");
        let waited = turmoil::elapsed();
        assert!(waited > Duration::from_secs(20), "a silent connection would be kept for less: {waited:?}");
        Ok(())
    });
    sim.run().unwrap();
}

#[test]
fn one_digest_with_the_faults_of_any_seed() {
    if let Ok(level) = std::env::var("ATOLL_LOG") {
        let level: tracing::Level = level.parse().unwrap();
        tracing_subscriber::fmt().with_max_level(level).without_time().init();
    }
    let experiment = experiment();
    let expected = solo::evolve(&experiment, || false).unwrap().unwrap().digest;
    let first = number("ATOLL_SIMULATION_SEED", 0);
    let seeds = number("ATOLL_SIMULATIONS", 200);
    let mut faults = 0;
    for seed in first..first + seeds {
        let course = simulate(seed);
        assert_eq!(course.digest, expected.0, "seed {seed}");
        faults += course.faults;
    }
    println!("seeds {first} to {}: {faults} faults, digest {expected}", first + seeds - 1);
    assert!(faults as u64 >= 5 * seeds, "only {faults} faults: the runs were too short to be disturbed");
}
