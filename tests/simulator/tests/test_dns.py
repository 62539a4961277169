"""Route 53."""

from __future__ import annotations

import pytest

from . import make
from .errors import code_of
from .test_load_balancers import World


def zone(aws, **more):
    name = f"{aws.unique('zone')}.example.com"
    made = aws.route53.create_hosted_zone(Name=name, CallerReference=aws.unique("reference"), **more)
    return made["HostedZone"]["Id"], name


def record(name, value="192.0.2.1", kind="A", ttl=60, **more):
    return {"Name": name, "Type": kind, "TTL": ttl, "ResourceRecords": [{"Value": value}], **more}


def alias(name, zone_id, target, kind="A"):
    return {
        "Name": name,
        "Type": kind,
        "AliasTarget": {"HostedZoneId": zone_id, "DNSName": target, "EvaluateTargetHealth": False},
    }


def change(aws, zone_id, *changes):
    batch = {"Changes": [{"Action": action, "ResourceRecordSet": item} for action, item in changes]}
    return aws.route53.change_resource_record_sets(HostedZoneId=zone_id, ChangeBatch=batch)


def refused(aws, zone_id, *changes):
    return code_of(change, aws, zone_id, *changes)


def records(aws, zone_id):
    found = aws.route53.list_resource_record_sets(HostedZoneId=zone_id)["ResourceRecordSets"]
    return {item["Name"]: item for item in found if item["Type"] not in ("NS", "SOA")}


@pytest.fixture
def dns(both):
    return (both, *zone(both))


def test_a_caller_reference_is_used_once(both):
    reference = both.unique("reference")
    both.route53.create_hosted_zone(Name="x.example.com", CallerReference=reference)
    again = {"Name": "x.example.com", "CallerReference": reference}
    assert code_of(both.route53.create_hosted_zone, **again) == "HostedZoneAlreadyExists"


def test_a_zone_with_a_vpc_is_private(both):
    vpc = {"VPCRegion": "us-east-1", "VPCId": make.vpc(both)}
    reference = both.unique("private")
    made = both.route53.create_hosted_zone(Name=f"{reference}.internal", CallerReference=reference, VPC=vpc)
    found = both.route53.get_hosted_zone(Id=made["HostedZone"]["Id"])
    assert (found["HostedZone"]["Config"]["PrivateZone"], found["VPCs"]) == (True, [vpc])


def test_the_soa_record_is_text(dns):
    aws, identity, _ = dns
    found = aws.route53.list_resource_record_sets(HostedZoneId=identity)["ResourceRecordSets"]
    (soa,) = [item for item in found if item["Type"] == "SOA"]
    assert soa["ResourceRecords"][0]["Value"].endswith(" 1 7200 900 1209600 86400")
    assert "{" not in soa["ResourceRecords"][0]["Value"]


@pytest.mark.parametrize("wrong", [{"value": "192.0.2.9"}, {"ttl": 61}], ids=["value", "ttl"])
def test_delete_repeats_the_record_to_the_letter(dns, wrong):
    aws, identity, name = dns
    change(aws, identity, ("CREATE", record("a." + name)))
    assert refused(aws, identity, ("DELETE", record("a." + name, **wrong))) == "InvalidChangeBatch"
    change(aws, identity, ("DELETE", record("a." + name)))
    assert records(aws, identity) == {}


def test_delete_of_a_missing_record_is_refused(dns):
    aws, identity, name = dns
    assert refused(aws, identity, ("DELETE", record("a." + name))) == "InvalidChangeBatch"


def test_a_record_deleted_is_not_deleted_again(dns):
    aws, identity, name = dns
    change(aws, identity, ("CREATE", record("a." + name)))
    change(aws, identity, ("DELETE", record("a." + name)))
    assert refused(aws, identity, ("DELETE", record("a." + name))) == "InvalidChangeBatch"


def test_a_record_made_by_upsert_is_not_made_by_create(dns):
    aws, identity, name = dns
    change(aws, identity, ("UPSERT", record("a." + name)))
    assert refused(aws, identity, ("CREATE", record("a." + name, "192.0.2.2"))) == "InvalidChangeBatch"


def test_a_batch_happens_as_a_whole(dns):
    aws, identity, name = dns
    both_changes = ("CREATE", record("a." + name)), ("CREATE", record("elsewhere.example.org"))
    assert refused(aws, identity, *both_changes) == "InvalidChangeBatch"
    assert records(aws, identity) == {}


def test_a_cname_stands_alone(dns):
    aws, identity, name = dns
    change(aws, identity, ("CREATE", record("a." + name)))
    assert refused(aws, identity, ("CREATE", record("a." + name, "b", "CNAME"))) == "InvalidChangeBatch"


def test_names_are_kept_in_lower_case_with_their_dot(dns):
    aws, identity, name = dns
    change(aws, identity, ("CREATE", record("API.*." + name)))
    assert list(records(aws, identity)) == ["api.\\052." + name + "."]


