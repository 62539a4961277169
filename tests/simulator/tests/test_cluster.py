"""A cluster's worth of objects, made and deleted in the order that AWS demands, leaves nothing."""

from __future__ import annotations

from typing import Any

from simulator import listing

from . import make
from .conftest import eventually
from .test_load_balancers import World


def network(world: World) -> "dict[str, Any]":
    """A NAT gateway with its address, and private routes through it."""
    ec2 = world.aws.ec2
    allocation = ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = ec2.create_nat_gateway(SubnetId=world.subnets[0], AllocationId=allocation)["NatGateway"]["NatGatewayId"]
    table = ec2.create_route_table(VpcId=world.vpc)["RouteTable"]["RouteTableId"]
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", NatGatewayId=nat)
    association = ec2.associate_route_table(RouteTableId=table, SubnetId=world.subnets[1])["AssociationId"]
    options = ec2.create_dhcp_options(DhcpConfigurations=[{"Key": "domain-name", "Values": ["x.internal"]}])
    options_id = options["DhcpOptions"]["DhcpOptionsId"]
    ec2.associate_dhcp_options(DhcpOptionsId=options_id, VpcId=world.vpc)
    return {"allocation": allocation, "nat": nat, "table": table, "association": association, "dhcp": options_id}


def machines(world: World) -> "dict[str, Any]":
    """A load-balanced group of machines with a profile, and an etcd volume."""
    aws, group, profile = world.aws, make.group(world.aws, world.vpc), make.profile(world.aws)
    rule = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
    aws.ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])
    template = make.template(aws, SecurityGroupIds=[group], IamInstanceProfile={"Name": profile})
    targets = world.target_group()
    balancer = world.balancer(SecurityGroups=[group])["LoadBalancerArn"]
    world.listener(balancer, targets)
    name = make.scaling_group(aws, world.subnets, template, size=3, TargetGroupARNs=[targets])
    volume = aws.ec2.create_volume(Size=20, AvailabilityZone="us-east-1a")["VolumeId"]
    (member,) = [m for m in make.members(aws, name) if m["Placement"]["AvailabilityZone"] == "us-east-1a"]
    aws.ec2.attach_volume(VolumeId=volume, InstanceId=member["InstanceId"], Device="/dev/xvdu")
    found = {"group": group, "profile": profile, "template": template, "targets": targets}
    return {**found, "balancer": balancer, "name": name, "volume": volume}


def delete_machines(world: World, made: "dict[str, Any]") -> None:
    """Instances first; then what they held."""
    aws = world.aws
    aws.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=made["name"], ForceDelete=True)
    aws.elbv2.delete_load_balancer(LoadBalancerArn=made["balancer"])
    aws.elbv2.delete_target_group(TargetGroupArn=made["targets"])
    aws.ec2.delete_launch_template(LaunchTemplateName=made["template"])
    volume = {"VolumeIds": [made["volume"]]}
    eventually(lambda: aws.ec2.describe_volumes(**volume)["Volumes"][0]["State"] == "available")
    aws.ec2.delete_volume(VolumeId=made["volume"])
    role = {"InstanceProfileName": made["profile"], "RoleName": made["profile"]}
    aws.iam.remove_role_from_instance_profile(**role)
    aws.iam.delete_instance_profile(InstanceProfileName=made["profile"])
    aws.iam.delete_role(RoleName=made["profile"])


def delete_network(world: World, made: "dict[str, Any]", group: str) -> None:
    """Interfaces have to be gone before groups, subnets and the gateway can go."""
    ec2 = world.aws.ec2
    ec2.delete_nat_gateway(NatGatewayId=made["nat"])
    eventually(lambda: world.interfaces() == [])
    eventually(lambda: make.is_released(world.aws, made["allocation"]))
    ec2.delete_security_group(GroupId=group)
    ec2.disassociate_route_table(AssociationId=made["association"])
    ec2.delete_route_table(RouteTableId=made["table"])
    for subnet in world.subnets:
        ec2.delete_subnet(SubnetId=subnet)
    ec2.detach_internet_gateway(InternetGatewayId=world.gateway, VpcId=world.vpc)
    ec2.delete_internet_gateway(InternetGatewayId=world.gateway)
    ec2.delete_vpc(VpcId=world.vpc)
    ec2.delete_dhcp_options(DhcpOptionsId=made["dhcp"])


def everything(aws: Any) -> "list[Any]":
    return listing.listing(listing.clients(aws.endpoint, "us-east-1"))


def test_a_cluster_that_was_deleted_leaves_nothing(aws):
    aws.control("POST", "reset")
    before = everything(aws)
    world = World(aws)
    links, hosts = network(world), machines(world)
    delete_machines(world, hosts)
    delete_network(world, links, hosts["group"])
    assert everything(aws) == before
