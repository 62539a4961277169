//! Every kind of object: made, seen as wanted, changed, mended after a change from outside, removed without a trace.

use crate::cluster::{InCluster, show_plan};
use crate::simulator::Simulator;
use crate::spec::{REGION, dependency_closure, desired_objects, full_spec, store_objects};
use cloud::{Cloud, ObjectContent, S3Object, TYPES};
use engine::{Id, Resource, Text};
use full::{FullSpec, objects};
use std::collections::BTreeSet;

fn kinds_of(of: &[Cloud]) -> BTreeSet<String> {
    of.iter().map(|one| one.id().kind().to_owned()).collect()
}

#[tokio::test]
async fn a_cluster_is_made_changed_mended_and_removed_without_a_trace() {
    let simulator = Simulator::start_simulator();
    let mut cluster = InCluster::new(&simulator).await;
    let before = simulator.list_resources(REGION);

    let first = desired_objects(
        &full_spec(&cluster.facts, |_| {}),
        store_objects("completed: 1\n"),
    );
    let made = kinds_of(&first);
    let missing: Vec<&str> = (TYPES.iter().copied())
        .filter(|kind| !made.contains(*kind))
        .collect();
    let others = ["egress_only_internet_gateway", "route53_zone_association"];
    assert_eq!(missing, others, "of IPv6, and of a private zone");
    cluster.run_until_converged(&first).await;
    cluster.refresh = true;
    cluster.is_settled(&first).await;
    cluster.refresh = false;

    let changed = make_changes(&cluster).await;
    is_mended(&simulator, &mut cluster, &changed).await;

    // What protokube publishes goes with the cluster, and not before.
    simulator.run_python(REGION, ETCD_RECORD);
    cluster.is_settled(&changed).await;
    cluster.run_until_converged(&[]).await;
    let after = simulator.list_resources(REGION);
    // Where its backups are stays known until the cluster's folder goes.
    let left = after.difference(&before);
    let left: Vec<_> = left
        .filter(|one| !one.contains("/etcd-backups.json"))
        .collect();
    assert!(left.is_empty(), "{left:#?}");
}

/// The issuer's documents alone.
fn desired_documents(cluster: &InCluster) -> Vec<Cloud> {
    let spec = full_spec(&cluster.facts, |_| {});
    let mut all = desired_objects(&spec, store_objects("completed: 1\n"));
    all.retain(|one| matches!(one, Cloud::DiscoveryDocument(_)));
    all
}

/// A store with the documents of another issuer: nothing is overwritten, and when the cluster goes, nothing of it either, nor the provider
/// and the roles that trust that issuer, whatever their tags say.
#[tokio::test]
async fn documents_of_another_issuer_stay_as_they_are() {
    let keys = r#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "AA"}]}"#;
    let elsewhere = r#"{"issuer": "i", "jwks_uri": "https://issuer.s3.eu-west-1.amazonaws.com/prod/keys.json"}"#;
    for (key, content) in [
        ("openid/v1/jwks", keys),
        (".well-known/openid-configuration", elsewhere),
    ] {
        let simulator = Simulator::start_simulator();
        let cluster = InCluster::new(&simulator).await;
        let put = format!(
            "boto('s3').put_object(Bucket='issuer', Key='prod/{key}', Body='{content}'.encode())"
        );
        simulator.run_python(REGION, &put);
        simulator.run_python(REGION, PROVIDER_OF_THE_NAME);
        let before = simulator.list_resources(REGION);
        let documents = desired_documents(&cluster);
        let report = cluster.run_update(&documents).await;
        let failed = format!("{report:?}");
        assert!(
            failed.contains("has the keys of another issuer"),
            "{failed}"
        );
        cluster.run_until_converged(&[]).await;
        assert_eq!(simulator.list_resources(REGION), before, "{key}");
    }
}

