//! The files that nodeup writes: those of the group, and those that depend on the instance. `kctl render` shows the same files
//! for a placeholder instance.

use super::networkd::network_files;
use super::sysctls::{kernel_modules, kernel_parameters_of, sysctl_file};
use super::{Distribution, Error, File, InstanceFacts, Networking, NodeConfig};
use crate::components::{
    self, CONTAINERD_SOCKET, ContainerdHost, KUBERNETES, authenticator, component_kubeconfig,
};
use crate::config::Role;
use crate::manifests;
use crate::pki::{ClientCredentials, Kubeconfig, render_kubeconfig};
use crate::yaml::to_yaml;
use serde_json::{Value, json};

/// Path of the template from which containerd writes the CNI configuration with kubenet.
const CNI_TEMPLATE: &str = "/etc/containerd/config-cni.template";

/// Path of kubelet's client certificate and key, which kubelet renews.
pub const KUBELET_CLIENT: &str = "/var/lib/kubelet/pki/kubelet-client-current.pem";

/// All files of an instance except secrets and downloads, sorted by path. Manifests of the control plane are not included:
/// protokube writes them when they can start.
pub fn host_files(config: &NodeConfig, host: &InstanceFacts) -> Result<Vec<File>, Error> {
    let mut files = config.files.clone();
    files.push(File::new(
        format!("{KUBERNETES}/ca.crt"),
        &config.ca_certificates,
    ));
    files.push(File::new(
        "/etc/modules-load.d/kubernetes.conf",
        kernel_modules(config)?
            .iter()
            .map(|(name, _)| format!("{name}\n"))
            .collect::<String>(),
    ));
    files.push(File::new(
        "/etc/sysctl.d/99-k8s-general.conf",
        sysctl_file(&kernel_parameters_of(config, host)?),
    ));
    // On Debian images cloud-init rewrites /etc/hosts at every boot, which would remove the names of etcd members and of the API. The
    // last file by name wins (<https://docs.cloud-init.io/en/latest/reference/base_config_reference.html>).
    files.push(File::new(
        "/etc/cloud/cloud.cfg.d/99-kctl-hosts.cfg",
        "manage_etc_hosts: false\n",
    ));
    files.extend(upkeep_files(config, host.distribution));
    files.extend(network_files(&config.networking, host)?);
    files.extend(kubelet_files(config, host)?);
    files.extend(containerd_files(config, host)?);
    files.extend(kubeconfig_files(config)?);
    if config.has_authenticator() {
        files.push(authenticator::webhook_config()?);
    }
    if let Some(proxy) = &config.kube_proxy {
        let pod = manifests::build_proxy_pod(proxy, &config.api_server, host);
        files.push(
            File::new(manifests::manifest_path("kube-proxy"), to_yaml(&pod)?).with_mode("0400"),
        );
    }
    files.sort();
    Ok(files)
}

/// Configuration of log rotation, time synchronisation and security updates. Amazon Linux has the right time source by default.
fn upkeep_files(config: &NodeConfig, distribution: Distribution) -> Vec<File> {
    let mut files = Vec::new();
    // Distributions rotate daily, which is too rare for the logs of a control plane.
    let hourly = "[Timer]\nOnCalendar=\nOnCalendar=hourly\n";
    files.push(File::new(
        "/etc/systemd/system/logrotate.timer.d/hourly.conf",
        hourly,
    ));
    if distribution == Distribution::Debian && config.ntp {
        let server =
            |address: &str| format!("server {address} prefer iburst minpoll 4 maxpoll 4\n");
        let mut source = server("169.254.169.123");
        if config.ipv6 {
            // For instances without IPv4.
            source += &server("fd00:ec2::123");
        }
        files.push(File::new("/etc/chrony/sources.d/amazon.sources", source));
    }
    if distribution == Distribution::Debian && config.automatic_updates {
        let updates = "APT::Periodic::Update-Package-Lists \"1\";\nAPT::Periodic::Unattended-Upgrade \"1\";\n";
        files.push(File::new("/etc/apt/apt.conf.d/20auto-upgrades", updates));
    }
    files
}

