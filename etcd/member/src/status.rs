//! Role status: keeps what the local member of an etcd cluster says about itself in the state store, for `kctl etcd status`. It is
//! written when something changes that an operator has to learn of, and once a minute.

use super::disk_worker::run_blocking;
use super::gateway::{EtcdGateway, parse_fsync_p99};
use super::{EtcdDisk, MemberSettings, manifest};
use anyhow::Context;
use aws_client::fips;
use aws_client::store::{Expect, Store};
use etcd_rules::{
    MEMBER_STATUS_FORMAT, MEMBER_STATUS_LIMIT, MemberStatus, RunningMember, member_status_key,
    member_status_prefix, read_member_status,
};
use host::Host;
use protokube_role::current_waits::CurrentWaits;
use protokube_role::log::RoleLog;
use protokube_role::pace::Sleep;
use protokube_role::probe::Probe;
use std::sync::Arc;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Time between two looks at etcd.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);

/// A status is written at least this often, so that a reader sees that protokube is there.
const WRITE_INTERVAL: Duration = Duration::from_mins(1);

/// Inputs of the role.
#[derive(Debug)]
pub struct StatusReporter {
    pub settings: MemberSettings,
    pub host: Host,
    /// State store at the cluster's base.
    pub store: Store,
    pub current_waits: Arc<CurrentWaits>,
    pub gateway: EtcdGateway,
    pub probe: Probe,
    /// URL of etcd's metrics.
    pub metrics: String,
    pub role_log: RoleLog,
    pub clock: fn() -> OffsetDateTime,
    pub sleep: Sleep,
}

impl StatusReporter {
    /// Keeps the status up to date for ever.
    pub async fn keep_status(&self) -> anyhow::Result<()> {
        const ABOUT: &str = "status in the state store";
        let mut written: Option<(MemberStatus, OffsetDateTime)> = None;
        let mut others_removed = false;
        loop {
            let now = (self.clock)();
            let status = self.observe(now).await;
            let is_due = written.as_ref().is_none_or(|(before, at)| {
                !before.is_same_condition(&status) || (now - *at).unsigned_abs() >= WRITE_INTERVAL
            });
            if is_due {
                match self.write(&status, &mut others_removed).await {
                    Ok(()) => {
                        self.role_log.report_resolved(ABOUT);
                        written = Some((status, now));
                    }
                    Err(error) => self.role_log.report_error(ABOUT, &error),
                }
            }
            (self.sleep)(LOOK_INTERVAL).await;
        }
    }

    /// The member as it is now. Nothing fails: what could not be learned is missing.
    async fn observe(&self, now: OffsetDateTime) -> MemberStatus {
        let runs = manifest::runs_from(&self.host, &self.settings).await;
        let (runs, mut problem) = match runs {
            Ok(volume) => (volume, None),
            Err(error) => (None, Some(format!("{error:#}"))),
        };
        let mut running = None;
        if runs.is_some() {
            match self.gateway.describe_member().await {
                Ok(member) => running = Some(self.with_fsync_time(member).await),
                Err(error) => problem = Some(format!("{error:#}")),
            }
        }
        // A member that was stopped still has its volume, from which it can be recovered.
        let volume = match runs {
            None => manifest::mounted_volume(&self.host, &self.settings)
                .await
                .ok()
                .flatten(),
            volume => volume,
        };
        MemberStatus {
            format: MEMBER_STATUS_FORMAT,
            etcd: self.settings.etcd.name.clone(),
            instance: self.settings.instance.clone(),
            member: match &self.settings.own_members()[..] {
                [only] => Some(only.clone()),
                _ => None,
            },
            release: env!("CARGO_PKG_VERSION").to_owned(),
            fips: fips::is_running(),
            written: now.format(&Rfc3339).unwrap_or_default(),
            free_bytes: free_bytes(&self.host, volume.as_deref()).await,
            volume,
            // The role of the member knows better why it does not run than etcd, which is not there.
            problem: self.current_wait().or(problem),
            running,
        }
    }

