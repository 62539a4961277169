//! The backup store in S3 that a command of `protokube etcd-backup` names.

use super::arguments::S3Place;
use crate::daemon::DaemonState;
use anyhow::{Context, bail};
use aws_client::store::{Owner, Store};
use aws_client::{AccessOptions, Clients};
use etcd_member::backup::read_settings;
use etcd_member::etcd_backup::describe_pem_error;
use protokube_role::signed_objects::SignedObjects;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::fs;
use std::path::Path;

/// The backup store: that of the spec, or the named one.
pub(super) async fn open_s3(
    s3: &S3Place,
    daemon: &DaemonState,
    etcd: &str,
) -> anyhow::Result<Store> {
    let (address, owner) = match &s3.bucket {
        Some(bucket) => {
            let folder = s3.folder.as_deref().unwrap_or_default().trim_matches('/');
            (format!("s3://{bucket}/{folder}"), Owner::Anyone)
        }
        // Another endpoint is not AWS', and knows none of its accounts.
        None => {
            let own = daemon.store.owner().clone();
            let owner = if s3.endpoint.is_none() {
                own
            } else {
                Owner::Anyone
            };
            (read_backup_store(&daemon.signed, etcd).await?, owner)
        }
    };
    let authorities = s3.endpoint_ca.as_deref().map(read_authorities);
    let access = AccessOptions {
        region: s3
            .region
            .clone()
            .or_else(|| Some(daemon.clients.region().to_owned())),
        endpoint: s3.endpoint.clone(),
        authorities: authorities.transpose()?,
        imds: Some(daemon.imds.clone()),
        ..AccessOptions::default()
    };
    let clients = Clients::from_access(&access).await;
    Ok(Store::open(&address, &clients)?.owned_by(owner))
}

/// Certificate authorities in a PEM file.
fn read_authorities(file: &Path) -> anyhow::Result<Vec<u8>> {
    let pem = fs::read(file).with_context(|| format!("could not read {}", file.display()))?;
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(&pem) {
        let authority = authority.map_err(|error| describe_pem_error(&error));
        let added = authority.map(|authority| roots.add(authority));
        added
            .map_err(anyhow::Error::msg)
            .and_then(|added| Ok(added?))
            .with_context(|| {
                format!(
                    "{} cannot be used as certificate authority; name a file with whole certificates as PEM",
                    file.display()
                )
            })?;
    }
    if roots.is_empty() {
        bail!(
            "{} has no certificate: name a file with certificates as PEM (-----BEGIN CERTIFICATE-----)",
            file.display()
        );
    }
    Ok(pem)
}

async fn read_backup_store(signed: &SignedObjects, etcd: &str) -> anyhow::Result<String> {
    let settings = read_settings(signed, etcd).await?;
    let settings = settings.with_context(|| {
        format!(
            "the state store has no settings for backups of etcd {etcd}: run `kctl update --yes`, or name --s3-bucketName"
        )
    })?;
    Ok(settings.store)
}

#[cfg(test)]
mod tests {
    use super::read_authorities;
    use std::fs::{remove_file, write};

    #[test]
    fn a_file_that_is_no_authority_is_named_with_what_is_wrong_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        const BEGIN: &str = "-----BEGIN CERTIFICATE-----\n";
        const END: &str = "-----END CERTIFICATE-----\n";
        for (content, says) in [
            (String::new(), "has no certificate"),
            ("text\n".to_owned(), "has no certificate"),
            (format!("{BEGIN}MIIB"), "cut off"),
            (format!("{BEGIN}MIIB\n-----END CERT"), "cut off"),
            (format!("{BEGIN}?!?!\n{END}"), "not base64"),
            (format!("{BEGIN}MIIB\n{END}"), "cannot be used"),
            ("-----BEGIN CERTIFICATE\n".to_owned(), "damaged"),
        ] {
            write(&file, &content).unwrap();
            let why = format!("{:#}", read_authorities(&file).unwrap_err());
            assert!(why.contains(says), "{content}: {why}");
            assert!(why.contains("ca.pem") && !why.contains("[4"), "{why}");
        }
        remove_file(&file).unwrap();
        let why = format!("{:#}", read_authorities(&file).unwrap_err());
        assert!(
            why.contains("could not read") && why.contains("ca.pem"),
            "{why}"
        );
    }
}
