//! Desired files with parts of keysets on control planes, at the paths in the components' flags; and the user's secrets.

use crate::components::{EtcdMemberNames, KUBERNETES};
use crate::config::NodeConfig;
use crate::host::{HostObject, KeysetFile, KeysetPart};
use crate::pki::{AGGREGATOR_CA, ETCD_CLIENTS_CA, KUBERNETES_CA, SERVICE_ACCOUNT};
use crate::secret::{DOCKER_CONFIG, ENCRYPTION_CONFIG};

/// Paths of the passwords of image registries: the one that kubelet reads whatever its environment says
/// (kubernetes.io/docs/concepts/containers/images, "Configuring Nodes to authenticate to a private registry"), and kOps' one for
/// programs that operators run.
const DOCKER_CONFIGS: [&str; 2] = ["/var/lib/kubelet/config.json", "/root/.docker/config.json"];

pub(super) fn keyset_objects(config: &NodeConfig) -> Vec<HostObject> {
    let docker = DOCKER_CONFIGS
        .iter()
        .filter(|_| config.docker_config)
        .map(|path| keyset_object((*path).to_owned(), DOCKER_CONFIG, KeysetPart::StoredSecret));
    docker.chain(control_plane_objects(config)).collect()
}

fn keyset_object(path: String, keyset: &str, part: KeysetPart) -> HostObject {
    let open = matches!(
        part,
        KeysetPart::TrustBundle | KeysetPart::Certificate | KeysetPart::PublicKeys
    );
    HostObject::KeysetFile(KeysetFile {
        path,
        mode: if open { "0644" } else { "0400" }.to_owned(),
        keyset: keyset.to_owned(),
        part,
        current: true,
    })
}

fn control_plane_objects(config: &NodeConfig) -> Vec<HostObject> {
    let Some(control_plane) = &config.control_plane else {
        return Vec::new();
    };
    let mut all = Vec::new();
    let mut part = |path: String, keyset: &str, part: KeysetPart| {
        all.push(keyset_object(path, keyset, part));
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
        let prefix = EtcdMemberNames::from_config(etcd, &config.cluster).prefix;
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
    // An encryption configuration from the spec has another path.
    if arguments.any(|argument| *argument == flag) {
        part(encryption, ENCRYPTION_CONFIG, KeysetPart::StoredSecret);
    }
    all
}
