"""The mends: each makes moto do what AWS does in one respect, each is in this list, none is implied."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Callable

from ..settle import Later


@dataclass
class Options:
    """What a mend may need from outside: time, whether machines are behind it, and the lock that every request holds."""

    later: Later
    machines: bool = False
    lock: Any = field(default_factory=threading.RLock)


def apply(options: Options) -> None:
    """Mends moto. Once per process, after the environment is set and before the first request."""
    for mend in mends(options):
        mend()


def mends(options: Options) -> "list[Callable[[], None]]":
    """Every mend, in the order in which they are put on (later ones wrap earlier ones)."""
    from . import (
        autoscaling,
        event_rules,
        gateways,
        group_fields,
        hooks,
        iam,
        instances,
        ipv6,
        launch_templates,
        lifecycle,
        load_balancers,
        machines,
        queues,
        requests,
        route53,
        routes,
        s3,
        scaling,
        security_groups,
        subnets,
        tags,
        target_groups,
        target_health,
        visibility,
        volumes,
        vpc,
        warm_pools,
        web_identity,
    )

    return [
        tags.tags_are_looked_up_by_their_object,
        tags.reserved_tags_are_refused,
        vpc.there_is_no_default_vpc,
        vpc.every_vpc_has_dhcp_options,
        vpc.dhcp_options_are_tagged_when_made,
        vpc.dhcp_options_outlive_their_vpc,
        vpc.a_vpc_with_something_in_it_stays,
        vpc.vpc_attributes_change_one_at_a_time,
        vpc.address_blocks_bring_their_local_routes,
        subnets.a_new_subnet_is_nobodys_default,
        subnets.private_dns_name_options_are_kept,
        subnets.an_ipv6_block_of_a_subnet_is_described,
        subnets.a_subnet_with_ipv6_alone_has_no_ipv4_addresses_left,
        subnets.a_subnet_with_something_in_it_stays,
        gateways.a_vpc_has_one_internet_gateway,
        partial(gateways.an_address_in_use_is_not_released, options),
        gateways.interfaces_have_an_address_of_their_subnet,
        partial(gateways.nat_gateways_come_and_go_slowly, options),
        gateways.nat_gateways_are_filtered_by_tag,
        gateways.egress_only_gateways_are_filtered_by_tag,
        routes.routes_lead_to_what_exists,
        routes.a_route_to_a_deleted_target_is_a_blackhole,
        routes.a_subnet_has_one_route_table,
        routes.an_endpoint_is_a_route_of_its_tables,
        security_groups.a_new_group_tells_its_tags,
        security_groups.a_group_in_use_stays,
        security_groups.interfaces_take_existing_groups_only,
        security_groups.an_instance_has_the_groups_it_is_given,
        security_groups.rules_are_added_all_or_none,
        security_groups.an_unknown_rule_id_is_said_so,
        security_groups.rules_that_name_a_group_are_described,
        volumes.a_volume_is_attached_once_and_in_its_zone,
        volumes.a_volume_is_detached_from_whatever_has_it,
        volumes.volumes_describe_their_performance,
        volumes.volumes_are_made_in_zones_that_exist,
        volumes.encryption_by_default_encrypts,
        partial(volumes.descriptions_of_volumes_may_be_old, options),
        launch_templates.new_versions_keep_their_user_data,
        launch_templates.prices_come_back_as_numbers,
        launch_templates.template_tags_set_later_are_shown,
        launch_templates.template_tags_stay_out_of_the_data,
        launch_templates.tags_of_a_template_change,
        launch_templates.versions_can_be_deleted,
        instances.images_have_a_root_volume,
        instances.the_root_volume_is_the_images_own,
        instances.templates_set_network_profile_and_metadata,
        instances.network_interfaces_die_with_their_instance,
        instances.private_dns_names_follow_the_subnet,
        ipv6.instances_describe_their_ipv6_address,
        ipv6.interfaces_take_ranges_of_ipv6_addresses,
        instances.topology_is_described_for_types_that_have_one,
        partial(instances.termination_takes_a_while, options),
        partial(machines.instances_wait_for_their_machine, options),
        partial(machines.volumes_wait_for_their_machine, options),
        machines.consoles_say_what_machines_say,
        partial(scaling.instances_are_launched_as_the_template_says, options),
        scaling.instances_remember_the_version_they_were_launched_from,
        scaling.capacity_follows_what_is_asked,
        scaling.a_terminated_member_is_replaced,
        partial(scaling.a_detached_member_leaves_slowly, options),
        partial(hooks.lifecycle_actions_are_completed, options),
        partial(warm_pools.warm_pools_have_instances, options),
        lifecycle.scaling_activities_are_described,
        partial(visibility.what_is_made_is_seen_late, options),
        partial(autoscaling.groups_name_what_exists, options),
        autoscaling.a_deleted_target_group_stops_nothing,
        autoscaling.sizes_are_checked,
        autoscaling.unknown_groups_are_refused,
        autoscaling.a_group_with_instances_stays,
        group_fields.a_mixed_instances_policy_stays,
        group_fields.settings_are_kept,
        group_fields.metrics_are_enabled_and_disabled,
        group_fields.resumed_processes_catch_up,
        group_fields.lifecycle_hooks_say_what_they_were_told,
        autoscaling.group_names_are_unique,
        load_balancers.network_load_balancers_are_named_as_such,
        partial(load_balancers.balancers_have_interfaces, options),
        load_balancers.subnets_of_a_balancer_change,
        load_balancers.balancers_need_what_they_name,
        partial(load_balancers.balancers_become_active, options),
        load_balancers.creating_a_balancer_twice_makes_one,
        load_balancers.load_balancing_has_aws_limits_of_tags,
        target_groups.health_checks_are_checked,
        target_groups.creating_a_target_group_twice_makes_one,
        target_groups.creating_a_listener_twice_makes_one,
        target_groups.target_groups_know_their_balancers,
        target_groups.network_target_groups_have_their_attributes,
        target_groups.listeners_describe_what_they_have,
        partial(target_health.targets_have_the_health_that_is_reported, options),
        route53.a_caller_reference_is_used_once,
        route53.a_zone_with_a_vpc_is_private,
        route53.soa_records_are_text,
        route53.change_batches_are_strict,
        route53.zone_associations_are_checked,
        s3.sha256_checksums_are_verified,
        s3.the_expected_owner_has_to_own_the_bucket,
        s3.versioning_is_described_as_such,
        web_identity.tokens_are_verified,
        web_identity.audiences_of_a_provider_change,
        web_identity.public_objects_need_access_control_lists,
        web_identity.strangers_read_what_is_public,
        web_identity.an_issuers_configuration_is_an_object,
        s3.etags_say_nothing_of_what_kms_keys_encrypt,
        partial(queues.a_policy_is_seen_late, options),
        partial(queues.waiting_for_messages_holds_nobody_up, options),
        partial(event_rules.a_rule_keeps_its_targets_for_a_while, options),
        event_rules.a_queues_policy_says_which_rules_send_to_it,
        iam.an_unknown_profile_is_invalid,
        iam.inline_policies_of_a_role_add_up,
        iam.policies_of_aws_exist,
        requests.client_tokens_make_creates_idempotent,
        requests.descriptions_come_in_pages,
    ]
