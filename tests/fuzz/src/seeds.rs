//! What targets begin with: the repository's own specs, and what follows from them.

use super::change::{Spec, changed, field_counts, field_names, value_count};
use super::samples::{CERTIFICATES, KEY, SPECS, agents, catalog, facts};
use cloud::Cloud;
use engine::{Plan, Snapshot, plan};
use full::nodes::{UserData, node_config, user_data};
use full::objects::desired_objects;
use node::pki::{Keyset, KeysetItem, write_keyset};
use spec::expand::{Expanded, expand};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Inputs of each target by its name. `root` is the checkout.
pub fn seeds(root: &Path) -> BTreeMap<&'static str, Vec<Vec<u8>>> {
    let mut specs: Vec<Vec<u8>> = SPECS.iter().map(|text| text.as_bytes().to_vec()).collect();
    let mut files = specs.clone();
    for folder in ["model/spec/tests/specs", "model/spec/tests/broken_specs"] {
        files.extend(yaml_files(&root.join(folder)));
    }
    specs.extend(changes());
    let samples: Vec<Expanded> = SPECS.iter().filter_map(|text| expanded(text)).collect();
    BTreeMap::from([
        ("read", files),
        ("expand", specs),
        (
            "node_config",
            samples.iter().flat_map(configurations).collect(),
        ),
        ("plan", samples.iter().flat_map(plans).collect()),
        ("cidr", ranges()),
        ("messages", messages(&samples)),
    ])
}

/// Words that libFuzzer puts into texts.
pub fn words() -> BTreeSet<String> {
    let mut words = field_names();
    let of_yaml = [
        "&a",
        "*a",
        "<<: *a",
        "---\n",
        "- ",
        ": ",
        "|\n",
        ">-\n",
        "!!binary ",
        "{",
        "[",
        "~",
        "\u{feff}",
    ];
    words.extend(of_yaml.map(str::to_owned));
    words
}

fn yaml_files(folder: &Path) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(folder)
        .expect("a folder of specs")
        .flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "yaml")
    });
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read(path).expect("a spec"))
        .collect()
}

/// Every field of the cluster and of each role's group once, with another value each time.
fn changes() -> Vec<Vec<u8>> {
    let [of_cluster, of_group] = field_counts();
    let mut seeds: Vec<Vec<u8>> = (0..SPECS.len())
        .filter_map(|sample| Some(vec![u8::try_from(sample).ok()?]))
        .collect();
    for (object, fields) in [(0, of_cluster), (1, of_group), (2, of_group)] {
        for field in 0..fields {
            let sample = u8::try_from(field % SPECS.len()).unwrap_or(0);
            let value = u8::try_from((field * 7) % value_count()).unwrap_or(0);
            let [high, low] = u16::try_from(field).unwrap_or(0).to_be_bytes();
            seeds.push(vec![sample, object, high, low, 0, value]);
        }
    }
    seeds
}

fn expanded(text: &str) -> Option<Expanded> {
    let spec = Spec::read(text)?;
    expand(
        &spec.cluster,
        &spec.groups,
        &[KEY.to_owned()],
        &facts(),
        catalog(),
    )
    .ok()
}

fn configurations(of: &Expanded) -> Vec<Vec<u8>> {
    let groups = of.full.groups.iter();
    let configs = groups
        .filter_map(|group| node_config(&of.full, &group.name, CERTIFICATES, &agents()).ok()?);
    configs
        .filter_map(|config| Some(config.to_yaml().ok()?.into_bytes()))
        .collect()
}

/// Each step of the plan that makes everything, as a plan of its own, and as its opposite.
fn plans(of: &Expanded) -> Vec<Vec<u8>> {
    let groups = of.full.groups.iter();
    let text = |name: &str| {
        let of = UserData {
            full: &of.full,
            group: name,
            node_config: "f",
            trust_bundle: CERTIFICATES,
            agents: &agents(),
        };
        user_data(&of).ok()?
    };
    let texts = groups.filter_map(|group| Some((group.name.clone(), text(&group.name)?)));
    let wanted = desired_objects(&of.full, &texts.collect(), Vec::new());
    let Ok(whole) = plan(&wanted, &Snapshot::default()) else {
        return Vec::new();
    };
    let alone = whole.steps.values().map(|step| {
        let mut step = step.clone();
        step.needs.clear();
        Plan {
            format: whole.format,
            steps: BTreeMap::from([(step.id.clone(), step)]),
            kept: Vec::new(),
        }
    });
    let mut seen = BTreeSet::new();
    let kinds = alone.filter(|plan: &Plan<Cloud>| {
        plan.steps
            .keys()
            .all(|id| seen.insert(id.kind().to_owned()))
    });
    kinds
        .filter_map(|plan| serde_json::to_vec(&plan).ok())
        .collect()
}

