//! Tags of cloud resources, labels and taints of Nodes.

use std::collections::BTreeMap;

use crate::api::cluster::ClusterSpec;
use crate::api::instance_group::InstanceGroupSpec;
use crate::expand::installs_ebs_csi_driver;
use crate::read::{Problem, path};

use super::text::{check_one_of, check_unique, is_label_value, is_qualified_name};

/// Tags by which kctl finds what is its own, exactly or by prefix.
const OWN_TAGS: &[&str] = &[
    "Name",
    "KubernetesCluster",
    "kubernetes.io/cluster/",
    "k8s.io/role/",
    "k8s.io/etcd/",
];

pub fn check_group(spec: &InstanceGroupSpec, problems: &mut Vec<Problem>) {
    check_cloud_labels("spec.cloudLabels", &spec.cloud_labels, problems);
    for (name, value) in &spec.node_labels {
        let path = path::field_path("spec.nodeLabels", name);
        if !is_qualified_name(name) {
            let problem = Problem::error(&path, format!("\"{name}\" is not a name of a label"));
            problems.push(
                problem.hint("write NAME or DOMAIN/NAME, 63 letters, digits, -, _ and . at most"),
            );
        }
        if !is_label_value(value) {
            let problem = Problem::error(&path, format!("\"{value}\" is not a value of a label"));
            problems.push(
                problem.hint(
                    "use up to 63 letters, digits, -, _ and ., a letter or digit at both ends",
                ),
            );
        }
    }
    check_taints("spec.taints", &spec.taints, problems);
}

/// Tags of volumes with which the EBS CSI driver does not start (`validateExtraTags` in its `pkg/driver/validation.go`). It gets all of
/// them as one text, `key=value,key=value`.
pub fn check_volume_labels(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    if !installs_ebs_csi_driver(spec) {
        return;
    }
    for key in spec.cloud_labels.keys() {
        if key.starts_with("kubernetes.io") || key.contains('=') {
            let problem = Problem::error(
                path::field_path("spec.cloudLabels", key),
                "the EBS CSI driver does not start with a tag that begins with kubernetes.io or has = in its key",
            );
            problems.push(problem.hint(
                "use another name, or install the driver yourself: spec.cloudConfig.awsEBSCSIDriver.managed: false",
            ));
        }
    }
}

/// AWS' rules of tags.
pub fn check_cloud_labels(
    at: &str,
    labels: &BTreeMap<String, String>,
    problems: &mut Vec<Problem>,
) {
    for (key, value) in labels {
        let path = path::field_path(at, key);
        if key.is_empty() || key.chars().count() > 128 {
            let problem = Problem::error(
                &path,
                format!("a key of {} characters", key.chars().count()),
            );
            problems.push(problem.hint("AWS takes keys of 1 to 128 characters"));
        } else if key.to_lowercase().starts_with("aws:") {
            let problem = Problem::error(&path, "keys that begin with aws: belong to AWS");
            problems.push(problem.hint("use another name"));
        } else if OWN_TAGS
            .iter()
            .any(|own| key == own || own.ends_with('/') && key.starts_with(own))
        {
            let problem = Problem::error(
                &path,
                "kctl finds the cluster's resources by this tag and sets it itself",
            );
            problems.push(problem.hint("remove it, or use another name"));
        }
        if value.chars().count() > 256 {
            let problem = Problem::error(
                &path,
                format!("a value of {} characters", value.chars().count()),
            );
            problems.push(problem.hint("AWS takes values of up to 256 characters"));
        }
        if !key.chars().chain(value.chars()).all(is_taggable) {
            let problem = Problem::error(
                &path,
                "the tag has characters that some services of AWS refuse",
            );
            problems.push(problem.hint("use letters, digits, spaces and _ . : / = + - @"));
        }
    }
    // 50 tags per resource, of which kctl needs up to 10.
    if labels.len() > 40 {
        let problem = Problem::error(
            at,
            format!(
                "{} tags; with the cluster's own a resource would have more than 50",
                labels.len()
            ),
        );
        problems.push(problem.hint("use 40 at most"));
    }
}

fn is_taggable(c: char) -> bool {
    c.is_alphanumeric()
        || c.is_whitespace() && c != '\n'
        || matches!(c, '_' | '.' | ':' | '/' | '=' | '+' | '-' | '@')
}

/// `key=value:effect` or `key:effect`.
pub fn check_taints(at: &str, taints: &[String], problems: &mut Vec<Problem>) {
    for (index, taint) in taints.iter().enumerate() {
        let path = path::element_path(at, index);
        let Some((label, effect)) = taint.rsplit_once(':') else {
            let problem = Problem::error(path, format!("\"{taint}\" is not a taint"));
            problems.push(problem.hint("write KEY=VALUE:EFFECT, such as dedicated=gpu:NoSchedule"));
            continue;
        };
        check_one_of(
            &path,
            effect,
            &["NoSchedule", "PreferNoSchedule", "NoExecute"],
            problems,
        );
        let (key, value) = label.split_once('=').unwrap_or((label, ""));
        if !is_qualified_name(key) || !is_label_value(value) {
            let problem = Problem::error(
                path,
                format!("\"{label}\" is not a key and value of a taint"),
            );
            problems.push(problem.hint("write KEY=VALUE:EFFECT, such as dedicated=gpu:NoSchedule"));
        }
    }
    let keyed = taints.iter().enumerate().filter_map(|(index, taint)| {
        let (label, effect) = taint.rsplit_once(':')?;
        let key = label.split_once('=').map_or(label, |(key, _)| key);
        Some((path::element_path(at, index), format!("{key}:{effect}")))
    });
    let keyed: Vec<(String, String)> = keyed.collect();
    check_unique(
        keyed
            .iter()
            .map(|(path, taint)| (path.clone(), taint.as_str())),
        problems,
    );
}
