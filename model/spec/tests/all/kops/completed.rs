//! Completed specs.

use super::compare::{Difference, compare, count_values};
use super::read_text;
use super::terraform::OUR_ISSUERS;
use node::yaml::to_yaml;
use serde_json::Value;
use spec::api::Cluster;
use std::path::Path;

/// The differences, how many values kOps' has, and how many of them ours has too.
pub fn compare_completed(ours: &Cluster, case: &Path) -> (Vec<Difference>, usize, usize) {
    let ours = to_yaml(ours).expect("YAML").replace(OUR_ISSUERS, "");
    // The stand-in for kOps' store ([`super::read_case`]).
    let theirs = read_text(&case.join("completed.yaml")).replace("memfs://", "s3://state/");
    let parse = |text: &str| -> Value { serde_saphyr::from_str(text).expect("YAML") };
    let (ours, theirs) = (parse(&ours), parse(&theirs));
    let found = compare("Cluster", Some(&ours), Some(&theirs));
    let all = count_values(&theirs);
    let others: usize = found
        .iter()
        .filter_map(|one| one.theirs.as_ref())
        .map(count_values)
        .sum();
    (found, all, all - others)
}
