//! The command line. Written by hand: two flags are not worth a parser's size on every machine.

use std::io::Write;
use std::path::PathBuf;

/// How it is called.
pub const USAGE: &str = "usage: nodeup --boot-config FILE [--dry-run] | --version | --help";

/// What it is called with.
#[derive(Debug, PartialEq, Eq)]
pub struct Arguments {
    /// BootConfig, as user data wrote it.
    pub boot_config: PathBuf,
    /// Show what would be done.
    pub dry_run: bool,
}

/// Reads the arguments; `None` if the answer was printed already.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Option<Arguments>, String> {
    let mut arguments = arguments.into_iter();
    let mut boot_config = None;
    let mut dry_run = false;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--version" => return Ok(said(concat!("nodeup ", env!("CARGO_PKG_VERSION")))),
            "--help" | "-h" => return Ok(said(USAGE)),
            "--dry-run" => dry_run = true,
            "--boot-config" => {
                let file = arguments.next().ok_or("--boot-config needs a file")?;
                boot_config = Some(PathBuf::from(file));
            }
            other => return Err(format!("unknown argument {other}")),
        }
    }
    let boot_config = boot_config.ok_or("--boot-config is missing")?;
    Ok(Some(Arguments {
        boot_config,
        dry_run,
    }))
}

fn said<T>(text: &str) -> Option<T> {
    let _ = writeln!(std::io::stdout(), "{text}");
    None
}

#[cfg(test)]
mod tests {
    use super::{Arguments, parse};

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
        assert!(
            parsed("").is_err()
                && parsed("--boot-config").is_err()
                && parsed("--boot-config a --force").is_err()
        );
    }
}
