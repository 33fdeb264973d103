//! The head of a run: its experiment and its journal, without its islands.

use crate::commit::WriteError;
use crate::damage::Damage;
use crate::epochs::StoredEpochs;
use crate::event::RunEvent;
use crate::fold::{Decision, Recorded};
use crate::journal::{self, Event, JournalError};
use crate::layout::{ArtifactName, NameError, Place, RunId};
use crate::stored;
use crate::summary::{self, RunKind};
use archipelago::{Archipelago, CompletionError, Mark};
use bytes::Bytes;
use codec::Digest;
use experiment::document::Diagnostics;
use experiment::file::BudgetKeys;
use experiment::{Experiment, Plan, SEMANTICS};
use store::{Kind, Store, StoreError};

/// The name of the artifact that holds the guests of a run.
pub(crate) const GUESTS: &str = "guests";

/// Why a run could not be read, opened or written.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no such run.
    #[error("there is no run `{run}` in this store; `atoll runs` lists those there are")]
    Unknown {
        /// The run asked for.
        run: RunId,
    },
    /// It is no single experiment, and only one of those has what was asked for.
    #[error("{}", not_an_experiment(run, *kind))]
    Kind {
        /// The run.
        run: RunId,
        /// What it consists of.
        kind: RunKind,
    },
    /// Its experiment cannot be read.
    #[error("the stored experiment of run `{run}` is wrong:\n{report}")]
    Experiment {
        /// The run.
        run: RunId,
        /// What is wrong.
        report: Box<Diagnostics>,
    },
    /// It was begun by a version that means something else by the same experiment.
    #[error(
        "run `{run}` was started with semantics version {found}, this program has {SEMANTICS}: its results would not \
         agree; finish it with the version that started it (`{version}`), or start a new run with --fresh"
    )]
    Semantics {
        /// The run.
        run: RunId,
        /// Its version of semantics.
        found: u32,
        /// The version of the program that began it.
        version: String,
    },
    /// The run id belongs to a different experiment.
    #[error("run `{run}` holds another experiment: expected the digest {expected}, found {found}")]
    Other {
        /// The run.
        run: RunId,
        /// The digest of the experiment asked for.
        expected: Digest,
        /// The digest of the one there.
        found: Digest,
    },
    /// Its guests are not those of its experiment.
    #[error("the guests of run `{run}` are not those that its experiment names: restore `artifacts/guests`")]
    Guests {
        /// The run.
        run: RunId,
    },
    /// It is not finished.
    #[error("run `{run}` is not finished")]
    Unfinished {
        /// The run.
        run: RunId,
    },
    /// Another process works on it.
    #[error("run `{run}` is being worked on by {owner}: wait for it, or stop it first")]
    Busy {
        /// The run.
        run: RunId,
        /// Which process, and since when.
        owner: String,
    },
    /// What is stored of it does not fit together.
    #[error(
        "run `{run}` is damaged: {damage}; nothing was changed: `atoll verify {run}` lists everything that is wrong, \
         `atoll repair {run}` shows what can be kept"
    )]
    Damaged {
        /// The run.
        run: RunId,
        /// What is wrong.
        damage: Damage,
    },
    /// A state is not the one that its record names.
    #[error(
        "run `{run}`, island {island}, epoch {epoch}: the stored state is not the one that its record names; nothing was \
         changed: `atoll repair {run}` shows what can be kept"
    )]
    Altered {
        /// The run.
        run: RunId,
        /// The island.
        island: u32,
        /// The epoch.
        epoch: u64,
    },
    /// It cannot be given such a budget.
    #[error("run `{run}` cannot be extended: {reason}")]
    Budget {
        /// The run.
        run: RunId,
        /// Why.
        reason: String,
    },
    /// A state that holds no champion.
    #[error("island {island}: its state {error}")]
    State {
        /// The island.
        island: usize,
        /// Why.
        error: codec::CodecError,
    },
    /// A run can have no such name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The store, the journal or an epoch.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// An outcome that cannot be.
    #[error(transparent)]
    Completion(#[from] CompletionError),
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        Self::Write(error.into())
    }
}

impl From<JournalError> for RunError {
    fn from(error: JournalError) -> Self {
        Self::Write(error.into())
    }
}

/// What a run is, and what can be done with it instead.
fn not_an_experiment(run: &RunId, kind: RunKind) -> String {
    let (what, instead) = match kind {
        RunKind::Evolution => ("single experiment", String::new()),
        RunKind::Sweep => (
            "sweep",
            format!(": `atoll report {run}` shows its cells, `atoll resume {run} --json` prints them"),
        ),
        RunKind::Tournament => (
            "tournament",
            format!(
                ": `atoll tournament page {run}` shows its games, `atoll resume {run} --json` prints them"
            ),
        ),
        RunKind::Study => (
            "study",
            format!(
                ": name one of its parts, which `atoll runs` lists as `{run}.PART`; `atoll resume {run} --json` prints \
                 the results of all"
            ),
        ),
    };
    format!("expected a single experiment, found the {what} `{run}`{instead}")
}

/// A run as its journal and its experiment tell it, without its islands.
#[derive(Clone, Debug)]
pub struct RunHead {
    /// Its experiment.
    pub experiment: Experiment,
    /// The digest of the text that is stored of it.
    pub text: Digest,
    /// Its journal.
    pub events: Vec<RunEvent>,
    /// The digests of its events.
    pub digests: Vec<Digest>,
}

impl RunHead {
    /// Reads what is stored of a run.
    pub async fn read(store: &Store, run: &RunId) -> Result<Self, RunError> {
        let (experiment, text) = read_experiment(store, run).await?;
        let events = journal::read_all(store, run).await?;
        let head = Self::new(experiment, text, events);
        head.check(run)?;
        Ok(head)
    }

