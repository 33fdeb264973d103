//! The dashboard: what a coordinator or a store holds, over HTTP, as pages and as JSON.
//!
//! The data comes from the cluster's state, which is looked at for a moment, and from the store, where the history of a run
//! is. Without a coordinator everything comes from the store. What is expensive to read is remembered for a while.
//! Pages are pure functions in `report::dashboard`; this names no problem, what one has to show is handed in.

mod access;
mod action;
mod cache;
#[cfg(test)]
mod explain_tests;
mod replies;
mod route;
mod stream;
mod web;
#[cfg(test)]
mod web_tests;

pub(crate) use access::AccessCheck;
pub use route::{Needs, ROUTES, Route};
pub(crate) use stream::MOST_OF_ONE as STREAMS_OF_ONE_PEER;
pub(crate) use web::{Web, router};
pub use web::{serve_cluster, serve_store};

use crate::cluster::Cluster;
use crate::serve::ServedCluster;
use crate::state::{ClusterState, Moment};
use crate::store_watch::StoreWatch;
use axum::body::Bytes;
use axum::http::StatusCode;
use cache::{HistoryCache, MOST_POINTS, Rows};
use futures::future::BoxFuture;
use replies::ReplyCache;
use report::Section;
use report::dashboard::page::{Frame, RunPage};
use report::dashboard::{
    ArtifactView, EventView, LeaseView, Phase, PlayForm, RunRow, RunView, RunsPage, RunsQuery, Situation,
    StoreHealth, Why, WorkersPage, page, parts, predecessor, why,
};
use run::{ArtifactName, Place, RunId, listing};
use serde::Serialize;
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::Store;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// The end of the year 9999, in milliseconds since 1970: later times are mistakes.
const LATEST: u64 = 253_402_300_799_999;
/// Points of each island that are returned unless another number is asked for.
const POINTS: usize = 100;
/// How long the page of a run waits for each thing that it reads from the store; less if it is read again soon anyway.
const PATIENCE: Duration = Duration::from_secs(1);
const SHORT_PATIENCE: Duration = Duration::from_millis(300);
/// Nobody looks at the state of a cluster for so many times as long as the last look took: all viewers together keep
/// workers from it for a quarter of the time at most.
const REST: u32 = 3;
/// How long the rows of a cluster are shown again.
const ROWS_AGE: Duration = Duration::from_millis(500);

/// What the problem of a run has to show beside its curves: pictures, boards, levels.
pub type Exhibit = Arc<dyn Fn(Store, RunId) -> BoxFuture<'static, Vec<Section>> + Send + Sync>;

/// A table at which people play: requests and responses of a page, as JSON.
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

/// The settings of the dashboard: who may see runs, and how.
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
pub(crate) struct HttpError {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
}

impl HttpError {
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
    Live(ServedCluster),
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
    cache: HistoryCache,
    replies: ReplyCache,
    /// Who looks at the state of the cluster does so alone.
    looking: Arc<Semaphore>,
    seen: Mutex<Option<Seen>>,
}

/// The rows of a cluster, when they were seen, and how many decisions of operators there had been.
struct Seen {
    rows: Arc<Vec<RunRow>>,
    at: Instant,
    decisions: u64,
}

impl Dashboard {
    /// That of a coordinator.
    pub(crate) fn live(served: ServedCluster, settings: &DashboardSettings, unix: fn() -> u64) -> Self {
        Self::of(Source::Live(served), "coordinator".to_owned(), settings.exhibit.clone(), unix)
    }

    /// That of a process that computes a run of its own.
    pub(crate) fn local(cluster: Cluster, exhibit: Option<Exhibit>, unix: fn() -> u64) -> Self {
        let served = ServedCluster::default();
        served.open(cluster);
        Self::of(Source::Live(served), "local run".to_owned(), exhibit, unix)
    }

    /// That of a store without a coordinator.
    pub(crate) fn stored(store: Store, place: String, exhibit: Option<Exhibit>, unix: fn() -> u64) -> Self {
        Self::of(Source::Stored(store), place, exhibit, unix)
    }

