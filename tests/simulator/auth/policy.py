"""IAM policies evaluated: which statements apply to an action on a resource, and what they say together.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
"""

from __future__ import annotations

import functools
import json
from enum import Enum
from typing import Any, Iterable

from .conditions import Context, conditions_hold, refuse_variables
from .wildcards import arn_matches, matches


class Verdict(Enum):
    """What policies say: denied in so many words, allowed, or nothing."""

    DENIED = "denied"
    ALLOWED = "allowed"
    SILENT = "silent"


@functools.lru_cache(maxsize=1024)
def statements(document: str) -> "tuple[dict[str, Any], ...]":
    """The statements of a policy document (JSON)."""
    found = json.loads(document).get("Statement", [])
    return tuple(found if isinstance(found, list) else [found])


def evaluate(documents: "Iterable[str]", action: str, resource: str, context: Context) -> Verdict:
    """The verdict of identity policies: a Deny that applies beats every Allow."""
    verdict = Verdict.SILENT
    for document in documents:
        for statement in statements(document):
            if applies(statement, action, resource, context):
                if statement["Effect"] == "Deny":
                    return Verdict.DENIED
                verdict = Verdict.ALLOWED
    return verdict


def applies(statement: "dict[str, Any]", action: str, resource: str, context: Context) -> bool:
    """Whether an identity policy's statement is about this action on this resource in this context."""
    return (
        names_action(statement, action)
        and _names_resource(statement, resource)
        and conditions_hold(statement.get("Condition", {}), context)
    )


def names_action(statement: "dict[str, Any]", action: str) -> bool:
    """Action or NotAction; case does not count."""
    wanted, negated = _element(statement, "Action")
    return any(matches(one.lower(), action.lower()) for one in wanted) != negated


def _names_resource(statement: "dict[str, Any]", resource: str) -> bool:
    """Resource or NotResource; a statement with neither is about nothing."""
    if "Resource" not in statement and "NotResource" not in statement:
        return False
    wanted, negated = _element(statement, "Resource")
    for one in wanted:
        refuse_variables(one)
    return any(arn_matches(one, resource) for one in wanted) != negated


def _element(statement: "dict[str, Any]", name: str) -> "tuple[list[str], bool]":
    """The values of an element or of its negation, and whether it was the negation."""
    negated = f"Not{name}" in statement
    value = statement.get(f"Not{name}" if negated else name, [])
    return (value if isinstance(value, list) else [value]), negated
