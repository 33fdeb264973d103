//! The metrics of a coordinator.

use super::metric_families::MetricFamilies;
use super::worker_api::ServedCluster;
use crate::cluster::Cluster;
use crate::state::ClusterState;
use crate::state::queue::RunState;
use crate::store_watch::Measured;
use prometheus_client::metrics::MetricType;

/// The page. `expires` is the end of the certificate, if there is one.
pub(crate) fn page(served: &ServedCluster, expires: Option<u64>) -> String {
    let mut families = MetricFamilies::default();
    if let Some(cluster) = served.get() {
        families.of_cluster(cluster);
    }
    let calls = served.call_times().all();
    families.histograms("atoll_call_seconds", "Time of each call, until its answer begins", "call", calls);
    let name = "atoll_certificate_expiry_timestamp_seconds";
    families.add(name, "When the certificate expires, in seconds since 1970", MetricType::Gauge);
    if let Some(expires) = expires {
        families.sample(None, expires);
    }
    families.of_process();
    families.page()
}

impl MetricFamilies {
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
            ("atoll_results_unneeded", "Results that arrived after they were needed", counters.unneeded),
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
        if let Some((exported, dropped)) = state.spans.counts() {
            self.counter("atoll_traces_exported", "Traces of epochs that were exported", exported);
            self.counter("atoll_traces_dropped", "Traces of epochs that could not be exported", dropped);
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
            let standing = state.standing(&run);
            if let Some(number) = standing.as_ref().map(&value).filter(|number| number.is_finite()) {
                self.sample(Some(("run", run)), number);
            }
        }
    }

    fn of_store(&mut self, measured: Measured) {
        let Measured { pending, oldest, since_durable, silent, histogram } = measured;
        let help = "Writes that the store has not done yet";
        self.gauge("atoll_store_writes_pending", help, pending);
        let help = "How long the store has taken for the oldest of them so far";
        self.gauge("atoll_store_oldest_write_seconds", help, oldest.as_secs_f64());
        let help = "Time since the last write that succeeded, or since the start";
        self.gauge("atoll_store_last_write_seconds", help, since_durable.as_secs_f64());
        let help = "How long the store has not done what it was asked; 0 if it does";
        self.gauge("atoll_store_silent_seconds", help, silent.as_secs_f64());
        self.add("atoll_store_write_seconds", "Time of each write", MetricType::Histogram);
        self.sample(None, histogram);
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
