//! Turns a grant into something that can be run: the experiment and all bodies, cached or fetched.

use crate::cache::Cache;
use crate::client::{CallError, Calls, Client};
use crate::gauge::Gauges;
use archipelago::cell::CellPlan;
use archipelago::job::Job;
use bytes::Bytes;
use evolution::codec;
use evolution::digest::Digest;
use evolution::epoch::{EpochTask, Evolver, Packet, left_digest};
use experiment::tournament::ContestantError;
use experiment::{CheckpointEvery, Experiment, Plan};
use proto::convert::{self, Piece, Work};
use proto::v1;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex as AsyncMutex;
use tournament::{Contestant, EngineCommand};

/// The longest time to fetch a body.
const PATIENCE: Duration = Duration::from_mins(2);
/// Number of cached plans.
const PLANS: usize = 16;

/// How engines are started, by their names.
pub(crate) type Engines = BTreeMap<String, EngineCommand>;

/// Why a grant cannot be run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SupplyError {
    /// The coordinator does not respond, or takes the grant back.
    #[error(transparent)]
    Call(#[from] CallError),
    /// It sent invalid data.
    #[error("{0}")]
    Wrong(String),
    /// This worker lacks an engine.
    #[error("{0}")]
    Missing(String),
}

/// Something that can be run.
pub(crate) enum Ready {
    Epoch { evolution: Arc<Evolution>, task: EpochTask, checkpoint: Option<Bytes> },
    Cells { prepared: Arc<PreparedPlan>, first: u32, count: u32 },
    Job { job: Job, inputs: Vec<Bytes> },
}

/// A plan whose cells are computed here.
pub(crate) struct PreparedPlan {
    pub(crate) plan: CellPlan,
    /// The players of a tournament.
    pub(crate) contestants: Vec<Contestant>,
}

/// An experiment whose islands are evolved here.
pub(crate) struct Evolution {
    pub(crate) evolver: Arc<dyn Evolver>,
    pub(crate) checkpoint_every: CheckpointEvery,
    pub(crate) gauges: Arc<Gauges>,
    /// About how many bytes of memory an epoch of each island takes.
    memory: Vec<u64>,
}

impl Ready {
    /// The approximate memory in bytes that it takes on this number of threads.
    pub(crate) fn memory(&self, threads: usize) -> u64 {
        match self {
            Self::Epoch { evolution, task, .. } => {
                evolution.memory.get(task.island as usize).copied().unwrap_or(0)
            }
            // The individuals are decoded, and played with.
            Self::Job { inputs, .. } => inputs.iter().map(|input| 8 * input.len() as u64).sum(),
            Self::Cells { prepared, first, count } => {
                let cells = (*first..first + count).map(|number| prepared.plan.memory(number));
                let largest = cells.max().unwrap_or(0);
                largest.saturating_mul(threads.min(*count as usize) as u64)
            }
        }
    }
}

/// A plan as its text says, with everything that takes long to make ready and needs nothing else.
enum Parsed {
    Evolution(Arc<Evolution>),
    Cells(CellPlan),
}

impl Parsed {
    fn of(run: &str, text: &str) -> Result<Self, SupplyError> {
        match experiment::parse(run, text, None).map_err(wrong)? {
            Plan::Single(experiment) => {
                let evolution = Evolution::new(&experiment);
                match evolution.evolver.missing() {
                    Some(missing) => Err(SupplyError::Missing(missing)),
                    None => Ok(Self::Evolution(Arc::new(evolution))),
                }
            }
            plan => {
                let plan = CellPlan::of(plan).map(Self::Cells);
                plan.ok_or_else(|| wrong("expected an experiment, a sweep or a tournament"))
            }
        }
    }
}

impl PreparedPlan {
    fn new(plan: CellPlan, files: &BTreeMap<Digest, Bytes>, engines: &Engines) -> Result<Self, SupplyError> {
        let contestants = match &plan {
            CellPlan::Sweep(_) => vec![],
            CellPlan::Tournament(games) => {
                games.contestants(files, engines).map_err(|error| match error {
                    ContestantError::Engine { .. } => SupplyError::Missing(error.to_string()),
                    error => wrong(error),
                })?
            }
        };
        Ok(Self { plan, contestants })
    }
}

