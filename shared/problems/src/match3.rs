//! Match-3 boards of a wanted pass rate: a genome is a board, or the seed of one.

use crate::ProblemError;
use ::match3::{Board, Game, Level, Player, Rating, Rules, Sampling, Target};
use evolution::gene::{Alphabet, Gene, Shape};
use evolution::population::{Cost, Population};
use evolution::problem::{Axis, Breeder, Judging, Problem};
use evolution::random::{Chance, Stream, mix};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Make Match-3 boards of a wanted pass rate. Fitness is 1 less the distance between the wanted probability of passing
/// and what simulated plays say of it: its normal estimate, or the share of plays that passed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Match3 {
    /// The rules of the game.
    pub rules: Rules,
    /// What a genome is.
    pub genome: Genome,
    /// Who plays the boards.
    pub player: Player,
    /// The wanted probabilities of passing; the nearest of them counts. Several make a ladder, which an archive can fill
    /// in one run. A number is compared with the normal estimate of the published study, `{ passed = 0.85 }` with the
    /// share of plays that really pass.
    #[schemars(length(min = 1, max = 1000))]
    pub targets: Vec<Target>,
    /// A single target in place of `targets`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// How often a board is played.
    pub plays: Plays,
}

/// What a genome is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Genome {
    /// The 32 bits of a number that seeds all colours.
    Seed,
    /// A colour for each cell, with operators that know how cells lie beside each other.
    Cells(BoardOperators),
}

/// How boards are varied.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BoardOperators {
    /// Which cells a child takes from its second parent.
    pub crossing: Crossing,
    /// The share of children that take cells from a second parent.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub cross: f64,
    /// Largest number of cells of a child that get a random colour.
    #[schemars(range(min = 0, max = 128))]
    pub recolour: u32,
    /// Largest number of pairs of cells of a child that are swapped.
    #[schemars(range(min = 0, max = 128))]
    pub swap: u32,
}

/// Which cells a child takes from its second parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Crossing {
    /// Neighbouring rows.
    Rows,
    /// A rectangle of cells.
    Regions,
    /// Those that the algorithm's crossover and mutation choose, without regard to rows; the other keys are ignored.
    Genes,
}

/// How often a board is played: less if it is hopeless, more if it comes near a target. Each board meets moves of its own,
/// always the same ones: it has one fitness on every worker at any time, and a search cannot adapt boards to the moves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Plays {
    /// Every board is played at least this many times.
    #[schemars(range(min = 2, max = 10_000_000))]
    pub least: u32,
    /// No board is played more often.
    #[schemars(range(min = 2, max = 10_000_000))]
    pub most: u32,
    /// Stop playing a board once its fitness is surely below this.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub worth: f64,
    /// Stop playing a board once the standard error of its estimate is below this.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub precision: f64,
    /// The seed of the plays, with the board.
    pub seed: u64,
}

impl Default for Match3 {
    fn default() -> Self {
        Self {
            rules: Rules::default(),
            genome: Genome::Cells(BoardOperators::default()),
            player: Player::Random,
            targets: vec![Target::Estimate(0.7)],
            target: None,
            plays: Plays::default(),
        }
    }
}

impl Default for BoardOperators {
    fn default() -> Self {
        Self { crossing: Crossing::Regions, cross: 0.7, recolour: 3, swap: 2 }
    }
}

impl Default for Plays {
    fn default() -> Self {
        Self { least: 256, most: 65_536, worth: 0.998, precision: 0.001, seed: 1 }
    }
}

impl Match3 {
    pub(crate) fn problem(&self) -> Result<Boards, ProblemError> {
        let game = Game::new(&self.rules).map_err(|error| ProblemError::new("problem.rules", &error))?;
        self.player.check().map_err(|error| ProblemError::new("problem.player", &error))?;
        self.check_targets()?;
        let Plays { least, most, .. } = self.plays;
        if least > most {
            let message = format!("expected no more plays than the {most} of `plays.most`, found `{least}`");
            return Err(ProblemError::new("problem.plays.least", &message));
        }
        Ok(Boards { spec: self.clone(), game })
    }

    fn check_targets(&self) -> Result<(), ProblemError> {
        let key = if self.target.is_some() { "problem.target" } else { "problem.targets" };
        if self.target.is_some() && self.targets != Self::default().targets {
            return Err(ProblemError::new(key, &"expected `target` or `targets`, found both"));
        }
        if self.wanted().is_empty() {
            return Err(ProblemError::new(key, &"expected at least one target, found none"));
        }
        let values = self.wanted().iter().map(|target| target.value());
        match values.into_iter().find(|value| !(0.0..=1.0).contains(value)) {
            None => Ok(()),
            Some(found) => {
                let message = format!("expected probabilities of passing from 0 to 1, found `{found}`");
                Err(ProblemError::new(key, &message))
            }
        }
    }

    /// All targets.
    pub fn wanted(&self) -> &[Target] {
        self.target.as_ref().map_or(&self.targets, std::slice::from_ref)
    }

