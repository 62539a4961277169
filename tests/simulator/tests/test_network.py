"""VPCs, DHCP options, subnets, gateways, addresses, routes."""

from __future__ import annotations

from . import make
from .conftest import eventually
from .errors import code_of, said


def nat(aws, subnet, allocation, **more):
    return aws.ec2.create_nat_gateway(SubnetId=subnet, AllocationId=allocation, **more)["NatGateway"]


def nat_now(aws, identity):
    return aws.ec2.describe_nat_gateways(NatGatewayIds=[identity])["NatGateways"][0]


def address(aws):
    return aws.ec2.allocate_address(Domain="vpc")["AllocationId"]


def table(aws, vpc):
    return aws.ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]


def routes(aws, identity):
    return aws.ec2.describe_route_tables(RouteTableIds=[identity])["RouteTables"][0]["Routes"]


# VPCs and DHCP options


def test_a_group_without_a_vpc_needs_a_default_vpc(both):
    assert code_of(both.ec2.create_security_group, GroupName=both.unique("g"), Description="d") == "VPCIdNotSpecified"


def test_dhcp_options_outlive_the_vpc_that_used_them(both):
    configuration = [{"Key": "domain-name", "Values": ["x.internal"]}]
    options = both.ec2.create_dhcp_options(DhcpConfigurations=configuration)["DhcpOptions"]["DhcpOptionsId"]
    first, second = make.vpc(both), make.vpc(both)
    for vpc in (first, second):
        both.ec2.associate_dhcp_options(DhcpOptionsId=options, VpcId=vpc)
    both.ec2.delete_vpc(VpcId=second)
    assert code_of(both.ec2.delete_dhcp_options, DhcpOptionsId=options) == "DependencyViolation"
    both.ec2.associate_dhcp_options(DhcpOptionsId="default", VpcId=first)
    both.ec2.delete_dhcp_options(DhcpOptionsId=options)


