"""`--machines`: instances, volumes, consoles and targets are as they are reported to be."""

from __future__ import annotations

import urllib.error

import pytest

from . import machines, make
from .errors import code_of

aws = machines.aws


@pytest.fixture
def subnet(aws):
    return make.subnets(aws, make.vpc(aws), "a")[0]


def launch(aws, subnet, **more):
    settings = {"ImageId": make.image(aws), "InstanceType": "t3.medium", "SubnetId": subnet, **more}
    return aws.ec2.run_instances(MinCount=1, MaxCount=1, **settings)["Instances"][0]["InstanceId"]


def running(aws, subnet, **more):
    instance = launch(aws, subnet, **more)
    aws.report(instances={instance: "running"})
    return instance


def volume(aws, zone="us-east-1a"):
    return aws.ec2.create_volume(Size=2, VolumeType="gp3", AvailabilityZone=zone)["VolumeId"]


def attachment(aws, identity):
    """State of the volume and of its attachment, as EC2 and the world say it."""
    (found,) = aws.ec2.describe_volumes(VolumeIds=[identity])["Volumes"]
    told = next(item for item in aws.world()["volumes"] if item["id"] == identity)["attachment"]
    states = [held["State"] for held in found["Attachments"]]
    assert states == ([told["state"]] if told else [])
    return found["State"], *states


def test_an_instance_shuts_down_until_its_machine_is_gone(aws, subnet):
    instance = running(aws, subnet)
    aws.ec2.terminate_instances(InstanceIds=[instance])
    assert aws.state(instance) == "shutting-down"
    aws.control("POST", "settle")
    assert aws.state(instance) == "shutting-down"
    aws.report(instances={instance: "terminated"})
    assert aws.state(instance) == "terminated"
    aws.ec2.delete_subnet(SubnetId=subnet)


def test_a_late_report_changes_nothing(aws, subnet):
    instance = running(aws, subnet)
    aws.ec2.terminate_instances(InstanceIds=[instance])
    aws.report(instances={instance: "running"})
    assert aws.state(instance) == "shutting-down"
    aws.report(instances={instance: "terminated"})
    aws.report(instances={instance: "running"})
    assert aws.state(instance) == "terminated"


def test_what_does_not_exist_is_said(aws):
    arn = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/x/1"
    report = {"instances": {"i-1": "running"}, "volumes": {"vol-1": "attached"}, "consoles": {"i-2": ""}}
    assert aws.report(**report, targets={arn: {}}) == ["i-1", "vol-1", "i-2", arn]


@pytest.mark.parametrize("report", [{"instanes": {}}, {"instances": {"i": "dead"}}, {"volumes": {"v": "lost"}}])
def test_a_report_has_its_form(aws, report):
    with pytest.raises(urllib.error.HTTPError, match="400"):
        aws.report(**report)


def test_stop_and_start_wait_for_the_machine(aws, subnet):
    instance = running(aws, subnet)
    aws.ec2.stop_instances(InstanceIds=[instance])
    assert aws.state(instance) == "stopping"
    assert code_of(aws.ec2.start_instances, InstanceIds=[instance]) == "IncorrectInstanceState"
    aws.report(instances={instance: "stopped"})
    assert aws.state(instance) == "stopped"
    aws.ec2.start_instances(InstanceIds=[instance])
    assert aws.state(instance) == "pending"
    aws.report(instances={instance: "running"})
    assert aws.state(instance) == "running"


def test_a_machine_that_halts_stops_or_terminates_as_launched(aws, subnet):
    stops, ends = running(aws, subnet), running(aws, subnet, InstanceInitiatedShutdownBehavior="terminate")
    aws.report(instances={stops: "stopped", ends: "stopped"})
    assert (aws.state(stops), aws.state(ends)) == ("stopped", "terminated")


def test_a_volume_is_free_when_the_machine_has_let_go(aws, subnet):
    first, second, identity = running(aws, subnet), running(aws, subnet), volume(aws)
    aws.ec2.attach_volume(VolumeId=identity, InstanceId=first, Device="/dev/xvdu")
    aws.report(volumes={identity: "attached"})
    aws.ec2.detach_volume(VolumeId=identity)
    assert attachment(aws, identity) == ("in-use", "detaching")
    again = {"VolumeId": identity, "InstanceId": second, "Device": "/dev/xvdu"}
    assert code_of(aws.ec2.attach_volume, **again) == "VolumeInUse"
    aws.report(volumes={identity: "detached"})
    assert attachment(aws, identity) == ("available",)
    aws.ec2.attach_volume(**again)
    assert attachment(aws, identity) == ("in-use", "attaching")


