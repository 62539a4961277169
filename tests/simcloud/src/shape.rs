//! Small clusters of every kind of object, written by hand: what the engine is tested with does not depend on
//! what specs expand to.

use cloud::{
    AliasTarget, AutoscalingGroup, AutoscalingLifecycleHook, AutoscalingWarmPool, BlockDevice,
    Cloud, CloudwatchEventRule, CloudwatchEventTarget, Ebs, EbsVolume, EgressOnlyInternetGateway,
    Eip, GroupTag, HealthCheck, IamInstanceProfile, IamRole, IamRolePolicy, InternetGateway,
    KeyPair, LaunchTemplate, LaunchTemplateRef, Lb, LbListener, LbTargetGroup, MetadataOptions,
    NatGateway, NetworkInterface, ObjectContent, Route, Route53Record, RouteTable,
    RouteTableAssociation, RouteTarget, RuleSource, S3Object, SecurityGroup, SecurityGroupRule,
    SqsQueue, Subnet, SubnetMapping, Tags, Vpc, VpcDhcpOptions, VpcDhcpOptionsAssociation,
};
use engine::{Id, Part, Ref, Text};
use node::names::{REVISION_TAG, WARM_POOL_HOOK};
use serde_json::json;

const NAME: &str = "prod.example.com";

/// What distinguishes one wanted cluster from the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterShape {
    /// Number of availability zones.
    pub zones: u8,
    /// Instance groups of workers: name and size. The control plane is always there.
    pub groups: Vec<(&'static str, i32)>,
    /// A tag on everything.
    pub owner: &'static str,
    /// What instances are told.
    pub boot: &'static str,
    /// Which of the series of DHCP options, from 1.
    pub dhcp: u32,
    /// Instances in private subnets behind NAT gateways.
    pub private: bool,
    /// A load balancer before the API, with its name in the user data.
    pub balancer: bool,
    /// A queue, a rule, and hooks.
    pub events: bool,
    /// etcd's members, each with two volumes.
    pub members: Vec<&'static str>,
}

impl Default for ClusterShape {
    fn default() -> Self {
        Self {
            zones: 1,
            groups: vec![("nodes", 2)],
            owner: "a-team",
            boot: "first",
            dhcp: 1,
            private: false,
            balancer: false,
            events: false,
            members: vec!["a"],
        }
    }
}

/// The life of a cluster: created, grown and changed, new instances, shrunk, made private, given up. Its etcd has one member,
/// then three of other names, then one of them.
pub fn cluster_history() -> Vec<(&'static str, Vec<Cloud>)> {
    let created = ClusterShape::default();
    let grown = ClusterShape {
        zones: 2,
        groups: vec![("nodes", 3), ("spot", 1)],
        owner: "b-team",
        events: true,
        balancer: true,
        members: vec!["1", "2", "3"],
        ..created.clone()
    };
    let renewed = ClusterShape {
        boot: "second",
        dhcp: 2,
        ..grown.clone()
    };
    let shrunk = ClusterShape {
        zones: 1,
        groups: vec![("nodes", 1)],
        events: false,
        members: vec!["2"],
        ..renewed.clone()
    };
    let private = ClusterShape {
        private: true,
        ..shrunk.clone()
    };
    vec![
        ("create", created.all_objects()),
        ("grow and change", grown.all_objects()),
        ("new instances", renewed.all_objects()),
        ("shrink", shrunk.all_objects()),
        ("private", private.all_objects()),
        ("public again", shrunk.all_objects()),
        ("delete", Vec::new()),
    ]
}

fn own_ref(kind: &str, name: &str) -> Ref {
    Ref::own(&Id::new(kind, name))
}

fn full_name(name: &str) -> String {
    format!("{name}.{NAME}")
}

impl ClusterShape {
    /// Everything the cluster consists of.
    pub fn all_objects(&self) -> Vec<Cloud> {
        let mut all = self.network_objects();
        if self.private {
            let gateway = EgressOnlyInternetGateway {
                name: NAME.to_owned(),
                vpc_id: Self::vpc_ref(),
                tags: self.object_tags(NAME),
            };
            all.push(gateway.into());
        }
        for zone in 0..self.zones {
            all.extend(self.zone_objects(zone));
        }
        all.extend(self.security_objects());
        all.extend(self.group_objects("masters", 1));
        for (group, size) in &self.groups {
            all.extend(self.group_objects(group, *size));
        }
        all.extend(self.storage_objects());
        all.extend(self.api_objects());
        if self.events {
            all.extend(self.event_objects());
        }
        all
    }

