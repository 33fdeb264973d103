//! The writer: it carries out what the state asks for, and feeds back what became of it.
//!
//! The steps of one run are carried out one after the other, by a task of its own; a store call that hangs holds up that
//! run and no other. Runs are opened side by side, but for those whose names follow from the same plan: two submissions
//! cannot take the same name.

mod memory;
pub(crate) mod open;

use crate::cluster::{Cluster, LARGE};
use crate::rejection::Rejection;
use crate::state::{Done, Effect, KeptCells, OpenRequest, ReadyJob, Receipt, RunEnding, Step, Ticket};
use archipelago::cell::{CellPlan, CellResult};
use archipelago::job::JobResult;
use bytes::Bytes;
use open::{OpenedRun, Opener};
use run::jobs::{JobLog, Kept};
use run::players::PlayerFiles;
use run::{Journal, JournalError, JournalHead, Place, Pruned, RunError, RunEvent, RunId, Summary};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use store::{Claim, Kind, Store, StoreError};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::{JoinHandle, JoinSet};

/// How long to wait with what the store could not write.
const WRITE_AGAIN: Duration = Duration::from_secs(1);
/// The same while the coordinator closes, and has not long to wait.
const CLOSING_AGAIN: Duration = Duration::from_millis(50);
/// How many runs are opened at a time.
const AT_A_TIME: usize = 16;
/// How many results of cells are collected before they are written.
const CELLS_AT_ONCE: usize = 1024;

/// A command for the writer.
pub(crate) enum Order {
    Effect(Effect),
    /// A run was opened: its events go to this journal.
    Opened {
        run: String,
        id: RunId,
        files: RunFiles,
    },
    /// Nothing more comes: whatever is under way is finished.
    Close,
}

/// Where a run is written to.
pub(crate) struct RunFiles {
    pub(crate) journal: Journal,
    /// The results of cells, if it consists of cells.
    pub(crate) jobs: Option<JobLog>,
}

/// Carries out effects until it is closed; then all requested effects are done.
pub(crate) struct Writer {
    cluster: Cluster,
    store: Store,
    claim: Option<Claim>,
    orders: UnboundedReceiver<Order>,
    runs: BTreeMap<String, RunTask>,
    /// Tasks of runs that are closed, and still finish what was asked for.
    closing: BTreeMap<String, JoinHandle<()>>,
    reading: JoinSet<()>,
    auditing: Arc<tokio::sync::Mutex<()>>,
    opener: Arc<Opener>,
    /// Held while a run of this base name is opened.
    names: BTreeMap<String, Arc<tokio::sync::Mutex<()>>>,
    /// How many runs may be read at a time.
    at_a_time: Arc<Semaphore>,
}

struct RunTask {
    steps: UnboundedSender<Step>,
    task: JoinHandle<()>,
}

/// A run to be opened, after an earlier one of the same name is closed.
struct Opening {
    request: OpenRequest,
    ticket: Option<Ticket>,
    after: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn new(
        cluster: Cluster,
        store: Store,
        claim: Option<Claim>,
        opener: Opener,
        orders: UnboundedReceiver<Order>,
    ) -> Self {
        Self {
            cluster,
            store,
            claim,
            orders,
            runs: BTreeMap::new(),
            closing: BTreeMap::new(),
            reading: JoinSet::new(),
            auditing: Arc::default(),
            opener: Arc::new(opener),
            names: BTreeMap::new(),
            at_a_time: Arc::new(Semaphore::new(AT_A_TIME)),
        }
    }

    pub(crate) async fn run(mut self) {
        while let Some(order) = self.orders.recv().await {
            match order {
                Order::Effect(effect) => self.carry_out(effect),
                Order::Opened { run, id, files } => self.begin(run, id, files),
                Order::Close => break,
            }
            while self.reading.try_join_next().is_some() {}
        }
        let tasks: Vec<RunTask> = std::mem::take(&mut self.runs).into_values().collect();
        let tasks: Vec<JoinHandle<()>> = tasks.into_iter().map(|RunTask { task, .. }| task).collect();
        for task in tasks.into_iter().chain(self.closing.into_values()) {
            let _ = task.await;
        }
    }

