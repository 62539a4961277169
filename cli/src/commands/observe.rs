//! Prepares an update: reads and checks the stored spec, collects facts from AWS, and expands the spec.

use super::assemble::{
    self, AssembledCluster, SpecInputs, StoredSecrets, assemble_cluster, required_keysets,
    stand_in_keyset,
};
use super::existing_cluster::read_completed_spec;
use super::own_addons::read_own_addons;
use super::session::Session;
use super::spec_objects::SpecObjects;
use super::store_place::{check_client_names, place_in_store};
use super::{ownership, secret, version_skew};
use crate::agents::AgentBinaries;
use crate::bundle::read_stored_bundle;
use crate::downloads;
use crate::env;
use crate::error::{CommandError, ErrorContext, ErrorKind};
use crate::plan_target::ClusterTarget;
use crate::state::{
    ClusterState, LastOperation, ObjectDigests, PublicKeys, StoreKeys, aws_hint, mint_and_store,
    store_error,
};
use aws_cloud::{CloudClients, collect_facts};
use cloud::facts::{Facts, FactsWanted, InstanceType, kept_zone};
use engine::Failure;
use full::DnsKind;
use full::addons::OwnAddon;
use node::pki::{KUBERNETES_CA, Keyset};
use spec::api::assets::AssetsSpec;
use spec::catalog::Catalog;
use spec::expand::{Expanded, dns_kind, wanted_facts};
use spec::not_yet::{NotYet, not_yet};
use spec::read::ReadOptions;
use spec::upgrade::OpenUpgrade;
use std::collections::BTreeMap;

/// A cluster's state in the store, with its spec expanded by facts from AWS.
#[derive(Clone, Debug)]
pub struct ObservedCluster {
    pub state: ClusterState,
    /// The last operation that changed it in AWS.
    pub last_operation: Option<LastOperation>,
    /// AWS clients for the cluster's region.
    pub clients: CloudClients,
    pub target: ClusterTarget,
    /// `aws`, `aws-cn`, `aws-us-gov`.
    pub partition: String,
    /// Public halves of its keysets.
    pub public: PublicKeys,
    /// What the objects hold that `update` wrote.
    pub digests: ObjectDigests,
    pub expanded: Expanded,
    /// What EC2 says of the instance types of its groups.
    pub machine_types: BTreeMap<String, InstanceType>,
    /// The addons of the user.
    pub own_addons: Vec<OwnAddon>,
    /// What the store has of the secrets that users create.
    pub secrets: StoredSecrets,
    /// The nodeup and protokube binaries.
    pub binaries: AgentBinaries,
    /// Features that the spec asks for and kctl does not implement yet.
    pub not_yet: Vec<NotYet>,
    /// The spec expanded with the Kubernetes version of the running control plane, for workers that must not get a newer one.
    pub held_back: Option<Expanded>,
    /// If `expanded` has files and images from where they are published: what expands to the others.
    as_stored: Option<Box<ExpandInputs>>,
}

/// Options of the observation. Default: as `kctl update` without options.
#[derive(Clone, Copy, Debug, Default)]
pub struct ObserveOptions {
    /// Whether unsupported fields of the spec are accepted.
    pub read: ReadOptions,
    /// Give workers the spec's version, whatever the control plane runs.
    pub ignore_skew: bool,
    /// Take files and images from where they are published, whatever `spec.assets` says: for what is copied from there.
    pub published: bool,
    /// Ask which zones offer the instance types, and refuse a group with a zone that does not offer its own. An update does not ask:
    /// an Auto Scaling group goes on in its other zones.
    pub offerings: bool,
}

/// What the spec was expanded from.
#[derive(Clone, Debug)]
struct ExpandInputs {
    /// The objects as they are stored.
    objects: SpecObjects,
    facts: Facts,
}

/// Names the hosted zone that the cluster has had since its last update, unless the spec asks for another.
async fn keep_hosted_zone(
    objects: &mut SpecObjects,
    state: &ClusterState,
    facts: &Facts,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let private = match dns_kind(&objects.cluster.spec) {
        DnsKind::None => return Ok(()),
        DnsKind::Private => true,
        DnsKind::Public => false,
    };
    let completed = read_completed_spec(state, session).await?;
    let Some(until_now) = completed.and_then(|cluster| cluster.spec.dns_zone) else {
        return Ok(());
    };
    let named = objects.cluster.spec.dns_zone.as_deref();
    let name = objects.cluster.name();
    if let Some(zone) = kept_zone(&facts.hosted_zones, named, &until_now, name, private) {
        objects.cluster.spec.dns_zone = Some(zone.id.clone());
    }
    Ok(())
}

