//! Traces of epochs, each from its first grant until it is durable, for an exporter that takes them from time to time.
//!
//! Only compiled with the feature `otlp`, and idle until an exporter turns it on. What no exporter takes in time is counted and
//! dropped: the state never waits for it.

use super::leases::Token;
use super::{Moment, Receipt};
use evolution::digest::Digest;
use proto::convert::{Piece, Work};
use std::collections::BTreeMap;
use std::time::Duration;

/// The most traces at a time, finished or not: a few hundred bytes each.
const MOST: usize = 1 << 16;

/// Traces that have begun, and those that wait for the exporter.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    /// The share of epochs that is traced: those whose trace begins with a number below this. None without an exporter.
    limit: Option<u64>,
    open: BTreeMap<(String, u32, u64), Trace>,
    /// Those that were accepted and are not durable, by the worker and the number of its delivery.
    accepted: BTreeMap<(String, u64), Trace>,
    finished: Vec<Trace>,
    exported: u64,
    dropped: u64,
}

/// One epoch, from its first grant until it is durable.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    /// 16 bytes that name it; the 8 after them name its first span.
    pub(crate) id: Digest,
    pub(crate) run: String,
    pub(crate) island: u32,
    pub(crate) epoch: u64,
    /// Its first grant.
    pub(crate) begun: Moment,
    pub(crate) leases: Vec<LeaseSpan>,
    pub(crate) accepted: Duration,
    pub(crate) durable: Duration,
}

/// The time for which a worker had it.
#[derive(Clone, Debug)]
pub(crate) struct LeaseSpan {
    worker: String,
    /// The worker's name.
    pub(crate) name: String,
    pub(crate) token: Token,
    pub(crate) granted: Duration,
    pub(crate) ended: Duration,
    /// How it ended; nothing while it has not.
    pub(crate) outcome: &'static str,
}

impl Spans {
    /// Traces this share of all epochs from now on.
    pub(crate) fn turn_on(&mut self, share: f64) {
        self.limit = Some((share.clamp(0.0, 1.0) * u64::MAX as f64) as u64);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.limit.is_some()
    }

    /// The same epoch has the same trace whichever coordinator hands it out.
    fn id(&self, work: &Work, created: u64) -> Option<Digest> {
        let Piece::Epoch { island, epoch } = work.piece else { return None };
        let parts: [&[u8]; 4] =
            [work.run.as_bytes(), &created.to_le_bytes(), &island.to_le_bytes(), &epoch.to_le_bytes()];
        let id = Digest::of_parts("atoll trace", parts);
        let first = u64::from_le_bytes(id.0[..8].try_into().expect("a digest has 32 bytes"));
        (first <= self.limit?).then_some(id)
    }

    /// Notes that a worker was given an epoch of a run that was created then.
    pub(crate) fn granted(
        &mut self,
        (work, created): (&Work, u64),
        (worker, name): (&str, String),
        token: Token,
        now: Moment,
    ) {
        let Some(id) = self.id(work, created) else { return };
        let Piece::Epoch { island, epoch } = work.piece else { return };
        let key = (work.run.clone(), island, epoch);
        if !self.open.contains_key(&key) && self.is_full() {
            self.dropped += 1;
            return;
        }
        let begin = || Trace::new(id, work, (island, epoch), now);
        let leases = &mut self.open.entry(key).or_insert_with(begin).leases;
        if leases.last().is_none_or(|last| last.token != token) {
            let (worker, granted) = (worker.to_owned(), now.elapsed);
            leases.push(LeaseSpan { worker, name, token, granted, ended: Duration::ZERO, outcome: "" });
        }
    }

    fn is_full(&self) -> bool {
        self.open.len() + self.accepted.len() + self.finished.len() >= MOST
    }

    /// Notes how a lease ended without a result.
    pub(crate) fn ended(&mut self, work: &Work, worker: &str, outcome: &'static str, now: Moment) {
        let Piece::Epoch { island, epoch } = work.piece else { return };
        if self.open.is_empty() {
            return;
        }
        let trace = self.open.get_mut(&(work.run.clone(), island, epoch));
        let leases = trace.into_iter().flat_map(|trace| &mut trace.leases);
        for lease in leases.filter(|lease| lease.worker == worker && lease.outcome.is_empty()) {
            (lease.ended, lease.outcome) = (now.elapsed, outcome);
        }
    }

    /// Notes that an epoch was accepted, for which a worker has this receipt and says that it needed so long.
    pub(crate) fn accepted(
        &mut self,
        (work, created): (&Work, u64),
        receipt: &Receipt,
        milliseconds: u64,
        now: Moment,
    ) {
        let Piece::Epoch { island, epoch } = work.piece else { return };
        let known = self.open.remove(&(work.run.clone(), island, epoch));
        let trace = known.or_else(|| {
            // Another coordinator has handed it out.
            let id = self.id(work, created).filter(|_| !self.is_full())?;
            let needed = Duration::from_millis(milliseconds).min(now.elapsed);
            let unix = now.unix.saturating_sub(needed.as_millis() as u64);
            Some(Trace::new(
                id,
                work,
                (island, epoch),
                Moment { elapsed: now.elapsed.saturating_sub(needed), unix },
            ))
        });
        let Some(mut trace) = trace else { return };
        for lease in trace.leases.iter_mut().filter(|lease| lease.outcome.is_empty()) {
            lease.outcome = if lease.worker == receipt.worker { "delivered" } else { "superseded" };
            lease.ended = now.elapsed;
        }
        trace.accepted = now.elapsed;
        self.accepted.insert((receipt.worker.clone(), receipt.number), trace);
    }

