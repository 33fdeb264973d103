//! The dashboard: what a coordinator or a store holds, over HTTP, as pages and as JSON.
//!
//! The data comes from the cluster's state, which is looked at for a moment, and from the store, where the history of a run
//! is. Without a coordinator everything comes from the store. What is expensive to read is remembered for a while.
//! Pages are pure functions in `report::dashboard`; this names no problem, what one has to show is handed in.

mod action;
#[cfg(test)]
mod explain_tests;
mod guard;
mod memory;
mod route;
mod stream;
mod web;
#[cfg(test)]
mod web_tests;

pub(crate) use guard::Guard;
pub use route::{Needs, ROUTES, Route};
pub(crate) use stream::MOST_OF_ONE as STREAMS_OF_ONE_PEER;
pub(crate) use web::{Web, router};
pub use web::{serve_cluster, serve_store};

use crate::cluster::Cluster;
use crate::serve::Front;
use crate::state::ClusterState;
use crate::store_watch::StoreWatch;
use axum::http::StatusCode;
use futures::future::BoxFuture;
use memory::{MOST_POINTS, Memory, Rows};
use report::Section;
use report::dashboard::page::{Frame, RunPage};
use report::dashboard::{
    ArtifactView, EventView, Phase, PlayForm, RunRow, RunView, RunsPage, RunsQuery, Situation, StoreHealth,
    Why, WorkersPage, page, parts, predecessor, why,
};
use run::{ArtifactName, Place, RunId, listing};
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use store::Store;

/// Points of each island that are returned unless another number is asked for.
const POINTS: usize = 100;
/// How long the page of a run waits for each thing that it reads from the store.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the problem of a run has to show beside its curves: pictures, boards, levels.
pub type Exhibit = Arc<dyn Fn(Store, RunId) -> BoxFuture<'static, Vec<Section>> + Send + Sync>;

/// A table at which people play: what a page asks for, as JSON, and what it is told.
pub type PlayTable = Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Value, PlayError>> + Send + Sync>;

/// Why a table does not do what it is asked for.
#[derive(Clone, Debug)]
pub struct PlayError {
    /// The status of the reply.
    pub status: u16,
    /// Why, in a sentence.
    pub message: String,
}

/// What a dashboard without a coordinator offers beside what the store holds.
#[derive(Clone, Default)]
pub struct Offers {
    /// What the problems of runs have to show.
    pub exhibit: Option<Exhibit>,
    /// Where people play.
    pub table: Option<PlayTable>,
    /// How the form of a new game is filled.
    pub form: PlayForm,
}

/// What a coordinator is told about whom it shows its runs, and how.
#[derive(Clone, Default)]
pub struct DashboardSettings {
    /// Names by which browsers may reach it, beside addresses and `localhost`.
    pub hosts: Vec<String>,
    /// What the problems of runs have to show.
    pub exhibit: Option<Exhibit>,
    /// What is called with each run that has ended.
    pub notify: Option<crate::serve::Notify>,
}

impl std::fmt::Debug for DashboardSettings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "DashboardSettings({:?})", self.hosts)
    }
}

/// Why something cannot be shown or done.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    fn no_run(run: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("there is no run `{run}`"))
    }
}

/// Where the data comes from.
#[derive(Clone)]
enum Source {
    /// A coordinator, once it has read its store.
    Live(Front),
    /// A store alone.
    Stored(Store),
}

/// All that the dashboard shows. Clones are the same.
#[derive(Clone)]
pub(crate) struct Dashboard(Arc<Inner>);

struct Inner {
    source: Source,
    place: String,
    unix: fn() -> u64,
    memory: Memory,
}

impl Dashboard {
    /// That of a coordinator.
    pub(crate) fn live(front: Front, settings: &DashboardSettings, unix: fn() -> u64) -> Self {
        let memory = Memory::new(settings.exhibit.clone());
        Self(Arc::new(Inner { source: Source::Live(front), place: "coordinator".to_owned(), unix, memory }))
    }

    /// That of a store without a coordinator.
    pub(crate) fn stored(store: Store, place: String, exhibit: Option<Exhibit>, unix: fn() -> u64) -> Self {
        let memory = Memory::new(exhibit);
        Self(Arc::new(Inner { source: Source::Stored(store), place, unix, memory }))
    }

    /// The coordinator; nothing where there is a store alone.
    pub(crate) fn cluster(&self) -> Result<Option<&Cluster>, Problem> {
        let front = match &self.0.source {
            Source::Stored(_) => return Ok(None),
            Source::Live(front) => front,
        };
        let away = |message: &str| Problem::new(StatusCode::SERVICE_UNAVAILABLE, message);
        match front.get() {
            _ if front.is_standby() => Err(away("this coordinator stands by: another one has the store")),
            None => Err(away("the coordinator is reading its store")),
            Some(cluster) => Ok(Some(cluster)),
        }
    }

