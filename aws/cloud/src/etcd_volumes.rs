//! Whether the volumes of etcd members still exist, and which instances have them.

use crate::CloudClients;
use aws_client::failure::Classify;
use aws_sdk_ec2::types::{Volume, VolumeState};
use engine::Failure;

/// True if EC2, asked by id, says that the volume does not exist. An answer to filters may lack a volume that is there.
pub async fn is_volume_deleted(clients: &CloudClients, id: &str) -> Result<bool, Failure> {
    let call = clients.ec2.describe_volumes().volume_ids(id);
    let found = call.send().await.classify_call("ec2:DescribeVolumes");
    match found {
        Err(failure) if failure.code == "InvalidVolume.NotFound" => Ok(true),
        found => {
            let volumes = found?.volumes.unwrap_or_default();
            let deleted = volumes
                .iter()
                .any(|one| one.state() == Some(&VolumeState::Deleted));
            Ok(deleted)
        }
    }
}

/// The instance that the volume is attached to, in whatever state; `None` if it is attached to none, or does not exist.
pub async fn volume_holder(clients: &CloudClients, id: &str) -> Result<Option<String>, Failure> {
    let call = clients.ec2.describe_volumes().volume_ids(id);
    let found = call.send().await.classify_call("ec2:DescribeVolumes");
    match found {
        Err(failure) if failure.code == "InvalidVolume.NotFound" => Ok(None),
        found => {
            let volumes = found?.volumes.unwrap_or_default();
            let attachments = volumes.iter().flat_map(Volume::attachments);
            let mut holders = attachments.filter_map(|one| one.instance_id());
            Ok(holders.next().map(str::to_owned))
        }
    }
}