    /// The number of the target that a rating comes nearest to, the first of equals.
    pub fn nearest(&self, rating: &Rating) -> usize {
        let fitness = |index: usize| self.wanted()[index].fitness(rating);
        (1..self.wanted().len())
            .fold(0, |nearest, index| if fitness(index) > fitness(nearest) { index } else { nearest })
    }

    /// The level of an exported genome.
    pub fn level(&self, genome: &[f64]) -> Result<Level, ProblemError> {
        let genes: Vec<u8> = genome.iter().map(|&gene| gene as u8).collect();
        let refused = |error: &dyn std::fmt::Display| ProblemError::new("problem.rules", error);
        let board = self.board(&genes).map_err(|error| refused(&error))?;
        Level::new(self.rules.clone(), board).map_err(|error| refused(&error))
    }

    /// The 32-bit seed of an exported genome, where genomes are seeds.
    pub fn seed(&self, genome: &[f64]) -> Option<u32> {
        let bit = |seed: u32, &gene: &f64| seed << 1 | u32::from(gene != 0.0);
        (self.genome == Genome::Seed).then(|| genome.iter().fold(0, bit))
    }

    fn board(&self, genes: &[u8]) -> Result<Board, ::match3::BoardError> {
        match self.genome {
            Genome::Seed => {
                let bit = |seed: u32, &gene: &u8| seed << 1 | u32::from(gene);
                Ok(Board::from_seed(&self.rules, genes.iter().fold(0, bit)))
            }
            Genome::Cells(_) => Board::from_genes(&self.rules, genes),
        }
    }

    /// The target that a rating comes nearest to.
    fn nearest_target(&self, rating: &Rating) -> Target {
        self.wanted()[self.nearest(rating)]
    }

    pub(crate) fn show(&self, genome: &[f64]) -> String {
        let Ok(level) = self.level(genome) else { return String::new() };
        let rows: Vec<String> = level.board.to_string().lines().map(str::to_owned).collect();
        match self.seed(genome) {
            Some(seed) => format!("{} (seed {seed})", rows.join("/")),
            None => rows.join("/"),
        }
    }
}

/// Match-3 boards as a problem to evolve.
pub(crate) struct Boards {
    spec: Match3,
    game: Game,
}

impl Boards {
    fn rate(&self, genes: &[u8]) -> Rating {
        let board = self.spec.board(genes).expect("genomes have the board's length");
        let (player, plays) = (self.spec.player, self.spec.plays);
        let seed = genes.iter().fold(plays.seed, |seed, gene| mix(seed ^ u64::from(*gene)).wrapping_add(1));
        // With several targets a first look finds the nearest of them.
        let target = if let [only] = *self.spec.wanted() {
            only
        } else {
            let first = self.game.rate(&board, player, seed, plays.least);
            self.spec.nearest_target(&first.expect("rules and player were checked"))
        };
        let Plays { least, most, worth, precision, .. } = plays;
        let sampling = Sampling { target, worth, precision, least, most };
        self.game.rate_for(&board, player, seed, &sampling).expect("rules and player were checked")
    }

    fn operators(&self) -> Option<BoardOperators> {
        match self.spec.genome {
            Genome::Cells(operators) if operators.crossing != Crossing::Genes => Some(operators),
            _ => None,
        }
    }

    /// The cells, row by row, that a child has of its second parent.
    fn region(&self, crossing: Crossing, stream: &mut Stream) -> [std::ops::Range<usize>; 2] {
        let (width, height) = (self.spec.rules.width.into(), self.spec.rules.height.into());
        let rows = stretch(height, stream);
        match crossing {
            Crossing::Regions => [stretch(width, stream), rows],
            Crossing::Rows | Crossing::Genes => [0..width, rows],
        }
    }
}

/// A part of a side, neither nothing nor more than half of it.
fn stretch(side: usize, stream: &mut Stream) -> std::ops::Range<usize> {
    let length = 1 + stream.below(side.div_ceil(2));
    let from = stream.below(side - length + 1);
    from..from + length
}

impl Breeder<u8> for Boards {
    fn breed(&self, mother: &[u8], father: &[u8], child: &mut [u8], stream: &mut Stream) {
        let Some(BoardOperators { crossing, cross, recolour, swap }) = self.operators() else { return };
        child.copy_from_slice(mother);
        if stream.chance(Chance::new(cross)) {
            let [columns, rows] = self.region(crossing, stream);
            for row in rows {
                let start = row * usize::from(self.spec.rules.width);
                let cells = start + columns.start..start + columns.end;
                child[cells.clone()].copy_from_slice(&father[cells]);
            }
        }
        for _ in 0..stream.below(recolour as usize + 1) {
            child[stream.below(child.len())] = u8::random(self.shape().domain, stream);
        }
        for _ in 0..stream.below(swap as usize + 1) {
            child.swap(stream.below(child.len()), stream.below(child.len()));
        }
    }

    fn cost(&self) -> Cost {
        Cost { nanoseconds: 100 }
    }
}

impl Problem for Boards {
    type Gene = u8;

    fn shape(&self) -> Shape<u8> {
        match self.spec.genome {
            Genome::Seed => Shape { length: 32, domain: Alphabet(2) },
            Genome::Cells(_) => {
                let rules = &self.spec.rules;
                Shape { length: rules.cells(), domain: Alphabet(rules.colours.into()) }
            }
        }
    }

