//! The cells of one plan, of a sweep or a tournament: what is handed out, and what comes back.

use super::Author;
use super::audit::MOST_DISPUTES;
use super::deliveries::DeliveryStatus;
use archipelago::CellProgress;
use archipelago::cell::{CellPlan, CellResult};
use bytes::Bytes;
use evolution::codec;
use evolution::digest::Digest;
use evolution::epoch::Standing;
use proto::convert::Piece;
use run::players::PlayerFiles;
use run::summary::{Outline, RunKind};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// About how long the cells of one lease should take.
const BATCH: Duration = Duration::from_secs(1);
/// The most cells of one lease.
pub(crate) const LARGEST_BATCH: u32 = 64;

/// While so many results are not stored yet, no more cells are handed out: they are kept in memory.
const MOST_UNSTORED: usize = 4096;

/// The most results of one cell that are remembered while the coordinator computes it.
const MOST_ANSWERS: usize = 64;

/// A result that was delivered, and by which principal; none if it need not be audited.
#[derive(Clone, Debug)]
struct PendingResult {
    author: Option<Arc<Author>>,
    digest: Digest,
}

/// A cell that is computed again.
struct CellAudit {
    since: Duration,
    /// What others have delivered.
    answers: Vec<(Arc<Author>, Digest)>,
    /// Whether it came out otherwise before: then the coordinator decides, whoever delivers what.
    disputed: bool,
    /// Whether the coordinator computes it itself.
    deciding: bool,
    /// What the coordinator has computed, where no worker has the same: it computes that once more.
    doubted: Option<Digest>,
}

/// What an audit of a cell came to.
pub(crate) enum CellAuditOutcome {
    /// What is stored is right. These delivered something else.
    Right { wrong: Vec<Arc<Author>> },
    /// What is stored is wrong, by this worker if it is known; these delivered something else that is wrong.
    Wrong { author: Option<Arc<Author>>, wrong: Vec<Arc<Author>> },
    /// No worker has the same result as the coordinator, which computes it once more.
    Again,
    /// The coordinator does not agree with itself.
    Undecided,
}

/// What becomes of results that were delivered.
pub(crate) struct Received {
    /// What is to be stored.
    pub(crate) wanted: Vec<(u32, CellResult)>,
    pub(crate) status: DeliveryStatus,
    /// Cells that were computed again, and are right.
    pub(crate) audited: Vec<u32>,
    /// Cells that came out otherwise before.
    pub(crate) disputed: Vec<u32>,
}

/// A plan whose cells are handed out.
pub(crate) struct Cells {
    /// The digest of the plan's text.
    text: Digest,
    progress: CellProgress,
    files: PlayerFiles,
    /// Cells before this one are done or handed out.
    next: u32,
    /// Cells whose results are being stored.
    storing: BTreeMap<u32, PendingResult>,
    /// Results that may or may not be stored.
    unsure: BTreeMap<u32, PendingResult>,
    /// Who delivered what is stored and was not audited.
    authors: BTreeMap<u32, Arc<Author>>,
    /// The last cell of each worker.
    last: BTreeMap<Arc<Author>, u32>,
    audits: BTreeMap<u32, CellAudit>,
    /// Whether the audits before the end have begun.
    is_final: bool,
    /// Cells whose results are being taken back.
    retracting: BTreeSet<u32>,
    /// Cells whose results are to be taken back if the run does not end, and why.
    wrong: BTreeMap<String, Vec<u32>>,
    worked: Duration,
    /// Where it stood when it was opened: the time before is not recorded.
    before: Standing,
}

/// The digest of everything that a result says.
pub(crate) fn whole(result: &CellResult) -> Digest {
    Digest::of(&codec::encode(result).expect("a result is far below any limit"))
}

impl Cells {
    pub(crate) fn new(progress: CellProgress, files: PlayerFiles) -> Self {
        let text = Digest::of(progress.plan().text().as_bytes());
        let before = progress.standing();
        let next = progress.next(0).unwrap_or(progress.plan().len());
        Self {
            text,
            progress,
            files,
            next,
            storing: BTreeMap::new(),
            unsure: BTreeMap::new(),
            authors: BTreeMap::new(),
            last: BTreeMap::new(),
            audits: BTreeMap::new(),
            is_final: false,
            retracting: BTreeSet::new(),
            wrong: BTreeMap::new(),
            worked: Duration::ZERO,
            before,
        }
    }

