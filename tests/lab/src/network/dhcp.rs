//! DHCP as a VPC answers it: each network interface always gets its own address, known by its hardware address.

use super::error::{Result, doing};
use super::topology::Topology;
use super::{names, netns};
use crate::place::Place;
use crate::world::{Instance, World};
use dhcproto::v4::{DhcpOption, Flags, Message, MessageType, Opcode, OptionCode};
use dhcproto::{Decodable, Decoder, Encodable};
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use tokio::sync::watch;

/// Seconds; what EC2 gives.
const LEASE: u32 = 3600;
const SERVER: u16 = 67;
const CLIENT: u16 = 68;
const MTU: u16 = 9001;

/// Answers hosts until the sender of worlds is gone. Runs on any runtime; only its sockets are in the router's namespace.
pub async fn serve(place: &Place, worlds: watch::Receiver<Arc<World>>) -> Result<()> {
    let netns = place.router_netns();
    let socket = netns::inside(&netns, || listener(None))?.map_err(doing("listening for DHCP"))?;
    let socket = tokio::net::UdpSocket::from_std(socket).map_err(doing("listening for DHCP"))?;
    let mut packet = [0; 1500];
    let mut worlds = worlds;
    loop {
        let length = tokio::select! {
            received = socket.recv_from(&mut packet) => received.map_err(doing("receiving DHCP"))?.0,
            changed = worlds.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return Ok(()),
            },
        };
        let world = worlds.borrow().clone();
        let Some((instance, reply)) = packet.get(..length).and_then(|bytes| answer(&world, bytes))
        else {
            continue;
        };
        // One host's answer that cannot be sent (its link just went) is no reason to leave the others without.
        if let Err(error) = send(&netns, &socket, &instance, &reply).await {
            tracing::warn!(instance = instance.id, %error, "a DHCP answer was not sent");
        }
    }
}

async fn send(
    netns: &str,
    socket: &tokio::net::UdpSocket,
    instance: &Instance,
    reply: &Message,
) -> Result<()> {
    let bytes = reply
        .to_vec()
        .map_err(|error| doing("encoding a DHCP answer")(std::io::Error::other(error)))?;
    if !reply.flags().broadcast() {
        // The router knows the host's hardware address, so this arrives before the host has its address.
        let to = SocketAddrV4::new(instance.address, CLIENT);
        let sent = socket.send_to(&bytes, to).await;
        return sent
            .map(drop)
            .map_err(doing(format!("sending DHCP to {to}")));
    }
    let link = names::link(&instance.id);
    let to = SocketAddrV4::new(Ipv4Addr::BROADCAST, CLIENT);
    let broadcast = || listener(Some(&link))?.send_to(&bytes, to);
    netns::inside(netns, broadcast)?
        .map(drop)
        .map_err(doing(format!("broadcasting DHCP on {link}")))
}

fn listener(link: Option<&str>) -> std::io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    socket.set_broadcast(true)?;
    socket.set_nonblocking(true)?;
    if let Some(link) = link {
        socket.bind_device(Some(link.as_bytes()))?;
    }
    socket.bind(&SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, SERVER).into())?;
    Ok(socket.into())
}

/// The answer to one packet and the instance that asked; `None` for what is no request or of no instance.
pub fn answer(world: &World, packet: &[u8]) -> Option<(Instance, Message)> {
    let request = Message::decode(&mut Decoder::new(packet)).ok()?;
    if request.opcode() != Opcode::BootRequest {
        return None;
    }
    let mac: Vec<String> = request
        .chaddr()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mac = mac.join(":");
    let topology = Topology::of(world).ok()?;
    let host = topology
        .hosts
        .iter()
        .find(|host| host.instance.mac.eq_ignore_ascii_case(&mac))?;
    let kind = match request.opts().msg_type()? {
        MessageType::Discover => MessageType::Offer,
        MessageType::Request | MessageType::Inform => {
            verdict(&request, host.instance.address, host.gateway)?
        }
        _ => return None,
    };
    let mut reply = Message::default();
    reply
        .set_opcode(Opcode::BootReply)
        .set_xid(request.xid())
        .set_flags(request.flags())
        .set_giaddr(request.giaddr())
        .set_chaddr(request.chaddr());
    let options = reply.opts_mut();
    options.insert(DhcpOption::MessageType(kind));
    options.insert(DhcpOption::ServerIdentifier(host.gateway));
    if kind == MessageType::Nak {
        reply.set_flags(Flags::default().set_broadcast());
        return Some((host.instance.clone(), reply));
    }
    let net = topology.subnets.get(host.instance.subnet.as_str())?;
    options.insert(DhcpOption::AddressLeaseTime(LEASE));
    options.insert(DhcpOption::SubnetMask(net.range.netmask()));
    options.insert(DhcpOption::BroadcastAddr(net.range.broadcast()));
    options.insert(DhcpOption::Router(vec![host.gateway]));
    options.insert(DhcpOption::InterfaceMtu(MTU));
    let short = host.instance.hostname.split('.').next().unwrap_or_default();
    options.insert(DhcpOption::Hostname(short.to_owned()));
    let (servers, domain) = names_of(&topology, host.instance);
    options.insert(DhcpOption::DomainNameServer(servers));
    options.insert(DhcpOption::DomainName(domain));
    let informed = request.opts().msg_type() == Some(MessageType::Inform);
    if !informed {
        reply.set_yiaddr(host.instance.address);
    }
    reply.set_siaddr(host.gateway);
    Some((host.instance.clone(), reply))
}

/// A request for another address is refused, one that chose another server is not ours.
fn verdict(request: &Message, address: Ipv4Addr, gateway: Ipv4Addr) -> Option<MessageType> {
    if let Some(DhcpOption::ServerIdentifier(server)) =
        request.opts().get(OptionCode::ServerIdentifier)
        && *server != gateway
    {
        return None;
    }
    let asked = match request.opts().get(OptionCode::RequestedIpAddress) {
        Some(DhcpOption::RequestedIpAddress(asked)) => *asked,
        _ => request.ciaddr(),
    };
    Some(if asked == address {
        MessageType::Ack
    } else {
        MessageType::Nak
    })
}

/// Name servers and domain as the VPC's DHCP options say; `AmazonProvidedDNS` is VPC + 2.
fn names_of(topology: &Topology<'_>, instance: &Instance) -> (Vec<Ipv4Addr>, String) {
    let vpc = topology
        .world
        .vpcs
        .iter()
        .find(|vpc| vpc.id == instance.vpc);
    let resolver = topology
        .vpcs
        .get(instance.vpc.as_str())
        .map(|vpc| vpc.resolver);
    let named = vpc.map_or(&[][..], |vpc| &vpc.domain_name_servers);
    let mut servers: Vec<_> = named
        .iter()
        .filter_map(|server| {
            if server == "AmazonProvidedDNS" {
                resolver
            } else {
                server.parse().ok()
            }
        })
        .collect();
    if servers.is_empty() {
        servers.extend(resolver);
    }
    let region = &topology.world.region;
    let default = if region == "us-east-1" {
        "ec2.internal".to_owned()
    } else {
        format!("{region}.compute.internal")
    };
    (
        servers,
        vpc.and_then(|vpc| vpc.domain_name.clone())
            .unwrap_or(default),
    )
}
