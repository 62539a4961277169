"""IAM: what EC2 and Auto Scaling say of profiles, policies of AWS, and what goes with a role."""

from __future__ import annotations

import functools
import json
from typing import Any

import moto.ec2.models.iam_instance_profile as moto_profile
import moto.ec2.responses.instances as moto_instances
from moto.core.exceptions import ServiceException
from moto.ec2.exceptions import EC2ClientError
from moto.iam.exceptions import LimitExceededException
from moto.iam.models import AWSManagedPolicy, IAMBackend

from .patch import replace


def an_unknown_profile_is_invalid() -> None:
    """AWS: launching with an unknown instance profile is InvalidParameterValue in EC2.
    moto: says NoSuchEntity, which is IAM's word.
    """

    def find(original: Any, *args: Any, **kwargs: Any) -> Any:
        named = kwargs.get("iam_instance_profile_name") or kwargs.get("iam_instance_profile_arn")
        try:
            found = original(*args, **kwargs)
        except ServiceException:
            found = None
        if found is None:
            raise unknown_profile(named)
        return found

    for module in (moto_profile, moto_instances):
        replace(module, "filter_iam_instance_profiles")(find)


def unknown_profile(named: Any) -> EC2ClientError:
    """What EC2 says of an instance profile that it does not see."""
    message = f"Value ({named}) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"
    return EC2ClientError("InvalidParameterValue", message)


# All inline policies of a role, without white space.
_INLINE_POLICIES = 10_240


def inline_policies_of_a_role_add_up() -> None:
    """AWS: the inline policies of a role have 10,240 characters at most, all together and without white space (LimitExceeded;
    IAM's reference of quotas).
    moto: takes any.
    """

    @replace(IAMBackend, "put_role_policy")
    def put(original: Any, backend: Any, role_name: str, policy_name: str, policy_json: str) -> None:
        others = backend.get_role(role_name).policies
        documents = {**others, policy_name: policy_json}
        size = sum(len("".join(str(document).split())) for document in documents.values())
        if size > _INLINE_POLICIES:
            message = f"Maximum policy size of {_INLINE_POLICIES} bytes exceeded for role {role_name}"
            raise LimitExceededException(message)
        original(backend, role_name, policy_name, policy_json)


def policies_of_aws_exist() -> None:
    """AWS: its managed policies can be attached in every account.
    moto: does not know them, or (by a setting) loads all of them at every start.
    """

    @replace(IAMBackend, "attach_role_policy")
    def attach(original: Any, backend: Any, policy_arn: str, role_name: str) -> None:
        backend.get_role(role_name)
        if policy_arn not in backend.managed_policies and _policies_of_aws().get(policy_arn):
            name, data = _policies_of_aws()[policy_arn]
            policy = AWSManagedPolicy.from_data(name, backend.account_id, backend.region_name, data)
            backend.managed_policies[policy_arn] = policy
            backend.aws_managed_policies.append(policy)
        original(backend, policy_arn, role_name)


@functools.lru_cache(maxsize=1)
def _policies_of_aws() -> "dict[str, tuple[str, Any]]":
    """Name and data of each policy by ARN."""
    from moto.iam.aws_managed_policies import aws_managed_policies_data

    policies = json.loads(aws_managed_policies_data)
    return {f"arn:aws:iam::aws:policy{data['Path']}{name}": (name, data) for name, data in policies.items()}
