//! Checks that an instance, as EC2 describes it, runs and belongs to this cluster, and finds its group.

use super::Refusal;
use crate::names::{CLUSTER_TAG, INSTANCE_GROUP_TAG, ownership_tag};
use std::collections::BTreeMap;

/// An instance as EC2 describes it.
#[derive(Clone, Copy, Debug)]
pub struct SeenInstance<'a> {
    /// State: `pending`, `running`, ...
    pub state: &'a str,
    /// Tags of the instance.
    pub tags: &'a BTreeMap<String, String>,
}

/// The name of the instance group, if the instance runs and belongs to the cluster. `seen` is `None` if EC2 does not know it.
pub fn check_instance<'a>(
    instance: &str,
    seen: Option<SeenInstance<'a>>,
    cluster: &str,
) -> Result<&'a str, Refusal> {
    let seen = seen.ok_or_else(|| Refusal::UnknownInstance {
        instance: instance.to_owned(),
    })?;
    if seen.state != "running" {
        return Err(Refusal::NotRunning {
            state: seen.state.to_owned(),
        });
    }
    let named = seen.tags.get(CLUSTER_TAG).map(String::as_str);
    let group = seen.tags.get(INSTANCE_GROUP_TAG);
    match (named, group) {
        (Some(named), Some(group))
            if named == cluster && seen.tags.contains_key(&ownership_tag(cluster)) =>
        {
            Ok(group)
        }
        _ => Err(Refusal::OtherClusterInstance {
            cluster: cluster.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags_of(cluster: &str) -> BTreeMap<String, String> {
        [
            (CLUSTER_TAG.to_owned(), cluster.to_owned()),
            (ownership_tag(cluster), "owned".to_owned()),
            (INSTANCE_GROUP_TAG.to_owned(), "nodes".to_owned()),
        ]
        .into()
    }

    fn check_with_state(state: &str, tags: &BTreeMap<String, String>) -> Result<String, Refusal> {
        let seen = SeenInstance { state, tags };
        check_instance("i-1", Some(seen), "a.example.com").map(str::to_owned)
    }

    #[test]
    fn only_a_running_instance_with_every_tag_of_this_cluster_has_a_group() {
        let own = tags_of("a.example.com");
        assert_eq!(check_with_state("running", &own), Ok("nodes".to_owned()));
        for state in ["pending", "shutting-down", "terminated", "stopped"] {
            assert!(matches!(
                check_with_state(state, &own),
                Err(Refusal::NotRunning { .. })
            ));
        }
        let foreign = Refusal::OtherClusterInstance {
            cluster: "a.example.com".to_owned(),
        };
        assert_eq!(
            check_with_state("running", &tags_of("b.example.com")),
            Err(foreign.clone())
        );
        for missing in own.keys() {
            let mut tags = own.clone();
            tags.remove(missing);
            assert_eq!(check_with_state("running", &tags), Err(foreign.clone()));
        }
        assert!(matches!(
            check_instance("i-1", None, "a.example.com"),
            Err(Refusal::UnknownInstance { .. })
        ));
    }
}
