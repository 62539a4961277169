//! Names and tags of a cluster's AWS objects. They are the same as in kOps, so that the objects of an existing kOps cluster are
//! recognized.

pub mod clash;
pub mod dns;

use crate::config::Role;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};
use std::collections::BTreeMap;

/// AWS tags by key.
pub type Tags = BTreeMap<String, String>;

/// Limit of the name of a load balancer or target group, characters.
const LOAD_BALANCER_NAME: usize = 32;
/// Limit of the name of a role or instance profile, characters.
const IAM_NAME: usize = 64;
/// Limit of the prefix of an EventBridge rule's name, which leaves room for the longest suffix.
const RULE_PREFIX: usize = 40;
/// Limit of the name of a queue, characters.
const QUEUE_NAME: usize = 80;
/// Length of the hash in a shortened name, characters.
const HASH: usize = 6;

/// Tag with the name of the owning cluster; IAM conditions use it.
pub const CLUSTER_TAG: &str = "KubernetesCluster";
/// Tag with the name that the AWS console shows.
pub const NAME_TAG: &str = "Name";
/// Tag with the position in a series of successors; the first has no such tag.
pub const REVISION_TAG: &str = "kops.k8s.io/revision";
/// Tag with the digest of a group's lifecycle hooks.
pub const HOOKS_TAG: &str = "kctl.dev/lifecycle-hooks";
/// Tag of etcd volumes with the incarnation of the cluster: the id of its certificate authority.
pub const INCARNATION_TAG: &str = "kctl.dev/incarnation";
/// Tag of etcd volumes with the location of the cluster's state.
pub const STATE_STORE_TAG: &str = "kctl.dev/state-store";
/// Tags of a role with the service account that assumes it.
pub const SERVICE_ACCOUNT_TAG: &str = "service-account.kops.k8s.io/name";
pub const SERVICE_ACCOUNT_NAMESPACE_TAG: &str = "service-account.kops.k8s.io/namespace";
/// Tag with the purpose of a route table.
pub const ROUTE_TABLE_ROLE_TAG: &str = "kubernetes.io/kops/role";
/// Tag with the instance group of an instance.
pub const INSTANCE_GROUP_TAG: &str = "kops.k8s.io/instancegroup";
/// Annotation of a Node that a rolling update is about to replace, with its progress as JSON. protokube withdraws the names of
/// such a control plane.
pub const ROLLING_UPDATE_ANNOTATION: &str = "kctl.dev/rolling-update";
/// Annotation of a Node whose instance AWS is about to end: the reason and since when.
pub const TERMINATION_ANNOTATION: &str = "kctl.dev/termination";
/// Label of the namespace in which `kctl preflight --live` tries connections, and of its pods.
pub const PREFLIGHT_LABEL: &str = "kctl.dev/preflight";
/// Tag of an instance that a rolling update detached from its Auto Scaling group.
pub const DETACHED_TAG: &str = "kops.k8s.io/detached-from-asg";

/// Address of a DNS name that no control plane has published yet (TEST-NET-3), as in kOps. Without a record, resolvers would cache
/// that the name does not exist.
pub const PLACEHOLDER: &str = "203.0.113.123";
/// The same as an IPv6 address, in IPv6 clusters.
pub const PLACEHOLDER_V6: &str = "fd00:dead:add::";

/// Key of the tag `kubernetes.io/cluster/NAME`, by which objects are found and deleted.
pub fn ownership_tag(cluster: &str) -> String {
    format!("kubernetes.io/cluster/{cluster}")
}

/// The logical name of an object with these tags: `Name`, with the revision appended from the second of a series on. `None` if
/// there is no tag `Name`.
pub fn logical_name(tags: &Tags) -> Option<String> {
    let name = tags.get(NAME_TAG)?;
    Some(series_name(name, series_revision(tags)))
}

