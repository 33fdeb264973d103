//! Random plays many at a time, one in each lane of a vector.
//!
//! Nothing branches on the state of a single play: in each round every lane takes one small step of its own, be it
//! a fall by one row, a clearing or the next move. So no branch is ever mispredicted, and the compiler turns the
//! lanes into vector instructions.

// Everything must dissolve in the function that is compiled for wide registers.
#![allow(clippy::inline_always)]

use crate::engine::Engine;
use crate::game::Play;
use crate::planes::{Planes, resting, whole_lines};
use crate::random::{GAMMA, Stream};
use crate::rules::{InitialMatches, Rules, SCORES};
use crate::vector::{LANES, Lanes};
use crate::word::Bits;

/// Vectors that take turns: while one waits for its last result, another can continue.
const GROUPS: usize = 2;

/// The plays of one vector.
struct Plays {
    planes: Planes<Lanes>,
    /// The board before the move that is under way.
    before: Planes<Lanes>,
    counter: Lanes,
    moves_left: Lanes,
    removed: Lanes,
    waves: Lanes,
    scoring_moves: Lanes,
    score: [f64; LANES],
    busy: Lanes,
}

/// Whether plays by these rules can go side by side: each must be a matter of its own moves alone.
pub(crate) fn can_play(rules: &Rules) -> bool {
    !rules.refill && rules.initial_matches != InitialMatches::Keep
}

/// Fills `plays` with the random plays number `first`, `first` + 1, … of `seed`, each as it would be alone.
pub(crate) fn play_all(engine: &Engine<u64>, board: &Planes<u64>, seed: u64, first: u64, plays: &mut [Play]) {
    let (start, initial) = engine.start(board, Stream::new(0));
    for (chunk, index) in plays.chunks_mut(GROUPS * LANES).zip((first..).step_by(GROUPS * LANES)) {
        let mut groups = begin(engine, &start.planes, seed, index);
        run(&mut groups, engine);
        for (place, play) in chunk.iter_mut().enumerate() {
            *play = groups[place / LANES].play(place % LANES);
            play.score += initial;
        }
    }
}

fn begin(engine: &Engine<u64>, start: &Planes<u64>, seed: u64, first: u64) -> [Plays; GROUPS] {
    std::array::from_fn(|group| {
        let play = |lane| first + (group * LANES + lane) as u64;
        let counters = Lanes::from_fn(|lane| Stream::nth(seed, play(lane)).counter());
        Plays::new(start, engine.rules.moves, counters)
    })
}

impl Plays {
    fn new(start: &Planes<u64>, moves: u16, counter: Lanes) -> Self {
        let planes = Planes { a: Lanes::all(start.a), b: Lanes::all(start.b), c: Lanes::all(start.c) };
        Self {
            planes,
            before: planes,
            counter,
            moves_left: Lanes::all(moves.into()),
            removed: Lanes::all(0),
            waves: Lanes::all(0),
            scoring_moves: Lanes::all(0),
            score: [0.0; LANES],
            busy: Lanes::all(1),
        }
    }

    fn play(&self, lane: usize) -> Play {
        Play {
            score: self.score[lane],
            scoring_moves: self.scoring_moves.0[lane] as u32,
            waves: self.waves.0[lane] as u32,
        }
    }
}

