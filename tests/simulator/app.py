"""The WSGI program around moto: one lock, counts of calls, faults, latency, control endpoints."""

from __future__ import annotations

import io
import json
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Iterable, Optional

from . import faults, foreign_tags
from .machines import control as machines
from .machines.feed import Feed, may_change
from .operations import CALL, identify
from .settle import Later

if TYPE_CHECKING:  # they import moto, which the environment has to be set for first
    from .auth.gate import Gate
    from .auth.sessions import Sessions

CONTROL = "/_simulator/"

Wsgi = Callable[["dict[str, Any]", Callable[..., Any]], Iterable[bytes]]


@dataclass
class State:
    """What the control endpoints read and write. All of it is guarded by `lock`.

    `sessions`: the credentials of instances, with and without `gate`, which is there with `--strict`.
    """

    later: Later
    sessions: "Optional[Sessions]" = None
    gate: "Optional[Gate]" = None
    lock: Any = field(default_factory=threading.RLock)
    calls: "Counter[str]" = field(default_factory=Counter)
    underway: int = 0
    faults: "list[faults.Fault]" = field(default_factory=list)
    latency: float = 0.0
    foreign_tags: "dict[str, str]" = field(default_factory=dict)
    region: Optional[str] = None
    feed: Feed = field(init=False)

    def __post_init__(self) -> None:
        self.feed = Feed(self.lock, self.later, self.region)


def application(moto: Wsgi, state: State) -> Wsgi:
    """The whole program: `moto` answers AWS calls, everything under `/_simulator/` is ours."""

    def call(environ: "dict[str, Any]", start_response: Callable[..., Any]) -> Iterable[bytes]:
        body = _read_body(environ)
        path = environ.get("PATH_INFO", "")
        if path.startswith(CONTROL) and not _is_aws(state, environ):
            return _control(state, environ, path[len(CONTROL) :], body, start_response)
        with state.lock:
            state.underway += 1
        try:
            if state.latency:
                time.sleep(state.latency)
            return _aws_call(moto, state, environ, body, start_response)
        finally:
            with state.lock:
                state.underway -= 1

    return call


def _is_aws(state: State, environ: "dict[str, Any]") -> bool:
    """With `--strict` AWS's own host names lead to AWS only, whatever the path: `/_simulator/` may be an object's."""
    return state.gate is not None and ".amazonaws.com" in environ.get("HTTP_HOST", "").lower()


def _aws_call(moto: Wsgi, state: State, environ: "dict[str, Any]", body: bytes, start_response: Any) -> Iterable[bytes]:
    """Counts the call, asks the gate, lets moto answer it, or fails it before or after moto has seen it."""
    call = environ[CALL] = identify(environ, body)
    with state.lock:
        state.calls[f"{call.service}.{call.operation}"] += 1
        answer = state.gate.answer(environ, body, call) if state.gate else None
        if answer is not None:
            return _answered(environ, *answer, start_response)
        if may_change(call):
            state.feed.touch()
        fault = faults.first_hit(state.faults, call, environ.get("PATH_INFO", ""))
        if fault is None:
            return _locked(moto, state, environ, start_response)
        if fault.after:
            _locked(moto, state, environ, lambda *_args, **_kwargs: None)
    if fault.code == faults.KILL:
        return _kill(environ, start_response)
    headers, text = faults.document(fault, call)
    return _answered(environ, fault.status, headers, text, start_response)


def _answered(
    environ: "dict[str, Any]", status: int, headers: Any, text: bytes, start_response: Any
) -> Iterable[bytes]:
    """An answer of ours instead of moto's."""
    start_response(f"{status} Simulated", [*headers, ("Content-Length", str(len(text)))])
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [text]


def _locked(moto: Wsgi, state: State, environ: "dict[str, Any]", start_response: Any) -> Iterable[bytes]:
    """moto has no locks of its own: one request at a time, its answer read to the end."""
    with state.lock:
        if state.later.run_due():
            state.feed.touch()
        if state.foreign_tags:
            foreign_tags.put(state.foreign_tags)
        answer = moto(environ, start_response)
        try:
            return [b"".join(answer)]
        finally:
            close = getattr(answer, "close", None)
            if close is not None:
                close()


