//! Floods from outside: the coordinator takes no more memory than documented, and an honest worker continues.
//!
//! `ATOLL_FLOOD_SECONDS=N` floods for so long, and measures what the worker keeps of its rate (`tests/long floods`).

use crate::process::{Coordinator, EXPERIMENT, Folder, Process, wait_until};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use proto::v1;
use proto::v1::operator_client::OperatorClient;
use proto::v1::worker_client::WorkerClient;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tonic::transport::Endpoint;

/// What a coordinator may take, in MiB, whatever comes.
pub(crate) const MOST_MEMORY: u64 = 512;
/// Connections that a flood holds: a process has 1024 descriptors, more often than not.
const HELD: usize = 600;

#[derive(Clone, Copy, Debug)]
enum Flood {
    Streams,
    Connections,
    Renewals,
    Joins,
    Http,
}

impl Flood {
    /// Those that join come after the one that must have a place.
    const ALL: [Self; 5] = [Self::Streams, Self::Connections, Self::Renewals, Self::Joins, Self::Http];

    /// Floods until it is dropped.
    async fn run(self, address: &str, http: &str) {
        match self {
            Self::Streams => {
                let all: FuturesUnordered<_> = (0..5).map(|_| unfinished_streams(address)).collect();
                all.for_each(|()| async {}).await;
            }
            Self::Connections => hold(address, b"PRI * HTTP/2.0").await,
            Self::Joins => joins(address).await,
            Self::Renewals => renewals(address).await,
            Self::Http => tokio::join!(hold(http, b"GET /healthz HTTP/1.1\r\nHost: a"), pages(http)).0,
        }
    }
}

/// Connections with as many calls as they may have, each of a message of 1 MiB that lacks its last byte.
async fn unfinished_streams(address: &str) {
    loop {
        let stream = TcpStream::connect(address).await.unwrap();
        let (client, connection) = h2::client::handshake(stream).await.unwrap();
        let connection = tokio::spawn(connection);
        let mut message = vec![0; (1 << 20) + 4];
        message[1..5].copy_from_slice(&(1u32 << 20).to_be_bytes());
        let message = Bytes::from(message);
        let mut open: FuturesUnordered<_> =
            (0..256).map(|_| unfinished_stream(client.clone(), message.clone())).collect();
        while let Some(Ok(())) = open.next().await {
            open.push(unfinished_stream(client.clone(), message.clone()));
        }
        connection.abort();
    }
}

async fn unfinished_stream(client: h2::client::SendRequest<Bytes>, message: Bytes) -> Result<(), h2::Error> {
    let mut client = client.ready().await?;
    let request = http::Request::post("http://atoll/atoll.v1.Worker/Complete")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .unwrap();
    let (response, mut body) = client.send_request(request, false)?;
    body.send_data(message, false)?;
    drop(response.await?);
    Ok(())
}

/// Connections that say only this; the oldest are closed for new ones.
async fn hold(address: &str, words: &[u8]) {
    let mut held = VecDeque::new();
    loop {
        if let Ok(mut stream) = TcpStream::connect(address).await {
            let _ = stream.write_all(words).await;
            held.push_back(stream);
        }
        if held.len() > HELD {
            held.pop_front();
        }
    }
}

pub(crate) async fn worker(address: &str) -> WorkerClient<tonic::transport::Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    WorkerClient::new(endpoint.connect().await.unwrap())
}

pub(crate) fn join(worker: String) -> v1::JoinRequest {
    let version = "9.9.9\nforged".to_owned();
    v1::JoinRequest {
        name: worker.clone(),
        worker,
        version,
        semantics: experiment::SEMANTICS,
        threads: 1,
        ..v1::JoinRequest::default()
    }
}

async fn joins(address: &str) {
    let client = worker(address).await;
    let calls = (0..).map(|number| {
        let mut client = client.clone();
        async move { drop(client.join(join(format!("flood-{number}"))).await) }
    });
    futures::stream::iter(calls).buffer_unordered(64).for_each(|()| async {}).await;
}

/// Lists of leases as long as they may be, of one worker that has joined.
async fn renewals(address: &str) {
    let mut client = worker(address).await;
    client.join(join("renewer".to_owned())).await.unwrap();
    let what = Some(v1::piece::What::Epoch(v1::EpochPiece { island: 0, epoch: 0 }));
    let piece = Some(v1::Piece { run: "none".to_owned(), what });
    let renewal = v1::Renewal { piece, ..v1::Renewal::default() };
    let request = v1::RenewRequest { worker: "renewer".to_owned(), renewals: vec![renewal; 4096] };
    let calls = std::iter::repeat_with(|| {
        let (mut client, request) = (client.clone(), request.clone());
        async move { drop(client.renew(request).await) }
    });
    futures::stream::iter(calls).buffer_unordered(64).for_each(|()| async {}).await;
}