    fn begin(&mut self, run: String, id: RunId, files: RunFiles) {
        let (steps, receiver) = mpsc::unbounded_channel();
        let writer = RunWriter {
            run: run.clone(),
            id,
            files,
            cluster: self.cluster.clone(),
            store: self.store.clone(),
            claim: self.claim.clone(),
        };
        self.runs.insert(run, RunTask { steps, task: tokio::spawn(writer.write_all(receiver)) });
    }

    /// Opens a run beside others. Two whose names follow from the same plan wait for each other: which name is free is
    /// known once the first is there.
    fn open(&mut self, opening: Opening) {
        self.names.retain(|_, turn| Arc::strong_count(turn) > 1);
        let turn = self.names.entry(opening.request.base_name()).or_default().clone();
        let (cluster, opener, at_a_time) =
            (self.cluster.clone(), self.opener.clone(), self.at_a_time.clone());
        self.reading.spawn(async move {
            let Opening { request, ticket, after } = opening;
            let _turn = turn.lock().await;
            if let Some(after) = after {
                let _ = after.await;
            }
            let (name, part) = (request.name(), request.part());
            let opened = open_one(&opener, &cluster, request, ticket.is_some(), &at_a_time).await;
            let Some(opened) = opened else { return };
            let opened = match opened {
                Ok((opened, files)) => {
                    if let Some(files) = files {
                        let (run, id) = (opened.id.to_string(), opened.id.clone());
                        cluster.order(Order::Opened { run, id, files });
                    }
                    Ok(opened)
                }
                Err(rejection) => Err((name, rejection)),
            };
            cluster.feed(Done::Opened { opened, part, ticket });
        });
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Step { run, step: Step::Forget } => {
                if let Some(RunTask { task, .. }) = self.runs.remove(&run) {
                    self.closing.retain(|_, task| !task.is_finished());
                    self.closing.insert(run, task);
                }
            }
            Effect::Step { run, step } => {
                // What comes for a run that has been closed meanwhile is not needed.
                if let Some(task) = self.runs.get(&run) {
                    let _ = task.steps.send(step);
                }
            }
            Effect::Open { request, ticket } => {
                let after = request.name().and_then(|name| self.closing.remove(&name));
                self.open(Opening { request, ticket, after });
            }
            Effect::LookUp { submission, ticket } => {
                let cluster = self.cluster.clone();
                self.reading.spawn(async move {
                    let submission = open::look_up(&cluster, submission).await;
                    cluster.feed(Done::LookedUp { submission, ticket });
                });
            }
            Effect::ReadInputs { run, number, source } => {
                let (cluster, store, claim) = (self.cluster.clone(), self.store.clone(), self.claim.clone());
                self.reading.spawn(async move {
                    let mut inputs = open::read_inputs(&store, &source).await;
                    while let Err(error) = &inputs
                        && error.is_outage()
                    {
                        if cluster.is_closing() {
                            // Whoever opens the run next reads them.
                            return;
                        }
                        tracing::error!(run, %error, "inputs of a job cannot be read; trying again");
                        tokio::time::sleep(WRITE_AGAIN).await;
                        inputs = open::read_inputs(&store, &source).await;
                    }
                    let inputs = match inputs {
                        Ok((job, inputs)) => {
                            let size = inputs.iter().map(Bytes::len).sum();
                            let ready = cluster.compute(size, move || ReadyJob::new(job, inputs)).await;
                            ready.map_err(|status| status.message().to_owned())
                        }
                        Err(rejection) => Err(open::why_unread(&source, &rejection)),
                    };
                    if inputs.is_err() && is_lost(claim.as_ref()).await {
                        cluster.feed(Done::Succeeded);
                    }
                    cluster.feed(Done::Inputs { run, number, inputs });
                });
            }
            Effect::Recompute { run, place, inputs, examination, checkpoints } => {
                let recompute = move |_: &Cluster| {
                    memory::check(examination.memory())?;
                    examination.recompute(&checkpoints).map(Some).map_err(|error| error.to_string())
                };
                self.recompute(recompute, move |computed| Done::Recomputed { run, place, inputs, computed });
            }
            Effect::RecomputeCell { run, number, plan, files } => {
                let recompute = move |cluster: &Cluster| compute_cell(cluster, &plan, number, &files);
                self.recompute(recompute, move |computed| Done::RecomputedCell { run, number, computed });
            }
            Effect::CheckJob { run, number, author, job, inputs, delivered } => {
                let recompute = move |_: &Cluster| {
                    // The individuals are decoded, and played with.
                    let need = inputs.iter().map(|input| 8 * input.len() as u64).sum();
                    match memory::check(need) {
                        Ok(()) => job
                            .compute(&inputs)
                            .map(|result| Some(Ok(result)))
                            .map_err(|error| error.to_string()),
                        Err(lack) => Ok(Some(Err(lack))),
                    }
                };
                self.recompute(recompute, move |checked: Result<Result<JobResult, String>, String>| {
                    let result = match checked {
                        Ok(Err(reason)) => {
                            return Done::UncheckedJob { run, number, author, delivered, reason };
                        }
                        Ok(Ok(result)) => Ok(result),
                        Err(reason) => Err(reason),
                    };
                    let is_right = result.as_ref().is_ok_and(|result| *result == delivered);
                    Done::CheckedJob { run, number, author, is_right, result }
                });
            }
            Effect::Answer { ticket, answer } => self.cluster.answer(ticket, answer),
        }
    }

    /// Computes something that workers have computed, and feeds back what it came to; nothing if the coordinator closes
    /// before that is known.
    fn recompute<T: Send + 'static>(
        &mut self,
        compute: impl FnOnce(&Cluster) -> Result<Option<T>, String> + Send + 'static,
        done: impl FnOnce(Result<T, String>) -> Done + Send + 'static,
    ) {
        let (cluster, turn) = (self.cluster.clone(), self.auditing.clone());
        self.reading.spawn(async move {
            // One at a time: what is audited must not keep the coordinator from its calls.
            let _turn = turn.lock().await;
            let asked = cluster.clone();
            let computed = cluster.compute(LARGE, move || compute(&asked)).await;
            let computed = computed.unwrap_or_else(|status| Err(status.message().to_owned()));
            if let Some(computed) = computed.transpose() {
                cluster.feed(done(computed));
            }
        });
    }
}

