"""Auto Scaling groups: what is refused, what is kept."""

from __future__ import annotations

from typing import Any

from moto.autoscaling.exceptions import AutoscalingClientError
from moto.autoscaling.models import AutoScalingBackend

from .patch import replace


def group_names_are_unique() -> None:
    """AWS: a second group of the same name is refused with AlreadyExists.
    moto: replaces the first one and orphans its instances.
    """

    @replace(AutoScalingBackend, "create_auto_scaling_group")
    def create(original: Any, backend: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        if name in backend.autoscaling_groups:
            message = "AutoScalingGroup by this name already exists - A group with the name {} already exists"
            raise AutoscalingClientError("AlreadyExists", message.format(name))
        return original(backend, name=name, *args, **kwargs)
