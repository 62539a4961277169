//! Role changes: follows etcd's watch, and stores what it says in parts after the newest snapshot, on the instance whose member leads. If two
//! instances believe that, the store decides whose part counts. It needs neither the Kubernetes API nor EC2.

use super::following::{Following, PART_BYTES, SESSION_LIFE, divide_interval};
use super::watch::{ChangesSource, ChangesWatch, Compacted, Watched};
use crate::backup::read_settings;
use crate::run_blocking;
use anyhow::{Context, bail};
use aws_client::store::Store;
use etcd_rules::backup::{
    BackupState, ChainEnd, ChainStep, ChangesBatch, ChangesError, ChangesState, CollectedChanges,
    ManifestError, StoreOwner, check_snapshot_name, choose_chains, next_chain_step,
};
use etcd_store::{
    BackupStateObject, PreparedPart, claim_store, find_chain_end, read_manifest, require_manifest,
    store_part,
};
use protokube_role::lock::lock_ignoring_poison;
use protokube_role::log::RoleLog;
use protokube_role::pace::{Sleep, sleep_for};
use protokube_role::signed_objects::SignedObjects;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// What fails for so long is reported, if the state of the backups does not say it. All of it is tried again.
const PATIENCE: Duration = Duration::from_mins(30);

/// Leases that etcd is asked about for a part. How long others were granted for, a restore does not know.
const ASKED_LEASES: usize = 64;

/// Inputs of the role.
#[derive(Debug)]
pub struct ChangesRole<S> {
    /// Name of the Kubernetes cluster.
    pub cluster: String,
    /// Id of its certificate authority.
    pub incarnation: String,
    /// Name of the etcd cluster: `main`.
    pub etcd: String,
    pub instance: String,
    /// The local member.
    pub source: S,
    /// State store at the cluster's base.
    pub store: Store,
    /// Its signed objects.
    pub signed: SignedObjects,
    pub role_log: RoleLog,
    pub clock: fn() -> OffsetDateTime,
    pub pace: ChangesPace,
    /// What must not be lost if the role is restarted.
    pub memory: ChangesMemory,
}

/// Intervals of the role.
#[derive(Clone, Copy, Debug)]
pub struct ChangesPace {
    /// Time between two looks at the leadership, the settings and the snapshots while changes are stored, and between two reports of that in
    /// the state of the backups.
    pub look: Duration,
    /// Time between two looks of an instance that stores none.
    pub rest: Duration,
    pub sleep: Sleep,
}

impl Default for ChangesPace {
    fn default() -> Self {
        Self {
            look: Duration::from_mins(1),
            rest: Duration::from_secs(10),
            sleep: sleep_for,
        }
    }
}

/// Name of the snapshot before the newest one whose chain cannot go on.
#[derive(Debug, Default)]
pub struct ChangesMemory(Mutex<Option<String>>);

/// What the role did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It followed a chain for a while.
    Followed,
    /// There was nothing to do; the next look is after this time.
    Rest(Duration),
}

/// Another instance has stored the next part.
#[derive(Debug, thiserror::Error)]
#[error("another instance was first to store the next part of the changes")]
struct Overtaken;

/// Changes cannot be stored, and the state of the backups says why: `kctl validate` shows it there once it matters.
#[derive(Debug, thiserror::Error)]
#[error("changes of etcd cannot be stored")]
struct FailureIsStored;

/// What a look shows to an instance that stores changes.
#[derive(Debug)]
pub(super) struct View {
    pub(super) backups: Store,
    pub(super) interval: Duration,
    /// etcd's id of the cluster, hex.
    pub(super) cluster_id: String,
    /// Name of the newest snapshot.
    pub(super) newest: String,
    /// Name of the one whose changes were stored last, if it is another one.
    before: Option<String>,
    /// Name of the one whose changes are stored, as the state of the backups says.
    told: Option<String>,
}

/// True if the chain itself cannot go on: to try it again finds the same.
fn is_of_chain(error: &anyhow::Error) -> bool {
    error.is::<Compacted>() || error.is::<ChangesError>()
}