    fn store(&self) -> Result<&Store, Problem> {
        match &self.0.source {
            Source::Stored(store) => Ok(store),
            Source::Live(_) => Ok(self.cluster()?.ok_or_else(no_coordinator)?.store()),
        }
    }

    /// A frame for a page.
    pub(crate) fn frame(&self, may_act: bool, is_logged_in: bool) -> Frame {
        let may_act = may_act && matches!(self.0.source, Source::Live(_));
        let (place, now) = (self.0.place.clone(), (self.0.unix)());
        Frame { place, now, may_act, is_logged_in, is_live: true, has_table: false }
    }

    async fn rows(&self) -> Result<Rows, Problem> {
        match self.cluster()? {
            Some(cluster) => Ok(Rows { rows: cluster.look(ClusterState::rows), unread: 0 }),
            None => self.0.memory.rows(self.store()?).await,
        }
    }

    /// A page of runs.
    pub(crate) async fn runs(&self, query: RunsQuery) -> Result<RunsPage, Problem> {
        let Rows { rows, unread } = self.rows().await?;
        let mut page = RunsPage { unread, ..RunsPage::of(rows, query) };
        self.0.memory.add_sparks(self.store()?, &mut page.runs).await;
        Ok(page)
    }

    /// One run, beside the one before of the same experiment; a study with its parts.
    async fn run_among_others(&self, name: &str) -> Result<RunView, Problem> {
        let mut view = self.run(name).await?;
        let Rows { rows, .. } = self.rows().await?;
        view.row.before = predecessor(&rows, name);
        if view.row.kind == "study" {
            view.parts = parts(&rows, name);
            view.row.evaluations = view.parts.iter().map(|part| part.evaluations).sum();
        }
        Ok(view)
    }

    /// One run.
    pub(crate) async fn run(&self, name: &str) -> Result<RunView, Problem> {
        if let Some(cluster) = self.cluster()? {
            return live_view(cluster, name).ok_or_else(|| Problem::no_run(name));
        }
        let (store, run) = (self.store()?, id(name)?);
        let row = listing::row(store, &run).await.ok_or_else(|| Problem::no_run(name))?;
        let phase = match listing::recorded(store, &run).await {
            _ if row.state == "damaged" => Phase::Damaged(reason_of(&row)),
            Ok(recorded) => match listing::phase(store, &run, &recorded.status) {
                Phase::Finished(_) => Phase::Finished(row.reason.clone()),
                phase => phase,
            },
            Err(reason) => Phase::Damaged(reason),
        };
        let why = why(&Situation { phase, ..Situation::default() });
        let islands = match row.kind.as_str() {
            "evolution" if !row.has_ended() => listing::islands(store, &run, row.islands).await,
            _ => vec![],
        };
        Ok(RunView { row, why, islands, ..RunView::default() })
    }

    /// Why a run makes no progress.
    async fn explain(&self, name: &str) -> Result<Why, Problem> {
        Ok(self.run(name).await?.why)
    }

    /// The workers.
    pub(crate) fn workers(&self) -> Result<WorkersPage, Problem> {
        let Some(cluster) = self.cluster()? else { return Ok(WorkersPage::default()) };
        let now = cluster.now();
        Ok(cluster.look(|state| WorkersPage {
            workers: state.worker_views(now),
            lease_milliseconds: state.rules.terms.lease.as_millis() as u64,
            is_live: true,
        }))
    }

    /// What happened to a run in some time.
    async fn events(
        &self,
        name: &str,
        (from, to): (Option<u64>, Option<u64>),
    ) -> Result<Vec<EventView>, Problem> {
        let log = self.0.memory.log(self.store()?, self.known(name).await?).await;
        let log = log.map_err(|reason| Problem::new(StatusCode::CONFLICT, reason))?;
        let mut events = log.events.clone();
        events.retain(|event| from.is_none_or(|from| event.at >= from) && to.is_none_or(|to| event.at <= to));
        Ok(events)
    }

