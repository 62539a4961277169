//! Parallel downloads into a cache. Interrupted downloads resume, URLs are tried in turn, and checksums are computed while
//! streaming. A file gets its name, its sha256, only once its content has that sha256.

mod object;
mod part;
mod pull;

use crate::digest;
use crate::retry::AttemptLog;
use anyhow::{Context, Error, anyhow, bail};
use aws_client::Clients;
use aws_client::authorities::Authorities;
use futures::future::join_all;
use node::config::{Asset, LARGEST_DOWNLOAD};
use part::PartFile;
use pull::{FailedRequest, LocalError, pull_missing};
use reqwest::{Certificate, Client};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Timeouts and limits of downloads.
#[derive(Clone, Debug)]
pub struct DownloadLimits {
    /// Number of parallel downloads.
    pub parallel: usize,
    /// Timeout of a connection attempt.
    pub connect: Duration,
    /// Timeout without received bytes.
    pub idle: Duration,
    /// Number of rounds over all URLs without progress before giving up.
    pub rounds: u32,
    /// Pause after the first round without progress; doubled for each further round.
    pub pause: Duration,
    /// Limit of a file, bytes.
    pub largest: u64,
}

impl Default for DownloadLimits {
    fn default() -> Self {
        Self {
            parallel: 4,
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            rounds: 5,
            pause: Duration::from_secs(1),
            largest: LARGEST_DOWNLOAD,
        }
    }
}

/// The cache of downloads.
pub struct Downloads {
    cache: PathBuf,
    client: Client,
    /// For objects of S3.
    aws: Option<Clients>,
    limits: DownloadLimits,
    slots: Semaphore,
}

impl Downloads {
    /// A cache in this folder, which the first download creates.
    pub fn new(cache: PathBuf, limits: DownloadLimits) -> anyhow::Result<Self> {
        let trusted = Authorities::of_system().certificates();
        let trusted: Vec<Certificate> = trusted
            .map(Certificate::from_der)
            .collect::<reqwest::Result<_>>()
            .context("could not prepare downloads")?;
        let client = Client::builder()
            .user_agent(concat!("kctl-nodeup/", env!("CARGO_PKG_VERSION")))
            .tls_certs_only(trusted)
            .connect_timeout(limits.connect)
            .read_timeout(limits.idle)
            // One connection per file: with HTTP/2 all downloads would share one window.
            .http1_only()
            .build()
            .context("could not prepare downloads")?;
        Ok(Self {
            cache,
            client,
            aws: None,
            slots: Semaphore::new(limits.parallel),
            limits,
        })
    }

    /// The same, which reads objects of S3 with these clients.
    #[must_use]
    pub fn with_clients(self, aws: Clients) -> Self {
        Self {
            aws: Some(aws),
            ..self
        }
    }

    /// Downloads all assets. Returns their paths in the cache by sha256. Every asset is tried; the error contains all failures.
    pub async fn fetch_all(
        &self,
        assets: &[Asset],
        attempt_log: AttemptLog<'_>,
    ) -> anyhow::Result<BTreeMap<String, PathBuf>> {
        let distinct: BTreeMap<_, _> = assets.iter().map(|asset| (&asset.sha256, asset)).collect();
        let all = distinct.into_values().map(|asset| async move {
            let path = self.fetch_one(asset, attempt_log).await?;
            Ok((asset.sha256.clone().unwrap_or_default(), path))
        });
        let (mut done, mut failed) = (BTreeMap::new(), Vec::new());
        for ended in join_all(all).await {
            match ended {
                Ok((sha256, path)) => drop(done.insert(sha256, path)),
                Err(error) => failed.push(error),
            }
        }
        combine_errors(failed).map_or(Ok(done), Err)
    }

