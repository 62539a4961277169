//! The audit log of a new cluster: fields that kOps has too, with a policy that logs who did what and when, without contents.

use crate::api::InstanceGroupRole;
use crate::api::cluster::ClusterSpec;
use crate::api::host::FileAssetSpec;
use crate::api::kube_apiserver::KubeAPIServerConfig;

/// In a folder that the API server's pod mounts.
pub(crate) const POLICY: &str = "/srv/kubernetes/kube-apiserver/audit-policy.yaml";

/// In a folder of its own, which the pod mounts: the API server renames the file to rotate it.
pub(crate) const LOG: &str = "/var/log/kube-audit/audit.log";

/// Level Metadata leaves out request and response bodies, and so secrets. Without the stage RequestReceived there is one line for
/// each request instead of two. Who only asks whether the API server is well is left out: protokube, and the proxies of all nodes, ask
/// every two seconds.
pub(crate) const RULES: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages:
- RequestReceived
rules:
- level: None
  nonResourceURLs: [/healthz*, /livez*, /readyz*]
- level: Metadata
";

/// Days for which old files are kept, how many of them, and the size of each in MB.
pub(crate) const KEPT: (i32, i32, i32) = (30, 10, 100);

/// Logs are kept for 30 days, at most 11 files of 100 MB.
pub(super) fn write_audit_log(spec: &mut ClusterSpec) {
    spec.file_assets.push(FileAssetSpec {
        name: "audit-policy".to_owned(),
        path: Some(POLICY.to_owned()),
        roles: vec![InstanceGroupRole::ControlPlane],
        content: RULES.to_owned(),
        ..FileAssetSpec::default()
    });
    let api: &mut KubeAPIServerConfig = spec.kube_api_server.get_or_insert_default();
    api.audit_policy_file = Some(POLICY.to_owned());
    api.audit_log_path = Some(LOG.to_owned());
    let (days, files, size) = KEPT;
    api.audit_log_max_age = Some(days);
    api.audit_log_max_backups = Some(files);
    api.audit_log_max_size = Some(size);
}
