//! Handles joining: a confirmed instance gets its group's NodeConfig and certificates for its keys.

use super::EndpointContext;
use super::caller::KnownInstance;
use super::reject::Rejection;
use super::shared_state::{LineCause, SharedState};
use anyhow::{Context as _, anyhow};
use aws_client::store::{Expect, StoreError};
use node::bootstrap::{
    CertificateKind, CheckedRequest, FORMAT, JoinReply, JoinRequest, KeyDigests, KeyRecord,
    Refusal, certificate_leaf, check_requests, key_record_key, requested_keys, untrusted_excerpt,
};
use node::config::{NodeConfig, Role, node_config_key, read_node_config};
use node::pki::{self, Keyset};
use node::report::Status;
use node::secret::{DOCKER_CONFIG, Secret, read_stored, stored_path};
use std::collections::BTreeMap;

/// Handles a join request and logs its success.
pub(super) async fn answer_join(
    endpoint: &SharedState,
    known: &KnownInstance,
    body: &[u8],
) -> Result<JoinReply, Rejection> {
    let joined = admit_instance(endpoint, known, body).await;
    let joined = joined.map_err(|rejection| rejection.with_instance(&known.instance))?;
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
    let cause = LineCause::Joined(known.instance.clone());
    let lines = &endpoint.lines;
    lines.log_or_count(cause, Status::Finished, Some(&known.instance), &detail);
    Ok(joined)
}

async fn admit_instance(
    endpoint: &SharedState,
    known: &KnownInstance,
    body: &[u8],
) -> Result<JoinReply, Rejection> {
    let context = &*endpoint.context;
    let join = parse_join(body)?;
    if join.group != known.group {
        return Err(Rejection::from(Refusal::OtherGroup {
            own: known.group.clone(),
            asked: untrusted_excerpt(&join.group),
        }));
    }
    // kubelet's key proves that the caller is the instance and not a pod on it, so it is always required.
    if !join.requests.contains_key(&CertificateKind::Kubelet) {
        return Err(Rejection::from(Refusal::Request {
            why: "does not ask for kubelet's certificate".to_owned(),
        }));
    }
    let (node_config, config) = find_node_config(context, &join).await?;
    let docker_config = match config.docker_config {
        true => Some(read_docker_config(context).await?),
        false => None,
    };
    let asked = check_requests(&join.requests, &known.instance)?;
    let authority = Keyset::clone(&*endpoint.current_authority().await);
    let authority = config.held_keys(authority);
    let certificates = sign_certificates(context, &authority, &asked, &known.instance)?;
    record_keys(context, &known.instance, &requested_keys(&asked)).await?;
    Ok(JoinReply {
        format: FORMAT,
        node_config,
        certificates,
        docker_config,
    })
}

/// Reads the passwords of image registries. Workers cannot read secrets in the state store themselves.
async fn read_docker_config(context: &EndpointContext) -> Result<Secret, Rejection> {
    let key = stored_path(DOCKER_CONFIG);
    let object = context.store.get(&key).await;
    let object = object.map_err(|error| store_unavailable(&error.into()))?;
    let text = object.and_then(|object| String::from_utf8(object.bytes).ok());
    text.as_deref().and_then(read_stored).ok_or_else(|| {
        let error = anyhow!(
            "{key} is missing or invalid: create it with kctl create secret {DOCKER_CONFIG}"
        );
        store_unavailable(&error)
    })
}

fn parse_join(body: &[u8]) -> Result<JoinRequest, Refusal> {
    let wrong = |why: String| Refusal::Request { why };
    let join: JoinRequest = serde_json::from_slice(body).map_err(|error| {
        wrong(format!(
            "is not a join request: {}",
            untrusted_excerpt(&error.to_string())
        ))
    })?;
    if join.format != FORMAT {
        return Err(wrong(format!(
            "has format {}, but this release reads only {FORMAT}",
            join.format
        )));
    }
    Ok(join)
}

