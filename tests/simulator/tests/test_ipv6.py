"""Instances in subnets with IPv6: their addresses, what they are told of themselves, and ranges for their pods."""

from __future__ import annotations

import ipaddress

import pytest

from . import make
from .test_world import by, world


def _block(aws, vpc):
    """The first /64 of the VPC's IPv6 range."""
    (found,) = aws.ec2.describe_vpcs(VpcIds=[vpc])["Vpcs"][0]["Ipv6CidrBlockAssociationSet"]
    return found["Ipv6CidrBlock"].replace("/56", "/64")


def _launch(aws, subnet, **more):
    launch = {"ImageId": make.image(aws), "InstanceType": "t3.small", "SubnetId": subnet, "MinCount": 1, "MaxCount": 1}
    return aws.ec2.run_instances(**launch, **more)["Instances"][0]["InstanceId"]


def _described(aws, instance):
    (found,) = aws.ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"]
    return found


@pytest.fixture
def alone(both):
    """An instance in a subnet with IPv6 alone, in a VPC with DNS hostnames."""
    vpc = make.vpc(both, AmazonProvidedIpv6CidrBlock=True)
    both.ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
    made = both.ec2.create_subnet(
        VpcId=vpc, Ipv6CidrBlock=_block(both, vpc), Ipv6Native=True, AvailabilityZone="us-east-1a"
    )
    return _launch(both, made["Subnet"]["SubnetId"])


def test_an_instance_with_ipv6_alone_has_no_private_ipv4_address(both, alone):
    found = _described(both, alone)
    (interface,) = found["NetworkInterfaces"]
    assert "PrivateIpAddress" not in found and not interface.get("PrivateIpAddresses")
    assert [one["Ipv6Address"] for one in interface["Ipv6Addresses"]] == [found["Ipv6Address"]]
    assert found["PrivateDnsName"] == f"{alone}.ec2.internal"


def test_ranges_are_delegated_once_and_described(both, alone):
    (interface,) = _described(both, alone)["NetworkInterfaces"]
    ask = {"NetworkInterfaceId": interface["NetworkInterfaceId"], "Ipv6PrefixCount": 1}
    ranges = [both.ec2.assign_ipv6_addresses(**ask)["AssignedIpv6Prefixes"] for _ in range(2)]
    assert [ipaddress.ip_network(one).prefixlen for (one,) in ranges] == [80, 80]
    (interface,) = _described(both, alone)["NetworkInterfaces"]
    assert [one["Ipv6Prefix"] for one in interface["Ipv6Prefixes"]] == [one for (one,) in ranges]
    assert ranges[0] != ranges[1]


def test_a_template_tags_the_interfaces(both):
    vpc = make.vpc(both)
    (subnet,) = make.subnets(both, vpc, "a")
    tags = [{"ResourceType": "network-interface", "Tags": [{"Key": "k", "Value": "v"}]}]
    template = make.template(both, TagSpecifications=tags)
    (member,) = make.members(both, make.scaling_group(both, [subnet], template))
    ask = [{"Name": "attachment.instance-id", "Values": [member["InstanceId"]]}]
    (interface,) = both.ec2.describe_network_interfaces(Filters=ask)["NetworkInterfaces"]
    assert interface["TagSet"] == [{"Key": "k", "Value": "v"}]


def test_a_host_with_ipv6_alone_is_told_of_itself(aws):
    vpc = make.vpc(aws, AmazonProvidedIpv6CidrBlock=True)
    made = aws.ec2.create_subnet(
        VpcId=vpc, Ipv6CidrBlock=_block(aws, vpc), Ipv6Native=True, AvailabilityZone="us-east-1a"
    )
    subnet = made["Subnet"]["SubnetId"]
    aws.ec2.modify_subnet_attribute(SubnetId=subnet, EnableDns64={"Value": True})
    instance = _launch(aws, subnet)
    (interface,) = _described(aws, instance)["NetworkInterfaces"]
    ask = {"NetworkInterfaceId": interface["NetworkInterfaceId"], "Ipv6PrefixCount": 1}
    ranges = aws.ec2.assign_ipv6_addresses(**ask)["AssignedIpv6Prefixes"]
    told = by(world(aws, region="us-east-1")["instances"], id=instance)
    assert told["ipv6_prefixes"] == ranges
    assert ipaddress.ip_address(told["address"]).is_link_local
    assert by(world(aws)["subnets"], id=subnet) | {"route_table": ""} == {
        "id": subnet,
        "vpc": vpc,
        "zone": "us-east-1a",
        "cidr": None,
        "dns64": True,
        "route_table": "",
    }
    tree = aws.control("GET", f"metadata/{instance}")["meta-data"]
    assert tree["ipv6"] == told["ipv6_addresses"][0]
    (nic,) = tree["network"]["interfaces"]["macs"].values()
    assert nic["ipv6-prefix"] == ranges[0]
    assert "local-ipv4" not in tree and "local-ipv4s" not in nic
