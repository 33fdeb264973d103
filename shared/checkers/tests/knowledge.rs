//! What knowledge does to players.

use checkers::{
    Book, Consult, Database, DrawRules, EndgameResult, Endgames, Ensemble, Evaluator, Game, Knowing,
    Knowledge, Material, Move, Network, NodeKind, Outcome, Player, PlayerSpec, Position, Score, Side, Square,
    Squares, Style, Ties, openings,
};
use std::sync::{Arc, LazyLock};

use crate::support::{Random, random_network};

static FOUR: LazyLock<Arc<Database>> = LazyLock::new(|| Database::shared(4).unwrap());

fn knowledge(consult: Consult) -> Knowledge {
    let endgames = Some(Endgames { database: FOUR.clone(), consult });
    Knowledge { endgames, ..Knowledge::default() }
}

fn knowing(player: PlayerSpec, knowledge: Knowledge) -> PlayerSpec {
    PlayerSpec::Knowing { player: Box::new(player), knowledge }
}

/// Defends as long as it can.
struct Defender;

impl Player for Defender {
    fn new_game(&mut self, _seed: u64) {}

    fn choose(&mut self, game: &Game) -> Option<Move> {
        FOUR.best_moves(game.position())?.first().copied()
    }
}

/// Positions of four pieces that Black, to move, wins, although neither side has more pieces.
fn won_endings(count: usize) -> Vec<Position> {
    let mut random = Random::new(11);
    let mut endings = Vec::new();
    while endings.len() < count {
        let mut squares = [(); 4].map(|()| Squares::from(Square::new(1 + random.below(32) as u8).unwrap()));
        squares.sort_by_key(|square| square.into_iter().map(Square::number).max());
        let [a, b, c, d] = squares;
        let kings = [a | c, a | b | c | d, a | b | c][random.below(3)];
        let Ok(position) = Position::new(a | c, b | d, kings & (a | b | c | d), Side::Black) else {
            continue;
        };
        let quiet = !position.must_capture() && position.empty().count() == 28;
        if quiet && FOUR.probe(&position) == Some(EndgameResult::Win) {
            endings.push(position);
        }
    }
    endings
}

fn wins(spec: &PlayerSpec, endings: &[Position]) -> usize {
    let mut player = spec.build();
    let win = |(seed, start): (u64, &Position)| {
        player.new_game(seed);
        let mut game = Game::from_position(*start, DrawRules::default());
        game.play_out(&mut *player, &mut Defender) == Outcome::Win(Side::Black)
    };
    (0..).zip(endings).map(win).filter(|won| *won).count()
}

#[test]
fn with_the_database_a_player_wins_what_it_could_not() {
    let endings = won_endings(100);
    let network = Arc::new(random_network(NodeKind::Weighted, &mut Random::new(3)));
    for player in [
        PlayerSpec::Network { network, depth: 4 },
        PlayerSpec::Ensemble { ensemble: ensemble(3), depth: 2 },
        PlayerSpec::Material { depth: 6 },
        PlayerSpec::Random,
    ] {
        let without = wins(&player, &endings);
        let with = wins(&knowing(player.clone(), knowledge(Consult::Always)), &endings);
        println!("{with} of 100 with the database, {without} without: {player:?}");
        assert_eq!(with, 100);
        assert!(without < 70, "{without} of 100 are won anyway");
    }
}

fn ensemble(members: u64) -> Arc<Ensemble> {
    let network = |seed| Arc::new(random_network(NodeKind::Weighted, &mut Random::new(seed)));
    Arc::new(Ensemble::new((0..members).map(network).collect()).unwrap())
}

#[test]
fn an_ensemble_of_one_uses_what_it_knows_as_it_does_alone() {
    let ensemble = ensemble(1);
    let alone = PlayerSpec::Network { network: ensemble.members()[0].clone(), depth: 2 };
    let voting = PlayerSpec::Ensemble { ensemble, depth: 2 };
    for consult in [Consult::Always, Consult::Unsure { from: 0.0, to: 0.2 }] {
        let book = Some(Arc::new(Book::deck()));
        let known = Knowledge { book, ..knowledge(consult) };
        let [mut one, mut other] =
            [&alone, &voting].map(|player| knowing(player.clone(), known.clone()).build());
        let starts = won_endings(60).into_iter().chain(openings().iter().map(|opening| opening.position));
        for (seed, start) in (0..).zip(starts.chain([Position::START])) {
            let game = Game::from_position(start, DrawRules::default());
            one.new_game(seed);
            other.new_game(seed);
            assert_eq!(one.choose(&game), other.choose(&game));
        }
    }
}

