//! Our objects in the form that kOps' Terraform output has, and that output read back.

use cloud::*;
use engine::{Part, Ref, Resource, Text};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// An object's attributes by name. References are `type/name`, with an attribute where it is not the id.
pub type Attributes = Map<String, Value>;

/// Attributes that Terraform alone has, and user data, which ours is different by design.
const NOT_COMPARED: [&str; 3] = ["lifecycle", "user_data", "public_key"];

/// What stands before an issuer of kOps in ours.
pub const OUR_ISSUERS: &str = "state.s3.us-test-1.amazonaws.com/";

fn attachment_name(role: &str, policy_arn: &str) -> String {
    format!("{} {policy_arn}", terraform_name(role))
}

/// The objects of a fixture by type and name.
pub fn from_fixture(text: &str) -> BTreeMap<(String, String), Attributes> {
    let list: Vec<Value> = serde_json::from_str(text).expect("a list");
    let object = |one: &Value| {
        let field = |name: &str| one[name].as_str().expect("text").to_owned();
        let kind = field("type").trim_start_matches("aws_").to_owned();
        let mut attrs = without_empty(plain_refs(&one["attrs"]));
        for name in NOT_COMPARED {
            attrs.remove(name);
        }
        sort_sets(&mut attrs);
        let name = match kind.as_str() {
            "security_group_rule" => content_key(&attrs),
            "iam_role_policy_attachment" => {
                let text = |name: &str| attrs[name].as_str().expect("text").to_owned();
                attachment_name(
                    text("role").trim_start_matches("iam_role/"),
                    &text("policy_arn"),
                )
            }
            _ => field("name"),
        };
        if kind == "security_group_rule" {
            attrs.insert("rule_name".into(), field("name").into());
        }
        ((kind, name), attrs)
    };
    list.iter().map(object).collect()
}

/// Our objects likewise, but for those of the state store.
pub fn from_cloud(all: &[Cloud]) -> BTreeMap<(String, String), Attributes> {
    let object = |one: &Cloud| {
        let attrs = terraform_attributes(one)?;
        // The stand-in for the bucket of kOps' discovery store ([`super::read_case`]).
        let text = attrs.to_string().replace(OUR_ISSUERS, "");
        let attrs = serde_json::from_str(&text).expect("JSON");
        let mut attrs = without_empty(attrs);
        sort_sets(&mut attrs);
        let id = one.id();
        let mut name = terraform_name(id.name());
        if let Cloud::IamOpenidConnectProvider(provider) = one {
            name = terraform_name(&provider.tags["Name"]);
        } else if let Cloud::IamRolePolicyAttachment(attachment) = one {
            // kOps' name has a hash of the list of policies.
            let role = attachment.role_name.id().expect("a role of ours");
            name = attachment_name(role.name(), &attachment.policy_arn);
        }
        if let Cloud::AutoscalingLifecycleHook(hook) = one {
            name = hook_name(hook);
        } else if let Cloud::AutoscalingGroup(group) = one {
            let pool = all.iter().find_map(|one| pool_of(group, one));
            attrs.extend(pool.map(|pool| ("warm_pool".to_owned(), pool)));
        } else if let Cloud::VpcIpv4CidrBlockAssociation(_) = one {
            name = format!("cidr-{name}");
        } else if let Cloud::KeyPair(_) = one {
            name = terraform_name(&id.name().replace(':', ""));
        } else if let Cloud::SecurityGroupRule(rule) = one {
            name = content_key(&attrs);
            attrs.insert("rule_name".into(), terraform_name(&rule.name).into());
        }
        Some(((id.kind().to_owned(), name), attrs))
    };
    all.iter().filter_map(object).collect()
}

/// kOps names a hook's task after the instance group too.
fn hook_name(hook: &AutoscalingLifecycleHook) -> String {
    let group = hook.auto_scaling_group_name.id().expect("a group of ours");
    let group = group.name().split('.').next().unwrap_or_default();
    let hook = &hook.lifecycle_hook_name;
    if hook.starts_with(group) {
        return terraform_name(hook);
    }
    terraform_name(&format!("{hook}-{group}"))
}

