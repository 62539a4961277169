"""Network load balancers, target groups, listeners."""

from __future__ import annotations

import pytest

from . import make
from .conftest import eventually
from .errors import code_of


class World:
    """A VPC with subnets and an internet gateway."""

    def __init__(self, aws):
        self.aws, self.vpc = aws, make.vpc(aws)
        self.subnets = make.subnets(aws, self.vpc)
        self.gateway = make.internet_gateway(aws, self.vpc)

    def balancer(self, **more):
        settings = {"Name": self.aws.unique("nlb"), "Type": "network", "Scheme": "internal", "Subnets": self.subnets}
        settings.update(more)
        if "SubnetMappings" in settings:
            settings.pop("Subnets")
        return self.aws.elbv2.create_load_balancer(**settings)["LoadBalancers"][0]

    def now(self, arn):
        return self.aws.elbv2.describe_load_balancers(LoadBalancerArns=[arn])["LoadBalancers"][0]

    def target_group(self, **more):
        settings = {"Name": self.aws.unique("tg"), "Protocol": "TCP", "Port": 443, "VpcId": self.vpc, **more}
        return self.aws.elbv2.create_target_group(**settings)["TargetGroups"][0]["TargetGroupArn"]

    def listener(self, balancer, group, port=443, **more):
        action = [{"Type": "forward", "TargetGroupArn": group}]
        settings = {"LoadBalancerArn": balancer, "Protocol": "TCP", "Port": port, "DefaultActions": action, **more}
        return self.aws.elbv2.create_listener(**settings)["Listeners"][0]

    def interfaces(self):
        filters = [{"Name": "vpc-id", "Values": [self.vpc]}]
        return self.aws.ec2.describe_network_interfaces(Filters=filters)["NetworkInterfaces"]


@pytest.fixture
def world(both):
    return World(both)


def test_a_balancer_is_provisioned_before_it_is_active(world):
    made = world.balancer()
    assert made["State"]["Code"] == "provisioning"
    assert world.now(made["LoadBalancerArn"])["State"]["Code"] == "provisioning"
    eventually(lambda: world.now(made["LoadBalancerArn"])["State"]["Code"] == "active")


def test_an_internet_facing_balancer_needs_an_internet_gateway(world):
    world.aws.ec2.detach_internet_gateway(InternetGatewayId=world.gateway, VpcId=world.vpc)
    facing = {"Name": "f", "Type": "network", "Scheme": "internet-facing", "Subnets": world.subnets}
    assert code_of(world.aws.elbv2.create_load_balancer, **facing) == "InvalidSubnet"


def test_a_balancer_needs_existing_subnets(world):
    wrong = {"Name": "s", "Type": "network", "Scheme": "internal", "Subnets": ["subnet-0123456789abcdef0"]}
    assert code_of(world.aws.elbv2.create_load_balancer, **wrong) == "SubnetNotFound"


def test_a_balancer_needs_existing_groups(world):
    wrong = {"Name": "g", "Type": "network", "Scheme": "internal", "Subnets": world.subnets}
    wrong["SecurityGroups"] = ["sg-0123456789abcdef0"]
    assert code_of(world.aws.elbv2.create_load_balancer, **wrong) == "InvalidSecurityGroup"


def test_an_unknown_balancer_among_several_is_not_found(world):
    known = world.balancer()["LoadBalancerArn"]
    describe = world.aws.elbv2.describe_load_balancers
    assert code_of(describe, LoadBalancerArns=[known, known + "0"]) == "LoadBalancerNotFound"


def test_a_balancer_holds_its_groups_subnets_and_gateway(world):
    group = make.group(world.aws, world.vpc)
    arn = world.balancer(Scheme="internet-facing", SecurityGroups=[group])["LoadBalancerArn"]
    assert sorted(eni["SubnetId"] for eni in world.interfaces()) == sorted(world.subnets)
    assert {eni["Description"] for eni in world.interfaces()} == {"ELB " + arn.split("loadbalancer/")[1]}
    delete_group, delete_subnet = world.aws.ec2.delete_security_group, world.aws.ec2.delete_subnet
    assert code_of(delete_group, GroupId=group) == "DependencyViolation"
    assert code_of(delete_subnet, SubnetId=world.subnets[0]) == "DependencyViolation"
    gateway = {"InternetGatewayId": world.gateway, "VpcId": world.vpc}
    assert code_of(world.aws.ec2.detach_internet_gateway, **gateway) == "DependencyViolation"

    world.aws.elbv2.delete_load_balancer(LoadBalancerArn=arn)
    assert code_of(delete_group, GroupId=group) == "DependencyViolation"
    eventually(lambda: world.interfaces() == [])
    delete_group(GroupId=group)
    delete_subnet(SubnetId=world.subnets[0])
    world.aws.ec2.detach_internet_gateway(**gateway)