/// An object's position in its series, from its tags; 1 without the tag.
pub fn series_revision(tags: &Tags) -> u32 {
    tags.get(REVISION_TAG)
        .and_then(|revision| revision.parse().ok())
        .unwrap_or(1)
}

/// The logical name at a position of a series: `NAME`, `NAME-2`, `NAME-3`.
pub fn series_name(base: &str, revision: u32) -> String {
    if revision <= 1 {
        base.to_owned()
    } else {
        format!("{base}-{revision}")
    }
}

/// The AWS name (at most 32 characters) at a position of a series whose first name is `base`. The hash changes with the position.
pub fn load_balancer_series_name(base: &str, revision: u32) -> String {
    if revision <= 1 {
        return base.to_owned();
    }
    let stem = base.rsplit_once('-').map_or(base, |(stem, _)| stem);
    format!("{stem}-{}", short_hash(&series_name(base, revision)))
}

/// Name of an instance group's Auto Scaling group and launch template.
pub fn autoscaling_group(cluster: &str, group: &str, role: Role) -> String {
    match role {
        Role::ControlPlane => format!("{group}.masters.{cluster}"),
        Role::Node | Role::Bastion => format!("{group}.{cluster}"),
    }
}

/// Name of the security group of a role's instances.
pub fn security_group(cluster: &str, role: Role) -> String {
    let prefix = match role {
        Role::ControlPlane => "masters",
        Role::Node => "nodes",
        Role::Bastion => "bastion",
    };
    format!("{prefix}.{cluster}")
}

/// Name of the security group of the API's load balancer.
pub fn api_security_group(cluster: &str) -> String {
    format!("api-elb.{cluster}")
}

/// Name of the security group of the bastions' load balancer.
pub fn bastion_security_group(cluster: &str) -> String {
    format!("bastion-elb.{cluster}")
}

/// Name of a role's IAM role and instance profile.
pub fn iam_name(cluster: &str, role: Role) -> String {
    let prefix = match role {
        Role::ControlPlane => "masters",
        Role::Node => "nodes",
        Role::Bastion => "bastions",
    };
    shorten_name(&format!("{prefix}.{cluster}"), IAM_NAME)
}

/// Name of the IAM role of a service account. A namespace with wildcards stands for several.
pub fn service_account_role(cluster: &str, namespace: &str, service_account: &str) -> String {
    let whole = format!("{service_account}.{namespace}.sa.{cluster}");
    shorten_name(&whole.replace('*', "wildcard"), IAM_NAME)
}

/// Name of a subnet.
pub fn subnet_name(cluster: &str, subnet: &str) -> String {
    format!("{subnet}.{cluster}")
}

/// Name of a zone's NAT gateway and elastic IP.
pub fn nat_gateway(cluster: &str, zone: &str) -> String {
    format!("{zone}.{cluster}")
}

/// Name of the route table of a zone's private subnets.
pub fn private_route_table(cluster: &str, zone: &str) -> String {
    format!("private-{zone}.{cluster}")
}

/// Name of the route table of a zone's public subnets with IPv6, in an IPv6 cluster: `public-ZONE.NAME`.
pub fn public_route_table(cluster: &str, zone: &str) -> String {
    format!("public-{zone}.{cluster}")
}

/// Name of an etcd member's volume. It never begins with a digit, because kOps' Terraform output does not allow that.
pub fn etcd_volume(cluster: &str, etcd_cluster: &str, member: &str) -> String {
    let digit = member.starts_with(|first: char| first.is_ascii_digit());
    let prefix = if digit { "etcd-" } else { "" };
    format!("{prefix}{member}.etcd-{etcd_cluster}.{cluster}")
}

/// Logical name of the API's load balancer.
pub fn api_load_balancer(cluster: &str) -> String {
    format!("api.{cluster}")
}

/// Logical name of the bastions' load balancer.
pub fn bastion_load_balancer(cluster: &str) -> String {
    format!("bastion.{cluster}")
}

