//! A running coordinator: its state behind one short lock, the writer beside it, and what workers and operators call.
//!
//! Nothing waits while the lock is held. Bodies are assembled, hashed and decoded before a call reaches the state; what
//! has to be written goes to the writer. Workers in the same process call [`Cluster`] directly, others over gRPC.

use crate::rejection::Rejection;
use crate::serve::change_signal::{ChangeSignal, Listener};
use crate::state::reply_budget::ReplyBudget;
use crate::state::workers::shown;
use crate::state::{
    ClusterState, DeliveredCells, Delivery, DeliveryStatus, Done, Examination, Instruction, Moment, Renewal,
    Rules, Submission, Ticket, Unfinished, UnfitReason,
};
use crate::store_watch::StoreWatch;
use crate::write::open::Opener;
use crate::write::{Order, Writer};
use archipelago::cell::CellResult;
use archipelago::job::JobResult;
use bytes::Bytes;
use evolution::codec;
use evolution::digest::Digest;
use evolution::epoch::EpochOutcome;
use experiment::Plan;
use experiment::file::BudgetKeys;
use proto::calls::WorkerCalls;
use proto::convert::{self, WireError, Work};
use proto::v1;
use proto::v1::complete_reply::DeliveryStatus as WireStatus;
use run::{LabelChange, Labels, Lock, Owner};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::{Claim, Store};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tonic::Status;

/// The longest that a call waits for something to happen.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// How often a worker that waits is looked at again: what others have had for long is repeated without a call.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The most pieces of one call.
const MOST_PIECES: usize = 4096;
/// The longest time that a worker may say it took for a piece, so that sums of such times stay numbers: a year.
const LONGEST_WORK: u64 = 365 * 24 * 3600 * 1000;
/// How often time passes.
const TICK: Duration = Duration::from_millis(100);
/// Bodies larger than this are hashed and decoded where blocking harms no other call.
pub(crate) const LARGE: usize = 256 << 10;
/// The most workers that are woken at once.
const MOST_WOKEN: usize = 256;

/// A running coordinator. Clones are the same one.
#[derive(Clone)]
pub struct Cluster(Arc<Inner>);

struct Inner {
    state: Mutex<ClusterState>,
    store: Store,
    claim: Option<Claim>,
    orders: UnboundedSender<Order>,
    tickets: Mutex<BTreeMap<Ticket, oneshot::Sender<Result<String, Rejection>>>>,
    next_ticket: AtomicU64,
    /// How many decisions of operators were carried out.
    decisions: AtomicU64,
    /// Notified of every change.
    changed: ChangeSignal,
    /// Wakes waiting workers, one for each piece of work.
    work: Notify,
    closing: AtomicBool,
    closed: Notify,
    clock: Clock,
    store_watch: StoreWatch,
    /// Whether everything is computed where it is asked for, as simulations need.
    inline: bool,
    /// Runs of the store that could not be read at the start, and why not.
    unread: Mutex<BTreeMap<String, Rejection>>,
    /// Shows that a coordinator serves the store.
    _serving: Option<Lock>,
}

/// What time it is.
#[derive(Clone)]
pub(crate) struct Clock {
    start: Instant,
    unix: fn() -> u64,
}

impl Clock {
    pub(crate) fn new(unix: fn() -> u64) -> Self {
        Self { start: Instant::now(), unix }
    }

    pub(crate) fn now(&self) -> Moment {
        Moment { elapsed: self.start.elapsed(), unix: (self.unix)() }
    }
}

/// What runs beside a cluster, and ends with it.
pub struct Background {
    ticking: JoinHandle<()>,
    writing: JoinHandle<()>,
}

impl Background {
    /// Ends everything at once, as a crash would.
    pub fn abort(self) {
        self.ticking.abort();
        self.writing.abort();
    }
}

