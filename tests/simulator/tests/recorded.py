"""Answers recorded from AWS: which cases the simulator has to answer alike, and why the others do not apply.

A case is a function that makes its requests again and returns the answers by the names of its recorded steps. `recorded.json` has
what AWS answered; in it, `<...>`, `datetime` and the like stand for what differs each time.
"""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from typing import Any, Callable, Iterator, NamedTuple

from botocore.exceptions import ClientError

# What AWS answered in the cases below (`KCTL_AWS_RECORDED=FOLDER python -m simulator.tests.recorded_table` writes it).
FACTS = Path(__file__).with_name("recorded.json")
# Fields of answers that nothing of kctl reads, and that the simulator answers otherwise or not at all.
UNREAD = (
    "AccessPointAlias", "BucketArn", "ChecksumAlgorithm", "ChecksumCRC32", "ChecksumCRC64NVME", "ChecksumType", "ContinuationToken",
    "GroupLongName", "GroupName", "HTTPHeaders", "Location", "NetworkBorderGroup", "OptInStatus", "ServerSideEncryption",
    "complete-multipart-checksum.ChecksumSHA256",
)  # fmt: skip
# What is compared of an error: the rest of it differs by service, and nobody reads it.
ERROR = ("Code", "Message")


class Case(NamedTuple):
    """A recorded case, the steps of it that are for calls which kctl does not make, and who makes the others again."""

    name: str
    without: "tuple[str, ...]"
    play: "Callable[[Any], dict[str, Any]]"


CASES: "dict[str, Case]" = {}


def recorded(file: str, *names: str, without: "tuple[str, ...]" = ()) -> "Callable[[Any], Any]":
    """Marks a function as the requests of these cases, which differ in nothing that matters here."""

    def mark(play: Any) -> Any:
        for name in names:
            CASES[f"{file} {name}"] = Case(f"{file} {name}", without, play)
        return play

    return mark


def answer(call: Any, /, **values: Any) -> "dict[str, Any]":
    """What a call answers, be it an error; a body is read."""
    try:
        found = dict(call(**values))
    except ClientError as error:
        return dict(error.response)
    if hasattr(found.get("Body"), "read"):
        found["Body"] = found["Body"].read().decode("latin-1")
    return found


def facts() -> "dict[str, dict[str, Any]]":
    """What AWS answered, by case and step."""
    found: "dict[str, dict[str, Any]]" = json.loads(FACTS.read_text())
    return found


def differences(said: Any, found: Any, path: str = "") -> "Iterator[str]":
    """Where an answer is not the recorded one. More than the recorded is none."""
    if isinstance(said, dict):
        if not isinstance(found, dict):
            yield f"{path}: {found!r} in place of {said!r}"
            return
        for name, value in said.items():
            if name in UNREAD or f"{path}.{name}" in UNREAD or ("Code" in said and name not in ERROR):
                continue
            if name not in found and value not in ([], {}):
                yield f"{path}.{name}: absent, AWS says {value!r}"
            elif name in found:
                yield from differences(value, found[name], f"{path}.{name}")
    elif isinstance(said, list) and isinstance(found, list):
        if len(said) != len(found):
            yield f"{path}: {len(found)} in place of {len(said)}: {found!r}"
        for number, pair in enumerate(zip(said, found)):
            yield from differences(*pair, f"{path}[{number}]")
    elif isinstance(said, str):
        if not re.fullmatch(_pattern(said), _text(found), re.DOTALL):
            yield f"{path}: {found!r} in place of {said!r}"
    elif said != found:
        yield f"{path}: {found!r} in place of {said!r}"


def _pattern(said: str) -> str:
    """What a recorded text allows."""
    if said in ("datetime", "date", "timestamp", "i-d"):
        return ".*"
    parts = re.split(r"<<?[^<>]+>(?::\d+>)?", said)
    return ".*".join(re.escape(part).replace("111111111111", r"\d{12}") for part in parts)


def _text(found: Any) -> str:
    if isinstance(found, datetime.datetime):
        return found.isoformat()
    return found if isinstance(found, str) else json.dumps(found)
