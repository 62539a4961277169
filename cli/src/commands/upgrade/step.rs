//! What `kctl upgrade` writes to the spec: another version, the end of an upgrade that can be taken back, or the version before it.

use crate::args::{Edit, EditCluster, EditWhat, Setters, Upgrade};
use crate::error::{CommandError, ErrorKind};
use spec::api::Cluster;
use spec::upgrade::{next_version, step_problem, version_before};
use spec::validate::versions::Version;

/// A change of the versions in the spec.
#[derive(Clone, Debug)]
pub struct Step {
    pub kind: StepKind,
    /// The version that API servers serve before it.
    pub from: Version,
    /// The version that they serve after it; of [`StepKind::Emulate`], the one after the emulation.
    pub to: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// To a version that is served at once.
    Upgrade,
    /// To the next minor, while the one before is emulated.
    Emulate,
    /// The emulation ends.
    Finalize,
    /// Back to the version that is emulated.
    Rollback,
}

/// The step that the options ask for; `None` if there is nothing newer. `last`: the spec as the last update completed it, for a rollback.
pub fn choose_step(
    cluster: &Cluster,
    last: Option<&Cluster>,
    args: &Upgrade,
) -> Result<Option<Step>, CommandError> {
    let current = current_version(cluster)?;
    let given = last.and_then(|last| version_before(&last.spec));
    // Finalized in the spec alone: all API servers serve the minor before.
    let given = given.filter(|before| before.minor < current.minor);
    let (kind, from, to) = match (version_before(&cluster.spec), given) {
        (None, Some(before)) if args.rollback => (StepKind::Rollback, current, before),
        (None, _) if args.finalize || args.rollback => {
            return Err(refuse_end(cluster.name(), &current, args));
        }
        (None, _) => {
            let Some(to) = choose_version(&current, args)? else {
                return Ok(None);
            };
            let kind = match to.minor == current.minor || args.no_emulation {
                true => StepKind::Upgrade,
                false => StepKind::Emulate,
            };
            (kind, current, to)
        }
        (Some(before), _) if args.finalize => (StepKind::Finalize, before, current),
        (Some(before), _) if args.rollback => (StepKind::Rollback, current, before),
        (Some(before), _) => return Err(refuse_next(cluster.name(), &before, &current)),
    };
    Ok(Some(Step { kind, from, to }))
}

/// The version in the spec.
pub fn current_version(cluster: &Cluster) -> Result<Version, CommandError> {
    let text = cluster.spec.kubernetes_version.as_deref();
    text.and_then(Version::parse).ok_or_else(|| {
        CommandError::usage_error(
            "the spec names no Kubernetes version",
            format!(
                "set it to what the cluster runs: kctl edit cluster {} --set spec.kubernetesVersion=VERSION",
                cluster.name()
            ),
        )
    })
}

/// The version to go to; `None` if there is nothing newer.
fn choose_version(current: &Version, args: &Upgrade) -> Result<Option<Version>, CommandError> {
    let Some(text) = &args.kubernetes_version else {
        return Ok(next_version(current));
    };
    let Some(target) = Version::parse(text) else {
        return Err(CommandError::usage_error(
            format!("--kubernetes-version: {text:?} is not a version"),
            "write it as 1.36.3",
        ));
    };
    match step_problem(current, &target) {
        None => Ok(Some(target)),
        Some(problem) => Err(CommandError::usage_error(
            format!("--kubernetes-version {target}: {problem}"),
            match next_version(current) {
                Some(next) => format!("the next version is {next}"),
                None => "there is nothing newer that this kctl knows".to_owned(),
            },
        )),
    }
}

fn refuse_end(name: &str, current: &Version, args: &Upgrade) -> CommandError {
    let minor = current.minor;
    let message = if args.rollback {
        format!(
            "{name} has no upgrade that can be taken back: its API servers serve Kubernetes 1.{minor}, and may have stored what an older \
             minor cannot read"
        )
    } else {
        format!(
            "{name} has no upgrade to finalize: its API servers serve Kubernetes 1.{minor} already"
        )
    };
    CommandError::from_message(
        ErrorKind::Precondition,
        message,
        format!("kctl upgrade {name}    shows the next version"),
    )
}

fn refuse_next(name: &str, before: &Version, current: &Version) -> CommandError {
    CommandError::from_message(
        ErrorKind::Precondition,
        format!("the upgrade of {name} from {before} to {current} is not finalized"),
        format!("kctl upgrade {name} --finalize    shows whether the cluster is ready for that"),
    )
    .with_hint(format!(
        "kctl upgrade {name} --rollback    goes back to {before}"
    ))
}

impl Step {
    /// True if data may be stored that the minor before cannot read, now or once the step is finalized.
    pub fn needs_snapshots(&self) -> bool {
        self.kind != StepKind::Rollback && self.from.minor != self.to.minor
    }

    /// The options of `kctl upgrade` for this step.
    pub fn list_options(&self) -> String {
        let to = &self.to;
        match self.kind {
            StepKind::Upgrade if self.from.minor != to.minor => {
                format!("--kubernetes-version {to} --no-emulation")
            }
            StepKind::Upgrade | StepKind::Emulate => format!("--kubernetes-version {to}"),
            StepKind::Finalize => "--finalize".to_owned(),
            StepKind::Rollback => "--rollback".to_owned(),
        }
    }

    /// What `--yes` does.
    pub fn describe_effect(&self) -> String {
        let (from, to) = (&self.from, &self.to);
        match self.kind {
            StepKind::Upgrade => format!("writes {to} to the spec"),
            StepKind::Emulate => format!(
                "writes {to} to the spec; its control planes emulate 1.{} until the upgrade is finalized",
                from.minor
            ),
            StepKind::Finalize => {
                format!(
                    "ends the emulation of 1.{} in the spec; after the next update there is no way back",
                    from.minor
                )
            }
            StepKind::Rollback => format!("writes {to} to the spec again"),
        }
    }

    /// What `kctl reconcile` then does.
    pub fn describe_follow_up(&self) -> &'static str {
        match self.kind {
            StepKind::Upgrade | StepKind::Finalize => {
                "updates AWS, replaces the control planes, then the other instances"
            }
            StepKind::Emulate | StepKind::Rollback => {
                "updates AWS, and replaces the control planes"
            }
        }
    }

    /// The changes of the spec.
    pub fn build_setters(&self) -> Setters {
        let version = format!("spec.kubernetesVersion={}", self.to);
        let ended = || vec!["spec.kubernetesUpgrade".to_owned()];
        let (set, unset) = match self.kind {
            StepKind::Upgrade => (vec![version], Vec::new()),
            StepKind::Emulate => {
                let from = format!("spec.kubernetesUpgrade.from={}", self.from);
                (vec![version, from], Vec::new())
            }
            StepKind::Finalize => (Vec::new(), ended()),
            StepKind::Rollback => (vec![version], ended()),
        };
        Setters { set, unset }
    }

    /// The edit of the spec.
    pub fn build_edit(&self, name: &str) -> Edit {
        Edit {
            what: EditWhat::Cluster(EditCluster {
                cluster: Some(name.to_owned()),
                setters: self.build_setters(),
                allow_unsupported: false,
            }),
        }
    }
}
