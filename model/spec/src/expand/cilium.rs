//! `spec.networking.cilium`.

use super::fill::fill;
use crate::api::cilium::{
    CiliumIngressSpec, CiliumNetworkingSpec, ISTIO_PROXY, OTHER_CONNECTIONS, TCP_CONNECTIONS,
    TRANSLATIONS,
};
use crate::api::cluster::ClusterSpec;
use full::{Cilium, CiliumIngress, Hubble};
use node::ports;
use std::collections::BTreeMap;

/// The release that kctl installs. kOps pins 1.18, which its vendor does not test with Kubernetes 1.34 and newer.
const RELEASE: &str = "v1.20.2";

const REGISTRY: &str = "quay.io";

/// Size of a further table that kOps writes into the completed spec.
const NEIGHBOURS: i64 = 524_288;

/// Backends in maglev's table of a Service; random is the default.
const MAGLEV: &str = "16381";
const RANDOM: &str = "random";

/// What cilium's chart lets Services have from their Ingress, and its Service of Ingresses that share one.
const ANNOTATION_PREFIXES: &str = "lbipam.cilium.io nodeipam.cilium.io service.beta.kubernetes.io service.kubernetes.io cloud.google.com";
const SHARED_SERVICE: &str = "cilium-ingress";

/// The one namespace of which agents read Secrets.
const SECRETS: &str = "cilium-secrets";

/// Packets of pods leave as they are: AWS knows where pods are.
const NO_TUNNEL: &str = "disabled";

/// Fills in the defaults of kOps.
pub(super) fn complete_cilium(spec: &mut ClusterSpec) {
    let ipv6 = spec.is_ipv6();
    let networking = spec.networking.as_mut();
    let Some(cilium) = networking.and_then(|networking| networking.cilium.as_mut()) else {
        return;
    };
    fill(&mut cilium.version, RELEASE);
    fill(&mut cilium.cpu_request, "25m");
    fill(&mut cilium.memory_request, "128Mi");
    fill(&mut cilium.agent_prometheus_port, 9090);
    fill(&mut cilium.bpf_ct_global_tcp_max, TCP_CONNECTIONS);
    fill(&mut cilium.bpf_ct_global_any_max, OTHER_CONNECTIONS);
    fill(&mut cilium.bpf_nat_global_max, TRANSLATIONS);
    fill(&mut cilium.bpf_neigh_global_max, NEIGHBOURS);
    fill(&mut cilium.bpf_policy_map_max, 16_384);
    fill(&mut cilium.bpf_lb_map_max, 65_536);
    fill(&mut cilium.bpf_lb_algorithm, RANDOM);
    fill(&mut cilium.bpf_lb_maglev_table_size, MAGLEV);
    fill(&mut cilium.cluster_name, "default");
    fill(&mut cilium.cni_exclusive, true);
    fill(&mut cilium.disable_cnp_status_updates, true);
    fill(&mut cilium.disable_masquerade, ipv6);
    let in_vpc = cilium.uses_interfaces();
    fill(&mut cilium.enable_bpf_masquerade, in_vpc);
    fill(&mut cilium.enable_endpoint_health_checking, true);
    fill(&mut cilium.enable_host_firewall, false);
    fill(&mut cilium.enable_l7_proxy, true);
    fill(&mut cilium.enable_local_redirect_policy, false);
    fill(&mut cilium.enable_remote_node_identity, true);
    fill(&mut cilium.enable_unreachable_routes, false);
    fill(&mut cilium.identity_allocation_mode, "crd");
    fill(&mut cilium.identity_change_grace_period, "5s");
    fill(&mut cilium.ipam, "kubernetes");
    fill(&mut cilium.monitor_aggregation, "medium");
    fill(&mut cilium.sidecar_istio_proxy_image, ISTIO_PROXY);
    fill(&mut cilium.to_fqdns_dns_reject_response_code, "refused");
    let direct = in_vpc || ipv6;
    fill(&mut cilium.tunnel, if direct { NO_TUNNEL } else { "vxlan" });
    if cilium.uses_ipsec() {
        fill(&mut cilium.encryption_type, "ipsec");
    }
    // A section that is there is on.
    let on = cilium.has_hubble();
    fill(&mut cilium.hubble.get_or_insert_default().enabled, on);
    let on = cilium.ingress().is_some();
    fill(&mut cilium.ingress.get_or_insert_default().enabled, on);
    let on = cilium.gateways().is_some();
    fill(&mut cilium.gateway_api.get_or_insert_default().enabled, on);
}

