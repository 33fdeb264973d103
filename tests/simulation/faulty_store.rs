//! A store in memory that fails. Its clients may be slow: what one has sent arrives later, even after its process has
//! ended and another has begun. Calls may return errors, whether they were carried out or not, or take long. And writes
//! that are acknowledged may be lost, altered, or end up in another place.

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
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
pub(crate) struct FaultyStore(Arc<Service>);

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
    /// Calls that return an error, until when, and with which chance in a hundred.
    failing: Option<(Duration, u64)>,
    /// Until when calls take long.
    silent: Option<Duration>,
    /// The chance in a thousand that a write of a run is acknowledged and does not arrive as it was sent.
    lying: u64,
    errors: usize,
    lies: usize,
    /// How many calls there were: what happens to a call follows from its number.
    calls: u64,
    seed: u64,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Fine,
    /// An error, and nothing was done.
    Refused,
    /// An error, although it was done.
    Unacknowledged,
    Lost,
    Altered,
    Misdirected,
}

type Write = Box<dyn FnOnce(&InMemory) + Send>;

impl fmt::Debug for Traffic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Traffic").field("now", &self.now).finish_non_exhaustive()
    }
}

impl FaultyStore {
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

    /// For so long, this share of calls in a hundred returns an error.
    pub(crate) fn fail(&self, duration: Duration, percent: u64) {
        let mut traffic = self.traffic();
        traffic.failing = Some((traffic.now + duration, percent));
    }

    /// For so long, no call is answered.
    pub(crate) fn fall_silent(&self, duration: Duration) {
        let mut traffic = self.traffic();
        traffic.silent = Some(traffic.now + duration);
    }

    /// From now on, this number of writes in a thousand are acknowledged and do not arrive as they were sent.
    pub(crate) fn lie(&self, seed: u64, chance: u64) {
        let mut traffic = self.traffic();
        (traffic.seed, traffic.lying) = (seed, chance);
    }

    /// From now on, everything that is sent arrives at once, as it was sent.
    pub(crate) fn heal(&self) {
        let mut traffic = self.traffic();
        traffic.delays.clear();
        (traffic.failing, traffic.silent, traffic.lying) = (None, None, 0);
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

    /// Writes every object to a folder, which is a store then.
    pub(crate) fn copy_to(&self, folder: &std::path::Path) {
        let listed: Vec<ObjectMeta> = at_once(self.0.objects.list(None).try_collect()).unwrap();
        for ObjectMeta { location, .. } in listed {
            let body = at_once(async { self.0.objects.get(&location).await?.bytes().await }).unwrap();
            let file = folder.join(location.as_ref());
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, body).unwrap();
        }
    }

    /// How many writes have arrived after another client had begun.
    pub(crate) fn late(&self) -> usize {
        self.traffic().late
    }

    /// How many calls have returned an error, and how many writes did not arrive as they were sent.
    pub(crate) fn failures(&self) -> (usize, usize) {
        let traffic = self.traffic();
        (traffic.errors, traffic.lies)
    }

    /// What becomes of a call; a write may be lied about.
    fn fate(&self, write: Option<&Path>) -> Fate {
        let mut traffic = self.traffic();
        traffic.calls += 1;
        let mut dice = crate::Dice(traffic.seed ^ traffic.calls.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        dice.roll(2);
        let now = traffic.now;
        let fails = traffic.failing.is_some_and(|(until, percent)| now < until && dice.roll(100) < percent);
        if fails {
            traffic.errors += 1;
            return if write.is_some() && dice.roll(2) == 0 { Fate::Unacknowledged } else { Fate::Refused };
        }
        let is_of_run = write.is_some_and(|path| path.as_ref().starts_with("runs/"));
        if is_of_run && dice.roll(1000) < traffic.lying {
            traffic.lies += 1;
            return [Fate::Lost, Fate::Altered, Fate::Misdirected][dice.roll(3) as usize];
        }
        Fate::Fine
    }

    /// Waits while no call is answered.
    async fn listen(&self) {
        let is_silent = || {
            let traffic = self.traffic();
            traffic.silent.is_some_and(|until| traffic.now < until)
        };
        while is_silent() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
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
    service: FaultyStore,
}

/// What a service that fails answers.
fn failure<T>() -> Result<T> {
    let source = std::io::Error::other("on purpose").into();
    Err(object_store::Error::Generic { store: "faulty", source })
}

impl Client {
    /// A call that changes nothing.
    async fn ask(&self) -> Result<()> {
        self.service.listen().await;
        if self.service.fate(None) == Fate::Fine { Ok(()) } else { failure() }
    }

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

/// The same bytes, but for one bit in the middle.
fn altered(payload: &PutPayload) -> PutPayload {
    let mut bytes: Vec<u8> = payload.iter().flat_map(|part| part.to_vec()).collect();
    let middle = bytes.len() / 2;
    if let Some(byte) = bytes.get_mut(middle) {
        *byte ^= 4;
    }
    bytes.into()
}

impl fmt::Display for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "client {}", self.number)
    }
}

#[tonic::async_trait]
impl ObjectStore for Client {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.service.listen().await;
        let fate = self.service.fate(Some(path));
        let mut path = path.clone();
        let mut payload = payload;
        match fate {
            Fate::Fine | Fate::Unacknowledged => {}
            Fate::Refused => return failure(),
            Fate::Lost => {
                return Ok(PutResult {
                    e_tag: None,
                    version: None,
                    extensions: object_store::Extensions::default(),
                });
            }
            Fate::Altered => payload = altered(&payload),
            // As an object of the same kind, where there is none.
            Fate::Misdirected => path = Path::from(format!("{path}9")),
        }
        let put = self.send(move |objects| at_once(objects.put_opts(&path, payload, options))).await;
        if fate == Fate::Unacknowledged { failure() } else { put }
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let client = self.clone();
        let delete = move |path: Result<Path>| -> BoxFuture<'static, Result<Path>> {
            let client = client.clone();
            Box::pin(async move {
                let path = path?;
                client.ask().await?;
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
        self.ask().await?;
        self.service.0.objects.get_opts(path, options).await
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (client, prefix) = (self.clone(), prefix.cloned());
        let listed = async move {
            match client.ask().await {
                Ok(()) => client.service.0.objects.list(prefix.as_ref()),
                Err(error) => futures::stream::once(async { Err(error) }).boxed(),
            }
        };
        listed.flatten_stream().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.ask().await?;
        self.service.0.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.service.0.objects.copy_opts(from, to, options).await
    }
}
