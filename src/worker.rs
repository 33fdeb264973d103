//! `atoll worker`: evolves islands for a coordinator.

mod farewell;

use crate::engines;
use crate::failure::Failure;
use crate::log;
use crate::protection::Credentials;
use crate::settings::{Settings, SettingsArguments};
use crate::signals::Signals;
use crate::termination::{self, TerminationArguments};
use crate::worker_metrics::Measured;
use checkers::{Database, EndgameError};
use proto::calls::WorkerCalls;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::oneshot;
use tonic::transport::Channel;
use worker::{Config, ConnectionProbe, CredentialError, Grpc, Identity, Pool, SessionEnd, Token, Trust};

/// The minimum size, in bytes, of the cache for results that were delivered and are not durable yet.
const LEAST_UNDURABLE: usize = 64 << 20;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    settings: SettingsArguments,
    #[command(flatten)]
    termination: TerminationArguments,
    /// The coordinator to work for; separate several (standbys) with commas
    #[arg(long, value_name = "URL")]
    coordinator: Option<String>,
    /// Name shown to people [default: host and process id]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Number of threads [default: all cores that this process may use]
    #[arg(long, value_name = "N")]
    threads: Option<String>,
    /// Exit if the coordinator does not respond for this long [default: never]
    #[arg(long, value_name = "TIME")]
    give_up_after: Option<String>,
    /// Address for health checks and metrics, such as 127.0.0.1:7442 [default: off]
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
    /// Memory for all work together, in MiB [default: three quarters of the cgroup's or the machine's]
    #[arg(long, value_name = "N")]
    memory_mib: Option<String>,
    /// File that defines how to start the engines of tournaments
    #[arg(long, value_name = "FILE")]
    engines: Option<String>,
    /// Folder of the endgame database for experiments that ask for more than 4 pieces
    #[arg(long, value_name = "DIR")]
    endgame: Option<String>,
    /// CA certificate of the coordinator, for https://
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<String>,
    /// Client certificate, if the coordinator requires one
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<String>,
    /// Private key of the certificate
    #[arg(long, value_name = "FILE")]
    tls_key: Option<String>,
    /// File with the token; `ATOLL_TOKEN` may hold the token itself
    #[arg(long, value_name = "FILE")]
    token_file: Option<String>,
    /// Send the token over http:// as well, where the network encrypts (a service mesh)
    #[arg(long)]
    insecure: bool,
    /// The coordinator is the process that started this worker: no other takes its place
    #[arg(long, hide = true)]
    of_parent: bool,
}

/// The keys of `worker.toml`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "it only says what a file may hold")]
struct Keys {
    coordinator: Option<String>,
    name: Option<String>,
    threads: Option<u16>,
    give_up_after: Option<String>,
    http: Option<String>,
    cache_mib: Option<u32>,
    memory_mib: Option<u32>,
    engines: Option<String>,
    endgame: Option<String>,
    tls_ca: Option<String>,
    tls_cert: Option<String>,
    tls_key: Option<String>,
    token_file: Option<String>,
    insecure: Option<bool>,
    reload_every: Option<String>,
    log: Option<String>,
    log_format: Option<String>,
}

