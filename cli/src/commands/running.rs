//! What commands about a cluster that runs begin with: its spec as the last update completed it, its keys, and AWS in
//! its region. Nothing is asked of AWS for it.

use super::look::aws_error;
use super::session::Session;
use crate::api::{self, Administrator, Server, administrator};
use crate::args::Reach;
use crate::error::{CommandError, Context};
use crate::state::{ClusterState, keyset, store_error};
use aws_cloud::CloudClients;
use node::pki::{KUBERNETES_CA, Keyset};
use node::secret::Secret;
use spec::api::{Cluster, Object};
use spec::completed::Completed;
use spec::read::{ReadOptions, read_documents_with};
use std::time::Duration;

/// What runs is looked at whatever this kctl can do with it.
const LENIENT: ReadOptions = ReadOptions {
    allow_unsupported: true,
};

/// A cluster that was made, or is being made.
#[derive(Clone, Debug)]
pub struct Running {
    /// What is stored.
    pub state: ClusterState,
    /// The spec as the last update completed it; before the first, as the user wrote it.
    pub spec: Cluster,
    /// What that spec says.
    pub completed: Completed,
    /// AWS in the cluster's region.
    pub clients: CloudClients,
}

impl Running {
    /// Reads it: what is stored, and nothing of AWS.
    pub async fn read(name: &str, session: &Session<'_>) -> Result<Self, CommandError> {
        let state = ClusterState::read(&session.store, name, LENIENT).await?;
        let spec = completed(&state, session).await?;
        let spec = spec.unwrap_or_else(|| state.cluster.object.clone());
        let completed = Completed::read(&spec);
        let clients = session.cloud_clients(completed.region.as_deref());
        Ok(Self {
            state,
            spec,
            completed,
            clients,
        })
    }

    /// Where its API answers; `None`: its load balancer does not exist (yet).
    pub async fn server(&self, reach: &Reach) -> Result<Option<Server>, CommandError> {
        if let Some(given) = &reach.api_server {
            let server = api::server_at(&self.completed.api, given);
            return server
                .usage(
                    format!("--api-server={given} is no address of an API"),
                    "write for example --api-server https://127.0.0.1:6443",
                )
                .map(Some);
        }
        let found = api::server(&self.completed, &self.clients, reach.internal).await;
        found.map_err(aws_error)
    }

    /// True once its keys exist: `kctl update --yes` makes them first of all.
    pub fn has_keys(&self) -> bool {
        let key = self.state.keys.keyset(KUBERNETES_CA);
        self.state.entry(&key).is_some()
    }

    /// Who signs its administrators' certificates.
    pub async fn authority(&self, session: &Session<'_>) -> Result<Keyset, CommandError> {
        keyset(&session.store, &self.state.keys, KUBERNETES_CA).await
    }

    /// A kubeconfig of its administrator.
    pub fn kubeconfig(
        &self,
        authority: &Keyset,
        server: &Server,
        validity: Duration,
    ) -> Result<Secret, CommandError> {
        let who = Administrator {
            cluster: self.state.name(),
            authority,
            validity,
        };
        administrator(&who, server)
    }
}

/// The spec as the last update completed it, if there was one.
pub async fn completed(
    state: &ClusterState,
    session: &Session<'_>,
) -> Result<Option<Cluster>, CommandError> {
    let key = state.keys.completed();
    if state.entry(&key).is_none() {
        return Ok(None);
    }
    let Some(object) = session.store.get(&key).await.map_err(store_error)? else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&object.bytes).into_owned();
    let documents = read_documents_with(&key, &text, LENIENT).unwrap_or_default();
    Ok(documents
        .into_iter()
        .find_map(|document| match document.object {
            Object::Cluster(cluster) => Some(cluster),
            _ => None,
        }))
}
