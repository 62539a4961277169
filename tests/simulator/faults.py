"""Injected failures: which call they hit, and what the client sees instead of the answer."""

from __future__ import annotations

import fnmatch
import json
from dataclasses import dataclass
from typing import Any, Optional
from xml.sax.saxutils import escape

from .operations import Call

# The code that is no error document at all: the connection closes without an answer.
KILL = "kill-connection"

_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
# Services that speak JSON 1.0 or 1.1.
JSON_SERVICES = ("sqs", "events", "service-quotas", "ecr", "kms", "ssm", "dynamodb", "logs")


@dataclass
class Fault:
    """Hits `times` calls that match, after letting `skip` of them pass.

    `service`, `operation` and `path` (of the URL: `/BUCKET/KEY` in S3) are shell patterns. With `after` the call takes effect first and
    only its answer is lost; that is what a client cannot tell from a call that never arrived. `answer` is the whole body in
    place of an error: a batch call answers with success, and says in it which items failed.
    """

    service: str = "*"
    operation: str = "*"
    path: str = "*"
    times: int = 1
    skip: int = 0
    code: str = "InternalError"
    message: str = "injected fault"
    status: int = 500
    after: bool = False
    answer: "Optional[str]" = None

    def hits(self, call: Call, path: str) -> bool:
        """Whether this call fails; counts down `skip`, then `times`."""
        if self.times <= 0 or not self._matches(call, path):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        self.times -= 1
        return True

    def _matches(self, call: Call, path: str) -> bool:
        pairs = (call.service, self.service), (call.operation, self.operation), (path, self.path)
        return all(fnmatch.fnmatchcase(*pair) for pair in pairs)


def parse(items: "list[dict[str, Any]]") -> "list[Fault]":
    """Faults from their JSON form; an unknown key is an error (TypeError)."""
    return [Fault(**item) for item in items]


def first_hit(faults: "list[Fault]", call: Call, path: str) -> Optional[Fault]:
    """The first fault that hits; the others do not count this call."""
    return next((fault for fault in faults if fault.hits(call, path)), None)


def document(fault: Fault, call: Call) -> "tuple[list[tuple[str, str]], bytes]":
    """Headers and body of the error, in the protocol of the service."""
    code, message = fault.code, fault.message
    if fault.answer is not None:
        kind = "application/x-amz-json-1.0" if call.service in JSON_SERVICES else "text/xml"
        return [("Content-Type", kind)], fault.answer.encode()
    if call.service in JSON_SERVICES:
        headers = [("Content-Type", "application/x-amz-json-1.0"), ("x-amzn-ErrorType", code)]
        return headers, json.dumps({"__type": code, "message": message}).encode()
    error = f"<Code>{escape(code)}</Code><Message>{escape(message)}</Message>"
    if call.service == "ec2":
        text = f"<Response><Errors><Error>{error}</Error></Errors><RequestID>0</RequestID></Response>"
    elif call.service == "s3":
        text = f"<Error>{error}<RequestId>0</RequestId></Error>"
    else:
        text = f"<ErrorResponse><Error><Type>Sender</Type>{error}</Error><RequestId>0</RequestId></ErrorResponse>"
    return [("Content-Type", "text/xml")], (_XML + text).encode()
