//! Traces of epochs, as a collector receives them: each epoch is one, from its first grant until it is durable.

use crate::process::{Folder, Process, Variables, json, wait_until};
use bytes::Bytes;
use prost::Message;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::net::{TcpListener, TcpStream};

/// 2 islands and 10 epochs.
const EXPERIMENT: &str = "name = \"traced\"\nseed = 1\nproblem = { kind = \"onemax\", length = 50 }\n\
                          algorithm = { kind = \"ga\", population = 50 }\nislands = { count = 2 }\n\
                          migration = { interval = 10, count = 1 }\nbudget = { generations = 100 }\n";

// What a collector reads of `opentelemetry/proto/trace/v1/trace.proto`.
#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(message, repeated, tag = "1")]
    resources: Vec<OfResource>,
}

#[derive(Clone, PartialEq, Message)]
struct OfResource {
    #[prost(message, optional, tag = "1")]
    resource: Option<Attributes>,
    #[prost(message, repeated, tag = "2")]
    scopes: Vec<OfScope>,
}

#[derive(Clone, PartialEq, Message)]
struct Attributes {
    #[prost(message, repeated, tag = "1")]
    all: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
struct OfScope {
    #[prost(message, repeated, tag = "2")]
    spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message)]
struct Span {
    #[prost(bytes = "vec", tag = "1")]
    trace: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    parent: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(fixed64, tag = "7")]
    start: u64,
    #[prost(fixed64, tag = "8")]
    end: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
struct Attribute {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(string, tag = "1")]
    text: String,
    #[prost(int64, tag = "3")]
    number: i64,
}

impl Span {
    fn value(&self, key: &str) -> AnyValue {
        let attribute = self.attributes.iter().find(|attribute| attribute.key == key);
        attribute
            .and_then(|attribute| attribute.value.clone())
            .unwrap_or_else(|| panic!("no {key} in {self:?}"))
    }
}

/// A collector of this process, and what it was sent.
struct Collector {
    url: String,
    received: Arc<Mutex<Vec<Request>>>,
}

impl Collector {
    fn start() -> Self {
        let received = Arc::new(Mutex::new(vec![]));
        let (address, started) = std::sync::mpsc::channel();
        let sink = received.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                address.send(listener.local_addr().unwrap()).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(collect(stream, sink.clone()));
                }
            });
        });
        Self { url: format!("http://{}", started.recv().unwrap()), received }
    }

    fn variables(&self) -> Variables {
        vec![("ATOLL_OTLP".to_owned(), self.url.clone())]
    }
}

/// Answers the calls of a connection.
async fn collect(stream: TcpStream, sink: Arc<Mutex<Vec<Request>>>) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    while let Some(Ok((request, mut reply))) = connection.accept().await {
        let sink = sink.clone();
        tokio::spawn(async move {
            assert_eq!(request.uri().path(), "/opentelemetry.proto.collector.trace.v1.TraceService/Export");
            let mut body = request.into_body();
            let mut bytes = vec![];
            while let Some(part) = body.data().await {
                let part = part.unwrap();
                body.flow_control().release_capacity(part.len()).unwrap();
                bytes.extend_from_slice(&part);
            }
            // A byte that says that it is not compressed, and four for the length.
            sink.lock().unwrap().push(Request::decode(&bytes[5..]).unwrap());
            let head = http::Response::builder().header("content-type", "application/grpc").body(()).unwrap();
            let mut rest = reply.send_response(head, false).unwrap();
            rest.send_data(Bytes::from_static(&[0; 5]), false).unwrap();
            let mut trailers = http::HeaderMap::new();
            trailers.insert("grpc-status", "0".parse().unwrap());
            rest.send_trailers(trailers).unwrap();
        });
    }
}

