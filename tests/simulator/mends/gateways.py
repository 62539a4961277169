"""Internet gateways, NAT gateways, elastic addresses."""

from __future__ import annotations

import ipaddress
import itertools
from functools import partial
from typing import TYPE_CHECKING, Any, Optional

from moto.core.responses import ActionResult
from moto.ec2.exceptions import DependencyViolationError, EC2ClientError
from moto.ec2.models.elastic_ip_addresses import ElasticAddressBackend
from moto.ec2.models.elastic_network_interfaces import NetworkInterface
from moto.ec2.models.internet_gateways import InternetGatewayBackend
from moto.ec2.models.nat_gateways import NatGateway, NatGatewayBackend
from moto.ec2.responses.egress_only_internet_gateways import EgressOnlyInternetGateway
from moto.ec2.utils import generic_filter

from .patch import replace

if TYPE_CHECKING:
    from . import Options


def internet_gateway_of(backend: Any, vpc_id: str) -> Any:
    """The internet gateway attached to a VPC, or None."""
    attached = (gateway for gateway in backend.internet_gateways.values() if gateway.vpc is not None)
    return next((gateway for gateway in attached if gateway.vpc.id == vpc_id), None)


def a_vpc_has_one_internet_gateway() -> None:
    """AWS: a second internet gateway for a VPC is refused; one cannot be detached while the VPC has
    public addresses mapped (NAT gateways, instances, load balancers).
    moto: attaches any number, detaches always.
    """

    @replace(InternetGatewayBackend, "attach_internet_gateway")
    def attach(original: Any, backend: Any, gateway_id: str, vpc_id: str) -> Any:
        present = internet_gateway_of(backend, vpc_id)
        if present is not None and present.id != gateway_id:
            message = f"Network {vpc_id} already has an internet gateway attached"
            raise EC2ClientError("InvalidParameterValue", message)
        return original(backend, gateway_id, vpc_id)

    @replace(InternetGatewayBackend, "detach_internet_gateway")
    def detach(original: Any, backend: Any, gateway_id: str, vpc_id: str) -> Any:
        if any(eni.vpc_id == vpc_id and eni.public_ip for eni in backend.enis.values()):
            raise DependencyViolationError(
                f"Network {vpc_id} has some mapped public address(es). "
                "Please unmap those public address(es) before detaching the gateway."
            )
        return original(backend, gateway_id, vpc_id)


# EC2's words for an address that one of AWS' own services holds (kubernetes/kops#938, eformat/sno-for-100#5,
# hashicorp/terraform-provider-aws#4675).
_HELD = "You do not have permission to access the specified resource."


def egress_only_gateways_are_filtered_by_tag() -> None:
    """AWS: DescribeEgressOnlyInternetGateways takes filters of tags.
    moto: ignores them.
    """

    @replace(EgressOnlyInternetGateway, "describe_egress_only_internet_gateways")
    def describe(_original: Any, response: Any) -> Any:
        ids = response._get_param("EgressOnlyInternetGatewayIds", [])
        found = response.ec2_backend.describe_egress_only_internet_gateways(ids)
        found = generic_filter(response._filters_from_querystring(), found)
        return ActionResult({"EgressOnlyInternetGateways": found})


def an_address_in_use_is_not_released(options: "Options") -> None:
    """AWS: AuthFailure while a NAT gateway or a load balancer holds the address, and for a while after it is
    gone (eformat/sno-for-100#9); InvalidIPAddress.InUse while it is associated with anything else.
    moto: disassociates it.
    """

    @replace(ElasticAddressBackend, "release_address")
    def release(
        original: Any, backend: Any, address: Optional[str] = None, allocation_id: Optional[str] = None
    ) -> None:
        found = backend.address_by_ip([address]) if address else backend.address_by_allocation([allocation_id])
        if getattr(found[0], "held", False) or _is_managed(found[0].eni):
            raise EC2ClientError("AuthFailure", _HELD)
        if found[0].association_id:
            message = f"The IP address {found[0].public_ip} is in use."
            raise EC2ClientError("InvalidIPAddress.InUse", message)
        original(backend, address=address, allocation_id=allocation_id)

    @replace(ElasticAddressBackend, "disassociate_address")
    def disassociate(original: Any, backend: Any, *args: Any, **kwargs: Any) -> Any:
        held = [one for one in backend.addresses if _is_managed(one.eni)]
        answer = original(backend, *args, **kwargs)
        for one in held:
            if one.eni is None:
                one.held = True
                options.later.add(partial(setattr, one, "held", False))
        return answer


def _is_managed(interface: Any) -> bool:
    return bool(getattr(interface, "requester_managed", False))


# What an instance with IPv6 alone gets by DHCP for IPv4, to reach EC2's own services (canonical/cloud-init#5307). The first is
# the router's.
_LINK_LOCAL = itertools.count(1)


