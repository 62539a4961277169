//! etcd's environment, as kOps' protokube ran it: one member on one volume, named in DNS and certificates.

use super::paths::KUBERNETES;
use crate::config::EtcdCluster;
use crate::names::dns;
use std::collections::BTreeMap;

/// The ports of an etcd cluster. kOps'; the last serves health and metrics to this machine alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EtcdPorts {
    /// Clients.
    pub client: u16,
    /// Members among each other.
    pub peer: u16,
    /// Health and metrics, plain HTTP on the loopback address.
    pub health: u16,
}

/// The names of an etcd cluster's members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdMemberNames {
    /// `etcd` or `etcd-events`: what pods, folders and members are called.
    pub prefix: String,
    /// `a`, `b`, `c`.
    pub members: Vec<String>,
    /// `internal.NAME`.
    pub domain: String,
}

/// Whether a member founds its cluster or belongs to one.
///
/// Who belongs to one is told of no other member. etcd reads `ETCD_INITIAL_CLUSTER` only where it finds no log of its own
/// (`embed.StartEtcd`, `isMemberInitialized`). Then, if the cluster exists, it asks the others who it is, gets its old id from them, and
/// takes part under it without knowing what it has voted for (`bootstrapExistingClusterNoWAL`). With nobody to ask it ends with an error
/// (`getRemotePeerURLs` leaves itself out), also where kubelet restarts the container and nobody looks in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EtcdStart {
    /// All members are new and blank and share this token.
    New {
        /// The formation's token.
        token: String,
    },
    /// The cluster exists.
    Existing,
}

impl EtcdMemberNames {
    /// The names of an etcd cluster, by its own name and those of its members.
    pub fn new<'a>(
        etcd: &str,
        members: impl IntoIterator<Item = &'a String>,
        cluster: &str,
    ) -> Self {
        Self {
            prefix: if etcd == "main" {
                "etcd".to_owned()
            } else {
                format!("etcd-{etcd}")
            },
            members: members.into_iter().cloned().collect(),
            domain: dns::internal(cluster),
        }
    }

    /// The names of an etcd cluster of NodeConfig.
    pub fn of(etcd: &EtcdCluster, cluster: &str) -> Self {
        let members = etcd.members.iter().map(|member| &member.name);
        Self::new(&etcd.name, members, cluster)
    }

    /// etcd's name of a member: `etcd-a`, `etcd-events-a`.
    pub fn name(&self, member: &str) -> String {
        format!("{}-{member}", self.prefix)
    }

    /// A member's DNS name: `etcd-a.internal.NAME`.
    pub fn host(&self, member: &str) -> String {
        format!("{}.{}", self.name(member), self.domain)
    }
}

/// The ports of a cluster by its name; `None` for a name that kctl does not know.
pub fn etcd_ports(name: &str) -> Option<EtcdPorts> {
    match name {
        "main" => Some(EtcdPorts {
            client: 4001,
            peer: 2380,
            health: 3992,
        }),
        "events" => Some(EtcdPorts {
            client: 4002,
            peer: 2381,
            health: 3993,
        }),
        _ => None,
    }
}

/// Where etcd answers for metrics and health, besides what the user wants.
const METRICS: &str = "ETCD_LISTEN_METRICS_URLS";

/// The environment of one member. The user's own addresses for metrics come beside the one at which the instance asks for its
/// health.
pub fn etcd_environment(
    etcd: &EtcdCluster,
    names: &EtcdMemberNames,
    ports: EtcdPorts,
    member: &str,
    start: &EtcdStart,
) -> BTreeMap<String, String> {
    let mut environment = BTreeMap::from([("ETCD_LOG_OUTPUTS".to_owned(), "stderr".to_owned())]);
    environment.extend(etcd.environment.clone());
    let health = format!("http://127.0.0.1:{}", ports.health);
    let metrics = match etcd.environment.get(METRICS) {
        Some(own) => format!("{health},{own}"),
        None => health,
    };
    environment.insert(METRICS.to_owned(), metrics);
    environment.extend(identity(names, ports, member, start));
    environment
}

