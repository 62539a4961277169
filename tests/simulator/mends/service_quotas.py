"""Service Quotas: the quotas that clusters use up, each with AWS' default and the account's own value."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from moto.servicequotas.exceptions import NoSuchResource
from moto.servicequotas.models import ServiceQuotasBackend
from moto.servicequotas.responses import ServiceQuotasResponse

from .patch import add, replace

if TYPE_CHECKING:
    from . import Options


class _Quota(NamedTuple):
    """A quota by its service, its name, and the value that every account begins with."""

    service: str
    name: str
    default: float


_STANDARD = "L-1216C47A"

# vCPUs: https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html. Addresses and VPCs:
# https://docs.aws.amazon.com/general/latest/gr/ec2-service.html and
# https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html. Load balancers:
# https://docs.aws.amazon.com/elasticloadbalancing/latest/network/load-balancer-limits.html. Storage, in TiB:
# https://docs.aws.amazon.com/ebs/latest/userguide/ebs-resource-quotas.html.
_QUOTAS = {
    _STANDARD: _Quota("ec2", "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", 5),
    "L-74FC7D96": _Quota("ec2", "Running On-Demand F instances", 0),
    "L-DB2E81BA": _Quota("ec2", "Running On-Demand G and VT instances", 0),
    "L-1945791B": _Quota("ec2", "Running On-Demand Inf instances", 0),
    "L-417A185B": _Quota("ec2", "Running On-Demand P instances", 0),
    "L-7295265B": _Quota("ec2", "Running On-Demand X instances", 0),
    "L-2C3B7624": _Quota("ec2", "Running On-Demand Trn instances", 0),
    "L-34B43A08": _Quota("ec2", "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", 5),
    "L-3819A6DF": _Quota("ec2", "All G and VT Spot Instance Requests", 0),
    "L-0263D0A3": _Quota("ec2", "EC2-VPC Elastic IPs", 5),
    "L-F678F1CE": _Quota("vpc", "VPCs per Region", 5),
    "L-69A177A2": _Quota("elasticloadbalancing", "Network Load Balancers per Region", 50),
    "L-D18FCD1D": _Quota("ebs", "Storage for General Purpose SSD (gp2) volumes, in TiB", 50),
    "L-7A658B76": _Quota("ebs", "Storage for General Purpose SSD (gp3) volumes, in TiB", 50),
    "L-FD252861": _Quota("ebs", "Storage for Provisioned IOPS SSD (io1) volumes, in TiB", 50),
    "L-09BD8365": _Quota("ebs", "Storage for Provisioned IOPS SSD (io2) volumes, in TiB", 20),
}
# Five vCPUs are of a new account. This one has asked for more, as one with clusters has to.
_RAISED = {_STANDARD: 1920.0}


def quotas_have_defaults_and_values(options: "Options") -> None:
    """AWS: GetAWSDefaultServiceQuota tells the default of each quota, GetServiceQuota the value that holds for the account; where there
    is none of its own it may find nothing ("If the applied quota value is not available for a quota, the quota is not retrieved",
    https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_GetServiceQuota.html): here it does unless a value was set
    (`POST /_simulator/quotas`, `POST /_simulator/vcpus`) or raised.
    moto: knows the quotas of VPCs only, and of those no defaults alone.
    """

    def applied() -> "dict[str, float]":
        vcpus = options.later.vcpus
        limited = {} if vcpus is None else {_STANDARD: float(vcpus)}
        return {**_RAISED, **limited, **options.later.quotas}

    @replace(ServiceQuotasBackend, "get_service_quota")
    def get_service_quota(_original: Any, _backend: Any, service_code: str, quota_code: str) -> "dict[str, Any]":
        value = applied().get(quota_code)
        if value is None:
            raise NoSuchResource
        return _described(service_code, quota_code, value)

    @add(ServiceQuotasResponse)
    def get_aws_default_service_quota(response: Any) -> str:
        asked = json.loads(response.body)
        found = _described(asked["ServiceCode"], asked["QuotaCode"], None)
        return json.dumps({"Quota": found})


def _described(service: str, code: str, value: "float | None") -> "dict[str, Any]":
    """A quota as AWS describes it, with this value or its default; NoSuchResource if the service has none of that code."""
    quota = _QUOTAS.get(code)
    if quota is None or quota.service != service:
        raise NoSuchResource
    return {
        "ServiceCode": service,
        "QuotaCode": code,
        "QuotaName": quota.name,
        "Value": quota.default if value is None else value,
        "Unit": "None",
        "Adjustable": True,
        "GlobalQuota": False,
    }
