//! Leases: who may work on what, and until when.
//!
//! A pure state machine: the time is passed in, as a duration since any fixed moment. A lease protects no worker's result
//! (a correct result is accepted from any worker); it only keeps two workers from doing the same thing by accident.
//! Every lease has a token, so that a renewal or a release that comes late touches no lease but its own.

mod usual_time;

use super::cells::LARGEST_BATCH;
use crate::histogram::Histogram;
use proto::convert::{Piece, Work};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use usual_time::UsualTime;

/// What leases are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How long a lease lasts without a renewal.
    pub lease: Duration,
    /// How often workers renew, at most three times in a lease.
    pub renew: Duration,
    /// How long a piece may make no progress at least before it counts as standing still.
    pub stall: Duration,
    /// How old a lease must be at least before an idle worker repeats its work.
    pub hedge_after: Duration,
    /// Work is poison once it has failed on this number of principals, and on every connected worker that could take it.
    pub failing_workers: usize,
    /// With fewer principals than that, work is poison once it has failed so often everywhere.
    pub failures: u32,
    /// Work is poison once this number of workers have vanished with it for good, and with each principal that is connected.
    pub vanished: usize,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(15),
            renew: Duration::from_secs(5),
            stall: Duration::from_mins(10),
            hedge_after: Duration::from_secs(10),
            failing_workers: 3,
            failures: 5,
            vanished: 10,
        }
    }
}

/// A piece is stalled if it makes no progress for this multiple of the usual time of its run's pieces.
const STALLED_AFTER: u32 = 10;
/// An idle worker repeats a piece at the earliest after this multiple of the usual time of its run's pieces.
const HEDGED_AFTER: u32 = 2;

/// How long a worker is not given work again that failed on it, or that it has no memory for: twice as long each time.
const BACK_OFF: Duration = Duration::from_secs(1);
/// The longest of these times.
const LONGEST_BACK_OFF: Duration = Duration::from_mins(1);
/// The most pieces that are re-adopted for a worker: one that renews more makes them up.
const MOST_HELD: usize = 4096;
/// The most pieces that are re-adopted for the workers of one principal: ids are self-chosen.
const MOST_ADOPTED: usize = 1 << 16;
/// The most workers that are remembered with what failed on them, of each piece.
const MOST_FAILURES: usize = 256;

/// How long to wait after this number of failures.
pub fn back_off(times: u32) -> Duration {
    BACK_OFF.saturating_mul(1 << times.saturating_sub(1).min(10)).min(LONGEST_BACK_OFF)
}

/// A worker, and who answers for it: its token and certificate, or its address. Its id is self-chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerIdentity<'a> {
    /// The worker's id.
    pub worker: &'a str,
    /// Who answers for it.
    pub principal: &'a str,
    /// When it joined.
    pub joined: Duration,
}

/// What a lease is known by.
pub type Token = u64;

/// All work that is offered to workers, leased or waiting.
#[derive(Clone, Debug)]
pub struct Leases {
    terms: Terms,
    offers: BTreeMap<Work, Offer>,
    next: Token,
    /// The offers that no worker has, or that stand still with every worker that has them.
    waiting: BTreeSet<Work>,
    /// The offers of each worker.
    held: BTreeMap<String, BTreeSet<Work>>,
    /// The offers that some worker has, by when another one may repeat them.
    repeatable: BTreeSet<(Duration, Work)>,
    /// How many leases of each run are out.
    counts: BTreeMap<String, usize>,
    /// How many leases of each principal were re-adopted and are out.
    adopted: BTreeMap<String, usize>,
    /// How long a piece of each run usually takes.
    usual: BTreeMap<String, UsualTime>,
    /// How long all pieces took, from the first grant to the result.
    times: Histogram,
    /// The workers that have no memory for pieces of a run.
    unfit: BTreeMap<String, BTreeMap<String, FailureRecord>>,
}

/// One piece of work.
#[derive(Clone, Debug, Default)]
struct Offer {
    leases: Vec<Lease>,
    /// From when on another worker may repeat it.
    repeat: Option<Duration>,
    /// On which workers it failed.
    failures: BTreeMap<String, FailureRecord>,
    /// Which workers vanished with it and were not heard of again, their principals, and when they had been given it.
    vanished: BTreeMap<String, (String, Duration)>,
}

