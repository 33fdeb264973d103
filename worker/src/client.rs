//! Calls to the coordinator: repeated until it answers, for as long as it is worth waiting.

use crate::backoff::Backoff;
use crate::credentials::{CredentialError, Trust, root_cause};
use crate::look::Look;
use proto::calls::WorkerCalls;
use proto::v1;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tonic::transport::Endpoint;
use tonic::{Code, Status};

/// How much of a body may be on its way.
const WINDOW: u32 = 4 << 20;

/// Who a worker is, and how it behaves towards its coordinator.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Different from all other workers'.
    pub id: String,
    /// For people.
    pub name: String,
    /// The version of the program.
    pub version: String,
    /// How long to wait for a coordinator that does not answer; for ever if not given.
    pub give_up_after: Option<Duration>,
    /// What the jitter of retries is drawn from.
    pub seed: u64,
    /// How to find out whether there can be a connection at all, if no call succeeds.
    pub look: Option<Look>,
}

/// Why a worker cannot go on.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// The coordinator did not answer for too long.
    #[error("the coordinator has not answered for {} s: {reason}", after.as_secs())]
    GaveUp {
        /// For how long.
        after: Duration,
        /// What the last try came to.
        reason: String,
    },
    /// The coordinator does not want this worker.
    #[error("the coordinator refuses this worker: {0}")]
    Refused(String),
    /// The coordinator does not know this worker's token.
    #[error("the coordinator refuses this worker's token: {0}")]
    Token(String),
    /// There will never be a connection.
    #[error("no connection with the coordinator: {0}")]
    Distrust(String),
    /// The coordinator does not want this call.
    #[error("the coordinator refuses the call: {0}")]
    Rejected(String),
}

/// The calls of a worker, over some transport.
pub(crate) type Calls = Arc<dyn WorkerCalls>;

/// An endpoint whose connections notice when the other side is gone, and trust nobody else.
pub fn endpoint(url: &str, trust: &Trust) -> Result<Endpoint, CredentialError> {
    let seconds = Duration::from_secs;
    if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
        let reason = "it begins with neither of them".to_owned();
        return Err(CredentialError::Url { url: url.to_owned(), reason });
    }
    let endpoint = Endpoint::from_shared(url.to_owned())
        .map_err(|error| CredentialError::Url { url: url.to_owned(), reason: root_cause(&error) })?;
    let endpoint = endpoint
        .connect_timeout(seconds(5))
        .tcp_nodelay(true)
        .http2_keep_alive_interval(seconds(5))
        .keep_alive_timeout(seconds(5))
        .keep_alive_while_idle(true)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(2 * WINDOW);
    trust.apply(endpoint, url)
}

/// When the coordinator was last heard of, at first that the worker began; and whether it ever was.
#[derive(Clone, Copy)]
struct Heard {
    last: Instant,
    ever: bool,
}

/// The coordinator, as a worker sees it. Clones share what they know.
#[derive(Clone)]
pub(crate) struct Client {
    calls: Calls,
    identity: Arc<Identity>,
    threads: u32,
    heard: Arc<Mutex<Heard>>,
}

impl Client {
    pub(crate) fn new(calls: Calls, identity: Identity, threads: usize) -> Self {
        let heard = Heard { last: Instant::now(), ever: false };
        Self {
            calls,
            identity: Arc::new(identity),
            threads: threads as u32,
            heard: Arc::new(Mutex::new(heard)),
        }
    }

    pub(crate) fn id(&self) -> String {
        self.identity.id.clone()
    }

    /// Introduces this worker; answers how long a lease lasts.
    pub(crate) async fn join(&self) -> Result<Duration, CallError> {
        let Identity { id, name, version, .. } = &*self.identity;
        let request = v1::JoinRequest {
            worker: id.clone(),
            name: name.clone(),
            version: version.clone(),
            semantics: experiment::SEMANTICS,
            threads: self.threads,
        };
        let join = |client: Calls| {
            let request = request.clone();
            async move { client.join(request).await }
        };
        let reply = Box::pin(self.call(Duration::from_secs(10), join)).await?;
        Ok(Duration::from_millis(reply.lease_milliseconds.max(10)))
    }

    /// Calls until there is an answer. A coordinator that does not know this worker is introduced to it first.
    pub(crate) async fn call<T, F, C>(&self, patience: Duration, call: C) -> Result<T, CallError>
    where
        F: Future<Output = Result<T, Status>>,
        C: Fn(Calls) -> F,
    {
        let mut backoff = Backoff::new(self.identity.seed);
        loop {
            let answer = tokio::time::timeout(patience, call(self.calls.clone())).await;
            let status = match answer {
                Ok(Ok(response)) => {
                    self.heard_now();
                    return Ok(response);
                }
                Ok(Err(status)) => status,
                Err(_) => Status::deadline_exceeded("it did not answer in time"),
            };
            match status.code() {
                Code::Aborted => {
                    self.heard_now();
                    tracing::info!("joining again");
                    Box::pin(self.join()).await?;
                }
                Code::Unauthenticated => return Err(CallError::Token(status.message().to_owned())),
                Code::PermissionDenied | Code::FailedPrecondition => {
                    return Err(CallError::Refused(status.message().to_owned()));
                }
                Code::InvalidArgument | Code::NotFound | Code::OutOfRange | Code::Unimplemented => {
                    return Err(CallError::Rejected(status.message().to_owned()));
                }
                _ => {
                    self.check_trust().await?;
                    self.check_patience(&status)?;
                }
            }
            tokio::time::sleep(backoff.next()).await;
        }
    }

    fn heard_now(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) =
            Heard { last: Instant::now(), ever: true };
    }

    fn heard(&self) -> Heard {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up at once if there will never be a connection. There has been none yet: certificates may be changed under
    /// way, and then one side has the new ones before the other.
    async fn check_trust(&self) -> Result<(), CallError> {
        let reason = match &self.identity.look {
            Some(look) if !self.heard().ever => look.distrust().await,
            _ => None,
        };
        reason.map_or(Ok(()), |reason| Err(CallError::Distrust(reason)))
    }

    fn check_patience(&self, status: &Status) -> Result<(), CallError> {
        let after = self.heard().last.elapsed();
        let reason = status.message().to_owned();
        tracing::debug!(reason, "the coordinator does not answer");
        match self.identity.give_up_after {
            Some(limit) if after >= limit => Err(CallError::GaveUp { after, reason }),
            _ => Ok(()),
        }
    }
}
