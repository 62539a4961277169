"""A launcher with `--strict`: clients of any caller, requests signed by hand, roles with policies."""

from __future__ import annotations

import configparser
import http.client
import json
import socket
from pathlib import Path
from typing import Any, Mapping, NamedTuple, Optional
from urllib.parse import urlsplit

import boto3
import botocore.auth
import botocore.awsrequest
import botocore.config
import botocore.credentials
import pytest
from botocore.exceptions import ClientError

from .conftest import REGION, Server, start

ACCOUNT = "123456789012"


class Keys(NamedTuple):
    """Credentials of a caller."""

    access_key: str
    secret: str
    token: Optional[str] = None


class Answer(NamedTuple):
    """Status, headers (names in lower case) and body."""

    status: int
    headers: "dict[str, str]"
    body: str


class Strict(Server):
    """The launcher, seen by its administrator; others come with their own keys."""

    def __init__(self, endpoint: str, credentials: Path) -> None:
        super().__init__(endpoint)
        self.credentials = credentials
        file = configparser.ConfigParser()
        file.read(credentials)
        self.keys = Keys(file["default"]["aws_access_key_id"], file["default"]["aws_secret_access_key"])
        self._session = boto3.session.Session(region_name=REGION)

    def client(self, service: str, **config: Any) -> Any:
        """The administrator's client."""
        key = service + repr(sorted(config.items()))
        if key not in self._clients:
            self._clients[key] = self.client_for(self.keys, service, parameter_validation=False, **config)
        return self._clients[key]

    def client_for(self, keys: Keys, service: str, region: str = REGION, **more: Any) -> Any:
        """A client of another caller."""
        settings = botocore.config.Config(retries={"max_attempts": 0}, s3={"addressing_style": "path"}, **more)
        named = dict(zip(("aws_access_key_id", "aws_secret_access_key", "aws_session_token"), keys))
        return self._session.client(service, region, endpoint_url=self.endpoint, config=settings, **named)

    def role(self, *statements: "Mapping[str, Any]", trust: Any = None, **more: Any) -> str:
        """The name of a role with these statements in its policy, assumable by the account unless said otherwise."""
        name = self.unique("role")
        principal = {"Effect": "Allow", "Principal": {"AWS": ACCOUNT}, "Action": "sts:AssumeRole"}
        self.iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy(trust or principal), **more)
        if statements:
            self.iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=policy(*statements))
        return name

    def assume(self, role: str, by: Any = None, **more: Any) -> Keys:
        """Keys of a new session of a role."""
        arn = f"arn:aws:iam::{ACCOUNT}:role/{role}"
        answer = (by or self.sts).assume_role(RoleArn=arn, RoleSessionName="tester", **more)["Credentials"]
        return Keys(answer["AccessKeyId"], answer["SecretAccessKey"], answer["SessionToken"])

    def allowed(self, *statements: "Mapping[str, Any]") -> Keys:
        """Keys of a session that may do what the statements say."""
        return self.assume(self.role(*statements))


def policy(*statements: "Mapping[str, Any]") -> str:
    """A policy document."""
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def allow(actions: Any, resources: Any = "*", **conditions: Any) -> "dict[str, Any]":
    """An Allow statement; conditions by operator."""
    statement = {"Effect": "Allow", "Action": actions, "Resource": resources}
    return {**statement, "Condition": conditions} if conditions else statement


def refusal(call: Any, *args: Any, **kwargs: Any) -> "tuple[str, int, str]":
    """Code, status and words with which a call is refused; one that succeeds fails the test."""
    with pytest.raises(ClientError) as error:
        call(*args, **kwargs)
    response = error.value.response
    return (
        response["Error"]["Code"],
        response["ResponseMetadata"]["HTTPStatusCode"],
        response["Error"].get("Message", ""),
    )


class Signing(NamedTuple):
    """A request of STS or S3, to be signed by botocore, then changed and sent."""

    server: Strict
    keys: Keys
    service: str = "sts"
    region: str = REGION

    def request(self, method: str, path: str, body: bytes = b"", **headers: str) -> Any:
        """A signed request."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = botocore.awsrequest.AWSRequest(method, self.server.endpoint + path, headers=named, data=body)
        kind = botocore.auth.S3SigV4Auth if self.service == "s3" else botocore.auth.SigV4Auth
        kind(botocore.credentials.Credentials(*self.keys), self.service, self.region).add_auth(request)
        return request


def send(request: Any, body: Optional[bytes] = None, target: Optional[str] = None) -> Answer:
    """Sends a request as it stands, with another body or target if one is given."""
    prepared = request.prepare()
    url = urlsplit(prepared.url)
    connection = http.client.HTTPConnection(url.netloc, timeout=30)
    data = prepared.body if body is None else body
    path = target or (url.path or "/") + (f"?{url.query}" if url.query else "")
    connection.request(prepared.method, path, body=data, headers={k: _text(v) for k, v in prepared.headers.items()})
    answer = connection.getresponse()
    headers = {name.lower(): value for name, value in answer.getheaders()}
    text = answer.read().decode()
    connection.close()
    return Answer(answer.status, headers, text)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def launch(folder: Path, *options: str) -> "tuple[socket.socket, Strict]":
    """Another strict server, and what it lives as long as."""
    credentials = folder / "credentials"
    life, endpoint = start("--strict", "--operator-credentials", str(credentials), *options)
    return life, Strict(endpoint, credentials)


@pytest.fixture(scope="session")
def strict(tmp_path_factory: Any) -> Any:
    """The simulator with `--strict`."""
    life, server = launch(tmp_path_factory.mktemp("strict"), "--settle", "0")
    with life:
        yield server
