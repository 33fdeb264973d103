//! A standby coordinator: it waits until the owner of the store is silent, and only then claims the store.
//!
//! Silence proves nothing: the owner may be cut off and alive. Terms fence it then, so that a wrong takeover costs time and
//! no result.

use std::time::Duration;
use store::{Claim, Owner, Store, StoreError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// How long an owner may take to answer.
const ANSWER: Duration = Duration::from_secs(1);
/// The first words of HTTP/2, with empty settings. A server answers with its own; one that speaks TLS, with an alert or by
/// closing the connection. A process that stands still does neither.
const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Waits until the store may be claimed: it has no owner, or one that has been silent for long enough.
pub(crate) async fn wait(store: &Store, own: &str, takeover_after: Duration) -> Result<(), StoreError> {
    let mut silent: Option<(u64, Instant)> = None;
    loop {
        let owner = Claim::owner(store).await;
        let owner = match owner {
            Ok(Some(owner)) if !owner.address.is_empty() && owner.address != own => owner,
            Ok(_) => return Ok(()),
            Err(error) if error.is_permanent() => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "cannot see who has the store");
                tokio::time::sleep(ANSWER).await;
                continue;
            }
        };
        let Owner { number, address, .. } = owner;
        if answers(&address).await {
            silent = None;
        } else {
            let since = match silent {
                Some((known, since)) if known == number => since,
                _ => Instant::now(),
            };
            silent = Some((number, since));
            if since.elapsed() >= takeover_after {
                tracing::warn!(owner = address, "the owner of the store is silent: taking over");
                return Ok(());
            }
        }
        let pause = takeover_after / 10;
        tokio::time::sleep(pause.clamp(Duration::from_millis(20), Duration::from_millis(500))).await;
    }
}

/// Whether a coordinator at this address, as `HOST:PORT`, answers at all within a second.
pub async fn answers(address: &str) -> bool {
    let greet = async {
        let mut stream = TcpStream::connect(address).await.ok()?;
        stream.write_all(GREETING).await.ok()?;
        stream.read(&mut [0]).await.ok()
    };
    matches!(tokio::time::timeout(ANSWER, greet).await, Ok(Some(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::Nonce;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn a_store_is_claimed_once_its_owner_is_silent() {
        let folder = std::env::temp_dir().join(format!("atoll-standby-{}", std::process::id()));
        let store = Store::local(&folder).await.unwrap();
        let after = Duration::from_millis(100);
        wait(&store, "own", after).await.unwrap();
        // One that answers keeps the store, one that accepts and says nothing does not.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        Claim::take(&store, Nonce(1), &address).await.unwrap();
        let serving = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.write_all(b"x").await;
            }
        });
        let waiting = wait(&store, "own", after);
        assert!(tokio::time::timeout(5 * after, waiting).await.is_err(), "the owner answers");
        wait(&store, &address, after).await.unwrap();
        serving.abort();
        let _ = serving.await;
        let start = Instant::now();
        wait(&store, "own", after).await.unwrap();
        assert!(start.elapsed() >= after);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
