"""The policy matcher against a second one, written as plainly as the documentation reads, on random policies."""

from __future__ import annotations

import json
import random
from typing import Any, Optional

import pytest

from simulator.auth import conditions, policy, wildcards
from simulator.auth.policy import Verdict
from simulator.auth.refusals import Refused

# The oracle: recursion instead of regular expressions, loops instead of comprehension over tables.


def same(pattern: str, text: str) -> bool:
    """Whether a pattern with `*` and `?` covers a text."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return same(pattern[1:], text) or (bool(text) and same(pattern, text[1:]))
    return bool(text) and pattern[0] in ("?", text[0]) and same(pattern[1:], text[1:])


def same_arn(pattern: str, arn: str) -> bool:
    if pattern == "*":
        return True
    wanted = pattern.split(":", 5)
    for index, part in enumerate(arn.split(":", 5)):
        if index < len(wanted) and not same(wanted[index], part):
            return False
    return True


def oracle(documents: "list[dict[str, Any]]", action: str, arn: str, context: "dict[str, list[str]]") -> str:
    """denied, allowed or silent."""
    effects = set()
    for document in documents:
        for statement in document["Statement"]:
            actions = statement.get("Action", statement.get("NotAction"))
            resources = statement.get("Resource", statement.get("NotResource"))
            of_action = any(same(one.lower(), action.lower()) for one in actions)
            of_resource = any(same_arn(one, arn) for one in resources)
            if of_action == ("NotAction" in statement) or of_resource == ("NotResource" in statement):
                continue
            if all(
                condition(operator, values, context.get(key.lower()))
                for operator, keys in statement.get("Condition", {}).items()
                for key, values in keys.items()
            ):
                effects.add(statement["Effect"])
    return "denied" if "Deny" in effects else "allowed" if effects else "silent"


def condition(operator: str, wanted: "list[str]", present: "Optional[list[str]]") -> bool:
    """One operator on one key; `present`: the key's values, None if it is not there."""
    if operator == "Null":
        return ("true" in wanted and present is None) or ("false" in wanted and present is not None)
    quantifier, _, name = operator.rpartition(":")
    optional = name.endswith("IfExists")
    name = name[: -len("IfExists")] if optional else name
    negated = "Not" in name
    compare = {
        "StringEquals": lambda one, value: one == value,
        "StringLike": same,
        "NumericLessThan": lambda one, value: float(value) < float(one) if value.isdigit() and one.isdigit() else False,
        "Bool": lambda one, value: one == value,
    }[name.replace("Not", "")]
    if quantifier == "" and present is None:
        return optional or negated
    results = []
    for value in present or []:
        hit = False
        for one in wanted:
            hit = hit or compare(one, value)
        results.append(hit != negated)
    if quantifier == "ForAllValues":
        return False not in results
    if quantifier == "ForAnyValue" or not negated:
        return True in results
    return False not in results


OPERATORS = ["StringEquals", "StringNotEquals", "StringLike", "StringNotLike", "NumericLessThan", "Bool"]
KEYS = ["aws:ResourceTag/A", "aws:RequestTag/A", "aws:TagKeys", "s3:prefix"]
VALUES = ["a", "b", "ab", "1", "12", "true", "false", ""]


