//! Every method of every path, by callers who may not: nothing changes. The description says what there is.

use super::access::AccessCheck;
use super::explain_tests::Stage;
use super::route::{Needs, ROUTES, Route};
use super::web::Web;
use super::{Dashboard, DashboardSettings, Exhibit, Offers, PlayTable};
use crate::serve::connections::{HEAD, HttpPeer, serve_http};
use crate::serve::{LivePermissions, Permissions, ServedCluster, Tokens, http};
use axum::Extension;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use axum::response::Response;
use report::dashboard::WorkerState;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_stream::StreamExt;
use tower::Service;

const EXPERIMENT: &str = r#"
name = "hostile"
problem = { kind = "onemax", length = 20 }
algorithm = { kind = "ga", population = 10 }
islands = { count = 2 }
budget = { generations = 4 }
"#;
const OPERATOR: &str = "operator-token-01";
const VIEWER: &str = "viewer-token-0001";
const OPENAPI: &str = include_str!("../../../docs/openapi.json");
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"];

fn openapi() -> Value {
    serde_json::from_str(OPENAPI).unwrap()
}

struct Site {
    router: axum::Router,
    stage: Stage,
    cluster: crate::Cluster,
    run: String,
    /// How often something was played on its board.
    played: Arc<AtomicUsize>,
}

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Without a board to play on, and with one.
const BOARDS: [bool; 2] = [false, true];

impl Site {
    async fn new(permissions: Permissions) -> Self {
        Self::of(permissions, LOOPBACK, Offers::default()).await
    }

    /// A site as it is seen from an address.
    async fn of(permissions: Permissions, peer: IpAddr, offers: Offers) -> Self {
        let stage = Stage::new().await;
        let (cluster, run) = (stage.cluster.clone(), stage.run.clone());
        let router = served(&cluster, permissions, offers).layer(Extension(HttpPeer(peer)));
        Self { router, stage, cluster, run, played: Arc::default() }
    }

    /// A site where each path would do something: its worker is there, and a board if there is to be one.
    async fn tempting(permissions: Permissions, peer: IpAddr, has_board: bool) -> Self {
        let played: Arc<AtomicUsize> = Arc::default();
        let counted = played.clone();
        let table: PlayTable = Arc::new(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { Ok(Value::Null) })
        });
        let offers = Offers { table: has_board.then_some(table), ..Offers::default() };
        let site = Self { played, ..Self::of(permissions, peer, offers).await };
        site.stage.acquire("local", 0).await;
        site
    }

    async fn protected() -> Self {
        Self::new(protecting()).await
    }

    async fn ask(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
        // A second's worth of requests may come at once, and this is faster than any person.
        tokio::time::sleep(Duration::from_millis(20)).await;
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", "127.0.0.1:7441");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        self.router.call(request).await.unwrap()
    }

    /// All that could have changed. That time passes is no change.
    fn state(&self) -> String {
        let (mut rows, workers) = self
            .cluster
            .look(|state| (state.rows(self.cluster.now()), state.worker_views(self.cluster.now())));
        for row in &mut rows {
            row.reason.clear();
        }
        let workers = workers.iter().map(|worker| (&worker.name, worker.state == WorkerState::Draining));
        let workers: Vec<(&String, bool)> = workers.collect();
        format!("{rows:?}, {workers:?}, played {} times", self.played.load(Ordering::SeqCst))
    }
}

/// An operator's and a viewer's token.
fn protecting() -> Permissions {
    let tokens = |text| Tokens::parse(text).unwrap();
    Permissions { operators: tokens(OPERATOR), viewers: tokens(VIEWER), ..Permissions::default() }
}

/// Everything that a coordinator serves over HTTP, and a board if one is offered.
fn served(cluster: &crate::Cluster, permissions: Permissions, offers: Offers) -> axum::Router {
    let Offers { exhibit, table, form } = offers;
    let served = ServedCluster::default();
    served.open(cluster.clone());
    let settings = DashboardSettings { hosts: vec![], exhibit, notify: None };
    let dashboard = Dashboard::live(served.clone(), &settings, || 1000);
    let permissions = Arc::new(LivePermissions::new(permissions));
    let access = AccessCheck::new(permissions.clone(), b"secret", vec![], false, || 1000);
    http::router(served, permissions, None, Web::new(dashboard, access).with_table(table, form))
}

