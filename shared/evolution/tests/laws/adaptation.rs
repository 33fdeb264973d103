//! The strategies that adapt their distribution, beside their papers: step by step, and by what they can do.

use crate::settings::alone;
use evolution::algorithm::{Algorithm, Cma, Es, Recombination, Survival, Weighting};
use evolution::gene::{Interval, Shape};
use evolution::island::{Island, IslandSetting, Setting};
use evolution::migration::{Policy, Replacement};
use evolution::population::{Cost, Population};
use evolution::problem::{Judging, Problem};
use evolution::random::{Key, Purpose};
use evolution::topology::Topology;

/// A bowl that is steep along some directions and flat along others.
#[derive(Clone, Copy, Debug)]
enum Valley {
    /// Axis after axis up to a million times as steep.
    Ellipsoid { dimensions: usize },
    /// Flat along one direction between the axes, a million times as steep along all others.
    Cigar { dimensions: usize },
}

impl Valley {
    fn depth(self, genome: &[f64]) -> f64 {
        match self {
            Self::Ellipsoid { dimensions } => {
                let steep = |at: usize| 1e6f64.powf(at as f64 / (dimensions - 1) as f64);
                genome.iter().enumerate().map(|(at, x)| steep(at) * x * x).sum()
            }
            Self::Cigar { dimensions } => {
                let along = genome.iter().sum::<f64>() / (dimensions as f64).sqrt();
                let all: f64 = genome.iter().map(|x| x * x).sum();
                1e6 * (all - along * along) + along * along
            }
        }
    }
}

impl Problem for Valley {
    type Gene = f64;

    fn shape(&self) -> Shape<f64> {
        let (Self::Ellipsoid { dimensions } | Self::Cigar { dimensions }) = *self;
        Shape { length: dimensions, domain: Interval { low: -1e3, high: 1e3 } }
    }

    fn judge(&self, population: &mut Population<f64>, judging: &Judging) -> u64 {
        population.judge_each(judging.fresh.clone(), self.cost(), |_, genome, _| -self.depth(genome))
    }

    fn cost(&self) -> Cost {
        Cost { nanoseconds: 100 }
    }

    /// Not at the optimum, and not far from each other.
    fn found(
        &self,
        _: evolution::problem::Founder,
        genome: &mut [f64],
        stream: &mut evolution::random::Stream,
    ) {
        genome.fill_with(|| 1.0 + 0.1 * stream.gaussian());
    }
}

/// One algorithm of a paper, as it stands there, with the normal vectors at hand from which children were made.
struct Textbook {
    is_separable: bool,
    parents: usize,
    offspring: usize,
    sigma: f64,
    mean: Vec<f64>,
    path: Vec<f64>,
    /// sep-CMA-ES: the path and the diagonal of the covariance. LM-MA-ES: its directions.
    vectors: Vec<Vec<f64>>,
    generation: u64,
}

fn norm(vector: &[f64]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}

impl Textbook {
    fn new(is_separable: bool, cma: &Cma, mean: Vec<f64>) -> Self {
        let n = mean.len();
        let directions = 4 + (3.0 * (n as f64).ln()).floor() as usize;
        Self {
            is_separable,
            parents: cma.parents as usize,
            offspring: cma.offspring as usize,
            sigma: cma.sigma,
            path: vec![0.0; n],
            vectors: if is_separable {
                vec![vec![0.0; n], vec![1.0; n]]
            } else {
                vec![vec![0.0; n]; directions]
            },
            mean,
            generation: 0,
        }
    }

    fn drawn(&self, normal: &[f64]) -> Vec<f64> {
        let n = normal.len() as f64;
        if self.is_separable {
            return normal.iter().zip(&self.vectors[1]).map(|(z, variance)| z * variance.sqrt()).collect();
        }
        let mut drawn = normal.to_vec();
        for (number, direction) in self.vectors.iter().enumerate().take(self.generation as usize) {
            let pace = (1.0 / (1.5f64.powi(number as i32) * n)).min(0.5);
            let along: f64 = drawn.iter().zip(direction).map(|(d, m)| d * m).sum();
            drawn = drawn.iter().zip(direction).map(|(d, m)| (1.0 - pace) * d + pace * along * m).collect();
        }
        drawn
    }

