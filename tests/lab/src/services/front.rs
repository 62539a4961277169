//! The lab's internet: one address that answers for AWS's endpoints, the download sites and the registries under
//! their public names, with TLS (443) and without (80).

use super::access_log::{AccessLog, Entry};
use super::ca::Ca;
use super::http::{Body, BoxError, log_response, refusal_response, serve_connection};
use super::simulator::{Error as SimulatorError, SimulatorProxy};
use super::sites::{Site, Sites};
use super::{is_there, mirror, registry};
use crate::aws_state::AwsState;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::PathAndQuery;
use hyper::{Request, Response, StatusCode, Uri};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// Tells the simulator the address of whoever calls.
pub const SOURCE: &str = "x-kctl-lab-source";

/// What is between two neighbours only (RFC 9110, 7.6.1), besides what `Connection` names. Transfer-Encoding is
/// written anew by who sends.
const HOP_BY_HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

const HANDSHAKE: Duration = Duration::from_secs(10);

/// What the front needs to answer.
#[derive(Debug, Clone)]
pub struct HttpFront {
    pub sites: Sites,
    pub simulator: SimulatorProxy,
    /// Whose public address a client has.
    pub world: watch::Receiver<Arc<AwsState>>,
    pub log: AccessLog,
}

/// Serves plain HTTP until dropped.
pub async fn serve_plain(front: Arc<HttpFront>, listener: TcpListener) {
    accept_connections(listener, |stream, client| {
        let front = Arc::clone(&front);
        async move {
            serve_client(front, stream, client)
                .await
                .map_err(BoxError::from)
        }
    })
    .await;
}

/// Serves TLS until dropped, with a certificate of the lab for each name asked for.
pub async fn serve_tls(
    front: Arc<HttpFront>,
    ca: Arc<Ca>,
    listener: TcpListener,
) -> Result<(), rustls::Error> {
    let acceptor = TlsAcceptor::from(Arc::new(ca.server_config()?));
    accept_connections(listener, |stream, client| {
        let (front, acceptor) = (Arc::clone(&front), acceptor.clone());
        async move {
            let stream = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await??;
            serve_client(front, stream, client)
                .await
                .map_err(BoxError::from)
        }
    })
    .await;
    Ok(())
}

/// Accepts for ever; what is accepted ends with the listener.
pub async fn accept_connections<Serve, Served>(listener: TcpListener, serve: Serve)
where
    Serve: Fn(TcpStream, SocketAddr) -> Served,
    Served: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, client)) => {
                // Small answers that follow each other would wait for acknowledgements.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%client, %error, "TCP_NODELAY");
                }
                let served = serve(stream, client);
                connections.spawn(async move {
                    if let Err(error) = served.await {
                        tracing::debug!(%client, %error, "a connection ended");
                    }
                });
            }
            Err(error) => {
                tracing::error!(%error, "cannot accept");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn serve_client<Io>(
    front: Arc<HttpFront>,
    stream: Io,
    client: SocketAddr,
) -> hyper::Result<()>
where
    Io: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let front = &front;
    serve_connection(stream, |request| respond_by_host(front, request, client)).await
}

/// One request, by the host it names. An error closes the connection: so does the simulator when it plays dead.
async fn respond_by_host(
    front: &HttpFront,
    request: Request<Incoming>,
    client: SocketAddr,
) -> Result<Response<Body>, BoxError> {
    let host = host_of(&request);
    let site = front.sites.find_site(&host);
    let mut entry = Entry {
        service: site_service(site.as_ref()),
        source: client.ip().to_string(),
        instance: instance_at(&front.world.borrow(), client.ip()),
        method: request.method().to_string(),
        path: without_signature(request.uri()),
        host: host.clone(),
        status: 0,
        bytes: 0,
    };
    let answered = match site {
        Some(Site::Registry(site)) => registry::respond_to_pull(&site, &request).await,
        Some(Site::Mirror(site)) => mirror::respond_with_download(&site, &request).await,
        Some(Site::Aws) => match pass_on(front, request, client).await {
            Ok(response) => Ok(response),
            Err(error) => {
                entry.status = 0;
                front.log.write(&entry);
                return Err(error);
            }
        },
        None => {
            let why =
                format!("{host:?} is no site of this lab: AWS endpoints, asset mirror, registries");
            Ok(refusal_response(StatusCode::NOT_FOUND, &why))
        }
    };
    let response = answered.unwrap_or_else(|error| {
        tracing::error!(host, path = entry.path, %error, "the front cannot answer");
        refusal_response(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string())
    });
    Ok(log_response(response, &front.log, entry))
}

