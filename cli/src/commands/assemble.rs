//! Computes the desired state from a checked spec and facts: AWS objects, store objects, user data and NodeConfigs. Pure.
//! `update` plans from it, `render` writes it to files.

use super::spec_objects::SpecObjects;
use crate::agents::{self, AgentBinaries};
use crate::error::{CommandError, ErrorContext, ErrorKind};
use crate::state::unreadable_error;
use cloud::facts::Facts;
use cloud::{Cloud, ObjectContent, S3Object, ownership};
use engine::Text;
use full::FullSpec;
use full::addons::{Addon, OwnAddon, OwnError, add_ipsec_key, add_own_addons, make_addons};
use full::images::{cluster_images, node_images};
use full::nodes::{UserData, check_node_config, node_config, user_data};
use full::objects::{addon_objects, desired_objects, discovery_documents};
use node::config::{NodeConfig, Role, to_stored};
use node::pki::{
    JsonWebKeySet, KUBERNETES_CA, Keyset, KeysetItem, SERVICE_ACCOUNT, STATE_SIGNER, keyset_names,
    trust_bundle,
};
use node::secret::Secret;
use node::values::Refusal;
use node::yaml::{to_yaml, to_yaml_documents};
use spec::catalog::Catalog;
use spec::expand::{Expanded, expand};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const DEFECT: &str = "report this: it is a defect of kctl";

/// Placeholder for a certificate that does not exist yet.
const STAND_IN_CERTIFICATE: &str = include_str!("../stand-in.pem");

/// Configuration of the instances of one group.
#[derive(Clone, Debug, Default)]
pub struct GroupConfig {
    /// User data; `None` for bastions without additional user data.
    pub user_data: Option<Text>,
    /// NodeConfig as it is stored; `None` for bastions.
    pub node_config: Option<NodeConfigObject>,
}

/// The stored form of a NodeConfig. Its text is shared with the objects that have it: a cluster may have a thousand.
#[derive(Clone, Debug)]
pub struct NodeConfigObject {
    pub text: Arc<str>,
    /// sha256 of the text, hex.
    pub sha256: String,
    /// Keys of the objects with this text, relative to the cluster's base.
    pub keys: [String; 2],
}

/// The desired state of a cluster.
#[derive(Clone, Debug)]
pub struct AssembledCluster {
    /// The full spec and the completed spec.
    pub expanded: Expanded,
    /// Configuration by instance group.
    pub group_configs: BTreeMap<String, GroupConfig>,
    /// AWS objects and store objects.
    pub desired: Vec<Cloud>,
    /// Placeholder texts in `desired`, which change once keysets exist and binaries are found.
    pub stand_ins: Vec<String>,
}

/// Input of the expansion.
#[derive(Clone, Copy, Debug)]
pub struct SpecInputs<'a> {
    pub objects: &'a SpecObjects,
    pub facts: &'a Facts,
    pub catalog: &'a Catalog,
    /// Public SSH keys; the first is used.
    pub ssh_keys: &'a [String],
}

/// What the store has of the secrets that users create.
#[derive(Clone, Debug, Default)]
pub struct StoredSecrets {
    /// It has registry passwords.
    pub docker_config: bool,
    /// cilium's key for IPsec, if the spec needs one.
    pub ipsec_key: Option<Secret>,
}

/// What instances get that is not in the spec.
struct InstanceInputs<'a> {
    /// The certificates of `kubernetes-ca`, PEM.
    trust: &'a str,
    /// Public halves of all keysets.
    keysets: &'a [Keyset],
    /// Whether the store has registry passwords.
    docker_config: bool,
}

/// Expands a spec: fills in all defaults.
pub fn expand_spec(inputs: SpecInputs<'_>) -> Result<Expanded, CommandError> {
    let objects = inputs.objects;
    let expanded = expand(
        &objects.cluster,
        &objects.groups,
        inputs.ssh_keys,
        inputs.facts,
        inputs.catalog,
    );
    expanded.map_err(|mut problems| {
        objects.locate_problems(&mut problems);
        CommandError::from_problems(problems)
    })
}

/// Names of the keysets that a cluster needs.
pub fn required_keysets(expanded: &Expanded) -> Vec<String> {
    let mut names = keyset_names(expanded.full.etcd.iter().map(|etcd| etcd.name.as_str()));
    names.push(STATE_SIGNER.to_owned());
    names
}

