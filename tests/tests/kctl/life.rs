//! A cluster's life: what an operator sees at each turn, and what each turn costs.

use crate::kctl::{KctlOutput, Operator};
use std::os::unix::fs::PermissionsExt;

const ZONES: &str = "us-east-1a,us-east-1b,us-east-1c";

#[test]
fn a_cluster_is_created_changed_and_deleted_without_a_trace() {
    let operator = Operator::new();
    let before = operator.list_resources();

    operator.run_ok(&[
        "create",
        "cluster",
        "--zones",
        ZONES,
        "--control-plane-zones",
        ZONES,
    ]);
    let pending = operator.run(&["update", "--exit-code"]);
    assert_eq!(pending.code, Some(10), "{}", pending.stderr);
    assert!(
        pending.stdout.contains("0 to change, 0 to delete"),
        "{}",
        pending.stdout
    );

    let made = operator.run_ok(&["update", "--yes"]);
    assert!(!made.stdout.contains("PRIVATE KEY") && !made.stderr.contains("PRIVATE KEY"));

    operator.simulator.forget_calls();
    let nothing = operator.run_ok(&["update", "--exit-code"]);
    assert!(nothing.stdout.contains("No changes"), "{}", nothing.stdout);
    let calls = operator.simulator.calls_by_operation();
    assert!(
        calls["aws"].as_u64() <= Some(40),
        "a plan of 6 groups: {calls}"
    );
    assert!(
        calls["s3"].as_u64() <= Some(8),
        "a plan of 6 groups: {calls}"
    );

    operator.run_ok(&["edit", "ig", "nodes-us-east-1a", "--set", "spec.maxSize=3"]);
    let short = operator.run_ok(&["update"]);
    assert!(
        short.stdout.contains("max_size  1 -> 3"),
        "{}",
        short.stdout
    );
    assert!(
        short.stdout.contains("0 to add, 1 to change, 0 to delete"),
        "{}",
        short.stdout
    );
    operator.run_ok(&["update", "--yes"]);
    operator.run_ok(&["update", "--exit-code"]);

    operator.run_ok(&["export", "kubeconfig", "--admin"]);
    let mode = std::fs::metadata(operator.home_path("kubeconfig"))
        .expect("a kubeconfig")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);

    operator.run_ok(&["delete", "cluster", "prod.example.com", "--yes"]);
    assert_eq!(operator.list_resources(), before);
}

#[test]
fn a_group_of_several_sizes_mixes_them_until_it_is_told_not_to() {
    let operator = Operator::new();
    let zone = ["create", "cluster", "--zones", "us-east-1a"];
    operator.run_ok(&[&zone[..], &["--node-size", "m5.large,m5.xlarge"]].concat());
    operator.run_ok(&["update", "--yes"]);
    assert_eq!(policy(&operator), "prioritized 0 100 - m5.large m5.xlarge");
    operator.run_ok(&["update", "--exit-code"]);

    let spot = [
        "spec.mixedInstancesPolicy.onDemandAboveBase=50",
        "spec.maxPrice=0.2",
    ];
    let edit = ["edit", "ig", "nodes-us-east-1a"];
    operator.run_ok(&[&edit[..], &["--set", spot[0], "--set", spot[1]]].concat());
    let planned = operator.run_ok(&["update"]);
    let changes = "0 to add, 1 to change, 0 to delete";
    assert!(planned.stdout.contains(changes), "{}", planned.stdout);
    operator.run_ok(&["update", "--yes"]);
    assert_eq!(policy(&operator), "prioritized 0 50 0.2 m5.large m5.xlarge");
    operator.run_ok(&["update", "--exit-code"]);

    let mixed = "spec.mixedInstancesPolicy";
    operator.run_ok(&[&edit[..], &["--unset", mixed, "--unset", "spec.maxPrice"]].concat());
    operator.run_ok(&["update", "--yes"]);
    assert_eq!(policy(&operator), "none");
    operator.run_ok(&["update", "--exit-code"]);
    operator.run_ok(&["delete", "cluster", "prod.example.com", "--yes"]);
}

