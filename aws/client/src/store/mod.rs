//! The state store: objects by key, in an S3 bucket or a directory, written under conditions so that
//! two operators cannot overwrite each other.

mod age;
mod digests;
mod file;
mod s3;
mod url;

pub use digests::Digests;
pub use url::{Location, is_same_place};

use crate::Clients;
use crate::fence::{Fence, FenceState, LockLost};
use digests::KnownDigests;
use file::FileStore;
use node::digest::to_hex;
use s3::S3Store;
use sha2::{Digest, Sha256};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Which content an object has; equal versions mean equal content. For S3 the `ETag`, for files the sha256.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Version(pub String);

/// An object as read. Two are equal if content and version are.
#[derive(Clone, Debug)]
pub struct Object {
    pub bytes: Vec<u8>,
    /// Its version, for [`Expect::Version`].
    pub version: Version,
    /// How long ago it was written, by the store's own clock: at least so long. `None`: the store does not say.
    pub age: Option<Duration>,
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        (&self.bytes, &self.version) == (&other.bytes, &other.version)
    }
}

impl Eq for Object {}

/// The beginning of an object, and its age as [`Object::age`].
pub type FirstBytes = (Vec<u8>, Option<Duration>);

/// An object as listed. Two entries are equal if key, version and size are: a listing made later sees the same object.
#[derive(Clone, Debug)]
pub struct Entry {
    pub key: String,
    pub version: Version,
    /// Bytes.
    pub size: u64,
    /// When it was written, by the store's own clock, Unix seconds. `None`: the store does not say.
    pub written: Option<i64>,
    /// How long ago that was, as [`Object::age`].
    pub age: Option<Duration>,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (&self.key, &self.version, self.size) == (&other.key, &other.version, other.size)
    }
}

impl Eq for Entry {}

/// What must be true of an object for a write to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    Any,
    /// It is not there.
    Absent,
    /// It has this version.
    Version(Version),
}

/// Whose keys encrypt a file in S3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// S3's own: whoever may read the object needs no right to a key.
    S3Keys,
    /// Those that the bucket says.
    Bucket,
}

/// Whose bucket a store uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Owner {
    #[default]
    Anyone,
    /// The account of the credentials, which STS is asked for once, before the first write. Reads before it are of anyone's bucket.
    Caller,
    /// This account's, also to read.
    Account(String),
}

impl From<Option<String>> for Owner {
    /// This account, or nobody in particular.
    fn from(account: Option<String>) -> Self {
        account.map_or(Self::Anyone, Self::Account)
    }
}

/// Why a call to the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The address is not one of a store.
    #[error("{url:?} is not a state store: {reason}")]
    Address {
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The key would leave the store, or is empty.
    #[error("{0:?} is not a key: it must be a relative path without `.`, `..` or empty parts")]
    Key(String),
    /// The condition of a write does not hold: somebody else was there first.
    #[error("{key} has been changed by somebody else")]
    Conflict { key: String },
    /// It was to be written under a lock that was lost.
    #[error("{key} was not written")]
    Fenced {
        key: String,
        #[source]
        source: LockLost,
    },
    /// It is larger than it should be, and was not received.
    #[error("{key} has more than {most} bytes: it is not what it should be")]
    TooLarge {
        key: String,
        /// What it may have.
        most: u64,
    },
    /// There is no such bucket.
    #[error(
        "the bucket {bucket} does not exist: create it with `aws s3api create-bucket --bucket {bucket}` (outside us-east-1 with --create-bucket-configuration LocationConstraint=REGION), then turn on its versioning"
    )]
    NoBucket { bucket: String },
    /// Who asks is known, and not allowed.
    #[error("access to {} is denied: the credentials need {action}", object_url(.bucket, .key))]
    Denied {
        bucket: String,
        /// The object or prefix.
        key: String,
        action: &'static str,
        /// What S3 said.
        #[source]
        source: engine::Failure,
    },
    /// S3 failed otherwise.
    #[error("{} cannot be reached", object_url(.bucket, .key))]
    S3 {
        bucket: String,
        /// The object or prefix.
        key: String,
        /// What S3 said.
        #[source]
        source: engine::Failure,
    },
    /// The file system failed.
    #[error("{path} cannot be accessed")]
    File {
        /// The path.
        path: String,
        #[source]
        source: std::io::Error,
    },
}

