//! Observes the fleet of a cluster from AWS and its API: once for `get instances`, repeatedly for `validate`.

use super::existing_cluster::ExistingCluster;
use super::observe::aws_error;
use super::session::Session;
use crate::api::{self, ApiObjects, ApiQuery, ApiServer, missing_resource};
use crate::args::ApiReach;
use crate::error::{CommandError, ErrorContext, ErrorKind};
use crate::gather::{FleetSources, gather_fleet, read_boot_reports};
use fleet::{ApiError, Fleet, Group};
use node::config::Role;
use node::report::BootReport;
use spec::api::{InstanceGroup, InstanceGroupRole};
use spec::not_yet::{NotYet, not_yet};
use std::collections::BTreeMap;
use std::time::Duration;
use time::OffsetDateTime;

/// Validity of the certificate for the API.
const VALIDITY: Duration = Duration::from_hours(1);

/// Age at which the certificate is replaced.
const RENEWED: Duration = Duration::from_mins(30);

pub struct Inspector<'a> {
    session: &'a Session<'a>,
    reach: &'a ApiReach,
    query: ApiQuery,
    cluster: ExistingCluster,
    groups: Vec<Group>,
    connection: Option<Connection>,
}

/// A client of the API, and when its certificate was issued.
#[derive(Clone)]
struct Connection {
    server: ApiServer,
    client: kube::Client,
    since: OffsetDateTime,
}

impl<'a> Inspector<'a> {
    /// Reads the cluster's objects from the store.
    pub async fn open(
        name: &str,
        query: ApiQuery,
        reach: &'a ApiReach,
        session: &'a Session<'a>,
    ) -> Result<Self, CommandError> {
        let cluster = ExistingCluster::read(name, session).await?;
        Ok(Self {
            session,
            reach,
            query,
            groups: stored_groups(&cluster),
            cluster,
            connection: None,
        })
    }

    /// Reads the cluster's objects again: others may have changed them.
    pub async fn reread(&mut self) -> Result<(), CommandError> {
        self.cluster = ExistingCluster::read(self.cluster.state.name(), self.session).await?;
        self.groups = stored_groups(&self.cluster);
        Ok(())
    }

    /// The cluster's instance groups, from the stored spec.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// What the spec asks for without effect.
    pub fn not_yet(&self) -> Vec<NotYet> {
        let state = &self.cluster.state;
        not_yet(&state.cluster.object.spec, &state.group_objects())
    }

    /// The API's URL, once it was found.
    pub fn api_url(&self) -> Option<String> {
        let connection = self.connection.as_ref();
        connection.map(|connection| connection.server.url.clone())
    }

    /// The cluster as the store has it.
    pub fn cluster(&self) -> &ExistingCluster {
        &self.cluster
    }

    /// The client of the API, once there was a connection.
    pub fn api_client(&self) -> Option<&kube::Client> {
        let connection = self.connection.as_ref();
        connection.map(|connection| &connection.client)
    }

    /// A client of the API; an error if the cluster has none yet, or its name does not lead there.
    pub async fn connect(&mut self) -> Result<kube::Client, CommandError> {
        let name = self.cluster.state.name().to_owned();
        let connected = self.connect_api().await?;
        let connection = connected.map_err(|error| api_failure(&error))?;
        let found = api::check_addresses(&connection.server, &name).await;
        found.map_err(|error| api_failure(&error))?;
        Ok(connection.client)
    }

    /// Explains an error of the client.
    pub fn explain(&self, error: &kube::Error) -> CommandError {
        let name = self.cluster.state.name();
        match &self.connection {
            Some(to) => api_failure(&api::read_client_error(&to.server, name, error)),
            None => api_failure(&missing_resource(name, "keys")),
        }
    }

    /// Reads AWS and the API in parallel.
    pub async fn observe(&mut self) -> Result<Fleet, CommandError> {
        let (fleet, _) = self.observe_objects().await?;
        Ok(fleet)
    }

    /// Reads AWS and the API in parallel; also the objects of the API, empty if it could not be asked.
    pub async fn observe_objects(&mut self) -> Result<(Fleet, ApiObjects), CommandError> {
        let connected = self.connect_api().await?;
        let name = self.cluster.state.name();
        let query = self.query;
        let answer = async {
            match connected {
                Ok(to) => api::query_api(&to.client, &to.server, name, query).await,
                Err(error) => Err::<ApiObjects, ApiError>(error),
            }
        };
        let fleet = gather_fleet(&self.sources(), answer, OffsetDateTime::now_utc).await;
        fleet.map_err(aws_error)
    }

    /// The boot reports of these instances that the store has, by instance, and what could not be read.
    pub async fn boot_reports(
        &self,
        instances: &[String],
    ) -> (BTreeMap<String, BootReport>, Vec<String>) {
        read_boot_reports(&self.sources(), instances).await
    }

    fn sources(&self) -> FleetSources<'_> {
        FleetSources {
            cluster: self.cluster.state.name(),
            groups: &self.groups,
            clients: &self.cluster.clients,
            store: &self.session.store,
        }
    }

    /// Connects to the API. Looks again for keys and load balancer at each call, since an update may create them meanwhile.
    async fn connect_api(&mut self) -> Result<Result<Connection, ApiError>, CommandError> {
        let now = OffsetDateTime::now_utc();
        if let Some(connection) = &self.connection
            && now - connection.since < RENEWED
        {
            return Ok(Ok(connection.clone()));
        }
        let name = self.cluster.state.name().to_owned();
        if !self.cluster.has_keys() {
            self.reread().await?;
        }
        if !self.cluster.has_keys() {
            return Ok(Err(missing_resource(&name, "keys")));
        }
        let Some(server) = self.cluster.api_server(self.reach).await? else {
            return Ok(Err(missing_resource(&name, "load balancer for its API")));
        };
        let authority = self.cluster.kubernetes_ca(self.session).await?;
        let config = self
            .cluster
            .admin_kubeconfig(&authority, &server, VALIDITY)?;
        let client = api::api_client(&config).await;
        let client = client.or_failed(
            format!("no client for {} could be made", server.url),
            "restore the keyset kubernetes-ca from the bucket's versions",
        )?;
        let connection = Connection {
            server,
            client,
            since: now,
        };
        self.connection = Some(connection.clone());
        Ok(Ok(connection))
    }
}

fn api_failure(error: &ApiError) -> CommandError {
    CommandError::from_message(ErrorKind::Failed, error.message.clone(), &error.next)
}

/// The instance groups of the stored spec.
fn stored_groups(cluster: &ExistingCluster) -> Vec<Group> {
    let groups = cluster.state.group_objects();
    groups.iter().map(fleet_group).collect()
}

/// The role of a group; `None` if the spec has none, or one that kctl does not support.
pub fn group_role(group: &InstanceGroup) -> Option<Role> {
    match group.spec.role {
        Some(InstanceGroupRole::ControlPlane) => Some(Role::ControlPlane),
        Some(InstanceGroupRole::Node) => Some(Role::Node),
        Some(InstanceGroupRole::Bastion) => Some(Role::Bastion),
        Some(InstanceGroupRole::ApiServer) | None => None,
    }
}

fn fleet_group(group: &InstanceGroup) -> Group {
    Group {
        name: group.name().to_owned(),
        role: group_role(group),
        min: group.spec.min_size,
        max: group.spec.max_size,
    }
}
