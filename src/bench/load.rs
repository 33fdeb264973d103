//! What a coordinator bears: a thousand workers with ten thousand islands of a trivial problem.
//!
//! The workers are tasks of this process, each with a connection of its own to a coordinator that is a process of its own
//! and writes to a local store. Each completes an epoch every two seconds, and is answered once that epoch is accepted. The
//! rate is that of all of them, against what they could do if no call took any time; calls are timed by the clock.

use super::{Bench, Figure};
use crate::run::opening;
use evolution::codec;
use evolution::epoch::{self, EpochOutcome, EpochTask, Evolver};
use experiment::{Experiment, Plan, SEMANTICS};
use proto::chunks;
use proto::convert::{self, Piece, Work, digest_bytes};
use proto::v1;
use proto::v1::complete_reply::Fate;
use proto::v1::worker_client::WorkerClient;
use run::RunId;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use store::{Location, Store};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::Status;
use tonic::transport::Channel;

const WORKERS: u32 = 1000;
/// How often a worker completes an epoch.
const PACE: Duration = Duration::from_secs(2);
/// How long they work.
const TIME: Duration = Duration::from_secs(30);

const PLAN: &str = r#"
name = "load"
seed = 1
problem = { kind = "onemax", length = 20 }
algorithm = { kind = "ga", population = 10 }
islands = { count = 10000, topology = "isolated" }
migration = { interval = 1, count = 1 }
budget = { generations = 1000 }
checkpoint = { every = 1 }
"#;

pub(super) fn benches() -> Vec<Bench> {
    vec![("cluster.load", load)]
}

fn load() -> Figure {
    let folder = std::env::temp_dir().join(format!("atoll-load-{:x}", rand::random::<u64>()));
    std::fs::create_dir_all(&folder).expect("a bench may write to the temporary folder");
    // A bench is called from within a runtime, in which no other one may wait.
    let place = folder.clone();
    let figure = std::thread::spawn(move || in_folder(&place)).join().expect("the bench comes to its end");
    let _ = std::fs::remove_dir_all(&folder);
    figure
}

fn in_folder(folder: &Path) -> Figure {
    let (mut coordinator, url) = start(folder);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime needs no more than a few file descriptors");
    let tally = runtime.block_on(all_work(&url));
    let memory = peak_memory(coordinator.id());
    let _ = coordinator.kill();
    let _ = coordinator.wait();
    let stored = runtime.block_on(stored_epochs(&folder.join("store")));
    figure(&tally, memory, stored)
}

/// How many epochs there are in the store that the coordinator left behind when it was killed.
async fn stored_epochs(folder: &Path) -> u64 {
    let place = Location::Folder(folder.to_path_buf());
    let store = Store::open_at(&place).await.expect("the coordinator wrote there");
    let Ok(Plan::Single(experiment)) = experiment::parse("load.toml", PLAN, None) else {
        unreachable!("it is one experiment")
    };
    let run = RunId::new(experiment.run_id()).expect("it is a name");
    let (keeper, _) = ::run::open(&store, &run, opening()).await.expect("the run is there");
    let islands = experiment.setting().islands.len() as u32;
    (0..islands).map(|island| keeper.archipelago().done(island)).sum()
}

/// A coordinator as a process of its own, and where it is.
fn start(folder: &Path) -> (Child, String) {
    let plan = folder.join("plan.toml");
    std::fs::write(&plan, PLAN).expect("the folder was just made");
    let mut coordinator = Command::new(std::env::current_exe().expect("this program is somewhere"))
        .args(["coordinator", "--listen", "127.0.0.1:0", "--http", "off", "--run"])
        .arg(&plan)
        .arg("--store")
        .arg(folder.join("store"))
        .env("ATOLL_LOG", "error")
        .stderr(Stdio::piped())
        .spawn()
        .expect("this program can be started");
    let mut lines = BufReader::new(coordinator.stderr.take().expect("it was piped")).lines();
    let line = lines.next().and_then(Result::ok).expect("a coordinator says where it is");
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| eprintln!("{line}")));
    let url = line.strip_prefix("coordinator at ").expect("a coordinator says where it is");
    (coordinator, url.to_owned())
}

/// What has been done, and how long the calls took.
#[derive(Default)]
struct Tally {
    acquired: Vec<Duration>,
    completed: Vec<Duration>,
    accepted: u64,
    /// Calls for work that brought none, though there is some for everybody.
    empty: u64,
    /// Epochs that somebody else had delivered, or that nobody needed.
    doubled: u64,
    failed: u64,
}

