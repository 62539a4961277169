"""The Condition element of IAM policies: operators, sets of values, keys that are not there.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
"""

from __future__ import annotations

import re
from typing import Callable, Mapping, Sequence

from .refusals import Refused
from .wildcards import arn_matches, matches

# What is known of a call: key in lower case -> values. A key that is not there has no value.
Context = Mapping[str, Sequence[str]]
_NAME = re.compile(r"(?:(ForAllValues|ForAnyValue):)?(\w+?)(IfExists)?")
_OPERATORS: "dict[str, Callable[[str, str], bool]]" = {
    "StringEquals": lambda value, wanted: value == wanted,
    "StringLike": lambda value, wanted: matches(wanted, value),
    "ArnEquals": lambda value, wanted: arn_matches(wanted, value),
    "ArnLike": lambda value, wanted: arn_matches(wanted, value),
    "Bool": lambda value, wanted: value.lower() == wanted.lower(),
}


def conditions_hold(conditions: "Mapping[str, Mapping[str, object]]", context: Context) -> bool:
    """Whether every key of every operator holds. Refused: an operator or a policy variable that nobody here uses."""
    return all(
        _holds(operator, _texts(wanted), list(context.get(key.lower(), ())))
        for operator, keys in conditions.items()
        for key, wanted in keys.items()
    )


def _texts(value: object) -> "list[str]":
    """One value or a list of them, as text; JSON's booleans are `true` and `false`."""
    values = value if isinstance(value, list) else [value]
    return [str(item).lower() if isinstance(item, bool) else str(item) for item in values]


def _holds(operator: str, wanted: "list[str]", present: "list[str]") -> bool:
    parts = _NAME.fullmatch(operator)
    quantifier, name, optional = parts.groups() if parts else (None, operator, None)
    if name == "Null":
        return any((value.lower() == "true") == (not present) for value in wanted)
    negated = "Not" in name
    compare = _OPERATORS.get(name.replace("Not", ""))
    if compare is None:
        raise Refused("UnsupportedCondition", f"the simulator knows no condition operator {name}")
    for value in wanted:
        refuse_variables(value)

    def one(value: str) -> bool:
        return any(compare(value, each) for each in wanted) != negated

    if quantifier == "ForAllValues":
        return all(one(value) for value in present)
    if quantifier == "ForAnyValue":
        return any(one(value) for value in present)
    if not present:
        return negated or optional is not None
    # A key with several values under an operator for one value: any of them, or with a negated one all.
    return all(one(value) for value in present) if negated else any(one(value) for value in present)


def refuse_variables(text: str) -> None:
    """A policy variable (`${aws:username}`) is not taken for text."""
    if "${" in text:
        raise Refused("UnsupportedCondition", f"the simulator knows no policy variables: {text}")
