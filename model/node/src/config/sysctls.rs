//! Kernel parameters for instances with many connections and pods; values from kOps. With `net.ipv6.conf.all.forwarding` the kernel
//! ignores router advertisements, from which instances in a subnet with IPv6 have their default route, unless another parameter of
//! the network interface says otherwise.

use super::{Error, InstanceFacts, Networking, NodeConfig};
use crate::values::{Parameter, Refusal, parse_parameters};

/// A kernel module, and a path that exists when it is loaded or built in.
type Module = (&'static str, &'static str);

/// Kernel modules of every instance, sorted.
const MODULES: [Module; 2] = [
    (
        "br_netfilter",
        "/proc/sys/net/bridge/bridge-nf-call-iptables",
    ),
    ("overlay", "/sys/module/overlay"),
];

/// The module that has the parameters of connection tracking. Whoever sets one needs it before kube-proxy loads it.
const CONNTRACK: Module = ("nf_conntrack", "/proc/sys/net/netfilter/nf_conntrack_max");

const SYSCTLS: [&str; 24] = [
    "vm.max_map_count=1048576",
    "kernel.softlockup_panic=1",
    "kernel.softlockup_all_cpu_backtrace=1",
    "net.core.somaxconn=32768",
    "net.core.rmem_max=16777216",
    "net.core.wmem_max=16777216",
    "net.ipv4.tcp_wmem=4096 87380 16777216",
    "net.ipv4.tcp_rmem=4096 87380 16777216",
    "net.ipv4.tcp_max_syn_backlog=8096",
    "net.ipv4.tcp_slow_start_after_idle=0",
    "net.ipv4.tcp_tw_reuse=1",
    "net.core.netdev_max_backlog=16384",
    "fs.file-max=2097152",
    "fs.inotify.max_user_instances=8192",
    "net.ipv4.neigh.default.gc_thresh1=0",
    IPV4_FORWARDING,
    "net.bridge.bridge-nf-call-iptables=1",
    "net.bridge.bridge-nf-call-ip6tables=1",
    // Values that kubelet demands with protectKernelDefaults.
    "vm.overcommit_memory=1",
    "vm.panic_on_oom=0",
    "kernel.panic=10",
    "kernel.panic_on_oops=1",
    "kernel.keys.root_maxkeys=1000000",
    "kernel.keys.root_maxbytes=25000000",
];

/// Packets of pods are passed on: IPv4 ones, or on IPv6 those in place of them.
const IPV4_FORWARDING: &str = "net.ipv4.ip_forward=1";
const IPV6_FORWARDING: &str = "net.ipv6.conf.all.forwarding=1";

/// cilium's packets come in where their answers do not leave (systemd sets other values).
const NO_REVERSE_PATH_FILTER: &str = "net.ipv4.conf.all.rp_filter=0";

/// Reads an entry of `sysctlParameters`. Of the parameters that kctl sets itself it is known that the kernel takes numbers only.
pub fn parse_user_parameters(entry: &str) -> Result<Vec<Parameter>, Refusal> {
    let all = parse_parameters(entry)?;
    let own = |one: &Parameter| {
        let mut own = SYSCTLS.iter().chain([&IPV6_FORWARDING]);
        own.any(|own| own.split_once('=').is_some_and(|(key, _)| key == one.key))
    };
    let number = |word: &str| word.parse::<i64>().is_ok();
    let is_wrong =
        |one: &&Parameter| own(one) && (one.value.is_empty() || !one.value.split(' ').all(number));
    match all.iter().find(is_wrong) {
        Some(one) => Err(Refusal::new(
            format!("{:?} is not a number, as {} needs it", one.value, one.key),
            format!("write {}=NUMBER", one.key),
        )),
        None => Ok(all),
    }
}

/// Entries in the syntax of `sysctlParameters`: kctl's own, of the family of pods' addresses too, the reservation of the node ports
/// `first` to `last`, that of the network plugin, and then those in the spec, with their comments.
pub fn kernel_parameters(
    (first, last): (u16, u16),
    networking: &Networking,
    ipv6: bool,
    users: &[String],
) -> Vec<String> {
    // Outgoing connections of the instance must not use a node port.
    let reserved = format!("{RESERVED}{first}-{last}");
    let ours = SYSCTLS.map(|parameter| match parameter {
        IPV4_FORWARDING if ipv6 => IPV6_FORWARDING.to_owned(),
        other => other.to_owned(),
    });
    let of_plugin = match networking {
        Networking::Cilium { .. } => Some(NO_REVERSE_PATH_FILTER.to_owned()),
        _ => None,
    };
    let users = users.iter().cloned();
    ours.into_iter()
        .chain([reserved])
        .chain(of_plugin)
        .chain(users)
        .collect()
}

/// The kernel modules that an instance needs, sorted.
pub(crate) fn kernel_modules(config: &NodeConfig) -> Result<Vec<Module>, Error> {
    let mut modules = MODULES.to_vec();
    if parameters_of_group(config)?
        .iter()
        .any(|one| one.key == "net.nf_conntrack_max" || one.key.starts_with("net.netfilter.nf_"))
    {
        modules.push(CONNTRACK);
        modules.sort_unstable();
    }
    Ok(modules)
}

/// The parameters of an instance.
pub(crate) fn kernel_parameters_of(
    config: &NodeConfig,
    host: &InstanceFacts,
) -> Result<Vec<Parameter>, Error> {
    let mut all = parameters_of_group(config)?;
    if config.ipv6 {
        // Before IPv6 forwarding, with which the kernel would drop the default route.
        let kept = host.advertised_interfaces.iter().map(|name| Parameter {
            key: format!("net.ipv6.conf.{name}.accept_ra"),
            value: "2".to_owned(),
            required: false,
        });
        all.splice(0..0, kept);
    }
    Ok(all)
}

fn parameters_of_group(config: &NodeConfig) -> Result<Vec<Parameter>, Error> {
    read_parameters(&config.sysctls).map_err(|source| Error::Parameters {
        group: config.group.clone(),
        source,
    })
}

/// The parameters of entries. It is not an error if the kernel rejects one of kctl's own with kctl's value.
fn read_parameters(entries: &[String]) -> Result<Vec<Parameter>, Refusal> {
    let mut all = Vec::new();
    for entry in entries {
        let own = SYSCTLS.contains(&entry.as_str())
            || entry == IPV6_FORWARDING
            || entry.starts_with(RESERVED);
        all.extend(parse_parameters(entry)?.into_iter().map(|one| Parameter {
            required: one.required && !own,
            ..one
        }));
    }
    Ok(all)
}

/// Name of the parameter that reserves node ports.
const RESERVED: &str = "net.ipv4.ip_local_reserved_ports=";

/// Formats parameters as a file for sysctl.d.
pub(super) fn sysctl_file(parameters: &[Parameter]) -> String {
    let line = |one: &Parameter| format!("{} = {}\n", one.key, one.value);
    parameters.iter().map(line).collect::<Vec<_>>().concat()
}
