//! What commands that do not expand the spec need to know about a cluster: API endpoint, DNS names, hosted zone. It is read from the
//! completed spec of the last update, or before the first update from the spec as written.

use crate::api::{Cluster, LoadBalancerType};
use crate::expand::{dns_kind, wanted_facts};
use cloud::facts::{HostedZone, hosted_zone};
use full::DnsKind;
use node::components::EtcdMemberNames;
use node::names::dns;
use node::ports;
use std::collections::{BTreeMap, BTreeSet};

/// A cluster as of its last update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedCluster {
    pub name: String,
    /// The region of its zones; `None` if it has no zone.
    pub region: Option<String>,
    pub api: ApiEndpoint,
    /// The kind of hosted zone in which the cluster's names are published.
    pub dns: DnsKind,
    /// The hosted zone that the spec names, by id or name.
    pub dns_zone: Option<String>,
    /// Names by which clients reach it, sorted, without trailing dots. protokube withdraws those of control planes that are replaced.
    pub client_names: BTreeSet<String>,
    /// Names of the etcd members in the spec, likewise. A name keeps its last address until another instance runs the member.
    pub member_names: BTreeSet<String>,
    /// The destinations in `additionalRoutes` of all subnets.
    pub route_destinations: Vec<String>,
    /// True if pods, Services and instances have IPv6 addresses.
    pub ipv6: bool,
    /// The keys of `spec.cloudLabels`.
    pub cloud_labels: Vec<String>,
    /// The version of each etcd cluster, without `v`.
    pub etcd_versions: BTreeMap<String, String>,
}

/// How the API of a cluster is addressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiEndpoint {
    /// The name for operators: `api.NAME`.
    pub public_name: String,
    /// The name for instances, which the API's certificate always has: `api.internal.NAME`.
    pub internal_name: String,
    /// The port of the public name on which client certificates work.
    pub port: u16,
    /// Who can resolve the names.
    pub resolved_by: ResolvedBy,
}

/// Who can resolve the names of an API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolvedBy {
    /// Nobody can: the cluster has no names in DNS.
    Nobody,
    /// Only the VPC: the names are in a private hosted zone. Operators are elsewhere if the load balancer is internet-facing (kOps' rule).
    Vpc,
    /// Everybody who may reach the API.
    Everybody,
}

impl CompletedCluster {
    /// Reads a completed spec, or the spec as written.
    pub fn from_cluster(cluster: &Cluster) -> Self {
        let spec = &cluster.spec;
        let routes = spec.subnets.iter();
        let routes = routes.flat_map(|subnet| &subnet.additional_routes);
        let version = |version: &String| version.trim_start_matches('v').to_owned();
        let versions = spec.etcd_clusters.iter();
        let versions =
            versions.filter_map(|etcd| Some((etcd.name.clone(), version(etcd.version.as_ref()?))));
        Self {
            name: cluster.name().to_owned(),
            region: wanted_facts(cluster, &[]).region,
            api: ApiEndpoint::from_cluster(cluster),
            dns: dns_kind(spec),
            dns_zone: spec.dns_zone.clone(),
            client_names: client_names(cluster),
            member_names: member_names(cluster),
            route_destinations: routes.map(|route| route.cidr.clone()).collect(),
            ipv6: spec.is_ipv6(),
            cloud_labels: spec.cloud_labels.keys().cloned().collect(),
            etcd_versions: versions.collect(),
        }
    }

    /// Every name that kctl or protokube publishes for the cluster.
    pub fn record_names(&self) -> Vec<String> {
        let all = self.client_names.union(&self.member_names);
        all.cloned().collect()
    }

    /// The id of the hosted zone with the cluster's records: the one in the spec, else the zone with the longest name that contains the
    /// cluster's. `None`: the cluster has no DNS names, or the zone no longer exists.
    pub fn hosted_zone(&self, zones: &[HostedZone]) -> Option<String> {
        let private = match self.dns {
            DnsKind::None => return None,
            DnsKind::Private => true,
            DnsKind::Public => false,
        };
        let zone = hosted_zone(zones, self.dns_zone.as_deref(), &self.name, private);
        zone.map(|zone| zone.id.clone())
    }
}

