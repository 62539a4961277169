//! What an update begins with: the stored spec, checked; what AWS says about it; every decision written down.

use super::assemble::{self, Assembled, Ingredients, assemble, keysets_of, stand_in_keyset};
use super::objects::Objects;
use super::session::Session;
use super::{secret, skew, whose};
use crate::agents::Found;
use crate::downloads;
use crate::error::{CommandError, Context, Kind};
use crate::planned::Target;
use crate::state::{Acted, ClusterState, Public, aws_hint, mint_into, store_error};
use aws_cloud::{CloudClients, collect_facts};
use cloud::facts::{Facts, FactsWanted};
use engine::Failure;
use node::pki::{KUBERNETES_CA, Keyset};
use node::secret::DOCKER_CONFIG;
use spec::catalog::Catalog;
use spec::expand::{Expanded, wanted_facts};
use spec::not_yet::{NotYet, not_yet};
use spec::read::ReadOptions;

/// A cluster as it is in the store, completed with what AWS says.
#[derive(Clone, Debug)]
pub struct Looked {
    /// What is stored.
    pub state: ClusterState,
    /// Where it was last changed in AWS.
    pub acted: Option<Acted>,
    /// AWS in the cluster's region.
    pub clients: CloudClients,
    /// Which cluster it is.
    pub target: Target,
    /// `aws`, `aws-cn`, `aws-us-gov`.
    pub partition: String,
    /// Public halves of its keys.
    pub public: Public,
    /// The spec, completed.
    pub expanded: Expanded,
    /// nodeup and protokube.
    pub found: Found,
    /// What nobody does for it yet.
    pub not_yet: Vec<NotYet>,
    /// The spec completed with the version that runs, for workers that must not get a newer one yet.
    pub held: Option<Expanded>,
}

/// How to look.
#[derive(Clone, Copy, Debug)]
pub struct Looking {
    /// How strictly to read the spec.
    pub read: ReadOptions,
    /// Workers get the spec's version whatever the control plane runs.
    pub ignore_skew: bool,
}

/// Looks at a cluster; changes nothing.
pub async fn look(name: &str, how: Looking, session: &Session<'_>) -> Result<Looked, CommandError> {
    let state = ClusterState::read(&session.store, name, how.read).await?;
    let objects = Objects::stored(&state);
    objects.check(session.shell)?;
    secret::are_there(&state)?;
    let wanted = wanted_facts(&objects.cluster, &objects.groups);
    let clients = session.cloud_clients(wanted.region.as_deref());
    let (mut facts, public, acted, catalog) = tokio::try_join!(
        facts(&clients, &wanted),
        Public::read(&session.store, &state.keys, &state.entries),
        Acted::read(&session.store, &state.keys, &state.entries),
        catalog(&objects, session),
    )?;
    whose::same_account(name, &facts.account, acted.as_ref())?;
    let expanded = complete(&objects, &mut facts, &catalog, &public.ssh_keys).await?;
    expanded
        .warnings
        .iter()
        .for_each(|warning| session.shell.problem(warning));
    public.are_kept(&keysets_of(&expanded), &state.keys)?;
    let not_yet = not_yet(&objects.cluster, &objects.groups);
    session.shell.not_yet(&not_yet);
    let found = Found::look(&expanded.full)?;
    let target = Target {
        cluster: name.to_owned(),
        account: facts.account.clone(),
        region: clients.region().to_owned(),
    };
    let mut looked = Looked {
        state,
        acted,
        clients,
        target,
        partition: facts.partition.clone(),
        public,
        expanded,
        found,
        not_yet,
        held: None,
    };
    if !how.ignore_skew
        && let Some(version) = behind(&looked, session).await?
    {
        let mut objects = objects;
        objects.cluster.spec.kubernetes_version = Some(version);
        let ssh_keys = &looked.public.ssh_keys;
        looked.held = Some(complete(&objects, &mut facts, &catalog, ssh_keys).await?);
    }
    Ok(looked)
}

/// The version that workers keep for now, if the control plane is behind the spec's. Says so.
async fn behind(looked: &Looked, session: &Session<'_>) -> Result<Option<String>, CommandError> {
    let running = skew::running(looked, session).await?;
    if !running.unknown.is_empty() {
        session.shell.warning(&format!(
            "which version of Kubernetes {} {} is not known: taken for the spec's, with which workers are launched",
            running.unknown.join(", "),
            if running.unknown.len() == 1 { "runs" } else { "run" },
        ));
    }
    let wanted = &looked.expanded.full.kubernetes_version;
    Ok(running.older.map(|(version, instance)| {
        session.shell.note(&format!(
            "workers keep Kubernetes {version} until every control plane runs {wanted} ({instance} runs {version}): replace the \
             control planes, then update again; --ignore-kubelet-version-skew gives workers {wanted} now"
        ));
        version
    }))
}

