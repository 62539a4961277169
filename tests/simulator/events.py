"""Launches and terminations of instances as JSON lines, for whoever boots the machines."""

from __future__ import annotations

import json
import time
from typing import Any, Optional, TextIO


class InstanceEvents:
    """Writes one line per event to `out`; writes nothing without one."""

    def __init__(self, out: Optional[TextIO]) -> None:
        self._out = out

    def launch(self, instance: Any) -> None:
        """One line with everything that decides what the new machine is."""
        self._write(
            {
                "event": "launch",
                "id": instance.id,
                "ip": instance.private_ip,
                "subnet": instance.subnet_id,
                "vpc": instance.vpc_id,
                "zone": instance.availability_zone,
                "region": instance.region_name,
                "type": instance.instance_type,
                "ami": instance.image_id,
                "key_name": instance.key_name,
                "user_data": str(instance.user_data) if instance.user_data else None,
                "instance_profile": profile_arn(instance),
                "security_groups": sorted({g.id for nic in instance.nics.values() for g in nic.group_set}),
                "tags": {tag["key"]: tag["value"] for tag in instance.get_tags()},
            }
        )

    def terminate(self, instance: Any) -> None:
        """One line when an instance begins to shut down."""
        self._write({"event": "terminate", "id": instance.id, "ip": instance.private_ip})

    def _write(self, event: "dict[str, Any]") -> None:
        if self._out is not None:
            self._out.write(json.dumps({"time": time.time(), **event}) + "\n")
            self._out.flush()


def profile_arn(instance: Any) -> Optional[str]:
    """The ARN of the instance profile, if there is one."""
    association = instance.ec2_backend.iam_instance_profile_associations.get(instance.id)
    return association.iam_instance_profile.arn if association else None