fn ranges() -> Vec<Vec<u8>> {
    let texts = [
        "172.20.0.0/16|a|b|c",
        "172.20.0.0/16|a|b|c|a!|b!|c!",
        "10.0.0.0/8|a=10.1.0.0/16|b|b!=10.2.0.0/24",
        "100.64.0.0/10",
        "10.0.0.0/28|a|b",
        "fd00::/8|a",
        "0.0.0.0/0|a|a!",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// One of each kind that `messages` tells apart by the first byte.
fn messages(samples: &[Expanded]) -> Vec<Vec<u8>> {
    let item = KeysetItem {
        id: "1".into(),
        certificate: CERTIFICATES.into(),
        key: None,
        distrusted: None,
    };
    let keyset = Keyset {
        name: "kubernetes-ca".into(),
        primary: "1".into(),
        items: vec![item],
    };
    let keyset = write_keyset(&keyset)
        .map(|text| text.reveal().to_owned())
        .unwrap_or_default();
    let mut seeds = vec![keyset];
    seeds.extend([
        r#"{"format":1,"members":{"a":{"volume":"vol-1","blank":true}},"state":{"forming":{"token":"t"}}}"#,
        r#"{"format":1,"cluster":"a.example.com","etcd":"main","member":"a","volume":"vol-1","token":"t","clusterId":"1"}"#,
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: etcd\nspec:\n  containers:\n  - name: etcd\n    image: etcd\n    env:\n    - name: ETCD_INITIAL_CLUSTER_STATE\n      value: new\n",
        "eyJoZWFkZXJzIjp7Imhvc3QiOiJzdHMiLCJ4LWtjdGwtY2x1c3RlciI6ImEifX0=",
        r#"{"headers":{"host":"sts.eu-west-1.amazonaws.com","x-amz-date":"20260101T000000Z"}}"#,
        r#"{"format":1,"group":"nodes","nodeConfig":"f","requests":{"kubelet":"-----BEGIN CERTIFICATE REQUEST-----\nMIIB\n-----END CERTIFICATE REQUEST-----\n"}}"#,
        "arn:aws:sts::123456789012:assumed-role/nodes.a.example.com/i-0123456789abcdef0",
        r#"{"format":1,"instance":"i-0123456789abcdef0","cluster":"demo.example.com","group":"nodes","release":"1","nodeConfig":"f","started":"2026-01-01T00:00:00Z","stages":[],"changes":0}"#,
        "format: 1\ncluster: a.example.com\ngroup: nodes\nrole: node\nnodeConfig: f\nbootstrapServers:\n- https://a:3988\n",
        r#"{"format":1,"instance":"i-0123456789abcdef0","release":"1","written":"2026-01-01T00:00:00Z","waits":[{"role":"etcd-main","about":"member b","failed":true,"message":"its log is gone","since":"2026-01-01T00:00:00Z"}]}"#,
    ].map(str::to_owned));
    let mut seeds: Vec<Vec<u8>> = seeds
        .into_iter()
        .zip(0_u8..)
        .map(|(text, which)| [vec![which], text.into_bytes()].concat())
        .collect();
    // Completed specs are text as well, for whatever kind reads YAML.
    seeds.extend(samples.iter().take(1).map(|of| {
        let spec = Spec {
            cluster: of.cluster.clone(),
            groups: Vec::new(),
        };
        [vec![0], super::change::written(&spec).into_bytes()].concat()
    }));
    debug_assert!(
        changed(&[0]).groups.len() < 256,
        "changes pick a group with a byte"
    );
    seeds
}
