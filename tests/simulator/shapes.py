"""What AWS' API models say of a request: required members, patterns, lengths, ranges and values of enumerations.

The models are botocore's `service-2.json`, which AWS publishes. moto parses requests by them and checks none of these rules, and
servers of the query protocol get no validation by a client at all: a Rust client sends what it is given. `limits.py` has the rules
that AWS documents beside its models.
"""

from __future__ import annotations

import functools
import json
import re
from typing import TYPE_CHECKING, Any, Iterator, NamedTuple, Optional, Union

from . import limits, unseen
from .faults import Fault, document
from .operations import Call, path_style

if TYPE_CHECKING:
    from .app import Wsgi
    from .settle import Later

# The services whose requests are read, by the names of `operations.identify`.
SERVICES = ("autoscaling", "ec2", "elbv2", "events", "iam", "route53", "s3", "sqs", "sts")
# What a service calls a request that breaks its model; what is missing is called otherwise in EC2 and SQS.
_CODES = {
    "ec2": "InvalidParameterValue",
    "events": "ValidationException",
    "route53": "InvalidInput",
    "s3": "InvalidArgument",
    "sqs": "InvalidParameterValue",
}
_MISSING = {"ec2": "MissingParameter", "sqs": "MissingParameter"}
# EC2 takes names of types that a model of yesterday does not know; launching is what fails with a wrong one.
_GROWING = ("InstanceType",)
# Java's classes of characters, and what says the same inside a class of Python's.
_JAVA = (
    (r"\p{L}\p{Z}\p{N}_", r"\w\s"),
    (r"\p{ASCII}", r"[\x00-\x7f]"),
    (r"\uD800\uDC00-\uDBFF\uDFFF", r"\U00010000-\U0010ffff"),
    (r"\u10000-\u10FFFF", r"\U00010000-\U0010ffff"),
)


class Breach(NamedTuple):
    """What is wrong with a request, in AWS' words, and whether it is that something is missing."""

    said: str
    missing: bool = False


def checked(program: "Wsgi", later: "Later") -> "Wsgi":
    """The program behind AWS' own reading of each request; `later` knows what was made a moment ago."""
    from .operations import identify

    def call(environ: "dict[str, Any]", start_response: Any) -> Any:
        body = environ["wsgi.input"].getvalue()
        asked = identify(environ, body)
        read = read_request(asked, environ, body)
        refusal = None if read is None else refuse(asked, *read) or unseen.refuse(asked, read[1], later)
        if refusal is None:
            return program(environ, start_response)
        headers, text = document(refusal, asked)
        start_response(f"{refusal.status} Refused", [*headers, ("Content-Length", str(len(text)))])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [text]

    return call


def refuse(call: Call, shape: Any, values: "dict[str, Any]") -> "Optional[Fault]":
    """What AWS answers to values that its model does not allow; None: nothing is wrong with them."""
    found = [*breaches(shape, values), *map(Breach, limits.breaches(call, values))]
    if not found:
        return None
    code = _CODES.get(call.service, "ValidationError")
    if any(breach.missing for breach in found):
        code = _MISSING.get(call.service, code)
    errors = f"{len(found)} validation error{'s' if len(found) > 1 else ''} detected: "
    message = errors + "; ".join(breach.said for breach in found)
    return Fault(code=code, message=message, status=400)


def read_request(call: Call, environ: "dict[str, Any]", body: bytes) -> "Optional[tuple[Any, dict[str, Any]]]":
    """The operation's input shape and the request's values in it; None for what no model knows."""
    from moto.core.parse import PROTOCOL_PARSERS
    from moto.core.request import Request, determine_request_protocol
    from moto.core.utils import get_service_model

    if call.service not in SERVICES:
        return None
    model = get_service_model(call.service)
    if call.operation not in model.operation_names:
        return None
    operation = model.operation_model(call.operation)
    if operation.input_shape is None:
        return None
    protocol = determine_request_protocol(model, environ.get("CONTENT_TYPE"))
    if protocol == "json":
        return operation.input_shape, json.loads(body or b"{}")
    request = Request(path_style(environ))
    parts = {
        "method": request.method,
        "values": _values(environ, body),
        "headers": request.headers,
        "body": _structured(operation, body),
        "url_path": request.path,
        "url_params": _path_values(call, request),
    }
    return operation.input_shape, PROTOCOL_PARSERS[protocol](operation).parse(parts)


