"""`--strict`: every AWS call is authenticated and authorized before moto sees it."""

from __future__ import annotations

import json
import uuid
from typing import Any, NamedTuple, Optional
from xml.sax.saxutils import escape

from .. import faults
from ..operations import Call
from . import needs, wire
from .authenticate import authenticate
from .authorize import authorize, of_request
from .caller import Caller
from .refusals import Refused, fault
from .sessions import ACCOUNT, Sessions

_STS = "https://sts.amazonaws.com/doc/2011-06-15/"


class Answer(NamedTuple):
    """What is said instead of asking moto."""

    status: int
    headers: "list[tuple[str, str]]"
    body: bytes


class Gate:
    """Lets calls through, or answers for the service."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions

    def reset(self) -> None:
        """After everything else was emptied: the administrator as before."""
        self.sessions.administrator()

    def answer(self, environ: "dict[str, Any]", body: bytes, call: Call) -> Optional[Answer]:
        """An answer where moto is not to be asked: refusals, and who the caller is; None lets the call through."""
        environ.pop("HTTP_X_MOTO_ACCOUNT_ID", None)  # moto would take anybody's word for the account
        sent = wire.read_wire(environ, body)
        as_json = call.service == "sts" and "json" in environ.get("HTTP_ACCEPT", "")
        if (call.service, call.operation) == ("sts", "AssumeRoleWithWebIdentity"):
            return None  # nobody signs it: the token says who calls
        if call in (("s3", "GetObject"), ("s3", "HeadObject")) and sent.header("authorization") is None:
            return None  # a stranger: what is public is
        try:
            caller, signed = authenticate(sent, self.sessions)
            asked = needs.read_request(environ, body, call, signed.scope.region, ACCOUNT)
            authorize(asked, caller, of_request(environ, _region_of(call, signed.scope.region)))
            return _of_sts(asked, caller, as_json)
        except Refused as refused:
            return _refusal(refused, call, as_json)


def _region_of(call: Call, signed_for: str) -> str:
    """`aws:RequestedRegion`: of services with one endpoint its region, whatever the caller means
    (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html#condition-keys-requestedregion)."""
    return "us-east-1" if call.service in ("iam", "route53") else signed_for


def _refusal(refused: Refused, call: Call, as_json: bool) -> Answer:
    said = fault(refused, call)
    headers, text = faults.document(said, call)
    if as_json:
        error = {"Code": said.code, "Message": said.message, "Type": "Sender"}
        headers, text = [("Content-Type", "application/json")], json.dumps({"Error": error}).encode()
    return Answer(said.status, [*headers, *refused.headers], text)


def _of_sts(asked: needs.Asked, caller: Caller, as_json: bool) -> Optional[Answer]:
    """GetCallerIdentity, which moto answers from a header."""
    if (asked.service, asked.operation) != ("sts", "GetCallerIdentity"):
        return None
    result = {"Arn": caller.arn, "UserId": caller.user_id, "Account": ACCOUNT}
    request_id = str(uuid.uuid4())
    name = asked.operation
    if as_json:
        document = {f"{name}Response": {f"{name}Result": result, "ResponseMetadata": {"RequestId": request_id}}}
        return Answer(200, [("Content-Type", "application/json")], json.dumps(document).encode())
    inner = "".join(f"<{key}>{escape(value)}</{key}>" for key, value in result.items())
    metadata = f"<ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata>"
    text = f'<{name}Response xmlns="{_STS}"><{name}Result>{inner}</{name}Result>{metadata}</{name}Response>'
    return Answer(200, [("Content-Type", "text/xml")], text.encode())
