//! The fast network against the plain one, and against itself.

use crate::support;
use checkers::{
    Architecture, Evaluator, Move, Network, NetworkEvaluator, NetworkShape, NodeKind, Position, Score,
    SimdPath,
};
use proptest::prelude::*;
use std::sync::Arc;

use crate::support::{Random, random_network, random_position};

fn architectures() -> impl Strategy<Value = Architecture> {
    let nodes = prop_oneof![Just(NodeKind::Weighted), Just(NodeKind::Sum)];
    // The papers' shape as often as the two others together.
    let shapes = [NetworkShape::Paper, NetworkShape::Paper, NetworkShape::Wide, NetworkShape::Phases];
    (nodes, prop::sample::select(shapes.to_vec())).prop_map(|(nodes, shape)| Architecture { nodes, shape })
}

/// All of them.
fn each_architecture() -> impl Iterator<Item = Architecture> {
    let kinds = [NodeKind::Weighted, NodeKind::Sum];
    kinds.into_iter().flat_map(|nodes| NetworkShape::ALL.map(|shape| Architecture { nodes, shape }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn agrees_with_the_plain_reference(architecture in architectures(), seed: u64) {
        let mut random = Random::new(seed);
        let network = Arc::new(random_network(architecture, &mut random));
        let mut evaluator = NetworkEvaluator::new(network.clone());
        for _ in 0..32 {
            let position = random_position(&mut random, 80);
            let difference = evaluator.evaluate(&position).value() - network.reference_value(&position);
            prop_assert!(difference.abs() <= 2e-4, "{position:?}: {difference}");
        }
    }

    #[test]
    fn every_path_and_batch_gives_the_same_bits(architecture in architectures(), seed: u64) {
        let mut random = Random::new(seed);
        let network = Arc::new(random_network(architecture, &mut random));
        let mut best = NetworkEvaluator::new(network.clone());
        for _ in 0..16 {
            let parent = random_position(&mut random, 80);
            let children: Vec<Position> = parent.legal_moves().iter().map(|mv| parent.play(mv)).collect();
            let alone: Vec<Score> = children.iter().map(|child| best.evaluate(child)).collect();
            for path in SimdPath::available() {
                let mut evaluator = NetworkEvaluator::on_path(network.clone(), path).unwrap();
                let mut together = vec![Score::EVEN; children.len()];
                evaluator.evaluate_children(&parent, &children, &mut together);
                prop_assert_eq!(&alone, &together, "{:?} from {:?}", path, parent);
            }
        }
    }

    #[test]
    fn a_value_does_not_depend_on_the_way(architecture in architectures(), seed: u64) {
        let mut random = Random::new(seed);
        let network = Arc::new(random_network(architecture, &mut random));
        let mut travelled = NetworkEvaluator::new(network.clone());
        for _ in 0..200 {
            let position = random_position(&mut random, 80);
            let fresh = NetworkEvaluator::new(network.clone()).evaluate(&position);
            prop_assert_eq!(travelled.evaluate(&position), fresh, "{:?}", position);
        }
    }

    #[test]
    fn transpositions_have_one_value(architecture in architectures(), seed: u64) {
        let mut random = Random::new(seed);
        let network = Arc::new(random_network(architecture, &mut random));
        let root = random_position(&mut random, 60);
        for [first, second] in transpositions(&root) {
            let walk = |moves: &[Move]| {
                let mut evaluator = NetworkEvaluator::new(network.clone());
                let mut position = root;
                evaluator.evaluate(&position);
                for mv in moves {
                    position = position.play(mv);
                    evaluator.evaluate(&position);
                }
                evaluator.evaluate(&position)
            };
            prop_assert_eq!(walk(&first), walk(&second), "{:?}", root);
        }
    }

    #[test]
    fn turning_the_board_changes_nothing(architecture in architectures(), seed: u64) {
        let mut random = Random::new(seed);
        let mut evaluator = NetworkEvaluator::new(Arc::new(random_network(architecture, &mut random)));
        let position = random_position(&mut random, 80);
        prop_assert_eq!(evaluator.evaluate(&position), evaluator.evaluate(&support::turned(&position)));
    }
}

/// Pairs of ways of three moves from a position that lead to the same one.
fn transpositions(root: &Position) -> Vec<[Vec<Move>; 2]> {
    let mut ends: Vec<(Position, Vec<Move>)> = Vec::new();
    let mut pairs = Vec::new();
    for first in root.legal_moves() {
        let one = root.play(&first);
        for second in one.legal_moves() {
            let two = one.play(&second);
            for third in two.legal_moves() {
                let (end, way) = (two.play(&third), vec![first, second, third]);
                match ends.iter().find(|(other, _)| *other == end) {
                    Some((_, other)) => pairs.push([other.clone(), way]),
                    None => ends.push((end, way)),
                }
            }
        }
    }
    pairs
}

#[test]
fn there_are_transpositions_to_test() {
    assert!(transpositions(&Position::START).len() > 10);
}

#[test]
fn weights_that_are_no_numbers_or_miscounted_are_refused() {
    for architecture in each_architecture() {
        let good = vec![0.1; architecture.weight_count()];
        assert!(Network::new(architecture, &good).is_ok());
        assert!(Network::new(architecture, &good[1..]).is_err());
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 2e6] {
            for index in [0, good.len() / 2, good.len() - 1] {
                let mut weights = good.clone();
                weights[index] = bad;
                let error = Network::new(architecture, &weights).unwrap_err().to_string();
                assert!(error.contains(&format!("`{bad}` at index {index}")), "{error}");
            }
        }
    }
}

#[test]
fn the_largest_weights_still_give_a_value() {
    for architecture in each_architecture() {
        let mut random = Random::new(1);
        let weights: Vec<f32> = (0..architecture.weight_count())
            .map(|_| if random.below(2) == 0 { Network::WEIGHT_LIMIT } else { -Network::WEIGHT_LIMIT })
            .collect();
        let mut evaluator = NetworkEvaluator::new(Arc::new(Network::new(architecture, &weights).unwrap()));
        for _ in 0..100 {
            let score = evaluator.evaluate(&random_position(&mut random, 80));
            assert!(score.value().abs() <= 1.0 && score.win_in().is_none());
        }
    }
}
