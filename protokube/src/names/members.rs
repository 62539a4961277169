//! Role names: keeps the addresses of etcd members in `/etc/hosts`, found through volume, attachment and instance. Certificates and
//! etcd itself know members only by name, so this does not depend on the cluster's DNS. A copy is kept in another file, because other
//! programs may rewrite `/etc/hosts`.

use super::records::address_family;
use anyhow::Context;
use aws_client::dns::AddressFamily;
use aws_client::ec2_query::{Instance, Volume};
use etcd_member::ec2::{Ec2, Filter, etcd_volumes, seen_volumes};
use etcd_member::hosts::{FILE, hosts_block, parse_entries};
use etcd_rules::{FormationRecord, named_volume};
use etcd_store::FormationStore;
use host::Host;
use node::components::EtcdMemberNames;
use node::config::NodeConfig;
use node::report::Status;
use protokube_role::log::RoleLog;
use protokube_role::pace::{PollPace, PollResult, PollTimer};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Path of the copy. cloud-init may rewrite `/etc/hosts` at every boot, when EC2 may not be available.
const KEPT: &str = "/var/lib/kctl/etcd-hosts";

/// Mode of the copy.
const MODE: u32 = 0o644;

/// Formation records by etcd cluster.
pub(crate) type RecordsByEtcd = BTreeMap<String, FormationRecord>;

/// Inputs of the role.
#[derive(Debug)]
pub struct MemberNames<'a, E> {
    /// Access to the instance.
    pub host: &'a Host,
    pub ec2: &'a E,
    /// NodeConfig of this instance.
    pub config: &'a NodeConfig,
    /// Access to the formation records, by etcd cluster.
    pub formations: BTreeMap<String, FormationStore>,
    /// Id of this instance.
    pub instance: &'a str,
    pub pace: PollPace,
}

/// Restores the last known names if they are missing, before etcd can start and without AWS.
pub fn restore_names(host: &Host) -> anyhow::Result<()> {
    let Some(kept) = host.read_text(KEPT)? else {
        return Ok(());
    };
    let names = parse_entries(&kept);
    let text = host.read_text(FILE)?.unwrap_or_default();
    let block = hosts_block(&names);
    if names.is_empty() || block.lines_in(&text).is_some() {
        return Ok(());
    }
    Ok(host.rewrite_in_place(FILE, |text| block.insert_into(text))?)
}

impl<E: Ec2> MemberNames<'_, E> {
    /// Keeps the names of the members in `/etc/hosts` up to date.
    pub async fn keep_names(&self) -> anyhow::Result<()> {
        let role_log = RoleLog::for_role("names");
        let mut timer = PollTimer::new(self.pace, self.instance);
        let mut before = None;
        loop {
            let records = self.read_records().await?;
            let all = member_names(self.config, &records);
            let found = self.find_addresses(&records).await?;
            let names = merge_addresses(&all, &self.last_known()?, found.clone());
            if self.write_names(&names)? {
                let pair = |(name, address): (&String, &IpAddr)| format!("{name} {address}");
                let entries: Vec<String> = names.iter().map(pair).collect();
                role_log.report_status(Status::Finished, &entries.join(", "));
            }
            let complete = found.len() == all.len();
            let seen = match before.replace(found.clone()) {
                Some(before) if before == found && complete => PollResult::Rest,
                Some(before) if before == found => PollResult::Missing,
                _ => PollResult::Change,
            };
            timer.wait_after(seen).await;
        }
    }

    async fn read_records(&self) -> anyhow::Result<RecordsByEtcd> {
        let mut records = RecordsByEtcd::new();
        for (etcd, formation) in &self.formations {
            let read = formation.read_record().await?;
            records.extend(read.record.map(|record| (etcd.clone(), record)));
        }
        Ok(records)
    }

    /// The current addresses of the members that have an instance, by name.
    async fn find_addresses(
        &self,
        records: &RecordsByEtcd,
    ) -> anyhow::Result<BTreeMap<String, IpAddr>> {
        let volumes = etcd_volumes(self.ec2, &self.config.cluster).await?;
        let holders = volumes
            .iter()
            .filter_map(|volume| volume.attachment.as_ref());
        let ids: BTreeSet<&str> = holders.map(|holder| holder.instance.as_str()).collect();
        let ids: Vec<&str> = ids.into_iter().collect();
        let filters: [Filter<'_>; 1] = [("instance-id", &ids)];
        let instances = if ids.is_empty() {
            Vec::new()
        } else {
            self.ec2.describe_instances(&filters).await?
        };
        Ok(member_addresses(self.config, records, &volumes, &instances))
    }

    /// The last known addresses, from `/etc/hosts` and its copy.
    fn last_known(&self) -> anyhow::Result<BTreeMap<String, IpAddr>> {
        let kept = self.host.read_text(KEPT)?.unwrap_or_default();
        let text = self.host.read_text(FILE)?.unwrap_or_default();
        Ok(parse_entries(&kept)
            .into_iter()
            .chain(parse_entries(&text))
            .collect())
    }

    /// Writes file and copy. True if the file changed.
    fn write_names(&self, names: &BTreeMap<String, IpAddr>) -> anyhow::Result<bool> {
        if names.is_empty() {
            return Ok(false);
        }
        let block = hosts_block(names);
        let kept = self.host.write_changed(KEPT, &block.insert_into(""), MODE);
        let text = self.host.read_text(FILE)?.unwrap_or_default();
        let same = block.lines_in(&text).as_ref() == Some(&block.lines);
        if !same {
            self.host
                .rewrite_in_place(FILE, |text| block.insert_into(text))?;
        }
        // An error of the copy is reported only after the file is written.
        kept.context("the names would be lost by a reboot")?;
        Ok(!same)
    }
}