/// An object, or the whole bucket.
fn object_url(bucket: &str, key: &str) -> String {
    if key.is_empty() {
        format!("the bucket {bucket}")
    } else {
        format!("{key} in the bucket {bucket}")
    }
}

/// A state store. Cloning is cheap; clones share the counts.
#[derive(Clone, Debug)]
pub struct Store {
    url: String,
    clients: Clients,
    backend: Backend,
    counts: Arc<Counts>,
    fence: Fence,
    owner: Owner,
    digests: KnownDigests,
}

#[derive(Clone, Debug)]
enum Backend {
    S3(S3Store),
    File(FileStore),
}

#[derive(Debug, Default)]
struct Counts {
    reads: AtomicU64,
    writes: AtomicU64,
}

impl StoreError {
    /// True if the bucket does not exist, or may not be read: a bucket that was deleted can be registered by anybody.
    pub fn is_no_bucket_of_ours(&self) -> bool {
        matches!(self, Self::NoBucket { .. } | Self::Denied { .. })
    }
}

impl Store {
    /// The store at `s3://BUCKET[/PREFIX]` or `file://DIR`. Calls nothing yet; the bucket may lie in another
    /// region than the clients'.
    pub fn open(url: &str, clients: &Clients) -> Result<Self, StoreError> {
        let backend = match Location::parse(url)? {
            Location::S3 { bucket, prefix } => {
                Backend::S3(S3Store::new(clients.clone(), bucket, prefix))
            }
            Location::File { dir } => Backend::File(FileStore::new(dir, clients.fence().clone())),
        };
        Ok(Self {
            url: url.trim_end_matches('/').to_owned(),
            clients: clients.clone(),
            backend,
            counts: Arc::default(),
            fence: clients.fence().clone(),
            owner: Owner::Anyone,
            digests: KnownDigests::default(),
        })
    }

    /// The store at another address, opened with the same clients, in a bucket of the same owner. It has counts of its own.
    pub fn open_other(&self, url: &str) -> Result<Self, StoreError> {
        Ok(Self::open(url, &self.clients)?.owned_by(self.owner.clone()))
    }

    /// The same store, but that nobody else's bucket is used.
    #[must_use]
    pub fn owned_by(self, owner: Owner) -> Self {
        let backend = match self.backend {
            Backend::S3(store) => Backend::S3(store.owned_by(owner.clone())),
            Backend::File(store) => Backend::File(store),
        };
        Self {
            backend,
            owner,
            ..self
        }
    }

    /// Whose bucket it uses.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// The same store, but that files with more bytes are sent to S3 in parts. The default is S3's limit of one request.
    #[must_use]
    pub fn splitting_above(self, bytes: u64) -> Self {
        let backend = match self.backend {
            Backend::S3(store) => Backend::S3(store.splitting_above(bytes)),
            Backend::File(store) => Backend::File(store),
        };
        Self { backend, ..self }
    }

    /// Says which account [`Owner::Caller`] is, so that STS need not be asked again.
    pub fn set_caller(&self, account: &str) {
        if let Backend::S3(store) = &self.backend {
            store.set_caller(account);
        }
    }

    /// Learns from STS which account [`Owner::Caller`] is, so that reads also fail on the bucket of another account.
    pub async fn find_caller(&self) -> Result<(), StoreError> {
        match &self.backend {
            Backend::S3(store) => store.find_caller().await,
            Backend::File(_) => Ok(()),
        }
    }

    /// The region of its bucket; of a directory `None`.
    pub async fn region(&self) -> Result<Option<String>, StoreError> {
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        match &self.backend {
            Backend::S3(store) => store.region().await.map(Some),
            Backend::File(_) => Ok(None),
        }
    }

