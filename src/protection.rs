//! What protects a cluster: certificates and tokens, from files and the environment. No secret is a flag or a setting,
//! because those are shown (`ps`, `--print-config`); where a secret is kept may be.

use crate::failure::Failure;
use crate::settings::Settings;
use coordinator::{Permissions, Tls, Tokens};
use experiment::document::explain;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use worker::{Token, Trust, check_token_is_safe};

/// The largest file of certificates or tokens.
const LARGEST: u64 = 1 << 20;
/// The variable that holds the token of a worker or an operator.
const TOKEN: &str = "ATOLL_TOKEN";

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| explain(path, error);
    // A pipe that is not written to would be waited for without an end, and secrets are read again and again. Those below /dev
    // are what a shell hands over.
    let kind = std::fs::metadata(path).map_err(failed)?.file_type();
    if !kind.is_file() && !path.starts_with("/dev") {
        let found = if kind.is_dir() { "a folder" } else { "a pipe or device" };
        return Err(format!("{}: expected a file, found {found}", path.display()));
    }
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = vec![];
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("expected at most {LARGEST} bytes in `{}`, found more", path.display()));
    }
    Ok(bytes)
}

/// The file that a setting names, if it names one.
pub(crate) fn file(settings: &Settings, key: &str) -> Result<Option<Vec<u8>>, Failure> {
    let path = settings.text(key)?;
    if path.is_empty() {
        return Ok(None);
    }
    read(Path::new(&path)).map(Some).map_err(|reason| settings.bad(key, &reason))
}

/// Who may call a coordinator.
pub(crate) fn permissions(settings: &Settings) -> Result<Permissions, Failure> {
    Ok(Permissions {
        workers: tokens(settings, "worker_token_file", "ATOLL_WORKER_TOKENS")?,
        operators: tokens(settings, "operator_token_file", "ATOLL_OPERATOR_TOKENS")?,
        metrics: tokens(settings, "metrics_token_file", "ATOLL_METRICS_TOKENS")?,
        viewers: tokens(settings, "viewer_token_file", "ATOLL_VIEWER_TOKENS")?,
        requests_per_second: settings.parsed("max_requests_per_peer", "a number of calls per second")?,
    })
}

/// The tokens of a file and of the environment, together.
fn tokens(settings: &Settings, key: &str, variable: &str) -> Result<Tokens, Failure> {
    let mut tokens = Tokens::default();
    if let Some(bytes) = file(settings, key)? {
        let parsed = Tokens::parse(&String::from_utf8_lossy(&bytes));
        tokens.extend(parsed.map_err(|error| settings.bad(key, &error.to_string()))?);
    }
    if let Some(text) = std::env::var(variable).ok().filter(|text| !text.is_empty()) {
        let parsed = Tokens::parse(&text);
        tokens.extend(parsed.map_err(|error| Failure::Config(format!("{variable}: {error}")))?);
    }
    Ok(tokens)
}

/// What a coordinator encrypts with.
pub(crate) fn tls(settings: &Settings) -> Result<Option<Tls>, Failure> {
    let client_authority = file(settings, "tls_client_ca")?;
    match (file(settings, "tls_cert")?, file(settings, "tls_key")?) {
        (Some(certificate), Some(key)) => {
            let tls = Tls::new(certificate, key, client_authority);
            tls.map(Some).map_err(|error| settings.bad("tls_cert", &error.to_string()))
        }
        (None, None) if client_authority.is_none() => Ok(None),
        (None, _) => {
            Err(settings.bad("tls_cert", "expected a file beside `tls_key` or `tls_client_ca`, found none"))
        }
        (_, None) => Err(settings.bad("tls_key", "expected a file beside `tls_cert`, found none")),
    }
}

