//! What AWS refuses, loses or breaks off.

use crate::cluster::{InCluster, run};
use crate::simulator::Simulator;
use crate::spec::{REGION, dependency_closure, desired_objects, full_spec, store_objects};
use engine::{Class, Failure, Id, World};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// How many of each kind and name there are: ids differ from run to run.
fn count_resources(simulator: &Simulator) -> BTreeMap<String, usize> {
    let mut census = BTreeMap::new();
    for line in simulator.list_resources(REGION) {
        let words: Vec<&str> = line.split_whitespace().collect();
        // Names of instances and interfaces carry ids; what exists of them is a matter of moments.
        let (service, kind) = (words[0], words[1]);
        let name = match kind {
            "network-interface" | "instance" => continue,
            "elastic-ip" => "",
            _ => words.get(3).copied().unwrap_or_default(),
        };
        let parts = name.split(|char: char| !char.is_ascii_alphanumeric());
        let is_id =
            |part: &&str| part.len() > 15 && part.chars().all(|char| char.is_ascii_hexdigit());
        let parts: Vec<&str> = parts.filter(|part| !is_id(part)).collect();
        let name = parts.join(" ");
        *census
            .entry(format!("{service} {kind} {name}"))
            .or_default() += 1;
    }
    census
}

/// Every creating operation once takes effect without an answer: what it made is found, and nothing is made twice.
#[tokio::test]
async fn creations_whose_answers_get_lost_are_not_made_twice() {
    let simulator = Simulator::start_simulator();
    let cluster = InCluster::new(&simulator).await;
    let wanted = desired_objects(
        &full_spec(&cluster.facts, |_| {}),
        store_objects("completed: 1\n"),
    );

    let operations = [
        "CreateVpc",
        "CreateSubnet",
        "CreateDhcpOptions",
        "CreateInternetGateway",
        "AttachInternetGateway",
        "CreateRouteTable",
        "CreateVpcEndpoint",
        "CreateRoute",
        "AssociateRouteTable",
        "AllocateAddress",
        "CreateNatGateway",
        "CreateSecurityGroup",
        "AuthorizeSecurityGroupIngress",
        "AuthorizeSecurityGroupEgress",
        "CreateVolume",
        "ImportKeyPair",
        "CreateLaunchTemplate",
        "CreateAutoScalingGroup",
        "PutLifecycleHook",
        "PutWarmPool",
        "CreateLoadBalancer",
        "CreateTargetGroup",
        "CreateListener",
        "CreateRole",
        "PutRolePolicy",
        "CreateInstanceProfile",
        "AddRoleToInstanceProfile",
        "AttachRolePolicy",
        "CreateQueue",
        "PutRule",
        "PutTargets",
        "ChangeResourceRecordSets",
        "PutObject",
        "AssociateVpcCidrBlock",
        "AssociateDhcpOptions",
    ];
    let lose = |operation: &&str| json!({"operation": operation, "code": "kill-connection", "after": true});
    let faults: Vec<Value> = operations.iter().map(lose).collect();
    simulator.set_faults(&Value::from(faults));
    cluster.run_until_converged(&wanted).await;
    let lossy = count_resources(&simulator);

    cluster.run_until_converged(&[]).await;
    cluster.run_until_converged(&wanted).await;
    assert_eq!(lossy, count_resources(&simulator));
}

/// A run that dies at any moment is finished by the next.
#[tokio::test]
async fn a_run_that_dies_is_finished_by_the_next() {
    let simulator = Simulator::start_simulator();
    let cluster = InCluster::new(&simulator).await;
    let wanted = desired_objects(
        &full_spec(&cluster.facts, |_| {}),
        store_objects("completed: 1\n"),
    );

    for milliseconds in [150, 400, 300, 700, 500, 900, 1300] {
        let (plan, seen, world) = cluster.plan_update(&wanted).await;
        let all = run(&world, &plan, &seen);
        let _ = tokio::time::timeout(Duration::from_millis(milliseconds), all).await;
        // Calls that were under way may still take effect; a journal would say so.
        simulator.wait_until_idle();
    }
    cluster.run_until_converged(&wanted).await;
    let patched = count_resources(&simulator);

    for milliseconds in [200, 500, 900] {
        let (plan, seen, world) = cluster.plan_update(&[]).await;
        let all = run(&world, &plan, &seen);
        let _ = tokio::time::timeout(Duration::from_millis(milliseconds), all).await;
        simulator.wait_until_idle();
    }
    cluster.run_until_converged(&[]).await;
    cluster.run_until_converged(&wanted).await;
    assert_eq!(patched, count_resources(&simulator));
}