fn kubelet_files(config: &NodeConfig, host: &InstanceFacts) -> Result<Vec<File>, Error> {
    let mut flags = config.kubelet.flags.clone();
    // The Node has the instance id as its name, whatever the host name is: certificates are issued for the instance id.
    flags.set("hostname-override", &host.instance_id);
    // Otherwise addresses of pods are among the Node's, and kubelet asks for a serving certificate whenever they change.
    let address = host.address.as_ref();
    if let Some(address) = address.filter(|_| config.networking.attaches_interfaces()) {
        flags.set("node-ip", address);
    }
    let mut settings = config.kubelet.config.clone();
    if let Value::Object(settings) = &mut settings {
        let mut fill = |name: &str, value: Value| {
            settings.entry(name).or_insert(value);
        };
        fill("providerID", host.provider_id().into());
        if host.systemd_resolved {
            // Not /etc/resolv.conf: its address is the local stub resolver, so CoreDNS would forward to itself.
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
        environment_file(
            "/etc/sysconfig/kubelet",
            "DAEMON_ARGS",
            &flags.arguments().join(" "),
            config,
        )?,
        File::new("/var/lib/kubelet/kubelet.conf", to_yaml(&settings)?).with_mode("0600"),
        File::new(
            "/var/lib/kubelet/credential-provider.conf",
            to_yaml(&credential_provider(config))?,
        ),
        kubeconfig_file(config, "kubelet", kubeconfig_path, credentials)?,
    ])
}

/// Where a unit finds programs, whatever PATH the image has in `/etc/environment`, which units read before their own file.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// An environment file with one variable, and the search path.
fn environment_file(
    path: &str,
    name: &str,
    value: &str,
    config: &NodeConfig,
) -> Result<File, Error> {
    let variables = [("PATH", PATH), (name, value)].map(|(name, value)| templates::Variable {
        name: name.to_owned(),
        value: value.to_owned(),
    });
    let content = templates::render(&templates::Environment {
        variables: variables.into(),
    });
    let content = content.map_err(|source| Error::Template {
        group: config.group.clone(),
        source,
    })?;
    Ok(File::new(path, content))
}

/// Configuration of kubelet's credential provider for ECR registries, and for mirrors if the spec says so.
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

fn containerd_files(config: &NodeConfig, host: &InstanceFacts) -> Result<Vec<File>, Error> {
    let containerd = &config.containerd;
    let crictl = json!({
        "runtime-endpoint": CONTAINERD_SOCKET,
        "image-endpoint": CONTAINERD_SOCKET,
        "timeout": 10,
    });
    let mut files = vec![File::new("/etc/crictl.yaml", to_yaml(&crictl)?)];
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
    if let Some(platform) = &containerd.gvisor {
        files.push(File::new(
            components::RUNSC_CONFIG,
            components::runsc_config(platform, &settings),
        ));
    }
    if containerd.skip_install {
        return Ok(files);
    }
    files.push(File::new(
        "/etc/containerd/config.toml",
        components::containerd_config(containerd, &settings).map_err(|source| {
            Error::Containerd {
                group: config.group.clone(),
                source,
            }
        })?,
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
    files.push(environment_file(
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

/// The CNI configuration of kubenet as a template into which containerd writes the Node's pod CIDR.
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

/// The kubeconfigs of the components. They refer to certificate and key files, so they contain no secret.
fn kubeconfig_files(config: &NodeConfig) -> Result<Vec<File>, Error> {
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
    }
    Ok(files)
}

fn kubeconfig_file(
    config: &NodeConfig,
    component: &str,
    path: Option<String>,
    credentials: ClientCredentials,
) -> Result<File, Error> {
    let content = render_kubeconfig(&Kubeconfig {
        name: "local".to_owned(),
        server: config.api_server.clone(),
        // The API server's certificate has every name that instances connect to.
        tls_server_name: None,
        trust_bundle: Some(config.ca_certificates.clone()),
        credentials: Some(credentials),
    })?;
    let path = path.unwrap_or_else(|| component_kubeconfig(component));
    Ok(File::new(path, content.reveal()).with_mode("0400"))
}
