"""Auto Scaling groups whose members are machines: hooks, health, activities, events."""

from __future__ import annotations

import json
import urllib.error

import pytest

from . import machines, make
from .errors import code_of

LAUNCHING, TERMINATING = "autoscaling:EC2_INSTANCE_LAUNCHING", "autoscaling:EC2_INSTANCE_TERMINATING"


aws = machines.aws


@pytest.fixture
def subnets(aws):
    return make.subnets(aws, make.vpc(aws))


def group(aws, subnets, size=1, **more):
    return make.scaling_group(aws, subnets, make.template(aws), size=size, **more)


def hook(aws, name, transition, **more):
    """A hook on a group; gives its name."""
    settings = {"HeartbeatTimeout": 300, **more}
    aws.autoscaling.put_lifecycle_hook(
        AutoScalingGroupName=name, LifecycleHookName="hook", LifecycleTransition=transition, **settings
    )
    return {"AutoScalingGroupName": name, "LifecycleHookName": "hook"}


def hooked(aws, subnets, transition, **more):
    """An empty group with a hook."""
    name = make.scaling_group(aws, subnets, make.template(aws), size=0)
    return name, hook(aws, name, transition, **more)


def grow(aws, name, size):
    aws.autoscaling.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=size)


def states(aws, name):
    """Lifecycle state by instance, in the order of the group."""
    return {found["InstanceId"]: found["LifecycleState"] for found in make.describe_group(aws, name)["Instances"]}


def member(aws, name):
    (found,) = states(aws, name)
    return found


def target_state(aws, instance):
    return aws.control("GET", f"metadata/{instance}")["meta-data"]["autoscaling"]["target-lifecycle-state"]


def test_a_member_is_in_service_once_its_machine_runs(aws, subnets):
    name = group(aws, subnets)
    assert list(states(aws, name).values()) == ["Pending"]
    aws.boot()
    assert list(states(aws, name).values()) == ["InService"]
    assert target_state(aws, member(aws, name)) == "InService"


def test_machines_spread_over_the_zones(aws, subnets):
    group(aws, subnets, size=3)
    placed = [item["subnet"] for item in aws.world()["instances"] if item["subnet"] in subnets]
    assert sorted(placed) == sorted(subnets)


def test_a_terminated_member_goes_when_its_machine_does_and_is_replaced_at_once(aws, subnets):
    name = group(aws, subnets)
    aws.boot()
    old = member(aws, name)
    aws.autoscaling.terminate_instance_in_auto_scaling_group(InstanceId=old, ShouldDecrementDesiredCapacity=False)
    found = states(aws, name)
    assert found.pop(old) == "Terminating:Proceed" and list(found.values()) == ["Pending"]
    assert aws.state(old) == "shutting-down"
    aws.boot()
    assert list(states(aws, name).values()) == ["InService"] and member(aws, name) != old


@pytest.mark.parametrize("report", ["terminated", "stopped"])
def test_a_member_whose_machine_dies_is_replaced(aws, subnets, report):
    name = group(aws, subnets)
    aws.boot()
    old = member(aws, name)
    aws.report(instances={old: report})
    aws.boot()
    new = member(aws, name)
    assert new != old and states(aws, name) == {new: "InService"}
    assert aws.state(old) == "terminated"


def test_a_member_that_ec2_terminates_is_replaced_without_asking_its_hooks(aws, subnets):
    name = group(aws, subnets)
    aws.boot()
    old = member(aws, name)
    hook(aws, name, TERMINATING)
    aws.ec2.terminate_instances(InstanceIds=[old])
    assert states(aws, name)[old] == "Terminating:Proceed"
    aws.boot()
    assert list(states(aws, name).values()) == ["InService"] and member(aws, name) != old


def test_a_member_called_unhealthy_is_replaced_after_its_grace_period(aws, subnets):
    name = group(aws, subnets, HealthCheckGracePeriod=120)
    aws.boot()
    old = member(aws, name)
    aws.autoscaling.set_instance_health(InstanceId=old, HealthStatus="Unhealthy")
    assert states(aws, name) == {old: "InService"}
    aws.pass_seconds(121)
    assert states(aws, name)[old] == "Terminating:Proceed"


