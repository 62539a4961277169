"""Route 53: hosted zones and record sets, as strict as AWS is."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, Optional

from moto.route53.exceptions import (
    DnsNameInvalidForZone,
    InvalidActionValue,
    ResourceRecordAlreadyExists,
    Route53ClientError,
)
from moto.route53.models import FakeZone, RecordSet, Route53Backend
from moto.route53.responses import Route53
from moto.route53.utils import validate_domain_name

from .load_balancers import HOSTED_ZONES
from .patch import replace


class Identity(NamedTuple):
    """What makes a record set the same record set."""

    name: str
    type: str
    identifier: Optional[str]


def a_caller_reference_is_used_once() -> None:
    """AWS: a second zone with the caller reference of an existing one is HostedZoneAlreadyExists; a
    private zone names an existing VPC.
    moto: makes a second zone.
    """

    @replace(Route53Backend, "create_hosted_zone")
    def create(original: Any, backend: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        reference = kwargs.get("caller_reference")
        if reference and any(zone.caller_reference == reference for zone in backend.zones.values()):
            message = f"A hosted zone has already been created with the specified caller reference: {reference}"
            raise Route53ClientError("HostedZoneAlreadyExists", message)
        return original(backend, name.lower(), *args, **kwargs)


def a_zone_with_a_vpc_is_private() -> None:
    """AWS: a zone that is made with a VPC is a private one; its configuration need not say so.
    moto: forgets the VPC unless the configuration says that the zone is private.
    """

    @replace(Route53, "create_hosted_zone")
    def create(original: Any, response: Any) -> Any:
        if response._get_param("VPC.VPCId"):
            response.params.setdefault("HostedZoneConfig", {})["PrivateZone"] = True
        return original(response)


def soa_records_are_text() -> None:
    """AWS: the SOA record of a new zone has a value like any other record.
    moto: gives the SOA record a value that is no text.
    """

    @replace(FakeZone, "add_rrset")
    def add_rrset(original: Any, zone: Any, record_set: Any) -> Any:
        values = [
            value["Value"] if isinstance(value, dict) else value for value in record_set.get("ResourceRecords", [])
        ]
        if values:
            record_set = {**record_set, "ResourceRecords": values}
        return original(zone, record_set)


def change_batches_are_strict() -> None:
    """AWS: a batch happens as a whole or not at all. CREATE wants no such record, DELETE the same record
    to the letter, a CNAME stands alone, a record set with an identifier does not lie beside one of its name
    and type without, a name lies in its zone; else InvalidChangeBatch.
    moto: looks into a journal of earlier changes; DELETE with another value succeeds, and one of a
    missing record is InvalidInput.
    """

    @replace(Route53Backend, "change_resource_record_sets")
    def change(_original: Any, backend: Any, zone_id: str, changes: "list[dict[str, Any]]") -> None:
        zone = backend.get_hosted_zone(zone_id)
        records = {_identity(record): record for record in zone.rrsets}
        for item in changes:
            _apply(backend, zone, records, item["Action"], copy.deepcopy(item["ResourceRecordSet"]))
        zone.rrsets = list(records.values())


def _apply(backend: Any, zone: Any, records: "dict[Identity, Any]", action: str, asked: "dict[str, Any]") -> None:
    """One change of a batch, on the records as the changes before have left them."""
    if action not in ("CREATE", "UPSERT", "DELETE"):
        raise InvalidActionValue(action)
    wanted = _record(asked)
    identity = _identity(wanted)
    if not (wanted.name == zone.name or wanted.name.endswith("." + zone.name)):
        raise DnsNameInvalidForZone(name=wanted.name, zone_name=zone.name)
    present = records.get(identity)
    if action == "DELETE":
        if present is None:
            raise _invalid(
                f"Tried to delete resource record set [name='{wanted.name}', type='{wanted.type}'] but it was not found"
            )
        if _content(present) != _content(wanted):
            raise _invalid(
                f"Tried to delete resource record set [name='{wanted.name}', type='{wanted.type}'] "
                "but the values provided do not match the current values"
            )
        del records[identity]
        return
    if action == "CREATE" and present is not None:
        raise ResourceRecordAlreadyExists(name=wanted.name, _type=str(wanted.type))
    _check(backend, zone, records, wanted)
    records[identity] = wanted


def _record(asked: "dict[str, Any]") -> RecordSet:
    """The record set in the form in which it is kept and described."""
    validate_domain_name(asked["Name"], code="InvalidChangeBatch")
    asked["Name"] = _name(asked["Name"])
    asked["ResourceRecords"] = [item["Value"] for item in asked.get("ResourceRecords") or []]
    if asked.get("AliasTarget"):
        asked["AliasTarget"] = {**asked["AliasTarget"], "DNSName": _name(asked["AliasTarget"]["DNSName"])}
    return RecordSet(asked)


def _name(name: str) -> str:
    """Lower case, with the final dot, the asterisk as Route 53 writes it."""
    return name.lower().rstrip(".").replace("*", "\\052") + "."


def _identity(record: Any) -> Identity:
    return Identity(record.name, record.type, record.set_identifier)


def _content(record: Any) -> "tuple[Any, ...]":
    """What DELETE has to repeat."""
    ttl = None if record.ttl is None else int(record.ttl)
    return ttl, sorted(record.records or []), record.alias_target, record.weight, record.region, record.failover


def _check(backend: Any, zone: Any, records: "dict[Identity, Any]", wanted: Any) -> None:
    """What AWS wants of a record set that is made or changed."""
    if bool(wanted.alias_target) == bool(wanted.records):
        raise Route53ClientError(
            "InvalidInput",
            "Invalid request: Expected exactly one of [AliasTarget, all of [TTL, and ResourceRecords], or "
            f"TrafficPolicyInstanceId] in Change with [Name={wanted.name}, Type={wanted.type}]",
        )
    others = [identity.type for identity in records if identity.name == wanted.name and identity.type != wanted.type]
    if others and "CNAME" in (wanted.type, *others):
        raise _invalid(
            f"RRSet of type {wanted.type} with DNS name {wanted.name} is not permitted as it conflicts with "
            f"other records with the same DNS name in zone {zone.name}"
        )
    same = [identity.identifier for identity in records if (identity.name, identity.type) == (wanted.name, wanted.type)]
    if any((identifier is None) != (wanted.set_identifier is None) for identifier in same):
        raise _invalid(
            f"RRSet with DNS name {wanted.name}, type {wanted.type}, SetIdentifier {wanted.set_identifier} cannot be "
            "created as other RRSets exist with the same name and type."
        )
    if wanted.alias_target:
        _check_alias(backend, zone, records, wanted)


def _check_alias(backend: Any, zone: Any, records: "dict[Identity, Any]", wanted: Any) -> None:
    """An alias leads to a record of its own zone or to a load balancer that there is."""
    target, target_zone = wanted.alias_target["DNSName"], wanted.alias_target["HostedZoneId"]
    said = f"Tried to create an alias that targets {target}, type {wanted.type} in zone {target_zone}, but "
    if target_zone == zone.resource_id:
        if not any((identity.name, identity.type) == (target, wanted.type) for identity in records):
            raise _invalid(said + "that target was not found")
    elif target_zone in HOSTED_ZONES.values():
        plain = target.rstrip(".")
        plain = plain[len("dualstack.") :] if plain.startswith("dualstack.") else plain
        if plain not in _balancer_names(backend.account_id, target_zone):
            raise _invalid(said + "the alias target name does not lie within the target zone")


def _balancer_names(account_id: str, hosted_zone: str) -> "list[str]":
    from moto.elbv2.models import elbv2_backends

    regions = [region for region, zone in HOSTED_ZONES.items() if zone == hosted_zone]
    balancers = [
        balancer for region in regions for balancer in elbv2_backends[account_id][region].load_balancers.values()
    ]
    return [balancer.dns_name.lower() for balancer in balancers]


def _invalid(message: str) -> Route53ClientError:
    return Route53ClientError("InvalidChangeBatch", f"[{message}]")


def zone_associations_are_checked() -> None:
    """AWS: a VPC that is associated with a private zone exists, and with one zone of a name only
    (ConflictingDomainExists); one that is not associated cannot be disassociated (VPCAssociationNotFound).
    moto: takes any VPC any number of times, and lets go of VPCs that the zone never had.
    """

    @replace(Route53Backend, "associate_vpc_with_hosted_zone")
    def associate(original: Any, backend: Any, zone_id: str, vpcid: str, vpcregion: str) -> Any:
        zone = backend.get_hosted_zone(zone_id)
        if zone.private_zone:
            _check_vpc(backend, vpcid, vpcregion)
            taken = [
                other
                for other in backend.zones.values()
                if other.private_zone and other.name == zone.name and _has(other, vpcid, vpcregion)
            ]
            if taken:
                message = (
                    f"The VPC {vpcid} in region {vpcregion} has already been associated with the hosted zone "
                    f"{taken[0].resource_id} with the same domain name."
                )
                raise Route53ClientError("ConflictingDomainExists", message)
        return original(backend, zone_id, vpcid, vpcregion)

    @replace(Route53Backend, "disassociate_vpc_from_hosted_zone")
    def disassociate(original: Any, backend: Any, zone_id: str, vpcid: str) -> Any:
        zone = backend.get_hosted_zone(zone_id)
        if not any(vpc.get("vpc_id") == vpcid for vpc in zone.vpcs):
            message = f"The VPC {vpcid} is not associated with the hosted zone {zone.resource_id}."
            raise Route53ClientError("VPCAssociationNotFound", message)
        return original(backend, zone_id, vpcid)


def _has(zone: Any, vpc_id: str, region: str) -> bool:
    return any((vpc.get("vpc_id"), vpc.get("vpc_region")) == (vpc_id, region) for vpc in zone.vpcs)


def _check_vpc(backend: Any, vpc_id: str, region: str) -> None:
    from moto.ec2.models import ec2_backends

    if vpc_id not in ec2_backends[backend.account_id][region].vpcs:
        raise Route53ClientError("InvalidVPCId", f"The VPC: {vpc_id} you provided is invalid.")
