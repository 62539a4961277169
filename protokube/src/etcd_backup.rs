//! The commands `protokube etcd-backup`: snapshots of the local member of etcd in a folder of this instance, in S3, and from other control
//! planes. They need the instance and its files, and neither the Kubernetes API nor, but for S3, AWS.

pub mod arguments;
mod delete;
mod download;
mod extract;
mod local;
mod peer;
mod save;
mod serve;

pub use delete::delete_snapshot_named;
pub use download::{SnapshotOrigin, download_snapshot};
pub use extract::extract_cluster_state;
pub use local::LocalSnapshots;
pub use peer::{PeerAccess, SNAPSHOT_PORT};
pub use save::{RegularSaves, SnapshotSaver};
pub use serve::{ServeLimits, serve_snapshot_on};

use crate::arguments::Arguments;
use crate::daemon::{DaemonState, identify_instance, read_configuration};
use crate::pace::sleep_for;
use crate::roles::build_snapshot_taker;
use anyhow::{Context, bail};
use arguments::{EtcdBackup, Place, S3Place, Verb};
use aws_client::store::Store;
use aws_client::{AccessOptions, Clients};
use host::FileLock;
use node::backup::{BACKUP_SETTINGS_KEY, BACKUP_SETTINGS_LIMIT, BackupSettings};
use node::components::{EtcdMemberNames, KUBERNETES};
use node::config::EtcdCluster;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Runs a command.
pub async fn run(command: &EtcdBackup) -> anyhow::Result<()> {
    let place = &command.place;
    let local = LocalSnapshots::open(&place.folder()).await?;
    let (name, verb) = (&command.name, &command.verb);
    if let Verb::ExtractStateFile { identity, file } = verb {
        let text = fs::read_to_string(identity);
        let text = text.with_context(|| format!("could not read {}", identity.display()))?;
        let objects = extract_cluster_state(&local, name, &text, file).await?;
        return say(&format!(
            "wrote {} with {objects} objects of the state store",
            file.display()
        ));
    }
    let daemon = identify(&place.configuration).await?;
    let etcd = find_etcd(&daemon, &place.etcd)?;
    let s3 = match &place.s3 {
        Some(s3) => Some(open_s3(s3, &daemon, &place.etcd).await?),
        None => None,
    };
    let access = peer_access(&daemon, etcd);
    match verb {
        Verb::Save(save) => {
            // Two would work in the same folder with the same containers.
            let _alone = FileLock::take(&place.folder().join(".kctl-save"))
                .context("another `protokube etcd-backup save` runs")?;
            let taker = build_snapshot_taker(&daemon, etcd, &format!("{}-command", etcd.name));
            let saver = SnapshotSaver {
                taker: taker.with_context(|| format!("etcd {} has no known ports", etcd.name))?,
                local,
                s3,
                retries: save.retries,
                sleep: sleep_for,
                say: note,
            };
            match &save.regularly {
                Some(regular) => saver.save_regularly(regular).await,
                None => say(&saver.save_once(name).await?),
            }
        }
        Verb::Delete => {
            let stores = [Some(&local.store), s3.as_ref()];
            for store in stores.into_iter().flatten() {
                say(&delete_snapshot_named(store, name).await?)?;
            }
            Ok(())
        }
        Verb::Download { peer, timeout } => {
            let origin = match peer {
                Some(peer) => SnapshotOrigin::Peer(access.connect(peer, None)?),
                None => {
                    let s3 = s3.context("name --s3-backup or --peer MEMBER")?;
                    SnapshotOrigin::Store(Box::new(s3))
                }
            };
            let done = download_snapshot(&origin, name, &local, note);
            let done = tokio::time::timeout(*timeout, done).await;
            say(&done.with_context(|| {
                format!("not complete after {timeout:?}; run it again: it goes on where it stopped")
            })??)
        }
        Verb::Serve(limits) => {
            let address = (daemon.address, SNAPSHOT_PORT);
            let listener = tokio::net::TcpListener::bind(address).await;
            let listener = listener.with_context(|| format!("could not listen on {address:?}"))?;
            say(&serve_snapshot_on(listener, &access, &local, (name, limits), note).await?)
        }
        Verb::ExtractStateFile { .. } => Ok(()),
    }
}

