//! Where a machine's configuration comes from: control planes read it in the state store, workers are handed it by
//! protokube together with their certificates. A machine that has it already asks nobody, so that it comes back from
//! a reboot whatever else is down.

use crate::endpoint::Endpoint;
use crate::host::{self, Signer};
use crate::retry::patient;
use crate::run::Run;
use crate::stage::Stages;
use crate::{join, stored};
use ::host::read_text_file;
use anyhow::bail;
use node::bootstrap::Certificate;
use node::config::{NodeConfig, read_node_config, sha256};
use node::host::{HostResource, KeysetPart, Standing, Thing, desired};
use node::pki::Issued;
use node::secret::{DOCKER_CONFIG, Secret};
use std::collections::BTreeMap;

/// What the stage got.
#[derive(Debug, Default)]
pub struct Fetched {
    /// NodeConfig's text. Not yet verified.
    pub node_config: String,
    /// Certificates of a worker that joined in this run.
    pub certificates: BTreeMap<Certificate, Issued>,
    /// Secrets of the store that came with them, by name.
    pub secrets: BTreeMap<String, Secret>,
}

/// Tries of a worker whose certificates still serve, but not for long.
const EARLY_TRIES: usize = 4;

/// The configuration that user data names, and what goes with it.
pub async fn fetch(run: &Run, stages: &Stages) -> anyhow::Result<Fetched> {
    let kept = read_text_file(&run.place.node_config())?;
    let kept = kept.filter(|text| sha256(text) == run.boot.node_config);
    match &run.boot.config_base {
        Some(base) => control_plane(run, base, kept, stages).await,
        None => worker(run, kept, stages).await,
    }
}

async fn control_plane(
    run: &Run,
    base: &str,
    kept: Option<String>,
    stages: &Stages,
) -> anyhow::Result<Fetched> {
    let node_config = match kept {
        Some(text) => text,
        None => {
            let store = stored::open(base, &run.identified.clients)?;
            stored::node_config(&store, &run.boot, &*stages.attempts()).await?
        }
    };
    Ok(Fetched {
        node_config,
        ..Fetched::default()
    })
}

async fn worker(run: &Run, kept: Option<String>, stages: &Stages) -> anyhow::Result<Fetched> {
    let due = match &kept {
        Some(text) => due(run, &read_node_config(text, &run.boot.node_config)?, stages).await?,
        None => Due::Now,
    };
    let as_it_is = |node_config| Fetched {
        node_config,
        ..Fetched::default()
    };
    match (kept, due) {
        (Some(kept), Due::Nothing) => Ok(as_it_is(kept)),
        (Some(kept), _) if run.dry_run => Ok(as_it_is(kept)),
        (None, _) if run.dry_run => bail!(
            "this machine has not joined yet, and joining would change it: there is no configuration to show"
        ),
        (Some(kept), Due::Soon) => {
            let pace = patient().with_max_times(EARLY_TRIES);
            joined(run, pace, stages).await.or_else(|error| {
                (stages.attempts())(&format!(
                    "the certificates serve for some time, and are not renewed now: {error:#}"
                ));
                Ok(as_it_is(kept))
            })
        }
        (_, _) => joined(run, patient(), stages).await,
    }
}

async fn joined(
    run: &Run,
    pace: backon::ExponentialBuilder,
    stages: &Stages,
) -> anyhow::Result<Fetched> {
    let endpoint = Endpoint {
        boot: &run.boot,
        machine: &run.identified.machine,
        clock: run.clock,
    };
    let told = stages.attempts();
    let membership = join::join(&endpoint, run.host(), &run.place.keys(), pace, &*told).await?;
    Ok(Fetched {
        node_config: membership.node_config,
        certificates: membership.certificates,
        secrets: membership
            .docker_config
            .map(|secret| (DOCKER_CONFIG.to_owned(), secret))
            .into_iter()
            .collect(),
    })
}

/// Whether certificates have to be asked for.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Nothing,
    /// They still serve.
    Soon,
    Now,
}

/// What comes with joining alone: a worker that joins does not know yet what else it is to have.
async fn due(run: &Run, config: &NodeConfig, stages: &Stages) -> anyhow::Result<Due> {
    let handed_over = |thing: &Thing| match thing {
        Thing::Certificate(_) => true,
        Thing::KeysetFile(file) => file.part == KeysetPart::StoredSecret,
        _ => false,
    };
    let handed_over = alone(desired(config, run.host())?, handed_over);
    let context = run.context(Signer::default(), &config.ca_certificates, stages);
    let plan = host::plan(handed_over, context).await?;
    let due = plan.steps.values().map(|step| {
        let before = step.before.as_ref().map(|have| &have.resource.thing);
        match before {
            Some(Thing::Certificate(have)) => of(have.standing),
            _ => Due::Now,
        }
    });
    Ok(due.max().unwrap_or(Due::Nothing))
}

/// The certificates of a desired state, waiting for nothing else of it.
pub fn certificates_alone(desired: Vec<HostResource>) -> Vec<HostResource> {
    alone(desired, |thing| matches!(thing, Thing::Certificate(_)))
}

fn alone(desired: Vec<HostResource>, wanted: impl Fn(&Thing) -> bool) -> Vec<HostResource> {
    let all = desired.into_iter().map(|of| of.thing);
    all.filter(wanted).map(HostResource::new).collect()
}

fn of(standing: Standing) -> Due {
    match standing {
        // A plain file in the place of the link has all that is needed.
        Standing::Good | Standing::NotALink => Due::Nothing,
        Standing::Expiring => Due::Soon,
        Standing::Unreadable
        | Standing::OtherKey
        | Standing::OtherContent
        | Standing::OtherAuthority
        | Standing::Ended => Due::Now,
    }
}