impl<S: ChangesSource> ChangesRole<S> {
    /// Stores changes for ever.
    pub async fn keep_changes(&self) -> anyhow::Result<()> {
        const ABOUT: &str = "changes";
        let mut kept = None;
        loop {
            let pause = match self.take_turn(&mut kept).await {
                Ok(Turn::Followed) => {
                    self.role_log.report_resolved(ABOUT);
                    continue;
                }
                Ok(Turn::Rest(pause)) => {
                    self.role_log.clear_error(ABOUT);
                    pause
                }
                Err(error) => {
                    let is_stored = error.is::<FailureIsStored>();
                    let patience = if is_stored { Duration::MAX } else { PATIENCE };
                    self.role_log.report_attempt(ABOUT, &error, patience);
                    self.pace.rest
                }
            };
            (self.pace.sleep)(pause).await;
        }
    }

    /// Looks, unless that was done just now, and follows a chain for as long as a part takes, or until it is full. `kept` is what is followed,
    /// from one turn to the next; without it, the role begins again with what is stored.
    pub async fn take_turn(&self, kept: &mut Option<Following<S::Watch>>) -> anyhow::Result<Turn> {
        let before = kept.take();
        let looked = before.as_ref().map(|following| following.looked);
        let view = match looked.is_some_and(|looked| looked.elapsed() < self.pace.look) {
            true => None,
            false => match self.look().await? {
                Ok(view) => Some(view),
                Err(pause) => return Ok(Turn::Rest(pause)),
            },
        };
        match self.follow(view, before).await {
            Ok(following) => {
                *kept = following;
                Ok(Turn::Followed)
            }
            Err(error) if error.is::<Overtaken>() => {
                self.role_log.report_change(&format!("{error:#}"));
                Ok(Turn::Rest(self.pace.rest))
            }
            Err(error) => Err(self.record_failure(error).await),
        }
    }

    /// Looks whether this instance has changes to store. The inner error is how long it may rest.
    async fn look(&self) -> anyhow::Result<Result<View, Duration>> {
        // Why etcd does not answer is reported by other roles.
        let Ok(own) = self.source.describe().await else {
            return Ok(Err(self.pace.rest));
        };
        if own.leader.as_ref() != Some(&own.id) {
            return Ok(Err(self.pace.rest));
        }
        let Some(settings) = read_settings(&self.signed, &self.etcd).await? else {
            return Ok(Err(self.pace.look));
        };
        let Some(interval) = settings.changes_interval() else {
            return Ok(Err(self.pace.look));
        };
        let opened = self.store.open_other(&settings.store);
        let backups = opened.with_context(|| format!("{} is no backup store", settings.store))?;
        let state = self.state().read().await?.state;
        // The first snapshot of an etcd cluster is taken at once.
        let Some(chains) = choose_chains(&state, backups.url(), &own.cluster_id) else {
            return Ok(Err(self.pace.look));
        };
        claim_store(&backups, &self.owner()).await?;
        Ok(Ok(View {
            interval,
            cluster_id: own.cluster_id,
            newest: chains.newest.name.clone(),
            before: chains.before.map(str::to_owned),
            told: state.changes.as_ref().map(|told| told.snapshot.clone()),
            backups,
        }))
    }

    /// Follows a chain. Returns what is followed on in the next turn.
    async fn follow(
        &self,
        view: Option<View>,
        kept: Option<Following<S::Watch>>,
    ) -> anyhow::Result<Option<Following<S::Watch>>> {
        let mut following = match (view, kept) {
            (Some(view), Some(mut kept)) if kept.fits(&view) => {
                kept.looked = Instant::now();
                kept
            }
            (Some(view), _) => self.begin(&view).await?,
            (None, Some(kept)) => kept,
            (None, None) => return Ok(None),
        };
        if let Err(error) = self.follow_once(&mut following).await {
            if following.is_before && is_of_chain(&error) {
                self.give_up(&following.end.snapshot);
            }
            return Err(error);
        }
        let is_young = following.begun.elapsed() < SESSION_LIFE;
        Ok(is_young.then_some(following))
    }

    async fn follow_once(&self, following: &mut Following<S::Watch>) -> anyhow::Result<()> {
        self.receive(following).await?;
        self.close_due(following).await?;
        self.tell(following).await
    }

