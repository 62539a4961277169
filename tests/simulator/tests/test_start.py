"""From the first answer on nothing is forgotten."""

from __future__ import annotations

import itertools
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from .conftest import Server, start


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_what_is_answered_while_it_starts_is_kept(tmp_path: Path) -> None:
    port = _free_port()
    address = f"http://127.0.0.1:{port}"
    made: "list[str]" = []
    ended = threading.Event()

    def make_buckets() -> None:
        for number in itertools.count():
            try:
                urllib.request.urlopen(urllib.request.Request(f"{address}/early-{number}", method="PUT")).read()
                made.append(f"early-{number}")
            except urllib.error.URLError:
                time.sleep(0.01)  # nobody listens yet
            if made and ended.is_set():
                return

    client = threading.Thread(target=make_buckets, daemon=True)
    client.start()
    process, url = start([sys.executable, "-m", "simulator", "--port", str(port)], tmp_path / "log")
    try:
        ended.set()
        client.join(30)
        answer: Any = Server(url, True).client("s3").list_buckets()
        assert made and {bucket["Name"] for bucket in answer["Buckets"]} == set(made)
    finally:
        process.terminate()
        process.wait()


def test_a_port_that_is_taken_is_said_at_once(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        command = [sys.executable, "-m", "simulator", "--port", str(taken.getsockname()[1])]
        environment = {"PYTHONPATH": str(Path(__file__).resolve().parents[2]), "PATH": "/usr/bin:/bin"}
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode != 0 and "in use" in ended.stderr
