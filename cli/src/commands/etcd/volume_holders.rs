//! Asks EC2 which instance has a volume of etcd.

use crate::commands::observe::aws_error;
use crate::commands::session::Session;
use crate::commands::spec_objects::SpecObjects;
use crate::error::CommandError;
use crate::state::ClusterState;
use aws_cloud::volume_holder;
use spec::read::ReadOptions;

/// The instance that has a volume; `None`: it does not exist, or is attached to nothing.
pub async fn find_holder(
    volume: &str,
    name: &str,
    session: &Session<'_>,
) -> Result<Option<String>, CommandError> {
    let read = ReadOptions::AS_STORED;
    let state = ClusterState::read(&session.store, name, read).await?;
    let objects = SpecObjects::from_state(&state);
    let wanted = spec::expand::wanted_facts(&objects.cluster, &objects.groups);
    let clients = session.cloud_clients(wanted.region.as_deref());
    volume_holder(&clients, volume).await.map_err(aws_error)
}
