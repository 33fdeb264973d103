//! How far a plan of cells is: what is done, what is still wanted, and what counts.

use crate::cell::{CellPlan, CellResult, Evolved};
use evolution::digest::Digest;
use evolution::epoch::Standing;
use std::collections::BTreeMap;
use std::sync::Arc;
use tournament::{CrossTable, PlayedPair, Race};

/// What has been done of a plan.
///
/// Nothing here depends on the order in which results come: a sequential test of a tournament judges the longest prefix
/// of its pairs that is complete, and what lies beyond its decision does not count, whether it was played or not.
#[derive(Clone, Debug)]
pub struct CellProgress {
    plan: Arc<CellPlan>,
    done: BTreeMap<u32, CellResult>,
    /// Of a tournament: how far each pairing is.
    races: Vec<Race>,
}

impl CellProgress {
    /// Nothing has been done.
    pub fn new(plan: CellPlan) -> Self {
        let pairings = match &plan {
            CellPlan::Sweep(_) => 0,
            CellPlan::Tournament(games) => games.schedule().pairings().len(),
        };
        Self { plan: Arc::new(plan), done: BTreeMap::new(), races: vec![Race::default(); pairings] }
    }

    /// The plan.
    pub fn plan(&self) -> &CellPlan {
        &self.plan
    }

    /// The plan, to be kept beside this.
    pub fn shared_plan(&self) -> Arc<CellPlan> {
        self.plan.clone()
    }

    /// The cells that are done, whether they count or not.
    pub fn done(&self) -> &BTreeMap<u32, CellResult> {
        &self.done
    }

    /// Adds the result of a cell, which must fit it. Answers whether it is new; the first one stays.
    pub fn add(&mut self, number: u32, result: CellResult) -> bool {
        if self.done.contains_key(&number) {
            return false;
        }
        self.done.insert(number, result);
        self.advance(number);
        true
    }

    /// Takes the results of cells back: they are wanted again.
    pub fn retract(&mut self, numbers: &[u32]) {
        for number in numbers {
            self.done.remove(number);
        }
        self.races.fill(Race::default());
        let CellPlan::Tournament(games) = &*self.plan else { return };
        let schedule = games.schedule();
        let firsts: Vec<u32> = (0..self.races.len()).map(|pairing| schedule.number(pairing, 0)).collect();
        for first in firsts {
            self.advance(first);
        }
    }

    /// Counts what has become a part of the prefix of a pairing.
    fn advance(&mut self, number: u32) {
        let CellPlan::Tournament(games) = &*self.plan else { return };
        let (schedule, sprt) = (games.schedule(), games.sprt());
        let pairing = schedule.batch(number).pairing;
        let race = &mut self.races[pairing];
        while race.verdict.is_none() && race.batches < schedule.rounds() {
            let next = self.done.get(&schedule.number(pairing, race.batches));
            let Some(CellResult::Played(pairs)) = next else { break };
            race.count(pairs, sprt.as_ref());
        }
    }

    /// Whether the result of a cell is still missing, and would count.
    pub fn wants(&self, number: u32) -> bool {
        number < self.plan.len() && !self.done.contains_key(&number) && self.counts(number)
    }

    /// Whether a cell counts, or may once it is done.
    pub fn counts(&self, number: u32) -> bool {
        match &*self.plan {
            CellPlan::Sweep(_) => true,
            CellPlan::Tournament(games) => {
                let batch = games.schedule().batch(number);
                self.races[batch.pairing].needs(batch.round)
            }
        }
    }

    /// The first cell from a number on that is still wanted.
    pub fn next(&self, from: u32) -> Option<u32> {
        (from..self.plan.len()).find(|&number| self.wants(number))
    }

    /// Whether nothing is missing any more.
    pub fn is_complete(&self) -> bool {
        match &*self.plan {
            CellPlan::Sweep(_) => self.done.len() as u32 == self.plan.len(),
            CellPlan::Tournament(games) => {
                let rounds = games.schedule().rounds();
                self.races.iter().all(|race| race.verdict.is_some() || race.batches == rounds)
            }
        }
    }

    /// The digest of the plan and all cells that count, once they are done.
    pub fn digest(&self) -> Option<Digest> {
        if !self.is_complete() {
            return None;
        }
        let name = match &*self.plan {
            CellPlan::Sweep(_) => "atoll sweep digest",
            CellPlan::Tournament(_) => "atoll tournament digest",
        };
        let counted =
            self.done.iter().filter(|(number, _)| self.counts(**number) && self.plan.is_pure(**number));
        let parts: Vec<Digest> =
            std::iter::once(self.plan.digest()).chain(counted.map(|(_, result)| result.digest())).collect();
        Some(Digest::of_parts(name, parts.iter().map(|digest| &digest.0[..])))
    }

    /// Cells that are done; of a sweep also what they came to, of a tournament the games.
    pub fn standing(&self) -> Standing {
        let mut standing = Standing { generation: self.done.len() as u64, ..Standing::UNFOUNDED };
        for result in self.done.values() {
            match result {
                CellResult::Evolved(evolved) => {
                    standing.evaluations = standing.evaluations.saturating_add(evolved.evaluations);
                    standing.best = standing.best.max(evolved.best);
                }
                CellResult::Played(pairs) => standing.evaluations += 2 * pairs.len() as u64,
            }
        }
        standing
    }

    /// Of a sweep: what its cells came to, in order.
    pub fn evolved(&self) -> Vec<&Evolved> {
        let results = self.done.values();
        let evolved = results.filter_map(|result| match result {
            CellResult::Evolved(evolved) => Some(evolved),
            CellResult::Played(_) => None,
        });
        evolved.collect()
    }

    /// Of a tournament: how far each pairing is.
    pub fn races(&self) -> &[Race] {
        &self.races
    }

    /// Of a tournament: what came out between each two, as far as it counts.
    pub fn cross_table(&self) -> CrossTable {
        let CellPlan::Tournament(games) = &*self.plan else { return CrossTable::default() };
        let mut table = CrossTable::new(games.players().len());
        for (pairing, race) in games.schedule().pairings().iter().zip(&self.races) {
            table.add(*pairing, &race.tally);
        }
        table
    }

    /// Of a tournament: all pairs of games that count, with the pairing and the place of each.
    pub fn games(&self) -> impl Iterator<Item = (usize, usize, &PlayedPair)> {
        self.done.iter().flat_map(move |(&number, result)| {
            let (CellPlan::Tournament(games), CellResult::Played(pairs)) = (&*self.plan, result) else {
                return vec![];
            };
            let batch = games.schedule().batch(number);
            let counted = self.races[batch.pairing].tally.pair_count() as usize;
            let all = batch.pairs.clone().zip(pairs).filter(|(place, _)| *place < counted);
            all.map(|(place, pair)| (batch.pairing, place, pair)).collect()
        })
    }
}
