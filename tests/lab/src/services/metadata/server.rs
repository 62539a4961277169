//! The service's socket: who calls, how far the answer travels, and the tree that the simulator has for it.

use super::token::Tokens;
use super::{Authorization, authorize_request, error_answer, read_answer, token_answer};
use crate::aws_state::{AwsState, Instance};
use crate::services::access_log::{AccessLog, Entry};
use crate::services::front::accept_connections;
use crate::services::http::{Body, BoxError, log_response, serve_connection};
use crate::services::is_there;
use crate::services::simulator::SimulatorProxy;
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use rustix::net::sockopt::{ip_ttl, ipv6_unicast_hops, set_ip_ttl, set_ipv6_unicast_hops};
use serde_json::Value;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// How long a tree is kept while the world stays as it is: cloud-init reads sixty paths in one go.
const KEPT: Duration = Duration::from_secs(1);

/// The service, for all instances of the world.
pub struct Metadata {
    world: watch::Receiver<Arc<AwsState>>,
    simulator: SimulatorProxy,
    log: AccessLog,
    tokens: Tokens,
    trees: Mutex<HashMap<String, CachedTree>>,
}

struct CachedTree {
    serial: u64,
    until: Instant,
    tree: Arc<Value>,
}

impl Metadata {
    pub fn new(
        world: watch::Receiver<Arc<AwsState>>,
        simulator: SimulatorProxy,
        log: AccessLog,
    ) -> Result<Self, aws_lc_rs::error::Unspecified> {
        Ok(Self {
            tokens: Tokens::new(Instant::now())?,
            world,
            simulator,
            log,
            trees: Mutex::new(HashMap::new()),
        })
    }

    async fn fetch_tree(&self, instance: &str, serial: u64) -> Result<Arc<Value>, BoxError> {
        let now = Instant::now();
        {
            let trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(kept) = trees.get(instance)
                && kept.serial == serial
                && kept.until > now
            {
                return Ok(Arc::clone(&kept.tree));
            }
        }
        let path = format!("/_simulator/metadata/{instance}");
        let tree = Arc::new(self.simulator.get_json(&path).await?);
        let kept = CachedTree {
            serial,
            until: now + KEPT,
            tree: Arc::clone(&tree),
        };
        let mut trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        trees.retain(|_, kept| kept.until > now);
        trees.insert(instance.to_owned(), kept);
        Ok(tree)
    }
}

/// Serves instance metadata until the future is dropped.
pub async fn serve_metadata(metadata: Arc<Metadata>, listener: TcpListener) {
    accept_connections(listener, |stream, client| {
        let metadata = Arc::clone(&metadata);
        async move { serve_client(&metadata, stream, client).await }
    })
    .await;
}

async fn serve_client(
    metadata: &Metadata,
    stream: TcpStream,
    client: SocketAddr,
) -> Result<(), BoxError> {
    let socket = stream.as_fd().try_clone_to_owned()?;
    let usual = match client {
        SocketAddr::V4(_) => ip_ttl(&socket)?,
        SocketAddr::V6(_) => u32::from(ipv6_unicast_hops(&socket)?),
    };
    let answers = |request| respond_to_client(metadata, request, client, &socket, usual);
    serve_connection(stream, answers).await?;
    Ok(())
}

/// One request. Who is no instance gets no answer at all: outside of AWS nothing listens at this address.
async fn respond_to_client(
    metadata: &Metadata,
    request: Request<Incoming>,
    client: SocketAddr,
    socket: &OwnedFd,
    usual_ttl: u32,
) -> Result<Response<Body>, BoxError> {
    let (parts, _) = request.into_parts();
    let world = Arc::clone(&metadata.world.borrow());
    let mut entry = Entry {
        service: "metadata",
        source: client.ip().to_string(),
        instance: None,
        method: parts.method.to_string(),
        host: String::new(),
        path: parts.uri.path().to_owned(),
        status: 0,
        bytes: 0,
    };
    let Some(instance) = instance_at(&world, client.ip()) else {
        metadata.log.write(&entry);
        return Err(format!("{} is the address of no instance", client.ip()).into());
    };
    entry.instance = Some(instance.id.clone());
    // Only the answer with the token is kept from travelling on.
    let is_put = parts.method == Method::PUT;
    let ttl = if is_put {
        u32::from(instance.hop_limit.max(1))
    } else {
        usual_ttl
    };
    match client {
        SocketAddr::V4(_) => set_ip_ttl(socket, ttl)?,
        SocketAddr::V6(_) => set_ipv6_unicast_hops(socket, u8::try_from(ttl).ok())?,
    }
    let now = Instant::now();
    let response = match authorize_request(&parts, instance, &metadata.tokens, now) {
        Err(status) => error_answer(status),
        Ok(Authorization::Token(seconds)) => {
            let token = metadata.tokens.issue_token(&instance.id, seconds, now);
            token_answer(token, seconds)
        }
        Ok(Authorization::Read(left)) => {
            match metadata.fetch_tree(&instance.id, world.serial).await {
                Ok(tree) => read_answer(&tree, parts.uri.path(), left),
                Err(error) => {
                    tracing::error!(
                        instance = instance.id,
                        error = &*error as &dyn std::error::Error,
                        "no metadata"
                    );
                    error_answer(StatusCode::SERVICE_UNAVAILABLE)
                }
            }
        }
    };
    Ok(log_response(response, &metadata.log, entry))
}

/// An address may be a terminated instance's and a new one's.
fn instance_at(world: &AwsState, source: IpAddr) -> Option<&Instance> {
    let mut there = world.instances.iter().filter(|instance| is_there(instance));
    there.find(|instance| match source {
        IpAddr::V4(source) => instance.address == source,
        IpAddr::V6(source) => instance.has_ipv6(source),
    })
}
