//! Whose etcd's volumes are. Objects are found by the cluster's name, and a name says little: another state store can have a
//! cluster of that name, and so had this one before the last was unregistered. What holds data therefore carries which
//! incarnation of the cluster it is of, and where that one's state lies. (kOps tells them by the name alone.)

use super::{Cloud, EbsVolume};
use engine::{Observed, Snapshot};
use node::names::{INCARNATION_TAG, STATE_STORE_TAG};

/// The longest value of a tag ("Maximum value length – 256 Unicode characters in UTF-8", EC2 user guide).
pub const TAG_VALUE: usize = 256;

/// What a state store has to show for a cluster's volumes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnershipClaim {
    /// Ids of the certificates of its `kubernetes-ca`, whichever signs now: the cluster's incarnations so far.
    pub incarnations: Vec<String>,
    /// An update or a deletion was begun from it, or kOps completed the spec there.
    pub has_acted: bool,
}

/// A volume of etcd of a cluster of the same name that is not this one's, or whose mark names another place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignVolume {
    pub volume: String,
    pub name: String,
    /// `s3://BUCKET/PREFIX/NAME`, where the state of its cluster lay when it was tagged.
    pub base: Option<String>,
    /// Its cluster's incarnation; `None`: it carries none, as those that kOps or an earlier kctl made.
    pub incarnation: Option<String>,
}

/// Puts on etcd's volumes whose they are.
pub fn set_ownership_tags(desired: &mut [Cloud], base: &str, incarnation: &str) {
    for one in desired {
        let Cloud::EbsVolume(EbsVolume { tags, .. }) = one else {
            continue;
        };
        tags.insert(INCARNATION_TAG.into(), incarnation.into());
        if base.chars().count() <= TAG_VALUE {
            tags.insert(STATE_STORE_TAG.into(), base.into());
        }
    }
}

impl OwnershipClaim {
    /// The volumes of etcd that are not this cluster's.
    pub fn foreign_volumes(&self, seen: &Snapshot<Cloud>) -> Vec<ForeignVolume> {
        let strangers = seen
            .items
            .iter()
            .filter_map(|item| self.foreign_volume(item));
        strangers.collect()
    }

    fn foreign_volume(&self, item: &Observed<Cloud>) -> Option<ForeignVolume> {
        let volume = describe_volume(item)?;
        let is_ours = match &volume.incarnation {
            Some(incarnation) => self.incarnations.contains(incarnation),
            None => self.has_acted,
        };
        (!is_ours).then_some(volume)
    }
}

/// The volumes of etcd that say where their cluster's state lies, by whether that `is_here`. A copy of a state store has the same
/// authority as the store that operates the cluster: only the place tells them apart.
pub fn volumes_by_place(
    seen: &Snapshot<Cloud>,
    is_here: impl Fn(&str) -> bool,
) -> (Vec<ForeignVolume>, Vec<ForeignVolume>) {
    let marked = seen.items.iter().filter_map(describe_volume);
    let marked = marked.filter(|one| one.base.is_some());
    marked.partition(|one| one.base.as_deref().is_some_and(&is_here))
}

fn describe_volume(item: &Observed<Cloud>) -> Option<ForeignVolume> {
    let Cloud::EbsVolume(volume) = &item.resource else {
        return None;
    };
    Some(ForeignVolume {
        volume: item.physical.clone(),
        name: volume.name.clone(),
        base: volume.tags.get(STATE_STORE_TAG).cloned(),
        incarnation: volume.tags.get(INCARNATION_TAG).cloned(),
    })
}