/// Block Public Access lets a public object be written and keeps everybody from reading it: nothing of the documents stays, so that the next
/// update writes them.
#[tokio::test]
async fn documents_that_nobody_can_read_are_not_left() {
    let simulator = Simulator::start_simulator();
    let cluster = InCluster::new(&simulator).await;
    simulator.run_python(REGION, "boto('s3').put_public_access_block(Bucket='issuer', PublicAccessBlockConfiguration={'IgnorePublicAcls': True})");
    let before = simulator.list_resources(REGION);
    let documents = desired_documents(&cluster);
    let report = cluster.run_update(&documents).await;
    let failed = format!("{report:?}");
    assert!(failed.contains("it is not public"), "{failed}");
    assert_eq!(simulator.list_resources(REGION), before);
    simulator.run_python(
        REGION,
        "boto('s3').delete_public_access_block(Bucket='issuer')",
    );
    cluster.run_until_converged(&documents).await;
    assert_ne!(simulator.list_resources(REGION), before);
}

const PROVIDER_OF_THE_NAME: &str = "boto('iam').create_open_id_connect_provider(Url='https://issuer.s3.eu-west-1.amazonaws.com/prod', ClientIDList=['amazonaws.com'], ThumbprintList=['a' * 40], Tags=[{'Key': 'kubernetes.io/cluster/prod.example.com', 'Value': 'owned'}])";

const ETCD_RECORD: &str = "dns = boto('route53')\nzone = dns.list_hosted_zones()['HostedZones'][0]['Id']\ndns.change_resource_record_sets(HostedZoneId=zone, ChangeBatch={'Changes': [{'Action': 'CREATE', 'ResourceRecordSet': {'Name': 'etcd-a.internal.prod.example.com', 'Type': 'A', 'TTL': 60, 'ResourceRecords': [{'Value': '10.0.0.1'}]}}]})";

/// A change of the text of the spec, and a kind of object that changes with it.
const EDITS: [(&str, &str, &str); 21] = [
    (
        "enableAWSOIDCProvider: true",
        "enableAWSOIDCProvider: true, additionalAudiences: [sts.amazonaws.com]",
        "iam_openid_connect_provider",
    ),
    // Its role goes.
    (
        "    - {name: reader, namespace: shop-*, aws: {policyARNs: [\"arn:aws:iam::123456789012:policy/mine\"]}}\n",
        "",
        "iam_role",
    ),
    // The tags of everything.
    ("owner: team", "owner: crew\n    more: yes", "vpc"),
    (
        "maxSize: 3\n  maxPrice: \"0.5\"\n  suspendProcesses: [AZRebalance]",
        "maxSize: 5\n  maxPrice: \"0.7\"\n  suspendProcesses: [Launch]",
        "autoscaling_group",
    ),
    ("  suspendProcesses: [Launch]\n", "", "autoscaling_group"),
    (
        "machineType: m5d.large",
        "machineType: m5.large",
        "launch_template",
    ),
    // AWS chooses types; then the template says it all, spot instances too; then types are named again.
    (
        "instances: [m5d.large, m5.large]\n    onDemandBase: 1\n    onDemandAboveBase: 50\n    spotInstancePools: 3",
        "instanceRequirements:\n      cpu: {min: \"2\", max: \"4\"}\n      memory: {min: 8Gi}\n      excludedInstanceTypes: [\"m4.*\"]\n    spotAllocationStrategy: price-capacity-optimized",
        "autoscaling_group",
    ),
    (
        "  mixedInstancesPolicy:\n    instanceRequirements:\n      cpu: {min: \"2\", max: \"4\"}\n      memory: {min: 8Gi}\n      excludedInstanceTypes: [\"m4.*\"]\n    spotAllocationStrategy: price-capacity-optimized\n",
        "",
        "autoscaling_group",
    ),
    (
        "  maxPrice: \"0.20\"\n",
        "  maxPrice: \"0.30\"\n  mixedInstancesPolicy:\n    instances: [m5.large, m5d.large]\n    onDemandAboveBase: 0\n",
        "autoscaling_group",
    ),
    ("  maxPrice: \"0.30\"\n", "", "autoscaling_group"),
    // Its hook goes; then the pool; then there is another.
    (
        "warmPool: {enableLifecycleHook: true, maxSize: 2}",
        "warmPool: {minSize: 1}",
        "autoscaling_warm_pool",
    ),
    ("  warmPool: {minSize: 1}\n", "", "autoscaling_warm_pool"),
    (
        "\n  subnets: [b]\n",
        "\n  subnets: [b]\n  warmPool: {enableLifecycleHook: true, lifecycleHookTimeout: 300}\n",
        "autoscaling_warm_pool",
    ),
    (
        "maxInstanceLifetime: 720h",
        "maxInstanceLifetime: 0s",
        "autoscaling_group",
    ),
    (
        "{instanceGroup: master-a, name: a}",
        "{instanceGroup: master-a, name: a, volumeSize: 30}",
        "ebs_volume",
    ),
    (
        "\"s3:ListBucket\", \"s3:GetObject\"",
        "\"s3:GetObject\"",
        "iam_role_policy",
    ),
    ("policy/mine", "policy/other", "iam_role_policy_attachment"),
    (
        "  externalPolicies:\n    node: [\"arn:aws:iam::123456789012:policy/other\"]\n",
        "",
        "iam_role_policy_attachment",
    ),
    ("192.0.2.0/24", "198.51.100.0/24", "security_group_rule"),
    (
        "class: Network",
        "class: Network\n      crossZoneLoadBalancing: true",
        "lb",
    ),
    // A balancer cannot become internal: the next of its series takes its place.
    ("type: Public\n  channel", "type: Internal\n  channel", "lb"),
];