    pub(crate) fn text(&self) -> &str {
        self.progress.plan().text()
    }

    pub(crate) fn plan(&self) -> Arc<CellPlan> {
        self.progress.shared_plan()
    }

    /// The digest of the text.
    pub(crate) fn text_digest(&self) -> &Digest {
        &self.text
    }

    pub(crate) fn len(&self) -> u32 {
        self.progress.plan().len()
    }

    /// The player files that its games need.
    pub(crate) fn files(&self) -> &PlayerFiles {
        &self.files
    }

    /// What it takes to choose a cell for an audit.
    pub(crate) fn inputs(&self, number: u32) -> Digest {
        Digest::of_parts("atoll cell inputs", [&self.text.0[..], &number.to_le_bytes()])
    }

    /// A player file by its digest.
    pub(crate) fn file(&self, digest: &Digest) -> Option<Bytes> {
        self.files.get(digest).cloned()
    }

    pub(crate) fn kind(&self) -> RunKind {
        run::jobs::kind(self.progress.plan())
    }

    /// How far it is. It takes as long as there are results.
    pub(crate) fn outline(&self) -> Outline {
        run::jobs::outline(&self.progress, self.elapsed())
    }

    fn is_open(&self, number: u32) -> bool {
        self.progress.wants(number) && !self.storing.contains_key(&number)
    }

    /// Whether the store keeps up with the results.
    fn is_kept_up_with(&self) -> bool {
        self.storing.len() < MOST_UNSTORED
    }

    /// Whether some cells were never handed out, and can be.
    pub(crate) fn has_work(&self) -> bool {
        self.is_kept_up_with() && self.progress.next(self.next).is_some()
    }

    /// About how many pieces were never handed out.
    pub(crate) fn count_ready(&self) -> usize {
        let left = self.len().saturating_sub(self.next);
        if self.has_work() { left.div_ceil(self.batch(self.next)) as usize } else { 0 }
    }

    /// The next cells to be computed.
    pub(crate) fn next(&mut self) -> Option<Piece> {
        if !self.is_kept_up_with() {
            return None;
        }
        let first = (self.next..self.len()).find(|&number| self.is_open(number))?;
        let most = self.batch(first);
        let wanted = (first..self.len()).take_while(|&number| self.is_open(number));
        let count = wanted.take(most as usize).count() as u32;
        self.next = first + count;
        Some(Piece::Cells { first, count })
    }

    fn batch(&self, first: u32) -> u32 {
        let estimate = self.progress.plan().time(first).unwrap_or(BATCH);
        let cells = BATCH.as_nanos() / estimate.as_nanos().max(1);
        cells.clamp(1, u128::from(LARGEST_BATCH)) as u32
    }

    /// Whether some of these cells are still wanted, or are computed again.
    pub(crate) fn wants(&self, first: u32, count: u32) -> bool {
        let end = first.saturating_add(count);
        if count == 1 && self.audits.get(&first).is_some_and(|audit| !audit.deciding) {
            return true;
        }
        end <= self.len() && count <= LARGEST_BATCH && (first..end).any(|cell| self.is_open(cell))
    }

    /// Takes results that were delivered, by a worker or by one that need not be audited.
    pub(crate) fn receive(
        &mut self,
        results: Vec<(u32, CellResult)>,
        author: Option<&Arc<Author>>,
        now: Duration,
    ) -> Received {
        let mut received =
            Received { wanted: vec![], status: DeliveryStatus::Unneeded, audited: vec![], disputed: vec![] };
        for (number, result) in results {
            let digest = whole(&result);
            if self.is_open(number) {
                self.storing.insert(number, PendingResult { author: author.cloned(), digest });
                received.wanted.push((number, result));
                received.status = DeliveryStatus::Accepted;
                continue;
            }
            if received.status != DeliveryStatus::Accepted {
                received.status = DeliveryStatus::Repeated;
            }
            if self.retracting.contains(&number) || !self.progress.plan().is_pure(number) {
                continue;
            }
            let stored = self.progress.done().get(&number).map(whole);
            let known = stored.or_else(|| self.storing.get(&number).map(|pending| pending.digest));
            match known {
                Some(known) if known == digest => {
                    received.audited.extend(self.confirm(number, author).then_some(number));
                }
                Some(_) if self.may_dispute(author) => {
                    self.dispute(number, author, digest, now);
                    received.disputed.push(number);
                }
                Some(_) | None => {}
            }
        }
        received
    }

