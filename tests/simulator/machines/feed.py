"""The world as something to wait for: one document per region, and a serial that grows when one differs.

A document is made again only when somebody asks after a call that may have changed something,
or after something happened later. Waiting does not hold the server's lock.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Optional

from ..operations import Call
from ..settle import Later

_READS = ("Describe", "Get", "List", "Head", "Assume", "Receive", "Lookup", "Simulate", "Test")
_ELSEWHERE = ("s3", "sqs", "sts")


def may_change(call: Call) -> bool:
    """Whether this call can make the world another one."""
    return call.service not in _ELSEWHERE and not call.operation.startswith(_READS)


class Feed:
    """Guarded by the server's lock, which `wait` gives up while it waits."""

    def __init__(self, lock: Any, later: Later, region: Optional[str] = None) -> None:
        self._changed = threading.Condition(lock)
        self._later = later
        self._region = region
        self._serial = 0
        self._stale: "set[str]" = set()
        self._documents: "dict[str, dict[str, Any]]" = {}

    def touch(self) -> None:
        """The world may have changed: documents are made again when they are asked for."""
        with self._changed:
            self._stale |= set(self._documents)
            self._changed.notify_all()

    def wait(self, after: Optional[int], seconds: float, region: Optional[str]) -> "dict[str, Any]":
        """The region's world once its serial is another than `after`, or when the time is over."""
        end = time.monotonic() + seconds
        with self._changed:
            while True:
                if self._later.run_due():
                    self.touch()
                found = self._document(region or self._region or _region_with_instances())
                left = end - time.monotonic()
                if found["serial"] != after or left <= 0:
                    return found
                due = self._later.next_in()
                self._changed.wait(left if due is None else min(left, due + 0.001))

    def _document(self, region: str) -> "dict[str, Any]":
        from .world import world

        known = self._documents.get(region)
        if known is not None and region not in self._stale:
            return known
        now = world(region)
        self._stale.discard(region)
        if known is None or {**known, "serial": 0} != now:
            self._serial += 1
            self._documents[region] = {**now, "serial": self._serial}
        return self._documents[region]


def _region_with_instances() -> str:
    """The region that has instances, else one that has a VPC, else us-east-1."""
    from moto.core import DEFAULT_ACCOUNT_ID
    from moto.ec2.models import ec2_backends

    backends = {region: backend for region, backend in ec2_backends[DEFAULT_ACCOUNT_ID].items()}
    for has in (lambda backend: backend.reservations, lambda backend: backend.vpcs):
        found = sorted(region for region, backend in backends.items() if has(backend))
        if found:
            return found[0]
    return "us-east-1"
