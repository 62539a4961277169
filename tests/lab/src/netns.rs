//! Network namespaces by the names that `ip netns` keeps: where they are, and how work gets into one.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Work that did not get into a namespace, or not to its end there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("network namespace {}: {source}", .path.display())]
    Enter { path: PathBuf, source: io::Error },
    #[error("the thread in network namespace {netns} panicked")]
    Panicked { netns: String },
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Enter { source, .. } => source.kind(),
            Error::Panicked { .. } => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// Where `ip netns` keeps it.
pub fn netns_path(netns: &str) -> PathBuf {
    Path::new("/run/netns").join(netns)
}

/// Runs `work` on a thread of its own inside the namespace: nothing else of the process moves, and sockets that it makes
/// stay there, whoever uses them. Blocks until it is done.
pub fn run_inside<T: Send>(netns: &str, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
    let task = move || {
        enter_netns(netns).map_err(|source| Error::Enter {
            path: netns_path(netns),
            source,
        })?;
        Ok(work())
    };
    std::thread::scope(|scope| scope.spawn(task).join()).unwrap_or_else(|_| {
        Err(Error::Panicked {
            netns: netns.to_owned(),
        })
    })
}

/// Moves the calling thread into it, for good.
fn enter_netns(netns: &str) -> io::Result<()> {
    let file = File::open(netns_path(netns))?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
    Ok(())
}
