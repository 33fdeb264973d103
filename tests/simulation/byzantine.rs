//! A worker with a valid token that does not do what it should, with everything or with one piece.

use bytes::Bytes;
use evolution::digest::Digest;
use proto::calls::WorkerCalls;
use proto::v1;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tonic::Status;

/// What it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Delivers populations of another seed: nothing but computing the epoch again finds that.
    Lies,
    /// Computes such populations too, sends checkpoints of them, and gives the epochs back to others.
    Misleads,
    /// Delivers bytes that are not what it says.
    Garbles,
    /// Says of everything that it failed.
    Fails,
    /// Keeps its leases, and never delivers.
    Holds,
    /// Crashes in the place of delivering.
    Dies,
}

impl Manner {
    pub(crate) const ALL: [Self; 4] = [Self::Lies, Self::Garbles, Self::Fails, Self::Holds];

    /// Whether it computes populations of another seed.
    pub(crate) fn computes_lies(self) -> bool {
        matches!(self, Self::Lies | Self::Misleads)
    }
}

/// The piece that is poison where there is one: each run of epochs has it.
const POISONED: v1::EpochPiece = v1::EpochPiece { island: 0, epoch: 3 };

/// The calls of such a worker, which itself is a real one.
pub(crate) struct Byzantine {
    calls: worker::Grpc,
    manner: Manner,
    /// Whether it behaves like that with one piece only.
    only_poison: bool,
    /// Notified when it is to crash.
    died: Arc<Notify>,
    /// The plans that a liar computes, by their runs.
    plans: Mutex<BTreeMap<String, String>>,
    /// The tokens of its leases.
    tokens: Mutex<BTreeMap<String, u64>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn key(piece: Option<&v1::Piece>) -> String {
    format!("{piece:?}")
}

impl Byzantine {
    pub(crate) fn new(calls: worker::Grpc, manner: Manner) -> Self {
        let (only_poison, died) = (false, Arc::default());
        Self { calls, manner, only_poison, died, plans: Mutex::default(), tokens: Mutex::default() }
    }

    /// The calls of a worker to which one piece is poison, and what is notified when it is to crash.
    pub(crate) fn poisoned(calls: worker::Grpc, manner: Manner) -> (Self, Arc<Notify>) {
        let byzantine = Self { only_poison: true, ..Self::new(calls, manner) };
        let died = byzantine.died.clone();
        (byzantine, died)
    }

    /// Whether it does with a piece what it should.
    fn is_honest_with(&self, piece: Option<&v1::Piece>) -> bool {
        let poisoned = Some(v1::piece::What::Epoch(POISONED));
        self.only_poison && piece.and_then(|piece| piece.what) != poisoned
    }

    /// The digest of the plan that a liar computes in place of the one of a run.
    async fn lie(&self, run: &str) -> Option<Bytes> {
        if !lock(&self.plans).contains_key(run) {
            let request = v1::PlanRequest { worker: "byzantine".to_owned(), run: run.to_owned() };
            let text = self.calls.plan(request).await.ok()?.text;
            assert!(text.contains("seed = 3\n"), "{text}");
            lock(&self.plans).insert(run.to_owned(), text.replace("seed = 3\n", "seed = 4\n"));
        }
        let plans = lock(&self.plans);
        Some(Bytes::copy_from_slice(&Digest::of(plans.get(run)?.as_bytes()).0))
    }

    async fn take(&self, grants: &mut [v1::Grant]) {
        for grant in grants {
            lock(&self.tokens).insert(key(grant.piece.as_ref()), grant.token);
            let run = grant.piece.as_ref().map(|piece| piece.run.clone()).unwrap_or_default();
            if self.manner.computes_lies()
                && grant.task.is_some()
                && let Some(plan) = self.lie(&run).await
            {
                grant.plan = plan;
            }
        }
    }
}

#[tonic::async_trait]
impl WorkerCalls for Byzantine {
    async fn join(&self, request: v1::JoinRequest) -> Result<v1::JoinReply, Status> {
        self.calls.join(request).await
    }
    async fn acquire(&self, request: v1::AcquireRequest) -> Result<v1::AcquireReply, Status> {
        let mut reply = self.calls.acquire(request).await?;
        self.take(&mut reply.grants).await;
        Ok(reply)
    }
    async fn plan(&self, request: v1::PlanRequest) -> Result<v1::PlanReply, Status> {
        let lie = lock(&self.plans).get(&request.run).cloned();
        match lie {
            Some(text) => Ok(v1::PlanReply { text, players: vec![] }),
            None => self.calls.plan(request).await,
        }
    }
    async fn fetch(&self, request: v1::FetchRequest, length: u64) -> Result<Bytes, Status> {
        self.calls.fetch(request, length).await
    }
    async fn renew(&self, request: v1::RenewRequest) -> Result<v1::RenewReply, Status> {
        self.calls.renew(request).await
    }
    async fn checkpoint(
        &self,
        head: v1::CheckpointHead,
        bytes: Bytes,
    ) -> Result<v1::CheckpointReply, Status> {
        self.calls.checkpoint(head, bytes).await
    }
    async fn complete(
        &self,
        head: v1::CompleteHead,
        mut bodies: Vec<Bytes>,
    ) -> Result<v1::CompleteReply, Status> {
        match self.manner {
            _ if self.is_honest_with(head.piece.as_ref()) => {}
            Manner::Lies => {}
            Manner::Misleads => {
                let token = lock(&self.tokens).get(&key(head.piece.as_ref())).copied().unwrap_or(0);
                let (worker, piece) = (head.worker, head.piece);
                self.calls.release(v1::ReleaseRequest { worker, piece, token, ..Default::default() }).await?;
                return Ok(v1::CompleteReply::default());
            }
            Manner::Garbles => {
                if let Some(body) = bodies.first_mut() {
                    let mut garbled = body.to_vec();
                    let middle = garbled.len() / 2;
                    garbled[middle] ^= 1;
                    *body = garbled.into();
                }
            }
            Manner::Fails => {
                let token = lock(&self.tokens).get(&key(head.piece.as_ref())).copied().unwrap_or(0);
                let (worker, piece, failure) = (head.worker, head.piece, "on purpose".to_owned());
                self.calls
                    .release(v1::ReleaseRequest { worker, piece, failure, token, ..Default::default() })
                    .await?;
                return Ok(v1::CompleteReply::default());
            }
            Manner::Holds => return std::future::pending().await,
            Manner::Dies => {
                self.died.notify_one();
                return std::future::pending().await;
            }
        }
        let mut reply = self.calls.complete(head, bodies).await?;
        self.take(&mut reply.grants).await;
        Ok(reply)
    }
    async fn release(&self, request: v1::ReleaseRequest) -> Result<v1::ReleaseReply, Status> {
        self.calls.release(request).await
    }
    async fn leave(&self, request: v1::LeaveRequest) -> Result<v1::LeaveReply, Status> {
        self.calls.leave(request).await
    }
}
