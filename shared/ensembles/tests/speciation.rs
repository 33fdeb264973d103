//! Populations of networks whose kinds are known.

use checkers::{
    DrawRules, Game, Knowledge, Network, NodeKind, PlayerSpec, Side, Style, Ties, openings,
    stratified_openings,
};
use ensembles::{Distance, RoundRobinStanding, Speciation, SpeciationError, SpeciationSettings, round_robin};
use species::Noise;
use std::sync::Arc;

/// SplitMix64, between -1 and 1.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    fn weights(&mut self, kind: NodeKind) -> Vec<f32> {
        let mut weights: Vec<f32> = (0..kind.weight_count()).map(|_| 0.2 * self.next()).collect();
        *weights.last_mut().expect("a king's worth") = 2.0;
        weights
    }
}

fn network(weights: &[f32]) -> Arc<Network> {
    let kind = if weights.len() == NodeKind::Sum.weight_count() { NodeKind::Sum } else { NodeKind::Weighted };
    Arc::new(Network::new(kind, weights).expect("weights of a network"))
}

/// Families in turn: individual i belongs to family i modulo `families`; then as many of no family.
fn population(families: usize, members: usize, loners: usize) -> Vec<Arc<Network>> {
    let mut random = Random(7);
    let ancestors: Vec<Vec<f32>> = (0..families).map(|_| random.weights(NodeKind::Sum)).collect();
    let mut child = |i: usize| -> Arc<Network> {
        network(
            &ancestors[i % families].iter().map(|weight| weight + 0.005 * random.next()).collect::<Vec<_>>(),
        )
    };
    let mut population: Vec<Arc<Network>> = (0..families * members).map(&mut child).collect();
    let mut random = Random(8);
    population.extend((0..loners).map(|_| network(&random.weights(NodeKind::Sum))));
    population
}

fn quick() -> SpeciationSettings {
    SpeciationSettings { depth: 2, ..SpeciationSettings::default() }
}

#[test]
fn families_are_found_by_weights_and_by_behaviour() {
    let networks = population(3, 5, 2);
    for distance in [Distance::Weights, Distance::Behaviour { positions: 64 }] {
        let found = Speciation::of(&networks, &SpeciationSettings { distance, ..quick() }).expect("species");
        let expected: Vec<Vec<usize>> = (0..3).map(|family| (family..15).step_by(3).collect()).collect();
        assert_eq!(found.species().members(), expected, "{distance:?}");
        assert_eq!(found.species().outsiders().collect::<Vec<_>>(), [15, 16]);
        let representatives = found.representatives();
        assert!((0..3).all(|family| representatives[family] % 3 == family), "{representatives:?}");
        let ensemble = found.ensemble(&networks).expect("an ensemble");
        for (member, best) in ensemble.members().iter().zip(representatives) {
            assert_eq!(member.weights(), networks[best].weights());
        }
    }
}

#[test]
fn noise_may_be_heard() {
    let networks = population(2, 4, 3);
    let species = |noise| {
        let found = Speciation::of(&networks, &SpeciationSettings { noise, ..quick() }).expect("species");
        (found.species().count(), found.species().outsiders().count())
    };
    assert_eq!(species(Noise::Drop), (2, 3));
    assert_eq!(species(Noise::Own), (5, 0));
    assert_eq!(species(Noise::Nearest), (2, 0));
}

#[test]
fn the_round_robin_is_fair_and_complete() {
    let networks = population(1, 5, 0);
    for pairs in [1, 3] {
        let standings = round_robin(&networks, &SpeciationSettings { pairs, ..quick() });
        let games = 2 * pairs as u32 * 4;
        assert!(standings.iter().all(|s| s.wins + s.losses + s.draws == games), "{standings:?}");
        let sum = |count: fn(&RoundRobinStanding) -> u32| standings.iter().map(count).sum::<u32>();
        assert_eq!(sum(|s| s.wins), sum(|s| s.losses));
        assert!(standings.is_sorted_by_key(|s| std::cmp::Reverse((s.points(), s.wins))), "{standings:?}");
    }
}

