//! An exhaustive model of claim, journal, leases and takeover: two real coordinators on one store, and every order, up to a
//! depth, in which they start and crash, hand out work and take results, leases expire, and what they have sent to the
//! store arrives, one write overtaking another.
//!
//! States are explored breadth first. A coordinator cannot be cloned, so each state is reached by its actions from the
//! beginning: nothing in them depends on a clock or on chance. Two states are the same if their observable parts are: the
//! objects of the store, the writes that are on their way, what each coordinator says of the run, and what the worker holds.
//!
//! In each state everything may be lost but the store: another coordinator must be able to continue the run to its end, also
//! if the writes that are on their way arrive meanwhile; what is stored is whole, and is what its records say.
//!
//! `ATOLL_MODEL_DEPTH` says how deep (`tests/long model`).

use crate::network::settings;
use crate::replay;
use crate::scenario::{Scenario, Trouble};
use crate::{block_on, number, plan, submit};
use bytes::Bytes;
use coordinator::{Background, Cluster, ServeError, UntrustedCalls};
use evolution::digest::Digest;
use evolution::epoch::{self, EpochTask, Packet};
use experiment::{Experiment, Plan};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use proto::calls::WorkerCalls;
use proto::v1;
use proto::v1::run_status::State;
use run::RunId;
use run::reader::Reader;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::Store;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Two islands that do not wait for each other, and two epochs.
const PLAN: &str = r#"
name = "model"
problem = { kind = "onemax", length = 8 }
algorithm = { kind = "ga", population = 4 }
islands = { count = 2 }
migration = { interval = 1, count = 1, mode = "asynchronous" }
budget = { generations = 2 }
checkpoint = { every = 1 }
"#;

const COORDINATORS: usize = 2;
/// The most results that the worker has and did not deliver.
const MOST_RESULTS: usize = 2;
/// How many of the oldest writes on their way may arrive next.
const OVERTAKING: usize = 2;
/// Tasks that wait for nothing have come to rest after this number of rounds.
const ROUNDS: usize = 48;

static SCENARIO: LazyLock<Scenario> = LazyLock::new(|| Scenario::of(PLAN, Trouble::Nothing));
static EXPERIMENT: LazyLock<Box<Experiment>> = LazyLock::new(|| match plan(PLAN) {
    Plan::Single(experiment) => experiment,
    _ => unreachable!("it is one experiment"),
});

/// A store with the run that was submitted, and its name.
static SUBMITTED: LazyLock<(InMemory, String)> = LazyLock::new(|| {
    let service = Arc::new(Service::default());
    let store = Store::over(Arc::new(Client { service: service.clone(), coordinator: None }));
    let run = block_on(submit(store, &SCENARIO, 0));
    (service.objects.fork(), run)
});

/// Something that happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// A coordinator starts: it claims the store and opens the run.
    Start(usize),
    Crash(usize),
    /// The worker asks a coordinator for a piece, and computes it.
    Acquire(usize),
    /// The worker delivers its oldest result to a coordinator.
    Deliver(usize),
    /// The n-th oldest write of a coordinator arrives.
    Arrive(usize, usize),
    /// All writes of a coordinator arrive, and what it sends then, until it sends no more.
    ArriveAll(usize),
    /// Enough time passes that leases expire.
    Expire,
}

impl Action {
    fn all() -> Vec<Self> {
        let of_each = (0..COORDINATORS).flat_map(|one| {
            let arrive = (0..OVERTAKING).map(move |nth| Self::Arrive(one, nth));
            [Self::Start(one), Self::Crash(one), Self::Acquire(one), Self::Deliver(one), Self::ArriveAll(one)]
                .into_iter()
                .chain(arrive)
        });
        of_each.chain([Self::Expire]).collect()
    }
}

/// A write on its way.
#[derive(Clone, Debug)]
enum Write {
    Put(Path, PutPayload, PutOptions),
    Delete(Path),
}

