//! Parses `protokube etcd-backup VERB`. Names of verbs and options are those of rke-tools, where they mean the same.

use crate::arguments::Arguments;
use etcd_member::etcd_backup::{RegularSaves, ServeLimits};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// Printed for `--help`.
pub const USAGE: &str = "\
usage: protokube etcd-backup VERB [OPTIONS]

Snapshots of the etcd member of this control plane, in a folder of this instance.

  save --once --name NAME      take one snapshot, verify it, and write it to the folder
  save                         take one per --creation until stopped; delete those older than --retention
  delete --name NAME           delete one; never the newest verified one
  download --name NAME         bring one from S3 (--s3-backup) or from another control plane (--peer MEMBER)
  serve --name NAME            let other control planes download one; ends once --downloads have it
  extractstatefile --name NAME --identity FILE --file FILE
                               decrypt the spec and the keys of the cluster that lie beside a snapshot

Options
  --etcd ETCD                  the etcd cluster: main, events [default: main]
  --folder DIR                 folder of the snapshots [default: /var/lib/kctl/etcd-snapshots/ETCD]
  --creation DURATION          of save: time between two snapshots, such as 5m, 12h [default: 5m]
  --retention DURATION         of save: how long they stay in the folder [default: 24h]
  --backup-retries N           of save: how often a failed snapshot is tried again [default: 4]
  --peer MEMBER                of download: the member whose control plane serves the snapshot, such as b
  --downloads N                of serve: how many control planes download it [default: 1]
  --timeout DURATION           of serve and download: when to give up [default: 10m]
  --s3-backup                  of save, delete: also in S3; of download: from S3; in the backup store of the spec, unless a bucket is named
  --s3-bucketName BUCKET       another bucket, with --s3-backup; all below are for it only
  --s3-folder FOLDER           folder in that bucket
  --s3-region REGION           its region
  --s3-endpoint URL            another server with S3's protocol
  --s3-endpoint-ca FILE        the certificate authority of that server, PEM
  --boot-config FILE           [default: /opt/kctl/boot.yaml]
  --node-config FILE           [default: /opt/kctl/node-config.yaml]

An option that has no effect with the others is refused.
Access keys for another bucket are read from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.

Example: /opt/kctl/protokube etcd-backup save --once --name before-repair";

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdBackup {
    pub place: Place,
    /// Name of the snapshot; empty for regular ones.
    pub name: String,
    pub verb: Verb,
}

/// Where snapshots are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub configuration: Arguments,
    pub etcd: String,
    pub folder: Option<String>,
    pub s3: Option<S3Place>,
}

/// A backup store in S3.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct S3Place {
    pub bucket: Option<String>,
    pub folder: Option<String>,
    pub region: Option<String>,
    pub endpoint: Option<String>,
    pub endpoint_ca: Option<PathBuf>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    Save(Save),
    Delete,
    Download {
        peer: Option<String>,
        timeout: Duration,
    },
    Serve(ServeLimits),
    ExtractStateFile {
        identity: PathBuf,
        file: PathBuf,
    },
}

/// Options of `save`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Save {
    /// `None`: one snapshot.
    pub regularly: Option<RegularSaves>,
    pub retries: u32,
}

/// Options without a value.
const FLAGS: [&str; 2] = ["--once", "--s3-backup"];

const COMMON: [&str; 4] = ["--etcd", "--folder", "--boot-config", "--node-config"];

const S3: [&str; 6] = [
    "--s3-backup",
    "--s3-bucketName",
    "--s3-folder",
    "--s3-region",
    "--s3-endpoint",
    "--s3-endpoint-ca",
];

