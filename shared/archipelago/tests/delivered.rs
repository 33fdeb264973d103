//! What other processes deliver is compared with its task: everything that an honest one delivers passes, whatever the
//! problem and the algorithm; what is cut short, altered, or belongs elsewhere does not.

use archipelago::Archipelago;
use bincode::{Decode, Encode};
use evolution::codec;
use evolution::epoch::{self, EpochOutcome, EpochTask, Evolver, Standing};
use evolution::statistics::EpochStatistics;
use experiment::{Experiment, Plan};

const KINDS: [(&str, &str); 9] = [
    ("ga", "problem = { kind = \"onemax\", length = 24 }\nalgorithm = { kind = \"ga\", population = 6 }"),
    (
        "es",
        "problem = { kind = \"rastrigin\", dimensions = 3 }\n\
         algorithm = { kind = \"es\", parents = 3, offspring = 7 }",
    ),
    (
        "crowding",
        "problem = { kind = \"rastrigin\", dimensions = 3 }\n\
         algorithm = { kind = \"crowding\", population = 7 }",
    ),
    (
        "archive",
        "problem = { kind = \"lock-key\" }\n\
         algorithm = { kind = \"map-elites\", founders = 9, batch = 8, bins = [3, 3, 3] }",
    ),
    (
        "levels",
        "problem = { kind = \"match3\", plays = { most = 256, precision = 0.1 } }\nalgorithm = { kind = \"ga\", population = 4 }",
    ),
    (
        "repaired",
        "problem = { kind = \"maze\", repair = \"random\" }\nalgorithm = { kind = \"ga\", population = 8 }",
    ),
    ("maze", "problem = { kind = \"maze\" }\nalgorithm = { kind = \"ga\", population = 8 }"),
    (
        "strict",
        "problem = { kind = \"maze\", repair = \"worst\" }\nalgorithm = { kind = \"ga\", population = 8 }",
    ),
    (
        "self-play",
        "algorithm = { kind = \"es\", parents = 3, offspring = 3 }\n\
         problem = { kind = \"checkers\", depth = 1, games = 1, hall_of_fame = { size = 2, games = 1 }, draw = { moves = 5 }, \
         champion = { contenders = 2, pairs = 1 }, quiescence = false }",
    ),
];

fn experiment(name: &str, kind: &str, migration: &str) -> Experiment {
    let text = format!(
        "name = \"{name}\"\nseed = 5\n{kind}\nislands = {{ count = 3 }}\nmigration = {{ interval = 2, count = 2, {migration} }}\n\
         budget = {{ generations = 6 }}\n"
    );
    match experiment::parse("delivered.toml", &text, None) {
        Ok(Plan::Single(experiment)) => *experiment,
        other => panic!("{name}: {other:?}"),
    }
}

/// Every epoch of an experiment, with its checkpoints and its outcome.
fn epochs(
    experiment: &Experiment,
    mut look: impl FnMut(&dyn Evolver, &EpochTask, &[Vec<u8>], &EpochOutcome),
) {
    let evolver = experiment.evolver();
    let mut archipelago = Archipelago::new(experiment, None);
    while let Some(island) = archipelago.next_ready() {
        let task = archipelago.begin(island);
        let mut underway = evolver.begin(&task).unwrap();
        let mut checkpoints = vec![];
        while underway.generation() {
            checkpoints.push(underway.checkpoint().unwrap().to_vec());
        }
        let outcome = underway.finish().unwrap();
        look(&*evolver, &task, &checkpoints, &outcome);
        archipelago.complete(&task, &outcome).unwrap();
    }
}

#[test]
fn what_is_true_passes() {
    let migrations = ["emigrants = \"best\"", "emigrants = \"most-diverse\", transfer = \"move\""];
    for (number, (name, kind)) in KINDS.into_iter().enumerate() {
        let mut seen = 0;
        epochs(&experiment(name, kind, migrations[number % 2]), |evolver, task, checkpoints, outcome| {
            let checked = evolver.check(task, outcome);
            checked.unwrap_or_else(|error| panic!("{name}: {error}"));
            for bytes in checkpoints {
                let standing = evolver.check_checkpoint(task, bytes);
                let standing = standing.unwrap_or_else(|error| panic!("{name}, checkpoint: {error}"));
                assert_eq!(standing, Standing::of_state(bytes).unwrap());
            }
            seen += 1;
        });
        assert_eq!(seen, 9, "{name}");
    }
}

