//! DHCP: each host gets its own address, whatever it asks for.

use super::bench::{Bench, PATIENCE};
use super::worlds::{A, B, D, address, world};
use dhcproto::v4::{DhcpOption, Flags, Message, MessageType, Opcode, OptionCode};
use dhcproto::{Decodable, Decoder, Encodable};
use lab::network::dhcp;
use lab::scenario::skipped;
use lab::world::World;
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::Arc;

fn request(mac: [u8; 6], kind: MessageType, options: &[DhcpOption]) -> Message {
    let mut message = Message::default();
    message
        .set_opcode(Opcode::BootRequest)
        .set_xid(7)
        .set_chaddr(&mac);
    message.opts_mut().insert(DhcpOption::MessageType(kind));
    for option in options {
        message.opts_mut().insert(option.clone());
    }
    message
}

fn answer(world: &World, message: &Message) -> Option<Message> {
    dhcp::answer(world, &message.to_vec().unwrap()).map(|answer| answer.message)
}

const MAC_A: [u8; 6] = [2, 0x0e, 10, 1, 1, 11];

#[test]
fn an_offer_says_what_a_vpc_says() {
    let mut world = world();
    let reply = answer(&world, &request(MAC_A, MessageType::Discover, &[])).unwrap();
    let options = reply.opts();
    assert_eq!(options.msg_type(), Some(MessageType::Offer));
    assert_eq!(reply.yiaddr(), address("10.1.1.11"));
    assert_eq!(
        options.get(OptionCode::Router),
        Some(&DhcpOption::Router(vec![address("10.1.1.1")]))
    );
    assert_eq!(
        options.get(OptionCode::SubnetMask),
        Some(&DhcpOption::SubnetMask(address("255.255.255.0")))
    );
    assert_eq!(
        options.get(OptionCode::DomainNameServer),
        Some(&DhcpOption::DomainNameServer(vec![address("10.1.0.2")]))
    );
    assert_eq!(
        options.get(OptionCode::DomainName),
        Some(&DhcpOption::DomainName("us-test-1.compute.internal".into()))
    );
    world.vpcs[0].domain_name = Some("corp.example".into());
    world.vpcs[0].domain_name_servers = vec!["10.1.9.9".into()];
    let reply = answer(&world, &request(MAC_A, MessageType::Discover, &[])).unwrap();
    assert_eq!(
        reply.opts().get(OptionCode::DomainNameServer),
        Some(&DhcpOption::DomainNameServer(vec![address("10.1.9.9")]))
    );
    assert_eq!(
        reply.opts().get(OptionCode::DomainName),
        Some(&DhcpOption::DomainName("corp.example".into()))
    );
}

#[test]
fn another_address_is_refused_and_a_stranger_gets_none() {
    let world = world();
    let wish = |at: &str| DhcpOption::RequestedIpAddress(address(at));
    let kind =
        |message: &Message| answer(&world, message).and_then(|reply| reply.opts().msg_type());
    assert_eq!(
        kind(&request(MAC_A, MessageType::Request, &[wish("10.1.1.11")])),
        Some(MessageType::Ack)
    );
    assert_eq!(
        kind(&request(MAC_A, MessageType::Request, &[wish("10.1.1.12")])),
        Some(MessageType::Nak)
    );
    let other = DhcpOption::ServerIdentifier(address("10.9.9.9"));
    assert_eq!(
        kind(&request(
            MAC_A,
            MessageType::Request,
            &[wish("10.1.1.11"), other]
        )),
        None
    );
    assert_eq!(
        kind(&request([2, 1, 1, 1, 1, 1], MessageType::Discover, &[])),
        None
    );
    assert!(dhcp::answer(&world, b"no message").is_none());
}

#[test]
fn hosts_get_leases_over_the_wire() {
    if skipped("hosts_get_leases_over_the_wire") {
        return;
    }
    let bench = Bench::new("net-dhcp", world());
    let (worlds, receiver) = tokio::sync::watch::channel(Arc::new(bench.world.clone()));
    let place = bench.place.clone();
    let server = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(dhcp::serve(&place, receiver))
    });
    for (host, own, broadcast) in [
        (A, "10.1.1.11", false),
        (B, "10.1.1.12", true),
        (D, "10.2.1.14", false),
    ] {
        let octets = address(own).octets();
        let mut message = request(
            [2, 0x0e, octets[0], octets[1], octets[2], octets[3]],
            MessageType::Discover,
            &[],
        );
        if broadcast {
            message.set_flags(Flags::default().set_broadcast());
        }
        let client = lab::network::netns::inside(&bench.netns(host), client).unwrap();
        let mut buffer = [0; 1500];
        // The server may not listen yet: clients ask again.
        let length = (0..50)
            .find_map(|_| {
                client
                    .send_to(&message.to_vec().unwrap(), "255.255.255.255:67")
                    .unwrap();
                client.recv(&mut buffer).ok()
            })
            .unwrap_or_else(|| {
                panic!(
                    "{host} got no offer; server ended: {}",
                    server.is_finished()
                )
            });
        let reply = Message::decode(&mut Decoder::new(&buffer[..length])).unwrap();
        assert_eq!(reply.yiaddr(), address(own));
    }
    drop(worlds);
    server.join().unwrap().unwrap();
}

/// As a client that has no address yet: bound to the device.
fn client() -> UdpSocket {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap();
    socket.set_broadcast(true).unwrap();
    socket.bind_device(Some(b"eth0")).unwrap();
    socket.set_read_timeout(Some(PATIENCE / 50)).unwrap();
    socket
        .bind(&SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 68).into())
        .unwrap();
    socket.into()
}
