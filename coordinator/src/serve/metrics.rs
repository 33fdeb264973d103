//! The metrics of a coordinator, in the `OpenMetrics` text format that Prometheus reads.

use super::worker_api::Front;
use crate::cluster::Cluster;
use crate::histogram::Histogram;
use crate::state::ClusterState;
use crate::state::queue::RunState;
use crate::store_watch::Measured;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt;

/// What a page of metrics is.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The page. `expires` is the end of the certificate, if there is one.
pub(crate) fn page(front: &Front, expires: Option<u64>) -> String {
    let mut families = Families::default();
    if let Some(cluster) = front.get() {
        families.of_cluster(cluster);
    }
    let calls = front.call_times().all();
    families.histograms("atoll_call_seconds", "Time of each call, until its answer begins", "call", calls);
    let name = "atoll_certificate_expiry_timestamp_seconds";
    families.add(name, "When the certificate expires, in seconds since 1970", MetricType::Gauge);
    if let Some(expires) = expires {
        families.sample(None, expires);
    }
    families.of_process();
    let mut registry = Registry::default();
    registry.register_collector(Box::new(families));
    let mut page = String::new();
    text::encode(&mut page, &registry).expect("writing into a string does not fail");
    page
}

/// Metrics as they are at one moment.
#[derive(Debug, Default)]
struct Families(Vec<Family>);

#[derive(Debug)]
struct Family {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    samples: Vec<Sample>,
}

