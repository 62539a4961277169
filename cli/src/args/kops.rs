//! Explains commands and options that kOps or kubectl has and kctl does not. clap's suggestion of a similar word would mislead.

use crate::error::CommandError;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Command, reason, alternative.
const COMMANDS: &[(&str, &str, &str)] = &[
    (
        "apply",
        "kctl has no command that creates or replaces objects as needed",
        "`kctl create -f FILE` or `kctl replace -f FILE --force`",
    ),
    (
        "set",
        SETTERS,
        "`kctl edit cluster --set spec.PATH=VALUE`, `kctl edit ig GROUP --set spec.PATH=VALUE`",
    ),
    (
        "unset",
        SETTERS,
        "`kctl edit cluster --unset spec.PATH`, `kctl edit ig GROUP --unset spec.PATH`",
    ),
    (
        "sshpublickey",
        "a public SSH key is stored as an object of kind SSHCredential",
        "`kctl create -f FILE`, or `kctl replace -f FILE` in the place of the former: docs/getting-started.md",
    ),
    ("nodes", NOT_KUBECTL, NODES),
    ("node", NOT_KUBECTL, NODES),
    ("pods", NOT_KUBECTL, PODS),
    ("pod", NOT_KUBECTL, PODS),
];

/// Option, reason, alternative.
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
        "kctl deletes replaced resources itself once nothing uses them",
        "leave it out: docs/operations/kept.md",
    ),
    (
        "--edit",
        "kctl stores a new instance group without an editor",
        "leave it out; --dry-run prints the group, and `kctl edit ig GROUP` opens an editor",
    ),
    (
        "--lifecycle-overrides",
        "kctl has no life cycles of tasks",
        "leave it out",
    ),
    (
        "--allow-kops-downgrade",
        "kctl itself refuses a cluster that a newer kctl has changed",
        "leave it out",
    ),
    (
        "--instance-group",
        "an update always covers the whole cluster",
        "leave it out",
    ),
    (
        "--instance-group-roles",
        "an update always covers the whole cluster",
        "leave it out",
    ),
    (
        "--user",
        "a kubeconfig always has an administrator's credentials",
        "leave it out; --admin=DURATION says how long its certificate is good for",
    ),
    (
        "--auth-plugin",
        "a kubeconfig contains a certificate and needs no plugin",
        "leave it out",
    ),
    (
        "--kubeconfig",
        "kctl issues itself a certificate for one hour and needs no kubeconfig",
        "leave it out",
    ),
    (
        "--max-unready-nodes",
        "a cluster with an instance that is not Ready is not healthy",
        "`kctl validate --ignore Node/NAME` ignores one",
    ),
    (
        "--all",
        "a command works on one cluster",
        "name the cluster; `kctl get clusters -o name` lists them",
    ),
];

const SETTERS: &str = "single fields are set with `kctl edit`";
const NOT_KUBECTL: &str = "kctl does not show objects of the Kubernetes API";
const NODES: &str = "`kctl get instances`; `kubectl get nodes` for Node objects";
const PODS: &str = "`kubectl get pods --all-namespaces`";

