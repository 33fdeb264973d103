//! The coordinator's certificate, and whose certificates it wants to see. Both may be replaced while it serves.

use super::expiry;
use super::permissions::Refusals;
use super::standby::is_about_certificates;
use futures::task::AtomicWaker;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

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
    /// As PEM: certificate, key, authority of callers.
    files: (Vec<u8>, Vec<u8>, Option<Vec<u8>>),
    http: Arc<ServerConfig>,
    calls: Arc<ServerConfig>,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    expires: Option<u64>,
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
        let expires = chain.iter().filter_map(|certificate| expiry::of(certificate)).min();
        let verifier = client_authority.as_deref().map(verifier).transpose()?;
        let config = |verifier: Option<&Arc<dyn ClientCertVerifier>>| {
            let parsed = PrivateKeyDer::from_pem_slice(&key)
                .map_err(|error| wrong("a private key in PEM (`tls_key`)", &error))?;
            let builder = match verifier {
                Some(verifier) => ServerConfig::builder().with_client_cert_verifier(verifier.clone()),
                None => ServerConfig::builder().with_no_client_auth(),
            };
            builder
                .with_single_cert(chain.clone(), parsed)
                .map_err(|error| wrong("a certificate and the key that belongs to it", &error))
        };
        let http = Arc::new(config(None)?);
        let mut calls = config(verifier.as_ref())?;
        calls.alpn_protocols = vec![b"h2".to_vec()];
        let calls = Arc::new(calls);
        Ok(Self { files: (certificate, key, client_authority), http, calls, verifier, expires })
    }

    /// For HTTP, where callers need no certificate: those who probe have none.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.http.clone()
    }

    /// What this coordinator shows where callers must show a certificate: its own.
    pub(crate) fn identity(&self) -> Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
        let (certificate, key, client_authority) = &self.files;
        client_authority.as_ref()?;
        let chain = certificates("a certificate in PEM (`tls_cert`)", certificate).ok()?;
        Some((chain, PrivateKeyDer::from_pem_slice(key).ok()?))
    }

    /// When the first certificate of the chain expires, in seconds since 1970, if it says so.
    pub fn expires(&self) -> Option<u64> {
        self.expires
    }

    /// Whether a caller that has shown these certificates may still call.
    fn trusts(&self, shown: Option<&[CertificateDer<'static>]>) -> bool {
        let Some(verifier) = &self.verifier else { return true };
        let Some([own, others @ ..]) = shown else { return false };
        verifier.verify_client_cert(own, others, UnixTime::now()).is_ok()
    }
}

fn verifier(authority: &[u8]) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let expected = "a certificate authority in PEM (`tls_client_ca`)";
    let mut roots = RootCertStore::empty();
    for certificate in certificates(expected, authority)? {
        roots.add(certificate).map_err(|error| wrong(expected, &error))?;
    }
    let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build();
    verifier.map(|verifier| verifier as Arc<dyn ClientCertVerifier>).map_err(|error| wrong(expected, &error))
}

fn wrong(expected: &'static str, reason: &dyn fmt::Display) -> TlsError {
    TlsError { expected, reason: reason.to_string() }
}

fn certificates(expected: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| wrong(expected, &error))?;
    if chain.is_empty() { Err(wrong(expected, &"no certificate is in it")) } else { Ok(chain) }
}

/// Certificates that may be replaced at any time: a handshake takes the current ones, and a connection whose caller is
/// not trusted any more is closed.
pub(crate) struct LiveTls {
    current: RwLock<Tls>,
    open: Mutex<Vec<Weak<Caller>>>,
    /// Handshakes that failed because one side does not trust the other.
    refusals: Arc<Refusals>,
}

/// Who is at the other end of a connection, and whether it may stay.
struct Caller {
    shown: Option<Vec<CertificateDer<'static>>>,
    is_revoked: AtomicBool,
    reader: AtomicWaker,
}

impl LiveTls {
    pub(crate) fn new(tls: Tls) -> Self {
        Self { current: RwLock::new(tls), open: Mutex::default(), refusals: Arc::default() }
    }

    pub(crate) fn current(&self) -> Tls {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes other certificates; returns whether they differ.
    pub(crate) fn replace(&self, tls: &Tls) -> bool {
        if self.current().files == tls.files {
            return false;
        }
        self.current.write().unwrap_or_else(PoisonError::into_inner).clone_from(tls);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|caller| caller.strong_count() > 0);
        for caller in open.iter().filter_map(Weak::upgrade) {
            if !tls.trusts(caller.shown.as_deref()) {
                caller.is_revoked.store(true, SeqCst);
                caller.reader.wake();
            }
        }
        true
    }

    /// Where handshakes are noted that failed for want of trust: a worker repeats its own.
    pub(crate) fn refusals(&self) -> Arc<Refusals> {
        self.refusals.clone()
    }

