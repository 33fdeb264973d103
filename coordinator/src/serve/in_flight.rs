//! Limits on the bytes of unfinished calls, for each address and for all. They apply before a call is authenticated and before
//! any of it is read.

use super::call_times::{CallTimes, Timer};
use super::connections::Caller;
use super::principal::network;
use axum::http::{Extensions, HeaderMap, HeaderValue, Request, Response};
use bytes::Bytes;
use futures::future::{BoxFuture, Either};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Sleep;
use tonic::Status;
use tonic::body::Body;
use tower::{Layer, Service};

/// Bytes in flight from one address, or from one /64 network of IPv6.
pub(crate) const OF_ONE_PEER: u64 = 64 << 20;
/// Bytes in flight from all addresses.
pub(crate) const OF_ALL: u64 = 256 << 20;
/// This fraction of both is for small calls only, so that a flood of large bodies leaves room for renewals, leases
/// and the calls of operators.
const RESERVED: u64 = 8;
/// A call is small as long as its head and what has come of its body are not longer than this.
const SMALL_CALL: u64 = 16 << 10;
/// What a call counts for before its body arrives.
const OF_A_CALL: u64 = 4 << 10;
/// The longest body of a call that delivers nothing: lists of leases, and names.
const SMALL_BODY: u64 = 512 << 10;
/// Calls that need no token. They are counted separately, so that a flood of them does not shut out other calls.
const OPEN_TO_ALL: &str = "/grpc.health.v1.Health/";
/// Of these the one whose reply never ends: such calls are counted apart from probes.
const WATCHING: &str = "/grpc.health.v1.Health/Watch";
/// The longest body of such a call.
const OPEN_BODY: u64 = 1 << 10;
/// How long such a body may take.
const OPEN_TIME: Duration = Duration::from_secs(5);
/// Bytes of such calls in flight from one address, and from all.
const OPEN_OF_ONE_PEER: u64 = 1 << 20;
const OPEN_OF_ALL: u64 = 16 << 20;
/// The longest head of a delivery: until it has come, nobody knows whose the call is, and it takes room of those of workers.
const LARGEST_HEAD: u64 = 64 << 10;
/// How long a reply may take that is not small, beside a second for each 256 KiB of it: it takes room until it is read.
const READ_TIME: Duration = Duration::from_secs(20);
const SLOWEST_READER: u64 = 256 << 10;
/// The delay of a rejection: a flood that is answered at once comes back at once.
const PAUSE: Duration = Duration::from_millis(250);
/// The calls whose bodies have limits of their own.
const DELIVERING: [&str; 3] =
    ["/atoll.v1.Worker/Complete", "/atoll.v1.Worker/Checkpoint", "/atoll.v1.Operator/Submit"];

/// Of these the calls that begin with a head.
const WITH_HEAD: &str = "/atoll.v1.Worker/";
/// What a message of gRPC begins with: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// The calls of operators that change nothing: viewers may make them too.
const READ_ONLY: [&str; 3] =
    ["/atoll.v1.Operator/View", "/atoll.v1.Operator/ListRuns", "/atoll.v1.Operator/Status"];

/// Stands with a request that changes nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadOnly;

/// All calls that have not ended.
#[derive(Debug)]
pub(crate) struct InFlight {
    of_one_peer: u64,
    of_all: u64,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    all: u64,
    of_peers: BTreeMap<IpAddr, u64>,
}

impl Default for InFlight {
    fn default() -> Self {
        Self { of_one_peer: OF_ONE_PEER, of_all: OF_ALL, counts: Mutex::default() }
    }
}

impl InFlight {
    /// For the calls that need no token.
    fn open_to_all() -> Self {
        Self { of_one_peer: OPEN_OF_ONE_PEER, of_all: OPEN_OF_ALL, counts: Mutex::default() }
    }

    fn take(&self, peer: Option<IpAddr>, bytes: u64, is_small: bool) -> bool {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let of_peer = peer.map_or(0, |peer| counts.of_peers.get(&peer).copied().unwrap_or(0));
        let open = |limit: u64| if is_small { limit } else { limit - limit / RESERVED };
        if counts.all + bytes > open(self.of_all) || of_peer + bytes > open(self.of_one_peer) {
            return false;
        }
        counts.all += bytes;
        if let Some(peer) = peer {
            counts.of_peers.insert(peer, of_peer + bytes);
        }
        true
    }

