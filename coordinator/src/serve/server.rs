//! The coordinator as a server: from its listeners to its last word.

use super::connection_slots::ConnectionLimits;
use super::connections::{HEAD, OPENING, connections, serve_http};
use super::ending::{TAKEN_OVER, abandoned, all_done, is_over, is_taken_over, stay_refused};
use super::http;
use super::in_flight::CountLayer;
use super::notify::Notifier;
use super::opening::{OpenStore, Opened, open, open_store, opened};
use super::operator_api::OperatorApi;
use super::permissions::{LivePermissions, PermissionInterceptor, Permissions, RateLimit, Refusals, Right};
use super::standby;
use super::tls::{LiveTls, Tls};
use super::traces::{Exporter, Traces};
use super::worker_api::{ServedCluster, WorkerApi};
use crate::cluster::{Clock, Cluster};
use crate::dashboard::{AccessCheck, Dashboard, DashboardSettings, Web};
use crate::rejection::Rejection;
use crate::state::leases::Terms;
use crate::state::{AuditTerms, Unfinished};
use bytes::Bytes;
use futures::future::BoxFuture;
use proto::v1::RunStatus;
use proto::v1::operator_server::OperatorServer;
use proto::v1::run_status::State;
use proto::v1::worker_server::WorkerServer;
use proto::{MAX_MESSAGE, MAX_SUBMISSION};
use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use store::promises::{BrokenPromise, Trial};
use store::{Batch, Nonce, Store, StoreError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_stream::Stream;
use tonic::server::NamedService;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::transport::server::{Connected, Router};
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tower::layer::util::{Identity, Stack};

/// How long open calls may take to end. Waiting calls are ended; a silent connection is not waited for.
const CLOSING: Duration = Duration::from_secs(2);
/// How often to look whether another coordinator has begun.
const LOOK_FOR_SUCCESSORS: Duration = Duration::from_secs(2);
/// How long the store may take to write what is not written yet. What it does not take is computed again.
const WRITING_UP: Duration = Duration::from_secs(5);
/// How often the progress of active runs is logged.
const PROGRESS: Duration = Duration::from_mins(1);
/// How long one call may take, the longest wait included.
const LONGEST_CALL: Duration = Duration::from_mins(5);
/// How much of a body may be on its way: a megabyte or so is needed to fill a connection.
const WINDOW: u32 = 4 << 20;
/// How much of a body travels in one piece: frames of the usual 16 KiB cost more than what is in them.
const LARGEST_FRAME: u32 = 1 << 20;
/// The most calls of one connection at a time.
const MOST_STREAMS: u32 = 256;
/// The largest headers of a call.
const LARGEST_HEADERS: u32 = 16 << 10;

/// The settings of a coordinator at its start.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct CoordinatorSettings {
    /// What leases are like.
    pub terms: Terms,
    /// A nonce that identifies this coordinator.
    pub nonce: Nonce,
    /// The version of the program.
    pub version: String,
    /// Whether workers are ended once all runs have ended.
    pub exit_when_done: bool,
    /// The most runs at a time.
    pub max_runs: usize,
    /// Whether only what is submitted is computed, also if it is paused: the coordinator of a single command. Other runs of
    /// the store stay as they are.
    pub only_submitted: bool,
    /// What to begin with, or to continue.
    pub first: Option<First>,
    /// Whether that is continued although it has failed or was cancelled.
    pub revive: bool,
    /// The id of the batch that this coordinator belongs to, which is that of its predecessors and successors there; empty for
    /// none.
    pub batch: String,
    /// Where other coordinators find this one, as `HOST:PORT`; empty if nowhere.
    pub address: String,
    /// If it stands by: how long the owner of the store must be silent before this one takes over.
    pub takeover_after: Option<Duration>,
    /// If it ends with its runs: how long it waits without a worker; for ever if not given.
    pub give_up_after: Option<Duration>,
    /// How thoroughly the store is tried out first, if at all.
    pub trial: Option<Trial>,
    /// How long to stay at least once all runs have ended, so that workers who come late hear of it.
    pub linger: Duration,
    /// How long to stay at most until one worker has heard of the end, if none has.
    pub await_worker: Duration,
    /// Who may call.
    pub permissions: Permissions,
    /// What calls are encrypted with, if they are.
    pub tls: Option<Tls>,
    /// How both are read again, if they may change.
    pub reload: Option<Reload>,
    /// What is left to do once all runs are finished.
    pub finish: Option<Finish>,
    /// Where traces of epochs are sent.
    pub traces: Option<Traces>,
    /// How much of what workers deliver is computed again.
    pub audit: AuditTerms,
    /// Whether hashing and parsing happen where they are asked for, as simulations need.
    pub inline: bool,
    /// How browsers reach it, and what they are shown.
    pub dashboard: DashboardSettings,
}

