"""Mixed instances policies: what Auto Scaling refuses."""

from __future__ import annotations

from typing import Any, Optional

from moto.autoscaling.exceptions import ValidationError

_ON_DEMAND = ("prioritized", "lowest-price")
_SPOT = ("lowest-price", "capacity-optimized", "capacity-optimized-prioritized", "price-capacity-optimized")
# They need an order, which requirements do not have.
_ORDERED = ("prioritized", "capacity-optimized-prioritized")

# What Auto Scaling says (kubernetes/kops, pkg/model/awsmodel/autoscalinggroup.go).
_SPOT_TEMPLATE = (
    "You cannot use a launch template that is set to request Spot Instances (InstanceMarketOptions) "
    "when you configure an Auto Scaling group with a mixed instances policy."
)


def _overrides(policy: "dict[str, Any]") -> "list[dict[str, Any]]":
    return (policy.get("LaunchTemplate") or {}).get("Overrides") or []


def requirements(policy: "dict[str, Any]") -> "Optional[dict[str, Any]]":
    """The first requirements of a policy, if it has any."""
    found = [one["InstanceRequirements"] for one in _overrides(policy) if "InstanceRequirements" in one]
    return found[0] if found else None


def check_policy(policy: "dict[str, Any]") -> None:
    """Raises what the API reference says of InstancesDistribution, LaunchTemplateOverrides and InstanceRequirements."""
    distribution, overrides = policy.get("InstancesDistribution") or {}, _overrides(policy)
    for field, known in (("OnDemandAllocationStrategy", _ON_DEMAND), ("SpotAllocationStrategy", _SPOT)):
        strategy = distribution.get(field)
        if strategy is not None and strategy not in known:
            raise ValidationError(f"{field} {strategy} is not valid")
        if strategy in _ORDERED and requirements(policy) is not None:
            raise ValidationError(f"{field} {strategy} cannot be used with InstanceRequirements")
    if "SpotInstancePools" in distribution and distribution.get("SpotAllocationStrategy", _SPOT[0]) != _SPOT[0]:
        raise ValidationError("SpotInstancePools is only valid with the lowest-price allocation strategy")
    if len(overrides) > 40:
        raise ValidationError("A mixed instances policy has at most 40 overrides")
    for override in overrides:
        named = override.get("InstanceRequirements")
        if named is None:
            continue
        if "InstanceType" in override:
            raise ValidationError("An override has InstanceType or InstanceRequirements")
        if any("Min" not in (named.get(field) or {}) for field in ("VCpuCount", "MemoryMiB")):
            raise ValidationError("InstanceRequirements need VCpuCount.Min and MemoryMiB.Min")


def check_market(group: Any, data: "dict[str, Any]") -> None:
    """Raises if the template of a group with a policy asks for spot instances itself."""
    if group.mixed_instances_policy and data.get("InstanceMarketOptions"):
        raise ValidationError(_SPOT_TEMPLATE)