    fn object_tags(&self, name: &str) -> Tags {
        let tag = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        Tags::from([
            tag("Name", name),
            tag("KubernetesCluster", NAME),
            tag("Owner", self.owner),
        ])
    }

    /// The tags at a place in a series: `Name` is that of the first.
    fn in_series(&self, place: u32) -> Tags {
        let mut tags = self.object_tags(NAME);
        if place > 1 {
            tags.insert(REVISION_TAG.to_owned(), place.to_string());
        }
        tags
    }

    fn vpc_ref() -> Ref {
        own_ref("vpc", NAME)
    }

    fn network_objects(&self) -> Vec<Cloud> {
        let dhcp = if self.dhcp == 1 {
            NAME.to_owned()
        } else {
            format!("{NAME}-{}", self.dhcp)
        };
        vec![
            Vpc {
                name: NAME.to_owned(),
                cidr_block: "172.20.0.0/16".to_owned(),
                amazon_provided_ipv6_cidr_block: false,
                enable_dns_hostnames: true,
                enable_dns_support: true,
                tags: self.object_tags(NAME),
            }
            .into(),
            VpcDhcpOptions {
                name: dhcp.clone(),
                domain_name: format!("r{}.compute.internal", self.dhcp),
                domain_name_servers: vec!["AmazonProvidedDNS".to_owned()],
                tags: self.in_series(self.dhcp),
            }
            .into(),
            VpcDhcpOptionsAssociation {
                name: NAME.to_owned(),
                vpc_id: Self::vpc_ref(),
                dhcp_options_id: own_ref("vpc_dhcp_options", &dhcp),
            }
            .into(),
            InternetGateway {
                name: NAME.to_owned(),
                vpc_id: Some(Self::vpc_ref()),
                tags: self.object_tags(NAME),
            }
            .into(),
            self.route_table(NAME),
            new_route(
                "route-0.0.0.0/0",
                NAME,
                RouteTarget::GatewayId(own_ref("internet_gateway", NAME)),
            ),
        ]
    }

    fn route_table(&self, name: &str) -> Cloud {
        RouteTable {
            name: name.to_owned(),
            vpc_id: Self::vpc_ref(),
            tags: self.object_tags(name),
        }
        .into()
    }

    /// Subnets of one zone, with what leads out of the private one.
    fn zone_objects(&self, zone: u8) -> Vec<Cloud> {
        let letter = char::from(b'a' + zone);
        let public = full_name(&format!("public-{letter}"));
        let mut all =
            self.subnet_objects(&public, letter, &format!("172.20.{}.0/22", zone * 8), NAME);
        if !self.private {
            return all;
        }
        let private = full_name(&format!("private-{letter}"));
        let outlet = full_name(&letter.to_string());
        let range = format!("172.20.{}.0/19", 64 + zone * 32);
        all.extend(self.subnet_objects(&private, letter, &range, &private));
        all.push(self.route_table(&private));
        all.push(
            Eip {
                name: outlet.clone(),
                domain: "vpc".to_owned(),
                tags: self.object_tags(&outlet),
            }
            .into(),
        );
        all.push(
            NatGateway {
                name: outlet.clone(),
                subnet_id: own_ref("subnet", &public),
                allocation_id: own_ref("eip", &outlet),
                tags: self.object_tags(&outlet),
            }
            .into(),
        );
        let way_out = RouteTarget::NatGatewayId(own_ref("nat_gateway", &outlet));
        all.push(new_route(&format!("route-{private}"), &private, way_out));
        all
    }

