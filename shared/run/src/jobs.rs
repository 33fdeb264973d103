//! The stored results of a plan's jobs: cells of a sweep, batches of games of a tournament.
//!
//! Results are written in batches under the term of their writer. A batch that an older writer adds after the run was
//! opened again does not count: the opening event holds how many do. Results that were found to be wrong are retracted by an
//! event, and written again in a later batch.

use crate::damage::Damage;
use crate::event::RunEvent;
use crate::fold::{Recorded, Term};
use crate::head::RunError;
use crate::journal::{self, JournalError};
use crate::layout::{Place, RunId};
use crate::summary::{Outline, RunKind, journal_damage};
use archipelago::CellProgress;
use archipelago::cell::{CellPlan, CellResult};
use codec::Digest;
use futures::{StreamExt, stream};
use std::collections::{BTreeMap, BTreeSet};
use store::{Kind, Store, StoreError};

/// How many batches are read at once: enough to hide the latency of a remote store.
const READ_AHEAD: usize = 128;

/// Results by the numbers of their jobs.
pub type Results = Vec<(u32, CellResult)>;

/// What is stored of a plan's jobs.
#[derive(Debug)]
pub struct StoredJobs {
    /// What is done.
    pub progress: CellProgress,
    /// What the journal adds up to.
    pub recorded: Recorded,
    /// How many batches of the last term there are.
    pub batches: u64,
    /// What is missing, cannot be read, or does not fit. A plan is whole if there is none.
    pub damage: Vec<Damage>,
}

impl StoredJobs {
    /// Reads the results of a plan. [`StoredJobs::damage`] lists what cannot be read.
    ///
    /// # Errors
    /// If objects cannot be listed, or the run was begun with other semantics.
    pub async fn read(store: &Store, run: &RunId, plan: CellPlan) -> Result<Self, RunError> {
        let events = journal::read_all::<RunEvent>(store, run).await;
        let (events, damage) = match events {
            Ok(events) => (events, vec![]),
            Err(JournalError::Store(error)) if !error.is_damage() => return Err(error.into()),
            Err(error) => (vec![], vec![error.into()]),
        };
        let recorded = Recorded::of(events.iter().map(|event| &event.body));
        recorded.check_semantics(run)?;
        let mut jobs = Self::read_batches(store, run, plan, recorded, damage).await?;
        if jobs.damage.is_empty() {
            let digests: Vec<Digest> = events.iter().map(|event| event.digest).collect();
            jobs.damage.extend(journal_damage(store, run, &digests).await?);
        }
        Ok(jobs)
    }

    async fn read_batches(
        store: &Store,
        run: &RunId,
        plan: CellPlan,
        recorded: Recorded,
        mut damage: Vec<Damage>,
    ) -> Result<Self, RunError> {
        let text = Digest::of(plan.text().as_bytes());
        if let Some(created) = recorded.created.as_ref().filter(|created| created.text != text) {
            damage.push(Damage::Experiment { expected: created.text, found: text });
        }
        let (mut paths, mut numbers) = (vec![], BTreeMap::<u64, BTreeSet<u64>>::new());
        for path in store.list(&run.jobs()).await? {
            let Some((_, Place::Jobs { term, number })) = Place::of(&path) else { continue };
            numbers.entry(term).or_default().insert(number);
            if counts(&recorded, term, number) {
                paths.push((path, (term, number)));
            }
        }
        let last: BTreeMap<u64, u64> = numbers
            .iter()
            .filter_map(|(&term, numbers)| Some((term, numbers.last()?.saturating_add(1))))
            .collect();
        if recorded.finished.is_none() {
            damage.extend(missing_batches(&recorded, &numbers));
        }
        let is_known = |term: &u64| recorded.terms.iter().any(|known| known.number == *term);
        damage.extend(last.keys().filter(|term| !is_known(term)).map(|&term| Damage::Unexplained { term }));
        let read = |(path, batch): (store::Path, (u64, u64))| async move {
            store.read_value::<Results>(&path, Kind::Jobs).await.map(|results| (batch, results))
        };
        let mut reading = stream::iter(paths).map(read).buffered(READ_AHEAD);
        let mut progress = CellProgress::new(plan);
        while let Some(results) = reading.next().await {
            match results {
                Ok((batch, results)) => {
                    for (number, result) in results {
                        if recorded.is_retracted(number, batch) {
                            continue;
                        }
                        if !progress.plan().fits(number, &result) {
                            damage.push(Damage::Unfit { number });
                        } else if let Some(first) = progress.done().get(&number) {
                            // Only a result that depends on the plan alone is the same each time.
                            if *first != result && progress.plan().is_pure(number) {
                                damage.push(Damage::Unfit { number });
                            }
                        } else {
                            progress.add(number, result);
                        }
                    }
                }
                Err(error) if error.is_damage() => damage.push(error.into()),
                Err(error) => return Err(error.into()),
            }
        }
        if recorded.finished.is_some() && !progress.is_complete() {
            let missing = || (0..progress.plan().len()).filter(|&number| progress.wants(number));
            let (count, first) = (missing().count() as u64, missing().next().unwrap_or(0));
            damage.push(Damage::Jobs { count, first });
        }
        let newest = recorded.terms.iter().rev().find(|term| term.owner.is_some());
        let batches = newest.and_then(|term| last.get(&term.number)).copied().unwrap_or(0);
        Ok(Self { progress, recorded, batches, damage })
    }

    /// The same, if nothing is wrong with it.
    ///
    /// # Errors
    /// If something is missing, or cannot be read or explained.
    pub fn sound(self, run: &RunId) -> Result<Self, RunError> {
        match self.damage.first() {
            Some(damage) => Err(RunError::Damaged { run: run.clone(), damage: damage.clone() }),
            None => Ok(self),
        }
    }
}

