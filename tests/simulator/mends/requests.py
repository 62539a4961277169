"""Requests as such: how they are repeated, how answers are paged."""

from __future__ import annotations

import copy
from typing import Any

from moto.ec2.exceptions import EC2ClientError
from moto.ec2.responses.dhcp_options import DHCPOptions
from moto.ec2.responses.egress_only_internet_gateways import EgressOnlyInternetGateway
from moto.ec2.responses.elastic_block_store import ElasticBlockStore
from moto.ec2.responses.elastic_network_interfaces import ElasticNetworkInterfaces
from moto.ec2.responses.instances import InstanceResponse
from moto.ec2.responses.internet_gateways import InternetGateways
from moto.ec2.responses.launch_templates import LaunchTemplates
from moto.ec2.responses.nat_gateways import NatGateways
from moto.ec2.responses.route_tables import RouteTables
from moto.ec2.responses.security_groups import SecurityGroups
from moto.ec2.responses.subnets import Subnets
from moto.ec2.responses.vpcs import VPCs

from .patch import replace

_WITH_TOKEN = [
    (EgressOnlyInternetGateway, "create_egress_only_internet_gateway"),
    (NatGateways, "create_nat_gateway"),
    (ElasticBlockStore, "create_volume"),
    (LaunchTemplates, "create_launch_template"),
    (LaunchTemplates, "create_launch_template_version"),
    (RouteTables, "create_route_table"),
    (VPCs, "create_vpc_endpoint"),
    (InstanceResponse, "run_instances"),
]

_PAGED = [
    (VPCs, "describe_vpcs"),
    (VPCs, "describe_vpc_endpoints"),
    (DHCPOptions, "describe_dhcp_options"),
    (Subnets, "describe_subnets"),
    (InternetGateways, "describe_internet_gateways"),
    (EgressOnlyInternetGateway, "describe_egress_only_internet_gateways"),
    (NatGateways, "describe_nat_gateways"),
    (RouteTables, "describe_route_tables"),
    (SecurityGroups, "describe_security_groups"),
    (SecurityGroups, "describe_security_group_rules"),
    (ElasticBlockStore, "describe_volumes"),
    (ElasticNetworkInterfaces, "describe_network_interfaces"),
    (LaunchTemplates, "describe_launch_templates"),
    (LaunchTemplates, "describe_launch_template_versions"),
]
# Pages of launch templates end here even when the caller does not say where.
_DEFAULT_PAGE = {"describe_launch_templates": 200, "describe_launch_template_versions": 200}


def client_tokens_make_creates_idempotent() -> None:
    """AWS: a create repeated with its client token gives the same object, with other parameters
    IdempotentParameterMismatch.
    moto: makes a second object, or refuses the name as taken.
    """
    for owner, name in _WITH_TOKEN:
        _remember_tokens(owner, name)


def _remember_tokens(owner: Any, name: str) -> None:
    @replace(owner, name)
    def create(original: Any, response: Any) -> Any:
        token = response._get_param("ClientToken")
        if not token:
            return original(response)
        seen = response.ec2_backend.__dict__.setdefault("client_tokens", {})
        asked = copy.deepcopy(dict(response.params))
        if (name, token) not in seen:
            seen[(name, token)] = (asked, original(response))
        elif seen[(name, token)][0] != asked:
            raise EC2ClientError(
                "IdempotentParameterMismatch", "The client token was used before with other parameters."
            )
        return seen[(name, token)][1]


def descriptions_come_in_pages() -> None:
    """AWS: MaxResults and NextToken page every Describe; launch templates page by 200 on their own.
    moto: ignores both, or (launch templates and versions) gives the first 15 and says that is all.
    """
    for owner, name in _PAGED:
        _page(owner, name)


def _page(owner: Any, name: str) -> None:
    @replace(owner, name)
    def describe(original: Any, response: Any) -> Any:
        limit = response._get_int_param("MaxResults") or _DEFAULT_PAGE.get(name)
        start = _offset(response._get_param("NextToken"))
        response.params["MaxResults"] = 1_000_000
        answer = original(response)
        if limit is not None:
            key, items = next((key, value) for key, value in answer.result.items() if isinstance(value, list))
            answer.result[key] = items[start : start + limit]
            answer.result["NextToken"] = f"page-{start + limit}" if len(items) > start + limit else None
        return answer


def _offset(token: "str | None") -> int:
    """Where a page begins, from the token of the page before."""
    if not token:
        return 0
    if not token.startswith("page-"):
        raise EC2ClientError("InvalidNextToken", "The token is invalid.")
    return int(token[len("page-") :])
