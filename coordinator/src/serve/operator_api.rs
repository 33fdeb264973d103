//! What operators call over gRPC.

use super::disk_use::DiskUse;
use super::in_flight::peer;
use super::worker_api::ServedCluster;
use crate::cluster::deadline;
use crate::dashboard::{Dashboard, HttpError};
use crate::rejection::Rejection;
use crate::state::workers::shown;
use experiment::document::MAX_BYTES;
use experiment::file::BudgetKeys;
use proto::chunks;
use proto::v1;
use proto::v1::operator_server::Operator;
use run::export;
use run::{Label, LabelChange, RunId};
use std::collections::BTreeSet;
use std::pin::Pin;
use store::Store;
use tokio::time::Instant;
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

/// The bytes of each run's objects; nothing if one of them cannot be listed.
async fn sizes(store: Store, runs: Vec<String>) -> Vec<u64> {
    let mut sizes = vec![];
    for run in runs {
        let Ok(run) = RunId::new(&run) else { return vec![] };
        let Ok(size) = store.size_below(&run.folder()).await else { return vec![] };
        sizes.push(size);
    }
    sizes
}

/// Labels as they came.
fn parsed(labels: Vec<String>) -> Result<BTreeSet<Label>, Rejection> {
    Ok(labels.into_iter().map(Label::new).collect::<Result<_, _>>()?)
}

/// The calls of operators.
#[derive(Clone)]
pub(crate) struct OperatorApi {
    served: ServedCluster,
    dashboard: Dashboard,
    disk_use: DiskUse,
}

impl OperatorApi {
    pub(crate) fn new(served: ServedCluster, dashboard: Dashboard) -> Self {
        Self { served, dashboard, disk_use: DiskUse::default() }
    }
}

#[tonic::async_trait]
impl Operator for OperatorApi {
    async fn submit(&self, request: Request<v1::SubmitRequest>) -> Result<Response<v1::SubmitReply>, Status> {
        let v1::SubmitRequest { file, text, seed, priority, fresh, players, labels } = request.into_inner();
        let labels = LabelChange::adding(parsed(labels)?);
        if seed.is_some_and(|seed| seed > i64::MAX as u64) {
            return Err(Status::invalid_argument(format!(
                "expected a seed of at most {}, found more",
                i64::MAX
            )));
        }
        if text.len() as u64 > MAX_BYTES {
            let found = text.len();
            return Err(Status::out_of_range(format!(
                "expected a text of at most {MAX_BYTES} bytes, found {found}"
            )));
        }
        // A sweep of a million cells takes a while to check.
        let checked = tokio::task::spawn_blocking(move || experiment::parse(&file, &text, seed)).await;
        let plan =
            checked.map_err(|error| Status::internal(format!("the check of the experiment: {error}")))?;
        let plan = plan.map_err(Rejection::from)?;
        let cluster = self.served.cluster().await?;
        let run = cluster.submit(plan, players, priority, fresh).await?;
        if !labels.is_empty() {
            cluster.label(&run, &labels).await?;
        }
        Ok(Response::new(v1::SubmitReply { run }))
    }

    async fn list_runs(
        &self,
        request: Request<v1::ListRunsRequest>,
    ) -> Result<Response<v1::ListRunsReply>, Status> {
        let cluster = self.served.cluster().await?;
        let now = cluster.now();
        let runs = cluster.look(|state| state.statuses(now));
        let disk_bytes = if request.into_inner().with_disk {
            let (names, store) = (runs.iter().map(|status| status.run.clone()), cluster.store().clone());
            self.disk_use.of(names.collect(), move |runs| sizes(store, runs)).await
        } else {
            vec![]
        };
        Ok(Response::new(v1::ListRunsReply { runs, disk_bytes }))
    }

