//! The API server's health, for those who may not ask it: anonymous access is off, so kubelet's probes come here, and
//! protokube asks with a certificate of its own.

use crate::identity::{Clock, Identity};
use anyhow::Context as _;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use node::pki::{Keyset, Leaf, Usage};
use reqwest::redirect;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// What may be asked.
const PATHS: &[&str] = &["/healthz", "/livez", "/readyz"];
/// The API server's checks take up to this long.
const TIMEOUT: Duration = Duration::from_secs(14);
/// Connections at once.
const CONNECTIONS: usize = 32;
/// Pause after a connection could not be taken.
const PAUSE: Duration = Duration::from_secs(1);

/// What health is served with.
#[derive(Clone)]
pub struct Context {
    /// Where: 127.0.0.1, port [`node::ports::API_HEALTH`].
    pub listen: SocketAddr,
    /// The API server of this machine: `https://127.0.0.1`.
    pub server: String,
    /// Who may have signed its certificate, PEM.
    pub trust_bundle: String,
    /// `kubernetes-ca`, which signs the client's.
    pub authority: Arc<Keyset>,
    /// The time.
    pub clock: Clock,
    /// How long the client's certificate is valid.
    pub validity: time::Duration,
}

/// Serves for ever; what ends it is that it cannot listen or has no certificate.
pub async fn serve(context: Context) -> anyhow::Result<()> {
    let listener = TcpListener::bind(context.listen).await;
    let listener = listener.with_context(|| format!("could not listen on {}", context.listen))?;
    serve_on(context, listener).await
}

/// The same on a socket that listens already.
pub async fn serve_on(context: Context, listener: TcpListener) -> anyhow::Result<()> {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let server: Arc<str> = context.server.trim_end_matches('/').into();
    let mut identity = identity(&context)?;
    let mut http = client(&context, &identity)?;
    loop {
        let slot = Arc::clone(&slots).acquire_owned().await?;
        let Ok((stream, _)) = listener.accept().await else {
            // File descriptors have run out: the next probe may find some.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        if (context.clock)() >= identity.renew {
            identity = self::identity(&context)?;
            http = client(&context, &identity)?;
        }
        let (server, http) = (Arc::clone(&server), http.clone());
        tokio::spawn(async move {
            let _slot = slot;
            let service = service_fn(|request| answer(&server, &http, request));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(TIMEOUT)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            let _ = tokio::time::timeout(3 * TIMEOUT, connection).await;
        });
    }
}

async fn answer(
    server: &str,
    http: &reqwest::Client,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let uri = request.uri();
    if !PATHS.contains(&uri.path()) {
        return Ok(text(StatusCode::NOT_FOUND, String::new()));
    }
    if request.method() != Method::GET {
        return Ok(text(StatusCode::METHOD_NOT_ALLOWED, String::new()));
    }
    let path = uri
        .path_and_query()
        .map_or(uri.path(), |path| path.as_str());
    Ok(match ask(http, &format!("{server}{path}")).await {
        Ok((true, said)) => text(StatusCode::OK, said),
        Ok((false, said)) => text(StatusCode::SERVICE_UNAVAILABLE, said),
        Err(error) => {
            let said = format!("the API server does not answer: {error:#}");
            text(StatusCode::SERVICE_UNAVAILABLE, said)
        }
    })
}

/// Whether the API server is well, and what it says.
async fn ask(http: &reqwest::Client, url: &str) -> anyhow::Result<(bool, String)> {
    let reply = http.get(url).send().await?;
    Ok((reply.status().is_success(), reply.text().await?))
}

fn text(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response
}

/// A user of no group: health may be asked by everybody whom the API server knows.
fn identity(context: &Context) -> anyhow::Result<Identity> {
    let leaf = Leaf {
        common_name: "kube-apiserver-healthcheck".to_owned(),
        organization: None,
        usage: Usage::Client,
        names: Vec::new(),
        validity: context.validity,
    };
    Identity::issue(&context.authority, &leaf, (context.clock)())
}

/// Straight to the API server, past every proxy of the environment.
fn client(context: &Context, identity: &Identity) -> anyhow::Result<reqwest::Client> {
    let unusable = "could not make a client for the API server's health";
    let issued = &identity.issued;
    let pem = format!("{}{}", issued.certificate, issued.key.reveal());
    let trusted = reqwest::Certificate::from_pem_bundle(context.trust_bundle.as_bytes());
    reqwest::Client::builder()
        .tls_certs_only(trusted.context(unusable)?)
        .identity(reqwest::Identity::from_pem(pem.as_bytes()).context(unusable)?)
        .redirect(redirect::Policy::none())
        .no_proxy()
        .timeout(TIMEOUT)
        .build()
        .context(unusable)
}
