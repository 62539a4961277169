"""IAM's word on what a user or role may do."""

from __future__ import annotations

import pytest

from .errors import code_of, said
from .make import TRUST
from .strict import ACCOUNT, allow, policy, refusal

PASSED = f"arn:aws:iam::{ACCOUNT}:role/passed"


@pytest.fixture
def user(both):
    """Makes a user with these statements, and gives its ARN."""

    def make_user(*statements):
        name = both.unique("user")
        arn = both.iam.create_user(UserName=name)["User"]["Arn"]
        both.iam.put_user_policy(UserName=name, PolicyName="own", PolicyDocument=policy(*statements))
        return arn

    return make_user


def simulated(aws, principal, actions, **more):
    """Action and decision, of each with its missing keys."""
    found = aws.iam.simulate_principal_policy(PolicySourceArn=principal, ActionNames=actions, **more)
    return {
        result["EvalActionName"]: (result["EvalDecision"], result.get("MissingContextValues", []))
        for result in found["EvaluationResults"]
    }


def test_actions_are_allowed_denied_or_not_mentioned(both, user):
    deny = {"Effect": "Deny", "Action": "ec2:CreateVpc", "Resource": "*"}
    asked = ["ec2:CreateVpc", "ec2:CreateSubnet", "sqs:CreateQueue"]
    assert simulated(both, user(allow("ec2:*"), deny), asked) == {
        "ec2:CreateVpc": ("explicitDeny", []),
        "ec2:CreateSubnet": ("allowed", []),
        "sqs:CreateQueue": ("implicitDeny", []),
    }


def test_keys_that_are_not_given_are_missing(both, user):
    arn = user(allow("ec2:RunInstances", StringEquals={"aws:RequestedRegion": "eu-west-1", "ec2:InstanceType": "t3.medium"}))
    region = {"ContextKeyName": "aws:RequestedRegion", "ContextKeyType": "string", "ContextKeyValues": ["eu-west-1"]}
    found = simulated(both, arn, ["ec2:RunInstances"], ContextEntries=[region])
    assert found == {"ec2:RunInstances": ("implicitDeny", ["ec2:InstanceType"])}
    kind = {"ContextKeyName": "ec2:InstanceType", "ContextKeyType": "string", "ContextKeyValues": ["t3.medium"]}
    found = simulated(both, arn, ["ec2:RunInstances"], ContextEntries=[region, kind])
    assert found == {"ec2:RunInstances": ("allowed", [])}


def test_what_is_allowed_as_long_as_a_key_is_not_known_lists_the_key(both, user):
    deny = {"Effect": "Deny", "Action": "ec2:CreateSubnet", "Resource": "*", "Condition": {"StringEquals": {"ec2:Vpc": "vpc-1"}}}
    found = simulated(both, user(allow("ec2:*"), deny), ["ec2:CreateSubnet", "ec2:CreateVpc"])
    assert found == {"ec2:CreateSubnet": ("allowed", ["ec2:Vpc"]), "ec2:CreateVpc": ("allowed", [])}


def test_the_boundary_of_a_role_has_to_allow_too(both):
    name = both.unique("policy")
    boundary = both.iam.create_policy(PolicyName=name, PolicyDocument=policy(allow("s3:*")))["Policy"]["Arn"]
    role = both.unique("role")
    made = both.iam.create_role(RoleName=role, AssumeRolePolicyDocument=TRUST, PermissionsBoundary=boundary)
    both.iam.put_role_policy(RoleName=role, PolicyName="own", PolicyDocument=policy(allow("*")))
    found = both.iam.simulate_principal_policy(
        PolicySourceArn=made["Role"]["Arn"], ActionNames=["s3:PutObject", "ec2:CreateVpc"]
    )["EvaluationResults"]
    by_boundary = [one["PermissionsBoundaryDecisionDetail"]["AllowedByPermissionsBoundary"] for one in found]
    assert [one["EvalDecision"] for one in found] == ["allowed", "implicitDeny"]
    assert by_boundary == [True, False]


def test_a_session_is_no_principal_and_some_actions_are_asked_apart(both, user):
    call = both.iam.simulate_principal_policy
    session = f"arn:aws:sts::{ACCOUNT}:assumed-role/role/session"
    assert code_of(call, PolicySourceArn=session, ActionNames=["ec2:CreateVpc"]) == "InvalidInput"
    nobody = f"arn:aws:iam::{ACCOUNT}:user/nobody"
    assert code_of(call, PolicySourceArn=nobody, ActionNames=["ec2:CreateVpc"]) == "NoSuchEntity"
    arn = user(allow("iam:*", PASSED))
    mixed = {"PolicySourceArn": arn, "ResourceArns": [PASSED], "ActionNames": ["iam:PassRole", "iam:CreateRole"]}
    code, words = said(call, **mixed)
    assert code == "InvalidInput" and "require different authorization information" in words
    for action in mixed["ActionNames"]:
        (found,) = call(**{**mixed, "ActionNames": [action]})["EvaluationResults"]
        assert [one["EvalResourceDecision"] for one in found["ResourceSpecificResults"]] == ["allowed"]


def test_answers_come_in_pages(both, user):
    actions = [f"ec2:Action{number}" for number in range(130)]
    arn = user(allow("ec2:*"))
    first = both.iam.simulate_principal_policy(PolicySourceArn=arn, ActionNames=actions)
    assert first["IsTruncated"] and len(first["EvaluationResults"]) == 100
    rest = both.iam.simulate_principal_policy(PolicySourceArn=arn, ActionNames=actions, Marker=first["Marker"])
    assert not rest["IsTruncated"] and len(rest["EvaluationResults"]) == 30


def test_who_asks_has_to_be_allowed_to(strict):
    arn = strict.iam.create_user(UserName=strict.unique("asked"))["User"]["Arn"]
    asked = {"PolicySourceArn": arn, "ActionNames": ["ec2:CreateVpc"]}
    keys = strict.allowed(allow("iam:GetUser"))
    code, _, words = refusal(strict.client_for(keys, "iam").simulate_principal_policy, **asked)
    assert code == "AccessDenied" and f"iam:SimulatePrincipalPolicy on resource: {arn}" in words
    strict.client_for(strict.allowed(allow("iam:SimulatePrincipalPolicy", arn)), "iam").simulate_principal_policy(**asked)
