"""The credentials of an instance's role, as its metadata service hands them out."""

from __future__ import annotations

import datetime
import json
from typing import Any, Callable

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


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)


def _text(when: datetime.datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
