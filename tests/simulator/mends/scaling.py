"""What an Auto Scaling group does with instances: launch, remember, replace, remove."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Optional

from moto.autoscaling.exceptions import ValidationError
from moto.autoscaling.models import (
    ASG_NAME_TAG,
    AutoScalingBackend,
    FakeAutoScalingGroup,
    InstanceState,
    TerminateInstanceActivity,
)
from moto.elbv2.models import elbv2_backends

from .. import activities
from ..membership import counts, everyone, forget, pool
from .lifecycle import cut_short, leave_group, record_join, terminated_by_ec2
from .patch import replace, replace_property
from .warm_pools import draw_from_pool, settle_pool

if TYPE_CHECKING:
    from . import Options


# Why a group launches.
_LACK = "an instance was started in response to a difference between desired and actual capacity"


def instances_are_launched_as_the_template_says(options: "Options") -> None:
    """AWS: each instance goes to the zone that has the fewest, is launched from the group's version of
    the template, of the first type of a mixed instances policy, which also says what is spot. What the
    account's quota of vCPUs does not allow is a failed activity (`POST /_simulator/vcpus`).
    moto: launches all in the first subnet, from the default version's tags, with a random zone, always
    of the template's type and on demand.
    """

    @replace(FakeAutoScalingGroup, "replace_autoscaling_group_instances")
    def launch(original: Any, group: Any, count: int, tags: "dict[str, str]") -> None:
        if group.ec2_launch_template is None:
            return original(group, count, tags)
        for _ in range(count):
            limit = options.later.vcpus
            if limit is not None and _vcpus_with_one_more(group) > limit:
                activities.fail_launch(group, _LACK, _QUOTA.format(limit=limit))
                break
            _launch_one(group, tags)
        return None


# EC2's VcpuLimitExceeded, as Auto Scaling quotes it.
_QUOTA = (
    "You have requested more vCPU capacity than your current vCPU limit of {limit} allows for the instance bucket that the "
    "specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to "
    "this limit. Launching EC2 instance failed."
)


def _vcpus_with_one_more(group: Any) -> int:
    """The vCPUs of all instances that run, and of the one that the group would launch next."""
    version = group.ec2_launch_template.get_version(group.launch_template_version)
    running = [
        instance.instance_type
        for reservation in group.ec2_backend.all_reservations()
        for instance in reservation.instances
        if instance.state in ("pending", "running")
    ]
    types = [*running, _first_type(group) or version.instance_type]
    known = group.ec2_backend.describe_instance_types(sorted(set(types)), {})
    vcpus = {of["InstanceType"]: of["VCpuInfo"]["DefaultVCpus"] for of in known}
    return sum(vcpus[one] for one in types)


def _launch_one(group: Any, tags: "dict[str, str]") -> Any:
    """Launches one instance and makes it a member."""
    instance = launch_instance(group, tags)
    stage = "Pending" if instance.state == "pending" else "InService"
    protected = group.new_instances_protected_from_scale_in
    member = InstanceState(instance, stage, protected_from_scale_in=protected)
    group.instance_states.append(member)
    record_join(member, _LACK)
    return instance


def launch_instance(group: Any, tags: "dict[str, str]") -> Any:
    """Launches an instance for a group."""
    version = group.ec2_launch_template.get_version(group.launch_template_version)
    named = {"LaunchTemplateId": group.ec2_launch_template.id, "Version": str(version.number)}
    reservation = group.ec2_backend.run_instances(
        version.image_id,
        1,
        version.user_data,
        [],
        instance_type=_first_type(group) or version.instance_type,
        is_instance_type_default=False,
        region_name=group.region,
        launch_template=named,
        subnet_id=_emptiest_subnet(group),
        tags={"instance": {**version.instance_tags, **tags, ASG_NAME_TAG: group.name}},
        security_group_ids=list(version.data.get("SecurityGroupIds", [])),
        associate_public_ip=None,
        instance_market_options="spot" if _spot_is_next(group) else None,
    )
    instance = reservation.instances[0]
    instance.autoscaling_group = group
    instance.launched_from = {**named, "LaunchTemplateName": group.ec2_launch_template.name}
    return instance


def _emptiest_subnet(group: Any) -> Optional[str]:
    """The subnet with the fewest members, the first among equals."""
    if not group.vpc_zone_identifier:
        return None
    members = [state.instance.subnet_id for state in group.instance_states]
    return min((subnet.strip() for subnet in group.vpc_zone_identifier.split(",")), key=members.count)


def _first_type(group: Any) -> Optional[str]:
    """The first type of the mixed instances policy's overrides."""
    overrides = ((group.mixed_instances_policy or {}).get("LaunchTemplate") or {}).get("Overrides") or []
    return overrides[0].get("InstanceType") if overrides else None


