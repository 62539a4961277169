"""Things that AWS finishes later: a queue of functions, run once their time has come.

Nothing runs in the background. The server calls `run_due` before each request, under its
lock, so a client sees a state change exactly as if it had happened between two of its calls.
"""

from __future__ import annotations

import time
from typing import Callable


class Later:
    """What is still to happen. A delay of zero means: at once, inside the call."""

    def __init__(self, delay: float) -> None:
        self.delay = delay
        self._due: list[tuple[float, Callable[[], None]]] = []

    def add(self, finish: Callable[[], None]) -> None:
        """Runs `finish` after the delay."""
        if self.delay <= 0:
            finish()
        else:
            self._due.append((time.monotonic() + self.delay, finish))

    def run_due(self) -> None:
        """Runs, oldest first, everything whose time has come."""
        now = time.monotonic()
        ready = [finish for when, finish in self._due if when <= now]
        self._due = [entry for entry in self._due if entry[0] > now]
        for finish in ready:
            finish()

    def run_all(self) -> None:
        """Runs everything there is, due or not."""
        pending, self._due = self._due, []
        for _, finish in sorted(pending, key=lambda entry: entry[0]):
            finish()

    def clear(self) -> None:
        """Forgets everything (after a reset the objects are gone)."""
        self._due = []
