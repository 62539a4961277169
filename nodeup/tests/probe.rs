//! What `nodeup probe` says of peers that answer, refuse, say nothing, pass small packets only, or cut connections off; and that it ends.
#![cfg(test)]

use node::probe::{Outcome, ProbeReport, Trial};
use nodeup::probe::{Listener, Pace, Probe, run_probe, try_all};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use tokio::process::Command;
use tokio::time::timeout;

const PACE: Pace = Pace {
    connection: Duration::from_millis(500),
    datagram: Duration::from_millis(500),
    transfer: Duration::from_secs(5),
};

/// Longer than everything takes.
const LIMIT: Duration = Duration::from_mins(1);

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

async fn udp_socket() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind(loopback()).await.unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

async fn outcome(trial: Trial) -> Outcome {
    try_all(&[trial], &PACE, LIMIT).await.outcomes[0]
}

#[tokio::test]
async fn everything_passes_to_a_listener() {
    let listener = Listener::bind(loopback()).await.unwrap();
    let to = listener.address().unwrap();
    tokio::spawn(listener.serve());
    let trials = [
        Trial::Connect { to },
        Trial::Datagrams { to },
        Trial::Transfer { to },
    ];
    let report = try_all(&trials, &PACE, LIMIT).await;
    assert_eq!(report.outcomes, [Outcome::Passed; 3]);
    assert!(report.packet.is_some_and(|bytes| bytes >= 1280));
}

/// Any pod may reach a listener. The rest of its node must not feel that.
#[tokio::test]
async fn a_listener_serves_so_many_connections_and_closes_others() {
    let listener = Listener::bind(loopback()).await.unwrap();
    let to = listener.address().unwrap();
    tokio::spawn(listener.serve());
    let mut served = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(to).await.unwrap();
        let answer = async {
            stream.write_u8(7).await?;
            stream.read_u8().await
        };
        if timeout(LIMIT, answer).await.unwrap().is_ok() {
            served.push(stream);
        }
    }
    assert_eq!(served.len(), 64);
    assert_eq!(outcome(Trial::Transfer { to }).await, Outcome::CutOff);
    // As soon as there is a place again.
    served.pop();
    let freed = async { while outcome(Trial::Transfer { to }).await != Outcome::Passed {} };
    timeout(LIMIT, freed).await.unwrap();
}

/// Whose address a datagram has may be a lie. All listeners have the same port.
#[tokio::test]
async fn a_listener_answers_no_other_listener() {
    let listener = Listener::bind(loopback()).await.unwrap();
    let to = listener.address().unwrap();
    tokio::spawn(listener.serve());
    let other = UdpSocket::bind(("127.0.0.2", to.port())).await.unwrap();
    other.send_to(b"one", to).await.unwrap();
    let (socket, _) = udp_socket().await;
    socket.send_to(b"two", to).await.unwrap();
    let mut buffer = [0; 8];
    let (length, from) = timeout(LIMIT, socket.recv_from(&mut buffer))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((&buffer[..length], from), (&b"two"[..], to));
    // Both came in their order: an answer to the first one would be here.
    let answered = timeout(PACE.datagram, other.recv_from(&mut buffer));
    assert!(answered.await.is_err());
}

#[tokio::test]
async fn a_port_at_which_nobody_listens_refuses() {
    let to = SocketAddr::from(([127, 0, 0, 1], 1));
    for trial in [
        Trial::Connect { to },
        Trial::Transfer { to },
        Trial::Datagrams { to },
    ] {
        assert_eq!(outcome(trial.clone()).await, Outcome::Refused, "{trial:?}");
    }
}

#[tokio::test]
async fn nobody_answers_where_packets_are_dropped() {
    let (_socket, to) = udp_socket().await;
    assert_eq!(outcome(Trial::Datagrams { to }).await, Outcome::Silent);
    let name = "a.example".to_owned();
    let asked = Trial::Resolve { server: to, name };
    assert_eq!(outcome(asked).await, Outcome::Silent);

    // Linux drops the first packet of a connection that a listener has no room for.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(loopback()).unwrap();
    let listener = socket.listen(1).unwrap();
    let to = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(connected) = timeout(PACE.connection, TcpStream::connect(to)).await {
        waiting.push(connected.unwrap());
        assert!(waiting.len() < 10, "there is always room");
    }
    assert_eq!(outcome(Trial::Connect { to }).await, Outcome::Silent);
    assert_eq!(outcome(Trial::Transfer { to }).await, Outcome::Silent);
}

