//! The workers that have joined, and what each has delivered that is not durable yet.

mod quarantine;

use super::leases::{WorkerIdentity, back_off};
use evolution::digest::Digest;
use quarantine::Watched;
use report::dashboard::{WorkerCounts, WorkerState, WorkerView};
use report::text::plain;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The most workers at a time.
const MOST: usize = 10_000;
/// A worker that fails so often in a row, whatever it is given, rests for a while.
const TIRED_AFTER: u32 = 3;
/// So often in a row losses of a principal are written down as they come, before they are written ever less often.
const HEARD: u32 = 8;

/// Why a worker is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkerRejection {
    /// It has not joined, or was forgotten.
    #[error("worker `{0}` has not joined this coordinator: join first")]
    Unknown(String),
    /// It delivered something that cannot be.
    #[error("worker `{worker}` is quarantined: {reason}")]
    Quarantined {
        /// The worker.
        worker: String,
        /// Why.
        reason: String,
    },
    /// Its results would not agree with ours.
    #[error(
        "expected a worker with semantics version {expected} (atoll {ours}), found {found} (atoll {theirs}): their \
         results would not agree"
    )]
    Semantics {
        /// Our semantics.
        expected: u32,
        /// The worker's.
        found: u32,
        /// Our version.
        ours: String,
        /// The worker's.
        theirs: String,
    },
    /// There are too many.
    #[error("expected at most {MOST} workers, found one more")]
    TooMany,
    /// Others of its principal were quarantined.
    #[error("worker `{0}` may join later: several workers with its token and address were quarantined")]
    Later(String),
    /// Not a name.
    #[error("expected a worker id and a name of 1 to 100 characters, found {0}")]
    Name(usize),
    /// Not an id: only the coordinator makes such ones, of workers of different principals with the same id.
    #[error("expected a worker id without `@`, found `{0}`")]
    Id(String),
}

/// All workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workers {
    joined: BTreeMap<String, Joined>,
    /// Principals that may not take part any more, and why.
    banned: BTreeMap<String, String>,
    /// Principals of which workers were quarantined.
    watched: BTreeMap<String, Watched>,
    /// Principals whose workers have failed since a delivery of any of them was accepted.
    failing: BTreeMap<String, Failing>,
    /// Principals that are the same machine with other secrets, and what it was known by first.
    successors: BTreeMap<String, String>,
    /// How many sessions there have been.
    sessions: u64,
    /// Whether a worker has learned that there is nothing left to do, though it may have left since.
    pub(crate) one_was_told: bool,
}

/// What has failed of a principal in a row. A worker that leaves and joins under another id begins where it left.
#[derive(Clone, Copy, Debug, Default)]
struct Failing {
    /// How often the worst of its workers has failed, and until when that rests.
    times: u32,
    resting: Duration,
    /// How often its losses were written down, and until when they are not.
    heard: u32,
    ignored: Duration,
}

#[derive(Clone, Debug)]
struct Joined {
    name: String,
    version: String,
    /// Who answers for it: an id is self-chosen.
    principal: String,
    /// What only it and this coordinator know of its session.
    session: Option<Digest>,
    threads: u32,
    since: Duration,
    /// Whether it is given no more work, as an operator wants.
    draining: bool,
    /// What failed on it last.
    last_error: Option<String>,
    /// How fast it is in each of its last runs.
    rates: BTreeMap<String, Rate>,
    seen: Duration,
    /// How often it has failed in a row, and until when it is given nothing because of that.
    failing: u32,
    resting: Duration,
    quarantined: Option<String>,
    /// Whether it knows that there is nothing left to do.
    knows_the_end: bool,
    /// How many of its deliveries were accepted, and those of them that are not durable yet.
    deliveries: u64,
    undurable: BTreeSet<u64>,
}

/// Evaluations and computing time, of which the newest count most.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    evaluations: f64,
    milliseconds: f64,
}

