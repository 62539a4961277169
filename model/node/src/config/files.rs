//! What nodeup writes on a machine: the group's files, and those that depend on the machine. `kctl render` shows
//! the same for a machine that stands for all of a group.

use super::sysctls::sysctl_file;
use super::{Distribution, Error, File, Host, NodeConfig};
use crate::components::{
    self, CONTAINERD_SOCKET, ContainerdHost, KUBERNETES, component_kubeconfig,
};
use crate::config::{Networking, Role};
use crate::manifests;
use crate::pki::{ClientCredentials, Kubeconfig, kubeconfig};
use crate::yaml::to_yaml;
use serde_json::{Value, json};

/// Where containerd finds what it makes of a Node's range with kubenet.
const CNI_TEMPLATE: &str = "/etc/containerd/config-cni.template";

/// kubelet's client certificate and key, which kubelet renews.
pub const KUBELET_CLIENT: &str = "/var/lib/kubelet/pki/kubelet-client-current.pem";

/// Every file of a machine that is no secret and no download, sorted by path. Static pods of the control plane are
/// not among them: protokube writes those when they can start.
pub fn files(config: &NodeConfig, host: &Host) -> Result<Vec<File>, Error> {
    let mut files = config.files.clone();
    files.push(File::new(
        format!("{KUBERNETES}/ca.crt"),
        &config.ca_certificates,
    ));
    files.push(File::new(
        "/etc/modules-load.d/kubernetes.conf",
        "br_netfilter\noverlay\n",
    ));
    files.push(File::new(
        "/etc/sysctl.d/99-k8s-general.conf",
        sysctl_file(&config.sysctls),
    ));
    // Debian's images have cloud-init write /etc/hosts anew at every boot: the names of etcd's members and of the API are in there. Of
    // files here the last by name counts (<https://docs.cloud-init.io/en/latest/reference/base_config_reference.html>).
    files.push(File::new(
        "/etc/cloud/cloud.cfg.d/99-kctl-hosts.cfg",
        "manage_etc_hosts: false\n",
    ));
    files.extend(upkeep(config, host.distribution));
    files.extend(kubelet(config, host)?);
    files.extend(containerd(config, host)?);
    files.extend(kubeconfigs(config)?);
    if let Some(proxy) = &config.kube_proxy {
        let pod = manifests::proxy(proxy, &config.api_server, host);
        files.push(File::new(manifests::manifest_path("kube-proxy"), to_yaml(&pod)?).mode("0440"));
    }
    // The user's files come first: theirs are kept where two have one path.
    let mut seen = std::collections::BTreeSet::new();
    files.retain(|file| seen.insert(file.path.clone()));
    files.sort();
    Ok(files)
}

/// Time from the hypervisor, and security updates: Amazon Linux does the first by itself.
fn upkeep(config: &NodeConfig, distribution: Distribution) -> Vec<File> {
    let mut files = Vec::new();
    // Daily, as distributions have it, is too rarely for what a control plane writes.
    let hourly = "[Timer]\nOnCalendar=\nOnCalendar=hourly\n";
    files.push(File::new(
        "/etc/systemd/system/logrotate.timer.d/hourly.conf",
        hourly,
    ));
    if distribution == Distribution::Debian && config.ntp {
        let source = "server 169.254.169.123 prefer iburst minpoll 4 maxpoll 4\n";
        files.push(File::new("/etc/chrony/sources.d/amazon.sources", source));
    }
    if distribution == Distribution::Debian && config.automatic_updates {
        let updates = "APT::Periodic::Update-Package-Lists \"1\";\nAPT::Periodic::Unattended-Upgrade \"1\";\n";
        files.push(File::new("/etc/apt/apt.conf.d/20auto-upgrades", updates));
    }
    files
}

fn kubelet(config: &NodeConfig, host: &Host) -> Result<Vec<File>, Error> {
    let mut flags = config.kubelet.flags.clone();
    // The Node is called after the instance, whatever the host's name is: certificates are issued for that.
    flags.fill("hostname-override", &host.instance_id);
    let mut settings = config.kubelet.config.clone();
    if let Value::Object(settings) = &mut settings {
        let mut fill = |name: &str, value: Value| {
            settings.entry(name).or_insert(value);
        };
        fill("providerID", host.provider_id().into());
        if host.systemd_resolved {
            // Not the stub in /etc/resolv.conf, which means this machine and would make CoreDNS ask itself.
            fill("resolvConf", "/run/systemd/resolve/resolv.conf".into());
        }
        if host.cgroup_v1 {
            fill("failCgroupV1", false.into());
        }
    }
    let kubeconfig_path = flags.get("kubeconfig").map(str::to_owned);
    let credentials = ClientCredentials::Files {
        certificate: KUBELET_CLIENT.to_owned(),
        key: KUBELET_CLIENT.to_owned(),
    };
    Ok(vec![
        environment(
            "/etc/sysconfig/kubelet",
            "DAEMON_ARGS",
            &flags.arguments().join(" "),
            config,
        )?,
        File::new("/var/lib/kubelet/kubelet.conf", to_yaml(&settings)?),
        File::new(
            "/var/lib/kubelet/credential-provider.conf",
            to_yaml(&credential_provider(config))?,
        ),
        kubeconfig_file(config, "kubelet", kubeconfig_path, credentials)?,
    ])
}