const DEFAULTS: [(&str, &str); 17] = [
    ("coordinator", crate::remote::DEFAULT),
    ("name", ""),
    ("threads", "0"),
    ("give_up_after", "never"),
    ("http", "off"),
    ("cache_mib", "256"),
    ("memory_mib", "0"),
    ("engines", ""),
    ("endgame", ""),
    ("tls_ca", ""),
    ("tls_cert", ""),
    ("tls_key", ""),
    ("token_file", ""),
    ("insecure", "false"),
    ("reload_every", "5s"),
    ("log", "info"),
    ("log_format", "text"),
];

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    arguments.termination.apply();
    let flags = [
        ("coordinator", arguments.coordinator),
        ("name", arguments.name),
        ("threads", arguments.threads),
        ("give_up_after", arguments.give_up_after),
        ("http", arguments.http),
        ("memory_mib", arguments.memory_mib),
        ("engines", arguments.engines),
        ("endgame", arguments.endgame),
        ("tls_ca", arguments.tls_ca),
        ("tls_cert", arguments.tls_cert),
        ("tls_key", arguments.tls_key),
        ("token_file", arguments.token_file),
        ("insecure", arguments.insecure.then(|| "true".to_owned())),
    ];
    let only_print = arguments.settings.print_config;
    let settings = match Settings::read::<Keys>(&DEFAULTS, &arguments.settings, &flags) {
        Ok(settings) => settings,
        Err(failure) => {
            return match Settings::salvage::<Keys>(&DEFAULTS, &arguments.settings, &flags) {
                Some(settings) if !only_print => Err(farewell::tell(&settings, failure).await),
                _ => Err(failure),
            };
        }
    };
    if only_print {
        Prepared::of(&settings)?;
        settings.print()?;
        return Ok(ExitCode::SUCCESS);
    }
    let prepared = Prepared::of(&settings).and_then(|prepared| log::start(&settings).map(|()| prepared));
    let Prepared { mut config, channels, reload, threads } = match prepared {
        Ok(prepared) => prepared,
        Err(failure) => return Err(farewell::tell(&settings, failure).await),
    };
    if arguments.of_parent {
        // There is no other coordinator to deliver to once more.
        config.undurable_bytes = 0;
    }
    let mut signals = Signals::listen()?;
    let calls = Arc::new(Grpc::new(channels, reload.tokens.clone()));
    let measured = Arc::new(Measured::new(calls, threads));
    let serving = serve_metrics(&settings, measured.clone()).await?;
    let (replace, replacements) = mpsc::unbounded_channel();
    let calls = (measured.clone() as Arc<dyn WorkerCalls>, replacements);
    let orphaned = async {
        if arguments.of_parent {
            parent_has_ended().await;
        } else {
            std::future::pending::<()>().await;
        }
    };
    let end = tokio::select! {
        () = orphaned => {
            let reason = "the command that started this worker has ended";
            return Err(Failure::Other(reason.to_owned()));
        }
        end = worker::run_replacing(config, calls, Pool::new(threads)?, signals.asked()) => end?,
        () = reload.run(&measured, &replace) => unreachable!("it reads until the worker ends"),
        () = serving => unreachable!("it serves until the worker ends"),
    };
    match end {
        SessionEnd::Done => {
            termination::write("all runs are finished");
            Ok(ExitCode::SUCCESS)
        }
        SessionEnd::Failed(reason) => Err(Failure::RunFailed(reason)),
        SessionEnd::Cancelled(reason) => Err(Failure::Cancelled(reason)),
        SessionEnd::Drained => Ok(signals.exit()),
    }
}

/// Waits until the process that started this one has ended: it writes nothing to stdin, and closes it with its end.
async fn parent_has_ended() {
    let (ended, end) = oneshot::channel::<()>();
    // A thread that is not waited for: this process may end first.
    std::thread::spawn(move || {
        let read = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        drop((read, ended));
    });
    let _ = end.await;
}

/// The parts of a worker, by its settings.
struct Prepared {
    config: Config,
    channels: Vec<Channel>,
    reload: Reload,
    threads: usize,
}

impl Prepared {
    fn of(settings: &Settings) -> Result<Self, Failure> {
        let urls = urls(settings)?;
        let credentials = Credentials::of(settings)?;
        let trust = credentials.trust()?;
        let wrong = |error: CredentialError| settings.bad("coordinator", &error.to_string());
        let channels = channels(&urls, &trust).map_err(wrong)?;
        let look = ConnectionProbe::new(&urls[0], &trust).map_err(wrong)?;
        let config = config(settings, look)?;
        let tokens = tokens(&credentials, &urls)?;
        let reload = Reload { every: settings.time("reload_every")?, credentials, urls, trust, tokens };
        Ok(Self { config, channels, reload, threads: threads(settings)? })
    }
}

/// The addresses of all coordinators.
fn urls(settings: &Settings) -> Result<Vec<String>, Failure> {
    Ok(settings.text("coordinator")?.split(',').map(|url| url.trim().to_owned()).collect())
}

/// Serves health and metrics if `http` is set. They name no run and hold no secret.
async fn serve_metrics(
    settings: &Settings,
    measured: Arc<Measured>,
) -> Result<impl Future<Output = ()> + use<>, Failure> {
    let text = settings.text("http")?;
    let listener = if text == "off" {
        None
    } else {
        let listener = TcpListener::bind(&text).await;
        Some(listener.map_err(|error| Failure::Other(format!("cannot listen on {text} (http): {error}")))?)
    };
    if let Some(listener) = &listener {
        let address = listener.local_addr().map_err(|error| Failure::Other(error.to_string()))?;
        log::say("health and metrics at", &format!("http://{address}"));
    }
    Ok(async move {
        match listener {
            Some(listener) => coordinator::serve_metrics(listener, Arc::new(move || measured.page())).await,
            None => std::future::pending().await,
        }
    })
}

/// Connections to all coordinators, each made when it is first needed.
fn channels(urls: &[String], trust: &Trust) -> Result<Vec<Channel>, CredentialError> {
    urls.iter().map(|url| Ok(worker::connect_lazy(&worker::endpoint(url, trust)?))).collect()
}

/// The tokens, if they may be sent to all of them.
fn tokens(credentials: &Credentials, urls: &[String]) -> Result<Vec<Token>, Failure> {
    let mut tokens = vec![];
    for url in urls {
        tokens = credentials.tokens(url)?;
    }
    Ok(tokens)
}

/// Tokens and certificates of a worker, reloaded while it works.
struct Reload {
    every: Duration,
    credentials: Credentials,
    urls: Vec<String>,
    trust: Trust,
    tokens: Vec<Token>,
}

