//! `atoll checkers species`, driven as a person drives it, and the ensemble that comes of it.

use crate::support::{Place, Seeded};
use checkers::{Network, NodeKind};

/// A folder `nets` of players: three families of six in turn, and two of no family.
fn population(place: &Place) {
    let mut random = Seeded::new(1);
    let mut weight = |range: f32| (random.below(2001) as f32 / 1000.0 - 1.0) * range;
    let count = NodeKind::Sum.weight_count();
    let ancestors: Vec<Vec<f32>> = (0..3).map(|_| (0..count).map(|_| weight(0.2)).collect()).collect();
    std::fs::create_dir(place.path().join("nets")).expect("a folder");
    for number in 0..20 {
        let weights: Vec<f32> = match number {
            18.. => (0..count).map(|_| weight(0.2)).collect(),
            _ => ancestors[number % 3].iter().map(|gene| gene + weight(0.01)).collect(),
        };
        let network = Network::new(NodeKind::Sum, &weights).expect("weights of a network");
        place.write(&format!("nets/net-{number:02}.acp"), network.to_player_file());
    }
    place.write("nets/README", "not a player");
}

#[test]
fn from_a_folder_of_players_to_an_ensemble_that_plays() {
    let place = Place::new();
    population(&place);
    let find = ["checkers", "species", "nets", "--depth", "2", "--svg", "nets.svg", "--ensemble", "best.acp"];
    let summary = place.json(&[&find[..], &["--json"]].concat());
    assert_eq!(summary["population"], 20);
    assert_eq!(summary["outsiders"], serde_json::json!(["net-18", "net-19"]));
    let species = summary["species"].as_array().expect("species");
    assert_eq!(species.len(), 3);
    let games = |standing: &serde_json::Value| {
        ["wins", "losses", "draws"].iter().filter_map(|key| standing[key].as_u64()).sum::<u64>()
    };
    for species in species {
        let standings = species["standings"].as_array().expect("standings");
        assert!(standings.len() == 6 && standings.iter().all(|standing| games(standing) == 10), "{species}");
        assert_eq!(species["representative"], standings[0]["name"]);
    }
    let picture = std::fs::read_to_string(place.path().join("nets.svg")).expect("a picture");
    assert!(picture.starts_with("<svg") && picture.contains("Species of nets"));
    let told = place.run(&find);
    assert!(told.expect(0).stdout.contains("20 players, 3 species, 2 of no species"), "{told:?}");

    let vote = place.json(&["checkers", "best", "--player", "best.acp", "--depth", "3", "--json"]);
    let votes = vote["votes"].as_array().expect("votes");
    assert_eq!(vote["best"], votes[0]["move"]);
    assert_eq!(votes.iter().filter_map(|votes| votes["votes"].as_u64()).sum::<u64>(), 3);
    // An ensemble is a population too.
    let again = place.json(&["checkers", "species", "best.acp", "--noise", "own", "--json"]);
    assert_eq!((&again["population"], again["species"].as_array().map(Vec::len)), (&3.into(), Some(3)));
}

const SELF_PLAY: &str = r#"
name = "tiny"
problem = { kind = "checkers", nodes = "sum", depth = 1, games = 1, draw = { moves = 20 } }
algorithm = { kind = "crowding", population = 6, mutation = { rate = 0.01, per = "gene", step = 0.1 } }
islands = { count = 2, topology = "ring" }
migration = { interval = 1 }
budget = { generations = 2 }
"#;

#[test]
fn what_a_run_has_evolved_has_species_too() {
    let place = Place::new();
    place.write("tiny.toml", SELF_PLAY);
    let run = place.json(&["run", "tiny.toml", "--json"])["run"].as_str().expect("a run").to_owned();
    let found = |population: &str| {
        place.json(&["checkers", "species", population, "--depth", "1", "--ensemble", "best.acp", "--json"])
    };
    assert_eq!(found(&run)["population"], 12);
    let island = found(&format!("{run}/1"));
    assert_eq!(island["population"], 6);
    let best = island["species"][0]["representative"].as_str().expect("a name").to_owned();
    assert!(best.starts_with(&format!("{run}/1.")), "{best}");
    // Of several islands the best champion plays.
    let alone = place.run(&["checkers", "match", &run, "random", "--depth", "1", "--pairs", "1", "--json"]);
    assert_eq!(alone.expect(0).json()["pairs"].as_array().map(Vec::len), Some(5));
    let duel =
        ["checkers", "match", "best.acp", &format!("{run}/1"), "--depth", "1", "--pairs", "2", "--json"];
    let pairs = place.json(&duel)["pairs"].as_array().expect("pairs by their points").clone();
    assert_eq!(pairs.iter().filter_map(serde_json::Value::as_u64).sum::<u64>(), 2);
    for (population, said) in [
        ("nobody", "nobody"),
        (&*format!("{run}/7"), "expected an island of"),
        (&*format!("{run}/0@77"), "expected an epoch of"),
    ] {
        let finished = place.run(&["checkers", "species", population]);
        assert!(!finished.status.success() && finished.stderr.contains(said), "{finished:?}");
    }
}

#[test]
fn every_option_is_heard() {
    let place = Place::new();
    population(&place);
    let count = |options: &[&str]| {
        let command = [&["checkers", "species", "nets", "--depth", "1", "--json"], options].concat();
        place.json(&command)["species"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(count(&["--distance", "behaviour"]), 3);
    assert_eq!(count(&["--noise", "own"]), 5);
    assert_eq!(count(&["--epsilon", "1000"]), 1);
    assert_eq!(count(&["--min-points", "7", "--epsilon", "1"]), 1, "no cluster: all are one");
}

#[test]
fn mistakes_are_told_with_their_exit_code() {
    let place = Place::new();
    population(&place);
    std::fs::create_dir(place.path().join("empty")).expect("a folder");
    let weighted = Network::new(NodeKind::Weighted, &vec![0.1; NodeKind::Weighted.weight_count()]);
    place.write("other.acp", weighted.expect("weights of a network").to_player_file());
    place.write("broken.acp", b"ATOLL-CE\x01\0\0\0\x02\0\0\0");
    for (arguments, code, said) in [
        (&["nowhere.acp"][..], 78, "file not found: nowhere.acp"),
        (&["nets/README"], 78, "nets/README: expected a player file that starts with"),
        (&["broken.acp"], 78, "broken.acp: expected"),
        (&["empty"], 78, "empty: expected a folder with player files"),
        (&["nets", "other.acp"], 78, "compare them by behaviour"),
        (&["nets", "--epsilon=-1"], 78, "expected an epsilon of 0 or more, found `-1`"),
        (&["nets", "--depth", "0"], 2, "invalid value '0'"),
        (&["nets", "--distance", "taste"], 2, "invalid value 'taste'"),
        (&[], 2, "<POPULATION>"),
        (&["nets/net-00.acp", "--svg", "no/such/folder.svg"], 1, "cannot write no/such/folder.svg"),
    ] {
        let arguments = [&["checkers", "species"], arguments].concat();
        place.run(&arguments).expect_error(code, &[said]);
    }
}
