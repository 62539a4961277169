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
    identity = strict.of(keys, "sts").get_caller_identity()
    role_id = strict.iam.get_role(RoleName=role)["Role"]["RoleId"]
    assert identity["Arn"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/{role}/tester"
    assert (identity["UserId"], identity["Account"]) == (f"{role_id}:tester", ACCOUNT)


@pytest.mark.parametrize("form", ["header", "query"])
def test_who_calls_is_told_in_xml_and_in_json(strict, form):
    keys = strict.allowed()

    def answer(accept: str):
        signing = Signing(strict, keys)
        return send(
            signing.presigned(PATH, Accept=accept) if form == "query" else signing.request("GET", PATH, Accept=accept)
        )

    told = json.loads(answer("application/json").body)["GetCallerIdentityResponse"]
    arn = told["GetCallerIdentityResult"]["Arn"]
    assert arn.endswith("/tester") and set(told["GetCallerIdentityResult"]) == {"Arn", "UserId", "Account"}
    assert told["ResponseMetadata"]["RequestId"]
    assert f"<Arn>{arn}</Arn>" in answer("*/*").body
    wrong = Signing(strict, keys._replace(secret="x")).request("GET", PATH, Accept="application/json")
    assert json.loads(send(wrong).body)["Error"]["Code"] == "SignatureDoesNotMatch"


def test_nobody_is_kept_from_asking_who_he_is(strict):
    keys = strict.allowed({"Effect": "Deny", "Action": "*", "Resource": "*"})
    assert strict.of(keys, "sts").get_caller_identity()["Account"] == ACCOUNT


def trusting(principal, **conditions):
    statement = {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}
    return {**statement, "Condition": conditions} if conditions else statement


def assume(strict, by, role, **more):
    """Assumes a role as somebody who may be refused."""
    arn = f"arn:aws:iam::{ACCOUNT}:role/{role}"
    return strict.of(by, "sts").assume_role(RoleArn=arn, RoleSessionName="other", **more)


def test_a_role_is_assumed_by_whom_it_trusts(strict):
    machine = strict.role(trust=trusting({"Service": "ec2.amazonaws.com"}))
    everyone = strict.role()
    may, may_not = strict.allowed(allow("sts:AssumeRole")), strict.allowed(allow("s3:*"))
    caller = strict.of(may_not, "sts").get_caller_identity()["Arn"]
    named = strict.role(trust=trusting({"AWS": caller}))
    assert refusal(assume, strict, may, machine)[:2] == ("AccessDenied", 403)
    assert refusal(assume, strict, strict.keys, machine)[0] == "AccessDenied"
    assume(strict, may, everyone)
    code, _, words = refusal(assume, strict, may_not, everyone)
    assert code == "AccessDenied"
    assert words.startswith(f"User: {caller} is not authorized to perform: sts:AssumeRole on resource: arn:aws:iam::")
    assume(strict, may_not, named)
    assert refusal(assume, strict, may, named)[0] == "AccessDenied"
    assert refusal(assume, strict, may, "nobodys")[0] == "AccessDenied"


def test_what_a_trust_policy_asks_of_a_session_holds(strict):
    role = strict.role(
        trust=trusting({"AWS": ACCOUNT}, StringEquals={"sts:ExternalId": "secret", "sts:RoleSessionName": "other"})
    )
    assert refusal(assume, strict, strict.keys, role)[0] == "AccessDenied"
    assert refusal(assume, strict, strict.keys, role, ExternalId="guess")[0] == "AccessDenied"
    assume(strict, strict.keys, role, ExternalId="secret")


def test_a_session_is_no_longer_than_its_role_says(strict):
    role = strict.role(MaxSessionDuration=7200)
    assert refusal(assume, strict, strict.keys, role, DurationSeconds=7201)[0] == "ValidationError"
    before = time.time()
    ends = assume(strict, strict.keys, role, DurationSeconds=7200)["Credentials"]["Expiration"].timestamp()
    assert 7190 <= ends - before <= 7210


def test_a_sessions_own_policy_takes_away(strict):
    role = strict.role(allow(["ec2:DescribeVpcs", "ec2:DescribeSubnets"]))
    ec2 = strict.of(strict.assume(role, Policy=json.dumps({"Statement": [allow("ec2:DescribeVpcs")]})), "ec2")
    ec2.describe_vpcs()
    assert "because no session policy allows" in refusal(ec2.describe_subnets)[2]
    assert "because no identity-based policy allows" in refusal(ec2.describe_images)[2]


def test_a_permissions_boundary_takes_away(strict):
    name = strict.unique("boundary")
    document = json.dumps({"Version": "2012-10-17", "Statement": [allow("ec2:DescribeVpcs")]})
    arn = strict.iam.create_policy(PolicyName=name, PolicyDocument=document)["Policy"]["Arn"]
    role = strict.role(allow("ec2:*"), PermissionsBoundary=arn)
    ec2 = strict.of(strict.assume(role), "ec2")
    ec2.describe_vpcs()
    assert "because no permissions boundary allows the ec2:DescribeSubnets action" in refusal(ec2.describe_subnets)[2]


def test_a_deleted_role_ends_its_sessions_and_an_inactive_key_its_user(strict):
    role = strict.role()
    keys = strict.assume(role)
    strict.iam.delete_role(RoleName=role)
    assert refusal(strict.of(keys, "sts").get_caller_identity)[0] == "InvalidClientTokenId"
    user = strict.unique("user")
    strict.iam.create_user(UserName=user)
    made = strict.iam.create_access_key(UserName=user)["AccessKey"]
    own = Keys(made["AccessKeyId"], made["SecretAccessKey"])
    assert strict.of(own, "sts").get_caller_identity()["Arn"].endswith(f":user/{user}")
    strict.iam.update_access_key(UserName=user, AccessKeyId=own.access_key, Status="Inactive")
    assert refusal(strict.of(own, "sts").get_caller_identity)[0] == "InvalidClientTokenId"


def test_a_reset_leaves_the_administrator_and_ends_sessions(tmp_path):
    process, server = launch(tmp_path)
    try:
        keys = server.allowed(allow("*"))
        server.control("POST", "reset")
        assert server.sts.get_caller_identity()["Arn"].endswith("user/administrator")
        assert server.iam.list_roles()["Roles"] == []
        assert refusal(server.of(keys, "sts").get_caller_identity)[0] == "InvalidClientTokenId"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """A launcher whose sessions last two seconds."""
    process, server = launch(tmp_path_factory.mktemp("short"), "--session-seconds", "2", "--settle", "0")
    yield server
    process.terminate()
    process.wait()


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
    clients = {service: short.of(keys, service) for service in EXPIRED}

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
    assert refusal(short.of(keys._replace(secret="x"), "sts").get_caller_identity)[0] == "SignatureDoesNotMatch"


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


def test_an_instance_has_a_session_of_its_profiles_role():
    """In this process, where the function that the metadata service calls can be called."""
    import subprocess
    import sys

    from .conftest import ROOT

    done = subprocess.run([sys.executable, "-c", INSTANCE], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    role = told["role"]
    assert told["named"] == role
    assert told["arn"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/{role}/{told['instance']}"
    assert told["same"] and told["renewed"] and told["without"] == "no profile with a role in it"
    assert set(told["keys"]) == {"AccessKeyId", "SecretAccessKey", "Token", "Expiration"}
    assert told["keys"]["AccessKeyId"].startswith("ASIA") and told["keys"]["Expiration"].endswith("Z")


INSTANCE = """
import json, os, time
from simulator import seed
os.environ.update(seed.environment())
os.environ.update(AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x", AWS_DEFAULT_REGION="us-east-1")
from simulator.events import InstanceEvents
from simulator.mends import Options, apply
from simulator.settle import Later
apply(Options(later=Later(0), events=InstanceEvents(None)))
from moto import mock_aws
from simulator.auth import caller, sessions
issued = sessions.Sessions(4)
issued.install()
with mock_aws():
    import boto3
    iam, ec2 = boto3.client("iam"), boto3.client("ec2")
    service = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
    trust = json.dumps({"Statement": [service]})
    iam.create_role(RoleName="machines", AssumeRolePolicyDocument=trust)
    iam.create_instance_profile(InstanceProfileName="profile")
    iam.add_role_to_instance_profile(InstanceProfileName="profile", RoleName="machines")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    image = ec2.describe_images()["Images"][0]["ImageId"]
    launch = dict(ImageId=image, InstanceType="t3.medium", MinCount=1, MaxCount=1, SubnetId=subnet)
    one = ec2.run_instances(IamInstanceProfile={"Name": "profile"}, **launch)["Instances"][0]["InstanceId"]
    other = ec2.run_instances(**launch)["Instances"][0]["InstanceId"]
    keys = issued.for_instance(one)
    told = {"keys": keys, "instance": one, "role": "machines", "named": sessions.role_of_instance(one)}
    told["same"] = issued.for_instance(one) == keys
    told["arn"] = caller.find(issued, keys["AccessKeyId"], keys["Token"]).arn
    time.sleep(3.1)
    told["renewed"] = issued.for_instance(one)["AccessKeyId"] != keys["AccessKeyId"]
    try:
        issued.for_instance(other)
    except LookupError as error:
        told["without"] = str(error).split(" has ")[-1]
    print(json.dumps(told))
"""
