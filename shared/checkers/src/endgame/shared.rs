//! One database for all players of a process.

use super::Database;
use super::build::checked;
use super::file::EndgameError;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Databases that were requested, by the number of their pieces.
static KEPT: [OnceLock<Arc<Database>>; Database::MOST_PIECES as usize + 1] =
    [const { OnceLock::new() }; Database::MOST_PIECES as usize + 1];
/// The folder that this process was told to look for larger databases in.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// The digest of the database of 5 pieces: a file that holds another one is computed anew.
const FIVE: &str = "316fc3dbc2369947fef07e50c6f6d564da4c40a437ef65a2fb16a0adcfd75e24";

impl Database {
    /// The most pieces of a shared database that is computed where no file holds it: 5 take a minute of CPU time.
    pub const COMPUTED: u32 = 5;

    /// Names the folder in which [`Database::shared`] looks for databases of more than [`Database::ON_DEMAND`] pieces.
    /// The first one that is named counts.
    pub fn look_in(folder: &Path) {
        FOLDER.get_or_init(|| folder.to_owned());
    }

    /// The database of up to `pieces` pieces, read from the named folder or computed in memory when it is first requested,
    /// and kept. It follows from the rules alone, so all callers get the same.
    ///
    /// # Errors
    /// If there are too few or too many pieces, or more than are computed and no folder holds them.
    pub fn shared(pieces: u32) -> Result<Arc<Self>, EndgameError> {
        let place = &KEPT[checked(pieces)? as usize];
        if let Some(known) = place.get() {
            return Ok(known.clone());
        }
        if pieces > Self::COMPUTED {
            let opened = Arc::new(named(pieces)?);
            return Ok(place.get_or_init(|| opened).clone());
        }
        let read = || if pieces == 5 { named(5).ok().filter(|opened| opened.digest() == FIVE) } else { None };
        Ok(place.get_or_init(|| Arc::new(read().unwrap_or_else(|| compute_apart(pieces)))).clone())
    }
}

/// The database of the named folder.
fn named(pieces: u32) -> Result<Database, EndgameError> {
    Database::open(FOLDER.get().ok_or(EndgameError::Unnamed(pieces))?, pieces)
}

/// Computes a database in threads of its own. The caller may itself be a thread of a pool: if it continued with
/// other work of that pool meanwhile, it might come here again, and wait for itself.
fn compute_apart(pieces: u32) -> Database {
    std::thread::scope(|scope| {
        let pool = rayon::ThreadPoolBuilder::new().build().expect("threads can be started");
        let computing = scope.spawn(move || pool.install(|| Database::compute(pieces)));
        let computed = computing.join().expect("a computation does not panic");
        computed.expect("the number of pieces has been checked")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;

    #[test]
    fn a_whole_pool_may_ask_at_once() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().expect("threads can be started");
        let all: Vec<Arc<Database>> = pool
            .install(|| (0..64).into_par_iter().map(|_| Database::shared(3).expect("few pieces")).collect());
        assert!(all.iter().all(|one| Arc::ptr_eq(one, &all[0])));
        assert_eq!(all[0].pieces(), 3);
        for pieces in [0, 1, 7, 33] {
            assert!(matches!(Database::shared(pieces), Err(EndgameError::Pieces(_))));
        }
        assert!(matches!(Database::shared(6), Err(EndgameError::Unnamed(6))), "nobody has named a folder");
    }
}
