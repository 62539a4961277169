"""IAM, S3, SQS, EventBridge, STS: what kctl rests on."""

from __future__ import annotations

import base64
import hashlib
import json
import urllib.request

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import pytest

from . import make
from .errors import code_of

POLICY = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}]}
)


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


def test_policies_of_aws_are_attached(both):
    name = both.unique("role")
    both.iam.create_role(RoleName=name, AssumeRolePolicyDocument=make.TRUST)
    arn = "arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryReadOnly"
    both.iam.attach_role_policy(RoleName=name, PolicyArn=arn)
    (attached,) = both.iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
    assert attached == {"PolicyName": "AmazonEC2ContainerRegistryReadOnly", "PolicyArn": arn}
    unknown = "arn:aws:iam::aws:policy/AmazonNothing"
    assert code_of(both.iam.attach_role_policy, RoleName=name, PolicyArn=unknown) == "NoSuchEntity"
    both.iam.detach_role_policy(RoleName=name, PolicyArn=arn)
    both.iam.delete_role(RoleName=name)


def test_a_role_goes_when_nothing_is_left_in_it(aws):
    name, tags = aws.unique("role"), [{"Key": "a", "Value": "b"}]
    role = {"RoleName": name, "AssumeRolePolicyDocument": make.TRUST, "Tags": tags}
    aws.iam.create_role(**role)
    assert code_of(aws.iam.create_role, **role) == "EntityAlreadyExists"
    aws.iam.put_role_policy(RoleName=name, PolicyName="p", PolicyDocument=POLICY)
    assert aws.iam.get_role_policy(RoleName=name, PolicyName="p")["PolicyDocument"] == json.loads(POLICY)
    aws.iam.create_instance_profile(InstanceProfileName=name, Tags=tags)
    aws.iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)
    assert aws.iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]["Tags"] == tags
    assert code_of(aws.iam.delete_role, RoleName=name) == "DeleteConflict"
    assert code_of(aws.iam.delete_instance_profile, InstanceProfileName=name) == "DeleteConflict"
    aws.iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=name)
    aws.iam.delete_instance_profile(InstanceProfileName=name)
    assert code_of(aws.iam.delete_role, RoleName=name) == "DeleteConflict"
    aws.iam.delete_role_policy(RoleName=name, PolicyName="p")
    aws.iam.delete_role(RoleName=name)
    assert code_of(aws.iam.get_role, RoleName=name) == "NoSuchEntity"


def test_a_role_is_changed(aws):
    name = aws.unique("role")
    aws.iam.create_role(RoleName=name, AssumeRolePolicyDocument=make.TRUST)
    trust = make.TRUST.replace("ec2.amazonaws.com", "lambda.amazonaws.com")
    aws.iam.update_assume_role_policy(RoleName=name, PolicyDocument=trust)
    aws.iam.tag_role(RoleName=name, Tags=[{"Key": "a", "Value": "b"}])
    role = aws.iam.get_role(RoleName=name)["Role"]
    assert (role["AssumeRolePolicyDocument"], role["Tags"]) == (json.loads(trust), [{"Key": "a", "Value": "b"}])
    aws.iam.untag_role(RoleName=name, TagKeys=["a"])
    assert aws.iam.list_role_tags(RoleName=name)["Tags"] == []
    assert (
        code_of(aws.iam.put_role_policy, RoleName=name, PolicyName="p", PolicyDocument="{") == "MalformedPolicyDocument"
    )


# S3


@pytest.fixture
def bucket(aws):
    name = aws.unique("bucket")
    aws.s3.create_bucket(Bucket=name)
    return name


def test_an_object_is_put_only_if_it_is_absent(aws, bucket):
    aws.s3.put_object(Bucket=bucket, Key="k", Body=b"1", IfNoneMatch="*")
    assert code_of(aws.s3.put_object, Bucket=bucket, Key="k", Body=b"2", IfNoneMatch="*") == "PreconditionFailed"
    assert aws.s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"1"


