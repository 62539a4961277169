//! The commands `protokube etcd-backup`: from their arguments to what `etcd_member::etcd_backup` does. They need the instance and its
//! files, and neither the Kubernetes API nor, but for S3, AWS.

pub mod arguments;
mod s3;

use crate::daemon::{DaemonState, identify_instance, read_configuration};
use crate::roles::etcd::find_local_etcd;
use anyhow::{Context, bail};
use arguments::{EtcdBackup, Place, Save, Verb};
use aws_client::store::Store;
use etcd_member::etcd_backup::{
    LocalSnapshots, PeerAccess, SNAPSHOT_PORT, ServeLimits, SnapshotOrigin, SnapshotSaver,
    delete_snapshot_named, download_snapshot, extract_cluster_state, serve_snapshot_on,
};
use etcd_rules::backup::StoreOwner;
use host::{Host, LocalSystem};
use node::components::EtcdMemberNames;
use node::config::EtcdCluster;
use protokube_role::pace::sleep_for;
use s3::open_s3;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What a command of this control plane works with.
struct Here {
    daemon: DaemonState,
    etcd: EtcdCluster,
    local: LocalSnapshots,
    s3: Option<Store>,
    /// Name of the snapshot.
    name: String,
}

/// Runs a command.
pub async fn run(command: &EtcdBackup) -> anyhow::Result<()> {
    let here = async || Here::open(command).await;
    match &command.verb {
        Verb::Save(save) => here().await?.save(save).await,
        Verb::Delete => here().await?.delete().await,
        Verb::Download { peer, timeout } => here().await?.download(peer.as_deref(), *timeout).await,
        Verb::Serve(limits) => here().await?.serve(limits).await,
        // It needs the folder only.
        Verb::ExtractStateFile { identity, file } => extract(command, identity, file).await,
    }
}

async fn extract(command: &EtcdBackup, identity: &Path, file: &Path) -> anyhow::Result<()> {
    let host = Host::new("/", Arc::new(LocalSystem::default()));
    let local = LocalSnapshots::open(&host, &command.place.absolute_folder()?).await?;
    let text = fs::read_to_string(identity);
    let text = text.with_context(|| format!("could not read {}", identity.display()))?;
    let objects = extract_cluster_state(&local, &command.name, &text, file).await?;
    say(&format!(
        "wrote {} with {objects} objects of the state store",
        file.display()
    ))
}

impl Here {
    async fn open(command: &EtcdBackup) -> anyhow::Result<Self> {
        let place = &command.place;
        let (boot, config) = read_configuration(&place.configuration)?;
        let daemon = identify_instance(&boot, config, &note).await?;
        let s3 = match &place.s3 {
            Some(s3) => Some(open_s3(s3, &daemon, &place.etcd).await?),
            None => None,
        };
        Ok(Self {
            etcd: find_etcd(&daemon, &place.etcd)?.clone(),
            local: LocalSnapshots::open(&daemon.host, &place.absolute_folder()?).await?,
            s3,
            daemon,
            name: command.name.clone(),
        })
    }

    async fn save(self, save: &Save) -> anyhow::Result<()> {
        let work = format!("{}-command", self.etcd.name);
        let local = find_local_etcd(&self.daemon);
        let local = local.iter().find(|local| local.name() == self.etcd.name);
        let local = local
            .with_context(|| format!("this instance runs no member of etcd {}", self.etcd.name))?;
        let saver = SnapshotSaver {
            taker: local.build_snapshot_taker(&work),
            local: self.local,
            s3: self.s3,
            retries: save.retries,
            sleep: sleep_for,
            say: note,
        };
        match &save.regularly {
            Some(regular) => saver.save_regularly(regular).await,
            None => say(&saver.save_once(&self.name).await?),
        }
    }

    async fn delete(self) -> anyhow::Result<()> {
        let daemon = &self.daemon;
        let incarnation = Some(&*daemon.incarnation);
        let (cluster, base) = (&daemon.config.cluster, daemon.store.url());
        let own = StoreOwner::new(cluster, &self.etcd.name, base, incarnation);
        let stores = [Some(&self.local.store), self.s3.as_ref()];
        let mut failed = Vec::new();
        for store in stores.into_iter().flatten() {
            match delete_snapshot_named(store, &own, &self.name).await {
                Ok(says) => say(&says)?,
                Err(error) => failed.push(format!("{}: {error:#}", store.url())),
            }
        }
        match failed.is_empty() {
            true => Ok(()),
            false => bail!("not deleted: {}", failed.join("; ")),
        }
    }

    async fn download(self, peer: Option<&str>, timeout: Duration) -> anyhow::Result<()> {
        let origin = match peer {
            Some(peer) => SnapshotOrigin::Peer(self.peer_access().connect(peer, None)?),
            None => {
                let s3 = self.s3.context("name --s3-backup or --peer MEMBER")?;
                SnapshotOrigin::Store(Box::new(s3))
            }
        };
        let done = download_snapshot(&origin, &self.name, &self.local, note);
        let done = tokio::time::timeout(timeout, done).await;
        say(&done.with_context(|| {
            format!("not complete after {timeout:?}; run it again: it goes on where it stopped")
        })??)
    }

    async fn serve(self, limits: &ServeLimits) -> anyhow::Result<()> {
        let address = (self.daemon.address, SNAPSHOT_PORT);
        let listener = tokio::net::TcpListener::bind(address).await;
        let listener = listener.with_context(|| format!("could not listen on {address:?}"))?;
        let what = (self.name.as_str(), limits);
        say(&serve_snapshot_on(listener, &self.peer_access(), &self.local, what, note).await?)
    }

    /// The certificates of this instance's member.
    fn peer_access(&self) -> PeerAccess {
        let names = EtcdMemberNames::from_config(&self.etcd, &self.daemon.config.cluster);
        PeerAccess {
            host: self.daemon.host.clone(),
            certificates: names.certificate_folder(),
            names,
        }
    }
}

fn find_etcd<'a>(daemon: &'a DaemonState, name: &str) -> anyhow::Result<&'a EtcdCluster> {
    let all = daemon.config.control_plane.iter().flat_map(|own| &own.etcd);
    let found = all.into_iter().find(|etcd| etcd.name == name);
    found.with_context(|| {
        format!("there is no etcd cluster {name}; etcd clusters are main and events")
    })
}

impl Place {
    /// Folder of the snapshots on this instance, as it was named.
    fn folder(&self) -> String {
        let default = || format!("/var/lib/kctl/etcd-snapshots/{}", self.etcd);
        self.folder.clone().unwrap_or_else(default)
    }

    /// The same as an absolute path: a relative one is below the current folder, as for every program.
    fn absolute_folder(&self) -> anyhow::Result<String> {
        let folder = self.folder();
        let absolute = std::path::absolute(&folder);
        let absolute = absolute.with_context(|| format!("--folder {folder} is no folder"))?;
        let absolute = absolute.into_os_string().into_string();
        absolute.map_err(|path| anyhow::anyhow!("--folder: {} is no text", path.display()))
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
