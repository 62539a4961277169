//! An existing cluster as `validate`, `get instances` and `export` need it: completed spec, keys, AWS clients. Reads only the
//! store.

use super::observe::aws_error;
use super::session::Session;
use crate::api::{self, ApiServer, KubeconfigRequest, administrator_kubeconfig};
use crate::args::ApiReach;
use crate::error::{CommandError, ErrorContext};
use crate::state::{ClusterState, StoreKeys, load_keyset, store_error};
use aws_cloud::CloudClients;
use node::pki::{KUBERNETES_CA, Keyset};
use node::secret::Secret;
use spec::api::{Cluster, Object};
use spec::completed::CompletedCluster;
use spec::read::{ReadOptions, read_documents_with};
use spec::upgrade::nodes_version;
use spec::validate::versions::Version;
use std::time::Duration;

/// A cluster that exists in AWS, or is being created.
#[derive(Clone, Debug)]
pub struct ExistingCluster {
    pub state: ClusterState,
    /// The spec as the last update completed it; before the first, as the user wrote it.
    pub spec: Cluster,
    /// The parts of the spec that commands use.
    pub completed: CompletedCluster,
    /// AWS clients for the cluster's region.
    pub clients: CloudClients,
}

impl ExistingCluster {
    /// Reads the cluster from the store. Makes no AWS call but to the store.
    pub async fn read(name: &str, session: &Session<'_>) -> Result<Self, CommandError> {
        let state = ClusterState::read(&session.store, name, ReadOptions::AS_STORED).await?;
        let spec = read_completed_spec(&state, session).await?;
        let spec = spec.unwrap_or_else(|| state.cluster.object.clone());
        let completed = CompletedCluster::from_cluster(&spec);
        let clients = session.cloud_clients(completed.region.as_deref());
        Ok(Self {
            state,
            spec,
            completed,
            clients,
        })
    }

    /// The address of its API; `None`: its load balancer does not exist yet.
    pub async fn api_server(&self, reach: &ApiReach) -> Result<Option<ApiServer>, CommandError> {
        if let Some(given) = &reach.api_server {
            let server = api::api_server_at(&self.completed.api, given);
            return server
                .or_usage_error(
                    format!("--api-server={given} is not an address of an API"),
                    "write for example --api-server https://127.0.0.1:6443",
                )
                .map(Some);
        }
        let found = api::server(&self.completed, &self.clients, reach.internal).await;
        found.map_err(aws_error)
    }

    /// All addresses of its API, the usual one first; none before its load balancer exists.
    pub async fn api_servers(&self) -> Result<Vec<ApiServer>, CommandError> {
        let found = api::servers(&self.completed, &self.clients).await;
        found.map_err(aws_error)
    }

    /// True once its keys exist. `kctl update --yes` creates them first.
    pub fn has_keys(&self) -> bool {
        let key = self.state.keys.keyset(KUBERNETES_CA);
        self.state.find_entry(&key).is_some()
    }

    /// The keyset `kubernetes-ca`, with its private key.
    pub async fn kubernetes_ca(&self, session: &Session<'_>) -> Result<Keyset, CommandError> {
        load_keyset(&session.store, &self.state.keys, KUBERNETES_CA).await
    }

    /// A kubeconfig with a new administrator's certificate.
    pub fn admin_kubeconfig(
        &self,
        authority: &Keyset,
        server: &ApiServer,
        validity: Duration,
    ) -> Result<Secret, CommandError> {
        let request = KubeconfigRequest {
            cluster: self.state.name(),
            authority,
            validity,
        };
        administrator_kubeconfig(&request, server)
    }
}

/// The spec as the last update completed it, if there was one.
pub async fn read_completed_spec(
    state: &ClusterState,
    session: &Session<'_>,
) -> Result<Option<Cluster>, CommandError> {
    match state.find_entry(&state.keys.completed()) {
        Some(_) => read_completed(&state.keys, session).await,
        None => Ok(None),
    }
}

/// The version of Kubernetes that API servers serve since the last update, if there was one.
pub async fn read_served_version(
    name: &str,
    session: &Session<'_>,
) -> Result<Option<Version>, CommandError> {
    let completed = read_completed(&StoreKeys::new(name), session).await?;
    Ok(completed.and_then(|cluster| nodes_version(&cluster.spec)))
}

async fn read_completed(
    keys: &StoreKeys,
    session: &Session<'_>,
) -> Result<Option<Cluster>, CommandError> {
    let key = keys.completed();
    let Some(object) = session.store.get(&key).await.map_err(store_error)? else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&object.bytes).into_owned();
    let documents = read_documents_with(&key, &text, ReadOptions::AS_STORED).unwrap_or_default();
    Ok(documents
        .into_iter()
        .find_map(|document| match document.object {
            Object::Cluster(cluster) => Some(cluster),
            _ => None,
        }))
}
