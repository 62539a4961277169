"""S3: what is stored is what was sent."""

from __future__ import annotations

import uuid
from typing import Any

from moto.s3.exceptions import S3ClientError
from moto.s3.models import FakeKey
from moto.s3.responses import S3Response

from .patch import replace, replace_property


def the_expected_owner_has_to_own_the_bucket() -> None:
    """AWS: a call with x-amz-expected-bucket-owner on another account's bucket is AccessDenied.
    moto: does not look at the header.
    """
    for operation in (
        "put_object",
        "delete_object",
        "_bucket_response_delete_keys",
        "get_object",
        "list_objects_v2",
        "upload_part",
        "_key_response_post",
    ):
        _check_owner(operation)


def _check_owner(operation: str) -> None:
    @replace(S3Response, operation)
    def checked(original: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        expected = response.headers.get("x-amz-expected-bucket-owner")
        bucket = response.backend.get_bucket(response.bucket_name)
        if expected and expected != bucket.account_id:
            raise S3ClientError("AccessDenied", "Access Denied")
        return original(response, *args, **kwargs)


def versioning_is_described_as_such() -> None:
    """AWS: GetBucketVersioning answers with a VersioningConfiguration, which clients insist on.
    moto: calls it GetBucketVersioningResponse.
    """

    @replace(S3Response, "get_bucket_versioning")
    def versioning(_original: Any, response: Any) -> Any:
        status = response.backend.get_bucket(response.bucket_name).versioning_status
        said = f"<Status>{status}</Status>" if status else ""
        space = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
        text = f"<VersioningConfiguration {space}>{said}</VersioningConfiguration>"
        return 200, {"Content-Type": "application/xml"}, text

    _check_owner("get_bucket_versioning")


def etags_say_nothing_of_what_kms_keys_encrypt() -> None:
    """AWS: the ETag of an object that is encrypted with SSE-KMS is no MD5 of its content (API reference, "Object", ETag).
    moto: it is.
    """
    original = FakeKey.etag

    @replace_property(FakeKey, "etag")
    def etag(key: Any) -> str:
        if key.encryption == "aws:kms" and key._etag is None:
            key._etag = uuid.uuid4().hex
        return original.fget(key)