/// A file of one variable for a unit.
fn environment(path: &str, name: &str, value: &str, config: &NodeConfig) -> Result<File, Error> {
    let variables = vec![templates::Variable {
        name: name.to_owned(),
        value: value.to_owned(),
    }];
    let content = templates::render(&templates::Environment { variables });
    let content = content.map_err(|source| Error::Template {
        group: config.group.clone(),
        source,
    })?;
    Ok(File::new(path, content))
}

/// kubelet gets passwords of ECR from a program beside it: for ECR's own names, and for mirrors if the spec says so.
fn credential_provider(config: &NodeConfig) -> Value {
    let mut images: Vec<String> = [
        "*.dkr.ecr.*.amazonaws.com",
        "*.dkr.ecr.*.amazonaws.com.cn",
        "*.dkr.ecr-fips.*.amazonaws.com",
        "public.ecr.aws",
    ]
    .map(str::to_owned)
    .to_vec();
    if config.containerd.use_ecr_credentials_for_mirrors {
        images.extend(
            config
                .containerd
                .registry_mirrors
                .keys()
                .filter(|registry| *registry != "*")
                .cloned(),
        );
    }
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1",
        "kind": "CredentialProviderConfig",
        "providers": [{
            "name": "ecr-credential-provider",
            "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
            "args": ["get-credentials"],
            "defaultCacheDuration": "12h",
            "matchImages": images,
        }],
    })
}

fn containerd(config: &NodeConfig, host: &Host) -> Result<Vec<File>, Error> {
    let containerd = &config.containerd;
    let crictl = json!({
        "runtime-endpoint": CONTAINERD_SOCKET,
        "image-endpoint": CONTAINERD_SOCKET,
        "timeout": 10,
    });
    let mut files = vec![File::new("/etc/crictl.yaml", to_yaml(&crictl)?)];
    if containerd.skip_install {
        return Ok(files);
    }
    let kubenet = config.networking == Networking::Kubenet;
    let settings = ContainerdHost {
        systemd_cgroup: config
            .kubelet
            .config
            .get("cgroupDriver")
            .and_then(Value::as_str)
            == Some("systemd"),
        cni_template: kubenet.then(|| CNI_TEMPLATE.to_owned()),
        restrict_oom_score_adj: host.restrict_oom_score_adj,
    };
    files.push(File::new(
        "/etc/containerd/config.toml",
        components::containerd_config(containerd, &settings),
    ));
    for (folder, content) in components::containerd_hosts(containerd) {
        files.push(File::new(
            format!("/etc/containerd/certs.d/{folder}/hosts.toml"),
            content,
        ));
    }
    let options = [
        ("--address", &containerd.address),
        ("--log-level", &containerd.log_level),
        ("--root", &containerd.root),
        ("--state", &containerd.state),
    ];
    let options = options
        .iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
    let options = options.collect::<Vec<_>>().join(" ");
    files.push(environment(
        "/etc/sysconfig/containerd",
        "CONTAINERD_OPTS",
        &options,
        config,
    )?);
    if kubenet {
        files.push(File::new(CNI_TEMPLATE, cni_template()));
    }
    Ok(files)
}

/// kubenet's CNI configuration; containerd writes the Node's range into it.
fn cni_template() -> String {
    let template = json!({
        "cniVersion": "0.4.0",
        "name": "k8s-pod-network",
        "plugins": [
            {
                "type": "ptp",
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{ "subnet": "{{.PodCIDR}}" }]],
                    "routes": [{ "dst": "0.0.0.0/0" }],
                },
            },
            { "type": "portmap", "capabilities": { "portMappings": true } },
        ],
    });
    format!("{template:#}\n")
}

/// kubeconfigs of the components. Certificates and keys lie beside them, so these are no secrets.
fn kubeconfigs(config: &NodeConfig) -> Result<Vec<File>, Error> {
    let beside = |folder: &str| ClientCredentials::Files {
        certificate: format!("{folder}/client.crt"),
        key: format!("{folder}/client.key"),
    };
    let mut files = Vec::new();
    if config.kube_proxy.is_some() {
        files.push(kubeconfig_file(
            config,
            "kube-proxy",
            None,
            beside("/var/lib/kube-proxy"),
        )?);
    }
    if config.role == Role::ControlPlane {
        for component in ["kube-controller-manager", "kube-scheduler"] {
            let credentials = beside(&format!("{KUBERNETES}/{component}"));
            files.push(kubeconfig_file(config, component, None, credentials)?);
        }
        files.push(
            kubeconfig_file(config, "kubectl", None, beside("/var/lib/kubectl"))?.mode("0400"),
        );
    }
    Ok(files)
}

fn kubeconfig_file(
    config: &NodeConfig,
    component: &str,
    path: Option<String>,
    credentials: ClientCredentials,
) -> Result<File, Error> {
    let content = kubeconfig(&Kubeconfig {
        name: "local".to_owned(),
        server: config.api_server.clone(),
        // The certificate has every name that machines dial.
        tls_server_name: None,
        trust_bundle: Some(config.ca_certificates.clone()),
        credentials: Some(credentials),
    })?;
    let path = path.unwrap_or_else(|| component_kubeconfig(component));
    Ok(File::new(path, content.reveal()).mode("0400"))
}
