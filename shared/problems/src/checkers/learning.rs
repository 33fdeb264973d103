//! Learning within a generation: what games teach those who play them (Lamarck's inheritance).

use super::memory::Memory;
use super::{Learners, Learning};
use checkers::{Labels, Learner, Lesson, Moments, Network};
use evolution::random::Stream;
use std::collections::BTreeMap;

/// A king is worth no less and no more than this, where a man is 1.
pub(super) const KING: (f32, f32) = (1.0, 3.0);

/// The lessons of many games, each position once, with the mean of what it was worth in them; in a fixed order.
pub(super) fn collect(games: impl IntoIterator<Item = Vec<Lesson>>) -> Vec<Lesson> {
    let mut known: BTreeMap<(u64, u64), (Lesson, f64, u32)> = BTreeMap::new();
    for lesson in games.into_iter().flatten() {
        let entry = known.entry(lesson.position.bits()).or_insert((lesson, 0.0, 0));
        entry.1 += f64::from(lesson.target);
        entry.2 += 1;
    }
    let mean = |(lesson, sum, count): (Lesson, f64, u32)| Lesson {
        target: (sum / f64::from(count)) as f32,
        ..lesson
    };
    known.into_values().map(mean).collect()
}

/// Where lessons are drawn from: those of this generation, or all that are remembered.
#[derive(Clone, Copy)]
pub(super) enum Lessons<'a> {
    New(&'a [Lesson]),
    Remembered(&'a Memory),
}

impl Lessons<'_> {
    fn len(self) -> usize {
        match self {
            Self::New(lessons) => lessons.len(),
            Self::Remembered(memory) => memory.len(),
        }
    }

    fn draw(self, stream: &mut Stream) -> Lesson {
        match self {
            Self::New(lessons) => lessons[stream.below(lessons.len())],
            Self::Remembered(memory) => memory.lesson(stream.below(memory.len())),
        }
    }
}

impl Learning {
    /// How positions become lessons.
    pub(super) fn labels(&self) -> Labels {
        Labels { search: self.search as f32, discount: self.discount as f32, quiet: self.quiet }
    }

    /// The weights whose moments are remembered.
    pub(super) fn moments(&self, weights: usize) -> Option<usize> {
        (self.learners == Learners::Mean).then_some(weights)
    }

    /// The size of steps after this number of rounds.
    fn rate(&self, rounds: u64) -> f32 {
        let halvings = if self.half_life > 0 { rounds as f64 / f64::from(self.half_life) } else { 0.0 };
        (self.rate * libm::exp2(-halvings)) as f32
    }

    /// What a network becomes that learns from some of the lessons, drawn by the stream, and the moments after that;
    /// nothing if it learnt nothing that is a number.
    pub(super) fn teach(
        &self,
        network: &Network,
        lessons: Lessons<'_>,
        (rounds, moments): (u64, Option<Moments>),
        stream: &mut Stream,
    ) -> Option<(Vec<f32>, Moments)> {
        if lessons.len() == 0 {
            return None;
        }
        let mut learner = Learner::new(network);
        if self.king {
            learner = learner.with_kings(KING.0, KING.1);
        }
        if let Some(moments) = moments {
            learner = learner.with_moments(moments);
        }
        let rate = self.rate(rounds);
        let mut batch = Vec::with_capacity(self.batch as usize);
        let mut left = self.positions as usize;
        while left > 0 {
            batch.clear();
            let size = left.min(self.batch as usize);
            batch.extend((0..size).map(|_| lessons.draw(stream)));
            learner.step(&batch, rate);
            left -= size;
        }
        let (weights, moments) = (learner.flat(), learner.moments());
        let all = weights.iter().chain(&moments.mean).chain(&moments.square);
        let numeric = all.into_iter().all(|number| number.is_finite());
        numeric.then(|| (weights, moments.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use checkers::Position;

    #[test]
    fn positions_that_came_back_are_one_lesson() {
        let other = Position::START.play(&Position::START.legal_moves()[0]);
        let lesson = |position, target| Lesson { position, target };
        let games =
            [vec![lesson(Position::START, 1.0), lesson(other, -1.0)], vec![lesson(Position::START, 0.0)]];
        let all = collect(games);
        assert_eq!(all.len(), 2);
        let found = |position| all.iter().find(|one| one.position == position).map(|one| one.target);
        assert_eq!((found(Position::START), found(other)), (Some(0.5), Some(-1.0)));
    }

    #[test]
    fn steps_become_smaller_by_half() {
        let learning = Learning { rate: 0.01, half_life: 20, ..Learning::default() };
        assert_eq!([0, 20, 40].map(|rounds| learning.rate(rounds)), [0.01, 0.005, 0.0025]);
        assert_eq!(Learning { half_life: 0, ..learning }.rate(1000), 0.01);
    }
}