impl Cluster {
    /// Starts a coordinator: reads all runs of the store if it has claimed it and is to compute them, and none otherwise.
    pub(crate) async fn start(
        store: Store,
        claim: Option<Claim>,
        rules: Rules,
        clock: Clock,
        inline: bool,
    ) -> Result<(Self, Background), Rejection> {
        let now = clock.now();
        let owner = Owner::this_process(&rules.version, now.unix);
        // Processes that work on runs of their own see that it is there.
        let serving = match claim {
            Some(_) => Some(Lock::serve(&store, &owner)?),
            None => None,
        };
        let reads_all = claim.is_some() && !rules.only_submitted;
        let (nonce, only_submitted) = (rules.nonce, rules.only_submitted);
        let opener = Opener { store: store.clone(), nonce, owner, claim: claim.clone(), only_submitted };
        let (orders, receiver) = mpsc::unbounded_channel();
        let cluster = Self(Arc::new(Inner {
            state: Mutex::new(ClusterState::new(rules, now)),
            store: store.clone(),
            claim: claim.clone(),
            orders,
            tickets: Mutex::default(),
            next_ticket: AtomicU64::new(1),
            decisions: AtomicU64::new(0),
            changed: ChangeSignal::new(),
            work: Notify::new(),
            closing: AtomicBool::new(false),
            closed: Notify::new(),
            clock,
            store_watch: StoreWatch::new(),
            inline,
            unread: Mutex::default(),
            _serving: serving,
        }));
        let (mut opened, unread) = if reads_all { opener.read_all(now).await? } else { (vec![], vec![]) };
        // Of those with the same priority, the one that was submitted first comes first.
        opened.sort_by_key(|(opened, _)| opened.created);
        let writer = Writer::new(cluster.clone(), store, claim, opener, receiver);
        let writing = tokio::spawn(writer.run());
        for (opened, files) in opened {
            if let Some(files) = files {
                let (run, id) = (opened.id.to_string(), opened.id.clone());
                cluster.order(Order::Opened { run, id, files });
            }
            cluster.apply(|state, _| state.insert(opened, None));
        }
        for (id, rejection) in unread {
            cluster.apply(|state, _| state.insert_unread(&id, &rejection));
            cluster.lock_unread().insert(id.to_string(), rejection);
        }
        cluster.apply(ClusterState::begin);
        let ticking = tokio::spawn(tick(cluster.clone()));
        Ok((cluster, Background { ticking, writing }))
    }

    /// Applies something to the state, and has its effects carried out.
    pub(crate) fn apply<T>(&self, change: impl FnOnce(&mut ClusterState, Moment) -> T) -> T {
        let out = self.apply_quietly(change);
        self.0.changed.notify();
        out
    }

    /// The same where nothing changes that is shown.
    fn apply_quietly<T>(&self, change: impl FnOnce(&mut ClusterState, Moment) -> T) -> T {
        let now = self.now();
        let mut state = self.lock();
        let before = state.available();
        let out = change(&mut state, now);
        // Effects are handed over in the order of the changes that they follow from.
        for effect in state.take_effects() {
            self.order(Order::Effect(effect));
        }
        let more = state.available().saturating_sub(before);
        let done = state.is_done();
        drop(state);
        for _ in 0..more.min(MOST_WOKEN) {
            self.0.work.notify_one();
        }
        if done {
            self.0.work.notify_waiters();
        }
        out
    }

    fn lock(&self) -> MutexGuard<'_, ClusterState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_unread(&self) -> MutexGuard<'_, BTreeMap<String, Rejection>> {
        self.0.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why a run could not be read at the start, if it could not.
    pub(crate) fn take_unread(&self, run: &str) -> Option<Rejection> {
        self.lock_unread().remove(run)
    }

    /// Looks at the state.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&ClusterState) -> T) -> T {
        look(&self.lock())
    }

    /// Changes what is known of traces, and nothing else.
    #[cfg(feature = "otlp")]
    pub(crate) fn change_spans<T>(&self, change: impl FnOnce(&mut crate::state::Spans) -> T) -> T {
        change(&mut self.lock().spans)
    }

    pub(crate) fn now(&self) -> Moment {
        self.0.clock.now()
    }

    pub(crate) fn store(&self) -> &Store {
        &self.0.store
    }

    /// How the store does.
    pub(crate) fn store_watch(&self) -> &StoreWatch {
        &self.0.store_watch
    }

    pub(crate) fn claim(&self) -> Option<&Claim> {
        self.0.claim.as_ref()
    }

    /// Gives the writer something to do. Once it has ended, nothing is written any more.
    pub(crate) fn order(&self, order: Order) {
        let _ = self.0.orders.send(order);
    }