#[test]
fn every_epoch_is_one_trace_from_its_grant_until_it_is_durable() {
    let (folder, collector) = (Folder::new(), Collector::start());
    let file = folder.file("traced.toml", EXPERIMENT);
    let mut coordinator =
        folder.coordinator_with(&["--run", &file, "--exit-when-done"], collector.variables());
    let mut worker = coordinator.worker(&["--name", "traced-worker"]);
    assert_eq!((worker.ended(), coordinator.process.ended()), (Some(0), Some(0)), "{}", coordinator.said());
    let mut traces: BTreeMap<Vec<u8>, Vec<Span>> = BTreeMap::new();
    for OfResource { resource, scopes } in
        collector.received.lock().unwrap().drain(..).flat_map(|one| one.resources)
    {
        let service = resource.unwrap().all.into_iter().find(|one| one.key == "service.name").unwrap();
        assert_eq!(service.value.unwrap().text, "atoll-coordinator");
        for span in scopes.into_iter().flat_map(|scope| scope.spans) {
            traces.entry(span.trace.clone()).or_default().push(span);
        }
    }
    let mut epochs = vec![];
    for (id, spans) in traces {
        let of = |name: &str| {
            let mut found = spans.iter().filter(|span| span.name == name);
            let span = found.next().unwrap_or_else(|| panic!("no {name} in {spans:?}"));
            assert!(found.next().is_none(), "{spans:?}");
            span
        };
        let [epoch, compute, store] = ["epoch", "compute", "store"].map(of);
        assert!(id.len() == 16 && spans.iter().all(|span| span.id.len() == 8), "{spans:?}");
        assert!(
            epoch.parent.is_empty() && compute.parent == epoch.id && store.parent == epoch.id,
            "{spans:?}"
        );
        assert!(epoch.id != compute.id && compute.id != store.id && store.id != epoch.id, "{spans:?}");
        let times = [epoch.start, compute.start, compute.end, store.start, store.end, epoch.end];
        assert!(times.is_sorted() && times[0] == times[1] && times[4] == times[5], "{times:?}");
        let outcome = [compute.value("atoll.worker").text, compute.value("atoll.outcome").text];
        assert_eq!(outcome, ["traced-worker", "delivered"]);
        assert!(epoch.value("atoll.run").text.starts_with("traced"));
        epochs.push((epoch.value("atoll.island").number, epoch.value("atoll.epoch").number));
    }
    epochs.sort_unstable();
    let all: Vec<(i64, i64)> = (0..2).flat_map(|island| (0..10).map(move |epoch| (island, epoch))).collect();
    assert_eq!(epochs, all);
}

#[test]
fn a_collector_that_is_not_there_delays_nothing_and_is_counted() {
    let folder = Folder::new();
    let endless = EXPERIMENT.replace("generations = 100", "generations = 100000000");
    let file = folder.file("traced.toml", &(endless + "checkpoint = { every = 10 }\n"));
    // There is no process at this port.
    let variables = vec![("ATOLL_OTLP".to_owned(), "http://127.0.0.1:9".to_owned())];
    let coordinator = folder.coordinator_with(&["--run", &file], variables);
    let _worker = coordinator.worker(&[]);
    coordinator.wait_for("atoll_traces_dropped_total", 20.0);
    let accepted = coordinator.metric("atoll_results_accepted_total");
    coordinator.wait_for("atoll_results_accepted_total", accepted + 20.0);
    assert!(coordinator.said().contains("traces cannot be exported"), "{}", coordinator.said());
    let refused = |value: &str, said: &str| {
        let mut command = crate::process::atoll();
        command.args(["coordinator", "--print-config"]).env("ATOLL_OTLP", value).current_dir(folder.path());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(78), "{value}");
        let told = crate::process::text(&output.stderr);
        assert!(told.contains("otlp (environment ATOLL_OTLP): ") && told.contains(said), "{told}");
    };
    refused("collector:4317", "expected http://HOST:PORT");
    refused("https://collector:4317", "`otlp_ca`");
}

/// The processor time that a process has used, also of one that has ended and is not waited for yet.
fn processor_seconds(process: &Process) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.0.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = [11, 12].iter().map(|field| fields[*field].parse::<u64>().unwrap()).sum();
    // The kernel counts in hundredths for everybody.
    ticks as f64 / 100.0
}

/// A run to its end: the processor time of coordinator and worker together, and its digest.
fn cost(variables: Variables, generations: u32) -> (f64, String) {
    let folder = Folder::new();
    let quickstart = include_str!("../../examples/quickstart.toml");
    let line = quickstart.lines().find(|line| line.starts_with("generations = ")).unwrap();
    let file =
        folder.file("quickstart.toml", &quickstart.replace(line, &format!("generations = {generations}")));
    let coordinator = folder.coordinator_with(&["--run", &file, "--exit-when-done"], variables);
    let worker = coordinator.worker(&[]);
    let has_ended = |process: &Process| {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.0.id())).unwrap();
        stat.rsplit(')').next().unwrap().trim_start().starts_with('Z')
    };
    wait_until("the end", || has_ended(&worker) && has_ended(&coordinator.process));
    let seconds = processor_seconds(&worker) + processor_seconds(&coordinator.process);
    let listed = json(&folder.atoll(&["runs", "--json"]));
    (seconds, listed[0]["digest"].as_str().unwrap().to_owned())
}

/// Traces change no result. What they cost is judged by `tests/long traces-cost`, with longer runs of an optimised build.
#[test]
fn what_traces_cost() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (pairs, generations) = (number("ATOLL_TRACES_PAIRS", 1), number("ATOLL_TRACES_GENERATIONS", 500));
    for pair in 0..pairs {
        let mut found = [(0.0, String::new()), (0.0, String::new())];
        // Which of both comes first alternates.
        for which in [pair % 2, 1 - pair % 2] {
            let collector = Collector::start();
            let variables = if which == 1 { collector.variables() } else { vec![] };
            found[which as usize] = cost(variables, generations);
            let received = collector.received.lock().unwrap().len();
            assert_eq!(received > 0, which == 1, "{received} batches of traces");
        }
        let [(without, digest), (with, other)] = found;
        assert_eq!(digest, other);
        println!("without {without:.3} s, with {with:.3} s");
    }
}
