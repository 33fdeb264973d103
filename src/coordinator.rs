//! `atoll coordinator`: runs are kept here, and handed out to workers.

use crate::clock;
use crate::failure::{Exit, Failure};
use crate::log;
use crate::notify;
use crate::protection;
use crate::report::{Games, exhibit};
use crate::results;
use crate::settings::{Settings, SettingsArguments};
use crate::signals::Signals;
use crate::store_argument::{self, StoreArgument};
use crate::termination::{self, TerminationArguments};
use crate::tournament;
use coordinator::dashboard::DashboardSettings;
use coordinator::leases::Terms;
use coordinator::{
    AuditTerms, ConnectionLimits, CoordinatorSettings, Finish, First, Notify, OpenStore, Permissions, Reload,
    ServeEnding, Traces,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use schemars::JsonSchema;
use serde::Deserialize;
use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use store::promises::Trial;
use store::{Batch, LONGEST_BATCH, Location, Nonce, Store};
use tokio::net::TcpListener;
use tokio::runtime::Handle;

/// The share of results that is audited where workers need tokens.
const AUDITED: f64 = 0.02;
/// File descriptors for everything but workers and operators: the store, probes, and the process itself.
const OTHER_DESCRIPTORS: usize = 1024;

#[derive(clap::Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Arguments {
    #[command(flatten)]
    settings: SettingsArguments,
    #[command(flatten)]
    termination: TerminationArguments,
    /// Address for workers and operators; port 0 selects a free port [default: 127.0.0.1:7440]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Address for the dashboard, health checks and metrics, or `off` [default: 127.0.0.1:7441]
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
    /// Folder that holds the runs, or `s3://BUCKET/PREFIX` [default: atoll-store]
    #[arg(long, value_name = "PLACE")]
    store: Option<String>,
    /// Time after which a lease expires unless it is renewed [default: 15s]
    #[arg(long, value_name = "TIME")]
    lease: Option<String>,
    /// Certificate of the coordinator, and its intermediate certificates
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<String>,
    /// Private key of the certificate
    #[arg(long, value_name = "FILE")]
    tls_key: Option<String>,
    /// Certificate authority of workers and operators, which must then present a certificate
    #[arg(long, value_name = "FILE")]
    tls_client_ca: Option<String>,
    /// File with the tokens of workers; also in `ATOLL_WORKER_TOKENS`
    #[arg(long, value_name = "FILE")]
    worker_token_file: Option<String>,
    /// File with the tokens of operators; also in `ATOLL_OPERATOR_TOKENS`
    #[arg(long, value_name = "FILE")]
    operator_token_file: Option<String>,
    /// File with the tokens that may only read metrics; also in `ATOLL_METRICS_TOKENS`
    #[arg(long, value_name = "FILE")]
    metrics_token_file: Option<String>,
    /// File with the tokens that may only view the dashboard; also in `ATOLL_VIEWER_TOKENS`
    #[arg(long, value_name = "FILE")]
    viewer_token_file: Option<String>,
    /// Names by which browsers reach the dashboard, separated by commas; not needed for addresses and `localhost`
    #[arg(long, value_name = "NAMES")]
    http_hosts: Option<String>,
    /// Command to run (by `sh`) when a run has ended, with the run as JSON on its stdin
    #[arg(long, value_name = "COMMAND")]
    notify_command: Option<String>,
    /// Listen without protection on addresses that other machines can reach
    #[arg(long)]
    insecure: bool,
    /// Exit once all runs have ended, and stop the workers
    #[arg(long)]
    exit_when_done: bool,
    /// Experiment, sweep, study or tournament to start or resume at once
    #[arg(long, value_name = "FILE")]
    run: Option<String>,
    /// Address at which other coordinators reach this one [default: that of --listen]
    #[arg(long, value_name = "HOST:PORT")]
    advertise: Option<String>,
    /// Stand by: take over the store only when the active coordinator is silent
    #[arg(long)]
    standby: bool,
    /// With --standby: take over after the active coordinator has not responded for this long [default: 5s]
    #[arg(long, value_name = "TIME")]
    takeover_after: Option<String>,
    /// Continue the run of `--run` even if it has failed or was cancelled
    #[arg(long)]
    revive: bool,
    /// With --exit-when-done: write the results of a finished run into this folder
    #[arg(long, value_name = "DIR")]
    export: Option<String>,
    /// With --exit-when-done: exit (code 6) when no worker has been connected for this long [default: never]
    #[arg(long, value_name = "TIME")]
    give_up_after: Option<String>,
    /// Keep responding for this long after all runs have ended, so that late workers are notified [default: 0s]
    #[arg(long, value_name = "TIME")]
    linger: Option<String>,
    /// With --exit-when-done: after --linger, stay until one worker was notified, at most for this long [default: 0s]
    #[arg(long, value_name = "TIME")]
    await_worker: Option<String>,
}

