//! Downloads into a folder in which each file has its sha256 as its name once it is complete. What was interrupted goes on.

use anyhow::{Context, Error, anyhow};
use aws_client::store::sha256_of_file;
use node::digest::to_hex;
use reqwest::header::CONTENT_RANGE;
use reqwest::{Response, StatusCode};
use std::fmt;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Attempts without progress before giving up.
pub const TRIES: u32 = 5;

/// Pause after the first of them; doubled for each further one.
const PAUSE: Duration = Duration::from_secs(1);

/// The pause after so many of them.
pub fn pause_after(tries: u32) -> Duration {
    PAUSE * 2_u32.pow(tries.saturating_sub(1))
}

/// A folder of downloads.
#[derive(Debug)]
pub struct DownloadFolder {
    folder: PathBuf,
}

/// An answer that is no success.
#[derive(Debug)]
pub struct Refused(pub StatusCode);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the answer is {}", self.0)
    }
}

impl std::error::Error for Refused {}

impl Refused {
    /// True if another attempt ends no better.
    pub fn is_lasting(&self) -> bool {
        let passing = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
        self.0.is_client_error() && !passing.contains(&self.0)
    }
}

/// Why an attempt did not complete a file.
struct Missed {
    /// Another one ends no better.
    lasting: bool,
    cause: Error,
}

impl From<Error> for Missed {
    /// Of a failure that may pass.
    fn from(cause: Error) -> Self {
        Self {
            lasting: false,
            cause,
        }
    }
}

impl DownloadFolder {
    /// The downloads in this folder, which is made if need be. Files are put together of what is in it, and signed: it must be one into which
    /// nobody else writes.
    pub fn open(folder: &Path) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let there = folder.symlink_metadata()?;
        let is_own = there.uid() == rustix::process::geteuid().as_raw();
        if !there.is_dir() || !is_own || there.mode() & 0o022 != 0 {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "it is there, and is a link or a folder that others may write to: remove it",
            ));
        }
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// A path in it, for other files.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Removes the folder and what is in it.
    pub fn remove(self) -> io::Result<()> {
        fs::remove_dir_all(self.folder)
    }

    /// The path of the file with this sha256. If it is not there, `ask` is called for an answer from this byte on.
    pub async fn fetch<F>(&self, sha256: &str, ask: impl Fn(u64) -> F) -> Result<PathBuf, Error>
    where
        F: Future<Output = Result<Response, Error>>,
    {
        let (path, part) = (self.path(sha256), self.path(&format!("{sha256}.part")));
        if path.exists() && has_sha256(&path, sha256).await? {
            return Ok(path);
        }
        let mut tries = 0;
        loop {
            let begun = length_of(&part);
            let missed = match receive(&part, begun, &ask).await {
                Err(missed) => missed,
                Ok(()) => {
                    if has_sha256(&part, sha256).await? {
                        fs::rename(&part, &path)
                            .with_context(|| format!("could not make {}", path.display()))?;
                        return Ok(path);
                    }
                    Missed {
                        // What an earlier attempt left may be at fault.
                        lasting: begun == 0,
                        cause: anyhow!("what was sent does not have the sha256 {sha256}"),
                    }
                }
            };
            tries = if length_of(&part) > begun {
                1
            } else {
                tries + 1
            };
            if missed.lasting || tries >= TRIES {
                return Err(missed.cause);
            }
            tokio::time::sleep(pause_after(tries)).await;
        }
    }
}

/// True if the file has this sha256; another one is removed.
async fn has_sha256(path: &Path, sha256: &str) -> Result<bool, Error> {
    let found = sha256_of_file(path).await;
    let found = found.with_context(|| format!("could not read {}", path.display()))?;
    if to_hex(&found) == sha256 {
        return Ok(true);
    }
    fs::remove_file(path).with_context(|| format!("could not remove {}", path.display()))?;
    Ok(false)
}

fn length_of(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |about| about.len())
}

