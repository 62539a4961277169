//! A look at everything that runs of a cluster, which `validate` repeats and `get instances` takes once.

use super::look::aws_error;
use super::running::Running;
use super::session::Session;
use crate::api::{self, Answer, Question, Server, not_made};
use crate::args::Reach;
use crate::error::{CommandError, Context};
use crate::gather::{Places, gather_fleet};
use fleet::{ApiError, Fleet, Group};
use node::config::Role;
use spec::api::{InstanceGroup, InstanceGroupRole};
use spec::not_yet::{NotYet, not_yet};
use std::time::Duration;
use time::OffsetDateTime;

/// How long the certificate that asks the API is good for.
const VALIDITY: Duration = Duration::from_hours(1);

/// A certificate that is used is younger than this.
const RENEWED: Duration = Duration::from_mins(30);

/// Looks at one cluster.
pub struct Inspector<'a> {
    session: &'a Session<'a>,
    reach: &'a Reach,
    question: Question,
    running: Running,
    groups: Vec<Group>,
    connection: Option<Connection>,
}

/// A way to the API.
#[derive(Clone)]
struct Connection {
    server: Server,
    client: kube::Client,
    since: OffsetDateTime,
}

impl<'a> Inspector<'a> {
    /// Reads what is stored of a cluster.
    pub async fn of(
        name: &str,
        question: Question,
        reach: &'a Reach,
        session: &'a Session<'a>,
    ) -> Result<Self, CommandError> {
        let running = Running::read(name, session).await?;
        Ok(Self {
            session,
            reach,
            question,
            groups: stored_groups(&running),
            running,
            connection: None,
        })
    }

    /// The cluster's instance groups, from the stored spec.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// What nobody does for the cluster yet.
    pub fn not_yet(&self) -> Vec<NotYet> {
        not_yet(&self.running.spec, &self.running.state.group_objects())
    }

    /// The API's URL, once it is known.
    pub fn url(&self) -> Option<String> {
        let connection = self.connection.as_ref();
        connection.map(|connection| connection.server.url.clone())
    }

    /// Looks at AWS and at the API, side by side.
    pub async fn look(&mut self) -> Result<Fleet, CommandError> {
        let connected = self.connect().await?;
        let name = self.running.state.name();
        let question = self.question;
        let asked = async {
            match connected {
                Ok(to) => api::ask(&to.client, &to.server, name, question).await,
                Err(error) => Err::<Answer, ApiError>(error),
            }
        };
        let places = Places {
            cluster: name,
            groups: &self.groups,
            clients: &self.running.clients,
            store: &self.session.store,
        };
        let fleet = gather_fleet(&places, asked, OffsetDateTime::now_utc).await;
        fleet.map_err(aws_error)
    }

    /// The way to the API; it is looked for until it is there, since whoever waits may be quicker than an update.
    async fn connect(&mut self) -> Result<Result<Connection, ApiError>, CommandError> {
        let now = OffsetDateTime::now_utc();
        if let Some(connection) = &self.connection
            && now - connection.since < RENEWED
        {
            return Ok(Ok(connection.clone()));
        }
        let name = self.running.state.name().to_owned();
        if !self.running.has_keys() {
            self.running = Running::read(&name, self.session).await?;
            self.groups = stored_groups(&self.running);
        }
        if !self.running.has_keys() {
            return Ok(Err(not_made(&name, "keys")));
        }
        let Some(server) = self.running.server(self.reach).await? else {
            return Ok(Err(not_made(&name, "load balancer for its API")));
        };
        let authority = self.running.authority(self.session).await?;
        let config = self.running.kubeconfig(&authority, &server, VALIDITY)?;
        let client = api::client(&config).await;
        let client = client.failed(
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

/// The instance groups of the stored spec.
fn stored_groups(running: &Running) -> Vec<Group> {
    let groups = running.state.group_objects();
    groups.iter().map(fleet_group).collect()
}

fn fleet_group(group: &InstanceGroup) -> Group {
    let role = match group.spec.role {
        Some(InstanceGroupRole::ControlPlane) => Some(Role::ControlPlane),
        Some(InstanceGroupRole::Node) => Some(Role::Node),
        Some(InstanceGroupRole::Bastion) => Some(Role::Bastion),
        Some(InstanceGroupRole::ApiServer) | None => None,
    };
    Group {
        name: group.name().to_owned(),
        role,
        min: group.spec.min_size,
        max: group.spec.max_size,
    }
}
