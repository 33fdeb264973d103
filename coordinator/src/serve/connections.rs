//! Connections: counted, encrypted where that is asked for, and closed if they do not begin to speak.

use super::connection_slots::{ConnectionLimits, ConnectionSlot, ConnectionSlots};
use super::tls::LiveTls;
use crate::dashboard::STREAMS_OF_ONE_PEER;
use axum::Extension;
use axum::http::Extensions;
use futures::StreamExt;
use futures::stream::unfold;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use proto::gathered_writes::GatheredWrites;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep};
use tokio_stream::Stream;
use tonic::transport::server::{Connected, TcpConnectInfo, TlsConnectInfo};

/// How long a connection may take until its handshake is finished and the first words of HTTP/2 are there.
pub(crate) const OPENING: Duration = Duration::from_secs(5);
/// How long the head of an HTTP request may take, from the connection or the request before it.
pub(crate) const HEAD: Duration = Duration::from_secs(5);
/// How long a connection for HTTP may stay: long enough for every page, and for a reader that is slow.
const LONGEST_HTTP: Duration = Duration::from_mins(1);
/// The first words of HTTP/2.
const PREFACE: usize = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len();
/// The largest head of an HTTP request.
const LARGEST_HEAD: usize = 16 << 10;
/// How long to wait when no connection can be accepted: out of file descriptors, most likely.
const PAUSE: Duration = Duration::from_millis(100);

/// What probes, scrapers and browsers need of one address, beside the streams of open pages: all of these pages may be read
/// at the same time.
const BESIDE_STREAMS: usize = STREAMS_OF_ONE_PEER + 64;
const FEW: ConnectionLimits =
    ConnectionLimits { connections: 768, of_one_peer: STREAMS_OF_ONE_PEER + BESIDE_STREAMS };

/// The connections of a listener, each with a slot.
fn admitted(
    listener: TcpListener,
    limits: ConnectionLimits,
) -> impl Stream<Item = Admitted> + Send + 'static {
    unfold((listener, ConnectionSlots::new(limits)), |(listener, slots)| async move {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    // Small messages are sent at once: many an epoch is shorter than the delay otherwise.
                    if stream.set_nodelay(true).is_ok()
                        && let Some((slot, gives_way)) = slots.take(peer.ip())
                    {
                        let admitted = Admitted { stream, gives_way, slot: Arc::new(slot) };
                        return Some((admitted, (listener, slots)));
                    }
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    })
}

/// The connections of a listener for calls, decrypted where there is a certificate. What does not begin to speak HTTP/2 in
/// time is closed.
pub(crate) fn connections(
    listener: TcpListener,
    limits: ConnectionLimits,
    tls: Option<Arc<LiveTls>>,
    opening: Duration,
) -> impl Stream<Item = io::Result<Connection>> + Send + 'static {
    let opened = admitted(listener, limits).map(move |admitted| {
        let tls = tls.clone();
        async move {
            match tls {
                None => Some(Connection::plain(admitted, opening)),
                // Handshakes take time, and proceed in parallel.
                Some(tls) => tokio::spawn(Connection::encrypted(admitted, tls, opening)).await.ok()?,
            }
        }
    });
    opened.buffer_unordered(limits.connections.max(1)).filter_map(async |connection| connection.map(Ok))
}

/// A connection that counts for as long as it is open, and ends when it has to give way.
struct Admitted {
    stream: TcpStream,
    gives_way: oneshot::Receiver<()>,
    slot: Arc<ConnectionSlot>,
}

impl AsyncRead for Admitted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if Pin::new(&mut self.gives_way).poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Admitted {
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

impl Connected for Admitted {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

/// Who calls: the address, the certificates that were shown, and the place among the connections.
#[derive(Clone)]
pub(crate) struct Caller {
    tcp: TcpConnectInfo,
    tls: Option<TlsConnectInfo<TcpConnectInfo>>,
    slot: Arc<ConnectionSlot>,
}

impl Caller {
    pub(crate) fn address(&self) -> IpAddr {
        self.slot.address()
    }

    /// Notes that a call of this connection was permitted.
    pub(crate) fn mark_permitted(&self) {
        self.slot.mark_permitted();
    }

