"""Instances: what they are launched with, and how they end."""

from __future__ import annotations

import copy
import uuid
from typing import TYPE_CHECKING, Any

from moto.core.responses import ActionResult
from moto.ec2.models import EC2Backend
from moto.ec2.models.amis import Ami
from moto.ec2.models.instances import Instance
from moto.ec2.responses.instances import InstanceResponse
from moto.ec2.utils import convert_tag_spec

from .machines import enter
from .patch import add, replace, replace_property

if TYPE_CHECKING:
    from . import Options

_ROOT: "dict[str, Any]" = {"VolumeSize": 8, "VolumeType": "gp3", "DeleteOnTermination": True}


def template_data(backend: Any, launch_template: Any) -> "dict[str, Any]":
    """The data of the launch template version that a launch names; empty without one."""
    return backend._get_template_from_args(launch_template).data if launch_template else {}


def images_have_a_root_volume() -> None:
    """AWS: the common images describe an 8 GiB gp3 root volume that dies with its instance.
    moto: describes 15 GiB `standard` that stays.
    """

    @replace_property(Ami, "block_device_mappings")
    def mappings(image: Any) -> "list[dict[str, Any]]":
        ebs = {"SnapshotId": image.ebs_snapshot.id, "Encrypted": False, **_ROOT}
        return [{"DeviceName": image.root_device_name, "Ebs": ebs}]


def the_root_volume_is_the_images_own() -> None:
    """AWS: an instance has the image's root device, with what the launch says of that device, and
    the launch's other devices.
    moto: with a launch template adds an 8 GiB gp2 /dev/sda1 of its own beside them; drops the
    mappings' IOPS and throughput, and the template's tags for volumes.
    """

    @replace(EC2Backend, "run_instances")
    def run(original: Any, backend: Any, image_id: str, count: int, user_data: Any, groups: Any, **kwargs: Any) -> Any:
        data = template_data(backend, kwargs.get("launch_template"))
        asked = kwargs.pop("block_device_mappings", None) or data.get("BlockDeviceMappings") or []
        image = backend.describe_images(ami_ids=[image_id or data.get("ImageId")])[0]
        kwargs["block_device_mappings"] = _merged_mappings(image.root_device_name, asked)
        tags = dict(kwargs.get("tags") or {})
        tags["volume"] = {
            **convert_tag_spec(data.get("TagSpecifications", [])).get("volume", {}),
            **tags.get("volume", {}),
        }
        kwargs["tags"] = tags
        reservation = original(backend, image_id, count, user_data, groups, **kwargs)
        for instance in reservation.instances:
            _set_performance(backend, instance, kwargs["block_device_mappings"])
        return reservation


def _set_performance(backend: Any, instance: Any, mappings: "list[dict[str, Any]]") -> None:
    """Gives the instance's volumes the IOPS and throughput of the mappings."""
    for mapping in mappings:
        volume = backend.get_volume(instance.block_device_mapping[mapping["DeviceName"]].volume_id)
        volume.iops = mapping["Ebs"].get("Iops") or volume.iops
        volume.throughput = mapping["Ebs"].get("Throughput") or volume.throughput


def _merged_mappings(root: str, asked: "list[dict[str, Any]]") -> "list[dict[str, Any]]":
    """The image's root device first, overridden by what was asked for it, then the rest."""
    merged = {root: dict(_ROOT)}
    for mapping in asked:
        if mapping.get("Ebs") is not None:
            merged.setdefault(mapping["DeviceName"], {}).update(mapping["Ebs"])
    return [{"DeviceName": device, "Ebs": ebs} for device, ebs in merged.items()]


def templates_set_network_profile_and_metadata() -> None:
    """AWS: a launch takes from its template the interfaces' security groups, public address and tags, the
    instance profile, the metadata options, monitoring and the market (spot).
    moto: takes image, type, key, user data and the top-level security groups only.
    """

    @replace(EC2Backend, "run_instances")
    def run(original: Any, backend: Any, image_id: str, count: int, user_data: Any, groups: Any, **kwargs: Any) -> Any:
        data = template_data(backend, kwargs.get("launch_template"))
        interface = (data.get("NetworkInterfaces") or [{}])[0]
        if interface.get("Groups") and not groups and not kwargs.get("security_group_ids"):
            kwargs["security_group_ids"] = list(interface["Groups"])
        if kwargs.get("associate_public_ip") is None:
            kwargs["associate_public_ip"] = interface.get("AssociatePublicIpAddress")
        kwargs["ipv6_address_count"] = kwargs.get("ipv6_address_count") or interface.get("Ipv6AddressCount")
        kwargs["metadata_options"] = kwargs.get("metadata_options") or data.get("MetadataOptions") or {}
        if (data.get("Monitoring") or {}).get("Enabled"):
            kwargs["monitoring_state"] = "enabled"
        if data.get("EbsOptimized"):
            kwargs["ebs_optimized"] = True
        market = (data.get("InstanceMarketOptions") or {}).get("MarketType")
        kwargs["instance_market_options"] = kwargs.get("instance_market_options") or market
        reservation = original(backend, image_id, count, user_data, groups, **kwargs)
        tags = convert_tag_spec(data.get("TagSpecifications", [])).get("network-interface", {})
        for nic in (nic for instance in reservation.instances for nic in instance.nics.values()):
            nic.add_tags(tags)
        profile = data.get("IamInstanceProfile") or {}
        if profile and not kwargs.get("iam_instance_profile_name") and not kwargs.get("iam_instance_profile_arn"):
            for instance in reservation.instances:
                backend.associate_iam_instance_profile(instance.id, profile.get("Name"), profile.get("Arn"))
        return reservation