/// Refuses addresses that others can reach, unless they are protected.
pub(crate) fn check_address(
    settings: &Settings,
    key: &str,
    addresses: &[SocketAddr],
    (guard, tls): (&Permissions, Option<&Tls>),
) -> Result<(), Failure> {
    let open = addresses.iter().map(SocketAddr::ip).find(|ip| !ip.is_loopback());
    let Some(open) = open.filter(|_| tls.is_none() || guard.workers.is_empty() || guard.operators.is_empty())
    else {
        return Ok(());
    };
    if settings.parsed("insecure", "`true` or `false`")? {
        return Ok(());
    }
    let message = format!(
        "expected a loopback address, found `{open}`: others could reach it, and it is not protected; give it \
         certificates (`tls_cert`, `tls_key`) and tokens (`worker_token_file`, `operator_token_file`), which \
         `atoll certs` creates, or set `insecure = true` (or --insecure) if only those you trust can"
    );
    Err(settings.bad(key, &message))
}

/// What an operator shows to a coordinator.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct Credentials {
    /// CA certificate of the coordinator, for https://
    #[arg(long, value_name = "FILE", env = "ATOLL_TLS_CA")]
    tls_ca: Option<PathBuf>,
    /// Client certificate, if the coordinator requires one
    #[arg(long, value_name = "FILE", env = "ATOLL_TLS_CERT", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate
    #[arg(long, value_name = "FILE", env = "ATOLL_TLS_KEY")]
    tls_key: Option<PathBuf>,
    /// File with the token; `ATOLL_TOKEN` may hold the token itself
    #[arg(long, value_name = "FILE", env = "ATOLL_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// Send the token over http:// as well, where the network encrypts (a service mesh)
    #[arg(long, env = "ATOLL_INSECURE")]
    insecure: bool,
}

impl Credentials {
    /// Those of a worker's settings.
    pub(crate) fn of(settings: &Settings) -> Result<Self, Failure> {
        let path = |key: &str| -> Result<Option<PathBuf>, Failure> {
            Ok(Some(settings.text(key)?).filter(|text| !text.is_empty()).map(PathBuf::from))
        };
        let credentials = Self {
            tls_ca: path("tls_ca")?,
            tls_cert: path("tls_cert")?,
            tls_key: path("tls_key")?,
            token_file: path("token_file")?,
            insecure: settings.parsed("insecure", "`true` or `false`")?,
        };
        if credentials.tls_cert.is_some() != credentials.tls_key.is_some() {
            return Err(settings.bad("tls_cert", "expected both `tls_cert` and `tls_key`, found one of them"));
        }
        Ok(credentials)
    }

    /// Whom to trust and who to be.
    pub(crate) fn trust(&self) -> Result<Trust, Failure> {
        let bytes = |path: &Option<PathBuf>| path.as_deref().map(read).transpose().map_err(Failure::Config);
        let identity = bytes(&self.tls_cert)?.zip(bytes(&self.tls_key)?);
        Ok(Trust { authority: bytes(&self.tls_ca)?, identity })
    }

    /// The token, if there is one, for a coordinator to which it may be sent. Of several it is the first.
    pub(crate) fn token(&self, url: &str) -> Result<Option<Token>, Failure> {
        Ok(self.tokens(url)?.into_iter().next())
    }

    /// All tokens, for a coordinator to which they may be sent. In a file they are on lines of their own, so that one file may
    /// be mounted by both sides while tokens are replaced.
    pub(crate) fn tokens(&self, url: &str) -> Result<Vec<Token>, Failure> {
        let (text, place) = match (&self.token_file, std::env::var(TOKEN)) {
            (Some(path), _) => {
                let bytes = read(path).map_err(Failure::Config)?;
                (String::from_utf8_lossy(&bytes).into_owned(), path.display().to_string())
            }
            (None, Ok(text)) if !text.is_empty() => (text, TOKEN.to_owned()),
            _ => return Ok(vec![]),
        };
        let mut lines =
            text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).peekable();
        // A file without a token is reported like a bad token.
        let first = lines.peek().is_none().then_some("");
        let tokens: Result<Vec<Token>, _> = first.into_iter().chain(lines).map(Token::new).collect();
        let tokens = tokens.map_err(|error| Failure::Config(format!("{place}: {error}")))?;
        if !self.insecure {
            check_token_is_safe(url, tokens.first()).map_err(|error| Failure::Config(error.to_string()))?;
        }
        Ok(tokens)
    }
}