/// What remains of older work when some is added.
const DECAY: f64 = 0.8;
/// The most runs of which a worker's rate is remembered.
const MOST_RATES: usize = 8;

impl Rate {
    fn per_second(self) -> f64 {
        self.evaluations * 1000.0 / self.milliseconds.max(1.0)
    }
}

impl Workers {
    pub(crate) fn join(
        &mut self,
        worker: &str,
        principal: &str,
        (name, version): (&str, &str),
        threads: u32,
        now: Duration,
    ) -> Result<(), WorkerRejection> {
        if let Some(bad) = [worker, name].iter().map(|text| text.len()).find(|l| !(1..=100).contains(l)) {
            return Err(WorkerRejection::Name(bad));
        }
        if worker.contains('@') {
            return Err(WorkerRejection::Id(shown(worker)));
        }
        let principal = &self.first_known_as(principal).to_owned();
        if let Some(reason) = self.banned.get(principal) {
            return Err(WorkerRejection::Quarantined { worker: worker.to_owned(), reason: reason.clone() });
        }
        let worker = &self.key(worker, principal);
        if let Some(known) = self.joined.get_mut(worker) {
            known.seen = now;
            return known.check(worker);
        }
        if self.watched.get(principal).is_some_and(|watched| watched.closed > now) {
            return Err(WorkerRejection::Later(shown(worker)));
        }
        if self.is_full() {
            return Err(WorkerRejection::TooMany);
        }
        let Failing { times: failing, resting, .. } =
            self.failing.get(principal).copied().unwrap_or_default();
        let joined = Joined {
            name: shown(name),
            version: shown(version),
            principal: principal.to_owned(),
            session: None,
            threads,
            since: now,
            draining: false,
            last_error: None,
            rates: BTreeMap::new(),
            seen: now,
            failing,
            resting,
            quarantined: None,
            knows_the_end: false,
            deliveries: 0,
            undurable: BTreeSet::new(),
        };
        self.joined.insert(worker.to_owned(), joined);
        Ok(())
    }

    /// What a worker is known by that calls itself so: an id is self-chosen, and no caller can speak for a worker of another
    /// principal by it.
    pub(crate) fn key(&self, worker: &str, principal: &str) -> String {
        let principal = self.first_known_as(principal);
        let own = format!("{worker}@{:.16}", Digest::of(principal.as_bytes()).to_string());
        let is_own = |joined: &Joined| joined.principal == principal;
        let has_own = self.joined.get(&own).is_some_and(is_own);
        if has_own || self.joined.get(worker).is_some_and(|joined| !is_own(joined)) {
            return own;
        }
        worker.to_owned()
    }

    /// What a principal was known by before its secrets were replaced.
    fn first_known_as<'a>(&'a self, principal: &'a str) -> &'a str {
        self.successors.get(principal).map_or(principal, String::as_str)
    }

    /// The session of a worker that has joined; a new one is made of these secret bytes.
    pub(crate) fn session(&mut self, worker: &str, secret: &[u8]) -> Option<Digest> {
        let joined = self.joined.get_mut(worker)?;
        if joined.session.is_none() {
            self.sessions += 1;
            let parts = [secret, worker.as_bytes(), &self.sessions.to_le_bytes()];
            joined.session = Some(Digest::of_parts("atoll session", parts));
        }
        joined.session
    }

