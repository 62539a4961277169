//! Trials over UDP: datagrams that a listener sends back, up to the size of a packet, and a question to a DNS server.

use super::trials::{Pace, outcome_of};
use node::probe::Outcome;
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, ip_mtu, ipv6_mtu, set_ip_mtu_discover,
    set_ipv6_mtu_discover,
};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::net::UdpSocket;
use tokio::time::timeout;

/// Bytes of the largest packet.
pub(super) const LARGEST: usize = 65535;

/// Bytes of a datagram that every network passes.
const SMALL: usize = 64;

/// Bytes of the headers of UDP and IP.
const HEADERS_V4: usize = 8 + 20;
const HEADERS_V6: usize = 8 + 40;

/// How often a datagram is sent that nobody answers: any may get lost.
const ATTEMPTS: u32 = 3;

/// Lets a socket send datagrams that nobody on the way may fragment, of any size that the interface takes, whatever is known of the way.
pub(super) fn never_fragment(socket: &UdpSocket) -> io::Result<()> {
    let set = match socket.local_addr()?.ip() {
        IpAddr::V4(_) => set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::PROBE),
        IpAddr::V6(_) => set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::PROBE),
    };
    set.map_err(io::Error::from)
}

/// A socket that sends only there, and hears only from there.
async fn open_towards(to: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = match to.ip() {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(to).await?;
    never_fragment(&socket)?;
    Ok(socket)
}

/// Bytes of a full packet on the way of a socket, by its interface and routes.
fn full_packet(socket: &UdpSocket) -> io::Result<u32> {
    Ok(match socket.peer_addr()?.ip() {
        IpAddr::V4(_) => ip_mtu(socket)?,
        IpAddr::V6(_) => ipv6_mtu(socket)?,
    })
}

/// Bytes of a full packet on the way there.
pub(super) async fn packet_towards(to: SocketAddr) -> io::Result<u32> {
    full_packet(&open_towards(to).await?)
}

/// Small datagrams to a listener and back, then such that fill a packet.
pub(super) async fn try_datagrams(to: SocketAddr, pace: &Pace) -> Result<(), Outcome> {
    let socket = open_towards(to).await.map_err(|error| outcome_of(&error))?;
    let packet = full_packet(&socket).map_err(|error| outcome_of(&error))?;
    let packet = usize::try_from(packet).unwrap_or(LARGEST).min(LARGEST);
    let headers = match to.ip() {
        IpAddr::V4(_) => HEADERS_V4,
        IpAddr::V6(_) => HEADERS_V6,
    };
    echo(&socket, SMALL, pace).await?;
    let full = echo(&socket, packet.saturating_sub(headers), pace).await;
    full.map_err(|outcome| match outcome {
        Outcome::Silent => Outcome::LargeLost,
        other => other,
    })
}

async fn echo(socket: &UdpSocket, length: usize, pace: &Pace) -> Result<(), Outcome> {
    let sent = vec![0x5a; length];
    ask(socket, &sent, |answer| answer == sent, pace).await
}

/// Asks a DNS server for the IPv4 addresses of a name. Any answer to the question will do: it has come.
pub(super) async fn try_name(server: SocketAddr, name: &str, pace: &Pace) -> Result<(), Outcome> {
    let socket = open_towards(server).await;
    let socket = socket.map_err(|error| outcome_of(&error))?;
    let question = dns_question(name);
    let is_answer = |answer: &[u8]| {
        let is_response = answer.get(2).is_some_and(|flags| flags & 0x80 != 0);
        is_response && answer.get(..2) == question.get(..2)
    };
    ask(&socket, &question, is_answer, pace).await
}

/// A question for the IPv4 addresses of a name (RFC 1035, 4.1). Labels of more than 63 bytes, which no name has, are cut.
fn dns_question(name: &str) -> Vec<u8> {
    // An identifier, a question that wants recursion, one entry of questions and none of others.
    let mut bytes = b"kc\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00".to_vec();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        let label: Vec<u8> = label.bytes().take(63).collect();
        bytes.extend(u8::try_from(label.len()));
        bytes.extend(label);
    }
    // The root, type A, class IN.
    bytes.extend([0, 0, 1, 0, 1]);
    bytes
}

/// Sends the same datagram until an answer comes.
async fn ask(
    socket: &UdpSocket,
    sent: &[u8],
    is_answer: impl Fn(&[u8]) -> bool,
    pace: &Pace,
) -> Result<(), Outcome> {
    let mut buffer = vec![0; LARGEST];
    for _ in 0..ATTEMPTS {
        let sent = socket.send(sent).await;
        sent.map_err(|error| outcome_of(&error))?;
        let heard = async {
            loop {
                let length = socket.recv(&mut buffer).await?;
                if buffer.get(..length).is_some_and(&is_answer) {
                    return Ok::<(), io::Error>(());
                }
            }
        };
        if let Ok(heard) = timeout(pace.datagram, heard).await {
            return heard.map_err(|error| outcome_of(&error));
        }
    }
    Err(Outcome::Silent)
}

#[cfg(test)]
mod tests {
    use super::dns_question;

    #[test]
    fn a_question_is_as_dns_wants_it() {
        assert_eq!(
            dns_question("a.example."),
            b"kc\x01\0\0\x01\0\0\0\0\0\0\x01a\x07example\0\0\x01\0\x01"
        );
    }
}
