//! A standby coordinator: it waits until the owner of the store is silent, and only then claims the store.
//!
//! The owner is asked for its health by the nonce of its claim. A proxy that accepts connections for a process that is gone,
//! or another process at the owner's old address, does not know that nonce.
//!
//! Silence proves nothing: the owner may be cut off and alive. Terms fence it then, so that a wrong takeover costs time and
//! no result.

use super::tls::Tls;
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use store::{Claim, ClaimOwner, Nonce, Store, StoreError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{self, AlertDescription, ClientConfig, DigitallySignedStruct, SignatureScheme};
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::service_fn;

/// How long an owner may take to answer.
const ANSWER: Duration = Duration::from_secs(1);
/// The first words of HTTP/2, with empty settings. A server answers with its own; one that speaks TLS, with an alert or by
/// closing the connection. A process that stands still does neither.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// The name under which a coordinator reports its own health.
pub(crate) fn service(nonce: Nonce) -> String {
    format!("atoll.Owner/{nonce}")
}

/// Waits until the store may be claimed: it has no owner, its owner was at the address of this process, or the owner has
/// been silent for long enough.
pub(crate) async fn wait(
    store: &Store,
    own: &str,
    probe: &OwnerProbe,
    takeover_after: Duration,
) -> Result<(), StoreError> {
    let mut silent: Option<(u64, Instant)> = None;
    loop {
        let owner = match Claim::owner(store).await {
            Ok(Some(owner)) if !owner.address.is_empty() && owner.address != own => owner,
            Ok(_) => return Ok(()),
            Err(error) if error.is_permanent() => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "cannot read the claim");
                tokio::time::sleep(ANSWER).await;
                continue;
            }
        };
        let asked = Instant::now();
        if probe.responds(&owner).await {
            silent = None;
        } else {
            // An owner that stands still is silent from the question on, not from when it was given up.
            let since = match silent {
                Some((known, since)) if known == owner.number => since,
                _ => asked,
            };
            silent = Some((owner.number, since));
            if since.elapsed() >= takeover_after {
                tracing::warn!(owner = owner.address, "the owner of the store is silent: taking over");
                return Ok(());
            }
        }
        let pause = takeover_after / 10;
        tokio::time::sleep(pause.clamp(Duration::from_millis(20), Duration::from_millis(500))).await;
    }
}

/// Whether a coordinator at this address, as `HOST:PORT`, answers at all within a second: for callers that do not know how
/// its connections are encrypted.
pub async fn answers(address: &str) -> bool {
    let probe = async {
        let mut stream = TcpStream::connect(address).await.ok()?;
        stream.write_all(PREFACE).await.ok()?;
        stream.read(&mut [0]).await.ok()
    };
    matches!(tokio::time::timeout(ANSWER, probe).await, Ok(Some(_)))
}

/// Asks owners whether they are there, encrypted as this coordinator's own connections are.
pub(crate) struct OwnerProbe {
    tls: Option<TlsConnector>,
    is_told: AtomicBool,
}

/// A connection, whether encrypted or not.
trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

impl OwnerProbe {
    /// Shows the certificate of this coordinator where callers must show one.
    pub(crate) fn new(tls: Option<&Tls>) -> Self {
        let tls = tls.and_then(client).map(|config| TlsConnector::from(Arc::new(config)));
        Self { tls, is_told: AtomicBool::new(false) }
    }

    /// Whether the owner itself answers at its address.
    async fn responds(&self, owner: &ClaimOwner) -> bool {
        match tokio::time::timeout(ANSWER, self.ask(owner)).await {
            Ok(Ok(())) => true,
            // It is likely the owner, which cannot be asked then.
            Ok(Err(error)) if is_certificate_refused(&*error) => {
                if !self.is_told.swap(true, SeqCst) {
                    tracing::warn!(
                        "the owner of the store rejects this coordinator's certificate: where `tls_client_ca` is set, it \
                         needs the usage `client auth`; until then, a server at that address that rejects it counts as \
                         the owner"
                    );
                }
                true
            }
            Ok(Err(_)) | Err(_) => false,
        }
    }

    async fn ask(&self, owner: &ClaimOwner) -> Result<(), Box<dyn Error + Send + Sync>> {
        let stream = TcpStream::connect(&owner.address).await?;
        let wire: Box<dyn Wire> = match &self.tls {
            Some(tls) => Box::new(tls.connect(ServerName::try_from("owner")?, stream).await?),
            None => Box::new(stream),
        };
        let mut wire = Some(TokioIo::new(wire));
        let connect = service_fn(move |_| {
            let wire = wire.take().ok_or_else(|| io::Error::other("there is one connection"));
            async move { wire }
        });
        let channel = Endpoint::from_static("http://owner").connect_with_connector(connect).await?;
        let request = HealthCheckRequest { service: service(owner.nonce) };
        HealthClient::new(channel).check(request).await?;
        Ok(())
    }
}

/// Whether a server wants another certificate than ours. Other alerts say that something speaks TLS there, and not that it is
/// the owner.
fn is_certificate_refused(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let alert = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
        if let Some(rustls::Error::AlertReceived(alert)) = alert {
            return is_about_certificates(*alert);
        }
        next = error.source();
    }
    false
}

