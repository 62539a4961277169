"""S3: actions are not named like operations, and one operation may need several."""

from __future__ import annotations

from typing import Optional
from urllib.parse import unquote

from moto.s3.models import s3_backends

from .needs import ANY, Asked, Need, Resource

# Operation -> action, where it is not the operation's own name.
_ACTIONS = {
    "GetBucketEncryption": "GetEncryptionConfiguration",
    "HeadBucket": "ListBucket",
    "HeadObject": "GetObject",
    "ListBuckets": "ListAllMyBuckets",
    "ListObjectVersions": "ListBucketVersions",
    "ListObjects": "ListBucket",
    "ListObjectsV2": "ListBucket",
}
_OF_VERSIONS = {"GetObject": "GetObjectVersion", "DeleteObject": "DeleteObjectVersion"}
# Query parameters that are condition keys.
_QUERY = {"prefix": "s3:prefix", "delimiter": "s3:delimiter", "max-keys": "s3:max-keys", "versionId": "s3:versionid"}


def list_needs(asked: Asked) -> "list[Need]":
    """The action on the object, else on the bucket; what a copy reads. Uploads in parts, tags and ACLs are not looked at."""
    bucket, key = asked.parameters.get("Bucket"), asked.parameters.get("Key")
    context = _context(asked)
    if bucket is None:
        return [Need(f"s3:{_ACTIONS.get(asked.operation, asked.operation)}", (Resource(ANY),), context)]
    if asked.operation == "DeleteObjects":
        return [_on_object(str(bucket), one, context) for one in _deleted(asked)] or [
            Need("s3:DeleteObject", (Resource(f"{_arn(str(bucket))}/*"),), context)
        ]
    source = asked.headers.get("x-amz-copy-source")
    if asked.operation == "CopyObject" and source:
        read = unquote(source.split("?")[0]).lstrip("/")
        return [Need("s3:GetObject", (Resource(_arn(read)),), context), _put(str(bucket), str(key), context)]
    name = _ACTIONS.get(asked.operation, asked.operation)
    if "versionId" in asked.parameters:
        name = _OF_VERSIONS.get(name, name)
    resource = Resource(_arn(str(bucket)) if key is None else f"{_arn(str(bucket))}/{key}")
    return [Need(f"s3:{name}", (resource,), context)]


def may_know_of_absence(asked: Asked) -> "list[Need]":
    """What it needs to be told that an object is not there; none if the call reads none, or it is there.

    Who may not list a bucket is refused as if the object existed.
    """
    if asked.operation not in ("GetObject", "HeadObject") or "Key" not in asked.parameters:
        return []
    bucket = s3_backends[asked.account]["aws"].buckets.get(str(asked.parameters["Bucket"]))
    if bucket is None or asked.parameters["Key"] in bucket.keys:
        return []
    return [Need("s3:ListBucket", (Resource(_arn(bucket.name)),))]


def owner(arn: str) -> Optional[str]:
    """The account that owns the bucket in this ARN, of a bucket or an object.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html#condition-keys-resourceaccount
    """
    # Keys may have colons.
    name = arn.split(":", 5)[-1].partition("/")[0]
    for account in list(s3_backends):
        bucket = s3_backends[account]["aws"].buckets.get(name)
        if bucket is not None:
            return str(bucket.account_id)
    return None


def _arn(rest: str) -> str:
    return f"arn:aws:s3:::{rest}"


def _put(bucket: str, key: str, context: "dict[str, list[str]]") -> Need:
    return Need("s3:PutObject", (Resource(f"{_arn(bucket)}/{key}"),), context)


def _deleted(asked: Asked) -> "list[tuple[str, str]]":
    """Action and key of each object of a DeleteObjects."""
    objects = (asked.parameters.get("Delete") or {}).get("Objects") or []
    return [("DeleteObjectVersion" if one.get("VersionId") else "DeleteObject", str(one.get("Key"))) for one in objects]


def _on_object(bucket: str, deleted: "tuple[str, str]", context: "dict[str, list[str]]") -> Need:
    name, key = deleted
    return Need(f"s3:{name}", (Resource(f"{_arn(bucket)}/{key}"),), context)


def _context(asked: Asked) -> "dict[str, list[str]]":
    return {key: [str(asked.parameters[name])] for name, key in _QUERY.items() if name in asked.parameters}
