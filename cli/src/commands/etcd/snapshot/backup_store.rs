//! The backup store of an etcd cluster, and what is in it.

use super::refuse;
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorContext, ErrorKind};
use crate::state::{StoreKeys, load_keyset, store_error};
use aws_client::store::Store;
use engine::error_chain;
use etcd_rules::backup::{
    MANIFEST_LIMIT, OWNER_KEY, OWNER_LIMIT, SnapshotManifest, StoreOwner, StoredSnapshot,
    group_snapshots, is_scheduled, manifest_key,
};
use futures::{StreamExt, stream};
use node::backup::{
    BACKUP_SETTINGS_KEY, BACKUP_SETTINGS_LIMIT, BackupSettings, EtcdBackupSettings,
};
use node::pki::STATE_SIGNER;
use node::signed::{SIGNATURE_LIMIT, SignedPlace, signature_key, verify_text};
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Manifests that are read at the same time.
const PARALLEL: usize = 10;

/// What kind of snapshot it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotKind {
    /// protokube took it on schedule. It is deleted by itself.
    Scheduled,
    /// Somebody asked for it. It is kept until somebody deletes it.
    Asked,
    /// etcd-manager took it. It has no manifest.
    EtcdManager,
    /// It has neither manifest nor etcd-manager's description.
    Unfinished,
    /// What lies in the place of its manifest is none that can be used.
    Unusable,
}

/// A snapshot in the store.
#[derive(Clone, Debug)]
pub struct FoundSnapshot {
    pub stored: StoredSnapshot,
    pub kind: SnapshotKind,
    pub manifest: Option<SnapshotManifest>,
    /// Why its manifest cannot be used.
    pub problem: Option<Unread>,
}

/// Why nobody knows what a manifest says.
#[derive(Clone, Debug)]
pub enum Unread {
    /// It is damaged, or of something else.
    Unusable(String),
    /// It could not be read now. What it says may be good.
    Unreachable(String),
}

impl Unread {
    /// The reason.
    pub fn text(&self) -> &str {
        match self {
            Self::Unusable(why) | Self::Unreachable(why) => why,
        }
    }
}

/// A backup store.
#[derive(Clone, Debug)]
pub struct BackupStore {
    pub store: Store,
    /// Settings of the cluster's backups; `None`: the store was named by its address.
    pub settings: Option<EtcdBackupSettings>,
}

impl SnapshotKind {
    fn of(stored: &StoredSnapshot) -> Self {
        match (stored.has_manifest, stored.has_meta) {
            (true, _) if is_scheduled(&stored.name) => Self::Scheduled,
            (true, _) => Self::Asked,
            (false, true) => Self::EtcdManager,
            (false, false) => Self::Unfinished,
        }
    }

    /// For tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Asked => "asked for",
            Self::EtcdManager => "of etcd-manager",
            Self::Unfinished => "unfinished",
            Self::Unusable => "unusable",
        }
    }
}

