//! Download sites: files laid out as HOST/PATH, as the public sites have them.

use super::files;
use super::http::{Body, refusal_response};
use hyper::{Method, Request, Response, StatusCode};
use std::io;
use std::path::{Path, PathBuf};

/// The file of one site at the request's path.
pub async fn respond_with_download<T>(
    site: &Path,
    request: &Request<T>,
) -> io::Result<Response<Body>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Ok(refusal_response(
            StatusCode::METHOD_NOT_ALLOWED,
            "this site only gives files",
        ));
    }
    let asked = request.uri().path();
    let Some(path) = path_below(site, asked) else {
        return Ok(refusal_response(
            StatusCode::BAD_REQUEST,
            &format!("{asked} is no path of a file"),
        ));
    };
    let kind = kind_of(&path);
    let found =
        files::respond_with_file(request.method(), request.headers(), &path, kind, None).await?;
    let absent = || {
        let why = format!("the lab's mirror has no {asked} of this site (asset mirror, HOST/PATH)");
        refusal_response(StatusCode::NOT_FOUND, &why)
    };
    Ok(found.unwrap_or_else(absent))
}

/// A URL's path as a file's below `folder`; `None` for one that would lead out of it.
pub fn path_below(folder: &Path, path: &str) -> Option<PathBuf> {
    let decoded = percent_decode(path)?;
    let mut below = folder.to_owned();
    for part in decoded.split('/').filter(|part| !part.is_empty()) {
        if part == "." || part == ".." || part.contains('\0') {
            return None;
        }
        below.push(part);
    }
    Some(below)
}

/// Percent-decoded; `None` for what is no UTF-8 then, or half an escape.
pub fn percent_decode(path: &str) -> Option<String> {
    let mut bytes = path.bytes();
    let mut decoded = Vec::with_capacity(path.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let high = char::from(bytes.next()?).to_digit(16)?;
        let low = char::from(bytes.next()?).to_digit(16)?;
        decoded.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(decoded).ok()
}

fn kind_of(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("txt" | "sha256" | "sha512" | "sha256sum") => "text/plain; charset=utf-8",
        Some("gz" | "tgz") => "application/gzip",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    }
}