    /// Feeds back what became of an effect.
    pub(crate) fn feed(&self, done: Done) {
        self.apply(|state, now| state.done(done, now));
    }

    /// Answers a call that has waited.
    pub(crate) fn answer(&self, ticket: Ticket, answer: Result<String, Rejection>) {
        let waiting = self.0.tickets.lock().unwrap_or_else(PoisonError::into_inner).remove(&ticket);
        if let Some(waiting) = waiting {
            let _ = waiting.send(answer);
        }
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.0.closing.load(SeqCst)
    }

    /// Ends all waiting calls.
    pub(crate) fn begin_closing(&self) {
        self.0.closing.store(true, SeqCst);
        self.0.closed.notify_waiters();
    }

    /// The number of changes so far.
    pub(crate) fn version(&self) -> u64 {
        self.0.changed.count()
    }

    pub(crate) fn changes(&self) -> Listener {
        self.0.changed.listen()
    }

    /// Waits for something until a moment. An error if the coordinator goes away.
    pub(crate) async fn wait(&self, event: impl Future<Output = ()>, until: Instant) -> Result<(), Status> {
        let mut closed = std::pin::pin!(self.0.closed.notified());
        closed.as_mut().enable();
        if self.is_closing() {
            return Err(going_away());
        }
        tokio::select! {
            biased;
            () = closed => Err(going_away()),
            () = event => Ok(()),
            () = tokio::time::sleep_until(until) => Ok(()),
        }
    }

    /// Makes a change that is answered once it is durable.
    async fn change(
        &self,
        change: impl FnOnce(&mut ClusterState, Ticket, Moment),
    ) -> Result<String, Rejection> {
        let ticket = Ticket(self.0.next_ticket.fetch_add(1, SeqCst));
        let (sender, answer) = oneshot::channel();
        self.0.tickets.lock().unwrap_or_else(PoisonError::into_inner).insert(ticket, sender);
        self.apply(|state, now| change(state, ticket, now));
        let answer = answer.await;
        self.0.decisions.fetch_add(1, SeqCst);
        answer.unwrap_or(Err(Rejection::Succeeded))
    }

    /// How many decisions of operators were carried out: what was seen before the last one is old.
    pub(crate) fn decisions(&self) -> u64 {
        self.0.decisions.load(SeqCst)
    }

    /// Submits a plan; returns the run. Player files that it names by their digests come along. Without a priority, a run
    /// that is there keeps its own.
    pub async fn submit(
        &self,
        plan: Plan,
        files: Vec<Bytes>,
        priority: impl Into<Option<i32>>,
        fresh: bool,
    ) -> Result<String, Rejection> {
        let priority = priority.into();
        let files = files.into_iter().map(|bytes| (evolution::digest::Digest::of(&bytes), bytes)).collect();
        let submission = Submission { plan: Box::new(plan), files, priority, fresh };
        self.change(|state, ticket, now| state.submit(submission, ticket, now)).await
    }

    /// Pauses a run, or continues it.
    pub async fn pause(&self, run: &str, paused: bool) -> Result<(), Rejection> {
        self.change(|state, ticket, now| state.pause(run, paused, ticket, now)).await.map(|_| ())
    }

    /// Cancels a run, and the parts of a study with it.
    pub async fn cancel(&self, run: &str) -> Result<(), Rejection> {
        self.change(|state, ticket, now| state.cancel(run, ticket, now)).await.map(|_| ())
    }

    /// Gives a run another budget.
    pub async fn extend(&self, run: &str, budget: BudgetKeys) -> Result<(), Rejection> {
        self.change(|state, ticket, now| state.extend(run, budget, ticket, now)).await.map(|_| ())
    }

    /// Changes the labels of a run; returns all of them. They are no part of what the run computes, so the state only shows
    /// them.
    pub async fn label(&self, run: &str, change: &LabelChange) -> Result<Labels, Rejection> {
        let id = self.look(|state| state.id_of(run))?;
        let labels = run::labels::change(self.store(), &id, change, self.now().unix).await?;
        self.apply(|state, _| state.set_labels(run, labels.clone()));
        self.0.decisions.fetch_add(1, SeqCst);
        Ok(labels)
    }

