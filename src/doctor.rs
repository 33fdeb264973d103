//! `atoll doctor`: whether a coordinator with these settings can run here, and what to do if not.

use crate::coordinator::{self as command, Arguments as CoordinatorArguments};
use crate::failure::Failure;
use crate::protection;
use crate::settings::Settings;
use crate::terminal::{message, out};
use coordinator::Tls;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde::Serialize;
use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use store::promises::{self, Trial, Tried};
use store::{Location, Nonce, Store};
use tokio::net::TcpListener;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Less room than this on the disk ends a run soon.
const LITTLE: u64 = 100 << 20;
/// Warn below this much free space.
const SOME: u64 = 1 << 30;
/// A clock that is further off than this has its requests refused by S3.
const FAR_OFF: f64 = 300.0;
/// A clock that is further off than this is worth a word.
const OFF: f64 = 5.0;

#[derive(clap::Args)]
#[group(skip)]
pub(crate) struct Arguments {
    #[command(flatten)]
    coordinator: CoordinatorArguments,
    /// CA certificate of the workers, to check whether they would trust this coordinator
    #[arg(long, value_name = "FILE", env = "ATOLL_TLS_CA")]
    tls_ca: Option<PathBuf>,
    /// The name by which workers reach the coordinator
    #[arg(long, value_name = "NAME", default_value = "localhost")]
    host: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// How well something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Health {
    Good,
    Doubtful,
    Bad,
}

/// What was looked at, and found.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    health: Health,
    found: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

impl Finding {
    fn good(check: &'static str, found: String) -> Self {
        Self { check, health: Health::Good, found, advice: None }
    }

    fn not(check: &'static str, health: Health, found: String, advice: &str) -> Self {
        Self { check, health, found, advice: Some(advice.to_owned()) }
    }
}

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let Arguments { coordinator, tls_ca, host, json } = arguments;
    let settings = command::settings(coordinator)?;
    let mut findings = store(&settings).await?;
    findings.push(port(&settings, "listen").await?);
    findings.push(port(&settings, "http").await?);
    findings.push(tokens(&settings));
    findings.push(encryption(&settings, tls_ca, &host).await);
    let bad = findings.iter().filter(|finding| finding.health == Health::Bad).count();
    if json {
        out!("{}", serde_json::json!({ "ok": bad == 0, "findings": findings }));
    } else {
        print(&findings, bad);
    }
    Ok(if bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(findings: &[Finding], bad: usize) {
    for Finding { check, health, found, advice } in findings {
        let word = match health {
            Health::Good => "good",
            Health::Doubtful => "doubtful",
            Health::Bad => "BAD",
        };
        out!("{word:<9} {check:<8} {found}");
        if let Some(advice) = advice {
            out!("{:<18} {advice}", "");
        }
    }
    message!("{}", if bad == 0 { "a coordinator can run here" } else { "a coordinator cannot run here" });
}

/// The store: whether it opens, keeps its promises, has the time right, and has room.
async fn store(settings: &Settings) -> Result<Vec<Finding>, Failure> {
    let text = settings.text("store")?;
    let opened = match Location::parse(text.as_ref()) {
        Ok(location) => Store::create_at(&location).await,
        Err(error) => Err(error),
    };
    let opened = match opened {
        Ok(store) => run::stored::check_format(&store).await.map(|()| store),
        Err(error) => Err(error),
    };
    let store = match opened {
        Ok(store) => store,
        Err(error) => {
            let advice = "name another store, or make this one reachable and writable";
            return Ok(vec![Finding::not("store", Health::Bad, error.to_string(), advice)]);
        }
    };
    let mut findings = match promises::try_out(&store, Nonce(rand::random()), Trial::THOROUGH).await {
        Ok(tried) => kept(&text, tried),
        Err(error) => {
            let advice = "use another store: a coordinator rejects this one";
            vec![Finding::not("store", Health::Bad, error.to_string(), advice)]
        }
    };
    findings.extend(store.folder_on_disk().and_then(free_space));
    Ok(findings)
}

/// How the store's clock differs from this machine's.
fn clocks(ahead: f64) -> String {
    let off = ahead.abs();
    match ahead {
        _ if off < 0.05 => "the store's clock and this machine's agree".to_owned(),
        ahead if ahead > 0.0 => format!("the store's clock is {off:.1} s ahead of this machine's"),
        _ => format!("the store's clock is {off:.1} s behind this machine's"),
    }
}

fn kept(text: &str, tried: Tried) -> Vec<Finding> {
    let Trial { writers, rounds } = Trial::THOROUGH;
    let slowest = tried.slowest.as_millis();
    let found = format!(
        "`{text}`: one winner in each of {rounds} races of {writers} writers, the slowest in {slowest} ms"
    );
    let skew = tried.clock_ahead;
    let clock = clocks(skew);
    let advice = "set the clocks right (NTP): S3 rejects requests that are more than 15 minutes off";
    let clock = match skew.abs() {
        skew if skew > FAR_OFF => Finding::not("clock", Health::Bad, clock, advice),
        skew if skew > OFF => Finding::not("clock", Health::Doubtful, clock, advice),
        _ => Finding::good("clock", clock),
    };
    vec![Finding::good("store", found), clock]
}

fn free_space(folder: &std::path::Path) -> Option<Finding> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let found = format!("{} MiB are free in `{}`", free >> 20, folder.display());
    let advice =
        "make room, or name a store elsewhere; `atoll check FILE` estimates what an experiment needs";
    Some(match free {
        free if free < LITTLE => Finding::not("disk", Health::Bad, found, advice),
        free if free < SOME => Finding::not("disk", Health::Doubtful, found, advice),
        _ => Finding::good("disk", found),
    })
}

