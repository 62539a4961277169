//! Where etcd's members are: volume by tag, machine by attachment, address by machine. Written to `/etc/hosts` whatever the cluster's DNS
//! is, because certificates and etcd itself know members by name only.

use super::hosts::{FILE, block, entries};
use crate::ec2::{Ec2, Filter, etcd_volumes, seen};
use crate::host::Host;
use crate::log::Voice;
use aws::machine::{Instance, Volume};
use model::components::EtcdMemberNames;
use model::node::NodeConfig;
use model::report::Status;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

/// Keeps the members' names in `/etc/hosts`.
pub async fn hosts_file(
    host: &Host,
    ec2: &impl Ec2,
    config: &NodeConfig,
    pace: Duration,
) -> anyhow::Result<()> {
    let voice = Voice::of("names");
    loop {
        let volumes = etcd_volumes(ec2, &config.cluster).await?;
        let holders = volumes
            .iter()
            .filter_map(|volume| volume.attachment.as_ref());
        let ids: BTreeSet<&str> = holders.map(|of| of.instance.as_str()).collect();
        let ids: Vec<&str> = ids.into_iter().collect();
        let filters: [Filter<'_>; 1] = [("instance-id", &ids)];
        let instances = if ids.is_empty() {
            Vec::new()
        } else {
            ec2.instances(&filters).await?
        };
        let found = addresses(config, &volumes, &instances);
        let text = host.read(FILE)?.unwrap_or_default();
        let names = follow(&member_names(config), &entries(&text), found);
        let block = block(&names);
        let same = block.lines_in(&text).as_ref() == Some(&block.lines);
        if !names.is_empty() && !same {
            host.rewrite(FILE, |text| block.written_into(text))?;
            let pair = |(name, address): (&String, &IpAddr)| format!("{name} {address}");
            let said: Vec<String> = names.iter().map(pair).collect();
            voice.say(Status::Finished, &said.join(", "));
        }
        tokio::time::sleep(pace).await;
    }
}

/// The members' addresses, by name, as far as they have machines.
pub fn addresses(
    config: &NodeConfig,
    volumes: &[Volume],
    instances: &[Instance],
) -> BTreeMap<String, IpAddr> {
    let mut found = BTreeMap::new();
    for etcd in config.control_plane.iter().flat_map(|of| &of.etcd) {
        let names = EtcdMemberNames::of(etcd, &config.cluster);
        for volume in seen(volumes, &etcd.name) {
            let Some(member) = volume
                .member()
                .filter(|one| names.members.iter().any(|of| of == one))
            else {
                continue;
            };
            let holder = volume
                .holder
                .as_ref()
                .map(|holder| holder.instance.as_str());
            let instance = instances.iter().find(|one| Some(one.id.as_str()) == holder);
            let address = instance.and_then(|one| one.private_ip.as_deref()?.parse().ok());
            if let Some(address) = address {
                found.insert(names.host(member), address);
            }
        }
    }
    found
}

fn member_names(config: &NodeConfig) -> BTreeSet<String> {
    let all = config.control_plane.iter().flat_map(|of| &of.etcd);
    all.flat_map(|etcd| {
        let names = EtcdMemberNames::of(etcd, &config.cluster);
        let hosts = names.members.iter().map(|member| names.host(member));
        hosts.collect::<Vec<_>>()
    })
    .collect()
}

/// What was found, and where nothing was, what was known: a member between two machines keeps its address until it has another.
fn follow(
    members: &BTreeSet<String>,
    known: &BTreeMap<String, IpAddr>,
    found: BTreeMap<String, IpAddr>,
) -> BTreeMap<String, IpAddr> {
    let known = known.iter().filter(|(name, _)| members.contains(*name));
    let known = known.map(|(name, address)| (name.clone(), *address));
    known.chain(found).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_keeps_its_address_until_it_has_another_and_only_members_have_one() {
        let of = |pairs: &[(&str, [u8; 4])]| -> BTreeMap<String, IpAddr> {
            let pair =
                |(name, octets): &(&str, [u8; 4])| ((*name).to_owned(), IpAddr::from(*octets));
            pairs.iter().map(pair).collect()
        };
        let members = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
        let known = of(&[
            ("a", [10, 0, 0, 1]),
            ("b", [10, 0, 0, 2]),
            ("gone", [10, 0, 0, 3]),
        ]);
        let found = of(&[("b", [10, 0, 0, 9])]);
        assert_eq!(
            follow(&members, &known, found),
            of(&[("a", [10, 0, 0, 1]), ("b", [10, 0, 0, 9])])
        );
    }
}