/// One change of the spec after the other, each seen and made; gives back what is wanted at the end.
async fn make_changes(cluster: &InCluster) -> Vec<Cloud> {
    let mut spec: Vec<(String, String)> = Vec::new();
    let mut wanted = Vec::new();
    for (number, (from, to, kind)) in EDITS.into_iter().enumerate() {
        spec.push((from.to_owned(), to.to_owned()));
        let edit = |text: &mut String| {
            for (from, to) in &spec {
                assert!(text.contains(from.as_str()), "{from}");
                *text = text.replace(from.as_str(), to);
            }
        };
        let completed = format!("completed: {number}\n");
        wanted = desired_objects(&full_spec(&cluster.facts, edit), store_objects(&completed));
        let plan = cluster.run_until_converged(&wanted).await;
        let changed = plan.steps.keys().any(|id| id.kind() == kind);
        assert!(changed, "{to}: {}", show_plan(&plan));
    }
    wanted
}

/// Each is a change by somebody else, and the object in whose plan it must show.
const DRIFT: [(&str, &str); 30] = [
    // It is seen late, as the change that mends it is.
    (
        "sqs_queue",
        "sqs = boto('sqs')\nqueue = sqs.list_queues()['QueueUrls'][0]\nsqs.set_queue_attributes(QueueUrl=queue, Attributes={'Policy': '{\"Version\": \"2012-10-17\", \"Statement\": [{\"Effect\": \"Allow\", \"Principal\": \"*\", \"Action\": \"sqs:SendMessage\", \"Resource\": \"*\"}]}'})\nimport urllib.request as u\nu.urlopen(u.Request(sqs.meta.endpoint_url + '/_simulator/settle', method='POST', data=b''))",
    ),
    (
        "security_group_rule",
        "ec2 = boto('ec2')\nrule = [r for r in ec2.describe_security_group_rules(Filters=[{'Name': 'tag:KubernetesCluster', 'Values': ['prod.example.com']}])['SecurityGroupRules'] if not r['IsEgress']][0]\nec2.revoke_security_group_ingress(GroupId=rule['GroupId'], SecurityGroupRuleIds=[rule['SecurityGroupRuleId']])",
    ),
    (
        "route",
        "ec2 = boto('ec2')\ntable = [t for t in ec2.describe_route_tables()['RouteTables'] if any(r.get('NatGatewayId') for r in t['Routes'])][0]\nec2.delete_route(RouteTableId=table['RouteTableId'], DestinationCidrBlock='0.0.0.0/0')",
    ),
    (
        "vpc_endpoint",
        "ec2 = boto('ec2')\nendpoint = ec2.describe_vpc_endpoints()['VpcEndpoints'][0]\nec2.modify_vpc_endpoint(VpcEndpointId=endpoint['VpcEndpointId'], RemoveRouteTableIds=endpoint['RouteTableIds'][:1])",
    ),
    (
        "route_table_association",
        "ec2 = boto('ec2')\nassociation = [a for t in ec2.describe_route_tables()['RouteTables'] for a in t['Associations'] if a.get('SubnetId')][0]\nec2.disassociate_route_table(AssociationId=association['RouteTableAssociationId'])",
    ),
    (
        "vpc",
        "ec2 = boto('ec2')\nvpc = ec2.describe_vpcs(Filters=[{'Name': 'tag:Name', 'Values': ['prod.example.com']}])['Vpcs'][0]['VpcId']\nec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={'Value': False})",
    ),
    (
        "subnet",
        "ec2 = boto('ec2')\nsubnet = ec2.describe_subnets(Filters=[{'Name': 'tag:Name', 'Values': ['a.prod.example.com']}])['Subnets'][0]['SubnetId']\nec2.delete_tags(Resources=[subnet], Tags=[{'Key': 'KubernetesCluster'}])",
    ),
    (
        "vpc_dhcp_options_association",
        "ec2 = boto('ec2')\nvpc = ec2.describe_vpcs(Filters=[{'Name': 'tag:Name', 'Values': ['prod.example.com']}])['Vpcs'][0]['VpcId']\nec2.associate_dhcp_options(VpcId=vpc, DhcpOptionsId='default')",
    ),
    (
        "launch_template",
        "ec2 = boto('ec2')\nec2.create_launch_template_version(LaunchTemplateName='nodes.prod.example.com', SourceVersion='1', LaunchTemplateData={'InstanceType': 't3.large'})",
    ),
    (
        "autoscaling_group",
        "boto('autoscaling').update_auto_scaling_group(AutoScalingGroupName='nodes.prod.example.com', MaxSize=9)",
    ),
    (
        "autoscaling_group",
        "boto('autoscaling').update_auto_scaling_group(AutoScalingGroupName='big.prod.example.com', MixedInstancesPolicy={'InstancesDistribution': {'OnDemandBaseCapacity': 2}, 'LaunchTemplate': {'LaunchTemplateSpecification': {'LaunchTemplateName': 'big.prod.example.com', 'Version': '$Latest'}, 'Overrides': [{'InstanceType': 'm5.large'}]}})",
    ),
    (
        "autoscaling_group",
        "boto('autoscaling').disable_metrics_collection(AutoScalingGroupName='nodes.prod.example.com', Metrics=['GroupMinSize'])",
    ),
    (
        "autoscaling_lifecycle_hook",
        "boto('autoscaling').put_lifecycle_hook(AutoScalingGroupName='nodes.prod.example.com', LifecycleHookName='nodes-NTHLifecycleHook', LifecycleTransition='autoscaling:EC2_INSTANCE_TERMINATING', HeartbeatTimeout=60)",
    ),
    (
        "autoscaling_lifecycle_hook",
        "boto('autoscaling').delete_lifecycle_hook(AutoScalingGroupName='nodes.prod.example.com', LifecycleHookName='nodes-NTHLifecycleHook')",
    ),
    (
        "autoscaling_warm_pool",
        "boto('autoscaling').put_warm_pool(AutoScalingGroupName='warm.prod.example.com', MinSize=1, PoolState='Running', InstanceReusePolicy={'ReuseOnScaleIn': True})",
    ),
    (
        "autoscaling_warm_pool",
        "boto('autoscaling').delete_warm_pool(AutoScalingGroupName='warm.prod.example.com', ForceDelete=True)",
    ),
    (
        "lb",
        "elb = boto('elbv2')\narn = [b for b in elb.describe_load_balancers()['LoadBalancers'] if b['LoadBalancerName'].startswith('api-')][0]['LoadBalancerArn']\nelb.modify_load_balancer_attributes(LoadBalancerArn=arn, Attributes=[{'Key': 'load_balancing.cross_zone.enabled', 'Value': 'false'}])",
    ),
    (
        "lb_target_group",
        "elb = boto('elbv2')\narn = [g for g in elb.describe_target_groups()['TargetGroups'] if g['TargetGroupName'].startswith('tcp-')][0]['TargetGroupArn']\nelb.modify_target_group_attributes(TargetGroupArn=arn, Attributes=[{'Key': 'deregistration_delay.timeout_seconds', 'Value': '60'}])",
    ),
    // The group has no matcher any more: the change back to a check by HTTPS must bring one.
    (
        "lb_target_group",
        "elb = boto('elbv2')\narn = [g for g in elb.describe_target_groups()['TargetGroups'] if g['HealthCheckProtocol'] == 'HTTPS'][0]['TargetGroupArn']\nelb.modify_target_group(TargetGroupArn=arn, HealthCheckProtocol='TCP')",
    ),
    (
        "lb_listener",
        "elb = boto('elbv2')\narn = [b for b in elb.describe_load_balancers()['LoadBalancers'] if b['LoadBalancerName'].startswith('bastion-')][0]['LoadBalancerArn']\nelb.delete_listener(ListenerArn=elb.describe_listeners(LoadBalancerArn=arn)['Listeners'][0]['ListenerArn'])",
    ),
    (
        "iam_role",
        "boto('iam').update_assume_role_policy(RoleName='nodes.prod.example.com', PolicyDocument='{\"Version\": \"2012-10-17\", \"Statement\": [{\"Effect\": \"Allow\", \"Action\": \"sts:AssumeRole\", \"Principal\": {\"Service\": \"lambda.amazonaws.com\"}}]}')",
    ),
    (
        "iam_openid_connect_provider",
        "iam = boto('iam')\narn = iam.list_open_id_connect_providers()['OpenIDConnectProviderList'][0]['Arn']\niam.remove_client_id_from_open_id_connect_provider(OpenIDConnectProviderArn=arn, ClientID='amazonaws.com')\niam.update_open_id_connect_provider_thumbprint(OpenIDConnectProviderArn=arn, ThumbprintList=['b' * 40])",
    ),
    (
        "discovery_document",
        "boto('s3').delete_object(Bucket='issuer', Key='prod/openid/v1/jwks')",
    ),
    (
        "iam_role_policy",
        "boto('iam').put_role_policy(RoleName='nodes.prod.example.com', PolicyName='nodes.prod.example.com', PolicyDocument='{\"Version\": \"2012-10-17\", \"Statement\": [{\"Effect\": \"Allow\", \"Action\": \"*\", \"Resource\": \"*\"}]}')",
    ),
    (
        "iam_instance_profile",
        "boto('iam').remove_role_from_instance_profile(InstanceProfileName='nodes.prod.example.com', RoleName='nodes.prod.example.com')",
    ),
    (
        "sqs_queue",
        "sqs = boto('sqs')\nsqs.set_queue_attributes(QueueUrl=sqs.list_queues()['QueueUrls'][0], Attributes={'MessageRetentionPeriod': '600'})",
    ),
    (
        "cloudwatch_event_rule",
        "boto('events').disable_rule(Name='prod.example.com-SpotInterruption')",
    ),
    (
        "cloudwatch_event_target",
        "boto('events').remove_targets(Rule='prod.example.com-SpotInterruption', Ids=['1'])",
    ),
    (
        "route53_record",
        "dns = boto('route53')\nzone = dns.list_hosted_zones()['HostedZones'][0]['Id']\nrecord = [r for r in dns.list_resource_record_sets(HostedZoneId=zone)['ResourceRecordSets'] if r['Name'] == 'api.prod.example.com.'][0]\ndns.change_resource_record_sets(HostedZoneId=zone, ChangeBatch={'Changes': [{'Action': 'DELETE', 'ResourceRecordSet': record}]})",
    ),
    (
        "s3_object",
        "boto('s3').put_object(Bucket='state', Key='clusters/prod.example.com/cluster-completed.spec', Body=b'mine')",
    ),
];

