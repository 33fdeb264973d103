//! Health, metrics and the dashboard over HTTP.

use super::connections::HttpPeer;
use super::metrics;
use super::permissions::{LivePermissions, Pace, Right};
use super::tls::LiveTls;
use super::worker_api::Front;
use crate::dashboard::{self, Guard, Web};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use std::sync::Arc;
use tokio::time::Instant;

/// The most pages of metrics of one address in a second: each looks at every run.
const PAGES_PER_SECOND: u32 = 20;

/// Whoever probes needs no token; whoever reads the metrics does, because they name the runs.
pub(crate) fn router(
    front: Front,
    permissions: Arc<LivePermissions>,
    tls: Option<Arc<LiveTls>>,
    web: Web,
) -> Router {
    let metrics = Router::new()
        .route(
            "/metrics",
            get(move |State(front): State<Front>, Extension(pace): Extension<Arc<Pace>>, peer| async move {
                measure(&front, &pace, peer, tls.as_deref())
            }),
        )
        .route_layer(from_fn_with_state((permissions, web.guard().clone()), check));
    let pace = Arc::new(Pace::default());
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .merge(metrics.layer(Extension(pace)))
        .with_state(front)
        .merge(dashboard::router(web))
}

async fn check(
    State((permissions, guard)): State<(Arc<LivePermissions>, Guard)>,
    request: Request,
    next: Next,
) -> Response {
    // Without tokens a site whose name was made to stand for this machine could read them in a browser.
    if !permissions.current().wants_tokens()
        && let Err(problem) = guard.check_host(request.headers())
    {
        return (problem.status, format!("{}\n", problem.message)).into_response();
    }
    let header = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    match permissions.current().check(Right::Measure, header) {
        Ok(()) => next.run(request).await,
        Err(refused) => {
            let wanted = [(header::WWW_AUTHENTICATE, "Bearer")];
            (StatusCode::UNAUTHORIZED, wanted, format!("{refused}\n")).into_response()
        }
    }
}

async fn ready(State(front): State<Front>) -> (StatusCode, &'static str) {
    match front.get() {
        None if front.is_standby() => (StatusCode::SERVICE_UNAVAILABLE, "standing by\n"),
        None => (StatusCode::SERVICE_UNAVAILABLE, "reading the store\n"),
        Some(cluster) if cluster.is_closing() => (StatusCode::SERVICE_UNAVAILABLE, "going away\n"),
        Some(cluster) if cluster.store_watch().is_silent() => {
            (StatusCode::SERVICE_UNAVAILABLE, "the store does not answer\n")
        }
        Some(_) => (StatusCode::OK, "ready\n"),
    }
}

fn measure(front: &Front, pace: &Pace, peer: Option<Extension<HttpPeer>>, tls: Option<&LiveTls>) -> Response {
    if let Some(Extension(HttpPeer(peer))) = peer
        && !pace.admits(peer, PAGES_PER_SECOND, Instant::now())
    {
        return (StatusCode::TOO_MANY_REQUESTS, "too many requests from one address: slow down\n")
            .into_response();
    }
    let expires = tls.and_then(|tls| tls.current().expires());
    ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], metrics::page(front, expires)).into_response()
}
