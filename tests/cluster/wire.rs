//! Bad input from the network: refused with a clear word, and others are unharmed.

use crate::process::{Coordinator, DIGEST, EXPERIMENT, Folder};
use proto::v1;
use proto::v1::complete_head::What;
use proto::v1::complete_reply::DeliveryStatus;
use proto::v1::operator_client::OperatorClient;
use proto::v1::worker_client::WorkerClient;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

/// A worker that does what no worker should.
struct Rogue {
    client: WorkerClient<Channel>,
    id: String,
}

impl Rogue {
    async fn new(coordinator: &Coordinator, id: &str) -> Self {
        let channel = Endpoint::from_shared(coordinator.url()).unwrap().connect().await.unwrap();
        Self { client: WorkerClient::new(channel), id: id.to_owned() }
    }

    async fn join(&mut self, semantics: u32) -> Result<(), Status> {
        let (worker, name, version) = (self.id.clone(), self.id.clone(), "9.9.9".to_owned());
        let request =
            v1::JoinRequest { worker, name, version, semantics, threads: 1, ..v1::JoinRequest::default() };
        self.client.join(request).await.map(|_| ())
    }

    async fn acquire(&mut self, slots: u32) -> Result<Vec<v1::Grant>, Status> {
        let (worker, holding) = (self.id.clone(), vec![]);
        let request = v1::AcquireRequest { worker, slots, holding, wait_milliseconds: 0 };
        self.client.acquire(request).await.map(|reply| reply.into_inner().grants)
    }

    async fn complete(&mut self, parts: Vec<v1::complete_part::Part>) -> Result<DeliveryStatus, Status> {
        let parts: Vec<_> = parts.into_iter().map(|part| v1::CompletePart { part: Some(part) }).collect();
        self.client.complete(futures::stream::iter(parts)).await.map(|reply| reply.into_inner().status())
    }

    /// Delivers bytes as an epoch.
    async fn deliver(
        &mut self,
        piece: Option<v1::Piece>,
        result: v1::EpochResult,
        body: &'static [u8],
    ) -> Result<DeliveryStatus, Status> {
        use v1::complete_part::Part;
        let (worker, what) = (self.id.clone(), Some(What::Epoch(result)));
        let head = v1::CompleteHead { worker, piece, milliseconds: 1, what, slots: 0 };
        self.complete(vec![Part::Head(head), Part::Chunk(v1::Chunk { bytes: body.into() })]).await
    }
}

fn result(inputs: &[u8], lengths: [u64; 3]) -> v1::EpochResult {
    let [state_length, departure_length, statistics_length] = lengths;
    v1::EpochResult {
        inputs: inputs.to_vec().into(),
        digest: vec![1; 32].into(),
        standing: Some(v1::Standing { generation: 100, evaluations: 1, best: 1.0 }),
        state_length,
        departure_length,
        statistics_length,
    }
}

fn piece(run: &str) -> v1::Piece {
    let epoch = v1::EpochPiece { island: 0, epoch: 0 };
    v1::Piece { run: run.to_owned(), what: Some(v1::piece::What::Epoch(epoch)) }
}

#[tokio::test]
async fn strangers_and_other_versions_are_refused() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    let mut rogue = Rogue::new(&coordinator, "rogue").await;
    let status = rogue.acquire(1).await.unwrap_err();
    assert_eq!(status.code(), Code::Aborted);
    assert!(status.message().contains("join first"));
    let status = rogue.join(999).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(status.message().contains("found 999 (atoll 9.9.9)"), "{}", status.message());
    rogue.id = "x".repeat(101);
    assert_eq!(rogue.join(experiment::SEMANTICS).await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test]
async fn malformed_and_oversized_messages_are_refused() {
    use v1::complete_part::Part;
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    let run = coordinator.submit(EXPERIMENT);
    let mut rogue = Rogue::new(&coordinator, "rogue").await;
    rogue.join(experiment::SEMANTICS).await.unwrap();
    let refused = |result: Result<DeliveryStatus, Status>| result.unwrap_err().code();
    assert_eq!(refused(rogue.complete(vec![]).await), Code::InvalidArgument);
    let chunk = Part::Chunk(v1::Chunk { bytes: "no head".into() });
    assert_eq!(refused(rogue.complete(vec![chunk]).await), Code::InvalidArgument);
    let no_piece = rogue.deliver(None, result(&[0; 32], [1, 0, 0]), b"x").await;
    assert_eq!(refused(no_piece), Code::InvalidArgument);
    for (inputs, lengths) in
        [(31, [1, 0, 0]), (32, [2, 0, 0]), (32, [0, 0, 0]), (32, [u64::MAX, 1, 0]), (32, [1 << 40, 0, 0])]
    {
        let delivered = rogue.deliver(Some(piece(&run)), result(&vec![0; inputs], lengths), b"x").await;
        assert_eq!(refused(delivered), Code::InvalidArgument, "{inputs} {lengths:?}");
    }
    let channel = Endpoint::from_shared(coordinator.url()).unwrap().connect().await.unwrap();
    let text = "#".repeat(5 << 20);
    let request = v1::SubmitRequest { file: "large".to_owned(), text, ..Default::default() };
    let status = OperatorClient::new(channel).submit(request).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange, "{status}");
    assert!(coordinator.page("/readyz").ends_with("ready\n"), "it serves as before");
}

#[tokio::test]
async fn rogue_workers_do_not_harm_a_run() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&["--lease", "1s"]);
    let run = coordinator.submit(EXPERIMENT);

    // One takes work and never comes back.
    let mut silent = Rogue::new(&coordinator, "silent").await;
    silent.join(experiment::SEMANTICS).await.unwrap();
    assert_eq!(silent.acquire(2).await.unwrap().len(), 2);

    // One delivers what it never had, from inputs that were never given.
    let mut inventor = Rogue::new(&coordinator, "inventor").await;
    inventor.join(experiment::SEMANTICS).await.unwrap();
    let mut invented = result(&[5; 32], [1, 0, 1]);
    let left = evolution::epoch::left_digest(b"x", b"");
    let digest = evolution::epoch::outcome_digest(&left, b"\0");
    invented.digest = digest.0.to_vec().into();
    let status = inventor.deliver(Some(piece(&run)), invented, b"x\0").await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied, "{}", status.message());

    // One reports a digest that its bytes do not have.
    let mut liar = Rogue::new(&coordinator, "liar").await;
    liar.join(experiment::SEMANTICS).await.unwrap();
    let grant = liar.acquire(1).await.unwrap().remove(0);
    let inputs = grant.task.unwrap().inputs;
    let status = liar.deliver(grant.piece, result(&inputs, [1, 0, 0]), b"x").await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
    assert!(status.message().contains("quarantined"), "{}", status.message());
    assert_eq!(liar.acquire(1).await.unwrap_err().code(), Code::PermissionDenied);
    assert_eq!(liar.join(experiment::SEMANTICS).await.unwrap_err().code(), Code::PermissionDenied);
    assert_eq!(coordinator.metric("atoll_workers_quarantined_total"), 2.0);

    // One floods.
    let mut flood = Rogue::new(&coordinator, "flood").await;
    for number in 0..500 {
        flood.id = format!("flood-{number}");
        flood.join(experiment::SEMANTICS).await.unwrap();
        flood.acquire(0).await.unwrap();
    }

    let _worker = coordinator.worker(&[]);
    let digest = tokio::task::spawn_blocking(move || coordinator.digest(&run)).await.unwrap();
    assert_eq!(digest, *DIGEST);
}
