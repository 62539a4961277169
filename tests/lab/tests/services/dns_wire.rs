//! DNS over sockets: UDP, TCP, and what does not fit or is no query.

use crate::dns::{Lab, lab, record, zone};
use crate::support::world;
use hickory_proto::op::{Edns, Message, OpCode, Query, ResponseCode};
use hickory_proto::rr::{Name, RecordType};
use lab::services::dns::wire::Transport;
use lab::services::dns::{Door, Settings, serve};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

fn many_addresses() -> Lab {
    let values: Vec<String> = (0..60).map(|last| format!("10.0.0.{last}")).collect();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let mut world = world();
    world.hosted_zones = vec![zone(
        "example.com",
        &[],
        vec![record("many.example.com", "A", &values)],
    )];
    lab(Settings::default(), &world)
}

fn query(payload: Option<u16>) -> Vec<u8> {
    let mut query = Message::query();
    let name = Name::from_ascii("many.example.com.").expect("a name");
    query.add_query(Query::query(name, RecordType::A));
    if let Some(payload) = payload {
        let mut edns = Edns::new();
        edns.set_max_payload(payload);
        query.set_edns(edns);
    }
    query.to_vec().expect("a query")
}

#[tokio::test]
async fn what_does_not_fit_is_asked_for_again_by_tcp() {
    let udp = UdpSocket::bind("127.0.0.1:0").await.expect("bind");
    let tcp = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let (by_udp, by_tcp) = (
        udp.local_addr().expect("address"),
        tcp.local_addr().expect("address"),
    );
    let Lab { dns, .. } = many_addresses();
    tokio::spawn(serve(
        Arc::new(dns),
        Door::Internet,
        udp,
        tcp,
        lab::services::real_clock(),
    ));

    let client = UdpSocket::bind("127.0.0.1:0").await.expect("bind");
    client.connect(by_udp).await.expect("connects");
    for (payload, whole) in [(None, false), (Some(512), false), (Some(1232), true)] {
        client.send(&query(payload)).await.expect("sent");
        let mut buffer = [0; 4096];
        let length = client.recv(&mut buffer).await.expect("an answer");
        assert!(length <= usize::from(payload.unwrap_or(512)));
        let answer = Message::from_vec(&buffer[..length]).expect("a message");
        assert_eq!(answer.metadata.truncation, !whole);
        assert_eq!(answer.answers.len(), if whole { 60 } else { 0 });
    }
    let mut stream = TcpStream::connect(by_tcp).await.expect("connects");
    for _ in 0..2 {
        let query = query(None);
        stream
            .write_u16(u16::try_from(query.len()).expect("short"))
            .await
            .expect("sent");
        stream.write_all(&query).await.expect("sent");
        let length = stream.read_u16().await.expect("an answer");
        let mut answer = vec![0; length.into()];
        stream.read_exact(&mut answer).await.expect("an answer");
        assert_eq!(
            Message::from_vec(&answer).expect("a message").answers.len(),
            60
        );
    }
}

#[test]
fn what_is_no_query_is_refused_or_ignored() {
    let lab = many_addresses();
    let answer = |bytes: &[u8]| {
        let source = Ipv4Addr::LOCALHOST;
        let answer = lab.dns.answer(
            &Door::Internet,
            source,
            bytes,
            Transport::Udp,
            Instant::now(),
        );
        answer.map(|bytes| {
            Message::from_vec(&bytes)
                .expect("a message")
                .metadata
                .response_code
        })
    };
    assert_eq!(answer(b"short"), None);
    assert_eq!(answer(&[0xff; 12]), Some(ResponseCode::FormErr));
    let mut other = Message::from_vec(&query(None)).expect("a message");
    other.metadata.op_code = OpCode::Notify;
    assert_eq!(
        answer(&other.to_vec().expect("bytes")),
        Some(ResponseCode::NotImp)
    );
    let reply = Message::response(1, OpCode::Query);
    assert_eq!(
        answer(&reply.to_vec().expect("bytes")),
        None,
        "an answer is not answered"
    );
}