/// An outcome of these bytes.
fn of(state: &[u8], departure: &[u8], outcome: &EpochOutcome) -> Option<EpochOutcome> {
    let statistics = codec::encode(&outcome.statistics).unwrap();
    EpochOutcome::of_bytes(state.to_vec().into(), departure.to_vec().into(), &statistics).1.ok()
}

#[test]
fn every_bit_of_a_departure_and_most_of_a_state_are_derived() {
    let (name, kind) = KINDS[0];
    let (mut states, mut found) = (0, 0);
    epochs(&experiment(name, kind, "emigrants = \"best\""), |evolver, task, _, outcome| {
        let passes = |state: &[u8], departure: &[u8]| {
            of(state, departure, outcome).is_some_and(|altered| evolver.check(task, &altered).is_ok())
        };
        for at in 0..outcome.departure.len() {
            let mut altered = outcome.departure.to_vec();
            altered[at] ^= 1;
            assert!(!passes(&outcome.state, &altered), "byte {at} of the departure");
        }
        for at in 0..outcome.state.len() {
            let mut altered = outcome.state.to_vec();
            altered[at] ^= 1;
            states += 1;
            found += usize::from(!passes(&altered, &outcome.departure));
        }
        assert!(!passes(&outcome.state[..outcome.state.len() - 1], &outcome.departure));
        assert!(!passes(b"", b""));
        // Genes of those who stay may be other ones: only computing the epoch again finds that.
        let fitter = Standing { best: 1e308, ..outcome.standing };
        let mut forged = codec::encode(&fitter).unwrap().to_vec();
        forged.extend_from_slice(&outcome.state[codec::encode(&outcome.standing).unwrap().len()..]);
        assert!(!passes(&forged, &outcome.departure), "a fitness that nobody has");
    });
    assert!(found * 4 > states, "{found} of {states}");
}

#[test]
fn what_belongs_elsewhere_does_not_pass() {
    let (name, kind) = KINDS[1];
    let mut earlier: Option<(EpochTask, EpochOutcome, Vec<u8>)> = None;
    epochs(&experiment(name, kind, "emigrants = \"best\""), |evolver, task, checkpoints, outcome| {
        assert!(evolver.check_checkpoint(task, b"garbage").is_err());
        if let Some((other, theirs, checkpoint)) = &earlier {
            assert!(evolver.check(task, theirs).is_err(), "that of island {}", other.island);
            let is_same_epoch = other.epoch == task.epoch;
            assert!(is_same_epoch || evolver.check_checkpoint(task, checkpoint).is_err());
        }
        let beyond = EpochTask { island: 4_000_000_000, ..task.clone() };
        assert!(evolver.check(&beyond, outcome).is_err());
        assert!(evolver.check_checkpoint(&beyond, &checkpoints[0]).is_err());
        earlier = Some((task.clone(), outcome.clone(), checkpoints[0].clone()));
    });
    // Another seed's.
    let text = experiment(name, kind, "emigrants = \"best\"").to_toml().replace("seed = 5", "seed = 6");
    let Ok(Plan::Single(other)) = experiment::parse("other.toml", &text, None) else { panic!("{text}") };
    let mut others = vec![];
    epochs(&other, |_, _, _, outcome| others.push(outcome.clone()));
    let (mut at, mut rejected) = (0, 0);
    epochs(&experiment(name, kind, "emigrants = \"random\""), |evolver, task, _, _| {
        rejected += usize::from(evolver.check(task, &others[at]).is_err());
        at += 1;
    });
    assert!(rejected > 5, "the emigrants of most were drawn otherwise: {rejected} of {at}");
    let evolver = other.evolver();
    let task = Archipelago::new(&other, None).begin(0);
    let outcome = epoch::run(&*evolver, &task).unwrap();
    assert!(evolver.check(&EpochTask { until: task.until + 1, ..task }, &outcome).is_err());
}

