//! Connections: so many at a time, and not all of them one peer's; encrypted where that is asked for.

use super::tls::LiveTls;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_stream::{Stream, StreamExt};
use tonic::transport::server::{Connected, TcpConnectInfo};

/// How long a handshake may take.
pub(crate) const HANDSHAKE: Duration = Duration::from_secs(5);
/// How long the head of an HTTP request may take, from the connection or the request before it.
pub(crate) const HEAD: Duration = Duration::from_secs(10);

/// How many connections there may be at a time.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Of all peers together.
    pub connections: usize,
    /// Of one address.
    pub of_one_peer: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 12_000, of_one_peer: 4000 }
    }
}

/// What probes and scrapers need.
pub(crate) const FEW: Limits = Limits { connections: 512, of_one_peer: 64 };

/// The connections of a listener. Small messages are sent at once: many an epoch is shorter than the delay otherwise.
pub fn connections(
    listener: TcpListener,
    limits: Limits,
) -> impl Stream<Item = io::Result<Connection>> + Send + 'static {
    let census = Census { limits, counts: Arc::default() };
    TcpListenerStream::new(listener).filter_map(move |connection| match connection {
        Ok(stream) => census.admit(stream),
        Err(error) => Some(Err(error)),
    })
}

/// Who is connected.
#[derive(Clone)]
struct Census {
    limits: Limits,
    counts: Arc<Mutex<Counts>>,
}

#[derive(Default)]
struct Counts {
    all: usize,
    of_peers: BTreeMap<IpAddr, usize>,
}

impl Census {
    /// The connection, unless there are too many; then it is closed.
    fn admit(&self, stream: TcpStream) -> Option<io::Result<Connection>> {
        let peer = match stream.peer_addr().and_then(|peer| stream.set_nodelay(true).map(|()| peer.ip())) {
            Ok(peer) => peer,
            // It is gone already.
            Err(error) => return Some(Err(io::Error::new(io::ErrorKind::ConnectionAborted, error))),
        };
        let Some(seat) = self.seat(peer) else {
            tracing::warn!(%peer, "connection refused: too many are open");
            return None;
        };
        Some(Ok(Connection { stream, _seat: seat }))
    }

    fn seat(&self, peer: IpAddr) -> Option<Seat> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let of_peer = counts.of_peers.get(&peer).copied().unwrap_or(0);
        if counts.all >= self.limits.connections || of_peer >= self.limits.of_one_peer {
            return None;
        }
        counts.all += 1;
        counts.of_peers.insert(peer, of_peer + 1);
        Some(Seat { peer, counts: self.counts.clone() })
    }
}

/// A place among the connections, free again once it is dropped.
struct Seat {
    peer: IpAddr,
    counts: Arc<Mutex<Counts>>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.all -= 1;
        if let Some(of_peer) = counts.of_peers.get_mut(&self.peer) {
            *of_peer -= 1;
            if *of_peer == 0 {
                counts.of_peers.remove(&self.peer);
            }
        }
    }
}

/// A connection that counts for as long as it is open.
pub struct Connection {
    stream: TcpStream,
    _seat: Seat,
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
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

/// A connection, whether encrypted or not.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// Serves HTTP. Connections go on beside each other, so that a slow one holds up nobody, and end with this.
pub(crate) async fn serve_http(
    listener: TcpListener,
    tls: Option<Arc<LiveTls>>,
    router: axum::Router,
    head: Duration,
) {
    let mut incoming = std::pin::pin!(connections(listener, FEW));
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            connection = incoming.next() => match connection {
                Some(Ok(connection)) => {
                    open.spawn(serve_one(connection, tls.clone(), router.clone(), head));
                }
                // Out of file descriptors, most likely: others will close theirs.
                Some(Err(_)) => tokio::time::sleep(Duration::from_millis(100)).await,
                None => return,
            },
            Some(_) = open.join_next() => {}
        }
    }
}

async fn serve_one(connection: Connection, tls: Option<Arc<LiveTls>>, router: axum::Router, head: Duration) {
    let wire: Box<dyn Wire> = match tls {
        None => Box::new(connection),
        Some(tls) => match tokio::time::timeout(HANDSHAKE, tls.http_acceptor().accept(connection)).await {
            Ok(Ok(encrypted)) => Box::new(encrypted),
            _ => return,
        },
    };
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(head);
    // Whoever hangs up in the middle of something is gone.
    let _ = server.serve_connection(TokioIo::new(wire), TowerToHyperService::new(router)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_limited_and_given_back() {
        let census = Census { limits: Limits { connections: 3, of_one_peer: 2 }, counts: Arc::default() };
        let [one, other] = [1, 2].map(|n| IpAddr::from([10, 0, 0, n]));
        let first = census.seat(one);
        let second = census.seat(one);
        assert!(first.is_some() && second.is_some());
        assert!(census.seat(one).is_none(), "one peer has two");
        let third = census.seat(other);
        assert!(third.is_some());
        assert!(census.seat(other).is_none(), "there are three in all");
        drop(first);
        assert!(census.seat(one).is_some());
        drop((second, third));
        assert!(census.counts.lock().unwrap().of_peers.is_empty());
    }

    #[tokio::test]
    async fn half_a_request_is_not_waited_for() {
        use axum::routing::get;
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = axum::Router::new().route("/", get(|| async { "here" }));
        let _serving = tokio::spawn(serve_http(listener, None, router, Duration::from_millis(50)));
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").await.unwrap();
        let mut answer = vec![0; 4096];
        let length = stream.read(&mut answer).await.unwrap();
        assert!(answer[..length].ends_with(b"here"), "{}", String::from_utf8_lossy(&answer[..length]));
        stream.write_all(b"GET / HTTP/1.1\r\nHost: he").await.unwrap();
        while stream.read(&mut answer).await.is_ok_and(|length| length > 0) {}
    }
}
