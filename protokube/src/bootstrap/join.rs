//! Joining: a machine that is known gets its group's NodeConfig, and certificates for its own keys.

use super::Context;
use super::caller::Known;
use super::endpoint::{Cause, Endpoint};
use super::reject::Rejection;
use anyhow::{Context as _, anyhow};
use aws_client::store::{Expect, StoreError};
use node::bootstrap::{
    Asked, Certificate, FORMAT, Join, Joined, KeyRecord, Keys, Refusal, asked, echo,
    key_record_key, keys, leaf,
};
use node::config::{Role, node_config_key, read_node_config};
use node::pki;
use node::report::Status;
use node::secret::{DOCKER_CONFIG, Secret, read_stored, stored_path};
use std::collections::BTreeMap;

/// Answers one request.
pub(super) async fn join(
    endpoint: &Endpoint,
    known: &Known,
    body: &[u8],
) -> Result<Joined, Rejection> {
    let joined = admit(&endpoint.context, known, body).await;
    let joined = joined.map_err(|rejection| rejection.of(&known.instance))?;
    let names: Vec<String> = joined
        .certificates
        .keys()
        .map(|one| format!("{one:?}"))
        .collect();
    let detail = format!(
        "joined {}, with certificates: {}",
        known.group,
        names.join(", ")
    );
    let cause = Cause::Joined(known.instance.clone());
    let lines = &endpoint.lines;
    lines.say(cause, Status::Finished, Some(&known.instance), &detail);
    Ok(joined)
}

async fn admit(context: &Context, known: &Known, body: &[u8]) -> Result<Joined, Rejection> {
    let join = read(body)?;
    if join.group != known.group {
        return Err(Rejection::from(Refusal::OtherGroup {
            own: known.group.clone(),
            asked: echo(&join.group),
        }));
    }
    // The key of kubelet says that it is the machine itself, not a pod on it: without, there is nothing.
    if !join.requests.contains_key(&Certificate::Kubelet) {
        return Err(Rejection::from(Refusal::Request {
            why: "asks for no certificate of kubelet's".to_owned(),
        }));
    }
    let (node_config, wants_docker_config) = node_config(context, &join).await?;
    let docker_config = match wants_docker_config {
        true => Some(docker_config(context).await?),
        false => None,
    };
    let asked = asked(&join.requests, &known.instance)?;
    let certificates = sign(context, &asked, &known.instance)?;
    record(context, &known.instance, &keys(&asked)).await?;
    Ok(Joined {
        format: FORMAT,
        node_config,
        certificates,
        docker_config,
    })
}

/// Workers read no secret of the store themselves: it comes with their certificates, and to nobody else.
async fn docker_config(context: &Context) -> Result<Secret, Rejection> {
    let key = stored_path(DOCKER_CONFIG);
    let object = context.store.get(&key).await;
    let object = object.map_err(|error| store(&error.into()))?;
    let text = object.and_then(|object| String::from_utf8(object.bytes).ok());
    text.as_deref().and_then(read_stored).ok_or_else(|| {
        let error = anyhow!(
            "{key} is not in it, or no secret as kctl create secret {DOCKER_CONFIG} writes it"
        );
        store(&error)
    })
}

fn read(body: &[u8]) -> Result<Join, Refusal> {
    let wrong = |why: String| Refusal::Request { why };
    let join: Join = serde_json::from_slice(body)
        .map_err(|error| wrong(format!("is not one to join: {}", echo(&error.to_string()))))?;
    if join.format != FORMAT {
        return Err(wrong(format!(
            "has format {}, this release knows {FORMAT}",
            join.format
        )));
    }
    Ok(join)
}

/// NodeConfig's text, if a group of nodes has it under that hash; and whether it goes with passwords of registries.
async fn node_config(context: &Context, join: &Join) -> Result<(String, bool), Rejection> {
    let unknown = || Refusal::UnknownNodeConfig {
        group: join.group.clone(),
        sha256: join.node_config.clone(),
    };
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if join.node_config.len() != 64 || !join.node_config.bytes().all(hex) {
        return Err(Rejection::from(Refusal::Request {
            why: "names a NodeConfig by what is no sha256".to_owned(),
        }));
    }
    let key = node_config_key(Role::Node, &join.group, &join.node_config);
    let object = context.store.get(&key).await;
    let object = object.map_err(|error| store(&error.into()))?;
    let object = object.ok_or_else(unknown)?;
    let text = String::from_utf8(object.bytes).context("it is not text");
    let text = text.map_err(|error| broken(&key, unknown(), &error))?;
    let config = read_node_config(&text, &join.node_config);
    let config = config.map_err(|error| broken(&key, unknown(), &error.into()))?;
    if config.cluster != context.cluster || config.group != join.group || config.role != Role::Node
    {
        return Err(Rejection::from(unknown()));
    }
    Ok((text, config.docker_config))
}

fn broken(key: &str, refusal: Refusal, error: &anyhow::Error) -> Rejection {
    Rejection::because(refusal, format!("{key}: {error:#}"))
}

/// The certificates, before anything is recorded: a request that cannot be signed leaves no trace.
fn sign(
    context: &Context,
    asked: &BTreeMap<Certificate, Asked>,
    instance: &str,
) -> Result<BTreeMap<Certificate, String>, Rejection> {
    let now = (context.clock)();
    let one = |(certificate, asked): (&Certificate, &Asked)| {
        let leaf = leaf(*certificate, instance, context.signing);
        let signed = pki::sign(&context.authority, &asked.request, &leaf, now)
            .with_context(|| format!("could not sign for {}", leaf.common_name));
        let signed = signed.map_err(|error| Rejection::unavailable("the authority", &error))?;
        Ok((*certificate, signed))
    };
    asked.iter().map(one).collect()
}

/// Records the keys, if they are new ones. Whoever has the recorded key of kubelet is the machine that joined with it; another
/// one is certified only while there is no Node: pods in the host's network, which reach the role's credentials too, run on
/// Nodes only, also on those that are not ready. The write is conditional: of two requests at
/// once, also to two control planes, one has to ask again.
async fn record(context: &Context, instance: &str, keys: &Keys) -> Result<(), Rejection> {
    let key = key_record_key(instance);
    let before = context.store.get(&key).await;
    let before = before.map_err(|error| store(&error.into()))?;
    // A record that cannot be read is none: then every key is a new one.
    let read = before
        .as_ref()
        .and_then(|object| serde_json::from_slice::<KeyRecord>(&object.bytes).ok());
    let Some(after) = KeyRecord::with(read.as_ref(), keys) else {
        return Ok(());
    };
    if !read.is_some_and(|record| record.has_kubelet_of(keys)) {
        let exists = context.nodes.exists(instance).await;
        if exists.map_err(|error| Rejection::unavailable("the API server", &error))? {
            return Err(Rejection::from(Refusal::NewKey {
                node: instance.to_owned(),
            }));
        }
    }
    let bytes = serde_json::to_vec(&after).map_err(|error| store(&error.into()))?;
    let expect = before.map_or(Expect::Absent, |object| Expect::Version(object.version));
    match context.store.put(&key, bytes, expect).await {
        Ok(_) => Ok(()),
        Err(StoreError::Conflict { .. }) => Err(Rejection::from(Refusal::Busy)),
        Err(error) => Err(store(&error.into())),
    }
}

fn store(error: &anyhow::Error) -> Rejection {
    Rejection::unavailable("the state store", error)
}