/// cilium, if it is the network plugin.
pub(super) fn chosen_cilium(spec: &ClusterSpec) -> Option<&CiliumNetworkingSpec> {
    spec.networking.as_ref()?.cilium.as_deref()
}

/// True if it is the network plugin and pods have addresses of network interfaces.
pub(super) fn uses_interfaces(spec: &ClusterSpec) -> bool {
    chosen_cilium(spec).is_some_and(CiliumNetworkingSpec::uses_interfaces)
}

/// How many addresses an agent takes for itself: of its router, of the pod that it probes, and of what serves Ingresses.
pub(super) fn own_addresses(cilium: &CiliumNetworkingSpec) -> u32 {
    let serves = cilium.ingress().is_some() || cilium.gateways().is_some();
    2 + u32::from(serves)
}

/// Whether the standard plugin `portmap` follows cilium's own.
pub(super) fn maps_host_ports(cilium: &CiliumNetworkingSpec) -> bool {
    cilium.chaining_mode.as_deref() == Some("portmap")
}

/// cilium of a completed spec; `None` where another network plugin is chosen.
pub(super) fn full_cilium(spec: &ClusterSpec) -> Option<Cilium> {
    let cilium = chosen_cilium(spec)?;
    let registry = cilium.registry.as_deref().unwrap_or(REGISTRY);
    let version = cilium.version.as_deref().unwrap_or_default();
    let image = |name: &str| format!("{registry}/cilium/{name}:{version}");
    Some(Cilium {
        image: image("cilium"),
        operator_image: image("operator"),
        tcp_ports: tcp_ports(cilium),
        udp_ports: udp_ports(cilium),
        eni: cilium.uses_interfaces(),
        ipsec: cilium.uses_ipsec(),
        settings: settings(cilium, spec.is_ipv6()),
        cpu_request: cilium.cpu_request.clone().unwrap_or_default(),
        memory_request: cilium.memory_request.clone().unwrap_or_default(),
        hubble: cilium.has_hubble().then(|| Hubble {
            relay_image: image("hubble-relay"),
            cluster_name: text(cilium.cluster_name.as_ref()),
            debug: cilium.debug == Some(true),
        }),
        ingress: cilium.ingress().map(|ingress| CiliumIngress {
            shared_service: shared_service(ingress),
        }),
        gateways: cilium.gateways().is_some(),
        agent_annotations: cilium.agent_pod_annotations.clone(),
        operator_annotations: cilium.operator_pod_annotations.clone(),
    })
}

/// At which agents probe each other and serve flows and metrics.
fn tcp_ports(cilium: &CiliumNetworkingSpec) -> Vec<u16> {
    let mut all = vec![ports::CILIUM_HEALTH];
    if cilium.has_hubble() {
        all.push(ports::HUBBLE);
        all.extend((!hubble_metrics(cilium).is_empty()).then_some(ports::HUBBLE_METRICS));
    }
    if cilium.enable_prometheus_metrics == Some(true) {
        let agents = cilium.agent_prometheus_port.map(u16::try_from);
        all.extend(agents.and_then(Result::ok));
        all.push(ports::CILIUM_OPERATOR_METRICS);
    }
    all
}

/// Of packets between nodes.
fn udp_ports(cilium: &CiliumNetworkingSpec) -> Vec<u16> {
    let tunnel = match cilium.tunnel.as_deref() {
        Some(NO_TUNNEL) => None,
        Some("geneve") => Some(ports::CILIUM_GENEVE),
        _ => Some(ports::CILIUM_VXLAN),
    };
    let wireguard = uses_wireguard(cilium).then_some(ports::CILIUM_WIREGUARD);
    tunnel.into_iter().chain(wireguard).collect()
}

fn hubble_metrics(cilium: &CiliumNetworkingSpec) -> String {
    let metrics = cilium.hubble.iter().flat_map(|hubble| &hubble.metrics);
    let metrics: Vec<&str> = metrics.map(String::as_str).collect();
    metrics.join(" ")
}

