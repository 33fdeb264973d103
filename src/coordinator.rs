//! `atoll coordinator`: runs are kept here, and handed out to workers.

use crate::clock;
use crate::failure::Failure;
use crate::settings::{self, Settings, SettingsArguments};
use crate::signals::Signals;
use coordinator::lease::Terms;
use coordinator::{Ending, Settings as Office};
use schemars::JsonSchema;
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use store::{Location, Nonce, Store};
use tokio::net::TcpListener;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    settings: SettingsArguments,
    /// The address for workers and operators; port 0 takes any that is free
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// The address for health checks and metrics, or `off`
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
    /// The folder that holds the runs, or `s3://BUCKET/PREFIX`
    #[arg(long, value_name = "PLACE")]
    store: Option<String>,
    /// How long a lease lasts without a renewal
    #[arg(long, value_name = "TIME")]
    lease: Option<String>,
    /// Listen on addresses that others can reach, without any protection
    #[arg(long)]
    insecure: bool,
    /// End once all runs have ended, and tell the workers to leave
    #[arg(long)]
    exit_when_done: bool,
}

/// The keys of `coordinator.toml`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "it only says what a file may hold")]
struct Keys {
    listen: Option<String>,
    http: Option<String>,
    store: Option<String>,
    insecure: Option<bool>,
    lease: Option<String>,
    stall: Option<String>,
    hedge_after: Option<String>,
    exit_when_done: Option<bool>,
    max_runs: Option<u32>,
    log: Option<String>,
    log_format: Option<String>,
}

const DEFAULTS: [(&str, &str); 11] = [
    ("listen", "127.0.0.1:7440"),
    ("http", "127.0.0.1:7441"),
    ("store", "atoll-store"),
    ("insecure", "false"),
    ("lease", "15s"),
    ("stall", "10m"),
    ("hedge_after", "10s"),
    ("exit_when_done", "false"),
    ("max_runs", "1000"),
    ("log", "info"),
    ("log_format", "text"),
];

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let yes = |flag: bool| flag.then(|| "true".to_owned());
    let flags = [
        ("listen", arguments.listen),
        ("http", arguments.http),
        ("store", arguments.store),
        ("lease", arguments.lease),
        ("insecure", yes(arguments.insecure)),
        ("exit_when_done", yes(arguments.exit_when_done)),
    ];
    let settings = Settings::read::<Keys>(&DEFAULTS, &arguments.settings, &flags)?;
    let office = office(&settings)?;
    if arguments.settings.print_config {
        settings.print()?;
        return Ok(ExitCode::SUCCESS);
    }
    settings::log(&settings)?;
    serve(&settings, office).await
}

fn office(settings: &Settings) -> Result<Office, Failure> {
    let terms = Terms {
        lease: settings.time("lease")?,
        stall: settings.time("stall")?,
        hedge_after: settings.time("hedge_after")?,
        ..Terms::default()
    };
    if terms.lease.as_millis() < 100 {
        return Err(settings.bad("lease", "expected at least 100ms"));
    }
    Ok(Office {
        terms,
        nonce: Nonce(rand::random()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        exit_when_done: settings.parsed("exit_when_done", "`true` or `false`")?,
        max_runs: settings.parsed("max_runs", "a number of runs")?,
    })
}

async fn serve(settings: &Settings, office: Office) -> Result<ExitCode, Failure> {
    let mut signals = Signals::listen()?;
    let insecure = settings.parsed("insecure", "`true` or `false`")?;
    let listener = listen(settings, "listen", insecure).await?;
    let http = match settings.text("http")?.as_str() {
        "off" => None,
        _ => Some(listen(settings, "http", insecure).await?),
    };
    let store = Store::create_at(&Location::parse(settings.text("store")?.as_ref())?).await?;
    let address = |listener: &TcpListener| listener.local_addr().map_err(|e| Failure::Other(e.to_string()));
    eprintln!("coordinator at http://{}", address(&listener)?);
    if let Some(http) = &http {
        eprintln!("health and metrics at http://{}", address(http)?);
    }
    let incoming = coordinator::connections(listener);
    let ending = coordinator::run(incoming, http, store, office, clock::now, signals.asked()).await?;
    Ok(match ending {
        Ending::Done => ExitCode::SUCCESS,
        Ending::Failed(reason) => return Err(Failure::Other(reason)),
        Ending::Succeeded => {
            let message = "another coordinator has taken this store over and goes on with its runs; this one has \
                           stopped, and nothing is lost";
            return Err(Failure::Other(message.to_owned()));
        }
        Ending::Stopped => ExitCode::from(signals.exit_code()),
    })
}

/// A listener; on addresses that others can reach only if that was asked for.
async fn listen(settings: &Settings, key: &str, insecure: bool) -> Result<TcpListener, Failure> {
    let text = settings.text(key)?;
    let addresses: Vec<SocketAddr> = match text.to_socket_addrs() {
        Ok(addresses) => addresses.collect(),
        Err(error) => return Err(settings.bad(key, &format!("expected HOST:PORT, found `{text}`: {error}"))),
    };
    if let Some(open) = addresses.iter().map(SocketAddr::ip).find(|ip| !IpAddr::is_loopback(ip) && !insecure)
    {
        let message = format!(
            "expected a loopback address, found `{open}`: others could reach it, and there is no protection; \
             set `insecure = true` (or --insecure) if only those you trust can"
        );
        return Err(settings.bad(key, &message));
    }
    let listener = TcpListener::bind(&addresses[..]).await;
    listener.map_err(|error| Failure::Other(format!("cannot listen on {text} ({key}): {error}")))
}
