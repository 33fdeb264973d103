//! What workers call, as gRPC: messages are checked and put together here, and everything else is the office's.

use crate::bell::{Bell, Listener};
use crate::cells::{self, Kept};
use crate::epochs::Fate;
use crate::members::MemberError;
use crate::office::{Delivery, Instruction, Moment, Office, Refusal, Renewal};
use crate::plan::PlanError;
use bytes::Bytes;
use evolution::codec::MAX_ENCODED;
use evolution::epoch::outcome_digest;
use proto::chunks::{self, Assembly, ChunkError};
use proto::convert::{self, WireError, Work};
use proto::v1;
use proto::v1::complete_reply::Fate as WireFate;
use proto::v1::worker_server::Worker;
use run::Pruning;
use run::RunError;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use store::{Claim, Store};
use tokio::sync::{Mutex, MutexGuard, Notify, OwnedSemaphorePermit, Semaphore, SetOnce, watch};
use tokio::time::Instant;
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

/// The longest that a call waits for something to happen.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// How often a worker that waits is looked at again: what others have had for long is repeated without a call.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The most pieces of one call.
const MOST_PIECES: usize = 4096;
/// The largest body: what an epoch leaves behind is two encoded values and a few statistics.
const LARGEST_BODY: u64 = 2 * MAX_ENCODED as u64 + (16 << 20);

/// How long a call waits for what it brought to be written, if it has to be at once. It is written later then.
const WRITING: Duration = Duration::from_secs(5);
/// How long to wait with what the store could not write.
const WRITE_AGAIN: Duration = Duration::from_secs(1);

/// The office's front: one caller at a time, and bells that ring when something has changed. Callers who come before
/// the office is open wait until it is: a connection that is answered is not given up.
#[derive(Clone)]
pub(crate) struct Desk {
    office: Arc<SetOnce<Mutex<Office>>>,
    /// Rings at every change.
    bell: Bell,
    /// Rings when there may be work.
    work: Bell,
    /// Rings when something has been written, or could not be.
    written: Bell,
    /// Wakes whoever writes, and whoever deletes.
    pen: Arc<Notify>,
    broom: Arc<Notify>,
    /// Only one writes at a time.
    writing: Arc<Mutex<()>>,
    closing: watch::Receiver<bool>,
    clock: Clock,
    /// Room for large bodies that are on their way, in KiB.
    room: Arc<Semaphore>,
}

/// What time it is.
#[derive(Clone)]
pub(crate) struct Clock {
    start: Instant,
    unix: fn() -> u64,
}

impl Clock {
    pub(crate) fn new(unix: fn() -> u64) -> Self {
        Self { start: Instant::now(), unix }
    }

    pub(crate) fn now(&self) -> Moment {
        Moment { elapsed: self.start.elapsed(), unix: (self.unix)() }
    }
}

impl Desk {
    /// A desk whose office is not open yet.
    pub(crate) fn new(clock: Clock, closing: watch::Receiver<bool>) -> Self {
        let room = Arc::new(Semaphore::new(((2 * LARGEST_BODY) >> 10) as usize));
        Self {
            office: Arc::default(),
            bell: Bell::new(),
            work: Bell::new(),
            written: Bell::new(),
            pen: Arc::default(),
            broom: Arc::default(),
            writing: Arc::default(),
            closing,
            clock,
            room,
        }
    }

    /// Opens the office.
    pub(crate) fn open(&self, office: Office) {
        assert!(self.office.set(Mutex::new(office)).is_ok(), "an office is opened once");
    }

    pub(crate) fn is_open(&self) -> bool {
        self.office.initialized()
    }