fn pool_of(group: &AutoscalingGroup, one: &Cloud) -> Option<Value> {
    let Cloud::AutoscalingWarmPool(pool) = one else {
        return None;
    };
    (pool.name() == group.name()).then(|| {
        json!([{
            "max_group_prepared_capacity": pool.max_group_prepared_capacity,
            "min_size": pool.min_size,
        }])
    })
}

/// Terraform names have neither dots, slashes nor colons.
fn terraform_name(name: &str) -> String {
    name.replace('.', "-").replace('/', "--").replace(':', "_")
}

fn content_key(attrs: &Attributes) -> String {
    Value::Object(attrs.clone()).to_string()
}

/// `${aws_TYPE.NAME.id}` as `TYPE/NAME`, wherever it is; other attributes behind a dot.
fn plain_refs(value: &Value) -> Value {
    match value {
        Value::String(text) => match text
            .strip_prefix("${aws_")
            .and_then(|rest| rest.strip_suffix('}'))
        {
            Some(inner) => {
                let mut parts = inner.splitn(3, '.');
                let mut part = || parts.next().unwrap_or_default();
                let (kind, name, attribute) = (part(), part(), part());
                match attribute {
                    "id" | "name" | "arn" => format!("{kind}/{name}").into(),
                    late => format!("{kind}/{name}.{late}").into(),
                }
            }
            None => value.clone(),
        },
        Value::Array(list) => list.iter().map(plain_refs).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), plain_refs(value)))
            .collect(),
        other => other.clone(),
    }
}

/// Lists that AWS treats as sets, sorted.
fn sort_sets(attrs: &mut Attributes) {
    for name in [
        "vpc_zone_identifier",
        "target_group_arns",
        "security_groups",
        "subnet_mapping",
        "load_balancers",
    ] {
        if let Some(Value::Array(list)) = attrs.get_mut(name) {
            list.sort_by_key(Value::to_string);
        }
    }
    if let Some(Value::Array(list)) = attrs.get_mut("network_interfaces") {
        for one in list.iter_mut() {
            if let Some(Value::Array(groups)) = one.get_mut("security_groups") {
                groups.sort_by_key(Value::to_string);
            }
        }
    }
}

/// Without what is null or an empty list.
fn without_empty(value: Value) -> Attributes {
    match drop_empty_values(value) {
        Value::Object(map) => map,
        other => panic!("{other} is no object"),
    }
}

fn drop_empty_values(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| (key, drop_empty_values(value)))
            .filter(|(_, value)| !value.is_null() && *value != json!([]))
            .collect(),
        Value::Array(list) => list.into_iter().map(drop_empty_values).collect(),
        other => other,
    }
}

fn plain_ref(reference: &Ref) -> Value {
    match reference {
        Ref::Given(id) => id.clone().into(),
        Ref::Own { kind, name } => {
            let name = if kind == "key_pair" {
                name.replace(':', "")
            } else {
                name.clone()
            };
            format!("{kind}/{}", terraform_name(&name)).into()
        }
    }
}

fn plain_ref_list(references: &[Ref]) -> Value {
    references.iter().map(plain_ref).collect()
}

fn plain_text(text: &Text) -> Value {
    match text.parts() {
        [
            Part::Late {
                kind,
                name,
                attribute,
            },
        ] => {
            let attribute = if attribute == "canonical_hosted_zone_id" {
                "zone_id"
            } else {
                attribute
            };
            format!("{kind}/{}.{attribute}", terraform_name(name)).into()
        }
        _ => text.as_known().unwrap_or_default().into(),
    }
}