    fn subnet_objects(&self, name: &str, letter: char, range: &str, table: &str) -> Vec<Cloud> {
        vec![
            Subnet {
                name: name.to_owned(),
                vpc_id: Self::vpc_ref(),
                availability_zone: format!("eu-test-1{letter}"),
                cidr_block: Some(range.to_owned()),
                ipv6_cidr_block: None,
                assign_ipv6_address_on_creation: false,
                enable_dns64: false,
                private_dns_hostname_type_on_launch: "ip-name".to_owned(),
                enable_resource_name_dns_a_record_on_launch: false,
                enable_resource_name_dns_aaaa_record_on_launch: false,
                tags: self.object_tags(name),
            }
            .into(),
            RouteTableAssociation {
                name: name.to_owned(),
                route_table_id: own_ref("route_table", table),
                subnet_id: own_ref("subnet", name),
            }
            .into(),
        ]
    }

    /// The subnets that instances stand in.
    fn instance_subnets(&self) -> Vec<Ref> {
        let kind = if self.private { "private" } else { "public" };
        let subnet = |zone| full_name(&format!("{kind}-{}", char::from(b'a' + zone)));
        (0..self.zones)
            .map(|zone| own_ref("subnet", &subnet(zone)))
            .collect()
    }

    fn security_objects(&self) -> Vec<Cloud> {
        let group = |role: &str| {
            SecurityGroup {
                group_name: full_name(role),
                description: format!("Security group for {role}"),
                vpc_id: Self::vpc_ref(),
                tags: self.object_tags(&full_name(role)),
            }
            .into()
        };
        let between = |from: &str, to: &str| {
            new_rule(
                &format!("from-{from}-ingress-all-0to0-{to}"),
                to,
                RuleSource::ReferencedGroupId(own_ref("security_group", &full_name(from))),
            )
        };
        let anyone = || RuleSource::CidrIpv4("0.0.0.0/0".to_owned());
        let mut all = vec![
            group("masters"),
            group("nodes"),
            between("masters", "nodes"),
            between("nodes", "masters"),
            between("nodes", "nodes"),
            new_rule("ssh-external-to-masters", "masters", anyone()),
            KeyPair {
                key_name: format!("kubernetes.{NAME}-aa:bb"),
                public_key: "ssh-ed25519 AAAA".to_owned(),
                tags: self.object_tags(NAME),
            }
            .into(),
        ];
        for role in ["masters", "nodes"] {
            all.extend(self.role_objects(&full_name(role)));
        }
        all
    }

    fn role_objects(&self, name: &str) -> Vec<Cloud> {
        let role = || own_ref("iam_role", name);
        vec![
            IamRole {
                role_name: name.to_owned(),
                assume_role_policy_document: json!({"Statement": [{"Action": "sts:AssumeRole"}]}),
                permissions_boundary: None,
                tags: self.object_tags(name),
            }
            .into(),
            IamRolePolicy {
                policy_name: name.to_owned(),
                role_name: role(),
                policy_document: json!({"Statement": [{"Sid": "owner", "Resource": self.owner}]}),
            }
            .into(),
            IamInstanceProfile {
                instance_profile_name: name.to_owned(),
                role_name: Some(role()),
                tags: self.object_tags(name),
            }
            .into(),
        ]
    }

    /// The objects of one instance group.
    fn group_objects(&self, group: &str, size: i32) -> Vec<Cloud> {
        let name = full_name(group);
        let role = full_name(if group == "masters" { group } else { "nodes" });
        let template = Id::new("launch_template", name.as_str());
        let mut all: Vec<Cloud> = vec![
            self.launch_template(&name, &role),
            AutoscalingGroup {
                auto_scaling_group_name: name.clone(),
                capacity_rebalance: false,
                enabled_metrics: vec!["GroupMaxSize".to_owned(), "GroupMinSize".to_owned()],
                launch_template: LaunchTemplateRef {
                    launch_template_id: Ref::own(&template),
                    version: Text::late(&template, "latest_version"),
                },
                load_balancer_names: Vec::new(),
                max_instance_lifetime: 0,
                max_size: size,
                min_size: size,
                mixed_instances_policy: None,
                new_instances_protected_from_scale_in: false,
                suspended_processes: Vec::new(),
                tags: self
                    .object_tags(&name)
                    .into_iter()
                    .map(|(key, value)| GroupTag {
                        key,
                        value,
                        propagate_at_launch: true,
                    })
                    .collect(),
                target_group_arns: self
                    .balancer
                    .then(|| own_ref("lb_target_group", "tcp-prod"))
                    .into_iter()
                    .filter(|_| group == "masters")
                    .collect(),
                vpc_zone_identifier: self.instance_subnets(),
            }
            .into(),
        ];
        if self.events {
            let hook = AutoscalingLifecycleHook {
                lifecycle_hook_name: format!("{group}-NTHLifecycleHook"),
                auto_scaling_group_name: own_ref("autoscaling_group", &name),
                default_result: "CONTINUE".to_owned(),
                heartbeat_timeout: 300,
                lifecycle_transition: "autoscaling:EC2_INSTANCE_TERMINATING".to_owned(),
            };
            all.push(hook.into());
        }
        if self.events && group == "nodes" {
            all.extend(warm_pool(&name));
        }
        all
    }

