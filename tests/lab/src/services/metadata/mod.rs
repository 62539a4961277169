//! The instance metadata service (IMDS) at 169.254.169.254 and fd00:ec2::254: each instance is known by
//! its addresses.

mod server;
pub mod token;
pub mod tree;

use super::http::{Body, full_response};
use crate::aws_state::Instance;
use hyper::header::{ACCEPT_RANGES, CONNECTION, HeaderMap, HeaderName, HeaderValue, SERVER};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use serde_json::Value;
pub use server::{Metadata, serve_metadata};
use std::time::{Duration, Instant};
use token::{LONGEST, Tokens};
use tree::{TreeEntry, find_path};

const TOKEN: &str = "x-aws-ec2-metadata-token";
const TTL: &str = "x-aws-ec2-metadata-token-ttl-seconds";

/// What a request may do.
#[derive(Debug, PartialEq, Eq)]
pub enum Authorization {
    /// Get a token of these seconds.
    Token(u64),
    /// Read, with what is left of the token's time; `None`: IMDSv1.
    Read(Option<Duration>),
}

/// EC2's rules of the session, before anything is looked up.
pub fn authorize_request(
    request: &Parts,
    instance: &Instance,
    tokens: &Tokens,
    now: Instant,
) -> Result<Authorization, StatusCode> {
    if request.method == Method::PUT {
        return token_request(request).map(Authorization::Token);
    }
    if !matches!(request.method, Method::GET | Method::HEAD) {
        return Err(StatusCode::METHOD_NOT_ALLOWED);
    }
    let Some(token) = request.headers.get(TOKEN) else {
        if instance.tokens_required {
            return Err(StatusCode::UNAUTHORIZED);
        }
        return Ok(Authorization::Read(None));
    };
    // A token that does not hold is refused even where none is needed.
    let token = token.to_str().map_err(|_| StatusCode::UNAUTHORIZED)?;
    let left = tokens.remaining_time(&instance.id, token, now);
    left.map_or(Err(StatusCode::UNAUTHORIZED), |left| {
        Ok(Authorization::Read(Some(left)))
    })
}

fn token_request(request: &Parts) -> Result<u64, StatusCode> {
    let versioned = request
        .uri
        .path()
        .trim_end_matches('/')
        .trim_start_matches('/');
    let (version, rest) = versioned.split_once('/').unwrap_or_default();
    if rest != "api/token" || !tree::VERSIONS.contains(&version) {
        return Err(StatusCode::METHOD_NOT_ALLOWED);
    }
    // Requests that came through a proxy get no token.
    if request.headers.contains_key("x-forwarded-for") {
        return Err(StatusCode::FORBIDDEN);
    }
    let ttl = request.headers.get(TTL).and_then(|ttl| ttl.to_str().ok());
    let ttl = ttl.and_then(|ttl| ttl.parse().ok());
    let ttl = ttl.filter(|ttl| (1..=LONGEST).contains(ttl));
    ttl.ok_or(StatusCode::BAD_REQUEST)
}

/// The new token's answer.
pub fn token_answer(token: String, seconds: u64) -> Response<Body> {
    let mut response = full_response(StatusCode::OK, "text/plain", token);
    response
        .headers_mut()
        .insert(HeaderName::from_static(TTL), HeaderValue::from(seconds));
    finish_response(response)
}

/// What is at a path of the tree.
pub fn read_answer(tree: &Value, path: &str, left: Option<Duration>) -> Response<Body> {
    let mut response = match find_path(tree, path) {
        Some(TreeEntry::Text(text)) => full_response(StatusCode::OK, "text/plain", text),
        Some(TreeEntry::Data(data)) => {
            full_response(StatusCode::OK, "application/octet-stream", data)
        }
        None => return error_answer(StatusCode::NOT_FOUND),
    };
    if let Some(left) = left {
        let seconds = HeaderValue::from(left.as_secs());
        response
            .headers_mut()
            .insert(HeaderName::from_static(TTL), seconds);
    }
    finish_response(response)
}

/// An error as EC2's server writes it.
pub fn error_answer(status: StatusCode) -> Response<Body> {
    let title = format!(
        "{} - {}",
        status.as_u16(),
        status.canonical_reason().unwrap_or_default()
    );
    let page = format!(
        "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?>\n\
         <!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Transitional//EN\"\n\
         \t\"http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd\">\n\
         <html xmlns=\"http://www.w3.org/1999/xhtml\" xml:lang=\"en\" lang=\"en\">\n \
         <head>\n  <title>{title}</title>\n </head>\n \
         <body>\n  <h1>{title}</h1>\n </body>\n</html>\n"
    );
    finish_response(full_response(status, "text/html", page))
}

fn finish_response(mut response: Response<Body>) -> Response<Body> {
    let headers: &mut HeaderMap = response.headers_mut();
    headers.insert(SERVER, HeaderValue::from_static("EC2ws"));
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("none"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
