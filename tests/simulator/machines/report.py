"""Takes a report of the lab about its hosts (`HostReport` in tests/lab/src/aws_state.rs) into moto's objects."""

from __future__ import annotations

import base64
from typing import Any

from moto.core import DEFAULT_ACCOUNT_ID
from moto.core.types import Base64EncodedString
from moto.core.utils import utcnow
from moto.ec2.models import ec2_backends
from moto.elbv2.models import elbv2_backends

from ..mends import lifecycle
from ..mends.machines import CODES, attached, detached, enter
from .metadata import find

_DEAD = "an EC2 health check indicating it has been terminated or stopped"
_CONSOLE = 64 * 1024


def take_report(document: "dict[str, Any]") -> "list[str]":
    """Takes a report in; gives the ids it names that do not exist (a report may come late).

    ValueError: the report has not its form.
    """
    _check(document)
    unknown = []
    for identity, state in document.get("instances", {}).items():
        instance = find(identity)
        if instance is None or not hasattr(instance, "machine"):
            unknown.append(identity)
        elif state == "running":
            _runs(instance)
        elif state == "terminated":
            _terminated(instance)
        elif state == "stopped":
            _stopped(instance)
    unknown += [identity for identity, state in document.get("volumes", {}).items() if not _volume(identity, state)]
    unknown += [identity for identity, text in document.get("consoles", {}).items() if not _console(identity, text)]
    unknown += [arn for arn, targets in document.get("targets", {}).items() if not _targets(arn, targets)]
    return unknown


def _check(document: "dict[str, Any]") -> None:
    strange = set(document) - {"instances", "volumes", "consoles", "targets"}
    if strange:
        raise ValueError(f"unknown fields in the report: {', '.join(sorted(strange))}")
    healths = [state for targets in document.get("targets", {}).values() for state in targets.values()]
    _values("instances", document.get("instances", {}).values(), list(CODES))
    _values("volumes", document.get("volumes", {}).values(), ["attached", "detached"])
    _values("targets", healths, ["healthy", "unhealthy"])


def _values(field: str, found: Any, known: "list[str]") -> None:
    for value in found:
        if value not in known:
            raise ValueError(f"{field}: {value!r} is none of {', '.join(known)}")


def _runs(instance: Any) -> None:
    """Only a pending instance comes up; a late report changes nothing."""
    if instance.state == "pending":
        enter(instance, "running")
        lifecycle.set_running(instance)


def _terminated(instance: Any) -> None:
    """The machine is gone for good, asked for or not."""
    if instance.state == "terminated":
        return
    if instance.state != "shutting-down":
        instance.disable_api_termination = False
        instance.ec2_backend.terminate_instances([instance.id])
        lifecycle.set_failed(instance, _DEAD)
    instance.machine.end()
    lifecycle.set_gone(instance)


def _stopped(instance: Any) -> None:
    """The machine halted: an instance that was launched to terminate then does so, unless it was stopped by name."""
    if instance.state == "stopping":
        _halt(instance)
    elif instance.state in ("pending", "running"):
        if instance.instance_initiated_shutdown_behavior == "terminate":
            _terminated(instance)
            return
        instance._state.name, instance._state.code = "running", CODES["running"]
        instance.stop()
        _halt(instance)


def _halt(instance: Any) -> None:
    instance.machine.halt()
    lifecycle.set_failed(instance, _DEAD)


def _volume(identity: str, state: str) -> bool:
    for backend in ec2_backends[DEFAULT_ACCOUNT_ID].values():
        volume = backend.volumes.get(identity)
        if volume is not None:
            (attached if state == "attached" else detached)(volume)
            return True
    return False


def _console(identity: str, text: str) -> bool:
    """Keeps the end of what the machine wrote, as EC2 does."""
    instance = find(identity)
    if instance is not None:
        tail = base64.b64decode(text, validate=True)[-_CONSOLE:]
        instance.console = (Base64EncodedString(base64.b64encode(tail).decode()), utcnow())
    return instance is not None


def _targets(arn: str, targets: "dict[str, str]") -> bool:
    """Health by `INSTANCE:PORT`; a group that checks with its balancer replaces unhealthy members."""
    parts = arn.split(":")
    region = parts[3] if len(parts) > 3 else ""
    group = elbv2_backends[DEFAULT_ACCOUNT_ID][region].target_groups.get(arn) if region else None
    if group is None:
        return False
    group.__dict__.setdefault("reported", {}).update(targets)
    for name, state in targets.items():
        _tell_member(arn, name.rsplit(":", 1)[0], state)
    return True


def _tell_member(arn: str, instance_id: str, state: str) -> None:
    from ..membership import member_of

    instance = find(instance_id)
    member = member_of(instance) if instance is not None and hasattr(instance, "machine") else None
    if member is None or member.lifecycle_state != "InService":
        return
    group = member.auto_scaling_group
    if arn not in group.target_group_arns or "ELB" not in str(group.health_check_type):
        return
    if state == "unhealthy":
        lifecycle.fails_after_grace(instance, "an ELB system health check failure")
    else:
        member.health_status = "Healthy"
