//! Players against each other and against what is known of them.

// Whatever goes wrong beside the assertions should fail a test as well.

use match3::{Board, Direction, Game, Move, Play, Player, Rules, Stream};

fn mean_score(game: &Game, player: Player, plays: u32) -> f64 {
    let means = (0..8).map(|seed| {
        let board = Board::from_seed(game.rules(), seed);
        game.rate(&board, player, 7, plays).unwrap().mean
    });
    means.sum::<f64>() / 8.0
}

#[test]
fn random_boards_score_about_17_with_a_deviation_of_about_6() {
    let game = Game::new(&Rules::default()).unwrap();
    let ratings: Vec<_> = (0..400)
        .map(|seed| {
            let board = Board::from_seed(game.rules(), seed);
            game.rate(&board, Player::Random, 1, 400).unwrap()
        })
        .collect();
    let mean = ratings.iter().map(|rating| rating.mean).sum::<f64>() / 400.0;
    let deviation = ratings.iter().map(|rating| rating.deviation).sum::<f64>() / 400.0;
    assert!((16.5..18.0).contains(&mean), "{mean}");
    assert!((5.5..6.7).contains(&deviation), "{deviation}");
}

#[test]
fn the_more_skill_the_more_points() {
    let game = Game::new(&Rules { moves: 20, ..Rules::default() }).unwrap();
    let skills = [0.0, 0.25, 0.5, 1.0].map(|skill| mean_score(&game, Player::Mixture { skill }, 60));
    assert!(skills.is_sorted(), "{skills:?}");
    let random = mean_score(&game, Player::Random, 600);
    assert!((skills[0] / random - 1.0).abs() < 0.1, "{skills:?} {random}");
    assert!((mean_score(&game, Player::Greedy, 60) / skills[3] - 1.0).abs() < 0.05);
}

#[test]
fn looking_one_move_ahead_is_greedy() {
    let game = Game::new(&Rules { moves: 12, ..Rules::default() }).unwrap();
    let mut plays = [[Play::default(); 5]; 2];
    for seed in 0..10 {
        let board = Board::from_seed(game.rules(), seed);
        game.plays(&board, Player::Greedy, 3, 0, &mut plays[0]).unwrap();
        game.plays(&board, Player::LookAhead { depth: 1 }, 3, 0, &mut plays[1]).unwrap();
        assert_eq!(plays[0], plays[1]);
    }
}

#[test]
fn looking_further_ahead_scores_more() {
    let game = Game::new(&Rules { moves: 8, ..Rules::default() }).unwrap();
    let [greedy, far] = [1, 2].map(|depth| mean_score(&game, Player::LookAhead { depth }, 6));
    assert!(far > greedy * 1.1, "{greedy} {far}");
}

/// The most that `depth` moves can score together, and what the first of them scores, tried one by one on boards.
fn best(game: &Game, board: &Board, depth: u8) -> (f64, f64) {
    let mut best = (0.0, 0.0);
    let cells = (0..board.height()).flat_map(|y| (0..board.width()).map(move |x| (x, y)));
    for (x, y) in cells {
        for direction in [Direction::Up, Direction::Right, Direction::Down, Direction::Left] {
            let mut after = board.clone();
            let outcome = game.play(&mut after, Move { x, y, direction }, &mut Stream::new(0)).unwrap();
            let later = if depth > 1 { self::best(game, &after, depth - 1).0 } else { 0.0 };
            let found = (outcome.score + later, outcome.score);
            best = if found > best { found } else { best };
        }
    }
    best
}

#[test]
fn thinking_players_find_the_best_move_there_is() {
    let rules = Rules { width: 4, height: 5, colours: 4, moves: 1, ..Rules::default() };
    let game = Game::new(&rules).unwrap();
    for seed in 0..40 {
        let (board, _) = game.start(&Board::from_seed(&rules, seed), &mut Stream::new(0)).unwrap();
        for depth in [1, 2] {
            let (total, at_once) = best(&game, &board, depth);
            // Where nothing can be scored the move is random, and scores nothing either.
            let found = game.scores(&board, Player::LookAhead { depth }, 1, 3).unwrap();
            assert_eq!(found, [at_once; 3], "of {total} on\n{board}");
        }
    }
}

#[test]
fn boards_on_which_nothing_can_happen_score_nothing() {
    for (width, height, colours) in
        [(2, 2, 5), (1, 1, 1), (5, 10, 1), (1, 2, 3), (1, 63, 1), (1, 127, 1), (32, 1, 1), (64, 1, 1)]
    {
        let rules = Rules { width, height, colours, ..Rules::default() };
        let game = Game::new(&rules).unwrap();
        let board = Board::from_seed(&rules, 1);
        for player in [Player::Random, Player::Greedy, Player::LookAhead { depth: 2 }] {
            let rating = game.rate(&board, player, 1, 10).unwrap();
            assert_eq!((rating.mean, rating.deviation, rating.estimate, rating.passed), (0.0, 0.0, 0.0, 0.0));
        }
    }
}

#[test]
fn one_colour_that_refills_for_ever_is_stopped() {
    let rules = Rules { colours: 1, refill: true, moves: 3, ..Rules::default() };
    let game = Game::new(&rules).unwrap();
    let rating = game.rate(&Board::from_seed(&rules, 1), Player::Random, 1, 5).unwrap();
    assert!(rating.mean.is_finite() && rating.mean > 1e9, "{rating:?}");
    assert!(rating.error.is_finite() && rating.estimate > 0.5, "{rating:?}");
}

#[test]
fn the_plays_of_a_seed_do_not_depend_on_how_they_are_divided() {
    let game = Game::new(&Rules::default()).unwrap();
    let board = Board::from_seed(game.rules(), 9);
    let mut whole = [Play::default(); 30];
    let mut parts = whole;
    game.plays(&board, Player::Random, 5, 100, &mut whole).unwrap();
    for (part, first) in [(0..1, 100), (1..14, 101), (14..30, 114)] {
        game.plays(&board, Player::Random, 5, first, &mut parts[part]).unwrap();
    }
    assert_eq!(whole, parts);
}

#[test]
fn a_seed_plays_the_same_for_ever() {
    let game = Game::new(&Rules::default()).unwrap();
    let board = Board::from_seed(game.rules(), 2024);
    let mut plays = [Play::default(); 100];
    let mut signature = |player| {
        game.plays(&board, player, 7, 0, &mut plays).unwrap();
        let score: f64 = plays.iter().map(|play| play.score).sum();
        let moves: u32 = plays.iter().map(|play| play.scoring_moves).sum();
        let waves: u32 = plays.iter().map(|play| play.waves).sum();
        (format!("{score:.6}"), moves, waves)
    };
    assert_eq!(signature(Player::Random), ("2271.780863".to_owned(), 781, 943));
    assert_eq!(signature(Player::Mixture { skill: 0.5 }), ("3152.435046".to_owned(), 1059, 1371));
}