    /// Notes that a delivery is durable.
    pub(crate) fn durable(&mut self, receipt: &Receipt, now: Moment) {
        if self.accepted.is_empty() {
            return;
        }
        if let Some(mut trace) = self.accepted.remove(&(receipt.worker.clone(), receipt.number)) {
            trace.durable = now.elapsed;
            self.finished.push(trace);
        }
    }

    /// Forgets a run that has ended, and the deliveries of it that are not written any more.
    pub(crate) fn forget_run<'a>(&mut self, run: &str, receipts: impl IntoIterator<Item = &'a Receipt>) {
        if !self.is_on() {
            return;
        }
        self.open.retain(|(of, ..), _| of != run);
        for Receipt { worker, number } in receipts {
            self.accepted.remove(&(worker.clone(), *number));
        }
    }

    /// What is finished since this was last asked.
    pub(crate) fn take(&mut self) -> Vec<Trace> {
        std::mem::take(&mut self.finished)
    }

    /// Notes what became of this number of traces.
    pub(crate) fn note(&mut self, traces: usize, is_exported: bool) {
        let count = if is_exported { &mut self.exported } else { &mut self.dropped };
        *count += traces as u64;
    }

    /// How many traces were exported and how many were not, if there is an exporter.
    pub(crate) fn counts(&self) -> Option<(u64, u64)> {
        self.limit.map(|_| (self.exported, self.dropped))
    }
}

impl Trace {
    fn new(id: Digest, work: &Work, (island, epoch): (u32, u64), begun: Moment) -> Self {
        let (accepted, durable) = (Duration::ZERO, Duration::ZERO);
        Self { id, run: work.run.clone(), island, epoch, begun, leases: vec![], accepted, durable }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment { elapsed: Duration::from_secs(seconds), unix: seconds * 1000 }
    }

    fn work(epoch: u64) -> Work {
        Work { run: "run".to_owned(), piece: Piece::Epoch { island: 0, epoch } }
    }

    fn receipt(number: u64) -> Receipt {
        Receipt { worker: "a".to_owned(), number }
    }

    #[test]
    fn an_epoch_is_one_trace_from_its_first_grant_until_it_is_durable() {
        let mut spans = Spans::default();
        spans.granted((&work(0), 1), ("a", "a".to_owned()), 1, at(0));
        spans.accepted((&work(0), 1), &receipt(1), 10, at(1));
        spans.durable(&receipt(1), at(2));
        assert!(spans.take().is_empty() && spans.counts().is_none(), "nobody asked for them");

        spans.turn_on(1.0);
        for (worker, token, second) in [("lost", 1, 10), ("a", 2, 20), ("b", 3, 30)] {
            spans.granted((&work(0), 1), (worker, worker.to_owned()), token, at(second));
            // A call that is repeated.
            spans.granted((&work(0), 1), (worker, worker.to_owned()), token, at(second + 1));
        }
        spans.ended(&work(0), "lost", "expired", at(25));
        spans.accepted((&work(0), 1), &receipt(1), 10, at(40));
        assert!(spans.take().is_empty(), "it is not durable");
        spans.durable(&receipt(1), at(50));
        let [trace] = &spans.take()[..] else { panic!("expected one") };
        assert_eq!(
            (trace.begun.unix, trace.accepted, trace.durable),
            (10_000, at(40).elapsed, at(50).elapsed)
        );
        let leases: Vec<_> =
            trace.leases.iter().map(|lease| (&*lease.name, lease.outcome, lease.ended.as_secs())).collect();
        assert_eq!(leases, [("lost", "expired", 25), ("a", "delivered", 40), ("b", "superseded", 40)]);

        // The next coordinator takes it for the same trace.
        let mut next = Spans::default();
        next.turn_on(1.0);
        next.accepted((&work(0), 1), &receipt(7), 2000, at(60));
        next.durable(&receipt(7), at(61));
        let adopted = next.take().remove(0);
        assert_eq!((adopted.id, adopted.begun.unix, adopted.leases.len()), (trace.id, 58_000, 0));
    }

    #[test]
    fn what_ends_early_or_is_too_much_is_not_kept() {
        let mut spans = Spans::default();
        spans.turn_on(1.0);
        let granted = |spans: &mut Spans, epoch| {
            spans.granted((&work(epoch), 1), ("a", "a".to_owned()), epoch, at(0));
        };
        granted(&mut spans, 0);
        granted(&mut spans, 1);
        spans.accepted((&work(0), 1), &receipt(1), 0, at(1));
        spans.forget_run("run", [&receipt(1)]);
        spans.durable(&receipt(1), at(2));
        assert!(spans.take().is_empty() && spans.open.is_empty() && spans.accepted.is_empty());
        for epoch in 0..MOST as u64 + 5 {
            granted(&mut spans, epoch);
        }
        assert_eq!((spans.open.len(), spans.counts()), (MOST, Some((0, 5))));
        spans.note(3, true);
        spans.note(2, false);
        assert_eq!(spans.counts(), Some((3, 7)));

        let mut half = Spans::default();
        half.turn_on(0.5);
        (0..1000).for_each(|epoch| granted(&mut half, epoch));
        assert!((400..600).contains(&half.open.len()), "{}", half.open.len());
    }
}