/// An object as Terraform has it; `None`: kOps has it elsewhere.
#[expect(clippy::too_many_lines, reason = "an arm for each kind")]
fn terraform_attributes(cloud: &Cloud) -> Option<Value> {
    Some(match cloud {
        Cloud::AutoscalingGroup(one) => autoscaling_group(one),
        Cloud::AutoscalingLifecycleHook(one) => json!({
            "autoscaling_group_name": plain_ref(&one.auto_scaling_group_name),
            "default_result": one.default_result,
            "heartbeat_timeout": one.heartbeat_timeout,
            "lifecycle_transition": one.lifecycle_transition,
            "name": one.lifecycle_hook_name,
        }),
        Cloud::CloudwatchEventRule(one) => {
            json!({"event_pattern": {"json": one.event_pattern}, "name": one.name, "tags": one.tags})
        }
        Cloud::CloudwatchEventTarget(one) => {
            json!({"arn": plain_ref(&one.arn), "rule": plain_ref(&one.rule)})
        }
        Cloud::EbsVolume(one) => json!({
            "availability_zone": one.availability_zone, "encrypted": one.encrypted, "iops": one.iops,
            "kms_key_id": one.kms_key_id, "size": one.size, "tags": one.tags,
            "throughput": one.throughput, "type": one.volume_type,
        }),
        Cloud::Eip(one) => json!({"domain": one.domain, "tags": one.tags}),
        Cloud::IamInstanceProfile(one) => json!({
            "name": one.instance_profile_name, "role": one.role_name.as_ref().map(plain_ref), "tags": one.tags,
        }),
        Cloud::IamOpenidConnectProvider(one) => json!({
            "client_id_list": one.client_id_list, "tags": one.tags, "thumbprint_list": one.thumbprint_list,
            "url": one.url,
        }),
        Cloud::IamRole(one) => json!({
            "assume_role_policy": {"json": one.assume_role_policy_document}, "name": one.role_name,
            "permissions_boundary": one.permissions_boundary, "tags": one.tags,
        }),
        Cloud::IamRolePolicy(one) => json!({
            "name": one.policy_name, "policy": {"json": one.policy_document}, "role": plain_ref(&one.role_name),
        }),
        Cloud::IamRolePolicyAttachment(one) => {
            json!({"policy_arn": one.policy_arn, "role": plain_ref(&one.role_name)})
        }
        Cloud::EgressOnlyInternetGateway(one) => {
            json!({"vpc_id": plain_ref(&one.vpc_id), "tags": one.tags})
        }
        Cloud::InternetGateway(one) => {
            json!({"vpc_id": one.vpc_id.as_ref().map(plain_ref), "tags": one.tags})
        }
        Cloud::KeyPair(one) => json!({"key_name": one.key_name, "tags": one.tags}),
        Cloud::LaunchTemplate(one) => launch_template(one),
        Cloud::Lb(one) => load_balancer(one),
        Cloud::LbListener(one) => listener_attributes(one),
        Cloud::LbTargetGroup(one) => target_group(one),
        Cloud::NatGateway(one) => json!({
            "allocation_id": plain_ref(&one.allocation_id), "subnet_id": plain_ref(&one.subnet_id), "tags": one.tags,
        }),
        Cloud::Route(one) => route_attributes(one),
        Cloud::Route53Record(one) => record_attributes(one),
        Cloud::Route53ZoneAssociation(one) => json!({
            "vpc_id": plain_ref(&one.vpc_id), "zone_id": format!("/hostedzone/{}", one.hosted_zone_id),
        }),
        Cloud::RouteTable(one) => json!({"vpc_id": plain_ref(&one.vpc_id), "tags": one.tags}),
        Cloud::RouteTableAssociation(one) => {
            json!({"route_table_id": plain_ref(&one.route_table_id), "subnet_id": plain_ref(&one.subnet_id)})
        }
        // Its group has a warm pool; kOps writes the others itself.
        Cloud::AutoscalingWarmPool(_) | Cloud::DiscoveryDocument(_) | Cloud::S3Object(_) => {
            return None;
        }
        Cloud::SecurityGroup(one) => json!({
            "description": one.description, "name": one.group_name, "vpc_id": plain_ref(&one.vpc_id), "tags": one.tags,
        }),
        Cloud::SecurityGroupRule(one) => rule_attributes(one),
        Cloud::SqsQueue(one) => json!({
            "message_retention_seconds": one.message_retention_period, "name": one.queue_name,
            "policy": {"json": one.policy}, "tags": one.tags,
        }),
        Cloud::Subnet(one) => json!({
            "assign_ipv6_address_on_creation": one.assign_ipv6_address_on_creation.then_some(true),
            "availability_zone": one.availability_zone, "cidr_block": one.cidr_block,
            "enable_dns64": one.enable_dns64.then_some(true),
            "enable_resource_name_dns_aaaa_record_on_launch": one.enable_resource_name_dns_aaaa_record_on_launch.then_some(true),
            "ipv6_cidr_block": one.ipv6_cidr_block, "ipv6_native": one.cidr_block.is_none().then_some(true),
            "enable_resource_name_dns_a_record_on_launch": one.enable_resource_name_dns_a_record_on_launch.then_some(true),
            "private_dns_hostname_type_on_launch": one.private_dns_hostname_type_on_launch,
            "tags": one.tags, "vpc_id": plain_ref(&one.vpc_id),
        }),
        Cloud::Vpc(one) => json!({
            "assign_generated_ipv6_cidr_block": one.amazon_provided_ipv6_cidr_block, "cidr_block": one.cidr_block,
            "enable_dns_hostnames": one.enable_dns_hostnames, "enable_dns_support": one.enable_dns_support,
            "tags": one.tags,
        }),
        Cloud::VpcDhcpOptions(one) => json!({
            "domain_name": one.domain_name, "domain_name_servers": one.domain_name_servers, "tags": one.tags,
        }),
        Cloud::VpcDhcpOptionsAssociation(one) => {
            json!({"dhcp_options_id": plain_ref(&one.dhcp_options_id), "vpc_id": plain_ref(&one.vpc_id)})
        }
        Cloud::VpcEndpoint(one) => {
            json!({"service_name": one.service_name, "route_table_ids": plain_ref_list(&one.route_table_ids)})
        }
        Cloud::VpcIpv4CidrBlockAssociation(one) => {
            json!({"cidr_block": one.cidr_block, "vpc_id": plain_ref(&one.vpc_id)})
        }
    })
}