async fn all_work(url: &str) -> Tally {
    let Ok(Plan::Single(experiment)) = experiment::parse("load.toml", PLAN, None) else {
        unreachable!("it is one experiment")
    };
    let evolver = Experiment::evolver(&experiment);
    let mut working = JoinSet::new();
    let start = Instant::now() + Duration::from_secs(3);
    for number in 0..WORKERS {
        let endpoint = worker::endpoint(url, &worker::Trust::default()).expect("it is an address");
        let client = WorkerClient::new(endpoint.connect_lazy()).max_decoding_message_size(32 << 20);
        let simulated = Simulated { client, id: format!("simulated-{number}"), evolver: evolver.clone() };
        // They do not all come at once.
        working.spawn(simulated.work(start + PACE * number / WORKERS));
    }
    let mut all = Tally::default();
    for tally in working.join_all().await {
        all.acquired.extend(tally.acquired);
        all.completed.extend(tally.completed);
        all.accepted += tally.accepted;
        all.empty += tally.empty;
        all.doubled += tally.doubled;
        all.failed += tally.failed;
    }
    all
}

/// A worker that computes, but has no threads of its own.
struct Simulated {
    client: WorkerClient<Channel>,
    id: String,
    evolver: Arc<dyn Evolver>,
}

impl Simulated {
    async fn work(mut self, start: Instant) -> Tally {
        let mut tally = Tally::default();
        while self.join().await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let mut next = start;
        while next < start + TIME {
            tokio::time::sleep_until(next).await;
            next += PACE;
            if self.epoch(&mut tally, next).await.is_err() {
                tally.failed += 1;
            }
        }
        tally
    }

    async fn join(&mut self) -> Result<(), Status> {
        let (worker, version) = (self.id.clone(), "simulated".to_owned());
        let request =
            v1::JoinRequest { name: worker.clone(), worker, version, semantics: SEMANTICS, threads: 1 };
        self.client.join(request).await.map(|_| ())
    }

    /// One epoch, which takes until then.
    async fn epoch(&mut self, tally: &mut Tally, until: Instant) -> Result<(), Status> {
        let request = v1::AcquireRequest {
            worker: self.id.clone(),
            slots: 1,
            holding: vec![],
            wait_milliseconds: 1000,
        };
        let asked = Instant::now();
        let grants = self.client.acquire(request).await?.into_inner().grants;
        let Some(grant) = grants.into_iter().next() else {
            tally.empty += 1;
            return Ok(());
        };
        tally.acquired.push(asked.elapsed());
        let work = convert::work(grant.piece).map_err(|error| Status::internal(error.to_string()))?;
        let task = grant.task.ok_or_else(|| Status::internal("there are only epochs"))?;
        let inputs = task.inputs.clone();
        let outcome = self.compute(&work, task).await?;
        tokio::time::sleep_until(until - PACE / 10).await;
        let asked = Instant::now();
        let fate = self.complete(&work, inputs, outcome).await?;
        tally.completed.push(asked.elapsed());
        if fate == Fate::Accepted {
            tally.accepted += 1;
        } else {
            tally.doubled += 1;
        }
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
        epoch::run(&*self.evolver, &task).map_err(|error| Status::internal(error.to_string()))
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
    ) -> Result<Fate, Status> {
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
            milliseconds: PACE.as_millis() as u64,
            what: Some(v1::complete_head::What::Epoch(result)),
            slots: 0,
        };
        let chunks = chunks::cut_all(&[state, departure, statistics]).into_iter().map(Part::Chunk);
        let parts = std::iter::once(Part::Head(head)).chain(chunks);
        let parts: Vec<_> = parts.map(|part| v1::CompletePart { part: Some(part) }).collect();
        Ok(self.client.complete(tokio_stream::iter(parts)).await?.into_inner().fate())
    }
}

fn figure(tally: &Tally, memory: f64, stored: u64) -> Figure {
    let seconds = TIME.as_secs_f64();
    let ideal = f64::from(WORKERS) / PACE.as_secs_f64();
    let mut figure = Figure::new("epochs/s", tally.accepted as f64 / seconds, ideal);
    figure.details.extend([
        ("acquire p50, ms", percentile(&tally.acquired, 0.5)),
        ("acquire p99, ms", percentile(&tally.acquired, 0.99)),
        ("complete p50, ms", percentile(&tally.completed, 0.5)),
        ("complete p99, ms", percentile(&tally.completed, 0.99)),
        ("doubled epochs", tally.doubled as f64),
        ("lost epochs", tally.accepted.saturating_sub(stored) as f64),
        ("failed calls", tally.failed as f64),
        ("empty answers", tally.empty as f64),
        ("coordinator, MiB", memory),
    ]);
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
