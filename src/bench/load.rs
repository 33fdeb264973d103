//! What a coordinator bears: many workers with ten times as many islands of a trivial problem.
//!
//! The workers are tasks of this process, each with a connection of its own to a coordinator that is a process of its own
//! and writes to a local store, delayed if the bench says so. Each completes an epoch at a fixed pace, and renews its lease
//! as often as the coordinator asks for while that takes. A delivery is accepted at once; later replies say up to which delivery everything is durable. The coordinator is killed at the end, and what
//! it called durable must be in the store. The rate is that of all workers, against what they could do if no call took any
//! time; calls are timed by the clock.

mod pages;

use super::{Bench, Figure};
use crate::failure::Failure;
use crate::run::opening;
use crate::terminal::message;
use coordinator::{ConnectionLimits, CoordinatorSettings, First, opened};
use evolution::codec;
use evolution::epoch::{self, EpochOutcome, EpochTask, Evolver};
use experiment::{Experiment, Plan, SEMANTICS};
use proto::chunks;
use proto::convert::{self, Piece, Work, digest_bytes};
use proto::v1;
use proto::v1::complete_reply::DeliveryStatus;
use proto::v1::worker_client::WorkerClient;
use run::RunId;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;
use store::{Location, Store};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::Status;
use tonic::transport::Channel;

/// How much there is to bear.
#[derive(Clone, Copy)]
struct Load {
    workers: u32,
    /// Runs, and their islands. Workers get work of the first run, as long as it has any.
    runs: u32,
    islands: u32,
    /// How often a worker completes an epoch.
    pace: Duration,
    /// How long they work.
    time: Duration,
    /// How much longer each call of the store takes.
    latency: Duration,
    /// Threads of all workers together.
    threads: usize,
    /// Pages of the dashboard that are open.
    pages: u32,
}

const USUAL: Load = Load {
    workers: 1000,
    runs: 1,
    islands: 10_000,
    pace: Duration::from_secs(2),
    time: Duration::from_secs(30),
    latency: Duration::ZERO,
    threads: 1,
    pages: 0,
};

const LARGE: Load = Load {
    workers: 10_000,
    runs: 10,
    islands: 10_000,
    pace: Duration::from_secs(20),
    time: Duration::from_secs(60),
    latency: Duration::from_millis(20),
    threads: 2,
    pages: 0,
};

/// The most pages that one address may keep open.
const PAGES: u32 = 100;

impl Load {
    /// One of the runs.
    fn plan(self, number: u32) -> String {
        format!(
            r#"
name = "load"
seed = {}
problem = {{ kind = "onemax", length = 20 }}
algorithm = {{ kind = "ga", population = 10 }}
islands = {{ count = {}, topology = "isolated" }}
migration = {{ interval = 1, count = 1 }}
budget = {{ generations = 1000 }}
checkpoint = {{ every = 1 }}
"#,
            number + 1,
            self.islands
        )
    }

    fn experiment(self, number: u32) -> Experiment {
        match experiment::parse("load.toml", &self.plan(number), None) {
            Ok(Plan::Single(experiment)) => *experiment,
            _ => unreachable!("it is one experiment"),
        }
    }
}

pub(super) fn benches() -> Vec<Bench> {
    vec![("cluster.load", || load(USUAL)), (LARGE_KEY, || load(LARGE)), (PAGES_KEY, load_pages)]
}

/// They take minutes, and one thousands of connections: they are measured only where they are named in full.
pub(super) const LONG_KEYS: [&str; 2] = [LARGE_KEY, PAGES_KEY];
const LARGE_KEY: &str = "cluster.load_large";
const PAGES_KEY: &str = "cluster.load_pages";

/// A coordinator whose store takes longer, for this bench alone.
#[derive(clap::Args)]
pub(super) struct CoordinatorArguments {
    /// The experiment
    plan: PathBuf,
    /// The folder of the store
    store: PathBuf,
    /// Milliseconds that each call of the store takes longer
    latency: u64,
    /// The most connections
    connections: usize,
}