    fn launch_template(&self, name: &str, role: &str) -> Cloud {
        let api = Id::new("lb", full_name("api"));
        let mut boot = vec![Part::Literal(
            format!("#!/bin/sh\nboot={}\n", self.boot).into(),
        )];
        if self.balancer {
            boot.push(Part::Literal("api=".into()));
            boot.extend(Text::late(&api, "dns_name").parts().iter().cloned());
        }
        LaunchTemplate {
            launch_template_name: name.to_owned(),
            block_device_mappings: vec![BlockDevice {
                device_name: "/dev/xvda".to_owned(),
                ebs: Some(Ebs {
                    delete_on_termination: true,
                    encrypted: Some(true),
                    iops: None,
                    kms_key_id: None,
                    throughput: None,
                    volume_size: 64,
                    volume_type: "gp3".to_owned(),
                }),
                virtual_name: None,
            }],
            credit_specification: None,
            iam_instance_profile: own_ref("iam_instance_profile", role),
            image_id: "ami-1".to_owned(),
            instance_type: "t3.medium".to_owned(),
            instance_market_options: None,
            key_name: Some(own_ref("key_pair", &format!("kubernetes.{NAME}-aa:bb"))),
            metadata_options: MetadataOptions {
                http_endpoint: "enabled".to_owned(),
                http_protocol_ipv6: "disabled".to_owned(),
                http_put_response_hop_limit: 1,
                http_tokens: "required".to_owned(),
            },
            monitoring: false,
            ebs_optimized: None,
            network_interface: NetworkInterface {
                associate_public_ip_address: !self.private,
                delete_on_termination: true,
                ipv6_address_count: 0,
                groups: vec![own_ref("security_group", role)],
            },
            tenancy: None,
            tags: self.object_tags(name),
            user_data: Some(Text::from_parts(boot)),
        }
        .into()
    }

    fn storage_objects(&self) -> Vec<Cloud> {
        let volume = |member: &str, cluster: &str| {
            let name = full_name(&format!("{member}.etcd-{cluster}"));
            EbsVolume {
                tags: self.object_tags(&name),
                name,
                availability_zone: "eu-test-1a".to_owned(),
                size: 20,
                volume_type: "gp3".to_owned(),
                iops: Some(3000),
                throughput: Some(125),
                encrypted: true,
                kms_key_id: None,
            }
            .into()
        };
        let spec = S3Object {
            key: "cluster-completed.spec".to_owned(),
            content: ObjectContent::Text(format!("{self:?}").into()),
        };
        let volumes = |member: &&str| [volume(member, "main"), volume(member, "events")];
        let volumes = self.members.iter().flat_map(volumes);
        volumes.chain([spec.into()]).collect()
    }

    /// How clients find the API: an address that protokube publishes, or the balancer's.
    fn api_objects(&self) -> Vec<Cloud> {
        let id = Id::new("lb", full_name("api"));
        let alias = AliasTarget {
            of: Ref::own(&id),
            dns_name: Text::late(&id, "dns_name"),
            hosted_zone_id: Text::late(&id, "zone_id"),
            evaluate_target_health: false,
        };
        let record = Route53Record {
            name: full_name("api"),
            record_type: "A".to_owned(),
            hosted_zone_id: "Z1".to_owned(),
            alias_target: self.balancer.then_some(alias),
            resource_records: None,
            initial: Vec::new(),
            ttl: None,
        };
        let mut all = vec![record.into()];
        if self.balancer {
            all.extend(self.balancer_objects(&full_name("api")));
        }
        all
    }