    /// Gives a worker no more work, or gives it work again; returns whether it is known, by its id or its name.
    pub fn drain(&self, worker: &str, drain: bool) -> bool {
        let is_known = self.apply(|state, _| state.workers.drain(worker, drain));
        if is_known {
            tracing::info!(worker = shown(worker), drain, "drain");
        }
        self.0.decisions.fetch_add(1, SeqCst);
        is_known
    }

    /// Opens a run of the store that this coordinator does not have yet, and continues it if it had stopped.
    pub async fn resume(&self, run: &run::RunId) -> Result<(), Rejection> {
        self.change(|state, ticket, now| state.resume(run, ticket, now)).await.map(|_| ())
    }

    /// Reads a run of the store that this coordinator does not have yet, as it is.
    pub async fn list(&self, run: &run::RunId) -> Result<(), Rejection> {
        self.change(|state, ticket, _| state.list(run, ticket)).await.map(|_| ())
    }

    /// Where a run stands.
    pub fn status(&self, run: &str) -> Result<v1::RunStatus, Rejection> {
        self.look(|state| state.status(run, self.now()))
    }

    /// Why the store could not write something, in a coordinator that does not wait for its store.
    pub fn take_trouble(&self) -> Option<run::RunError> {
        self.lock().trouble.take()
    }