/// A share of the results, or `auto`.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "it is only read to be checked")]
enum Share {
    Number(f64),
    Text(String),
}

/// The keys of `coordinator.toml`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "it only says what a file may hold")]
struct Keys {
    listen: Option<String>,
    advertise: Option<String>,
    http: Option<String>,
    store: Option<String>,
    standby: Option<bool>,
    takeover_after: Option<String>,
    insecure: Option<bool>,
    lease: Option<String>,
    stall: Option<String>,
    hedge_after: Option<String>,
    exit_when_done: Option<bool>,
    max_runs: Option<u32>,
    audit: Option<Share>,
    run: Option<String>,
    revive: Option<bool>,
    batch_id: Option<String>,
    give_up_after: Option<String>,
    export: Option<String>,
    linger: Option<String>,
    await_worker: Option<String>,
    tls_cert: Option<String>,
    tls_key: Option<String>,
    tls_client_ca: Option<String>,
    worker_token_file: Option<String>,
    operator_token_file: Option<String>,
    metrics_token_file: Option<String>,
    viewer_token_file: Option<String>,
    http_hosts: Option<String>,
    notify_command: Option<String>,
    otlp: Option<String>,
    otlp_ca: Option<String>,
    otlp_share: Option<f64>,
    reload_every: Option<String>,
    max_connections: Option<u32>,
    max_connections_per_peer: Option<u32>,
    max_requests_per_peer: Option<u32>,
    log: Option<String>,
    log_format: Option<String>,
}

const DEFAULTS: [(&str, &str); 38] = [
    ("listen", "127.0.0.1:7440"),
    ("advertise", ""),
    ("http", "127.0.0.1:7441"),
    ("store", "atoll-store"),
    ("standby", "false"),
    ("takeover_after", "5s"),
    ("insecure", "false"),
    ("lease", "15s"),
    ("stall", "10m"),
    ("hedge_after", "10s"),
    ("exit_when_done", "false"),
    ("max_runs", "1000"),
    ("audit", "auto"),
    ("run", ""),
    ("revive", "false"),
    ("batch_id", ""),
    ("give_up_after", "never"),
    ("export", ""),
    ("linger", "0s"),
    ("await_worker", "0s"),
    ("tls_cert", ""),
    ("tls_key", ""),
    ("tls_client_ca", ""),
    ("worker_token_file", ""),
    ("operator_token_file", ""),
    ("metrics_token_file", ""),
    ("viewer_token_file", ""),
    ("http_hosts", ""),
    ("notify_command", ""),
    ("otlp", ""),
    ("otlp_ca", ""),
    ("otlp_share", "1"),
    ("reload_every", "5s"),
    ("max_connections", "12000"),
    ("max_connections_per_peer", "4000"),
    ("max_requests_per_peer", "20000"),
    ("log", "info"),
    ("log_format", "text"),
];

/// The settings of a coordinator.
pub(crate) fn settings(arguments: Arguments) -> Result<Settings, Failure> {
    let (shared, flags) = flags(arguments);
    Settings::read::<Keys>(&DEFAULTS, &shared, &flags)
}

