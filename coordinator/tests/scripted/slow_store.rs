//! A store in memory whose calls take time, or fail for a while.

use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use store::Store;

/// Clones are the same store.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlowStore {
    objects: Arc<InMemory>,
    manner: Arc<Mutex<Manner>>,
}

#[derive(Debug, Default)]
struct Manner {
    /// How long each write takes.
    write: Duration,
    /// How long each call takes at most; how long one does follows from the seed and its number.
    jitter: Option<(u64, Duration)>,
    calls: u64,
    /// Calls for paths with this text fail.
    failing: Option<String>,
    /// This number of writes of paths with this text are done, and return an error.
    unacknowledged: Option<(String, u32)>,
    /// After this number of calls for paths with this text, the next one is held.
    to_hold: Option<(String, u32)>,
    /// Whether a call is held now.
    holding: bool,
    /// The path of the last write that has begun since calls began to fail, or ceased to.
    last_write: String,
}

impl SlowStore {
    pub(crate) fn store(&self) -> Store {
        Store::over(Arc::new(self.clone()))
    }

    fn manner(&self) -> MutexGuard<'_, Manner> {
        self.manner.lock().unwrap()
    }

    /// From now on each write takes so long.
    #[allow(dead_code, reason = "the tests that share this file need different parts of it")]
    pub(crate) fn delay_writes(&self, time: Duration) {
        self.manner().write = time;
    }

    /// From now on each call takes up to so long.
    #[allow(dead_code, reason = "the tests that share this file need different parts of it")]
    pub(crate) fn delay_calls(&self, seed: u64, longest: Duration) {
        self.manner().jitter = Some((seed, longest));
    }

    /// From now on calls for paths with this text fail, or none.
    #[allow(dead_code, reason = "the tests that share this file need different parts of it")]
    pub(crate) fn fail(&self, text: Option<&str>) {
        let mut manner = self.manner();
        manner.failing = text.map(str::to_owned);
        manner.last_write.clear();
    }

    /// Whether the last write since calls began to fail, or ceased to, is of a path with this text.
    #[allow(dead_code, reason = "the tests that share this file need different parts of it")]
    pub(crate) fn is_writing(&self, text: &str) -> bool {
        self.manner().last_write.contains(text)
    }

    /// The next writes of paths with this text, this number of them, are done and return an error, as after a timeout.
    #[allow(dead_code, reason = "the tests that share this file need different parts of it")]
    pub(crate) fn leave_unacknowledged(&self, text: &str, count: u32) {
        self.manner().unacknowledged = Some((text.to_owned(), count));
    }

    /// How many of these writes are still to come.
    #[allow(dead_code, reason = "the tests that share this file need different parts of it")]
    pub(crate) fn unacknowledged(&self) -> u32 {
        self.manner().unacknowledged.as_ref().map_or(0, |(_, count)| *count)
    }

    /// Holds a call for a path with this text, after this number of them, until it is let go.
    #[allow(dead_code, reason = "the tests that share this file need different parts of it")]
    pub(crate) fn hold(&self, text: &str, after: u32) {
        self.manner().to_hold = Some((text.to_owned(), after));
    }

    /// Whether a call is held.
    #[allow(dead_code, reason = "the tests that share this file need different parts of it")]
    pub(crate) fn is_holding(&self) -> bool {
        self.manner().holding
    }

    /// Lets the call go that is held.
    #[allow(dead_code, reason = "the tests that share this file need different parts of it")]
    pub(crate) fn let_go(&self) {
        self.manner().holding = false;
    }

    /// Whether this call is to be held; it is from now on.
    fn begins_to_hold(&self, path: Option<&Path>) -> bool {
        let mut manner = self.manner();
        let Some((text, rest)) = &mut manner.to_hold else { return false };
        if !path.is_some_and(|path| path.as_ref().contains(text.as_str())) {
            return false;
        }
        if *rest > 0 {
            *rest -= 1;
            return false;
        }
        manner.to_hold = None;
        manner.holding = true;
        true
    }

    /// Whether the answer to a write is lost.
    fn is_unacknowledged(&self, path: &Path) -> bool {
        let mut manner = self.manner();
        let next = manner.unacknowledged.as_mut();
        let next = next.filter(|(text, count)| *count > 0 && path.as_ref().contains(text.as_str()));
        next.map(|(_, count)| *count -= 1).is_some()
    }

    async fn call(&self, path: Option<&Path>, is_write: bool) -> Result<()> {
        if self.begins_to_hold(path) {
            while self.manner().holding {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        let (time, fails) = {
            let mut manner = self.manner();
            manner.calls += 1;
            if let Some(path) = path.filter(|_| is_write) {
                path.as_ref().clone_into(&mut manner.last_write);
            }
            let number = manner.calls.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let jitter = manner.jitter.map_or(Duration::ZERO, |(seed, longest)| {
                let dice = (number ^ seed.wrapping_mul(0xd6e8_feb8_6659_fd93)) >> 40;
                longest * (dice % 1000) as u32 / 1000
            });
            let time = jitter + if is_write { manner.write } else { Duration::ZERO };
            let fails = |text: &String| path.is_some_and(|path| path.as_ref().contains(text.as_str()));
            (time, manner.failing.as_ref().is_some_and(fails))
        };
        if !time.is_zero() {
            tokio::time::sleep(time).await;
        }
        if fails { failure() } else { Ok(()) }
    }
}

fn failure<T>() -> Result<T> {
    let source = std::io::Error::other("on purpose").into();
    Err(object_store::Error::Generic { store: "slow", source })
}

impl fmt::Display for SlowStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("slow")
    }
}

#[tonic::async_trait]
impl ObjectStore for SlowStore {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.call(Some(path), true).await?;
        let put = self.objects.put_opts(path, payload, options).await?;
        if self.is_unacknowledged(path) { failure() } else { Ok(put) }
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.objects.delete_stream(paths)
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.objects.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.call(Some(path), false).await?;
        self.objects.get_opts(path, options).await
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (store, prefix) = (self.clone(), prefix.cloned());
        let listed = async move {
            match store.call(prefix.as_ref(), false).await {
                Ok(()) => store.objects.list(prefix.as_ref()),
                Err(error) => futures::stream::once(async { Err(error) }).boxed(),
            }
        };
        listed.flatten_stream().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.call(prefix, false).await?;
        self.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.objects.copy_opts(from, to, options).await
    }
}