    fn of(source: Source, place: String, exhibit: Option<Exhibit>, unix: fn() -> u64) -> Self {
        let (cache, replies, looking) =
            (HistoryCache::new(exhibit), ReplyCache::default(), Arc::new(Semaphore::new(1)));
        Self(Arc::new(Inner { source, place, unix, cache, replies, looking, seen: Mutex::default() }))
    }

    /// The coordinator; nothing where there is a store alone.
    pub(crate) fn cluster(&self) -> Result<Option<&Cluster>, HttpError> {
        let served = match &self.0.source {
            Source::Stored(_) => return Ok(None),
            Source::Live(served) => served,
        };
        let away = |message: &str| HttpError::new(StatusCode::SERVICE_UNAVAILABLE, message);
        match served.get() {
            _ if served.is_standby() => Err(away("this coordinator stands by: another one has the store")),
            None => Err(away("the coordinator is reading its store")),
            Some(cluster) => Ok(Some(cluster)),
        }
    }

    fn store(&self) -> Result<&Store, HttpError> {
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

    /// Looks at the state of a cluster, apart from all other viewers, and seldom enough to leave it to the workers.
    async fn look<T>(&self, cluster: &Cluster, look: impl FnOnce(&ClusterState) -> T) -> T {
        let permit = self.0.looking.clone().acquire_owned().await;
        let start = Instant::now();
        let seen = cluster.look(look);
        let rest = REST * start.elapsed();
        if !rest.is_zero() {
            tokio::spawn(async move {
                tokio::time::sleep(rest).await;
                drop(permit);
            });
        }
        seen
    }

    fn replies(&self) -> &ReplyCache {
        &self.0.replies
    }

    /// How many decisions of operators there were: what was shown before the last one is old.
    fn decisions(&self) -> Result<u64, HttpError> {
        Ok(self.cluster()?.map_or(0, Cluster::decisions))
    }

    fn seen(&self, decisions: u64) -> Option<Arc<Vec<RunRow>>> {
        let seen = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = |seen: &&Seen| seen.at.elapsed() < ROWS_AGE && seen.decisions == decisions;
        seen.as_ref().filter(is_fresh).map(|seen| seen.rows.clone())
    }

    async fn rows(&self) -> Result<Rows, HttpError> {
        let Some(cluster) = self.cluster()? else {
            let Rows { rows, unread } = self.0.cache.rows(self.store()?).await?;
            return Ok(Rows { rows: self.0.cache.all_as_found(rows), unread });
        };
        let decisions = cluster.decisions();
        if let Some(rows) = self.seen(decisions) {
            return Ok(Rows { rows, unread: 0 });
        }
        let now = cluster.now();
        let look = |state: &ClusterState| self.seen(decisions).unwrap_or_else(|| Arc::new(state.rows(now)));
        let rows = self.look(cluster, look).await;
        let seen = Seen { rows: rows.clone(), at: Instant::now(), decisions };
        *self.0.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
        Ok(Rows { rows, unread: 0 })
    }

    /// A page of runs.
    pub(crate) async fn runs(&self, query: RunsQuery) -> Result<RunsPage, HttpError> {
        let Rows { rows, unread } = self.rows().await?;
        let mut page = RunsPage { unread, ..RunsPage::of(&rows, query) };
        self.0.cache.add_sparks(self.store()?, &mut page.runs).await;
        Ok(page)
    }

    /// One run, beside the one before of the same experiment; a study with its parts.
    async fn run_among_others(&self, name: &str) -> Result<RunView, HttpError> {
        let mut view = self.run(name).await?;
        let Rows { rows, .. } = self.rows().await?;
        view.row.before = predecessor(&rows, name);
        if view.row.kind == "study" {
            view.parts = parts(&rows, name);
            view.row.evaluations = view.parts.iter().map(|part| part.evaluations).sum();
            self.0.cache.add_sparks(self.store()?, &mut view.parts).await;
        }
        Ok(view)
    }

    /// One run.
    pub(crate) async fn run(&self, name: &str) -> Result<RunView, HttpError> {
        if let Some(cluster) = self.cluster()? {
            let (now, store) = (cluster.now(), health(cluster.store_watch()));
            let view = self.look(cluster, |state| live_view(state, name, (now, store))).await;
            return view.ok_or_else(|| HttpError::no_run(name));
        }
        let (store, run) = (self.store()?, id(name)?);
        let row = listing::row(store, &run).await.ok_or_else(|| HttpError::no_run(name))?;
        let row = self.0.cache.as_found(row);
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

    /// What lists show of one run.
    async fn row(&self, name: &str) -> Result<RunRow, HttpError> {
        let Some(cluster) = self.cluster()? else { return Ok(self.run(name).await?.row) };
        let now = cluster.now();
        let row = self.look(cluster, |state| state.row(name, now)).await;
        row.ok_or_else(|| HttpError::no_run(name))
    }

    /// Why a run makes no progress.
    async fn explain(&self, name: &str) -> Result<Why, HttpError> {
        let Some(cluster) = self.cluster()? else {
            let view = self.run(name).await?;
            if view.row.state == "finished" {
                // Only its records show whether it is whole. Why they cannot be read is no matter here.
                let _ = self.0.cache.history(self.store()?, &view.row).await;
                return Ok(self.run(name).await?.why);
            }
            return Ok(view.why);
        };
        let (now, store) = (cluster.now(), health(cluster.store_watch()));
        let situation = self.look(cluster, |state| state.situation(name, now, store)).await;
        Ok(why(&situation.ok_or_else(|| HttpError::no_run(name))?))
    }

    /// The workers.
    pub(crate) async fn workers(&self) -> Result<WorkersPage, HttpError> {
        let Some(cluster) = self.cluster()? else { return Ok(WorkersPage::default()) };
        let now = cluster.now();
        let look = |state: &ClusterState| WorkersPage {
            workers: state.worker_views(now),
            lease_milliseconds: state.rules.terms.lease.as_millis() as u64,
            is_live: true,
        };
        Ok(self.look(cluster, look).await)
    }

    /// What happened to a run in some time.
    async fn events(
        &self,
        name: &str,
        (from, to): (Option<u64>, Option<u64>),
    ) -> Result<Vec<EventView>, HttpError> {
        // A coordinator knows its runs, and when something may have been written: the store is not asked more than that.
        let (run, moment) = match self.cluster()? {
            Some(cluster) => {
                let decisions = cluster.decisions();
                (id(name)?, (decisions, self.row(name).await?.state))
            }
            None => (id(name)?, (0, String::new())),
        };
        let log = match self.0.cache.recent_log(&run, &moment) {
            Some(log) => Ok(log),
            None => self.0.cache.log(self.store()?, self.known(name).await?, moment).await,
        };
        let log = log.map_err(|reason| HttpError::new(StatusCode::CONFLICT, reason))?;
        let mut events = log.events.clone();
        events.retain(|event| from.is_none_or(|from| event.at >= from) && to.is_none_or(|to| event.at <= to));
        Ok(events)
    }

    /// The id of a run that there is.
    async fn known(&self, name: &str) -> Result<RunId, HttpError> {
        let run = id(name)?;
        if self.cluster()?.is_some() {
            // The coordinator knows its runs: the store is not asked.
            self.row(name).await?;
            return Ok(run);
        }
        let store = self.store()?;
        match store.size(&Place::Experiment.in_run(&run)).await {
            Err(error) if error.is_missing() => match listing::row(store, &run).await {
                // It may have lost that file alone.
                Some(_) => Ok(run),
                None => Err(HttpError::no_run(name)),
            },
            Err(error) => Err(HttpError::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())),
            Ok(_) => Ok(run),
        }
    }

    async fn artifacts(&self, name: &str) -> Result<Vec<ArtifactView>, HttpError> {
        let (store, run) = (self.store()?, self.known(name).await?);
        let failed =
            |error: store::StoreError| HttpError::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string());
        let mut artifacts = vec![];
        for path in store.list(&run.artifacts()).await.map_err(failed)? {
            let Some((_, Place::Artifact(artifact))) = Place::of(&path) else { continue };
            let bytes = store.size(&path).await.map_err(failed)?;
            artifacts.push(ArtifactView { name: ArtifactName::as_str(&artifact).to_owned(), bytes });
        }
        Ok(artifacts)
    }

