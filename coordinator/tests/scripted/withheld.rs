//! Workers that hold what they are given: they renew, claim progress, and deliver nothing, late, or something else.

use super::log_lines::LogLines;
use super::*;
use coordinator::AuditTerms;

/// A worker that takes whatever there is, renews it with ever more progress, and delivers nothing.
struct Holder {
    id: &'static str,
    held: BTreeMap<u64, v1::Grant>,
    progress: u64,
}

impl Holder {
    fn new(id: &'static str) -> Self {
        Self { id, held: BTreeMap::new(), progress: 0 }
    }

    async fn hold(&mut self, script: &Script) {
        for grant in script.acquire_elsewhere(self.id, 64).await {
            self.held.insert(grant.token, grant);
        }
        self.progress += 1;
        let renewal = |grant: &v1::Grant| v1::Renewal {
            piece: grant.piece.clone(),
            inputs: grant.task.as_ref().unwrap().inputs.clone(),
            standing: None,
            progress: self.progress,
            token: grant.token,
        };
        let renewals = self.held.values().map(renewal).collect();
        let request = v1::RenewRequest { worker: self.id.to_owned(), renewals };
        for lost in script.untrusted(self.id).renew(request).await.unwrap().lost {
            self.held.remove(&lost);
        }
    }
}

impl Script {
    /// Has an honest worker do one piece, if it is given one.
    async fn work_honestly(&self, worker: &str) {
        for grant in self.acquire_elsewhere(worker, 1).await {
            let (head, bodies) = computed(worker, &grant);
            self.untrusted(worker).complete(head, bodies).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_holds_all_that_it_can_get_costs_a_run_a_little_time_for_each_piece_at_most() {
    let script = Script::new(EXPERIMENT).await;
    let mut holder = Holder::new("holder");
    let start = tokio::time::Instant::now();
    while script.state() != State::Finished {
        assert!(start.elapsed() < Duration::from_mins(4), "{:?}", script.cluster.status(&script.run));
        holder.hold(&script).await;
        script.work_honestly("honest").await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(script.digest(), untrusted::true_digest());
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_holds_the_audits_of_others_does_not_hold_up_the_end() {
    let audit = AuditTerms { share: 1.0, secret: 7 };
    let script = Script::with(EXPERIMENT, &CoordinatorSettings { audit, ..settings(1) }).await;
    let mut auditor = Holder::new("auditor");
    // It joins, and everything is done by the other one: what the first is given from now on is computed again.
    auditor.hold(&script).await;
    for grant in std::mem::take(&mut auditor.held).into_values() {
        script.untrusted("auditor").release(untrusted::refusal("auditor", &grant, "", false)).await.unwrap();
    }
    let start = tokio::time::Instant::now();
    while script.state() != State::Finished {
        assert!(start.elapsed() < Duration::from_mins(4), "{:?}", script.cluster.status(&script.run));
        for _ in 0..3 {
            script.work_honestly("honest").await;
        }
        auditor.hold(&script).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(script.digest(), untrusted::true_digest());
}

/// What a worker has delivered it holds until that is durable: it may repeat what others have had for long all the same.
#[tokio::test(start_paused = true)]
async fn a_worker_whose_deliveries_are_not_durable_yet_is_idle() {
    let script = Script::new(EXPERIMENT).await;
    let mut holder = Holder::new("holder");
    let own = script.acquire_elsewhere("honest", 1).await.remove(0);
    holder.hold(&script).await;
    assert_eq!(holder.held.len(), 2);
    let (head, bodies) = computed("honest", &own);
    let reply = script.untrusted("honest").complete(head, bodies).await.unwrap();
    assert_eq!((reply.delivery, reply.durable), (1, 0));
    for _ in 0..11 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        holder.hold(&script).await;
    }
    let request = v1::AcquireRequest {
        worker: "honest".to_owned(),
        slots: 1,
        holding: vec![own.piece.unwrap()],
        wait_milliseconds: 0,
    };
    let repeated = script.untrusted("honest").acquire(request).await.unwrap().grants;
    assert_eq!(repeated.len(), 1, "{repeated:?}");
}

/// Late results of many pieces, each of which is another lie: the coordinator computes a few of them before it knows, not all.
#[tokio::test(start_paused = true)]
async fn late_lies_about_many_pieces_do_not_make_the_coordinator_compute_all_of_them() {
    let lines = LogLines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let text = EXPERIMENT.replace("count = 3", "count = 40").replace("scripted", "many");
    let Plan::Single(true_experiment) = parse(&text) else { unreachable!("it is one experiment") };
    let Plan::Single(other) = parse(&text.replace("seed = 3", "seed = 4")) else { unreachable!("as above") };
    let audit = AuditTerms { share: 1e-9, secret: 7 };
    let script = Script::with(&text, &CoordinatorSettings { audit, ..settings(1) }).await;
    let late = script.acquire_elsewhere("late", 64).await;
    assert_eq!(late.len(), 40);
    tokio::time::sleep(Duration::from_secs(11)).await;
    for grant in &late {
        let (head, bodies) = computed_of(&true_experiment, "honest", grant);
        script.untrusted("honest").join(join_request("honest")).await.unwrap();
        script.untrusted("honest").complete(head, bodies).await.unwrap();
    }
    let mut rejected = 0;
    for grant in &late {
        let (head, bodies) = computed_of(&other, "late", grant);
        rejected += usize::from(script.untrusted("late").complete(head, bodies).await.is_err());
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(script.untrusted("late").join(join_request("late")).await.is_err(), "it is quarantined");
    let computed = lines.containing("differs from what was accepted").len();
    assert!((1..=8).contains(&computed), "{computed} of {} were computed, {rejected} rejected", late.len());
    assert_eq!(lines.containing("audit found its result wrong").len(), 0, "the first results were right");
}
