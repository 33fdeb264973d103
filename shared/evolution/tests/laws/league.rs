//! Former champions travel between islands as opponents: they stand by when individuals are judged, and are never bred.

use evolution::algorithm::{Algorithm, Ga};
use evolution::codec;
use evolution::epoch::{self, EpochOutcome, EpochTask, Evolver, Packet, World};
use evolution::gene::{Alphabet, Shape};
use evolution::island::{IslandSetting, IslandState, Setting};
use evolution::migration::Policy;
use evolution::population::{Cost, Population};
use evolution::problem::{Judging, Problem};
use evolution::topology::Topology;

/// Fitness is the number of bystanders, and a thousand more if no other counts.
#[derive(Clone, Copy, Debug)]
struct Bystanders;

impl Problem for Bystanders {
    type Gene = u8;

    fn shape(&self) -> Shape<u8> {
        Shape { length: 5, domain: Alphabet(9) }
    }

    fn judge(&self, population: &mut Population<u8>, judging: &Judging) -> u64 {
        assert_eq!(judging.hall, judging.fresh.end..population.len());
        let fitness = judging.hall.len() as f64 + if judging.exploits { 1000.0 } else { 0.0 };
        population.fitness_mut()[judging.fresh.clone()].fill(fitness);
        judging.fresh.len() as u64
    }

    fn cost(&self) -> Cost {
        Cost { nanoseconds: 10 }
    }

    fn absolute(&self) -> bool {
        false
    }

    fn hall(&self) -> usize {
        3
    }
}

/// Three islands that do not exchange migrants; each sends opponents to the others, and the last one exploits.
fn setting() -> Setting {
    let algorithm = Algorithm::Ga(Ga { population: 4, ..Ga::default() });
    let own = |exploits| IslandSetting { algorithm: algorithm.clone(), policy: Policy::default(), exploits };
    let opponents = Topology::FullyConnected.edges(3, 1).unwrap();
    Setting { seed: 1, islands: vec![own(false), own(false), own(true)], edges: vec![], opponents }
}

fn state(outcome: &EpochOutcome) -> IslandState<u8> {
    codec::decode(&outcome.state).unwrap()
}

#[test]
fn opponents_stand_by_and_an_exploiter_is_judged_by_them_alone() {
    let world = World::new(Bystanders, setting());
    let mut outcomes: Vec<EpochOutcome> = vec![];
    for epoch in 0..5u64 {
        let packets = |island: u32| -> Vec<Packet> {
            let sent = (0u32..).zip(&outcomes).filter(|(from, _)| *from != island);
            sent.map(|(from, outcome)| Packet {
                from,
                epoch: epoch - 1,
                departure: outcome.departure.clone(),
            })
            .collect()
        };
        let tasks: Vec<EpochTask> = (0..3u32)
            .map(|island| EpochTask {
                island,
                epoch,
                until: 2 * (epoch + 1),
                state: outcomes.get(island as usize).map(|outcome| outcome.state.clone()),
                packets: packets(island),
            })
            .collect();
        outcomes = tasks.iter().map(|task| epoch::run(&world, task).unwrap()).collect();
        for (task, outcome) in tasks.iter().zip(&outcomes) {
            world.check(task, outcome).unwrap();
        }
        // One champion more of each island in each epoch, three at most.
        let (own, theirs) = (epoch.min(3), 2 * epoch.min(3));
        for (island, outcome) in outcomes.iter().enumerate() {
            let state = state(outcome);
            assert_eq!(
                state.opponents.individuals().count() as u64,
                theirs,
                "epoch {epoch}, island {island}"
            );
            assert_eq!(
                state.population.individuals().count() as u64,
                4 + (epoch + 1).min(3),
                "nobody is let in"
            );
            let exploits = island == 2 && epoch > 0;
            let expected = if exploits { 1000 + theirs } else { own + theirs };
            assert_eq!(outcome.standing.best, expected as f64, "epoch {epoch}, island {island}");
        }
    }
    // Opponents that did not arrive are found.
    let task =
        EpochTask { island: 0, epoch: 5, until: 12, state: Some(outcomes[0].state.clone()), packets: vec![] };
    let honest = epoch::run(&world, &task).unwrap();
    world.check(&task, &honest).unwrap();
    let mut forged = state(&honest);
    forged.opponents = state(&outcomes[1]).opponents;
    let forged = EpochOutcome { state: codec::encode(&forged).unwrap(), ..honest };
    assert!(world.check(&task, &forged).is_err(), "opponents of another island");
}
