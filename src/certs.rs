//! `atoll certs`: a certificate authority, certificates and tokens to begin with.

use crate::clock;
use crate::failure::Failure;
use crate::terminal::{message, out};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const DAY: u64 = 86_400_000;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder to write to; existing files are never overwritten
    #[arg(long, value_name = "DIR", default_value = "atoll-certs")]
    to: PathBuf,
    /// Host name or address of the coordinator; may be repeated
    #[arg(long = "host", value_name = "NAME", default_values = ["localhost", "127.0.0.1", "::1"])]
    hosts: Vec<String>,
    /// Days for which the certificates are valid
    #[arg(long, value_name = "N", default_value_t = 365, value_parser = clap::value_parser!(u64).range(1..=3650))]
    days: u64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments { to, hosts, days } = arguments;
    let files =
        make(hosts, *days).map_err(|error| Failure::Usage(format!("cannot make certificates: {error}")))?;
    std::fs::create_dir_all(to).map_err(|error| cannot_write(to, &error))?;
    if let Some(there) = files.iter().map(|(name, _)| to.join(name)).find(|path| path.exists()) {
        let there = there.display();
        return Err(Failure::Usage(format!("file exists: `{there}`: name another folder, or move it away")));
    }
    for (name, text) in &files {
        let path = to.join(name);
        write_secret(&path, text).map_err(|error| cannot_write(&path, &error))?;
        out!("{}", path.display());
    }
    message!("for development and private clusters: keep `ca-key.pem` readable for you alone");
    Ok(ExitCode::SUCCESS)
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Other(format!("cannot write {}: {error}", path.display()))
}

/// Writes what only the owner may read.
fn write_secret(path: &Path, text: &str) -> std::io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(text.as_bytes())
}

fn make(hosts: &[String], days: u64) -> Result<Vec<(&'static str, String)>, rcgen::Error> {
    let authority = authority(days)?;
    let mut files = vec![("ca.pem", authority.pem()), ("ca-key.pem", authority.key().serialize_pem())];
    for (name, hosts, purpose) in [
        ("coordinator", hosts, ExtendedKeyUsagePurpose::ServerAuth),
        ("client", &[], ExtendedKeyUsagePurpose::ClientAuth),
    ] {
        let key = KeyPair::generate()?;
        let mut params = params(name, hosts, days)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![purpose];
        let certificate = params.signed_by(&key, &authority)?;
        let names = if name == "client" {
            ("client.pem", "client-key.pem")
        } else {
            ("coordinator.pem", "coordinator-key.pem")
        };
        files.extend([(names.0, certificate.pem()), (names.1, key.serialize_pem())]);
    }
    let tokens = ["worker.token", "operator.token", "metrics.token", "viewer.token"];
    files.extend(
        tokens
            .map(|name| (name, format!("{:032x}{:032x}\n", rand::random::<u128>(), rand::random::<u128>()))),
    );
    Ok(files)
}

fn authority(days: u64) -> Result<CertifiedIssuer<'static, KeyPair>, rcgen::Error> {
    let mut params = params("atoll development authority", &[], days)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    CertifiedIssuer::self_signed(params, KeyPair::generate()?)
}

/// Valid since yesterday, because clocks differ.
fn params(name: &str, hosts: &[String], days: u64) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(hosts)?;
    params.distinguished_name.push(DnType::CommonName, name);
    let today = clock::now();
    let date = |at: u64| {
        let (year, month, day) = clock::date(at);
        date_time_ymd(year as i32, month as u8, day as u8)
    };
    (params.not_before, params.not_after) = (date(today.saturating_sub(DAY)), date(today + (days + 1) * DAY));
    Ok(params)
}
