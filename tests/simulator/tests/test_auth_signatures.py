"""Strict: what is not signed right is refused, in the words of each service."""

from __future__ import annotations

import datetime
from typing import Any

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import pytest

from .conftest import REGION
from .strict import Keys, Signing, Strict, allow, refusal, send

IDENTITY = b"Action=GetCallerIdentity&Version=2011-06-15"
FORM = "application/x-www-form-urlencoded; charset=utf-8"
# A call of each service that kctl and the machines use.
CALLS = {
    "ec2": "describe_vpcs",
    "autoscaling": "describe_auto_scaling_groups",
    "elbv2": "describe_load_balancers",
    "iam": "list_roles",
    "route53": "list_hosted_zones",
    "sqs": "list_queues",
    "events": "list_rules",
    "s3": "list_buckets",
    "sts": "get_caller_identity",
}
# Service -> code and status for a wrong secret, and for a key nobody has.
WRONG = {
    "ec2": [("AuthFailure", 401), ("AuthFailure", 401)],
    "s3": [("SignatureDoesNotMatch", 403), ("InvalidAccessKeyId", 403)],
    "sqs": [("InvalidSignatureException", 400), ("UnrecognizedClientException", 400)],
    "events": [("InvalidSignatureException", 400), ("UnrecognizedClientException", 400)],
}
OTHERS = [("SignatureDoesNotMatch", 403), ("InvalidClientTokenId", 403)]


@pytest.fixture
def keys(strict: Strict) -> Keys:
    """A session that may do anything."""
    return strict.allowed(allow("*"))


def at(monkeypatch: Any, minutes: float) -> None:
    """botocore signs as if it were that much later."""
    moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=minutes)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda remove_tzinfo=True: moment.replace(tzinfo=None))


@pytest.mark.parametrize("service", CALLS)
def test_what_is_signed_right_passes(strict, keys, service):
    getattr(strict.client(service), CALLS[service])()
    getattr(strict.client_for(keys, service), CALLS[service])()


@pytest.mark.parametrize("service", CALLS)
def test_a_wrong_secret_and_an_unknown_key_are_refused(strict, keys, service):
    liar = strict.client_for(keys._replace(secret="x" * 40), service)
    stranger = strict.client_for(Keys("AKIAIOSFODNN7EXAMPLE", "x" * 40), service)
    found = [refusal(getattr(client, CALLS[service]))[:2] for client in (liar, stranger)]
    assert found == WRONG.get(service, OTHERS)


@pytest.mark.parametrize("service", CALLS)
def test_a_token_belongs_to_its_key(strict, keys, service):
    other = strict.allowed(allow("*"))
    expected = {"ec2": "AuthFailure", "s3": "InvalidToken"}.get(service, WRONG.get(service, OTHERS)[1][0])
    for token in (None, other.token, "x"):
        assert refusal(getattr(strict.client_for(keys._replace(token=token), service), CALLS[service]))[0] == expected
    with_token = strict.client_for(strict.keys._replace(token=keys.token), service)
    assert refusal(getattr(with_token, CALLS[service]))[0] == expected


@pytest.mark.parametrize("service, path, method", [("sts", "/", "POST"), ("s3", "/nothing/key", "PUT")])
def test_whatever_is_changed_on_the_way_is_noticed(strict, keys, service, path, method):
    signing = Signing(strict, keys, service)
    body = IDENTITY if service == "sts" else b"content"

    def made() -> Any:
        return signing.request(method, path, body, Content_Type=FORM, X_Amz_Meta_A="one")

    assert send(made()).status == (200 if service == "sts" else 404)
    header, added, unsigned_token, host = made(), made(), made(), made()
    header.headers.replace_header("X-Amz-Meta-A", "two")
    host.headers["Host"] = "localhost"
    added.headers["X-Amz-More"] = "1"
    unsigned_token.headers["Authorization"] = unsigned_token.headers["Authorization"].replace(
        ";x-amz-security-token", ""
    )
    mismatch = "SignatureDoesNotMatch"
    altered = {
        "body": (send(made(), body=b"x" + body[1:]), "XAmzContentSHA256Mismatch" if service == "s3" else mismatch),
        "query": (send(made(), target=path + "?a=b"), mismatch),
        "path": (send(made(), target="/other"), mismatch),
        "header": (send(header), mismatch),
        "host": (send(host), mismatch),
        "header added": (send(added), "AccessDenied" if service == "s3" else mismatch),
        "unsigned token": (send(unsigned_token), mismatch),
    }
    for what, (answer, code) in altered.items():
        assert answer.status in (400, 403) and f"<Code>{code}</Code>" in answer.body, (what, answer)


