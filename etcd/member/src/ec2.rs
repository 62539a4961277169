//! Calls of EC2, as a trait that tests replace.

use aws_client::ec2_query::{Ec2QueryClient, Instance, Volume};
use engine::Failure;
use etcd_rules::{Holder, SeenVolume, volume_tag};
use std::future::Future;

/// A filter: name and accepted values.
pub type Filter<'a> = (&'a str, &'a [&'a str]);

/// The calls of EC2 that protokube uses.
pub trait Ec2: Send + Sync + 'static {
    /// Volumes that match all filters.
    fn describe_volumes(
        &self,
        filters: &[Filter<'_>],
    ) -> impl Future<Output = Result<Vec<Volume>, Failure>> + Send;

    /// The volume with this id; `None` only if EC2 says that it does not exist.
    fn describe_volume(
        &self,
        id: &str,
    ) -> impl Future<Output = Result<Option<Volume>, Failure>> + Send;

    /// Instances that match all filters.
    fn describe_instances(
        &self,
        filters: &[Filter<'_>],
    ) -> impl Future<Output = Result<Vec<Instance>, Failure>> + Send;

    /// Requests the attachment of a volume; it may complete later.
    fn attach_volume(
        &self,
        volume: &str,
        instance: &str,
        device: &str,
    ) -> impl Future<Output = Result<(), Failure>> + Send;
}

impl Ec2 for Ec2QueryClient {
    async fn describe_volumes(&self, filters: &[Filter<'_>]) -> Result<Vec<Volume>, Failure> {
        Ec2QueryClient::describe_volumes(self, filters).await
    }

    async fn describe_volume(&self, id: &str) -> Result<Option<Volume>, Failure> {
        Ec2QueryClient::describe_volume(self, id).await
    }

    async fn describe_instances(&self, filters: &[Filter<'_>]) -> Result<Vec<Instance>, Failure> {
        Ec2QueryClient::describe_instances(self, filters).await
    }

    async fn attach_volume(
        &self,
        volume: &str,
        instance: &str,
        device: &str,
    ) -> Result<(), Failure> {
        Ec2QueryClient::attach_volume(self, volume, instance, device).await
    }
}

/// All etcd volumes of a cluster, in all zones. Control planes of another cluster may create volumes with any tags, but all of them
/// with their own cluster's name in the tag by which IAM limits them.
pub async fn etcd_volumes(ec2: &impl Ec2, cluster: &str) -> Result<Vec<Volume>, Failure> {
    let owned = format!("tag:{}", node::names::ownership_tag(cluster));
    let of_cluster = format!("tag:{}", node::names::CLUSTER_TAG);
    let filters: [Filter<'_>; 3] = [
        (&of_cluster, &[cluster]),
        (&owned, &["owned"]),
        ("tag:k8s.io/role/control-plane", &["1"]),
    ];
    ec2.describe_volumes(&filters).await
}

/// The running control planes of a cluster.
pub async fn control_planes(ec2: &impl Ec2, cluster: &str) -> Result<Vec<Instance>, Failure> {
    let cluster_filter = format!("tag:{}", node::names::CLUSTER_TAG);
    let filters: [Filter<'_>; 3] = [
        (&cluster_filter, &[cluster]),
        ("tag:k8s.io/role/control-plane", &["1"]),
        ("instance-state-name", &["running"]),
    ];
    ec2.describe_instances(&filters).await
}

/// The volumes with the tag of an etcd cluster.
pub fn seen_volumes(volumes: &[Volume], etcd: &str) -> Vec<SeenVolume> {
    let tag = volume_tag(etcd);
    let of_etcd = volumes.iter().filter(|one| one.tags.contains_key(&tag));
    of_etcd.map(|one| to_seen_volume(one, etcd)).collect()
}

/// The missing ones of the tags by which an etcd cluster's volumes are found.
pub fn lacking_tags(volume: &Volume, cluster: &str, etcd: &str) -> Vec<String> {
    let (owned, etcd_tag) = (node::names::ownership_tag(cluster), volume_tag(etcd));
    let has = |tag: &str, value| volume.tags.get(tag).is_some_and(|said| said == value);
    let mut lacks = Vec::new();
    if !has(node::names::CLUSTER_TAG, cluster) {
        lacks.push(format!("the tag {} = {cluster}", node::names::CLUSTER_TAG));
    }
    if !has(&owned, "owned") {
        lacks.push(format!("the tag {owned} = owned"));
    }
    if !has("k8s.io/role/control-plane", "1") {
        lacks.push("the tag k8s.io/role/control-plane = 1".to_owned());
    }
    if !volume.tags.contains_key(&etcd_tag) {
        lacks.push(format!("the tag {etcd_tag} = MEMBER/ALL,MEMBERS"));
    }
    lacks
}

/// Converts a volume, whether it has the tag of the etcd cluster or not.
pub fn to_seen_volume(volume: &Volume, etcd: &str) -> SeenVolume {
    let tag = volume.tags.get(&volume_tag(etcd));
    SeenVolume {
        id: volume.id.clone(),
        zone: volume.zone.clone(),
        state: volume.state.clone(),
        tag: tag.cloned().unwrap_or_default(),
        holder: volume.attachment.as_ref().map(|attachment| Holder {
            instance: attachment.instance.clone(),
            state: attachment.state.clone(),
            device: attachment.device.clone(),
        }),
    }
}
