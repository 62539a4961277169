//! Rewrites the manifest of a member that has founded its cluster, so that the next start treats the cluster as existing.

use super::{EtcdLog, FileSystemContent, VolumeContent};
use node::manifests::Pod;
use node::yaml::to_yaml;

const STATE: &str = "ETCD_INITIAL_CLUSTER_STATE";
const TOKEN: &str = "ETCD_INITIAL_CLUSTER_TOKEN";
const MEMBERS: &str = "ETCD_INITIAL_CLUSTER";
const NAME: &str = "ETCD_NAME";

/// Why a manifest could not be rewritten.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The text is not the YAML of a pod.
    #[error("the manifest on the volume is not a pod")]
    Unreadable(#[source] Box<serde_saphyr::Error>),
    /// The pod could not be written as YAML.
    #[error("could not write the manifest")]
    Unwritable(#[from] node::yaml::Error),
}

/// True if the member has run: etcd has written its log, or the marker says that it had one, even if the log was lost since. Such
/// a member must not found a cluster.
pub fn has_founded(content: &VolumeContent) -> bool {
    match content {
        VolumeContent::FileSystem(FileSystemContent::Marked { marker, log }) => {
            *log != EtcdLog::Missing || marker.has_run()
        }
        _ => false,
    }
}

/// The manifest of the same member of an existing cluster, which names no other member; see [`node::components::EtcdStart`].
pub fn as_existing(manifest: &str) -> Result<String, ManifestError> {
    let read = node::yaml::read_as(manifest);
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

/// The version of etcd that a manifest names in the tag of its image: `3.5.31` for `registry.k8s.io/etcd:v3.5.31` and
/// for `registry.k8s.io/etcd:3.5.31-0`, which images were called before.
pub fn manifest_version(manifest: &str) -> Option<String> {
    let pod: Pod = node::yaml::read_as(manifest).ok()?;
    let image = &pod.spec.containers.first()?.image;
    let (_, name) = image.rsplit_once('/').unwrap_or(("", image));
    let (_, tag) = name.split('@').next()?.split_once(':')?;
    let tag = tag.trim_start_matches('v');
    let end = tag.find(|one: char| one != '.' && !one.is_ascii_digit());
    let version = tag.get(..end.unwrap_or(tag.len()))?;
    (version.split('.').count() == 3).then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::components::{EtcdMemberNames, EtcdStart, etcd_ports};
    use node::config::{EtcdCluster, EtcdMember};
    use node::manifests::{EtcdPod, build_etcd_pod};

    #[test]
    fn the_version_is_in_the_tag_with_v_or_with_a_revision() {
        for (image, version) in [
            ("registry.k8s.io/etcd:v3.6.12", Some("3.6.12")),
            ("registry.k8s.io/etcd:3.5.31-0", Some("3.5.31")),
            ("mirror:5000/etcd:v3.5.9@sha256:00", Some("3.5.9")),
            ("registry.k8s.io/etcd:latest", None),
        ] {
            let spec = EtcdCluster {
                name: "main".into(),
                image: image.into(),
                ..EtcdCluster::default()
            };
            let manifest = to_yaml(&build_etcd_pod(&EtcdPod {
                etcd: &spec,
                names: &EtcdMemberNames::from_config(&spec, "x.example.com"),
                ports: etcd_ports("main").unwrap(),
                member: "a",
                start: &EtcdStart::Existing,
                data: "/data",
            }))
            .unwrap();
            assert_eq!(manifest_version(&manifest).as_deref(), version, "{image}");
        }
    }

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
            to_yaml(&build_etcd_pod(&EtcdPod {
                etcd: &spec,
                names: &EtcdMemberNames::from_config(&spec, "x.example.com"),
                ports: etcd_ports("main").unwrap(),
                member: "a",
                start,
                data: "/data",
            }))
            .unwrap()
        };
        let new = yaml(&EtcdStart::New {
            token: "t".into(),
            members: vec!["a".into(), "b".into()],
        });
        let existing = yaml(&EtcdStart::Existing);
        assert_ne!(new, existing);
        assert_eq!(as_existing(&new).unwrap(), existing);
        assert_eq!(as_existing(&existing).unwrap(), existing);
    }
}
