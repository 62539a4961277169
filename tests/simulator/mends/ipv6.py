"""IPv6 addresses of instances, and ranges of them that are delegated to network interfaces."""

from __future__ import annotations

import ipaddress
import itertools
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models.elastic_network_interfaces import NetworkInterface
from moto.ec2.models.instances import Instance
from moto.ec2.responses.elastic_network_interfaces import ElasticNetworkInterfaces

from .patch import replace

# Of a range that EC2 delegates.
_LENGTH = 80


def instances_describe_their_ipv6_address() -> None:
    """AWS: an instance describes with the first IPv6 address of its first interface.
    moto: tells those of interfaces only.
    """
    Instance.ipv6_address = property(lambda instance: next(iter(instance.nics[0].ipv6_addresses), None))


def interfaces_take_ranges_of_ipv6_addresses() -> None:
    """AWS: AssignIpv6Addresses with Ipv6PrefixCount delegates so many /80 ranges of the subnet to the interface, which
    describes with them.
    moto: ignores the count.
    """

    @replace(NetworkInterface, "__init__")
    def init(original: Any, eni: Any, *args: Any, **kwargs: Any) -> None:
        original(eni, *args, **kwargs)
        eni.delegated = []

    @replace(ElasticNetworkInterfaces, "assign_ipv6_addresses")
    def assign(original: Any, response: Any) -> Any:
        count = response._get_int_param("Ipv6PrefixCount", 0)
        if not count:
            return original(response)
        backend = response.ec2_backend
        eni = backend.get_network_interface(response._get_param("NetworkInterfaceId"))
        assigned = list(itertools.islice(_free_ranges(backend, eni.subnet), count))
        eni.delegated += assigned
        return ActionResult({"NetworkInterfaceId": eni.id, "AssignedIpv6Prefixes": assigned})

    # As DescribeInstances and DescribeNetworkInterfaces look for them.
    described = property(lambda eni: [{"Ipv6Prefix": one} for one in eni.delegated])
    NetworkInterface.instance_ipv6_prefix_list = described
    NetworkInterface.ipv6_prefixes_list = described


def _free_ranges(backend: Any, subnet: Any) -> "Any":
    """The ranges of a subnet in which no interface has anything. The first has the subnet's reserved addresses."""
    (block,) = (one["ipv6CidrBlock"] for one in subnet.ipv6_cidr_block_association_set)
    taken = {
        ipaddress.ip_network(f"{address.split('/')[0]}/{_LENGTH}", strict=False)
        for eni in backend.enis.values()
        for address in [*eni.ipv6_addresses, *eni.delegated]
    }
    ranges = itertools.islice(ipaddress.ip_network(block).subnets(new_prefix=_LENGTH), 1, None)
    return (str(one) for one in ranges if one not in taken)
