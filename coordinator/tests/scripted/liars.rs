//! Workers that lie: they deliver populations that could have evolved and did not. Nothing but computing the epoch again
//! finds that.
//!
//! `ATOLL_LIARS` says how many runs of each kind of liar, `ATOLL_LIARS_EPOCHS` how long they are at least, and
//! `ATOLL_LIARS_KIND` which kinds, by a part of their description.

use super::*;
use coordinator::{AuditTerms, UntrustedCalls};
use evolution::epoch::Evolver;
use run::reader::Reader;

/// An experiment of this number of epochs on 5 islands, and how it is computed: truly, or with another seed.
struct Lab {
    text: String,
    experiment: Experiment,
    honest: Arc<dyn Evolver>,
    lying: Arc<dyn Evolver>,
}

impl Lab {
    fn new(epochs: u64, seed: u64) -> Self {
        let text = |seed: u64| {
            format!(
                "name = \"liars\"\nseed = {seed}\nproblem = {{ kind = \"onemax\", length = 200 }}\n\
                 algorithm = {{ kind = \"ga\", population = 6 }}\nislands = {{ count = 5 }}\n\
                 migration = {{ interval = 1, count = 1 }}\nbudget = {{ generations = {} }}\n\
                 checkpoint = {{ every = 50 }}\n",
                epochs.div_ceil(5)
            )
        };
        let of = |seed| match parse(&text(seed)) {
            Plan::Single(experiment) => *experiment,
            _ => unreachable!("it is one experiment"),
        };
        let (experiment, other) = (of(seed), of(seed + 1));
        Self { text: text(seed), honest: experiment.evolver(), lying: other.evolver(), experiment }
    }

    fn is_last(&self, task: &EpochTask) -> bool {
        Some(task.until) == self.experiment.budget().generations
    }

    fn digest(&self) -> Vec<u8> {
        archipelago::solo::evolve(&self.experiment, || false).unwrap().unwrap().digest.0.to_vec()
    }
}

/// How a worker behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    Honest,
    /// It lies from this delivery on.
    From(u64),
    /// It lies in a tenth of its epochs.
    Tenth,
    /// It lies about the last epochs of the run alone.
    End,
    /// It lies about the last epoch of one island, and is honest about those that it is given afterwards.
    EndOnce,
    /// It lies about the last epochs of the even islands alone, or of the odd ones.
    EndOfEvery2nd(u32),
}

/// A worker, and what it has done.
struct Member {
    id: String,
    calls: UntrustedCalls,
    manner: Manner,
    deliveries: u64,
    lies: u64,
    is_quarantined: bool,
}

/// What a run with liars came to.
#[derive(Debug)]
struct Course {
    digest: Bytes,
    lies: u64,
    retractions: usize,
    is_right: bool,
    /// Whether every liar that has lied was quarantined.
    is_found: bool,
}

impl Member {
    fn new(cluster: &Cluster, id: &str, manner: Manner) -> Self {
        let calls = UntrustedCalls::new(cluster.clone(), id);
        Self { id: id.to_owned(), calls, manner, deliveries: 0, lies: 0, is_quarantined: false }
    }

    fn lies_now(&self, lab: &Lab, task: &EpochTask) -> bool {
        match self.manner {
            Manner::Honest => false,
            Manner::From(first) => self.deliveries >= first,
            Manner::Tenth => self.deliveries % 10 == 7,
            Manner::End => lab.is_last(task),
            Manner::EndOnce => lab.is_last(task) && self.lies == 0,
            Manner::EndOfEvery2nd(first) => lab.is_last(task) && task.island % 2 == first,
        }
    }

    /// Fetches a body that a grant may only name.
    async fn body(&self, piece: Option<&v1::Piece>, digest: &Bytes, inline: Option<Bytes>) -> Option<Bytes> {
        if inline.is_some() {
            return inline;
        }
        let (worker, piece, digest) = (self.id.clone(), piece.cloned(), digest.clone());
        // It may have been taken back meanwhile.
        self.calls.fetch(v1::FetchRequest { worker, piece, digest }, 0).await.ok()
    }