/// Each change from outside shows, at the object it was made to, and is undone. Hooks show on demand only.
async fn is_mended(simulator: &Simulator, cluster: &mut InCluster, wanted: &[Cloud]) {
    for (kind, change) in DRIFT {
        simulator.run_python(REGION, change);
        cluster.refresh = kind == "autoscaling_lifecycle_hook";
        let plan = cluster.run_until_converged(wanted).await;
        cluster.refresh = false;
        let kinds: BTreeSet<&str> = plan.steps.keys().map(engine::Id::kind).collect();
        assert!(kinds.contains(kind), "{change}: {}", show_plan(&plan));
        assert!(plan.steps.len() <= 3, "{change}: {}", show_plan(&plan));
    }
}

/// Of a launch template the newest ten versions stay and those that an instance was launched from; node
/// configurations that no version names any more go with the others.
#[tokio::test]
async fn old_versions_of_a_launch_template_go_and_used_ones_stay() {
    let simulator = Simulator::start_simulator();
    let cluster = InCluster::new(&simulator).await;
    let spec = full_spec(&cluster.facts, |_| {});
    for number in 1..=20 {
        if number == 15 {
            // A version that stays is part of a successful answer; its configuration must stay too.
            let stays = "<DeleteLaunchTemplateVersionsResponse><unsuccessfullyDeletedLaunchTemplateVersionSet><item>\
                <versionNumber>2</versionNumber><responseError><code>unexpectedError</code><message>busy</message></responseError>\
                </item></unsuccessfullyDeletedLaunchTemplateVersionSet></DeleteLaunchTemplateVersionsResponse>";
            simulator.set_faults(&serde_json::json!([{
                "operation": "DeleteLaunchTemplateVersions", "status": 200, "answer": stays,
            }]));
        }
        update_to_version(&cluster, &spec, number).await;
        if number == 15 {
            let kept = cluster.store.list("prod.example.com/igconfig/", None).await;
            assert_eq!(kept.expect("a list").len(), 15);
        }
    }
    let left = simulator.run_python(
        REGION,
        "print(*sorted(v['VersionNumber'] for v in boto('ec2').describe_launch_template_versions(LaunchTemplateName='nodes.prod.example.com')['LaunchTemplateVersions']))",
    );
    // Version 20 was the last to look back: it kept ten, and 1, from which the instance came.
    assert_eq!(left, "1 11 12 13 14 15 16 17 18 19 20");
    let configurations = cluster.store.list("prod.example.com/igconfig/", None).await;
    let configurations = configurations.expect("a list");
    let named: Vec<String> = left
        .split(' ')
        .map(|number| format!("{:064x}", number.parse::<u32>().expect("a number")))
        .collect();
    assert_eq!(configurations.len(), named.len());
    for (entry, digest) in configurations.iter().zip(&named) {
        assert!(entry.key.contains(digest), "{}", entry.key);
    }
    // More than the 200 that AWS deletes in one call.
    simulator.run_python(
        REGION,
        "for _ in range(214): boto('ec2').create_launch_template_version(LaunchTemplateName='nodes.prod.example.com', SourceVersion='20', LaunchTemplateData={'EbsOptimized': False})",
    );
    update_to_version(&cluster, &spec, 235).await;
    let left = simulator.run_python(
        REGION,
        "print(len(list(boto('ec2').get_paginator('describe_launch_template_versions').paginate(LaunchTemplateName='nodes.prod.example.com').search('LaunchTemplateVersions[]'))))",
    );
    // Ten, 1, and 20, which the group named until then.
    assert!(["11", "12"].contains(&&*left), "{left}");
}

