//! Where everything of a run lies, as typed places in both directions.
//!
//! ```text
//! runs/<run>/experiment.toml                                            what was asked
//! runs/<run>/events/<n>                                                 the journal
//! runs/<run>/commits/<term>-<n>                                         records of many islands' epochs
//! runs/<run>/states/<island>/<epoch>-<attempt>-<term>                   island state at the end of an epoch
//! runs/<run>/checkpoints/<island>/<epoch>-<generation>-<attempt>-<term> checkpoint inside an epoch
//! runs/<run>/jobs/<term>-<n>                                            results of cells and games
//! runs/<run>/summaries/<n>                                              of a run that ended with its n-th event
//! runs/<run>/labels/<n>                                                 all labels of a run after its n-th change of them
//! runs/<run>/artifacts/<name>
//! runs/<run>/dropped/<n>/<path>                                         what a repair has moved out of the way
//! removals/<n>/record, removals/<n>/done                                which runs were removed, and that they are
//! claims/<n>                                                            claims to the whole store
//! batches/<id>/<mark>                                                   what was done in a batch
//! trials/<nonce>/<n>                                                    what a store is tried out with, deleted at once
//! ```
//!
//! Numbers are written with twenty digits, so that names sort as numbers do. A term is the number of the event that
//! opened it; states and checkpoints of synchronous runs, which do not depend on arrival, have the term 0. What is not
//! exactly one of these names is no place: [`Place::of`] answers `None`, and readers pass it over.

use std::fmt;
use std::str::FromStr;
use store::number::{digits, parse as number};
use store::{Kind, Path};

const RUNS: &str = "runs";
const EXPERIMENT: &str = "experiment.toml";
const EVENTS: &str = "events";
const COMMITS: &str = "commits";
const STATES: &str = "states";
const CHECKPOINTS: &str = "checkpoints";
const JOBS: &str = "jobs";
const SUMMARIES: &str = "summaries";
const LABELS: &str = "labels";
const ARTIFACTS: &str = "artifacts";
const DROPPED: &str = "dropped";

/// Why a name cannot be a run's or an artifact's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Too short or too long.
    #[error("expected a {what} of 1 to {longest} characters, found {found}")]
    Length {
        /// What the name was meant for.
        what: &'static str,
        /// The longest that is allowed.
        longest: usize,
        /// The number of characters given.
        found: usize,
    },
    /// A character that names may not hold.
    #[error("expected a {what} of lowercase letters, digits, `-`, `_` and `.`, found `{found}` in `{name}`")]
    Character {
        /// What the name was meant for.
        what: &'static str,
        /// The character.
        found: char,
        /// The name as given.
        name: String,
    },
    /// A first character that would make it a hidden file, an option or a path trick.
    #[error("expected a {what} that begins with a letter or a digit, found `{name}`")]
    Beginning {
        /// What the name was meant for.
        what: &'static str,
        /// The name as given.
        name: String,
    },
}

