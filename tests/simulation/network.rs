//! Coordinators and workers on the simulated network.

use crate::byzantine::{Byzantine, Manner};
use crate::scenario::{Scenario, StoreTrouble};
use coordinator::dashboard::DashboardSettings;
use coordinator::leases::Terms;
use coordinator::{CoordinatorSettings, Permissions, ServeEnding};
use hyper_util::rt::TokioIo;
use proto::v1;
use proto::v1::operator_client::OperatorClient;
use proto::v1::run_status::State;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll};
use std::time::Duration;
use store::promises::Trial;
use store::{Nonce, Store};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::Channel;
use tonic::transport::server::{Connected, TcpConnectInfo};
use turmoil::net::{TcpListener, TcpStream};

/// The hosts of coordinators: one serves, and another may take its place.
pub(crate) const COORDINATORS: [&str; 2] = ["coordinator-0", "coordinator-1"];
const PORT: u16 = 7440;

/// Which coordinator new connections lead to, as a name of the network would. Clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Serving(Arc<AtomicUsize>);

impl Serving {
    /// The host that serves.
    pub(crate) fn host(&self) -> &'static str {
        COORDINATORS[self.0.load(SeqCst)]
    }

    /// Leads to the other host from now on.
    pub(crate) fn switch(&self) {
        self.0.fetch_xor(1, SeqCst);
    }

    fn channel(&self) -> Channel {
        let endpoint = worker::endpoint("http://coordinator:7440", &worker::Trust::default()).unwrap();
        let serving = self.clone();
        endpoint.connect_with_connector_lazy(tower::service_fn(move |_| {
            let host = serving.host();
            async move { Ok::<_, io::Error>(TokioIo::new(TcpStream::connect((host, PORT)).await?)) }
        }))
    }

    pub(crate) fn worker(&self) -> worker::Grpc {
        worker::Grpc::new(vec![self.channel()], vec![])
    }

    pub(crate) fn operator(&self) -> OperatorClient<Channel> {
        OperatorClient::new(self.channel())
    }
}

/// A stream of the simulation, as a connection of the server.
struct Wire(TcpStream);

/// Each host answers for its workers, as an address does.
impl Connected for Wire {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        TcpConnectInfo { local_addr: self.0.local_addr().ok(), remote_addr: self.0.peer_addr().ok() }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// The settings of the coordinator of this number.
pub(crate) fn settings(nonce: u128, scenario: &Scenario) -> CoordinatorSettings {
    let lease = scenario.lease;
    let terms = Terms { lease, hedge_after: lease, ..Terms::default() };
    CoordinatorSettings {
        terms,
        nonce: Nonce(nonce),
        version: "simulated".to_owned(),
        exit_when_done: false,
        revive: false,
        batch: String::new(),
        give_up_after: None,
        address: String::new(),
        takeover_after: None,
        reload: None,
        finish: None,
        traces: None,
        max_runs: 10,
        only_submitted: false,
        permissions: Permissions::default(),
        tls: None,
        first: None,
        trial: Some(Trial::SHORT),
        linger: Duration::ZERO,
        await_worker: Duration::ZERO,
        audit: coordinator::AuditTerms { share: scenario.audit, secret: nonce },
        inline: true,
        dashboard: DashboardSettings::default(),
    }
}

/// A coordinator, until it crashes or another has taken its store. The one that serves is started again, as a supervisor
/// would: its store may fail, and a coordinator that was restarted in the moment of a takeover may have claimed last.
pub(crate) async fn coordinate(
    (host, serving): (&'static str, Serving),
    store: Store,
    seed: u64,
    scenario: Arc<Scenario>,
) -> turmoil::Result {
    loop {
        let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
        let incoming = futures::stream::unfold(listener, |listener| async move {
            let connection = listener.accept().await.map(|(stream, _)| Wire(stream));
            Some((connection, listener))
        });
        let since = turmoil::sim_elapsed().unwrap().as_nanos();
        let settings = settings(u128::from(seed) << 64 | since, &scenario);
        let store = store.clone();
        let ending = coordinator::run(incoming, None, store, settings, || 0, std::future::pending()).await;
        match ending {
            Ok(ending) => assert_eq!(ending, ServeEnding::Succeeded, "it was not asked to stop"),
            Err(error) if scenario.store == StoreTrouble::Nothing => return Err(error.into()),
            Err(error) => tracing::warn!(%error, "a coordinator ended"),
        }
        if serving.host() != host {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

pub(crate) fn config(id: String, name: String, seed: u64) -> worker::Config {
    let identity =
        worker::Identity { id, name, version: "simulated".to_owned(), give_up_after: None, seed, look: None };
    worker::Config {
        identity,
        cache_bytes: 1 << 20,
        undurable_bytes: 1 << 20,
        memory_bytes: u64::MAX,
        engines: std::collections::BTreeMap::new(),
    }
}

/// How long a worker that died takes to be started again.
const REVIVAL: Duration = Duration::from_millis(50);

/// A worker that does what it should, unless one piece is poison to it in this manner.
pub(crate) async fn work(
    serving: Serving,
    number: u64,
    seed: u64,
    poison: Option<Manner>,
) -> turmoil::Result {
    loop {
        let life = turmoil::sim_elapsed().unwrap().as_nanos();
        let config = config(format!("{number}-{life}"), format!("worker-{number}"), seed + number);
        let (pool, forever) = (worker::Pool::inline(), std::future::pending());
        let Some(manner) = poison else {
            worker::run(config, Arc::new(serving.worker()), pool, forever).await?;
            return Ok(());
        };
        let (calls, died) = Byzantine::poisoned(serving.worker(), manner);
        tokio::select! {
            ended = worker::run(config, Arc::new(calls), pool, forever) => {
                ended?;
                return Ok(());
            }
            () = died.notified() => tokio::time::sleep(REVIVAL).await,
        }
    }
}

/// A worker that does not do what it should, until it is quarantined; after a crash it is the same one.
pub(crate) async fn misbehave(serving: Serving, name: String, manner: Manner, seed: u64) -> turmoil::Result {
    let config = config(name.clone(), name, seed);
    let calls = Arc::new(Byzantine::new(serving.worker(), manner));
    let ended = worker::run(config, calls, worker::Pool::inline(), std::future::pending()).await;
    tracing::info!(?ended, "a byzantine worker ended");
    Ok(())
}

/// Waits until a run has ended; returns its digest, or why it failed.
pub(crate) async fn watch(serving: Serving, run: String) -> Result<Vec<u8>, String> {
    let mut client = serving.operator();
    loop {
        let request = v1::StatusRequest { run: run.clone(), known_version: 0, wait_milliseconds: 0 };
        if let Ok(Ok(reply)) = tokio::time::timeout(Duration::from_secs(2), client.status(request)).await {
            let status = reply.into_inner().status.unwrap();
            match status.state() {
                State::Finished => return Ok(status.digest.unwrap().to_vec()),
                State::Failed => return Err(status.reason),
                _ => {}
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
