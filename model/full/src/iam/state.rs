//! Access to the state store. A store that is a directory needs none.

use crate::FullSpec;
use crate::iam::document::Statement;

/// Reading and writing objects, with all their versions.
const OBJECTS: &[&str] = &[
    "s3:DeleteObject",
    "s3:DeleteObjectVersion",
    "s3:GetObject",
    "s3:PutObject",
];
/// What clients ask about the bucket itself.
const BUCKET: &[&str] = &[
    "s3:GetBucketLocation",
    "s3:GetEncryptionConfiguration",
    "s3:ListBucket",
    "s3:ListBucketVersions",
];

/// Control planes read all of the cluster's folder, and write backups and what they record of themselves:
/// how etcd was formed, how machines' start went, and what they wait for. Workers' reports come by way of them: so all of `nodes/`.
pub(super) fn control_plane(full: &FullSpec) -> Vec<Statement> {
    let Some(bucket) = bucket(full) else {
        return Vec::new();
    };
    let folder = format!("{bucket}/{}", full.state.prefix);
    let backups = full.etcd.iter().map(|etcd| {
        let name = &etcd.name;
        Statement::allow(OBJECTS).on(format!("{folder}/backups/etcd/{name}/*"))
    });
    let records = Statement::allow(["s3:DeleteObject", "s3:GetObject", "s3:PutObject"])
        .on_each(["etcd", "nodes"].map(|records| format!("{folder}/{records}/*")));
    let reads = Statement::allow(["s3:Get*"]).on(format!("{folder}/*"));
    std::iter::once(reads)
        .chain(backups)
        .chain([records, Statement::allow(BUCKET).on_each([&bucket])])
        .collect()
}

/// Nodes read the programs they run, and nothing else.
pub(super) fn node(full: &FullSpec) -> Vec<Statement> {
    let programs = |bucket| {
        let all = format!("{bucket}/{}/assets/*", full.state.prefix);
        Statement::allow(["s3:GetObject"]).on(all)
    };
    bucket(full).map(programs).into_iter().collect()
}

fn bucket(full: &FullSpec) -> Option<String> {
    let name = full.state.bucket.as_ref()?;
    Some(format!("arn:{}:s3:::{name}", full.placement.partition))
}
