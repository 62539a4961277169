//! The own tags of a cluster: the keys that kctl has ever set, stored in `tags.json` with the issuers that it has ever had. kctl compares and removes only these.

use crate::commands::assemble::AssembledCluster;
use crate::commands::existing_cluster::read_completed_spec;
use crate::commands::observe::ObservedCluster;
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorKind};
use crate::state::{ClusterState, store_error};
use cloud::OwnTags;
use spec::completed::CompletedCluster;

/// Own tags, now and as stored.
#[derive(Debug)]
pub struct OwnTagHistory {
    /// All keys that are set now or were set before.
    pub own: OwnTags,
    /// The keys in the store; `None`: the store has none.
    stored: Option<OwnTags>,
}

impl OwnTagHistory {
    /// The object to write before any tag is set, if it changed. Otherwise the tags of an interrupted run would not be known as
    /// own tags.
    pub fn pending_write(&self, observed: &ObservedCluster) -> Option<(String, String)> {
        let changed = self.stored.as_ref() != Some(&self.own);
        changed.then(|| {
            (
                observed.state.keys.key_below(OwnTags::KEY),
                self.own.to_json(),
            )
        })
    }
}

/// Reads the own tags from the store and adds the desired ones. A cluster that kOps or an earlier kctl made has none stored:
/// the labels come from its last completed spec.
pub async fn read_own_tags(
    observed: &ObservedCluster,
    assembled: &AssembledCluster,
    session: &Session<'_>,
) -> Result<OwnTagHistory, CommandError> {
    let mut wanted = OwnTags::default();
    add_wanted(&mut wanted, assembled);
    let stored = stored_own_tags(&wanted, observed, session).await?;
    let mut own = stored.clone().unwrap_or_default();
    add_wanted(&mut own, assembled);
    if stored.is_none()
        && let Some(last) = read_completed_spec(&observed.state, session).await?
    {
        own.add_everywhere(CompletedCluster::from_cluster(&last).cloud_labels.iter());
    }
    Ok(OwnTagHistory { own, stored })
}

fn add_wanted(own: &mut OwnTags, assembled: &AssembledCluster) {
    own.add_tags_of(&assembled.desired);
    if let Some(identity) = &assembled.expanded.full.pod_identity {
        own.add_issuer(&identity.issuer, &identity.discovery_store);
    }
}

/// Reads the stored own tags. If they equal the wanted ones, the listing's digest shows it without a read.
async fn stored_own_tags(
    wanted: &OwnTags,
    observed: &ObservedCluster,
    session: &Session<'_>,
) -> Result<Option<OwnTags>, CommandError> {
    let key = observed.state.keys.key_below(OwnTags::KEY);
    let Some(entry) = observed.state.find_entry(&key) else {
        return Ok(None);
    };
    if session
        .store
        .surely_holds(entry, wanted.to_json().as_bytes())
    {
        return Ok(Some(wanted.clone()));
    }
    read_stored_own_tags(&observed.state, session).await
}

/// Reads what is stored of the own tags.
pub async fn read_stored_own_tags(
    state: &ClusterState,
    session: &Session<'_>,
) -> Result<Option<OwnTags>, CommandError> {
    let key = state.keys.key_below(OwnTags::KEY);
    if state.find_entry(&key).is_none() {
        return Ok(None);
    }
    let object = session.store.get(&key).await.map_err(store_error)?;
    let stored_bytes = object
        .map(|object| OwnTags::parse_stored(&object.bytes))
        .transpose();
    stored_bytes.map_err(|error| {
        let error = anyhow::Error::new(error).context(format!("{key} in the store cannot be used"));
        let hint = "use the kctl that wrote it, or restore it from the bucket's versions; without it kctl forgets \
                    which tags of former labels are its own, and leaves them";
        CommandError::new(ErrorKind::Precondition, error, hint)
    })
}
