//! Simulated players, from the weakest to the strongest.

use crate::engine::{Engine, State, Swap};
use crate::random::Stream;
use crate::word::Word;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use thiserror::Error;

/// How a simulated player chooses a move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Player {
    /// A random block, moved in a random direction; over the edge the move is lost.
    #[default]
    Random,
    /// The move that scores most at once (the first of equals); a random one where none scores.
    Greedy,
    /// The first move of the `depth` moves that score most together; a random one where none score.
    LookAhead {
        /// Plies that it looks ahead.
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 3)))]
        depth: u8,
    },
    /// Greedy with probability `skill`, random otherwise, decided at each move.
    Mixture {
        /// From 0 (random) to 1 (greedy).
        skill: f64,
    },
}

/// Why a player cannot play.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PlayerError {
    /// Too deep to ever finish, or not deep enough to be one.
    #[error("expected a look-ahead of 1 to {deepest} plies, found `{found}`", deepest = Player::DEEPEST)]
    Depth {
        /// The depth asked for.
        found: u8,
    },
    /// No share.
    #[error("expected a skill from 0 to 1, found `{found}`")]
    Skill {
        /// The skill asked for.
        found: f64,
    },
    /// No player of this name.
    #[error("expected `random`, `greedy`, `look-ahead:DEPTH` or `mixture:SKILL`, found `{found}`")]
    Name {
        /// The name given.
        found: String,
    },
}

impl Player {
    /// Each ply of look-ahead costs some eighty times more than the one before.
    pub const DEEPEST: u8 = 3;

    /// Says why this player cannot play, if so.
    ///
    /// # Errors
    /// A look-ahead or a skill out of range.
    pub fn check(self) -> Result<(), PlayerError> {
        match self {
            Self::LookAhead { depth: found } if !(1..=Self::DEEPEST).contains(&found) => {
                Err(PlayerError::Depth { found })
            }
            Self::Mixture { skill: found } if !(0.0..=1.0).contains(&found) => {
                Err(PlayerError::Skill { found })
            }
            _ => Ok(()),
        }
    }

    /// The next move; none when no block is left.
    #[inline]
    pub(crate) fn choose<W: Word>(
        self,
        engine: &Engine<W>,
        state: &State<W>,
        stream: &mut Stream,
    ) -> Option<Swap<W>> {
        let ahead = match self {
            Self::Random => 0,
            Self::Greedy => 1,
            Self::LookAhead { depth } => depth,
            Self::Mixture { skill } => u8::from(is_skilled(skill, stream)),
        };
        let random = stream.next_u64();
        best(engine, state, ahead).or_else(|| engine.random_swap(&state.planes, random))
    }
}

impl FromStr for Player {
    type Err = PlayerError;

    /// Reads `random`, `greedy`, `look-ahead:2` or `mixture:0.5`.
    fn from_str(text: &str) -> Result<Self, PlayerError> {
        let unknown = || PlayerError::Name { found: text.to_owned() };
        let player = match text.split_once(':') {
            None if text == "random" => Self::Random,
            None if text == "greedy" => Self::Greedy,
            Some(("look-ahead", depth)) => Self::LookAhead { depth: depth.parse().map_err(|_| unknown())? },
            Some(("mixture", skill)) => Self::Mixture { skill: skill.parse().map_err(|_| unknown())? },
            _ => return Err(unknown()),
        };
        player.check()?;
        Ok(player)
    }
}

fn is_skilled(skill: f64, stream: &mut Stream) -> bool {
    f64::from(stream.below(1 << 20)) < skill * f64::from(1 << 20)
}

/// The swap that begins the best `depth` moves, if any of them scores.
fn best<W: Word>(engine: &Engine<W>, state: &State<W>, depth: u8) -> Option<Swap<W>> {
    if depth == 0 {
        return None;
    }
    // A player does not know what will fall in from above.
    let known = State { planes: state.planes, supply: None };
    let mut best = Prospect::default();
    let mut choice = None;
    for swap in engine.swaps(&state.planes) {
        let prospect = prospect(engine, &known, swap, depth);
        if prospect > best {
            best = prospect;
            choice = Some(swap);
        }
    }
    choice
}

/// What a move promises. Of equal totals the one that scores sooner is better, or a player might put it off for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
struct Prospect {
    total: f64,
    at_once: f64,
}

fn prospect<W: Word>(engine: &Engine<W>, state: &State<W>, swap: Swap<W>, depth: u8) -> Prospect {
    let mut after = state.clone();
    let at_once = engine.score(engine.play(&mut after, swap));
    let later = if depth > 1 { best_total(engine, &after, depth - 1) } else { 0.0 };
    Prospect { total: at_once + later, at_once }
}

fn best_total<W: Word>(engine: &Engine<W>, state: &State<W>, depth: u8) -> f64 {
    let totals = engine.swaps(&state.planes).map(|swap| prospect(engine, state, swap, depth).total);
    totals.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_are_read_by_name() {
        assert_eq!("random".parse(), Ok(Player::Random));
        assert_eq!("look-ahead:2".parse(), Ok(Player::LookAhead { depth: 2 }));
        assert_eq!("mixture:0.25".parse(), Ok(Player::Mixture { skill: 0.25 }));
        let error = |text: &str| text.parse::<Player>().unwrap_err().to_string();
        assert_eq!(error("look-ahead:4"), "expected a look-ahead of 1 to 3 plies, found `4`");
        assert_eq!(error("mixture:NaN"), "expected a skill from 0 to 1, found `NaN`");
        for text in ["", "lucky", "greedy:1", "mixture:", "look-ahead:-1"] {
            assert!(error(text).ends_with(&format!("found `{text}`")));
        }
    }
}
