//! Every method of every path, by callers who may not: nothing changes. The description says what there is.

use super::guard::Guard;
use super::route::{Needs, ROUTES, Route};
use super::web::{Web, router};
use super::{Dashboard, DashboardSettings};
use crate::serve::connections::HttpPeer;
use crate::serve::{Front, LivePermissions, Permissions, Tokens, start_local};
use axum::Extension;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use axum::response::Response;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use store::{Nonce, Store};
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
    cluster: crate::Cluster,
    run: String,
    _background: crate::Background,
}

impl Site {
    async fn new(permissions: Permissions) -> Self {
        let (cluster, background) = start_local(Store::memory(), Nonce(1), "test", || 0).await.unwrap();
        let plan = experiment::parse("hostile.toml", EXPERIMENT, None).unwrap();
        let run = cluster.submit(plan, vec![], 0, false).await.unwrap();
        let front = Front::default();
        front.open(cluster.clone());
        let dashboard = Dashboard::live(front, &DashboardSettings::default(), || 1000);
        let guard =
            Guard::new(Arc::new(LivePermissions::new(permissions)), b"secret", vec![], false, || 1000);
        let peer = HttpPeer(IpAddr::from([127, 0, 0, 1]));
        let router = router(Web::new(dashboard, guard)).layer(Extension(peer));
        Self { router, cluster, run, _background: background }
    }

    async fn protected() -> Self {
        let tokens = |text| Tokens::parse(text).unwrap();
        let permissions =
            Permissions { operators: tokens(OPERATOR), viewers: tokens(VIEWER), ..Permissions::default() };
        Self::new(permissions).await
    }

    async fn ask(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
        // A second's worth of requests may come at once, and this is faster than any person.
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
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

    /// All that could have changed.
    fn state(&self) -> String {
        let page = self.cluster.look(|state| (state.rows(), state.worker_views(self.cluster.now())));
        format!("{page:?}")
    }
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
    let mut site = Site::protected().await;
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
                let is_there = Route::of(&path).is_some_and(|(route, _)| route.needs("GET").is_some());
                let allowed = method == "GET" && is_there && (is_viewer || is_open);
                assert_eq!(status.is_success(), allowed, "{method} {path} with {token:?}: {status}");
            }
        }
    }
    assert_eq!(site.state(), before);
}

#[tokio::test(start_paused = true)]
async fn a_hostile_page_changes_nothing_even_on_loopback_without_tokens() {
    let mut site = Site::new(Permissions::default()).await;
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
        assert_eq!(site.cluster.look(|state| state.row(&run).unwrap().state), state, "{action}");
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
    let (openapi, run) = (openapi(), site.run.clone());
    for (path, methods) in openapi["paths"].as_object().unwrap() {
        let schema = &methods["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        if schema.as_object().is_none_or(serde_json::Map::is_empty) {
            continue;
        }
        let response = site.ask("GET", &path.replace("{run}", &run), &[], "").await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        let found: Value = serde_json::from_str(&text(response).await).unwrap();
        check(&openapi, schema, &found, path);
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
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
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
