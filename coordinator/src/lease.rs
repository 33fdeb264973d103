//! Leases: who may work on what, and until when.
//!
//! A pure state machine: the time is passed in, as a duration since any fixed moment. A lease protects nobody's result
//! (whoever delivers the right thing is welcome); it only keeps two workers from doing the same thing by accident.

use proto::convert::Work;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What leases are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How long a lease lasts without a renewal.
    pub lease: Duration,
    /// How long work may go on without progress.
    pub stall: Duration,
    /// How old a lease must be before an idle worker repeats its work.
    pub hedge_after: Duration,
    /// Work that fails so often is poison.
    pub failures: usize,
    /// Work that fails on so many different workers is poison.
    pub failing_workers: usize,
    /// Work whose workers vanish so often without getting any further is poison.
    pub vanished: u32,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(15),
            stall: Duration::from_mins(10),
            hedge_after: Duration::from_secs(10),
            failures: 5,
            failing_workers: 3,
            vanished: 10,
        }
    }
}

/// All work that is offered to workers, leased or waiting.
#[derive(Clone, Debug)]
pub struct Leases {
    terms: Terms,
    offers: BTreeMap<Work, Offer>,
}

/// One piece of work.
#[derive(Clone, Debug, Default)]
struct Offer {
    leases: Vec<Lease>,
    failures: Vec<(String, String)>,
    vanished: u32,
}

#[derive(Clone, Debug)]
struct Lease {
    worker: String,
    granted: Duration,
    expires: Duration,
    progress: u64,
    progressed: Duration,
}

/// What becomes of work that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Somebody else may try.
    Again,
    /// Nobody should: it would fail everywhere.
    Poison(String),
}

/// A lease that ran out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expired {
    /// The work.
    pub work: Work,
    /// Who had it.
    pub worker: String,
    /// What becomes of the work.
    pub verdict: Verdict,
}

impl Leases {
    /// No work yet.
    pub fn new(terms: Terms) -> Self {
        Self { terms, offers: BTreeMap::new() }
    }

    /// The terms.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Leases work to a worker. A worker has at most one lease of the same work.
    pub fn grant(&mut self, work: &Work, worker: &str, now: Duration) {
        let expires = now + self.terms.lease;
        let offer = self.offers.entry(work.clone()).or_default();
        offer.leases.retain(|lease| lease.worker != worker);
        offer.leases.push(Lease {
            worker: worker.to_owned(),
            granted: now,
            expires,
            progress: 0,
            progressed: now,
        });
    }

    /// Whether the work is known: waiting or leased.
    pub fn knows(&self, work: &Work) -> bool {
        self.offers.contains_key(work)
    }

    /// The work of a run that nobody has, what failed on this worker last.
    pub fn waiting_for(&self, worker: &str, run: &str) -> Option<Work> {
        let waiting = self.of_run(run).filter(|(_, offer)| offer.leases.is_empty());
        waiting.min_by_key(|(_, offer)| offer.failed_on(worker)).map(|(work, _)| work.clone())
    }

