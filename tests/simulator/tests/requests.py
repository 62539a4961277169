"""Requests of any operation: values that its model allows, values that it does not, and both as they go over the wire."""

from __future__ import annotations

import copy
import datetime
import functools
import json
import random
import re
from typing import Any, Iterator, NamedTuple
from urllib.parse import quote, urlencode

from botocore.serialize import create_serializer
from botocore.session import get_session

try:
    from re import _parser as sre  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_parse as sre

from ..reading import SERVICES
from ..shapes import compile_pattern

# EC2's pattern of these has an anchor in its middle, which no text matches.
_UNMATCHABLE = ("PlacementGroupArn",)
_NUMBERS = ("integer", "long", "float", "double")


@functools.lru_cache(maxsize=None)
def model(service: str) -> Any:
    """AWS' model of a service."""
    return get_session().get_service_model(service)


def operations() -> "Iterator[tuple[str, str]]":
    """Every operation that is read."""
    for service in SERVICES:
        for operation in model(service).operation_names:
            yield service, operation


def values_of(shape: Any, inside: "tuple[str, ...]" = ()) -> Any:
    """A value that the model allows, with every member of it; a structure within itself has only what it must."""
    kind = shape.type_name
    if kind == "structure":
        is_whole = shape.name not in inside and len(inside) < 6
        names = [name for name in (shape.members if is_whole else shape.required_members) if name not in _UNMATCHABLE]
        return {name: values_of(shape.members[name], (*inside, shape.name)) for name in names}
    least = int(shape.metadata.get("min", 1))
    if kind == "list":
        return [values_of(shape.member, inside) for _ in range(max(least, 1))]
    if kind == "map":
        return {values_of(shape.key, inside): values_of(shape.value, inside)}
    if kind in _NUMBERS:
        return shape.metadata.get("min", 1)
    if kind == "boolean":
        return True
    if kind == "timestamp":
        return datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    text = _text(shape)
    return text.encode() if kind == "blob" else text


def _text(shape: Any) -> str:
    enum, pattern = shape.metadata.get("enum"), shape.metadata.get("pattern")
    if enum:
        return str(enum[0])
    least, most = int(shape.metadata.get("min", 1)), int(shape.metadata.get("max", 2**31))
    if not pattern:
        return "a" * max(least, 1)
    compiled = compile_pattern(pattern)
    tree = sre.parse(compiled.pattern)
    found = (made for more in range(0, 1025) for made in [_matching(tree, more)] if least <= len(made) <= most and compiled.fullmatch(made))
    return next(found)


def _matching(tree: Any, more: int) -> str:
    """A text that a pattern matches; what may repeat does so that many times."""
    text = ""
    for kind, value in tree:
        name = str(kind)
        if name == "LITERAL":
            text += chr(value)
        elif name == "NOT_LITERAL":
            text += "b" if value == ord("a") else "a"
        elif name == "ANY":
            text += "a"
        elif name == "IN":
            text += _of_class(value)
        elif name in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, inner = value
            text += _matching(inner, 0) * int(min(max(least, more), most))
        elif name == "SUBPATTERN":
            text += _matching(value[3], more)
        elif name == "BRANCH":
            text += _matching(value[1][0], more)
        elif name not in ("AT", "ASSERT_NOT", "ASSERT"):
            raise NotImplementedError(name)
    return text


def _of_class(items: "list[Any]") -> str:
    allowed = [item for item in items if str(item[0]) != "NEGATE"]
    negated = len(allowed) != len(items)
    good = (chr(code) for code in [*range(97, 123), *range(48, 58), *range(32, 127), 9, 10] if _is_in(code, allowed) != negated)
    return next(good)


def _is_in(code: int, items: "list[Any]") -> bool:
    for kind, value in items:
        name = str(kind)
        if name == "LITERAL" and code == value or name == "RANGE" and value[0] <= code <= value[1]:
            return True
        categories = {"CATEGORY_WORD": r"\w", "CATEGORY_DIGIT": r"\d", "CATEGORY_SPACE": r"\s", "CATEGORY_NOT_SPACE": r"\S"}
        if name == "CATEGORY" and re.match(categories[str(value)], chr(code)):
            return True
    return False


class Mutation(NamedTuple):
    """How a request is made wrong, and the request."""

    kind: str
    path: str
    values: "dict[str, Any]"


