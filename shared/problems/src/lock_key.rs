//! Lock-and-key levels of a wanted difficulty: a genome is a level, solvable by construction.

use crate::ProblemError;
use crate::spare::Spare;
use evolution::gene::{Alphabet, Shape};
use evolution::population::{Chunk, Cost, Population};
use evolution::problem::{Axis, Judging, Problem};
use lockkey::{AStar, Blueprint, Builder, Difficulty, Level, Method, ProofVerdict, Rater};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Make lock-and-key levels of a wanted difficulty. Fitness is 1 where it is met, and falls with the distance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LockKey {
    /// What levels to make.
    pub level: Blueprint,
    /// The wanted difficulties; the nearest of them counts. Several make a ladder, which an archive can fill in one run.
    #[schemars(length(min = 1, max = 1000))]
    pub targets: Vec<u32>,
    /// How the nodes are counted that make the difficulty.
    pub count: Method,
    /// How A* chooses the next node.
    #[schemars(extend("default" = { "heuristic": "manhattan", "ties": "low-cell" }))]
    #[serde(skip_serializing_if = "AStar::is_default")]
    pub astar: AStar,
    /// Whether a level counts for nothing in which a player can lock themselves out, which only happens where colours
    /// are shared by several pairs.
    pub safe: bool,
}

impl Default for LockKey {
    fn default() -> Self {
        Self {
            level: Blueprint::default(),
            targets: vec![100],
            count: Method::Plain,
            astar: AStar::default(),
            safe: true,
        }
    }
}

/// Fitness of a level that does not count.
const WORST: f64 = -1e6;

impl LockKey {
    pub(crate) fn problem(&self) -> Result<LockKeyLevels, ProblemError> {
        let builder = Builder::new(self.level).map_err(|error| ProblemError::new("problem.level", &error))?;
        self.check_targets()?;
        Ok(LockKeyLevels { spec: self.clone(), builder, spare: Spare::default() })
    }

    /// A leg visits its start and goal at least, and every cell once at most.
    fn check_targets(&self) -> Result<(), ProblemError> {
        let (least, most) = (2 * self.legs(), self.cells() * self.legs());
        if self.targets.is_empty() {
            return Err(ProblemError::new("problem.targets", &"expected at least one target, found none"));
        }
        match self.targets.iter().find(|&&target| !(least..=most).contains(&target)) {
            None => Ok(()),
            Some(target) => {
                let message = format!(
                    "expected targets from {least} to {most}, the nodes that can be visited in {} legs, found `{target}`",
                    self.legs()
                );
                Err(ProblemError::new("problem.targets", &message))
            }
        }
    }

    fn cells(&self) -> u32 {
        u32::from(self.level.width) * u32::from(self.level.height)
    }

    /// From goal to goal; where colours are shared, the locks are goals too.
    fn legs(&self) -> u32 {
        let pairs = u32::from(self.level.pairs);
        if self.shares_colours() { 2 * pairs + 1 } else { pairs + 1 }
    }

    fn shares_colours(&self) -> bool {
        self.level.colours.is_some_and(|colours| colours < self.level.pairs)
    }

    /// The difficulty that is judged, of all figures.
    pub fn difficulty(&self, figures: &Difficulty) -> u32 {
        match self.count {
            Method::Plain => figures.plain,
            Method::Optimised => figures.optimised,
        }
    }

    /// 1 at the nearest target; how far from it, as a share of it, is taken away.
    pub fn fitness(&self, difficulty: u32) -> f64 {
        let miss = |&target: &u32| f64::from(target.abs_diff(difficulty)) / f64::from(target);
        1.0 - self.targets.iter().map(miss).fold(f64::INFINITY, f64::min)
    }

    /// The level of an exported genome.
    pub fn level(&self, genome: &[f64]) -> Result<Level, ProblemError> {
        let refused = |error| ProblemError::new("problem.level", &error);
        let genes: Vec<u8> = genome.iter().map(|&gene| gene as u8).collect();
        Ok(Builder::new(self.level).map_err(refused)?.build(&genes).map_err(refused)?.clone())
    }