fn load_balancer(one: &Lb) -> Value {
    json!({
        "access_logs": one.access_logs.iter().map(|logs| json!({
            "bucket": logs.bucket, "prefix": logs.prefix, "enabled": true,
        })).collect::<Vec<Value>>(),
        "enable_cross_zone_load_balancing": one.cross_zone_enabled,
        "internal": one.scheme == "internal",
        "ip_address_type": Some(&one.ip_address_type).filter(|families| *families != "ipv4"),
        "load_balancer_type": one.lb_type, "name": one.name,
        "security_groups": plain_ref_list(&one.security_groups),
        "subnet_mapping": one.subnet_mappings.iter().map(|mapping| json!({
            "subnet_id": plain_ref(&mapping.subnet_id), "allocation_id": mapping.allocation_id,
            "private_ipv4_address": mapping.private_ipv4_address,
        })).collect::<Vec<Value>>(),
        "tags": one.tags,
    })
}

fn listener_attributes(one: &LbListener) -> Value {
    json!({
        "certificate_arn": one.certificate_arn,
        "default_action": [{"target_group_arn": plain_ref(&one.target_group_arn), "type": "forward"}],
        "load_balancer_arn": plain_ref(&one.load_balancer_arn),
        "port": one.port, "protocol": one.protocol, "ssl_policy": one.ssl_policy,
    })
}