/// Knows what a piece is worth, and nothing else.
fn counting() -> Arc<Network> {
    let mut weights = vec![0.0; NodeKind::Sum.weight_count()];
    let last = weights.len();
    weights[last - 2] = 0.1;
    weights[last - 1] = 2.0;
    network(&weights)
}

#[test]
fn whoever_can_count_beats_whoever_prefers_to_lose() {
    let mut weights = counting().weights().to_vec();
    let last = weights.len();
    weights[last - 2] = -0.1;
    let players = [network(&weights), counting(), network(&vec![0.0; last])];
    let standings =
        round_robin(&players, &SpeciationSettings { pairs: 4, depth: 3, ..SpeciationSettings::default() });
    assert_eq!(standings.iter().map(|s| s.player).collect::<Vec<_>>(), [1, 2, 0], "{standings:?}");
    assert!(standings[0].wins >= 12, "{standings:?}");
}

/// The games of a round robin of two, played by hand: the first 13 openings are the first draw of the deck.
fn by_hand(players: &[Arc<Network>; 2], depth: u32, style: Style) -> [u32; 3] {
    let knowledge = Knowledge { style, ..Knowledge::default() };
    let [one, other] = players.clone().map(|network| {
        let player = Box::new(PlayerSpec::Network { network, depth });
        PlayerSpec::Knowing { player, knowledge: knowledge.clone() }
    });
    let mut results = [0; 3];
    for opening in stratified_openings(openings(), 13, 0) {
        for (black, white, first) in [(&one, &other, Side::Black), (&other, &one, Side::White)] {
            let mut game = Game::from_position(opening.position, DrawRules::default());
            let outcome = game.play_out(&mut *black.build(), &mut *white.build());
            results[(1 - outcome.points(first)) as usize] += 1;
        }
    }
    results
}

#[test]
fn members_search_as_they_are_told() {
    let networks = population(2, 1, 0);
    let players = [networks[0].clone(), networks[1].clone()];
    let mut seen = vec![];
    for (quiescence, history) in [(true, false), (false, false), (false, true)] {
        let style = Style { quiescence, history, ..Style::default() };
        let settings = SpeciationSettings { pairs: 13, depth: 3, style, ..SpeciationSettings::default() };
        let standings = round_robin(&networks, &settings);
        let first = standings.iter().find(|standing| standing.player == 0).expect("both stand");
        let results = [first.wins, first.draws, first.losses];
        assert_eq!(results, by_hand(&players, 3, style), "{style:?}");
        seen.push(results);
    }
    assert_ne!(seen[0], seen[1], "the extension made no difference");
}

#[test]
fn equal_moves_may_be_left_to_chance() {
    let zeros = || network(&vec![0.0; NodeKind::Sum.weight_count()]);
    let standings = |ties, seed| {
        let style = Style { ties, ..Style::default() };
        round_robin(&[zeros(), zeros(), zeros()], &SpeciationSettings { pairs: 20, seed, style, ..quick() })
    };
    assert_ne!(standings(Ties::Order, 1), standings(Ties::Random, 1));
    assert_eq!(standings(Ties::Random, 1), standings(Ties::Random, 1));
    let wins = |standings: &[RoundRobinStanding]| standings.iter().map(|s| s.wins).collect::<Vec<_>>();
    let by_seed: Vec<_> = (0..4).map(|seed| wins(&standings(Ties::Random, seed))).collect();
    assert!(by_seed.windows(2).any(|two| two[0] != two[1]), "{by_seed:?}");
}

#[test]
fn a_race_finds_the_best_with_fewer_games() {
    let zeros = || network(&vec![0.0; NodeKind::Sum.weight_count()]);
    let players = [zeros(), zeros(), counting(), zeros()];
    let settings = SpeciationSettings { pairs: 30, race: true, ..quick() };
    let standings = round_robin(&players, &settings);
    assert_eq!(standings[0].player, 2, "{standings:?}");
    let games: u32 = standings.iter().map(|one| one.wins + one.draws + one.losses).sum::<u32>() / 2;
    assert!(games < 30 * 2 * 6, "{games} of at most {}", 30 * 2 * 6);
    let fixed = round_robin(&players, &SpeciationSettings { race: false, ..settings.clone() });
    assert_eq!(fixed[0].player, 2, "{fixed:?}");
    assert_eq!(round_robin(&players, &settings), standings);
}

