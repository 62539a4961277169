//! The settings of etcd's backups, a store object that protokube follows.

use crate::FullSpec;
use cloud::{ObjectContent, S3Object};
use node::backup::{BACKUP_SETTINGS_KEY, BackupSettings};

pub(super) fn build_backup_settings(full: &FullSpec) -> S3Object {
    let etcd = full.etcd.iter();
    let etcd = etcd.map(|etcd| (etcd.name.clone(), etcd.backups.clone()));
    S3Object {
        key: BACKUP_SETTINGS_KEY.to_owned(),
        content: ObjectContent::Signed(BackupSettings::new(etcd.collect()).to_json().into()),
    }
}