fn target_group(one: &LbTargetGroup) -> Value {
    json!({
        "connection_termination": one.connection_termination.to_string(),
        "deregistration_delay": one.deregistration_delay_seconds.to_string(),
        "health_check": [{
            "healthy_threshold": one.health_check.healthy_threshold_count,
            "interval": one.health_check.health_check_interval_seconds,
            "port": one.health_check.health_check_port.map(|port| port.to_string()),
            // Terraform leaves AWS' own unsaid.
            "timeout": Some(one.health_check.health_check_timeout_seconds).filter(|seconds| *seconds != 10),
            "path": one.health_check.health_check_path,
            "protocol": one.health_check.health_check_protocol,
            "unhealthy_threshold": one.health_check.unhealthy_threshold_count,
        }],
        "name": one.name, "port": one.port, "protocol": one.protocol, "tags": one.tags,
        "vpc_id": plain_ref(&one.vpc_id),
    })
}

fn route_attributes(one: &Route) -> Value {
    let v6 = one.destination.contains(':');
    let destination = if v6 {
        "destination_ipv6_cidr_block"
    } else {
        "destination_cidr_block"
    };
    let target = match &one.target {
        RouteTarget::GatewayId(_) => "gateway_id",
        RouteTarget::NatGatewayId(_) => "nat_gateway_id",
        RouteTarget::InstanceId(_) => "instance_id",
        RouteTarget::TransitGatewayId(_) => "transit_gateway_id",
        RouteTarget::VpcPeeringConnectionId(_) => "vpc_peering_connection_id",
        RouteTarget::EgressOnlyInternetGatewayId(_) => "egress_only_gateway_id",
    };
    json!({destination: one.destination, target: plain_ref(one.target.reference()), "route_table_id": plain_ref(&one.route_table_id)})
}

fn rule_attributes(one: &SecurityGroupRule) -> Value {
    let (side, value) = match &one.source {
        RuleSource::CidrIpv4(range) => ("cidr_blocks", json!([range])),
        RuleSource::CidrIpv6(range) => ("ipv6_cidr_blocks", json!([range])),
        RuleSource::PrefixListId(id) => ("prefix_list_ids", json!([id])),
        RuleSource::ReferencedGroupId(group) => ("source_security_group_id", plain_ref(group)),
    };
    // Terraform writes 0 where AWS has -1 for all ports of all protocols, and all ports of a protocol without ports.
    let (from, to) = match one.ip_protocol.as_str() {
        "-1" => (0, 0),
        "4" => (0, 65535),
        _ => (one.from_port, one.to_port),
    };
    json!({
        side: value, "from_port": from, "to_port": to,
        "protocol": one.ip_protocol, "security_group_id": plain_ref(&one.group_id),
        "type": if one.is_egress { "egress" } else { "ingress" },
    })
}

fn record_attributes(one: &Route53Record) -> Value {
    json!({
        "alias": one.alias_target.iter().map(|alias| json!({
            "evaluate_target_health": alias.evaluate_target_health,
            "name": plain_text(&alias.dns_name), "zone_id": plain_text(&alias.hosted_zone_id),
        })).collect::<Vec<Value>>(),
        "name": one.name, "type": one.record_type, "zone_id": format!("/hostedzone/{}", one.hosted_zone_id),
        "records": one.initial, "ttl": one.ttl,
    })
}

fn autoscaling_group(one: &AutoscalingGroup) -> Value {
    let template = &one.launch_template;
    let (id, version) = (
        plain_ref(&template.launch_template_id),
        plain_text(&template.version),
    );
    let policy = one.mixed_instances_policy.as_ref();
    let policy = policy.map(|policy| json!([mixed_instances_policy(policy, &id, &version)]));
    let template = policy
        .is_none()
        .then(|| json!([{"id": id, "version": version}]));
    json!({
        "capacity_rebalance": one.capacity_rebalance.then_some(true),
        "enabled_metrics": one.enabled_metrics, "metrics_granularity": "1Minute",
        "launch_template": template,
        "load_balancers": one.load_balancer_names,
        "max_instance_lifetime": one.max_instance_lifetime,
        "max_size": one.max_size, "min_size": one.min_size, "name": one.auto_scaling_group_name,
        "mixed_instances_policy": policy,
        "protect_from_scale_in": one.new_instances_protected_from_scale_in,
        "suspended_processes": one.suspended_processes,
        "tag": one.tags, "target_group_arns": plain_ref_list(&one.target_group_arns),
        "vpc_zone_identifier": plain_ref_list(&one.vpc_zone_identifier),
    })
}