    /// Downloads and verifies one asset. Returns its path. Must not run twice at the same time for one sha256.
    pub async fn fetch_one(
        &self,
        asset: &Asset,
        attempt_log: AttemptLog<'_>,
    ) -> anyhow::Result<PathBuf> {
        let name = &asset.name;
        let Some(sha256) = asset.sha256.as_deref() else {
            bail!("{name} has no sha256 in NodeConfig, so it is not downloaded");
        };
        let target = self.cache_path(sha256).with_context(|| name.clone())?;
        let _place = self.slots.acquire().await;
        if self.is_complete(&target, sha256, attempt_log).await? {
            return Ok(target);
        }
        let object = asset.urls.iter().find(|url| url.starts_with("s3://"));
        let fetched = match (object, &self.aws) {
            (Some(url), Some(aws)) => {
                let most = self.limits.largest;
                let fetched = object::fetch_object(aws, url, sha256, &target, most, attempt_log);
                Box::pin(fetched).await
            }
            _ => {
                self.fetch_from_any(asset, sha256, &target, attempt_log)
                    .await
            }
        };
        fetched.with_context(|| name.clone())?;
        Ok(target)
    }

    /// The path of the file with this sha256, if it is complete in the cache.
    pub async fn find_cached(
        &self,
        sha256: &str,
        attempt_log: AttemptLog<'_>,
    ) -> anyhow::Result<Option<PathBuf>> {
        let target = self.cache_path(sha256)?;
        let there = self.is_complete(&target, sha256, attempt_log).await?;
        Ok(there.then_some(target))
    }

    /// The path for a sha256 in the cache, whether the file exists or not. Creates the cache folder.
    pub fn cache_path(&self, sha256: &str) -> anyhow::Result<PathBuf> {
        // The hash becomes a file name.
        if !node::digest::is_sha256(sha256) {
            bail!("{sha256:?} is not a sha256");
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.cache)
            .with_context(|| format!("could not make {}", self.cache.display()))?;
        Ok(self.cache.join(sha256))
    }

