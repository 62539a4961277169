//! `kctl preflight`.

use super::{ApiReach, ClusterWords, ReportFormat};
use clap::Args;
use std::net::{IpAddr, SocketAddr};

/// The port of name servers.
const DNS: u16 = 53;

/// `kctl preflight`.
#[derive(Clone, Debug, Args)]
#[command(
    override_usage = "kctl preflight [OPTIONS] [cluster] [NAME]",
    after_help = "\
Examples:
  kctl preflight demo.example.com                            before the first update, and whenever something does not connect
  kctl preflight -o json                                     for programs
  kctl preflight demo.example.com --name-server 192.0.2.53   ask this name server of the parent zone
  kctl preflight demo.example.com --live                     also try connections between nodes

Ends with 0 if no check found a problem, with 4 if one did. What could not be checked is told, and
is no problem. Changes nothing in AWS, and sends no packet to an instance without --live. With it,
pods on some nodes try connections, in a namespace that is deleted at the end."
)]
pub struct Preflight {
    /// The cluster.
    #[command(flatten)]
    pub target: ClusterWords,
    /// Name server of the parent zone to ask who serves the hosted zone [default: found by DNS]
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = parse_name_server)]
    pub name_server: Option<SocketAddr>,
    /// Also try connections between running nodes, in pods that are deleted afterwards
    #[arg(long)]
    pub live: bool,
    /// How the API is reached, with `live`.
    #[command(flatten)]
    pub reach: ApiReach,
    /// Form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: ReportFormat,
}

fn parse_name_server(text: &str) -> Result<SocketAddr, String> {
    let without_port = || {
        text.parse::<IpAddr>()
            .map(|address| SocketAddr::from((address, DNS)))
    };
    let parsed = text.parse::<SocketAddr>().or_else(|_| without_port());
    parsed.map_err(|_| {
        "expected an address such as 192.0.2.53, 192.0.2.53:5353 or [2001:db8::53]:5353".to_owned()
    })
}
