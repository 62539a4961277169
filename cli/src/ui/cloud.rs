//! AWS objects in words: where one stands in a plan, under which other one, and what matters about it.

use cloud::{Cloud, Kind, ObjectContent, RuleSource, S3Object, SecurityGroupRule, Subnet};
use engine::{Id, Ref, Resource};

/// Digits that are shown of a sha256 unless everything is.
const SHORT_HASH: usize = 12;

/// The text with only the beginning of every sha256.
pub fn short_hashes(text: &str) -> String {
    let shortened = |word: &str| {
        let bare = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let hash = bare.len() == 64 && bare.bytes().all(|byte| byte.is_ascii_hexdigit());
        let start = bare.get(..SHORT_HASH).filter(|_| hash);
        start.map_or_else(|| word.to_owned(), |start| word.replace(bare, start))
    };
    text.split_inclusive(|c: char| !c.is_ascii_alphanumeric())
        .map(shortened)
        .collect()
}

/// The sections of a plan, in the order in which things depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// VPC, subnets, routes, gateways.
    Network,
    /// Security groups and rules.
    Firewall,
    /// IAM.
    Permissions,
    /// Load balancers and names.
    Api,
    /// Disks that outlive machines.
    Volumes,
    /// What machines read at boot.
    Store,
    /// Launch templates and Auto Scaling groups.
    Machines,
    /// The queue of the node termination handler.
    Events,
}

impl Section {
    /// Its heading.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Network => "Network",
            Self::Firewall => "Security groups",
            Self::Permissions => "Permissions",
            Self::Api => "API and names",
            Self::Volumes => "etcd volumes",
            Self::Store => "State store",
            Self::Machines => "Machines",
            Self::Events => "Termination events",
        }
    }
}

/// The section of an object, and its place among the kinds there: first what others stand on.
pub fn place(of: &Cloud) -> (Section, u8) {
    match of {
        Cloud::Vpc(_) => (Section::Network, 0),
        Cloud::VpcIpv4CidrBlockAssociation(_) => (Section::Network, 1),
        Cloud::VpcDhcpOptions(_) => (Section::Network, 2),
        Cloud::VpcDhcpOptionsAssociation(_) => (Section::Network, 3),
        Cloud::InternetGateway(_) => (Section::Network, 4),
        Cloud::Subnet(_) => (Section::Network, 5),
        Cloud::Eip(_) => (Section::Network, 6),
        Cloud::NatGateway(_) => (Section::Network, 7),
        Cloud::RouteTable(_) => (Section::Network, 8),
        Cloud::Route(_) => (Section::Network, 9),
        Cloud::RouteTableAssociation(_) => (Section::Network, 10),
        Cloud::SecurityGroup(_) => (Section::Firewall, 0),
        Cloud::SecurityGroupRule(_) => (Section::Firewall, 1),
        Cloud::IamRole(_) => (Section::Permissions, 0),
        Cloud::IamRolePolicy(_) => (Section::Permissions, 1),
        Cloud::IamRolePolicyAttachment(_) => (Section::Permissions, 2),
        Cloud::IamInstanceProfile(_) => (Section::Permissions, 3),
        Cloud::Lb(_) => (Section::Api, 0),
        Cloud::LbTargetGroup(_) => (Section::Api, 1),
        Cloud::LbListener(_) => (Section::Api, 2),
        Cloud::Route53ZoneAssociation(_) => (Section::Api, 3),
        Cloud::Route53Record(_) => (Section::Api, 4),
        Cloud::EbsVolume(_) => (Section::Volumes, 0),
        Cloud::S3Object(_) => (Section::Store, 0),
        Cloud::KeyPair(_) => (Section::Machines, 0),
        Cloud::LaunchTemplate(_) => (Section::Machines, 1),
        Cloud::AutoscalingGroup(_) => (Section::Machines, 2),
        Cloud::AutoscalingLifecycleHook(_) => (Section::Machines, 3),
        Cloud::SqsQueue(_) => (Section::Events, 0),
        Cloud::CloudwatchEventRule(_) => (Section::Events, 1),
        Cloud::CloudwatchEventTarget(_) => (Section::Events, 2),
    }
}

/// The object that this one is a part of, for people: a rule belongs to its security group.
pub fn parent(of: &Cloud) -> Option<Id> {
    match of {
        Cloud::VpcDhcpOptionsAssociation(part) => part.vpc_id.id(),
        Cloud::VpcIpv4CidrBlockAssociation(part) => part.vpc_id.id(),
        Cloud::Route(part) => part.route_table_id.id(),
        Cloud::RouteTableAssociation(part) => part.route_table_id.id(),
        Cloud::SecurityGroupRule(part) => part.group_id.id(),
        Cloud::IamRolePolicy(part) => part.role_name.id(),
        Cloud::IamRolePolicyAttachment(part) => part.role_name.id(),
        Cloud::IamInstanceProfile(part) => part.role_name.as_ref().and_then(Ref::id),
        Cloud::LbListener(part) => part.load_balancer_arn.id(),
        Cloud::AutoscalingLifecycleHook(part) => part.auto_scaling_group_name.id(),
        Cloud::S3Object(part) => plain_node_config(&part.key),
        Cloud::CloudwatchEventTarget(_) => of
            .needs()
            .into_iter()
            .find(|id| id.kind() == "cloudwatch_event_rule"),
        _ => None,
    }
}