    /// One generation. Returns the children's places.
    fn generation(&mut self, seed: u64, depth: impl Fn(&[f64]) -> f64) -> Vec<Vec<f64>> {
        let n = self.mean.len() as f64;
        let key = Key::new(seed, 0, self.generation + 1);
        let normals: Vec<Vec<f64>> = (0..self.offspring)
            .map(|child| {
                let mut stream = key.stream(child, Purpose::Variation);
                self.mean.iter().map(|_| stream.gaussian()).collect()
            })
            .collect();
        let places: Vec<Vec<f64>> = normals
            .iter()
            .map(|normal| {
                self.mean.iter().zip(self.drawn(normal)).map(|(mean, d)| mean + self.sigma * d).collect()
            })
            .collect();
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by(|one, other| depth(&places[*one]).total_cmp(&depth(&places[*other])));
        let raw: Vec<f64> = (0..self.parents)
            .map(|rank| (self.parents as f64 + 0.5).ln() - ((rank + 1) as f64).ln())
            .collect();
        let all: f64 = raw.iter().sum();
        let weights: Vec<f64> = raw.iter().map(|weight| weight / all).collect();
        let effective = 1.0 / weights.iter().map(|weight| weight * weight).sum::<f64>();
        let mut normal = vec![0.0; self.mean.len()];
        let mut step = vec![0.0; self.mean.len()];
        let mut squares = vec![0.0; self.mean.len()];
        for (rank, weight) in weights.iter().enumerate() {
            let z = &normals[order[rank]];
            let shortened = ((n.sqrt() + 2.0 * n / (n + 2.0)) / norm(z)).min(1.0);
            let z: Vec<f64> = z.iter().map(|z| shortened * z).collect();
            for (at, (z, d)) in z.iter().zip(self.drawn(&z)).enumerate() {
                normal[at] += weight * z;
                step[at] += weight * d;
                squares[at] += weight * d * d;
            }
        }
        for (mean, step) in self.mean.iter_mut().zip(&step) {
            *mean += self.sigma * step;
        }
        self.generation += 1;
        let walk = |path: &mut Vec<f64>, step: &[f64], pace: f64| {
            for (value, step) in path.iter_mut().zip(step) {
                *value = (1.0 - pace) * *value + (effective * pace * (2.0 - pace)).sqrt() * step;
            }
        };
        if !self.is_separable {
            let pace = (2.0 * self.offspring as f64 / n).min(1.0);
            walk(&mut self.path, &normal, pace);
            for (number, direction) in self.vectors.iter_mut().enumerate() {
                walk(direction, &normal, (self.offspring as f64 / (4f64.powi(number as i32) * n)).min(1.0));
            }
            self.sigma *= (pace / 2.0 * (norm(&self.path).powi(2) / n - 1.0)).min(1.0).exp();
            return places;
        }
        let pace = (effective + 2.0) / (n + effective + 5.0);
        let damping = 1.0 + 2.0 * (((effective - 1.0) / (n + 1.0)).max(0.0).sqrt() - 1.0).max(0.0) + pace;
        let expected = n.sqrt() * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n));
        walk(&mut self.path, &normal, pace);
        let settled = (1.0 - (1.0 - pace).powi(2 * self.generation as i32)).sqrt();
        let moves = norm(&self.path) / settled < (1.4 + 2.0 / (n + 1.0)) * expected;
        let slowly = (4.0 + effective / n) / (n + 4.0 + 2.0 * effective / n);
        walk(&mut self.vectors[0], &if moves { step } else { vec![0.0; squares.len()] }, slowly);
        let factor = (n + 2.0) / 3.0;
        let c1 = (factor * 2.0 / ((n + 1.3).powi(2) + effective)).min(1.0);
        let cmu = factor * 2.0 * (effective - 2.0 + 1.0 / effective) / ((n + 2.0).powi(2) + effective);
        let cmu = cmu.clamp(0.0, 1.0 - c1);
        let missed = if moves { 0.0 } else { slowly * (2.0 - slowly) };
        let [path, variances] = &mut self.vectors[..] else { unreachable!("a path and the variances") };
        for ((variance, path), square) in variances.iter_mut().zip(path).zip(&squares) {
            *variance =
                (1.0 - c1 - cmu) * *variance + c1 * (*path * *path + missed * *variance) + cmu * square;
        }
        self.sigma *= (pace / damping * (norm(&self.path) / expected - 1.0)).min(1.0).exp();
        places
    }
}