    /// Takes the same result of a cell again; returns whether that is the answer to an audit.
    fn confirm(&mut self, number: u32, author: Option<&Arc<Author>>) -> bool {
        let is_own = author.is_some_and(|author| self.is_by(number, &author.principal));
        let is_open = |audit: &CellAudit| !audit.deciding && !audit.disputed;
        let is_answer = self.audits.get(&number).is_some_and(is_open) && !is_own;
        if is_answer {
            self.note_audited(number);
        }
        is_answer
    }

    /// Who delivered a result that is stored, or is being stored, and was not audited.
    fn author_of(&self, number: u32) -> Option<&Arc<Author>> {
        let storing = || self.storing.get(&number).and_then(|pending| pending.author.as_ref());
        self.authors.get(&number).or_else(storing)
    }

    fn is_by(&self, number: u32, principal: &str) -> bool {
        self.author_of(number).is_some_and(|author| author.principal == principal)
    }

    /// Notes that a cell is right.
    pub(crate) fn note_audited(&mut self, number: u32) {
        self.audits.remove(&number);
        self.authors.remove(&number);
    }

    /// Whether the coordinator computes one more cell because of a principal: it is known soon whether to trust that.
    fn may_dispute(&self, author: Option<&Arc<Author>>) -> bool {
        let Some(author) = author else { return true };
        let is_its =
            |audit: &&CellAudit| audit.answers.iter().any(|(known, _)| known.principal == author.principal);
        self.audits.values().filter(is_its).count() < MOST_DISPUTES
    }

    /// Notes that a cell came out otherwise.
    pub(crate) fn dispute(
        &mut self,
        number: u32,
        author: Option<&Arc<Author>>,
        digest: Digest,
        now: Duration,
    ) {
        self.begin_audit(number, now);
        let Some(audit) = self.audits.get_mut(&number) else { return };
        audit.disputed = true;
        if audit.answers.len() < MOST_ANSWERS {
            audit.answers.extend(author.map(|author| (author.clone(), digest)));
        }
    }

    /// Has a cell computed again.
    pub(crate) fn begin_audit(&mut self, number: u32, now: Duration) {
        let audit =
            CellAudit { since: now, answers: vec![], disputed: false, deciding: false, doubted: None };
        self.audits.entry(number).or_insert(audit);
    }

    /// Has the last cell of each worker computed again that was not. Returns which; nothing if that was done.
    pub(crate) fn begin_final(&mut self, now: Duration) -> Vec<u32> {
        if self.is_final || !self.is_written() || !self.progress.is_complete() {
            return vec![];
        }
        self.is_final = true;
        let last: BTreeSet<u32> = self.last.values().copied().collect();
        let is_due = |number: &u32| self.authors.contains_key(number) && !self.audits.contains_key(number);
        let last: Vec<u32> = last.into_iter().filter(is_due).collect();
        for &number in &last {
            self.begin_audit(number, now);
        }
        last
    }

    /// Whether nothing of it is being computed again.
    pub(crate) fn is_all_audited(&self) -> bool {
        self.audits.is_empty()
    }

    /// Whether a cell is computed again.
    pub(crate) fn is_being_audited(&self, number: u32) -> bool {
        self.audits.contains_key(&number)
    }

    /// Whether workers of a principal may compute a cell: again only what they have not computed.
    pub(crate) fn may_take(&self, number: u32, principal: &str) -> bool {
        let Some(audit) = self.audits.get(&number) else { return true };
        !audit.deciding && !self.is_by(number, principal)
    }

    /// The audits that wait for a worker, by whom they must not be computed, and since when.
    pub(crate) fn audits_waiting(&self) -> impl Iterator<Item = (Piece, &str, Duration)> {
        let waiting = self.audits.iter().filter(|(_, audit)| !audit.deciding);
        waiting.map(|(&first, audit)| {
            let author = self.author_of(first).map_or("", |author| author.principal.as_str());
            (Piece::Cells { first, count: 1 }, author, audit.since)
        })
    }

