//! What operators call, as gRPC.

use crate::office::Refusal;
use crate::service::{Desk, deadline};
use experiment::document::MAX_BYTES;
use proto::chunks;
use proto::v1;
use proto::v1::operator_server::Operator;
use run::RunId;
use run::export;
use std::pin::Pin;
use tokio::time::Instant;
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

#[tonic::async_trait]
impl Operator for Desk {
    async fn submit(&self, request: Request<v1::SubmitRequest>) -> Result<Response<v1::SubmitReply>, Status> {
        let v1::SubmitRequest { file, text, seed, priority, fresh, players } = request.into_inner();
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
        // A sweep of a million cells takes a while to check, and others should not wait for it.
        let checked = tokio::task::spawn_blocking(move || experiment::parse(&file, &text, seed)).await;
        let plan =
            checked.map_err(|error| Status::internal(format!("the check of the experiment: {error}")))?;
        let plan = plan.map_err(Refusal::from)?;
        let mut office = self.office().await;
        let run = office.submit(plan, players, priority, fresh, self.now()).await?;
        self.changed(&office);
        Ok(Response::new(v1::SubmitReply { run }))
    }

    async fn list_runs(
        &self,
        _: Request<v1::ListRunsRequest>,
    ) -> Result<Response<v1::ListRunsReply>, Status> {
        Ok(Response::new(v1::ListRunsReply { runs: self.office().await.statuses() }))
    }

    async fn status(&self, request: Request<v1::StatusRequest>) -> Result<Response<v1::StatusReply>, Status> {
        let v1::StatusRequest { run, known_version, wait_milliseconds } = request.into_inner();
        let deadline = deadline(wait_milliseconds);
        let mut bell = self.bell();
        while self.version() == known_version && Instant::now() < deadline {
            bell.catch_up();
            self.wait(&mut bell, deadline).await?;
        }
        let version = self.version();
        let office = self.office().await;
        let (status, workers) = (office.status(&run)?, office.members.count() as u32);
        Ok(Response::new(v1::StatusReply { status: Some(status), version, workers }))
    }

    async fn pause(&self, request: Request<v1::PauseRequest>) -> Result<Response<v1::PauseReply>, Status> {
        let v1::PauseRequest { run, paused } = request.into_inner();
        let mut office = self.office().await;
        office.pause(&run, paused, self.now()).await?;
        self.changed(&office);
        Ok(Response::new(v1::PauseReply {}))
    }

    async fn cancel(&self, request: Request<v1::CancelRequest>) -> Result<Response<v1::CancelReply>, Status> {
        let mut office = self.office().await;
        office.cancel(&request.into_inner().run, self.now()).await?;
        self.changed(&office);
        Ok(Response::new(v1::CancelReply {}))
    }

    type ExportStream = Pin<Box<dyn Stream<Item = Result<v1::ExportPart, Status>> + Send>>;

    async fn export(
        &self,
        request: Request<v1::ExportRequest>,
    ) -> Result<Response<Self::ExportStream>, Status> {
        let run = RunId::new(&request.into_inner().run).map_err(Refusal::from)?;
        // What is stored is exported, so that a run that goes on is not held up.
        let store = self.office().await.store.clone();
        let export = export::read(&store, &run).await.map_err(Refusal::from)?;
        let parts = export.files().into_iter().flat_map(|(name, text)| {
            chunks::cut(&text.into())
                .map(move |chunk| v1::ExportPart { name: name.to_owned(), bytes: chunk.bytes })
        });
        Ok(Response::new(Box::pin(tokio_stream::iter(parts.map(Ok)))))
    }
}
