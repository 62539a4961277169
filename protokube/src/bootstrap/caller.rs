//! Who asks: the checks from the identity header to the instance's tags, in this order, each before anybody is asked
//! anything that it makes needless.

use super::Context;
use super::endpoint::Endpoint;
use super::instances::Instances;
use super::reject::Rejection;
use anyhow::Context as _;
use engine::{Class, Failure};
use node::bootstrap::{
    Caller, Expected, Refusal, Seen, authorities, check_binding, check_instance, check_role, echo,
    machine, signed_identity,
};
use node::config::{Role, newest_node_config_key, read_newest_node_config};
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
    let turn = endpoint.turns.take(&caller.instance);
    turn.map_err(|refusal| Rejection::from(refusal).of(&caller.instance))?;
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
        let own = own_role(context, group).await;
        let own = own.map_err(|error| Rejection::unavailable("the state store", &error))?;
        check_role(&caller.role, &context.cluster, own.as_deref())?;
    }
    Ok(group.to_owned())
}

/// The role in the group's own instance profile, if it has one, as the last update found it in IAM.
async fn own_role(context: &Context, group: &str) -> anyhow::Result<Option<String>> {
    let key = newest_node_config_key(Role::Node, group);
    let Some(object) = context.store.get(&key).await? else {
        return Ok(None);
    };
    let text = String::from_utf8(object.bytes).with_context(|| format!("{key} is not text"))?;
    let config = read_newest_node_config(&text);
    let config = config.with_context(|| format!("{key} cannot be read: run kctl update"))?;
    Ok(config.iam_role)
}
