//! Certificates of this machine, as kOps has them: who signs each, whom it names, where it lies.

use crate::components::{EtcdMemberNames, KUBERNETES};
use crate::config::{EtcdCluster, Host, KUBELET_CLIENT, NodeConfig, Role, etcd_members};
use crate::duration::seconds;
use crate::host::{Certificate, CertificateStorage, Standing, Thing};
use crate::pki::{AGGREGATOR_CA, ETCD_CLIENTS_CA, KUBERNETES_CA, LEAF_VALIDITY, Usage};
use time::Duration;

pub(super) fn things(config: &NodeConfig, host: &Host) -> Vec<Thing> {
    let mut all = vec![kubelet(config, host)];
    if config.kube_proxy.is_some() {
        all.push(client("/var/lib/kube-proxy/client", "system:kube-proxy"));
    }
    if config.role == Role::ControlPlane {
        all.extend(control_plane(config));
        all.extend(etcd(config));
    }
    all.into_iter().map(Thing::Certificate).collect()
}

/// A certificate of `kubernetes-ca` for a client, at `path.crt` and `path.key`.
fn client(path: &str, name: &str) -> Certificate {
    Certificate {
        storage: CertificateStorage::Pair {
            certificate: format!("{path}.crt"),
            key: format!("{path}.key"),
        },
        signer: KUBERNETES_CA.to_owned(),
        common_name: name.to_owned(),
        organization: None,
        usage: Usage::Client,
        names: Vec::new(),
        validity_seconds: LEAF_VALIDITY.whole_seconds(),
        standing: Standing::Good,
    }
}

/// How long kubelets' first client certificates are valid: as long as those that the controller manager signs after them, if
/// that is said. Of a control plane's configuration.
pub fn signing_duration(config: &NodeConfig) -> Duration {
    let said = config.control_plane.as_ref().and_then(|control_plane| {
        let manager = control_plane.static_pods.get("kube-controller-manager")?;
        let mut arguments = manager.spec.containers.iter().flat_map(|of| &of.args);
        arguments.find_map(|flag| seconds(flag.strip_prefix("--cluster-signing-duration=")?))
    });
    said.and_then(Duration::checked_seconds_f64)
        .unwrap_or(LEAF_VALIDITY)
}

fn kubelet(config: &NodeConfig, host: &Host) -> Certificate {
    Certificate {
        storage: CertificateStorage::Rotating {
            link: KUBELET_CLIENT.to_owned(),
        },
        organization: Some("system:nodes".to_owned()),
        validity_seconds: signing_duration(config).whole_seconds(),
        ..client("", &format!("system:node:{}", host.instance_id))
    }
}

fn control_plane(config: &NodeConfig) -> Vec<Certificate> {
    let api = |file: &str| format!("{KUBERNETES}/kube-apiserver/{file}");
    let mut names: Vec<String> = config
        .control_plane
        .iter()
        .flat_map(|control_plane| control_plane.api_names.clone())
        .collect();
    names.sort();
    names.dedup();
    let mut all = vec![
        Certificate {
            usage: Usage::Server,
            names,
            ..client(&api("server"), "kubernetes-master")
        },
        client(&api("kubelet-api"), "kubelet-api"),
        Certificate {
            signer: AGGREGATOR_CA.to_owned(),
            ..client(&api("apiserver-aggregator"), "aggregator")
        },
        Certificate {
            signer: ETCD_CLIENTS_CA.to_owned(),
            ..client(&api("etcd-client"), "kube-apiserver")
        },
        Certificate {
            organization: Some("system:masters".to_owned()),
            ..client("/var/lib/kubectl/client", "kubecfg")
        },
    ];
    for component in ["kube-controller-manager", "kube-scheduler"] {
        let folder = format!("{KUBERNETES}/{component}");
        all.push(client(
            &format!("{folder}/client"),
            &format!("system:{component}"),
        ));
        all.push(Certificate {
            usage: Usage::Server,
            names: vec![
                "127.0.0.1".to_owned(),
                format!("{component}.kube-system.svc.cluster.local"),
                "localhost".to_owned(),
            ],
            ..client(&format!("{folder}/server"), component)
        });
    }
    all
}

/// Certificates of the group's own members. Any machine of the group may hold any of their volumes, so they name all.
fn etcd(config: &NodeConfig) -> Vec<Certificate> {
    let clusters = config.control_plane.iter().flat_map(|of| &of.etcd);
    let of_cluster = |etcd: &EtcdCluster| {
        let names = EtcdMemberNames::of(etcd, &config.cluster);
        let own = etcd_members(config, etcd).into_iter();
        let mut hosts: Vec<String> = own.map(|member| names.host(&member)).collect();
        hosts.sort();
        let first = hosts.first()?.clone();
        let folder = format!("{KUBERNETES}/{}", names.prefix);
        let peer = Certificate {
            signer: format!("etcd-peers-ca-{}", etcd.name),
            // A member is a server to others and their client; and etcd dials itself with its server's certificate.
            usage: Usage::ClientServer,
            names: hosts.clone(),
            ..client(&format!("{folder}/peer"), &first)
        };
        hosts.extend(["127.0.0.1", "localhost"].map(str::to_owned));
        hosts.sort();
        let server = Certificate {
            signer: ETCD_CLIENTS_CA.to_owned(),
            usage: Usage::ClientServer,
            names: hosts,
            ..client(&format!("{folder}/server"), &first)
        };
        Some([server, peer])
    };
    clusters.filter_map(of_cluster).flatten().collect()
}
