//! Identifies a caller: from the identity header to the instance's tags. Cheap checks come first, so that invalid requests cause no
//! calls of AWS.

use super::EndpointContext;
use super::connections::ConnectionSlot;
use super::instances::InstanceLookup;
use super::reject::Rejection;
use super::shared_state::SharedState;
use anyhow::Context as _;
use engine::{Class, Failure};
use node::bootstrap::{
    Caller, ExpectedBinding, Refusal, SeenInstance, check_binding, check_instance, check_role,
    identify_caller, parse_identity, trusted_bundle_digests, untrusted_excerpt,
};
use node::config::{Role, newest_node_config_key, read_newest_node_config};
use std::collections::BTreeMap;
use std::time::Duration;

/// Longest wait for a call of STS; then the request is refused as busy.
const STS_WAIT: Duration = Duration::from_secs(10);

/// A running instance of this cluster.
#[derive(Debug)]
pub(super) struct KnownInstance {
    pub(super) instance: String,
    pub(super) group: String,
}

/// The instance that signed this request.
pub(super) async fn identify_instance(
    endpoint: &SharedState,
    place: &ConnectionSlot,
    header: Option<&str>,
    body: &[u8],
) -> Result<KnownInstance, Rejection> {
    let context = &*endpoint.context;
    let identity = parse_identity(header)?;
    let sts_host = sts_host(context)?;
    let authority = endpoint.current_authority().await;
    let expected = ExpectedBinding {
        body,
        cluster: &context.cluster,
        authorities: &trusted_bundle_digests(&context.trust_bundle, &authority),
        sts_host: &sts_host,
        now: (context.clock)(),
    };
    check_binding(&identity, &expected)?;
    let caller = ask_sts(endpoint, place, &identity.headers).await?;
    // Whoever may assume some role of the account chooses the session's name, but not the role of the instance that has this name.
    let admitted = endpoint
        .request_limiter
        .admit_request(&caller.role, &caller.instance);
    admitted.map_err(|refusal| Rejection::from(refusal).with_instance(&caller.instance))?;
    let group = check_group(context, &endpoint.instances, &caller).await;
    let group = group.map_err(|rejection| rejection.with_instance(&caller.instance))?;
    Ok(KnownInstance {
        instance: caller.instance,
        group,
    })
}

/// The STS host of this region, as it appears in signatures.
fn sts_host(context: &EndpointContext) -> Result<String, Rejection> {
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
    let found = host(&context.ec2.endpoint("sts"));
    found.map_err(|error: anyhow::Error| Rejection::unavailable("STS", &error))
}

async fn ask_sts(
    endpoint: &SharedState,
    place: &ConnectionSlot,
    headers: &BTreeMap<String, String>,
) -> Result<Caller, Rejection> {
    let context = &endpoint.context;
    let permit = tokio::time::timeout(STS_WAIT, endpoint.sts.acquire()).await;
    let Ok(Ok(_permit)) = permit else {
        return Err(Rejection::from(Refusal::Busy));
    };
    // It is not closed for others any more, unless STS refuses: EC2 is asked next.
    place.mark_asked(true);
    let caller = context.ec2.identify_caller(headers).await;
    place.mark_asked(caller.is_ok());
    let caller = caller.map_err(|failure| match failure.class {
        Class::Throttled | Class::Unknown => Rejection::with_cause(
            Refusal::Unavailable { what: "STS" },
            describe_failure(&failure),
        ),
        _ => Rejection::from(Refusal::Unconfirmed {
            code: untrusted_excerpt(&failure.code),
        }),
    })?;
    Ok(identify_caller(
        &caller.account,
        &caller.arn,
        &context.account,
    )?)
}

/// Describes a failure by its error code if there is one, because the message of STS quotes the caller's session token.
fn describe_failure(failure: &Failure) -> String {
    if failure.code.is_empty() {
        failure.to_string()
    } else {
        format!("{} failed with {}", failure.call, failure.code)
    }
}

/// Checks instance and role of a caller. Returns its instance group.
async fn check_group(
    context: &EndpointContext,
    instances: &InstanceLookup,
    caller: &Caller,
) -> Result<String, Rejection> {
    let found = instances.find_instance(&caller.instance).await;
    let found = found.map_err(|error| Rejection::unavailable("EC2", &error))?;
    let seen = found.as_ref().map(|instance| SeenInstance {
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

/// The role in the group's own instance profile, as of the last update; `None` if the group has none.
async fn own_role(context: &EndpointContext, group: &str) -> anyhow::Result<Option<String>> {
    let key = newest_node_config_key(Role::Node, group);
    let Some(object) = context.store.get(&key).await? else {
        return Ok(None);
    };
    let text = String::from_utf8(object.bytes).with_context(|| format!("{key} is not text"))?;
    let config = read_newest_node_config(&text);
    let config =
        config.with_context(|| format!("{key} cannot be parsed: run `kctl update --yes`"))?;
    Ok(config.iam_role)
}
