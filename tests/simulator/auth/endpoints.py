"""Which region and service an address belongs to, and whether a signature was made for it."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple, Optional

import botocore.session
from moto.s3.models import s3_backends

from . import sigv4
from .refusals import Refused
from .sessions import ACCOUNT
from .wire import Wire

_SUFFIX = re.compile(r"(.+)\.amazonaws\.com(?:\.cn)?(?::\d+)?", re.IGNORECASE)
_REGION = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d+")
# Services with one endpoint for all regions, signed for this one.
_GLOBAL = {"iam": "us-east-1", "route53": "us-east-1"}


class Endpoint(NamedTuple):
    """What a host name of AWS stands for; `bucket` where its first part names one."""

    service: str
    region: str
    bucket: Optional[str]


def of_host(host: str) -> Optional[Endpoint]:
    """The endpoint of a host name (with or without port); None if it is none of AWS's."""
    found = _SUFFIX.fullmatch(host)
    if found is None:
        return None
    labels = found.group(1).split(".")
    at = next((i for i in reversed(range(len(labels))) if labels[i] == "s3" or labels[i].startswith("s3-")), None)
    if at is not None:
        named = [label for label in labels[at + 1 :] if label != "dualstack"] or [labels[at][len("s3-") :]]
        return Endpoint("s3", named[0] or "us-east-1", ".".join(labels[:at]) or None)
    if len(labels) > 1 and _REGION.fullmatch(labels[-1]):
        return Endpoint(labels[-2], labels[-1], None)
    return Endpoint(labels[-1], "us-east-1", None)


def check_scope(wire: Wire, scope: sigv4.Scope) -> None:
    """The signature is for the service and region of the address; where the address says neither
    (127.0.0.1), for a region that exists, and for a bucket's own.
    """
    endpoint = of_host(wire.header("host") or "")
    if endpoint is not None:
        if endpoint.service != scope.service:
            raise Refused("WrongScope", f"Credential should be scoped to correct service: '{endpoint.service}'. ")
        _check_region(scope, _GLOBAL.get(scope.service, endpoint.region))
    elif scope.service in _GLOBAL:
        _check_region(scope, _GLOBAL[scope.service])
    elif scope.region not in _regions():
        raise Refused("WrongScope", f"Credential should be scoped to a valid region, not '{scope.region}'. ")
    if scope.service == "s3":
        _check_bucket(wire, scope, endpoint)


def _check_region(scope: sigv4.Scope, region: str) -> None:
    if scope.region == region:
        return
    message = f"Credential should be scoped to a valid region, not '{scope.region}'. "
    if scope.service == "s3":
        message = f"The authorization header is malformed; the region '{scope.region}' is wrong; expecting '{region}'"
    raise Refused("WrongScope", message)


def _check_bucket(wire: Wire, scope: sigv4.Scope, endpoint: Optional[Endpoint]) -> None:
    """A bucket answers in its region only, except for the question where it is."""
    name = endpoint.bucket if endpoint and endpoint.bucket else wire.path.lstrip("/").partition("/")[0]
    bucket = s3_backends[ACCOUNT]["aws"].buckets.get(name)
    if bucket is None or bucket.region_name == scope.region or "location" in re.split("[=&]", wire.query):
        return
    region = bucket.region_name
    message = f"The authorization header is malformed; the region '{scope.region}' is wrong; expecting '{region}'"
    raise Refused("WrongScope", message, headers=(("x-amz-bucket-region", region),))


@functools.lru_cache(maxsize=1)
def _regions() -> "frozenset[str]":
    """Every region of every partition."""
    session = botocore.session.Session()
    partitions = session.get_available_partitions()
    return frozenset(region for one in partitions for region in session.get_available_regions("ec2", one))