    /// Notes that a principal continues a session of another one: the same machine shows another token or certificate by now.
    /// Both are one from here on, so that no machine has two voices while its secrets are replaced. A principal that has
    /// workers or a past of its own stays another one, as does one of another address.
    pub(crate) fn continue_session(&mut self, worker: &str, principal: &str, session: &[u8]) {
        if session.is_empty() || self.successors.len() >= MOST || self.successors.contains_key(principal) {
            return;
        }
        let shown = Digest::of(session);
        let is_shown = |joined: &&Joined| joined.session.is_some_and(|own| Digest::of(&own.0) == shown);
        let others = self.joined.range(format!("{worker}@")..format!("{worker}A"));
        let mut sessions = self.joined.get(worker).into_iter().chain(others.map(|(_, joined)| joined));
        let Some(first) = sessions.find(is_shown).map(|joined| joined.principal.clone()) else { return };
        let address = |principal: &str| principal.rsplit_once(' ').map(|(address, _)| address.to_owned());
        let is_same_machine = address(&first).is_some_and(|known| address(principal) == Some(known));
        if first != principal && is_same_machine && !self.has_past(principal) {
            self.successors.insert(principal.to_owned(), first);
        }
    }

    fn has_past(&self, principal: &str) -> bool {
        self.banned.contains_key(principal)
            || self.watched.contains_key(principal)
            || self.failing.contains_key(principal)
            || self.joined.values().any(|joined| joined.principal == principal)
    }

    /// Whether there is no room for another.
    pub(crate) fn is_full(&self) -> bool {
        self.joined.len() >= MOST
    }

    /// Forgets a worker that has delivered nothing of the principal that has the most workers, if that has more than the one
    /// that asks: ids are self-chosen, and one caller could have all places. Returns which.
    pub(crate) fn make_room(&mut self, principal: &str) -> Option<String> {
        if !self.is_full() {
            return None;
        }
        let principal = self.first_known_as(principal).to_owned();
        let own = self.joined.values().filter(|joined| joined.principal == principal).count();
        if 2 * own >= MOST {
            return None;
        }
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for joined in self.joined.values() {
            *counts.entry(&joined.principal).or_default() += 1;
        }
        let (&largest, &count) = counts.iter().max_by_key(|(_, count)| **count)?;
        let is_idle = |joined: &Joined| joined.principal == largest && joined.deliveries == 0;
        let mut idle =
            self.joined.iter().filter(|(_, joined)| is_idle(joined) && joined.quarantined.is_none());
        let gives_way = idle.next().map(|(worker, _)| worker.clone()).filter(|_| count > own + 1)?;
        self.joined.remove(&gives_way);
        Some(gives_way)
    }

    /// Notes that a worker is there, if it may take part.
    pub(crate) fn see(&mut self, worker: &str, now: Duration) -> Result<(), WorkerRejection> {
        let joined =
            self.joined.get_mut(worker).ok_or_else(|| WorkerRejection::Unknown(worker.to_owned()))?;
        joined.seen = now;
        joined.check(worker)
    }

    /// Whether a worker may take part.
    pub(crate) fn admits(&self, worker: &str) -> Result<(), WorkerRejection> {
        self.joined.get(worker).ok_or_else(|| WorkerRejection::Unknown(worker.to_owned()))?.check(worker)
    }

    /// A worker and its principal.
    pub(crate) fn identity<'a>(&'a self, worker: &'a str) -> WorkerIdentity<'a> {
        let joined = self.joined.get(worker);
        let principal = joined.map_or(worker, |joined| joined.principal.as_str());
        WorkerIdentity { worker, principal, joined: joined.map_or(Duration::ZERO, |joined| joined.since) }
    }

    /// The principal of a worker that has joined; callers that have not are one together, because their ids are made up.
    pub(crate) fn principal(&self, worker: &str) -> &str {
        self.joined.get(worker).map_or("callers that have not joined", |joined| joined.principal.as_str())
    }

