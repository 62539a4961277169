"""The Condition element of IAM policies: operators, sets of values, keys that are not there.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
"""

from __future__ import annotations

import ipaddress
import re
from datetime import datetime, timezone
from typing import Callable, Mapping, Sequence

from .refusals import Refused
from .wildcards import arn_matches, literal, matches, plain

# What is known of a call: key in lower case -> values. A key that is not there has no value.
Context = Mapping[str, Sequence[str]]
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_NAME = re.compile(r"(?:(ForAllValues|ForAnyValue):)?(\w+?)(IfExists)?")


def hold(conditions: "Mapping[str, Mapping[str, object]]", context: Context) -> bool:
    """Whether every key of every operator holds."""
    return all(
        _holds(operator, key, _texts(wanted), context)
        for operator, keys in conditions.items()
        for key, wanted in keys.items()
    )


def _texts(value: object) -> "list[str]":
    """One value or a list of them, as text; JSON's booleans are `true` and `false`."""
    values = value if isinstance(value, list) else [value]
    return [str(item).lower() if isinstance(item, bool) else str(item) for item in values]


def _holds(operator: str, key: str, wanted: "list[str]", context: Context) -> bool:
    parts = _NAME.fullmatch(operator)
    name = parts.group(2) if parts else operator
    present = list(context.get(key.lower(), ()))
    if name == "Null":
        return any((value.lower() == "true") == (not present) for value in wanted)
    positive, negated = _operator(name)
    wanted = [substituted(value, context) for value in wanted]
    if not name.endswith("Like") and not name.startswith("Arn"):
        wanted = [plain(value) for value in wanted]

    def one(value: str) -> bool:
        found = any(positive(value, each) for each in wanted)
        return found != negated

    quantifier = parts.group(1) if parts else None
    if quantifier == "ForAllValues":
        return all(one(value) for value in present)
    if quantifier == "ForAnyValue":
        return any(one(value) for value in present)
    if not present:
        return negated or bool(parts and parts.group(3))
    # A key with several values under an operator for one value: any of them, or with a negated one all.
    return all(one(value) for value in present) if negated else any(one(value) for value in present)


def substituted(text: str, context: Context) -> str:
    """With policy variables (`${aws:username}`) filled in, as text without wildcards; one without a value matches
    nothing.
    """

    def fill(found: "re.Match[str]") -> str:
        key, _, default = found.group(1).partition(",")
        if key in ("*", "?", "$"):
            return literal(key)
        values = context.get(key.strip().lower(), ())
        return literal(values[0] if len(values) == 1 else default.strip().strip("'") or "\0")

    return _VARIABLE.sub(fill, text)


def _operator(name: str) -> "tuple[Callable[[str, str], bool], bool]":
    """Compares a value of the call with one of the policy; whether the operator is a negation."""
    if name in _OPERATORS:
        return _OPERATORS[name], False
    if name in _NEGATED:
        return _OPERATORS[_NEGATED[name]], True
    raise Refused("UnsupportedCondition", f"the simulator knows no condition operator {name}")


def _compared(read: "Callable[[str], float]", test: "Callable[[float, float], bool]") -> "Callable[[str, str], bool]":
    """An order on numbers or dates; what cannot be read does not compare."""

    def compare(value: str, wanted: str) -> bool:
        try:
            return test(read(value), read(wanted))
        except ValueError:
            return False

    return compare


def _date(text: str) -> float:
    """Seconds since 1970, of an ISO 8601 date or of such seconds."""
    if text.isdigit():
        return float(text)
    when = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp()


def _in_network(value: str, wanted: str) -> bool:
    try:
        return ipaddress.ip_address(value) in ipaddress.ip_network(wanted, strict=False)
    except ValueError:
        return False


_ORDERS: "dict[str, Callable[[float, float], bool]]" = {
    "Equals": lambda value, wanted: value == wanted,
    "LessThan": lambda value, wanted: value < wanted,
    "LessThanEquals": lambda value, wanted: value <= wanted,
    "GreaterThan": lambda value, wanted: value > wanted,
    "GreaterThanEquals": lambda value, wanted: value >= wanted,
}
_OPERATORS: "dict[str, Callable[[str, str], bool]]" = {
    "StringEquals": lambda value, wanted: value == wanted,
    "StringEqualsIgnoreCase": lambda value, wanted: value.lower() == wanted.lower(),
    "StringLike": lambda value, wanted: matches(wanted, value),
    "ArnEquals": lambda value, wanted: arn_matches(wanted, value),
    "ArnLike": lambda value, wanted: arn_matches(wanted, value),
    "Bool": lambda value, wanted: value.lower() == wanted.lower(),
    "BinaryEquals": lambda value, wanted: value == wanted,
    "IpAddress": _in_network,
    **{f"Numeric{name}": _compared(float, test) for name, test in _ORDERS.items()},
    **{f"Date{name}": _compared(_date, test) for name, test in _ORDERS.items()},
}
_NEGATED = {
    "StringNotEquals": "StringEquals",
    "StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase",
    "StringNotLike": "StringLike",
    "ArnNotEquals": "ArnEquals",
    "ArnNotLike": "ArnLike",
    "NotIpAddress": "IpAddress",
    "NumericNotEquals": "NumericEquals",
    "DateNotEquals": "DateEquals",
}