/// Gives the group user data that nobody had before, with the node configuration that it names.
async fn update_to_version(cluster: &InCluster, spec: &FullSpec, number: u32) {
    let digest = format!("{number:064x}");
    let user_data = [(
        "nodes".to_owned(),
        Text::literal(format!("config={digest}")),
    )];
    let configuration = S3Object {
        key: format!("igconfig/node/nodes/nodeupconfig-{digest}.yaml"),
        content: ObjectContent::Text("a configuration".into()),
    };
    let group = Id::new("autoscaling_group", "nodes.prod.example.com");
    let object = Cloud::from(configuration.clone()).id();
    let all = objects::desired_objects(spec, &user_data.into(), vec![configuration]);
    let range = Id::new("vpc_ipv4_cidr_block_association", "10.1.0.0/16");
    let wanted = dependency_closure(&all, &[group, range, object]);
    let report = cluster.run_update(&wanted).await;
    assert!(report.is_complete(), "{:#?}", report.failed);
    cluster.next_generation();
}

/// What others put beside and into the cluster's objects is neither seen nor touched.
#[tokio::test]
async fn what_others_add_is_left_alone() {
    let simulator = Simulator::start_simulator();
    let cluster = InCluster::new(&simulator).await;
    let wanted = desired_objects(
        &full_spec(&cluster.facts, |_| {}),
        store_objects("completed: 1\n"),
    );
    cluster.run_until_converged(&wanted).await;
    simulator.run_python(
        REGION,
        r"
ec2 = boto('ec2')
owned = [{'Key': 'kubernetes.io/cluster/prod.example.com', 'Value': 'owned'}]
def of(kind, name=None): return [{'ResourceType': kind, 'Tags': owned + ([{'Key': 'Name', 'Value': name}] if name else [])}]
vpc = ec2.describe_vpcs(Filters=[{'Name': 'tag:Name', 'Values': ['prod.example.com']}])['Vpcs'][0]['VpcId']
nodes = ec2.describe_security_groups(Filters=[{'Name': 'group-name', 'Values': ['nodes.prod.example.com']}])['SecurityGroups'][0]['GroupId']
# The cloud controller's: a group for a Service, a rule that lets it in, a route to a node's pods.
group = ec2.create_security_group(GroupName='k8s-elb-a1', Description='x', VpcId=vpc, TagSpecifications=of('security-group'))['GroupId']
ec2.authorize_security_group_ingress(GroupId=nodes, IpPermissions=[{'IpProtocol': '-1', 'UserIdGroupPairs': [{'GroupId': group}]}])
table = ec2.describe_route_tables(Filters=[{'Name': 'tag:Name', 'Values': ['prod.example.com']}])['RouteTables'][0]['RouteTableId']
instance = ec2.describe_instances(Filters=[{'Name': 'instance-state-name', 'Values': ['running']}])['Reservations'][0]['Instances'][0]['InstanceId']
ec2.create_route(RouteTableId=table, DestinationCidrBlock='100.96.1.0/24', InstanceId=instance)
# The volume of a pod.
ec2.create_volume(AvailabilityZone='eu-west-1a', Size=1, TagSpecifications=of('volume', 'prod.example.com-dynamic-pvc-1'))
# A node configuration that a machine still names, a backup, a record of the user's.
s3 = boto('s3')
base = 'clusters/prod.example.com/'
for key in ('igconfig/node/nodes/nodeupconfig-' + 64 * 'a' + '.yaml', 'backups/etcd/main/1', 'config', 'pki/private/x'):
    s3.put_object(Bucket='state', Key=base + key, Body=b'x')
dns = boto('route53')
zone = dns.list_hosted_zones()['HostedZones'][0]['Id']
dns.change_resource_record_sets(HostedZoneId=zone, ChangeBatch={'Changes': [{'Action': 'CREATE', 'ResourceRecordSet': {'Name': 'shop.prod.example.com', 'Type': 'A', 'TTL': 60, 'ResourceRecords': [{'Value': '192.0.2.1'}]}}]})
# The values of a record whose values are not ours.
dns.change_resource_record_sets(HostedZoneId=zone, ChangeBatch={'Changes': [{'Action': 'UPSERT', 'ResourceRecordSet': {'Name': 'api.internal.prod.example.com', 'Type': 'A', 'TTL': 30, 'ResourceRecords': [{'Value': '10.0.0.1'}]}}]})
# The autoscaler's decision.
boto('autoscaling').set_desired_capacity(AutoScalingGroupName='nodes.prod.example.com', DesiredCapacity=2)
",
    );
    let before = simulator.list_resources(REGION);
    cluster.is_settled(&wanted).await;
    cluster.run_until_converged(&wanted).await;
    assert_eq!(before, simulator.list_resources(REGION));
}

