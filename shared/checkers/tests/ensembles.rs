//! Ensembles, their votes and their files; and what networks are compared by.

use checkers::{
    DrawRules, Ensemble, EnsembleError, EnsemblePlayer, Evaluator, Game, Knowledge, Limits, Move, Network,
    NetworkEvaluator, NodeKind, Player, PlayerFile, PlayerFileError, PlayerSpec, Position, Search, Side,
    behaviour, openings, sample_positions,
};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::support::{Random, random_network, random_position, resealed};

fn networks(seed: u64, count: usize) -> Vec<Arc<Network>> {
    let mut random = Random::new(seed);
    let kind = |i: usize| if i.is_multiple_of(2) { NodeKind::Weighted } else { NodeKind::Sum };
    (0..count).map(|i| Arc::new(random_network(kind(i), &mut random))).collect()
}

fn ensemble(seed: u64, count: usize) -> Ensemble {
    Ensemble::new(networks(seed, count)).unwrap()
}

fn moves(black: &mut dyn Player, white: &mut dyn Player) -> Vec<Move> {
    black.new_game(1);
    white.new_game(2);
    let rules = DrawRules { max_plies: 100, ..DrawRules::default() };
    let mut game = Game::from_position(openings()[11].position, rules);
    game.play_out(black, white);
    game.moves().to_vec()
}

#[test]
fn one_of_a_kind_or_many_play_as_it_does_alone() {
    for network in networks(5, 2) {
        let alone = PlayerSpec::Network { network: network.clone(), depth: 3 };
        for count in [1, 3] {
            let ensemble = Arc::new(Ensemble::new(vec![network.clone(); count]).unwrap());
            let together = PlayerSpec::Ensemble { ensemble, depth: 3 };
            let opponent = PlayerSpec::Material { depth: 2 };
            let [one, other] =
                [&alone, &together].map(|spec| moves(&mut *spec.build(), &mut *opponent.build()));
            assert_eq!(one, other);
            let [one, other] =
                [&alone, &together].map(|spec| moves(&mut *opponent.build(), &mut *spec.build()));
            assert_eq!(one, other);
        }
    }
}

#[test]
fn what_it_plays_follows_from_the_position_alone() {
    let ensemble = ensemble(3, 4);
    let mut used = EnsemblePlayer::new(&ensemble, 3);
    for seed in 0..30 {
        let position = random_position(&mut Random::new(seed), 60);
        let fresh = EnsemblePlayer::new(&ensemble, 3).votes(&position);
        assert_eq!(used.votes(&position), fresh);
    }
}

/// What a position is worth: an opinion, or an end that is better the sooner it is won and the later it is lost.
fn minimax(evaluator: &mut NetworkEvaluator, position: &Position, depth: u32) -> f64 {
    let moves = position.legal_moves();
    if moves.is_empty() {
        return -2.0;
    }
    if depth == 0 && !moves[0].is_capture() {
        return f64::from(evaluator.evaluate(position).value());
    }
    let worth = |mv: &Move| later(-minimax(evaluator, &position.play(mv), depth.saturating_sub(1)));
    moves.iter().map(worth).fold(f64::NEG_INFINITY, f64::max)
}

/// An end is one ply farther away.
fn later(worth: f64) -> f64 {
    if worth.abs() > 1.0 { worth - worth.signum() / 1024.0 } else { worth }
}

/// The move, whether the vote was tied, and whether the tie's scores were equal, by the rule as it reads.
fn reference(members: &[Arc<Network>], position: &Position, depth: u32) -> (Move, bool) {
    let moves = position.legal_moves();
    let worths = |network: &Arc<Network>| -> Vec<f64> {
        let mut evaluator = NetworkEvaluator::new(network.clone());
        moves.iter().map(|mv| later(-minimax(&mut evaluator, &position.play(mv), depth - 1))).collect()
    };
    let opinions: Vec<Vec<f64>> = members.iter().map(worths).collect();
    let mut votes = vec![0; moves.len()];
    for opinion in &opinions {
        let best = opinion.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        votes[opinion.iter().position(|worth| *worth == best).unwrap()] += 1;
    }
    let most = *votes.iter().max().unwrap();
    let tied: Vec<usize> = (0..moves.len()).filter(|mv| votes[*mv] == most).collect();
    let sum = |mv: usize| opinions.iter().map(|opinion| opinion[mv].clamp(-1.0, 1.0)).sum::<f64>();
    let best = tied.iter().map(|mv| sum(*mv)).fold(f64::NEG_INFINITY, f64::max);
    (moves[*tied.iter().find(|mv| sum(**mv) == best).unwrap()], tied.len() > 1)
}

