"""Route tables, routes and associations."""

from __future__ import annotations

from typing import Any

from moto.ec2.exceptions import DependencyViolationError, EC2ClientError, RouteAlreadyExistsError
from moto.ec2.models.route_tables import Route, RouteBackend
from moto.ec2.models.vpcs import VPCBackend
from moto.ec2.responses.route_tables import RouteTables

from .patch import replace, replace_property


def routes_lead_to_what_exists() -> None:
    """AWS: the target of a route has to exist, an internet gateway to be attached to the table's VPC;
    a second route for the same IPv6 range is RouteAlreadyExists.
    moto: makes a route to nowhere for an unknown NAT gateway, and overwrites IPv6 routes.
    """

    @replace(RouteBackend, "create_route")
    def create(
        original: Any,
        backend: Any,
        table_id: str,
        destination_cidr_block: Any,
        destination_ipv6_cidr_block: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        table = backend.get_route_table(table_id)
        taken = [route.destination_ipv6_cidr_block for route in table.routes if not route.local]
        if destination_ipv6_cidr_block and destination_ipv6_cidr_block in taken:
            raise RouteAlreadyExistsError(destination_ipv6_cidr_block)
        _check_target(backend, table, kwargs.get("gateway_id"), kwargs.get("nat_gateway_id"))
        return original(backend, table_id, destination_cidr_block, destination_ipv6_cidr_block, *args, **kwargs)

    @replace(RouteBackend, "replace_route")
    def replace_route(
        original: Any,
        backend: Any,
        table_id: str,
        cidr: Any,
        ipv6: Any = None,
        prefix: Any = None,
        nat: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        _check_target(backend, backend.get_route_table(table_id), kwargs.get("gateway_id"), nat)
        return original(backend, table_id, cidr, ipv6, prefix, nat, *args, **kwargs)


def _check_target(backend: Any, table: Any, gateway_id: Any, nat_id: Any) -> None:
    if nat_id and getattr(backend.nat_gateways.get(nat_id), "state", "deleted") in ("deleting", "deleted", "failed"):
        raise EC2ClientError("InvalidNatGatewayID.NotFound", f"The natGateway ID '{nat_id}' does not exist")
    if gateway_id and gateway_id.startswith("igw-"):
        gateway = backend.get_internet_gateway(gateway_id)
        if gateway.vpc is None or gateway.vpc.id != table.vpc_id:
            message = f"route table {table.id} and network gateway {gateway_id} belong to different networks"
            raise EC2ClientError("InvalidParameterValue", message)


def a_route_to_a_deleted_target_is_a_blackhole() -> None:
    """AWS: a route whose target is gone, or is an instance that does not run, describes as `blackhole`.
    moto: says `active`.
    """

    @replace_property(Route, "state")
    def state(route: Any) -> str:
        gone = route.nat_gateway is not None and route.nat_gateway.state in ("deleted", "failed")
        detached = getattr(route.gateway, "id", "").startswith("igw-") and route.gateway.vpc is None
        return "blackhole" if gone or detached or _machine_is_gone(route) else "active"


def _machine_is_gone(route: Any) -> bool:
    """Whether the route leads to an instance, or an interface of one, that is not there or stands still."""
    still = ("stopping", "stopped", "shutting-down", "terminated")
    if route.interface is not None and route.interface.id not in route.interface.ec2_backend.enis:
        return True
    instance = route.instance or (route.interface.instance if route.interface is not None else None)
    return instance is not None and instance.state in still


def a_subnet_has_one_route_table() -> None:
    """AWS: associating a subnet that has another table is Resource.AlreadyAssociated, unless it is the same table.
    moto: says yes, gives the old association's id and changes nothing.
    """

    @replace(RouteBackend, "associate_route_table")
    def associate(original: Any, backend: Any, table_id: str, gateway_id: Any = None, subnet_id: Any = None) -> str:
        backend.get_route_table(table_id)
        for table in backend.route_tables.values():
            if table.id != table_id and subnet_id in table._associations.values():
                message = f"the specified association for route table {table_id} conflicts with an existing one"
                raise EC2ClientError("Resource.AlreadyAssociated", message)
        return original(backend, table_id, gateway_id, subnet_id)

    @replace(RouteTables, "delete_route_table")
    def delete(original: Any, response: Any) -> Any:
        table = response.ec2_backend.get_route_table(response._get_param("RouteTableId"))
        if table.main_association_id is not None:
            raise DependencyViolationError(f"The routeTable '{table.id}' has dependencies and cannot be deleted.")
        return original(response)


def an_endpoint_is_a_route_of_its_tables() -> None:
    """AWS: each route table of a gateway endpoint has a route to the service's prefix list, from its creation or
    ModifyVpcEndpoint until that or the endpoint's deletion; a second endpoint for the service in a table is
    RouteAlreadyExists, and an endpoint outlives neither its deletion nor keeps its VPC.
    moto: adds routes at creation only, takes any number, lists deleted endpoints and deletes their VPC.
    """

    @replace(VPCBackend, "create_vpc_endpoint")
    def create(original: Any, backend: Any, **kwargs: Any) -> Any:
        _check_tables(backend, kwargs["service_name"], kwargs["route_table_ids"])
        return original(backend, **kwargs)

    @replace(VPCBackend, "modify_vpc_endpoint")
    def modify(original: Any, backend: Any, **kwargs: Any) -> Any:
        endpoint = backend.describe_vpc_endpoints([kwargs["vpc_id"]])[0]
        before = list(endpoint.route_table_ids)
        added = [one for one in kwargs["add_route_tables"] if one not in before]
        _check_tables(backend, endpoint.service_name, added)
        original(backend, **kwargs)
        prefix_list = endpoint.destination_prefix_list_id
        for table_id in added:
            backend.create_route(table_id, None, gateway_id=endpoint.id, destination_prefix_list_id=prefix_list)
        for table_id in set(before) - set(endpoint.route_table_ids):
            backend.delete_route(table_id, None, None, prefix_list)

    @replace(VPCBackend, "delete_vpc_endpoints")
    def delete(original: Any, backend: Any, vpce_ids: Any = None) -> None:
        for vpce_id in vpce_ids or []:
            endpoint = backend.describe_vpc_endpoints([vpce_id])[0]
            for table_id in set(endpoint.route_table_ids) & set(backend.route_tables):
                backend.delete_route(table_id, None, None, endpoint.destination_prefix_list_id)
            endpoint.route_table_ids = []
        original(backend, vpce_ids)
        for vpce_id in vpce_ids or []:
            backend.vpc_end_points.pop(vpce_id)

    @replace(VPCBackend, "delete_vpc")
    def delete_vpc(original: Any, backend: Any, vpc_id: str) -> Any:
        if any(endpoint.vpc_id == vpc_id for endpoint in backend.vpc_end_points.values()):
            raise DependencyViolationError(f"The vpc '{vpc_id}' has dependencies and cannot be deleted.")
        return original(backend, vpc_id)


def _check_tables(backend: Any, service_name: str, table_ids: Any) -> None:
    for endpoint in backend.vpc_end_points.values():
        for table_id in set(table_ids) & set(endpoint.route_table_ids):
            if endpoint.service_name == service_name:
                message = f"route table {table_id} already has a route with destination-prefix-list-id"
                raise EC2ClientError("RouteAlreadyExists", f"{message} {endpoint.destination_prefix_list_id}")