def test_nothing_is_replaced_while_that_is_suspended(aws, subnets):
    name = group(aws, subnets)
    aws.boot()
    old = member(aws, name)
    aws.autoscaling.suspend_processes(AutoScalingGroupName=name, ScalingProcesses=["ReplaceUnhealthy"])
    aws.report(instances={old: "stopped"})
    assert states(aws, name) == {old: "InService"}


def test_a_group_deleted_by_force_takes_its_machines_along(aws, subnets):
    name = group(aws, subnets, size=2)
    aws.boot()
    hook(aws, name, TERMINATING)
    both = list(states(aws, name))
    assert code_of(aws.autoscaling.delete_auto_scaling_group, AutoScalingGroupName=name) == "ResourceInUse"
    aws.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=name, ForceDelete=True)
    assert [aws.state(instance) for instance in both] == ["shutting-down"] * 2
    assert aws.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"] == []
    aws.boot()
    assert [aws.state(instance) for instance in both] == ["terminated"] * 2


def test_a_launch_waits_for_its_hook(aws, subnets):
    name, named = hooked(aws, subnets, LAUNCHING)
    grow(aws, name, 1)
    aws.boot()
    instance = member(aws, name)
    assert states(aws, name) == {instance: "Pending:Wait"}
    assert target_state(aws, instance) == "InService"
    aws.autoscaling.complete_lifecycle_action(**named, InstanceId=instance, LifecycleActionResult="CONTINUE")
    assert states(aws, name) == {instance: "InService"}
    again = {**named, "InstanceId": instance, "LifecycleActionResult": "CONTINUE"}
    assert code_of(aws.autoscaling.complete_lifecycle_action, **again) == "ValidationError"


def test_an_abandoned_launch_is_terminated_and_tried_again(aws, subnets):
    name, named = hooked(aws, subnets, LAUNCHING)
    grow(aws, name, 1)
    aws.boot()
    old = member(aws, name)
    aws.autoscaling.complete_lifecycle_action(**named, InstanceId=old, LifecycleActionResult="ABANDON")
    found = states(aws, name)
    assert found.pop(old) == "Terminating:Proceed" and list(found.values()) == ["Pending"]


def test_a_termination_waits_for_its_hook_with_the_machine_running(aws, subnets):
    name = group(aws, subnets)
    aws.boot()
    named, instance = hook(aws, name, TERMINATING), member(aws, name)
    aws.autoscaling.update_auto_scaling_group(AutoScalingGroupName=name, MinSize=0, DesiredCapacity=0)
    assert (states(aws, name), aws.state(instance)) == ({instance: "Terminating:Wait"}, "running")
    assert target_state(aws, instance) == "Terminated"
    aws.autoscaling.complete_lifecycle_action(**named, InstanceId=instance, LifecycleActionResult="CONTINUE")
    assert aws.state(instance) == "shutting-down"
    aws.boot()
    assert states(aws, name) == {}


@pytest.mark.parametrize(("result", "expected"), [("CONTINUE", "InService"), ("ABANDON", "Terminating:Proceed")])
def test_without_a_heartbeat_the_default_result_counts(aws, subnets, result, expected):
    name, _ = hooked(aws, subnets, LAUNCHING, DefaultResult=result)
    grow(aws, name, 1)
    aws.boot()
    instance = member(aws, name)
    aws.control("POST", "settle")
    aws.pass_seconds(290)
    assert states(aws, name)[instance] == "Pending:Wait"
    aws.pass_seconds(11)
    assert states(aws, name)[instance] == expected


def test_a_heartbeat_prolongs_the_wait(aws, subnets):
    name, named = hooked(aws, subnets, LAUNCHING)
    grow(aws, name, 1)
    aws.boot()
    instance = member(aws, name)
    aws.pass_seconds(290)
    aws.autoscaling.record_lifecycle_action_heartbeat(**named, InstanceId=instance)
    aws.pass_seconds(290)
    assert states(aws, name)[instance] == "Pending:Wait"
    aws.pass_seconds(20)
    assert states(aws, name)[instance] == "Terminating:Proceed"


def test_a_deleted_hook_holds_nobody_up(aws, subnets):
    name = group(aws, subnets)
    aws.boot()
    named, instance = hook(aws, name, TERMINATING), member(aws, name)
    aws.autoscaling.terminate_instance_in_auto_scaling_group(InstanceId=instance, ShouldDecrementDesiredCapacity=False)
    assert states(aws, name)[instance] == "Terminating:Wait"
    aws.autoscaling.delete_lifecycle_hook(**named)
    assert states(aws, name)[instance] == "Terminating:Proceed"


