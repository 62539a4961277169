//! A cluster's groups and instances in one sweep, their consoles, and why a group lacks instances.

use crate::simulator::Simulator;
use aws_cloud::fleet::{last_launch_failure, observe_fleet, terminate_warm_instance};
use aws_cloud::{CloudClients, console_output};
use fleet::up_to_date;
use serde_json::json;

const REGION: &str = "eu-west-1";
const CLUSTER: &str = "a.example.com";

/// Three groups of the cluster, one by a version's number with two instances, one by `$Latest` and one with a mixed instances
/// policy by `$Latest` with one each, each launched from version 1; a group of another cluster; an instance of the cluster in
/// no group. Prints the ids of all five.
const MADE: &str = r"
ec2, scaling = boto('ec2'), boto('autoscaling')
vpc = ec2.create_vpc(CidrBlock='10.0.0.0/16')['Vpc']['VpcId']
subnet = ec2.create_subnet(VpcId=vpc, CidrBlock='10.0.1.0/24', AvailabilityZone='eu-west-1b')['Subnet']['SubnetId']
image = ec2.describe_images()['Images'][0]['ImageId']
data = {'ImageId': image, 'InstanceType': 't3.medium'}
def group(name, cluster, ig, version, size, mixed=False):
    ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)
    tags = {'kubernetes.io/cluster/' + cluster: 'owned', 'kops.k8s.io/instancegroup': ig}
    launched = {'LaunchTemplateName': name, 'Version': version}
    policy = {'LaunchTemplate': {'LaunchTemplateSpecification': launched, 'Overrides': [{'InstanceType': 'm5.large'}]}}
    launched = {'MixedInstancesPolicy': policy} if mixed else {'LaunchTemplate': launched}
    scaling.create_auto_scaling_group(AutoScalingGroupName=name, MinSize=1, MaxSize=3, DesiredCapacity=size, VPCZoneIdentifier=subnet,
        **launched,
        Tags=[{'Key': k, 'Value': v, 'PropagateAtLaunch': True, 'ResourceId': name, 'ResourceType': 'auto-scaling-group'} for k, v in tags.items()])
    ec2.create_launch_template_version(LaunchTemplateName=name, LaunchTemplateData=data)
    found = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])['AutoScalingGroups'][0]['Instances']
    return sorted(one['InstanceId'] for one in found)
exact = group('nodes.a', 'a.example.com', 'nodes', '1', 2)
latest = group('old.a', 'a.example.com', 'old', '$Latest', 1)
mixed = group('mixed.a', 'a.example.com', 'mixed', '$Latest', 1, mixed=True)
group('nodes.b', 'b.example.com', 'nodes', '1', 1)
tags = [{'ResourceType': 'instance', 'Tags': [{'Key': 'kubernetes.io/cluster/a.example.com', 'Value': 'owned'}]}]
nat = ec2.run_instances(ImageId=image, InstanceType='t3.nano', SubnetId=subnet, MinCount=1, MaxCount=1, TagSpecifications=tags)
print(*exact, *latest, nat['Instances'][0]['InstanceId'], *mixed)
";

struct MadeFleet {
    simulator: Simulator,
    clients: CloudClients,
    ids: Vec<String>,
}

async fn made_fleet() -> MadeFleet {
    let simulator = Simulator::with_machines();
    let clients = simulator.cloud_clients(REGION).await;
    let ids = simulator.run_python(REGION, MADE);
    MadeFleet {
        ids: ids.split_whitespace().map(str::to_owned).collect(),
        clients,
        simulator,
    }
}

#[tokio::test]
async fn every_instance_of_the_clusters_groups_is_found_with_what_it_was_launched_from() {
    let made = made_fleet().await;
    made.simulator
        .report_hosts(&json!({"instances": {&made.ids[0]: "running"}}));
    made.simulator.forget_calls();
    let fleet = observe_fleet(&made.clients, CLUSTER)
        .await
        .expect("a fleet");
    let groups: Vec<_> = fleet
        .scaling_groups
        .iter()
        .map(|one| {
            (
                one.name.as_str(),
                one.instance_group.as_deref(),
                one.min,
                one.desired,
                one.max,
            )
        })
        .collect();
    let expected = [
        ("mixed.a", Some("mixed"), 1, 1, 3),
        ("nodes.a", Some("nodes"), 1, 2, 3),
        ("old.a", Some("old"), 1, 1, 3),
    ];
    assert_eq!(groups, expected);
    let mut seen: Vec<_> = fleet
        .instances
        .iter()
        .map(|one| {
            (
                one.id.as_str(),
                one.instance_group.as_deref(),
                one.state.as_str(),
                up_to_date(one, &fleet.scaling_groups).is_current(),
            )
        })
        .collect();
    // Of the groups that follow the newest version, the instances are behind.
    let mut expected = [
        (made.ids[0].as_str(), Some("nodes"), "running", Some(true)),
        (made.ids[1].as_str(), Some("nodes"), "pending", Some(true)),
        (made.ids[2].as_str(), Some("old"), "pending", Some(false)),
        (made.ids[4].as_str(), Some("mixed"), "pending", Some(false)),
    ];
    seen.sort_unstable();
    expected.sort_unstable();
    assert_eq!(seen, expected);
    let first = fleet.instances.iter().find(|one| one.id == made.ids[0]);
    let first = first.expect("it");
    assert_eq!(
        (first.zone.as_str(), first.machine_type.as_str()),
        ("eu-west-1b", "t3.medium")
    );
    assert!(first.launched.is_some() && first.private_ip.is_some());
    // Groups, instances, and the templates of the one that says `$Latest`.
    assert_eq!(made.simulator.calls_by_operation()["aws"], json!(3));
}

