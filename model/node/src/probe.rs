//! What `kctl preflight --live` lets `nodeup probe` try in pods, and what that reports: the command line, the trials and their outcomes.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Port of the listener in the network of its pod, TCP and UDP.
pub const LISTENER: u16 = 3999;

/// Where a pod leaves its report for kubelet, which puts it into the pod's status (`terminationMessagePath`): no connection to the kubelet
/// has to work for that, as it would for a log.
pub const REPORT_FILE: &str = "/dev/termination-log";

/// Most bytes that kubelet takes of a report: it cuts off the beginning of a longer one.
pub const REPORT_LIMIT: usize = 4096;

/// Most trials of one pod. A report about more could exceed the limit.
pub const MOST_TRIALS: usize = 250;

/// Something to try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Trial {
    /// A TCP connection.
    Connect { to: SocketAddr },
    /// A small datagram to a listener and back, then one that fills a packet and must not be fragmented.
    Datagrams { to: SocketAddr },
    /// A few bytes to a listener and back over TCP, then so many that they fill packets.
    Transfer { to: SocketAddr },
    /// The addresses of a name, of a DNS server over UDP.
    Resolve { server: SocketAddr, name: String },
}

/// What came of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Passed,
    /// The other side answers that nothing listens there.
    Refused,
    /// Nobody answers.
    Silent,
    /// Something answers that there is no way, or the system of the sender does not send it.
    Unreachable,
    /// Small packets pass, and full ones are lost without a word.
    LargeLost,
    /// Small packets pass. Full ones do not, and their sender is told, so that TCP takes smaller ones.
    TooLarge,
    /// The connection opened, and was ended before everything had passed.
    CutOff,
    /// It was not tried, or not to its end.
    NotTried,
}

impl Outcome {
    pub const ALL: [Self; 8] = [
        Self::Passed,
        Self::Refused,
        Self::Silent,
        Self::Unreachable,
        Self::LargeLost,
        Self::TooLarge,
        Self::CutOff,
        Self::NotTried,
    ];
}

/// What a pod reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// Size of a full packet on the way to other pods, in bytes, with IP header; `None`: no trial needed it.
    #[serde(default)]
    pub packet: Option<u32>,
    /// The outcomes in the order of the trials.
    pub outcomes: Vec<Outcome>,
}

/// The arguments of nodeup for a listener that ends after so many seconds.
pub fn listen_arguments(at: SocketAddr, seconds: u64) -> Vec<String> {
    let at = at.to_string();
    let words = ["probe", "listen", "--at", &at, "--seconds"];
    let words = words.map(str::to_owned).into_iter();
    words.chain([seconds.to_string()]).collect()
}

/// The arguments of nodeup for trials, at most [`MOST_TRIALS`], that end after so many seconds.
pub fn try_arguments(trials: &[Trial], seconds: u64) -> Result<Vec<String>, serde_json::Error> {
    let trials = serde_json::to_string(trials)?;
    let seconds = seconds.to_string();
    let words = ["probe", "try", "--trials", &trials, "--seconds", &seconds];
    let all = words.into_iter().chain(["--report", REPORT_FILE]);
    Ok(all.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_report_fits_into_the_status_of_a_pod() {
        for outcome in Outcome::ALL {
            let report = ProbeReport {
                packet: Some(u32::MAX),
                outcomes: vec![outcome; MOST_TRIALS],
            };
            let text = serde_json::to_string(&report).unwrap();
            assert!(text.len() <= REPORT_LIMIT, "{outcome:?}: {}", text.len());
            assert_eq!(serde_json::from_str::<ProbeReport>(&text).unwrap(), report);
        }
    }
}
