"""Warm pools: instances beside an Auto Scaling group that were started once and wait, stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from moto.autoscaling.exceptions import AutoscalingClientError, ValidationError
from moto.autoscaling.models import AutoScalingBackend, FakeAutoScalingGroup, FakeWarmPool, InstanceState
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import ActionResult, EmptyResult

from .. import activities
from ..membership import everyone, forget, is_leaving, pool
from .lifecycle import leave_group, record_join
from .patch import replace

if TYPE_CHECKING:
    from . import Options

_PREPARE = "an instance was launched into the warm pool in response to a difference between desired and actual capacity"
_SHRINK = "an instance was taken out of the warm pool in response to a difference between desired and actual capacity"
_GONE = "the warm pool was deleted"


def wanted_size(group: Any) -> int:
    """AWS (user guide, "Decrease latency for applications with long boot times using warm pools"): the group's maximum, or
    MaxGroupPreparedCapacity in its place, less the desired capacity, but at least MinSize.
    """
    of = getattr(group, "warm_pool", None)
    if of is None or getattr(of, "status", None) is not None:
        return 0
    most = group.max_size if of.max_group_prepared_capacity is None else of.max_group_prepared_capacity
    return max(of.min_size, most - (group.desired_capacity or 0))


def settle_pool(group: Any) -> None:
    """Launches or terminates until the pool has its size; a pool that was deleted is gone with its last instance."""
    of = getattr(group, "warm_pool", None)
    if of is None:
        return
    if getattr(of, "status", None) is not None:
        if not pool(group):
            group.warm_pool = None
        return
    suspended = {process["ProcessName"] for process in group.suspended_processes}
    staying = [state for state in pool(group) if not is_leaving(state)]
    missing = wanted_size(group) - len(staying)
    if missing > 0 and "Launch" not in suspended:
        for _ in range(missing):
            _launch(group)
    if missing < 0 and "Terminate" not in suspended:
        _remove(group, staying[missing:], _SHRINK)


def _launch(group: Any) -> None:
    from .scaling import launch_instance

    instance = launch_instance(group, group.get_propagated_tags())
    member = InstanceState(instance, "Warmed:Pending")
    pool(group).append(member)
    record_join(member, _PREPARE)
    if instance.state == "running":
        instance.stop()
        member.lifecycle_state = "Warmed:Stopped"


def _remove(group: Any, members: "list[Any]", cause: str) -> None:
    plain = [state for state in members if not hasattr(state.instance, "machine")]
    forget(group, plain)
    for state in plain:
        activities.end(activities.begin(group, state.instance, "Terminating", cause))
    if plain:
        group.ec2_backend.terminate_instances([state.instance.id for state in plain])
    for state in members:
        if state not in plain:
            leave_group(state, cause)


def draw_from_pool(group: Any, count: int, cause: str) -> int:
    """Starts up to so many stopped instances of the pool, which become members of the group; says how many."""
    ready = [state for state in pool(group) if state.lifecycle_state == "Warmed:Stopped"][:count]
    for state in ready:
        forget(group, [state])
        state.instance.start()
        state.lifecycle_state = "Pending" if state.instance.state == "pending" else "InService"
        group.instance_states.append(state)
        record_join(state, cause)
    return len(ready)


def warm_pools_have_instances(options: "Options") -> None:
    """AWS: a group with a pool has instances beside its own, which are described by DescribeWarmPool and
    DescribeAutoScalingInstances, not with the group, and which are used first when the group grows. -1 takes the
    limit away. A pool with instances is deleted by force only, and is PendingDelete until they are gone. A group of spot
    instances or with a mixed instances policy has none (SDKs' reference of PutWarmPool until 2025).
    moto: keeps the configuration alone.
    """
    later = options.later

    @replace(AutoScalingResponse, "put_warm_pool")
    def put(_original: Any, response: Any) -> EmptyResult:
        group = _group(response)
        old = group.warm_pool
        if getattr(old, "status", None) is not None:
            raise ValidationError("The warm pool of the group is being deleted")
        _check_launch(group)
        most = response._get_int_param("MaxGroupPreparedCapacity", None)
        least = response._get_int_param("MinSize", None)
        if most is None and old is not None:
            most = old.max_group_prepared_capacity
        if least is None and old is not None:
            least = old.min_size
        reuse = response._get_param("InstanceReusePolicy") or {"ReuseOnScaleIn": False}
        group.warm_pool = FakeWarmPool(
            None if most == -1 else most, least, response._get_param("PoolState"), reuse
        )
        settle_pool(group)
        return EmptyResult()

    @replace(AutoScalingResponse, "describe_warm_pool")
    def describe(_original: Any, response: Any) -> ActionResult:
        group = _group(response)
        found = pool(group)
        start = int(response._get_param("NextToken") or 0)
        limit = response._get_int_param("MaxRecords") or 50
        more = str(start + limit) if len(found) > start + limit else None
        of = {"WarmPoolConfiguration": group.warm_pool, "Instances": found[start : start + limit], "NextToken": more}
        return ActionResult(of)

    @replace(AutoScalingResponse, "delete_warm_pool")
    def delete(_original: Any, response: Any) -> EmptyResult:
        group = _group(response)
        if group.warm_pool is None:
            raise ValidationError(f"No warm pool found for Auto Scaling Group {group.name}")
        if pool(group) and not response._get_bool_param("ForceDelete", False):
            message = "The warm pool has instances: delete it with ForceDelete"
            raise AutoscalingClientError("ResourceInUse", message)
        group.warm_pool.status = "PendingDelete"
        _remove(group, list(pool(group)), _GONE)
        later.add(lambda: settle_pool(group))
        return EmptyResult()

    @replace(AutoScalingBackend, "describe_auto_scaling_instances")
    def instances(_original: Any, backend: Any, instance_ids: "list[str]") -> "list[Any]":
        states = [state for group in backend.autoscaling_groups.values() for state in everyone(group)]
        return [state for state in states if not instance_ids or state.instance.id in instance_ids]

    def size(group: Any) -> "Optional[int]":
        return len(pool(group)) if getattr(group, "warm_pool", None) is not None else None

    FakeAutoScalingGroup.warm_pool_size = property(size)


def _group(response: Any) -> Any:
    name = response._get_param("AutoScalingGroupName")
    group = response.autoscaling_backend.autoscaling_groups.get(name)
    if group is None:
        raise ValidationError(f"AutoScalingGroup name not found - AutoScalingGroup '{name}' not found")
    return group


def _check_launch(group: Any) -> None:
    if group.mixed_instances_policy:
        raise ValidationError("You can't add a warm pool to an Auto Scaling group that has a mixed instances policy.")
    template = group.ec2_launch_template
    if template is not None and template.get_version(group.launch_template_version).data.get("InstanceMarketOptions"):
        raise ValidationError("You can't add a warm pool to an Auto Scaling group that requests Spot Instances.")