    fn balancer_objects(&self, api: &str) -> Vec<Cloud> {
        let subnet = |zone| {
            own_ref(
                "subnet",
                &full_name(&format!("public-{}", char::from(b'a' + zone))),
            )
        };
        let mapping = |zone| SubnetMapping {
            subnet_id: subnet(zone),
            allocation_id: None,
            private_ipv4_address: None,
        };
        vec![
            Lb {
                logical_name: api.to_owned(),
                name: "api-prod-1a2b3c".to_owned(),
                lb_type: "network".to_owned(),
                ip_address_type: "ipv4".to_owned(),
                scheme: "internet-facing".to_owned(),
                security_groups: vec![own_ref("security_group", &full_name("masters"))],
                subnet_mappings: (0..self.zones).map(mapping).collect(),
                cross_zone_enabled: false,
                access_logs: None,
                tags: self.object_tags(api),
            }
            .into(),
            LbTargetGroup {
                name: "tcp-prod".to_owned(),
                protocol: "TCP".to_owned(),
                port: 443,
                vpc_id: Self::vpc_ref(),
                connection_termination: true,
                deregistration_delay_seconds: 30,
                health_check: HealthCheck {
                    healthy_threshold_count: 2,
                    health_check_interval_seconds: 10,
                    health_check_timeout_seconds: 9,
                    health_check_port: None,
                    health_check_path: None,
                    health_check_protocol: "TCP".to_owned(),
                    unhealthy_threshold_count: 2,
                },
                tags: self.object_tags("tcp-prod"),
            }
            .into(),
            LbListener {
                name: format!("{api}-443"),
                load_balancer_arn: own_ref("lb", api),
                port: 443,
                protocol: "TCP".to_owned(),
                certificate_arn: None,
                ssl_policy: None,
                target_group_arn: own_ref("lb_target_group", "tcp-prod"),
            }
            .into(),
        ]
    }

    fn event_objects(&self) -> Vec<Cloud> {
        vec![
            SqsQueue {
                queue_name: "prod-nth".to_owned(),
                message_retention_period: 300,
                policy: json!({"Statement": []}),
                tags: self.object_tags("prod-nth"),
            }
            .into(),
            CloudwatchEventRule {
                name: "prod-ASGLifecycle".to_owned(),
                event_pattern: json!({"source": ["aws.autoscaling"]}),
                tags: self.object_tags("prod-ASGLifecycle"),
            }
            .into(),
            CloudwatchEventTarget {
                name: "prod-ASGLifecycle-Target".to_owned(),
                rule: own_ref("cloudwatch_event_rule", "prod-ASGLifecycle"),
                arn: own_ref("sqs_queue", "prod-nth"),
            }
            .into(),
        ]
    }
}

fn new_route(name: &str, table: &str, target: RouteTarget) -> Cloud {
    Route {
        name: name.to_owned(),
        route_table_id: own_ref("route_table", table),
        destination: "0.0.0.0/0".to_owned(),
        target,
    }
    .into()
}

fn new_rule(name: &str, group: &str, source: RuleSource) -> Cloud {
    SecurityGroupRule {
        name: name.to_owned(),
        group_id: own_ref("security_group", &full_name(group)),
        is_egress: false,
        ip_protocol: "-1".to_owned(),
        from_port: -1,
        to_port: -1,
        source,
    }
    .into()
}

/// The warm pool of a group, and the hook that it follows.
fn warm_pool(group: &str) -> [Cloud; 2] {
    let hook = AutoscalingLifecycleHook {
        lifecycle_hook_name: WARM_POOL_HOOK.to_owned(),
        auto_scaling_group_name: own_ref("autoscaling_group", group),
        default_result: "ABANDON".to_owned(),
        heartbeat_timeout: 600,
        lifecycle_transition: "autoscaling:EC2_INSTANCE_LAUNCHING".to_owned(),
    };
    let pool = AutoscalingWarmPool {
        auto_scaling_group_name: own_ref("autoscaling_group", group),
        launch_hook: Some(own_ref(
            "autoscaling_lifecycle_hook",
            &format!("{group}/{WARM_POOL_HOOK}"),
        )),
        max_group_prepared_capacity: Some(4),
        min_size: 0,
        pool_state: "Stopped".to_owned(),
        reuse_on_scale_in: false,
    };
    [hook.into(), pool.into()]
}
