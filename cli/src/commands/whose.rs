//! Refuses to touch a cluster of the same name that another state store, or an earlier life of this one, made: its data
//! would go with what `delete cluster` deletes, its machines would get other certificates.

use super::session::Session;
use crate::error::{CommandError, Kind};
use crate::state::{Acted, ClusterState};
use cloud::Cloud;
use cloud::claim::{Claim, Stranger};
use engine::Snapshot;
use node::pki::Keyset;

/// What the store has to show for a cluster: its `kubernetes-ca`, if it has one yet, and what was begun from it.
pub fn claim(state: &ClusterState, authority: Option<&Keyset>, acted: Option<&Acted>) -> Claim {
    let items = authority.into_iter().flat_map(|set| &set.items);
    Claim {
        incarnations: items.map(|item| item.id.clone()).collect(),
        has_acted: acted.is_some() || state.entry(&state.keys.completed()).is_some(),
    }
}

/// Fails if the credentials are of another account than the one in which the cluster was made: it is not there, so that an
/// update would make another one, and a deletion find nothing and forget it.
pub fn same_account(
    cluster: &str,
    account: &str,
    acted: Option<&Acted>,
) -> Result<(), CommandError> {
    let Some(acted) = acted.filter(|acted| acted.account != account) else {
        return Ok(());
    };
    let error = CommandError::said(
        Kind::Precondition,
        format!(
            "the credentials are of account {account}, and {cluster} is in account {}, where the {} of {} worked on it: nothing was done",
            acted.account, acted.command, acted.started
        ),
        format!(
            "use credentials of account {}: AWS_PROFILE, as `aws sts get-caller-identity` shows",
            acted.account
        ),
    );
    Err(error.hint(format!(
        "if nothing of it is left there, `kctl delete cluster {cluster} --unregister` forgets it, and it can be created anew"
    )))
}

/// Fails if AWS has volumes of etcd of this name that are not this cluster's.
pub fn check(
    claim: &Claim,
    seen: &Snapshot<Cloud>,
    state: &ClusterState,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let strangers = claim.strangers(seen);
    let Some(first) = strangers.first() else {
        return Ok(());
    };
    let all: Vec<String> = strangers
        .iter()
        .map(|one| format!("{} ({})", one.volume, one.name))
        .collect();
    let cluster = state.name();
    let ours = format!("{}/{cluster}", session.url);
    let whose = match (&first.incarnation, &first.base) {
        (None, _) => format!(
            "hold data of a cluster {cluster} that was not made from {}",
            session.url
        ),
        (Some(id), Some(base)) if *base != ours => {
            format!("hold the data of the cluster {cluster} of {base} (incarnation {id})")
        }
        (Some(id), _) => {
            format!(
                "hold the data of another cluster {cluster}, which is gone from {} (incarnation {id})",
                session.url
            )
        }
    };
    let error = CommandError::said(
        Kind::Precondition,
        format!(
            "volumes of etcd in AWS {whose}, and nothing was done: {}",
            all.join(", ")
        ),
        right_store(first, cluster, &ours),
    );
    Err(error.hint(
        "if that state is lost and nobody needs the data, delete these volumes in EC2, then repeat the command (docs/operations/kept.md)",
    ))
}

/// Where the cluster's state is to be found.
fn right_store(stranger: &Stranger, cluster: &str, ours: &str) -> String {
    let other = stranger.base.as_deref().filter(|base| *base != ours);
    let store = other.and_then(|base| base.strip_suffix(&format!("/{cluster}")));
    match store {
        Some(store) => {
            format!("choose the store that made it: --state {store}, or KCTL_STATE_STORE={store}")
        }
        None if stranger.incarnation.is_some() => format!(
            "restore {ours} as it was from the bucket's versions, with config, instancegroup and pki"
        ),
        None => "choose the store that made it with --state or KCTL_STATE_STORE".to_owned(),
    }
}
