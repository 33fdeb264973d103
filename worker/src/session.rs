//! A worker's session: it pulls work, computes it, renews its leases, and delivers results.
//!
//! One loop owns everything; calls and epochs run beside it and report back to it. Nothing here waits for a generation,
//! so leases are renewed however busy the cores are.

mod delivery;
mod spent;

use crate::client::{CallError, Calls, Client, Identity};
use crate::held::{Held, Phase, PieceReport};
use crate::memory::{Fit, Memory};
use crate::pool::{EpochJob, Message, Pool, PoolError, Stop, guarded};
use crate::supply::{PreparedPlan, Ready, Supply, SupplyError};
use archipelago::job::Job;
use bytes::Bytes;
use evolution::activity::Activity;
use proto::calls::WorkerCalls;
use proto::convert::Work;
use proto::v1;
use spent::Spent;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use tournament::EngineCommand;

/// How long one call for work waits.
const POLL: Duration = Duration::from_secs(10);
/// How much later than expected a reply may be.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a generation may continue after a stop was requested, before it is abandoned.
const DRAINING: Duration = Duration::from_secs(8);
/// The longest time of the final `Leave` call.
const GOODBYE: Duration = Duration::from_secs(1);
/// Epochs shorter than this are fetched ahead, so that no core waits for the network between two of them.
const SHORT: Duration = Duration::from_secs(1);

/// The settings of a worker at its start.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who it is.
    pub identity: Identity,
    /// Bytes of states to cache.
    pub cache_bytes: usize,
    /// Bytes of deliveries to keep until they are durable.
    pub undurable_bytes: usize,
    /// Approximate bytes for all work together.
    pub memory_bytes: u64,
    /// How engines are started that take part in tournaments, by their names.
    pub engines: BTreeMap<String, EngineCommand>,
}

/// How a worker ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// All runs are finished.
    Done,
    /// All runs have ended, but this one failed.
    Failed(String),
    /// All runs have ended, but this one was cancelled.
    Cancelled(String),
    /// It was asked to stop, and has returned its leases.
    Drained,
}

/// Why a worker could not continue.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The coordinator.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The threads.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// A call came to no answer: a defect of this program.
    #[error("a call of this worker panicked: {0}")]
    Panicked(String),
}

/// Works for a coordinator until there is nothing left to do, or until it is asked to stop. Calls travel over gRPC
/// ([`Grpc`](crate::Grpc)), or directly to a coordinator in the same process.
pub fn run<'a>(
    config: Config,
    calls: Arc<dyn WorkerCalls>,
    pool: Pool,
    shutdown: impl Future<Output = ()> + Send + 'a,
) -> Pin<Box<dyn Future<Output = Result<SessionEnd, WorkerError>> + Send + 'a>> {
    let (_, replacements) = mpsc::unbounded_channel();
    run_replacing(config, (calls, replacements), pool, shutdown)
}

/// As [`run`], with calls that are replaced under way by others that show another token or certificate. The old ones are
/// used until the coordinator accepts the new ones.
pub fn run_replacing<'a>(
    config: Config,
    calls: (Arc<dyn WorkerCalls>, Replacements),
    pool: Pool,
    shutdown: impl Future<Output = ()> + Send + 'a,
) -> Pin<Box<dyn Future<Output = Result<SessionEnd, WorkerError>> + Send + 'a>> {
    boxed(config, calls, pool, Box::pin(shutdown))
}

/// Calls in place of those that a worker began with.
pub type Replacements = mpsc::UnboundedReceiver<Arc<dyn WorkerCalls>>;

/// The session is compiled here and not in the command, which is not optimised.
fn boxed(
    config: Config,
    calls: (Arc<dyn WorkerCalls>, Replacements),
    pool: Pool,
    shutdown: Pin<Box<dyn Future<Output = ()> + Send + '_>>,
) -> Pin<Box<dyn Future<Output = Result<SessionEnd, WorkerError>> + Send + '_>> {
    Box::pin(join_and_work(config, calls, pool, shutdown))
}