impl CoordinatorSettings {
    /// A coordinator that serves all callers until it is stopped.
    pub fn new(nonce: Nonce, version: &str) -> Self {
        Self {
            terms: Terms::default(),
            nonce,
            version: version.to_owned(),
            exit_when_done: false,
            max_runs: 1000,
            only_submitted: false,
            first: None,
            revive: false,
            batch: String::new(),
            address: String::new(),
            takeover_after: None,
            give_up_after: None,
            trial: Some(Trial::SHORT),
            linger: Duration::ZERO,
            await_worker: Duration::ZERO,
            permissions: Permissions::default(),
            tls: None,
            reload: None,
            finish: None,
            traces: None,
            audit: AuditTerms::default(),
            inline: false,
            dashboard: DashboardSettings::default(),
        }
    }
}

/// How permissions and certificates are read again while a coordinator serves.
#[derive(Clone)]
pub struct Reload {
    /// How often.
    pub every: Duration,
    /// Reads everything. What cannot be used leaves the old ones in force.
    pub read: Arc<dyn Fn() -> Result<Protection, String> + Send + Sync>,
}

/// Who may call, and what calls are encrypted with.
pub type Protection = (Permissions, Option<Tls>);

impl fmt::Debug for Reload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Reload({:?})", self.every)
    }
}

/// What is done with a store whose runs are all finished, while probes are still answered: it may take minutes, and a process
/// that does not respond is killed. A stop that is asked for meanwhile is obeyed at once.
#[derive(Clone)]
pub struct Finish(pub FinishStore);

/// Takes the store and the name of the run that the coordinator began with, on a thread that may wait; an error is the reason
/// why a restart may help.
type FinishStore = Arc<dyn Fn(Store, String) -> Result<(), String> + Send + Sync>;

impl fmt::Debug for Finish {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Finish(…)")
    }
}

/// An experiment, a sweep, a study or a tournament that a coordinator begins with.
#[derive(Clone, Debug)]
pub struct First {
    /// The name of the file, for messages about it.
    pub file: String,
    /// What is in it.
    pub text: String,
    /// The player files that it names by their digests.
    pub players: Vec<Bytes>,
}

/// Why a coordinator could not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The store.
    #[error(transparent)]
    Open(#[from] Rejection),
    /// The store does not keep what is relied on.
    #[error("this store cannot keep runs: {0}")]
    Promise(#[from] BrokenPromise),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(StoreError),
    /// The same, and a batch does not wait for it any longer.
    #[error("{0}")]
    Closed(String),
    /// The network.
    #[error("the coordinator cannot serve: {0}")]
    Serve(String),
    /// What was left to do in the end.
    #[error("{0}")]
    Finish(String),
}

impl ServeError {
    /// Whether a retry cannot succeed before an operator changes a file, a permission or a version.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Promise(BrokenPromise::Store(error)) | Self::Store(error) => error.is_permanent(),
            Self::Promise(_) | Self::Closed(_) => true,
            Self::Open(rejection) => rejection.is_permanent(),
            Self::Serve(_) | Self::Finish(_) => false,
        }
    }
}

