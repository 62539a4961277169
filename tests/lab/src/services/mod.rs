//! What AWS and the internet are to a host: metadata, DNS, the endpoints and sites behind one front.

pub mod access_log;
pub mod ca;
pub mod dns;
pub mod files;
pub mod front;
mod http;
pub mod metadata;
mod mirror;
mod registry;
pub mod simulator;
pub mod sites;
pub mod sockets;

use crate::aws_state::{AwsState, Instance, InstanceState};
use crate::network::family::Family;
use crate::network::names::{FRONT, FRONT_NAT64};
use access_log::AccessLog;
use ca::Ca;
use dns::{Dns, DnsEndpoint};
use front::HttpFront;
use metadata::Metadata;
use simulator::SimulatorProxy;
use sites::Sites;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Everything that the services are given.
pub struct Services {
    /// Where they listen (`Place::router_netns`).
    pub netns: String,
    /// Begins with what the simulator says: changes after that count as changes.
    pub world: watch::Receiver<Arc<AwsState>>,
    /// On the machine's own loopback.
    pub simulator: SocketAddr,
    /// Folder of the download sites: HOST/PATH.
    pub mirror: PathBuf,
    /// HOST/REPOSITORY/, each an OCI image layout.
    pub registry: PathBuf,
    pub ca: Arc<Ca>,
    /// A file of JSON lines.
    pub access_log: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Socket(#[from] io::Error),
    #[error("TLS of the front")]
    Tls(#[from] rustls::Error),
    #[error("no random bytes for the metadata service's tokens")]
    Random(#[from] aws_lc_rs::error::Unspecified),
}

/// Starts all services at their addresses; they run until the returned set is dropped. A task of the set that ends is
/// a failure, and says it.
pub fn start_services(services: Services) -> Result<JoinSet<Error>, Error> {
    let netns = &services.netns;
    let log = AccessLog::open(&services.access_log)?;
    let sites = Sites {
        mirror: services.mirror,
        registry: services.registry,
    };
    let simulator = SimulatorProxy {
        address: services.simulator,
    };
    let tcp = |address: IpAddr, port| -> io::Result<TcpListener> {
        TcpListener::from_std(sockets::listen_tcp(netns, SocketAddr::new(address, port))?)
    };
    let udp = |address: IpAddr, port| -> io::Result<UdpSocket> {
        UdpSocket::from_std(sockets::listen_udp(netns, SocketAddr::new(address, port))?)
    };
    let world = services.world;
    let first = Arc::clone(&world.borrow());
    let dns = Dns::new(sites.clone(), log.clone(), &first);
    let dns = Arc::new(dns);
    let front = Arc::new(HttpFront {
        sites,
        simulator,
        world: world.clone(),
        log: log.clone(),
    });
    let metadata = Metadata::new(world.clone(), simulator, log)?;

    let mut tasks = JoinSet::new();
    for (address, door) in [
        (IpAddr::V4(FRONT), DnsEndpoint::Internet),
        (Family::V4.resolver(), DnsEndpoint::LinkLocal),
        (Family::V6.resolver(), DnsEndpoint::LinkLocal),
    ] {
        let (udp, tcp) = (udp(address, 53)?, tcp(address, 53)?);
        tasks.spawn(report_end(
            dns::serve_dns(Arc::clone(&dns), door, udp, tcp),
            "a resolver",
        ));
    }
    let resolvers = dns::serve_resolvers(services.netns.clone(), world, dns);
    tasks.spawn(report_end(
        resolvers,
        "the VPCs' resolvers (nobody tells the world any more)",
    ));
    let metadata = Arc::new(metadata);
    for family in Family::BOTH {
        let listener = tcp(family.metadata(), 80)?;
        let served = metadata::serve_metadata(Arc::clone(&metadata), listener);
        tasks.spawn(report_end(served, "the metadata service"));
    }
    // What NAT64 leads to is the front itself: the lab's internet has no other address.
    for address in [IpAddr::V4(FRONT), IpAddr::V6(FRONT_NAT64)] {
        let listener = tcp(address, 80)?;
        tasks.spawn(report_end(
            front::serve_plain(Arc::clone(&front), listener),
            "the front",
        ));
        let listener = tcp(address, 443)?;
        let (front, ca) = (Arc::clone(&front), Arc::clone(&services.ca));
        tasks.spawn(async move {
            match front::serve_tls(front, ca, listener).await {
                Ok(()) => Error::Socket(io::Error::other("the front's TLS ended")),
                Err(error) => error.into(),
            }
        });
    }
    Ok(tasks)
}

async fn report_end(service: impl Future<Output = ()>, what: &'static str) -> Error {
    service.await;
    Error::Socket(io::Error::other(format!("{what} ended")))
}

/// Whether the instance still has its address.
fn is_there(instance: &Instance) -> bool {
    instance.state != InstanceState::Terminated
}