async fn join_and_work(
    config: Config,
    (calls, mut replacements): (Arc<dyn WorkerCalls>, Replacements),
    pool: Pool,
    shutdown: impl Future<Output = ()>,
) -> Result<SessionEnd, WorkerError> {
    let client = Client::new(calls, config.identity, pool.threads(), config.undurable_bytes);
    let mut shutdown = std::pin::pin!(shutdown);
    let mut joining = std::pin::pin!(client.join());
    let renew_every = loop {
        tokio::select! {
            every = &mut joining => break every?,
            Some(calls) = replacements.recv() => client.replace(calls),
            () = &mut shutdown => {
                tracing::info!("asked to stop before a coordinator had answered");
                return Ok(SessionEnd::Drained);
            }
        }
    };
    tracing::info!(threads = pool.threads(), "joined the coordinator");
    let supply = Supply::new(client.clone(), config.cache_bytes, config.engines, pool.is_inline());
    let session = Session::new(client.clone(), replacements, pool, supply, config.memory_bytes);
    session.work(renew_every, shutdown).await
}

/// The result of a call.
enum Answer {
    Acquired { asked: usize, generation: u64, reply: Result<v1::AcquireReply, CallError> },
    Prepared { work: Work, grant: u64, ready: Result<Ready, SupplyError> },
    Delivered { work: Work, asked: usize, generation: u64, result: Result<v1::CompleteReply, CallError> },
    Returned { work: Work, result: Result<(), CallError> },
    Kept { work: Work, result: Result<(), CallError> },
    Renewed { generation: u64, reply: Result<v1::RenewReply, CallError> },
}

struct Session {
    client: Client,
    replacements: Replacements,
    /// Shows the coordinator the newest of them, until it accepts that.
    changing_over: JoinSet<()>,
    pool: Pool,
    supply: Supply,
    held: BTreeMap<Work, Held>,
    /// How many grants there have been.
    grants: u64,
    answers: JoinSet<Answer>,
    acquiring: bool,
    /// Pieces that calls under way have asked for.
    asked: usize,
    renewing: bool,
    reports: mpsc::UnboundedReceiver<PieceReport>,
    reporter: mpsc::UnboundedSender<PieceReport>,
    /// About how long an epoch takes.
    epoch_time: Duration,
    spent: Spent,
    memory: Memory,
    /// About how much memory one piece takes: the largest that is held, or that came last.
    need: u64,
    draining: Option<Instant>,
    /// How the runs ended, once the coordinator has said so.
    done: Option<SessionEnd>,
}

impl Session {
    fn new(
        client: Client,
        replacements: Replacements,
        pool: Pool,
        supply: Supply,
        memory_bytes: u64,
    ) -> Self {
        let (reporter, reports) = mpsc::unbounded_channel();
        Self {
            supply,
            client,
            replacements,
            changing_over: JoinSet::new(),
            pool,
            held: BTreeMap::new(),
            grants: 0,
            answers: JoinSet::new(),
            acquiring: false,
            asked: 0,
            renewing: false,
            reports,
            reporter,
            epoch_time: SHORT,
            spent: Spent::default(),
            memory: Memory { limit: memory_bytes },
            need: 0,
            draining: None,
            done: None,
        }
    }

    async fn work(
        mut self,
        renew_every: Duration,
        mut shutdown: std::pin::Pin<&mut impl Future<Output = ()>>,
    ) -> Result<SessionEnd, WorkerError> {
        let mut renewals = tokio::time::interval(renew_every);
        renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let end = loop {
            self.acquire();
            if let Some(end) = self.is_over() {
                break end;
            }
            let deadline = self.draining;
            tokio::select! {
                biased;
                () = until(deadline) => break SessionEnd::Drained,
                () = &mut shutdown, if deadline.is_none() => self.drain(),
                _ = renewals.tick() => self.renew(),
                Some(calls) = self.replacements.recv() => self.change_over(calls),
                Some(report) = self.reports.recv() => self.take(report),
                Some(answer) = self.answers.join_next() => match answer {
                    Ok(answer) => self.hear(answer)?,
                    // Without its answer the session would wait for ever.
                    Err(error) if error.is_panic() => return Err(WorkerError::Panicked(error.to_string())),
                    Err(_) => {}
                },
            }
        };
        self.leave(&end).await;
        Ok(end)
    }

    /// Calls over these from now on, as soon as the coordinator accepts them.
    fn change_over(&mut self, calls: Calls) {
        let client = self.client.clone();
        self.changing_over.abort_all();
        self.changing_over.spawn(async move { client.change_over(calls).await });
    }

    /// Whether there is nothing left to wait for.
    fn is_over(&self) -> Option<SessionEnd> {
        if !self.held.is_empty() {
            return None;
        }
        let drained = self.draining.map(|_| SessionEnd::Drained);
        self.done.clone().or(drained)
    }

