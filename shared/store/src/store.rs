//! Objects by path: created once, read whole, never changed.

#[cfg(feature = "s3")]
use crate::bucket::open as open_bucket;
use crate::error::StoreError;
use crate::folder::{self, FileRead, Folder};
use crate::location::Location;
use crate::object::{self, HEADER_LEN, Kind, MAX_BODY};
use crate::patience::Patience;
use bincode::{Decode, Encode};
use bytes::Bytes;
use codec::CodecError;
use codec::Digest;
use futures::TryStreamExt;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{Error as BackendError, ObjectStore, ObjectStoreExt, PutMode, PutPayload};
use std::ffi::OsString;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// What creating an object came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// It was not there before.
    New,
    /// It was there with the same content: created by another writer, or by an earlier try of ours.
    Same,
}

/// A place for objects. Cloning is cheap and gives the same place.
///
/// An object that was created is whole and durable when `create` returns, also if another writer created it. Deleting is not synced:
/// after a power failure a deleted object may be back, as it was.
#[derive(Debug, Clone)]
pub struct Store {
    objects: Arc<dyn ObjectStore>,
    /// The disk below `objects`, if that is where they are.
    folder: Option<Arc<Folder>>,
    /// How long to wait for a service that may fall silent.
    patience: Option<Patience>,
    /// How much longer each call takes.
    latency: Duration,
}

type Result<T> = std::result::Result<T, StoreError>;

impl Store {
    /// The store at a location; a folder is created if it is missing, a bucket must be there.
    ///
    /// # Errors
    /// If there can be no store, or the service does not respond.
    pub async fn create_at(location: &Location) -> Result<Self> {
        match location {
            Location::Folder(folder) => Self::local(folder).await,
            Location::S3 { .. } => Self::open_at(location).await,
        }
    }

    /// The store at a location, which must be there; it may be read-only. A bucket is reached as the `AWS_` variables
    /// of the environment say.
    ///
    /// # Errors
    /// If it is not there, or the service does not respond.
    pub async fn open_at(location: &Location) -> Result<Self> {
        let text =
            |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        // What waits for a service may move to another thread, which the iterator may not.
        let variables: Vec<(String, String)> = std::env::vars_os().filter_map(text).collect();
        Self::open_with(location, variables).await
    }