    /// Begins with what is stored.
    async fn begin(&self, view: &View) -> anyhow::Result<Following<S::Watch>> {
        let newest = self.find_newest(view).await?;
        let before = self.find_before(view).await?;
        let (end, is_before) = match (next_chain_step(&newest, before.as_ref()), before) {
            (ChainStep::FollowBefore, Some(before)) => (before, true),
            (ChainStep::CarryOver, Some(before)) => {
                let carried = self.carry_over(&view.backups, newest, &before).await;
                let carried = carried.inspect_err(|error| {
                    if is_of_chain(error) {
                        self.give_up(&before.snapshot);
                    }
                });
                (carried?, false)
            }
            _ => (newest, false),
        };
        let revision = self.source.current_revision().await?;
        if revision < end.revision {
            bail!(
                "etcd is at revision {revision}, but changes up to {} are stored after {}: it has other data",
                end.revision,
                end.snapshot
            );
        }
        // The chain of a newer snapshot finds the one before by this, so it is written before the first part is stored.
        if view.told.as_ref() != Some(&end.snapshot) {
            self.write_state(&end, (self.clock)()).await?;
        }
        let watch = self.source.watch_behind(end.revision).await;
        let watch = watch.inspect_err(|error| {
            if is_before && is_of_chain(error) {
                self.give_up(&end.snapshot);
            }
        })?;
        self.role_log.report_change(&format!(
            "stores the changes after {}, behind revision {}",
            end.snapshot, end.revision
        ));
        let batch = ChangesBatch::new(end.revision, PART_BYTES);
        let mut following = Following::new((&view.backups, view.interval), end, (watch, batch));
        following.is_before = is_before;
        Ok(following)
    }

    /// How far the chain of the newest snapshot is stored.
    async fn find_newest(&self, view: &View) -> anyhow::Result<ChainEnd> {
        let manifest = require_manifest(&view.backups, &view.newest).await?;
        let begin = ChainEnd::of_manifest(&manifest);
        let begin = begin.filter(|begin| begin.cluster_id == view.cluster_id);
        let begin = begin.with_context(|| {
            format!(
                "the manifest of {} is not that of a verified snapshot of etcd cluster {}",
                view.newest, view.cluster_id
            )
        })?;
        find_chain_end(&view.backups, &begin).await
    }

    /// The same for the snapshot whose changes were stored before; `None`: there is none, or its chain cannot go on.
    async fn find_before(&self, view: &View) -> anyhow::Result<Option<ChainEnd>> {
        let name = view.before.as_ref();
        let name = name.filter(|name| check_snapshot_name(name).is_ok());
        let Some(name) = name.filter(|name| !self.has_given_up(name)) else {
            return Ok(None);
        };
        let manifest = match read_manifest(&view.backups, name).await {
            Err(error) if error.is::<ManifestError>() => return Ok(None),
            read => read?,
        };
        let begin = manifest.as_ref().and_then(ChainEnd::of_manifest);
        let Some(begin) = begin.filter(|begin| begin.cluster_id == view.cluster_id) else {
            return Ok(None);
        };
        match find_chain_end(&view.backups, &begin).await {
            Err(error) if error.is::<ChangesError>() => Ok(None),
            found => found.map(Some),
        }
    }

