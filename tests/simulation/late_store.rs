//! A store in memory whose clients may be slow: what one has sent arrives later, even after its process has ended and
//! another has begun.

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::Store;
use tokio::sync::oneshot;

/// The service that all clients reach. Clones are the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct LateStore(Arc<Service>);

#[derive(Debug, Default)]
struct Service {
    objects: InMemory,
    traffic: Mutex<Traffic>,
}

#[derive(Default)]
struct Traffic {
    now: Duration,
    /// How many clients there have been; the last one is the newest.
    clients: u64,
    /// How long the writes of a client take at most, if not no time.
    delays: BTreeMap<u64, Duration>,
    /// What was sent and has not arrived, by when it does.
    sent: BTreeMap<(Duration, u64), (u64, Write)>,
    /// How many writes were delayed.
    delayed: u64,
    /// How many arrived after another client had begun.
    late: usize,
}

type Write = Box<dyn FnOnce(&InMemory) + Send>;

impl fmt::Debug for Traffic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Traffic").field("now", &self.now).finish_non_exhaustive()
    }
}

impl LateStore {
    /// The store as another process sees it.
    pub(crate) fn client(&self) -> Store {
        let mut traffic = self.traffic();
        traffic.clients += 1;
        Store::over(Arc::new(Client { number: traffic.clients, service: self.clone() }))
    }

    /// From now on, the writes of the newest client take up to so long.
    pub(crate) fn delay(&self, longest: Duration) {
        let mut traffic = self.traffic();
        let newest = traffic.clients;
        traffic.delays.insert(newest, longest);
    }

    /// From now on, writes take no time.
    pub(crate) fn heal(&self) {
        self.traffic().delays.clear();
    }

    /// Time passes: what is due arrives.
    pub(crate) fn advance(&self, now: Duration) {
        let mut traffic = self.traffic();
        traffic.now = now;
        let mut arriving = vec![];
        while let Some(first) = traffic.sent.first_entry().filter(|first| first.key().0 <= now) {
            let (client, write) = first.remove();
            traffic.late += usize::from(client != traffic.clients);
            arriving.push(write);
        }
        drop(traffic);
        for write in arriving {
            write(&self.0.objects);
        }
    }

    /// How many writes have arrived after another client had begun.
    pub(crate) fn late(&self) -> usize {
        self.traffic().late
    }

    /// Takes what a client sends: it arrives at once, or later if the client is slow.
    fn accept(&self, client: u64, write: Write) {
        let mut traffic = self.traffic();
        let Some(longest) = traffic.delays.get(&client).copied() else {
            drop(traffic);
            return write(&self.0.objects);
        };
        // From a seventh of the longest to all of it: one may overtake another.
        let order = traffic.delayed;
        traffic.delayed += 1;
        let due = traffic.now + longest * (order as u32 * 5 % 7 + 1) / 7;
        traffic.sent.insert((due, order), (client, write));
    }

    fn traffic(&self) -> MutexGuard<'_, Traffic> {
        self.0.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One process, as the service knows it.
#[derive(Clone, Debug)]
struct Client {
    number: u64,
    service: LateStore,
}

impl Client {
    /// Sends a write, which arrives whether or not its result is waited for.
    async fn send<T: Send + 'static>(&self, write: impl FnOnce(&InMemory) -> T + Send + 'static) -> T {
        let (answer, answered) = oneshot::channel();
        self.service.accept(self.number, Box::new(move |objects| drop(answer.send(write(objects)))));
        answered.await.expect("everything arrives")
    }
}

/// What a store in memory answers, which it does at once.
fn at_once<T>(answer: impl Future<Output = T>) -> T {
    answer.now_or_never().expect("memory waits for nothing")
}

impl fmt::Display for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "client {}", self.number)
    }
}

#[tonic::async_trait]
impl ObjectStore for Client {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let path = path.clone();
        self.send(move |objects| at_once(objects.put_opts(&path, payload, options))).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let client = self.clone();
        let delete = move |path: Result<Path>| -> BoxFuture<'static, Result<Path>> {
            let client = client.clone();
            Box::pin(async move {
                let path = path?;
                client.send(move |objects| at_once(objects.delete(&path)).map(|()| path)).await
            })
        };
        paths.then(delete).boxed()
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.service.0.objects.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.service.0.objects.get_opts(path, options).await
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.service.0.objects.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.service.0.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.service.0.objects.copy_opts(from, to, options).await
    }
}
