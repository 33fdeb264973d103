//! Everything that a coordinator knows, as a pure state machine.
//!
//! It reads no clock, knows no network and never waits for a store. Each call changes the state, returns its reply, and
//! may leave [`Effect`]s behind: what is to be written, deleted or read. The writer carries them out, in order for each
//! run, and feeds back what became of them as [`Done`]. What must be durable before it is acted on (a pause, a decision,
//! the end of a run) happens when its effect comes back.
//!
//! A piece that is handed out has one owner: its run holds the inputs, the lease table holds who has it and until when.
//! Both forget a run together, in `ClusterState::close`; opening it again begins with what is stored.

mod audit;
mod auditing;
mod calls;
mod cell_audits;
mod cells;
mod changes;
mod deliveries;
mod evolution;
mod examiner;
mod grants;
pub mod leases;
pub(crate) mod queue;
mod ready_job;
pub(crate) mod reply_budget;
mod runs;
#[cfg_attr(not(feature = "otlp"), path = "state/no_spans.rs")]
mod spans;
mod study;
mod view;
mod worker_log_limit;
pub(crate) mod workers;
mod yardstick;

pub use audit::AuditTerms;
pub(crate) use audit::{
    Accepted, Answer, AuditOutcome, Audits, Author, Authors, EpochGrants, GrantedCheckpoint, Place,
    RecomputedEpoch, UNKNOWN,
};
pub(crate) use calls::{Instruction, Renewal, UnfitReason};
pub(crate) use cells::{Cells, Received};
pub(crate) use deliveries::{DeliveredCells, Delivery, DeliveryStatus};
pub(crate) use evolution::{Evolution, Receipt};
pub(crate) use examiner::{Examination, Examiner};
pub(crate) use ready_job::ReadyJob;
pub(crate) use runs::{Body, run_name};
pub(crate) use spans::Spans;
#[cfg(feature = "otlp")]
pub(crate) use spans::Trace;

use crate::rejection::Rejection;
use ::evolution::digest::Digest;
use archipelago::End;
use archipelago::cell::{CellPlan, CellResult};
use archipelago::job::{self, Job, JobResult};
use bytes::Bytes;
use calls::Lost;
use experiment::file::BudgetKeys;
use experiment::{Plan, Study};
use leases::{Leases, Terms, Token};
use queue::{Queue, RunState};
use run::Milestone;
use run::RunEvent;
use run::RunId;
use run::WriteBatch;
use run::WriteError;
use run::players::PlayerFiles;
use run::summary::Outline;
use run::{ArtifactName, JournalHead, Labels, OpenRun, RunError};
use run::{Pruned, Pruning};
use runs::Run;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use store::{Nonce, StoreError};
use worker_log_limit::WorkerLogLimit;
use workers::Workers;

/// When something happens.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Since the coordinator started: what leases are measured by.
    pub elapsed: Duration,
    /// Milliseconds since 1970: what people read.
    pub unix: u64,
}

/// A call that is answered once its effect has come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ticket(pub(crate) u64);

/// Something to be done outside of the state.
pub(crate) enum Effect {
    /// Something for one run; each run's steps are carried out one after the other.
    Step { run: String, step: Step },
    /// Looks up the players of a tournament that was submitted: its name follows from them.
    LookUp { submission: Submission, ticket: Ticket },
    /// Opens a run. What is opened comes back as [`Done::Opened`].
    Open { request: OpenRequest, ticket: Option<Ticket> },
    /// Reads the inputs of a job from another run of the store.
    ReadInputs { run: String, number: u32, source: Source },
    /// Computes an epoch to decide an audit, and compares checkpoints inside it.
    Recompute {
        run: String,
        place: Place,
        inputs: Digest,
        examination: Examination,
        checkpoints: Vec<(u64, Digest)>,
    },
    /// Computes a cell to decide an audit.
    RecomputeCell { run: String, number: u32, plan: Arc<CellPlan>, files: PlayerFiles },
    /// Computes a job, and compares what a worker has delivered of it.
    CheckJob {
        run: String,
        number: u32,
        author: (Author, Receipt),
        job: Job,
        inputs: Vec<Bytes>,
        delivered: JobResult,
    },
    /// Answers a call that has waited.
    Answer { ticket: Ticket, answer: Result<String, Rejection> },
}

