"""What the instance metadata service of one instance answers, as nested objects with text as leaves.

A path that is not there is 404 on the machine too: only what AWS would have is in the tree. The
signatures of the identity document (pkcs7, rsa2048) are AWS's own and cannot be had.
"""

from __future__ import annotations

import json
import re
from typing import Any, Optional

from moto.core import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends

from .credentials import Issue, info, security_credentials


def find(instance_id: str) -> Any:
    """The instance of that id, in whichever region it is; None if there is none."""
    for backend in ec2_backends[DEFAULT_ACCOUNT_ID].values():
        found = backend.get_instance_by_id(instance_id)
        if found is not None:
            return found
    return None


def metadata(instance: Any, issue: Issue) -> "dict[str, Any]":
    """`meta-data`, `dynamic` and `user-data` (base64, or null) of an instance."""
    return {
        "meta-data": _without_absent(_meta_data(instance, issue)),
        "dynamic": {"instance-identity": {"document": json.dumps(_document(instance), indent=2)}},
        "user-data": str(instance.user_data) if instance.user_data else None,
    }


def _meta_data(instance: Any, issue: Issue) -> "dict[str, Any]":
    primary = instance.nics[0]
    return {
        "ami-id": instance.image_id,
        "ami-launch-index": str(instance.ami_launch_index),
        "ami-manifest-path": "(unknown)",
        "autoscaling": _autoscaling(instance),
        "block-device-mapping": _block_devices(instance),
        "events": {"maintenance": {"history": "[]", "scheduled": "[]"}},
        "hostname": instance.private_dns_name,
        "iam": _iam(instance, issue),
        "instance-action": "none",
        "instance-id": instance.id,
        "instance-life-cycle": "spot" if instance.lifecycle == "spot" else "on-demand",
        "instance-type": instance.instance_type,
        "ipv6": next(iter(primary.ipv6_addresses), None),
        "local-hostname": instance.private_dns_name,
        "local-ipv4": primary.private_ip_address,
        "mac": primary.mac_address.lower(),
        "network": {"interfaces": {"macs": _interfaces(instance)}},
        "placement": _placement(instance),
        "profile": "default-hvm",
        "public-hostname": _public_hostname(instance),
        "public-ipv4": primary.public_ip,
        "public-keys": _public_keys(instance),
        "reservation-id": _reservation(instance),
        "security-groups": "\n".join(group.name for group in _groups(primary)),
        "services": {"domain": "amazonaws.com", "partition": "aws"},
        "system": "nitro",
        "tags": _tags(instance),
    }


def _without_absent(tree: "dict[str, Any]") -> "dict[str, Any]":
    """The tree without what is None or empty: absence is 404."""
    kept = {key: _without_absent(value) if isinstance(value, dict) else value for key, value in tree.items()}
    return {key: value for key, value in kept.items() if value is not None and value != {}}


def _autoscaling(instance: Any) -> "Optional[dict[str, Any]]":
    """The state a member of a group is going to; nothing for other instances."""
    from ..membership import member_of, target_state

    member = member_of(instance)
    return {"target-lifecycle-state": target_state(member)} if member else None


def _block_devices(instance: Any) -> "dict[str, Any]":
    """The devices the instance was launched with."""
    root = instance.root_device_name
    mapped = instance.get_block_device_mapping
    others = [name for name, device in mapped if name != root and device.delete_on_termination]
    return {"ami": root, "root": root, **{f"ebs{index}": name for index, name in enumerate(others, 1)}}


def _iam(instance: Any, issue: Issue) -> "Optional[dict[str, Any]]":
    association = instance.ec2_backend.iam_instance_profile_associations.get(instance.id)
    if association is None:
        return None
    return {
        "info": json.dumps(info(association.iam_instance_profile), indent=2),
        "security-credentials": security_credentials(instance, association.iam_instance_profile, issue),
    }


def _groups(nic: Any) -> "list[Any]":
    return sorted(nic.group_set, key=lambda group: group.id)


def _interfaces(instance: Any) -> "dict[str, Any]":
    """Each interface by its hardware address."""
    return {nic.mac_address.lower(): _interface(instance, index, nic) for index, nic in instance.nics.items()}


