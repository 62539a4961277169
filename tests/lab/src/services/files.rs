//! One file as an HTTP answer: ranges (RFC 9110, 14), validators, HEAD.

use super::http::{Body, BoxError, full, refusal};
use bytes::Bytes;
use futures::TryStreamExt;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap, HeaderName,
    HeaderValue, IF_NONE_MATCH, IF_RANGE, RANGE,
};
use hyper::{Method, Response, StatusCode};
use std::fs::Metadata;
use std::io::{self, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio_util::io::ReaderStream;

/// Bytes read at a time.
const CHUNK: usize = 64 * 1024;

/// What part of a file is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Whole,
    /// First byte and length, at least 1.
    Bytes(u64, u64),
    Unsatisfiable,
}

/// The file, or what of it is asked for; `None`: there is no such file. `etag` in its quotes, else of the file's state.
pub async fn respond(
    method: &Method,
    headers: &HeaderMap,
    path: &Path,
    kind: &str,
    etag: Option<String>,
) -> io::Result<Option<Response<Body>>> {
    let mut file = match File::open(path).await {
        Err(error) if is_absent(error.kind()) => return Ok(None),
        other => other?,
    };
    let metadata = file.metadata().await?;
    if !metadata.is_file() {
        return Ok(None);
    }
    let etag = etag.unwrap_or_else(|| state_of(&metadata));
    let size = metadata.len();
    if text(headers, &IF_NONE_MATCH).is_some_and(|tags| matches_any(tags, &etag)) {
        return with(StatusCode::NOT_MODIFIED, &etag, kind, full(Bytes::new())).map(Some);
    }
    let part = match text(headers, &IF_RANGE) {
        Some(other) if other != etag => Part::Whole,
        _ => text(headers, &RANGE).map_or(Part::Whole, |range| part(range, size)),
    };
    let (status, first, length) = match part {
        Part::Whole => (StatusCode::OK, 0, size),
        Part::Bytes(first, length) => (StatusCode::PARTIAL_CONTENT, first, length),
        Part::Unsatisfiable => {
            let why = format!("the file has {size} bytes");
            let mut response = refusal(StatusCode::RANGE_NOT_SATISFIABLE, &why);
            set(&mut response, CONTENT_RANGE, &format!("bytes */{size}"))?;
            return Ok(Some(response));
        }
    };
    let body = if method == Method::HEAD {
        full(Bytes::new())
    } else {
        file.seek(SeekFrom::Start(first)).await?;
        let chunks = ReaderStream::with_capacity(file.take(length), CHUNK);
        let frames = chunks.map_ok(Frame::data).map_err(BoxError::from);
        StreamBody::new(frames).boxed_unsync()
    };
    let mut response = with(status, &etag, kind, body)?;
    set(&mut response, CONTENT_LENGTH, &length.to_string())?;
    if status == StatusCode::PARTIAL_CONTENT {
        let last = first + length - 1;
        set(
            &mut response,
            CONTENT_RANGE,
            &format!("bytes {first}-{last}/{size}"),
        )?;
    }
    Ok(Some(response))
}

/// Of a Range header and a file's size. Several ranges, and what is no range of bytes, give the whole file, as the RFC
/// allows.
pub fn part(range: &str, size: u64) -> Part {
    let Some(range) = range.trim().strip_prefix("bytes=") else {
        return Part::Whole;
    };
    let Some((first, last)) = range.split_once('-') else {
        return Part::Whole;
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(first) || !digits(last) {
        return Part::Whole;
    }
    match (first.parse::<u64>(), last.parse::<u64>()) {
        (Err(_), Err(_)) => Part::Whole,
        (Err(_), Ok(suffix)) => {
            let length = suffix.min(size);
            match length {
                0 => Part::Unsatisfiable,
                length => Part::Bytes(size - length, length),
            }
        }
        (Ok(first), Ok(last)) if last < first => Part::Whole,
        (Ok(first), _) if first >= size => Part::Unsatisfiable,
        (Ok(first), last) => {
            let last = last.unwrap_or(u64::MAX).min(size - 1);
            Part::Bytes(first, last - first + 1)
        }
    }
}

fn is_absent(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};
    matches!(kind, NotFound | NotADirectory | InvalidFilename)
}

fn state_of(metadata: &Metadata) -> String {
    let (size, seconds) = (metadata.len(), metadata.mtime());
    format!("\"{size:x}-{seconds:x}-{:x}\"", metadata.mtime_nsec())
}

fn matches_any(tags: &str, etag: &str) -> bool {
    let same = |tag: &str| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag;
    tags.split(',').any(|tag| same(tag.trim()))
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn with(status: StatusCode, etag: &str, kind: &str, body: Body) -> io::Result<Response<Body>> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    set(&mut response, ETAG, etag)?;
    set(&mut response, CONTENT_TYPE, kind)?;
    set(&mut response, ACCEPT_RANGES, "bytes")?;
    Ok(response)
}

fn set(response: &mut Response<Body>, name: HeaderName, value: &str) -> io::Result<()> {
    let value = HeaderValue::from_str(value).map_err(io::Error::other)?;
    response.headers_mut().insert(name, value);
    Ok(())
}
