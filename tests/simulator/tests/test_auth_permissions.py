"""Strict: what a role's policies do not allow is refused; tags, prefixes and resources decide."""

from __future__ import annotations

import pytest

from . import make
from .strict import ACCOUNT, Strict, allow, refusal

CLUSTER = "one.example.com"
TAG = {"Key": "KubernetesCluster", "Value": CLUSTER}
OF_CLUSTER = {"aws:ResourceTag/KubernetesCluster": CLUSTER}


def tagged(kind: str, *tags: "dict[str, str]") -> "list[dict[str, object]]":
    return [{"ResourceType": kind, "Tags": list(tags)}]


def volume(strict: Strict, *tags: "dict[str, str]") -> str:
    specification = {"TagSpecifications": tagged("volume", *tags)} if tags else {}
    return strict.ec2.create_volume(AvailabilityZone="us-east-1a", Size=1, **specification)["VolumeId"]


def instance(strict: Strict, *tags: "dict[str, str]") -> str:
    (subnet,) = make.subnets(strict, make.vpc(strict), "a")
    specification = {"TagSpecifications": tagged("instance", *tags)} if tags else {}
    launch = {
        "ImageId": make.image(strict),
        "InstanceType": "t3.medium",
        "MinCount": 1,
        "MaxCount": 1,
        "SubnetId": subnet,
    }
    return strict.ec2.run_instances(**launch, **specification)["Instances"][0]["InstanceId"]


def test_an_action_that_a_role_lacks_is_refused_in_awss_words(strict):
    role = strict.role(allow("ec2:DescribeVpcs"))
    keys = strict.assume(role)
    user = f"arn:aws:sts::{ACCOUNT}:assumed-role/{role}/tester"
    code, status, words = refusal(strict.client_for(keys, "ec2").describe_subnets)
    assert (code, status) == ("UnauthorizedOperation", 403)
    start = (
        f"You are not authorized to perform this operation. User: {user} is not authorized to perform: "
        "ec2:DescribeSubnets on resource: * because no identity-based policy allows the ec2:DescribeSubnets action. "
        "Encoded authorization failure message: "
    )
    assert words.startswith(start)
    code, status, words = refusal(strict.client_for(keys, "autoscaling").describe_auto_scaling_groups)
    assert (code, status) == ("AccessDenied", 403)
    assert words == (
        f"User: {user} is not authorized to perform: autoscaling:DescribeAutoScalingGroups on resource: * "
        "because no identity-based policy allows the autoscaling:DescribeAutoScalingGroups action"
    )
    assert refusal(strict.client_for(keys, "sqs").list_queues)[:2] == ("AccessDeniedException", 400)
    assert refusal(strict.client_for(keys, "route53").list_hosted_zones)[:2] == ("AccessDenied", 403)
    assert refusal(strict.client_for(keys, "elbv2").describe_load_balancers)[:2] == ("AccessDenied", 403)
    assert refusal(strict.client_for(keys, "iam").list_roles)[:2] == ("AccessDenied", 403)


def test_a_deny_beats_every_allow(strict):
    keys = strict.allowed(allow("*"), {"Effect": "Deny", "Action": "ec2:Describe*", "Resource": "*"})
    strict.client_for(keys, "elbv2").describe_load_balancers()
    assert "with an explicit deny in an identity-based policy" in refusal(strict.client_for(keys, "ec2").describe_vpcs)[2]


def test_a_volume_is_attached_by_its_own_cluster_only(strict):
    """Both the volume and the instance have to carry the tag."""
    keys = strict.allowed(allow("ec2:AttachVolume", StringEquals=OF_CLUSTER))
    ec2 = strict.client_for(keys, "ec2")
    ours, theirs = instance(strict, TAG), instance(strict, {**TAG, "Value": "two.example.com"})
    mine, foreign, bare = volume(strict, TAG), volume(strict, {**TAG, "Value": "two.example.com"}), volume(strict)
    for one, other in [(ours, foreign), (ours, bare), (theirs, mine)]:
        code, _, words = refusal(ec2.attach_volume, InstanceId=one, VolumeId=other, Device="/dev/sdf")
        wrong = f"instance/{one}" if one == theirs else f"volume/{other}"
        assert (
            code == "UnauthorizedOperation" and f"on resource: arn:aws:ec2:us-east-1:{ACCOUNT}:{wrong} because" in words
        )
    ec2.attach_volume(InstanceId=ours, VolumeId=mine, Device="/dev/sdf")
    strict.ec2.create_tags(Resources=[bare], Tags=[TAG])
    ec2.attach_volume(InstanceId=ours, VolumeId=bare, Device="/dev/sdg")


