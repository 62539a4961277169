"""`*` and `?` of IAM policies, in plain text and in ARNs."""

from __future__ import annotations

import functools
import re


@functools.lru_cache(maxsize=4096)
def _expression(pattern: str) -> "re.Pattern[str]":
    special = {"*": ".*", "?": "."}
    return re.compile("".join(special.get(char) or re.escape(char) for char in pattern), re.DOTALL)


def matches(pattern: str, text: str) -> bool:
    """Whether the whole text is as the pattern says."""
    return _expression(pattern).fullmatch(text) is not None


def arn_matches(pattern: str, arn: str) -> bool:
    """Part by part: a wildcard does not reach over a colon but in the sixth, the resource.

    Parts that a pattern leaves out at its end are any; `*` alone is everything.
    """
    if pattern == "*":
        return True
    wanted, parts = pattern.split(":", 5), arn.split(":", 5)
    if len(parts) < 6:
        return pattern == arn
    wanted += ["*"] * (6 - len(wanted))
    return all(matches(one, part) for one, part in zip(wanted, parts))
