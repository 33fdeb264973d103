//! Players, their games, and their files.

use checkers::{
    Architecture, DrawRules, Evaluator, Game, Limits, Network, NetworkError, NetworkEvaluator, NetworkPlayer,
    NetworkShape, NodeKind, Outcome, Player, PlayerFileError, PlayerSpec, Position, Reuse, Search, Side,
};
use proptest::prelude::*;
use std::sync::Arc;

use crate::support::{Random, random_network, random_position, resealed};

fn network(architecture: impl Into<Architecture>, seed: u64) -> Arc<Network> {
    Arc::new(random_network(architecture, &mut Random::new(seed)))
}

/// The moves of a game between two players with these seeds.
fn game(black: &mut dyn Player, white: &mut dyn Player, seed: u64) -> Vec<String> {
    black.new_game(seed);
    white.new_game(seed + 1);
    let mut game = Game::new(DrawRules { max_plies: 120, ..DrawRules::default() });
    game.play_out(black, white);
    game.moves().iter().map(ToString::to_string).collect()
}

fn specs() -> [PlayerSpec; 4] {
    [
        PlayerSpec::Network { network: network(NodeKind::Weighted, 1), depth: 3 },
        PlayerSpec::Network { network: network(NodeKind::Sum, 2), depth: 2 },
        PlayerSpec::Material { depth: 3 },
        PlayerSpec::Random,
    ]
}

#[test]
fn a_game_follows_from_players_and_seed() {
    for black in specs() {
        for white in specs() {
            let mut used = (black.build(), white.build());
            game(&mut *used.0, &mut *used.1, 40);
            let again = game(&mut *used.0, &mut *used.1, 7);
            let fresh = game(&mut *black.build(), &mut *white.build(), 7);
            assert_eq!(again, fresh, "{black:?} against {white:?}");
        }
    }
}

#[test]
fn chance_follows_the_seed() {
    for spec in [PlayerSpec::Random, PlayerSpec::Material { depth: 2 }] {
        let games: Vec<Vec<String>> =
            (0..8).map(|seed| game(&mut *spec.build(), &mut *spec.build(), 10 * seed)).collect();
        assert!(games.iter().any(|other| *other != games[0]), "{spec:?} always plays the same");
    }
}

#[test]
fn looking_ahead_beats_chance() {
    let mut won = 0;
    for seed in 0..20 {
        let (mut thinker, mut gambler) =
            (PlayerSpec::Material { depth: 4 }.build(), PlayerSpec::Random.build());
        thinker.new_game(seed);
        gambler.new_game(seed);
        let mut game = Game::new(DrawRules::default());
        won += i32::from(game.play_out(&mut *gambler, &mut *thinker) == Outcome::Win(Side::White));
    }
    assert!(won >= 18, "{won} of 20");
}

#[test]
fn a_player_can_change_its_network() {
    let mut player = NetworkPlayer::new(network(NodeKind::Weighted, 1), 3);
    let before = game(&mut player, &mut *PlayerSpec::Random.build(), 5);
    player.set_network(network(NodeKind::Sum, 2));
    game(&mut player, &mut *PlayerSpec::Random.build(), 5);
    player.set_network(network(NodeKind::Weighted, 1));
    assert_eq!(game(&mut player, &mut *PlayerSpec::Random.build(), 5), before);
}

