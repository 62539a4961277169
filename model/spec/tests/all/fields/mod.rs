//! No field of the spec is silently ignored: setting it changes what is rendered, or it is refused by name,
//! or `by_design` says why it has no effect there.

mod by_design;
mod outcome;

use by_design::BY_DESIGN;
use cloud::facts::Facts;
use outcome::Outcome;
use serde_json::{Value, json};
use spec::api::cluster::ClusterSpec;
use spec::api::instance_group::InstanceGroupSpec;
use spec::api::{Cluster, InstanceGroup, Object};
use spec::catalog::Catalog;
use spec::read::read_documents;
use spec::validate::values::known_keys;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use test_support::trace::{Leaf, LeafType, type_leaves};

/// Specs in which a field may have an effect.
const BASES: [&str; 10] = [
    include_str!("base.yaml"),
    test_support::CLUSTER,
    include_str!("runtimes.yaml"),
    include_str!("calico.yaml"),
    include_str!("calico_vxlan.yaml"),
    include_str!("cilium.yaml"),
    include_str!("amazonvpc.yaml"),
    include_str!("kuberouter.yaml"),
    include_str!("kindnet.yaml"),
    // The last, because the addons that a spec turns on take long to render.
    include_str!("addons.yaml"),
];

/// Texts of every sort that a field can want; one that fits is enough.
const TEXTS: [&str; 17] = [
    "7m0s",
    "sample",
    "70m",
    "77Mi",
    "10.7.0.0/16",
    "172.20.128.0/24",
    "100.64.7.7",
    "a.b.example.com",
    "ami-7",
    "vpc-7",
    "7",
    "0444",
    "1.35.1",
    "a=b",
    "a=b:NoSchedule",
    "eu-west-1a",
    "{\"Statement\": []}",
];

/// Fields that take only what no sample is.
const SPECIAL: &[(&str, &str)] = &[
    ("spec.profile", "cis"),
    (
        "spec.addonValues[].addon",
        "node-problem-detector.addons.k8s.io",
    ),
    ("spec.addonValues[].container", "csi-attacher"),
    ("spec.addonValues[].workload", "ebs-csi-node"),
    ("spec.addonValues[].tolerations[].effect", "NoSchedule"),
    ("spec.addonValues[].tolerations[].operator", "Exists"),
    ("spec.kubeDNS.tolerations[].effect", "NoSchedule"),
    ("spec.kubeDNS.tolerations[].operator", "Exists"),
    (
        "spec.additionalPolicies.*",
        "[{\"Effect\": \"Allow\", \"Action\": [\"s3:Get*\"], \"Resource\": [\"*\"]}]",
    ),
    (
        "spec.iam.serviceAccountExternalPermissions[].aws.inlinePolicy",
        "[{\"Effect\": \"Allow\", \"Action\": [\"s3:Get*\"], \"Resource\": [\"*\"]}]",
    ),
    (
        "spec.iam.serviceAccountExternalPermissions[].aws.policyARNs[]",
        "arn:aws:iam::123456789012:policy/other",
    ),
    (
        "spec.serviceAccountIssuerDiscovery.discoveryStore",
        "s3://other/a.example.com",
    ),
    ("spec.containerd.gvisor.platform", "kvm"),
    ("spec.networking.calico.awsSrcDstCheck", "DoNothing"),
    ("spec.networking.calico.encapsulationMode", "vxlan"),
    ("spec.networking.calico.ipipMode", "Always"),
    ("spec.networking.calico.vxlanMode", "Always"),
    ("spec.networking.cilium.bpfLBAlgorithm", "maglev"),
    ("spec.networking.cilium.bpfLBMaglevTableSize", "251"),
    ("spec.networking.cilium.enablePolicy", "always"),
    ("spec.networking.cilium.chainingMode", "none"),
    ("spec.networking.cilium.encryptionType", "ipsec"),
    ("spec.networking.cilium.identityAllocationMode", "kvstore"),
    ("spec.networking.cilium.ipam", "eni"),
    ("spec.networking.cilium.monitorAggregation", "low"),
    (
        "spec.networking.cilium.toFqdnsDnsRejectResponseCode",
        "nameError",
    ),
    ("spec.networking.cilium.tunnel", "geneve"),
    ("spec.networking.cilium.version", "v1.20.1"),
    ("spec.networking.kindnet.version", "v1.0.2"),
    ("spec.etcdClusters[].etcdMembers[].volumeType", "io2"),
    ("spec.serviceClusterIPRange", "100.66.0.0/16"),
    ("spec.podCIDR", "100.100.0.0/16"),
    ("spec.nonMasqueradeCIDR", "100.72.0.0/13"),
    ("spec.subnets[].ipv6CIDR", "/64#7"),
    ("spec.configBase", "s3://other/a.example.com"),
    ("spec.kubeAPIServer.serviceNodePortRange", "31000-31999"),
    ("spec.kubeDNS.provider", "KubeDNS"),
    ("spec.externalDns.provider", "external-dns"),
    ("spec.etcdClusters[].provider", "Legacy"),
    ("spec.containerRuntime", "docker"),
    ("spec.cloudConfig.nodeIPFamilies[]", "ipv6"),
    ("spec.subnets[]", "utility-eu-west-1a"),
    ("spec.zones[]", "eu-west-1b"),
    ("spec.subnets[].zone", "eu-west-1b"),
    ("spec.updatePolicy", "external"),
    ("spec.fileAssets[].path", "/etc/sample.conf"),
    ("spec.sysctlParameters[]", "vm.swappiness=10"),
    ("spec.mixedInstancesPolicy.instances[]", "m5.large"),
    (
        "spec.mixedInstancesPolicy.onDemandAllocationStrategy",
        "lowest-price",
    ),
    (
        "spec.mixedInstancesPolicy.spotAllocationStrategy",
        "price-capacity-optimized",
    ),
];

