"""What the simulator tells whoever runs the machines: its form, its content, when it changes."""

from __future__ import annotations

import json
import os
import threading

import pytest

from . import make
from .conftest import ROOT

# What the lab reads it as (tests/lab/tests/world.rs); SIMULATOR_SAMPLE=1 writes it anew.
SAMPLE = ROOT / "lab" / "tests" / "world.json"


def world(aws, **asked):
    query = "&".join(f"{key}={value}" for key, value in asked.items())
    return aws.control("GET", "world" + (f"?{query}" if query else ""))


def waits(aws, after, act=lambda: None):
    """What a wait of ten minutes ends with, once `act` is done; it has to end long before."""
    found = {}
    waiting = threading.Thread(target=lambda: found.update(world(aws, after=after, wait=600)), daemon=True)
    waiting.start()
    act()
    waiting.join(20)
    assert not waiting.is_alive(), "nothing woke it up"
    return found


def settled(aws):
    """The world once nothing in it is under way."""
    aws.control("POST", "settle")
    return world(aws)


def by(items, **wanted):
    """The one item with these fields."""
    (found,) = [item for item in items if all(item[key] == value for key, value in wanted.items())]
    return found


@pytest.fixture(scope="module")
def cluster(aws):
    """One of everything that the world tells."""
    vpc = make.vpc(aws)
    subnets = make.subnets(aws, vpc)
    gateway = make.internet_gateway(aws, vpc)
    group, other, profile = make.group(aws, vpc), make.group(aws, vpc), make.profile(aws)
    template = make.template(
        aws,
        SecurityGroupIds=[group],
        IamInstanceProfile={"Name": profile},
        UserData=make.user_data("#!/bin/sh\necho hello\n"),
        MetadataOptions={"HttpTokens": "required", "HttpPutResponseHopLimit": 3, "InstanceMetadataTags": "enabled"},
    )
    make.scaling_group(aws, subnets, template, size=2)
    return {"aws": aws, "vpc": vpc, "subnets": subnets, "gateway": gateway, "group": group, "other": other}


def test_the_world_is_complete(cluster):
    """Every list has something in it, made through AWS's own calls."""
    aws, vpc, subnets = cluster["aws"], cluster["vpc"], cluster["subnets"]
    table = aws.ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    aws.ec2.associate_route_table(RouteTableId=table, SubnetId=subnets[1])
    address = aws.ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = aws.ec2.create_nat_gateway(SubnetId=subnets[0], AllocationId=address)["NatGateway"]["NatGatewayId"]
    aws.ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", NatGatewayId=nat)
    aws.ec2.create_egress_only_internet_gateway(VpcId=vpc)
    instance = by(world(aws)["instances"], subnet=subnets[0])
    aws.ec2.create_route(RouteTableId=table, DestinationCidrBlock="100.64.0.0/24", InstanceId=instance["id"])
    volume = aws.ec2.create_volume(Size=7, VolumeType="gp3", AvailabilityZone=instance["zone"])["VolumeId"]
    aws.ec2.attach_volume(VolumeId=volume, InstanceId=instance["id"], Device="/dev/xvdu")
    permissions = [
        {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "IpRanges": [{"CidrIp": "10.0.0.0/8"}]},
        {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": cluster["other"]}]},
        {"IpProtocol": "icmp", "FromPort": 3, "ToPort": -1, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]},
    ]
    aws.ec2.authorize_security_group_ingress(GroupId=cluster["group"], IpPermissions=permissions)
    balancer = aws.elbv2.create_load_balancer(Name=aws.unique("nlb"), Type="network", Subnets=subnets)["LoadBalancers"]
    target_group = aws.elbv2.create_target_group(
        Name=aws.unique("tg"), Protocol="TCP", Port=443, VpcId=vpc, HealthCheckProtocol="HTTPS", HealthCheckPath="/x"
    )["TargetGroups"][0]["TargetGroupArn"]
    action = [{"Type": "forward", "TargetGroupArn": target_group}]
    arn = balancer[0]["LoadBalancerArn"]
    aws.elbv2.create_listener(LoadBalancerArn=arn, Protocol="TCP", Port=8443, DefaultActions=action)
    aws.elbv2.register_targets(TargetGroupArn=target_group, Targets=[{"Id": instance["id"]}])
    zone_id = _zone(aws, vpc, balancer[0])

    now = world(aws, region="us-east-1")
    if os.environ.get("SIMULATOR_SAMPLE"):
        SAMPLE.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n")
    assert form(now) == form(json.loads(SAMPLE.read_text()))
    assert by(now["vpcs"], id=vpc)["domain_name_servers"] == ["AmazonProvidedDNS"]
    assert by(now["vpcs"], id=vpc)["domain_name"] == "ec2.internal"
    assert by(now["subnets"], id=subnets[1])["route_table"] == table
    assert by(now["subnets"], id=subnets[0])["route_table"] != table
    routes = {route["destination"]: route for route in by(now["route_tables"], id=table)["routes"]}
    assert routes["0.0.0.0/0"]["target"] == nat
    assert (routes["100.64.0.0/24"]["target"], routes["100.64.0.0/24"]["instance"]) == (instance["id"],) * 2
    assert [route["target"] for route in routes.values()].count("local") == 1
    assert by(now["internet_gateways"], id=cluster["gateway"])["vpc"] == vpc
    assert vpc in [gateway["vpc"] for gateway in now["egress_only_gateways"]]
    assert by(now["nat_gateways"], id=nat)["public_address"]
    attachment = {"instance": instance["id"], "device": "/dev/xvdu", "state": "attached"}
    assert by(now["volumes"], id=volume) == {
        "id": volume,
        "size": 7,
        "zone": instance["zone"],
        "attachment": attachment,
    }
    ingress = by(now["security_groups"], id=cluster["group"])["ingress"]
    assert {"protocol": "tcp", "from": 443, "to": 443, "cidr": "10.0.0.0/8", "group": None} in ingress
    assert {"protocol": "-1", "from": None, "to": None, "cidr": None, "group": cluster["other"]} in ingress
    assert {"protocol": "icmp", "from": 3, "to": -1, "cidr": "0.0.0.0/0", "group": None} in ingress
    told = by(now["load_balancers"], arn=arn)
    assert told["listeners"] == [{"protocol": "TCP", "port": 8443, "target_group": target_group}]
    assert [address["subnet"] for address in told["addresses"]] == subnets
    assert all(address["public_address"] for address in told["addresses"])
    checked = by(now["target_groups"], arn=target_group)
    assert checked["targets"] == [{"instance": instance["id"], "port": 443, "state": "healthy"}]
    assert (checked["health_check"]["port"], checked["health_check"]["path"]) == (443, "/x")
    zone = by(now["hosted_zones"], id=zone_id)
    assert (zone["private"], zone["vpcs"]) == (True, [vpc])
    alias = by(zone["records"], type="A")
    assert (alias["name"], alias["alias"]) == ("*.api.internal", balancer[0]["DNSName"].lower())


