//! DHCP as a VPC answers it: each network interface always gets its own address, known by its hardware address.

use super::error::{Result, add_context};
use super::topology::{Host, Topology};
use super::{names, netns};
use crate::aws_state::{AwsState, Instance};
use crate::lab_paths::LabPaths;
use dhcproto::v4::{DhcpOption, Flags, Message, MessageType, Opcode, OptionCode};
use dhcproto::{Decodable, Decoder, Encodable};
use ipnet::Ipv4Net;
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
pub async fn serve_dhcp(place: &LabPaths, worlds: watch::Receiver<Arc<AwsState>>) -> Result<()> {
    let netns = place.router_netns();
    let socket = netns::run_inside(&netns, || bind_listener(Ipv4Addr::UNSPECIFIED, None))?
        .map_err(add_context("listening for DHCP"))?;
    let socket =
        tokio::net::UdpSocket::from_std(socket).map_err(add_context("listening for DHCP"))?;
    let mut packet = [0; 1500];
    let mut worlds = worlds;
    loop {
        let length = tokio::select! {
            received = socket.recv_from(&mut packet) => received.map_err(add_context("receiving DHCP"))?.0,
            changed = worlds.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return Ok(()),
            },
        };
        let world = worlds.borrow().clone();
        let Some(answer) = packet
            .get(..length)
            .and_then(|bytes| answer_packet(&world, bytes))
        else {
            continue;
        };
        // One host's answer that cannot be sent (its link just went) is no reason to leave the others without.
        if let Err(error) = send_answer(&netns, &socket, &answer).await {
            tracing::warn!(link = answer.link, %error, "a DHCP answer was not sent");
        }
    }
}

async fn send_answer(
    netns: &str,
    socket: &tokio::net::UdpSocket,
    answer: &DhcpAnswer,
) -> Result<()> {
    let encoded = answer.message.to_vec();
    let bytes = encoded
        .map_err(|error| add_context("encoding a DHCP answer")(std::io::Error::other(error)))?;
    let what = add_context(format!("sending DHCP on {}", answer.link));
    if !answer.message.flags().broadcast() {
        // The router knows the host's hardware address, so this arrives before the host has its address.
        let to = SocketAddrV4::new(answer.address, CLIENT);
        return socket.send_to(&bytes, to).await.map(drop).map_err(what);
    }
    let to = SocketAddrV4::new(Ipv4Addr::BROADCAST, CLIENT);
    let broadcast = || bind_listener(answer.gateway, Some(&answer.link))?.send_to(&bytes, to);
    netns::run_inside(netns, broadcast)?.map(drop).map_err(what)
}

fn bind_listener(at: Ipv4Addr, link: Option<&str>) -> std::io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    socket.set_broadcast(true)?;
    socket.set_nonblocking(true)?;
    if let Some(link) = link {
        socket.bind_device(Some(link.as_bytes()))?;
    }
    socket.bind(&SocketAddrV4::new(at, SERVER).into())?;
    Ok(socket.into())
}

/// What to send where.
#[derive(Debug)]
pub struct DhcpAnswer {
    /// The router's end of the host's link.
    pub link: String,
    pub gateway: Ipv4Addr,
    /// Address of the host that asked.
    pub address: Ipv4Addr,
    pub message: Message,
}

/// The answer to one packet; `None` for what is no request or of no instance.
pub fn answer_packet(world: &AwsState, packet: &[u8]) -> Option<DhcpAnswer> {
    let request = Message::decode(&mut Decoder::new(packet)).ok()?;
    if request.opcode() != Opcode::BootRequest {
        return None;
    }
    let bytes = request.chaddr().iter().map(|byte| format!("{byte:02x}"));
    let mac = bytes.collect::<Vec<_>>().join(":");
    let topology = Topology::from_world(world).ok()?;
    let mut hosts = topology.hosts.iter();
    let host = hosts.find(|host| host.instance.mac.eq_ignore_ascii_case(&mac))?;
    let kind = match request.opts().msg_type()? {
        MessageType::Discover => MessageType::Offer,
        MessageType::Request => verdict_on_request(&request, host)?,
        MessageType::Inform => MessageType::Ack,
        _ => return None,
    };
    let mut message = Message::default();
    message
        .set_opcode(Opcode::BootReply)
        .set_xid(request.xid())
        .set_flags(request.flags())
        .set_giaddr(request.giaddr())
        .set_chaddr(request.chaddr())
        .opts_mut()
        .insert(DhcpOption::MessageType(kind));
    message
        .opts_mut()
        .insert(DhcpOption::ServerIdentifier(host.gateway));
    if kind == MessageType::Nak {
        message.set_flags(Flags::default().set_broadcast());
    } else {
        message.set_siaddr(host.gateway);
        if request.opts().msg_type() == Some(MessageType::Inform) {
            message.set_ciaddr(request.ciaddr());
        } else {
            message.set_yiaddr(host.instance.address);
            message
                .opts_mut()
                .insert(DhcpOption::AddressLeaseTime(LEASE));
        }
        for option in dhcp_options(&topology, host)? {
            message.opts_mut().insert(option);
        }
    }
    Some(DhcpAnswer {
        link: host.link.clone(),
        gateway: host.gateway,
        address: host.instance.address,
        message,
    })
}

fn dhcp_options(topology: &Topology<'_>, host: &Host<'_>) -> Option<Vec<DhcpOption>> {
    let net = topology.subnets.get(host.instance.subnet.as_str())?;
    let name = host.instance.hostname.split('.').next()?;
    let (mut servers, domain) = names_of(topology, host.instance);
    // A link-local address is alone on its link, without a way further (canonical/cloud-init#5307).
    let (range, way) = match host.instance.private_address() {
        Some(_) => (net.range, DhcpOption::Router(vec![host.gateway])),
        None => {
            servers = vec![names::RESOLVER];
            let own = Ipv4Net::from(host.instance.address);
            let near = (names::LINK_LOCAL, Ipv4Addr::UNSPECIFIED);
            (own, DhcpOption::ClasslessStaticRoute(vec![near]))
        }
    };
    Some(vec![
        DhcpOption::SubnetMask(range.netmask()),
        DhcpOption::BroadcastAddr(range.broadcast()),
        way,
        DhcpOption::InterfaceMtu(MTU),
        DhcpOption::Hostname(name.to_owned()),
        DhcpOption::DomainNameServer(servers),
        DhcpOption::DomainName(domain),
    ])
}

/// A request for another address is refused, one that chose another server is not ours.
fn verdict_on_request(request: &Message, host: &Host<'_>) -> Option<MessageType> {
    if let Some(DhcpOption::ServerIdentifier(server)) =
        request.opts().get(OptionCode::ServerIdentifier)
        && *server != host.gateway
    {
        return None;
    }
    let asked = match request.opts().get(OptionCode::RequestedIpAddress) {
        Some(DhcpOption::RequestedIpAddress(asked)) => *asked,
        _ => request.ciaddr(),
    };
    Some(if asked == host.instance.address {
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
