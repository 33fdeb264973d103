//! Calls and HTTP requests of any bytes: they are refused or answered, and the coordinator goes on.

use crate::mutate::{Mutator, rounds};
use crate::process::{Coordinator, EXPERIMENT, Folder};
use bytes::Bytes;
use http::Request;
use prost::Message;
use proto::v1;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Calls as workers and operators make them.
fn calls(run: &str) -> Vec<(&'static str, Vec<u8>)> {
    let worker = || "fuzz".to_owned();
    let run = run.to_owned();
    let epoch = v1::piece::What::Epoch(v1::EpochPiece { island: 1, epoch: 0 });
    let piece = || Some(v1::Piece { run: run.clone(), what: Some(epoch) });
    let standing = Some(v1::Standing { generation: 100, evaluations: 1000, best: 1.0 });
    let join = v1::JoinRequest {
        worker: worker(),
        name: worker(),
        version: "1".to_owned(),
        semantics: experiment::SEMANTICS,
        threads: 1,
    };
    let acquire = v1::AcquireRequest {
        worker: worker(),
        slots: 2,
        holding: vec![piece().unwrap()],
        wait_milliseconds: 0,
    };
    let renewal = v1::Renewal { piece: piece(), inputs: vec![1; 32].into(), standing, progress: 7, token: 1 };
    let result = v1::EpochResult {
        inputs: vec![0; 32].into(),
        digest: vec![1; 32].into(),
        standing,
        state_length: 3,
        departure_length: 0,
        statistics_length: 0,
    };
    let what = Some(v1::complete_head::What::Epoch(result));
    let head = v1::CompleteHead { worker: worker(), piece: piece(), milliseconds: 1, what, slots: 1 };
    let complete = v1::CompletePart { part: Some(v1::complete_part::Part::Head(head)) };
    let head = v1::CheckpointHead {
        worker: worker(),
        piece: piece(),
        inputs: vec![0; 32].into(),
        standing,
        length: 3,
    };
    let checkpoint = v1::CheckpointPart { part: Some(v1::checkpoint_part::Part::Head(head)) };
    let fetch = v1::FetchRequest { worker: worker(), piece: piece(), digest: vec![3; 32].into() };
    let release = v1::ReleaseRequest {
        worker: worker(),
        piece: piece(),
        failure: "no".to_owned(),
        token: 1,
        unfit: false,
        lacks_program: false,
    };
    let submit =
        v1::SubmitRequest { file: "a.toml".to_owned(), text: EXPERIMENT.to_owned(), ..Default::default() };
    let status = v1::StatusRequest { run: run.clone(), known_version: 0, wait_milliseconds: 0 };
    let extend = v1::ExtendRequest { run: run.clone(), budget: "{\"generations\": 5000}".to_owned() };
    vec![
        ("Worker/Join", join.encode_to_vec()),
        ("Worker/Acquire", acquire.encode_to_vec()),
        ("Worker/Plan", v1::PlanRequest { worker: worker(), run: run.clone() }.encode_to_vec()),
        ("Worker/Fetch", fetch.encode_to_vec()),
        ("Worker/Renew", v1::RenewRequest { worker: worker(), renewals: vec![renewal; 3] }.encode_to_vec()),
        ("Worker/Complete", complete.encode_to_vec()),
        ("Worker/Checkpoint", checkpoint.encode_to_vec()),
        ("Worker/Release", release.encode_to_vec()),
        ("Worker/Leave", v1::LeaveRequest { worker: worker(), reason: "done".to_owned() }.encode_to_vec()),
        ("Operator/Submit", submit.encode_to_vec()),
        ("Operator/ListRuns", v1::ListRunsRequest {}.encode_to_vec()),
        ("Operator/Status", status.encode_to_vec()),
        ("Operator/Pause", v1::PauseRequest { run: run.clone(), paused: true }.encode_to_vec()),
        ("Operator/Cancel", v1::CancelRequest { run: run.clone() }.encode_to_vec()),
        ("Operator/Extend", extend.encode_to_vec()),
        ("Operator/View", v1::ViewRequest { path: format!("runs/{run}/events?from=0") }.encode_to_vec()),
        ("Operator/Drain", v1::DrainRequest { worker: worker(), drain: true }.encode_to_vec()),
        ("Operator/Export", v1::ExportRequest { run }.encode_to_vec()),
    ]
}

/// Sends a call whose message is these bytes; true if the coordinator answers it.
async fn call(client: &h2::client::SendRequest<Bytes>, name: &str, message: &[u8]) -> bool {
    let Ok(mut client) = client.clone().ready().await else { return false };
    let request = Request::post(format!("http://atoll/atoll.v1.{name}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .unwrap();
    let Ok((response, mut body)) = client.send_request(request, false) else { return false };
    let framed = [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat();
    let _ = body.send_data(framed.into(), true);
    response.await.is_ok()
}

#[test]
fn calls_and_requests_of_any_bytes() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    let run = coordinator.submit(EXPERIMENT);
    let corpus = calls(&run);
    let messages: Vec<Vec<u8>> = corpus.iter().map(|(_, message)| message.clone()).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(&coordinator.address).await.unwrap();
        let (client, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        for (name, message) in &corpus {
            assert!(call(&client, name, message).await, "{name} is answered");
        }
        let mut mutator = Mutator::new("calls");
        for round in 0..rounds(600) {
            let (name, message) = mutator.one_of(&corpus);
            let mut near = vec![message.clone(); messages.len()];
            near.extend(messages.iter().cloned());
            let message = mutator.mutated(&near);
            let answered = tokio::time::timeout(Duration::from_secs(10), call(&client, name, &message)).await;
            assert_eq!(answered, Ok(true), "{name} in round {round}: {message:?}\n{}", coordinator.said());
        }
    });
    requests(&coordinator);
    assert!(coordinator.page("/readyz").ends_with("ready\n"), "it serves as before");
    assert!(!coordinator.said().contains("panicked"), "{}", coordinator.said());
}

/// HTTP requests of any bytes.
fn requests(coordinator: &Coordinator) {
    let corpus = [
        "GET /metrics HTTP/1.1\r\nHost: atoll\r\nAuthorization: Bearer x\r\nConnection: close\r\n\r\n",
        "GET /readyz HTTP/1.0\r\n\r\n",
        "POST /healthz HTTP/1.1\r\nHost: atoll\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
        "GET /../../etc/passwd?x=%00 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ];
    let corpus = corpus.map(|request| request.as_bytes().to_vec());
    let mut mutator = Mutator::new("requests");
    for _ in 0..rounds(200) {
        let request = mutator.mutated(&corpus);
        let mut stream = TcpStream::connect(&coordinator.http).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let _ = stream.write_all(&request).and_then(|()| stream.shutdown(std::net::Shutdown::Write));
        let _ = stream.read(&mut [0; 1024]);
    }
}
