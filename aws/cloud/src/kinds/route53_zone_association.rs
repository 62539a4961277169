//! Which VPCs look names up in a private hosted zone. An association has no tags: that of the cluster's own VPC is
//! the cluster's; that of a VPC of the user's is made where it is wanted and lacks, and stays.

use super::{
    Found, Have, Verbs, created_ready, desired_of_kind, find_same, observed_item, physical,
};
use crate::names::Names;
use crate::world::AwsWorld;
use aws_client::failure::{Classify, local_failure, none_if_absent};
use aws_sdk_route53::types::{self, VpcRegion};
use cloud::{Cloud, Kind, Route53ZoneAssociation, Vpc};
use engine::{Class, Failure, Observed, Put, Ref, Refs, Removed};

const ASSOCIATE: &str = "route53:AssociateVPCWithHostedZone";

/// The VPCs of the cluster's zone; of a public one none. Not asked where nobody would want to know.
pub(crate) async fn fetch(world: &AwsWorld) -> Result<Vec<types::Vpc>, Failure> {
    let wanted = desired_of_kind::<Route53ZoneAssociation>(world)
        .next()
        .is_some();
    match &world.scope.hosted_zone {
        Some(zone) if wanted || world.scope.is_deletion() => list_vpcs(world, zone).await,
        _ => Ok(Vec::new()),
    }
}

async fn list_vpcs(world: &AwsWorld, zone: &str) -> Result<Vec<types::Vpc>, Failure> {
    let call = world.clients.route53.get_hosted_zone().id(zone).send();
    let found = none_if_absent(call.await.classify_call("route53:GetHostedZone"))?;
    Ok(found.and_then(|found| found.vpcs).unwrap_or_default())
}

pub(crate) fn observe(
    world: &AwsWorld,
    raw: &types::Vpc,
    names: &Names,
) -> Option<Observed<Cloud>> {
    let zone = world.scope.hosted_zone.clone()?;
    let vpc_id = names.reference::<Vpc>(raw.vpc_id()?);
    let as_wanted =
        || desired_of_kind::<Route53ZoneAssociation>(world).any(|wanted| wanted.vpc_id == vpc_id);
    if matches!(vpc_id, Ref::Given(_)) && !as_wanted() {
        return None;
    }
    let association = Route53ZoneAssociation {
        name: world.scope.cluster.clone(),
        vpc_id,
        vpc_region: raw.vpc_region()?.as_str().to_owned(),
        hosted_zone_id: zone.clone(),
    };
    let mut seen = observed_item(association, format!("{zone}/{}", raw.vpc_id()?));
    seen.uses.extend(raw.vpc_id.clone());
    Some(seen)
}

fn vpc_request(id: &str, region: &str) -> types::Vpc {
    let request = types::Vpc::builder().vpc_id(id);
    request.vpc_region(VpcRegion::from(region)).build()
}

impl Verbs for Route53ZoneAssociation {
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found {
        let names = Names::for_references(&want.refs(), refs);
        let found = list_vpcs(world, &want.hosted_zone_id).await?;
        Ok(find_same(
            found.iter().filter_map(|raw| observe(world, raw, &names)),
            &want.id(),
        ))
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        let id = physical(refs, &want.vpc_id, ASSOCIATE)?;
        let zone = &want.hosted_zone_id;
        let done = created_ready(format!("{zone}/{id}"));
        if have.is_some() {
            return Ok(done);
        }
        let call = world.clients.route53.associate_vpc_with_hosted_zone();
        let call = call
            .hosted_zone_id(zone)
            .vpc(vpc_request(&id, &want.vpc_region));
        match call.send().await.classify_creation(ASSOCIATE) {
            Ok(_) => Ok(done),
            // Said both of this zone, and of another of the same name.
            Err(failure) if failure.code == "ConflictingDomainExists" => {
                let there = list_vpcs(world, zone).await?;
                if there.iter().any(|one| one.vpc_id() == Some(&id)) {
                    return Ok(done);
                }
                Err(with_hint(
                    failure,
                    "the VPC is associated with another hosted zone of that name: disassociate it, or name that zone in spec.dnsZone",
                ))
            }
            Err(failure) if failure.code == "PublicZoneVPCAssociation" => Err(with_hint(
                failure,
                "name a private hosted zone in spec.dnsZone, or use topology.dns.type Public",
            )),
            Err(failure) => Err(failure),
        }
    }

    /// A private zone keeps its last VPC: the association goes with the VPC then.
    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        const CALL: &str = "route53:DisassociateVPCFromHostedZone";
        let Some((zone, id)) = have.physical.split_once('/') else {
            return Err(local_failure(
                Class::Invalid,
                CALL,
                "its id is not ZONE/VPC",
            ));
        };
        let call = world.clients.route53.disassociate_vpc_from_hosted_zone();
        let call = call.hosted_zone_id(zone);
        let call = call.vpc(vpc_request(id, &have.resource.vpc_region));
        match call.send().await.classify_call(CALL) {
            Err(failure) if failure.code != "LastVPCAssociation" => Err(failure),
            _ => Ok(Removed::Done),
        }
    }
}

fn with_hint(mut failure: Failure, hint: &str) -> Failure {
    failure.hint = Some(hint.to_owned());
    failure
}