def form(document, path=""):
    """Where there are objects, and the names of their fields; tags have any."""
    if isinstance(document, list):
        return set().union(*(form(item, path + "[]") for item in document))
    if not isinstance(document, dict) or path.endswith(".tags"):
        return set()
    return {(path, *sorted(document))}.union(*(form(item, f"{path}.{key}") for key, item in document.items()))


def _zone(aws, vpc, balancer):
    """A private zone with an alias of a balancer under a wildcard."""
    association = {"VPCRegion": "us-east-1", "VPCId": vpc}
    made = aws.route53.create_hosted_zone(Name="internal.", CallerReference=aws.unique("zone"), VPC=association)
    zone = made["HostedZone"]["Id"].split("/")[-1]
    alias = {
        "HostedZoneId": balancer["CanonicalHostedZoneId"],
        "DNSName": balancer["DNSName"],
        "EvaluateTargetHealth": False,
    }
    record = {"Name": "*.api.internal.", "Type": "A", "AliasTarget": alias}
    batch = {"Changes": [{"Action": "UPSERT", "ResourceRecordSet": record}]}
    aws.route53.change_resource_record_sets(HostedZoneId=zone, ChangeBatch=batch)
    return zone


def test_the_serial_grows_only_with_a_difference(cluster):
    aws = cluster["aws"]
    before = settled(aws)
    aws.ec2.describe_instances()
    aws.ec2.create_tags(Resources=[cluster["vpc"]], Tags=[{"Key": "k", "Value": aws.unique("v")}])
    assert world(aws)["serial"] == before["serial"]
    aws.ec2.create_internet_gateway()
    assert world(aws)["serial"] > before["serial"]


def test_a_wait_ends_with_the_change_and_holds_nobody_up(cluster):
    aws = cluster["aws"]
    before = settled(aws)["serial"]
    made = []
    found = waits(aws, before, lambda: made.append(aws.ec2.create_internet_gateway()["InternetGateway"]))
    assert by(found["internet_gateways"], id=made[0]["InternetGatewayId"])


def test_a_wait_sees_what_happens_later(cluster):
    """Nobody calls, and yet the balancer becomes active."""
    aws = cluster["aws"]
    aws.control("POST", "settle", 1)
    made = aws.elbv2.create_load_balancer(Name=aws.unique("nlb"), Type="network", Subnets=cluster["subnets"])
    arn = made["LoadBalancers"][0]["LoadBalancerArn"]
    before = world(aws)
    assert by(before["load_balancers"], arn=arn)["state"] == "provisioning"
    assert by(waits(aws, before["serial"])["load_balancers"], arn=arn)["state"] == "active"
    aws.control("POST", "settle", 0.6)


def test_a_wait_without_a_change_ends_with_its_time(cluster):
    aws = cluster["aws"]
    before = settled(aws)
    assert world(aws, after=before["serial"], wait=0.2) == before


def test_regions_are_told_apart(cluster):
    aws = cluster["aws"]
    assert world(aws, region="eu-west-1")["instances"] == []
    assert world(aws, region="eu-west-1")["region"] == "eu-west-1"
    assert world(aws)["region"] == "us-east-1"