def mutations(shape: Any, values: "dict[str, Any]", seed: random.Random) -> "Iterator[Mutation]":
    """One wrong member in each way that the shape has a rule against, at a place that is drawn."""
    by_kind: "dict[str, list[tuple[tuple[Any, ...], Any]]]" = {}
    for path, kind, wrong in _wrong(shape, values, ()):
        by_kind.setdefault(kind, []).append((path, wrong))
    for kind, places in by_kind.items():
        path, wrong = seed.choice(places)
        changed = copy.deepcopy(values)
        within = changed
        for step in path[:-1]:
            within = within[step]
        if wrong is _GONE:
            del within[path[-1]]
        else:
            within[path[-1]] = wrong
        yield Mutation(kind, ".".join(map(str, path)), changed)


_GONE = object()


def _wrong(shape: Any, value: Any, path: "tuple[Any, ...]") -> "Iterator[tuple[tuple[Any, ...], str, Any]]":
    """Places and what would be wrong there."""
    kind = shape.type_name
    if kind == "structure":
        for name, member in shape.members.items():
            if name not in value:
                continue
            # A path has to have it; and where nothing is left, nothing is sent.
            can_go = member.serialization.get("location") != "uri" and (len(value) > 1 or not path)
            if can_go and name in shape.required_members and not member.metadata.get("idempotencyToken"):
                yield (*path, name), "missing", _GONE
            yield from _wrong(member, value[name], (*path, name))
    elif kind == "list":
        if shape.metadata.get("max", 1000) < 1000:
            yield path, "many", value * (shape.metadata["max"] + 1)
        yield from _wrong(shape.member, value[0], (*path, 0))
    elif kind == "map":
        for key in value:
            yield from _wrong(shape.value, value[key], (*path, key))
    elif kind in _NUMBERS:
        if kind in ("integer", "long"):  # botocore itself refuses to write the others
            yield path, "type", "x"
        if "max" in shape.metadata:
            yield path, "great", shape.metadata["max"] + 1
        if "min" in shape.metadata:
            yield path, "small", shape.metadata["min"] - 1
    elif kind == "string" and shape.serialization.get("location") != "uri":
        if shape.metadata.get("max", 10**6) < 10**6:
            yield path, "long", "a" * (shape.metadata["max"] + 1)
        if shape.metadata.get("min"):
            yield path, "short", "a" * (shape.metadata["min"] - 1)
        if "enum" in shape.metadata and shape.name != "InstanceType":
            yield path, "enum", "nonesuch"
        pattern = shape.metadata.get("pattern")
        bad = next((text for text in ("\x00", "\n", "#", "é") if pattern and not compile_pattern(pattern).fullmatch(text)), None)
        if bad is not None and not shape.serialization.get("location"):
            yield path, "pattern", bad


def environ(service: str, operation: str, values: "dict[str, Any]", unknown: bool = False) -> "tuple[dict[str, Any], bytes]":
    """A request as WSGI has it, as botocore writes it; with `unknown`, there is something in it that no model knows."""
    described = model(service)
    serializer = create_serializer(described.metadata["protocol"], include_validation=False)
    sent = serializer.serialize_to_request(copy.deepcopy(values), described.operation_model(operation))
    query = dict(sent["query_string"] or {})
    headers, body = dict(sent["headers"]), sent["body"]
    if isinstance(body, dict):
        body = urlencode({**body, **({"Nonesuch.1": "x"} if unknown else {})})
    elif unknown and "X-Amz-Target" in headers:
        body = json.dumps({**json.loads(body), "Nonesuch": 1})
    elif unknown:
        query["nonesuch"] = "x"
    body = body.encode() if isinstance(body, str) else body
    path, _, fixed = sent["url_path"].partition("?")
    text = "&".join(filter(None, [fixed, urlencode(query, doseq=True)]))
    scope = f"a/20260101/us-east-1/{described.signing_name}/aws4_request"
    found = {
        "REQUEST_METHOD": sent["method"],
        "PATH_INFO": path,
        "RAW_URI": quote(path) + ("?" + text if text else ""),
        "QUERY_STRING": text,
        "HTTP_HOST": "127.0.0.1:1",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "1",
        "wsgi.url_scheme": "http",
        "HTTP_AUTHORIZATION": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0",
    }
    for name, value in headers.items():
        key = name.upper().replace("-", "_")
        found[key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"] = str(value)
    return found, body
