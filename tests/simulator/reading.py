"""Reads a request by AWS' own model: its values, and whatever in it the model does not know.

moto's parsers, which follow botocore's shapes, do the reading. They take what they know and drop the rest without a word, and make
False of what is no boolean: here the rest is found, and a text that its type cannot be stays a text.
"""

from __future__ import annotations

import functools
import json
from typing import Any, Iterator, NamedTuple
from urllib.parse import parse_qsl

from .operations import Call, path_style

# The services whose requests are read, by the names of `operations.identify`.
SERVICES = ("autoscaling", "ec2", "elb", "elbv2", "events", "iam", "route53", "s3", "service-quotas", "sqs", "sts")
# What every request may have: who signs it, and what SDKs say of themselves (`x-id`: the operation, for logs).
_COMMON = ("Action", "Version", "x-id", "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-Security-Token",
           "X-Amz-Signature", "X-Amz-SignedHeaders")  # fmt: skip
_COMMON_HEADERS = ("x-amz-content-sha256", "x-amz-date", "x-amz-decoded-content-length", "x-amz-security-token", "x-amz-trailer",
                   "x-amz-user-agent")  # fmt: skip
_SCALARS = ("blob", "boolean", "double", "float", "integer", "long", "timestamp")


class Reading(NamedTuple):
    """The operation's input shape (None: it takes nothing), the request's values in it, and the names of what is not in it."""

    shape: Any
    values: "dict[str, Any]"
    unknown: "list[str]"


class Unreadable(ValueError):
    """A body that is not written in its protocol."""


@functools.lru_cache(maxsize=None)
def version(service: str) -> str:
    """Which model a service is read by."""
    import botocore

    from moto.core.utils import get_service_model

    return f"{service} {get_service_model(service).api_version} of botocore {botocore.__version__}"


def is_unknown(call: Call) -> bool:
    """Whether a service that has a model has no such operation; `?`: it has none at this path with these parameters."""
    from moto.core.utils import get_service_model

    return call.operation not in get_service_model(call.service).operation_names


def read(call: Call, environ: "dict[str, Any]", body: bytes) -> Reading:
    """The request, read."""
    from moto.core.request import determine_request_protocol
    from moto.core.utils import get_service_model

    model = get_service_model(call.service)
    operation = model.operation_model(call.operation)
    try:
        protocol = determine_request_protocol(model, environ.get("CONTENT_TYPE"))
    except NotImplementedError as error:
        raise Unreadable(str(error)) from error
    if protocol == "json":
        return _json(operation.input_shape, body)
    if protocol == "rest-xml":
        return _rest(call, operation, environ, body)
    return _query(operation, protocol, model.api_version, environ, body)


def _query(operation: Any, protocol: str, api: str, environ: "dict[str, Any]", body: bytes) -> Reading:
    """Parameters of a form, or of the query; the parser asks for each that the model knows by its full name."""
    sent = _Asked(_pairs(environ, body))
    values = _parsers()[protocol](operation).parse({"values": sent}) if operation.input_shape else {}
    unknown = [name for name in sent if name not in sent.asked and name not in _COMMON]
    if sent.get("Version") != api:
        unknown.append("Version")
    return Reading(operation.input_shape, values, unknown)


def _json(shape: Any, body: bytes) -> Reading:
    """JSON has its types itself."""
    try:
        values = json.loads(body or b"{}")
    except ValueError as error:
        raise Unreadable(str(error)) from error
    if not isinstance(values, dict):
        raise Unreadable("Start of structure or map found where not expected.")
    if shape is None:
        return Reading(None, {}, list(values))
    return Reading(shape, values, list(_unknown_in(shape, values, "")))


def _unknown_in(shape: Any, value: Any, path: str) -> "Iterator[str]":
    if shape.type_name == "structure" and isinstance(value, dict):
        for name, item in value.items():
            if name in shape.members:
                yield from _unknown_in(shape.members[name], item, f"{path}{name}.")
            else:
                yield path + name
    elif shape.type_name == "list" and isinstance(value, list):
        for number, item in enumerate(value, 1):
            yield from _unknown_in(shape.member, item, f"{path}{number}.")
    elif shape.type_name == "map" and isinstance(value, dict):
        for name, item in value.items():
            yield from _unknown_in(shape.value, item, f"{path}{name}.")