/// A route table can have one endpoint for S3: the user's stays, and the cluster gets none.
#[tokio::test]
async fn an_endpoint_of_the_users_stands_for_the_clusters() {
    let simulator = Simulator::start_simulator();
    let cluster = InCluster::new(&simulator).await;
    let all = desired_objects(
        &full_spec(&cluster.facts, |_| {}),
        store_objects("completed: 1\n"),
    );
    let endpoint = Id::new("vpc_endpoint", "s3.prod.example.com");
    let with = dependency_closure(&all, std::slice::from_ref(&endpoint));
    let without: Vec<Cloud> = with
        .iter()
        .filter(|one| one.id() != endpoint)
        .cloned()
        .collect();
    cluster.run_until_converged(&without).await;
    simulator.run_python(
        REGION,
        "ec2 = boto('ec2')\ntable = ec2.describe_route_tables(Filters=[{'Name': 'tag:kubernetes.io/kops/role', 'Values': ['private-*']}])['RouteTables'][0]\nec2.create_vpc_endpoint(VpcId=table['VpcId'], ServiceName='com.amazonaws.eu-west-1.s3', VpcEndpointType='Gateway', RouteTableIds=[table['RouteTableId']])",
    );
    cluster.is_settled(&with).await;
    cluster.is_settled(&without).await;
}
