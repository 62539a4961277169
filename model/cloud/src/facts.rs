//! What expansion must know of the world, collected before it runs: account, zones, images, instance
//! types, hosted zones, shared networks, Elastic IPs. `kctl render --facts FILE` reads this as YAML; without AWS,
//! stand-ins take its place.

use node::config::Arch;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What [`Facts`] must hold for a cluster, besides account and partition. Hashes of downloads are not among it: those that the
/// full spec lacks are asked for afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FactsWanted {
    /// The region to ask; `None` where the spec names no zone.
    pub region: Option<String>,
    /// Images as the spec names them: `ami-ID`, `OWNER/NAME`, or the `NAME` of one of the account's own.
    pub images: BTreeSet<String>,
    /// Instance types; those that the region does not offer are left out of the facts.
    pub machine_types: BTreeSet<String>,
    /// Zones whose existence and instance types are asked for; empty: not asked.
    pub offered_in: BTreeSet<String>,
    /// The store of the issuer's documents, whose region is wanted: `s3://BUCKET/PATH`.
    pub discovery_store: Option<String>,
    /// The user's VPC, by id.
    pub vpc: Option<String>,
    /// Whether the VPC's egress-only internet gateway is wanted.
    pub egress_only_internet_gateway: bool,
    /// The user's subnets, by id; their VPC is asked for too.
    pub subnets: BTreeSet<String>,
    /// The user's Elastic IPs, by public address.
    pub addresses: BTreeSet<String>,
    /// The user's instance profiles, by name.
    pub profiles: BTreeSet<String>,
    /// Whether the account's hosted zones are wanted.
    pub hosted_zones: bool,
}

/// Facts about an account and a region.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Facts {
    /// Twelve digits.
    pub account: String,
    /// Account of the state store's bucket, if the user says that it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_owner: Option<String>,
    /// `aws`, `aws-cn`, `aws-us-gov`.
    pub partition: String,
    /// Zones of the region that the account may use; empty: nobody asked.
    pub zones: Vec<String>,
    /// Images by the name the spec gives them.
    pub images: BTreeMap<String, Image>,
    /// Instance types by name.
    pub instance_types: BTreeMap<String, InstanceType>,
    /// Hosted zones of the account.
    pub hosted_zones: Vec<HostedZone>,
    /// Shared VPCs by id.
    pub vpcs: BTreeMap<String, SharedVpc>,
    /// Shared subnets by id.
    pub subnets: BTreeMap<String, SharedSubnet>,
    /// Elastic IPs of the user's: allocation id by public address.
    pub addresses: BTreeMap<String, String>,
    /// The role in each instance profile of the user's, both by name. A profile without a role is left out.
    pub profile_roles: BTreeMap<String, String>,
    /// The region of the discovery store; `None`: nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery_region: Option<String>,
    /// sha256 of downloads that are not in the catalog, by URL, as published beside them.
    pub published_hashes: BTreeMap<String, String>,
    /// True if some of this is made up because nobody could be asked; outputs say so.
    pub stand_in: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Image {
    /// `ami-...`.
    pub id: String,
    /// `/dev/sda1`, `/dev/xvda`.
    pub root_device: String,
    pub arch: Arch,
    /// The system in it, where nodeup makes no node of that: `Flatcar`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit: Option<String>,
    /// The system in it, where its name or owner tells: `Debian`, `Ubuntu`, `Amazon Linux`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstanceType {
    pub arch: Arch,
    #[serde(default)]
    pub instance_store_disks: u32,
    /// It has a GPU.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gpu: bool,
    /// It has a GPU of NVIDIA's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nvidia_gpu: bool,
    /// Its hypervisor is Xen, so that it is none of the Nitro System.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub xen: bool,
    /// Most network interfaces of an instance; `None`: nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_interfaces: Option<u32>,
    /// Most private IPv4 addresses of an interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses_per_interface: Option<u32>,
    /// Zones that offer it; empty: all.
    #[serde(default)]
    pub zones: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostedZone {
    /// Without `/hostedzone/`.
    pub id: String,
    /// Without the trailing dot.
    pub name: String,
    /// True: only VPCs that it is associated with resolve its names.
    #[serde(default)]
    pub private: bool,
}

/// The hosted zone of a cluster: the one that the spec names, by id whichever it is or by name, else of the public or private
/// ones the longest that holds the cluster's name.
pub fn hosted_zone<'a>(
    zones: &'a [HostedZone],
    named: Option<&str>,
    cluster: &str,
    private: bool,
) -> Option<&'a HostedZone> {
    let fitting = zones.iter().filter(|zone| zone.private == private);
    let Some(named) = named else {
        return fitting
            .filter(|zone| is_in(cluster, &zone.name))
            .max_by_key(|zone| zone.name.len());
    };
    let named = named.trim_end_matches('.');
    let id = named.trim_start_matches("/hostedzone/");
    let by_id = zones.iter().find(|zone| zone.id == id);
    by_id.or_else(|| fitting.clone().find(|zone| zone.name == named))
}

/// The zones among which the choice of [`hosted_zone`] would be arbitrary: all of the name that it would choose, if there are
/// several. Empty: one zone, none, or one that the spec names by id.
pub fn namesake_zones<'a>(
    zones: &'a [HostedZone],
    named: Option<&str>,
    cluster: &str,
    private: bool,
) -> Vec<&'a HostedZone> {
    let Some(chosen) = hosted_zone(zones, named, cluster, private) else {
        return Vec::new();
    };
    let by_id = named.map(|named| named.trim_start_matches("/hostedzone/"));
    let same = zones
        .iter()
        .filter(|zone| zone.private == chosen.private && zone.name == chosen.name);
    let same: Vec<&HostedZone> = same.collect();
    if same.len() < 2 || by_id == Some(chosen.id.as_str()) {
        return Vec::new();
    }
    same
}