/// The requested NodeConfig, if it belongs to the group, with its text.
async fn find_node_config(
    context: &EndpointContext,
    join: &JoinRequest,
) -> Result<(String, NodeConfig), Rejection> {
    let unknown = || Refusal::UnknownNodeConfig {
        group: join.group.clone(),
        sha256: join.node_config.clone(),
    };
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if join.node_config.len() != 64 || !join.node_config.bytes().all(hex) {
        return Err(Rejection::from(Refusal::Request {
            why: "names a NodeConfig by an invalid sha256".to_owned(),
        }));
    }
    let key = node_config_key(Role::Node, &join.group, &join.node_config);
    let object = context.store.get(&key).await;
    let object = object.map_err(|error| store_unavailable(&error.into()))?;
    let object = object.ok_or_else(unknown)?;
    let text = String::from_utf8(object.bytes).context("it is not text");
    let text = text.map_err(|error| unreadable_object(&key, unknown(), &error))?;
    let config = read_node_config(&text, &join.node_config);
    let config = config.map_err(|error| unreadable_object(&key, unknown(), &error.into()))?;
    if config.cluster != context.cluster || config.group != join.group || config.role != Role::Node
    {
        return Err(Rejection::from(unknown()));
    }
    Ok((text, config))
}

fn unreadable_object(key: &str, refusal: Refusal, error: &anyhow::Error) -> Rejection {
    Rejection::with_cause(refusal, format!("{key}: {error:#}"))
}

/// Signs the certificates with the key that the instance's NodeConfig names. This happens before keys are recorded, so a request that cannot be signed leaves no record.
fn sign_certificates(
    context: &EndpointContext,
    authority: &Keyset,
    asked: &BTreeMap<CertificateKind, CheckedRequest>,
    instance: &str,
) -> Result<BTreeMap<CertificateKind, String>, Rejection> {
    let now = (context.clock)();
    let one = |(certificate, asked): (&CertificateKind, &CheckedRequest)| {
        let leaf = certificate_leaf(*certificate, instance, context.signing);
        let signed = pki::sign_request(authority, &asked.request, &leaf, now)
            .with_context(|| format!("could not sign for {}", leaf.common_name));
        let signed = signed.map_err(|error| Rejection::unavailable("the authority", &error))?;
        Ok((*certificate, signed))
    };
    asked.iter().map(one).collect()
}

/// Records new keys. The recorded kubelet key proves that the caller is the instance that joined with it, and no other is accepted. Without
/// a record, a key is accepted only while there is no Node: pods on the host's network can also use the role's credentials, but pods run
/// only where there is a Node, ready or not. A Node that was deleted is no reason to take another key, because its pods may still run. The
/// write is conditional: of two parallel requests, also to different control planes, one is refused as busy.
async fn record_keys(
    context: &EndpointContext,
    instance: &str,
    keys: &KeyDigests,
) -> Result<(), Rejection> {
    let key = key_record_key(instance);
    let before = context.store.get(&key).await;
    let before = before.map_err(|error| store_unavailable(&error.into()))?;
    // A record that cannot be parsed counts as missing, so every key is new.
    let read = before
        .as_ref()
        .and_then(|object| serde_json::from_slice::<KeyRecord>(&object.bytes).ok());
    let Some(after) = KeyRecord::with_keys(read.as_ref(), keys) else {
        return Ok(());
    };
    let has_joined = match &read {
        Some(record) => !record.has_kubelet_key(keys),
        None => {
            let exists = context.nodes.node_exists(instance).await;
            exists.map_err(|error| Rejection::unavailable("the API server", &error))?
        }
    };
    if has_joined {
        return Err(Rejection::from(Refusal::NewKey {
            node: instance.to_owned(),
        }));
    }
    let bytes = serde_json::to_vec(&after).map_err(|error| store_unavailable(&error.into()))?;
    let expect = before.map_or(Expect::Absent, |object| Expect::Version(object.version));
    match context.store.put(&key, bytes, expect).await {
        Ok(_) => Ok(()),
        Err(StoreError::Conflict { .. }) => Err(Rejection::from(Refusal::Busy)),
        Err(error) => Err(store_unavailable(&error.into())),
    }
}

fn store_unavailable(error: &anyhow::Error) -> Rejection {
    Rejection::unavailable("the state store", error)
}