/// AWS holds addresses and rules for a while after what used them is gone, and calls the first a lack of permission.
#[tokio::test]
async fn what_aws_still_holds_is_waited_for() {
    let simulator = Simulator::start_simulator();
    let cluster = InCluster::new(&simulator).await;
    let wanted = desired_objects(
        &full_spec(&cluster.facts, |_| {}),
        store_objects("completed: 1\n"),
    );
    cluster.run_until_converged(&wanted).await;
    simulator.set_faults(&json!([
        {
            "operation": "ReleaseAddress", "code": "AuthFailure", "status": 400, "times": 2,
            "message": "You do not have permission to access the specified resource.",
        },
        {
            "operation": "DeleteRule", "code": "ValidationException", "status": 400, "times": 2,
            "message": "Rule can't be deleted since it has targets.",
        },
    ]));
    cluster.run_until_converged(&[]).await;
    let left = simulator.faults_left();
    assert!(
        left.as_array()
            .is_some_and(|left| left.iter().all(|one| one["times"] == 0)),
        "{left}"
    );
}

/// Batches answer with success and name in it what failed: a target that stays, a version that stays.
#[tokio::test]
async fn what_failed_in_a_batch_is_a_failure() {
    let simulator = Simulator::start_simulator();
    let cluster = InCluster::new(&simulator).await;
    let spec = full_spec(&cluster.facts, |_| {});
    let wanted = desired_objects(&spec, store_objects("completed: 1\n"));
    cluster.run_until_converged(&wanted).await;

    let failed = |code: &str, message: &str| {
        let entry = json!({"TargetId": "1", "ErrorCode": code, "ErrorMessage": message});
        let answer = json!({"FailedEntryCount": 1, "FailedEntries": [entry]}).to_string();
        json!({"operation": "RemoveTargets", "status": 200, "answer": answer, "times": 99})
    };
    simulator.set_faults(&json!([failed(
        "ManagedRuleException",
        "this rule is managed"
    )]));
    let report = cluster.run_update(&[]).await;
    let target = report
        .failed
        .iter()
        .find(|(id, _)| id.kind() == "cloudwatch_event_target");
    let (_, failure) = target.expect("a failed target");
    assert_eq!(failure.call, "events:RemoveTargets");
    assert_eq!(failure.code, "ManagedRuleException");
    assert_eq!(failure.message, "this rule is managed");

    // What goes by itself after a while is tried again, and what is gone is gone.
    let busy = json!({"FailedEntryCount": 1, "FailedEntries": [
        {"TargetId": "1", "ErrorCode": "ConcurrentModificationException", "ErrorMessage": "busy"},
    ]});
    simulator.set_faults(&json!([
        {"operation": "RemoveTargets", "status": 200, "answer": busy.to_string(), "times": 1},
    ]));
    cluster.run_until_converged(&[]).await;
    cluster.run_until_converged(&wanted).await;
}

