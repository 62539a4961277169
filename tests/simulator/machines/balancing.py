"""Network load balancers, their listeners, and the targets behind them."""

from __future__ import annotations

from typing import Any, Optional

from moto.core import DEFAULT_ACCOUNT_ID
from moto.elbv2.models import elbv2_backends

from ..target_states import state_of


def load_balancers(region: str) -> "list[dict[str, Any]]":
    """Each network load balancer, with one address per zone."""
    backend = elbv2_backends[DEFAULT_ACCOUNT_ID][region]
    return [_balancer(found) for found in backend.load_balancers.values() if found.type == "network"]


def _balancer(found: Any) -> "dict[str, Any]":
    interfaces = getattr(found, "interfaces", {})
    return {
        "arn": found.arn,
        "dns_name": found.dns_name,
        "scheme": found.scheme,
        "state": found.state,
        "vpc": found.vpc_id,
        "cross_zone": found.attrs.get("load_balancing.cross_zone.enabled") == "true",
        "security_groups": sorted(found.security_groups or []),
        "addresses": [_address(subnet, interfaces[subnet.id]) for subnet in found.subnets if subnet.id in interfaces],
        "listeners": [
            {"protocol": listener.protocol, "port": int(listener.port), "target_group": group}
            for listener in found.listeners.values()
            for group in [_forwards_to(listener)]
            if group
        ],
    }


def _address(subnet: Any, interface: Any) -> "dict[str, Any]":
    return {
        "zone": subnet.availability_zone,
        "subnet": subnet.id,
        "address": interface.private_ip_address,
        "public_address": interface.public_ip,
        "ipv6_address": next(iter(interface.ipv6_addresses), None),
    }


def _forwards_to(listener: Any) -> Optional[str]:
    """The target group of the default action; a network load balancer's listener has one."""
    forwards = (action for action in listener.default_actions if action.type == "forward")
    return next((action.data["TargetGroupArn"] for action in forwards), None)


def target_groups(region: str) -> "list[dict[str, Any]]":
    """Each target group whose targets are instances."""
    backend = elbv2_backends[DEFAULT_ACCOUNT_ID][region]
    return [_target_group(found) for found in backend.target_groups.values() if found.target_type == "instance"]


def _target_group(found: Any) -> "dict[str, Any]":
    return {
        "arn": found.arn,
        "protocol": found.protocol,
        "port": int(found.port),
        "health_check": _health_check(found),
        "preserve_client_ip": found.attributes.get("preserve_client_ip.enabled") == "true",
        "targets": [
            {"instance": target["Id"], "port": int(target["Port"]), "state": state_of(found, target)[0]}
            for target in [*found.targets.values(), *found.__dict__.get("draining", {}).values()]
        ],
    }


def _health_check(found: Any) -> "dict[str, Any]":
    port = found.port if found.health_check_port in (None, "traffic-port") else found.health_check_port
    protocol = found.health_check_protocol
    return {
        "protocol": protocol,
        "port": int(port),
        "path": (found.health_check_path or "/") if protocol in ("HTTP", "HTTPS") else None,
        "interval": int(found.health_check_interval_seconds),
        "timeout": int(found.health_check_timeout_seconds),
        "healthy_threshold": int(found.healthy_threshold_count),
        "unhealthy_threshold": int(found.unhealthy_threshold_count),
    }