    /// The task of a grant.
    async fn task(&self, grant: &v1::Grant) -> Option<EpochTask> {
        let piece = grant.piece.as_ref();
        let Some(v1::piece::What::Epoch(v1::EpochPiece { island, epoch })) = piece?.what else {
            return None;
        };
        let wire = grant.task.clone()?;
        let mut state = None;
        if let Some(before) = wire.before {
            let body = self.body(piece, &before.digest, before.inline).await?;
            state = Some(body.slice(..before.state_length as usize));
        }
        let mut packets = vec![];
        for v1::Packet { from, epoch, departure } in wire.packets {
            let departure = departure?;
            let departure = self.body(piece, &departure.digest, departure.inline).await?;
            packets.push(Packet { from, epoch, departure });
        }
        Some(EpochTask { island, epoch, until: wire.until, state, packets })
    }

    /// Takes one epoch, and delivers it; whether there was one.
    async fn work(&mut self, lab: &Lab) -> bool {
        if self.is_quarantined {
            return false;
        }
        let (worker, holding) = (self.id.clone(), vec![]);
        let request = v1::AcquireRequest { worker, slots: 1, holding, wait_milliseconds: 0 };
        let granted = self.calls.acquire(request).await;
        let Some(grants) = self.hear(granted) else { return false };
        let Some(grant) = grants.grants.into_iter().next() else { return false };
        let Some(task) = self.task(&grant).await else { return false };
        let is_lie = self.lies_now(lab, &task);
        let evolver = if is_lie { &lab.lying } else { &lab.honest };
        let outcome = epoch::run(&**evolver, &task).unwrap();
        self.deliveries += 1;
        // A population that hardly changes any more may come out the same with another seed, which is no lie.
        self.lies += u64::from(is_lie && epoch::run(&*lab.honest, &task).unwrap().digest != outcome.digest);
        let statistics = codec::encode(&outcome.statistics).unwrap();
        let result = v1::EpochResult {
            inputs: grant.task.unwrap().inputs,
            digest: Bytes::copy_from_slice(&outcome.digest.0),
            standing: Some((&outcome.standing).into()),
            state_length: outcome.state.len() as u64,
            departure_length: outcome.departure.len() as u64,
            statistics_length: statistics.len() as u64,
        };
        let head = v1::CompleteHead {
            worker: self.id.clone(),
            piece: grant.piece,
            milliseconds: 1,
            what: Some(v1::complete_head::What::Epoch(result)),
            slots: 0,
        };
        let reply = self.calls.complete(head, vec![outcome.state, outcome.departure, statistics]).await;
        self.hear(reply);
        true
    }

    /// A reply, unless the worker is quarantined, which an honest one never is.
    fn hear<T>(&mut self, reply: Result<T, tonic::Status>) -> Option<T> {
        match reply {
            Ok(reply) => Some(reply),
            Err(status) => {
                assert_ne!(self.manner, Manner::Honest, "blamed: {status}");
                assert_eq!(status.code(), Code::PermissionDenied, "{status}");
                self.is_quarantined = true;
                None
            }
        }
    }
}

