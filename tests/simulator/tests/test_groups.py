"""Auto Scaling groups themselves: what is refused, what is kept."""

from __future__ import annotations

import pytest

from . import make
from .errors import code_of, said


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


FULLY_FORMED = "You must use a valid fully-formed launch template. "


def test_a_refusal_speaks_of_the_template_in_ec2s_words(world):
    aws, vpc, subnets = world
    arn = target_group(aws, vpc)
    aws.elbv2.delete_target_group(TargetGroupArn=arn)
    unknown = {"LaunchTemplateId": "lt-0123456789abcdef0", "Version": "1"}
    identity = aws.ec2.describe_launch_templates(LaunchTemplateNames=[make.template(aws)])["LaunchTemplates"][0]
    identity = identity["LaunchTemplateId"]
    for settings, words in [
        (
            {"LaunchTemplate": unknown},
            FULLY_FORMED + "The specified launch template, with template ID lt-0123456789abcdef0, does not exist.",
        ),
        (
            {"LaunchTemplate": {"LaunchTemplateId": identity, "Version": "3"}},
            FULLY_FORMED
            + f"Could not find the specified version 3 for the launch template with ID {identity}.",
        ),
        (with_template(aws, KeyName="nobody"), FULLY_FORMED + "The key pair 'nobody' does not exist"),
        (
            with_template(aws, SecurityGroupIds=["sg-0123456789abcdef0"]),
            FULLY_FORMED + "The security group 'sg-0123456789abcdef0' does not exist",
        ),
        (
            with_template(aws, IamInstanceProfile={"Name": "nobody"}),
            FULLY_FORMED
            + "Value (nobody) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
        ),
        (
            {**with_template(aws), "TargetGroupARNs": [arn]},
            "Provided Target Groups may not be valid. Please ensure they exist and try again.",
        ),
    ]:
        assert what_is_said(aws, subnets, settings) == ("ValidationError", words)


def with_template(aws, **data):
    return {"LaunchTemplate": {"LaunchTemplateName": make.template(aws, **data), "Version": "1"}}


def what_is_said(aws, subnets, settings):
    size = {"AutoScalingGroupName": aws.unique("asg"), "MinSize": 0, "MaxSize": 1, "VPCZoneIdentifier": subnets[0]}
    return said(aws.autoscaling.create_auto_scaling_group, **size, **settings)


def test_what_was_just_made_does_not_exist_yet_for_auto_scaling(aws):
    vpc = make.vpc(aws)
    subnets = make.subnets(aws, vpc, "a")
    aws.control("POST", "lag", 600)
    try:
        profile, group, arn = make.profile(aws), make.group(aws, vpc), target_group(aws, vpc)
        young = with_template(aws)
        aws.control("POST", "lag", 0)
        grown = [
            with_template(aws, IamInstanceProfile={"Name": profile}),
            with_template(aws, SecurityGroupIds=[group]),
            {**with_template(aws), "TargetGroupARNs": [arn]},
        ]
        aws.control("POST", "lag", 600)
        assert "Could not find the specified version 1" in what_is_said(aws, subnets, young)[1]
        aws.control("POST", "lag", 0)
        for settings in [young, *grown]:
            name = aws.unique("asg")
            size = {"MinSize": 0, "MaxSize": 1, "VPCZoneIdentifier": subnets[0]}
            aws.autoscaling.create_auto_scaling_group(AutoScalingGroupName=name, **size, **settings)
    finally:
        aws.control("POST", "lag", 0)


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


def test_an_empty_group_is_deleted_without_force(aws):
    name = make.scaling_group(aws, make.subnets(aws, make.vpc(aws)), make.template(aws), size=1)
    aws.autoscaling.update_auto_scaling_group(AutoScalingGroupName=name, MinSize=0, MaxSize=0)
    assert make.members(aws, name) == []
    aws.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=name)


def test_a_deleted_target_group_stops_no_launch(world):
    aws, vpc, subnets = world
    arn = target_group(aws, vpc)
    name = make.scaling_group(aws, subnets, make.template(aws), TargetGroupARNs=[arn])
    aws.elbv2.delete_target_group(TargetGroupArn=arn)
    aws.autoscaling.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=2)
    assert len(make.members(aws, name)) == 2


# Settings


def test_settings_are_kept_by_create(world):
    aws, _, subnets = world
    settings = {"MaxInstanceLifetime": 86400, "CapacityRebalance": True, "DefaultInstanceWarmup": 60}
    name = make.scaling_group(aws, subnets, make.template(aws), **settings)
    described = make.describe_group(aws, name)
    assert {field: described.get(field) for field in settings} == settings


def test_settings_are_changed_by_update(launched):
    aws, name = launched
    settings = {
        "CapacityRebalance": True,
        "DefaultCooldown": 17,
        "HealthCheckGracePeriod": 18,
        "MaxInstanceLifetime": 86401,
        "TerminationPolicies": ["OldestInstance"],
    }
    aws.autoscaling.update_auto_scaling_group(AutoScalingGroupName=name, **settings)
    described = make.describe_group(aws, name)
    assert {field: described.get(field) for field in settings} == settings


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