fn check_name(what: &'static str, name: &str, longest: usize) -> Result<(), NameError> {
    let found = name.chars().count();
    if !(1..=longest).contains(&found) {
        return Err(NameError::Length { what, longest, found });
    }
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if let Some(found) = name.chars().find(|&c| !is_plain(c) && !"-_.".contains(c)) {
        return Err(NameError::Character { what, found, name: name.to_string() });
    }
    if !name.starts_with(is_plain) {
        return Err(NameError::Beginning { what, name: name.to_string() });
    }
    Ok(())
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal, $longest:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(String);

        impl $type {
            #[doc = concat!("The longest ", $what, ", in characters.")]
            pub const LONGEST: usize = $longest;

            /// Takes a name that follows the rules.
            ///
            /// # Errors
            /// If it is too short or too long, or holds or begins with a character that it may not.
            pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
                let name = name.into();
                check_name($what, &name, Self::LONGEST)?;
                Ok(Self(name))
            }

            /// The name itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = NameError;

            fn from_str(name: &str) -> Result<Self, NameError> {
                Self::new(name)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name! {
    /// The name of a run: lowercase letters, digits, `-`, `_` and `.`, beginning with a letter or a digit.
    RunId, "run id", 80
}

name! {
    /// The file name of an artifact, under the rules of [`RunId`].
    ArtifactName, "artifact name", 120
}

name! {
    /// A label of a run, under the rules of [`RunId`].
    Label, "label", 40
}

/// The folder that holds all runs.
pub fn runs() -> Path {
    Path::from(RUNS)
}

/// The run whose folder this is.
pub fn run_of_folder(folder: &Path) -> Option<RunId> {
    let name = folder.as_ref().strip_prefix(RUNS)?.strip_prefix('/')?;
    RunId::new(name).ok()
}

impl RunId {
    /// The folder of everything that belongs to this run.
    pub fn folder(&self) -> Path {
        runs().join(self.as_str())
    }

    /// The folder of the journal.
    pub fn events(&self) -> Path {
        self.folder().join(EVENTS)
    }

    /// The folder of commits.
    pub fn commits(&self) -> Path {
        self.folder().join(COMMITS)
    }

    /// The folder of all islands' states.
    pub fn states(&self) -> Path {
        self.folder().join(STATES)
    }

    /// The folder of all islands' checkpoints.
    pub fn checkpoints(&self) -> Path {
        self.folder().join(CHECKPOINTS)
    }

    /// The folder of the results of jobs.
    pub fn jobs(&self) -> Path {
        self.folder().join(JOBS)
    }

    /// The folder of summaries.
    pub fn summaries(&self) -> Path {
        self.folder().join(SUMMARIES)
    }

    /// The folder of labels.
    pub fn labels(&self) -> Path {
        self.folder().join(LABELS)
    }

    /// The folder of objects that `atoll repair` has moved out of the way, each below the number of the event that records
    /// the repair.
    pub fn dropped(&self) -> Path {
        self.folder().join(DROPPED)
    }

    /// The folder of lasting outcomes.
    pub fn artifacts(&self) -> Path {
        self.folder().join(ARTIFACTS)
    }
}

/// One object of a run, by what it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// What was asked, as text.
    Experiment,
    /// One entry of the journal.
    Event(u64),
    /// Records of epochs.
    Commit {
        /// The term in which it was written.
        term: u64,
        /// Its number in the term.
        number: u64,
    },
    /// All that an island remembers at the end of an epoch.
    State(StateName),
    /// An island inside an epoch that is not finished.
    Checkpoint {
        /// The generation that it has reached.
        generation: u64,
        /// The state that it is to become.
        of: StateName,
    },
    /// Results of jobs.
    Jobs {
        /// The term in which they were written.
        term: u64,
        /// The number of the batch in the term.
        number: u64,
    },
    /// The summary of a run that ended with this number of events.
    Summary(u64),
    /// All labels of the run after this change of them.
    Labels(u64),
    /// A lasting outcome.
    Artifact(ArtifactName),
}

/// The name of an island's state at the end of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateName {
    /// The island.
    pub island: u32,
    /// The epoch that it finished.
    pub epoch: u64,
    /// How often results of the run had been retracted.
    pub attempt: u64,
    /// The term in which it was written, if the epoch depends on arrival; otherwise 0.
    pub term: u64,
}

impl Place {
    /// The path of this place in a run.
    pub fn in_run(&self, run: &RunId) -> Path {
        match self {
            Self::Experiment => run.folder().join(EXPERIMENT),
            Self::Event(n) => run.events().join(digits(*n)),
            Self::Commit { term, number } => run.commits().join(joined(&[*term, *number])),
            Self::State(StateName { island, epoch, attempt, term }) => {
                run.states().join(digits(u64::from(*island))).join(joined(&[*epoch, *attempt, *term]))
            }
            Self::Checkpoint { generation, of: StateName { island, epoch, attempt, term } } => run
                .checkpoints()
                .join(digits(u64::from(*island)))
                .join(joined(&[*epoch, *generation, *attempt, *term])),
            Self::Jobs { term, number } => run.jobs().join(joined(&[*term, *number])),
            Self::Summary(n) => run.summaries().join(digits(*n)),
            Self::Labels(n) => run.labels().join(digits(*n)),
            Self::Artifact(name) => run.artifacts().join(name.as_str()),
        }
    }

