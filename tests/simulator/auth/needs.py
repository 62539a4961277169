"""What a call needs to be allowed: actions on resources, each with its tags and condition keys.

One function per service; what no function knows needs `SERVICE:OPERATION` on `*`.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Optional

from moto.core.parse import PROTOCOL_PARSERS
from moto.core.request import Request, determine_request_protocol
from moto.core.routing import get_service_router
from moto.core.utils import get_service_model
from werkzeug.exceptions import HTTPException

from ..operations import Call, path_style

ANY = "*"
# Signing names that are not the prefix of the service's actions.
_PREFIXES = {"elb": "elasticloadbalancing", "elbv2": "elasticloadbalancing", "service-quotas": "servicequotas"}


@dataclass(frozen=True)
class Resource:
    """One resource of a call. `tags`: those it has; `asked`: those the request gives it."""

    arn: str = ANY
    tags: "Mapping[str, str]" = field(default_factory=dict)
    asked: "Optional[Mapping[str, str]]" = None


@dataclass(frozen=True)
class Need:
    """An action, and the resources on each of which it has to be allowed. `context`: key in lower case -> values."""

    action: str
    resources: "tuple[Resource, ...]" = (Resource(),)
    context: "Mapping[str, list[str]]" = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """A call with its parameters, as the service's model names them."""

    service: str
    operation: str
    parameters: "Mapping[str, Any]"
    region: str
    account: str
    headers: "Mapping[str, str]"

    def arn(self, service: str, rest: str) -> str:
        """An ARN of this region and account."""
        return f"arn:aws:{service}:{self.region}:{self.account}:{rest}"

    def texts(self, name: str) -> "list[str]":
        """The value or the values of a parameter."""
        value = self.parameters.get(name)
        values = value if isinstance(value, list) else [value]
        return [str(one) for one in values if one is not None]


def list_needs(asked: Asked) -> "list[Need]":
    """Everything that has to be allowed for this call."""
    from . import needs_ec2, needs_iam, needs_load_balancing, needs_others, needs_s3

    services: "dict[str, Callable[[Asked], list[Need]]]" = {
        "ec2": needs_ec2.list_needs,
        "s3": needs_s3.list_needs,
        "elbv2": needs_load_balancing.list_needs,
        "autoscaling": needs_others.of_autoscaling,
        "route53": needs_others.of_route53,
        "sqs": needs_others.of_sqs,
        "events": needs_others.of_events,
        "iam": needs_iam.of_iam,
        "sts": needs_iam.of_sts,
    }
    known = services.get(asked.service)
    return known(asked) if known else [Need(action(asked))]


def action(asked: Asked) -> str:
    """The action named like the operation."""
    return f"{_PREFIXES.get(asked.service, asked.service)}:{asked.operation}"


def read_request(environ: "dict[str, Any]", body: bytes, call: Call, region: str, account: str) -> Asked:
    """The call with its parameters; none where they cannot be read (moto says what is wrong with them)."""
    request = Request({**path_style(environ), "wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))})
    headers = {name.lower(): value for name, value in request.headers}
    try:
        parameters = _parameters(request, call.service, call.operation)
    except (HTTPException, LookupError, ValueError, NotImplementedError, OSError):
        parameters = {}
    return Asked(call.service, call.operation, parameters, region, account, headers)


def _parameters(request: Request, service: str, operation: str) -> "dict[str, Any]":
    """By the service's model, as the answering side reads them."""
    model = get_service_model(service)
    if operation not in model.operation_names:
        raise LookupError(operation)
    labels: "dict[str, Any]" = {}
    if model.protocol in ("rest-xml", "rest-json"):
        labels = get_service_router(service).match(request)[1]
    if service == "s3" and operation not in ("DeleteObjects", "PutObject", "CreateMultipartUpload", "CopyObject"):
        return {**{name: value for name, value in request.args.items()}, **labels}
    if service == "s3" and operation != "DeleteObjects":
        return labels
    parser = PROTOCOL_PARSERS[determine_request_protocol(model, request.content_type)]
    parsed = parser(model.operation_model(operation)).parse(
        {
            "method": request.method,
            "values": request.values,
            "headers": request.headers,
            "body": request.data,
            "url_path": request.path,
            "url_params": labels,
        }
    )
    return dict(parsed or {})


def of_pairs(pairs: Any, key: str = "Key", value: str = "Value") -> "dict[str, str]":
    """Tags from the list of pairs in which services take and keep them."""
    return {str(pair.get(key, "")): str(pair.get(value) or "") for pair in pairs or []}