    fn of_run<'a>(&'a self, run: &'a str) -> impl Iterator<Item = (&'a Work, &'a Offer)> {
        self.offers.iter().filter(move |(work, _)| work.run == run)
    }

    /// What a worker has leased.
    pub fn held_by<'a>(&'a self, worker: &'a str) -> impl Iterator<Item = &'a Work> {
        let holds = move |offer: &Offer| offer.leases.iter().any(|lease| lease.worker == worker);
        self.offers.iter().filter(move |(_, offer)| holds(offer)).map(|(work, _)| work)
    }

    /// The longest leased work that an idle worker may repeat: its holder may have died, or be slow.
    pub fn hedge(&self, worker: &str, now: Duration, runnable: impl Fn(&str) -> bool) -> Option<Work> {
        let old_enough = |lease: &Lease| now.saturating_sub(lease.granted) >= self.terms.hedge_after;
        let alone = |offer: &Offer| match offer.leases.as_slice() {
            [lease] if lease.worker != worker && old_enough(lease) => Some(lease.granted),
            _ => None,
        };
        let candidates = self.offers.iter().filter(|(work, _)| runnable(&work.run));
        let oldest = candidates.filter_map(|(work, offer)| Some((alone(offer)?, work))).min();
        oldest.map(|(_, work)| work.clone())
    }

    /// Renews a lease, or takes it up again if it had run out. Refused if the work is unknown, or did not move for
    /// too long: then it waits for somebody else.
    pub fn renew(&mut self, work: &Work, worker: &str, progress: u64, now: Duration) -> bool {
        let Terms { lease: length, stall, .. } = self.terms;
        let Some(offer) = self.offers.get_mut(work) else { return false };
        let Some(at) = offer.leases.iter().position(|lease| lease.worker == worker) else {
            self.grant(work, worker, now);
            return true;
        };
        let lease = &mut offer.leases[at];
        if progress != lease.progress {
            (lease.progress, lease.progressed) = (progress, now);
        }
        if now.saturating_sub(lease.progressed) > stall {
            offer.leases.remove(at);
            return false;
        }
        lease.expires = now + length;
        true
    }

    /// Takes the leases away that have run out.
    pub fn expire(&mut self, now: Duration) -> Vec<Expired> {
        let mut expired = vec![];
        for (work, offer) in &mut self.offers {
            for lease in offer.leases.extract_if(.., |lease| lease.expires <= now) {
                offer.vanished += 1;
                let verdict = if offer.vanished >= self.terms.vanished {
                    let times = offer.vanished;
                    Verdict::Poison(format!("{work}: {times} workers vanished with it, one after the other"))
                } else {
                    Verdict::Again
                };
                expired.push(Expired { work: work.clone(), worker: lease.worker, verdict });
            }
        }
        expired
    }

    /// Notes that the work got further, whoever did it: those who vanished before did not do so because of it.
    pub fn advanced(&mut self, work: &Work) {
        if let Some(offer) = self.offers.get_mut(work) {
            offer.vanished = 0;
        }
    }

    /// Gives work back.
    pub fn release(&mut self, work: &Work, worker: &str) {
        if let Some(offer) = self.offers.get_mut(work) {
            offer.leases.retain(|lease| lease.worker != worker);
        }
    }

    /// Gives back all that a worker has.
    pub fn release_all(&mut self, worker: &str) {
        for offer in self.offers.values_mut() {
            offer.leases.retain(|lease| lease.worker != worker);
        }
    }

    /// Gives work back that cannot be done, as its worker says. Only somebody who has it can say so.
    pub fn fail(&mut self, work: &Work, worker: &str, reason: &str) -> Verdict {
        let Terms { failures, failing_workers, .. } = self.terms;
        let Some(offer) = self.offers.get_mut(work) else { return Verdict::Again };
        if !offer.leases.iter().any(|lease| lease.worker == worker) {
            return Verdict::Again;
        }
        offer.leases.retain(|lease| lease.worker != worker);
        offer.failures.push((worker.to_owned(), reason.to_owned()));
        let workers: BTreeSet<&str> = offer.failures.iter().map(|(worker, _)| worker.as_str()).collect();
        if offer.failures.len() >= failures || workers.len() >= failing_workers {
            let (times, workers) = (offer.failures.len(), workers.len());
            return Verdict::Poison(format!("{work} failed {times} times on {workers} workers: {reason}"));
        }
        Verdict::Again
    }

    /// Forgets work that is done.
    pub fn remove(&mut self, work: &Work) {
        self.offers.remove(work);
    }

    /// Forgets all work of a run.
    pub fn remove_run(&mut self, run: &str) {
        self.offers.retain(|work, _| work.run != run);
    }

    /// Leases of a run that are out.
    pub fn count(&self, run: &str) -> usize {
        self.of_run(run).map(|(_, offer)| offer.leases.len()).sum()
    }
}

