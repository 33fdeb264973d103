//! Health, metrics and the dashboard over HTTP.

use super::connections::{HEAD, HttpPeer, serve_http};
use super::metric_families;
use super::metrics;
use super::permissions::{LivePermissions, RateLimit, Right};
use super::tls::LiveTls;
use super::worker_api::ServedCluster;
use crate::dashboard::{self, AccessCheck, Web};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::time::Instant;

/// The most pages of metrics of one address per second: each looks at every run.
const PAGES_PER_SECOND: u32 = 20;

/// Probes need no token; reading the metrics does, because they name the runs.
pub(crate) fn router(
    served: ServedCluster,
    permissions: Arc<LivePermissions>,
    tls: Option<Arc<LiveTls>>,
    web: Web,
) -> Router {
    let metrics = Router::new()
        .route(
            "/metrics",
            get(
                move |State(served): State<ServedCluster>,
                      Extension(rate_limit): Extension<Arc<RateLimit>>,
                      peer| async move { measure(&served, &rate_limit, peer, tls.as_deref()) },
            ),
        )
        .route_layer(from_fn_with_state((permissions, web.access().clone()), check));
    let rate_limit = Arc::new(RateLimit::default());
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .merge(metrics.layer(Extension(rate_limit)))
        .with_state(served)
        .merge(dashboard::router(web))
}

/// Serves the metrics of a process that is not a coordinator, and whether it lives. They name no run.
pub async fn serve_metrics(listener: TcpListener, page: Arc<dyn Fn() -> String + Send + Sync>) {
    let metrics =
        get(move || async move { ([(header::CONTENT_TYPE, metric_families::CONTENT_TYPE)], page()) });
    let router = Router::new().route("/healthz", get(|| async { "ok\n" })).route("/metrics", metrics);
    serve_http(listener, None, router, HEAD).await;
}

async fn check(
    State((permissions, access)): State<(Arc<LivePermissions>, AccessCheck)>,
    request: Request,
    next: Next,
) -> Response {
    // Without tokens a site whose name was made to stand for this machine could read them in a browser.
    if !permissions.current().wants_tokens()
        && let Err(problem) = access.check_host(request.headers())
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

async fn ready(State(served): State<ServedCluster>) -> (StatusCode, &'static str) {
    let reason = match served.get() {
        None if served.is_standby() => "standing by\n",
        // The reason itself is for workers and operators: it may name files.
        None if served.is_refused() => "cannot start: see the log\n",
        None => "reading the store\n",
        Some(cluster) if cluster.is_closing() => "going away\n",
        Some(cluster) if cluster.store_watch().is_silent() => {
            let is_rejecting = cluster.store_watch().is_rejecting();
            // The error itself may name files.
            if is_rejecting {
                "the store returns errors: see the log\n"
            } else {
                "the store does not respond\n"
            }
        }
        Some(_) => return (StatusCode::OK, "ready\n"),
    };
    (StatusCode::SERVICE_UNAVAILABLE, reason)
}

fn measure(
    served: &ServedCluster,
    rate_limit: &RateLimit,
    peer: Option<Extension<HttpPeer>>,
    tls: Option<&LiveTls>,
) -> Response {
    if let Some(Extension(HttpPeer(peer))) = peer
        && !rate_limit.admits(peer, PAGES_PER_SECOND, Instant::now())
    {
        return (StatusCode::TOO_MANY_REQUESTS, "too many requests from one address: slow down\n")
            .into_response();
    }
    let expires = tls.and_then(|tls| tls.current().expires());
    ([(header::CONTENT_TYPE, metric_families::CONTENT_TYPE)], metrics::page(served, expires)).into_response()
}
