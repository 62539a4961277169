//! One request for one download: what the server says of ranges and lengths, and the bytes into the part.

use super::part::Part;
use bytes::Bytes;
use reqwest::header::{CONTENT_RANGE, HeaderMap, RANGE};
use reqwest::{Client, Response, StatusCode};
use std::io;
use tokio::sync::mpsc;

/// Pieces between the network and the disk: each may be 400 KB, and several downloads run at once.
const QUEUE: usize = 2;

/// Why a server's answer is of no use.
#[derive(Debug)]
pub(super) struct Useless {
    pub(super) cause: String,
    /// It would answer the same again.
    pub(super) lasting: bool,
}

/// Why the machine cannot take a download.
#[derive(Debug)]
pub(super) enum Local {
    /// The disk lacks room, for that many bytes more if that is known.
    NoRoom(Option<u64>),
    /// Something else.
    Io(io::Error),
}

impl From<io::Error> for Local {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoRoom(None),
            _ => Self::Io(error),
        }
    }
}

/// Asks for what the part lacks and adds it. `room` says how many bytes the disk takes, `largest` how long the whole may be.
pub(super) async fn pull(
    client: &Client,
    url: &str,
    mut part: Part,
    room: impl Fn() -> u64,
    largest: u64,
) -> Result<(Part, Result<(), Useless>), Local> {
    let mut request = client.get(url);
    if part.length() > 0 {
        request = request.header(RANGE, format!("bytes={}-", part.length()));
    }
    let answer = match request.send().await {
        Ok(answer) => answer,
        Err(error) => return Ok((part, Err(passing(chain(&error))))),
    };
    let (at, total) = match span(&answer, part.length()) {
        Ok(span) => span,
        Err(Unusable::Status(useless)) => return Ok((part, Err(useless))),
        Err(Unusable::Range(cause)) => {
            part.restart()?;
            return Ok((part, Err(passing(cause))));
        }
    };
    if at != part.length() {
        part.restart()?;
    }
    if let Some(total) = total.filter(|total| *total > largest) {
        part.restart()?;
        return Ok((
            part,
            Err(too_large(
                &format!("says that it has {total} bytes"),
                largest,
            )),
        ));
    }
    let missing = total.map_or(0, |total| total.saturating_sub(at));
    if missing > room() {
        return Err(Local::NoRoom(Some(missing)));
    }
    let (mut part, broken) = pour(answer, part, largest).await?;
    if part.length() > largest {
        part.restart()?;
        return Ok((part, Err(too_large("sends without an end", largest))));
    }
    let short = total.filter(|total| part.length() < *total);
    let cause = match (short, broken) {
        (None, None) => return Ok((part, Ok(()))),
        (None, Some(cause)) => cause,
        (Some(total), None) => format!("ended after {} of {total} bytes", part.length()),
        (Some(total), Some(cause)) => {
            format!(
                "broke off after {} of {total} bytes: {cause}",
                part.length()
            )
        }
    };
    Ok((part, Err(passing(cause))))
}

enum Unusable {
    /// The part stays as it is.
    Status(Useless),
    /// The part does not fit what the server has.
    Range(String),
}

/// Where the answer's bytes begin, and where the whole ends if that is said.
fn span(answer: &Response, have: u64) -> Result<(u64, Option<u64>), Unusable> {
    match answer.status() {
        StatusCode::OK => Ok((0, answer.content_length())),
        StatusCode::PARTIAL_CONTENT => match content_range(answer.headers()) {
            Some((from, total)) if from == have => Ok((from, total)),
            other => Err(Unusable::Range(format!(
                "asked for bytes from {have} on, it sends those of {other:?}: starting over"
            ))),
        },
        StatusCode::RANGE_NOT_SATISFIABLE => Err(Unusable::Range(format!(
            "it has no more than the {have} bytes that are here, and those are not the file: starting over"
        ))),
        status => Err(Unusable::Status(Useless {
            cause: format!("answered {status}"),
            lasting: status.is_client_error()
                && !matches!(
                    status,
                    StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS
                ),
        })),
    }
}

/// `bytes 5-99/100` as 5 and 100.
fn content_range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let text = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    let (range, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (from, _) = range.split_once('-')?;
    Some((from.trim().parse().ok()?, total.trim().parse().ok()))
}

/// The answer's bytes into the part, which a thread of its own writes and sums while the next ones arrive; and what
/// broke it off.
async fn pour(
    mut answer: Response,
    mut part: Part,
    largest: u64,
) -> Result<(Part, Option<String>), Local> {
    let mut length = part.length();
    let (send, mut receive) = mpsc::channel::<Bytes>(QUEUE);
    let writing = tokio::task::spawn_blocking(move || {
        while let Some(bytes) = receive.blocking_recv() {
            part.append(&bytes)?;
        }
        Ok::<Part, io::Error>(part)
    });
    let broken = loop {
        match answer.chunk().await {
            // The writer hangs up on an error, which it then says itself.
            Ok(Some(bytes)) => {
                length += bytes.len() as u64;
                // One piece too many tells the caller; no more is written.
                if send.send(bytes).await.is_err() || length > largest {
                    break None;
                }
            }
            Ok(None) => break None,
            Err(error) => break Some(chain(&error)),
        }
    };
    drop(send);
    let part = writing.await.map_err(io::Error::other)??;
    Ok((part, broken))
}

fn too_large(what: &str, largest: u64) -> Useless {
    Useless {
        cause: format!("{what}: nothing that machines need has more than {largest}"),
        lasting: true,
    }
}

fn passing(cause: String) -> Useless {
    Useless {
        cause,
        lasting: false,
    }
}

/// An error with its causes, without the URL, which is said beside it.
fn chain(error: &reqwest::Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |error| error.source());
    let causes: Vec<String> = causes.map(ToString::to_string).collect();
    match (error.is_timeout(), causes.is_empty()) {
        (true, _) => "nothing came for too long".to_owned(),
        (false, true) => error.to_string(),
        (false, false) => causes.join(": "),
    }
}
