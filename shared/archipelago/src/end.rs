//! Where and why a run ends.

use bincode::{Decode, Encode};

/// Where and why a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode)]
pub struct End {
    /// The last epoch that counts.
    pub epoch: u64,
    /// Why it is the last.
    pub reason: Reason,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
pub enum Reason {
    /// The budget's generations were done.
    Generations,
    /// The budget's evaluations were spent.
    Evaluations,
    /// A champion reached the target.
    Target,
    /// No champion had become better for long enough.
    Stagnation,
    /// The time was up: a decision, which is written down before it is acted on.
    WallTime,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Generations => "generation limit reached",
            Self::Evaluations => "evaluation limit reached",
            Self::Target => "target fitness reached",
            Self::Stagnation => "stagnation limit reached",
            Self::WallTime => "time limit reached",
        })
    }
}

impl Reason {
    const ALL: [Self; 5] =
        [Self::Generations, Self::Evaluations, Self::Target, Self::Stagnation, Self::WallTime];

    /// What the reason was called before: summaries of stored runs contain these words.
    fn former_words(self) -> &'static str {
        match self {
            Self::Generations => "all generations are done",
            Self::Evaluations => "the evaluations are spent",
            Self::Target => "the target fitness is reached",
            Self::Stagnation => "no champion has become better",
            Self::WallTime => "the time is up",
        }
    }

    /// The reason that these words stand for.
    pub fn from_words(words: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.to_string() == words || reason.former_words() == words)
    }
}
