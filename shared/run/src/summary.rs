//! The summary of a run that has ended, so that lists need not read it.
//!
//! It is named by the number of events that the run had when it ended. If the run was continued since, there is a later
//! event, and the summary counts no more.

use crate::damage::Damage;
use crate::epochs::is_continued;
use crate::event::RunEvent;
use crate::fold::{Recorded, Status};
use crate::journal::{self, Event, JournalHead};
use crate::layout::{Place, RunId};
use archipelago::Reason;
use bincode::{Decode, Encode};
use codec::{Digest, Standing};
use experiment::Plan;
use store::{Kind, Store, StoreError};

/// What a run consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
pub enum RunKind {
    /// One evolution.
    Evolution,
    /// A sweep.
    Sweep,
    /// A tournament.
    Tournament,
    /// A study.
    Study,
}

impl RunKind {
    /// What a plan consists of.
    pub fn of(plan: &Plan) -> Self {
        match plan {
            Plan::Single(_) => Self::Evolution,
            Plan::Sweep(_) => Self::Sweep,
            Plan::Tournament(_) => Self::Tournament,
            Plan::Study(_) => Self::Study,
        }
    }

    /// Its name in lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::Evolution => "evolution",
            Self::Sweep => "sweep",
            Self::Tournament => "tournament",
            Self::Study => "study",
        }
    }

    /// The reason for which a run of this kind is finished where it has no end of its own.
    pub fn completion(self) -> &'static str {
        match self {
            Self::Evolution => "its end is not known",
            Self::Sweep => "all cells are done",
            Self::Tournament => "all games are played",
            Self::Study => "all experiments are done",
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode)]
pub enum Ended {
    /// It is finished, for this reason and with this digest.
    Finished(String, Digest),
    /// It was cancelled.
    Cancelled,
    /// It failed, for this reason.
    Failed(String),
}

impl Ended {
    /// Whether both are the same end. Reasons may be written in words of an earlier version.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Finished(reason, digest), Self::Finished(other_reason, other_digest)) => {
                let [one, other] = [reason, other_reason].map(|words| Reason::from_words(words));
                digest == other_digest && (reason == other_reason || one.is_some() && one == other)
            }
            _ => self == other,
        }
    }
}

/// How far a run is, in a few numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
pub struct Outline {
    /// What it consists of.
    pub kind: RunKind,
    /// Where it stands.
    pub standing: Option<Standing>,
    /// The generations, jobs or parts that it is to have.
    pub goal: Option<u64>,
    /// How many islands, jobs or parts there are.
    pub islands: u32,
    /// For how long it has been worked on, in milliseconds.
    pub elapsed: u64,
}

/// What there is to say of a run that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode)]
pub struct Summary {
    /// How far it came.
    pub outline: Outline,
    /// How it ended.
    pub ended: Ended,
    /// When it was created, in milliseconds since 1970.
    pub created: u64,
    /// Its priority.
    pub priority: i32,
    /// The end of its journal.
    pub journal: JournalHead,
}

impl Summary {
    /// The summary of a run after its last event, if that ended it.
    pub fn of(
        event: &RunEvent,
        outline: Outline,
        (created, priority): (u64, i32),
        journal: JournalHead,
    ) -> Option<Self> {
        Some(Self { outline, ended: ended_by(event, outline.kind)?, created, priority, journal })
    }

    /// The status that the journal has.
    pub fn status(&self) -> Status {
        match &self.ended {
            Ended::Finished(..) => Status::Finished,
            Ended::Cancelled => Status::Cancelled,
            Ended::Failed(reason) => Status::Failed(reason.clone()),
        }
    }

    /// The digest of a finished run.
    pub fn digest(&self) -> Option<Digest> {
        match &self.ended {
            Ended::Finished(_, digest) => Some(*digest),
            Ended::Cancelled | Ended::Failed(_) => None,
        }
    }

