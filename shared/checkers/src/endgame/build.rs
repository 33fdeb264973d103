//! Building databases, slice by slice.

use super::Database;
use super::file::{EndgameError, io_error, read, write};
use super::index::Index;
use super::piece_counts::PieceCounts;
use super::solve::Pair;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// How far a database has been built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BuildStep {
    /// What comes next, together with its mirror image; nothing at the end.
    pub next: Option<PieceCounts>,
    /// Positions that are done.
    pub done: u64,
    /// Those of them that were found finished.
    pub found: u64,
    /// Positions of the whole database.
    pub all: u64,
}

pub(super) fn checked(pieces: u32) -> Result<u32, EndgameError> {
    if (2..=Database::MOST_PIECES).contains(&pieces) { Ok(pieces) } else { Err(EndgameError::Pieces(pieces)) }
}

/// A material and its mirror image, if that is another.
fn pair(material: PieceCounts) -> impl Iterator<Item = PieceCounts> {
    let mirror = material.mirrored();
    std::iter::once(material).chain((mirror != material).then_some(mirror))
}

fn positions(pieces: u32) -> u64 {
    PieceCounts::up_to(pieces).map(|material| u64::from(Index::new(material).len())).sum()
}

/// True if both slices of a pair are finished in the folder; they are then part of the database.
fn take_over(database: &mut Database, folder: &Path, material: PieceCounts) -> Result<bool, EndgameError> {
    let mut slices = Vec::new();
    for material in pair(material) {
        let index = Arc::new(Index::new(material));
        match read(folder, &index)? {
            Some(slice) => slices.push((index, slice)),
            None => return Ok(false),
        }
    }
    for (index, slice) in slices {
        database.insert(index, slice);
    }
    Ok(true)
}

/// Solves a pair of slices, hands them to `keep`, and makes them part of the database.
fn solve(
    database: &mut Database,
    material: PieceCounts,
    keep: &dyn Fn(PieceCounts, &super::Slice) -> Result<(), EndgameError>,
) -> Result<(), EndgameError> {
    let pair = Pair::new(database, material);
    pair.solve(|_, _, _| {});
    for (index, slice) in pair.into_slices() {
        keep(index.material(), &slice)?;
        database.insert(index, slice);
    }
    Ok(())
}

impl Database {
    /// Up to this number of pieces a database is built in seconds, wherever one is needed.
    pub const ON_DEMAND: u32 = 4;

    /// Builds the database of up to `pieces` pieces in a folder, on all threads of the current rayon pool. Slices that are
    /// finished there are taken over, so that a build that was stopped resumes. `show` is called before each step and at
    /// the end; if it answers false, the build stops there, and nothing is returned.
    ///
    /// # Errors
    /// If the folder can't be written to, or holds slices that were cut or altered.
    pub fn build(
        folder: &Path,
        pieces: u32,
        mut show: impl FnMut(&BuildStep) -> bool,
    ) -> Result<Option<Self>, EndgameError> {
        Self::build_showing(folder, pieces, &mut show)
    }

    fn build_showing(
        folder: &Path,
        pieces: u32,
        show: &mut dyn FnMut(&BuildStep) -> bool,
    ) -> Result<Option<Self>, EndgameError> {
        fs::create_dir_all(folder).map_err(io_error(folder))?;
        let all = positions(checked(pieces)?);
        let mut database = Self::empty();
        let mut step = BuildStep { next: None, done: 0, found: 0, all };
        for material in PieceCounts::pairs_up_to(pieces) {
            step.next = Some(material);
            if !show(&step) {
                return Ok(None);
            }
            let size = pair(material).map(|material| u64::from(Index::new(material).len())).sum::<u64>();
            if take_over(&mut database, folder, material)? {
                step.found += size;
            } else {
                solve(&mut database, material, &|material, slice| write(folder, material, slice))?;
            }
            step.done += size;
        }
        step.next = None;
        show(&step);
        Self::open(folder, pieces).map(Some)
    }

    /// Computes the database of up to `pieces` pieces in memory: the same as [`Database::build`] puts into files.
    ///
    /// # Errors
    /// If no such database is possible.
    pub fn compute(pieces: u32) -> Result<Self, EndgameError> {
        let mut database = Self::empty();
        for material in PieceCounts::pairs_up_to(checked(pieces)?) {
            solve(&mut database, material, &|_, _| Ok(()))?;
        }
        database.pieces = pieces;
        Ok(database)
    }

    /// Opens the database of a folder; one of up to [`Database::ON_DEMAND`] pieces is built first if it is missing.
    ///
    /// # Errors
    /// If it can't be opened or built.
    pub fn open_or_build(folder: &Path, pieces: u32) -> Result<Self, EndgameError> {
        match Self::open(folder, pieces) {
            Err(EndgameError::Missing { .. }) if pieces <= Self::ON_DEMAND => {
                Ok(Self::build(folder, pieces, |_| true)?.expect("nobody stopped it"))
            }
            opened => opened,
        }
    }
}
