"""Instances as members of Auto Scaling groups: which is whose, and where it is in its life there."""

from __future__ import annotations

from typing import Any

# States that count for the desired capacity.
_COUNTED = ("Pending", "InService")


def member_of(instance: Any) -> Any:
    """The member that an instance is, or None."""
    group = getattr(instance, "autoscaling_group", None)
    states = group.instance_states if group is not None else []
    return next((state for state in states if state.instance is instance), None)


def counts(member: Any) -> bool:
    """Whether a member counts for what its group has to have."""
    return str(member.lifecycle_state).split(":")[0] in _COUNTED


def target_state(member: Any) -> str:
    """What `autoscaling/target-lifecycle-state` says: where the member is going to."""
    stage = str(member.lifecycle_state).split(":")[0]
    return {"Pending": "InService", "Terminating": "Terminated", "EnteringStandby": "Standby"}.get(stage, stage)
