//! Calls and HTTP requests of any bytes: they are rejected or answered, and the coordinator continues.
//!
//! Calls are mutated in three ways: their bytes, the bodies behind a true head, and the fields of a true head. Every few rounds
//! there are another worker and other runs, so that what is mutated meets work that is under way. What was found in the
//! past, and a call of each kind, is in `tests/data/corpus`.

use crate::mutate::{Mutator, corpus, rounds};
use crate::process::{Coordinator, DIGEST, EXPERIMENT, Folder, json};
use archipelago::cell::CellPlan;
use archipelago::job::Job;
use bytes::Bytes;
use evolution::epoch::{self, EpochTask};
use experiment::Plan;
use http::Request;
use prost::Message;
use proto::v1;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Rounds until there are another worker and other runs.
const SPAN: u64 = 20;

const SMALL: &str = r#"
name = "fuzz"
problem = { kind = "onemax", length = 40 }
algorithm = { kind = "ga", population = 20 }
islands = { count = 4 }
migration = { interval = 2, count = 2 }
budget = { generations = 2000 }
checkpoint = { every = 3 }
"#;

const SWEEP: &str = r#"
name = "fuzz-sweep"
problem = { kind = "onemax", length = 20 }
algorithm = { kind = "ga", population = 8 }
islands = { count = 2 }
migration = { interval = 2, count = 1 }
budget = { generations = 4 }
sweep = { repeats = 100, axis = [{ keys = ["algorithm.population"], values = [6, 8] }] }
"#;

/// Two experiments of one epoch each; one takes the champions of the other: a job lies between them.
const STUDY: &str = r#"
name = "fuzz-study"
problem = { kind = "onemax", length = 20 }
algorithm = { kind = "ga", population = 8 }
budget = { generations = 2 }
[study.first]
[study.second]
guests = "first"
"#;