/// What a state consists of.
type State<G> = (Standing, u64, Packed<G>, (u64, Vec<G>), Vec<u32>, Packed<G>, Vec<u8>);
type Packed<G> = (u32, Vec<G>, Vec<f64>, Vec<f32>, Option<Vec<f32>>);

/// A checkpoint whose state is changed.
fn changed<G: Encode + Decode<()>>(checkpoint: &[u8], change: impl FnOnce(&mut State<G>)) -> Vec<u8> {
    let (mut state, from, statistics): (State<G>, u64, EpochStatistics) = codec::decode(checkpoint).unwrap();
    change(&mut state);
    codec::encode(&(state, from, statistics)).unwrap().to_vec()
}

/// Changes a checkpoint.
type Change = Box<dyn Fn(&[u8]) -> Vec<u8>>;

fn change<G: Encode + Decode<()> + 'static>(change: fn(&mut State<G>)) -> Change {
    Box::new(move |checkpoint| changed(checkpoint, change))
}

#[test]
fn what_others_could_not_continue_does_not_pass() {
    let (ga, es, archive) = (KINDS[0].1, KINDS[1].1, KINDS[3].1);
    let steps = |all: f32| -> Change {
        Box::new(move |checkpoint| changed::<f64>(checkpoint, |state| state.2.4.as_mut().unwrap().fill(all)))
    };
    let lies: [(&str, &str, Change); 8] = [
        ("no step sizes", es, change::<f64>(|state| state.2.4 = None)),
        ("step sizes that are no numbers", es, steps(f32::NAN)),
        ("infinite step sizes", es, steps(f32::INFINITY)),
        ("negative step sizes", es, steps(-1.0)),
        ("step sizes that nobody uses", ga, change::<u8>(|state| state.2.4 = Some(vec![0.0; 6 * 24]))),
        ("several in one cell of the archive", archive, change::<u8>(|state| state.2.3.fill(0.0))),
        ("somebody who has left", ga, change::<u8>(|state| state.4 = vec![0])),
        ("a champion of the future", ga, change::<u8>(|state| state.3.0 = u64::MAX)),
    ];
    for (name, kind, lie) in lies {
        epochs(&experiment("lies", kind, "emigrants = \"best\""), |evolver, task, checkpoints, _| {
            for checkpoint in checkpoints {
                evolver.check_checkpoint(task, checkpoint).unwrap();
                assert!(evolver.check_checkpoint(task, &lie(checkpoint)).is_err(), "{name}");
            }
        });
    }
}

/// A worker that begins with the lie of another must not be the one that is found out.
#[test]
fn whoever_continues_what_passes_delivers_what_passes() {
    let adapting = |kind: &str| {
        format!(
            "problem = {{ kind = \"rastrigin\", dimensions = 3 }}\n\
             algorithm = {{ kind = \"{kind}\", parents = 3, offspring = 6 }}"
        )
    };
    let (separable, limited) = (adapting("sep-cma"), adapting("lm-ma"));
    let paths = "problem = { kind = \"maze\", operators = { kind = \"path\" } }\n\
                 algorithm = { kind = \"crowding\", population = 6 }";
    let kinds = [KINDS[0].1, KINDS[1].1, KINDS[2].1, KINDS[3].1, KINDS[5].1, paths, &separable, &limited];
    let mut continued = 0;
    for (number, kind) in kinds.into_iter().enumerate() {
        epochs(&experiment("lies", kind, "emigrants = \"best\""), |evolver, task, checkpoints, _| {
            let Some(checkpoint) = checkpoints.first() else { return };
            // Every byte of what is small, and some of what is large.
            for at in (0..checkpoint.len()).step_by(1 + checkpoint.len() / 400) {
                for mask in [1, 2, 0x40, 0x7f, 0xff] {
                    let mut altered = checkpoint.clone();
                    altered[at] ^= mask;
                    if evolver.check_checkpoint(task, &altered).is_err() {
                        continue;
                    }
                    continued += 1;
                    let mut underway = evolver.resume(task, &altered).unwrap();
                    while underway.generation() {}
                    let outcome = underway.finish().unwrap();
                    let passes = evolver.check(task, &outcome);
                    passes.unwrap_or_else(|error| panic!("kind {number}, byte {at} ^ {mask}: {error}"));
                }
            }
        });
    }
    assert!(continued > 500, "{continued}");
}
