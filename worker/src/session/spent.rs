//! The time that pieces took, in whole milliseconds.

use std::time::Duration;

/// All time that was spent so far.
#[derive(Debug, Default)]
pub(super) struct Spent(Duration);

impl Spent {
    /// Adds the time of a piece. Returns it in whole milliseconds: what is left over counts with the next piece. Epochs may
    /// take less than a millisecond, and rates follow from their sum.
    pub(super) fn add(&mut self, time: Duration) -> u64 {
        let before = self.0.as_millis();
        self.0 += time;
        (self.0.as_millis() - before) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_times_add_up() {
        let mut spent = Spent::default();
        let sum: u64 = (0..1000).map(|_| spent.add(Duration::from_micros(400))).sum();
        assert_eq!(sum, 400);
        assert_eq!(spent.add(Duration::from_micros(2700)), 2);
        assert_eq!(spent.add(Duration::from_micros(300)), 1);
    }
}