/// How a coordinator came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServeEnding {
    /// All runs are finished, and the workers know.
    Done,
    /// All runs have ended, but this one failed.
    Failed(String),
    /// All runs have ended, but this one was cancelled.
    Cancelled(String),
    /// No worker was there for too long.
    Abandoned(Duration),
    /// Workers came, but none that can ever work here.
    Refused(String),
    /// It was asked to stop; everything is kept.
    Stopped,
    /// Another coordinator has claimed the store, and continues its runs.
    Succeeded,
}

impl ServeEnding {
    fn reason(&self) -> &'static str {
        match self {
            Self::Stopped => "a signal",
            Self::Succeeded => "another coordinator has taken the store over",
            Self::Abandoned(_) => "no worker was there for too long",
            Self::Refused(_) => "no worker can work here",
            Self::Done | Self::Failed(_) | Self::Cancelled(_) => "all runs have ended",
        }
    }
}

/// As [`run()`], for the connections of a listener and a store that is yet to be opened. It is compiled here and not in the
/// command, which is not optimised.
pub fn serve_listener(
    listener: TcpListener,
    limits: ConnectionLimits,
    http: Option<TcpListener>,
    store: OpenStore,
    settings: CoordinatorSettings,
    unix: fn() -> u64,
    shutdown: BoxFuture<'_, ()>,
) -> BoxFuture<'_, Result<ServeEnding, ServeError>> {
    let tls = settings.tls.clone().map(|tls| Arc::new(LiveTls::new(tls)));
    let incoming = connections(listener, limits, tls.clone(), OPENING);
    Box::pin(run_encrypted(incoming, tls, http, store, settings, unix, shutdown))
}

/// Rejects all calls for a while, with the reason: the workers of a batch job end with its coordinator, although that
/// cannot even begin. Probes learn that it lives, and why it is not ready.
pub fn refuse_listener(
    listener: TcpListener,
    limits: ConnectionLimits,
    http: Option<TcpListener>,
    settings: CoordinatorSettings,
    reason: String,
    shutdown: BoxFuture<'_, ()>,
) -> BoxFuture<'_, Result<(), ServeError>> {
    Box::pin(async move {
        let served = ServedCluster::default();
        served.refuse(reason);
        let permissions = Arc::new(LivePermissions::new(settings.permissions.clone()));
        let tls = settings.tls.clone().map(|tls| Arc::new(LiveTls::new(tls)));
        let dashboard = Dashboard::live(served.clone(), &settings.dashboard, || 0);
        let _http = http.map(|listener| {
            serve_pages(listener, &served, &dashboard, &settings, &permissions, tls.as_ref(), || 0)
        });
        let (_, router) = router(&served, dashboard, &permissions, &Arc::default())?;
        let (_close, closing) = watch::channel(false);
        let _server = serve(router, connections(listener, limits, tls, OPENING), closing);
        tokio::select! {
            () = stay_refused(&served, &settings) => {}
            () = shutdown => {}
        }
        Ok(())
    })
}

/// Serves until it is asked to stop, or until all runs have ended if the settings say so.
///
/// `incoming` are the connections of workers and operators, decrypted already; `http` listens for health checks and metrics,
/// `unix` returns the milliseconds since 1970. It ends within seconds of `shutdown`, whatever its callers and the store do.
pub async fn run<I, IO>(
    incoming: I,
    http: Option<TcpListener>,
    store: Store,
    settings: CoordinatorSettings,
    unix: fn() -> u64,
    shutdown: impl Future<Output = ()>,
) -> Result<ServeEnding, ServeError>
where
    I: Stream<Item = io::Result<IO>> + Send + 'static,
    IO: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
{
    let tls = settings.tls.clone().map(|tls| Arc::new(LiveTls::new(tls)));
    run_encrypted(incoming, tls, http, opened(store), settings, unix, shutdown).await
}