/// The policy of the group of nodes, in one line.
fn policy(operator: &Operator) -> String {
    const DESCRIBE: &str = r"
name = 'nodes-us-east-1a.prod.example.com'
group = boto('autoscaling').describe_auto_scaling_groups(AutoScalingGroupNames=[name])['AutoScalingGroups'][0]
policy = group.get('MixedInstancesPolicy')
if policy is None:
    print('none')
else:
    of = policy['InstancesDistribution']
    types = [one['InstanceType'] for one in policy['LaunchTemplate']['Overrides']]
    print(of['OnDemandAllocationStrategy'], of['OnDemandBaseCapacity'], of['OnDemandPercentageAboveBaseCapacity'], of.get('SpotMaxPrice', '-'), *types)
";
    operator
        .simulator
        .run_python("us-east-1", DESCRIBE)
        .trim()
        .to_owned()
}

/// Its instances end one by one through their hook, which drains them; only then the group is deleted.
#[test]
fn a_group_that_leaves_the_spec_shrinks_before_it_goes() {
    let operator = Operator::new();
    operator.run_ok(&["create", "cluster", "--zones", "us-east-1a,us-east-1b"]);
    operator.run_ok(&["update", "--yes"]);
    operator.run_ok(&["delete", "ig", "nodes-us-east-1b", "--yes"]);
    operator.simulator.forget_calls();
    operator.run_ok(&["update", "--yes"]);
    let calls = operator.simulator.calls_by_operation()["calls"].clone();
    assert_eq!(calls["autoscaling.UpdateAutoScalingGroup"], 1, "{calls}");
    assert_eq!(calls["autoscaling.DeleteAutoScalingGroup"], 1, "{calls}");
    let left = operator.list_resources();
    assert!(
        !left
            .iter()
            .any(|line| line.contains("nodes-us-east-1b.prod")),
        "{left:?}"
    );
    operator.run_ok(&["update", "--exit-code"]);
}

/// A bucket's name is free once it was deleted: nothing is written to one that another account has registered.
#[test]
fn nothing_is_written_to_another_accounts_bucket() {
    let operator = Operator::new();
    let create = ["create", "cluster", "--zones", "us-east-1a"];
    let mut command = operator.kctl_command(&create);
    let refused: crate::kctl::KctlOutput = command
        .env("KCTL_STATE_OWNER", "210987654321")
        .output()
        .expect("kctl runs")
        .into();
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("KCTL_STATE_OWNER"),
        "{}",
        refused.stderr
    );
    operator.run_ok(&create);
    // A kubeconfig says where Secrets are sent: for one, reads too ask whose the bucket is.
    operator.simulator.forget_calls();
    operator.run(&["export", "kubeconfig"]);
    let calls = operator.simulator.calls_by_operation();
    assert_eq!(calls["calls"]["sts.GetCallerIdentity"], 1, "{calls}");
}

/// What is deleted from a bucket with versioning can still be read: the plan says so, of such a bucket only.
#[test]
fn deleting_says_what_a_bucket_with_versioning_keeps() {
    const SAID: &str = "earlier versions of all of it, private keys too, stay there";
    let operator = Operator::new();
    operator.run_ok(&["create", "cluster", "--zones", "us-east-1a"]);
    let plain = operator.run_ok(&["delete", "cluster", "prod.example.com"]);
    assert!(!plain.stdout.contains(SAID), "{}", plain.stdout);
    operator.simulator.run_python(
        crate::kctl::REGION,
        "boto('s3').put_bucket_versioning(Bucket='state', VersioningConfiguration={'Status': 'Enabled'})",
    );
    let versioned = operator.run_ok(&["delete", "cluster", "prod.example.com"]);
    assert!(versioned.stdout.contains(SAID), "{}", versioned.stdout);
}