def _spot_is_next(group: Any) -> bool:
    """Whether the policy's share of on-demand instances is filled, so that the next one is a spot instance."""
    distribution = (group.mixed_instances_policy or {}).get("InstancesDistribution") or {}
    base = int(distribution.get("OnDemandBaseCapacity", 0))
    percent = int(distribution.get("OnDemandPercentageAboveBaseCapacity", 100))
    above = max(0, len(group.instance_states) + 1 - base)
    wanted = min(base, len(group.instance_states) + 1) + math.ceil(above * percent / 100)
    return sum(state.instance.lifecycle != "spot" for state in group.instance_states) >= wanted


def instances_remember_the_version_they_were_launched_from() -> None:
    """AWS: a member describes with the template version it was launched from; rolling updates rest on it.
    moto: says the template's default version of now.
    """

    @replace_property(InstanceState, "launch_template")
    def launch_template(state: Any) -> "Optional[dict[str, Any]]":
        return getattr(state.instance, "launched_from", None)


def capacity_follows_what_is_asked() -> None:
    """AWS: a group launches or terminates until it has what is desired, and does neither while that
    process is suspended; the instances that go are deregistered from its target groups.
    moto: takes any members, in no order, and leaves them in the target groups.
    """

    @replace(FakeAutoScalingGroup, "set_desired_capacity")
    def set_desired_capacity(_original: Any, group: Any, new_capacity: Optional[int]) -> None:
        group.desired_capacity = group.min_size if new_capacity is None else new_capacity
        settle_capacity(group)


def settle_capacity(group: Any) -> None:
    """Launches or terminates until the group has its desired capacity."""
    suspended = {process["ProcessName"] for process in group.suspended_processes}
    missing = (group.desired_capacity or 0) - sum(counts(state) for state in group.instance_states)
    if missing > 0 and "Launch" not in suspended:
        missing -= draw_from_pool(group, missing, _LACK)
        group.replace_autoscaling_group_instances(missing, group.get_propagated_tags())
    if missing < 0 and "Terminate" not in suspended:
        surplus = [state for state in _oldest_first(group) if counts(state) and not state.protected_from_scale_in]
        remove(group, surplus[:-missing])
    settle_pool(group)
    backend = group.autoscaling_backend
    if group.name in backend.autoscaling_groups:
        backend.update_attached_elbs(group.name)
        backend.update_attached_target_groups(group.name)


def remove(group: Any, states: "list[Any]") -> None:
    """Terminates these members; they are members no longer, or no longer than their machines are there."""
    cause = "an instance was taken out of service in response to a difference between desired and actual capacity"
    behind = [state for state in states if hasattr(state.instance, "machine")]
    plain = [state for state in states if state not in behind]
    if plain:
        forget(group, plain)
        for state in plain:
            activities.end(activities.begin(group, state.instance, "Terminating", cause))
        group.ec2_backend.terminate_instances([state.instance.id for state in plain])
    for state in behind:
        leave_group(state, cause)


