//! From a checked spec and facts to everything that should be: AWS objects, and what machines get. Pure but for
//! its arguments; `update` applies it, `render` writes it down.

use super::objects::Objects;
use crate::agents::{self, Found};
use crate::error::{CommandError, Context};
use cloud::facts::Facts;
use cloud::{Cloud, ObjectContent, S3Object, claim};
use engine::Text;
use full::FullSpec;
use full::addons::addons;
use full::nodes::{UserData, node_config, user_data};
use full::objects::{addon_objects, desired};
use node::config::{NodeConfig, Role, StoredNodeConfig, to_stored};
use node::pki::{KUBERNETES_CA, Keyset, KeysetItem, keyset_names, trust_bundle};
use node::yaml::{to_yaml, to_yaml_documents};
use spec::catalog::Catalog;
use spec::expand::{Expanded, expand};
use std::collections::BTreeMap;

const DEFECT: &str = "report this: it is a defect of kctl";

/// Stands for a certificate that is not minted yet.
const STAND_IN_CERTIFICATE: &str = include_str!("../stand-in.pem");

/// What machines of one group get.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// User data; `None` for bastions that have no parts of their own.
    pub user_data: Option<Text>,
    /// NodeConfig, and as it is stored; `None` for bastions.
    pub node_config: Option<(NodeConfig, StoredNodeConfig)>,
}

/// Everything that should be.
#[derive(Clone, Debug)]
pub struct Assembled {
    /// The spec, completed.
    pub expanded: Expanded,
    /// By instance group.
    pub machines: BTreeMap<String, Machine>,
    /// AWS objects and objects of the store.
    pub desired: Vec<Cloud>,
    /// Texts in them that will be others once keysets are minted and binaries are there.
    pub stand_ins: Vec<String>,
}

/// What is assembled from.
#[derive(Clone, Copy, Debug)]
pub struct Ingredients<'a> {
    /// The spec.
    pub objects: &'a Objects,
    /// The world.
    pub facts: &'a Facts,
    /// Downloads.
    pub catalog: &'a Catalog,
    /// Public SSH keys, the first one counts.
    pub ssh_keys: &'a [String],
}

/// Writes every decision down.
pub fn complete(of: Ingredients<'_>) -> Result<Expanded, CommandError> {
    let objects = of.objects;
    let expanded = expand(
        &objects.cluster,
        &objects.groups,
        of.ssh_keys,
        of.facts,
        of.catalog,
    );
    expanded.map_err(|mut problems| {
        objects.locate(&mut problems);
        CommandError::problems(problems)
    })
}

/// Names of the keysets that a cluster needs.
pub fn keysets_of(expanded: &Expanded) -> Vec<String> {
    keyset_names(expanded.full.etcd.iter().map(|etcd| etcd.name.as_str()))
}

/// A keyset that is not minted yet.
pub fn stand_in_keyset(name: &str) -> Keyset {
    Keyset {
        name: name.to_owned(),
        primary: agents::STAND_IN.to_owned(),
        items: vec![KeysetItem {
            id: agents::STAND_IN.to_owned(),
            certificate: STAND_IN_CERTIFICATE.to_owned(),
            key: None,
            distrusted: None,
        }],
    }
}

/// Everything that follows from a completed spec, keysets (public halves) and binaries, and whether the store has passwords
/// of image registries for machines. `held` is the same with an older version of Kubernetes: what workers get meanwhile.
pub fn assemble(
    expanded: Expanded,
    held: Option<&Expanded>,
    keysets: &[Keyset],
    found: &Found,
    docker_config: bool,
) -> Result<Assembled, CommandError> {
    let full = &expanded.full;
    let authority = keysets.iter().find(|set| set.name == KUBERNETES_CA);
    let trust = authority.map(trust_bundle).unwrap_or_default();
    let mut machines = BTreeMap::new();
    let mut objects = vec![completed(&expanded)?];
    objects.extend(found.objects());
    objects.extend(addon_files(full)?);
    for group in &full.groups {
        let held = held.filter(|_| group.role == Role::Node);
        let of = held.map_or(full, |held| &held.full);
        let machine = machine(of, &group.name, (&trust, docker_config), found)?;
        if let Some((_, stored)) = &machine.node_config {
            let content = ObjectContent::Text(stored.text.clone());
            objects.extend(stored.keys.iter().map(|key| S3Object {
                key: key.clone(),
                content: content.clone(),
            }));
        }
        machines.insert(group.name.clone(), machine);
    }
    let user_data = machines
        .iter()
        .filter_map(|(name, machine)| Some((name.clone(), machine.user_data.clone()?)));
    let mut desired = desired(full, &user_data.collect(), objects);
    let incarnation = authority.map_or("", |set| set.primary.as_str());
    claim::mark(&mut desired, &full.state.config_base, incarnation);
    let mut stand_ins = Vec::new();
    if trust.contains(STAND_IN_CERTIFICATE.trim_end()) || !found.missing.is_empty() {
        let stored = machines
            .values()
            .filter_map(|machine| machine.node_config.as_ref());
        stand_ins.push(agents::STAND_IN.to_owned());
        stand_ins.extend(stored.map(|(_, stored)| stored.sha256.clone()));
    }
    Ok(Assembled {
        expanded,
        machines,
        desired,
        stand_ins,
    })
}

/// `cluster-completed.spec`, as kOps writes it: the Cluster alone.
fn completed(expanded: &Expanded) -> Result<S3Object, CommandError> {
    let text = to_yaml(&expanded.cluster).failed("the completed spec has no YAML form", DEFECT)?;
    Ok(S3Object {
        key: "cluster-completed.spec".to_owned(),
        content: ObjectContent::Text(text),
    })
}

/// What protokube applies to the cluster, as it is stored.
fn addon_files(full: &FullSpec) -> Result<Vec<S3Object>, CommandError> {
    let addons = addons(full).failed("could not make the addons", DEFECT)?;
    addon_objects(&addons).failed("the list of addons has no YAML form", DEFECT)
}

/// The completed cluster and its groups as YAML documents.
pub fn completed_documents(expanded: &Expanded) -> Result<String, CommandError> {
    let mut all = vec![
        serde_json::to_value(&expanded.cluster)
            .failed("the completed spec has no JSON form", DEFECT)?,
    ];
    for group in &expanded.groups {
        all.push(
            serde_json::to_value(group).failed("the completed spec has no JSON form", DEFECT)?,
        );
    }
    to_yaml_documents(&all).failed("the completed spec has no YAML form", DEFECT)
}

fn machine(
    full: &FullSpec,
    group: &str,
    (trust, docker_config): (&str, bool),
    found: &Found,
) -> Result<Machine, CommandError> {
    let failed = || format!("could not make the configuration of machines of {group}");
    const HINT: &str =
        "look at the kubelet, containerd, files, hooks and additionalUserData of the group";
    let config = node_config(full, group, trust, &found.agents).usage(failed(), HINT)?;
    let config = config.map(|config| NodeConfig {
        docker_config,
        ..config
    });
    let config = match config {
        Some(config) => Some((to_stored(&config).failed(failed(), DEFECT)?, config)),
        None => None,
    };
    let sha256 = config
        .as_ref()
        .map_or("", |(stored, _)| stored.sha256.as_str());
    let of = UserData {
        full,
        group,
        node_config: sha256,
        trust_bundle: trust,
        agents: &found.agents,
    };
    let user_data = user_data(&of).usage(failed(), HINT)?;
    Ok(Machine {
        user_data,
        node_config: config.map(|(stored, config)| (config, stored)),
    })
}