    /// Leaves an audit to the coordinator; returns whether it is to compute the cell now. What is being stored is compared
    /// once it is stored.
    pub(crate) fn decide(&mut self, number: u32) -> bool {
        let is_stored = self.progress.done().contains_key(&number);
        let audit = self.audits.get_mut(&number).filter(|_| is_stored);
        audit.is_some_and(|audit| !std::mem::replace(&mut audit.deciding, true))
    }

    /// Ends an audit with what the coordinator has computed. Nothing if there is no such audit any more.
    pub(crate) fn conclude(&mut self, number: u32, computed: &Digest) -> Option<CellAuditOutcome> {
        let mut audit = self.audits.remove(&number)?;
        let stored = self.progress.done().get(&number).map(whole)?;
        let is_wrong = stored != *computed;
        let has_support = audit.answers.iter().any(|(_, digest)| digest == computed);
        if is_wrong && !has_support {
            match audit.doubted {
                None => {
                    (audit.doubted, audit.deciding) = (Some(*computed), false);
                    self.audits.insert(number, audit);
                    return Some(CellAuditOutcome::Again);
                }
                Some(before) if before != *computed => return Some(CellAuditOutcome::Undecided),
                Some(_) => {}
            }
        }
        let wrong = audit.answers.into_iter().filter(|(_, digest)| digest != computed);
        let wrong = wrong.map(|(author, _)| author).collect();
        if is_wrong {
            return Some(CellAuditOutcome::Wrong { author: self.authors.get(&number).cloned(), wrong });
        }
        self.authors.remove(&number);
        Some(CellAuditOutcome::Right { wrong })
    }

    /// Gives an audit up.
    pub(crate) fn abandon(&mut self, number: u32) {
        self.audits.remove(&number);
    }

    /// The cells that a principal delivered and that were not audited.
    pub(crate) fn unaudited_of(&self, principal: &str) -> Vec<u32> {
        let own = self.authors.iter().filter(|(_, author)| author.principal == principal);
        own.map(|(&number, _)| number).collect()
    }

    /// The principals of which cells were not audited.
    pub(crate) fn unaudited_principals(&self) -> BTreeSet<String> {
        self.authors.values().map(|author| author.principal.clone()).collect()
    }

    /// Notes results that are to be taken back if the run does not end now.
    pub(crate) fn note_wrong(&mut self, reason: String, numbers: &[u32]) {
        self.wrong.entry(reason).or_default().extend(numbers);
    }

    /// What was noted as wrong.
    pub(crate) fn take_wrong(&mut self) -> BTreeMap<String, Vec<u32>> {
        std::mem::take(&mut self.wrong)
    }

    /// Begins to take results back; returns those that are not being taken back already.
    pub(crate) fn begin_retracting(&mut self, numbers: &[u32]) -> Vec<u32> {
        let new: Vec<u32> =
            numbers.iter().copied().filter(|number| self.retracting.insert(*number)).collect();
        for number in &new {
            self.audits.remove(number);
        }
        self.is_final = false;
        new
    }

    /// Takes results back, now that this is written: they are to be computed again.
    pub(crate) fn retract(&mut self, numbers: &[u32]) {
        self.progress.retract(numbers);
        for number in numbers {
            self.retracting.remove(number);
            self.authors.remove(number);
            self.audits.remove(number);
        }
        self.last.retain(|_, number| !numbers.contains(number));
        if self.kind() == RunKind::Tournament {
            // What a pairing did not need any more, it may need again. What was taken back is offered by itself.
            let is_wanted = |number: &u32| self.is_open(*number) && !numbers.contains(number);
            self.next = (0..self.next).find(is_wanted).unwrap_or(self.next);
        }
    }

    /// Takes the result of a cell that is stored; returns the worker that it comes from, if it may have to be audited.
    pub(crate) fn complete(&mut self, number: u32, result: CellResult) -> Option<Arc<Author>> {
        let digest = whole(&result);
        let pending_results = [self.storing.remove(&number), self.unsure.remove(&number)];
        let pending = pending_results.into_iter().flatten().find(|pending| pending.digest == digest);
        if !self.progress.add(number, result) {
            return None;
        }
        let author = pending?.author?;
        self.last.insert(author.clone(), number);
        self.authors.insert(number, author.clone());
        self.progress.plan().is_pure(number).then_some(author)
    }

