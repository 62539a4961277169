//! Names, ports and environment of etcd members, compatible with kOps: one member per volume, known by its DNS name.

use super::etcd_checks::corruption_checks;
use super::paths::KUBERNETES;
use crate::config::EtcdCluster;
use crate::names::dns;
use std::collections::BTreeMap;

/// The ports of an etcd cluster, as in kOps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EtcdPorts {
    pub client: u16,
    /// Port for other members.
    pub peer: u16,
    /// Port for health and metrics: plain HTTP on the loopback address.
    pub health: u16,
}

/// The names of an etcd cluster and its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdMemberNames {
    /// Prefix of the names of folders and members: `etcd` or `etcd-events`.
    pub prefix: String,
    /// Short names of the members: `a`, `b`, `c`.
    pub members: Vec<String>,
    /// Domain of the members: `internal.NAME`.
    pub domain: String,
}

/// Whether a member founds its cluster, joins it or belongs to it.
///
/// A member of an existing cluster gets an `ETCD_INITIAL_CLUSTER` that names itself only. etcd reads this variable only if it has
/// no log of its own (`embed.StartEtcd`, `isMemberInitialized`). If it named the other members, etcd would ask them for its old
/// member id and take part under it without knowing what it has voted for (`bootstrapExistingClusterNoWAL`). Without other names
/// it exits with an error (`getRemotePeerURLs` excludes itself), also when kubelet restarts the container and protokube has not
/// looked in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EtcdStart {
    /// All members start on blank volumes with the same token.
    New {
        /// `initial-cluster-token`.
        token: String,
        /// Short names of the members that found it: those of the record, since the spec may have others.
        members: Vec<String>,
    },
    /// The member joins an existing cluster under the id that the others gave it, and has to ask them for it. They answer only until
    /// it has a log, see `etcd_rules::MemberChange::EndJoin`.
    Join {
        /// `ETCD_INITIAL_CLUSTER`: the members in the live list.
        initial_cluster: String,
    },
    /// The member has run before.
    Existing,
}

impl EtcdMemberNames {
    /// The names for an etcd cluster (`main`, `events`) with these member names.
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
            domain: dns::internal_domain(cluster),
        }
    }

    /// The names for an etcd cluster in NodeConfig.
    pub fn from_config(etcd: &EtcdCluster, cluster: &str) -> Self {
        let members = etcd.members.iter().map(|member| &member.name);
        Self::new(&etcd.name, members, cluster)
    }

    /// The folder of the certificates of this instance's member.
    pub fn certificate_folder(&self) -> String {
        format!("{KUBERNETES}/{}", self.prefix)
    }

    /// The name of a member in etcd: `etcd-a`, `etcd-events-a`.
    pub fn member_name(&self, member: &str) -> String {
        format!("{}-{member}", self.prefix)
    }

    /// The DNS name of a member: `etcd-a.internal.NAME`.
    pub fn member_host(&self, member: &str) -> String {
        format!("{}.{}", self.member_name(member), self.domain)
    }

    /// The DNS names of all members.
    pub fn member_hosts(&self) -> impl Iterator<Item = String> {
        self.members.iter().map(|member| self.member_host(member))
    }
}

/// The ports of an etcd cluster; `None` for names other than `main` and `events`.
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

/// Variable with the addresses for metrics and health.
const METRICS: &str = "ETCD_LISTEN_METRICS_URLS";

/// The environment of one member. Addresses for metrics from the spec are added to the one that protokube uses for health
/// checks.
pub fn etcd_environment(
    etcd: &EtcdCluster,
    names: &EtcdMemberNames,
    ports: EtcdPorts,
    member: &str,
    start: &EtcdStart,
) -> BTreeMap<String, String> {
    let mut environment = BTreeMap::from([("ETCD_LOG_OUTPUTS".to_owned(), "stderr".to_owned())]);
    environment.extend(corruption_checks(&etcd.version, &etcd.environment));
    let health = format!("http://127.0.0.1:{}", ports.health);
    let metrics = match etcd.environment.get(METRICS) {
        Some(own) => format!("{health},{own}"),
        None => health,
    };
    environment.insert(METRICS.to_owned(), metrics);
    environment.extend(member_identity(names, ports, member, start));
    environment
}

