"""EBS volumes."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.elastic_block_store import EBSBackend
from moto.ec2.responses.elastic_block_store import ElasticBlockStore

from .patch import replace

if TYPE_CHECKING:
    from . import Options


def a_volume_is_attached_once_and_in_its_zone() -> None:
    """AWS: VolumeInUse while attached, InvalidVolume.ZoneMismatch from another zone, a device name is
    used once an instance, and the instance has to run (or be stopped).
    moto: attaches always, and forgets the attachment before.
    """

    @replace(EBSBackend, "attach_volume")
    def attach(
        original: Any, backend: Any, volume_id: str, instance_id: str, device: str, *args: Any, **kwargs: Any
    ) -> Any:
        volume, instance = backend.get_volume(volume_id), backend.get_instance(instance_id)
        if instance.state in ("shutting-down", "terminated"):
            raise EC2ClientError("IncorrectState", f"Instance '{instance_id}' is not 'running'.")
        if volume.attachment is not None:
            raise EC2ClientError("VolumeInUse", f"{volume_id} is already attached to an instance")
        if volume.availability_zone != instance.availability_zone:
            message = f"The volume '{volume_id}' is not in the same availability zone as instance '{instance_id}'"
            raise EC2ClientError("InvalidVolume.ZoneMismatch", message)
        if device in instance.block_device_mapping:
            message = f"Invalid value '{device}' for unixDevice. Attachment point {device} is already in use"
            raise EC2ClientError("InvalidParameterValue", message)
        return original(backend, volume_id, instance_id, device, *args, **kwargs)


def a_volume_is_detached_from_whatever_has_it() -> None:
    """AWS: DetachVolume needs the volume only; an available volume is IncorrectState.
    moto: HTTP 500 without an instance.
    """

    @replace(ElasticBlockStore, "detach_volume")
    def detach(original: Any, response: Any) -> Any:
        volume = response.ec2_backend.get_volume(response._get_param("VolumeId"))
        if volume.attachment is None:
            raise EC2ClientError("IncorrectState", f"Volume '{volume.id}' is in the 'available' state.")
        if not response._get_param("InstanceId"):
            response.params["InstanceId"] = volume.attachment.instance.id
        return original(response)


def volumes_describe_their_performance() -> None:
    """AWS: gp3 has 125 MiB/s unless told otherwise, gp2 three IOPS a GiB (100 to 16000).
    moto: says nothing of them.
    """

    @replace(EBSBackend, "create_volume")
    def create(original: Any, backend: Any, *args: Any, **kwargs: Any) -> Any:
        volume = original(backend, *args, **kwargs)
        if volume.volume_type == "gp3":
            volume.throughput = volume.throughput or 125
        if volume.volume_type == "gp2":
            volume.iops = min(max(100, 3 * int(volume.size)), 16000)
        return volume


def volumes_are_made_in_zones_that_exist() -> None:
    """AWS: an unknown zone is InvalidZone.NotFound; a volume cannot shrink.
    moto: makes the volume without a zone; shrinks it.
    """

    @replace(ElasticBlockStore, "create_volume")
    def create(original: Any, response: Any) -> Any:
        zone = response._get_param("AvailabilityZone")
        if response.ec2_backend.get_zone_by_name(zone) is None:
            raise EC2ClientError("InvalidZone.NotFound", f"The zone '{zone}' does not exist.")
        return original(response)

    @replace(EBSBackend, "modify_volume")
    def modify(original: Any, backend: Any, volume_id: str, target_size: Any = None, *args: Any, **kwargs: Any) -> Any:
        if target_size is not None and int(target_size) < int(backend.get_volume(volume_id).size):
            raise EC2ClientError("InvalidParameterValue", "New size cannot be smaller than existing size")
        return original(backend, volume_id, target_size, *args, **kwargs)


def encryption_by_default_encrypts() -> None:
    """AWS: where encryption by default is on (EnableEbsEncryptionByDefault), a new volume is encrypted, whatever
    its request says.
    moto: keeps the setting and does nothing with it.
    """

    @replace(EBSBackend, "create_volume")
    def create(original: Any, backend: Any, *args: Any, encrypted: bool = False, **more: Any) -> Any:
        # Images and their volumes are there before the account's settings.
        by_default = getattr(backend, "ebs_encryption_by_default", False)
        return original(backend, *args, encrypted=encrypted or by_default, **more)


def descriptions_of_volumes_may_be_old(options: "Options") -> None:
    """AWS: descriptions are eventually consistent: DescribeVolumes may show for a while what was true before.
    moto: shows the newest state. So does this, but for the seconds that a test asks for (`POST /_simulator/stale`).
    """

    @replace(ElasticBlockStore, "describe_volumes")
    def describe(original: Any, response: Any) -> Any:
        # Not the backend's function, which other operations call too: those see what is true.
        backend = response.ec2_backend
        now, view = backend.volumes, options.later.old_view(backend)
        backend.volumes = now if view is None else view
        try:
            return original(response)
        finally:
            backend.volumes = now


def volumes_as_they_are() -> "dict[int, dict[str, Any]]":
    """A view of every region's volumes for `Later.hold_views`. Their tags are not in it: those are always of now."""
    from moto.ec2.models import ec2_backends

    backends = [backend for account in ec2_backends.values() for backend in account.values()]
    return {id(backend): {of: _copied(volume) for of, volume in backend.volumes.items()} for backend in backends}


def _copied(volume: Any) -> Any:
    old = copy.copy(volume)
    old.attachment = copy.copy(volume.attachment)
    return old
