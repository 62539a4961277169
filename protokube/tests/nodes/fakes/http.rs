//! HTTP servers on loopback.

use futures::future::BoxFuture;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::net::TcpListener;

/// A request as it arrived.
pub struct ReceivedRequest {
    pub method: String,
    pub path: String,
    pub query: String,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

pub type Reply = Response<BoxBody<Bytes, Infallible>>;

/// Starts a server that runs until the runtime ends. Returns its URL.
pub async fn serve_http(
    answer: impl Fn(ReceivedRequest) -> BoxFuture<'static, Reply> + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let answer = Arc::clone(&answer);
            let service = service_fn(move |request: Request<Incoming>| {
                let answer = Arc::clone(&answer);
                async move { Ok::<_, Infallible>(answer(read_request(request).await).await) }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    url
}

async fn read_request(request: Request<Incoming>) -> ReceivedRequest {
    let (parts, body) = request.into_parts();
    let headers = parts.headers.iter();
    ReceivedRequest {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: headers
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect(),
        body: body.collect().await.unwrap().to_bytes().to_vec(),
    }
}

/// A response with this status and body.
pub fn text_reply(status: u16, text: impl Into<Bytes>) -> Reply {
    let body = Full::new(text.into()).boxed();
    Response::builder().status(status).body(body).unwrap()
}