/// Runs an experiment with these workers to its end.
async fn evolve(lab: &Lab, audit: AuditTerms, manners: &[Manner]) -> Course {
    let settings = CoordinatorSettings { audit, ..settings(1) };
    let store = Store::memory();
    let (cluster, background) = coordinator::start(store.clone(), &settings, || 0).await.unwrap();
    let run = cluster.submit(parse(&lab.text), vec![], 0, false).await.unwrap();
    let mut members = vec![];
    for (number, &manner) in manners.iter().enumerate() {
        let member = Member::new(&cluster, &format!("worker-{number}"), manner);
        member.calls.join(join_request(&member.id)).await.unwrap();
        members.push(member);
    }
    let status = loop {
        let status = cluster.status(&run).unwrap();
        assert_ne!(status.state(), State::Failed, "{}", status.reason);
        if status.state() == State::Finished {
            break status;
        }
        let mut has_worked = false;
        for member in &mut members {
            has_worked |= member.work(lab).await;
        }
        // Effects are carried out beside the calls; time passes where there is nothing to do.
        tokio::task::yield_now().await;
        if !has_worked {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let id = RunId::new(&run).unwrap();
    let events: Vec<run::journal::Event<RunEvent>> = run::journal::read_all(&store, &id).await.unwrap();
    let retractions = events.iter().filter(|event| matches!(event.body, RunEvent::Retracted { .. })).count();
    let damage = Reader::read(&store, &id).await.unwrap().damage;
    assert_eq!(damage, [], "what is left of it is whole");
    background.abort();
    let digest = status.digest.unwrap();
    Course {
        is_right: digest == lab.digest(),
        digest,
        lies: members.iter().map(|member| member.lies).sum(),
        retractions,
        is_found: members.iter().all(|member| member.lies == 0 || member.is_quarantined),
    }
}

const FOUR: [Manner; 4] = [Manner::Honest; 4];

fn with_one(liar: Manner) -> [Manner; 4] {
    [Manner::Honest, liar, Manner::Honest, Manner::Honest]
}

#[tokio::test(start_paused = true)]
async fn honest_workers_are_audited_and_nobody_is_blamed() {
    for share in [0.0, 0.02, 1.0] {
        let course = evolve(&Lab::new(100, 3), AuditTerms { share, secret: 1 }, &FOUR).await;
        assert!(course.is_right && course.retractions == 0, "{course:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_liar_that_is_audited_is_found_and_everything_that_followed_is_computed_again() {
    for (secret, liar) in
        [Manner::From(0), Manner::From(20), Manner::Tenth, Manner::End].into_iter().enumerate()
    {
        let audit = AuditTerms { share: 0.3, secret: secret as u128 };
        let course = evolve(&Lab::new(300, 3), audit, &with_one(liar)).await;
        assert!(course.lies > 0, "{liar:?}: {course:?}");
        assert!(course.is_right && course.is_found && course.retractions > 0, "{liar:?}: {course:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_liars_that_share_no_results_are_found_one_after_the_other() {
    let manners = [Manner::Honest, Manner::From(5), Manner::Honest, Manner::Tenth];
    let course = evolve(&Lab::new(300, 4), AuditTerms { share: 0.3, secret: 9 }, &manners).await;
    assert!(course.is_right && course.is_found && course.retractions > 1, "{course:?}");
}

#[tokio::test(start_paused = true)]
async fn who_lies_about_the_end_alone_is_found_however_little_is_audited() {
    let audit = AuditTerms { share: 1e-9, secret: 1 };
    let course = evolve(&Lab::new(100, 3), audit, &with_one(Manner::End)).await;
    assert!(course.is_right && course.is_found && course.lies > 0, "{course:?}");
}

/// Its last delivery is true, and so is its last one of the last epoch.
#[tokio::test(start_paused = true)]
async fn who_lies_about_the_end_of_one_island_and_then_tells_the_truth_is_found() {
    let audit = AuditTerms { share: 1e-9, secret: 1 };
    for seed in 0..3 {
        let course = evolve(&Lab::new(50, seed), audit, &[Manner::Honest, Manner::EndOnce]).await;
        assert!(course.is_right && course.is_found && course.lies > 0, "seed {seed}: {course:?}");
    }
}

/// What the first one delivered is taken back while the audits that find the second one are under way. They lie about
/// different islands, because those that deliver the same lie find each other right.
#[tokio::test(start_paused = true)]
async fn two_that_lie_about_the_end_alone_are_both_found() {
    let audit = AuditTerms { share: 1e-9, secret: 1 };
    let manners = [Manner::Honest, Manner::EndOfEvery2nd(0), Manner::Honest, Manner::EndOfEvery2nd(1)];
    let mut retractions = 0;
    for seed in 0..10 {
        let course = evolve(&Lab::new(50, seed), audit, &manners).await;
        assert!(course.is_right && course.is_found, "seed {seed}: {course:?}");
        retractions = retractions.max(course.retractions);
    }
    assert!(retractions > 1, "in some run both have delivered lies");
}

#[tokio::test(start_paused = true)]
async fn a_liar_beside_one_honest_worker_is_found_by_the_coordinator() {
    // The coordinator decides what differs; and where there is one worker alone, it audits that one itself.
    let audit = AuditTerms { share: 0.5, secret: 1 };
    let course = evolve(&Lab::new(100, 3), audit, &[Manner::From(3), Manner::Honest]).await;
    assert!(course.is_right && course.is_found, "{course:?}");
    let course = evolve(&Lab::new(50, 3), audit, &[Manner::Honest]).await;
    assert!(course.is_right && course.retractions == 0, "{course:?}");
}

#[tokio::test(start_paused = true)]
async fn of_two_that_differ_the_honest_one_is_not_blamed_whoever_comes_first() {
    let lab = Lab::new(50, 3);
    for first in [Manner::From(0), Manner::Honest] {
        let (cluster, _background) = coordinator::start(Store::memory(), &settings(1), || 0).await.unwrap();
        let run = cluster.submit(parse(&lab.text), vec![], 0, false).await.unwrap();
        let second = if first == Manner::Honest { Manner::From(0) } else { Manner::Honest };
        let mut members =
            [("first", first), ("second", second)].map(|(id, manner)| Member::new(&cluster, id, manner));
        let mut grants = vec![];
        for member in &members {
            member.calls.join(join_request(&member.id)).await.unwrap();
            let (worker, holding) = (member.id.clone(), vec![]);
            let request = v1::AcquireRequest { worker, slots: 5, holding, wait_milliseconds: 0 };
            grants = [grants, member.calls.acquire(request).await.unwrap().grants].concat();
            tokio::time::sleep(Terms::default().hedge_after).await;
        }
        assert_eq!(grants.len(), 6, "the oldest is repeated by an idle worker");
        for (member, grant) in members.iter_mut().zip([&grants[0], &grants[5]]) {
            assert_eq!(grant.piece, grants[0].piece);
            let task = member.task(grant).await.unwrap();
            let evolver = if member.manner == Manner::Honest { &lab.honest } else { &lab.lying };
            let outcome = epoch::run(&**evolver, &task).unwrap();
            let mut head = computed_head(&member.id, grant);
            let statistics = codec::encode(&outcome.statistics).unwrap();
            if let Some(v1::complete_head::What::Epoch(epoch)) = &mut head.what {
                epoch.digest = Bytes::copy_from_slice(&outcome.digest.0);
                epoch.state_length = outcome.state.len() as u64;
                epoch.departure_length = outcome.departure.len() as u64;
                epoch.statistics_length = statistics.len() as u64;
            }
            let bodies = vec![outcome.state, outcome.departure, statistics];
            let reply = member.calls.complete(head, bodies).await;
            member.hear(reply).expect("nobody is blamed before it is decided");
        }
        // It is decided, and what was wrong is taken back.
        tokio::time::sleep(Duration::from_secs(1)).await;
        for member in &mut members {
            let (worker, holding) = (member.id.clone(), vec![]);
            let request = v1::AcquireRequest { worker, slots: 0, holding, wait_milliseconds: 0 };
            let reply = member.calls.acquire(request).await;
            member.hear(reply);
            assert_eq!(member.is_quarantined, member.manner != Manner::Honest, "{first:?} came first");
        }
        while cluster.status(&run).unwrap().state() != State::Finished {
            for member in &mut members {
                member.work(&lab).await;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(cluster.status(&run).unwrap().digest.unwrap(), lab.digest());
    }
}

/// A renewal that crosses the delivery of the same epoch must not make its author its auditor.
#[tokio::test(start_paused = true)]
async fn an_author_that_renews_what_it_has_delivered_does_not_hold_up_the_audit() {
    let audit = AuditTerms { share: 1.0, secret: 1 };
    let settings = CoordinatorSettings { audit, ..settings(1) };
    let (cluster, _background) = coordinator::start(Store::memory(), &settings, || 0).await.unwrap();
    cluster.submit(parse(EXPERIMENT), vec![], 0, false).await.unwrap();
    let calls = ["author", "other"].map(|id| UntrustedCalls::new(cluster.clone(), id));
    for (calls, id) in calls.iter().zip(["author", "other"]) {
        calls.join(join_request(id)).await.unwrap();
    }
    let acquire = |worker: &str, slots| {
        let worker = worker.to_owned();
        v1::AcquireRequest { worker, slots, holding: vec![], wait_milliseconds: 0 }
    };
    let grant = calls[0].acquire(acquire("author", 1)).await.unwrap().grants.remove(0);
    let (head, bodies) = computed("author", &grant);
    calls[0].complete(head, bodies).await.unwrap();
    let renewal = v1::Renewal {
        piece: grant.piece.clone(),
        inputs: grant.task.as_ref().unwrap().inputs.clone(),
        standing: None,
        progress: 0,
        token: grant.token,
    };
    let worker = "author".to_owned();
    let reply = calls[0].renew(v1::RenewRequest { worker, renewals: vec![renewal] }).await.unwrap();
    assert_eq!(reply.lost, [grant.token]);
    let audited = calls[1].acquire(acquire("other", 1)).await.unwrap().grants.remove(0);
    assert_eq!(audited.piece, grant.piece, "it is computed again by another worker at once");
}

fn computed_head(worker: &str, grant: &v1::Grant) -> v1::CompleteHead {
    let result = v1::EpochResult { inputs: grant.task.clone().unwrap().inputs, ..Default::default() };
    v1::CompleteHead {
        worker: worker.to_owned(),
        piece: grant.piece.clone(),
        milliseconds: 1,
        what: Some(v1::complete_head::What::Epoch(result)),
        slots: 0,
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// A kind of liar: what it does, and how a worker behaves with this seed in a run of this number of epochs.
type Kind = (&'static str, fn(u64, u64) -> Manner);

/// How often a liar lies unfound, in a run of this number of epochs, where a quarter are its own; of one that lies
/// about the end, as often as it did.
fn lies_unless_found(manner: Manner, epochs: u64, lies: u64) -> u64 {
    match manner {
        Manner::Honest => 0,
        Manner::From(first) => (epochs / 4).saturating_sub(first),
        Manner::Tenth => epochs / 40,
        Manner::End | Manner::EndOnce | Manner::EndOfEvery2nd(_) => lies,
    }
}

/// Liars among four workers with the default share: what is found, beside what the formula expects.
#[tokio::test(start_paused = true)]
async fn liars_among_four_workers() {
    let (runs, epochs) = (number("ATOLL_LIARS", 1), number("ATOLL_LIARS_EPOCHS", 500));
    let share = 0.02;
    let kinds: [Kind; 3] = [
        // About a quarter of the epochs are its own.
        ("lies from a random moment on", |seed, epochs| Manner::From(seed * 7919 % (epochs / 4))),
        ("lies in a tenth of its epochs", |_, _| Manner::Tenth),
        ("lies about the end alone", |_, _| Manner::End),
    ];
    let wanted = std::env::var("ATOLL_LIARS_KIND").unwrap_or_default();
    for (kind, manner) in kinds.into_iter().filter(|(kind, _)| kind.contains(&wanted)) {
        let (mut right, mut found, mut lies, mut retractions, mut missed) = (0, 0, 0, 0, 0.0);
        let mut digests = vec![];
        for seed in 0..runs {
            let manner = manner(seed, epochs);
            let audit = AuditTerms { share, secret: 1_000 + u128::from(seed) };
            let course = evolve(&Lab::new(epochs, seed), audit, &with_one(manner)).await;
            assert!(course.is_right || course.retractions == 0, "{kind}, seed {seed}: {course:?}");
            // The last epoch of every island is always audited, so that the end cannot be lied about.
            assert!(course.is_right || manner != Manner::End, "{kind}, seed {seed}: {course:?}");
            right += u64::from(course.is_right);
            found += u64::from(course.is_found);
            lies += course.lies;
            retractions += course.retractions;
            missed += (1.0_f64 - share).powf(lies_unless_found(manner, epochs, course.lies) as f64);
            digests.push(course.digest);
        }
        let digest = Digest::of(&digests.concat());
        println!(
            "{kind}: {right} of {runs} runs have the right digest, in {found} no lie was left unfound; {lies} lies, \
             {retractions} retractions; a share of 2 % alone is expected to miss {missed:.2} of {runs} liars; digest of all \
             digests {digest}"
        );
    }
}
