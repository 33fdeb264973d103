//! Traces of epochs, sent to a collector by the OpenTelemetry protocol (OTLP over gRPC).
//!
//! The few messages of the protocol that are needed are described here, by the numbers of its `.proto` files; a client library
//! would be larger than the rest of this crate.

use crate::cluster::Cluster;
use crate::state::Trace;
use prost::Message;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

/// How often finished traces are sent.
const EVERY: Duration = Duration::from_secs(1);
/// How long a collector may take for some of them.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most epochs of one message.
const MOST: usize = 512;
/// How long the last ones may take, of a coordinator that ends.
const LAST: Duration = Duration::from_secs(2);
/// How often a collector that does not respond is logged.
const TOLD: Duration = Duration::from_mins(1);
const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// Why there can be no traces.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TracesError {
    /// The address.
    #[error("expected http://HOST:PORT or https://HOST:PORT of a collector (OTLP over gRPC), found `{0}`")]
    Endpoint(String),
    /// No authority is given.
    #[error("expected the certificate authority of the collector (`otlp_ca`) for https://, found none")]
    NoAuthority,
    /// The share.
    #[error("expected a share from 0 to 1, found `{0}`")]
    Share(String),
}

/// Where traces go, and of how many epochs.
#[derive(Clone, Debug)]
pub struct Traces {
    endpoint: Endpoint,
    share: f64,
}

impl Traces {
    /// Sends a share of all epochs to a collector, whose certificate this authority (PEM) has signed.
    pub fn new(url: &str, authority: Option<Vec<u8>>, share: f64) -> Result<Self, TracesError> {
        let wrong = || TracesError::Endpoint(url.to_owned());
        let is_encrypted = url.starts_with("https://");
        if !is_encrypted && !url.starts_with("http://") {
            return Err(wrong());
        }
        if !(0.0..=1.0).contains(&share) {
            return Err(TracesError::Share(share.to_string()));
        }
        let mut endpoint = Endpoint::from_shared(url.to_owned()).map_err(|_| wrong())?;
        if is_encrypted {
            let authority = Certificate::from_pem(authority.ok_or(TracesError::NoAuthority)?);
            let tls = ClientTlsConfig::new().ca_certificate(authority);
            endpoint = endpoint.tls_config(tls).map_err(|_| wrong())?;
        }
        let endpoint = endpoint.connect_timeout(PATIENCE / 2).timeout(PATIENCE);
        Ok(Self { endpoint, share })
    }
}

/// Sends traces until it is stopped.
pub(crate) struct Exporter {
    task: JoinHandle<()>,
    last: watch::Sender<bool>,
}

impl Exporter {
    pub(crate) fn start(cluster: &Cluster, traces: &Traces) -> Self {
        let (last, is_last) = watch::channel(false);
        cluster.change_spans(|spans| spans.turn_on(traces.share));
        let channel = traces.endpoint.connect_lazy();
        Self { task: tokio::spawn(export(cluster.clone(), channel, is_last)), last }
    }