#[test]
fn most_votes_win_and_ties_go_by_summed_score() {
    let (mut ties, mut decided) = (0, 0);
    for seed in 0..150 {
        let mut random = Random::new(1000 + seed);
        let position = random_position(&mut random, 70);
        if position.is_lost() {
            continue;
        }
        let (count, depth) = (2 + random.below(3), 1 + random.below(3) as u32);
        let ensemble = ensemble(seed, count);
        let (expected, tied) = reference(ensemble.members(), &position, depth);
        let votes = EnsemblePlayer::new(&ensemble, depth).votes(&position);
        assert_eq!(votes[0].mv, expected, "{position:?}: {votes:?}");
        assert_eq!(votes[0].score.is_some(), tied, "{votes:?}");
        assert_eq!(votes.iter().map(|votes| votes.voters.len()).sum::<usize>(), count);
        assert_eq!(votes.len(), position.legal_moves().len());
        *(if tied { &mut ties } else { &mut decided }) += 1;
    }
    assert!(ties > 20 && decided > 20, "{ties} ties, {decided} decided");
}

#[test]
fn limits_hold_for_all_members_together() {
    let limits = Limits { time: Some(Duration::ZERO), ..Limits::depth(64) };
    let mut player =
        EnsemblePlayer::with_limits(&ensemble(1, 3), &Knowledge::default(), limits, Search::SMALL_TABLE);
    assert_eq!(player.votes(&Position::START).len(), 7);
    assert!(player.votes(&"W:W:B1".parse().unwrap()).is_empty());
    let lost = Game::from_position("W:W:B1".parse().unwrap(), DrawRules::default());
    assert_eq!(player.choose(&lost), None);
}

#[test]
fn an_ensemble_has_1_to_256_members() {
    assert_eq!(Ensemble::new(vec![]).unwrap_err(), EnsembleError(0));
    let network = networks(1, 1).remove(0);
    assert_eq!(Ensemble::new(vec![network.clone(); 257]).unwrap_err(), EnsembleError(257));
    let largest = Ensemble::new(vec![network; 256]).unwrap();
    let path = temporary("largest.acp", &largest.to_player_file());
    assert_eq!(Ensemble::load(&path).unwrap().members().len(), 256);
}

