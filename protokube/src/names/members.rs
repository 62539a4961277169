//! Where etcd's members are: volume by tag and record, machine by attachment, address by machine. Written to `/etc/hosts` whatever the
//! cluster's DNS is, because certificates and etcd itself know members by name only; and kept beside it, since that file is not ours alone.

use super::hosts::{FILE, block, entries};
use crate::ec2::{Ec2, Filter, etcd_volumes, seen};
use crate::etcd::Formation;
use crate::log::Voice;
use crate::pace::{Pace, Rhythm, Seen};
use anyhow::Context;
use aws_client::machine::{Instance, Volume};
use host::Host;
use node::components::EtcdMemberNames;
use node::config::NodeConfig;
use node::etcd::{Record, named_volume};
use node::report::Status;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Where the last names are kept: cloud-init may write `/etc/hosts` anew at every boot, and EC2 may not answer then.
const KEPT: &str = "/var/lib/kctl/etcd-hosts";

/// Names and addresses are no secrets.
const MODE: u32 = 0o644;

/// Names by etcd cluster, records likewise.
pub type Records = BTreeMap<String, Record>;

/// Who keeps names.
#[derive(Debug)]
pub struct Members<'a, E> {
    /// This machine.
    pub host: &'a Host,
    /// EC2.
    pub ec2: &'a E,
    /// NodeConfig.
    pub config: &'a NodeConfig,
    /// The records of its etcd clusters, by name.
    pub formations: BTreeMap<String, Formation>,
    /// This machine's id.
    pub instance: &'a str,
    /// Time between looks.
    pub pace: Pace,
}

/// Writes the last known names where they are missing: before any etcd of this machine can start, and without asking anybody.
pub fn restore(host: &Host) -> anyhow::Result<()> {
    let Some(kept) = host.read_text(KEPT)? else {
        return Ok(());
    };
    let names = entries(&kept);
    let text = host.read_text(FILE)?.unwrap_or_default();
    let block = block(&names);
    if names.is_empty() || block.lines_in(&text).is_some() {
        return Ok(());
    }
    Ok(host.rewrite(FILE, |text| block.written_into(text))?)
}

impl<E: Ec2> Members<'_, E> {
    /// Keeps the members' names in `/etc/hosts`.
    pub async fn keep(&self) -> anyhow::Result<()> {
        let voice = Voice::of("names");
        let mut rhythm = Rhythm::new(self.pace, self.instance);
        let all = member_names(self.config);
        let mut before = None;
        loop {
            let found = self.find().await?;
            let names = follow(&all, &self.known()?, found.clone());
            if self.write(&names)? {
                let pair = |(name, address): (&String, &IpAddr)| format!("{name} {address}");
                let said: Vec<String> = names.iter().map(pair).collect();
                voice.say(Status::Finished, &said.join(", "));
            }
            let complete = found.len() == all.len();
            let seen = match before.replace(found.clone()) {
                Some(before) if before == found && complete => Seen::Rest,
                Some(before) if before == found => Seen::Lack,
                _ => Seen::Change,
            };
            rhythm.wait(seen).await;
        }
    }

    /// The members' addresses, as far as they have machines.
    async fn find(&self) -> anyhow::Result<BTreeMap<String, IpAddr>> {
        let mut records = Records::new();
        for (etcd, formation) in &self.formations {
            let read = formation.read().await?;
            records.extend(read.record.map(|record| (etcd.clone(), record)));
        }
        let volumes = etcd_volumes(self.ec2, &self.config.cluster).await?;
        let holders = volumes
            .iter()
            .filter_map(|volume| volume.attachment.as_ref());
        let ids: BTreeSet<&str> = holders.map(|of| of.instance.as_str()).collect();
        let ids: Vec<&str> = ids.into_iter().collect();
        let filters: [Filter<'_>; 1] = [("instance-id", &ids)];
        let instances = if ids.is_empty() {
            Vec::new()
        } else {
            self.ec2.instances(&filters).await?
        };
        Ok(addresses(self.config, &records, &volumes, &instances))
    }

    /// What was known last: in the file itself, and where that lost it, beside it.
    fn known(&self) -> anyhow::Result<BTreeMap<String, IpAddr>> {
        let kept = self.host.read_text(KEPT)?.unwrap_or_default();
        let text = self.host.read_text(FILE)?.unwrap_or_default();
        Ok(entries(&kept).into_iter().chain(entries(&text)).collect())
    }

    /// True if the file said something else.
    fn write(&self, names: &BTreeMap<String, IpAddr>) -> anyhow::Result<bool> {
        if names.is_empty() {
            return Ok(false);
        }
        let block = block(names);
        let kept = self.host.write_changed(KEPT, &block.written_into(""), MODE);
        let text = self.host.read_text(FILE)?.unwrap_or_default();
        let same = block.lines_in(&text).as_ref() == Some(&block.lines);
        if !same {
            self.host.rewrite(FILE, |text| block.written_into(text))?;
        }
        // The names themselves come first.
        kept.context("the names would be lost by a reboot")?;
        Ok(!same)
    }
}

/// The members' addresses, by name, as far as they have machines.
fn addresses(
    config: &NodeConfig,
    records: &Records,
    volumes: &[Volume],
    instances: &[Instance],
) -> BTreeMap<String, IpAddr> {
    let mut found = BTreeMap::new();
    for etcd in config.control_plane.iter().flat_map(|of| &of.etcd) {
        let names = EtcdMemberNames::of(etcd, &config.cluster);
        let seen = seen(volumes, &etcd.name);
        for member in &names.members {
            let volume = named_volume(member, &seen, records.get(&etcd.name));
            let holder = volume.and_then(|volume| volume.holder.as_ref());
            let holder = holder.map(|holder| holder.instance.as_str());
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