    pub(crate) async fn office(&self) -> MutexGuard<'_, Office> {
        self.office.wait().await.lock().await
    }

    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }

    pub(crate) fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }

    /// Says that something has changed: to those who watch, to workers if there may be work, and to whoever writes.
    pub(crate) fn changed(&self, office: &Office) {
        self.bell.ring();
        if office.has_work() || office.is_done() {
            self.work.ring();
        }
        self.pen.notify_one();
    }

    /// Says that something may have become due.
    pub(crate) fn time_to_write(&self) {
        self.pen.notify_one();
        self.broom.notify_one();
    }

    /// Writes whatever is due, for ever.
    pub(crate) async fn write_on(&self) {
        loop {
            self.pen.notified().await;
            while let Some(all) = self.write().await {
                if !all {
                    tokio::time::sleep(WRITE_AGAIN).await;
                }
            }
        }
    }

    /// Writes everything that is not written yet, as far as the store takes it.
    pub(crate) async fn write_everything(&self) {
        self.office().await.hurry_all();
        while self.write().await == Some(true) {}
    }

    /// Writes what is due. Answers whether it was all written, if there was something.
    async fn write(&self) -> Option<bool> {
        let _alone = self.writing.lock().await;
        let turn = self.office().await.turn()?;
        let written = turn.write().await;
        let mut office = self.office().await;
        let active = office.plan.active();
        let all = office.settle_turn(written, self.now()).await;
        self.changed_if_other(&office, &active);
        drop(office);
        self.written.ring();
        self.broom.notify_one();
        Some(all)
    }

    fn changed_if_other(&self, office: &Office, active: &[String]) {
        if office.plan.active() != active {
            self.changed(office);
        }
    }

    /// Deletes what nobody needs any more, for ever.
    pub(crate) async fn prune_on(&self) {
        loop {
            self.broom.notified().await;
            while let Some((run, pruning, store, claim)) = self.next_pruning().await {
                let pruned = pruning.delete(&store, Some(&claim)).await;
                let failed = pruned.is_err();
                let mut office = self.office().await;
                let active = office.plan.active();
                office.settle_pruning((run, pruning), pruned, self.now()).await;
                self.changed_if_other(&office, &active);
                drop(office);
                if failed {
                    tokio::time::sleep(WRITE_AGAIN).await;
                }
            }
        }
    }

    async fn next_pruning(&self) -> Option<(String, Pruning, Store, Claim)> {
        let mut office = self.office().await;
        let (run, pruning) = office.pruning()?;
        Some((run, pruning, office.store.clone(), office.claim.clone()))
    }

    /// Waits until what came with some work is written, if it has to be at once. A store that does not answer holds up
    /// nobody for long.
    async fn until_written<'a>(
        &'a self,
        work: &Work,
        mut office: MutexGuard<'a, Office>,
    ) -> Result<(), Status> {
        let deadline = Instant::now() + WRITING;
        let mut written = self.written.listen();
        while office.is_urgent(work) && Instant::now() < deadline {
            written.catch_up();
            drop(office);
            self.pen.notify_one();
            self.wait(&mut written, deadline).await?;
            office = self.office().await;
            if office.succeeded {
                return Err(Refusal::Succeeded.into());
            }
        }
        Ok(())
    }

    pub(crate) fn version(&self) -> u64 {
        self.bell.count()
    }

    pub(crate) fn bell(&self) -> Listener {
        self.bell.listen()
    }

    /// Waits until something has changed, or for so long. An error if the coordinator goes away.
    pub(crate) async fn wait(&self, bell: &mut Listener, until: Instant) -> Result<(), Status> {
        let mut closing = self.closing.clone();
        tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => Err(Status::unavailable("the coordinator is going away")),
            () = bell.rung() => Ok(()),
            () = tokio::time::sleep_until(until) => Ok(()),
        }
    }
}

