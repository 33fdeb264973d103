//! The calls of a worker over gRPC: bodies travel in chunks.

use crate::credentials::{AuthorizedChannel, Bearer, Token};
use crate::end_with_data::EndWithData;
use bytes::Bytes;
use proto::calls::WorkerCalls;
use proto::chunks::{self, Assembly, ChunkError};
use proto::v1;
use proto::v1::worker_client::WorkerClient;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Code, Response, Status};

/// The largest answer that is read: a grant names every packet that arrives.
const LARGEST_ANSWER: usize = 32 << 20;

/// What calls travel through.
type Transport = EndWithData<AuthorizedChannel>;

/// A connection to a coordinator, or to several of which one is active.
pub struct Grpc {
    channels: Vec<Channel>,
    /// Those that the coordinator may know; while tokens are replaced, it may not know all of them yet, or any more.
    tokens: Vec<Token>,
    /// Counts the coordinators that did not respond: the next call goes to the next one.
    turn: AtomicUsize,
    /// Counts the tokens that were refused: the next call shows the next one.
    refused: AtomicUsize,
}

impl Grpc {
    /// Calls over these channels, with the first of these tokens that the coordinator knows, if there are any. As long as a
    /// coordinator answers, all calls go to it, and as long as it knows a token, they show that one.
    ///
    /// # Panics
    /// If there is no channel.
    pub fn new(channels: Vec<Channel>, tokens: Vec<Token>) -> Self {
        assert!(!channels.is_empty(), "there is a coordinator to call");
        Self { channels, tokens, turn: AtomicUsize::new(0), refused: AtomicUsize::new(0) }
    }

    /// Makes a call. If its token is refused, the next one is shown at once, each of them at most once.
    async fn call<T, F>(&self, call: impl Fn(WorkerClient<Transport>) -> F) -> Result<T, Status>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let mut left = self.tokens.len();
        loop {
            let refused = self.refused.load(SeqCst);
            let token = self.tokens.get(refused % self.tokens.len().max(1));
            let answer = self.call_with(token, &call).await;
            let is_refused = answer.as_ref().is_err_and(|status| status.code() == Code::Unauthenticated);
            left = left.saturating_sub(1);
            if is_refused && self.tokens.len() > 1 {
                // Of several calls that are refused at once, one moves on.
                let next = refused.wrapping_add(1);
                let _ = self.refused.compare_exchange(refused, next, SeqCst, SeqCst);
            }
            if !is_refused || left == 0 {
                return answer;
            }
        }
    }

    /// Makes a call with this token. A coordinator that does not respond, or only stands by, is passed over: the next one is
    /// asked at once, each of them at most once.
    async fn call_with<T, F>(
        &self,
        token: Option<&Token>,
        call: &impl Fn(WorkerClient<Transport>) -> F,
    ) -> Result<T, Status>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let mut left = self.channels.len();
        loop {
            let turn = self.turn.load(SeqCst);
            let client = client(self.channels[turn % self.channels.len()].clone(), token.cloned());
            let mut attempt = Attempt { turn: &self.turn, number: turn, is_answered: false };
            let answer = call(client).await;
            attempt.is_answered = !answer.as_ref().is_err_and(|status| status.code() == Code::Unavailable);
            left -= 1;
            if attempt.is_answered || left == 0 {
                return answer;
            }
        }
    }
}

/// A call that may be dropped before there is an answer.
struct Attempt<'a> {
    turn: &'a AtomicUsize,
    number: usize,
    is_answered: bool,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            // Of several calls that fail at once, one moves on.
            let _ = self.turn.compare_exchange(self.number, self.number.wrapping_add(1), SeqCst, SeqCst);
        }
    }
}

fn client(channel: Channel, token: Option<Token>) -> WorkerClient<Transport> {
    let channel = EndWithData(InterceptedService::new(channel, Bearer(token)));
    WorkerClient::new(channel).max_decoding_message_size(LARGEST_ANSWER)
}

#[tonic::async_trait]
impl WorkerCalls for Grpc {
    async fn join(&self, request: v1::JoinRequest) -> Result<v1::JoinReply, Status> {
        let call = |mut client: WorkerClient<Transport>| {
            let request = request.clone();
            async move { client.join(request).await.map(Response::into_inner) }
        };
        self.call(call).await
    }

    async fn acquire(&self, request: v1::AcquireRequest) -> Result<v1::AcquireReply, Status> {
        let call = |mut client: WorkerClient<Transport>| {
            let request = request.clone();
            async move { client.acquire(request).await.map(Response::into_inner) }
        };
        self.call(call).await
    }

    async fn plan(&self, request: v1::PlanRequest) -> Result<v1::PlanReply, Status> {
        let call = |mut client: WorkerClient<Transport>| {
            let request = request.clone();
            async move { client.plan(request).await.map(Response::into_inner) }
        };
        self.call(call).await
    }

    async fn fetch(&self, request: v1::FetchRequest, length: u64) -> Result<Bytes, Status> {
        let fetch = |mut client: WorkerClient<Transport>| {
            let request = request.clone();
            async move {
                let mut stream = client.fetch(request).await?.into_inner();
                let wrong = |error: ChunkError| Status::out_of_range(error.to_string());
                let mut assembly = Assembly::new(length, u64::from(u32::MAX)).map_err(wrong)?;
                while let Some(chunk) = stream.message().await? {
                    assembly.add(chunk).map_err(wrong)?;
                }
                assembly.finish().map_err(wrong)
            }
        };
        self.call(fetch).await
    }

    async fn renew(&self, request: v1::RenewRequest) -> Result<v1::RenewReply, Status> {
        let call = |mut client: WorkerClient<Transport>| {
            let request = request.clone();
            async move { client.renew(request).await.map(Response::into_inner) }
        };
        self.call(call).await
    }

    async fn checkpoint(
        &self,
        head: v1::CheckpointHead,
        bytes: Bytes,
    ) -> Result<v1::CheckpointReply, Status> {
        use v1::checkpoint_part::Part;
        let parts = std::iter::once(Part::Head(head)).chain(chunks::cut(&bytes).map(Part::Chunk));
        let parts: Vec<_> = parts.map(|part| v1::CheckpointPart { part: Some(part) }).collect();
        let call = |mut client: WorkerClient<Transport>| {
            let parts = tokio_stream::iter(parts.clone());
            async move { client.checkpoint(parts).await.map(Response::into_inner) }
        };
        self.call(call).await
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
        let call = |mut client: WorkerClient<Transport>| {
            let parts = tokio_stream::iter(parts.clone());
            async move { client.complete(parts).await.map(Response::into_inner) }
        };
        self.call(call).await
    }

    async fn release(&self, request: v1::ReleaseRequest) -> Result<v1::ReleaseReply, Status> {
        let call = |mut client: WorkerClient<Transport>| {
            let request = request.clone();
            async move { client.release(request).await.map(Response::into_inner) }
        };
        self.call(call).await
    }

    async fn leave(&self, request: v1::LeaveRequest) -> Result<v1::LeaveReply, Status> {
        let call = |mut client: WorkerClient<Transport>| {
            let request = request.clone();
            async move { client.leave(request).await.map(Response::into_inner) }
        };
        self.call(call).await
    }
}