/// Observes a cluster. Changes nothing.
pub async fn observe_cluster(
    name: &str,
    options: ObserveOptions,
    session: &Session<'_>,
) -> Result<ObservedCluster, CommandError> {
    // On the heap: the copies of the spec that it holds are too much for the stacks of all its callers.
    Box::pin(read_and_expand(name, options, session)).await
}

/// Observes a cluster with files and images from where they are published: for what is copied from there. Changes nothing.
pub async fn observe_published(
    name: &str,
    session: &Session<'_>,
) -> Result<ObservedCluster, CommandError> {
    let options = ObserveOptions {
        read: ReadOptions::AS_STORED,
        published: true,
        ..ObserveOptions::default()
    };
    observe_cluster(name, options, session).await
}

async fn read_and_expand(
    name: &str,
    options: ObserveOptions,
    session: &Session<'_>,
) -> Result<ObservedCluster, CommandError> {
    let state = ClusterState::read(&session.store, name, options.read).await?;
    ownership::check_not_of_kops(&state)?;
    let mut objects = SpecObjects::from_state(&state);
    place_in_store(&mut objects, &session.url)?;
    objects.check(session.shell)?;
    let assets = objects.cluster.spec.assets.clone();
    if options.published {
        take_as_published(&mut objects);
    }
    check_client_names(&objects, session).await?;
    secret::check_required_secrets(&state)?;
    let wanted = facts_to_ask_for(&objects, options);
    let clients = session.cloud_clients(wanted.region.as_deref());
    let (mut facts, public, last_operation, digests, catalog) = tokio::try_join!(
        account_facts(&clients, &wanted),
        PublicKeys::read(&session.store, &state.keys, &state.entries),
        LastOperation::read(&session.store, &state.keys, &state.entries),
        ObjectDigests::read(&session.store, &state.keys, &state.entries),
        read_catalog(&objects, session),
    )?;
    session.store.set_caller(&facts.account);
    ownership::check_same_account(name, &facts.account, last_operation.as_ref())?;
    keep_hosted_zone(&mut objects, &state, &facts, session).await?;
    let stored = options.published.then(|| with_assets(&objects, assets));
    let expanded =
        expand_with_hashes(&objects, &mut facts, &catalog, &public.ssh_keys, session).await?;
    show_warnings(&expanded, session);
    let own_addons = read_own_addons(&state, &expanded.full.kubernetes_version, session).await?;
    let secrets = secret::read_stored_secrets(&state, session).await?;
    public.check_none_lost(&required_keysets(&expanded), &state.keys)?;
    let not_yet = not_yet(&objects.cluster.spec, &objects.groups);
    session.shell.not_yet(&not_yet);
    let binaries = AgentBinaries::find_all(&expanded.full)?;
    let target = ClusterTarget {
        cluster: name.to_owned(),
        account: facts.account.clone(),
        region: clients.region().to_owned(),
    };
    let mut observed = ObservedCluster {
        state,
        last_operation,
        clients,
        target,
        partition: facts.partition.clone(),
        public,
        digests,
        expanded,
        machine_types: facts.instance_types.clone(),
        own_addons,
        secrets,
        binaries,
        not_yet,
        held_back: None,
        as_stored: None,
    };
    if !options.ignore_skew
        && let Some(version) = held_back_version(&observed, session).await?
    {
        hold_back(&mut objects, version);
        let ssh_keys = &observed.public.ssh_keys;
        observed.held_back =
            Some(expand_with_hashes(&objects, &mut facts, &catalog, ssh_keys, session).await?);
    }
    observed.as_stored = stored.map(|objects| Box::new(ExpandInputs { objects, facts }));
    Ok(observed)
}

fn facts_to_ask_for(objects: &SpecObjects, options: ObserveOptions) -> FactsWanted {
    let mut wanted = wanted_facts(&objects.cluster, &objects.groups);
    if options.offerings {
        let zones = objects.cluster.spec.subnets.iter();
        wanted.offered_in = zones.map(|subnet| subnet.zone.clone()).collect();
    }
    wanted
}

/// Forgets copies and bundles of files and images.
fn take_as_published(objects: &mut SpecObjects) {
    if let Some(assets) = &mut objects.cluster.spec.assets {
        *assets = AssetsSpec {
            catalog: assets.catalog.take(),
            catalog_sha256: assets.catalog_sha256.take(),
            ..AssetsSpec::default()
        };
    }
}

/// The objects with these copies and bundles.
fn with_assets(objects: &SpecObjects, assets: Option<AssetsSpec>) -> SpecObjects {
    let mut objects = objects.clone();
    objects.cluster.spec.assets = assets;
    objects
}

/// The spec for workers that keep this version. They take no part in an emulation, and it may be older than the one before the upgrade.
fn hold_back(objects: &mut SpecObjects, version: String) {
    objects.cluster.spec.kubernetes_version = Some(version);
    objects.cluster.spec.kubernetes_upgrade = None;
}