/// When a call that may wait has to answer.
pub(crate) fn deadline(wait_milliseconds: u64) -> Instant {
    Instant::now() + Duration::from_millis(wait_milliseconds).min(LONGEST_WAIT)
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        let text = refusal.to_string();
        match refusal {
            // It should begin again: join, and then repeat what it asked.
            Refusal::Member(MemberError::Unknown(_)) => Self::aborted(text),
            Refusal::Plan(PlanError::Unknown(_))
            | Refusal::NotOut(_)
            | Refusal::Over(_)
            | Refusal::Keep(RunError::Unknown { .. }) => Self::not_found(text),
            Refusal::Member(MemberError::Aside { .. }) | Refusal::Corrupt(_) => Self::permission_denied(text),
            Refusal::Member(MemberError::TooMany) | Refusal::TooMany { .. } => Self::resource_exhausted(text),
            Refusal::Member(MemberError::Semantics { .. }) | Refusal::Plan(PlanError::Ended(_)) => {
                Self::failed_precondition(text)
            }
            Refusal::Member(MemberError::Name(_))
            | Refusal::Wire(_)
            | Refusal::Codec(_)
            | Refusal::Report(_)
            | Refusal::Player(_)
            | Refusal::Name(_) => Self::invalid_argument(text),
            Refusal::Succeeded => Self::unavailable(text),
            Refusal::Keep(RunError::Write(error)) if error.may_pass() => Self::unavailable(text),
            Refusal::Keep(_) => Self::internal(text),
        }
    }
}

fn invalid(error: WireError) -> Status {
    Refusal::from(error).into()
}

fn broken(error: &ChunkError) -> Status {
    Status::invalid_argument(error.to_string())
}

/// A body that has come, and the room that it takes until it is dropped.
struct Arrived {
    bytes: Bytes,
    _room: Vec<OwnedSemaphorePermit>,
}

/// Puts the chunks of a call together.
async fn assemble<T>(
    stream: &mut Streaming<T>,
    length: u64,
    room: &Arc<Semaphore>,
    chunk: impl Fn(T) -> Option<v1::Chunk>,
) -> Result<Arrived, Status> {
    let mut assembly = Assembly::new(length, LARGEST_BODY).map_err(|error| broken(&error))?;
    let mut taken = vec![];
    while let Some(part) = stream.message().await? {
        let chunk =
            chunk(part).ok_or_else(|| Status::invalid_argument("expected a chunk, found another part"))?;
        if length > chunks::CHUNK as u64 {
            let size = chunk.bytes.len().div_ceil(1 << 10) as u32;
            let more = room.clone().try_acquire_many_owned(size);
            taken.push(
                more.map_err(|_| Status::resource_exhausted("too much is delivered at once: try again"))?,
            );
        }
        assembly.add(chunk).map_err(|error| broken(&error))?;
    }
    Ok(Arrived { bytes: assembly.finish().map_err(|error| broken(&error))?, _room: taken })
}

fn no_head() -> Status {
    Status::invalid_argument("expected a head as the first part, found something else")
}

#[tonic::async_trait]
impl Worker for Desk {
    async fn join(&self, request: Request<v1::JoinRequest>) -> Result<Response<v1::JoinReply>, Status> {
        let mut office = self.office().await;
        let reply = office.join(request.get_ref(), self.now())?;
        self.changed(&office);
        Ok(Response::new(reply))
    }

    async fn acquire(
        &self,
        request: Request<v1::AcquireRequest>,
    ) -> Result<Response<v1::AcquireReply>, Status> {
        let v1::AcquireRequest { worker, slots, holding, wait_milliseconds } = request.into_inner();
        if holding.len() > MOST_PIECES {
            return Err(Status::invalid_argument(format!(
                "expected at most {MOST_PIECES} pieces, found more"
            )));
        }
        let holding = holding.into_iter().map(Work::try_from).collect::<Result<BTreeSet<Work>, _>>();
        let holding = holding.map_err(invalid)?;
        let slots = slots.min(MOST_PIECES as u32);
        let deadline = deadline(wait_milliseconds);
        let mut bell = self.work.listen();
        loop {
            bell.catch_up();
            let (grants, done) = {
                let mut office = self.office().await;
                let grants = office.acquire(&worker, slots, &holding, self.now())?;
                (grants, office.is_done())
            };
            if !grants.is_empty() || done || slots == 0 || Instant::now() >= deadline {
                let done = done && grants.is_empty();
                return Ok(Response::new(v1::AcquireReply { grants, done }));
            }
            self.wait(&mut bell, deadline.min(Instant::now() + LOOK_AGAIN)).await?;
        }
    }