/// EC2, load balancing, Auto Scaling and Route 53 see what was made a moment ago late: each is waited for, at the first apply and
/// at the changes after it. One second here is ten for the engine, so AWS lags by 20 seconds.
#[tokio::test]
async fn what_is_not_seen_yet_is_waited_for() {
    let simulator = Simulator::start_simulator();
    let mut cluster = InCluster::new(&simulator).await;
    cluster.speed = 10;
    simulator.set_lag(2000);
    let spec = full_spec(&cluster.facts, |_| {});
    cluster
        .run_until_converged(&desired_objects(&spec, store_objects("completed: 1\n")))
        .await;
    let changed = full_spec(&cluster.facts, |text| {
        *text = text
            .replace("machineType: m5d.large", "machineType: m5.large")
            .replace("metadata: {name: bastions,", "metadata: {name: jump-hosts,")
            .replace(
                "additionalNetworkCIDRs: [10.1.0.0/16]",
                "additionalNetworkCIDRs: [10.1.0.0/16, 10.2.0.0/16]",
            )
            .replace(
                "  - {name: utility-a,",
                "  - {name: d, zone: eu-west-1a, type: Private, cidr: 10.2.32.0/19}\n  - {name: utility-a,",
            );
    });
    cluster
        .run_until_converged(&desired_objects(&changed, store_objects("completed: 2\n")))
        .await;
    cluster.run_until_converged(&[]).await;
}

#[expect(clippy::too_many_lines, reason = "a table of failures")]
#[tokio::test]
async fn failures_say_what_they_are_and_what_to_do() {
    let simulator = Simulator::start_simulator();
    let cluster = InCluster::new(&simulator).await;
    let wanted = desired_objects(
        &full_spec(&cluster.facts, |_| {}),
        store_objects("completed: 1\n"),
    );
    let world = cluster.aws_world(&wanted);
    let observe = async |service: &str, operation: &str, code: &str, status: u16| -> Failure {
        // Calls of the sweep before, which ended with its first failure, must not meet this one's.
        simulator.wait_until_idle();
        simulator.set_faults(&json!([{
            "service": service, "operation": operation, "code": code, "status": status,
            "message": "No. Encoded authorization failure message: AQ0xyz",
        }]));
        world.observe().await.expect_err("a failure")
    };

    for (service, operation, code, call) in [
        (
            "ec2",
            "DescribeSubnets",
            "UnauthorizedOperation",
            "ec2:DescribeSubnets",
        ),
        (
            "autoscaling",
            "DescribeAutoScalingGroups",
            "AccessDenied",
            "autoscaling:DescribeAutoScalingGroups",
        ),
        (
            "elbv2",
            "DescribeLoadBalancers",
            "AccessDenied",
            "elasticloadbalancing:DescribeLoadBalancers",
        ),
        ("iam", "GetRole", "AccessDenied", "iam:GetRole"),
        (
            "events",
            "ListRules",
            "AccessDeniedException",
            "events:ListRules",
        ),
        (
            "sqs",
            "GetQueueUrl",
            "AccessDeniedException",
            "sqs:GetQueueUrl",
        ),
        (
            "route53",
            "ListResourceRecordSets",
            "AccessDenied",
            "route53:ListResourceRecordSets",
        ),
        ("s3", "ListObjectsV2", "AccessDenied", "s3:ListBucket"),
    ] {
        let failure = observe(service, operation, code, 403).await;
        assert_eq!(failure.class, Class::Denied, "{failure:?}");
        assert_eq!(failure.call, call);
        assert!(!failure.message.contains("AQ0xyz"), "{failure:?}");
        let said = failure.hint.clone().unwrap_or_default() + &failure.message;
        assert!(said.contains(call), "{failure:?}");
    }
    // The SDK repeats what is throttled or broken by itself, and the sweep does not notice.
    simulator.set_faults(&json!([
        {"service": "ec2", "operation": "DescribeVpcs", "code": "RequestLimitExceeded", "status": 503},
        {"service": "iam", "operation": "GetRole", "code": "Throttling", "status": 400},
        {"service": "sqs", "operation": "GetQueueUrl", "code": "InternalFailure", "status": 500},
        {"service": "elbv2", "operation": "DescribeTargetGroups", "code": "kill-connection"},
    ]));
    world.observe().await.expect("a sweep");

    simulator.set_faults(&json!([{"service": "ec2", "operation": "CreateVpc", "code": "VpcLimitExceeded", "status": 400}]));
    let report = cluster.run_update(&wanted).await;
    let (id, failure) = &report.failed[0];
    assert_eq!(id.to_string(), "vpc/prod.example.com");
    assert_eq!(failure.class, Class::Quota);
    let hint = failure.hint.as_deref().unwrap_or_default();
    assert!(hint.contains("VPCs per Region"), "{hint}");
}