    /// The workers that may take part and have been heard of since then.
    pub(crate) fn connected(&self, since: Duration) -> impl Iterator<Item = WorkerIdentity<'_>> {
        let is_there = move |joined: &Joined| joined.seen >= since && joined.quarantined.is_none();
        let connected = self.joined.iter().filter(move |(_, joined)| is_there(joined));
        connected.map(|(worker, joined)| {
            let Joined { principal, since, .. } = joined;
            WorkerIdentity { worker, principal, joined: *since }
        })
    }

    /// Gives a worker no more work, or gives it work again; returns whether it is known. It may be named by its id, or by
    /// its name.
    pub(crate) fn drain(&mut self, worker: &str, drain: bool) -> bool {
        let is_meant = |id: &String, joined: &Joined| id == worker || joined.name == worker;
        let meant = self.joined.iter_mut().filter(|(id, joined)| is_meant(id, joined));
        meant.map(|(_, joined)| joined.draining = drain).count() > 0
    }

    /// Whether a worker is to return what it holds.
    pub(crate) fn is_draining(&self, worker: &str) -> bool {
        self.joined.get(worker).is_some_and(|joined| joined.draining)
    }

    /// Notes what a worker has computed of a run, and in which time.
    pub(crate) fn note_work(&mut self, worker: &str, run: &str, evaluations: u64, milliseconds: u64) {
        let Some(joined) = self.joined.get_mut(worker) else { return };
        let rate = joined.rates.entry(run.to_owned()).or_default();
        rate.evaluations = rate.evaluations * DECAY + evaluations as f64;
        rate.milliseconds = rate.milliseconds * DECAY + milliseconds as f64;
        if joined.rates.len() > MOST_RATES {
            let other = joined.rates.keys().find(|known| *known != run).cloned();
            other.map(|other| joined.rates.remove(&other));
        }
    }

    /// Forgets how fast workers were in a run.
    pub(crate) fn forget_run(&mut self, run: &str) {
        for joined in self.joined.values_mut() {
            joined.rates.remove(run);
        }
    }

    /// Notes what failed on a worker.
    pub(crate) fn note_error(&mut self, worker: &str, reason: &str) {
        if let Some(joined) = self.joined.get_mut(worker) {
            joined.last_error = Some(reason.to_owned());
        }
    }

    /// All workers as others see them, by id. One that was not heard of since then is silent.
    pub(crate) fn views(&self, since: Duration, now: Duration) -> Vec<WorkerView> {
        let fleet = self.fleet(since);
        self.joined
            .iter()
            .map(|(worker, joined)| WorkerView {
                worker: worker.clone(),
                name: joined.name.clone(),
                version: joined.version.clone(),
                threads: joined.threads,
                state: joined.state(since, now),
                silent_milliseconds: now.saturating_sub(joined.seen).as_millis() as u64,
                deliveries: joined.deliveries,
                rate: joined.rate(),
                pace: joined.pace(&fleet),
                last_error: joined.quarantined.clone().or_else(|| joined.last_error.clone()),
                ..WorkerView::default()
            })
            .collect()
    }

    /// How many there are, by how they do. One that was not heard of since then is silent.
    pub(crate) fn counts(
        &self,
        since: Duration,
        now: Duration,
        is_busy: impl Fn(&str) -> bool,
    ) -> WorkerCounts {
        let mut counts = WorkerCounts::default();
        for (worker, joined) in &self.joined {
            match joined.state(since, now) {
                WorkerState::Silent => counts.silent += 1,
                WorkerState::Quarantined => {
                    counts.quarantined += 1;
                    if counts.quarantine_reason.is_empty() {
                        counts.quarantine_reason = joined.quarantined.clone().unwrap_or_default();
                    }
                }
                state => {
                    counts.connected += 1;
                    counts.busy += usize::from(is_busy(worker));
                    counts.draining += usize::from(state == WorkerState::Draining);
                    counts.resting += usize::from(state == WorkerState::Resting);
                }
            }
        }
        counts
    }

    /// The usual rate in each run that several workers compute which are there and may take part. Rates follow from what
    /// workers report of themselves: those of a liar must not make others look slow.
    fn fleet(&self, since: Duration) -> BTreeMap<&str, f64> {
        let mut rates: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        let counts = |joined: &&Joined| joined.quarantined.is_none() && joined.seen >= since;
        for (run, rate) in self.joined.values().filter(counts).flat_map(|joined| &joined.rates) {
            rates.entry(run).or_default().push(rate.per_second());
        }
        let several = rates.into_iter().filter(|(_, rates)| rates.len() > 1);
        let median = |mut rates: Vec<f64>| {
            rates.sort_by(f64::total_cmp);
            f64::midpoint(rates[(rates.len() - 1) / 2], rates[rates.len() / 2])
        };
        several.map(|(run, rates)| (run, median(rates))).collect()
    }

    /// Notes that something failed on a worker. One that fails whatever it is given rests for a while.
    pub(crate) fn note_failure(&mut self, worker: &str, now: Duration) {
        if let Some(joined) = self.joined.get_mut(worker) {
            joined.failing = joined.failing.saturating_add(1);
            if let Some(times) = joined.failing.checked_sub(TIRED_AFTER) {
                joined.resting = now + back_off(times + 1);
            }
            let (times, resting, principal) = (joined.failing, joined.resting, joined.principal.clone());
            if let Some(failing) = self.failing_of(&principal, now) {
                failing.times = failing.times.max(times);
                failing.resting = failing.resting.max(resting);
            }
        }
    }

    /// What has failed of a principal. Of ten thousand others, those that are over are forgotten.
    fn failing_of(&mut self, principal: &str, now: Duration) -> Option<&mut Failing> {
        if self.failing.len() >= MOST && !self.failing.contains_key(principal) {
            self.failing.retain(|_, failing| failing.resting.max(failing.ignored) > now);
        }
        let has_room = self.failing.len() < MOST || self.failing.contains_key(principal);
        has_room.then(|| self.failing.entry(principal.to_owned()).or_default())
    }

    /// Whether losses of a principal are not written down for now, because it has lost much and delivered nothing.
    pub(crate) fn is_ignored(&self, principal: &str, now: Duration) -> bool {
        self.failing.get(principal).is_some_and(|failing| failing.ignored > now)
    }

    /// Notes that losses of a principal are written down.
    pub(crate) fn note_losses(&mut self, principal: &str, now: Duration) {
        if let Some(failing) = self.failing_of(principal, now) {
            failing.heard = failing.heard.saturating_add(1);
            if let Some(times) = failing.heard.checked_sub(HEARD) {
                failing.ignored = now + back_off(times + 1);
            }
        }
    }

    /// Notes that a worker has delivered something that was accepted.
    pub(crate) fn note_success(&mut self, worker: &str) {
        if let Some(joined) = self.joined.get_mut(worker) {
            (joined.failing, joined.resting) = (0, Duration::ZERO);
            self.failing.remove(&joined.principal);
        }
    }

    /// Whether a worker is given nothing for now, because it has failed too often.
    pub(crate) fn is_resting(&self, worker: &str, now: Duration) -> bool {
        self.joined.get(worker).is_some_and(|joined| joined.resting > now)
    }

    pub(crate) fn leave(&mut self, worker: &str) {
        // One that is quarantined stays known, or it would only have to leave and come back.
        self.joined.retain(|id, joined| id != worker || joined.quarantined.is_some());
    }

    /// Forgets workers that have been silent since then; returns their ids and names.
    pub(crate) fn forget_silent(&mut self, since: Duration) -> Vec<(String, String)> {
        let silent = self.joined.extract_if(.., |_, joined| joined.seen < since);
        silent.map(|(worker, joined)| (worker, joined.name)).collect()
    }

    pub(crate) fn name(&self, worker: &str) -> String {
        self.joined.get(worker).map_or_else(|| worker.to_owned(), |joined| joined.name.clone())
    }

    pub(crate) fn tell_the_end(&mut self, worker: &str) {
        if let Some(joined) = self.joined.get_mut(worker) {
            joined.knows_the_end = true;
            self.one_was_told = true;
        }
    }

    /// Whether all that have been heard of since then know that there is nothing left to do.
    pub(crate) fn all_know_the_end(&self, since: Duration) -> bool {
        let knows =
            |joined: &Joined| joined.knows_the_end || joined.seen < since || joined.quarantined.is_some();
        self.joined.values().all(knows)
    }

    pub(crate) fn count(&self) -> usize {
        self.joined.values().filter(|joined| joined.quarantined.is_none()).count()
    }

    pub(crate) fn threads(&self) -> u64 {
        self.joined.values().map(|joined| u64::from(joined.threads)).sum()
    }

    /// How many threads a worker usually has: the middle number of each principal, and of those the middle one. A worker says
    /// itself how many it has, and one that makes the number up does not decide how many workers are wanted.
    pub(crate) fn usual_threads(&self) -> u32 {
        let mut of_principals: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for joined in self.joined.values().filter(|joined| joined.quarantined.is_none()) {
            of_principals.entry(&joined.principal).or_default().push(joined.threads);
        }
        let middle = |mut numbers: Vec<u32>| {
            numbers.sort_unstable();
            numbers.get(numbers.len().saturating_sub(1) / 2).copied().unwrap_or_default()
        };
        middle(of_principals.into_values().map(middle).collect())
    }

    /// Numbers an accepted delivery of a worker, which is not durable yet.
    pub(crate) fn receive(&mut self, worker: &str) -> u64 {
        let Some(joined) = self.joined.get_mut(worker) else { return 0 };
        joined.deliveries += 1;
        joined.undurable.insert(joined.deliveries);
        joined.deliveries
    }

    /// Notes that a delivery is durable, or not needed any more.
    pub(crate) fn settle(&mut self, worker: &str, delivery: u64) {
        if let Some(joined) = self.joined.get_mut(worker) {
            joined.undurable.remove(&delivery);
        }
    }

    /// The last delivery of a worker up to which everything is durable.
    pub(crate) fn durable(&self, worker: &str) -> u64 {
        let Some(joined) = self.joined.get(worker) else { return 0 };
        joined.undurable.first().map_or(joined.deliveries, |first| first - 1)
    }
}

