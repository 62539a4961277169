//! A member's manifest on its volume: one that founded its cluster says at the next start that the cluster exists.

use super::{Content, Inside, Log};
use crate::manifests::Pod;
use crate::yaml::to_yaml;

const STATE: &str = "ETCD_INITIAL_CLUSTER_STATE";
const TOKEN: &str = "ETCD_INITIAL_CLUSTER_TOKEN";
const MEMBERS: &str = "ETCD_INITIAL_CLUSTER";
const NAME: &str = "ETCD_NAME";

/// Why a manifest could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It is not the YAML of a pod.
    #[error("the manifest on the volume is no pod")]
    Unreadable(#[source] Box<serde_saphyr::Error>),
    /// It has no YAML form.
    #[error("could not write the manifest")]
    Unwritable(#[from] crate::yaml::Error),
}

/// True if the member founds nothing any more: etcd has written its log there, or the marker says that it once had. The second is so
/// even where the log was lost.
pub fn has_founded(content: &Content) -> bool {
    match content {
        Content::FileSystem(Inside::Marked { marker, log }) => {
            *log != Log::Missing || marker.has_run()
        }
        _ => false,
    }
}

/// The manifest of the same member as one of a cluster that exists, which names no other member: see [`crate::components::EtcdStart`].
pub fn as_existing(manifest: &str) -> Result<String, ManifestError> {
    let read = crate::yaml::read_as(manifest);
    let mut pod: Pod = read.map_err(|error| ManifestError::Unreadable(Box::new(error)))?;
    for container in &mut pod.spec.containers {
        container.env.retain(|variable| variable.name != TOKEN);
        let name = container.env.iter().find(|one| one.name == NAME);
        let own = format!(
            "{}=",
            name.and_then(|one| one.value.clone()).unwrap_or_default()
        );
        for variable in &mut container.env {
            match variable.name.as_str() {
                STATE => variable.value = Some("existing".to_owned()),
                MEMBERS => {
                    let all = variable.value.take().unwrap_or_default();
                    let own: Vec<&str> =
                        all.split(',').filter(|one| one.starts_with(&own)).collect();
                    variable.value = Some(own.join(","));
                }
                _ => {}
            }
        }
    }
    Ok(to_yaml(&pod)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::{EtcdMemberNames, EtcdStart, etcd_ports};
    use crate::config::{EtcdCluster, EtcdMember};
    use crate::manifests::{EtcdPod, etcd};

    #[test]
    fn what_founded_becomes_what_belongs_and_nothing_else_of_it_changes() {
        let spec = EtcdCluster {
            name: "main".into(),
            members: ["a", "b"]
                .map(|name| EtcdMember {
                    name: name.into(),
                    ..EtcdMember::default()
                })
                .into(),
            ..EtcdCluster::default()
        };
        let yaml = |start: &EtcdStart| {
            to_yaml(&etcd(&EtcdPod {
                etcd: &spec,
                names: &EtcdMemberNames::of(&spec, "x.example.com"),
                ports: etcd_ports("main").unwrap(),
                member: "a",
                start,
                data: "/data",
            }))
            .unwrap()
        };
        let new = yaml(&EtcdStart::New { token: "t".into() });
        let existing = yaml(&EtcdStart::Existing);
        assert_ne!(new, existing);
        assert_eq!(as_existing(&new).unwrap(), existing);
        assert_eq!(as_existing(&existing).unwrap(), existing);
    }
}