/// Computes a cell; nothing if the coordinator closes meanwhile.
fn compute_cell(
    cluster: &Cluster,
    plan: &CellPlan,
    number: u32,
    files: &PlayerFiles,
) -> Result<Option<CellResult>, String> {
    memory::check(plan.memory(number))?;
    let contestants = match plan {
        CellPlan::Sweep(_) => vec![],
        CellPlan::Tournament(games) => {
            games.contestants(files, &BTreeMap::new()).map_err(|error| error.to_string())?
        }
    };
    plan.compute(number, &contestants, || cluster.is_closing()).map_err(|error| error.to_string())
}

/// Opens a run. While the store fails, it is tried again, unless an operator waits for the answer: what a study needs or a
/// retraction closed has no other way to begin. Nothing if the coordinator closes meanwhile: that says nothing of the run.
async fn open_one(
    opener: &Opener,
    cluster: &Cluster,
    request: OpenRequest,
    is_awaited: bool,
    at_a_time: &Semaphore,
) -> Option<Result<OpenedRun, Rejection>> {
    loop {
        let permit = at_a_time.acquire().await;
        let opened = opener.open(request.clone(), cluster.now()).await;
        drop(permit);
        match opened {
            Err(error) if error.is_outage() && !is_awaited => {
                if cluster.is_closing() {
                    return None;
                }
                tracing::error!(run = request.name(), %error, "cannot be opened; trying again");
                tokio::time::sleep(WRITE_AGAIN).await;
            }
            opened => return Some(opened),
        }
    }
}

