//! Audits: a share of what was accepted is computed again by another worker, and compared.
//!
//! What differs is decided by a third before any worker is blamed: by the coordinator, which computes it itself. It also
//! audits itself where no other principal is connected.

use super::evolution::Open;
use super::{Examination, Examiner};
use ::evolution::digest::Digest;
use ::evolution::epoch::Standing;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The most epochs of a run that wait for an audit: until there are fewer, no others begin.
const MOST_PENDING: usize = 64;
/// The most workers whose last delivery is remembered: that of another one is audited at once.
const MOST_LAST: usize = 256;
/// For how many epochs what was accepted is remembered, so that what comes late can be decided.
const REMEMBERED: u64 = 8;
/// The most bytes of that, beyond what the run itself still needs.
const MOST_REMEMBERED: usize = 64 << 20;
/// So many different results of one principal may wait for the coordinator's own, before others are left aside: by then it is
/// known whether to trust it.
pub(crate) const MOST_DISPUTES: usize = 4;
/// The most results of one epoch that are remembered while the coordinator computes it.
const MOST_ANSWERS: usize = 64;
/// So often in a row what is stored of a run may differ from what is to be written, before the run fails.
const MOST_DIFFERING: u32 = 3;
/// The most workers that are remembered to have been given one epoch.
const MOST_GRANTED: usize = 256;
/// So many wrong results of a principal are not held against it that may follow from what an earlier coordinator gave to it.
const MOST_EXCUSED: u32 = 8;

/// How much is audited, and what chooses it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AuditTerms {
    /// The share of epochs, from 0 to 1.
    pub share: f64,
    /// What the choice is drawn from. No worker knows it.
    pub secret: u128,
}

impl AuditTerms {
    /// Whether anything is audited.
    pub(crate) fn is_on(&self) -> bool {
        self.share > 0.0
    }

    /// Whether the epoch of these inputs is to be audited.
    pub(crate) fn chooses(&self, inputs: &Digest) -> bool {
        let drawn = Digest::of_parts("atoll audit", [&self.secret.to_le_bytes()[..], &inputs.0]);
        let drawn = drawn.0[..8].iter().fold(0u64, |number, &byte| number << 8 | u64::from(byte));
        (drawn as f64) < self.share * (u64::MAX as f64)
    }
}

/// An island and an epoch.
pub(crate) type Place = (u32, u64);

/// A worker that delivered something, and who answers for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Author {
    pub(crate) worker: String,
    pub(crate) principal: String,
}

/// What workers were given of an epoch, from the same inputs: also before its run was opened again.
#[derive(Clone, Debug, Default)]
pub(crate) struct EpochGrants {
    /// The checkpoints that others were given than those that had made them.
    pub(crate) checkpoints: Vec<GrantedCheckpoint>,
    /// The workers that this coordinator has given the epoch to. Who works on it beside them was given it by an earlier one,
    /// nobody knows with which checkpoint.
    granted: BTreeSet<String>,
}

impl EpochGrants {
    /// Notes that a worker was given the epoch.
    pub(crate) fn note_granted(&mut self, worker: &str) {
        if self.granted.len() < MOST_GRANTED && !self.granted.contains(worker) {
            self.granted.insert(worker.to_owned());
        }
    }

    /// The principals from whose checkpoints it was computed.
    fn assistants(&self) -> impl Iterator<Item = &str> {
        self.checkpoints
            .iter()
            .map(|one| one.author.as_ref().map_or(UNKNOWN, |author| author.principal.as_str()))
    }
}

/// A checkpoint that was handed out to another worker than the one that made it.
#[derive(Clone, Debug)]
pub(crate) struct GrantedCheckpoint {
    pub(crate) generation: u64,
    pub(crate) digest: Digest,
    /// Who made it; nothing if that was before the coordinator started.
    pub(crate) author: Option<Author>,
    /// The worker that has it.
    pub(crate) to: String,
}

/// What the coordinator has computed of an epoch itself.
#[derive(Clone, Debug)]
pub(crate) struct RecomputedEpoch {
    pub(crate) digest: Digest,
    /// The checkpoints that were handed out and are wrong, by generation.
    pub(crate) wrong: BTreeSet<(u64, Digest)>,
}

/// An epoch that was accepted, with all that it takes to compute it again.
pub(crate) struct Accepted {
    pub(crate) open: Open,
    pub(crate) digest: Digest,
    pub(crate) standing: Standing,
    pub(crate) author: Author,
}

