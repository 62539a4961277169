//! DHCPv6 as a VPC answers it: the instance's own IPv6 addresses, each alone on its link, and the resolver.

use super::names::RESOLVER_V6;
use crate::aws_state::Instance;
use dhcproto::v6::{
    DhcpOption, DhcpOptions, IAAddr, IANA, Message, MessageType, OptionCode, Status, StatusCode,
};
use dhcproto::{Decodable, Decoder, Encodable};
use std::net::Ipv6Addr;

/// Seconds for which an address is to be used, and to be kept, as seen on EC2.
const PREFERRED: u32 = 140;
const VALID: u32 = 450;
/// The server's DUID: by its link-layer address (3) on Ethernet (1).
const SERVER: [u8; 10] = [0, 3, 0, 1, 2, 0, 0, 0, 0, 1];

/// The answer's bytes to a packet from the instance; `None` for what is no request, or meant for another server.
pub fn answer_packet(instance: &Instance, packet: &[u8]) -> Option<Vec<u8>> {
    let request = Message::decode(&mut Decoder::new(packet)).ok()?;
    let asked = request.opts();
    if let Some(DhcpOption::ServerId(server)) = asked.get(OptionCode::ServerId)
        && server.as_slice() != SERVER
    {
        return None;
    }
    let rapid = asked.get(OptionCode::RapidCommit).is_some();
    let kind = match request.msg_type() {
        MessageType::Solicit if !rapid => MessageType::Advertise,
        MessageType::Solicit
        | MessageType::Request
        | MessageType::Confirm
        | MessageType::Renew
        | MessageType::Rebind
        | MessageType::Release
        | MessageType::Decline
        | MessageType::InformationRequest => MessageType::Reply,
        _ => return None,
    };
    let mut answer = Message::new_with_id(kind, request.xid());
    let options = answer.opts_mut();
    options.insert(DhcpOption::ServerId(SERVER.to_vec()));
    options.insert(asked.get(OptionCode::ClientId)?.clone());
    match request.msg_type() {
        MessageType::Release | MessageType::Decline => options.insert(status(Status::Success)),
        MessageType::Confirm => options.insert(verdict(&instance.ipv6_addresses, asked)),
        MessageType::InformationRequest => options.insert(resolver()),
        _ => {
            if rapid && kind == MessageType::Reply {
                options.insert(DhcpOption::RapidCommit);
            }
            for one in asked.get_all(OptionCode::IANA).unwrap_or_default() {
                if let DhcpOption::IANA(association) = one {
                    options.insert(addresses(association.id, &instance.ipv6_addresses));
                }
            }
            options.insert(resolver());
        }
    }
    answer.to_vec().ok()
}

fn addresses(id: u32, own: &[Ipv6Addr]) -> DhcpOption {
    let mut opts = DhcpOptions::new();
    for addr in own {
        opts.insert(DhcpOption::IAAddr(IAAddr {
            addr: *addr,
            preferred_life: PREFERRED,
            valid_life: VALID,
            opts: DhcpOptions::new(),
        }));
    }
    DhcpOption::IANA(IANA {
        id,
        t1: PREFERRED / 2,
        t2: PREFERRED * 4 / 5,
        opts,
    })
}

fn resolver() -> DhcpOption {
    DhcpOption::DomainNameServers(vec![RESOLVER_V6])
}

/// Whether the addresses that a client has from before are still its own.
fn verdict(own: &[Ipv6Addr], asked: &DhcpOptions) -> DhcpOption {
    let mut held = asked
        .get_all(OptionCode::IANA)
        .unwrap_or_default()
        .iter()
        .filter_map(|one| match one {
            DhcpOption::IANA(association) => association.opts.get_all(OptionCode::IAAddr),
            _ => None,
        })
        .flatten();
    let right = held.all(|one| match one {
        DhcpOption::IAAddr(address) => own.contains(&address.addr),
        _ => true,
    });
    status(if right {
        Status::Success
    } else {
        Status::NotOnLink
    })
}

fn status(status: Status) -> DhcpOption {
    let msg = String::new();
    DhcpOption::StatusCode(StatusCode { status, msg })
}