/// One value, with its label if it has one.
#[derive(Debug)]
struct Sample {
    label: Option<(&'static str, String)>,
    value: Value,
}

#[derive(Debug)]
enum Value {
    Count(u64),
    Number(f64),
    Times(Histogram),
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<usize> for Value {
    fn from(count: usize) -> Self {
        Self::Count(count as u64)
    }
}

impl From<Histogram> for Value {
    fn from(times: Histogram) -> Self {
        Self::Times(times)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl Families {
    fn add(&mut self, name: &'static str, help: &'static str, kind: MetricType) {
        self.0.push(Family { name, help, kind, samples: vec![] });
    }

    /// A sample of the family that was added last.
    fn sample(&mut self, label: Option<(&'static str, String)>, value: impl Into<Value>) {
        let family = self.0.last_mut().expect("a family is added first");
        family.samples.push(Sample { label, value: value.into() });
    }

    fn gauge(&mut self, name: &'static str, help: &'static str, value: impl Into<Value>) {
        self.add(name, help, MetricType::Gauge);
        self.sample(None, value);
    }

    /// `name` is without the `_total` that each counter ends with.
    fn counter(&mut self, name: &'static str, help: &'static str, value: impl Into<Value>) {
        self.add(name, help, MetricType::Counter);
        self.sample(None, value);
    }

    fn histograms(
        &mut self,
        name: &'static str,
        help: &'static str,
        label: &'static str,
        times: impl IntoIterator<Item = (&'static str, Histogram)>,
    ) {
        self.add(name, help, MetricType::Histogram);
        for (which, times) in times {
            self.sample(Some((label, which.to_owned())), times);
        }
    }

    fn of_cluster(&mut self, cluster: &Cluster) {
        cluster.look(|state| self.of_state(state));
        self.of_store(cluster.store_watch().measure());
    }

    fn of_state(&mut self, state: &ClusterState) {
        self.gauge("atoll_workers", "Workers that have joined", state.workers.count());
        self.gauge("atoll_threads", "Threads of all workers", state.workers.threads());
        let demand = state.demand();
        self.gauge("atoll_pieces_ready", "Pieces of work that no worker has yet", demand.ready);
        self.gauge("atoll_pieces_running", "Pieces of work that workers have", demand.running);
        self.gauge("atoll_workers_wanted", "Workers that the pieces could keep busy", demand.workers);
        let counters = &state.counters;
        for (name, help, value) in [
            ("atoll_grants", "Pieces of work handed out", counters.granted),
            ("atoll_hedges", "Pieces handed out a second time to an idle worker", counters.hedged),
            ("atoll_leases_expired", "Leases that ran out", counters.expired),
            ("atoll_results_accepted", "Results that were kept", counters.accepted),
            ("atoll_results_repeated", "Results that were there already", counters.repeated),
            ("atoll_results_unneeded", "Results that nobody needed", counters.unneeded),
            ("atoll_failures", "Pieces that a worker could not do", counters.failures),
            ("atoll_workers_quarantined", "Workers whose results cannot be trusted", counters.quarantined),
            ("atoll_checkpoints", "Checkpoints inside epochs", counters.checkpoints),
            ("atoll_workers_forgotten", "Workers that fell silent", counters.forgotten),
            ("atoll_store_errors", "Writes that the store did not do", counters.store_errors),
            (
                "atoll_pieces_stalled",
                "Pieces that made no progress for far longer than usual",
                counters.stalled,
            ),
            ("atoll_audits", "Results that were computed again and are right", counters.audited),
            ("atoll_audits_failed", "Results that were computed again and are wrong", counters.audits_failed),
            ("atoll_unaudited", "Results that were to be audited and could not be", counters.unaudited),
            ("atoll_retractions", "Times that results of a run were taken back", counters.retracted),
        ] {
            self.counter(name, help, value);
        }
        let help = "Time of each piece of work, from its first grant to its result";
        self.add("atoll_piece_seconds", help, MetricType::Histogram);
        self.sample(None, state.leases.times().clone());
        self.add("atoll_build", "The version of the coordinator", MetricType::Info);
        self.sample(Some(("version", state.rules.version.clone())), 1_u64);
        self.of_runs(state);
    }

    fn of_runs(&mut self, state: &ClusterState) {
        let mut counts = [("active", 0_u64), ("paused", 0), ("finished", 0), ("cancelled", 0), ("failed", 0)];
        for (_, run) in state.queue.all() {
            counts[state_number(run)].1 += 1;
        }
        self.add("atoll_runs", "Runs by state", MetricType::Gauge);
        for (state, count) in counts {
            self.sample(Some(("state", state.to_owned())), count);
        }
        let help = "Generation of the slowest island, or cells done";
        self.of_open_runs(state, "atoll_run_generation", help, |standing| standing.generation as f64);
        let help = "Evaluations of all islands";
        self.of_open_runs(state, "atoll_run_evaluations", help, |standing| standing.evaluations as f64);
        let help = "Fitness of the best champion";
        self.of_open_runs(state, "atoll_run_best_fitness", help, |standing| standing.best);
        self.add("atoll_run_leases", "Leases that are out", MetricType::Gauge);
        for run in state.queue.active() {
            let leases = state.leases.count(&run);
            self.sample(Some(("run", run)), leases);
        }
    }

    fn of_open_runs(
        &mut self,
        state: &ClusterState,
        name: &'static str,
        help: &'static str,
        value: impl Fn(&proto::v1::Standing) -> f64,
    ) {
        self.add(name, help, MetricType::Gauge);
        for run in state.queue.active() {
            let standing = state.status(&run).ok().and_then(|status| status.standing);
            if let Some(number) = standing.as_ref().map(&value).filter(|number| number.is_finite()) {
                self.sample(Some(("run", run)), number);
            }
        }
    }

    fn of_store(&mut self, measured: Measured) {
        let Measured { pending, oldest, since_durable, histogram } = measured;
        let help = "Writes that the store has not done yet";
        self.gauge("atoll_store_writes_pending", help, pending);
        let help = "How long the store has taken for the oldest of them so far";
        self.gauge("atoll_store_oldest_write_seconds", help, oldest.as_secs_f64());
        let help = "Time since the store last completed a write, or since the start";
        self.gauge("atoll_store_last_write_seconds", help, since_durable.as_secs_f64());
        self.add("atoll_store_write_seconds", "Time of each write", MetricType::Histogram);
        self.sample(None, histogram);
    }

    /// What every process has, by the names that Prometheus' own clients use.
    fn of_process(&mut self) {
        let Some(process) = ProcessUse::read() else { return };
        self.counter("process_cpu_seconds", "Processor time", process.cpu_seconds);
        self.gauge("process_resident_memory_bytes", "Resident memory", process.resident_bytes);
        self.gauge("process_open_fds", "Open file descriptors", process.open_files);
    }
}

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for Family { name, help, kind, samples } in &self.0 {
            let mut family = encoder.encode_descriptor(name, help, None, *kind)?;
            for Sample { label, value } in samples {
                match label {
                    None => value.encode(&mut family, *kind)?,
                    Some((key, which)) => {
                        let label = [(*key, which.as_str())];
                        if matches!(kind, MetricType::Info) {
                            family.encode_info(&label)?;
                        } else {
                            value.encode(&mut family.encode_family(&label)?, *kind)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

impl Value {
    fn encode(&self, encoder: &mut MetricEncoder<'_>, kind: MetricType) -> fmt::Result {
        let is_counter = matches!(kind, MetricType::Counter);
        match self {
            Self::Count(count) if is_counter => encoder.encode_counter::<NoLabelSet, _, f64>(count, None),
            Self::Count(count) => encoder.encode_gauge(count),
            Self::Number(number) if is_counter => encoder.encode_counter::<NoLabelSet, _, f64>(number, None),
            Self::Number(number) => encoder.encode_gauge(number),
            Self::Times(times) => {
                let buckets: Vec<(f64, u64)> = times.buckets().collect();
                encoder.encode_histogram::<NoLabelSet>(times.sum(), times.count(), &buckets, None)
            }
        }
    }
}

/// What this process uses, as Linux tells.
struct ProcessUse {
    cpu_seconds: f64,
    resident_bytes: u64,
    open_files: usize,
}

impl ProcessUse {
    fn read() -> Option<Self> {
        // Ticks are a hundredth of a second and pages 4 KiB on every Linux that Atoll is built for.
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        let cpu_seconds = (number(11)? + number(12)?) as f64 / 100.0;
        let open_files = std::fs::read_dir("/proc/self/fd").ok()?.count();
        Some(Self { cpu_seconds, resident_bytes: number(21)? * 4096, open_files })
    }
}

fn state_number(state: &RunState) -> usize {
    match state {
        RunState::Active => 0,
        RunState::Paused => 1,
        RunState::Finished(_) => 2,
        RunState::Cancelled => 3,
        RunState::Failed(_) => 4,
    }
}
