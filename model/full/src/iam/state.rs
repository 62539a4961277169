//! Permissions for the state store in S3, of the account that owns it: whoever registers the name of a bucket that was deleted gets and
//! says nothing. A directory as store needs none.

use crate::FullSpec;
use crate::iam::document::Statement;
use std::collections::BTreeSet;

/// Actions on records and reports. Old versions of objects are not deleted: who takes over a control plane cannot destroy them in a bucket with
/// versioning.
const OBJECTS: &[&str] = &["s3:DeleteObject", "s3:GetObject", "s3:PutObject"];

/// Actions in a backup store. A snapshot may be so large that it is sent in parts, and parts that nobody completes are paid for
/// (S3 User Guide, "Uploading and copying objects using multipart upload").
const BACKUPS: &[&str] = &[
    "s3:AbortMultipartUpload",
    "s3:DeleteObject",
    "s3:GetObject",
    "s3:PutObject",
];

/// Actions on the bucket itself that clients need. As in kOps they are for the whole bucket: a control plane can list the names of other
/// clusters' objects, and reads none of them. Without `ListBucket` S3 answers 403 for a key that is absent (API reference, `GetObject`,
/// "Permissions"), and every record in the store depends on 404. What it answers under a condition on `s3:prefix`, AWS does not document
/// (Ceph's pull request 68577 takes it that S3 compares the key): too little to found all clusters on.
const BUCKET: &[&str] = &[
    "s3:GetBucketLocation",
    "s3:GetEncryptionConfiguration",
    "s3:ListBucket",
    "s3:ListBucketVersions",
];

/// Control planes read the cluster's whole folder, and write backups, etcd's formation records and boot reports. Workers send
/// their boot reports through control planes, hence all of `nodes/`.
pub(super) fn control_plane_state_access(full: &FullSpec) -> Vec<Statement> {
    let own = bucket_arn(full);
    let stores: Vec<(String, String)> = full
        .etcd
        .iter()
        .filter_map(|etcd| backup_arns(&etcd.backups.store, &full.placement.partition))
        .collect();
    let buckets: BTreeSet<&String> = own
        .iter()
        .chain(stores.iter().map(|(arn, _)| arn))
        .collect();
    let backups = stores
        .iter()
        .map(|(_, objects)| Statement::allow(BACKUPS).on_one(objects.clone()));
    let own = own.iter().flat_map(|bucket| {
        let folder = format!("{bucket}/{}", full.state.prefix);
        let records = Statement::allow(OBJECTS)
            .on_each(["etcd", "nodes"].map(|records| format!("{folder}/{records}/*")));
        let reads = Statement::allow(["s3:Get*"]).on_one(format!("{folder}/*"));
        [reads, records]
    });
    let bucket = (!buckets.is_empty()).then(|| Statement::allow(BUCKET).on_each(buckets.clone()));
    let all = own.chain(backups).chain(bucket);
    all.map(|statement| of_owner(full, statement)).collect()
}

/// ARNs of the bucket and the objects of a backup store in S3.
fn backup_arns(store: &str, partition: &str) -> Option<(String, String)> {
    let path = store.strip_prefix("s3://")?.trim_end_matches('/');
    let bucket = path.split('/').next()?;
    let arn = |of: &str| format!("arn:{partition}:s3:::{of}");
    Some((arn(bucket), arn(&format!("{path}/*"))))
}

/// Workers read only the agents in `assets/`.
pub(super) fn node_state_access(full: &FullSpec) -> Vec<Statement> {
    let programs = |bucket| {
        let all = format!("{bucket}/{}/assets/*", full.state.prefix);
        Statement::allow(["s3:GetObject"]).on_one(all)
    };
    let programs = bucket_arn(full).map(programs);
    let programs = programs.map(|statement| of_owner(full, statement));
    programs.into_iter().collect()
}

/// The statement for buckets of the owner of the state store only (IAM User Guide, "AWS global condition context keys").
fn of_owner(full: &FullSpec, statement: Statement) -> Statement {
    match &full.state.owner {
        Some(owner) => statement.when("StringEquals", "aws:ResourceAccount", owner.clone()),
        None => statement,
    }
}

fn bucket_arn(full: &FullSpec) -> Option<String> {
    let name = full.state.bucket.as_ref()?;
    Some(format!("arn:{}:s3:::{name}", full.placement.partition))
}
