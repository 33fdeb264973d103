//! `atoll bench strength` and `atoll analyse`.

use crate::support::Place;

#[test]
fn strength_is_measured_alike_every_time() {
    let place = Place::new();
    let measure = |arguments: &[&str]| {
        let all = [&["bench", "strength"], arguments, &["--pairs", "6", "--json"]].concat();
        place.json(&all)
    };
    let weak = measure(&["random", "--depth", "4"]);
    assert_eq!(weak["opponents"].as_array().unwrap().len(), 2);
    assert!(weak["opponents"][0]["score"].as_f64().unwrap() < 0.2, "{weak}");
    assert!(weak["rating"]["elo"].as_f64().unwrap() < -100.0, "{weak}");
    let by_nodes = ["material", "--nodes", "200", "--seed", "4"];
    assert_eq!(measure(&by_nodes), measure(&by_nodes));
}

#[test]
fn games_are_commented() {
    let place = Place::new();
    // Black gives a man away with its second move.
    place.write("games.pdn", "[Event \"one\"]\n\n1. 9-14 24-20 2. 14-18 23x14 *\n");
    let commented = place.run(&["analyse", "games.pdn", "material", "--depth", "6"]);
    let text = &commented.expect(0).stdout;
    let games = checkers::read_pdn(text).unwrap();
    assert_eq!((games.len(), games[0].moves.len()), (1, 4));
    assert!(
        games[0].comments.iter().any(|comment| comment.after == 3 && comment.text.contains("better")),
        "{text}"
    );
    place.run(&["analyse", "nothing.pdn", "material"]).expect_error(78, &["nothing.pdn"]);
}
