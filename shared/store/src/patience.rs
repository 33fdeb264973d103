//! How long to wait for a service that may fall silent.

use std::io::{self, ErrorKind};
use std::time::Duration;

/// How long something small may take, tries included: less than a lease lasts, because others may wait for it, and more
/// than `SeaweedFS` takes to tell the last of two dozen who create the same object that it has lost.
const SMALL: Duration = Duration::from_secs(14);
/// How many bytes travel in a second, at the very least.
const SLOWEST: u64 = 1 << 20;

/// How long a service may take to answer: by how much has to travel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    small: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { small: SMALL }
    }
}

impl Patience {
    /// Waits for a response of this number of bytes, or to a request of this number.
    pub(crate) async fn wait<T>(
        self,
        bytes: u64,
        answer: impl Future<Output = object_store::Result<T>>,
    ) -> object_store::Result<T> {
        let longest = self.small + Duration::from_secs(bytes / SLOWEST);
        let silent = |_| {
            let text = format!("expected an answer within {longest:?}, found none");
            let source = Box::new(io::Error::new(ErrorKind::TimedOut, text));
            object_store::Error::Generic { store: "S3", source }
        };
        tokio::time::timeout(longest, answer).await.unwrap_or_else(|elapsed| Err(silent(elapsed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};

    #[tokio::test]
    async fn a_silent_service_is_not_waited_for() {
        let patience = Patience { small: Duration::from_millis(10) };
        assert_eq!(patience.wait(0, ready(Ok(7))).await.unwrap(), 7);
        let silent: object_store::Result<u8> = patience.wait(0, pending()).await;
        let error = silent.unwrap_err().to_string();
        assert!(error.contains("expected an answer within 10ms, found none"), "{error}");
    }
}