/// Plays to the end, with the widest registers this processor has.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn run(groups: &mut [Plays; GROUPS], engine: &Engine<u64>) {
    if has_avx512() {
        // SAFETY: the processor has every feature the function is compiled for.
        unsafe { with_avx512(groups, engine) }
    } else if has_avx2() {
        // SAFETY: the processor has every feature the function is compiled for.
        unsafe { with_avx2(groups, engine) }
    } else {
        to_the_end(groups, engine);
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vpopcntdq")
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512vpopcntdq")]
fn with_avx512(groups: &mut [Plays; GROUPS], engine: &Engine<u64>) {
    to_the_end(groups, engine);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
fn with_avx2(groups: &mut [Plays; GROUPS], engine: &Engine<u64>) {
    to_the_end(groups, engine);
}

#[cfg(not(target_arch = "x86_64"))]
fn run(groups: &mut [Plays; GROUPS], engine: &Engine<u64>) {
    to_the_end(groups, engine);
}

#[inline(always)]
fn to_the_end(groups: &mut [Plays; GROUPS], engine: &Engine<u64>) {
    while groups.iter().flat_map(|group| group.busy.0).fold(0, |all, busy| all | busy) != 0 {
        for group in groups.iter_mut() {
            group.round(engine);
        }
    }
}

impl Plays {
    /// One small step of every play.
    #[inline(always)]
    fn round(&mut self, engine: &Engine<u64>) {
        let resting_already = self.fall(engine);
        let cleared = self.clear(engine, resting_already);
        let over = resting_already & !cleared;
        self.finish_move(engine, over);
        self.next_move(engine, over);
    }

    /// Lets blocks fall by one row, and says in which lanes there was nothing to fall.
    #[inline(always)]
    fn fall(&mut self, engine: &Engine<u64>) -> Lanes {
        let occupied = self.planes.occupied();
        let resting = resting(occupied, Lanes::all(engine.field.floor));
        self.planes.drop_all_but(resting);
        (occupied & !resting).is_zero()
    }

    /// Clears the lines of the lanes `at_rest`, and says which had any.
    #[inline(always)]
    fn clear(&mut self, engine: &Engine<u64>, at_rest: Lanes) -> Lanes {
        let stride = engine.field.stride;
        let upright = self.planes.runs(1) & at_rest;
        let level = self.planes.runs(stride) & at_rest;
        let lines = whole_lines(upright, level, stride);
        self.planes.clear(lines);
        self.removed = self.removed.plus(lines.count());
        let cleared = !lines.is_zero();
        self.waves = self.waves.minus(cleared);
        cleared
    }

    #[inline(always)]
    fn finish_move(&mut self, engine: &Engine<u64>, over: Lanes) {
        let removed = self.removed & over;
        for lane in 0..LANES {
            self.score[lane] += engine.scores[removed.0[lane] as usize % SCORES];
        }
        self.scoring_moves = self.scoring_moves.minus(!removed.is_zero());
        if engine.rules.swap_back {
            let undone = over & self.removed.is_zero();
            self.planes.a = undone.choose(self.before.a, self.planes.a);
            self.planes.b = undone.choose(self.before.b, self.planes.b);
            self.planes.c = undone.choose(self.before.c, self.planes.c);
        }
        self.removed = self.removed & !over;
    }

    /// Moves a random block in a random direction, in the lanes whose last move is over.
    #[inline(always)]
    fn next_move(&mut self, engine: &Engine<u64>, over: Lanes) {
        let next = over & !self.moves_left.is_zero();
        self.busy = !over | next;
        self.moves_left = self.moves_left.plus(next);
        self.counter = self.counter.plus(Lanes::all(GAMMA) & next);
        let bits = self.counter.mix();
        let cell = self.block(engine, bits) & next;

        let stride = u64::from(engine.field.stride);
        let upright = (bits & Lanes::all(1)).is_zero();
        let shift = upright.choose(Lanes::all(1), Lanes::all(stride));
        let pairs = upright.choose(Lanes::all(engine.pairs[0]), Lanes::all(engine.pairs[1]));
        let forwards = (bits & Lanes::all(2)).is_zero();
        let mut lower = forwards.choose(cell, cell.down(shift)) & pairs;
        if !engine.rules.into_empty {
            let both = lower | lower.up(shift);
            lower = lower & (both & !self.planes.occupied()).is_zero();
        }
        if engine.rules.swap_back {
            self.before.a = next.choose(self.planes.a, self.before.a);
            self.before.b = next.choose(self.planes.b, self.before.b);
            self.before.c = next.choose(self.planes.c, self.before.c);
        }
        self.planes = self.planes.map(|plane| {
            let differs = (plane ^ plane.down(shift)) & lower;
            plane ^ differs ^ differs.up(shift)
        });
    }

    /// The block of each lane that the upper half of `bits` chooses, as [`Engine::random_swap`] does.
    #[inline(always)]
    fn block(&self, engine: &Engine<u64>, bits: Lanes) -> Lanes {
        let occupied = self.planes.occupied();
        let rank = bits.upper_half_times(occupied.count());
        let column = (1 << u32::from(engine.rules.height)) - 1;
        let mut place = rank;
        let mut passed = Lanes::all(0);
        for base in (0..u32::from(engine.rules.width)).map(|x| x * engine.field.stride) {
            let beyond = rank.at_least(passed);
            place = beyond.choose(rank.minus(passed).plus(Lanes::all(base.into())), place);
            passed = passed.plus((occupied & Lanes::all(column << base)).count());
        }
        occupied & Lanes::all(1).up(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Board;

    type Run = fn(&mut [Plays; GROUPS], &Engine<u64>);

    fn outcome(rules: &Rules, run: Run) -> Vec<Play> {
        let engine = Engine::<u64>::new(rules);
        let board = engine.planes(&Board::from_seed(rules, 11));
        let (start, _) = engine.start(&board, Stream::new(0));
        let mut groups = begin(&engine, &start.planes, 3, 0);
        run(&mut groups, &engine);
        groups.iter().flat_map(|group| (0..LANES).map(|lane| group.play(lane))).collect()
    }

    #[test]
    fn every_width_of_registers_plays_the_same() {
        for (swap_back, into_empty) in [(false, true), (true, true), (true, false), (false, false)] {
            let rules = Rules { swap_back, into_empty, ..Rules::default() };
            let plain = outcome(&rules, to_the_end);
            assert!(plain.iter().any(|play| play.waves > 1));
            assert_eq!(outcome(&rules, run), plain);
            #[cfg(target_arch = "x86_64")]
            if has_avx2() {
                #[allow(unsafe_code)]
                // SAFETY: the processor has every feature the function is compiled for.
                let narrow: Run = |groups, engine| unsafe { with_avx2(groups, engine) };
                assert_eq!(outcome(&rules, narrow), plain);
            }
        }
    }
}