/// Writes what belongs to one run.
struct RunWriter {
    run: String,
    id: RunId,
    files: RunFiles,
    cluster: Cluster,
    store: Store,
    claim: Option<Claim>,
}

impl RunWriter {
    async fn write_all(mut self, mut steps: UnboundedReceiver<Step>) {
        while let Some(step) = steps.recv().await {
            let mut next = Some(step);
            while let Some(step) = next.take() {
                next = self.write(step, &mut steps).await;
            }
        }
    }

    /// Carries out a step; returns another that was taken from the queue meanwhile.
    async fn write(&mut self, step: Step, steps: &mut UnboundedReceiver<Step>) -> Option<Step> {
        let run = self.run.clone();
        match step {
            Step::Commit(batch) => {
                if self.is_succeeded().await {
                    self.cluster.feed(Done::Succeeded);
                    return None;
                }
                let writing = self.cluster.store_watch().begin();
                let result = batch.write(&self.store).await;
                writing.done(result.is_ok());
                self.pause_after(result.is_err()).await;
                self.cluster.feed(Done::Committed { run, batch, result });
            }
            Step::Prune(pruning) => {
                let result = pruning.delete(&self.store, self.claim.as_ref()).await;
                if matches!(result, Ok(Pruned::NotOurs)) {
                    // To ask for it again would get the same answer, at once and without end.
                    self.cluster.feed(Done::Succeeded);
                    return None;
                }
                self.pause_after(result.is_err()).await;
                self.cluster.feed(Done::Pruned { run, pruning, result });
            }
            Step::Append { event, then, ending } => {
                let result = self.append(&event, ending).await;
                if matches!(result, Err(Rejection::Succeeded)) {
                    self.cluster.feed(Done::Succeeded);
                }
                self.pause_after(result.is_err()).await;
                self.cluster.feed(Done::Appended { run, then, result });
            }
            Step::KeepCells { plan, receipt, results } => {
                // What several workers have delivered is written together.
                let mut count = results.len();
                let mut deliveries = vec![(receipt, results)];
                let mut next = None;
                while count < CELLS_AT_ONCE && next.is_none() {
                    match steps.try_recv() {
                        Ok(Step::KeepCells { receipt, results, .. }) => {
                            count += results.len();
                            deliveries.push((receipt, results));
                        }
                        Ok(step) => next = Some(step),
                        Err(_) => break,
                    }
                }
                if self.is_succeeded().await {
                    // What is written now would not count.
                    self.cluster.feed(Done::Succeeded);
                } else {
                    self.keep_cells(&plan, deliveries).await;
                }
                return next;
            }
            Step::RetractCells { cells, reason, at } => {
                let (stored, result) = self.retract_cells(&cells, &reason, at).await;
                if matches!(result, Err(Rejection::Succeeded)) {
                    self.cluster.feed(Done::Succeeded);
                }
                self.pause_after(result.is_err()).await;
                self.cluster.feed(Done::RetractedCells { run, cells, reason, stored, result });
            }
            Step::KeepJob { number, name, receipt, result } => {
                let path = Place::Artifact(name).in_run(&self.id);
                let writing = self.cluster.store_watch().begin();
                // What differs from it was not made by a coordinator: nothing replaces it, and nothing is built upon it.
                let stored = match self.store.create_value(&path, Kind::Artifact, &result).await {
                    Ok(_) => Ok(result),
                    Err(error) => Err((result, error)),
                };
                writing.done(stored.is_ok());
                self.pause_after(stored.is_err()).await;
                self.cluster.feed(Done::KeptJob { run, number, receipt, stored });
            }
            Step::Forget => {}
        }
        None
    }