/// The zone that a cluster has had until now, by id, if it still is what the spec asks for: a zone of the same name that somebody makes
/// later, or a longer one, does not take its place.
pub fn kept_zone<'a>(
    zones: &'a [HostedZone],
    named: Option<&str>,
    until_now: &str,
    cluster: &str,
    private: bool,
) -> Option<&'a HostedZone> {
    let zone = zones
        .iter()
        .find(|zone| zone.id == until_now && zone.private == private)?;
    let fits = match named {
        None => is_in(cluster, &zone.name),
        Some(named) => named.trim_end_matches('.') == zone.name,
    };
    fits.then_some(zone)
}

/// True if the name is that of the zone or below it.
pub fn is_in(name: &str, zone: &str) -> bool {
    name.strip_suffix(zone)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// A VPC of the user's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SharedVpc {
    /// First IPv4 range.
    pub cidr: String,
    #[serde(default)]
    pub internet_gateway: Option<String>,
    /// Its IPv6 ranges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ipv6_cidrs: Vec<String>,
    /// Looked for only for IPv6 clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress_only_internet_gateway: Option<String>,
    /// All subnets in it, whoever made them; empty: nobody asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<TakenRange>,
}

/// A range of a VPC that a subnet has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TakenRange {
    /// `subnet-...`.
    pub id: String,
    /// Its IPv4 range; `None`: IPv6 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cidr: Option<String>,
    /// Its IPv6 range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv6_cidr: Option<String>,
    /// The cluster that made it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
}

/// A subnet of the user's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SharedSubnet {
    pub vpc: String,
    pub zone: String,
    /// Its IPv4 range; `None`: IPv6 only.
    #[serde(default)]
    pub cidr: Option<String>,
    /// Its IPv6 range.
    #[serde(default, rename = "ipv6CIDR", skip_serializing_if = "Option::is_none")]
    pub ipv6_cidr: Option<String>,
    /// Whether the VPC's resolver makes IPv6 addresses of IPv4 addresses for it (DNS64).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dns64: bool,
}

#[cfg(test)]
mod tests {
    use super::{HostedZone, hosted_zone};

    #[test]
    fn the_zone_is_the_named_one_or_the_longest_that_holds_the_name() {
        let zone = |id: &str, name: &str, private| HostedZone {
            id: id.to_owned(),
            name: name.to_owned(),
            private,
        };
        let zones = [
            zone("Z1", "example.com", false),
            zone("Z2", "dev.example.com", false),
            zone("Z3", "dev.example.com", true),
            zone("Z4", "v.example.com", false),
        ];
        let cluster = "a.dev.example.com";
        let id = |named, private| {
            let found = hosted_zone(&zones, named, cluster, private);
            found.map(|zone| zone.id.as_str())
        };
        assert_eq!(id(None, false), Some("Z2"));
        assert_eq!(id(None, true), Some("Z3"));
        assert_eq!(id(Some("example.com."), false), Some("Z1"));
        assert_eq!(id(Some("example.com"), true), None);
        assert_eq!(id(Some("/hostedzone/Z3"), false), Some("Z3"));
        assert_eq!(hosted_zone(&[], None, cluster, false), None);
    }

    #[test]
    fn a_second_zone_of_the_name_is_told_and_never_taken() {
        let zone = |id: &str, name: &str, private| HostedZone {
            id: id.to_owned(),
            name: name.to_owned(),
            private,
        };
        let zones = [
            zone("Z1", "example.com", false),
            zone("Z2", "example.com", false),
            zone("Z3", "example.com", true),
            zone("Z4", "a.example.com", false),
            zone("Z5", "example.com", true),
        ];
        let ids = |named, cluster, private| {
            let found = super::namesake_zones(&zones, named, cluster, private);
            found
                .iter()
                .map(|zone| zone.id.as_str())
                .collect::<Vec<_>>()
        };
        assert_eq!(ids(None, "b.example.com", false), ["Z1", "Z2"]);
        assert_eq!(
            ids(Some("example.com."), "a.example.com", false),
            ["Z1", "Z2"]
        );
        assert_eq!(ids(None, "b.example.com", true), ["Z3", "Z5"]);
        for (named, cluster, private) in [
            (None, "x.a.example.com", false),
            (None, "b.example.org", false),
            (Some("Z2"), "b.example.com", false),
            (Some("/hostedzone/Z1"), "b.example.com", false),
        ] {
            assert_eq!(ids(named, cluster, private), Vec::<&str>::new());
        }
        let kept = |named, until_now, cluster, private| {
            let found = super::kept_zone(&zones, named, until_now, cluster, private);
            found.map(|zone| zone.id.as_str())
        };
        assert_eq!(kept(None, "Z1", "x.a.example.com", false), Some("Z1"));
        assert_eq!(kept(None, "Z5", "b.example.com", true), Some("Z5"));
        assert_eq!(
            kept(Some("example.com"), "Z2", "b.example.com", false),
            Some("Z2")
        );
        assert_eq!(
            kept(Some("a.example.com"), "Z2", "b.example.com", false),
            None
        );
        assert_eq!(kept(None, "Z2", "b.example.com", true), None);
        assert_eq!(kept(None, "gone", "b.example.com", false), None);
    }
}
