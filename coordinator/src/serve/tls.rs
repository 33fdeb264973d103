//! The coordinator's certificate, and whose certificates it wants to see.

use super::connections::HANDSHAKE;
use std::fmt;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

/// Certificates that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found something else: {reason}")]
pub struct TlsError {
    expected: &'static str,
    reason: String,
}

/// A certificate and its key, and the authority of those that callers must show; all as PEM.
#[derive(Clone)]
pub struct Tls {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_authority: Option<Vec<u8>>,
    config: Arc<ServerConfig>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Tls(…)")
    }
}

impl Tls {
    /// Takes certificates that fit together. Callers need one of their own if an authority of theirs is given.
    pub fn new(
        certificate: Vec<u8>,
        key: Vec<u8>,
        client_authority: Option<Vec<u8>>,
    ) -> Result<Self, TlsError> {
        let chain = certificates("a certificate in PEM (`tls_cert`)", &certificate)?;
        let parsed = PrivateKeyDer::from_pem_slice(&key)
            .map_err(|error| wrong("a private key in PEM (`tls_key`)", &error))?;
        let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, parsed);
        let config = config.map_err(|error| wrong("a certificate and the key that belongs to it", &error))?;
        if let Some(authority) = &client_authority {
            let expected = "a certificate authority in PEM (`tls_client_ca`)";
            let mut roots = RootCertStore::empty();
            for certificate in certificates(expected, authority)? {
                roots.add(certificate).map_err(|error| wrong(expected, &error))?;
            }
        }
        Ok(Self { certificate, key, client_authority, config: Arc::new(config) })
    }

    /// For HTTP, where callers need no certificate: those who probe have none.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.config.clone()
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.config())
    }

    /// For workers and operators.
    pub(crate) fn of_calls(&self) -> ServerTlsConfig {
        let identity = Identity::from_pem(&self.certificate, &self.key);
        let config = ServerTlsConfig::new().identity(identity).timeout(HANDSHAKE);
        match &self.client_authority {
            Some(authority) => config.client_ca_root(Certificate::from_pem(authority)),
            None => config,
        }
    }
}

fn wrong(expected: &'static str, reason: &dyn fmt::Display) -> TlsError {
    TlsError { expected, reason: reason.to_string() }
}

fn certificates(expected: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| wrong(expected, &error))?;
    if chain.is_empty() { Err(wrong(expected, &"no certificate is in it")) } else { Ok(chain) }
}
