"""IAM's and STS's resources, and iam:PassRole."""

from __future__ import annotations

from typing import Any, Mapping

from moto.iam.models import iam_backends

from .needs import Asked, Need, Resource, action, of_pairs


def of_iam(asked: Asked) -> "list[Need]":
    """The role, profile, user or policy that is named; adding a role to a profile passes it to EC2."""
    arns = [*_named(asked, "InstanceProfileName", "instance_profiles", "instance-profile")]
    if not arns:
        arns = [
            *_named(asked, "RoleName", "roles", "role"),
            *_named(asked, "UserName", "users", "user"),
            *_named(asked, "GroupName", "groups", "group"),
        ]
    arns = arns or asked.texts("PolicyArn") or asked.texts("PolicySourceArn")
    resources = tuple(Resource(arn, asked=of_pairs(asked.parameters.get("Tags"))) for arn in arns)
    service = asked.texts("AWSServiceName")
    context = {"iam:awsservicename": service} if service else {}
    needs = [Need(action(asked), resources or (Resource(),), context)]
    if asked.operation == "AddRoleToInstanceProfile":
        needs += _pass([arn for arn in _named(asked, "RoleName", "roles", "role")])
    return needs


def of_sts(asked: Asked) -> "list[Need]":
    """The role to assume. Whether it trusts the caller is not looked at."""
    return [Need(action(asked), tuple(map(Resource, asked.texts("RoleArn"))) or (Resource(),))]


def pass_role_of_profile(asked: Asked, profile: "Mapping[str, Any]") -> "list[Need]":
    """iam:PassRole on the roles of a profile, given by its name or ARN."""
    profiles = iam_backends[asked.account]["aws"].instance_profiles.values()
    found = [one for one in profiles if one.name == profile.get("Name") or one.arn == profile.get("Arn")]
    return _pass([role.arn for one in found for role in one.roles])


def _pass(arns: "list[str]") -> "list[Need]":
    context = {"iam:passedtoservice": ["ec2.amazonaws.com"]}
    return [Need("iam:PassRole", (Resource(arn),), context) for arn in arns]


def _named(asked: Asked, parameter: str, kept: str, kind: str) -> "list[str]":
    """The ARNs of what a parameter names, with the path it was made with."""
    known = getattr(iam_backends[asked.account]["aws"], kept)
    by_name = {getattr(one, "name", ""): one for one in known.values()}
    path = str(asked.parameters.get("Path") or "/")
    return [
        by_name[name].arn if name in by_name else f"arn:aws:iam::{asked.account}:{kind}{path}{name}"
        for name in asked.texts(parameter)
    ]
