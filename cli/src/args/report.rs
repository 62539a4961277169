//! `kctl report` and `kctl dashboard`.

use super::ApiReach;
use crate::duration;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Least time between two looks of a dashboard.
const LEAST_INTERVAL: Duration = Duration::from_secs(1);

/// `kctl report`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  kctl report demo.example.com --html report.html
  kctl report --html report.html --internal

The page needs no network and no other file, and only its owner can read it.
Ends with 0 whether the cluster is healthy or not.")]
pub struct Report {
    /// The cluster; instead of --name
    #[arg(value_name = "NAME")]
    pub cluster: Option<String>,
    /// The file to write; one that is there is replaced
    #[arg(long, value_name = "FILE")]
    pub html: PathBuf,
    /// How the API is reached.
    #[command(flatten)]
    pub reach: ApiReach,
}

/// `kctl dashboard`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  kctl dashboard demo.example.com              print the address of the page, and serve it until Ctrl-C
  kctl dashboard --port 8081                   at http://127.0.0.1:8081/SECRET/
  kctl dashboard --interval 30s                ask AWS less often

Listens on 127.0.0.1 only and changes nothing. The cluster is read only while somebody looks at the page.
Others who work on this computer cannot look at it unless they know its address, which is new each time.")]
pub struct Dashboard {
    /// The cluster; instead of --name
    #[arg(value_name = "NAME")]
    pub cluster: Option<String>,
    /// The port on 127.0.0.1 [default: a free one]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// Time between two looks at the cluster, 1s or more
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_interval)]
    pub interval: Duration,
    /// How the API is reached.
    #[command(flatten)]
    pub reach: ApiReach,
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = duration::parse(text)?;
    if interval < LEAST_INTERVAL {
        return Err("it is shorter than 1s, and every look calls AWS".to_owned());
    }
    Ok(interval)
}
