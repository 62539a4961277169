//! New clusters: the spec that is written for options of `create cluster`.

use super::compare::{ComparedObject, Difference, Objects, compare_objects};
use super::{read_text, refusals, refused};
use crate::create::old_region;
use node::yaml::to_yaml;
use serde::Serialize;
use serde_json::Value;
use spec::api::{Cluster, DnsType, LoadBalancerType, set};
use spec::create::{Authorization, CreateOptions, Topology, create_cluster_with};
use spec::read::Problem;
use std::path::Path;

/// The objects of a case, or why kctl makes none.
pub fn compare_new_cluster(case: &Path) -> Result<Vec<ComparedObject>, Vec<Difference>> {
    let said: Value = serde_saphyr::from_str(&read_text(&case.join("options.yaml"))).expect("YAML");
    let Wanted {
        options,
        sets,
        unsets,
    } = read_options(&said)?;
    let change = |cluster: &mut Cluster| -> Result<(), Vec<Problem>> {
        for one in &sets {
            let (path, value) = one.split_once('=').expect("a path and a value");
            set::set_field(cluster, path, value)?;
        }
        let mut unsets = unsets.iter();
        unsets.try_for_each(|path| set::unset_field(cluster, path))
    };
    let created = create_cluster_with(&options, &old_region(), change);
    let created = created.map_err(|problems| refusals(&problems))?;
    let mut ours = vec![as_value(&created.cluster)];
    ours.extend(created.groups.iter().map(as_value));
    let theirs = read_text(&case.join("expected.yaml"));
    let theirs: Vec<Value> = serde_saphyr::from_multiple(&theirs).expect("YAML");
    Ok(compare_objects(&by_place(ours), &by_place(theirs)))
}

fn as_value(object: &impl Serialize) -> Value {
    let text = to_yaml(object).expect("YAML");
    serde_saphyr::from_str(&text).expect("YAML")
}

fn by_place(objects: Vec<Value>) -> Objects {
    let placed = objects.into_iter().map(|mut object| {
        // When it was made is not `create`'s to say.
        let metadata = object["metadata"].as_object_mut().expect("metadata");
        metadata.remove("creationTimestamp");
        let kind = text(&object["kind"]);
        let place = if kind == "Cluster" {
            kind
        } else {
            format!("{kind} {}", text(&object["metadata"]["name"]))
        };
        ((place, String::new()), object)
    });
    placed.collect()
}

#[derive(Default)]
struct Wanted {
    options: CreateOptions,
    sets: Vec<String>,
    unsets: Vec<String>,
}

/// kOps' options as kctl's.
fn read_options(said: &Value) -> Result<Wanted, Vec<Difference>> {
    let mut wanted = Wanted::default();
    wanted.options.state_store = "memfs://tests".into();
    for (name, value) in said.as_object().expect("options") {
        match (name.as_str(), value.as_str()) {
            ("CloudProvider", Some("aws")) | ("InstanceManager", Some("cloudgroups")) => {}
            ("CloudProvider" | "InstanceManager", _) => {
                return Err(vec![refused(format!("{name}: {value}"))]);
            }
            ("Sets", _) => wanted.sets = texts(value),
            ("Unsets", _) => wanted.unsets = texts(value),
            _ => assert!(
                set_network_option(&mut wanted.options, name, value)
                    || set_cluster_option(&mut wanted.options, name, value)
                    || set_machine_option(&mut wanted.options, name, value),
                "{name}: {value}"
            ),
        }
    }
    if wanted.options.ipv6 && said.get("Topology").is_none() {
        wanted.options.topology = Topology::Private;
    }
    Ok(wanted)
}

fn text(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    serde_json::from_value(value.clone()).expect("texts")
}

