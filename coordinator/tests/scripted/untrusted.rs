//! Workers that cannot be trusted: small ones, broken ones, and those that deliver what cannot be.

use super::*;
use coordinator::UntrustedCalls;
use evolution::epoch::Standing;

impl Script {
    /// The calls of workers for which this principal answers.
    pub(super) fn untrusted(&self, principal: &str) -> UntrustedCalls {
        UntrustedCalls::new(self.cluster.clone(), principal)
    }

    /// Has work granted to a worker elsewhere.
    pub(super) async fn acquire_elsewhere(&self, worker: &str, slots: u32) -> Vec<v1::Grant> {
        let calls = self.untrusted(worker);
        calls.join(join_request(worker)).await.unwrap();
        let id = worker.to_owned();
        let request = v1::AcquireRequest { worker: id, slots, holding: vec![], wait_milliseconds: 0 };
        let mut grants = calls.acquire(request).await.unwrap().grants;
        for grant in &mut grants {
            self.fetch_bodies(worker, grant).await;
        }
        grants
    }

    /// Fetches what a grant only names.
    async fn fetch_bodies(&self, worker: &str, grant: &mut v1::Grant) {
        let (worker, piece) = (worker.to_owned(), grant.piece.clone());
        let fetch = async |digest: &Bytes| {
            let (worker, piece, digest) = (worker.clone(), piece.clone(), digest.clone());
            self.untrusted(&worker).fetch(v1::FetchRequest { worker: worker.clone(), piece, digest }, 0).await
        };
        let task = grant.task.as_mut().unwrap();
        if let Some(before) = task.before.as_mut().filter(|before| before.inline.is_none()) {
            before.inline = Some(fetch(&before.digest).await.unwrap());
        }
        for departure in task.packets.iter_mut().filter_map(|packet| packet.departure.as_mut()) {
            if departure.inline.is_none() {
                departure.inline = Some(fetch(&departure.digest).await.unwrap());
            }
        }
    }

