"""Network load balancers."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Optional

import moto.elbv2.models as moto_elbv2
from moto.core.exceptions import ServiceException
from moto.elbv2.exceptions import DuplicateLoadBalancerName, ELBClientError, LoadBalancerNotFoundError
from moto.elbv2.models import AvailabilityZone, ELBv2Backend, FakeLoadBalancer

from .gateways import internet_gateway_of
from .patch import replace, replace_property
from .target_groups import make_once

if TYPE_CHECKING:
    from . import Options

# The ranges for documentation: nobody has these addresses.
_PUBLIC = ("203.0.113", "198.51.100", "192.0.2")

# https://docs.aws.amazon.com/elasticloadbalancing/latest/network/availability-zones.html
_FREE_ADDRESSES = 8

# Route 53 zones of network load balancers, from the endpoints page of Elastic Load Balancing.
HOSTED_ZONES = {
    "ap-northeast-1": "Z31USIVHYNEOWT",
    "ap-northeast-2": "ZIBE1TIR4HY56",
    "ap-south-1": "ZVDDRBQ08TROA",
    "ap-southeast-1": "ZKVM4W9LS7TM",
    "ap-southeast-2": "ZCT6FZBF4DROD",
    "ca-central-1": "Z2EPGBW3API2WT",
    "eu-central-1": "Z3F0SRJ5LGBH90",
    "eu-north-1": "Z1UDT6IFJ4EJM",
    "eu-west-1": "Z2IFOLAFXWLO4F",
    "eu-west-2": "ZD4D7Y8KGAGS4",
    "eu-west-3": "Z1CMS0P5QUZ6D5",
    "sa-east-1": "ZTK26PT1VY4CU",
    "us-east-1": "Z26RNL4JYFTOTI",
    "us-east-2": "ZLMOA37VPKANP",
    "us-west-1": "Z24FKFUX50B4VW",
    "us-west-2": "Z18D5FSROUN65G",
}


def hosted_zone_of(region: str) -> str:
    """The zone of a region's network load balancers; made up, but always the same, where we know none."""
    return HOSTED_ZONES.get(region) or "Z" + hashlib.sha256(region.encode()).hexdigest()[:13].upper()


