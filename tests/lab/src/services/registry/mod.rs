//! A read-only OCI registry (distribution specification 1.1, pull; no list of tags) over image layouts: SITE/REPOSITORY/ is a layout
//! of its own.

mod layout;

use super::files;
use super::http::{Body, full_body, full_response};
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use layout::{Layout, Reference};
use serde_json::json;
use std::io;
use std::path::Path;

/// What a path of the API asks for.
#[derive(Debug, PartialEq, Eq)]
enum RegistryRequest<'a> {
    Version,
    /// Repository and tag or digest.
    Manifest(&'a str, &'a str),
    /// A blob, by repository and digest.
    Blob(&'a str, &'a str),
}

/// Answers one request to the registry of `site`.
pub async fn respond_to_pull<T>(site: &Path, request: &Request<T>) -> io::Result<Response<Body>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let why = "this registry is read-only";
        return Ok(error_response(
            StatusCode::METHOD_NOT_ALLOWED,
            "UNSUPPORTED",
            why,
        ));
    }
    let path = request.uri().path();
    let mut response = match parse_request(path) {
        Some(RegistryRequest::Version) => full_response(StatusCode::OK, "application/json", "{}"),
        Some(RegistryRequest::Manifest(repository, reference)) => {
            respond_manifest(site, repository, reference, request).await?
        }
        Some(RegistryRequest::Blob(repository, digest)) => {
            respond_blob(site, repository, digest, request).await?
        }
        None => {
            let why = format!("{path} is not of the distribution API (/v2/...)");
            error_response(StatusCode::NOT_FOUND, "UNSUPPORTED", &why)
        }
    };
    let version = HeaderValue::from_static("registry/2.0");
    response
        .headers_mut()
        .insert("docker-distribution-api-version", version);
    Ok(response)
}

/// A repository's name has slashes itself, so paths are read from their end.
fn parse_request(path: &str) -> Option<RegistryRequest<'_>> {
    let rest = match path {
        "/v2" | "/v2/" => return Some(RegistryRequest::Version),
        path => path.strip_prefix("/v2/")?,
    };
    let (before, last) = rest.rsplit_once('/')?;
    let (repository, what) = before.rsplit_once('/')?;
    match what {
        "manifests" => Some(RegistryRequest::Manifest(repository, last)),
        "blobs" => Some(RegistryRequest::Blob(repository, last)),
        _ => None,
    }
}

async fn respond_manifest<T>(
    site: &Path,
    repository: &str,
    reference: &str,
    request: &Request<T>,
) -> io::Result<Response<Body>> {
    let Some(layout) = Layout::open_layout(site, repository).await? else {
        return Ok(no_repository(repository));
    };
    let absent = || {
        let why = format!("{repository} has no manifest {reference}");
        error_response(StatusCode::NOT_FOUND, "MANIFEST_UNKNOWN", &why)
    };
    let Some(found) = layout
        .find_manifest(&Reference::parse_reference(reference))
        .await?
    else {
        return Ok(absent());
    };
    send_blob(&layout, &found.digest, &found.media_type, request, absent).await
}

async fn respond_blob<T>(
    site: &Path,
    repository: &str,
    digest: &str,
    request: &Request<T>,
) -> io::Result<Response<Body>> {
    let Some(layout) = Layout::open_layout(site, repository).await? else {
        return Ok(no_repository(repository));
    };
    let absent = || {
        let why = format!("{repository} has no blob {digest}");
        error_response(StatusCode::NOT_FOUND, "BLOB_UNKNOWN", &why)
    };
    send_blob(&layout, digest, "application/octet-stream", request, absent).await
}

async fn send_blob<T>(
    layout: &Layout,
    digest: &str,
    kind: &str,
    request: &Request<T>,
    absent: impl FnOnce() -> Response<Body>,
) -> io::Result<Response<Body>> {
    let Some(path) = layout.blob_path(digest) else {
        let why = format!("{digest:?} is no digest that this registry has (sha256 only)");
        return Ok(error_response(
            StatusCode::BAD_REQUEST,
            "DIGEST_INVALID",
            &why,
        ));
    };
    let etag = Some(format!("\"{digest}\""));
    let (method, headers) = (request.method(), request.headers());
    let Some(mut response) = files::respond_with_file(method, headers, &path, kind, etag).await?
    else {
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
    error_response(StatusCode::NOT_FOUND, "NAME_UNKNOWN", &why)
}

/// An error as the specification wants it.
fn error_response(status: StatusCode, code: &str, message: &str) -> Response<Body> {
    let errors = json!({"errors": [{"code": code, "message": message}]});
    let mut response = Response::new(full_body(Bytes::from(errors.to_string())));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
