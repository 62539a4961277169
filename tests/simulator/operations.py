"""Which AWS operation a request is, from its signature, body and path; moto is not asked."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import parse_qs

# The signing name where it is not the name people use for the service.
_NAMES = {"elasticloadbalancing": "elbv2"}
_REST = ("s3", "route53")


class Call(NamedTuple):
    """One call: service and operation, `?` where it cannot be told."""

    service: str
    operation: str


def identify(environ: "dict[str, Any]", body: bytes) -> Call:
    """The call that a WSGI request with this body makes."""
    query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    service = _signing_name(environ, query)
    if service in _REST:
        return Call(service, _rest_operation(service, environ))
    target = environ.get("HTTP_X_AMZ_TARGET", "")
    if target:
        return Call(_NAMES.get(service, service), target.rsplit(".", 1)[-1])
    form = environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded")
    values = parse_qs(body.decode("utf-8", "replace")) if form else query
    return Call(_NAMES.get(service, service), values.get("Action", ["?"])[0])


def _signing_name(environ: "dict[str, Any]", query: "dict[str, list[str]]") -> str:
    """The service in the credential scope; an unsigned request can only be for S3."""
    header = environ.get("HTTP_AUTHORIZATION", "")
    scope = query["X-Amz-Credential"][0] if "X-Amz-Credential" in query else ""
    if "Credential=" in header:
        scope = header.split("Credential=", 1)[1].split(",", 1)[0]
    parts = scope.split("/")
    return parts[3].strip() if len(parts) == 5 else "s3"


def _rest_operation(service: str, environ: "dict[str, Any]") -> str:
    """REST services carry no action: the method, path and query say it."""
    from moto.core.request import Request
    from moto.core.routing import get_service_router
    from werkzeug.exceptions import HTTPException

    try:
        operation, _ = get_service_router(service).match(Request(dict(environ)))
    except HTTPException:
        return "?"
    return str(operation.name)