fn temporary(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_player_is_loaded_from_either_kind_of_file() {
    let ensemble = ensemble(4, 3);
    let many = temporary("an-ensemble.acp", &ensemble.to_player_file());
    let one = temporary("a-member.acp", &ensemble.members()[0].to_player_file());
    let spec = PlayerFile::load(&many).unwrap().player(4);
    assert!(matches!(&spec, PlayerSpec::Ensemble { ensemble, depth: 4 } if ensemble.members().len() == 3));
    assert_eq!(PlayerFile::load(&many).unwrap().networks().len(), 3);
    assert!(matches!(PlayerFile::load(&one).unwrap().player(4), PlayerSpec::Network { depth: 4, .. }));
    assert_eq!(PlayerFile::load(&one).unwrap().networks().len(), 1);
    assert!(matches!(Network::load(&many).unwrap_err(), PlayerFileError::Ensemble));
    assert!(matches!(Ensemble::load(&one).unwrap_err(), PlayerFileError::Magic(_)));
    let missing = PlayerFile::load(&one.with_extension("missing")).unwrap_err();
    assert!(matches!(missing, PlayerFileError::Read(_)));
    let endless = PlayerFile::load(Path::new("/dev/zero")).unwrap_err();
    assert!(matches!(endless, PlayerFileError::Magic(_)), "{endless}");
}

#[test]
fn bad_ensemble_files_are_refused_with_the_reason() {
    let good = ensemble(2, 2).to_player_file();
    let refusal = |at, replacement: &[u8]| {
        Ensemble::from_player_file(&resealed(good.clone(), at, replacement)).unwrap_err()
    };
    assert!(matches!(refusal(0, b"PNG"), PlayerFileError::Magic(_)));
    assert!(matches!(refusal(8, &[2]), PlayerFileError::Version(2)));
    assert!(matches!(refusal(12, &[0]), PlayerFileError::Members(EnsembleError(0))));
    assert!(matches!(refusal(12, &[255; 4]), PlayerFileError::Members(_)));
    assert!(matches!(refusal(12, &[1]), PlayerFileError::Length { .. }));
    assert!(matches!(refusal(12, &[3]), PlayerFileError::Length { .. }));
    assert!(matches!(refusal(16, &[255; 4]), PlayerFileError::Length { .. }));
    let second = 16 + 4 + networks(2, 2)[0].to_player_file().len() + 4;
    let inside = refusal(second + 8, &[9]);
    assert_eq!(inside.to_string(), "member 1: expected format version 1 or 2, found `9`");
    let mut damaged = good.clone();
    damaged[5000] ^= 1;
    let error = Ensemble::from_player_file(&damaged).unwrap_err();
    assert!(matches!(error, PlayerFileError::Checksum { .. }), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn an_ensemble_file_gives_the_same_members(seed: u64, count in 1_usize..5) {
        let ensemble = ensemble(seed, count);
        let read = Ensemble::from_player_file(&ensemble.to_player_file()).unwrap();
        let weights = |ensemble: &Ensemble| -> Vec<Vec<f32>> {
            ensemble.members().iter().map(|network| network.weights().to_vec()).collect()
        };
        prop_assert_eq!(weights(&read), weights(&ensemble));
    }

    #[test]
    fn any_altered_or_missing_byte_is_noticed(seed: u64, at: prop::sample::Index, by in 1_u8..) {
        let good = ensemble(seed, 2).to_player_file();
        let at = at.index(good.len());
        prop_assert!(Ensemble::from_player_file(&good[..at]).is_err());
        let mut longer = good.clone();
        longer.push(by);
        prop_assert!(Ensemble::from_player_file(&longer).is_err());
        let mut altered = good;
        altered[at] ^= by;
        prop_assert!(Ensemble::from_player_file(&altered).is_err(), "byte {}", at);
    }

    #[test]
    fn any_bytes_are_read_or_refused(count in 0_u32..300, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Ensemble::from_player_file(&bytes).is_err());
        let mut with_header = b"ATOLL-CE\x01\0\0\0".to_vec();
        with_header.extend(count.to_le_bytes());
        with_header.extend(bytes);
        prop_assert!(Ensemble::from_player_file(&with_header).is_err());
    }
}

#[test]
fn sampled_positions_are_quiet_different_and_of_all_phases() {
    let positions = sample_positions(1, 200);
    for (place, position) in positions.iter().enumerate() {
        position.validate().unwrap();
        assert!(!position.must_capture() && !position.is_lost());
        assert!(!positions[..place].contains(position));
    }
    let pieces = |position: &Position| position.empty().count().abs_diff(32);
    let count = |fits: &dyn Fn(&Position) -> bool| positions.iter().filter(|p| fits(p)).count();
    assert!(count(&|p| pieces(p) > 18) > 20, "openings");
    assert!(count(&|p| pieces(p) < 10) > 20, "endings");
    assert!(count(&|p| !p.kings(Side::Black).is_empty() || !p.kings(Side::White).is_empty()) > 20, "kings");
    assert!(count(&|p| p.side_to_move() == Side::Black) > 50);
    assert_ne!(positions, sample_positions(2, 200));
}

#[test]
fn behaviour_is_what_the_network_says() {
    let positions = sample_positions(1, 40);
    for network in networks(8, 2) {
        let said = behaviour(&network, &positions);
        let mut reversed: Vec<Position> = positions.clone();
        reversed.reverse();
        let mut again = behaviour(&network, &reversed);
        again.reverse();
        assert_eq!(said, again);
        for (value, position) in said.iter().zip(&positions) {
            assert!((value - network.reference_value(position)).abs() < 1e-4);
        }
    }
}
