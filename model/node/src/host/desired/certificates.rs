//! Desired certificates of an instance, with the same signers, subjects and paths as in kOps.

use crate::components::{EtcdMemberNames, KUBERNETES, authenticator};
use crate::config::{EtcdCluster, InstanceFacts, KUBELET_CLIENT, NodeConfig, Role, etcd_members};
use crate::duration::parse_seconds;
use crate::host::{Certificate, CertificateState, CertificateStorage, HostObject};
use crate::pki::{AGGREGATOR_CA, ETCD_CLIENTS_CA, KUBERNETES_CA, LEAF_VALIDITY, Usage};
use time::Duration;

pub(super) fn certificate_objects(config: &NodeConfig, host: &InstanceFacts) -> Vec<HostObject> {
    let mut all = vec![kubelet_certificate(config, host)];
    if config.kube_proxy.is_some() {
        all.push(client_certificate(
            "/var/lib/kube-proxy/client",
            "system:kube-proxy",
        ));
    }
    if config.role == Role::ControlPlane {
        all.extend(control_plane_certificates(config));
        all.extend(etcd_certificates(config));
    }
    all.into_iter().map(HostObject::Certificate).collect()
}

/// A client certificate signed by `kubernetes-ca`, at `path.crt` and `path.key`.
fn client_certificate(path: &str, name: &str) -> Certificate {
    Certificate {
        storage: CertificateStorage::Pair {
            certificate: format!("{path}.crt"),
            key: format!("{path}.key"),
            owner: None,
        },
        signer: KUBERNETES_CA.to_owned(),
        common_name: name.to_owned(),
        organization: None,
        usage: Usage::Client,
        names: Vec::new(),
        validity_seconds: LEAF_VALIDITY.whole_seconds(),
        standing: CertificateState::Good,
    }
}

/// Validity of kubelets' first client certificates, from a control plane's NodeConfig: the controller manager's
/// `--cluster-signing-duration`, which applies to the later ones, or [`LEAF_VALIDITY`].
pub fn signing_duration(config: &NodeConfig) -> Duration {
    let said = config.control_plane.as_ref().and_then(|control_plane| {
        let manager = control_plane.static_pods.get("kube-controller-manager")?;
        let mut arguments = manager.spec.containers.iter().flat_map(|of| &of.args);
        arguments.find_map(|flag| parse_seconds(flag.strip_prefix("--cluster-signing-duration=")?))
    });
    said.and_then(Duration::checked_seconds_f64)
        .unwrap_or(LEAF_VALIDITY)
}

fn kubelet_certificate(config: &NodeConfig, host: &InstanceFacts) -> Certificate {
    Certificate {
        storage: CertificateStorage::Rotating {
            link: KUBELET_CLIENT.to_owned(),
        },
        organization: Some("system:nodes".to_owned()),
        validity_seconds: signing_duration(config).whole_seconds(),
        ..client_certificate("", &format!("system:node:{}", host.instance_id))
    }
}

fn control_plane_certificates(config: &NodeConfig) -> Vec<Certificate> {
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
            ..client_certificate(&api("server"), "kubernetes-master")
        },
        client_certificate(&api("kubelet-api"), "kubelet-api"),
        Certificate {
            signer: AGGREGATOR_CA.to_owned(),
            ..client_certificate(&api("apiserver-aggregator"), "aggregator")
        },
        Certificate {
            signer: ETCD_CLIENTS_CA.to_owned(),
            ..client_certificate(&api("etcd-client"), "kube-apiserver")
        },
    ];
    for component in ["kube-controller-manager", "kube-scheduler"] {
        let folder = format!("{KUBERNETES}/{component}");
        all.push(client_certificate(
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
            ..client_certificate(&format!("{folder}/server"), component)
        });
    }
    all.extend(config.has_authenticator().then(authenticator_certificate));
    all
}

/// That with which the AWS IAM authenticator answers the API server, as in kOps.
fn authenticator_certificate() -> Certificate {
    Certificate {
        storage: CertificateStorage::Pair {
            certificate: format!("{}/cert.pem", authenticator::FOLDER),
            key: format!("{}/key.pem", authenticator::FOLDER),
            owner: Some(authenticator::USER),
        },
        usage: Usage::Server,
        names: ["127.0.0.1", "localhost"].map(str::to_owned).into(),
        ..client_certificate("", authenticator::NAME)
    }
}

/// Certificates of the group's etcd members. Any instance of the group may hold any of their volumes, so each certificate names
/// all members.
fn etcd_certificates(config: &NodeConfig) -> Vec<Certificate> {
    let clusters = config.control_plane.iter().flat_map(|of| &of.etcd);
    let of_cluster = |etcd: &EtcdCluster| {
        let names = EtcdMemberNames::from_config(etcd, &config.cluster);
        let own = etcd_members(config, etcd).into_iter();
        let mut hosts: Vec<String> = own.map(|member| names.member_host(&member)).collect();
        hosts.sort();
        let first = hosts.first()?.clone();
        let folder = names.certificate_folder();
        let peer = Certificate {
            signer: format!("etcd-peers-ca-{}", etcd.name),
            // A member is both server and client of the others; etcd also connects to itself with its server certificate.
            usage: Usage::ClientServer,
            names: hosts.clone(),
            ..client_certificate(&format!("{folder}/peer"), &first)
        };
        hosts.extend(["127.0.0.1", "localhost"].map(str::to_owned));
        hosts.sort();
        let server = Certificate {
            signer: ETCD_CLIENTS_CA.to_owned(),
            usage: Usage::ClientServer,
            names: hosts,
            ..client_certificate(&format!("{folder}/server"), &first)
        };
        Some([server, peer])
    };
    clusters.filter_map(of_cluster).flatten().collect()
}
