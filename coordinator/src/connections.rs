//! Connections: so many at a time, and not all of them one peer's; encrypted where that is asked for.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_stream::{Stream, StreamExt};
use tonic::transport::server::{Connected, TcpConnectInfo};

/// How long a handshake may take.
pub(crate) const HANDSHAKE: Duration = Duration::from_secs(5);

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

/// Where HTTP comes in. Handshakes go on beside each other, so that a slow one holds up nobody.
pub(crate) struct HttpListener {
    ready: mpsc::Receiver<Box<dyn Wire>>,
    address: io::Result<SocketAddr>,
}

impl HttpListener {
    pub(crate) fn new(listener: TcpListener, acceptor: Option<TlsAcceptor>) -> Self {
        let address = listener.local_addr();
        let (sender, ready) = mpsc::channel(16);
        tokio::spawn(accept(connections(listener, FEW), acceptor, sender));
        Self { ready, address }
    }
}

async fn accept(
    incoming: impl Stream<Item = io::Result<Connection>>,
    acceptor: Option<TlsAcceptor>,
    ready: mpsc::Sender<Box<dyn Wire>>,
) {
    let mut incoming = std::pin::pin!(incoming);
    loop {
        let connection = tokio::select! {
            connection = incoming.next() => connection,
            () = ready.closed() => return,
        };
        match connection {
            Some(Ok(connection)) => {
                tokio::spawn(shake_hands(connection, acceptor.clone(), ready.clone()));
            }
            // Out of file descriptors, most likely: others will close theirs.
            Some(Err(_)) => tokio::time::sleep(Duration::from_millis(100)).await,
            None => return,
        }
    }
}

async fn shake_hands(
    connection: Connection,
    acceptor: Option<TlsAcceptor>,
    ready: mpsc::Sender<Box<dyn Wire>>,
) {
    let wire: Box<dyn Wire> = match acceptor {
        None => Box::new(connection),
        Some(acceptor) => match tokio::time::timeout(HANDSHAKE, acceptor.accept(connection)).await {
            Ok(Ok(encrypted)) => Box::new(encrypted),
            _ => return,
        },
    };
    let _ = ready.send(wire).await;
}

impl axum::serve::Listener for HttpListener {
    type Io = Box<dyn Wire>;
    type Addr = ();

    async fn accept(&mut self) -> (Self::Io, ()) {
        match self.ready.recv().await {
            Some(wire) => (wire, ()),
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<()> {
        match &self.address {
            Ok(_) => Ok(()),
            Err(error) => Err(io::Error::from(error.kind())),
        }
    }
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
}
