//! The backup store of an etcd cluster, as its settings or the command line name it.

use super::refuse;
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorContext, ErrorKind};
use crate::state::{StoreKeys, load_keyset, store_error, stored_error};
use aws_client::store::Store;
use etcd_rules::backup::{
    FoundSnapshot, OWNER_KEY, SnapshotManifest, StoreOwner, StoredSnapshot, Unread,
    check_snapshot_name,
};
use etcd_store::{OwnerError, describe_unread, list_snapshots, read_manifest, read_snapshots};
use node::backup::{
    BACKUP_SETTINGS_KEY, BACKUP_SETTINGS_LIMIT, BackupSettings, EtcdBackupSettings,
};
use node::pki::STATE_SIGNER;
use node::signed::{SIGNATURE_LIMIT, SignedPlace, signature_key, verify_text};

/// A backup store.
#[derive(Clone, Debug)]
pub struct BackupStore {
    pub store: Store,
    /// Settings of the cluster's backups; `None`: the store was named by its address.
    pub settings: Option<EtcdBackupSettings>,
}

impl BackupStore {
    /// The store at an address, or that of the cluster.
    pub async fn open(
        address: Option<&str>,
        etcd: &str,
        session: &Session<'_>,
    ) -> Result<Self, CommandError> {
        match address {
            Some(address) => Self::at(address, session),
            None => {
                let name = session.cluster_name(None).await?;
                Self::of_cluster(&name, etcd, session).await
            }
        }
    }

    /// The store at an address.
    pub fn at(address: &str, session: &Session<'_>) -> Result<Self, CommandError> {
        Ok(Self {
            store: session.store.open_other(address).map_err(store_error)?,
            settings: None,
        })
    }

    /// The store in the settings of the cluster, which `kctl update` wrote.
    pub async fn of_cluster(
        name: &str,
        etcd: &str,
        session: &Session<'_>,
    ) -> Result<Self, CommandError> {
        let keys = StoreKeys::new(name);
        let key = keys.key_below(BACKUP_SETTINGS_KEY);
        let read = session.store.get_first(&key, BACKUP_SETTINGS_LIMIT).await;
        let Some(bytes) = read.map_err(store_error)? else {
            session.check_cluster_exists(name).await?;
            return Err(CommandError::from_message(
                ErrorKind::Precondition,
                format!("{name} has no settings for backups yet"),
                format!("write them: `kctl update {name} --yes`"),
            ));
        };
        check_signature(&keys, &bytes, session).await?;
        let settings = BackupSettings::parse(&key, &bytes).or_failed(
            "the settings of the backups cannot be used",
            format!("write them again: `kctl update {name} --yes`"),
        )?;
        let settings = settings.etcd.get(etcd).cloned();
        let settings = settings.ok_or_else(|| {
            CommandError::usage_error(
                format!("{name} has no etcd cluster {etcd}"),
                "etcd clusters are main and events",
            )
        })?;
        Ok(Self {
            store: session
                .store
                .open_other(&settings.store)
                .map_err(store_error)?,
            settings: Some(settings),
        })
    }

    /// The store of the cluster, to write to or delete from: it must not be another one's.
    pub async fn to_change(
        name: &str,
        etcd: &str,
        session: &Session<'_>,
    ) -> Result<Self, CommandError> {
        let backups = Self::of_cluster(name, etcd, session).await?;
        let checked = backups.check_owner(name, etcd, session).await?;
        checked.map_err(refuse)?;
        Ok(backups)
    }

    /// Whether the store is that of this etcd cluster: false if it is nobody's, the error if it is another one's, or that of a copy of the
    /// cluster's state.
    pub async fn check_owner(
        &self,
        name: &str,
        etcd: &str,
        session: &Session<'_>,
    ) -> Result<Result<bool, String>, CommandError> {
        let own = StoreOwner::new(name, etcd, &format!("{}/{name}", session.url), None);
        match etcd_store::check_owner(&self.store, &own).await {
            Ok(owner) => Ok(Ok(owner.is_some())),
            Err(OwnerError::Other(why)) => Ok(Err(why)),
            Err(OwnerError::Unread(error)) => Err(failed_store(error)),
            Err(OwnerError::Damaged(error)) => Err(error).or_failed(
                "it is not known whose the backup store is, and nothing is written or deleted there",
                format!("see what it is; if the store is this cluster's, delete {}/{OWNER_KEY} with the AWS CLI: the next snapshot writes it", self.store.url()),
            ),
        }
    }

    /// All snapshots without their manifests, sorted by name.
    pub async fn list(&self) -> Result<Vec<StoredSnapshot>, CommandError> {
        list_snapshots(&self.store).await.map_err(failed_store)
    }

    /// All snapshots with their manifests, the newest first.
    pub async fn read_all(&self) -> Result<Vec<FoundSnapshot>, CommandError> {
        read_snapshots(&self.store).await.map_err(failed_store)
    }

    /// The manifest of a snapshot that can be restored or downloaded.
    pub async fn require_manifest(&self, name: &str) -> Result<SnapshotManifest, CommandError> {
        check_snapshot_name(name).map_err(refuse)?;
        let found = read_manifest(&self.store, name).await.map_err(|error| {
            let problem = describe_unread(&error);
            let hint = match problem {
                Unread::Unusable(_) if self.settings.is_some() => format!(
                    "use another snapshot; `kctl etcd snapshot delete {name}` deletes this one"
                ),
                Unread::Unusable(_) => "use another snapshot".to_owned(),
                Unread::Unreachable(_) => "see who may read it, and try again".to_owned(),
            };
            refuse(problem.text()).with_hint(hint)
        })?;
        found.ok_or_else(|| {
            refuse(format!(
                "{} has no snapshot {name} with a manifest",
                self.store.url()
            ))
            .with_hint("one of etcd-manager: download it with the AWS CLI, then `kctl etcd snapshot import`")
        })
    }
}

/// The error of a call to a backup store.
pub fn failed_store(error: anyhow::Error) -> CommandError {
    stored_error(error, "see what lies in the backup store, and try again")
}

/// Fails unless kctl has signed the settings of backups: whoever may only write that object must not choose what is restored, or where
/// snapshots go.
async fn check_signature(
    keys: &StoreKeys,
    bytes: &[u8],
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let (key, cluster) = (BACKUP_SETTINGS_KEY, keys.cluster());
    let text = String::from_utf8_lossy(bytes);
    let signer = load_keyset(&session.store, keys, STATE_SIGNER).await?;
    let at = keys.key_below(&signature_key(key, &text));
    let read = session.store.get_first(&at, SIGNATURE_LIMIT).await;
    let signature = read.map_err(store_error)?.unwrap_or_default();
    let signature = String::from_utf8_lossy(&signature);
    let verified = verify_text(&signer, SignedPlace { cluster, key }, &text, &signature);
    verified.map(drop).map_err(|error| {
        CommandError::from_message(
            ErrorKind::Precondition,
            format!("{error}, so it is not used"),
            format!(
                "find out who wrote it, and write it again: `kctl update {cluster} --refresh --yes`"
            ),
        )
    })
}