    pub(crate) fn new(experiment: Experiment, text: Digest, events: Vec<Event<RunEvent>>) -> Self {
        let digests = events.iter().map(|event| event.digest).collect();
        Self { experiment, text, events: events.into_iter().map(|event| event.body).collect(), digests }
    }

    pub(crate) fn check(&self, run: &RunId) -> Result<(), RunError> {
        let recorded = self.recorded();
        recorded.check_semantics(run)?;
        recorded.check_text(run, &self.text)
    }

    /// What the journal adds up to.
    pub fn recorded(&self) -> Recorded {
        Recorded::of(&self.events)
    }

    /// The islands before their founding, with the budgets and decisions of the journal.
    pub fn archipelago(&self, guests: Option<Bytes>) -> Archipelago {
        let mut archipelago = Archipelago::new(&self.experiment, guests);
        for decision in self.recorded().decisions {
            match decision {
                Decision::Extended { budget, complete } => {
                    if let Some(budget) = self.extended(&budget) {
                        archipelago.extend(complete, budget);
                    }
                }
                Decision::Ended(end) => archipelago.decide(end),
            }
        }
        archipelago
    }

    /// The budget that counts: the last that the run was given.
    pub fn budget(&self) -> experiment::Budget {
        let given = self.recorded().decisions.into_iter().rev().find_map(|decision| match decision {
            Decision::Extended { budget, .. } => self.extended(&budget),
            Decision::Ended(_) => None,
        });
        given.unwrap_or(*self.experiment.budget())
    }

    /// The experiment's budget with another in its place.
    fn extended(&self, budget: &str) -> Option<experiment::Budget> {
        let keys: BudgetKeys = serde_json::from_str(budget).ok()?;
        self.experiment.with_budget(keys).ok().map(|experiment| *experiment.budget())
    }

    /// The islands as far as a store knows them, cut to where they fit together.
    pub async fn restore(&self, store: &Store, run: &RunId) -> Result<Restored, RunError> {
        if let Some(damage) = summary::journal_damage(store, run, &self.digests).await? {
            return Err(RunError::Damaged { run: run.clone(), damage });
        }
        let guests = self.guests(store, run).await?;
        let mut archipelago = self.archipelago(guests);
        let mut stored = StoredEpochs::read(store, run, self).await?;
        // What a crash loses is computed again. What no crash explains is not built upon, and nothing is cut because of it.
        let ends = stored.records.iter().zip(0..).find_map(|(records, island)| {
            let schedule = archipelago.schedule();
            let ends_there =
                |mark: &Mark| schedule.end_of(mark.epoch).is_none_or(|end| mark.standing.generation == end);
            let mark = records.iter().map(|record| &record.mark).find(|mark| !ends_there(mark))?;
            Some(Damage::Generation { island, epoch: mark.epoch })
        });
        if let Some(damage) = stored.damage.first().cloned().or(ends) {
            return Err(RunError::Damaged { run: run.clone(), damage });
        }
        let mark = |island: usize, epoch: u64| -> Option<&Mark> {
            stored.records[island].get(epoch as usize).map(|record| &record.mark)
        };
        if let Some(end) = archipelago.end_of_marks(mark) {
            stored.limit(end.epoch + 1);
        }
        let (cuts, beyond) = stored.cut();
        archipelago.restore(stored.histories(store, run).await?);
        Ok(Restored { archipelago, stored, cuts, beyond })
    }

    pub(crate) async fn guests(&self, store: &Store, run: &RunId) -> Result<Option<Bytes>, RunError> {
        let Some(expected) = &self.experiment.file().guests else { return Ok(None) };
        let place = Place::Artifact(ArtifactName::new(GUESTS).expect("it is a plain word"));
        let guests = store.read(&place.in_run(run), Kind::Artifact).await?;
        if Digest::of(&guests).to_string() != *expected {
            return Err(RunError::Guests { run: run.clone() });
        }
        Ok(Some(guests))
    }
}

impl Recorded {
    /// Whether the run was begun with the semantics of this program.
    pub(crate) fn check_semantics(&self, run: &RunId) -> Result<(), RunError> {
        match &self.created {
            Some(created) if created.semantics != SEMANTICS => {
                let (found, version) = (created.semantics, created.version.clone());
                Err(RunError::Semantics { run: run.clone(), found, version })
            }
            _ => Ok(()),
        }
    }

    /// Whether the stored text is the one that the run was created with.
    pub(crate) fn check_text(&self, run: &RunId, found: &Digest) -> Result<(), RunError> {
        match &self.created {
            Some(created) if created.text != *found => {
                let damage = Damage::Experiment { expected: created.text, found: *found };
                Err(RunError::Damaged { run: run.clone(), damage })
            }
            _ => Ok(()),
        }
    }
}

/// A run as it was read back.
pub struct Restored {
    /// Its islands.
    pub archipelago: Archipelago,
    /// Their stored epochs, cut to where all islands fit together.
    pub stored: StoredEpochs,
    /// How many epochs are left of each island.
    pub cuts: Vec<u64>,
    /// States and checkpoints that lie beyond.
    pub beyond: Vec<Place>,
}

/// The stored experiment, and the digest of its text.
pub(crate) async fn read_experiment(store: &Store, run: &RunId) -> Result<(Experiment, Digest), RunError> {
    let (plan, text) = stored::read_plan(store, run).await?;
    match plan {
        Plan::Single(experiment) => Ok((*experiment, text)),
        plan => Err(RunError::Kind { run: run.clone(), kind: RunKind::of(&plan) }),
    }
}