/// Of a pool the instances are found, as what they are, and end by themselves; one that has come into service meanwhile is left alone.
#[tokio::test]
async fn instances_of_a_warm_pool_are_found_and_ended_while_they_are_there() {
    let made = made_fleet().await;
    let fill = "scaling = boto('autoscaling')\nscaling.put_warm_pool(AutoScalingGroupName='nodes.a', MaxGroupPreparedCapacity=4)\nprint(*[one['InstanceId'] for one in scaling.describe_warm_pool(AutoScalingGroupName='nodes.a')['Instances']])";
    let warm = made.simulator.run_python(REGION, fill);
    let warm: Vec<&str> = warm.split_whitespace().collect();
    let both = [warm[0], warm[1]];
    for state in ["running", "stopped"] {
        let report = json!({"instances": {both[0]: state, both[1]: state}});
        made.simulator.report_hosts(&report);
    }
    made.simulator.forget_calls();
    let fleet = observe_fleet(&made.clients, CLUSTER)
        .await
        .expect("a fleet");
    // One call more, for the one group with a pool.
    assert_eq!(made.simulator.calls_by_operation()["aws"], json!(4));
    for id in both {
        let found = fleet.instances.iter().find(|one| one.id == id);
        let found = found.expect("it");
        assert_eq!(found.lifecycle.as_deref(), Some("Warmed:Stopped"));
        assert_eq!(found.scaling_group.as_deref(), Some("nodes.a"));
        assert_eq!(found.state, "stopped");
        assert!(found.is_in_warm_pool() && !found.is_leaving());
        let current = up_to_date(found, &fleet.scaling_groups).is_current();
        assert_eq!(current, Some(true));
    }
    let grow = "boto('autoscaling').set_desired_capacity(AutoScalingGroupName='nodes.a', DesiredCapacity=3)";
    made.simulator.run_python(REGION, grow);
    for id in both {
        terminate_warm_instance(&made.clients, id)
            .await
            .expect("an answer");
    }
    let fleet = observe_fleet(&made.clients, CLUSTER)
        .await
        .expect("a fleet");
    let leaving = both.map(|id| {
        let found = fleet.instances.iter().find(|one| one.id == id);
        found.is_none_or(fleet::Instance::is_leaving)
    });
    assert_eq!(leaving, [false, true]);
}

#[tokio::test]
async fn a_console_is_what_the_machine_wrote_and_nothing_before() {
    let made = made_fleet().await;
    let id = &made.ids[0];
    assert_eq!(
        console_output(&made.clients, id).await.expect("an answer"),
        None
    );
    let report = json!({"instances": {id: "running"}, "consoles": {id: "aGVsbG8K"}});
    made.simulator.report_hosts(&report);
    let heard = console_output(&made.clients, id).await.expect("an answer");
    let heard = heard.expect("a console");
    assert_eq!(heard.text, "hello\n");
    assert!(heard.at.is_some());
    // Without Nitro there is no newest output: the one that EC2 took by itself will do.
    made.simulator.set_faults(&json!([
        {"service": "ec2", "operation": "GetConsoleOutput", "times": 1, "code": "UnsupportedOperation", "status": 400}
    ]));
    let heard = console_output(&made.clients, id).await.expect("an answer");
    assert_eq!(heard.expect("a console").text, "hello\n");
}

#[tokio::test]
async fn launches_that_went_well_are_no_failure() {
    let made = made_fleet().await;
    for id in &made.ids {
        made.simulator
            .report_hosts(&json!({"instances": {id: "running"}}));
    }
    let failure = last_launch_failure(&made.clients, "nodes.a").await;
    assert_eq!(failure.expect("an answer"), None);
}