    /// What the page of a run shows but for its history.
    pub(crate) async fn run_page(
        &self,
        name: &str,
        range: (Option<u64>, Option<u64>),
    ) -> Result<RunPage, HttpError> {
        let view = self.run_among_others(name).await?;
        let mut page = RunPage { view, range, ..RunPage::default() };
        if self.is_store_silent() {
            // The page explains that: it must not wait for the store itself.
            page.missing.push("The store does not respond: events and history are not shown.".to_owned());
            return Ok(page);
        }
        let patience = patience(&page.view.row);
        match tokio::time::timeout(patience, self.events(name, range)).await {
            Ok(Ok(read)) => page.events = read,
            Ok(Err(problem)) => page.missing.push(problem.message),
            Err(_) => page.missing.push("The store is slow: events are not shown yet.".to_owned()),
        }
        Ok(page)
    }

    /// Adds how the run went to its page. It is read apart from all calls, once for all who wait for it.
    pub(crate) async fn add_history(&self, page: &mut RunPage) -> Result<(), HttpError> {
        if self.is_store_silent() {
            return Ok(());
        }
        let patience = patience(&page.view.row);
        match self.0.cache.history_at_once(self.store()?, &page.view.row, patience).await {
            Ok(Some(known)) => {
                // What was measured of a run that has ended is not held in memory by its coordinator.
                page.view.row.strength = page.view.row.strength.or_else(|| known.history.last_strength());
                page.history = known.sections.clone();
                page.strip = known.strip.clone();
                page.history_age_milliseconds = self.0.cache.age(&known, &page.view.row);
                if matches!(self.0.source, Source::Stored(_)) {
                    let row = self.0.cache.as_found(page.view.row.clone());
                    if row.state == "damaged" && page.view.row.state != "damaged" {
                        let phase = Phase::Damaged(reason_of(&row));
                        page.view.why = why(&Situation { phase, ..Situation::default() });
                        page.view.row = row;
                    }
                }
            }
            Ok(None) => page.missing.push("The history is being read, and shown once it is.".to_owned()),
            Err(reason) => page.missing.push(reason),
        }
        Ok(())
    }

