"""Resources of Auto Scaling, Route 53, SQS and EventBridge."""

from __future__ import annotations

from typing import Any

from moto.autoscaling.models import autoscaling_backends
from moto.sqs.models import sqs_backends

from ..membership import everyone
from .needs import Asked, Need, Resource, action, of_pairs


def of_autoscaling(asked: Asked) -> "list[Need]":
    """The group that is named, the one an instance is in, or those whose tags are set; looking is on `*`."""
    if asked.operation.startswith("Describe"):
        return [Need(action(asked))]
    groups = autoscaling_backends[asked.account][asked.region].autoscaling_groups
    names = [*asked.texts("AutoScalingGroupName"), *_groups_of(groups, asked.texts("InstanceId"))]
    pairs = asked.parameters.get("Tags")
    if asked.operation in ("CreateOrUpdateTags", "DeleteTags"):
        names = sorted({str(pair.get("ResourceId")) for pair in pairs or []})
    resources = tuple(_group(asked, groups, name, of_pairs(pairs)) for name in dict.fromkeys(names))
    return [Need(action(asked), resources or (Resource(),))]


def _groups_of(groups: "dict[str, Any]", instances: "list[str]") -> "list[str]":
    """The names of the groups these instances are in."""
    return [
        name for name, group in groups.items() if any(state.instance.id in instances for state in everyone(group))
    ]


def _group(asked: Asked, groups: "dict[str, Any]", name: str, tags: "dict[str, str]") -> Resource:
    group = groups.get(name)
    if group is None:
        return Resource(asked.arn("autoscaling", f"autoScalingGroup:*:autoScalingGroupName/{name}"), {}, tags)
    return Resource(group.arn, of_pairs(group.tags), tags)


def of_route53(asked: Asked) -> "list[Need]":
    """A zone or a change, by id; with the names, types and actions of a batch of changes."""
    if asked.operation in ("ListHostedZones", "ListHostedZonesByName", "CreateHostedZone", "ListHostedZonesByVPC"):
        return [Need(action(asked))]
    kind = "change" if asked.operation == "GetChange" else str(asked.parameters.get("ResourceType", "hostedzone"))
    names = asked.texts("HostedZoneId") or asked.texts("ResourceId") or asked.texts("Id")
    arns = [f"arn:aws:route53:::{kind}/{name.rsplit('/', 1)[-1]}" for name in names]
    changes = (asked.parameters.get("ChangeBatch") or {}).get("Changes") or []
    return [Need(action(asked), tuple(map(Resource, arns)) or (Resource(),), _of_changes(changes))]


def _of_changes(changes: "list[dict[str, Any]]") -> "dict[str, list[str]]":
    if not changes:
        return {}
    sets = [change.get("ResourceRecordSet") or {} for change in changes]
    prefix = "route53:changeresourcerecordsets"
    return {
        f"{prefix}actions": [str(change.get("Action")) for change in changes],
        f"{prefix}recordtypes": [str(one.get("Type")) for one in sets],
        f"{prefix}normalizedrecordnames": [str(one.get("Name", "")).rstrip(".").lower() for one in sets],
    }


def of_sqs(asked: Asked) -> "list[Need]":
    """A queue, by its URL or name."""
    names = [url.rsplit("/", 1)[-1] for url in asked.texts("QueueUrl")] or asked.texts("QueueName")
    queues = sqs_backends[asked.account][asked.region].queues
    tags = asked.parameters.get("tags") or asked.parameters.get("Tags") or {}
    resources = tuple(
        Resource(asked.arn("sqs", name), dict(queues[name].tags) if name in queues else {}, dict(tags))
        for name in names
    )
    return [Need(action(asked), resources or (Resource(),))]


def of_events(asked: Asked) -> "list[Need]":
    """A rule, by its name or ARN."""
    names = asked.texts("Rule") or asked.texts("Name")
    arns = asked.texts("ResourceARN") or [asked.arn("events", f"rule/{name}") for name in names]
    tags = of_pairs(asked.parameters.get("Tags"))
    return [Need(action(asked), tuple(Resource(arn, {}, tags) for arn in arns) or (Resource(),))]