/// A step of one run.
pub(crate) enum Step {
    /// Writes records, states and checkpoints together.
    Commit(WriteBatch),
    /// Deletes what is not needed any more.
    Prune(Pruning),
    /// Appends an event to the journal.
    Append { event: RunEvent, then: Then, ending: Option<RunEnding> },
    /// Stores results of cells that a worker has delivered.
    KeepCells { plan: Arc<CellPlan>, receipt: Receipt, results: Vec<(u32, CellResult)> },
    /// Takes results of cells back.
    RetractCells { cells: Vec<u32>, reason: String, at: u64 },
    /// Stores the result of a job.
    KeepJob { number: u32, name: ArtifactName, receipt: Receipt, result: JobResult },
    /// The run is not written to any more.
    Forget,
}

/// What is listed of a run from its end on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunEnding {
    pub(crate) outline: Outline,
    pub(crate) created: u64,
    pub(crate) priority: i32,
}

/// What an event means once it is durable.
#[derive(Clone, Debug)]
pub(crate) enum Then {
    Nothing,
    Pause { paused: bool, ticket: Option<Ticket> },
    Prioritise { priority: i32, ticket: Option<Ticket> },
    Cancel { at: u64, ticket: Option<Ticket> },
    Extend { budget: Box<BudgetKeys>, complete: u64, ticket: Option<Ticket> },
    Decide(End),
    Fail { reason: String },
    Retract(Box<RunEvent>),
    Finish { digest: Digest, reason: String },
}

impl Then {
    /// Whether it changes a run in progress: such events are written one after the other.
    fn is_change(&self) -> bool {
        matches!(self, Self::Pause { .. } | Self::Prioritise { .. } | Self::Extend { .. } | Self::Decide(_))
    }

    /// The call that waits for it, to be answered by the caller.
    fn take_ticket(&mut self) -> Option<Ticket> {
        match self {
            Self::Pause { ticket, .. }
            | Self::Prioritise { ticket, .. }
            | Self::Cancel { ticket, .. }
            | Self::Extend { ticket, .. } => ticket.take(),
            Self::Nothing | Self::Decide(_) | Self::Fail { .. } | Self::Retract(_) | Self::Finish { .. } => {
                None
            }
        }
    }
}

/// A plan that an operator submits.
#[derive(Clone)]
pub(crate) struct Submission {
    pub(crate) plan: Box<Plan>,
    /// The player files that it names by their digests.
    pub(crate) files: PlayerFiles,
    /// Nothing: what is there keeps its own.
    pub(crate) priority: Option<i32>,
    /// Takes a new name beside what is there.
    pub(crate) fresh: bool,
}

impl Submission {
    /// Whether there are players that have to be looked up first. Those that a study evolves itself come later.
    fn has_to_be_looked_up(&self) -> bool {
        match &*self.plan {
            Plan::Tournament(games) => {
                games.players().iter().any(|player| player.is_looked_up() && player.digest().is_none())
            }
            Plan::Study(study) => !job::outside_look_ups(study).is_empty(),
            _ => false,
        }
    }
}

/// A run to be opened.
#[derive(Clone)]
pub(crate) enum OpenRequest {
    /// What an operator submits.
    Submit(Submission),
    /// A run that had ended without a result, or that an operator continues or extends.
    Again { id: RunId, priority: Option<i32>, extend: Option<Box<BudgetKeys>> },
    /// A run as its journal says.
    List { id: RunId },
    /// A part of a study.
    Part {
        study: String,
        part: Part,
        id: RunId,
        plan: Box<Plan>,
        files: PlayerFiles,
        guests: Option<Bytes>,
        priority: i32,
    },
}

/// Who else waits for a run that is being opened.
#[derive(Debug, Default)]
struct Opening {
    tickets: Vec<Ticket>,
    /// The study that it is a part of.
    part: Option<(String, Part)>,
}

/// Which part of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Part {
    Experiment(usize),
    Tournament,
}

/// Where the inputs of a job come from, and what is to be made of them.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// The states at the end of a finished run, as guests of an experiment.
    Guests { run: String, experiment: String },
    /// The states that a reference names: for the champion, or for species by these settings, with an ensemble or not.
    Players { reference: String, species: Option<(String, bool)> },
    /// The state of a milestone of an open run, whose champion is measured.
    Milestone { run: String, milestone: Box<Milestone>, job: Job },
}

/// A run as it was opened.
pub(crate) struct Opened {
    pub(crate) id: RunId,
    pub(crate) body: OpenedBody,
    pub(crate) state: RunState,
    pub(crate) priority: i32,
    pub(crate) created: u64,
    pub(crate) labels: Labels,
    /// The study that it is a part of, by what is stored; of runs that have ended it is looked up when it is needed.
    pub(crate) study: Option<String>,
}