def test_what_is_made_carries_the_clusters_tag(strict):
    """As kOps' policies have it: create with the tag, tag only while creating."""
    requested = {"aws:RequestTag/KubernetesCluster": CLUSTER}
    creating = {**requested, "ec2:CreateAction": ["CreateVolume", "CreateSnapshot"]}
    keys = strict.allowed(
        allow("ec2:CreateVolume", StringEquals=requested),
        allow("ec2:CreateTags", "arn:aws:ec2:*:*:volume/*", StringEquals=creating),
        allow(
            ["ec2:CreateTags", "ec2:DeleteTags"],
            "arn:aws:ec2:*:*:volume/*",
            StringEquals=OF_CLUSTER,
            Null=dict.fromkeys(requested, "true"),
        ),
    )
    ec2 = strict.client_for(keys, "ec2")
    make_volume = {"AvailabilityZone": "us-east-1a", "Size": 1}
    assert "ec2:CreateVolume" in refusal(ec2.create_volume, **make_volume)[2]
    assert refusal(ec2.create_volume, **make_volume, TagSpecifications=tagged("volume", {**TAG, "Value": "x"}))
    made = ec2.create_volume(**make_volume, TagSpecifications=tagged("volume", TAG))["VolumeId"]
    ec2.create_tags(Resources=[made], Tags=[{"Key": "Name", "Value": "a"}])
    assert "ec2:CreateTags" in refusal(ec2.create_tags, Resources=[made], Tags=[TAG])[2]
    assert refusal(ec2.create_tags, Resources=[volume(strict)], Tags=[{"Key": "Name", "Value": "a"}])
    ec2.delete_tags(Resources=[made], Tags=[{"Key": "Name"}])


def test_an_instance_is_terminated_in_its_own_clusters_group_only(strict):
    subnets = make.subnets(strict, make.vpc(strict), "a")
    groups = {}
    for value in (CLUSTER, "two.example.com"):
        tag = {"Key": "KubernetesCluster", "Value": value, "PropagateAtLaunch": True}
        groups[value] = make.scaling_group(strict, subnets, make.template(strict), Tags=[tag])
    actions = ["autoscaling:TerminateInstanceInAutoScalingGroup", "autoscaling:SetDesiredCapacity"]
    for key in ("aws:ResourceTag", "autoscaling:ResourceTag"):
        scaling = strict.client_for(
            strict.allowed(allow(actions, StringEquals={f"{key}/KubernetesCluster": CLUSTER})), "autoscaling"
        )
        for value, name in groups.items():
            (member,) = make.members(strict, name)
            end = {"InstanceId": member["InstanceId"], "ShouldDecrementDesiredCapacity": False}
            if value == CLUSTER:
                scaling.terminate_instance_in_auto_scaling_group(**end)
                scaling.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=1)
            else:
                assert (
                    f"autoScalingGroupName/{name}"
                    in refusal(scaling.terminate_instance_in_auto_scaling_group, **end)[2]
                )
                assert (
                    refusal(scaling.set_desired_capacity, AutoScalingGroupName=name, DesiredCapacity=2)[0]
                    == "AccessDenied"
                )


def test_a_load_balancer_is_made_with_the_clusters_tag(strict):
    """With kOps' two statements, creating with aws:RequestTag and AddTags with aws:ResourceTag, and what is asked of EC2."""
    subnets = make.subnets(strict, make.vpc(strict), "a")
    asked = {"Name": strict.unique("lb"), "Type": "network", "Scheme": "internal", "Subnets": subnets}
    own = [
        allow("elasticloadbalancing:CreateLoadBalancer", StringEquals={"aws:RequestTag/KubernetesCluster": CLUSTER}),
        allow("elasticloadbalancing:AddTags", StringEquals=OF_CLUSTER),
    ]
    without_ec2 = strict.client_for(strict.allowed(*own), "elbv2")
    assert "ec2:DescribeAccountAttributes" in refusal(without_ec2.create_load_balancer, **asked, Tags=[TAG])[2]
    elbv2 = strict.client_for(strict.allowed(*own, allow("ec2:Describe*")), "elbv2")
    assert "loadbalancer/net/" in refusal(elbv2.create_load_balancer, **asked)[2]
    elbv2.create_load_balancer(**asked, Tags=[TAG])


