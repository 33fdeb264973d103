//! Where everything of a run lies, as typed places in both directions.
//!
//! ```text
//! runs/<run>/experiment.toml
//! runs/<run>/events/<n>
//! runs/<run>/islands/<island>/<epoch>                   epoch record
//! runs/<run>/islands/<island>/<epoch>.g<generation>     checkpoint inside that epoch
//! runs/<run>/islands/<island>/<epoch>.state             island state at its end
//! runs/<run>/cells/<n>
//! runs/<run>/matches/<n>
//! runs/<run>/artifacts/<name>
//! coordinators/<n>                                      claims to the whole store
//! trials/<nonce>/<n>                                    what a store is tried out with, deleted at once
//! ```
//!
//! Numbers are written with ten digits, so that names sort as numbers do. What is not exactly one of these
//! names is no place: [`Place::of`] answers `None`, and readers pass it over.

use std::fmt;
use std::str::FromStr;
use store::number::{digits, parse as number};
use store::{Kind, Path};

const RUNS: &str = "runs";
const EXPERIMENT: &str = "experiment.toml";
const EVENTS: &str = "events";
const ISLANDS: &str = "islands";
const CELLS: &str = "cells";
const MATCHES: &str = "matches";
const ARTIFACTS: &str = "artifacts";

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

    /// The folder of all islands.
    pub fn islands(&self) -> Path {
        self.folder().join(ISLANDS)
    }

    /// The folder of one island.
    pub fn island(&self, island: u32) -> Path {
        self.islands().join(digits(island))
    }

    /// The folder of sweep results.
    pub fn cells(&self) -> Path {
        self.folder().join(CELLS)
    }

    /// The folder of tournament results.
    pub fn matches(&self) -> Path {
        self.folder().join(MATCHES)
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
    Event(u32),
    /// What an epoch yielded.
    Record {
        /// The island.
        island: u32,
        /// The epoch that it finished.
        epoch: u32,
    },
    /// All that an island remembers at the end of an epoch.
    State {
        /// The island.
        island: u32,
        /// The epoch that it finished.
        epoch: u32,
    },
    /// An island inside an epoch that is not finished.
    Checkpoint {
        /// The island.
        island: u32,
        /// The epoch that it is in.
        epoch: u32,
        /// The generation that it has reached.
        generation: u32,
    },
    /// The result of a cell of a sweep.
    Cell(u32),
    /// The result of a batch of tournament games.
    Match(u32),
    /// A lasting outcome.
    Artifact(ArtifactName),
}

impl Place {
    /// The path of this place in a run.
    pub fn in_run(&self, run: &RunId) -> Path {
        match self {
            Self::Experiment => run.folder().join(EXPERIMENT),
            Self::Event(n) => run.events().join(digits(*n)),
            Self::Record { island, epoch } => run.island(*island).join(digits(*epoch)),
            Self::State { island, epoch } => run.island(*island).join(format!("{}.state", digits(*epoch))),
            Self::Checkpoint { island, epoch, generation } => {
                run.island(*island).join(format!("{}.g{}", digits(*epoch), digits(*generation)))
            }
            Self::Cell(n) => run.cells().join(digits(*n)),
            Self::Match(n) => run.matches().join(digits(*n)),
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
            Self::Record { .. } => Some(Kind::EpochRecord),
            Self::State { .. } => Some(Kind::IslandState),
            Self::Checkpoint { .. } => Some(Kind::Checkpoint),
            Self::Cell(_) => Some(Kind::Cell),
            Self::Match(_) => Some(Kind::Match),
        }
    }

    fn within_run(rest: &str) -> Option<Self> {
        if rest == EXPERIMENT {
            return Some(Self::Experiment);
        }
        let (folder, name) = rest.split_once('/')?;
        match folder {
            EVENTS => number(name).map(Self::Event),
            ISLANDS => Self::within_islands(name),
            CELLS => number(name).map(Self::Cell),
            MATCHES => number(name).map(Self::Match),
            ARTIFACTS => ArtifactName::new(name).ok().map(Self::Artifact),
            _ => None,
        }
    }

    fn within_islands(rest: &str) -> Option<Self> {
        let (island, name) = rest.split_once('/')?;
        let island = number(island)?;
        match name.split_once('.') {
            None => Some(Self::Record { island, epoch: number(name)? }),
            Some((epoch, "state")) => Some(Self::State { island, epoch: number(epoch)? }),
            Some((epoch, generation)) => {
                let generation = number(generation.strip_prefix('g')?)?;
                Some(Self::Checkpoint { island, epoch: number(epoch)?, generation })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place() -> impl Strategy<Value = Place> {
        prop_oneof![
            Just(Place::Experiment),
            any::<u32>().prop_map(Place::Event),
            any::<(u32, u32)>().prop_map(|(island, epoch)| Place::Record { island, epoch }),
            any::<(u32, u32)>().prop_map(|(island, epoch)| Place::State { island, epoch }),
            any::<(u32, u32, u32)>().prop_map(|(island, epoch, generation)| Place::Checkpoint {
                island,
                epoch,
                generation
            }),
            any::<u32>().prop_map(Place::Cell),
            any::<u32>().prop_map(Place::Match),
            "[a-z0-9][a-z0-9._-]{0,119}".prop_map(|name| Place::Artifact(ArtifactName::new(name).unwrap())),
        ]
    }

    fn run() -> RunId {
        RunId::new("maze-7").unwrap()
    }

    #[test]
    fn places_are_where_the_layout_says() {
        let path = |place: Place| place.in_run(&run()).to_string();
        assert_eq!(path(Place::Experiment), "runs/maze-7/experiment.toml");
        assert_eq!(path(Place::Event(3)), "runs/maze-7/events/0000000003");
        assert_eq!(path(Place::Record { island: 1, epoch: 20 }), "runs/maze-7/islands/0000000001/0000000020");
        assert_eq!(
            path(Place::State { island: 1, epoch: 20 }),
            "runs/maze-7/islands/0000000001/0000000020.state"
        );
        assert_eq!(
            path(Place::Checkpoint { island: 1, epoch: 20, generation: 450 }),
            "runs/maze-7/islands/0000000001/0000000020.g0000000450"
        );
        assert_eq!(path(Place::Cell(u32::MAX)), "runs/maze-7/cells/4294967295");
        assert_eq!(path(Place::Match(0)), "runs/maze-7/matches/0000000000");
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
            "runs/maze-7/events/+000000003",
            "runs/maze-7/events/00000000003",
            "runs/maze-7/events/9999999999",
            "runs/maze-7/events/0000000003/x",
            "runs/maze-7/islands/0000000001",
            "runs/maze-7/islands/1/0000000001",
            "runs/maze-7/islands/0000000001/0000000001.g",
            "runs/maze-7/islands/0000000001/0000000001.g1",
            "runs/maze-7/islands/0000000001/0000000001.state.bak",
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
        fn names_sort_as_numbers_do(a: u32, b: u32) {
            let path = |n| Place::Event(n).in_run(&run());
            prop_assert_eq!(path(a).cmp(&path(b)), a.cmp(&b));
        }

        #[test]
        fn an_epoch_lists_before_the_next_one(a: (u32, u32), b: (u32, u32), generation: u32) {
            let last = Place::State { island: a.0, epoch: a.1 }.in_run(&run());
            let first = Place::Record { island: b.0, epoch: b.1 }.in_run(&run());
            let inside = Place::Checkpoint { island: a.0, epoch: a.1, generation }.in_run(&run());
            prop_assert!(inside < last);
            prop_assert_eq!(last < first, a < b);
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
