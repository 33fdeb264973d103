//! What workers call over gRPC: bodies are put together from their chunks, and everything else is the cluster's.

use super::call_times::CallTimes;
use super::in_flight::CallBytes;
use super::large_bodies::{LargeBodies, LargeBody};
use super::principal;
use crate::cluster::{Cluster, invalid};
use crate::rejection::Rejection;
use bytes::Bytes;
use evolution::codec::MAX_ENCODED;
use proto::Message;
use proto::calls::WorkerCalls;
use proto::chunks::{self, Assembly, ChunkError};
use proto::convert::WireError;
use proto::v1;
use proto::v1::worker_server::Worker;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use tokio::sync::SetOnce;
use tokio::time::Instant;
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

/// The largest body: what an epoch leaves behind is two encoded values and a few statistics.
const LARGEST_BODY: u64 = 2 * MAX_ENCODED as u64 + (16 << 20);

/// How long the head of a body may take.
const HEAD: Duration = Duration::from_secs(5);
/// How long the next part of a body may take.
const IDLE: Duration = Duration::from_secs(20);
/// How many bytes of a body come in a second at least, on average, if it takes more memory than others may.
const SLOWEST: u64 = 256 << 10;

/// The cluster, once it has read its store, or why there will be none. Calls that come before wait: a connection that is
/// answered is not given up.
#[derive(Clone, Default)]
pub(crate) struct ServedCluster {
    opened: Arc<SetOnce<Result<Cluster, String>>>,
    /// Why the cluster does not continue, once that is known.
    ended: Arc<SetOnce<String>>,
    /// Whether another coordinator has the store: calls belong there.
    is_standby: Arc<AtomicBool>,
    /// Set once a worker has learned why there will be no cluster.
    told: Arc<SetOnce<()>>,
    call_times: CallTimes,
}

impl ServedCluster {
    pub(crate) fn open(&self, cluster: Cluster) {
        assert!(self.opened.set(Ok(cluster)).is_ok(), "a cluster is opened once");
    }

    /// Rejects all calls from now on: this coordinator will never serve.
    pub(crate) fn refuse(&self, reason: String) {
        assert!(self.opened.set(Err(reason)).is_ok(), "a cluster is opened once");
    }

    /// Rejects all calls from now on: this coordinator cannot continue.
    pub(crate) fn end(&self, reason: String) {
        assert!(self.ended.set(reason).is_ok(), "a cluster ends once");
    }

    /// Whether calls are sent away because another coordinator has the store.
    pub(crate) fn stand_by(&self, standby: bool) {
        self.is_standby.store(standby, SeqCst);
    }

    pub(crate) fn is_standby(&self) -> bool {
        self.is_standby.load(SeqCst)
    }

    /// Whether this coordinator will never serve, or not any more.
    pub(crate) fn is_refused(&self) -> bool {
        self.ended.get().is_some() || self.opened.get().is_some_and(Result::is_err)
    }

    pub(crate) async fn cluster(&self) -> Result<&Cluster, Status> {
        if self.is_standby() {
            return Err(Status::unavailable("this coordinator stands by: another one has the store"));
        }
        if let Some(reason) = self.ended.get() {
            return Err(Status::failed_precondition(reason.clone()));
        }
        self.opened.wait().await.as_ref().map_err(|reason| Status::failed_precondition(reason.clone()))
    }

    /// Waits until a worker has learned why this coordinator does not serve.
    pub(crate) async fn has_told(&self) {
        self.told.wait().await;
    }

    /// How long calls have taken so far.
    pub(crate) fn call_times(&self) -> CallTimes {
        self.call_times.clone()
    }

    /// The cluster, if it is open.
    pub(crate) fn get(&self) -> Option<&Cluster> {
        self.opened.get().and_then(|opened| opened.as_ref().ok())
    }
}

/// The calls of workers.
#[derive(Clone)]
pub(crate) struct WorkerApi {
    served: ServedCluster,
    /// Memory for large bodies that are on their way here, and from here.
    bodies: Arc<LargeBodies>,
    replies: Arc<LargeBodies>,
}

impl WorkerApi {
    pub(crate) fn new(served: ServedCluster) -> Self {
        Self { served, bodies: Arc::default(), replies: Arc::default() }
    }

    /// The cluster; otherwise the reason why there is none, with which a worker of a batch exits.
    async fn cluster(&self) -> Result<&Cluster, Status> {
        self.served.cluster().await.inspect_err(|_| {
            if self.served.is_refused() {
                let _ = self.served.told.set(());
            }
        })
    }

    /// The cluster and the call of a worker, under what that worker is known by: no caller can call for another one.
    async fn known<T>(
        &self,
        request: Request<T>,
        worker: impl Fn(&mut T) -> &mut String,
    ) -> Result<(&Cluster, T), Status> {
        let principal = principal::of_network(&request);
        let mut call = request.into_inner();
        let cluster = self.cluster().await?;
        rename(cluster, principal.as_deref(), worker(&mut call));
        Ok((cluster, call))
    }