    async fn status(&self, request: Request<v1::StatusRequest>) -> Result<Response<v1::StatusReply>, Status> {
        let v1::StatusRequest { run, known_version, wait_milliseconds } = request.into_inner();
        let cluster = self.served.cluster().await?;
        let deadline = deadline(wait_milliseconds);
        let mut changes = cluster.changes();
        while cluster.version() == known_version && Instant::now() < deadline {
            changes.catch_up();
            cluster.wait(changes.changed(), deadline).await?;
        }
        let version = cluster.version();
        let now = cluster.now();
        let (status, workers) = cluster
            .look(|state| Ok::<_, Rejection>((state.status(&run, now)?, state.workers.count() as u32)))?;
        Ok(Response::new(v1::StatusReply { status: Some(status), version, workers }))
    }

    async fn pause(&self, request: Request<v1::PauseRequest>) -> Result<Response<v1::PauseReply>, Status> {
        let v1::PauseRequest { run, paused } = request.into_inner();
        self.served.cluster().await?.pause(&run, paused).await?;
        Ok(Response::new(v1::PauseReply {}))
    }

    async fn cancel(&self, request: Request<v1::CancelRequest>) -> Result<Response<v1::CancelReply>, Status> {
        self.served.cluster().await?.cancel(&request.into_inner().run).await?;
        Ok(Response::new(v1::CancelReply {}))
    }

    async fn extend(&self, request: Request<v1::ExtendRequest>) -> Result<Response<v1::ExtendReply>, Status> {
        let v1::ExtendRequest { run, budget } = request.into_inner();
        let budget: BudgetKeys = serde_json::from_str(&budget)
            .map_err(|error| Status::invalid_argument(format!("expected a budget, found {error}")))?;
        self.served.cluster().await?.extend(&run, budget).await?;
        Ok(Response::new(v1::ExtendReply {}))
    }

    async fn view(&self, request: Request<v1::ViewRequest>) -> Result<Response<v1::ViewReply>, Status> {
        let peer = peer(request.extensions());
        let path = request.into_inner().path;
        // It waits for the store to be read, as all calls do.
        self.served.cluster().await?;
        let (path, query) = path.split_once('?').unwrap_or((&path, ""));
        let failed = |problem: HttpError| match problem.status.as_u16() {
            404 => Status::not_found(problem.message),
            400 => Status::invalid_argument(problem.message),
            503 => Status::unavailable(problem.message),
            _ => Status::failed_precondition(problem.message),
        };
        let json = self.dashboard.view(path, query, peer).await.map_err(failed)?;
        let json = String::from_utf8(json.into()).map_err(|error| Status::internal(error.to_string()))?;
        Ok(Response::new(v1::ViewReply { json }))
    }

    async fn label(&self, request: Request<v1::LabelRequest>) -> Result<Response<v1::LabelReply>, Status> {
        let v1::LabelRequest { run, add, remove } = request.into_inner();
        let change = LabelChange { add: parsed(add)?, remove: parsed(remove)? };
        let labels = self.served.cluster().await?.label(&run, &change).await?;
        Ok(Response::new(v1::LabelReply { labels: labels.to_strings() }))
    }

    async fn drain(&self, request: Request<v1::DrainRequest>) -> Result<Response<v1::DrainReply>, Status> {
        let v1::DrainRequest { worker, drain } = request.into_inner();
        if !self.served.cluster().await?.drain(&worker, drain) {
            return Err(Status::not_found(format!("there is no worker `{}`", shown(&worker))));
        }
        Ok(Response::new(v1::DrainReply {}))
    }

    type ExportStream = Pin<Box<dyn Stream<Item = Result<v1::ExportPart, Status>> + Send>>;

    async fn export(
        &self,
        request: Request<v1::ExportRequest>,
    ) -> Result<Response<Self::ExportStream>, Status> {
        let run = RunId::new(&request.into_inner().run).map_err(Rejection::from)?;
        // What is stored is exported, so that a run in progress is not delayed.
        let store = self.served.cluster().await?.store();
        let parts = export::parts(store, &run).await.map_err(Rejection::from)?;
        let parts = parts.into_iter().flat_map(|(name, bytes)| {
            chunks::cut(&bytes).map(move |chunk| v1::ExportPart { name: name.to_owned(), bytes: chunk.bytes })
        });
        Ok(Response::new(Box::pin(tokio_stream::iter(parts.map(Ok)))))
    }
}