    /// How many more pieces could be taken, beside those that were asked for already.
    fn free_slots(&self) -> usize {
        if self.done.is_some() || self.draining.is_some() {
            return 0;
        }
        let busy = self.held.values().filter(|held| held.phase != Phase::Delivering).count();
        let threads = self.pool.threads();
        let ahead = if self.epoch_time < SHORT { threads } else { 0 };
        let most = busy.saturating_add(self.memory.fitting(self.memory_used(), self.need));
        (threads + ahead).min(most).saturating_sub(busy + self.asked)
    }

    /// The memory of all work that is held.
    fn memory_used(&self) -> u64 {
        self.held.values().map(|held| held.memory).sum()
    }

    /// Asks for work if there is room for some, and waits for it.
    fn acquire(&mut self) {
        let slots = self.free_slots();
        if self.acquiring || slots == 0 {
            return;
        }
        self.acquiring = true;
        self.asked += slots;
        let request = v1::AcquireRequest {
            worker: self.client.id(),
            slots: slots as u32,
            holding: self.held.keys().map(v1::Piece::from).collect(),
            wait_milliseconds: POLL.as_millis() as u64,
        };
        let client = self.client.clone();
        self.answers.spawn(async move {
            let call = |client: Calls| {
                let request = request.clone();
                async move { client.acquire(request).await }
            };
            let generation = client.generation();
            Answer::Acquired { asked: slots, generation, reply: client.call(POLL + PATIENCE, call).await }
        });
    }

    fn hear(&mut self, answer: Answer) -> Result<(), CallError> {
        match answer {
            Answer::Acquired { asked, generation, reply } => {
                self.acquiring = false;
                self.asked -= asked;
                let reply = reply?;
                self.client.durable(generation, reply.durable);
                if reply.done {
                    self.done = Some(match reply.outcome() {
                        v1::Outcome::Finished => SessionEnd::Done,
                        v1::Outcome::Failed => SessionEnd::Failed(reply.reason),
                        v1::Outcome::Cancelled => SessionEnd::Cancelled(reply.reason),
                    });
                }
                self.accept_all(reply.grants);
            }
            Answer::Prepared { work, grant, ready } => self.prepared(&work, grant, ready)?,
            Answer::Delivered { work, asked, generation, result } => {
                self.held.remove(&work);
                self.asked -= asked;
                let reply = settled(&work, result)?.unwrap_or_default();
                self.client.durable(generation, reply.durable);
                self.accept_all(reply.grants);
            }
            Answer::Returned { work, result } => {
                self.held.remove(&work);
                settled(&work, result)?;
            }
            Answer::Kept { work, result } => {
                if let Some(held) = self.held.get_mut(&work) {
                    held.uploading = false;
                }
                settled(&work, result)?;
                self.upload(&work);
            }
            Answer::Renewed { generation, reply } => {
                self.renewing = false;
                let v1::RenewReply { lost, hand_back, durable } = reply?;
                self.client.durable(generation, durable);
                for token in lost {
                    self.lose(token);
                }
                for token in hand_back {
                    self.pause(token);
                }
            }
        }
        Ok(())
    }

    fn accept_all(&mut self, grants: Vec<v1::Grant>) {
        for grant in grants {
            self.accept(grant);
        }
    }

    /// Makes a granted piece ready to be run.
    fn accept(&mut self, grant: v1::Grant) {
        let Ok(work) = proto::convert::work(grant.piece.clone()) else {
            tracing::error!("the coordinator granted something that is no piece of work");
            return;
        };
        if let Some(held) = self.held.get_mut(&work) {
            // The coordinator did not know that it is held: a new one, or its answer came late.
            held.token = grant.token;
            return;
        }
        if self.draining.is_some() {
            return;
        }
        self.grants += 1;
        let number = self.grants;
        let inputs = grant.task.as_ref().map(|task| &task.inputs);
        let inputs = inputs.or(grant.job.as_ref().map(|job| &job.inputs_digest));
        let inputs = inputs.and_then(|inputs| proto::convert::digest("inputs", inputs).ok());
        self.held.insert(work.clone(), Held::new(number, grant.token, inputs, self.need));
        let supply = self.supply.clone();
        self.answers.spawn(async move {
            let ready = supply.prepare(&work, grant).await;
            Answer::Prepared { work, grant: number, ready }
        });
    }

