"""IAM, S3, SQS, EventBridge, STS: what kctl rests on."""

from __future__ import annotations

import base64
import hashlib
import json


from . import make
from .errors import code_of

# IAM


def test_a_launch_with_an_unknown_profile_is_refused(both):
    (subnet,) = make.subnets(both, make.vpc(both), "a")
    launch = {
        "ImageId": make.image(both),
        "InstanceType": "t3.medium",
        "SubnetId": subnet,
        "MinCount": 1,
        "MaxCount": 1,
    }
    assert code_of(both.ec2.run_instances, IamInstanceProfile={"Name": "nobody"}, **launch) == "InvalidParameterValue"


# S3


def test_a_bucket_is_used_only_for_its_owner(both):
    bucket = both.unique("bucket")
    both.s3.create_bucket(Bucket=bucket)
    ours = {"Bucket": bucket, "Key": "k", "ExpectedBucketOwner": "123456789012"}
    both.s3.put_object(**ours, Body=b"x")
    theirs = {**ours, "ExpectedBucketOwner": "210987654321"}
    assert code_of(both.s3.put_object, **theirs, Body=b"x") == "AccessDenied"
    assert code_of(both.s3.delete_object, **theirs) == "AccessDenied"
    many = {"Bucket": bucket, "Delete": {"Objects": [{"Key": "k"}]}, "ExpectedBucketOwner": "210987654321"}
    assert code_of(both.s3.delete_objects, **many) == "AccessDenied"
    assert code_of(both.s3.get_object, **theirs) == "AccessDenied"
    assert code_of(both.s3.create_multipart_upload, **theirs) == "AccessDenied"
    whole = {"Bucket": bucket, "ExpectedBucketOwner": "210987654321"}
    assert code_of(both.s3.list_objects_v2, **whole) == "AccessDenied"
    assert code_of(both.s3.get_bucket_versioning, **whole) == "AccessDenied"
    assert both.s3.get_object(**ours)["Body"].read() == b"x"
    both.s3.delete_object(**ours)


# STS and images


def test_images_describe_the_root_volume_they_give(both):
    (image,) = both.ec2.describe_images(ImageIds=[make.image(both)])["Images"]
    (mapping,) = image["BlockDeviceMappings"]
    assert mapping["DeviceName"] == "/dev/sda1"
    assert (mapping["Ebs"]["VolumeSize"], mapping["Ebs"]["DeleteOnTermination"]) == (8, True)


def test_tags_of_aws_are_reserved(both):
    tags = [{"Key": "aws:autoscaling:groupName", "Value": "x"}]
    assert code_of(both.ec2.create_tags, Resources=[make.vpc(both)], Tags=tags) == "InvalidParameterValue"


def test_an_object_has_the_checksum_that_it_is_said_to_have(both):
    bucket = both.unique("bucket")
    both.s3.create_bucket(Bucket=bucket)
    digest = base64.b64encode(hashlib.sha256(b"content").digest()).decode()
    put = {"Bucket": bucket, "Key": "key", "ChecksumSHA256": digest}
    both.s3.put_object(Body=b"content", **put)
    assert code_of(both.s3.put_object, Body=b"another", **put) == "BadDigest"


def test_inline_policies_of_a_role_add_up(both):
    role = both.unique("role")
    both.iam.create_role(RoleName=role, AssumeRolePolicyDocument=make.TRUST)

    def put(name, actions):
        statement = {"Effect": "Allow", "Action": [f"s3:Get{i:04}" for i in range(actions)], "Resource": "*"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]}, indent=4)
        return {"RoleName": role, "PolicyName": name, "PolicyDocument": document}

    both.iam.put_role_policy(**put("one", 600))
    assert code_of(both.iam.put_role_policy, **put("two", 200)) == "LimitExceeded"
    both.iam.put_role_policy(**put("one", 400))
    both.iam.put_role_policy(**put("two", 200))


def test_the_etag_of_what_a_kms_key_encrypts_is_no_digest(both):
    bucket = both.unique("bucket")
    both.s3.create_bucket(Bucket=bucket)
    plain = both.s3.put_object(Bucket=bucket, Key="plain", Body=b"content")["ETag"]
    assert plain == f'"{hashlib.md5(b"content").hexdigest()}"'
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms"}}
    both.s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [rule]})
    one, two = [both.s3.put_object(Bucket=bucket, Key=key, Body=b"content")["ETag"] for key in ("one", "two")]
    assert len({plain, one, two}) == 3
    assert both.s3.head_object(Bucket=bucket, Key="one")["ETag"] == one
    listed = both.s3.list_objects_v2(Bucket=bucket, Prefix="one")["Contents"]
    assert listed[0]["ETag"] == one
    both.s3.put_object(Bucket=bucket, Key="one", Body=b"other", IfMatch=one)