    /// Appends an event, unless another coordinator has the store; and the summary of the run if it is its last.
    async fn append(
        &mut self,
        event: &RunEvent,
        ending: Option<RunEnding>,
    ) -> Result<JournalHead, Rejection> {
        if self.is_succeeded().await {
            return Err(Rejection::Succeeded);
        }
        let writing = self.cluster.store_watch().begin();
        let appended = self.files.journal.append(event).await;
        writing.done(appended.is_ok());
        match appended {
            Ok(_) => {}
            Err(JournalError::Fenced { .. }) if self.is_succeeded().await => {
                return Err(Rejection::Succeeded);
            }
            Err(error) => return Err(RunError::from(error).into()),
        }
        let head = self.files.journal.head();
        let summary = ending.and_then(|RunEnding { outline, created, priority }| {
            Summary::of(event, outline, (created, priority), head)
        });
        if let Some(summary) = summary
            && let Err(error) = summary.write(&self.store, &self.id).await
        {
            // Lists read the run instead.
            tracing::warn!(run = self.run, %error, "its summary cannot be written");
        }
        Ok(head)
    }

    /// Writes down that results of cells do not count any more. Returns what became known to be stored by that.
    async fn retract_cells(
        &mut self,
        cells: &[u32],
        reason: &str,
        at: u64,
    ) -> (Vec<(u32, CellResult)>, Result<(), Rejection>) {
        let Some(log) = &mut self.files.jobs else { return (vec![], Ok(())) };
        let (Kept { new, error, .. }, batches) = log.settle().await;
        if let Some(error) = error {
            return (new, Err(error.into()));
        }
        let (jobs, reason) = (cells.to_vec(), reason.to_owned());
        let event = RunEvent::RetractedJobs { jobs, batches, reason, at };
        let appended = self.append(&event, None).await;
        if let (Ok(_), Some(log)) = (&appended, &mut self.files.jobs) {
            log.retract(cells);
        }
        (new, appended.map(|_| ()))
    }

    async fn is_succeeded(&self) -> bool {
        let asked = self.claim.as_ref().map(|claim| (claim, self.cluster.store_watch().begin_read()));
        let Some((claim, asked)) = asked else { return false };
        let stands = claim.stands().await;
        asked.done(stands.is_ok());
        // While the store cannot say, this one has it.
        matches!(stands, Ok(false))
    }

    async fn pause_after(&self, failure: bool) {
        if failure {
            let again = if self.cluster.is_closing() { CLOSING_AGAIN } else { WRITE_AGAIN };
            tokio::time::sleep(again).await;
        }
    }

    async fn keep_cells(&mut self, plan: &Arc<CellPlan>, deliveries: Vec<(Receipt, Vec<(u32, CellResult)>)>) {
        let Some(log) = &mut self.files.jobs else { return };
        let mut all = vec![];
        let mut receipts = vec![];
        for (receipt, results) in deliveries {
            receipts.push((receipt, results.iter().map(|(number, _)| *number).collect::<BTreeSet<u32>>()));
            all.extend(results);
        }
        let writing = self.cluster.store_watch().begin();
        let Kept { mut new, mut differing, mut error, unstored } = log.keep(plan, all).await;
        writing.done(error.is_none());
        let failed = error.is_some();
        let mut done = vec![];
        for (receipt, numbers) in receipts {
            let wrong = differing.extract_if(.., |(number, _)| numbers.contains(number));
            let wrong = wrong.filter_map(|(number, error)| match error {
                StoreError::Differs { offered, .. } => Some((number, offered)),
                _ => None,
            });
            let differing = wrong.collect();
            let is_of_it = |(number, _): &&(u32, CellResult)| numbers.contains(number);
            let unstored = unstored.iter().filter(is_of_it).cloned().collect();
            // What an earlier call could not write comes with the first delivery, and so does a failure of the store.
            let stored = std::mem::take(&mut new);
            let error = error.take();
            done.push(Done::KeptCells {
                run: self.run.clone(),
                receipt,
                kept: KeptCells { stored, unstored, differing, error },
            });
        }
        self.pause_after(failed).await;
        for done in done {
            self.cluster.feed(done);
        }
    }
}

/// Whether another coordinator has claimed the store. While the store cannot say, this one has it.
async fn is_lost(claim: Option<&Claim>) -> bool {
    match claim {
        Some(claim) => !claim.stands().await.unwrap_or(true),
        None => false,
    }
}
