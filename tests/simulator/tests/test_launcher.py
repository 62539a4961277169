"""The launcher itself: control endpoints, events, the listing."""

from __future__ import annotations

import json
import socket
import threading

import pytest

from simulator import listing

from . import make
from .conftest import Server, eventually, python, start


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A simulator of our own, since these tests empty it."""
    port = tmp_path_factory.mktemp("own") / "port"
    life, endpoint = start("--settle", "0", "--port-file", str(port))
    assert endpoint.endswith(":" + port.read_text().strip())
    with life:
        yield Server(endpoint)


@pytest.fixture
def fresh(own):
    own.control("POST", "reset")
    return own


def counts(aws):
    return aws.control("GET", "calls")


def test_a_call_is_under_way_until_it_is_answered(fresh):
    fresh.control("POST", "latency", 500)
    caller = threading.Thread(target=fresh.ec2.describe_vpcs)
    caller.start()
    eventually(lambda: counts(fresh)["underway"] == 1)
    caller.join()
    assert counts(fresh)["underway"] == 0


def test_calls_are_counted_by_operation(fresh):
    make.vpc(fresh)
    fresh.ec2.describe_vpcs()
    fresh.ec2.describe_vpcs()
    fresh.elbv2.describe_load_balancers()
    fresh.route53.list_hosted_zones()
    fresh.sqs.list_queues()
    fresh.s3.create_bucket(Bucket="bucket")
    fresh.s3.put_object(Bucket="bucket", Key="folder/k", Body=b"1")
    fresh.s3.list_objects_v2(Bucket="bucket")
    fresh.s3.get_object(Bucket="bucket", Key="folder/k")["Body"].read()
    found = counts(fresh)
    assert found["calls"] == {
        "ec2.CreateVpc": 1,
        "ec2.DescribeVpcs": 2,
        "elbv2.DescribeLoadBalancers": 1,
        "route53.ListHostedZones": 1,
        "sqs.ListQueues": 1,
        "s3.CreateBucket": 1,
        "s3.PutObject": 1,
        "s3.ListObjectsV2": 1,
        "s3.GetObject": 1,
    }
    assert (found["total"], found["s3"], found["aws"]) == (10, 4, 6)
    fresh.control("POST", "calls/reset")
    assert counts(fresh)["total"] == 0


def test_reset_leaves_the_images_and_nothing_else(fresh):
    empty = listing.listing(listing.clients(fresh.endpoint, "us-east-1"))
    images = {image["ImageId"]: image["Name"] for image in fresh.ec2.describe_images()["Images"]}
    make.scaling_group(fresh, make.subnets(fresh, make.vpc(fresh)), make.template(fresh))
    fresh.control("POST", "reset")
    assert listing.listing(listing.clients(fresh.endpoint, "us-east-1")) == empty
    assert {image["ImageId"]: image["Name"] for image in fresh.ec2.describe_images()["Images"]} == images


def test_the_listing_shows_everything_that_was_made(fresh):
    before = set(lines(fresh))
    vpc = make.vpc(fresh)
    subnets = make.subnets(fresh, vpc)
    make.internet_gateway(fresh, vpc)
    make.scaling_group(fresh, subnets, make.template(fresh))
    profile = make.profile(fresh)
    fresh.elbv2.create_load_balancer(Name="nlb", Type="network", Scheme="internal", Subnets=subnets)
    fresh.s3.create_bucket(Bucket="bucket")
    fresh.s3.put_object(Bucket="bucket", Key="k", Body=b"1")
    fresh.sqs.create_queue(QueueName="q")
    fresh.events.put_rule(Name="r", EventPattern=json.dumps({"source": ["aws.ec2"]}))
    fresh.route53.create_hosted_zone(Name="example.com", CallerReference="1")
    left = {tuple(line.split()[:2]) for line in set(lines(fresh)) - before}
    assert {
        ("autoscaling", "group"),
        ("ec2", "instance"),
        ("ec2", "internet-gateway"),
        ("ec2", "launch-template"),
        ("ec2", "network-interface"),
        ("ec2", "route-table"),
        ("ec2", "security-group"),
        ("ec2", "security-group-rule"),
        ("ec2", "subnet"),
        ("ec2", "volume"),
        ("ec2", "vpc"),
        ("elbv2", "load-balancer"),
        ("events", "rule"),
        ("iam", "instance-profile"),
        ("iam", "role"),
        ("route53", "hosted-zone"),
        ("route53", "record"),
        ("s3", "bucket"),
        ("s3", "object"),
        ("sqs", "queue"),
    } <= left
    assert any(line.startswith(f"iam role {profile} ") for line in lines(fresh))


def test_somebody_elses_tags_come_to_everything_that_has_tags(fresh):
    fresh.control("POST", "foreign-tags", {"CostCenter": "42"})
    own = [{"Key": "a", "Value": "b"}]
    vpc = make.vpc(fresh, TagSpecifications=[{"ResourceType": "vpc", "Tags": own}])
    fresh.iam.create_role(RoleName="r", AssumeRolePolicyDocument=make.TRUST, Tags=own)
    group = fresh.elbv2.create_target_group(Name="t", Protocol="TCP", Port=443, VpcId=vpc, Tags=own)
    arn = group["TargetGroups"][0]["TargetGroupArn"]
    both = [*own, {"Key": "CostCenter", "Value": "42"}]
    assert fresh.ec2.describe_vpcs(VpcIds=[vpc])["Vpcs"][0]["Tags"] == both
    assert fresh.iam.get_role(RoleName="r")["Role"]["Tags"] == both
    assert fresh.elbv2.describe_tags(ResourceArns=[arn])["TagDescriptions"][0]["Tags"] == both
    untagged = make.vpc(fresh)
    assert fresh.ec2.describe_vpcs(VpcIds=[untagged])["Vpcs"][0].get("Tags", []) == []
    fresh.control("POST", "reset")
    again = make.vpc(fresh, TagSpecifications=[{"ResourceType": "vpc", "Tags": own}])
    assert fresh.ec2.describe_vpcs(VpcIds=[again])["Vpcs"][0]["Tags"] == own


def lines(aws):
    code = f"from simulator.listing import main\nmain(['--endpoint', {aws.endpoint!r}])"
    with python(code).makefile() as printed:
        found = printed.read().removesuffix("\0").splitlines()
    assert found == sorted(found) and all(len(line.split()) == 4 for line in found)
    return found


def test_a_simulator_ends_with_its_connection():
    life, endpoint = start()
    life.close()
    eventually(lambda: refuses(endpoint))


def refuses(endpoint):
    host, port = endpoint.removeprefix("http://").split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) != 0


@pytest.mark.parametrize("code, ended", [("print(1)", "1\n\0"), ("print(1); raise KeyError(2)", "KeyError: 2\n")])
def test_only_what_ends_well_says_so(code, ended):
    with python(code).makefile() as printed:
        assert printed.read().endswith(ended)


def test_a_port_that_is_taken_is_said():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with python(f"from simulator.__main__ import main\nmain(['--port', '{taken.getsockname()[1]}'])").makefile() as printed:
            assert "listening" not in (said := printed.read()) and "\0" not in said
