//! Where a cluster is in the state store: its own folder, which no other cluster's spec names, and AWS names that no other cluster
//! there has.

use super::session::Session;
use super::spec_objects::SpecObjects;
use crate::error::{CommandError, ErrorKind};
use crate::state::{StoreKeys, cluster_names, store_error};
use full::DnsKind;
use node::names::clash::common_name;
use spec::api::Object;
use spec::completed::CompletedCluster;
use spec::read::{ObjectRef, Problem, ReadOptions, read_documents_with};
use std::collections::{BTreeMap, BTreeSet};

/// Sets `spec.configBase` where the spec leaves it out, as kOps does. Fails if the spec names another place.
pub fn place_in_store(objects: &mut SpecObjects, store: &str) -> Result<(), CommandError> {
    if let Some(problem) = find_place_problem(objects, store) {
        return Err(vec![problem].into());
    }
    let place = format!("{store}/{}", objects.cluster.name());
    objects.cluster.spec.config_base = Some(place);
    Ok(())
}

/// An error if `spec.configBase` is not the cluster's folder in this state store: instances would read the keys and the configuration
/// of whatever cluster is there.
pub fn find_place_problem(objects: &SpecObjects, store: &str) -> Option<Problem> {
    let name = objects.cluster.name();
    let own = format!("{store}/{name}");
    let given = objects.cluster.spec.config_base.as_deref()?;
    let base = given.trim_end_matches('/');
    if base == own {
        return None;
    }
    let message = format!("{given} is not the place of {name} in this state store, which is {own}");
    let mut problem = Problem::error("spec.configBase", message).hint(other_place_hint(base, name));
    problem.object = Some(ObjectRef {
        kind: "Cluster".to_owned(),
        name: name.to_owned(),
        occurrence: 0,
    });
    let mut problems = vec![problem];
    objects.locate_problems(&mut problems);
    problems.pop()
}

fn other_place_hint(base: &str, name: &str) -> String {
    match base.strip_suffix(&format!("/{name}")) {
        Some(store) => format!(
            "leave it out, or choose that state store: --state {store}, or KCTL_STATE_STORE={store}"
        ),
        None => {
            "leave it out; a copy of another cluster's spec must not name that cluster's folder"
                .to_owned()
        }
    }
}

/// Fails if a cluster in the store has AWS names that the new one would have too.
pub fn check_names_are_free(
    name: &str,
    existing: &[String],
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let mut others = existing.iter().filter(|other| *other != name);
    let clash = others.find_map(|other| Some((other, common_name(name, other)?)));
    let Some((other, made)) = clash else {
        return Ok(());
    };
    Err(CommandError::from_message(
        ErrorKind::Precondition,
        format!(
            "{name} and {other}, which is in {}, would both have an AWS object named {made}",
            session.url
        ),
        "choose a name that differs from it in more than dots and dashes",
    ))
}

/// Fails if another cluster that was made from the store has one of the cluster's names in DNS: both would set the record. A copied spec has such names.
pub async fn check_client_names(
    objects: &SpecObjects,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let own = CompletedCluster::from_cluster(&objects.cluster);
    let taken = find_names_of_others(&own, session).await?;
    let Some((taken, other)) = taken.into_iter().next() else {
        return Ok(());
    };
    Err(CommandError::from_message(
        ErrorKind::Precondition,
        format!(
            "{taken} is a name of the cluster {other}, which is in {}",
            session.url
        ),
        "leave out spec.masterPublicName and spec.masterInternalName, or give the cluster names of its own; a copy of another cluster's \
         spec must not have that cluster's",
    ))
}

/// The names in DNS of a cluster that another cluster in the store has too, each with that one. Reads other clusters only if the cluster has
/// a name that is not below its own.
pub async fn find_names_of_others(
    own: &CompletedCluster,
    session: &Session<'_>,
) -> Result<BTreeMap<String, String>, CommandError> {
    let mut taken = BTreeMap::new();
    let below = format!(".{}", own.name);
    let chosen = own.client_names.iter();
    let chosen: BTreeSet<&String> = chosen.filter(|name| !name.ends_with(&below)).collect();
    if chosen.is_empty() || own.dns == DnsKind::None {
        return Ok(taken);
    }
    for other in cluster_names(&session.store).await? {
        if other == own.name {
            continue;
        }
        // One that no update has made has no records.
        let key = StoreKeys::new(&other).completed();
        let stored = session.store.get(&key).await.map_err(store_error)?;
        let text = stored.map(|object| String::from_utf8_lossy(&object.bytes).into_owned());
        // A spec that cannot be read says so to whoever uses it.
        let read = |text: String| read_documents_with(&key, &text, ReadOptions::AS_STORED).ok();
        for document in text.and_then(read).unwrap_or_default() {
            let Object::Cluster(cluster) = document.object else {
                continue;
            };
            let cluster = CompletedCluster::from_cluster(&cluster);
            if cluster.dns != DnsKind::None {
                let names = cluster.client_names.into_iter();
                let common = names.filter(|name| chosen.contains(name));
                taken.extend(common.map(|name| (name, other.clone())));
            }
        }
    }
    Ok(taken)
}