impl Accepted {
    fn place(&self) -> Place {
        (self.open.task.island, self.open.task.epoch)
    }

    /// How many bytes are kept for it.
    fn weight(&self) -> usize {
        let packets: usize = self.open.task.packets.iter().map(|packet| packet.departure.len()).sum();
        self.open.task.state.as_ref().map_or(0, bytes::Bytes::len) + packets
    }
}

/// An epoch that is computed again.
struct Audit {
    accepted: Arc<Accepted>,
    since: Duration,
    /// What others have delivered.
    answers: Vec<(Author, Digest)>,
    /// The workers that were given it to compute it again.
    again: EpochGrants,
    /// Whether the coordinator computes it itself.
    deciding: bool,
    /// What the coordinator has computed, where no worker has the same: it computes that once more.
    doubted: Option<Digest>,
}

/// An epoch that the coordinator is to compute itself, with the checkpoints to be compared.
pub(crate) struct Decision {
    pub(crate) inputs: Digest,
    pub(crate) examination: Examination,
    pub(crate) checkpoints: Vec<(u64, Digest)>,
}

/// What a delivery means for an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It is not the answer to one.
    None,
    /// It is the same as what was accepted.
    Same,
    /// It is something else.
    Differs,
}

/// What becomes of a result that differs from what was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dispute {
    /// The coordinator decides.
    Begun,
    /// Others of its principal are decided first, and it is not remembered.
    LeftAside,
    /// Nothing is remembered of what was accepted.
    Forgotten,
}

/// What an audit came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AuditOutcome {
    /// What was accepted is right. These delivered something else.
    Right { wrong: Vec<Author> },
    /// What was accepted is wrong. These are to blame for it, or delivered something else that is wrong. The cause is not
    /// known if it followed from a checkpoint of unknown origin.
    Wrong { cause: Option<Author>, blamed: Vec<Author> },
    /// No worker has the same result as the coordinator, which computes it once more.
    Again,
    /// The coordinator does not agree with itself: no worker can be blamed.
    Undecided,
}

/// The audits of one run.
#[derive(Default)]
pub(crate) struct Audits {
    pending: BTreeMap<Place, Audit>,
    /// What was accepted lately: since the last epoch that is complete everywhere, and some epochs before.
    recent: BTreeMap<Place, Arc<Accepted>>,
    complete: u64,
    /// The last delivery of each worker, and when it came.
    last: BTreeMap<Author, (u64, Arc<Accepted>)>,
    /// How many deliveries there were.
    count: u64,
    /// What the best fitness was reached in.
    best: Option<Arc<Accepted>>,
    /// Whether the audits before the end have begun.
    is_final: bool,
    /// Of each island: the epoch of the last checkpoint, and who made it.
    checkpoints: BTreeMap<u32, (u64, Author)>,
    /// Principals whose checkpoints are not used any more.
    distrusted: BTreeSet<String>,
    /// What workers were given of epochs that are not handed out any more and may be delivered all the same, with the inputs.
    grants: BTreeMap<Place, (Digest, EpochGrants)>,
    /// Whether an earlier coordinator has handed out epochs of the run.
    is_inherited: bool,
    /// How many wrong results of each principal may follow from what an earlier coordinator gave to it.
    excused: BTreeMap<String, u32>,
}

impl Audits {
    /// Remembers what was accepted, with the number of epochs that are complete on all islands. Returns what is to be audited because
    /// there is no room to remember it any longer.
    pub(crate) fn note(&mut self, accepted: Arc<Accepted>, complete: u64) -> Vec<Arc<Accepted>> {
        let mut forgotten = vec![];
        if complete > self.complete {
            self.complete = complete;
            self.thin_out();
            forgotten = self.take_heaviest();
        }
        if self.best.as_ref().is_none_or(|best| accepted.standing.best > best.standing.best) {
            self.best = Some(accepted.clone());
        }
        self.count += 1;
        self.last.insert(accepted.author.clone(), (self.count, accepted.clone()));
        self.recent.insert(accepted.place(), accepted);
        if self.last.len() > MOST_LAST {
            let oldest = self.last.iter().min_by_key(|(_, (count, _))| *count);
            let oldest = oldest.map(|(author, _)| author.clone());
            forgotten
                .extend(oldest.and_then(|oldest| self.last.remove(&oldest)).map(|(_, accepted)| accepted));
        }
        forgotten
    }