#[test]
fn every_generation_is_that_of_the_papers() {
    for (is_separable, seed) in [(true, 1), (true, 2), (false, 1), (false, 2)] {
        let cma = Cma { parents: 6, offspring: 14, sigma: 0.3 };
        let algorithm =
            if is_separable { Algorithm::SepCma(cma.clone()) } else { Algorithm::LmMa(cma.clone()) };
        let valley = Valley::Ellipsoid { dimensions: 25 };
        let setting = alone(seed, &algorithm);
        let mut island = Island::found(&valley, &setting, 0);
        let best = island.population().leaders(1)[0] as usize;
        let mut textbook = Textbook::new(is_separable, &cma, island.population().genome(best).to_vec());
        for generation in 1..=60 {
            island.generation();
            let mut expected = textbook.generation(seed, |place| valley.depth(place));
            expected.sort_by(|one, other| valley.depth(one).total_cmp(&valley.depth(other)));
            for (place, expected) in expected.iter().take(6).enumerate() {
                let found = island.population().genome(place);
                let away: Vec<f64> = found.iter().zip(expected).map(|(one, other)| one - other).collect();
                assert!(
                    norm(&away) < 1e-8 * norm(expected),
                    "separable {is_separable}, generation {generation}"
                );
            }
        }
    }
}

/// How deep an algorithm comes in this number of evaluations.
fn depth_after(valley: Valley, algorithm: &Algorithm, evaluations: u64) -> f64 {
    let setting = alone(7, algorithm);
    let mut island = Island::found(&valley, &setting, 0);
    while island.evaluations() < evaluations {
        island.generation();
    }
    -island.champion().fitness
}

#[test]
fn each_model_learns_the_valleys_that_it_can_describe() {
    let cma = Cma { parents: 8, offspring: 16, sigma: 0.3 };
    let (separable, limited) = (Algorithm::SepCma(cma.clone()), Algorithm::LmMa(cma));
    let around_the_mean = Algorithm::Es(Es {
        parents: 8,
        offspring: 16,
        sigma: 0.3,
        recombination: Recombination::Intermediate,
        survival: Survival::Comma,
        weighting: Weighting::Rank,
        ..Es::default()
    });
    let axes = Valley::Ellipsoid { dimensions: 40 };
    let between = Valley::Cigar { dimensions: 40 };
    let all = [&separable, &limited, &around_the_mean];
    let [ellipsoid, cigar] =
        [axes, between].map(|valley| all.map(|algorithm| depth_after(valley, algorithm, 150_000)));
    assert!(ellipsoid[0] < 1e-20 && ellipsoid[1] > 1e-6, "ellipsoid: {ellipsoid:?}");
    assert!(cigar[1] < 1e-3 && cigar[0] > 10.0 && cigar[2] > 10.0, "cigar: {cigar:?}");
}

/// An immigrant that stands where nothing was drawn pulls the mean towards it, and does not blow up the step size.
#[test]
fn immigrants_are_learnt_from_once_and_with_a_bound() {
    let valley = Valley::Ellipsoid { dimensions: 10 };
    let policy = Policy { count: 1, replacement: Replacement::Worst, ..Policy::default() };
    for kind in [Algorithm::SepCma, Algorithm::LmMa] {
        let own = |sigma| IslandSetting {
            algorithm: kind(Cma { parents: 6, offspring: 12, sigma }),
            policy: policy.clone(),
            exploits: false,
        };
        let edges = Topology::Ring.edges(2, 1).unwrap();
        let setting = Setting { seed: 1, islands: vec![own(1e-3), own(1e-3)], edges, opponents: vec![] };
        let mut island = Island::found(&valley, &setting, 0);
        let mut other = Island::found(&valley, &setting, 1);
        for _ in 0..20 {
            island.generation();
        }
        for _ in 0..2000 {
            other.generation();
        }
        let before = -island.champion().fitness;
        let departure = other.depart(0);
        let emigrants = Population::unpack(departure.emigrants, valley.shape(), 0).unwrap();
        let arrived = evolution::migration::Immigrants { from: 1, epoch: 0, individuals: emigrants };
        island.receive(vec![arrived]);
        island.generation();
        let spread = |island: &Island<'_, Valley>| {
            let first = island.population().genome(0);
            let away = |index: usize| {
                let genome = island.population().genome(index);
                norm(&genome.iter().zip(first).map(|(one, other)| one - other).collect::<Vec<_>>())
            };
            (1..island.population().len()).map(away).fold(0.0, f64::max)
        };
        for _ in 0..3 {
            island.generation();
        }
        assert!(spread(&island) < 1.0, "steps stay small: {}", spread(&island));
        for _ in 0..3000 {
            island.generation();
        }
        assert!(-island.champion().fitness < 1e-3 * before, "evolution continues");
    }
}