/// What a run consists of.
pub(crate) enum OpenedBody {
    Evolution(Box<OpenRun>),
    Cells {
        progress: Box<archipelago::CellProgress>,
        files: PlayerFiles,
    },
    Study {
        study: Box<Study>,
        jobs: BTreeMap<u32, JobResult>,
        files: PlayerFiles,
    },
    /// It has ended: only this is remembered of it.
    Closed(Outline, Option<Digest>),
}

/// What became of an effect.
pub(crate) enum Done {
    Committed {
        run: String,
        batch: WriteBatch,
        result: Result<(), WriteError>,
    },
    Pruned {
        run: String,
        pruning: Pruning,
        result: Result<Pruned, StoreError>,
    },
    Appended {
        run: String,
        then: Then,
        result: Result<JournalHead, Rejection>,
    },
    KeptCells {
        run: String,
        receipt: Receipt,
        kept: KeptCells,
    },
    KeptJob {
        run: String,
        number: u32,
        receipt: Receipt,
        stored: Result<JobResult, (JobResult, StoreError)>,
    },
    LookedUp {
        submission: Result<Submission, Rejection>,
        ticket: Ticket,
    },
    Opened {
        opened: Result<Opened, (Option<String>, Rejection)>,
        part: Option<(String, Part)>,
        ticket: Option<Ticket>,
    },
    Inputs {
        run: String,
        number: u32,
        inputs: Result<ReadyJob, String>,
    },
    Recomputed {
        run: String,
        place: Place,
        inputs: Digest,
        computed: Result<RecomputedEpoch, String>,
    },
    RecomputedCell {
        run: String,
        number: u32,
        computed: Result<CellResult, String>,
    },
    RetractedCells {
        run: String,
        cells: Vec<u32>,
        reason: String,
        /// What became known to be stored by it.
        stored: Vec<(u32, CellResult)>,
        result: Result<(), Rejection>,
    },
    CheckedJob {
        run: String,
        number: u32,
        author: (Author, Receipt),
        /// Whether the worker has delivered the same.
        is_right: bool,
        result: Result<JobResult, String>,
    },
    /// A job that the coordinator has no memory for.
    UncheckedJob {
        run: String,
        number: u32,
        author: (Author, Receipt),
        delivered: JobResult,
        reason: String,
    },
    /// Another coordinator has claimed the store.
    Succeeded,
}

/// What is stored after results of cells were delivered, and what was wrong with them.
#[derive(Default)]
pub(crate) struct KeptCells {
    pub(crate) stored: Vec<(u32, CellResult)>,
    /// Results that could not be stored for now.
    pub(crate) unstored: Vec<(u32, CellResult)>,
    /// Cells of which something else is stored, and what was delivered.
    pub(crate) differing: Vec<(u32, Digest)>,
    pub(crate) error: Option<StoreError>,
}

/// The settings of a coordinator that its state depends on.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) terms: Terms,
    pub(crate) nonce: Nonce,
    pub(crate) version: String,
    pub(crate) exit_when_done: bool,
    pub(crate) max_runs: usize,
    /// Whether only what is submitted is computed, also if it is paused.
    pub(crate) only_submitted: bool,
    /// Whether a store that fails is waited for.
    pub(crate) patient: bool,
    pub(crate) audit: AuditTerms,
}

/// Work that fits on no connected worker.
#[derive(Clone, Debug)]
pub(crate) struct Misfit {
    pub(crate) reason: String,
    /// Whether no worker has any work of any run.
    pub(crate) is_idle: bool,
    /// How many results were accepted so far.
    pub(crate) accepted: u64,
}

/// How a run ended that has no result, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unfinished {
    Failed(String),
    Cancelled(String),
}

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) granted: u64,
    pub(crate) hedged: u64,
    pub(crate) expired: u64,
    pub(crate) accepted: u64,
    pub(crate) repeated: u64,
    pub(crate) unneeded: u64,
    pub(crate) failures: u64,
    pub(crate) quarantined: u64,
    pub(crate) checkpoints: u64,
    pub(crate) forgotten: u64,
    pub(crate) store_errors: u64,
    pub(crate) stalled: u64,
    pub(crate) audited: u64,
    pub(crate) audits_failed: u64,
    pub(crate) retracted: u64,
    pub(crate) unaudited: u64,
}