    /// Writes an object that everybody can read, over whatever is there.
    pub async fn put_public(&self, key: &str, bytes: Vec<u8>) -> Result<(), StoreError> {
        match &self.backend {
            Backend::S3(store) => {
                self.counts.writes.fetch_add(1, Ordering::Relaxed);
                store.put_public(key, bytes).await
            }
            // Who may read a directory, its owner says.
            Backend::File(_) => self.put(key, bytes, Expect::Any).await.map(drop),
        }
    }

    /// True if somebody without credentials may read an object that is there.
    pub async fn is_public(&self, key: &str) -> Result<bool, StoreError> {
        match &self.backend {
            Backend::S3(store) => {
                self.counts.reads.fetch_add(1, Ordering::Relaxed);
                store.is_public(key).await
            }
            Backend::File(_) => Ok(true),
        }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// What says until when writes may begin: that of the clients it was opened with.
    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    /// The same store, but that no fence stops it: for what keeps the lock that the fence belongs to. What it writes
    /// must be under a condition.
    #[must_use]
    pub fn without_fence(&self) -> Self {
        let backend = match &self.backend {
            Backend::S3(store) => Backend::S3(store.without_fence()),
            Backend::File(store) => Backend::File(store.without_fence()),
        };
        Self {
            url: self.url.clone(),
            clients: self.clients.clone(),
            backend,
            counts: self.counts.clone(),
            fence: Fence::default(),
            owner: self.owner.clone(),
            digests: self.digests.clone(),
        }
    }

    /// The same store with connections of its own, for another runtime.
    #[must_use]
    pub fn with_own_connections(&self) -> Self {
        let backend = match &self.backend {
            Backend::S3(store) => Backend::S3(store.with_own_connections()),
            Backend::File(store) => Backend::File(store.clone()),
        };
        Self {
            backend,
            ..self.clone()
        }
    }

    /// Makes a change in a directory once the fence is open; of S3 the connection waits.
    async fn write_when_open<T>(
        &self,
        write: impl Fn() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        loop {
            // Behind a closed fence the write fails, and says of what.
            let _ = self.fence.wait_until_open().await;
            match write() {
                Err(StoreError::Fenced { .. }) if self.fence.state() != FenceState::Closed => {}
                ended => return ended,
            }
        }
    }

    /// The object with that key.
    pub async fn get(&self, key: &str) -> Result<Option<Object>, StoreError> {
        check_key(key)?;
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        match &self.backend {
            Backend::S3(store) => store.get(key).await,
            Backend::File(store) => store.get(key),
        }
    }

    /// The first `most` bytes of the object with that key: for what others write, who may have written anything.
    pub async fn get_first(&self, key: &str, most: usize) -> Result<Option<Vec<u8>>, StoreError> {
        let found = self.get_first_with_age(key, most).await?;
        Ok(found.map(|(bytes, _)| bytes))
    }

    /// Like [`Self::get_first`], with the object's age as [`Object::age`].
    pub async fn get_first_with_age(
        &self,
        key: &str,
        most: usize,
    ) -> Result<Option<FirstBytes>, StoreError> {
        check_key(key)?;
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        match &self.backend {
            Backend::S3(store) => store.get_first(key, most).await,
            Backend::File(store) => store.get_first(key, most),
        }
    }

    /// Writes an object if `expect` holds, and says its new version.
    pub async fn put(
        &self,
        key: &str,
        bytes: Vec<u8>,
        expect: Expect,
    ) -> Result<Version, StoreError> {
        check_key(key)?;
        self.counts.writes.fetch_add(1, Ordering::Relaxed);
        match &self.backend {
            Backend::S3(store) => store.put(key, bytes, &expect).await,
            Backend::File(store) => {
                let put = || store.put(key, &bytes, &expect);
                self.write_when_open(put).await
            }
        }
    }

    /// Writes an object from a file, unless one is there: that is a [`StoreError::Conflict`]. The file is sent piece
    /// by piece; the store refuses it if its sha256 is not that one.
    pub async fn put_file(
        &self,
        key: &str,
        file: &Path,
        sha256: &[u8],
        encryption: Encryption,
    ) -> Result<(), StoreError> {
        check_key(key)?;
        self.counts.writes.fetch_add(1, Ordering::Relaxed);
        match &self.backend {
            Backend::S3(store) => Box::pin(store.put_file(key, file, sha256, encryption)).await,
            Backend::File(store) => {
                let put = || store.put_file(key, file, sha256);
                self.write_when_open(put).await
            }
        }
    }

    /// Removes what a process that was killed has left of its writes. Only a store in a directory has such files.
    pub fn remove_leftovers(&self) -> Result<(), StoreError> {
        match &self.backend {
            Backend::S3(_) => Ok(()),
            Backend::File(store) => store.remove_leftovers(),
        }
    }

    /// As [`Self::put_file`], but one with the same content may be there already: what an interrupted copy left.
    pub async fn put_same_file(
        &self,
        key: &str,
        file: &Path,
        sha256: &[u8],
        encryption: Encryption,
    ) -> Result<(), StoreError> {
        match self.put_file(key, file, sha256, encryption).await {
            Err(StoreError::Conflict { .. })
                if self.sha256(key).await?.as_deref() == Some(sha256) =>
            {
                Ok(())
            }
            put => put,
        }
    }

    /// The sha256 of an object's content, read piece by piece.
    pub async fn sha256(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        check_key(key)?;
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        match &self.backend {
            Backend::S3(store) => store.sha256(key).await,
            Backend::File(store) => store.sha256(key),
        }
    }

    /// Writes an object's content into a file (made if need be, emptied, mode 0600) piece by piece; returns its sha256.
    /// `None`: there is no such object. Then, and after an error, there is no such file.
    pub async fn get_file(&self, key: &str, to: &Path) -> Result<Option<Vec<u8>>, StoreError> {
        self.get_file_within(key, to, u64::MAX).await
    }

    /// As [`Self::get_file`], of an object that may have `most` bytes: one with more is a [`StoreError::TooLarge`], and no more than that
    /// is ever written.
    pub async fn get_file_within(
        &self,
        key: &str,
        to: &Path,
        most: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        check_key(key)?;
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        match &self.backend {
            // Boxed, because callers nest futures deeply.
            Backend::S3(store) => Box::pin(store.get_file(key, to, most)).await,
            Backend::File(store) => store.get_file(key, to, most),
        }
    }

    /// Appends to a file what it lacks of an object's content, which may have `most` bytes. After an error the file has what was received,
    /// so that the next call goes on. `false`: there is no such object. The content is not checked: the file may have begun as another
    /// one's.
    pub async fn get_rest(
        &self,
        key: &str,
        to: &mut std::fs::File,
        most: u64,
    ) -> Result<bool, StoreError> {
        check_key(key)?;
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        match &self.backend {
            Backend::S3(store) => Box::pin(store.get_rest(key, to, most)).await,
            Backend::File(store) => store.get_rest(key, to, most),
        }
    }

    /// Removes an object if `expect` holds. One that is not there is removed already, unless a version was expected.
    pub async fn delete(&self, key: &str, expect: Expect) -> Result<(), StoreError> {
        check_key(key)?;
        self.counts.writes.fetch_add(1, Ordering::Relaxed);
        match &self.backend {
            Backend::S3(store) => store.delete(key, &expect).await,
            Backend::File(store) => {
                let delete = || store.delete(key, &expect);
                self.write_when_open(delete).await
            }
        }
    }

    /// Removes objects, whatever they hold.
    pub async fn delete_all(&self, keys: &[String]) -> Result<(), StoreError> {
        for key in keys {
            check_key(key)?;
        }
        self.counts
            .writes
            .fetch_add(keys.len() as u64, Ordering::Relaxed);
        match &self.backend {
            Backend::S3(store) => store.delete_all(keys).await,
            Backend::File(store) => {
                for key in keys {
                    let delete = || store.delete(key, &Expect::Any);
                    self.write_when_open(delete).await?;
                }
                Ok(())
            }
        }
    }

    /// Whether what is deleted can still be read as an earlier version: a bucket with versioning keeps it.
    pub async fn keeps_versions(&self) -> Result<bool, StoreError> {
        match &self.backend {
            Backend::S3(store) => store.keeps_versions().await,
            Backend::File(_) => Ok(false),
        }
    }

    /// Every object whose key begins with `prefix` and sorts after `start_after`, by key.
    pub async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
    ) -> Result<Vec<Entry>, StoreError> {
        self.list_until(prefix, start_after, None).await
    }

