//! `kctl report`: reads a cluster and writes a page that shows it.

use super::inspect::Inspector;
use super::look::{Look, Warnings};
use super::session::Session;
use crate::api::ApiQuery;
use crate::args::{self, ApiReach};
use crate::error::{CommandError, ErrorContext, Outcome};
use crate::private_file::replace_private_file;
use crate::state::{ListedOperation, LockKind, ObservedLock, OperationLog, StoreKeys};
use crate::ui::report::{Report, SeenLock, render};
use fleet::{InstanceStatus, Membership};
use node::report::BootReport;
use std::collections::BTreeMap;
use time::OffsetDateTime;

/// How many operations the page shows.
const OPERATIONS: usize = 10;

/// Writes the page.
pub async fn run(args: &args::Report, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(args.cluster.as_deref()).await?;
    let mut cluster = ReportedCluster::open(&name, &args.reach, session).await?;
    let report = cluster.read().await?;
    let shown = args.html.display();
    let html = render(&report, None).html;
    replace_private_file(&args.html, html.as_bytes()).or_usage_error(
        format!("could not write the page to {shown}"),
        "name a file in a folder that is there and can be written to",
    )?;
    for gap in &report.gaps {
        session.shell.warning(gap);
    }
    session.shell.print_done(&format!("wrote {shown}"));
    Ok(Outcome::Fine)
}

/// A cluster that is read for the page, once or again and again.
pub struct ReportedCluster<'a> {
    name: &'a str,
    session: &'a Session<'a>,
    inspector: Inspector<'a>,
    /// Boot reports that were read.
    boots: BTreeMap<String, BootReport>,
}

impl<'a> ReportedCluster<'a> {
    /// Reads the cluster's objects from the store.
    pub async fn open(
        name: &'a str,
        reach: &'a ApiReach,
        session: &'a Session<'a>,
    ) -> Result<Self, CommandError> {
        let inspector = Inspector::open(name, ApiQuery::NodesAndPods, reach, session).await?;
        Ok(Self {
            name,
            session,
            inspector,
            boots: BTreeMap::new(),
        })
    }

    /// Reads the cluster's objects again, and what the page shows.
    pub async fn reread(&mut self) -> Result<Report, CommandError> {
        self.inspector.reread().await?;
        self.read().await
    }

    /// Reads what the page shows.
    pub async fn read(&mut self) -> Result<Report, CommandError> {
        let look = Look::take(self.name, self.session, &mut self.inspector).await?;
        let (operations, locks) = read_log(self.name, self.session).await?;
        let mut gaps = look.gaps();
        gaps.extend(self.read_boots(&look).await);
        gaps.sort();
        gaps.dedup();
        tracing::debug!(reads = self.session.store.reads(), calls = ?self.session.clients.calls(), "asked");
        Ok(Report {
            cluster: self.name.to_owned(),
            at: OffsetDateTime::now_utc(),
            health: look.health(self.inspector.groups(), &[]),
            warnings: Warnings::find(&look, &self.inspector).list(),
            gaps,
            boots: self.boots.clone(),
            restorable: look.etcd.seen_restorable(),
            instances: look.fleet.instances,
            members: look.etcd.members,
            backups: look.etcd.backups.states,
            operations,
            locks,
        })
    }

    /// Reads the boot reports of instances: one without an error only once while its instance is Ready. After an error nodeup runs again, and
    /// after a restart of the instance. Returns what could not be read.
    async fn read_boots(&mut self, look: &Look) -> Vec<String> {
        let instances = &look.fleet.instances;
        self.boots.retain(|id, boot| {
            let is_ready = |one: &InstanceStatus| one.membership == Membership::Ready;
            let mut all = instances.iter();
            boot.error.is_none() && all.any(|one| one.instance.id == *id && is_ready(one))
        });
        let ids = instances.iter().map(|one| one.instance.id.clone());
        let unread: Vec<String> = ids.filter(|id| !self.boots.contains_key(id)).collect();
        let (boots, gaps) = self.inspector.boot_reports(&unread).await;
        self.boots.extend(boots);
        gaps
    }
}

/// The newest operations, and the locks.
async fn read_log(
    name: &str,
    session: &Session<'_>,
) -> Result<(Vec<ListedOperation>, Vec<SeenLock>), CommandError> {
    let keys = StoreKeys::new(name);
    let log = OperationLog::list(&session.store, &keys).await?;
    let newest: Vec<String> = log.ids().iter().take(OPERATIONS).cloned().collect();
    let operations = log.read(&newest).await?;
    let mut locks = Vec::new();
    for kind in [LockKind::Changes, LockKind::RollingUpdate] {
        let lock = ObservedLock::read(&session.store, &keys, kind).await?;
        locks.extend(lock.map(|lock| SeenLock { kind, lock }));
    }
    Ok((operations, locks))
}
