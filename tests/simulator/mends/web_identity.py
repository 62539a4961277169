"""STS and IAM: roles for whoever brings a token of an OpenID Connect provider."""

from __future__ import annotations

from typing import Any

from moto.core.responses import EmptyResult
from moto.iam.access_control import PermissionResult
from moto.iam.responses import IamResponse
from moto.s3.utils import bucket_policy_is_public
from moto.sts.responses import TokenResponse

from ..faults import Fault, document
from ..operations import Call
from .patch import add, replace


def tokens_are_verified() -> None:
    """AWS: AssumeRoleWithWebIdentity verifies the token by the keys that its issuer publishes, and the role has to trust it.
    moto: takes any.
    """
    from ..auth import web_identity

    @replace(TokenResponse, "assume_role_with_web_identity")
    def assume(original: Any, response: Any) -> Any:
        web_identity.check(response._get_param("RoleArn"), response._get_param("WebIdentityToken"))
        return original(response)


def audiences_of_a_provider_change() -> None:
    """AWS: audiences are added to and removed from an OpenID Connect provider; both are idempotent (API reference).
    moto: has no such operations.
    """

    @add(IamResponse)
    def add_client_id_to_open_id_connect_provider(response: Any) -> EmptyResult:
        audiences, audience = _audiences(response)
        if audience not in audiences:
            audiences.append(audience)
        return EmptyResult()

    @add(IamResponse)
    def remove_client_id_from_open_id_connect_provider(response: Any) -> EmptyResult:
        audiences, audience = _audiences(response)
        if audience in audiences:
            audiences.remove(audience)
        return EmptyResult()


def _audiences(response: Any) -> "tuple[list[str], str]":
    """The audiences of the provider that a request names, and the one that it is about."""
    provider = response.backend.get_open_id_connect_provider(response._get_param("OpenIDConnectProviderArn"))
    return provider.client_id_list, response._get_param("ClientID")


def public_objects_need_access_control_lists() -> None:
    """AWS: a bucket whose owner owns all objects has no access control lists, and refuses them with AccessControlListNotSupported;
    new buckets are such (S3 User Guide, "Controlling ownership of objects"). With BlockPublicAcls it refuses public ones with AccessDenied.
    moto: takes them in every bucket.
    """
    from moto.s3.exceptions import S3ClientError
    from moto.s3.responses import S3Response

    @replace(S3Response, "put_object")
    def put(original: Any, response: Any) -> Any:
        acl = response.headers.get("x-amz-acl")
        bucket = response.backend.get_bucket(response.bucket_name)
        ownership = getattr(bucket, "ownership_rule", None) or "BucketOwnerEnforced"
        if acl not in (None, "bucket-owner-full-control") and ownership == "BucketOwnerEnforced":
            raise S3ClientError("AccessControlListNotSupported", "The bucket does not allow ACLs")
        if acl in ("public-read", "public-read-write") and _blocks(bucket, "block_public_acls"):
            message = "because public ACLs are prevented by the BlockPublicAcls setting in S3 Block Public Access"
            raise S3ClientError("AccessDenied", f"User is not authorized to perform: s3:PutObject {message}")
        return original(response)


def strangers_read_what_is_public() -> None:
    """AWS: who signs nothing reads what an access control list or the bucket's policy gives everybody, unless Block Public Access takes
    it back: IgnorePublicAcls, RestrictPublicBuckets (S3 User Guide, "Blocking public access to your Amazon S3 storage").
    moto: knows no Block Public Access here, and takes an object without a list for public.
    """
    from moto.s3.responses import S3Response

    @replace(S3Response, "_key_response")
    def answer(original: Any, response: Any, request: Any, full_url: str) -> Any:
        signed = "Authorization" in request.headers or "Signature=" in request.url
        bucket = response.backend.buckets.get(response.parse_bucket_name_from_url(request, full_url))
        key = bucket and bucket.keys.get(response.parse_key_name())
        if request.method in ("GET", "HEAD") and not signed and not (key and may_everybody_read(bucket, key)):
            headers, body = document(Fault(code="AccessDenied", message="Access Denied", status=403), Call("s3", "GetObject"))
            return 403, dict(headers), body
        return original(response, request, full_url)


def an_issuers_configuration_is_an_object() -> None:
    """AWS: who signs nothing and asks S3 for an object gets it, whatever it is called.
    moto: takes an unsigned request for .well-known/openid-configuration for one to Cognito, whose answer is 404.
    """
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication

    @replace(DomainDispatcherApplication, "get_service_from_unsigned_path")
    def no_service(_original: Any, _dispatcher: Any, _path: str) -> "tuple[None, None]":
        return None, None


def may_everybody_read(bucket: Any, key: Any) -> bool:
    """Whether who signs nothing may read that object."""
    if key.acl is not None and key.acl.public_read and not _blocks(bucket, "ignore_public_acls"):
        return True
    if not bucket.policy or not bucket_policy_is_public(bucket.policy) or _blocks(bucket, "restrict_public_buckets"):
        return False
    resource = f"arn:{bucket.partition}:s3:::{bucket.name}/{key.name}"
    return bool(bucket.get_permission("s3:GetObject", resource) == PermissionResult.PERMITTED)


def _blocks(bucket: Any, setting: str) -> bool:
    """Whether the bucket's Block Public Access has that setting."""
    return bucket.public_access_block is not None and bool(getattr(bucket.public_access_block, setting))
