"""Hosted zones and their records, as a name server needs them."""

from __future__ import annotations

import re
from typing import Any

from moto.core import DEFAULT_ACCOUNT_ID
from moto.route53.models import route53_backends
from moto.utilities.utils import get_partition

# What an alias answers with: the TTL of a load balancer's own records.
_ALIAS_TTL = 60


def hosted_zones(region: str) -> "list[dict[str, Any]]":
    """Each hosted zone of the account: zones are of no region."""
    backend = route53_backends[DEFAULT_ACCOUNT_ID][get_partition(region)]
    return [
        {
            "id": zone.resource_id,
            "name": _plain(zone.name),
            "private": bool(zone.private_zone),
            "vpcs": [vpc["vpc_id"] for vpc in zone.vpcs if vpc.get("vpc_id")],
            "records": [_record(record) for record in zone.rrsets],
        }
        for zone in backend.zones.values()
    ]


def _record(found: Any) -> "dict[str, Any]":
    alias = found.alias_target
    return {
        "name": _plain(found.name),
        "type": found.type,
        "ttl": int(found.ttl) if found.ttl is not None else _ALIAS_TTL,
        "values": [str(value) for value in found.records or []],
        "alias": _plain(alias["DNSName"]) if alias else None,
    }


def _plain(name: str) -> str:
    r"""A name in lower case, without its last dot and without Route 53's escapes (`\052` is `*`)."""
    unescaped = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), name)
    return unescaped.rstrip(".").lower()
