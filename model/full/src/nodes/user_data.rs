//! User data of an instance group: the boot script with BootConfig inside.

use crate::nodes::egress_proxy::proxy_environment;
use crate::nodes::mime::mime_multipart;
use crate::{DnsKind, FullSpec, Group};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cloud::{Kind, Lb};
use engine::{Id, Part, Text};
use flate2::Compression;
use flate2::write::GzEncoder;
use node::config::{
    Agents, Arch, BOOT_FORMAT, BootConfig, DIRECTORY, Error, Role, agent_key, find_agent,
};
use node::yaml::to_yaml;
use node::{names, ports};
use std::io::Write;

/// Placeholder for a value that is known only during apply. No name, address or certificate can contain it.
const LATE: &str = "<late>";

/// Name of kctl's own part among those of the user; kOps' name for it.
pub const OWN_PART: &str = "nodeup.sh";

/// Name of the part that groups with a warm pool have besides.
pub const POOL_PART: &str = "kctl-warm-pool.sh";

/// cloud-init runs this part at every boot, before the scripts, which it runs once per instance: it notes that before it begins them.
/// Auto Scaling may stop an instance on its way into the pool meanwhile, and then nothing would ever make it a node.
const POOL_SCRIPT: &str = "\
#!/bin/sh
# Scripts that a stop cut off before nodeup was set up run again.
systemctl is-enabled --quiet nodeup.service 2>/dev/null ||
    rm -f /var/lib/cloud/instance/sem/config_scripts_user*
";

/// Maximum size of user data in EC2, in bytes.
const LIMIT: usize = 16 * 1024;

/// Input of the user data.
#[derive(Clone, Copy, Debug)]
pub struct UserData<'a> {
    pub full: &'a FullSpec,
    pub group: &'a str,
    /// sha256 (hex) of the group's NodeConfig.
    pub node_config: &'a str,
    /// Certificates of `kubernetes-ca`, PEM.
    pub trust_bundle: &'a str,
    /// nodeup and protokube for every architecture.
    pub agents: &'a Agents,
}

/// User data of a group; `None` for bastions without additional user data. The addresses of the load balancer,
/// which are known only when it exists, are a late part.
pub fn user_data(of: &UserData<'_>) -> Result<Option<Text>, Error> {
    let full = of.full;
    let group = full.groups.iter().find(|group| group.name == of.group);
    let group = group.ok_or_else(|| Error::NoGroup(of.group.to_owned()))?;
    let script = match group.role {
        Role::Bastion => None,
        Role::ControlPlane | Role::Node => Some(boot_script(of, group)?),
    };
    // The script comes first, so the first placeholders are its own, whatever the user's parts contain.
    let late = script
        .as_ref()
        .map_or(0, |script| script.matches(LATE).count());
    let of_pool = group.warm_pool.iter();
    let of_pool = of_pool.map(|_| (POOL_PART, "text/cloud-boothook", POOL_SCRIPT));
    let of_user = group.additional_user_data.iter();
    let of_user =
        of_user.map(|(name, kind, content)| (name.as_str(), kind.as_str(), content.as_str()));
    let others: Vec<_> = of_pool.chain(of_user).collect();
    let text = if others.is_empty() {
        let Some(script) = script else {
            return Ok(None);
        };
        script
    } else {
        let own_part = script
            .iter()
            .map(|script| (OWN_PART, "text/x-shellscript", script.as_str()));
        mime_multipart(own_part.chain(others))
    };
    if text.len() > LIMIT {
        return Err(Error::TooLarge {
            group: group.name.clone(),
            size: text.len(),
        });
    }
    let load_balancer = Id::new(Lb::TYPE, names::api_load_balancer(&full.name));
    Ok(Some(with_late(
        &text,
        late,
        &Text::late(&load_balancer, cloud::used_load_balancers::ADDRESSES),
    )))
}

