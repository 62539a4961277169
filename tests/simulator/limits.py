"""Limits of names, tags and texts that AWS documents in its guides and leaves out of its models (`shapes.py`)."""

from __future__ import annotations

import json
import re
from typing import Any, Iterator, NamedTuple

from .operations import Call
from .words import Breach


class Limit(NamedTuple):
    """The longest value of a member, in characters, the pattern that all of it matches, and where AWS says so."""

    longest: int
    pattern: str
    least: int = 1


# EC2's reference of CreateSecurityGroup: "a-z, A-Z, 0-9, spaces, and ._-:/()#,@[]+=&;{}!$*", up to 255 characters.
_GROUP_TEXT = Limit(255, r"[a-zA-Z0-9 ._\-:/()#,@\[\]+=&;{}!$*]*")
# The same of rules (IpRange, UserIdGroupPair, PrefixListId).
_RULE_TEXT = Limit(255, r"[a-zA-Z0-9 ._\-:/()#,@\[\]+=&;{}!$*]*", 0)
# Elastic Load Balancing's reference of CreateLoadBalancer and CreateTargetGroup: "a maximum of 32 characters, must contain only
# alphanumeric characters or hyphens, and must not begin or end with a hyphen". Two hyphens in a row are refused as well (kubernetes-
# sigs/aws-load-balancer-controller builds none).
_BALANCER = Limit(32, r"(?!internal-)[a-zA-Z0-9]+(-[a-zA-Z0-9]+)*")
_TARGET_GROUP = Limit(32, r"[a-zA-Z0-9]+(-[a-zA-Z0-9]+)*")

_MEMBERS = {
    ("ec2", "CreateSecurityGroup", "GroupName"): _GROUP_TEXT._replace(pattern=r"(?!sg-)" + _GROUP_TEXT.pattern),
    ("ec2", "CreateSecurityGroup", "Description"): _GROUP_TEXT,
    # EC2's reference of CreateLaunchTemplate.
    ("ec2", "CreateLaunchTemplate", "LaunchTemplateName"): Limit(128, r"[a-zA-Z0-9()./_-]+", 3),
    # "Up to 255 ASCII characters."
    ("ec2", "ImportKeyPair", "KeyName"): Limit(255, r"[\x20-\x7e]*"),
    ("ec2", "CreateKeyPair", "KeyName"): Limit(255, r"[\x20-\x7e]*"),
    ("elbv2", "CreateLoadBalancer", "Name"): _BALANCER,
    ("elbv2", "CreateTargetGroup", "Name"): _TARGET_GROUP,
    # SQS' reference: "up to 80 characters. Valid values: alphanumeric characters, hyphens, and underscores", `.fifo` at the end.
    ("sqs", "CreateQueue", "QueueName"): Limit(80, r"[a-zA-Z0-9_-]+(\.fifo)?"),
    # S3's rules of names; the length of a key in bytes is checked below.
    ("s3", "CreateBucket", "Bucket"): Limit(63, r"[a-z0-9][a-z0-9.-]*[a-z0-9]", 3),
}
# SQS, as recorded (`recorded.md`): the values that a number may have, and how AWS says so.
_MESSAGES = {
    "MaxNumberOfMessages": (range(1, 11), "Must be between 1 and 10, if provided."),
    "WaitTimeSeconds": (range(21), "Must be >= 0 and <= 20, if provided."),
}
_FILTERS = "FilterLimitExceeded"
# Tags: "Maximum key length 128, value 256 Unicode characters" everywhere (EC2's guide of tags, SQS', Route 53's).
_TAG_KEY, _TAG_VALUE = 128, 256


