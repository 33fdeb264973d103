//! Champions of milestones are measured beside the epochs of their run, whatever becomes of the workers that do it.

use super::*;
use experiment::file::BudgetKeys;

const MEASURED: &str = r#"
name = "measured"
seed = 3
problem = { kind = "checkers", depth = 1, games = 1, draw = { moves = 2 } }
algorithm = { kind = "es", parents = 2, offspring = 1 }
islands = { count = ISLANDS, topology = "isolated" }
migration = { interval = 1, count = 1 }
budget = { generations = GENERATIONS }
checkpoint = { every = 1 }
retention = { milestones = 1 }
yardstick = { opponents = ["material 1 plain"], pairs = 1, share = 1.0 }
"#;

fn measured(islands: u32, generations: u32) -> String {
    MEASURED.replace("ISLANDS", &islands.to_string()).replace("GENERATIONS", &generations.to_string())
}

fn is_job(grant: &v1::Grant) -> bool {
    grant.job.is_some()
}

impl Script {
    /// Computes an epoch of a run that is measured, which took a second.
    async fn deliver_measured(&self, worker: &str, grant: &v1::Grant, text: &str) {
        let Plan::Single(experiment) = parse(text) else { unreachable!("it is one experiment") };
        let (mut head, bodies) = computed_of(&experiment, worker, grant);
        head.milliseconds = 1000;
        // It counts only for as long as the worker had the epoch.
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.cluster.complete(head, bodies).await.unwrap();
    }

    /// Returns what was granted.
    async fn hand_back(&self, worker: &str, grant: v1::Grant) {
        let request = v1::ReleaseRequest {
            worker: worker.to_owned(),
            piece: grant.piece,
            failure: String::new(),
            token: grant.token,
            unfit: false,
            lacks_program: false,
        };
        self.cluster.release(request).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_measurement_that_was_returned_or_lost_is_handed_out_again_while_epochs_wait() {
    let text = measured(6, 100);
    let script = Script::new(&text).await;
    for grant in script.acquire("a", 2).await {
        script.deliver_measured("a", &grant, &text).await;
    }
    // The champions become durable, and are read.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let grant = script.acquire("m", 1).await.remove(0);
    assert!(is_job(&grant), "the share allows it");
    assert!(!is_job(&script.acquire("b", 1).await[0]), "while one is measured, epochs come first");
    let piece = grant.piece.clone();
    script.hand_back("m", grant).await;
    let again = script.acquire("n", 1).await.remove(0);
    assert_eq!(again.piece, piece, "epochs are waiting, and the share allows it");
    // Its worker is lost, and so is that of an epoch, which comes first.
    tokio::time::sleep(2 * Terms::default().lease).await;
    let again = script.acquire("o", 2).await;
    assert!(again.iter().any(|grant| grant.piece == piece), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn what_the_end_of_a_run_left_out_is_measured_once_it_is_extended() {
    // Only workers that have nothing else to do measure.
    let text = measured(1, 2).replace("share = 1.0", "share = 0.0");
    let script = Script::new(&text).await;
    // Each comes once: it is sent the state that another would remember.
    for worker in ["a", "b"] {
        let grant = script.acquire(worker, 1).await.remove(0);
        assert!(!is_job(&grant));
        script.deliver_measured(worker, &grant, &text).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let jobs = async |worker: &str| {
        let grants = script.acquire(worker, 8).await;
        let mut jobs: Vec<u32> = vec![];
        for grant in grants.into_iter().filter(is_job) {
            if let Some(v1::piece::What::Job(job)) = grant.piece.clone().and_then(|piece| piece.what) {
                jobs.push(job.number);
            }
            script.hand_back(worker, grant).await;
        }
        jobs
    };
    assert_eq!(jobs("m").await, [1], "of a run that has reached its end only the last champion is measured");
    let budget = BudgetKeys { generations: Some(4), ..BudgetKeys::default() };
    script.cluster.extend(&script.run, budget).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut found = jobs("n").await;
    found.sort_unstable();
    assert_eq!(found, [0, 1], "the earlier one, too");
}
