"""What was made, and when: other services and other parts of EC2 see it later (`POST /_simulator/lag`, `unseen.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from moto.ec2.models.dhcp_options import DHCPOptionsSetBackend
from moto.ec2.models.elastic_block_store import EBSBackend
from moto.ec2.models.elastic_ip_addresses import ElasticAddressBackend
from moto.ec2.models.internet_gateways import InternetGatewayBackend
from moto.ec2.models.key_pairs import KeyPairBackend
from moto.ec2.models.launch_templates import LaunchTemplate
from moto.ec2.models.nat_gateways import NatGatewayBackend
from moto.ec2.models.route_tables import RouteBackend
from moto.ec2.models.security_groups import SecurityGroupBackend
from moto.ec2.models.subnets import SubnetBackend
from moto.ec2.models.vpcs import VPCBackend
from moto.elbv2.models import ELBv2Backend
from moto.iam.models import IAMBackend

from .patch import replace

if TYPE_CHECKING:
    from ..settle import Later
    from . import Options


def what_is_made_is_seen_late(options: "Options") -> None:
    """AWS: an object that was made a moment ago does not exist yet for whoever names it.
    moto: everything is there at once.
    """
    for owner, operation, identify in (
        (VPCBackend, "create_vpc", _identity),
        (SubnetBackend, "create_subnet", _identity),
        (SecurityGroupBackend, "create_security_group", _identity),
        (RouteBackend, "create_route_table", _identity),
        (InternetGatewayBackend, "create_internet_gateway", _identity),
        (DHCPOptionsSetBackend, "create_dhcp_options", _identity),
        (ElasticAddressBackend, "allocate_address", lambda address: address.allocation_id),
        (NatGatewayBackend, "create_nat_gateway", _identity),
        (EBSBackend, "create_volume", _identity),
        (LaunchTemplate, "create_version", lambda version: version_name(version.template, version.number)),
        (KeyPairBackend, "import_key_pair", lambda pair: pair.key_name),
        (ELBv2Backend, "create_target_group", lambda group: group.arn),
        (IAMBackend, "create_instance_profile", lambda profile: profile.name),
    ):
        _note(options.later, owner, operation, identify)


def _identity(made: Any) -> str:
    return str(made.id)


def version_name(template: Any, number: Any) -> str:
    """What a version of a launch template is noted as."""
    return f"{template.id}/{number}"


def _note(later: "Later", owner: Any, operation: str, identify: "Callable[[Any], str]") -> None:
    @replace(owner, operation)
    def make(original: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(*args, **kwargs)
        later.mark_created(identify(made))
        return made
