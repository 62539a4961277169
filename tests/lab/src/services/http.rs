//! What the HTTP services share: one connection served, bodies, answers that say why, the access log.

use super::access_log::{AccessLog, Entry};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite};

pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A body of any origin, sent as it comes.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// Serves one connection until either side ends it. A handler's error closes it without an answer.
pub async fn serve_connection<Io, Handler, Answer>(io: Io, handler: Handler) -> hyper::Result<()>
where
    Io: AsyncRead + AsyncWrite + Unpin,
    Handler: Fn(Request<Incoming>) -> Answer,
    Answer: Future<Output = Result<Response<Body>, BoxError>>,
{
    let mut http = hyper::server::conn::http1::Builder::new();
    http.preserve_header_case(true);
    http.serve_connection(TokioIo::new(io), service_fn(handler))
        .await
}

/// A body held in memory.
pub fn full_body(content: impl Into<Bytes>) -> Body {
    let never = |never: Infallible| match never {};
    Full::new(content.into()).map_err(never).boxed_unsync()
}

/// A whole answer with its type; to HEAD too, whose body is left out on the way.
pub fn full_response(
    status: StatusCode,
    kind: &'static str,
    content: impl Into<Bytes>,
) -> Response<Body> {
    let content = content.into();
    let length = HeaderValue::from(content.len());
    let mut response = Response::new(full_body(content));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CONTENT_LENGTH, length);
    response
}

/// A refusal in words, one line.
pub fn refusal_response(status: StatusCode, why: &str) -> Response<Body> {
    full_response(status, "text/plain; charset=utf-8", format!("{why}\n"))
}

/// Writes `entry` with the answer's status once the answer's body has gone, or was given up.
pub fn log_response(response: Response<Body>, log: &AccessLog, mut entry: Entry) -> Response<Body> {
    entry.status = response.status().as_u16();
    let log = log.clone();
    response.map(|body| Counted { body, log, entry }.boxed_unsync())
}

struct Counted {
    body: Body,
    log: AccessLog,
    entry: Entry,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            let length = u64::try_from(data.len()).unwrap_or(u64::MAX);
            self.entry.bytes = self.entry.bytes.saturating_add(length);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.log.write(&self.entry);
    }
}