impl Write {
    fn carry_out(self, objects: &InMemory) -> Result<Option<PutResult>> {
        match self {
            Self::Put(path, payload, options) => at_once(objects.put_opts(&path, payload, options)).map(Some),
            Self::Delete(path) => at_once(objects.delete(&path)).map(|()| None),
        }
    }

    fn note(&self, noted: &mut Vec<u8>) {
        match self {
            Self::Put(path, payload, _) => {
                noted.extend_from_slice(path.as_ref().as_bytes());
                payload.iter().for_each(|part| noted.extend_from_slice(part));
            }
            Self::Delete(path) => noted.extend_from_slice(path.as_ref().as_bytes()),
        }
        noted.push(0);
    }
}

/// What a store in memory answers, which it does at once.
fn at_once<T>(answer: impl Future<Output = T>) -> T {
    answer.now_or_never().expect("memory waits for nothing")
}

type Sent = (Write, oneshot::Sender<Result<Option<PutResult>>>);

/// A service to which writes take as long as it is wanted.
#[derive(Debug, Default)]
struct Service {
    objects: InMemory,
    sent: [Mutex<VecDeque<Sent>>; COORDINATORS],
}

impl Service {
    fn sent(&self, coordinator: usize) -> MutexGuard<'_, VecDeque<Sent>> {
        self.sent[coordinator].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writes that are on their way, from the oldest coordinator on.
    fn on_their_way(&self) -> Vec<Write> {
        (0..COORDINATORS)
            .flat_map(|one| self.sent(one).iter().map(|(write, _)| write.clone()).collect::<Vec<_>>())
            .collect()
    }

    /// All objects and the writes that are on their way, as one digest.
    fn fingerprint(&self) -> Digest {
        let mut noted = vec![];
        note_objects(&self.objects, &mut noted);
        for write in self.on_their_way() {
            write.note(&mut noted);
        }
        Digest::of(&noted)
    }
}

fn note_objects(objects: &InMemory, noted: &mut Vec<u8>) {
    let mut listed: Vec<ObjectMeta> = at_once(objects.list(None).try_collect()).unwrap();
    listed.sort_by(|one, other| one.location.cmp(&other.location));
    for ObjectMeta { location, .. } in listed {
        noted.extend_from_slice(location.as_ref().as_bytes());
        noted.push(0);
        noted.extend_from_slice(&at_once(async { objects.get(&location).await?.bytes().await }).unwrap());
    }
}

/// The service as one process sees it: a coordinator, whose writes wait, or none of them.
#[derive(Clone, Debug)]
struct Client {
    service: Arc<Service>,
    coordinator: Option<usize>,
}

impl Client {
    async fn write(&self, write: Write) -> Result<Option<PutResult>> {
        let Some(coordinator) = self.coordinator else { return write.carry_out(&self.service.objects) };
        let (answer, answered) = oneshot::channel();
        self.service.sent(coordinator).push_back((write, answer));
        match answered.await {
            Ok(result) => result,
            Err(_) => std::future::pending().await,
        }
    }
}

impl fmt::Display for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "client {:?}", self.coordinator)
    }
}

#[tonic::async_trait]
impl ObjectStore for Client {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let put = self.write(Write::Put(path.clone(), payload, options)).await?;
        Ok(put.expect("a put answers with what it has put"))
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let client = self.clone();
        let delete = move |path: Result<Path>| {
            let client = client.clone();
            async move {
                let path = path?;
                client.write(Write::Delete(path.clone())).await?;
                Ok(path)
            }
        };
        paths.then(delete).boxed()
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.service.objects.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.service.objects.get_opts(path, options).await
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.service.objects.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.service.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.service.objects.copy_opts(from, to, options).await
    }
}

/// A coordinator, as far as it has come.
enum Coordinator {
    Off,
    Starting(JoinHandle<Result<(Cluster, Background), ServeError>>),
    On(Cluster, Background),
}

/// The world in one state.
struct World {
    service: Arc<Service>,
    run: String,
    coordinators: [Coordinator; COORDINATORS],
    /// How many coordinators were started: each is another process.
    starts: u128,
    /// What the worker has computed and not delivered.
    results: VecDeque<(v1::CompleteHead, Vec<Bytes>)>,
}