/// An opinion that is the same everywhere.
struct Opinion(f32);

impl Evaluator for Opinion {
    fn evaluate(&mut self, _position: &Position) -> Score {
        Score::from_value(self.0)
    }
}

#[test]
fn the_database_is_asked_where_the_player_is_unsure() {
    let won: Position = "B:WK32:BK23,K18".parse().unwrap();
    assert_eq!(FOUR.probe(&won), Some(EndgameResult::Win));
    for (own, asked) in [(0.0, false), (0.2, false), (0.3, true), (-0.3, true), (0.7, true), (-0.9, false)] {
        let endgames = knowledge(Consult::default()).endgames;
        let score = Knowing::new(Opinion(own), endgames).evaluate(&won);
        assert_eq!(score != Score::from_value(own), asked, "{own}");
        let always = Knowing::new(Opinion(own), knowledge(Consult::Always).endgames).evaluate(&won);
        assert!(always.value() > 0.85, "{always}");
        let alone = Knowing::new(Opinion(own), None).evaluate(&won);
        assert_eq!(alone, Score::from_value(own));
    }
}

#[test]
fn verdicts_outweigh_opinions() {
    let mut evaluator = Knowing::new(Material { seed: 1 }, knowledge(Consult::Always).endgames);
    let mut random = Random::new(4);
    for position in won_endings(50) {
        assert!(evaluator.evaluate(&position).value() > 0.5);
        let moves = position.legal_moves();
        let children: Vec<Position> = moves.iter().map(|mv| position.play(mv)).collect();
        let mut scores = vec![Score::EVEN; children.len()];
        evaluator.evaluate_children(&position, &children, &mut scores);
        let one = random.below(children.len());
        assert_eq!(scores[one], evaluator.evaluate(&children[one]), "alone and together");
    }
}

#[test]
fn the_book_is_played_at_the_start() {
    let knowledge = Knowledge { book: Some(Arc::new(Book::deck())), ..Knowledge::default() };
    for player in [PlayerSpec::Material { depth: 2 }, PlayerSpec::Random] {
        let mut player = knowing(player, knowledge.clone()).build();
        let mut seen = Vec::new();
        for seed in 0..60 {
            player.new_game(seed);
            let mut game = Game::new(DrawRules::default());
            for _ in 0..3 {
                game.play(player.choose(&game).unwrap()).unwrap();
            }
            assert!(openings().iter().any(|opening| opening.moves == game.moves()), "{:?}", game.moves());
            seen.push(*game.position());
        }
        seen.sort_by_key(Position::hash64);
        seen.dedup();
        assert!(seen.len() > 25, "only {} openings in 60 games", seen.len());
    }
}

#[test]
fn a_game_with_knowledge_follows_from_its_seed() {
    let both = Knowledge { book: Some(Arc::new(Book::deck())), ..knowledge(Consult::default()) };
    let mut player = knowing(PlayerSpec::Material { depth: 3 }, both).build();
    let mut play = |seed| {
        let mut game = Game::new(DrawRules::default());
        player.new_game(seed);
        while game.outcome().is_none() {
            game.play(player.choose(&game).unwrap()).unwrap();
        }
        game.moves().to_vec()
    };
    let first = play(1);
    assert_ne!(play(2), first);
    assert_eq!(play(1), first);
}

/// Moves that the database finds equally good, and the network too, are left to chance where ties are.
#[test]
fn equal_moves_of_the_database_follow_the_ties() {
    let blank = Network::new(NodeKind::Sum, &vec![0.0; NodeKind::Sum.weight_count()]);
    let network = Arc::new(blank.expect("a king without worth counts as one man"));
    let played = |position: &Position, ties: Ties| -> std::collections::BTreeSet<String> {
        let best = FOUR.best_moves(position).expect("it is known");
        let style = Style { ties, ..Style::default() };
        let knowledge = Knowledge { style, ..knowledge(Consult::Always) };
        let mut player =
            knowing(PlayerSpec::Network { network: network.clone(), depth: 1 }, knowledge).build();
        let game = Game::from_position(*position, DrawRules::default());
        let chosen = (0..40).map(|seed| {
            player.new_game(seed);
            player.choose(&game).expect("a move")
        });
        chosen.inspect(|mv| assert!(best.contains(mv))).map(|mv| mv.to_string()).collect()
    };
    let endings = won_endings(40);
    assert!(endings.iter().all(|position| played(position, Ties::Order).len() == 1));
    let varied = endings.iter().filter(|position| played(position, Ties::Random).len() > 1).count();
    assert!(varied > 0, "no ending has two equal moves");
}
