"""Lifecycle actions: what a lifecycle hook makes a member of an Auto Scaling group wait for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Optional

from moto.autoscaling.exceptions import ValidationError
from moto.autoscaling.models import AutoScalingBackend
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import EmptyResult

from ..membership import everyone
from .patch import add, replace

if TYPE_CHECKING:
    from ..settle import Later
    from . import Options

LAUNCHING = "autoscaling:EC2_INSTANCE_LAUNCHING"
TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"


@dataclass
class Action:
    """One hook of one member that has not been completed."""

    hook: Any
    # How often its time has begun anew.
    heartbeats: int = 0


@dataclass
class Wait:
    """All that a member waits for; `proceed` is told whether every hook said CONTINUE."""

    actions: "dict[str, Action]"
    proceed: "Callable[[bool], None]"


def actions_of(member: Any) -> "dict[str, Action]":
    """What a member waits for, by hook."""
    wait: Optional[Wait] = getattr(member, "wait", None)
    return wait.actions if wait else {}


def wait_for_hooks(later: "Later", member: Any, transition: str, proceed: "Callable[[bool], None]") -> bool:
    """Starts an action for each hook of this transition; says whether there is any to wait for."""
    group = member.auto_scaling_group
    hooks = [
        hook
        for hook in group.autoscaling_backend.lifecycle_hooks.values()
        if hook.auto_scaling_group_name == group.name and hook.lifecycle_transition == transition
    ]
    member.wait = Wait({hook.lifecycle_hook_name: Action(hook) for hook in hooks}, proceed)
    for action in member.wait.actions.values():
        _expire_later(later, member, action)
    return bool(hooks)


def _expire_later(later: "Later", member: Any, action: Action) -> None:
    """The hook's default result is what happens once its time is over."""

    heartbeats = action.heartbeats

    def expire() -> None:
        there = actions_of(member).get(action.hook.lifecycle_hook_name)
        if there is action and action.heartbeats == heartbeats:
            complete(member, action.hook.lifecycle_hook_name, str(action.hook.default_result))

    later.after(float(action.hook.heartbeat_timeout), expire)


def complete(member: Any, hook_name: str, result: str) -> None:
    """One hook is done. ABANDON ends the wait, CONTINUE once the others are done too."""
    wait = member.wait
    wait.actions.pop(hook_name)
    if result == "ABANDON" or not wait.actions:
        wait.actions.clear()
        wait.proceed(result != "ABANDON")


def lifecycle_actions_are_completed(options: "Options") -> None:
    """AWS: CompleteLifecycleAction ends the wait of a member, RecordLifecycleActionHeartbeat lets its time begin anew; what
    nobody waits for is ValidationError. A hook that is deleted lets terminations go on and abandons launches.
    moto: has no such operations. Here it goes by the instance: there are no events that would tell a token.
    """

    @replace(AutoScalingBackend, "delete_lifecycle_hook")
    def delete_lifecycle_hook(original: Any, backend: Any, group_name: str, name: str) -> None:
        original(backend, group_name, name)
        for member in everyone(backend.autoscaling_groups[group_name]):
            action = actions_of(member).get(name)
            if action is not None:
                complete(member, name, "ABANDON" if action.hook.lifecycle_transition == LAUNCHING else "CONTINUE")

    @add(AutoScalingResponse)
    def complete_lifecycle_action(response: Any) -> EmptyResult:
        member, action = _active(response)
        result = response._get_param("LifecycleActionResult")
        if result not in ("CONTINUE", "ABANDON"):
            raise ValidationError("Lifecycle action result must be CONTINUE or ABANDON")
        complete(member, action.hook.lifecycle_hook_name, result)
        return EmptyResult()

    @add(AutoScalingResponse)
    def record_lifecycle_action_heartbeat(response: Any) -> EmptyResult:
        member, action = _active(response)
        action.heartbeats += 1
        _expire_later(options.later, member, action)
        return EmptyResult()


def _active(response: Any) -> "tuple[Any, Action]":
    """The member and the action that a request names."""
    name, hook_name = response._get_param("AutoScalingGroupName"), response._get_param("LifecycleHookName")
    instance_id = response._get_param("InstanceId")
    group = response.autoscaling_backend.autoscaling_groups.get(name)
    if group is None:
        raise ValidationError(f"AutoScalingGroup name not found - AutoScalingGroup '{name}' not found")
    for member in everyone(group):
        action = actions_of(member).get(hook_name)
        if action is not None and member.instance.id == instance_id:
            return member, action
    raise ValidationError(f"No active Lifecycle Action found with instance ID {instance_id}")