struct SampleSpec {
    number: usize,
    cluster: Value,
    groups: Vec<Value>,
    before: Outcome,
}

struct SampleSpecs {
    bases: Vec<SampleSpec>,
    facts: Facts,
    catalog: Catalog,
    parents: ParentOutcomes,
}

impl SampleSpecs {
    fn new() -> Self {
        let facts = Facts {
            account: "123456789012".into(),
            partition: "aws".into(),
            stand_in: true,
            ..Facts::default()
        };
        let mut world = Self {
            bases: Vec::new(),
            facts,
            catalog: Catalog::embedded().unwrap(),
            parents: ParentOutcomes::default(),
        };
        for (number, text) in BASES.into_iter().enumerate() {
            let (mut cluster, mut groups) = (None, Vec::new());
            for document in read_documents("base.yaml", text).unwrap() {
                match document.object {
                    Object::Cluster(object) => {
                        cluster = Some(serde_json::to_value(object).unwrap());
                    }
                    Object::InstanceGroup(object) => {
                        groups.push(serde_json::to_value(object).unwrap());
                    }
                    other => panic!("{other:?}"),
                }
            }
            let cluster = cluster.unwrap();
            let before = world
                .outcome(&cluster, &groups)
                .unwrap_or_else(|said| panic!("{said}"));
            world.bases.push(SampleSpec {
                number,
                cluster,
                groups,
                before,
            });
        }
        world
    }

    fn outcome(&self, cluster: &Value, groups: &[Value]) -> Result<Outcome, String> {
        let cluster: Cluster =
            serde_json::from_value(cluster.clone()).map_err(|error| error.to_string())?;
        let groups = groups
            .iter()
            .map(|group| serde_json::from_value(group.clone()));
        let groups: Vec<InstanceGroup> = groups
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())?;
        Outcome::expand(&cluster, &groups, &self.facts, &self.catalog)
    }

    /// True if some value of the field of the cluster changes what is rendered.
    fn cluster_acts(&self, leaf: &Leaf) -> bool {
        let acts = |base: &SampleSpec, value: &Value| {
            let mut cluster = base.cluster.clone();
            put_value(&mut cluster, &leaf.path, value);
            let after = self.outcome(&cluster, &base.groups);
            let without = with_parents(&base.cluster, &leaf.path).map(|(parent, bare)| {
                let key = (base.number, None, parent);
                let bare = || self.outcome(&bare, &base.groups);
                self.parents.outcome(key, bare)
            });
            has_effect(after, base, without.as_deref())
        };
        let depth = |base: &SampleSpec| present_depth(&base.cluster, &leaf.path);
        self.likely_bases(depth)
            .into_iter()
            .any(|base| leaf_samples(leaf).iter().any(|value| acts(base, value)))
    }

    /// The specs in which most of the way to a field is there, first: elsewhere most values have no effect, and rendering takes long.
    fn likely_bases(&self, depth: impl Fn(&SampleSpec) -> usize) -> Vec<&SampleSpec> {
        let mut bases: Vec<&SampleSpec> = self.bases.iter().collect();
        bases.sort_by_key(|base| Reverse(depth(base)));
        bases
    }

    /// The same of an instance group, of any role.
    fn group_acts(&self, leaf: &Leaf) -> bool {
        let acts = |base: &SampleSpec, index: usize, value: &Value| {
            let mut groups = base.groups.clone();
            put_value(&mut groups[index], &leaf.path, value);
            let after = self.outcome(&base.cluster, &groups);
            let without = with_parents(&base.groups[index], &leaf.path).map(|(parent, bare)| {
                let key = (base.number, Some(index), parent);
                let bare = || {
                    groups[index] = bare;
                    self.outcome(&base.cluster, &groups)
                };
                self.parents.outcome(key, bare)
            });
            has_effect(after, base, without.as_deref())
        };
        let depth = |base: &SampleSpec| {
            let depths = base
                .groups
                .iter()
                .map(|group| present_depth(group, &leaf.path));
            depths.max().unwrap_or_default()
        };
        self.likely_bases(depth).into_iter().any(|base| {
            let indexes = 0..base.groups.len();
            leaf_samples(leaf)
                .iter()
                .any(|value| indexes.clone().rev().any(|index| acts(base, index, value)))
        })
    }
}

