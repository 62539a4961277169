"""The credentials of an instance's role, as its metadata service hands them out."""

from __future__ import annotations

import datetime
import json
from typing import Any

# How long they last, and how long before that new ones are issued, as on EC2.
LIFETIME = 6 * 3600
RENEWAL = 3600


def info(profile: Any) -> "dict[str, str]":
    """What `iam/info` says of the instance profile."""
    return {
        "Code": "Success",
        "LastUpdated": _text(_now()),
        "InstanceProfileArn": profile.arn,
        "InstanceProfileId": profile.id,
    }


def security_credentials(instance: Any, profile: Any) -> "dict[str, str]":
    """The role of the profile and its credentials; empty for a profile without a role."""
    role = next(iter(profile.roles), None)
    if role is None:
        return {}
    return {role.name: json.dumps(_credentials(instance, role), indent=2)}


def _credentials(instance: Any, role: Any) -> "dict[str, str]":
    """Those issued before, until an hour before they expire; another role has its own at once."""
    issued = getattr(instance, "issued_credentials", None)
    if issued is None or issued[0] != role.arn or issued[1] - _now() < datetime.timedelta(seconds=RENEWAL):
        issued = _issue(instance, role)
        instance.issued_credentials = issued
    return dict(issued[2])


def _issue(instance: Any, role: Any) -> "tuple[str, datetime.datetime, dict[str, str]]":
    """New credentials from STS: the session is named after the instance, as EC2 does."""
    from moto.sts.models import sts_backends

    backend = sts_backends[instance.owner_id]["aws"]
    region = instance.ec2_backend.region_name
    session = backend.assume_role(region, instance.id, role.arn, None, LIFETIME, None)
    now = _now()
    expires = now + datetime.timedelta(seconds=LIFETIME)
    fields = {
        "Code": "Success",
        "LastUpdated": _text(now),
        "Type": "AWS-HMAC",
        "AccessKeyId": session.access_key_id,
        "SecretAccessKey": session.secret_access_key,
        "Token": session.session_token,
        "Expiration": _text(expires),
    }
    return role.arn, expires, fields


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)


def _text(when: datetime.datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
