"""What AWS does to instances of its own accord, on demand: spot interruptions, rebalance advice, maintenance."""

from __future__ import annotations

import datetime
import uuid
from typing import Any

from moto.autoscaling.models import autoscaling_backends
from moto.core import DEFAULT_ACCOUNT_ID
from moto.elbv2.models import elbv2_backends

from ..notices import emit, from_ec2
from ..settle import Later
from .metadata import find


def interrupt(later: Later, instance: str, kind: str, seconds: float = 120.0) -> None:
    """`kind`: `spot` (ends in `seconds`), `rebalance`, or `scheduled` (maintenance in `seconds`).

    ValueError: no such instance or kind, or not a spot instance.
    """
    found = find(instance)
    if found is None or found.state != "running":
        raise ValueError(f"no running instance {instance}")
    kinds = {"spot": _spot, "rebalance": _rebalance, "scheduled": _scheduled}
    if kind not in kinds:
        raise ValueError(f"{kind!r} is none of {', '.join(kinds)}")
    kinds[kind](later, found, seconds)


def _spot(later: Later, instance: Any, seconds: float) -> None:
    """A warning, on EventBridge and in the metadata, and then the end."""
    if instance.lifecycle != "spot":
        raise ValueError(f"{instance.id} is not a spot instance")
    end = _in(seconds)
    instance.spot_notice = {
        "instance-action": '{"action": "terminate", "time": "' + end + '"}',
        "termination-time": end,
    }
    detail = {"instance-id": instance.id, "instance-action": "terminate"}
    from_ec2(instance, "EC2 Spot Instance Interruption Warning", detail, instance.availability_zone)
    later.after(seconds, lambda: _reclaim(instance))


def _reclaim(instance: Any) -> None:
    """EC2 takes a spot instance back; its group and its target groups see it go."""
    if instance.state in ("shutting-down", "terminated"):
        return
    region = instance.ec2_backend.region_name
    instance.ec2_backend.terminate_instances([instance.id])
    autoscaling_backends[DEFAULT_ACCOUNT_ID][region].notify_terminate_instances([instance.id])
    elbv2_backends[DEFAULT_ACCOUNT_ID][region].notify_terminate_instances([instance.id])


def _rebalance(_later: Later, instance: Any, _seconds: float) -> None:
    instance.rebalance_notice = {"noticeTime": _in(0)}
    detail = {"instance-id": instance.id}
    from_ec2(instance, "EC2 Instance Rebalance Recommendation", detail, instance.availability_zone)


def _scheduled(_later: Later, instance: Any, seconds: float) -> None:
    """Maintenance: an event of AWS Health, and an entry in the metadata."""
    region, start = instance.ec2_backend.region_name, _in(seconds)
    identity = "instance-event-" + uuid.uuid4().hex[:17]
    entry = {
        "NotBefore": start,
        "Code": "system-reboot",
        "Description": "scheduled reboot",
        "EventId": identity,
        "NotAfter": _in(seconds + 7200),
        "State": "active",
    }
    instance.scheduled_events = [*getattr(instance, "scheduled_events", []), entry]
    code = "AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED"
    detail = {
        "eventArn": f"arn:aws:health:{region}::event/EC2/{code}/{code}_{identity}",
        "service": "EC2",
        "eventTypeCode": code,
        "eventTypeCategory": "scheduledChange",
        "startTime": start,
        "endTime": entry["NotAfter"],
        "eventDescription": [{"language": "en_US", "latestDescription": "scheduled reboot"}],
        "affectedEntities": [{"entityValue": instance.id, "tags": {}}],
    }
    emit(region, "aws.health", "AWS Health Event", [instance.id], detail)


def _in(seconds: float) -> str:
    when = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
