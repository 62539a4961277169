"""Tokens of an OpenID Connect provider (sts:AssumeRoleWithWebIdentity): who issued them, for whom, until when, and which role takes them.

https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html
"""

from __future__ import annotations

import base64
import json
import time
from datetime import datetime, timezone
from typing import Any, Optional
from urllib.parse import urlsplit

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from moto.core.exceptions import AccessDeniedError
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.iam.models import iam_backends
from moto.s3.models import s3_backends
from moto.sts.exceptions import STSClientError

from ..faults import Fault, document
from ..mends.web_identity import may_everybody_read
from ..operations import Call
from .conditions import conditions_hold
from .policy import names_action, statements

ACTION = "sts:AssumeRoleWithWebIdentity"
# The words are those that users of EKS and kOps quote:
# https://github.com/aws/amazon-eks-pod-identity-webhook/issues, https://repost.aws/knowledge-center/eks-troubleshoot-oidc-and-irsa
_NO_KEY = (
    "Couldn't retrieve verification key from your identity provider,  please reference AssumeRoleWithWebIdentity "
    "documentation for requirements"
)


class NotTrusted(AccessDeniedError):
    """The role does not let in who brings this token. moto gives errors that no model has the status 400, and other words."""

    def __init__(self) -> None:
        super().__init__("", ACTION)
        error = Fault(code="AccessDenied", message=f"Not authorized to perform {ACTION}", status=self.code)
        self.description = document(error, Call("sts", "AssumeRoleWithWebIdentity"))[1].decode()


def check(role_arn: str, token: str) -> None:
    """Raises what STS says of a token that the role does not take."""
    claims = _claims(token)
    issuer = str(claims.get("iss", ""))
    provider = iam_backends[DEFAULT_ACCOUNT_ID]["aws"].open_id_providers.get(_provider_arn(issuer))
    if provider is None:
        raise _invalid(f"No OpenIDConnect provider found in your account for {issuer}")
    _check_signature(token, issuer)
    if float(claims.get("exp", 0)) <= time.time():
        until = datetime.fromtimestamp(float(claims.get("exp", 0)), timezone.utc)
        now = datetime.now(timezone.utc)
        message = f"Token expired: current date/time {now:%s} must be before the expiration date/time {until:%s}"
        raise STSClientError("ExpiredTokenException", message)
    audiences = claims.get("aud", [])
    audiences = audiences if isinstance(audiences, list) else [audiences]
    if not set(audiences) & set(provider.client_id_list):
        raise _invalid("Incorrect token audience")
    if not _trusts(role_arn, provider.arn, {"sub": [str(claims.get("sub", ""))], "aud": audiences}):
        raise NotTrusted


def _trusts(role_arn: str, provider_arn: str, claims: "dict[str, list[str]]") -> bool:
    """Whether a role's trust policy lets in who has these claims of that provider."""
    roles = iam_backends[DEFAULT_ACCOUNT_ID]["aws"].roles.values()
    role = next((one for one in roles if one.arn == role_arn), None)
    if role is None:
        return False
    name = provider_arn.split(":oidc-provider/", 1)[1]
    context = {f"{name}:{claim}".lower(): values for claim, values in claims.items()}
    return any(
        statement["Effect"] == "Allow"
        and statement.get("Principal", {}).get("Federated") == provider_arn
        and names_action(statement, ACTION)
        and conditions_hold(statement.get("Condition", {}), context)
        for statement in statements(role.assume_role_policy_document)
    )


def _check_signature(token: str, issuer: str) -> None:
    """The issuer's documents are read where everybody reads them; the key is the one that the token names."""
    configuration = _public_document(f"{issuer}/.well-known/openid-configuration")
    if configuration is None or configuration.get("issuer") != issuer:
        raise _invalid(_NO_KEY)
    keys = _public_document(str(configuration.get("jwks_uri")))
    if keys is None:
        raise _invalid(_NO_KEY)
    try:
        jws.deserialize_compact(token.encode(), KeySet.import_key_set(keys), algorithms=["RS256", "ES256", "ES384", "ES512"])
    except (JoseError, ValueError, KeyError) as error:
        raise _invalid(_NO_KEY) from error


def _public_document(url: str) -> "Optional[dict[str, Any]]":
    """A JSON object in S3 that everybody may read, by its address in virtual-hosted style; None if there is none."""
    parts = urlsplit(url)
    bucket_name, _, host = parts.netloc.partition(".s3.")
    bucket = s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets.get(bucket_name)
    if parts.scheme != "https" or bucket is None or host != f"{bucket.region_name}.amazonaws.com":
        return None
    found = bucket.keys.get(parts.path.lstrip("/"))
    if found is None or not may_everybody_read(bucket, found):
        return None
    try:
        read = json.loads(found.value)
    except ValueError:
        return None
    return read if isinstance(read, dict) else None


def _claims(token: str) -> "dict[str, Any]":
    """What a token says, not yet verified."""
    try:
        _, payload, _ = token.split(".")
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except ValueError as error:
        raise _invalid("The ID Token provided is not a valid JWT. (You may see this error if you sent an Access Token)") from error
    if not isinstance(claims, dict):
        raise _invalid("The ID Token provided is not a valid JWT. (You may see this error if you sent an Access Token)")
    return claims


def _provider_arn(issuer: str) -> str:
    return f"arn:aws:iam::{DEFAULT_ACCOUNT_ID}:oidc-provider/{issuer.removeprefix('https://')}"


def _invalid(message: str) -> STSClientError:
    return STSClientError("InvalidIdentityToken", message)
