"""Whether a caller may do what it asks: policies on every resource of every action that the call needs."""

from __future__ import annotations

import base64
import json
import time
import zlib
from typing import Any, Mapping

from . import needs, needs_s3
from .caller import Caller
from .conditions import Context
from .needs import Asked, Need, Resource
from .policy import Verdict, evaluate
from .refusals import Refused, family

# Everybody may ask who they are, whatever their policies say.
_FREE = ("sts:GetCallerIdentity", "sts:GetSessionToken")


def authorize(asked: Asked, caller: Caller, request: Context) -> None:
    """Raises Refused unless all that the call needs is allowed. `request`: condition keys of any request."""
    if needs.action(asked) in _FREE:
        return
    for need in needs.list_needs(asked):
        _require(asked, caller, need, request)
    for need in needs_s3.may_know_of_absence(asked) if asked.service == "s3" else []:
        _require(asked, caller, need, request)


def _require(asked: Asked, caller: Caller, need: Need, request: Context) -> None:
    for resource in need.resources:
        why = _why_not(caller, need, resource, request)
        if why:
            raise _refusal(asked, caller, need.action, resource.arn, why)


def _why_not(caller: Caller, need: Need, resource: Resource, request: Context) -> str:
    """Why the caller may not do this to one resource, in AWS's words; empty if it may."""
    context = {**request, **caller.context, **need.context, **_of_resource(need.action, resource)}
    verdicts = [("identity-based policy", caller.identity), *caller.limits]
    found = [(name, evaluate(documents, need.action, resource.arn, context)) for name, documents in verdicts]
    for name, verdict in found:
        if verdict is Verdict.DENIED:
            article = "an" if name.startswith("i") else "a"
            return f"with an explicit deny in {article} {name}"
    return next((_no_policy(name, need.action) for name, verdict in found if verdict is Verdict.SILENT), "")


def _no_policy(name: str, action: str) -> str:
    return f"because no {name} allows the {action} action"


def _of_resource(action: str, resource: Resource) -> "dict[str, list[str]]":
    """The tags a resource has and is asked to have, as condition keys."""
    service = action.partition(":")[0]
    context: "dict[str, list[str]]" = {}
    for key, value in resource.tags.items():
        context[f"aws:resourcetag/{key}".lower()] = [value]
        context[f"{service}:resourcetag/{key}".lower()] = [value]
    if resource.asked:
        context.update({f"aws:requesttag/{key}".lower(): [value] for key, value in resource.asked.items()})
        context["aws:tagkeys"] = list(resource.asked)
    parts = resource.arn.split(":")
    # The ARN of a bucket names no account: it is the bucket's owner.
    owner = needs_s3.owner(resource.arn) if service == "s3" else parts[4] if len(parts) > 5 else None
    if owner:
        context["aws:resourceaccount"] = [owner]
    return context


def _refusal(asked: Asked, caller: Caller, action: str, resource: str, why: str) -> Refused:
    sentence = f"{_sentence(asked, caller, action, resource)} {why}"
    if family(asked.service) != "ec2":
        return Refused("AccessDenied", sentence)
    encoded = encode({"allowed": False, "context": {"principal": caller.arn, "action": action, "resource": resource}})
    start = "You are not authorized to perform this operation."
    return Refused("AccessDenied", f"{start} {sentence}. Encoded authorization failure message: {encoded}")


def _sentence(asked: Asked, caller: Caller, action: str, resource: str) -> str:
    quoted = f'"{resource}"' if asked.service == "s3" else resource
    return f"User: {caller.arn} is not authorized to perform: {action} on resource: {quoted}"


def encode(message: "Mapping[str, Any]") -> str:
    """An opaque form, as AWS has one."""
    return base64.urlsafe_b64encode(zlib.compress(json.dumps(message, sort_keys=True).encode())).decode()


def of_request(environ: "dict[str, Any]", region: str) -> "dict[str, list[str]]":
    """The condition keys that every request has. Behind a proxy on this machine, the proxy's word counts."""
    address, scheme = environ.get("REMOTE_ADDR", ""), environ.get("wsgi.url_scheme", "http")
    if address.startswith("127."):
        address = environ.get("HTTP_X_FORWARDED_FOR", address).split(",")[0].strip()
        scheme = environ.get("HTTP_X_FORWARDED_PROTO", scheme)
    now = time.time()
    return {
        "aws:sourceip": [address],
        "aws:securetransport": [str(scheme == "https").lower()],
        "aws:useragent": [environ.get("HTTP_USER_AGENT", "")],
        "aws:requestedregion": [region],
        "aws:epochtime": [str(int(now))],
        "aws:currenttime": [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))],
    }
