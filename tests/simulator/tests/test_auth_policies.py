"""Policies evaluated: patterns of ARNs, operators of conditions."""

from __future__ import annotations

import pytest

from simulator.auth import conditions, wildcards
from simulator.auth.refusals import Refused


@pytest.mark.parametrize(
    "pattern, arn, hit",
    [
        ("*", "*", True),
        ("arn:aws:s3:::b/*", "arn:aws:s3:::b/k/l:m", True),
        ("arn:aws:s3:::b/*", "arn:aws:s3:::b", False),
        ("arn:aws:s3:::b", "arn:aws:s3:::B", False),
        ("arn:aws:s3:::b?", "arn:aws:s3:::bk", True),
        ("arn:aws:*:volume/*", "arn:aws:ec2:us-east-1:1:volume/v", False),
        ("arn:aws:sqs", "arn:aws:sqs:us-east-1:1:queue", True),
        ("arn:aws:s3:::b[1]", "arn:aws:s3:::b1", False),
        ("arn:aws:ec2:*:*:volume/*", "*", False),
    ],
)
def test_a_wildcard_stays_in_its_part_of_an_arn(pattern, arn, hit):
    assert wildcards.arn_matches(pattern, arn) is hit


@pytest.mark.parametrize(
    "operator, wanted, values, holds",
    [
        ("StringEquals", ["a", "b"], ["b"], True),
        ("StringEquals", "a", [], False),
        ("StringEqualsIfExists", "a", [], True),
        ("StringNotEquals", "a", [], True),
        ("StringNotEquals", ["a", "b"], ["b"], False),
        ("StringLike", "a*", ["ab"], True),
        ("StringNotLike", "a*", ["ab"], False),
        ("ArnLike", "arn:aws:iam::*:role/a*", ["arn:aws:iam::1:role/ab"], True),
        ("Bool", True, ["true"], True),
        ("Bool", "false", ["true"], False),
        ("Null", "true", [], True),
        ("Null", "true", ["a"], False),
        ("ForAllValues:StringEquals", ["a", "b"], ["a", "b"], True),
        ("ForAllValues:StringEquals", ["a"], ["a", "b"], False),
        ("ForAllValues:StringEquals", ["a"], [], True),
        ("ForAnyValue:StringEquals", ["a"], ["a", "b"], True),
        ("ForAnyValue:StringEquals", ["a"], [], False),
    ],
)
def test_operators_compare_as_documented(operator, wanted, values, holds):
    assert conditions.conditions_hold({operator: {"Key": wanted}}, {"key": values} if values else {}) is holds


@pytest.mark.parametrize("operator, wanted", [("NumericEquals", "1"), ("StringLike", "${aws:username}")])
def test_what_is_not_evaluated_is_not_passed_over(operator, wanted):
    with pytest.raises(Refused, match="UnsupportedCondition"):
        conditions.conditions_hold({operator: {"a": wanted}}, {"a": ["1"]})
