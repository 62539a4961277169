//! What expansion must know of the world, collected before it runs: account, zones, images, machine
//! types, hosted zones, shared networks, Elastic IPs. `kctl render --facts FILE` reads this as YAML; without AWS,
//! stand-ins take its place.

use crate::full::Arch;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Facts about an account and a region.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Facts {
    /// Twelve digits.
    pub account: String,
    /// `aws`, `aws-cn`, `aws-us-gov`.
    pub partition: String,
    /// Zones of the region that the account may use; empty: nobody asked.
    pub zones: Vec<String>,
    /// Images by the name the spec gives them.
    pub images: BTreeMap<String, Image>,
    /// Machine types by name.
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
    /// sha256 of downloads that are not in the catalog, by URL, as published beside them.
    pub published_hashes: BTreeMap<String, String>,
    /// True if some of this is made up because nobody could be asked; outputs say so.
    pub stand_in: bool,
}

/// An image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Image {
    /// `ami-...`.
    pub id: String,
    /// `/dev/sda1`, `/dev/xvda`.
    pub root_device: String,
    /// Architecture.
    pub arch: Arch,
    /// The system in it, where nodeup makes no node of that: `Flatcar`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit: Option<String>,
}

/// A machine type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstanceType {
    /// Architecture.
    pub arch: Arch,
    /// Instance store disks.
    #[serde(default)]
    pub instance_store_disks: u32,
    /// Zones that offer it; empty: all.
    #[serde(default)]
    pub zones: Vec<String>,
}

/// A hosted zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostedZone {
    /// Without `/hostedzone/`.
    pub id: String,
    /// Without the trailing dot.
    pub name: String,
    /// Private to VPCs.
    #[serde(default)]
    pub private: bool,
}

/// A VPC of the user's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SharedVpc {
    /// First IPv4 range.
    pub cidr: String,
    /// Its internet gateway.
    #[serde(default)]
    pub internet_gateway: Option<String>,
}

/// A subnet of the user's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SharedSubnet {
    /// Its VPC.
    pub vpc: String,
    /// Its zone.
    pub zone: String,
    /// Its IPv4 range.
    pub cidr: String,
}