    /// Has an honest worker compute whatever there is, until the run has ended.
    pub(super) async fn finish_honestly(&self, worker: &str) {
        while self.state() != State::Finished {
            let status = self.cluster.status(&self.run).unwrap();
            assert_ne!(status.state(), State::Failed, "{}", status.reason);
            for grant in self.acquire_elsewhere(worker, 3).await {
                let (head, bodies) = computed(worker, &grant);
                self.untrusted(worker).complete(head, bodies).await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    pub(super) fn digest(&self) -> Vec<u8> {
        self.cluster.status(&self.run).unwrap().digest.unwrap().to_vec()
    }
}

/// The digest of the run, computed without a cluster.
pub(super) fn true_digest() -> Vec<u8> {
    archipelago::solo::evolve(&experiment(), || false).unwrap().unwrap().digest.0.to_vec()
}

pub(super) fn refusal(worker: &str, grant: &v1::Grant, failure: &str, unfit: bool) -> v1::ReleaseRequest {
    v1::ReleaseRequest {
        worker: worker.to_owned(),
        piece: grant.piece.clone(),
        failure: failure.to_owned(),
        token: grant.token,
        unfit,
        lacks_program: false,
    }
}

/// A head that fits other bytes.
fn with_bodies(mut head: v1::CompleteHead, bodies: Vec<Bytes>) -> (v1::CompleteHead, Vec<Bytes>) {
    let [state, departure, statistics] = &bodies[..] else { unreachable!("an epoch has three parts") };
    let (digest, _) = evolution::epoch::EpochOutcome::of_bytes(state.clone(), departure.clone(), statistics);
    if let Some(v1::complete_head::What::Epoch(epoch)) = &mut head.what {
        epoch.digest = Bytes::copy_from_slice(&digest.0);
        epoch.state_length = state.len() as u64;
        epoch.departure_length = departure.len() as u64;
        epoch.statistics_length = statistics.len() as u64;
    }
    (head, bodies)
}

#[tokio::test(start_paused = true)]
async fn a_worker_with_too_little_memory_ends_nothing() {
    let script = Script::new(EXPERIMENT).await;
    for _ in 0..20 {
        for grant in script.acquire_elsewhere("small", 3).await {
            let refused = refusal("small", &grant, "at most 1 MiB", true);
            script.untrusted("small").release(refused).await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    let status = script.cluster.status(&script.run).unwrap();
    assert_eq!(status.state(), State::Waiting);
    assert_eq!(status.reason, "no connected worker has enough memory: at most 1 MiB");
    script.finish_honestly("large").await;
    assert_eq!(script.digest(), true_digest());
}

#[tokio::test(start_paused = true)]
async fn a_broken_worker_ends_nothing_while_another_could_do_its_work() {
    let script = Script::new(EXPERIMENT).await;
    let honest = script.acquire_elsewhere("honest", 1).await;
    let mut failures = 0;
    for round in 0..30 {
        // It comes back under another id each time.
        let worker = format!("broken-{round}");
        for grant in script.acquire_elsewhere(&worker, 3).await {
            let refused = refusal(&worker, &grant, "it broke", false);
            script.untrusted(&worker).release(refused).await.unwrap();
            failures += 1;
        }
        script.renew("honest", &honest[0]).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(failures > 20, "{failures}");
    let (head, bodies) = computed("honest", &honest[0]);
    script.untrusted("honest").complete(head, bodies).await.unwrap();
    script.finish_honestly("honest").await;
    assert_eq!(script.digest(), true_digest());
}

/// Changes the bodies of a delivery with this standing.
type Lie = fn(&Standing, &mut Vec<Bytes>);

#[tokio::test(start_paused = true)]
async fn what_cannot_be_is_rejected_and_its_worker_quarantined() {
    let script = Script::new(EXPERIMENT).await;
    let lies: [(&str, Lie); 4] = [
        ("undecodable", |_, bodies| bodies[0] = Bytes::from_static(b"no state at all")),
        ("cut short", |_, bodies| bodies[0] = bodies[0].slice(..bodies[0].len() - 1)),
        ("other emigrants", |_, bodies| {
            let mut departure = bodies[1].to_vec();
            *departure.last_mut().unwrap() ^= 1;
            bodies[1] = departure.into();
        }),
        ("a fitness that nobody has", |standing, bodies| {
            let mut forged = codec::encode(&Standing { best: 1e308, ..*standing }).unwrap().to_vec();
            forged.extend_from_slice(&bodies[0][codec::encode(standing).unwrap().len()..]);
            bodies[0] = forged.into();
        }),
    ];
    for (liar, lie) in lies {
        let grant = script.acquire_elsewhere(liar, 1).await.remove(0);
        let (head, mut bodies) = computed(liar, &grant);
        let standing = Standing::of_state(&bodies[0]).unwrap();
        lie(&standing, &mut bodies);
        let (head, bodies) = with_bodies(head, bodies);
        let rejected = script.untrusted(liar).complete(head, bodies).await.unwrap_err();
        assert_eq!(rejected.code(), Code::PermissionDenied, "{liar}: {rejected}");
        let again = script.untrusted(liar).join(join_request("another id")).await.unwrap_err();
        assert_eq!(again.code(), Code::PermissionDenied, "{liar}: an id is self-chosen");
    }
    let grant = script.acquire_elsewhere("checkpoints", 1).await.remove(0);
    let head = v1::CheckpointHead {
        worker: "checkpoints".to_owned(),
        piece: grant.piece.clone(),
        inputs: grant.task.as_ref().unwrap().inputs.clone(),
        standing: Some(v1::Standing { generation: 1, evaluations: 20, best: 1e308 }),
        length: 7,
    };
    let rejected = script.untrusted("checkpoints").checkpoint(head, Bytes::from_static(b"garbage")).await;
    assert_eq!(rejected.unwrap_err().code(), Code::PermissionDenied);
    script.finish_honestly("honest").await;
    assert_eq!(script.digest(), true_digest());
}

#[tokio::test(start_paused = true)]
async fn islands_and_epochs_that_are_not_there_are_rejected() {
    let script = Script::new(EXPERIMENT).await;
    let grant = script.acquire_elsewhere("a", 1).await.remove(0);
    for (island, epoch) in [(4_000_000_000, 0), (3, 0), (0, u64::MAX), (0, 7)] {
        let (mut head, bodies) = computed("a", &grant);
        let what = v1::piece::What::Epoch(v1::EpochPiece { island, epoch });
        head.piece.as_mut().unwrap().what = Some(what);
        let reply = script.untrusted("a").complete(head, bodies).await;
        match reply {
            Ok(reply) => assert_eq!(reply.status(), DeliveryStatus::Unneeded, "{island}, {epoch}"),
            Err(status) => assert_eq!(status.code(), Code::InvalidArgument, "{island}, {epoch}: {status}"),
        }
    }
    script.finish_honestly("a").await;
    assert_eq!(script.digest(), true_digest());
}

#[tokio::test(start_paused = true)]
async fn clients_that_only_renew_do_not_hold_a_run_up() {
    let script = Script::new(EXPERIMENT).await;
    let grants = script.acquire_elsewhere("idle-1", 3).await;
    tokio::time::sleep(Terms::default().hedge_after).await;
    // The other one repeats what the first has had for long.
    let mut repeated = vec![];
    while repeated.len() < 3 {
        script.renew_all("idle-1", &grants).await;
        repeated.extend(script.acquire_elsewhere("idle-2", 3).await);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let start = tokio::time::Instant::now();
    let mut taken = vec![];
    while taken.is_empty() {
        script.renew_all("idle-1", &grants).await;
        script.renew_all("idle-2", &repeated).await;
        taken = script.acquire_elsewhere("honest", 3).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(
            start.elapsed() < 2 * Terms::default().stall,
            "a piece without progress is given to another worker"
        );
    }
    for grant in taken {
        let (head, bodies) = computed("honest", &grant);
        script.untrusted("honest").complete(head, bodies).await.unwrap();
    }
    script.finish_honestly("honest").await;
    assert_eq!(script.digest(), true_digest());
}

/// A principal with many ids: each repeats what another has had for long, and claims to make progress.
#[tokio::test(start_paused = true)]
async fn many_ids_of_one_principal_do_not_hold_a_run_up() {
    let script = Script::new(EXPERIMENT).await;
    let calls = script.untrusted("mallory");
    let mut held: BTreeMap<String, Vec<v1::Grant>> =
        (0..20).map(|number| (format!("mallory-{number}"), vec![])).collect();
    for id in held.keys() {
        calls.join(join_request(id)).await.unwrap();
    }
    let start = tokio::time::Instant::now();
    let mut taken = vec![];
    while taken.is_empty() {
        assert!(start.elapsed() < 2 * Terms::default().stall, "others would have to wait for each of them");
        for (id, grants) in &mut held {
            let renewal = |grant: &v1::Grant| v1::Renewal {
                piece: grant.piece.clone(),
                inputs: grant.task.as_ref().unwrap().inputs.clone(),
                standing: None,
                progress: start.elapsed().as_secs(),
                token: grant.token,
            };
            let renewals = grants.iter().map(renewal).collect();
            calls.renew(v1::RenewRequest { worker: id.clone(), renewals }).await.unwrap();
            if grants.is_empty() {
                let request = v1::AcquireRequest {
                    worker: id.clone(),
                    slots: 3,
                    holding: vec![],
                    wait_milliseconds: 0,
                };
                *grants = calls.acquire(request).await.unwrap().grants;
            }
        }
        taken = script.acquire_elsewhere("honest", 3).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    for grant in taken {
        let (head, bodies) = computed("honest", &grant);
        script.untrusted("honest").complete(head, bodies).await.unwrap();
    }
    script.finish_honestly("honest").await;
    assert_eq!(script.digest(), true_digest());
}

impl Script {
    async fn renew_all(&self, worker: &str, grants: &[v1::Grant]) {
        for grant in grants {
            self.renew(worker, grant).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_coordinator_that_stood_still_takes_no_lease_away() {
    let script = Script::new(EXPERIMENT).await;
    script.acquire_elsewhere("steady", 3).await;
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        // Nothing runs meanwhile, as after SIGSTOP.
        tokio::time::advance(2 * Terms::default().lease).await;
    }
    let events = script.events().await;
    assert!(!events.iter().any(|event| matches!(event, RunEvent::Expired { .. })), "{events:?}");
}

/// A principal that joins under ever other ids, takes what it can get, and reports that it failed.
#[tokio::test(start_paused = true)]
async fn workers_that_only_fail_do_not_fill_the_journal() {
    let script = Script::new(EXPERIMENT).await;
    let honest = script.acquire_elsewhere("honest", 1).await;
    let calls = script.untrusted("mallory");
    let ids: Vec<String> = (0..200).map(|number| format!("mallory-{number}")).collect();
    // All of them are there before the first one has failed.
    for id in &ids {
        calls.join(join_request(id)).await.unwrap();
    }
    let mut failures = 0;
    for id in &ids {
        let request =
            v1::AcquireRequest { worker: id.clone(), slots: 3, holding: vec![], wait_milliseconds: 0 };
        for grant in calls.acquire(request).await.unwrap().grants {
            calls.release(refusal(id, &grant, &format!("broken {failures}"), false)).await.unwrap();
            failures += 1;
        }
        calls
            .leave(v1::LeaveRequest { worker: id.clone(), reason: String::new(), misconfigured: false })
            .await
            .unwrap();
        script.renew("honest", &honest[0]).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!(failures >= 400, "{failures}");
    let is_loss = |event: &&RunEvent| matches!(event, RunEvent::Lost { .. } | RunEvent::Expired { .. });
    let losses = script.events().await.iter().filter(is_loss).count();
    assert!((8..40).contains(&losses), "{losses} events of {failures} failures in 40 s");
    let (head, bodies) = computed("honest", &honest[0]);
    script.untrusted("honest").complete(head, bodies).await.unwrap();
    script.finish_honestly("honest").await;
    assert_eq!(script.digest(), true_digest());
}

/// Until an epoch is delivered there is only the word of its worker: that is shown, but never more than the epoch holds.
#[tokio::test(start_paused = true)]
async fn what_a_worker_claims_of_its_progress_ends_with_its_piece() {
    let script = Script::new(EXPERIMENT).await;
    let shown = || script.cluster.status(&script.run).unwrap().standing.unwrap().generation;
    let claim = async |grant: &v1::Grant, generation| {
        let renewal = v1::Renewal {
            piece: grant.piece.clone(),
            inputs: grant.task.as_ref().unwrap().inputs.clone(),
            standing: Some(v1::Standing { generation, evaluations: 10, best: 3.0 }),
            progress: 1,
            token: grant.token,
        };
        let request = v1::RenewRequest { worker: "liar".to_owned(), renewals: vec![renewal] };
        script.untrusted("liar").renew(request).await.unwrap();
    };
    let grants = script.acquire_elsewhere("liar", 3).await;
    assert_eq!(grants.len(), 3);
    // The run is as far as its last island.
    for grant in &grants {
        claim(grant, 1).await;
    }
    assert_eq!(shown(), 1);
    for grant in &grants {
        claim(grant, u64::MAX).await;
    }
    assert_eq!(shown(), 2, "an epoch has 2 generations");
    // What has been delivered counts, and a renewal that is late changes nothing.
    for grant in &grants {
        let (head, bodies) = computed("liar", grant);
        script.untrusted("liar").complete(head, bodies).await.unwrap();
        claim(grant, u64::MAX).await;
    }
    assert_eq!(shown(), 2);
    script.finish_honestly("honest").await;
    assert_eq!(script.digest(), true_digest());
}
