//! One HTTP request to one answer.

use super::caller::identify;
use super::connections::Place;
use super::endpoint::Endpoint;
use super::reject::Rejection;
use super::{join, report};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use node::bootstrap::{
    HEALTH_PATH, IDENTITY_HEADER, JOIN_LIMIT, JOIN_PATH, READY_PATH, REPORT_LIMIT, REPORT_PATH,
    Refusal,
};
use serde::Serialize;
use std::convert::Infallible;
use std::time::Duration;

/// A body that takes longer to arrive is given up.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Answers it; what is refused is told, or counted.
pub(super) async fn answer(
    endpoint: &Endpoint,
    place: &Place,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (what, limit) = match request.uri().path() {
        HEALTH_PATH if request.method() == Method::GET => return Ok(empty(StatusCode::OK)),
        READY_PATH if request.method() == Method::GET => {
            return Ok(empty(if *endpoint.context.ready.borrow() {
                StatusCode::OK
            } else {
                StatusCode::SERVICE_UNAVAILABLE
            }));
        }
        JOIN_PATH => ("joining", JOIN_LIMIT),
        REPORT_PATH => ("a report", REPORT_LIMIT),
        _ => return Ok(empty(StatusCode::NOT_FOUND)),
    };
    if request.method() != Method::POST {
        return Ok(empty(StatusCode::METHOD_NOT_ALLOWED));
    }
    let done = done(endpoint, place, request, limit).await;
    Ok(done.unwrap_or_else(|rejection| {
        rejection.tell(&endpoint.lines, what);
        let status = StatusCode::from_u16(rejection.refusal.status());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        json(status, &rejection.refusal.refused())
    }))
}

/// Hears a request out, and does what it asks for.
async fn done(
    endpoint: &Endpoint,
    place: &Place,
    request: Request<Incoming>,
    limit: usize,
) -> Result<Response<Full<Bytes>>, Rejection> {
    let joins = request.uri().path() == JOIN_PATH;
    let (header, body) = parts(request, limit).await?;
    let known = identify(endpoint, header.as_deref(), &body).await?;
    place.is_known();
    if joins {
        let joined = join::join(endpoint, &known, &body).await?;
        return Ok(json(StatusCode::OK, &joined));
    }
    report::report(&endpoint.context, &known, &body).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

/// The identity header and the body.
async fn parts(
    request: Request<Incoming>,
    limit: usize,
) -> Result<(Option<String>, Bytes), Refusal> {
    let header = request.headers().get(IDENTITY_HEADER);
    let header = header.and_then(|value| value.to_str().ok());
    let header = header.map(str::to_owned);
    let broken = |why: &str| Refusal::Request {
        why: why.to_owned(),
    };
    let body = Limited::new(request.into_body(), limit).collect();
    let body = tokio::time::timeout(BODY_TIMEOUT, body).await;
    let body = body.map_err(|_| broken("takes too long to arrive"))?;
    let body = body.map_err(|error| {
        if error.is::<LengthLimitError>() {
            Refusal::TooLarge { limit }
        } else {
            broken("broke off")
        }
    })?;
    Ok((header, body.to_bytes()))
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

fn json(status: StatusCode, value: &impl Serialize) -> Response<Full<Bytes>> {
    let Ok(text) = serde_json::to_vec(value) else {
        return empty(StatusCode::INTERNAL_SERVER_ERROR);
    };
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
