"""Roles for tokens of an OpenID Connect provider, with and without `--strict`."""

from __future__ import annotations

import json
import time
from typing import Any, NamedTuple

import pytest
import requests
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from .conftest import REGION
from .strict import ACCOUNT, Keys, refusal


class Issuer(NamedTuple):
    """An issuer in a bucket, and its key."""

    url: str
    key: Any
    bucket: str

    def token(self, **claims: Any) -> str:
        said = {"iss": self.url, "sub": "system:serviceaccount:a:b", "aud": ["amazonaws.com"]}
        said = {**said, "exp": int(time.time()) + 600, **claims}
        return jwt.encode({"alg": self.key.get("alg"), "kid": self.key.kid}, said, self.key)


@pytest.fixture(params=["RS256", "ES256"])
def issuer(strict, request):
    """Its documents are public by the bucket's policy; AWS knows it as a provider."""
    bucket = strict.unique("issuer")
    strict.s3.create_bucket(Bucket=bucket)
    everybody = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{bucket}/*"}
    strict.s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps({"Version": "2012-10-17", "Statement": [everybody]}))
    key = make_key(request.param)
    made = Issuer(f"https://{bucket}.s3.{REGION}.amazonaws.com/x", key, bucket)
    documents = {
        ".well-known/openid-configuration": {"issuer": made.url, "jwks_uri": f"{made.url}/openid/v1/jwks"},
        "openid/v1/jwks": {"keys": [key.as_dict(private=False)]},
    }
    for name, document in documents.items():
        strict.s3.put_object(Bucket=bucket, Key=f"x/{name}", Body=json.dumps(document).encode())
    strict.iam.create_open_id_connect_provider(Url=made.url, ClientIDList=["amazonaws.com"], ThumbprintList=["a" * 40])
    return made


def make_key(algorithm: str) -> Any:
    parameters = {"kid": "one", "alg": algorithm, "use": "sig"}
    return RSAKey.generate_key(2048, parameters) if algorithm == "RS256" else ECKey.generate_key("P-256", parameters)


def role_of(strict: Any, issuer: Issuer, **more: Any) -> str:
    """The ARN of a role for the service account b in the namespace a."""
    provider = issuer.url.removeprefix("https://")
    trust = {
        "Effect": "Allow",
        "Action": "sts:AssumeRoleWithWebIdentity",
        "Principal": {"Federated": f"arn:aws:iam::{ACCOUNT}:oidc-provider/{provider}"},
        "Condition": {"StringEquals": {f"{provider}:sub": "system:serviceaccount:a:b"}},
    }
    name = strict.role({"Effect": "Allow", "Action": "ec2:DescribeVpcs", "Resource": "*"}, trust=trust, **more)
    return f"arn:aws:iam::{ACCOUNT}:role/{name}"


def assume(strict: Any, role: str, token: str) -> Any:
    return strict.sts.assume_role_with_web_identity(RoleArn=role, RoleSessionName="pod", WebIdentityToken=token)


def test_a_token_of_the_service_account_gets_the_role_and_no_more(strict, issuer):
    found = assume(strict, role_of(strict, issuer), issuer.token())["Credentials"]
    ec2 = strict.client_for(Keys(found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"]), "ec2")
    ec2.describe_vpcs()
    assert refusal(ec2.describe_subnets)[0] == "UnauthorizedOperation"


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ({"sub": "system:serviceaccount:other:b"}, "AccessDenied"),
        ({"sub": "system:serviceaccount:a:other"}, "AccessDenied"),
        ({"aud": ["kubernetes.svc.default"]}, "InvalidIdentityToken"),
        ({"iss": "https://elsewhere.example.com"}, "InvalidIdentityToken"),
        ({"exp": 1}, "ExpiredTokenException"),
    ],
)
def test_other_tokens_do_not(strict, issuer, claims, code):
    status = 403 if code == "AccessDenied" else 400
    assert refusal(assume, strict, role_of(strict, issuer), issuer.token(**claims))[:2] == (code, status)


def test_nor_does_a_token_of_another_key(strict, issuer):
    forged = issuer._replace(key=make_key(issuer.key.get("alg")))
    assert refusal(assume, strict, role_of(strict, issuer), forged.token())[0] == "InvalidIdentityToken"


def test_keys_that_nobody_may_read_verify_nothing(strict, issuer):
    role = role_of(strict, issuer)
    strict.s3.delete_bucket_policy(Bucket=issuer.bucket)
    assert refusal(assume, strict, role, issuer.token())[0] == "InvalidIdentityToken"


def test_audiences_come_and_go(strict, issuer):
    arn = f"arn:aws:iam::{ACCOUNT}:oidc-provider/{issuer.url.removeprefix('https://')}"
    role, token = role_of(strict, issuer), issuer.token(aud=["more"])
    strict.iam.add_client_id_to_open_id_connect_provider(OpenIDConnectProviderArn=arn, ClientID="more")
    assume(strict, role, token)
    strict.iam.remove_client_id_from_open_id_connect_provider(OpenIDConnectProviderArn=arn, ClientID="more")
    assert refusal(assume, strict, role, token)[0] == "InvalidIdentityToken"


def test_a_new_bucket_has_no_access_control_lists(strict):
    bucket = strict.unique("bucket")
    strict.s3.create_bucket(Bucket=bucket)
    put = {"Bucket": bucket, "Key": "a", "Body": b"", "ACL": "public-read"}
    assert refusal(strict.s3.put_object, **put)[0] == "AccessControlListNotSupported"
    rules = {"Rules": [{"ObjectOwnership": "BucketOwnerPreferred"}]}
    strict.s3.put_bucket_ownership_controls(Bucket=bucket, OwnershipControls=rules)
    strict.s3.put_object(**put)


@pytest.mark.parametrize("block", ["", "IgnorePublicAcls", "RestrictPublicBuckets"])
@pytest.mark.parametrize("by", ["policy", "list", "policy for others", "nothing"])
def test_strangers_read_what_is_public(strict, by, block):
    """S3 User Guide, "Blocking public access to your Amazon S3 storage"."""
    bucket = f"public-{by}-{block}".lower().replace(" ", "-").rstrip("-")
    strict.s3.create_bucket(Bucket=bucket, ObjectOwnership="BucketOwnerPreferred")
    acl = {"ACL": "public-read"} if by == "list" else {}
    strict.s3.put_object(Bucket=bucket, Key="a/.well-known/openid-configuration", Body=b"{}", **acl)
    if by.startswith("policy"):
        place = "a" if by == "policy" else "other"
        everybody = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{bucket}/{place}/*"}
        strict.s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps({"Version": "2012-10-17", "Statement": [everybody]}))
    if block:
        strict.s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration={block: True})
    public = (by, block) in {("policy", ""), ("policy", "IgnorePublicAcls"), ("list", ""), ("list", "RestrictPublicBuckets")}
    for name, status in (("a/.well-known/openid-configuration", 200 if public else 403), ("a/c", 403)):
        assert requests.get(f"{strict.endpoint}/{bucket}/{name}", timeout=10).status_code == status, name
    assert strict.s3.get_object(Bucket=bucket, Key="a/.well-known/openid-configuration")["Body"].read() == b"{}"
