"""What Auto Scaling groups do with instances."""

from __future__ import annotations

import pytest

from . import make
from .conftest import Server, eventually, start
from .errors import code_of


@pytest.fixture
def world(both):
    vpc = make.vpc(both)
    return both, vpc, make.subnets(both, vpc)


def test_instances_spread_over_the_zones(world):
    aws, _, subnets = world
    name = make.scaling_group(aws, subnets, make.template(aws), size=3)
    assert sorted(member["SubnetId"] for member in make.members(aws, name)) == sorted(subnets)


def test_a_second_group_of_the_same_name_is_refused(world):
    aws, _, subnets = world
    template = make.template(aws)
    name = make.scaling_group(aws, subnets, template)
    again = {"AutoScalingGroupName": name, "MinSize": 0, "MaxSize": 1, "VPCZoneIdentifier": subnets[0]}
    again["LaunchTemplate"] = {"LaunchTemplateName": template}
    assert code_of(aws.autoscaling.create_auto_scaling_group, **again) == "AlreadyExists"


def test_a_terminated_instance_leaves_its_target_group_and_is_replaced(world):
    aws, vpc, subnets = world
    arn = aws.elbv2.create_target_group(Name=aws.unique("tg"), Protocol="TCP", Port=443, VpcId=vpc)["TargetGroups"][0][
        "TargetGroupArn"
    ]
    name = make.scaling_group(aws, subnets, make.template(aws), TargetGroupARNs=[arn])
    (old,) = make.members(aws, name)
    aws.autoscaling.terminate_instance_in_auto_scaling_group(
        InstanceId=old["InstanceId"], ShouldDecrementDesiredCapacity=False
    )
    (new,) = make.members(aws, name)
    health = aws.elbv2.describe_target_health(TargetGroupArn=arn)["TargetHealthDescriptions"]
    assert [target["Target"]["Id"] for target in health] == [new["InstanceId"]]
    assert new["InstanceId"] != old["InstanceId"]


def test_an_instance_shuts_down_before_it_is_terminated(world):
    aws, _, subnets = world
    name = make.scaling_group(aws, subnets, make.template(aws))
    (member,) = make.members(aws, name)
    aws.ec2.terminate_instances(InstanceIds=[member["InstanceId"]])

    def state():
        (reservation,) = aws.ec2.describe_instances(InstanceIds=[member["InstanceId"]])["Reservations"]
        return reservation["Instances"][0]["State"]["Name"]

    assert state() == "shutting-down"
    eventually(lambda: state() == "terminated")
    enis = aws.ec2.describe_network_interfaces(
        Filters=[{"Name": "attachment.instance-id", "Values": [member["InstanceId"]]}]
    )
    assert enis["NetworkInterfaces"] == []


def test_a_dying_instance_holds_its_group_and_subnet(world):
    aws, vpc, subnets = world
    group = make.group(aws, vpc)
    name = make.scaling_group(aws, subnets[:1], make.template(aws, SecurityGroupIds=[group]))
    aws.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=name, ForceDelete=True)
    assert code_of(aws.ec2.delete_security_group, GroupId=group) == "DependencyViolation"
    assert code_of(aws.ec2.delete_subnet, SubnetId=subnets[0]) == "DependencyViolation"
    of_vpc = [{"Name": "vpc-id", "Values": [vpc]}]
    eventually(lambda: not aws.ec2.describe_network_interfaces(Filters=of_vpc)["NetworkInterfaces"])
    aws.ec2.delete_security_group(GroupId=group)
    aws.ec2.delete_subnet(SubnetId=subnets[0])


def test_an_instance_is_named_as_its_subnet_says(world):
    aws, _, subnets = world
    aws.ec2.modify_subnet_attribute(SubnetId=subnets[0], PrivateDnsHostnameTypeOnLaunch="resource-name")
    (member,) = make.members(aws, make.scaling_group(aws, subnets[:1], make.template(aws)))
    assert member["PrivateDnsName"] == member["InstanceId"] + ".ec2.internal"
    assert member["PrivateDnsNameOptions"]["HostnameType"] == "resource-name"


def test_an_instance_terminated_by_ec2_is_replaced_in_the_target_group(world):
    aws, vpc, subnets = world
    made = aws.elbv2.create_target_group(Name=aws.unique("tg"), Protocol="TCP", Port=443, VpcId=vpc)
    arn = made["TargetGroups"][0]["TargetGroupArn"]
    name = make.scaling_group(aws, subnets, make.template(aws), TargetGroupARNs=[arn])
    aws.ec2.terminate_instances(InstanceIds=[member["InstanceId"] for member in make.members(aws, name)])
    health = aws.elbv2.describe_target_health(TargetGroupArn=arn)["TargetHealthDescriptions"]
    members = [member["InstanceId"] for member in make.members(aws, name)]
    assert [target["Target"]["Id"] for target in health] == members and len(members) == 1


def test_an_interface_dies_with_its_instance(world):
    aws, vpc, subnets = world
    name = make.scaling_group(aws, subnets, make.template(aws))
    aws.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=name, ForceDelete=True)
    of_vpc = [{"Name": "vpc-id", "Values": [vpc]}]
    eventually(lambda: not aws.ec2.describe_network_interfaces(Filters=of_vpc)["NetworkInterfaces"])


def test_what_the_quota_of_vcpus_does_not_allow_is_a_failed_activity():
    life, endpoint = start("--settle", "0")
    with life:
        aws = Server(endpoint)
        aws.control("POST", "vcpus", 4)
        vpc = make.vpc(aws)
        name = make.scaling_group(aws, make.subnets(aws, vpc, "a"), make.template(aws), size=3)
        assert len(make.members(aws, name)) == 2
        newest = aws.autoscaling.describe_scaling_activities(AutoScalingGroupName=name)["Activities"][0]
        assert newest["StatusCode"] == "Failed"
        assert "current vCPU limit of 4" in newest["StatusMessage"]


def test_a_detached_member_leaves_slowly(both):
    vpc = make.vpc(both)
    name = make.scaling_group(both, make.subnets(both, vpc, "a"), make.template(both), size=2)
    (first, _) = [member["InstanceId"] for member in make.describe_group(both, name)["Instances"]]

    def stage():
        members = make.describe_group(both, name)["Instances"]
        return [member["LifecycleState"] for member in members if member["InstanceId"] == first]

    asked = {"AutoScalingGroupName": name, "InstanceIds": [first], "ShouldDecrementDesiredCapacity": False}
    both.autoscaling.detach_instances(**asked)
    assert stage() == ["Detaching"]
    assert len(make.describe_group(both, name)["Instances"]) == 3
    assert code_of(both.autoscaling.detach_instances, **asked) == "ValidationError"
    assert eventually(lambda: stage() == [])
    assert len(make.describe_group(both, name)["Instances"]) == 2
