"""Lifecycle actions: what a lifecycle hook makes a member of an Auto Scaling group wait for."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Optional

from moto.autoscaling.exceptions import ValidationError
from moto.autoscaling.models import AutoScalingBackend
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import EmptyResult
from moto.core.utils import utcnow

from ..notices import emit, send
from .patch import add, replace

if TYPE_CHECKING:
    from ..settle import Later
    from . import Options

LAUNCHING = "autoscaling:EC2_INSTANCE_LAUNCHING"
TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"
_KINDS = {LAUNCHING: "launch", TERMINATING: "terminate"}
_FROM_TO = {LAUNCHING: ("EC2", "AutoScalingGroup"), TERMINATING: ("AutoScalingGroup", "EC2")}


@dataclass
class Action:
    """One hook of one member that has not been completed. `beats` counts its heartbeats."""

    hook: Any
    began: float
    token: str = field(default_factory=lambda: str(uuid.uuid4()))
    beats: int = 0


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
    member.wait = Wait({hook.lifecycle_hook_name: Action(hook, later.now()) for hook in hooks}, proceed)
    for action in member.wait.actions.values():
        _announce(group, member, action)
        _expire_later(later, member, action)
    return bool(hooks)


def _expire_later(later: "Later", member: Any, action: Action) -> None:
    """The hook's default result is what happens if no heartbeat comes."""
    beats = action.beats

    def expire() -> None:
        if action.beats == beats and actions_of(member).get(action.hook.lifecycle_hook_name) is action:
            complete(member, action.hook.lifecycle_hook_name, str(action.hook.default_result))

    later.after(float(action.hook.heartbeat_timeout), expire)


def complete(member: Any, hook_name: str, result: str) -> None:
    """One hook is done. ABANDON ends the wait, CONTINUE once the others are done too."""
    wait = member.wait
    wait.actions.pop(hook_name)
    if result == "ABANDON" or not wait.actions:
        wait.actions.clear()
        wait.proceed(result != "ABANDON")


def _announce(group: Any, member: Any, action: Action) -> None:
    """Tells EventBridge, and the hook's own queue if it has one."""
    hook, instance = action.hook, member.instance
    origin, destination = _FROM_TO[hook.lifecycle_transition]
    detail = {
        "LifecycleActionToken": action.token,
        "AutoScalingGroupName": group.name,
        "LifecycleHookName": hook.lifecycle_hook_name,
        "EC2InstanceId": instance.id,
        "LifecycleTransition": hook.lifecycle_transition,
        "Origin": origin,
        "Destination": destination,
    }
    if hook.notification_metadata:
        detail["NotificationMetadata"] = hook.notification_metadata
    kind = f"EC2 Instance-{_KINDS[hook.lifecycle_transition]} Lifecycle Action"
    emit(group.region, "aws.autoscaling", kind, [group.arn], detail)
    if hook.notification_target_arn:
        message = {
            **detail,
            "AccountId": group.account_id,
            "RequestId": str(uuid.uuid4()),
            "Service": "AWS Auto Scaling",
            "Time": utcnow().strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        }
        send(group.region, hook.notification_target_arn, json.dumps(message), "autoscaling.amazonaws.com", group.arn)


def lifecycle_actions_are_completed(options: "Options") -> None:
    """AWS: CompleteLifecycleAction ends the wait of a member, RecordLifecycleActionHeartbeat prolongs it, by
    the token of the event or by the instance; what nobody waits for is ValidationError. A hook that is
    deleted lets terminations go on and abandons launches.
    moto: has neither operation.
    """

    @replace(AutoScalingBackend, "delete_lifecycle_hook")
    def delete_lifecycle_hook(original: Any, backend: Any, group_name: str, name: str) -> None:
        original(backend, group_name, name)
        for member in list(backend.autoscaling_groups[group_name].instance_states):
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
        if options.later.now() - action.began < float(action.hook.global_timeout):
            action.beats += 1
            _expire_later(options.later, member, action)
        return EmptyResult()


def _active(response: Any) -> "tuple[Any, Action]":
    """The member and the action that a request names."""
    name, hook_name = response._get_param("AutoScalingGroupName"), response._get_param("LifecycleHookName")
    token, instance_id = response._get_param("LifecycleActionToken"), response._get_param("InstanceId")
    group = response.autoscaling_backend.autoscaling_groups.get(name)
    if group is None:
        raise ValidationError(f"AutoScalingGroup name not found - AutoScalingGroup '{name}' not found")
    if not token and not instance_id:
        raise ValidationError("Either a lifecycle action token or an instance ID is needed")
    for member in group.instance_states:
        action = actions_of(member).get(hook_name)
        if action is not None and (action.token == token if token else member.instance.id == instance_id):
            return member, action
    wanted = f"token {token}" if token else f"instance ID {instance_id}"
    raise ValidationError(f"No active Lifecycle Action found with {wanted}")
