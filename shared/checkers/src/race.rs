//! Races: the best of several players, by no more games than it takes.

/// Players that meet in rounds until only one of them can be the best.
///
/// After each round those leave who are behind the leader beyond doubt: by more than three standard errors of their
/// difference over the rounds that both have played. What is decided follows from the scores alone.
///
/// ```
/// let mut race = checkers::Race::new(3);
/// for round in 0..8 {
///     let scores: Vec<f64> = race.left().iter().map(|&player| [0.5, 0.9, 0.1][player]).collect();
///     race.add(&scores);
/// }
/// assert_eq!((race.left(), race.best()), (&[1][..], 1));
/// ```
#[derive(Clone, Debug)]
pub struct Race {
    left: Vec<usize>,
    /// The score of each player in each round that it has played.
    scores: Vec<Vec<f64>>,
}

impl Race {
    /// Fewer rounds say too little of their variance.
    const FEWEST_ROUNDS: usize = 8;
    /// Standard errors behind the leader that are beyond doubt.
    const DOUBT: f64 = 3.0;

    /// A race of this number of players.
    pub fn new(players: usize) -> Self {
        Self { left: (0..players).collect(), scores: vec![vec![]; players] }
    }

    /// Those who may still be the best, in their order: the next round is theirs.
    pub fn left(&self) -> &[usize] {
        &self.left
    }

    /// The rounds that a player has played.
    pub fn rounds(&self, player: usize) -> usize {
        self.scores[player].len()
    }

    /// Adds a round: the scores of those that are left, in their order.
    pub fn add(&mut self, scores: &[f64]) {
        for (&player, &score) in self.left.iter().zip(scores) {
            self.scores[player].push(score);
        }
        let leader = self.best();
        if self.rounds(leader) >= Self::FEWEST_ROUNDS {
            let behind = |&player: &usize| !self.is_behind(player, leader);
            self.left = self.left.iter().copied().filter(behind).collect();
        }
    }

    /// The best of those that are left; of equals the first.
    pub fn best(&self) -> usize {
        let total = |player: usize| self.scores[player].iter().sum::<f64>();
        let better = |best: usize, player: usize| if total(player) > total(best) { player } else { best };
        self.left.iter().copied().reduce(better).expect("a leader is not behind itself")
    }

    fn is_behind(&self, player: usize, leader: usize) -> bool {
        let differences: Vec<f64> =
            self.scores[leader].iter().zip(&self.scores[player]).map(|(best, own)| best - own).collect();
        let count = differences.len() as f64;
        let mean = differences.iter().sum::<f64>() / count;
        let squares: f64 = differences.iter().map(|one| (one - mean) * (one - mean)).sum();
        mean > Self::DOUBT * (squares / (count - 1.0) / count).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    /// A round in which player after player meets each other in a game that the stronger one wins more often.
    fn round(players: &[usize], strengths: &[f64], stream: &mut Stream) -> Vec<f64> {
        let mut scores = vec![0.0; players.len()];
        for (at, &one) in players.iter().enumerate() {
            for (place, &other) in players.iter().enumerate().skip(at + 1) {
                let luck = (stream.next() >> 11) as f64 / (1_u64 << 53) as f64;
                let won = luck < 0.5 + strengths[one] - strengths[other];
                scores[if won { at } else { place }] += 1.0;
            }
        }
        scores
    }

    /// How often the best of six wins, and the games it took.
    fn races(most_rounds: usize, stop: bool) -> (usize, usize) {
        const STRENGTHS: [f64; 6] = [0.0, 0.1, 0.04, 0.0, 0.06, 0.02];
        let (mut right, mut games) = (0, 0);
        for seed in 0..400 {
            let (mut stream, mut race) = (Stream::new(seed), Race::new(6));
            let mut sums = [0.0; 6];
            for _ in 0..most_rounds {
                let players: Vec<usize> = if stop { race.left().to_vec() } else { (0..6).collect() };
                if players.len() < 2 {
                    break;
                }
                let scores = round(&players, &STRENGTHS, &mut stream);
                games += players.len() * (players.len() - 1) / 2;
                if stop {
                    race.add(&scores);
                } else {
                    sums.iter_mut().zip(scores).for_each(|(sum, score)| *sum += score);
                }
            }
            let best = (1..6).fold(0, |best, one| if sums[one] > sums[best] { one } else { best });
            right += usize::from(if stop { race.best() } else { best } == 1);
        }
        (right, games)
    }

    #[test]
    fn a_race_is_right_more_often_than_as_many_games_for_all() {
        let (right, games) = races(100, true);
        let (fixed, all) = races(100, false);
        let (short, fewer) = races(100 * games / all, false);
        assert!(3 * games < 2 * all && fewer <= games, "{games} of {all}, {fewer}");
        assert!(right + 30 >= fixed, "{right} of 400, {fixed} with all games");
        assert!(right > short, "{right} of 400, {short} with as many games for all");
    }

    #[test]
    fn equals_stay_and_the_first_of_them_is_the_best() {
        let mut race = Race::new(3);
        (0..20).for_each(|_| race.add(&[1.0, 1.0, 1.0]));
        assert_eq!((race.left().len(), race.best()), (3, 0));
        assert_eq!(race.rounds(2), 20);
    }
}