/// Lets every task run until it waits for something.
async fn rest() {
    for _ in 0..ROUNDS {
        tokio::task::yield_now().await;
    }
}

impl World {
    /// A run that was submitted, and no coordinator.
    fn new() -> Self {
        let (objects, run) = &*SUBMITTED;
        let service = Arc::new(Service { objects: objects.fork(), ..Service::default() });
        let run = run.clone();
        let coordinators = [const { Coordinator::Off }; COORDINATORS];
        Self { service, run, coordinators, starts: 0, results: VecDeque::new() }
    }

    /// The state after some actions.
    async fn after(actions: &[Action]) -> Self {
        let mut world = Self::new();
        for action in actions {
            world.act(*action).await;
        }
        world
    }

    /// Whether an action can happen.
    fn allows(&self, action: Action) -> bool {
        let is_on = |one: usize| matches!(self.coordinators[one], Coordinator::On(..));
        match action {
            Action::Start(one) => matches!(self.coordinators[one], Coordinator::Off),
            Action::Crash(one) => !matches!(self.coordinators[one], Coordinator::Off),
            Action::Acquire(one) => is_on(one) && self.results.len() < MOST_RESULTS,
            Action::Deliver(one) => is_on(one) && !self.results.is_empty(),
            Action::Arrive(one, nth) => self.service.sent(one).len() > nth,
            Action::ArriveAll(one) => !self.service.sent(one).is_empty(),
            Action::Expire => (0..COORDINATORS).any(is_on),
        }
    }

    async fn act(&mut self, action: Action) {
        match action {
            Action::Start(one) => {
                self.starts += 1;
                let client = Client { service: self.service.clone(), coordinator: Some(one) };
                let mut settings = settings(self.starts, &SCENARIO);
                settings.trial = None;
                let store = Store::over(Arc::new(client));
                let starting = tokio::spawn(async move { coordinator::start(store, &settings, || 0).await });
                self.coordinators[one] = Coordinator::Starting(starting);
            }
            Action::Crash(one) => match std::mem::replace(&mut self.coordinators[one], Coordinator::Off) {
                Coordinator::Off => {}
                Coordinator::Starting(starting) => starting.abort(),
                Coordinator::On(_, background) => background.abort(),
            },
            Action::Acquire(one) => {
                if let Coordinator::On(cluster, _) = &self.coordinators[one] {
                    self.results.extend(acquire(cluster).await);
                }
            }
            Action::Deliver(one) => {
                if let Coordinator::On(cluster, _) = &self.coordinators[one]
                    && let Some((head, bodies)) = self.results.pop_front()
                {
                    let calls = worker_of(cluster).await;
                    // It may belong to a run that this one has not opened.
                    drop(calls.complete(head, bodies).await);
                }
            }
            Action::Arrive(one, nth) => self.arrive(one, nth),
            Action::ArriveAll(one) => {
                while !self.service.sent(one).is_empty() {
                    self.arrive(one, 0);
                    rest().await;
                }
            }
            Action::Expire => tokio::time::advance(4 * SCENARIO.lease).await,
        }
        rest().await;
        for coordinator in &mut self.coordinators {
            if let Coordinator::Starting(starting) = coordinator
                && starting.is_finished()
            {
                *coordinator = match starting.await.unwrap() {
                    Ok((cluster, background)) => Coordinator::On(cluster, background),
                    // Another has claimed the store meanwhile.
                    Err(_) => Coordinator::Off,
                };
            }
        }
    }

    fn arrive(&self, one: usize, nth: usize) {
        let arriving = self.service.sent(one).remove(nth);
        if let Some((write, answer)) = arriving {
            // The sender may be gone.
            drop(answer.send(write.carry_out(&self.service.objects)));
        }
    }