    /// As [`Store::list`], ending before the first key that sorts after `until`: S3 lists a thousand
    /// keys a call, and what comes after need not be asked for.
    pub async fn list_until(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        until: Option<&str>,
    ) -> Result<Vec<Entry>, StoreError> {
        let mut entries = match &self.backend {
            Backend::S3(store) => {
                let (entries, pages) = store.list(prefix, start_after, until).await?;
                self.counts.reads.fetch_add(pages, Ordering::Relaxed);
                entries
            }
            Backend::File(store) => {
                self.counts.reads.fetch_add(1, Ordering::Relaxed);
                store.list(prefix)?
            }
        };
        entries.retain(|entry| {
            start_after.is_none_or(|after| entry.key.as_str() > after)
                && until.is_none_or(|until| entry.key.as_str() <= until)
        });
        Ok(entries)
    }

    /// True if an object of that listing certainly has this content, told without reading it. False may
    /// also mean that it cannot be told: a bucket that encrypts with KMS keys has versions that say nothing, unless the content was
    /// learned ([`Self::learn_content`]).
    pub fn surely_holds(&self, entry: &Entry, bytes: &[u8]) -> bool {
        entry.size == bytes.len() as u64
            && (entry.version == self.version_of(bytes)
                || self
                    .digests
                    .holds(&entry.key, &entry.version, &sha256(bytes).0))
    }