    async fn with_fsync_time(&self, member: RunningMember) -> RunningMember {
        let metrics = self.probe.fetch_url(&self.metrics).await;
        RunningMember {
            fsync_p99_seconds: metrics.ok().and_then(|all| parse_fsync_p99(&all.text)),
            ..member
        }
    }

    /// What the role of the member waits for or refuses.
    fn current_wait(&self) -> Option<String> {
        let role = format!("etcd-{}", self.settings.etcd.name);
        let waits = self.current_waits.list_waits().into_iter();
        let own = waits.filter(|wait| wait.role == role);
        own.max_by_key(|wait| wait.failed).map(|wait| wait.message)
    }

    async fn write(&self, status: &MemberStatus, others_removed: &mut bool) -> anyhow::Result<()> {
        let key = member_status_key(&status.etcd, &status.instance);
        let bytes = serde_json::to_vec_pretty(status)?;
        let put = self.store.put(&key, bytes, Expect::Any).await;
        put.with_context(|| format!("could not write {key}"))?;
        if status.running.is_some() && !*others_removed {
            self.remove_predecessors(&key, status).await?;
            *others_removed = true;
        }
        Ok(())
    }

    /// Deletes what instances wrote that had this member, its volume or its name before.
    async fn remove_predecessors(&self, own_key: &str, own: &MemberStatus) -> anyhow::Result<()> {
        let prefix = member_status_prefix(&self.settings.etcd.name);
        let entries = self.store.list(&prefix, None).await;
        let entries = entries.with_context(|| format!("could not list {prefix}"))?;
        for key in entries.into_iter().map(|entry| entry.key) {
            if key == own_key {
                continue;
            }
            let found = self.store.get_first(&key, MEMBER_STATUS_LIMIT + 1).await;
            let found = found.with_context(|| format!("could not read {key}"))?;
            let other = found.and_then(|bytes| read_member_status(&key, &bytes).ok());
            if other.is_some_and(|other| is_predecessor(&other, own)) {
                let deleted = self.store.delete(&key, Expect::Any).await;
                deleted.with_context(|| format!("could not delete {key}"))?;
            }
        }
        Ok(())
    }
}

/// Free space on a mounted volume, bytes; `None` if it is not mounted.
pub(super) async fn free_bytes(host: &Host, volume: Option<&str>) -> Option<u64> {
    let disk = EtcdDisk {
        volume: volume?,
        requested_device: "",
        prefix: "",
    };
    let (host, folder) = (host.clone(), disk.mount_point());
    let free = run_blocking(move || Ok(host.free_bytes(&folder)?)).await;
    free.ok()
}

/// True if the other instance had the member that runs here.
fn is_predecessor(other: &MemberStatus, own: &MemberStatus) -> bool {
    let id = |of: &MemberStatus| {
        let id = of.running.as_ref().map(|running| running.id.clone());
        id.filter(|id| !id.is_empty())
    };
    let same = |other: Option<String>, own: Option<String>| other.is_some() && other == own;
    same(id(other), id(own))
        || same(other.volume.clone(), own.volume.clone())
        || same(other.member.clone(), own.member.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_predecessor_had_the_id_or_the_volume_or_the_name() {
        let status = |id: Option<&str>, volume: Option<&str>, member: Option<&str>| MemberStatus {
            running: id.map(|id| RunningMember {
                id: id.to_owned(),
                ..RunningMember::default()
            }),
            volume: volume.map(str::to_owned),
            member: member.map(str::to_owned),
            ..MemberStatus::default()
        };
        let own = status(Some("1"), Some("vol-1"), Some("a"));
        for (other, is) in [
            (status(Some("1"), None, None), true),
            (status(None, Some("vol-1"), None), true),
            (status(None, Some("vol-0"), Some("a")), true),
            (status(Some("2"), Some("vol-2"), Some("b")), false),
            (status(None, None, None), false),
            (status(Some(""), None, None), false),
        ] {
            assert_eq!(is_predecessor(&other, &own), is, "{other:?}");
        }
    }
}