    /// Takes the oldest last deliveries that are remembered for nothing else, as far as they are too heavy together.
    fn take_heaviest(&mut self) -> Vec<Arc<Accepted>> {
        let is_recent =
            |one: &Arc<Accepted>| self.recent.get(&one.place()).is_some_and(|known| Arc::ptr_eq(known, one));
        let extra = self.last.iter().filter(|(_, (_, accepted))| !is_recent(accepted));
        let mut extra: Vec<(u64, usize, Author)> =
            extra.map(|(author, (count, accepted))| (*count, accepted.weight(), author.clone())).collect();
        extra.sort_unstable();
        let mut weight: usize = extra.iter().map(|(_, weight, _)| weight).sum();
        let mut taken = vec![];
        for (_, own, author) in extra {
            if weight <= MOST_REMEMBERED {
                break;
            }
            weight -= own;
            taken.extend(self.last.remove(&author).map(|(_, accepted)| accepted));
        }
        taken
    }

    /// Forgets what was accepted long ago. What comes late can be decided for some epochs, as far as memory allows.
    fn thin_out(&mut self) {
        let complete = self.complete;
        self.recent.retain(|&(_, epoch), _| epoch + REMEMBERED >= complete);
        let is_needed = |epoch: u64| epoch + 1 >= complete;
        let extra = || self.recent.values().filter(|one| !is_needed(one.open.task.epoch));
        let mut weight: usize = extra().map(|one| one.weight()).sum();
        let mut oldest: Vec<(u64, u32)> = vec![];
        if weight > MOST_REMEMBERED {
            oldest = extra().map(|one| (one.open.task.epoch, one.open.task.island)).collect();
            oldest.sort_unstable();
        }
        for (epoch, island) in oldest {
            if weight <= MOST_REMEMBERED {
                break;
            }
            weight -= self.recent.remove(&(island, epoch)).map_or(0, |one| one.weight());
        }
    }

    /// Has an epoch computed again.
    pub(crate) fn begin(&mut self, accepted: &Arc<Accepted>, now: Duration) {
        let place = accepted.place();
        self.pending.entry(place).or_insert_with(|| Audit {
            accepted: accepted.clone(),
            since: now,
            answers: vec![],
            again: EpochGrants::default(),
            deciding: false,
            doubted: None,
        });
    }

    /// Notes that another worker has delivered something else; returns what becomes of that.
    pub(crate) fn dispute(&mut self, place: Place, author: Author, digest: Digest, now: Duration) -> Dispute {
        let Some(accepted) = self.recent.get(&place).cloned() else { return Dispute::Forgotten };
        let is_its = |(known, _): &(Author, Digest)| known.principal == author.principal;
        let others = self.pending.values().filter(|audit| audit.answers.iter().any(is_its)).count();
        if others >= MOST_DISPUTES {
            return Dispute::LeftAside;
        }
        self.begin(&accepted, now);
        if let Some(audit) = self.pending.get_mut(&place)
            && audit.answers.len() < MOST_ANSWERS
        {
            audit.answers.push((author, digest));
        }
        Dispute::Begun
    }

    /// Has what the end of the run consists of computed again, except for what was: its last epoch on every island, each
    /// worker's last delivery, and the epoch with the best fitness. Returns the places; nothing if that was done.
    ///
    /// A sample of the last epoch would not do, however it is taken: who delivers several islands' may lie about one of
    /// them and tell the truth about the others, and nothing follows from the last epoch that could give the lie away.
    pub(crate) fn begin_final(
        &mut self,
        end: u64,
        is_audited: impl Fn(Place) -> bool,
        now: Duration,
    ) -> Vec<Place> {
        if std::mem::replace(&mut self.is_final, true) {
            return vec![];
        }
        let at_the_end = self.recent.values().filter(|one| one.open.task.epoch == end);
        let last = self.last.values().map(|(_, accepted)| accepted);
        let all: Vec<Arc<Accepted>> = last.chain(&self.best).chain(at_the_end).cloned().collect();
        let all = all.into_iter().filter(|one| !is_audited(one.place()));
        let all: Vec<Arc<Accepted>> = all.filter(|one| !self.pending.contains_key(&one.place())).collect();
        for accepted in &all {
            self.begin(accepted, now);
        }
        let places: BTreeSet<Place> = all.iter().map(|one| one.place()).collect();
        places.into_iter().collect()
    }