/// Something that did not work with one worker.
#[derive(Clone, Debug)]
struct FailureRecord {
    principal: String,
    times: u32,
    reason: String,
    /// Until when it is not tried again there.
    until: Duration,
    /// Whether the worker lacks a program.
    lacks_program: bool,
}

impl FailureRecord {
    /// Notes that it did not work, perhaps once more.
    fn note(
        known: &mut BTreeMap<String, Self>,
        identity: WorkerIdentity<'_>,
        (reason, lacks_program): (&str, bool),
        now: Duration,
    ) {
        let times = known.get(identity.worker).map_or(0, |record| record.times) + 1;
        let (principal, reason) = (identity.principal.to_owned(), reason.to_owned());
        let record = Self { principal, times, reason, until: now + back_off(times), lacks_program };
        known.insert(identity.worker.to_owned(), record);
        if known.len() > MOST_FAILURES {
            let oldest =
                known.iter().min_by_key(|(_, record)| record.until).map(|(worker, _)| worker.clone());
            oldest.map(|worker| known.remove(&worker));
        }
    }
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
    /// The principal for which it was re-adopted, if it was not granted.
    adopted: Option<String>,
}

/// A lease as others see it.
#[derive(Clone, Copy, Debug)]
pub struct LeaseStatus<'a> {
    /// The work.
    pub work: &'a Work,
    /// The worker that has it.
    pub worker: &'a str,
    /// Since when.
    pub granted: Duration,
    /// Until when, unless it is renewed.
    pub expires: Duration,
    /// When it last made progress.
    pub progressed: Duration,
    /// Whether it stands still.
    pub stalled: bool,
}

impl Lease {
    fn status<'a>(&'a self, work: &'a Work) -> LeaseStatus<'a> {
        let Self { worker, granted, expires, progressed, stalled, .. } = self;
        let (granted, expires, progressed, stalled) = (*granted, *expires, *progressed, *stalled);
        LeaseStatus { work, worker, granted, expires, progressed, stalled }
    }
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
pub enum RetryDecision {
    /// Another worker may try, or the same one later.
    Retry,
    /// It fails everywhere.
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
            repeatable: BTreeSet::new(),
            counts: BTreeMap::new(),
            adopted: BTreeMap::new(),
            usual: BTreeMap::new(),
            times: Histogram::default(),
            unfit: BTreeMap::new(),
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
        self.add(work, worker, token, None, now);
        token
    }

    /// Re-adopts a lease that was granted before, perhaps by another coordinator. Rejected if that cannot be: pieces that are
    /// granted do not overlap, and no principal has as many.
    fn adopt(&mut self, work: &Work, identity: WorkerIdentity<'_>, token: Token, now: Duration) -> bool {
        let WorkerIdentity { worker, principal, .. } = identity;
        let count = self.adopted.get(principal).copied().unwrap_or(0);
        let has_too_many = self.held.get(worker).is_some_and(|held| held.len() >= MOST_HELD);
        if has_too_many || count >= MOST_ADOPTED || self.overlaps_another(work) {
            return false;
        }
        self.adopted.insert(principal.to_owned(), count + 1);
        self.add(work, worker, token, Some(principal.to_owned()), now);
        true
    }

    /// Whether several cells are together a piece that no worker can have been given, because some of them belong to another one.
    /// One cell alone may take hours, and is believed.
    fn overlaps_another(&self, work: &Work) -> bool {
        let Piece::Cells { first, count: count @ 2.. } = work.piece else { return false };
        if self.knows(work) {
            return false;
        }
        let at = |first| Work { run: work.run.clone(), piece: Piece::Cells { first, count: 0 } };
        let near = at(first.saturating_sub(LARGEST_BATCH))..at(first.saturating_add(count));
        self.offers.range(near).any(|(other, _)| match other.piece {
            Piece::Cells { first: other, count } => other.saturating_add(count) > first,
            Piece::Epoch { .. } | Piece::Job { .. } => false,
        })
    }

