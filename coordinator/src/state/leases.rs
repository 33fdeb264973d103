//! Leases: who may work on what, and until when.
//!
//! A pure state machine: the time is passed in, as a duration since any fixed moment. A lease protects nobody's result
//! (whoever delivers the right thing is welcome); it only keeps two workers from doing the same thing by accident.
//! Every lease has a token, so that a renewal or a release that comes late touches no lease but its own.

use proto::convert::{Piece, Work};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What leases are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How long a lease lasts without a renewal.
    pub lease: Duration,
    /// How often workers renew, at most three times in a lease.
    pub renew: Duration,
    /// How long a piece may make no progress at least before it counts as standing still.
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
            renew: Duration::from_secs(5),
            stall: Duration::from_mins(10),
            hedge_after: Duration::from_secs(10),
            failures: 5,
            failing_workers: 3,
            vanished: 10,
        }
    }
}

/// A piece stands still if it makes no progress for so many times as long as pieces of its run usually take.
const STALLED_AFTER: u32 = 10;

/// What a lease is known by.
pub type Token = u64;

/// All work that is offered to workers, leased or waiting.
#[derive(Clone, Debug)]
pub struct Leases {
    terms: Terms,
    offers: BTreeMap<Work, Offer>,
    next: Token,
    /// The offers that nobody has.
    waiting: BTreeSet<Work>,
    /// The offers of each worker.
    held: BTreeMap<String, BTreeSet<Work>>,
    /// The offers that exactly one worker has, by since when.
    alone: BTreeSet<(Duration, Work)>,
    /// How many leases of each run are out.
    counts: BTreeMap<String, usize>,
    /// How long a piece of each run usually takes.
    usual: BTreeMap<String, Duration>,
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
    token: Token,
    worker: String,
    granted: Duration,
    expires: Duration,
    progress: u64,
    progressed: Duration,
    /// Whether it stands still, and that was reported.
    stalled: bool,
}

/// A piece that makes no progress although its worker renews it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stalled {
    /// The work.
    pub work: Work,
    /// The worker that has it.
    pub worker: String,
    /// For how long.
    pub for_how_long: Duration,
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
    /// What the lease was known by.
    pub token: Token,
    /// For how long.
    pub held: Duration,
    /// What becomes of the work.
    pub verdict: Verdict,
}

impl Leases {
    /// No work yet. Tokens count from the first one, which is to be far from those of other coordinators.
    pub fn new(terms: Terms, first: Token) -> Self {
        Self {
            terms,
            offers: BTreeMap::new(),
            next: first,
            waiting: BTreeSet::new(),
            held: BTreeMap::new(),
            alone: BTreeSet::new(),
            counts: BTreeMap::new(),
            usual: BTreeMap::new(),
        }
    }

    /// The terms.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Leases work to a worker. A worker has at most one lease of the same work: asking again prolongs it.
    pub fn grant(&mut self, work: &Work, worker: &str, now: Duration) -> Token {
        let offer = self.offers.entry(work.clone()).or_default();
        if let Some(lease) = offer.leases.iter_mut().find(|lease| lease.worker == worker) {
            lease.expires = now + self.terms.lease;
            return lease.token;
        }
        let token = self.next;
        self.next = self.next.wrapping_add(1);
        self.adopt(work, worker, token, now);
        token
    }

    /// Takes a lease up that was granted before, perhaps by another coordinator.
    fn adopt(&mut self, work: &Work, worker: &str, token: Token, now: Duration) {
        let expires = now + self.terms.lease;
        let worker = worker.to_owned();
        let lease =
            Lease { token, worker, granted: now, expires, progress: 0, progressed: now, stalled: false };
        self.held.entry(lease.worker.clone()).or_default().insert(work.clone());
        *self.counts.entry(work.run.clone()).or_default() += 1;
        self.change(work, |offer| offer.leases.push(lease));
    }

    /// Takes leases of some work away.
    fn detach(&mut self, work: &Work, is_over: impl Fn(&Lease) -> bool) -> Vec<Lease> {
        if !self.knows(work) {
            return vec![];
        }
        let over: Vec<Lease> =
            self.change(work, |offer| offer.leases.extract_if(.., |lease| is_over(lease)).collect());
        self.forget(work, &over);
        over
    }

    /// Forgets that leases of some work are out.
    fn forget(&mut self, work: &Work, over: &[Lease]) {
        for lease in over {
            if let Some(held) = self.held.get_mut(&lease.worker) {
                held.remove(work);
                if held.is_empty() {
                    self.held.remove(&lease.worker);
                }
            }
        }
        if let Some(count) = self.counts.get_mut(&work.run) {
            *count -= over.len();
        }
    }

