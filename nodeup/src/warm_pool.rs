//! Warm pools. An instance that is launched into one prepares everything, pulls images, and does not join: Auto Scaling stops it. When
//! it is started again, it joins with what it has. In both boots it completes the hook at which Auto Scaling waits.

use crate::retry::{AttemptError, AttemptLog, repeat_until_final, unlimited_backoff};
use crate::run::Run;
use crate::stage::Stages;
use anyhow::{Context, anyhow};
use host::{Host, read_text_file, write_secret_file};
use node::config::NodeConfig;
use node::host::HostResource;
use node::names;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

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
/// The target state of an instance that its group counts.
const IN_SERVICE: &str = "InService";
/// How often an instance that has prepared asks whether it goes into service after all.
const QUESTIONS: Duration = Duration::from_secs(15);
/// How often the end of cloud-init's scripts is looked for.
const LOOKS: Duration = Duration::from_secs(2);
/// As long as AWS waits at a hook that says nothing else. Without a hook nobody waits, and no pull may last for ever.
const SECONDS_WITHOUT_HOOK: u64 = 600;
/// The exit code of `timeout` when it ended the program.
const ENDED_BY_TIMEOUT: i32 = 124;
/// The unit that runs the scripts of user data.
const SCRIPTS: &str = "cloud-final.service";
/// The unit that makes an instance a Node.
const KUBELET: &str = "kubelet.service";

/// The launch of an instance whose group has a warm pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Name of the instance's Auto Scaling group.
    pub scaling_group: String,
    /// NodeConfig says that Auto Scaling waits at a hook. It may wait without that: the hook may be newer than the instance.
    pub has_hook: bool,
    /// The instance goes to the pool: Auto Scaling stops it.
    pub warming: bool,
}

