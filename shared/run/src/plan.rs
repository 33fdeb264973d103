//! The journal of a run that consists of jobs or of other runs: a sweep, a tournament, a study.

use crate::event::RunEvent;
use crate::fold::Recorded;
use crate::head::RunError;
use crate::journal::Journal;
use crate::layout::RunId;
use crate::open::{Opening, claim_journal};
use codec::Digest;
use experiment::SEMANTICS;
use store::Store;

/// The journal of a plan, open for one writer.
#[derive(Debug)]
pub struct PlanJournal {
    journal: Journal,
    recorded: Recorded,
}

impl PlanJournal {
    /// Claims a plan for one writer, and reads its journal.
    ///
    /// # Errors
    /// If another process works on it, it cannot be read, or it was begun with other semantics.
    pub async fn open(store: &Store, run: &RunId, opening: &Opening) -> Result<Self, RunError> {
        let (journal, events) = claim_journal(store, run, opening).await?;
        let recorded = Recorded::of(events.iter().map(|event| &event.body));
        recorded.check_semantics(run)?;
        Ok(Self { journal, recorded })
    }

    /// What the journal adds up to.
    pub fn recorded(&self) -> &Recorded {
        &self.recorded
    }

    /// When the plan was created, in milliseconds since 1970.
    pub fn created(&self) -> u64 {
        self.recorded.created.as_ref().map_or(0, |created| created.at)
    }

    /// Opens a term after this number of batches of results of the term before, and returns its number.
    ///
    /// # Errors
    /// If another writer was faster, or the store fails.
    pub async fn begin(
        &mut self,
        plan: Digest,
        text: &str,
        opening: &Opening,
        batches: u64,
    ) -> Result<u64, RunError> {
        self.recorded.check_text(self.journal.run(), &Digest::of(text.as_bytes()))?;
        let Opening { now: at, owner, .. } = opening.clone();
        if self.recorded.created.is_none() {
            let (text, version) = (Digest::of(text.as_bytes()), owner.version.clone());
            self.log(&RunEvent::Created { experiment: plan, text, semantics: SEMANTICS, version, at })
                .await?;
        }
        self.log(&RunEvent::Opened { owner, cuts: vec![], batches, at }).await
    }

    /// Writes an event before it is acted on, and returns its number.
    ///
    /// # Errors
    /// If another writer was faster, or the store fails.
    pub async fn log(&mut self, event: &RunEvent) -> Result<u64, RunError> {
        let number = self.journal.append(event).await?;
        self.recorded.apply(number, event);
        Ok(number)
    }

    /// The journal, after everything was written that opens the plan.
    pub fn into_journal(self) -> Journal {
        self.journal
    }
}
