//! Stage fetch: control planes read NodeConfig from the state store; workers get it from protokube together with their
//! certificates. An instance that has its NodeConfig already contacts nothing, so it can reboot while AWS or the control plane is
//! down.

use crate::bootstrap_client::BootstrapClient;
use crate::host::{self, Signer};
use crate::retry::unlimited_backoff;
use crate::run::Run;
use crate::stage::Stages;
use crate::{join, stored};
use ::host::read_text_file;
use anyhow::bail;
use node::bootstrap::CertificateKind;
use node::config::{NodeConfig, read_node_config};
use node::digest::sha256_hex;
use node::host::{CertificateState, HostObject, HostResource, KeysetPart, desired_resources};
use node::pki::IssuedCertificate;
use node::secret::{DOCKER_CONFIG, Secret};
use std::collections::BTreeMap;

/// Result of the stage fetch.
#[derive(Debug, Default)]
pub struct FetchResult {
    /// Text of NodeConfig, not verified yet.
    pub node_config: String,
    /// Certificates, if a worker joined in this run.
    pub certificates: BTreeMap<CertificateKind, IssuedCertificate>,
    /// Secrets that came with them, by name.
    pub secrets: BTreeMap<String, Secret>,
}

/// Attempts to renew certificates that are still valid.
const EARLY_TRIES: usize = 4;

/// Fetches the NodeConfig that user data names, and for workers certificates if they are needed.
pub async fn fetch_config(run: &Run, stages: &Stages) -> anyhow::Result<FetchResult> {
    let kept = read_text_file(&run.paths.node_config())?;
    let kept = kept.filter(|text| sha256_hex(text) == run.boot.node_config);
    match &run.boot.config_base {
        Some(base) => fetch_on_control_plane(run, base, kept, stages).await,
        None => fetch_on_worker(run, kept, stages).await,
    }
}

async fn fetch_on_control_plane(
    run: &Run,
    base: &str,
    kept: Option<String>,
    stages: &Stages,
) -> anyhow::Result<FetchResult> {
    let node_config = match kept {
        Some(text) => text,
        None => {
            let store = stored::open_store(base, &run.boot, &run.identified.clients)?;
            stored::read_node_config_text(&store, &run.boot, &*stages.attempt_logger()).await?
        }
    };
    Ok(FetchResult {
        node_config,
        ..FetchResult::default()
    })
}

async fn fetch_on_worker(
    run: &Run,
    kept: Option<String>,
    stages: &Stages,
) -> anyhow::Result<FetchResult> {
    let due = match &kept {
        Some(text) => {
            join_urgency(run, &read_node_config(text, &run.boot.node_config)?, stages).await?
        }
        None => Urgency::Now,
    };
    let as_it_is = |node_config| FetchResult {
        node_config,
        ..FetchResult::default()
    };
    match (kept, due) {
        (Some(kept), Urgency::Nothing) => Ok(as_it_is(kept)),
        (Some(kept), _) if run.dry_run => Ok(as_it_is(kept)),
        (None, _) if run.dry_run => bail!(
            "this instance has not joined yet, and a dry run does not join: there is no configuration to show"
        ),
        (Some(kept), Urgency::Soon) => {
            let pace = unlimited_backoff().with_max_times(EARLY_TRIES);
            fetch_by_joining(run, pace, stages).await.or_else(|error| {
                (stages.attempt_logger())(&format!(
                    "certificates are not renewed now but are still valid: {error:#}"
                ));
                Ok(as_it_is(kept))
            })
        }
        (_, _) => fetch_by_joining(run, unlimited_backoff(), stages).await,
    }
}

async fn fetch_by_joining(
    run: &Run,
    pace: backon::ExponentialBuilder,
    stages: &Stages,
) -> anyhow::Result<FetchResult> {
    let endpoint = BootstrapClient {
        boot: &run.boot,
        ec2: &run.identified.ec2,
        clock: run.clock,
    };
    let attempt_log = stages.attempt_logger();
    let membership = join::join_cluster(
        &endpoint,
        run.facts(),
        &run.paths.keys_folder(),
        run.force,
        pace,
        &*attempt_log,
    )
    .await?;
    Ok(FetchResult {
        node_config: membership.node_config,
        certificates: membership.certificates,
        secrets: membership
            .docker_config
            .map(|secret| (DOCKER_CONFIG.to_owned(), secret))
            .into_iter()
            .collect(),
    })
}

/// Urgency of requesting certificates.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    Nothing,
    /// They are valid but expire soon.
    Soon,
    Now,
}

/// How urgently the worker must join, judged by the objects that joining provides.
async fn join_urgency(run: &Run, config: &NodeConfig, stages: &Stages) -> anyhow::Result<Urgency> {
    let handed_over = |thing: &HostObject| match thing {
        HostObject::Certificate(_) => true,
        HostObject::KeysetFile(file) => file.part == KeysetPart::StoredSecret,
        _ => false,
    };
    let handed_over = without_needs(desired_resources(config, run.facts())?, handed_over);
    let context = run.host_context(Signer::default(), &config.ca_certificates, stages);
    let plan = host::plan_changes(handed_over, context).await?;
    let due = plan.steps.values().map(|step| {
        let before = step.before.as_ref().map(|have| &have.resource.thing);
        match before {
            Some(HostObject::Certificate(have)) => urgency_of_state(have.standing),
            _ => Urgency::Now,
        }
    });
    Ok(due.max().unwrap_or(Urgency::Nothing))
}

/// The certificates of a desired state, without dependencies.
pub fn certificates_only(desired: Vec<HostResource>) -> Vec<HostResource> {
    without_needs(desired, |thing| matches!(thing, HostObject::Certificate(_)))
}

fn without_needs(
    desired: Vec<HostResource>,
    wanted: impl Fn(&HostObject) -> bool,
) -> Vec<HostResource> {
    let all = desired.into_iter().map(|resource| resource.thing);
    all.filter(wanted).map(HostResource::new).collect()
}

fn urgency_of_state(standing: CertificateState) -> Urgency {
    match standing {
        // A plain file in the place of the link contains a valid certificate.
        CertificateState::Good | CertificateState::NotALink => Urgency::Nothing,
        CertificateState::Expiring | CertificateState::Forced => Urgency::Soon,
        CertificateState::Unreadable
        | CertificateState::OtherKey
        | CertificateState::OtherContent
        | CertificateState::OtherAuthority
        | CertificateState::Ended => Urgency::Now,
    }
}