/// Where the configuration of a group's machines stands for people, if this is one under its hash.
fn plain_node_config(key: &str) -> Option<Id> {
    let (dir, _) = version(key)?;
    Some(Id::new(S3Object::TYPE, format!("{dir}/nodeupconfig.yaml")))
}

/// Folder and hash of a configuration that is stored under its hash.
fn version(key: &str) -> Option<(&str, &str)> {
    let (dir, name) = key.rsplit_once('/')?;
    let hash = name.strip_prefix("nodeupconfig-")?.strip_suffix(".yaml")?;
    (hash.len() == 64).then_some((dir, hash))
}

/// What parts of a kind are called when they are counted: one, many.
pub fn part_words(kind: &str) -> (&str, &str) {
    match kind {
        "security_group_rule" => ("rule", "rules"),
        "route" => ("route", "routes"),
        "route_table_association" => ("subnet", "subnets"),
        "vpc_dhcp_options_association" => ("DHCP options", "DHCP options"),
        "vpc_ipv4_cidr_block_association" => ("further range", "further ranges"),
        "iam_role_policy" => ("policy", "policies"),
        "iam_role_policy_attachment" => ("attached policy", "attached policies"),
        "iam_instance_profile" => ("instance profile", "instance profiles"),
        "lb_listener" => ("listener", "listeners"),
        "autoscaling_lifecycle_hook" => ("lifecycle hook", "lifecycle hooks"),
        "s3_object" => ("version", "versions"),
        "cloudwatch_event_target" => ("target", "targets"),
        other => (other, other),
    }
}

/// What matters about an object, in a few words; empty where its name says it.
pub fn describe(of: &Cloud) -> String {
    match of {
        Cloud::Vpc(vpc) => vpc.cidr_block.clone(),
        Cloud::Subnet(subnet) => describe_subnet(subnet),
        Cloud::VpcDhcpOptions(options) => options.domain_name.clone(),
        Cloud::NatGateway(gateway) => format!("in {}", reference(&gateway.subnet_id)),
        Cloud::Route(route) => format!(
            "{} to {}",
            route.destination,
            reference(route.target.reference())
        ),
        Cloud::RouteTableAssociation(association) => {
            format!("for {}", reference(&association.subnet_id))
        }
        Cloud::SecurityGroupRule(rule) => describe_rule(rule),
        Cloud::Lb(lb) => format!(
            "{} in {}",
            lb.scheme,
            several(lb.subnet_mappings.len(), "zone")
        ),
        Cloud::LbListener(listener) => format!("{} {}", listener.protocol, listener.port),
        Cloud::LbTargetGroup(group) => format!("{} {}", group.protocol, group.port),
        Cloud::Route53Record(record) => {
            let target = record
                .alias_target
                .as_ref()
                .map(|alias| format!(" for {}", reference(&alias.of)));
            format!("{}{}", record.record_type, target.unwrap_or_default())
        }
        Cloud::Route53ZoneAssociation(association) => format!(
            "{} looks up {}",
            reference(&association.vpc_id),
            association.hosted_zone_id
        ),
        Cloud::EbsVolume(volume) => {
            format!(
                "{} GiB {} in {}",
                volume.size, volume.volume_type, volume.availability_zone
            )
        }
        Cloud::LaunchTemplate(template) => {
            format!("{} {}", template.instance_type, template.image_id)
        }
        Cloud::AutoscalingGroup(group) => {
            let machines = match (group.min_size, group.max_size) {
                (1, 1) => "1 machine".to_owned(),
                (min, max) if min == max => format!("{min} machines"),
                (min, max) => format!("{min} to {max} machines"),
            };
            format!(
                "{machines} in {}",
                several(group.vpc_zone_identifier.len(), "subnet")
            )
        }
        Cloud::S3Object(object) => match (&object.content, version(&object.key)) {
            (_, Some((_, hash))) => format!("version {hash}"),
            (ObjectContent::Text(text), None) if !text.is_empty() => {
                format!("{} bytes", text.len())
            }
            _ => String::new(),
        },
        _ => String::new(),
    }
}

fn several(count: usize, what: &str) -> String {
    if count == 1 {
        format!("1 {what}")
    } else {
        format!("{count} {what}s")
    }
}

fn describe_subnet(subnet: &Subnet) -> String {
    let kind = subnet.tags.get("SubnetType").map_or("", String::as_str);
    format!(
        "{} in {} {kind}",
        subnet.cidr_block, subnet.availability_zone
    )
    .trim_end()
    .to_owned()
}

fn describe_rule(rule: &SecurityGroupRule) -> String {
    let ports = match (rule.ip_protocol.as_str(), rule.from_port, rule.to_port) {
        ("-1", ..) => "everything".to_owned(),
        (protocol, from, to) if from == to => format!("{protocol} {from}"),
        (protocol, from, to) => format!("{protocol} {from}-{to}"),
    };
    let other = match &rule.source {
        RuleSource::CidrIpv4(cidr) | RuleSource::CidrIpv6(cidr) => cidr.clone(),
        RuleSource::PrefixListId(list) => list.clone(),
        RuleSource::ReferencedGroupId(group) => reference(group),
    };
    let (direction, side) = if rule.is_egress {
        ("egress", "to")
    } else {
        ("ingress", "from")
    };
    format!("{direction} {ports} {side} {other}")
}

/// A reference in words: our own object's name, or what the user gave.
fn reference(to: &Ref) -> String {
    match to {
        Ref::Own { name, .. } => name.clone(),
        Ref::Given(given) => given.clone(),
    }
}
