//! Bytes both ways between a client and an API server, and when a connection ends that nobody ends: an API server may hang whose system still
//! takes everything, and a host may go without a word.

use futures::future::select;
use rustix::net::sockopt;
use std::io;
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncWriteExt as _, copy};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::time::timeout;

/// When a connection on which nothing is sent asks whether the other host has it still, and how often from then on.
const IDLE: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_secs(10);

/// Lets the system break off a connection to a host that is silent, or takes no more of what was sent, for so long.
pub(super) fn limit_silence(server: &TcpStream, silence: Duration) -> rustix::io::Result<()> {
    // 0 is what the system does by itself.
    let milliseconds = u32::try_from(silence.as_millis()).unwrap_or_default();
    sockopt::set_tcp_user_timeout(server, milliseconds)?;
    sockopt::set_tcp_keepidle(server, IDLE)?;
    sockopt::set_tcp_keepintvl(server, AGAIN)?;
    sockopt::set_socket_keepalive(server, true)
}

/// Copies until both sides have ended, or one breaks off. Once one has ended, the other one has so much time.
pub(super) async fn copy_both_ways(
    client: &mut TcpStream,
    server: &mut TcpStream,
    time: Duration,
) -> io::Result<()> {
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let requests = pin!(copy_to_end(from_client, to_server));
    let answers = pin!(copy_to_end(from_server, to_client));
    let (ended, other) = select(requests, answers).await.factor_first();
    ended?;
    timeout(time, other).await.unwrap_or(Ok(()))
}

async fn copy_to_end(mut from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> io::Result<()> {
    copy(&mut from, &mut to).await?;
    to.shutdown().await
}