/// Of every class one answer of AWS, through the SDK: what the engine is told, and what the user reads.
#[expect(clippy::too_many_lines, reason = "a table of failures")]
#[tokio::test]
async fn every_class_of_failure_has_its_next_step() {
    const WHO: &str = "arn:aws:sts::123456789012:assumed-role/deploy/jo";
    let simulator = Simulator::start_simulator();
    let cluster = InCluster::new(&simulator).await;
    let wanted = desired_objects(
        &full_spec(&cluster.facts, |_| {}),
        store_objects("completed: 1\n"),
    );
    let world = cluster.aws_world(&wanted);
    let denied = |end: &str| {
        format!(
            "You are not authorized to perform this operation. User: {WHO} is not authorized to perform: \
             ec2:DescribeVpcs on resource: *{end}. Encoded authorization failure message: AQ0xyz"
        )
    };
    for (code, message, status, class, said) in [
        (
            "UnauthorizedOperation",
            denied(" because no identity-based policy allows the ec2:DescribeVpcs action"),
            403,
            Class::Denied,
            "no identity-based policy of arn:aws:sts::123456789012:assumed-role/deploy/jo allows ec2:DescribeVpcs on *",
        ),
        (
            "UnauthorizedOperation",
            denied(" with an explicit deny in a service control policy"),
            403,
            Class::Denied,
            "a service control policy of your organization forbids ec2:DescribeVpcs on *",
        ),
        (
            "UnauthorizedOperation",
            "No. Encoded authorization failure message: AQ0xyz".to_owned(),
            403,
            Class::Denied,
            "decode-authorization-message --encoded-message AQ0xyz",
        ),
        (
            "AuthFailure",
            "AWS was not able to validate the provided access credentials".to_owned(),
            401,
            Class::Denied,
            "AWS_PROFILE",
        ),
        (
            "RequestLimitExceeded",
            "Request limit exceeded.".to_owned(),
            503,
            Class::Throttled,
            "EC2 takes no more calls",
        ),
        (
            "VpcLimitExceeded",
            "The maximum number of VPCs has been reached.".to_owned(),
            400,
            Class::Quota,
            "\"VPCs per Region\" (L-F678F1CE)",
        ),
        (
            "DependencyViolation",
            "The vpc has dependencies and cannot be deleted.".to_owned(),
            400,
            Class::Blocked,
            "remove what uses it",
        ),
        (
            "Gateway.NotAttached",
            "The gateway is not attached.".to_owned(),
            400,
            Class::NotYet,
            "goes on where it ended",
        ),
        (
            "InvalidGroup.Duplicate",
            "The security group exists.".to_owned(),
            400,
            Class::Exists,
            "the name is taken",
        ),
        (
            "InvalidVpcID.NotFound",
            "The vpc does not exist.".to_owned(),
            400,
            // To a sweep, what went since it was listed will not be listed again.
            Class::NotYet,
            "run this again",
        ),
        (
            "InvalidParameterValue",
            "Value (x) is invalid.".to_owned(),
            400,
            Class::Invalid,
            "correct what its message names",
        ),
        (
            "InternalError",
            "An internal error has occurred".to_owned(),
            500,
            Class::Unknown,
            "makes nothing twice",
        ),
    ] {
        // The SDK repeats by itself what may go away.
        simulator.set_faults(&json!([{
            "service": "ec2", "operation": "DescribeVpcs", "times": 8, "code": code, "message": message, "status": status,
        }]));
        let failure = world.observe().await.expect_err("a failure");
        assert_eq!(failure.class, class, "{failure:?}");
        assert_eq!(
            (failure.call.as_str(), failure.code.as_str()),
            ("ec2:DescribeVpcs", code)
        );
        let hint = failure.hint.clone().unwrap_or_default();
        assert!(hint.contains(said), "{code}: {hint}");
        assert!(!failure.message.contains("AQ0xyz"), "{failure:?}");
    }
}