/// As [`run()`], with the certificates that the connections use.
async fn run_encrypted<I, IO>(
    incoming: I,
    tls: Option<Arc<LiveTls>>,
    http: Option<TcpListener>,
    store: OpenStore,
    settings: CoordinatorSettings,
    unix: fn() -> u64,
    shutdown: impl Future<Output = ()>,
) -> Result<ServeEnding, ServeError>
where
    I: Stream<Item = io::Result<IO>> + Send + 'static,
    IO: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
{
    let clock = Clock::new(unix);
    let permissions = Arc::new(LivePermissions::new(settings.permissions.clone()));
    let _reloading = settings
        .reload
        .clone()
        .map(|how| Aborting(tokio::spawn(reload(how, permissions.clone(), tls.clone()))));
    let (close, closing) = watch::channel(false);
    let served = ServedCluster::default();
    let dashboard = Dashboard::live(served.clone(), &settings.dashboard, unix);
    let _http = http.map(|listener| {
        serve_pages(listener, &served, &dashboard, &settings, &permissions, tls.as_ref(), unix)
    });
    let refusals = tls.as_ref().map(|tls| tls.refusals()).unwrap_or_default();
    let (health, router) = router(&served, dashboard, &permissions, &refusals)?;
    report(&health, ServingStatus::NotServing).await;
    // A standby asks for this one by its nonce: whatever answers at this address later does not know it.
    health.set_service_status(standby::service(settings.nonce), ServingStatus::Serving).await;
    let mut server = serve(router, incoming, closing);
    let mut shutdown = std::pin::pin!(shutdown);
    let opening = async {
        let store = open_store(&store, &settings).await?;
        let opened = open(store.clone(), &settings, clock, Some(&served)).await?;
        Ok::<_, ServeError>((store, opened))
    };
    let (store, Opened { cluster, background, first }) = tokio::select! {
        opened = Box::pin(opening) => match opened {
            Err(error) if settings.exit_when_done && error.is_permanent() => {
                served.refuse(error.to_string());
                tracing::error!(reason = %error, "cannot start; workers are informed during `linger`");
                tokio::select! {
                    () = stay_refused(&served, &settings) => {}
                    () = shutdown => {}
                }
                return Err(error);
            }
            opened => opened?,
        },
        served = &mut server.0 => return Err(ended_early(served)),
        () = &mut shutdown => return Ok(ServeEnding::Stopped),
    };
    let exporter = settings.traces.as_ref().map(|traces| Exporter::start(&cluster, traces));
    served.open(cluster.clone());
    let _progress = Aborting(tokio::spawn(log_progress(cluster.clone())));
    let notifier = settings.dashboard.notify.clone().map(|notify| Notifier::start(cluster.clone(), notify));
    report(&health, ServingStatus::Serving).await;
    let batch = Batch::new(&store, &settings.batch);
    let ending = tokio::select! {
        served = &mut server.0 => return Err(ended_early(served)),
        // What has ended stays so: the reason says more than the signal.
        () = &mut shutdown => {
            if is_over(&cluster, &settings, &batch).await { ServeEnding::Done } else { ServeEnding::Stopped }
        }
        () = all_done(&cluster, &settings, &batch) => ServeEnding::Done,
        () = succeeded(&cluster) => ServeEnding::Succeeded,
        ending = abandoned(&cluster, &settings, &refusals) => ending,
    };
    tracing::info!(reason = ending.reason(), "stopping");
    cluster.begin_closing();
    let last_words = match &ending {
        ServeEnding::Refused(reason) => Some(reason.clone()),
        ServeEnding::Succeeded if is_taken_over(&batch).await => Some(TAKEN_OVER.to_owned()),
        _ => None,
    };
    if let Some(reason) = last_words
        && cluster.look(|state| state.workers.count() > 0)
    {
        served.end(reason.clone());
        tracing::error!(reason, "cannot continue; workers are informed during `linger`");
        tokio::select! {
            () = stay_refused(&served, &settings) => {}
            () = &mut shutdown => {}
        }
    }
    let _ = close.send(true);
    let _ = tokio::time::timeout(CLOSING, &mut server.0).await;
    if let Some(notifier) = notifier {
        notifier.finish().await;
    }
    if ending == ServeEnding::Succeeded {
        // What is not written yet is computed again: the successor has read the store already.
        return Ok(ending);
    }
    if !cluster.stop(background, WRITING_UP).await {
        tracing::error!("store not responding; unsaved results will be recomputed");
    }
    if let Some(exporter) = exporter {
        exporter.finish().await;
    }
    let (is_done, unfinished) = cluster.look(|state| (state.is_done(), state.unfinished().cloned()));
    match (ending, unfinished) {
        // It came between the last look and the end.
        (ServeEnding::Done, _) if !is_done => Err(ServeError::Finish(
            "work was submitted while this coordinator stopped; start it again".to_owned(),
        )),
        (ServeEnding::Done, Some(Unfinished::Failed(reason))) => Ok(ServeEnding::Failed(reason)),
        (ServeEnding::Done, Some(Unfinished::Cancelled(reason))) => Ok(ServeEnding::Cancelled(reason)),
        (ServeEnding::Done, None) => tokio::select! {
            finished = finish(&settings, store, first) => finished.map(|()| ServeEnding::Done),
            () = &mut shutdown => Ok(ServeEnding::Stopped),
        },
        (ending, _) => Ok(ending),
    }
}