impl FoundSnapshot {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.stored.name
    }

    /// True if it is complete, and a scratch etcd has read it.
    pub fn is_verified(&self) -> bool {
        let manifest = self.manifest.as_ref();
        self.stored.has_data && manifest.is_some_and(|manifest| manifest.verified.is_some())
    }

    /// True if somebody brought it from a file: it may be older than all others, whatever its times say.
    pub fn is_imported(&self) -> bool {
        let manifest = self.manifest.as_ref();
        manifest.is_some_and(SnapshotManifest::is_imported)
    }

    /// True if it is verified, as far as is known.
    pub fn may_be_verified(&self) -> bool {
        let is_unread = matches!(self.problem, Some(Unread::Unreachable(_)));
        self.is_verified() || self.stored.has_data && is_unread
    }

    /// When it was taken, Unix seconds, by the store's clock: before it was written, if its manifest says so.
    pub fn taken(&self) -> Option<i64> {
        let said = self.manifest.as_ref().and_then(|manifest| {
            let at = OffsetDateTime::parse(&manifest.taken_at, &Rfc3339).ok()?;
            Some(at.unix_timestamp())
        });
        self.stored
            .taken_at(said)
            .min(self.stored.taken())
            .or(self.stored.written)
    }

    /// How long ago it was taken, by the store's clock.
    pub fn age(&self) -> Option<Duration> {
        let before = self.stored.written?.saturating_sub(self.taken()?);
        let before = u64::try_from(before).unwrap_or_default();
        Some(self.stored.age?.saturating_add(Duration::from_secs(before)))
    }

    /// Revision of its data, if known.
    pub fn revision(&self) -> Option<u64> {
        let verified = self.manifest.as_ref()?.verified.as_ref()?;
        Some(verified.revision)
    }
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
        let read = self.store.get_first(OWNER_KEY, OWNER_LIMIT).await;
        let Some(bytes) = read.map_err(store_error)? else {
            return Ok(Ok(false));
        };
        let owner = StoreOwner::parse(&format!("{}/{OWNER_KEY}", self.store.url()), &bytes);
        let owner = owner.or_failed(
            "it is not known whose the backup store is, and nothing is written or deleted there",
            format!("see what it is; if the store is this cluster's, delete {}/{OWNER_KEY} with the AWS CLI: the next snapshot writes it", self.store.url()),
        )?;
        let own = StoreOwner::new(name, etcd, &format!("{}/{name}", session.url), None);
        Ok(owner.check(self.store.url(), &own).map(|()| true))
    }

    /// All snapshots without their manifests, sorted by name.
    pub async fn list(&self) -> Result<Vec<StoredSnapshot>, CommandError> {
        let listed = self.store.list("", None).await.map_err(store_error)?;
        let objects = listed
            .iter()
            .map(|entry| (entry.key.as_str(), entry.size, entry.written, entry.age));
        Ok(group_snapshots(objects))
    }

    /// All snapshots with their manifests, the newest first.
    pub async fn read_all(&self) -> Result<Vec<FoundSnapshot>, CommandError> {
        let reads = self.list().await?.into_iter().map(|stored| async move {
            let read = match stored.has_manifest {
                true => self.read_manifest(&stored.name).await,
                false => Ok(None),
            };
            match read {
                Ok(manifest) => FoundSnapshot {
                    kind: SnapshotKind::of(&stored),
                    manifest,
                    problem: None,
                    stored,
                },
                // One bad object is one row.
                Err(problem) => FoundSnapshot {
                    kind: SnapshotKind::Unusable,
                    manifest: None,
                    problem: Some(problem),
                    stored,
                },
            }
        });
        let mut all: Vec<FoundSnapshot> = stream::iter(reads).buffered(PARALLEL).collect().await;
        all.sort_by(|a, b| {
            let key =
                |one: &FoundSnapshot| (one.taken(), one.stored.written, one.stored.name.clone());
            key(b).cmp(&key(a))
        });
        Ok(all)
    }

    /// The newest snapshot that a scratch etcd has read; one that was imported only if there is no other. If newer ones cannot be used, `warn`
    /// is told of them.
    pub async fn newest_verified(
        &self,
        warn: impl Fn(&str),
    ) -> Result<Option<FoundSnapshot>, CommandError> {
        let mut imported = None;
        for one in self.read_all().await? {
            if one.is_verified() && one.is_imported() {
                imported.get_or_insert(one);
            } else if one.is_verified() {
                return Ok(Some(one));
            } else if let Some(problem) = &one.problem {
                warn(&format!(
                    "{} is passed over: {}",
                    one.name(),
                    problem.text()
                ));
            }
        }
        Ok(imported)
    }

    async fn read_manifest(&self, name: &str) -> Result<Option<SnapshotManifest>, Unread> {
        let key = manifest_key(name);
        let address = format!("{}/{key}", self.store.url());
        let read = self.store.get_first(&key, MANIFEST_LIMIT).await;
        let read = read.map_err(|error| Unread::Unreachable(error_chain(&error)))?;
        read.map(|bytes| SnapshotManifest::parse_of(name, &address, &bytes))
            .transpose()
            .map_err(|error| Unread::Unusable(error.to_string()))
    }

    /// The manifest of a snapshot that can be restored or downloaded.
    pub async fn require_manifest(&self, name: &str) -> Result<SnapshotManifest, CommandError> {
        etcd_rules::backup::check_snapshot_name(name).map_err(refuse)?;
        let found = self.read_manifest(name).await.map_err(|problem| {
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