def breaches(call: Call, values: "dict[str, Any]") -> "Iterator[Breach]":
    """Every limit that these values break."""
    for (service, operation, member), limit in _MEMBERS.items():
        value = values.get(member)
        if (service, operation) == (call.service, call.operation) and isinstance(value, str):
            if not limit.least <= len(value) <= limit.longest or not re.fullmatch(limit.pattern, value):
                rule = f"Member must have {limit.least} to {limit.longest} characters and match {limit.pattern}"
                yield Breach(member, value, rule)
    if call.service == "s3" and len(str(values.get("Key") or "").encode()) > 1024:
        yield Breach("Key", values["Key"], "Member must have at most 1024 bytes")
    if call.service == "ec2":
        yield from _filters(values.get("Filters"))
    if call == ("sqs", "ReceiveMessage"):
        for name, (allowed, rule) in _MESSAGES.items():
            value = values.get(name)
            if isinstance(value, int) and value not in allowed:
                message = f"Value {value} for parameter {name} is invalid. Reason: {rule}"
                yield Breach(name, value, message, code="InvalidParameterValue")
    if call.service in ("iam", "sts"):
        yield from _of_roles(call, values)
    for path, value in _walk(values, ""):
        yield from _tags(call, path, value)
        yield from _description(call, path, value)


def _of_roles(call: Call, values: "dict[str, Any]") -> "Iterator[Breach]":
    """ARNs and policies that are none, in the words that are recorded (`recorded.md`)."""
    role, policy = values.get("RoleArn"), values.get("PolicyArn")
    if call.service == "sts" and role and not re.fullmatch(r"arn:[^:]+:[^:]+:[^:]*:[^:]*:.+", role):
        yield Breach("roleArn", role, f"{role} is invalid", code="ValidationError")
    if call.operation.endswith("RolePolicy") and policy and not policy.startswith("arn:"):
        yield Breach("policyArn", policy, "Invalid ARN:  Could not be parsed!", code="ValidationError")
    trust = values.get("AssumeRolePolicyDocument")
    if call.operation == "UpdateAssumeRolePolicy":
        trust = values.get("PolicyDocument")
    if trust is not None and not _is_object(trust):
        message = "This policy contains invalid Json"
        yield Breach("assumeRolePolicyDocument", trust, message, code="MalformedPolicyDocument")


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _filters(filters: Any) -> "Iterator[Breach]":
    """Values of all filters of a call together (ansible/ansible#16184), and the longest (ansible-collections/amazon.aws#2393)."""
    asked = [value for one in filters or [] for value in one.get("Values", [])]
    if len(asked) > 200:
        yield Breach("filters", asked, "The maximum number of filter values specified on a single call is 200", code=_FILTERS)
    if any(len(value) > 255 for value in asked):
        yield Breach("filters", asked, "The maximum length for a filter value is 255 characters", code=_FILTERS)


def _tags(call: Call, path: str, value: "dict[str, Any]") -> "Iterator[Breach]":
    """Tags, a structure each or, as SQS has them, one map."""
    if call.operation.startswith(("Describe", "List", "Get")) or not path.lower().endswith("tags"):
        return
    found = {value["Key"]: value.get("Value")} if "Key" in value else value
    for key, text in found.items():
        if not 0 < len(key) <= _TAG_KEY:
            yield Breach(f"{path}.Key", key, f"Member must have 1 to {_TAG_KEY} characters")
        if isinstance(text, str) and len(text) > _TAG_VALUE:
            yield Breach(f"{path}.Value", text, f"Member must have at most {_TAG_VALUE} characters")


def _description(call: Call, path: str, value: "dict[str, Any]") -> "Iterator[Breach]":
    """Descriptions of rules of security groups."""
    text = value.get("Description")
    if not call.operation.startswith("AuthorizeSecurityGroup") or not isinstance(text, str):
        return
    if len(text) > _RULE_TEXT.longest or not re.fullmatch(_RULE_TEXT.pattern, text):
        yield Breach(f"{path}.Description", text, f"Member must match {_RULE_TEXT.pattern}")


def _walk(value: Any, path: str) -> "Iterator[tuple[str, dict[str, Any]]]":
    """Every structure in a request, with the member that it is in."""
    if isinstance(value, dict):
        yield path, value
        for name, item in value.items():
            yield from _walk(item, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list):
        for item in value:
            yield from _walk(item, path)
