"""Auto Scaling groups whose members are machines: hooks and health."""

from __future__ import annotations

import json

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


def test_a_heartbeat_lets_the_time_of_a_hook_begin_anew(aws, subnets):
    name = group(aws, subnets)
    aws.boot()
    named, instance = hook(aws, name, TERMINATING), member(aws, name)
    beat = {"AutoScalingGroupName": named["AutoScalingGroupName"], "LifecycleHookName": named["LifecycleHookName"]}
    beat["InstanceId"] = instance
    assert code_of(aws.autoscaling.record_lifecycle_action_heartbeat, **beat) == "ValidationError"
    aws.autoscaling.terminate_instance_in_auto_scaling_group(InstanceId=instance, ShouldDecrementDesiredCapacity=False)
    aws.control("POST", "settle")
    aws.pass_seconds(290)
    aws.autoscaling.record_lifecycle_action_heartbeat(**beat)
    aws.pass_seconds(290)
    assert states(aws, name)[instance] == "Terminating:Wait"
    aws.pass_seconds(11)
    assert states(aws, name)[instance] == "Terminating:Proceed"


def test_a_deleted_hook_holds_nobody_up(aws, subnets):
    name = group(aws, subnets)
    aws.boot()
    named, instance = hook(aws, name, TERMINATING), member(aws, name)
    aws.autoscaling.terminate_instance_in_auto_scaling_group(InstanceId=instance, ShouldDecrementDesiredCapacity=False)
    assert states(aws, name)[instance] == "Terminating:Wait"
    aws.autoscaling.delete_lifecycle_hook(**named)
    assert states(aws, name)[instance] == "Terminating:Proceed"


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


def queue_of_events(aws, source):
    """A queue that receives the events of a service."""
    url = aws.sqs.create_queue(QueueName=aws.unique("queue"))["QueueUrl"]
    arn = aws.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    rule = aws.unique("rule")
    made = aws.events.put_rule(Name=rule, EventPattern=json.dumps({"source": [source]}))
    let_send(aws, url, arn, made["RuleArn"])
    aws.events.put_targets(Rule=rule, Targets=[{"Id": "1", "Arn": arn}])
    return url


def let_send(aws, url, queue, rule):
    """Gives the queue a policy by which the rule sends to it."""
    condition = {"ArnEquals": {"aws:SourceArn": [rule]}, "StringEquals": {"aws:SourceAccount": rule.split(":")[4]}}
    allow = {"Effect": "Allow", "Principal": {"Service": "events.amazonaws.com"}, "Action": "sqs:SendMessage"}
    deny = {"Effect": "Deny", "Principal": "*", "Action": "sqs:SendMessage", "Resource": queue}
    statements = [
        {**allow, "Resource": queue, "Condition": condition},
        {**deny, "Condition": {"Bool": {"aws:PrincipalIsAWSService": "false"}}},
    ]
    aws.sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": json.dumps({"Statement": statements})})
    aws.control("POST", "settle")


def received(aws, url):
    """The details of the events in a queue, by their type."""
    messages = aws.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
    events = [json.loads(message["Body"]) for message in messages]
    return [(event["detail-type"], event["detail"]) for event in events]


def test_the_wait_for_a_hook_is_an_event(aws, subnets):
    name = group(aws, subnets)
    aws.boot()
    old = member(aws, name)
    hook(aws, name, TERMINATING)
    url = queue_of_events(aws, "aws.autoscaling")
    aws.autoscaling.terminate_instance_in_auto_scaling_group(InstanceId=old, ShouldDecrementDesiredCapacity=False)
    (seen,) = aws.autoscaling.describe_auto_scaling_instances(InstanceIds=[old])["AutoScalingInstances"]
    assert (seen["AutoScalingGroupName"], seen["LifecycleState"]) == (name, "Terminating:Wait")
    ((kind, detail),) = received(aws, url)
    assert kind == "EC2 Instance-terminate Lifecycle Action"
    assert (detail["EC2InstanceId"], detail["AutoScalingGroupName"]) == (old, name)
    assert (detail["LifecycleHookName"], detail["LifecycleTransition"]) == ("hook", TERMINATING)


def test_a_rule_that_the_queues_policy_does_not_name_sends_nothing(aws, subnets):
    name = group(aws, subnets)
    aws.boot()
    url = queue_of_events(aws, "aws.ec2")
    queue = aws.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    let_send(aws, url, queue, "arn:aws:events:us-east-1:123456789012:rule/another")
    aws.ec2.terminate_instances(InstanceIds=[member(aws, name)])
    assert received(aws, url) == []


def test_a_spot_interruption_is_announced_two_minutes_before(aws, subnets):
    name = group(aws, subnets)
    aws.boot()
    old = member(aws, name)
    url = queue_of_events(aws, "aws.ec2")
    aws.control("POST", "interrupt", old)
    warning = ("EC2 Spot Instance Interruption Warning", {"instance-id": old, "instance-action": "terminate"})
    assert received(aws, url) == [warning] and aws.state(old) == "running"
    aws.pass_seconds(120)
    assert aws.state(old) == "shutting-down"
    changes = [detail["state"] for kind, detail in received(aws, url) if detail["instance-id"] == old]
    assert changes == ["shutting-down"]
