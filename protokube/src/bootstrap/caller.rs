//! Who asks: the checks from the identity header to the instance's tags, in this order, each before anybody is asked
//! anything that it makes needless.

use super::Context;
use super::endpoint::Endpoint;
use super::instances::Instances;
use super::reject::Rejection;
use anyhow::Context as _;
use model::api::Object;
use model::bootstrap::{
    Caller, Expected, Refusal, Seen, authorities, check_binding, check_instance, check_role, echo,
    machine, signed_identity,
};
use model::engine::{Class, Failure};
use model::read::{ReadOptions, read_documents_with};
use std::collections::BTreeMap;
use std::time::Duration;

/// Who does not come to ask STS within this asks again.
const TURN: Duration = Duration::from_secs(10);

/// A machine of this cluster's that runs.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) instance: String,
    pub(super) group: String,
}

/// The machine whose signature `header` holds, if it signed this request.
pub(super) async fn identify(
    endpoint: &Endpoint,
    header: Option<&str>,
    body: &[u8],
) -> Result<Known, Rejection> {
    let context = &*endpoint.context;
    let identity = signed_identity(header)?;
    let sts_host = sts_host(context)?;
    let expected = Expected {
        body,
        cluster: &context.cluster,
        authorities: &authorities(&context.trust_bundle, &context.authority),
        sts_host: &sts_host,
        now: (context.clock)(),
    };
    check_binding(&identity, &expected)?;
    let caller = ask_sts(endpoint, &identity.headers).await?;
    let group = belongs(context, &endpoint.instances, &caller).await;
    let group = group.map_err(|rejection| rejection.of(&caller.instance))?;
    Ok(Known {
        instance: caller.instance,
        group,
    })
}

/// The host that a signature for our region's STS names.
fn sts_host(context: &Context) -> Result<String, Rejection> {
    let host = |url: &str| {
        let url = reqwest::Url::parse(url)?;
        let host = url
            .host_str()
            .with_context(|| format!("{url} has no host"))?;
        Ok(match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        })
    };
    let found = host(&context.machine.endpoint("sts"));
    found.map_err(|error: anyhow::Error| Rejection::unavailable("STS", &error))
}

async fn ask_sts(
    endpoint: &Endpoint,
    headers: &BTreeMap<String, String>,
) -> Result<Caller, Rejection> {
    let context = &endpoint.context;
    let turn = tokio::time::timeout(TURN, endpoint.sts.acquire()).await;
    let Ok(Ok(_turn)) = turn else {
        return Err(Rejection::from(Refusal::Busy));
    };
    let caller = context.machine.identify(headers).await;
    let caller = caller.map_err(|failure| match failure.class {
        Class::Throttled | Class::Unknown => {
            Rejection::because(Refusal::Unavailable { what: "STS" }, said(&failure))
        }
        _ => Rejection::from(Refusal::Unconfirmed {
            code: echo(&failure.code),
        }),
    })?;
    Ok(machine(&caller.account, &caller.arn, &context.account)?)
}

/// STS' code alone where there is one: its message quotes what was signed, and with it the caller's session token.
fn said(failure: &Failure) -> String {
    if failure.code.is_empty() {
        failure.to_string()
    } else {
        format!("{} failed with {}", failure.call, failure.code)
    }
}

/// The group that the caller's instance belongs to.
async fn belongs(
    context: &Context,
    instances: &Instances,
    caller: &Caller,
) -> Result<String, Rejection> {
    let found = instances.find(&caller.instance).await;
    let found = found.map_err(|error| Rejection::unavailable("EC2", &error))?;
    let seen = found.as_ref().map(|instance| Seen {
        state: &instance.state,
        tags: &instance.tags,
    });
    let group = check_instance(&caller.instance, seen, &context.cluster)?;
    if check_role(&caller.role, &context.cluster, None).is_err() {
        let profile = profile(context, group).await;
        let profile = profile.map_err(|error| Rejection::unavailable("the state store", &error))?;
        check_role(&caller.role, &context.cluster, profile.as_deref())?;
    }
    Ok(group.to_owned())
}

/// The instance profile that the group's spec names, if it names one: the last part of its ARN.
async fn profile(context: &Context, group: &str) -> anyhow::Result<Option<String>> {
    let key = format!("instancegroup/{group}");
    let Some(object) = context.store.get(&key).await? else {
        return Ok(None);
    };
    let text = String::from_utf8(object.bytes).with_context(|| format!("{key} is not text"))?;
    let options = ReadOptions {
        allow_unsupported: true,
    };
    let Ok(documents) = read_documents_with(&key, &text, options) else {
        anyhow::bail!("{key} cannot be read: see kctl get ig {group}");
    };
    let profiles = documents
        .iter()
        .filter_map(|document| match &document.object {
            Object::InstanceGroup(group) => group.spec.iam.as_ref()?.profile.as_deref(),
            _ => None,
        });
    let mut names = profiles.filter_map(|arn| arn.rsplit('/').next());
    Ok(names.next().map(str::to_owned))
}
