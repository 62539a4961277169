//! Role health: serves protokube's metrics, and the API server's health for kubelet's probes, which cannot authenticate. protokube forwards them with its
//! own client certificate, so anonymous access can stay off.

use crate::identity::{Clock, Identity};
use anyhow::Context as _;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use node::api_health::needed_checks;
use node::pki::{Keyset, Leaf, Usage};
use protokube_role::lock::lock_ignoring_poison;
use reqwest::redirect;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// Path of protokube's own metrics, in the text format of Prometheus.
const METRICS: &str = "/metrics";

const PATHS: &[&str] = &["/healthz", "/livez", "/readyz"];

/// Timeout of a request to the API server, whose checks may be slow.
const TIMEOUT: Duration = Duration::from_secs(14);
/// Timeout for receiving the headers of a request.
const HEADERS: Duration = Duration::from_secs(1);
/// Limit of connections that have not sent a request. Everybody on the instance can open some; the oldest is closed for a new one.
const MAX_SILENT: usize = 32;
/// Limit of requests that are being answered.
const MAX_ASKING: usize = 256;
/// Pause after a failed accept.
const PAUSE: Duration = Duration::from_secs(1);

/// Inputs of the health server.
#[derive(Clone)]
pub struct HealthContext {
    /// Listen address: 127.0.0.1, port [`node::ports::API_HEALTH`].
    pub listen: SocketAddr,
    /// URL of this instance's API server: `https://127.0.0.1`.
    pub server: String,
    /// Authorities of the API server's certificate, PEM.
    pub trust_bundle: String,
    /// The keyset `kubernetes-ca`, which signs the client certificate.
    pub authority: Arc<Keyset>,
    pub clock: Clock,
    /// Validity of the client certificate.
    pub validity: time::Duration,
    /// Renders the metrics of the backups.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
}

/// Serves until listening fails or no certificate can be issued.
pub async fn serve_health(context: HealthContext) -> anyhow::Result<()> {
    let listener = TcpListener::bind(context.listen).await;
    let listener = listener.with_context(|| format!("could not listen on {}", context.listen))?;
    serve_health_on(context, listener).await
}

/// Serves on an existing listener.
pub async fn serve_health_on(context: HealthContext, listener: TcpListener) -> anyhow::Result<()> {
    let connections = OpenConnections::default();
    let server: Arc<str> = context.server.trim_end_matches('/').into();
    let mut identity = issue_identity(&context)?;
    let mut http = build_client(&context, &identity)?;
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // File descriptors have run out; a later probe may succeed.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        if (context.clock)() >= identity.renew {
            identity = self::issue_identity(&context)?;
            http = build_client(&context, &identity)?;
        }
        let (server, http) = (Arc::clone(&server), http.clone());
        let metrics = Arc::clone(&context.metrics);
        let (place, ended) = connections.admit();
        tokio::spawn(async move {
            let service = service_fn(|request| {
                place.mark_asking();
                answer_request(&server, &http, &*metrics, request)
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADERS)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            tokio::select! {
                _ = tokio::time::timeout(3 * TIMEOUT, connection) => {}
                _ = ended => {}
            }
        });
    }
}

/// The open connections. A new one is always accepted; if there are too many, the oldest makes room.
#[derive(Clone, Default)]
struct OpenConnections(Arc<Mutex<ConnectionTable>>);

/// What ends each connection, by number, oldest first.
#[derive(Default)]
struct ConnectionTable {
    next: u64,
    silent: BTreeMap<u64, oneshot::Sender<()>>,
    asking: BTreeMap<u64, oneshot::Sender<()>>,
}

/// A connection's place; dropping it frees the place.
struct Place {
    all: OpenConnections,
    id: u64,
}

impl OpenConnections {
    /// Admits a connection. The receiver resolves when it must close.
    fn admit(&self) -> (Place, oneshot::Receiver<()>) {
        let (end, ended) = oneshot::channel();
        let mut table = lock_ignoring_poison(&self.0);
        if table.silent.len() >= MAX_SILENT {
            table.silent.pop_first();
        }
        let id = table.next;
        table.next = id.wrapping_add(1);
        table.silent.insert(id, end);
        drop(table);
        let all = self.clone();
        (Place { all, id }, ended)
    }
}

impl Place {
    /// Says that the connection has sent a request.
    fn mark_asking(&self) {
        let mut table = lock_ignoring_poison(&self.all.0);
        let Some(end) = table.silent.remove(&self.id) else {
            return;
        };
        if table.asking.len() >= MAX_ASKING {
            table.asking.pop_first();
        }
        table.asking.insert(self.id, end);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = lock_ignoring_poison(&self.all.0);
        table.silent.remove(&self.id);
        table.asking.remove(&self.id);
    }
}

async fn answer_request(
    server: &str,
    http: &reqwest::Client,
    metrics: &(dyn Fn() -> String + Send + Sync),
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let uri = request.uri();
    if uri.path() == METRICS && request.method() == Method::GET {
        return Ok(text_response(StatusCode::OK, metrics()));
    }
    if !PATHS.contains(&uri.path()) {
        return Ok(text_response(StatusCode::NOT_FOUND, String::new()));
    }
    if request.method() != Method::GET {
        return Ok(text_response(StatusCode::METHOD_NOT_ALLOWED, String::new()));
    }
    let own = uri.query().map(|query| format!("{query}&"));
    let path = format!(
        "{}?{}{}",
        uri.path(),
        own.unwrap_or_default(),
        needed_checks()
    );
    Ok(match fetch_health(http, &format!("{server}{path}")).await {
        Ok((true, body)) => text_response(StatusCode::OK, body),
        Ok((false, body)) => text_response(StatusCode::SERVICE_UNAVAILABLE, body),
        Err(error) => {
            let message = format!("the API server does not answer: {error:#}");
            text_response(StatusCode::SERVICE_UNAVAILABLE, message)
        }
    })
}

/// Fetches a health path. Returns whether the status is a success, and the body.
async fn fetch_health(http: &reqwest::Client, url: &str) -> anyhow::Result<(bool, String)> {
    let reply = http.get(url).send().await?;
    Ok((reply.status().is_success(), reply.text().await?))
}

fn text_response(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response
}

/// Issues the client certificate: a user without groups, because every authenticated user may read health.
fn issue_identity(context: &HealthContext) -> anyhow::Result<Identity> {
    let leaf = Leaf {
        common_name: "kube-apiserver-healthcheck".to_owned(),
        organization: None,
        usage: Usage::Client,
        names: Vec::new(),
        validity: context.validity,
    };
    Identity::issue_identity(&context.authority, &leaf, (context.clock)())
}

/// A client that ignores proxies of the environment.
fn build_client(context: &HealthContext, identity: &Identity) -> anyhow::Result<reqwest::Client> {
    let unusable = "could not create a client for the API server's health";
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