/// What fields of the spec say, as entries of cilium's ConfigMap.
fn settings(cilium: &CiliumNetworkingSpec, ipv6: bool) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    all.extend(agent_settings(cilium));
    all.extend(service_settings(cilium));
    all.extend(policy_settings(cilium));
    all.extend(packet_settings(cilium, ipv6));
    all.extend(table_settings(cilium));
    all.extend(metric_settings(cilium));
    all.extend(hubble_settings(cilium));
    all.extend(encryption_settings(cilium));
    all.extend(ingress_settings(cilium));
    all.extend(gateway_settings(cilium));
    all.extend(cilium.extra_config.clone());
    all
}

fn switch(value: Option<bool>) -> String {
    (value == Some(true)).to_string()
}

fn text(value: Option<&String>) -> String {
    value.cloned().unwrap_or_default()
}

/// The agent itself, and its cluster.
fn agent_settings(cilium: &CiliumNetworkingSpec) -> Vec<(String, String)> {
    let id = cilium.cluster_id.unwrap_or_default();
    let probes = cilium.enable_endpoint_health_checking;
    let mut all = vec![
        ("cluster-id", id.to_string()),
        ("cluster-name", text(cilium.cluster_name.as_ref())),
        ("cni-exclusive", switch(cilium.cni_exclusive)),
        ("debug", switch(cilium.debug)),
        ("disable-endpoint-crd", switch(cilium.disable_endpoint_crd)),
        ("enable-endpoint-health-checking", switch(probes)),
        ("ipam", text(cilium.ipam.as_ref())),
        (
            "monitor-aggregation",
            text(cilium.monitor_aggregation.as_ref()),
        ),
        ("preallocate-bpf-maps", switch(cilium.preallocate_bpf_maps)),
    ];
    if maps_host_ports(cilium) {
        all.push(("cni-chaining-mode", "portmap".to_owned()));
    }
    owned(all)
}

/// Services.
fn service_settings(cilium: &CiliumNetworkingSpec) -> Vec<(String, String)> {
    let number = |value: Option<i64>| value.unwrap_or_default().to_string();
    let at_sockets = cilium.bpf_lb_sock.or(cilium.enable_host_reachable_services);
    // As cilium's chart does for the weights of routes.
    let for_gateways = cilium.gateways().map(|_| true);
    let of_host = cilium.bpf_lb_sock_host_ns_only.or(for_gateways);
    let redirects = cilium.enable_local_redirect_policy;
    owned(vec![
        ("bpf-lb-map-max", number(cilium.bpf_lb_map_max)),
        ("bpf-lb-sock", switch(at_sockets)),
        ("bpf-lb-sock-hostns-only", switch(of_host)),
        ("bpf-policy-map-max", number(cilium.bpf_policy_map_max)),
        ("enable-local-redirect-policy", switch(redirects)),
        (
            "enable-service-topology",
            switch(cilium.enable_service_topology),
        ),
        ("kube-proxy-replacement", switch(cilium.enable_node_port)),
    ])
}

/// Policies, and the identities that they speak of.
fn policy_settings(cilium: &CiliumNetworkingSpec) -> Vec<(String, String)> {
    let mode = cilium.enable_policy.as_deref().unwrap_or("default");
    let grace = cilium.identity_change_grace_period.as_ref();
    let refused = cilium.to_fqdns_dns_reject_response_code.as_ref();
    owned(vec![
        ("enable-host-firewall", switch(cilium.enable_host_firewall)),
        ("enable-l7-proxy", switch(cilium.enable_l7_proxy)),
        ("enable-policy", mode.to_owned()),
        (
            "identity-allocation-mode",
            text(cilium.identity_allocation_mode.as_ref()),
        ),
        ("identity-change-grace-period", text(grace)),
        ("tofqdns-dns-reject-response-code", text(refused)),
    ])
}