def _values(environ: "dict[str, Any]", body: bytes) -> Any:
    """The parameters of the query, and of a form."""
    from urllib.parse import parse_qsl

    from werkzeug.datastructures import MultiDict

    form = environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded")
    pairs = parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    if form:
        pairs += parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
    return MultiDict(pairs)


def _structured(operation: Any, body: bytes) -> bytes:
    """The body where it is a structure; an object's content is nobody's to read."""
    shape = operation.input_shape
    payload = shape.serialization.get("payload")
    is_content = payload is not None and shape.members[payload].type_name == "blob"
    return b"" if is_content else body


def _path_values(call: Call, request: Any) -> "dict[str, Any]":
    """What the path of a REST request names."""
    from moto.core.routing import get_service_router
    from werkzeug.exceptions import HTTPException

    if call.service not in ("s3", "route53"):
        return {}
    try:
        return dict(get_service_router(call.service).match(request)[1])
    except HTTPException:
        return {}


def breaches(shape: Any, value: Any, path: str = "") -> "Iterator[Breach]":
    """Every rule of the shape that the value breaks."""
    if shape.type_name == "structure" and isinstance(value, dict):
        yield from _structure(shape, value, path)
    elif shape.type_name == "list" and isinstance(value, list):
        yield from _size(shape, len(value), path, "length")
        for number, item in enumerate(value, 1):
            yield from breaches(shape.member, item, f"{path}.{number}.member")
    elif shape.type_name == "map" and isinstance(value, dict):
        yield from _size(shape, len(value), path, "length")
        for key, item in value.items():
            yield from breaches(shape.key, key, f"{path}.key")
            yield from breaches(shape.value, item, f"{path}.{key}.value")
    elif shape.type_name in ("string", "blob") and isinstance(value, (str, bytes)):
        yield from _text(shape, value, path)
    elif shape.type_name in ("integer", "long", "float", "double") and isinstance(value, (int, float)):
        yield from _size(shape, value, path, "value")


def _structure(shape: Any, value: "dict[str, Any]", path: str) -> "Iterator[Breach]":
    prefix = f"{path}." if path else ""
    for name in shape.required_members:
        # A token that makes a call idempotent may be left to AWS, whatever the model says.
        if value.get(name) is None and not shape.members[name].metadata.get("idempotencyToken"):
            yield Breach(limits.said(prefix + _lower(name), None, "Member must not be null"), True)
    for name, member in shape.members.items():
        if value.get(name) is not None:
            yield from breaches(member, value[name], prefix + _lower(name))


def _text(shape: Any, value: "Union[str, bytes]", path: str) -> "Iterator[Breach]":
    yield from _size(shape, len(value), path, "length")
    if isinstance(value, bytes):
        return
    pattern = shape.metadata.get("pattern")
    if pattern and not compile_pattern(pattern).fullmatch(value):
        yield Breach(limits.said(path, value, f"Member must satisfy regular expression pattern: {pattern}"))
    values = shape.metadata.get("enum")
    if values and value not in values and shape.name not in _GROWING:
        yield Breach(limits.said(path, value, f"Member must satisfy enum value set: [{', '.join(values)}]"))


def _size(shape: Any, size: float, path: str, what: str) -> "Iterator[Breach]":
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    if least is not None and size < least:
        yield Breach(limits.said(path, size, f"Member must have {what} greater than or equal to {least}"))
    if most is not None and size > most:
        yield Breach(limits.said(path, size, f"Member must have {what} less than or equal to {most}"))


def _lower(name: str) -> str:
    """A member as messages of AWS name it."""
    return name[0].lower() + name[1:]


@functools.lru_cache(maxsize=None)
def compile_pattern(pattern: str) -> "re.Pattern[str]":
    """A pattern of a model, which is Java's, as one of Python's; AWS matches all of a value."""
    translated = pattern
    for java, python in _JAVA:
        translated = translated.replace(java, python)
    return re.compile(translated, 0 if translated != pattern else re.ASCII)
