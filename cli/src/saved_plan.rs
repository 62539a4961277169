//! A plan in a file, with its cluster and digests of its inputs, for review and `kctl update --plan`. The file itself is never
//! applied: kctl plans again and applies the new plan only if it is the same ([`compare_plans`]).

mod drift;
mod file;

pub use drift::{AppliedBy, ChangedValue, CurrentPlan, PlanDrift, compare_plans};
pub use file::{read, write};

use crate::error::{CommandError, ErrorContext};
use crate::state::ClusterState;
use cloud::Cloud;
use engine::{Id, Plan, Resource, Snapshot};
use node::digest::sha256_hex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the file format. Additions keep it; any other change raises it.
pub const FORMAT: u32 = 1;

const KIND: &str = "kctl-plan";

/// A plan in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedPlan {
    kind: String,
    format: u32,
    /// The version of the kctl that made it.
    pub kctl: String,
    /// When it was made (RFC 3339).
    pub made: String,
    /// Who made it: `user@host`.
    pub by: String,
    /// Name of the cluster.
    pub cluster: String,
    /// AWS account id: twelve digits.
    pub account: String,
    /// `eu-west-1`.
    pub region: String,
    /// URL of the state store.
    pub store: String,
    /// Whether it was made with `--refresh`. It is compared with a plan that is made with the same options.
    pub refresh: bool,
    /// Whether it was made with `--allow-unsupported`.
    pub allow_unsupported: bool,
    /// Whether it was made with `--ignore-kubelet-version-skew`.
    #[serde(default)]
    pub ignore_kubelet_version_skew: bool,
    /// Digests of what it was made from.
    pub made_from: PlanInputs,
    /// Placeholder texts in the plan, which change once the cluster's first certificate exists.
    pub stand_ins: Vec<String>,
    pub plan: Plan<Cloud>,
    /// sha256 of all other fields.
    sha256: String,
}

/// Digests of what a plan was made from. They explain why a plan no longer applies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanInputs {
    /// sha256 of the spec's objects in the store, by key.
    pub spec: BTreeMap<String, String>,
    /// sha256 of the spec with all defaults filled in.
    pub completed: String,
    /// AWS ids of the resources that the steps change or refer to.
    pub observed: BTreeMap<Id, String>,
}

impl PlanInputs {
    /// Collects the digests for a plan.
    pub fn new(
        state: &ClusterState,
        completed: &str,
        plan: &Plan<Cloud>,
        snapshot: &Snapshot<Cloud>,
    ) -> Self {
        let groups = state.groups.iter();
        let groups = groups.map(|group| (state.keys.group(group.object.name()), &group.text));
        let spec = std::iter::once((state.keys.config(), &state.cluster.text)).chain(groups);
        Self {
            spec: spec.map(|(key, text)| (key, sha256_hex(text))).collect(),
            completed: sha256_hex(completed),
            observed: observed_ids(plan, snapshot),
        }
    }
}

fn observed_ids(plan: &Plan<Cloud>, snapshot: &Snapshot<Cloud>) -> BTreeMap<Id, String> {
    let physical: BTreeMap<Id, &String> = snapshot
        .items
        .iter()
        .map(|item| (item.resource.id(), &item.physical))
        .collect();
    let mut found = BTreeMap::new();
    for step in plan.steps.values() {
        if let Some(before) = &step.before {
            found.insert(step.id.clone(), before.physical.clone());
        }
        for need in step.after.iter().flat_map(Resource::needs) {
            if let Some(physical) = physical.get(&need) {
                found.entry(need).or_insert_with(|| (*physical).clone());
            }
        }
    }
    found
}

/// When, by whom and with which options a plan was made.
#[derive(Clone, Debug)]
pub struct PlanOrigin {
    /// Time in RFC 3339.
    pub made: String,
    /// `user@host`.
    pub by: String,
    /// The cluster, its account and its region.
    pub target: crate::plan_target::ClusterTarget,
    /// URL of the state store.
    pub store: String,
    /// Made with `--refresh`.
    pub refresh: bool,
    /// Made with `--allow-unsupported`.
    pub allow_unsupported: bool,
    /// Made with `--ignore-kubelet-version-skew`.
    pub ignore_kubelet_version_skew: bool,
}

impl SavedPlan {
    /// Makes the content of the file.
    pub fn new(
        plan: &Plan<Cloud>,
        made_from: PlanInputs,
        stand_ins: &[String],
        origin: PlanOrigin,
    ) -> Result<Self, CommandError> {
        let PlanOrigin {
            made,
            by,
            target,
            store,
            refresh,
            allow_unsupported,
            ignore_kubelet_version_skew,
        } = origin;
        let mut saved = Self {
            kind: KIND.to_owned(),
            format: FORMAT,
            kctl: env!("CARGO_PKG_VERSION").to_owned(),
            made,
            by,
            cluster: target.cluster,
            account: target.account,
            region: target.region,
            store,
            refresh,
            allow_unsupported,
            ignore_kubelet_version_skew,
            made_from,
            stand_ins: stand_ins.to_vec(),
            plan: plan.clone(),
            sha256: String::new(),
        };
        let json = serde_json::to_value(&saved).or_failed(
            "the plan has no JSON form",
            "report this: it is a defect of kctl",
        )?;
        saved.sha256 = file::plan_digest(&json);
        Ok(saved)
    }

    /// The digest that identifies the plan.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }
}