#[tokio::test]
async fn a_way_that_passes_small_packets_only_is_told_from_one_that_passes_none() {
    let (socket, to) = udp_socket().await;
    tokio::spawn(async move {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
            if length < 1200 {
                socket.send_to(&buffer[..length], from).await.unwrap();
            }
        }
    });
    assert_eq!(outcome(Trial::Datagrams { to }).await, Outcome::LargeLost);

    let listener = TcpListener::bind(loopback()).await.unwrap();
    let to = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 1000];
        let length = stream.read(&mut buffer).await.unwrap();
        stream.write_all(&buffer[..length]).await.unwrap();
        // It stays open, and nothing more comes back.
        std::future::pending::<()>().await;
    });
    assert_eq!(outcome(Trial::Transfer { to }).await, Outcome::LargeLost);
}

#[tokio::test]
async fn a_connection_that_ends_too_early_is_cut_off() {
    for is_after_few in [false, true] {
        let listener = TcpListener::bind(loopback()).await.unwrap();
        let to = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            if is_after_few {
                let mut few = [0; 64];
                stream.read_exact(&mut few).await.unwrap();
                stream.write_all(&few).await.unwrap();
            }
        });
        let cut_off = outcome(Trial::Transfer { to }).await;
        assert_eq!(cut_off, Outcome::CutOff, "{is_after_few}");
    }
}

#[tokio::test]
async fn any_answer_to_a_question_will_do_and_that_to_another_one_will_not() {
    for (changed, expected) in [
        (None, Outcome::Passed),
        (Some(0), Outcome::Silent),
        (Some(2), Outcome::Silent),
    ] {
        let (socket, server) = udp_socket().await;
        let answering = tokio::spawn(async move {
            let mut buffer = [0; 512];
            loop {
                let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
                // The bit of a response, and the code of a name that does not exist.
                buffer[2] |= 0x80;
                buffer[3] |= 3;
                if let Some(at) = changed {
                    buffer[at] ^= 0x80;
                }
                socket.send_to(&buffer[..length], from).await.unwrap();
            }
        });
        let name = "kubernetes.default.svc.cluster.local".to_owned();
        let asked = Trial::Resolve { server, name };
        assert_eq!(outcome(asked).await, expected, "{changed:?}");
        answering.abort();
    }
}

#[tokio::test]
async fn at_the_limit_it_reports_what_it_has() {
    let listener = Listener::bind(loopback()).await.unwrap();
    let open = listener.address().unwrap();
    tokio::spawn(listener.serve());
    let (_socket, silent) = udp_socket().await;
    let trials = [
        Trial::Datagrams { to: silent },
        Trial::Connect { to: open },
        Trial::Datagrams { to: silent },
    ];
    let patient = Pace {
        datagram: LIMIT,
        ..PACE
    };
    let begun = Instant::now();
    let report = try_all(&trials, &patient, Duration::from_secs(1)).await;
    assert!(begun.elapsed() < LIMIT);
    let (passed, rest) = (Outcome::Passed, Outcome::NotTried);
    assert_eq!(report.outcomes, [rest, passed, rest]);

    let listens = Probe::Listen {
        at: loopback(),
        limit: Duration::from_millis(200),
    };
    let ended = timeout(LIMIT, run_probe(&listens)).await;
    ended.unwrap().unwrap();
}

#[tokio::test]
async fn the_program_leaves_its_report_in_the_file() {
    let listener = Listener::bind(loopback()).await.unwrap();
    let to = listener.address().unwrap();
    tokio::spawn(listener.serve());
    let folder = TempDir::new().unwrap();
    let report = folder.path().join("report");
    let trials = serde_json::to_string(&[Trial::Connect { to }]).unwrap();
    let nodeup = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nodeup"));
        command.args(words);
        command
    };
    let words = ["probe", "try", "--trials", &trials, "--seconds", "30"];
    let place = ["--report", report.to_str().unwrap()];
    let ended = nodeup(&[&words[..], &place].concat()).status().await;
    assert!(ended.unwrap().success());
    let text = std::fs::read_to_string(&report).unwrap();
    let expected = ProbeReport {
        packet: None,
        outcomes: vec![Outcome::Passed],
    };
    assert_eq!(
        serde_json::from_str::<ProbeReport>(&text).unwrap(),
        expected
    );

    // kctl tells a nodeup that knows no trials by this code.
    let wrong = nodeup(&["probe", "guess"]).output().await;
    assert_eq!(wrong.unwrap().status.code(), Some(2));
}