/// AWS name of a load balancer or target group, from a logical name such as `api.NAME`: dots become dashes, at most 25 characters
/// are kept, and a hash of the whole name is appended. AWS does not accept `--`, so a dash at the cut is dropped, and several dashes
/// become one (as in `xn--bcher-kva.example.com`); kOps' name would be rejected there.
pub fn load_balancer(logical: &str) -> String {
    let whole = logical.replace('.', "-");
    let keep = LOAD_BALANCER_NAME - HASH - 1;
    let kept = first_characters(&whole, keep);
    let kept: Vec<&str> = kept.split('-').filter(|part| !part.is_empty()).collect();
    format!("{}-{}", kept.join("-"), short_hash(&whole))
}

/// What the AWS names of a load balancer or target group and its successors in the series begin with: the name without the hash.
pub fn load_balancer_stem(logical: &str) -> String {
    let name = load_balancer(logical);
    name.rsplit_once('-')
        .map_or_else(|| name.clone(), |(stem, _)| format!("{stem}-"))
}

/// AWS name of a target group: `tcp`, `tls`, `kops-controller`, `bastion`.
pub fn target_group(cluster: &str, prefix: &str) -> String {
    load_balancer(&format!("{prefix}.{cluster}"))
}

/// Name of the SQS queue with events of terminating instances.
pub fn queue_name(cluster: &str) -> String {
    let suffix = "-nth";
    let whole = cluster.replace('.', "-");
    format!(
        "{}{suffix}",
        shorten_name(&whole, QUEUE_NAME - suffix.len())
    )
}

/// Name of an EventBridge rule: `NAME-EVENT`, with the cluster's name cut at 40 characters.
pub fn event_rule(cluster: &str, event: &str) -> String {
    format!("{}-{event}", shorten_name(cluster, RULE_PREFIX))
}

/// Name of an instance group's termination hook. AWS takes letters, digits and `-_/`, so a dot of the group's name becomes a dash;
/// kOps' name would be refused there. Names of hooks are those of one Auto Scaling group, so no two of them can become the same.
pub fn lifecycle_hook(group: &str) -> String {
    format!("{}-NTHLifecycleHook", group.replace('.', "-"))
}

/// Name of the hook at which an instance waits that is launched into a group with a warm pool.
pub const WARM_POOL_HOOK: &str = "kops-warmpool";

/// Name of the key pair of a public key in OpenSSH form (type, base64, perhaps a comment):
/// `kubernetes.NAME-FINGERPRINT`. `None`: that is no such key.
pub fn key_pair(cluster: &str, public_key: &str) -> Option<String> {
    Some(format!(
        "kubernetes.{cluster}-{}",
        ssh_fingerprint(public_key)?
    ))
}

/// MD5 of an OpenSSH public key's blob, as pairs of hex digits with colons. `None` if the text is not such a key.
pub fn ssh_fingerprint(public_key: &str) -> Option<String> {
    let blob = STANDARD
        .decode(public_key.split_whitespace().nth(1)?)
        .ok()?;
    let pairs: Vec<String> = Md5::digest(blob)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Some(pairs.join(":"))
}

/// The name unchanged if it fits, otherwise cut and with a hash of the whole name, `longest` characters in total.
fn shorten_name(whole: &str, longest: usize) -> String {
    if whole.len() <= longest {
        return whole.to_owned();
    }
    format!(
        "{}-{}",
        first_characters(whole, longest - HASH - 1),
        short_hash(whole)
    )
}

