//! Route 53 records that kctl makes before anything can look them up, and who can look up a private zone.

use super::{AttrLookup, Kind, Rename};
use engine::{Id, Ref, Text};
use serde::{Deserialize, Serialize};

/// One record set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route53Record {
    /// Domain name without the trailing dot.
    pub name: String,
    /// `A`, `AAAA` or `TXT`.
    pub record_type: String,
    /// The hosted zone's id, without `/hostedzone/`.
    pub hosted_zone_id: String,
    /// An alias to a load balancer.
    pub alias_target: Option<AliasTarget>,
    /// Values, sorted. `None`: protokube publishes them, and kctl only made the record once, so that nothing
    /// caches its absence; `initial` is what it was made with.
    pub resource_records: Option<Vec<String>>,
    /// What a record whose values are not ours is created with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub initial: Vec<String>,
    /// Seconds; not for aliases, nor where the values are not ours.
    pub ttl: Option<i64>,
}

/// The target of an alias.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AliasTarget {
    /// The load balancer.
    pub of: Ref,
    /// Its DNS name.
    pub dns_name: Text,
    /// Its zone.
    pub hosted_zone_id: Text,
    /// Follow the target's health.
    pub evaluate_target_health: bool,
}

impl Kind for Route53Record {
    const TYPE: &'static str = "route53_record";

    fn name(&self) -> String {
        if self.record_type == "A" {
            self.name.clone()
        } else {
            format!("{}-{}", self.name, self.record_type)
        }
    }

    fn refs(&self) -> Vec<Ref> {
        self.alias_target
            .iter()
            .map(|alias| alias.of.clone())
            .collect()
    }

    fn with_refs(&self, rename: Rename<'_>) -> Self {
        Self {
            alias_target: self.alias_target.as_ref().map(|alias| AliasTarget {
                of: rename(&alias.of),
                dns_name: super::renamed_text(&alias.dns_name, rename),
                hosted_zone_id: super::renamed_text(&alias.hosted_zone_id, rename),
                evaluate_target_health: alias.evaluate_target_health,
            }),
            ..self.clone()
        }
    }

    fn late(&self) -> Vec<Id> {
        self.alias_target
            .iter()
            .flat_map(|alias| [alias.dns_name.needs(), alias.hosted_zone_id.needs()].concat())
            .collect()
    }

    fn resolved(&self, attr: AttrLookup<'_>) -> Self {
        let alias = |alias: &AliasTarget| AliasTarget {
            dns_name: alias.dns_name.resolved(attr),
            hosted_zone_id: alias.hosted_zone_id.resolved(attr),
            ..alias.clone()
        };
        Self {
            alias_target: self.alias_target.as_ref().map(alias),
            ..self.clone()
        }
    }
}

/// A VPC in which the names of a private hosted zone can be looked up. It has no tags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route53ZoneAssociation {
    /// The cluster's name.
    pub name: String,
    /// The VPC.
    pub vpc_id: Ref,
    /// The VPC's region.
    pub vpc_region: String,
    /// The hosted zone's id, without `/hostedzone/`.
    pub hosted_zone_id: String,
}

impl Kind for Route53ZoneAssociation {
    const TYPE: &'static str = "route53_zone_association";

    fn name(&self) -> String {
        self.name.clone()
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
}