    /// The id of a run that there is.
    async fn known(&self, name: &str) -> Result<RunId, Problem> {
        let run = id(name)?;
        let store = self.store()?;
        match store.size(&Place::Experiment.in_run(&run)).await {
            Err(error) if error.is_missing() => match listing::row(store, &run).await {
                // It may have lost that file alone.
                Some(_) => Ok(run),
                None => Err(Problem::no_run(name)),
            },
            Err(error) => Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())),
            Ok(_) => Ok(run),
        }
    }

    async fn artifacts(&self, name: &str) -> Result<Vec<ArtifactView>, Problem> {
        let (store, run) = (self.store()?, self.known(name).await?);
        let failed =
            |error: store::StoreError| Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string());
        let mut artifacts = vec![];
        for path in store.list(&run.artifacts()).await.map_err(failed)? {
            let Some((_, Place::Artifact(artifact))) = Place::of(&path) else { continue };
            let bytes = store.size(&path).await.map_err(failed)?;
            artifacts.push(ArtifactView { name: ArtifactName::as_str(&artifact).to_owned(), bytes });
        }
        Ok(artifacts)
    }

    /// All that the page of a run shows.
    pub(crate) async fn run_page(
        &self,
        name: &str,
        range: (Option<u64>, Option<u64>),
    ) -> Result<RunPage, Problem> {
        let view = self.run_among_others(name).await?;
        let mut page = RunPage { view, range, ..RunPage::default() };
        if self.is_store_silent() {
            // The page explains that: it must not wait for the store itself.
            page.missing.push("The store does not answer: events and history are not shown.".to_owned());
            return Ok(page);
        }
        match tokio::time::timeout(PATIENCE, self.events(name, range)).await {
            Ok(Ok(read)) => page.events = read,
            Ok(Err(problem)) => page.missing.push(problem.message),
            Err(_) => page.missing.push("The store is slow: events are not shown yet.".to_owned()),
        }
        match self.0.memory.history_within(self.store()?, &page.view.row, PATIENCE).await {
            Ok(Some(known)) => {
                page.history = known.sections.clone();
                page.strip = known.strip.clone();
                page.history_age_milliseconds = known.behind(&page.view.row);
            }
            Ok(None) => page.missing.push("The history is being read, and shown once it is.".to_owned()),
            Err(reason) => page.missing.push(reason),
        }
        Ok(page)
    }

    fn is_store_silent(&self) -> bool {
        let cluster = self.cluster().ok().flatten();
        cluster.is_some_and(|cluster| cluster.store_watch().is_silent())
    }

    /// The reply of the JSON API to a path below `/api/v1/`.
    pub(crate) async fn view(&self, path: &str, query: &Query) -> Result<Value, Problem> {
        // Segments are split before they are decoded: a `/` within a name makes no other path.
        let segments: Vec<String> = path.split('/').map(decoded).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            ["runs"] => value(self.runs(query.runs()?).await?),
            ["runs", run] => value(self.run_among_others(run).await?),
            ["runs", run, "explain"] => value(self.explain(run).await?),
            ["runs", run, "islands"] => value(self.run(run).await?.islands),
            ["runs", run, "leases"] => value(self.run(run).await?.leases),
            ["runs", run, "events"] => value(self.events(run, query.range()?).await?),
            ["runs", run, "artifacts"] => value(self.artifacts(run).await?),
            ["runs", run, what @ ("epochs" | "statistics" | "champions" | "strength")] => {
                let points =
                    query.number("points")?.unwrap_or(POINTS as u64).clamp(2, MOST_POINTS as u64) as usize;
                let row = self.run(run).await?.row;
                let known = self.0.memory.history(self.store()?, &row).await;
                let known = known.map_err(|reason| Problem::new(StatusCode::CONFLICT, reason))?;
                let history = known.history.thinned(points);
                match *what {
                    "epochs" => value(history.epochs),
                    "statistics" => value(history.statistics),
                    "strength" => value(history.strength),
                    _ => value(history.champions),
                }
            }
            ["workers"] => value(self.workers()?),
            _ => Err(Problem::new(StatusCode::NOT_FOUND, format!("there is nothing at `{path}`"))),
        }
    }
}

/// What the dashboard shows of a store without a coordinator, for a command that looks at it again and again.
pub struct StoreView(Dashboard);

impl StoreView {
    /// That of a store.
    pub fn new(store: Store, unix: fn() -> u64) -> Self {
        Self(Dashboard::stored(store, String::new(), None, unix))
    }

    /// What the JSON API returns for a path below `/api/v1/`.
    ///
    /// # Errors
    /// Why it cannot, in a sentence.
    pub async fn view(&self, path: &str) -> Result<Value, String> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        self.0.view(path, &Query::parse(query)).await.map_err(|problem| problem.message)
    }
}

/// Why a run is damaged: without what the sentence about it says anyway.
fn reason_of(row: &RunRow) -> String {
    let reason = row.reason.split_once("is damaged: ").map_or(row.reason.as_str(), |(_, reason)| reason);
    reason.split("; nothing was changed").next().unwrap_or_default().to_owned()
}

fn no_coordinator() -> Problem {
    Problem::new(StatusCode::CONFLICT, "this is a store without a coordinator: nothing can be changed here")
}

