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

/// A volume of etcd of a cluster of the same name.
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
        let Cloud::EbsVolume(volume) = &item.resource else {
            return None;
        };
        let incarnation = volume.tags.get(INCARNATION_TAG);
        let is_ours = match incarnation {
            Some(incarnation) => self.incarnations.contains(incarnation),
            None => self.has_acted,
        };
        (!is_ours).then(|| ForeignVolume {
            volume: item.physical.clone(),
            name: volume.name.clone(),
            base: volume.tags.get(STATE_STORE_TAG).cloned(),
            incarnation: incarnation.cloned(),
        })
    }
}