    /// Continues a piece whose inputs are there, unless it has gone back meanwhile.
    fn prepared(
        &mut self,
        work: &Work,
        grant: u64,
        ready: Result<Ready, SupplyError>,
    ) -> Result<(), CallError> {
        let held = self.held.get(work);
        let awaited = held.is_some_and(|held| held.grant == grant && held.phase == Phase::Preparing);
        match ready {
            Err(SupplyError::Call(CallError::Rejected(reason))) if awaited => {
                tracing::debug!(%work, reason, "taken back");
                self.held.remove(work);
            }
            Err(SupplyError::Call(error)) if !matches!(error, CallError::Rejected(_)) => return Err(error),
            Err(SupplyError::Missing(reason)) if awaited => self.refuse(work, &reason, true),
            Err(error) if awaited => self.give_back(work, &error.to_string()),
            Ok(ready) if awaited => self.fit(work, grant, ready),
            _ => {}
        }
        Ok(())
    }

    /// Begins a piece if there is memory for it.
    fn fit(&mut self, work: &Work, grant: u64, ready: Ready) {
        let need = ready.memory(self.pool.threads());
        if let Some(held) = self.held.get_mut(work) {
            held.memory = 0;
        }
        self.need = self.held.values().map(|held| held.memory).fold(need, u64::max);
        match self.memory.fit(self.memory_used(), need) {
            Fit::Now => self.begin(work, grant, need, ready),
            Fit::Later => self.give_back(work, ""),
            Fit::Never => {
                let mebibytes = |bytes: u64| bytes.div_ceil(1 << 20);
                let (need, limit) = (mebibytes(need), mebibytes(self.memory.limit));
                let reason = format!(
                    "expected work for at most {limit} MiB of memory (`memory_mib` of this worker), found some that \
                     needs about {need} MiB"
                );
                self.refuse(work, &reason, false);
            }
        }
    }

    fn begin(&mut self, work: &Work, grant: u64, memory: u64, ready: Ready) {
        let Some(held) = self.held.get_mut(work) else { return };
        held.phase = Phase::Running;
        held.memory = memory;
        let stop = held.stop.clone();
        match ready {
            Ready::Epoch { evolution, task, checkpoint } => {
                held.gauge = Some((evolution.gauges.clone(), task.island));
                let job = EpochJob {
                    evolver: evolution.evolver.clone(),
                    task,
                    checkpoint,
                    checkpoint_every: evolution.checkpoint_every,
                    stop,
                    gauges: evolution.gauges.clone(),
                    activity: held.activity.clone(),
                };
                let (reporter, supply, work) = (self.reporter.clone(), self.supply.clone(), work.clone());
                self.pool.run(job, move |message| {
                    if let Message::Done { task, outcome, .. } = &message {
                        supply.keep(&work.run, task.island, outcome.left, &outcome.state);
                    }
                    let _ = reporter.send(PieceReport::Epoch {
                        work: work.clone(),
                        grant,
                        message: Box::new(message),
                    });
                });
            }
            Ready::Job { job, inputs } => {
                held.begun = Instant::now();
                let activity = held.activity.clone();
                self.compute_job(work, grant, job, inputs, activity);
            }
            Ready::Cells { prepared, first, count } => {
                held.wanted = count;
                held.begun = Instant::now();
                let activity = held.activity.clone();
                (first..first + count)
                    .for_each(|number| self.compute(work, grant, &prepared, number, (&stop, &activity)));
            }
        }
    }

    fn compute_job(&self, work: &Work, grant: u64, job: Job, inputs: Vec<Bytes>, activity: Activity) {
        let (reporter, work) = (self.reporter.clone(), work.clone());
        self.pool.spawn(move || {
            let result = guarded(|| activity.watch(|| job.compute(&inputs)));
            let result = result.and_then(|result| result.map_err(|error| error.to_string()));
            let _ = reporter.send(PieceReport::Job { work, grant, result });
        });
    }

    fn compute(
        &self,
        work: &Work,
        grant: u64,
        prepared: &Arc<PreparedPlan>,
        number: u32,
        (stop, activity): (&Stop, &Activity),
    ) {
        let (reporter, work) = (self.reporter.clone(), work.clone());
        let (prepared, stop, activity) = (prepared.clone(), stop.clone(), activity.clone());
        self.pool.spawn(move || {
            let PreparedPlan { plan, contestants } = &*prepared;
            let compute = || activity.watch(|| plan.compute(number, contestants, || stop.is_asked()));
            let result = guarded(compute).and_then(|result| result.map_err(|error| error.to_string()));
            let result = result.map_err(|reason| format!("cell {number}: {reason}"));
            let _ = reporter.send(PieceReport::Cell { work, grant, number, result });
        });
    }

