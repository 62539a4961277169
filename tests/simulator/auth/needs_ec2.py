"""EC2's resources: objects a call names by their ids, and those it makes.

Looking (Describe and the like) is on `*`, as in AWS. So is, unlike in AWS, what the tables do not name.
"""

from __future__ import annotations

from typing import Mapping, Optional

from moto.ec2.models import ec2_backends

from .needs import Asked, Need, Resource, action, of_pairs

# An id's prefix -> the type in its ARN.
_TYPES = {
    "acl": "network-acl",
    "ami": "image",
    "dopt": "dhcp-options",
    "eigw": "egress-only-internet-gateway",
    "eipalloc": "elastic-ip",
    "eni": "network-interface",
    "i": "instance",
    "igw": "internet-gateway",
    "key": "key-pair",
    "lt": "launch-template",
    "nat": "natgateway",
    "rtb": "route-table",
    "sg": "security-group",
    "sgr": "security-group-rule",
    "snap": "snapshot",
    "subnet": "subnet",
    "vol": "volume",
    "vpc": "vpc",
    "vpce": "vpc-endpoint",
}
# ARNs of these say no account.
_OF_NOBODY = ("image", "snapshot")

# Operation -> parameters that name what it acts on.
_ON: "dict[str, tuple[str, ...]]" = {
    "AllocateAddress": (),
    "AssignIpv6Addresses": ("NetworkInterfaceId",),
    "AssociateDhcpOptions": ("DhcpOptionsId", "VpcId"),
    "AssociateRouteTable": ("RouteTableId", "SubnetId"),
    "AssociateSubnetCidrBlock": ("SubnetId",),
    "AttachInternetGateway": ("InternetGatewayId", "VpcId"),
    "AttachVolume": ("InstanceId", "VolumeId"),
    "AuthorizeSecurityGroupEgress": ("GroupId",),
    "AuthorizeSecurityGroupIngress": ("GroupId",),
    "CreateDhcpOptions": (),
    "CreateEgressOnlyInternetGateway": ("VpcId",),
    "CreateInternetGateway": (),
    "CreateLaunchTemplate": (),
    "CreateLaunchTemplateVersion": ("LaunchTemplateId",),
    "CreateNatGateway": ("AllocationId", "SubnetId"),
    "CreateRoute": ("RouteTableId",),
    "CreateRouteTable": ("VpcId",),
    "CreateSecurityGroup": ("VpcId",),
    "CreateSubnet": ("VpcId",),
    "CreateTags": ("Resources",),
    "CreateVolume": ("SnapshotId",),
    "CreateVpc": (),
    "CreateVpcEndpoint": ("VpcId", "RouteTableIds"),
    "DeleteDhcpOptions": ("DhcpOptionsId",),
    "DeleteEgressOnlyInternetGateway": ("EgressOnlyInternetGatewayId",),
    "DeleteInternetGateway": ("InternetGatewayId",),
    "DeleteKeyPair": ("KeyPairId",),
    "DeleteLaunchTemplate": ("LaunchTemplateId",),
    "DeleteLaunchTemplateVersions": ("LaunchTemplateId",),
    "DeleteNatGateway": ("NatGatewayId",),
    "DeleteRoute": ("RouteTableId",),
    "DeleteRouteTable": ("RouteTableId",),
    "DeleteSecurityGroup": ("GroupId",),
    "DeleteSubnet": ("SubnetId",),
    "DeleteTags": ("Resources",),
    "DeleteVolume": ("VolumeId",),
    "DeleteVpc": ("VpcId",),
    "DeleteVpcEndpoints": ("VpcEndpointIds",),
    "DetachInternetGateway": ("InternetGatewayId", "VpcId"),
    "DetachVolume": ("InstanceId", "VolumeId"),
    "GetConsoleOutput": ("InstanceId",),
    "ModifyInstanceAttribute": ("InstanceId",),
    "ModifySubnetAttribute": ("SubnetId",),
    "ModifyVolume": ("VolumeId",),
    "ModifyVpcAttribute": ("VpcId",),
    "ModifyVpcEndpoint": ("VpcEndpointId", "AddRouteTableIds", "RemoveRouteTableIds"),
    "RebootInstances": ("InstanceIds",),
    "ReleaseAddress": ("AllocationId",),
    "ReplaceRoute": ("RouteTableId",),
    "RevokeSecurityGroupEgress": ("GroupId",),
    "RevokeSecurityGroupIngress": ("GroupId",),
    "RunInstances": ("ImageId", "SubnetId", "SecurityGroupIds"),
    "TerminateInstances": ("InstanceIds",),
}
# Operation -> types of what it makes; the request's tags are for those.
_MAKES: "dict[str, tuple[str, ...]]" = {
    "AllocateAddress": ("elastic-ip",),
    "CreateDhcpOptions": ("dhcp-options",),
    "CreateEgressOnlyInternetGateway": ("egress-only-internet-gateway",),
    "CreateInternetGateway": ("internet-gateway",),
    "CreateLaunchTemplate": ("launch-template",),
    "CreateNatGateway": ("natgateway",),
    "CreateRouteTable": ("route-table",),
    "CreateSecurityGroup": ("security-group",),
    "CreateSubnet": ("subnet",),
    "CreateVolume": ("volume",),
    "CreateVpc": ("vpc",),
    "CreateVpcEndpoint": ("vpc-endpoint",),
    "RunInstances": ("instance", "network-interface", "volume"),
}
def list_needs(asked: Asked) -> "list[Need]":
    """The operation's own action, then what tagging in the same call and passing a role need."""
    if asked.operation not in _ON:
        return [Need(action(asked))]
    if asked.operation in ("CreateTags", "DeleteTags"):
        return [_tagging(asked)]
    made = [_made(asked, kind) for kind in _MAKES.get(asked.operation, ())]
    resources = (*made, *(_named(asked, one) for name in _ON[asked.operation] for one in asked.texts(name)))
    needs = [Need(action(asked), resources or (Resource(),), {"ec2:region": [asked.region]})]
    needs += [Need("ec2:CreateTags", (one,), {"ec2:createaction": [asked.operation]}) for one in made if one.asked]
    return needs + _passed_role(asked)