@pytest.fixture
def bucket(strict):
    name = strict.unique("bucket")
    strict.s3.create_bucket(Bucket=name)
    for key in ("one/assets/nodeup", "one/pki/private/ca", "two/assets/nodeup", "one/backups/etcd/main/x"):
        strict.s3.put_object(Bucket=name, Key=key, Body=b"content")
    return name


def test_a_worker_reads_the_programs_and_nothing_else(strict, bucket):
    s3 = strict.client_for(strict.allowed(allow("s3:GetObject", f"arn:aws:s3:::{bucket}/one/assets/*")), "s3")
    assert s3.get_object(Bucket=bucket, Key="one/assets/nodeup")["Body"].read() == b"content"
    s3.head_object(Bucket=bucket, Key="one/assets/nodeup")
    for key in ("one/pki/private/ca", "two/assets/nodeup", "one/assets", "ONE/assets/nodeup"):
        code, status, words = refusal(s3.get_object, Bucket=bucket, Key=key)
        assert (code, status) == ("AccessDenied", 403)
        assert f's3:GetObject on resource: "arn:aws:s3:::{bucket}/{key}" because no identity-based policy' in words
    assert refusal(s3.head_object, Bucket=bucket, Key="one/pki/private/ca")[:2] == ("403", 403)
    assert refusal(s3.put_object, Bucket=bucket, Key="one/assets/nodeup", Body=b"x")[0] == "AccessDenied"
    assert refusal(s3.delete_object, Bucket=bucket, Key="one/assets/nodeup")[0] == "AccessDenied"
    assert "s3:ListBucket" in refusal(s3.list_objects_v2, Bucket=bucket)[2]
    assert "s3:ListAllMyBuckets" in refusal(s3.list_buckets)[2]


def test_who_may_not_list_is_not_told_that_an_object_is_missing(strict, bucket):
    get = allow("s3:GetObject", f"arn:aws:s3:::{bucket}/*")
    blind = strict.client_for(strict.allowed(get), "s3")
    assert refusal(blind.get_object, Bucket=bucket, Key="missing")[0] == "AccessDenied"
    assert refusal(blind.head_object, Bucket=bucket, Key="missing")[0] == "403"
    seeing = strict.client_for(strict.allowed(get, allow("s3:ListBucket", f"arn:aws:s3:::{bucket}")), "s3")
    assert refusal(seeing.get_object, Bucket=bucket, Key="missing")[0] == "NoSuchKey"
    assert refusal(seeing.head_object, Bucket=bucket, Key="missing")[0] == "404"


def test_a_prefix_is_a_condition_of_listing(strict, bucket):
    listing = allow("s3:ListBucket", f"arn:aws:s3:::{bucket}", StringLike={"s3:prefix": ["one/*"]})
    s3 = strict.client_for(strict.allowed(listing), "s3")
    assert s3.list_objects_v2(Bucket=bucket, Prefix="one/assets/")["KeyCount"] == 1
    assert refusal(s3.list_objects_v2, Bucket=bucket, Prefix="two/")[0] == "AccessDenied"
    assert refusal(s3.list_objects_v2, Bucket=bucket)[0] == "AccessDenied"


def test_the_owner_of_a_bucket_is_a_condition(strict, bucket):
    on = [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]
    for owner, allowed in ((ACCOUNT, True), ("210987654321", False)):
        statement = allow(["s3:GetObject", "s3:ListBucket"], on, StringEquals={"aws:ResourceAccount": owner})
        s3 = strict.client_for(strict.allowed(statement), "s3")
        if allowed:
            assert s3.get_object(Bucket=bucket, Key="one/assets/nodeup")["Body"].read() == b"content"
            assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 4
            assert refusal(s3.get_object, Bucket=bucket, Key="missing")[0] == "NoSuchKey"
        else:
            assert refusal(s3.get_object, Bucket=bucket, Key="one/assets/nodeup")[0] == "AccessDenied"
            assert refusal(s3.list_objects_v2, Bucket=bucket)[0] == "AccessDenied"