/// Parses what follows `etcd-backup`. `None`: print the usage. The error is a message.
pub fn parse_etcd_backup(
    arguments: impl IntoIterator<Item = String>,
) -> Result<Option<EtcdBackup>, String> {
    let mut arguments = arguments.into_iter();
    let verb = arguments.next();
    let own: &[&str] = match verb.as_deref() {
        None | Some("--help" | "-h") => return Ok(None),
        Some("save") => &[
            "--name",
            "--once",
            "--creation",
            "--retention",
            "--backup-retries",
        ],
        Some("delete") => &["--name"],
        Some("download") => &["--name", "--peer", "--timeout"],
        Some("serve") => &["--name", "--downloads", "--timeout"],
        Some("extractstatefile") => &["--name", "--identity", "--file"],
        Some(other) => return Err(format!("etcd-backup has no verb {other}")),
    };
    let verb = verb.unwrap_or_default();
    // What needs the folder only reads no configuration.
    let common = match verb.as_str() {
        "extractstatefile" => &COMMON[..2],
        _ => &COMMON,
    };
    let mut known = [own, common].concat();
    if ["save", "delete", "download"].contains(&verb.as_str()) {
        known.extend(S3);
    }
    let Some(mut options) = Options::parse(&verb, &known, arguments)? else {
        return Ok(None);
    };
    let name = options.take("--name");
    if verb == "extractstatefile" && options.has("--folder") {
        // The etcd cluster only says which folder it is else.
        options.refuse_others(&["--etcd"], "extractstatefile without --folder")?;
    }
    let place = options.take_place()?;
    let parsed = match verb.as_str() {
        "save" => Verb::Save(options.take_save(name.is_some())?),
        "delete" => Verb::Delete,
        "download" if place.s3.is_some() == options.has("--peer") => {
            return Err("download needs --s3-backup or --peer MEMBER, and not both".to_owned());
        }
        "download" => Verb::Download {
            peer: options.take("--peer"),
            timeout: options.take_duration("--timeout", Duration::from_mins(10))?,
        },
        "serve" => Verb::Serve(ServeLimits {
            downloads: options.take_number("--downloads", NonZeroUsize::MIN)?.get(),
            timeout: options.take_duration("--timeout", Duration::from_mins(10))?,
        }),
        _ => Verb::ExtractStateFile {
            identity: options.require("--identity")?.into(),
            file: options.require("--file")?.into(),
        },
    };
    let is_regular = matches!(&parsed, Verb::Save(save) if save.regularly.is_some());
    Ok(Some(EtcdBackup {
        place,
        name: match name {
            Some(name) => name,
            None if is_regular => String::new(),
            None => return Err(format!("{verb} needs --name")),
        },
        verb: parsed,
    }))
}

/// Options by name.
struct Options {
    values: BTreeMap<String, String>,
}

