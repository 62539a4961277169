//! A plan in a file: what it would do, for whom, and what it was made from, so that it can be reviewed, kept and
//! handed to `kctl update --plan`. It is never what is applied: whoever applies it plans anew, and goes on only if
//! that comes to the same ([`stale`]).

mod file;
mod stale;

pub use file::{read, write};
pub use stale::{AppliedBy, Changed, Now, Stale, stale};

use crate::error::{CommandError, Context};
use crate::state::ClusterState;
use cloud::Cloud;
use engine::{Id, Plan, Resource, Snapshot};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The version of the file. Additions keep it; anything else raises it.
pub const FORMAT: u32 = 1;

/// What the file says it is.
const KIND: &str = "kctl-plan";

/// A plan as it is kept.
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
    /// The cluster.
    pub cluster: String,
    /// Twelve digits.
    pub account: String,
    /// `eu-west-1`.
    pub region: String,
    /// The state store.
    pub store: String,
    /// Whether it was made without trust in digests; it is compared with a plan that is made in the same way.
    pub refresh: bool,
    /// Whether fields that kctl does not act on were accepted; as above.
    pub allow_unsupported: bool,
    /// Whether workers get the spec's version whatever the control plane runs; as above.
    #[serde(default)]
    pub ignore_kubelet_version_skew: bool,
    /// What it was made from.
    pub made_from: MadeFrom,
    /// Texts in the plan that will be others once the cluster's first certificate is made, which a plan does not do.
    pub stand_ins: Vec<String>,
    /// The plan.
    pub plan: Plan<Cloud>,
    /// Over all the rest.
    sha256: String,
}

/// What a plan was made from. Says what moved when the plan no longer applies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeFrom {
    /// The spec's objects in the store, by key: sha256 of their texts.
    pub spec: BTreeMap<String, String>,
    /// sha256 of the spec with every decision written down.
    pub completed: String,
    /// The observed objects that the steps are about or refer to: AWS' ids of them.
    pub observed: BTreeMap<Id, String>,
}

impl MadeFrom {
    /// Of a plan that was made from this.
    pub fn of(
        state: &ClusterState,
        completed: &str,
        plan: &Plan<Cloud>,
        seen: &Snapshot<Cloud>,
    ) -> Self {
        let groups = state.groups.iter();
        let groups = groups.map(|group| (state.keys.group(group.object.name()), &group.text));
        let spec = std::iter::once((state.keys.config(), &state.cluster.text)).chain(groups);
        Self {
            spec: spec
                .map(|(key, text)| (key, sha256(text.as_bytes())))
                .collect(),
            completed: sha256(completed.as_bytes()),
            observed: observed(plan, seen),
        }
    }
}

fn observed(plan: &Plan<Cloud>, seen: &Snapshot<Cloud>) -> BTreeMap<Id, String> {
    let physical: BTreeMap<Id, &String> = seen
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

/// Hex.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// What is saved, besides the plan.
#[derive(Clone, Debug)]
pub struct Circumstances {
    /// When (RFC 3339).
    pub made: String,
    /// By whom.
    pub by: String,
    /// The cluster, its account and its region.
    pub target: crate::planned::Target,
    /// The state store.
    pub store: String,
    /// Without trust in digests.
    pub refresh: bool,
    /// With fields that kctl does not act on.
    pub allow_unsupported: bool,
    /// Whatever version the control plane runs.
    pub ignore_kubelet_version_skew: bool,
}

impl SavedPlan {
    /// The plan as it is kept.
    pub fn of(
        plan: &Plan<Cloud>,
        made_from: MadeFrom,
        stand_ins: &[String],
        circumstances: Circumstances,
    ) -> Result<Self, CommandError> {
        let Circumstances {
            made,
            by,
            target,
            store,
            refresh,
            allow_unsupported,
            ignore_kubelet_version_skew,
        } = circumstances;
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
        let json = serde_json::to_value(&saved).failed(
            "the plan has no JSON form",
            "report this: it is a defect of kctl",
        )?;
        saved.sha256 = file::digest(&json);
        Ok(saved)
    }

    /// Names the plan: the digest over all of it.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }
}