#[test]
fn a_private_cluster_with_a_hosted_zone_settles_and_goes() {
    let operator = Operator::new();
    operator.simulator.run_python(
        crate::kctl::REGION,
        "boto('route53').create_hosted_zone(Name='example.com', CallerReference='test')",
    );
    publish_names(&operator, &["etcd-of-the-users"]);
    publish_for_objects(&operator, "other.example.com");
    let before = operator.list_resources();
    operator.run_ok(&[
        "create",
        "cluster",
        "--zones",
        "us-east-1a,us-east-1b",
        "--topology",
        "private",
        "--bastion",
        "--dns-zone",
        "example.com",
        "--cloud-labels",
        "Owner=Jane Doe",
        "--network-cidr",
        "10.20.0.0/16",
    ]);
    operator.run_ok(&["update", "--yes"]);
    // protokube publishes the names of etcd's members. They stay, but for that of a member of which only the volume is left.
    publish_names(&operator, &["etcd-a", "etcd-events-a"]);
    publish_for_objects(&operator, "prod.example.com");
    let settled = operator.run(&["update", "--exit-code"]);
    assert_eq!(settled.code, Some(0), "{}", settled.stdout);
    publish_names(&operator, &["etcd-z"]);
    operator
        .simulator
        .run_python(crate::kctl::REGION, VOLUME_OF_A_FORMER_MEMBER);
    let shown = operator.run_ok(&["update"]).stdout;
    assert!(
        shown.contains("etcd-z.internal.prod.example.com"),
        "{shown}"
    );
    assert!(
        shown.contains("0 to add, 0 to change, 1 to delete"),
        "{shown}"
    );
    operator.run_ok(&["update", "--yes"]);
    let settled = operator.run(&["update", "--exit-code"]);
    assert_eq!(settled.code, Some(0), "{}", settled.stdout);
    // With a name that was published again meanwhile.
    publish_names(&operator, &["etcd-z"]);
    let deleted = operator.run_ok(&["delete", "cluster", "prod.example.com", "--yes"]);
    let said = format!("{}{}", deleted.stdout, deleted.stderr);
    assert!(
        said.contains("their records will be deleted: shop.example.com, web.prod.example.com"),
        "{said}"
    );
    assert_eq!(operator.list_resources(), before);
}

/// Publishes names as the protokube of a cluster does for a Service, inside and outside of the cluster's name.
fn publish_for_objects(operator: &Operator, cluster: &str) {
    let script = "dns = boto('route53')
zone = dns.list_hosted_zones()['HostedZones'][0]['Id']
for name in ['shop.example.com', 'web.CLUSTER']:
    record = {'Name': name, 'Type': 'A', 'TTL': 60, 'Weight': 1, 'SetIdentifier': 'kctl/CLUSTER', 'ResourceRecords': [{'Value': '10.20.0.4'}]}
    dns.change_resource_record_sets(HostedZoneId=zone, ChangeBatch={'Changes': [{'Action': 'UPSERT', 'ResourceRecordSet': record}]})";
    let script = script.replace("CLUSTER", cluster);
    operator.simulator.run_python(crate::kctl::REGION, &script);
}

/// Publishes A records of these names below `internal.prod.example.com`.
fn publish_names(operator: &Operator, names: &[&str]) {
    let script = "dns = boto('route53')
zone = dns.list_hosted_zones()['HostedZones'][0]['Id']
for name in NAMES:
    record = {'Name': f'{name}.internal.prod.example.com', 'Type': 'A', 'TTL': 60, 'ResourceRecords': [{'Value': '10.20.0.4'}]}
    dns.change_resource_record_sets(HostedZoneId=zone, ChangeBatch={'Changes': [{'Action': 'UPSERT', 'ResourceRecordSet': record}]})";
    let script = script.replace("NAMES", &format!("{names:?}"));
    operator.simulator.run_python(crate::kctl::REGION, &script);
}

