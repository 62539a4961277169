"""Things that tests need to exist before they begin."""

from __future__ import annotations

import base64
import itertools
import json
from typing import Any, Optional

from botocore.exceptions import ClientError

NOBLE = "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-20260714"
TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}],
    }
)
_blocks = itertools.cycle(range(1, 250))


def image(aws: Any) -> str:
    """The id of the Ubuntu image."""
    return aws.ec2.describe_images(Filters=[{"Name": "name", "Values": [NOBLE]}])["Images"][0]["ImageId"]


def vpc(aws: Any, **more: Any) -> str:
    """A VPC with a range that few others have."""
    return aws.ec2.create_vpc(CidrBlock=f"10.{next(_blocks)}.0.0/16", **more)["Vpc"]["VpcId"]


def subnets(aws: Any, vpc_id: str, zones: str = "abc") -> "list[str]":
    """One subnet per zone letter."""
    block = aws.ec2.describe_vpcs(VpcIds=[vpc_id])["Vpcs"][0]["CidrBlock"]
    prefix = ".".join(block.split(".")[:2])
    return [
        aws.ec2.create_subnet(VpcId=vpc_id, CidrBlock=f"{prefix}.{i}.0/24", AvailabilityZone=f"us-east-1{zone}")[
            "Subnet"
        ]["SubnetId"]
        for i, zone in enumerate(zones)
    ]


def group(aws: Any, vpc_id: str, name: Optional[str] = None) -> str:
    """A security group."""
    return aws.ec2.create_security_group(GroupName=name or aws.unique("group"), Description="d", VpcId=vpc_id)[
        "GroupId"
    ]


def internet_gateway(aws: Any, vpc_id: str) -> str:
    """An internet gateway, attached."""
    gateway = aws.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    aws.ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc_id)
    return gateway


def is_released(aws: Any, allocation: str) -> bool:
    """Releases an address, unless AWS still holds it."""
    try:
        aws.ec2.release_address(AllocationId=allocation)
    except ClientError as error:
        assert error.response["Error"]["Code"] == "AuthFailure"
        return False
    return True


def profile(aws: Any) -> str:
    """The name of an instance profile with a role in it."""
    name = aws.unique("profile")
    aws.iam.create_role(RoleName=name, AssumeRolePolicyDocument=TRUST)
    aws.iam.create_instance_profile(InstanceProfileName=name)
    aws.iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)
    return name


def user_data(text: str = "#!/bin/sh\n") -> str:
    """User data as it goes over the wire."""
    return base64.b64encode(text.encode()).decode()


def template(aws: Any, **data: Any) -> str:
    """The name of a launch template with these data over a usable default."""
    name = aws.unique("template")
    defaults = {"ImageId": image(aws), "InstanceType": "t3.medium"}
    aws.ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData={**defaults, **data})
    return name


def scaling_group(aws: Any, subnet_ids: "list[str]", template_name: str, size: int = 1, **more: Any) -> str:
    """The name of an Auto Scaling group of that size."""
    name = aws.unique("asg")
    settings = {
        "MinSize": size,
        "MaxSize": size + 2,
        "DesiredCapacity": size,
        "VPCZoneIdentifier": ",".join(subnet_ids),
        **more,
    }
    if "MixedInstancesPolicy" not in settings:
        settings["LaunchTemplate"] = {"LaunchTemplateName": template_name, "Version": "$Latest"}
    aws.autoscaling.create_auto_scaling_group(AutoScalingGroupName=name, **settings)
    return name


def describe_group(aws: Any, name: str) -> "dict[str, Any]":
    """The description of one Auto Scaling group."""
    return aws.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"][0]


def members(aws: Any, name: str) -> "list[dict[str, Any]]":
    """The descriptions of a group's instances, as EC2 gives them."""
    ids = [instance["InstanceId"] for instance in describe_group(aws, name)["Instances"]]
    if not ids:
        return []
    reservations = aws.ec2.describe_instances(InstanceIds=ids)["Reservations"]
    return [instance for reservation in reservations for instance in reservation["Instances"]]