/// Pins what networks say and what searches find, to the bit: it changes only when that is meant to change.
#[test]
fn values_and_moves_are_the_same_in_every_release() {
    let mut digest = 0_u64;
    for kind in [NodeKind::Weighted, NodeKind::Sum] {
        let mut evaluator = NetworkEvaluator::new(network(kind, 3));
        let mut search = Search::new(Search::SMALL_TABLE, Reuse::EqualDepth);
        let mut random = Random::new(4);
        for _ in 0..50 {
            let position = random_position(&mut random, 80);
            let found = search.run(&mut evaluator, &position, &Limits::depth(4));
            let best = found.map_or(0, |found| {
                u64::from(found.best.from().number()) << 8 | u64::from(found.best.to().number())
            });
            for part in [u64::from(evaluator.evaluate(&position).value().to_bits()), best] {
                digest = (digest ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
            }
        }
    }
    assert_eq!(format!("{digest:016x}"), "81ae2fa428afcd21");
}

#[test]
fn limits_are_kept_and_always_leave_a_move() {
    let mut evaluator = NetworkEvaluator::new(network(NodeKind::Weighted, 1));
    let mut search = Search::new(16, Reuse::AtLeastDepth);
    let few = Limits { nodes: Some(5000), ..Limits::depth(64) };
    let found = search.run(&mut evaluator, &Position::START, &few).unwrap();
    assert!(found.nodes <= 5000 && found.depth >= 4, "{found:?}");
    let none = Limits { nodes: Some(0), ..Limits::depth(64) };
    assert_eq!(search.run(&mut evaluator, &Position::START, &none).unwrap().depth, 2);
    let short = Limits { time: Some(std::time::Duration::ZERO), ..Limits::depth(64) };
    let found = search.run(&mut evaluator, &Position::START, &short).unwrap();
    assert!(found.depth < 64 && found.nodes < 100_000, "{found:?}");
    assert_eq!(search.run(&mut evaluator, &"W:W:B1".parse().unwrap(), &Limits::depth(3)), None);
}

#[test]
fn a_proved_end_is_played_out_in_the_line() {
    const DEPTH: u32 = 7;
    let mut evaluator = NetworkEvaluator::new(network(NodeKind::Weighted, 1));
    let mut search = Search::new(16, Reuse::EqualDepth);
    let mut random = Random::new(2);
    let mut ends = 0;
    for _ in 0..300 {
        let position = random_position(&mut random, 120);
        let Some(found) = search.run(&mut evaluator, &position, &Limits::depth(DEPTH)) else { continue };
        let Some(plies) = found.score.win_in().or(found.score.lost_in()).filter(|plies| *plies <= DEPTH)
        else {
            continue;
        };
        let line = &search.lines()[0].moves;
        let last = line.iter().fold(position, |position, mv| position.play(mv));
        assert_eq!((line.len() as u32, last.is_lost()), (plies, true), "{position:?}: {line:?}");
        let winner =
            if found.score.win_in().is_some() { position.side_to_move() } else { !position.side_to_move() };
        assert_eq!(last.side_to_move(), !winner);
        ends += 1;
    }
    assert!(ends > 10, "only {ends} positions with an end in sight");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_player_file_gives_the_same_network(seed: u64, sum: bool, shape in 0..3_usize) {
        let nodes = if sum { NodeKind::Sum } else { NodeKind::Weighted };
        let network = network(Architecture { nodes, shape: NetworkShape::ALL[shape] }, seed);
        let bytes = network.to_player_file();
        prop_assert_eq!(bytes[8], if shape == 0 { 1 } else { 2 }, "the version");
        let read = Network::from_player_file(&bytes).unwrap();
        prop_assert_eq!(read.architecture(), network.architecture());
        prop_assert_eq!(read.weights(), network.weights());
    }

    #[test]
    fn any_altered_byte_is_noticed(seed: u64, at: prop::sample::Index, by in 1u8..) {
        let mut bytes = network(NodeKind::Sum, seed).to_player_file();
        let at = at.index(bytes.len());
        bytes[at] ^= by;
        prop_assert!(Network::from_player_file(&bytes).is_err(), "byte {}", at);
    }

    #[test]
    fn a_cut_or_longer_file_is_noticed(seed: u64, at: prop::sample::Index) {
        let mut bytes = network(NodeKind::Sum, seed).to_player_file();
        prop_assert!(Network::from_player_file(&bytes[..at.index(bytes.len())]).is_err());
        bytes.push(0);
        prop_assert!(Network::from_player_file(&bytes).is_err());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Network::from_player_file(&bytes).is_err());
        let with_magic: Vec<u8> = b"ATOLL-CP\x01\0\0\0".iter().copied().chain(bytes).collect();
        prop_assert!(Network::from_player_file(&with_magic).is_err());
    }
}

#[test]
fn bad_player_files_are_refused_with_the_reason() {
    let good = network(NodeKind::Weighted, 1).to_player_file();
    let refusal = |at, replacement: &[u8]| {
        Network::from_player_file(&resealed(good.clone(), at, replacement)).unwrap_err()
    };
    let nan = refusal(24 + 4 * 17, &f32::NAN.to_le_bytes());
    assert!(matches!(nan, PlayerFileError::Network(NetworkError::Weight { index: 17, .. })), "{nan}");
    assert!(matches!(refusal(0, b"PNG"), PlayerFileError::Magic(_)));
    assert!(matches!(refusal(8, &[3]), PlayerFileError::Version(3)));
    assert!(matches!(refusal(12, &[255; 4]), PlayerFileError::Network(NetworkError::Count { .. })));
    assert!(matches!(refusal(16, &[90, 0]), PlayerFileError::Layers([90, 40, 10])));
    assert!(matches!(refusal(22, &[7, 0]), PlayerFileError::Kind(7)));
    let phases = Architecture { nodes: NodeKind::Weighted, shape: NetworkShape::Phases };
    let phases = network(phases, 1).to_player_file();
    let refusal = |shape: u8| Network::from_player_file(&resealed(phases.clone(), 24, &[shape])).unwrap_err();
    assert!(matches!(refusal(0), PlayerFileError::Shape(0)), "the papers' shape is version 1");
    assert!(matches!(refusal(1), PlayerFileError::Network(NetworkError::Count { .. })));
    assert!(matches!(refusal(3), PlayerFileError::Shape(3)));
    let mut damaged = good.clone();
    damaged[5000] ^= 1;
    let error = Network::from_player_file(&damaged).unwrap_err();
    assert!(matches!(error, PlayerFileError::Checksum { .. }), "{error}");
    assert!(matches!(Network::from_player_file(&[]).unwrap_err(), PlayerFileError::Length { .. }));
}

#[test]
fn player_files_are_loaded_from_disk() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("a-player.acp");
    for shape in NetworkShape::ALL {
        let network = network(Architecture { nodes: NodeKind::Weighted, shape }, 9);
        std::fs::write(&path, network.to_player_file()).unwrap();
        assert_eq!(Network::load(&path).unwrap().weights(), network.weights());
    }
    let missing = Network::load(&path.with_extension("missing")).unwrap_err();
    assert!(matches!(missing, PlayerFileError::Read(_)));
}
