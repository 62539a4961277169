//! The command line. Written by hand: three flags are not worth a parser's size on every machine.

use std::io::Write;
use std::path::PathBuf;

/// How it is called.
pub const USAGE: &str = "usage: nodeup --boot-config FILE [--certificates] [--dry-run] [--root DIR] | --version | --help";

const HELP: &str = "
Makes this machine a Kubernetes node, in stages: identify, fetch, verify, build, apply, report. Runs at every boot; what
is as it should be is left alone. One JSON line a stage goes to standard error.

  --boot-config FILE  what user data wrote: cluster, instance group, sha256 of the group's configuration
  --certificates      renew certificates that end soon, and leave everything else as it is: what a timer does once a week
  --dry-run           print what would be changed, as JSON, and change nothing
  --root DIR          look at the machine below DIR, and change that: with --dry-run, or for tests
  --version           print the version
  --help              print this

example: what would the next boot change on this machine?
  nodeup --boot-config /opt/kctl/boot.yaml --dry-run";

/// What it is called with.
#[derive(Debug, PartialEq, Eq)]
pub struct Arguments {
    /// BootConfig, as user data wrote it.
    pub boot_config: PathBuf,
    /// Certificates only.
    pub certificates: bool,
    /// Show what would be done.
    pub dry_run: bool,
    /// The machine's root folder.
    pub root: PathBuf,
}

/// Reads the arguments; `None` if the answer was printed already.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Option<Arguments>, String> {
    let mut arguments = arguments.into_iter();
    let mut boot_config = None;
    let mut root = PathBuf::from("/");
    let (mut certificates, mut dry_run) = (false, false);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--version" => return Ok(said(concat!("nodeup ", env!("CARGO_PKG_VERSION")))),
            "--help" | "-h" => return Ok(said(&format!("{USAGE}\n{HELP}"))),
            "--certificates" => certificates = true,
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
    Ok(Some(Arguments {
        boot_config,
        certificates,
        dry_run,
        root,
    }))
}

fn said<T>(text: &str) -> Option<T> {
    let _ = writeln!(std::io::stdout(), "{text}");
    None
}

#[cfg(test)]
mod tests {
    use super::{Arguments, parse};
    use std::path::Path;

    fn parsed(line: &str) -> Result<Option<Arguments>, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_boot_config_is_all_it_needs() {
        let arguments = parsed("--boot-config /opt/kctl/boot.yaml --dry-run")
            .unwrap()
            .unwrap();
        assert_eq!(
            (arguments.boot_config.to_str(), arguments.dry_run),
            (Some("/opt/kctl/boot.yaml"), true)
        );
        assert_eq!(arguments.root, Path::new("/"));
        for wrong in ["", "--boot-config", "--boot-config a --force", "--root"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
