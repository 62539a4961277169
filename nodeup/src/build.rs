//! Stages verify and build: checks the NodeConfig, builds the desired state, plans, and collects what the apply needs: keysets,
//! secrets and downloads.

use crate::fetch::{FetchResult, certificates_only};
use crate::host::{self, HostContext, Signer};
use crate::retry::AttemptLog;
use crate::run::Run;
use crate::stage::Stages;
use crate::stored;
use crate::warm_pool::without_kubelet;
use ::host::{read_text_file, write_secret_file};
use anyhow::{Context as _, bail};
use aws_client::store::Store;
use engine::Plan;
use node::config::{Agent, Asset, BootConfig, ImageArchive, NodeConfig, read_node_config};
use node::host::{HostObject, HostResource, KeysetPart, desired_resources};
use node::pki::keyset_names;

/// Result of the stage build.
pub struct BuildResult {
    /// Desired state of the instance.
    pub desired: Vec<HostResource>,
    /// Inputs of the apply.
    pub context: HostContext,
    /// Plan with the differences.
    pub plan: Plan<HostResource>,
    /// Files that the plan needs.
    pub downloads: NeededDownloads,
    /// State store; on control planes only.
    pub store: Option<Store>,
}

#[derive(Debug, Default)]
pub struct NeededDownloads {
    /// Releases of other projects.
    pub assets: Vec<Asset>,
    /// Archives of images.
    pub images: Vec<Asset>,
    /// kctl's agents, by name.
    pub agents: Vec<(String, Agent)>,
}

impl NeededDownloads {
    /// True if nothing has to be downloaded.
    pub fn is_empty(&self) -> bool {
        self.assets.is_empty() && self.images.is_empty() && self.agents.is_empty()
    }
}

/// Parses the NodeConfig and checks that it has the sha256, cluster and group in user data.
pub fn verify_config(text: &str, boot: &BootConfig) -> anyhow::Result<NodeConfig> {
    let config = read_node_config(text, &boot.node_config)?;
    if (&config.cluster, &config.group) != (&boot.cluster, &boot.group) {
        bail!(
            "NodeConfig belongs to instance group {} of {}, not to {} of {}",
            config.group,
            config.cluster,
            boot.group,
            boot.cluster
        );
    }
    Ok(config)
}

/// Observes the instance and plans; `warming`: it must not join. Unless this is a dry run, also stores the verified NodeConfig in nodeup's folder, for protokube
/// and the next boot.
pub async fn build_plan(
    run: &Run,
    config: &NodeConfig,
    fetched: FetchResult,
    warming: bool,
    stages: &Stages,
) -> anyhow::Result<BuildResult> {
    let mut desired = desired_resources(config, run.facts())
        .context("could not build the desired state of the instance")?;
    if run.certificates {
        desired = certificates_only(desired);
    }
    if warming {
        desired = without_kubelet(desired);
    }
    let store = match &run.boot.config_base {
        Some(base) => Some(stored::open_store(
            base,
            &run.boot,
            &run.identified.clients,
        )?),
        None => None,
    };
    let attempt_log = stages.attempt_logger();
    let mut signer = match &store {
        Some(store) => read_signer(store, config, &desired, &*attempt_log).await?,
        None => Signer::default(),
    };
    signer.joined = fetched.certificates;
    signer.secrets.extend(fetched.secrets);
    let context = run.host_context(signer, &config.ca_certificates, stages);
    let plan = host::plan_changes(desired.clone(), context.clone()).await?;
    if !run.dry_run {
        store_node_config(run, &fetched.node_config)?;
    }
    Ok(BuildResult {
        downloads: needed_downloads(config, &plan)?,
        desired,
        context,
        plan,
        store,
    })
}

/// Reads the keysets and secrets that a control plane needs from the state store.
async fn read_signer(
    store: &Store,
    config: &NodeConfig,
    desired: &[HostResource],
    attempt_log: AttemptLog<'_>,
) -> anyhow::Result<Signer> {
    let etcd = config
        .control_plane
        .iter()
        .flat_map(|control_plane| &control_plane.etcd);
    let names = keyset_names(etcd.map(|cluster| cluster.name.as_str()));
    let secrets = desired.iter().filter_map(|resource| match &resource.thing {
        HostObject::KeysetFile(file) if file.part == KeysetPart::StoredSecret => {
            Some(file.keyset.clone())
        }
        _ => None,
    });
    let secrets: Vec<String> = secrets.collect();
    let mut keysets = stored::read_keysets(store, &names, attempt_log).await?;
    // An instance has the keys of its NodeConfig, also if it boots while the next stage of a rotation is under way.
    for keyset in keysets.values_mut() {
        *keyset = config.held_keys(keyset.clone());
    }
    Ok(Signer {
        keysets,
        secrets: stored::read_secrets(store, &secrets, attempt_log).await?,
        ..Signer::default()
    })
}

fn store_node_config(run: &Run, text: &str) -> anyhow::Result<()> {
    let path = run.paths.node_config();
    if read_text_file(&path)?.as_deref() == Some(text) {
        return Ok(());
    }
    Ok(write_secret_file(&path, text.as_bytes())?)
}

/// The downloads that steps of the plan install. An instance that has everything downloads nothing.
fn needed_downloads(
    config: &NodeConfig,
    plan: &Plan<HostResource>,
) -> anyhow::Result<NeededDownloads> {
    let mut wanted = NeededDownloads::default();
    for step in plan.steps.values() {
        let download = match step.after.as_ref().map(|after| &after.thing) {
            Some(HostObject::Download(download)) => download,
            Some(HostObject::Image(image)) => {
                let mut archives = config.images.iter();
                let archive = archives.find(|archive| archive.sha256 == image.archive);
                wanted.images.extend(archive.map(ImageArchive::download));
                continue;
            }
            _ => continue,
        };
        let mut assets = config.assets.iter();
        let mut agents = config.agents.protokube.iter();
        let sha256 = download.sha256.as_str();
        if let Some(asset) = assets.find(|asset| asset.sha256.as_deref() == Some(sha256)) {
            wanted.assets.push(asset.clone());
        } else if let Some(agent) = agents.find(|agent| agent.sha256 == sha256) {
            wanted.agents.push((download.name.clone(), agent.clone()));
        } else {
            bail!(
                "NodeConfig has no source for {} with sha256 {sha256}",
                download.name
            );
        }
    }
    Ok(wanted)
}