/// True if the output changes, or if expansion refuses the field by name. `without`: of the spec with what is on the way to the field,
/// where some of that is missing.
fn has_effect(
    after: Result<Outcome, String>,
    base: &SampleSpec,
    without: Option<&Result<Outcome, String>>,
) -> bool {
    let differs = after.and_then(|after| match without {
        Some(Ok(without)) => after.differs(without),
        Some(Err(_)) => Ok(true),
        None => after.differs(&base.before),
    });
    differs.unwrap_or_else(|said| said.contains("kctl does not support"))
}

fn leaf_samples(leaf: &Leaf) -> Vec<Value> {
    if let Some((_, text)) = SPECIAL.iter().find(|(path, _)| *path == leaf.path) {
        return vec![json!(text)];
    }
    match &leaf.takes {
        LeafType::Bool => vec![json!(true), json!(false)],
        LeafType::Number => vec![json!(7), json!(1), json!(40), json!(4000)],
        LeafType::Text if leaf.few => vec![json!("7m0s"), json!("sample")],
        LeafType::Text => TEXTS.iter().map(|text| json!(text)).collect(),
        LeafType::Choice(words) => words.iter().map(|word| json!(word)).collect(),
        LeafType::Presence => vec![json!({})],
        LeafType::Anything => vec![json!("7"), json!({"key": "sample"})],
    }
}

/// The key of a map in these tests: one that it takes.
pub fn map_key(path: &str) -> &'static str {
    let map = path.split(".*").next().unwrap_or_default();
    known_keys(map).map_or("node", |keys| keys[0])
}

/// How many fields of a path are there, from its beginning.
fn present_depth(root: &Value, path: &str) -> usize {
    let mut at = root;
    for (depth, field) in path.split('.').enumerate() {
        let name = field.trim_end_matches("[]");
        let name = if name == "*" { map_key(path) } else { name };
        let lists = field.matches("[]").count();
        let next = (0..lists).try_fold(at.get(name), |next, _| Some(next?.get(0)));
        match next.flatten() {
            Some(next) if !next.is_null() => at = next,
            _ => return depth,
        }
    }
    path.split('.').count()
}

/// Puts a value at a path, making what is missing on the way: of lists the first element, of maps one entry.
pub fn put_value(root: &mut Value, path: &str, value: &Value) {
    let mut at = root;
    for field in path.split('.') {
        let name = field.trim_end_matches("[]");
        if name == "*" {
            at = &mut at[map_key(path)];
        } else {
            at = &mut at[name];
        }
        for _ in 0..field.matches("[]").count() {
            if !at.is_array() {
                *at = json!([null]);
            }
            at = &mut at[0];
        }
    }
    *at = value.clone();
}

/// The spec with only what is on the way to a field, if some of that is missing: its presence alone may change what is rendered.
/// With the path of the last of it.
fn with_parents(root: &Value, path: &str) -> Option<(String, Value)> {
    let (parent, _) = path.rsplit_once('.')?;
    (present_depth(root, parent) < parent.split('.').count()).then(|| {
        let mut root = root.clone();
        put_value(&mut root, parent, &json!({}));
        (parent.to_owned(), root)
    })
}

/// Number of a spec, position of one of its groups, and path.
type ParentKey = (usize, Option<usize>, String);

/// Outcomes of specs with what is on the way to fields: many fields have one parent.
#[derive(Default)]
struct ParentOutcomes(Mutex<HashMap<ParentKey, Arc<Result<Outcome, String>>>>);

