//! Which VPCs look names up in a private hosted zone. An association has no tags: that of the cluster's own VPC is
//! the cluster's; that of a VPC of the user's is made where it is wanted and lacks, and stays.

use super::{Have, Verbs, expected, item, made, physical, same};
use crate::names::Names;
use crate::world::AwsWorld;
use aws_client::failure::{Classify, absent, own};
use aws_sdk_route53::types::{self, VpcRegion};
use cloud::{Cloud, Kind, Route53ZoneAssociation, Vpc};
use engine::{Class, Failure, Observed, Put, Ref, Refs, Removed};

const ASSOCIATE: &str = "route53:AssociateVPCWithHostedZone";

/// The VPCs of the cluster's zone; of a public one none. Not asked where nobody would want to know.
pub(crate) async fn fetch(world: &AwsWorld) -> Result<Vec<types::Vpc>, Failure> {
    let wanted = expected::<Route53ZoneAssociation>(world).next().is_some();
    match &world.scope.hosted_zone {
        Some(zone) if wanted || world.scope.deleting() => list(world, zone).await,
        _ => Ok(Vec::new()),
    }
}

async fn list(world: &AwsWorld, zone: &str) -> Result<Vec<types::Vpc>, Failure> {
    let call = world.clients.route53.get_hosted_zone().id(zone).send();
    let found = absent(call.await.called("route53:GetHostedZone"))?;
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
        || expected::<Route53ZoneAssociation>(world).any(|wanted| wanted.vpc_id == vpc_id);
    if matches!(vpc_id, Ref::Given(_)) && !as_wanted() {
        return None;
    }
    let association = Route53ZoneAssociation {
        name: world.scope.cluster.clone(),
        vpc_id,
        vpc_region: raw.vpc_region()?.as_str().to_owned(),
        hosted_zone_id: zone.clone(),
    };
    let mut seen = item(association, format!("{zone}/{}", raw.vpc_id()?));
    seen.uses.extend(raw.vpc_id.clone());
    Some(seen)
}

fn vpc(id: &str, region: &str) -> types::Vpc {
    let vpc = types::Vpc::builder().vpc_id(id);
    vpc.vpc_region(VpcRegion::from(region)).build()
}

impl Verbs for Route53ZoneAssociation {
    async fn find(
        world: &AwsWorld,
        want: &Self,
        refs: &Refs,
    ) -> Result<Option<Observed<Cloud>>, Failure> {
        let names = Names::around(&want.refs(), refs);
        let found = list(world, &want.hosted_zone_id).await?;
        Ok(same(
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
        let done = made(format!("{zone}/{id}"));
        if have.is_some() {
            return Ok(done);
        }
        let call = world.clients.route53.associate_vpc_with_hosted_zone();
        let call = call.hosted_zone_id(zone).vpc(vpc(&id, &want.vpc_region));
        match call.send().await.creating(ASSOCIATE) {
            Ok(_) => Ok(done),
            // Said both of this zone, and of another of the same name.
            Err(failure) if failure.code == "ConflictingDomainExists" => {
                let there = list(world, zone).await?;
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
            return Err(own(Class::Invalid, CALL, "its id is not ZONE/VPC"));
        };
        let call = world.clients.route53.disassociate_vpc_from_hosted_zone();
        let call = call.hosted_zone_id(zone);
        let call = call.vpc(vpc(id, &have.resource.vpc_region));
        match call.send().await.called(CALL) {
            Err(failure) if failure.code != "LastVPCAssociation" => Err(failure),
            _ => Ok(Removed::Done),
        }
    }
}

fn with_hint(mut failure: Failure, hint: &str) -> Failure {
    failure.hint = Some(hint.to_owned());
    failure
}
