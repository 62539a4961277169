"""What the metadata service of an instance answers, by way of the simulator."""

from __future__ import annotations

import json
import urllib.error

import boto3
import pytest

from . import make


@pytest.fixture(scope="module")
def machine(aws):
    """An instance with everything a launch can say, and its description."""
    vpc = make.vpc(aws)
    aws.ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
    (subnet,) = make.subnets(aws, vpc, "a")
    group, profile, key = make.group(aws, vpc), make.profile(aws), aws.unique("key")
    aws.ec2.create_key_pair(KeyName=key)
    tags = [{"Key": "a/b", "Value": "1"}, {"Key": "c", "Value": "2"}]
    template = make.template(
        aws,
        KeyName=key,
        IamInstanceProfile={"Name": profile},
        NetworkInterfaces=[{"DeviceIndex": 0, "Groups": [group], "AssociatePublicIpAddress": True}],
        UserData=make.user_data("#!/bin/sh\n"),
        MetadataOptions={"InstanceMetadataTags": "enabled"},
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
    )
    (member,) = make.members(aws, make.scaling_group(aws, [subnet], template))
    return {"aws": aws, "vpc": vpc, "group": group, "profile": profile, "key": key, **member}


def tree(machine, part="meta-data"):
    return machine["aws"].control("GET", f"metadata/{machine['InstanceId']}")[part]


def test_the_identity_document_is_json_with_the_keys_of_aws(machine):
    document = json.loads(tree(machine, "dynamic")["instance-identity"]["document"])
    assert document["instanceId"] == machine["InstanceId"]
    assert document["accountId"] == "123456789012"
    assert (document["region"], document["architecture"]) == ("us-east-1", "x86_64")
    assert document["privateIp"] == machine["PrivateIpAddress"]


def test_the_key_is_in_openssh_form_with_its_name(machine):
    kind, _, name = tree(machine)["public-keys"]["0"]["openssh-key"].split()
    assert (kind, name) == ("ssh-rsa", machine["key"])


def test_tags_are_there_when_the_launch_asks(machine):
    """A key with a slash has no path and is left out."""
    found = tree(machine)["tags"]["instance"]
    assert found["c"] == "2" and "a/b" not in found


def test_the_role_has_credentials_in_the_name_of_the_instance(machine):
    found = tree(machine)["iam"]
    assert json.loads(found["info"])["InstanceProfileArn"].endswith("/" + machine["profile"])
    issued = json.loads(found["security-credentials"][machine["profile"]])
    assert (issued["Code"], issued["Type"]) == ("Success", "AWS-HMAC")
    sts = boto3.client(
        "sts",
        endpoint_url=machine["aws"].endpoint,
        region_name="us-east-1",
        aws_access_key_id=issued["AccessKeyId"],
        aws_secret_access_key=issued["SecretAccessKey"],
        aws_session_token=issued["Token"],
    )
    assert sts.get_caller_identity()["Arn"].endswith(f":assumed-role/{machine['profile']}/{machine['InstanceId']}")


def test_what_the_instance_has_not_is_absent(machine):
    aws = machine["aws"]
    (subnet,) = make.subnets(aws, make.vpc(aws), "b")
    launch = {"ImageId": make.image(aws), "InstanceType": "t3.small", "SubnetId": subnet, "MinCount": 1, "MaxCount": 1}
    plain = aws.ec2.run_instances(**launch)["Instances"][0]["InstanceId"]
    found = aws.control("GET", f"metadata/{plain}")
    assert found["user-data"] is None
    for absent in ("iam", "public-ipv4", "public-keys", "tags", "autoscaling", "spot"):
        assert absent not in found["meta-data"]
    (nic,) = found["meta-data"]["network"]["interfaces"]["macs"].values()
    assert "public-ipv4s" not in nic


def test_an_unknown_instance_has_no_metadata(aws):
    with pytest.raises(urllib.error.HTTPError, match="404"):
        aws.control("GET", "metadata/i-0000000000000000a")