/// Serves until it is killed.
pub(super) fn coordinate(arguments: CoordinatorArguments) -> Result<ExitCode, Failure> {
    // A bench is called from within a runtime of one thread.
    let serve = move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.expect("a runtime needs no more than a few file descriptors").block_on(serve(&arguments))
    };
    std::thread::spawn(serve).join().expect("a coordinator does not panic")?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(arguments: &CoordinatorArguments) -> Result<(), Failure> {
    let CoordinatorArguments { plan, store, latency, connections } = arguments;
    allow_files(connections + 1000);
    let listener =
        TcpListener::bind("127.0.0.1:0").await.map_err(|error| Failure::Other(error.to_string()))?;
    let address = listener.local_addr().map_err(|error| Failure::Other(error.to_string()))?;
    message!("coordinator at http://{address}");
    let http = TcpListener::bind("127.0.0.1:0").await.map_err(|error| Failure::Other(error.to_string()))?;
    message!("{}", http.local_addr().map_err(|error| Failure::Other(error.to_string()))?);
    let store = Store::local(store).await?;
    let store = if *latency == 0 { store } else { store.delayed(Duration::from_millis(*latency)) };
    let file = plan.display().to_string();
    let text = experiment::document::read_limited(plan).map_err(experiment::LoadError::from)?;
    let opening = opening();
    let first = Some(First { file, text, players: vec![] });
    let settings =
        CoordinatorSettings { first, ..CoordinatorSettings::new(opening.nonce, &opening.owner.version) };
    let limits = ConnectionLimits { connections: *connections, of_one_peer: *connections };
    let forever = Box::pin(std::future::pending());
    coordinator::serve_listener(
        listener,
        limits,
        Some(http),
        opened(store),
        settings,
        crate::clock::now,
        forever,
    )
    .await?;
    Ok(())
}

/// Asks the system for as many open files, as far as it allows.
fn allow_files(wanted: usize) {
    let allowed = getrlimit(Resource::Nofile);
    let wanted = allowed.maximum.map_or(wanted as u64, |most| most.min(wanted as u64));
    let raised = Rlimit { current: allowed.current.map(|now| now.max(wanted)), maximum: allowed.maximum };
    // What is not allowed shows as failed calls.
    let _ = setrlimit(Resource::Nofile, raised);
}

fn load(load: Load) -> Figure {
    let (tally, memory, stored) = measured(load);
    figure(load, &tally, memory, &stored)
}

/// The usual load without pages and with them: the second may take little more than the first.
fn load_pages() -> Figure {
    let (without, memory, stored) = measured(USUAL);
    let (with, ..) = measured(Load { pages: PAGES, ..USUAL });
    let mut figure = figure(USUAL, &without, memory, &stored);
    figure.details.extend(pages::details(USUAL, &without, &with));
    figure
}

/// What was done, the memory of the coordinator, and what it has stored of each island.
fn measured(load: Load) -> (Tally, f64, Vec<u64>) {
    let folder = std::env::temp_dir().join(format!("atoll-load-{:x}", rand::random::<u64>()));
    std::fs::create_dir_all(&folder).expect("a bench may write to the temporary folder");
    // A bench is called from within a runtime, in which no other one may wait.
    let place = folder.clone();
    let measured = std::thread::spawn(move || in_folder(load, &place)).join();
    let _ = std::fs::remove_dir_all(&folder);
    measured.expect("the bench comes to its end")
}

fn in_folder(load: Load, folder: &Path) -> (Tally, f64, Vec<u64>) {
    let (mut coordinator, url, http) = start(load, folder);
    allow_files(load.workers as usize + 1000);
    let runtime = match load.threads {
        1 => tokio::runtime::Builder::new_current_thread().enable_all().build(),
        threads => tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build(),
    };
    let runtime = runtime.expect("a runtime needs no more than a few file descriptors");
    let tally = runtime.block_on(all_work(load, (&url, &http), coordinator.id()));
    let memory = peak_memory(coordinator.id());
    let _ = coordinator.kill();
    let _ = coordinator.wait();
    let stored = runtime.block_on(stored_epochs(load, &folder.join("store")));
    (tally, memory, stored)
}

/// How many epochs of each island there are in the store that the coordinator left behind when it was killed.
async fn stored_epochs(load: Load, folder: &Path) -> Vec<u64> {
    let place = Location::Folder(folder.to_path_buf());
    let store = Store::open_at(&place).await.expect("the coordinator wrote there");
    let mut stored = vec![];
    for number in 0..load.runs {
        let run = RunId::new(load.experiment(number).run_id()).expect("it is a name");
        let (keeper, _) = ::run::open(&store, &run, opening()).await.expect("the run is there");
        stored.extend((0..load.islands).map(|island| keeper.archipelago().done(island)));
    }
    stored
}

