//! A level: a grid with an entry, an exit, locks and keys.

use crate::grid::{Cell, Grid};
use crate::proof::{ProofVerdict, prove};
use crate::reach::Reach;
use serde::Serialize;
use std::fmt;
use thiserror::Error;

/// A colour of locks and keys, written as a letter; pairs of a paired level are numbered by their colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Colour(pub(crate) u8);

/// A lock or a key: its place and colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Fixture {
    /// Its colour.
    pub colour: Colour,
    /// Its cell.
    pub cell: Cell,
}

/// A level whose parts all lie on cells of their own; whether it can be solved is another matter ([`Level::validate`]).
///
/// A lock blocks its cell. A key opens one lock of its colour and is used up.
/// Where every colour has one lock and one key the level is *paired*, and is played key by key: always the key with the
/// lowest letter of those that can be reached. Locks and keys of a paired level are kept in this order.
///
/// Its text form is a map that can be drawn in any editor:
///
/// ```text
/// #######
/// #<.A.>#
/// #.#####
/// #....a#
/// #######
/// ```
///
/// Cells stand at odd rows and columns, what joins or divides them between: `#` is wall, `.` is open. A cell may
/// hold the entry `<`, the exit `>`, a key `a` to `z` or a lock `A` to `Z`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    pub(crate) grid: Grid,
    pub(crate) entry: Cell,
    pub(crate) exit: Cell,
    pub(crate) locks: Vec<Fixture>,
    pub(crate) keys: Vec<Fixture>,
}

/// Why parts make no level.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LevelError {
    /// A part lies outside the grid.
    #[error("expected {part} within the grid of {width}x{height}, found it at `{cell}`")]
    Outside {
        /// What lies outside.
        part: String,
        /// Where.
        cell: Cell,
        /// Columns of the grid.
        width: u8,
        /// Rows of the grid.
        height: u8,
    },
    /// Two parts share a cell.
    #[error("expected every part on a cell of its own, found {first} and {second} at `{cell}`")]
    Shared {
        /// One part.
        first: String,
        /// The other.
        second: String,
        /// Where they lie.
        cell: Cell,
    },
    /// More locks or keys than can be proved about.
    #[error("expected at most {most} {part}, found `{found}`")]
    TooMany {
        /// Locks or keys.
        part: &'static str,
        /// How many there may be.
        most: usize,
        /// How many there are.
        found: usize,
    },
}

/// Why a level cannot be solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// A colour has locks and no keys at all.
    #[error("lock `{colour}` at {cell} cannot be opened: there is no key of its colour")]
    LockWithoutKey {
        /// The lock's colour.
        colour: Colour,
        /// Where it is.
        cell: Cell,
    },
    /// In a paired level a key lies behind its own or a later lock, or is walled in.
    #[error("key `{colour}` at {cell} is out of reach while its own and later locks are closed")]
    KeyOutOfReach {
        /// The key's colour.
        colour: Colour,
        /// Where it is.
        cell: Cell,
    },
    /// In a paired level the exit is walled in, all locks open.
    #[error("the exit at {cell} is out of reach even with every lock open")]
    ExitOutOfReach {
        /// Where it is.
        cell: Cell,
    },
    /// Where colours repeat: no order of using keys leads to the exit.
    #[error("no order of using the keys leads to the exit at {cell}")]
    Unsolvable {
        /// Where it is.
        cell: Cell,
    },
}

impl Colour {
    /// As many as there are letters.
    pub const COUNT: u8 = 26;

    /// The `index`-th colour, from 0.
    pub fn new(index: u8) -> Option<Self> {
        (index < Self::COUNT).then_some(Self(index))
    }

    /// Its number, from 0.
    pub fn index(self) -> usize {
        self.0.into()
    }

    /// The letter of a key of this colour.
    pub fn key_letter(self) -> char {
        char::from(b'a' + self.0)
    }

    /// The letter of a lock of this colour.
    pub fn lock_letter(self) -> char {
        char::from(b'A' + self.0)
    }
}

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.key_letter())
    }
}

impl Serialize for Colour {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_char(self.key_letter())
    }
}

impl Level {
    /// More locks than these make proofs too long.
    pub const MOST_LOCKS: usize = 16;

    /// More keys than these are no level.
    pub const MOST_KEYS: usize = 64;

    /// Puts a level together.
    ///
    /// # Errors
    /// When parts lie outside the grid or on each other, or are too many.
    pub fn new(
        grid: Grid,
        entry: Cell,
        exit: Cell,
        mut locks: Vec<Fixture>,
        mut keys: Vec<Fixture>,
    ) -> Result<Self, LevelError> {
        for (part, most, found) in
            [("locks", Self::MOST_LOCKS, locks.len()), ("keys", Self::MOST_KEYS, keys.len())]
        {
            if found > most {
                return Err(LevelError::TooMany { part, most, found });
            }
        }
        locks.sort_unstable();
        keys.sort_unstable();
        let mut level = Self { grid, entry, exit, locks, keys };
        level.check_places()?;
        if level.is_paired() {
            level.order_pairs();
        }
        Ok(level)
    }

