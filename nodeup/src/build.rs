//! From the verified configuration to what is to be done: the machine as it should be, how it differs, and everything
//! that closing the difference takes: authorities and downloads.

use crate::download::{Downloads, Limits};
use crate::fetch::Fetched;
use crate::host::{self, Context, Signer};
use crate::retry::Told;
use crate::run::Run;
use crate::stage::Stages;
use crate::{secret_file, stored};
use anyhow::{Context as _, bail};
use aws::store::Store;
use model::engine::Plan;
use model::full::Asset;
use model::host::{HostResource, KeysetPart, Thing, desired};
use model::node::{BootConfig, NodeConfig, read_node_config};
use model::pki::keyset_names;

/// What is to be done, and with what.
pub struct Built {
    /// The machine as it should be.
    pub desired: Vec<HostResource>,
    /// What it takes to change it.
    pub context: Context,
    /// How it differs.
    pub plan: Plan<HostResource>,
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

/// Looks at the machine, plans, and downloads what the plan needs. Changes nothing outside nodeup's own folder, and
/// nothing at all in a dry run.
pub async fn build(
    run: &Run,
    config: &NodeConfig,
    fetched: Fetched,
    stages: &Stages,
) -> anyhow::Result<Built> {
    let desired =
        desired(config, run.host()).context("could not make the machine's desired state")?;
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
    let context = run.context(signer, &config.ca_certificates, stages);
    let plan = host::plan(desired.clone(), context.clone()).await?;
    if !run.dry_run {
        keep(run, &fetched.node_config)?;
        downloads(run, config, store.as_ref(), &plan, &*told).await?;
    }
    Ok(Built {
        desired,
        context,
        plan,
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

/// The verified text, for protokube and for the next boot.
fn keep(run: &Run, text: &str) -> anyhow::Result<()> {
    let path = run.place.node_config();
    if secret_file::read(&path)?.as_deref() == Some(text) {
        return Ok(());
    }
    secret_file::write(&path, text.as_bytes())
}

/// Downloads what steps of the plan put in its place, and nothing else.
async fn downloads(
    run: &Run,
    config: &NodeConfig,
    store: Option<&Store>,
    plan: &Plan<HostResource>,
    told: Told<'_>,
) -> anyhow::Result<()> {
    let wanted = plan.steps.values().filter_map(|step| match &step.after {
        Some(HostResource {
            thing: Thing::Download(download),
            ..
        }) => Some(download),
        _ => None,
    });
    let downloads = Downloads::new(run.place.cache(), Limits::default())?;
    let (mut assets, mut agents) = (Vec::new(), Vec::new());
    for download in wanted {
        let of = |asset: &&Asset| asset.sha256.as_deref() == Some(&download.sha256);
        let own = config.agents.protokube.iter();
        let own = own.chain(&config.agents.nodeup);
        if let Some(asset) = config.assets.iter().find(of) {
            assets.push(asset.clone());
        } else if let Some(agent) = own.clone().find(|agent| agent.sha256 == download.sha256) {
            agents.push((download.name.as_str(), agent));
        } else {
            bail!(
                "nothing says where {} with sha256 {} is",
                download.name,
                download.sha256
            );
        }
    }
    for (name, agent) in agents {
        let store = store.with_context(|| {
            format!("{name} lies in the state store, which only control planes read")
        })?;
        stored::agent(store, name, agent, &downloads, told).await?;
    }
    downloads.fetch(&assets, told).await.map(drop)
}
