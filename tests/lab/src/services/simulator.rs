//! The AWS simulator as an HTTP server: one connection for each request, so that no answer depends on another's end.

use super::http::{Body, BoxError, full_body};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::HOST;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// Where it listens, on the machine's own loopback.
#[derive(Debug, Clone, Copy)]
pub struct SimulatorProxy {
    pub address: SocketAddr,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the AWS simulator does not listen on {address}")]
    Unreachable {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    #[error("the AWS simulator broke the connection off")]
    Broken(#[source] BoxError),
    #[error("the AWS simulator answered {status} to {path}: {text}")]
    Refused {
        path: String,
        status: StatusCode,
        text: String,
    },
    #[error("the AWS simulator's answer to {path} is not JSON")]
    NotJson {
        path: String,
        #[source]
        source: serde_json::Error,
    },
}

impl SimulatorProxy {
    /// Sends a request in origin form as it is. The answer comes as soon as its head is there; both bodies stream.
    pub async fn forward_request(
        &self,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, Error> {
        let address = self.address;
        let unreachable = |source| Error::Unreachable { address, source };
        let stream = TcpStream::connect(address).await.map_err(unreachable)?;
        let broken = |error: hyper::Error| Error::Broken(error.into());
        let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
            .preserve_header_case(true)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(broken)?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::warn!(%error, "a connection to the AWS simulator ended");
            }
        });
        sender.send_request(request).await.map_err(broken)
    }

    /// The JSON at a path of the simulator's own.
    pub async fn get_json(&self, path: &str) -> Result<serde_json::Value, Error> {
        let request = Request::get(path).header(HOST, self.address.to_string());
        let request = request.body(full_body(Bytes::new()));
        let request = request.map_err(|error| Error::Broken(error.into()))?;
        let response = self.forward_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await;
        let body = body
            .map_err(|error| Error::Broken(error.into()))?
            .to_bytes();
        let path = path.to_owned();
        if !status.is_success() {
            let text = String::from_utf8_lossy(&body).into_owned();
            return Err(Error::Refused { path, status, text });
        }
        serde_json::from_slice(&body).map_err(|source| Error::NotJson { path, source })
    }
}
