//! One HTTP request of a download: interprets ranges and lengths, and writes the body to the part.

use super::part::PartFile;
use aws_client::authorities::Authorities;
use bytes::Bytes;
use reqwest::header::{CONTENT_RANGE, HeaderMap, RANGE};
use reqwest::{Client, Response, StatusCode};
use std::io;
use tokio::sync::mpsc;

/// Queued pieces between network and disk; each may have 400 KB, and several downloads run at once.
const QUEUE: usize = 2;

/// A failed request to a server.
#[derive(Debug)]
pub(super) struct FailedRequest {
    pub(super) cause: String,
    /// True if a retry would have the same result.
    pub(super) lasting: bool,
}

/// A failure on the instance itself.
#[derive(Debug)]
pub(super) enum LocalError {
    /// The disk is full; the number of missing bytes, if known.
    NoRoom(Option<u64>),
    Io(io::Error),
}

impl From<io::Error> for LocalError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoRoom(None),
            _ => Self::Io(error),
        }
    }
}

/// Requests the missing bytes and appends them. `room` returns the free bytes on the disk; `largest` is the limit of the file.
pub(super) async fn pull_missing(
    client: &Client,
    url: &str,
    mut part: PartFile,
    room: impl Fn() -> u64,
    largest: u64,
) -> Result<(PartFile, Result<(), FailedRequest>), LocalError> {
    if let Err(error) = Authorities::of_system().check_address(url) {
        let lasting = FailedRequest {
            cause: error.to_string(),
            lasting: true,
        };
        return Ok((part, Err(lasting)));
    }
    let mut request = client.get(url);
    if part.length() > 0 {
        request = request.header(RANGE, format!("bytes={}-", part.length()));
    }
    let answer = match request.send().await {
        Ok(answer) => answer,
        Err(error) => return Ok((part, Err(transient_failure(error_chain(&error))))),
    };
    let (at, total) = match response_span(&answer, part.length()) {
        Ok(span) => span,
        Err(UnusableResponse::Status(useless)) => return Ok((part, Err(useless))),
        Err(UnusableResponse::Range(cause)) => {
            part.restart()?;
            return Ok((part, Err(transient_failure(cause))));
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
                &format!("the server announces {total} bytes"),
                largest,
            )),
        ));
    }
    let missing = total.map_or(0, |total| total.saturating_sub(at));
    if missing > room() {
        return Err(LocalError::NoRoom(Some(missing)));
    }
    let (mut part, broken) = write_response(answer, part, largest).await?;
    if part.length() > largest {
        part.restart()?;
        return Ok((
            part,
            Err(too_large("the server sends too many bytes", largest)),
        ));
    }
    let short = total.filter(|total| part.length() < *total);
    let cause = match (short, broken) {
        (None, None) => return Ok((part, Ok(()))),
        (None, Some(cause)) => cause,
        (Some(total), None) => format!("ended after {} of {total} bytes", part.length()),
        (Some(total), Some(cause)) => {
            format!(
                "interrupted after {} of {total} bytes: {cause}",
                part.length()
            )
        }
    };
    Ok((part, Err(transient_failure(cause))))
}

enum UnusableResponse {
    /// An error status. The part remains valid.
    Status(FailedRequest),
    /// The part does not match the server's file.
    Range(String),
}

/// The offset of the response's first byte, and the length of the whole file if the server states it.
fn response_span(answer: &Response, have: u64) -> Result<(u64, Option<u64>), UnusableResponse> {
    match answer.status() {
        StatusCode::OK => Ok((0, answer.content_length())),
        StatusCode::PARTIAL_CONTENT => match content_range(answer.headers()) {
            Some((from, total)) if from == have => Ok((from, total)),
            other => Err(UnusableResponse::Range(format!(
                "requested bytes from {have} on, but the server sends {other:?}; starting over"
            ))),
        },
        StatusCode::RANGE_NOT_SATISFIABLE => Err(UnusableResponse::Range(format!(
            "the server's file has no more than the {have} bytes downloaded so far, whose sha256 is wrong; starting over"
        ))),
        status => Err(UnusableResponse::Status(FailedRequest {
            cause: format!("answered {status}"),
            lasting: status.is_client_error()
                && !matches!(
                    status,
                    StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS
                ),
        })),
    }
}

/// Parses `bytes 5-99/100` into 5 and 100.
fn content_range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let text = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    let (range, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (from, _) = range.split_once('-')?;
    Some((from.trim().parse().ok()?, total.trim().parse().ok()))
}

/// Writes the response to the part on a separate thread while further bytes arrive. Returns the error that interrupted the
/// response, if any.
async fn write_response(
    mut answer: Response,
    mut part: PartFile,
    largest: u64,
) -> Result<(PartFile, Option<String>), LocalError> {
    let mut length = part.length();
    let (send, mut receive) = mpsc::channel::<Bytes>(QUEUE);
    let writing = tokio::task::spawn_blocking(move || {
        while let Some(bytes) = receive.blocking_recv() {
            part.append(&bytes)?;
        }
        Ok::<PartFile, io::Error>(part)
    });
    let broken = loop {
        match answer.chunk().await {
            // The writer closes the queue after an error, which it returns below.
            Ok(Some(bytes)) => {
                length += bytes.len() as u64;
                // The caller detects the excess length; no more is written.
                if send.send(bytes).await.is_err() || length > largest {
                    break None;
                }
            }
            Ok(None) => break None,
            Err(error) => break Some(error_chain(&error)),
        }
    };
    drop(send);
    let part = writing.await.map_err(io::Error::other)??;
    Ok((part, broken))
}

fn too_large(what: &str, largest: u64) -> FailedRequest {
    FailedRequest {
        cause: format!("{what}, more than the limit of {largest}"),
        lasting: true,
    }
}

fn transient_failure(cause: String) -> FailedRequest {
    FailedRequest {
        cause,
        lasting: false,
    }
}

/// An error with its causes but without the URL, which the message names already.
fn error_chain(error: &reqwest::Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |error| error.source());
    let causes: Vec<String> = causes.map(ToString::to_string).collect();
    match (error.is_timeout(), causes.is_empty()) {
        (true, _) => "timed out".to_owned(),
        (false, true) => error.to_string(),
        (false, false) => causes.join(": "),
    }
}
