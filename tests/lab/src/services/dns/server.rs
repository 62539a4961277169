//! The resolvers' sockets: one UDP and one TCP socket for each address that answers.

use super::wire::Transport;
use super::{Dns, DnsEndpoint};
use crate::aws_state::AwsState;
use crate::services::sockets;
use ipnet::Ipv4Net;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

/// A TCP connection without a query is closed after this.
const IDLE: Duration = Duration::from_secs(10);

/// How long a failed bind waits for the next attempt.
const AGAIN: Duration = Duration::from_secs(1);

/// Answers on both sockets until dropped.
pub async fn serve_dns(dns: Arc<Dns>, door: DnsEndpoint, udp: UdpSocket, tcp: TcpListener) {
    tokio::join!(serve_udp(&dns, &door, &udp), serve_tcp(&dns, &door, &tcp));
}

/// Makes both sockets of one address in the namespace, and answers there until dropped.
async fn serve_socket(
    netns: &str,
    address: SocketAddr,
    dns: Arc<Dns>,
    door: DnsEndpoint,
) -> io::Result<()> {
    let udp = UdpSocket::from_std(sockets::listen_udp(netns, address)?)?;
    let tcp = TcpListener::from_std(sockets::listen_tcp(netns, address)?)?;
    serve_dns(dns, door, udp, tcp).await;
    Ok(())
}

/// Tells `dns` of every change of the world, and keeps a resolver at base + 2 of every VPC, until the world ends.
pub async fn serve_resolvers(
    netns: String,
    mut world: watch::Receiver<Arc<AwsState>>,
    dns: Arc<Dns>,
) {
    let mut tasks = JoinSet::new();
    let mut running: HashMap<(Ipv4Addr, String), AbortHandle> = HashMap::new();
    loop {
        let now = Arc::clone(&world.borrow_and_update());
        dns.observe_world(&now);
        let wanted = resolver_addresses(&now);
        running.retain(|key, task| {
            let stays = wanted.contains(key);
            if !stays {
                task.abort();
            }
            stays
        });
        for key in wanted {
            let (address, vpc) = key.clone();
            running.entry(key).or_insert_with(|| {
                let at = SocketAddr::new(address.into(), 53);
                let door = DnsEndpoint::Vpc(vpc);
                tasks.spawn(keep_serving(netns.clone(), at, Arc::clone(&dns), door))
            });
        }
        while tasks.try_join_next().is_some() {}
        if world.changed().await.is_err() {
            return;
        }
    }
}

/// Serves, and when that fails says so and tries again.
async fn keep_serving(netns: String, at: SocketAddr, dns: Arc<Dns>, door: DnsEndpoint) {
    loop {
        let dns = Arc::clone(&dns);
        if let Err(error) = serve_socket(&netns, at, dns, door.clone()).await {
            tracing::error!(%error, "DNS: no resolver at {at}; trying again");
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Base + 2 of each VPC's first IPv4 block.
fn resolver_addresses(world: &AwsState) -> Vec<(Ipv4Addr, String)> {
    let of = |vpc: &crate::aws_state::Vpc| {
        let mut blocks = vpc.cidrs.iter();
        let block: Ipv4Net = blocks.find_map(|block| block.parse().ok())?;
        let address = u32::from(block.network()).checked_add(2)?;
        Some((Ipv4Addr::from(address), vpc.id.clone()))
    };
    world.vpcs.iter().filter_map(of).collect()
}

async fn serve_udp(dns: &Dns, door: &DnsEndpoint, socket: &UdpSocket) {
    let mut buffer = vec![0; 65_535];
    loop {
        // What a client's closed port reports back (ICMP) is not ours to fail of.
        let Ok((length, client)) = socket.recv_from(&mut buffer).await else {
            continue;
        };
        let query = buffer.get(..length).unwrap_or_default();
        let answer = dns.answer_query(
            door,
            client_address(client),
            query,
            Transport::Udp,
            Instant::now(),
        );
        if let Some(answer) = answer
            && let Err(error) = socket.send_to(&answer, client).await
        {
            tracing::debug!(%client, %error, "DNS: an answer that did not leave");
        }
    }
}

async fn serve_tcp(dns: &Arc<Dns>, door: &DnsEndpoint, listener: &TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, client)) => {
                let (dns, door) = (Arc::clone(dns), door.clone());
                connections.spawn(async move {
                    if let Err(error) = answer_stream(&dns, &door, stream, client).await {
                        tracing::debug!(%client, %error, "DNS: a connection ended");
                    }
                });
            }
            Err(error) => {
                tracing::error!(%error, "DNS: cannot accept");
                tokio::time::sleep(AGAIN).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn answer_stream(
    dns: &Dns,
    door: &DnsEndpoint,
    mut stream: TcpStream,
    client: SocketAddr,
) -> io::Result<()> {
    loop {
        let Ok(length) = tokio::time::timeout(IDLE, stream.read_u16()).await else {
            return Ok(());
        };
        let mut query = vec![0; length?.into()];
        stream.read_exact(&mut query).await?;
        let now = Instant::now();
        let Some(answer) =
            dns.answer_query(door, client_address(client), &query, Transport::Tcp, now)
        else {
            return Ok(());
        };
        let length = u16::try_from(answer.len()).map_err(io::Error::other)?;
        stream.write_u16(length).await?;
        stream.write_all(&answer).await?;
    }
}

fn client_address(client: SocketAddr) -> IpAddr {
    client.ip().to_canonical()
}