impl Reload {
    async fn run(mut self, measured: &Measured, replace: &UnboundedSender<Arc<dyn WorkerCalls>>) {
        if self.every.is_zero() {
            return std::future::pending().await;
        }
        let mut known = String::new();
        loop {
            tokio::time::sleep(self.every).await;
            let reason = match self.read() {
                Ok(None) => String::new(),
                Ok(Some(calls)) => {
                    // The send fails only after the worker has ended.
                    let _ = replace.send(Arc::new(measured.over(Arc::new(calls))));
                    String::new()
                }
                Err(reason) => reason,
            };
            if !reason.is_empty() && reason != known {
                tracing::error!(
                    reason,
                    "new token or certificates cannot be used; the old ones stay in force"
                );
            }
            known = reason;
        }
    }

    /// New calls with the current contents of the files, if these have changed.
    fn read(&mut self) -> Result<Option<Grpc>, String> {
        let trust = self.credentials.trust().map_err(|error| error.to_string())?;
        let tokens = tokens(&self.credentials, &self.urls).map_err(|error| error.to_string())?;
        if (&trust, &tokens) == (&self.trust, &self.tokens) {
            return Ok(None);
        }
        let channels = channels(&self.urls, &trust).map_err(|error| error.to_string())?;
        let calls = Grpc::new(channels, tokens.clone());
        (self.trust, self.tokens) = (trust, tokens);
        Ok(Some(calls))
    }
}

fn threads(settings: &Settings) -> Result<usize, Failure> {
    match settings.parsed("threads", "a number of threads, or 0 for all cores")? {
        0 => Ok(worker::available_threads()),
        threads if threads <= 1024 => Ok(threads),
        threads => Err(settings.bad("threads", &format!("expected at most 1024, found `{threads}`"))),
    }
}

fn config(settings: &Settings, look: ConnectionProbe) -> Result<Config, Failure> {
    let given = settings.text("name")?;
    let name = if given.is_empty() { format!("{}-{}", host(), std::process::id()) } else { given };
    if name.len() > 100 {
        return Err(settings.bad("name", "expected at most 100 bytes"));
    }
    let give_up_after = settings.time_or_never("give_up_after")?;
    let id = format!("{:016x}{:016x}", rand::random::<u64>(), rand::random::<u64>());
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let identity = Identity { id, name, version, give_up_after, seed: rand::random(), look: Some(look) };
    let memory_bytes = memory(settings)?.saturating_sub(endgames(settings)?);
    let mebibytes: u64 = settings.parsed("cache_mib", "a number of mebibytes")?;
    // The cache must not crowd out the work.
    let cache_bytes = mebibytes.saturating_mul(1 << 20).min(memory_bytes / 4) as usize;
    let undurable_bytes = cache_bytes.max(LEAST_UNDURABLE);
    let engines = settings.text("engines")?;
    let engines = engines::read((!engines.is_empty()).then(|| Path::new(&engines)));
    let engines = engines.map_err(|failure| settings.bad("engines", &failure.to_string()))?;
    Ok(Config { identity, cache_bytes, undurable_bytes, memory_bytes, engines })
}

/// Opens the endgame database of the named folder, the largest of those that are not computed in seconds; returns the memory
/// that it takes beside all work.
fn endgames(settings: &Settings) -> Result<u64, Failure> {
    let folder = settings.text("endgame")?;
    if folder.is_empty() {
        return Ok(0);
    }
    Database::look_in(Path::new(&folder));
    if !Path::new(&folder).is_dir() {
        return Err(settings.bad("endgame", &format!("expected a folder, found none at {folder}")));
    }
    let opened = match Database::shared(Database::MOST_PIECES) {
        Err(EndgameError::Missing { .. }) => {
            Database::open(Path::new(&folder), Database::COMPUTED).map(Arc::new)
        }
        opened => opened,
    };
    match opened {
        Ok(database) => Ok(database.bytes()),
        // It may hold smaller ones for other commands.
        Err(EndgameError::Missing { .. }) => Ok(0),
        Err(error) => Err(settings.bad("endgame", &error.to_string())),
    }
}

/// Three quarters of the available memory: a process needs memory beside its work.
pub(crate) fn memory_for_work() -> u64 {
    worker::available_memory().map_or(u64::MAX, |bytes| bytes / 4 * 3)
}

/// The memory for all work together.
fn memory(settings: &Settings) -> Result<u64, Failure> {
    match settings.parsed("memory_mib", "a number of mebibytes, or 0 for what there is")? {
        0 => Ok(memory_for_work()),
        mebibytes => Ok(u64::saturating_mul(mebibytes, 1 << 20)),
    }
}

fn host() -> String {
    let name = rustix::system::uname();
    name.nodename().to_str().map_or_else(|_| "worker".to_owned(), |name| name.chars().take(60).collect())
}