def test_a_volume_is_detached_by_force_at_once(aws, subnet):
    instance, identity = running(aws, subnet), volume(aws)
    aws.ec2.attach_volume(VolumeId=identity, InstanceId=instance, Device="/dev/xvdu")
    aws.ec2.detach_volume(VolumeId=identity, Force=True)
    assert attachment(aws, identity) == ("available",)


def test_a_pending_instance_takes_no_volume(aws, subnet):
    early = {"VolumeId": volume(aws), "InstanceId": launch(aws, subnet), "Device": "/dev/xvdu"}
    assert code_of(aws.ec2.attach_volume, **early) == "IncorrectState"


def test_volumes_of_a_dying_instance_are_held_until_it_is_dead(aws, subnet):
    """A volume of its own is free then; one of the launch is deleted with it, if the launch says so."""
    mapping = {"DeviceName": "/dev/xvdb", "Ebs": {"VolumeSize": 3, "DeleteOnTermination": True}}
    instance = running(aws, subnet, BlockDeviceMappings=[mapping])
    (launched,) = [item for item in aws.world()["volumes"] if (item["attachment"] or {}).get("instance") == instance]
    assert (launched["size"], launched["attachment"]["state"]) == (3, "attaching")
    identity = volume(aws)
    aws.ec2.attach_volume(VolumeId=identity, InstanceId=instance, Device="/dev/xvdu")
    aws.report(volumes={identity: "attached", launched["id"]: "attached"})
    aws.ec2.terminate_instances(InstanceIds=[instance])
    assert attachment(aws, identity) == ("in-use", "attached")
    aws.report(instances={instance: "terminated"})
    assert attachment(aws, identity) == ("available",)
    assert launched["id"] not in [item["id"] for item in aws.world()["volumes"]]


@pytest.fixture
def balanced(aws):
    """A balancer with a listener, a target group, and a running instance in it."""
    vpc = make.vpc(aws)
    (subnet,) = make.subnets(aws, vpc, "a")
    arn, listener = machines.balanced(aws, vpc, [subnet])
    instance = running(aws, subnet)
    aws.elbv2.register_targets(TargetGroupArn=arn, Targets=[{"Id": instance}])
    return arn, instance, listener


def health(aws, arn):
    """State and reason of each target, which the world has to agree on."""
    found = aws.elbv2.describe_target_health(TargetGroupArn=arn)["TargetHealthDescriptions"]
    told = next(group for group in aws.world()["target_groups"] if group["arn"] == arn)["targets"]
    assert [target["TargetHealth"]["State"] for target in found] == [target["state"] for target in told]
    return [(target["TargetHealth"]["State"], target["TargetHealth"].get("Reason")) for target in found]


def test_a_target_that_no_listener_leads_to_is_unused(aws, balanced):
    arn, instance, listener = balanced
    aws.report(targets={arn: {f"{instance}:443": "healthy"}})
    aws.elbv2.delete_listener(ListenerArn=listener)
    assert health(aws, arn) == [("unused", "Target.NotInUse")]


def test_a_deregistered_target_drains_for_the_delay_of_its_group(aws, balanced):
    arn, instance, _ = balanced
    attributes = [{"Key": "deregistration_delay.timeout_seconds", "Value": "60"}]
    aws.elbv2.modify_target_group_attributes(TargetGroupArn=arn, Attributes=attributes)
    aws.elbv2.deregister_targets(TargetGroupArn=arn, Targets=[{"Id": instance}])
    assert health(aws, arn) == [("draining", "Target.DeregistrationInProgress")]
    aws.control("POST", "settle")
    aws.pass_seconds(50)
    assert health(aws, arn) == [("draining", "Target.DeregistrationInProgress")]
    aws.pass_seconds(15)
    assert health(aws, arn) == []


def test_a_target_registered_again_is_checked_again(aws, balanced):
    arn, instance, _ = balanced
    aws.report(targets={arn: {f"{instance}:443": "healthy"}})
    aws.elbv2.deregister_targets(TargetGroupArn=arn, Targets=[{"Id": instance}])
    aws.elbv2.register_targets(TargetGroupArn=arn, Targets=[{"Id": instance}])
    assert health(aws, arn) == [("initial", "Elb.InitialHealthChecking")]


def test_a_pending_instance_is_no_target(aws, balanced, subnet):
    arn, _, _ = balanced
    pending = launch(aws, subnet)
    assert code_of(aws.elbv2.register_targets, TargetGroupArn=arn, Targets=[{"Id": pending}]) == "InvalidTarget"
