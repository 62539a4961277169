//! Permissions of control planes: attach etcd volumes, access the state store, publish names, end instances in order, and what the
//! addons call that are on, unless their service accounts have roles.

use super::{RESOURCE_CLUSTER, Statement, endpoint_suffix, state};
use crate::addons::{permissions_of_agents, permissions_of_instances};
use crate::{DnsKind, FullSpec, queue_arn};
use node::components::EtcdMemberNames;
use node::config::Role;
use node::names;
use serde_json::json;
use std::collections::BTreeSet;

const RECORD_NAMES: &str = "route53:ChangeResourceRecordSetsNormalizedRecordNames";
const RECORD_TYPES: &str = "route53:ChangeResourceRecordSetsRecordTypes";
const RECORD_ACTIONS: &str = "route53:ChangeResourceRecordSetsActions";

pub(super) fn control_plane_statements(full: &FullSpec) -> Vec<Statement> {
    let cluster = full.name.as_str();
    let volumes = Statement::allow_one("ec2:AttachVolume")
        .on_each(["*"])
        .when("StringEquals", RESOURCE_CLUSTER, cluster)
        .when("StringEquals", "aws:ResourceTag/k8s.io/role/master", "1");
    let mut all = vec![volumes];
    all.extend(state::control_plane_state_access(full));
    all.extend(dns_statements(full));
    all.extend(kms_statements(full));
    all.push(
        Statement::allow([
            "autoscaling:DescribeAutoScalingInstances",
            "ec2:DescribeInstances",
            "ec2:DescribeVolumes",
        ])
        .on_all(),
    );
    if full.is_ipv6() {
        // Each instance gets a range for its pods.
        all.push(Statement::allow(["ec2:AssignIpv6Addresses"]).on_all().when(
            "StringEquals",
            RESOURCE_CLUSTER,
            cluster,
        ));
    }
    if full.iam.allow_container_registry {
        all.push(Statement::allow(super::REGISTRY).on_all());
    }
    if full.node_termination.is_some() {
        all.push(
            Statement::allow(["sqs:DeleteMessage", "sqs:ReceiveMessage"]).on_one(queue_arn(full)),
        );
        all.push(
            Statement::allow([
                "autoscaling:CompleteLifecycleAction",
                "autoscaling:RecordLifecycleActionHeartbeat",
            ])
            .on_all()
            .when("StringEquals", RESOURCE_CLUSTER, cluster),
        );
    }
    all.extend(permissions_of_agents(full));
    all.extend(permissions_of_instances(full, Role::ControlPlane));
    all
}

fn make_arn(full: &FullSpec, rest: &str) -> String {
    format!("arn:{}:{rest}", full.placement.partition)
}

/// Publishing A records, in IPv6 clusters AAAA records too, of exactly the names of control planes and etcd's members in the cluster's
/// zone; it deletes none. And the names
/// of objects, if protokube publishes them. The condition keys:
/// <https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/specifying-rrset-conditions.html>.
fn dns_statements(full: &FullSpec) -> Vec<Statement> {
    let zone = match (&full.dns.zone, full.dns.kind) {
        (Some(zone), DnsKind::Public | DnsKind::Private) => zone,
        (None, _) | (_, DnsKind::None) => return Vec::new(),
    };
    let published = published_names(full);
    let types: &[&str] = if full.is_ipv6() {
        &["A", "AAAA"]
    } else {
        &["A"]
    };
    let hosted_zone = make_arn(full, &format!("route53:::hostedzone/{}", zone.id));
    let of_objects = full
        .dns
        .object_names
        .map(|_| object_names_statement(full, &hosted_zone, &published));
    let mut all = vec![
        Statement::allow(["route53:ChangeResourceRecordSets"])
            .on_each([&hosted_zone])
            .when("ForAllValues:StringEquals", RECORD_NAMES, json!(published))
            .when("ForAllValues:StringEquals", RECORD_TYPES, json!(types))
            .when(
                "ForAllValues:StringEquals",
                RECORD_ACTIONS,
                json!(["UPSERT"]),
            ),
        Statement::allow(["route53:GetHostedZone", "route53:ListResourceRecordSets"])
            .on_each([&hosted_zone]),
        Statement::allow(["route53:GetChange"]).on_each([make_arn(full, "route53:::change/*")]),
    ];
    all.extend(of_objects);
    all
}

/// Making and deleting records that lead names of Services, Ingresses and pods somewhere: any name of the zone, because annotations say
/// which, but those that the cluster needs to work, and those of bastions.
fn object_names_statement(
    full: &FullSpec,
    hosted_zone: &str,
    published: &BTreeSet<String>,
) -> Statement {
    let of_bastions = full.bastion.public_name.clone().into_iter();
    let of_bastions = of_bastions.chain([names::dns::bastion_name(&full.name)]);
    let mut reserved = published.clone();
    reserved.extend(of_bastions.map(|name| normalize_record_name(&name)));
    Statement::allow(["route53:ChangeResourceRecordSets"])
        .on_each([hosted_zone])
        .when(
            "ForAllValues:StringNotEquals",
            RECORD_NAMES,
            json!(reserved),
        )
        .when(
            "ForAllValues:StringEquals",
            RECORD_TYPES,
            json!(["A", "AAAA", "CNAME"]),
        )
        .when(
            "ForAllValues:StringEquals",
            RECORD_ACTIONS,
            json!(["DELETE", "UPSERT"]),
        )
}

/// The names that protokube publishes where there is a hosted zone: of the API, the bootstrap endpoint, and members of etcd.
pub(crate) fn published_names(full: &FullSpec) -> BTreeSet<String> {
    let of_clients = [
        full.dns.api_public_name.clone(),
        full.dns.api_internal_name.clone(),
        names::dns::bootstrap_name(&full.name),
    ];
    let of_members = full.etcd.iter().flat_map(|etcd| {
        let members = etcd.members.iter().map(|member| &member.name);
        let names = EtcdMemberNames::new(&etcd.name, members, &full.name);
        names.member_hosts().collect::<Vec<_>>()
    });
    let published = of_clients.into_iter().chain(of_members);
    published.map(|name| normalize_record_name(&name)).collect()
}

/// The name as Route 53 compares it: in lower case, without the trailing dot. Cluster names have no characters that it
/// escapes.
fn normalize_record_name(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// Access to KMS keys, only through EC2 and S3, for encrypted volumes and objects.
pub(crate) fn kms_statements(full: &FullSpec) -> [Statement; 2] {
    let suffix = endpoint_suffix(&full.placement.partition);
    let services = [
        format!("ec2.{}.{suffix}", full.placement.region),
        format!("s3.*.{suffix}"),
    ];
    [
        Statement::allow_one("kms:CreateGrant").on_all().when(
            "Bool",
            "kms:GrantIsForAWSResource",
            "true",
        ),
        Statement::allow([
            "kms:Decrypt",
            "kms:DescribeKey",
            "kms:Encrypt",
            "kms:GenerateDataKey*",
            "kms:ReEncrypt*",
        ])
        .on_all()
        .when("StringLike", "kms:ViaService", json!(services)),
    ]
}
