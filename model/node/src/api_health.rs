//! What counts when an API server is asked for its health: protokube and the proxies of nodes agree on this.

/// Checks of the API server that do not count: those of the etcd cluster events. The API serves everything but Event objects without
/// it, and no restart of the API server brings it back. Kubernetes 1.34 has them (`apiserver/pkg/server/options/etcd.go`,
/// `addEtcdHealthEndpoint`); an API server without these checks ignores their names (`healthz.go`, `handleRootHealth`).
const NOT_NEEDED: [&str; 2] = ["etcd-override-0", "etcd-override-readiness-0"];

/// The query with which a health path leaves out the checks that do not count.
pub fn needed_checks() -> String {
    NOT_NEEDED.map(|check| format!("exclude={check}")).join("&")
}
