"""From a request to its caller: the signature is found, its scope, date and key are checked, then itself."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import NamedTuple, Optional
from urllib.parse import parse_qs

from . import caller, sigv4
from .caller import Caller
from .endpoints import check_scope
from .refusals import Refused
from .sessions import Sessions
from .wire import Wire

SKEW = timedelta(minutes=15)
_STAMP = "%Y%m%dT%H%M%SZ"


class Signed(NamedTuple):
    """What a request says of its signature, in the Authorization header or in the query of a URL that somebody signed before."""

    access_key: str
    scope: sigv4.Scope
    headers: "list[str]"
    signature: str
    date: str
    token: Optional[str]


def authenticate(wire: Wire, sessions: Sessions) -> "tuple[Caller, Signed]":
    """Who has signed this request; Refused if nobody has, or not rightly."""
    signed = read(wire)
    check_scope(wire, signed.scope)
    _check_date(signed)
    found = caller.find(sessions, signed.access_key, signed.token)
    payload = _payload(wire, signed)
    key = sigv4.signing_key(found.secret, signed.scope)
    canonical = sigv4.canonical_request(wire, signed.headers, payload, signed.scope.service)
    signature = sigv4.sign(key, sigv4.string_to_sign(signed.date, signed.scope, canonical))
    if not hmac.compare_digest(signature, signed.signature):
        raise Refused("SignatureDoesNotMatch")
    caller.not_ended(sessions, signed.access_key)
    _check_signed_headers(wire, signed)
    return found, signed


def read(wire: Wire) -> Signed:
    """The signature's parts, well-formed; nothing is verified yet."""
    header = wire.header("authorization")
    if header is None:
        return _read_query(wire)
    algorithm, _, rest = header.partition(" ")
    if algorithm != sigv4.ALGORITHM:
        raise Refused("UnsupportedAlgorithm", f"Unsupported AWS 'algorithm': '{algorithm}'.")
    parts = dict(part.strip().partition("=")[::2] for part in rest.split(","))
    for name in ("Credential", "Signature", "SignedHeaders"):
        if not parts.get(name):
            message = f"Authorization header requires '{name}' parameter. Authorization={algorithm}"
            raise Refused("IncompleteSignature", message)
    date = _header_date(wire)
    access_key, scope = _credential(parts["Credential"], date)
    names = parts["SignedHeaders"].split(";")
    return Signed(access_key, scope, names, parts["Signature"], date, wire.header("x-amz-security-token"))


def _read_query(wire: Wire) -> Signed:
    """Of a presigned URL. It counts as long as any other signature: of X-Amz-Expires STS takes no notice (aws-iam-authenticator's
    pkg/token says so of its own tokens). Those of S3, which nobody here makes, are not read.
    """
    query = parse_qs(wire.query)
    said = {name: values[0] for name, values in query.items()}
    if said.get("X-Amz-Algorithm") != sigv4.ALGORITHM:
        raise Refused("MissingAuthenticationToken")
    for name in ("Credential", "Signature", "SignedHeaders", "Date"):
        if f"X-Amz-{name}" not in said:
            message = f"AWS query-string parameters must include 'X-Amz-{name}'. Re-examine the query-string parameters."
            raise Refused("IncompleteSignature", message)
    date = said["X-Amz-Date"]
    access_key, scope = _credential(said["X-Amz-Credential"], date)
    if scope.service == "s3":
        raise Refused("MissingAuthenticationToken")
    names = said["X-Amz-SignedHeaders"].split(";")
    return Signed(access_key, scope, names, said["X-Amz-Signature"], date, said.get("X-Amz-Security-Token"))


def _header_date(wire: Wire) -> str:
    """X-Amz-Date, else Date, in the form that is signed."""
    stamp = wire.header("x-amz-date")
    if stamp:
        return stamp
    try:
        return parsedate_to_datetime(wire.header("date") or "").astimezone(timezone.utc).strftime(_STAMP)
    except (TypeError, ValueError) as error:
        message = "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header."
        raise Refused("IncompleteSignature", message) from error


def _credential(text: str, date: str) -> "tuple[str, sigv4.Scope]":
    """Access key and scope, KEY/YYYYMMDD/REGION/SERVICE/aws4_request."""
    parts = text.split("/")
    if len(parts) != 5 or parts[4] != "aws4_request":
        elements = "exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term"
        raise Refused("IncompleteSignature", f"Credential must have {elements}, got '{text}'")
    if parts[1] != date[:8]:
        message = "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP"
        raise Refused("WrongScope", f"{message}: '{parts[1]}' != '{date[:8]}', from '{date}'.")
    return parts[0], sigv4.Scope(parts[1], parts[2], parts[3])


def _check_date(signed: Signed) -> None:
    """15 minutes either way."""
    if not re.fullmatch(r"\d{8}T\d{6}Z", signed.date):
        message = f"Date must be in ISO-8601 'basic format'. Got '{signed.date}'."
        raise Refused("IncompleteSignature", message)
    try:
        date = datetime.strptime(signed.date, _STAMP).replace(tzinfo=timezone.utc)
    except ValueError as error:
        raise Refused("IncompleteSignature", f"Got an impossible date '{signed.date}'.") from error
    now = datetime.fromtimestamp(time.time(), timezone.utc)
    if now > date + SKEW:
        earliest = (now - SKEW).strftime(_STAMP)
        message = f"Signature expired: {signed.date} is now earlier than {earliest} ({now.strftime(_STAMP)} - 15 min.)"
        raise Refused("Skewed", message)
    if date > now + SKEW:
        latest = (now + SKEW).strftime(_STAMP)
        message = (
            f"Signature not yet current: {signed.date} is still later than {latest} ({now.strftime(_STAMP)} + 15 min.)"
        )
        raise Refused("Skewed", message)


def _payload(wire: Wire, signed: Signed) -> str:
    """What stands for the body in the signature. A hash that is said has to be the body's."""
    said = wire.header("x-amz-content-sha256")
    real = hashlib.sha256(wire.body).hexdigest()
    if signed.scope.service != "s3":
        if said is not None and said != real:
            raise Refused("SignatureDoesNotMatch")
        return real
    if said is None:
        raise Refused("MissingSecurityHeader", "Missing required header for this request: x-amz-content-sha256")
    if said in sigv4.UNSIGNED or said == real:
        return said
    message = "The provided 'x-amz-content-sha256' header does not match what was computed."
    raise Refused("XAmzContentSHA256Mismatch", message)


def _check_signed_headers(wire: Wire, signed: Signed) -> None:
    """Host and every x-amz-* header are part of the signature."""
    if "host" not in signed.headers:
        message = "'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization."
        raise Refused("HeaderNotSigned", message)
    for name, _ in wire.headers:
        if name.startswith("x-amz-") and name not in signed.headers:
            raise Refused("HeaderNotSigned", f"'{name}' must be a 'SignedHeader' in the AWS Authorization.")