def test_an_alias_leads_to_a_balancer_that_exists(both):
    identity, name = zone(both)
    wrong = alias("api." + name, "Z26RNL4JYFTOTI", "nobody-0123.elb.us-east-1.amazonaws.com")
    assert refused(both, identity, ("UPSERT", wrong)) == "InvalidChangeBatch"
    balancer = World(both).balancer()
    for kind in ("A", "AAAA"):
        change(
            both,
            identity,
            ("UPSERT", alias("api." + name, balancer["CanonicalHostedZoneId"], balancer["DNSName"], kind)),
        )
    found = records(both, identity)["api." + name + "."]["AliasTarget"]
    assert found["DNSName"] == balancer["DNSName"] + "."
    both.elbv2.delete_load_balancer(LoadBalancerArn=balancer["LoadBalancerArn"])
    change(
        both,
        identity,
        *[("DELETE", alias("api." + name, found["HostedZoneId"], balancer["DNSName"], kind)) for kind in ("A", "AAAA")],
    )
    assert records(both, identity) == {}


def test_the_tags_of_a_deleted_zone_are_not_listed(dns):
    aws, identity, _ = dns
    plain = identity.rsplit("/", 1)[1]
    aws.route53.change_tags_for_resource(
        ResourceType="hostedzone", ResourceId=plain, AddTags=[{"Key": "a", "Value": "b"}]
    )
    (tagged,) = aws.route53.list_tags_for_resources(ResourceType="hostedzone", ResourceIds=[plain])["ResourceTagSets"]
    assert tagged["Tags"] == [{"Key": "a", "Value": "b"}]
    aws.route53.delete_hosted_zone(Id=identity)
    listing = {"ResourceType": "hostedzone", "ResourceIds": [plain]}
    assert code_of(aws.route53.list_tags_for_resources, **listing) == "NoSuchHostedZone"


def test_a_zone_with_records_stays(aws):
    identity, name = zone(aws)
    change(aws, identity, ("CREATE", record("a." + name)))
    assert code_of(aws.route53.delete_hosted_zone, Id=identity) == "HostedZoneNotEmpty"
    change(aws, identity, ("DELETE", record("a." + name)))
    aws.route53.delete_hosted_zone(Id=identity)


def test_a_private_zone_has_its_vpcs(aws):
    first, second = make.vpc(aws), make.vpc(aws)
    identity, _ = zone(aws, VPC={"VPCRegion": "us-east-1", "VPCId": first}, HostedZoneConfig={"PrivateZone": True})
    aws.route53.associate_vpc_with_hosted_zone(HostedZoneId=identity, VPC={"VPCRegion": "us-east-1", "VPCId": second})
    found = aws.route53.get_hosted_zone(Id=identity)
    assert found["HostedZone"]["Config"]["PrivateZone"]
    assert {vpc["VPCId"] for vpc in found["VPCs"]} == {first, second}
    summaries = aws.route53.list_hosted_zones_by_vpc(VPCId=first, VPCRegion="us-east-1")["HostedZoneSummaries"]
    assert [summary["HostedZoneId"] for summary in summaries] == [identity.rsplit("/", 1)[1]]


@pytest.fixture
def private(both):
    """A private zone, the VPC it was made with, and another VPC."""
    first, second = make.vpc(both), make.vpc(both)
    identity, name = zone(both, VPC={"VPCRegion": "us-east-1", "VPCId": first}, HostedZoneConfig={"PrivateZone": True})
    return both, identity, name, first, second


def in_region(vpc):
    return {"VPCRegion": "us-east-1", "VPCId": vpc}


def test_a_vpc_is_associated_once_with_a_name(private):
    aws, identity, name, first, second = private
    aws.route53.associate_vpc_with_hosted_zone(HostedZoneId=identity, VPC=in_region(second))
    again = {"HostedZoneId": identity, "VPC": in_region(second)}
    assert code_of(aws.route53.associate_vpc_with_hosted_zone, **again) == "ConflictingDomainExists"
    found = aws.route53.get_hosted_zone(Id=identity)["VPCs"]
    assert sorted(vpc["VPCId"] for vpc in found) == sorted([first, second])
    aws.route53.disassociate_vpc_from_hosted_zone(**again)
    assert code_of(aws.route53.disassociate_vpc_from_hosted_zone, **again) == "VPCAssociationNotFound"


def test_a_vpc_that_is_not_there_is_not_associated(private):
    aws, identity, *_ = private
    nobody = {"HostedZoneId": identity, "VPC": in_region("vpc-00000000")}
    assert code_of(aws.route53.associate_vpc_with_hosted_zone, **nobody) == "InvalidVPCId"


def test_a_private_zone_keeps_its_last_vpc(aws):
    first = make.vpc(aws)
    identity, _ = zone(aws, VPC=in_region(first), HostedZoneConfig={"PrivateZone": True})
    last = {"HostedZoneId": identity, "VPC": in_region(first)}
    assert code_of(aws.route53.disassociate_vpc_from_hosted_zone, **last) == "LastVPCAssociation"


def test_records_come_in_pages(aws):
    identity, name = zone(aws)
    change(aws, identity, *[("CREATE", record(f"r{n}.{name}")) for n in range(5)])
    pages = aws.route53.get_paginator("list_resource_record_sets").paginate(
        HostedZoneId=identity, PaginationConfig={"PageSize": 3}
    )
    assert [len(page["ResourceRecordSets"]) for page in pages] == [3, 3, 1]
