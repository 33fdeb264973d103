//! What one seed simulates: an experiment, settings of the cluster, and everything that goes wrong.

use crate::byzantine::Manner;
use crate::{Dice, STUDY, SYNCHRONOUS};
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

/// What one seed simulates.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) text: String,
    pub(crate) trouble: Trouble,
    pub(crate) store: StoreTrouble,
    /// A worker beside the honest ones.
    pub(crate) byzantine: Option<Manner>,
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
            store: StoreTrouble::Nothing,
            byzantine: None,
            audit: 0.0,
            lease: Duration::from_millis(600),
        }
    }

    /// Whatever a seed brings.
    pub(crate) fn random(seed: u64) -> Self {
        let mut dice = Dice(seed ^ 0x5ce7_a210);
        dice.roll(2);
        let mut pick = |count: usize| dice.roll(count as u64) as usize;
        let text = if pick(16) == 0 { STUDY.to_owned() } else { experiment(&mut pick) };
        let trouble = [Trouble::Workers, Trouble::Faults, Trouble::Faults, Trouble::Takeovers][pick(4)];
        let store = [StoreTrouble::Nothing, StoreTrouble::Outages][pick(2)];
        let byzantine = Manner::ALL.get(pick(8)).copied().filter(|_| text.contains("seed = 3\n"));
        let lease = Duration::from_millis(300 + 300 * pick(4) as u64);
        let audit = [0.0, 0.1, 1.0][pick(3)];
        let mut scenario = Self { text, trouble, store, byzantine, audit, lease };
        if byzantine == Some(Manner::Lies) {
            // Everything is audited; and what a coordinator knew of audits that were under way is lost with it.
            scenario.audit = 1.0;
            scenario.trouble = Trouble::Workers;
        }
        scenario
    }

    /// The same with a store that lies.
    pub(crate) fn with_lying_store(seed: u64) -> Self {
        let text = SYNCHRONOUS.to_owned();
        Self { text, store: StoreTrouble::Lies, byzantine: None, audit: 0.0, ..Self::random(seed) }
    }

    /// Whether the digest does not depend on what arrives when.
    pub(crate) fn has_one_digest(&self) -> bool {
        !self.text.contains("\"asynchronous\"")
    }
}

/// An experiment of some dozen epochs.
fn experiment(pick: &mut impl FnMut(usize) -> usize) -> String {
    let mode = ["synchronous", "asynchronous"][pick(2)];
    let topology = ["ring", "isolated", "two-way-ring", "fully-connected"][pick(4)];
    let (islands, interval, population) = (2 + pick(4), 1 + pick(4), 4 + 2 * pick(4));
    let generations = interval * (14 + pick(12));
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
