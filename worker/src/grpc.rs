//! The calls of a worker over gRPC: bodies travel in chunks.

use crate::credentials::{Bearer, Line, Token};
use bytes::Bytes;
use proto::calls::WorkerCalls;
use proto::chunks::{self, Assembly, ChunkError};
use proto::v1;
use proto::v1::worker_client::WorkerClient;
use std::sync::{PoisonError, RwLock};
use tonic::transport::Channel;
use tonic::{Response, Status};

/// The largest answer that is read: a grant names every packet that arrives.
const LARGEST_ANSWER: usize = 32 << 20;

/// A coordinator at the other end of a connection.
pub struct Grpc(RwLock<WorkerClient<Line>>);

impl Grpc {
    /// Calls over this channel, with this token if the coordinator wants to see one.
    pub fn new(channel: Channel, token: Option<Token>) -> Self {
        Self(RwLock::new(client(channel, token)))
    }

    /// From now on, calls travel over this channel with this token. Those under way end over the old one.
    pub fn replace(&self, channel: Channel, token: Option<Token>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = client(channel, token);
    }

    fn client(&self) -> WorkerClient<Line> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn client(channel: Channel, token: Option<Token>) -> WorkerClient<Line> {
    WorkerClient::with_interceptor(channel, Bearer(token)).max_decoding_message_size(LARGEST_ANSWER)
}

#[tonic::async_trait]
impl WorkerCalls for Grpc {
    async fn join(&self, request: v1::JoinRequest) -> Result<v1::JoinReply, Status> {
        self.client().join(request).await.map(Response::into_inner)
    }

    async fn acquire(&self, request: v1::AcquireRequest) -> Result<v1::AcquireReply, Status> {
        self.client().acquire(request).await.map(Response::into_inner)
    }

    async fn plan(&self, request: v1::PlanRequest) -> Result<v1::PlanReply, Status> {
        self.client().plan(request).await.map(Response::into_inner)
    }

    async fn fetch(&self, request: v1::FetchRequest, length: u64) -> Result<Bytes, Status> {
        let mut stream = self.client().fetch(request).await?.into_inner();
        let wrong = |error: ChunkError| Status::out_of_range(error.to_string());
        let mut assembly = Assembly::new(length, u64::from(u32::MAX)).map_err(wrong)?;
        while let Some(chunk) = stream.message().await? {
            assembly.add(chunk).map_err(wrong)?;
        }
        assembly.finish().map_err(wrong)
    }

    async fn renew(&self, request: v1::RenewRequest) -> Result<v1::RenewReply, Status> {
        self.client().renew(request).await.map(Response::into_inner)
    }

    async fn checkpoint(
        &self,
        head: v1::CheckpointHead,
        bytes: Bytes,
    ) -> Result<v1::CheckpointReply, Status> {
        use v1::checkpoint_part::Part;
        let parts = std::iter::once(Part::Head(head)).chain(chunks::cut(&bytes).map(Part::Chunk));
        let parts: Vec<_> = parts.map(|part| v1::CheckpointPart { part: Some(part) }).collect();
        self.client().checkpoint(tokio_stream::iter(parts)).await.map(Response::into_inner)
    }

    async fn complete(
        &self,
        head: v1::CompleteHead,
        bodies: Vec<Bytes>,
    ) -> Result<v1::CompleteReply, Status> {
        use v1::complete_part::Part;
        let chunks = chunks::cut_all(&bodies).into_iter().map(Part::Chunk);
        let parts = std::iter::once(Part::Head(head)).chain(chunks);
        let parts: Vec<_> = parts.map(|part| v1::CompletePart { part: Some(part) }).collect();
        self.client().complete(tokio_stream::iter(parts)).await.map(Response::into_inner)
    }

    async fn release(&self, request: v1::ReleaseRequest) -> Result<v1::ReleaseReply, Status> {
        self.client().release(request).await.map(Response::into_inner)
    }

    async fn leave(&self, request: v1::LeaveRequest) -> Result<v1::LeaveReply, Status> {
        self.client().leave(request).await.map(Response::into_inner)
    }
}