    fn judge(&self, population: &mut Population<u8>, judging: &Judging) -> u64 {
        let cost = Problem::cost(self);
        population.judge_each(judging.fresh.clone(), cost, |_, genes, descriptors| {
            let rating = self.rate(genes);
            let target = self.spec.nearest_target(&rating);
            descriptors.copy_from_slice(&[target.measure(&rating) as f32, rating.cascade as f32]);
            target.fitness(&rating)
        })
    }

    fn cost(&self) -> Cost {
        let a_move = match self.spec.player {
            Player::Random => 20,
            Player::Greedy | Player::Mixture { .. } => 2_000,
            Player::LookAhead { depth } => 80_u64.pow(depth.into()) * 25,
        };
        // Of the boards of a search about one in four comes near enough to a target to be played more than least.
        let plays = u64::from(self.spec.plays.least) + u64::from(self.spec.plays.most) / 8;
        Cost { nanoseconds: a_move * u64::from(self.spec.rules.moves) * plays }
    }

    fn breeder(&self) -> Option<&dyn Breeder<u8>> {
        self.operators().map(|_| self as &dyn Breeder<u8>)
    }

    fn axes(&self) -> Vec<Axis> {
        vec![Axis { name: "pass rate", low: 0.0, high: 1.0 }, Axis { name: "cascade", low: 1.0, high: 1.5 }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProblemSpec;

    fn refusal(spec: Match3) -> (String, String) {
        let error = ProblemSpec::Match3(spec).traits().expect_err("there are no such boards");
        (error.key, error.message)
    }

    #[test]
    fn what_cannot_be_is_refused_at_its_key() {
        let (key, message) = refusal(Match3 {
            targets: vec![Target::Estimate(0.5), Target::Estimate(1.5)],
            ..Match3::default()
        });
        assert_eq!(
            (&*key, &*message),
            ("problem.targets", "expected probabilities of passing from 0 to 1, found `1.5`")
        );
        let (key, _) = refusal(Match3 { target: Some(Target::passed(-0.1)), ..Match3::default() });
        assert_eq!(key, "problem.target");
        let both = Match3 { target: Some(Target::passed(0.5)), targets: vec![], ..Match3::default() };
        assert_eq!(refusal(both).1, "expected `target` or `targets`, found both");
        let rules = Rules { colours: 9, ..Rules::default() };
        let (key, message) = refusal(Match3 { rules, ..Match3::default() });
        assert_eq!((&*key, &*message), ("problem.rules", "expected 1 to 7 colours, found `9`"));
        let plays = Plays { least: 9, most: 8, ..Plays::default() };
        assert_eq!(refusal(Match3 { plays, ..Match3::default() }).0, "problem.plays.least");
        let player = Player::Mixture { skill: 2.0 };
        assert_eq!(refusal(Match3 { player, ..Match3::default() }).0, "problem.player");
    }

    #[test]
    fn a_board_on_which_nothing_can_be_cleared_is_never_passed() {
        for (width, height, colours) in [(2, 2, 5), (5, 10, 1), (1, 1, 1)] {
            let rules = Rules { width, height, colours, ..Rules::default() };
            let boards = Match3 { rules, ..Match3::default() }.problem().unwrap();
            let rating = boards.rate(&vec![0; boards.shape().length]);
            assert_eq!((rating.estimate, Target::Estimate(0.7).fitness(&rating)), (0.0, 1.0 - 0.7));
        }
    }

    #[test]
    fn a_seed_is_the_number_that_its_genes_write() {
        let spec = Match3 { genome: Genome::Seed, ..Match3::default() };
        let mut genome = vec![0.0; 32];
        genome[31] = 1.0;
        genome[29] = 1.0;
        assert_eq!(spec.seed(&genome), Some(5));
        assert_eq!(spec.level(&genome).unwrap().board, Board::from_seed(&spec.rules, 5));
    }

    #[test]
    fn a_child_has_a_rectangle_of_its_second_parent() {
        let operators = BoardOperators { cross: 1.0, recolour: 0, swap: 0, ..BoardOperators::default() };
        let spec = Match3 { genome: Genome::Cells(operators), ..Match3::default() };
        let boards = spec.problem().unwrap();
        let key = evolution::random::Key::new(1, 0, 0);
        for number in 0..100 {
            let mut child = vec![9; 50];
            let mut stream = key.stream(number, evolution::random::Purpose::Variation);
            boards.breed(&[0; 50], &[1; 50], &mut child, &mut stream);
            let taken: Vec<usize> = (0..50).filter(|&cell| child[cell] == 1).collect();
            let columns: std::collections::BTreeSet<usize> = taken.iter().map(|cell| cell % 5).collect();
            let rows: std::collections::BTreeSet<usize> = taken.iter().map(|cell| cell / 5).collect();
            assert_eq!(taken.len(), columns.len() * rows.len());
            assert!((1..=3).contains(&columns.len()) && (1..=5).contains(&rows.len()));
        }
    }
}
