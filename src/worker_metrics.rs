//! The metrics of a worker, from the calls that it makes.

use bytes::Bytes;
use coordinator::MetricFamilies;
use proto::calls::WorkerCalls;
use proto::v1;
use proto::v1::complete_reply::DeliveryStatus;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tonic::Status;

/// A coordinator, and what was asked and answered.
pub(crate) struct Measured {
    calls: Arc<dyn WorkerCalls>,
    threads: usize,
    counters: Arc<Counters>,
}

#[derive(Default)]
struct Counters {
    /// When the coordinator last answered.
    answered: Mutex<Option<Instant>>,
    /// The session that deliveries are numbered in.
    session: Mutex<Bytes>,
    held: AtomicU64,
    granted: AtomicU64,
    accepted: AtomicU64,
    repeated: AtomicU64,
    unneeded: AtomicU64,
    checkpoints: AtomicU64,
    failures: AtomicU64,
    failed_calls: AtomicU64,
    delivery: AtomicU64,
    durable: AtomicU64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn add(counter: &AtomicU64, more: usize) {
    counter.fetch_add(more as u64, SeqCst);
}

impl Measured {
    pub(crate) fn new(calls: Arc<dyn WorkerCalls>, threads: usize) -> Self {
        let counters = Arc::new(Counters::default());
        *locked(&counters.answered) = Some(Instant::now());
        Self { calls, threads, counters }
    }

    /// The same of a worker that calls over these from now on.
    pub(crate) fn over(&self, calls: Arc<dyn WorkerCalls>) -> Self {
        Self { calls, threads: self.threads, counters: self.counters.clone() }
    }

    fn noted<T>(&self, answer: Result<T, Status>) -> Result<T, Status> {
        if answer.is_ok() {
            *locked(&self.counters.answered) = Some(Instant::now());
        } else {
            add(&self.counters.failed_calls, 1);
        }
        answer
    }

    /// The page of metrics.
    pub(crate) fn page(&self) -> String {
        let Counters { granted, accepted, repeated, unneeded, checkpoints, failures, .. } = &*self.counters;
        let mut families = MetricFamilies::default();
        let read = |counter: &AtomicU64| counter.load(SeqCst);
        let name = "atoll_worker_threads";
        families.number(name, "Threads that compute", self.threads as f64);
        let name = "atoll_worker_pieces";
        families.number(name, "Pieces of work that this worker has", read(&self.counters.held) as f64);
        for (name, help, counter) in [
            ("atoll_worker_grants", "Pieces of work that this worker was given", granted),
            ("atoll_worker_results_accepted", "Results that the coordinator kept", accepted),
            ("atoll_worker_results_repeated", "Results that the coordinator had already", repeated),
            ("atoll_worker_results_unneeded", "Results that the coordinator did not need", unneeded),
            ("atoll_worker_checkpoints", "Checkpoints inside epochs", checkpoints),
            ("atoll_worker_failures", "Pieces that this worker could not do", failures),
            ("atoll_worker_calls_failed", "Calls that failed", &self.counters.failed_calls),
        ] {
            families.total(name, help, read(counter));
        }
        let undurable = read(&self.counters.delivery).saturating_sub(read(&self.counters.durable));
        let help = "Results that were delivered and are not durable yet";
        families.number("atoll_worker_results_undurable", help, undurable as f64);
        let silence = locked(&self.counters.answered).map(|answered| answered.elapsed()).unwrap_or_default();
        let help = "Time since the coordinator last answered";
        families.number("atoll_worker_last_answer_seconds", help, silence.as_secs_f64());
        families.of_process();
        families.page()
    }
}

#[tonic::async_trait]
impl WorkerCalls for Measured {
    async fn join(&self, request: v1::JoinRequest) -> Result<v1::JoinReply, Status> {
        let reply = self.noted(self.calls.join(request).await)?;
        // Each session counts its deliveries from 0.
        let session: Bytes = [&reply.coordinator[..], &reply.session].concat().into();
        let known = std::mem::replace(&mut *locked(&self.counters.session), session.clone());
        if known != session {
            self.counters.delivery.store(0, SeqCst);
            self.counters.durable.store(0, SeqCst);
        }
        Ok(reply)
    }

    async fn acquire(&self, request: v1::AcquireRequest) -> Result<v1::AcquireReply, Status> {
        let reply = self.noted(self.calls.acquire(request).await)?;
        add(&self.counters.granted, reply.grants.len());
        self.counters.durable.fetch_max(reply.durable, SeqCst);
        Ok(reply)
    }

    async fn plan(&self, request: v1::PlanRequest) -> Result<v1::PlanReply, Status> {
        self.noted(self.calls.plan(request).await)
    }

    async fn fetch(&self, request: v1::FetchRequest, length: u64) -> Result<Bytes, Status> {
        self.noted(self.calls.fetch(request, length).await)
    }

    async fn renew(&self, request: v1::RenewRequest) -> Result<v1::RenewReply, Status> {
        self.counters.held.store(request.renewals.len() as u64, SeqCst);
        let reply = self.noted(self.calls.renew(request).await)?;
        self.counters.durable.fetch_max(reply.durable, SeqCst);
        Ok(reply)
    }

    async fn checkpoint(
        &self,
        head: v1::CheckpointHead,
        bytes: Bytes,
    ) -> Result<v1::CheckpointReply, Status> {
        let reply = self.noted(self.calls.checkpoint(head, bytes).await)?;
        add(&self.counters.checkpoints, 1);
        Ok(reply)
    }

    async fn complete(
        &self,
        head: v1::CompleteHead,
        bodies: Vec<Bytes>,
    ) -> Result<v1::CompleteReply, Status> {
        let reply = self.noted(self.calls.complete(head, bodies).await)?;
        add(&self.counters.granted, reply.grants.len());
        self.counters.delivery.fetch_max(reply.delivery, SeqCst);
        self.counters.durable.fetch_max(reply.durable, SeqCst);
        match reply.status() {
            DeliveryStatus::Accepted => add(&self.counters.accepted, 1),
            DeliveryStatus::Repeated => add(&self.counters.repeated, 1),
            DeliveryStatus::Unneeded | DeliveryStatus::Unspecified => add(&self.counters.unneeded, 1),
        }
        Ok(reply)
    }

    async fn release(&self, request: v1::ReleaseRequest) -> Result<v1::ReleaseReply, Status> {
        add(&self.counters.failures, usize::from(!request.failure.is_empty()));
        self.noted(self.calls.release(request).await)
    }

    async fn leave(&self, request: v1::LeaveRequest) -> Result<v1::LeaveReply, Status> {
        self.noted(self.calls.leave(request).await)
    }
}