/// A deletion that somebody else's instance blocks says in the end which. What a network plugin left behind is deleted.
#[tokio::test]
async fn what_is_in_the_way_of_a_deletion_is_named() {
    let simulator = Simulator::start_simulator();
    let cluster = InCluster::new(&simulator).await;
    let all = desired_objects(&full_spec(&cluster.facts, |_| {}), Vec::new());
    let subnet = Id::new("subnet", "a.prod.example.com");
    let group = Id::new("security_group", "nodes.prod.example.com");
    let wanted = dependency_closure(&all, &[subnet.clone(), group.clone()]);
    cluster.run_until_converged(&wanted).await;
    let interface = simulator.run_python(
        REGION,
        r"
ec2 = boto('ec2')
subnet = ec2.describe_subnets(Filters=[{'Name': 'tag:Name', 'Values': ['a.prod.example.com']}])['Subnets'][0]['SubnetId']
group = ec2.describe_security_groups(Filters=[{'Name': 'group-name', 'Values': ['nodes.prod.example.com']}])['SecurityGroups'][0]['GroupId']
tags = [{'ResourceType': 'network-interface', 'Tags': [{'Key': 'kubernetes.io/cluster/prod.example.com', 'Value': 'owned'}]}]
ec2.create_network_interface(SubnetId=subnet, Groups=[group], Description='left', TagSpecifications=tags)
print(ec2.create_network_interface(SubnetId=subnet, Groups=[group], Description='a database')['NetworkInterface']['NetworkInterfaceId'])
",
    );
    let world = cluster.aws_world(&[]);
    let seen = world.observe().await.expect("a sweep");
    for id in [subnet, group] {
        let have = seen.find(&id).expect("the object");
        let mut said = String::new();
        for _ in 0..6 {
            let failure = world
                .remove(have)
                .await
                .expect_err("something is in the way");
            assert_eq!(failure.class, Class::Blocked);
            said = failure.message;
        }
        assert!(
            said.ends_with(&format!("In the way: {interface} of a database")),
            "{said}"
        );
    }
    let count = "print(len(boto('ec2').describe_network_interfaces()['NetworkInterfaces']))";
    assert_eq!(simulator.run_python(REGION, count).trim(), "1");
}

/// Names that are taken by somebody else's objects are said to be, and those objects are not touched.
#[tokio::test]
async fn what_is_not_ours_is_named_and_left_alone() {
    let simulator = Simulator::start_simulator();
    let cluster = InCluster::new(&simulator).await;
    simulator.run_python(
        REGION,
        "boto('iam').create_role(RoleName='nodes.prod.example.com', AssumeRolePolicyDocument='{\"Version\": \"2012-10-17\", \"Statement\": [{\"Effect\": \"Allow\", \"Action\": \"sts:AssumeRole\", \"Principal\": {\"Service\": \"lambda.amazonaws.com\"}}]}')",
    );
    let wanted = desired_objects(
        &full_spec(&cluster.facts, |_| {}),
        store_objects("completed: 1\n"),
    );
    let role = wanted.iter().find(|one| {
        matches!(one, cloud::Cloud::IamRole(role) if role.role_name == "nodes.prod.example.com")
    });
    let only = vec![role.expect("a role").clone()];
    let report = cluster.run_update(&only).await;
    let (_, failure) = &report.failed[0];
    assert_eq!(failure.class, Class::Invalid);
    assert!(
        failure
            .message
            .contains("nodes.prod.example.com exists and does not belong to"),
        "{failure:?}"
    );
    cluster.run_until_converged(&[]).await;
    let left = simulator.list_resources(REGION);
    assert!(
        left.iter()
            .any(|line| line.contains("nodes.prod.example.com"))
    );
}