    fn is_store_silent(&self) -> bool {
        let cluster = self.cluster().ok().flatten();
        cluster.is_some_and(|cluster| cluster.store_watch().is_silent())
    }

    /// The reply of the JSON API to a path below `/api/v1/`, for a caller at an address. What was replied a moment ago is
    /// replied again.
    pub(crate) async fn view(
        &self,
        path: &str,
        query: &str,
        peer: Option<IpAddr>,
    ) -> Result<Bytes, HttpError> {
        let decisions = self.decisions()?;
        let key = format!("{path}?{query}");
        if let Some(known) = self.0.replies.known(&key, decisions) {
            return Ok(known);
        }
        let alone = self.0.replies.alone(peer, &key).await;
        if let Some(known) = self.0.replies.known(&key, decisions) {
            return Ok(known);
        }
        let turn = self.0.replies.turn(peer).await;
        let query = Query::parse(query);
        let key = (key, decisions);
        // Segments are split before they are decoded: a `/` within a name makes no other path.
        let segments: Vec<String> = path.split('/').map(decoded).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            ["runs"] => self.written(key, self.runs(query.runs()?).await?).await,
            ["runs", run] => self.written(key, self.run_among_others(run).await?).await,
            ["runs", run, "explain"] => self.written(key, self.explain(run).await?).await,
            ["runs", run, "islands"] => self.written(key, self.run(run).await?.islands).await,
            ["runs", run, "leases"] => self.written(key, self.leases(run).await?).await,
            ["runs", run, "events"] => self.written(key, self.events(run, query.range()?).await?).await,
            ["runs", run, "artifacts"] => self.written(key, self.artifacts(run).await?).await,
            ["runs", run, what @ ("epochs" | "statistics" | "champions" | "strength")] => {
                let points =
                    query.number("points")?.unwrap_or(POINTS as u64).clamp(2, MOST_POINTS as u64) as usize;
                let row = self.row(run).await?;
                // A history may take minutes, and is read once for all who wait: that takes no turn.
                drop((turn, alone));
                let known = self.0.cache.history(self.store()?, &row).await;
                let known = known.map_err(|reason| HttpError::new(StatusCode::CONFLICT, reason))?;
                let what = (*what).to_owned();
                let write = move || match what.as_str() {
                    "champions" => json_of(&known.history.champions),
                    "strength" => json_of(&known.history.strength),
                    "epochs" => json_of(&known.history.thinned(points).epochs),
                    _ => json_of(&known.history.thinned(points).statistics),
                };
                self.0.replies.write(key, write).await
            }
            ["workers"] => self.written(key, self.workers().await?).await,
            _ => Err(HttpError::new(StatusCode::NOT_FOUND, format!("there is nothing at `{path}`"))),
        }
    }

    /// A reply of the JSON API, written apart from all calls.
    async fn written(
        &self,
        key: (String, u64),
        shown: impl Serialize + Send + 'static,
    ) -> Result<Bytes, HttpError> {
        self.0.replies.write(key, move || json_of(&shown)).await
    }

    /// The leases of a run.
    async fn leases(&self, name: &str) -> Result<Vec<LeaseView>, HttpError> {
        let Some(cluster) = self.cluster()? else { return Ok(self.run(name).await?.leases) };
        let now = cluster.now();
        let leases = |state: &ClusterState| state.row(name, now).map(|_| state.lease_views(name, now));
        self.look(cluster, leases).await.ok_or_else(|| HttpError::no_run(name))
    }
}