    /// Sends what is left, as far as the collector takes it at once.
    pub(crate) async fn finish(mut self) {
        let _ = self.last.send(true);
        let _ = tokio::time::timeout(LAST, &mut self.task).await;
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn export(cluster: Cluster, channel: Channel, mut is_last: watch::Receiver<bool>) {
    let resource = resource(&cluster);
    let mut told: Option<tokio::time::Instant> = None;
    loop {
        let ends = tokio::time::timeout(EVERY, is_last.wait_for(|last| *last)).await.is_ok();
        let traces = cluster.change_spans(crate::state::Spans::take);
        let mut left = traces.len();
        for batch in traces.chunks(MOST) {
            let sent = send(channel.clone(), message(&resource, batch)).await;
            if let Err(status) = sent {
                // What comes meanwhile waits in the state, as far as there is room.
                cluster.change_spans(|spans| spans.note(left, false));
                if told.is_none_or(|told| told.elapsed() >= TOLD) {
                    tracing::warn!(reason = status.message(), traces = left, "traces cannot be exported");
                    told = Some(tokio::time::Instant::now());
                }
                break;
            }
            left -= batch.len();
            cluster.change_spans(|spans| spans.note(batch.len(), true));
        }
        if ends {
            return;
        }
    }
}

async fn send(channel: Channel, message: ExportRequest) -> Result<(), Status> {
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let codec = ProstCodec::<ExportRequest, ExportReply>::default();
    client.unary(Request::new(message), PathAndQuery::from_static(EXPORT), codec).await?;
    Ok(())
}

/// Who sends.
fn resource(cluster: &Cluster) -> Resource {
    let (version, nonce) = cluster.look(|state| (state.rules.version.clone(), state.rules.nonce.0));
    let attributes = vec![
        text("service.name", "atoll-coordinator"),
        text("service.version", &version),
        text("service.instance.id", &format!("{nonce:032x}")),
    ];
    Resource { attributes }
}

fn message(resource: &Resource, traces: &[Trace]) -> ExportRequest {
    let spans = traces.iter().flat_map(spans).collect();
    let scope = Scope { name: "atoll".to_owned() };
    let resource = Some(resource.clone());
    ExportRequest {
        resources: vec![OfResource { resource, scopes: vec![OfScope { scope: Some(scope), spans }] }],
    }
}

/// The spans of an epoch: itself, each lease, and the time until it was durable.
fn spans(trace: &Trace) -> Vec<Span> {
    let (id, root) = (&trace.id.0[..16], &trace.id.0[16..24]);
    let begun = trace.begun;
    let unix =
        |elapsed: Duration| begun.unix * 1_000_000 + elapsed.saturating_sub(begun.elapsed).as_nanos() as u64;
    let span = |number: u64, name: &str, (start, end): (Duration, Duration), attributes| {
        // The spans of one epoch are counted; two coordinators number by what they have granted.
        let own = (u64::from_le_bytes(root.try_into().expect("they are 8 bytes")) ^ number).to_le_bytes();
        let is_root = number == 0;
        Span {
            trace_id: id.to_vec(),
            id: own.to_vec(),
            parent_span_id: if is_root { vec![] } else { root.to_vec() },
            name: name.to_owned(),
            kind: 1,
            start: unix(start),
            end: unix(end),
            attributes,
        }
    };
    let mut all = Vec::with_capacity(trace.leases.len() + 2);
    let attributes = vec![
        text("atoll.run", &trace.run),
        number("atoll.island", u64::from(trace.island)),
        number("atoll.epoch", trace.epoch),
    ];
    all.push(span(0, "epoch", (begun.elapsed, trace.durable), attributes));
    for lease in &trace.leases {
        let attributes = vec![text("atoll.worker", &lease.name), text("atoll.outcome", lease.outcome)];
        // Tokens are counted from 1 or far above.
        all.push(span(lease.token.max(2), "compute", (lease.granted, lease.ended), attributes));
    }
    all.push(span(1, "store", (trace.accepted, trace.durable), vec![]));
    all
}

fn text(key: &str, value: &str) -> KeyValue {
    let value = Some(AnyValue { value: Some(any_value::Value::Text(value.to_owned())) });
    KeyValue { key: key.to_owned(), value }
}

fn number(key: &str, value: u64) -> KeyValue {
    let value = Some(AnyValue { value: Some(any_value::Value::Number(value as i64)) });
    KeyValue { key: key.to_owned(), value }
}

#[derive(Clone, PartialEq, Message)]
struct ExportRequest {
    #[prost(message, repeated, tag = "1")]
    resources: Vec<OfResource>,
}

#[derive(Clone, PartialEq, Message)]
struct ExportReply {}

#[derive(Clone, PartialEq, Message)]
struct OfResource {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scopes: Vec<OfScope>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct OfScope {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct Span {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    /// 1 is internal.
    #[prost(int32, tag = "6")]
    kind: i32,
    /// Nanoseconds since 1970.
    #[prost(fixed64, tag = "7")]
    start: u64,
    #[prost(fixed64, tag = "8")]
    end: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "any_value::Value", tags = "1, 3")]
    value: Option<any_value::Value>,
}

mod any_value {
    use prost::Oneof;

    #[derive(Clone, PartialEq, Oneof)]
    pub(super) enum Value {
        #[prost(string, tag = "1")]
        Text(String),
        #[prost(int64, tag = "3")]
        Number(i64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_address_of_a_collector_and_a_share_will_do() {
        let error = |url: &str, share| Traces::new(url, None, share).map(|_| ()).unwrap_err();
        assert!(Traces::new("http://127.0.0.1:4317", None, 1.0).is_ok());
        assert_eq!(error("127.0.0.1:4317", 1.0), TracesError::Endpoint("127.0.0.1:4317".to_owned()));
        assert_eq!(error("http://", 1.0), TracesError::Endpoint("http://".to_owned()));
        assert_eq!(error("https://collector:4317", 1.0), TracesError::NoAuthority);
        assert_eq!(error("http://collector:4317", 2.0), TracesError::Share("2".to_owned()));
    }
}
