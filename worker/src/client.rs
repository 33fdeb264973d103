//! Calls to the coordinator, retried until it responds or the patience ends.

use crate::backoff::Backoff;
use crate::connection_probe::ConnectionProbe;
use crate::connector::CONNECTING;
use crate::credentials::{CredentialError, Trust, root_cause};
use bytes::Bytes;
use proto::calls::WorkerCalls;
use proto::v1;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Mutex as AsyncMutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tonic::transport::Endpoint;
use tonic::{Code, Status};

/// The longest time of one repeated delivery.
const AGAIN: Duration = Duration::from_mins(2);
/// How long a token that was accepted before may be rejected: new secrets reach machines at different times.
const ROTATION: Duration = Duration::from_mins(2);
/// How long a token that was never accepted may be rejected, if nothing else depends on it: long enough for the coordinator to
/// tell a worker from a stray call.
pub const REFUSED: Duration = Duration::from_secs(3);
/// The longest time of a join.
const JOINING: Duration = Duration::from_secs(10);
/// How long to wait at least before a new token or certificate is shown again.
const SHOWN_AGAIN: Duration = Duration::from_millis(100);
/// Bytes of a body that may be in flight.
const WINDOW: u32 = 4 << 20;

/// A worker's identity and its patience with the coordinator.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Different from all other workers'.
    pub id: String,
    /// The display name.
    pub name: String,
    /// The version of the program.
    pub version: String,
    /// How long to wait for a coordinator that does not respond; for ever if not given.
    pub give_up_after: Option<Duration>,
    /// The seed of the jitter of retries.
    pub seed: u64,
    /// How to find out whether there can be a connection at all, if no call succeeds.
    pub look: Option<ConnectionProbe>,
}

/// Why a worker cannot continue.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// The coordinator did not respond for too long.
    #[error("the coordinator has not responded for {} s: {reason}", after.as_secs())]
    GaveUp {
        /// For how long.
        after: Duration,
        /// The error of the last try.
        reason: String,
    },
    /// The coordinator rejects this worker.
    #[error("the coordinator rejects this worker: {0}")]
    Refused(String),
    /// The coordinator has other semantics, or cannot serve before an operator changes something.
    #[error("the coordinator cannot work with this worker: {0}")]
    Incompatible(String),
    /// The coordinator does not know this worker's token.
    #[error("the coordinator rejects this worker's token: {0}")]
    Token(String),
    /// A connection is impossible.
    #[error("no connection with the coordinator: {0}")]
    Distrust(String),
    /// The coordinator rejects this call.
    #[error("the coordinator rejects the call: {0}")]
    Rejected(String),
}

/// The calls of a worker, over some transport.
pub(crate) type Calls = Arc<dyn WorkerCalls>;

/// An endpoint whose connections notice when the other side is gone, and trust this authority alone.
pub fn endpoint(url: &str, trust: &Trust) -> Result<Endpoint, CredentialError> {
    let seconds = Duration::from_secs;
    if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
        let reason = "it begins with neither of them".to_owned();
        return Err(CredentialError::Url { url: url.to_owned(), reason });
    }
    let endpoint = Endpoint::from_shared(url.to_owned())
        .map_err(|error| CredentialError::Url { url: url.to_owned(), reason: root_cause(&error) })?;
    // What is no number would be taken for no port, and another one be called.
    let authority = endpoint.uri().authority().map_or("", |authority| authority.as_str());
    let names_port = authority.rsplit(['@', ']']).next().is_some_and(|host| host.contains(':'));
    if names_port && endpoint.uri().port_u16().is_none() {
        let reason = "its port is no number from 0 to 65535".to_owned();
        return Err(CredentialError::Url { url: url.to_owned(), reason });
    }
    let endpoint = endpoint
        .connect_timeout(CONNECTING)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(seconds(5))
        .keep_alive_timeout(seconds(5))
        .keep_alive_while_idle(true)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(2 * WINDOW);
    trust.apply(endpoint, url)
}

/// Deliveries that are not durable yet: they are repeated to another coordinator.
#[derive(Default)]
struct Undurable {
    /// The coordinator that these deliveries are numbered by, and what it calls the session.
    coordinator: Bytes,
    session: Bytes,
    /// How many sessions there have been.
    generation: u64,
    deliveries: BTreeMap<u64, Delivered>,
    bytes: usize,
}

