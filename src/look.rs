//! `atoll explain`, `workers`, `drain`, `logs`, and `watch` of a local run: what the dashboard shows, in the terminal.

mod screen;

use crate::clock;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::protection::Credentials;
use crate::remote::{self, CoordinatorArgument, NO_ANSWER, Remote, SILENCE, Silence};
use crate::run_name;
use crate::signals::Signals;
use crate::store_argument::StoreArgument;
use crate::terminal::{message, out};
use coordinator::dashboard::StoreView;
use proto::v1;
use proto::v1::run_status::{Kind, State};
use report::dashboard::{EventView, RunRow, RunView, Why, WorkerView, WorkersPage};
use report::text::{moment, number, plain, shortened, time};
use run::{Lock, RunId, listing};
use screen::{Model, Screen, draw};
use serde::de::DeserializeOwned;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;
use store::Store;

/// How often a run is looked at.
const AGAIN: Duration = Duration::from_millis(500);

/// Where a run is looked for.
#[derive(clap::Args)]
pub(crate) struct Source {
    #[command(flatten)]
    pub(crate) store: StoreArgument,
    /// A run of a coordinator instead of a local store; also `ATOLL_COORDINATOR`
    #[arg(long, value_name = "URL")]
    pub(crate) coordinator: Option<String>,
    #[command(flatten)]
    pub(crate) credentials: Credentials,
}