    fn give_back(&self, peer: Option<IpAddr>, bytes: u64) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.all -= bytes;
        if let Some(peer) = peer
            && let Some(of_peer) = counts.of_peers.get_mut(&peer)
        {
            *of_peer -= bytes;
            if *of_peer == 0 {
                counts.of_peers.remove(&peer);
            }
        }
    }
}

/// A call that has not ended, and what it has taken of the bytes that may be on their way.
#[derive(Debug)]
pub(crate) struct CallBytes {
    in_flight: Arc<InFlight>,
    peer: Option<IpAddr>,
    /// Up to this many bytes it is small: none, if it delivers something.
    small: u64,
    taken: AtomicU64,
    /// How long its reply is, if that is not short.
    reply: AtomicU64,
}

impl CallBytes {
    fn begin(in_flight: &Arc<InFlight>, peer: Option<IpAddr>, small: u64, bytes: u64) -> Option<Arc<Self>> {
        let begins = in_flight.take(peer, bytes, bytes <= small);
        begins.then(|| {
            Arc::new(Self {
                in_flight: in_flight.clone(),
                peer,
                small,
                taken: bytes.into(),
                reply: AtomicU64::new(0),
            })
        })
    }

    fn take(&self, bytes: u64) -> bool {
        let is_small = self.taken.load(Ordering::Relaxed) + bytes <= self.small;
        let is_taken = self.in_flight.take(self.peer, bytes, is_small);
        if is_taken {
            self.taken.fetch_add(bytes, Ordering::Relaxed);
        }
        is_taken
    }

    /// Notes that its reply is of this number of bytes, which decides how long it may take to be read.
    pub(crate) fn note_reply(&self, bytes: u64) {
        self.reply.store(bytes, Ordering::Relaxed);
    }

    /// Takes room for a reply of this number of bytes, until it is read.
    pub(crate) fn reply(&self, bytes: u64) -> Result<(), Status> {
        self.note_reply(bytes);
        if self.take(bytes) { Ok(()) } else { Err(exhausted()) }
    }

    /// The address that it comes from, or its network.
    pub(crate) fn peer(&self) -> Option<IpAddr> {
        self.peer
    }

    /// Notes that bytes are accounted for elsewhere from now on.
    pub(crate) fn give_back(&self, bytes: u64) {
        let taken = self
            .taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| Some(taken.saturating_sub(bytes)));
        let before = taken.unwrap_or_else(|same| same);
        self.in_flight.give_back(self.peer, before.min(bytes));
    }
}

impl Drop for CallBytes {
    fn drop(&mut self) {
        self.in_flight.give_back(self.peer, *self.taken.get_mut());
    }
}

fn exhausted() -> Status {
    Status::resource_exhausted("the coordinator has too many unfinished calls: retry")
}

/// Counts the bytes of every call, and times it.
#[derive(Clone, Debug)]
pub(crate) struct CountLayer {
    in_flight: Arc<InFlight>,
    open_to_all: Arc<InFlight>,
    watching: Arc<InFlight>,
    times: CallTimes,
}

impl CountLayer {
    pub(crate) fn new(times: CallTimes) -> Self {
        let [open_to_all, watching] = [(), ()].map(|()| Arc::new(InFlight::open_to_all()));
        Self { in_flight: Arc::default(), open_to_all, watching, times }
    }
}

impl<S> Layer<S> for CountLayer {
    type Service = Counting<S>;

    fn layer(&self, inner: S) -> Counting<S> {
        let Self { in_flight, open_to_all, watching, times } = self.clone();
        Counting { inner, in_flight, open_to_all, watching, times }
    }
}

/// A service whose calls are counted.
#[derive(Clone, Debug)]
pub(crate) struct Counting<S> {
    inner: S,
    in_flight: Arc<InFlight>,
    open_to_all: Arc<InFlight>,
    watching: Arc<InFlight>,
    times: CallTimes,
}

type Answer<E> = Result<Response<Body>, E>;