/// The first `characters` characters of a text.
fn first_characters(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

/// Six characters of the lowercase base32hex form of the text's 32-bit FNV-1a hash, most significant first.
fn short_hash(text: &str) -> String {
    let hash = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    (1..=6_u32)
        .map(|place| (hash >> (32 - 5 * place)) & 31)
        .filter_map(|five_bits| char::from_digit(five_bits, 32))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_load_balancers_are_those_that_kops_gives() {
        let given = [
            ("api.complex.example.com", "api-complex-example-com-vd3t5n"),
            ("tcp.minimal.example.com", "tcp-minimal-example-com-5905t8"),
            (
                "kops-controller.minimal.example.com",
                "kops-controller-minimal-e-uvauf3",
            ),
            (
                "bastion.privatecalico.example.com",
                "bastion-privatecalico-exa-hocohm",
            ),
            (
                "api.private-shared-subnet.example.com",
                "api-private-shared-subnet-n2f8ak",
            ),
        ];
        for (logical, name) in given {
            assert_eq!(load_balancer(logical), name);
        }
    }

    #[test]
    fn no_name_has_two_dashes() {
        for length in 1..40 {
            for end in [".example.com", "--b.example.com", "-.--.com"] {
                let cluster = format!("{}{end}", "a".repeat(length));
                let name = target_group(&cluster, "kops-controller");
                assert!(
                    !name.contains("--") && name.len() <= LOAD_BALANCER_NAME,
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn a_hook_has_characters_that_aws_takes() {
        assert_eq!(lifecycle_hook("nodes"), "nodes-NTHLifecycleHook");
        assert_eq!(
            lifecycle_hook("nodes.gpu.a"),
            "nodes-gpu-a-NTHLifecycleHook"
        );
    }

    #[test]
    fn a_series_never_repeats_a_name_and_never_outgrows_aws() {
        let base = load_balancer("api.a-rather-long-cluster-name.example.com");
        let names: std::collections::BTreeSet<String> = (1..=50)
            .map(|revision| load_balancer_series_name(&base, revision))
            .collect();
        assert_eq!(names.len(), 50);
        assert!(names.iter().all(|name| name.len() <= LOAD_BALANCER_NAME));
        assert!(names.contains(&base));
    }

    #[test]
    fn a_key_pair_is_named_by_the_md5_of_its_blob() {
        let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEmrKXh7lMNHVwDkUPSmfqT5vvZxmYoJUs1xGPZgYjQw someone@somewhere";
        let name = key_pair("prod.example.com", key).expect("a key");
        let fingerprint = name
            .strip_prefix("kubernetes.prod.example.com-")
            .expect("the cluster in front");
        assert_eq!(fingerprint.split(':').count(), 16);
        let bare = key
            .rsplit_once(' ')
            .map(|(bare, _)| bare)
            .expect("a comment");
        assert_eq!(key_pair("prod.example.com", bare), Some(name));
        assert_eq!(key_pair("prod.example.com", "not a key"), None);
    }

    #[test]
    fn long_names_are_cut_to_what_aws_takes() {
        let long = "this.is.truly.a.really.really.long.cluster-name.minimal.example.com";
        assert_eq!(iam_name(long, Role::ControlPlane).len(), IAM_NAME);
        assert_eq!(
            event_rule(long, "ASGLifecycle").len(),
            RULE_PREFIX + "-ASGLifecycle".len()
        );
        assert!(queue_name(long).len() <= QUEUE_NAME);
        assert_eq!(iam_name("a.b", Role::Node), "nodes.a.b");
        assert_eq!(event_rule("a.b", "ASGLifecycle"), "a.b-ASGLifecycle");
    }

    #[test]
    fn a_member_named_by_a_digit_gets_a_letter_in_front() {
        assert_eq!(etcd_volume("a.b", "main", "1"), "etcd-1.etcd-main.a.b");
        assert_eq!(etcd_volume("a.b", "main", "a"), "a.etcd-main.a.b");
    }

    #[test]
    fn the_logical_name_of_a_successor_carries_its_revision() {
        let mut tags = Tags::from([(NAME_TAG.to_owned(), "api.a.b".to_owned())]);
        assert_eq!(logical_name(&tags).as_deref(), Some("api.a.b"));
        tags.insert(REVISION_TAG.into(), "3".into());
        assert_eq!(logical_name(&tags).as_deref(), Some("api.a.b-3"));
        assert_eq!(logical_name(&Tags::new()), None);
    }
}
