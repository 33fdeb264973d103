//! Replies of any bytes to a real worker: it rejects them, asks again or ends with an error, and never panics.

use crate::mutate::{Mutator, rounds};
use crate::network::{config, settings};
use crate::scenario::{Scenario, Trouble};
use crate::{ASYNCHRONOUS, SYNCHRONOUS, block_on, submit};
use bytes::Bytes;
use coordinator::UntrustedCalls;
use prost::Message;
use proto::calls::WorkerCalls;
use proto::v1;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::Store;
use tonic::Status;

/// How long a worker is given such replies, in simulated time.
const PATIENCE: Duration = Duration::from_secs(5);

/// A coordinator whose replies have mistakes.
struct Mistaken {
    calls: UntrustedCalls,
    mutator: Mutex<Mutator>,
}

impl Mistaken {
    /// A reply, one time in four with a mistake.
    fn mistaken<T: Message + Default>(&self, reply: Result<T, Status>) -> Result<T, Status> {
        let reply = reply?;
        let mut mutator = self.mutator.lock().unwrap_or_else(PoisonError::into_inner);
        if mutator.below(4) > 0 {
            return Ok(reply);
        }
        let mutated = mutator.mutated(&[reply.encode_to_vec()]);
        T::decode(&mutated[..]).map_err(|error| Status::internal(error.to_string()))
    }
}

#[tonic::async_trait]
impl WorkerCalls for Mistaken {
    async fn join(&self, request: v1::JoinRequest) -> Result<v1::JoinReply, Status> {
        self.mistaken(self.calls.join(request).await)
    }
    async fn acquire(&self, request: v1::AcquireRequest) -> Result<v1::AcquireReply, Status> {
        self.mistaken(self.calls.acquire(request).await)
    }
    async fn plan(&self, request: v1::PlanRequest) -> Result<v1::PlanReply, Status> {
        self.mistaken(self.calls.plan(request).await)
    }
    async fn fetch(&self, request: v1::FetchRequest, length: u64) -> Result<Bytes, Status> {
        let bytes = self.calls.fetch(request, length).await?;
        let chunk = self.mistaken(Ok(v1::Chunk { bytes }))?;
        Ok(chunk.bytes)
    }
    async fn renew(&self, request: v1::RenewRequest) -> Result<v1::RenewReply, Status> {
        self.mistaken(self.calls.renew(request).await)
    }
    async fn checkpoint(
        &self,
        head: v1::CheckpointHead,
        bytes: Bytes,
    ) -> Result<v1::CheckpointReply, Status> {
        self.mistaken(self.calls.checkpoint(head, bytes).await)
    }
    async fn complete(
        &self,
        head: v1::CompleteHead,
        bodies: Vec<Bytes>,
    ) -> Result<v1::CompleteReply, Status> {
        self.mistaken(self.calls.complete(head, bodies).await)
    }
    async fn release(&self, request: v1::ReleaseRequest) -> Result<v1::ReleaseReply, Status> {
        self.mistaken(self.calls.release(request).await)
    }
    async fn leave(&self, request: v1::LeaveRequest) -> Result<v1::LeaveReply, Status> {
        self.mistaken(self.calls.leave(request).await)
    }
}

/// One worker among mistaken replies; returns how many results were taken from it.
async fn work(text: &str, round: u64) -> u64 {
    let scenario = Scenario::of(text, Trouble::Nothing);
    let store = Store::memory();
    let run = submit(store.clone(), &scenario, round).await;
    let (cluster, background) = coordinator::start(store, &settings(1, &scenario), || 0).await.unwrap();
    let calls = UntrustedCalls::new(cluster.clone(), "worker");
    let mutator = Mutex::new(Mutator::new(&format!("replies {round}")));
    let config = config("worker".to_owned(), "worker".to_owned(), round);
    let forever = std::future::pending();
    let working = worker::run(config, Arc::new(Mistaken { calls, mutator }), worker::Pool::inline(), forever);
    // It may end with an error, or retry for ever.
    drop(tokio::time::timeout(PATIENCE, working).await);
    let evaluations = cluster.status(&run).unwrap().standing.map_or(0, |standing| standing.evaluations);
    background.abort();
    evaluations
}

#[test]
fn replies_of_any_bytes_do_not_make_a_worker_panic() {
    let mut evaluations = 0;
    for round in 0..rounds(60) {
        let text = if round.is_multiple_of(2) { SYNCHRONOUS } else { ASYNCHRONOUS };
        let worked = std::panic::catch_unwind(|| block_on(work(text, round)));
        evaluations += worked.unwrap_or_else(|_| panic!("the worker panics in round {round}"));
    }
    assert!(evaluations > 0, "no worker came as far as delivering something");
}
