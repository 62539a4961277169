"""Which recorded cases do not apply, by patterns of their names; writes `recorded.md` and `recorded.json`.

`KCTL_AWS_RECORDED=FOLDER python -m simulator.tests.recorded_table`, where the folder has the recorded answers (`test_s3.json`, ...).
"""

from __future__ import annotations

import json
import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from .recorded import CASES, FACTS
from . import recorded_cases  # noqa: F401  (marks the cases)

TABLE = Path(__file__).parents[1] / "recorded.md"
# The first pattern that matches a case that is not taken says why.
NOT_OURS = [line.split(" | ") for line in """
ec2 *vcp_peering* | no peering of VPCs
ec2 *vpn_gateways* | no VPN gateways
ec2 *FlowLogs* | no flow logs
ec2 *get_security_groups_for_vpc | not called
ec2 *filter_with_zone_ids | the ids of zones, which differ by account, are not asked for
ec2 *vpc_endpoint_dns_names | endpoints are gateways, which have no names
events *TestEventBus* | the default bus only
events *{custom}* | the default bus only
events *put_event* | events are AWS' own: nothing puts any
events *create_connection* | no connections
events *put_multiple_rules_with_same_name | a bus of its own; a rule that is put again is in test_update_rule_with_targets
events *list_rule_with_limit | a bus of its own, and all rules are asked for
events *describe_nonexistent_rule | rules are listed, not described
events *disable_re_enable* | rules stay enabled
events *TestEventRule::test_process* | what events lead to: tests/simulator/tests/test_lifecycle.py
events *TestEventPattern* | what events lead to: tests/simulator/tests/test_lifecycle.py
events *list_target_by_rule_limit | a rule has one target
events *put_multiple_targets* | one target a rule, without a path of its input
events_tags *{*event_bus* | the default bus only, and it is not tagged
events_tags *EventBusTags* | the default bus only
events_tags *deleted_rule | a bus of its own; the default bus: not_existing_rule
events_targets * | targets are queues; what events lead to: tests/simulator/tests/test_lifecycle.py
iam *user* | no users
iam *group* | no groups
iam *ServiceSpecific* | no credentials of users
iam *ServiceRoles* | service-linked roles come about by themselves
iam *delete_non_existent_policy* | policies are neither made nor deleted
iam *simulate* | not called
route53 *non_existent_vpc | zones are the user's: none is created
sts *federation* | not called
sts *Tagging* | sessions have no tags
sqs *{sqs_query* | the JSON protocol only
sqs *TestSqsQueryApi* | the JSON protocol only
sqs *fifo* | no FIFO queues
sqs *deduplication* | no FIFO queues
sqs *group_id* | no FIFO queues
sqs *send* | nothing sends: EventBridge and Auto Scaling do
sqs *oversized* | nothing sends
sqs *batch* | one message a call
sqs *visibility* | the visibility of a message is not changed
sqs *dead_letter* | no dead-letter queues
sqs *redrive* | no dead-letter queues
sqs *unsupported_attribute* | MessageRetentionPeriod and Policy are the attributes that are set
sqs *sse_* | encryption is left as AWS has it
sqs *permission_lifecycle* | policies are set whole
sqs *purge* | not called
sqs *names* | attributes of messages are not asked for
sqs *list_queues* | not called
sqs *trace_header* | attributes of messages are not asked for
sqs *not_visible* | counts of messages are not read
s3 *Presigned* | no presigned URLs
s3 *Website* | no websites
s3 *Lifecycle* | not called
s3 *lifecycle* | not called
s3 *Replication* | not called
s3 *Logging* | not called
s3 *ObjectLock* | not called
s3 *SSEC* | no keys of customers
s3 *kms* | KMS keys are the bucket's own default
s3 *sse* | KMS keys are the bucket's own default
s3 *encryption* | KMS keys are the bucket's own default
s3 *acl* | access control lists are not read
s3 *copy* | objects are not copied
s3 *tagging* | objects have no tags
s3 *bucket_policy* | policies of buckets are not read but for their status
s3 *delete_bucket* | buckets are the user's
s3 *bucket_notification* | not called
s3 *inventory* | not called
s3 *analytics* | not called
s3 *intelligent* | not called
s3 *request_payer* | not called
s3 *location_constraint* | buckets are the user's
s3 *create_bucket_* | buckets are the user's
s3 *bucket_constraint* | buckets are the user's
s3 *uppercase_bucket* | buckets are the user's
s3 *bucket_exists | not called
s3 *bucket_availability | not called
s3 *between_regions | not called
s3 *DeepArchive* | storage classes are left as they are
s3 *storage_class* | storage classes are left as they are
s3 *attributes* | not called
s3 *metadata* | objects have no metadata
s3 *head_object* | HeadObject is not called
s3 *expires | objects do not expire
s3 *content_md5 | sums are SHA-256
s3 *checksum* | SHA-256 over the whole, and over each part
s3 *Checksum* | SHA-256 over the whole, and over each part
s3 *gzip | content has no encoding
s3 *content_language* | content has no language
s3 *header_overrides | not asked for
s3 *get_object_headers | If-None-Match and dates are not asked about
s3 *preconditions* | If-None-Match and dates are not asked about
s3 *part* | several parts by one number, and uploads that overwrite: not so called
s3 *versioned* | versions are not named
s3 *version* | versions are not named
s3 *anon_credentials | public objects: tests/simulator/tests/test_web_identity.py
s3 *public_objects* | public objects: tests/simulator/tests/test_web_identity.py
s3 *lambda* | no functions
s3 *virtual_host* | how hosts name buckets: tests/simulator/tests/test_auth_signatures.py
s3 *hostname | how hosts name buckets: tests/simulator/tests/test_auth_signatures.py
s3 *dots | how hosts name buckets: tests/simulator/tests/test_auth_signatures.py
s3 *single_character_trailing_slash | keys have no slash at the end
s3 *slashes_in_key* | keys have no slash at the end
s3 *url_encoded_key* | keys have no slash at the end
s3 *special_character* | keys are letters, digits, `-`, `.`, `_` and `/`; three that stand for all
s3 *utf8* | keys are ASCII
s3 *unicode* | keys are ASCII
s3 *hash_prefix | keys are ASCII without `#`
s3 *rfc2047* | objects have no metadata
s3 *region_header* | the region of a bucket: tests/simulator/tests/test_auth_signatures.py
s3 *batch_delete* | as in test_delete_objects of s3_api
s3 *empty_bucket* | a fixture of the recorders
s3 *bucket_with_content | buckets are the user's
s3 *multiple_keys | as in test_put_object_if_none_match
s3 *1000_items | ListObjects, the first version; pages are in test_list_objects_v2_continuation_start_after
s3 *big_file | nothing but sizes
s3 *xml_preamble | nothing but content
s3 *etag_on_get* | as in test_get_object_range
s3 *different_user* | no presigned URLs
s3_api *Encryption* | not called
s3_api *Tagging* | not called
s3_api *ObjectLock* | not called
s3_api *Ownership* | not called
s3_api *PublicAccess* | not called
s3_api *BucketPolicy* | not called but for the status
s3_api *Accelerate* | not called
s3_api *Metrics* | not called
s3_api *Notification* | not called
s3_api *TestS3BucketCRUD* | buckets are the user's
s3_api *copy* | objects are not copied
s3_api *version* | versions are not named
s3_api *suspended* | versions are not named
s3_api *if_match_modified* | the time is not asked about
s3_api *if_match_size* | the size is not asked about
s3_api *if_match_all* | time and size are not asked about
s3_api *multipart_if_match* | uploads in parts are of new objects only
s3_api *if_none_match_validation | `*` is all that is sent
s3_api *and_if_none_match* | one condition a call
s3_list_operations *TestS3ListObjects::* | ListObjectsV2 only
s3_list_operations *Versions* | not called
s3_list_operations *Uploads* | not called
s3_list_operations *Parts* | not called
s3_list_operations *Buckets* | not called
s3_list_operations *delimiter | no delimiter
s3_list_operations *common_prefixes | no delimiter
s3_list_operations *safe_chars | keys are letters, digits, `-`, `.`, `_` and `/`
s3_list_operations *encoding_type* | no encoding is asked for
s3_preconditions * | objects are not copied
""".strip().splitlines()]  # fmt: skip


