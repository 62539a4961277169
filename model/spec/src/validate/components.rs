//! Settings of the control plane's components that exclude each other or name a choice.

use crate::api::cluster::ClusterSpec;
use crate::read::Problem;

use super::text::check_one_of;
use node::duration::parse_seconds;
use node::values::{Refusal, parse_endpoint};

/// Lives of kubelets' certificates, seconds: Kubernetes signs none for less than ten minutes, and none outlives its authority,
/// which has ten years.
const SIGNING: (f64, f64) = (600.0, 315_360_000.0);

pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    check_apiserver(spec, problems);
    check_proxy(spec, problems);
    check_dns(spec, problems);
    let controller_manager = spec.kube_controller_manager.as_ref();
    if let Some(size) = controller_manager
        .and_then(|config| config.node_cidr_mask_size)
        .filter(|size| !(16..=30).contains(size))
    {
        let problem = Problem::error(
            "spec.kubeControllerManager.nodeCIDRMaskSize",
            format!("a /{size} is no range for the pods of a node"),
        );
        problems.push(problem.hint("use 16 to 30; 24 has room for 254 pods"));
    }
    let signing = controller_manager.and_then(|config| config.cluster_signing_duration.as_deref());
    let signing = signing.and_then(|said| Some((said, parse_seconds(said)?)));
    if let Some((said, _)) = signing.filter(|(_, life)| *life < SIGNING.0 || *life > SIGNING.1) {
        let problem = Problem::error(
            "spec.kubeControllerManager.ClusterSigningDuration",
            format!("kubelets' certificates cannot be good for {said}"),
        );
        problems.push(problem.hint("use 10m to 87600h; 8760h is Kubernetes' default"));
    }
    for (path, format) in [
        (
            "spec.kubeAPIServer.logFormat",
            spec.kube_api_server
                .as_ref()
                .and_then(|config| config.log_format.as_deref()),
        ),
        (
            "spec.kubeControllerManager.logFormat",
            controller_manager.and_then(|config| config.log_format.as_deref()),
        ),
        (
            "spec.kubeScheduler.logFormat",
            spec.kube_scheduler
                .as_ref()
                .and_then(|config| config.log_format.as_deref()),
        ),
    ] {
        if let Some(format) = format {
            check_one_of(path, format, &["text", "json"], problems);
        }
    }
    let scheduler = spec.kube_scheduler.as_ref();
    if scheduler.is_some_and(|config| config.max_persistent_volumes.is_some()) {
        // KUBE_MAX_PD_VOLS went with the plugins of volumes that are not CSI's.
        let problem = Problem::warning(
            "spec.kubeScheduler.maxPersistentVolumes",
            "kube-scheduler does not read it any more",
        );
        problems.push(problem.hint("remove it: CSI drivers say how many volumes a node takes"));
    }
    if let Some(provider) = spec
        .external_dns
        .as_ref()
        .and_then(|dns| dns.provider.as_deref())
    {
        check_one_of(
            "spec.externalDns.provider",
            provider,
            &["dns-controller", "external-dns", "none"],
            problems,
        );
    }
}

fn check_apiserver(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let Some(config) = &spec.kube_api_server else {
        return;
    };
    let path = "spec.kubeAPIServer";
    if let Some(range) = config
        .service_node_port_range
        .as_deref()
        .filter(|range| parse_port_range(range).is_none())
    {
        let problem = Problem::error(
            format!("{path}.serviceNodePortRange"),
            format!("\"{range}\" is not a range of ports"),
        );
        problems.push(problem.hint("write FIRST-LAST, such as 30000-32767"));
    }
    let modes: Vec<&str> = config
        .authorization_mode
        .as_deref()
        .unwrap_or("Node,RBAC")
        .split(',')
        .collect();
    let known = [
        "AlwaysAllow",
        "AlwaysDeny",
        "ABAC",
        "Node",
        "RBAC",
        "Webhook",
    ];
    for mode in &modes {
        check_one_of(format!("{path}.authorizationMode"), mode, &known, problems);
    }
    if modes.contains(&"RBAC") && !modes.contains(&"Node") {
        let problem = Problem::error(
            format!("{path}.authorizationMode"),
            "without Node, kubelets may not register",
        );
        problems.push(problem.hint("write Node,RBAC"));
    }
    if config.audit_webhook_config_file.is_none() && config.audit_webhook_mode.is_some() {
        let problem = Problem::error(
            format!("{path}.auditWebhookMode"),
            "there is no audit webhook",
        );
        problems.push(problem.hint("add auditWebhookConfigFile, or remove it"));
    }
    if config.anonymous_auth == Some(true) {
        let problem = Problem::warning(
            format!("{path}.anonymousAuth"),
            "anybody may ask the API without a name",
        );
        problems.push(problem.hint("remove it; health checks work without"));
    }
}

/// A range of ports as Kubernetes reads it (`ParsePortRange` of apimachinery): `FIRST-LAST`, `FIRST+MORE` or one port.
pub(crate) fn parse_port_range(text: &str) -> Option<(u16, u16)> {
    let text = text.trim();
    let (first, last) = if let Some((first, last)) = text.split_once('-') {
        (parse_port(first)?, parse_port(last)?)
    } else if let Some((first, more)) = text.split_once('+') {
        let first = parse_port(first)?;
        (first, first.checked_add(parse_port(more)?)?)
    } else {
        let port = parse_port(text)?;
        (port, port)
    };
    (first > 0 && first <= last).then_some((first, last))
}

/// Digits only: `u16` would take a sign.
fn parse_port(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

fn check_proxy(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let Some(mode) = spec
        .kube_proxy
        .as_ref()
        .and_then(|config| config.proxy_mode.as_deref())
    else {
        return;
    };
    check_one_of(
        "spec.kubeProxy.proxyMode",
        mode,
        &["iptables", "ipvs", "nftables"],
        problems,
    );
}

fn check_dns(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let Some(config) = &spec.kube_dns else { return };
    if let Some(provider) = &config.provider {
        // kOps' removed KubeDNS is in the list of what is not done.
        check_one_of(
            "spec.kubeDNS.provider",
            provider,
            &["CoreDNS", "KubeDNS", "None"],
            problems,
        );
    }
    let stubs = config.stub_domains.iter().flat_map(|(domain, servers)| {
        servers.iter().enumerate().map(move |(index, server)| {
            (
                format!(
                    "{}[{index}]",
                    crate::read::path::field_path("spec.kubeDNS.stubDomains", domain)
                ),
                server,
            )
        })
    });
    let upstream = config.upstream_nameservers.iter().enumerate();
    let upstream = upstream
        .map(|(index, server)| (format!("spec.kubeDNS.upstreamNameservers[{index}]"), server));
    for (path, server) in stubs.chain(upstream) {
        if let Err(Refusal { message, hint }) = parse_endpoint(server) {
            problems.push(Problem::error(path, message).hint(hint));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::parse_port_range;

    #[test]
    fn ranges_of_ports_are_those_of_kubernetes() {
        for (text, range) in [
            ("30000-32767", Some((30_000, 32_767))),
            (" 30000-32767 ", Some((30_000, 32_767))),
            ("30000+2767", Some((30_000, 32_767))),
            ("30000", Some((30_000, 30_000))),
            ("30000-30000", Some((30_000, 30_000))),
            ("32767-30000", None),
            ("30000-70000", None),
            ("30000+40000", None),
            ("0-5", None),
            ("30000-", None),
            ("30000 - 32767", None),
            ("30000-+5", None),
            ("", None),
            ("ports", None),
        ] {
            assert_eq!(parse_port_range(text), range, "{text:?}");
        }
    }
}
