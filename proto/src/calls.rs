//! What a worker calls, apart from how its calls travel: over gRPC, or directly to a coordinator in the same process.

use crate::v1;
use bytes::Bytes;
use tonic::Status;

/// A coordinator, as its workers call it. Every call may be repeated; `atoll.proto` says what each leaves behind.
///
/// The codes of a status mean the same over every transport: `ABORTED` asks the worker to join again, `NOT_FOUND` takes a
/// grant back, `PERMISSION_DENIED` and `FAILED_PRECONDITION` reject the worker for good.
#[tonic::async_trait]
pub trait WorkerCalls: Send + Sync + 'static {
    /// Introduces a worker.
    async fn join(&self, request: v1::JoinRequest) -> Result<v1::JoinReply, Status>;

    /// Asks for work, and waits for some.
    async fn acquire(&self, request: v1::AcquireRequest) -> Result<v1::AcquireReply, Status>;

    /// The plan of a run, as text.
    async fn plan(&self, request: v1::PlanRequest) -> Result<v1::PlanReply, Status>;

    /// A body of this number of bytes that a grant only named.
    async fn fetch(&self, request: v1::FetchRequest, length: u64) -> Result<Bytes, Status>;

    /// Keeps leases.
    async fn renew(&self, request: v1::RenewRequest) -> Result<v1::RenewReply, Status>;

    /// Keeps an epoch from inside it.
    async fn checkpoint(&self, head: v1::CheckpointHead, bytes: Bytes)
    -> Result<v1::CheckpointReply, Status>;

    /// Delivers a piece; its bodies follow the head in their order.
    async fn complete(&self, head: v1::CompleteHead, bodies: Vec<Bytes>)
    -> Result<v1::CompleteReply, Status>;

    /// Gives a piece back.
    async fn release(&self, request: v1::ReleaseRequest) -> Result<v1::ReleaseReply, Status>;

    /// Leaves.
    async fn leave(&self, request: v1::LeaveRequest) -> Result<v1::LeaveReply, Status>;
}