    /// Computes something apart from the calls, if it is large.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        size: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Status> {
        if self.0.inline || size < LARGE {
            return Ok(work());
        }
        let computed = tokio::task::spawn_blocking(work).await;
        computed.map_err(|error| Status::internal(format!("a check of what was delivered: {error}")))
    }

    /// Stops: what was delivered is written, as far as the store takes it in time.
    pub async fn stop(&self, background: Background, longest: Duration) -> bool {
        self.begin_closing();
        background.ticking.abort();
        let all = async {
            let mut changes = self.changes();
            self.apply(ClusterState::write_everything);
            while !self.look(|state| state.is_written() || state.trouble.is_some()) {
                changes.changed().await;
            }
            self.order(Order::Close);
            let _ = background.writing.await;
        };
        tokio::time::timeout(longest, all).await.is_ok()
    }

    /// Takes a worker in, for which a principal answers.
    pub(crate) fn join_as(
        &self,
        request: &v1::JoinRequest,
        principal: &str,
    ) -> Result<v1::JoinReply, Status> {
        Ok(self.apply(|state, now| state.join(request, principal, now))?)
    }

    /// What a worker is known by that calls itself so, and for which a principal answers.
    pub(crate) fn key_of(&self, worker: &str, principal: &str) -> String {
        self.look(|state| state.workers.key(worker, principal))
    }

    pub(crate) async fn acquire_with(
        &self,
        request: v1::AcquireRequest,
        direct: bool,
    ) -> Result<v1::AcquireReply, Status> {
        let v1::AcquireRequest { worker, slots, holding, wait_milliseconds } = request;
        check_count(holding.len())?;
        let holding = holding.into_iter().map(Work::try_from).collect::<Result<BTreeSet<Work>, _>>();
        let holding = holding.map_err(invalid)?;
        let slots = slots.min(MOST_PIECES as u32);
        let deadline = deadline(wait_milliseconds);
        loop {
            let mut work = std::pin::pin!(self.0.work.notified());
            // From here on no call is missed.
            work.as_mut().enable();
            let (grants, done, durable) = self.apply_quietly(|state, now| {
                let grants = state.acquire(&worker, slots, &holding, &mut budget(direct), now)?;
                let done = state.is_done().then(|| state.unfinished().cloned());
                Ok::<_, Rejection>((grants, done, state.workers.durable(&worker)))
            })?;
            if !grants.is_empty() || done.is_some() || slots == 0 || Instant::now() >= deadline {
                let done = done.filter(|_| grants.is_empty());
                let (outcome, reason) = outcome(done.clone().flatten());
                let (done, outcome) = (done.is_some(), outcome.into());
                return Ok(v1::AcquireReply { grants, done, durable, outcome, reason });
            }
            self.wait(work, deadline.min(Instant::now() + LOOK_AGAIN)).await?;
        }
    }

    /// Takes a checkpoint that came over a network: it is examined first.
    pub(crate) async fn checkpoint_of(
        &self,
        head: v1::CheckpointHead,
        bytes: Bytes,
    ) -> Result<v1::CheckpointReply, Status> {
        let work = convert::work(head.piece).map_err(invalid)?;
        let inputs = convert::digest("inputs", &head.inputs).map_err(invalid)?;
        let worker = &head.worker;
        let examination = self.apply_quietly(|state, now| state.examination(worker, &work, &inputs, now))?;
        let Some(examination) = examination else { return Ok(v1::CheckpointReply {}) };
        let check = move || match examination.check_checkpoint(&bytes) {
            Ok(standing) => Ok((standing, Digest::of(&bytes), bytes)),
            Err(error) => Err(format!("a checkpoint of {error}")),
        };
        let checkpoint = self.compute(LARGE, check).await?;
        self.apply(|state, now| state.checkpoint(worker, &work, &inputs, checkpoint, now))?;
        Ok(v1::CheckpointReply {})
    }

    /// Takes what a worker delivers. What came over a network is hashed and checked first.
    pub(crate) async fn complete_with(
        &self,
        head: v1::CompleteHead,
        bodies: Vec<Bytes>,
        direct: bool,
    ) -> Result<v1::CompleteReply, Status> {
        use v1::complete_head::What;
        let v1::CompleteHead { worker, piece, milliseconds, what, slots } = head;
        let work = convert::work(piece).map_err(invalid)?;
        let slots = slots.min(MOST_PIECES as u32);
        let milliseconds = milliseconds.min(LONGEST_WORK);
        let size = bodies.iter().map(Bytes::len).sum();
        let more = |state: &mut ClusterState, now: Moment, status: DeliveryStatus, delivery: u64| {
            v1::CompleteReply {
                status: match status {
                    DeliveryStatus::Accepted => WireStatus::Accepted,
                    DeliveryStatus::Repeated => WireStatus::Repeated,
                    DeliveryStatus::Unneeded => WireStatus::Unneeded,
                }
                .into(),
                grants: state.more(&worker, slots, &mut budget(direct), now),
                delivery,
                durable: state.workers.durable(&worker),
            }
        };
        let reply = match what.ok_or_else(|| invalid(WireError::Missing("head.what")))? {
            What::Epoch(epoch) => {
                let inputs = convert::digest("inputs", &epoch.inputs).map_err(invalid)?;
                let examination = if direct {
                    None
                } else {
                    self.apply_quietly(|state, now| state.examination(&worker, &work, &inputs, now))?
                };
                let is_quick = examination.as_ref().is_none_or(Examination::is_quick);
                let deliver = move || deliver(&epoch, inputs, bodies, examination.as_ref(), direct);
                let delivery = self.compute(if is_quick { size } else { LARGE }, deliver).await??;
                self.apply(|state, now| {
                    let (status, delivery) =
                        state.complete_epoch(&worker, &work, delivery, milliseconds, now)?;
                    Ok::<_, Rejection>(more(state, now, status, delivery))
                })?
            }
            What::Cells(_) => {
                let plan = self.apply_quietly(|state, now| state.cell_plan(&worker, &work, now))?;
                let examined = plan.clone();
                let check = move || check_cells(plan.as_deref(), &bodies);
                let results = self.compute(if direct { 0 } else { LARGE }, check).await??;
                let delivered = DeliveredCells { results, examined, is_trusted: direct };
                self.apply(|state, now| {
                    let (status, delivery) = state.complete_cells(&worker, &work, delivered, now)?;
                    Ok::<_, Rejection>(more(state, now, status, delivery))
                })?
            }
            What::Job(job) => {
                let inputs = convert::digest("inputs", &job.inputs).map_err(invalid)?;
                let awaits = |state: &mut ClusterState, now| state.awaits_job(&worker, &work, &inputs, now);
                if !self.apply_quietly(awaits)? {
                    return Ok(self.apply(|state, now| more(state, now, DeliveryStatus::Unneeded, 0)));
                }
                let decode = move || codec::decode_dense::<JobResult>(&joined(&bodies));
                let result = self.compute(size, decode).await?.map_err(Rejection::from)?;
                self.apply(|state, now| {
                    let (status, delivery) =
                        state.complete_job(&worker, (&work, &inputs), result, direct, now)?;
                    Ok::<_, Rejection>(more(state, now, status, delivery))
                })?
            }
        };
        Ok(reply)
    }
}