def _kill(environ: "dict[str, Any]", start_response: Any) -> Iterable[bytes]:
    """Closes the connection without a byte of answer, as a dying load balancer would."""
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    start_response("500 Killed", [("Content-Length", "0"), ("Connection", "close")])
    return []


def _control(state: State, environ: "dict[str, Any]", name: str, body: bytes, start_response: Any) -> Iterable[bytes]:
    """The control endpoints; the README lists them."""
    method = environ["REQUEST_METHOD"]
    try:
        found = machines.answer(state, method, name, environ.get("QUERY_STRING", ""), body)
        if found is None:
            with state.lock:
                found = _control_action(state, method, name, body)
                state.feed.touch()
        status, answer = found
    except (ValueError, TypeError) as error:
        status, answer = "400 Bad Request", {"error": str(error)}
    text = json.dumps(answer, sort_keys=True).encode()
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(text)))])
    return [text]


def _control_action(state: State, method: str, name: str, body: bytes) -> "tuple[str, Any]":
    if (method, name) == ("GET", "calls"):
        s3 = sum(count for call, count in state.calls.items() if call.startswith("s3."))
        total = sum(state.calls.values())
        counts = {"calls": dict(state.calls), "total": total, "s3": s3, "aws": total - s3}
        return "200 OK", {**counts, "underway": state.underway}
    if (method, name) == ("POST", "calls/reset"):
        state.calls.clear()
    elif (method, name) == ("POST", "reset"):
        reset(state)
    elif (method, name) == ("POST", "faults"):
        state.faults = faults.parse(json.loads(body or b"[]"))
    elif (method, name) == ("GET", "faults"):
        return "200 OK", [vars(fault) for fault in state.faults]
    elif (method, name) == ("POST", "settle"):
        state.later.run_all()
        state.later.delay = float(body) if body else state.later.delay
    elif (method, name) == ("POST", "latency"):
        state.latency = float(body or b"0") / 1000.0
    elif (method, name) == ("POST", "lag"):
        state.later.lag = float(body or b"0")
    elif (method, name) == ("POST", "vcpus"):
        state.later.vcpus = int(body) if body else None
    elif (method, name) == ("POST", "quotas"):
        state.later.quotas = {code: float(value) for code, value in dict(json.loads(body or b"{}")).items()}
    elif (method, name) == ("POST", "foreign-tags"):
        state.foreign_tags = _tags(json.loads(body or b"{}"))
    elif (method, name) == ("POST", "clock"):
        state.later.advance(float(body))
    elif (method, name) == ("POST", "stale"):
        from .mends.volumes import volumes_as_they_are

        state.later.hold_views(float(body), volumes_as_they_are())
    else:
        return "404 Not Found", {"error": f"no control endpoint {method} {name}"}
    return "200 OK", {}


def _tags(of: Any) -> "dict[str, str]":
    """Tags from their JSON form; anything else is an error."""
    if not isinstance(of, dict) or not all(isinstance(value, str) for value in of.values()):
        raise ValueError("tags are a JSON object of strings")
    return of


def reset(state: State) -> None:
    """Empties every service (the images come back by themselves), the counts and the faults."""
    from moto.moto_api._internal.models import moto_api_backend

    moto_api_backend.reset()
    state.later.clear()
    state.calls.clear()
    state.faults = []
    state.latency = 0.0
    state.foreign_tags = {}
    if state.sessions:
        state.sessions.clear()
    if state.gate:
        state.gate.reset()


def _read_body(environ: "dict[str, Any]") -> bytes:
    """Reads the body before any lock is taken, and puts it back for moto."""
    stream = environ["wsgi.input"]
    if environ.get("wsgi.input_terminated"):
        body = stream.read()
        environ["CONTENT_LENGTH"] = str(len(body))
    else:
        body = stream.read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    return body
