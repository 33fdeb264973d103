//! Labels: short words that people give to runs, to find them again. No digest and no id depends on them.
//!
//! They are objects of their own and not events of the journal, because they have nothing to do with what a run computes: a
//! run gets labels while another process works on it, and long after its end, without a new term and without an outdated
//! summary. Each object holds all labels of the run after one change, and the newest object counts.

use crate::layout::{Label, Place, RunId};
use bincode::{Decode, Encode};
use std::collections::BTreeSet;
use store::{Kind, Path, Store, StoreError};

/// The most labels of one run.
pub const MOST: usize = 16;
/// How often a change is tried again because another process has changed the labels meanwhile.
const TRIES: usize = 100;

/// Why the labels of a run cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum LabelError {
    /// There would be too many.
    #[error("run `{run}`: expected at most {MOST} labels, found {found}")]
    TooMany {
        /// The run.
        run: RunId,
        /// How many there would be.
        found: usize,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The labels of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// The number of the next change.
    pub next: u64,
    /// The labels, in alphabetical order.
    pub names: BTreeSet<Label>,
}

/// Labels to add to a run and to remove from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelChange {
    /// The labels to add.
    pub add: BTreeSet<Label>,
    /// The labels to remove.
    pub remove: BTreeSet<Label>,
}

impl LabelChange {
    /// A change that adds labels.
    pub fn adding(labels: impl IntoIterator<Item = Label>) -> Self {
        Self { add: labels.into_iter().collect(), remove: BTreeSet::new() }
    }

    /// Whether there is nothing to change.
    pub fn is_empty(&self) -> bool {
        self.add.is_empty() && self.remove.is_empty()
    }
}

/// All labels of a run after a change, as they are stored.
#[derive(Encode, Decode)]
struct StoredLabels {
    labels: Vec<String>,
    /// When, in milliseconds since 1970.
    at: u64,
}

impl Labels {
    /// The labels as text.
    pub fn to_strings(&self) -> Vec<String> {
        self.names.iter().map(ToString::to_string).collect()
    }
}

/// The labels of a run. Objects that are damaged are passed over: `atoll verify` reports them.
///
/// # Errors
/// If the store fails.
pub async fn read(store: &Store, run: &RunId) -> Result<Labels, StoreError> {
    let paths = store.list(&run.labels()).await?;
    let numbers = paths.iter().filter_map(|path| match Place::of(path) {
        Some((_, Place::Labels(number))) => Some(number),
        _ => None,
    });
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    let mut labels =
        Labels { next: numbers.last().map_or(0, |last| last.saturating_add(1)), ..Labels::default() };
    for number in numbers.into_iter().rev() {
        match read_object(store, &Place::Labels(number).in_run(run)).await {
            Ok(names) => {
                labels.names = names;
                break;
            }
            Err(error) if error.is_damage() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(labels)
}

/// The labels that one object holds.
pub(crate) async fn read_object(store: &Store, path: &Path) -> Result<BTreeSet<Label>, StoreError> {
    let stored: StoredLabels = store.read_value(path, Kind::Labels).await?;
    Ok(stored.labels.into_iter().filter_map(|label| Label::new(label).ok()).take(MOST).collect())
}

/// Changes the labels of a run; returns all of them.
///
/// # Errors
/// If there would be too many, or the store fails.
pub async fn change(store: &Store, run: &RunId, change: &LabelChange, at: u64) -> Result<Labels, LabelError> {
    let mut tries = 0;
    loop {
        let Labels { next, names: before } = read(store, run).await?;
        let names: BTreeSet<Label> =
            before.union(&change.add).filter(|label| !change.remove.contains(label)).cloned().collect();
        if names == before {
            return Ok(Labels { next, names });
        }
        if names.len() > MOST {
            return Err(LabelError::TooMany { run: run.clone(), found: names.len() });
        }
        let stored = StoredLabels { labels: names.iter().map(ToString::to_string).collect(), at };
        match store.create_value(&Place::Labels(next).in_run(run), Kind::Labels, &stored).await {
            Ok(_) => return Ok(Labels { next: next.saturating_add(1), names }),
            // Another process was faster: its change counts, too.
            Err(StoreError::Differs { .. }) if tries < TRIES => tries += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn set(labels: &[&str]) -> BTreeSet<Label> {
        labels.iter().map(|label| Label::new(*label).unwrap()).collect()
    }

    fn of(add: &[&str], remove: &[&str]) -> LabelChange {
        LabelChange { add: set(add), remove: set(remove) }
    }

    #[tokio::test]
    async fn labels_are_added_and_removed_and_nothing_is_written_for_no_change() {
        let (store, run) = (Store::memory(), RunId::new("maze").unwrap());
        assert_eq!(read(&store, &run).await.unwrap(), Labels::default());
        let labels = change(&store, &run, &of(&["paper", "draft"], &[]), 1).await.unwrap();
        assert_eq!(labels.to_strings(), ["draft", "paper"]);
        assert_eq!(change(&store, &run, &of(&["paper"], &["absent"]), 2).await.unwrap(), labels);
        assert_eq!(store.list(&run.labels()).await.unwrap().len(), 1);
        let labels = change(&store, &run, &of(&["figure-3"], &["draft"]), 3).await.unwrap();
        assert_eq!(labels.to_strings(), ["figure-3", "paper"]);
        assert_eq!(read(&store, &run).await.unwrap(), labels);
    }

    #[tokio::test]
    async fn changes_of_two_processes_both_count() {
        let (store, run) = (Store::memory(), RunId::new("maze").unwrap());
        let changes = (0..8).map(|number| of(&[&format!("label-{number}")], &[]));
        let changes: Vec<LabelChange> = changes.collect();
        let all = changes.iter().map(|one| change(&store, &run, one, 1));
        for changed in futures::future::join_all(all).await {
            changed.unwrap();
        }
        assert_eq!(read(&store, &run).await.unwrap().names.len(), 8);
    }

    #[tokio::test]
    async fn their_number_is_limited_and_a_damaged_object_is_passed_over() {
        let (store, run) = (Store::memory(), RunId::new("maze").unwrap());
        let many: Vec<String> = (0..MOST).map(|number| format!("label-{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let full = change(&store, &run, &of(&many, &[]), 1).await.unwrap();
        let refused = change(&store, &run, &of(&["more"], &[]), 2).await;
        assert!(matches!(refused, Err(LabelError::TooMany { found: 17, .. })), "{refused:?}");
        store.create(&Place::Labels(1).in_run(&run), Kind::Labels, "nonsense").await.unwrap();
        assert_eq!(read(&store, &run).await.unwrap(), Labels { next: 2, ..full });
        let fewer = change(&store, &run, &of(&[], &many), 3).await.unwrap();
        assert_eq!((fewer.next, fewer.names.len()), (3, 0));
        // A number that has no next one: nothing is written, and nothing hangs.
        store.create(&Place::Labels(u64::MAX).in_run(&run), Kind::Labels, "nonsense").await.unwrap();
        let refused = change(&store, &run, &of(&["more"], &[]), 4).await;
        assert!(matches!(refused, Err(LabelError::Store(StoreError::Differs { .. }))), "{refused:?}");
    }
}
