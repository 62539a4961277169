//! What passes through the front to the simulator, and back.

use crate::support::{TestFront, curl, instance, read_head, stand_in, value, world};
use lab::world::{Instance, InstanceState, World};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Answers with the head and the body that came.
async fn echo() -> SocketAddr {
    stand_in(|head, body| [head.into_bytes(), body].concat()).await
}

#[tokio::test]
async fn the_log_names_the_instance_behind_a_public_address() {
    let mut client = instance("i-1", "vpc-1", Ipv4Addr::new(10, 0, 0, 4));
    client.public_address = Some(Ipv4Addr::LOCALHOST);
    let elsewhere = instance("i-2", "vpc-1", Ipv4Addr::LOCALHOST);
    for (instances, named) in [
        (vec![elsewhere.clone(), client.clone()], "i-1"),
        // Its address is somebody else's by now.
        (
            vec![Instance {
                state: InstanceState::Terminated,
                ..client
            }],
            "",
        ),
        (vec![elsewhere], ""),
    ] {
        let world = World {
            instances,
            ..world()
        };
        let front = TestFront::of(echo().await, world).await;
        for url in ["http://sts.amazonaws.com/", "http://dl.k8s.io/missing"] {
            front.get(&[url]).await.expect("an answer");
        }
        let found: Vec<_> = front
            .log()
            .iter()
            .map(|line| line["instance"].as_str().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(found, [named, named]);
    }
}

#[tokio::test]
async fn what_a_client_signs_arrives_as_it_was_sent() {
    let front = TestFront::before(echo().await).await;
    let body: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    front.write("body", &body);
    let file = format!("@{}", front.folder.path().join("body").display());
    let path = "/a//b/%7Ec%2f/../d?X=%20+&b&a=1&a=%3D";
    let arguments = [
        "--path-as-is",
        "-X",
        "PUT",
        "--data-binary",
        &file,
        "-H",
        "X-Amz-Meta-One: a  b ",
        "-H",
        "X-Twice: 1",
        "-H",
        "X-Twice: 2",
        "-H",
        "X-Kctl-Lab-Source: 1.2.3.4",
        "-H",
        "Connection: X-Near",
        "-H",
        "X-Near: only",
    ];
    for scheme in ["https", "http"] {
        let url = format!("{scheme}://bucket.s3.eu-west-1.amazonaws.com{path}");
        let arguments = [arguments.as_slice(), &[&url]].concat();
        let answer = front.get(&arguments).await.expect("an answer");
        let head_end = answer
            .body
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .expect("head")
            + 4;
        let (head, echoed) = answer.body.split_at(head_end);
        let head = std::str::from_utf8(head).expect("text");
        assert!(echoed == body, "the body is intact");
        assert!(
            head.starts_with(&format!("PUT {path} HTTP/1.1\r\n")),
            "{head}"
        );
        assert_eq!(
            value(head, "host"),
            Some("bucket.s3.eu-west-1.amazonaws.com")
        );
        assert_eq!(value(head, "X-Amz-Meta-One"), Some("a  b"));
        assert_eq!(head.matches("X-Twice: ").count(), 2);
        assert_eq!(value(head, "content-length"), Some("100000"));
        assert_eq!(value(head, "x-near"), None, "of the connection only");
        assert_eq!(value(head, "x-kctl-lab-source"), Some("127.0.0.1"));
        assert_eq!(head.to_lowercase().matches("x-kctl-lab-source").count(), 1);
    }
    assert_eq!(front.log()[0]["service"], "aws");
}

#[tokio::test]
async fn each_name_has_its_certificate_and_the_authority_stays() {
    let front = TestFront::before(echo().await).await;
    for name in [
        "ec2.us-east-1.amazonaws.com",
        "sts.amazonaws.com",
        "ec2.us-east-1.api.aws",
    ] {
        let url = format!("https://{name}/");
        assert_eq!(front.get(&[&url]).await.expect("an answer").status, 200);
    }
    let connect = format!("::{}", front.tls);
    let untrusting = ["--connect-to", &connect, "https://sts.amazonaws.com/"];
    assert!(
        curl(&untrusting).await.is_none(),
        "the machine does not trust the lab"
    );

    let before = std::fs::read(front.ca()).expect("certificate");
    let again = lab::services::ca::Ca::open(front.folder.path()).expect("authority");
    assert_eq!(again.pem().as_bytes(), before);
    let key = front.folder.path().join("ca.key");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(key).expect("key").permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
}

/// The client sends each piece only when the piece before has come back, so none of the three may wait for a whole
/// body, and nobody holds more than a piece.
#[tokio::test]
async fn bodies_of_any_size_stream_in_both_directions() {
    const PIECE: usize = 500_000;
    const PIECES: usize = 100;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let simulator = listener.local_addr().expect("address");
    let head = format!("Content-Length: {}\r\n\r\n", PIECE * PIECES);
    let answer = format!("HTTP/1.1 200 OK\r\n{head}");
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let (_, begun) = read_head(&mut stream).await.expect("a request");
        stream.write_all(answer.as_bytes()).await.expect("head");
        stream.write_all(&begun).await.expect("body");
        let (mut from, mut to) = stream.split();
        tokio::io::copy(&mut from, &mut to).await.expect("echo");
    });
    let front = TestFront::before(simulator).await;
    let mut client = TcpStream::connect(front.plain).await.expect("connects");
    let request = format!("PUT /x HTTP/1.1\r\nHost: s3.us-east-1.amazonaws.com\r\n{head}");
    client.write_all(request.as_bytes()).await.expect("head");
    let whole = async {
        for turn in 0..PIECES {
            let piece = vec![u8::try_from(turn).expect("byte"); PIECE];
            client.write_all(&piece).await.expect("a piece");
            let mut came = Vec::new();
            if turn == 0 {
                let (head, rest) = read_head(&mut client).await.expect("an answer");
                assert!(head.starts_with("HTTP/1.1 200"), "{head}");
                came = rest;
            }
            let begun = came.len();
            came.resize(PIECE, 0);
            client.read_exact(&mut came[begun..]).await.expect("echo");
            assert!(came == piece, "piece {turn}");
        }
    };
    let done = tokio::time::timeout(Duration::from_mins(2), whole).await;
    assert!(done.is_ok(), "somebody waits for the whole body");
}

#[tokio::test]
async fn a_simulator_that_plays_dead_is_dead_to_the_client_too() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let simulator = listener.local_addr().expect("address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            read_head(&mut stream).await;
        }
    });
    let front = TestFront::before(simulator).await;
    let answer = front.get(&["https://ec2.us-east-1.amazonaws.com/"]).await;
    assert!(answer.is_none(), "{answer:?}");
    assert_eq!(front.log()[0]["status"], 0);
}

#[tokio::test]
async fn a_simulator_that_is_not_there_is_said_to_be_not_there() {
    let closed = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let address = closed.local_addr().expect("address");
    drop(closed);
    let front = TestFront::before(address).await;
    let url = "https://ec2.us-east-1.amazonaws.com/";
    let answer = front.get(&[url]).await.expect("an answer");
    assert_eq!(answer.status, 503);
    assert!(
        answer.text().contains("does not listen"),
        "{}",
        answer.text()
    );
}

#[tokio::test]
async fn signatures_in_query_strings_are_not_logged() {
    let front = TestFront::before(echo().await).await;
    let url = "https://sts.us-east-1.amazonaws.com/?Action=GetCallerIdentity&X-Amz-Signature=abc&x-amz-credential=d";
    front.get(&[url]).await.expect("an answer");
    assert_eq!(front.log()[0]["path"], "/?Action=GetCallerIdentity");
}