def test_a_mixed_instances_policy_stays_and_describes_alone(world):
    aws, _, subnets = world
    template = make.template(aws)
    name = make.scaling_group(aws, subnets, template, MixedInstancesPolicy=mixed(template))
    aws.autoscaling.update_auto_scaling_group(AutoScalingGroupName=name, MaxSize=5)
    described = make.describe_group(aws, name)
    policy = described["MixedInstancesPolicy"]
    assert "LaunchTemplate" not in described
    assert policy["LaunchTemplate"]["Overrides"] == mixed(template)["LaunchTemplate"]["Overrides"]
    assert policy["InstancesDistribution"]["OnDemandPercentageAboveBaseCapacity"] == 100
    assert policy["InstancesDistribution"]["OnDemandBaseCapacity"] == 0


def test_all_metrics_are_enabled_and_some_disabled(launched):
    aws, name = launched
    aws.autoscaling.enable_metrics_collection(AutoScalingGroupName=name, Granularity="1Minute")
    aws.autoscaling.disable_metrics_collection(AutoScalingGroupName=name, Metrics=["GroupMinSize"])
    metrics = {metric["Metric"] for metric in make.describe_group(aws, name)["EnabledMetrics"]}
    assert "GroupMaxSize" in metrics and "GroupMinSize" not in metrics


def test_a_suspended_launch_happens_when_resumed(launched):
    aws, name = launched
    aws.autoscaling.suspend_processes(AutoScalingGroupName=name, ScalingProcesses=["Launch"])
    aws.autoscaling.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=3)
    described = make.describe_group(aws, name)
    assert (len(described["Instances"]), described["DesiredCapacity"]) == (2, 3)
    assert [process["ProcessName"] for process in described["SuspendedProcesses"]] == ["Launch"]
    aws.autoscaling.resume_processes(AutoScalingGroupName=name, ScalingProcesses=["Launch"])
    assert len(make.members(aws, name)) == 3


def test_a_hook_says_what_it_was_told(launched):
    aws, name = launched
    hook = {
        "LifecycleHookName": "h",
        "AutoScalingGroupName": name,
        "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
        "HeartbeatTimeout": 300,
        "DefaultResult": "CONTINUE",
    }
    aws.autoscaling.put_lifecycle_hook(**hook)
    (found,) = aws.autoscaling.describe_lifecycle_hooks(AutoScalingGroupName=name)["LifecycleHooks"]
    assert found == {**hook, "GlobalTimeout": 30000}
    aws.autoscaling.delete_lifecycle_hook(LifecycleHookName="h", AutoScalingGroupName=name)
    assert aws.autoscaling.describe_lifecycle_hooks(AutoScalingGroupName=name)["LifecycleHooks"] == []


def test_groups_are_found_by_tag_in_pages(aws):
    subnets, template, value = make.subnets(aws, make.vpc(aws)), make.template(aws), aws.unique("cluster")
    tags = [{"Key": "KubernetesCluster", "Value": value, "PropagateAtLaunch": True}]
    names = {make.scaling_group(aws, subnets, template, Tags=tags) for _ in range(3)}
    make.scaling_group(aws, subnets, template)
    filters = [{"Name": "tag:KubernetesCluster", "Values": [value]}]
    pages = list(aws.autoscaling.get_paginator("describe_auto_scaling_groups").paginate(Filters=filters, MaxRecords=2))
    assert [len(page["AutoScalingGroups"]) for page in pages] == [2, 1]
    assert {group["AutoScalingGroupName"] for page in pages for group in page["AutoScalingGroups"]} == names


def test_tags_reach_instances_if_they_are_to(aws):
    subnets, template = make.subnets(aws, make.vpc(aws)), make.template(aws)
    tags = [
        {"Key": "yes", "Value": "1", "PropagateAtLaunch": True},
        {"Key": "no", "Value": "1", "PropagateAtLaunch": False},
    ]
    name = make.scaling_group(aws, subnets, template, Tags=tags)
    (member,) = make.members(aws, name)
    found = {tag["Key"]: tag["Value"] for tag in member["Tags"]}
    assert found["yes"] == "1" and "no" not in found and found["aws:autoscaling:groupName"] == name
    changed = {
        "ResourceId": name,
        "ResourceType": "auto-scaling-group",
        "Key": "yes",
        "Value": "2",
        "PropagateAtLaunch": True,
    }
    aws.autoscaling.create_or_update_tags(Tags=[changed])
    aws.autoscaling.delete_tags(Tags=[{"ResourceId": name, "ResourceType": "auto-scaling-group", "Key": "no"}])
    assert [(tag["Key"], tag["Value"]) for tag in make.describe_group(aws, name)["Tags"]] == [("yes", "2")]


def test_the_smallest_group_has_its_zones_and_template(aws):
    subnets = make.subnets(aws, make.vpc(aws))
    template = make.template(aws)
    described = make.describe_group(aws, make.scaling_group(aws, subnets, template, size=0))
    assert described["AvailabilityZones"] == ["us-east-1a", "us-east-1b", "us-east-1c"]
    assert described["LaunchTemplate"]["LaunchTemplateName"] == template
    assert described["LaunchTemplate"]["Version"] == "$Latest"
    assert described["Instances"] == []
