//! The command line. Written by hand: two flags are not worth a parser's size on every machine.

use std::path::PathBuf;

/// How it is called.
pub const USAGE: &str =
    "usage: protokube --boot-config FILE --node-config FILE | --version | --help";

/// What it is called for.
#[derive(Debug, PartialEq, Eq)]
pub enum Called {
    /// To run.
    Run(Arguments),
    /// To say this, and no more.
    Say(String),
}

/// What it runs with.
#[derive(Debug, PartialEq, Eq)]
pub struct Arguments {
    /// BootConfig, as user data wrote it: where the state store is.
    pub boot_config: PathBuf,
    /// NodeConfig, as nodeup verified and wrote it.
    pub node_config: PathBuf,
}

/// Reads the arguments; an error is one of usage.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Called, String> {
    let mut arguments = arguments.into_iter();
    let (mut boot_config, mut node_config) = (None, None);
    while let Some(argument) = arguments.next() {
        let place = match argument.as_str() {
            "--version" => {
                let version = concat!("protokube ", env!("CARGO_PKG_VERSION"));
                return Ok(Called::Say(version.to_owned()));
            }
            "--help" | "-h" => return Ok(Called::Say(USAGE.to_owned())),
            "--boot-config" => &mut boot_config,
            "--node-config" => &mut node_config,
            other => return Err(format!("unknown argument {other}")),
        };
        let file = arguments
            .next()
            .ok_or_else(|| format!("{argument} needs a file"))?;
        *place = Some(PathBuf::from(file));
    }
    Ok(Called::Run(Arguments {
        boot_config: boot_config.ok_or("--boot-config is missing")?,
        node_config: node_config.ok_or("--node-config is missing")?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Called, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn both_files_are_needed_in_any_order() {
        let wanted = Called::Run(Arguments {
            boot_config: "b".into(),
            node_config: "n".into(),
        });
        for line in [
            "--boot-config b --node-config n",
            "--node-config n --boot-config b",
        ] {
            assert_eq!(parsed(line).unwrap(), wanted);
        }
        for line in [
            "",
            "--boot-config b",
            "--node-config n",
            "--boot-config b --node-config",
            "--boot-config b --node-config n --master",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
