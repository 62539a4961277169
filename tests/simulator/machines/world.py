"""The state of one region from moto's backends, in the form that tests/lab/src/aws_state.rs reads."""

from __future__ import annotations

from typing import Any, Optional

from moto.core import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends

from .balancing import load_balancers, target_groups
from .names import hosted_zones
from .network import egress_only_gateways, internet_gateways, nat_gateways, route_tables, security_groups, subnets, vpcs


def world(region: str) -> "dict[str, Any]":
    """Everything a machine, a network or a name server has to know; the serial is 0."""
    ec2 = ec2_backends[DEFAULT_ACCOUNT_ID][region]
    return {
        "serial": 0,
        "region": region,
        "instances": [instance(found) for found in ec2.all_instances()],
        "volumes": [_volume(found) for found in ec2.volumes.values() if not _is_root(found)],
        "vpcs": vpcs(ec2),
        "subnets": subnets(ec2),
        "route_tables": route_tables(ec2),
        "internet_gateways": internet_gateways(ec2),
        "egress_only_gateways": egress_only_gateways(ec2),
        "nat_gateways": nat_gateways(ec2),
        "security_groups": security_groups(ec2),
        "load_balancers": load_balancers(region),
        "target_groups": target_groups(region),
        "hosted_zones": hosted_zones(region),
    }


def instance(found: Any) -> "dict[str, Any]":
    """One instance; a terminated one keeps its address and interface in name."""
    primary = found.nics[0]
    options = found.metadata_options
    return {
        "id": found.id,
        "state": found.state,
        "reboots": getattr(found, "reboots", 0),
        "vpc": found.vpc_id,
        "subnet": found.subnet_id,
        "zone": found.availability_zone,
        "address": primary.private_ip_address or primary.link_local_address,
        "ipv6_addresses": list(primary.ipv6_addresses),
        "ipv6_prefixes": list(primary.delegated),
        "mac": primary.mac_address.lower(),
        "public_address": primary.public_ip,
        "hostname": found.private_dns_name,
        "image": found.image_id,
        "type": found.instance_type,
        "user_data": str(found.user_data) if found.user_data else None,
        "profile": profile_arn(found),
        "security_groups": sorted({group.id for nic in found.nics.values() for group in nic.group_set}),
        "source_dest_check": bool(found.source_dest_check) and bool(primary.source_dest_check),
        "hop_limit": int(options.http_put_response_hop_limit or 1),
        "tokens_required": options.http_tokens == "required",
        "tags": {tag["key"]: tag["value"] for tag in found.get_tags()},
    }


def _is_root(volume: Any) -> bool:
    attachment = volume.attachment
    return attachment is not None and attachment.device == attachment.instance.root_device_name


def _volume(found: Any) -> "dict[str, Any]":
    return {
        "id": found.id,
        "size": int(found.size),
        "zone": found.availability_zone,
        "attachment": _attachment(found.attachment),
    }


def _attachment(found: Any) -> "Optional[dict[str, Any]]":
    if found is None:
        return None
    return {"instance": found.instance.id, "device": found.device, "state": found.status}


def profile_arn(found: Any) -> Optional[str]:
    """The ARN of an instance's profile, if it has one."""
    association = found.ec2_backend.iam_instance_profile_associations.get(found.id)
    return association.iam_instance_profile.arn if association else None
