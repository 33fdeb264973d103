//! `OneMax`: how many genes are a certain symbol. The cheapest problem there is, so it measures the engine.

use evolution::gene::{Alphabet, Shape};
use evolution::population::{Cost, Population};
use evolution::problem::{Judging, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Count the genes that are symbol 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OneMax {
    /// Genes in a genome.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub length: u32,
    /// Different symbols.
    #[schemars(range(min = 2, max = 256))]
    pub symbols: u16,
    /// Extra computation of no consequence for each evaluation, in steps of about a nanosecond: a load for tests and
    /// benches.
    #[serde(skip_serializing_if = "is_nothing")]
    #[schemars(range(min = 0, max = 1_000_000_000_000u64), extend("default" = 0))]
    pub work: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_nothing(work: &u64) -> bool {
    *work == 0
}

impl Default for OneMax {
    fn default() -> Self {
        Self { length: 50, symbols: 2, work: 0 }
    }
}

impl Problem for OneMax {
    type Gene = u8;

    fn shape(&self) -> Shape<u8> {
        Shape { length: self.length as usize, domain: Alphabet(self.symbols) }
    }

    fn judge(&self, population: &mut Population<u8>, judging: &Judging) -> u64 {
        population.judge_each(judging.fresh.clone(), self.cost(), |_, genome, _| {
            toil(self.work);
            f64::from(ones(genome))
        })
    }

    fn cost(&self) -> Cost {
        Cost { nanoseconds: u64::from(self.length / 16 + 4) + self.work }
    }
}

/// How many genes are 1, counted in bytes that cannot overflow, so that the loop becomes vectors.
#[inline]
fn ones(genome: &[u8]) -> u32 {
    let count = |block: &[u8]| block.iter().map(|&gene| u8::from(gene == 1)).sum::<u8>();
    genome.chunks(128).map(|block| u32::from(count(block))).sum()
}

/// A chain of steps; each waits for the previous one.
fn toil(steps: u64) {
    let end = (0..steps).fold(0, |state: u64, step| (state ^ step).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    std::hint::black_box(end);
}
