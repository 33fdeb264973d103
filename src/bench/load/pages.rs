//! Open pages of the dashboard, as browsers keep them: each reads a stream, and its page again when something has changed.

use super::{Load, Tally, submission};
use proto::v1;
use proto::v1::operator_client::OperatorClient;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::transport::Channel;

/// Runs that have pages, beside the one that is worked on, which has one too.
const RUNS: u32 = 20;
/// How often a page is read again at most.
const BETWEEN: Duration = Duration::from_millis(1500);
/// What the system counts a process's time in: hundredths of a second, on every Linux.
const TICKS: f64 = 100.0;

/// What pages were read, and how long that took.
#[derive(Default)]
pub(super) struct Readings {
    pub(super) times: Vec<Duration>,
    pub(super) bytes: u64,
    pub(super) failed: u64,
}

pub(super) fn operator(url: &str) -> OperatorClient<Channel> {
    let endpoint = worker::endpoint(url, &worker::Trust::default()).expect("it is an address");
    OperatorClient::new(endpoint.connect_lazy())
}

/// Submits the runs whose pages are read, and pauses them: the workers are here for another one.
pub(super) async fn submit(load: Load, url: &str) -> Vec<String> {
    let mut operator = operator(url);
    let mut runs = vec![];
    for number in 0..RUNS {
        let text = Load { islands: 8, ..load }.plan(0).replace("\"load\"", &format!("\"page-{number}\""));
        let run = operator.submit(submission(text)).await.expect("it is an experiment").into_inner().run;
        let request = v1::PauseRequest { run: run.clone(), paused: true };
        operator.pause(request).await.expect("the run is there");
        runs.push(run);
    }
    runs
}

/// Keeps a number of pages open until then.
pub(super) async fn read_pages(address: String, runs: Vec<String>, pages: u32, until: Instant) -> Readings {
    let mut paths = vec!["/".to_owned(), "/workers".to_owned()];
    paths.extend(runs.iter().map(|run| format!("/runs/{run}")));
    let mut open = JoinSet::new();
    for number in 0..pages {
        let (address, path) = (address.clone(), paths[number as usize % paths.len()].clone());
        open.spawn(async move {
            let mut readings = Readings::default();
            while Instant::now() < until {
                let stream = tokio::time::timeout_at(until, keep_open(&address, &path, &mut readings)).await;
                if matches!(stream, Ok(Err(_))) {
                    readings.failed += 1;
                    tokio::time::sleep(BETWEEN).await;
                }
            }
            readings
        });
    }
    let mut all = Readings::default();
    for readings in open.join_all().await {
        all.times.extend(readings.times);
        all.bytes += readings.bytes;
        all.failed += readings.failed;
    }
    all
}

/// One page, for as long as its stream lasts.
async fn keep_open(address: &str, path: &str, readings: &mut Readings) -> io::Result<()> {
    let mut stream = BufReader::new(ask(address, "/api/v1/stream").await?);
    let mut line = String::new();
    while stream.read_line(&mut line).await? > 0 {
        if line == "event: changed\n" {
            let asked = Instant::now();
            let mut page = vec![];
            ask(address, path).await?.read_to_end(&mut page).await?;
            readings.times.push(asked.elapsed());
            readings.bytes += page.len() as u64;
            readings.failed += u64::from(!page.starts_with(b"HTTP/1.1 200"));
            tokio::time::sleep_until(asked + BETWEEN).await;
        }
        line.clear();
    }
    Ok(())
}

async fn ask(address: &str, path: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    Ok(stream)
}

/// For how many seconds a process has had a core.
pub(super) fn core_seconds(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in brackets, may hold blanks; user and system time are the 12th and 13th field after it.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok());
    ticks(11).zip(ticks(12)).map_or(f64::NAN, |(user, system)| (user + system) / TICKS)
}

/// What one pair of loads shows: without pages and with them.
pub(super) fn details(load: Load, without: &Tally, with: &Tally) -> Vec<(&'static str, f64)> {
    let seconds = load.time.as_secs_f64();
    let p99 = |times: &[Duration]| super::percentile(times, 0.99);
    let read = &with.readings;
    vec![
        ("acquire p99 with pages, ms", p99(&with.acquired)),
        ("complete p99 with pages, ms", p99(&with.completed)),
        ("coordinator, % of a core", 100.0 * without.core_seconds / seconds),
        ("with pages, % of a core", 100.0 * with.core_seconds / seconds),
        ("pages read", read.times.len() as f64),
        ("page p99, ms", p99(&read.times)),
        ("bytes of a page", read.bytes as f64 / read.times.len().max(1) as f64),
        ("failed pages", read.failed as f64),
    ]
}