/// Shows the warnings of an expansion, and which versions the cluster has while its upgrade can be taken back.
fn show_warnings(expanded: &Expanded, session: &Session<'_>) {
    for warning in &expanded.warnings {
        session.shell.print_problem(warning);
    }
    if let Some(upgrade) = OpenUpgrade::of_spec(&expanded.cluster) {
        session.shell.note(&upgrade.describe());
    }
}

/// The version that workers keep for now, if a control plane runs an older one than the spec's. Prints a note.
async fn held_back_version(
    observed: &ObservedCluster,
    session: &Session<'_>,
) -> Result<Option<String>, CommandError> {
    let versions = version_skew::control_plane_versions(observed, session).await?;
    if !versions.unknown.is_empty() {
        session.shell.warning(&format!(
            "which version of Kubernetes {} {} is not known: taken for the spec's, with which workers are launched",
            versions.unknown.join(", "),
            if versions.unknown.len() == 1 { "runs" } else { "run" },
        ));
    }
    let wanted = &observed.expanded.full.kubernetes_version;
    Ok(versions.older.map(|(version, instance)| {
        session.shell.note(&format!(
            "workers keep Kubernetes {version} until every control plane runs {wanted} ({instance} runs {version}): replace the \
             control planes, then update again; --ignore-kubelet-version-skew gives workers {wanted} now"
        ));
        version
    }))
}

/// Collects the wanted facts from AWS.
pub async fn account_facts(
    clients: &CloudClients,
    wanted: &FactsWanted,
) -> Result<Facts, CommandError> {
    let facts = collect_facts(clients, wanted).await.map_err(aws_error)?;
    Ok(Facts {
        state_owner: env::first_variable(&[env::STATE_OWNER]),
        ..facts
    })
}

/// Fails if the spec of a new cluster cannot be expanded. Called before the spec is stored.
pub async fn check_can_expand(
    objects: &SpecObjects,
    ssh_key: Option<&str>,
    clients: &CloudClients,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let wanted = wanted_facts(&objects.cluster, &objects.groups);
    let (mut facts, catalog) = tokio::try_join!(
        account_facts(clients, &wanted),
        read_catalog(objects, session)
    )?;
    let ssh_keys: Vec<String> = ssh_key.map(str::to_owned).into_iter().collect();
    expand_with_hashes(objects, &mut facts, &catalog, &ssh_keys, session).await?;
    Ok(())
}

/// Expands the spec. If the catalog lacks hashes of downloads, fetches the published ones and expands again.
async fn expand_with_hashes(
    objects: &SpecObjects,
    facts: &mut Facts,
    catalog: &Catalog,
    ssh_keys: &[String],
    session: &Session<'_>,
) -> Result<Expanded, CommandError> {
    let expand = |facts: &Facts| {
        assemble::expand_spec(SpecInputs {
            objects,
            facts,
            catalog,
            ssh_keys,
        })
    };
    let expanded = expand(facts)?;
    let unknown = expanded
        .full
        .assets
        .iter()
        .filter(|asset| asset.sha256.is_none());
    let unknown: Vec<String> = unknown
        .filter_map(|asset| asset.urls.first().cloned())
        .collect();
    if unknown.is_empty() {
        return Ok(expanded);
    }
    let published = downloads::published_hashes(&unknown, &session.clients).await?;
    facts.published_hashes.extend(published);
    expand(facts)
}

/// The catalog of this release, overlaid with the cluster's own, and the bundle that the cluster uses.
async fn read_catalog(
    objects: &SpecObjects,
    session: &Session<'_>,
) -> Result<Catalog, CommandError> {
    let catalog = read_own_catalog(objects, session).await?;
    let assets = objects.cluster.spec.assets.as_ref();
    let Some(sha256) = assets.and_then(|assets| assets.bundle.as_deref()) else {
        return Ok(catalog);
    };
    let keys = StoreKeys::new(objects.cluster.name());
    let bundle = read_stored_bundle(&session.store, &keys, &sha256.to_ascii_lowercase()).await?;
    Ok(catalog.with_bundle(bundle))
}

async fn read_own_catalog(
    objects: &SpecObjects,
    session: &Session<'_>,
) -> Result<Catalog, CommandError> {
    const BROKEN: &str = "the catalog of downloads cannot be used";
    let catalog = Catalog::embedded().or_failed(BROKEN, "report this: it is a defect of kctl")?;
    let assets = objects.cluster.spec.assets.clone().unwrap_or_default();
    let Some(own) = assets.catalog else {
        return Ok(catalog);
    };
    let text = if own.starts_with("https://") {
        downloads::fetch_verified(&own, &assets.catalog_sha256.unwrap_or_default()).await?
    } else {
        let object = session
            .store
            .get(&own)
            .await
            .map_err(store_error)?
            .ok_or_else(|| {
                CommandError::usage_error(
                    format!("spec.assets.catalog: {own} is not in the state store"),
                    "upload it, or correct the path",
                )
            })?;
        String::from_utf8_lossy(&object.bytes).into_owned()
    };
    catalog
        .with_overlay(&text)
        .or_usage_error(BROKEN, format!("correct {own}"))
}

