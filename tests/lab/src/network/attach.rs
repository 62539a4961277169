//! A host's namespace and its one link to the router.

use super::error::Result;
use super::{names, netns};
use crate::aws_state::Instance;
use crate::lab_paths::LabPaths;
use crate::ledger::Ledger;
use std::path::Path;

/// The host's end, as AWS's older instance types call it.
pub const HOST_LINK: &str = "eth0";

/// Makes the host's namespace with `eth0` (its MAC and no address: that the host gets by DHCP, as on EC2) and the router's
/// end of the link. Packets pass once `Router::apply` has seen the instance. Doing it twice changes nothing.
pub fn attach_host(place: &LabPaths, ledger: &Ledger, instance: &Instance) -> Result<()> {
    let (router, host) = (place.router_netns(), place.host_netns(&instance.id));
    let link = names::link_name(&instance.id);
    netns::add_netns(ledger, &host)?;
    if !has_link(&router, &link)? {
        // Of an attachment that was cut off: its other end would be in the way.
        if has_link(&host, HOST_LINK)? {
            netns::run_ip(&host, &["link", "delete", HOST_LINK])?;
        }
        let new = [
            "link",
            "add",
            HOST_LINK,
            "address",
            &instance.mac,
            "mtu",
            names::MTU,
            "type",
            "veth",
        ];
        let peer = ["peer", "name", &link, "mtu", names::MTU, "netns", &router];
        netns::run_ip(&host, &[&new[..], &peer].concat())?;
    }
    open_link(&router, &link)
}

/// The same for a virtual machine, which has no namespace: its end of the link is QEMU, which opens the router's, a tap device.
pub fn attach_machine(place: &LabPaths, instance: &Instance) -> Result<()> {
    let (router, link) = (place.router_netns(), names::link_name(&instance.id));
    if !has_link(&router, &link)? {
        netns::run_ip(&router, &["tuntap", "add", "dev", &link, "mode", "tap"])?;
    }
    netns::run_ip(&router, &["link", "set", &link, "mtu", names::MTU])?;
    open_link(&router, &link)
}

fn open_link(router: &str, link: &str) -> Result<()> {
    // Answers for its neighbours come at once, not after the random wait of a proxy.
    let settings =
        [("proxy_delay", "0")].map(|(name, value)| (format!("ipv4/neigh/{link}/{name}"), value));
    netns::write_settings(router, &settings)?;
    netns::run_ip(router, &["link", "set", link, "up"])
}

/// Takes the link away and the namespace's name. Whoever still runs inside is without a network.
pub fn detach_host(place: &LabPaths, instance: &str) -> Result<()> {
    let (router, link) = (place.router_netns(), names::link_name(instance));
    if netns::netns_exists(&router) && has_link(&router, &link)? {
        netns::run_ip(&router, &["link", "delete", &link])?;
    }
    netns::delete_netns(&place.host_netns(instance))
}

fn has_link(netns: &str, link: &str) -> Result<bool> {
    let path = Path::new("/proc/sys/net/ipv4/conf").join(link);
    netns::run_inside(netns, || path.exists())
}
