//! Observes a cluster again and again during a rolling update.

use super::names::ClusterNames;
use super::select::{SelectedGroups, etcd_members, select_groups};
use super::traffic::observe_traffic;
use crate::api::{ApiObjects, ApiQuery};
use crate::args::RollingUpdate;
use crate::commands::etcd::EtcdReports;
use crate::commands::inspect::Inspector;
use crate::commands::observe::aws_error;
use crate::commands::ownership;
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorKind};
use fleet::{Fleet, check_health};
use full::DnsKind;
use rolling_update::{ClusterState, Observed, Selection, find_hidden_problems, observe};
use std::collections::BTreeMap;
use time::OffsetDateTime;

/// The source of observations.
pub struct Watch<'a> {
    name: &'a str,
    session: &'a Session<'a>,
    inspector: Inspector<'a>,
    selected: SelectedGroups,
    etcd: BTreeMap<String, Vec<(String, String)>>,
    /// With `--force`: instances that were launched before this time are replaced.
    launched_before: Option<i64>,
    /// The only instance to replace.
    only: Option<&'a str>,
    cloud_only: bool,
    /// The names of a cluster with a hosted zone.
    names: Option<ClusterNames>,
}

/// A cluster at one moment.
#[derive(Debug)]
pub struct View {
    pub fleet: Fleet,
    /// Nodes, pods and disruption budgets; empty if the API is not asked.
    pub objects: ApiObjects,
    pub observed: Observed,
}

impl<'a> Watch<'a> {
    /// Reads the cluster's objects from the store.
    pub async fn open(
        name: &'a str,
        args: &'a RollingUpdate,
        session: &'a Session<'a>,
    ) -> Result<Self, CommandError> {
        let query = if args.cloudonly {
            ApiQuery::Nodes
        } else {
            ApiQuery::Everything
        };
        let inspector = Inspector::open(name, query, &args.replacement.reach, session).await?;
        ownership::check_not_of_kops(&inspector.cluster().state)?;
        let selected = select_groups(args, inspector.cluster())?;
        let etcd = etcd_members(inspector.cluster());
        let completed = &inspector.cluster().completed;
        // The completed spec has the id of the zone; a name is that of a cluster that was never updated.
        let zone = completed.dns_zone.as_ref();
        let zone = zone.filter(|zone| completed.dns != DnsKind::None && !zone.contains('.'));
        let names =
            zone.map(|zone| ClusterNames::new(zone, &completed.client_names, completed.ipv6));
        Ok(Self {
            name,
            session,
            selected,
            etcd,
            inspector,
            launched_before: args
                .force
                .then(|| OffsetDateTime::now_utc().unix_timestamp()),
            only: args.instance.as_deref(),
            cloud_only: args.cloudonly,
            names,
        })
    }

    pub fn inspector(&self) -> &Inspector<'a> {
        &self.inspector
    }

    /// With `--force`: which instances count as older.
    pub fn force_before(&mut self, time: Option<i64>) {
        self.launched_before = time;
    }

    /// Groups that the spec takes out of rolling updates.
    pub fn reported_only(&self) -> &[String] {
        &self.selected.reported_only
    }

    /// Observes the cluster. Without an answer of the API this fails, unless only AWS is asked.
    pub async fn observe(&mut self) -> Result<View, CommandError> {
        let (fleet, objects) = self.inspector.observe_objects().await?;
        if let (Err(error), false) = (&fleet.nodes, self.cloud_only) {
            return Err(CommandError::from_message(
                ErrorKind::Unhealthy,
                format!("which pods run where is not known: {error}"),
                format!(
                    "{}; --cloudonly replaces instances without draining them",
                    error.next
                ),
            ));
        }
        let now = OffsetDateTime::now_utc().unix_timestamp();
        let clients = &self.inspector.cluster().clients;
        let traffic = if self.cloud_only {
            BTreeMap::new()
        } else {
            let traffic =
                observe_traffic(clients, &fleet, &objects.nodes, &mut self.names, now).await;
            traffic.map_err(aws_error)?
        };
        let health = check_health(self.inspector.groups(), &fleet);
        // What cannot be understood changes nothing: then pods and waits alone count.
        let reports = EtcdReports::find(self.name, self.session).await?;
        let reports = reports.unwrap_or_default();
        let mut observed = observe(
            &ClusterState {
                now,
                fleet: &fleet,
                health: &health,
                nodes: &objects.nodes,
                pods: &objects.pods,
                etcd: &self.etcd,
                reports: &reports.members,
                traffic: &traffic,
            },
            &Selection {
                groups: &self.selected.groups,
                launched_before: self.launched_before,
                only: self.only,
            },
        );
        if self.cloud_only {
            // EC2 alone says what runs.
            observed.etcd.clear();
            observed.problems.clear();
        }
        find_hidden_problems(&mut observed.etcd, &reports.records, &reports.members);
        Ok(View {
            fleet,
            objects,
            observed,
        })
    }
}
