//! When epochs end, in generations.

/// The lengths of a run's epochs: all of one interval, but for the last before each end of a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochSchedule {
    interval: u64,
    /// The generations at which the budgets of the run ended, one after the other; the last one may be open.
    ends: Vec<u64>,
    open: bool,
}

impl EpochSchedule {
    /// A run of this number of generations, or without an end that is known beforehand.
    pub fn new(interval: u64, generations: Option<u64>) -> Self {
        Self { interval, ends: generations.into_iter().collect(), open: generations.is_none() }
    }

    /// Continues to this number of generations, or without a known end. New epochs begin at the old end if that was reached; an
    /// end that lies beyond the new one is dropped. What is done must not lie beyond the new end.
    pub fn extend(&mut self, generations: Option<u64>) {
        if let Some(generations) = generations {
            while self.ends.pop_if(|last| *last > generations).is_some() {}
            if self.ends.last() != Some(&generations) {
                self.ends.push(generations);
            }
        }
        self.open = generations.is_none();
    }

    /// The generation at which an epoch ends; `None` if there is no such epoch.
    pub fn end_of(&self, epoch: u64) -> Option<u64> {
        let mut start = 0;
        let mut before = 0;
        for (stretch, &end) in self.ends.iter().enumerate() {
            // Even a run of no generations has one epoch, which founds the islands.
            let epochs = (end - start).div_ceil(self.interval).max(u64::from(stretch == 0));
            if epoch < before + epochs {
                return Some(
                    end.min(start.saturating_add((epoch - before + 1).saturating_mul(self.interval))),
                );
            }
            (start, before) = (end, before + epochs);
        }
        self.open.then(|| start.saturating_add((epoch - before + 1).saturating_mul(self.interval)))
    }

    /// Whether an epoch is the last one.
    pub fn is_last(&self, epoch: u64) -> bool {
        self.end_of(epoch + 1).is_none()
    }

    /// The generations of the whole run, if they are known.
    pub fn generations(&self) -> Option<u64> {
        if self.open { None } else { self.ends.last().copied() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(schedule: &EpochSchedule) -> Vec<u64> {
        (0..20).map_while(|epoch| schedule.end_of(epoch)).collect()
    }

    #[test]
    fn the_last_epoch_may_be_shorter() {
        assert_eq!(ends(&EpochSchedule::new(30, Some(100))), [30, 60, 90, 100]);
        assert_eq!(ends(&EpochSchedule::new(30, Some(90))), [30, 60, 90]);
        assert!(EpochSchedule::new(30, Some(90)).is_last(2));
        assert!(!EpochSchedule::new(30, Some(90)).is_last(1));
    }

    #[test]
    fn no_generations_are_one_epoch() {
        assert_eq!(ends(&EpochSchedule::new(10, Some(0))), [0]);
    }

    #[test]
    fn an_open_run_goes_on() {
        let schedule = EpochSchedule::new(5, None);
        assert_eq!(schedule.end_of(1_000), Some(5_005));
        assert!(!schedule.is_last(1_000));
    }

    #[test]
    fn extending_at_a_whole_epoch_is_like_asking_for_more() {
        let mut extended = EpochSchedule::new(10, Some(20));
        extended.extend(Some(45));
        assert_eq!(ends(&extended), ends(&EpochSchedule::new(10, Some(45))));
    }

    #[test]
    fn extending_elsewhere_begins_a_new_epoch_there() {
        let mut schedule = EpochSchedule::new(10, Some(25));
        schedule.extend(Some(50));
        assert_eq!(ends(&schedule), [10, 20, 25, 35, 45, 50]);
        schedule.extend(None);
        assert_eq!(schedule.end_of(6), Some(60));
    }

    #[test]
    fn an_end_that_was_not_reached_may_come_earlier() {
        let mut schedule = EpochSchedule::new(10, Some(3000));
        schedule.extend(Some(60));
        assert_eq!(ends(&schedule), [10, 20, 30, 40, 50, 60]);
        schedule.extend(Some(75));
        schedule.extend(Some(70));
        assert_eq!(ends(&schedule), [10, 20, 30, 40, 50, 60, 70]);
        schedule.extend(Some(60));
        assert_eq!(schedule.generations(), Some(60));
    }
}
