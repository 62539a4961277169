"""S3: uploads in parts, and sums. What AWS says is recorded (`recorded.md`)."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any, Iterator, Optional
from xml.etree import ElementTree

from moto.s3.exceptions import EntityTooSmall, InvalidArgumentError, NoSuchUpload, S3ClientError
from moto.s3.models import S3Backend
from moto.s3.responses import S3Response

from ..faults import Fault, document
from ..operations import Call
from .patch import replace

_SUM = "x-amz-checksum-sha256"
# moto's model of S3 has no such error, so its status would be another one.
_CONFLICT = Fault(
    code="ConditionalRequestConflict",
    message="The conditional request cannot succeed due to a conflicting operation against this resource.",
    status=409,
)


def sums_are_verified() -> None:
    """AWS: an object or a part whose x-amz-checksum-sha256 is not that of its content is refused with BadDigest, and one that is no
    sum with InvalidRequest. The answer about a part has its sum.
    moto: stores it, and says nothing of sums of parts.
    """

    @replace(S3Response, "put_object")
    def put(original: Any, response: Any) -> Any:
        _verify(response)
        return original(response)

    @replace(S3Response, "upload_part")
    def upload(original: Any, response: Any) -> Any:
        _verify(response)
        status, headers, text = original(response)
        said = response.headers.get(_SUM)
        return status, {**headers, **({_SUM: said} if said else {})}, text


def _verify(response: Any) -> None:
    said = response.headers.get(_SUM)
    if not said:
        return
    try:
        is_one = len(base64.b64decode(said, validate=True)) == 32
    except binascii.Error:
        is_one = False
    if not is_one:
        raise _InvalidRequest(f"Value for {_SUM} header is invalid.")
    if said != _sum_of(response.body or b""):
        raise S3ClientError("BadDigest", "The SHA256 you specified did not match the calculated checksum.")


def _sum_of(body: Any) -> str:
    content = body.encode() if isinstance(body, str) else body
    return base64.b64encode(hashlib.sha256(content).digest()).decode()


class _InvalidRequest(S3ClientError):
    code = "InvalidRequest"


def an_upload_is_of_one_key() -> None:
    """AWS: a part, a completion or an end of an upload that there is not, or not of this key, is NoSuchUpload.
    moto: does not look at the key, and fails itself where there is no upload.
    """

    @replace(S3Response, "upload_part")
    def upload(original: Any, response: Any) -> Any:
        number = response._get_int_param("partNumber")
        if not 1 <= number <= 10000:
            message = "Part number must be an integer between 1 and 10000, inclusive"
            raise InvalidArgumentError(message, "partNumber", str(number))
        _upload_of(response)
        return original(response)

    @replace(S3Response, "abort_multipart_upload")
    def abort(original: Any, response: Any) -> Any:
        _upload_of(response)
        return original(response)


def _upload_of(response: Any) -> Any:
    """The upload that a request names."""
    identity = response._get_param("uploadId")
    upload = response.backend.get_bucket(response.bucket_name).multiparts.get(identity)
    if upload is None or upload.key_name != response.parse_key_name():
        raise NoSuchUpload(upload_id=identity)
    return upload


def an_upload_is_completed_of_its_parts() -> None:
    """AWS: the parts have to be named in order, each with its ETag and, if the upload has sums, with its sum; with a condition, an upload
    of a key that was deleted since is ConditionalRequestConflict.
    moto: looks at ETags only, and has other words.
    """

    @replace(S3Response, "_key_response_post")
    def complete(original: Any, response: Any, request: Any, body: bytes, bucket: str, query: Any, key: str) -> Any:
        if "uploadId" not in query:
            return original(response, request, body, bucket, query, key)
        existing = response.backend.get_object(bucket, key)
        is_again = existing is not None and existing.multipart and existing.multipart.id == query["uploadId"][0]
        if not is_again:
            upload = _upload_of(response)
            _check_parts(upload, list(_named_parts(body)))
            if response.headers.get("If-None-Match") and existing is None and getattr(upload, "deleted_since", False):
                headers, text = document(_CONFLICT, Call("s3", "CompleteMultipartUpload"))
                return 409, dict(headers), text
        return original(response, request, body, bucket, query, key)

    @replace(S3Backend, "delete_object")
    def delete(original: Any, backend: Any, bucket: str, key: str, *args: Any, **kwargs: Any) -> Any:
        answer = original(backend, bucket, key, *args, **kwargs)
        for upload in backend.get_bucket(bucket).multiparts.values():
            upload.deleted_since = getattr(upload, "deleted_since", False) or upload.key_name == key
        return answer

    too_small = "Your proposed upload is smaller than the minimum allowed size"

    @replace(EntityTooSmall, "__init__")
    def describe(_original: Any, error: Any) -> None:
        S3ClientError.__init__(error, "EntityTooSmall", too_small)


def _named_parts(body: bytes) -> "Iterator[tuple[int, str, Optional[str]]]":
    """Number, ETag and sum of each part that a completion names."""
    space = "{http://s3.amazonaws.com/doc/2006-03-01/}"
    for part in ElementTree.fromstring(body or b"<none/>"):
        found = {item.tag.replace(space, ""): item.text or "" for item in part}
        yield int(found.get("PartNumber", 0)), found.get("ETag", "").strip('"'), found.get("ChecksumSHA256")


def _check_parts(upload: Any, named: "list[tuple[int, str, Optional[str]]]") -> None:
    numbers = [number for number, _, _ in named]
    if not named:
        raise _InvalidRequest("You must specify at least one part")
    if sorted(set(numbers)) != numbers:
        message = "The list of parts was not in ascending order. Parts must be ordered by part number."
        raise S3ClientError("InvalidPartOrder", message)
    with_sums = upload.metadata.get("x-amz-checksum-algorithm") == "SHA256"
    for number, etag, said in named:
        part = upload.parts.get(number)
        if part is None or part.etag.strip('"') != etag or said and said != _sum_of(part.value):
            raise S3ClientError(
                "InvalidPart",
                "One or more of the specified parts could not be found.  The part may not have been uploaded, or the specified "
                "entity tag may not match the part's entity tag.",
            )
        if with_sums and not said:
            raise _InvalidRequest(
                "The upload was created using a sha256 checksum. The complete request must include the checksum for each part. "
                f"It was missing for part {number} in the request."
            )