/// How packets reach pods of other nodes.
fn packet_settings(cilium: &CiliumNetworkingSpec, ipv6: bool) -> Vec<(String, String)> {
    let masquerades = cilium.disable_masquerade != Some(true) && !ipv6;
    let tunnel = cilium.tunnel.clone().filter(|way| way != NO_TUNNEL);
    let routing = tunnel.as_ref().map_or("native", |_| "tunnel");
    let mut all = vec![
        (
            "auto-direct-node-routes",
            switch(cilium.auto_direct_node_routes),
        ),
        (
            "enable-bpf-masquerade",
            switch(cilium.enable_bpf_masquerade),
        ),
        ("enable-ipv4-masquerade", masquerades.to_string()),
        ("enable-ipv6-masquerade", switch(None)),
        ("routing-mode", routing.to_owned()),
        ("service-no-backend-response", "reject".to_owned()),
    ];
    if let Some(tunnel) = tunnel {
        all.push(("tunnel-protocol", tunnel));
        all.push(("tunnel-source-port-range", "0-0".to_owned()));
    }
    if ipv6 {
        all.extend([
            ("enable-ipv4", "false".to_owned()),
            ("enable-ipv6", "true".to_owned()),
            ("operator-api-serve-addr", "[::1]:9234".to_owned()),
        ]);
    }
    if cilium.uses_interfaces() {
        all.push(("auto-create-cilium-node-resource", switch(Some(true))));
        all.push(("enable-endpoint-routes", switch(Some(true))));
    }
    owned(all)
}

/// Sizes and ways of tables that are not the defaults.
fn table_settings(cilium: &CiliumNetworkingSpec) -> Vec<(String, String)> {
    let sizes = [
        (
            "bpf-ct-global-tcp-max",
            cilium.bpf_ct_global_tcp_max,
            TCP_CONNECTIONS,
        ),
        (
            "bpf-ct-global-any-max",
            cilium.bpf_ct_global_any_max,
            OTHER_CONNECTIONS,
        ),
        (
            "bpf-nat-global-max",
            cilium.bpf_nat_global_max,
            TRANSLATIONS,
        ),
        (
            "bpf-neigh-global-max",
            cilium.bpf_neigh_global_max,
            NEIGHBOURS,
        ),
    ];
    // One of translations is checked against those of connections, which must not then follow the memory.
    let fixed = cilium.bpf_nat_global_max != Some(TRANSLATIONS);
    let sizes = sizes.into_iter().filter_map(|(name, value, usual)| {
        let by_memory = |value: &i64| *value == usual && !(fixed && name.starts_with("bpf-ct-"));
        let value = value.filter(|value| !by_memory(value))?;
        Some((name, value.to_string()))
    });
    let mut all: Vec<_> = sizes.collect();
    let ways = [
        ("bpf-lb-algorithm", &cilium.bpf_lb_algorithm, RANDOM),
        (
            "bpf-lb-maglev-table-size",
            &cilium.bpf_lb_maglev_table_size,
            MAGLEV,
        ),
    ];
    all.extend(ways.into_iter().filter_map(|(name, value, usual)| {
        let value = value.clone().filter(|value| value != usual)?;
        Some((name, value))
    }));
    if cilium.enable_unreachable_routes == Some(true) {
        all.push(("enable-unreachable-routes", "true".to_owned()));
    }
    if cilium.iptables_rules_noinstall == Some(true) {
        all.push(("install-iptables-rules", "false".to_owned()));
    }
    owned(all)
}

/// Where metrics are served.
fn metric_settings(cilium: &CiliumNetworkingSpec) -> Vec<(String, String)> {
    if cilium.enable_prometheus_metrics != Some(true) {
        return Vec::new();
    }
    let port = cilium.agent_prometheus_port.unwrap_or_default();
    let operator = format!(":{}", ports::CILIUM_OPERATOR_METRICS);
    let mut all = vec![
        ("enable-metrics", "true".to_owned()),
        ("operator-prometheus-serve-addr", operator),
        ("prometheus-serve-addr", format!(":{port}")),
    ];
    if !cilium.metrics.is_empty() {
        all.push(("metrics", cilium.metrics.join(" ")));
    }
    owned(all)
}

