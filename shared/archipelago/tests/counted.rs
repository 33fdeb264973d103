//! Long jobs count what they do: others see that they make progress.

use archipelago::job::Job;
use evolution::activity::Activity;
use evolution::epoch::{self, EpochTask};
use experiment::Plan;

const PLAYERS: &str = r#"
name = "counted"
problem = { kind = "checkers", nodes = "sum", depth = 1, games = 1, draw = { moves = 4 } }
algorithm = { kind = "es", parents = 3, offspring = 3 }
islands = { count = 1, topology = "isolated" }
migration = { interval = 1 }
budget = { generations = 1 }
"#;

#[test]
fn the_search_for_species_counts_its_games() {
    let Ok(Plan::Single(experiment)) = experiment::parse("counted.toml", PLAYERS, None) else {
        unreachable!("it is one experiment")
    };
    let task = EpochTask { island: 0, epoch: 0, until: 1, state: None, packets: vec![] };
    let state = epoch::run(&*experiment.evolver(), &task).unwrap().state;
    // All are one species, so that they play each other.
    let settings = r#"{ "epsilon": 1e9, "min_points": 1, "depth": 1, "pairs": 1 }"#.to_owned();
    let (experiment, islands) = (experiment.to_toml(), vec![0]);
    let job = Job::Species { experiment, islands, settings, ensemble: true };
    let activity = Activity::default();
    let files = activity.watch(|| job.compute(&[state])).unwrap();
    assert_eq!(files.len(), 2, "a species and its ensemble");
    assert!(activity.count() >= 6, "each two of three play two games: {}", activity.count());
}
