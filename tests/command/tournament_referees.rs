//! Our ratings against scipy's: on made-up cross tables, and on one that was played.

use crate::support::Seeded;
use checkers::{DrawRules, PlayerSpec};
use serde_json::{Value, json};
use tournament::{CrossTable, Match, Ratings, Tally, deck_pairs};

#[test]
fn scipy_agrees() {
    let mut random = Seeded::new(11);
    let mut cases = vec![
        case("one who only wins", &table(3, &[([0, 1], 20, 0, 0), ([1, 2], 5, 3, 12), ([0, 2], 8, 0, 0)])),
        case("nobody draws", &table(2, &[([0, 1], 70, 0, 30)])),
        case("all is drawn", &table(2, &[([0, 1], 0, 50, 0)])),
        case("two who never met the others", &table(4, &[([0, 1], 10, 5, 3), ([2, 3], 4, 4, 9)])),
        case("those who played", &played()),
    ];
    for players in [2, 4, 7, 12] {
        let mut results = vec![];
        for first in 0..players {
            for second in first + 1..players {
                let mut count = || random.below(60);
                results.push(([first, second], count(), count(), count()));
            }
        }
        cases.push(case(&format!("{players} made-up players"), &table(players, &results)));
    }
    let players: usize = cases.iter().map(|case| case["players"].as_u64().unwrap() as usize).sum();
    assert_eq!(crate::referee::judge("scikit_learn", "scipy_ratings", &json!({ "cases": cases })), players);
}

fn table(players: usize, results: &[([usize; 2], u64, u64, u64)]) -> CrossTable {
    let mut table = CrossTable::new(players);
    for (pairing, wins, draws, losses) in results {
        table.add(*pairing, &Tally { wins: *wins, draws: *draws, losses: *losses, pairs: [0; 5] });
    }
    table
}

fn played() -> CrossTable {
    let players = [
        PlayerSpec::Material { depth: 3 },
        PlayerSpec::Material { depth: 2 },
        PlayerSpec::Material { depth: 1 },
        PlayerSpec::Random,
    ];
    let mut table = CrossTable::new(players.len());
    for first in 0..players.len() {
        for second in first + 1..players.len() {
            let both = [players[first].clone().into(), players[second].clone().into()];
            let duel = Match { players: both, rules: DrawRules::default(), limits: None, seed: 7 };
            table.add([first, second], &duel.play(&deck_pairs(30, 7)));
        }
    }
    table
}

fn case(name: &str, table: &CrossTable) -> Value {
    let ratings = Ratings::of(table);
    let players = 0..table.players();
    let rated: Vec<[f64; 3]> = players
        .clone()
        .map(|player| ratings.of_player(player))
        .map(|rating| [rating.elo, rating.low, rating.high])
        .collect();
    let superiority: Vec<Vec<f64>> = players
        .clone()
        .map(|one| players.clone().map(|other| ratings.superiority(one, other)).collect())
        .collect();
    let games: Vec<[u64; 5]> = table
        .pairings()
        .map(|([first, second], tally)| [first as u64, second as u64, tally.wins, tally.draws, tally.losses])
        .collect();
    json!({ "name": name, "players": table.players(), "games": games, "ratings": rated, "superiority": superiority })
}
