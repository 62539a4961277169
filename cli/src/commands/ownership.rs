//! Refuses to change resources of another cluster with the same name, made from another state store or before a deletion. A
//! deletion would destroy its data, and an update would give its instances other certificates.

use super::session::Session;
use crate::error::{CommandError, ErrorKind};
use crate::state::{ClusterState, LastOperation};
use cloud::Cloud;
use cloud::ownership::{ForeignVolume, OwnershipClaim};
use engine::Snapshot;
use node::pki::Keyset;

/// The store's evidence that it owns the cluster: ids of its `kubernetes-ca`, and whether it was ever applied.
pub fn ownership_claim(
    state: &ClusterState,
    authority: Option<&Keyset>,
    last_operation: Option<&LastOperation>,
) -> OwnershipClaim {
    let items = authority.into_iter().flat_map(|set| &set.items);
    OwnershipClaim {
        incarnations: items.map(|item| item.id.clone()).collect(),
        has_acted: last_operation.is_some() || state.find_entry(&state.keys.completed()).is_some(),
    }
}

/// Fails if the credentials belong to another account than the cluster's. An update would create a second cluster, and a
/// deletion would find no resources and delete the spec.
pub fn check_same_account(
    cluster: &str,
    account: &str,
    last_operation: Option<&LastOperation>,
) -> Result<(), CommandError> {
    let Some(last_operation) = last_operation.filter(|operation| operation.account != account)
    else {
        return Ok(());
    };
    let error = CommandError::from_message(
        ErrorKind::Precondition,
        format!(
            "the credentials are of account {account}, and {cluster} is in account {}, where the {} of {} worked on it: nothing was done",
            last_operation.account, last_operation.command, last_operation.started
        ),
        format!(
            "use credentials of account {}: AWS_PROFILE, as `aws sts get-caller-identity` shows",
            last_operation.account
        ),
    );
    Err(error.with_hint(format!(
        "if nothing of it is left there, `kctl delete cluster {cluster} --unregister` forgets it, and it can be created anew"
    )))
}

/// Fails if AWS has etcd volumes with this cluster's name that belong to another cluster.
pub fn check_ownership(
    claim: &OwnershipClaim,
    snapshot: &Snapshot<Cloud>,
    state: &ClusterState,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let strangers = claim.foreign_volumes(snapshot);
    let Some(first) = strangers.first() else {
        return Ok(());
    };
    let all: Vec<String> = strangers
        .iter()
        .map(|one| format!("{} ({})", one.volume, one.name))
        .collect();
    let cluster = state.name();
    let own_base = format!("{}/{cluster}", session.url);
    let owner = match (&first.incarnation, &first.base) {
        (None, _) => format!(
            "hold data of a cluster {cluster} that was not made from {}",
            session.url
        ),
        (Some(id), Some(base)) if *base != own_base => {
            format!("hold the data of the cluster {cluster} of {base} (incarnation {id})")
        }
        (Some(id), _) => {
            format!(
                "hold the data of another cluster {cluster}, which is gone from {} (incarnation {id})",
                session.url
            )
        }
    };
    let error = CommandError::from_message(
        ErrorKind::Precondition,
        format!(
            "volumes of etcd in AWS {owner}, and nothing was done: {}",
            all.join(", ")
        ),
        store_hint(first, cluster, &own_base),
    );
    Err(error.with_hint(
        "if that state is lost and nobody needs the data, delete these volumes in EC2, then repeat the command (docs/operations/kept.md)",
    ))
}

/// A hint where the volumes' cluster has its state.
fn store_hint(volume: &ForeignVolume, cluster: &str, own_base: &str) -> String {
    let other = volume.base.as_deref().filter(|base| *base != own_base);
    let store = other.and_then(|base| base.strip_suffix(&format!("/{cluster}")));
    match store {
        Some(store) => {
            format!("choose the store that made it: --state {store}, or KCTL_STATE_STORE={store}")
        }
        None if volume.incarnation.is_some() => format!(
            "restore {own_base} as it was from the bucket's versions, with config, instancegroup and pki"
        ),
        None => "choose the store that made it with --state or KCTL_STATE_STORE".to_owned(),
    }
}
