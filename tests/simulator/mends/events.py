"""The events that EC2 and Auto Scaling send to EventBridge, which delivers them to the targets of rules."""

from __future__ import annotations

import json
from typing import Any

from moto.core import DEFAULT_ACCOUNT_ID
from moto.events.models import events_backends

# From the warning to the interruption: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
SPOT_WARNING = 120.0


def state_changed(instance: Any, state: str) -> None:
    """EC2 sends one for every state that an instance enters."""
    detail = {"instance-id": instance.id, "state": state}
    _publish(instance.ec2_backend.region_name, "aws.ec2", "EC2 Instance State-change Notification", detail)


def waits_for_hook(member: Any, hook: Any) -> None:
    """Auto Scaling waits for a hook of a member that it ends
    (https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-event-reference.html).
    """
    detail = {
        "LifecycleActionToken": "87654321-4321-4321-4321-210987654321",
        "AutoScalingGroupName": member.auto_scaling_group.name,
        "LifecycleHookName": hook.lifecycle_hook_name,
        "EC2InstanceId": member.instance.id,
        "LifecycleTransition": hook.lifecycle_transition,
        "Origin": "AutoScalingGroup",
        "Destination": "EC2",
    }
    region = member.auto_scaling_group.region
    _publish(region, "aws.autoscaling", "EC2 Instance-terminate Lifecycle Action", detail)


def interrupt_spot(later: Any, instance: Any) -> None:
    """The warning now, the interruption in two minutes."""
    detail = {"instance-id": instance.id, "instance-action": "terminate"}
    backend = instance.ec2_backend
    _publish(backend.region_name, "aws.ec2", "EC2 Spot Instance Interruption Warning", detail)

    def interrupt() -> None:
        if instance.state == "running":
            backend.terminate_instances([instance.id])

    later.after(SPOT_WARNING, interrupt)


def _publish(region: str, source: str, kind: str, detail: "dict[str, Any]") -> None:
    event = {"Source": source, "DetailType": kind, "Detail": json.dumps(detail)}
    events_backends[DEFAULT_ACCOUNT_ID][region].put_events([event])
