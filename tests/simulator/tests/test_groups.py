"""Auto Scaling groups themselves: what is refused, what is kept."""

from __future__ import annotations

import pytest

from . import make
from .errors import code_of


@pytest.fixture
def world(both):
    vpc = make.vpc(both)
    return both, vpc, make.subnets(both, vpc)


@pytest.fixture
def launched(world):
    aws, _, subnets = world
    return aws, make.scaling_group(aws, subnets, make.template(aws), size=2)


def target_group(aws, vpc):
    made = aws.elbv2.create_target_group(Name=aws.unique("tg"), Protocol="TCP", Port=443, VpcId=vpc)
    return made["TargetGroups"][0]["TargetGroupArn"]


def refused(aws, subnets, template, **more):
    settings = {"AutoScalingGroupName": aws.unique("asg"), "MinSize": 1, "MaxSize": 1, "VPCZoneIdentifier": subnets[0]}
    if "MixedInstancesPolicy" not in more:
        settings["LaunchTemplate"] = {"LaunchTemplateName": template, "Version": "$Latest"}
    return code_of(aws.autoscaling.create_auto_scaling_group, **{**settings, **more})


# Refusals


def test_desired_above_max_is_refused(world):
    aws, _, subnets = world
    assert refused(aws, subnets, make.template(aws), DesiredCapacity=2) == "ValidationError"


def test_desired_is_not_set_above_max(launched):
    aws, name = launched
    set_desired = aws.autoscaling.set_desired_capacity
    assert code_of(set_desired, AutoScalingGroupName=name, DesiredCapacity=9) == "ValidationError"


def test_min_above_max_is_refused(launched):
    aws, name = launched
    assert code_of(aws.autoscaling.update_auto_scaling_group, AutoScalingGroupName=name, MinSize=9) == "ValidationError"


