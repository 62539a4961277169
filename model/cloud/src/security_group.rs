//! Security groups and their rules, one resource a rule.

use super::listing::{ListingPosition, PartOf, Section, reference_words};
use super::{Kind, Tags};
use engine::Ref;
use ipnet::IpNet;
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
    pub tags: Tags,
}

impl Kind for SecurityGroup {
    const TYPE: &'static str = "security_group";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::SecurityGroups, 0);

    fn name(&self) -> String {
        self.group_name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        vec![&mut self.vpc_id]
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        Some(&mut self.tags)
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
    ReferencedGroupId(Ref),
}

impl RuleSource {
    /// The peer that a text means: a prefix list, an IPv6 or an IPv4 range. Ranges in AWS' form: it keeps 100.68.0.18/18 as
    /// 100.68.0.0/18, describes it so, and takes the two for the same rule (API reference of EC2, `IpRange` and `Ipv6Range`).
    pub fn parse_peer(text: &str) -> Self {
        match text.parse() {
            Ok(IpNet::V4(range)) => Self::CidrIpv4(range.trunc().to_string()),
            Ok(IpNet::V6(range)) => Self::CidrIpv6(range.trunc().to_string()),
            // The spec's other texts were refused before; AWS refuses what it does not know.
            Err(_) if text.starts_with("pl-") => Self::PrefixListId(text.to_owned()),
            Err(_) if text.contains(':') => Self::CidrIpv6(text.to_owned()),
            Err(_) => Self::CidrIpv4(text.to_owned()),
        }
    }
}

/// One rule. All of it is its identity: a changed rule is another rule. AWS keeps no name for it, so
/// an observed rule takes the name of the wanted rule with the same content (see `cloud::settle`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecurityGroupRule {
    /// kOps' task name: `from-0.0.0.0/0-ingress-tcp-22to22-nodes.NAME`, `https-elb-to-master`, ...
    pub name: String,
    /// The group it belongs to.
    pub group_id: Ref,
    /// True for outgoing traffic, false for incoming.
    pub is_egress: bool,
    /// `tcp`, `udp`, `icmp`, `icmpv6`, a protocol number, or `-1` for all.
    pub ip_protocol: String,
    /// First port or ICMP type; -1 with protocol `-1`.
    pub from_port: i32,
    /// Last port or ICMP code; -1 with protocol `-1`.
    pub to_port: i32,
    #[serde(flatten)]
    pub source: RuleSource,
}

impl SecurityGroupRule {
    /// What AWS tells rules apart by: everything but the name.
    pub fn rule_key(&self) -> (Ref, bool, String, i32, i32, RuleSource) {
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
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::SecurityGroups, 1);

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        let group = std::iter::once(&mut self.group_id);
        let source = match &mut self.source {
            RuleSource::ReferencedGroupId(group) => Some(group),
            RuleSource::CidrIpv4(_) | RuleSource::CidrIpv6(_) | RuleSource::PrefixListId(_) => None,
        };
        group.chain(source).collect()
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        None
    }

    fn part_of(&self) -> Option<PartOf> {
        PartOf::of_whole(&self.group_id, "rule", "rules")
    }

    fn describe(&self) -> String {
        let ports = match (self.ip_protocol.as_str(), self.from_port, self.to_port) {
            ("-1", ..) => "everything".to_owned(),
            (protocol, from, to) if from == to => format!("{protocol} {from}"),
            (protocol, from, to) => format!("{protocol} {from}-{to}"),
        };
        let other = match &self.source {
            RuleSource::CidrIpv4(cidr) | RuleSource::CidrIpv6(cidr) => cidr,
            RuleSource::PrefixListId(list) => list,
            RuleSource::ReferencedGroupId(group) => reference_words(group),
        };
        let (direction, side) = if self.is_egress {
            ("egress", "to")
        } else {
            ("ingress", "from")
        };
        format!("{direction} {ports} {side} {other}")
    }
}

#[cfg(test)]
mod tests {
    use super::RuleSource;
    use ipnet::{IpNet, Ipv4Net, Ipv6Net};
    use proptest::prelude::*;

    fn range() -> impl Strategy<Value = IpNet> {
        prop_oneof![
            (any::<[u8; 4]>(), 0..=32_u8)
                .prop_map(|(at, length)| Ipv4Net::new(at.into(), length).unwrap().into()),
            (any::<[u8; 16]>(), 0..=128_u8).prop_map(|(at, length)| Ipv6Net::new(
                at.into(),
                length
            )
            .unwrap()
            .into()),
        ]
    }

    proptest! {
        #[test]
        fn a_range_is_one_source_however_it_is_written(range in range(), upper in any::<bool>()) {
            let text = range.to_string();
            let text = if upper { text.to_uppercase() } else { text };
            let source = RuleSource::parse_peer(&text);
            prop_assert_eq!(&source, &RuleSource::parse_peer(&range.trunc().to_string()));
            let kept = match source {
                RuleSource::CidrIpv4(kept) | RuleSource::CidrIpv6(kept) => kept,
                other => return Err(TestCaseError::fail(format!("{other:?}"))),
            };
            prop_assert_eq!(kept.parse::<IpNet>().unwrap(), range.trunc());
        }
    }

    #[test]
    fn what_is_no_range_is_a_prefix_list() {
        let list = "pl-0123456789abcdef0".to_owned();
        assert_eq!(
            RuleSource::parse_peer(&list),
            RuleSource::PrefixListId(list)
        );
        assert_eq!(
            RuleSource::parse_peer("2001:0DB8:0::1/32"),
            RuleSource::CidrIpv6("2001:db8::/32".to_owned())
        );
    }
}