/// One delivery, to be repeated.
#[derive(Clone, Debug)]
pub(crate) struct Delivered {
    pub(crate) head: v1::CompleteHead,
    pub(crate) bodies: Vec<Bytes>,
}

impl Delivered {
    fn len(&self) -> usize {
        self.bodies.iter().map(Bytes::len).sum()
    }
}

/// When the coordinator last responded (at first, the start of the worker), and whether it ever did.
#[derive(Clone, Copy)]
struct Heard {
    last: Instant,
    ever: bool,
    /// The last minute of silence that was logged.
    told: Option<u64>,
}

/// The coordinator, as a worker sees it. Clones share what they know.
#[derive(Clone)]
pub(crate) struct Client {
    calls: Arc<RwLock<Calls>>,
    identity: Arc<Identity>,
    threads: u32,
    heard: Arc<Mutex<Heard>>,
    undurable: Arc<Mutex<Undurable>>,
    /// The most bytes of deliveries that are kept until they are durable.
    most_undurable: usize,
    /// Held while results that another coordinator had are delivered again: no other call comes before.
    joining: Arc<AsyncMutex<()>>,
    /// Wakes when a call has failed: a new token or certificate may be what is missing.
    failed: Arc<Notify>,
}

impl Client {
    pub(crate) fn new(calls: Calls, identity: Identity, threads: usize, most_undurable: usize) -> Self {
        let heard = Heard { last: Instant::now(), ever: false, told: None };
        Self {
            calls: Arc::new(RwLock::new(calls)),
            identity: Arc::new(identity),
            threads: threads as u32,
            heard: Arc::new(Mutex::new(heard)),
            undurable: Arc::default(),
            most_undurable,
            joining: Arc::default(),
            failed: Arc::default(),
        }
    }

