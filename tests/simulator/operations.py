"""Which AWS operation a request is, from its signature, body and path; moto is not asked."""

from __future__ import annotations

import re
from typing import Any, NamedTuple
from urllib.parse import parse_qs

# The signing name where it is not the name people use for the service.
_NAMES = {"elasticloadbalancing": "elbv2", "servicequotas": "service-quotas"}
# The version of the API of classic load balancers, which has the same signing name.
_CLASSIC = "2012-06-01"
_REST = ("s3", "route53")
# Where the call of a request is noted in its environment.
CALL = "simulator.call"
# A bucket's own host name.
_BUCKET_HOST = re.compile(r"(.+)\.s3(?:[.-][a-z0-9.-]+)?\.amazonaws\.com(?:\.cn)?(?::\d+)?", re.IGNORECASE)


class Call(NamedTuple):
    """One call: service and operation, `?` where it cannot be told."""

    service: str
    operation: str


def identify(environ: "dict[str, Any]", body: bytes) -> Call:
    """The call that a WSGI request with this body makes."""
    query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    form = environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded")
    presigned = query.get("X-Amz-Credential", [""])[0]
    service = _signing_name(environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2] or presigned, form)
    if service in _REST:
        return Call(service, _rest_operation(service, environ))
    target = environ.get("HTTP_X_AMZ_TARGET", "")
    if target:
        return Call(_NAMES.get(service, service), target.rsplit(".", 1)[-1])
    values = parse_qs(body.decode("utf-8", "replace")) if form else query
    name = "elb" if values.get("Version", [""])[0] == _CLASSIC else _NAMES.get(service, service)
    return Call(name, values.get("Action", ["?"])[0])


def _signing_name(scope: str, form: bool) -> str:
    """The service in the credential scope. An unsigned request is for S3, or brings a token to STS as a form."""
    parts = scope.split(",", 1)[0].split("/")
    if len(parts) == 5:
        return parts[3].strip()
    return "sts" if form else "s3"


def _rest_operation(service: str, environ: "dict[str, Any]") -> str:
    """REST services carry no action: the method, path and query say it."""
    from moto.core.request import Request
    from moto.core.routing import get_service_router
    from werkzeug.exceptions import HTTPException

    try:
        operation, _ = get_service_router(service).match(Request(path_style(environ)))
    except HTTPException:
        return "?"
    return str(operation.name)


def path_style(environ: "dict[str, Any]") -> "dict[str, Any]":
    """The environment as if a bucket named by the host were named by the path, which is where operations are read."""
    found = _BUCKET_HOST.fullmatch(environ.get("HTTP_HOST", ""))
    if found is None:
        return dict(environ)
    prefix = f"/{found.group(1)}"
    paths = {name: prefix + environ[name] for name in ("PATH_INFO", "RAW_URI", "REQUEST_URI") if name in environ}
    return {**environ, **paths, "HTTP_HOST": "s3.amazonaws.com"}