    /// Changes who has some work, which is offered from now on.
    fn change<T>(&mut self, work: &Work, change: impl FnOnce(&mut Offer) -> T) -> T {
        let offer = self.offers.entry(work.clone()).or_default();
        let before = offer.alone_since();
        let changed = change(offer);
        let (after, is_waiting) = (offer.alone_since(), offer.leases.is_empty());
        if before != after {
            if let Some(since) = before {
                self.alone.remove(&(since, work.clone()));
            }
            self.alone.extend(after.map(|since| (since, work.clone())));
        }
        if is_waiting {
            self.waiting.insert(work.clone());
        } else {
            self.waiting.remove(work);
        }
        changed
    }

    /// Offers work that nobody has leased, unless it is known: it waits for a worker.
    pub fn offer(&mut self, work: &Work) {
        self.change(work, |_| ());
    }

    /// Whether the work is known: waiting or leased.
    pub fn knows(&self, work: &Work) -> bool {
        self.offers.contains_key(work)
    }

    /// The work of a run that nobody has, what failed on this worker last.
    pub fn waiting_for(&self, worker: &str, run: &str) -> Option<Work> {
        let first = Work { run: run.to_owned(), piece: Piece::Epoch { island: 0, epoch: 0 } };
        let mut waiting = self.waiting.range(first..).take_while(|work| work.run == run).peekable();
        let any = waiting.peek().copied();
        waiting.find(|work| !self.offers[work].failed_on(worker)).or(any).cloned()
    }

    /// How much work waits for a worker.
    pub fn count_waiting(&self) -> usize {
        self.waiting.len()
    }

    /// What a worker has leased.
    pub fn held_by(&self, worker: &str) -> impl Iterator<Item = &Work> {
        self.held.get(worker).into_iter().flatten()
    }

    /// The longest leased work that an idle worker may repeat: its holder may have died, or be slow.
    pub fn hedge(&self, worker: &str, now: Duration, runnable: impl Fn(&str) -> bool) -> Option<Work> {
        let old_enough = |since: Duration| now.saturating_sub(since) >= self.terms.hedge_after;
        let old = self.alone.iter().take_while(|(since, _)| old_enough(*since)).map(|(_, work)| work);
        let of_others = |work: &Work| self.offers[work].leases.iter().all(|lease| lease.worker != worker);
        old.filter(|work| runnable(&work.run)).find(|work| of_others(work)).cloned()
    }

    /// Renews a lease, or re-adopts it if it had expired. Rejected if the worker has another lease of the work by now.
    /// However long the work takes, it stays with a worker that renews.
    pub fn renew(&mut self, work: &Work, worker: &str, token: Token, progress: u64, now: Duration) -> bool {
        let length = self.terms.lease;
        let offer = self.offers.entry(work.clone()).or_default();
        let Some(at) = offer.leases.iter().position(|lease| lease.worker == worker) else {
            self.adopt(work, worker, token, now);
            return true;
        };
        let lease = &mut offer.leases[at];
        if lease.token != token {
            return false;
        }
        if progress != lease.progress {
            (lease.progress, lease.progressed, lease.stalled) = (progress, now, false);
        }
        lease.expires = now + length;
        true
    }

    /// The leases that have come to stand still since this was last asked: renewed, but without progress for far longer
    /// than pieces of their run usually take.
    pub fn find_stalled(&mut self, now: Duration) -> Vec<Stalled> {
        let mut stalled = vec![];
        for (work, offer) in &mut self.offers {
            let usual = self.usual.get(&work.run).copied().unwrap_or_default();
            let limit = self.terms.stall.max(usual * STALLED_AFTER);
            for lease in &mut offer.leases {
                let for_how_long = now.saturating_sub(lease.progressed);
                if !lease.stalled && for_how_long > limit {
                    lease.stalled = true;
                    stalled.push(Stalled { work: work.clone(), worker: lease.worker.clone(), for_how_long });
                }
            }
        }
        stalled
    }

    /// The first piece of a run that stands still, if there is one, and its worker.
    pub fn stalled(&self, run: &str) -> Option<(&Work, &str)> {
        let first = Work { run: run.to_owned(), piece: Piece::Epoch { island: 0, epoch: 0 } };
        let offers = self.offers.range(first..).take_while(|(work, _)| work.run == run);
        let mut leases = offers.flat_map(|(work, offer)| offer.leases.iter().map(move |lease| (work, lease)));
        leases.find(|(_, lease)| lease.stalled).map(|(work, lease)| (work, lease.worker.as_str()))
    }

