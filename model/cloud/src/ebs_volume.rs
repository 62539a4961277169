//! EBS volumes: where etcd's data lives.

use super::listing::{ListingPosition, Section};
use super::{Kind, Tags};
use engine::Ref;
use serde::{Deserialize, Serialize};

/// What the keys of tags begin with that say which etcd member a volume is of.
pub const ETCD_TAG: &str = "k8s.io/etcd/";

/// An etcd volume. Size, type, IOPS and throughput can change; zone and encryption cannot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EbsVolume {
    /// `MEMBER.etcd-CLUSTER.NAME`.
    pub name: String,
    pub availability_zone: String,
    /// GiB.
    pub size: i32,
    /// `gp3`, `gp2`, `io1`, ...
    pub volume_type: String,
    /// IOPS, for types that have them.
    pub iops: Option<i32>,
    /// MiB/s, gp3 only.
    pub throughput: Option<i32>,
    pub encrypted: bool,
    /// ARN of a KMS key of the user's; `None`: the account's default key.
    pub kms_key_id: Option<String>,
    /// Tags; `k8s.io/etcd/CLUSTER` = `MEMBER/ALL,MEMBERS` is how protokube finds it.
    pub tags: Tags,
}

impl Kind for EbsVolume {
    const TYPE: &'static str = "ebs_volume";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Volumes, 0);
    const CAN_BE_REMADE: bool = false;
    const HOLDS_DATA: bool = true;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        Vec::new()
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        Some(&mut self.tags)
    }

    /// An account with EBS encryption by default encrypts what is asked for without ("When your account is enabled for
    /// encryption by default, all new volumes are encrypted", EBS user guide; `CreateVolume` has no way to get another). That
    /// is more than was asked for, and stays.
    fn accepting(&self, have: &Self) -> Self {
        if self.encrypted || !have.encrypted {
            return self.clone();
        }
        Self {
            encrypted: true,
            kms_key_id: have.kms_key_id.clone(),
            ..self.clone()
        }
    }

    fn refuses(&self, have: &Self) -> Option<String> {
        let fixed = |volume: &Self| (volume.availability_zone.clone(), volume.encrypted);
        if fixed(self) != fixed(have) {
            return Some("an etcd volume cannot change its zone or encryption: it holds the cluster's data, and this release moves no member to another volume. Put them back as they were".to_owned());
        }
        let other_key = self.kms_key_id.is_some() && self.kms_key_id != have.kms_key_id;
        if other_key {
            return Some(
                "an etcd volume cannot change its KMS key, and this release moves no member to another volume: put the key back as it was"
                    .to_owned(),
            );
        }
        (self.size < have.size).then(|| {
            format!(
                "an EBS volume cannot shrink from {} to {} GiB: keep volumeSize at {}",
                have.size, self.size, have.size
            )
        })
    }

    fn describe(&self) -> String {
        let Self {
            size,
            volume_type,
            availability_zone,
            tags,
            ..
        } = self;
        let tag = |name: &str| tags.get(&format!("kubernetes.io/created-for/pvc/{name}"));
        let claim = match (tag("namespace"), tag("name")) {
            (Some(namespace), Some(name)) => {
                format!(", data of PersistentVolumeClaim {namespace}/{name}")
            }
            _ => String::new(),
        };
        format!("{size} GiB {volume_type} in {availability_zone}{claim}")
    }
}
