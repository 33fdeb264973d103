//! What one seed simulates: an experiment, settings of the cluster, and everything that goes wrong.

use crate::byzantine::Manner;
use crate::{Dice, STUDY, SWEEP, TOURNAMENT};
use std::time::Duration;

/// What goes wrong with processes and connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Trouble {
    Nothing,
    /// Workers crash, and the network fails them.
    Workers,
    /// Coordinators and workers crash, and the network fails them.
    Faults,
    /// The same; and coordinators begin while the one before is still there, and what it has sent to the store.
    Takeovers,
}

/// What goes wrong with the store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum StoreTrouble {
    Nothing,
    /// Calls return errors, done or not, and sometimes no answer comes for long.
    Outages,
    /// Writes that were acknowledged are lost, altered or misdirected.
    Lies,
}

/// Faults happen for so long; after that, everything heals and the run must come to its end.
const FAULTS: Duration = Duration::from_secs(4);
/// Long enough for work to reach every limit of poison, with its back-off of 1, 2, 4 and 8 seconds.
const LONG_FAULTS: Duration = Duration::from_secs(25);

/// What one seed simulates.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) text: String,
    pub(crate) trouble: Trouble,
    /// For how long.
    pub(crate) lasting: Duration,
    pub(crate) store: StoreTrouble,
    /// Workers beside the honest ones.
    pub(crate) byzantine: Vec<Manner>,
    /// How one piece of the run behaves with every worker, if it is poison.
    pub(crate) poison: Option<Manner>,
    /// The share of epochs that is audited.
    pub(crate) audit: f64,
    pub(crate) lease: Duration,
}

impl Scenario {
    /// A plan with the trouble of one kind.
    pub(crate) fn of(text: &str, trouble: Trouble) -> Self {
        Self {
            text: text.to_owned(),
            trouble,
            lasting: FAULTS,
            store: StoreTrouble::Nothing,
            byzantine: vec![],
            poison: None,
            audit: 0.0,
            lease: Duration::from_millis(600),
        }
    }

    /// Whatever a seed brings. One in ten is about poison: half of those have a piece that every worker fails at or dies of,
    /// and the others an honest run that is disturbed for long, with a worker that fails at everything.
    pub(crate) fn random(seed: u64) -> Self {
        let mut dice = Dice(seed ^ 0x5ce7_a210);
        dice.roll(2);
        let mut pick = |count: usize| dice.roll(count as u64) as usize;
        let text = match (pick(16), seed % 20) {
            (_, 9) => experiment(&mut pick, 1),
            (_, 19) => experiment(&mut pick, 8),
            (0, _) => STUDY.to_owned(),
            (1, _) => SWEEP.to_owned(),
            (2, _) => TOURNAMENT.to_owned(),
            _ => experiment(&mut pick, 1),
        };
        let trouble = [Trouble::Workers, Trouble::Faults, Trouble::Faults, Trouble::Takeovers][pick(4)];
        let store = [StoreTrouble::Nothing, StoreTrouble::Outages][pick(2)];
        let first = Manner::ALL.get(pick(8)).copied().filter(|_| text.contains("seed = 3\n"));
        let second = [Manner::Garbles, Manner::Fails, Manner::Holds].get(pick(9)).copied();
        // Epochs are examined and audited; cells and jobs are taken as they come.
        let second = second.filter(|manner| *manner != Manner::Garbles || text.contains("seed = 3\n"));
        let mut byzantine: Vec<Manner> = first.into_iter().chain(second).collect();
        let lease = Duration::from_millis(300 + 300 * pick(4) as u64);
        let mut audit = [0.0, 0.1, 1.0][pick(3)];
        if byzantine.contains(&Manner::Lies) {
            // Mostly everything is audited.
            audit = if seed % 4 == 1 { 0.3 } else { 1.0 };
            if seed.is_multiple_of(3) {
                byzantine[0] = Manner::Misleads;
            }
        }
        let (mut poison, mut lasting) = (None, FAULTS);
        match seed % 20 {
            // No other worker does it in their place.
            9 => (byzantine, poison) = (vec![], Some([Manner::Fails, Manner::Dies][pick(2)])),
            19 => (byzantine, lasting) = (vec![Manner::Fails], LONG_FAULTS),
            _ => {}
        }
        Self { text, trouble, lasting, store, byzantine, poison, audit, lease }
    }

    /// The same with a store that lies: three in five are synchronous evolutions, one is asynchronous, and one is a sweep or a
    /// tournament.
    pub(crate) fn with_lying_store(seed: u64) -> Self {
        let mut dice = Dice(seed ^ 0x11e5);
        dice.roll(2);
        let text = experiment(&mut |count| dice.roll(count as u64) as usize, 1);
        let text = match seed % 10 {
            3 => SWEEP.to_owned(),
            8 => TOURNAMENT.to_owned(),
            4 | 9 => text.replace("\"synchronous\"", "\"asynchronous\""),
            _ => text.replace("\"asynchronous\"", "\"synchronous\""),
        };
        let random = Self::random(seed);
        Self { text, store: StoreTrouble::Lies, byzantine: vec![], poison: None, lasting: FAULTS, ..random }
    }

    /// Whether the digest does not depend on what arrives when.
    pub(crate) fn has_one_digest(&self) -> bool {
        !self.text.contains("\"asynchronous\"")
    }

    /// Whether a worker lies while coordinators are lost, or not everything is audited: what one knew of audits that were under
    /// way is lost with it.
    pub(crate) fn may_miss_lies(&self) -> bool {
        let lies = self.byzantine.iter().any(|manner| manner.computes_lies());
        lies && (self.trouble != Trouble::Workers || self.audit < 1.0)
    }
}

/// An experiment of some dozen epochs, or of a multiple of them.
fn experiment(pick: &mut impl FnMut(usize) -> usize, times: usize) -> String {
    let mode = ["synchronous", "asynchronous"][pick(2)];
    let topology = ["ring", "isolated", "two-way-ring", "fully-connected"][pick(4)];
    let (islands, interval, population) = (2 + pick(4), 1 + pick(4), 4 + 2 * pick(4));
    let generations = interval * (14 + pick(12)) * times;
    let every = ["1", "2", "7", "\"1s\""][pick(4)];
    let (keep, milestones) = (1 + pick(3), ["", ", milestones = 3"][pick(2)]);
    format!(
        "name = \"random\"\nseed = 3\nproblem = {{ kind = \"onemax\", length = 20 }}\n\
         algorithm = {{ kind = \"ga\", population = {population} }}\n\
         islands = {{ count = {islands}, topology = \"{topology}\" }}\n\
         migration = {{ interval = {interval}, count = 1, mode = \"{mode}\" }}\n\
         budget = {{ generations = {generations} }}\ncheckpoint = {{ every = {every} }}\n\
         retention = {{ keep = {keep}{milestones} }}\n"
    )
}
