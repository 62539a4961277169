//! The node problem detector: reports what it finds in the logs of a node as conditions of its Node and as events.

use super::manifest::AddonName;
use super::{Addon, Error};
use crate::FullSpec;
use serde::{Deserialize, Serialize};
use templates::Template;

/// Settings of the node problem detector: `spec.nodeProblemDetector`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeProblemDetector {
    pub image: String,
    pub cpu_request: Option<String>,
    pub cpu_limit: Option<String>,
    pub memory_request: Option<String>,
    pub memory_limit: Option<String>,
}

impl Template for NodeProblemDetector {
    const NAME: &'static str = "node_problem_detector/manifest.yaml.hbs";
    const SOURCE: &'static str = include_str!("node_problem_detector/manifest.yaml.hbs");
}

pub(super) fn addon(full: &FullSpec) -> Result<Option<Addon>, Error> {
    let Some(detector) = &full.addons.node_problem_detector else {
        return Ok(None);
    };
    let named = AddonName::new("node-problem-detector.addons.k8s.io", "k8s-1.17");
    let manifest = named.render_template(detector)?;
    named.make_addon(full, &[manifest]).map(Some)
}
