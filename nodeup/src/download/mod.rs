//! Downloads: several at once, resumed where they broke off, from mirrors in turn, summed while they arrive, and kept
//! under their sha256. A file has its name only once its content has that sum.

mod part;
mod pull;

use crate::digest;
use crate::retry::Told;
use anyhow::{Context, Error, anyhow, bail};
use futures::future::join_all;
use node::config::Asset;
use part::Part;
use pull::{Local, Useless, pull};
use reqwest::Client;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::Semaphore;

/// How patient downloads are.
#[derive(Clone, Debug)]
pub struct Limits {
    /// So many at once.
    pub parallel: usize,
    /// A connection takes no longer.
    pub connect: Duration,
    /// Nothing arrives for no longer.
    pub idle: Duration,
    /// So often all URLs are asked in turn without a byte more than before.
    pub rounds: u32,
    /// Between the first two such rounds; doubled for each further one.
    pub pause: Duration,
    /// Nothing that machines need is larger, in bytes: a server that sends more sends something else, and would fill the disk.
    pub largest: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            parallel: 4,
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            rounds: 5,
            pause: Duration::from_secs(1),
            largest: 2 << 30,
        }
    }
}

/// The cache of downloads.
pub struct Downloads {
    cache: PathBuf,
    client: Client,
    limits: Limits,
    places: Semaphore,
}

