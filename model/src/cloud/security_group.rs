//! Security groups and their rules, one resource a rule.

use super::{Kind, Rename, Tags};
use crate::engine::Ref;
use serde::{Deserialize, Serialize};

/// A security group; its rules are resources of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecurityGroup {
    /// `masters.NAME`, `nodes.NAME`, `api-elb.NAME`, ...: both logical and AWS name.
    pub group_name: String,
    /// Description; cannot change.
    pub description: String,
    /// The VPC; cannot change.
    pub vpc_id: Ref,
    /// Tags.
    pub tags: Tags,
}

impl Kind for SecurityGroup {
    const TYPE: &'static str = "security_group";

    fn name(&self) -> String {
        self.group_name.clone()
    }

    fn refs(&self) -> Vec<Ref> {
        vec![self.vpc_id.clone()]
    }

    fn with_refs(&self, rename: Rename<'_>) -> Self {
        Self {
            vpc_id: rename(&self.vpc_id),
            ..self.clone()
        }
    }

    fn refuses(&self, have: &Self) -> Option<String> {
        (self.vpc_id != have.vpc_id).then(|| "a security group cannot move to another VPC: delete the cluster and create it again there".to_owned())
    }
}

/// The other side of a rule: source of ingress, destination of egress. Serialized as the one AWS field that is set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleSource {
    /// An IPv4 range.
    CidrIpv4(String),
    /// An IPv6 range.
    CidrIpv6(String),
    /// A managed prefix list, `pl-...`.
    PrefixListId(String),
    /// Another security group.
    ReferencedGroupId(Ref),
}

/// One rule. All of it is its identity: a changed rule is another rule. AWS keeps no name for it, so
/// an observed rule takes the name of the wanted rule with the same content (see `cloud::settle`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecurityGroupRule {
    /// kOps' task name: `from-0.0.0.0/0-ingress-tcp-22to22-nodes.NAME`, `https-elb-to-master`, ...
    pub name: String,
    /// The group it belongs to.
    pub group_id: Ref,
    /// Egress, or ingress.
    pub is_egress: bool,
    /// `tcp`, `udp`, `icmp`, `icmpv6`, a protocol number, or `-1` for all.
    pub ip_protocol: String,
    /// First port or ICMP type; -1 with protocol `-1`.
    pub from_port: i32,
    /// Last port or ICMP code; -1 with protocol `-1`.
    pub to_port: i32,
    /// The other side.
    #[serde(flatten)]
    pub source: RuleSource,
}

impl SecurityGroupRule {
    /// What AWS tells rules apart by: everything but the name.
    pub fn content(&self) -> (Ref, bool, String, i32, i32, RuleSource) {
        (
            self.group_id.clone(),
            self.is_egress,
            self.ip_protocol.clone(),
            self.from_port,
            self.to_port,
            self.source.clone(),
        )
    }
}

impl Kind for SecurityGroupRule {
    const TYPE: &'static str = "security_group_rule";

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs(&self) -> Vec<Ref> {
        let mut refs = vec![self.group_id.clone()];
        if let RuleSource::ReferencedGroupId(group) = &self.source {
            refs.push(group.clone());
        }
        refs
    }

    fn with_refs(&self, rename: Rename<'_>) -> Self {
        Self {
            group_id: rename(&self.group_id),
            source: match &self.source {
                RuleSource::ReferencedGroupId(group) => {
                    RuleSource::ReferencedGroupId(rename(group))
                }
                other => other.clone(),
            },
            ..self.clone()
        }
    }
}
