"""VPCs and DHCP options."""

from __future__ import annotations

import hashlib
import ipaddress
from typing import Any

from moto.ec2.exceptions import DependencyViolationError, EC2ClientError, VPCIdNotSpecifiedError
from moto.ec2.models import EC2Backend
from moto.ec2.models.dhcp_options import DHCPOptionsSet, DHCPOptionsSetBackend
from moto.ec2.models.security_groups import SecurityGroupBackend
from moto.ec2.models.vpcs import VPCBackend
from moto.ec2.responses.dhcp_options import DHCPOptions
from moto.ec2.responses.vpcs import VPCs

from .patch import replace


def there_is_no_default_vpc() -> None:
    """AWS: an account may have no default VPC (ours has none); what needs one says VPCIdNotSpecified.
    moto: makes one with six subnets in every region that is touched.
    """

    @replace(EC2Backend, "create_default_vpc")
    def create_default_vpc(original: Any, backend: Any) -> Any:
        if "default_vpc" not in backend.__dict__:
            return None  # called while the backend is made, by nobody's wish
        backend.default_vpc = original(backend)
        return backend.default_vpc

    @replace(SecurityGroupBackend, "create_security_group")
    def create_security_group(
        original: Any, backend: Any, name: str, description: str, vpc_id: Any = None, **kwargs: Any
    ) -> Any:
        if not vpc_id and backend.default_vpc is None:
            raise VPCIdNotSpecifiedError()
        if vpc_id:
            backend.get_vpc(vpc_id)
        return original(backend, name, description, vpc_id=vpc_id, **kwargs)


def every_vpc_has_dhcp_options() -> None:
    """AWS: a new VPC has the region's default options set, an object like any other; a set has an owner.
    moto: says `default`, which is what AWS says of a VPC that has none.
    """

    @replace(EC2Backend, "__init__")
    def init(original: Any, backend: Any, region_name: str, account_id: str) -> None:
        original(backend, region_name, account_id)
        domain = "ec2.internal" if region_name == "us-east-1" else f"{region_name}.compute.internal"
        options = DHCPOptionsSet(backend, domain_name_servers=["AmazonProvidedDNS"], domain_name=[domain])
        options.id = "dopt-" + hashlib.sha256(region_name.encode()).hexdigest()[:17]
        backend.dhcp_options_sets[options.id] = options
        backend.default_dhcp_options = options

    @replace(VPCBackend, "create_vpc")
    def create_vpc(original: Any, backend: Any, *args: Any, **kwargs: Any) -> Any:
        vpc = original(backend, *args, **kwargs)
        vpc.dhcp_options = getattr(backend, "default_dhcp_options", None)
        return vpc

    DHCPOptionsSet.owner_id = property(lambda options: options.ec2_backend.account_id)


def dhcp_options_are_tagged_when_made() -> None:
    """AWS: TagSpecifications of CreateDhcpOptions tag the set.
    moto: drops them.
    """

    @replace(DHCPOptions, "create_dhcp_options")
    def create(original: Any, response: Any) -> Any:
        tags = response._parse_tag_specification("dhcp-options").get("dhcp-options", {})
        answer = original(response)
        answer.result["DhcpOptions"].add_tags(tags)
        return answer


def dhcp_options_outlive_their_vpc() -> None:
    """AWS: deleting a VPC leaves its options set; a set that any VPC uses cannot be deleted.
    moto: deletes the set with the VPC, and knows of one VPC per set.
    """

    @replace(VPCBackend, "delete_vpc")
    def delete_vpc(original: Any, backend: Any, vpc_id: str) -> Any:
        vpc = backend.get_vpc(vpc_id)
        options, vpc.dhcp_options = vpc.dhcp_options, None
        try:
            return original(backend, vpc_id)
        except EC2ClientError:
            vpc.dhcp_options = options
            raise

    @replace(DHCPOptionsSetBackend, "delete_dhcp_options_set")
    def delete(original: Any, backend: Any, options_id: Any) -> None:
        if any(vpc.dhcp_options_id == options_id for vpc in backend.vpcs.values()):
            raise DependencyViolationError(f"The dhcpOptions '{options_id}' has dependencies and cannot be deleted.")
        if options_id in backend.dhcp_options_sets:
            backend.dhcp_options_sets[options_id].vpc = None
        original(backend, options_id)