impl Offer {
    fn failed_on(&self, worker: &str) -> bool {
        self.failures.iter().any(|(failed, _)| failed == worker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::convert::Piece;

    fn work(island: u32) -> Work {
        Work { run: "r".to_owned(), piece: Piece::Epoch { island, epoch: 0 } }
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn leases() -> Leases {
        Leases::new(Terms::default())
    }

    #[test]
    fn a_lease_runs_out_unless_it_is_renewed() {
        let mut leases = leases();
        leases.grant(&work(0), "a", seconds(0));
        leases.grant(&work(1), "b", seconds(0));
        assert!(leases.renew(&work(0), "a", 1, seconds(10)));
        let expired = leases.expire(seconds(15));
        assert_eq!(
            expired,
            [Expired { work: work(1), worker: "b".to_owned(), verdict: Verdict::Again }],
            "the other one was renewed"
        );
        assert_eq!(leases.waiting_for("c", "r"), Some(work(1)));
        assert_eq!(leases.expire(seconds(25)).len(), 1);
    }

    #[test]
    fn a_worker_that_was_away_takes_its_lease_up_again() {
        let mut leases = leases();
        leases.grant(&work(0), "a", seconds(0));
        leases.expire(seconds(20));
        leases.grant(&work(0), "b", seconds(20));
        assert!(leases.renew(&work(0), "a", 3, seconds(21)));
        assert_eq!(leases.count("r"), 2);
        leases.remove(&work(0));
        assert!(!leases.renew(&work(0), "a", 4, seconds(22)), "the work is done");
    }

    #[test]
    fn no_progress_no_lease() {
        let mut leases = leases();
        leases.grant(&work(0), "a", seconds(0));
        for now in (0..=600).step_by(5) {
            assert!(leases.renew(&work(0), "a", 0, seconds(now)));
        }
        assert!(!leases.renew(&work(0), "a", 0, seconds(605)));
        assert_eq!(leases.waiting_for("b", "r"), Some(work(0)));
    }

    #[test]
    fn progress_keeps_a_lease_for_ever() {
        let mut leases = leases();
        leases.grant(&work(0), "a", seconds(0));
        for now in (0..100_000).step_by(14) {
            assert!(leases.renew(&work(0), "a", now / 500, seconds(now)));
            assert_eq!(leases.expire(seconds(now + 13)), []);
        }
    }

    #[test]
    fn an_idle_worker_repeats_the_oldest_lease_once() {
        let mut leases = leases();
        leases.grant(&work(1), "a", seconds(0));
        leases.grant(&work(0), "a", seconds(1));
        assert_eq!(leases.hedge("b", seconds(9), |_| true), None, "it is too young");
        assert_eq!(leases.hedge("b", seconds(12), |_| false), None, "the run is paused");
        assert_eq!(leases.hedge("a", seconds(12), |_| true), None, "it is its own");
        assert_eq!(leases.hedge("b", seconds(12), |_| true), Some(work(1)));
        leases.grant(&work(1), "b", seconds(12));
        assert_eq!(leases.hedge("c", seconds(12), |_| true), Some(work(0)), "two are enough");
    }

    #[test]
    fn poison_is_what_fails_on_three_workers_or_five_times() {
        let mut leases = leases();
        let mut fail = |worker: &str| {
            leases.grant(&work(0), worker, seconds(0));
            leases.fail(&work(0), worker, "it broke")
        };
        assert_eq!(fail("a"), Verdict::Again);
        assert_eq!(fail("b"), Verdict::Again);
        let Verdict::Poison(reason) = fail("c") else { panic!("three workers are enough") };
        assert_eq!(reason, "run r, island 0, epoch 0 failed 3 times on 3 workers: it broke");

        let mut leases = self::leases();
        let verdicts = (0..5).map(|_| {
            leases.grant(&work(0), "a", seconds(0));
            leases.fail(&work(0), "a", "it broke")
        });
        let poison: Vec<bool> = verdicts.map(|verdict| verdict != Verdict::Again).collect();
        assert_eq!(poison, [false, false, false, false, true]);
    }

    #[test]
    fn only_a_holder_can_fail_work() {
        let mut leases = leases();
        leases.grant(&work(0), "a", seconds(0));
        for worker in ["x", "y", "z"] {
            assert_eq!(leases.fail(&work(0), worker, "made up"), Verdict::Again);
        }
        assert_eq!(leases.count("r"), 1);
    }

    #[test]
    fn what_failed_here_is_tried_elsewhere_first() {
        let mut leases = leases();
        leases.grant(&work(0), "a", seconds(0));
        leases.grant(&work(1), "b", seconds(0));
        leases.fail(&work(0), "a", "it broke");
        leases.release(&work(1), "b");
        assert_eq!(leases.waiting_for("a", "r"), Some(work(1)));
        assert_eq!(leases.waiting_for("b", "r"), Some(work(0)));
    }

    #[test]
    fn vanishing_workers_are_poison_only_while_nothing_gets_further() {
        let mut leases = leases();
        for round in 0..30 {
            leases.grant(&work(0), "a", seconds(100 * round));
            let expired = leases.expire(seconds(100 * round + 50));
            assert_eq!(expired[0].verdict, Verdict::Again);
            if round % 9 == 8 {
                leases.advanced(&work(0));
            }
        }
        let poisoned = (30..40).any(|round| {
            leases.grant(&work(0), "a", seconds(100 * round));
            leases.expire(seconds(100 * round + 50))[0].verdict != Verdict::Again
        });
        assert!(poisoned);
    }
}