def test_a_terminating_hook_is_completed_with_the_token_of_its_event(aws, subnets):
    name = group(aws, subnets)
    aws.boot()
    pattern = {"source": ["aws.autoscaling"], "detail-type": ["EC2 Instance-terminate Lifecycle Action"]}
    queue = machines.queue(aws, pattern)
    named, instance = hook(aws, name, TERMINATING, NotificationMetadata="m"), member(aws, name)
    aws.autoscaling.terminate_instance_in_auto_scaling_group(InstanceId=instance, ShouldDecrementDesiredCapacity=False)
    (event,) = aws.events_of(queue)
    assert event["resources"] == [make.describe_group(aws, name)["AutoScalingGroupARN"]]
    detail = event["detail"]
    assert (detail["EC2InstanceId"], detail["LifecycleTransition"]) == (instance, TERMINATING)
    assert (detail["AutoScalingGroupName"], detail["LifecycleHookName"]) == (name, "hook")
    assert (detail["Origin"], detail["Destination"]) == ("AutoScalingGroup", "EC2")
    assert detail["NotificationMetadata"] == "m"
    token = detail["LifecycleActionToken"]
    wrong = {**named, "LifecycleActionToken": "0" * 36, "LifecycleActionResult": "CONTINUE"}
    assert code_of(aws.autoscaling.complete_lifecycle_action, **wrong) == "ValidationError"
    aws.autoscaling.complete_lifecycle_action(**named, LifecycleActionToken=token, LifecycleActionResult="CONTINUE")
    assert aws.state(instance) == "shutting-down"


def test_members_are_targets_while_they_are_in_service(aws, subnets):
    """Not while pending or waiting; draining as soon as they are on their way out."""
    vpc = aws.ec2.describe_subnets(SubnetIds=subnets[:1])["Subnets"][0]["VpcId"]
    arn, _ = machines.balanced(aws, vpc, subnets)

    def targets():
        found = aws.elbv2.describe_target_health(TargetGroupArn=arn)["TargetHealthDescriptions"]
        return [target["TargetHealth"]["State"] for target in found]

    name, named = hooked(aws, subnets, LAUNCHING)
    aws.autoscaling.attach_load_balancer_target_groups(AutoScalingGroupName=name, TargetGroupARNs=[arn])
    grow(aws, name, 1)
    assert targets() == []
    aws.boot()
    assert targets() == []
    instance = member(aws, name)
    aws.autoscaling.complete_lifecycle_action(**named, InstanceId=instance, LifecycleActionResult="CONTINUE")
    assert targets() == ["initial"]
    hook(aws, name, TERMINATING)
    grow(aws, name, 0)
    assert (states(aws, name), targets()) == ({instance: "Terminating:Wait"}, ["draining"])


def test_a_group_that_checks_with_its_balancer_replaces_unhealthy_members(aws, subnets):
    vpc = aws.ec2.describe_subnets(SubnetIds=subnets[:1])["Subnets"][0]["VpcId"]
    made = aws.elbv2.create_target_group(Name=aws.unique("tg"), Protocol="TCP", Port=443, VpcId=vpc)
    arn = made["TargetGroups"][0]["TargetGroupArn"]
    name = group(aws, subnets, TargetGroupARNs=[arn], HealthCheckType="ELB", HealthCheckGracePeriod=60)
    aws.boot()
    old = member(aws, name)
    aws.report(targets={arn: {f"{old}:443": "unhealthy"}})
    assert states(aws, name) == {old: "InService"}
    aws.pass_seconds(61)
    assert states(aws, name)[old] == "Terminating:Proceed"


def activities(aws, name):
    return aws.autoscaling.describe_scaling_activities(AutoScalingGroupName=name)["Activities"]