/// The variables with name, addresses, certificates and cluster state of a member.
fn member_identity(
    names: &EtcdMemberNames,
    ports: EtcdPorts,
    member: &str,
    start: &EtcdStart,
) -> BTreeMap<String, String> {
    let host = names.member_host(member);
    let EtcdPorts { client, peer, .. } = ports;
    let pki = names.certificate_folder();
    let entry = |member: &str| {
        let name = names.member_name(member);
        format!("{name}=https://{}:{peer}", names.member_host(member))
    };
    let initial_cluster = match start {
        EtcdStart::New { members, .. } => {
            let all = members.iter().map(|member| entry(member));
            all.collect::<Vec<_>>().join(",")
        }
        EtcdStart::Join { initial_cluster } => initial_cluster.clone(),
        EtcdStart::Existing => entry(member),
    };
    let mut environment = BTreeMap::from(
        [
            ("NAME", names.member_name(member)),
            ("DATA_DIR", format!("/var/{}/data", names.prefix)),
            ("LISTEN_PEER_URLS", format!("https://0.0.0.0:{peer}")),
            ("LISTEN_CLIENT_URLS", format!("https://0.0.0.0:{client}")),
            ("ADVERTISE_CLIENT_URLS", format!("https://{host}:{client}")),
            (
                "INITIAL_ADVERTISE_PEER_URLS",
                format!("https://{host}:{peer}"),
            ),
            ("INITIAL_CLUSTER", initial_cluster),
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
        EtcdStart::New { token, .. } => {
            environment.insert("ETCD_INITIAL_CLUSTER_TOKEN".into(), token.clone());
            "new"
        }
        EtcdStart::Join { .. } | EtcdStart::Existing => "existing",
    };
    environment.insert("ETCD_INITIAL_CLUSTER_STATE".into(), state.into());
    environment
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::EtcdMember;

    fn sample_cluster() -> EtcdCluster {
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

    fn environment_of_b(spec: &EtcdCluster, start: &EtcdStart) -> BTreeMap<String, String> {
        let names = EtcdMemberNames::from_config(spec, "x.example.com");
        etcd_environment(spec, &names, etcd_ports("events").unwrap(), "b", start)
    }

    #[test]
    fn a_founder_is_known_by_its_name_and_knows_all_that_found_with_it() {
        let start = EtcdStart::New {
            token: "t".into(),
            members: vec!["a".into(), "b".into()],
        };
        let environment = environment_of_b(&sample_cluster(), &start);
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
        let environment = environment_of_b(&sample_cluster(), &EtcdStart::Existing);
        assert_eq!(
            environment["ETCD_INITIAL_CLUSTER"],
            "etcd-events-b=https://etcd-events-b.internal.x.example.com:2381"
        );
        assert_eq!(environment["ETCD_INITIAL_CLUSTER_STATE"], "existing");
        assert!(!environment.contains_key("ETCD_INITIAL_CLUSTER_TOKEN"));
    }

    #[test]
    fn settings_hold_but_do_not_make_another_member_of_it() {
        let mut spec = sample_cluster();
        spec.environment = [
            ("ETCD_QUOTA_BACKEND_BYTES", "8589934592"),
            ("ETCD_NAME", "other"),
            ("ETCD_LISTEN_METRICS_URLS", "http://0.0.0.0:8081"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let environment = environment_of_b(&spec, &EtcdStart::Existing);
        assert_eq!(environment["ETCD_QUOTA_BACKEND_BYTES"], "8589934592");
        assert_eq!(environment["ETCD_NAME"], "etcd-events-b");
        assert_eq!(
            environment["ETCD_LISTEN_METRICS_URLS"], "http://127.0.0.1:3993,http://0.0.0.0:8081",
            "health is asked for at the first, whatever else is said"
        );
    }
}
