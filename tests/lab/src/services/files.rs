//! One file as an HTTP answer: ranges (RFC 9110, 14), validators, HEAD.

use super::http::{Body, BoxError, full_body, refusal_response};
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
pub enum RangePart {
    Whole,
    /// First byte and length, at least 1.
    Bytes(u64, u64),
    Unsatisfiable,
}

/// The file, or what of it is asked for; `None`: there is no such file. `etag` in its quotes, else of the file's state.
pub async fn respond_with_file(
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
    if header_text(headers, &IF_NONE_MATCH).is_some_and(|tags| matches_any(tags, &etag)) {
        return new_response(
            StatusCode::NOT_MODIFIED,
            &etag,
            kind,
            full_body(Bytes::new()),
        )
        .map(Some);
    }
    let part = match header_text(headers, &IF_RANGE) {
        Some(other) if other != etag => RangePart::Whole,
        _ => {
            header_text(headers, &RANGE).map_or(RangePart::Whole, |range| parse_range(range, size))
        }
    };
    let (status, first, length) = match part {
        RangePart::Whole => (StatusCode::OK, 0, size),
        RangePart::Bytes(first, length) => (StatusCode::PARTIAL_CONTENT, first, length),
        RangePart::Unsatisfiable => {
            let why = format!("the file has {size} bytes");
            let mut response = refusal_response(StatusCode::RANGE_NOT_SATISFIABLE, &why);
            set_header(&mut response, CONTENT_RANGE, &format!("bytes */{size}"))?;
            return Ok(Some(response));
        }
    };
    let body = if method == Method::HEAD {
        full_body(Bytes::new())
    } else {
        file.seek(SeekFrom::Start(first)).await?;
        let chunks = ReaderStream::with_capacity(file.take(length), CHUNK);
        let frames = chunks.map_ok(Frame::data).map_err(BoxError::from);
        StreamBody::new(frames).boxed_unsync()
    };
    let mut response = new_response(status, &etag, kind, body)?;
    set_header(&mut response, CONTENT_LENGTH, &length.to_string())?;
    if status == StatusCode::PARTIAL_CONTENT {
        let last = first + length - 1;
        set_header(
            &mut response,
            CONTENT_RANGE,
            &format!("bytes {first}-{last}/{size}"),
        )?;
    }
    Ok(Some(response))
}

/// Of a Range header and a file's size. Several ranges, and what is no range of bytes, give the whole file, as the RFC
/// allows.
pub fn parse_range(range: &str, size: u64) -> RangePart {
    let Some(range) = range.trim().strip_prefix("bytes=") else {
        return RangePart::Whole;
    };
    let Some((first, last)) = range.split_once('-') else {
        return RangePart::Whole;
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(first) || !digits(last) {
        return RangePart::Whole;
    }
    match (first.parse::<u64>(), last.parse::<u64>()) {
        (Err(_), Err(_)) => RangePart::Whole,
        (Err(_), Ok(suffix)) => {
            let length = suffix.min(size);
            match length {
                0 => RangePart::Unsatisfiable,
                length => RangePart::Bytes(size - length, length),
            }
        }
        (Ok(first), Ok(last)) if last < first => RangePart::Whole,
        (Ok(first), _) if first >= size => RangePart::Unsatisfiable,
        (Ok(first), last) => {
            let last = last.unwrap_or(u64::MAX).min(size - 1);
            RangePart::Bytes(first, last - first + 1)
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

fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn new_response(
    status: StatusCode,
    etag: &str,
    kind: &str,
    body: Body,
) -> io::Result<Response<Body>> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    set_header(&mut response, ETAG, etag)?;
    set_header(&mut response, CONTENT_TYPE, kind)?;
    set_header(&mut response, ACCEPT_RANGES, "bytes")?;
    Ok(response)
}

fn set_header(response: &mut Response<Body>, name: HeaderName, value: &str) -> io::Result<()> {
    let value = HeaderValue::from_str(value).map_err(io::Error::other)?;
    response.headers_mut().insert(name, value);
    Ok(())
}
