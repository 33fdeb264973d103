//! What stands for the exporter of traces without the feature `otlp`: its absence, in words.

use crate::cluster::Cluster;
use std::convert::Infallible;

/// Why there can be no traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a program that can export traces, found one without: build it with `--features otlp`")]
pub struct TracesError;

/// Where traces go: nowhere.
#[derive(Clone, Debug)]
pub struct Traces(Infallible);

impl Traces {
    /// There are none.
    pub fn new(_: &str, _: Option<Vec<u8>>, _: f64) -> Result<Self, TracesError> {
        Err(TracesError)
    }
}

/// Never there.
pub(crate) struct Exporter(Infallible);

impl Exporter {
    pub(crate) fn start(_: &Cluster, traces: &Traces) -> Self {
        match traces.0 {}
    }

    #[allow(clippy::unused_async, reason = "the real one waits for its last reply")]
    pub(crate) async fn finish(self) {
        match self.0 {}
    }
}