fn submission(text: String) -> v1::SubmitRequest {
    v1::SubmitRequest { file: "load.toml".to_owned(), text, ..v1::SubmitRequest::default() }
}

/// A coordinator as a process of its own, and where it and its dashboard are.
fn start(load: Load, folder: &Path) -> (Child, String, String) {
    let plan = folder.join("plan.toml");
    std::fs::write(&plan, load.plan(0)).expect("the folder was just made");
    let connections = (2 * load.workers).to_string();
    let mut coordinator = Command::new(std::env::current_exe().expect("this program is somewhere"))
        .args(["bench", "coordinator"])
        .arg(&plan)
        .arg(folder.join("store"))
        .args([load.latency.as_millis().to_string(), connections])
        .stderr(Stdio::piped())
        .spawn()
        .expect("this program can be started");
    let mut lines = BufReader::new(coordinator.stderr.take().expect("it was piped")).lines();
    let mut said = || lines.next().and_then(Result::ok).expect("a coordinator says where it is");
    let (line, http) = (said(), said());
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| message!("{line}")));
    let url = line.strip_prefix("coordinator at ").expect("a coordinator says where it is");
    (coordinator, url.to_owned(), http)
}

/// What has been done, and how long the calls took.
#[derive(Default)]
struct Tally {
    acquired: Vec<Duration>,
    completed: Vec<Duration>,
    renewed: Vec<Duration>,
    accepted: u64,
    /// Epochs that a reply called durable, by island; those of a run are counted on from those of the run before.
    durable: Vec<(u32, u64)>,
    /// Calls for work that returned none although work was ready.
    empty: u64,
    /// Epochs that another worker had delivered, or that were no longer needed.
    doubled: u64,
    failed: u64,
    /// Why the first of them failed.
    reason: Option<Status>,
    /// For how long the coordinator had a core meanwhile.
    core_seconds: f64,
    readings: pages::Readings,
}

async fn all_work(load: Load, (url, http): (&str, &str), coordinator: u32) -> Tally {
    let mut runs = if load.pages > 0 { pages::submit(load, url).await } else { vec![] };
    // The run that is worked on is looked at as well: nothing about it can be shown again for long.
    runs.push(load.experiment(0).run_id());
    let mut evolvers = BTreeMap::new();
    for number in 0..load.runs {
        let experiment = load.experiment(number);
        evolvers.insert(experiment.run_id(), (number * load.islands, experiment.evolver()));
        if number > 0 {
            pages::operator(url).submit(submission(load.plan(number))).await.expect("it is an experiment");
        }
    }
    let evolvers = Arc::new(evolvers);
    let mut working = JoinSet::new();
    let start = Instant::now() + Duration::from_secs(3) + load.time / 10;
    for number in 0..load.workers {
        let endpoint = worker::endpoint(url, &worker::Trust::default()).expect("it is an address");
        let client = WorkerClient::new(endpoint.connect_lazy()).max_decoding_message_size(32 << 20);
        let id = format!("simulated-{number}");
        let (evolvers, deliveries) = (evolvers.clone(), Deliveries::default());
        let simulated = Simulated { load, client, id, evolvers, deliveries };
        // They do not all come at once.
        working.spawn(simulated.work(start + load.pace * number / load.workers));
    }
    tokio::time::sleep_until(start).await;
    let core_seconds = pages::core_seconds(coordinator);
    let reading = tokio::spawn(pages::read_pages(http.to_owned(), runs, load.pages, start + load.time));
    tokio::time::sleep_until(start + load.time).await;
    let core_seconds = pages::core_seconds(coordinator) - core_seconds;
    let readings = reading.await.expect("pages are read to the end");
    let mut all = Tally { core_seconds, readings, ..Tally::default() };
    for tally in working.join_all().await {
        all.acquired.extend(tally.acquired);
        all.completed.extend(tally.completed);
        all.renewed.extend(tally.renewed);
        all.accepted += tally.accepted;
        all.durable.extend(tally.durable);
        all.empty += tally.empty;
        all.doubled += tally.doubled;
        all.failed += tally.failed;
        all.reason = all.reason.or(tally.reason);
    }
    if let Some(reason) = &all.reason {
        message!("a call failed: {reason}");
    }
    all
}

