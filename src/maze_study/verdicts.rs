//! Which of the study's conclusions hold on these boards, counted game by game.

use super::tables::{BEFORE, best_of};
use super::{Board, Game, Size, published};

/// Means that differ by less are equal: they are rounded to a tenth in print.
const EQUAL: f64 = 0.05;
/// The repairs of the simple genetic algorithm.
const REPAIRS: [&str; 3] = ["ga-r1", "ga-r2", "ga-r3"];
/// 241.9 in print, at 20 x 20 with 50 turns.
const MISPRINT: (u32, u32, f64) = (20, 50, 341.9);

/// Won, tied and lost.
#[derive(Default, PartialEq, Eq, Debug)]
struct Record([usize; 3]);

impl Record {
    fn add(&mut self, one: f64, other: f64) {
        let place = if (one - other).abs() < EQUAL { 1 } else { 2 * usize::from(one < other) };
        self.0[place] += 1;
    }

    fn text(&self) -> String {
        let [won, tied, lost] = self.0;
        format!("better in {won}, equal in {tied}, worse in {lost}")
    }

    fn is_better(&self) -> bool {
        self.0[0] > self.0[2]
    }
}

/// What is reproduced and what is not; nothing where nothing was published.
pub(super) fn sentences(boards: &[Board]) -> Vec<String> {
    let games: Vec<(Size, &Game)> =
        boards.iter().flat_map(|board| board.games.iter().map(move |game| (board.size, game))).collect();
    [enhanced(&games), repairs(&games)].into_iter().flatten().collect()
}

fn enhanced(games: &[(Size, &Game)]) -> Option<String> {
    let (mut here, mut there) = (Record::default(), Record::default());
    for &(size, game) in games {
        let printed = |variant: &str| published::mean(size, game.turns, variant);
        let (Some(own), Some(before)) = (game.outcome("enhanced"), best_of(&BEFORE, |name| game.mean(name)))
        else {
            continue;
        };
        let (Some(mut own_printed), Some(before_printed)) = (printed("enhanced"), best_of(&BEFORE, printed))
        else {
            continue;
        };
        if (size.width, game.turns) == (MISPRINT.0, MISPRINT.1) {
            own_printed = MISPRINT.2;
        }
        here.add(own.mean(), before);
        there.add(own_printed, before_printed);
    }
    let all: usize = here.0.iter().sum();
    (all > 0).then(|| {
        format!(
            "Enhanced GA against the best before it, in {all} games: {} here; {} in print (241.9 read as 341.9).{}",
            here.text(),
            there.text(),
            match (there.is_better(), here.is_better()) {
                (true, true) => " That it is better is reproduced on these boards.",
                (true, false) => " That it is better is not reproduced on these boards.",
                (false, _) => "",
            }
        )
    })
}

fn repairs(games: &[(Size, &Game)]) -> Option<String> {
    let (mut here, mut there, mut all) = ([0; 3], [0; 3], 0);
    for &(size, game) in games {
        let own: Option<Vec<f64>> = REPAIRS.iter().map(|name| game.mean(name)).collect();
        let printed: Option<Vec<f64>> =
            REPAIRS.iter().map(|name| published::mean(size, game.turns, name)).collect();
        let (Some(own), Some(printed)) = (own, printed) else { continue };
        all += 1;
        for (means, counts) in [(own, &mut here), (printed, &mut there)] {
            let best = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for (count, mean) in counts.iter_mut().zip(means) {
                *count += usize::from(best - mean < EQUAL);
            }
        }
    }
    let [here, there] = [here, there].map(|[r1, r2, r3]: [usize; 3]| format!("r1 {r1}, r2 {r2}, r3 {r3}"));
    (all > 0).then(|| {
        format!("Best repair, in {all} games, equal ones counted for each: {here} here; {there} in print.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maze_study::Outcome;

    #[test]
    fn conclusions_are_counted_game_by_game() {
        let outcome = |variant: &str, score| Outcome { variant: variant.to_owned(), scores: vec![score] };
        let game = |turns, enhanced, chokudai, r1, r2| Game {
            turns,
            optimum: None,
            outcomes: vec![
                outcome("enhanced", enhanced),
                outcome("chokudai", chokudai),
                outcome("ga-r1", r1),
                outcome("ga-r2", r2),
                outcome("ga-r3", 0.0),
            ],
        };
        let games = vec![game(45, 310.0, 309.0, 300.0, 301.0), game(50, 330.0, 338.0, 334.0, 334.0)];
        let size = Size { width: 20, height: 20 };
        for (own, verdict) in [(340.0, "is reproduced"), (330.0, "is not reproduced")] {
            let games = vec![game(50, own, 338.0, 334.0, 334.0)];
            let told = &sentences(&[Board { size, games }])[0];
            assert!(told.ends_with(&format!("That it is better {verdict} on these boards.")), "{told}");
        }
        let board = Board { size, games };
        assert_eq!(
            sentences(&[board]),
            [
                "Enhanced GA against the best before it, in 2 games: better in 1, equal in 0, worse in 1 here; \
                 better in 1, equal in 0, worse in 1 in print (241.9 read as 341.9).",
                "Best repair, in 2 games, equal ones counted for each: r1 1, r2 2, r3 0 here; r1 2, r2 0, r3 0 in print."
            ]
        );
        assert!(sentences(&[]).is_empty());
    }
}
