"""Events of AWS's own services on EventBridge's default bus, delivered to the SQS queues of the rules that match.

A queue gets an event only if its policy lets EventBridge send, as on AWS; what cannot be delivered is lost.
"""

from __future__ import annotations

import datetime
import fnmatch
import json
import uuid
from typing import Any, Iterable, Optional

from moto.core import DEFAULT_ACCOUNT_ID
from moto.events.models import events_backends
from moto.events.utils import EventTemplateParser
from moto.sqs.models import sqs_backends

_ARN_CONDITIONS = ("ArnEquals", "ArnLike", "StringEquals", "StringLike")


def state_changed(instance: Any) -> None:
    """EC2 says in which state an instance is now."""
    detail = {"instance-id": instance.id, "state": instance.state}
    from_ec2(instance, "EC2 Instance State-change Notification", detail)


def from_ec2(instance: Any, detail_type: str, detail: "dict[str, Any]", place: Optional[str] = None) -> None:
    """An event of EC2 about an instance; spot's name the zone (`place`) in the place of region and account."""
    region = instance.ec2_backend.region_name
    where = f"{place}:instance" if place else f"{region}:{DEFAULT_ACCOUNT_ID}:instance"
    emit(region, "aws.ec2", detail_type, [f"arn:aws:ec2:{where}/{instance.id}"], detail)


def emit(region: str, source: str, detail_type: str, resources: "list[str]", detail: "dict[str, Any]") -> None:
    """Puts one event on the bus of a region."""
    event = {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": detail_type,
        "source": source,
        "account": DEFAULT_ACCOUNT_ID,
        "time": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": region,
        "resources": resources,
        "detail": detail,
    }
    for rule in events_backends[DEFAULT_ACCOUNT_ID][region].event_buses["default"].rules.values():
        if rule.state == "ENABLED" and not rule.scheduled_expression and rule.event_pattern.matches_event(event):
            for target in rule.targets:
                _deliver(region, rule, target, event)


def _deliver(region: str, rule: Any, target: "dict[str, Any]", event: "dict[str, Any]") -> None:
    """To an SQS queue; other kinds of targets do not exist here."""
    if not target["Arn"].startswith("arn:aws:sqs:"):
        return
    group = (target.get("SqsParameters") or {}).get("MessageGroupId")
    send(region, target["Arn"], _input(target, event), "events.amazonaws.com", rule.arn, group)


def _input(target: "dict[str, Any]", event: "dict[str, Any]") -> str:
    """The message: the event, or what the target makes of it."""
    transformer = target.get("InputTransformer")
    if target.get("Input") is not None:
        return str(target["Input"])
    if transformer:
        made = {**event, "ingestion-time": event["time"]}
        found = EventTemplateParser.parse(transformer["InputTemplate"], transformer.get("InputPathsMap") or {}, made)
        return json.dumps(found)
    return json.dumps(event)


def send(region: str, queue_arn: str, body: str, service: str, source: str, group: Optional[str] = None) -> None:
    """Sends to a queue of the region in the name of an AWS service, if queue and policy are so."""
    queues = sqs_backends[DEFAULT_ACCOUNT_ID][region].queues
    queue = next((found for found in queues.values() if found.queue_arn == queue_arn), None)
    if queue is not None and _may_send(queue, service, source):
        sqs_backends[DEFAULT_ACCOUNT_ID][region].send_message(queue.name, body, group_id=group)


def _may_send(queue: Any, service: str, source: str) -> bool:
    """Whether a statement of the queue's policy allows it, and none denies it."""
    policy = queue.policy or "{}"
    document = json.loads(policy) if isinstance(policy, str) else policy
    statements = [item for item in _list(document.get("Statement")) if _applies(item, queue, service, source)]
    effects = {item.get("Effect") for item in statements}
    return "Allow" in effects and "Deny" not in effects


def _applies(statement: "dict[str, Any]", queue: Any, service: str, source: str) -> bool:
    principal = statement.get("Principal") or {}
    named = principal if isinstance(principal, dict) else {"Service": principal}
    services = _list(named.get("Service")) + _list(named.get("AWS"))
    return (
        any(name in ("*", service) for name in services)
        and _like("sqs:sendmessage", [str(action).lower() for action in _list(statement.get("Action"))])
        and _like(queue.queue_arn, _list(statement.get("Resource")))
        and all(_holds(kind, asked, source) for kind, asked in (statement.get("Condition") or {}).items())
    )


def _holds(kind: str, asked: "dict[str, Any]", source: str) -> bool:
    """A condition on the source; any other kind is taken for not met."""
    known = {"aws:sourcearn": source, "aws:sourceaccount": DEFAULT_ACCOUNT_ID}
    return kind in _ARN_CONDITIONS and all(
        key.lower() in known and _like(known[key.lower()], _list(values)) for key, values in asked.items()
    )


def _like(value: str, patterns: "Iterable[str]") -> bool:
    return any(fnmatch.fnmatchcase(value, pattern) for pattern in patterns)


def _list(value: Any) -> "list[Any]":
    return [] if value is None else value if isinstance(value, list) else [value]