    async fn plan(&self, request: Request<v1::PlanRequest>) -> Result<Response<v1::PlanReply>, Status> {
        let v1::PlanRequest { worker, run } = request.into_inner();
        let (text, players) = self.office().await.text(&worker, &run, self.now())?;
        let players = players.values().map(|bytes| convert::body(bytes, false)).collect();
        Ok(Response::new(v1::PlanReply { text, players }))
    }

    type FetchStream = Pin<Box<dyn Stream<Item = Result<v1::Chunk, Status>> + Send>>;

    async fn fetch(&self, request: Request<v1::FetchRequest>) -> Result<Response<Self::FetchStream>, Status> {
        let v1::FetchRequest { worker, piece, digest } = request.into_inner();
        let work = convert::work(piece).map_err(invalid)?;
        let digest = convert::digest("digest", &digest).map_err(invalid)?;
        let body = self.office().await.body(&worker, &work, &digest, self.now())?;
        Ok(Response::new(Box::pin(tokio_stream::iter(chunks::cut(&body).map(Ok)))))
    }

    async fn renew(&self, request: Request<v1::RenewRequest>) -> Result<Response<v1::RenewReply>, Status> {
        let v1::RenewRequest { worker, renewals } = request.into_inner();
        if renewals.len() > MOST_PIECES {
            return Err(Status::invalid_argument(format!(
                "expected at most {MOST_PIECES} pieces, found more"
            )));
        }
        let renewals = renewals.into_iter().map(renewal).collect::<Result<Vec<_>, _>>().map_err(invalid)?;
        let mut reply = v1::RenewReply::default();
        let mut office = self.office().await;
        // A worker that holds nothing still says that it is there.
        office.members.see(&worker, self.now().elapsed).map_err(Refusal::from)?;
        for renewal in renewals {
            match office.renew(&worker, &renewal, self.now())? {
                Instruction::GoOn => {}
                Instruction::HandBack => reply.hand_back.push(renewal.token),
                Instruction::Stop => reply.lost.push(renewal.token),
            }
        }
        self.changed(&office);
        Ok(Response::new(reply))
    }

    async fn checkpoint(
        &self,
        request: Request<Streaming<v1::CheckpointPart>>,
    ) -> Result<Response<v1::CheckpointReply>, Status> {
        use v1::checkpoint_part::Part;
        let mut stream = request.into_inner();
        let Some(Part::Head(head)) = stream.message().await?.and_then(|part| part.part) else {
            return Err(no_head());
        };
        let work = convert::work(head.piece).map_err(invalid)?;
        let inputs = convert::digest("inputs", &head.inputs).map_err(invalid)?;
        let standing = convert::standing(head.standing).map_err(invalid)?;
        let chunk = |part: v1::CheckpointPart| match part.part {
            Some(Part::Chunk(chunk)) => Some(chunk),
            _ => None,
        };
        let arrived = assemble(&mut stream, head.length, &self.room, chunk).await?;
        let mut office = self.office().await;
        office.checkpoint(&head.worker, &work, &inputs, standing, arrived.bytes, self.now())?;
        self.changed(&office);
        self.until_written(&work, office).await?;
        Ok(Response::new(v1::CheckpointReply {}))
    }