fn going_away() -> Status {
    Status::unavailable("the coordinator is going away")
}

fn budget(direct: bool) -> ReplyBudget {
    if direct { ReplyBudget::unlimited() } else { ReplyBudget::new() }
}

/// When a call that may wait has to answer.
pub(crate) fn deadline(wait_milliseconds: u64) -> Instant {
    Instant::now() + Duration::from_millis(wait_milliseconds).min(LONGEST_WAIT)
}

pub(crate) fn invalid(error: WireError) -> Status {
    Rejection::from(error).into()
}

fn check_count(pieces: usize) -> Result<(), Status> {
    if pieces <= MOST_PIECES {
        return Ok(());
    }
    Err(Status::invalid_argument(format!("expected at most {MOST_PIECES} pieces, found {pieces}")))
}

fn joined(bodies: &[Bytes]) -> Bytes {
    match bodies {
        [one] => one.clone(),
        several => several.concat().into(),
    }
}

/// An epoch as it was delivered, from its head and its bytes: one body for each part, or all in one.
fn deliver(
    epoch: &v1::EpochResult,
    inputs: Digest,
    bodies: Vec<Bytes>,
    examination: Option<&Examination>,
    is_trusted: bool,
) -> Result<Delivery, Status> {
    let [state, departure, statistics] = match <[Bytes; 3]>::try_from(bodies) {
        Ok(parts) => parts,
        Err(bodies) => {
            let body = joined(&bodies);
            let (state, departure) = (epoch.state_length as usize, epoch.departure_length as usize);
            let ends = state.checked_add(departure).filter(|end| *end <= body.len());
            let end = ends.ok_or_else(|| Status::invalid_argument("expected bodies as long as announced"))?;
            [body.slice(..state), body.slice(state..end), body.slice(end..)]
        }
    };
    let reported = convert::digest("digest", &epoch.digest).map_err(invalid)?;
    let (digest, outcome) = EpochOutcome::of_bytes(state, departure, &statistics);
    let outcome = outcome.map_err(|error| format!("what was delivered {error}"));
    let outcome = outcome.and_then(|outcome| match examination.map(|one| one.check(&outcome)) {
        Some(Err(error)) => Err(error.to_string()),
        _ => Ok(outcome),
    });
    let is_examined = examination.is_some();
    Ok(Delivery { inputs, reported, digest, outcome, is_examined, is_trusted })
}

/// Results of cells as they were delivered; the number of one that cannot be right.
fn check_cells(
    plan: Option<&archipelago::cell::CellPlan>,
    bodies: &[Bytes],
) -> Result<Result<Vec<(u32, CellResult)>, u32>, Status> {
    // Of a run that is not open nothing is needed.
    let Some(plan) = plan else { return Ok(Ok(vec![])) };
    let results: Vec<(u32, CellResult)> = codec::decode_dense(&joined(bodies)).map_err(Rejection::from)?;
    let unsound = |(number, result): &&(u32, CellResult)| !plan.is_sound(*number, result);
    let unsound = results.iter().find(unsound).map(|(number, _)| *number);
    Ok(unsound.map_or(Ok(results), Err))
}

fn renewal(wire: v1::Renewal) -> Result<Renewal, WireError> {
    let v1::Renewal { piece, inputs, standing, progress, token } = wire;
    Ok(Renewal {
        work: convert::work(piece)?,
        token,
        inputs: convert::digest("inputs", &inputs).ok(),
        standing: standing.map(|standing| convert::standing(Some(standing))).transpose()?,
        progress,
    })
}

/// How runs ended, on the wire.
fn outcome(unfinished: Option<Unfinished>) -> (v1::Outcome, String) {
    match unfinished {
        None => (v1::Outcome::Finished, String::new()),
        Some(Unfinished::Failed(reason)) => (v1::Outcome::Failed, reason),
        Some(Unfinished::Cancelled(reason)) => (v1::Outcome::Cancelled, reason),
    }
}