async fn text(response: Response) -> String {
    let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Paths of the description with something in place of what stands in braces, and bodies that would do something.
fn paths(run: &str) -> Vec<(String, String)> {
    let openapi = openapi();
    let paths = openapi["paths"].as_object().unwrap().keys();
    let body = |path: &str| match path {
        "/api/v1/runs" => serde_json::json!({ "text": EXPERIMENT.replace("hostile", "another") }).to_string(),
        path if path.ends_with("/extend") => r#"{"generations":99}"#.to_owned(),
        _ => "{}".to_owned(),
    };
    paths.map(|path| (path.replace("{run}", run).replace("{worker}", "local"), body(path))).collect()
}

/// Whether there is something to look at. A coordinator has no board to play on.
fn is_shown(path: &str, has_board: bool) -> bool {
    (has_board || path != "/play") && Route::of(path).is_some_and(|(route, _)| route.needs("GET").is_some())
}

#[test]
fn the_description_names_every_path_and_method_with_its_right() {
    let openapi = openapi();
    let mut described = BTreeSet::new();
    for (path, methods) in openapi["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let needs = operation["x-needs"].as_str().unwrap();
            described.insert(format!("{} {path} {needs}", method.to_uppercase()));
        }
    }
    let word = |needs| match needs {
        Needs::Nothing => "nothing",
        Needs::View => "view",
        Needs::Operate => "operate",
    };
    let served: BTreeSet<String> = ROUTES
        .iter()
        .flat_map(|route| route.methods.iter().map(move |(method, needs)| (route.path, method, needs)))
        .map(|(path, method, needs)| format!("{method} {path} {}", word(*needs)))
        .collect();
    assert_eq!(described, served);
}

#[tokio::test(start_paused = true)]
async fn a_viewer_and_a_stranger_change_nothing() {
    for has_board in BOARDS {
        viewers_and_strangers_change_nothing(has_board).await;
    }
}

async fn viewers_and_strangers_change_nothing(has_board: bool) {
    let mut site = Site::tempting(protecting(), LOOPBACK, has_board).await;
    let before = site.state();
    let viewer = format!("Bearer {VIEWER}");
    for (path, body) in paths(&site.run) {
        for method in METHODS {
            for token in [None, Some(viewer.as_str()), Some("Bearer nobody-knows-this")] {
                let mut headers = vec![("content-type", "application/json")];
                headers.extend(token.map(|token| ("authorization", token)));
                let response = site.ask(method, &path, &headers, &body).await;
                let (status, is_viewer) = (response.status(), token == Some(viewer.as_str()));
                assert!(!status.is_server_error(), "{method} {path}: {status}");
                let is_open =
                    path.starts_with("/assets") || path == "/login" || path == "/api/v1/openapi.json";
                let is_there = is_shown(&path, has_board);
                let allowed = method == "GET" && is_there && (is_viewer || is_open);
                assert_eq!(status.is_success(), allowed, "{method} {path} with {token:?}: {status}");
            }
        }
    }
    assert_eq!(site.state(), before);
}

#[tokio::test(start_paused = true)]
async fn a_hostile_page_changes_nothing_even_on_loopback_without_tokens() {
    for has_board in BOARDS {
        a_hostile_page_without_tokens(has_board).await;
    }
}

async fn a_hostile_page_without_tokens(has_board: bool) {
    let mut site = Site::tempting(Permissions::default(), LOOPBACK, has_board).await;
    let before = site.state();
    let evil = [
        vec![("origin", "http://evil.example")],
        vec![("origin", "null")],
        vec![("sec-fetch-site", "cross-site")],
        // A name that was made to stand for this machine.
        vec![("host", "evil.example:7441"), ("origin", "http://evil.example:7441")],
    ];
    let kinds = [
        "application/json",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ];
    for (path, body) in paths(&site.run) {
        for method in METHODS.into_iter().filter(|method| *method != "GET") {
            for headers in &evil {
                for kind in kinds {
                    let headers = [headers.as_slice(), &[("content-type", kind)]].concat();
                    let response = site.ask(method, &path, &headers, &body).await;
                    let status = response.status();
                    assert!(status.is_client_error(), "{method} {path} with {headers:?}: {status}");
                    assert!(response.headers().get("access-control-allow-origin").is_none());
                }
            }
        }
        // Without an origin a form is still no action.
        if path.starts_with("/api/") {
            for kind in &kinds[1..] {
                let status = site.ask("POST", &path, &[("content-type", kind)], &body).await.status();
                assert!(status.is_client_error(), "{path} as {kind}: {status}");
            }
        }
        let rebound = site.ask("GET", &path, &[("host", "evil.example")], "").await.status();
        assert_eq!(rebound, StatusCode::MISDIRECTED_REQUEST, "{path}");
    }
    assert_eq!(site.state(), before);
}