def test_an_object_is_put_and_deleted_only_if_it_matches(aws, bucket):
    old = aws.s3.put_object(Bucket=bucket, Key="k", Body=b"1")["ETag"]
    new = aws.s3.put_object(Bucket=bucket, Key="k", Body=b"2", IfMatch=old)["ETag"]
    assert code_of(aws.s3.put_object, Bucket=bucket, Key="k", Body=b"3", IfMatch=old) == "PreconditionFailed"
    assert code_of(aws.s3.delete_object, Bucket=bucket, Key="k", IfMatch=old) == "PreconditionFailed"
    aws.s3.delete_object(Bucket=bucket, Key="k", IfMatch=new)
    assert code_of(aws.s3.put_object, Bucket=bucket, Key="k", Body=b"4", IfMatch=new) == "NoSuchKey"
    assert code_of(aws.s3.get_object, Bucket=bucket, Key="k") == "NoSuchKey"


def test_objects_are_listed_from_a_key_and_in_pages(aws, bucket):
    for number in range(5):
        aws.s3.put_object(Bucket=bucket, Key=f"a/{number}", Body=b"")
    aws.s3.put_object(Bucket=bucket, Key="b/0", Body=b"")
    after = aws.s3.list_objects_v2(Bucket=bucket, Prefix="a/", StartAfter="a/2")["Contents"]
    assert [item["Key"] for item in after] == ["a/3", "a/4"]
    pages = aws.s3.get_paginator("list_objects_v2").paginate(
        Bucket=bucket, Prefix="a/", StartAfter="a/0", PaginationConfig={"PageSize": 3}
    )
    assert [[item["Key"] for item in page["Contents"]] for page in pages] == [["a/1", "a/2", "a/3"], ["a/4"]]
    folders = aws.s3.list_objects_v2(Bucket=bucket, Delimiter="/")["CommonPrefixes"]
    assert [folder["Prefix"] for folder in folders] == ["a/", "b/"]


def test_a_bucket_with_objects_stays(aws, bucket):
    aws.s3.put_object(Bucket=bucket, Key="k", Body=b"1", ServerSideEncryption="AES256")
    assert code_of(aws.s3.delete_bucket, Bucket=bucket) == "BucketNotEmpty"
    aws.s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "k"}]})
    aws.s3.delete_bucket(Bucket=bucket)
    assert code_of(aws.s3.get_object, Bucket=bucket, Key="k") == "NoSuchBucket"


# SQS and EventBridge


def test_a_queue_has_attributes_policy_and_tags(aws):
    name, attributes = aws.unique("queue"), {"MessageRetentionPeriod": "300", "SqsManagedSseEnabled": "true"}
    url = aws.sqs.create_queue(QueueName=name, Attributes=attributes, tags={"a": "b"})["QueueUrl"]
    assert aws.sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"] == url
    other = {**attributes, "MessageRetentionPeriod": "301"}
    assert code_of(aws.sqs.create_queue, QueueName=name, Attributes=other) == "QueueAlreadyExists"
    aws.sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": POLICY, "MessageRetentionPeriod": "400"})
    aws.control("POST", "settle")
    found = aws.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert (json.loads(found["Policy"]), found["MessageRetentionPeriod"]) == (json.loads(POLICY), "400")
    assert found["QueueArn"] == f"arn:aws:sqs:us-east-1:123456789012:{name}"
    aws.sqs.tag_queue(QueueUrl=url, Tags={"c": "d"})
    assert aws.sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"a": "b", "c": "d"}
    aws.sqs.delete_queue(QueueUrl=url)
    assert aws.sqs.list_queues(QueueNamePrefix=name).get("QueueUrls", []) == []