def _interface(instance: Any, index: int, nic: Any) -> "dict[str, Any]":
    vpc = instance.ec2_backend.vpcs[nic.subnet.vpc_id]
    blocks = [block["cidr_block"] for block in vpc.get_cidr_block_association_set(ipv6=False)]
    sixes = [block["cidr_block"] for block in vpc.get_cidr_block_association_set(ipv6=True)]
    subnet_sixes = [a["ipv6CidrBlock"] for a in nic.subnet.ipv6_cidr_block_associations.values()]
    groups = _groups(nic)
    return {
        "device-number": str(index),
        "interface-id": nic.id,
        "ipv4-associations": {nic.public_ip: nic.private_ip_address} if nic.public_ip else None,
        "ipv6-prefix": "\n".join(nic.delegated) or None,
        "ipv6s": "\n".join(nic.ipv6_addresses) or None,
        "local-hostname": instance.private_dns_name,
        "local-ipv4s": "\n".join(item["PrivateIpAddress"] for item in nic.private_ip_addresses) or None,
        "mac": nic.mac_address.lower(),
        "owner-id": nic.owner_id,
        "public-hostname": _public_hostname(instance) if index == 0 else None,
        "public-ipv4s": nic.public_ip,
        "security-group-ids": "\n".join(group.id for group in groups),
        "security-groups": "\n".join(group.name for group in groups),
        "subnet-id": nic.subnet.id,
        "subnet-ipv4-cidr-block": nic.subnet.cidr_block,
        "subnet-ipv6-cidr-blocks": "\n".join(subnet_sixes) or None,
        "vpc-id": vpc.id,
        "vpc-ipv4-cidr-block": vpc.cidr_block,
        "vpc-ipv4-cidr-blocks": "\n".join(blocks),
        "vpc-ipv6-cidr-blocks": "\n".join(sixes) or None,
    }


def _placement(instance: Any) -> "dict[str, Any]":
    zone = instance.ec2_backend.get_zone_by_name(instance.availability_zone)
    return {
        "availability-zone": instance.availability_zone,
        "availability-zone-id": zone.zone_id if zone else None,
        "group-name": instance.placement.group_name or None,
        "region": instance.ec2_backend.region_name,
    }


def _public_hostname(instance: Any) -> Optional[str]:
    """The public DNS name, which only a VPC with DNS hostnames gives."""
    vpc = instance.ec2_backend.vpcs[instance.nics[0].subnet.vpc_id]
    named = str(vpc.enable_dns_hostnames).lower() == "true"
    return instance.public_dns_name if named else None


def _public_keys(instance: Any) -> "Optional[dict[str, Any]]":
    """The launch's key pair, with its name as comment; the listing of `public-keys/` is `0=NAME` on AWS."""
    pair = instance.ec2_backend.key_pairs.get(instance.key_name) if instance.key_name else None
    if pair is None:
        return None
    kind_and_key = " ".join(pair.public_key.split()[:2])
    return {"0": {"openssh-key": f"{kind_and_key} {pair.key_name}\n"}}


def _reservation(instance: Any) -> Optional[str]:
    for reservation in instance.ec2_backend.reservations.values():
        if instance in reservation.instances:
            return str(reservation.id)
    return None


def _tags(instance: Any) -> "Optional[dict[str, Any]]":
    """The tags where the launch asks for them; keys that no path can have are left out."""
    if instance.metadata_options.instance_metadata_tags != "enabled":
        return None
    tags = {tag["key"]: tag["value"] for tag in instance.get_tags()}
    return {"instance": {key: value for key, value in tags.items() if re.fullmatch(r"[\w+=.,@:-]+", key)}}


def _document(instance: Any) -> "dict[str, Any]":
    """The identity document, with AWS's keys in AWS's order."""
    return {
        "accountId": instance.owner_id,
        "architecture": instance.architecture,
        "availabilityZone": instance.availability_zone,
        "billingProducts": None,
        "devpayProductCodes": None,
        "marketplaceProductCodes": None,
        "imageId": instance.image_id,
        "instanceId": instance.id,
        "instanceType": instance.instance_type,
        "kernelId": None,
        "pendingTime": instance.launch_time.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "privateIp": instance.nics[0].private_ip_address,
        "ramdiskId": None,
        "region": instance.ec2_backend.region_name,
        "version": "2017-09-30",
    }