    fn add(&mut self, work: &Work, worker: &str, token: Token, adopted: Option<String>, now: Duration) {
        let expires = now + self.terms.lease;
        let (worker, granted, progressed) = (worker.to_owned(), now, now);
        let lease =
            Lease { token, worker, granted, expires, progress: 0, progressed, stalled: false, adopted };
        self.held.entry(lease.worker.clone()).or_default().insert(work.clone());
        *self.counts.entry(work.run.clone()).or_default() += 1;
        self.change(work, |offer| {
            // It is there again, and so it had not vanished.
            offer.vanished.remove(&lease.worker);
            offer.leases.push(lease);
        });
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
            if let Some(principal) = &lease.adopted
                && let Some(count) = self.adopted.get_mut(principal)
            {
                *count -= 1;
                if *count == 0 {
                    self.adopted.remove(principal);
                }
            }
        }
        if let Some(count) = self.counts.get_mut(&work.run) {
            *count -= over.len();
        }
    }

    /// Changes who has some work, which is offered from now on.
    fn change<T>(&mut self, work: &Work, change: impl FnOnce(&mut Offer) -> T) -> T {
        let ages = self.repeated_after(&work.run);
        let offer = self.offers.entry(work.clone()).or_default();
        let before = offer.repeat;
        let changed = change(offer);
        let after = offer.repeat_at(ages);
        offer.repeat = after;
        let is_waiting = offer.leases.iter().all(|lease| lease.stalled);
        if before != after {
            if let Some(at) = before {
                self.repeatable.remove(&(at, work.clone()));
            }
            self.repeatable.extend(after.map(|at| (at, work.clone())));
        }
        if is_waiting {
            self.waiting.insert(work.clone());
        } else {
            self.waiting.remove(work);
        }
        changed
    }

    /// How long a piece of a run usually takes, as far as that is known.
    pub fn usual(&self, run: &str) -> Duration {
        self.usual.get(run).map(UsualTime::median).unwrap_or_default()
    }

    /// For how long a piece of a run may make no progress before it counts as standing still.
    fn stalled_after(&self, run: &str) -> Duration {
        self.terms.stall.max(self.usual(run) * STALLED_AFTER)
    }

    /// How old the last lease of a piece must be before an idle worker repeats it: of a piece with a single lease, and of one
    /// with several.
    fn repeated_after(&self, run: &str) -> [Duration; 2] {
        [self.terms.hedge_after.max(self.usual(run) * HEDGED_AFTER), self.stalled_after(run)]
    }

    /// Offers work that is not leased, unless it is known: it waits for a worker.
    pub fn offer(&mut self, work: &Work) {
        self.change(work, |_| ());
    }

    /// Whether the work is known: waiting or leased.
    pub fn knows(&self, work: &Work) -> bool {
        self.offers.contains_key(work)
    }

    /// The work of a run that waits for a worker, unless this one has it, was rejected by it, or is to wait with it.
    pub fn waiting_for(
        &self,
        worker: &str,
        run: &str,
        now: Duration,
        may_take: impl Fn(&Work) -> bool,
    ) -> Option<Work> {
        let first = Work { run: run.to_owned(), piece: Piece::Epoch { island: 0, epoch: 0 } };
        let mut waiting = self.waiting.range(first..).take_while(|work| work.run == run);
        waiting.find(|work| self.offers[work].is_for(worker, now) && may_take(work)).cloned()
    }

    /// Whether a worker had no memory for a piece of a run just now.
    pub fn is_unfit(&self, worker: &str, run: &str, now: Duration) -> bool {
        self.unfit.get(run).and_then(|workers| workers.get(worker)).is_some_and(|record| record.until > now)
    }

    /// Why a run gets no further, if all of these workers have no memory or no program for it, and whether the last of them
    /// lacks a program.
    pub fn why_unfit<'a>(
        &self,
        run: &str,
        workers: impl IntoIterator<Item = &'a str>,
    ) -> Option<(&str, bool)> {
        let unfit = self.unfit.get(run)?;
        let mut last = None;
        for worker in workers {
            let record = unfit.get(worker)?;
            last = Some((record.reason.as_str(), record.lacks_program));
        }
        last
    }

    /// A piece of a run that has failed and is tried again: which, on how many workers, why, and from when on.
    pub fn failing<'a>(&'a self, run: &'a str) -> Option<(&'a Work, usize, &'a str, Duration)> {
        self.offers_of(run).find_map(|(work, offer)| {
            let record = offer.failures.values().next()?;
            let again = offer.failures.values().map(|record| record.until).min()?;
            Some((work, offer.failures.len(), record.reason.as_str(), again))
        })
    }

    fn offers_of<'a>(&'a self, run: &'a str) -> impl Iterator<Item = (&'a Work, &'a Offer)> {
        let first = Work { run: run.to_owned(), piece: Piece::Epoch { island: 0, epoch: 0 } };
        self.offers.range(first..).take_while(move |(work, _)| work.run == run)
    }

    /// The leases of a run that are out, by piece.
    pub fn leases_of<'a>(&'a self, run: &'a str) -> impl Iterator<Item = LeaseStatus<'a>> {
        self.offers_of(run).flat_map(|(work, offer)| offer.leases.iter().map(move |lease| lease.status(work)))
    }

    /// The leases that a worker has.
    pub fn held_leases<'a>(&'a self, worker: &'a str) -> impl Iterator<Item = LeaseStatus<'a>> {
        let offers = self.held_by(worker).filter_map(|work| Some((work, self.offers.get(work)?)));
        offers.flat_map(move |(work, offer)| {
            let own = offer.leases.iter().filter(move |lease| lease.worker == worker);
            own.map(move |lease| lease.status(work))
        })
    }

    /// How much work of a run waits for a worker.
    pub fn count_waiting_of(&self, run: &str) -> usize {
        let first = Work { run: run.to_owned(), piece: Piece::Epoch { island: 0, epoch: 0 } };
        self.waiting.range(first..).take_while(|work| work.run == run).count()
    }

    /// Whether a worker has a job of a run, and makes progress.
    pub fn has_leased_job(&self, run: &str) -> bool {
        let first = Work { run: run.to_owned(), piece: Piece::Job { number: 0 } };
        let mut jobs = self.offers.range(first..).take_while(|(work, _)| work.run == run);
        jobs.any(|(work, _)| !self.waiting.contains(work))
    }

    /// Whether a worker lacks memory or a program for a run, as far as it was tried.
    pub fn lacks_something(&self, worker: &str, run: &str) -> bool {
        self.unfit.get(run).is_some_and(|workers| workers.contains_key(worker))
    }

    /// How much work waits for a worker.
    pub fn count_waiting(&self) -> usize {
        self.waiting.len()
    }

    /// For how long some worker has had the work.
    pub fn leased_for(&self, work: &Work, now: Duration) -> Option<Duration> {
        let first = self.offers.get(work)?.leases.iter().map(|lease| lease.granted).min();
        first.map(|granted| now.saturating_sub(granted))
    }

    /// The workers that have some work.
    pub fn holders(&self, work: &Work) -> impl Iterator<Item = &str> {
        let leases = self.offers.get(work).into_iter().flat_map(|offer| &offer.leases);
        leases.map(|lease| lease.worker.as_str())
    }

    /// What a worker has leased.
    pub fn held_by(&self, worker: &str) -> impl Iterator<Item = &Work> {
        self.held.get(worker).into_iter().flatten()
    }

    /// Puts off what was to be repeated by now, as long as it has not taken longer than such pieces do as far as that is
    /// known by now.
    pub fn put_off_repeats(&mut self, now: Duration) {
        let due = self.repeatable.iter().take_while(|(at, _)| *at <= now).map(|(_, work)| work);
        let is_early = |work: &&Work| {
            self.offers[*work].repeat_at(self.repeated_after(&work.run)).is_some_and(|at| at > now)
        };
        let early: Vec<Work> = due.filter(is_early).cloned().collect();
        for work in &early {
            self.change(work, |_| ());
        }
    }

    /// The longest leased work that an idle worker may repeat: its holder may have died, be slow, or only seem to work.
    pub fn hedge(&self, worker: &str, now: Duration, may_take: impl Fn(&Work) -> bool) -> Option<Work> {
        let mut due = self.repeatable.iter().take_while(|(at, _)| *at <= now).map(|(_, work)| work);
        due.find(|work| self.offers[work].is_for(worker, now) && may_take(work)).cloned()
    }

    /// Renews a lease, or re-adopts it if it had expired. Rejected if the worker has another lease of the work by now, or as
    /// much work as a worker can have. However long the work takes, it stays with a worker that renews.
    pub fn renew(
        &mut self,
        work: &Work,
        identity: WorkerIdentity<'_>,
        token: Token,
        progress: u64,
        now: Duration,
    ) -> bool {
        let length = self.terms.lease;
        let offer = self.offers.get_mut(work);
        let own =
            offer.and_then(|offer| offer.leases.iter_mut().find(|lease| lease.worker == identity.worker));
        let Some(lease) = own else { return self.adopt(work, identity, token, now) };
        if lease.token != token {
            return false;
        }
        lease.expires = now + length;
        if progress != lease.progress {
            let had_stalled = lease.stalled;
            (lease.progress, lease.progressed, lease.stalled) = (progress, now, false);
            if had_stalled {
                self.change(work, |_| ());
            }
        }
        true
    }

    /// Prolongs every lease by a time in which no worker could be heard, because the coordinator itself stood still.
    pub fn postpone(&mut self, time: Duration) {
        for lease in self.offers.values_mut().flat_map(|offer| &mut offer.leases) {
            lease.expires += time;
            lease.progressed += time;
        }
    }

    /// The leases that have come to stand still since this was last asked: renewed, but without progress for far longer
    /// than pieces of their run usually take. Another worker may have what stands still everywhere.
    pub fn find_stalled(&mut self, now: Duration) -> Vec<Stalled> {
        let mut stalled = vec![];
        for (work, offer) in &mut self.offers {
            let usual = self.usual.get(&work.run).map(UsualTime::median).unwrap_or_default();
            let limit = self.terms.stall.max(usual * STALLED_AFTER);
            for lease in &mut offer.leases {
                let for_how_long = now.saturating_sub(lease.progressed);
                if !lease.stalled && for_how_long > limit {
                    lease.stalled = true;
                    stalled.push(Stalled { work: work.clone(), worker: lease.worker.clone(), for_how_long });
                }
            }
        }
        for Stalled { work, .. } in &stalled {
            self.change(work, |_| ());
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

    /// Forgets work that a worker has done, and learns from its lease how long such work takes. Returns the workers that had
    /// the work for so long that others repeat it.
    pub fn complete(&mut self, work: &Work, by: WorkerIdentity<'_>, now: Duration) -> Vec<String> {
        let leases = self.offers.get(work).map_or(&[][..], |offer| &offer.leases);
        let age = |lease: &Lease| now.saturating_sub(lease.granted);
        let [too_long, _] = self.repeated_after(&work.run);
        let is_outrun = |lease: &&Lease| lease.worker != by.worker && age(lease) >= too_long;
        let outrun = leases.iter().filter(is_outrun).map(|lease| lease.worker.clone()).collect();
        // Of a lease that was adopted only the end is known.
        let own = leases.iter().find(|lease| lease.worker == by.worker && lease.adopted.is_none()).map(age);
        let first = leases.first().map(age);
        if let Some(held) = own {
            self.usual.entry(work.run.clone()).or_default().learn(by.principal, held);
        }
        if let Some(held) = first {
            self.times.add(held);
        }
        self.remove(work);
        outrun
    }

    /// How long pieces took so far.
    pub(crate) fn times(&self) -> &Histogram {
        &self.times
    }

    /// Notes that a worker has memory for pieces of a run.
    pub fn fits(&mut self, worker: &str, run: &str) {
        if let Some(workers) = self.unfit.get_mut(run) {
            workers.remove(worker);
        }
    }

    /// For how long a worker has held work by this lease.
    pub fn held_for(&self, work: &Work, worker: &str, token: Token, now: Duration) -> Option<Duration> {
        let leases = &self.offers.get(work)?.leases;
        let lease = leases.iter().find(|lease| lease.token == token && lease.worker == worker)?;
        Some(now.saturating_sub(lease.granted))
    }

    /// For how long a worker has had work.
    pub fn held_by_worker(&self, work: &Work, worker: &str, now: Duration) -> Option<Duration> {
        let lease = self.offers.get(work)?.leases.iter().find(|lease| lease.worker == worker)?;
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
                let held = now.saturating_sub(lease.granted);
                let Lease { worker, token, .. } = lease;
                expired.push(Expired { work: work.clone(), worker, token, held });
            }
        }
        expired
    }

    /// Notes that a worker was not heard of any more while it had some work, since it was given that. If it returns, it had
    /// not vanished.
    pub fn vanished(&mut self, work: &Work, identity: WorkerIdentity<'_>, granted: Duration) {
        if let Some(offer) = self.offers.get_mut(work)
            && offer.vanished.len() < MOST_FAILURES
        {
            let principal = identity.principal.to_owned();
            offer.vanished.insert(identity.worker.to_owned(), (principal, granted));
        }
    }

    /// Notes that any worker got further with the work: what failed before is behind it.
    pub fn advanced(&mut self, work: &Work) {
        if let Some(offer) = self.offers.get_mut(work) {
            offer.vanished.clear();
            offer.failures.clear();
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

    /// Forgets a worker that is gone.
    pub fn forget_worker(&mut self, worker: &str) {
        self.release_all(worker);
        for workers in self.unfit.values_mut() {
            workers.remove(worker);
        }
    }

    /// Gives work back that cannot be done, as its worker says. Only a worker that has it can say so; returns whether
    /// it has.
    pub fn fail(
        &mut self,
        work: &Work,
        identity: WorkerIdentity<'_>,
        token: Token,
        reason: &str,
        now: Duration,
    ) -> bool {
        let is_held = self.release(work, identity.worker, token);
        if let Some(offer) = self.offers.get_mut(work).filter(|_| is_held) {
            FailureRecord::note(&mut offer.failures, identity, (reason, false), now);
        }
        is_held
    }

    /// Gives work back that a worker has no memory or no program for: that is no failure. For a while it is given no work
    /// of the run.
    pub fn refuse(
        &mut self,
        work: &Work,
        identity: WorkerIdentity<'_>,
        token: Token,
        unfit: (&str, bool),
        now: Duration,
    ) {
        if self.release(work, identity.worker, token) {
            FailureRecord::note(self.unfit.entry(work.run.clone()).or_default(), identity, unfit, now);
        }
    }

    /// What becomes of work that failed, or with which workers vanished: it is poison once it has failed often enough,
    /// on enough principals, and on every connected worker that could take it. Where nobody is connected, it waits.
    pub fn retry_decision<'a>(
        &self,
        work: &Work,
        connected: impl IntoIterator<Item = WorkerIdentity<'a>>,
        now: Duration,
    ) -> RetryDecision {
        let Some(offer) = self.offers.get(work).filter(|offer| offer.leases.is_empty()) else {
            return RetryDecision::Retry;
        };
        let Offer { failures, vanished, .. } = offer;
        let principals: BTreeSet<&str> = failures.values().map(|record| record.principal.as_str()).collect();
        let times: u32 = failures.values().map(|record| record.times).sum();
        let has_failed = principals.len() >= self.terms.failing_workers || times >= self.terms.failures;
        if !has_failed && vanished.len() < self.terms.vanished {
            return RetryDecision::Retry;
        }
        // Who lacked memory for another piece, or while it held others, may have it by now: one that works on the run will
        // try this piece, too.
        let is_at_work = |worker: &str| self.held_by(worker).any(|held| held.run == work.run);
        let could = |identity: &WorkerIdentity<'_>| {
            !self.is_unfit(identity.worker, &work.run, now) || is_at_work(identity.worker)
        };
        let mut connected = connected.into_iter().filter(could).peekable();
        // A process that was started again has another id. One that was there before another of its principal was given
        // the work has not tried: several may share a principal.
        let last = |principal: &str| {
            let of_principal = vanished.values().filter(|(known, _)| known == principal);
            of_principal.map(|(_, granted)| *granted).max()
        };
        let has_tried = |identity: WorkerIdentity<'_>| {
            failures.contains_key(identity.worker)
                || vanished.contains_key(identity.worker)
                || last(identity.principal).is_some_and(|granted| granted <= identity.joined)
        };
        if connected.peek().is_none() || !connected.all(has_tried) {
            return RetryDecision::Retry;
        }
        RetryDecision::Poison(match failures.values().next_back() {
            Some(FailureRecord { reason, .. }) if has_failed => {
                let on = match failures.len() {
                    1 => "1 worker".to_owned(),
                    workers => format!("{workers} workers"),
                };
                format!("{work} failed {times} times on {on}: {reason}")
            }
            _ => format!("{work}: {} workers vanished with it, one after the other", vanished.len()),
        })
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
        self.unfit.remove(run);
    }

    /// Leases of a run that are out.
    pub fn count(&self, run: &str) -> usize {
        self.counts.get(run).copied().unwrap_or(0)
    }
}

impl Offer {
    /// From when on another worker may repeat it, if its last lease must have these ages.
    fn repeat_at(&self, [single, several]: [Duration; 2]) -> Option<Duration> {
        let last = self.leases.last()?;
        Some(last.granted.saturating_add(if self.leases.len() == 1 { single } else { several }))
    }

    /// Whether a worker may be given it: one that does not have it, and on which it did not fail just now.
    fn is_for(&self, worker: &str, now: Duration) -> bool {
        self.leases.iter().all(|lease| lease.worker != worker)
            && self.failures.get(worker).is_none_or(|record| record.until <= now)
    }
}

#[cfg(test)]
mod tests;