impl ObservedCluster {
    /// The spec as it is expanded for control planes, and for workers where that differs.
    pub fn all_expanded(&self) -> impl Iterator<Item = &Expanded> {
        std::iter::once(&self.expanded).chain(&self.held_back)
    }

    /// The same with files and images from where `spec.assets` wants them, of an observation of what is published. Copies need not exist yet,
    /// so hashes that they would tell are missing.
    pub async fn expand_as_stored(
        &self,
        session: &Session<'_>,
    ) -> Result<Vec<Expanded>, CommandError> {
        let Some(inputs) = &self.as_stored else {
            return Ok(self.all_expanded().cloned().collect());
        };
        let catalog = read_catalog(&inputs.objects, session).await?;
        let older = self.held_back.iter();
        let older = older.map(|older| Some(older.full.kubernetes_version.clone()));
        let mut all = Vec::new();
        for version in std::iter::once(None).chain(older) {
            let mut objects = inputs.objects.clone();
            if let Some(version) = version {
                hold_back(&mut objects, version);
            }
            all.push(assemble::expand_spec(SpecInputs {
                objects: &objects,
                facts: &inputs.facts,
                catalog: &catalog,
                ssh_keys: &self.public.ssh_keys,
            })?);
        }
        Ok(all)
    }

    /// The observation to use under the lock: this one if the store has not changed since, else a new one.
    pub async fn refresh_under_lock(
        mut self,
        options: ObserveOptions,
        session: &Session<'_>,
    ) -> Result<Self, CommandError> {
        if self.state.is_current(&session.store).await? {
            return Ok(self);
        }
        session
            .shell
            .note("the cluster was changed in the meantime: reading it again");
        self = Box::pin(observe_cluster(self.state.name(), options, session)).await?;
        self.binaries.check_complete()?;
        Ok(self)
    }

    /// Creates missing keysets and writes what is derived: `pki/public.json` and `instancegroups.json`.
    pub async fn mint_keysets(&mut self, session: &Session<'_>) -> Result<(), CommandError> {
        let names = required_keysets(&self.expanded);
        let missing: Vec<String> = self
            .public
            .missing_keysets(&names)
            .into_iter()
            .cloned()
            .collect();
        for name in missing {
            let (set, version) = mint_and_store(&session.store, &self.state.keys, &name).await?;
            self.public.add_keyset(&set, &version);
            session.shell.note(&format!("made keyset {name}"));
        }
        self.public.write(&session.store, &self.state.keys).await?;
        self.state.write_group_texts(&session.store).await
    }

    /// Checks what `pki/public.json` says of instances' keys against the keysets: `kubernetes-ca`, and those that were rotated, of which
    /// NodeConfig says which keys are trusted.
    pub async fn check_authority(&self, session: &Session<'_>) -> Result<(), CommandError> {
        let (store, keys) = (&session.store, &self.state.keys);
        let rotated = self.public.keysets.iter().filter(|set| set.items.len() > 1);
        let mut names: Vec<&str> = rotated.map(|set| set.name.as_str()).collect();
        names.retain(|name| *name != KUBERNETES_CA);
        names.insert(0, KUBERNETES_CA);
        for name in names {
            self.public.check_keyset(store, keys, name).await?;
        }
        Ok(())
    }

    /// Computes the desired state, with placeholders for keysets that do not exist yet.
    pub fn assemble(&self) -> Result<AssembledCluster, CommandError> {
        let names = required_keysets(&self.expanded);
        let mut keysets: Vec<Keyset> = self.public.keysets.clone();
        keysets.extend(
            self.public
                .missing_keysets(&names)
                .into_iter()
                .map(|name| stand_in_keyset(name)),
        );
        assemble_cluster(
            self.expanded.clone(),
            &self.own_addons,
            self.held_back.as_ref(),
            &keysets,
            &self.binaries,
            &self.secrets,
        )
    }

    /// The desired state as if `kubernetes-ca` did not exist yet.
    pub fn assemble_unminted(&self) -> Result<AssembledCluster, CommandError> {
        let keysets = [stand_in_keyset(KUBERNETES_CA)];
        assemble_cluster(
            self.expanded.clone(),
            &self.own_addons,
            self.held_back.as_ref(),
            &keysets,
            &self.binaries,
            &self.secrets,
        )
    }
}

/// The command error of a failed AWS call, with its hint.
pub fn aws_error(failure: Failure) -> CommandError {
    let hint = aws_hint(&failure);
    CommandError::new(ErrorKind::Failed, failure, hint)
}
