"""One simulator per session; where a module changes how it works, one of its own.

`aws` is the simulator. `both` is it too, or with `--bare` moto without a mend, where the test has to fail: one that passes
there means that its mend can go. That is asked when moto changes, and by `make soak`.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import boto3
import botocore.config
import pytest

ROOT = Path(__file__).resolve().parents[2]
REGION = "us-east-1"
_numbers = itertools.count(1)


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--bare", action="store_true", help="tests of mends only, on bare moto, where each has to fail")


def pytest_collection_modifyitems(config: Any, items: "list[Any]") -> None:
    """With `--bare` only what says that moto needs a mend."""
    if config.getoption("--bare"):
        items[:] = [item for item in items if "both" in item.fixturenames]
        for item in items:
            item.add_marker(pytest.mark.xfail(strict=True, reason="bare moto needs the mend"))


@functools.lru_cache(maxsize=1)
def _prefork() -> "tuple[subprocess.Popen[str], tuple[str, int]]":
    """A warm Python, which ends with this one, and its address."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "simulator.prefork"]
    process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    host, _, port = process.stdout.readline().split()[-1].partition(":")
    return process, (host, int(port))


def python(code: str) -> socket.socket:
    """Runs code in a warm Python; what it prints comes over the connection, with whose end the code has to end."""
    connection = socket.create_connection(_prefork()[1])
    connection.sendall(json.dumps(code).encode() + b"\n")
    return connection


def start(*options: str) -> "tuple[socket.socket, str]":
    """A simulator: what it lives as long as, and its address."""
    code = f"from simulator.__main__ import main\nmain({['--until-stdin-closes', *options]!r})"
    connection = python(code)
    with connection.makefile() as lines:
        said = lines.readline()
        assert said.startswith("listening on "), said + lines.read()
    return connection, said.split()[-1]


class Server:
    """A running server: clients, control calls, and the names of things made in it."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._clients: "dict[str, Any]" = {}
        self._session = boto3.session.Session(
            aws_access_key_id="test", aws_secret_access_key="test", region_name=REGION
        )

    def client(self, service: str, **config: Any) -> Any:
        """A client that does not retry, so that an error is one error."""
        key = service + repr(sorted(config.items()))
        if key not in self._clients:
            settings = botocore.config.Config(
                retries={"max_attempts": 0}, s3={"addressing_style": "path"}, parameter_validation=False, **config
            )
            self._clients[key] = self._session.client(service, endpoint_url=self.endpoint, config=settings)
        return self._clients[key]

    def __getattr__(self, service: str) -> Any:
        if service in ("ec2", "autoscaling", "elbv2", "iam", "route53", "sqs", "events", "s3", "sts"):
            return self.client(service)
        raise AttributeError(service)

    def control(self, method: str, name: str, body: Any = None) -> Any:
        """A call to a control endpoint."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.endpoint}/_simulator/{name}", data=data, method=method)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    @staticmethod
    def unique(prefix: str) -> str:
        """A name nobody else has."""
        return f"{prefix}-{next(_numbers)}"


@pytest.fixture(scope="session")
def aws() -> Any:
    """The simulator."""
    life, endpoint = start("--settle", "0.6")
    with life:
        yield Server(endpoint)


@pytest.fixture(scope="session")
def both(request: Any) -> Any:
    """The simulator or, with `--bare`, moto without a mend."""
    if not request.config.getoption("--bare"):
        return request.getfixturevalue("aws")
    life, endpoint = start("--bare")
    request.addfinalizer(life.close)
    return Server(endpoint)


from .strict import strict  # noqa: E402, F401  (a fixture; its module needs what is above)


def eventually(check: Any, seconds: float = 3.0) -> Any:
    """Waits until `check` returns something true, and returns that."""
    end = time.monotonic() + seconds
    while True:
        result = check()
        if result or time.monotonic() > end:
            assert result, "did not come about in time"
            return result
        time.sleep(0.05)