impl<S> Service<Request<Body>> for Counting<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Either<BoxFuture<'static, Answer<S::Error>>, Answering<S::Future>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if let Some(caller) = request.extensions().get::<Caller>().cloned() {
            caller.introduce(request.extensions_mut());
        }
        let peer = peer(request.extensions());
        let head: usize =
            request.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        let path = request.uri().path();
        let is_open = path.starts_with(OPEN_TO_ALL);
        let (longest, small) = match DELIVERING.contains(&path) {
            true => (u64::MAX, 0),
            false if is_open => (OPEN_BODY, SMALL_CALL),
            false => (SMALL_BODY, SMALL_CALL),
        };
        let prefix = (small == 0 && path.starts_with(WITH_HEAD)).then(|| Vec::with_capacity(PREFIX));
        let in_flight = match is_open {
            true if path == WATCHING => &self.watching,
            true => &self.open_to_all,
            false => &self.in_flight,
        };
        let Some(call) = CallBytes::begin(in_flight, peer, small, OF_A_CALL + head as u64) else {
            drop(request);
            return Either::Left(Box::pin(refuse()));
        };
        let timer = self.times.begin(request.uri().path());
        request.extensions_mut().insert(call.clone());
        if READ_ONLY.contains(&request.uri().path()) {
            request.extensions_mut().insert(ReadOnly);
        }
        let patience = is_open.then(|| Box::pin(tokio::time::sleep(OPEN_TIME)));
        let request = request.map(|body| {
            let call = call.clone();
            Body::new(Counted { body, call, longest, left: longest, prefix, patience, refused: None })
        });
        Either::Right(Answering { answer: Box::pin(self.inner.call(request)), timer, call })
    }
}

async fn refuse<E>() -> Answer<E> {
    tokio::time::sleep(PAUSE).await;
    Ok(exhausted().into_http())
}

/// The address at the other end of a call, or its network.
pub(crate) fn peer(extensions: &Extensions) -> Option<IpAddr> {
    use tonic::transport::server::TcpConnectInfo;
    let address = match extensions.get::<Caller>() {
        Some(caller) => caller.address(),
        None => extensions.get::<TcpConnectInfo>()?.remote_addr()?.ip(),
    };
    Some(network(address))
}

/// A call until it is answered.
pub(crate) struct Answering<F> {
    answer: Pin<Box<F>>,
    timer: Option<Timer>,
    call: Arc<CallBytes>,
}

impl<E, F: Future<Output = Answer<E>>> Future for Answering<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let answer = ready!(self.answer.as_mut().poll(cx));
        self.timer.take().into_iter().for_each(Timer::stop);
        let call = self.call.clone();
        Poll::Ready(answer.map(|mut answer| {
            shorten_reason(answer.headers_mut());
            answer.map(|body| Reply::begin(body, call))
        }))
    }
}

/// The longest reason of an error, in bytes: as much as Kubernetes keeps of a termination message.
const LONGEST_REASON: usize = 4096;

/// Cuts the reason of an error that is too long. It travels in a header, where a byte may become three, and callers reject
/// headers of more than 16 KiB: they would never learn why they are refused.
fn shorten_reason(headers: &mut HeaderMap) {
    let length = headers.get("grpc-message").map_or(0, HeaderValue::len);
    if length <= LONGEST_REASON {
        return;
    }
    let Some(status) = Status::from_header_map(headers) else { return };
    let reason = status.message();
    if reason.len() <= LONGEST_REASON {
        return;
    }
    let cut = format!("{} [cut]", &reason[..reason.floor_char_boundary(LONGEST_REASON)]);
    // What could not be cut stays as it was.
    let _ = Status::new(status.code(), cut).add_header(headers);
}

/// A reply, which takes room until it is read. A caller that does not read it in time does without it.
struct Reply(Arc<Mutex<Option<Unread>>>);

struct Unread {
    body: Body,
    _call: Arc<CallBytes>,
}

impl Reply {
    fn begin(body: Body, call: Arc<CallBytes>) -> Body {
        if body.is_end_stream() {
            return body;
        }
        let length = call.reply.load(Ordering::Relaxed);
        let reply = Arc::new(Mutex::new(Some(Unread { body, _call: call })));
        if length > SMALL_CALL {
            let patience = READ_TIME + Duration::from_secs(length / SLOWEST_READER);
            let unread = Arc::downgrade(&reply);
            tokio::spawn(async move {
                tokio::time::sleep(patience).await;
                if let Some(unread) = unread.upgrade() {
                    drop(unread.lock().unwrap_or_else(PoisonError::into_inner).take());
                }
            });
        }
        Body::new(Self(reply))
    }
}

