//! Trials over TCP: a connection, and bytes that a listener sends back, few at first and then as many as fill packets.

use super::trials::{Pace, outcome_of};
use node::probe::Outcome;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Bytes that fit into any packet.
const FEW: usize = 64;

/// Bytes that fill many packets of any size, each way.
const MANY: usize = 256 << 10;

/// Opens a connection.
pub(super) async fn connect(to: SocketAddr, pace: &Pace) -> Result<TcpStream, Outcome> {
    match timeout(pace.connection, TcpStream::connect(to)).await {
        Ok(connected) => connected.map_err(|error| outcome_of(&error)),
        Err(_) => Err(Outcome::Silent),
    }
}

/// A few bytes to a listener and back, then many.
pub(super) async fn try_transfer(to: SocketAddr, pace: &Pace) -> Result<(), Outcome> {
    let mut stream = connect(to, pace).await?;
    exchange(&mut stream, FEW, pace).await?;
    let many = exchange(&mut stream, MANY, pace).await;
    many.map_err(|outcome| match outcome {
        Outcome::Silent => Outcome::LargeLost,
        other => other,
    })
}

/// Sends so many bytes, and waits until as many have come back. Both at the same time: a listener that gets no bytes off takes none.
async fn exchange(stream: &mut TcpStream, bytes: usize, pace: &Pace) -> Result<(), Outcome> {
    let sent = vec![0x5a; bytes];
    let mut back = vec![0; bytes];
    let (mut from, mut to) = stream.split();
    let both = async { tokio::try_join!(to.write_all(&sent), from.read_exact(&mut back)) };
    match timeout(pace.transfer, both).await {
        Ok(exchanged) => exchanged.map(drop).map_err(|error| outcome_of(&error)),
        Err(_) => Err(Outcome::Silent),
    }
}
