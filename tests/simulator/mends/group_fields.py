"""Auto Scaling groups: what is kept and described."""

from __future__ import annotations

import copy
from typing import Any, Optional

from moto.autoscaling.exceptions import ValidationError
from moto.autoscaling.models import AutoScalingBackend, FakeAutoScalingGroup, LifecycleHook
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import EmptyResult
from moto.core.utils import camelcase_to_underscores

from .mixed_instances import check_policy, requirements
from .patch import add, replace, replace_property
from .scaling import settle_capacity

# Fields of Create and UpdateAutoScalingGroup that moto drops in one or both of them.
_KEPT = [
    "CapacityRebalance",
    "Context",
    "DefaultCooldown",
    "DefaultInstanceWarmup",
    "DesiredCapacityType",
    "HealthCheckGracePeriod",
    "InstanceMaintenancePolicy",
    "MaxInstanceLifetime",
    "PlacementGroup",
    "ServiceLinkedRoleARN",
    "TerminationPolicies",
]

_METRICS = [
    "GroupAndWarmPoolDesiredCapacity",
    "GroupAndWarmPoolTotalCapacity",
    "GroupDesiredCapacity",
    "GroupInServiceCapacity",
    "GroupInServiceInstances",
    "GroupMaxSize",
    "GroupMinSize",
    "GroupPendingCapacity",
    "GroupPendingInstances",
    "GroupStandbyCapacity",
    "GroupStandbyInstances",
    "GroupTerminatingCapacity",
    "GroupTerminatingInstances",
    "GroupTotalCapacity",
    "GroupTotalInstances",
    "WarmPoolDesiredCapacity",
    "WarmPoolMinSize",
    "WarmPoolPendingCapacity",
    "WarmPoolTerminatingCapacity",
    "WarmPoolTotalCapacity",
    "WarmPoolWarmedCapacity",
]


def settings_are_kept() -> None:
    """AWS: every setting of a group is described as it was set, by create or by update; what an update
    does not name stays.
    moto: drops MaxInstanceLifetime and others, and updates drop most settings.
    """
    for operation in ("create_auto_scaling_group", "update_auto_scaling_group"):
        _keep_settings(operation)


def _keep_settings(operation: str) -> None:
    @replace(AutoScalingResponse, operation)
    def keep(original: Any, response: Any) -> Any:
        answer = original(response)
        group = response.autoscaling_backend.autoscaling_groups[response._get_param("AutoScalingGroupName")]
        for field in _KEPT:
            value = response._get_param(field)
            if value is not None:
                setattr(group, _attribute(field), value)
        for hook in response._get_param("LifecycleHookSpecificationList", []):
            put_hook(response.autoscaling_backend, group.name, hook)
        return answer


def _attribute(field: str) -> str:
    return "service_linked_role_arn" if field == "ServiceLinkedRoleARN" else camelcase_to_underscores(field)


