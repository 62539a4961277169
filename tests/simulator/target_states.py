"""In which state a target of a target group is, and why, in the words of DescribeTargetHealth."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional


class TargetState(NamedTuple):
    """`initial`, `healthy`, `unhealthy`, `draining` or `unused`; a healthy target has no reason."""

    state: str
    reason: Optional[str] = None
    description: Optional[str] = None


def state_of(group: Any, target: "dict[str, Any]") -> TargetState:
    """The state of a registered or draining target. Without a machine behind it a target is healthy."""
    if target["Id"] in group.__dict__.get("draining", {}):
        return TargetState("draining", "Target.DeregistrationInProgress", "Target deregistration is in progress")
    instance = group.ec2_backend.get_instance_by_id(target["Id"])
    if instance is not None and instance.state in ("stopping", "stopped"):
        return TargetState("unused", "Target.InvalidState", "Target is in the stopped state")
    if instance is None or not hasattr(instance, "machine"):
        return TargetState("healthy")
    return _unused(group, instance) or _checked(group, target)


def _unused(group: Any, instance: Any) -> Optional[TargetState]:
    """Why no load balancer sends anything there."""
    from moto.elbv2.models import elbv2_backends

    balancers = elbv2_backends[group.account_id][group.region_name].load_balancers
    used_by = [balancers[arn] for arn in group.load_balancer_arns]
    if not used_by:
        message = "Target group is not configured to receive traffic from the load balancer"
        return TargetState("unused", "Target.NotInUse", message)
    zones = {subnet.availability_zone for balancer in used_by for subnet in balancer.subnets}
    if instance.availability_zone not in zones:
        message = "Target is in an Availability Zone that is not enabled for the load balancer"
        return TargetState("unused", "Target.NotInUse", message)
    return None


def _checked(group: Any, target: "dict[str, Any]") -> TargetState:
    """What the health checks were reported to say."""
    found = group.__dict__.get("reported", {}).get(f"{target['Id']}:{int(target['Port'])}")
    if found == "healthy":
        return TargetState("healthy")
    if found == "unhealthy":
        return TargetState("unhealthy", "Target.FailedHealthChecks", "Health checks failed")
    return TargetState("initial", "Elb.InitialHealthChecking", "Initial health checks in progress")
