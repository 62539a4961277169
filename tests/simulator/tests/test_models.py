"""What AWS' models allow passes, and each way of breaking a rule of theirs is refused, for every operation of every service."""

from __future__ import annotations

import json
import random
from typing import Any
from urllib.parse import urlencode

import pytest

from .. import limits, reading, shapes
from ..operations import Call, identify
from . import requests

# Older forms of other operations, and one that a bucket's host name tells from another.
SAME_PATH = (
    "GetBucketLifecycle",
    "GetBucketNotification",
    "ListDirectoryBuckets",
    "PutBucketLifecycle",
    "PutBucketNotification",
)


@pytest.mark.parametrize("service", reading.SERVICES)
def test_every_operation(service: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(limits, "breaches", lambda *_: ())  # rules that are in no model
    failures = []
    for operation in requests.model(service).operation_names:
        failures += [f"{service} {operation}: {what}" for what in _check(service, operation)]
    assert not failures, "\n".join(failures)


def _check(service: str, operation: str) -> "list[str]":
    shape = requests.model(service).operation_model(operation).input_shape
    values = requests.values_of(shape) if shape is not None else {}

    def passes(of: "dict[str, Any]", **more: bool) -> bool:
        sent, body = requests.environ(service, operation, of, **more)
        # Without what names one, some requests are for a list of all.
        is_it = identify(sent, body).operation in (operation, "?")
        return is_it and shapes.refuse(identify(sent, body), sent, body) is None

    sent, body = requests.environ(service, operation, values)
    taken_for = identify(sent, body)
    if taken_for != Call(service, operation):
        return [] if operation in SAME_PATH else [f"is taken for {taken_for}"]
    found = []
    refused = shapes.refuse(taken_for, sent, body)
    if refused is not None:
        found.append(f"refused: {refused.code}: {refused.message}")
    if passes(values, unknown=True):
        found.append("something unknown passes")
    for wrong in requests.mutations(shape, values, random.Random(operation)) if shape is not None else []:
        if passes(wrong.values):
            found.append(f"{wrong.kind} at {wrong.path} passes")
    return found


# What nodeup and protokube send is written by hand (aws/client/src/ec2_query): each form that they send, and one of each in the
# wrong that a slip of the pen would make.
AGENTS: "list[tuple[str, str, str, dict[str, Any]]]" = [
    ("ec2", "DescribeInstances", "2016-11-15", {"Filter.1.Name": "instance-id", "Filter.1.Value.1": "i-0a", "Filter.1.Value.2": "i-0b",
                                                "MaxResults": "1000", "NextToken": "n"}),
    ("ec2", "DescribeVolumes", "2016-11-15", {"Filter.1.Name": "tag:k", "Filter.1.Value.1": "v", "MaxResults": "1000"}),
    ("ec2", "DescribeVolumes", "2016-11-15", {"VolumeId.1": "vol-0a"}),
    ("ec2", "AttachVolume", "2016-11-15", {"VolumeId": "vol-0a", "InstanceId": "i-0a", "Device": "/dev/xvdu"}),
    ("ec2", "AssignIpv6Addresses", "2016-11-15", {"NetworkInterfaceId": "eni-0a", "Ipv6PrefixCount": "1"}),
    ("autoscaling", "DescribeAutoScalingInstances", "2011-01-01", {"InstanceIds.member.1": "i-0a"}),
    ("autoscaling", "CompleteLifecycleAction", "2011-01-01", {"AutoScalingGroupName": "nodes.c.example.com", "LifecycleHookName": "nodes-c",
     "InstanceId": "i-0123456789abcdef0", "LifecycleActionResult": "CONTINUE"}),
    ("autoscaling", "RecordLifecycleActionHeartbeat", "2011-01-01", {"AutoScalingGroupName": "nodes.c.example.com", "LifecycleHookName": "nodes-c",
     "InstanceId": "i-0123456789abcdef0"}),
    ("sts", "GetCallerIdentity", "2011-06-15", {}),
]  # fmt: skip


@pytest.mark.parametrize(("service", "operation", "version", "form"), AGENTS)
def test_what_agents_send(service: str, operation: str, version: str, form: "dict[str, str]") -> None:
    def answer(**changed: str) -> Any:
        return _answer_to_form(service, {"Action": operation, "Version": version, **form, **changed})

    assert answer() is None
    assert answer(Version="2010-01-01").code == "UnknownParameter"
    assert answer(Action=operation + "s").code == "InvalidAction"
    for name in form:
        slip = {f"{name}s": "x"}
        assert answer(**slip).message.startswith(f"The parameter {name}s is not recognized"), name


def test_what_protokube_sends_to_queues() -> None:
    queue = {"QueueUrl": "https://sqs.us-east-1.amazonaws.com/123456789012/q"}
    wait = {"MaxNumberOfMessages": 10, "WaitTimeSeconds": 20, "VisibilityTimeout": 600}
    assert _answer_to_json("sqs", "AmazonSQS.ReceiveMessage", {**queue, **wait}) is None
    assert _answer_to_json("sqs", "AmazonSQS.DeleteMessage", {**queue, "ReceiptHandle": "r"}) is None
    assert _answer_to_json("sqs", "AmazonSQS.DeleteMessage", queue).message == (
        "The request must contain the parameter ReceiptHandle."
    )
    as_text = _answer_to_json("sqs", "AmazonSQS.ReceiveMessage", {**queue, "WaitTimeSeconds": "20"})
    assert as_text.code == "SerializationException"


def test_filters_have_200_values_a_call() -> None:
    def answer(count: int) -> Any:
        values = {f"Filter.1.Value.{number}": f"i-{number}" for number in range(1, count + 1)}
        by_tag = {"Filter.1.Name": "instance-id", **values, "Filter.2.Name": "tag:a", "Filter.2.Value.1": "b"}
        return _answer_to_form("ec2", {"Action": "DescribeInstances", "Version": "2016-11-15", **by_tag})

    assert answer(199) is None
    assert answer(200).code == "FilterLimitExceeded"


def _answer_to_form(service: str, form: "dict[str, str]") -> Any:
    sent = {"CONTENT_TYPE": "application/x-www-form-urlencoded", **_signed(service)}
    body = urlencode(form).encode()
    return shapes.refuse(identify(sent, body), sent, body)


def _answer_to_json(service: str, target: str, values: "dict[str, Any]") -> Any:
    sent = {"CONTENT_TYPE": "application/x-amz-json-1.0", "HTTP_X_AMZ_TARGET": target, **_signed(service)}
    body = json.dumps(values).encode()
    return shapes.refuse(identify(sent, body), sent, body)


def _signed(service: str) -> "dict[str, str]":
    return {"HTTP_AUTHORIZATION": f"AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/{service}/aws4_request"}


def test_what_cannot_be_read_is_refused() -> None:
    assert _answer_to_json("sqs", "AmazonSQS.ListQueues", []).code == "SerializationException"
    assert _answer_to_json("events", "AWSEvents.TagResource", {"ResourceARN": "a", "Tags": [{"Key": 1}]}).code == "SerializationException"
    sent = {"REQUEST_METHOD": "PATCH", "PATH_INFO": "/bucket/key", "RAW_URI": "/bucket/key", **_signed("s3")}
    sent.update({"HTTP_HOST": "127.0.0.1", "SERVER_NAME": "127.0.0.1", "SERVER_PORT": "1", "wsgi.url_scheme": "http"})
    assert shapes.refuse(identify(sent, b""), sent, b"").code == "InvalidAction"
