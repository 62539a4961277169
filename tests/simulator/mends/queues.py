"""SQS queues."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from moto.sqs.models import SQSBackend

from .patch import replace

if TYPE_CHECKING:
    from . import Options

# How often a waiting receiver looks: less than a client notices.
_LOOK = 0.1


def receiving_holds_nobody_up(options: "Options") -> None:
    """Not a mend of behaviour: moto waits for messages inside the call, and with it, here, every other call
    would wait. A receiver gives up the server's lock while there is nothing for it.
    """
    lock = threading.Condition(options.lock)

    @replace(SQSBackend, "receive_message")
    def receive(original: Any, backend: Any, queue: str, count: int, wait: int, *more: Any, **named: Any) -> Any:
        end = time.monotonic() + int(wait or 0)
        while True:
            found = original(backend, queue, count, 0, *more, **named)
            left = end - time.monotonic()
            if found or left <= 0:
                return found
            lock.wait(min(left, _LOOK))
            options.later.run_due()


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
