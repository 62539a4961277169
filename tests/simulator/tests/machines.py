"""A simulator with `--machines`, and somebody who plays the machines."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from .conftest import Server, start


class Machines(Server):
    """A server whose machines do what a test says."""

    def world(self) -> Any:
        """What it tells of us-east-1."""
        return self.control("GET", "world?region=us-east-1")

    def report(self, **fields: Any) -> "list[str]":
        """A report; gives what the simulator does not know."""
        unknown: "list[str]" = self.control("POST", "report", fields)["unknown"]
        return unknown

    def told(self, instance: str) -> Any:
        """What the world says of an instance."""
        (found,) = [item for item in self.world()["instances"] if item["id"] == instance]
        return found

    def state(self, instance: str) -> str:
        """The state of an instance, which DescribeInstances and the world have to agree on."""
        (reservation,) = self.ec2.describe_instances(InstanceIds=[instance])["Reservations"]
        state: str = reservation["Instances"][0]["State"]["Name"]
        assert self.told(instance)["state"] == state
        return state

    def boot(self) -> None:
        """Everything that is pending runs, everything that is going is gone, and so for volumes."""
        now = self.world()
        become = {"pending": "running", "shutting-down": "terminated", "stopping": "stopped"}
        instances = {item["id"]: become[item["state"]] for item in now["instances"] if item["state"] in become}
        changes = {"attaching": "attached", "detaching": "detached"}
        held = [(volume["id"], volume["attachment"]) for volume in now["volumes"] if volume["attachment"]]
        volumes = {identity: changes[a["state"]] for identity, a in held if a["state"] in changes}
        assert self.report(instances=instances, volumes=volumes) == []

    def pass_seconds(self, seconds: float) -> None:
        """So many seconds go by for what was given a time."""
        self.control("POST", "clock", seconds)


@pytest.fixture(scope="module")
def aws() -> Any:
    """One of the test module's own, settling at once: nothing runs in it by itself."""
    life, endpoint = start("--settle", "0", "--machines")
    with life:
        yield Machines(endpoint)


def balanced(aws: Any, vpc: str, subnets: "list[str]") -> "tuple[str, str]":
    """A balancer with a listener that leads to a target group: the ARNs of the group and the listener."""
    settings = {"Type": "network", "Scheme": "internal", "Subnets": subnets}
    balancer = aws.elbv2.create_load_balancer(Name=aws.unique("nlb"), **settings)["LoadBalancers"][0]
    made = aws.elbv2.create_target_group(Name=aws.unique("tg"), Protocol="TCP", Port=443, VpcId=vpc)
    arn = made["TargetGroups"][0]["TargetGroupArn"]
    way = {"Protocol": "TCP", "Port": 443, "DefaultActions": [{"Type": "forward", "TargetGroupArn": arn}]}
    listener = aws.elbv2.create_listener(LoadBalancerArn=balancer["LoadBalancerArn"], **way)["Listeners"][0]
    return arn, listener["ListenerArn"]


def text(found: str) -> str:
    """Base64 of a text."""
    return base64.b64encode(found.encode()).decode()