def reason(case: str) -> str:
    """Why a case that is not taken does not apply. What a case varies, in brackets, matches `{...}` of a pattern only."""
    varied = case.replace("[", "{").replace("]", "}")
    plain = case.partition("[")[0]
    return next((why for pattern, why in NOT_OURS if fnmatchcase(varied if "{" in pattern else plain, pattern)), "")


def all_recorded(folder: Path) -> "dict[str, dict[str, Any]]":
    """Every recorded case, with its steps."""
    found = {}
    for path in sorted(folder.glob("test_*.json")):
        for name, case in json.loads(path.read_text()).items():
            found[f"{path.stem[5:]} {name.split('::', 1)[1]}"] = case["recorded-content"]
    return found


def facts_of(everything: "dict[str, dict[str, Any]]") -> "dict[str, dict[str, Any]]":
    """What the cases that are taken need of it."""
    return {
        name: {step: said for step, said in everything[name].items() if step not in case.without}
        for name, case in sorted(CASES.items())
    }


def table(everything: "dict[str, dict[str, Any]]") -> str:
    """Every case: those that are taken, and the others by why they are not."""
    lines = [
        "# Answers recorded from AWS",
        "",
        f"{len(everything)} cases were recorded from AWS itself. To the {len(CASES)} below the simulator gives the same status, code and words, and what",
        "kctl reads of an answer (`tests/simulator/tests/recorded_cases.py` makes their requests again). The others do not apply: kctl, nodeup and protokube",
        "make no such call. `KCTL_AWS_RECORDED=FOLDER python -m simulator.tests.recorded_table` writes this from the recorded answers, and",
        "with that variable the tests check that nothing recorded is missing here.",
        "",
        "| taken | steps | steps for calls that are not made |",
        "|---|---|---|",
    ]
    others: "dict[tuple[str, str], dict[str, int]]" = {}
    for name, steps in everything.items():
        case = CASES.get(name)
        if case is not None:
            lines.append(f"| {name} | {len(steps) - len(case.without)} of {len(steps)} | {', '.join(case.without)} |")
            continue
        file, _, test = name.partition(" ")
        tests = others.setdefault((file, reason(name)), {})
        short = test.rpartition("::")[2].partition("[")[0]
        tests[short] = tests.get(short, 0) + 1
    lines += ["", "| not taken, of | why | cases |", "|---|---|---|"]
    for (file, why), tests in others.items():
        shown = ", ".join(test if count == 1 else f"{test} ({count})" for test, count in tests.items())
        lines.append(f"| {file} | {why} | {shown} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Writes both files."""
    everything = all_recorded(Path(os.environ["KCTL_AWS_RECORDED"]))
    FACTS.write_text(json.dumps(facts_of(everything), indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    TABLE.write_text(table(everything))


if __name__ == "__main__":
    main()
