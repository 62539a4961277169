"""Things that AWS finishes later: a queue of functions, run once their time has come.

Nothing runs in the background. The server calls `run_due` before each request, under its
lock, so a client sees a state change exactly as if it had happened between two of its calls.
Whoever waits for a change (`machines/feed.py`) wakes up when the next one is due.
"""

from __future__ import annotations

import time
from typing import Any, Callable, NamedTuple, Optional


class _Entry(NamedTuple):
    when: float
    finish: "Callable[[], None]"
    asked_for: bool


class Later:
    """What is still to happen. A delay of zero means: at once, inside the call."""

    def __init__(self, delay: float) -> None:
        self.delay = delay
        self.lag = 0.0
        self.vcpus: Optional[int] = None
        self.quotas: "dict[str, float]" = {}
        self._ahead = 0.0
        self._made: "dict[str, float]" = {}
        self._due: "list[_Entry]" = []
        self._views: "dict[int, Any]" = {}
        self._views_end = 0.0

    def add(self, finish: "Callable[[], None]") -> None:
        """Runs `finish` after the delay: what AWS takes its time for."""
        if self.delay <= 0:
            finish()
        else:
            self._due.append(_Entry(self.now() + self.delay, finish, False))

    def after(self, seconds: float, finish: "Callable[[], None]") -> None:
        """Runs `finish` in `seconds`, whatever the delay is: a time that a client has set, such as
        the heartbeat timeout of a lifecycle hook. `run_all` does not hasten it, `advance` does."""
        self._due.append(_Entry(self.now() + seconds, finish, True))

    def next_in(self) -> Optional[float]:
        """Seconds until the next function is due; None if nothing waits."""
        return max(0.0, min(entry.when for entry in self._due) - self.now()) if self._due else None

    def run_due(self) -> bool:
        """Runs, oldest first, everything whose time has come; says whether there was anything."""
        now = self.now()
        ready = sorted((entry for entry in self._due if entry.when <= now), key=lambda entry: entry.when)
        self._due = [entry for entry in self._due if entry.when > now]
        for entry in ready:
            entry.finish()
        return bool(ready)

    def run_all(self) -> None:
        """Runs everything that was added, due or not."""
        pending = sorted((entry for entry in self._due if not entry.asked_for), key=lambda entry: entry.when)
        self._due = [entry for entry in self._due if entry.asked_for]
        for entry in pending:
            entry.finish()

    def advance(self, seconds: float) -> None:
        """Moves the clock of this queue ahead, and runs what is due by then."""
        self._ahead += seconds
        self.run_due()

    def mark_created(self, identity: str) -> None:
        """Something was made now, which other services see after `lag` seconds."""
        self._made.setdefault(identity, self.now())

    def is_unseen(self, identity: str) -> bool:
        """Whether it was made so short a time ago that other services do not see it."""
        return identity in self._made and self.now() - self._made[identity] < self.lag

    def hold_views(self, seconds: float, views: "dict[int, Any]") -> None:
        """For so many seconds some descriptions are of these views, by identity of the backend."""
        self._views, self._views_end = views, self.now() + seconds

    def old_view(self, backend: Any) -> Any:
        """What a backend's descriptions are of; None: of what is there now."""
        return self._views.get(id(backend)) if self.now() < self._views_end else None

    def clear(self) -> None:
        """Forgets everything (after a reset the objects are gone)."""
        self._due = []
        self._made = {}
        self._views_end = 0.0
        self.lag = 0.0
        self.vcpus = None
        self.quotas = {}

    def now(self) -> float:
        """Seconds on the clock of this queue."""
        return time.monotonic() + self._ahead