/// What a page of another site sends with.
const EVIL: [&[(&str, &str)]; 4] = [
    &[("origin", "http://evil.example")],
    &[("origin", "null")],
    &[("origin", "http://127.0.0.1:7441"), ("sec-fetch-site", "cross-site")],
    // A browser that is too old to name its origin.
    &[],
];

#[tokio::test(start_paused = true)]
async fn a_hostile_page_changes_nothing_with_the_session_of_a_viewer_or_an_operator() {
    for has_board in BOARDS {
        a_hostile_page_with_a_session(has_board).await;
    }
}

async fn a_hostile_page_with_a_session(has_board: bool) {
    let mut site = Site::tempting(protecting(), LOOPBACK, has_board).await;
    let before = site.state();
    let form = [("content-type", "application/x-www-form-urlencoded"), ("origin", "http://127.0.0.1:7441")];
    for token in [VIEWER, OPERATOR] {
        let reply = site.ask("POST", "/login", &form, &format!("token={token}")).await;
        let cookie = reply.headers()["set-cookie"].to_str().unwrap().to_owned();
        let session = ("cookie", cookie.split(';').next().unwrap());
        assert_eq!(site.ask("GET", "/", &[session], "").await.status(), StatusCode::OK);
        for (path, body) in paths(&site.run) {
            for method in METHODS.into_iter().filter(|method| *method != "GET") {
                for evil in EVIL {
                    let headers = [evil, &[session, ("content-type", "application/json")]].concat();
                    let status = site.ask(method, &path, &headers, &body).await.status();
                    assert!(status.is_client_error(), "{method} {path} with {headers:?}: {status}");
                }
            }
        }
    }
    assert_eq!(site.state(), before);
}