    /// Bodies are read of workers only that have joined.
    async fn has_joined(&self, worker: &str) -> Result<(), Status> {
        let cluster = self.cluster().await?;
        Ok(cluster.look(|state| state.workers.admits(worker)).map_err(Rejection::from)?)
    }
}

/// Calls a worker by what it is known by.
fn rename(cluster: &Cluster, principal: Option<&str>, worker: &mut String) {
    if let Some(principal) = principal {
        *worker = cluster.key_of(worker, principal);
    }
}

fn broken(error: &ChunkError) -> Status {
    Status::invalid_argument(error.to_string())
}

/// A body that has come, and the memory that it takes until it is dropped.
struct Arrived {
    bytes: Bytes,
    _memory: LargeBody,
}

/// How long the next part of a body may take: of one that takes more memory than others may, it depends on how much has come
/// since when.
fn patience(body: &LargeBody, arrived: u64, elapsed: Duration) -> Duration {
    if !body.is_oversized() {
        return IDLE;
    }
    (IDLE + Duration::from_secs(arrived / SLOWEST)).saturating_sub(elapsed).min(IDLE)
}

/// Puts the chunks of a call together.
async fn assemble<T>(
    stream: &mut Streaming<T>,
    length: u64,
    (bodies, call): (&Arc<LargeBodies>, Option<&CallBytes>),
    chunk: impl Fn(T) -> Option<v1::Chunk>,
) -> Result<Arrived, Status> {
    let mut assembly = Assembly::new(length, LARGEST_BODY).map_err(|error| broken(&error))?;
    let mut body = LargeBody::new(bodies, call.and_then(CallBytes::peer));
    let (start, mut arrived) = (Instant::now(), 0);
    loop {
        let next = tokio::time::timeout(patience(&body, arrived, start.elapsed()), stream.message()).await;
        let next = next.map_err(|_| Status::deadline_exceeded("the rest of a body did not come in time"))?;
        let Some(part) = next? else { break };
        let chunk =
            chunk(part).ok_or_else(|| Status::invalid_argument("expected a chunk, found another part"))?;
        arrived += chunk.bytes.len() as u64;
        if length > chunks::CHUNK as u64 {
            if !body.take(chunk.bytes.len() as u64) {
                return Err(Status::resource_exhausted("too much is delivered at once: try again"));
            }
            if let Some(call) = call {
                call.give_back(chunk.bytes.len() as u64);
            }
        }
        assembly.add(chunk).map_err(|error| broken(&error))?;
    }
    Ok(Arrived { bytes: assembly.finish().map_err(|error| broken(&error))?, _memory: body })
}

/// The bytes of a call as they are counted, which they are where it came over a network.
fn counted<T>(request: &Request<T>) -> Option<Arc<CallBytes>> {
    request.extensions().get::<Arc<CallBytes>>().cloned()
}

/// A reply, for which there has to be room until it is read. Whatever it would have granted is granted again when the worker asks
/// once more.
fn replied<T: Message>(reply: T, call: Option<&CallBytes>) -> Result<Response<T>, Status> {
    if let Some(call) = call {
        call.reply(reply.encoded_len() as u64)?;
    }
    Ok(Response::new(reply))
}

fn no_head() -> Status {
    Status::invalid_argument("expected a head as the first part, found something else")
}

/// The first part of a call: it is short.
async fn first_part<T>(stream: &mut Streaming<T>) -> Result<Option<T>, Status> {
    let part = tokio::time::timeout(HEAD, stream.message()).await;
    part.map_err(|_| Status::deadline_exceeded("the head did not come in time"))?
}

#[tonic::async_trait]
impl Worker for WorkerApi {
    async fn join(&self, request: Request<v1::JoinRequest>) -> Result<Response<v1::JoinReply>, Status> {
        let principal = principal::of(&request, &request.get_ref().worker);
        self.cluster().await?.join_as(request.get_ref(), &principal).map(Response::new)
    }

    async fn acquire(
        &self,
        request: Request<v1::AcquireRequest>,
    ) -> Result<Response<v1::AcquireReply>, Status> {
        let call = counted(&request);
        let (cluster, request) = self.known(request, |request| &mut request.worker).await?;
        replied(cluster.acquire_with(request, false).await?, call.as_deref())
    }

    async fn plan(&self, request: Request<v1::PlanRequest>) -> Result<Response<v1::PlanReply>, Status> {
        let call = counted(&request);
        let (cluster, request) = self.known(request, |request| &mut request.worker).await?;
        replied(cluster.plan(request).await?, call.as_deref())
    }

    type FetchStream = Pin<Box<dyn Stream<Item = Result<v1::Chunk, Status>> + Send>>;

