"""IAM says what a user or role may do, without it being done."""

from __future__ import annotations

from typing import Any, Iterator

from moto.core.responses import ActionResult
from moto.iam.exceptions import IAMException, InvalidInput, NoSuchEntity
from moto.iam.responses import IamResponse

from ..auth.caller import boundary_of, documents_of
from ..auth.policy import Verdict, evaluate, names_action, statements
from ..auth.refusals import Refused
from .patch import add

# What IAM answers about at once: https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulatePrincipalPolicy.html, `MaxItems`.
_PAGE = 100
_DECISIONS = {Verdict.ALLOWED: "allowed", Verdict.DENIED: "explicitDeny", Verdict.SILENT: "implicitDeny"}
# What is asked about by itself.
_ALONE = "iam:PassRole"


def policies_are_evaluated_on_request() -> None:
    """AWS: SimulatePrincipalPolicy evaluates the policies of a user or role and its permissions boundary, with the condition keys that
    are given; keys that statements ask for besides are listed as missing: with the resource if one is named, else with the action
    (https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulatePrincipalPolicy.html). InvalidInput for the session of a role
    (aws-containers/amazon-ecs-exec-checker#10), and for actions that "require different authorization information", which AWS does
    not document: here iam:PassRole among others.
    moto: has no such operation.
    """

    @add(IamResponse)
    def simulate_principal_policy(response: Any) -> ActionResult:
        actions = response._get_param("ActionNames", [])
        resources = response._get_param("ResourceArns") or ["*"]
        context = {
            entry["ContextKeyName"].lower(): list(entry.get("ContextKeyValues") or [])
            for entry in response._get_param("ContextEntries") or []
        }
        documents = _limits_of(response.backend, response._get_param("PolicySourceArn"))
        others = [action for action in actions if action != _ALONE]
        if others and len(others) < len(actions):
            raise InvalidInput(
                f"Invalid Input Actions: [{','.join(others)}] and [{_ALONE}] require different authorization information. "
                "Please refer to the documentation for more details"
            )
        try:
            found = [_evaluated(documents, action, resources, context) for action in actions]
        except Refused as refused:
            raise IAMException("PolicyEvaluation", refused.message) from refused
        start = int(response._get_param("Marker") or 0)
        end = start + int(response._get_param("MaxItems") or _PAGE)
        rest = len(found) > end
        page = {"EvaluationResults": found[start:end], "IsTruncated": rest}
        return ActionResult({**page, "Marker": str(end)} if rest else page)


def _limits_of(backend: Any, arn: str) -> "list[tuple[str, ...]]":
    """Sets of documents each of which has to allow: the principal's own first, then its boundary."""
    kind = arn.split(":", 5)[-1].partition("/")[0]
    if kind not in ("user", "role"):
        raise InvalidInput(f"Invalid Entity Arn: {arn} does not clearly define entity type and name.")
    entities = backend.users if kind == "user" else backend.roles
    entity = next((one for one in entities.values() if one.arn == arn), None)
    if entity is None:
        raise NoSuchEntity(f"The {kind} with ARN {arn} cannot be found.")
    if kind == "role":
        return [documents_of(entity), *(documents for _, documents in boundary_of(entity.permissions_boundary_arn))]
    holders = [entity, *backend.get_groups_for_user(entity.name)]
    return [tuple(text for holder in holders for text in documents_of(holder))]


def _evaluated(limits: "list[tuple[str, ...]]", action: str, resources: "list[str]", context: Any) -> "dict[str, Any]":
    of_each = [_decision(limits, action, resource, context) for resource in resources]
    missing = sorted(set(_missing_keys(limits, action, context)))
    own, *boundary = of_each[0]
    result = {"EvalActionName": action, "EvalResourceName": resources[0], "EvalDecision": _together([own, *boundary])}
    if boundary:
        allowed = boundary[0] is Verdict.ALLOWED
        result["PermissionsBoundaryDecisionDetail"] = {"AllowedByPermissionsBoundary": allowed}
    if resources == ["*"]:
        return {**result, "MissingContextValues": missing}
    specific = [
        {"EvalResourceName": resource, "EvalResourceDecision": _together(verdicts), "MissingContextValues": missing}
        for resource, verdicts in zip(resources, of_each)
    ]
    return {**result, "ResourceSpecificResults": specific}


def _decision(limits: "list[tuple[str, ...]]", action: str, resource: str, context: Any) -> "list[Verdict]":
    return [evaluate(documents, action, resource, context) for documents in limits]


def _together(verdicts: "list[Verdict]") -> str:
    """A Deny anywhere beats all; every set has to allow."""
    order = [Verdict.DENIED, Verdict.SILENT, Verdict.ALLOWED]
    return _DECISIONS[min(verdicts, key=order.index)]


def _missing_keys(limits: "list[tuple[str, ...]]", action: str, context: Any) -> "Iterator[str]":
    """Condition keys of statements about the action that have no value."""
    for document in (document for documents in limits for document in documents):
        for statement in statements(document):
            if names_action(statement, action):
                keys = (key for asked in statement.get("Condition", {}).values() for key in asked)
                yield from (key for key in keys if key.lower() not in context)
