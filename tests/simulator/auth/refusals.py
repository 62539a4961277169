"""How each service says no: its error code, status and words for one reason."""

from __future__ import annotations

from typing import Optional

from ..faults import JSON_SERVICES, Fault
from ..operations import Call

_MISMATCH = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key "
    "and signing method. Consult the service documentation for details."
)
_INVALID = "The security token included in the request is invalid."
_NOT_VALIDATED = "AWS was not able to validate the provided access credentials"
_SCHEME = "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256."

# Reason -> family of services -> code, status, words (None: those of whoever refuses). `query` stands for IAM, STS,
# Auto Scaling, load balancing and Route 53.
_FORMS: "dict[str, dict[str, tuple[str, int, Optional[str]]]]" = {
    "MissingAuthenticationToken": {
        "query": ("MissingAuthenticationToken", 403, "Request is missing Authentication Token"),
        "ec2": ("MissingParameter", 400, "The request must contain the parameter AWSAccessKeyId"),
        "json": ("MissingAuthenticationTokenException", 400, "Missing Authentication Token"),
        "s3": ("AccessDenied", 403, "Access Denied"),
    },
    "IncompleteSignature": {
        "query": ("IncompleteSignature", 400, None),
        "ec2": ("AuthFailure", 401, _NOT_VALIDATED),
        "json": ("IncompleteSignatureException", 400, None),
        "s3": ("AuthorizationHeaderMalformed", 400, None),
    },
    "UnsupportedAlgorithm": {
        "query": ("IncompleteSignature", 400, None),
        "ec2": ("AuthFailure", 401, _NOT_VALIDATED),
        "json": ("IncompleteSignatureException", 400, None),
        "s3": ("InvalidRequest", 400, _SCHEME),
    },
    "InvalidClientTokenId": {
        "query": ("InvalidClientTokenId", 403, _INVALID),
        "ec2": ("AuthFailure", 401, _NOT_VALIDATED),
        "json": ("UnrecognizedClientException", 400, _INVALID),
        "s3": ("InvalidAccessKeyId", 403, "The AWS Access Key Id you provided does not exist in our records."),
    },
    "InvalidToken": {
        "query": ("InvalidClientTokenId", 403, _INVALID),
        "ec2": ("AuthFailure", 401, _NOT_VALIDATED),
        "json": ("UnrecognizedClientException", 400, _INVALID),
        "s3": ("InvalidToken", 400, "The provided token is malformed or otherwise invalid."),
    },
    "ExpiredToken": {
        "query": ("ExpiredToken", 403, "The security token included in the request is expired"),
        "ec2": ("RequestExpired", 400, "Request has expired."),
        "json": ("ExpiredTokenException", 400, "The security token included in the request is expired"),
        "s3": ("ExpiredToken", 400, "The provided token has expired."),
    },
    "SignatureDoesNotMatch": {
        "query": ("SignatureDoesNotMatch", 403, _MISMATCH),
        "ec2": ("AuthFailure", 401, _NOT_VALIDATED),
        "json": ("InvalidSignatureException", 400, _MISMATCH),
        "s3": ("SignatureDoesNotMatch", 403, _MISMATCH.split(" Consult")[0]),
    },
    "HeaderNotSigned": {
        "query": ("SignatureDoesNotMatch", 403, None),
        "ec2": ("AuthFailure", 401, _NOT_VALIDATED),
        "json": ("InvalidSignatureException", 400, None),
        "s3": ("AccessDenied", 403, "There were headers present in the request which were not signed"),
    },
    "Skewed": {
        "query": ("SignatureDoesNotMatch", 403, None),
        "ec2": ("RequestExpired", 400, "Request has expired."),
        "json": ("InvalidSignatureException", 400, None),
        "s3": (
            "RequestTimeTooSkewed",
            403,
            "The difference between the request time and the current time is too large.",
        ),
    },
    "WrongScope": {
        "query": ("SignatureDoesNotMatch", 403, None),
        "ec2": ("AuthFailure", 401, _NOT_VALIDATED),
        "json": ("InvalidSignatureException", 400, None),
        "s3": ("AuthorizationHeaderMalformed", 400, None),
    },
    "AccessDenied": {
        "query": ("AccessDenied", 403, None),
        "ec2": ("UnauthorizedOperation", 403, None),
        "json": ("AccessDeniedException", 400, None),
        "s3": ("AccessDenied", 403, None),
    },
}
# Codes that one service alone has, with their status.
_PLAIN = {
    "MissingSecurityHeader": 400,
    "XAmzContentSHA256Mismatch": 400,
    "UnsupportedCondition": 500,
}


class Refused(Exception):
    """A call that is not let through: a reason of the table above, with words where the reason has none."""

    def __init__(self, reason: str, message: str = "", headers: "tuple[tuple[str, str], ...]" = ()) -> None:
        super().__init__(f"{reason}: {message}" if message else reason)
        self.reason = reason
        self.message = message
        self.headers = headers


def family(service: str) -> str:
    """Which column of the table a service speaks."""
    if service in ("ec2", "s3"):
        return service
    return "json" if service in JSON_SERVICES else "query"


def fault(refused: Refused, call: Call) -> Fault:
    """The refusal as the service of this call puts it."""
    if refused.reason in _PLAIN:
        return Fault(code=refused.reason, message=refused.message, status=_PLAIN[refused.reason])
    code, status, message = _FORMS[refused.reason][family(call.service)]
    return Fault(code=code, message=message or refused.message, status=status)
