//! Address ranges: subnets out of a VPC's range; pods and services out of the range that is not
//! masqueraded. kOps' arithmetic, so that its specs keep their addresses.

use ipnet::{IpNet, Ipv4Net};
use std::net::{IpAddr, Ipv4Addr};

/// The longest prefix AWS accepts for a subnet.
const SMALLEST_SUBNET: u8 = 28;

/// Parts a network is split in at most: 2 to this power.
const MOST_BITS: u8 = 3;

/// How much of the network a subnet is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// A whole part: public and private subnets.
    Big,
    /// An eighth of a part: utility subnets.
    Little,
}

/// A subnet that has or wants a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// Its zone; ranges are handed out in the order of zones.
    pub zone: &'a str,
    /// How much it is given.
    pub share: Share,
    /// The range it has already.
    pub preset: Option<Ipv4Net>,
}

/// A network has no room for all its subnets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{network} has no room for {big} subnets and {little} utility subnets")]
pub struct NoRoom {
    /// The network.
    pub network: Ipv4Net,
    /// Public and private subnets without a range.
    pub big: usize,
    /// Utility subnets without a range.
    pub little: usize,
}

/// Gives every subnet a range, in the order of `wanted`: presets stay, the others share out
/// `network` in 1, 2, 4 or 8 equal parts, the fewest that suffice. A part that overlaps a preset is
/// left out; with utility subnets, the first part left is theirs.
///
/// kOps' algorithm, with one addition: where kOps finds too few parts free, finer parts are tried.
pub fn assign(network: Ipv4Net, wanted: &[Wanted]) -> Result<Vec<Ipv4Net>, NoRoom> {
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
    let first = bits_for(slots(network, wanted, reserve)).ok_or_else(|| no_room.clone())?;
    (first..=MOST_BITS)
        .find_map(|bits| hand_out(&free_parts(network, bits, wanted)?, wanted, reserve))
        .ok_or(no_room)
}

/// Parts the subnets take: one for each big one inside the network, and one for all little ones.
fn slots(network: Ipv4Net, wanted: &[Wanted], reserve: bool) -> usize {
    let inside = wanted.iter().filter(|subnet| {
        subnet.share == Share::Big && subnet.preset.is_none_or(|range| overlap(range, network))
    });
    inside.count() + usize::from(reserve)
}

/// Bits that make at least so many parts.
fn bits_for(slots: usize) -> Option<u8> {
    (0..=MOST_BITS).find(|bits| (1_usize << bits) >= slots)
}

