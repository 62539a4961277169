//! Permissions for the state store in S3. A directory as store needs none.

use crate::FullSpec;
use crate::iam::document::Statement;

/// Actions that read, write and delete objects with their versions.
const OBJECTS: &[&str] = &[
    "s3:DeleteObject",
    "s3:DeleteObjectVersion",
    "s3:GetObject",
    "s3:PutObject",
];
/// Actions on the bucket itself that clients need.
const BUCKET: &[&str] = &[
    "s3:GetBucketLocation",
    "s3:GetEncryptionConfiguration",
    "s3:ListBucket",
    "s3:ListBucketVersions",
];

/// Control planes read the cluster's whole folder, and write backups, etcd's formation records and boot reports. Workers send
/// their boot reports through control planes, hence all of `nodes/`.
pub(super) fn control_plane_state_access(full: &FullSpec) -> Vec<Statement> {
    let Some(bucket) = bucket_arn(full) else {
        return Vec::new();
    };
    let folder = format!("{bucket}/{}", full.state.prefix);
    let backups = full.etcd.iter().map(|etcd| {
        let name = &etcd.name;
        Statement::allow(OBJECTS).on_one(format!("{folder}/backups/etcd/{name}/*"))
    });
    let records = Statement::allow(["s3:DeleteObject", "s3:GetObject", "s3:PutObject"])
        .on_each(["etcd", "nodes"].map(|records| format!("{folder}/{records}/*")));
    let reads = Statement::allow(["s3:Get*"]).on_one(format!("{folder}/*"));
    std::iter::once(reads)
        .chain(backups)
        .chain([records, Statement::allow(BUCKET).on_each([&bucket])])
        .collect()
}

/// Workers read only the agents in `assets/`.
pub(super) fn node_state_access(full: &FullSpec) -> Vec<Statement> {
    let programs = |bucket| {
        let all = format!("{bucket}/{}/assets/*", full.state.prefix);
        Statement::allow(["s3:GetObject"]).on_one(all)
    };
    bucket_arn(full).map(programs).into_iter().collect()
}

fn bucket_arn(full: &FullSpec) -> Option<String> {
    let name = full.state.bucket.as_ref()?;
    Some(format!("arn:{}:s3:::{name}", full.placement.partition))
}
