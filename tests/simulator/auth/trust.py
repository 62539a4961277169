"""Whether a role lets a caller assume it: its trust policy, which names principals instead of resources."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any, Optional

from moto.iam.models import iam_backends

from .caller import Caller
from .conditions import Context, hold
from .policy import names_action, statements
from .sessions import ACCOUNT


class Trust(Enum):
    """`GIVEN`: the policy names the caller itself. `DELEGATED`: it names the account, whose own policies decide."""

    DENIED = "denied"
    GIVEN = "given"
    DELEGATED = "delegated"
    NONE = "none"


def of_role(role_arn: str, caller: Caller, context: Context) -> Trust:
    """What the trust policy of a role says of a caller; nothing if there is no such role."""
    role = _role(role_arn)
    if role is None:
        return Trust.NONE
    found = Trust.NONE
    for statement in statements(_text(role.assume_role_policy_document)):
        relation = _relation(statement, caller)
        if relation is None or not names_action(statement, "sts:AssumeRole"):
            continue
        if not hold(statement.get("Condition", {}), context):
            continue
        if statement["Effect"] == "Deny":
            return Trust.DENIED
        found = relation if found is not Trust.GIVEN else found
    return found


def longest_session(role_arn: str) -> Optional[int]:
    """The most seconds a session of the role may last; None if there is no such role."""
    role = _role(role_arn)
    return None if role is None else int(role.max_session_duration or 3600)


def _role(role_arn: str) -> Any:
    return next((one for one in iam_backends[ACCOUNT]["aws"].roles.values() if one.arn == role_arn), None)


def _text(document: Any) -> str:
    return document if isinstance(document, str) else json.dumps(document)


def _relation(statement: "dict[str, Any]", caller: Caller) -> Optional[Trust]:
    """How a statement's principals relate to the caller; services are not callers here."""
    if "NotPrincipal" in statement:
        return None if _named(statement["NotPrincipal"], caller) else Trust.GIVEN
    return _named(statement.get("Principal", {}), caller)


def _named(principal: Any, caller: Caller) -> Optional[Trust]:
    named = "*" if principal == "*" else principal.get("AWS", [])
    names = named if isinstance(named, list) else [named]
    if any(name in ("*", caller.arn, caller.principal) for name in names):
        return Trust.GIVEN
    if any(name in (ACCOUNT, f"arn:aws:iam::{ACCOUNT}:root") for name in names):
        return Trust.DELEGATED
    return None
