"""Strict: what is not signed right is refused, in the words of each service."""

from __future__ import annotations

import base64
import datetime
import hashlib
import io
import urllib.request
import zlib
from typing import Any

import botocore.auth
import pytest

from .strict import Keys, Signing, Strict, allow, refusal, send

IDENTITY = b"Action=GetCallerIdentity&Version=2011-06-15"
FORM = "application/x-www-form-urlencoded; charset=utf-8"
# A call of each service that kctl and the machines use.
CALLS = {
    "ec2": "describe_vpcs",
    "autoscaling": "describe_auto_scaling_groups",
    "elbv2": "describe_load_balancers",
    "elb": "describe_load_balancers",
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
    getattr(strict.of(keys, service), CALLS[service])()


@pytest.mark.parametrize("service", CALLS)
def test_a_wrong_secret_and_an_unknown_key_are_refused(strict, keys, service):
    liar = strict.of(keys._replace(secret="x" * 40), service)
    stranger = strict.of(Keys("AKIAIOSFODNN7EXAMPLE", "x" * 40), service)
    found = [refusal(getattr(client, CALLS[service]))[:2] for client in (liar, stranger)]
    assert found == WRONG.get(service, OTHERS)


@pytest.mark.parametrize("service", CALLS)
def test_a_token_belongs_to_its_key(strict, keys, service):
    other = strict.allowed(allow("*"))
    expected = {"ec2": "AuthFailure", "s3": "InvalidToken"}.get(service, WRONG.get(service, OTHERS)[1][0])
    for token in (None, other.token, "x"):
        assert refusal(getattr(strict.of(keys._replace(token=token), service), CALLS[service]))[0] == expected
    with_token = strict.of(strict.keys._replace(token=keys.token), service)
    assert refusal(getattr(with_token, CALLS[service]))[0] == expected


def test_without_a_signature_nothing_is_answered(strict):
    unsigned = {service: strict.of(strict.keys, service, signature_version=botocore.UNSIGNED) for service in CALLS}
    found = {service: refusal(getattr(client, CALLS[service]))[:2] for service, client in unsigned.items()}
    own = {
        "ec2": ("MissingParameter", 400),
        "s3": ("AccessDenied", 403),
        "sqs": ("MissingAuthenticationTokenException", 400),
        "events": ("MissingAuthenticationTokenException", 400),
    }
    assert found == {service: own.get(service, ("MissingAuthenticationToken", 403)) for service in CALLS}


@pytest.mark.parametrize("service, path, method", [("sts", "/", "POST"), ("s3", "/nothing/key", "PUT")])
def test_whatever_is_changed_on_the_way_is_noticed(strict, keys, service, path, method):
    signing = Signing(strict, keys, service)
    body = IDENTITY if service == "sts" else b"content"

    def made() -> Any:
        return signing.request(method, path, body, Content_Type=FORM, X_Amz_Meta="one")

    assert send(made()).status == (200 if service == "sts" else 404)
    header, added, unsigned_token, host = made(), made(), made(), made()
    header.headers.replace_header("X-Amz-Meta", "two")
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


def test_a_token_that_is_not_signed_is_refused(strict, keys):
    """Signed without the token, which is then added: the signature is right, but does not cover the token."""
    for service, path, code in [("sts", "/", "SignatureDoesNotMatch"), ("s3", "/", "AccessDenied")]:
        body = IDENTITY if service == "sts" else b""
        request = Signing(strict, keys._replace(token=None), service).request(
            "POST" if body else "GET", path, body, Content_Type=FORM
        )
        request.headers["X-Amz-Security-Token"] = keys.token
        answer = send(request)
        assert answer.status == 403 and code in answer.body and "igned" in answer.body, answer


@pytest.mark.parametrize("minutes, passes", [(-14, True), (14, True), (-16, False), (16, False)])
def test_the_date_may_be_a_quarter_of_an_hour_off(strict, keys, monkeypatch, minutes, passes):
    clients = {service: strict.of(keys, service) for service in ("sts", "ec2", "s3", "sqs")}
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


def test_the_scope_is_of_the_place_that_is_asked(strict, keys):
    found = {
        service: refusal(getattr(strict.of(keys, service, "mars-1"), CALLS[service]))[0]
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


def test_a_bucket_answers_in_its_own_region(strict, keys):
    bucket = strict.unique("bucket")
    strict.s3.create_bucket(Bucket=bucket)
    abroad = strict.of(keys, "s3", "eu-west-1")
    code, status, words = refusal(abroad.list_objects_v2, Bucket=bucket)
    assert (code, status) == ("AuthorizationHeaderMalformed", 400) and "expecting 'us-east-1'" in words
    assert abroad.get_bucket_location(Bucket=bucket)["LocationConstraint"] is None


def test_a_header_that_is_no_signature_is_said_so(strict, keys):
    for header, code in [
        ("Basic x", "InvalidRequest"),
        ("AWS4-HMAC-SHA256 Credential=a/b/c/s3/aws4_request", "AuthorizationHeaderMalformed"),
    ]:
        request = Signing(strict, keys, "s3").request("GET", "/")
        request.headers.replace_header("Authorization", header)
        assert code in send(request).body
    request = Signing(strict, keys, "s3").request("GET", "/")
    del request.headers["X-Amz-Date"]
    assert "AuthorizationHeaderMalformed" in send(request).body
    request = Signing(strict, keys, "s3").request("GET", "/")
    del request.headers["X-Amz-Content-SHA256"]
    assert "MissingSecurityHeader" in send(request).body


@pytest.mark.parametrize("key", ["a b", "a+b", "ü/é", "a%2Fb", "a//b", "a/../b", "./a", "(x)~*'!", "q?x=1&y", "a=b;c"])
def test_the_path_of_an_object_is_signed_as_it_is(strict, keys, key):
    bucket = strict.unique("bucket")
    client = strict.of(keys, "s3")
    client.create_bucket(Bucket=bucket)
    client.put_object(Bucket=bucket, Key=key, Body=key.encode(), Metadata={"one": "  two   spaces "})
    assert client.get_object(Bucket=bucket, Key=key)["Body"].read() == key.encode()
    assert [item["Key"] for item in client.list_objects_v2(Bucket=bucket, Prefix=key)["Contents"]] == [key]
    presigner = strict.of(keys, "s3", signature_version="s3v4")
    url = presigner.generate_presigned_url(
        "get_object", {"Bucket": bucket, "Key": key, "ResponseContentType": "text/x y"}
    )
    with urllib.request.urlopen(url) as answer:
        assert answer.read() == key.encode()


def test_a_presigned_object_is_given_until_it_ends(strict, keys, monkeypatch):
    bucket = strict.unique("bucket")
    strict.s3.create_bucket(Bucket=bucket)
    strict.s3.put_object(Bucket=bucket, Key="k", Body=b"content")
    signing = Signing(strict, keys, "s3")
    request = signing.presigned(f"/{bucket}/k")
    assert send(request).body == "content"
    url = request.prepare().url
    target = url[len(strict.endpoint) :]
    assert "SignatureDoesNotMatch" in send(request, target=target.replace("/k?", "/l?")).body
    assert "SignatureDoesNotMatch" in send(request, target=target + "&x=1").body
    assert "AuthorizationQueryParametersError" in send(signing.presigned(f"/{bucket}/k", 700_000)).body
    at(monkeypatch, -2)
    late = send(signing.presigned(f"/{bucket}/k"))
    assert late.status == 403 and "Request has expired" in late.body
    assert send(signing.presigned(f"/{bucket}/k", 600)).body == "content"


def test_a_presigned_caller_identity_is_good_for_a_quarter_of_an_hour(strict, keys, monkeypatch):
    signing = Signing(strict, keys)
    path = "/?Action=GetCallerIdentity&Version=2011-06-15"
    request = signing.presigned(path, x_k8s_aws_id="cluster")
    assert "assumed-role/" in send(request).body
    request.headers.replace_header("x-k8s-aws-id", "another")
    assert "SignatureDoesNotMatch" in send(request).body
    at(monkeypatch, -14)
    assert "assumed-role/" in send(signing.presigned(path, 60)).body
    at(monkeypatch, -16)
    assert "Signature expired" in send(signing.presigned(path, 3600)).body


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


@pytest.mark.parametrize("checksum", ["CRC32", "SHA256"])
def test_boto_sends_streams_in_chunks_with_a_checksum_behind_them(strict, keys, checksum):
    bucket = strict.unique("bucket")
    client = strict.of(keys, "s3")
    client.create_bucket(Bucket=bucket)
    seen = []
    client.meta.events.register("before-send.s3", lambda request, **_: seen.append(dict(request.headers)))
    data = bytes(range(256)) * 1000
    client.put_object(Bucket=bucket, Key="k", Body=io.BytesIO(data), ChecksumAlgorithm=checksum)
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == data
    said = {name.lower(): value for name, value in seen[0].items()}
    assert f"x-amz-checksum-{checksum.lower()}" in said or said.get("x-amz-trailer"), said


def test_a_trailer_is_decoded_and_its_checksum_verified(strict, keys, monkeypatch):
    bucket = strict.unique("bucket")
    strict.s3.create_bucket(Bucket=bucket)
    form = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
    monkeypatch.setattr(botocore.auth.S3SigV4Auth, "payload", lambda *_: form)
    checksum = base64.b64encode(zlib.crc32(b"content").to_bytes(4, "big"))
    body = b"7\r\ncontent\r\n0\r\nx-amz-checksum-crc32:%s\r\n\r\n" % checksum
    headers = {
        "X_Amz_Decoded_Content_Length": "7",
        "X_Amz_Trailer": "x-amz-checksum-crc32",
        "Content_Encoding": "aws-chunked",
    }
    request = Signing(strict, keys, "s3").request("PUT", f"/{bucket}/k", body, **headers)
    assert "BadDigest" in send(request, body=body.replace(b"content", b"altered")).body
    assert "IncompleteBody" in send(request, body=body.replace(b"7\r\n", b"6\r\n")).body
    assert send(request).status == 200
    monkeypatch.undo()
    assert strict.s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"content"


def test_a_hash_that_is_not_the_bodys_is_refused_outside_s3_too(strict, keys, monkeypatch):
    """The signature is over the body as it is; only the header lies."""
    real = hashlib.sha256(IDENTITY).hexdigest()
    whole = botocore.auth.SigV4Auth.canonical_request
    for said, status in [(real, 200), ("0" * 64, 403)]:
        monkeypatch.setattr(
            botocore.auth.SigV4Auth,
            "canonical_request",
            lambda *args: "\n".join([*whole(*args).split("\n")[:-1], real]),
        )
        request = Signing(strict, keys).request("POST", "/", IDENTITY, Content_Type=FORM, X_Amz_Content_SHA256=said)
        assert send(request).status == status
        monkeypatch.undo()


def test_a_checksum_in_a_header_is_the_bodys(strict, keys):
    bucket = strict.unique("bucket")
    client = strict.of(keys, "s3")
    client.create_bucket(Bucket=bucket)
    right = base64.b64encode(zlib.crc32(b"content").to_bytes(4, "big")).decode()
    client.put_object(Bucket=bucket, Key="k", Body=b"content", ChecksumCRC32=right)
    assert refusal(client.put_object, Bucket=bucket, Key="k", Body=b"other", ChecksumCRC32=right)[:2] == (
        "BadDigest",
        400,
    )
