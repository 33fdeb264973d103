//! Our species against scikit-learn's: on made-up populations, and on every one in `tests/data/populations`.

use checkers::{Ensemble, Network, NodeKind, PlayerFile, behaviour, sample_positions};
use serde_json::{Value, json};
use species::{Dbscan, Distances, Projection, epsilon};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::support::{Place, Seeded};

#[test]
fn scikit_learn_agrees() {
    let mut cases = vec![];
    for (dimensions, spread) in [(2, 30), (3, 60), (20, 100), (200, 250)] {
        for min_points in [2, 4, 7] {
            let name = format!("clouds of {dimensions} dimensions");
            cases.push(case(&name, &clouds(dimensions, spread), min_points));
        }
    }
    for file in stored_populations().into_iter().chain([families()]).chain(evolved()) {
        for (name, points) in read(&file) {
            cases.extend([3, 4, 5].map(|min_points| case(&name, &points, min_points)));
        }
    }
    let ours: usize = cases.iter().map(clusters).sum();
    assert!(ours > cases.len(), "populations without species show nothing: {ours}");
    assert_eq!(crate::referee::judge("scikit_learn", "scikit_learn", &json!({ "cases": cases })), ours);
}

/// Clusters by the epsilon of the knee, a little larger: at the knee itself a pair of points is exactly so far apart,
/// and rounding would decide.
fn case(name: &str, points: &[Vec<f32>], min_points: usize) -> Value {
    let distances = Distances::euclidean(points).expect("points of one dimension");
    let dbscan = Dbscan { epsilon: epsilon(&distances, min_points) * (1.0 + 1e-9), min_points };
    let found = dbscan.cluster(&distances);
    let core: Vec<bool> = (0..points.len()).map(|point| found.is_core(point)).collect();
    let exact: Vec<Vec<f64>> =
        points.iter().map(|point| point.iter().copied().map(f64::from).collect()).collect();
    json!({ "name": name, "points": exact, "epsilon": dbscan.epsilon, "min_points": min_points, "core": core,
            "labels": found.labels(), "kept": Projection::new(&distances).kept })
}

fn clusters(case: &Value) -> usize {
    let labels = case["labels"].as_array().expect("labels").iter();
    labels.filter_map(Value::as_u64).max().map_or(0, |last| last as usize + 1)
}

/// Clouds of points around five centres, and some points between them.
fn clouds(dimensions: usize, spread: u64) -> Vec<Vec<f32>> {
    let mut random = Seeded::new(dimensions as u64);
    let mut point =
        |range: u64| -> Vec<f32> { (0..dimensions).map(|_| random.below(range) as f32).collect() };
    let centres: Vec<Vec<f32>> = (0..5).map(|_| point(500)).collect();
    let mut points: Vec<Vec<f32>> = (0..20).map(|_| point(600)).collect();
    for number in 0..130 {
        let around = point(spread);
        points.push(centres[number % 5].iter().zip(around).map(|(centre, step)| centre + step).collect());
    }
    points
}

/// What evolution makes of a population, with and without crowding.
fn evolved() -> [PathBuf; 2] {
    ["crowding", "ga"].map(|algorithm| {
        let place = Place::new();
        let experiment = format!(
            r#"
            name = "evolved"
            problem = {{ kind = "checkers", depth = 1, games = 2, colours = "swapped", openings = "deck" }}
            islands = {{ count = 1, topology = "isolated" }}
            budget = {{ generations = 30 }}

            [algorithm]
            kind = "{algorithm}"
            population = 40
            crossover = {{ kind = "uniform", rate = 1.0 }}
            mutation = {{ rate = 0.01, per = "gene", step = 0.1 }}
            "#
        );
        place.write("experiment.toml", experiment);
        place.run(&["run", "experiment.toml", "--json"]).expect(0);
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("evolved-{algorithm}.acp"));
        let file = path.display().to_string();
        // Where all are outliers, the ensemble of all species has all players.
        let apart = ["--epsilon", "1e-9", "--noise", "own", "--depth", "1", "--ensemble", &file];
        place.run(&[&["checkers", "species", &place.only_run()], &apart[..]].concat()).expect(0);
        path
    })
}

/// Three ancestors, and each one's children.
fn families() -> PathBuf {
    let mut random = Seeded::new(3);
    let mut weight = |range: f32| (random.below(2001) as f32 / 1000.0 - 1.0) * range;
    let count = NodeKind::Sum.weight_count();
    let ancestors: Vec<Vec<f32>> = (0..3).map(|_| (0..count).map(|_| weight(0.2)).collect()).collect();
    let mut child = |number: usize| {
        let weights: Vec<f32> = ancestors[number % 7 % 3].iter().map(|gene| gene + weight(0.01)).collect();
        Arc::new(Network::new(NodeKind::Sum, &weights).expect("weights of a network"))
    };
    let population = Ensemble::new((0..30).map(&mut child).collect()).expect("a few networks");
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("families.acp");
    std::fs::write(&path, population.to_player_file()).expect("a file can be written");
    path
}

fn stored_populations() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/populations");
    let entries = std::fs::read_dir(folder).expect("a folder of populations");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// A population as points: networks of a player file by weights and by behaviour, any others as they stand in a text.
fn read(file: &Path) -> Vec<(String, Vec<Vec<f32>>)> {
    let name = file.display();
    if file.extension().is_some_and(|extension| extension == "csv") {
        return vec![(name.to_string(), read_text(file))];
    }
    let population = PlayerFile::load(file).expect("a player file");
    let positions = sample_positions(5, 60);
    let networks = population.networks().iter();
    let said = networks.clone().map(|network| behaviour(network, &positions)).collect();
    let weights = networks.map(|network| network.weights().to_vec()).collect();
    vec![(format!("{name}, weights"), weights), (format!("{name}, behaviour"), said)]
}

/// A point a line, numbers between commas, remarks after `#`.
fn read_text(file: &Path) -> Vec<Vec<f32>> {
    let text = std::fs::read_to_string(file).expect("a population");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.split(',').map(|number| number.trim().parse().expect("a number")).collect())
        .collect()
}
