//! A game: checked rules, ready to play boards by.

use crate::board::{Board, BoardError};
use crate::engine::{Engine, State};
use crate::lanes;
use crate::planes::Field;
use crate::player::Player;
use crate::random::Stream;
use crate::rating::RateError;
use crate::rules::{Rules, RulesError};
use crate::word::Word;
use serde::{Deserialize, Serialize};

/// Rules that have been checked and prepared; everything is played through one of these.
#[derive(Clone, Debug)]
pub struct Game(Width);

/// Small boards fit in half the word, which is twice as fast.
#[derive(Clone, Debug)]
enum Width {
    Narrow(Engine<u64>),
    Wide(Engine<u128>),
}

/// Which way a block is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Towards the first row.
    Up,
    /// Towards the last column.
    Right,
    /// Towards the last row.
    Down,
    /// Towards the first column.
    Left,
}

/// A block and where to move it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// The block's column.
    pub x: u8,
    /// The block's row, from the top.
    pub y: u8,
    /// The way it goes.
    pub direction: Direction,
}

/// What a move did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Blocks removed, cascades included.
    pub removed: u32,
    /// How many times blocks were cleared: 1 without a cascade.
    pub waves: u16,
    /// What it scored.
    pub score: f64,
}

/// The sum of a whole play.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Play {
    /// Points of all moves.
    pub score: f64,
    /// Moves that cleared anything.
    pub scoring_moves: u32,
    /// How many times blocks were cleared, over all moves.
    pub waves: u32,
}

impl Game {
    /// Prepares these rules.
    ///
    /// # Errors
    /// What [`Rules::check`] finds.
    pub fn new(rules: &Rules) -> Result<Self, RulesError> {
        rules.check()?;
        let narrow = Field::<u64>::fits(rules.width.into(), rules.height.into());
        Ok(Self(if narrow { Width::Narrow(Engine::new(rules)) } else { Width::Wide(Engine::new(rules)) }))
    }

    /// The rules it is played by.
    pub fn rules(&self) -> &Rules {
        match &self.0 {
            Width::Narrow(engine) => &engine.rules,
            Width::Wide(engine) => &engine.rules,
        }
    }

    /// The board as it lies before the first move, and what its initial lines scored.
    ///
    /// `supply` gives the blocks that fall in from above, if the rules refill.
    ///
    /// # Errors
    /// When the board does not fit the rules.
    pub fn start(&self, board: &Board, supply: &mut Stream) -> Result<(Board, f64), BoardError> {
        board.check(self.rules())?;
        Ok(match &self.0 {
            Width::Narrow(engine) => start(engine, board, supply),
            Width::Wide(engine) => start(engine, board, supply),
        })
    }

    /// Plays one move on a board at rest; one that the rules do not allow does nothing.
    ///
    /// # Errors
    /// When the board does not fit the rules.
    pub fn play(&self, board: &mut Board, block: Move, supply: &mut Stream) -> Result<Outcome, BoardError> {
        board.check(self.rules())?;
        Ok(match &self.0 {
            Width::Narrow(engine) => play_move(engine, board, block, supply),
            Width::Wide(engine) => play_move(engine, board, block, supply),
        })
    }

    /// Plays the board as often as `plays` has room: the plays number `first`, `first` + 1, … of `seed`.
    ///
    /// The n-th play of a seed is the same however the plays are divided among calls.
    ///
    /// # Errors
    /// When board or player do not fit.
    pub fn plays(
        &self,
        board: &Board,
        player: Player,
        seed: u64,
        first: u64,
        plays: &mut [Play],
    ) -> Result<(), RateError> {
        board.check(self.rules())?;
        player.check()?;
        match &self.0 {
            Width::Narrow(engine) if player == Player::Random && lanes::can_play(&engine.rules) => {
                lanes::play_all(engine, &engine.planes(board), seed, first, plays);
            }
            Width::Narrow(engine) => play_all(engine, board, player, seed, first, plays),
            Width::Wide(engine) => play_all(engine, board, player, seed, first, plays),
        }
        Ok(())
    }
}

fn start<W: Word>(engine: &Engine<W>, board: &Board, supply: &mut Stream) -> (Board, f64) {
    let (state, score) = engine.start(&engine.planes(board), supply.clone());
    return_supply(state.supply.as_ref(), supply);
    (engine.board(&state.planes), score)
}

fn play_move<W: Word>(engine: &Engine<W>, board: &mut Board, block: Move, supply: &mut Stream) -> Outcome {
    let rules = &engine.rules;
    let planes = engine.planes(board);
    let mut state = State { planes, supply: rules.refill.then(|| supply.clone()) };
    if block.x >= rules.width || block.y >= rules.height {
        return Outcome::default();
    }
    let cell = engine.field.bit(block.x.into(), block.y.into());
    if (cell & planes.occupied()).is_empty() {
        return Outcome::default();
    }
    let effect = engine.play(&mut state, engine.swap(cell, block.direction as u32));
    *board = engine.board(&state.planes);
    return_supply(state.supply.as_ref(), supply);
    Outcome { removed: effect.removed, waves: effect.waves, score: engine.score(effect) }
}

fn return_supply(left: Option<&Stream>, supply: &mut Stream) {
    if let Some(left) = left {
        *supply = left.clone();
    }
}

fn play_all<W: Word>(
    engine: &Engine<W>,
    board: &Board,
    player: Player,
    seed: u64,
    first: u64,
    plays: &mut [Play],
) {
    let board = engine.planes(board);
    for (index, play) in (first..).zip(plays) {
        // The blocks that fall in have a stream of their own: a player who thinks more must not change them.
        let (state, score) = engine.start(&board, Stream::nth(!seed, index));
        *play = play_one(engine, state, player, Stream::nth(seed, index));
        play.score += score;
    }
}

fn play_one<W: Word>(engine: &Engine<W>, mut state: State<W>, player: Player, mut stream: Stream) -> Play {
    let mut play = Play::default();
    for _ in 0..engine.rules.moves {
        let Some(swap) = player.choose(engine, &state, &mut stream) else { break };
        let effect = engine.play(&mut state, swap);
        play.score += engine.score(effect);
        play.scoring_moves += u32::from(effect.removed > 0);
        play.waves += u32::from(effect.waves);
    }
    play
}
