//! What programs refuse whose cryptography is AWS-LC's FIPS module: encryption of kctl's own that is not of the module.

use super::attribute_problems;
use crate::api::Cluster;
use crate::expand::BACKUP_RECIPIENTS;
use crate::read::Problem;

/// What kctl, built with the module, refuses in a cluster. Paths are those of the cluster; `locate_problems` gives them places.
pub fn fips_problems(cluster: &Cluster) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (etcd, of) in cluster.spec.etcd_clusters.iter().enumerate() {
        let variables = of.manager.iter().flat_map(|manager| &manager.env);
        for (index, variable) in variables.enumerate() {
            if variable.name == BACKUP_RECIPIENTS {
                let path = format!("spec.etcdClusters[{etcd}].manager.env[{index}].name");
                let message = "age encrypts with X25519 and ChaCha20, which are not of the FIPS module that kctl runs with";
                let problem = Problem::error(path, message);
                problems.push(problem.hint(
                    "remove it, and back up the cluster's folder of the state store in another way",
                ));
            }
        }
    }
    attribute_problems(&mut problems, 0, cluster, 0);
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::etcd::{EnvVar, EtcdClusterSpec, EtcdManagerSpec};

    #[test]
    fn keys_that_would_be_sealed_with_age_are_refused_by_name() {
        let variable = |name: &str| EnvVar {
            name: name.into(),
            ..EnvVar::default()
        };
        let etcd = |names: &[&str]| EtcdClusterSpec {
            manager: Some(EtcdManagerSpec {
                env: names.iter().map(|name| variable(name)).collect(),
                ..EtcdManagerSpec::default()
            }),
            ..EtcdClusterSpec::default()
        };
        let mut cluster = Cluster::default();
        assert!(fips_problems(&cluster).is_empty());
        cluster.spec.etcd_clusters = vec![
            EtcdClusterSpec::default(),
            etcd(&["ETCD_QUOTA_BACKEND_BYTES", BACKUP_RECIPIENTS]),
        ];
        let problems = fips_problems(&cluster);
        let paths: Vec<&str> = problems
            .iter()
            .map(|problem| problem.path.as_str())
            .collect();
        assert_eq!(paths, ["spec.etcdClusters[1].manager.env[1].name"]);
        assert!(problems.iter().all(Problem::is_error));
    }
}