/// All that a coordinator knows.
pub(crate) struct ClusterState {
    pub(crate) rules: Rules,
    pub(crate) queue: Queue,
    pub(crate) leases: Leases,
    pub(crate) workers: Workers,
    pub(crate) runs: BTreeMap<String, Run>,
    /// Who computed what of each run, also while it is opened again.
    authors: BTreeMap<String, Authors>,
    /// The principals of which finished runs have results that were not audited.
    unaudited_authors: BTreeMap<String, BTreeSet<String>>,
    /// Runs that are being opened, as far as their names are known; and how many.
    opening: BTreeMap<String, Opening>,
    openings: usize,
    pub(crate) counters: Counters,
    /// Whether there has been anything to do: a run that was taken up unfinished, or submitted.
    pub(crate) begun: bool,
    /// Runs that ended without a result since this coordinator started, in order.
    unfinished: Vec<(String, Unfinished)>,
    /// Why a worker was rejected that will not succeed later, and when.
    pub(crate) refused: Option<(String, Duration)>,
    /// Why a worker cannot start, as it said itself, and when.
    pub(crate) misconfigured: Option<(String, Duration)>,
    /// Why the store could not write something, if that is not waited for.
    pub(crate) trouble: Option<RunError>,
    /// Whether another coordinator has the store by now: nothing that comes here would be written any more.
    pub(crate) succeeded: bool,
    ticked: Duration,
    /// Runs of which workers have held something since their time was counted last, and when that was.
    counted: BTreeMap<String, Duration>,
    /// What workers have lost of each run since then.
    lost: BTreeMap<String, Lost>,
    log_limit: WorkerLogLimit,
    effects: Vec<Effect>,
    /// What is exported of epochs, if anything is.
    pub(crate) spans: Spans,
}

impl ClusterState {
    /// A coordinator without runs.
    pub(crate) fn new(rules: Rules, now: Moment) -> Self {
        Self {
            leases: Leases::new(rules.terms, first_token(rules.nonce)),
            rules,
            queue: Queue::default(),
            workers: Workers::default(),
            runs: BTreeMap::new(),
            authors: BTreeMap::new(),
            unaudited_authors: BTreeMap::new(),
            opening: BTreeMap::new(),
            openings: 0,
            counters: Counters::default(),
            begun: false,
            unfinished: vec![],
            refused: None,
            misconfigured: None,
            trouble: None,
            succeeded: false,
            ticked: now.elapsed,
            counted: BTreeMap::new(),
            lost: BTreeMap::new(),
            log_limit: WorkerLogLimit::default(),
            effects: vec![],
            spans: Spans::default(),
        }
    }

    /// What is to be done outside, since this was last asked.
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Takes what became of an effect.
    pub(crate) fn done(&mut self, done: Done, now: Moment) {
        match done {
            Done::Committed { run, batch, result } => self.committed(&run, &batch, result, now),
            Done::Pruned { run, pruning, result } => self.pruned(&run, &pruning, result, now),
            Done::Appended { run, then, result } => self.appended(&run, then, result, now),
            Done::KeptCells { run, receipt, kept } => self.kept_cells(&run, receipt, kept, now),
            Done::KeptJob { run, number, receipt, stored } => {
                self.kept_job(&run, number, receipt, stored, now);
            }
            Done::LookedUp { submission, ticket } => self.looked_up(submission, ticket, now),
            Done::Opened { opened, part, ticket } => self.opened(opened, part, ticket, now),
            Done::Inputs { run, number, inputs } => self.inputs(&run, number, inputs, now),
            Done::Recomputed { run, place, inputs, computed } => {
                self.recomputed(&run, (place, &inputs), computed, now);
            }
            Done::RecomputedCell { run, number, computed } => {
                self.recomputed_cell(&run, number, computed, now);
            }
            Done::RetractedCells { run, cells, reason, stored, result } => {
                self.retracted_cells(&run, (cells, reason), stored, result, now);
            }
            Done::CheckedJob { run, number, author, is_right, result } => {
                self.checked_job(&run, (number, is_right), author, result, now);
            }
            Done::UncheckedJob { run, number, author: (_, receipt), delivered, reason } => {
                self.unchecked_job(&run, number, receipt, delivered, &reason);
            }
            Done::Succeeded => self.succeeded = true,
        }
    }

    /// Whether one more line may be logged because of what a worker does: no worker can fill the log.
    fn may_log(&mut self, worker: &str, now: Moment) -> bool {
        self.log_limit.allows(self.workers.principal(worker), now.elapsed)
    }