/// Options about the network; false for others.
fn set_network_option(options: &mut CreateOptions, name: &str, value: &Value) -> bool {
    match name {
        "Zones" => options.zones = texts(value),
        "ControlPlaneZones" => options.control_plane_zones = texts(value),
        "Networking" => options.networking = Some(text(value)),
        "NetworkCIDRs" => options.network_cidrs = texts(value),
        "NetworkID" => options.network_id = Some(text(value)),
        "SubnetIDs" => options.subnets = texts(value),
        "UtilitySubnetIDs" => options.utility_subnets = texts(value),
        "DisableSubnetTags" => options.disable_subnet_tags = value == true,
        "Egress" => options.egress = Some(text(value)),
        "IPv6" => options.ipv6 = value == true,
        "Topology" if value == "private" => options.topology = Topology::Private,
        "Topology" => options.topology = Topology::Public,
        "DNSZone" => options.dns_zone = Some(text(value)),
        "DNSType" => {
            options.dns = Some(match text(value).to_lowercase().as_str() {
                "public" => DnsType::Public,
                "private" => DnsType::Private,
                _ => DnsType::None,
            });
        }
        _ => return false,
    }
    true
}

/// Options about the cluster as a whole, and who reaches it; false for others.
fn set_cluster_option(options: &mut CreateOptions, name: &str, value: &Value) -> bool {
    match name {
        "ClusterName" => options.name = text(value),
        "Channel" => options.channel = Some(text(value)),
        "KubernetesVersion" => options.kubernetes_version = Some(text(value)),
        "KubernetesFeatureGates" => options.kubernetes_feature_gates = texts(value),
        "Authorization" if text(value).eq_ignore_ascii_case("AlwaysAllow") => {
            options.authorization = Authorization::AlwaysAllow;
        }
        "Authorization" => options.authorization = Authorization::Rbac,
        "AdminAccess" => options.admin_access = texts(value),
        "SSHAccess" => options.ssh_access = texts(value),
        "APILoadBalancerType" if text(value).eq_ignore_ascii_case("internal") => {
            options.api_load_balancer_type = Some(LoadBalancerType::Internal);
        }
        "APILoadBalancerType" => options.api_load_balancer_type = Some(LoadBalancerType::Public),
        "APISSLCertificate" => options.api_ssl_certificate = Some(text(value)),
        "PublicName" | "APIPublicName" => options.api_public_name = Some(text(value)),
        "DiscoveryStore" => options.discovery_store = Some(text(value)),
        "EtcdClusters" => options.etcd_clusters = texts(value),
        "cloudLabels" | "CloudLabels" => options.cloud_labels = text(value),
        _ => return false,
    }
    true
}

/// Options about instances and volumes; false for others.
fn set_machine_option(options: &mut CreateOptions, name: &str, value: &Value) -> bool {
    let number = || usize::try_from(value.as_u64().expect("a number")).expect("a number");
    let size = || i32::try_from(value.as_i64().expect("a number")).expect("a size");
    match name {
        "ControlPlaneCount" => options.control_plane_count = Some(number()),
        "NodeCount" => options.node_count = Some(number()),
        "ControlPlaneSizes" => options.control_plane_sizes = texts(value),
        "NodeSizes" => options.node_sizes = texts(value),
        "Image" => options.image = Some(text(value)),
        "NodeImage" => options.node_image = Some(text(value)),
        "ControlPlaneImage" => options.control_plane_image = Some(text(value)),
        "BastionImage" => options.bastion_image = Some(text(value)),
        "ControlPlaneVolumeSize" => options.control_plane_volume_size = Some(size()),
        "ControlPlaneVolumeType" => options.control_plane_volume_type = Some(text(value)),
        "NodeVolumeSize" => options.node_volume_size = Some(size()),
        "NodeVolumeType" => options.node_volume_type = Some(text(value)),
        "ControlPlaneTenancy" => options.control_plane_tenancy = Some(text(value)),
        "NodeTenancy" => options.node_tenancy = Some(text(value)),
        "Bastion" => options.bastion = value == true,
        "NodeSecurityGroups" => options.node_security_groups = texts(value),
        "ControlPlaneSecurityGroups" => options.control_plane_security_groups = texts(value),
        "AssociatePublicIP" => options.associate_public_ip = value.as_bool(),
        "EncryptEtcdStorage" => options.encrypt_etcd_storage = value.as_bool(),
        "EtcdStorageType" => options.etcd_storage_type = Some(text(value)),
        _ => return false,
    }
    true
}