    /// Says who calls in the way in which requests are asked for it.
    pub(crate) fn introduce(self, extensions: &mut Extensions) {
        match self.tls {
            Some(tls) => drop(extensions.insert(tls)),
            None => drop(extensions.insert(self.tcp)),
        }
    }
}

/// A connection for calls.
pub(crate) struct Connection {
    wire: GatheredWrites<Box<dyn Wire>>,
    caller: Caller,
    /// How many bytes of the first words are missing, and until when.
    opening: Option<(usize, Pin<Box<Sleep>>)>,
}

impl Connection {
    fn plain(admitted: Admitted, opening: Duration) -> Self {
        let caller = Caller { tcp: admitted.connect_info(), tls: None, slot: admitted.slot.clone() };
        Self::open(Box::new(admitted), caller, Instant::now() + opening)
    }

    async fn encrypted(admitted: Admitted, tls: Arc<LiveTls>, opening: Duration) -> Option<Self> {
        let deadline = Instant::now() + opening;
        let (tcp, slot) = (admitted.connect_info(), admitted.slot.clone());
        let accepted = tls.call_acceptor().accept(admitted);
        let accepted = tokio::time::timeout_at(deadline, accepted).await.ok()?;
        let encrypted = tls.admit(accepted.inspect_err(|error| tls.note_failure(error)).ok()?);
        let caller = Caller { tcp, tls: Some(encrypted.connect_info()), slot };
        Some(Self::open(Box::new(encrypted), caller, deadline))
    }

    fn open(wire: Box<dyn Wire>, caller: Caller, deadline: Instant) -> Self {
        let wire = GatheredWrites::new(wire);
        Self { wire, caller, opening: Some((PREFACE, Box::pin(tokio::time::sleep_until(deadline)))) }
    }
}

impl Connected for Connection {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        self.caller.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.wire).poll_read(cx, buf);
        let Some((missing, deadline)) = &mut self.opening else { return read };
        *missing = missing.saturating_sub(buf.filled().len() - before);
        if *missing == 0 {
            self.opening = None;
        } else if read.is_pending() && deadline.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.wire).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.wire).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.wire.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_shutdown(cx)
    }
}

/// A connection, whether encrypted or not.
trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// The address at the other end of an HTTP request.
#[derive(Clone, Copy)]
pub(crate) struct HttpPeer(pub(crate) IpAddr);

/// The place of an HTTP connection.
#[derive(Clone)]
pub(crate) struct HttpSlot(Arc<ConnectionSlot>);

impl HttpSlot {
    /// Notes that the connection gives way to no other from now on.
    pub(crate) fn keep(&self) {
        self.0.mark_permitted();
    }
}

/// Serves HTTP. Connections proceed in parallel, so that a slow one delays no other, and end with this. Where all places
/// are taken the oldest connection gives way: who probes asks at once, and is always answered.
pub(crate) async fn serve_http(
    listener: TcpListener,
    tls: Option<Arc<LiveTls>>,
    router: axum::Router,
    head: Duration,
) {
    let mut incoming = std::pin::pin!(admitted(listener, FEW));
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            Some(admitted) = incoming.next() => {
                let served = serve_one(admitted, tls.clone(), router.clone(), head);
                open.spawn(tokio::time::timeout(LONGEST_HTTP, served));
            }
            Some(_) = open.join_next() => {}
            else => return,
        }
    }
}

async fn serve_one(admitted: Admitted, tls: Option<Arc<LiveTls>>, router: axum::Router, head: Duration) {
    let (peer, slot) = (HttpPeer(admitted.slot.address()), HttpSlot(admitted.slot.clone()));
    let wire: Box<dyn Wire> = match tls {
        None => Box::new(admitted),
        Some(tls) => match tokio::time::timeout(OPENING, tls.http_acceptor().accept(admitted)).await {
            Ok(Ok(encrypted)) => Box::new(encrypted),
            _ => return,
        },
    };
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(head).max_buf_size(LARGEST_HEAD);
    // A caller that hangs up in the middle is gone.
    let service = TowerToHyperService::new(router.layer(Extension(peer)).layer(Extension(slot)));
    let _ = server.serve_connection(TokioIo::new(wire), service).await;
}

#[cfg(test)]
mod tests {
    use super::super::tls::Tls;
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_rustls::rustls::RootCertStore;

