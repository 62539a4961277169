"""The life of an Auto Scaling group's members, from launch to termination."""

from __future__ import annotations

from typing import Any, Optional

from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.elbv2.models import elbv2_backends

from .. import activities
from ..membership import forget, is_leaving, is_warm, member_of
from . import events
from .hooks import LAUNCHING, TERMINATING, actions_of, wait_for_hooks
from .patch import replace


def record_join(member: Any, cause: str) -> None:
    """A launched instance has become a member: at once, or once its machine runs."""
    group = member.auto_scaling_group
    member.activity = activities.begin(group, member.instance, "Launching a new", cause)
    if not hasattr(member.instance, "machine"):
        activities.end(member.activity)


def set_running(instance: Any) -> None:
    """The machine of an instance runs: a pending member goes on to its hooks, then into service or into the warm pool."""
    member = member_of(instance)
    if member is None or member.lifecycle_state not in ("Pending", "Warmed:Pending"):
        return
    launched = _warmed if is_warm(member) else _launched
    if wait_for_hooks(instance.machine.later, member, LAUNCHING, lambda ok: launched(member, ok)):
        member.lifecycle_state += ":Wait"
        activities.waits_for_hooks(member.activity)
    else:
        launched(member, True)


def _abandon(member: Any) -> None:
    activities.end(member.activity, "Cancelled", "The lifecycle action was abandoned")
    leave_group(member, "an instance was taken out of service because its launch was abandoned", hooks=False)
    _settle(member.auto_scaling_group)


def _warmed(member: Any, ok: bool) -> None:
    """A member of the pool has prepared: it is stopped."""
    if not ok:
        return _abandon(member)
    member.lifecycle_state = "Warmed:Pending:Proceed"
    member.instance.stop()
    if not hasattr(member.instance, "machine"):
        _set_stopped(member)


def _set_stopped(member: Any) -> None:
    member.lifecycle_state = "Warmed:Stopped"
    activities.end(member.activity)


def _launched(member: Any, ok: bool) -> None:
    group = member.auto_scaling_group
    if not ok:
        return _abandon(member)
    member.lifecycle_state = "InService"
    activities.end(member.activity)
    if group.name in group.autoscaling_backend.autoscaling_groups:
        group.autoscaling_backend.update_attached_target_groups(group.name)


def leave_group(member: Any, cause: str, hooks: bool = True) -> None:
    """A member whose machine still is there goes: out of its target groups, through its hooks, then terminated."""
    if is_leaving(member):
        return
    group, instance = member.auto_scaling_group, member.instance
    activities.end(getattr(member, "activity", None), "Cancelled")
    member.lifecycle_state = _in_pool(member, "Terminating")
    member.activity = activities.begin(group, instance, "Terminating", cause)
    elbv2_backends[group.account_id][group.region].notify_terminate_instances([instance.id])
    member.wait = None
    if hooks and wait_for_hooks(instance.machine.later, member, TERMINATING, lambda _ok: _terminate(member)):
        member.lifecycle_state += ":Wait"
        for action in actions_of(member).values():
            events.waits_for_hook(member, action.hook)
        activities.waits_for_hooks(member.activity)
    else:
        _terminate(member)


def cut_short(member: Any) -> None:
    """A member of a group that is deleted by force: terminated without its hooks, and forgotten at once."""
    member.wait = None
    if not member.lifecycle_state.endswith("Terminating:Proceed"):
        leave_group(member, "the group was deleted", hooks=False)
        _terminate(member)
    activities.end(member.activity)


def _in_pool(member: Any, stage: str) -> str:
    return f"Warmed:{stage}" if is_warm(member) else stage


def _terminate(member: Any) -> None:
    member.lifecycle_state = _in_pool(member, "Terminating:Proceed")
    member.instance.disable_api_termination = False
    member.auto_scaling_group.ec2_backend.terminate_instances([member.instance.id])


def set_gone(instance: Any) -> None:
    """The instance is terminated: it is a member no longer."""
    member = member_of(instance)
    if member is not None:
        group = member.auto_scaling_group
        forget(group, [member])
        activities.end(member.activity)
        _settle_pool(group)


def set_failed(instance: Any, why: str) -> None:
    """A member's machine is not as it should be: it is terminated and replaced, unless that is suspended."""
    member = member_of(instance)
    if member is None or is_leaving(member) or member.lifecycle_state.startswith("Standby"):
        return
    if member.lifecycle_state == "Warmed:Pending:Proceed" and instance.state == "stopped":
        return _set_stopped(member)
    suspended = {process["ProcessName"] for process in member.auto_scaling_group.suspended_processes}
    if "HealthCheck" not in suspended:
        member.health_status = "Unhealthy"
    if suspended & {"HealthCheck", "ReplaceUnhealthy", "Terminate"}:
        return
    cause = f"an instance was taken out of service in response to {why}"
    leave_group(member, cause, hooks=instance.state not in ("shutting-down", "terminated"))
    _settle(member.auto_scaling_group)


def terminated_by_ec2(member: Any) -> None:
    """Somebody has terminated the instance of a member in EC2: there is nothing to wait for."""
    set_failed(member.instance, "an EC2 health check indicating it has been terminated or stopped")


def _settle(group: Any) -> None:
    from .scaling import settle_capacity

    if group.name in group.autoscaling_backend.autoscaling_groups:
        settle_capacity(group)


def _settle_pool(group: Any) -> None:
    from .warm_pools import settle_pool

    settle_pool(group)


def fails_after_grace(instance: Any, why: str) -> None:
    """Like `fails`, when the health check grace period is over, if the member is unhealthy then."""
    member = member_of(instance)
    if member is None:
        return
    age = (utcnow() - instance.launch_time).total_seconds()
    left = float(member.auto_scaling_group.health_check_grace_period or 0) - age
    member.health_status = "Unhealthy"

    def check() -> None:
        if member.health_status == "Unhealthy" and member is member_of(instance):
            set_failed(instance, why)

    if left > 0:
        instance.machine.later.after(left, check)
    else:
        instance.machine.later.add(check)


def scaling_activities_are_described() -> None:
    """AWS: every launch and termination of a group is an activity, described newest first.
    moto: describes none.
    """

    @replace(AutoScalingResponse, "describe_scaling_activities")
    def describe(_original: Any, response: Any) -> ActionResult:
        name: Optional[str] = response._get_param("AutoScalingGroupName")
        wanted = response._get_param("ActivityIds", [])
        found = [
            activity
            for activity in activities.of_backend(response.autoscaling_backend)
            if (not name or activity.auto_scaling_group.name == name) and (not wanted or activity.activity_id in wanted)
        ]
        start = int(response._get_param("NextToken") or 0)
        limit = response._get_int_param("MaxRecords") or 100
        more = str(start + limit) if len(found) > start + limit else None
        return ActionResult({"Activities": found[start : start + limit], "NextToken": more})