    /// Notes what an object holds at a version, if the version does not say it. Never for secrets: the sha256 is for a file.
    pub fn learn_content(&self, key: &str, version: &Version, bytes: &[u8]) {
        if *version != self.version_of(bytes) {
            self.digests.learn(key, version, sha256(bytes).0);
        }
    }

    /// Takes over what an earlier process learned.
    pub fn load_digests(&self, known: Digests) {
        self.digests.load(known);
    }

    /// What was learned, or known before and asked for.
    pub fn used_digests(&self) -> Digests {
        self.digests.used()
    }

    /// The version of an object with this content, where it follows from that.
    fn version_of(&self, bytes: &[u8]) -> Version {
        match &self.backend {
            Backend::S3(_) => s3::expected_version(bytes),
            Backend::File(_) => sha256(bytes),
        }
    }

    /// Reads so far: gets, and pages of lists.
    pub fn reads(&self) -> u64 {
        self.counts.reads.load(Ordering::Relaxed)
    }

    /// Writes and deletions so far.
    pub fn writes(&self) -> u64 {
        self.counts.writes.load(Ordering::Relaxed)
    }
}

fn sha256(bytes: &[u8]) -> Version {
    Version(to_hex(&Sha256::digest(bytes)))
}

/// The sha256 of a file, read piece by piece on a thread that may block.
pub async fn sha256_of_file(file: &Path) -> std::io::Result<Vec<u8>> {
    let file = file.to_owned();
    let read =
        tokio::task::spawn_blocking(move || sha256_of_reader(&mut std::fs::File::open(file)?));
    read.await.map_err(std::io::Error::other)?
}

/// The sha256 of everything that the reader returns.
fn sha256_of_reader(from: &mut impl std::io::Read) -> std::io::Result<Vec<u8>> {
    let mut digest = Sha256::new();
    std::io::copy(from, &mut digest)?;
    Ok(digest.finalize().to_vec())
}

/// Creates a file with mode 0600 for reading and writing, in the place of one that is there: that may be somebody else's, who could read
/// what is written to it.
fn create_empty_file(path: &Path) -> std::io::Result<std::fs::File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    std::fs::OpenOptions::new()
        .create_new(true)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(path)
}

fn fenced_error(key: &str, source: LockLost) -> StoreError {
    StoreError::Fenced {
        key: key.to_owned(),
        source,
    }
}

/// Both stores accept the same keys, so that a key valid in one is valid in the other.
fn check_key(key: &str) -> Result<(), StoreError> {
    let good = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains('\0');
    if key.split('/').all(good) {
        Ok(())
    } else {
        Err(StoreError::Key(key.to_owned()))
    }
}