/// The addresses of the members that have an instance, by name.
fn member_addresses(
    config: &NodeConfig,
    records: &RecordsByEtcd,
    volumes: &[Volume],
    instances: &[Instance],
) -> BTreeMap<String, IpAddr> {
    let mut found = BTreeMap::new();
    for (etcd, names) in all_names(config, records) {
        let seen = seen_volumes(volumes, &etcd);
        for member in &names.members {
            let volume = named_volume(member, &seen, records.get(&etcd));
            let holder = volume.and_then(|volume| volume.holder.as_ref());
            let holder = holder.map(|holder| holder.instance.as_str());
            let instance = instances.iter().find(|one| Some(one.id.as_str()) == holder);
            let own = |one: &Instance| match address_family(config) {
                AddressFamily::V4 => one.private_ip.as_deref()?.parse().ok(),
                AddressFamily::V6 => one.ipv6_address.as_deref()?.parse().ok(),
            };
            let address = instance.and_then(own);
            if let Some(address) = address {
                found.insert(names.member_host(member), address);
            }
        }
    }
    found
}

fn member_names(config: &NodeConfig, records: &RecordsByEtcd) -> BTreeSet<String> {
    let all = all_names(config, records);
    all.flat_map(|(_, names)| names.member_hosts().collect::<Vec<_>>())
        .collect()
}

/// The names of every etcd cluster's members. One that was added later is in the record before it is in the NodeConfig of every
/// control plane.
fn all_names(
    config: &NodeConfig,
    records: &RecordsByEtcd,
) -> impl Iterator<Item = (String, EtcdMemberNames)> {
    let control_plane = config.control_plane.iter();
    control_plane.flat_map(|own| &own.etcd).map(|etcd| {
        let recorded = records.get(&etcd.name).into_iter();
        let recorded = recorded.flat_map(|record| record.members.keys());
        let configured = etcd.members.iter().map(|member| &member.name);
        let record = records.get(&etcd.name);
        let has_left = |member: &&String| record.is_some_and(|record| record.has_left(member));
        let members = configured.chain(recorded);
        let members: BTreeSet<&String> = members.filter(|member| !has_left(member)).collect();
        let names = EtcdMemberNames::new(&etcd.name, members, &config.cluster);
        (etcd.name.clone(), names)
    })
}

/// Merges found and known addresses. A member without an instance keeps its last address until it has another.
fn merge_addresses(
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
        let addresses = |pairs: &[(&str, [u8; 4])]| -> BTreeMap<String, IpAddr> {
            let pair =
                |(name, octets): &(&str, [u8; 4])| ((*name).to_owned(), IpAddr::from(*octets));
            pairs.iter().map(pair).collect()
        };
        let members = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
        let known = addresses(&[
            ("a", [10, 0, 0, 1]),
            ("b", [10, 0, 0, 2]),
            ("gone", [10, 0, 0, 3]),
        ]);
        let found = addresses(&[("b", [10, 0, 0, 9])]);
        assert_eq!(
            merge_addresses(&members, &known, found),
            addresses(&[("a", [10, 0, 0, 1]), ("b", [10, 0, 0, 9])])
        );
    }
}
