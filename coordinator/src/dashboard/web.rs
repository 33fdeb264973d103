//! The dashboard over HTTP: every request passes the same checks, in the same order.

use super::access::{AccessCheck, Caller};
use super::route::{Needs, Route};
use super::stream::{self, Streams};
use super::{
    Dashboard, Exhibit, HttpError, Offers, PlayError, PlayTable, Query, action, failed_page, failed_value,
};
use crate::cluster::Cluster;
use crate::serve::connections::{HEAD, HttpPeer, HttpSlot, serve_http};
use crate::serve::{LivePermissions, RateLimit};
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use experiment::document::MAX_BYTES;
use futures::future::BoxFuture;
use report::dashboard::page::{Frame, RunPage};
use report::dashboard::{self, PlayForm, RunsPage, WorkersPage, page};
use serde_json::Value;
use std::net::IpAddr;
use std::sync::Arc;
use store::Store;
use tokio::net::TcpListener;
use tokio::time::Instant;

/// The most requests and the most log-ins of one address per second: as many pages as may have streams can be opened at once.
const REQUESTS: u32 = 200;
const LOG_INS: u32 = 5;
/// The largest body of an action, but for a submission; a text may grow to twice its size as JSON.
const LARGEST_BODY: usize = 64 << 10;
const LARGEST_SUBMISSION: usize = 2 * MAX_BYTES as usize + (64 << 10);

/// What pages may load and where they may send something: from and to this server alone.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The description of the API.
const OPENAPI: &str = include_str!("../../../docs/openapi.json");

/// The dashboard and what guards it.
#[derive(Clone)]
pub(crate) struct Web {
    dashboard: Dashboard,
    access: AccessCheck,
    streams: Streams,
    requests: Arc<RateLimit>,
    log_ins: Arc<RateLimit>,
    table: Option<PlayTable>,
    form: PlayForm,
}

/// What a page shows.
enum Shown {
    Runs(RunsPage),
    Workers(WorkersPage),
    Run(Box<RunPage>),
}

impl Web {
    pub(crate) fn new(dashboard: Dashboard, access: AccessCheck) -> Self {
        Self {
            dashboard,
            access,
            streams: Streams::default(),
            requests: Arc::default(),
            log_ins: Arc::default(),
            table: None,
            form: PlayForm::default(),
        }
    }

    /// The same with a board to play on, if there is a table for it.
    pub(crate) fn with_table(self, table: Option<PlayTable>, form: PlayForm) -> Self {
        Self { table, form, ..self }
    }

    /// What checks requests.
    pub(crate) fn access(&self) -> &AccessCheck {
        &self.access
    }
}

/// All paths of the dashboard.
pub(crate) fn router(web: Web) -> axum::Router {
    axum::Router::new().fallback(serve).with_state(web)
}

/// Serves the runs of a store without a coordinator, on an address that only this machine reaches, until it is stopped.
pub async fn serve_store(
    listener: TcpListener,
    (store, place): (Store, String),
    offers: Offers,
    unix: fn() -> u64,
    shutdown: BoxFuture<'_, ()>,
) {
    let dashboard = Dashboard::stored(store, place, offers.exhibit, unix);
    serve_open(listener, dashboard, (offers.table, offers.form), unix, shutdown).await;
}

/// Serves the runs of a coordinator in this process, on an address that only this machine reaches, until it is stopped.
pub async fn serve_cluster(
    listener: TcpListener,
    cluster: Cluster,
    exhibit: Option<Exhibit>,
    unix: fn() -> u64,
    shutdown: BoxFuture<'_, ()>,
) {
    let table = (None, PlayForm::default());
    serve_open(listener, Dashboard::local(cluster, exhibit, unix), table, unix, shutdown).await;
}

async fn serve_open(
    listener: TcpListener,
    dashboard: Dashboard,
    (table, form): (Option<PlayTable>, PlayForm),
    unix: fn() -> u64,
    shutdown: BoxFuture<'_, ()>,
) {
    let permissions: Arc<LivePermissions> = Arc::default();
    let web =
        Web::new(dashboard, AccessCheck::new(permissions, &[], vec![], false, unix)).with_table(table, form);
    tokio::select! {
        () = serve_http(listener, None, router(web), HEAD) => {}
        () = shutdown => {}
    }
}

async fn serve(State(web): State<Web>, request: Request) -> Response {
    let is_api = request.uri().path().starts_with("/api/");
    let asked = request.uri().to_string();
    let mut response = match answer(&web, request).await {
        Ok(response) => response,
        Err(problem) => failed(&web, is_api, &asked, &problem),
    };
    protect(response.headers_mut());
    response
}

