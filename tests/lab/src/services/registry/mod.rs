//! A read-only OCI registry (distribution specification 1.1, pull; no list of tags) over image layouts: SITE/REPOSITORY/ is a layout
//! of its own.

mod layout;

use super::files;
use super::http::{Body, answer, full};
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use layout::{Layout, Reference};
use serde_json::json;
use std::io;
use std::path::Path;

/// What a path of the API asks for.
#[derive(Debug, PartialEq, Eq)]
enum Ask<'a> {
    Version,
    /// Repository and tag or digest.
    Manifest(&'a str, &'a str),
    /// Repository and digest.
    Blob(&'a str, &'a str),
}

/// Answers one request to the registry of `site`.
pub async fn respond<T>(site: &Path, request: &Request<T>) -> io::Result<Response<Body>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let why = "this registry is read-only";
        return Ok(error(StatusCode::METHOD_NOT_ALLOWED, "UNSUPPORTED", why));
    }
    let path = request.uri().path();
    let mut response = match ask(path) {
        Some(Ask::Version) => answer(StatusCode::OK, "application/json", "{}"),
        Some(Ask::Manifest(repository, reference)) => {
            manifest(site, repository, reference, request).await?
        }
        Some(Ask::Blob(repository, digest)) => blob(site, repository, digest, request).await?,
        None => {
            let why = format!("{path} is not of the distribution API (/v2/...)");
            error(StatusCode::NOT_FOUND, "UNSUPPORTED", &why)
        }
    };
    let version = HeaderValue::from_static("registry/2.0");
    response
        .headers_mut()
        .insert("docker-distribution-api-version", version);
    Ok(response)
}

/// A repository's name has slashes itself, so paths are read from their end.
fn ask(path: &str) -> Option<Ask<'_>> {
    let rest = match path {
        "/v2" | "/v2/" => return Some(Ask::Version),
        path => path.strip_prefix("/v2/")?,
    };
    let (before, last) = rest.rsplit_once('/')?;
    let (repository, what) = before.rsplit_once('/')?;
    match what {
        "manifests" => Some(Ask::Manifest(repository, last)),
        "blobs" => Some(Ask::Blob(repository, last)),
        _ => None,
    }
}

async fn manifest<T>(
    site: &Path,
    repository: &str,
    reference: &str,
    request: &Request<T>,
) -> io::Result<Response<Body>> {
    let Some(layout) = Layout::open(site, repository).await? else {
        return Ok(no_repository(repository));
    };
    let absent = || {
        let why = format!("{repository} has no manifest {reference}");
        error(StatusCode::NOT_FOUND, "MANIFEST_UNKNOWN", &why)
    };
    let Some(found) = layout.manifest(&Reference::of(reference)).await? else {
        return Ok(absent());
    };
    send(&layout, &found.digest, &found.media_type, request, absent).await
}

async fn blob<T>(
    site: &Path,
    repository: &str,
    digest: &str,
    request: &Request<T>,
) -> io::Result<Response<Body>> {
    let Some(layout) = Layout::open(site, repository).await? else {
        return Ok(no_repository(repository));
    };
    let absent = || {
        let why = format!("{repository} has no blob {digest}");
        error(StatusCode::NOT_FOUND, "BLOB_UNKNOWN", &why)
    };
    send(&layout, digest, "application/octet-stream", request, absent).await
}

async fn send<T>(
    layout: &Layout,
    digest: &str,
    kind: &str,
    request: &Request<T>,
    absent: impl FnOnce() -> Response<Body>,
) -> io::Result<Response<Body>> {
    let Some(path) = layout.blob(digest) else {
        let why = format!("{digest:?} is no digest that this registry has (sha256 only)");
        return Ok(error(StatusCode::BAD_REQUEST, "DIGEST_INVALID", &why));
    };
    let etag = Some(format!("\"{digest}\""));
    let (method, headers) = (request.method(), request.headers());
    let Some(mut response) = files::respond(method, headers, &path, kind, etag).await? else {
        return Ok(absent());
    };
    let digest = HeaderValue::from_str(digest).map_err(io::Error::other)?;
    response
        .headers_mut()
        .insert("docker-content-digest", digest);
    Ok(response)
}

fn no_repository(repository: &str) -> Response<Body> {
    let why = format!("the lab's registry has no repository {repository} at this host");
    error(StatusCode::NOT_FOUND, "NAME_UNKNOWN", &why)
}

/// An error as the specification wants it.
fn error(status: StatusCode, code: &str, message: &str) -> Response<Body> {
    let errors = json!({"errors": [{"code": code, "message": message}]});
    let mut response = Response::new(full(Bytes::from(errors.to_string())));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
