"""The requests of recorded cases, made again. Whatever a case needs first is made with what the simulator has."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from typing import Any, Callable

from . import make
from .recorded import answer, recorded

Steps = "dict[str, Any]"
PATTERN = json.dumps({"source": ["core.update-account-command"]})


def sha256(content: bytes) -> str:
    """As S3 has it in headers."""
    return base64.b64encode(hashlib.sha256(content).digest()).decode()


def bucket(aws: Any) -> str:
    """A bucket of its own."""
    name: str = aws.unique("recorded")
    aws.s3.create_bucket(Bucket=name)
    return name


# S3: reading


@recorded("s3", "TestS3::test_get_object_no_such_bucket")
def no_bucket(aws: Any) -> Any:
    return {"expected_error": answer(aws.s3.get_object, Bucket=aws.unique("none"), Key="foobar")}


@recorded("s3", "TestS3::test_bucket_does_not_exist", without=("list_object_vhost",))
def no_bucket_to_list(aws: Any) -> Any:
    return {"list_object": answer(aws.s3.list_objects_v2, Bucket=aws.unique("none"))}


@recorded("s3", "TestS3::test_invalid_range_error")
def range_beyond(aws: Any) -> Any:
    where = {"Bucket": bucket(aws), "Key": "my-key"}
    aws.s3.put_object(**where, Body=b"abcdefgh")
    return {"exc": answer(aws.s3.get_object, **where, Range="bytes=1024-4096")}


@recorded("s3", "TestS3::test_range_key_not_exists")
def range_of_nothing(aws: Any) -> Any:
    return {"exc": answer(aws.s3.get_object, Bucket=bucket(aws), Key="my-key", Range="bytes=1024-4096")}


@recorded("s3_api", "TestS3ObjectCRUD::test_get_object_range", without=("get-0-8-checksum", "get-1-0", "get--1-", "get--2", "get--9", "get--15",
          "get-0--1", "get-multiple-ranges", "get-wrong-format", "get--", "get--0", "put-after-failed"))  # fmt: skip
def ranges(aws: Any) -> Any:
    where = {"Bucket": bucket(aws), "Key": "k"}
    aws.s3.put_object(**where, Body=b"0123456789")
    asked = ("0-8", "1-1", "1-", "0-100", "0-0", "100-200")
    return {f"get-{one}": answer(aws.s3.get_object, **where, Range=f"bytes={one}") for one in asked}


@recorded("s3", "TestS3::test_range_header_body_length")
def two_halves(aws: Any) -> Any:
    where = {"Bucket": bucket(aws), "Key": "k"}
    aws.s3.put_object(**where, Body=b"\0" * 2048)
    halves = {"get-object": "0-1023", "get-object-2": "1024-2047"}
    return {step: {**answer(aws.s3.get_object, **where, Range=f"bytes={part}"), "Body": ""} for step, part in halves.items()}


@recorded("s3", "TestS3::test_precondition_failed_error")
def get_if_match(aws: Any) -> Any:
    where = {"Bucket": bucket(aws), "Key": "foo"}
    aws.s3.put_object(**where, Body=b"bar")
    return {"get-object-if-match": answer(aws.s3.get_object, **where, IfMatch='"not good etag"')}


@recorded("s3", "TestS3::test_s3_get_object_headers", without=("if_none_match_err_1", "if_none_match_err_2", "if_none_match_1"))
def get_if_unchanged(aws: Any) -> Any:
    where = {"Bucket": bucket(aws), "Key": "en-gb/r.json"}
    etag = aws.s3.put_object(**where, Body=b"test")["ETag"]

    def status(of: str) -> Any:
        return answer(aws.s3.get_object, **where, IfMatch=of)["ResponseMetadata"]["HTTPStatusCode"]

    return {"if_match_1": status(etag), "if_match_2": status(etag.strip('"')),
            "if_match_err_1": answer(aws.s3.get_object, **where, IfMatch='"another"')["Error"]}  # fmt: skip


@recorded("s3", "TestS3::test_s3_get_object_preconditions[get_object]", without=("precondition-if-unmodified-since", "precondition-if-none-match",
          "copy-precondition-if-modified-since", "obj-ignore-future-modified-since", "etag-missing-quotes",
          "precondition-if-unmodified-since-is-object", "precondition-if-modified-since-is-object", "obj-success"))  # fmt: skip
def get_if_another(aws: Any) -> Any:
    where = {"Bucket": bucket(aws), "Key": "test-object"}
    aws.s3.put_object(**where, Body=b"data")
    return {"precondition-if-match": answer(aws.s3.get_object, **where, IfMatch="bad-etag")}


@recorded("s3", "TestS3::test_get_object_after_deleted_in_versioned_bucket")
def get_what_was_deleted(aws: Any) -> Any:
    where = {"Bucket": bucket(aws), "Key": "my-key"}
    aws.s3.put_bucket_versioning(Bucket=where["Bucket"], VersioningConfiguration={"Status": "Enabled"})
    aws.s3.put_object(**where, Body=b"abcdefgh")
    found = {"get-object": answer(aws.s3.get_object, **where)}
    aws.s3.delete_object(**where)
    return {**found, "get-object-after-delete": answer(aws.s3.get_object, **where)}


@recorded("s3", "TestS3::test_delete_keys_in_versioned_bucket", without=("list-object-version", "delete-object-version",
          "list-object-version-after-delete", "delete-object-delete-marker"))  # fmt: skip
def delete_where_versions_stay(aws: Any) -> Any:
    name = bucket(aws)
    aws.s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    for content in (b"something", b"something-v2"):
        aws.s3.put_object(Bucket=name, Key="test-key-versioned", Body=content)
    before = answer(aws.s3.list_objects_v2, Bucket=name)
    return {"list-objects-v2": before, "delete-object": _delete(aws, name, "test-key-versioned"),
            "list-objects-v2-after-delete": answer(aws.s3.list_objects_v2, Bucket=name)}  # fmt: skip


@recorded("s3", "TestS3::test_region_header_exists_outside_us_east_1")
def a_bucket_elsewhere(aws: Any) -> Any:
    name = aws.unique("recorded")
    aws.s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    return {"head_bucket": answer(aws.s3.head_bucket, Bucket=name), "list_objects_v2": answer(aws.s3.list_objects_v2, Bucket=name)}


@recorded("s3", "TestS3::test_s3_uppercase_key_names")
def keys_have_case(aws: Any) -> Any:
    name = bucket(aws)
    aws.s3.put_object(Bucket=name, Key="CamelCaseKey", Body=b"something")
    return {"response": answer(aws.s3.get_object, Bucket=name, Key="CamelCaseKey"),
            "wrong-case-key": answer(aws.s3.get_object, Bucket=name, Key="camelcasekey")}  # fmt: skip


@recorded("s3", "TestS3::test_create_bucket_head_bucket", without=("create_bucket", "create_bucket_location_constraint", "head_bucket_filtered_header",
          "head_bucket_2", "head_bucket_2_filtered_header"))  # fmt: skip
def head(aws: Any) -> Any:
    return {"head_bucket": answer(aws.s3.head_bucket, Bucket=bucket(aws)),
            "head_bucket_not_exist": answer(aws.s3.head_bucket, Bucket=aws.unique("none"))}  # fmt: skip


@recorded("s3_api", "TestS3BucketVersioning::test_bucket_versioning_crud", without=("put-versioning-suspended-before", "put-versioning-enabled-lowercase",
          "put-versioning-enabled-capitalized", "put-versioning-suspended-after", "put-versioning-disabled", "put-versioning-empty", "put-versioning-no-bucket"))  # fmt: skip
def versioning(aws: Any) -> Any:
    name, found = bucket(aws), {}
    for step, status in ("before", None), ("after-suspended", "Suspended"), ("after-enabled", "Enabled"):
        if status:
            aws.s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": status})
        found[f"get-versioning-{step}"] = answer(aws.s3.get_bucket_versioning, Bucket=name)
    return {**found, "get-versioning-no-bucket": answer(aws.s3.get_bucket_versioning, Bucket=aws.unique("none"))}


# S3: listing


@recorded("s3_list_operations", "TestS3ListObjectsV2::test_list_objects_v2_with_prefix", without=("list-objects-v2-no-encoding",))
@recorded("s3", "TestS3::test_list_objects_v2_with_prefix", without=("list-objects-v2-no-encoding",))
def listed_by_prefix(aws: Any) -> Any:
    name = bucket(aws)
    for key in ("test/foo/bar/123", "test/foo/bar/456", "test/bar/foo/123"):
        aws.s3.put_object(Bucket=name, Key=key, Body=b"content 123")
    prefixes = ("test/", "test/foo", "test/foo/bar")
    return {f"list-objects-v2-{number}": answer(aws.s3.list_objects_v2, Bucket=name, Prefix=prefix, EncodingType="url")
            for number, prefix in enumerate(prefixes, 1)}  # fmt: skip


@recorded("s3_list_operations", "TestS3ListObjectsV2::test_list_objects_v2_continuation_start_after")
def listed_in_pages(aws: Any) -> Any:
    name = bucket(aws)
    for number in range(12):
        aws.s3.put_object(Bucket=name, Key=f"test_{number}", Body=b"content 123")
    first = answer(aws.s3.list_objects_v2, Bucket=name, MaxKeys=5)
    token = first.get("NextContinuationToken", "")
    return {
        "list-objects-v2-max-5": first,
        "list-objects-v2-rest": answer(aws.s3.list_objects_v2, Bucket=name, ContinuationToken=token),
        "list-objects-start-after": answer(aws.s3.list_objects_v2, Bucket=name, StartAfter="test_7", MaxKeys=2),
        "list-objects-start-after-token": answer(aws.s3.list_objects_v2, Bucket=name, StartAfter="test_7", ContinuationToken=token),
        "exc-continuation-token": answer(aws.s3.list_objects_v2, Bucket=name, ContinuationToken=""),
    }


def _special(key: str) -> "Callable[[Any], Any]":
    def play(aws: Any) -> Any:
        name = bucket(aws)
        where = {"Bucket": name, "Key": key}
        return {"put-object-special-char": answer(aws.s3.put_object, **where, Body=b"test"),
                "list-object-special-char": answer(aws.s3.list_objects_v2, Bucket=name),
                "get-object-special-char": answer(aws.s3.get_object, **where),
                "del-object-special-char": answer(aws.s3.delete_object, **where)}  # fmt: skip

    return play


for _key in ("file%2Fname", "test key/", "a/%F0%9F%98%80/"):
    recorded("s3", f"TestS3::test_put_get_object_special_character[{_key}]")(_special(_key))


# S3: writing


@recorded("s3_api", "TestS3ObjectWritePrecondition::test_put_object_if_none_match")
def put_if_absent(aws: Any) -> Any:
    where = {"Bucket": bucket(aws), "Key": "test-precondition"}
    return {"put-obj": answer(aws.s3.put_object, **where),
            "put-obj-if-none-match": answer(aws.s3.put_object, **where, IfNoneMatch="*"),
            "del-obj": answer(aws.s3.delete_object, **where),
            "put-obj-after-del": answer(aws.s3.put_object, **where, IfNoneMatch="*")}  # fmt: skip


@recorded("s3_api", "TestS3ObjectWritePrecondition::test_put_object_if_none_match_versioned_bucket", without=("list-object-versions",))
def put_if_absent_with_versions(aws: Any) -> Any:
    where = {"Bucket": bucket(aws), "Key": "test-precondition"}
    aws.s3.put_bucket_versioning(Bucket=where["Bucket"], VersioningConfiguration={"Status": "Enabled"})
    return {"put-obj": answer(aws.s3.put_object, **where),
            "put-obj-if-none-match": answer(aws.s3.put_object, **where, IfNoneMatch="*"),
            "del-obj": answer(aws.s3.delete_object, **where),
            "put-obj-after-del": answer(aws.s3.put_object, **where, IfNoneMatch="*")}  # fmt: skip


@recorded("s3_api", "TestS3ObjectWritePrecondition::test_put_object_if_match")
def put_if_unchanged(aws: Any) -> Any:
    where = {"Bucket": bucket(aws), "Key": "test-precondition"}
    first = answer(aws.s3.put_object, **where, Body=b"test")
    return {"put-obj": first,
            "put-obj-if-match-wrong-etag": answer(aws.s3.put_object, **where, IfMatch='"d41d8cd98f00b204e9800998ecf8427e"'),
            "put-obj-overwrite": answer(aws.s3.put_object, **where, IfMatch=first["ETag"]),
            "del-obj": answer(aws.s3.delete_object, **where),
            "put-obj-if-match-key-not-exists": answer(aws.s3.put_object, **where, IfMatch=first["ETag"]),
            "put-obj-after-del": answer(aws.s3.put_object, **where)}  # fmt: skip


@recorded("s3_api", "TestS3ObjectWritePrecondition::test_put_object_if_match_versioned_bucket", without=("put-obj-after-del", "put-obj-if-match", "list-object-versions"))
def put_if_unchanged_with_versions(aws: Any) -> Any:
    where = {"Bucket": bucket(aws), "Key": "test-precondition"}
    aws.s3.put_bucket_versioning(Bucket=where["Bucket"], VersioningConfiguration={"Status": "Enabled"})
    first = answer(aws.s3.put_object, **where, Body=b"test")
    found = {"put-obj": first,
             "put-obj-if-none-match-bad-value": answer(aws.s3.put_object, **where, IfMatch='"d41d8cd98f00b204e9800998ecf8427e"'),
             "del-obj": answer(aws.s3.delete_object, **where),
             "put-obj-after-del-exc": answer(aws.s3.put_object, **where, IfMatch=first["ETag"])}  # fmt: skip
    return found


@recorded("s3_api", "TestS3ObjectWritePrecondition::test_put_object_if_match_validation", without=("put-obj-if-match-star-value",))
def put_over_nothing(aws: Any) -> Any:
    where = {"Bucket": bucket(aws), "Key": "test-precondition-validation"}
    return {"put-obj-if-match-bad-value": answer(aws.s3.put_object, **where, IfMatch="abcdef"),
            "put-obj-if-match-bad-value-2": answer(aws.s3.put_object, **where, IfMatch="bad-char_/")}  # fmt: skip


@recorded("s3_api", "TestS3DeletePrecondition::test_delete_object_if_match_non_express")
def delete_if_unchanged(aws: Any) -> Any:
    where = {"Bucket": bucket(aws), "Key": "test-delete-precondition"}
    aws.s3.put_object(**where, Body=b"test")
    return {"delete-obj-if-match": answer(aws.s3.delete_object, **where, IfMatch="badvalue")}


@recorded("s3_api", "TestS3ObjectCRUD::test_delete_object", without=("delete-nonexistent-object-versionid",))
def delete_one(aws: Any) -> Any:
    name = bucket(aws)
    return {"put-object": answer(aws.s3.put_object, Bucket=name, Key="test-delete", Body=b"test-delete"),
            "delete-object": answer(aws.s3.delete_object, Bucket=name, Key="test-delete"),
            "delete-nonexistent-object": answer(aws.s3.delete_object, Bucket=name, Key="test-delete")}  # fmt: skip


def _delete(aws: Any, name: str, *keys: str, **more: Any) -> Any:
    return answer(aws.s3.delete_objects, Bucket=name, Delete={"Objects": [{"Key": key} for key in keys], **more})


@recorded("s3_api", "TestS3ObjectCRUD::test_delete_objects", without=("put-object", "delete-object-wrong-version-id"))
def delete_several(aws: Any) -> Any:
    name = bucket(aws)
    aws.s3.put_object(Bucket=name, Key="test-delete", Body=b"test-delete")
    return {"delete-objects": _sorted(_delete(aws, name, "test-delete", "a-wrong-key", "c-wrong-key"))}


def _sorted(found: Any) -> Any:
    """The recorders sort them too."""
    return {**found, "Deleted": sorted(found.get("Deleted", []), key=lambda one: str(one["Key"]))}


@recorded("s3", "TestS3::test_delete_non_existing_keys")
def delete_what_is_not_there(aws: Any) -> Any:
    name = bucket(aws)
    return {"deleted-resp": _sorted(_delete(aws, name, "test-key-nonexistent", "dummy1", "dummy2"))}


@recorded("s3", "TestS3::test_delete_non_existing_keys_quiet")
def delete_quietly(aws: Any) -> Any:
    return {"deleted-resp": _delete(aws, bucket(aws), "dummy1", "dummy2", Quiet=True)}


@recorded("s3", "TestS3::test_delete_non_existing_keys_in_non_existing_bucket")
def delete_in_no_bucket(aws: Any) -> Any:
    return {"error-non-existent-bucket": _delete(aws, aws.unique("none"), "dummy1")}


@recorded("s3", "TestS3::test_delete_objects_encoding")
def delete_odd_keys(aws: Any) -> Any:
    name, keys = bucket(aws), ("a%2Fb", "a/%F0%9F%98%80")
    for key, content in zip(keys, (b"percent encoding", b"percent encoded emoji")):
        aws.s3.put_object(Bucket=name, Key=key, Body=content)
    before = answer(aws.s3.list_objects_v2, Bucket=name)
    return {"list-objects-before-delete": before,
            "deleted-resp": _sorted(_delete(aws, name, *keys)),
            "list-objects": answer(aws.s3.list_objects_v2, Bucket=name)}  # fmt: skip


@recorded("s3", "TestS3PutObjectChecksum::test_put_object_checksum[SHA256]", without=("put-object-generated", "get-object-attrs-generated",
          "put-object-autogenerated", "get-object-attrs-auto-generated", "head-object-with-checksum"))  # fmt: skip
def sums(aws: Any) -> Any:
    where = {"Bucket": bucket(aws), "Key": "test-checksum", "Body": b"test data.."}
    return {"put-wrong-checksum-no-b64": answer(aws.s3.put_object, **where, ChecksumSHA256="test"),
            "put-wrong-checksum-value": answer(aws.s3.put_object, **where, ChecksumSHA256=sha256(b"other"))}  # fmt: skip


# S3: uploads in parts


@recorded("s3", "TestS3::test_multipart_no_such_upload")
def no_upload(aws: Any) -> Any:
    where = {"Bucket": bucket(aws), "Key": "test-multi", "UploadId": "fakeid"}
    parts = {"Parts": [{"ETag": "fake", "PartNumber": 1}]}
    return {"upload-exc": answer(aws.s3.upload_part, **where, PartNumber=1, Body=b"data"),
            "complete-exc": answer(aws.s3.complete_multipart_upload, **where, MultipartUpload=parts),
            "abort-exc": answer(aws.s3.abort_multipart_upload, **where)}  # fmt: skip


@recorded("s3", "TestS3::test_multipart_key_validation", without=("list-parts-wrong-key-name",))
def upload_of_another_key(aws: Any) -> Any:
    name = bucket(aws)
    made = aws.s3.create_multipart_upload(Bucket=name, Key="test-multi")["UploadId"]
    aws.s3.upload_part(Bucket=name, Key="test-multi", UploadId=made, PartNumber=1, Body=b"data")
    where = {"Bucket": name, "Key": "wrong-key", "UploadId": made}
    parts = {"Parts": [{"ETag": "fake", "PartNumber": 1}]}
    return {"upload-part-wrong-key-name": answer(aws.s3.upload_part, **where, PartNumber=1, Body=b"data"),
            "complete-multipart-wrong-key-name": answer(aws.s3.complete_multipart_upload, **where, MultipartUpload=parts),
            "abort-multipart-wrong-key-name": answer(aws.s3.abort_multipart_upload, **where)}  # fmt: skip


@recorded("s3", "TestS3::test_multipart_complete_multipart_too_small")
def parts_too_small(aws: Any) -> Any:
    where = {"Bucket": bucket(aws), "Key": "test-small"}
    where["UploadId"] = aws.s3.create_multipart_upload(**where)["UploadId"]
    sent = [answer(aws.s3.upload_part, **where, PartNumber=number, Body=b"data") for number in (1, 2)]
    parts = [{"ETag": one["ETag"], "PartNumber": number} for number, one in enumerate(sent, 1)]
    return {"upload-part1": sent[0], "upload-part2": sent[1],
            "complete-exc-no-parts": answer(aws.s3.complete_multipart_upload, **where),
            "complete-exc-too-small": answer(aws.s3.complete_multipart_upload, **where, MultipartUpload={"Parts": parts})}  # fmt: skip


@recorded("s3", "TestS3::test_multipart_complete_multipart_wrong_part")
def parts_that_are_not_there(aws: Any) -> Any:
    where = {"Bucket": bucket(aws), "Key": "test-small"}
    where["UploadId"] = aws.s3.create_multipart_upload(**where)["UploadId"]
    etag = aws.s3.upload_part(**where, PartNumber=1, Body=b"data")["ETag"]
    wrong = {"wrong-part-number": {"ETag": etag, "PartNumber": 2}, "wrong-etag": {"ETag": "d41d8cd98f00b204e9800998ecf8427e", "PartNumber": 1}}
    return {f"complete-exc-{step}": answer(aws.s3.complete_multipart_upload, **where, MultipartUpload={"Parts": [part]})
            for step, part in wrong.items()}  # fmt: skip


@recorded("s3", "TestS3::test_complete_multipart_parts_order", without=("complete-multipart-ordered", "complete-multipart-with-step-2"))
def parts_in_order(aws: Any) -> Any:
    where = {"Bucket": bucket(aws), "Key": "test-order-parts"}
    where["UploadId"] = aws.s3.create_multipart_upload(**where)["UploadId"]
    etags = [aws.s3.upload_part(**where, PartNumber=number, Body=b"data")["ETag"] for number in (1, 2)]
    parts = [{"ETag": etags[number - 1], "PartNumber": number} for number in (2, 1)]
    return {"upload-part-negative-part-number": answer(aws.s3.upload_part, **where, PartNumber=-1, Body=b"data"),
            "complete-multipart-unordered": answer(aws.s3.complete_multipart_upload, **where, MultipartUpload={"Parts": parts})}  # fmt: skip


@recorded("s3", "TestS3MultipartUploadChecksum::test_complete_multipart_parts_checksum_composite[SHA256]", without=("list-parts",
          "head-object-with-checksum", "get-object-attrs", "copy-obj-checksum", "get-copy-object-attrs", "get-object-part-checksum"))  # fmt: skip
def parts_with_sums(aws: Any) -> Any:
    where = {"Bucket": bucket(aws), "Key": "test-multipart-checksum"}
    created = answer(aws.s3.create_multipart_upload, **where, ChecksumAlgorithm="SHA256")
    where["UploadId"] = created["UploadId"]
    found: Any = {"create-mpu-checksum": {**created, "Bucket": "bucket"}}
    contents, parts = [b"a" * 5242881, b"a" * 5242881, b"a" * 10], []
    for number, content in enumerate(contents):
        sent = answer(aws.s3.upload_part, **where, PartNumber=number + 1, Body=content, ChecksumSHA256=sha256(content))
        found[f"upload-part-{number}"] = sent
        parts.append({"ETag": sent["ETag"], "PartNumber": number + 1, "ChecksumSHA256": sha256(content)})

    def complete(of: "list[dict[str, Any]]") -> Any:
        return answer(aws.s3.complete_multipart_upload, **where, MultipartUpload={"Parts": of})

    wrong = [*parts[:2], {**parts[2], "ChecksumSHA256": parts[0]["ChecksumSHA256"]}]
    found["complete-multipart-wrong-parts-checksum"] = complete(wrong)
    found["complete-multipart-no-checksum"] = complete([{name: part[name] for name in ("ETag", "PartNumber")} for part in parts])
    found["complete-multipart-checksum"] = {**complete(parts), "Bucket": "bucket"}
    del where["UploadId"]
    found["get-object-with-checksum"] = {**answer(aws.s3.get_object, **where, ChecksumMode="ENABLED"), "Body": ""}
    return found


@recorded("s3", "TestS3MultipartUploadChecksum::test_multipart_upload_part_checksum_exception[SHA256]")
def part_with_a_wrong_sum(aws: Any) -> Any:
    where = {"Bucket": bucket(aws), "Key": "test-multipart-checksum-exc"}
    where["UploadId"] = aws.s3.create_multipart_upload(**where, ChecksumAlgorithm="SHA256")["UploadId"]
    part = {**where, "PartNumber": 1, "Body": b"data"}
    return {"put-wrong-checksum-no-b64": answer(aws.s3.upload_part, **part, ChecksumSHA256="test"),
            "put-wrong-checksum-value": answer(aws.s3.upload_part, **part, ChecksumSHA256=sha256(b"other"))}  # fmt: skip


def _upload(aws: Any, where: Any, content: bytes = b"test") -> "tuple[Any, Any]":
    created = answer(aws.s3.create_multipart_upload, **where)
    upload = {**where, "UploadId": created["UploadId"]}
    etag = aws.s3.upload_part(**upload, PartNumber=1, Body=content)["ETag"]
    return created, {**upload, "MultipartUpload": {"Parts": [{"ETag": etag, "PartNumber": 1}]}}


@recorded("s3_api", "TestS3ObjectWritePrecondition::test_multipart_if_none_match_with_delete")
def upload_while_deleted(aws: Any) -> Any:
    where = {"Bucket": bucket(aws), "Key": "test-precondition"}
    complete = aws.s3.complete_multipart_upload
    found = {"put-obj": answer(aws.s3.put_object, **where)}
    found["create-multipart"], upload = _upload(aws, where)
    found["complete-multipart-if-none-match"] = answer(complete, **upload, IfNoneMatch="*")
    found["del-obj"] = answer(aws.s3.delete_object, **where)
    found["complete-multipart-after-del"] = answer(complete, **upload, IfNoneMatch="*")
    _, upload = _upload(aws, where)
    found["complete-multipart-after-del-restart"] = answer(complete, **upload, IfNoneMatch="*")
    return found


@recorded("s3_api", "TestS3ObjectWritePrecondition::test_multipart_if_none_match_with_put")
def upload_while_written(aws: Any) -> Any:
    where = {"Bucket": bucket(aws), "Key": "test-precondition"}
    created, upload = _upload(aws, where)
    written = answer(aws.s3.put_object, **where)
    refused = answer(aws.s3.complete_multipart_upload, **upload, IfNoneMatch="*")
    return {"create-multipart": created, "put-obj": written, "complete-multipart-if-none-match-put-during": refused}


# SQS


def queue(aws: Any, **attributes: str) -> str:
    """The URL of a queue."""
    return str(aws.sqs.create_queue(QueueName=aws.unique("queue"), Attributes=attributes)["QueueUrl"])


@recorded("sqs", "TestSqsProvider::test_send_receive_max_number_of_messages[sqs]")
def too_many_messages(aws: Any) -> Any:
    return {"send_max_number_of_messages": answer(aws.sqs.receive_message, QueueUrl=queue(aws), MaxNumberOfMessages=11)}


@recorded("sqs", "TestSqsProvider::test_send_receive_wait_time_seconds[sqs]")
def waits(aws: Any) -> Any:
    url = queue(aws)
    for _ in range(2):
        aws.sqs.send_message(QueueUrl=url, MessageBody="message")
    receive = aws.sqs.receive_message
    return {"recieve_message_error_too_large": answer(receive, QueueUrl=url, WaitTimeSeconds=21),
            "recieve_message_error_too_small": answer(receive, QueueUrl=url, WaitTimeSeconds=-1),
            "empty_short_poll_by_default_resp": answer(receive, QueueUrl=url),
            "empty_short_poll_explicit_resp": answer(receive, QueueUrl=url, WaitTimeSeconds=0)}  # fmt: skip


@recorded("sqs", "TestSqsProvider::test_receive_empty_queue[sqs]")
def an_empty_queue(aws: Any) -> Any:
    url = queue(aws)
    waited = {"empty_short_poll_resp_no_param": {}, "empty_short_poll_resp": {"WaitTimeSeconds": 0}, "empty_long_poll_resp": {"WaitTimeSeconds": 1}}
    return {step: answer(aws.sqs.receive_message, QueueUrl=url, **values) for step, values in waited.items()}


@recorded("sqs", "TestSqsProvider::test_non_existent_queue", without=("queue-does-not-exist-url", "queue-does-not-exist-query"))
def no_queue(aws: Any) -> Any:
    return {"queue-does-not-exist": answer(aws.sqs.get_queue_url, QueueName=aws.unique("none"))}


@recorded("sqs", "TestSqsProvider::test_delete_after_visibility_timeout[sqs]")
def deleted_late(aws: Any) -> Any:
    url = queue(aws, VisibilityTimeout="1")
    aws.sqs.send_message(QueueUrl=url, MessageBody="foobar")
    receipt = aws.sqs.receive_message(QueueUrl=url)["Messages"][0]["ReceiptHandle"]
    time.sleep(1.1)
    aws.sqs.delete_message(QueueUrl=url, ReceiptHandle=receipt)
    return {"delete_after_timeout_queue_empty": answer(aws.sqs.receive_message, QueueUrl=url)}


@recorded("sqs", "TestSqsProvider::test_tag_untag_queue[sqs]")
def tags_of_queues(aws: Any) -> Any:
    url = queue(aws)
    aws.sqs.tag_queue(QueueUrl=url, Tags={"tag1": "value1", "tag2": "value2", "tag3": ""})
    found = {"get-tag-1": answer(aws.sqs.list_queue_tags, QueueUrl=url)}
    aws.sqs.untag_queue(QueueUrl=url, TagKeys=["tag1", "tag3"])
    found["get-tag-2"] = answer(aws.sqs.list_queue_tags, QueueUrl=url)
    aws.sqs.untag_queue(QueueUrl=url, TagKeys=["tag2"])
    return {**found, "get-tag-after-untag": answer(aws.sqs.list_queue_tags, QueueUrl=url)}


@recorded("sqs", "TestSqsProvider::test_create_queue_with_different_attributes_raises_exception[sqs]")
def another_queue_of_the_name(aws: Any) -> Any:
    name = aws.unique("queue")

    def create(seconds: str) -> Any:
        return answer(aws.sqs.create_queue, QueueName=name, Attributes={"DelaySeconds": seconds})

    url = create("1")["QueueUrl"]
    first = create("2")
    aws.sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "2"})
    return {"create_queue_01": first, "create_queue_02": create("1")}


@recorded("sqs", "TestSqsProvider::test_create_and_update_queue_attributes[sqs]")
def attributes_of_queues(aws: Any) -> Any:
    url = queue(aws, MessageRetentionPeriod="604800", ReceiveMessageWaitTimeSeconds="10", VisibilityTimeout="20")
    get = aws.sqs.get_queue_attributes
    found = {"get_queue_attributes": answer(get, QueueUrl=url, AttributeNames=["All"])}
    changed = {"MaximumMessageSize": "2048", "VisibilityTimeout": "69", "DelaySeconds": "420"}
    aws.sqs.set_queue_attributes(QueueUrl=url, Attributes=changed)
    return {**found, "get_updated_queue_attributes": answer(get, QueueUrl=url, AttributeNames=["All"])}


@recorded("sqs", "TestSqsProvider::test_set_queue_attributes_default_values[sqs]", without=("get-queue-attributes-after-update",
          "get-queue-attributes-after-set-to-defaults"))  # fmt: skip
def attributes_by_default(aws: Any) -> Any:
    return {"get-queue-attributes-initial-values": answer(aws.sqs.get_queue_attributes, QueueUrl=queue(aws), AttributeNames=["All"])}


# EventBridge


def rule(aws: Any, name: str = "", **more: Any) -> str:
    """The name of a rule."""
    name = name or aws.unique("rule")
    aws.events.put_rule(Name=name, EventPattern=PATTERN, **more)
    return name


ARN = "arn:aws:sqs:us-east-1:123456789012:q"


def put(aws: Any, of: str, *ids: str) -> Any:
    """Targets of a rule."""
    return answer(aws.events.put_targets, Rule=of, Targets=[{"Id": one, "Arn": ARN} for one in ids])


@recorded("events", "TestEventRule::test_put_list_with_prefix_describe_delete_rule[default]", without=("describe-rule",))
def a_rule(aws: Any) -> Any:
    name = aws.unique("rule")
    pattern = json.dumps({"source": ["core.update-account-command"], "detail-type": ["core.update-account-command"], "detail": {"command": ["update-account"]}})
    made = answer(aws.events.put_rule, Name=name, EventPattern=pattern)
    listed = answer(aws.events.list_rules, NamePrefix=name)
    for one in listed["Rules"]:
        one["EventPattern"] = json.loads(one["EventPattern"])
    return {"put-rule": made, "list-rules": listed, "delete-rule": answer(aws.events.delete_rule, Name=name),
            "list-rules-after-delete": answer(aws.events.list_rules, NamePrefix=name)}  # fmt: skip


@recorded("events", "TestEventRule::test_delete_rule_with_targets")
def a_rule_with_targets(aws: Any) -> Any:
    name = rule(aws)
    put(aws, name, "one")
    return {"delete-rule-with-targets-error": answer(aws.events.delete_rule, Name=name)}


@recorded("events", "TestEventRule::test_update_rule_with_targets")
def an_updated_rule(aws: Any) -> Any:
    name = rule(aws)
    put(aws, name, "one")
    before = answer(aws.events.list_targets_by_rule, Rule=name)
    return {"list-targets": before, "update-rule": answer(aws.events.put_rule, Name=name, EventPattern=PATTERN),
            "list-targets-after-update": answer(aws.events.list_targets_by_rule, Rule=name)}  # fmt: skip


@recorded("events", "TestEventTarget::test_put_list_remove_target[default]")
def a_target(aws: Any) -> Any:
    name = rule(aws)
    found = {"put-target": put(aws, name, "one"), "list-targets": answer(aws.events.list_targets_by_rule, Rule=name)}
    found["remove-target"] = answer(aws.events.remove_targets, Rule=name, Ids=["one"])
    return {**found, "list-targets-after-delete": answer(aws.events.list_targets_by_rule, Rule=name)}


@recorded("events", "TestEventTarget::test_add_exceed_fife_targets_per_rule")
def six_targets(aws: Any) -> Any:
    return {"put-targets-client-error": put(aws, rule(aws), *map(str, range(7)))}


@recorded("events", "TestEventTarget::test_put_target_id_validation")
def ids_of_targets(aws: Any) -> Any:
    name = rule(aws)
    return {"put-targets-invalid-id-error": put(aws, name, "!@#$@!#$"),
            "put-targets-length-error": _with_value(put(aws, name, "a" * 65), "a" * 65, "second-invalid-target-id")}  # fmt: skip


def _with_value(found: Any, ours: str, recorded_as: str) -> Any:
    found["Error"]["Message"] = found["Error"]["Message"].replace(ours, recorded_as)
    return found


@recorded("events", "TestEventRule::test_list_rule_names_by_target[default]")
def rules_of_a_target(aws: Any) -> Any:
    prefix, arn = aws.unique("rule"), f"{ARN}-{aws.unique('a')}"
    for number in range(3):
        aws.events.put_targets(Rule=rule(aws, f"{prefix}{number}"), Targets=[{"Id": "one", "Arn": arn}])
    return {"list_rule_names_by_target": answer(aws.events.list_rule_names_by_target, TargetArn=arn)}


@recorded("events", "TestEventRule::test_list_rule_names_by_target_no_matches[default]")
def no_rules_of_a_target(aws: Any) -> Any:
    arn = f"{ARN}-{aws.unique('a')}"
    return {"list_rule_names_by_target_no_matches": answer(aws.events.list_rule_names_by_target, TargetArn=arn)}


@recorded("events", "TestEventRule::test_list_rule_names_by_target_with_limit[default]")
def pages_of_rules_of_a_target(aws: Any) -> Any:
    prefix, arn = aws.unique("rule"), f"{ARN}-{aws.unique('a')}"
    for number in range(5):
        aws.events.put_targets(Rule=rule(aws, f"{prefix}{number}"), Targets=[{"Id": "one", "Arn": arn}])
    found, token = {}, {}
    for step in ("first_page", "second_page", "third_page"):
        found[step] = answer(aws.events.list_rule_names_by_target, TargetArn=arn, Limit=2, **token)
        token = {"NextToken": found[step].get("NextToken", "none")}
    return found


TAGS = [{"Key": "tag1", "Value": "value1"}, {"Key": "tag2", "Value": "value2"}]


@recorded("events_tags", "tests_tag_untag_resource[rule]", "tests_tag_untag_resource[rule-event_bus_default]")
def tags_of_rules(aws: Any) -> Any:
    arn = aws.events.put_rule(Name=aws.unique("rule"), EventPattern=PATTERN)["RuleArn"]
    found = {"tag_resource": answer(aws.events.tag_resource, ResourceARN=arn, Tags=TAGS),
             "list_tags_for_resource": answer(aws.events.list_tags_for_resource, ResourceARN=arn),
             "untag_resource": answer(aws.events.untag_resource, ResourceARN=arn, TagKeys=["tag2"]),
             "list_tags_for_untagged_resource": answer(aws.events.list_tags_for_resource, ResourceARN=arn)}  # fmt: skip
    return {**found, "untag_resource_not_existing_tag": answer(aws.events.untag_resource, ResourceARN=arn, TagKeys=["tag2"])}


@recorded("events_tags", "tests_tag_list_untag_not_existing_resource[not_existing_rule]")
def tags_of_no_rule(aws: Any) -> Any:
    arn = f"arn:aws:events:us-east-1:123456789012:rule/{aws.unique('none')}"
    return {"tag_not_existing_resource_error": answer(aws.events.tag_resource, ResourceARN=arn, Tags=TAGS),
            "list_tags_for_not_existing_resource_error": answer(aws.events.list_tags_for_resource, ResourceARN=arn),
            "untag_not_existing_resource_error": answer(aws.events.untag_resource, ResourceARN=arn, TagKeys=["tag1"])}  # fmt: skip


@recorded("events_tags", "TestRuleTags::test_put_rule_with_tags")
def a_rule_with_tags(aws: Any) -> Any:
    made = answer(aws.events.put_rule, Name=aws.unique("rule"), EventPattern=PATTERN, Tags=TAGS)
    return {"put_rule_with_tags": made, "list_tags_for_rule": answer(aws.events.list_tags_for_resource, ResourceARN=made["RuleArn"])}


@recorded("events_tags", "test_recreate_tagged_resource_without_tags[rule-event_bus_default]")
def tags_go_with_their_rule(aws: Any) -> Any:
    name = rule(aws, Tags=TAGS)
    aws.events.delete_rule(Name=name)
    arn = aws.events.put_rule(Name=name, EventPattern=PATTERN)["RuleArn"]
    return {"list_tags_for_resource": answer(aws.events.list_tags_for_resource, ResourceARN=arn)}


# IAM


def _trust(*, as_lists: bool = False, service: str = "ec2.amazonaws.com") -> str:
    action: Any = ["sts:AssumeRole"] if as_lists else "sts:AssumeRole"
    principal: Any = {"Service": [service] if as_lists else service}
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": principal, "Action": action}]})


def _role(aws: Any, path: str = "/", trust: str = "", **more: Any) -> "tuple[str, Any]":
    name = aws.unique("role")
    return name, answer(aws.iam.create_role, RoleName=name, Path=path, AssumeRolePolicyDocument=trust or _trust(), **more)


@recorded("iam", "TestIAMIntegrations::test_update_assume_role_policy")
def another_trust(aws: Any) -> Any:
    name, made = _role(aws, trust=_trust(as_lists=True))
    updated = answer(aws.iam.update_assume_role_policy, RoleName=name, PolicyDocument=_trust())
    return {"created_role": made, "updated_policy": updated}


@recorded("iam", "TestIAMExtensions::test_create_role_with_malformed_assume_role_policy_document")
def trust_that_is_no_json(aws: Any) -> Any:
    return {"invalid-json": answer(aws.iam.create_role, RoleName=aws.unique("role"), AssumeRolePolicyDocument="invalid json")}


@recorded("iam", "TestIAMIntegrations::test_create_describe_role")
def a_role(aws: Any) -> Any:
    path = f"/{aws.unique('path')}/"
    name, made = _role(aws, path)
    return {"create_role_result": made, "get_role_result": answer(aws.iam.get_role, RoleName=name),
            "list_roles_result": answer(aws.iam.list_roles, PathPrefix=path)}  # fmt: skip


@recorded("iam", "TestIAMIntegrations::test_list_roles_with_permission_boundary")
def roles_with_a_boundary(aws: Any) -> Any:
    path = f"/{aws.unique('path')}/"
    name, made = _role(aws, path)
    aws.iam.put_role_permissions_boundary(RoleName=name, PermissionsBoundary="arn:aws:iam::aws:policy/ReadOnlyAccess")
    return {"created_role": made, "list_roles_result": answer(aws.iam.list_roles, PathPrefix=path)}


@recorded("iam", "TestIAMExtensions::test_role_with_path_lifecycle")
def a_role_with_a_path(aws: Any) -> Any:
    name, made = _role(aws, f"/{aws.unique('path')}/", _trust(service="lambda.amazonaws.com"))
    return {"create-role-response": made, "get-role-response": answer(aws.iam.get_role, RoleName=name),
            "delete-role-response": answer(aws.iam.delete_role, RoleName=name)}  # fmt: skip


@recorded("iam", "TestRoles::test_role_with_tags")
def a_role_with_tags(aws: Any) -> Any:
    name, made = _role(aws, "/role-with-tags/", Tags=[{"Key": "test", "Value": "value"}])
    found = {"create-role-response": made, "get-role-response": answer(aws.iam.get_role, RoleName=name),
             "list-role-response": answer(aws.iam.list_roles, PathPrefix="/role-with-tags/")}  # fmt: skip
    aws.iam.delete_role(RoleName=name)
    return found


@recorded("iam", "TestIAMIntegrations::test_role_attach_policy", without=("create_policy_response",))
def policies_of_a_role(aws: Any) -> Any:
    name, _ = _role(aws)
    document = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]})
    made = aws.iam.create_policy(PolicyName=aws.unique("policy"), PolicyDocument=document)["Policy"]

    def attach(arn: str) -> Any:
        return answer(aws.iam.attach_role_policy, RoleName=name, PolicyArn=arn)

    return {"non_existent_malformed_policy_arn": attach("longpolicynamebutnoarn"),
            "existing_policy_name_provided": attach(made["PolicyName"] + "x" * 20),
            "valid_arn_not_existent": attach(made["Arn"] + "123"),
            "valid_policy_arn": attach(made["Arn"])}  # fmt: skip


@recorded("iam", "TestIAMPolicyEncoding::test_put_role_policy_encoding", without=("create-role-response", "get-role-response", "list-roles-response"))
def a_policy_with_percent_signs(aws: Any) -> Any:
    name, policy = _role(aws)[0], aws.unique("policy")
    resource = "arn:aws:apigateway:us-east-1::/tags/arn%3Aaws%3Aapigateway%3Aus-east-1%3A%3A%2Frestapis%2Faaeeieije"
    statement = [{"Effect": "Allow", "Action": ["apigatway:PUT"], "Resource": [resource]}]
    aws.iam.put_role_policy(RoleName=name, PolicyName=policy, PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": statement}))
    return {"get-policy-response": answer(aws.iam.get_role_policy, RoleName=name, PolicyName=policy)}


# Route 53, EC2, STS


@recorded("route53", "TestRoute53::test_create_hosted_zone", without=("create_hosted_zone_response",))
def a_zone(aws: Any) -> Any:
    made = aws.route53.create_hosted_zone(Name=aws.unique("zone") + ".com", CallerReference=aws.unique("ref"))
    return {"get_hosted_zone": answer(aws.route53.get_hosted_zone, Id=made["HostedZone"]["Id"])}


@recorded("route53", "TestRoute53::test_create_private_hosted_zone", without=("create-hosted-zone-response", "list_hosted_zones_by_vpc"))
def a_private_zone(aws: Any) -> Any:
    name, inside = aws.unique("zone") + ".com.", {"VPCRegion": "us-east-1", "VPCId": make.vpc(aws)}
    config = {"Comment": "test", "PrivateZone": True}
    made = aws.route53.create_hosted_zone(Name=name, CallerReference=aws.unique("ref"), VPC=inside, HostedZoneConfig=config)["HostedZone"]
    listed = [one for one in aws.route53.list_hosted_zones()["HostedZones"] if one["Id"] == made["Id"]]
    return {"get_hosted_zone": answer(aws.route53.get_hosted_zone, Id=made["Id"]), "list_hosted_zones": listed}


@recorded("route53", "TestRoute53::test_delete_hosted_zone", without=("delete-hosted-zone-response",))
def no_zone(aws: Any) -> Any:
    return {"no-such-hosted-zone-error": answer(aws.route53.get_hosted_zone, Id="Z0asdf1234")}


@recorded("ec2", "TestEc2Integrations::test_create_route_table_association", without=("vpc_id", "subnet_id", "route_table_id", "association_id"))
def a_table_of_a_subnet(aws: Any) -> Any:
    vpc = aws.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = aws.ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    table = aws.ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    aws.ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
    return {"route_tables": aws.ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"]}


@recorded("ec2", "test_raise_create_volume_without_size")
def a_volume_of_no_size(aws: Any) -> Any:
    return {"request-missing-size": answer(aws.ec2.create_volume, AvailabilityZone="us-east-1a")}


@recorded("ec2", "test_describe_availability_zones_filters", "test_describe_availability_zones_filter_with_zone_names")
def zones(aws: Any) -> Any:
    return {"availability_zones": answer(aws.ec2.describe_availability_zones, ZoneNames=["us-east-1a"])}


@recorded("sts", "TestSTSIntegrations::test_assume_role", without=("role-session-name", "create-role"))
def an_assumed_role(aws: Any) -> Any:
    arn = _role(aws)[1]["Role"]["Arn"]
    return {"assume-role": answer(aws.sts.assume_role, RoleArn=arn, RoleSessionName="one")}


@recorded("sts", "TestSTSIntegrations::test_sts_invalid_parameters")
def wrong_roles(aws: Any) -> Any:
    arns = {"malformed-arn": "nothing-valid-in-here", "no-partition": "arn::b:::something/test-role", "no-service": "arn:a::::something/test-role",
            "not-enough-colons": "arn:a:::something/test-role", "no-resource": "arn:a:a::aaaaaaaaaa:"}  # fmt: skip
    found = {step: answer(aws.sts.assume_role, RoleArn=arn, RoleSessionName="Session1") for step, arn in arns.items()}
    role = "arn:aws:iam::123456789012:role/test-role"
    return {**found, "invalid-session-name": answer(aws.sts.assume_role, RoleArn=role, RoleSessionName="Session1:2")}