    fn step(&mut self, run: &str, step: Step) {
        self.effects.push(Effect::Step { run: run.to_owned(), step });
    }

    /// Asks for a run to be opened.
    fn ask_to_open(&mut self, request: OpenRequest, ticket: Option<Ticket>) {
        self.openings += 1;
        self.effects.push(Effect::Open { request, ticket });
    }

    fn append(&mut self, run: &str, event: RunEvent, then: Then) {
        let ending = self.runs.get(run).filter(|_| event.ends()).map(|one| RunEnding {
            outline: one.outline(),
            created: one.created,
            priority: self.queue.priority(run),
        });
        self.step(run, Step::Append { event, then, ending });
    }

    fn answer(&mut self, ticket: Option<Ticket>, answer: Result<String, Rejection>) {
        self.effects.extend(ticket.map(|ticket| Effect::Answer { ticket, answer }));
    }

    /// Begins with the runs that were read: studies look for their parts, and what had ended is finished.
    pub(crate) fn begin(&mut self, now: Moment) {
        for run in self.runs.keys().cloned().collect::<Vec<_>>() {
            self.advance(&run, now);
        }
        for run in self.queue.open() {
            self.advance_study_of(&run, now);
        }
        self.begun = self.queue.has_open_runs();
        self.unfinished.clear();
    }

    /// Has everything written now.
    pub(crate) fn write_everything(&mut self, now: Moment) {
        self.write_losses(now);
        for run in self.queue.open() {
            self.flush(&run);
            self.advance(&run, now);
        }
    }

    /// Whether everything that was delivered is written.
    pub(crate) fn is_written(&self) -> bool {
        self.runs.values().all(Run::is_written)
    }

    /// Notes that a run ended without a result.
    fn note_unfinished(&mut self, run: &str, unfinished: Unfinished) {
        self.unfinished.retain(|(known, _)| known != run);
        self.unfinished.push((run.to_owned(), unfinished));
    }

    /// How a run ended without a result, if one did since this coordinator started and was not opened again: the first that
    /// failed, or else the last that was cancelled. The failure of a study comes before the cancellation of its parts.
    pub(crate) fn unfinished(&self) -> Option<&Unfinished> {
        let failed = |(_, unfinished): &&(String, Unfinished)| matches!(unfinished, Unfinished::Failed(_));
        let worst = self.unfinished.iter().find(failed).or(self.unfinished.last());
        worst.map(|(_, unfinished)| unfinished)
    }

    /// Leaves a run as it is that has failed or was cancelled; returns whether it has ended like that.
    pub(crate) fn leave_ended(&mut self, run: &str) -> bool {
        let hint = "start with --revive to continue it, or submit it again";
        let unfinished = match self.queue.state(run) {
            Some(RunState::Failed(reason)) => {
                Unfinished::Failed(format!("run {run} failed: {reason}; {hint}"))
            }
            Some(RunState::Cancelled) => Unfinished::Cancelled(format!("run {run} was cancelled; {hint}")),
            _ => return false,
        };
        self.begun = true;
        self.note_unfinished(run, unfinished);
        true
    }

    /// Why an active run gets no further, if no connected worker has the memory for it.
    pub(crate) fn misfit(&self) -> Option<Misfit> {
        let active = self.queue.active();
        let connected = || self.workers.connected(Duration::ZERO).map(|one| one.worker);
        let unfit = |run: &String| self.leases.why_unfit(run, connected());
        let (reason, _) = active.iter().filter(|run| self.is_active(run)).find_map(unfit)?;
        Some(Misfit {
            reason: format!("no worker has enough memory: {reason}"),
            is_idle: active.iter().all(|run| self.leases.count(run) == 0),
            accepted: self.counters.accepted,
        })
    }

    /// Forgets that workers cannot work here, if that was said before.
    pub(crate) fn forget_refusals(&mut self, before: Duration) {
        for told in [&mut self.refused, &mut self.misconfigured] {
            told.take_if(|(_, at)| *at < before);
        }
    }

    /// Whether there is nothing left to do, and workers may know.
    pub(crate) fn is_done(&self) -> bool {
        let is_idle = self.openings == 0 && !self.queue.has_open_runs();
        self.rules.exit_when_done && self.begun && is_idle
    }
}

/// Tokens of different coordinators are far from each other, because a worker may still have one from another.
fn first_token(nonce: Nonce) -> Token {
    let digest = Digest::of(&nonce.0.to_le_bytes());
    digest.0[..8].iter().fold(0, |token, &byte| token << 8 | u64::from(byte))
}