/// What a worker has delivered, by the numbers that the coordinator gave.
#[derive(Default)]
struct Deliveries {
    accepted: Vec<(u64, (u32, u64))>,
    durable: u64,
}

impl Deliveries {
    fn durable(self) -> Vec<(u32, u64)> {
        let durable = self.accepted.into_iter().filter(|(number, _)| *number <= self.durable);
        durable.map(|(_, epoch)| epoch).collect()
    }
}

/// The evolver of each run, with the number of the run's first island.
type Evolvers = BTreeMap<String, (u32, Arc<dyn Evolver>)>;

/// A worker that computes, but has no threads of its own.
struct Simulated {
    load: Load,
    client: WorkerClient<Channel>,
    id: String,
    evolvers: Arc<Evolvers>,
    deliveries: Deliveries,
}

impl Simulated {
    async fn work(mut self, start: Instant) -> Tally {
        let mut tally = Tally::default();
        let renew_every = loop {
            match self.join().await {
                Ok(every) => break every,
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        };
        let mut next = start;
        while next < start + self.load.time {
            tokio::time::sleep_until(next).await;
            next += self.load.pace;
            if let Err(status) = self.epoch(&mut tally, next, renew_every).await {
                tally.failed += 1;
                tally.reason.get_or_insert(status);
            }
        }
        tally.durable = self.deliveries.durable();
        tally
    }

    /// Joins; returns how often leases are to be renewed.
    async fn join(&mut self) -> Result<Duration, Status> {
        let (worker, version) = (self.id.clone(), "simulated".to_owned());
        let request = v1::JoinRequest {
            name: worker.clone(),
            worker,
            version,
            semantics: SEMANTICS,
            threads: 1,
            ..v1::JoinRequest::default()
        };
        let reply = self.client.join(request).await?.into_inner();
        Ok(Duration::from_millis(reply.renew_milliseconds))
    }

    /// One epoch, which takes until then.
    async fn epoch(
        &mut self,
        tally: &mut Tally,
        until: Instant,
        renew_every: Duration,
    ) -> Result<(), Status> {
        let request = v1::AcquireRequest {
            worker: self.id.clone(),
            slots: 1,
            holding: vec![],
            wait_milliseconds: 1000,
        };
        let asked = Instant::now();
        let v1::AcquireReply { grants, durable, .. } = self.client.acquire(request).await?.into_inner();
        self.deliveries.durable = durable;
        let Some(grant) = grants.into_iter().next() else {
            tally.empty += 1;
            return Ok(());
        };
        tally.acquired.push(asked.elapsed());
        let work = convert::work(grant.piece).map_err(|error| Status::internal(error.to_string()))?;
        let task = grant.task.ok_or_else(|| Status::internal("there are only epochs"))?;
        let inputs = task.inputs.clone();
        let outcome = self.compute(&work, task).await?;
        let renewal = v1::Renewal {
            piece: Some((&work).into()),
            inputs: inputs.clone(),
            token: grant.token,
            ..v1::Renewal::default()
        };
        let end = until - self.load.pace / 10;
        let mut next = asked + renew_every;
        while next < end {
            tokio::time::sleep_until(next).await;
            next += renew_every;
            self.renew(tally, renewal.clone()).await?;
        }
        tokio::time::sleep_until(end).await;
        let asked = Instant::now();
        let reply = self.complete(&work, inputs, outcome).await?;
        tally.completed.push(asked.elapsed());
        self.deliveries.durable = reply.durable;
        if reply.status() == DeliveryStatus::Accepted {
            tally.accepted += 1;
            if let (Piece::Epoch { island, epoch }, Some((first, _))) =
                (work.piece, self.evolvers.get(&work.run))
            {
                self.deliveries.accepted.push((reply.delivery, (first + island, epoch)));
            }
        } else {
            tally.doubled += 1;
        }
        Ok(())
    }

    async fn renew(&mut self, tally: &mut Tally, renewal: v1::Renewal) -> Result<(), Status> {
        let request = v1::RenewRequest { worker: self.id.clone(), renewals: vec![renewal] };
        let asked = Instant::now();
        let v1::RenewReply { durable, .. } = self.client.renew(request).await?.into_inner();
        tally.renewed.push(asked.elapsed());
        self.deliveries.durable = durable;
        Ok(())
    }

    async fn compute(&mut self, work: &Work, task: v1::Task) -> Result<EpochOutcome, Status> {
        let Piece::Epoch { island, epoch } = work.piece else {
            return Err(Status::internal("there are only epochs"));
        };
        let state = match task.before {
            None => None,
            Some(before) => {
                let length = before.state_length as usize;
                let bytes = match before.inline {
                    Some(bytes) => bytes,
                    None => self.fetch(work, before.digest).await?,
                };
                Some(bytes.slice(..length.min(bytes.len())))
            }
        };
        let task = EpochTask { island, epoch, until: task.until, state, packets: vec![] };
        let (_, evolver) = self.evolvers.get(&work.run).ok_or_else(|| Status::internal("an unknown run"))?;
        epoch::run(&**evolver, &task).map_err(|error| Status::internal(error.to_string()))
    }

    async fn fetch(&mut self, work: &Work, digest: bytes::Bytes) -> Result<bytes::Bytes, Status> {
        let request = v1::FetchRequest { worker: self.id.clone(), piece: Some(work.into()), digest };
        let mut stream = self.client.fetch(request).await?.into_inner();
        let mut bytes = vec![];
        while let Some(chunk) = stream.message().await? {
            bytes.extend_from_slice(&chunk.bytes);
        }
        Ok(bytes.into())
    }

    async fn complete(
        &mut self,
        work: &Work,
        inputs: bytes::Bytes,
        outcome: EpochOutcome,
    ) -> Result<v1::CompleteReply, Status> {
        use v1::complete_part::Part;
        let EpochOutcome { state, departure, digest, standing, statistics, .. } = outcome;
        let statistics = codec::encode(&statistics).map_err(|error| Status::internal(error.to_string()))?;
        let result = v1::EpochResult {
            inputs,
            digest: digest_bytes(&digest),
            standing: Some((&standing).into()),
            state_length: state.len() as u64,
            departure_length: departure.len() as u64,
            statistics_length: statistics.len() as u64,
        };
        let head = v1::CompleteHead {
            worker: self.id.clone(),
            piece: Some(work.into()),
            milliseconds: self.load.pace.as_millis() as u64,
            what: Some(v1::complete_head::What::Epoch(result)),
            slots: 0,
        };
        let chunks = chunks::cut_all(&[state, departure, statistics]).into_iter().map(Part::Chunk);
        let parts = std::iter::once(Part::Head(head)).chain(chunks);
        let parts: Vec<_> = parts.map(|part| v1::CompletePart { part: Some(part) }).collect();
        Ok(self.client.complete(tokio_stream::iter(parts)).await?.into_inner())
    }
}

/// `stored` are the epochs of each island.
fn figure(load: Load, tally: &Tally, memory: f64, stored: &[u64]) -> Figure {
    let seconds = load.time.as_secs_f64();
    let ideal = f64::from(load.workers) / load.pace.as_secs_f64();
    let is_lost = |(island, epoch): &&(u32, u64)| stored[*island as usize] <= *epoch;
    let lost = tally.durable.iter().filter(is_lost).count();
    let mut figure = Figure::new("epochs/s", tally.accepted as f64 / seconds, ideal);
    figure.details.extend([
        ("acquire p50, ms", percentile(&tally.acquired, 0.5)),
        ("acquire p99, ms", percentile(&tally.acquired, 0.99)),
        ("complete p50, ms", percentile(&tally.completed, 0.5)),
        ("complete p99, ms", percentile(&tally.completed, 0.99)),
        ("doubled epochs", tally.doubled as f64),
        ("durable epochs", tally.durable.len() as f64),
        ("lost durable epochs", lost as f64),
        ("accepted, not yet durable", tally.accepted.saturating_sub(tally.durable.len() as u64) as f64),
        ("failed calls", tally.failed as f64),
        ("empty answers", tally.empty as f64),
        ("coordinator, MiB", memory),
        ("coordinator, cores", tally.core_seconds / seconds),
    ]);
    // Short epochs are over before a lease is to be renewed.
    if !tally.renewed.is_empty() {
        figure.details.insert("renew p99, ms", percentile(&tally.renewed, 0.99));
    }
    figure
}

/// In milliseconds.
fn percentile(times: &[Duration], part: f64) -> f64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    let at = (times.len() as f64 * part) as usize;
    times.get(at.min(times.len().saturating_sub(1))).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
}

/// The most memory that a process has had, in mebibytes.
fn peak_memory(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kibibytes.map_or(f64::NAN, |kibibytes| kibibytes / 1024.0)
}
