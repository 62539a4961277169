"""Auto Scaling groups: what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from moto.autoscaling.exceptions import AutoscalingClientError, ValidationError
from moto.autoscaling.models import AutoScalingBackend, FakeAutoScalingGroup
from moto.core.exceptions import ServiceException
from moto.ec2.exceptions import (
    EC2ClientError,
    InvalidLaunchTemplateVersionNotFound,
    InvalidSecurityGroupNotFoundError,
)
from moto.ec2.utils import filter_iam_instance_profiles

from .iam import unknown_profile
from .mixed_instances import check_market
from .patch import replace
from .scaling import remove_by_force
from .visibility import version_name

if TYPE_CHECKING:
    from ..settle import Later
    from . import Options


def group_names_are_unique() -> None:
    """AWS: a second group of the same name is refused with AlreadyExists.
    moto: replaces the first one and orphans its instances.
    """

    @replace(AutoScalingBackend, "create_auto_scaling_group")
    def create(original: Any, backend: Any, **kwargs: Any) -> Any:
        if kwargs["name"] in backend.autoscaling_groups:
            message = "AutoScalingGroup by this name already exists - A group with the name {} already exists"
            raise AutoscalingClientError("AlreadyExists", message.format(kwargs["name"]))
        return original(backend, **kwargs)


def sizes_are_checked() -> None:
    """AWS: min <= desired <= max, or ValidationError; a change of min or max moves desired with it.
    moto: takes any sizes.
    """

    @replace(AutoScalingBackend, "create_auto_scaling_group")
    def create(original: Any, backend: Any, **kwargs: Any) -> Any:
        _check_sizes(kwargs["min_size"], kwargs["max_size"], kwargs["desired_capacity"])
        return original(backend, **kwargs)

    @replace(AutoScalingBackend, "update_auto_scaling_group")
    def update(original: Any, backend: Any, **kwargs: Any) -> Any:
        group = _group(backend, kwargs["name"])
        smallest = group.min_size if kwargs["min_size"] is None else kwargs["min_size"]
        largest = group.max_size if kwargs["max_size"] is None else kwargs["max_size"]
        _check_sizes(smallest, largest, kwargs["desired_capacity"])
        if kwargs["desired_capacity"] is None:
            kwargs["desired_capacity"] = min(max(group.desired_capacity, smallest), largest)
        return original(backend, **kwargs)

    @replace(AutoScalingBackend, "set_desired_capacity")
    def set_desired_capacity(original: Any, backend: Any, group_name: str, desired: Any) -> Any:
        group = _group(backend, group_name)
        if desired is not None and not group.min_size <= desired <= group.max_size:
            side, bound = ("above max", group.max_size) if desired > group.max_size else ("below min", group.min_size)
            message = f"New SetDesiredCapacity value {desired} is {side} value {bound} for the AutoScalingGroup."
            raise ValidationError(message)
        return original(backend, group_name, desired)


def _check_sizes(smallest: int, largest: int, desired: Optional[int]) -> None:
    if smallest > largest:
        raise ValidationError(f"Max bound, {largest}, must be greater than or equal to min bound, {smallest}")
    if desired is not None and not smallest <= desired <= largest:
        message = f"Desired capacity:{desired} must be between the specified min size:{smallest} and max size:{largest}"
        raise ValidationError(message)


def _group(backend: Any, name: str) -> Any:
    if name not in backend.autoscaling_groups:
        raise ValidationError(f"AutoScalingGroup name not found - AutoScalingGroup '{name}' not found")
    return backend.autoscaling_groups[name]


def unknown_groups_are_refused() -> None:
    """AWS: ValidationError for a group that is not there, whatever is asked of it.
    moto: HTTP 500 for most operations.
    """
    for name in (
        "attach_load_balancer_target_groups",
        "detach_load_balancer_target_groups",
        "detach_instances",
        "suspend_processes",
        "resume_processes",
        "set_instance_protection",
        "enable_metrics_collection",
    ):
        _refuse_unknown(name)

    for name in ("create_or_update_tags", "delete_tags"):
        _refuse_unknown_tagged(name)


def _refuse_unknown(name: str) -> None:
    @replace(AutoScalingBackend, name)
    def checked(original: Any, backend: Any, group_name: str, *args: Any, **kwargs: Any) -> Any:
        _group(backend, group_name)
        return original(backend, group_name, *args, **kwargs)


def _refuse_unknown_tagged(name: str) -> None:
    @replace(AutoScalingBackend, name)
    def checked(original: Any, backend: Any, tags: Any) -> Any:
        for tag in tags:
            _group(backend, tag["ResourceId"])
        return original(backend, tags)


# What Auto Scaling says before EC2's words about a template (eksctl-io/eksctl#1989, ryanmurakami/hbfl#58).
_TEMPLATE = "You must use a valid fully-formed launch template. "


def groups_name_what_exists(options: "Options") -> None:
    """AWS: a group's template has to be launchable (image, type, key, profile, groups), its subnets and
    target groups have to exist, or ValidationError before anything is launched. What was made a moment
    ago does not exist yet for Auto Scaling (`POST /_simulator/lag`).
    moto: says so in EC2's words or not at all, having launched some.
    """
    later = options.later

    @replace(FakeAutoScalingGroup, "_set_launch_configuration")
    def set_launch(original: Any, group: Any, config: Any, template: Any, mixed_instances_policy: Any) -> None:
        _in_our_words(_TEMPLATE, original, group, config, template, mixed_instances_policy)
        if group.ec2_launch_template is not None and (template or mixed_instances_policy):
            _in_our_words(_TEMPLATE, _check_template, group, later)

    @replace(FakeAutoScalingGroup, "_set_azs_and_vpcs")
    def set_zones(original: Any, group: Any, *args: Any, **kwargs: Any) -> None:
        _in_our_words("", original, group, *args, **kwargs)

    @replace(AutoScalingBackend, "create_auto_scaling_group")
    def create(original: Any, backend: Any, **kwargs: Any) -> Any:
        _check_target_groups(backend, kwargs["target_group_arns"], later)
        return original(backend, **kwargs)

    @replace(AutoScalingBackend, "attach_load_balancer_target_groups")
    def attach(original: Any, backend: Any, group_name: str, arns: Any) -> Any:
        _check_target_groups(backend, arns, later)
        return original(backend, group_name, arns)


def _in_our_words(prefix: str, check: Any, *args: Any, **kwargs: Any) -> None:
    """Runs a check that speaks in another service's errors; makes ValidationError of them."""
    try:
        check(*args, **kwargs)
    except AutoscalingClientError:
        raise
    except ServiceException as error:
        raise ValidationError(prefix + error.message) from error


