"""Everything that exists, as sorted lines `service kind id name`: the difference of two listings is what
a run has left behind. Uses plain API calls and no tags, so that what lost its tag is listed too.

usage: python -m simulator.listing --endpoint URL [--region R] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any, Callable, Iterator, NamedTuple, Optional

import boto3
import botocore.config


class Item(NamedTuple):
    """One thing that exists. `name` is what a person would call it, or `-`."""

    service: str
    kind: str
    id: str
    name: str


# EC2 objects that one Describe lists: operation, key of the list, kind, key of the id.
_EC2 = [
    ("describe_vpcs", "Vpcs", "vpc", "VpcId"),
    ("describe_dhcp_options", "DhcpOptions", "dhcp-options", "DhcpOptionsId"),
    ("describe_subnets", "Subnets", "subnet", "SubnetId"),
    ("describe_internet_gateways", "InternetGateways", "internet-gateway", "InternetGatewayId"),
    (
        "describe_egress_only_internet_gateways",
        "EgressOnlyInternetGateways",
        "egress-only-gateway",
        "EgressOnlyInternetGatewayId",
    ),
    ("describe_addresses", "Addresses", "elastic-ip", "AllocationId"),
    ("describe_network_acls", "NetworkAcls", "network-acl", "NetworkAclId"),
    ("describe_security_groups", "SecurityGroups", "security-group", "GroupId"),
    ("describe_network_interfaces", "NetworkInterfaces", "network-interface", "NetworkInterfaceId"),
    ("describe_key_pairs", "KeyPairs", "key-pair", "KeyPairId"),
    ("describe_volumes", "Volumes", "volume", "VolumeId"),
    ("describe_launch_templates", "LaunchTemplates", "launch-template", "LaunchTemplateId"),
    ("describe_vpc_endpoints", "VpcEndpoints", "vpc-endpoint", "VpcEndpointId"),
]
_NAMES = ("GroupName", "KeyName", "LaunchTemplateName", "PublicIp", "Description")

Client = Callable[[str], Any]


def listing(client: Client) -> "list[Item]":
    """Everything in the account and region of these clients, sorted."""
    parts = (_ec2, _rules_and_routes, _instances, _scaling, _balancing, _iam, _dns, _queues_and_rules, _buckets)
    return sorted(item for part in parts for item in part(client))


def _pages(api: Any, operation: str, key: str, **arguments: Any) -> "Iterator[Any]":
    """The items of all pages of a listing operation."""
    if api.can_paginate(operation):
        for page in api.get_paginator(operation).paginate(**arguments):
            yield from page.get(key, [])
    else:
        yield from getattr(api, operation)(**arguments).get(key, [])


def _name(thing: "dict[str, Any]") -> str:
    tags = {tag["Key"]: tag["Value"] for tag in thing.get("Tags", [])}
    return next((str(thing[key]) for key in _NAMES if thing.get(key)), tags.get("Name", "-"))


def _ec2(client: Client) -> "Iterator[Item]":
    ec2 = client("ec2")
    for operation, key, kind, identity in _EC2:
        for thing in _pages(ec2, operation, key):
            yield Item("ec2", kind, thing[identity], _name(thing))
    for gateway in _pages(ec2, "describe_nat_gateways", "NatGateways"):
        if gateway["State"] not in ("deleted", "failed"):
            yield Item("ec2", "nat-gateway", gateway["NatGatewayId"], _name(gateway))


def _rules_and_routes(client: Client) -> "Iterator[Item]":
    ec2 = client("ec2")
    for rule in _pages(ec2, "describe_security_group_rules", "SecurityGroupRules"):
        yield Item("ec2", "security-group-rule", rule["SecurityGroupRuleId"], rule["GroupId"])
    for table in _pages(ec2, "describe_route_tables", "RouteTables"):
        identity = table["RouteTableId"]
        yield Item("ec2", "route-table", identity, _name(table))
        for route in table["Routes"]:
            where = route.get("DestinationCidrBlock") or route.get("DestinationIpv6CidrBlock") or "?"
            yield Item(
                "ec2", "route", f"{identity}/{where}", route.get("GatewayId") or route.get("NatGatewayId") or "-"
            )
        for association in table["Associations"]:
            yield Item(
                "ec2", "association", association["RouteTableAssociationId"], association.get("SubnetId", identity)
            )
    for version in _pages(ec2, "describe_launch_template_versions", "LaunchTemplateVersions", Versions=["$Latest"]):
        number = f"{version['LaunchTemplateId']}/{version['VersionNumber']}"
        yield Item("ec2", "launch-template-version", number, version["LaunchTemplateName"])


def _instances(client: Client) -> "Iterator[Item]":
    for reservation in _pages(client("ec2"), "describe_instances", "Reservations"):
        for instance in reservation["Instances"]:
            if instance["State"]["Name"] != "terminated":
                yield Item("ec2", "instance", instance["InstanceId"], _name(instance))


def _scaling(client: Client) -> "Iterator[Item]":
    scaling = client("autoscaling")
    for group in _pages(scaling, "describe_auto_scaling_groups", "AutoScalingGroups"):
        name = group["AutoScalingGroupName"]
        yield Item("autoscaling", "group", name, name)
        if "WarmPoolConfiguration" in group:
            yield Item("autoscaling", "warm-pool", name, name)
        for hook in scaling.describe_lifecycle_hooks(AutoScalingGroupName=name)["LifecycleHooks"]:
            yield Item(
                "autoscaling", "lifecycle-hook", f"{name}/{hook['LifecycleHookName']}", hook["LifecycleHookName"]
            )
    for config in _pages(scaling, "describe_launch_configurations", "LaunchConfigurations"):
        yield Item("autoscaling", "launch-configuration", config["LaunchConfigurationName"], "-")


def _balancing(client: Client) -> "Iterator[Item]":
    balancing = client("elbv2")
    for group in _pages(balancing, "describe_target_groups", "TargetGroups"):
        yield Item("elbv2", "target-group", group["TargetGroupArn"], group["TargetGroupName"])
    for balancer in _pages(balancing, "describe_load_balancers", "LoadBalancers"):
        arn = balancer["LoadBalancerArn"]
        yield Item("elbv2", "load-balancer", arn, balancer["LoadBalancerName"])
        for listener in _pages(balancing, "describe_listeners", "Listeners", LoadBalancerArn=arn):
            yield Item("elbv2", "listener", listener["ListenerArn"], str(listener.get("Port", "-")))


def _iam(client: Client) -> "Iterator[Item]":
    iam = client("iam")
    for role in _pages(iam, "list_roles", "Roles"):
        name = role["RoleName"]
        yield Item("iam", "role", name, name)
        for policy in _pages(iam, "list_role_policies", "PolicyNames", RoleName=name):
            yield Item("iam", "inline-policy", f"{name}/{policy}", policy)
        for policy in _pages(iam, "list_attached_role_policies", "AttachedPolicies", RoleName=name):
            yield Item("iam", "attached-policy", f"{name}/{policy['PolicyArn']}", policy["PolicyName"])
    for policy in _pages(iam, "list_policies", "Policies", Scope="Local"):
        yield Item("iam", "policy", policy["Arn"], policy["PolicyName"])
    for profile in _pages(iam, "list_instance_profiles", "InstanceProfiles"):
        roles = ",".join(role["RoleName"] for role in profile["Roles"])
        yield Item("iam", "instance-profile", profile["InstanceProfileName"], roles or "-")
    for provider in _pages(iam, "list_open_id_connect_providers", "OpenIDConnectProviderList"):
        yield Item("iam", "oidc-provider", provider["Arn"], "-")


def _dns(client: Client) -> "Iterator[Item]":
    dns = client("route53")
    for zone in _pages(dns, "list_hosted_zones", "HostedZones"):
        yield Item("route53", "hosted-zone", zone["Id"], zone["Name"])
        if zone["Config"]["PrivateZone"]:
            for vpc in dns.get_hosted_zone(Id=zone["Id"])["VPCs"]:
                yield Item("route53", "zone-vpc", f"{zone['Id']}/{vpc['VPCId']}", zone["Name"])
        for record in _pages(dns, "list_resource_record_sets", "ResourceRecordSets", HostedZoneId=zone["Id"]):
            key = "/".join([zone["Id"], record["Name"], record["Type"], record.get("SetIdentifier", "")])
            yield Item("route53", "record", key.rstrip("/"), _values(record))


def _values(record: "dict[str, Any]") -> str:
    if "AliasTarget" in record:
        return "alias:" + record["AliasTarget"]["DNSName"]
    return ",".join(sorted(value["Value"].replace(" ", "_") for value in record["ResourceRecords"]))


def _queues_and_rules(client: Client) -> "Iterator[Item]":
    for url in _pages(client("sqs"), "list_queues", "QueueUrls"):
        yield Item("sqs", "queue", url.rsplit("/", 1)[1], url.rsplit("/", 1)[1])
    events = client("events")
    for rule in _pages(events, "list_rules", "Rules"):
        yield Item("events", "rule", rule["Name"], rule.get("State", "-"))
        for target in _pages(events, "list_targets_by_rule", "Targets", Rule=rule["Name"]):
            yield Item("events", "target", f"{rule['Name']}/{target['Id']}", target["Arn"])


def _buckets(client: Client) -> "Iterator[Item]":
    s3 = client("s3")
    for bucket in s3.list_buckets()["Buckets"]:
        yield Item("s3", "bucket", bucket["Name"], bucket["Name"])
        for item in _pages(s3, "list_objects_v2", "Contents", Bucket=bucket["Name"]):
            yield Item("s3", "object", f"{bucket['Name']}/{item['Key']}", item["ETag"].strip('"'))


def clients(endpoint: str, region: str) -> Client:
    """A function that gives the client of a service, each made once."""
    # Any credentials do, but for `--strict`; a search for some would go as far as the metadata service.
    given = "AWS_ACCESS_KEY_ID" in os.environ or "AWS_SHARED_CREDENTIALS_FILE" in os.environ
    keys = {} if given else {"aws_access_key_id": "list", "aws_secret_access_key": "list"}
    settings = botocore.config.Config(s3={"addressing_style": "path"})
    made: "dict[str, Any]" = {}

    def client(service: str) -> Any:
        if service not in made:
            made[service] = boto3.client(service, region_name=region, endpoint_url=endpoint, config=settings, **keys)
        return made[service]

    return client


def main(argv: "Optional[list[str]]" = None) -> int:
    """Prints the listing."""
    parser = argparse.ArgumentParser(prog="simulator.listing", description=__doc__.splitlines()[0])
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument("--json", action="store_true", help="a JSON array of objects instead of lines")
    arguments = parser.parse_args(argv)
    items = listing(clients(arguments.endpoint, arguments.region))
    if arguments.json:
        json.dump([item._asdict() for item in items], sys.stdout, indent=1)
        print()
    else:
        for item in items:
            print(*(part.replace(" ", "_") for part in item))
    return 0


if __name__ == "__main__":
    sys.exit(main())