/// Words of others as they stand in logs and on pages: not long, on one line, and writing no other.
pub(crate) fn shown(text: &str) -> String {
    plain(&text.chars().take(100).collect::<String>())
}

impl Joined {
    fn state(&self, since: Duration, now: Duration) -> WorkerState {
        match self {
            Self { quarantined: Some(_), .. } => WorkerState::Quarantined,
            joined if joined.seen < since => WorkerState::Silent,
            Self { draining: true, .. } => WorkerState::Draining,
            joined if joined.resting > now => WorkerState::Resting,
            _ => WorkerState::Idle,
        }
    }

    fn rate(&self) -> Option<f64> {
        let all = self.rates.values().fold(Rate::default(), |sum, rate| Rate {
            evaluations: sum.evaluations + rate.evaluations,
            milliseconds: sum.milliseconds + rate.milliseconds,
        });
        (all.milliseconds > 0.0).then(|| all.per_second())
    }

    /// How fast it is against the fleet, in the runs that others compute too.
    fn pace(&self, fleet: &BTreeMap<&str, f64>) -> Option<f64> {
        let (mut pace, mut weight) = (0.0, 0.0);
        for (run, rate) in &self.rates {
            if let Some(usual) = fleet.get(run.as_str()).filter(|usual| **usual > 0.0) {
                pace += rate.per_second() / usual * rate.milliseconds;
                weight += rate.milliseconds;
            }
        }
        (weight > 0.0).then(|| pace / weight)
    }

    fn check(&self, worker: &str) -> Result<(), WorkerRejection> {
        let quarantined = |reason: &String| WorkerRejection::Quarantined {
            worker: worker.to_owned(),
            reason: reason.clone(),
        };
        self.quarantined.as_ref().map_or(Ok(()), |reason| Err(quarantined(reason)))
    }
}

#[cfg(test)]
mod tests;
