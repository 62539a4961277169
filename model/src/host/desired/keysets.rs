//! Parts of authorities on control planes, at the paths that the components' flags name.

use crate::components::{EtcdMemberNames, KUBERNETES};
use crate::host::{KeysetFile, KeysetPart, Thing};
use crate::node::NodeConfig;
use crate::pki::{AGGREGATOR_CA, ETCD_CLIENTS_CA, KUBERNETES_CA, SERVICE_ACCOUNT};

pub(super) fn things(config: &NodeConfig) -> Vec<Thing> {
    let Some(control_plane) = &config.control_plane else {
        return Vec::new();
    };
    let mut all = Vec::new();
    let mut part = |path: String, keyset: &str, part: KeysetPart| {
        let open = matches!(
            part,
            KeysetPart::TrustBundle | KeysetPart::Certificate | KeysetPart::PublicKeys
        );
        all.push(Thing::KeysetFile(KeysetFile {
            path,
            mode: if open { "0644" } else { "0400" }.to_owned(),
            keyset: keyset.to_owned(),
            part,
            current: true,
        }));
    };
    let api = |file: &str| format!("{KUBERNETES}/kube-apiserver/{file}");
    part(api("etcd-ca.crt"), ETCD_CLIENTS_CA, KeysetPart::TrustBundle);
    part(
        api("apiserver-aggregator-ca.crt"),
        AGGREGATOR_CA,
        KeysetPart::TrustBundle,
    );
    part(
        api("service-account.pub"),
        SERVICE_ACCOUNT,
        KeysetPart::PublicKeys,
    );
    part(api("service-account.key"), SERVICE_ACCOUNT, KeysetPart::Key);
    let manager = |file: &str| format!("{KUBERNETES}/kube-controller-manager/{file}");
    part(manager("ca.crt"), KUBERNETES_CA, KeysetPart::Certificate);
    part(manager("ca.key"), KUBERNETES_CA, KeysetPart::Key);
    part(
        manager("service-account.key"),
        SERVICE_ACCOUNT,
        KeysetPart::Key,
    );
    for etcd in &control_plane.etcd {
        let prefix = EtcdMemberNames::of(etcd, &config.cluster).prefix;
        let folder = format!("{KUBERNETES}/{prefix}");
        part(
            format!("{folder}/clients-ca.crt"),
            ETCD_CLIENTS_CA,
            KeysetPart::TrustBundle,
        );
        part(
            format!("{folder}/peers-ca.crt"),
            &format!("etcd-peers-ca-{}", etcd.name),
            KeysetPart::TrustBundle,
        );
    }
    let encryption = api("encryptionconfig.yaml");
    let flag = format!("--encryption-provider-config={encryption}");
    let pods = control_plane.static_pods.values();
    let mut arguments = pods
        .flat_map(|pod| &pod.spec.containers)
        .flat_map(|container| &container.args);
    // A file of the user's own has another path.
    if arguments.any(|argument| *argument == flag) {
        part(encryption, "encryptionconfig", KeysetPart::StoredSecret);
    }
    all
}