/// Workers of the same process.
#[tonic::async_trait]
impl WorkerCalls for Cluster {
    async fn join(&self, request: v1::JoinRequest) -> Result<v1::JoinReply, Status> {
        // Workers of the same process answer for themselves.
        let principal = request.worker.clone();
        self.join_as(&request, &principal)
    }

    async fn acquire(&self, request: v1::AcquireRequest) -> Result<v1::AcquireReply, Status> {
        self.acquire_with(request, true).await
    }

    async fn plan(&self, request: v1::PlanRequest) -> Result<v1::PlanReply, Status> {
        let v1::PlanRequest { worker, run } = request;
        let (text, files) = self.apply_quietly(|state, now| state.text(&worker, &run, now))?;
        let players = files.values().map(|bytes| convert::body(bytes, false)).collect();
        Ok(v1::PlanReply { text, players })
    }

    async fn fetch(&self, request: v1::FetchRequest, _length: u64) -> Result<Bytes, Status> {
        let v1::FetchRequest { worker, piece, digest } = request;
        let work = convert::work(piece).map_err(invalid)?;
        let digest = convert::digest("digest", &digest).map_err(invalid)?;
        Ok(self.apply_quietly(|state, now| state.body(&worker, &work, &digest, now))?)
    }

    async fn renew(&self, request: v1::RenewRequest) -> Result<v1::RenewReply, Status> {
        let v1::RenewRequest { worker, renewals } = request;
        check_count(renewals.len())?;
        let renewals = renewals.into_iter().map(renewal).collect::<Result<Vec<_>, _>>().map_err(invalid)?;
        Ok(self.apply(|state, now| {
            let mut reply = v1::RenewReply::default();
            // A worker that holds nothing still says that it is there.
            state.workers.see(&worker, now.elapsed).map_err(Rejection::from)?;
            for renewal in renewals {
                match state.renew(&worker, &renewal, now)? {
                    Instruction::GoOn => {}
                    Instruction::HandBack => reply.hand_back.push(renewal.token),
                    Instruction::Stop => reply.lost.push(renewal.token),
                }
            }
            reply.durable = state.workers.durable(&worker);
            Ok::<_, Rejection>(reply)
        })?)
    }

    async fn checkpoint(
        &self,
        head: v1::CheckpointHead,
        bytes: Bytes,
    ) -> Result<v1::CheckpointReply, Status> {
        let work = convert::work(head.piece).map_err(invalid)?;
        let inputs = convert::digest("inputs", &head.inputs).map_err(invalid)?;
        let standing = convert::standing(head.standing).map_err(invalid)?;
        let size = bytes.len();
        let checkpoint = self.compute(size, move || (standing, Digest::of(&bytes), bytes)).await?;
        self.apply(|state, now| state.checkpoint(&head.worker, &work, &inputs, Ok(checkpoint), now))?;
        Ok(v1::CheckpointReply {})
    }

    async fn complete(
        &self,
        head: v1::CompleteHead,
        bodies: Vec<Bytes>,
    ) -> Result<v1::CompleteReply, Status> {
        self.complete_with(head, bodies, true).await
    }

    async fn release(&self, request: v1::ReleaseRequest) -> Result<v1::ReleaseReply, Status> {
        let v1::ReleaseRequest { worker, piece, failure, token, unfit, lacks_program } = request;
        let unfit = unfit.then_some(if lacks_program { UnfitReason::Program } else { UnfitReason::Memory });
        let work = convert::work(piece).map_err(invalid)?;
        self.apply(|state, now| state.release(&worker, (&work, token), (&failure, unfit), now))?;
        Ok(v1::ReleaseReply {})
    }

    async fn leave(&self, request: v1::LeaveRequest) -> Result<v1::LeaveReply, Status> {
        let v1::LeaveRequest { worker, reason, misconfigured } = request;
        self.apply(|state, now| {
            if misconfigured {
                state.note_misconfigured(&worker, &reason, now);
            }
            state.leave(&worker, &reason, now);
        });
        Ok(v1::LeaveReply {})
    }
}

async fn tick(cluster: Cluster) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let changed = cluster.apply_quietly(|state, now| {
            let before = (state.queue.active(), state.counters.expired);
            state.tick(now);
            before != (state.queue.active(), state.counters.expired)
        });
        if changed {
            cluster.0.changed.notify();
        }
    }
}