def test_groups_are_set_only_where_there_were_groups(world):
    first, second = make.group(world.aws, world.vpc), make.group(world.aws, world.vpc)
    set_groups = world.aws.elbv2.set_security_groups
    without = world.balancer()["LoadBalancerArn"]
    assert code_of(set_groups, LoadBalancerArn=without, SecurityGroups=[first]) == "InvalidConfigurationRequest"
    arn = world.balancer(SecurityGroups=[first])["LoadBalancerArn"]
    set_groups(LoadBalancerArn=arn, SecurityGroups=[second])
    assert world.now(arn)["SecurityGroups"] == [second]
    world.aws.ec2.delete_security_group(GroupId=first)


def test_a_protected_balancer_stays(world):
    arn = world.balancer()["LoadBalancerArn"]
    protection = [{"Key": "deletion_protection.enabled", "Value": "true"}]
    world.aws.elbv2.modify_load_balancer_attributes(LoadBalancerArn=arn, Attributes=protection)
    assert code_of(world.aws.elbv2.delete_load_balancer, LoadBalancerArn=arn) == "OperationNotPermitted"


def test_a_balancer_may_have_one_zone(world):
    arn = world.balancer()["LoadBalancerArn"]
    world.aws.elbv2.set_subnets(LoadBalancerArn=arn, Subnets=world.subnets[:1])
    assert [zone["SubnetId"] for zone in world.now(arn)["AvailabilityZones"]] == world.subnets[:1]


def test_fifty_tags_are_allowed(world):
    group = world.target_group(Tags=[{"Key": str(n), "Value": "v"} for n in range(10)])
    world.aws.elbv2.add_tags(ResourceArns=[group], Tags=[{"Key": "eleventh", "Value": "v"}])


def test_the_tags_of_an_unknown_resource_are_not_found(world):
    arn = world.target_group()
    world.aws.elbv2.delete_target_group(TargetGroupArn=arn)
    assert code_of(world.aws.elbv2.describe_tags, ResourceArns=[arn]) == "TargetGroupNotFound"


# Target groups and listeners


def test_a_port_has_one_listener(world):
    balancer, first, second = world.balancer()["LoadBalancerArn"], world.target_group(), world.target_group()
    listeners = [world.listener(balancer, first)["ListenerArn"] for _ in range(2)]
    assert listeners[0] == listeners[1]
    action = [{"Type": "forward", "TargetGroupArn": second}]
    other = {"LoadBalancerArn": balancer, "Protocol": "TCP", "Port": 443, "DefaultActions": action}
    assert code_of(world.aws.elbv2.create_listener, **other) == "DuplicateListener"


def test_a_balancer_without_target_groups_describes_none(world):
    balancer = world.balancer()["LoadBalancerArn"]
    assert world.aws.elbv2.describe_target_groups(LoadBalancerArn=balancer)["TargetGroups"] == []


def test_an_unknown_attribute_is_refused(world):
    wrong = [{"Key": "slow_start.duration_seconds", "Value": "30"}]
    modify = world.aws.elbv2.modify_target_group_attributes
    assert code_of(modify, TargetGroupArn=world.target_group(), Attributes=wrong) == "ValidationError"


# Health checks


def checked_group(aws, **more):
    settings = {"Name": aws.unique("tg"), "Protocol": "TCP", "Port": 443, "VpcId": make.vpc(aws)}
    return {**settings, "HealthCheckProtocol": "TCP", "HealthCheckIntervalSeconds": 10, **more}


def test_a_timeout_is_below_the_interval(both):
    create = both.elbv2.create_target_group
    assert code_of(create, **checked_group(both, HealthCheckTimeoutSeconds=10)) == "ValidationError"
    made = create(**checked_group(both, HealthCheckTimeoutSeconds=9))["TargetGroups"][0]["TargetGroupArn"]
    modify = both.elbv2.modify_target_group
    assert code_of(modify, TargetGroupArn=made, HealthCheckTimeoutSeconds=11) == "ValidationError"


def test_a_check_becomes_http_with_path_and_matcher(both):
    made = both.elbv2.create_target_group(**checked_group(both, HealthCheckTimeoutSeconds=9))
    change = {"TargetGroupArn": made["TargetGroups"][0]["TargetGroupArn"], "HealthCheckProtocol": "HTTPS"}
    modify = both.elbv2.modify_target_group
    assert code_of(modify, **change, HealthCheckPath="/ready") == "InvalidConfigurationRequest"
    modify(**change, HealthCheckPath="/ready", Matcher={"HttpCode": "200-399"})
