"""The mends: each makes moto do what AWS does in one respect, each is in this list, none is implied."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Callable

from ..events import InstanceEvents
from ..settle import Later


@dataclass
class Options:
    """What a mend may need from outside: time, and where launches are reported."""

    later: Later
    events: InstanceEvents


def apply(options: Options) -> None:
    """Mends moto. Once per process, after the environment is set and before the first request."""
    for mend in mends(options):
        mend()


def mends(options: Options) -> "list[Callable[[], None]]":
    """Every mend, in the order in which they are put on (later ones wrap earlier ones)."""
    from . import autoscaling, instances, launch_templates, requests, scaling

    return [
        requests.presigned_calls_go_to_their_service,
        launch_templates.new_versions_keep_their_user_data,
        launch_templates.template_tags_stay_out_of_the_data,
        launch_templates.versions_can_be_deleted,
        instances.the_root_volume_is_the_images_own,
        instances.templates_set_network_profile_and_metadata,
        instances.network_interfaces_die_with_their_instance,
        partial(instances.termination_takes_a_while, options),
        partial(instances.launches_are_reported, options),
        partial(scaling.instances_are_launched_as_the_template_says, options),
        scaling.instances_remember_the_version_they_were_launched_from,
        scaling.capacity_follows_what_is_asked,
        scaling.a_terminated_member_is_replaced,
        autoscaling.group_names_are_unique,
    ]