    fn calls(&self) -> Calls {
        self.calls.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes all further calls over these.
    pub(crate) fn replace(&self, calls: Calls) {
        *self.calls.write().unwrap_or_else(PoisonError::into_inner) = calls;
    }

    /// Makes all further calls over these, which show another token or certificate, once the coordinator accepts that. Calls
    /// under way end as they began, and until it is accepted others go the old way too: both sides learn of new secrets at
    /// different times, and no call fails because of that.
    pub(crate) async fn change_over(&self, calls: Calls) {
        let mut backoff = Backoff::new(self.identity.seed);
        let mut known = String::new();
        loop {
            let joined = tokio::time::timeout(JOINING, calls.join(self.introduction())).await;
            let reason = match joined {
                Ok(Ok(reply)) => {
                    let _joining = self.joining.lock().await;
                    self.replace(calls);
                    tracing::info!("token or certificates were replaced");
                    // The next call reports failures from here on, too.
                    let _ = self.enter(reply).await;
                    return;
                }
                Ok(Err(status)) => status.message().to_owned(),
                Err(_) => "it did not respond in time".to_owned(),
            };
            if reason != known {
                tracing::warn!(
                    reason,
                    "the new token or certificates are not accepted yet; the old ones stay in use"
                );
            }
            known = reason;
            let _ = tokio::time::timeout(backoff.next() * 4, self.failed.notified()).await;
            tokio::time::sleep(SHOWN_AGAIN).await;
        }
    }

    pub(crate) fn id(&self) -> String {
        self.identity.id.clone()
    }

    fn undurable(&self) -> MutexGuard<'_, Undurable> {
        self.undurable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many coordinators there have been: numbers of deliveries belong to one of them.
    pub(crate) fn generation(&self) -> u64 {
        self.undurable().generation
    }

    /// Keeps a delivery until it is durable. The oldest are given up if there are too many: they are computed again if the
    /// coordinator is lost.
    pub(crate) fn keep(&self, generation: u64, number: u64, delivered: Delivered) {
        let mut undurable = self.undurable();
        if number == 0 || generation != undurable.generation {
            return;
        }
        undurable.bytes += delivered.len();
        if let Some(replaced) = undurable.deliveries.insert(number, delivered) {
            undurable.bytes -= replaced.len();
        }
        while undurable.bytes > self.most_undurable {
            let Some((_, oldest)) = undurable.deliveries.pop_first() else { break };
            undurable.bytes -= oldest.len();
        }
    }

    /// Forgets the deliveries that are durable.
    pub(crate) fn durable(&self, generation: u64, number: u64) {
        let mut undurable = self.undurable();
        while generation == undurable.generation
            && let Some(first) = undurable.deliveries.first_entry().filter(|first| *first.key() <= number)
        {
            let bytes = first.remove().len();
            undurable.bytes -= bytes;
        }
    }

    /// Joins the coordinator, and delivers again what another one had that was not durable.
    pub(crate) async fn join(&self) -> Result<Duration, CallError> {
        let _joining = self.joining.lock().await;
        let reply = self.introduce().await?;
        self.enter(reply).await
    }

    /// Begins or continues a session. A new session numbers deliveries from 0, and what was not durable is delivered again.
    async fn enter(&self, mut reply: v1::JoinReply) -> Result<Duration, CallError> {
        loop {
            let again = {
                let mut undurable = self.undurable();
                if (&undurable.coordinator, &undurable.session) == (&reply.coordinator, &reply.session) {
                    BTreeMap::new()
                } else {
                    undurable.coordinator = reply.coordinator.clone();
                    undurable.session = reply.session.clone();
                    undurable.generation += 1;
                    undurable.bytes = 0;
                    std::mem::take(&mut undurable.deliveries)
                }
            };
            if self.deliver_again(again).await {
                return Ok(Duration::from_millis(reply.renew_milliseconds.max(10)));
            }
            reply = self.introduce().await?;
        }
    }

    /// Delivers again, in the same order: later ones build on earlier ones. Returns whether the coordinator stayed.
    async fn deliver_again(&self, deliveries: BTreeMap<u64, Delivered>) -> bool {
        if !deliveries.is_empty() {
            tracing::info!(deliveries = deliveries.len(), "delivering again what was not durable");
        }
        let generation = self.generation();
        let mut deliveries = deliveries.into_values();
        while let Some(delivered) = deliveries.next() {
            let Delivered { mut head, bodies } = delivered.clone();
            head.slots = 0;
            match tokio::time::timeout(AGAIN, self.calls().complete(head, bodies)).await {
                Ok(Ok(reply)) => self.keep(generation, reply.delivery, delivered),
                Ok(Err(status)) if !is_transient(&status) => {
                    tracing::warn!(reason = status.message(), "not accepted again");
                }
                _ => {
                    // This coordinator is gone, too: the next one gets all of them.
                    let mut undurable = self.undurable();
                    undurable.coordinator = Bytes::new();
                    let mut number = undurable.deliveries.last_key_value().map_or(0, |(last, _)| *last);
                    for delivered in std::iter::once(delivered).chain(deliveries) {
                        number += 1;
                        undurable.bytes += delivered.len();
                        undurable.deliveries.insert(number, delivered);
                    }
                    return false;
                }
            }
        }
        true
    }

    fn introduction(&self) -> v1::JoinRequest {
        let Identity { id, name, version, .. } = &*self.identity;
        v1::JoinRequest {
            worker: id.clone(),
            name: name.clone(),
            version: version.clone(),
            semantics: experiment::SEMANTICS,
            threads: self.threads,
            session: self.undurable().session.clone(),
        }
    }

    async fn introduce(&self) -> Result<v1::JoinReply, CallError> {
        let request = self.introduction();
        let join = |client: Calls| {
            let request = request.clone();
            async move { client.join(request).await }
        };
        Box::pin(self.try_call(JOINING, join, false)).await
    }

    /// Calls until there is an answer. A coordinator that does not know this worker is joined first.
    pub(crate) async fn call<T, F, C>(&self, patience: Duration, call: C) -> Result<T, CallError>
    where
        F: Future<Output = Result<T, Status>>,
        C: Fn(Calls) -> F,
    {
        self.try_call(patience, call, true).await
    }

    async fn try_call<T, F, C>(&self, patience: Duration, call: C, joins: bool) -> Result<T, CallError>
    where
        F: Future<Output = Result<T, Status>>,
        C: Fn(Calls) -> F,
    {
        let mut backoff = Backoff::new(self.identity.seed);
        let mut refused: Option<(Instant, String)> = None;
        let mut distrusted: Option<(Instant, String)> = None;
        loop {
            if joins {
                drop(self.joining.lock().await);
            }
            let answer = tokio::time::timeout(patience, call(self.calls())).await;
            let status = match answer {
                Ok(Ok(response)) => {
                    self.heard_now();
                    return Ok(response);
                }
                Ok(Err(status)) => status,
                Err(_) => Status::deadline_exceeded("it did not respond in time"),
            };
            match status.code() {
                Code::Aborted if joins => {
                    self.heard_now();
                    tracing::info!("joining again");
                    Box::pin(self.join()).await?;
                }
                // Tokens may be changed under way, and then one side has the new one before the other.
                Code::Unauthenticated if self.was_heard_within(ROTATION) => {
                    self.failed.notify_one();
                    tracing::warn!(reason = status.message(), "token rejected; retrying");
                }
                Code::Unauthenticated => {
                    let reason = || (Instant::now(), status.message().to_owned());
                    let (since, reason) = refused.get_or_insert_with(reason);
                    if since.elapsed() >= self.patience_with_refusals() {
                        return Err(CallError::Token(reason.clone()));
                    }
                    tracing::warn!(reason, "token rejected; retrying");
                }
                Code::PermissionDenied => return Err(CallError::Refused(status.message().to_owned())),
                Code::FailedPrecondition => {
                    return Err(CallError::Incompatible(status.message().to_owned()));
                }
                Code::InvalidArgument | Code::NotFound | Code::OutOfRange | Code::Unimplemented => {
                    return Err(CallError::Rejected(status.message().to_owned()));
                }
                _ => {
                    // A coordinator that has refused its workers ends.
                    if let Some((_, reason)) = refused {
                        return Err(CallError::Token(reason));
                    }
                    self.failed.notify_one();
                    match self.distrust().await {
                        Some(reason) => {
                            let (since, reason) = distrusted.get_or_insert_with(|| (Instant::now(), reason));
                            // A batch ends with its coordinator, which has to see that this is no stranger.
                            if self.identity.give_up_after.is_none()
                                || since.elapsed() >= self.patience_with_refusals()
                            {
                                return Err(CallError::Distrust(reason.clone()));
                            }
                        }
                        // A coordinator that none of its workers trusts ends, too.
                        None => {
                            if let Some((_, reason)) = distrusted {
                                return Err(CallError::Distrust(reason));
                            }
                        }
                    }
                    self.check_patience(&status)?;
                }
            }
            tokio::time::sleep(backoff.next()).await;
        }
    }

    /// How long a token or a certificate may be refused that was never accepted. A worker of a batch whose exit ends it may have
    /// been started with a new one before the coordinator has it. If the coordinator has no other workers, it ends sooner, and
    /// this worker with it.
    fn patience_with_refusals(&self) -> Duration {
        self.identity.give_up_after.map_or(REFUSED, |longest| longest.clamp(REFUSED, ROTATION))
    }

    fn heard_now(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) =
            Heard { last: Instant::now(), ever: true, told: None };
    }

