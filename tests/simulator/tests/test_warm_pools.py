"""Warm pools: configuration, size, and the way of an instance through one."""

from __future__ import annotations

import pytest

from . import machines, make
from .conftest import eventually
from .errors import code_of

LAUNCHING = "autoscaling:EC2_INSTANCE_LAUNCHING"

aws = machines.aws


def group(aws, size=1, **more):
    return make.scaling_group(aws, make.subnets(aws, make.vpc(aws), "a"), make.template(aws), size=size, **more)


def put(aws, name, **settings):
    aws.autoscaling.put_warm_pool(AutoScalingGroupName=name, **settings)


def pool(aws, name):
    """Lifecycle state by instance."""
    found = aws.autoscaling.describe_warm_pool(AutoScalingGroupName=name)["Instances"]
    return {one["InstanceId"]: one["LifecycleState"] for one in found}


def configuration(aws, name):
    return make.describe_group(aws, name).get("WarmPoolConfiguration")


def states(aws, name):
    return {one["InstanceId"]: one["LifecycleState"] for one in make.describe_group(aws, name)["Instances"]}


def target_state(aws, instance):
    return aws.control("GET", f"metadata/{instance}")["meta-data"]["autoscaling"]["target-lifecycle-state"]


def test_a_pool_is_described_with_its_group_and_has_the_size_that_is_left(both):
    name = group(both, size=1)
    assert configuration(both, name) is None and "WarmPoolSize" not in make.describe_group(both, name)
    put(both, name, MaxGroupPreparedCapacity=-1, MinSize=0)
    told = configuration(both, name)
    assert told["MinSize"] == 0 and told["PoolState"] == "Stopped" and "MaxGroupPreparedCapacity" not in told
    assert make.describe_group(both, name)["WarmPoolSize"] == 2
    assert sorted(pool(both, name).values()) == ["Warmed:Stopped"] * 2
    assert len(make.describe_group(both, name)["Instances"]) == 1
    put(both, name, MaxGroupPreparedCapacity=2)
    assert len(pool(both, name)) == 1
    put(both, name, MaxGroupPreparedCapacity=1, MinSize=1)
    assert len(pool(both, name)) == 1
    (warm,) = pool(both, name)
    details = both.autoscaling.describe_auto_scaling_instances(InstanceIds=[warm])["AutoScalingInstances"]
    assert [one["LifecycleState"] for one in details] == ["Warmed:Stopped"]


def test_a_group_that_grows_uses_its_pool_first(both):
    name = group(both, size=1)
    put(both, name, MaxGroupPreparedCapacity=2)
    (warm,) = pool(both, name)
    both.autoscaling.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=3)
    assert states(both, name)[warm] == "InService" and len(states(both, name)) == 3
    assert pool(both, name) == {}


def test_a_pool_with_instances_goes_by_force_and_takes_its_time(both):
    name = group(both, size=1)
    asked = {"AutoScalingGroupName": name}
    assert code_of(both.autoscaling.delete_warm_pool, **asked) == "ValidationError"
    put(both, name, MaxGroupPreparedCapacity=2)
    assert code_of(both.autoscaling.delete_warm_pool, **asked) == "ResourceInUse"
    both.autoscaling.delete_warm_pool(ForceDelete=True, **asked)
    told = configuration(both, name)
    if told is not None:
        assert told["Status"] == "PendingDelete"
        assert code_of(both.autoscaling.put_warm_pool, **asked) == "ValidationError"
    assert eventually(lambda: configuration(both, name) is None)
    assert pool(both, name) == {}


def test_an_instance_of_a_pool_is_not_ended_as_a_member_and_is_replaced(both):
    name = group(both, size=1)
    put(both, name, MaxGroupPreparedCapacity=2)
    (warm,) = pool(both, name)
    asked = {"InstanceId": warm, "ShouldDecrementDesiredCapacity": False}
    assert code_of(both.autoscaling.terminate_instance_in_auto_scaling_group, **asked) == "ValidationError"
    both.ec2.terminate_instances(InstanceIds=[warm])
    (new,) = pool(both, name)
    assert new != warm


def test_groups_of_spot_or_mixed_instances_have_no_pool(both):
    subnets = make.subnets(both, make.vpc(both), "a")
    spot = make.template(both, InstanceMarketOptions={"MarketType": "spot"})
    name = make.scaling_group(both, subnets, spot, size=0)
    assert code_of(both.autoscaling.put_warm_pool, AutoScalingGroupName=name) == "ValidationError"
    of = {"LaunchTemplateName": make.template(both), "Version": "$Latest"}
    policy = {"LaunchTemplate": {"LaunchTemplateSpecification": of}}
    name = make.scaling_group(both, subnets, "", size=0, MixedInstancesPolicy=policy)
    assert code_of(both.autoscaling.put_warm_pool, AutoScalingGroupName=name) == "ValidationError"


def test_a_group_deleted_by_force_takes_its_pool_along(both):
    name = group(both, size=0)
    put(both, name, MinSize=1)
    (warm, *_) = pool(both, name)
    both.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=name, ForceDelete=True)
    (reservation,) = both.ec2.describe_instances(InstanceIds=[warm])["Reservations"]
    assert reservation["Instances"][0]["State"]["Name"] in ("shutting-down", "terminated")


def waiting_for_a_hook(aws):
    """A group of none whose pool gets an instance: the group, its hook of launches, and the instance."""
    name = group(aws, size=0)
    hook = {"AutoScalingGroupName": name, "LifecycleHookName": "hook"}
    aws.autoscaling.put_lifecycle_hook(
        LifecycleTransition=LAUNCHING, HeartbeatTimeout=600, DefaultResult="ABANDON", **hook
    )
    put(aws, name, MaxGroupPreparedCapacity=1)
    (warm,) = pool(aws, name)
    return name, hook, warm


def test_a_machine_warms_waits_for_its_hook_stops_and_comes_into_service(aws):
    name, hook, warm = waiting_for_a_hook(aws)
    assert pool(aws, name)[warm] == "Warmed:Pending" and target_state(aws, warm) == "Warmed:Stopped"
    aws.boot()
    assert pool(aws, name)[warm] == "Warmed:Pending:Wait" and aws.state(warm) == "running"
    aws.autoscaling.complete_lifecycle_action(InstanceId=warm, LifecycleActionResult="CONTINUE", **hook)
    assert aws.state(warm) == "stopping"
    aws.boot()
    assert pool(aws, name)[warm] == "Warmed:Stopped" and aws.state(warm) == "stopped"
    aws.autoscaling.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=1)
    assert states(aws, name) == {warm: "Pending"} and target_state(aws, warm) == "InService"
    aws.boot()
    assert states(aws, name) == {warm: "Pending:Wait"}
    aws.autoscaling.complete_lifecycle_action(InstanceId=warm, LifecycleActionResult="CONTINUE", **hook)
    assert states(aws, name) == {warm: "InService"}
    assert pool(aws, name) == {}


@pytest.mark.parametrize("result", ["timeout", "ABANDON"])
def test_a_machine_that_cannot_prepare_is_given_up_and_replaced(aws, result):
    name, hook, warm = waiting_for_a_hook(aws)
    aws.boot()
    if result == "timeout":
        aws.pass_seconds(601)
    else:
        aws.autoscaling.complete_lifecycle_action(InstanceId=warm, LifecycleActionResult=result, **hook)
    assert pool(aws, name)[warm] == "Warmed:Terminating:Proceed"
    aws.boot()
    assert warm not in pool(aws, name) and len(pool(aws, name)) == 1