    /// The run and place that a path names, if it names one.
    pub fn of(path: &Path) -> Option<(RunId, Self)> {
        let mut segments = path.as_ref().splitn(3, '/');
        let (folder, run, rest) = (segments.next()?, segments.next()?, segments.next()?);
        (folder == RUNS).then_some(())?;
        Some((RunId::new(run).ok()?, Self::within_run(rest)?))
    }

    /// The kind of object that lies here; `None` for plain text and for artifacts, which may be either.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Self::Experiment | Self::Artifact(_) => None,
            Self::Event(_) => Some(Kind::Event),
            Self::Commit { .. } => Some(Kind::Commit),
            Self::State(_) => Some(Kind::IslandState),
            Self::Checkpoint { .. } => Some(Kind::Checkpoint),
            Self::Jobs { .. } => Some(Kind::Jobs),
            Self::Summary(_) => Some(Kind::Summary),
            Self::Labels(_) => Some(Kind::Labels),
        }
    }

    /// The state that lies here, or that what lies here is to become.
    pub fn state(&self) -> Option<StateName> {
        match self {
            Self::State(name) | Self::Checkpoint { of: name, .. } => Some(*name),
            _ => None,
        }
    }

    fn within_run(rest: &str) -> Option<Self> {
        if rest == EXPERIMENT {
            return Some(Self::Experiment);
        }
        let (folder, name) = rest.split_once('/')?;
        match folder {
            EVENTS => number(name).map(Self::Event),
            COMMITS => split(name).map(|[term, number]| Self::Commit { term, number }),
            STATES => {
                let (island, name) = of_island(name)?;
                let [epoch, attempt, term] = split(name)?;
                Some(Self::State(StateName { island, epoch, attempt, term }))
            }
            CHECKPOINTS => {
                let (island, name) = of_island(name)?;
                let [epoch, generation, attempt, term] = split(name)?;
                let of = StateName { island, epoch, attempt, term };
                Some(Self::Checkpoint { generation, of })
            }
            JOBS => split(name).map(|[term, number]| Self::Jobs { term, number }),
            SUMMARIES => number(name).map(Self::Summary),
            LABELS => number(name).map(Self::Labels),
            ARTIFACTS => ArtifactName::new(name).ok().map(Self::Artifact),
            _ => None,
        }
    }
}

fn joined(numbers: &[u64]) -> String {
    let numbers: Vec<String> = numbers.iter().copied().map(digits).collect();
    numbers.join("-")
}

/// Exactly `N` numbers.
fn split<const N: usize>(name: &str) -> Option<[u64; N]> {
    let numbers: Option<Vec<u64>> = name.split('-').map(number).collect();
    numbers?.try_into().ok()
}