    /// The store at a location, reached as these variables say rather than those of the environment.
    ///
    /// # Errors
    /// As for [`Store::open_at`].
    pub async fn open_with(
        location: &Location,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self> {
        let (bucket, prefix) = match location {
            Location::Folder(folder) => return Self::existing(folder).await,
            Location::S3 { bucket, prefix } => (bucket, prefix),
        };
        let objects = open_bucket(bucket, prefix, variables)?;
        let store = Self { patience: Some(Patience::default()), ..Self::over(objects) };
        let answer = store.wait(0, store.objects.list_with_delimiter(None)).await;
        answer
            .map_err(|error| StoreError::Unreachable { place: location.to_string(), source: error.into() })?;
        Ok(store)
    }

    /// A store over any service that creates with exactly one winner.
    pub fn over(objects: Arc<dyn ObjectStore>) -> Self {
        Self { objects, folder: None, patience: None, latency: Duration::ZERO }
    }

    /// The same place, where each call takes longer by `latency`: what a service far away is like.
    #[must_use]
    pub fn delayed(self, latency: Duration) -> Self {
        Self { latency, ..self }
    }

    /// Takes the time of a call to a service far away, if this store stands for one.
    async fn travel(&self) {
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
    }

    /// A store in a local folder, which is created if it is missing and tried out.
    ///
    /// Makes writes past `RLIMIT_FSIZE` errors for the whole process, where they would end it.
    ///
    /// # Errors
    /// If the folder is a file, or cannot be created, written or hard-linked in.
    ///
    /// # Panics
    /// Outside of a tokio runtime whose IO driver is on (`enable_all`).
    pub async fn local(folder: impl AsRef<std::path::Path>) -> Result<Self> {
        let path = folder.as_ref().to_path_buf();
        folder::survive_file_size_limit()
            .map_err(|source| StoreError::Unusable { folder: path.clone(), source })?;
        let opened = blocking(move || Ok(Folder::create(&path))).await;
        Self::on_disk(opened.map_err(|error| StoreError::failed("open", &Path::default(), error))??)
    }

    /// The store in a local folder that must be there already; it may be read-only.
    ///
    /// # Errors
    /// If there is no such folder.
    pub async fn existing(folder: impl AsRef<std::path::Path>) -> Result<Self> {
        let path = folder.as_ref().to_path_buf();
        let opened = blocking(move || Ok(Folder::open(&path))).await;
        Self::on_disk(opened.map_err(|error| StoreError::failed("open", &Path::default(), error))??)
    }

    /// An empty store that lives as long as its last clone.
    pub fn memory() -> Self {
        Self::over(Arc::new(InMemory::new()))
    }

    fn on_disk(folder: Folder) -> Result<Self> {
        let objects = LocalFileSystem::new_with_prefix(folder.root())
            .map_err(|error| StoreError::failed("open", &Path::default(), error))?;
        let objects = Arc::new(objects.with_fsync(true));
        Ok(Self { folder: Some(Arc::new(folder)), ..Self::over(objects) })
    }

    /// Creates an object, unless it is there already. Of many that create the same path at once, one wins.
    ///
    /// # Errors
    /// [`StoreError::Differs`] if it is there with another body; [`StoreError::Full`] if there is no room, and
    /// then no half of it is kept.
    pub async fn create(&self, path: &Path, kind: Kind, body: impl Into<Bytes>) -> Result<Created> {
        let body = body.into();
        check_size(path, body.len() as u64, MAX_BODY)?;
        let parts = [object::seal(kind, &body), body.clone()];
        if self.put(path, parts.into_iter().collect()).await? {
            return Ok(Created::New);
        }
        let kept = self.fetch_kept(path, MAX_BODY + HEADER_LEN as u64).await?;
        same_or_differs(path, &unseal(path, &kept, kind)?, &body)
    }

    /// Encodes a value and creates it as an object's body.
    ///
    /// # Errors
    /// As for [`Store::create`], or if the value cannot be encoded.
    pub async fn create_value<T: Encode>(&self, path: &Path, kind: Kind, value: &T) -> Result<Created> {
        let body = codec::encode(value).map_err(|problem| in_body(path, problem))?;
        self.create(path, kind, body).await
    }

    /// Creates a plain file that people read, without a header.
    ///
    /// # Errors
    /// As for [`Store::create`].
    pub async fn create_text(&self, path: &Path, text: &str) -> Result<Created> {
        check_size(path, text.len() as u64, MAX_BODY)?;
        if self.put(path, Bytes::copy_from_slice(text.as_bytes()).into()).await? {
            return Ok(Created::New);
        }
        let kept = self.fetch_kept(path, MAX_BODY).await?;
        same_or_differs(path, &kept, text.as_bytes())
    }

    /// The body of an object.
    ///
    /// # Errors
    /// [`StoreError::Missing`] if it is not there, [`StoreError::Damaged`] if it is not whole or of another kind.
    pub async fn read(&self, path: &Path, kind: Kind) -> Result<Bytes> {
        let object = self.fetch(path, MAX_BODY + HEADER_LEN as u64).await?;
        unseal(path, &object, kind)
    }

    /// The body of an object, or `None` if it is not there.
    ///
    /// # Errors
    /// As for [`Store::read`], but for missing objects.
    pub async fn read_optional(&self, path: &Path, kind: Kind) -> Result<Option<Bytes>> {
        match self.read(path, kind).await {
            Err(error) if error.is_missing() => Ok(None),
            result => result.map(Some),
        }
    }

    /// The value that an object's body holds.
    ///
    /// # Errors
    /// As for [`Store::read`], or [`StoreError::Body`] if the body is another value's.
    pub async fn read_value<T: Decode<()>>(&self, path: &Path, kind: Kind) -> Result<T> {
        let body = self.read(path, kind).await?;
        codec::decode(&body).map_err(|problem| in_body(path, problem))
    }

    /// A plain file of at most `limit` bytes.
    ///
    /// # Errors
    /// If it is missing, larger than that, or not UTF-8.
    pub async fn read_text(&self, path: &Path, limit: u64) -> Result<String> {
        let text = self.fetch(path, limit).await?;
        String::from_utf8(text.into())
            .map_err(|error| StoreError::NotText { path: path.clone(), at: error.utf8_error().valid_up_to() })
    }

    /// Every object below a folder, in order of their paths; none if there is no such folder.
    ///
    /// # Errors
    /// If the disk or the service fails.
    pub async fn list(&self, prefix: &Path) -> Result<Vec<Path>> {
        if let Some(listed) = self.on_folder("list", prefix, Folder::list).await {
            return listed;
        }
        let mut listing = self.objects.list(Some(prefix));
        let failed = |error| StoreError::of_backend("list", prefix, error);
        let mut paths = vec![];
        while let Some(meta) = self.wait(0, listing.try_next()).await.map_err(failed)? {
            paths.push(meta.location);
        }
        paths.sort_unstable();
        Ok(paths)
    }

    /// The folders directly below a folder, in order; on a disk also those that are empty.
    ///
    /// # Errors
    /// If the disk or the service fails.
    pub async fn folders(&self, prefix: &Path) -> Result<Vec<Path>> {
        if let Some(listed) = self.on_folder("list", prefix, Folder::folders).await {
            return listed;
        }
        let listing = self.wait(0, self.objects.list_with_delimiter(Some(prefix))).await;
        let mut paths =
            listing.map_err(|error| StoreError::of_backend("list", prefix, error))?.common_prefixes;
        paths.sort_unstable();
        Ok(paths)
    }

    /// The size of an object in bytes, header included.
    ///
    /// # Errors
    /// [`StoreError::Missing`] if it is not there.
    pub async fn size(&self, path: &Path) -> Result<u64> {
        if let Some(metadata) = self.metadata_on_disk(path).await {
            return Ok(metadata?.len());
        }
        let meta = self.wait(0, self.objects.head(path)).await;
        meta.map(|meta| meta.size).map_err(|error| missing_or_failed("read", path, error))
    }

    /// The bytes of all objects below a folder, headers included.
    ///
    /// # Errors
    /// If the disk or the service fails.
    pub async fn size_below(&self, prefix: &Path) -> Result<u64> {
        if let Some(size) = self.on_folder("list", prefix, Folder::size_below).await {
            return size;
        }
        let mut listing = self.objects.list(Some(prefix));
        let failed = |error| StoreError::of_backend("list", prefix, error);
        let mut size = 0;
        while let Some(meta) = self.wait(0, listing.try_next()).await.map_err(failed)? {
            size += meta.size;
        }
        Ok(size)
    }

    /// Removes a folder, and those below it, as far as they are empty. A bucket has no empty folders.
    ///
    /// # Errors
    /// If the disk fails.
    pub async fn remove_empty_folders(&self, prefix: &Path) -> Result<()> {
        self.on_folder("remove", prefix, Folder::remove_empty).await.unwrap_or(Ok(()))
    }

    /// When an object was written, by the clock of the store.
    ///
    /// # Errors
    /// [`StoreError::Missing`] if it is not there.
    pub async fn written_at(&self, path: &Path) -> Result<SystemTime> {
        if let Some(metadata) = self.metadata_on_disk(path).await {
            let written = metadata?.modified();
            return written.map_err(|error| StoreError::failed("read", path, error));
        }
        let meta = self.wait(0, self.objects.head(path)).await;
        meta.map(|meta| meta.last_modified.into()).map_err(|error| missing_or_failed("read", path, error))
    }

    /// The folder on the disk that holds the objects, if that is where they are.
    pub fn folder_on_disk(&self) -> Option<&std::path::Path> {
        self.folder.as_deref().map(Folder::root)
    }

    /// Deletes an object; one that is not there is deleted already.
    ///
    /// # Errors
    /// If the disk or the service fails.
    pub async fn delete(&self, path: &Path) -> Result<()> {
        match self.wait(0, self.objects.delete(path)).await {
            Ok(()) | Err(BackendError::NotFound { .. }) => Ok(()),
            Err(error) => Err(StoreError::of_backend("delete", path, error)),
        }
    }

    /// Copies an object to another store as it is, and returns its bytes. One of a kind is copied only if it is whole.
    ///
    /// # Errors
    /// As for [`Store::read`] and [`Store::create`].
    pub async fn copy_to(&self, path: &Path, kind: Option<Kind>, target: &Self) -> Result<Bytes> {
        let object = self.fetch(path, MAX_BODY + HEADER_LEN as u64).await?;
        let body = match kind {
            Some(kind) => unseal(path, &object, kind)?,
            None => object.clone(),
        };
        if !target.put(path, object.clone().into()).await? {
            let kept = target.fetch_kept(path, MAX_BODY + HEADER_LEN as u64).await?;
            same_or_differs(path, &kept, &object)?;
        }
        Ok(body)
    }

    /// Moves an object, whatever it holds, to a path where nothing is.
    ///
    /// # Errors
    /// If it is not there, or the disk or the service fails.
    pub async fn set_aside(&self, path: &Path, to: &Path) -> Result<()> {
        let target = to.clone();
        let rename = move |folder: &Folder, path: &Path| folder.rename(path, &target);
        if let Some(renamed) = self.on_folder("move", path, rename).await {
            return renamed;
        }
        let object = self.fetch(path, MAX_BODY + HEADER_LEN as u64).await?;
        if !self.put(to, object.clone().into()).await? {
            let kept = self.fetch_kept(to, MAX_BODY + HEADER_LEN as u64).await?;
            same_or_differs(to, &kept, &object)?;
        }
        self.delete(path).await
    }

    /// Removes what killed writers left below a folder, if it was last written `older_than` ago; returns how many
    /// files that were. Listings never show them.
    ///
    /// Let `older_than` be far longer than any write takes, on a machine that was suspended too (a day, say): a
    /// living writer whose file is swept fails, or finds that its file's name was given to another.
    ///
    /// # Errors
    /// If the disk fails.
    pub async fn sweep(&self, prefix: &Path, older_than: Duration) -> Result<usize> {
        let sweep = move |folder: &Folder, prefix: &Path| folder.sweep(prefix, older_than);
        self.on_folder("sweep", prefix, sweep).await.unwrap_or(Ok(0))
    }

    /// Whether the path is ours: `false` if something was there already. Either way what is there is durable.
    async fn put(&self, path: &Path, payload: PutPayload) -> Result<bool> {
        let bytes = payload.content_length() as u64;
        let put = self.objects.put_opts(path, payload, PutMode::Create.into());
        let is_new = match self.wait(bytes, put).await {
            Ok(_) => true,
            Err(BackendError::AlreadyExists { .. }) => false,
            Err(error) => return Err(StoreError::of_backend("write", path, error)),
        };
        let settle = move |folder: &Folder, path: &Path| folder.settle(path, !is_new);
        self.on_folder("sync", path, settle).await.unwrap_or(Ok(()))?;
        Ok(is_new)
    }

    /// Asks for the size first, so that no file makes us allocate more than `limit`.
    async fn fetch(&self, path: &Path, limit: u64) -> Result<Bytes> {
        let read = move |folder: &Folder, path: &Path| folder.read(path, limit);
        if let Some(read) = self.on_folder("read", path, read).await {
            return match read? {
                FileRead::Bytes(bytes) => Ok(bytes.into()),
                FileRead::Missing => Err(StoreError::Missing { path: path.clone() }),
                FileRead::NotAFile => Err(StoreError::NotAFile { path: path.clone() }),
                FileRead::TooLarge(size) => Err(StoreError::TooLarge { path: path.clone(), size, limit }),
            };
        }
        let failed = |error| missing_or_failed("read", path, error);
        let found = self.wait(0, self.objects.get(path)).await.map_err(failed)?;
        let size = found.meta.size;
        check_size(path, size, limit)?;
        self.wait(size, found.bytes()).await.map_err(failed)
    }

    /// What the disk says of a plain file, if the store is on one. Nothing is opened: that of a pipe would wait.
    async fn metadata_on_disk(&self, path: &Path) -> Option<Result<std::fs::Metadata>> {
        let metadata = self.on_folder("read", path, Folder::metadata).await?;
        Some(metadata.and_then(|metadata| match metadata {
            None => Err(StoreError::Missing { path: path.clone() }),
            Some(metadata) if metadata.is_file() => Ok(metadata),
            Some(_) => Err(StoreError::NotAFile { path: path.clone() }),
        }))
    }

    /// Waits for the service, but no longer than it should take for this number of bytes.
    async fn wait<T>(
        &self,
        bytes: u64,
        answer: impl Future<Output = object_store::Result<T>>,
    ) -> object_store::Result<T> {
        self.travel().await;
        match self.patience {
            Some(patience) => patience.wait(bytes, answer).await,
            None => answer.await,
        }
    }

    async fn fetch_kept(&self, path: &Path, limit: u64) -> Result<Bytes> {
        self.fetch(path, limit).await.map_err(|error| match error {
            StoreError::Missing { path } => StoreError::Obstructed { path },
            other => other,
        })
    }

    /// Does something to the folder on the disk, if there is one.
    async fn on_folder<T: Send + 'static>(
        &self,
        doing: &'static str,
        path: &Path,
        action: impl FnOnce(&Folder, &Path) -> io::Result<T> + Send + 'static,
    ) -> Option<Result<T>> {
        let folder = self.folder.clone()?;
        // What was just written is synced by the same call.
        if doing != "sync" {
            self.travel().await;
        }
        let target = path.clone();
        let done = blocking(move || action(&folder, &target)).await;
        Some(done.map_err(|error| StoreError::failed(doing, path, error)))
    }
}

