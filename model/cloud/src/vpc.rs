//! The VPC and what hangs on it: extra address ranges, DHCP options, the internet gateway.

use super::{Kind, Rename, Tags};
use engine::Ref;
use serde::{Deserialize, Serialize};

/// The cluster's VPC. Its address range cannot change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vpc {
    /// The cluster's name.
    pub name: String,
    /// First IPv4 range.
    pub cidr_block: String,
    /// Ask AWS for an IPv6 /56.
    pub amazon_provided_ipv6_cidr_block: bool,
    /// Instances get DNS names.
    pub enable_dns_hostnames: bool,
    /// The Amazon resolver answers inside.
    pub enable_dns_support: bool,
    /// Tags.
    pub tags: Tags,
}

impl Kind for Vpc {
    const TYPE: &'static str = "vpc";
    const JOURNALED: bool = true;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs(&self) -> Vec<Ref> {
        Vec::new()
    }

    fn refuses(&self, have: &Self) -> Option<String> {
        (self.cidr_block != have.cidr_block).then(|| {
            format!(
                "a VPC's range cannot change from {} to {}: keep spec.networkCIDR, and add ranges with spec.additionalNetworkCIDRs",
                have.cidr_block, self.cidr_block
            )
        })
    }
}

/// One more IPv4 range of the VPC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VpcIpv4CidrBlockAssociation {
    /// The VPC.
    pub vpc_id: Ref,
    /// The range; also its logical name.
    pub cidr_block: String,
}

impl Kind for VpcIpv4CidrBlockAssociation {
    const TYPE: &'static str = "vpc_ipv4_cidr_block_association";

    fn name(&self) -> String {
        self.cidr_block.clone()
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

/// DHCP options. Immutable: a change makes the next one of the series (`NAME`, `NAME-2`, ...).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DhcpOptions {
    /// Logical name: the cluster's name, from the second on with `-REVISION`.
    pub name: String,
    /// Search domain.
    pub domain_name: String,
    /// Resolvers.
    pub domain_name_servers: Vec<String>,
    /// Tags; `Name` is the name of the first of the series, `kops.k8s.io/revision` the place in it.
    pub tags: Tags,
}

impl Kind for DhcpOptions {
    const TYPE: &'static str = "vpc_dhcp_options";
    const JOURNALED: bool = true;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs(&self) -> Vec<Ref> {
        Vec::new()
    }
}

/// Which DHCP options the VPC uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DhcpOptionsAssociation {
    /// The cluster's name.
    pub name: String,
    /// The VPC.
    pub vpc_id: Ref,
    /// The options.
    pub dhcp_options_id: Ref,
}

impl Kind for DhcpOptionsAssociation {
    const TYPE: &'static str = "vpc_dhcp_options_association";

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs(&self) -> Vec<Ref> {
        vec![self.vpc_id.clone(), self.dhcp_options_id.clone()]
    }

    fn with_refs(&self, rename: Rename<'_>) -> Self {
        Self {
            vpc_id: rename(&self.vpc_id),
            dhcp_options_id: rename(&self.dhcp_options_id),
            ..self.clone()
        }
    }
}

/// The internet gateway, attached to the VPC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InternetGateway {
    /// The cluster's name.
    pub name: String,
    /// The VPC it is attached to; `None` only as observed, between creation and attachment.
    pub vpc_id: Option<Ref>,
    /// Tags.
    pub tags: Tags,
}

impl Kind for InternetGateway {
    const TYPE: &'static str = "internet_gateway";
    const JOURNALED: bool = true;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs(&self) -> Vec<Ref> {
        self.vpc_id.iter().cloned().collect()
    }

    fn with_refs(&self, rename: Rename<'_>) -> Self {
        Self {
            vpc_id: self.vpc_id.as_ref().map(rename),
            ..self.clone()
        }
    }
}
