//! The command line of `nodeup probe`, which `kctl preflight --live` writes into pods.

use node::probe::Trial;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// One-line usage, printed with errors.
pub const USAGE: &str = "usage: nodeup probe listen --at ADDRESS:PORT --seconds N | nodeup probe try --trials JSON --seconds N --report FILE";

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Probe {
    /// Send back what comes, by TCP and UDP.
    Listen {
        at: SocketAddr,
        /// When it ends.
        limit: Duration,
    },
    /// Try these, and report.
    Try {
        trials: Vec<Trial>,
        /// When it reports, whatever is under way.
        limit: Duration,
        report: PathBuf,
    },
}

/// Parses what follows the word `probe`. The error is a usage message.
pub fn parse_probe(arguments: &[String]) -> Result<Probe, String> {
    let mut words = arguments.iter().map(String::as_str);
    let verb = words.next().ok_or("listen or try is missing")?;
    let (mut at, mut trials, mut seconds, mut report) = (None, None, None, None);
    while let Some(option) = words.next() {
        let place = match option {
            "--at" => &mut at,
            "--trials" => &mut trials,
            "--seconds" => &mut seconds,
            "--report" => &mut report,
            other => return Err(format!("unknown argument {other}")),
        };
        *place = Some(words.next().ok_or(format!("{option} needs a value"))?);
    }
    let seconds = seconds.ok_or("--seconds is missing")?;
    let limit = seconds
        .parse::<u64>()
        .map_err(|error| format!("--seconds {seconds}: {error}"))?;
    let limit = Duration::from_secs(limit);
    match (verb, at, trials, report) {
        ("listen", Some(at), None, None) => Ok(Probe::Listen {
            at: at
                .parse::<SocketAddr>()
                .map_err(|error| format!("--at {at}: {error}"))?,
            limit,
        }),
        ("try", None, Some(trials), Some(report)) => Ok(Probe::Try {
            trials: serde_json::from_str(trials).map_err(|error| format!("--trials: {error}"))?,
            limit,
            report: report.into(),
        }),
        _ => Err("an option is missing, or belongs to the other verb".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::probe::{REPORT_FILE, listen_arguments, try_arguments};

    /// What follows the word `probe`.
    fn parse_rest(all: &[String]) -> Result<Probe, String> {
        assert_eq!(all.first().map(String::as_str), Some("probe"));
        parse_probe(&all[1..])
    }

    #[test]
    fn what_kctl_writes_into_pods_is_understood_and_anything_less_is_not() {
        let to: SocketAddr = "10.0.0.1:443".parse().unwrap();
        let name = "kubernetes.default.svc.cluster.local".to_owned();
        let trials = vec![
            Trial::Connect { to },
            Trial::Datagrams { to },
            Trial::Transfer { to },
            Trial::Resolve { server: to, name },
        ];
        let listen = listen_arguments("[::]:3999".parse().unwrap(), 300);
        assert_eq!(
            parse_rest(&listen),
            Ok(Probe::Listen {
                at: "[::]:3999".parse().unwrap(),
                limit: Duration::from_mins(5),
            })
        );
        let tries = try_arguments(&trials, 60).unwrap();
        assert_eq!(
            parse_rest(&tries),
            Ok(Probe::Try {
                trials,
                limit: Duration::from_mins(1),
                report: REPORT_FILE.into(),
            })
        );
        for all in [listen, tries] {
            // Each option has a value.
            for end in 1..all.len() {
                assert!(parse_rest(&all[..end]).is_err(), "{:?}", &all[..end]);
            }
            let more = [&all[..], &["--force".to_owned()]].concat();
            assert!(parse_rest(&more).is_err(), "{more:?}");
        }
    }
}
