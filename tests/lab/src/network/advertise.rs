//! What a VPC's router says on a link of IPv6: itself as the default route, and by DHCPv6 the instance's address. EC2 announces the
//! subnet's range on the link besides; here neighbours are reached by way of the router, which an instance does not notice.

use super::dhcp6;
use super::error::{Result, add_context};
use super::netns;
use super::topology::{Host, Topology};
use crate::aws_state::AwsState;
use crate::lab_paths::LabPaths;
use rustix::net::netdevice::{index_to_name, name_to_index};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const DHCP_SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);
const DHCP_SERVER: u16 = 547;
const SOLICITATION: u8 = 133;
const ADVERTISEMENT: u8 = 134;
/// Addresses are to be had by DHCP.
const MANAGED: u8 = 0x80;
/// Seconds for which a host keeps the default route.
const LIFETIME: u16 = 1800;
/// How often every host is told, asked or not.
const INTERVAL: Duration = Duration::from_secs(30);
/// How long a change of the world or the other socket may wait.
const WAIT: Duration = Duration::from_millis(100);

/// Advertises and answers until the sender of worlds is gone. Blocks: it enters the router's namespace, so give it a thread.
pub fn advertise_router(place: &LabPaths, worlds: watch::Receiver<Arc<AwsState>>) -> Result<()> {
    netns::run_inside(&place.router_netns(), || {
        let links = Links::open().map_err(add_context("listening for IPv6 hosts"))?;
        links.serve(worlds)
    })?
}

/// The sockets, for the links of all hosts.
struct Links {
    /// Of ICMPv6.
    router: UdpSocket,
    dhcp: UdpSocket,
}

impl Links {
    fn open() -> io::Result<Self> {
        let router = Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6))?;
        // Whoever receives one drops it if it has passed a router.
        router.set_multicast_hops_v6(255)?;
        router.set_unicast_hops_v6(255)?;
        router.set_multicast_loop_v6(false)?;
        router.set_read_timeout(Some(WAIT))?;
        let dhcp = Socket::new(Domain::IPV6, Type::DGRAM, Some(Protocol::UDP))?;
        dhcp.set_only_v6(true)?;
        dhcp.set_nonblocking(true)?;
        dhcp.bind(&SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, DHCP_SERVER, 0, 0).into())?;
        Ok(Self {
            router: router.into(),
            dhcp: dhcp.into(),
        })
    }

    fn serve(&self, mut worlds: watch::Receiver<Arc<AwsState>>) -> Result<()> {
        let mut due = Instant::now();
        loop {
            match worlds.has_changed() {
                Err(_) => return Ok(()),
                Ok(true) => due = Instant::now(),
                Ok(false) => {}
            }
            let world = Arc::clone(&worlds.borrow_and_update());
            if due <= Instant::now() {
                self.tell_hosts(&world)?;
                due = Instant::now() + INTERVAL;
            }
            self.answer_solicitation(&world)?;
            while self.answer_dhcp(&world)? {}
        }
    }

    fn tell_hosts(&self, world: &AwsState) -> Result<()> {
        for host in &Topology::from_world(world)?.hosts {
            // Its link comes later than the host, and may be gone again.
            if let Ok(index) = name_to_index(&self.router, &host.link) {
                self.advertise(host, index);
            }
        }
        Ok(())
    }

    /// Waits for one packet, and answers if it asks for routers.
    fn answer_solicitation(&self, world: &AwsState) -> Result<()> {
        let mut packet = [0; 1500];
        let from = match self.router.recv_from(&mut packet) {
            Ok((_, SocketAddr::V6(from))) if packet.first() == Some(&SOLICITATION) => from,
            Ok(_) => return Ok(()),
            Err(error) if is_timeout(&error) => return Ok(()),
            Err(source) => return Err(add_context("receiving router solicitations")(source)),
        };
        let topology = Topology::from_world(world)?;
        if let Some(host) = self.host_at(&topology, from.scope_id()) {
            self.advertise(host, from.scope_id());
        }
        Ok(())
    }

    /// Takes one packet of DHCP; false if there is none.
    fn answer_dhcp(&self, world: &AwsState) -> Result<bool> {
        let mut packet = [0; 1500];
        let (length, from) = match self.dhcp.recv_from(&mut packet) {
            Ok((length, SocketAddr::V6(from))) => (length, from),
            Ok(_) => return Ok(true),
            Err(error) if is_timeout(&error) => return Ok(false),
            Err(source) => return Err(add_context("receiving DHCPv6")(source)),
        };
        let topology = Topology::from_world(world)?;
        let asked = packet.get(..length).unwrap_or_default();
        let host = self.host_at(&topology, from.scope_id());
        let Some(answer) = host.and_then(|host| dhcp6::answer_packet(host.instance, asked)) else {
            return Ok(true);
        };
        // One host's answer that cannot be sent (its link just went) is no reason to leave the others without.
        if let Err(error) = self.dhcp.send_to(&answer, from) {
            tracing::warn!(%from, %error, "a DHCPv6 answer was not sent");
        }
        Ok(true)
    }

    /// The host at the other end of a link.
    fn host_at<'a, 'w>(&self, topology: &'a Topology<'w>, index: u32) -> Option<&'a Host<'w>> {
        let name = index_to_name(&self.router, index).ok()?;
        topology.hosts.iter().find(|host| host.link == name)
    }

    /// To a host that has IPv6; others hear nothing, as in a subnet without it.
    fn advertise(&self, host: &Host<'_>, index: u32) {
        if host.instance.ipv6_addresses.is_empty() {
            return;
        }
        let joined = match self.dhcp.join_multicast_v6(&DHCP_SERVERS, index) {
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => Err(error),
            // The group of this link was joined before.
            _ => Ok(()),
        };
        let to = SocketAddrV6::new(ALL_NODES, 0, 0, index);
        let told = joined.and_then(|()| self.router.send_to(&advertisement(), to));
        if let Err(error) = told {
            tracing::debug!(link = host.link, %error, "a host was not told of its router");
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// A router advertisement (RFC 4861, 4.2) without options; the kernel writes its checksum.
fn advertisement() -> [u8; 16] {
    let mut message = [0; 16];
    let [high, low] = LIFETIME.to_be_bytes();
    let fields = [ADVERTISEMENT, 0, 0, 0, 64, MANAGED, high, low];
    for (byte, field) in message.iter_mut().zip(fields) {
        *byte = field;
    }
    message
}
