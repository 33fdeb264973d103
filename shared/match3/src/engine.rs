//! Moves on bit planes: what a swap clears, what falls, what cascades.

use crate::board::Board;
use crate::planes::{Field, Planes};
use crate::random::Stream;
use crate::rules::{InitialMatches, Rules, SCORES};
use crate::word::Word;

/// Two neighbouring cells to exchange: `lower`, and the one `shift` bits above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Swap<W> {
    pub(crate) lower: W,
    pub(crate) shift: u32,
}

/// What one move did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effect {
    /// Blocks removed, cascades included.
    pub(crate) removed: u32,
    /// How many times blocks were cleared: 1 without a cascade.
    pub(crate) waves: u16,
}

/// Blocks that are about to be moved, and those still to fall in from above.
#[derive(Clone, Debug)]
pub(crate) struct State<W> {
    pub(crate) planes: Planes<W>,
    pub(crate) supply: Option<Stream>,
}

/// The rules, prepared for boards that lie in words of type `W`.
#[derive(Clone, Debug)]
pub(crate) struct Engine<W> {
    pub(crate) rules: Rules,
    pub(crate) field: Field<W>,
    /// The cells that have a neighbour above them, and those that have one to the right.
    pub(crate) pairs: [W; 2],
    pub(crate) scores: [f64; SCORES],
}

impl<W: Word> Engine<W> {
    pub(crate) fn new(rules: &Rules) -> Self {
        let field = Field::new(rules.width.into(), rules.height.into());
        let cells = field.cells;
        Self {
            rules: rules.clone(),
            field,
            pairs: [cells & cells >> 1, cells & cells >> field.stride],
            scores: rules.score.table(),
        }
    }

    pub(crate) fn planes(&self, board: &Board) -> Planes<W> {
        let mut planes = Planes::EMPTY;
        for (y, row) in (0..).zip(board.rows()) {
            for (x, &colour) in (0..).zip(row) {
                planes.put(self.field.bit(x, y), colour);
            }
        }
        planes
    }

    pub(crate) fn board(&self, planes: &Planes<W>) -> Board {
        let (width, height) = (self.rules.width, self.rules.height);
        let cell = |x: u8, y: u8| planes.colour(self.field.bit(x.into(), y.into()));
        let cells = (0..height).flat_map(|y| (0..width).map(move |x| cell(x, y))).collect();
        Board::from_cells(width, height, cells)
    }

    /// The state before the first move, and what the initial lines scored.
    pub(crate) fn start(&self, board: &Planes<W>, supply: Stream) -> (State<W>, f64) {
        let mut state = State { planes: *board, supply: self.rules.refill.then_some(supply) };
        if self.rules.initial_matches == InitialMatches::Keep {
            self.fall(&mut state);
            return (state, 0.0);
        }
        let effect = self.settle(&mut state);
        let counts = self.rules.initial_matches == InitialMatches::Score;
        (state, if counts { self.score(effect) } else { 0.0 })
    }

    /// Whether a block may be moved this way: both cells hold blocks, or one does and empty cells may be entered.
    #[inline]
    pub(crate) fn allows(&self, planes: &Planes<W>, swap: Swap<W>) -> bool {
        let both = swap.lower | swap.lower << swap.shift;
        let blocks = both & planes.occupied();
        if self.rules.into_empty { !blocks.is_empty() } else { blocks == both && !both.is_empty() }
    }

    /// Plays one move, which may turn out to be against the rules and then does nothing.
    #[inline]
    pub(crate) fn play(&self, state: &mut State<W>, swap: Swap<W>) -> Effect {
        if !self.allows(&state.planes, swap) {
            return Effect::default();
        }
        let before = state.planes;
        state.planes.swap(swap.lower, swap.shift);
        let effect = self.settle(state);
        if effect.removed == 0 && self.rules.swap_back {
            state.planes = before;
        }
        effect
    }

    #[inline]
    fn settle(&self, state: &mut State<W>) -> Effect {
        let mut effect = Effect::default();
        loop {
            self.fall(state);
            let lines = state.planes.lines(self.field.stride);
            if lines.is_empty() || effect.waves == Rules::MOST_WAVES {
                return effect;
            }
            state.planes.clear(lines);
            effect.removed += lines.count();
            effect.waves += 1;
        }
    }

    #[inline]
    fn fall(&self, state: &mut State<W>) {
        state.planes.fall(&self.field);
        if let Some(supply) = &mut state.supply {
            let mut gaps = self.field.cells & !state.planes.occupied();
            while !gaps.is_empty() {
                let cell = gaps.lowest();
                state.planes.put(cell, 1 + supply.below(self.rules.colours.into()) as u8);
                gaps ^= cell;
            }
        }
    }

    pub(crate) fn score(&self, effect: Effect) -> f64 {
        self.scores[(effect.removed as usize).min(SCORES - 1)]
    }

    /// The swap that moves the block at `cell` up, right, down or left (0 to 3); an empty one at the edge.
    #[inline]
    pub(crate) fn swap(&self, cell: W, direction: u32) -> Swap<W> {
        let upright = direction & 1 == 0;
        let shift = if upright { 1 } else { self.field.stride };
        let lower = if direction & 2 == 0 { cell } else { cell >> shift };
        Swap { lower: lower & self.pairs[(direction & 1) as usize], shift }
    }

    /// The block and the direction that 64 random bits choose; none when no block is left.
    ///
    /// The upper half chooses among the blocks, column by column and each from the floor up; the lowest bits the direction.
    #[inline]
    pub(crate) fn random_swap(&self, planes: &Planes<W>, bits: u64) -> Option<Swap<W>> {
        let occupied = planes.occupied();
        let blocks = u64::from(occupied.count());
        let mut rank = (((bits >> 32) * blocks) >> 32) as u32;
        for column in 0..u32::from(self.rules.width) {
            let base = column * self.field.stride;
            let height = (occupied >> base).trailing_ones();
            if rank < height {
                return Some(self.swap(W::ONE << (base + rank), bits as u32 & 3));
            }
            rank -= height;
        }
        None
    }

    /// Every swap of two different cells that the rules allow, the upright ones first.
    pub(crate) fn swaps<'a>(&'a self, planes: &'a Planes<W>) -> impl Iterator<Item = Swap<W>> + 'a {
        let shifts = [1, self.field.stride];
        let differing = self.pairs.iter().zip(shifts).flat_map(|(&pairs, shift)| {
            bits(pairs & planes.differing(shift)).map(move |lower| Swap { lower, shift })
        });
        differing.filter(|&swap| self.allows(planes, swap))
    }
}

fn bits<W: Word>(mut set: W) -> impl Iterator<Item = W> {
    std::iter::from_fn(move || {
        let bit = set.lowest();
        set ^= bit;
        (!bit.is_empty()).then_some(bit)
    })
}