/// What Auto Scaling is making of the instance; `None` if it belongs to no group, or is so new that nothing is known.
async fn target_state(run: &Run) -> anyhow::Result<Option<String>> {
    let state = run.identified.imds.get(TARGET_STATE).await;
    let state = state.context("could not ask whether the instance goes to the warm pool")?;
    Ok(state.map(|state| state.trim().to_owned()))
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
        if let Some(state) = target_state(run).await? {
            return Ok(state.starts_with("Warmed:"));
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

/// When the preparations of a run that began at `began` end, ready or not: half of the time that Auto Scaling waits is left for what
/// came before nodeup, and to say so.
pub fn preparation_end(config: &NodeConfig, began: Instant) -> Instant {
    let pool = config.warm_pool.as_ref();
    let waits = pool.and_then(|pool| pool.hook_seconds);
    began + Duration::from_secs(waits.unwrap_or(SECONDS_WITHOUT_HOOK)) / 2
}

/// Pulls the images that the instance will need as a node. One that cannot be pulled, or not in time, is reported, and pulled by
/// kubelet later.
pub async fn pull_images(run: &Run, config: &NodeConfig, end: Instant, stages: &Stages) {
    let host = Host::new(run.paths.root(), run.system.clone());
    let images = config.warm_pool.iter().flat_map(|pool| &pool.images);
    for image in images {
        let pace = unlimited_backoff().with_max_times(TRIES_OF_IMAGE - 1);
        let pulled = repeat_until_final(pace, &|_| (), || async { pull_image(&host, image, end) });
        if let Err(error) = pulled.await {
            (stages.attempt_logger())(&format!("{image} is not pulled in advance: {error:#}"));
        }
    }
}

/// Through the container runtime interface, with containerd's mirrors. crictl itself waits for ever.
fn pull_image(host: &Host, image: &str, end: Instant) -> Result<(), AttemptError> {
    let left = end.saturating_duration_since(Instant::now()).as_secs();
    if left == 0 {
        let error = anyhow!("the time to prepare is over");
        return Err(AttemptError::Final(error));
    }
    let arguments = ["-k", "5", &left.to_string(), "crictl", "pull", image];
    let ran = host.run_program("timeout", &arguments);
    let output = ran.map_err(|error| AttemptError::Passing(error.into()))?;
    if output.is_success() {
        return Ok(());
    }
    let error = match output.code {
        Some(ENDED_BY_TIMEOUT) => anyhow!("crictl was not done after {left} s"),
        _ => anyhow!("crictl: {}", output.error_output()),
    };
    Err(AttemptError::Passing(error))
}

/// Waits until cloud-init has run the scripts of user data, beside which nodeup runs in the first boot: they would not run again. In
/// later boots cloud-init may wait for nodeup's end, and has no script to run.
pub async fn wait_for_scripts(run: &Run, end: Instant, stages: &Stages) -> anyhow::Result<()> {
    let host = Host::new(run.paths.root(), run.system.clone());
    while !run.paths.boot_finished().exists() {
        let output = host.run_program("systemctl", &["show", "--property=ActiveState", SCRIPTS])?;
        let mut lines = output.stdout.lines();
        if !lines.any(|line| line == "ActiveState=activating") {
            break;
        }
        if Instant::now() >= end {
            (stages.attempt_logger())("scripts of user data still run: they may be cut off");
            break;
        }
        tokio::time::sleep(LOOKS).await;
    }
    Ok(())
}

/// The launch that the instance has to complete; `None`: there is none, or it has been completed.
pub fn begun_launch(
    run: &Run,
    config: &NodeConfig,
    warming: bool,
) -> anyhow::Result<Option<Launch>> {
    let Some(pool) = config.warm_pool.as_ref().filter(|_| !run.certificates) else {
        return Ok(None);
    };
    if !warming && read_text_file(&run.paths.in_service())?.is_some() {
        return Ok(None);
    }
    Ok(Some(Launch {
        scaling_group: names::autoscaling_group(&config.cluster, &config.group, config.role),
        has_hook: pool.hook_seconds.is_some(),
        warming,
    }))
}

/// Pauses between attempts to complete the hook, in seconds, five minutes in all. nodeup may be faster than Auto Scaling, which comes
/// to the hook some time after EC2 says that the instance runs.
fn hook_pauses() -> impl Iterator<Item = u64> {
    [2, 4, 8].into_iter().chain(std::iter::repeat_n(15, 19))
}

/// Tells Auto Scaling that the instance is ready, if it waits to hear that. An instance that has prepared for the pool says nothing once
/// it is to enter service: it is no Node yet.
pub async fn complete_launch(run: &Run, launch: &Launch, stages: &Stages) -> anyhow::Result<()> {
    let (ec2, instance) = (&run.identified.ec2, &run.facts().instance_id);
    let (group, name) = (&launch.scaling_group, names::WARM_POOL_HOOK);
    let mut last = Ok(false);
    for seconds in hook_pauses() {
        if launch.warming && target_state(run).await?.as_deref() == Some(IN_SERVICE) {
            return Ok(());
        }
        last = ec2.complete_lifecycle_action(group, name, instance).await;
        match &last {
            Ok(true) => break,
            Ok(false) => {}
            Err(failure) => (stages.attempt_logger())(&failure.to_string()),
        }
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
    // Without a hook in NodeConfig most likely there is none, and perhaps no permission: what was tried is in the journal.
    if !launch.has_hook && last.is_err() {
        return Ok(());
    }
    let completed =
        last.with_context(|| format!("could not complete the hook {name} of {group}"))?;
    if !completed {
        (stages.note_logger())("Auto Scaling does not wait for this instance");
    }
    if completed && !launch.warming {
        write_secret_file(&run.paths.in_service(), b"")?;
    }
    Ok(())
}

/// Asks until Auto Scaling stops the instance, or wants it in service: its state may be older than its start.
pub async fn wait_in_pool(run: &Run, stages: &Stages) {
    loop {
        match target_state(run).await {
            Ok(Some(state)) if state == IN_SERVICE => return,
            Ok(_) => {}
            Err(error) => (stages.attempt_logger())(&format!("{error:#}")),
        }
        tokio::time::sleep(QUESTIONS).await;
    }
}
