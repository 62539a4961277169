"""STS and IAM: roles for whoever brings a token of an OpenID Connect provider."""

from __future__ import annotations

from typing import Any

from moto.core.responses import EmptyResult
from moto.iam.responses import IamResponse
from moto.sts.responses import TokenResponse

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
        block = bucket.public_access_block
        if acl in ("public-read", "public-read-write") and block and block.block_public_acls == "true":
            message = "because public ACLs are prevented by the BlockPublicAcls setting in S3 Block Public Access"
            raise S3ClientError("AccessDenied", f"User is not authorized to perform: s3:PutObject {message}")
        return original(response)