    /// Forgets what lies beyond these epochs of each island, because it was taken back. What stays is audited before the
    /// end as if nothing had happened: another worker may have lied about it.
    fn cut(&mut self, done: &[u64]) {
        let stays = |(island, epoch): Place| done.get(island as usize).is_some_and(|&done| epoch < done);
        let goes: Vec<Arc<Accepted>> =
            self.recent.values().filter(|one| !stays(one.place())).cloned().collect();
        for accepted in goes {
            let Open { inputs, grants, .. } = &accepted.open;
            self.keep_grants(accepted.place(), *inputs, grants.clone());
        }
        self.pending.retain(|&place, _| stays(place));
        self.recent.retain(|&place, _| stays(place));
        self.last.retain(|_, (_, accepted)| stays(accepted.place()));
        self.best = self.best.take().filter(|best| stays(best.place()));
        for accepted in self.recent.values().chain(self.last.values().map(|(_, accepted)| accepted)) {
            if self.best.as_ref().is_none_or(|best| accepted.standing.best > best.standing.best) {
                self.best = Some(accepted.clone());
            }
        }
        self.complete = done.iter().copied().min().unwrap_or(0);
        self.is_final = false;
    }

    /// All that is being computed again, to be handed out once more, and what of it the coordinator is to compute. It may
    /// have done so while the answer could not be taken.
    pub(crate) fn begin_again(&mut self) -> Vec<(Place, bool)> {
        let again = self.pending.iter_mut();
        again.map(|(&place, audit)| (place, std::mem::replace(&mut audit.deciding, false))).collect()
    }

    /// Notes that the run does not end yet after all.
    pub(crate) fn continue_after_all(&mut self) {
        self.is_final = false;
    }

    /// Whether nothing is being computed again.
    pub(crate) fn is_over(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether no other epochs should begin for now.
    pub(crate) fn is_full(&self) -> bool {
        self.pending.len() >= MOST_PENDING
    }

    /// The epoch that is to be computed again, as it was handed out before.
    pub(crate) fn open(&self, place: Place) -> Option<&Open> {
        self.pending.get(&place).map(|audit| &audit.accepted.open)
    }

    /// Notes that a worker was given an epoch to compute it again.
    pub(crate) fn note_granted_again(&mut self, place: Place, worker: &str) {
        if let Some(audit) = self.pending.get_mut(&place) {
            audit.again.note_granted(worker);
        }
    }

    /// Keeps what workers were given of an epoch that is not handed out any more.
    pub(crate) fn keep_grants(&mut self, place: Place, inputs: Digest, grants: EpochGrants) {
        self.grants.insert(place, (inputs, grants));
    }

    /// What workers were given of an epoch before it is handed out again.
    pub(crate) fn take_grants(&mut self, place: Place, inputs: &Digest) -> EpochGrants {
        let known = self.grants.remove(&place).filter(|(known, _)| known == inputs);
        known.map(|(_, grants)| grants).unwrap_or_default()
    }

    /// Those who may be the cause if an epoch is wrong, beside the worker that delivered it.
    pub(crate) fn assistants(&self, grants: &EpochGrants, worker: &str) -> BTreeSet<String> {
        let authors = grants.checkpoints.iter().filter_map(|one| one.author.as_ref());
        let mut workers = authors.map(|author| author.worker.as_str()).chain([worker]);
        let unknown = Some(UNKNOWN).filter(|_| workers.any(|worker| self.is_foreign(grants, worker)));
        grants.assistants().chain(unknown).map(str::to_owned).collect()
    }

    /// Whether an epoch was begun from a checkpoint that may well be wrong: of a principal that was found to lie, or of
    /// one that is not known.
    pub(crate) fn is_doubtful(&self, grants: &EpochGrants) -> bool {
        grants.assistants().any(|principal| principal == UNKNOWN) || self.is_distrusted(grants)
    }

    /// Whether a principal that was found to lie has made a checkpoint from which an epoch was begun.
    pub(crate) fn is_distrusted(&self, grants: &EpochGrants) -> bool {
        grants.assistants().any(|principal| self.distrusted.contains(principal))
    }

    /// Whether a worker has an epoch from an earlier coordinator.
    fn is_foreign(&self, grants: &EpochGrants, worker: &str) -> bool {
        self.is_inherited && !grants.granted.contains(worker)
    }

    /// Whether a wrong result is not held against its author, because it may follow from a wrong checkpoint that an earlier
    /// coordinator gave to it. A liar could say that of every lie: it does not help it often.
    fn is_excused(&mut self, author: &Author, given: [&EpochGrants; 2]) -> bool {
        if !given.iter().all(|grants| self.is_foreign(grants, &author.worker)) {
            return false;
        }
        let times = self.excused.entry(author.principal.clone()).or_default();
        *times += 1;
        *times <= MOST_EXCUSED
    }

    /// Whether workers of a principal may compute an epoch: again only what they have not computed.
    pub(crate) fn may_take(&self, place: Place, principal: &str) -> bool {
        let may = |audit: &Audit| !audit.deciding && audit.accepted.author.principal != principal;
        self.pending.get(&place).is_none_or(may)
    }

    /// Takes a delivery as the answer to an audit, unless it comes from the same principal.
    pub(crate) fn answer(
        &mut self,
        place: Place,
        inputs: &Digest,
        author: &Author,
        digest: Digest,
    ) -> Answer {
        let Some(audit) = self.pending.get_mut(&place) else { return Answer::None };
        let Accepted { open, digest: accepted, author: first, .. } = &*audit.accepted;
        if audit.deciding || open.inputs != *inputs || first.principal == author.principal {
            return Answer::None;
        }
        if *accepted == digest {
            self.pending.remove(&place);
            return Answer::Same;
        }
        audit.answers.push((author.clone(), digest));
        Answer::Differs
    }

    /// The audits that wait for a worker, by whom they must not be computed, and since when.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (Place, &str, Duration)> {
        let waiting = self.pending.iter().filter(|(_, audit)| !audit.deciding);
        waiting.map(|(&place, audit)| (place, audit.accepted.author.principal.as_str(), audit.since))
    }