def interfaces_have_an_address_of_their_subnet() -> None:
    """AWS: every interface has a free address of its subnet; an IPv6 one where the subnet says so, and no IPv4
    address where the subnet has IPv6 alone.
    moto: gives NAT gateways any private address, and others a random one that may be taken; IPv6 addresses only
    to who asks, and calls one of these the private IPv4 address where there is none.
    """

    @replace(NetworkInterface, "__init__")
    def init(original: Any, eni: Any, backend: Any, subnet: Any, private_ip: Any, *args: Any, **kwargs: Any) -> None:
        subnet = backend.get_subnet(subnet) if isinstance(subnet, str) else subnet
        if subnet.assign_ipv6_address_on_creation and not kwargs.get("ipv6_addresses"):
            kwargs["ipv6_address_count"] = kwargs.get("ipv6_address_count") or 1
        if subnet.ipv6_native:
            original(eni, backend, subnet, "0.0.0.0", **kwargs)
            eni.private_ip_address, eni.private_ip_addresses, eni.private_dns_name = None, [], None
            number = next(_LINK_LOCAL)
            eni.link_local_address = f"169.254.{number // 250 % 160}.{number % 250 + 1}"
            return
        first = private_ip[0] if isinstance(private_ip, list) and private_ip else private_ip
        outside = first and ipaddress.ip_address(first) not in ipaddress.ip_network(subnet.cidr_block or "0.0.0.0/0")
        if (outside or not first) and not any(args[:1]) and not kwargs.get("private_ip_addresses"):
            private_ip = subnet.get_available_subnet_ip(instance=eni)
        original(eni, backend, subnet, private_ip, *args, **kwargs)


def nat_gateways_come_and_go_slowly(options: "Options") -> None:
    """AWS: a NAT gateway is pending, then available, or failed (address taken, no internet gateway);
    deleting, then deleted, and only then its interface and its hold on the address are gone.
    moto: is available at once, and deleted in name only: interface and address stay in use.
    """

    @replace(NatGatewayBackend, "create_nat_gateway")
    def create(
        original: Any, backend: Any, subnet_id: str, allocation_id: Any, tags: Any = None, connectivity_type: Any = None
    ) -> Any:
        failure = _nat_failure(backend, subnet_id, allocation_id, connectivity_type)
        kind = connectivity_type or "public"
        gateway = original(backend, subnet_id, None if failure else allocation_id, tags, kind)
        gateway._eni.description = f"Interface for NAT Gateway {gateway.id}"
        gateway._eni.requester_managed = True
        gateway._eni.interface_type = "nat_gateway"
        gateway._eni.status = "in-use"
        gateway.state = "pending"
        if failure:
            gateway.failure_code, gateway.failure_message = failure
        options.later.add(lambda: _nat_settles(backend, gateway, "failed" if failure else "available"))
        return gateway

    @replace(NatGatewayBackend, "delete_nat_gateway")
    def delete(_original: Any, backend: Any, gateway_id: str) -> Any:
        gateway = backend.nat_gateways.get(gateway_id)
        if gateway is None:
            raise EC2ClientError("NatGatewayNotFound", f"NatGateway {gateway_id} was not found")
        if gateway.state not in ("deleting", "deleted"):
            gateway.state = "deleting"
            options.later.add(lambda: _nat_gone(backend, gateway))
        return gateway


def _nat_failure(backend: Any, subnet_id: str, allocation_id: Any, kind: Any) -> "Optional[tuple[str, str]]":
    """Why a NAT gateway will not come up: code and message."""
    if kind == "private":
        return None
    vpc_id = backend.get_subnet(subnet_id).vpc_id
    if not allocation_id:
        raise EC2ClientError("MissingParameter", "The request must contain the parameter AllocationId")
    if backend.address_by_allocation([allocation_id])[0].association_id:
        return "Resource.AlreadyAssociated", f"Elastic IP address [{allocation_id}] is already associated"
    if internet_gateway_of(backend, vpc_id) is None:
        return "Gateway.NotAttached", f"Network {vpc_id} has no Internet gateway attached"
    return None


def _nat_settles(backend: Any, gateway: Any, state: str) -> None:
    if gateway.state == "pending":
        gateway.state = state
        if state == "failed":
            backend.enis.pop(gateway._eni.id, None)


def _nat_gone(backend: Any, gateway: Any) -> None:
    gateway.state = "deleted"
    for address in backend.addresses:
        if address.eni is gateway._eni:
            backend.disassociate_address(association_id=address.association_id)
    if gateway._eni.id in backend.enis:
        gateway._eni.delete()


def nat_gateways_are_filtered_by_tag() -> None:
    """AWS: DescribeNatGateways takes tag filters, and an unknown id is NatGatewayNotFound.
    moto: knows four filters and ignores the others, so a tag filter gives everybody's gateways.
    """

    @replace(NatGatewayBackend, "describe_nat_gateways")
    def describe(original: Any, backend: Any, filters: Any, ids: Any) -> Any:
        for identity in ids or []:
            if identity not in backend.nat_gateways:
                raise EC2ClientError("NatGatewayNotFound", f"NatGateway {identity} was not found")
        tags = {name: values for name, values in (filters or {}).items() if name.startswith("tag")}
        return generic_filter(tags, original(backend, filters, ids))

    for name in ("failure_code", "failure_message"):
        setattr(NatGateway, name, None)
