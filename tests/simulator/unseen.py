"""What was made a moment ago and is named by a request, but is not seen yet: each service says so in its own words.

`POST /_simulator/lag` sets for how long. Auto Scaling's launch templates, keys and profiles are in `mends/autoscaling.py`: it reads
them when it checks a template, not in the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Optional

from .faults import Fault
from .operations import Call

if TYPE_CHECKING:
    from .settle import Later

# EC2's codes, from its reference of error codes. By the prefix of the id.
_EC2 = {
    "dopt": ("InvalidDhcpOptionID.NotFound", "The dhcpOption ID '{id}' does not exist"),
    "eipalloc": ("InvalidAllocationID.NotFound", "The allocation ID '{id}' does not exist"),
    "igw": ("InvalidInternetGatewayID.NotFound", "The internetGateway ID '{id}' does not exist"),
    "nat": ("InvalidNatGatewayID.NotFound", "The natGateway ID '{id}' does not exist"),
    "rtb": ("InvalidRouteTableID.NotFound", "The routeTable ID '{id}' does not exist"),
    "sg": ("InvalidGroup.NotFound", "The security group '{id}' does not exist"),
    "subnet": ("InvalidSubnetID.NotFound", "The subnet ID '{id}' does not exist"),
    "vol": ("InvalidVolume.NotFound", "The volume '{id}' does not exist."),
    "vpc": ("InvalidVpcID.NotFound", "The vpc ID '{id}' does not exist"),
}
_WORDS = {
    "ec2": _EC2,
    # Elastic Load Balancing: ansible/ansible#31919 and hashicorp/terraform-provider-aws#20454 for the VPC; the codes of subnets and
    # groups are those of the model (`SubnetNotFoundException`, `InvalidSecurityGroupException`).
    "elbv2": {
        "vpc": ("ValidationError", "The VPC ID '{id}' is not found"),
        "subnet": ("SubnetNotFound", "The subnet ID '{id}' does not exist"),
        "sg": ("InvalidSecurityGroup", "The security group ID '{id}' does not exist"),
    },
    "autoscaling": {"subnet": ("ValidationError", "The subnet ID '{id}' does not exist")},
    # AssociateVPCWithHostedZone, `InvalidVPCId` of the model.
    "route53": {"vpc": ("InvalidVPCId", "The VPC: {id} you provided is not authorized or does not exist")},
}


def refuse(call: Call, values: "dict[str, Any]", later: "Later") -> "Optional[Fault]":
    """What a service says of the first thing in a request that it does not see yet."""
    words = _WORDS.get(call.service, {})
    for identity in _texts(values):
        prefix = identity.split("-", 1)[0]
        if prefix in words and later.is_unseen(identity):
            code, message = words[prefix]
            return Fault(code=code, message=message.format(id=identity), status=400)
    return None


def _texts(value: Any) -> "Iterator[str]":
    """Every text of a request; a list of ids in one text, as Auto Scaling has it, is several."""
    if isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield from value.split(",")
