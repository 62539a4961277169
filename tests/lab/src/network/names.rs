//! Names of links, tables and marks in the router's namespace, and the addresses that are the same in every lab.

use ipnet::Ipv4Net;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The router's end of the way to the rest of the world; what leaves there is lost.
pub const INTERNET_LINK: &str = "internet";
/// What the lab serves to "the internet" listens here (TLS front, download sites, registries).
pub const FRONT: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// The whole of the lab's internet (RFC 2544's benchmarking range) besides the public addresses that AWS gave.
pub const INTERNET_RANGE: &str = "198.18.0.0/15";
/// As an interface's address: the range's host part is the front's.
pub const INTERNET: Ipv4Net = Ipv4Net::new_assert(FRONT, 15);
/// The front as NAT64 and DNS64 write its address (RFC 6052).
pub const FRONT_NAT64: Ipv6Addr = translate_address(FRONT);
/// The lab's internet in the same form.
pub const INTERNET_RANGE_NAT64: &str = "64:ff9b::c612:0/111";
/// Where the operator, `lab run`, comes from.
pub const OPERATOR: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 10);
/// The same in RFC 5180's range for benchmarking.
pub const OPERATOR_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0x10);
/// Address of the metadata service.
pub const METADATA: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);
/// The resolver's link-local address, beside VPC + 2.
pub const RESOLVER: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 253);
/// Both on IPv6, in instances that have an address of it.
pub const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
pub const RESOLVER_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x253);
/// Where instances in subnets with IPv6 alone have their IPv4 address, which leads to EC2's own services only.
pub const LINK_LOCAL: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(169, 254, 0, 0), 16);
/// As in a VPC.
pub const MTU: &str = "9001";

/// Packets of connections from or to public addresses: they are routed by the main table, not by a VPC's.
pub const PUBLIC_MARK: u32 = 0x1;
pub const MAIN_TABLE: u32 = 254;
const FIRST_TABLE: u32 = 0x1000_0000;

/// An IPv4 address in NAT64's well-known range, 64:ff9b::/96.
pub const fn translate_address(address: Ipv4Addr) -> Ipv6Addr {
    let [a, b, c, d] = address.octets();
    let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low)
}

/// The router's end of a host's link. Interface names have at most 15 characters.
pub fn link_name(instance: &str) -> String {
    let start = instance.len().saturating_sub(12);
    format!("h{}", instance.get(start..).unwrap_or(instance))
}

/// An AWS id or ARN as an identifier of nft.
pub fn nft_identifier(id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    id.chars().map(plain).collect()
}

/// The kernel's number for a VPC's route table: the id's own digits, so that it stays when tables come and go.
pub fn table_number(id: &str) -> u32 {
    let hash = id.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    FIRST_TABLE | (hash >> 4)
}

/// Whether a kernel table is one of ours.
pub fn is_vpc_table(number: u32) -> bool {
    (FIRST_TABLE..FIRST_TABLE << 1).contains(&number)
}