/// The instance that has a public address; none for a NAT gateway's, behind which are many. On IPv6 the lab's NAT64 keeps the
/// source.
fn instance_at(world: &AwsState, source: IpAddr) -> Option<String> {
    let mut instances = world.instances.iter().filter(|one| is_there(one));
    let found = instances.find(|one| match source {
        IpAddr::V4(source) => one.public_address == Some(source),
        IpAddr::V6(source) => one.has_ipv6(source),
    })?;
    Some(found.id.clone())
}

/// To the simulator and back, with everything that the client signed as the client sent it.
async fn pass_on(
    front: &HttpFront,
    request: Request<Incoming>,
    client: SocketAddr,
) -> Result<Response<Body>, BoxError> {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().cloned();
    let authority = parts.uri.authority().map(ToString::to_string);
    parts.uri = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    // A URL in the request line counts more than the header (RFC 9112, 3.2.2).
    if let Some(authority) = authority {
        parts
            .headers
            .insert(HOST, HeaderValue::from_str(&authority)?);
    }
    strip_hop_by_hop(&mut parts.headers);
    let source = HeaderValue::from_str(&client.ip().to_string())?;
    parts
        .headers
        .insert(HeaderName::from_static(SOURCE), source);
    let body = body.map_err(BoxError::from).boxed_unsync();
    match front
        .simulator
        .forward_request(Request::from_parts(parts, body))
        .await
    {
        Ok(mut response) => {
            strip_hop_by_hop(response.headers_mut());
            Ok(response.map(|body| body.map_err(BoxError::from).boxed_unsync()))
        }
        Err(error @ SimulatorError::Unreachable { .. }) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the front cannot answer for AWS"
            );
            let why = format!("{error}; the lab's log says why");
            Ok(refusal_response(StatusCode::SERVICE_UNAVAILABLE, &why))
        }
        Err(error) => Err(error.into()),
    }
}

fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named = headers.get_all(CONNECTION).iter();
    let named = named.filter_map(|value| value.to_str().ok());
    let named = named.flat_map(|value| {
        value
            .split(',')
            .map(|name| name.trim().to_ascii_lowercase())
    });
    let named: Vec<String> = named.collect();
    for name in HOP_BY_HOP
        .iter()
        .copied()
        .chain(named.iter().map(String::as_str))
    {
        // Some clients name Host there; it is the end's, whatever they say.
        if name != HOST.as_str() {
            headers.remove(name);
        }
    }
}

/// Of the URL, or of the header, without port.
fn host_of<T>(request: &Request<T>) -> String {
    let header = || request.headers().get(HOST)?.to_str().ok();
    let host = request.uri().host().or_else(header).unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    host.to_ascii_lowercase()
}

fn site_service(site: Option<&Site>) -> &'static str {
    match site {
        Some(Site::Registry(_)) => "registry",
        Some(Site::Mirror(_)) => "mirror",
        Some(Site::Aws) => "aws",
        None => "front",
    }
}

/// The path and what of the query is no credential.
fn without_signature(uri: &Uri) -> String {
    let signs = |pair: &&str| pair.to_ascii_lowercase().starts_with("x-amz-");
    let query = uri.query().unwrap_or_default().split('&');
    let query: Vec<&str> = query.filter(|pair| !signs(pair)).collect();
    match query.join("&").as_str() {
        "" => uri.path().to_owned(),
        query => format!("{}?{query}", uri.path()),
    }
}