class Chance:
    """Random policies and calls over few letters, so that they often meet."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def some(self, items: "list[str]", most: int = 2) -> "list[str]":
        return [self.random.choice(items) for _ in range(self.random.randrange(1, most + 1))]

    def pattern(self, text: str) -> str:
        """Like the text, with wildcards here and there."""
        return "".join(
            self.random.choices([char, "*", "?", "", "x"], [12, 2, 2, 1, 1])[0] if char != ":" else char
            for char in text
        )

    def action(self) -> str:
        return (
            self.random.choice(["ec2", "s3"]) + ":" + self.random.choice(["GetObject", "Get", "AttachVolume", "List"])
        )

    def arn(self) -> str:
        region, rest = (
            self.random.choice(["", "us-east-1"]),
            self.random.choice(["bucket/a", "bucket/a:b", "volume/v", "v"]),
        )
        return f"arn:aws:{self.random.choice(['s3', 'ec2'])}:{region}::{rest}"

    def resource(self) -> str:
        cut = self.pattern(self.arn()).split(":")
        return self.random.choices(["*", ":".join(cut), ":".join(cut[: self.random.randrange(1, 6)])], [1, 5, 1])[0]

    def condition(self) -> "dict[str, Any]":
        operator = self.random.choice(OPERATORS)
        if self.random.random() < 0.3:
            operator += "IfExists"
        elif self.random.random() < 0.3:
            operator = self.random.choice(["ForAllValues:", "ForAnyValue:"]) + operator
        values = [self.random.choice([value, self.pattern(value)]) for value in self.some(VALUES)]
        if self.random.random() < 0.2:
            operator, values = "Null", self.some(["true", "false"], 1)
        return {operator: {self.random.choice(KEYS): values}}

    def statement(self) -> "dict[str, Any]":
        negated = [self.random.random() < 0.15 for _ in range(2)]
        statement: "dict[str, Any]" = {"Effect": self.random.choices(["Allow", "Deny"], [3, 1])[0]}
        statement["NotAction" if negated[0] else "Action"] = [self.pattern(self.action()) for _ in range(2)]
        statement["NotResource" if negated[1] else "Resource"] = [self.resource() for _ in range(2)]
        if self.random.random() < 0.6:
            statement["Condition"] = self.condition()
        return statement

    def context(self) -> "dict[str, list[str]]":
        return {key.lower(): self.some(VALUES, 3) for key in KEYS if self.random.random() < 0.6}


def test_the_matcher_agrees_with_the_oracle():
    chance, seen = Chance(4), {verdict.value: 0 for verdict in Verdict}
    for _ in range(5_000):
        documents = [
            {"Statement": [chance.statement() for _ in range(chance.random.randrange(1, 4))]} for _ in range(2)
        ]
        action, arn, context = chance.action(), chance.arn(), chance.context()
        expected = oracle(documents, action, arn, context)
        found = policy.evaluate([json.dumps(one) for one in documents], action, arn, context).value
        assert found == expected, (documents, action, arn, context)
        seen[found] += 1
    assert min(seen.values()) > 250, seen


@pytest.mark.parametrize(
    "pattern, arn, hit",
    [
        ("*", "*", True),
        ("*", "arn:aws:s3:::b/k", True),
        ("arn:aws:s3:::b/*", "arn:aws:s3:::b/k/l:m", True),
        ("arn:aws:s3:::b/*", "arn:aws:s3:::b", False),
        ("arn:aws:s3:::b", "arn:aws:s3:::B", False),
        ("arn:aws:ec2:*:*:volume/*", "arn:aws:ec2:us-east-1:1:volume/*", True),
        ("arn:aws:*:volume/*", "arn:aws:ec2:us-east-1:1:volume/v", False),
        ("arn:aws:sqs", "arn:aws:sqs:us-east-1:1:queue", True),
        ("arn:aws:s3:::b[1]", "arn:aws:s3:::b1", False),
        ("arn:aws:ec2:*:*:volume/*", "*", False),
    ],
)
def test_a_wildcard_stays_in_its_part_of_an_arn(pattern, arn, hit):
    assert wildcards.arn_matches(pattern, arn) is hit


@pytest.mark.parametrize(
    "operator, wanted, value, holds",
    [
        ("IpAddress", "10.0.0.0/8", "10.1.2.3", True),
        ("IpAddress", ["192.168.0.0/16", "10.0.0.0/8"], "11.0.0.1", False),
        ("NotIpAddress", "10.0.0.0/8", "11.0.0.1", True),
        ("IpAddress", "10.0.0.0/8", "host", False),
        ("ArnLike", "arn:aws:iam::*:role/a*", "arn:aws:iam::1:role/ab", True),
        ("ArnNotLike", "arn:aws:iam::*:role/a*", "arn:aws:iam::1:role/ab", False),
        ("Bool", True, "true", True),
        ("Bool", "false", "true", False),
        ("NumericGreaterThanEquals", 10, "10", True),
        ("NumericLessThanEquals", "9.5", "10", False),
        ("NumericEquals", "10.0", "10", True),
        ("NumericNotEquals", "10", "11", True),
        ("NumericEquals", "10", "ten", False),
        ("DateLessThan", "2026-01-01T00:00:00Z", "2025-12-31T23:59:59Z", True),
        ("DateGreaterThan", "2026-01-01", "1767225601", True),
        ("StringEqualsIgnoreCase", "AB", "ab", True),
        ("StringNotEqualsIgnoreCase", "AB", "ab", False),
        ("StringEquals", "${aws:username}", "me", True),
        ("StringLike", "${aws:username}-*", "me-1", True),
        ("StringEquals", "${aws:nothing}", "", False),
        ("StringEquals", "${aws:nothing, 'me'}", "me", True),
        ("StringLike", "a${*}", "a*", True),
        ("StringLike", "a${*}", "ab", False),
        ("StringEquals", "a${?}", "a?", True),
    ],
)
def test_operators_compare_as_documented(operator, wanted, value, holds):
    context = {"key": [value], "aws:username": ["me"]}
    assert conditions.hold({operator: {"Key": wanted}}, context) is holds


def test_all_operators_and_keys_have_to_hold():
    context = {"a": ["1"], "b": ["2"]}
    assert conditions.hold({"StringEquals": {"a": "1", "b": "2"}, "Null": {"c": "true"}}, context)
    assert not conditions.hold({"StringEquals": {"a": "1", "b": "3"}}, context)
    assert not conditions.hold({"StringEquals": {"a": "1"}, "Null": {"b": "true"}}, context)


def test_an_operator_nobody_knows_is_an_error():
    with pytest.raises(Refused, match="StringResembles"):
        conditions.hold({"StringResembles": {"a": "b"}}, {"a": ["b"]})


def test_a_variable_reaches_into_a_resource():
    document = json.dumps(
        {"Statement": {"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::b/${aws:username}/*"}}
    )
    context = {"aws:username": ["me"]}
    assert policy.evaluate([document], "s3:GetObject", "arn:aws:s3:::b/me/k", context) is Verdict.ALLOWED
    assert policy.evaluate([document], "s3:GetObject", "arn:aws:s3:::b/you/k", context) is Verdict.SILENT
    assert policy.evaluate([document], "s3:GetObject", "arn:aws:s3:::b/you/k", {}) is Verdict.SILENT
