//! Parses the command line by hand, because an argument parser would enlarge the binary.

use crate::admin_kubeconfig::{self, AdminKubeconfig, parse_admin_kubeconfig};
use crate::etcd_backup::arguments::{self as etcd_backup, EtcdBackup, parse_etcd_backup};
use std::path::PathBuf;

/// One-line usage, printed with errors and for `--help`.
pub const USAGE: &str = "usage: protokube --boot-config FILE --node-config FILE | admin-kubeconfig | etcd-backup VERB | --version | --help";

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Invocation {
    Run(Arguments),
    AdminKubeconfig(AdminKubeconfig),
    EtcdBackup(Box<EtcdBackup>),
    /// Print this text and exit.
    Say(String),
}

/// Arguments of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// Path of the BootConfig that user data wrote.
    pub boot_config: PathBuf,
    /// Path of the NodeConfig that nodeup verified.
    pub node_config: PathBuf,
}

/// Parses the arguments. The error is a usage message.
pub fn parse_arguments(arguments: impl IntoIterator<Item = String>) -> Result<Invocation, String> {
    let mut arguments = arguments.into_iter();
    let (mut boot_config, mut node_config) = (None, None);
    while let Some(argument) = arguments.next() {
        let place = match argument.as_str() {
            "--version" => {
                let version = concat!("protokube ", env!("CARGO_PKG_VERSION"));
                return Ok(Invocation::Say(version.to_owned()));
            }
            "admin-kubeconfig" => {
                let usage = || Invocation::Say(admin_kubeconfig::USAGE.to_owned());
                let parsed = parse_admin_kubeconfig(arguments)?;
                return Ok(parsed.map_or_else(usage, Invocation::AdminKubeconfig));
            }
            "etcd-backup" => {
                let usage = || Invocation::Say(etcd_backup::USAGE.to_owned());
                let parsed = parse_etcd_backup(arguments)?;
                return Ok(
                    parsed.map_or_else(usage, |command| Invocation::EtcdBackup(Box::new(command)))
                );
            }
            "--help" | "-h" => return Ok(Invocation::Say(USAGE.to_owned())),
            "--boot-config" => &mut boot_config,
            "--node-config" => &mut node_config,
            other => return Err(format!("unknown argument {other}")),
        };
        let file = arguments
            .next()
            .ok_or_else(|| format!("{argument} needs a file"))?;
        *place = Some(PathBuf::from(file));
    }
    Ok(Invocation::Run(Arguments {
        boot_config: boot_config.ok_or("--boot-config is missing")?,
        node_config: node_config.ok_or("--node-config is missing")?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<Invocation, String> {
        parse_arguments(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn both_files_are_needed_in_any_order() {
        let wanted = Invocation::Run(Arguments {
            boot_config: "b".into(),
            node_config: "n".into(),
        });
        for line in [
            "--boot-config b --node-config n",
            "--node-config n --boot-config b",
        ] {
            assert_eq!(parse_line(line).unwrap(), wanted);
        }
        for line in [
            "",
            "--boot-config b",
            "--node-config n",
            "--boot-config b --node-config",
            "--boot-config b --node-config n --master",
        ] {
            assert!(parse_line(line).is_err(), "{line}");
        }
    }
}
