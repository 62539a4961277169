"""AWS Signature Version 4, from its public specification: what is signed, and with what. Pure functions.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from .wire import Wire

ALGORITHM = "AWS4-HMAC-SHA256"
# In the place of a hash: the signature does not cover the body. moto undoes the chunks of the second form.
UNSIGNED = ("UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER")
_SPACES = re.compile(rb"[ \t]+")


class Scope(NamedTuple):
    """The credential scope: day (YYYYMMDD), region, signing name of the service."""

    day: str
    region: str
    service: str

    def __str__(self) -> str:
        return f"{self.day}/{self.region}/{self.service}/aws4_request"


def canonical_request(wire: Wire, signed: "list[str]", payload: str, service: str) -> str:
    """The request in the one form both sides compute. `signed`: header names in lower case."""
    headers = "".join(f"{name}:{_header(wire, name)}\n" for name in signed)
    path = canonical_path(wire.path, service)
    return "\n".join([wire.method, path, canonical_query(wire.query), headers, ";".join(signed), payload])


def canonical_path(path: str, service: str) -> str:
    """S3 encodes an object's key once, as it is. Elsewhere the path is normalised, and what is
    already encoded is encoded again.
    """
    if service == "s3":
        return quote(unquote_to_bytes(path), safe="/-_.~")
    return quote(_normal(path), safe="/-_.~")


def _normal(path: str) -> str:
    """Without empty segments, `.` and `..` (RFC 3986, 5.2.4); a slash at the end stays."""
    kept: "list[str]" = []
    for segment in path.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in ("", "."):
            kept.append(segment)
    slash = "/" if kept and path.endswith(("/", "/.", "/..")) else ""
    return "/" + "/".join(kept) + slash


def canonical_query(query: str) -> str:
    """Names and values, encoded anew and sorted, but for the signature itself. A `+` is a space."""
    pairs = [part.partition("=") for part in query.split("&") if part and not part.startswith("X-Amz-Signature=")]
    encoded = [(_encoded(name), _encoded(value)) for name, _, value in pairs]
    return "&".join(f"{name}={value}" for name, value in sorted(encoded))


def _encoded(text: str) -> str:
    return quote(unquote_to_bytes(text.replace("+", " ")), safe="-_.~")


def _header(wire: Wire, name: str) -> str:
    """All values of a header, joined by commas, each with single spaces."""
    values = [_SPACES.sub(b" ", value).strip() for key, value in wire.headers if key == name]
    return b",".join(values).decode("utf-8", "surrogateescape")


def string_to_sign(date: str, scope: Scope, canonical: str) -> str:
    """What the key is applied to. `date`: YYYYMMDDTHHMMSSZ."""
    digest = hashlib.sha256(canonical.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{ALGORITHM}\n{date}\n{scope}\n{digest}"


def signing_key(secret: str, scope: Scope) -> bytes:
    """The key of one day, region and service."""
    key = f"AWS4{secret}".encode()
    for part in (scope.day, scope.region, scope.service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def sign(key: bytes, text: str) -> str:
    """The signature, in hexadecimal."""
    return hmac.new(key, text.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()
