"""With `--machines`: targets are as healthy as they are reported to be."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from moto.elbv2.models import ELBv2Backend, FakeHealthStatus, FakeTargetGroup

from ..target_states import state_of
from .patch import replace

if TYPE_CHECKING:
    from . import Options

_DELAY = "deregistration_delay.timeout_seconds"


def targets_have_the_health_that_is_reported(options: "Options") -> None:
    """AWS: a target is `initial` until its health checks have an answer, `unused` while no listener leads to
    it, `draining` for the group's deregistration delay once it is deregistered or its instance goes.
    moto: is healthy at once, and gone at once.
    """
    if not options.machines:
        return

    @replace(FakeTargetGroup, "health_for")
    def health_for(original: Any, group: Any, target: "dict[str, Any]", ec2_backend: Any) -> Any:
        known = group.targets.get(target["Id"]) or group.__dict__.get("draining", {}).get(target["Id"])
        if known is None:
            return original(group, target, ec2_backend)
        return FakeHealthStatus(known["Id"], known["Port"], _checked_port(group, known), *state_of(group, known))

    @replace(ELBv2Backend, "describe_target_health")
    def describe(original: Any, backend: Any, arn: str, targets: Any) -> Any:
        group = backend.target_groups.get(arn)
        if group is not None and not targets:
            targets = [*group.targets.values(), *group.__dict__.get("draining", {}).values()]
            if not targets:
                return []
        return original(backend, arn, targets)

    @replace(FakeTargetGroup, "register")
    def register(original: Any, group: Any, targets: "list[dict[str, Any]]") -> None:
        new = [target["Id"] for target in targets if target["Id"] not in group.targets]
        original(group, targets)
        for identity in new:
            group.__dict__.get("draining", {}).pop(identity, None)

    @replace(FakeTargetGroup, "deregister")
    def deregister(original: Any, group: Any, targets: "list[dict[str, Any]]") -> None:
        leaving = _leaving(group, [target["Id"] for target in targets])
        original(group, targets)
        _drain(options, group, leaving)

    @replace(FakeTargetGroup, "deregister_terminated_instances")
    def terminated(original: Any, group: Any, instance_ids: "list[str]") -> None:
        leaving = _leaving(group, instance_ids)
        original(group, instance_ids)
        for target, _state in leaving:
            group.terminated_targets.pop(target["Id"], None)
        _drain(options, group, leaving)


def _checked_port(group: Any, target: "dict[str, Any]") -> str:
    """The port that is checked: `traffic-port` is the target's own."""
    port = group.health_check_port
    return str(target["Port"]) if port in (None, "traffic-port") else str(port)


def _leaving(group: Any, identities: "list[str]") -> "list[tuple[dict[str, Any], str]]":
    """The targets with these ids, and in which state they are."""
    found = [group.targets[identity] for identity in identities if identity in group.targets]
    return [(target, state_of(group, target).state) for target in found]


def _drain(options: "Options", group: Any, leaving: "list[tuple[dict[str, Any], str]]") -> None:
    """Connections may end in their own time; where none were, there is nothing to wait for."""
    draining = group.__dict__.setdefault("draining", {})
    for target, state in leaving:
        group.__dict__.get("reported", {}).pop(f"{target['Id']}:{int(target['Port'])}", None)
        seconds = float(group.attributes.get(_DELAY, 300))
        if state != "unused" and seconds > 0:
            draining[target["Id"]] = target
            options.later.after(seconds, partial(_drained, draining, target))


def _drained(draining: "dict[str, Any]", target: "dict[str, Any]") -> None:
    if draining.get(target["Id"]) is target:
        draining.pop(target["Id"])
