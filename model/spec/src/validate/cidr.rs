//! IPv4 ranges: reading them strictly, and finding room.

use ipnet::Ipv4Net;

use crate::read::Problem;

/// The range at a path, or a finding about it.
pub fn parse_range(path: &str, text: &str, problems: &mut Vec<Problem>) -> Option<Ipv4Net> {
    let Ok(net) = text.parse::<Ipv4Net>() else {
        let problem = Problem::error(path, format!("\"{text}\" is not an IPv4 CIDR"));
        problems.push(
            problem
                .hint("write an address and a prefix length of 0 to 32, for example 10.0.48.0/20"),
        );
        return None;
    };
    if net.trunc() != net {
        let problem = Problem::error(
            path,
            format!("{text} is an address inside a range, not the range"),
        );
        problems.push(problem.hint(format!("did you mean {}?", net.trunc())));
        return None;
    }
    Some(net)
}

/// The range of a VPC or subnet: what AWS takes, /16 to /28.
pub fn vpc_range(path: &str, text: &str, problems: &mut Vec<Problem>) -> Option<Ipv4Net> {
    let net = parse_range(path, text, problems)?;
    if !(16..=28).contains(&net.prefix_len()) {
        let problem = Problem::error(path, format!("{text} is of a size that AWS does not take"));
        problems.push(problem.hint("use a prefix length of 16 to 28"));
    }
    Some(net)
}

/// True if two ranges share an address.
pub fn ranges_overlap(left: Ipv4Net, right: Ipv4Net) -> bool {
    left.contains(&right) || right.contains(&left)
}

/// The first range of a size inside one of `homes` that shares nothing with `taken`.
pub fn next_free(homes: &[Ipv4Net], taken: &[Ipv4Net], prefix_len: u8) -> Option<Ipv4Net> {
    let fits = |home: &&Ipv4Net| home.prefix_len() <= prefix_len;
    let parts = homes
        .iter()
        .filter(fits)
        .filter_map(|home| home.subnets(prefix_len).ok())
        .flatten();
    // A /16 has 4096 parts of /28: more are never looked through.
    parts
        .take(8192)
        .find(|part| !taken.iter().any(|other| ranges_overlap(*part, *other)))
}

/// A next step that names a free range, where there is one.
pub fn free_hint(homes: &[Ipv4Net], taken: &[Ipv4Net], prefix_len: u8) -> String {
    let names = homes
        .iter()
        .map(Ipv4Net::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    match next_free(homes, taken, prefix_len) {
        Some(free) => format!("the next free /{prefix_len} in {names} is {free}"),
        None => format!("no /{prefix_len} is free in {names}; use a smaller one"),
    }
}

#[cfg(test)]
mod tests {
    use super::{next_free, ranges_overlap};
    use ipnet::Ipv4Net;
    use proptest::prelude::*;

    fn net() -> impl Strategy<Value = Ipv4Net> {
        (0u32..256, 18u8..=26).prop_map(|(part, len)| {
            Ipv4Net::new((0x0a00_0000 + part * 256).into(), len)
                .unwrap()
                .trunc()
        })
    }

    proptest! {
        #[test]
        fn what_is_called_free_is_free_and_at_home(taken in prop::collection::vec(net(), 0..12), len in 17u8..=28) {
            let home: Ipv4Net = "10.0.0.0/16".parse().unwrap();
            match next_free(&[home], &taken, len) {
                Some(free) => {
                    prop_assert!(home.contains(&free) && free.prefix_len() == len);
                    prop_assert!(!taken.iter().any(|other| ranges_overlap(free, *other)));
                }
                None => {
                    prop_assert!(home.subnets(len).unwrap().all(|part| taken.iter().any(|other| ranges_overlap(part, *other))));
                }
            }
        }
    }
}