    fn heard(&self) -> Heard {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a call was answered not long ago.
    fn was_heard_within(&self, time: Duration) -> bool {
        let heard = self.heard();
        heard.ever && heard.last.elapsed() < time
    }

    /// Why a connection is impossible. Asked only before the first connection: when certificates are rotated later, one side has
    /// the new ones before the other.
    async fn distrust(&self) -> Option<String> {
        match &self.identity.look {
            Some(look) if !self.heard().ever => look.distrust().await,
            _ => None,
        }
    }

    fn check_patience(&self, status: &Status) -> Result<(), CallError> {
        let after = self.heard().last.elapsed();
        let reason = explained(status);
        // Logged the first time, and then every minute: so the log shows what the worker waits for.
        let minute = after.as_secs() / 60;
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.told.is_none_or(|told| told < minute) {
            heard.told = Some(minute);
            let seconds = after.as_secs();
            let coordinator = self.identity.look.as_ref().map(ConnectionProbe::address).unwrap_or_default();
            tracing::warn!(coordinator, reason, seconds, "the coordinator does not respond; trying again");
        }
        drop(heard);
        match self.identity.give_up_after {
            Some(limit) if after >= limit => Err(CallError::GaveUp { after, reason }),
            _ => Ok(()),
        }
    }
}

/// Why a call has failed, with the cause: refused, unreachable, or a name that is not found.
fn explained(status: &Status) -> String {
    let (message, cause) = (status.message(), root_cause(status));
    match std::error::Error::source(status) {
        Some(_) if !message.contains(&cause) => format!("{message}: {cause}"),
        _ => message.to_owned(),
    }
}

/// Whether a call may succeed when it is repeated, perhaps after joining again.
fn is_transient(status: &Status) -> bool {
    !matches!(
        status.code(),
        Code::Unauthenticated
            | Code::PermissionDenied
            | Code::FailedPrecondition
            | Code::InvalidArgument
            | Code::NotFound
            | Code::OutOfRange
            | Code::Unimplemented
    )
}
