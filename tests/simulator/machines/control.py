"""The control endpoints for whoever runs the machines."""

from __future__ import annotations

import json
from typing import Any, Optional
from urllib.parse import parse_qs


def answer(state: Any, method: str, name: str, query: str, body: bytes) -> "Optional[tuple[str, Any]]":
    """Status and document, or None for what is no endpoint of ours. Takes the lock itself: `world` waits."""
    if (method, name) == ("GET", "world"):
        return "200 OK", _world(state, query)
    with state.lock:
        if state.later.run_due():
            state.feed.touch()
        if method == "GET" and name.startswith("metadata/"):
            return _metadata(state, name[len("metadata/") :])
        if (method, name) == ("POST", "interrupt"):
            return _interrupt(state, str(json.loads(body)))
        if (method, name) == ("POST", "report"):
            return _report(state, json.loads(body))
    return None


def _world(state: Any, query: str) -> Any:
    asked = parse_qs(query)
    after = asked.get("after", [""])[0]
    seconds = float(asked.get("wait", ["0"])[0])
    return state.feed.wait(int(after) if after else None, seconds, asked.get("region", [None])[0])


def _metadata(state: Any, instance_id: str) -> "tuple[str, Any]":
    from .metadata import find, metadata

    instance = find(instance_id)
    if instance is None or instance.state == "terminated":
        return "404 Not Found", {"error": f"no instance {instance_id}"}
    return "200 OK", metadata(instance, state.sessions.for_instance)


def _interrupt(state: Any, instance_id: str) -> "tuple[str, Any]":
    from ..mends import events
    from .metadata import find

    instance = find(instance_id)
    if instance is None or instance.state != "running":
        return "404 Not Found", {"error": f"no running instance {instance_id}"}
    events.interrupt_spot(state.later, instance)
    return "200 OK", {}


def _report(state: Any, document: "dict[str, Any]") -> "tuple[str, Any]":
    from .report import take_report

    unknown = take_report(document)
    state.feed.touch()
    return "200 OK", {"unknown": unknown}
