//! Features that a spec asks for, or that kOps provides by default, and that kctl does not implement yet. `kctl update` and
//! `kctl validate` warn about each. The change that implements a feature removes its entry here.

use crate::api::InstanceGroup;
use serde::Serialize;

/// The page with a workaround for each feature.
pub const PAGE: &str = "docs/not-yet.md";

/// A feature that kctl does not implement yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotYet {
    /// Its heading on the page, one word.
    pub topic: &'static str,
    pub message: String,
}

/// The features that a spec asks for without effect. Takes the spec as written or as completed.
pub fn not_yet(groups: &[InstanceGroup]) -> Vec<NotYet> {
    let mut all = Vec::new();
    let scaled = groups
        .iter()
        .filter(|group| group.spec.autoscale == Some(true));
    let scaled: Vec<&str> = scaled.map(InstanceGroup::name).collect();
    if !scaled.is_empty() {
        let names = scaled.join(", ");
        all.push(not_yet_item(
            "autoscaling",
            &format!(
                "the cluster autoscaler is not installed yet: autoscale of {names} has no effect"
            ),
        ));
    }
    all
}

fn not_yet_item(topic: &'static str, message: &str) -> NotYet {
    NotYet {
        topic,
        message: message.to_owned(),
    }
}