#[derive(Clone)]
enum Prepared {
    Evolution(Arc<Evolution>),
    Cells(Arc<PreparedPlan>),
}

/// A cache of fetched plans and states, shared by clones.
#[derive(Clone)]
pub(crate) struct Supply {
    client: Client,
    plans: Arc<AsyncMutex<BTreeMap<Digest, Prepared>>>,
    states: Arc<Mutex<Cache>>,
    engines: Arc<Engines>,
    /// Whether plans are made ready where they are asked for, as simulations need.
    inline: bool,
}

impl Supply {
    pub(crate) fn new(client: Client, cache_bytes: usize, engines: Engines, inline: bool) -> Self {
        let states = Arc::new(Mutex::new(Cache::new(cache_bytes)));
        Self { client, plans: Arc::default(), states, engines: Arc::new(engines), inline }
    }

    /// Caches a state, because the next epoch of its island starts from it.
    pub(crate) fn keep(&self, run: &str, island: u32, outcome: Digest, state: &Bytes) {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).put(run, island, outcome, state);
    }

    /// Everything that a grant needs.
    pub(crate) async fn prepare(&self, work: &Work, grant: v1::Grant) -> Result<Ready, SupplyError> {
        if let (Piece::Job { .. }, Some(v1::JobTask { job, inputs, .. })) = (work.piece, &grant.job) {
            let job = codec::decode(job).map_err(wrong)?;
            let mut bodies = vec![];
            for input in inputs {
                bodies.push(self.body(work, input.clone()).await?);
            }
            return Ok(Ready::Job { job, inputs: bodies });
        }
        let plan = convert::digest("plan", &grant.plan).map_err(wrong)?;
        match (self.plan(work, plan).await?, work.piece, grant.task) {
            (Prepared::Cells(prepared), Piece::Cells { first, count }, None) => {
                let end = first.checked_add(count).filter(|end| *end <= prepared.plan.len());
                end.ok_or_else(|| wrong(format!("expected cells of the plan, found {count} from {first}")))?;
                Ok(Ready::Cells { prepared, first, count })
            }
            (Prepared::Evolution(evolution), Piece::Epoch { island, epoch }, Some(task)) => {
                let (task, checkpoint) = self.task(work, island, epoch, task).await?;
                Ok(Ready::Epoch { evolution, task, checkpoint })
            }
            _ => Err(wrong("the grant does not fit its plan")),
        }
    }

    /// The plan of a run. Only one is fetched at a time, because making one ready may take long.
    async fn plan(&self, work: &Work, digest: Digest) -> Result<Prepared, SupplyError> {
        let mut plans = self.plans.lock().await;
        if let Some(known) = plans.get(&digest) {
            return Ok(known.clone());
        }
        let request = v1::PlanRequest { worker: self.client.id(), run: work.run.clone() };
        let call = |client: Calls| {
            let request = request.clone();
            async move { client.plan(request).await }
        };
        let v1::PlanReply { text, players } = self.client.call(PATIENCE, call).await?;
        if Digest::of(text.as_bytes()) != digest {
            return Err(wrong("the plan is not the one that was granted"));
        }
        let prepared = self.make_ready(work, &text, players).await?;
        if plans.len() >= PLANS {
            plans.pop_first();
        }
        plans.insert(digest, prepared.clone());
        Ok(prepared)
    }

    async fn make_ready(
        &self,
        work: &Work,
        text: &str,
        players: Vec<v1::Body>,
    ) -> Result<Prepared, SupplyError> {
        let (run, text) = (work.run.clone(), text.to_owned());
        let plan = match self.apart(move || Parsed::of(&run, &text)).await?? {
            Parsed::Evolution(evolution) => return Ok(Prepared::Evolution(evolution)),
            Parsed::Cells(plan) => plan,
        };
        let files = match &plan {
            CellPlan::Sweep(_) => BTreeMap::new(),
            CellPlan::Tournament(_) => self.player_files(work, players).await?,
        };
        let engines = self.engines.clone();
        let prepared = self.apart(move || PreparedPlan::new(plan, &files, &engines)).await??;
        Ok(Prepared::Cells(Arc::new(prepared)))
    }

    /// Computes something apart from the session's loop: parsing a large sweep or building an endgame database takes a
    /// while, and leases are renewed meanwhile.
    async fn apart<T: Send + 'static>(
        &self,
        compute: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, SupplyError> {
        if self.inline {
            return Ok(compute());
        }
        tokio::task::spawn_blocking(compute).await.map_err(wrong)
    }

    async fn player_files(
        &self,
        work: &Work,
        players: Vec<v1::Body>,
    ) -> Result<BTreeMap<Digest, Bytes>, SupplyError> {
        let mut files = BTreeMap::new();
        for player in players {
            let bytes = self.body(work, player).await?;
            files.insert(Digest::of(&bytes), bytes);
        }
        Ok(files)
    }

    async fn task(
        &self,
        work: &Work,
        island: u32,
        epoch: u64,
        wire: v1::Task,
    ) -> Result<(EpochTask, Option<Bytes>), SupplyError> {
        let v1::Task { until, before, packets, checkpoint, .. } = wire;
        let mut task = EpochTask { island, epoch, until, state: None, packets: vec![] };
        // A checkpoint already contains state and immigrants.
        if let Some(checkpoint) = checkpoint {
            return Ok((task, Some(self.body(work, checkpoint).await?)));
        }
        if let Some(before) = before {
            task.state = Some(self.state(work, island, before).await?);
        }
        for v1::Packet { from, epoch, departure } in packets {
            let departure = departure.ok_or_else(|| wrong("expected a departure, found nothing"))?;
            task.packets.push(Packet { from, epoch, departure: self.body(work, departure).await? });
        }
        Ok((task, None))
    }

    /// The state at the end of an epoch, from the cache or fetched with the emigrants that its digest covers as well.
    async fn state(&self, work: &Work, island: u32, remains: v1::Remains) -> Result<Bytes, SupplyError> {
        let v1::Remains { digest, state_length, departure_length, inline } = remains;
        let digest = convert::digest("before.digest", &digest).map_err(wrong)?;
        let known =
            self.states.lock().unwrap_or_else(PoisonError::into_inner).get(&work.run, island, &digest);
        if let Some(known) = known {
            return Ok(known);
        }
        let bytes = match inline {
            Some(bytes) => bytes,
            None => self.fetch(work, &digest, state_length.saturating_add(departure_length)).await?,
        };
        let Some((state, departure)) = bytes.split_at_checked(state_length as usize) else {
            return Err(wrong(format!("expected a state of {state_length} bytes, found {}", bytes.len())));
        };
        check(&digest, left_digest(state, departure))?;
        Ok(bytes.slice(..state.len()))
    }

    async fn body(&self, work: &Work, body: v1::Body) -> Result<Bytes, SupplyError> {
        let digest = convert::digest("body.digest", &body.digest).map_err(wrong)?;
        let bytes = match body.inline {
            Some(bytes) => bytes,
            None => self.fetch(work, &digest, body.length).await?,
        };
        check(&digest, Digest::of(&bytes))?;
        Ok(bytes)
    }

    async fn fetch(&self, work: &Work, digest: &Digest, length: u64) -> Result<Bytes, SupplyError> {
        let request = v1::FetchRequest {
            worker: self.client.id(),
            piece: Some(work.into()),
            digest: convert::digest_bytes(digest),
        };
        let call = |client: Calls| {
            let request = request.clone();
            async move { client.fetch(request, length).await }
        };
        Ok(self.client.call(PATIENCE, call).await?)
    }
}

fn check(expected: &Digest, found: Digest) -> Result<(), SupplyError> {
    if found == *expected {
        return Ok(());
    }
    Err(wrong(format!("expected a body with the digest {expected}, found {found}")))
}

fn wrong(error: impl std::fmt::Display) -> SupplyError {
    SupplyError::Wrong(error.to_string())
}

impl Evolution {
    fn new(experiment: &Experiment) -> Self {
        let islands = experiment.setting().islands.len();
        Self {
            evolver: experiment.evolver(),
            checkpoint_every: experiment.checkpoint_every(),
            gauges: Arc::new(Gauges::new(islands)),
            memory: (0..islands as u32).map(|island| experiment.epoch_memory(island)).collect(),
        }
    }
}
