//! Address ranges shared out: `NETWORK|ZONE=RANGE|ZONE!=RANGE|...`, `!` for utility subnets, no range for those that want one.

use spec::cidr::{
    Share, SubnetRequest, assign_ranges, nth_address, pod_range, ranges_overlap, service_range,
};

pub fn law(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut parts = text.split('|').take(65);
    let network = parts.next().unwrap_or_default();
    if let Ok(range) = network.parse() {
        // In an IPv6 cluster neither is a part of what is not masqueraded.
        for part in [pod_range(range), service_range(range)] {
            let inside = part.is_none_or(|part| range.contains(&part));
            assert!(inside || range.addr().is_ipv6(), "{range}");
        }
        let _ = nth_address(range, u32::MAX);
    }
    let Ok(network) = network.parse() else { return };
    let wanted: Vec<SubnetRequest> = parts
        .map(|part| {
            let (zone, preset) = part.split_once('=').unwrap_or((part, ""));
            SubnetRequest {
                zone,
                share: if zone.ends_with('!') {
                    Share::Little
                } else {
                    Share::Big
                },
                preset: preset.parse().ok(),
            }
        })
        .collect();
    let Ok(ranges) = assign_ranges(network, &wanted, 0) else {
        return;
    };
    assert_eq!(ranges.len(), wanted.len());
    for (index, (range, subnet)) in ranges.iter().zip(&wanted).enumerate() {
        if let Some(preset) = subnet.preset {
            assert_eq!(preset, *range);
            continue;
        }
        assert!(network.contains(range), "{range} of {network}");
        let others = ranges
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != index);
        for (_, other) in others {
            assert!(!ranges_overlap(*range, *other), "{range} and {other}");
        }
    }
}
