//! Calls of a worker that is not trusted, without a network between: everything that it delivers is examined.

use crate::cluster::Cluster;
use bytes::Bytes;
use proto::calls::WorkerCalls;
use proto::v1;
use tonic::Status;

/// The calls of a worker that is not trusted: what it delivers is examined as if it had come over a network. So that
/// clusters with workers that lie can be simulated without one.
#[derive(Clone)]
pub struct UntrustedCalls {
    cluster: Cluster,
    principal: String,
}

impl UntrustedCalls {
    /// The calls of workers for which this principal answers.
    pub fn new(cluster: Cluster, principal: &str) -> Self {
        Self { cluster, principal: principal.to_owned() }
    }

    /// What the worker is known by.
    fn key(&self, worker: &mut String) {
        *worker = self.cluster.key_of(worker, &self.principal);
    }
}

#[tonic::async_trait]
impl WorkerCalls for UntrustedCalls {
    async fn join(&self, request: v1::JoinRequest) -> Result<v1::JoinReply, Status> {
        self.cluster.join_as(&request, &self.principal)
    }

    async fn acquire(&self, mut request: v1::AcquireRequest) -> Result<v1::AcquireReply, Status> {
        self.key(&mut request.worker);
        self.cluster.acquire_with(request, false).await
    }

    async fn plan(&self, mut request: v1::PlanRequest) -> Result<v1::PlanReply, Status> {
        self.key(&mut request.worker);
        self.cluster.plan(request).await
    }

    async fn fetch(&self, mut request: v1::FetchRequest, length: u64) -> Result<Bytes, Status> {
        self.key(&mut request.worker);
        self.cluster.fetch(request, length).await
    }

    async fn renew(&self, mut request: v1::RenewRequest) -> Result<v1::RenewReply, Status> {
        self.key(&mut request.worker);
        self.cluster.renew(request).await
    }

    async fn checkpoint(
        &self,
        mut head: v1::CheckpointHead,
        bytes: Bytes,
    ) -> Result<v1::CheckpointReply, Status> {
        self.key(&mut head.worker);
        self.cluster.checkpoint_of(head, bytes).await
    }

    async fn complete(
        &self,
        mut head: v1::CompleteHead,
        bodies: Vec<Bytes>,
    ) -> Result<v1::CompleteReply, Status> {
        self.key(&mut head.worker);
        self.cluster.complete_with(head, bodies, false).await
    }

    async fn release(&self, mut request: v1::ReleaseRequest) -> Result<v1::ReleaseReply, Status> {
        self.key(&mut request.worker);
        self.cluster.release(request).await
    }

    async fn leave(&self, mut request: v1::LeaveRequest) -> Result<v1::LeaveReply, Status> {
        self.key(&mut request.worker);
        self.cluster.leave(request).await
    }
}