impl ApiEndpoint {
    fn from_cluster(cluster: &Cluster) -> Self {
        let (name, spec) = (cluster.name(), &cluster.spec);
        let balancer = spec.api.as_ref().and_then(|api| api.load_balancer.as_ref());
        let faces_internet =
            balancer.is_some_and(|one| one.type_ != Some(LoadBalancerType::Internal));
        let ends_tls = balancer.is_some_and(|balancer| balancer.ssl_certificate.is_some());
        let public = spec.master_public_name.clone();
        let internal = spec.master_internal_name.clone();
        Self {
            public_name: public.unwrap_or_else(|| dns::api_name(name)),
            internal_name: internal.unwrap_or_else(|| dns::api_internal(name)),
            port: if ends_tls {
                ports::API_BESIDE_ACM_CERTIFICATE
            } else {
                ports::API
            },
            resolved_by: match dns_kind(spec) {
                DnsKind::None => ResolvedBy::Nobody,
                DnsKind::Private if faces_internet => ResolvedBy::Vpc,
                DnsKind::Private | DnsKind::Public => ResolvedBy::Everybody,
            },
        }
    }
}

/// The names by which clients reach a cluster, including the default names.
fn client_names(cluster: &Cluster) -> BTreeSet<String> {
    let (name, spec) = (cluster.name(), &cluster.spec);
    let mut all = BTreeSet::from([
        dns::api_name(name),
        dns::api_internal(name),
        dns::bootstrap_name(name),
        dns::bastion_name(name),
    ]);
    let named = [&spec.master_public_name, &spec.master_internal_name];
    all.extend(named.into_iter().flatten().cloned());
    all
}

fn member_names(cluster: &Cluster) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for etcd in &cluster.spec.etcd_clusters {
        let members = etcd.etcd_members.iter().map(|member| &member.name);
        let names = EtcdMemberNames::new(&etcd.name, members, cluster.name());
        all.extend(names.member_hosts());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::DnsType;
    use crate::api::api_access::LoadBalancerAccessSpec;
    use crate::api::etcd::{EtcdClusterSpec, EtcdMemberSpec};
    use crate::api::topology::DNSSpec;

    /// A rolling update waits until no client's name leads to an instance. A member's name always does.
    #[test]
    fn names_of_etcd_members_are_the_clusters_but_not_for_clients() {
        let mut cluster = Cluster::default();
        cluster.metadata.name = "a.example.com".to_owned();
        let member = EtcdMemberSpec {
            name: "a".to_owned(),
            ..EtcdMemberSpec::default()
        };
        let etcd = |name: &str| EtcdClusterSpec {
            name: name.to_owned(),
            etcd_members: vec![member.clone()],
            ..EtcdClusterSpec::default()
        };
        cluster.spec.etcd_clusters = vec![etcd("main"), etcd("events")];
        let completed = CompletedCluster::from_cluster(&cluster);
        let members = ["etcd-a", "etcd-events-a"];
        let members = members.map(|name| format!("{name}.internal.a.example.com"));
        assert_eq!(completed.member_names, members.clone().into());
        assert!(completed.client_names.is_disjoint(&completed.member_names));
        let all = completed.record_names();
        assert!(members.iter().all(|name| all.contains(name)), "{all:?}");
    }

    #[test]
    fn names_of_a_private_zone_are_for_operators_beside_an_internal_balancer_or_none() {
        use DnsType::{None as Nowhere, Private, Public};
        use LoadBalancerType::Internal;
        let internet = LoadBalancerType::Public;
        for (dns, balancer, expected) in [
            (Some(Nowhere), Some(internet), ResolvedBy::Nobody),
            (Some(Private), Some(internet), ResolvedBy::Vpc),
            (Some(Private), Some(Internal), ResolvedBy::Everybody),
            (Some(Private), None, ResolvedBy::Everybody),
            (Some(Public), Some(internet), ResolvedBy::Everybody),
            (None, None, ResolvedBy::Everybody),
        ] {
            let mut cluster = Cluster::default();
            let topology = cluster.spec.topology.get_or_insert_default();
            topology.dns = dns.map(|type_| DNSSpec { type_: Some(type_) });
            cluster.spec.api.get_or_insert_default().load_balancer =
                balancer.map(|type_| LoadBalancerAccessSpec {
                    type_: Some(type_),
                    ..LoadBalancerAccessSpec::default()
                });
            let resolved_by = CompletedCluster::from_cluster(&cluster).api.resolved_by;
            assert_eq!(resolved_by, expected, "{dns:?} {balancer:?}");
        }
    }
}