/// The facts of the account that are wanted.
pub async fn facts(clients: &CloudClients, wanted: &FactsWanted) -> Result<Facts, CommandError> {
    collect_facts(clients, wanted).await.map_err(aws_error)
}

/// Fails if a new cluster could not be completed: before anything of it is stored.
pub async fn can_complete(
    objects: &Objects,
    ssh_key: Option<&str>,
    clients: &CloudClients,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let wanted = wanted_facts(&objects.cluster, &objects.groups);
    let (mut facts, catalog) =
        tokio::try_join!(facts(clients, &wanted), catalog(objects, session))?;
    let ssh_keys: Vec<String> = ssh_key.map(str::to_owned).into_iter().collect();
    complete(objects, &mut facts, &catalog, &ssh_keys).await?;
    Ok(())
}

/// Expands; where the catalog lacks hashes, again with those that are published.
async fn complete(
    objects: &Objects,
    facts: &mut Facts,
    catalog: &Catalog,
    ssh_keys: &[String],
) -> Result<Expanded, CommandError> {
    let expand = |facts: &Facts| {
        assemble::complete(Ingredients {
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
    facts.published_hashes = downloads::published_hashes(&unknown).await?;
    expand(facts)
}

/// The catalog of this release, with the cluster's own over it.
async fn catalog(objects: &Objects, session: &Session<'_>) -> Result<Catalog, CommandError> {
    const BROKEN: &str = "the catalog of downloads cannot be used";
    let catalog = Catalog::embedded().failed(BROKEN, "report this: it is a defect of kctl")?;
    let assets = objects.cluster.spec.assets.clone().unwrap_or_default();
    let Some(own) = assets.catalog else {
        return Ok(catalog);
    };
    let text = if own.starts_with("https://") {
        downloads::verified(&own, &assets.catalog_sha256.unwrap_or_default()).await?
    } else {
        let object = session
            .store
            .get(&own)
            .await
            .map_err(store_error)?
            .ok_or_else(|| {
                CommandError::usage(
                    format!("spec.assets.catalog: {own} is not in the state store"),
                    "upload it, or correct the path",
                )
            })?;
        String::from_utf8_lossy(&object.bytes).into_owned()
    };
    catalog
        .overlaid(&text)
        .usage(BROKEN, format!("correct {own}"))
}

impl Looked {
    /// The same under the lock: as it was looked at, if nobody changed anything since; else looked at anew.
    pub async fn again(
        mut self,
        how: Looking,
        session: &Session<'_>,
    ) -> Result<Self, CommandError> {
        if self.state.is_current(&session.store).await? {
            return Ok(self);
        }
        session
            .shell
            .note("somebody changed the cluster meanwhile: looking again");
        self = Box::pin(look(self.state.name(), how, session)).await?;
        self.found.complete()?;
        Ok(self)
    }

    /// Mints the keysets that are missing and writes down what is public of all.
    pub async fn mint(&mut self, session: &Session<'_>) -> Result<(), CommandError> {
        let names = keysets_of(&self.expanded);
        let missing: Vec<String> = self.public.missing(&names).into_iter().cloned().collect();
        for name in missing {
            let (set, version) = mint_into(&session.store, &self.state.keys, &name).await?;
            self.public.add(&set, &version);
            session.shell.note(&format!("made keyset {name}"));
        }
        self.public.write(&session.store, &self.state.keys).await
    }

    /// Checks that machines will trust the cluster's own authority: what is known of it comes from a file without private keys.
    pub async fn check_authority(&self, session: &Session<'_>) -> Result<(), CommandError> {
        let (store, keys) = (&session.store, &self.state.keys);
        self.public.check(store, keys, KUBERNETES_CA).await
    }

    /// Everything that should be; keysets that do not exist yet are stood in for.
    pub fn assemble(&self) -> Result<Assembled, CommandError> {
        let names = keysets_of(&self.expanded);
        let mut keysets: Vec<Keyset> = self.public.keysets.clone();
        keysets.extend(
            self.public
                .missing(&names)
                .into_iter()
                .map(|name| stand_in_keyset(name)),
        );
        let docker_config = secret::has(&self.state, DOCKER_CONFIG);
        assemble(
            self.expanded.clone(),
            self.held.as_ref(),
            &keysets,
            &self.found,
            docker_config,
        )
    }

    /// The same, as if the authority whose certificate machines trust did not exist yet.
    pub fn assemble_unminted(&self) -> Result<Assembled, CommandError> {
        let keysets = [stand_in_keyset(KUBERNETES_CA)];
        let docker_config = secret::has(&self.state, DOCKER_CONFIG);
        assemble(
            self.expanded.clone(),
            self.held.as_ref(),
            &keysets,
            &self.found,
            docker_config,
        )
    }
}

/// A failed call to AWS, with what to do about it.
pub fn aws_error(failure: Failure) -> CommandError {
    let hint = aws_hint(&failure);
    CommandError::new(Kind::Failed, failure, hint)
}
