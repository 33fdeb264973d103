//! A first look at a coordinator: whether there can be a connection at all, however often one tries.
//!
//! In TLS 1.3 a client begins before the server has judged its certificate, and what it says meanwhile may drown the
//! refusal in a broken pipe; without TLS, an alert is but a connection that broke. So a look shakes hands, says nothing,
//! and listens to the first byte.

use crate::credentials::{CredentialError, Trust};
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{AlertDescription, CertificateError, ClientConfig, Error as TlsError, RootCertStore};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// How long a look may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// The first byte of an alert of TLS.
const ALERT: u8 = 21;
/// The first words of HTTP/2.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What calls are made by, as TLS names it.
const CALLS: &[u8] = b"h2";
const NO_CALLS: &str = "it takes no calls (HTTP/2): is that the address of health and metrics?";

/// Who to look at, and how.
#[derive(Clone)]
pub struct ConnectionProbe {
    address: String,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

impl fmt::Debug for ConnectionProbe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Look({})", self.address)
    }
}

impl ConnectionProbe {
    /// Looks at the coordinator of this address in the way in which it will be called.
    pub fn new(url: &str, trust: &Trust) -> Result<Self, CredentialError> {
        let wrong = |reason: &dyn fmt::Display| CredentialError::Url {
            url: url.to_owned(),
            reason: reason.to_string(),
        };
        let uri: tonic::codegen::http::Uri = url.parse().map_err(|error| wrong(&error))?;
        let host = uri.host().ok_or_else(|| wrong(&"it names no host"))?;
        let encrypted = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
        let address = format!("{host}:{port}");
        if !encrypted {
            return Ok(Self { address, tls: None });
        }
        let name = host.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(name).map_err(|error| wrong(&error))?;
        let config = config(trust).map_err(|error| CredentialError::Certificates(error.to_string()))?;
        Ok(Self { address, tls: Some((Arc::new(config), name)) })
    }

    /// The host and the port that are called.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The reason why there will never be a connection; none if there is no response, because then it is unknown.
    pub async fn distrust(&self) -> Option<String> {
        match &self.tls {
            None => within(self.hear_without_tls())
                .await?
                .ok()
                .filter(|byte| *byte == ALERT)
                .map(|_| "it speaks TLS: use https:// and `tls_ca`".to_owned()),
            Some((config, name)) => {
                let heard = within(self.hear_with_tls(config.clone(), name.clone())).await?;
                match heard {
                    Ok(true) => None,
                    Ok(false) => Some(NO_CALLS.to_owned()),
                    Err(error) => reason(&error),
                }
            }
        }
    }

    async fn hear_without_tls(&self) -> io::Result<u8> {
        let mut stream = TcpStream::connect(&self.address).await?;
        stream.write_all(PREFACE).await?;
        stream.read_u8().await
    }

    /// Whether it takes calls.
    async fn hear_with_tls(&self, config: Arc<ClientConfig>, name: ServerName<'static>) -> io::Result<bool> {
        let stream = TcpStream::connect(&self.address).await?;
        let mut stream = TlsConnector::from(config).connect(name, stream).await?;
        if stream.get_ref().1.alpn_protocol() != Some(CALLS) {
            return Ok(false);
        }
        stream.read_u8().await.map(|_| true)
    }
}

async fn within<T>(look: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(PATIENCE, look).await.ok()
}

fn config(trust: &Trust) -> Result<ClientConfig, TlsError> {
    let wrong = |error: rustls::pki_types::pem::Error| TlsError::General(error.to_string());
    let certificates =
        |pem: &[u8]| CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>().map_err(wrong);
    let mut roots = RootCertStore::empty();
    for certificate in certificates(trust.authority.as_deref().unwrap_or_default())? {
        roots.add(certificate)?;
    }
    let config = ClientConfig::builder().with_root_certificates(roots);
    let mut config = match &trust.identity {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let key = PrivateKeyDer::from_pem_slice(key).map_err(wrong)?;
            config.with_client_auth_cert(certificates(certificate)?, key)?
        }
    };
    config.alpn_protocols = vec![CALLS.to_vec()];
    Ok(config)
}

/// What an error says about trust, if it says anything.
fn reason(error: &io::Error) -> Option<String> {
    let error = error.get_ref()?.downcast_ref::<TlsError>()?;
    Some(match error {
        TlsError::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            "its certificate was not signed by the authority in `tls_ca`".to_owned()
        }
        TlsError::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => format!("its certificate is not valid for this host: {error}"),
        TlsError::InvalidCertificate(_) => format!("its certificate cannot be accepted: {error}"),
        TlsError::AlertReceived(AlertDescription::CertificateRequired) => {
            "it requires a client certificate: set `tls_cert` and `tls_key`".to_owned()
        }
        TlsError::AlertReceived(alert) => refused(*alert),
        TlsError::InvalidMessage(_) => {
            "it does not speak TLS: use http:// or give it a certificate".to_owned()
        }
        _ => return None,
    })
}

/// What a coordinator means by an alert.
fn refused(alert: AlertDescription) -> String {
    let why = match alert {
        AlertDescription::NoApplicationProtocol => return NO_CALLS.to_owned(),
        AlertDescription::UnknownCA | AlertDescription::DecryptError => "another authority has signed it",
        AlertDescription::CertificateExpired => "it is not valid today",
        AlertDescription::CertificateRevoked => "it was revoked",
        AlertDescription::UnsupportedCertificate => "it was not made for clients",
        _ => "unknown TLS error",
    };
    format!("it rejected the client certificate (`tls_cert`): {why} ({alert:?})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_words() {
        let told = |error| reason(&io::Error::new(io::ErrorKind::InvalidData, error)).unwrap_or_default();
        let unknown = TlsError::InvalidCertificate(CertificateError::UnknownIssuer);
        assert!(told(unknown).contains("not signed by the authority"));
        assert!(told(TlsError::InvalidCertificate(CertificateError::Expired)).contains("cannot be accepted"));
        let alert = |alert| told(TlsError::AlertReceived(alert));
        assert!(alert(AlertDescription::CertificateRequired).contains("requires a client certificate"));
        assert!(alert(AlertDescription::UnknownCA).contains("another authority"));
        assert!(alert(AlertDescription::CertificateExpired).contains("not valid today"));
        assert!(alert(AlertDescription::UnsupportedCertificate).contains("not made for clients"));
        assert!(alert(AlertDescription::NoApplicationProtocol).contains("health and metrics"));
        assert!(alert(AlertDescription::InternalError).contains("InternalError"));
        assert_eq!(told(TlsError::General("anything else".to_owned())), "");
        assert_eq!(reason(&io::Error::from(io::ErrorKind::ConnectionRefused)), None);
    }

    #[tokio::test]
    async fn who_is_not_there_is_not_distrusted() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        assert_eq!(ConnectionProbe::new(&url, &Trust::default()).unwrap().distrust().await, None);
        assert!(ConnectionProbe::new("https://", &Trust::default()).is_err());
    }
}