def test_a_rule_with_targets_stays(aws):
    name, pattern = aws.unique("rule"), json.dumps({"source": ["aws.ec2"]})
    aws.events.put_rule(Name=name, EventPattern=pattern, Tags=[{"Key": "a", "Value": "b"}])
    rule = aws.events.describe_rule(Name=name)
    assert json.loads(rule["EventPattern"]) == json.loads(pattern)
    assert aws.events.list_tags_for_resource(ResourceARN=rule["Arn"])["Tags"] == [{"Key": "a", "Value": "b"}]
    target = {"Id": "1", "Arn": "arn:aws:sqs:us-east-1:123456789012:q"}
    aws.events.put_targets(Rule=name, Targets=[target])
    assert aws.events.list_targets_by_rule(Rule=name)["Targets"] == [target]
    assert code_of(aws.events.delete_rule, Name=name) == "ValidationException"
    aws.events.remove_targets(Rule=name, Ids=["1"])
    aws.control("POST", "settle")
    aws.events.delete_rule(Name=name)
    assert aws.events.list_rules(NamePrefix=name)["Rules"] == []


def test_versioning_is_described_by_its_own_name(both):
    bucket = both.unique("bucket")
    both.s3.create_bucket(Bucket=bucket)
    seen = []
    both.s3.meta.events.register("after-call.s3.GetBucketVersioning", lambda http_response, **_: seen.append(http_response))
    assert "Status" not in both.s3.get_bucket_versioning(Bucket=bucket)
    both.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    assert both.s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled"
    assert all(b"<VersioningConfiguration" in answer.content for answer in seen) and len(seen) == 2


def test_a_bucket_is_written_only_for_its_owner(both):
    bucket = both.unique("bucket")
    both.s3.create_bucket(Bucket=bucket)
    ours = {"Bucket": bucket, "Key": "k", "ExpectedBucketOwner": "123456789012"}
    both.s3.put_object(**ours, Body=b"x")
    theirs = {**ours, "ExpectedBucketOwner": "210987654321"}
    assert code_of(both.s3.put_object, **theirs, Body=b"x") == "AccessDenied"
    assert code_of(both.s3.delete_object, **theirs) == "AccessDenied"
    many = {"Bucket": bucket, "Delete": {"Objects": [{"Key": "k"}]}, "ExpectedBucketOwner": "210987654321"}
    assert code_of(both.s3.delete_objects, **many) == "AccessDenied"
    both.s3.delete_object(**ours)


# STS and images


def test_a_presigned_caller_identity_is_answered(both):
    both.sts.get_caller_identity()
    url = f"{both.endpoint}/?Action=GetCallerIdentity&Version=2011-06-15"
    request = botocore.awsrequest.AWSRequest("GET", url, headers={"x-k8s-aws-id": "cluster"})
    credentials = botocore.credentials.Credentials("test", "test")
    botocore.auth.SigV4QueryAuth(credentials, "sts", "us-east-1", expires=60).add_auth(request)
    prepared = request.prepare()
    with urllib.request.urlopen(urllib.request.Request(prepared.url, headers=dict(prepared.headers))) as answer:
        text = answer.read().decode()
    assert "GetCallerIdentityResult" in text and "<Account>123456789012</Account>" in text


def test_the_images_are_ours_alone(aws):
    images = aws.ec2.describe_images()["Images"]
    assert {image["OwnerId"] for image in images} == {"099720109477", "136693071363", "137112412989", "075585003325"}
    noble = aws.ec2.describe_images(
        Owners=["099720109477"],
        Filters=[{"Name": "name", "Values": ["ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-*"]}],
    )
    assert {(image["Architecture"], image["RootDeviceName"]) for image in noble["Images"]} == {
        ("x86_64", "/dev/sda1"),
        ("arm64", "/dev/sda1"),
    }
    debian = aws.ec2.describe_images(Owners=["136693071363"])["Images"]
    assert {image["RootDeviceName"] for image in debian} == {"/dev/xvda"}


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
