//! One file for each kind (or for kinds that AWS answers together), all in the same order: `fetch` asks AWS,
//! `observe` reads an answer (pure), then the verbs `find`, `put`, `remove`, and `ready` and `gone` where there
//! is something to wait for.

pub(crate) mod autoscaling;
pub(crate) mod autoscaling_group;
pub(crate) mod autoscaling_group_update;
pub(crate) mod blockers;
mod controllers;
pub(crate) mod dhcp_options;
pub(crate) mod discovery_document;
pub(crate) mod ebs_volume;
pub(crate) mod ec2;
pub(crate) mod egress_only_internet_gateway;
pub(crate) mod eip;
pub(crate) mod event_rule;
pub(crate) mod event_target;
pub(crate) mod iam_documents;
pub(crate) mod iam_instance_profile;
pub(crate) mod iam_openid_connect_provider;
pub(crate) mod iam_policies;
pub(crate) mod iam_policy_names;
pub(crate) mod iam_role;
pub(crate) mod internet_gateway;
pub(crate) mod key_pair;
pub(crate) mod launch_template;
pub(crate) mod launch_template_data;
pub(crate) mod launch_template_versions;
pub(crate) mod lb;
pub(crate) mod lb_addresses;
pub(crate) mod lb_listener;
pub(crate) mod lb_tags;
pub(crate) mod lb_target_group;
pub(crate) mod lifecycle_hook;
mod mixed_instances;
pub(crate) mod nat_gateway;
pub(crate) mod route;
pub(crate) mod route53_record;
pub(crate) mod route53_zone_association;
pub(crate) mod route_table;
pub(crate) mod s3_object;
pub(crate) mod security_group;
pub(crate) mod security_group_rule;
pub(crate) mod sqs_queue;
pub(crate) mod subnet;
pub(crate) mod vpc;
pub(crate) mod vpc_cidr;
pub(crate) mod vpc_endpoint;
pub(crate) mod warm_pool;

use crate::world::AwsWorld;
use aws_client::failure::local_failure;
use cloud::{Cloud, Kind, match_kind};
use engine::{Attrs, Class, Failure, Id, Observed, Put, Ref, Refs, Removed, Resource};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// An object as it was found, in the type of its kind.
pub(crate) struct Have<'a, K> {
    pub(crate) resource: &'a K,
    pub(crate) physical: &'a str,
    pub(crate) attrs: &'a Attrs,
}

/// An object that AWS has, or none.
pub(crate) type Found = Result<Option<Observed<Cloud>>, Failure>;

/// What can be done with objects of a kind. The contract is that of [`engine::World`].
pub(crate) trait Verbs: Kind {
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found;

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        refs: &Refs,
    ) -> Result<Put, Failure>;

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure>;

    async fn ready(_world: &AwsWorld, _want: &Self, physical: &str) -> Result<Put, Failure> {
        Ok(created_ready(physical))
    }

    async fn gone(_world: &AwsWorld, _have: Have<'_, Self>) -> Result<Removed, Failure> {
        Ok(Removed::Done)
    }
}

impl<'a, K: Kind> Have<'a, K> {
    fn from_observed(observed: &'a Observed<Cloud>) -> Option<Self> {
        Some(Self {
            resource: K::of(&observed.resource)?,
            physical: &observed.physical,
            attrs: &observed.attrs,
        })
    }
}

// Each verb for whichever kind an object is of. On the heap: together the requests of all kinds are more than a stack holds.

pub(crate) async fn find(world: &AwsWorld, want: &Cloud, refs: &Refs) -> Found {
    match_kind!(want, want => Box::pin(Verbs::find(world, want, refs)).await)
}

pub(crate) async fn put(
    world: &AwsWorld,
    want: &Cloud,
    have: Option<&Observed<Cloud>>,
    refs: &Refs,
) -> Result<Put, Failure> {
    match_kind!(want, want => Box::pin(Verbs::put(world, want, have.and_then(Have::from_observed), refs)).await)
}

pub(crate) async fn remove(world: &AwsWorld, have: &Observed<Cloud>) -> Result<Removed, Failure> {
    let Observed {
        resource,
        physical,
        attrs,
        ..
    } = have;
    match_kind!(resource, resource => {
        Box::pin(Verbs::remove(world, Have { resource, physical, attrs })).await
    })
}