/// What every reply has, whatever it is.
fn protect(headers: &mut HeaderMap) {
    let all = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    for (name, value) in all {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

fn failed(web: &Web, is_api: bool, asked: &str, problem: &HttpError) -> Response {
    if problem.status == StatusCode::UNAUTHORIZED && !is_api {
        let next = if asked == "/" { String::new() } else { format!("?next={}", page::query(asked)) };
        return Redirect::to(&format!("/login{next}")).into_response();
    }
    let mut response = if is_api {
        (problem.status, json(&failed_value(problem))).into_response()
    } else {
        (problem.status, Html(failed_page(&web.dashboard.frame(false, false), problem))).into_response()
    };
    if problem.status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

fn json(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

async fn answer(web: &Web, request: Request) -> Result<Response, HttpError> {
    let (parts, body) = request.into_parts();
    let (headers, path) = (&parts.headers, parts.uri.path());
    let peer = parts.extensions.get::<HttpPeer>().map(|HttpPeer(peer)| *peer);
    web.access.check_host(headers)?;
    if peer.is_some_and(|peer| !web.requests.admits(peer, REQUESTS, Instant::now())) {
        return Err(HttpError::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too many requests from one address: slow down",
        ));
    }
    let nothing = || HttpError::new(StatusCode::NOT_FOUND, "there is nothing at this address");
    let (route, segments) = Route::of(path).ok_or_else(nothing)?;
    let method = parts.method.as_str();
    let Some(needs) = route.needs(method) else {
        let mut response = failed(
            web,
            path.starts_with("/api/"),
            path,
            &HttpError::new(
                StatusCode::METHOD_NOT_ALLOWED,
                format!("expected {}, found another method", route.allowed()),
            ),
        );
        if let Ok(allowed) = HeaderValue::from_str(&route.allowed()) {
            response.headers_mut().insert(header::ALLOW, allowed);
        }
        return Ok(response);
    };
    let caller = web.access.caller(headers, peer);
    if method == "GET" {
        AccessCheck::check_reader(headers)?;
    } else {
        web.access.check_origin(headers, caller)?;
    }
    AccessCheck::check(needs, caller)?;
    let query = Query::parse(parts.uri.query().unwrap_or(""));
    match (route.path, method) {
        ("/login", "GET") => Ok(Html(page::login("", next_page(&query))).into_response()),
        ("/login", _) => log_in(web, peer, headers, body).await,
        ("/logout", _) => {
            let cookie = [(header::SET_COOKIE, web.access.log_out(headers))];
            Ok((cookie, Redirect::to("/login")).into_response())
        }
        ("/assets/dashboard.css", _) => Ok(asset("text/css", dashboard::style())),
        ("/assets/dashboard.js", _) => Ok(asset("text/javascript", dashboard::SCRIPT.to_owned())),
        ("/assets/games.js", _) => Ok(asset("text/javascript", dashboard::GAMES_SCRIPT.to_owned())),
        ("/api/v1/openapi.json", _) => {
            Ok(([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response())
        }
        ("/api/v1/stream", _) => {
            let stream =
                stream::open(&web.dashboard, &web.streams, peer.unwrap_or(IpAddr::from([127, 0, 0, 1])))?;
            // Streams have a budget of their own: the connection of one gives way to no other.
            if let Some(slot) = parts.extensions.get::<HttpSlot>() {
                slot.keep();
            }
            Ok(stream)
        }
        ("/assets/play.js", _) => Ok(asset("text/javascript", dashboard::PLAY_SCRIPT.to_owned())),
        ("/play", _) => {
            web.table.as_ref().ok_or_else(no_table)?;
            let frame = Frame { is_live: false, ..web.frame(caller) };
            Ok(Html(page::play(&web.form(&query), &frame)).into_response())
        }
        ("/api/v1/play", _) => {
            let table = web.table.as_ref().ok_or_else(no_table)?;
            check_is_json(headers)?;
            let body = read(body, LARGEST_BODY).await?;
            let asked = serde_json::from_slice(&body).map_err(|error| {
                HttpError::new(StatusCode::BAD_REQUEST, format!("expected JSON: {error}"))
            })?;
            let failed = |error: PlayError| {
                let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                HttpError::new(status, error.message)
            };
            Ok(json(&table(asked).await.map_err(failed)?))
        }
        (_, "POST") if needs == Needs::Operate => {
            check_is_json(headers)?;
            let limit = if route.path == "/api/v1/runs" { LARGEST_SUBMISSION } else { LARGEST_BODY };
            let body = read(body, limit).await?;
            let done = action::act(&web.dashboard, route.path, &segments, &body).await?;
            tracing::info!(
                peer = peer.as_ref().map(tracing::field::display),
                action = path,
                "done on the dashboard"
            );
            Ok(json(&done))
        }
        (path, _) if path.starts_with("/api/v1/") => {
            let path = parts.uri.path().trim_start_matches("/api/v1/");
            let json = web.dashboard.view(path, parts.uri.query().unwrap_or(""), peer).await?;
            Ok(([(header::CONTENT_TYPE, "application/json")], json).into_response())
        }
        (path, _) => {
            let key = format!("{caller:?} {}", parts.uri);
            web.page((key, peer), path, &segments, &query, caller).await
        }
    }
}

impl Web {
    /// A page. Many who look at the same one cost little more than one.
    async fn page(
        &self,
        (key, peer): (String, Option<IpAddr>),
        path: &str,
        segments: &[String],
        query: &Query,
        caller: Caller,
    ) -> Result<Response, HttpError> {
        let shown =
            |page: Bytes| ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response();
        let (decisions, replies) = (self.dashboard.decisions()?, self.dashboard.replies());
        if let Some(page) = replies.known(&key, decisions) {
            return Ok(shown(page));
        }
        let _alone = replies.alone(peer, &key).await;
        if let Some(page) = replies.known(&key, decisions) {
            return Ok(shown(page));
        }
        // What waits for the store waits before it takes a place among the pages that are written.
        let mut data = {
            let _turn = replies.turn(peer).await;
            match path {
                "/" => Shown::Runs(self.dashboard.runs(query.runs()?).await?),
                "/workers" => Shown::Workers(self.dashboard.workers().await?),
                _ => {
                    let run = segments.first().map_or("", String::as_str);
                    Shown::Run(Box::new(self.dashboard.run_page(run, query.range()?).await?))
                }
            }
        };
        if let Shown::Run(page) = &mut data {
            self.dashboard.add_history(page).await?;
        }
        let frame = self.frame(caller);
        let write = move || {
            let html = match &data {
                Shown::Runs(runs) => page::runs(runs, &frame),
                Shown::Workers(workers) => page::workers(workers, &frame),
                Shown::Run(run) => page::run(run, &frame),
            };
            Ok(html.into_bytes())
        };
        Ok(shown(replies.write((key, decisions), write).await?))
    }

    fn frame(&self, caller: Caller) -> Frame {
        let frame = self.dashboard.frame(caller.may_act, caller.has_session);
        Frame { has_table: self.table.is_some(), ..frame }
    }

    /// How the form of a new game is filled: with the player that is asked for, where there may be another one.
    fn form(&self, query: &Query) -> PlayForm {
        let form = self.form.clone();
        match query.text("player") {
            Some(player) if !form.is_fixed => PlayForm { player: player.to_owned(), ..form },
            _ => form,
        }
    }
}

fn asset(kind: &'static str, text: String) -> Response {
    let headers = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "max-age=300")];
    (headers, text).into_response()
}

fn no_table() -> HttpError {
    let message = "nothing is played here: `atoll dashboard` and `atoll play PLAYER --web` do";
    HttpError::new(StatusCode::NOT_FOUND, message)
}

/// Other sites cannot send JSON without asking first, and are not answered when they do.
fn check_is_json(headers: &HeaderMap) -> Result<(), HttpError> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let kind = kind.split(';').next().unwrap_or("").trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(HttpError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "expected `application/json` as the content type"))
}

async fn read(body: Body, limit: usize) -> Result<Bytes, HttpError> {
    let large = |_| {
        HttpError::new(StatusCode::PAYLOAD_TOO_LARGE, format!("expected at most {limit} bytes, all of them"))
    };
    axum::body::to_bytes(body, limit).await.map_err(large)
}

async fn log_in(
    web: &Web,
    peer: Option<IpAddr>,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, HttpError> {
    if peer.is_some_and(|peer| !web.log_ins.admits(peer, LOG_INS, Instant::now())) {
        return Err(HttpError::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too many log-ins from one address: slow down",
        ));
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    if !kind.starts_with("application/x-www-form-urlencoded") {
        return Err(HttpError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "expected a form"));
    }
    let body = read(body, LARGEST_BODY).await?;
    let form = Query::parse(&String::from_utf8_lossy(&body));
    let Some(cookie) = form.text("token").and_then(|token| web.access.log_in(token.trim(), headers)) else {
        let message = "This token is not known here, or is not one of a viewer or an operator.";
        let page = page::login(message, next_page(&form));
        return Ok((StatusCode::FORBIDDEN, Html(page)).into_response());
    };
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to(next_page(&form))).into_response())
}

/// The page that a log-in leads to: one of ours, whatever is asked for.
fn next_page(query: &Query) -> &str {
    let asked = query.text("next").unwrap_or("/");
    let path = asked.split(['?', '#']).next().unwrap_or_default();
    let is_page =
        |(route, _): (&Route, _)| route.needs("GET") == Some(Needs::View) && !path.starts_with("/api/");
    let is_plain = asked.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_plain && Route::of(path).is_some_and(is_page) { asked } else { "/" }
}