def network_load_balancers_are_named_as_such() -> None:
    """AWS: the ARN of a network load balancer says net/NAME/ID, its DNS name is
    NAME-ID.elb.REGION.amazonaws.com, its hosted zone that of the region.
    moto: says app/, NAME-1.REGION.elb and an example zone.
    """

    @replace(ELBv2Backend, "create_load_balancer")
    def create(original: Any, backend: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        kind = kwargs.get("loadbalancer_type") or "application"
        make_arn = moto_elbv2.make_arn_for_load_balancer
        if kind == "network":
            moto_elbv2.make_arn_for_load_balancer = lambda **parts: make_arn(**parts).replace("/app/", "/net/")
        try:
            balancer = original(backend, name, *args, **kwargs)
        finally:
            moto_elbv2.make_arn_for_load_balancer = make_arn
        if kind == "network":
            balancer.dns_name = f"{name}-{balancer.arn.rsplit('/', 1)[1]}.elb.{backend.region_name}.amazonaws.com"
            balancer.canonical_hosted_zone_id = hosted_zone_of(backend.region_name)
        return balancer


def creating_a_balancer_twice_makes_one() -> None:
    """AWS: a create with the name and the settings of an existing balancer gives that one; with other
    settings it is DuplicateLoadBalancerName.
    moto: makes another one of the same name.
    """

    def same_name(response: Any, asked: "dict[str, Any]") -> Any:
        return (one for one in response.elbv2_backend.load_balancers.values() if one.name == asked["Name"])

    make_once("create_load_balancer", "LoadBalancers", same_name, DuplicateLoadBalancerName)


def balancers_need_what_they_name() -> None:
    """AWS: an internet-facing balancer needs an internet gateway in its VPC, and any but an internal one with a given address
    8 free addresses in each subnet (InvalidSubnet); its subnets and security groups have to exist; an unknown name or ARN among several is LoadBalancerNotFound.
    moto: checks subnets, in EC2's words, and gives the balancer before for an unknown one.
    """

    @replace(ELBv2Backend, "create_load_balancer")
    def create(original: Any, backend: Any, **kwargs: Any) -> Any:
        mappings = kwargs.get("subnet_mappings") or []
        identities = list(kwargs.get("subnet_ids") or []) + [mapping["SubnetId"] for mapping in mappings]
        subnets = [_subnet(backend, identity) for identity in identities]
        for group in kwargs.get("security_groups") or []:
            if backend.ec2_backend.get_security_group_from_id(group) is None:
                raise ELBClientError("InvalidSecurityGroup", f"Security group '{group}' does not exist")
        facing = (kwargs.get("scheme") or "internet-facing") == "internet-facing"
        if facing and subnets and internet_gateway_of(backend.ec2_backend, subnets[0].vpc_id) is None:
            raise ELBClientError("InvalidSubnet", f"VPC {subnets[0].vpc_id} has no internet gateway")
        given = {mapping["SubnetId"] for mapping in mappings if mapping.get("PrivateIPv4Address")}
        for subnet in subnets:
            if (facing or subnet.id not in given) and subnet.available_ip_address_count < _FREE_ADDRESSES:
                wanted = f"ELB requires at least {_FREE_ADDRESSES} free IP addresses in each subnet."
                raise ELBClientError("InvalidSubnet", f"Not enough IP space available in {subnet.id}. {wanted}")
        kwargs["scheme"] = kwargs.get("scheme") or "internet-facing"
        return original(backend, **kwargs)

    @replace(ELBv2Backend, "set_ip_address_type")
    def family(original: Any, backend: Any, arn: str, ip_type: str) -> None:
        original(backend, arn, ip_type)
        balancer = backend.load_balancers[arn]
        for eni in balancer.__dict__.get("interfaces", {}).values():
            _follow_family(backend.ec2_backend, balancer, eni)

    @replace(ELBv2Backend, "describe_load_balancers")
    def describe(original: Any, backend: Any, arns: Any, names: Any) -> Any:
        known_names = [balancer.name for balancer in backend.load_balancers.values()]
        if any(arn not in backend.load_balancers for arn in arns or []) or any(
            name not in known_names for name in names or []
        ):
            raise LoadBalancerNotFoundError()
        return original(backend, arns, names)


def _subnet(backend: Any, identity: str) -> Any:
    try:
        return backend.ec2_backend.get_subnet(identity)
    except ServiceException as error:
        raise ELBClientError("SubnetNotFound", f"The subnet ID '{identity}' is not valid") from error


def balancers_have_interfaces(options: "Options") -> None:
    """AWS: a balancer has an interface in each of its subnets, with its security groups; they go some
    time after it, and hold subnets, groups, addresses and the internet gateway until then.
    moto: has none, so everything under a balancer can be deleted.
    """

    @replace(ELBv2Backend, "create_load_balancer")
    def create(original: Any, backend: Any, **kwargs: Any) -> Any:
        balancer = original(backend, **kwargs)
        _place(backend, balancer, kwargs.get("subnet_mappings") or [])
        return balancer

    @replace(ELBv2Backend, "set_security_groups")
    def set_security_groups(original: Any, backend: Any, arn: str, groups: "list[str]") -> Any:
        balancer = backend.load_balancers.get(arn)
        if balancer is not None and balancer.type == "network" and not balancer.security_groups:
            message = "You cannot set security groups on a load balancer that was created without security groups"
            raise ELBClientError("InvalidConfigurationRequest", message)
        original(backend, arn, groups)
        for eni in balancer.interfaces.values():
            eni._group_set = [backend.ec2_backend.get_security_group_from_id(group) for group in groups]

    @replace(ELBv2Backend, "delete_load_balancer")
    def delete(original: Any, backend: Any, arn: str) -> Any:
        balancer = backend.load_balancers.get(arn)
        if balancer is not None and balancer.attrs.get("deletion_protection.enabled") == "true":
            message = f"Load balancer '{arn}' cannot be deleted because deletion protection is enabled"
            raise ELBClientError("OperationNotPermitted", message)
        original(backend, arn)
        for eni in getattr(balancer, "interfaces", {}).values():
            options.later.add(_removal(backend.ec2_backend, eni))


def _place(backend: Any, balancer: Any, mappings: "list[dict[str, Any]]") -> None:
    """Makes the interfaces that are missing, removes those that are too many."""
    ec2 = backend.ec2_backend
    wanted = {mapping["SubnetId"]: mapping for mapping in mappings}
    present = balancer.__dict__.setdefault("interfaces", {})
    for identity in [identity for identity in present if identity not in [subnet.id for subnet in balancer.subnets]]:
        _removal(ec2, present.pop(identity))()
    for subnet in balancer.subnets:
        if subnet.id not in present:
            present[subnet.id] = _interface(ec2, balancer, subnet, wanted.get(subnet.id, {}))


def _follow_family(ec2: Any, balancer: Any, eni: Any) -> None:
    """Gives an interface of a dual-stack balancer an IPv6 address, and takes that of another's."""
    if balancer.ip_address_type != "dualstack":
        eni.ipv6_addresses.clear()
    elif not eni.ipv6_addresses:
        ec2.assign_ipv6_addresses(eni.id, ipv6_count=1)


def _interface(ec2: Any, balancer: Any, subnet: Any, mapping: "dict[str, Any]") -> Any:
    private = mapping.get("PrivateIPv4Address")
    eni = ec2.create_network_interface(
        subnet,
        private,
        group_ids=list(balancer.security_groups or []),
        description="ELB " + balancer.arn.split(":loadbalancer/")[1],
    )
    if private:
        subnet.request_ip(private, instance=eni)
    _follow_family(ec2, balancer, eni)
    if not balancer.security_groups:
        eni._group_set = []
    eni.requester_managed = True
    eni.interface_type = "network_load_balancer"
    eni.status = "in-use"
    if mapping.get("AllocationId"):
        ec2.associate_address(eni=eni, allocation_id=mapping["AllocationId"])
        eni.allocation_id = mapping["AllocationId"]
    elif balancer.scheme == "internet-facing":
        eni.public_ip = _public_address(ec2, eni.id)
    eni.asked_address = bool(private)
    return eni


def _public_address(ec2: Any, identity: str) -> str:
    """An address of the documentation ranges that no other interface has, the same for as long as this one is there."""
    taken = {eni.public_ip for eni in ec2.enis.values()}
    first = int(hashlib.sha256(identity.encode()).hexdigest()[:8], 16)
    candidates = (f"{_PUBLIC[(first + i) // 254 % 3]}.{(first + i) % 254 + 1}" for i in range(254 * 3))
    return next(address for address in candidates if address not in taken)


def _removal(ec2: Any, eni: Any) -> Any:
    def remove() -> None:
        for address in ec2.addresses:
            if address.eni is eni:
                ec2.disassociate_address(association_id=address.association_id)
        if eni.id in ec2.enis:
            eni.delete()

    return remove


def subnets_of_a_balancer_change() -> None:
    """AWS: a network load balancer may have one zone, and describes with the addresses it was given.
    moto: wants two zones, and describes none.
    """

    @replace(ELBv2Backend, "set_subnets")
    def set_subnets(_original: Any, backend: Any, arn: str, subnets: Any, mappings: Any) -> Any:
        balancer = backend.load_balancers.get(arn)
        if balancer is None:
            raise LoadBalancerNotFoundError()
        identities = list(subnets or []) + [mapping["SubnetId"] for mapping in mappings or []]
        found = [_subnet(backend, identity) for identity in identities]
        zones = [subnet.availability_zone for subnet in found]
        if len(set(zones)) != len(zones):
            message = "A load balancer cannot be attached to multiple subnets in the same Availability Zone"
            raise ELBClientError("InvalidConfigurationRequest", message)
        if not found or (balancer.type == "application" and len(zones) < 2):
            raise ELBClientError(
                "ValidationError", "At least two subnets in two different Availability Zones must be specified"
            )
        balancer.subnets = found
        _place(backend, balancer, mappings or [])
        return balancer.availability_zones

    @replace_property(FakeLoadBalancer, "availability_zones")
    def availability_zones(balancer: Any) -> "list[Any]":
        return [_zone(subnet, balancer.__dict__.get("interfaces", {}).get(subnet.id)) for subnet in balancer.subnets]


def _zone(subnet: Any, eni: Optional[Any]) -> Any:
    zone = AvailabilityZone(subnet)
    zone.load_balancer_addresses = []
    if eni is not None and getattr(eni, "allocation_id", None):
        zone.load_balancer_addresses = [{"AllocationId": eni.allocation_id, "IpAddress": eni.public_ip}]
    elif eni is not None and eni.asked_address:
        zone.load_balancer_addresses = [{"PrivateIPv4Address": eni.private_ip_address}]
    return zone


def balancers_become_active(options: "Options") -> None:
    """AWS: a balancer is `provisioning` for some time, then `active`.
    moto: is active as soon as anybody looks.
    """

    @replace(ELBv2Backend, "create_load_balancer")
    def create(original: Any, backend: Any, **kwargs: Any) -> Any:
        balancer = original(backend, **kwargs)
        options.later.add(lambda: setattr(balancer, "state", "active"))
        return balancer

    @replace(FakeLoadBalancer, "activate")
    def activate(_original: Any, _balancer: Any) -> None:
        return None


def load_balancing_has_aws_limits_of_tags() -> None:
    """AWS: 50 tags a resource; DescribeTags takes 20 ARNs a call and refuses an unknown one.
    moto: 10 tags, any number of ARNs, and no tags for an unknown one.
    """

    @replace(ELBv2Backend, "add_tags")
    def add_tags(_original: Any, backend: Any, resource_arns: Any, tags: Any) -> None:
        for arn in resource_arns:
            backend._get_resource_by_arn(arn)
            known = backend.tagging_service.get_tag_dict_for_resource(arn)
            if len({*known, *(tag["Key"] for tag in tags)}) > 50:
                raise ELBClientError("TooManyTags", "The maximum number of tags has been reached for this resource")
            backend.tagging_service.tag_resource(arn, tags)

    @replace(ELBv2Backend, "describe_tags")
    def describe_tags(original: Any, backend: Any, resource_arns: Any) -> Any:
        if len(resource_arns) > 20:
            raise ELBClientError("ValidationError", "You cannot specify more than 20 resources in one call")
        for arn in resource_arns:
            backend._get_resource_by_arn(arn)
        return original(backend, resource_arns)
