//! The metrics of a coordinator, for Prometheus.

use crate::state::ClusterState;
use crate::state::queue::RunState;
use std::fmt::Write;

/// The page in Prometheus' text format.
pub(crate) fn page(state: &ClusterState) -> String {
    let mut page = Page(String::new());
    let counters = &state.counters;
    page.gauge("atoll_workers", "Workers that have joined", state.workers.count());
    page.gauge("atoll_threads", "Threads of all workers", state.workers.threads());
    for (name, help, value) in [
        ("atoll_grants_total", "Pieces of work handed out", counters.granted),
        ("atoll_hedges_total", "Pieces handed out a second time to an idle worker", counters.hedged),
        ("atoll_leases_expired_total", "Leases that ran out", counters.expired),
        ("atoll_results_accepted_total", "Results that were kept", counters.accepted),
        ("atoll_results_repeated_total", "Results that were there already", counters.repeated),
        ("atoll_results_unneeded_total", "Results that nobody needed", counters.unneeded),
        ("atoll_failures_total", "Pieces that a worker could not do", counters.failures),
        ("atoll_workers_put_aside_total", "Workers whose results cannot be trusted", counters.quarantined),
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
    page.0
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

fn state_number(state: &RunState) -> usize {
    match state {
        RunState::Active => 0,
        RunState::Paused => 1,
        RunState::Finished(_) => 2,
        RunState::Cancelled => 3,
        RunState::Failed(_) => 4,
    }
}