def a_mixed_instances_policy_stays() -> None:
    """AWS: an update without a policy leaves the one there is; one with a template takes its place, and
    a group describes with one of the two; what the distribution leaves out has defaults, and in an update
    what it had; an empty price is none.
    moto: forgets the policy at every update and describes the template beside it.
    """

    @replace(FakeAutoScalingGroup, "update")
    def update(original: Any, group: Any, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("mixed_instances_policy"):
            had = (group.mixed_instances_policy or {}).get("InstancesDistribution")
            _fill_distribution(kwargs["mixed_instances_policy"], had)
        elif not kwargs.get("launch_template"):
            kwargs["mixed_instances_policy"] = _as_if_asked(group.mixed_instances_policy)
        original(group, *args, **kwargs)

    @replace(AutoScalingBackend, "create_auto_scaling_group")
    def create(original: Any, backend: Any, **kwargs: Any) -> Any:
        if kwargs.get("mixed_instances_policy"):
            _fill_distribution(kwargs["mixed_instances_policy"])
        return original(backend, **kwargs)

    described = FakeAutoScalingGroup.launch_template.fget

    @replace_property(FakeAutoScalingGroup, "launch_template")
    def launch_template(group: Any) -> "Optional[dict[str, Any]]":
        return None if group.mixed_instances_policy else described(group)


def _as_if_asked(policy: "Optional[dict[str, Any]]") -> "Optional[dict[str, Any]]":
    """A described policy as a request may have it: naming its template once."""
    if not policy:
        return policy
    copied = copy.deepcopy(policy)
    copied["LaunchTemplate"]["LaunchTemplateSpecification"].pop("LaunchTemplateName", None)
    return copied


def _fill_distribution(policy: "dict[str, Any]", had: "Optional[dict[str, Any]]" = None) -> None:
    distribution = policy.setdefault("InstancesDistribution", {})
    check_policy(policy)
    for field, value in (had or {}).items():
        distribution.setdefault(field, value)
    ordered = "prioritized" if requirements(policy) is None else "lowest-price"
    distribution.setdefault("OnDemandAllocationStrategy", ordered)
    distribution.setdefault("OnDemandBaseCapacity", 0)
    distribution.setdefault("OnDemandPercentageAboveBaseCapacity", 100)
    if distribution.setdefault("SpotAllocationStrategy", "lowest-price") == "lowest-price":
        distribution.setdefault("SpotInstancePools", 2)
    else:
        distribution.pop("SpotInstancePools", None)
    if not distribution.get("SpotMaxPrice"):
        distribution.pop("SpotMaxPrice", None)


def metrics_are_enabled_and_disabled() -> None:
    """AWS: EnableMetricsCollection adds the named metrics, or all; DisableMetricsCollection takes away.
    moto: replaces what there was, knows no `all`, and has no way back.
    """

    @replace(FakeAutoScalingGroup, "enable_metrics_collection")
    def enable(_original: Any, group: Any, metrics: Any) -> None:
        group.metrics = sorted({*group.metrics, *(metrics or _METRICS)})

    @add(AutoScalingResponse)
    def disable_metrics_collection(response: Any) -> EmptyResult:
        name = response._get_param("AutoScalingGroupName")
        group = response.autoscaling_backend.autoscaling_groups.get(name)
        if group is None:
            raise ValidationError(f"AutoScalingGroup name not found - AutoScalingGroup '{name}' not found")
        unwanted = response._get_param("Metrics") or _METRICS
        group.metrics = [metric for metric in group.metrics if metric not in unwanted]
        return EmptyResult()


def resumed_processes_catch_up() -> None:
    """AWS: a group whose Launch or Terminate is resumed goes to its desired capacity; suspended
    processes say since when.
    moto: does what was asked for while they were suspended at once, and then nothing.
    """

    @replace(AutoScalingBackend, "resume_processes")
    def resume(original: Any, backend: Any, group_name: str, processes: Any) -> None:
        original(backend, group_name, processes)
        settle_capacity(backend.autoscaling_groups[group_name])

    getter = FakeAutoScalingGroup.suspended_processes.fget

    def suspended(group: Any) -> Any:
        found = sorted(getter(group), key=lambda process: process["ProcessName"])
        return [{**process, "SuspensionReason": "User suspended"} for process in found]

    FakeAutoScalingGroup.suspended_processes = FakeAutoScalingGroup.suspended_processes.getter(suspended)


def lifecycle_hooks_say_what_they_were_told() -> None:
    """AWS: a hook has the target, role and metadata it was put with, or none; its group has to exist,
    and so has a hook that is deleted.
    moto: invents a queue and a role.
    """

    @replace(AutoScalingResponse, "put_lifecycle_hook")
    def put(_original: Any, response: Any) -> EmptyResult:
        put_hook(response.autoscaling_backend, response._get_param("AutoScalingGroupName"), dict(response.params))
        return EmptyResult()

    @replace(AutoScalingBackend, "delete_lifecycle_hook")
    def delete(original: Any, backend: Any, group_name: str, name: str) -> None:
        if f"{group_name}_{name}" not in backend.lifecycle_hooks:
            raise ValidationError(f"No Lifecycle Hook found with name {name} for Auto Scaling Group {group_name}")
        original(backend, group_name, name)


def put_hook(backend: Any, group_name: str, fields: "dict[str, Any]") -> LifecycleHook:
    """Makes or changes a hook of an existing group."""
    if group_name not in backend.autoscaling_groups:
        raise ValidationError(f"AutoScalingGroup name not found - AutoScalingGroup '{group_name}' not found")
    name, timeout = fields["LifecycleHookName"], fields.get("HeartbeatTimeout")
    old = backend.lifecycle_hooks.get(f"{group_name}_{name}")
    hook = LifecycleHook(name, group_name, fields.get("LifecycleTransition"), timeout, fields.get("DefaultResult"))
    if old is not None:
        hook.lifecycle_transition = hook.lifecycle_transition or old.lifecycle_transition
    hook.lifecycle_hook_name = name
    hook.role_arn = fields.get("RoleARN")
    hook.notification_target_arn = fields.get("NotificationTargetARN")
    hook.notification_metadata = fields.get("NotificationMetadata")
    hook.global_timeout = min(100 * int(hook.heartbeat_timeout), 172800)
    backend.lifecycle_hooks[f"{group_name}_{name}"] = hook
    return hook