/// Name, addresses, certificates and state of a member.
fn identity(
    names: &EtcdMemberNames,
    ports: EtcdPorts,
    member: &str,
    start: &EtcdStart,
) -> BTreeMap<String, String> {
    let host = names.host(member);
    let EtcdPorts { client, peer, .. } = ports;
    let pki = format!("{KUBERNETES}/{}", names.prefix);
    let told = names.members.iter();
    let told = told.filter(|other| matches!(start, EtcdStart::New { .. }) || *other == member);
    let told = told.map(|member| {
        format!(
            "{}=https://{}:{peer}",
            names.name(member),
            names.host(member)
        )
    });
    let mut environment = BTreeMap::from(
        [
            ("NAME", names.name(member)),
            ("DATA_DIR", format!("/var/{}/data", names.prefix)),
            ("LISTEN_PEER_URLS", format!("https://0.0.0.0:{peer}")),
            ("LISTEN_CLIENT_URLS", format!("https://0.0.0.0:{client}")),
            ("ADVERTISE_CLIENT_URLS", format!("https://{host}:{client}")),
            (
                "INITIAL_ADVERTISE_PEER_URLS",
                format!("https://{host}:{peer}"),
            ),
            ("INITIAL_CLUSTER", told.collect::<Vec<_>>().join(",")),
            ("CLIENT_CERT_AUTH", "true".to_owned()),
            ("TRUSTED_CA_FILE", format!("{pki}/clients-ca.crt")),
            ("CERT_FILE", format!("{pki}/server.crt")),
            ("KEY_FILE", format!("{pki}/server.key")),
            ("PEER_CLIENT_CERT_AUTH", "true".to_owned()),
            ("PEER_TRUSTED_CA_FILE", format!("{pki}/peers-ca.crt")),
            ("PEER_CERT_FILE", format!("{pki}/peer.crt")),
            ("PEER_KEY_FILE", format!("{pki}/peer.key")),
        ]
        .map(|(name, value)| (format!("ETCD_{name}"), value)),
    );
    let state = match start {
        EtcdStart::New { token } => {
            environment.insert("ETCD_INITIAL_CLUSTER_TOKEN".into(), token.clone());
            "new"
        }
        EtcdStart::Existing => "existing",
    };
    environment.insert("ETCD_INITIAL_CLUSTER_STATE".into(), state.into());
    environment
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::EtcdMember;

    fn spec() -> EtcdCluster {
        let member = |name: &str| EtcdMember {
            name: name.into(),
            ..EtcdMember::default()
        };
        EtcdCluster {
            name: "events".into(),
            members: vec![member("a"), member("b")],
            ..EtcdCluster::default()
        }
    }

    fn environment(spec: &EtcdCluster, start: &EtcdStart) -> BTreeMap<String, String> {
        let names = EtcdMemberNames::of(spec, "x.example.com");
        etcd_environment(spec, &names, etcd_ports("events").unwrap(), "b", start)
    }

    #[test]
    fn a_member_is_known_by_its_name_and_every_member_knows_all() {
        let environment = environment(&spec(), &EtcdStart::New { token: "t".into() });
        assert_eq!(environment["ETCD_NAME"], "etcd-events-b");
        assert_eq!(
            environment["ETCD_INITIAL_CLUSTER"],
            "etcd-events-a=https://etcd-events-a.internal.x.example.com:2381,\
             etcd-events-b=https://etcd-events-b.internal.x.example.com:2381"
        );
        assert_eq!(
            environment["ETCD_ADVERTISE_CLIENT_URLS"],
            "https://etcd-events-b.internal.x.example.com:4002"
        );
        let addresses = environment
            .values()
            .filter(|value| value.contains("https://"));
        assert!(
            addresses.clone().all(|value| !value.contains("http://")),
            "TLS everywhere"
        );
    }

    #[test]
    fn a_member_of_a_formed_cluster_founds_nothing_and_has_nobody_to_ask_who_it_is() {
        let environment = environment(&spec(), &EtcdStart::Existing);
        assert_eq!(
            environment["ETCD_INITIAL_CLUSTER"],
            "etcd-events-b=https://etcd-events-b.internal.x.example.com:2381"
        );
        assert_eq!(environment["ETCD_INITIAL_CLUSTER_STATE"], "existing");
        assert!(!environment.contains_key("ETCD_INITIAL_CLUSTER_TOKEN"));
    }

    #[test]
    fn settings_hold_but_do_not_make_another_member_of_it() {
        let mut spec = spec();
        spec.environment = [
            ("ETCD_QUOTA_BACKEND_BYTES", "8589934592"),
            ("ETCD_NAME", "other"),
            ("ETCD_LISTEN_METRICS_URLS", "http://0.0.0.0:8081"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let environment = environment(&spec, &EtcdStart::Existing);
        assert_eq!(environment["ETCD_QUOTA_BACKEND_BYTES"], "8589934592");
        assert_eq!(environment["ETCD_NAME"], "etcd-events-b");
        assert_eq!(
            environment["ETCD_LISTEN_METRICS_URLS"], "http://127.0.0.1:3993,http://0.0.0.0:8081",
            "health is asked for at the first, whatever else is said"
        );
    }
}
