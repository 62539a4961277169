"""EventBridge rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moto.core.exceptions import JsonRESTError
from moto.events.exceptions import ValidationException
from moto.events.models import EventsBackend, Rule
from moto.sqs.models import sqs_backends

from ..auth.policy import Verdict, evaluate
from .patch import replace

if TYPE_CHECKING:
    from . import Options


def a_rule_keeps_its_targets_for_a_while(options: "Options") -> None:
    """AWS: targets that were removed a moment ago still keep their rule from being deleted (the Terraform provider
    repeats DeleteRule for five minutes, internal/service/events/rule.go).
    moto: forgets them at once.
    """

    @replace(EventsBackend, "remove_targets")
    def remove(original: Any, backend: Any, name: str, bus: Any, ids: "list[str]") -> Any:
        answer = original(backend, name, bus, ids)
        rule = backend.describe_rule(name, bus)
        rule.lingering = getattr(rule, "lingering", 0) + 1
        options.later.add(lambda: setattr(rule, "lingering", rule.lingering - 1))
        return answer

    @replace(EventsBackend, "delete_rule")
    def delete(original: Any, backend: Any, name: str, bus: Any) -> None:
        rule = backend._get_event_bus(backend._normalize_event_bus_arn(bus)).rules.get(name)
        if getattr(rule, "lingering", 0):
            raise ValidationException("Rule can't be deleted since it has targets.")
        original(backend, name, bus)


def a_rule_has_five_targets() -> None:
    """AWS: a sixth target of a rule is LimitExceededException.
    moto: takes it.
    """

    @replace(EventsBackend, "put_targets")
    def put(original: Any, backend: Any, name: str, bus: Any, targets: "list[dict[str, Any]]") -> Any:
        rule = backend._get_event_bus(backend._normalize_event_bus_arn(bus)).rules.get(name)
        ids = {target["Id"] for target in [*(rule.targets if rule else []), *targets]}
        if len(ids) > 5:
            message = "The requested resource exceeds the maximum number allowed."
            raise JsonRESTError("LimitExceededException", message)
        return original(backend, name, bus, targets)


def a_queues_policy_says_which_rules_send_to_it() -> None:
    """AWS: a rule sends to a queue only if the queue's policy lets EventBridge do so, with the rule as aws:SourceArn
    (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-resource-based.html); other events are dropped.
    moto: sends them all.
    """

    @replace(Rule, "_send_to_sqs_queue")
    def send(original: Any, rule: Any, name: str, event: "dict[str, Any]", group: Any = None) -> None:
        queue = sqs_backends[rule.account_id][rule.region_name].queues.get(name)
        context = {
            "aws:principalisawsservice": ["true"],
            "aws:sourceaccount": [rule.account_id],
            "aws:sourcearn": [rule.arn],
        }
        documents = [queue.policy] if queue is not None and queue.policy else []
        if documents and evaluate(documents, "sqs:SendMessage", queue.queue_arn, context) is Verdict.ALLOWED:
            original(rule, name, event, group)
