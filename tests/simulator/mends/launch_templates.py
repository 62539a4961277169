"""Launch templates and their versions."""

from __future__ import annotations

import copy
from typing import Any, Optional

from moto.core.responses import ActionResult
from moto.core.types import Base64EncodedString
from moto.ec2.exceptions import EC2ClientError, InvalidLaunchTemplateVersionNotFound
from moto.ec2.models.launch_templates import LaunchTemplate, LaunchTemplateVersion
from moto.ec2.responses.launch_templates import LaunchTemplates
from moto.ec2.utils import parse_user_data

from .patch import add, replace


def template_tags_set_later_are_shown() -> None:
    """AWS: a template is described with the tags it has now.
    moto: with those it was created with.
    """
    LaunchTemplate.tags = property(lambda template: template.get_tags(), lambda _template, _tags: None)


def new_versions_keep_their_user_data() -> None:
    """AWS: a version made by CreateLaunchTemplateVersion launches like any other; with SourceVersion
    it starts from a copy of that one.
    moto: keeps the user data as a plain string and fails an assertion (HTTP 500) when an Auto
    Scaling group launches from it; SourceVersion is ignored.
    """

    @replace(LaunchTemplate, "create_version")
    def create_version(original: Any, template: Any, data: Any, description: Any) -> Any:
        if data.get("UserData") is not None and not isinstance(data["UserData"], Base64EncodedString):
            data["UserData"] = parse_user_data(data["UserData"])
        return original(template, data, description)

    @replace(LaunchTemplates, "create_launch_template_version")
    def create(original: Any, response: Any) -> Any:
        source = response._get_param("SourceVersion")
        if source:
            template = _template(response)
            merged = copy.copy(template.get_version(source).data)
            merged.update(response._get_param("LaunchTemplateData", {}))
            response.params["LaunchTemplateData"] = merged
        return original(response)


def prices_come_back_as_numbers() -> None:
    """AWS: the highest price of a Spot instance is a number; how its text comes back is not documented, and the Spot API's examples
    show six decimals. This is the stricter reading: never as it was written.
    moto: gives the text back.
    """

    @replace(LaunchTemplate, "create_version")
    def create_version(original: Any, template: Any, data: Any, description: Any) -> Any:
        spot = (data.get("InstanceMarketOptions") or {}).get("SpotOptions") or {}
        if spot.get("MaxPrice"):
            spot["MaxPrice"] = f"{float(spot['MaxPrice']):.6f}"
        return original(template, data, description)


def template_tags_stay_out_of_the_data() -> None:
    """AWS: TagSpecifications beside LaunchTemplateData tag the template itself.
    moto: also writes them into the data, so that a version describes with tags nobody put there.
    """

    @replace(LaunchTemplate, "__init__")
    def init(
        original: Any, template: Any, backend: Any, name: str, template_data: Any, description: Any, tag_spec: Any
    ) -> None:
        own = [
            spec for spec in template_data.get("TagSpecifications", []) if spec.get("ResourceType") != "launch-template"
        ]
        template_data.pop("TagSpecifications", None)
        if own:
            template_data["TagSpecifications"] = own
        if template_data.get("UserData") is None:
            template_data.pop("UserData", None)
        original(template, backend, name, template_data, description, tag_spec)


def tags_of_a_template_change() -> None:
    """AWS: CreateTags and DeleteTags on a launch template show in its description.
    moto: describes the tags it was made with for ever.
    """
    LaunchTemplate.tags = property(lambda template: template.get_tags(), lambda _template, _made_with: None)


def versions_can_be_deleted() -> None:
    """AWS: DeleteLaunchTemplateVersions removes versions, but never the default one; numbers are not reused.
    moto: has no such operation (HTTP 500) and finds a version by its place in the list.
    """

    @replace(LaunchTemplate, "create_version")
    def create_version(original: Any, template: Any, data: Any, description: Any) -> LaunchTemplateVersion:
        version = original(template, data, description)
        template.last_number = getattr(template, "last_number", 0) + 1
        version.number = template.last_number
        return version

    @replace(LaunchTemplate, "get_version")
    def get_version(_original: Any, template: Any, number: Any) -> LaunchTemplateVersion:
        if str(number).lower() == "$latest":
            return template.versions[-1]
        if str(number).lower() == "$default":
            return template.default_version()
        for version in template.versions:
            if str(version.number) == str(number):
                return version
        raise InvalidLaunchTemplateVersionNotFound(template_id=template.id, version=number)

    @replace(LaunchTemplate, "default_version")
    def default_version(_original: Any, template: Any) -> LaunchTemplateVersion:
        return template.get_version(template.default_version_number)

    @add(LaunchTemplates)
    def delete_launch_template_versions(response: Any) -> ActionResult:
        template = _template(response)
        wanted = [str(number) for number in response._get_param("Versions", [])]
        if len(wanted) > 200:  # EC2's reference of the operation
            raise EC2ClientError("InvalidParameterValue", "You can delete up to 200 launch template versions at once.")
        response.error_on_dryrun()
        done, failed = [], []
        for number in wanted:
            item = {"LaunchTemplateId": template.id, "LaunchTemplateName": template.name, "VersionNumber": int(number)}
            error = _why_it_stays(template, number)
            if error is None:
                template.versions = [version for version in template.versions if str(version.number) != number]
                done.append(item)
            else:
                failed.append({**item, "ResponseError": error})
        return ActionResult(
            {
                "SuccessfullyDeletedLaunchTemplateVersions": done,
                "UnsuccessfullyDeletedLaunchTemplateVersions": failed,
            }
        )


def _why_it_stays(template: Any, number: str) -> "Optional[dict[str, str]]":
    """The error of one version that is not deleted; None if it can be."""
    if number == str(template.default_version_number):
        message = "The default version of a launch template cannot be deleted."
        return {"Code": "unexpectedError", "Message": message}
    if number not in [str(version.number) for version in template.versions]:
        message = "The specified launch template version does not exist."
        return {"Code": "launchTemplateVersionDoesNotExist", "Message": message}
    return None


def _template(response: Any) -> LaunchTemplate:
    """The template a request names, by id or by name."""
    identity = response._get_param("LaunchTemplateId")
    if identity:
        return response.ec2_backend.get_launch_template(identity)
    return response.ec2_backend.get_launch_template_by_name(response._get_param("LaunchTemplateName"))
