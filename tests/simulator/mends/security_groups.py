"""Security groups and their rules."""

from __future__ import annotations

import contextlib
import ipaddress
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.exceptions import (
    DependencyViolationError,
    EC2ClientError,
    InvalidSecurityGroupNotFoundError,
    InvalidSecurityGroupRuleIdNotFoundError,
)
from moto.ec2.models import EC2Backend
from moto.ec2.models.elastic_network_interfaces import NetworkInterface
from moto.ec2.models.security_groups import SecurityGroupBackend, SecurityGroupRule
from moto.ec2.responses.security_groups import SecurityGroups

from .patch import replace, replace_property


def a_new_group_tells_its_tags() -> None:
    """AWS: CreateSecurityGroup answers with the tags it has set.
    moto: sets them and does not say so.
    """

    @replace(SecurityGroups, "create_security_group")
    def create(original: Any, response: Any) -> Any:
        answer = original(response)
        group = response.ec2_backend.get_security_group_from_id(answer.result["GroupId"])
        answer.result["Tags"] = group.get_tags()
        return answer


def a_group_in_use_stays() -> None:
    """AWS: DependencyViolation while another group's rule names the group or an interface has it; a
    VPC's default group goes with the VPC only.
    moto: deletes it.
    """

    @replace(SecurityGroups, "delete_security_group")
    def delete(original: Any, response: Any) -> Any:
        backend = response.ec2_backend
        named = response._get_param("GroupId") or response._get_param("GroupName")
        group = backend.get_security_group_by_name_or_id(named)
        if group is None:
            raise InvalidSecurityGroupNotFoundError(named)
        if group.is_default:
            raise EC2ClientError(
                "CannotDelete", f'the specified group: "{group.id}" name: "default" cannot be deleted by a user'
            )
        if _named_by_others(backend, group.id) or any(group in eni.group_set for eni in backend.enis.values()):
            raise DependencyViolationError(f"resource {group.id} has a dependent object")
        return original(response)


def _named_by_others(backend: Any, group_id: str) -> bool:
    for groups in backend.groups.values():
        for group in groups.values():
            rules = group.ingress_rules + group.egress_rules
            if group.id != group_id and any(rule.source_group.get("GroupId") == group_id for rule in rules):
                return True
    return False


def interfaces_take_existing_groups_only() -> None:
    """AWS: an unknown group is InvalidGroup.NotFound.
    moto: makes a group of that id for a new interface.
    """

    @replace(NetworkInterface, "__init__")
    def init(original: Any, eni: Any, backend: Any, *args: Any, **kwargs: Any) -> None:
        for group_id in kwargs.get("group_ids") or []:
            if backend.get_security_group_from_id(group_id) is None:
                raise InvalidSecurityGroupNotFoundError(group_id)
        original(eni, backend, *args, **kwargs)


def an_instance_has_the_groups_it_is_given() -> None:
    """AWS: ModifyInstanceAttribute replaces the groups of an instance's interface.
    moto: leaves the interface in its old groups too.
    """

    @replace(EC2Backend, "modify_instance_security_groups")
    def modify(original: Any, backend: Any, instance_id: str, groups: "list[str]") -> Any:
        instance = original(backend, instance_id, groups)
        instance.nics[0]._group_set = list(instance.security_groups)
        return instance


def rules_are_added_all_or_none() -> None:
    """AWS: a call that authorizes several permissions adds all of them, and answers with all, or none. It keeps
    ranges in canonical form (10.1.2.3/16 is 10.1.0.0/16, 2001:DB8::/32 is 2001:db8::/32).
    moto: answers with those of the last permission, and stops halfway at a duplicate; keeps ranges as written.
    """
    for direction in ("ingress", "egress"):
        _authorize_at_once(direction)


def _authorize_at_once(direction: str) -> None:
    operation = f"authorize_security_group_{direction}"

    @replace(SecurityGroups, operation)
    def authorize(_original: Any, response: Any) -> ActionResult:
        response.error_on_dryrun()
        backend = response.ec2_backend
        named = response._get_param("GroupId") or response._get_param("GroupName")
        group = backend.get_security_group_by_name_or_id(named)
        if group is None:
            raise InvalidSecurityGroupNotFoundError(named)
        before = list(getattr(group, f"{direction}_rules"))
        added: "list[Any]" = []
        try:
            for permission in map(_canonical, response._process_rules_from_querystring()):
                added += getattr(backend, operation)(**permission)[0]
        except EC2ClientError:
            setattr(group, f"{direction}_rules", before)
            raise
        return ActionResult({"Return": True, "SecurityGroupRules": added})


def _canonical(permission: "dict[str, Any]") -> "dict[str, Any]":
    """A permission with its ranges as EC2 keeps them."""
    ranges = permission.get("ip_ranges")
    if isinstance(ranges, list):
        permission["ip_ranges"] = [_canonical_range(one) if isinstance(one, dict) else one for one in ranges]
    return permission


def _canonical_range(of: "dict[str, Any]") -> "dict[str, Any]":
    found = dict(of)
    for key in ("CidrIp", "CidrIpv6"):
        with contextlib.suppress(ValueError):  # what is no range is refused by moto
            if key in found:
                found[key] = str(ipaddress.ip_network(found[key], strict=False))
    return found


def an_unknown_rule_id_is_said_so() -> None:
    """AWS: revoking a rule id that is not there is InvalidSecurityGroupRuleId.NotFound.
    moto: InvalidPermission.NotFound.
    """
    for direction in ("ingress", "egress"):
        _check_rule_ids(direction)


def _check_rule_ids(direction: str) -> None:
    @replace(SecurityGroupBackend, f"revoke_security_group_{direction}")
    def revoke(original: Any, backend: Any, group_name_or_id: str, *args: Any, **kwargs: Any) -> Any:
        group = backend.get_security_group_by_name_or_id(group_name_or_id)
        known = [rule.id for rule in getattr(group, f"{direction}_rules", [])]
        for rule_id in kwargs.get("security_rule_ids") or []:
            if rule_id not in known:
                raise InvalidSecurityGroupRuleIdNotFoundError(rule_id)
        return original(backend, group_name_or_id, *args, **kwargs)


def rules_that_name_a_group_are_described() -> None:
    """AWS: a rule for a group describes with its own description, and with an ARN.
    moto: drops the description of such rules.
    """

    @replace_property(SecurityGroupRule, "description")
    def description(rule: Any) -> Any:
        return rule.ip_range.get("Description") or rule.source_group.get("Description")

    @replace_property(SecurityGroupRule, "referenced_group_info")
    def referenced_group_info(rule: Any) -> Any:
        return {key: rule.source_group.get(key) for key in ("GroupId", "UserId")} if rule.source_group else None

    SecurityGroupRule.security_group_rule_arn = property(
        lambda rule: f"arn:aws:ec2:{rule.ec2_backend.region_name}:{rule.owner_id}:security-group-rule/{rule.id}"
    )
