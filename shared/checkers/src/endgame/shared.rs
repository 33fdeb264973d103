//! One database for all players of a process.

use super::Database;
use super::file::EndgameError;
use std::sync::{Arc, OnceLock};

/// Databases that were requested, by the number of their pieces.
static KEPT: [OnceLock<Arc<Database>>; Database::ON_DEMAND as usize + 1] =
    [const { OnceLock::new() }; Database::ON_DEMAND as usize + 1];

impl Database {
    /// The database of up to `pieces` pieces, at most [`Database::ON_DEMAND`]: computed in memory when it is first
    /// requested, and kept. It follows from the rules alone, so all callers get the same.
    ///
    /// # Errors
    /// If there are too few or too many pieces for that.
    pub fn shared(pieces: u32) -> Result<Arc<Self>, EndgameError> {
        if !(2..=Self::ON_DEMAND).contains(&pieces) {
            return Err(EndgameError::OnDemand(pieces));
        }
        Ok(KEPT[pieces as usize].get_or_init(|| Arc::new(compute_apart(pieces))).clone())
    }
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
        for pieces in [0, 1, 5, 33] {
            assert!(matches!(Database::shared(pieces), Err(EndgameError::OnDemand(_))));
        }
    }
}