impl Downloads {
    /// Into that folder, which the first download makes.
    pub fn new(cache: PathBuf, limits: Limits) -> anyhow::Result<Self> {
        let client = Client::builder()
            .user_agent(concat!("kctl-nodeup/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(limits.connect)
            .read_timeout(limits.idle)
            // One connection a file: an HTTP/2 window would be shared by all of them.
            .http1_only()
            .build()
            .context("could not prepare downloads")?;
        Ok(Self {
            cache,
            client,
            places: Semaphore::new(limits.parallel),
            limits,
        })
    }

    /// Where each of them lies, by sha256. All are tried, whatever happens to one; fails with what is wrong with each.
    pub async fn fetch(
        &self,
        assets: &[Asset],
        told: Told<'_>,
    ) -> anyhow::Result<BTreeMap<String, PathBuf>> {
        let distinct: BTreeMap<_, _> = assets.iter().map(|asset| (&asset.sha256, asset)).collect();
        let all = distinct.into_values().map(|asset| async move {
            let path = self.one(asset, told).await?;
            Ok((asset.sha256.clone().unwrap_or_default(), path))
        });
        let (mut done, mut failed) = (BTreeMap::new(), Vec::new());
        for ended in join_all(all).await {
            match ended {
                Ok((sha256, path)) => drop(done.insert(sha256, path)),
                Err(error) => failed.push(error),
            }
        }
        one_error(failed).map_or(Ok(done), Err)
    }

    /// Where it lies, verified. Must not be asked for one sha256 twice at once.
    pub async fn one(&self, asset: &Asset, told: Told<'_>) -> anyhow::Result<PathBuf> {
        let name = &asset.name;
        let Some(sha256) = asset.sha256.as_deref() else {
            bail!("{name}: what has no sha256 is not used");
        };
        let target = self.path(sha256).with_context(|| name.clone())?;
        let _place = self.places.acquire().await;
        if self.is_there(&target, sha256, told).await? {
            return Ok(target);
        }
        self.ask_in_turn(asset, sha256, &target, told)
            .await
            .with_context(|| name.clone())?;
        Ok(target)
    }

    /// Where the content with that sha256 lies if an earlier run left it whole.
    pub async fn have(&self, sha256: &str, told: Told<'_>) -> anyhow::Result<Option<PathBuf>> {
        let target = self.path(sha256)?;
        let there = self.is_there(&target, sha256, told).await?;
        Ok(there.then_some(target))
    }

    /// Where the content with that sha256 lies, or will; its folder is there.
    pub fn path(&self, sha256: &str) -> anyhow::Result<PathBuf> {
        // It becomes the name of a file.
        if !digest::is_sha256(sha256) {
            bail!("{sha256:?} is no sha256");
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.cache)
            .with_context(|| format!("could not make {}", self.cache.display()))?;
        Ok(self.cache.join(sha256))
    }

    /// Whether an earlier run left it whole. What a crash or somebody made of it is removed.
    async fn is_there(&self, target: &Path, sha256: &str, told: Told<'_>) -> anyhow::Result<bool> {
        let unreadable = || format!("could not read {}", target.display());
        let found = blocking({
            let target = target.to_owned();
            move || match digest::of_file(&target) {
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
                told(&format!("{} has sha256 {found}: removed", target.display()));
                std::fs::remove_file(target)
                    .with_context(|| format!("could not remove {}", target.display()))?;
                Ok(false)
            }
        }
    }

    async fn ask_in_turn(
        &self,
        asset: &Asset,
        sha256: &str,
        target: &Path,
        told: Told<'_>,
    ) -> anyhow::Result<()> {
        let path = target.with_extension("part");
        let unusable = || format!("could not open {}", path.display());
        let open = {
            let path = path.clone();
            move || Part::open(&path)
        };
        let mut part = blocking(open).await.with_context(unusable)?;
        let (mut most, mut rounds) = (part.length(), 0);
        let mut causes = Causes::new(&asset.name, told);
        loop {
            let mut lasting = true;
            for url in &asset.urls {
                let (back, ended) = self.ask(url, part, sha256, &path).await?;
                part = back;
                match ended {
                    Ok(()) => {
                        let named = part.keep_as(target);
                        return named
                            .with_context(|| format!("could not make {}", target.display()));
                    }
                    Err(useless) => {
                        lasting &= useless.lasting;
                        causes.add(url, &useless.cause);
                    }
                }
            }
            rounds = if part.length() > most { 0 } else { rounds + 1 };
            most = most.max(part.length());
            if lasting || rounds >= self.limits.rounds {
                return Err(causes.error(&asset.urls));
            }
            tokio::time::sleep(self.limits.pause * 2_u32.pow(rounds.saturating_sub(1))).await;
        }
    }

    /// One URL's turn: `Ok` if the part then has that sum. A sum that is wrong after resuming says nothing about this
    /// URL, which is asked for the whole then.
    async fn ask(
        &self,
        url: &str,
        mut part: Part,
        sha256: &str,
        path: &Path,
    ) -> anyhow::Result<(Part, Result<(), Useless>)> {
        let local = |local| self.local(path, local);
        loop {
            // A run that was killed before the file got its name left it whole.
            if part.sha256() == sha256 {
                return Ok((part, Ok(())));
            }
            let resumed = part.length();
            let (back, ended) = pull(&self.client, url, part, || self.room(), self.limits.largest)
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
                    "wrong sha256: expected {sha256}, found {found} of {length} bytes: removed"
                );
                return Ok((
                    part,
                    Err(Useless {
                        cause,
                        lasting: true,
                    }),
                ));
            }
        }
    }

    /// Bytes the cache's disk takes from us. Unknown is plenty: writing says it then.
    fn room(&self) -> u64 {
        rustix::fs::statvfs(&self.cache)
            .map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    fn local(&self, path: &Path, local: Local) -> Error {
        match local {
            Local::NoRoom(missing) => {
                // What there is of it takes the room that others need. Without it the next run begins anew.
                let _ = std::fs::remove_file(path);
                let takes = missing.map_or_else(String::new, |missing| {
                    format!("it takes {missing} bytes more, ")
                });
                anyhow!(
                    "no space for it: {takes}{} has {} bytes free: give the group a larger rootVolumeSize",
                    self.cache.display(),
                    self.room()
                )
            }
            Local::Io(error) => {
                Error::new(error).context(format!("could not write {}", path.display()))
            }
        }
    }
}

/// What is wrong with each URL, each cause told once.
struct Causes<'a> {
    name: &'a str,
    told: Told<'a>,
    seen: BTreeSet<String>,
    last: BTreeMap<String, String>,
}

impl<'a> Causes<'a> {
    fn new(name: &'a str, told: Told<'a>) -> Self {
        Self {
            name,
            told,
            seen: BTreeSet::new(),
            last: BTreeMap::new(),
        }
    }

    fn add(&mut self, url: &str, cause: &str) {
        let line = format!("{} from {url}: {cause}", self.name);
        if self.seen.insert(line.clone()) {
            (self.told)(&line);
        }
        self.last.insert(url.to_owned(), cause.to_owned());
    }

    fn error(&self, urls: &[String]) -> Error {
        let each = urls.iter().map(|url| {
            let cause = self.last.get(url).map_or("", String::as_str);
            format!("{url}: {cause}")
        });
        match urls {
            [] => anyhow!("no URL says where it is"),
            _ => anyhow!(each.collect::<Vec<_>>().join("; ")),
        }
    }
}

/// Several errors as one; none of none.
fn one_error(failed: Vec<Error>) -> Option<Error> {
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

/// Work that blocks, on a thread that may.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(std::io::Error::other)?
}