fn id(name: &str) -> Result<RunId, Problem> {
    RunId::new(name).map_err(|_| Problem::no_run(name))
}

fn value(data: impl Serialize) -> Result<Value, Problem> {
    let failed =
        |error: serde_json::Error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
    serde_json::to_value(data).map_err(failed)
}

impl Cluster {
    /// Why a run makes no progress; nothing if there is no such run.
    pub fn explain(&self, run: &str) -> Option<Why> {
        let (now, store) = (self.now(), health(self.store_watch()));
        self.look(|state| state.situation(run, now, store)).map(|situation| why(&situation))
    }
}

fn live_view(cluster: &Cluster, run: &str) -> Option<RunView> {
    let (now, store) = (cluster.now(), health(cluster.store_watch()));
    cluster.look(|state| {
        let row = state.row(run)?;
        let why = why(&state.situation(run, now, store)?);
        let actions: &[&str] = match row.state.as_str() {
            "waiting" | "running" if row.kind == "evolution" => &["pause", "extend", "cancel"],
            "waiting" | "running" => &["pause", "cancel"],
            "paused" => &["resume", "cancel"],
            "finished" | "cancelled" | "failed" if row.kind == "evolution" => &["extend"],
            _ => &[],
        };
        let actions = actions.iter().map(|&action| action.to_owned()).collect();
        Some(RunView {
            row,
            why,
            islands: state.island_views(run),
            leases: state.lease_views(run, now),
            actions,
            parts: vec![],
        })
    })
}

/// How the store does.
pub(crate) fn health(watch: &StoreWatch) -> StoreHealth {
    let oldest_write_milliseconds = watch.measure().oldest.as_millis() as u64;
    StoreHealth { oldest_write_milliseconds, is_silent: watch.is_silent() }
}

/// The query of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads what follows a `?`.
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pair = |pair: &str| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(&key.replace('+', " ")), decoded(&value.replace('+', " ")))
        };
        Self(pairs.map(pair).collect())
    }

    /// The first value of a key that is not empty.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, value)| known == key && !value.is_empty())
            .map(|(_, value)| value.as_str())
    }

    fn number(&self, key: &str) -> Result<Option<u64>, Problem> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let bad =
            |_| Problem::new(StatusCode::BAD_REQUEST, format!("{key}: expected a number, found `{text}`"));
        text.parse().map(Some).map_err(bad)
    }

    fn runs(&self) -> Result<RunsQuery, Problem> {
        let text = |key| self.text(key).unwrap_or_default().to_owned();
        let page = self.number("page")?.unwrap_or(0);
        Ok(RunsQuery { state: text("state"), search: text("search"), page: page.min(1 << 20) as usize })
    }

    /// A time: milliseconds since 1970, or a date and a time in UTC.
    fn time(&self, key: &str) -> Result<Option<u64>, Problem> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let time = text.parse().ok().or_else(|| report::text::parse_moment(text));
        let bad = || {
            let expected = "expected milliseconds since 1970, or a time such as 2026-11-16T05:20:00";
            Problem::new(StatusCode::BAD_REQUEST, format!("{key}: {expected}, found `{text}`"))
        };
        time.map(Some).ok_or_else(bad)
    }

    fn range(&self) -> Result<(Option<u64>, Option<u64>), Problem> {
        Ok((self.time("from")?, self.time("to")?))
    }
}

/// A text without its `%XX`; what is not one stays as it is.
pub(crate) fn decoded(text: &str) -> String {
    let mut bytes = vec![];
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.filter(|_| first == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The page of an error.
pub(crate) fn failed_page(frame: &Frame, problem: &Problem) -> String {
    let title = problem.status.canonical_reason().unwrap_or("Error");
    page::failed(frame, title, &problem.message)
}

/// An error for programs.
pub(crate) fn failed_value(problem: &Problem) -> Value {
    json!({ "error": problem.message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded_and_checked() {
        let query = Query::parse("search=a+b%2Fc&state=&page=3&from=2026-11-16T05%3A20&bad=%zz&bad=2");
        assert_eq!(query.text("search"), Some("a b/c"));
        assert_eq!(query.text("state"), None);
        assert_eq!(query.text("bad"), Some("%zz"));
        assert_eq!(query.runs().unwrap().page, 3);
        assert_eq!(query.range().unwrap(), (Some(1_794_806_400_000), None));
        assert_eq!(Query::parse("page=x").runs().unwrap_err().status, StatusCode::BAD_REQUEST);
        assert_eq!(Query::parse("to=yesterday").range().unwrap_err().status, StatusCode::BAD_REQUEST);
    }
}
