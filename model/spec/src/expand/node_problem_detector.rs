//! `spec.nodeProblemDetector`.

use super::assets::registry_image;
use super::fill::fill;
use crate::api::addons::NodeProblemDetectorConfig;
use crate::api::cluster::ClusterSpec;
use full::NodeProblemDetector;

/// Fills in image, requests and limits, as in kOps.
pub(super) fn complete_node_problem_detector(spec: &mut ClusterSpec) {
    let Some(detector) = &mut spec.node_problem_detector else {
        return;
    };
    let image = registry_image("node-problem-detector/node-problem-detector", "v0.8.18");
    fill(&mut detector.enabled, false);
    fill(&mut detector.image, image);
    fill(&mut detector.cpu_request, "20m");
    fill(&mut detector.cpu_limit, "200m");
    fill(&mut detector.memory_request, "100Mi");
    fill(&mut detector.memory_limit, "100Mi");
}

/// The node problem detector of a completed spec; `None` if it is off.
pub(super) fn full_node_problem_detector(spec: &ClusterSpec) -> Option<NodeProblemDetector> {
    let NodeProblemDetectorConfig {
        enabled,
        image,
        memory_request,
        cpu_request,
        memory_limit,
        cpu_limit,
    } = spec.node_problem_detector.clone()?;
    (enabled == Some(true)).then(|| NodeProblemDetector {
        image: image.unwrap_or_default(),
        cpu_request,
        cpu_limit,
        memory_request,
        memory_limit,
    })
}