def test_launches_and_terminations_are_activities(aws, subnets):
    name, named = hooked(aws, subnets, LAUNCHING)
    grow(aws, name, 1)
    (activity,) = activities(aws, name)
    assert activity["StatusCode"] == "InProgress" and "EndTime" not in activity
    aws.boot()
    instance = member(aws, name)
    assert activities(aws, name)[0]["StatusCode"] == "MidLifecycleAction"
    aws.autoscaling.complete_lifecycle_action(**named, InstanceId=instance, LifecycleActionResult="CONTINUE")
    grow(aws, name, 0)
    aws.boot()
    ended = activities(aws, name)
    assert [found["Description"].split()[0] for found in ended] == ["Terminating", "Launching"]
    assert all((found["StatusCode"], found["Progress"]) == ("Successful", 100) for found in ended)
    assert all(instance in found["Description"] and found["EndTime"] for found in ended)
    assert json.loads(ended[0]["Details"])["Availability Zone"] == "us-east-1a"


def test_every_state_is_an_event(aws, subnets):
    pattern = {"source": ["aws.ec2"], "detail-type": ["EC2 Instance State-change Notification"]}
    queue = machines.queue(aws, pattern)
    some = machines.queue(aws, {**pattern, "detail": {"state": [{"anything-but": ["pending", "running"]}]}})
    refused = machines.queue(aws, pattern, service="lambda.amazonaws.com")
    name = group(aws, subnets)
    aws.boot()
    instance = member(aws, name)
    aws.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=name, ForceDelete=True)
    aws.boot()
    found = [event for event in aws.events_of(queue) if event["detail"]["instance-id"] == instance]
    assert [event["detail"]["state"] for event in found] == ["pending", "running", "shutting-down", "terminated"]
    assert found[0]["resources"] == [f"arn:aws:ec2:us-east-1:123456789012:instance/{instance}"]
    assert (found[0]["version"], found[0]["region"], found[0]["account"]) == ("0", "us-east-1", "123456789012")
    assert [event["detail"]["state"] for event in aws.events_of(some)] == ["shutting-down", "terminated"]
    assert aws.events_of(refused) == []


def test_a_disabled_rule_sends_nothing(aws, subnets):
    queue = machines.queue(aws, {"source": ["aws.ec2"]})
    aws.events.disable_rule(Name=queue.rsplit("/", 1)[1])
    group(aws, subnets)
    assert aws.events_of(queue) == []


def test_a_spot_instance_is_warned_and_taken_back(aws, subnets):
    name = make.scaling_group(aws, subnets, make.template(aws, InstanceMarketOptions={"MarketType": "spot"}))
    aws.boot()
    queue = machines.queue(aws, {"detail-type": ["EC2 Spot Instance Interruption Warning"]})
    instance = member(aws, name)
    aws.control("POST", "interrupt", {"instance": instance, "kind": "spot"})
    (event,) = aws.events_of(queue)
    assert event["detail"] == {"instance-id": instance, "instance-action": "terminate"}
    notice = aws.control("GET", f"metadata/{instance}")["meta-data"]["spot"]["instance-action"]
    assert json.loads(notice)["action"] == "terminate"
    assert aws.state(instance) == "running"
    aws.pass_seconds(121)
    assert aws.state(instance) == "shutting-down"
    aws.boot()
    assert list(states(aws, name).values()) == ["InService"] and member(aws, name) != instance


def test_advice_and_maintenance_are_told(aws, subnets):
    name = group(aws, subnets)
    aws.boot()
    instance = member(aws, name)
    rebalance = machines.queue(aws, {"source": ["aws.ec2"], "detail-type": ["EC2 Instance Rebalance Recommendation"]})
    health = machines.queue(aws, {"source": ["aws.health"], "detail": {"service": ["EC2"]}})
    aws.control("POST", "interrupt", {"instance": instance, "kind": "rebalance"})
    aws.control("POST", "interrupt", {"instance": instance, "kind": "scheduled", "seconds": 3600})
    assert [event["detail"]["instance-id"] for event in aws.events_of(rebalance)] == [instance]
    (event,) = aws.events_of(health)
    assert event["detail"]["affectedEntities"][0]["entityValue"] == instance
    told = aws.control("GET", f"metadata/{instance}")["meta-data"]["events"]
    assert "noticeTime" in json.loads(told["recommendations"]["rebalance"])
    assert json.loads(told["maintenance"]["scheduled"])[0]["Code"] == "system-reboot"
    with pytest.raises(urllib.error.HTTPError, match="400"):
        aws.control("POST", "interrupt", {"instance": instance, "kind": "spot"})