    /// Leaves an audit to the coordinator.
    pub(crate) fn decide(&mut self, place: Place, examiner: &Arc<Examiner>) -> Option<Decision> {
        let audit = self.pending.get_mut(&place)?;
        if std::mem::replace(&mut audit.deciding, true) {
            return None;
        }
        let Open { task, inputs, grants, .. } = &audit.accepted.open;
        let checkpoints = grants.checkpoints.iter().map(|one| (one.generation, one.digest)).collect();
        let examination = Examination { examiner: examiner.clone(), task: task.clone() };
        Some(Decision { inputs: *inputs, examination, checkpoints })
    }

    /// Takes an audit out that the coordinator has computed. If the epoch was taken back and computed from other inputs
    /// meanwhile, what it came to then says nothing about it now.
    fn take(&mut self, place: Place, inputs: &Digest) -> Option<Audit> {
        self.pending.get(&place).filter(|audit| audit.accepted.open.inputs == *inputs)?;
        self.pending.remove(&place)
    }

    /// Ends an audit with what the coordinator has computed from these inputs. Nothing if there is no such audit any more.
    pub(crate) fn conclude(
        &mut self,
        place: Place,
        inputs: &Digest,
        computed: &RecomputedEpoch,
    ) -> Option<AuditOutcome> {
        let mut audit = self.take(place, inputs)?;
        let is_wrong = audit.accepted.digest != computed.digest;
        let has_support = audit.answers.iter().any(|(_, digest)| *digest == computed.digest);
        if is_wrong && !has_support {
            match audit.doubted {
                None => {
                    (audit.doubted, audit.deciding) = (Some(computed.digest), false);
                    self.pending.insert(place, audit);
                    return Some(AuditOutcome::Again);
                }
                Some(before) if before != computed.digest => return Some(AuditOutcome::Undecided),
                Some(_) => {}
            }
        }
        let given = &audit.accepted.open.grants;
        let checkpoints = &given.checkpoints;
        let is_false = |one: &&GrantedCheckpoint| computed.wrong.contains(&(one.generation, one.digest));
        // Who was given a wrong checkpoint came to a wrong result without a fault of its own.
        let is_misled =
            |author: &Author| checkpoints.iter().filter(is_false).any(|one| one.to == author.worker);
        let accepted = Some(&audit.accepted.author).filter(|_| is_wrong);
        let answers = audit.answers.iter().filter(|(_, digest)| *digest != computed.digest);
        let wrong = accepted.into_iter().chain(answers.map(|(author, _)| author));
        let wrong = wrong.filter(|author| !is_misled(author));
        // The first wrong checkpoint follows from a right one, or from none: its author has made it up.
        let first = checkpoints.iter().filter(is_false).min_by_key(|one| one.generation);
        let made_up = first.and_then(|one| one.author.as_ref());
        let cause = if first.is_some() { made_up } else { accepted };
        let mut suspects: Vec<&Author> = made_up.into_iter().chain(wrong).collect();
        suspects.dedup();
        let blamed: Vec<Author> = suspects
            .into_iter()
            .filter(|author| !self.is_excused(author, [given, &audit.again]))
            .cloned()
            .collect();
        let cause = cause.filter(|cause| blamed.contains(cause)).cloned();
        Some(if is_wrong {
            AuditOutcome::Wrong { cause, blamed }
        } else {
            AuditOutcome::Right { wrong: blamed }
        })
    }

