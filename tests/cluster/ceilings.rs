//! What a worker with a valid token can make a coordinator keep in memory: bodies that claim to be more than they are, and
//! replies that it does not read.

use crate::floods::{MOST_MEMORY, join, peak, worker};
use crate::process::{Coordinator, Folder, wait_until};
use bytes::Bytes;
use futures::future::join_all;
use prost::Message;
use proto::v1;
use proto::v1::complete_head::What;
use proto::v1::complete_part::Part;
use tokio::net::TcpStream;
use tonic::Code;

const SWEEP: &str = r#"
name = "swept"
problem = { kind = "onemax", length = 20 }
algorithm = { kind = "ga", population = 8 }
budget = { generations = 4 }
sweep = { repeats = 4, axis = [{ keys = ["algorithm.population"], values = [6, 8] }] }
"#;

/// Each state is almost as large as a grant holds.
const LARGE: &str = r#"
name = "large"
problem = { kind = "onemax", length = 40_000 }
algorithm = { kind = "ga", population = 4 }
islands = { count = 8 }
migration = { interval = 1, count = 1 }
budget = { generations = 1_000_000 }
"#;

/// A list of this number of items, each encoded as these bytes.
fn list(count: u32, item: &[u8]) -> Vec<u8> {
    [&[252][..], &count.to_le_bytes(), &item.repeat(count as usize)].concat()
}

/// Delivers a body in chunks.
async fn deliver(coordinator: &Coordinator, piece: v1::piece::What, run: &str, what: What, body: Vec<u8>) {
    let mut client = worker(&coordinator.address).await;
    let piece = Some(v1::Piece { run: run.to_owned(), what: Some(piece) });
    let head =
        v1::CompleteHead { worker: "rogue".to_owned(), piece, milliseconds: 1, what: Some(what), slots: 0 };
    let chunks = body.chunks(1 << 20).map(|bytes| Part::Chunk(v1::Chunk { bytes: bytes.to_vec().into() }));
    let parts = std::iter::once(Part::Head(head)).chain(chunks);
    let parts: Vec<_> = parts.map(|part| v1::CompletePart { part: Some(part) }).collect();
    let reply = client.complete(futures::stream::iter(parts)).await;
    let code = reply.as_ref().map_or_else(tonic::Status::code, |_| Code::Ok);
    assert!([Code::Ok, Code::InvalidArgument, Code::PermissionDenied].contains(&code), "{reply:?}");
}

#[tokio::test]
async fn bodies_take_little_more_memory_than_they_are_long() {
    const ITEMS: u32 = 40 << 20;
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    let run = coordinator.submit(SWEEP);
    worker(&coordinator.address).await.join(join("rogue".to_owned())).await.unwrap();
    let job = v1::piece::What::Job(v1::JobPiece { number: 0 });
    let cells = v1::piece::What::Cells(v1::CellsPiece { first: 0, count: 1 });
    let epoch = v1::piece::What::Epoch(v1::EpochPiece { island: 0, epoch: 0 });

    // Files without content: a byte each on the wire, 24 in memory.
    let body = list(ITEMS, &[0]);
    let what = v1::JobResult { inputs: vec![1; 32].into(), length: body.len() as u64 };
    deliver(&coordinator, job, &run, What::Job(what), body).await;
    // Games that were not played, of cell 0.
    let body = list(ITEMS / 3, &[0, 1, 0]);
    let what = v1::CellsResult { length: body.len() as u64 };
    deliver(&coordinator, cells, &run, What::Cells(what), body).await;
    // Migrants that nobody sent.
    let body = [list(0, &[]), list(ITEMS / 5, &[0; 5]), vec![0; 9]].concat();
    let what = v1::EpochResult {
        inputs: vec![1; 32].into(),
        digest: vec![1; 32].into(),
        statistics_length: body.len() as u64,
        ..v1::EpochResult::default()
    };
    deliver(&coordinator, epoch, &run, What::Epoch(what), body).await;
    let memory = peak(&coordinator);
    assert!(memory < 300, "{memory} MiB for bodies of {} MiB", ITEMS >> 20);
}

/// Makes a call, and reads nothing of the reply. Returns whether there is one.
async fn ask_and_read_nothing(
    client: h2::client::SendRequest<Bytes>,
    call: &str,
    message: Bytes,
) -> (bool, h2::RecvStream) {
    let request = http::Request::post(format!("http://atoll/{call}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .unwrap();
    let (response, mut body) = client.ready().await.unwrap().send_request(request, false).unwrap();
    body.send_data(message, true).unwrap();
    let (head, unread) = response.await.unwrap().into_parts();
    (!head.headers.contains_key("grpc-status"), unread)
}

#[tokio::test]
async fn replies_that_are_not_read_are_bounded() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&["--lease", "1s"]);
    coordinator.submit(LARGE);
    let honest = coordinator.worker(&[]);
    coordinator.wait_for("atoll_results_accepted_total", 16.0);
    honest.kill();
    let mut client = worker(&coordinator.address).await;
    client.join(join("rogue".to_owned())).await.unwrap();
    let request =
        v1::AcquireRequest { worker: "rogue".to_owned(), slots: 64, holding: vec![], wait_milliseconds: 0 };
    let mut granted = 0;
    while granted < 3 {
        granted = client.acquire(request.clone()).await.unwrap().into_inner().grants.len();
    }
    let (acquire, message) = ("atoll.v1.Worker/Acquire", request.encode_to_vec());
    let message: Bytes = [&[0][..], &(message.len() as u32).to_be_bytes(), &message].concat().into();
    let (mut connections, mut unread, mut replies) = (vec![], vec![], 0);
    for _ in 0..4 {
        let stream = TcpStream::connect(&coordinator.address).await.unwrap();
        let handshake = h2::client::Builder::new().initial_window_size(0).handshake(stream);
        let (client, connection) = handshake.await.unwrap();
        connections.push(tokio::spawn(connection));
        let asked =
            join_all((0..200).map(|_| ask_and_read_nothing(client.clone(), acquire, message.clone()))).await;
        replies += asked.iter().filter(|(is_there, _)| *is_there).count();
        unread.extend(asked);
    }
    let memory = peak(&coordinator);
    assert!(memory < MOST_MEMORY, "{memory} MiB for {replies} replies");
    assert!(replies > 8, "{replies} replies");
    drop(unread);
    connections.iter().for_each(tokio::task::JoinHandle::abort);
    assert!(coordinator.page("/readyz").ends_with("ready\n"), "it serves as before");
}

#[tokio::test]
async fn watches_without_a_token_are_bounded() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    wait_until("readiness", || coordinator.page("/readyz").ends_with("ready\n"));
    let (mut connections, mut open, mut replies) = (vec![], vec![], 0);
    // Few enough on each connection that the client does not end it for small frames that are not read.
    for _ in 0..12 {
        let stream = TcpStream::connect(&coordinator.address).await.unwrap();
        let (client, connection) = h2::client::handshake(stream).await.unwrap();
        connections.push(tokio::spawn(connection));
        let (watch, nothing) = ("grpc.health.v1.Health/Watch", Bytes::from_static(&[0; 5]));
        let asked =
            join_all((0..50).map(|_| ask_and_read_nothing(client.clone(), watch, nothing.clone()))).await;
        replies += asked.iter().filter(|(is_there, _)| *is_there).count();
        open.extend(asked);
    }
    assert!((100..=256).contains(&replies), "{replies} of 600");
    drop(open);
    connections.iter().for_each(tokio::task::JoinHandle::abort);
}