def _rest(call: Call, operation: Any, environ: "dict[str, Any]", body: bytes) -> Reading:
    """Path, query, headers, and a body where it is a structure; an object's content is nobody's to read."""
    from moto.core.parse import RequestParserError
    from moto.core.request import Request
    from moto.core.routing import get_service_router
    from werkzeug.datastructures import MultiDict

    request = Request(path_style(environ))
    pairs = parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    shape = operation.input_shape
    if shape is None:
        return Reading(None, {}, [name for name, _ in pairs if name not in _COMMON])
    payload = shape.members.get(shape.serialization.get("payload"))
    parts = {
        "values": MultiDict(pairs),
        "headers": request.headers,
        # Of content, only whether there is any.
        "body": body[:1] if payload is not None and payload.type_name == "blob" else body,
        "url_params": dict(get_service_router(call.service).match(request)[1]),
    }
    parser = _parsers()["rest-xml"](operation)
    try:
        values = parser.parse(parts)
    except RequestParserError as error:
        raise Unreadable(str(error)) from error
    return Reading(shape, values, parser.unknown + list(_unknown_beside_body(operation, pairs, request.headers)))


def _unknown_beside_body(operation: Any, pairs: "list[tuple[str, str]]", headers: Any) -> "Iterator[str]":
    """Parameters of the query and headers of AWS that no member is sent as."""
    places: "dict[str, set[str]]" = {"querystring": set(), "header": set(), "headers": set()}
    for name, member in operation.input_shape.members.items():
        places.get(member.serialization.get("location"), set()).add(member.serialization.get("name", name).lower())
    fixed = parse_qsl(operation.http["requestUri"].partition("?")[2], keep_blank_values=True)
    queried = places["querystring"] | {name.lower() for name, _ in fixed}
    yield from (name for name, _ in pairs if name not in _COMMON and name.lower() not in queried)
    # What a client sums its body with.
    prefixes = tuple(places["headers"]) + (("x-amz-checksum-",) if operation.http_checksum else ())
    for name in map(str.lower, headers.keys()):
        known = name in places["header"] or name in _COMMON_HEADERS or name.startswith(prefixes)
        if name.startswith("x-amz-") and not known:
            yield name


def _pairs(environ: "dict[str, Any]", body: bytes) -> "list[tuple[str, str]]":
    """The parameters of the query, and of a form."""
    pairs = parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    if environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
        pairs += parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
    return pairs


class _Asked(dict):
    """Parameters that remember which of them somebody asked for."""

    def __init__(self, pairs: Any) -> None:
        super().__init__(pairs)
        self.asked: "set[str]" = set()

    def get(self, name: str, default: Any = None) -> Any:
        """The parameter of that name."""
        self.asked.add(name)
        return super().get(name, default)


@functools.lru_cache(maxsize=1)
def _parsers() -> "dict[str, Any]":
    """moto's parsers, which are there once moto is."""
    from moto.core.parse import PROTOCOL_PARSERS

    def honest(parser: Any) -> Any:
        class Honest(parser):  # type: ignore[misc]
            """A scalar that cannot be read is the text that was sent."""

            def _parse_shape(self, shape: Any, node: Any, *prefix: str) -> Any:
                if shape.type_name not in _SCALARS:
                    return super()._parse_shape(shape, node, *prefix)
                sent = node.get(*prefix) if prefix else getattr(node, "text", node)
                if shape.type_name == "boolean" and sent is not None and str(sent).lower() not in ("true", "false"):
                    return sent
                try:
                    return super()._parse_shape(shape, node, *prefix)
                except ValueError:
                    return sent

        return Honest

    class Xml(honest(PROTOCOL_PARSERS["rest-xml"])):  # type: ignore[misc]
        """An element that no member is named by is unknown."""

        def __init__(self, operation: Any) -> None:
            super().__init__(operation)
            self.unknown: "list[str]" = []

        def _initial_body_parse(self, body: bytes) -> Any:
            root = super()._initial_body_parse(body)
            shape = self.operation_model.input_shape
            payload = shape.serialization.get("payload")
            name = (shape.members[payload] if payload else shape).serialization.get("name")
            if root.tag and name:
                self._expect(root, [name])
            return root

        def _parse_structure(self, shape: Any, node: Any) -> Any:
            members = shape.members.items()
            known = [self._member_key_name(member, name) for name, member in members if not member.is_not_bound_to_body]
            for item in node:
                self._expect(item, known)
            return super()._parse_structure(shape, node)

        def _parse_list(self, shape: Any, node: Any) -> Any:
            if hasattr(node, "tag") and not shape.is_flattened:
                for item in node:
                    self._expect(item, [shape.member.serialization.get("name", "member")])
            return super()._parse_list(shape, node)

        def _expect(self, node: Any, names: "list[str]") -> None:
            if self._node_tag(node) not in names:
                self.unknown.append(self._node_tag(node))

    return {name: honest(PROTOCOL_PARSERS[name]) for name in ("ec2", "query")} | {"rest-xml": Xml}
