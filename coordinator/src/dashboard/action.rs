//! What operators do on the dashboard.

use super::{Dashboard, HttpError, no_coordinator};
use crate::cluster::Cluster;
use crate::rejection::Rejection;
use axum::http::StatusCode;
use experiment::document::MAX_BYTES;
use experiment::file::BudgetKeys;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tonic::{Code, Status};

/// A run to be submitted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Submission {
    /// The experiment, sweep, study or tournament, in TOML.
    text: String,
    /// The name of its file, for messages.
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    seed: Option<u64>,
    #[serde(default)]
    priority: Option<i32>,
    #[serde(default)]
    fresh: bool,
}

/// Nothing else is needed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Drain {
    #[serde(default = "yes")]
    drain: bool,
}

fn yes() -> bool {
    true
}

/// Does what a path asks for, with what stands for its segments in braces.
pub(super) async fn act(
    dashboard: &Dashboard,
    path: &str,
    parts: &[String],
    body: &[u8],
) -> Result<Value, HttpError> {
    let cluster = dashboard.cluster()?.ok_or_else(no_coordinator)?;
    let part = parts.first().map_or("", String::as_str);
    let done = match path {
        "/api/v1/runs" => return submit(cluster, read(body)?).await,
        "/api/v1/runs/{run}/pause" => {
            let Nothing {} = read(body)?;
            cluster.pause(part, true).await
        }
        "/api/v1/runs/{run}/resume" => {
            let Nothing {} = read(body)?;
            cluster.pause(part, false).await
        }
        "/api/v1/runs/{run}/cancel" => {
            let Nothing {} = read(body)?;
            cluster.cancel(part).await
        }
        "/api/v1/runs/{run}/extend" => cluster.extend(part, read::<BudgetKeys>(body)?).await,
        "/api/v1/workers/{worker}/drain" => {
            let Drain { drain } = read(body)?;
            let is_known = cluster.drain(part, drain);
            let unknown = || HttpError::new(StatusCode::NOT_FOUND, format!("there is no worker `{part}`"));
            return is_known.then(|| json!({ "worker": part, "drain": drain })).ok_or_else(unknown);
        }
        _ => return Err(HttpError::new(StatusCode::NOT_FOUND, "there is no such action")),
    };
    done.map_err(rejected)?;
    Ok(json!({ "run": part }))
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, HttpError> {
    // An action without details may come without a body.
    let body = if body.is_empty() { b"{}" } else { body };
    let bad =
        |error: serde_json::Error| HttpError::new(StatusCode::BAD_REQUEST, format!("expected JSON: {error}"));
    // A structure could be read from a list as well, which is nobody's intention.
    match serde_json::from_slice(body).map_err(bad)? {
        object @ Value::Object(_) => serde_json::from_value(object).map_err(bad),
        _ => Err(HttpError::new(StatusCode::BAD_REQUEST, "expected a JSON object")),
    }
}

async fn submit(cluster: &Cluster, submission: Submission) -> Result<Value, HttpError> {
    let Submission { text, file, seed, priority, fresh } = submission;
    if seed.is_some_and(|seed| seed > i64::MAX as u64) || text.len() as u64 > MAX_BYTES {
        let message =
            format!("expected a seed of at most {} and a text of at most {MAX_BYTES} bytes", i64::MAX);
        return Err(HttpError::new(StatusCode::BAD_REQUEST, message));
    }
    let file = file.unwrap_or_else(|| "experiment.toml".to_owned());
    // A sweep of a million cells takes a while to check.
    let checked = tokio::task::spawn_blocking(move || experiment::parse(&file, &text, seed)).await;
    let plan =
        checked.map_err(|error| HttpError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    let plan = plan.map_err(|report| HttpError::new(StatusCode::BAD_REQUEST, report.to_string()))?;
    let run = cluster.submit(plan, vec![], priority, fresh).await.map_err(rejected)?;
    Ok(json!({ "run": run }))
}

fn rejected(rejection: Rejection) -> HttpError {
    let status = Status::from(rejection);
    let code = match status.code() {
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::InvalidArgument | Code::OutOfRange => StatusCode::BAD_REQUEST,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unavailable | Code::Internal | Code::Unknown => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::CONFLICT,
    };
    HttpError::new(code, status.message())
}