    async fn complete(
        &self,
        request: Request<Streaming<v1::CompletePart>>,
    ) -> Result<Response<v1::CompleteReply>, Status> {
        use v1::complete_head::What;
        use v1::complete_part::Part;
        let mut stream = request.into_inner();
        let Some(Part::Head(head)) = stream.message().await?.and_then(|part| part.part) else {
            return Err(no_head());
        };
        let v1::CompleteHead { worker, piece, milliseconds, what, slots } = head;
        let work = convert::work(piece).map_err(invalid)?;
        let chunk = |part: v1::CompletePart| match part.part {
            Some(Part::Chunk(chunk)) => Some(chunk),
            _ => None,
        };
        let what = what.ok_or_else(|| invalid(WireError::Missing("head.what")))?;
        let arrived = assemble(&mut stream, length_of(&what)?, &self.room, chunk).await?;
        let (mut office, fate) = match what {
            What::Epoch(epoch) => {
                let delivery = deliver(&epoch, &arrived.bytes)?;
                let mut office = self.office().await;
                let fate = office.complete_epoch(&worker, &work, delivery, milliseconds, self.now())?;
                (office, fate)
            }
            What::Cells(_) => {
                let results = cells::decode_results(&arrived.bytes).map_err(Refusal::from)?;
                let archive = self.office().await.archive(&worker, &work, self.now())?;
                let kept = match archive {
                    Some(archive) => archive.keep(results).await,
                    None => Kept::default(),
                };
                let mut office = self.office().await;
                let fate = office.complete_cells(&worker, &work, kept, self.now()).await?;
                (office, fate)
            }
        };
        let grants = office.more(&worker, slots.min(MOST_PIECES as u32), self.now());
        self.changed(&office);
        // Whoever dies while this is written has the next piece already: it is lost with the lease, and not forgotten.
        self.until_written(&work, office).await?;
        let fate = match fate {
            Fate::Accepted => WireFate::Accepted,
            Fate::Repeated => WireFate::Repeated,
            Fate::Unneeded => WireFate::Unneeded,
        };
        Ok(Response::new(v1::CompleteReply { fate: fate.into(), grants }))
    }

    async fn release(
        &self,
        request: Request<v1::ReleaseRequest>,
    ) -> Result<Response<v1::ReleaseReply>, Status> {
        let v1::ReleaseRequest { worker, piece, failure, token } = request.into_inner();
        let work = convert::work(piece).map_err(invalid)?;
        let mut office = self.office().await;
        office.release(&worker, (&work, token), &failure, self.now()).await?;
        self.changed(&office);
        Ok(Response::new(v1::ReleaseReply {}))
    }

    async fn leave(&self, request: Request<v1::LeaveRequest>) -> Result<Response<v1::LeaveReply>, Status> {
        let v1::LeaveRequest { worker, reason } = request.into_inner();
        let mut office = self.office().await;
        office.leave(&worker, &reason);
        self.changed(&office);
        Ok(Response::new(v1::LeaveReply {}))
    }
}

fn renewal(wire: v1::Renewal) -> Result<Renewal, WireError> {
    let v1::Renewal { piece, inputs, standing, progress, token } = wire;
    Ok(Renewal {
        work: convert::work(piece)?,
        token,
        inputs: convert::digest("inputs", &inputs).ok(),
        standing: standing.map(|standing| convert::standing(Some(standing))).transpose()?,
        progress,
    })
}

/// How many bytes follow a head.
fn length_of(what: &v1::complete_head::What) -> Result<u64, Status> {
    let lengths = match what {
        v1::complete_head::What::Epoch(epoch) => {
            [epoch.state_length, epoch.departure_length, epoch.statistics_length]
        }
        v1::complete_head::What::Cells(cells) => [cells.length, 0, 0],
    };
    let sum = lengths.iter().try_fold(0u64, |sum, length| sum.checked_add(*length));
    sum.ok_or_else(|| broken(&ChunkError::TooLarge { limit: LARGEST_BODY, announced: u64::MAX }))
}

/// An epoch as it was delivered, from its head and its bytes.
fn deliver(epoch: &v1::EpochResult, body: &Bytes) -> Result<Delivery, Status> {
    let (state, departure) = (epoch.state_length as usize, epoch.departure_length as usize);
    let (state, rest) = (body.slice(..state), body.slice(state..));
    let (departure, statistics) = (rest.slice(..departure), rest.slice(departure..));
    Ok(Delivery {
        inputs: convert::digest("inputs", &epoch.inputs).map_err(invalid)?,
        reported: convert::digest("digest", &epoch.digest).map_err(invalid)?,
        digest: outcome_digest(&state, &departure),
        standing: convert::standing(epoch.standing).map_err(invalid)?,
        state,
        departure,
        statistics,
    })
}