def test_a_vpc_with_a_gateway_or_a_group_stays(both):
    vpc = make.vpc(both)
    gateway = make.internet_gateway(both, vpc)
    assert code_of(both.ec2.delete_vpc, VpcId=vpc) == "DependencyViolation"
    both.ec2.detach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    group = make.group(both, vpc)
    assert code_of(both.ec2.delete_vpc, VpcId=vpc) == "DependencyViolation"
    both.ec2.delete_security_group(GroupId=group)
    both.ec2.delete_vpc(VpcId=vpc)
    assert both.ec2.describe_network_acls(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["NetworkAcls"] == []


def test_vpc_attributes_are_modified_one_at_a_time(both):
    vpc = make.vpc(both)
    two = {"EnableDnsSupport": {"Value": True}, "EnableDnsHostnames": {"Value": True}}
    assert code_of(both.ec2.modify_vpc_attribute, VpcId=vpc, **two) == "InvalidParameterCombination"
    both.ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
    assert both.ec2.describe_vpc_attribute(VpcId=vpc, Attribute="enableDnsHostnames")["EnableDnsHostnames"]["Value"]


def test_a_later_block_is_a_local_route_and_goes_with_its_last_subnet(both):
    vpc = make.vpc(both)
    association = both.ec2.associate_vpc_cidr_block(VpcId=vpc, CidrBlock="100.64.0.0/16")["CidrBlockAssociation"]
    both.ec2.associate_vpc_cidr_block(VpcId=vpc, AmazonProvidedIpv6CidrBlock=True)
    (main,) = both.ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["RouteTables"]
    assert "100.64.0.0/16" in [route.get("DestinationCidrBlock") for route in main["Routes"]]
    assert any("DestinationIpv6CidrBlock" in route for route in main["Routes"])
    subnet = both.ec2.create_subnet(VpcId=vpc, CidrBlock="100.64.1.0/24")["Subnet"]["SubnetId"]
    identity = association["AssociationId"]
    assert code_of(both.ec2.disassociate_vpc_cidr_block, AssociationId=identity) == "DependencyViolation"
    both.ec2.delete_subnet(SubnetId=subnet)
    both.ec2.disassociate_vpc_cidr_block(AssociationId=identity)
    assert "100.64.0.0/16" not in [route.get("DestinationCidrBlock") for route in routes(both, main["RouteTableId"])]


# Subnets


def test_a_new_subnet_maps_no_public_addresses(both):
    vpc = both.ec2.create_vpc(CidrBlock="10.254.0.0/16")["Vpc"]["VpcId"]
    client = both.ec2
    made = client.create_subnet(VpcId=vpc, CidrBlock="10.254.1.0/24", AvailabilityZone="us-east-1e")["Subnet"]
    # On bare moto the default VPC has taken that role; without one the first subnet would be the default.
    assert (made["MapPublicIpOnLaunch"], made["DefaultForAz"]) == (False, False)
    assert [s for s in client.describe_subnets()["Subnets"] if s["DefaultForAz"]] == []


def test_a_subnet_with_an_interface_stays(both):
    (subnet,) = make.subnets(both, make.vpc(both), "a")
    eni = both.ec2.create_network_interface(SubnetId=subnet)["NetworkInterface"]["NetworkInterfaceId"]
    assert code_of(both.ec2.delete_subnet, SubnetId=subnet) == "DependencyViolation"
    both.ec2.delete_network_interface(NetworkInterfaceId=eni)
    both.ec2.delete_subnet(SubnetId=subnet)


def test_a_deleted_subnet_leaves_its_route_table(both):
    vpc = make.vpc(both)
    (subnet,) = make.subnets(both, vpc, "a")
    identity = table(both, vpc)
    both.ec2.associate_route_table(RouteTableId=identity, SubnetId=subnet)
    assert code_of(both.ec2.delete_route_table, RouteTableId=identity) == "DependencyViolation"
    both.ec2.delete_subnet(SubnetId=subnet)
    both.ec2.delete_route_table(RouteTableId=identity)


def test_a_subnet_has_its_ipv6_block(both):
    vpc = make.vpc(both, AmazonProvidedIpv6CidrBlock=True)
    (block,) = both.ec2.describe_vpcs(VpcIds=[vpc])["Vpcs"][0]["Ipv6CidrBlockAssociationSet"]
    assert block["Ipv6CidrBlockState"]["State"] == "associated"
    prefix = block["Ipv6CidrBlock"].replace("/56", "/64")
    (subnet,) = make.subnets(both, vpc, "a")
    both.ec2.associate_subnet_cidr_block(SubnetId=subnet, Ipv6CidrBlock=prefix)
    (found,) = both.ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["Ipv6CidrBlockAssociationSet"]
    assert (found["Ipv6CidrBlock"], found["Ipv6CidrBlockState"]["State"]) == (prefix, "associated")


def test_a_subnet_may_have_ipv6_only_and_dns64(both):
    vpc = make.vpc(both, AmazonProvidedIpv6CidrBlock=True)
    (block,) = both.ec2.describe_vpcs(VpcIds=[vpc])["Vpcs"][0]["Ipv6CidrBlockAssociationSet"]
    prefix = block["Ipv6CidrBlock"].replace("/56", "/64")
    made = both.ec2.create_subnet(VpcId=vpc, Ipv6CidrBlock=prefix, Ipv6Native=True, AvailabilityZone="us-east-1a")
    subnet = made["Subnet"]["SubnetId"]
    both.ec2.modify_subnet_attribute(SubnetId=subnet, EnableDns64={"Value": True})
    (found,) = both.ec2.describe_subnets(SubnetIds=[subnet])["Subnets"]
    assert "CidrBlock" not in found
    assert found["AvailableIpAddressCount"] == 0
    assert found["EnableDns64"] and found["AssignIpv6AddressOnCreation"] and found["Ipv6Native"]


# Gateways and addresses


def test_a_vpc_has_one_internet_gateway(both):
    vpc = make.vpc(both)
    make.internet_gateway(both, vpc)
    second = both.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    assert code_of(both.ec2.attach_internet_gateway, InternetGatewayId=second, VpcId=vpc) == "InvalidParameterValue"


def test_egress_only_gateways_are_found_by_tags_and_made_once(both):
    vpc = make.vpc(both)
    name = both.unique("gateway")
    tags = [{"ResourceType": "egress-only-internet-gateway", "Tags": [{"Key": "Name", "Value": name}]}]
    ask = {"VpcId": vpc, "ClientToken": name, "TagSpecifications": tags}
    made = [
        both.ec2.create_egress_only_internet_gateway(**ask)["EgressOnlyInternetGateway"]["EgressOnlyInternetGatewayId"]
        for _ in range(2)
    ]
    assert made[0] == made[1]
    both.ec2.create_egress_only_internet_gateway(VpcId=vpc)
    found = both.ec2.describe_egress_only_internet_gateways(Filters=[{"Name": "tag:Name", "Values": [name]}])
    (gateway,) = found["EgressOnlyInternetGateways"]
    assert gateway["EgressOnlyInternetGatewayId"] == made[0]
    assert gateway["Attachments"] == [{"State": "attached", "VpcId": vpc}]


def test_a_nat_gateway_lives_through_its_states(both):
    vpc = make.vpc(both)
    (subnet,) = make.subnets(both, vpc, "a")
    gateway = make.internet_gateway(both, vpc)
    allocation = address(both)
    made = nat(both, subnet, allocation)
    identity = made["NatGatewayId"]
    assert made["State"] == "pending"
    eventually(lambda: nat_now(both, identity)["State"] == "available")

    held = ("AuthFailure", "You do not have permission to access the specified resource.")
    assert said(both.ec2.release_address, AllocationId=allocation) == held
    assert code_of(both.ec2.delete_subnet, SubnetId=subnet) == "DependencyViolation"
    assert code_of(both.ec2.detach_internet_gateway, InternetGatewayId=gateway, VpcId=vpc) == "DependencyViolation"

    both.ec2.delete_nat_gateway(NatGatewayId=identity)
    assert nat_now(both, identity)["State"] == "deleting"
    assert said(both.ec2.release_address, AllocationId=allocation) == held
    eventually(lambda: nat_now(both, identity)["State"] == "deleted")
    # The gateway is gone, and its hold on the address is not.
    assert said(both.ec2.release_address, AllocationId=allocation) == held
    eventually(lambda: make.is_released(both, allocation))
    both.ec2.detach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    both.ec2.delete_subnet(SubnetId=subnet)


def test_an_address_of_an_instance_is_in_use(both):
    (subnet,) = make.subnets(both, make.vpc(both), "a")
    launch = {"ImageId": make.image(both), "InstanceType": "t3.medium", "SubnetId": subnet, "MinCount": 1, "MaxCount": 1}
    instance = both.ec2.run_instances(**launch)["Instances"][0]["InstanceId"]
    allocation = address(both)
    both.ec2.associate_address(AllocationId=allocation, InstanceId=instance)
    assert code_of(both.ec2.release_address, AllocationId=allocation) == "InvalidIPAddress.InUse"


def test_a_nat_gateway_has_an_address_of_its_subnet(both):
    vpc = make.vpc(both)
    (subnet,) = make.subnets(both, vpc, "a")
    make.internet_gateway(both, vpc)
    made = nat(both, subnet, address(both))
    prefix = both.ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["CidrBlock"].rsplit(".", 1)[0]
    assert made["NatGatewayAddresses"][0]["PrivateIp"].startswith(prefix + ".")


def test_a_nat_gateway_fails_without_an_internet_gateway_and_with_a_taken_address(both):
    vpc = make.vpc(both)
    (subnet,) = make.subnets(both, vpc, "a")
    allocation = address(both)
    lonely = nat(both, subnet, allocation)["NatGatewayId"]
    eventually(lambda: nat_now(both, lonely)["State"] == "failed")
    assert nat_now(both, lonely)["FailureCode"] == "Gateway.NotAttached"
    make.internet_gateway(both, vpc)
    nat(both, subnet, allocation)
    second = nat(both, subnet, allocation)["NatGatewayId"]
    eventually(lambda: nat_now(both, second)["State"] == "failed")
    assert nat_now(both, second)["FailureCode"] == "Resource.AlreadyAssociated"


def test_an_unknown_nat_gateway_is_not_found(both):
    assert code_of(both.ec2.delete_nat_gateway, NatGatewayId="nat-0123456789abcdef0") == "NatGatewayNotFound"


# Routes


def test_a_route_leads_to_what_exists(both):
    vpc = make.vpc(both)
    identity = table(both, vpc)
    nowhere = {"RouteTableId": identity, "DestinationCidrBlock": "0.0.0.0/0"}
    assert (
        code_of(both.ec2.create_route, NatGatewayId="nat-0123456789abcdef0", **nowhere)
        == "InvalidNatGatewayID.NotFound"
    )


def test_a_route_needs_a_gateway_of_its_own_vpc(both):
    identity = table(both, make.vpc(both))
    foreign = make.internet_gateway(both, make.vpc(both))
    route = {"RouteTableId": identity, "DestinationCidrBlock": "0.0.0.0/0", "GatewayId": foreign}
    assert code_of(both.ec2.create_route, **route) == "InvalidParameterValue"


def test_a_second_ipv6_route_is_refused(both):
    vpc = make.vpc(both)
    gateway, identity = make.internet_gateway(both, vpc), table(both, vpc)
    route = {"RouteTableId": identity, "DestinationIpv6CidrBlock": "::/0", "GatewayId": gateway}
    both.ec2.create_route(**route)
    assert code_of(both.ec2.create_route, **route) == "RouteAlreadyExists"


def test_a_route_to_a_deleted_nat_gateway_is_a_blackhole(both):
    vpc = make.vpc(both)
    (subnet,) = make.subnets(both, vpc, "a")
    make.internet_gateway(both, vpc)
    gateway, identity = nat(both, subnet, address(both))["NatGatewayId"], table(both, vpc)
    both.ec2.create_route(RouteTableId=identity, DestinationCidrBlock="0.0.0.0/0", NatGatewayId=gateway)
    assert {route["State"] for route in routes(both, identity)} == {"active"}
    both.ec2.delete_nat_gateway(NatGatewayId=gateway)
    eventually(lambda: "blackhole" in {route["State"] for route in routes(both, identity)})


def test_a_route_to_an_instance_that_does_not_run_is_a_blackhole(both):
    vpc = make.vpc(both)
    (subnet,) = make.subnets(both, vpc, "a")
    launch = {"ImageId": make.image(both), "InstanceType": "t3.medium", "SubnetId": subnet, "MinCount": 1}
    instance = both.ec2.run_instances(**launch, MaxCount=1)["Instances"][0]["InstanceId"]
    identity = table(both, vpc)
    both.ec2.create_route(RouteTableId=identity, DestinationCidrBlock="100.64.0.0/24", InstanceId=instance)
    assert {route["State"] for route in routes(both, identity)} == {"active"}
    both.ec2.terminate_instances(InstanceIds=[instance])
    assert "blackhole" in {route["State"] for route in routes(both, identity)}


def test_a_subnet_has_one_route_table(both):
    vpc = make.vpc(both)
    (subnet,) = make.subnets(both, vpc, "a")
    first, second = table(both, vpc), table(both, vpc)
    association = both.ec2.associate_route_table(RouteTableId=first, SubnetId=subnet)["AssociationId"]
    assert both.ec2.associate_route_table(RouteTableId=first, SubnetId=subnet)["AssociationId"] == association
    assert code_of(both.ec2.associate_route_table, RouteTableId=second, SubnetId=subnet) == "Resource.AlreadyAssociated"


def test_descriptions_come_in_pages(both):
    vpc = make.vpc(both)
    made = sorted(make.subnets(both, vpc, "abcabcabc"))
    client = both.ec2
    pages = list(
        client.get_paginator("describe_subnets").paginate(Filters=[{"Name": "vpc-id", "Values": [vpc]}], MaxResults=5)
    )
    assert [len(page["Subnets"]) for page in pages] == [5, 4]
    assert sorted(subnet["SubnetId"] for page in pages for subnet in page["Subnets"]) == made


# What moto has right, and kctl rests on


# Endpoints


def test_an_endpoint_is_a_route_of_its_tables(both):
    vpc = make.vpc(both)
    first, second = table(both, vpc), table(both, vpc)
    service = f"com.amazonaws.{both.ec2.meta.region_name}.s3"
    asked = {"VpcEndpointType": "Gateway", "VpcId": vpc, "ServiceName": service, "RouteTableIds": [first]}
    made = both.ec2.create_vpc_endpoint(ClientToken="once", **asked)["VpcEndpoint"]["VpcEndpointId"]
    assert both.ec2.create_vpc_endpoint(ClientToken="once", **asked)["VpcEndpoint"]["VpcEndpointId"] == made

    def leading_there(identity):
        there = [route for route in routes(both, identity) if route.get("GatewayId") == made]
        return [route["DestinationPrefixListId"].startswith("pl-") for route in there]

    assert (leading_there(first), leading_there(second)) == ([True], [])
    assert code_of(both.ec2.create_vpc_endpoint, **asked) == "RouteAlreadyExists"
    both.ec2.modify_vpc_endpoint(VpcEndpointId=made, AddRouteTableIds=[second], RemoveRouteTableIds=[first])
    assert (leading_there(first), leading_there(second)) == ([], [True])
    for identity in (first, second):
        both.ec2.delete_route_table(RouteTableId=identity)
    assert code_of(both.ec2.delete_vpc, VpcId=vpc) == "DependencyViolation"
    both.ec2.delete_vpc_endpoints(VpcEndpointIds=[made])
    listed = both.ec2.describe_vpc_endpoints(Filters=[{"Name": "vpc-endpoint-type", "Values": ["Gateway"]}])
    assert made not in [endpoint["VpcEndpointId"] for endpoint in listed["VpcEndpoints"]]
    both.ec2.delete_vpc(VpcId=vpc)
