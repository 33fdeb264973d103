//! Our rules against those of two other libraries, move by move through random games.

use checkers::{DrawRules, Game, Move, Player, Position, RandomPlayer, Square};
use serde_json::{Value, json};

#[test]
fn pydraughts_agrees() {
    let starts =
        ["W:WK18,K22,K23:BK1,K2,K32,12", "B:W6,7,14,15,23,24,25:BK2,K3,12", "W:W9,K10,30:BK32,4,5,K20"];
    let starts = starts.map(|fen| fen.parse().expect("a position"));
    let fresh = (0..40).map(|seed| random_game(Position::START, seed, 150));
    let kings = starts.into_iter().flat_map(|start| (0..4).map(move |seed| random_game(start, seed, 40)));
    let games: Vec<Value> = fresh.chain(kings).collect();
    assert_eq!(judge("pydraughts", &games), plies(&games));
}

#[test]
fn open_spiel_agrees() {
    let games: Vec<Value> = (0..400).map(|seed| random_game(Position::START, 1000 + seed, 150)).collect();
    let (compared, all) = (judge("open_spiel", &games), plies(&games));
    assert!(compared > all / 2, "only {compared} of {all} plies were compared");
}

/// How many plies a referee compared.
fn judge(name: &str, games: &[Value]) -> usize {
    crate::referee::judge(name, name, &json!({ "games": games }))
}

fn plies(games: &[Value]) -> usize {
    games.iter().map(|game| game["plies"].as_array().map_or(0, Vec::len)).sum()
}

/// A random game as the referees read it.
fn random_game(start: Position, seed: u64, longest: u32) -> Value {
    let mut game = Game::from_position(start, DrawRules { max_plies: longest, ..DrawRules::default() });
    let mut player = RandomPlayer::new();
    player.new_game(seed);
    let mut plies = Vec::new();
    loop {
        let legal: Vec<Vec<u8>> = game.position().legal_moves().iter().map(squares).collect();
        let played = player.choose(&game).filter(|_| game.outcome().is_none());
        plies.push(json!({ "legal": legal, "played": played.map(|mv| squares(&mv)) }));
        let Some(mv) = played else { break };
        game.play(mv).expect("a legal move of a game under way");
    }
    json!({ "fen": start.to_string(), "plies": plies })
}

fn squares(mv: &Move) -> Vec<u8> {
    mv.squares().map(Square::number).collect()
}