/// Does what is left to do, on a thread of its own: it may compute for long, and others answer probes meanwhile.
async fn finish(
    settings: &CoordinatorSettings,
    store: Store,
    first: Option<String>,
) -> Result<(), ServeError> {
    let (Some(Finish(finish)), Some(first)) = (settings.finish.clone(), first) else { return Ok(()) };
    let finished = tokio::task::spawn_blocking(move || finish(store, first)).await;
    finished.map_err(|error| ServeError::Finish(error.to_string()))?.map_err(ServeError::Finish)
}

/// Serves health, metrics and the dashboard.
fn serve_pages(
    listener: TcpListener,
    served: &ServedCluster,
    dashboard: &Dashboard,
    settings: &CoordinatorSettings,
    permissions: &Arc<LivePermissions>,
    tls: Option<&Arc<LiveTls>>,
    unix: fn() -> u64,
) -> Aborting<()> {
    let (secret, hosts) = (settings.audit.secret.to_le_bytes(), settings.dashboard.hosts.clone());
    let access = AccessCheck::new(permissions.clone(), &secret, hosts, tls.is_some(), unix);
    let web = Web::new(dashboard.clone(), access);
    let router = http::router(served.clone(), permissions.clone(), tls.cloned(), web);
    Aborting(tokio::spawn(serve_http(listener, tls.cloned(), router, HEAD)))
}

/// Waits until another coordinator has claimed the store.
async fn succeeded(cluster: &Cluster) {
    let Some(claim) = cluster.claim() else { return std::future::pending().await };
    let mut changes = cluster.changes();
    loop {
        let look = tokio::time::Instant::now() + LOOK_FOR_SUCCESSORS;
        while tokio::time::Instant::now() < look {
            if cluster.look(|state| state.succeeded) {
                return;
            }
            let _ = tokio::time::timeout_at(look, changes.changed()).await;
        }
        let asked = cluster.store_watch().begin_read();
        let stands = claim.stands().await;
        asked.done(stands.is_ok());
        match stands {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                tracing::warn!(%error, "cannot check whether another coordinator has claimed the store");
            }
        }
    }
}

/// Logs how far active runs are, again and again.
async fn log_progress(cluster: Cluster) {
    loop {
        tokio::time::sleep(PROGRESS).await;
        let now = cluster.now();
        let (statuses, workers) = cluster.look(|state| {
            let active = |status: &RunStatus| matches!(status.state(), State::Waiting | State::Running);
            let statuses: Vec<_> = state.statuses(now).into_iter().filter(active).collect();
            (statuses, state.workers.count())
        });
        for status in statuses {
            let standing = status.standing.unwrap_or_default();
            tracing::info!(
                run = status.run,
                generation = standing.generation,
                goal = status.goal,
                evaluations = standing.evaluations,
                best = standing.best,
                leases = status.leases,
                workers,
                reason = status.reason,
                "progress"
            );
        }
    }
}

/// A task that ends with its owner.
pub(super) struct Aborting<T>(pub(super) JoinHandle<T>);

