//! The coordinator as a server: from its listeners to its last word.

use crate::bell::Listener;
use crate::connections::{HEAD, Limits, connections, serve_http};
use crate::guard::{Gate, Guard, Pace, Right};
use crate::http;
use crate::office::{Office, Refusal, Settings};
use crate::service::{Clock, Desk};
use crate::tls::Tls;
use futures::future::BoxFuture;
use proto::v1::operator_server::OperatorServer;
use proto::v1::worker_server::WorkerServer;
use proto::{MAX_MESSAGE, MAX_SUBMISSION};
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use store::promises::{self, BrokenPromise};
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

/// How often time passes in the office.
const TICK: Duration = Duration::from_millis(100);
/// How long open calls may take to end. Waiting calls are told to; a silent connection is not waited for.
const CLOSING: Duration = Duration::from_secs(2);
/// How long to wait for workers to learn that there is nothing left to do.
const LINGERING: Duration = Duration::from_secs(10);
/// How often to look whether another coordinator has begun.
const LOOK_FOR_SUCCESSORS: Duration = Duration::from_secs(2);
/// How long the store may take to write what is not written yet. What it does not take is computed again.
const WRITING_UP: Duration = Duration::from_secs(5);
/// How long to wait for whoever is still in the office.
const LAST_CALL: Duration = Duration::from_secs(1);
/// How long to wait for their goodbyes after that.
const GOODBYE: Duration = Duration::from_secs(1);
/// How long one call may take, the longest wait included.
const LONGEST_CALL: Duration = Duration::from_mins(5);
/// How much of a body may be on its way: a megabyte or so is needed to fill a connection.
const WINDOW: u32 = 4 << 20;
/// How much of a body travels in one piece: frames of the usual 16 KiB cost more than what is in them.
const LARGEST_FRAME: u32 = 1 << 20;

/// Why a coordinator could not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The store.
    #[error(transparent)]
    Open(#[from] Refusal),
    /// The store does not keep what is relied on.
    #[error("this store cannot keep runs: {0}")]
    Promise(#[from] BrokenPromise),
    /// The network.
    #[error("the coordinator cannot serve: {0}")]
    Serve(String),
}

/// How a coordinator came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All runs are finished, and the workers know.
    Done,
    /// All runs have ended, but this one without a result.
    Failed(String),
    /// It was asked to stop; everything is kept.
    Stopped,
    /// Another coordinator has taken the store over, and goes on with its runs.
    Succeeded,
}

/// As [`run()`], for the connections of a listener. It is compiled here and not in the command, which is not optimised.
pub fn serve_listener(
    listener: TcpListener,
    limits: Limits,
    http: Option<TcpListener>,
    store: Store,
    settings: Settings,
    unix: fn() -> u64,
    shutdown: BoxFuture<'_, ()>,
) -> BoxFuture<'_, Result<Ending, ServeError>> {
    Box::pin(run(connections(listener, limits), http, store, settings, unix, shutdown))
}

/// Serves until it is asked to stop, or until all runs have ended if the settings say so.
///
/// `incoming` are the connections of workers and operators, `http` listens for health checks and metrics, `unix` tells
/// the milliseconds since 1970. It ends within seconds of `shutdown`, whatever its callers and the store do.
pub async fn run<I, IO>(
    incoming: I,
    http: Option<TcpListener>,
    store: Store,
    settings: Settings,
    unix: fn() -> u64,
    shutdown: impl Future<Output = ()>,
) -> Result<Ending, ServeError>
where
    I: Stream<Item = io::Result<IO>> + Send + 'static,
    IO: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
{
    let clock = Clock::new(unix);
    let guard = Arc::new(settings.guard.clone());
    let (close, closing) = watch::channel(false);
    let desk = Desk::new(clock.clone(), closing.clone());
    let _http = http.map(|listener| {
        let acceptor = settings.tls.as_ref().map(Tls::acceptor);
        let router = http::router(desk.clone(), guard.clone());
        Aborting(tokio::spawn(serve_http(listener, acceptor, router, HEAD)))
    });
    let (health, router) = router(server(settings.tls.as_ref())?, &desk, &guard)?;
    say(&health, ServingStatus::NotServing).await;
    let mut server = Aborting(tokio::spawn(serve(router, incoming, closing)));
    let mut shutdown = std::pin::pin!(shutdown);
    let office = tokio::select! {
        office = Box::pin(open(store, settings, &clock)) => office?,
        served = &mut server.0 => return Err(ended_early(served)),
        () = &mut shutdown => return Ok(Ending::Stopped),
    };
    desk.open(office);
    say(&health, ServingStatus::Serving).await;
    let _ticking = Aborting(tokio::spawn(tick(desk.clone())));
    let (writer, pruner) = (desk.clone(), desk.clone());
    let _writing = Aborting(tokio::spawn(async move { writer.write_on().await }));
    let _pruning = Aborting(tokio::spawn(async move { pruner.prune_on().await }));
    let ending = tokio::select! {
        served = &mut server.0 => return Err(ended_early(served)),
        () = &mut shutdown => Ending::Stopped,
        () = all_done(&desk) => Ending::Done,
        () = succeeded(&desk) => Ending::Succeeded,
    };
    let _ = close.send(true);
    let _ = tokio::time::timeout(CLOSING, &mut server.0).await;
    if ending == Ending::Succeeded {
        // What is not written yet is computed again: the successor has read the store already.
        return Ok(ending);
    }
    if tokio::time::timeout(WRITING_UP, Box::pin(desk.write_everything())).await.is_err() {
        tracing::error!("the store does not answer: what it has not taken yet will be computed again");
    }
    let failed = tokio::time::timeout(LAST_CALL, desk.office()).await.map(|mut office| office.failed.take());
    Ok(match failed {
        Ok(Some(reason)) if ending == Ending::Done => Ending::Failed(reason),
        _ => ending,
    })
}