    fn tls() -> (Tls, RootCertStore) {
        let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let tls = Tls::new(own.cert.pem().into_bytes(), own.signing_key.serialize_pem().into_bytes(), None);
        let mut roots = RootCertStore::empty();
        roots.add(own.cert.der().clone()).unwrap();
        (tls.unwrap(), roots)
    }

    /// The error that ends a connection, as the server of calls sees it.
    async fn ending(connection: &mut Connection) -> io::ErrorKind {
        let mut bytes = [0; 64];
        loop {
            match connection.read(&mut bytes).await {
                Ok(0) => return io::ErrorKind::UnexpectedEof,
                Ok(_) => {}
                Err(error) => return error.kind(),
            }
        }
    }

    const SOON: Duration = Duration::from_millis(300);

    #[tokio::test]
    async fn connections_that_say_nothing_are_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut calls = std::pin::pin!(connections(listener, ConnectionLimits::default(), None, SOON));
        let _silent = TcpStream::connect(address).await.unwrap();
        let mut half = TcpStream::connect(address).await.unwrap();
        half.write_all(b"PRI * HTTP/2.0").await.unwrap();
        let mut whole = TcpStream::connect(address).await.unwrap();
        whole.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        for _ in 0..2 {
            assert_eq!(ending(&mut calls.next().await.unwrap().unwrap()).await, io::ErrorKind::TimedOut);
        }
        let mut opened = calls.next().await.unwrap().unwrap();
        assert!(tokio::time::timeout(2 * SOON, ending(&mut opened)).await.is_err(), "it has begun to speak");
    }

    #[tokio::test]
    async fn encrypted_connections_that_say_nothing_are_closed() {
        use tokio_rustls::rustls::ClientConfig;
        let (tls, roots) = tls();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let tls = Some(Arc::new(LiveTls::new(tls)));
        let mut calls = std::pin::pin!(connections(listener, ConnectionLimits::default(), tls, 2 * SOON));
        // One never makes a handshake, and delays no other.
        let mut silent = TcpStream::connect(address).await.unwrap();
        let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let stream = TcpStream::connect(address).await.unwrap();
        let name = "localhost".to_owned().try_into().unwrap();
        let shaking = tokio::spawn(connector.connect(name, stream));
        let mut call = calls.next().await.unwrap().unwrap();
        assert!(call.connect_info().tls.is_some());
        let _encrypted = shaking.await.unwrap().unwrap();
        assert_eq!(ending(&mut call).await, io::ErrorKind::TimedOut);
        let _next = tokio::time::timeout(SOON, calls.next()).await;
        assert_eq!(silent.read(&mut [0; 64]).await.unwrap_or(0), 0, "closed, as it never shook hands");
    }

    #[tokio::test]
    async fn those_who_probe_are_answered_beside_any_number_of_half_requests() {
        let (address, _serving) = serve(Duration::from_mins(1)).await;
        let mut halves = vec![];
        for _ in 0..2 * FEW.of_one_peer {
            let mut half = TcpStream::connect(address).await.unwrap();
            half.write_all(b"GET / HTTP/1.1\r\nHost: he").await.unwrap();
            halves.push(half);
        }
        let mut probe = TcpStream::connect(address).await.unwrap();
        probe.write_all(b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        probe.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("here"), "{answer}");
        assert_eq!(halves[0].read(&mut [0; 64]).await.unwrap_or(0), 0, "the oldest gave way");
    }

    async fn serve(head: Duration) -> (std::net::SocketAddr, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = axum::Router::new().route("/", axum::routing::get(|| async { "here" }));
        (address, tokio::spawn(serve_http(listener, None, router, head)))
    }

    #[tokio::test]
    async fn half_a_request_is_not_waited_for() {
        let (address, _serving) = serve(Duration::from_millis(50)).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").await.unwrap();
        let mut answer = vec![0; 4096];
        let length = stream.read(&mut answer).await.unwrap();
        assert!(answer[..length].ends_with(b"here"), "{}", String::from_utf8_lossy(&answer[..length]));
        stream.write_all(b"GET / HTTP/1.1\r\nHost: he").await.unwrap();
        while stream.read(&mut answer).await.is_ok_and(|length| length > 0) {}
    }
}