    pub(crate) fn show(&self, genome: &[f64]) -> String {
        let figures = self.level(genome).ok().and_then(|level| level.difficulty_by(self.astar).ok());
        figures.map_or(String::new(), |figures| {
            let Difficulty { plain, optimised, steps, junctions } = figures;
            format!("{plain} nodes ({optimised} optimised), {steps} steps, {junctions} junctions")
        })
    }
}

/// Lock-and-key levels as a problem to evolve.
pub(crate) struct LockKeyLevels {
    spec: LockKey,
    builder: Builder,
    spare: Spare<(Builder, Rater)>,
}

impl LockKeyLevels {
    fn judge_chunk(&self, chunk: Chunk<'_, u8>) {
        let (length, stride) = (self.spec.level.genes(), chunk.stride());
        let Chunk { rows, fitness, descriptors, .. } = chunk;
        self.spare.lend(
            || (self.builder.clone(), Rater::new(self.spec.astar)),
            |(builder, rater)| {
                let rows = rows.chunks_exact(stride);
                let places = fitness.iter_mut().zip(descriptors.chunks_exact_mut(3));
                for ((fitness, descriptors), row) in places.zip(rows) {
                    let level = builder.build(&row[..length]).expect("genomes have the blueprint's length");
                    let figures = rater.difficulty(level).expect("levels are solvable by construction");
                    let difficulty = self.spec.difficulty(&figures);
                    descriptors.copy_from_slice(&[
                        difficulty as f32,
                        figures.steps as f32,
                        figures.junctions as f32,
                    ]);
                    *fitness = if self.counts(level) { self.spec.fitness(difficulty) } else { WORST };
                }
            },
        );
    }

    fn counts(&self, level: &Level) -> bool {
        let is_safe = || matches!(level.verdict(), ProofVerdict::Safe { .. });
        !self.spec.safe || !self.spec.shares_colours() || is_safe()
    }
}

impl Problem for LockKeyLevels {
    type Gene = u8;

    fn shape(&self) -> Shape<u8> {
        Shape { length: self.spec.level.genes(), domain: Alphabet(256) }
    }

    fn judge(&self, population: &mut Population<u8>, judging: &Judging) -> u64 {
        population.judge_chunks(judging.fresh.clone(), self.cost(), |chunk| self.judge_chunk(chunk))
    }

    fn cost(&self) -> Cost {
        let cells = u64::from(self.spec.cells());
        let proofs = if self.spec.shares_colours() { 1 << self.spec.level.pairs } else { 0 };
        Cost { nanoseconds: 60 * cells * u64::from(1 + self.spec.legs()) + 500 * proofs }
    }

    fn axes(&self) -> Vec<Axis> {
        let (cells, legs) = (self.spec.cells() as f32, self.spec.legs() as f32);
        vec![
            Axis { name: "difficulty", low: 0.0, high: cells * legs },
            Axis { name: "steps", low: 0.0, high: cells * legs / 2.0 },
            Axis { name: "junctions", low: 0.0, high: cells / 4.0 },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProblemSpec;

    fn refusal(spec: LockKey) -> ProblemError {
        ProblemSpec::LockKey(spec).traits().expect_err("there are no such levels")
    }

    #[test]
    fn what_cannot_be_is_refused_at_its_key() {
        let error = refusal(LockKey { targets: vec![100, 301], ..LockKey::default() });
        assert_eq!(error.key, "problem.targets");
        assert_eq!(
            error.to_string(),
            "expected targets from 6 to 300, the nodes that can be visited in 3 legs, found `301`"
        );
        assert_eq!(refusal(LockKey { targets: vec![], ..LockKey::default() }).key, "problem.targets");
        let tiny = Blueprint { width: 2, height: 2, ..Blueprint::default() };
        let error = refusal(LockKey { level: tiny, ..LockKey::default() });
        assert_eq!(error.key, "problem.level");
        assert!(error.to_string().contains("at most 0 pairs"), "{error}");
    }

    #[test]
    fn fitness_falls_with_the_distance_to_the_nearest_target() {
        let spec = LockKey { targets: vec![50, 200], ..LockKey::default() };
        assert_eq!(spec.fitness(50), 1.0);
        assert_eq!(spec.fitness(60), 0.8);
        assert_eq!(spec.fitness(220), 0.9);
        assert_eq!(spec.fitness(180), 0.9);
    }
}
