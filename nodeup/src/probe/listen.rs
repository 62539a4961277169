//! A listener that sends back whatever comes, by TCP and UDP at the same port. Every pod may reach it, so that what it serves has limits.

use super::datagrams::{LARGEST, never_fragment};
use anyhow::Context as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::copy;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::sleep;

/// Pause after a failed call, which means that something has run out.
const PAUSE: Duration = Duration::from_millis(100);

/// How many connections there may be at once. Each of the other nodes that take part has one: 11 at most.
const CONNECTIONS: usize = 64;

/// Both sockets.
#[derive(Debug)]
pub struct Listener {
    tcp: TcpListener,
    udp: UdpSocket,
}

impl Listener {
    /// Listens at an address. UDP gets the port of TCP, also if that is any.
    pub async fn bind(at: SocketAddr) -> anyhow::Result<Self> {
        let context = || format!("could not listen on {at}");
        let tcp = TcpListener::bind(at).await.with_context(context)?;
        let at = tcp.local_addr().with_context(context)?;
        let udp = UdpSocket::bind(at).await.with_context(context)?;
        never_fragment(&udp).with_context(context)?;
        Ok(Self { tcp, udp })
    }

    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Answers for ever.
    pub async fn serve(self) {
        tokio::join!(answer_streams(&self.tcp), answer_datagrams(&self.udp));
    }
}

async fn answer_streams(listener: &TcpListener) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        // One that is too many is closed, not left waiting: its trial then says so, and not "no answer".
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            tokio::spawn(async move {
                answer_stream(stream).await;
                drop(place);
            });
        }
    }
}

async fn answer_stream(mut stream: TcpStream) {
    let (mut from, mut to) = stream.split();
    // Who goes away wants no answer.
    let _ = copy(&mut from, &mut to).await;
}

async fn answer_datagrams(socket: &UdpSocket) {
    let own = socket.local_addr().map_or(0, |at| at.port());
    let mut buffer = vec![0; LARGEST];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
            sleep(PAUSE).await;
            continue;
        };
        // Somebody has sent it in the name of another listener, which would answer the answer, and so on.
        if from.port() == own {
            continue;
        }
        let sent = buffer.get(..length).unwrap_or_default();
        // An answer that cannot be sent is one that does not arrive.
        let _ = socket.send_to(sent, from).await;
    }
}