impl<T> Drop for Aborting<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn ended_early(served: Result<Result<(), tonic::transport::Error>, tokio::task::JoinError>) -> ServeError {
    let reason = match served {
        Ok(Ok(())) => "its connections ended".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    ServeError::Serve(reason)
}

/// Reads permissions and certificates again and again, and replaces those that have changed.
async fn reload(
    Reload { every, read }: Reload,
    permissions: Arc<LivePermissions>,
    tls: Option<Arc<LiveTls>>,
) {
    let mut known = String::new();
    loop {
        tokio::time::sleep(every).await;
        let read = read.clone();
        let reason = match tokio::task::spawn_blocking(move || read()).await {
            Ok(Ok((new_permissions, new_tls))) => {
                if permissions.replace(new_permissions) {
                    tracing::info!("tokens were replaced");
                }
                if let (Some(tls), Some(new_tls)) = (&tls, new_tls)
                    && tls.replace(&new_tls)
                {
                    tracing::info!("certificates were replaced");
                }
                String::new()
            }
            Ok(Err(reason)) => reason,
            Err(error) => error.to_string(),
        };
        if !reason.is_empty() && reason != known {
            tracing::error!(reason, "new tokens or certificates cannot be used; the old ones stay in force");
        }
        known = reason;
    }
}

/// A server whose calls are counted before anything of them is read.
type Counted = Stack<CountLayer, Identity>;

fn server(served: &ServedCluster) -> Server<Counted> {
    Server::builder()
        .timeout(LONGEST_CALL)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(2 * WINDOW)
        .max_frame_size(LARGEST_FRAME)
        .http2_max_header_list_size(LARGEST_HEADERS)
        .http2_keepalive_interval(Some(Duration::from_secs(10)))
        .http2_keepalive_timeout(Some(Duration::from_secs(10)))
        .max_concurrent_streams(MOST_STREAMS)
        .layer(CountLayer::new(served.call_times()))
}

/// All services. The health service needs no token; the protocol's description is for operators.
fn router(
    served: &ServedCluster,
    dashboard: Dashboard,
    permissions: &Arc<LivePermissions>,
    refusals: &Arc<Refusals>,
) -> Result<(HealthReporter, Router<Counted>), ServeError> {
    let (health, health_service) = tonic_health::server::health_reporter();
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(proto::v1::DESCRIPTORS)
        .build_v1()
        .map_err(|error| ServeError::Serve(error.to_string()))?;
    let worker = WorkerServer::new(WorkerApi::new(served.clone())).max_decoding_message_size(MAX_MESSAGE);
    let operator = OperatorServer::new(OperatorApi::new(served.clone(), dashboard))
        .max_decoding_message_size(MAX_SUBMISSION);
    let rate_limit = Arc::new(RateLimit::default());
    let interceptor = |right| PermissionInterceptor::new(permissions, right, &rate_limit, refusals);
    let router = server(served)
        .add_service(InterceptedService::new(worker, interceptor(Right::Work)))
        .add_service(InterceptedService::new(operator, interceptor(Right::Operate)))
        .add_service(InterceptedService::new(reflection, interceptor(Right::Operate)))
        .add_service(health_service);
    Ok((health, router))
}

/// Sets the health that is reported, of each service and of all.
async fn report(health: &HealthReporter, status: ServingStatus) {
    for service in ["", WorkerServer::<WorkerApi>::NAME, OperatorServer::<OperatorApi>::NAME] {
        health.set_service_status(service, status).await;
    }
}

/// Serves connections.
fn serve<I, IO>(
    router: Router<Counted>,
    incoming: I,
    mut closing: watch::Receiver<bool>,
) -> Aborting<Result<(), tonic::transport::Error>>
where
    I: Stream<Item = io::Result<IO>> + Send + 'static,
    IO: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
{
    let closed = async move {
        let _ = closing.wait_for(|closing| *closing).await;
    };
    Aborting(tokio::spawn(router.serve_with_incoming_shutdown(incoming, closed)))
}
