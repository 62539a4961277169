"""How each service says that a request breaks its model.

Sources: answers recorded from AWS (`tests/recorded.md`: SQS, EventBridge, IAM, STS, S3); EC2's `MissingParameter` is there too and its
`UnknownParameter` in aws/aws-sdk-js#57, its `InvalidAction` in cognitect-labs/aws-api#6; Route 53's in aws/aws-sdk-js#71. That
of Service Quotas is in its model.

Services other than EC2 and those of XML ignore what they do not know. The simulator refuses it for all: what a client names, it means.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from . import reading
from .faults import JSON_SERVICES, Fault
from .operations import Call

# What is wrong with a member.
VALUE, ENUM, MISSING, UNKNOWN, TYPE = "value", "enum", "missing", "unknown", "type"

# What a service calls a value that breaks its model; all others: ValidationError.
_CODES = {
    "ec2": "InvalidParameterValue",
    "events": "ValidationException",
    "route53": "InvalidInput",
    "s3": "InvalidArgument",
    "service-quotas": "IllegalArgumentException",
    "sqs": "InvalidParameterValue",
}
_SCHEMA = "The XML you provided was not well-formed or did not validate against our published schema"


class Breach(NamedTuple):
    """A member that breaks a rule, by its path as AWS writes it; None: it is missing. With a code, the rule is the whole answer."""

    path: str
    value: Any
    rule: str
    kind: str = VALUE
    code: str = ""

    def said(self) -> str:
        """AWS' words, which most services share."""
        shown = "null" if self.kind == MISSING else f"'{self.value}'"
        return f"Value {shown} at '{self.path}' failed to satisfy constraint: {self.rule}"


def refusal(call: Call, shape: Any, found: "list[Breach]") -> Fault:
    """The answer to a request that breaks the model. What AWS may know by now names the model that does not."""
    own = next((breach for breach in found if breach.code), None)
    if own is not None:
        return _fault(own.code, own.rule)
    by_kind = {breach.kind: breach for breach in reversed(found)}
    note = f" (model: {reading.version(call.service)})" if UNKNOWN in by_kind or ENUM in by_kind else ""
    if call.service == "s3" and _is_in_body(shape, found):
        return _fault("MalformedXML", _SCHEMA + note)
    if UNKNOWN in by_kind:
        name = by_kind[UNKNOWN].path
        if call.service == "route53":
            message = f"Invalid content was found starting with element '{name}'.{note}"
            return _fault("InvalidInput", f"Invalid XML ; cvc-complex-type.2.4.a: {message}")
        return _fault("UnknownParameter", f"The parameter {name} is not recognized{note}")
    if MISSING in by_kind and call.service in ("ec2", "sqs"):
        name, stop = (by_kind[MISSING].path, "") if call.service == "ec2" else (_upper(by_kind[MISSING].path), ".")
        return _fault("MissingParameter", f"The request must contain the parameter {name}{stop}")
    if TYPE in by_kind and call.service in JSON_SERVICES:
        return _fault("SerializationException", by_kind[TYPE].said())
    if call.service == "sqs":
        one = found[0]
        return _fault(
            _CODES["sqs"], f"Value {one.value} for parameter {_upper(one.path)} is invalid. Reason: {one.rule}.{note}"
        )
    errors = f"{len(found)} validation error{'s' if len(found) > 1 else ''} detected: "
    return _fault(
        _CODES.get(call.service, "ValidationError"), errors + "; ".join(breach.said() for breach in found) + note
    )


def no_such_operation(call: Call) -> Fault:
    """The answer to an operation that the service does not have."""
    code = "UnknownOperationException" if call.service in JSON_SERVICES else "InvalidAction"
    which = "of this path and these parameters" if call.operation == "?" else call.operation
    note = f"(model: {reading.version(call.service)})"
    return _fault(code, f"The action {which} is not valid for this web service. {note}")


def unreadable(call: Call, reason: str) -> Fault:
    """The answer to a body that is not written in its protocol."""
    if call.service == "s3":
        return _fault("MalformedXML", _SCHEMA)
    return _fault("SerializationException" if call.service in JSON_SERVICES else "MalformedInput", reason)


def _is_in_body(shape: Any, found: "list[Breach]") -> bool:
    """Whether something is wrong in the XML of a request to S3."""
    payload = shape.serialization.get("payload") if shape is not None else None
    if payload is None or shape.members[payload].type_name == "blob":
        return False
    name = payload[0].lower() + payload[1:]
    sent = [breach for breach in found if not breach.path.startswith("x-amz-")]
    return any(breach.kind == UNKNOWN or breach.path.split(".")[0] == name for breach in sent)


def _fault(code: str, message: str) -> Fault:
    return Fault(code=code, message=message, status=400)


def _upper(name: str) -> str:
    return name[0].upper() + name[1:]