def network_interfaces_die_with_their_instance() -> None:
    """AWS: the interface made for a launch is deleted at termination unless the launch says otherwise.
    moto: keeps it unless the launch says so, and its security groups and subnet with it.
    """

    @replace(Instance, "prep_nics")
    def prep_nics(original: Any, instance: Any, nic_spec: Any, *args: Any, **kwargs: Any) -> None:
        nics = copy.deepcopy(nic_spec) or [{"DeviceIndex": 0}]
        for nic in nics:
            if "NetworkInterfaceId" not in nic:
                nic.setdefault("DeleteOnTermination", True)
        original(instance, nics, *args, **kwargs)


def private_dns_names_follow_the_subnet() -> None:
    """AWS: in a subnet whose hostname type is resource-name, or that has IPv6 alone, an instance is called by its
    id, and says so.
    moto: names it by its address.
    """
    by_address = Instance.private_dns_name.fget

    def on_launch(instance: Any) -> "dict[str, Any]":
        if not instance.subnet_id or instance.state == "terminated":
            return {}
        return instance.ec2_backend.get_subnet(instance.subnet_id).private_dns_name_options_on_launch

    @replace(Instance, "__init__")
    def init(original: Any, instance: Any, *args: Any, **kwargs: Any) -> None:
        original(instance, *args, **kwargs)
        instance.private_dns_name_options = dict(on_launch(instance))

    @replace_property(Instance, "private_dns_name")
    def private_dns_name(instance: Any) -> str:
        if instance.private_ip and instance.private_dns_name_options.get("HostnameType") != "resource-name":
            return by_address(instance)
        region = instance.region_name
        return instance.id + (".ec2.internal" if region == "us-east-1" else f".{region}.compute.internal")


def termination_takes_a_while(options: "Options") -> None:
    """AWS: an instance is `shutting-down` first, and holds its interfaces and volumes until `terminated`.
    moto: is done within the call. The targets of a load balancer forget it in both cases.
    """

    @replace(Instance, "terminate")
    def terminate(original: Any, instance: Any) -> Any:
        previous = copy.copy(instance._state)
        if previous.name in ("shutting-down", "terminated"):
            return previous
        machine = getattr(instance, "machine", None)
        if machine is None:
            instance._state.name, instance._state.code = "shutting-down", 32
            options.later.add(lambda: original(instance))
        else:  # until its machine is reported to be gone
            machine.end = lambda: original(instance)
            enter(instance, "shutting-down")
        return previous

    @replace(EC2Backend, "terminate_instances")
    def terminate_instances(original: Any, backend: Any, instance_ids: Any) -> Any:
        from moto.elbv2.models import elbv2_backends

        result = original(backend, instance_ids)
        elbv2_backends[backend.account_id][backend.region_name].notify_terminate_instances(instance_ids)
        return result


def topology_is_described_for_types_that_have_one() -> None:
    """AWS: DescribeInstanceTopology tells where instances are in the network, of the types that support it (large
    accelerated ones); others are left out of the answer, and an id that does not exist is an error.
    moto: has no such operation (HTTP 500).
    """

    @add(InstanceResponse)
    def describe_instance_topology(response: Any) -> ActionResult:
        response.error_on_dryrun()
        for identity in response._get_param("InstanceIds", []):
            response.ec2_backend.get_instance(identity)
        return ActionResult({"Instances": []})


def capacity_is_reserved() -> None:
    """AWS: CreateCapacityReservation keeps room for instances, and DescribeCapacityReservations says how much of it is unused.
    moto: has neither. Here no instance runs in it.
    """

    @add(InstanceResponse)
    def create_capacity_reservation(response: Any) -> ActionResult:
        count = int(response._get_param("InstanceCount"))
        reservation = {
            "CapacityReservationId": f"cr-{uuid.uuid4().hex[:17]}",
            "OwnerId": response.ec2_backend.account_id,
            "InstanceType": response._get_param("InstanceType"),
            "AvailabilityZone": response._get_param("AvailabilityZone"),
            "TotalInstanceCount": count,
            "AvailableInstanceCount": count,
            "State": "active",
        }
        _reservations(response).append(reservation)
        return ActionResult({"CapacityReservation": reservation})

    @add(InstanceResponse)
    def describe_capacity_reservations(response: Any) -> ActionResult:
        filters = response._filters_from_querystring()
        keys = {"state": "State", "owner-id": "OwnerId", "instance-type": "InstanceType"}
        found = [
            reservation
            for reservation in _reservations(response)
            if all(reservation[keys[name]] in values for name, values in filters.items())
        ]
        return ActionResult({"CapacityReservations": found})


def _reservations(response: Any) -> "list[dict[str, Any]]":
    return response.ec2_backend.__dict__.setdefault("capacity_reservations", [])