    /// Handles a message of the pool. Messages of a grant that is gone are ignored.
    fn take(&mut self, report: PieceReport) {
        let (work, grant) = report.of();
        let (work, grant) = (work.clone(), grant);
        let Some(held) = self.held.get_mut(&work).filter(|held| held.grant == grant) else { return };
        match report {
            PieceReport::Epoch { message, .. } => match *message {
                Message::Checkpoint { standing, bytes, .. } => {
                    held.checkpoint = Some((standing, bytes));
                    self.upload(&work);
                }
                Message::Done { outcome, time, .. } => {
                    self.epoch_time = (self.epoch_time * 3 + time) / 4;
                    self.deliver_epoch(&work, *outcome, time);
                }
                Message::Stopped { .. } => self.stopped(&work),
                Message::Failed { reason, .. } => self.give_back(&work, &reason),
            },
            PieceReport::Job { result, .. } => match result {
                Ok(result) => self.deliver_job(&work, &result),
                Err(reason) => self.give_back(&work, &reason),
            },
            PieceReport::Cell { number, result, .. } => match result {
                Ok(result) => {
                    held.cells.push(result.map(|result| (number, result)));
                    if held.cells.len() as u32 == held.wanted {
                        self.deliver_cells(&work);
                    }
                }
                Err(reason) => self.give_back(&work, &reason),
            },
        }
    }

    /// Renews all leases, with their progress.
    fn renew(&mut self) {
        if self.renewing {
            return;
        }
        self.renewing = true;
        let renewals = self.held.iter().map(|(work, held)| held.renewal(work)).collect();
        let request = v1::RenewRequest { worker: self.client.id(), renewals };
        let client = self.client.clone();
        self.answers.spawn(async move {
            let call = |client: Calls| {
                let request = request.clone();
                async move { client.renew(request).await }
            };
            let generation = client.generation();
            Answer::Renewed { generation, reply: client.call(PATIENCE, call).await }
        });
    }

    /// The piece of a lease, if it is still held by that lease.
    fn leased(&self, token: u64) -> Option<Work> {
        self.held.iter().find(|(_, held)| held.token == token).map(|(work, _)| work.clone())
    }

    /// Stops a piece at the next generation; it goes back with a checkpoint of what has been done.
    fn hand_back(&mut self, work: &Work) {
        let Some(held) = self.held.get(work) else { return };
        match held.phase {
            Phase::Preparing => self.give_back(work, ""),
            Phase::Running => held.stop.ask(),
            Phase::Stopped | Phase::Delivering => {}
        }
    }

    /// Drops work that is no longer needed. What is on its way to the coordinator stays until it has responded.
    fn lose(&mut self, token: u64) {
        let Some(work) = self.leased(token) else { return };
        let held = &self.held[&work];
        if matches!(held.phase, Phase::Running | Phase::Stopped) {
            tracing::info!(%work, "not needed any more");
            held.stop.ask();
            self.held.remove(&work);
        }
    }

    /// Returns work that was paused.
    fn pause(&mut self, token: u64) {
        if let Some(work) = self.leased(token) {
            tracing::info!(%work, "paused");
            self.hand_back(&work);
        }
    }

    /// Asks everything to stop at the next generation.
    fn drain(&mut self) {
        tracing::info!(pieces = self.held.len(), "stopping at the next generation");
        self.draining = Some(Instant::now() + DRAINING);
        for work in self.held.keys().cloned().collect::<Vec<_>>() {
            self.hand_back(&work);
        }
    }

    /// Leaves; the coordinator need not receive it.
    async fn leave(&mut self, end: &SessionEnd) {
        self.answers.abort_all();
        let reason = match end {
            SessionEnd::Done => "nothing is left to do",
            SessionEnd::Failed(_) => "a run has failed",
            SessionEnd::Cancelled(_) => "a run was cancelled",
            SessionEnd::Drained => "asked to stop",
        };
        let request =
            v1::LeaveRequest { worker: self.client.id(), reason: reason.to_owned(), misconfigured: false };
        let call = |client: Calls| {
            let request = request.clone();
            async move { client.leave(request).await }
        };
        let _ = tokio::time::timeout(GOODBYE, self.client.call(GOODBYE, call)).await;
        tracing::info!(reason, "left the coordinator");
    }
}

/// A call that the coordinator did not want is over; others mean that it does not want this worker, or is not there.
fn settled<T>(work: &Work, result: Result<T, CallError>) -> Result<Option<T>, CallError> {
    match result {
        Err(CallError::Rejected(reason)) => {
            tracing::warn!(%work, reason, "not accepted");
            Ok(None)
        }
        other => other.map(Some),
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