/// Whether an address can be listened on, and may be.
async fn port(settings: &Settings, key: &'static str) -> Result<Finding, Failure> {
    let text = settings.text(key)?;
    if text == "off" {
        return Ok(Finding::good(key, "off".to_owned()));
    }
    let addresses: Vec<_> = match text.to_socket_addrs() {
        Ok(addresses) => addresses.collect(),
        Err(error) => {
            let found = format!("`{text}` is no address: {error}");
            return Ok(Finding::not(key, Health::Bad, found, "write it as HOST:PORT"));
        }
    };
    // Tokens and certificates that cannot be read have findings of their own.
    if let (Ok(permissions), Ok(tls)) = (protection::permissions(settings), protection::tls(settings))
        && let Err(open) = protection::check_address(settings, key, &addresses, (&permissions, tls.as_ref()))
    {
        return Ok(Finding::not(key, Health::Bad, open.to_string(), "protect it, or listen on loopback"));
    }
    Ok(match TcpListener::bind(&addresses[..]).await {
        Ok(_) => Finding::good(key, format!("`{text}` is free")),
        Err(error) => {
            let advice = "is another coordinator running here? end it, or take another port";
            Finding::not(key, Health::Bad, format!("`{text}` cannot be listened on: {error}"), advice)
        }
    })
}

/// Whether the tokens can be read.
fn tokens(settings: &Settings) -> Finding {
    match protection::permissions(settings) {
        Ok(guard) if guard.workers.is_empty() || guard.operators.is_empty() => {
            Finding::good("tokens", "none: every caller that reaches it is permitted".to_owned())
        }
        Ok(_) => Finding::good("tokens", "workers and operators need one".to_owned()),
        Err(error) => {
            let advice = "name a file of tokens, one on each line; `atoll certs` makes some";
            Finding::not("tokens", Health::Bad, error.to_string(), advice)
        }
    }
}

/// Checks by a TLS handshake whether a client that trusts the authority would trust this coordinator.
async fn encryption(settings: &Settings, authority: Option<PathBuf>, host: &str) -> Finding {
    let tls = match protection::tls(settings) {
        Ok(Some(tls)) => tls,
        Ok(None) => return Finding::good("tls", "off: nothing is encrypted".to_owned()),
        Err(error) => {
            let advice = "`atoll certs` makes a set that fits together";
            return Finding::not("tls", Health::Bad, error.to_string(), advice);
        }
    };
    let Some(authority) = authority else {
        let found =
            "certificate and key fit together; --tls-ca would tell whether workers trust them".to_owned();
        return Finding::good("tls", found);
    };
    match shake_hands(&tls, &authority, host).await {
        Ok(()) => Finding::good("tls", format!("workers that call it `{host}` would trust it")),
        Err(reason) => {
            let advice = "workers would not trust it: give it a certificate for that name, valid today, of that authority";
            Finding::not("tls", Health::Bad, reason, advice)
        }
    }
}

async fn shake_hands(tls: &Tls, authority: &PathBuf, host: &str) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(authority).map_err(|error| text(&error))? {
        let certificate = certificate.map_err(|error| text(&error))?;
        roots.add(certificate).map_err(|error| text(&error))?;
    }
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|error| text(&error))?;
    let (ours, theirs) = tokio::io::duplex(16 << 10);
    let connector = TlsConnector::from(Arc::new(config));
    let acceptor = TlsAcceptor::from(tls.config());
    let (connected, _) = tokio::join!(connector.connect(name, ours), acceptor.accept(theirs));
    connected.map(|_| ()).map_err(|error| text(&error))
}

#[cfg(test)]
mod tests {
    use super::clocks;

    #[test]
    fn clocks_agree_or_differ_in_one_direction() {
        assert_eq!(clocks(-0.01), "the store's clock and this machine's agree");
        assert_eq!(clocks(2.04), "the store's clock is 2.0 s ahead of this machine's");
        assert_eq!(clocks(-2.0), "the store's clock is 2.0 s behind this machine's");
    }
}