/// kOps leaves AWS' defaults unsaid.
fn mixed_instances_policy(one: &MixedInstancesPolicy, id: &Value, version: &Value) -> Value {
    let of = &one.instances_distribution;
    let said = |text: &String, default: &str| (text != default).then(|| text.clone());
    let overrides = one.overrides.iter().map(|one| match one {
        LaunchOverride::InstanceType(name) => json!({"instance_type": name}),
        LaunchOverride::InstanceRequirements(of) => json!({"instance_requirements": [{
            "burstable_performance": of.burstable_performance,
            "excluded_instance_types": of.excluded_instance_types,
            "memory_mib": [of.memory_mib], "vcpu_count": [of.vcpu_count],
        }]}),
    });
    json!({
        "instances_distribution": [{
            "on_demand_allocation_strategy": said(&of.on_demand_allocation_strategy, "prioritized"),
            "on_demand_base_capacity": Some(of.on_demand_base_capacity).filter(|base| *base != 0),
            "on_demand_percentage_above_base_capacity":
                Some(of.on_demand_percentage_above_base_capacity).filter(|percent| *percent != 100),
            "spot_allocation_strategy": said(&of.spot_allocation_strategy, LOWEST_PRICE),
            "spot_instance_pools": of.spot_instance_pools.filter(|pools| *pools != 2),
            "spot_max_price": of.spot_max_price.clone().unwrap_or_default(),
        }],
        "launch_template": [{
            "launch_template_specification": [{"launch_template_id": id, "version": version}],
            "override": overrides.collect::<Vec<Value>>(),
        }],
    })
}

fn launch_template(one: &LaunchTemplate) -> Value {
    let specifications = ["instance", "volume", "network-interface"]
        .map(|kind| json!({"resource_type": kind, "tags": one.tags}));
    json!({
        "block_device_mappings": one.block_device_mappings.iter().map(|device| json!({
            "device_name": device.device_name, "virtual_name": device.virtual_name,
            "ebs": device.ebs.iter().map(|ebs| json!(ebs)).collect::<Vec<Value>>(),
        })).collect::<Vec<Value>>(),
        "credit_specification": one.credit_specification.iter().map(|credits| json!({"cpu_credits": credits})).collect::<Vec<Value>>(),
        "iam_instance_profile": [{"name": plain_ref(&one.iam_instance_profile)}],
        "image_id": one.image_id, "instance_type": one.instance_type,
        "instance_market_options": one.instance_market_options.iter().map(|options| json!({
            "market_type": "spot",
            "spot_options": [{"max_price": options.max_price, "instance_interruption_behavior": options.instance_interruption_behavior}],
        })).collect::<Vec<Value>>(),
        "key_name": one.key_name.as_ref().map(plain_ref),
        "metadata_options": [one.metadata_options],
        "monitoring": [{"enabled": one.monitoring}],
        "ebs_optimized": one.ebs_optimized,
        "name": one.launch_template_name,
        "network_interfaces": [{
            "associate_public_ip_address": one.network_interface.associate_public_ip_address,
            "delete_on_termination": one.network_interface.delete_on_termination,
            "ipv6_address_count": one.network_interface.ipv6_address_count,
            "security_groups": plain_ref_list(&one.network_interface.groups),
        }],
        "placement": one.tenancy.iter().map(|tenancy| json!({"tenancy": tenancy})).collect::<Vec<Value>>(),
        "tag_specifications": specifications,
        "tags": one.tags,
    })
}