    async fn fetch(&self, request: Request<v1::FetchRequest>) -> Result<Response<Self::FetchStream>, Status> {
        let call = counted(&request);
        let (cluster, request) = self.known(request, |request| &mut request.worker).await?;
        let body = cluster.fetch(request, 0).await?;
        let mut large = LargeBody::new(&self.replies, call.as_deref().and_then(CallBytes::peer));
        match call {
            Some(call) if body.len() <= chunks::CHUNK => call.reply(body.len() as u64)?,
            call if large.take(body.len() as u64) => {
                if let Some(call) = call {
                    call.note_reply(body.len() as u64);
                }
            }
            _ => return Err(Status::resource_exhausted("too much is fetched at once: try again")),
        }
        let chunks = chunks::cut(&body).map(move |chunk| {
            // The memory is taken until the last chunk is sent.
            let _ = &large;
            Ok(chunk)
        });
        Ok(Response::new(Box::pin(tokio_stream::iter(chunks))))
    }

    async fn renew(&self, request: Request<v1::RenewRequest>) -> Result<Response<v1::RenewReply>, Status> {
        let (cluster, request) = self.known(request, |request| &mut request.worker).await?;
        cluster.renew(request).await.map(Response::new)
    }

    async fn checkpoint(
        &self,
        request: Request<Streaming<v1::CheckpointPart>>,
    ) -> Result<Response<v1::CheckpointReply>, Status> {
        use v1::checkpoint_part::Part;
        let (call, principal) = (counted(&request), principal::of_network(&request));
        let mut stream = request.into_inner();
        let Some(Part::Head(mut head)) = first_part(&mut stream).await?.and_then(|part| part.part) else {
            return Err(no_head());
        };
        let chunk = |part: v1::CheckpointPart| match part.part {
            Some(Part::Chunk(chunk)) => Some(chunk),
            _ => None,
        };
        rename(self.cluster().await?, principal.as_deref(), &mut head.worker);
        self.has_joined(&head.worker).await?;
        let arrived = assemble(&mut stream, head.length, (&self.bodies, call.as_deref()), chunk).await?;
        self.cluster().await?.checkpoint_of(head, arrived.bytes).await.map(Response::new)
    }

    async fn complete(
        &self,
        request: Request<Streaming<v1::CompletePart>>,
    ) -> Result<Response<v1::CompleteReply>, Status> {
        use v1::complete_part::Part;
        let (call, principal) = (counted(&request), principal::of_network(&request));
        let mut stream = request.into_inner();
        let Some(Part::Head(mut head)) = first_part(&mut stream).await?.and_then(|part| part.part) else {
            return Err(no_head());
        };
        let chunk = |part: v1::CompletePart| match part.part {
            Some(Part::Chunk(chunk)) => Some(chunk),
            _ => None,
        };
        let what = head.what.as_ref().ok_or_else(|| invalid(WireError::Missing("head.what")))?;
        rename(self.cluster().await?, principal.as_deref(), &mut head.worker);
        self.has_joined(&head.worker).await?;
        let length = length_of(what)?;
        let arrived = assemble(&mut stream, length, (&self.bodies, call.as_deref()), chunk).await?;
        let bodies = vec![arrived.bytes.clone()];
        replied(self.cluster().await?.complete_with(head, bodies, false).await?, call.as_deref())
    }

    async fn release(
        &self,
        request: Request<v1::ReleaseRequest>,
    ) -> Result<Response<v1::ReleaseReply>, Status> {
        let (cluster, request) = self.known(request, |request| &mut request.worker).await?;
        cluster.release(request).await.map(Response::new)
    }

    async fn leave(&self, request: Request<v1::LeaveRequest>) -> Result<Response<v1::LeaveReply>, Status> {
        let (cluster, request) = self.known(request, |request| &mut request.worker).await?;
        cluster.leave(request).await.map(Response::new)
    }
}

/// How many bytes follow a head.
fn length_of(what: &v1::complete_head::What) -> Result<u64, Status> {
    use v1::complete_head::What;
    let lengths = match what {
        What::Epoch(epoch) => [epoch.state_length, epoch.departure_length, epoch.statistics_length],
        What::Cells(cells) => [cells.length, 0, 0],
        What::Job(job) => [job.length, 0, 0],
    };
    let sum = lengths.iter().try_fold(0u64, |sum, length| sum.checked_add(*length));
    sum.ok_or_else(|| broken(&ChunkError::TooLarge { limit: LARGEST_BODY, announced: u64::MAX }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_comes_slowly_is_waited_for_unless_it_keeps_others_out() {
        let bodies = Arc::default();
        let mut body = LargeBody::new(&bodies, None);
        assert!(body.take(1 << 20));
        let (minute, hour) = (Duration::from_mins(1), Duration::from_hours(1));
        assert_eq!(patience(&body, 1 << 20, hour), IDLE, "between two parts, however long it takes");
        assert!(body.take(LARGEST_BODY - (1 << 20)));
        assert_eq!(patience(&body, LARGEST_BODY, minute), IDLE);
        assert_eq!(patience(&body, 100 << 20, hour), Duration::ZERO, "28 KiB/s");
        assert_eq!(patience(&body, SLOWEST, Duration::from_secs(20)), Duration::from_secs(1));
    }
}
