//! The top of `kctl --help`: commands in groups, examples first.

use super::Cli;
use clap::CommandFactory;
use std::fmt::Write;

/// Every visible command, in the groups and the order in which they are shown.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Change",
        &[
            "create",
            "edit",
            "replace",
            "update",
            "rolling-update",
            "reconcile",
            "upgrade",
            "promote",
            "trust",
            "distrust",
            "delete",
        ],
    ),
    (
        "Look",
        &[
            "get",
            "explain",
            "preflight",
            "validate",
            "report",
            "dashboard",
            "etcd",
            "render",
            "bundle",
            "lock",
            "toolbox",
        ],
    ),
    ("Use", &["export", "schema", "completion", "version"]),
];

const EXAMPLES: &str = "Start here:
  export KCTL_STATE_STORE=s3://BUCKET                                  where clusters are kept
  kctl create cluster demo.example.com --zones eu-west-1a --dry-run    what the spec would be
  kctl create cluster demo.example.com --zones eu-west-1a              store the spec, show the plan
  kctl update demo.example.com --yes                                   make AWS match it";

/// The whole command line, ready to parse.
pub fn build_command() -> clap::Command {
    let cli = Cli::command();
    let groups = command_groups(&cli);
    cli.help_template(format!(
        "{{about}}.\n\n{EXAMPLES}\n\n{{usage-heading}} {{usage}}\n{groups}\n{{options}}\n\nMore: kctl COMMAND --help\n"
    ))
}

fn command_groups(command: &clap::Command) -> String {
    let mut text = String::new();
    for (heading, names) in GROUPS {
        let _ = write!(text, "\n{heading}:\n");
        for name in *names {
            let about = command
                .find_subcommand(name)
                .and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {name:<16}{about}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        build_command().debug_assert();
    }

    #[test]
    fn every_visible_command_stands_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        let cli = build_command();
        let visible = cli.get_subcommands().filter(|sub| !sub.is_hide_set());
        let mut visible: Vec<&str> = visible.map(clap::Command::get_name).collect();
        grouped.sort_unstable();
        visible.sort_unstable();
        assert_eq!(grouped, visible);
    }

    fn collect_leaves<'a>(command: &'a clap::Command, into: &mut Vec<&'a clap::Command>) {
        let shown: Vec<_> = command
            .get_subcommands()
            .filter(|sub| !sub.is_hide_set())
            .collect();
        if shown.is_empty() {
            into.push(command);
        }
        shown.into_iter().for_each(|sub| collect_leaves(sub, into));
    }

    #[test]
    fn every_command_shows_an_example() {
        let cli = build_command();
        let mut all = Vec::new();
        collect_leaves(&cli, &mut all);
        for leaf in all {
            let help = leaf
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(help.contains("kctl "), "{} has no example", leaf.get_name());
        }
    }
}