def test_names_are_published_in_ones_own_zone_only(strict):
    zones = [
        strict.route53.create_hosted_zone(Name=f"{name}.example", CallerReference=strict.unique("r"))["HostedZone"][
            "Id"
        ].rsplit("/", 1)[-1]
        for name in ("one", "two")
    ]
    own = allow(
        ["route53:ChangeResourceRecordSets", "route53:ListResourceRecordSets"],
        f"arn:aws:route53:::hostedzone/{zones[0]}",
    )
    names = {"route53:ChangeResourceRecordSetsNormalizedRecordNames": ["api.one.example", "*.internal.one.example"]}
    limited = {**own, "Condition": {"ForAllValues:StringLike": names}}
    route53 = strict.client_for(strict.allowed(limited, allow("route53:GetChange", "arn:aws:route53:::change/*")), "route53")

    def batch(*wanted: str) -> "dict[str, object]":
        sets = [{"Name": name, "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": "10.0.0.1"}]} for name in wanted]
        return {"Changes": [{"Action": "UPSERT", "ResourceRecordSet": one} for one in sets]}

    change = route53.change_resource_record_sets(
        HostedZoneId=zones[0], ChangeBatch=batch("api.one.example.", "etcd-a.internal.one.example")
    )
    route53.get_change(Id=change["ChangeInfo"]["Id"])
    route53.list_resource_record_sets(HostedZoneId=zones[0])
    assert refusal(
        route53.change_resource_record_sets,
        HostedZoneId=zones[0],
        ChangeBatch=batch("api.one.example", "www.one.example"),
    )
    assert f"hostedzone/{zones[1]}" in refusal(route53.list_resource_record_sets, HostedZoneId=zones[1])[2]


def test_giving_a_profile_away_is_passing_its_role(strict):
    profile = make.profile(strict)
    (subnet,) = make.subnets(strict, make.vpc(strict), "a")
    launch = {
        "ImageId": make.image(strict),
        "InstanceType": "t3.medium",
        "MinCount": 1,
        "MaxCount": 1,
        "SubnetId": subnet,
        "IamInstanceProfile": {"Name": profile},
    }
    run = allow("ec2:RunInstances")
    assert "iam:PassRole" in refusal(strict.client_for(strict.allowed(run), "ec2").run_instances, **launch)[2]
    passing = allow(
        "iam:PassRole",
        f"arn:aws:iam::{ACCOUNT}:role/{profile}",
        StringEquals={"iam:PassedToService": "ec2.amazonaws.com"},
    )
    strict.client_for(strict.allowed(run, passing), "ec2").run_instances(**launch)


def test_queues_rules_and_roles_are_told_apart(strict):
    names = [strict.unique("thing") for _ in range(2)]
    urls = [strict.sqs.create_queue(QueueName=name)["QueueUrl"] for name in names]
    for name in names:
        strict.events.put_rule(Name=name, EventPattern='{"source": ["aws.ec2"]}')
        strict.iam.create_role(RoleName=name, AssumeRolePolicyDocument=make.TRUST)
    own = [f"arn:aws:sqs:*:*:{names[0]}", f"arn:aws:events:*:*:rule/{names[0]}", f"arn:aws:iam::*:role/{names[0]}"]
    keys = strict.allowed(allow(["sqs:*", "events:*", "iam:*"], own))
    strict.client_for(keys, "sqs").get_queue_attributes(QueueUrl=urls[0], AttributeNames=["All"])
    strict.client_for(keys, "events").describe_rule(Name=names[0])
    strict.client_for(keys, "iam").get_role(RoleName=names[0])
    assert refusal(strict.client_for(keys, "sqs").get_queue_attributes, QueueUrl=urls[1], AttributeNames=["All"])
    assert refusal(strict.client_for(keys, "events").describe_rule, Name=names[1])
    assert refusal(strict.client_for(keys, "iam").get_role, RoleName=names[1])
