//! Learning within a generation: what the games of all teach each of them (Lamarck's inheritance).

use super::Learning;
use checkers::{Learner, Lesson, Network};
use evolution::random::Stream;
use std::collections::BTreeMap;

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

impl Learning {
    /// What a network becomes that learns from some of the lessons, drawn by the stream; nothing if it learnt nothing
    /// that is a number.
    pub(super) fn teach(
        &self,
        network: &Network,
        lessons: &[Lesson],
        stream: &mut Stream,
    ) -> Option<Vec<f32>> {
        if lessons.is_empty() {
            return None;
        }
        let mut learner = Learner::new(network);
        let mut batch = Vec::with_capacity(self.batch as usize);
        let mut left = self.positions as usize;
        while left > 0 {
            batch.clear();
            let size = left.min(self.batch as usize);
            batch.extend((0..size).map(|_| lessons[stream.below(lessons.len())]));
            learner.step(&batch, self.rate as f32);
            left -= size;
        }
        let weights = learner.flat();
        weights.iter().all(|weight| weight.is_finite()).then_some(weights)
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
}
