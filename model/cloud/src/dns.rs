//! Route 53 records that kctl makes before anything can look them up, and who can look up a private zone.

use super::listing::{ListingPosition, Section, reference_words};
use super::{Kind, Tags};
use engine::{Ref, Text};
use serde::{Deserialize, Serialize};

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
    pub of: Ref,
    pub dns_name: Text,
    pub hosted_zone_id: Text,
    /// Follow the target's health.
    pub evaluate_target_health: bool,
}

impl Kind for Route53Record {
    const TYPE: &'static str = "route53_record";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Api, 4);

    fn name(&self) -> String {
        if self.record_type == "A" {
            self.name.clone()
        } else {
            format!("{}-{}", self.name, self.record_type)
        }
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        self.alias_target
            .iter_mut()
            .map(|alias| &mut alias.of)
            .collect()
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        None
    }

    fn texts_mut(&mut self) -> Vec<&mut Text> {
        let alias = self.alias_target.iter_mut();
        alias
            .flat_map(|alias| [&mut alias.dns_name, &mut alias.hosted_zone_id])
            .collect()
    }

    fn describe(&self) -> String {
        let target = self
            .alias_target
            .as_ref()
            .map(|alias| format!(" for {}", reference_words(&alias.of)));
        format!("{}{}", self.record_type, target.unwrap_or_default())
    }
}

/// A VPC in which the names of a private hosted zone can be looked up. It has no tags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route53ZoneAssociation {
    pub name: String,
    pub vpc_id: Ref,
    pub vpc_region: String,
    /// The hosted zone's id, without `/hostedzone/`.
    pub hosted_zone_id: String,
}

impl Kind for Route53ZoneAssociation {
    const TYPE: &'static str = "route53_zone_association";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Api, 3);

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        vec![&mut self.vpc_id]
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        None
    }

    fn describe(&self) -> String {
        let vpc = reference_words(&self.vpc_id);
        format!("{vpc} looks up {}", self.hosted_zone_id)
    }
}
