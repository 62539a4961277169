"""Somebody else's tags: what cost, backup and compliance tools of a company put on everything, uncalled for."""

from __future__ import annotations

from typing import Any, Iterator


def put(tags: "dict[str, str]") -> None:
    """Adds these tags to everything that carries tags already; what has such a key keeps its value."""
    from moto.backends import get_backend

    for ec2 in _regions(get_backend("ec2")):
        for of in ec2.tags.values():
            _add(of, tags)
    for service in ("elbv2", "events"):
        for backend in _regions(get_backend(service)):
            service_tags = backend.tagging_service if service == "elbv2" else backend.tagger
            for of in service_tags.tags.values():
                _add(of, tags)
    for sqs in _regions(get_backend("sqs")):
        for queue in sqs.queues.values():
            _add(queue.tags, tags)
    for iam in _regions(get_backend("iam")):
        for one in (*iam.roles.values(), *iam.instance_profiles.values()):
            one.tags = [*one.tags, *_missing(one.tags, tags)]
    for autoscaling in _regions(get_backend("autoscaling")):
        for name, group in autoscaling.autoscaling_groups.items():
            of_group = {"ResourceId": name, "ResourceType": "auto-scaling-group", "PropagateAtLaunch": False}
            group.tags.extend({**of_group, **tag} for tag in _missing(group.tags, tags))


def _regions(backends: Any) -> "Iterator[Any]":
    """What there is of a service, in every account and region that was used."""
    for account in backends.values():
        yield from account.values()


def _add(to: "dict[str, Any]", tags: "dict[str, str]") -> None:
    if to:
        for key, value in tags.items():
            to.setdefault(key, value)


def _missing(have: Any, tags: "dict[str, str]") -> "list[dict[str, str]]":
    """Those tags whose keys a list of tags lacks; none if the list is empty."""
    keys = {tag["Key"] for tag in have}
    return [{"Key": key, "Value": value} for key, value in tags.items() if keys and key not in keys]