pub(crate) async fn ready(world: &AwsWorld, want: &Cloud, physical: &str) -> Result<Put, Failure> {
    match_kind!(want, want => Box::pin(Verbs::ready(world, want, physical)).await)
}

pub(crate) async fn gone(world: &AwsWorld, have: &Observed<Cloud>) -> Result<Removed, Failure> {
    let Observed {
        resource,
        physical,
        attrs,
        ..
    } = have;
    match_kind!(resource, resource => {
        Box::pin(Verbs::gone(world, Have { resource, physical, attrs })).await
    })
}

/// What the spec wants of that kind.
pub(crate) fn desired_of_kind<'a, K: Kind + 'a>(
    world: &'a AwsWorld,
) -> impl Iterator<Item = &'a K> {
    world.scope.expect.iter().filter_map(K::of)
}

/// What the spec wants of that kind under that name.
pub(crate) fn desired_by_name<'a, K: Kind + 'a>(world: &'a AwsWorld, name: &str) -> Option<&'a K> {
    K::of(world.find_desired(&Id::new(K::TYPE, name))?)
}

/// An object as observed, without attributes.
pub(crate) fn observed_item(
    resource: impl Into<Cloud>,
    physical: impl Into<String>,
) -> Observed<Cloud> {
    Observed {
        resource: resource.into(),
        physical: physical.into(),
        attrs: Attrs::new(),
        created: None,
        uses: BTreeSet::new(),
        in_use: false,
    }
}

/// When AWS made something, in RFC 3339.
pub(crate) fn rfc3339_time(at: Option<&aws_smithy_types::DateTime>) -> Option<String> {
    at.and_then(|at| at.fmt(aws_smithy_types::date_time::Format::DateTime).ok())
}

/// The one of these that `want` would be.
pub(crate) fn find_same(
    items: impl IntoIterator<Item = Observed<Cloud>>,
    want: &Id,
) -> Option<Observed<Cloud>> {
    items.into_iter().find(|item| item.resource.id() == *want)
}

pub(crate) fn created_ready(physical: impl Into<String>) -> Put {
    Put {
        physical: physical.into(),
        attrs: Attrs::new(),
        waiting_for: None,
    }
}

/// The physical id behind a reference that a call needs.
pub(crate) fn physical(refs: &Refs, of: &Ref, call: &str) -> Result<String, Failure> {
    refs.physical(of).ok_or_else(|| {
        let what = of.id().map_or_else(String::new, |id| id.to_string());
        local_failure(Class::Invalid, call, format!("{what} does not exist"))
    })
}

/// The physical ids behind several references.
pub(crate) fn physical_ids<'a>(
    refs: &Refs,
    of: impl IntoIterator<Item = &'a Ref>,
    call: &str,
) -> Result<Vec<String>, Failure> {
    of.into_iter()
        .map(|one| physical(refs, one, call))
        .collect()
}

/// After the first effect of a put that takes several calls: what is there must be looked at first.
pub(crate) fn after_effect<T>(result: Result<T, Failure>) -> Result<T, Failure> {
    result.map_err(|failure| Failure {
        class: Class::Unknown,
        ..failure
    })
}

/// The name is taken by something that does not carry the cluster's tag.
pub(crate) fn not_ours(world: &AwsWorld, call: &str, what: &str) -> Failure {
    let mut failure = local_failure(
        Class::Invalid,
        call,
        format!(
            "{what} exists and does not belong to {}: it lacks the tag {}=owned",
            world.scope.cluster,
            world.scope.owned_tag()
        ),
    );
    failure.hint = Some("remove or rename it, or give the cluster another name".to_owned());
    failure
}

/// A client token: the same when an interrupted run is repeated, another once the object was made and removed.
pub(crate) fn client_token(world: &AwsWorld, id: &Id, of: &[&str]) -> String {
    let scope = &world.scope;
    let parts = [
        scope.account.as_str(),
        &scope.region,
        &scope.cluster,
        &scope.generation,
        &id.to_string(),
    ];
    let mut digest = Sha256::new();
    for part in parts.iter().chain(of) {
        digest.update(part.as_bytes());
        digest.update([0]);
    }
    let mut token = node::digest::to_hex(&digest.finalize());
    token.truncate(40);
    token
}
