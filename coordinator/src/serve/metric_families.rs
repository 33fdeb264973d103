//! A page of metrics, in the `OpenMetrics` text format that Prometheus reads.

use crate::histogram::Histogram;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt;

/// What a page of metrics is.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Metrics as they are at one moment.
#[derive(Debug, Default)]
pub struct MetricFamilies(Vec<Family>);

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

/// What a metric counts or measures.
#[derive(Debug)]
pub(crate) enum Value {
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

impl MetricFamilies {
    /// The page of these metrics.
    pub fn page(self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut page = String::new();
        text::encode(&mut page, &registry).expect("writing into a string does not fail");
        page
    }

    pub(crate) fn add(&mut self, name: &'static str, help: &'static str, kind: MetricType) {
        self.0.push(Family { name, help, kind, samples: vec![] });
    }

    /// A sample of the family that was added last.
    pub(crate) fn sample(&mut self, label: Option<(&'static str, String)>, value: impl Into<Value>) {
        let family = self.0.last_mut().expect("a family is added first");
        family.samples.push(Sample { label, value: value.into() });
    }

    /// A number that goes up and down.
    pub fn number(&mut self, name: &'static str, help: &'static str, value: f64) {
        self.gauge(name, help, value);
    }

    /// A count that only grows; `name` is without the `_total` that each counter ends with.
    pub fn total(&mut self, name: &'static str, help: &'static str, value: u64) {
        self.counter(name, help, value);
    }

    pub(crate) fn gauge(&mut self, name: &'static str, help: &'static str, value: impl Into<Value>) {
        self.add(name, help, MetricType::Gauge);
        self.sample(None, value);
    }

    /// `name` is without the `_total` that each counter ends with.
    pub(crate) fn counter(&mut self, name: &'static str, help: &'static str, value: impl Into<Value>) {
        self.add(name, help, MetricType::Counter);
        self.sample(None, value);
    }

    pub(crate) fn histograms(
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

    /// What every process has, by the names that Prometheus' own clients use.
    pub fn of_process(&mut self) {
        let Some(process) = ProcessUse::read() else { return };
        self.counter("process_cpu_seconds", "Processor time", process.cpu_seconds);
        self.gauge("process_resident_memory_bytes", "Resident memory", process.resident_bytes);
        self.gauge("process_open_fds", "Open file descriptors", process.open_files);
    }
}

impl Collector for MetricFamilies {
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

/// What this process uses, as Linux reports it.
struct ProcessUse {
    cpu_seconds: f64,
    resident_bytes: u64,
    open_files: usize,
}

impl ProcessUse {
    fn read() -> Option<Self> {
        // Ticks are a hundredth of a second on every Linux that Atoll is built for. Pages differ: memory is read in KiB.
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        let cpu_seconds = (number(11)? + number(12)?) as f64 / 100.0;
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kibibytes: u64 = resident.trim().trim_end_matches(" kB").parse().ok()?;
        let open_files = std::fs::read_dir("/proc/self/fd").ok()?.count();
        Some(Self { cpu_seconds, resident_bytes: kibibytes << 10, open_files })
    }
}
