"""Security groups, their rules."""

from __future__ import annotations

import pytest

from . import make
from .errors import code_of


@pytest.fixture
def vpc(both):
    return make.vpc(both)


def from_group(group, port, **more):
    return {"IpProtocol": "tcp", "FromPort": port, "ToPort": port, "UserIdGroupPairs": [{"GroupId": group, **more}]}


def from_anywhere(port):
    return {"IpProtocol": "tcp", "FromPort": port, "ToPort": port, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}


def rules(aws, group, **more):
    found = aws.ec2.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group]}], **more)
    return found["SecurityGroupRules"]


def test_a_group_named_by_another_stays(both, vpc):
    named, naming = make.group(both, vpc), make.group(both, vpc)
    made = both.ec2.authorize_security_group_ingress(GroupId=naming, IpPermissions=[from_group(named, 443)])
    assert code_of(both.ec2.delete_security_group, GroupId=named) == "DependencyViolation"
    identity = made["SecurityGroupRules"][0]["SecurityGroupRuleId"]
    both.ec2.revoke_security_group_ingress(GroupId=naming, SecurityGroupRuleIds=[identity])
    both.ec2.delete_security_group(GroupId=named)


def test_an_instance_leaves_its_old_groups_for_the_new_ones(both, vpc):
    old, new = make.group(both, vpc), make.group(both, vpc)
    launch = {"ImageId": make.image(both), "InstanceType": "t3.medium", "SubnetId": make.subnets(both, vpc, "a")[0]}
    made = both.ec2.run_instances(**launch, SecurityGroupIds=[old], MinCount=1, MaxCount=1)["Instances"][0]
    both.ec2.modify_instance_attribute(InstanceId=made["InstanceId"], Groups=[new])
    filters = [{"Name": "attachment.instance-id", "Values": [made["InstanceId"]]}]
    (interface,) = both.ec2.describe_network_interfaces(Filters=filters)["NetworkInterfaces"]
    assert [group["GroupId"] for group in interface["Groups"]] == [new]
    both.ec2.delete_security_group(GroupId=old)


def test_a_group_of_an_interface_stays(both, vpc):
    (subnet,) = make.subnets(both, vpc, "a")
    group = make.group(both, vpc)
    eni = both.ec2.create_network_interface(SubnetId=subnet, Groups=[group])["NetworkInterface"]["NetworkInterfaceId"]
    assert code_of(both.ec2.delete_security_group, GroupId=group) == "DependencyViolation"
    both.ec2.delete_network_interface(NetworkInterfaceId=eni)
    both.ec2.delete_security_group(GroupId=group)


def test_the_default_group_stays(both, vpc):
    filters = [{"Name": "vpc-id", "Values": [vpc]}]
    (default,) = both.ec2.describe_security_groups(Filters=filters)["SecurityGroups"]
    assert code_of(both.ec2.delete_security_group, GroupId=default["GroupId"]) == "CannotDelete"


def test_an_interface_takes_existing_groups_only(both, vpc):
    (subnet,) = make.subnets(both, vpc, "a")
    unknown = ["sg-0123456789abcdef0"]
    assert code_of(both.ec2.create_network_interface, SubnetId=subnet, Groups=unknown) == "InvalidGroup.NotFound"


def test_a_duplicate_among_several_adds_none(both, vpc):
    group = make.group(both, vpc)
    both.ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[from_anywhere(443)])
    two = [from_anywhere(22), from_anywhere(443)]
    authorize = both.ec2.authorize_security_group_ingress
    assert code_of(authorize, GroupId=group, IpPermissions=two) == "InvalidPermission.Duplicate"
    assert [rule["FromPort"] for rule in rules(both, group) if not rule["IsEgress"]] == [443]


def test_an_unknown_rule_id_is_said_so(both, vpc):
    revoke = {"GroupId": make.group(both, vpc), "SecurityGroupRuleIds": ["sgr-0123456789abcdef0"]}
    assert code_of(both.ec2.revoke_security_group_ingress, **revoke) == "InvalidSecurityGroupRuleId.NotFound"


def test_rules_come_in_pages(both, vpc):
    group = make.group(both, vpc)
    both.ec2.authorize_security_group_ingress(
        GroupId=group, IpPermissions=[from_anywhere(port) for port in range(1, 7)]
    )
    pages = both.ec2.get_paginator("describe_security_group_rules").paginate(
        Filters=[{"Name": "group-id", "Values": [group]}], MaxResults=5
    )
    assert [len(page["SecurityGroupRules"]) for page in pages] == [5, 2]


@pytest.mark.parametrize(
    "field, written, kept",
    [("CidrIp", "100.68.0.18/18", "100.68.0.0/18"), ("CidrIpv6", "2001:DB8:0::1/32", "2001:db8::/32")],
)
def test_ranges_are_kept_in_canonical_form(both, vpc, field, written, kept):
    group = make.group(both, vpc)
    ranges = {"CidrIp": "IpRanges", "CidrIpv6": "Ipv6Ranges"}[field]
    rule = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, ranges: [{field: written}]}
    both.ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])
    described = {"CidrIp": "CidrIpv4"}.get(field, field)
    assert kept in [one.get(described) for one in rules(both, group) if not one["IsEgress"]]
    again = {**rule, ranges: [{field: kept}]}
    assert code_of(both.ec2.authorize_security_group_ingress, GroupId=group, IpPermissions=[again]) == (
        "InvalidPermission.Duplicate"
    )


# Key pairs