def remove_by_force(group: Any) -> None:
    """Terminates every member of a group that goes, without waiting for anything."""
    group.warm_pool = None
    for state in everyone(group):
        if hasattr(state.instance, "machine"):
            cut_short(state)
    forget(group, [state for state in everyone(group) if hasattr(state.instance, "machine")])
    remove(group, everyone(group))


def _oldest_first(group: Any) -> "list[Any]":
    """From the fullest zone first, the oldest first within it, as the default policy does."""
    zones = [state.availability_zone for state in group.instance_states]
    return sorted(group.instance_states, key=lambda state: -zones.count(state.availability_zone))


def a_detached_member_leaves_slowly(options: "Options") -> None:
    """AWS: a member that is detached is `Detaching` while its target groups drain it, then is none any more; only members in
    service or on standby can be detached (ValidationError).
    moto: forgets it at once, whatever state it is in.
    """

    @replace(AutoScalingBackend, "detach_instances")
    def detach(original: Any, backend: Any, group_name: str, instance_ids: "list[str]", should_decrement: bool) -> Any:
        group = backend.autoscaling_groups[group_name]
        leaving = [state for state in group.instance_states if state.instance.id in instance_ids]
        for state in leaving:
            if state.lifecycle_state not in ("InService", "Standby"):
                raise ValidationError(f"The instance {state.instance.id} is not in InService or Standby.")
        answer = original(backend, group_name, instance_ids, should_decrement)
        for state in leaving:
            state.lifecycle_state = "Detaching"
        group.instance_states = [*group.instance_states, *leaving]
        elbv2_backends[group.account_id][group.region].notify_terminate_instances(instance_ids)

        def forget() -> None:
            group.instance_states = [state for state in group.instance_states if state not in leaving]
            for state in leaving:
                state.instance.autoscaling_group = None

        options.later.add(forget)
        return answer


def a_terminated_member_is_replaced() -> None:
    """AWS: TerminateInstanceInAutoScalingGroup ends the instance as a member (it keeps its tags), then
    replaces it, or not, as asked; not one of a warm pool; a member that EC2 terminated is replaced and registered too.
    moto: detaches it first, so it loses the group's tag; the replacement is in no target group.
    """

    @replace(AutoScalingBackend, "terminate_instance")
    def terminate_instance(_original: Any, backend: Any, instance_id: str, should_decrement: bool) -> Any:
        group, state = _member(backend, instance_id)
        before = group.desired_capacity
        if should_decrement and before - 1 < group.min_size:
            raise ValidationError(
                f"Currently, desiredSize equals minSize ({group.min_size}). "
                "Terminating instance without replacement will violate group's min size constraint. "
                "Either set shouldDecrementDesiredCapacity flag to false or lower group's min size."
            )
        group.desired_capacity = before - 1 if should_decrement else before
        remove(group, [state])
        settle_capacity(group)
        return TerminateInstanceActivity(state.instance, before)

    @replace(AutoScalingBackend, "notify_terminate_instances")
    def notify(_original: Any, backend: Any, instance_ids: "list[str]") -> None:
        for group in list(backend.autoscaling_groups.values()):
            ended = [state for state in everyone(group) if state.instance.id in instance_ids]
            plain = [state for state in ended if not hasattr(state.instance, "machine")]
            if plain:
                forget(group, plain)
                settle_capacity(group)
            for state in ended:
                if state not in plain:
                    terminated_by_ec2(state)


def _member(backend: Any, instance_id: str) -> "tuple[Any, Any]":
    """The group and the member with this id."""
    for group in backend.autoscaling_groups.values():
        for state in group.instance_states:
            if state.instance.id == instance_id:
                return group, state
        if any(state.instance.id == instance_id for state in pool(group)):
            raise ValidationError(f"The instance {instance_id} is in a warm pool")
    raise ValidationError(f"Instance Id not found - No managed instance found for instance ID: {instance_id}")