    /// What can be observed, as one digest.
    fn fingerprint(&self) -> Digest {
        let mut noted = self.service.fingerprint().0.to_vec();
        for coordinator in &self.coordinators {
            let said = match coordinator {
                Coordinator::Off => "off".to_owned(),
                Coordinator::Starting(_) => "starting".to_owned(),
                Coordinator::On(cluster, _) => format!("{:?}", cluster.status(&self.run).ok()),
            };
            noted.extend_from_slice(said.as_bytes());
            noted.push(0);
        }
        for (head, _) in &self.results {
            noted.extend_from_slice(format!("{head:?}").as_bytes());
        }
        Digest::of(&noted)
    }
}

async fn worker_of(cluster: &Cluster) -> UntrustedCalls {
    let calls = UntrustedCalls::new(cluster.clone(), "worker");
    let join = v1::JoinRequest {
        worker: "worker".to_owned(),
        name: "worker".to_owned(),
        version: "simulated".to_owned(),
        semantics: experiment::SEMANTICS,
        threads: 1,
        ..v1::JoinRequest::default()
    };
    calls.join(join).await.unwrap();
    calls
}

/// Asks for a piece, and computes it.
async fn acquire(cluster: &Cluster) -> Option<(v1::CompleteHead, Vec<Bytes>)> {
    let calls = worker_of(cluster).await;
    let request =
        v1::AcquireRequest { worker: "worker".to_owned(), slots: 1, holding: vec![], wait_milliseconds: 0 };
    let grant = calls.acquire(request).await.ok()?.grants.pop()?;
    Some(computed(&calls, &grant).await)
}

/// A body that a grant names, or brings along.
async fn body(calls: &UntrustedCalls, grant: &v1::Grant, inline: Option<Bytes>, digest: Bytes) -> Bytes {
    if let Some(bytes) = inline {
        return bytes;
    }
    let request = v1::FetchRequest { worker: "worker".to_owned(), piece: grant.piece.clone(), digest };
    calls.fetch(request, 0).await.unwrap()
}

/// What an epoch comes to, as a worker delivers it.
async fn computed(calls: &UntrustedCalls, grant: &v1::Grant) -> (v1::CompleteHead, Vec<Bytes>) {
    let piece = grant.piece.clone().unwrap();
    let Some(v1::piece::What::Epoch(v1::EpochPiece { island, epoch })) = piece.what else {
        unreachable!("there are only epochs")
    };
    let wire = grant.task.clone().unwrap();
    let state = match wire.before {
        Some(v1::Remains { digest, state_length, inline, .. }) => {
            Some(body(calls, grant, inline, digest).await.slice(..state_length as usize))
        }
        None => None,
    };
    let mut packets = vec![];
    for v1::Packet { from, epoch, departure } in wire.packets {
        let v1::Body { digest, inline, .. } = departure.unwrap();
        packets.push(Packet { from, epoch, departure: body(calls, grant, inline, digest).await });
    }
    let task = EpochTask { island, epoch, until: wire.until, state, packets };
    let outcome = epoch::run(&*EXPERIMENT.evolver(), &task).unwrap();
    let statistics = evolution::codec::encode(&outcome.statistics).unwrap();
    let result = v1::EpochResult {
        inputs: wire.inputs,
        digest: Bytes::copy_from_slice(&outcome.digest.0),
        standing: Some((&outcome.standing).into()),
        state_length: outcome.state.len() as u64,
        departure_length: outcome.departure.len() as u64,
        statistics_length: statistics.len() as u64,
    };
    let what = Some(v1::complete_head::What::Epoch(result));
    let head =
        v1::CompleteHead { worker: "worker".to_owned(), piece: Some(piece), milliseconds: 1, what, slots: 0 };
    (head, vec![outcome.state, outcome.departure, statistics])
}

