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
    use super::{AccessOptions, CertificateDer, Clients, PemObject, Store, read_authorities};
    use aws_client::AccessKey;
    use node::pki::{
        KeyAlgorithm, Keyset, Leaf, SystemKeys, Usage, issue_certificate, mint_keyset, trust_bundle,
    };
    use rustls::ServerConfig;
    use rustls::crypto::aws_lc_rs;
    use rustls::pki_types::PrivateKeyDer;
    use std::fs::{remove_file, write};
    use std::sync::Arc;
    use time::{Duration, OffsetDateTime};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    /// S3 with a certificate of this authority, as far as one GET goes. Returns its address.
    async fn serve_object(authority: &Keyset) -> String {
        let leaf = Leaf {
            common_name: "s3".to_owned(),
            organization: None,
            usage: Usage::Server,
            names: vec!["127.0.0.1".to_owned()],
            validity: Duration::DAY,
        };
        let mut keys = SystemKeys::issuing_at(OffsetDateTime::now_utc());
        let issued = issue_certificate(authority, &leaf, &mut keys).unwrap();
        let chain = CertificateDer::from_pem_slice(issued.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(issued.key.reveal().as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![chain], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = acceptor.accept(stream).await.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let head =
                "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nConnection: close\r\nContent-Length: 4\r\n";
            let answer = format!("{head}\r\nhere");
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        });
        url
    }

    /// `--s3-endpoint` with `--s3-endpoint-ca`: no authority of the system knows this server.
    #[tokio::test]
    async fn a_store_behind_an_authority_of_ones_own_is_reached() {
        let mut keys = SystemKeys::issuing_at(OffsetDateTime::now_utc());
        let authority = mint_keyset("own-ca", KeyAlgorithm::EcdsaP256, &mut keys).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        write(&file, trust_bundle(&authority)).unwrap();
        let access = AccessOptions {
            region: Some("eu-west-1".to_owned()),
            endpoint: Some(serve_object(&authority).await),
            authorities: Some(read_authorities(&file).unwrap()),
            keys: Some(AccessKey {
                id: "AKIAEXAMPLE".to_owned(),
                secret: "secret".to_owned(),
                session: None,
            }),
            ..AccessOptions::default()
        };
        let clients = Clients::from_access(&access).await;
        let store = Store::open("s3://bucket/folder", &clients).unwrap();
        let object = store.get("key").await.unwrap();
        assert_eq!(object.unwrap().bytes, b"here");
    }

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
