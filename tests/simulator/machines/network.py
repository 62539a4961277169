"""VPCs and what packets in them meet: subnets, routes, gateways, security groups."""

from __future__ import annotations

from typing import Any, Optional


def vpcs(ec2: Any) -> "list[dict[str, Any]]":
    """Each VPC with its ranges, IPv4 first, and DHCP options."""
    return [_vpc(found) for found in ec2.vpcs.values()]


def _vpc(found: Any) -> "dict[str, Any]":
    options = found.dhcp_options._options if found.dhcp_options else {}
    blocks = [block["cidr_block"] for six in (False, True) for block in found.get_cidr_block_association_set(ipv6=six)]
    return {
        "id": found.id,
        "cidrs": blocks,
        "domain_name": next(iter(options.get("domain-name") or []), None),
        "domain_name_servers": list(options.get("domain-name-servers") or []),
    }


def subnets(ec2: Any) -> "list[dict[str, Any]]":
    """Each subnet with the route table that counts for it."""
    own = {target: table.id for table in ec2.route_tables.values() for target in table._associations.values()}
    main = {table.vpc_id: table.id for table in ec2.route_tables.values() if table.main_association_id}
    return [
        {
            "id": found.id,
            "vpc": found.vpc_id,
            "zone": found.availability_zone,
            "cidr": found.cidr_block,
            "dns64": bool(getattr(found, "enable_dns64", False)),
            "route_table": own.get(found.id) or main[found.vpc_id],
        }
        for found in ec2.describe_subnets()
    ]


def route_tables(ec2: Any) -> "list[dict[str, Any]]":
    """Each route table; routes to prefix lists (gateway endpoints) are left out, they lead out of the VPC by name."""
    return [
        {
            "id": table.id,
            "vpc": table.vpc_id,
            "routes": [_route(route) for route in table.routes if route.destination_prefix_list is None],
        }
        for table in ec2.route_tables.values()
    ]


def _route(found: Any) -> "dict[str, Any]":
    machine = found.instance or (found.interface.instance if found.interface else None)
    return {
        "destination": found.destination_cidr_block or found.destination_ipv6_cidr_block,
        "target": _target(found),
        "instance": machine.id if machine else None,
        "blackhole": found.state == "blackhole",
    }


def _target(found: Any) -> str:
    ways = (
        found.gateway_id,
        found.nat_gateway_id,
        found.instance_id,
        found.interface.id if found.interface else None,
        found.egress_only_internet_gateway_id,
        found.transit_gateway_id,
        found.vpc_pcx.id if found.vpc_pcx else None,
        found.carrier_gateway.id if found.carrier_gateway else None,
    )
    return next(way for way in ways if way)


def internet_gateways(ec2: Any) -> "list[dict[str, Any]]":
    """Each internet gateway and what it is attached to."""
    return [{"id": found.id, "vpc": found.vpc.id if found.vpc else None} for found in ec2.internet_gateways.values()]


def egress_only_gateways(ec2: Any) -> "list[dict[str, Any]]":
    """Each egress-only internet gateway and what it is attached to."""
    return [{"id": found.id, "vpc": found.vpc_id} for found in ec2.egress_only_internet_gateways.values()]


def nat_gateways(ec2: Any) -> "list[dict[str, Any]]":
    """Each NAT gateway that is not yet gone."""
    return [
        {
            "id": found.id,
            "subnet": found.subnet_id,
            "state": found.state,
            "address": found._eni.private_ip_address,
            "public_address": found._eni.public_ip,
        }
        for found in ec2.nat_gateways.values()
        if found.state != "deleted"
    ]


def security_groups(ec2: Any) -> "list[dict[str, Any]]":
    """Each security group of each VPC, its permissions one by one."""
    return [
        {
            "id": found.id,
            "vpc": found.vpc_id,
            "ingress": [peer for rule in found.ingress_rules for peer in _peers(ec2, rule)],
            "egress": [peer for rule in found.egress_rules for peer in _peers(ec2, rule)],
        }
        for groups in ec2.groups.values()
        for found in groups.values()
        if found.vpc_id
    ]


def _peers(ec2: Any, rule: Any) -> "list[dict[str, Any]]":
    """One permission per peer; a prefix list is as many as it has entries."""
    ports = {"protocol": _protocol(rule), "from": rule.from_port, "to": rule.to_port}
    if rule.source_group:
        return [{**ports, "cidr": None, "group": rule.source_group["GroupId"]}]
    blocks: "list[Optional[str]]" = [rule.cidr_ipv4 or rule.cidr_ipv6]
    if rule.prefix_list_id:
        known = ec2.managed_prefix_lists.get(rule.prefix_list_id)
        blocks = [entry["Cidr"] for entry in (known.entries.get(known.version) or [] if known else [])]
    return [{**ports, "cidr": block, "group": None} for block in blocks if block]


def _protocol(rule: Any) -> str:
    return {"58": "icmpv6"}.get(rule.ip_protocol, rule.ip_protocol)