@pytest.mark.parametrize(
    "wrong",
    [
        {"ImageId": "ami-0123456789abcdef0"},
        {"InstanceType": "t3.gigantic"},
        {"IamInstanceProfile": {"Name": "nobody"}},
        {"KeyName": "nobody"},
        {"SecurityGroupIds": ["sg-0123456789abcdef0"]},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_template_that_cannot_launch_is_refused(world, wrong):
    aws, _, subnets = world
    assert refused(aws, subnets, make.template(aws, **wrong)) == "ValidationError"


def test_an_unknown_subnet_is_refused(world):
    aws, _, subnets = world
    assert refused(aws, ["subnet-0123456789abcdef0"], make.template(aws)) == "ValidationError"


def test_an_unknown_target_group_is_refused(world):
    aws, vpc, subnets = world
    arn = target_group(aws, vpc)
    aws.elbv2.delete_target_group(TargetGroupArn=arn)
    assert refused(aws, subnets, make.template(aws), TargetGroupARNs=[arn]) == "ValidationError"


def test_an_unknown_group_is_not_tagged(both):
    tag = {
        "ResourceId": "nobody",
        "ResourceType": "auto-scaling-group",
        "Key": "a",
        "Value": "b",
        "PropagateAtLaunch": True,
    }
    assert code_of(both.autoscaling.create_or_update_tags, Tags=[tag]) == "ValidationError"


def test_a_group_with_instances_is_not_deleted(launched):
    aws, name = launched
    assert code_of(aws.autoscaling.delete_auto_scaling_group, AutoScalingGroupName=name) == "ResourceInUse"


def test_force_delete_terminates_protected_instances_and_hooks(world):
    aws, _, subnets = world
    name = make.scaling_group(aws, subnets, make.template(aws), NewInstancesProtectedFromScaleIn=True)
    hook = {"LifecycleHookName": "h", "AutoScalingGroupName": name}
    aws.autoscaling.put_lifecycle_hook(LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING", **hook)
    (member,) = make.members(aws, name)
    aws.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=name, ForceDelete=True)
    (reservation,) = aws.ec2.describe_instances(InstanceIds=[member["InstanceId"]])["Reservations"]
    assert reservation["Instances"][0]["State"]["Name"] in ("shutting-down", "terminated")
    assert aws.autoscaling.describe_lifecycle_hooks(AutoScalingGroupName=name)["LifecycleHooks"] == []


def test_a_deleted_target_group_stops_no_launch(world):
    aws, vpc, subnets = world
    arn = target_group(aws, vpc)
    name = make.scaling_group(aws, subnets, make.template(aws), TargetGroupARNs=[arn])
    aws.elbv2.delete_target_group(TargetGroupArn=arn)
    aws.autoscaling.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=2)
    assert len(make.members(aws, name)) == 2


# Settings


def mixed(template, percent=100):
    return {
        "LaunchTemplate": {
            "LaunchTemplateSpecification": {"LaunchTemplateName": template, "Version": "$Latest"},
            "Overrides": [{"InstanceType": "m5.large"}, {"InstanceType": "t3.large"}],
        },
        "InstancesDistribution": {"OnDemandPercentageAboveBaseCapacity": percent},
    }


def test_a_mixed_instances_policy_launches_its_first_type(world):
    aws, _, subnets = world
    template = make.template(aws)
    name = make.scaling_group(aws, subnets, template, MixedInstancesPolicy=mixed(template))
    assert [member["InstanceType"] for member in make.members(aws, name)] == ["m5.large"]


def test_a_mixed_instances_policy_says_what_is_spot(world):
    aws, _, subnets = world
    template = make.template(aws)
    name = make.scaling_group(aws, subnets, template, size=4, MixedInstancesPolicy=mixed(template, percent=50))
    assert sorted(member.get("InstanceLifecycle", "-") for member in make.members(aws, name)) == [
        "-",
        "-",
        "spot",
        "spot",
    ]


def distribution_of(aws, name):
    return make.describe_group(aws, name)["MixedInstancesPolicy"]["InstancesDistribution"]


def test_what_an_updated_distribution_leaves_out_stays(world):
    aws, _, subnets = world
    template = make.template(aws)
    policy = mixed(template, percent=50)
    policy["InstancesDistribution"].update({"SpotMaxPrice": "0.2", "SpotInstancePools": 3})
    name = make.scaling_group(aws, subnets, template, size=0, MixedInstancesPolicy=policy)
    policy["InstancesDistribution"] = {"OnDemandBaseCapacity": 1}
    aws.autoscaling.update_auto_scaling_group(AutoScalingGroupName=name, MixedInstancesPolicy=policy)
    kept = {"OnDemandPercentageAboveBaseCapacity": 50, "SpotMaxPrice": "0.2", "SpotInstancePools": 3}
    assert kept.items() <= distribution_of(aws, name).items()
    policy["InstancesDistribution"] = {"SpotMaxPrice": "", "SpotAllocationStrategy": "capacity-optimized"}
    aws.autoscaling.update_auto_scaling_group(AutoScalingGroupName=name, MixedInstancesPolicy=policy)
    assert not {"SpotMaxPrice", "SpotInstancePools"} & distribution_of(aws, name).keys()


def test_a_policy_stays_until_a_template_takes_its_place(world):
    aws, _, subnets = world
    template = make.template(aws)
    name = make.scaling_group(aws, subnets, template, size=0, MixedInstancesPolicy=mixed(template))
    aws.autoscaling.update_auto_scaling_group(AutoScalingGroupName=name, MaxSize=7)
    assert "MixedInstancesPolicy" in make.describe_group(aws, name)
    launched = {"LaunchTemplateName": template, "Version": "1"}
    aws.autoscaling.update_auto_scaling_group(AutoScalingGroupName=name, LaunchTemplate=launched)
    assert "MixedInstancesPolicy" not in make.describe_group(aws, name)


RANGES = {"VCpuCount": {"Min": 2}, "MemoryMiB": {"Min": 4096, "Max": 8192}}


def test_instance_requirements_are_described(world):
    aws, _, subnets = world
    template = make.template(aws)
    policy = mixed(template)
    policy["LaunchTemplate"]["Overrides"] = [{"InstanceRequirements": RANGES}]
    name = make.scaling_group(aws, subnets, template, MixedInstancesPolicy=policy)
    described = make.describe_group(aws, name)["MixedInstancesPolicy"]
    assert described["LaunchTemplate"]["Overrides"] == [{"InstanceRequirements": RANGES}]
    assert described["InstancesDistribution"]["OnDemandAllocationStrategy"] == "lowest-price"


@pytest.mark.parametrize(
    ("distribution", "overrides"),
    [
        ({"SpotAllocationStrategy": "diversified"}, []),
        ({"OnDemandAllocationStrategy": "cheapest"}, []),
        ({"SpotAllocationStrategy": "capacity-optimized", "SpotInstancePools": 2}, []),
        ({"OnDemandAllocationStrategy": "prioritized"}, [{"InstanceRequirements": RANGES}]),
        ({}, [{"InstanceRequirements": {"VCpuCount": {"Max": 2}, "MemoryMiB": {"Min": 0}}}]),
        ({}, [{"InstanceRequirements": RANGES, "InstanceType": "m5.large"}]),
        ({}, [{"InstanceType": "m5.large"}] * 41),
    ],
)
def test_a_policy_that_cannot_be_is_refused(world, distribution, overrides):
    aws, _, subnets = world
    template = make.template(aws)
    policy = mixed(template)
    policy["LaunchTemplate"]["Overrides"] = overrides
    policy["InstancesDistribution"] = distribution
    assert refused(aws, subnets, template, MixedInstancesPolicy=policy) == "ValidationError"


def test_a_policy_wants_no_spot_template(world):
    aws, _, subnets = world
    template = make.template(aws, InstanceMarketOptions={"MarketType": "spot"})
    assert refused(aws, subnets, template, MixedInstancesPolicy=mixed(template)) == "ValidationError"


def test_a_suspended_launch_happens_when_resumed(launched):
    aws, name = launched
    aws.autoscaling.suspend_processes(AutoScalingGroupName=name, ScalingProcesses=["Launch"])
    aws.autoscaling.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=3)
    described = make.describe_group(aws, name)
    assert (len(described["Instances"]), described["DesiredCapacity"]) == (2, 3)
    assert [process["ProcessName"] for process in described["SuspendedProcesses"]] == ["Launch"]
    aws.autoscaling.resume_processes(AutoScalingGroupName=name, ScalingProcesses=["Launch"])
    assert len(make.members(aws, name)) == 3
