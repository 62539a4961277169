//! One look at a cluster: AWS, the API and the state store. `validate` judges it, `report` and `dashboard` show it.

use super::etcd::EtcdReports;
use super::inspect::Inspector;
use super::session::Session;
use crate::error::CommandError;
use crate::ui::health::Warning;
use etcd_rules::backup::find_backup_problems;
use etcd_rules::{find_etcd_problems, find_slow_disks};
use fleet::{Fleet, Group, Health, IgnoredProblem, check_health};
use spec::catalog::end_of_life_warning;
use spec::not_yet::NotYet;
use spec::upgrade::{OpenUpgrade, nodes_version};
use time::OffsetDateTime;

/// What one look at the cluster found.
pub struct Look {
    pub fleet: Fleet,
    pub etcd: EtcdReports,
}

impl Look {
    /// Looks at AWS, the API and the state store in parallel.
    pub async fn take(
        name: &str,
        session: &Session<'_>,
        inspector: &mut Inspector<'_>,
    ) -> Result<Self, CommandError> {
        let (fleet, etcd) = futures::join!(inspector.observe(), read_etcd(name, session));
        Ok(Self {
            fleet: fleet?,
            etcd: etcd?,
        })
    }

    /// The health with what etcd's members report; commands that change something judge without that.
    pub fn health(&self, groups: &[Group], ignored: &[IgnoredProblem]) -> Health {
        let mut problems = find_etcd_problems(&self.etcd.members, &self.etcd.records);
        problems.extend(find_backup_problems(
            &self.etcd.backups,
            OffsetDateTime::now_utc(),
        ));
        check_health(groups, &self.fleet)
            .with_etcd(problems, &self.fleet)
            .ignore(ignored)
    }

    /// What could not be read.
    pub fn gaps(&self) -> Vec<String> {
        [self.fleet.gaps.as_slice(), self.etcd.gaps.as_slice()].concat()
    }
}

/// Reads what etcd's members report, and up to when their backups reach.
async fn read_etcd(name: &str, session: &Session<'_>) -> Result<EtcdReports, CommandError> {
    let found = EtcdReports::find(name, session).await?;
    let mut reports = found.unwrap_or_default();
    reports.read_restorable(session).await;
    Ok(reports)
}

/// What does not make a cluster unhealthy.
pub struct Warnings {
    /// What kctl does not implement yet.
    pub not_yet: Vec<NotYet>,
    /// etcd members that work, but wait long for their disk.
    pub slow_disks: Vec<String>,
    /// That the minor of Kubernetes has ended, or will soon.
    pub end_of_life: Option<String>,
    /// An upgrade of Kubernetes that has not ended.
    pub upgrade: Option<OpenUpgrade>,
}

impl Warnings {
    /// What one look and the stored spec say.
    pub fn find(look: &Look, inspector: &Inspector<'_>) -> Self {
        let cluster = inspector.cluster();
        Self {
            not_yet: inspector.not_yet(),
            slow_disks: find_slow_disks(&look.etcd.members),
            end_of_life: find_end_of_life(inspector),
            upgrade: OpenUpgrade::find(&cluster.state.cluster.object, &cluster.spec),
        }
    }

    /// All of them with their topics.
    pub fn list(&self) -> Vec<Warning> {
        let missing = self.not_yet.iter().map(|one| (one.topic, &one.message));
        let slow = self.slow_disks.iter().map(|text| ("etcd", text));
        let ends = self.end_of_life.iter().map(|text| ("kubernetes", text));
        let open = self.upgrade.as_ref().map(OpenUpgrade::describe);
        let open = open.iter().map(|text| ("kubernetes", text));
        let all = missing.chain(slow).chain(ends).chain(open);
        all.map(|(topic, message)| Warning {
            topic,
            message: message.clone(),
        })
        .collect()
    }
}

/// By the version of the last update.
fn find_end_of_life(inspector: &Inspector<'_>) -> Option<String> {
    let cluster = &inspector.cluster().spec;
    let version = nodes_version(&cluster.spec)?;
    end_of_life_warning(&version, OffsetDateTime::now_utc().date())
}
