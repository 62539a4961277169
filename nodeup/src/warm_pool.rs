//! Warm pools. An instance that is launched into one prepares everything, pulls images, and does not join: Auto Scaling stops it. When
//! it is started again, it joins with what it has. At the end of both boots it completes the hook at which Auto Scaling waits.

use crate::retry::{AttemptError, AttemptLog, repeat_until_final, unlimited_backoff};
use crate::run::Run;
use crate::stage::Stages;
use anyhow::{Context, anyhow};
use host::{Host, read_text_file, write_secret_file};
use node::config::NodeConfig;
use node::host::HostResource;
use node::names;
use std::collections::BTreeSet;
use std::time::Duration;

/// Where the metadata service says what Auto Scaling is making of the instance: `InService`, `Warmed:Stopped`, ...
/// (<https://docs.aws.amazon.com/autoscaling/ec2/userguide/retrieving-target-lifecycle-state-through-imds.html>).
const TARGET_STATE: &str = "meta-data/autoscaling/target-lifecycle-state";
/// Pauses before the questions. An instance that has no such state after them belongs to no group any more.
const PAUSES: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(6),
];
/// Attempts for each image. A registry that does not give one must not keep the group from having a pool.
const TRIES_OF_IMAGE: usize = 3;
/// The unit that makes an instance a Node.
const KUBELET: &str = "kubelet.service";

/// The hook of a launch, and what becomes of the instance after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchHook {
    /// Name of the instance's Auto Scaling group.
    pub scaling_group: String,
    /// The instance goes to the pool: Auto Scaling stops it.
    pub warming: bool,
}

/// True if the instance must not join yet, because it is on its way into the pool of its group.
pub async fn is_warming(
    run: &Run,
    config: &NodeConfig,
    note: AttemptLog<'_>,
) -> anyhow::Result<bool> {
    if config.warm_pool.is_none() || run.certificates {
        return Ok(false);
    }
    // A new instance may not have its state yet.
    for pause in PAUSES {
        tokio::time::sleep(pause).await;
        let state = run.identified.imds.get(TARGET_STATE).await;
        let state = state.context("could not ask whether the instance goes to the warm pool")?;
        if let Some(state) = state {
            return Ok(state.trim().starts_with("Warmed:"));
        }
    }
    note("the instance has no target lifecycle state, so it joins");
    Ok(false)
}

/// The desired state without kubelet's unit and what needs it.
pub fn without_kubelet(desired: Vec<HostResource>) -> Vec<HostResource> {
    let is_kubelet = |resource: &HostResource| matches!(&resource.thing, node::host::HostObject::Unit(unit) if unit.name == KUBELET);
    let mut out: BTreeSet<_> = desired
        .iter()
        .filter(|one| is_kubelet(one))
        .map(|one| one.thing.id())
        .collect();
    loop {
        let needs = |one: &&HostResource| one.needs.iter().any(|id| out.contains(id));
        let found: Vec<_> = desired
            .iter()
            .filter(needs)
            .map(|one| one.thing.id())
            .collect();
        let before = out.len();
        out.extend(found);
        if out.len() == before {
            break;
        }
    }
    let stays = |one: &HostResource| !out.contains(&one.thing.id());
    desired.into_iter().filter(stays).collect()
}

/// Pulls the images that the instance will need as a node. One that cannot be pulled is reported, and pulled by kubelet later.
pub async fn pull_images(run: &Run, config: &NodeConfig, stages: &Stages) {
    let host = Host::new(run.paths.root(), run.system.clone());
    let images = config.warm_pool.iter().flat_map(|pool| &pool.images);
    for image in images {
        let pace = unlimited_backoff().with_max_times(TRIES_OF_IMAGE - 1);
        let pulled = repeat_until_final(pace, &|_| (), || async { pull_image(&host, image) });
        if let Err(error) = pulled.await {
            (stages.attempt_logger())(&format!("{image} is not pulled in advance: {error:#}"));
        }
    }
}

/// Through the container runtime interface, with containerd's mirrors.
fn pull_image(host: &Host, image: &str) -> Result<(), AttemptError> {
    let ran = host.run_program("crictl", &["pull", image]);
    let output = ran.map_err(|error| AttemptError::Passing(error.into()))?;
    if output.is_success() {
        return Ok(());
    }
    let error = anyhow!("crictl: {}", output.error_output());
    Err(AttemptError::Passing(error))
}

/// The hook that the instance has to complete; `None`: there is none, or it has been completed.
pub fn launch_hook(
    run: &Run,
    config: &NodeConfig,
    warming: bool,
) -> anyhow::Result<Option<LaunchHook>> {
    let pool = config.warm_pool.as_ref();
    let waits = pool.is_some_and(|pool| pool.lifecycle_hook) && !run.certificates;
    if !waits || read_text_file(&run.paths.in_service())?.is_some() {
        return Ok(None);
    }
    Ok(Some(LaunchHook {
        scaling_group: names::autoscaling_group(&config.cluster, &config.group, config.role),
        warming,
    }))
}

/// Pauses between attempts to complete the hook, in seconds, five minutes in all. nodeup may be faster than Auto Scaling, which comes
/// to the hook some time after EC2 says that the instance runs.
fn hook_pauses() -> impl Iterator<Item = u64> {
    [2, 4, 8].into_iter().chain(std::iter::repeat_n(15, 19))
}

/// Tells Auto Scaling that the instance is ready. An instance for which it does not wait, because it was launched before the hook was
/// there, is in service.
pub async fn complete_launch(run: &Run, hook: &LaunchHook, stages: &Stages) -> anyhow::Result<()> {
    let (ec2, instance) = (&run.identified.ec2, &run.facts().instance_id);
    let name = names::WARM_POOL_HOOK;
    let mut last = Ok(false);
    for seconds in hook_pauses() {
        last = ec2
            .complete_lifecycle_action(&hook.scaling_group, name, instance)
            .await;
        match &last {
            Ok(true) => break,
            Ok(false) => {}
            Err(failure) => (stages.attempt_logger())(&failure.to_string()),
        }
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
    let group = &hook.scaling_group;
    let completed =
        last.with_context(|| format!("could not complete the hook {name} of {group}"))?;
    if !completed {
        (stages.note_logger())("Auto Scaling does not wait for this instance");
    }
    if hook.warming {
        return Ok(());
    }
    Ok(write_secret_file(&run.paths.in_service(), b"")?)
}