    /// The summary of a run, if it has ended and was not continued since.
    ///
    /// # Errors
    /// If the store fails, or the summary cannot be read.
    pub async fn read(store: &Store, run: &RunId) -> Result<Option<Self>, StoreError> {
        let Some(summary) = Self::newest(store, run).await? else { return Ok(None) };
        let events = summary.journal.events;
        // The last event that the summary knows must be there, and none after it.
        for (number, is_there) in [(events.saturating_sub(1), true), (events, false)] {
            match store.size(&Place::Event(number).in_run(run)).await {
                Ok(_) if is_there => {}
                Err(error) if error.is_missing() && !is_there => {}
                Ok(_) => return Ok(None),
                Err(error) if error.is_missing() => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(summary))
    }

    /// The first field that says something else than the journal, of which the events before its number are given; the last of them
    /// ended the run.
    pub fn contradicts(&self, number: u64, events: &[Event<RunEvent>]) -> Option<&'static str> {
        let known = usize::try_from(number).ok().and_then(|number| events.get(..number));
        let (Some(known), Some(last)) = (known, known.and_then(<[_]>::last)) else { return Some("number") };
        if (self.journal.events, self.journal.last) != (number, last.digest) {
            return Some("journal");
        }
        if !self.ends_with(&last.body) {
            return Some("end");
        }
        if Recorded::of(known.iter().map(|event| &event.body)).priority != self.priority {
            return Some("priority");
        }
        None
    }

    fn ends_with(&self, last: &RunEvent) -> bool {
        ended_by(last, self.outline.kind).is_some_and(|ended| ended.is_same(&self.ended))
    }

    /// What is wrong with it, as far as the last event of the run shows: lists read no others.
    pub(crate) async fn damage(&self, store: &Store, run: &RunId) -> Result<Option<Damage>, StoreError> {
        let number = self.journal.events;
        let last = journal::read_event::<RunEvent>(store, run, number.saturating_sub(1)).await?;
        let field = match last.digest == self.journal.last {
            true if self.ends_with(&last.body) => return Ok(None),
            true => "end",
            false => "journal",
        };
        Ok(Some(Damage::Summary { path: Place::Summary(number).in_run(run).to_string(), field }))
    }

    /// The newest summary of a run, whether it was continued since or not.
    ///
    /// # Errors
    /// If the store fails, or the summary cannot be read.
    pub async fn newest(store: &Store, run: &RunId) -> Result<Option<Self>, StoreError> {
        let paths = store.list(&run.summaries()).await?;
        let numbers = paths.iter().filter_map(Place::of).filter_map(|(_, place)| match place {
            Place::Summary(events) => Some(events),
            _ => None,
        });
        let Some(events) = numbers.max() else { return Ok(None) };
        store.read_value(&Place::Summary(events).in_run(run), Kind::Summary).await.map(Some)
    }

    /// Writes the summary, unless it is there.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn write(&self, store: &Store, run: &RunId) -> Result<(), StoreError> {
        let path = Place::Summary(self.journal.events).in_run(run);
        match store.create_value(&path, Kind::Summary, self).await {
            // Another process wrote it, in its own time.
            Ok(_) | Err(StoreError::Differs { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// How a run of this kind ended by its last event, if it did.
pub fn ended_by(event: &RunEvent, kind: RunKind) -> Option<Ended> {
    match event {
        RunEvent::Finished { end, digest, .. } => {
            let reason = end.as_ref().map_or(kind.completion().to_owned(), |end| end.reason.to_string());
            Some(Ended::Finished(reason, *digest))
        }
        RunEvent::Cancelled { .. } => Some(Ended::Cancelled),
        RunEvent::Failed { reason, .. } => Some(Ended::Failed(reason.clone())),
        _ => None,
    }
}

/// What is wrong with a journal that can be read: it ends before what the newest summary knows of it.
///
/// # Errors
/// If the store fails.
pub(crate) async fn journal_damage(
    store: &Store,
    run: &RunId,
    digests: &[Digest],
) -> Result<Option<Damage>, StoreError> {
    let known = match Summary::newest(store, run).await {
        Ok(Some(summary)) => summary.journal,
        Ok(None) => return Ok(None),
        Err(error) if error.is_damage() => return Ok(Some(error.into())),
        Err(error) => return Err(error),
    };
    if is_continued(&known, digests) {
        return Ok(None);
    }
    // A run that is worked on may have ended after its journal was read.
    let again = journal::read_all::<RunEvent>(store, run).await.unwrap_or_default();
    let digests: Vec<Digest> = again.iter().map(|event| event.digest).collect();
    Ok((!is_continued(&known, &digests)).then_some(Damage::Journal { expected: known.events }))
}