    /// True if the file exists and has this sha256. A file with different content is removed.
    async fn is_complete(
        &self,
        target: &Path,
        sha256: &str,
        attempt_log: AttemptLog<'_>,
    ) -> anyhow::Result<bool> {
        let unreadable = || format!("could not read {}", target.display());
        let found = run_blocking({
            let target = target.to_owned();
            move || match digest::sha256_of_file(&target) {
                Ok(sum) => Ok(Some(sum)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        })
        .await
        .with_context(unreadable)?;
        match found {
            None => Ok(false),
            Some(found) if found == sha256 => Ok(true),
            Some(found) => {
                attempt_log(&format!(
                    "{} has the wrong sha256 {found} and is removed",
                    target.display()
                ));
                std::fs::remove_file(target)
                    .with_context(|| format!("could not remove {}", target.display()))?;
                Ok(false)
            }
        }
    }

    async fn fetch_from_any(
        &self,
        asset: &Asset,
        sha256: &str,
        target: &Path,
        attempt_log: AttemptLog<'_>,
    ) -> anyhow::Result<()> {
        let path = target.with_extension("part");
        let unusable = || format!("could not open {}", path.display());
        let open = {
            let path = path.clone();
            move || PartFile::open(&path)
        };
        let mut part = run_blocking(open).await.with_context(unusable)?;
        let (mut most, mut rounds) = (part.length(), 0);
        let mut causes = UrlFailures::new(&asset.name, attempt_log);
        loop {
            let mut lasting = true;
            for url in &asset.urls {
                let (back, ended) = self.fetch_from(url, part, sha256, &path).await?;
                part = back;
                match ended {
                    Ok(()) => {
                        let named = part.keep_as(target);
                        return named
                            .with_context(|| format!("could not make {}", target.display()));
                    }
                    Err(useless) => {
                        lasting &= useless.lasting;
                        causes.add_failure(url, &useless.cause);
                    }
                }
            }
            rounds = if part.length() > most { 0 } else { rounds + 1 };
            most = most.max(part.length());
            if lasting || rounds >= self.limits.rounds {
                return Err(causes.to_error(&asset.urls));
            }
            tokio::time::sleep(self.limits.pause * 2_u32.pow(rounds.saturating_sub(1))).await;
        }
    }

    /// Downloads from one URL until the part has the expected sha256. If the hash is wrong after a resumed download, the earlier bytes
    /// may be at fault, so the URL is asked once more for the whole file.
    async fn fetch_from(
        &self,
        url: &str,
        mut part: PartFile,
        sha256: &str,
        path: &Path,
    ) -> anyhow::Result<(PartFile, Result<(), FailedRequest>)> {
        let local = |local| self.describe_local(path, local);
        loop {
            // A run that was killed before the rename left a complete part.
            if part.sha256() == sha256 {
                return Ok((part, Ok(())));
            }
            let resumed = part.length();
            let (back, ended) = pull_missing(
                &self.client,
                url,
                part,
                || self.free_bytes(),
                self.limits.largest,
            )
            .await
            .map_err(local)?;
            part = back;
            if ended.is_err() || part.sha256() == sha256 {
                return Ok((part, ended));
            }
            let (found, length) = (part.sha256(), part.length());
            part.restart().map_err(|error| local(error.into()))?;
            if resumed == 0 || length < resumed {
                let cause = format!(
                    "wrong sha256: expected {sha256}, got {found} for {length} bytes, which were removed"
                );
                return Ok((
                    part,
                    Err(FailedRequest {
                        cause,
                        lasting: true,
                    }),
                ));
            }
        }
    }

    /// Free bytes on the disk of the cache; the maximum if unknown, because writing then reports the problem.
    fn free_bytes(&self) -> u64 {
        rustix::fs::statvfs(&self.cache)
            .map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    fn describe_local(&self, path: &Path, local: LocalError) -> Error {
        match local {
            LocalError::NoRoom(missing) => {
                // The incomplete part takes space that other downloads need. The next run begins anew.
                let _ = std::fs::remove_file(path);
                let takes = missing.map_or_else(String::new, |missing| {
                    format!("{missing} more bytes are needed, ")
                });
                anyhow!(
                    "not enough disk space: {takes}{} has {} bytes free; set a larger rootVolumeSize for the instance group",
                    self.cache.display(),
                    self.free_bytes()
                )
            }
            LocalError::Io(error) => {
                Error::new(error).context(format!("could not write {}", path.display()))
            }
        }
    }
}

/// Collects the failures of each URL and logs each distinct one once.
struct UrlFailures<'a> {
    name: &'a str,
    attempt_log: AttemptLog<'a>,
    seen: BTreeSet<String>,
    last: BTreeMap<String, String>,
}

impl<'a> UrlFailures<'a> {
    fn new(name: &'a str, attempt_log: AttemptLog<'a>) -> Self {
        Self {
            name,
            attempt_log,
            seen: BTreeSet::new(),
            last: BTreeMap::new(),
        }
    }

    fn add_failure(&mut self, url: &str, cause: &str) {
        let line = format!("{} from {url}: {cause}", self.name);
        if self.seen.insert(line.clone()) {
            (self.attempt_log)(&line);
        }
        self.last.insert(url.to_owned(), cause.to_owned());
    }

    fn to_error(&self, urls: &[String]) -> Error {
        let each = urls.iter().map(|url| {
            let cause = self.last.get(url).map_or("", String::as_str);
            format!("{url}: {cause}")
        });
        match urls {
            [] => anyhow!("NodeConfig has no URL for it"),
            _ => anyhow!(each.collect::<Vec<_>>().join("; ")),
        }
    }
}

/// Combines several errors into one; `None` for an empty list.
fn combine_errors(failed: Vec<Error>) -> Option<Error> {
    let (first, rest) = {
        let mut failed = failed.into_iter();
        (failed.next()?, failed.collect::<Vec<_>>())
    };
    if rest.is_empty() {
        return Some(first.context("a download failed"));
    }
    let all = std::iter::once(&first).chain(&rest);
    let text: Vec<String> = all.map(|error| format!("{error:#}")).collect();
    Some(anyhow!(
        "{} downloads failed: {}",
        text.len(),
        text.join("; ")
    ))
}

/// Runs blocking work on a separate thread.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(std::io::Error::other)?
}
