//! Working space that is used again.

use std::sync::{Mutex, PoisonError};

/// Things that each thread needs one of for a while.
pub(crate) struct Spare<T>(Mutex<Vec<T>>);

impl<T> Default for Spare<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Spare<T> {
    /// Lends a spare one, or a new one if all are in use.
    pub(crate) fn lend<A>(&self, make: impl FnOnce() -> T, work: impl FnOnce(&mut T) -> A) -> A {
        let spare = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = spare().pop();
        let mut thing = taken.unwrap_or_else(make);
        let answer = work(&mut thing);
        spare().push(thing);
        answer
    }
}