/// A volume of etcd main's member z, which the spec does not have.
const VOLUME_OF_A_FORMER_MEMBER: &str = "ec2 = boto('ec2')
known = ec2.describe_volumes(Filters=[{'Name': 'tag-key', 'Values': ['k8s.io/etcd/main']}])['Volumes'][0]
tags = {tag['Key']: tag['Value'] for tag in known['Tags']}
tags.update({'Name': 'z.etcd-main.prod.example.com', 'k8s.io/etcd/main': 'z/a,z'})
tags = [{'Key': key, 'Value': value} for key, value in tags.items()]
ec2.create_volume(AvailabilityZone=known['AvailabilityZone'], Size=1, TagSpecifications=[{'ResourceType': 'volume', 'Tags': tags}])";

#[test]
fn every_network_plugin_and_a_network_of_the_users_settle() {
    let operator = Operator::new();
    let vpc = operator.simulator.run_python(
        crate::kctl::REGION,
        "e = boto('ec2')\nv = e.create_vpc(CidrBlock='172.31.0.0/16')['Vpc']['VpcId']\ng = e.create_internet_gateway()['InternetGateway']['InternetGatewayId']\ne.attach_internet_gateway(InternetGatewayId=g, VpcId=v)\nprint(v)",
    );
    let before = operator.list_resources();
    for plugin in [
        "flannel",
        "calico",
        "amazonvpc",
        "cilium-eni",
        "kube-router",
        "kindnet",
        "kubenet",
        "cni",
        "external",
    ] {
        let shared = ["--network-id", &vpc, "--network-cidr", "172.31.0.0/16"];
        let mut create = vec![
            "create",
            "cluster",
            "--zones",
            "us-east-1a",
            "--networking",
            plugin,
        ];
        if plugin == "cni" {
            create.extend(shared);
        }
        operator.run_ok(&create);
        operator.run_ok(&["update", "--yes"]);
        let settled = operator.run(&["update", "--exit-code"]);
        assert_eq!(settled.code, Some(0), "{plugin}: {}", settled.stdout);
        operator.run_ok(&["delete", "cluster", "prod.example.com", "--yes"]);
        assert_eq!(operator.list_resources(), before, "{plugin}");
    }
}

#[test]
fn mistakes_end_with_2_and_say_what_to_do() {
    let operator = Operator::new();
    let spec = operator.home_path("cluster.yaml");
    let made = operator.run_ok(&[
        "create",
        "cluster",
        "--zones",
        "us-east-1a",
        "--dry-run",
        "-o",
        "yaml",
    ]);
    std::fs::write(&spec, made.stdout.replace("networkCIDR", "netwrkCIDR")).expect("a file");
    let typo = operator.run(&["create", "-f", spec.to_str().expect("a path")]);
    assert_eq!(typo.code, Some(2));
    assert!(typo.stderr.contains("cluster.yaml:"), "{}", typo.stderr);
    assert!(typo.stderr.contains("networkCIDR"), "{}", typo.stderr);
    assert!(
        operator
            .list_resources()
            .iter()
            .all(|line| !line.contains("prod.example.com"))
    );

    let unsupported = operator.run(&[
        "create",
        "cluster",
        "--zones",
        "us-east-1a",
        "--networking",
        "kopeio",
    ]);
    assert_eq!(unsupported.code, Some(2));
    assert!(
        unsupported.stderr.contains("hint:"),
        "{}",
        unsupported.stderr
    );
}

