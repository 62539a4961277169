//! Handles one HTTP request of the endpoint.

use super::caller::identify_instance;
use super::connections::ConnectionSlot;
use super::reject::Rejection;
use super::shared_state::SharedState;
use super::{join, store_report};
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

/// Timeout for receiving a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Answers a request. Refusals are logged or counted.
pub(super) async fn answer_request(
    endpoint: &SharedState,
    place: &ConnectionSlot,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (what, limit) = match request.uri().path() {
        HEALTH_PATH if request.method() == Method::GET => {
            return Ok(empty_response(StatusCode::OK));
        }
        READY_PATH if request.method() == Method::GET => {
            return Ok(empty_response(if *endpoint.context.ready.borrow() {
                StatusCode::OK
            } else {
                StatusCode::SERVICE_UNAVAILABLE
            }));
        }
        JOIN_PATH => ("joining", JOIN_LIMIT),
        REPORT_PATH => ("a report", REPORT_LIMIT),
        _ => return Ok(empty_response(StatusCode::NOT_FOUND)),
    };
    if request.method() != Method::POST {
        return Ok(empty_response(StatusCode::METHOD_NOT_ALLOWED));
    }
    let done = handle_request(endpoint, place, request, limit).await;
    Ok(done.unwrap_or_else(|rejection| {
        rejection.log_rejection(&endpoint.lines, what);
        let status = StatusCode::from_u16(rejection.refusal.http_status());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        json_response(status, &rejection.refusal.to_reply())
    }))
}

/// Reads a request, identifies the caller and handles it.
async fn handle_request(
    endpoint: &SharedState,
    place: &ConnectionSlot,
    request: Request<Incoming>,
    limit: usize,
) -> Result<Response<Full<Bytes>>, Rejection> {
    let joins = request.uri().path() == JOIN_PATH;
    let (header, body) = read_header_and_body(request, limit).await?;
    let known = identify_instance(endpoint, place, header.as_deref(), &body).await?;
    place.mark_known();
    if joins {
        let joined = join::answer_join(endpoint, &known, &body).await?;
        return Ok(json_response(StatusCode::OK, &joined));
    }
    store_report::store_report(&endpoint.context, &known, &body).await?;
    Ok(empty_response(StatusCode::NO_CONTENT))
}

/// Reads the identity header and the body.
async fn read_header_and_body(
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
    let body = body.map_err(|_| broken("was not received in time"))?;
    let body = body.map_err(|error| {
        if error.is::<LengthLimitError>() {
            Refusal::TooLarge { limit }
        } else {
            broken("was interrupted")
        }
    })?;
    Ok((header, body.to_bytes()))
}

fn empty_response(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

fn json_response(status: StatusCode, value: &impl Serialize) -> Response<Full<Bytes>> {
    let Ok(text) = serde_json::to_vec(value) else {
        return empty_response(StatusCode::INTERNAL_SERVER_ERROR);
    };
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