/// The error for a command line that only kOps or kubectl understands; `None` for any other mistake.
pub fn explain_kops_word(error: &clap::Error) -> Option<CommandError> {
    let (table, context) = match error.kind() {
        ErrorKind::InvalidSubcommand => (COMMANDS, ContextKind::InvalidSubcommand),
        ErrorKind::UnknownArgument => (OPTIONS, ContextKind::InvalidArg),
        _ => return None,
    };
    let Some(ContextValue::String(word)) = error.get(context) else {
        return None;
    };
    let (name, why, instead) = table.iter().find(|(name, _, _)| name == word)?;
    Some(CommandError::usage_error(
        format!("{name}: {why}"),
        *instead,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::build_command;
    use std::collections::BTreeSet;

    /// Options of `kops create cluster` by its documentation and its source, among them those of other clouds, of a feature flag, of
    /// all commands, and former names.
    const CREATE_CLUSTER: &str = "
        admin-access api-loadbalancer-type api-public-name api-ssl-certificate associate-public-ip authorization bastion
        bastion-image channel cloud cloud-labels config control-plane-count control-plane-image control-plane-security-groups
        control-plane-size control-plane-tenancy control-plane-volume-size control-plane-volume-type control-plane-zones
        disable-subnet-tags discovery-store dns dns-zone dry-run encrypt-etcd-storage etcd-clusters etcd-storage-type
        gce-service-account h help image instance-manager ipv6 kubernetes-feature-gates kubernetes-version master-count
        master-image master-public-name master-security-groups master-size master-tenancy master-volume-size master-zones name
        network-cidr network-id networking node-count node-image node-security-groups node-size node-tenancy node-volume-size
        node-volume-type o os-dns-servers os-ext-net os-ext-subnet os-kubelet-ignore-az os-lb-floating-subnet os-network
        os-octavia os-octavia-provider out output override project set spotinst-orientation spotinst-product ssh-access
        ssh-public-key state subnets t target topology unset utility-subnets v vpc y yes zones";

    fn explanation(words: &[&str]) -> Option<String> {
        let all = std::iter::once("kctl").chain(words.iter().copied());
        let error = build_command().try_get_matches_from(all).err()?;
        explain_kops_word(&error)?
            .cause
            .map(|cause| cause.to_string())
    }

    #[test]
    fn each_is_answered_with_its_reason_and_others_are_left_to_clap() {
        for (name, why, _) in COMMANDS {
            assert_eq!(
                explanation(&[name, "cluster"]),
                Some(format!("{name}: {why}"))
            );
        }
        for (name, why, _) in OPTIONS {
            let commands: [&[&str]; 3] = [&["update"], &["validate"], &["export", "kubeconfig"]];
            let mut answers = commands
                .iter()
                .filter_map(|command| explanation(&[*command, &[*name][..]].concat()));
            assert_eq!(answers.next(), Some(format!("{name}: {why}")));
        }
        let nodes = format!("nodes: {NOT_KUBECTL}");
        assert_eq!(explanation(&["get", "nodes"]), Some(nodes));
        assert_eq!(explanation(&["create", "ig", "more"]), None);
        assert_eq!(explanation(&["get", "ig"]), None);
        assert_eq!(explanation(&["updat"]), None);
        assert_eq!(explanation(&["update", "--yess"]), None);
    }

    /// Rows are those of docs/compat.md that begin with an option; `*` at its end stands for anything. One that no option needs fails too.
    #[test]
    fn each_option_of_create_cluster_is_one_of_kctl_or_has_a_row() {
        let mut command = build_command();
        command.build();
        let create = command.find_subcommand("create");
        let create = create.and_then(|create| create.find_subcommand("cluster"));
        let shown = create.unwrap().get_arguments();
        let names = shown
            .filter(|option| !option.is_hide_set())
            .flat_map(|option| {
                let long = option.get_long_and_visible_aliases().unwrap_or_default();
                let hidden = option.get_aliases().unwrap_or_default();
                let short = option.get_short().map(String::from);
                let long = long.into_iter().chain(hidden).map(str::to_owned);
                long.chain(short)
            });
        let names: BTreeSet<String> = names.collect();
        let rows = include_str!("../../../docs/compat.md").lines();
        let rows = rows.filter_map(|line| line.strip_prefix("| `--")?.split_once("` |"));
        let rows: Vec<&str> = rows.map(|(option, _)| option).collect();
        let fits = |row: &str, option: &str| match row.strip_suffix('*') {
            Some(start) => option.starts_with(start),
            None => row == option,
        };
        let options: Vec<&str> = CREATE_CLUSTER.split_whitespace().collect();
        let without = options.iter().filter(|option| {
            !names.contains(**option) && !rows.iter().any(|row| fits(row, option))
        });
        assert_eq!(without.collect::<Vec<_>>(), Vec::<&&str>::new());
        let idle = rows
            .iter()
            .filter(|row| !options.iter().any(|option| fits(row, option)));
        assert_eq!(idle.collect::<Vec<_>>(), Vec::<&&str>::new());
    }
}
