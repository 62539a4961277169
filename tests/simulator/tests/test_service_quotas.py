"""Quotas: what every account begins with, and what holds for this one."""

from __future__ import annotations

import pytest

from .conftest import Server, start
from .errors import code_of

VCPUS = {"ServiceCode": "ec2", "QuotaCode": "L-1216C47A"}
ADDRESSES = {"ServiceCode": "ec2", "QuotaCode": "L-0263D0A3"}


def default_of(aws, quota):
    return aws.client("service-quotas").get_aws_default_service_quota(**quota)["Quota"]


def test_every_quota_has_a_default_and_some_a_value_of_their_own(both):
    quotas = both.client("service-quotas")
    assert (default_of(both, VCPUS)["Value"], default_of(both, ADDRESSES)["Value"]) == (5, 5)
    assert default_of(both, ADDRESSES)["QuotaName"] == "EC2-VPC Elastic IPs"
    assert quotas.get_service_quota(**VCPUS)["Quota"]["Value"] > 5
    assert code_of(quotas.get_service_quota, **ADDRESSES) == "NoSuchResourceException"
    unknown = {"ServiceCode": "vpc", "QuotaCode": VCPUS["QuotaCode"]}
    assert code_of(quotas.get_service_quota, **unknown) == "NoSuchResourceException"
    assert code_of(quotas.get_aws_default_service_quota, **unknown) == "NoSuchResourceException"


@pytest.mark.parametrize("name, body", [("quotas", {"L-1216C47A": 8}), ("vcpus", 8)])
def test_a_quota_is_what_it_is_set_to(name, body):
    life, endpoint = start("--settle", "0")
    with life:
        aws = Server(endpoint)
        aws.control("POST", name, body)
        assert aws.client("service-quotas").get_service_quota(**VCPUS)["Quota"]["Value"] == 8
        assert default_of(aws, VCPUS)["Value"] == 5
        aws.control("POST", "reset")
        assert aws.client("service-quotas").get_service_quota(**VCPUS)["Quota"]["Value"] > 8
