//! Rules of kindnet.

use crate::api::cluster::ClusterSpec;
use crate::read::Problem;

/// The minor version whose flags and image kctl knows.
const MINOR: &str = "v1.0.";

pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let networking = spec.networking.as_ref();
    let kindnet = networking.and_then(|networking| networking.kindnet.as_ref());
    let version = kindnet.and_then(|kindnet| kindnet.version.as_deref());
    if let Some(version) = version.filter(|version| !version.starts_with(MINOR)) {
        let problem = Problem::error(
            "spec.networking.kindnet.version",
            format!("kctl installs kindnet {MINOR}x, not {version}"),
        );
        problems.push(problem.hint("remove it to get the version that belongs to this kctl"));
    }
}
