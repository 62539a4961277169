"""Tags of EC2 objects."""

from __future__ import annotations

from typing import Any

from moto.ec2.models.core import TaggedEC2Resource
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, get_prefix

from .patch import replace


def tags_are_looked_up_by_their_object() -> None:
    """Not a mend of behaviour: moto searches the tags of all objects, with a pattern, for those of one,
    so that a description of many objects takes seconds.
    """

    @replace(TaggedEC2Resource, "get_tags")
    def get_tags(_original: Any, resource: Any) -> "list[dict[str, str]]":
        if not resource.id:
            return []
        kind = EC2_PREFIX_TO_RESOURCE.get(get_prefix(resource.id), "")
        found = resource.ec2_backend.tags.get(resource.id, {})
        return [
            {"resource_id": resource.id, "key": key, "value": value, "resource_type": kind}
            for key, value in found.items()
        ]


def reserved_tags_are_refused() -> None:
    """AWS: keys that begin with `aws:` are not for users.
    moto: takes them.
    """
    from moto.ec2.exceptions import EC2ClientError
    from moto.ec2.responses.tags import TagResponse

    @replace(TagResponse, "create_tags")
    def create_tags(original: Any, response: Any) -> Any:
        for tag in response._get_param("Tags", []):
            if tag["Key"].lower().startswith("aws:"):
                message = "Tag keys starting with 'aws:' are reserved for internal use"
                raise EC2ClientError("InvalidParameterValue", message)
        return original(response)
