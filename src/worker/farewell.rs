//! The one call of a worker that cannot start: its coordinator would wait for it, and a batch ends on both sides or on none.

use super::{channels, tokens, urls};
use crate::failure::{Exit, Failure};
use crate::log;
use crate::protection::Credentials;
use crate::settings::Settings;
use crate::signals::Signals;
use proto::calls::WorkerCalls;
use proto::v1;
use std::time::Duration;
use tokio::time::Instant;
use tonic::Code;
use worker::{ConnectionProbe, CredentialError, Grpc, REFUSED, Trust};

/// How long to wait between two calls.
const AGAIN: Duration = Duration::from_millis(500);
/// How long one of them may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reports to the coordinator of a batch why this worker cannot start; retries for as long as a worker waits for it.
pub(super) async fn tell(settings: &Settings, failure: Failure) -> Failure {
    let longest = match settings.time_or_never("give_up_after") {
        Ok(Some(longest)) => longest,
        // It is what is wrong.
        Err(_) => Duration::from_mins(1),
        Ok(None) => return failure,
    };
    let urls = callable(settings);
    if failure.exit() != Exit::Misconfigured || urls.is_empty() {
        return failure;
    }
    let _ = log::start(settings);
    tracing::error!(reason = %failure, "cannot start; the coordinator is informed");
    let Ok(mut signals) = Signals::listen() else { return failure };
    tokio::select! {
        () = signals.asked() => {}
        _ = tokio::time::timeout(longest, inform(settings, urls, failure.to_string())) => {}
    }
    failure
}

/// The addresses of coordinators, without what is no address: nothing is there to be informed.
fn callable(settings: &Settings) -> Vec<String> {
    let is_address =
        |url: &String| !matches!(worker::endpoint(url, &Trust::default()), Err(CredentialError::Url { .. }));
    urls(settings).unwrap_or_default().into_iter().filter(is_address).collect()
}

/// Calls until the coordinator has heard it. What cannot be read of the credentials is left out: a coordinator notes calls and
/// connections that it refuses, too, if they are repeated.
async fn inform(settings: &Settings, urls: Vec<String>, reason: String) -> Option<()> {
    let credentials = Credentials::of(settings).ok();
    let trust = credentials.as_ref().and_then(|credentials| credentials.trust().ok()).unwrap_or_default();
    let tokens = credentials.and_then(|credentials| tokens(&credentials, &urls).ok()).unwrap_or_default();
    // Without an authority to trust, there is only the handshake that says so.
    let calls = channels(&urls, &trust).ok().map(|channels| Grpc::new(channels, tokens));
    let look = ConnectionProbe::new(&urls[0], &trust)
        .or_else(|_| ConnectionProbe::new(&urls[0], &Trust::default()))
        .ok();
    let worker = format!("{:032x}", rand::random::<u128>());
    let request = v1::LeaveRequest { worker, reason, misconfigured: true };
    let mut refused: Option<Instant> = None;
    loop {
        let is_refused = match &calls {
            Some(calls) => match tokio::time::timeout(PATIENCE, calls.leave(request.clone())).await {
                Ok(Ok(_)) => return Some(()),
                // It cannot start either, or knows this worker for a liar.
                Ok(Err(status))
                    if matches!(status.code(), Code::FailedPrecondition | Code::PermissionDenied) =>
                {
                    return Some(());
                }
                Ok(Err(status)) => status.code() == Code::Unauthenticated,
                Err(_) => false,
            },
            None => false,
        };
        let is_distrusted = match &look {
            Some(look) if !is_refused => look.distrust().await.is_some(),
            _ => false,
        };
        if is_refused || is_distrusted {
            let since = *refused.get_or_insert_with(Instant::now);
            if since.elapsed() >= REFUSED {
                return Some(());
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}