#[tokio::test(start_paused = true)]
async fn without_tokens_other_machines_only_look() {
    for has_board in BOARDS {
        another_machine_only_looks(has_board).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_others_may_not_do_there_would_be_done_for_an_operator() {
    let mut site = Site::tempting(protecting(), LOOPBACK, true).await;
    let before = site.state();
    let bearer = format!("Bearer {OPERATOR}");
    let operator = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    for path in ["/api/v1/workers/local/drain", "/api/v1/play"] {
        assert_eq!(site.ask("POST", path, &operator, "{}").await.status(), StatusCode::OK, "{path}");
    }
    let after = site.state();
    assert!(after != before && after.contains("true") && after.contains("played 1 times"), "{after}");
}

async fn another_machine_only_looks(has_board: bool) {
    let peer = IpAddr::from([10, 0, 0, 7]);
    let mut site = Site::tempting(Permissions::default(), peer, has_board).await;
    let before = site.state();
    for (path, body) in paths(&site.run) {
        for method in METHODS {
            let status =
                site.ask(method, &path, &[("content-type", "application/json")], &body).await.status();
            let is_there = is_shown(&path, has_board);
            assert_eq!(status.is_success(), method == "GET" && is_there, "{method} {path}: {status}");
        }
    }
    assert_eq!(site.state(), before);
}

#[tokio::test(start_paused = true)]
async fn metrics_are_not_read_under_a_foreign_name() {
    let mut site = Site::new(Permissions::default()).await;
    for (host, status) in
        [("evil.example", StatusCode::MISDIRECTED_REQUEST), ("10.0.0.7:7441", StatusCode::OK)]
    {
        let reply = site.ask("GET", "/metrics", &[("host", host)], "").await;
        assert_eq!(reply.status(), status, "{host}");
        assert_eq!(text(reply).await.contains(&site.run), status.is_success());
        assert_eq!(site.ask("GET", "/healthz", &[("host", host)], "").await.status(), StatusCode::OK);
    }
    // Scrapers that bring a token come by any name.
    let mut site = Site::protected().await;
    let token = ("authorization", &*format!("Bearer {OPERATOR}"));
    let reply = site.ask("GET", "/metrics", &[("host", "atoll-coordinator:7441"), token], "").await;
    assert_eq!(reply.status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn an_operator_acts_and_every_reply_is_protected() {
    let mut site = Site::protected().await;
    let (bearer, run) = (format!("Bearer {OPERATOR}"), site.run.clone());
    let operator = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let act = format!("/api/v1/runs/{run}");
    for (action, body, state) in [
        ("pause", "", "paused"),
        ("resume", "{}", "waiting"),
        ("extend", r#"{"generations":50}"#, "waiting"),
        ("cancel", "{}", "cancelled"),
    ] {
        let response = site.ask("POST", &format!("{act}/{action}"), &operator, body).await;
        assert_eq!(response.status(), StatusCode::OK, "{action}: {}", text(response).await);
        assert_eq!(
            site.cluster.look(|state| state.row(&run, site.cluster.now()).unwrap().state),
            state,
            "{action}"
        );
    }
    for (path, body, expected) in [
        ("/api/v1/runs/nope/pause", "{}", StatusCode::NOT_FOUND),
        ("/api/v1/workers/nope/drain", "{}", StatusCode::NOT_FOUND),
        ("/api/v1/runs", "{", StatusCode::BAD_REQUEST),
        ("/api/v1/runs", r#"{"text":"nonsense = 1"}"#, StatusCode::BAD_REQUEST),
        ("/api/v1/runs", r#"{"text":"","unknown":1}"#, StatusCode::BAD_REQUEST),
        (&format!("{act}/pause") as &str, r#"{"unknown":1}"#, StatusCode::BAD_REQUEST),
        (&format!("{act}/pause"), "{}", StatusCode::CONFLICT),
    ] {
        let response = site.ask("POST", path, &operator, body).await;
        assert_eq!(response.status(), expected, "{path} {body}");
        let error: Value = serde_json::from_str(&text(response).await).unwrap();
        assert!(error["error"].as_str().is_some_and(|error| !error.is_empty()));
    }
    for (path, _) in paths(&run) {
        let response = site.ask("GET", &path, &operator, "").await;
        let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{path}");
        assert_eq!(response.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
    }
}

#[tokio::test(start_paused = true)]
async fn replies_are_those_of_the_description() {
    let mut site = Site::new(Permissions::default()).await;
    let openapi = openapi();
    // One run is finished, and a worker holds a piece of another.
    site.stage.finish("a").await;
    let second = experiment::parse("second.toml", &EXPERIMENT.replace("hostile", "second"), None).unwrap();
    let second = site.cluster.submit(second, vec![], 0, false).await.unwrap();
    assert_eq!(site.stage.acquire("a", 1).await.len(), 1);
    let mut filled = BTreeSet::new();
    for run in [site.run.clone(), second.clone()] {
        for (path, methods) in openapi["paths"].as_object().unwrap() {
            let schema = &methods["get"]["responses"]["200"]["content"]["application/json"]["schema"];
            if schema.as_object().is_none_or(serde_json::Map::is_empty) {
                continue;
            }
            let response = site.ask("GET", &path.replace("{run}", &run), &[], "").await;
            assert_eq!(response.status(), StatusCode::OK, "{path}");
            let found: Value = serde_json::from_str(&text(response).await).unwrap();
            check(&openapi, schema, &found, path);
            if found.as_array().is_none_or(|found| !found.is_empty()) {
                filled.insert(path.trim_start_matches("/api/v1/").to_owned());
            }
        }
    }
    for what in ["islands", "leases", "epochs", "statistics", "champions", "events"] {
        assert!(filled.contains(&format!("runs/{{run}}/{what}")), "there were some {what} to compare");
    }
    let json = ("content-type", "application/json");
    let actions = [
        ("/api/v1/runs/{run}/pause", "{}"),
        ("/api/v1/runs/{run}/resume", "{}"),
        ("/api/v1/runs/{run}/extend", r#"{"generations":6}"#),
        ("/api/v1/runs/{run}/cancel", "{}"),
        ("/api/v1/workers/{worker}/drain", "{}"),
        ("/api/v1/runs", r#"{"text":"TEXT"}"#),
    ];
    for (path, body) in actions {
        let body = body.replace("\"TEXT\"", &serde_json::json!(EXPERIMENT).to_string());
        let asked = path.replace("{run}", &second).replace("{worker}", "a");
        let response = site.ask("POST", &asked, &[json], &body).await;
        let (status, found) = (response.status(), text(response).await);
        assert_eq!(status, StatusCode::OK, "{path}: {found}");
        let operation = &openapi["paths"][path]["post"];
        let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
        check(&openapi, schema, &serde_json::from_str(&found).unwrap(), path);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_continued_is_read_again() {
    let mut site = Site::new(Permissions::default()).await;
    let run = site.run.clone();
    for generations in [4, 8] {
        if generations > 4 {
            let body = format!("{{\"generations\":{generations}}}");
            let path = format!("/api/v1/runs/{run}/extend");
            let response = site.ask("POST", &path, &[("content-type", "application/json")], &body).await;
            assert_eq!(response.status(), StatusCode::OK);
        }
        site.stage.finish("a").await;
        let statistics = site.ask("GET", &format!("/api/v1/runs/{run}/statistics"), &[], "").await;
        let statistics: Value = serde_json::from_str(&text(statistics).await).unwrap();
        let last =
            statistics.as_array().unwrap().iter().filter_map(|point| point["generation"].as_u64()).max();
        assert_eq!(last, Some(generations));
    }
}

#[tokio::test]
async fn a_history_is_read_once_whoever_waits_for_it_and_holds_up_nothing() {
    let (calls, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(tokio::sync::Semaphore::new(0)));
    let exhibit: Exhibit = {
        let (calls, gate) = (calls.clone(), gate.clone());
        Arc::new(move |_, _| {
            let gate = gate.clone();
            calls.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move {
                let _permit = gate.acquire_owned().await;
                vec![]
            })
        })
    };
    let offers = Offers { exhibit: Some(exhibit), ..Offers::default() };
    let mut site = Site::of(Permissions::default(), LOOPBACK, offers).await;
    site.stage.finish("a").await;
    let (page, statistics) = (format!("/runs/{}", site.run), format!("/api/v1/runs/{}/statistics", site.run));
    // Pages do not wait for what takes long, and neither does what stands behind them.
    for path in [page.as_str(), "/", page.as_str(), "/workers"] {
        let asked = tokio::time::timeout(Duration::from_secs(3), site.ask("GET", path, &[], "")).await;
        let shown = text(asked.expect("a page within 3 seconds")).await;
        assert_eq!(shown.contains("The history is being read"), path == page, "{path}: {shown}");
    }
    // A caller that hangs up ends nothing, and the next one begins nothing.
    let impatient = site.ask("GET", &statistics, &[], "");
    assert!(tokio::time::timeout(Duration::from_millis(50), impatient).await.is_err());
    gate.add_permits(10);
    assert_eq!(site.ask("GET", &statistics, &[], "").await.status(), StatusCode::OK);
    // The page that was made a moment ago is shown once more at most.
    let reading = async {
        while !text(site.ask("GET", &page, &[], "").await).await.contains("Best fitness over the generations")
        {
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(5), reading).await.is_ok());
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn the_page_of_a_run_explains_a_silent_store_without_asking_it() {
    let mut site = Site::new(Permissions::default()).await;
    let _writing = site.cluster.store_watch().begin();
    tokio::time::sleep(Duration::from_secs(11)).await;
    let shown = text(site.ask("GET", &format!("/runs/{}", site.run), &[], "").await).await;
    assert!(shown.contains("The store does not respond: events and history are not shown."), "{shown}");
}

/// One viewer asks for many pages that wait for the store, each another one.
#[tokio::test]
async fn pages_that_wait_for_the_store_keep_no_other_viewer_waiting() {
    let [gate, begun] = [(); 2].map(|()| Arc::new(tokio::sync::Semaphore::new(0)));
    let exhibit: Exhibit = {
        let (gate, begun) = (gate.clone(), begun.clone());
        Arc::new(move |_, _| {
            let gate = gate.clone();
            begun.add_permits(1);
            Box::pin(async move {
                let _permit = gate.acquire_owned().await;
                vec![]
            })
        })
    };
    let stage = Stage::new().await;
    stage.finish("a").await;
    let offers = Offers { exhibit: Some(exhibit), ..Offers::default() };
    let router = served(&stage.cluster, Permissions::default(), offers);
    let ask = |peer: [u8; 4], path: String| {
        let mut router = router.clone().layer(Extension(HttpPeer(IpAddr::from(peer))));
        let request = Request::builder().uri(path).header("host", "127.0.0.1:7441");
        let request = request.body(Body::empty()).unwrap();
        async move { router.call(request).await.unwrap().status() }
    };
    // Pages that are given up soon, and replies that wait for as long as it takes.
    let greedy: Vec<_> = (2..22)
        .flat_map(|number| [format!("?from={number}"), format!("/statistics?points={number}")])
        .map(|rest| match rest.strip_prefix('/') {
            Some(_) => format!("/api/v1/runs/{}{rest}", stage.run),
            None => format!("/runs/{}{rest}", stage.run),
        })
        .map(|path| tokio::spawn(ask([10, 0, 0, 1], path)))
        .collect();
    begun.acquire().await.unwrap().forget();
    for path in ["/", "/workers", "/api/v1/runs", "/api/v1/workers"] {
        let asked = tokio::time::timeout(Duration::from_secs(1), ask([10, 0, 0, 2], path.to_owned())).await;
        assert_eq!(asked.expect("a page within a second"), StatusCode::OK, "{path}");
    }
    assert!(greedy.iter().any(|asked| !asked.is_finished()), "they are still waiting");
    gate.add_permits(100);
    for asked in greedy {
        assert_eq!(asked.await.unwrap(), StatusCode::OK);
    }
}

/// Many viewers of one address, each of another run whose history is being read, or of the same.
#[tokio::test]
async fn pages_whose_history_is_being_read_wait_for_no_other_page() {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let exhibit: Exhibit = {
        let gate = gate.clone();
        Arc::new(move |_, _| {
            let gate = gate.clone();
            Box::pin(async move {
                let _permit = gate.acquire_owned().await;
                vec![]
            })
        })
    };
    let stage = Stage::new().await;
    stage.finish("a").await;
    let offers = Offers { exhibit: Some(exhibit), ..Offers::default() };
    let router = served(&stage.cluster, Permissions::default(), offers);
    let paths = (0..100).map(|number| format!("/runs/{}?from={}", stage.run, number % 50));
    let asked = paths.map(|path| {
        let mut router = router.clone().layer(Extension(HttpPeer(LOOPBACK)));
        let request = Request::builder().uri(path).header("host", "127.0.0.1:7441");
        tokio::spawn(
            async move { text(router.call(request.body(Body::empty()).unwrap()).await.unwrap()).await },
        )
    });
    let (asked, start) = (asked.collect::<Vec<_>>(), Instant::now());
    for page in asked {
        assert!(page.await.unwrap().contains("The history is being read"));
    }
    assert!(
        start.elapsed() < Duration::from_secs(4),
        "each waits a second, and none for another: {:?}",
        start.elapsed()
    );
    gate.add_permits(1);
}

#[tokio::test(start_paused = true)]
async fn replies_are_given_again_for_a_moment_unless_an_operator_changes_something() {
    let mut site = Site::new(Permissions::default()).await;
    site.stage.acquire("first", 0).await;
    for path in ["/workers", "/api/v1/workers"] {
        let late = format!("late-{}", path.len());
        let before = text(site.ask("GET", path, &[], "").await).await;
        assert!(before.contains("first"), "{before}");
        site.stage.acquire(&late, 0).await;
        assert_eq!(text(site.ask("GET", path, &[], "").await).await, before, "made once for all who ask");
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(text(site.ask("GET", path, &[], "").await).await.contains(&late));
    }
    // What an operator does shows at once, however it is done.
    for path in [format!("/runs/{}", site.run), format!("/api/v1/runs/{}/explain", site.run)] {
        assert!(!text(site.ask("GET", &path, &[], "").await).await.contains("The run is paused"), "{path}");
        site.cluster.pause(&site.run, true).await.unwrap();
        assert!(text(site.ask("GET", &path, &[], "").await).await.contains("The run is paused"), "{path}");
        site.cluster.pause(&site.run, false).await.unwrap();
    }
}

/// Reads a stream of events for a while, and counts those that say that something has changed.
async fn changes(site: &mut Site, time: Duration) -> usize {
    let response = site.ask("GET", "/api/v1/stream", &[], "").await;
    let mut body = response.into_body().into_data_stream();
    let (ends, mut count) = (tokio::time::Instant::now() + time, 0);
    while let Ok(Some(Ok(event))) = tokio::time::timeout_at(ends, body.next()).await {
        count += usize::from(event.starts_with(b"event: changed"));
    }
    count
}

#[tokio::test(start_paused = true)]
async fn pages_are_read_again_although_only_time_has_passed() {
    let mut site = Site::new(Permissions::default()).await;
    assert_eq!(changes(&mut site, Duration::from_secs(30)).await, 3, "every 10 seconds without a worker");
    site.stage.acquire("a", 0).await;
    let count = changes(&mut site, Duration::from_secs(30)).await;
    assert!((19..=31).contains(&count), "{count} in 30 seconds: a worker may become silent at any time");
}

#[tokio::test]
async fn a_hundred_open_pages_of_one_address_shut_out_nobody_and_are_not_shut_out() {
    let stage = Stage::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = served(&stage.cluster, Permissions::default(), Offers::default());
    let server = tokio::spawn(serve_http(listener, None, router, HEAD));
    let connect = || async move { TcpStream::connect(address).await.unwrap() };
    let mut streams = vec![];
    for _ in 0..100 {
        let mut stream = connect().await;
        stream.write_all(b"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 200");
        streams.push(stream);
    }
    // The pages are read at the same time, and none is cut off for another one.
    let mut pages = vec![];
    for number in 0..90 {
        let mut page = connect().await;
        let head = format!("GET /?search={number} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        page.write_all(head.as_bytes()).await.unwrap();
        pages.push(page);
    }
    for mut page in pages {
        let mut reply = String::new();
        page.read_to_string(&mut reply).await.unwrap();
        assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    }
    // Connections that say nothing, more than there are places.
    let mut silent = vec![];
    for _ in 0..400 {
        silent.push(connect().await);
    }
    let mut probe = connect().await;
    probe.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut reply = String::new();
    probe.read_to_string(&mut reply).await.unwrap();
    assert!(reply.ends_with("ready\n"), "{reply}");
    // Each page still hears of the next change.
    for stream in &mut streams {
        let mut bytes = vec![0; 4096];
        while matches!(stream.try_read(&mut bytes), Ok(1..)) {}
    }
    stage.cluster.pause(&stage.run, true).await.unwrap();
    for stream in &mut streams {
        let mut bytes = vec![0; 4096];
        let read = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut bytes)).await.unwrap();
        assert!(read.unwrap() > 0, "the stream was shut out");
    }
    server.abort();
}

#[tokio::test(start_paused = true)]
async fn a_slash_within_a_name_makes_no_other_path() {
    let mut site = Site::new(Permissions::default()).await;
    let path = format!("/api/v1/runs/{}%2Fexplain", site.run);
    assert_eq!(site.ask("GET", &path, &[], "").await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn a_log_in_leads_to_the_page_that_was_asked_for_and_nowhere_else() {
    let mut site = Site::protected().await;
    let sent = site.ask("GET", "/runs/x?from=1", &[], "").await.headers()["location"].clone();
    assert_eq!(sent, "/login?next=%2Fruns%2Fx%3Ffrom%3D1");
    let form = text(site.ask("GET", sent.to_str().unwrap(), &[], "").await).await;
    assert!(form.contains("name=\"next\" value=\"/runs/x?from=1\""), "{form}");
    let headers =
        [("content-type", "application/x-www-form-urlencoded"), ("origin", "http://127.0.0.1:7441")];
    for (next, leads) in [
        ("%2Fruns%2Fx%3Ffrom%3D1", "/runs/x?from=1"),
        ("%2Fworkers", "/workers"),
        ("", "/"),
        ("%2F%2Fevil.example", "/"),
        ("%2F%5Cevil.example", "/"),
        ("http%3A%2F%2Fevil.example", "/"),
        ("%2Fapi%2Fv1%2Fstream", "/"),
        ("%2Fruns%2Fx%0D%0Aset-cookie%3A+a", "/"),
    ] {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let reply = site.ask("POST", "/login", &headers, &format!("token={VIEWER}&next={next}")).await;
        assert_eq!(reply.headers()["location"], leads, "{next}");
    }
}

/// Compares a value with the part of JSON schema that the description uses.
fn check(openapi: &Value, schema: &Value, found: &Value, place: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let schema = openapi.pointer(name.trim_start_matches('#')).unwrap();
        return check(openapi, schema, found, place);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let chosen = choices.iter().find(|choice| (choice["type"] == "null") == found.is_null()).unwrap();
        return check(openapi, chosen, found, place);
    }
    let kind = match found {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is_kind = |wanted: &Value| wanted == kind || wanted == "number" && kind == "integer";
    match &schema["type"] {
        Value::Array(kinds) => assert!(kinds.iter().any(is_kind), "{place}: {found} is no {kinds:?}"),
        wanted => assert!(is_kind(wanted), "{place}: {found} is no {wanted}"),
    }
    if let Some(allowed) = schema["enum"].as_array() {
        assert!(allowed.contains(found), "{place}: {found}");
    }
    for (at, item) in found.as_array().into_iter().flatten().enumerate() {
        check(openapi, &schema["items"], item, &format!("{place}[{at}]"));
    }
    if let (Some(properties), Some(object)) = (schema["properties"].as_object(), found.as_object()) {
        let (described, keys): (BTreeSet<&String>, BTreeSet<&String>) =
            (properties.keys().collect(), object.keys().collect());
        assert_eq!(described, keys, "{place}");
        for (key, value) in object {
            check(openapi, &properties[key], value, &format!("{place}.{key}"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_begins_with_a_token_and_ends_with_a_click() {
    let mut site = Site::protected().await;
    assert_eq!(site.ask("GET", "/", &[], "").await.headers()["location"], "/login");
    let form = ("content-type", "application/x-www-form-urlencoded");
    let own = ("origin", "http://127.0.0.1:7441");
    let wrong = site.ask("POST", "/login", &[form, own], "token=nobody-knows-this").await;
    assert_eq!(wrong.status(), StatusCode::FORBIDDEN);
    let foreign = site.ask("POST", "/login", &[form, ("origin", "http://evil.example")], "token=x").await;
    assert_eq!(foreign.status(), StatusCode::FORBIDDEN);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let right = site.ask("POST", "/login", &[form, own], &format!("token={OPERATOR}")).await;
    assert_eq!(
        (right.status(), &right.headers()["location"]),
        (StatusCode::SEE_OTHER, &"/".parse().unwrap())
    );
    let cookie = right.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
    let session = ("cookie", cookie.split(';').next().unwrap());
    let page = text(site.ask("GET", "/", &[session], "").await).await;
    assert!(page.contains("Log out") && page.contains("Submit a run"), "{page}");
    let path = format!("/api/v1/runs/{}/pause", site.run);
    let json = ("content-type", "application/json");
    let without = site.ask("POST", &path, &[session, json], "{}").await;
    assert_eq!(without.status(), StatusCode::FORBIDDEN, "a browser names its origin");
    assert_eq!(site.ask("POST", &path, &[session, json, own], "{}").await.status(), StatusCode::OK);
    let out = site.ask("POST", "/logout", &[session, own], "").await;
    assert!(out.headers()["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
}

#[tokio::test(start_paused = true)]
async fn guessing_tokens_is_slow() {
    let mut site = Site::protected().await;
    let form = [("content-type", "application/x-www-form-urlencoded"), ("origin", "http://127.0.0.1:7441")];
    let mut refused = 0;
    for _ in 0..50 {
        let status = site.ask("POST", "/login", &form, "token=nobody-knows-this").await.status();
        refused += usize::from(status == StatusCode::TOO_MANY_REQUESTS);
    }
    assert!((30..50).contains(&refused), "{refused} of 50 in a second");
}
