//! Refuses to change resources of another cluster with the same name, made from another state store or before a deletion. A
//! deletion would destroy its data, and an update would give its instances other certificates. Refuses a copy of a cluster's state
//! too: it has the same authority, but what it says may be outdated, and its backups are not the cluster's. And refuses a cluster that
//! kOps runs: instances of the one cannot join those of the other.

use super::session::Session;
use crate::error::{CommandError, ErrorKind};
use crate::state::{ClusterState, LastOperation};
use aws_client::store::{Entry, StoreError, is_same_place};
use cloud::Cloud;
use cloud::ownership::{ForeignVolume, OwnershipClaim, volumes_by_place};
use engine::{Snapshot, error_chain};
use etcd_rules::record_key;
use node::pki::Keyset;
use std::collections::BTreeSet;

/// Name of the spec's object in a cluster's folder. The folder is a cluster's as long as it is there.
const CONFIG: &str = "config";

/// What kOps writes into a cluster's folder when it updates the cluster, and kctl never does: its version, and etcd-manager's pods.
const OF_KOPS: [&str; 2] = ["kops-version.txt", "manifests/etcd/"];

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

/// Fails if kOps has made the cluster and kctl's control planes have never formed its etcd. An update would change launch templates and
/// addons of a cluster that runs: new workers could not join, and a new control plane could not use a volume of etcd-manager.
pub fn check_not_of_kops(state: &ClusterState) -> Result<(), CommandError> {
    let keys = &state.keys;
    let etcd = &state.cluster.object.spec.etcd_clusters;
    let mut records = etcd
        .iter()
        .map(|one| keys.key_below(&record_key(&one.name)));
    if records.any(|record| state.find_entry(&record).is_some()) {
        return Ok(());
    }
    let of_kops = OF_KOPS.map(|path| keys.key_below(path));
    let is_of_kops = |entry: &&Entry| of_kops.iter().any(|path| entry.key.starts_with(path));
    let Some(found) = state.entries.iter().find(is_of_kops) else {
        return Ok(());
    };
    let cluster = state.name();
    let error = CommandError::from_message(
        ErrorKind::Precondition,
        format!(
            "{cluster} is a cluster of kOps: the state store has {}, which kOps writes, and no record of an etcd that kctl has formed; \
             nothing was done",
            found.key
        ),
        "kctl does not take a cluster of kOps over: make a new one beside it, and move there what runs in this one (docs/from-kops.md)",
    );
    Err(error.with_hint(format!(
        "if it is not needed any more: `kctl delete cluster {cluster}` shows what would be deleted"
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
    let cluster = state.name();
    let own_base = own_base(state, session);
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
            list_volumes(&strangers)
        ),
        store_hint(first, cluster, &own_base),
    );
    Err(error.with_hint(
        "if that state is lost and nobody needs the data, delete these volumes in EC2, then repeat the command (docs/operations/kept.md)",
    ))
}

/// What is at a place that operated the cluster.
enum OtherPlace {
    /// A cluster's spec: it can operate the cluster still.
    Live,
    Gone,
    /// Nobody here may read it, or its bucket is gone, with what the store says.
    Unreadable(String),
    /// Nobody knows at the moment, with the reason.
    Unknown(String),
}

impl OtherPlace {
    async fn look(base: &str, session: &Session<'_>) -> Self {
        let read = match session.store.open_other(base) {
            Ok(store) => store.get(CONFIG).await,
            Err(error) => Err(error),
        };
        match read {
            Ok(Some(_)) => Self::Live,
            Ok(None) => Self::Gone,
            Err(
                error @ (StoreError::NoBucket { .. }
                | StoreError::Denied { .. }
                | StoreError::Address { .. }),
            ) => Self::Unreadable(error_chain(&error)),
            Err(error) => Self::Unknown(error_chain(&error)),
        }
    }

    /// The words about it, for a deletion.
    fn words(&self) -> String {
        match self {
            Self::Live => "where its spec still is".to_owned(),
            Self::Gone => "where no spec is any more".to_owned(),
            Self::Unreadable(why) | Self::Unknown(why) => {
                format!("which cannot be read ({why})")
            }
        }
    }
}

/// True if a cluster may be operated from there: its spec is there, or nobody knows.
pub async fn may_be_live(base: &str, session: &Session<'_>) -> bool {
    !matches!(OtherPlace::look(base, session).await, OtherPlace::Gone)
}

/// Fails before an update if another place operates the cluster still. A cluster may move: then the other place has no spec any more,
/// and the update marks the volumes anew.
pub async fn check_place_to_update(
    snapshot: &Snapshot<Cloud>,
    state: &ClusterState,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let own = own_base(state, session);
    let (_, elsewhere) = volumes_by_place(snapshot, |base| is_same_place(base, &own));
    for base in bases_of(&elsewhere) {
        let place = match OtherPlace::look(base, session).await {
            OtherPlace::Live => return Err(other_place_error(base, &elsewhere, state, session)),
            OtherPlace::Unknown(why) => return Err(unknown_place_error(base, &why)),
            place => place.words(),
        };
        session.shell.warning(&format!(
            "the volumes of etcd were operated from {base}, {place}; an update marks them as operated from {own}"
        ));
    }
    Ok(())
}

/// Fails before a deletion if etcd's volumes are operated from another place. Those that an update from here has not marked, because
/// the spec does not name them any more, say so for ever: they are this place's if others are, and if the other has no spec.
pub async fn check_place_to_delete(
    snapshot: &Snapshot<Cloud>,
    state: &ClusterState,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let own = own_base(state, session);
    let (here, elsewhere) = volumes_by_place(snapshot, |base| is_same_place(base, &own));
    for base in bases_of(&elsewhere) {
        let place = OtherPlace::look(base, session).await;
        match &place {
            OtherPlace::Live => return Err(other_place_error(base, &elsewhere, state, session)),
            OtherPlace::Unknown(why) => return Err(unknown_place_error(base, why)),
            OtherPlace::Gone if !here.is_empty() => {}
            OtherPlace::Gone | OtherPlace::Unreadable(_) => {
                let cluster = state.name();
                let error = CommandError::from_message(
                    ErrorKind::Precondition,
                    format!(
                        "volumes of etcd in AWS were operated from {base}, {}, and not from {own}; nothing was done: {}",
                        place.words(),
                        list_volumes(&elsewhere)
                    ),
                    format!(
                        "if {own} is the state of the cluster now: kctl update {cluster} --yes marks the volumes, then repeat the command"
                    ),
                );
                return Err(error.with_hint(unregister_hint(&own, cluster)));
            }
        }
    }
    Ok(())
}

/// The error while nobody knows whether another place operates the cluster.
fn unknown_place_error(base: &str, why: &str) -> CommandError {
    CommandError::from_message(
        ErrorKind::Precondition,
        format!(
            "volumes of etcd in AWS were operated from {base}, and whether the cluster still is cannot be read; nothing was done: {why}"
        ),
        "repeat the command once that place can be read",
    )
}

fn own_base(state: &ClusterState, session: &Session<'_>) -> String {
    format!("{}/{}", session.url, state.name())
}

fn bases_of(volumes: &[ForeignVolume]) -> BTreeSet<&str> {
    let bases = volumes.iter().filter_map(|one| one.base.as_deref());
    bases.collect()
}

fn list_volumes(volumes: &[ForeignVolume]) -> String {
    let all: Vec<String> = volumes
        .iter()
        .map(|one| format!("{} ({})", one.volume, one.name))
        .collect();
    all.join(", ")
}

/// The error of a copy of a cluster's state.
fn other_place_error(
    base: &str,
    volumes: &[ForeignVolume],
    state: &ClusterState,
    session: &Session<'_>,
) -> CommandError {
    let (own, cluster) = (own_base(state, session), state.name());
    let next = match base.strip_suffix(&format!("/{cluster}")) {
        Some(store) => format!(
            "choose the store that operates the cluster: --state {store}, or KCTL_STATE_STORE={store}"
        ),
        None => {
            "choose the store that operates the cluster with --state or KCTL_STATE_STORE".to_owned()
        }
    };
    let error = CommandError::from_message(
        ErrorKind::Precondition,
        format!(
            "volumes of etcd in AWS are operated from {base}, where the spec of {cluster} still is, and {own} has only a copy of it; \
             nothing was done: {}",
            list_volumes(volumes)
        ),
        next,
    );
    error
        .with_hint(format!(
            "if the cluster moves to {own}: aws s3 mv {base}/{CONFIG} {base}/{CONFIG}.moved, then kctl update {cluster} --yes from here \
             (docs/operations/kept.md)"
        ))
        .with_hint(unregister_hint(&own, cluster))
}

fn unregister_hint(own: &str, cluster: &str) -> String {
    format!(
        "if {own} is not needed: `kctl delete cluster {cluster} --unregister` deletes only that folder"
    )
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
