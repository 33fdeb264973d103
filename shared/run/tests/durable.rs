//! What is durable is found again: whichever islands were written in whichever order, and whatever was pruned, a run that
//! is opened after a crash continues from there.

use crate::reopen::{Process, block_on};
use experiment::file::BudgetKeys;
use experiment::{Experiment, Plan};
use proptest::prelude::*;
use store::Store;

/// Islands that send to each other, to none, or in two groups that exchange nothing.
const TOPOLOGIES: [&str; 3] = [
    r#""ring""#,
    r#""isolated""#,
    r#"{ kind = "custom", edges = [{ from = 0, to = 1 }, { from = 1, to = 0 }, { from = 2, to = 3 }] }"#,
];

fn experiment(topology: &str, mode: &str, budget: &str) -> Experiment {
    let text = format!(
        r#"
name = "small"
seed = 3
problem = {{ kind = "onemax", length = 24 }}
algorithm = {{ kind = "ga", population = 4 }}
islands = {{ count = 4, topology = {topology} }}
migration = {{ interval = 1, count = 1, mode = "{mode}" }}
budget = {{ {budget} }}
retention = {{ keep = 1 }}
"#
    );
    match experiment::parse("small.toml", &text, None) {
        Ok(Plan::Single(experiment)) => *experiment,
        other => panic!("{other:?}"),
    }
}

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    /// Epochs of islands that are ready are computed.
    Work(Vec<usize>),
    /// Some islands are written.
    Write(Vec<u32>),
    /// Some islands are to be written, and the store fails after this number of objects.
    Fail(Vec<u32>, prop::sample::Index),
    /// What retention does not keep is deleted.
    Prune,
}

fn step() -> impl Strategy<Value = Step> {
    let islands = || prop::collection::vec(0..4u32, 0..4);
    prop_oneof![
        4 => prop::collection::vec(any::<usize>(), 0..20).prop_map(Step::Work),
        3 => islands().prop_map(Step::Write),
        1 => (islands(), any::<prop::sample::Index>()).prop_map(|(islands, at)| Step::Fail(islands, at)),
        1 => Just(Step::Prune),
    ]
}

fn done(process: &Process) -> Vec<u64> {
    (0..4).map(|island| process.open.archipelago().done(island)).collect()
}

fn written(process: &Process) -> Vec<u64> {
    (0..4).map(|island| process.open.commit().written(island)).collect()
}

/// Nothing that is durable has to be computed again after a crash.
async fn check_found(store: &Store, experiment: &Experiment, written: &[u64]) {
    let found = done(&Process::start(store, experiment, 99).await);
    assert!(found.iter().zip(written).all(|(found, written)| found >= written), "{found:?} of {written:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_durable_is_found_after_a_crash(
        topology in prop::sample::select(&TOPOLOGIES[..]),
        mode in prop::sample::select(vec!["synchronous", "asynchronous"]),
        steps in prop::collection::vec(step(), 0..40),
    ) {
        block_on(async {
            let experiment = experiment(topology, mode, "generations = 200");
            let store = Store::memory();
            let mut process = Process::start(&store, &experiment, 1).await;
            for step in steps {
                match step {
                    Step::Work(which) => which.into_iter().for_each(|which| process.work(which)),
                    Step::Write(islands) => process.write(islands).await,
                    Step::Fail(islands, at) => process.write_partly(islands, at).await,
                    Step::Prune => process.prune().await,
                }
            }
            let written = written(&process);
            drop(process);
            check_found(&store, &experiment, &written).await;
        });
    }
}

/// Each island has a deadline of its own: when one is written, the states of others at that epoch may be long forgotten.
#[test]
fn islands_that_exchange_nothing_have_an_epoch_in_common() {
    block_on(async {
        let experiment = experiment(r#""isolated""#, "synchronous", "generations = 200");
        let store = Store::memory();
        let mut process = Process::start(&store, &experiment, 1).await;
        for round in 0..12 {
            (0..28).for_each(|_| process.work(0));
            process.write(vec![round % 4]).await;
            process.prune().await;
            let written = written(&process);
            assert!(written[round as usize % 4] >= 7 * (u64::from(round) + 1), "{written:?}");
        }
        let written = written(&process);
        drop(process);
        check_found(&store, &experiment, &written).await;
    });
}

/// Epochs beyond the end are not written. If the run is extended before it is finished, they count after all.
#[test]
fn a_run_that_is_extended_at_its_end_has_all_its_epochs() {
    block_on(async {
        let experiment = experiment(r#""isolated""#, "synchronous", "evaluations = 60");
        let store = Store::memory();
        let mut process = Process::start(&store, &experiment, 1).await;
        while let Some(&ahead) = process.open.archipelago().ready().last() {
            let ready = process.open.archipelago().ready();
            process.work(ready.iter().position(|&island| island == ahead).unwrap());
        }
        let end = process.open.archipelago().end().unwrap().epoch;
        assert!(done(&process).iter().any(|&done| done > end + 1), "some are ahead of the end");
        process.write(vec![0, 1, 2, 3]).await;
        assert_eq!(written(&process), [end + 1; 4]);
        let budget = BudgetKeys { generations: Some(40), ..BudgetKeys::default() };
        let (event, complete) = process.open.extension(&budget, 5).unwrap();
        process.journal.append(&event).await.unwrap();
        process.open.extend(&budget, complete);
        process.work(0);
        process.write(vec![0, 1, 2, 3]).await;
        assert_eq!(written(&process), done(&process));
        let written = written(&process);
        drop(process);
        check_found(&store, &experiment, &written).await;
    });
}
