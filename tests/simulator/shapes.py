"""What AWS' API models say of a request: what it may name and has to, types, patterns, lengths, ranges and values of enumerations.

The models are botocore's `service-2.json`, which AWS publishes. moto parses requests by them and checks none of these rules, and
servers of the query protocol get no validation by a client at all: a Rust client sends what it is given. `reading.py` reads, `words.py`
says no as the service does, `limits.py` has the rules that AWS documents beside its models.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, Iterator, Optional, Union

from . import limits, reading, unseen, words
from .faults import Fault, document
from .operations import CALL, Call
from .words import MISSING, TYPE, UNKNOWN, Breach

if TYPE_CHECKING:
    from .app import Wsgi
    from .settle import Later

# EC2 takes names of types that a model of yesterday does not know; launching is what fails with a wrong one.
_GROWING = ("InstanceType",)
# The greatest number of each type.
_NUMBERS = {"integer": 2**31 - 1, "long": 2**63 - 1, "float": float("inf"), "double": float("inf")}
# Java's classes of characters, and what says the same inside a class of Python's.
_JAVA = (
    (r"\p{L}\p{Z}\p{N}_", r"\w\s"),
    (r"\p{ASCII}", r"[\x00-\x7f]"),
    (r"\uD800\uDC00-\uDBFF\uDFFF", r"\U00010000-\U0010ffff"),
    (r"\u10000-\u10FFFF", r"\U00010000-\U0010ffff"),
)


def checked(program: "Wsgi", later: "Later") -> "Wsgi":
    """The program behind AWS' own reading of each request; `later` knows what was made a moment ago."""

    def call(environ: "dict[str, Any]", start_response: Any) -> Any:
        refusal = refuse(environ[CALL], environ, environ["wsgi.input"].getvalue(), later)
        if refusal is None:
            return program(environ, start_response)
        headers, text = document(refusal, environ[CALL])
        start_response(f"{refusal.status} Refused", [*headers, ("Content-Length", str(len(text)))])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [text]

    return call


def refuse(call: Call, environ: "dict[str, Any]", body: bytes, later: "Optional[Later]" = None) -> "Optional[Fault]":
    """What AWS answers to a request that its model does not allow; None: nothing is wrong with it."""
    if call.service not in reading.SERVICES:
        return None
    if reading.is_unknown(call):
        return words.no_such_operation(call)
    try:
        read = reading.read(call, environ, body)
    except reading.Unreadable as error:
        return words.unreadable(call, str(error))
    found = [Breach(name, None, "", UNKNOWN) for name in read.unknown]
    if read.shape is not None:
        found += breaches(read.shape, read.values)
        if not any(breach.kind == TYPE for breach in found):
            found += limits.breaches(call, read.values)
    if found:
        return words.refusal(call, read.shape, found)
    return unseen.refuse(call, read.values, later) if later else None


def breaches(shape: Any, value: Any, path: str = "") -> "Iterator[Breach]":
    """Every rule of the shape that the value breaks."""
    if shape.type_name == "structure" and isinstance(value, dict):
        yield from _structure(shape, value, path)
    elif shape.type_name == "list" and isinstance(value, list):
        yield from _size(shape, len(value), value, path, "length")
        for number, item in enumerate(value, 1):
            yield from breaches(shape.member, item, f"{path}.{number}.member")
    elif shape.type_name == "map" and isinstance(value, dict):
        yield from _size(shape, len(value), value, path, "length")
        for key, item in value.items():
            yield from breaches(shape.key, key, f"{path}.key")
            yield from breaches(shape.value, item, f"{path}.{key}.value")
    elif shape.type_name in ("string", "blob") and isinstance(value, (str, bytes)):
        yield from _text(shape, value, path)
    elif shape.type_name in _NUMBERS and isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from _size(shape, value, value, path, "value")
        if abs(value) > _NUMBERS[shape.type_name]:
            yield Breach(path, value, f"Member must be a number of type {shape.type_name}", TYPE)
    elif shape.type_name == "boolean" and isinstance(value, bool):
        return
    elif shape.type_name != "timestamp" or isinstance(value, str):
        yield Breach(path, value, f"Member must be of type {shape.type_name}", TYPE)


def _structure(shape: Any, value: "dict[str, Any]", path: str) -> "Iterator[Breach]":
    prefix = f"{path}." if path else ""
    for name in shape.required_members:
        # A token that makes a call idempotent may be left to AWS, whatever the model says.
        if value.get(name) is None and not shape.members[name].metadata.get("idempotencyToken"):
            yield Breach(prefix + _lower(name), None, "Member must not be null", MISSING)
    for name, member in shape.members.items():
        if value.get(name) is not None:
            yield from breaches(member, value[name], prefix + _lower(name))


def _text(shape: Any, value: "Union[str, bytes]", path: str) -> "Iterator[Breach]":
    yield from _size(shape, len(value), value, path, "length")
    if isinstance(value, bytes):
        return
    pattern = shape.metadata.get("pattern")
    if pattern and not compile_pattern(pattern).fullmatch(value):
        yield Breach(path, value, f"Member must satisfy regular expression pattern: {pattern}")
    values = shape.metadata.get("enum")
    if values and value not in values and shape.name not in _GROWING:
        yield Breach(path, value, f"Member must satisfy enum value set: [{', '.join(values)}]", words.ENUM)


def _size(shape: Any, size: float, value: Any, path: str, what: str) -> "Iterator[Breach]":
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    if least is not None and size < least:
        yield Breach(path, value, f"Member must have {what} greater than or equal to {least}")
    if most is not None and size > most:
        yield Breach(path, value, f"Member must have {what} less than or equal to {most}")


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