/// Tries the store out, and takes up what is in it.
async fn open(store: Store, settings: Settings, clock: &Clock) -> Result<Office, ServeError> {
    if let Some(trial) = settings.trial {
        promises::try_out(&store, settings.nonce, trial).await?;
    }
    Ok(Office::open(store, settings, clock.now()).await?)
}

/// Waits until another coordinator has claimed the store.
async fn succeeded(desk: &Desk) {
    let claim = desk.office().await.claim.clone();
    loop {
        tokio::time::sleep(LOOK_FOR_SUCCESSORS).await;
        match claim.stands().await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => tracing::warn!(%error, "cannot see whether another coordinator has begun"),
        }
    }
}

/// A task that ends with its owner.
struct Aborting<T>(JoinHandle<T>);

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

fn server(tls: Option<&Tls>) -> Result<Server, ServeError> {
    let server = Server::builder()
        .timeout(LONGEST_CALL)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(2 * WINDOW)
        .max_frame_size(LARGEST_FRAME)
        .http2_keepalive_interval(Some(Duration::from_secs(10)))
        .http2_keepalive_timeout(Some(Duration::from_secs(10)))
        .max_concurrent_streams(256);
    match tls {
        Some(tls) => server.tls_config(tls.of_calls()).map_err(|error| ServeError::Serve(error.to_string())),
        None => Ok(server),
    }
}

/// All services. Everybody may ask for the health; the protocol's description is for operators.
fn router(
    mut server: Server,
    desk: &Desk,
    guard: &Arc<Guard>,
) -> Result<(HealthReporter, Router), ServeError> {
    let (health, health_service) = tonic_health::server::health_reporter();
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(proto::v1::DESCRIPTORS)
        .build_v1()
        .map_err(|error| ServeError::Serve(error.to_string()))?;
    let worker = WorkerServer::new(desk.clone()).max_decoding_message_size(MAX_MESSAGE);
    let operator = OperatorServer::new(desk.clone()).max_decoding_message_size(MAX_SUBMISSION);
    let pace = Arc::new(Pace::default());
    let gate = |right| Gate::new(guard, right, &pace);
    let router = server
        .add_service(InterceptedService::new(worker, gate(Right::Work)))
        .add_service(InterceptedService::new(operator, gate(Right::Operate)))
        .add_service(InterceptedService::new(reflection, gate(Right::Operate)))
        .add_service(health_service);
    Ok((health, router))
}

/// Tells whoever asks for the health, of one service or of all.
async fn say(health: &HealthReporter, status: ServingStatus) {
    for service in ["", WorkerServer::<Desk>::NAME, OperatorServer::<Desk>::NAME] {
        health.set_service_status(service, status).await;
    }
}

async fn serve<I, IO>(
    router: Router,
    incoming: I,
    mut closing: watch::Receiver<bool>,
) -> Result<(), tonic::transport::Error>
where
    I: Stream<Item = io::Result<IO>> + Send + 'static,
    IO: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
{
    let closed = async move {
        let _ = closing.wait_for(|closing| *closing).await;
    };
    router.serve_with_incoming_shutdown(incoming, closed).await
}

async fn tick(desk: Desk) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let mut office = desk.office().await;
        let active = office.plan.active();
        let expired = office.counters.expired;
        office.tick(desk.now()).await;
        if office.plan.active() != active || office.counters.expired != expired {
            desk.changed(&office);
        } else {
            drop(office);
            desk.time_to_write();
        }
    }
}

/// Waits until all runs have ended and the workers know, or have had the time to learn it.
async fn all_done(desk: &Desk) {
    let mut bell = desk.bell();
    while !desk.office().await.is_done() {
        bell.rung().await;
    }
    let linger_at_least = desk.office().await.settings.linger;
    tokio::time::sleep(linger_at_least).await;
    let knows = |office: &Office, recently| office.members.all_know_the_end(recently);
    linger(desk, &mut bell, LINGERING, knows).await;
    // A goodbye that cannot be delivered would only make them wait.
    linger(desk, &mut bell, GOODBYE, |office, _| office.members.count() == 0).await;
}

/// Waits for the workers, but not for long. The condition is told since when a worker counts as being there.
async fn linger(
    desk: &Desk,
    bell: &mut Listener,
    longest: Duration,
    is_over: impl Fn(&Office, Duration) -> bool,
) {
    let deadline = tokio::time::Instant::now() + longest;
    while tokio::time::Instant::now() < deadline {
        let recently = desk.now().elapsed.saturating_sub(LINGERING);
        if is_over(&*desk.office().await, recently) {
            return;
        }
        let _ = tokio::time::timeout(TICK, bell.rung()).await;
    }
}