/// Everything is lost but the store: another coordinator continues the run to its end, while what was on its way arrives late or
/// never. Then everything that is stored is whole, and is what its records say.
async fn recover(objects: InMemory, late: Vec<Write>, run: &str) {
    let service = Arc::new(Service { objects, ..Service::default() });
    let store = Store::over(Arc::new(Client { service: service.clone(), coordinator: None }));
    let mut settings = settings(u128::MAX / 2, &SCENARIO);
    settings.trial = None;
    let (cluster, background) = coordinator::start(store.clone(), &settings, || 0).await.unwrap();
    let first = acquire(&cluster).await;
    for write in late {
        // An object that is there already stays.
        drop(write.carry_out(&service.objects));
    }
    let mut next = first;
    for _ in 0..1000 {
        let status = cluster.status(run).unwrap();
        if status.state() == State::Finished {
            break;
        }
        assert_ne!(status.state(), State::Failed, "{}", status.reason);
        if let Some((head, bodies)) = next.take() {
            drop(worker_of(&cluster).await.complete(head, bodies).await);
        }
        next = acquire(&cluster).await;
        if next.is_none() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    let told = cluster.status(run).unwrap();
    assert_eq!(told.state(), State::Finished, "{}", told.reason);
    background.abort();
    let run = RunId::new(run).unwrap();
    let reader = Reader::read(&store, &run).await.unwrap();
    assert_eq!(reader.damage, []);
    let replayed = replay::replay(&store, &run).await.unwrap();
    assert_eq!(told.digest.as_deref(), Some(&replayed.0[..]));
}

/// What a search has seen.
#[derive(Default)]
struct Search {
    states: BTreeSet<Digest>,
    /// The stores that were recovered from, with what was on its way.
    stores: BTreeSet<Digest>,
    transitions: usize,
    takeovers: usize,
    ends: usize,
}

impl Search {
    /// Looks at the state after some actions; returns what can happen next if it is new.
    fn visit(&mut self, actions: &[Action]) -> Vec<Action> {
        self.transitions += 1;
        let (fingerprint, next, recovery) = block_on(async {
            let world = World::after(actions).await;
            let next: Vec<Action> =
                Action::all().into_iter().filter(|&action| world.allows(action)).collect();
            let is_on = |one: &Coordinator| matches!(one, Coordinator::On(..));
            self.takeovers += usize::from(world.coordinators.iter().all(is_on));
            let ended = world.coordinators.iter().any(|one| match one {
                Coordinator::On(cluster, _) => {
                    cluster.status(&world.run).is_ok_and(|status| status.state() == State::Finished)
                }
                _ => false,
            });
            self.ends += usize::from(ended);
            let service = world.service.clone();
            (world.fingerprint(), next, (service, world.run))
        });
        if !self.states.insert(fingerprint) {
            return vec![];
        }
        let (service, run) = recovery;
        if self.stores.insert(service.fingerprint()) {
            let late = service.on_their_way();
            let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                if !late.is_empty() {
                    block_on(recover(service.objects.fork(), late, &run));
                }
                block_on(recover(service.objects.fork(), vec![], &run));
            }));
            assert!(tried.is_ok(), "after {actions:?}");
        }
        next
    }
}

/// A first coordinator has taken this number of the four results of a run, and is about to write the last of them.
fn beginning(results: usize) -> Vec<Action> {
    let start = [Action::Start(0), Action::ArriveAll(0)];
    let written = [Action::Acquire(0), Action::Deliver(0), Action::ArriveAll(0)].repeat(results - 1);
    [&start[..], &written, &[Action::Acquire(0), Action::Deliver(0)]].concat()
}

#[test]
fn every_order_of_takeovers_and_writes_leads_to_the_end() {
    let depth = number("ATOLL_MODEL_DEPTH", 5) as usize;
    let mut search = Search::default();
    LazyLock::force(&SUBMITTED);
    let mut frontier = vec![beginning(1), beginning(4)];
    for round in 0..=depth {
        let mut next = vec![];
        for actions in frontier {
            for action in search.visit(&actions) {
                next.push([&actions[..], &[action]].concat());
            }
        }
        println!("model: after {round} actions {} states", search.states.len());
        frontier = next;
    }
    let Search { states, stores, transitions, takeovers, ends } = search;
    println!(
        "model: depth {depth}, {} states, {transitions} transitions, {} stores recovered from, {takeovers} states with two \
         coordinators, {ends} with a finished run",
        states.len(),
        stores.len()
    );
    assert!(takeovers > 0 && ends > 0, "coordinators meet, and the run ends");
}