#[test]
fn equals_stand_in_their_order() {
    let players = vec![counting(); 4];
    let standings = round_robin(&players, &quick());
    assert_eq!(standings.len(), 4);
    for two in standings.windows(2) {
        let [one, other] = [two[0], two[1]].map(|s| (s.points(), s.wins));
        assert!(one > other || two[0].player < two[1].player, "{standings:?}");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let networks = population(2, 5, 1);
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        let settings = SpeciationSettings { distance: Distance::Behaviour { positions: 32 }, ..quick() };
        pool.install(|| Speciation::of(&networks, &settings).expect("species"))
    };
    assert_eq!(with(1), with(3));
}

#[test]
fn one_or_few_individuals_are_one_species() {
    for count in [1, 3] {
        let networks = population(1, count, 0);
        let found = Speciation::of(&networks, &quick()).expect("species");
        assert_eq!((found.clustering().clusters(), found.species().count()), (0, 1));
        assert_eq!(found.ensemble(&networks).expect("an ensemble").members().len(), 1);
    }
    let same = vec![counting(); 6];
    let found = Speciation::of(&same, &quick()).expect("species");
    assert_eq!((found.clustering().clusters(), found.dbscan().epsilon), (1, 0.0));
}

#[test]
fn what_cannot_be_compared_is_refused() {
    assert_eq!(Speciation::of(&[], &quick()).expect_err("nobody"), SpeciationError::Empty);
    let mixed = [counting(), network(&Random(1).weights(NodeKind::Weighted))];
    let refusal = Speciation::of(&mixed, &quick()).expect_err("other weights").to_string();
    assert!(
        refusal.contains("expected networks of sum nodes") && refusal.contains("found weighted nodes"),
        "{refusal}"
    );
    let behaviour = SpeciationSettings { distance: Distance::BEHAVIOUR, ..quick() };
    assert_eq!(Speciation::of(&mixed, &behaviour).expect("comparable").species().count(), 1);
    for epsilon in [-1.0, f64::NAN] {
        let settings = SpeciationSettings { epsilon: Some(epsilon), ..quick() };
        assert!(matches!(Speciation::of(&mixed[..1], &settings), Err(SpeciationError::Epsilon(_))));
    }
}

#[test]
fn too_many_species_make_no_ensemble() {
    let networks: Vec<Arc<Network>> =
        (0..257_u16).map(|i| network(&vec![f32::from(i); NodeKind::Sum.weight_count()])).collect();
    let settings = SpeciationSettings { noise: Noise::Own, epsilon: Some(0.0), ..quick() };
    let found = Speciation::of(&networks, &settings).expect("species");
    assert_eq!(found.ensemble(&networks).expect_err("too many").0, 257);
}

#[test]
fn summary_picture_and_player_tell_the_same_story() {
    let networks = population(2, 4, 1);
    let names: Vec<String> = (0..networks.len()).map(|i| format!("net-{i}")).collect();
    let found = Speciation::of(&networks, &quick()).expect("species");
    let summary = serde_json::to_value(found.summary(&names)).expect("JSON");
    assert_eq!(summary["population"], 9);
    assert_eq!(summary["distance"]["by"], "weights");
    assert_eq!(summary["outsiders"], serde_json::json!(["net-8"]));
    let species = summary["species"].as_array().expect("species");
    for (number, (species, best)) in species.iter().zip(found.representatives()).enumerate() {
        assert_eq!(species["representative"], names[best]);
        assert_eq!(species["standings"][0]["name"], names[best]);
        let legend = format!("{}: 4, {}<", number + 1, names[best]);
        assert!(found.picture("Two", &names).contains(&legend), "{legend}");
    }
    let ensemble = Arc::new(found.ensemble(&networks).expect("an ensemble"));
    let mut player = PlayerSpec::Ensemble { ensemble, depth: 2 }.build();
    assert!(player.choose(&checkers::Game::new(checkers::DrawRules::default())).is_some());
}
