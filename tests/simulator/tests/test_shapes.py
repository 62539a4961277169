"""What AWS' models refuse, in each protocol."""

from __future__ import annotations

from typing import Any

import pytest

from . import make
from .errors import code_of, said

LONG = "x" * 300
TEMPLATE = {"InstanceType": "t3.medium"}


@pytest.mark.parametrize(
    ("service", "operation", "values", "code"),
    [
        ("autoscaling", "put_lifecycle_hook", {"LifecycleHookName": "a.b", "AutoScalingGroupName": "a"}, "ValidationError"),
        ("ec2", "create_launch_template", {"LaunchTemplateName": "a b", "LaunchTemplateData": TEMPLATE}, "InvalidParameterValue"),
        ("ec2", "create_launch_template", {"LaunchTemplateName": "x" * 129, "LaunchTemplateData": TEMPLATE}, "InvalidParameterValue"),
        ("ec2", "create_security_group", {"GroupName": LONG, "Description": "d"}, "InvalidParameterValue"),
        ("ec2", "create_security_group", {"GroupName": "g", "Description": "it's"}, "InvalidParameterValue"),
        ("ec2", "create_tags", {"Resources": ["vpc-1"], "Tags": [{"Key": "k" * 129, "Value": ""}]}, "InvalidParameterValue"),
        ("ec2", "create_vpc", {"CidrBlock": "10.0.0.0/16", "InstanceTenancy": "mine"}, "InvalidParameterValue"),
        ("elbv2", "create_load_balancer", {"Name": "x" * 33, "Type": "network"}, "ValidationError"),
        ("iam", "create_role", {"RoleName": "a b", "AssumeRolePolicyDocument": "{}"}, "ValidationError"),
        ("iam", "create_role", {"RoleName": "x" * 65, "AssumeRolePolicyDocument": "{}"}, "ValidationError"),
        ("events", "put_rule", {"Name": "a b", "EventPattern": "{}"}, "ValidationException"),
        ("events", "put_rule", {"Name": "x" * 65, "EventPattern": "{}"}, "ValidationException"),
        ("sqs", "create_queue", {"QueueName": "a", "tags": {"k" * 129: ""}}, "InvalidParameterValue"),
        ("route53", "list_resource_record_sets", {"HostedZoneId": "Z" * 33}, "InvalidInput"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 40 else "",
)
def test_what_the_model_forbids_is_refused(both: Any, service: str, operation: str, values: Any, code: str) -> None:
    assert code_of(getattr(both.client(service), operation), **values) == code


def test_the_message_names_member_value_and_rule(both: Any) -> None:
    hook = {"LifecycleHookName": "nodes.gpu-hook", "AutoScalingGroupName": "a"}
    code, text = said(both.autoscaling.put_lifecycle_hook, **hook)
    assert code == "ValidationError"
    assert "1 validation error detected: Value 'nodes.gpu-hook' at 'lifecycleHookName'" in text
    assert "regular expression pattern" in text


def test_a_change_batch_is_read(both: Any) -> None:
    zone = both.route53.create_hosted_zone(Name=both.unique("z") + ".org", CallerReference=both.unique("r"))
    record = {"Name": "a.org", "Type": "NONE", "TTL": 60, "ResourceRecords": [{"Value": "192.0.2.1"}]}
    batch = {"Changes": [{"Action": "CREATE", "ResourceRecordSet": record}]}
    change = both.route53.change_resource_record_sets
    code, text = said(change, HostedZoneId=zone["HostedZone"]["Id"], ChangeBatch=batch)
    assert code == "InvalidInput"
    assert "resourceRecordSet.type" in text


def test_content_of_objects_is_not_read(aws: Any) -> None:
    bucket = aws.unique("bucket")
    aws.s3.create_bucket(Bucket=bucket)
    aws.s3.put_object(Bucket=bucket, Key="a", Body=b"<not xml & no json")
    assert aws.s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"<not xml & no json"
    assert code_of(aws.s3.put_object, Bucket=bucket, Key="k" * 1025, Body=b"") == "InvalidArgument"


def test_tags_of_every_script_are_allowed(aws: Any) -> None:
    aws.iam.create_role(RoleName=aws.unique("r"), AssumeRolePolicyDocument=make.TRUST, Tags=[{"Key": "Größe", "Value": "大 1"}])
