"""Instances as members of Auto Scaling groups: which is whose, and where it is in its life there."""

from __future__ import annotations

from typing import Any

# States that count for the desired capacity.
_COUNTED = ("Pending", "InService")


def pool(group: Any) -> "list[Any]":
    """The members of a group's warm pool."""
    found: "list[Any]" = group.__dict__.setdefault("warm_states", [])
    return found


def everyone(group: Any) -> "list[Any]":
    """The members of a group and of its warm pool."""
    return [*group.instance_states, *pool(group)]


def forget(group: Any, members: "list[Any]") -> None:
    """These are members no longer."""
    group.instance_states = [state for state in group.instance_states if state not in members]
    group.warm_states = [state for state in pool(group) if state not in members]


def is_warm(member: Any) -> bool:
    """Whether a member is in the warm pool."""
    return str(member.lifecycle_state).startswith("Warmed:")


def is_leaving(member: Any) -> bool:
    """Whether a member is being terminated."""
    return "Terminating" in str(member.lifecycle_state)


def member_of(instance: Any) -> Any:
    """The member that an instance is, or None."""
    group = getattr(instance, "autoscaling_group", None)
    states = everyone(group) if group is not None else []
    return next((state for state in states if state.instance is instance), None)


def counts(member: Any) -> bool:
    """Whether a member counts for what its group has to have."""
    return str(member.lifecycle_state).split(":")[0] in _COUNTED


def target_state(member: Any) -> str:
    """What `autoscaling/target-lifecycle-state` says: where the member is going to."""
    if is_warm(member):
        return "Warmed:Terminated" if is_leaving(member) else "Warmed:Stopped"
    stage = str(member.lifecycle_state).split(":")[0]
    return {"Pending": "InService", "Terminating": "Terminated", "EnteringStandby": "Standby"}.get(stage, stage)