def a_vpc_with_something_in_it_stays() -> None:
    """AWS: DependencyViolation while subnets, gateways, other security groups or route tables, or
    interfaces are in the VPC; its own network ACL goes with it.
    moto: looks at subnets, VPN gateways and route tables only, and leaves the ACL behind.
    """

    @replace(VPCBackend, "delete_vpc")
    def delete_vpc(original: Any, backend: Any, vpc_id: str) -> Any:
        backend.get_vpc(vpc_id)
        inside = (
            any(gateway.vpc is not None and gateway.vpc.id == vpc_id for gateway in backend.internet_gateways.values())
            or any(gateway.vpc_id == vpc_id for gateway in backend.egress_only_internet_gateways.values())
            or any(not group.is_default for group in backend.groups[vpc_id].values())
            or any(eni.vpc_id == vpc_id for eni in backend.enis.values())
            or any(endpoint.vpc_id == vpc_id for endpoint in backend.vpc_end_points.values())
        )
        if inside:
            raise DependencyViolationError(f"The vpc '{vpc_id}' has dependencies and cannot be deleted.")
        vpc = original(backend, vpc_id)
        for acl in [acl for acl in backend.network_acls.values() if acl.vpc_id == vpc_id]:
            backend.network_acls.pop(acl.id)
        return vpc


def vpc_attributes_change_one_at_a_time() -> None:
    """AWS: ModifyVpcAttribute with two attributes is InvalidParameterCombination.
    moto: takes both.
    """

    @replace(VPCs, "modify_vpc_attribute")
    def modify(original: Any, response: Any) -> Any:
        asked = [
            name
            for name in ("EnableDnsSupport", "EnableDnsHostnames", "EnableNetworkAddressUsageMetrics")
            if response._get_param(name)
        ]
        if len(asked) > 1:
            raise EC2ClientError(
                "InvalidParameterCombination", "Fields for multiple attribute types specified: " + ", ".join(asked)
            )
        return original(response)


def address_blocks_bring_their_local_routes() -> None:
    """AWS: each block of a VPC is a local route in all its tables, also one that came later; a block
    with a subnet in it cannot be taken away, and one that was taken away is not described for long.
    moto: gives a table the blocks of the moment it was made.
    """

    @replace(VPCBackend, "associate_vpc_cidr_block")
    def associate(original: Any, backend: Any, vpc_id: str, *args: Any, **kwargs: Any) -> Any:
        association = original(backend, vpc_id, *args, **kwargs)
        block = association["cidr_block"]
        family = (
            {"destination_cidr_block": None, "destination_ipv6_cidr_block": block}
            if ":" in block
            else {"destination_cidr_block": block}
        )
        for table in [table for table in backend.route_tables.values() if table.vpc_id == vpc_id]:
            backend.create_route(table.id, local=True, **family)
        return association

    @replace(VPCBackend, "disassociate_vpc_cidr_block")
    def disassociate(original: Any, backend: Any, association_id: str) -> Any:
        for vpc in backend.vpcs.values():
            block = vpc._cidr_block_association_set.get(association_id, {}).get("cidr_block")
            if block is None:
                continue
            if block != vpc.cidr_block and _holds_a_subnet(backend, vpc.id, block):
                raise DependencyViolationError(f"The vpc currently has a subnet within CIDR block {block}")
            answer = original(backend, association_id)
            vpc._cidr_block_association_set.pop(association_id)
            _drop_local_routes(backend, vpc.id, block)
            return answer
        return original(backend, association_id)


def _holds_a_subnet(backend: Any, vpc_id: str, block: str) -> bool:
    network = ipaddress.ip_network(block, strict=False)
    for subnet in backend.describe_subnets(filters={"vpc-id": [vpc_id]}):
        own = [subnet.cidr_block] + [
            a["ipv6CidrBlock"]
            for a in subnet.ipv6_cidr_block_associations.values()
            if a["ipv6CidrBlockState"]["State"] == "associated"
        ]
        if any(
            cidr and network.overlaps(ipaddress.ip_network(cidr)) for cidr in own if (":" in cidr) == (":" in block)
        ):
            return True
    return False


def _drop_local_routes(backend: Any, vpc_id: str, block: str) -> None:
    for table in [table for table in backend.route_tables.values() if table.vpc_id == vpc_id]:
        for identity, route in list(table._routes.items()):
            if route.local and block in (route.destination_cidr_block, route.destination_ipv6_cidr_block):
                table._routes.pop(identity)