/// A call: its name, and its messages; a stream has several.
type Call = (&'static str, Vec<Vec<u8>>);

/// Calls that do not end what others are about.
fn calls(worker: &str, run: &str) -> Vec<Call> {
    let (worker, run) = (|| worker.to_owned(), run.to_owned());
    let epoch = v1::piece::What::Epoch(v1::EpochPiece { island: 1, epoch: 0 });
    let piece = || Some(v1::Piece { run: run.clone(), what: Some(epoch) });
    let standing = Some(v1::Standing { generation: 100, evaluations: 1000, best: 1.0 });
    let acquire = v1::AcquireRequest {
        worker: worker(),
        slots: 2,
        holding: vec![piece().unwrap()],
        wait_milliseconds: 0,
    };
    let renewal = v1::Renewal { piece: piece(), inputs: vec![1; 32].into(), standing, progress: 7, token: 1 };
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
        v1::SubmitRequest { file: "a.toml".to_owned(), text: SMALL.to_owned(), ..Default::default() };
    let status = v1::StatusRequest { run: run.clone(), known_version: 0, wait_milliseconds: 0 };
    let extend = v1::ExtendRequest { run: run.clone(), budget: "{\"generations\": 5000}".to_owned() };
    let plan = v1::PlanRequest { worker: worker(), run: run.clone() };
    let renew = v1::RenewRequest { worker: worker(), renewals: vec![renewal; 3] };
    let label = v1::LabelRequest {
        run: run.clone(),
        add: vec!["one".to_owned(), "two".to_owned()],
        remove: vec!["three".to_owned()],
    };
    let view = v1::ViewRequest { path: format!("runs/{run}/events?from=0") };
    [
        ("Worker/Join", join(&worker()).encode_to_vec()),
        ("Worker/Acquire", acquire.encode_to_vec()),
        ("Worker/Plan", plan.encode_to_vec()),
        ("Worker/Fetch", fetch.encode_to_vec()),
        ("Worker/Renew", renew.encode_to_vec()),
        ("Worker/Release", release.encode_to_vec()),
        ("Operator/Submit", submit.encode_to_vec()),
        ("Operator/ListRuns", v1::ListRunsRequest { with_disk: true }.encode_to_vec()),
        ("Operator/Status", status.encode_to_vec()),
        ("Operator/Extend", extend.encode_to_vec()),
        ("Operator/View", view.encode_to_vec()),
        ("Operator/Drain", v1::DrainRequest { worker: worker(), drain: false }.encode_to_vec()),
        ("Operator/Pause", v1::PauseRequest { run: run.clone(), paused: false }.encode_to_vec()),
        ("Operator/Label", label.encode_to_vec()),
        ("Operator/Export", v1::ExportRequest { run }.encode_to_vec()),
    ]
    .map(|(name, message)| (name, vec![message]))
    .to_vec()
}

/// Calls after which there is less to do.
fn last_calls(worker: &str, run: &str) -> Vec<Call> {
    let (worker, run) = (|| worker.to_owned(), run.to_owned());
    [
        ("Operator/Drain", v1::DrainRequest { worker: worker(), drain: true }.encode_to_vec()),
        ("Operator/Pause", v1::PauseRequest { run: run.clone(), paused: true }.encode_to_vec()),
        ("Operator/Cancel", v1::CancelRequest { run }.encode_to_vec()),
        (
            "Worker/Leave",
            v1::LeaveRequest { worker: worker(), reason: "done".to_owned(), misconfigured: false }
                .encode_to_vec(),
        ),
    ]
    .map(|(name, message)| (name, vec![message]))
    .to_vec()
}

fn join(worker: &str) -> v1::JoinRequest {
    v1::JoinRequest {
        worker: worker.to_owned(),
        name: worker.to_owned(),
        version: "1".to_owned(),
        semantics: experiment::SEMANTICS,
        threads: 1,
        ..v1::JoinRequest::default()
    }
}

/// A connection, and what is sent on it.
struct Fuzzer {
    client: h2::client::SendRequest<Bytes>,
    mutator: Mutator,
}

impl Fuzzer {
    /// Sends a call; returns the first message of the reply, which is empty if there is none, or nothing if the coordinator
    /// does not reply.
    async fn call(&self, name: &str, messages: &[Vec<u8>]) -> Option<Bytes> {
        let mut client = self.client.clone().ready().await.ok()?;
        let request = Request::post(format!("http://atoll/atoll.v1.{name}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())
            .unwrap();
        let (response, mut stream) = client.send_request(request, false).ok()?;
        for message in messages {
            let framed = [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat();
            // It may have refused the call by now.
            let _ = stream.send_data(framed.into(), false);
        }
        let _ = stream.send_data(Bytes::new(), true);
        let mut body = response.await.ok()?.into_body();
        let mut bytes = vec![];
        while let Some(data) = body.data().await {
            let Ok(data) = data else { break };
            let _ = body.flow_control().release_capacity(data.len());
            bytes.extend_from_slice(&data);
        }
        let length = bytes.get(1..5).map_or(0, |length| u32::from_be_bytes(length.try_into().unwrap()));
        Some(bytes.get(5..5 + length as usize).unwrap_or_default().to_vec().into())
    }

    /// Sends a call that is as it should be; returns its reply.
    async fn ask<T: Message + Default>(&self, name: &str, message: &impl Message) -> T {
        let reply = self.call(name, &[message.encode_to_vec()]).await;
        T::decode(reply.unwrap_or_else(|| panic!("{name} is answered"))).unwrap()
    }

    async fn submit(&self, text: &str, seed: u64) -> String {
        let (file, text) = ("fuzz.toml".to_owned(), text.to_owned());
        // The newest comes first: what is left of earlier runs holds up none of their jobs.
        let (seed, priority) = (Some(seed), Some(seed as i32));
        let request = v1::SubmitRequest { file, text, seed, priority, ..Default::default() };
        self.ask::<v1::SubmitReply>("Operator/Submit", &request).await.run
    }

    /// Joins as another worker, submits other runs, and takes work of them: calls that meet it.
    async fn begin_span(&self, span: u64) -> Vec<Call> {
        let worker = format!("fuzz-{span}");
        self.ask::<v1::JoinReply>("Worker/Join", &join(&worker)).await;
        let text = [SWEEP, SMALL, SMALL, STUDY][(span % 4) as usize];
        let run = self.submit(text, span).await;
        assert!(!run.is_empty(), "a run is submitted in span {span}");
        if text == STUDY {
            let mut calls = calls(&worker, &run);
            calls.push(self.begin_job(&worker).await);
            return calls;
        }
        // Pieces of earlier runs, whose workers were quarantined, come first.
        let acquire =
            v1::AcquireRequest { worker: worker.clone(), slots: 64, holding: vec![], wait_milliseconds: 500 };
        let grants = self.ask::<v1::AcquireReply>("Worker/Acquire", &acquire).await.grants;
        let plan = experiment::parse("fuzz.toml", text, Some(span)).unwrap();
        let mut calls = calls(&worker, &run);
        for grant in grants.iter().filter(|grant| grant.piece.as_ref().is_some_and(|piece| piece.run == run))
        {
            calls.extend(deliveries(&worker, &plan, grant));
        }
        calls
    }

    /// Computes what comes before the job of a study; returns a delivery of that job.
    async fn begin_job(&self, worker: &str) -> Call {
        // Later epochs of other runs, which it does not compute: naming them keeps them from being handed out once more.
        let mut holding = vec![];
        for _ in 0..100 {
            let acquire = v1::AcquireRequest {
                worker: worker.to_owned(),
                slots: 1,
                holding: holding.clone(),
                wait_milliseconds: 500,
            };
            for grant in self.ask::<v1::AcquireReply>("Worker/Acquire", &acquire).await.grants {
                let piece = grant.piece.clone().unwrap();
                if let Some(task) = &grant.job {
                    return job_call(worker, piece, task);
                }
                let request = v1::PlanRequest { worker: worker.to_owned(), run: piece.run.clone() };
                let text = self.ask::<v1::PlanReply>("Worker/Plan", &request).await.text;
                // A run that was cancelled meanwhile has no plan any more.
                let Ok(plan) = experiment::parse("fuzz.toml", &text, None) else { continue };
                match deliveries(worker, &plan, &grant).first() {
                    Some((name, messages)) => drop(self.call(name, messages).await),
                    None => holding.push(piece),
                }
            }
        }
        panic!("no job is handed out to {worker}");
    }

    /// One of some calls, with mistakes.
    fn mutated(&mut self, calls: &[Call]) -> Call {
        let (name, messages) = self.mutator.one_of(calls).clone();
        let all: Vec<Vec<u8>> = calls.iter().flat_map(|(_, messages)| messages.clone()).collect();
        // Mostly the call itself, so that it is nearly right.
        let near = |message: &Vec<u8>| [vec![message.clone(); all.len()], all.clone()].concat();
        let way = self.mutator.below(3);
        let messages = match (messages.as_slice(), way) {
            ([head, body], 0) => match reworked(name, head, body, &mut self.mutator) {
                Some(messages) => messages,
                None => messages,
            },
            ([head, body], 1) => vec![head.clone(), self.mutator.mutated(&near(body))],
            _ => messages.iter().map(|message| self.mutator.mutated(&near(message))).collect(),
        };
        (name, messages)
    }
}

/// What a worker delivers of a grant, and keeps from inside of it: calls of a head and one chunk.
fn deliveries(worker: &str, plan: &Plan, grant: &v1::Grant) -> Vec<Call> {
    let piece = grant.piece.clone().unwrap();
    let head = |what| v1::CompleteHead {
        worker: worker.to_owned(),
        piece: Some(piece.clone()),
        milliseconds: 1,
        what: Some(what),
        slots: 1,
    };
    match (plan, piece.what.unwrap()) {
        (Plan::Single(experiment), v1::piece::What::Epoch(v1::EpochPiece { island, epoch: 0 })) => {
            let wire = grant.task.clone().unwrap();
            let task = EpochTask { island, epoch: 0, until: wire.until, state: None, packets: vec![] };
            let outcome = epoch::run(&*experiment.evolver(), &task).unwrap();
            let statistics = codec::encode(&outcome.statistics).unwrap();
            let standing = Some((&outcome.standing).into());
            let result = v1::EpochResult {
                inputs: wire.inputs.clone(),
                digest: Bytes::copy_from_slice(&outcome.digest.0),
                standing,
                state_length: outcome.state.len() as u64,
                departure_length: outcome.departure.len() as u64,
                statistics_length: statistics.len() as u64,
            };
            let complete = head(v1::complete_head::What::Epoch(result));
            let checkpoint = v1::CheckpointHead {
                worker: worker.to_owned(),
                piece: Some(piece.clone()),
                inputs: wire.inputs,
                standing,
                length: outcome.state.len() as u64,
            };
            let kept = checkpoint_call(checkpoint, &outcome.state);
            vec![complete_call(complete, &[outcome.state, outcome.departure, statistics].concat()), kept]
        }
        (Plan::Sweep(_), v1::piece::What::Cells(v1::CellsPiece { first, .. })) => {
            let plan = CellPlan::of(plan.clone()).unwrap();
            let result = plan.compute(first, &[], || false).unwrap().unwrap();
            let body = codec::encode(&vec![(first, result)]).unwrap();
            let what = v1::complete_head::What::Cells(v1::CellsResult { length: body.len() as u64 });
            vec![complete_call(head(what), &body)]
        }
        _ => vec![],
    }
}

/// The delivery of a job.
fn job_call(worker: &str, piece: v1::Piece, task: &v1::JobTask) -> Call {
    let job: Job = codec::decode(&task.job).unwrap();
    let inputs: Vec<Bytes> = task.inputs.iter().map(|input| input.inline.clone().unwrap()).collect();
    let body = codec::encode(&job.compute(&inputs).unwrap()).unwrap();
    let result = v1::JobResult { inputs: task.inputs_digest.clone(), length: body.len() as u64 };
    let head = v1::CompleteHead {
        worker: worker.to_owned(),
        piece: Some(piece),
        milliseconds: 1,
        what: Some(v1::complete_head::What::Job(result)),
        slots: 1,
    };
    complete_call(head, &body)
}

fn complete_call(head: v1::CompleteHead, body: &[u8]) -> Call {
    let chunk = v1::Chunk { bytes: Bytes::copy_from_slice(body) };
    let parts = [v1::complete_part::Part::Head(head), v1::complete_part::Part::Chunk(chunk)];
    let messages = parts.map(|part| v1::CompletePart { part: Some(part) }.encode_to_vec());
    ("Worker/Complete", messages.to_vec())
}

fn checkpoint_call(head: v1::CheckpointHead, body: &[u8]) -> Call {
    let chunk = v1::Chunk { bytes: Bytes::copy_from_slice(body) };
    let parts = [v1::checkpoint_part::Part::Head(head), v1::checkpoint_part::Part::Chunk(chunk)];
    let messages = parts.map(|part| v1::CheckpointPart { part: Some(part) }.encode_to_vec());
    ("Worker/Checkpoint", messages.to_vec())
}

/// A delivery with a mistake in its body, whose head fits to it again: in lengths, and half of the time in its digest.
/// Nothing if it is no such call.
fn reworked(name: &str, head: &[u8], body: &[u8], mutator: &mut Mutator) -> Option<Vec<Vec<u8>>> {
    if name == "Worker/Checkpoint" {
        let v1::checkpoint_part::Part::Head(mut head) = v1::CheckpointPart::decode(head).ok()?.part? else {
            return None;
        };
        let v1::checkpoint_part::Part::Chunk(chunk) = v1::CheckpointPart::decode(body).ok()?.part? else {
            return None;
        };
        let body = mutator.mutated(&[chunk.bytes.to_vec()]);
        head.length = body.len() as u64;
        return Some(checkpoint_call(head, &body).1);
    }
    let v1::complete_part::Part::Head(mut head) = v1::CompletePart::decode(head).ok()?.part? else {
        return None;
    };
    let v1::complete_part::Part::Chunk(chunk) = v1::CompletePart::decode(body).ok()?.part? else {
        return None;
    };
    let whole = chunk.bytes.to_vec();
    let body = match head.what.as_mut()? {
        v1::complete_head::What::Epoch(result) => {
            let (state, rest) = whole.split_at_checked(result.state_length as usize)?;
            let (departure, statistics) = rest.split_at_checked(result.departure_length as usize)?;
            let mut parts = [state.to_vec(), departure.to_vec(), statistics.to_vec()];
            let changed = mutator.below(3);
            parts[changed] = mutator.mutated(&[parts[changed].clone()]);
            let [state, departure, statistics] = &parts;
            result.state_length = state.len() as u64;
            result.departure_length = departure.len() as u64;
            result.statistics_length = statistics.len() as u64;
            if mutator.below(2) == 0 {
                let digest = epoch::outcome_digest(&epoch::left_digest(state, departure), statistics);
                result.digest = Bytes::copy_from_slice(&digest.0);
            }
            parts.concat()
        }
        v1::complete_head::What::Cells(result) => {
            let body = mutator.mutated(&[whole]);
            result.length = body.len() as u64;
            body
        }
        v1::complete_head::What::Job(result) => {
            let body = mutator.mutated(&[whole]);
            result.length = body.len() as u64;
            body
        }
    };
    Some(complete_call(head, &body).1)
}

/// The calls that were committed: a folder for each, by its name.
fn committed() -> Vec<Call> {
    let names = calls("", "").into_iter().chain(last_calls("", "")).map(|(name, _)| name);
    let names = names.chain(["Worker/Complete", "Worker/Checkpoint"]);
    let files = |name: &'static str| {
        let found = corpus(&format!("rpc/{}", name.replace('/', ".")));
        found.into_iter().map(move |message| (name, vec![message]))
    };
    names.flat_map(files).collect()
}

#[test]
fn calls_and_requests_of_any_bytes() {
    let folder = Folder::new();
    folder.file("settings.toml", "max_runs = 10000\n");
    let coordinator = folder.coordinator(&["--config", "settings.toml"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(fuzz(&coordinator));
    requests(&coordinator);
    assert!(coordinator.page("/readyz").ends_with("ready\n"), "it serves as before");
    assert!(!coordinator.said().contains("panicked"), "{}", coordinator.said());
    let coordinator = coordinator.restart();
    let file = folder.file("honest.toml", EXPERIMENT);
    let submitted = json(&coordinator.command(&["submit", &file, "--priority", "1000000", "--json"]));
    let _worker = coordinator.worker(&[]);
    assert_eq!(coordinator.digest(submitted["run"].as_str().unwrap()), *DIGEST, "{}", coordinator.said());
}

/// A connection from an address of its own: what a worker delivers may get its address banned.
async fn connect(coordinator: &Coordinator, span: u64) -> h2::client::SendRequest<Bytes> {
    let own = [127, 1, (span / 250 % 250) as u8, (span % 250 + 1) as u8];
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind((own, 0).into()).unwrap();
    let stream = socket.connect(coordinator.address.parse().unwrap()).await.unwrap();
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn fuzz(coordinator: &Coordinator) {
    let client = connect(coordinator, 0).await;
    let mut fuzzer = Fuzzer { client, mutator: Mutator::new("calls") };
    let committed = committed();
    let mut calls = committed.clone();
    let limit = Duration::from_secs(10);
    for (name, messages) in &committed {
        let answered = tokio::time::timeout(limit, fuzzer.call(name, messages)).await;
        assert!(matches!(answered, Ok(Some(_))), "{name}: {messages:?}\n{}", coordinator.said());
    }
    let mut bodies = 0;
    for round in 0..rounds(600) {
        if round % SPAN == 0 {
            let span = round / SPAN;
            if let Some(before) = span.checked_sub(1) {
                // What ends something comes last, and sometimes not at all.
                let last = last_calls(&format!("fuzz-{before}"), "fuzz");
                let (name, messages) = fuzzer.mutator.one_of(&last).clone();
                assert!(fuzzer.call(name, &messages).await.is_some(), "{name} is answered");
            }
            fuzzer.client = connect(coordinator, span).await;
            calls = fuzzer.begin_span(span).await;
            bodies += calls.iter().filter(|(_, messages)| messages.len() > 1).count();
            calls.extend(committed.iter().cloned());
        }
        let (name, messages) = fuzzer.mutated(&calls);
        let answered = tokio::time::timeout(limit, fuzzer.call(name, &messages)).await;
        let said = || coordinator.said();
        assert!(matches!(answered, Ok(Some(_))), "{name} in round {round}: {messages:?}\n{}", said());
    }
    assert!(bodies as u64 > rounds(600) / SPAN, "only {bodies} deliveries were there to be changed");
}

/// HTTP requests of any bytes.
fn requests(coordinator: &Coordinator) {
    let written = [
        "GET /metrics HTTP/1.1\r\nHost: atoll\r\nAuthorization: Bearer x\r\nConnection: close\r\n\r\n",
        "GET /readyz HTTP/1.0\r\n\r\n",
        "POST /healthz HTTP/1.1\r\nHost: atoll\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
        "GET /../../etc/passwd?x=%00 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ];
    let mut requests: Vec<Vec<u8>> = written.iter().map(|request| request.as_bytes().to_vec()).collect();
    requests.extend(corpus("http"));
    let mut mutator = Mutator::new("requests");
    for _ in 0..rounds(200) {
        let request = mutator.mutated(&requests);
        let mut stream = TcpStream::connect(&coordinator.http).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let _ = stream.write_all(&request).and_then(|()| stream.shutdown(std::net::Shutdown::Write));
        let _ = stream.read(&mut [0; 1024]);
    }
}
