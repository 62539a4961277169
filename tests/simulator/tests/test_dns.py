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


@pytest.fixture
def private(both):
    """A private zone, the VPC it was made with, and another VPC."""
    first, second = make.vpc(both), make.vpc(both)
    identity, name = zone(both, VPC={"VPCRegion": "us-east-1", "VPCId": first}, HostedZoneConfig={"PrivateZone": True})
    return both, identity, name, first, second


def in_region(vpc):
    return {"VPCRegion": "us-east-1", "VPCId": vpc}


def test_a_vpc_that_is_not_there_is_not_associated(private):
    aws, identity, *_ = private
    nobody = {"HostedZoneId": identity, "VPC": in_region("vpc-00000000")}
    assert code_of(aws.route53.associate_vpc_with_hosted_zone, **nobody) == "InvalidVPCId"


def test_a_record_set_with_an_identifier_is_another_one_and_lies_beside_none_without(dns):
    aws, identity, name = dns
    weighted = {"SetIdentifier": "one", "Weight": 1}
    change(aws, identity, ("CREATE", record("a." + name, **weighted)))
    other = {"SetIdentifier": "two", "Weight": 1}
    change(aws, identity, ("UPSERT", record("a." + name, "192.0.2.2", **other)))
    assert refused(aws, identity, ("UPSERT", record("a." + name))) == "InvalidChangeBatch"
    change(aws, identity, ("DELETE", record("a." + name, **weighted)))
    assert records(aws, identity)[f"a.{name}."]["SetIdentifier"] == "two"
    change(aws, identity, ("CREATE", record("b." + name)))
    assert refused(aws, identity, ("UPSERT", record("b." + name, **weighted))) == "InvalidChangeBatch"
