"""One launcher and one bare moto per session, with the same environment.

`aws` is the launcher. `both` runs a test twice: on the launcher, where it has to pass, and on bare
moto, where it has to fail. A test that passes on bare moto means that the mend can go.
"""

from __future__ import annotations

import itertools
import json
import os
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

BARE = """
import os, sys
from simulator import seed
os.environ.update(seed.environment())
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server
program = DomainDispatcherApplication(create_backend_app)
server = make_server("127.0.0.1", 0, program, True, request_handler=MotoRequestHandler)
print("listening on http://127.0.0.1:%d" % server.server_address[1], flush=True)
server.serve_forever()
"""


class Server:
    """A running server: clients, control calls, and the names of things made in it."""

    def __init__(self, endpoint: str, mended: bool, events: Any = None) -> None:
        self.endpoint = endpoint
        self.mended = mended
        self.events_file = events
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


def start(command: "list[str]", log: Path) -> "tuple[subprocess.Popen[str], str]":
    """Starts a server, its errors in `log`; returns it and its address."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    with log.open("w") as errors:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("listening on "):
            return process, line.split()[-1]
    raise RuntimeError(f"{command} ended with {process.wait()}: {log.read_text()}")


@pytest.fixture(scope="session")
def servers(tmp_path_factory: Any) -> Any:
    """Both servers, started at once."""
    folder = tmp_path_factory.mktemp("simulator")
    events = folder / "events.jsonl"
    launcher = [sys.executable, "-m", "simulator", "--settle", "0.6", "--state-events", str(events)]
    mended, mended_url = start(launcher, folder / "mended.log")
    bare, bare_url = start([sys.executable, "-c", BARE], folder / "bare.log")
    yield {"mended": Server(mended_url, True, events), "bare": Server(bare_url, False)}
    for process in (mended, bare):
        process.terminate()
        process.wait()


@pytest.fixture
def aws(servers: Any) -> Server:
    """The launcher."""
    return servers["mended"]


@pytest.fixture
def bare(servers: Any) -> Server:
    """Bare moto."""
    return servers["bare"]


@pytest.fixture(params=["mended", "bare"])
def both(request: Any, servers: Any) -> Server:
    """The launcher and, expected to fail, bare moto."""
    if request.param == "bare":
        request.applymarker(pytest.mark.xfail(strict=True, reason="bare moto needs the mend"))
    return servers[request.param]


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