#[cfg(not(feature = "s3"))]
fn open_bucket(
    bucket: &str,
    _: &Path,
    _: impl IntoIterator<Item = (String, String)>,
) -> Result<Arc<dyn ObjectStore>> {
    let reason =
        "this build has no client of S3; build one with `cargo build --release --features s3`".to_owned();
    Err(StoreError::Settings { place: format!("s3://{bucket}"), reason })
}

/// Runs what blocks beside the runtime's own threads.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

fn check_size(path: &Path, size: u64, limit: u64) -> Result<()> {
    if size > limit { Err(StoreError::TooLarge { path: path.clone(), size, limit }) } else { Ok(()) }
}

fn unseal(path: &Path, object: &Bytes, kind: Kind) -> Result<Bytes> {
    object::unseal(object, kind).map_err(|damage| StoreError::Damaged { path: path.clone(), damage })
}

fn in_body(path: &Path, problem: CodecError) -> StoreError {
    StoreError::Body { path: path.clone(), problem }
}

fn same_or_differs(path: &Path, kept: &[u8], offered: &[u8]) -> Result<Created> {
    if kept == offered {
        return Ok(Created::Same);
    }
    let (kept, offered) = (Digest::of(kept), Digest::of(offered));
    Err(StoreError::Differs { path: path.clone(), kept, offered })
}

fn missing_or_failed(doing: &'static str, path: &Path, error: BackendError) -> StoreError {
    match error {
        BackendError::NotFound { .. } => StoreError::Missing { path: path.clone() },
        error => StoreError::of_backend(doing, path, error),
    }
}