    /// Brings pairs into the order in which they are played, which need not be that of their letters. Pairs whose keys
    /// are out of reach stay at the end.
    fn order_pairs(&mut self) {
        let mut reach = Reach::default();
        for first in 0..self.keys.len() {
            let reached = reach.flood(&self.grid, self.entry, &self.locks[first..]);
            let Some(next) = (first..self.keys.len()).find(|&pair| reached.contains(self.keys[pair].cell))
            else {
                return;
            };
            self.keys[first..=next].rotate_right(1);
            self.locks[first..=next].rotate_right(1);
        }
    }

    fn check_places(&self) -> Result<(), LevelError> {
        let mut parts = self.parts();
        for (part, cell) in &parts {
            if !self.grid.contains(*cell) {
                let (width, height) = (self.grid.width(), self.grid.height());
                return Err(LevelError::Outside { part: part.clone(), cell: *cell, width, height });
            }
        }
        parts.sort_by_key(|&(_, cell)| cell);
        match parts.windows(2).find(|pair| pair[0].1 == pair[1].1) {
            None => Ok(()),
            Some(pair) => Err(LevelError::Shared {
                first: pair[0].0.clone(),
                second: pair[1].0.clone(),
                cell: pair[0].1,
            }),
        }
    }

    fn parts(&self) -> Vec<(String, Cell)> {
        let ends = [("the entry".to_owned(), self.entry), ("the exit".to_owned(), self.exit)];
        let keys = self.keys.iter().map(|key| (format!("key `{}`", key.colour), key.cell));
        let locks = self.locks.iter().map(|lock| (format!("lock `{}`", lock.colour), lock.cell));
        ends.into_iter().chain(keys).chain(locks).collect()
    }

    /// Its cells and passages.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Where the player starts.
    pub fn entry(&self) -> Cell {
        self.entry
    }

    /// Where the player wants to go.
    pub fn exit(&self) -> Cell {
        self.exit
    }

    /// The locks: of a paired level in the order in which they are opened, otherwise by colour and cell.
    pub fn locks(&self) -> &[Fixture] {
        &self.locks
    }

    /// The keys: of a paired level in the order in which they are found, otherwise by colour and cell.
    pub fn keys(&self) -> &[Fixture] {
        &self.keys
    }

    /// Whether every colour has exactly one lock and one key.
    pub fn is_paired(&self) -> bool {
        let colours = self.locks.iter().fold(0_u32, |colours, lock| colours | 1 << lock.colour.0);
        let distinct = colours.count_ones() as usize == self.locks.len();
        let mut pairs = self.locks.iter().zip(&self.keys);
        distinct && self.locks.len() == self.keys.len() && pairs.all(|(lock, key)| lock.colour == key.colour)
    }

    /// Says why the level cannot be solved, if so.
    ///
    /// # Errors
    /// The first [`Fault`] found.
    pub fn validate(&self) -> Result<(), Fault> {
        let keyless = |lock: &&Fixture| !self.keys.iter().any(|key| key.colour == lock.colour);
        if let Some(&Fixture { colour, cell }) = self.locks.iter().find(keyless) {
            return Err(Fault::LockWithoutKey { colour, cell });
        }
        if self.is_paired() { self.validate_in_order() } else { self.validate_in_any_order() }
    }

    fn validate_in_order(&self) -> Result<(), Fault> {
        let mut reach = Reach::default();
        for (index, &Fixture { colour, cell }) in self.keys.iter().enumerate() {
            if !reach.flood(&self.grid, self.entry, &self.locks[index..]).contains(cell) {
                return Err(Fault::KeyOutOfReach { colour, cell });
            }
        }
        if reach.flood(&self.grid, self.entry, &[]).contains(self.exit) {
            Ok(())
        } else {
            Err(Fault::ExitOutOfReach { cell: self.exit })
        }
    }

    fn validate_in_any_order(&self) -> Result<(), Fault> {
        match prove(self) {
            ProofVerdict::Unsolvable { .. } => Err(Fault::Unsolvable { cell: self.exit }),
            ProofVerdict::Safe { .. } | ProofVerdict::Trap { .. } => Ok(()),
        }
    }

    /// The locks of a paired level that guard nothing: the next key, or the exit, can be reached before theirs is found.
    pub fn idle_locks(&self) -> Vec<Fixture> {
        if !self.is_paired() {
            return vec![];
        }
        let mut reach = Reach::default();
        let targets = self.keys.iter().skip(1).map(|key| key.cell).chain([self.exit]);
        let reachable = |(index, target): (usize, Cell)| {
            let early = reach.flood(&self.grid, self.entry, &self.locks[index..]).contains(target);
            early.then(|| self.locks[index])
        };
        targets.take(self.locks.len()).enumerate().filter_map(reachable).collect()
    }
}