/// Load balancers, target groups, security groups and volumes that controllers of the cluster have made, found by their tags.
#[test]
fn what_controllers_made_goes_with_the_cluster_and_nothing_else() {
    let operator = Operator::new();
    let before = operator.list_resources();
    operator.run_ok(&["create", "cluster", "--zones", "us-east-1a"]);
    operator.run_ok(&["update", "--yes"]);
    operator
        .simulator
        .run_python(crate::kctl::REGION, CONTROLLERS_AT_WORK);
    let nothing = operator.run_ok(&["update", "--exit-code"]);
    assert!(nothing.stdout.contains("No changes"), "{}", nothing.stdout);
    let shown = operator.run_ok(&["delete", "cluster", "prod.example.com"]);
    for made in [
        "k8s-web",
        "k8s-targets",
        "k8s-elb-web",
        "k8s-traffic",
        "pvc-1",
        "data of PersistentVolumeClaim shop/data",
    ] {
        assert!(shown.stdout.contains(made), "{made}: {}", shown.stdout);
    }
    assert!(
        shown.stderr.contains("they will be deleted: classic-web\n"),
        "{}",
        shown.stderr
    );
    assert!(
        shown.stderr.contains("they will be deleted: eni-"),
        "{}",
        shown.stderr
    );
    let foreign = shown.stderr.lines();
    let foreign: Vec<&str> = foreign
        .filter(|line| line.contains("not the cluster's"))
        .collect();
    assert!(
        matches!(foreign.as_slice(), [line] if line.matches("eni-").count() == 1 && line.ends_with("of other-team")),
        "{}",
        shown.stderr
    );
    for others in ["other-web", "other-volume"] {
        assert!(!shown.stdout.contains(others), "{others}: {}", shown.stdout);
    }
    let gone = "[boto('ec2').delete_network_interface(NetworkInterfaceId=i['NetworkInterfaceId']) for i in boto('ec2').describe_network_interfaces()['NetworkInterfaces'] if i['Description'] == 'other-team']";
    operator.simulator.run_python(crate::kctl::REGION, gone);
    operator.run_ok(&["delete", "cluster", "prod.example.com", "--yes"]);
    let classic = "print([b['LoadBalancerName'] for b in boto('elb').describe_load_balancers()['LoadBalancerDescriptions']])";
    let classic = operator.simulator.run_python(crate::kctl::REGION, classic);
    assert_eq!(classic.trim(), "['classic-other']");
    let after = operator.list_resources();
    let left: Vec<&String> = after.difference(&before).collect();
    let has = |words: &str| left.iter().any(|line| line.contains(words));
    assert!(has("other-web") && has("other-volume"), "{left:?}");
    for made in ["k8s-", "pvc-1", "prod.example.com"] {
        assert!(!has(made), "{left:?}");
    }
}

/// The cloud controller manager tags with `kubernetes.io/cluster/NAME`, the AWS load balancer controller with
/// `elbv2.k8s.aws/cluster`, the EBS CSI driver with the claim.
const CONTROLLERS_AT_WORK: &str = r"
ec2, elb = boto('ec2'), boto('elbv2')
def tags(more): return [{'Key': k, 'Value': v} for k, v in more.items()]
def spec(kind, more): return [{'ResourceType': kind, 'Tags': tags(more)}]
owned = {'kubernetes.io/cluster/prod.example.com': 'owned'}
(vpc,) = [v['VpcId'] for v in ec2.describe_vpcs()['Vpcs']]
subnets = [s['SubnetId'] for s in ec2.describe_subnets()['Subnets']]
group = ec2.create_security_group(GroupName='k8s-elb-web', Description='web', VpcId=vpc, TagSpecifications=spec('security-group', owned))['GroupId']
ec2.create_security_group(GroupName='k8s-traffic', Description='all', VpcId=vpc, TagSpecifications=spec('security-group', {'elbv2.k8s.aws/cluster': 'prod.example.com'}))
(nodes,) = [g['GroupId'] for g in ec2.describe_security_groups()['SecurityGroups'] if g['GroupName'] == 'nodes.prod.example.com']
ec2.authorize_security_group_ingress(GroupId=nodes, IpPermissions=[{'IpProtocol': '-1', 'UserIdGroupPairs': [{'GroupId': group}]}])
web = elb.create_load_balancer(Name='k8s-web', Type='network', Subnets=subnets[:1], Tags=tags({**owned, 'kubernetes.io/service-name': 'default/web'}))
target = elb.create_target_group(Name='k8s-targets', Protocol='TCP', Port=30080, VpcId=vpc, Tags=tags(owned))['TargetGroups'][0]['TargetGroupArn']
elb.create_listener(LoadBalancerArn=web['LoadBalancers'][0]['LoadBalancerArn'], Protocol='TCP', Port=80, DefaultActions=[{'Type': 'forward', 'TargetGroupArn': target}])
other = ec2.create_vpc(CidrBlock='10.99.0.0/16')['Vpc']['VpcId']
others = [ec2.create_subnet(VpcId=other, CidrBlock='10.99.0.0/24')['Subnet']['SubnetId']]
foreign = ec2.create_security_group(GroupName='other', Description='other', VpcId=other)['GroupId']
for name, cluster, where, within in [('classic-web', 'prod', subnets[:1], group), ('classic-other', 'other', others, foreign)]:
    boto('elb').create_load_balancer(LoadBalancerName=name, Subnets=where, SecurityGroups=[within], Listeners=[{'Protocol': 'TCP', 'LoadBalancerPort': 80, 'InstanceProtocol': 'TCP', 'InstancePort': 30080}], Tags=tags({f'kubernetes.io/cluster/{cluster}.example.com': 'owned'}))