/// What the dashboard shows of a store without a coordinator, for a command that looks at it again and again.
pub struct StoreView(Dashboard);

impl StoreView {
    /// That of a store.
    pub fn new(store: Store, unix: fn() -> u64) -> Self {
        Self(Dashboard::stored(store, String::new(), None, unix))
    }

    /// One run. Other runs of the store are read only if it consists of them.
    async fn run(&self, name: &str) -> Result<RunView, HttpError> {
        let view = self.0.run(name).await?;
        if view.row.kind == "study" { self.0.run_among_others(name).await } else { Ok(view) }
    }

    /// What the JSON API returns for a path below `/api/v1/`, but for the run before.
    ///
    /// # Errors
    /// Why it cannot, in a sentence.
    pub async fn view(&self, path: &str) -> Result<Value, String> {
        if let Some(run) = path.strip_prefix("runs/").filter(|run| !run.contains(['/', '?'])) {
            let run = self.run(&decoded(run)).await.map_err(|problem| problem.message)?;
            return serde_json::to_value(run).map_err(|error| error.to_string());
        }
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let json = self.0.view(path, query, None).await.map_err(|problem| problem.message)?;
        serde_json::from_slice(&json).map_err(|error| error.to_string())
    }
}

/// How long the page of a run waits for what it reads from the store. That of a run that continues is refreshed soon.
fn patience(row: &RunRow) -> Duration {
    let continues = matches!(row.state.as_str(), "waiting" | "running" | "paused");
    if continues { SHORT_PATIENCE } else { PATIENCE }
}

/// Why a run is damaged: without what the sentence about it says anyway.
fn reason_of(row: &RunRow) -> String {
    let reason = row.reason.split_once("is damaged: ").map_or(row.reason.as_str(), |(_, reason)| reason);
    reason.split("; nothing was changed").next().unwrap_or_default().to_owned()
}