    /// A result could not be stored for now: the cell has to be computed again.
    pub(crate) fn lose(&mut self, number: u32) {
        if let Some(pending) = self.storing.remove(&number) {
            self.unsure.insert(number, pending);
        }
    }

    /// Whether nothing is being stored.
    pub(crate) fn is_written(&self) -> bool {
        self.storing.is_empty() && self.retracting.is_empty()
    }

    /// The digest of all cells that count, once they are done.
    pub(crate) fn digest(&self) -> Option<Digest> {
        if self.is_written() { self.progress.digest() } else { None }
    }

    /// Where it stood when the time began that [`elapsed`](Self::elapsed) counts.
    pub(crate) fn before(&self) -> Standing {
        self.before
    }

    /// For how long it has been worked on since it was opened.
    pub(crate) fn elapsed(&self) -> u64 {
        self.worked.as_millis() as u64
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.worked += time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_a_pairing_needs_again_are_handed_out_again() {
        let text = "name = \"decided\"\n[tournament]\nopenings = 20\ndepth = 1\nsprt = { elo1 = 300 }\n\
                    players = [{ name = \"counter\", player = \"material\" }, { name = \"gambler\", player = \"random\" }]";
        let plan = CellPlan::of(experiment::parse("decided.toml", text, None).unwrap()).unwrap();
        let CellPlan::Tournament(games) = &plan else { unreachable!("it is a tournament") };
        let contestants = games.contestants(&PlayerFiles::new(), &BTreeMap::new()).unwrap();
        let mut cells = Cells::new(CellProgress::new(plan.clone()), PlayerFiles::new());
        while cells.next().is_some() {}
        let mut number = 0;
        while cells.is_open(number) {
            cells.complete(number, plan.compute(number, &contestants, || false).unwrap().unwrap());
            number += 1;
        }
        assert!(cells.digest().is_some() && number < cells.len(), "it is decided early");
        assert_eq!(cells.begin_retracting(&[0]), [0]);
        cells.retract(&[0]);
        let next = cells.next();
        assert!(matches!(next, Some(Piece::Cells { first, .. }) if first == number), "{next:?}");
    }

    #[test]
    fn one_computation_of_the_coordinator_alone_blames_nobody() {
        let text = "name = \"swept\"\nproblem = { kind = \"onemax\", length = 10 }\n\
                    algorithm = { kind = \"ga\", population = 4 }\nbudget = { generations = 2 }\n\
                    sweep = { repeats = 2, axis = [{ keys = [\"problem.length\"], values = [10] }] }";
        let plan = CellPlan::of(experiment::parse("cells.toml", text, None).unwrap()).unwrap();
        let result = plan.compute(0, &[], || false).unwrap().unwrap();
        let author = Arc::new(Author { worker: "a".to_owned(), principal: "a".to_owned() });
        let audited = || {
            let mut cells = Cells::new(CellProgress::new(plan.clone()), PlayerFiles::new());
            cells.receive(vec![(0, result.clone())], Some(&author), Duration::ZERO);
            assert_eq!(cells.complete(0, result.clone()), Some(author.clone()));
            cells.begin_audit(0, Duration::ZERO);
            cells
        };
        let [one, other] = [Digest::of(b"one"), Digest::of(b"other")];
        for second in [one, other, whole(&result)] {
            let mut cells = audited();
            assert!(cells.decide(0) && matches!(cells.conclude(0, &one), Some(CellAuditOutcome::Again)));
            assert!(cells.decide(0), "it is computed once more");
            match cells.conclude(0, &second).unwrap() {
                CellAuditOutcome::Wrong { author: Some(blamed), .. } => {
                    assert!(second == one && blamed == author);
                }
                CellAuditOutcome::Undecided => assert_eq!(second, other),
                CellAuditOutcome::Right { wrong } => assert!(second == whole(&result) && wrong.is_empty()),
                _ => unreachable!("it is decided"),
            }
            assert!(cells.is_all_audited());
        }
    }
}
