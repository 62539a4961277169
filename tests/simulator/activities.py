"""Scaling activities: what an Auto Scaling group has done, when, and why."""

from __future__ import annotations

import json
from typing import Any, Optional

from moto.autoscaling.models import Activity
from moto.core.utils import utcnow

# AWS forgets them after six weeks; so many are kept here.
_KEPT = 1000


def of_backend(backend: Any) -> "list[Any]":
    """The activities of a region, newest first."""
    found: "list[Any]" = backend.__dict__.setdefault("activities", [])
    return found


def begin(group: Any, instance: Any, verb: str, cause: str) -> Any:
    """An activity in progress: `verb` is `Launching a new` or `Terminating`."""
    activity = Activity(f"{verb} EC2 instance: {instance.id}", f"At {_time()} {cause}.", group)
    activity.end_time = None
    activity.details = json.dumps({"Subnet ID": instance.subnet_id, "Availability Zone": instance.availability_zone})
    known = of_backend(group.autoscaling_backend)
    known.insert(0, activity)
    del known[_KEPT:]
    return activity


def fail_launch(group: Any, cause: str, message: str) -> None:
    """A launch that EC2 refused: the activity names no instance."""
    activity = Activity(f"Launching a new EC2 instance.  Status Reason: {message}", f"At {_time()} {cause}.", group)
    activity.end_time = None
    of_backend(group.autoscaling_backend).insert(0, activity)
    end(activity, "Failed", message)


def waits_for_hooks(activity: Any) -> None:
    """A lifecycle hook holds it up."""
    activity.status_code, activity.progress = "MidLifecycleAction", 50


def end(activity: Optional[Any], status: str = "Successful", message: Optional[str] = None) -> None:
    """Ends an activity, once."""
    if activity is None or activity.end_time is not None:
        return
    activity.status_code, activity.progress, activity.end_time = status, 100, utcnow()
    activity.status_message = message


def _time() -> str:
    return utcnow().strftime("%Y-%m-%dT%H:%M:%SZ")