/// Where settings are, and those that are flags.
fn flags(arguments: Arguments) -> (SettingsArguments, Vec<(&'static str, Option<String>)>) {
    let yes = |flag: bool| flag.then(|| "true".to_owned());
    let flags = vec![
        ("listen", arguments.listen),
        ("advertise", arguments.advertise),
        ("http", arguments.http),
        ("standby", yes(arguments.standby)),
        ("takeover_after", arguments.takeover_after),
        ("store", arguments.store),
        ("lease", arguments.lease),
        ("insecure", yes(arguments.insecure)),
        ("exit_when_done", yes(arguments.exit_when_done)),
        ("run", arguments.run),
        ("revive", yes(arguments.revive)),
        ("give_up_after", arguments.give_up_after),
        ("export", arguments.export),
        ("linger", arguments.linger),
        ("await_worker", arguments.await_worker),
        ("tls_cert", arguments.tls_cert),
        ("tls_key", arguments.tls_key),
        ("tls_client_ca", arguments.tls_client_ca),
        ("worker_token_file", arguments.worker_token_file),
        ("operator_token_file", arguments.operator_token_file),
        ("metrics_token_file", arguments.metrics_token_file),
        ("viewer_token_file", arguments.viewer_token_file),
        ("http_hosts", arguments.http_hosts),
        ("notify_command", arguments.notify_command),
    ];
    (arguments.settings, flags)
}

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    arguments.termination.clone().apply();
    let (shared, flags) = flags(arguments);
    let settings = match Settings::read::<Keys>(&DEFAULTS, &shared, &flags) {
        Ok(settings) => settings,
        Err(failure) => {
            let salvaged = Settings::salvage::<Keys>(&DEFAULTS, &shared, &flags);
            let Some(settings) = salvaged.filter(|_| !shared.print_config) else { return Err(failure) };
            let _ = log::start(&settings);
            return Err(refuse(&settings, failure).await);
        }
    };
    if shared.print_config {
        coordinator_settings(&settings)?;
        limits(&settings)?;
        first(&settings)?;
        settings.print()?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Err(failure) = log::start(&settings) {
        return Err(refuse(&settings, failure).await);
    }
    match coordinator_settings(&settings).and_then(|checked| Ok((checked, limits(&settings)?))) {
        Ok((checked, limits)) => serve(&settings, checked, limits).await,
        Err(failure) => Err(refuse(&settings, failure).await),
    }
}

/// Informs the workers of a batch job that a setting is invalid. Without certificates that can be used it does so in plain
/// text: a worker that expects TLS ends because of that. With a file that is no TOML there is no address to do it at, and
/// workers wait for `give_up_after`.
async fn refuse(settings: &Settings, failure: Failure) -> Failure {
    let prepare = || -> Result<CoordinatorSettings, Failure> {
        Ok(CoordinatorSettings {
            exit_when_done: settings.parsed("exit_when_done", "`true` or `false`")?,
            linger: settings.time("linger")?,
            // Without certificates, workers that expect them learn nothing from a call.
            await_worker: match protection::tls(settings) {
                Ok(_) => settings.time("await_worker")?,
                Err(_) => Duration::ZERO,
            },
            tls: protection::tls(settings).unwrap_or_default(),
            permissions: protection::permissions(settings).unwrap_or_default(),
            ..CoordinatorSettings::new(Nonce(rand::random()), env!("CARGO_PKG_VERSION"))
        })
    };
    let Ok(checked) = prepare() else { return failure };
    if !checked.exit_when_done || failure.exit() != Exit::Misconfigured {
        return failure;
    }
    // Nothing is served but the reason, so that no address needs protection.
    let bind = async |key: &str| TcpListener::bind(settings.text(key).ok()?).await.ok();
    let Some(listener) = bind("listen").await else { return failure };
    let http = bind("http").await;
    let _ = announce(&listener, http.as_ref(), &checked);
    let _ = refuse_all(listener, ConnectionLimits::default(), http, checked, &failure).await;
    failure
}

/// Rejects all calls for a while, with the reason why this coordinator cannot start.
async fn refuse_all(
    listener: TcpListener,
    limits: ConnectionLimits,
    http: Option<TcpListener>,
    checked: CoordinatorSettings,
    failure: &Failure,
) -> Result<(), Failure> {
    tracing::error!(reason = %failure, "cannot start; workers are informed during `linger`");
    let mut signals = Signals::listen()?;
    let (limits, asked) = (leave_descriptors(limits), Box::pin(signals.asked()));
    coordinator::refuse_listener(listener, limits, http, checked, failure.to_string(), asked).await?;
    Ok(())
}

fn coordinator_settings(settings: &Settings) -> Result<CoordinatorSettings, Failure> {
    let terms = Terms {
        lease: settings.time("lease")?,
        stall: settings.time("stall")?,
        hedge_after: settings.time("hedge_after")?,
        ..Terms::default()
    };
    if terms.lease.as_millis() < 100 {
        return Err(settings.bad("lease", "expected at least 100ms"));
    }
    let permissions = protection::permissions(settings)?;
    Ok(CoordinatorSettings {
        terms,
        nonce: Nonce(rand::random()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        exit_when_done: settings.parsed("exit_when_done", "`true` or `false`")?,
        max_runs: settings.parsed("max_runs", "a number of runs")?,
        only_submitted: false,
        first: None,
        revive: settings.parsed("revive", "`true` or `false`")?,
        batch: batch(settings)?,
        give_up_after: settings.time_or_never("give_up_after")?,
        address: settings.text("advertise")?,
        takeover_after: settings
            .parsed::<bool>("standby", "`true` or `false`")?
            .then(|| settings.time("takeover_after"))
            .transpose()?,
        trial: Some(Trial::SHORT),
        linger: settings.time("linger")?,
        await_worker: settings.time("await_worker")?,
        audit: audit(settings, &permissions)?,
        permissions,
        tls: protection::tls(settings)?,
        reload: reload(settings)?,
        finish: finish(settings)?,
        traces: traces(settings)?,
        inline: false,
        dashboard: DashboardSettings {
            hosts: hosts(settings)?,
            exhibit: Some(exhibit(Games::Omitted)),
            notify: notify(settings)?,
        },
    })
}

/// The id of the batch that this coordinator belongs to.
fn batch(settings: &Settings) -> Result<String, Failure> {
    let id = settings.text("batch_id")?;
    if !Batch::is_id(&id) {
        let message = format!("expected at most {LONGEST_BATCH} letters, digits and `-`, found `{id}`");
        return Err(settings.bad("batch_id", &message));
    }
    Ok(id)
}

/// What is run when a run has ended.
fn notify(settings: &Settings) -> Result<Option<Notify>, Failure> {
    let command = settings.text("notify_command")?;
    if !command.is_empty() && !notify::has_shell() {
        let message = "expected a system with `sh`, which runs the command, found none in PATH: the images of Atoll have no \
                       shell";
        return Err(settings.bad("notify_command", message));
    }
    Ok(notify::by_command(command))
}

/// The names by which browsers reach the dashboard.
fn hosts(settings: &Settings) -> Result<Vec<String>, Failure> {
    let text = settings.text("http_hosts")?;
    let names: Vec<String> =
        text.split([',', ' ']).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let is_bad = |entry: &&String| match entry.strip_prefix("https://") {
        // The origin of a proxy, as browsers name it.
        Some(origin) => origin.is_empty() || origin.contains(['/', '*']),
        None => entry.contains(['/', ':', '*']),
    };
    if let Some(bad) = names.iter().find(is_bad) {
        let message = format!(
            "expected host names without ports, such as `atoll.example`, or the address of a proxy that encrypts, such as \
             `https://atoll.example`, found `{bad}`"
        );
        return Err(settings.bad("http_hosts", &message));
    }
    Ok(names)
}

/// Where traces go, if anywhere.
fn traces(settings: &Settings) -> Result<Option<Traces>, Failure> {
    let url = settings.text("otlp")?;
    if url.is_empty() {
        return Ok(None);
    }
    let share = settings.parsed("otlp_share", "a share from 0 to 1")?;
    let traces = Traces::new(&url, protection::file(settings, "otlp_ca")?, share);
    traces.map(Some).map_err(|error| settings.bad("otlp", &error.to_string()))
}

/// Tokens and certificates are read again from the same files.
fn reload(settings: &Settings) -> Result<Option<Reload>, Failure> {
    let every = settings.time("reload_every")?;
    let settings = settings.clone();
    let read = move || {
        let read = || Ok::<_, Failure>((protection::permissions(&settings)?, protection::tls(&settings)?));
        read().map_err(|failure| failure.to_string())
    };
    Ok((!every.is_zero()).then(|| Reload { every, read: Arc::new(read) }))
}

async fn serve(
    settings: &Settings,
    mut checked: CoordinatorSettings,
    limits: ConnectionLimits,
) -> Result<ExitCode, Failure> {
    let mut signals = Signals::listen()?;
    let listener = listen(settings, "listen", &checked).await?;
    let http = match settings.text("http")?.as_str() {
        "off" => None,
        _ => Some(listen(settings, "http", &checked).await?),
    };
    if checked.address.is_empty() {
        let own = address(&listener)?;
        if !own.ip().is_unspecified() {
            checked.address = own.to_string();
        } else if checked.takeover_after.is_some() {
            let message = "expected HOST:PORT where the other coordinators reach this one, found none";
            return Err(settings.bad("advertise", message));
        }
    }
    announce(&listener, http.as_ref(), &checked)?;
    let prepared = first(settings).and_then(|first| Ok((first, store(settings)?)));
    let store = match prepared {
        Ok((first, store)) => {
            checked.first = first;
            store
        }
        Err(failure) => {
            if checked.exit_when_done && failure.exit() == Exit::Misconfigured {
                refuse_all(listener, limits, http, checked, &failure).await?;
            }
            return Err(failure);
        }
    };
    let asked = Box::pin(signals.asked());
    let limits = leave_descriptors(limits);
    let ending =
        coordinator::serve_listener(listener, limits, http, store, checked, clock::now, asked).await?;
    match ending {
        ServeEnding::Done => {
            termination::write("all runs are finished");
            Ok(ExitCode::SUCCESS)
        }
        ServeEnding::Failed(reason) => Err(Failure::RunFailed(reason)),
        ServeEnding::Cancelled(reason) => Err(Failure::Cancelled(reason)),
        ServeEnding::Abandoned(limit) => Err(Failure::Abandoned(limit)),
        ServeEnding::Refused(reason) => Err(Failure::Config(reason)),
        ServeEnding::Succeeded => Err(Failure::Succeeded),
        ServeEnding::Stopped => Ok(signals.exit()),
    }
}

fn address(listener: &TcpListener) -> Result<SocketAddr, Failure> {
    listener.local_addr().map_err(|error| Failure::Other(error.to_string()))
}

/// Says where it is.
fn announce(
    listener: &TcpListener,
    http: Option<&TcpListener>,
    checked: &CoordinatorSettings,
) -> Result<(), Failure> {
    let scheme = if checked.tls.is_some() { "https" } else { "http" };
    log::say("coordinator at", &format!("{scheme}://{}", address(listener)?));
    if let Some(http) = http {
        log::say("dashboard, health and metrics at", &format!("{scheme}://{}", address(http)?));
    }
    Ok(())
}

/// Writes the results of what it began with, if that is asked for.
fn finish(settings: &Settings) -> Result<Option<Finish>, Failure> {
    let (folder, file) = (settings.text("export")?, settings.text("run")?);
    if folder.is_empty() || file.is_empty() {
        return Ok(None);
    }
    let place = StoreArgument::at(settings.text("store")?.into());
    let export = move |store: Store, run: String| {
        tracing::info!(folder, "exporting the results");
        let writing = results::write(folder.as_ref(), &store, &place, &run);
        // The command line was right, and so was the run: a restart may succeed.
        let written = Handle::current().block_on(writing);
        written.map_err(|failure| format!("the results cannot be exported: {failure}"))
    };
    Ok(Some(Finish(Arc::new(export))))
}

/// How the store is opened, and created if it is missing.
fn store(settings: &Settings) -> Result<OpenStore, Failure> {
    let location = Location::parse(settings.text("store")?.as_ref())?;
    Ok(Arc::new(move || {
        let location = location.clone();
        Box::pin(async move { store_argument::create(&location).await })
    }))
}

/// The share that is recomputed: 2 percent by default where workers need tokens.
fn audit(settings: &Settings, permissions: &Permissions) -> Result<AuditTerms, Failure> {
    let share = match settings.text("audit")?.as_str() {
        "auto" => automatic_share(permissions),
        _ => settings.parsed("audit", "`auto`, or a share from 0 to 1")?,
    };
    if !(0.0..=1.0).contains(&share) {
        return Err(settings.bad("audit", "expected `auto`, or a share from 0 to 1"));
    }
    Ok(AuditTerms { share, secret: rand::random() })
}

fn automatic_share(permissions: &Permissions) -> f64 {
    if permissions.wants_tokens() { AUDITED } else { 0.0 }
}

/// What to begin with.
fn first(settings: &Settings) -> Result<Option<First>, Failure> {
    let file = settings.text("run")?;
    if file.is_empty() {
        return Ok(None);
    }
    experiment::load(file.as_ref(), None)?;
    let text = experiment::document::read_limited(file.as_ref()).map_err(experiment::LoadError::from)?;
    let (text, players) = tournament::text_with_player_files(file.as_ref(), text)?;
    Ok(Some(First { file, text, players }))
}

fn limits(settings: &Settings) -> Result<ConnectionLimits, Failure> {
    let at_least_one = |key, expected| match settings.parsed(key, expected)? {
        0 => Err(settings.bad(key, &format!("expected {expected} of at least 1, found `0`"))),
        number => Ok(number),
    };
    at_least_one("max_runs", "a number of runs")?;
    Ok(ConnectionLimits {
        connections: at_least_one("max_connections", "a number of connections")?,
        of_one_peer: at_least_one("max_connections_per_peer", "a number of connections")?,
    })
}

/// Leaves file descriptors for the store, however many connections there are. As many as the system allows are asked for.
fn leave_descriptors(limits: ConnectionLimits) -> ConnectionLimits {
    let allowed = getrlimit(Resource::Nofile);
    let wanted = (limits.connections + OTHER_DESCRIPTORS) as u64;
    let most = allowed.maximum.map_or(wanted, |most| most.min(wanted));
    let raised = Rlimit { current: allowed.current.map(|now| now.max(most)), maximum: allowed.maximum };
    let current = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => raised.current,
        Err(_) => allowed.current,
    };
    let connections = match current.map(|all| (all as usize).saturating_sub(OTHER_DESCRIPTORS).max(1)) {
        Some(left) if left < limits.connections => {
            tracing::warn!(
                connections = left,
                "fewer than max_connections: the system allows no more open files"
            );
            left
        }
        _ => limits.connections,
    };
    ConnectionLimits { connections, ..limits }
}

/// A listener; on addresses that others can reach only if they are protected, or if that was asked for.
async fn listen(
    settings: &Settings,
    key: &str,
    checked: &CoordinatorSettings,
) -> Result<TcpListener, Failure> {
    let text = settings.text(key)?;
    let addresses: Vec<SocketAddr> = match text.to_socket_addrs() {
        Ok(addresses) => addresses.collect(),
        Err(error) => return Err(settings.bad(key, &format!("expected HOST:PORT, found `{text}`: {error}"))),
    };
    protection::check_address(settings, key, &addresses, (&checked.permissions, checked.tls.as_ref()))?;
    let listener = TcpListener::bind(&addresses[..]).await;
    listener.map_err(|error| Failure::Other(format!("cannot listen on {text} ({key}): {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use coordinator::Tokens;

    #[test]
    fn two_percent_are_audited_where_workers_need_tokens_and_nothing_elsewhere() {
        assert_eq!(automatic_share(&Permissions::default()).to_bits(), 0.0_f64.to_bits());
        let workers = Tokens::parse("0123456789abcdef0123456789abcdef").unwrap();
        let share = automatic_share(&Permissions { workers, ..Permissions::default() });
        assert_eq!(share.to_bits(), 0.02_f64.to_bits());
    }
}