    /// Takes in what etcd sends for a while. If the store is slow, etcd waits, and sends from its database later what it could not.
    async fn receive(&self, following: &mut Following<S::Watch>) -> anyhow::Result<()> {
        let (tick, _) = divide_interval(following.interval);
        let until = Instant::now() + tick;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let watched = tokio::select! {
                biased;
                watched = following.watch.next() => watched?,
                () = (self.pace.sleep)(left) => return Ok(()),
            };
            self.take_in(following, watched).await?;
        }
    }

    async fn take_in(
        &self,
        following: &mut Following<S::Watch>,
        watched: Watched,
    ) -> anyhow::Result<()> {
        let complete = match watched {
            Watched::Progress(revision) => Some(revision),
            Watched::Events { events, is_whole } => {
                let last = events.last().map(|event| event.revision);
                for event in events {
                    if let Some(full) = following.batch.add(event)? {
                        self.store_changes(following, full).await?;
                    }
                }
                last.filter(|_| is_whole)
            }
        };
        let noted = complete.map(|revision| following.batch.note_progress(revision));
        match noted.transpose()?.flatten() {
            Some(full) => self.store_changes(following, full).await,
            None => Ok(()),
        }
    }

    /// Closes a part if it is time. If nothing has changed, one without changes shows from time to time that everything is stored.
    async fn close_due(&self, following: &mut Following<S::Watch>) -> anyhow::Result<()> {
        if !following.is_close_due() {
            return Ok(());
        }
        let closed = following.batch.close();
        if closed.until > closed.after {
            return self.store_changes(following, closed).await;
        }
        let current = self.source.current_revision().await?;
        if following.is_sign_due(closed.until, current)? {
            return self.store_changes(following, closed).await;
        }
        Ok(())
    }

    async fn store_changes(
        &self,
        following: &mut Following<S::Watch>,
        changes: CollectedChanges,
    ) -> anyhow::Result<()> {
        self.learn_leases(&mut following.leases, &changes).await;
        let (backups, leases) = (&following.backups, &following.leases);
        let stored = self.store_part(backups, &following.end, (changes, leases));
        let end = stored.await?;
        following.note_stored(end, (self.clock)());
        Ok(())
    }

    /// Asks for how long the leases of changed keys were granted. A restore can do without.
    async fn learn_leases(&self, known: &mut BTreeMap<u64, u64>, changes: &CollectedChanges) {
        let leases = changes.events.iter().filter_map(|event| event.lease);
        let unknown: BTreeSet<u64> = leases.filter(|id| !known.contains_key(id)).collect();
        for id in unknown.into_iter().take(ASKED_LEASES) {
            match self.source.lease_seconds(id).await {
                Ok(Some(seconds)) => {
                    known.insert(id, seconds);
                }
                Ok(None) => {}
                Err(_) => return,
            }
        }
    }

    /// Stores the next part of a chain. Returns how far the chain is stored then. The error is [`Overtaken`] if another instance was first.
    /// `leases`: for how long they were granted, seconds.
    pub(super) async fn store_part(
        &self,
        backups: &Store,
        end: &ChainEnd,
        (changes, leases): (CollectedChanges, &BTreeMap<u64, u64>),
    ) -> anyhow::Result<ChainEnd> {
        let at = (self.clock)().format(&Rfc3339).unwrap_or_default();
        let part = end.next_part(&self.instance, &at, changes);
        let (part, end) = (part.with_leases(leases), end.clone());
        let prepared = run_blocking(move || PreparedPart::new(&end, &part)).await?;
        let stored = store_part(backups, prepared).await?;
        stored.ok_or_else(|| Overtaken.into())
    }

    /// Writes into the state of the backups how far changes are stored, not more often than it is looked at.
    async fn tell(&self, following: &mut Following<S::Watch>) -> anyhow::Result<()> {
        let told = following.told;
        let is_due = told.is_none_or(|told| told.elapsed() >= self.pace.look);
        let Some(stored_at) = following.untold.filter(|_| is_due) else {
            return Ok(());
        };
        self.write_state(&following.end, stored_at).await?;
        (following.untold, following.told) = (None, Some(Instant::now()));
        Ok(())
    }

    async fn write_state(&self, end: &ChainEnd, at: OffsetDateTime) -> anyhow::Result<()> {
        let state = ChangesState::new(end, &self.instance, at);
        let change = |before: &BackupState| before.with_stored_changes(&state);
        self.state().change(change).await
    }

    /// Writes into the state of the backups why nothing can be stored. Returns the error, which says whether that was written.
    async fn record_failure(&self, error: anyhow::Error) -> anyhow::Error {
        let (reason, now) = (format!("{error:#}"), (self.clock)());
        let change =
            |before: &BackupState| before.with_failed_changes(&self.instance, &reason, now);
        match self.state().change(change).await {
            Ok(()) => error.context(FailureIsStored),
            Err(_) => error,
        }
    }

    fn state(&self) -> BackupStateObject {
        BackupStateObject::new(&self.store, &self.etcd)
    }

    /// The etcd cluster as the owner of a backup store.
    fn owner(&self) -> StoreOwner {
        let (base, incarnation) = (self.store.url(), Some(&*self.incarnation));
        StoreOwner::new(&self.cluster, &self.etcd, base, incarnation)
    }

    /// The chain of this snapshot does not go on, so that of a newer one begins, with what is lost in between.
    fn give_up(&self, snapshot: &str) {
        *lock_ignoring_poison(&self.memory.0) = Some(snapshot.to_owned());
    }

    fn has_given_up(&self, snapshot: &str) -> bool {
        lock_ignoring_poison(&self.memory.0).as_deref() == Some(snapshot)
    }
}