/// A placeholder for a keyset that does not exist yet.
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

/// Computes the desired state from an expanded spec, the public halves of keysets and the binaries. `held_back` is the spec expanded with an older Kubernetes version, which workers
/// keep for now. `own` are the addons of the user.
pub fn assemble_cluster(
    expanded: Expanded,
    own: &[OwnAddon],
    held_back: Option<&Expanded>,
    keysets: &[Keyset],
    binaries: &AgentBinaries,
    secrets: &StoredSecrets,
) -> Result<AssembledCluster, CommandError> {
    let full = &expanded.full;
    let authority = keysets.iter().find(|set| set.name == KUBERNETES_CA);
    let trust = authority.map(trust_bundle).unwrap_or_default();
    let inputs = InstanceInputs {
        trust: &trust,
        keysets,
        docker_config: secrets.docker_config,
    };
    let mut group_configs = BTreeMap::new();
    let mut objects = vec![completed_spec_object(&expanded)?];
    objects.extend(binaries.s3_objects());
    let addons = all_addons(full, own, secrets.ipsec_key.as_ref())?;
    check_bundle(full, cluster_images(full, &addons))?;
    let files = addon_objects(&addons);
    objects.extend(files.or_failed("the list of addons has no YAML form", DEFECT)?);
    if let Some(older) = held_back {
        check_bundle(&older.full, node_images(&older.full))?;
    }
    for group in &full.groups {
        let older = held_back.filter(|_| group.role == Role::Node);
        let group_spec = older.map_or(full, |older| &older.full);
        let config = group_config(group_spec, &group.name, &inputs, binaries)?;
        if let Some(stored) = &config.node_config {
            let content = ObjectContent::Text(stored.text.clone());
            objects.extend(stored.keys.iter().map(|key| S3Object {
                key: key.clone(),
                content: content.clone(),
            }));
        }
        group_configs.insert(group.name.clone(), config);
    }
    let user_data = group_configs
        .iter()
        .filter_map(|(name, config)| Some((name.clone(), config.user_data.clone()?)));
    let mut desired = desired_objects(full, &user_data.collect(), objects);
    desired.extend(issuer_documents(full, keysets)?);
    // The first authority's, whichever signs now.
    let first = authority.and_then(|set| set.items.first());
    let incarnation = first.map_or("", |item| item.id.as_str());
    ownership::set_ownership_tags(&mut desired, &full.state.config_base, incarnation);
    let mut stand_ins = Vec::new();
    if trust.contains(STAND_IN_CERTIFICATE.trim_end()) || !binaries.missing.is_empty() {
        let stored = group_configs
            .values()
            .filter_map(|config| config.node_config.as_ref());
        stand_ins.push(agents::STAND_IN.to_owned());
        stand_ins.extend(stored.map(|stored| stored.sha256.clone()));
    }
    Ok(AssembledCluster {
        expanded,
        group_configs,
        desired,
        stand_ins,
    })
}

/// `cluster-completed.spec` in kOps' form: the Cluster object only.
fn completed_spec_object(expanded: &Expanded) -> Result<S3Object, CommandError> {
    let text =
        to_yaml(&expanded.cluster).or_failed("the completed spec has no YAML form", DEFECT)?;
    Ok(S3Object {
        key: "cluster-completed.spec".to_owned(),
        content: ObjectContent::Text(text.into()),
    })
}

/// The addons that protokube applies: those of kctl, then those of the user.
pub fn all_addons(
    full: &FullSpec,
    own: &[OwnAddon],
    ipsec_key: Option<&Secret>,
) -> Result<Vec<Addon>, CommandError> {
    let failed = "could not make the addons";
    let mut addons = make_addons(full).or_failed(failed, DEFECT)?;
    add_ipsec_key(full, &mut addons, ipsec_key).or_failed(failed, DEFECT)?;
    add_own_addons(full, &mut addons, own).map_err(|error| match error {
        OwnError::Refused(refused) => unreadable_error(refused),
        OwnError::Failed(error) => CommandError::new(ErrorKind::Failed, error, DEFECT),
    })?;
    Ok(addons)
}