fn boot_script(of: &UserData<'_>, group: &Group) -> Result<String, Error> {
    let full = of.full;
    let boot = boot_config(of, group)?;
    let late = boot
        .control_plane_addresses
        .iter()
        .any(|addresses| addresses.contains(LATE));
    let boot = to_yaml(&boot)?;
    let nodeup = find_agent(&of.agents.nodeup, "nodeup", of.group, group.arch)?;
    // A late value cannot be inserted into compressed text.
    let compress = group.compress_user_data && !late;
    let template = |source| Error::Template {
        group: group.name.clone(),
        source,
    };
    let unit = templates::NodeupService {
        directory: DIRECTORY.to_owned(),
    };
    let environment = proxy_environment(full);
    templates::render(&templates::UserData {
        cluster: full.name.clone(),
        directory: DIRECTORY.to_owned(),
        has_proxy: !environment.is_empty(),
        environment,
        ipv6: full.is_ipv6(),
        machine: uname_machine(nodeup.arch).to_owned(),
        sha256: nodeup.sha256.clone(),
        key: format!("{}/{}", full.state.prefix, agent_key("nodeup", nodeup)),
        mirrors: nodeup.mirrors.clone(),
        bucket: full.state.bucket.clone().unwrap_or_default(),
        boot_config: templates::Heredoc {
            compressed: compress,
            text: if compress { gzip_base64(&boot) } else { boot },
        },
        unit: templates::render(&unit).map_err(template)?,
    })
    .map_err(template)
}

fn boot_config(of: &UserData<'_>, group: &Group) -> Result<BootConfig, Error> {
    let full = of.full;
    let worker = group.role != Role::ControlPlane;
    let server = names::dns::bootstrap_name(&full.name);
    let server = format!("https://{server}:{}", ports::BOOTSTRAP);
    Ok(BootConfig {
        format: BOOT_FORMAT,
        cluster: full.name.clone(),
        group: group.name.clone(),
        role: group.role,
        node_config: of.node_config.to_owned(),
        config_base: (!worker).then(|| full.state.config_base.clone()),
        state_owner: full.state.owner.clone().filter(|_| !worker),
        bootstrap_servers: if worker { vec![server] } else { Vec::new() },
        control_plane_addresses: if worker {
            control_plane_addresses(full)?
        } else {
            None
        },
        ca_certificates: worker.then(|| of.trust_bundle.to_owned()),
    })
}

/// Where workers find the control plane without DNS: the load balancer's private addresses. Its DNS name may resolve to
/// public addresses, and then security groups would not recognize the workers.
fn control_plane_addresses(full: &FullSpec) -> Result<Option<String>, Error> {
    match (full.dns.kind, &full.api.load_balancer) {
        (DnsKind::Public | DnsKind::Private, _) => Ok(None),
        (DnsKind::None, Some(_)) => Ok(Some(LATE.to_owned())),
        (DnsKind::None, None) => Err(Error::NoBootstrapAddress),
    }
}

/// The text with the late value in place of the first `places` placeholders.
fn with_late(text: &str, places: usize, late: &Text) -> Text {
    let mut parts = Vec::new();
    for (index, literal) in text.splitn(places + 1, LATE).enumerate() {
        if index > 0 {
            parts.extend_from_slice(late.parts());
        }
        if !literal.is_empty() {
            parts.push(Part::Literal(literal.into()));
        }
    }
    Text::from_parts(parts)
}

/// The architecture as `uname -m` prints it.
fn uname_machine(arch: Arch) -> &'static str {
    match arch {
        Arch::Amd64 => "x86_64",
        Arch::Arm64 => "aarch64",
    }
}

/// gzip without a timestamp, so that equal text gives equal bytes, in base64.
fn gzip_base64(text: &str) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory cannot fail; if it did, the shorter text would not decompress and show at once.
    let _ = encoder.write_all(text.as_bytes());
    STANDARD.encode(encoder.finish().unwrap_or_default())
}