/// Whether an alert says that the other side does not trust a certificate.
pub(super) fn is_about_certificates(alert: AlertDescription) -> bool {
    use AlertDescription as Alert;
    matches!(
        alert,
        Alert::CertificateRequired
            | Alert::BadCertificate
            | Alert::UnknownCA
            | Alert::UnsupportedCertificate
            | Alert::CertificateExpired
            | Alert::CertificateRevoked
            | Alert::CertificateUnknown
            | Alert::DecryptError
    )
}

/// How a coordinator calls another. The name in the other's certificate is not compared, as it is asked by its address: it
/// proves itself by the nonce of its claim.
fn client(tls: &Tls) -> Option<ClientConfig> {
    let provider = tls.config().crypto_provider().clone();
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .ok()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyName(provider)));
    let mut config = match tls.identity() {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key).ok()?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Some(config)
}

/// Accepts whatever certificate is shown, as long as its holder signs with it.
#[derive(Debug)]
struct AnyName(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;
    use tokio::task::JoinHandle;
    use tokio_stream::wrappers::TcpListenerStream;
    use tonic::transport::Server;
    use tonic_health::ServingStatus;

    const AFTER: Duration = Duration::from_millis(100);

    /// A process at an address that reports the health of these nonces.
    async fn serve(listener: TcpListener, nonce: Nonce) -> JoinHandle<()> {
        let (health, service_of_health) = tonic_health::server::health_reporter();
        health.set_service_status(service(nonce), ServingStatus::Serving).await;
        tokio::spawn(async move {
            let server = Server::builder().add_service(service_of_health);
            server.serve_with_incoming(TcpListenerStream::new(listener)).await.unwrap();
        })
    }

    #[tokio::test]
    async fn a_store_is_claimed_once_its_owner_is_silent() {
        let folder = std::env::temp_dir().join(format!("atoll-standby-{}", std::process::id()));
        let store = Store::local(&folder).await.unwrap();
        let probe = OwnerProbe::new(None);
        wait(&store, "own", &probe, AFTER).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        Claim::take(&store, Nonce(1), &address).await.unwrap();
        let serving = serve(listener, Nonce(1)).await;
        let waiting = wait(&store, "own", &probe, AFTER);
        assert!(tokio::time::timeout(5 * AFTER, waiting).await.is_err(), "the owner answers");
        wait(&store, &address, &probe, AFTER).await.unwrap();
        serving.abort();
        let _ = serving.await;
        let start = Instant::now();
        wait(&store, "own", &probe, AFTER).await.unwrap();
        assert!(start.elapsed() >= AFTER);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn an_owner_that_stands_still_is_noticed_as_soon_as_one_that_is_gone() {
        let folder = std::env::temp_dir().join(format!("atoll-standby-still-{}", std::process::id()));
        let store = Store::local(&folder).await.unwrap();
        // Connections are accepted by the system, and no process reads from them.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        Claim::take(&store, Nonce(1), &address).await.unwrap();
        let (after, start) = (Duration::from_secs(5), Instant::now());
        wait(&store, "own", &OwnerProbe::new(None), after).await.unwrap();
        let silence = start.elapsed();
        assert!(silence >= after && silence < after + Duration::from_millis(1500), "{silence:?}");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn only_alerts_about_certificates_come_from_an_owner_that_cannot_be_asked() {
        use AlertDescription as Alert;
        let is_refused = |alert| {
            let error = io::Error::new(io::ErrorKind::InvalidData, rustls::Error::AlertReceived(alert));
            is_certificate_refused(&error)
        };
        for alert in [
            Alert::CertificateRequired,
            Alert::BadCertificate,
            Alert::UnknownCA,
            Alert::UnsupportedCertificate,
            Alert::CertificateExpired,
            Alert::CertificateRevoked,
            Alert::CertificateUnknown,
            Alert::DecryptError,
        ] {
            assert!(is_refused(alert), "{alert:?}");
        }
        // A proxy without a process behind it, or a server of something else.
        for alert in [
            Alert::CloseNotify,
            Alert::HandshakeFailure,
            Alert::ProtocolVersion,
            Alert::InternalError,
            Alert::UnrecognisedName,
            Alert::NoApplicationProtocol,
        ] {
            assert!(!is_refused(alert), "{alert:?}");
        }
        assert!(!is_certificate_refused(&io::Error::from(io::ErrorKind::ConnectionReset)));
    }

    #[tokio::test]
    async fn whoever_answers_in_the_place_of_the_owner_does_not_keep_the_store_for_it() {
        let folder = std::env::temp_dir().join(format!("atoll-standby-others-{}", std::process::id()));
        let store = Store::local(&folder).await.unwrap();
        let probe = OwnerProbe::new(None);
        let [proxy, other] = [TcpListener::bind("127.0.0.1:0"), TcpListener::bind("127.0.0.1:0")];
        let (proxy, other) = (proxy.await.unwrap(), other.await.unwrap());
        let addresses = [&proxy, &other].map(|listener| listener.local_addr().unwrap().to_string());
        // One accepts and closes, as a proxy does whose process is gone; another is a coordinator, but not the owner.
        let closing = tokio::spawn(async move {
            loop {
                let (mut stream, _) = proxy.accept().await.unwrap();
                let _ = stream.write_all(b"x").await;
            }
        });
        let serving = serve(other, Nonce(7)).await;
        for address in addresses {
            Claim::take(&store, Nonce(1), &address).await.unwrap();
            let waiting = wait(&store, "own", &probe, AFTER);
            tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap().unwrap();
        }
        closing.abort();
        serving.abort();
        std::fs::remove_dir_all(folder).unwrap();
    }
}