async fn pages(address: &str) {
    loop {
        if let Ok(mut stream) = TcpStream::connect(address).await {
            let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        }
    }
}

/// A flood on a thread of its own, until it is dropped.
struct Flooding(Option<tokio::sync::oneshot::Sender<()>>, Option<std::thread::JoinHandle<()>>);

impl Flooding {
    fn begin(flood: Flood, coordinator: &Coordinator) -> Self {
        let (address, http) = (coordinator.address.clone(), coordinator.http.clone());
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::select! {
                    () = flood.run(&address, &http) => {}
                    _ = stopped => {}
                }
            });
        });
        Self(Some(stop), Some(thread))
    }
}

impl Drop for Flooding {
    fn drop(&mut self) {
        drop(self.0.take());
        let flooded = self.1.take().unwrap().join();
        assert!(flooded.is_ok() || std::thread::panicking(), "the flood itself failed");
    }
}

/// The most memory that a process has had, in MiB.
pub(crate) fn peak(coordinator: &Coordinator) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", coordinator.process.0.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() >> 10
}

/// How many generations all of a run's islands have done.
async fn generations(address: &str, run: &str) -> u64 {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let mut operator = OperatorClient::new(endpoint.connect().await.unwrap());
    let request = v1::StatusRequest { run: run.to_owned(), known_version: 0, wait_milliseconds: 0 };
    let status = operator.status(request).await.unwrap().into_inner().status.unwrap();
    status.standing.unwrap().evaluations
}

#[test]
fn floods_are_held_off() {
    let seconds = std::env::var("ATOLL_FLOOD_SECONDS").ok().and_then(|seconds| seconds.parse::<f64>().ok());
    let duration = Duration::from_secs_f64(seconds.unwrap_or(0.7));
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    let run = coordinator.submit(&EXPERIMENT.replace("generations = 3000", "generations = 100000000"));
    let _worker = coordinator.worker(&[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let evaluations = || runtime.block_on(generations(&coordinator.address, &run));
    crate::process::wait_until("the worker begins", || evaluations() > 0);
    let rate = || {
        let (start, before) = (Instant::now(), evaluations());
        // The time is what is measured.
        std::thread::sleep(duration);
        (evaluations() - before) as f64 / start.elapsed().as_secs_f64()
    };
    let undisturbed = if seconds.is_some() { rate() } else { 0.0 };
    for flood in Flood::ALL {
        let flooding = Flooding::begin(flood, &coordinator);
        let kept = rate();
        assert!(coordinator.page("/readyz").ends_with("ready\n"), "{flood:?}: who probes is answered");
        drop(flooding);
        let memory = peak(&coordinator);
        assert!(memory < MOST_MEMORY, "{flood:?}: {memory} MiB");
        assert!(kept > 0.0, "{flood:?}: the worker goes on");
        if seconds.is_some() {
            println!("flood: {flood:?}, {memory} MiB, {kept:.0} of {undisturbed:.0} evaluations a second");
            assert!(kept >= undisturbed / 2.0, "{flood:?}: {kept} of {undisturbed}");
        }
    }
    let said = coordinator.said();
    assert!(!said.contains("panicked") && !said.lines().any(|line| line.starts_with("forged")), "{said}");
}

/// For how long a process has computed, in hundredths of a second.
fn computed(process: &Process) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.0.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum()
}

#[test]
fn a_coordinator_without_file_descriptors_waits_for_some() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    // Without descriptors it cannot read its store.
    wait_until("readiness", || coordinator.page("/readyz").ends_with("ready\n"));
    let process = Pid::from_raw(coordinator.process.0.id() as i32);
    let maximum = getrlimit(Resource::Nofile).maximum;
    let none = Rlimit { current: Some(0), maximum };
    let before = prlimit(process, Resource::Nofile, none).unwrap();
    let computed_before = computed(&coordinator.process);
    // It cannot be accepted, and is given up after 5 seconds.
    assert_eq!(coordinator.page("/healthz"), "");
    let spent = computed(&coordinator.process) - computed_before;
    assert!(spent < 100, "it computed for {spent} hundredths of 5 seconds");
    prlimit(process, Resource::Nofile, before).unwrap();
    assert!(coordinator.page("/healthz").starts_with("HTTP/1.1 200"), "it accepts again");
}
