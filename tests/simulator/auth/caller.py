"""Who calls: a user or a session of a role, and the policies that go with it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Optional

from moto.iam.models import iam_backends

from .refusals import Refused
from .sessions import ACCOUNT, Session, Sessions


@dataclass(frozen=True)
class Caller:
    """A principal. `identity`: policy documents of which one has to allow; `limits`: further sets of
    documents, each with its name in AWS's messages, that have to allow too.
    """

    arn: str
    user_id: str
    secret: str
    identity: "tuple[str, ...]"
    limits: "tuple[tuple[str, tuple[str, ...]], ...]" = ()
    context: "dict[str, list[str]]" = field(default_factory=dict)


def find(sessions: Sessions, access_key: str, token: Optional[str]) -> Caller:
    """The caller with this access key and session token; Refused if there is none."""
    session = sessions.find(access_key)
    if session is not None:
        if session.token != token:
            raise Refused("InvalidToken")
        return _of_session(session)
    user = iam_backends[ACCOUNT]["aws"].get_user_from_access_key_id(access_key)
    if user is None:
        raise Refused("InvalidClientTokenId")
    key = user.get_access_key_by_id(access_key)
    if key.status != "Active":
        raise Refused("InvalidClientTokenId")
    if token is not None:
        raise Refused("InvalidToken")
    return _of_user(user, key)


def not_ended(sessions: Sessions, access_key: str) -> None:
    """Refused if these are credentials whose time is over; asked once the signature is known to be right."""
    session = sessions.find(access_key)
    if session is not None and session.expires <= time.time():
        raise Refused("ExpiredToken")


def _of_session(session: Session) -> Caller:
    role = next((one for one in iam_backends[ACCOUNT]["aws"].roles.values() if one.arn == session.role_arn), None)
    if role is None:
        raise Refused("InvalidClientTokenId")
    user_id = f"{role.id}:{session.name}"
    context = {
        "aws:principalarn": [role.arn],
        "aws:principaltype": ["AssumedRole"],
        "aws:userid": [user_id],
        "aws:tokenissuetime": [str(int(session.issued))],
        "sts:rolesessionname": [session.name],
        **_tags({tag["Key"]: tag["Value"] for tag in _listed(role.tags)}),
    }
    if session.name.startswith("i-"):
        context["aws:ec2instancesourceinstanceid"] = [session.name]
    return Caller(
        arn=f"arn:aws:sts::{ACCOUNT}:assumed-role/{role.name}/{session.name}",
        user_id=user_id,
        secret=session.secret,
        identity=documents_of(role),
        limits=boundary_of(role.permissions_boundary_arn),
        context={**_account(), **context},
    )


def _of_user(user: Any, key: Any) -> Caller:
    backend = iam_backends[ACCOUNT]["aws"]
    groups = backend.get_groups_for_user(user.name)
    documents = [text for holder in [user, *groups] for text in documents_of(holder)]
    context = {
        "aws:principalarn": [user.arn],
        "aws:principaltype": ["User"],
        "aws:userid": [user.id],
        "aws:username": [user.name],
        **_tags({tag["Key"]: tag["Value"] for tag in _listed(user.tags)}),
    }
    return Caller(
        arn=user.arn,
        user_id=user.id,
        secret=key.secret_access_key,
        identity=tuple(documents),
        context={**_account(), **context},
    )


def _account() -> "dict[str, list[str]]":
    return {"aws:principalaccount": [ACCOUNT], "aws:viaawsservice": ["false"], "aws:principalisawsservice": ["false"]}


def _listed(tags: Any) -> "list[dict[str, str]]":
    """moto keeps tags as a list of pairs, or as such pairs by key."""
    return list(tags.values()) if isinstance(tags, dict) else list(tags or [])


def _tags(tags: "dict[str, str]") -> "dict[str, list[str]]":
    return {f"aws:principaltag/{key}".lower(): [value] for key, value in tags.items()}


def documents_of(holder: Any) -> "tuple[str, ...]":
    """Inline and managed policies of a user, group or role, managed ones in their default version."""
    return (*holder.policies.values(), *(_default(policy) for policy in holder.managed_policies.values()))


def boundary_of(arn: Optional[str]) -> "tuple[tuple[str, tuple[str, ...]], ...]":
    """The policy that is a boundary of permissions, as a limit; nothing without one."""
    if not arn:
        return ()
    policy = iam_backends[ACCOUNT]["aws"].managed_policies.get(arn)
    return (("permissions boundary", (_default(policy),) if policy else ()),)


def _default(policy: Any) -> str:
    version = next(one for one in policy.versions if one.version_id == policy.default_version_id)
    return str(version.document)
