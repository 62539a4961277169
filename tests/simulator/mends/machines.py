"""With `--machines`: an instance is in the state in which its machine is reported to be, and so is a volume.

Each of these does nothing without the option: then instances run as soon as they are launched.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Optional

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import EC2Backend
from moto.ec2.models.elastic_block_store import EBSBackend
from moto.ec2.models.instances import Instance
from moto.ec2.responses.elastic_block_store import ElasticBlockStore

from . import events
from .patch import replace

if TYPE_CHECKING:
    from ..settle import Later
    from . import Options

CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}


@dataclass
class Machine:
    """What stands behind an instance. `end` finishes a termination, `halt` a stop, once it is reported."""

    later: "Later"
    end: "Optional[Callable[[], None]]" = None
    halt: "Optional[Callable[[], None]]" = None


def enter(instance: Any, state: str) -> None:
    """Sets an instance's state."""
    instance._state.name, instance._state.code = state, CODES[state]
    events.state_changed(instance, state)


def instances_wait_for_their_machine(options: "Options") -> None:
    """AWS: an instance is `pending` until its machine runs, `stopping` and `shutting-down` until it is
    gone; only a running one reboots, only a stopped one starts.
    moto: has no machines: every state is reached within the call.
    """
    if not options.machines:
        return

    @replace(EC2Backend, "run_instances")
    def run_instances(original: Any, backend: Any, *args: Any, **kwargs: Any) -> Any:
        reservation = original(backend, *args, **kwargs)
        for instance in reservation.instances:
            instance.machine, instance.reboots = Machine(options.later), 0
            _wait_for_volumes(backend, instance)
            enter(instance, "pending")
        return reservation

    @replace(Instance, "start")
    def start(original: Any, instance: Any) -> Any:
        previous = copy.copy(instance._state)
        if previous.name in ("pending", "running"):
            return previous
        _need(instance, "stopped", "from which it can be started")
        original(instance)
        enter(instance, "pending")
        return previous

    @replace(Instance, "stop")
    def stop(original: Any, instance: Any) -> Any:
        previous = copy.copy(instance._state)
        if previous.name in ("stopping", "stopped"):
            return previous
        _need(instance, "running", "from which it can be stopped")
        instance.machine.halt = lambda: original(instance)
        enter(instance, "stopping")
        return previous

    @replace(Instance, "reboot")
    def reboot(_original: Any, instance: Any) -> None:
        _need(instance, "running", "from which it can be rebooted")
        instance.reboots += 1


def _need(instance: Any, state: str, words: str) -> None:
    if instance.state != state:
        message = f"The instance '{instance.id}' is not in a state {words}."
        raise EC2ClientError("IncorrectInstanceState", message)


def _wait_for_volumes(backend: Any, instance: Any) -> None:
    """The launch's own further volumes are attached when the machine has them."""
    for device, mapping in instance.get_block_device_mapping:
        if device != instance.root_device_name:
            _set_attachment(instance, backend.get_volume(mapping.volume_id), "attaching")


def _set_attachment(instance: Any, volume: Any, state: str) -> None:
    volume.attachment.status = state
    instance.block_device_mapping[volume.attachment.device].status = state


def volumes_wait_for_their_machine(options: "Options") -> None:
    """AWS: an attachment is `attaching` until the instance has the device and `detaching` until it has let
    go; by force, or from a stopped instance, it goes at once. A pending instance takes no volume.
    moto: attaches and detaches within the call.
    """
    if not options.machines:
        return

    @replace(EBSBackend, "attach_volume")
    def attach(original: Any, backend: Any, volume_id: str, instance_id: str, *args: Any, **kwargs: Any) -> Any:
        instance = backend.get_instance(instance_id)
        if not hasattr(instance, "machine"):
            return original(backend, volume_id, instance_id, *args, **kwargs)
        if instance.state not in ("running", "stopped"):
            raise EC2ClientError("IncorrectState", f"Instance '{instance_id}' is not 'running'.")
        attachment = original(backend, volume_id, instance_id, *args, **kwargs)
        if instance.state == "running":
            _set_attachment(instance, backend.get_volume(volume_id), "attaching")
        return attachment

    @replace(EBSBackend, "detach_volume")
    def detach(original: Any, backend: Any, volume_id: str, instance_id: str, device: Any) -> Any:
        volume, instance = backend.get_volume(volume_id), backend.get_instance(instance_id)
        attachment = volume.attachment
        running = attachment is not None and attachment.instance is instance and instance.state == "running"
        if not running or not hasattr(instance, "machine") or getattr(attachment, "forced", False):
            return original(backend, volume_id, instance_id, device)
        if device and device != attachment.device:
            return original(backend, volume_id, instance_id, device)
        if attachment.device == instance.root_device_name:
            message = f"Unable to detach root volume '{volume_id}' from instance '{instance_id}'"
            raise EC2ClientError("OperationNotPermitted", message)
        _set_attachment(instance, volume, "detaching")
        return attachment

    @replace(ElasticBlockStore, "detach_volume")
    def detach_response(original: Any, response: Any) -> ActionResult:
        volume = response.ec2_backend.get_volume(response._get_param("VolumeId"))
        if volume.attachment is not None and response._get_bool_param("Force", False):
            volume.attachment.forced = True
        answer: ActionResult = original(response)
        return answer


def attached(volume: Any) -> None:
    """The machine has the device."""
    attachment = volume.attachment
    if attachment is not None and attachment.status == "attaching":
        _set_attachment(attachment.instance, volume, "attached")


def detached(volume: Any) -> None:
    """The machine has let go of the device."""
    attachment = volume.attachment
    if attachment is not None and attachment.status == "detaching":
        attachment.forced = True
        volume.ec2_backend.detach_volume(volume.id, attachment.instance.id, attachment.device)


def consoles_say_what_machines_say() -> None:
    """AWS: GetConsoleOutput has the last 64 KiB the machine wrote, and when; nothing before it has written.
    moto: always the same text of 2006.
    """
    from moto.core.utils import utcnow
    from moto.ec2.responses.general import General

    @replace(General, "get_console_output")
    def get_console_output(original: Any, response: Any) -> Any:
        instance = response.ec2_backend.get_instance(response._get_param("InstanceId"))
        if not hasattr(instance, "machine"):
            return original(response)
        text, when = getattr(instance, "console", (None, utcnow()))
        found = {"InstanceId": instance.id, "Timestamp": when}
        return ActionResult({**found, "Output": text} if text else found)