    /// Forgets work that is done, and learns how long such work takes.
    pub fn complete(&mut self, work: &Work, now: Duration) {
        let first = self.offers.get(work).and_then(|offer| offer.leases.first());
        if let Some(held) = first.map(|lease| now.saturating_sub(lease.granted)) {
            let usual = self.usual.entry(work.run.clone()).or_insert(held);
            *usual = (*usual * 7 + held) / 8;
        }
        self.remove(work);
    }

    /// For how long a worker has held work by this lease.
    pub fn held_for(&self, work: &Work, worker: &str, token: Token, now: Duration) -> Option<Duration> {
        let leases = &self.offers.get(work)?.leases;
        let lease = leases.iter().find(|lease| lease.token == token && lease.worker == worker)?;
        Some(now.saturating_sub(lease.granted))
    }

    /// Takes the leases away that have run out.
    pub fn expire(&mut self, now: Duration) -> Vec<Expired> {
        let over = |lease: &Lease| lease.expires <= now;
        let offers = self.offers.iter().filter(|(_, offer)| offer.leases.iter().any(over));
        let works: Vec<Work> = offers.map(|(work, _)| work.clone()).collect();
        let mut expired = vec![];
        for work in works {
            for lease in self.detach(&work, over) {
                let offer = self.offers.entry(work.clone()).or_default();
                offer.vanished += 1;
                let verdict = if offer.vanished >= self.terms.vanished {
                    let times = offer.vanished;
                    Verdict::Poison(format!("{work}: {times} workers vanished with it, one after the other"))
                } else {
                    Verdict::Again
                };
                let held = now.saturating_sub(lease.granted);
                let Lease { worker, token, .. } = lease;
                expired.push(Expired { work: work.clone(), worker, token, held, verdict });
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

    /// Gives work back. Answers whether there was such a lease.
    pub fn release(&mut self, work: &Work, worker: &str, token: Token) -> bool {
        !self.detach(work, |lease| lease.token == token && lease.worker == worker).is_empty()
    }

    /// Gives back all that a worker has.
    pub fn release_all(&mut self, worker: &str) {
        for work in self.held.get(worker).cloned().unwrap_or_default() {
            self.detach(&work, |lease| lease.worker == worker);
        }
    }

    /// Gives work back that cannot be done, as its worker says. Only somebody who has it can say so.
    pub fn fail(&mut self, work: &Work, worker: &str, token: Token, reason: &str) -> Verdict {
        let Terms { failures, failing_workers, .. } = self.terms;
        if !self.release(work, worker, token) {
            return Verdict::Again;
        }
        let offer = self.offers.entry(work.clone()).or_default();
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
        self.detach(work, |_| true);
        self.waiting.remove(work);
        self.offers.remove(work);
    }

    /// Forgets all work of a run.
    pub fn remove_run(&mut self, run: &str) {
        let works: Vec<Work> = self.offers.keys().filter(|work| work.run == run).cloned().collect();
        for work in &works {
            self.remove(work);
        }
        self.counts.remove(run);
        self.usual.remove(run);
    }

    /// Leases of a run that are out.
    pub fn count(&self, run: &str) -> usize {
        self.counts.get(run).copied().unwrap_or(0)
    }
}

impl Offer {
    /// Since when exactly one worker has it.
    fn alone_since(&self) -> Option<Duration> {
        match self.leases.as_slice() {
            [lease] => Some(lease.granted),
            _ => None,
        }
    }

    fn failed_on(&self, worker: &str) -> bool {
        self.failures.iter().any(|(failed, _)| failed == worker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(island: u32) -> Work {
        Work { run: "r".to_owned(), piece: Piece::Epoch { island, epoch: 0 } }
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn leases() -> Leases {
        Leases::new(Terms::default(), 7)
    }

    #[test]
    fn a_lease_runs_out_unless_it_is_renewed() {
        let mut leases = leases();
        let token = leases.grant(&work(0), "a", seconds(0));
        let lost = leases.grant(&work(1), "b", seconds(0));
        assert!(leases.renew(&work(0), "a", token, 1, seconds(10)));
        let (worker, held, verdict) = ("b".to_owned(), seconds(15), Verdict::Again);
        let expected = Expired { work: work(1), worker, token: lost, held, verdict };
        assert_eq!(leases.expire(seconds(15)), [expected], "the other one was renewed");
        assert_eq!(leases.waiting_for("c", "r"), Some(work(1)));
        assert_eq!(leases.expire(seconds(25)).len(), 1);
    }

    #[test]
    fn a_worker_that_was_away_takes_its_lease_up_again() {
        let mut leases = leases();
        let token = leases.grant(&work(0), "a", seconds(0));
        leases.expire(seconds(20));
        leases.grant(&work(0), "b", seconds(20));
        assert!(leases.renew(&work(0), "a", token, 3, seconds(21)));
        assert_eq!(leases.count("r"), 2);
        let mut next = Leases::new(Terms::default(), 1000);
        assert!(next.renew(&work(0), "a", token, 3, seconds(0)), "and so does the next coordinator");
        assert!(next.release(&work(0), "a", token));
    }

    #[test]
    fn what_is_late_from_one_lease_does_not_touch_the_next() {
        let mut leases = leases();
        let old = leases.grant(&work(0), "a", seconds(0));
        leases.expire(seconds(20));
        let new = leases.grant(&work(0), "a", seconds(20));
        assert_ne!(old, new);
        assert!(!leases.renew(&work(0), "a", old, 1, seconds(21)));
        assert!(!leases.release(&work(0), "a", old));
        assert_eq!(leases.fail(&work(0), "a", old, "it broke"), Verdict::Again);
        assert_eq!(leases.count("r"), 1);
        assert!(leases.renew(&work(0), "a", new, 1, seconds(22)));
        assert!(!leases.release(&work(0), "b", new), "it is not its own");
        assert!(leases.release(&work(0), "a", new));
    }

    #[test]
    fn an_answer_that_was_lost_is_given_again_with_its_token() {
        let mut leases = leases();
        let token = leases.grant(&work(0), "a", seconds(0));
        assert_eq!(leases.grant(&work(0), "a", seconds(10)), token);
        assert_eq!(leases.expire(seconds(20)), [], "it was prolonged");
    }

    #[test]
    fn long_work_keeps_its_lease_and_is_reported_once_when_it_stands_still() {
        let mut leases = leases();
        let token = leases.grant(&work(0), "a", seconds(0));
        for now in (0..100_000).step_by(14) {
            assert!(leases.renew(&work(0), "a", token, now / 500, seconds(now)));
            assert_eq!(
                (leases.expire(seconds(now + 13)), leases.find_stalled(seconds(now))),
                (vec![], vec![])
            );
        }
        for now in (100_000..110_000).step_by(14) {
            assert!(leases.renew(&work(0), "a", token, 200, seconds(now)), "its worker is there");
        }
        assert_eq!(leases.find_stalled(seconds(110_000)).len(), 1);
        assert_eq!(leases.find_stalled(seconds(110_001)), [], "once");
        assert_eq!(leases.stalled("r"), Some((&work(0), "a")));
        assert_eq!(leases.stalled("q"), None);
        leases.renew(&work(0), "a", token, 201, seconds(110_002));
        assert_eq!(leases.stalled("r"), None, "it goes on");
    }

    #[test]
    fn what_usually_takes_long_may_stand_still_for_longer() {
        let mut leases = leases();
        leases.grant(&work(0), "a", seconds(0));
        leases.complete(&work(0), seconds(600));
        let token = leases.grant(&work(1), "a", seconds(600));
        for now in (600..6600).step_by(10) {
            assert!(leases.renew(&work(1), "a", token, 0, seconds(now)));
            assert_eq!(leases.find_stalled(seconds(now)), []);
        }
        assert_eq!(leases.find_stalled(seconds(6601)).len(), 1);
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
            let token = leases.grant(&work(0), worker, seconds(0));
            leases.fail(&work(0), worker, token, "it broke")
        };
        assert_eq!(fail("a"), Verdict::Again);
        assert_eq!(fail("b"), Verdict::Again);
        let Verdict::Poison(reason) = fail("c") else { panic!("three workers are enough") };
        assert_eq!(reason, "run r, island 0, epoch 0 failed 3 times on 3 workers: it broke");

        let mut leases = self::leases();
        let verdicts = (0..5).map(|_| {
            let token = leases.grant(&work(0), "a", seconds(0));
            leases.fail(&work(0), "a", token, "it broke")
        });
        let poison: Vec<bool> = verdicts.map(|verdict| verdict != Verdict::Again).collect();
        assert_eq!(poison, [false, false, false, false, true]);
    }

    #[test]
    fn only_a_holder_can_fail_work() {
        let mut leases = leases();
        let token = leases.grant(&work(0), "a", seconds(0));
        for worker in ["x", "y", "z"] {
            assert_eq!(leases.fail(&work(0), worker, token, "made up"), Verdict::Again);
        }
        assert_eq!(leases.count("r"), 1);
    }

    #[test]
    fn what_failed_here_is_tried_elsewhere_first() {
        let mut leases = leases();
        let broken = leases.grant(&work(0), "a", seconds(0));
        let released = leases.grant(&work(1), "b", seconds(0));
        leases.fail(&work(0), "a", broken, "it broke");
        leases.release(&work(1), "b", released);
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