ec2.create_volume(AvailabilityZone='us-east-1a', Size=1, TagSpecifications=spec('volume', {**owned, 'Name': 'pvc-1', 'kubernetes.io/created-for/pvc/name': 'data', 'kubernetes.io/created-for/pvc/namespace': 'shop'}))
ec2.create_volume(AvailabilityZone='us-east-1a', Size=1, TagSpecifications=spec('volume', {'Name': 'other-volume', 'kubernetes.io/created-for/pvc/name': 'data', 'kubernetes.io/cluster/other.example.com': 'owned'}))
ec2.create_network_interface(SubnetId=subnets[0], Description='of a node that is gone', TagSpecifications=spec('network-interface', owned))
ec2.create_network_interface(SubnetId=subnets[0], Description='other-team')
elb.create_target_group(Name='other-web', Protocol='TCP', Port=80, VpcId=other, Tags=tags({'kubernetes.io/cluster/other.example.com': 'owned'}))
";

/// S3 calls of a preview and of an update without changes, of a cluster of so many groups.
fn store_calls(groups: usize) -> [u64; 2] {
    let operator = Operator::new();
    operator.run_ok(&["create", "cluster", "--zones", "us-east-1a"]);
    let template = operator.run_ok(&["get", "ig", "nodes-us-east-1a", "-o", "yaml"]);
    let copies = (2..groups).map(|number| {
        let name = format!("nodes-{number}");
        template.stdout.replace("nodes-us-east-1a", &name)
    });
    let file = operator.home_path("groups.yaml");
    let texts: Vec<String> = copies.collect();
    std::fs::write(&file, texts.join("\n---\n")).expect("a file");
    operator.run_ok(&["create", "-f", file.to_str().expect("a path")]);
    operator.run_ok(&["update", "--yes"]);
    let counted = |words: &[&str]| {
        operator.simulator.forget_calls();
        // A lock that lives long is not renewed meanwhile: the time of a command is not what is counted.
        let mut command = operator.kctl_command(words);
        let ended = command.env("KCTL_LOCK_LIFE", "10m").output();
        let ended = KctlOutput::from(ended.expect("kctl runs"));
        assert!(ended.stdout.contains("No changes"), "{}", ended.stdout);
        let calls = operator.simulator.calls_by_operation();
        calls["s3"].as_u64().expect("a number")
    };
    let unchanged = [counted(&["update"]), counted(&["update", "--yes"])];
    // What changed by other means is read itself, and all is together again after the next update.
    let name = format!("nodes-{}", groups - 1);
    operator.run_ok(&["edit", "ig", &name, "--set", "spec.nodeLabels.a=b"]);
    let changed = operator.run_ok(&["update"]);
    assert!(changed.stdout.contains(&name), "{}", changed.stdout);
    operator.run_ok(&["update", "--yes"]);
    let again = [counted(&["update"]), counted(&["update", "--yes"])];
    // The operation has one record more, which is not read.
    assert_eq!(again, unchanged);
    unchanged
}

#[test]
fn store_calls_do_not_grow_with_groups() {
    let (few, many) = std::thread::scope(|scope| {
        let few = scope.spawn(|| store_calls(6));
        let many = store_calls(100);
        (few.join().expect("it ends"), many)
    });
    assert_eq!(few, many);
    println!("store calls of a preview and of an update: {few:?}");
}
