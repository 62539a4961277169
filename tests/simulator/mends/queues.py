"""SQS queues."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from moto.sqs.exceptions import QueueAlreadyExists
from moto.sqs.models import Queue, SQSBackend

from .patch import replace

if TYPE_CHECKING:
    from . import Options


def a_queue_of_the_name_may_have_other_attributes() -> None:
    """AWS: CreateQueue says which attribute of the queue that is there has another value.
    moto: says that there is one.
    """

    @replace(SQSBackend, "create_queue")
    def create(original: Any, backend: Any, name: str, tags: Any = None, **attributes: Any) -> Any:
        there = backend.queues.get(name)
        try:
            return original(backend, name, tags, **attributes)
        except QueueAlreadyExists:
            values = there.attributes
            other = next(key for key, value in attributes.items() if str(values.get(key)) != str(value))
            message = "A queue already exists with the same name and a different value for attribute "
            raise QueueAlreadyExists(message + other) from None


def a_policy_is_seen_late(options: "Options") -> None:
    """AWS: what SetQueueAttributes changes is described up to 60 seconds later.
    moto: describes it at once.
    """

    @replace(SQSBackend, "set_queue_attributes")
    def set_attributes(original: Any, backend: Any, queue: str, attributes: "dict[str, Any]") -> Any:
        now = {name: value for name, value in attributes.items() if name != "Policy"}
        answer = original(backend, queue, now)
        if "Policy" in attributes:
            options.later.add(lambda: original(backend, queue, {"Policy": attributes["Policy"]}))
        return answer


def waiting_for_messages_holds_nobody_up(options: "Options") -> None:
    """AWS: a ReceiveMessage that waits answers as soon as there is a message, and other calls go on meanwhile.
    moto: waits under the lock of this program, and looks once a second.
    """
    changed = threading.Condition(options.lock)

    @replace(Queue, "wait_for_messages")
    def wait(_original: Any, _queue: Any, _timeout: int) -> None:
        changed.wait(0.1)
