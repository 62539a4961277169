//! From the verified configuration to what is to be done: the machine as it should be, how it differs, and everything
//! that closing the difference takes: authorities and downloads.

use crate::fetch::{Fetched, certificates_alone};
use crate::host::{self, Context, Signer};
use crate::retry::Told;
use crate::run::Run;
use crate::stage::Stages;
use crate::stored;
use ::host::{read_text_file, write_secret_file};
use anyhow::{Context as _, bail};
use aws_client::store::Store;
use engine::Plan;
use node::config::{Agent, Asset, BootConfig, NodeConfig, read_node_config};
use node::host::{HostResource, KeysetPart, Thing, desired};
use node::pki::keyset_names;

/// What is to be done, and with what.
pub struct Built {
    /// The machine as it should be.
    pub desired: Vec<HostResource>,
    /// What it takes to change it.
    pub context: Context,
    /// How it differs.
    pub plan: Plan<HostResource>,
    /// What has to be downloaded for that.
    pub wanted: Wanted,
    /// A control plane's state store.
    pub store: Option<Store>,
}

/// Downloads.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Others' releases.
    pub assets: Vec<Asset>,
    /// Our own binaries, by name.
    pub agents: Vec<(String, Agent)>,
}

impl Wanted {
    /// True if there is nothing to download.
    pub fn is_empty(&self) -> bool {
        self.assets.is_empty() && self.agents.is_empty()
    }
}

/// The configuration, if it is the one that user data names, and of this cluster and group.
pub fn verify(text: &str, boot: &BootConfig) -> anyhow::Result<NodeConfig> {
    let config = read_node_config(text, &boot.node_config)?;
    if (&config.cluster, &config.group) != (&boot.cluster, &boot.group) {
        bail!(
            "NodeConfig is of {} in {}, not of {} in {}",
            config.group,
            config.cluster,
            boot.group,
            boot.cluster
        );
    }
    Ok(config)
}

/// Looks at the machine, and plans. Keeps the verified configuration in nodeup's own folder, for protokube and for the
/// next boot; in a dry run it changes nothing at all.
pub async fn build(
    run: &Run,
    config: &NodeConfig,
    fetched: Fetched,
    stages: &Stages,
) -> anyhow::Result<Built> {
    let mut desired =
        desired(config, run.host()).context("could not make the machine's desired state")?;
    if run.certificates {
        desired = certificates_alone(desired);
    }
    let store = match &run.boot.config_base {
        Some(base) => Some(stored::open(base, &run.identified.clients)?),
        None => None,
    };
    let told = stages.attempts();
    let mut signer = match &store {
        Some(store) => authorities(store, config, &desired, &*told).await?,
        None => Signer::default(),
    };
    signer.joined = fetched.certificates;
    signer.secrets.extend(fetched.secrets);
    let context = run.context(signer, &config.ca_certificates, stages);
    let plan = host::plan(desired.clone(), context.clone()).await?;
    if !run.dry_run {
        keep(run, &fetched.node_config)?;
    }
    Ok(Built {
        wanted: wanted(config, &plan)?,
        desired,
        context,
        plan,
        store,
    })
}

/// What a control plane signs with.
async fn authorities(
    store: &Store,
    config: &NodeConfig,
    desired: &[HostResource],
    told: Told<'_>,
) -> anyhow::Result<Signer> {
    let etcd = config.control_plane.iter().flat_map(|of| &of.etcd);
    let names = keyset_names(etcd.map(|cluster| cluster.name.as_str()));
    let secrets = desired.iter().filter_map(|of| match &of.thing {
        Thing::KeysetFile(file) if file.part == KeysetPart::StoredSecret => {
            Some(file.keyset.clone())
        }
        _ => None,
    });
    let secrets: Vec<String> = secrets.collect();
    Ok(Signer {
        keysets: stored::keysets(store, &names, told).await?,
        secrets: stored::secrets(store, &secrets, told).await?,
        ..Signer::default()
    })
}

fn keep(run: &Run, text: &str) -> anyhow::Result<()> {
    let path = run.place.node_config();
    if read_text_file(&path)?.as_deref() == Some(text) {
        return Ok(());
    }
    Ok(write_secret_file(&path, text.as_bytes())?)
}

/// What steps of the plan put in its place, and nothing else: a machine that has it all downloads nothing.
fn wanted(config: &NodeConfig, plan: &Plan<HostResource>) -> anyhow::Result<Wanted> {
    let mut wanted = Wanted::default();
    for step in plan.steps.values() {
        let Some(Thing::Download(download)) = step.after.as_ref().map(|after| &after.thing) else {
            continue;
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
                "nothing says where {} with sha256 {sha256} is",
                download.name
            );
        }
    }
    Ok(wanted)
}
