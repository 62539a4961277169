//! How the API of a new cluster is reached.

use super::options::{CreateOptions, Topology};
use crate::api::api_access::{APISpec, DNSAccessSpec, LoadBalancerAccessSpec};
use crate::api::cluster::ClusterSpec;
use crate::api::{DnsType, LoadBalancerClass, LoadBalancerType};
use node::names::dns;

/// TLS 1.2 and 1.3 alone: what AWS recommends, and its console's default
/// (docs.aws.amazon.com/elasticloadbalancing/latest/network/describe-ssl-policies.html). kOps' default, which a spec without
/// `sslPolicy` keeps, is ELBSecurityPolicy-2016-08 with TLS 1.0 and 1.1.
const SSL_POLICY: &str = "ELBSecurityPolicy-TLS13-1-2-2021-06";

/// A load balancer where instances are private, where there are no names, and where one was asked
/// for; names otherwise.
pub(super) fn choose_api_access(options: &CreateOptions, spec: &mut ClusterSpec) {
    let dns = spec
        .topology
        .as_ref()
        .and_then(|topology| topology.dns.as_ref());
    let has_names = dns.is_some_and(|dns| dns.type_ != Some(DnsType::None));
    let asked = options.api_load_balancer_type.is_some() || options.api_ssl_certificate.is_some();
    let balanced = asked || !has_names || options.topology == Topology::Private;
    spec.api = Some(APISpec {
        dns: (!balanced).then_some(DNSAccessSpec {}),
        load_balancer: balanced.then(|| LoadBalancerAccessSpec {
            class: Some(LoadBalancerClass::Network),
            type_: Some(
                options
                    .api_load_balancer_type
                    .unwrap_or(LoadBalancerType::Public),
            ),
            ssl_certificate: options.api_ssl_certificate.clone(),
            ssl_policy: options
                .api_ssl_certificate
                .as_ref()
                .map(|_| SSL_POLICY.to_owned()),
            ..LoadBalancerAccessSpec::default()
        }),
        node_proxy: None,
    });
    spec.master_public_name = options
        .api_public_name
        .clone()
        .or_else(|| has_names.then(|| dns::api_name(&options.name)));
}