impl ParentOutcomes {
    fn outcome(
        &self,
        key: ParentKey,
        expand: impl FnOnce() -> Result<Outcome, String>,
    ) -> Arc<Result<Outcome, String>> {
        let known = self.0.lock().unwrap().get(&key).cloned();
        known.unwrap_or_else(|| {
            let expanded = Arc::new(expand());
            self.0.lock().unwrap().insert(key, Arc::clone(&expanded));
            expanded
        })
    }
}

/// True if the reader refuses the field by name, for some value of it.
fn is_refused(kind: &str, leaf: &Leaf) -> bool {
    leaf_samples(leaf).iter().any(|value| {
        let mut object = json!({"apiVersion": "kops.k8s.io/v1alpha2", "kind": kind, "metadata": {"name": "a"}, "spec": {}});
        put_value(&mut object, &leaf.path, value);
        let Err(problems) = read_documents("field.yaml", &object.to_string()) else {
            return false;
        };
        let path = |problem: &str| problem.replace("[0]", "[]");
        problems.iter().any(|problem| {
            let by_name = problem.message.starts_with("kctl does not support")
                || problem.message.starts_with("kOps removed this");
            let at = path(&problem.path);
            let inside = leaf.path.strip_prefix(&at).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
            by_name && inside
        })
    })
}

fn find_explanation<'a>(
    kind: &str,
    path: &str,
) -> Option<&'a (&'static str, &'static str, &'static str)> {
    BY_DESIGN.iter().find(|(of, prefix, _)| {
        *of == kind
            && path
                .strip_prefix(prefix)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    })
}

/// What is wrong with a field.
enum Finding {
    /// It is accepted and nothing follows from it.
    Forgotten(String),
    /// It has a reason to do nothing, and does something.
    Stale(String),
    /// It has this reason to do nothing, and does nothing.
    Explained(&'static str, &'static str),
}

fn check_leaf(world: &SampleSpecs, kind: &'static str, leaf: Leaf) -> Option<Finding> {
    if is_refused(kind, &leaf) {
        return None;
    }
    let reason = find_explanation(kind, &leaf.path);
    // That a reason still holds is tried on a few values only: there are many.
    let leaf = Leaf {
        few: reason.is_some(),
        ..leaf
    };
    let acts = match kind {
        "Cluster" => world.cluster_acts(&leaf),
        _ => world.group_acts(&leaf),
    };
    match (reason, acts) {
        (Some((_, prefix, _)), true) => Some(Finding::Stale(format!(
            "{kind} {prefix}: {} acts",
            leaf.path
        ))),
        (Some((_, prefix, _)), false) => Some(Finding::Explained(kind, prefix)),
        (None, false) => Some(Finding::Forgotten(format!("{kind} {}", leaf.path))),
        (None, true) => None,
    }
}

#[test]
fn every_field_acts_or_is_refused_or_has_a_reason_not_to() {
    let world = SampleSpecs::new();
    let of = |kind: &'static str, leaves: Vec<Leaf>| {
        assert!(leaves.len() > 150, "{kind} has {} leaves", leaves.len());
        leaves.into_iter().map(move |leaf| (kind, leaf))
    };
    let all = of("Cluster", type_leaves::<ClusterSpec>("spec"));
    let all = all.chain(of(
        "InstanceGroup",
        type_leaves::<InstanceGroupSpec>("spec"),
    ));
    let open = Mutex::new(all);
    let next = || open.lock().unwrap().next();
    let work = || {
        let leaves = std::iter::from_fn(next);
        leaves
            .filter_map(|(kind, leaf)| check_leaf(&world, kind, leaf))
            .collect::<Vec<_>>()
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let found: Vec<Finding> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running
            .into_iter()
            .flat_map(|one| one.join().unwrap())
            .collect()
    });
    let (mut forgotten, mut stale, mut used) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for finding in found {
        match finding {
            Finding::Forgotten(field) => _ = forgotten.insert(field),
            Finding::Stale(field) => _ = stale.insert(field),
            Finding::Explained(kind, prefix) => _ = used.insert((kind, prefix)),
        }
    }
    let idle = BY_DESIGN
        .iter()
        .filter(|(kind, prefix, _)| !used.contains(&(*kind, *prefix)));
    stale.extend(idle.map(|(kind, prefix, _)| format!("{kind} {prefix}: needs no reason")));
    let lines = |of: BTreeSet<String>| of.into_iter().collect::<Vec<_>>().join("\n");
    let (forgotten, stale) = (lines(forgotten), lines(stale));
    assert!(
        forgotten.is_empty() && stale.is_empty(),
        "accepted and forgotten:\n{forgotten}\n\nreasons that are none:\n{stale}"
    );
}