/// The equal parts of a network that overlap no preset.
fn free_parts(network: Ipv4Net, bits: u8, wanted: &[Wanted]) -> Option<Vec<Ipv4Net>> {
    let prefix = network.prefix_len() + bits;
    if prefix > SMALLEST_SUBNET {
        return None;
    }
    let taken = |part: &Ipv4Net| {
        wanted
            .iter()
            .filter_map(|subnet| subnet.preset)
            .any(|preset| overlap(preset, *part))
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

/// Hands parts out in the order of zones; `None` if they do not suffice.
fn hand_out(parts: &[Ipv4Net], wanted: &[Wanted], reserve: bool) -> Option<Vec<Ipv4Net>> {
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
pub fn overlap(a: Ipv4Net, b: Ipv4Net) -> bool {
    a.contains(&b.network()) || b.contains(&a.network())
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
/// addresses. `None` for IPv6.
pub fn service_range(non_masquerade: IpNet) -> Option<IpNet> {
    let IpNet::V4(range) = non_masquerade.trunc() else {
        return None;
    };
    let prefix = (range.prefix_len() + 3).max(12);
    Some(IpNet::V4(Ipv4Net::new(range.network(), prefix).ok()?))
}

/// The nth address of a range, if it has that many. `None` for IPv6.
pub fn nth_address(range: IpNet, n: u32) -> Option<IpAddr> {
    let IpNet::V4(range) = range else { return None };
    let address = Ipv4Addr::from(u32::from(range.network()).checked_add(n)?);
    range.contains(&address).then_some(IpAddr::V4(address))
}

#[cfg(test)]
mod tests {
    use super::{Share, Wanted, assign, nth_address, overlap, pod_range, service_range};
    use ipnet::{IpNet, Ipv4Net};
    use proptest::prelude::*;

    fn net(text: &str) -> Ipv4Net {
        text.parse().unwrap()
    }

    fn wanted<'a>(zone: &'a str, share: Share, preset: Option<&str>) -> Wanted<'a> {
        Wanted {
            zone,
            share,
            preset: preset.map(net),
        }
    }

    fn shared_out(network: &str, subnets: &[Wanted]) -> Vec<String> {
        let ranges = assign(net(network), subnets).unwrap();
        ranges.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn public_subnets_share_the_network_in_as_few_parts_as_suffice() {
        let zones = ["a", "b", "c", "d", "e"];
        let subnets = |count| -> Vec<_> {
            let zones = zones.iter().take(count);
            zones.map(|zone| wanted(zone, Share::Big, None)).collect()
        };
        assert_eq!(shared_out("172.20.0.0/16", &subnets(1)), ["172.20.0.0/16"]);
        assert_eq!(
            shared_out("172.20.0.0/16", &subnets(2)),
            ["172.20.0.0/17", "172.20.128.0/17"]
        );
        assert_eq!(
            shared_out("172.20.0.0/16", &subnets(3)),
            ["172.20.0.0/18", "172.20.64.0/18", "172.20.128.0/18"]
        );
        assert_eq!(
            shared_out("172.20.0.0/16", &subnets(5)).last().unwrap(),
            "172.20.128.0/19"
        );
    }

    #[test]
    fn utility_subnets_share_the_first_part() {
        let one = [
            wanted("a", Share::Big, None),
            wanted("a", Share::Little, None),
        ];
        assert_eq!(
            shared_out("172.20.0.0/16", &one),
            ["172.20.128.0/17", "172.20.0.0/20"]
        );
        let three: Vec<_> = [Share::Big, Share::Little]
            .into_iter()
            .flat_map(|share| ["a", "b", "c"].map(|zone| wanted(zone, share, None)))
            .collect();
        assert_eq!(
            shared_out("172.20.0.0/16", &three),
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
            wanted("a", Share::Big, None),
            wanted("b", Share::Big, None),
            wanted("a", Share::Big, Some("10.1.0.0/16")),
            wanted("b", Share::Big, Some("10.2.0.0/16")),
        ];
        assert_eq!(
            shared_out("10.0.0.0/16", &subnets),
            ["10.0.0.0/17", "10.0.128.0/17", "10.1.0.0/16", "10.2.0.0/16"]
        );
    }

    #[test]
    fn a_network_without_room_is_said_so() {
        let nine = vec![wanted("a", Share::Big, None); 9];
        assert!(assign(net("172.20.0.0/16"), &nine).is_err());
        let tiny = [wanted("a", Share::Big, None), wanted("b", Share::Big, None)];
        assert!(assign(net("10.0.0.0/28"), &tiny).is_err());
        let full = [
            wanted("a", Share::Big, Some("10.0.0.0/16")),
            wanted("b", Share::Big, None),
        ];
        assert_eq!(
            assign(net("10.0.0.0/16"), &full).unwrap_err().to_string(),
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
    }

    /// A VPC range, and subnets: zone, share, and for some a /24 of an eighth of it as preset.
    fn case() -> impl Strategy<Value = (Ipv4Net, Vec<(String, bool, Option<u8>)>)> {
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
        fn ranges_lie_inside_and_apart_and_stay_when_given_back((network, subnets) in case()) {
            let presets: Vec<Ipv4Net> = network.subnets(24).unwrap().collect();
            let wanted: Vec<Wanted> = subnets
                .iter()
                .enumerate()
                .map(|(index, (zone, little, preset))| Wanted {
                    zone,
                    share: if *little { Share::Little } else { Share::Big },
                    // A preset belongs to one subnet only.
                    preset: preset
                        .filter(|at| subnets.iter().take(index).all(|other| other.2 != Some(*at)))
                        .and_then(|at| presets.get(usize::from(at)).copied()),
                })
                .collect();
            let Ok(ranges) = assign(network, &wanted) else { return Ok(()) };
            prop_assert_eq!(ranges.len(), wanted.len());
            for (index, range) in ranges.iter().enumerate() {
                prop_assert!(network.contains(range));
                prop_assert!(wanted[index].preset.is_none_or(|preset| preset == *range));
                for other in &ranges[index + 1..] {
                    prop_assert!(!overlap(*range, *other), "{} and {}", range, other);
                }
            }

            let fixed: Vec<Wanted> = wanted
                .iter()
                .zip(&ranges)
                .map(|(subnet, range)| Wanted { preset: Some(*range), ..subnet.clone() })
                .collect();
            prop_assert_eq!(&assign(network, &fixed).unwrap(), &ranges);
        }
    }
}