impl Options {
    fn parse(
        verb: &str,
        known: &[&str],
        arguments: impl IntoIterator<Item = String>,
    ) -> Result<Option<Self>, String> {
        let mut arguments = arguments.into_iter();
        let mut values = BTreeMap::new();
        while let Some(argument) = arguments.next() {
            if ["--help", "-h"].contains(&argument.as_str()) {
                return Ok(None);
            }
            let (name, given) = match argument.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (argument, None),
            };
            if !known.contains(&name.as_str()) {
                return Err(format!("etcd-backup {verb} has no option {name}"));
            }
            let value = match given {
                Some(value) => Some(value),
                None if FLAGS.contains(&name.as_str()) => Some("true".to_owned()),
                None => arguments.next(),
            };
            let value = value.filter(|value| !value.is_empty());
            let value = value.ok_or_else(|| format!("{name} needs a value"))?;
            if values.insert(name.clone(), value).is_some() {
                return Err(format!("{name} is given twice"));
            }
        }
        Ok(Some(Self { values }))
    }

    fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    fn take(&mut self, name: &str) -> Option<String> {
        self.values.remove(name)
    }

    fn take_flag(&mut self, name: &str) -> Result<bool, String> {
        match self.take(name).as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(format!("{name}: {other} is neither true nor false")),
        }
    }

    /// Fails if one of these is given, which is for `what` only.
    fn refuse_others(&self, names: &[&str], what: &str) -> Result<(), String> {
        let given = names.iter().find(|name| self.has(name));
        given.map_or(Ok(()), |name| Err(format!("{name} is for {what} only")))
    }

    fn require(&mut self, name: &str) -> Result<String, String> {
        self.take(name).ok_or_else(|| format!("{name} is missing"))
    }

    fn take_number<T: std::str::FromStr>(&mut self, name: &str, default: T) -> Result<T, String> {
        let Some(value) = self.take(name) else {
            return Ok(default);
        };
        let number = value.parse();
        number.map_err(|_| format!("{name}: {value} is no number that it takes"))
    }

    fn take_duration(&mut self, name: &str, default: Duration) -> Result<Duration, String> {
        let Some(value) = self.take(name) else {
            return Ok(default);
        };
        let period = node::backup::parse_period(&value).filter(|period| !period.is_zero());
        period.ok_or_else(|| format!("{name}: {value} is no duration such as 5m, 12h, 7d"))
    }

    fn take_place(&mut self) -> Result<Place, String> {
        let wanted = self.take_flag("--s3-backup")?;
        if !wanted {
            self.refuse_others(&S3[1..], "--s3-backup")?;
        }
        if !self.has("--s3-bucketName") {
            // The spec says where its backup store is.
            self.refuse_others(&S3[2..], "--s3-bucketName")?;
        }
        if !self.has("--s3-endpoint") {
            self.refuse_others(&["--s3-endpoint-ca"], "--s3-endpoint")?;
        }
        let mut config = |option, file: &str| {
            let default = || format!("{}/{file}", node::config::DIRECTORY);
            PathBuf::from(self.take(option).unwrap_or_else(default))
        };
        let configuration = Arguments {
            boot_config: config("--boot-config", "boot.yaml"),
            node_config: config("--node-config", "node-config.yaml"),
        };
        let s3 = S3Place {
            bucket: self.take("--s3-bucketName"),
            folder: self.take("--s3-folder"),
            region: self.take("--s3-region"),
            endpoint: self.take("--s3-endpoint"),
            endpoint_ca: self.take("--s3-endpoint-ca").map(PathBuf::from),
        };
        Ok(Place {
            configuration,
            etcd: self.take("--etcd").unwrap_or_else(|| "main".to_owned()),
            folder: self.take("--folder"),
            s3: wanted.then_some(s3),
        })
    }

    fn take_save(&mut self, is_named: bool) -> Result<Save, String> {
        let once = self.take_flag("--once")?;
        if once {
            let names = ["--creation", "--retention"];
            self.refuse_others(&names, "save without --once")?;
        }
        let regular = RegularSaves {
            creation: self.take_duration("--creation", Duration::from_mins(5))?,
            retention: self.take_duration("--retention", Duration::from_hours(24))?,
        };
        if is_named && !once {
            return Err("snapshots of save without --once are named by their time: remove --name, or add --once".to_owned());
        }
        Ok(Save {
            regularly: (!once).then_some(regular),
            retries: self.take_number("--backup-retries", 4)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<EtcdBackup, String> {
        let parsed = parse_etcd_backup(line.split_whitespace().map(str::to_owned));
        parsed.map(|parsed| parsed.expect("no usage"))
    }

    #[test]
    fn verbs_have_the_defaults_of_rke_tools() {
        let save = parse_line("save").unwrap();
        let regular = RegularSaves {
            creation: Duration::from_mins(5),
            retention: Duration::from_hours(24),
        };
        let verb = Verb::Save(Save {
            regularly: Some(regular),
            retries: 4,
        });
        assert_eq!((save.verb, save.place.s3), (verb, None));
        let once = parse_line("save --once --name n --s3-backup=true --etcd events").unwrap();
        assert!(matches!(
            once.verb,
            Verb::Save(Save {
                regularly: None,
                ..
            })
        ));
        assert_eq!(once.place.s3, Some(S3Place::default()));
        assert_eq!(
            (once.name.as_str(), once.place.etcd.as_str()),
            ("n", "events")
        );
        assert_eq!(
            once.place.configuration.boot_config.to_str(),
            Some("/opt/kctl/boot.yaml")
        );
    }

    /// A path means what it means to other programs.
    #[test]
    fn a_relative_folder_is_below_the_current_one() {
        let current = std::env::current_dir().unwrap();
        let below = |path: &str| current.join(path).display().to_string();
        for (folder, absolute) in [
            ("snapshots", below("snapshots")),
            ("./a/b", below("a/b")),
            ("../up", below("../up")),
            ("/var/snap shots", "/var/snap shots".to_owned()),
        ] {
            let words = ["delete", "--name", "n", "--folder", folder].map(str::to_owned);
            let place = parse_etcd_backup(words).unwrap().unwrap().place;
            assert_eq!(place.absolute_folder().unwrap(), absolute);
        }
        let place = parse_line("delete --name n").unwrap().place;
        let default = "/var/lib/kctl/etcd-snapshots/main";
        assert_eq!(place.absolute_folder().unwrap(), default);
    }

    #[test]
    fn documented_commands_are_understood() {
        let page = include_str!("../../../docs/operations/etcd-backup.md");
        let commands = page.lines().filter_map(|line| {
            let (_, command) = line.split_once("protokube etcd-backup ")?;
            let is_code = !line.contains('|') && !line.contains('`');
            let command = command.split(" #").next()?.trim();
            is_code.then_some(command)
        });
        let commands: Vec<&str> = commands.collect();
        assert!(commands.len() >= 8, "{commands:?}");
        for command in commands {
            assert!(parse_line(command).is_ok(), "{command}");
        }
        // Before the keys of the cluster are on a disk.
        let at = |words: &str| page.find(words).expect("the page says so");
        assert!(at("umask 077") < at("age --decrypt"));
    }

    /// Each option with a value that is not its default.
    const VALUES: [(&str, &str); 20] = [
        ("--name", "n"),
        ("--once", "true"),
        ("--creation", "7m"),
        ("--retention", "7h"),
        ("--backup-retries", "7"),
        ("--peer", "b"),
        ("--downloads", "7"),
        ("--timeout", "7m"),
        ("--identity", "i"),
        ("--file", "f"),
        ("--etcd", "events"),
        ("--folder", "/f"),
        ("--boot-config", "/b"),
        ("--node-config", "/n"),
        ("--s3-backup", "true"),
        ("--s3-bucketName", "b"),
        ("--s3-folder", "f"),
        ("--s3-region", "r"),
        ("--s3-endpoint", "https://e"),
        ("--s3-endpoint-ca", "c"),
    ];

    /// If the command is accepted, it is another one without each of its options, which its verb reads.
    #[track_caller]
    fn assert_effects(verb: &str, chosen: &[(&str, &str)]) {
        let line = |without: Option<&str>| {
            let given = chosen.iter().filter(|(name, _)| Some(*name) != without);
            let words = given.map(|(name, value)| format!("{name}={value}"));
            let words = [vec![verb.to_owned()], words.collect()].concat();
            parse_etcd_backup(words)
        };
        let Ok(Some(whole)) = line(None) else { return };
        let default = whole.place.folder() == "/f";
        for (name, _) in chosen {
            let other = line(Some(name));
            let differs = other.as_ref().ok() != Some(&Some(whole.clone()));
            let reads_it = verb != "extractstatefile"
                || (*name != "--boot-config" && *name != "--node-config")
                    && (*name != "--etcd" || !default);
            assert!(
                differs && reads_it,
                "{verb} {chosen:?}: {name} has no effect"
            );
        }
    }

    #[test]
    fn what_is_accepted_is_another_command_without_each_option() {
        for verb in ["save", "delete", "download", "serve", "extractstatefile"] {
            // All pairs and triples with what each verb may need.
            for needed in [
                &[][..],
                &[0],
                &[0, 1],
                &[0, 14],
                &[0, 14, 15],
                &[0, 5],
                &[0, 8, 9],
            ] {
                for first in 0..VALUES.len() {
                    for second in first..VALUES.len() {
                        let mut places = [needed, &[first, second]].concat();
                        places.sort_unstable();
                        places.dedup();
                        let chosen: Vec<_> = places.iter().map(|place| VALUES[*place]).collect();
                        assert_effects(verb, &chosen);
                    }
                }
            }
        }
    }

    #[test]
    fn an_option_without_an_effect_is_refused() {
        for (line, says) in [
            (
                "delete --name n --s3-backup --s3-folder f",
                "--s3-bucketName only",
            ),
            (
                "save --once --name n --s3-backup --s3-region r",
                "--s3-bucketName only",
            ),
            (
                "download --name n --s3-backup --s3-endpoint https://e",
                "--s3-bucketName only",
            ),
            (
                "delete --name n --s3-backup --s3-bucketName b --s3-endpoint-ca c",
                "--s3-endpoint only",
            ),
            (
                "extractstatefile --name n --identity i --file f --boot-config b",
                "no option --boot-config",
            ),
            (
                "extractstatefile --name n --identity i --file f --folder /f --etcd events",
                "without --folder only",
            ),
        ] {
            let why = parse_line(line).unwrap_err();
            assert!(why.contains(says), "{line}: {why}");
        }
    }

    #[test]
    fn what_is_missing_unknown_or_no_value_is_named() {
        for (line, says) in [
            ("restore", "no verb restore"),
            ("save --once", "needs --name"),
            ("save --name n", "--once"),
            ("save --creation 0m", "no duration"),
            ("save --retention 24", "no duration"),
            ("delete", "needs --name"),
            ("delete --name", "--name needs a value"),
            ("delete --name n --cleanup", "no option --cleanup"),
            ("serve --name n --s3-backup", "no option --s3-backup"),
            ("serve --name n --downloads x", "no number"),
            ("download --name n --name m", "twice"),
            ("download --name n --peer b --s3-backup", "not both"),
            ("save --once --name n --s3-bucketName b", "--s3-backup only"),
            ("save --folder=", "--folder needs a value"),
            ("serve --name n --downloads 0", "no number"),
            ("download --name n", "--s3-backup or --peer"),
            (
                "save --once --name n --s3-backup=yes",
                "neither true nor false",
            ),
            ("save --once --name n --creation 1h", "without --once only"),
            (
                "extractstatefile --name n --file f",
                "--identity is missing",
            ),
        ] {
            let why = parse_line(line).unwrap_err();
            assert!(why.contains(says), "{line}: {why}");
        }
        for line in ["", "--help", "save --help"] {
            let parsed = parse_etcd_backup(line.split_whitespace().map(str::to_owned));
            assert_eq!(parsed, Ok(None), "{line}");
        }
    }
}