impl HttpBody for Reply {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let mut unread = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *unread {
            Some(Unread { body, .. }) => Pin::new(body).poll_frame(cx),
            None => Poll::Ready(Some(Err(Status::deadline_exceeded("the reply was not read in time")))),
        }
    }

    fn is_end_stream(&self) -> bool {
        let unread = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        unread.as_ref().is_some_and(|unread| unread.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let unread = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        unread.as_ref().map(|unread| unread.body.size_hint()).unwrap_or_default()
    }
}

/// A body whose bytes are counted as they come.
struct Counted {
    body: Body,
    call: Arc<CallBytes>,
    longest: u64,
    left: u64,
    /// What its first message begins with, as far as that has come, if that is a head.
    prefix: Option<Vec<u8>>,
    /// Until when all of it has to come, if that is limited.
    patience: Option<Pin<Box<Sleep>>>,
    /// Until when the refusal waits, once there is no room for what comes, and what it says.
    refused: Option<(Pin<Box<Sleep>>, Status)>,
}

impl Counted {
    /// Ends the body with an error, after a while. The rest of it is dropped as it arrives.
    fn refuse(&mut self, status: Status) {
        self.body = Body::empty();
        self.refused = Some((Box::pin(tokio::time::sleep(PAUSE)), status));
    }
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Some((pause, status)) = &mut self.refused {
            ready!(pause.as_mut().poll(cx));
            return Poll::Ready(Some(Err(status.clone())));
        }
        let frame = match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                let Some(patience) = &mut self.patience else { return Poll::Pending };
                ready!(patience.as_mut().poll(cx));
                let error = "the rest of the body did not come in time";
                return Poll::Ready(Some(Err(Status::deadline_exceeded(error))));
            }
        };
        if let Some(Ok(frame)) = &frame
            && let Some(bytes) = frame.data_ref()
        {
            let length = bytes.len() as u64;
            let Some(left) = self.left.checked_sub(length) else {
                let longest = self.longest >> 10;
                let error = format!("expected a body of at most {longest} KiB for this call, found more");
                return Poll::Ready(Some(Err(Status::out_of_range(error))));
            };
            self.left = left;
            if let Some(prefix) = self.prefix.as_mut().filter(|prefix| prefix.len() < PREFIX) {
                let missing = PREFIX - prefix.len();
                prefix.extend(bytes.iter().take(missing));
                if let &[_, a, b, c, d] = &prefix[..]
                    && u64::from(u32::from_be_bytes([a, b, c, d])) > LARGEST_HEAD
                {
                    let error = format!("expected a head of at most {} KiB, found more", LARGEST_HEAD >> 10);
                    self.refuse(Status::out_of_range(error));
                    return self.poll_frame(cx);
                }
            }
            if !self.call.take(length) {
                self.refuse(exhausted());
                return self.poll_frame(cx);
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.refused.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_bounded_and_given_back() {
        let in_flight = Arc::new(InFlight { of_one_peer: 100, of_all: 150, counts: Mutex::default() });
        let [one, other] = [1, 2].map(|n| Some(IpAddr::from([10, 0, 0, n])));
        let begin = |peer, bytes| CallBytes::begin(&in_flight, peer, u64::MAX, bytes);
        let first = begin(one, 60).unwrap();
        assert!(begin(one, 60).is_none(), "of one address 100");
        let second = begin(other, 60).unwrap();
        assert!(begin(other, 40).is_none(), "of all 150");
        assert!(first.take(30) && !first.take(1));
        first.give_back(50);
        assert!(second.take(40));
        first.give_back(1000);
        drop((first, second));
        let counts = in_flight.counts.lock().unwrap();
        assert!(counts.all == 0 && counts.of_peers.is_empty(), "{counts:?}");
    }

    /// A body that stops after some bytes.
    struct Part {
        bytes: Option<Bytes>,
        ends: bool,
    }

    impl HttpBody for Part {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            match self.bytes.take() {
                Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                None if self.ends => Poll::Ready(None),
                None => Poll::Pending,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_needs_no_token_is_short_and_soon_over_and_takes_no_room_of_others() {
        let service = tower::service_fn(|request: Request<Body>| async move {
            let mut body = request.into_body();
            while let Some(frame) = futures::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                if let Err(status) = frame {
                    return Ok::<_, std::convert::Infallible>(status.into_http());
                }
            }
            Ok(Response::new(Body::empty()))
        });
        let mut counting = CountLayer::new(CallTimes::default()).layer(service);
        let mut call = |path: &str, bytes: usize, ends: bool| {
            let body = Body::new(Part { bytes: Some(Bytes::from(vec![0; bytes])), ends });
            let request = Request::builder().uri(path).body(body).unwrap();
            counting.call(request)
        };
        let code = |answer: Answer<std::convert::Infallible>| {
            let headers = answer.unwrap().headers().clone();
            Status::from_header_map(&headers).map(|status| status.code())
        };
        let health = format!("{OPEN_TO_ALL}Check");
        assert_eq!(code(call(&health, 10, true).await), None);
        assert_eq!(code(call(&health, 2000, true).await), Some(tonic::Code::OutOfRange));
        let start = tokio::time::Instant::now();
        assert_eq!(code(call(&health, 10, false).await), Some(tonic::Code::DeadlineExceeded));
        assert_eq!(start.elapsed(), OPEN_TIME);
        let unfinished: Vec<_> = (0..OPEN_OF_ALL / OF_A_CALL).map(|_| call(&health, 10, false)).collect();
        assert_eq!(code(call(&health, 10, true).await), Some(tonic::Code::ResourceExhausted));
        assert_eq!(code(call("/atoll.v1.Worker/Complete", 1 << 20, true).await), None);
        drop(unfinished);
        assert_eq!(code(call(&health, 10, true).await), None);
    }

    /// HTTP/2 clients reject headers of more than 16 KiB, and a byte of a reason takes up to three there.
    #[tokio::test]
    async fn the_reason_of_an_error_fits_into_headers() {
        for (reason, cut) in [("a", 0), ("é", 100_000), ("\u{2028}x", 2000), ("mistake\n", 3000)] {
            let reason = reason.repeat(cut.max(1));
            let told = reason.clone();
            let service = tower::service_fn(move |_: Request<Body>| {
                let status = Status::failed_precondition(told.clone());
                async { Ok::<_, std::convert::Infallible>(status.into_http::<Body>()) }
            });
            let mut counting = CountLayer::new(CallTimes::default()).layer(service);
            let request = Request::builder().uri("/atoll.v1.Worker/Join").body(Body::empty()).unwrap();
            let headers = counting.call(request).await.unwrap().headers().clone();
            assert!(headers.iter().map(|(_, value)| value.len()).sum::<usize>() < 15 << 10);
            let status = Status::from_header_map(&headers).unwrap();
            assert_eq!(status.code(), tonic::Code::FailedPrecondition);
            let (kept, is_cut) = status
                .message()
                .strip_suffix(" [cut]")
                .map_or((status.message(), false), |kept| (kept, true));
            assert!(reason.starts_with(kept) && is_cut == (cut > 0), "{}", status.message());
            assert!(kept.len() > 4000 || !is_cut);
        }
    }

    /// A head says whose a delivery is, and is short: what begins with more is none, however much of it comes.
    #[tokio::test(start_paused = true)]
    async fn a_delivery_that_begins_with_no_head_takes_no_room() {
        let service = tower::service_fn(|request: Request<Body>| async move {
            let mut body = request.into_body();
            let frame = futures::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
            Ok::<_, std::convert::Infallible>(match frame {
                Some(Err(status)) => status.into_http(),
                _ => Response::new(Body::empty()),
            })
        });
        let mut counting = CountLayer::new(CallTimes::default()).layer(service);
        let mut code = async |path: &str, length: u32| {
            let mut bytes = vec![0; 1 << 20];
            bytes[1..PREFIX].copy_from_slice(&length.to_be_bytes());
            let body = Body::new(Part { bytes: Some(bytes.into()), ends: false });
            let request = Request::builder().uri(path).body(body).unwrap();
            let answer = counting.call(request).await.unwrap();
            Status::from_header_map(answer.headers()).map(|status| status.code())
        };
        for path in ["/atoll.v1.Worker/Complete", "/atoll.v1.Worker/Checkpoint"] {
            assert_eq!(code(path, 1 << 20).await, Some(tonic::Code::OutOfRange));
            assert_eq!(code(path, LARGEST_HEAD as u32).await, None, "chunks may follow it at once");
        }
        assert_eq!(code("/atoll.v1.Operator/Submit", 1 << 20).await, None, "it has no head");
    }

    #[tokio::test(start_paused = true)]
    async fn a_reply_takes_room_until_it_is_read_or_given_up() {
        let service = tower::service_fn(|request: Request<Body>| async move {
            let call = request.extensions().get::<Arc<CallBytes>>().unwrap();
            Ok::<_, std::convert::Infallible>(match call.reply(20 << 20) {
                Ok(()) => {
                    Response::new(Body::new(Part { bytes: Some(Bytes::from_static(b"a")), ends: true }))
                }
                Err(status) => status.into_http(),
            })
        });
        let mut counting = CountLayer::new(CallTimes::default()).layer(service);
        let mut ask = async || {
            let request = Request::builder().uri("/atoll.v1.Worker/Fetch").body(Body::empty()).unwrap();
            let answer = counting.call(request).await.unwrap();
            let is_there = Status::from_header_map(answer.headers()).is_none();
            is_there.then(|| answer.into_body())
        };
        // 256 MiB for all, less an eighth.
        let mut held = vec![];
        while let Some(reply) = ask().await {
            held.push(reply);
        }
        assert_eq!(held.len(), 11);
        let mut second = held.pop().unwrap();
        drop(held.pop());
        assert!(ask().await.is_some(), "one was read");
        let mut read = async || futures::future::poll_fn(|cx| Pin::new(&mut second).poll_frame(cx)).await;
        assert!(matches!(read().await, Some(Ok(_))));
        tokio::time::sleep(READ_TIME + Duration::from_secs(100)).await;
        assert!(matches!(read().await, Some(Err(_))), "it was given up");
    }

    #[tokio::test(start_paused = true)]
    async fn who_watches_the_health_of_a_coordinator_takes_room_and_none_of_probes() {
        let service = tower::service_fn(|_: Request<Body>| async move {
            let endless = Part { bytes: None, ends: false };
            Ok::<_, std::convert::Infallible>(Response::new(Body::new(endless)))
        });
        let mut counting = CountLayer::new(CallTimes::default()).layer(service);
        let mut ask = async |path: String| {
            let request = Request::builder().uri(path).body(Body::empty()).unwrap();
            let answer = counting.call(request).await.unwrap();
            let is_there = Status::from_header_map(answer.headers()).is_none();
            is_there.then(|| answer.into_body())
        };
        let mut watches = vec![];
        while let Some(watch) = ask(WATCHING.to_owned()).await {
            watches.push(watch);
        }
        assert_eq!(watches.len() as u64, OPEN_OF_ALL / OF_A_CALL);
        assert!(ask(format!("{OPEN_TO_ALL}Check")).await.is_some());
        watches.pop();
        assert!(ask(WATCHING.to_owned()).await.is_some());
    }

    #[test]
    fn small_calls_are_let_in_while_deliveries_hold_everything_that_they_may() {
        let in_flight = Arc::new(InFlight { of_one_peer: 160, of_all: 240, counts: Mutex::default() });
        let [one, other] = [1, 2].map(|n| Some(IpAddr::from([10, 0, 0, n])));
        let deliver = |peer, bytes| CallBytes::begin(&in_flight, peer, 0, bytes);
        let ask = |peer, bytes| CallBytes::begin(&in_flight, peer, 10, bytes);
        let delivery = deliver(one, 100).unwrap();
        assert!(!delivery.take(41) && delivery.take(40), "of one address 160 - 160 / 8");
        assert!(deliver(one, 1).is_none(), "the rest is for small calls");
        let small = ask(one, 6).unwrap();
        assert!(small.take(4) && !small.take(1), "it is small no more");
        let second = ask(one, 10).unwrap();
        assert!(ask(one, 1).is_none(), "of one address 160");
        assert!(deliver(other, 51).is_none(), "of all 240 - 240 / 8");
        let of_other = deliver(other, 50).unwrap();
        assert!(deliver(other, 1).is_none());
        assert!(ask(other, 10).is_some());
        drop((delivery, small, second, of_other));
        assert!(deliver(one, 140).is_some() && in_flight.counts.lock().unwrap().all == 0);
    }
}
