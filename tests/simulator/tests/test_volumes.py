"""EBS volumes."""

from __future__ import annotations

import pytest

from . import make
from .errors import code_of


def volume(aws, zone="us-east-1a", **more):
    settings = {"Size": 20, "VolumeType": "gp3", "AvailabilityZone": zone, **more}
    return aws.ec2.create_volume(**settings)["VolumeId"]


@pytest.fixture
def two_instances(both):
    return instances(both)


def instances(aws):
    (subnet,) = make.subnets(aws, make.vpc(aws), "a")
    launch = {"ImageId": make.image(aws), "InstanceType": "t3.medium", "SubnetId": subnet, "MinCount": 1, "MaxCount": 1}
    return [aws.ec2.run_instances(**launch)["Instances"][0]["InstanceId"] for _ in range(2)]


def test_a_volume_is_attached_once(both, two_instances):
    identity = volume(both)
    both.ec2.attach_volume(VolumeId=identity, InstanceId=two_instances[0], Device="/dev/xvdu")
    again = {"VolumeId": identity, "InstanceId": two_instances[1], "Device": "/dev/xvdu"}
    assert code_of(both.ec2.attach_volume, **again) == "VolumeInUse"


def test_a_volume_is_attached_in_its_zone(both, two_instances):
    elsewhere = {"VolumeId": volume(both, "us-east-1b"), "InstanceId": two_instances[0], "Device": "/dev/xvdu"}
    assert code_of(both.ec2.attach_volume, **elsewhere) == "InvalidVolume.ZoneMismatch"


def test_a_device_name_is_used_once(both, two_instances):
    both.ec2.attach_volume(VolumeId=volume(both), InstanceId=two_instances[0], Device="/dev/xvdu")
    second = {"VolumeId": volume(both), "InstanceId": two_instances[0], "Device": "/dev/xvdu"}
    assert code_of(both.ec2.attach_volume, **second) == "InvalidParameterValue"


def test_a_terminated_instance_takes_no_volume(both, two_instances):
    both.ec2.terminate_instances(InstanceIds=two_instances)
    late = {"VolumeId": volume(both), "InstanceId": two_instances[0], "Device": "/dev/xvdu"}
    assert code_of(both.ec2.attach_volume, **late) == "IncorrectState"


def test_an_available_volume_cannot_be_detached(both):
    assert code_of(both.ec2.detach_volume, VolumeId=volume(both)) == "IncorrectState"


def test_iops_of_gp2_follow_the_size(both):
    (found,) = both.ec2.describe_volumes(VolumeIds=[volume(both, VolumeType="gp2", Size=100)])["Volumes"]
    assert found["Iops"] == 300


def test_an_unknown_zone_is_refused(both):
    wrong = {"Size": 20, "AvailabilityZone": "us-east-1x"}
    assert code_of(both.ec2.create_volume, **wrong) == "InvalidZone.NotFound"


def test_a_volume_does_not_shrink(both):
    assert code_of(both.ec2.modify_volume, VolumeId=volume(both), Size=10) == "InvalidParameterValue"


def test_encryption_by_default_encrypts_what_asks_for_none(both):
    both.ec2.enable_ebs_encryption_by_default()
    try:
        (found,) = both.ec2.describe_volumes(VolumeIds=[volume(both, Encrypted=False)])["Volumes"]
    finally:
        both.ec2.disable_ebs_encryption_by_default()
    assert found["Encrypted"]
    (plain,) = both.ec2.describe_volumes(VolumeIds=[volume(both)])["Volumes"]
    assert not plain["Encrypted"]


def test_descriptions_may_be_old_for_a_while(aws):
    (instance, other) = instances(aws)
    here, gone = volume(aws), volume(aws)
    aws.control("POST", "stale", 60)
    try:
        aws.ec2.attach_volume(VolumeId=here, InstanceId=instance, Device="/dev/xvdu")
        aws.ec2.delete_volume(VolumeId=gone)
        new = volume(aws)
        found = aws.ec2.describe_volumes(VolumeIds=[here, gone])["Volumes"]
        assert [one["State"] for one in found] == ["available", "available"]
        assert code_of(aws.ec2.describe_volumes, VolumeIds=[new]) == "InvalidVolume.NotFound"
        # What changes something sees what is true.
        again = {"VolumeId": here, "InstanceId": instance, "Device": "/dev/xvdv"}
        assert code_of(aws.ec2.attach_volume, **again) == "VolumeInUse"
        (subnet,) = make.subnets(aws, make.vpc(aws), "a")
        launch = {"ImageId": make.image(aws), "InstanceType": "t3.medium", "SubnetId": subnet, "MinCount": 1, "MaxCount": 1}
        late = aws.ec2.run_instances(**launch)["Instances"][0]["InstanceId"]
        aws.ec2.terminate_instances(InstanceIds=[other, late])
    finally:
        aws.control("POST", "stale", 0)
    found = aws.ec2.describe_volumes(VolumeIds=[here, new])["Volumes"]
    assert {one["VolumeId"]: one["State"] for one in found} == {here: "in-use", new: "available"}
    assert code_of(aws.ec2.describe_volumes, VolumeIds=[gone]) == "InvalidVolume.NotFound"
