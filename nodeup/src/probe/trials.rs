//! Tries everything at the same time, and says of each what came of it.

use super::datagrams::{packet_towards, try_datagrams, try_name};
use super::streams::{connect, try_transfer};
use futures::{StreamExt as _, stream};
use node::probe::{Outcome, ProbeReport, Trial};
use rustix::io::Errno;
use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::timeout;

/// Trials that are under way at the same time.
const AT_ONCE: usize = 32;

/// How long answers are waited for.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// For a connection: so long that its first packet is sent three times.
    pub connection: Duration,
    /// For the answer to each of three datagrams.
    pub datagram: Duration,
    /// For the bytes of a transfer.
    pub transfer: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            connection: Duration::from_secs(5),
            datagram: Duration::from_secs(2),
            transfer: Duration::from_secs(10),
        }
    }
}

/// Tries all. What has no outcome at the limit has not been tried.
pub async fn try_all(trials: &[Trial], pace: &Pace, limit: Duration) -> ProbeReport {
    let packet = match trials.iter().find_map(datagram_target) {
        Some(to) => packet_towards(to).await.ok(),
        None => None,
    };
    let mut outcomes = vec![Outcome::NotTried; trials.len()];
    let pairs = stream::iter(outcomes.iter_mut().zip(trials));
    let all = pairs.for_each_concurrent(AT_ONCE, |(outcome, trial)| async move {
        *outcome = try_one(trial, pace).await;
    });
    // The limit is no error: the outcomes say what is missing.
    let _ = timeout(limit, all).await;
    ProbeReport { packet, outcomes }
}

fn datagram_target(trial: &Trial) -> Option<SocketAddr> {
    match trial {
        Trial::Datagrams { to } => Some(*to),
        Trial::Connect { .. } | Trial::Transfer { .. } | Trial::Resolve { .. } => None,
    }
}

async fn try_one(trial: &Trial, pace: &Pace) -> Outcome {
    let tried = match trial {
        Trial::Connect { to } => connect(*to, pace).await.map(drop),
        Trial::Datagrams { to } => try_datagrams(*to, pace).await,
        Trial::Transfer { to } => try_transfer(*to, pace).await,
        Trial::Resolve { server, name } => try_name(*server, name, pace).await,
    };
    tried.err().unwrap_or(Outcome::Passed)
}

/// What an error of the system says of the way.
pub(super) fn outcome_of(error: &Error) -> Outcome {
    if Errno::from_io_error(error) == Some(Errno::MSGSIZE) {
        return Outcome::TooLarge;
    }
    match error.kind() {
        ErrorKind::ConnectionRefused => Outcome::Refused,
        ErrorKind::TimedOut => Outcome::Silent,
        // A packet filter of the sender itself denies permission.
        ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::PermissionDenied => Outcome::Unreachable,
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof => Outcome::CutOff,
        _ => Outcome::NotTried,
    }
}
