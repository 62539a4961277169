//! Parses the command line by hand, because an argument parser would enlarge the binary that every instance downloads
//! (docs/adr/0009-agents-parse-arguments-by-hand.md).

use std::io::Write;
use std::path::PathBuf;

/// One-line usage, printed with errors.
pub const USAGE: &str = "usage: nodeup --boot-config FILE [--api-proxy | [--certificates [--force]] [--dry-run]] [--root DIR] | --version | --help";

const HELP: &str = "
Configures this instance as a Kubernetes node, in stages: identify, fetch, verify, build, apply, report. Runs at every boot
and changes only what differs. Writes one JSON line per stage to standard error.

  --boot-config FILE  file written by user data: cluster, instance group, sha256 of NodeConfig
  --api-proxy         pass connections to 127.0.0.1:6443 on to an API server that is ready, until stopped; a unit runs this
  --certificates      renew certificates that expire soon and change nothing else; a timer runs this once a week
  --force             with --certificates: issue them all again now, with new keys, however long they are valid. Not kubelet's, which
                      kubelet renews, and not protokube's, which protokube on control planes issues whenever it starts
  --dry-run           print the plan as JSON and change nothing
  --root DIR          inspect and change the files below DIR, where /proc must be mounted; for --dry-run and tests
  --version           print the version
  --help              print this help

nodeup probe listen|try runs in pods of `kctl preflight --live`: it tries connections and changes nothing.

example: show what the next boot would change on this instance
  nodeup --boot-config /opt/kctl/boot.yaml --dry-run";

/// The parsed command line.
#[derive(Debug, PartialEq, Eq)]
pub struct Arguments {
    /// Path of the BootConfig that user data wrote.
    pub boot_config: PathBuf,
    /// True to serve the proxy of the API, and do nothing else.
    pub api_proxy: bool,
    /// True to renew certificates only.
    pub certificates: bool,
    /// True to issue all of them again, however long they are valid.
    pub force: bool,
    /// True to print the plan and change nothing.
    pub dry_run: bool,
    /// Root folder of the instance.
    pub root: PathBuf,
}

/// Parses the arguments. Returns `None` if help or version was printed. The error is a usage message.
pub fn parse_arguments(
    arguments: impl IntoIterator<Item = String>,
) -> Result<Option<Arguments>, String> {
    let mut arguments = arguments.into_iter();
    let mut boot_config = None;
    let mut root = PathBuf::from("/");
    let (mut api_proxy, mut certificates, mut force, mut dry_run) = (false, false, false, false);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--version" => return Ok(print_text(concat!("nodeup ", env!("CARGO_PKG_VERSION")))),
            "--help" | "-h" => return Ok(print_text(&format!("{USAGE}\n{HELP}"))),
            "--api-proxy" => api_proxy = true,
            "--certificates" => certificates = true,
            "--force" => force = true,
            "--dry-run" => dry_run = true,
            "--boot-config" => {
                let file = arguments.next().ok_or("--boot-config needs a file")?;
                boot_config = Some(PathBuf::from(file));
            }
            "--root" => root = arguments.next().ok_or("--root needs a folder")?.into(),
            other => return Err(format!("unknown argument {other}")),
        }
    }
    let boot_config = boot_config.ok_or("--boot-config is missing")?;
    if force && !certificates {
        return Err("--force is for --certificates only: add it, or leave out --force".to_owned());
    }
    if api_proxy && (certificates || dry_run) {
        return Err("--api-proxy changes nothing: leave out the other option".to_owned());
    }
    Ok(Some(Arguments {
        boot_config,
        api_proxy,
        certificates,
        force,
        dry_run,
        root,
    }))
}

fn print_text<T>(text: &str) -> Option<T> {
    let _ = writeln!(std::io::stdout(), "{text}");
    None
}

#[cfg(test)]
mod tests {
    use super::{Arguments, parse_arguments};
    use std::path::Path;

    fn parse_line(line: &str) -> Result<Option<Arguments>, String> {
        parse_arguments(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_boot_config_is_all_it_needs() {
        let arguments = parse_line("--boot-config /opt/kctl/boot.yaml --dry-run")
            .unwrap()
            .unwrap();
        assert_eq!(
            (arguments.boot_config.to_str(), arguments.dry_run),
            (Some("/opt/kctl/boot.yaml"), true)
        );
        assert_eq!(arguments.root, Path::new("/"));
        let proxy = parse_line("--boot-config a --api-proxy").unwrap().unwrap();
        assert!(proxy.api_proxy && !arguments.api_proxy);
        let renew = parse_line("--boot-config a --certificates --force --dry-run");
        let renew = renew.unwrap().unwrap();
        assert!(renew.force && renew.certificates && renew.dry_run && !arguments.force);
        for wrong in [
            "",
            "--boot-config",
            "--boot-config a --force",
            "--boot-config a --force --dry-run",
            "--boot-config a --api-proxy --force",
            "--boot-config a --api-proxy --certificates --force",
            "--root",
            "--boot-config a --api-proxy --dry-run",
        ] {
            assert!(parse_line(wrong).is_err(), "{wrong}");
        }
    }
}