def _named(asked: Asked, identifier: str, tags: "Optional[Mapping[str, str]]" = None) -> Resource:
    """An object with this id, and its tags."""
    kind = _TYPES.get(identifier.rsplit("-", 1)[0], "unknown")
    found: "dict[str, str]" = ec2_backends[asked.account][asked.region].tags.get(identifier, {})
    return Resource(_arn(asked, kind, identifier), dict(found), tags)


def _arn(asked: Asked, kind: str, name: str) -> str:
    owner = "" if kind in _OF_NOBODY else asked.account
    return f"arn:aws:ec2:{asked.region}:{owner}:{kind}/{name}"


def _made(asked: Asked, kind: str) -> Resource:
    """Something that does not exist yet, with the tags it is to have."""
    asked_tags: "dict[str, str]" = {}
    for specification in asked.parameters.get("TagSpecifications") or []:
        if specification.get("ResourceType", kind) == kind:
            asked_tags.update(of_pairs(specification.get("Tags")))
    return Resource(_arn(asked, kind, "*"), {}, asked_tags)


def _tagging(asked: Asked) -> Need:
    """Setting or removing tags of what exists."""
    tags = of_pairs(asked.parameters.get("Tags"))
    return Need(action(asked), tuple(_named(asked, one, tags) for one in asked.texts("Resources")))


def _passed_role(asked: Asked) -> "list[Need]":
    """Giving an instance a profile is passing its role to EC2."""
    from .needs_iam import pass_role_of_profile

    profile = asked.parameters.get("IamInstanceProfile")
    return pass_role_of_profile(asked, profile) if isinstance(profile, dict) else []
