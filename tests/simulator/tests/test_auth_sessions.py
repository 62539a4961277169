"""Strict: credentials that are issued, whom they stand for, and when they end."""

from __future__ import annotations

import json
import stat
import time

import pytest
from botocore.exceptions import ClientError

from .strict import ACCOUNT, Keys, Signing, allow, launch, refusal, send

PATH = "/?Action=GetCallerIdentity&Version=2011-06-15"


def test_the_administrators_keys_are_for_their_owner_only(strict):
    assert stat.S_IMODE(strict.credentials.stat().st_mode) == 0o600
    assert strict.sts.get_caller_identity()["Arn"] == f"arn:aws:iam::{ACCOUNT}:user/administrator"


def test_a_session_is_called_by_its_role_and_name(strict):
    role = strict.role(allow("ec2:*"))
    keys = strict.assume(role)
    identity = strict.client_for(keys, "sts").get_caller_identity()
    role_id = strict.iam.get_role(RoleName=role)["Role"]["RoleId"]
    assert identity["Arn"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/{role}/tester"
    assert (identity["UserId"], identity["Account"]) == (f"{role_id}:tester", ACCOUNT)


def test_who_calls_is_told_in_xml_and_in_json(strict):
    keys = strict.allowed()

    def answer(accept: str):
        return send(Signing(strict, keys).request("GET", PATH, Accept=accept))

    told = json.loads(answer("application/json").body)["GetCallerIdentityResponse"]
    arn = told["GetCallerIdentityResult"]["Arn"]
    assert arn.endswith("/tester") and set(told["GetCallerIdentityResult"]) == {"Arn", "UserId", "Account"}
    assert told["ResponseMetadata"]["RequestId"]
    assert f"<Arn>{arn}</Arn>" in answer("*/*").body
    wrong = Signing(strict, keys._replace(secret="x")).request("GET", PATH, Accept="application/json")
    assert json.loads(send(wrong).body)["Error"]["Code"] == "SignatureDoesNotMatch"


def test_nobody_is_kept_from_asking_who_he_is(strict):
    keys = strict.allowed({"Effect": "Deny", "Action": "*", "Resource": "*"})
    assert strict.client_for(keys, "sts").get_caller_identity()["Account"] == ACCOUNT


def test_a_permissions_boundary_takes_away(strict):
    name = strict.unique("boundary")
    document = json.dumps({"Version": "2012-10-17", "Statement": [allow("ec2:DescribeVpcs")]})
    arn = strict.iam.create_policy(PolicyName=name, PolicyDocument=document)["Policy"]["Arn"]
    role = strict.role(allow("ec2:*"), PermissionsBoundary=arn)
    ec2 = strict.client_for(strict.assume(role), "ec2")
    ec2.describe_vpcs()
    assert "because no permissions boundary allows the ec2:DescribeSubnets action" in refusal(ec2.describe_subnets)[2]


def test_a_deleted_role_ends_its_sessions_and_an_inactive_key_its_user(strict):
    role = strict.role()
    keys = strict.assume(role)
    strict.iam.delete_role(RoleName=role)
    assert refusal(strict.client_for(keys, "sts").get_caller_identity)[0] == "InvalidClientTokenId"
    user = strict.unique("user")
    strict.iam.create_user(UserName=user)
    made = strict.iam.create_access_key(UserName=user)["AccessKey"]
    own = Keys(made["AccessKeyId"], made["SecretAccessKey"])
    assert strict.client_for(own, "sts").get_caller_identity()["Arn"].endswith(f":user/{user}")
    strict.iam.update_access_key(UserName=user, AccessKeyId=own.access_key, Status="Inactive")
    assert refusal(strict.client_for(own, "sts").get_caller_identity)[0] == "InvalidClientTokenId"


def test_a_reset_leaves_the_administrator_and_ends_sessions(tmp_path):
    life, server = launch(tmp_path)
    with life:
        keys = server.allowed(allow("*"))
        server.control("POST", "reset")
        assert server.sts.get_caller_identity()["Arn"].endswith("user/administrator")
        assert server.iam.list_roles()["Roles"] == []
        assert refusal(server.client_for(keys, "sts").get_caller_identity)[0] == "InvalidClientTokenId"


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """A launcher whose sessions last two seconds."""
    life, server = launch(tmp_path_factory.mktemp("short"), "--session-seconds", "2", "--settle", "0")
    with life:
        yield server


EXPIRED = {
    "sts": ("ExpiredToken", 403),
    "ec2": ("RequestExpired", 400),
    "s3": ("ExpiredToken", 400),
    "sqs": ("ExpiredTokenException", 400),
    "route53": ("ExpiredToken", 403),
}
CALLS = {
    "sts": "get_caller_identity",
    "ec2": "describe_vpcs",
    "s3": "list_buckets",
    "sqs": "list_queues",
    "route53": "list_hosted_zones",
}


def test_a_session_ends(short):
    keys = short.allowed(allow("*"))
    clients = {service: short.client_for(keys, service) for service in EXPIRED}

    def ended() -> bool:
        try:
            clients["sts"].get_caller_identity()
        except ClientError:
            return True
        return False

    end = time.monotonic() + 30
    while not ended():
        assert time.monotonic() < end
        time.sleep(0.1)
    assert {service: refusal(getattr(client, CALLS[service]))[:2] for service, client in clients.items()} == EXPIRED
    assert refusal(short.client_for(keys._replace(secret="x"), "sts").get_caller_identity)[0] == "SignatureDoesNotMatch"


def test_aws_host_names_lead_to_aws_whatever_the_path(strict):
    request = Signing(strict, strict.keys, "s3").request(
        "GET", "/_simulator/calls", Host="bucket.s3.us-east-1.amazonaws.com"
    )
    answer = send(request)
    assert answer.status == 404 and "NoSuchBucket" in answer.body


def test_a_bucket_may_be_named_by_its_host(strict):
    bucket = strict.unique("bucket")
    strict.s3.create_bucket(Bucket=bucket)
    strict.s3.put_object(Bucket=bucket, Key="a/k", Body=b"content")
    keys = strict.allowed(allow("s3:GetObject", f"arn:aws:s3:::{bucket}/a/*"))
    host = f"{bucket}.s3.us-east-1.amazonaws.com"
    signing = Signing(strict, keys, "s3")
    assert send(signing.request("GET", "/a/k", Host=host)).body == "content"
    assert "AccessDenied" in send(signing.request("GET", "/b/k", Host=host)).body