/// Fails if instances take their images from a bundle that lacks one. Not every image is made for every architecture, so one archive of it is
/// enough.
fn check_bundle(full: &FullSpec, images: Vec<String>) -> Result<(), CommandError> {
    if full.image_archives.is_empty() {
        return Ok(());
    }
    let archives = full.image_archives.iter();
    let bundled: BTreeSet<&String> = archives.map(|archive| &archive.image).collect();
    let mut missing = images;
    missing.retain(|image| !bundled.contains(image));
    missing.sort();
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    Err(CommandError::usage_error(
        format!(
            "the bundle in spec.assets.bundle lacks {}",
            missing.join(", ")
        ),
        "make one for this spec with `kctl bundle create`, store it with `kctl bundle push`, and name it there",
    ))
}

/// The public documents of the issuer of service accounts' tokens.
fn issuer_documents(full: &FullSpec, keysets: &[Keyset]) -> Result<Vec<Cloud>, CommandError> {
    let keyset = keysets.iter().find(|set| set.name == SERVICE_ACCOUNT);
    let (Some(keyset), Some(_)) = (keyset, &full.pod_identity) else {
        return Ok(Vec::new());
    };
    let keys = if keyset.primary == agents::STAND_IN {
        JsonWebKeySet::stand_in(agents::STAND_IN)
    } else {
        JsonWebKeySet::from_keyset(keyset).or_failed(
            "the keys that sign tokens of service accounts cannot be published",
            "make the keyset service-account one of RSA or ECDSA keys",
        )?
    };
    let documents = discovery_documents(full, &keys);
    Ok(documents.into_iter().map(Cloud::from).collect())
}

/// The completed cluster and its groups as YAML documents.
pub fn completed_documents(expanded: &Expanded) -> Result<String, CommandError> {
    let mut all = vec![
        serde_json::to_value(&expanded.cluster)
            .or_failed("the completed spec has no JSON form", DEFECT)?,
    ];
    for group in &expanded.groups {
        all.push(
            serde_json::to_value(group).or_failed("the completed spec has no JSON form", DEFECT)?,
        );
    }
    to_yaml_documents(&all).or_failed("the completed spec has no YAML form", DEFECT)
}

/// What the spec asks of instances cannot be. The next step is that of the cause, if it has one.
fn refused(error: impl Into<anyhow::Error>, what: String) -> CommandError {
    const HINT: &str =
        "look at the kubelet, containerd, files, hooks and additionalUserData of the group";
    let error = error.into();
    let mut causes = error.chain();
    let hint = causes.find_map(|cause| cause.downcast_ref::<Refusal>());
    let hint = hint.map_or_else(|| HINT.to_owned(), |refusal| refusal.hint.clone());
    CommandError::new(ErrorKind::Usage, error.context(what), hint)
}

fn group_config(
    full: &FullSpec,
    group: &str,
    inputs: &InstanceInputs<'_>,
    binaries: &AgentBinaries,
) -> Result<GroupConfig, CommandError> {
    let failed = || format!("could not make the configuration of the instances of {group}");
    let InstanceInputs {
        trust,
        keysets,
        docker_config,
    } = *inputs;
    let config = node_config(full, group, trust, &binaries.agents);
    let config = config.map_err(|error| refused(error, failed()))?;
    let config = config.map(|config| NodeConfig {
        docker_config,
        keysets: config.rotated_keysets(keysets),
        ..config
    });
    if let Some(config) = &config {
        // Again: now it is known whether there is a file with passwords of registries.
        check_node_config(config).map_err(|error| refused(error, failed()))?;
    }
    let stored = config.as_ref().map(to_stored).transpose();
    let stored = stored.or_failed(failed(), DEFECT)?;
    let sha256 = stored.as_ref().map_or("", |stored| stored.sha256.as_str());
    let inputs = UserData {
        full,
        group,
        node_config: sha256,
        trust_bundle: trust,
        agents: &binaries.agents,
    };
    let user_data = user_data(&inputs).map_err(|error| refused(error, failed()))?;
    Ok(GroupConfig {
        user_data,
        node_config: stored.map(|stored| NodeConfigObject {
            text: stored.text.into(),
            sha256: stored.sha256,
            keys: stored.keys,
        }),
    })
}
