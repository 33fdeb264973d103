//! The coordinator's certificate, and whose certificates it wants to see.

use std::fmt;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// Certificates that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found something else: {reason}")]
pub struct TlsError {
    expected: &'static str,
    reason: String,
}

/// A certificate and its key, and the authority of those that callers must show.
#[derive(Clone)]
pub struct Tls {
    of_http: Arc<ServerConfig>,
    of_calls: Arc<ServerConfig>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Tls(…)")
    }
}

impl Tls {
    /// Takes certificates that fit together, all as PEM. Callers need one of their own if an authority of theirs is given.
    pub fn new(certificate: &[u8], key: &[u8], client_authority: Option<&[u8]>) -> Result<Self, TlsError> {
        let chain = certificates("a certificate in PEM (`tls_cert`)", certificate)?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| wrong("a private key in PEM (`tls_key`)", &error))?;
        let fits = "a certificate and the key that belongs to it";
        let of_http =
            ServerConfig::builder().with_no_client_auth().with_single_cert(chain.clone(), key.clone_key());
        let of_http = of_http.map_err(|error| wrong(fits, &error))?;
        let builder = match client_authority {
            None => ServerConfig::builder().with_no_client_auth(),
            Some(authority) => {
                let expected = "a certificate authority in PEM (`tls_client_ca`)";
                let mut roots = RootCertStore::empty();
                for certificate in certificates(expected, authority)? {
                    roots.add(certificate).map_err(|error| wrong(expected, &error))?;
                }
                let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build();
                let verifier = verifier.map_err(|error| wrong(expected, &error))?;
                ServerConfig::builder().with_client_cert_verifier(verifier)
            }
        };
        let mut of_calls = builder.with_single_cert(chain, key).map_err(|error| wrong(fits, &error))?;
        of_calls.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Self { of_http: Arc::new(of_http), of_calls: Arc::new(of_calls) })
    }

    /// For HTTP, where callers need no certificate: those who probe have none.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.of_http.clone()
    }

    pub(crate) fn http_acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.config())
    }

    /// For workers and operators.
    pub(crate) fn call_acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.of_calls.clone())
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