fn of_island(rest: &str) -> Option<(u32, &str)> {
    let (island, name) = rest.split_once('/')?;
    Some((number(island)?.try_into().ok()?, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn state_name()(island: u32, epoch: u64, attempt: u64, term: u64) -> StateName {
            StateName { island, epoch, attempt, term }
        }
    }

    fn place() -> impl Strategy<Value = Place> {
        prop_oneof![
            Just(Place::Experiment),
            any::<u64>().prop_map(Place::Event),
            any::<(u64, u64)>().prop_map(|(term, number)| Place::Commit { term, number }),
            state_name().prop_map(Place::State),
            (any::<u64>(), state_name()).prop_map(|(generation, of)| Place::Checkpoint { generation, of }),
            any::<(u64, u64)>().prop_map(|(term, number)| Place::Jobs { term, number }),
            any::<u64>().prop_map(Place::Summary),
            "[a-z0-9][a-z0-9._-]{0,119}".prop_map(|name| Place::Artifact(ArtifactName::new(name).unwrap())),
        ]
    }

    fn run() -> RunId {
        RunId::new("maze-7").unwrap()
    }

    #[test]
    fn places_are_where_the_layout_says() {
        let path = |place: Place| place.in_run(&run()).to_string();
        let state = StateName { island: 1, epoch: 20, attempt: 0, term: 7 };
        assert_eq!(path(Place::Experiment), "runs/maze-7/experiment.toml");
        assert_eq!(path(Place::Event(3)), "runs/maze-7/events/00000000000000000003");
        assert_eq!(
            path(Place::Commit { term: 1, number: u64::MAX }),
            "runs/maze-7/commits/00000000000000000001-18446744073709551615"
        );
        assert_eq!(
            path(Place::State(state)),
            "runs/maze-7/states/00000000000000000001/\
             00000000000000000020-00000000000000000000-00000000000000000007"
        );
        assert_eq!(
            path(Place::Checkpoint { generation: 450, of: state }),
            "runs/maze-7/checkpoints/00000000000000000001/\
             00000000000000000020-00000000000000000450-00000000000000000000-00000000000000000007"
        );
        assert_eq!(
            path(Place::Jobs { term: 1, number: 2 }),
            "runs/maze-7/jobs/00000000000000000001-00000000000000000002"
        );
        assert_eq!(path(Place::Summary(4)), "runs/maze-7/summaries/00000000000000000004");
        let report = ArtifactName::new("report.md").unwrap();
        assert_eq!(path(Place::Artifact(report)), "runs/maze-7/artifacts/report.md");
    }

    #[test]
    fn what_is_no_place_is_passed_over() {
        for stranger in [
            "runs",
            "runs/maze-7",
            "runs/maze-7/notes.txt",
            "runs/maze-7/events/3",
            "runs/maze-7/events/+0000000000000000003",
            "runs/maze-7/events/000000000000000000003",
            "runs/maze-7/events/99999999999999999999",
            "runs/maze-7/events/00000000000000000003/x",
            "runs/maze-7/commits/00000000000000000001",
            "runs/maze-7/states/00000000000000000001",
            "runs/maze-7/states/1/00000000000000000001-00000000000000000000-00000000000000000000",
            "runs/maze-7/states/00000000004294967296/00000000000000000001-00000000000000000000-00000000000000000000",
            "runs/maze-7/checkpoints/00000000000000000001/00000000000000000001-00000000000000000001",
            "runs/maze-7/jobs/00000000000000000001-00000000000000000001.bak",
            "runs/maze-7/artifacts/a/b",
            "runs/maze-7/artifacts/.hidden",
            "runs/Maze/experiment.toml",
            "elsewhere/maze-7/experiment.toml",
        ] {
            assert_eq!(Place::of(&Path::parse(stranger).unwrap()), None, "{stranger}");
        }
    }

    #[test]
    fn run_ids_admit_no_tricks() {
        for good in ["a", "7", "maze-20x20_n50.v2", &"x".repeat(80)] {
            assert_eq!(RunId::new(good).unwrap().as_str(), good);
        }
        for bad in [
            "",
            ".",
            "..",
            ".git",
            "-rf",
            "a/b",
            "a\\b",
            "A",
            "ä",
            "a b",
            "a\0",
            "a#1",
            "%2e",
            &"x".repeat(81),
        ] {
            assert!(RunId::new(bad).is_err(), "{bad:?}");
        }
        let error = RunId::new("Maze").unwrap_err().to_string();
        assert_eq!(
            error,
            "expected a run id of lowercase letters, digits, `-`, `_` and `.`, found `M` in `Maze`"
        );
    }

    #[test]
    fn folders_give_their_run_back() {
        assert_eq!(run_of_folder(&run().folder()), Some(run()));
        assert_eq!(run_of_folder(&run().events()), None);
        assert_eq!(run_of_folder(&Path::from("runsmaze-7")), None);
    }

    proptest! {
        #[test]
        fn places_come_back(place in place(), run in "[a-z0-9][a-z0-9._-]{0,79}") {
            let run = RunId::new(run).unwrap();
            prop_assert_eq!(Place::of(&place.in_run(&run)), Some((run, place)));
        }

        #[test]
        fn names_sort_as_numbers_do(a: u64, b: u64) {
            let path = |n| Place::Event(n).in_run(&run());
            prop_assert_eq!(path(a).cmp(&path(b)), a.cmp(&b));
        }

        #[test]
        fn states_list_by_island_and_epoch(a in state_name(), b in state_name()) {
            let path = |name| Place::State(name).in_run(&run());
            prop_assert_eq!(path(a).cmp(&path(b)), a.cmp(&b));
        }

        #[test]
        fn no_text_panics(text in ".{0,60}") {
            let path = Path::from(format!("runs/r/{text}"));
            if let Some((run, place)) = Place::of(&path) {
                prop_assert_eq!(place.in_run(&run), path);
            }
        }
    }
}
