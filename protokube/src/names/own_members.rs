//! Role dns-members: publishes the names of the etcd members on this instance in the cluster's hosted zone. The instance that runs a
//! member publishes its name, and no other does. It asks its own kernel whether it runs the member and uses its own address, so
//! different answers of EC2 cannot make two protokubes write in turns. etcd does not need these names: it has `/etc/hosts`.

use super::records::needed_member_changes;
use super::zone::{ZoneRecords, write_changes};
use aws_client::dns::{AddressFamily, RecordName};
use etcd_member::{MemberSettings, running_member};
use etcd_store::FormationStore;
use host::Host;
use protokube_role::log::RoleLog;
use protokube_role::pace::Sleep;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

/// Looks at unchanged members between two reads of the zone.
pub const MEMBER_ROUNDS: u32 = 4;

/// Inputs of the role.
#[derive(Debug)]
pub struct MemberPublisher<'a, R> {
    /// Access to the instance.
    pub host: &'a Host,
    /// Records of the zone.
    pub records: &'a R,
    /// The etcd clusters of which this instance may run a member, each with access to its formation record.
    pub members: Vec<(MemberSettings, FormationStore)>,
    /// Address of this instance in the family of the cluster.
    pub address: IpAddr,
    /// Time between looks at the members, and the sleep function.
    pub pace: (Duration, Sleep),
}

impl<R: ZoneRecords> MemberPublisher<'_, R> {
    /// Keeps the names of this instance's members published until a call fails. A name is never deleted here: while no instance
    /// runs the member, it keeps its last address.
    pub async fn keep_published(&self) -> anyhow::Result<()> {
        let role_log = RoleLog::for_role("dns-members");
        let (mut before, mut rounds) = (BTreeSet::new(), 0);
        loop {
            let names = self.find_own_names().await?;
            rounds += 1;
            if names != before || rounds >= MEMBER_ROUNDS {
                self.update_zone(&names, &role_log).await?;
                (before, rounds) = (names, 0);
            }
            let (pause, sleep) = self.pace;
            sleep(pause).await;
        }
    }

    /// The names of the recorded members that this instance runs.
    async fn find_own_names(&self) -> anyhow::Result<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        for (settings, formation) in &self.members {
            let Some(record) = formation.read_record().await?.record else {
                continue;
            };
            let member = running_member(self.host, settings, &record).await?;
            names.extend(member.map(|member| settings.member_names().member_host(&member)));
        }
        Ok(names)
    }

    async fn update_zone(
        &self,
        names: &BTreeSet<String>,
        role_log: &RoleLog,
    ) -> anyhow::Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let family = AddressFamily::of(self.address);
        let asked: Vec<RecordName> = names
            .iter()
            .map(|name| RecordName::new(name, family))
            .collect();
        let published = self.records.read_names(&asked).await?;
        let changes = needed_member_changes(names, self.address, &published);
        write_changes(self.records, &changes, role_log).await
    }
}