#[derive(clap::Args)]
pub(crate) struct ExplainArguments {
    /// The run to explain
    run: String,
    #[command(flatten)]
    source: Source,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(crate) struct LogsArguments {
    /// The run whose events to print
    run: String,
    #[command(flatten)]
    source: Source,
    /// Print new events until the run ends
    #[arg(long, short)]
    follow: bool,
    /// Print each event as one JSON object on a line of its own
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(crate) struct WorkersArguments {
    #[command(flatten)]
    coordinator: CoordinatorArgument,
    /// Print one JSON array on stdout
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(crate) struct DrainArguments {
    /// The worker, by its name or its id
    worker: String,
    #[command(flatten)]
    coordinator: CoordinatorArgument,
    /// Give it work again
    #[arg(long)]
    off: bool,
}

/// A run, and how to ask for what the dashboard shows of it.
enum Found {
    Remote { remote: Box<Remote>, run: String, patience: Duration, silence: Silence },
    Local { store: Store, stored: StoreView, run: RunId },
}

impl Found {
    async fn find(source: &Source, run: &str) -> Result<Self, Failure> {
        if let Some(url) = remote::chosen(source.coordinator.as_ref(), &source.store) {
            let mut remote = Remote::connect(&url, &source.credentials).await?;
            let run = remote.find(run).await?;
            return Ok(Self::remote(remote, &run, SILENCE));
        }
        let store = source.store.open().await?;
        let run = run_name::find(&store, run).await?;
        Ok(Self::local(&store, &run))
    }

    fn remote(remote: Remote, run: &str, patience: Duration) -> Self {
        let (remote, run) = (Box::new(remote), run.to_owned());
        Self::Remote { remote, run, patience, silence: Silence::default() }
    }

    fn local(store: &Store, run: &RunId) -> Self {
        let stored = StoreView::new(store.clone(), clock::now);
        Self::Local { store: store.clone(), stored, run: run.clone() }
    }

    fn run(&self) -> &str {
        match self {
            Self::Remote { run, .. } => run,
            Self::Local { run, .. } => run.as_str(),
        }
    }

    /// Looks at the run once more. While no coordinator answers, what was seen last stays.
    async fn look(&mut self, model: &mut Model) -> Result<(), Failure> {
        let Some(view) = self.view_or_wait("").await? else {
            model.is_silent = true;
            return Ok(());
        };
        model.view = view;
        model.bests.extend(model.view.row.best);
        if let Self::Remote { remote, silence, patience, .. } = self {
            let page: Option<WorkersPage> = remote.view_or_wait("workers", (silence, *patience)).await?;
            model.workers = page.map_or_else(|| std::mem::take(&mut model.workers), |page| page.workers);
        }
        if let Some(events) = self.view_or_wait("/events").await? {
            model.events = events;
        }
        model.is_silent = false;
        Ok(())
    }

    /// Whether no process works on the run, as far as that can be seen.
    fn is_left(&self) -> bool {
        matches!(self, Self::Local { store, run, .. } if !is_worked_on(store, run))
    }

    /// What the API returns for a path below that of the run.
    async fn view<T: DeserializeOwned>(&mut self, what: &str) -> Result<T, Failure> {
        let path = format!("runs/{}{what}", self.run());
        match self {
            Self::Remote { remote, .. } => remote.view(&path).await,
            Self::Local { stored, .. } => {
                let value = stored.view(&path).await.map_err(Failure::Other)?;
                serde_json::from_value(value).map_err(|error| Failure::Other(error.to_string()))
            }
        }
    }

    /// The same; nothing while no coordinator answers, until patience is over.
    async fn view_or_wait<T: DeserializeOwned>(&mut self, what: &str) -> Result<Option<T>, Failure> {
        let path = format!("runs/{}{what}", self.run());
        match self {
            Self::Remote { remote, patience, silence, .. } => {
                remote.view_or_wait(&path, (silence, *patience)).await
            }
            Self::Local { .. } => self.view(what).await.map(Some),
        }
    }

    /// Says that no coordinator answers, the first time and now and then.
    fn say_silent(&mut self) {
        if let Self::Remote { silence, .. } = self
            && silence.is_worth_a_word()
        {
            message!("{NO_ANSWER}");
        }
    }
}

pub(crate) async fn explain(arguments: ExplainArguments) -> Result<ExitCode, Failure> {
    let mut found = Found::find(&arguments.source, &arguments.run).await?;
    let why: Why = found.view("/explain").await?;
    if arguments.json {
        let object = serde_json::json!({ "run": found.run(), "cause": why.cause, "text": why.text, "advice": why.advice });
        out!("{object}");
        return Ok(ExitCode::SUCCESS);
    }
    out!("{}", plain(&why.text));
    if !why.advice.is_empty() {
        out!("{}", plain(&why.advice.replace("RUN", found.run())));
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn logs(arguments: LogsArguments) -> Result<ExitCode, Failure> {
    let mut found = Found::find(&arguments.source, &arguments.run).await?;
    let mut signals = Signals::listen()?;
    let mut next = 0;
    loop {
        let Some((events, state)) = followed(&mut found, arguments.follow).await? else {
            found.say_silent();
            tokio::select! {
                () = signals.asked() => return Ok(ExitCode::from(signals.exit_code())),
                () = tokio::time::sleep(AGAIN) => {}
            }
            continue;
        };
        for event in events.iter().filter(|event| event.number >= next) {
            print_event(event, arguments.json);
        }
        let is_quiet = events.last().is_none_or(|last| last.number < next);
        next = events.last().map_or(next, |last| last.number + 1);
        if !arguments.follow {
            return Ok(ExitCode::SUCCESS);
        }
        if is_quiet && is_over(&state) {
            if state == "stopped" {
                let run = found.run();
                message!("no process works on {run}: resume it with `atoll resume {run}`");
            }
            return Ok(ExitCode::SUCCESS);
        }
        if found.is_left() {
            message!("no process works on {}: nothing will happen until it is resumed", found.run());
            return Ok(ExitCode::SUCCESS);
        }
        tokio::select! {
            () = signals.asked() => return Ok(ExitCode::from(signals.exit_code())),
            () = tokio::time::sleep(AGAIN) => {}
        }
    }
}

/// The events of a run, and its state if they are followed; nothing while no coordinator answers.
async fn followed(found: &mut Found, follow: bool) -> Result<Option<(Vec<EventView>, String)>, Failure> {
    if !follow {
        return Ok(Some((found.view("/events").await?, String::new())));
    }
    let Some(events) = found.view_or_wait("/events").await? else { return Ok(None) };
    // By the state rather than the last event: a failed run may have been retried, a stopped one leaves no event.
    let view: Option<RunView> = found.view_or_wait("").await?;
    Ok(view.map(|view| (events, view.row.state)))
}

/// Whether nothing more happens in this state, unless it is asked for.
fn is_over(state: &str) -> bool {
    !matches!(state, "running" | "paused" | "unfinished" | "waiting")
}

fn print_event(event: &EventView, json: bool) {
    if json {
        out!("{}", serde_json::json!(event));
    } else {
        out!("{}  {:<11}  {}", moment(event.at), event.kind, plain(&event.text));
    }
}

pub(crate) async fn workers(arguments: WorkersArguments) -> Result<ExitCode, Failure> {
    let mut remote = arguments.coordinator.connect().await?;
    let page: WorkersPage = remote.view("workers").await?;
    if arguments.json {
        out!("{}", serde_json::json!(page.workers));
        return Ok(ExitCode::SUCCESS);
    }
    if page.workers.is_empty() {
        message!("no worker has joined; start one with `atoll worker`");
        return Ok(ExitCode::SUCCESS);
    }
    let width = page.workers.iter().map(|worker| worker.name.chars().count()).max().unwrap_or(6).max(6);
    out!(
        "{:<width$}  {:<11}  {:>7}  {:>13}  {:>8}  {:>6}  {:>8}  {:>9}  {:<8}  LAST ERROR",
        "WORKER",
        "STATE",
        "THREADS",
        "EVALUATIONS/S",
        "RELATIVE",
        "LEASES",
        "OLDEST",
        "LAST SEEN",
        "VERSION"
    );
    for worker in &page.workers {
        out!("{}", worker_line(worker, width));
    }
    Ok(ExitCode::SUCCESS)
}

fn worker_line(worker: &WorkerView, width: usize) -> String {
    let shown = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    format!(
        "{:<width$}  {:<11}  {:>7}  {:>13}  {:>8}  {:>6}  {:>8}  {:>9}  {:<8}  {}",
        plain(&worker.name),
        worker.state.word(),
        worker.threads,
        shown(worker.rate.map(|rate| number(rate.round()))),
        shown(worker.pace.map(|pace| format!("{pace:.2}"))),
        worker.leases,
        shown(worker.lease_age_milliseconds.map(time)),
        time(worker.silent_milliseconds),
        plain(&worker.version),
        plain(&shortened(worker.last_error.as_deref().unwrap_or("-"), 100))
    )
}

pub(crate) async fn drain(arguments: DrainArguments) -> Result<ExitCode, Failure> {
    let DrainArguments { worker, coordinator, off } = arguments;
    coordinator.connect().await?.drain(&worker, !off).await?;
    if off {
        message!("worker {worker} is given work again");
    } else {
        message!("worker {worker} is given no more work, and returns what it holds at the next generation");
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows a run on the whole screen until it has ended, or no process works on it; false if it was stopped before. Without a
/// terminal nothing is shown.
async fn watch_on_screen(found: &mut Found, signals: &mut Signals) -> Result<bool, Failure> {
    let Some((terminal_size::Width(width), terminal_size::Height(height))) = terminal_size::terminal_size()
    else {
        return Ok(true);
    };
    let failed = |error: std::io::Error| Failure::Other(format!("the terminal: {error}"));
    let mut screen = Screen::open().map_err(failed)?;
    let mut model = Model::default();
    let mut size = (usize::from(width), usize::from(height));
    loop {
        let looked = tokio::select! {
            looked = found.look(&mut model) => looked,
            () = signals.asked() => return Ok(false),
        };
        looked?;
        // Before the first answer there is no state.
        let is_known = !model.view.row.run.is_empty();
        if is_known && is_over(&model.view.row.state) || found.is_left() {
            return Ok(true);
        }
        if let Some((terminal_size::Width(width), terminal_size::Height(height))) =
            terminal_size::terminal_size()
        {
            size = (usize::from(width), usize::from(height));
        }
        screen.show(&draw(&model, size)).map_err(failed)?;
        tokio::select! {
            () = signals.asked() => return Ok(false),
            () = tokio::time::sleep(AGAIN) => {}
        }
    }
}

/// The same for a run of a coordinator.
pub(crate) async fn watch_remote(
    remote: Remote,
    run: &str,
    patience: Duration,
    signals: &mut Signals,
) -> Result<bool, Failure> {
    watch_on_screen(&mut Found::remote(remote, run, patience), signals).await
}

/// Whether a run is watched on the whole screen.
pub(crate) fn has_screen(json: bool) -> bool {
    !json && std::io::stdout().is_terminal() && std::io::stderr().is_terminal()
}

/// Watches a run of a local store until it has ended, or no process works on it any more.
pub(crate) async fn watch(store: &Store, run: &RunId, json: bool) -> Result<ExitCode, Failure> {
    let mut signals = Signals::listen()?;
    let mut progress: Option<Progress> = None;
    if has_screen(json) && !watch_on_screen(&mut Found::local(store, run), &mut signals).await? {
        message!("stopped watching; the run continues: `atoll watch {run}`");
        return Ok(ExitCode::from(signals.exit_code()));
    }
    loop {
        let row = listing::whole_row(store, run).await;
        let row = row.ok_or_else(|| Failure::Other(format!("run {run} is not in this store any more")))?;
        let status = status(&row);
        let shown = progress.get_or_insert_with(|| Progress::new(&status));
        shown.show(&status);
        let is_left = row.state == "paused" && !is_worked_on(store, run);
        if is_left || is_over(&row.state) {
            shown.clear();
            remote::print_ended(&status, &row.state, json);
            if is_left || row.state == "stopped" {
                message!("no process works on {run}: resume it with `atoll resume {run}`");
            }
            return Ok(if row.state == "finished" { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        tokio::select! {
            () = signals.asked() => {
                message!("stopped watching; the run continues: `atoll watch {run}`");
                return Ok(ExitCode::from(signals.exit_code()));
            }
            () = tokio::time::sleep(AGAIN) => {}
        }
    }
}

/// Whether a process works on a run, as far as that can be seen: a bucket does not show it.
fn is_worked_on(store: &Store, run: &RunId) -> bool {
    let holds = |holder: Result<Option<_>, _>| holder.is_ok_and(|holder| holder.is_some());
    store.folder_on_disk().is_none() || holds(Lock::holder(store, run)) || holds(Lock::server(store))
}

/// A run of a store as a coordinator reports it.
fn status(row: &RunRow) -> v1::RunStatus {
    let kind = match row.kind.as_str() {
        "sweep" => Kind::Sweep,
        "tournament" => Kind::Tournament,
        "study" => Kind::Study,
        _ => Kind::Evolution,
    };
    let state = match row.state.as_str() {
        "running" | "unfinished" => State::Running,
        "paused" => State::Paused,
        "finished" => State::Finished,
        "cancelled" => State::Cancelled,
        "failed" | "damaged" => State::Failed,
        _ => State::Waiting,
    };
    let digest = row.digest.as_ref().and_then(|digest| digest.parse::<codec::Digest>().ok());
    let reason =
        if row.state == "stopped" { "no process works on it".to_owned() } else { row.reason.clone() };
    v1::RunStatus {
        run: row.run.clone(),
        kind: kind.into(),
        state: state.into(),
        priority: row.priority,
        reason,
        standing: Some(v1::Standing {
            generation: row.done,
            evaluations: row.evaluations,
            best: row.best.unwrap_or(f64::NEG_INFINITY),
        }),
        goal: row.goal,
        islands: row.islands,
        leases: row.leases,
        digest: digest.as_ref().map(proto::convert::digest_bytes),
        elapsed_milliseconds: row.elapsed_milliseconds,
        created: row.created,
        goal_evaluations: row.goal_evaluations,
        goal_milliseconds: row.goal_milliseconds,
        labels: row.labels.clone(),
    }
}
