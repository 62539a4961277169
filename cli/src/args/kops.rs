//! Commands and options of kOps that kctl does not have, answered with the reason: the nearest name of kctl's would mislead.

use crate::error::CommandError;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Command, why there is none, what to do instead.
const COMMANDS: &[(&str, &str, &str)] = &[
    ("rolling-update", "kctl replaces no machines yet", ROLLING),
    ("reconcile", "kctl replaces no machines yet", ROLLING),
    (
        "toolbox",
        "kctl has none of its tools",
        "`kctl render` writes all that follows from a spec, `kctl get instances` shows the machines",
    ),
    (
        "upgrade",
        "kctl chooses no version for a cluster that exists",
        "`kctl edit cluster NAME --set spec.kubernetesVersion=VERSION`, then `kctl update`",
    ),
    ("promote", NO_ROTATION, KEYPAIRS),
    ("distrust", NO_ROTATION, KEYPAIRS),
    ("trust", NO_ROTATION, KEYPAIRS),
];

/// Option, why there is none, what to do instead.
const OPTIONS: &[(&str, &str, &str)] = &[
    ("--phase", "kctl makes a cluster as a whole", "leave it out"),
    (
        "--target",
        "kctl makes AWS objects itself and writes nothing for other tools",
        "`kctl render` writes everything for review",
    ),
    (
        "--out",
        "kctl makes AWS objects itself and writes nothing for other tools",
        "`kctl render --out DIR` writes everything for review",
    ),
    (
        "--prune",
        "what is replaced goes by itself once nothing needs it",
        "leave it out: docs/operations/kept.md",
    ),
    (
        "--lifecycle-overrides",
        "kctl has no life cycles of tasks",
        "leave it out",
    ),
    (
        "--allow-kops-downgrade",
        "a kctl that is too old for a cluster says so itself",
        "leave it out",
    ),
    (
        "--instance-group",
        "an update is about the whole cluster",
        "leave it out",
    ),
    (
        "--instance-group-roles",
        "an update is about the whole cluster",
        "leave it out",
    ),
    (
        "--user",
        "a kubeconfig is always of its administrator",
        "leave it out; --admin=DURATION says how long its certificate is good for",
    ),
    (
        "--auth-plugin",
        "a kubeconfig has a certificate in it, and needs kctl no more",
        "leave it out",
    ),
    (
        "--kubeconfig",
        "kctl makes itself a certificate for an hour and needs no kubeconfig",
        "leave it out",
    ),
    (
        "--max-unready-nodes",
        "a cluster with a machine that is not Ready is not healthy",
        "leave it out; `kctl validate -o json` says which it is",
    ),
    (
        "--all",
        "a command is about one cluster",
        "name the cluster; `kctl get clusters -o name` lists them",
    ),
];

const ROLLING: &str = "docs/not-yet.md#rolling-updates says how to do it meanwhile; `kctl get instances` shows which machines are out of date";
const NO_ROTATION: &str = "kctl rotates no keys yet";
const KEYPAIRS: &str = "`kctl get keypairs` shows which there are, and until when they are good";

/// The answer to a command line that kOps would understand; `None`: it is wrong otherwise.
pub fn answer(said: &clap::Error) -> Option<CommandError> {
    let (table, context) = match said.kind() {
        ErrorKind::InvalidSubcommand => (COMMANDS, ContextKind::InvalidSubcommand),
        ErrorKind::UnknownArgument => (OPTIONS, ContextKind::InvalidArg),
        _ => return None,
    };
    let Some(ContextValue::String(word)) = said.get(context) else {
        return None;
    };
    let (name, why, instead) = table.iter().find(|(name, _, _)| name == word)?;
    Some(CommandError::usage(format!("{name}: {why}"), *instead))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::command;

    fn answered(words: &[&str]) -> Option<String> {
        let all = std::iter::once("kctl").chain(words.iter().copied());
        let said = command().try_get_matches_from(all).err()?;
        answer(&said)?.cause.map(|cause| cause.to_string())
    }

    #[test]
    fn each_is_answered_with_its_reason_and_others_are_left_to_clap() {
        for (name, why, _) in COMMANDS {
            assert_eq!(answered(&[name, "cluster"]), Some(format!("{name}: {why}")));
        }
        for (name, why, _) in OPTIONS {
            let commands: [&[&str]; 3] = [&["update"], &["validate"], &["export", "kubeconfig"]];
            let mut answers = commands
                .iter()
                .filter_map(|command| answered(&[*command, &[*name][..]].concat()));
            assert_eq!(answers.next(), Some(format!("{name}: {why}")));
        }
        assert_eq!(answered(&["updat"]), None);
        assert_eq!(answered(&["update", "--yess"]), None);
    }
}
