//! The warm pool of an instance group: its own settings over the cluster's, as kOps resolves them
//! (`WarmPoolSpec.ResolveDefaults`).

use crate::api::InstanceGroupRole;
use crate::api::cluster::ClusterSpec;
use crate::api::instance::WarmPoolSpec;
use crate::api::instance_group::InstanceGroupSpec;
use full::WarmPool;

/// kOps' default.
const HOOK_SECONDS: i32 = 600;

/// The pool of a group; `None`: it has none. The cluster's pool is for groups of nodes. A false or zero in a group is none said,
/// as in kOps.
pub(crate) fn warm_pool_of(
    group: &InstanceGroupSpec,
    cluster: &ClusterSpec,
) -> Option<WarmPoolSpec> {
    let of_nodes = group.role == Some(InstanceGroupRole::Node);
    let default = cluster.warm_pool.as_ref().filter(|_| of_nodes);
    let pool = match (&group.warm_pool, default) {
        (None, default) => default?.clone(),
        (Some(own), None) => own.clone(),
        (Some(own), Some(default)) => merge(own, default),
    };
    (pool.max_size != Some(0)).then_some(pool)
}

fn merge(own: &WarmPoolSpec, default: &WarmPoolSpec) -> WarmPoolSpec {
    let images = [&own.additional_images, &default.additional_images];
    WarmPoolSpec {
        min_size: own.min_size.filter(|size| *size != 0).or(default.min_size),
        max_size: own.max_size.or(default.max_size),
        enable_lifecycle_hook: own
            .enable_lifecycle_hook
            .filter(|enabled| *enabled)
            .or(default.enable_lifecycle_hook),
        lifecycle_hook_timeout: own
            .lifecycle_hook_timeout
            .or(default.lifecycle_hook_timeout),
        additional_images: images
            .into_iter()
            .find(|images| !images.is_empty())
            .cloned()
            .unwrap_or_default(),
    }
}

/// The pool with kOps' defaults.
pub(crate) fn full_warm_pool(pool: WarmPoolSpec) -> WarmPool {
    let seconds = pool.lifecycle_hook_timeout.unwrap_or(HOOK_SECONDS);
    WarmPool {
        min_size: pool.min_size.unwrap_or_default(),
        max_size: pool.max_size,
        hook_seconds: (pool.enable_lifecycle_hook == Some(true)).then_some(seconds),
        images: pool.additional_images,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(min: Option<i32>, max: Option<i32>, hook: Option<bool>) -> WarmPoolSpec {
        WarmPoolSpec {
            min_size: min,
            max_size: max,
            enable_lifecycle_hook: hook,
            ..WarmPoolSpec::default()
        }
    }

    fn resolved(
        own: Option<WarmPoolSpec>,
        of_cluster: Option<WarmPoolSpec>,
        role: InstanceGroupRole,
    ) -> Option<WarmPool> {
        let group = InstanceGroupSpec {
            role: Some(role),
            warm_pool: own,
            ..InstanceGroupSpec::default()
        };
        let cluster = ClusterSpec {
            warm_pool: of_cluster,
            ..ClusterSpec::default()
        };
        warm_pool_of(&group, &cluster).map(full_warm_pool)
    }

    #[test]
    fn a_groups_settings_are_over_the_clusters_as_in_kops() {
        let full = |min_size, max_size, hook_seconds| {
            Some(WarmPool {
                min_size,
                max_size,
                hook_seconds,
                images: Vec::new(),
            })
        };
        let (node, control) = (InstanceGroupRole::Node, InstanceGroupRole::ControlPlane);
        let default = || Some(pool(Some(1), Some(5), Some(true)));
        let table = [
            (None, None, node, None),
            (None, default(), node, full(1, Some(5), Some(600))),
            (None, default(), control, None),
            (
                Some(pool(None, None, None)),
                None,
                node,
                full(0, None, None),
            ),
            (
                Some(pool(Some(0), Some(3), Some(false))),
                default(),
                node,
                full(1, Some(3), Some(600)),
            ),
            (Some(pool(None, Some(0), None)), default(), node, None),
            (None, Some(pool(None, Some(0), None)), node, None),
            (
                Some(pool(None, Some(2), None)),
                Some(pool(None, Some(0), None)),
                node,
                full(0, Some(2), None),
            ),
        ];
        for (own, of_cluster, role, expected) in table {
            let shown = format!("{own:?} {of_cluster:?} {role:?}");
            assert_eq!(resolved(own, of_cluster, role), expected, "{shown}");
        }
    }
}
