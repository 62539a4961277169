"""The credentials of an instance's role, as its metadata service hands them out."""

from __future__ import annotations

import datetime
import json
from typing import Any, Callable

# How long they last, and how long before that new ones are issued, as on EC2.
LIFETIME = 6 * 3600
RENEWAL = 3600

# From an instance's id to AccessKeyId, SecretAccessKey, Token and Expiration.
Issue = Callable[[str], "dict[str, str]"]


def info(profile: Any) -> "dict[str, str]":
    """What `iam/info` says of the instance profile."""
    return {
        "Code": "Success",
        "LastUpdated": _text(_now()),
        "InstanceProfileArn": profile.arn,
        "InstanceProfileId": profile.id,
    }


def security_credentials(instance: Any, profile: Any, issue: Issue) -> "dict[str, str]":
    """The role of the profile and its credentials; empty for a profile without a role."""
    role = next(iter(profile.roles), None)
    if role is None:
        return {}
    issued = issue(instance.id)
    if getattr(instance, "credentials_seen", ("", ""))[0] != issued["AccessKeyId"]:
        instance.credentials_seen = (issued["AccessKeyId"], _text(_now()))
    answer = {"Code": "Success", "LastUpdated": instance.credentials_seen[1], "Type": "AWS-HMAC", **issued}
    return {role.name: json.dumps(answer, indent=2)}


def from_sts(instance_id: str) -> "dict[str, str]":
    """Those issued before, until an hour before they expire; another role has its own at once."""
    from .metadata import find

    instance = find(instance_id)
    role = instance.ec2_backend.iam_instance_profile_associations[instance_id].iam_instance_profile.roles[0]
    issued = getattr(instance, "issued_credentials", None)
    if issued is None or issued[0] != role.arn or issued[1] - _now() < datetime.timedelta(seconds=RENEWAL):
        issued = _issue(instance, role)
        instance.issued_credentials = issued
    return dict(issued[2])


def _issue(instance: Any, role: Any) -> "tuple[str, datetime.datetime, dict[str, str]]":
    """New credentials from STS: the session is named after the instance, as EC2 does."""
    from moto.sts.models import sts_backends

    session = sts_backends[instance.owner_id]["aws"].assume_role(
        region_name=instance.ec2_backend.region_name,
        role_session_name=instance.id,
        role_arn=role.arn,
        policy=None,
        duration=LIFETIME,
        external_id=None,
    )
    expires = _now() + datetime.timedelta(seconds=LIFETIME)
    fields = {
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
