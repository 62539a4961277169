//! What the templates of calico's objects are rendered with.

use super::{Calico, Encapsulated, Encapsulation, Typha};
use crate::FullSpec;
use crate::nodes::proxy_environment;
use node::digest::sha256_hex;
use node::ports;
use serde::Serialize;
use serde_json::{Value, json};
use templates::{Template, Variable};

/// Accounts and their rights.
#[derive(Serialize)]
pub(super) struct Access {
    /// What the audiences of a token that an agent requests must be, in CEL.
    audience_rule: String,
}

impl Template for Access {
    const NAME: &'static str = "calico/rbac.yaml.hbs";
    const SOURCE: &'static str = include_str!("rbac.yaml.hbs");
}

impl Access {
    pub(super) fn new(full: &FullSpec) -> Self {
        // The API server fills these in where a request names none.
        let audiences = full.control_plane.api_server.flags.get("api-audiences");
        let audiences: Vec<&str> = audiences.unwrap_or_default().split(',').collect();
        // A list in JSON is one in CEL.
        let audiences = json!(audiences);
        Self {
            audience_rule: format!("variables.wanted.audiences.all(one, one in {audiences})"),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Manifest {
    image: String,
    plugin_image: String,
    controllers_image: String,
    typha_image: String,
    bpf: bool,
    api_host: String,
    backend: &'static str,
    /// True: calico gives pods IPv4 addresses of its pools. Otherwise they have IPv6 addresses of the range of their Node.
    pools: bool,
    ipv4_address: &'static str,
    ipv6_address: &'static str,
    ipv6_support: String,
    mtu: String,
    forwarding: bool,
    /// So that a change of what agents read when they start restarts them.
    config_sha256: String,
    ipv4_detection: String,
    ipv6_detection: String,
    ipip: &'static str,
    vxlan: &'static str,
    vxlan6: &'static str,
    pool: String,
    settings: Vec<Variable>,
    alive: Vec<&'static str>,
    ready: Vec<&'static str>,
    ports: Option<Value>,
    resources: Value,
    typha_service: &'static str,
    typha: Option<TyphaPods>,
}

#[derive(Serialize)]
struct TyphaPods {
    replicas: i32,
    metrics: String,
    metrics_port: String,
    ports: Value,
}

impl Template for Manifest {
    const NAME: &'static str = "calico/manifest.yaml.hbs";
    const SOURCE: &'static str = include_str!("manifest.yaml.hbs");
}

impl Manifest {
    pub(super) fn new(full: &FullSpec, calico: &Calico) -> Self {
        let never = Encapsulated::Never.as_str();
        let (backend, ipip, vxlan) = match calico.encapsulation {
            Encapsulation::Ipip(which) => ("bird", which.as_str(), never),
            Encapsulation::Vxlan(which) => ("vxlan", never, which.as_str()),
            Encapsulation::None => ("none", never, never),
        };
        let bird = backend == "bird";
        let typha_service = calico.typha.as_ref().map_or("none", |_| "calico-typha");
        let api_host = full.dns.api_internal_name.clone();
        let endpoint = calico.bpf.then_some(&api_host);
        let read_at_start = json!([
            backend,
            calico.mtu,
            calico.allow_ip_forwarding,
            typha_service,
            endpoint,
        ]);
        Self {
            image: calico.image.clone(),
            plugin_image: calico.plugin_image.clone(),
            controllers_image: calico.controllers_image.clone(),
            typha_image: calico.typha_image.clone(),
            bpf: calico.bpf,
            config_sha256: sha256_hex(read_at_start.to_string()),
            api_host,
            backend,
            pools: !full.is_ipv6(),
            ipv4_address: address_of(!full.is_ipv6()),
            ipv6_address: address_of(full.is_ipv6()),
            ipv6_support: full.is_ipv6().to_string(),
            mtu: calico.mtu.to_string(),
            forwarding: calico.allow_ip_forwarding,
            ipv4_detection: calico.ipv4_detection.clone(),
            ipv6_detection: calico.ipv6_detection.clone(),
            ipip,
            vxlan,
            vxlan6: calico.ipv6_vxlan.as_str(),
            pool: calico.pool.clone(),
            settings: settings(full, calico),
            alive: probe("-felix-live", bird.then_some("-bird-live")),
            ready: probe("-felix-ready", bird.then_some("-bird-ready")),
            ports: calico
                .metrics_port
                .map(|port| json!([container_port("metrics", port)])),
            resources: json!({"requests": {"cpu": calico.cpu_request}}),
            typha_service,
            typha: calico.typha.as_ref().map(typha_pods),
        }
    }
}

/// How the agent knows the address of its node in a family that nodes have, or not.
fn address_of(has_family: bool) -> &'static str {
    if has_family { "autodetect" } else { "none" }
}

/// The settings of the agent, and the proxy through which it reaches EC2.
fn settings(full: &FullSpec, calico: &Calico) -> Vec<Variable> {
    let own = calico.settings.iter().map(|(name, value)| Variable {
        name: name.clone(),
        value: value.clone(),
    });
    own.chain(proxy_environment(full)).collect()
}

fn probe(of_agent: &'static str, of_routes: Option<&'static str>) -> Vec<&'static str> {
    let always = ["/bin/calico-node", of_agent];
    always.into_iter().chain(of_routes).collect()
}

fn typha_pods(typha: &Typha) -> TyphaPods {
    let mut ports = vec![container_port("calico-typha", ports::TYPHA.into())];
    if typha.metrics {
        ports.push(container_port("metrics", typha.metrics_port));
    }
    TyphaPods {
        replicas: typha.replicas,
        metrics: typha.metrics.to_string(),
        metrics_port: typha.metrics_port.to_string(),
        ports: ports.into(),
    }
}

fn container_port(name: &str, port: i32) -> Value {
    json!({"containerPort": port, "name": name, "protocol": "TCP"})
}
