//! The metrics of a coordinator, for Prometheus.

use crate::cluster::Cluster;
use crate::state::ClusterState;
use crate::state::queue::RunState;
use crate::store_watch::Measured;
use std::fmt::Write;

/// The page in Prometheus' text format. `expires` is the end of the certificate, if there is one.
pub(crate) fn page(cluster: &Cluster, expires: Option<u64>) -> String {
    let mut page = cluster.look(page_of);
    page.store(cluster.store_watch().measure());
    let name = "atoll_certificate_expiry_timestamp_seconds";
    page.family(name, "When the certificate expires, in seconds since 1970", "gauge");
    if let Some(expires) = expires {
        page.line(&format_args!("{name} {expires}"));
    }
    page.process();
    page.0
}

fn page_of(state: &ClusterState) -> Page {
    let mut page = Page(String::new());
    let counters = &state.counters;
    page.gauge("atoll_workers", "Workers that have joined", state.workers.count());
    page.gauge("atoll_threads", "Threads of all workers", state.workers.threads());
    let demand = state.demand();
    page.gauge("atoll_pieces_ready", "Pieces of work that no worker has yet", demand.ready);
    page.gauge("atoll_pieces_running", "Pieces of work that workers have", demand.running);
    page.gauge("atoll_workers_wanted", "Workers that the pieces could keep busy", demand.workers);
    for (name, help, value) in [
        ("atoll_grants_total", "Pieces of work handed out", counters.granted),
        ("atoll_hedges_total", "Pieces handed out a second time to an idle worker", counters.hedged),
        ("atoll_leases_expired_total", "Leases that ran out", counters.expired),
        ("atoll_results_accepted_total", "Results that were kept", counters.accepted),
        ("atoll_results_repeated_total", "Results that were there already", counters.repeated),
        ("atoll_results_unneeded_total", "Results that nobody needed", counters.unneeded),
        ("atoll_failures_total", "Pieces that a worker could not do", counters.failures),
        ("atoll_workers_quarantined_total", "Workers whose results cannot be trusted", counters.quarantined),
        ("atoll_checkpoints_total", "Checkpoints inside epochs", counters.checkpoints),
        ("atoll_workers_forgotten_total", "Workers that fell silent", counters.forgotten),
        ("atoll_store_errors_total", "Writes that the store did not do", counters.store_errors),
        (
            "atoll_pieces_stalled_total",
            "Pieces that made no progress for far longer than usual",
            counters.stalled,
        ),
        ("atoll_audits_total", "Results that were computed again and are right", counters.audited),
        (
            "atoll_audits_failed_total",
            "Results that were computed again and are wrong",
            counters.audits_failed,
        ),
        ("atoll_retractions_total", "Times that results of a run were taken back", counters.retracted),
    ] {
        page.family(name, help, "counter");
        page.line(&format_args!("{name} {value}"));
    }
    page.family("atoll_build_info", "The version of the coordinator", "gauge");
    page.line(&format_args!("atoll_build_info{{version=\"{}\"}} 1", state.rules.version));
    page.runs(state);
    page
}

struct Page(String);

impl Page {
    fn family(&mut self, name: &str, help: &str, kind: &str) {
        self.line(&format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
    }

    fn line(&mut self, line: &std::fmt::Arguments<'_>) {
        writeln!(self.0, "{line}").expect("writing into a string does not fail");
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl std::fmt::Display) {
        self.family(name, help, "gauge");
        self.line(&format_args!("{name} {value}"));
    }

    fn store(&mut self, measured: Measured) {
        let Measured { pending, oldest, since_durable, histogram } = measured;
        self.gauge("atoll_store_writes_pending", "Writes that the store has not done yet", pending);
        let help = "How long the store has taken for the oldest of them so far";
        self.gauge("atoll_store_oldest_write_seconds", help, oldest.as_secs_f64());
        let help = "Time since the store last completed a write, or since the start";
        self.gauge("atoll_store_last_write_seconds", help, since_durable.as_secs_f64());
        self.family("atoll_store_write_seconds", "Time of each write", "histogram");
        for (bound, count) in histogram.buckets() {
            self.line(&format_args!("atoll_store_write_seconds_bucket{{le=\"{bound}\"}} {count}"));
        }
        self.line(&format_args!("atoll_store_write_seconds_sum {}", histogram.sum()));
        self.line(&format_args!("atoll_store_write_seconds_count {}", histogram.count()));
    }

    /// What every process has, by the names that Prometheus' own clients use.
    fn process(&mut self) {
        let Some(process) = ProcessUse::read() else { return };
        self.family("process_cpu_seconds_total", "Processor time", "counter");
        self.line(&format_args!("process_cpu_seconds_total {}", process.cpu_seconds));
        self.gauge("process_resident_memory_bytes", "Resident memory", process.resident_bytes);
        self.gauge("process_open_fds", "Open file descriptors", process.open_files);
    }

    fn runs(&mut self, state: &ClusterState) {
        let states = ["active", "paused", "finished", "cancelled", "failed"];
        let mut counts = [0; 5];
        for (_, run) in state.queue.all() {
            counts[state_number(run)] += 1;
        }
        self.family("atoll_runs", "Runs by state", "gauge");
        for (state, count) in states.iter().zip(counts) {
            self.line(&format_args!("atoll_runs{{state=\"{state}\"}} {count}"));
        }
        self.family("atoll_run_generation", "Generation of the slowest island, or cells done", "gauge");
        self.of_open_runs(state, "atoll_run_generation", |standing| standing.generation as f64);
        self.family("atoll_run_evaluations", "Evaluations of all islands", "gauge");
        self.of_open_runs(state, "atoll_run_evaluations", |standing| standing.evaluations as f64);
        self.family("atoll_run_best_fitness", "Fitness of the best champion", "gauge");
        self.of_open_runs(state, "atoll_run_best_fitness", |standing| standing.best);
        self.family("atoll_run_leases", "Leases that are out", "gauge");
        for run in state.queue.active() {
            self.line(&format_args!("atoll_run_leases{{run=\"{run}\"}} {}", state.leases.count(&run)));
        }
    }

    fn of_open_runs(
        &mut self,
        state: &ClusterState,
        name: &str,
        value: impl Fn(&proto::v1::Standing) -> f64,
    ) {
        for run in state.queue.active() {
            let standing = state.status(&run).ok().and_then(|status| status.standing);
            if let Some(number) = standing.as_ref().map(&value).filter(|number| number.is_finite()) {
                self.line(&format_args!("{name}{{run=\"{run}\"}} {number}"));
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
