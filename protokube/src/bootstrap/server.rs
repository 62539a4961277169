//! TLS and HTTP: a bounded number of connections, one request on each, everything with a time limit.

use super::connections::{Connections, Place};
use super::endpoint::{Cause, Endpoint};
use super::{Context, answer};
use crate::identity::Identity;
use anyhow::Context as _;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use node::bootstrap::HEADER_LIMIT;
use node::names::dns;
use node::pki::{LEAF_VALIDITY, Leaf, Usage};
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

/// A TLS handshake that takes longer is given up.
const HANDSHAKE: Duration = Duration::from_secs(3);
/// Headers that take longer to arrive are given up.
const HEADERS: Duration = Duration::from_secs(10);
/// A connection that takes longer in all is given up: STS and EC2 may take twenty seconds each.
const WHOLE: Duration = Duration::from_secs(90);
/// Pause after a connection could not be taken: file descriptors have run out.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) async fn serve(context: Arc<Context>, listener: TcpListener) -> anyhow::Result<()> {
    let endpoint = Arc::new(Endpoint::of(Arc::clone(&context)));
    let connections = Connections::default();
    let mut identity = identity(&context)?;
    let mut acceptor = acceptor(&identity)?;
    let mut catch_up = tokio::time::interval(context.told.max(PAUSE));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = catch_up.tick() => {
                endpoint.lines.catch_up();
                continue;
            }
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                let detail = format!("could not take a connection: {error}");
                let lines = &endpoint.lines;
                lines.say(Cause::Accept, Status::Failed, None, &detail);
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let Some((place, ended)) = connections.admit(peer.ip()) else {
            continue;
        };
        if (context.clock)() >= identity.renew {
            identity = self::identity(&context)?;
            acceptor = self::acceptor(&identity)?;
        }
        let (endpoint, acceptor) = (Arc::clone(&endpoint), acceptor.clone());
        tokio::spawn(async move {
            let served = connection(&endpoint, &place, acceptor, stream, peer);
            // Who takes longer, has to make room or goes away in the middle of its request, asks again.
            tokio::select! {
                _ = tokio::time::timeout(WHOLE, served) => {}
                _ = ended => {}
            }
        });
    }
}

async fn connection(
    endpoint: &Endpoint,
    place: &Place,
    acceptor: TlsAcceptor,
    stream: TcpStream,
    peer: SocketAddr,
) {
    let stream = match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tell_alert(endpoint, peer, &error),
        // Load balancers' health checks connect and say nothing.
        Err(_) => return,
    };
    let service = service_fn(|request| answer::answer(endpoint, place, request));
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .max_buf_size(4 * HEADER_LIMIT)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// A caller that does not trust this endpoint's certificate says so, and nowhere else would it be seen.
fn tell_alert(endpoint: &Endpoint, peer: SocketAddr, error: &std::io::Error) {
    let alert = error.get_ref().and_then(|source| source.downcast_ref());
    if let Some(rustls::Error::AlertReceived(alert)) = alert {
        let detail = format!("{peer} refuses the endpoint's certificate: {alert:?}");
        let lines = &endpoint.lines;
        lines.say(Cause::Certificate, Status::Failed, None, &detail);
    }
}

fn identity(context: &Context) -> anyhow::Result<Identity> {
    let leaf = Leaf {
        common_name: "kops-controller".to_owned(),
        organization: None,
        usage: Usage::Server,
        names: vec![dns::bootstrap(&context.cluster)],
        validity: LEAF_VALIDITY,
    };
    Identity::issue(&context.authority, &leaf, (context.clock)())
}

fn acceptor(identity: &Identity) -> anyhow::Result<TlsAcceptor> {
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
