//! The OIDC provider of the cluster: through it AWS trusts tokens of service accounts. AWS names it after the issuer, so those of the issuers
//! that the cluster has had are asked for.

use super::ec2::is_owned;
use super::iam_documents::{read_tags, write_tags};
use super::{
    Found, Have, Verbs, after_effect, created_ready, not_ours, observed_item, rfc3339_time,
};
use crate::names::TagChanges;
use crate::world::AwsWorld;
use aws_client::failure::{Classify, none_if_absent, require_answer};
use aws_sdk_iam::operation::get_open_id_connect_provider::GetOpenIdConnectProviderOutput;
use cloud::{Cloud, IamOpenidConnectProvider};
use engine::{Failure, Observed, Put, Refs, Removed};
use futures::future::try_join_all;

const GET: &str = "iam:GetOpenIDConnectProvider";
const CREATE: &str = "iam:CreateOpenIDConnectProvider";

/// ARN, issuer and description of a provider.
pub(crate) struct Raw {
    arn: String,
    issuer: String,
    answer: GetOpenIdConnectProviderOutput,
}

/// Those of these issuers that AWS knows.
pub(crate) async fn fetch(world: &AwsWorld, issuers: &[String]) -> Result<Vec<Raw>, Failure> {
    let issuers = issuers.iter();
    let found = try_join_all(issuers.map(|issuer| fetch_one(world, issuer))).await?;
    let found = found.into_iter().flatten();
    Ok(found
        .filter(|raw| is_owned(world, &read_tags(raw.answer.tags())))
        .collect())
}

async fn fetch_one(world: &AwsWorld, issuer: &str) -> Result<Option<Raw>, Failure> {
    let arn = world.scope.oidc_provider_arn(issuer);
    let call = world.clients.iam.get_open_id_connect_provider();
    let answer = call.open_id_connect_provider_arn(&arn).send().await;
    let answer = none_if_absent(answer.classify_call(GET))?;
    Ok(answer.map(|answer| Raw {
        arn,
        issuer: issuer.to_owned(),
        answer,
    }))
}

pub(crate) fn observe(raw: &Raw) -> Observed<Cloud> {
    let sorted = |list: &[String]| {
        let mut list = list.to_vec();
        list.sort();
        list
    };
    let provider = IamOpenidConnectProvider {
        url: raw.issuer.clone(),
        client_id_list: sorted(raw.answer.client_id_list()),
        thumbprint_list: sorted(raw.answer.thumbprint_list()),
        tags: read_tags(raw.answer.tags()),
    };
    Observed {
        created: rfc3339_time(raw.answer.create_date()),
        ..observed_item(provider, &raw.arn)
    }
}

impl Verbs for IamOpenidConnectProvider {
    async fn find(world: &AwsWorld, want: &Self, _refs: &Refs) -> Found {
        match fetch_one(world, &want.url).await? {
            Some(raw) if !is_owned(world, &read_tags(raw.answer.tags())) => {
                let what = format!("the OIDC provider {}", want.url);
                Err(not_ours(world, GET, &what))
            }
            found => Ok(found.map(|raw| observe(&raw))),
        }
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        _refs: &Refs,
    ) -> Result<Put, Failure> {
        if let Some(have) = have {
            after_effect(update(world, have.physical, have.resource, want).await)?;
            return Ok(created_ready(have.physical));
        }
        let call = world
            .clients
            .iam
            .create_open_id_connect_provider()
            .url(&want.url)
            .set_client_id_list(Some(want.client_id_list.clone()))
            .set_thumbprint_list(Some(want.thumbprint_list.clone()))
            .set_tags(Some(write_tags(&want.tags)));
        let answer = call.send().await.classify_creation(CREATE)?;
        require_answer(answer.open_id_connect_provider_arn, CREATE).map(created_ready)
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let call = world.clients.iam.delete_open_id_connect_provider();
        let done = call
            .open_id_connect_provider_arn(have.physical)
            .send()
            .await;
        done.classify_call("iam:DeleteOpenIDConnectProvider")?;
        Ok(Removed::Done)
    }
}

async fn update(
    world: &AwsWorld,
    arn: &str,
    have: &IamOpenidConnectProvider,
    want: &IamOpenidConnectProvider,
) -> Result<(), Failure> {
    let iam = &world.clients.iam;
    let missing = |from: &[String], of: &[String]| {
        let missing = of.iter().filter(|one| !from.contains(one));
        missing.cloned().collect::<Vec<_>>()
    };
    for audience in missing(&have.client_id_list, &want.client_id_list) {
        let call = iam.add_client_id_to_open_id_connect_provider();
        let call = call.open_id_connect_provider_arn(arn).client_id(audience);
        let done = call.send().await;
        done.classify_call("iam:AddClientIDToOpenIDConnectProvider")?;
    }
    for audience in missing(&want.client_id_list, &have.client_id_list) {
        let call = iam.remove_client_id_from_open_id_connect_provider();
        let call = call.open_id_connect_provider_arn(arn).client_id(audience);
        let done = call.send().await;
        done.classify_call("iam:RemoveClientIDFromOpenIDConnectProvider")?;
    }
    if have.thumbprint_list != want.thumbprint_list {
        let call = iam.update_open_id_connect_provider_thumbprint();
        let call = call
            .open_id_connect_provider_arn(arn)
            .set_thumbprint_list(Some(want.thumbprint_list.clone()));
        let done = call.send().await;
        done.classify_call("iam:UpdateOpenIDConnectProviderThumbprint")?;
    }
    let changes = TagChanges::tag_changes_between(&have.tags, &want.tags);
    if !changes.set.is_empty() {
        let call = iam
            .tag_open_id_connect_provider()
            .open_id_connect_provider_arn(arn);
        let done = call.set_tags(Some(write_tags(&changes.set))).send().await;
        done.classify_call("iam:TagOpenIDConnectProvider")?;
    }
    if !changes.unset.is_empty() {
        let call = iam
            .untag_open_id_connect_provider()
            .open_id_connect_provider_arn(arn);
        let done = call.set_tag_keys(Some(changes.unset)).send().await;
        done.classify_call("iam:UntagOpenIDConnectProvider")?;
    }
    Ok(())
}