def _check_template(group: Any, later: "Later") -> None:
    """Raises what EC2 would say to a launch from the group's template."""
    backend, template = group.ec2_backend, group.ec2_launch_template
    version = template.get_version(group.launch_template_version)
    if later.is_unseen(version_name(template, version.number)):
        raise InvalidLaunchTemplateVersionNotFound(template_id=template.id, version=version.number)
    data = version.data
    check_market(group, data)
    backend.describe_images(ami_ids=[data.get("ImageId") or "ami-none"])
    overrides = ((group.mixed_instances_policy or {}).get("LaunchTemplate") or {}).get("Overrides") or []
    types = [override["InstanceType"] for override in overrides if "InstanceType" in override] or [
        data.get("InstanceType")
    ]
    backend.describe_instance_types(types, {})
    key = data.get("KeyName")
    if key and (key not in backend.key_pairs or later.is_unseen(key)):
        raise EC2ClientError("InvalidKeyPair.NotFound", f"The key pair '{key}' does not exist")
    interface = (data.get("NetworkInterfaces") or [{}])[0]
    groups = list(data.get("SecurityGroupIds") or []) + list(interface.get("Groups") or [])
    for named in groups:
        if backend.get_security_group_from_id(named) is None or later.is_unseen(named):
            raise InvalidSecurityGroupNotFoundError(named)
    profile = data.get("IamInstanceProfile") or {}
    if profile:
        _check_profile(backend, profile, later)


def _check_profile(backend: Any, profile: "dict[str, str]", later: "Later") -> None:
    arn, name = profile.get("Arn"), profile.get("Name")
    try:
        found = filter_iam_instance_profiles(backend.account_id, backend.partition, arn, name)
    except ServiceException as error:
        raise unknown_profile(name or arn) from error
    if later.is_unseen(found.name):
        raise unknown_profile(name or arn)


def _check_target_groups(backend: Any, arns: Any, later: "Later") -> None:
    for arn in arns or []:
        if arn not in backend.elbv2_backend.target_groups or later.is_unseen(arn):
            message = "Provided Target Groups may not be valid. Please ensure they exist and try again."
            raise ValidationError(message)


def a_deleted_target_group_stops_nothing() -> None:
    """AWS: a target group that was deleted before its Auto Scaling group stops no launch; members in
    service are registered in the others, unless that is suspended.
    moto: refuses every change of capacity with TargetGroupNotFound.
    """

    @replace(AutoScalingBackend, "update_attached_target_groups")
    def update(_original: Any, backend: Any, group_name: str) -> None:
        group = backend.autoscaling_groups[group_name]
        if any(process["ProcessName"] == "AddToLoadBalancer" for process in group.suspended_processes):
            return
        ready = [state.instance for state in group.active_instances() if state.instance.state == "running"]
        for target_group in _known_target_groups(backend, group.target_group_arns):
            new = [instance.id for instance in ready if instance.id not in target_group.targets]
            target_group.register([{"Id": identity, "Port": target_group.port} for identity in new])

    @replace(AutoScalingBackend, "detach_load_balancer_target_groups")
    def detach(_original: Any, backend: Any, group_name: str, arns: "list[str]") -> None:
        group = backend.autoscaling_groups[group_name]
        group.target_group_arns = [arn for arn in group.target_group_arns if arn not in arns]
        members = {state.instance.id for state in group.instance_states}
        for target_group in _known_target_groups(backend, arns):
            target_group.deregister([{"Id": identity} for identity in members & set(target_group.targets)])


def _known_target_groups(backend: Any, arns: "list[str]") -> "list[Any]":
    known = backend.elbv2_backend.target_groups
    return [known[arn] for arn in arns if arn in known]


def a_group_with_instances_stays() -> None:
    """AWS: ResourceInUse while a group has instances, unless ForceDelete is said: then they are
    terminated, protected or not; its lifecycle hooks go with it.
    moto: terminates them without being told, except protected ones, and keeps the hooks.
    """
    from moto.autoscaling.responses import AutoScalingResponse

    @replace(AutoScalingResponse, "delete_auto_scaling_group")
    def delete(original: Any, response: Any) -> Any:
        backend = response.autoscaling_backend
        group = _group(backend, response._get_param("AutoScalingGroupName"))
        if group.instance_states and not response._get_bool_param("ForceDelete", False):
            message = (
                "You cannot delete an AutoScalingGroup while there are instances or pending Spot instance "
                "request(s) still in the group."
            )
            raise AutoscalingClientError("ResourceInUse", message)
        remove_by_force(group)
        group.min_size = 0
        for key, hook in list(backend.lifecycle_hooks.items()):
            if hook.auto_scaling_group_name == group.name:
                backend.lifecycle_hooks.pop(key)
        return original(response)
