//! Address arithmetic: subnets of a VPC's range, and pod and service ranges of the non-masquerade range.
//! The algorithms are kOps', so that its specs keep their addresses.

use ipnet::{IpNet, Ipv4Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest prefix AWS accepts for a subnet.
const SMALLEST_SUBNET: u8 = 28;

/// The Services of an IPv6 cluster, as in kOps: Kubernetes takes no more than 2 to the power of 20 addresses.
const SERVICES_V6: &str = "fd00:5e4f:ce::/108";

/// A network is split into at most 2 to this power parts.
const MOST_BITS: u8 = 3;

/// How much of the network a subnet gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// A whole part: public and private subnets.
    Big,
    /// An eighth of a part: utility subnets.
    Little,
}

/// A subnet that has a range or needs one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubnetRequest<'a> {
    /// The subnet's zone. Ranges are assigned in the order of zones.
    pub zone: &'a str,
    pub share: Share,
    /// The range that the spec already sets.
    pub preset: Option<Ipv4Net>,
}

/// A network has no room for all its subnets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{network} has no room for {big} subnets and {little} utility subnets")]
pub struct NoRoom {
    pub network: Ipv4Net,
    /// Public and private subnets without a range.
    pub big: usize,
    /// Utility subnets without a range.
    pub little: usize,
}

/// Gives every subnet a range, in the order of `wanted`: presets stay, the others get one of 1, 2, 4 or
/// 8 equal parts of `network`, the fewest that suffice. Parts that overlap a preset are
/// left out; utility subnets share the first free part.
///
/// `ipv6_only` subnets need no range; as in kOps they count when parts are made, as long as there are enough for all.
///
/// kOps' algorithm, with one addition: where kOps finds too few parts free, finer parts are tried.
pub fn assign_ranges(
    network: Ipv4Net,
    wanted: &[SubnetRequest],
    ipv6_only: usize,
) -> Result<Vec<Ipv4Net>, NoRoom> {
    let lacking = |share| {
        wanted
            .iter()
            .filter(|subnet| subnet.share == share && subnet.preset.is_none())
            .count()
    };
    let (big, little) = (lacking(Share::Big), lacking(Share::Little));
    let no_room = NoRoom {
        network,
        big,
        little,
    };
    if big + little == 0 {
        return Ok(wanted.iter().filter_map(|subnet| subnet.preset).collect());
    }
    let reserve = wanted.iter().any(|subnet| subnet.share == Share::Little);
    let parts = count_parts(network, wanted, reserve);
    let first = bits_for(parts + ipv6_only).or_else(|| bits_for(parts));
    let first = first.ok_or_else(|| no_room.clone())?;
    (first..=MOST_BITS)
        .find_map(|bits| hand_out(&free_parts(network, bits, wanted)?, wanted, reserve))
        .ok_or(no_room)
}

/// Number of parts needed: one for each big subnet inside the network, and one for all little ones.
fn count_parts(network: Ipv4Net, wanted: &[SubnetRequest], reserve: bool) -> usize {
    let inside = wanted.iter().filter(|subnet| {
        subnet.share == Share::Big
            && subnet
                .preset
                .is_none_or(|range| ranges_overlap(range, network))
    });
    inside.count() + usize::from(reserve)
}

/// The smallest number of bits that makes at least this many parts.
fn bits_for(slots: usize) -> Option<u8> {
    (0..=MOST_BITS).find(|bits| (1_usize << bits) >= slots)
}

/// The equal parts of a network that overlap no preset.
fn free_parts(network: Ipv4Net, bits: u8, wanted: &[SubnetRequest]) -> Option<Vec<Ipv4Net>> {
    let prefix = network.prefix_len() + bits;
    if prefix > SMALLEST_SUBNET {
        return None;
    }
    let taken = |part: &Ipv4Net| {
        wanted
            .iter()
            .filter_map(|subnet| subnet.preset)
            .any(|preset| ranges_overlap(preset, *part))
    };
    Some(
        network
            .trunc()
            .subnets(prefix)
            .ok()?
            .filter(|part| !taken(part))
            .collect(),
    )
}

/// Assigns the parts in the order of zones; `None` if they do not suffice.
fn hand_out(parts: &[Ipv4Net], wanted: &[SubnetRequest], reserve: bool) -> Option<Vec<Ipv4Net>> {
    let mut parts = parts.iter().copied();
    let mut eighths = Vec::new();
    if reserve {
        let part = parts.next()?;
        let prefix = part.prefix_len() + MOST_BITS;
        if prefix <= SMALLEST_SUBNET {
            eighths = part.subnets(prefix).ok()?.collect();
        }
    }
    let mut eighths = eighths.into_iter();
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&index| wanted.get(index).map(|subnet| subnet.zone));
    let mut ranges = vec![None; wanted.len()];
    for index in order {
        let subnet = wanted.get(index)?;
        let range = match (subnet.preset, subnet.share) {
            (Some(preset), _) => preset,
            (None, Share::Big) => parts.next()?,
            (None, Share::Little) => eighths.next()?,
        };
        *ranges.get_mut(index)? = Some(range);
    }
    ranges.into_iter().collect()
}

