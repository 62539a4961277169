//! The address families: the router keeps routes and a packet filter of each.

use super::names;
use crate::aws_state::{BalancerAddress, Instance};
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    pub const BOTH: [Self; 2] = [Self::V4, Self::V6];

    pub fn of_range(range: IpNet) -> Self {
        match range {
            IpNet::V4(_) => Self::V4,
            IpNet::V6(_) => Self::V6,
        }
    }

    /// As nft calls its tables and headers.
    pub fn word(self) -> &'static str {
        match self {
            Self::V4 => "ip",
            Self::V6 => "ip6",
        }
    }

    /// As nft calls the type of its addresses.
    pub fn address_type(self) -> &'static str {
        match self {
            Self::V4 => "ipv4_addr",
            Self::V6 => "ipv6_addr",
        }
    }

    /// The option of `ip`.
    pub fn option(self) -> &'static str {
        match self {
            Self::V4 => "-4",
            Self::V6 => "-6",
        }
    }

    /// The range of all addresses.
    pub fn everything(self) -> IpNet {
        let unspecified = match self {
            Self::V4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            Self::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        IpNet::new_assert(unspecified, 0)
    }

    /// Where the operator comes from.
    pub fn operator(self) -> IpAddr {
        match self {
            Self::V4 => names::OPERATOR.into(),
            Self::V6 => names::OPERATOR_V6.into(),
        }
    }

    /// The lab's internet besides public addresses; on IPv6 it is what NAT64 leads to.
    pub fn internet(self) -> &'static str {
        match self {
            Self::V4 => names::INTERNET_RANGE,
            Self::V6 => names::INTERNET_RANGE_NAT64,
        }
    }

    /// The metadata service.
    pub fn metadata(self) -> IpAddr {
        match self {
            Self::V4 => names::METADATA.into(),
            Self::V6 => names::METADATA_V6.into(),
        }
    }

    /// The resolver that has the same address in every VPC.
    pub fn resolver(self) -> IpAddr {
        match self {
            Self::V4 => names::RESOLVER.into(),
            Self::V6 => names::RESOLVER_V6.into(),
        }
    }

    /// An instance's addresses; on IPv4 the one by which it has a link at all.
    pub fn instance_addresses(self, instance: &Instance) -> Vec<IpAddr> {
        match self {
            Self::V4 => vec![instance.address.into()],
            Self::V6 => instance
                .ipv6_addresses
                .iter()
                .copied()
                .map(IpAddr::V6)
                .collect(),
        }
    }

    /// The ranges that are delegated to an instance's interface.
    pub fn pod_ranges(self, instance: &Instance) -> Vec<IpNet> {
        match self {
            Self::V4 => Vec::new(),
            Self::V6 => instance
                .ipv6_prefixes
                .iter()
                .copied()
                .map(IpNet::V6)
                .collect(),
        }
    }

    /// The address by which others in the VPC reach an instance.
    pub fn reached_address(self, instance: &Instance) -> Option<IpAddr> {
        match self {
            Self::V4 => instance.private_address().map(IpAddr::V4),
            Self::V6 => instance.ipv6_addresses.first().copied().map(IpAddr::V6),
        }
    }

    /// A balancer's address inside its VPC.
    pub fn balancer_address(self, at: &BalancerAddress) -> Option<IpAddr> {
        match self {
            Self::V4 => Some(at.address.into()),
            Self::V6 => at.ipv6_address.map(IpAddr::V6),
        }
    }

    /// A balancer's address for the internet; the same as inside on IPv6, where each address is known everywhere.
    pub fn public_balancer_address(self, at: &BalancerAddress) -> Option<IpAddr> {
        match self {
            Self::V4 => at.public_address.map(IpAddr::V4),
            Self::V6 => at
                .ipv6_address
                .filter(|_| at.public_address.is_some())
                .map(IpAddr::V6),
        }
    }

    /// All addresses of a balancer's interface.
    pub fn all_balancer_addresses(self, at: &BalancerAddress) -> impl Iterator<Item = IpAddr> {
        let both = [self.balancer_address(at), self.public_balancer_address(at)];
        both.into_iter().flatten()
    }
}
