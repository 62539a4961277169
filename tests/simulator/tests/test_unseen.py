"""What was made a moment ago does not exist yet for whoever names it."""

from __future__ import annotations

from typing import Any, Callable

import pytest

from . import make
from .conftest import Server, start
from .errors import code_of

_CODES = {
    "vpc": "InvalidVpcID.NotFound",
    "subnet": "InvalidSubnetID.NotFound",
    "group": "InvalidGroup.NotFound",
    "table": "InvalidRouteTableID.NotFound",
}


@pytest.fixture(scope="module")
def late() -> Any:
    """A simulator in which an hour has to pass before anything is seen."""
    life, endpoint = start("--settle", "0")
    with life:
        yield Server(endpoint)


def wait(late: Server) -> None:
    """The hour has passed."""
    late.control("POST", "clock", 3601)


@pytest.fixture
def made(late: Server) -> "dict[str, str]":
    """One of each, made now; what it stands in was made before."""
    late.control("POST", "lag", 3600)
    vpc = make.vpc(late)
    wait(late)
    block = late.ec2.describe_vpcs(VpcIds=[vpc])["Vpcs"][0]["CidrBlock"]
    subnet = late.ec2.create_subnet(VpcId=vpc, CidrBlock=block)["Subnet"]["SubnetId"]
    table = late.ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    return {"vpc": make.vpc(late), "subnet": subnet, "table": table, "group": make.group(late, vpc)}


def calls(late: Server, made: "dict[str, str]") -> "dict[str, tuple[Callable[..., Any], dict[str, Any]]]":
    """What names each of them."""
    permission = [{"IpProtocol": "tcp", "FromPort": 1, "ToPort": 1, "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}]
    return {
        "vpc": (late.ec2.create_route_table, {"VpcId": made["vpc"]}),
        "subnet": (late.ec2.create_tags, {"Resources": [made["subnet"]], "Tags": [{"Key": "a", "Value": ""}]}),
        "group": (
            late.ec2.authorize_security_group_ingress,
            {"GroupId": made["group"], "IpPermissions": permission},
        ),
        "table": (late.ec2.associate_route_table, {"RouteTableId": made["table"], "SubnetId": made["subnet"]}),
    }


@pytest.mark.parametrize("what", _CODES)
def test_ec2_does_not_see_it_yet(late: Server, made: "dict[str, str]", what: str) -> None:
    call, values = calls(late, made)[what]
    codes = {_CODES[what]} | ({_CODES["subnet"]} if what == "table" else set())
    assert code_of(call, **values) in codes
    wait(late)
    call(**values)


def test_load_balancing_does_not_see_it_yet(late: Server, made: "dict[str, str]") -> None:
    group = {"Name": late.unique("tg"), "Protocol": "TCP", "Port": 443, "VpcId": made["vpc"]}
    assert code_of(late.elbv2.create_target_group, **group) == "ValidationError"
    balancer = {"Name": late.unique("lb"), "Type": "network", "Scheme": "internal", "Subnets": [made["subnet"]]}
    assert code_of(late.elbv2.create_load_balancer, **balancer) == "SubnetNotFound"
    wait(late)
    late.elbv2.create_target_group(**group)
    vpc = late.ec2.describe_subnets(SubnetIds=[made["subnet"]])["Subnets"][0]["VpcId"]
    balancer["SecurityGroups"] = [make.group(late, vpc)]
    assert code_of(late.elbv2.create_load_balancer, **balancer) == "InvalidSecurityGroup"
    wait(late)
    late.elbv2.create_load_balancer(**balancer)


def test_auto_scaling_does_not_see_a_subnet_yet(late: Server, made: "dict[str, str]") -> None:
    template = make.template(late)
    settings = {"MinSize": 0, "MaxSize": 0, "VPCZoneIdentifier": made["subnet"], "AutoScalingGroupName": late.unique("g")}
    settings["LaunchTemplate"] = {"LaunchTemplateName": template, "Version": "$Latest"}
    assert code_of(late.autoscaling.create_auto_scaling_group, **settings) == "ValidationError"
    wait(late)
    late.autoscaling.create_auto_scaling_group(**settings)


def test_a_zone_does_not_see_a_vpc_yet(late: Server, made: "dict[str, str]") -> None:
    vpc = {"VPCRegion": "us-east-1", "VPCId": made["vpc"]}
    zone = {"Name": "late.example.org", "CallerReference": late.unique("r"), "VPC": vpc}
    assert code_of(late.route53.create_hosted_zone, **zone) == "InvalidVPCId"
    wait(late)
    late.route53.create_hosted_zone(**zone)