/// Appends to the part what it lacks.
async fn receive<F>(part: &Path, begun: u64, ask: &impl Fn(u64) -> F) -> Result<(), Missed>
where
    F: Future<Output = Result<Response, Error>>,
{
    let mut response = ask(begun).await?;
    let status = response.status();
    // There is nothing behind its last byte.
    if begun > 0 && status == StatusCode::RANGE_NOT_SATISFIABLE {
        return Ok(());
    }
    if !status.is_success() {
        let refused = Refused(status);
        return Err(Missed {
            lasting: refused.is_lasting(),
            cause: Error::new(refused),
        });
    }
    let range = response.headers().get(CONTENT_RANGE);
    let range = range.and_then(|range| range.to_str().ok());
    let goes_on = range.is_some_and(|range| range.starts_with(&format!("bytes {begun}-")));
    let failed = || format!("could not write {}", part.display());
    let mut file = OpenOptions::new()
        .create(true)
        .write(true)
        .append(goes_on)
        .truncate(!goes_on)
        .open(part)
        .with_context(failed)?;
    loop {
        let piece = response.chunk().await;
        let piece = piece.map_err(reqwest::Error::without_url);
        let Some(piece) = piece.context("the answer broke off")? else {
            return Ok(());
        };
        file.write_all(&piece).with_context(failed)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::digest::sha256_hex;
    use std::cell::RefCell;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const CONTENT: &[u8] = b"what is published";

    /// The answer of a server that can send the rest of a file (`ranges`), or only all of it.
    fn answer(from: u64, ranges: bool) -> Response {
        let from = usize::try_from(from).unwrap();
        let begun = |status: u16| http::Response::builder().status(status);
        let answer = match CONTENT.get(from..) {
            None | Some([]) if ranges => begun(416).body(CONTENT),
            Some(rest) if ranges && from > 0 => {
                let range = format!("bytes {from}-{}/{}", CONTENT.len() - 1, CONTENT.len());
                begun(206).header(CONTENT_RANGE, range).body(rest)
            }
            _ => begun(200).body(CONTENT),
        };
        Response::from(answer.unwrap())
    }

    #[tokio::test]
    async fn whatever_an_earlier_attempt_left_the_file_is_whole_in_the_end() {
        let sha256 = &sha256_hex(CONTENT);
        for ranges in [true, false] {
            let begun = (0..=CONTENT.len()).map(|length| CONTENT[..length].to_vec());
            for left in begun.chain([vec![b'?'; 2 * CONTENT.len()]]) {
                let folder = tempfile::tempdir().unwrap();
                let folder = DownloadFolder::open(folder.path()).unwrap();
                fs::write(folder.path(&format!("{sha256}.part")), &left).unwrap();
                let asked = RefCell::new(Vec::new());
                let ask = |from: u64| {
                    asked.borrow_mut().push(from);
                    async move { Ok::<_, Error>(answer(from, ranges)) }
                };
                let path = folder.fetch(sha256, ask).await.unwrap();
                assert_eq!(fs::read(path).unwrap(), CONTENT);
                assert_eq!(asked.borrow()[0], left.len() as u64);
            }
        }
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let (own, link) = (parent.path().join("own"), parent.path().join("link"));
        let set_mode = |mode| fs::set_permissions(&own, Permissions::from_mode(mode)).unwrap();
        DownloadFolder::open(&own).unwrap();
        assert_eq!(fs::metadata(&own).unwrap().mode() & 0o777, 0o700);
        symlink(&own, &link).unwrap();
        assert!(DownloadFolder::open(&link).is_err());
        for (mode, is_taken) in [(0o755, true), (0o775, false), (0o757, false)] {
            set_mode(mode);
            assert_eq!(DownloadFolder::open(&own).is_ok(), is_taken, "{mode:o}");
        }
    }

    #[tokio::test]
    async fn a_refusal_and_another_file_are_final() {
        for (status, body) in [(404_u16, ""), (200, "another file")] {
            let folder = tempfile::tempdir().unwrap();
            let folder = DownloadFolder::open(folder.path()).unwrap();
            let asked = RefCell::new(0);
            let ask = |_: u64| {
                *asked.borrow_mut() += 1;
                let answer = http::Response::builder().status(status).body(body);
                async move { Ok::<_, Error>(Response::from(answer.unwrap())) }
            };
            let fetched = folder.fetch(&sha256_hex(CONTENT), ask).await;
            assert!(fetched.is_err());
            assert_eq!(*asked.borrow(), 1);
        }
    }
}
