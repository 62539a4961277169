"""The launcher itself: control endpoints, events, the listing."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import threading
import time

import pytest
from botocore.exceptions import ConnectionClosedError, EndpointConnectionError

from simulator import listing

from . import make
from .conftest import ROOT, Server, eventually, start
from .errors import code_of


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A launcher of our own, since these tests empty it."""
    folder = tmp_path_factory.mktemp("own")
    events, port = folder / "events.jsonl", folder / "port"
    command = [
        sys.executable,
        "-m",
        "simulator",
        "--settle",
        "0",
        "--state-events",
        str(events),
        "--port-file",
        str(port),
    ]
    process, endpoint = start(command, folder / "log")
    assert endpoint.endswith(":" + port.read_text().strip())
    yield Server(endpoint, True, events)
    process.terminate()
    process.wait()


@pytest.fixture
def fresh(own):
    own.control("POST", "reset")
    return own


def counts(aws):
    return aws.control("GET", "calls")


def test_a_call_is_under_way_until_it_is_answered(fresh):
    fresh.control("POST", "latency", 3000)
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


def test_a_fault_before_the_call_has_no_effect(fresh):
    fault = {"service": "ec2", "operation": "Create*", "code": "RequestLimitExceeded", "status": 503, "times": 1}
    fresh.control("POST", "faults", [fault])
    assert code_of(fresh.ec2.create_vpc, CidrBlock="10.0.0.0/16") == "RequestLimitExceeded"
    assert fresh.ec2.describe_vpcs()["Vpcs"] == []
    fresh.ec2.create_vpc(CidrBlock="10.0.0.0/16")


def test_a_fault_after_the_call_hides_its_effect(fresh):
    fresh.control("POST", "faults", [{"operation": "CreateVpc", "code": "InternalError", "after": True}])
    assert code_of(fresh.ec2.create_vpc, CidrBlock="10.0.0.0/16") == "InternalError"
    assert len(fresh.ec2.describe_vpcs()["Vpcs"]) == 1


def test_a_connection_is_killed_after_two_calls(fresh):
    fresh.control("POST", "faults", [{"code": "kill-connection", "skip": 2}])
    fresh.ec2.describe_vpcs()
    fresh.ec2.describe_subnets()
    with pytest.raises((ConnectionClosedError, EndpointConnectionError)):
        fresh.ec2.describe_volumes()
    fresh.ec2.describe_volumes()


@pytest.mark.parametrize("service", ["ec2", "autoscaling", "elbv2", "iam", "route53", "sqs", "events", "s3", "sts"])
def test_every_service_is_throttled_in_its_own_words(fresh, service):
    calls = {
        "ec2": ("describe_vpcs", {}),
        "autoscaling": ("describe_auto_scaling_groups", {}),
        "elbv2": ("describe_load_balancers", {}),
        "iam": ("list_roles", {}),
        "route53": ("list_hosted_zones", {}),
        "sqs": ("list_queues", {}),
        "events": ("list_rules", {}),
        "s3": ("list_buckets", {}),
        "sts": ("get_caller_identity", {}),
    }
    fresh.control("POST", "faults", [{"service": service, "code": "Throttling", "status": 400}])
    name, arguments = calls[service]
    assert code_of(getattr(fresh.client(service), name), **arguments) == "Throttling"


def test_a_receiver_that_waits_holds_nobody_up(fresh):
    """A long poll of a queue goes on while others call, and ends with a message."""
    url = fresh.sqs.create_queue(QueueName="q")["QueueUrl"]
    found = []

    def receive():
        found.extend(fresh.sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"])

    waiting = threading.Thread(target=receive)
    waiting.start()
    for _ in range(3):
        fresh.ec2.describe_vpcs()
    assert waiting.is_alive()
    fresh.sqs.send_message(QueueUrl=url, MessageBody="hello")
    waiting.join(10)
    assert [message["Body"] for message in found] == ["hello"]


def test_latency_is_added_to_calls(fresh):
    fresh.control("POST", "latency", 200)
    began = time.monotonic()
    fresh.ec2.describe_vpcs()
    assert time.monotonic() - began > 0.2


def test_what_comes_later_is_made_to_come_now(fresh):
    fresh.control("POST", "settle", 3600)
    subnets = make.subnets(fresh, make.vpc(fresh))
    balancer = {"Name": "nlb", "Type": "network", "Scheme": "internal", "Subnets": subnets}

    def state():
        return fresh.elbv2.describe_load_balancers()["LoadBalancers"][0]["State"]["Code"]

    fresh.elbv2.create_load_balancer(**balancer)
    assert state() == "provisioning"
    fresh.control("POST", "settle", 0)
    assert state() == "active"


def test_launches_and_terminations_are_reported(fresh):
    before = len(fresh.events_file.read_text().splitlines())
    vpc = make.vpc(fresh)
    subnets, group, profile = make.subnets(fresh, vpc, "a"), make.group(fresh, vpc), make.profile(fresh)
    interface = {"DeviceIndex": 0, "Groups": [group], "DeleteOnTermination": True}
    template = make.template(
        fresh, UserData=make.user_data("hello"), NetworkInterfaces=[interface], IamInstanceProfile={"Name": profile}
    )
    tags = [{"Key": "cluster", "Value": "c", "PropagateAtLaunch": True}]
    name = make.scaling_group(fresh, subnets, template, Tags=tags)
    (member,) = make.members(fresh, name)
    fresh.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=name, ForceDelete=True)
    launch, terminate = [json.loads(line) for line in fresh.events_file.read_text().splitlines()[before:]]
    assert (launch["event"], launch["id"], launch["ip"]) == ("launch", member["InstanceId"], member["PrivateIpAddress"])
    assert (launch["subnet"], launch["type"], launch["ami"]) == (subnets[0], "t3.medium", make.image(fresh))
    assert base64.b64decode(launch["user_data"]) == b"hello"
    assert launch["instance_profile"].endswith("/" + profile)
    assert launch["security_groups"] == [group]
    assert (launch["tags"]["cluster"], launch["tags"]["aws:autoscaling:groupName"]) == ("c", name)
    assert (terminate["event"], terminate["id"]) == ("terminate", member["InstanceId"])


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


def lines(aws):
    command = [sys.executable, "-m", "simulator.listing", "--endpoint", aws.endpoint]
    answer = subprocess.run(command, env={"PYTHONPATH": str(ROOT)}, check=True, capture_output=True, text=True)
    found = answer.stdout.splitlines()
    assert found == sorted(found) and all(len(line.split()) == 4 for line in found)
    return found


def test_an_unknown_control_endpoint_is_not_found(fresh):
    with pytest.raises(Exception, match="404"):
        fresh.control("GET", "nothing")


def test_the_launcher_ends_with_its_standard_input():
    command = [sys.executable, "-m", "simulator", "--until-stdin-closes"]
    process = subprocess.Popen(command, env={"PYTHONPATH": str(ROOT)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline().startswith(b"listening on http://127.0.0.1:")
    process.stdin.close()
    assert process.wait(timeout=10) == 0
    process.stdout.close()


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