@pytest.mark.parametrize("minutes, passes", [(-14, True), (14, True), (-16, False), (16, False)])
def test_the_date_may_be_a_quarter_of_an_hour_off(strict, keys, monkeypatch, minutes, passes):
    clients = {service: strict.client_for(keys, service) for service in ("sts", "ec2", "s3", "sqs")}
    at(monkeypatch, minutes)
    if passes:
        for service, client in clients.items():
            getattr(client, CALLS[service])()
        return
    found = {service: refusal(getattr(client, CALLS[service])) for service, client in clients.items()}
    assert {service: code for service, (code, _, _) in found.items()} == {
        "sts": "SignatureDoesNotMatch",
        "ec2": "RequestExpired",
        "s3": "RequestTimeTooSkewed",
        "sqs": "InvalidSignatureException",
    }
    assert ("Signature expired" if minutes < 0 else "Signature not yet current") in found["sts"][2]


@pytest.mark.parametrize("minutes, passes", [(0, True), (-14, True), (-16, False)])
def test_a_url_may_be_signed_before_with_headers_that_come_with_it(strict, keys, monkeypatch, minutes, passes):
    at(monkeypatch, minutes)
    request = botocore.awsrequest.AWSRequest(
        "GET", f"{strict.endpoint}/?{IDENTITY.decode()}", headers={"x-k8s-aws-id": "one"}
    )
    signer = botocore.auth.SigV4QueryAuth(botocore.credentials.Credentials(*keys), "sts", REGION, expires=60)
    signer.add_auth(request)
    assert send(request).status == (200 if passes else 403)
    target = request.url.removeprefix(strict.endpoint)
    assert send(request, target=target.replace("GetCallerIdentity", "GetSessionToken")).status == 403
    request.headers.replace_header("x-k8s-aws-id", "other")
    assert send(request).status == 403


def test_the_scope_is_of_the_place_that_is_asked(strict, keys):
    found = {
        service: refusal(getattr(strict.client_for(keys, service, "mars-1"), CALLS[service]))[0]
        for service in ("sts", "ec2", "s3")
    }
    assert found == {"sts": "SignatureDoesNotMatch", "ec2": "AuthFailure", "s3": "AuthorizationHeaderMalformed"}
    request = Signing(strict, keys, "iam", "eu-west-1").request("GET", "/?Action=ListRoles&Version=2010-05-08")
    assert "valid region, not 'eu-west-1'" in send(request).body.replace("&apos;", "'")
    request = Signing(strict, keys, "sts", "eu-west-1").request(
        "POST", "/", IDENTITY, Content_Type=FORM, Host="sts.us-east-1.amazonaws.com"
    )
    assert "valid region" in send(request).body
    request = Signing(strict, keys, "sts").request("POST", "/", IDENTITY, Content_Type=FORM, Host="iam.amazonaws.com")
    assert "correct service: 'iam'" in send(request).body.replace("&apos;", "'")


@pytest.mark.parametrize("key", ["a b", "a+b", "ü/é", "a%2Fb", "a//b", "a/../b", "./a", "(x)~*'!", "q?x=1&y", "a=b;c"])
def test_the_path_of_an_object_is_signed_as_it_is(strict, keys, key):
    bucket = strict.unique("bucket")
    client = strict.client_for(keys, "s3")
    client.create_bucket(Bucket=bucket)
    client.put_object(Bucket=bucket, Key=key, Body=key.encode(), Metadata={"one": "  two   spaces "})
    assert client.get_object(Bucket=bucket, Key=key)["Body"].read() == key.encode()
    assert [item["Key"] for item in client.list_objects_v2(Bucket=bucket, Prefix=key)["Contents"]] == [key]


@pytest.mark.parametrize("unsigned", [False, True])
def test_a_body_is_what_its_hash_says_unless_it_says_nothing(strict, keys, unsigned, monkeypatch):
    bucket = strict.unique("bucket")
    strict.s3.create_bucket(Bucket=bucket)
    if unsigned:
        monkeypatch.setattr(botocore.auth.S3SigV4Auth, "payload", lambda *_: "UNSIGNED-PAYLOAD")
    request = Signing(strict, keys, "s3").request("PUT", f"/{bucket}/k", b"content")
    assert send(request).status == 200
    assert send(request, body=b"altered").status == (200 if unsigned else 400)
    assert strict.s3.get_object(Bucket=bucket, Key="k")["Body"].read() == (b"altered" if unsigned else b"content")