/// The certificates of this instance's member.
fn peer_access(daemon: &DaemonState, etcd: &EtcdCluster) -> PeerAccess {
    let names = EtcdMemberNames::from_config(etcd, &daemon.config.cluster);
    PeerAccess {
        host: daemon.host.clone(),
        certificates: format!("{KUBERNETES}/{}", names.prefix),
        names,
    }
}

async fn identify(configuration: &Arguments) -> anyhow::Result<DaemonState> {
    let (boot, config) = read_configuration(configuration)?;
    identify_instance(&boot, config).await
}

fn find_etcd<'a>(daemon: &'a DaemonState, name: &str) -> anyhow::Result<&'a EtcdCluster> {
    let all = daemon.config.control_plane.iter().flat_map(|own| &own.etcd);
    let found = all.into_iter().find(|etcd| etcd.name == name);
    found.with_context(|| {
        format!("there is no etcd cluster {name}; etcd clusters are main and events")
    })
}

/// The backup store: that of the spec, or the named one.
async fn open_s3(s3: &S3Place, daemon: &DaemonState, etcd: &str) -> anyhow::Result<Store> {
    let address = match &s3.bucket {
        Some(bucket) => {
            let folder = s3.folder.as_deref().unwrap_or_default().trim_matches('/');
            format!("s3://{bucket}/{folder}")
        }
        None => read_backup_store(&daemon.store, etcd).await?,
    };
    let authorities = s3.endpoint_ca.as_deref().map(read_authorities);
    let access = AccessOptions {
        region: s3
            .region
            .clone()
            .or_else(|| Some(daemon.clients.region().to_owned())),
        endpoint: s3.endpoint.clone(),
        authorities: authorities.transpose()?,
        ..AccessOptions::default()
    };
    let clients = Clients::from_access(&access).await;
    Ok(Store::open(&address, &clients)?)
}

/// Certificate authorities in a PEM file.
fn read_authorities(file: &Path) -> anyhow::Result<Vec<u8>> {
    let pem = fs::read(file).with_context(|| format!("could not read {}", file.display()))?;
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(&pem) {
        let added = authority.map(|authority| roots.add(authority));
        added
            .map_err(anyhow::Error::from)
            .and_then(|added| Ok(added?))
            .with_context(|| format!("{} has no certificate", file.display()))?;
    }
    if roots.is_empty() {
        bail!("{} has no certificate authority", file.display());
    }
    Ok(pem)
}

async fn read_backup_store(store: &Store, etcd: &str) -> anyhow::Result<String> {
    let read = store
        .get_first(BACKUP_SETTINGS_KEY, BACKUP_SETTINGS_LIMIT)
        .await;
    let read = read.with_context(|| format!("could not read {BACKUP_SETTINGS_KEY}"))?;
    let bytes = read.with_context(|| {
        format!("{BACKUP_SETTINGS_KEY} is not in the state store: run `kctl update cluster --yes`, or name --s3-bucketName")
    })?;
    let settings = BackupSettings::parse(BACKUP_SETTINGS_KEY, &bytes)?;
    let settings = settings.etcd.get(etcd);
    let settings = settings.with_context(|| format!("{BACKUP_SETTINGS_KEY} has no etcd {etcd}"))?;
    Ok(settings.store.clone())
}

impl Place {
    /// Folder of the snapshots on this instance.
    fn folder(&self) -> PathBuf {
        let default = || PathBuf::from(format!("/var/lib/kctl/etcd-snapshots/{}", self.etcd));
        self.folder.clone().unwrap_or_else(default)
    }
}

/// Prints a result.
fn say(line: &str) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}

/// Prints progress; a terminal that is gone stops nothing.
fn note(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