    /// Gives an audit up.
    pub(crate) fn abandon(&mut self, place: Place, inputs: &Digest) {
        drop(self.take(place, inputs));
    }

    /// Notes who made the last checkpoint of an island.
    pub(crate) fn note_checkpoint(&mut self, (island, epoch): Place, author: Author) {
        self.checkpoints.insert(island, (epoch, author));
    }

    /// Who made the stored checkpoint of an epoch, as far as that is known; an error if it is not to be used.
    pub(crate) fn checkpointer(&self, (island, epoch): Place) -> Result<Option<Author>, Distrusted> {
        let author = self.checkpoints.get(&island).filter(|(known, _)| *known == epoch);
        match author.map(|(_, author)| author.clone()) {
            Some(author) if self.distrusted.contains(&author.principal) => Err(Distrusted),
            author => Ok(author),
        }
    }

    /// Uses no checkpoint of a principal any more.
    pub(crate) fn distrust(&mut self, principal: &str) {
        self.distrusted.insert(principal.to_owned());
    }
}

/// A checkpoint of a principal that was found to lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Distrusted;

/// Who answers for results that followed from a checkpoint of unknown origin.
pub(crate) const UNKNOWN: &str = "unknown";

/// Who computed which epochs of a run, as far as this coordinator has accepted them: what is known of it beyond its being
/// opened again.
#[derive(Default)]
pub(crate) struct Authors {
    islands: Vec<AuthoredIsland>,
    /// The principals by their numbers.
    numbers: BTreeMap<String, u32>,
    /// The numbers of those from whose checkpoints epochs were computed that were not audited.
    assistants: BTreeMap<Place, BTreeSet<u32>>,
    /// The epochs that were computed again, and are right.
    audited: BTreeSet<Place>,
    /// The audits of the run while it is opened again.
    audits: Audits,
    /// The principals that were found to lie meanwhile.
    liars: BTreeSet<String>,
    /// Epochs of which something else is stored than was computed: they are audited when they are computed again.
    suspects: BTreeSet<Place>,
    /// How often something else was stored since the last batch was written.
    differed: u32,
}

#[derive(Clone, Debug, Default)]
struct AuthoredIsland {
    /// The first epoch that is known.
    first: u64,
    /// The numbers of the authors from there on.
    authors: Vec<u32>,
}

/// The author of an epoch that need not be audited.
const TRUSTED: u32 = u32::MAX;

impl Authors {
    /// Of a run that this coordinator has opened, perhaps after an earlier one.
    pub(crate) fn of(is_inherited: bool) -> Self {
        Self { audits: Audits { is_inherited, ..Audits::default() }, ..Self::default() }
    }

    /// Notes that something else is stored of an epoch; returns whether it is to be computed again.
    pub(crate) fn suspect(&mut self, place: Place) -> bool {
        self.suspects.insert(place);
        self.differed += 1;
        self.differed <= MOST_DIFFERING
    }

    /// Whether an epoch is to be audited because something else was stored of it.
    pub(crate) fn take_suspect(&mut self, place: Place) -> bool {
        self.suspects.remove(&place)
    }

    /// Notes that a batch is written.
    pub(crate) fn note_written(&mut self) {
        self.differed = 0;
    }

