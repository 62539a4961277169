//! The IPv6 range of a subnet: a range, or a part of the range that AWS gives the VPC.

use ipnet::Ipv6Net;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// The prefix length of the range that AWS gives a VPC
/// (<https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html>).
pub const AMAZON_PREFIX: u8 = 56;

/// The IPv6 range of a subnet. Written as a range, or as `/64#a`: the eleventh /64 of the VPC's range, counted from 0 in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum SubnetIpv6Range {
    /// The range itself.
    Net(Ipv6Net),
    /// A part of the VPC's range.
    Part {
        /// Its prefix length.
        prefix_len: u8,
        /// Which one of that size, from 0.
        number: u64,
    },
}

impl SubnetIpv6Range {
    /// The range in a VPC with that range; `None`: it has no such part.
    pub fn within(self, vpc: Ipv6Net) -> Option<Ipv6Net> {
        let (prefix_len, number) = match self {
            Self::Net(range) => return Some(range),
            Self::Part { prefix_len, number } => (prefix_len, number),
        };
        let bits = prefix_len.checked_sub(vpc.prefix_len())?;
        let parts = 1_u128.checked_shl(bits.into());
        if parts.is_some_and(|parts| u128::from(number) >= parts) {
            return None;
        }
        let offset = u128::from(number).checked_shl(u32::from(128 - prefix_len))?;
        let address = Ipv6Addr::from_bits(vpc.network().to_bits() | offset);
        Ipv6Net::new(address, prefix_len).ok()
    }

    /// True if the range can be this part of a range that AWS gave a VPC: of those only the last bits are known in advance.
    pub fn fits(self, range: Ipv6Net) -> bool {
        let Ok(vpc) = Ipv6Net::new(range.network(), AMAZON_PREFIX) else {
            return false;
        };
        self.within(vpc.trunc()) == Some(range)
    }

    /// Its prefix length.
    pub fn prefix_len(self) -> u8 {
        match self {
            Self::Net(range) => range.prefix_len(),
            Self::Part { prefix_len, .. } => prefix_len,
        }
    }
}

impl fmt::Display for SubnetIpv6Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Net(range) => range.fmt(f),
            Self::Part { prefix_len, number } => write!(f, "/{prefix_len}#{number:x}"),
        }
    }
}

impl From<SubnetIpv6Range> for String {
    fn from(range: SubnetIpv6Range) -> Self {
        range.to_string()
    }
}

impl TryFrom<String> for SubnetIpv6Range {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for SubnetIpv6Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("\"{text}\" is neither an IPv6 range nor a part of the VPC's");
        if let Ok(range) = text.parse::<Ipv6Net>() {
            if range.trunc() != range {
                let whole = range.trunc();
                return Err(format!("{text} is an address inside {whole}, not a range"));
            }
            return Ok(Self::Net(range));
        }
        let part = text.strip_prefix('/').and_then(|part| part.split_once('#'));
        let (prefix_len, number) = part.ok_or_else(refused)?;
        let plain =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = Some(number).filter(|text| plain(text));
        let number = number.and_then(|text| u64::from_str_radix(text, 16).ok());
        let prefix_len = prefix_len.parse().ok().filter(|length| *length <= 128);
        let (prefix_len, number) = prefix_len.zip(number).ok_or_else(refused)?;
        Ok(Self::Part { prefix_len, number })
    }
}

#[cfg(test)]
mod tests {
    use super::{Ipv6Net, SubnetIpv6Range};
    use proptest::prelude::*;

    fn range(text: &str) -> SubnetIpv6Range {
        text.parse().unwrap()
    }

    #[test]
    fn parts_are_counted_in_hexadecimal() {
        let vpc: Ipv6Net = "2001:db8:0:ab00::/56".parse().unwrap();
        let of = |text: &str| range(text).within(vpc).map(|net| net.to_string());
        assert_eq!(of("/64#0").unwrap(), "2001:db8:0:ab00::/64");
        assert_eq!(of("/64#a").unwrap(), "2001:db8:0:ab0a::/64");
        assert_eq!(of("/64#10").unwrap(), "2001:db8:0:ab10::/64");
        assert_eq!(of("/60#f").unwrap(), "2001:db8:0:abf0::/60");
        assert_eq!(of("/56#0").unwrap(), "2001:db8:0:ab00::/56");
        for outside in ["/64#100", "/60#10", "/56#1", "/52#0"] {
            assert_eq!(of(outside), None, "{outside}");
        }
        assert_eq!(of("2001:db8:1::/64").unwrap(), "2001:db8:1::/64");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "/64",
            "/64#",
            "64#1",
            "/129#0",
            "/64#g",
            "/64#+1",
            "10.0.0.0/16",
            "2001:db8::1/64",
            "/64#10000000000000000",
        ] {
            assert!(text.parse::<SubnetIpv6Range>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_part_is_read_as_it_is_written_and_known_again_in_any_vpc(vpc: u64, len in 0_u8..=2, number in 0_u64..256) {
            let prefix_len = 56 + 4 * len;
            let part = SubnetIpv6Range::Part { prefix_len, number };
            prop_assert_eq!(range(&part.to_string()), part);
            let vpc = Ipv6Net::new((u128::from(vpc) << 64).into(), 56).unwrap().trunc();
            match part.within(vpc) {
                Some(net) => prop_assert!(vpc.contains(&net) && part.fits(net)),
                None => prop_assert!(number >= 1 << (prefix_len - 56)),
            }
        }
    }
}
