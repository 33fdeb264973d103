//! Health and metrics over HTTP, for orchestrators and dashboards.

use crate::guard::{Guard, Right};
use crate::office::Office;
use crate::plan::RunState;
use crate::service::Desk;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::fmt::Write;
use std::sync::Arc;

/// Whoever probes needs no token; whoever reads the metrics does, because they name the runs.
pub(crate) fn router(desk: Desk, guard: Arc<Guard>) -> Router {
    let metrics =
        Router::new().route("/metrics", get(metrics)).route_layer(from_fn_with_state(guard, measuring));
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .merge(metrics)
        .with_state(desk)
}

async fn measuring(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let header = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    match guard.check(Right::Measure, header) {
        Ok(()) => next.run(request).await,
        Err(refused) => {
            let wanted = [(header::WWW_AUTHENTICATE, "Bearer")];
            (StatusCode::UNAUTHORIZED, wanted, format!("{refused}\n")).into_response()
        }
    }
}

async fn ready(State(desk): State<Desk>) -> (StatusCode, &'static str) {
    match (desk.is_open(), desk.is_closing()) {
        (_, true) => (StatusCode::SERVICE_UNAVAILABLE, "going away\n"),
        (false, _) => (StatusCode::SERVICE_UNAVAILABLE, "reading the store\n"),
        (true, _) => (StatusCode::OK, "ready\n"),
    }
}

async fn metrics(State(desk): State<Desk>) -> impl IntoResponse {
    let text = if desk.is_open() { page(&*desk.office().await) } else { String::new() };
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text)
}

/// The page in Prometheus' text format.
fn page(office: &Office) -> String {
    let mut page = Page(String::new());
    let counters = &office.counters;
    page.gauge("atoll_workers", "Workers that have joined", office.members.count());
    page.gauge("atoll_threads", "Threads of all workers", office.members.threads());
    for (name, help, value) in [
        ("atoll_grants_total", "Pieces of work handed out", counters.granted),
        ("atoll_hedges_total", "Pieces handed out a second time to an idle worker", counters.hedged),
        ("atoll_leases_expired_total", "Leases that ran out", counters.expired),
        ("atoll_results_accepted_total", "Results that were kept", counters.accepted),
        ("atoll_results_repeated_total", "Results that were there already", counters.repeated),
        ("atoll_results_unneeded_total", "Results that nobody needed", counters.unneeded),
        ("atoll_failures_total", "Pieces that a worker could not do", counters.failures),
        ("atoll_workers_put_aside_total", "Workers whose results cannot be trusted", counters.put_aside),
        ("atoll_checkpoints_total", "Checkpoints inside epochs", counters.checkpoints),
        ("atoll_workers_forgotten_total", "Workers that fell silent", counters.forgotten),
        ("atoll_store_errors_total", "Writes that the store did not do", counters.store_errors),
        (
            "atoll_pieces_stalled_total",
            "Pieces that made no progress for far longer than usual",
            counters.stalled,
        ),
    ] {
        page.family(name, help, "counter");
        page.line(&format_args!("{name} {value}"));
    }
    page.family("atoll_build_info", "The version of the coordinator", "gauge");
    page.line(&format_args!("atoll_build_info{{version=\"{}\"}} 1", office.settings.version));
    page.runs(office);
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

    fn runs(&mut self, office: &Office) {
        let states = ["active", "paused", "finished", "cancelled", "failed"];
        let mut counts = [0; 5];
        for (_, state) in office.plan.all() {
            counts[state_number(state)] += 1;
        }
        self.family("atoll_runs", "Runs by state", "gauge");
        for (state, count) in states.iter().zip(counts) {
            self.line(&format_args!("atoll_runs{{state=\"{state}\"}} {count}"));
        }
        self.family("atoll_run_generation", "Generation of the slowest island, or cells done", "gauge");
        self.of_open_runs(office, "atoll_run_generation", |standing| standing.generation as f64);
        self.family("atoll_run_evaluations", "Evaluations of all islands", "gauge");
        self.of_open_runs(office, "atoll_run_evaluations", |standing| standing.evaluations as f64);
        self.family("atoll_run_best_fitness", "Fitness of the best champion", "gauge");
        self.of_open_runs(office, "atoll_run_best_fitness", |standing| standing.best);
        self.family("atoll_run_leases", "Leases that are out", "gauge");
        for run in office.plan.active() {
            self.line(&format_args!("atoll_run_leases{{run=\"{run}\"}} {}", office.leases.count(&run)));
        }
    }

    fn of_open_runs(&mut self, office: &Office, name: &str, value: impl Fn(&proto::v1::Standing) -> f64) {
        for run in office.plan.active() {
            let standing = office.status(&run).ok().and_then(|status| status.standing);
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
