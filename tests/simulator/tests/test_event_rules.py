"""EventBridge rules, and the queues that they lead to."""

from __future__ import annotations

import json
import threading
import time

from botocore.exceptions import ClientError

from .conftest import eventually
from .errors import said


def test_a_rule_has_its_targets_for_a_while_after_they_were_removed(both):
    name, queue = both.unique("rule"), both.unique("queue")
    url = both.sqs.create_queue(QueueName=queue)["QueueUrl"]
    arn = both.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    both.events.put_rule(Name=name, EventPattern=json.dumps({"source": ["aws.ec2"]}))
    both.events.put_targets(Rule=name, Targets=[{"Id": "1", "Arn": arn}])
    refused = ("ValidationException", "Rule can't be deleted since it has targets.")
    assert said(both.events.delete_rule, Name=name) == refused
    both.events.remove_targets(Rule=name, Ids=["1"])
    assert said(both.events.delete_rule, Name=name) == refused
    eventually(lambda: is_deleted(both, name))


def test_a_queues_policy_is_seen_late(both):
    url = both.sqs.create_queue(QueueName=both.unique("queue"))["QueueUrl"]
    statement = {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    both.sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy, "MessageRetentionPeriod": "600"})

    def seen():
        return both.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]

    assert "Policy" not in seen()
    assert seen()["MessageRetentionPeriod"] == "600"
    eventually(lambda: "Policy" in seen())


def is_deleted(aws, name):
    try:
        aws.events.delete_rule(Name=name)
    except ClientError:
        return False
    return True


def test_a_reader_that_waits_gets_a_message_at_once_and_holds_nobody_up(both):
    url = both.sqs.create_queue(QueueName=both.unique("queue"))["QueueUrl"]
    threading.Timer(0.5, both.sqs.send_message, kwargs={"QueueUrl": url, "MessageBody": "now"}).start()
    before = time.monotonic()
    (message,) = both.sqs.receive_message(QueueUrl=url, WaitTimeSeconds=10)["Messages"]
    assert message["Body"] == "now" and time.monotonic() - before < 5
