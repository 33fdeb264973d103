//! A bucket of S3 under a store, with credentials and an endpoint from the `AWS_` variables that all clients know.
//!
//! `object_store` creates by a conditional write (`If-None-Match: *`), of which S3 promises one winner. Added here: no
//! more requests at a time than a service likes, tries that end before leases do, and errors that say what to do.

use crate::error::{StoreError, causes};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::limit::LimitStore;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{BackoffConfig, ClientConfigKey, ClientOptions, ObjectStore, RetryConfig};
use std::sync::Arc;
use std::time::Duration;

/// The most requests at a time: islands are written side by side, and there may be ten thousand.
const MOST_REQUESTS: usize = 64;
/// How long a request may take. The largest objects are a gigabyte; smaller ones have [less time](crate::patience).
const LONGEST_REQUEST: Duration = Duration::from_mins(2);
/// How long a request is tried again that failed: less than [`crate::patience`] allows.
const LONGEST_RETRY: Duration = Duration::from_secs(5);
/// Opens a bucket. Nothing is asked of the service yet.
pub(crate) fn open(
    bucket: &str,
    prefix: &Path,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<Arc<dyn ObjectStore>, StoreError> {
    // TLS is ring's here and everywhere; an error only says that it is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = configured(variables).with_bucket_name(bucket);
    let place = || format!("s3://{bucket}");
    check_endpoint(&builder).map_err(|reason| StoreError::Settings { place: place(), reason })?;
    let allow_http = builder.get_config_value(&AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp));
    let options = ClientOptions::new()
        .with_timeout(LONGEST_REQUEST)
        .with_connect_timeout(Duration::from_secs(5))
        .with_allow_http(allow_http.is_some_and(|allowed| allowed == "true"));
    let service = builder
        .with_client_options(options)
        .with_retry(retry())
        .build()
        .map_err(|error| StoreError::Settings { place: place(), reason: causes(&error) })?;
    Ok(Arc::new(LimitStore::new(PrefixStore::new(service, prefix.clone()), MOST_REQUESTS)))
}

/// What the variables say. Those that are no settings of a client are not ours to judge.
fn configured(variables: impl IntoIterator<Item = (String, String)>) -> AmazonS3Builder {
    let settings = variables.into_iter().filter(|(name, _)| name.starts_with("AWS_"));
    settings.fold(AmazonS3Builder::new(), |builder, (name, value)| match name.to_ascii_lowercase().parse() {
        Ok(key) => builder.with_config(key, value),
        Err(_) => builder,
    })
}

fn retry() -> RetryConfig {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(2),
        base: 2.0,
    };
    RetryConfig { backoff, max_retries: 8, retry_timeout: LONGEST_RETRY }
}

/// Credentials must not travel in the clear because of a slip of the pen.
fn check_endpoint(builder: &AmazonS3Builder) -> Result<(), String> {
    let setting = |key: AmazonS3ConfigKey| builder.get_config_value(&key);
    let endpoint = setting(AmazonS3ConfigKey::S3Endpoint).or_else(|| setting(AmazonS3ConfigKey::Endpoint));
    let Some(endpoint) = endpoint else { return Ok(()) };
    let allowed = setting(AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp));
    if endpoint.starts_with("https://")
        || (endpoint.starts_with("http://") && allowed.as_deref() == Some("true"))
    {
        return Ok(());
    }
    Err(format!(
        "expected an endpoint that begins with `https://`, found `{endpoint}` in AWS_ENDPOINT_URL; \
         set AWS_ALLOW_HTTP=true if the network between is private"
    ))
}