/// What a plan of cells is called.
pub fn kind(plan: &CellPlan) -> RunKind {
    match plan {
        CellPlan::Sweep(_) => RunKind::Sweep,
        CellPlan::Tournament(_) => RunKind::Tournament,
    }
}

/// The progress of a plan, with the milliseconds that it has been computed.
pub fn outline(progress: &CellProgress, elapsed: u64) -> Outline {
    let plan = progress.plan();
    Outline {
        kind: kind(plan),
        standing: Some(progress.standing()),
        goal: Some(u64::from(plan.len())),
        islands: plan.len(),
        elapsed,
    }
}

/// Whether a batch was there when the term after its own began.
fn counts(recorded: &Recorded, term: u64, number: u64) -> bool {
    let mut openings = recorded.terms.iter().filter(|opening| opening.owner.is_some());
    let next = openings.find(|opening| opening.number > term);
    next.is_none_or(|Term { batches, .. }| number < *batches)
}

/// The first missing batch of each term: a writer numbers its batches without a gap, and the next opening event says how
/// many there were. What a repair has recorded as dropped is not missing.
fn missing_batches(recorded: &Recorded, numbers: &BTreeMap<u64, BTreeSet<u64>>) -> Vec<Damage> {
    let repaired = recorded.terms.iter().rposition(|term| term.owner.is_none()).map_or(0, |at| at + 1);
    let terms = &recorded.terms[repaired..];
    let missing = |(at, Term { number: term, .. }): (usize, &Term)| {
        let known = numbers.get(term);
        let last = known.and_then(BTreeSet::last).map_or(0, |last| last.saturating_add(1));
        let count = terms.get(at + 1).map_or(last, |next| next.batches);
        // A batch that came after the next opening does not count, and may be missing.
        let found = known.into_iter().flatten().zip(0..).take_while(|&(&number, at)| number == at);
        let first = found.count() as u64;
        (first < count).then_some(Damage::Batch { term: *term, number: first })
    };
    terms.iter().enumerate().filter_map(missing).collect()
}

/// The one writer of a run's job results in a term.
#[derive(Debug)]
pub struct JobLog {
    store: Store,
    run: RunId,
    term: u64,
    next: u64,
    stored: BTreeMap<u32, Digest>,
    /// A batch that may or may not be stored: it is written again as it is, before anything else.
    unsettled: Results,
}

/// What became of results that were offered.
#[derive(Debug, Default)]
pub struct Kept {
    /// What counts and was not known before.
    pub new: Results,
    /// Jobs that can have only one result and had another one before.
    pub differing: Vec<(u32, StoreError)>,
    /// Why the rest could not be written: it may or may not be there, and the next call finds out.
    pub error: Option<StoreError>,
    /// What could not be written, to be offered again.
    pub unstored: Results,
}

impl JobLog {
    /// Continues after what is done, in a new term.
    pub fn new(store: &Store, run: &RunId, term: u64, progress: &CellProgress) -> Self {
        let stored = progress.done().iter().map(|(number, result)| (*number, whole(result))).collect();
        Self { store: store.clone(), run: run.clone(), term, next: 0, stored, unsettled: vec![] }
    }

    /// Whether the result of a job is stored.
    pub fn has(&self, number: u32) -> bool {
        self.stored.contains_key(&number)
    }

    /// Stores results as one object. Of a job that may have different results, the first one counts.
    pub async fn keep(&mut self, plan: &CellPlan, results: Results) -> Kept {
        let mut kept = Kept::default();
        self.write(&mut kept).await;
        if kept.error.is_some() {
            kept.unstored = results;
            return kept;
        }
        let mut new: BTreeMap<u32, CellResult> = BTreeMap::new();
        for (number, result) in results {
            let offered = whole(&result);
            match self.stored.get(&number).copied().or_else(|| new.get(&number).map(whole)) {
                Some(kept_digest) if kept_digest != offered && plan.is_pure(number) => {
                    let path = self.place().in_run(&self.run);
                    let differs = StoreError::Differs { path, kept: kept_digest, offered };
                    kept.differing.push((number, differs));
                }
                Some(_) => {}
                None => drop(new.insert(number, result)),
            }
        }
        self.unsettled = new.into_iter().collect();
        self.write(&mut kept).await;
        kept.unstored.clone_from(&self.unsettled);
        kept
    }

    /// Writes what may or may not be stored; returns how many batches of this term there are, if it could be written.
    pub async fn settle(&mut self) -> (Kept, u64) {
        let mut kept = Kept::default();
        self.write(&mut kept).await;
        (kept, self.next)
    }

    /// Forgets results that were retracted, now that this is written down.
    pub fn retract(&mut self, jobs: &[u32]) {
        for number in jobs {
            self.stored.remove(number);
        }
    }

    fn place(&self) -> Place {
        Place::Jobs { term: self.term, number: self.next }
    }

    /// Writes the batch that is not settled.
    async fn write(&mut self, kept: &mut Kept) {
        if self.unsettled.is_empty() {
            return;
        }
        let path = self.place().in_run(&self.run);
        if let Err(error) = self.store.create_value(&path, Kind::Jobs, &self.unsettled).await {
            kept.error = Some(error);
            return;
        }
        self.next += 1;
        let new = std::mem::take(&mut self.unsettled);
        self.stored.extend(new.iter().map(|(number, result)| (*number, whole(result))));
        kept.new.extend(new);
    }
}

/// The digest of everything that a result says: of an evolved one, `digest` covers only the run.
fn whole(result: &CellResult) -> Digest {
    Digest::of(&codec::encode(result).expect("a result is far below any limit"))
}