    /// The principals of which epochs were not audited.
    pub(crate) fn unaudited(&self) -> BTreeSet<String> {
        let mut left: BTreeSet<u32> = self.assistants.values().flatten().copied().collect();
        for (number, island) in (0..).zip(&self.islands) {
            for (epoch, author) in (island.first..).zip(&island.authors) {
                // There may be millions of epochs, of few principals.
                if !left.contains(author) && !self.is_audited((number, epoch)) {
                    left.insert(*author);
                }
            }
        }
        let numbers = self.numbers.iter().filter(|(_, number)| left.contains(number));
        numbers.map(|(principal, _)| principal.clone()).collect()
    }

    /// Starts again from these epochs of each island: what lies beyond is forgotten.
    pub(crate) fn begin(&mut self, done: &[u64]) {
        self.islands.resize_with(done.len(), || AuthoredIsland { first: u64::MAX, authors: vec![] });
        for (island, &done) in self.islands.iter_mut().zip(done) {
            if island.first > done {
                *island = AuthoredIsland { first: done, authors: vec![] };
            }
            island.authors.truncate((done - island.first) as usize);
        }
        let stays = |&(island, epoch): &Place| done.get(island as usize).is_some_and(|&done| epoch < done);
        self.audited.retain(stays);
        self.assistants.retain(|place, _| stays(place));
        self.audits.cut(done);
    }

    /// Keeps the audits of a run that is opened again.
    pub(crate) fn keep(&mut self, audits: Audits) {
        self.audits = audits;
    }

    /// The audits that were kept, as far as the run still goes.
    pub(crate) fn take_audits(&mut self) -> Audits {
        std::mem::take(&mut self.audits)
    }

    /// Notes that what a principal delivered is to be taken back once the run is open again.
    pub(crate) fn note_liar(&mut self, principal: &str) {
        self.liars.insert(principal.to_owned());
    }

    pub(crate) fn take_liars(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.liars)
    }

    fn number_of(&mut self, principal: &str) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(principal.to_owned()).or_insert(next)
    }

    /// Notes who computed an epoch, and from whose checkpoints.
    pub(crate) fn note(&mut self, place: Place, principal: &str, assistants: &BTreeSet<String>) {
        let number = self.number_of(principal);
        let assistants: BTreeSet<u32> = assistants.iter().map(|one| self.number_of(one)).collect();
        let (island, epoch) = place;
        let Some(island) = self.islands.get_mut(island as usize) else { return };
        if let Some(at) = epoch.checked_sub(island.first) {
            island.authors.resize(at as usize, TRUSTED);
            island.authors.push(number);
            if !assistants.is_empty() {
                self.assistants.insert(place, assistants);
            }
        }
    }

    /// Notes that another principal than the one that delivered it is the cause of a wrong epoch.
    pub(crate) fn attribute(&mut self, place: Place, principal: &str) {
        let number = self.number_of(principal);
        let (island, epoch) = place;
        let Some(island) = self.islands.get_mut(island as usize) else { return };
        let at = epoch.checked_sub(island.first).map(|at| at as usize);
        if let Some(author) = at.and_then(|at| island.authors.get_mut(at)) {
            *author = number;
            self.audited.remove(&place);
        }
    }

    /// Notes that an epoch is right.
    pub(crate) fn note_audited(&mut self, place: Place) {
        self.audited.insert(place);
        self.assistants.remove(&place);
    }

    pub(crate) fn is_audited(&self, place: Place) -> bool {
        self.audited.contains(&place)
    }

    /// How many epochs of each island are left without what a principal computed, or was computed from its checkpoints, and
    /// was not audited; nothing if there is no such epoch.
    pub(crate) fn cuts_without(&self, principal: &str, done: &[u64]) -> Option<Vec<u64>> {
        let number = *self.numbers.get(principal)?;
        let mut is_found = false;
        let cuts = (0..).zip(&self.islands).zip(done).map(|((number_of_island, island), &done)| {
            let own = (island.first..).zip(&island.authors).filter(|(_, author)| **author == number);
            let mut own = own.map(|(epoch, _)| epoch);
            let first = own.find(|&epoch| epoch < done && !self.is_audited((number_of_island, epoch)));
            let of_island = self.assistants.range((number_of_island, 0)..(number_of_island, done));
            let assisted =
                of_island.filter(|(_, assistants)| assistants.contains(&number)).map(|(place, _)| place.1);
            let first = first.into_iter().chain(assisted.take(1)).min();
            is_found |= first.is_some();
            first.unwrap_or(done)
        });
        let cuts = cuts.collect();
        is_found.then_some(cuts)
    }
}

#[cfg(test)]
mod tests;
