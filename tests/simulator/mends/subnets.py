"""Subnets."""

from __future__ import annotations

from typing import Any

from moto.core.responses import EmptyResult
from moto.ec2.exceptions import DependencyViolationError, EC2ClientError
from moto.ec2.models.subnets import Subnet, SubnetBackend
from moto.ec2.responses.subnets import Subnets

from .patch import replace, replace_property

# ModifySubnetAttribute: the attributes we know, and where their value goes.
_ON_LAUNCH = {
    "PrivateDnsHostnameTypeOnLaunch": "HostnameType",
    "EnableResourceNameDnsARecordOnLaunch": "EnableResourceNameDnsARecord",
    "EnableResourceNameDnsAAAARecordOnLaunch": "EnableResourceNameDnsAAAARecord",
}
_ATTRIBUTES = [*_ON_LAUNCH, "EnableDns64", "MapPublicIpOnLaunch", "AssignIpv6AddressOnCreation"]


def a_new_subnet_is_nobodys_default() -> None:
    """AWS: only CreateDefaultSubnet makes a default subnet; others map no public addresses.
    moto: takes the first subnet of a zone for the default one, mapping public addresses.
    """

    @replace(SubnetBackend, "create_subnet")
    def create(original: Any, backend: Any, vpc_id: str, *args: Any, **kwargs: Any) -> Any:
        subnet = original(backend, vpc_id, *args, **kwargs)
        if not backend.get_vpc(vpc_id).is_default:
            subnet.default_for_az = False
            subnet.map_public_ip_on_launch = False
        return subnet


def private_dns_name_options_are_kept() -> None:
    """AWS: the hostname type, both record switches and DNS64 are set by ModifySubnetAttribute, one
    attribute a call, and described.
    moto: knows the A record only.
    """

    @replace(Subnets, "modify_subnet_attribute")
    def modify(original: Any, response: Any) -> Any:
        asked = [name for name in _ATTRIBUTES if response._get_param(name) is not None]
        if len(asked) > 1:
            raise EC2ClientError(
                "InvalidParameterCombination", "Fields for multiple attribute types specified: " + ", ".join(asked)
            )
        if not asked or asked[0] not in (*_ON_LAUNCH, "EnableDns64"):
            return original(response)
        subnet = response.ec2_backend.get_subnet(response._get_param("SubnetId"))
        value = response._get_param(asked[0])
        if isinstance(value, dict):
            value = value.get("Value")
        if asked[0] == "EnableDns64":
            subnet.enable_dns64 = str(value).lower() == "true"
            return EmptyResult()
        subnet.private_dns_name_options_on_launch[_ON_LAUNCH[asked[0]]] = value
        return EmptyResult()


def an_ipv6_block_of_a_subnet_is_described() -> None:
    """AWS: a subnet describes with the state of its IPv6 block.
    moto: nests the state once too often, and the answer has none.
    """

    @replace_property(Subnet, "ipv6_cidr_block_association_set")
    def associations(subnet: Any) -> Any:
        found = subnet.ipv6_cidr_block_associations.values()
        return [association for association in found if association["ipv6CidrBlockState"]["State"] == "associated"]


def a_subnet_with_ipv6_alone_has_no_ipv4_addresses_left() -> None:
    """AWS: AvailableIpAddressCount counts IPv4 addresses.
    moto: counts those of IPv6, more than the SDKs' integers hold.
    """

    original = Subnet.available_ip_address_count.fget

    @replace_property(Subnet, "available_ip_address_count")
    def available(subnet: Any) -> Any:
        return 0 if subnet.ipv6_native else original(subnet)


def a_subnet_with_something_in_it_stays() -> None:
    """AWS: DependencyViolation while an interface is in the subnet; its associations with a route
    table and a network ACL go with it.
    moto: deletes it, and its route table cannot be deleted afterwards.
    """

    @replace(SubnetBackend, "delete_subnet")
    def delete(original: Any, backend: Any, subnet_id: str) -> Any:
        if any(eni.subnet.id == subnet_id for eni in backend.enis.values()):
            raise DependencyViolationError(f"The subnet '{subnet_id}' has dependencies and cannot be deleted.")
        subnet = original(backend, subnet_id)
        for table in backend.route_tables.values():
            table._associations = {key: target for key, target in table._associations.items() if target != subnet_id}
        for acl in backend.network_acls.values():
            acl._associations = {key: a for key, a in acl._associations.items() if a.subnet_id != subnet_id}
        return subnet