fn no_coordinator() -> HttpError {
    HttpError::new(StatusCode::CONFLICT, "this is a store without a coordinator: nothing can be changed here")
}

fn id(name: &str) -> Result<RunId, HttpError> {
    RunId::new(name).map_err(|_| HttpError::no_run(name))
}

fn json_of(shown: &impl Serialize) -> Result<Vec<u8>, HttpError> {
    let failed =
        |error: serde_json::Error| HttpError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
    serde_json::to_vec(shown).map_err(failed)
}

impl Cluster {
    /// Why a run makes no progress; nothing if there is no such run.
    pub fn explain(&self, run: &str) -> Option<Why> {
        let (now, store) = (self.now(), health(self.store_watch()));
        self.look(|state| state.situation(run, now, store)).map(|situation| why(&situation))
    }
}

fn live_view(state: &ClusterState, run: &str, (now, store): (Moment, StoreHealth)) -> Option<RunView> {
    let row = state.row(run, now)?;
    let why = why(&state.situation(run, now, store)?);
    let actions: &[&str] = match row.state.as_str() {
        "waiting" | "running" if row.kind == "evolution" => &["pause", "extend", "cancel"],
        "waiting" | "running" => &["pause", "cancel"],
        "paused" => &["resume", "cancel"],
        "finished" | "cancelled" | "failed" if row.kind == "evolution" => &["extend"],
        _ => &[],
    };
    let actions = actions.iter().map(|&action| action.to_owned()).collect();
    let (islands, leases) = (state.island_views(run), state.lease_views(run, now));
    Some(RunView { row, why, islands, leases, actions, parts: vec![] })
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

    fn number(&self, key: &str) -> Result<Option<u64>, HttpError> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let bad =
            |_| HttpError::new(StatusCode::BAD_REQUEST, format!("{key}: expected a number, found `{text}`"));
        text.parse().map(Some).map_err(bad)
    }

    fn runs(&self) -> Result<RunsQuery, HttpError> {
        let text = |key| self.text(key).unwrap_or_default().to_owned();
        let page = self.number("page")?.unwrap_or(0);
        Ok(RunsQuery { state: text("state"), search: text("search"), page: page.min(1 << 20) as usize })
    }

    /// A time: milliseconds since 1970, or a date and a time in UTC.
    fn time(&self, key: &str) -> Result<Option<u64>, HttpError> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let last = if key == "to" { 999 } else { 0 };
        // A time in words is shown to the second, and means all of it.
        let words = || report::text::parse_moment(text).map(|at| at + last);
        let time = text.parse().ok().filter(|at| *at <= LATEST).or_else(words);
        let bad = || {
            let expected = "expected milliseconds since 1970, or a time such as 2026-11-16T05:20:00";
            HttpError::new(StatusCode::BAD_REQUEST, format!("{key}: {expected}, found `{text}`"))
        };
        time.map(Some).ok_or_else(bad)
    }

    fn range(&self) -> Result<(Option<u64>, Option<u64>), HttpError> {
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
pub(crate) fn failed_page(frame: &Frame, problem: &HttpError) -> String {
    let title = problem.status.canonical_reason().unwrap_or("Error");
    page::failed(frame, title, &problem.message)
}

/// An error for programs.
pub(crate) fn failed_value(problem: &HttpError) -> Value {
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
        let second = "from=2026-11-16T05:20:07&to=2026-11-16T05:20:07";
        assert_eq!(Query::parse(second).range().unwrap(), (Some(1_794_806_407_000), Some(1_794_806_407_999)));
        assert_eq!(Query::parse("to=1794806407000").range().unwrap(), (None, Some(1_794_806_407_000)));
        let late = Query::parse("from=18446744073709551615").range();
        assert_eq!(late.unwrap_err().status, StatusCode::BAD_REQUEST);
        assert_eq!(Query::parse("to=yesterday").range().unwrap_err().status, StatusCode::BAD_REQUEST);
    }
}