/// True if two ranges share an address.
pub fn ranges_overlap(a: impl Into<IpNet>, b: impl Into<IpNet>) -> bool {
    let (a, b) = (a.into(), b.into());
    a.contains(&b) || b.contains(&a)
}

/// The pods' half of the range that is not masqueraded: its upper one. `None` for IPv6.
pub fn pod_range(non_masquerade: IpNet) -> Option<IpNet> {
    let IpNet::V4(range) = non_masquerade.trunc() else {
        return None;
    };
    let upper = range.subnets(range.prefix_len() + 1).ok()?.nth(1)?;
    Some(IpNet::V4(upper))
}

/// The services' eighth of the range that is not masqueraded: its lowest one, at most a million
/// addresses. For IPv6, kOps' own range.
pub fn service_range(non_masquerade: IpNet) -> Option<IpNet> {
    let IpNet::V4(range) = non_masquerade.trunc() else {
        return SERVICES_V6.parse().ok();
    };
    let prefix = (range.prefix_len() + 3).max(12);
    Some(IpNet::V4(Ipv4Net::new(range.network(), prefix).ok()?))
}

/// The nth address of a range, if it has that many.
pub fn nth_address(range: IpNet, n: u32) -> Option<IpAddr> {
    let address = match range.network() {
        IpAddr::V4(first) => IpAddr::V4(Ipv4Addr::from_bits(first.to_bits().checked_add(n)?)),
        IpAddr::V6(first) => {
            IpAddr::V6(Ipv6Addr::from_bits(first.to_bits().checked_add(n.into())?))
        }
    };
    range.contains(&address).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::{
        Share, SubnetRequest, assign_ranges, nth_address, pod_range, ranges_overlap, service_range,
    };
    use ipnet::{IpNet, Ipv4Net};
    use proptest::prelude::*;

    fn parse_net(text: &str) -> Ipv4Net {
        text.parse().unwrap()
    }

    fn subnet_request<'a>(zone: &'a str, share: Share, preset: Option<&str>) -> SubnetRequest<'a> {
        SubnetRequest {
            zone,
            share,
            preset: preset.map(parse_net),
        }
    }

    fn assigned_ranges(network: &str, subnets: &[SubnetRequest]) -> Vec<String> {
        let ranges = assign_ranges(parse_net(network), subnets, 0).unwrap();
        ranges.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn public_subnets_share_the_network_in_as_few_parts_as_suffice() {
        let zones = ["a", "b", "c", "d", "e"];
        let subnets = |count| -> Vec<_> {
            let zones = zones.iter().take(count);
            zones
                .map(|zone| subnet_request(zone, Share::Big, None))
                .collect()
        };
        assert_eq!(
            assigned_ranges("172.20.0.0/16", &subnets(1)),
            ["172.20.0.0/16"]
        );
        assert_eq!(
            assigned_ranges("172.20.0.0/16", &subnets(2)),
            ["172.20.0.0/17", "172.20.128.0/17"]
        );
        assert_eq!(
            assigned_ranges("172.20.0.0/16", &subnets(3)),
            ["172.20.0.0/18", "172.20.64.0/18", "172.20.128.0/18"]
        );
        assert_eq!(
            assigned_ranges("172.20.0.0/16", &subnets(5))
                .last()
                .unwrap(),
            "172.20.128.0/19"
        );
    }

    #[test]
    fn utility_subnets_share_the_first_part() {
        let one = [
            subnet_request("a", Share::Big, None),
            subnet_request("a", Share::Little, None),
        ];
        assert_eq!(
            assigned_ranges("172.20.0.0/16", &one),
            ["172.20.128.0/17", "172.20.0.0/20"]
        );
        let three: Vec<_> = [Share::Big, Share::Little]
            .into_iter()
            .flat_map(|share| ["a", "b", "c"].map(|zone| subnet_request(zone, share, None)))
            .collect();
        assert_eq!(
            assigned_ranges("172.20.0.0/16", &three),
            [
                "172.20.64.0/18",
                "172.20.128.0/18",
                "172.20.192.0/18",
                "172.20.0.0/21",
                "172.20.8.0/21",
                "172.20.16.0/21"
            ]
        );
    }

    #[test]
    fn subnets_of_other_ranges_of_the_vpc_take_no_part() {
        let subnets = [
            subnet_request("a", Share::Big, None),
            subnet_request("b", Share::Big, None),
            subnet_request("a", Share::Big, Some("10.1.0.0/16")),
            subnet_request("b", Share::Big, Some("10.2.0.0/16")),
        ];
        assert_eq!(
            assigned_ranges("10.0.0.0/16", &subnets),
            ["10.0.0.0/17", "10.0.128.0/17", "10.1.0.0/16", "10.2.0.0/16"]
        );
    }

    #[test]
    fn a_network_without_room_is_said_so() {
        let nine = vec![subnet_request("a", Share::Big, None); 9];
        assert!(assign_ranges(parse_net("172.20.0.0/16"), &nine, 0).is_err());
        let tiny = [
            subnet_request("a", Share::Big, None),
            subnet_request("b", Share::Big, None),
        ];
        assert!(assign_ranges(parse_net("10.0.0.0/28"), &tiny, 0).is_err());
        let full = [
            subnet_request("a", Share::Big, Some("10.0.0.0/16")),
            subnet_request("b", Share::Big, None),
        ];
        assert_eq!(
            assign_ranges(parse_net("10.0.0.0/16"), &full, 0)
                .unwrap_err()
                .to_string(),
            "10.0.0.0/16 has no room for 1 subnets and 0 utility subnets"
        );
    }

    #[test]
    fn pods_take_the_upper_half_and_services_the_lowest_eighth() {
        let range: IpNet = "100.64.0.0/10".parse().unwrap();
        assert_eq!(pod_range(range).unwrap().to_string(), "100.96.0.0/11");
        let services = service_range(range).unwrap();
        assert_eq!(services.to_string(), "100.64.0.0/13");
        assert_eq!(
            nth_address(services, 10).unwrap().to_string(),
            "100.64.0.10"
        );
        assert_eq!(nth_address("10.0.0.0/30".parse().unwrap(), 10), None);
        assert_eq!(pod_range("::/0".parse().unwrap()), None);
        let services = service_range("::/0".parse().unwrap()).unwrap();
        assert_eq!(services.to_string(), "fd00:5e4f:ce::/108");
        let dns = nth_address(services, 10).unwrap();
        assert_eq!(dns.to_string(), "fd00:5e4f:ce::a");
    }

    #[test]
    fn subnets_with_ipv6_only_count_and_get_no_range() {
        let zone = |share| subnet_request("a", share, None);
        let (big, little) = (zone(Share::Big), zone(Share::Little));
        let network = parse_net("172.20.0.0/16");
        let ranges = |subnets: &[SubnetRequest], ipv6_only| -> Vec<String> {
            let ranges = assign_ranges(network, subnets, ipv6_only).unwrap();
            ranges.iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            ranges(&[big.clone(), little], 1),
            ["172.20.64.0/18", "172.20.0.0/21"]
        );
        assert_eq!(ranges(&vec![big; 8], 8).len(), 8);
    }

    /// A VPC range, and subnets: zone, share, and for some a /24 of an eighth of it as preset.
    fn vpc_and_subnets() -> impl Strategy<Value = (Ipv4Net, Vec<(String, bool, Option<u8>)>)> {
        let network = (0_u8..=255, 16_u8..=22).prop_map(|(second, prefix)| {
            Ipv4Net::new([10, second, 0, 0].into(), prefix)
                .unwrap()
                .trunc()
        });
        let preset = prop::option::weighted(0.2, 0_u8..4);
        let subnets = prop::collection::vec(("[a-d]", any::<bool>(), preset), 1..7);
        (network, subnets)
    }

    proptest! {
        #[test]
        fn ranges_lie_inside_and_apart_and_stay_when_given_back((network, subnets) in vpc_and_subnets()) {
            let presets: Vec<Ipv4Net> = network.subnets(24).unwrap().collect();
            let wanted: Vec<SubnetRequest> = subnets
                .iter()
                .enumerate()
                .map(|(index, (zone, little, preset))| SubnetRequest {
                    zone,
                    share: if *little { Share::Little } else { Share::Big },
                    // A preset belongs to one subnet only.
                    preset: preset
                        .filter(|at| subnets.iter().take(index).all(|other| other.2 != Some(*at)))
                        .and_then(|at| presets.get(usize::from(at)).copied()),
                })
                .collect();
            let Ok(ranges) = assign_ranges(network, &wanted, 0) else { return Ok(()) };
            prop_assert_eq!(ranges.len(), wanted.len());
            for (index, range) in ranges.iter().enumerate() {
                prop_assert!(network.contains(range));
                prop_assert!(wanted[index].preset.is_none_or(|preset| preset == *range));
                for other in &ranges[index + 1..] {
                    prop_assert!(!ranges_overlap(*range, *other), "{} and {}", range, other);
                }
            }

            let fixed: Vec<SubnetRequest> = wanted
                .iter()
                .zip(&ranges)
                .map(|(subnet, range)| SubnetRequest { preset: Some(*range), ..subnet.clone() })
                .collect();
            prop_assert_eq!(&assign_ranges(network, &fixed, 0).unwrap(), &ranges);
        }
    }
}