/// The agents' server of flows, which the relay asks; cert-manager issues its certificate.
fn hubble_settings(cilium: &CiliumNetworkingSpec) -> Vec<(String, String)> {
    if !cilium.has_hubble() {
        return owned(vec![("enable-hubble", switch(None))]);
    }
    let file = |name: &str| format!("/var/lib/cilium/tls/hubble/{name}");
    let mut all = vec![
        ("enable-hubble", switch(Some(true))),
        ("hubble-disable-tls", switch(None)),
        ("hubble-listen-address", format!(":{}", ports::HUBBLE)),
        (
            "hubble-socket-path",
            "/var/run/cilium/hubble.sock".to_owned(),
        ),
        ("hubble-tls-cert-file", file("server.crt")),
        ("hubble-tls-client-ca-files", file("client-ca.crt")),
        ("hubble-tls-key-file", file("server.key")),
    ];
    let metrics = hubble_metrics(cilium);
    if !metrics.is_empty() {
        let server = format!(":{}", ports::HUBBLE_METRICS);
        all.push(("hubble-metrics", metrics));
        all.push(("hubble-metrics-server", server));
    }
    owned(all)
}

fn uses_wireguard(cilium: &CiliumNetworkingSpec) -> bool {
    cilium.enable_encryption == Some(true) && !cilium.uses_ipsec()
}

/// Traffic between nodes as IPsec's or WireGuard's packets.
fn encryption_settings(cilium: &CiliumNetworkingSpec) -> Vec<(String, String)> {
    if cilium.uses_ipsec() {
        return owned(vec![
            ("enable-ipsec", switch(Some(true))),
            ("ipsec-key-file", "/etc/ipsec/keys".to_owned()),
        ]);
    }
    if !uses_wireguard(cilium) {
        return Vec::new();
    }
    owned(vec![
        ("enable-wireguard", switch(Some(true))),
        ("encrypt-node", switch(cilium.node_encryption)),
    ])
}

/// The name of the Service of Ingresses that share one, where the spec speaks of it: it makes a load balancer.
fn shared_service(ingress: &CiliumIngressSpec) -> Option<String> {
    let shared = ingress.default_load_balancer_mode.as_deref() == Some("shared");
    let named = ingress.shared_load_balancer_service_name.clone();
    named.or_else(|| shared.then(|| SHARED_SERVICE.to_owned()))
}

/// Its Ingress controller. What the spec does not say is as in cilium's chart.
fn ingress_settings(cilium: &CiliumNetworkingSpec) -> Vec<(String, String)> {
    let Some(ingress) = cilium.ingress() else {
        return Vec::new();
    };
    let or = |said: &Option<String>, usual: &str| said.clone().unwrap_or_else(|| usual.to_owned());
    let on = |said: Option<bool>| said.unwrap_or(true).to_string();
    let prefixes = &ingress.load_balancer_annotation_prefixes;
    let service = &ingress.shared_load_balancer_service_name;
    owned(vec![
        ("enable-envoy-config", switch(Some(true))),
        ("enable-ingress-controller", switch(Some(true))),
        (
            "enable-ingress-secrets-sync",
            on(ingress.enable_secrets_sync),
        ),
        ("enforce-ingress-https", on(ingress.enforce_https)),
        (
            "ingress-default-lb-mode",
            or(&ingress.default_load_balancer_mode, "dedicated"),
        ),
        (
            "ingress-lb-annotation-prefixes",
            or(prefixes, ANNOTATION_PREFIXES),
        ),
        ("ingress-secrets-namespace", SECRETS.to_owned()),
        (
            "ingress-shared-lb-service-name",
            or(service, SHARED_SERVICE),
        ),
    ])
}

/// Its implementation of the Gateway API.
fn gateway_settings(cilium: &CiliumNetworkingSpec) -> Vec<(String, String)> {
    let Some(gateways) = cilium.gateways() else {
        return Vec::new();
    };
    let synced = gateways.enable_secrets_sync.unwrap_or(true);
    owned(vec![
        ("bpf-lb-algorithm-annotation", switch(Some(true))),
        ("enable-envoy-config", switch(Some(true))),
        ("enable-gateway-api", switch(Some(true))),
        ("enable-gateway-api-secrets-sync", synced.to_string()),
        ("gateway-api-secrets-namespace", SECRETS.to_owned()),
    ])
}

fn owned(all: Vec<(&str, String)>) -> Vec<(String, String)> {
    let owned = |(name, value): (&str, String)| (name.to_owned(), value);
    all.into_iter().map(owned).collect()
}