    /// Notes why a handshake for calls failed, if a worker would fail like that for good.
    pub(crate) fn note_failure(&self, error: &io::Error) {
        let error = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
        let reason = match error {
            Some(rustls::Error::AlertReceived(alert)) if is_about_certificates(*alert) => {
                format!("a worker does not trust the certificate of this coordinator (`tls_cert`): {alert:?}")
            }
            Some(rustls::Error::NoCertificatesPresented) => {
                "a worker showed no client certificate (`tls_client_ca`)".to_owned()
            }
            Some(rustls::Error::InvalidCertificate(error)) => {
                format!(
                    "a worker showed a client certificate that cannot be accepted (`tls_client_ca`): {error}"
                )
            }
            _ => return,
        };
        self.refusals.note(reason);
    }

    pub(crate) fn http_acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.current().http)
    }

    /// For workers and operators.
    pub(crate) fn call_acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.current().calls)
    }

    /// Notes who has shown what. Certificates may have been replaced during the handshake: what they say now counts.
    pub(crate) fn admit<IO>(&self, stream: TlsStream<IO>) -> Encrypted<IO> {
        let shown = stream.get_ref().1.peer_certificates();
        let shown = shown.map(|chain| chain.iter().map(|one| one.clone().into_owned()).collect());
        let caller =
            Arc::new(Caller { shown, is_revoked: AtomicBool::new(false), reader: AtomicWaker::new() });
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() == open.capacity() {
            open.retain(|caller| caller.strong_count() > 0);
        }
        open.push(Arc::downgrade(&caller));
        drop(open);
        // It is on the list by now, so that a replacement from here on finds it.
        if !self.current().trusts(caller.shown.as_deref()) {
            caller.is_revoked.store(true, SeqCst);
        }
        Encrypted { stream, caller }
    }
}

/// An encrypted connection that ends when its caller is not trusted any more.
pub(crate) struct Encrypted<IO> {
    stream: TlsStream<IO>,
    caller: Arc<Caller>,
}

impl<IO: Connected> Connected for Encrypted<IO> {
    type ConnectInfo = <TlsStream<IO> as Connected>::ConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.stream.connect_info()
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.caller.reader.register(cx.waker());
        if self.caller.is_revoked.load(SeqCst) {
            let reason = "its certificate is not trusted any more";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, reason)));
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, DuplexStream};
    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::ClientConfig;

    type Authority = CertifiedIssuer<'static, KeyPair>;
    type ClientSide = tokio_rustls::client::TlsStream<DuplexStream>;

    fn authority() -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    }

    /// A certificate for `localhost` and its key.
    fn signed(authority: &Authority) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        (params.signed_by(&key, authority).unwrap(), key)
    }

    fn tls(own: &(rcgen::Certificate, KeyPair), of_clients: &Authority) -> Tls {
        let (certificate, key) = (own.0.pem().into_bytes(), own.1.serialize_pem().into_bytes());
        Tls::new(certificate, key, Some(of_clients.pem().into_bytes())).unwrap()
    }

    /// A caller that is connected over the certificates that are in force, and the server's side of the connection.
    async fn connected(live: &LiveTls, old: &Authority) -> (ClientSide, TlsStream<DuplexStream>) {
        let client = signed(old);
        let mut roots = RootCertStore::empty();
        roots.add(old.der().clone()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(client.1.serialize_pem().as_bytes()).unwrap();
        let config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![client.0.der().clone()], key)
            .unwrap();
        let (near, far) = tokio::io::duplex(1 << 16);
        let name = "localhost".to_owned().try_into().unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let shaken = tokio::join!(connector.connect(name, near), live.call_acceptor().accept(far));
        (shaken.0.unwrap(), shaken.1.unwrap())
    }

    fn is_aborted(read: &io::Result<usize>) -> bool {
        read.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionAborted)
    }

    #[tokio::test]
    async fn a_caller_whose_authority_is_removed_during_its_handshake_is_not_admitted() {
        let (old, new) = (authority(), authority());
        let server = signed(&old);
        let live = LiveTls::new(tls(&server, &old));
        for is_removed in [false, true] {
            let (calling, accepted) = connected(&live, &old).await;
            if is_removed {
                assert!(live.replace(&tls(&server, &new)));
            }
            let mut admitted = live.admit(accepted);
            drop(calling);
            assert_eq!(is_aborted(&admitted.read(&mut [0]).await), is_removed);
        }
    }

    #[tokio::test]
    async fn an_open_connection_that_waits_is_closed_when_its_authority_is_removed() {
        let (old, new) = (authority(), authority());
        let server = signed(&old);
        let live = LiveTls::new(tls(&server, &old));
        let (_calling, accepted) = connected(&live, &old).await;
        let mut admitted = live.admit(accepted);
        let reading = tokio::spawn(async move { admitted.read(&mut [0]).await });
        // On one thread, the reader goes as far as it can before this continues.
        tokio::task::yield_now().await;
        // Another certificate of the same authority changes nothing for it.
        assert!(live.replace(&tls(&signed(&old), &old)));
        tokio::task::yield_now().await;
        assert!(!reading.is_finished(), "nothing has come");
        assert!(live.replace(&tls(&server, &new)));
        let read = tokio::time::timeout(Duration::from_mins(1), reading).await;
        assert!(is_aborted(&read.expect("it is woken").unwrap()));
    }
}
