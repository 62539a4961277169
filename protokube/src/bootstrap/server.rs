//! TLS and HTTP server of the endpoint: limited connections, one request per connection, timeouts for everything.

use super::connections::{ConnectionSlot, Connections};
use super::shared_state::{LineCause, SharedState};
use super::{EndpointContext, answer};
use crate::identity::Identity;
use anyhow::Context as _;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use node::bootstrap::HEADER_LIMIT;
use node::names::dns;
use node::pki::{Keyset, LEAF_VALIDITY, Leaf, Usage};
use node::report::Status;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Timeout of a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(3);
/// Timeout for receiving headers.
const HEADERS: Duration = Duration::from_secs(10);
/// Timeout of a whole connection; STS and EC2 may take twenty seconds each.
const WHOLE: Duration = Duration::from_secs(90);
/// Pause after a failed accept, which means that file descriptors have run out.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) async fn accept_connections(
    context: Arc<EndpointContext>,
    listener: TcpListener,
) -> anyhow::Result<()> {
    let endpoint = Arc::new(SharedState::new(Arc::clone(&context)));
    // Only in IPv6 clusters it listens at IPv6 addresses too.
    let ipv6 = listener.local_addr().is_ok_and(|own| own.is_ipv6());
    let connections = Connections::new(ipv6);
    let mut identity = issue_identity(&context)?;
    let mut acceptor = build_acceptor(&identity)?;
    let mut catch_up = tokio::time::interval(context.log_interval.max(PAUSE));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = catch_up.tick() => {
                endpoint.lines.log_counted();
                continue;
            }
        };
        let (stream, peer) = match accepted {
            // A listener of both families shows an IPv4 address as an IPv6 one.
            Ok((stream, peer)) => (
                stream,
                SocketAddr::new(peer.ip().to_canonical(), peer.port()),
            ),
            Err(error) => {
                let detail = format!("could not accept a connection: {error}");
                let lines = &endpoint.lines;
                lines.log_or_count(LineCause::Accept, Status::Failed, None, &detail);
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        // The endpoint listens on all addresses, also on the one in the network of pods.
        let pods = context.pods.as_ref();
        if pods.is_some_and(|pods| pods.contains(&peer.ip())) {
            continue;
        }
        let Some((place, ended)) = connections.admit_peer(peer.ip()) else {
            continue;
        };
        if (context.clock)() >= identity.renew {
            identity = self::issue_identity(&context)?;
            acceptor = self::build_acceptor(&identity)?;
        }
        let (endpoint, acceptor) = (Arc::clone(&endpoint), acceptor.clone());
        tokio::spawn(async move {
            let served = serve_connection(&endpoint, &place, acceptor, stream, peer);
            // A worker whose connection times out, is closed or breaks retries.
            tokio::select! {
                _ = tokio::time::timeout(WHOLE, served) => {}
                _ = ended => {}
            }
        });
    }
}

async fn serve_connection(
    endpoint: &SharedState,
    place: &ConnectionSlot,
    acceptor: TlsAcceptor,
    stream: TcpStream,
    peer: SocketAddr,
) {
    let stream = match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return log_alert(endpoint, peer, &error),
        // Health checks of load balancers connect without a handshake.
        Err(_) => return,
    };
    let service = service_fn(|request| answer::answer_request(endpoint, place, request));
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .max_buf_size(4 * HEADER_LIMIT)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// Logs the TLS alert of a caller that does not trust the endpoint's certificate; it would be visible nowhere else.
fn log_alert(endpoint: &SharedState, peer: SocketAddr, error: &std::io::Error) {
    let alert = error.get_ref().and_then(|source| source.downcast_ref());
    if let Some(rustls::Error::AlertReceived(alert)) = alert {
        let detail = format!("{peer} does not accept the endpoint's certificate: {alert:?}");
        let lines = &endpoint.lines;
        lines.log_or_count(LineCause::Certificate, Status::Failed, None, &detail);
    }
}

fn issue_identity(context: &EndpointContext) -> anyhow::Result<Identity> {
    let leaf = Leaf {
        common_name: "kops-controller".to_owned(),
        organization: None,
        usage: Usage::Server,
        names: vec![dns::bootstrap_name(&context.cluster)],
        validity: LEAF_VALIDITY,
    };
    let authority = match &context.own_keys {
        Some(ids) => &Keyset::clone(&context.authority).as_of(ids),
        None => &*context.authority,
    };
    Identity::issue_identity(authority, &leaf, (context.clock)())
}

fn build_acceptor(identity: &Identity) -> anyhow::Result<TlsAcceptor> {
    let unusable = "the endpoint's certificate cannot be used";
    let certificate = CertificateDer::from_pem_slice(identity.issued.certificate.as_bytes());
    let key = PrivateKeyDer::from_pem_slice(identity.issued.key.reveal().as_bytes());
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .context(unusable)?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.context(unusable)?], key.context(unusable)?)
        .context(unusable)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
