//! Compares the AWS objects that we derive from kOps' own test specs with those that kOps makes of them.
//! Runs where `KCTL_KOPS_FIXTURES` names the folder of fixtures; every difference must be one that
//! `docs/compat.md` states.

mod addons;
mod difference;
mod facts;
mod terraform;

use difference::{Difference, compat_topic, find_differences};
use full::FullSpec;
use full::objects::desired_objects;
use spec::api::Object;
use spec::catalog::Catalog;
use spec::expand::expand;
use spec::read::{Problem, ReadOptions, read_documents_with};
use spec::validate::{ClusterInput, validate};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use terraform::{Attributes, from_cloud, from_fixture};

/// Scenarios that are refused, and the topic that says why; everything else must compare.
pub const REFUSED: [(&str, &str); 1] = [("karpenter", "karpenter")];

#[test]
fn aws_objects_are_those_of_kops_but_for_stated_differences() {
    let Some(folder) = std::env::var_os("KCTL_KOPS_FIXTURES").map(PathBuf::from) else {
        eprintln!("skipped: KCTL_KOPS_FIXTURES is not set");
        return;
    };
    let stated = include_str!("../../../../../docs/compat.md");
    let mut table: BTreeMap<String, BTreeMap<String, (usize, usize)>> = BTreeMap::new();
    let mut unstated: Vec<String> = Vec::new();
    let mut topics: BTreeSet<&str> = BTreeSet::new();
    let (mut all, mut strictly, mut leniently) = (0, 0, 0);
    for scenario in scenario_folders(&folder.join("update_cluster")) {
        let name = scenario
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        all += 1;
        strictly += usize::from(full_spec(&scenario, ReadOptions::default()).is_ok());
        let lenient = ReadOptions {
            allow_unsupported: true,
        };
        let full = match full_spec(&scenario, lenient) {
            Ok(full) => full,
            Err(problems) => {
                match REFUSED.iter().find(|(refused, _)| *refused == name) {
                    Some((_, topic)) => {
                        topics.insert(topic);
                    }
                    None => unstated.push(format!("{name} is refused: {problems}")),
                }
                continue;
            }
        };
        leniently += 1;
        let theirs = read_text(&scenario.join("resources.json"));
        let single = with_single_dashes(&theirs);
        if single != theirs {
            topics.insert("balancer-dashes");
        }
        let theirs = from_fixture(&single);
        let ours = from_cloud(&desired_objects(&full, &BTreeMap::new(), Vec::new()));
        let found = find_differences(&ours, &theirs);
        count_equal(&mut table, &name, &theirs, &found);
        for one in found {
            match compat_topic(&one) {
                Some(topic) => {
                    topics.insert(topic);
                }
                None => unstated.push(format!("{name}: {one}")),
            }
        }
    }
    for topic in topics {
        if !stated.contains(&format!("`{topic}`")) {
            unstated.push(format!("docs/compat.md says nothing of {topic}"));
        }
    }
    eprintln!("{}", format_table(&table));
    let figures = format!(
        "of {all} update fixtures {strictly} as they are, {leniently} with `--allow-unsupported`"
    );
    if !include_str!("../../../../../docs/specification.md").contains(&figures) {
        unstated.push(format!("docs/specification.md does not say: {figures}"));
    }
    assert!(
        unstated.is_empty(),
        "{} unstated differences:\n{}",
        unstated.len(),
        unstated.join("\n")
    );
}

/// Names of load balancers and target groups with one dash where kOps has several.
fn with_single_dashes(text: &str) -> String {
    let mut single = text.to_owned();
    let words = text.split(|one: char| !(one.is_ascii_alphanumeric() || one == '-'));
    let balanced = |word: &&str| {
        let kinds = ["api-", "bastion-", "kops-controller-", "tcp-", "tls-"];
        kinds.iter().any(|kind| word.starts_with(kind)) && word.contains("--")
    };
    for word in words.filter(balanced) {
        single = single.replace(word, &word.replace("--", "-"));
    }
    single
}

fn scenario_folders(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the fixtures")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    all.sort();
    all
}

fn read_text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What the spec comes to, read, validated and expanded.
fn full_spec(scenario: &Path, options: ReadOptions) -> Result<FullSpec, String> {
    // kOps' tests keep state in memory and stand buckets of other names in for it; ours is one bucket.
    let yaml = read_text(&scenario.join("in.yaml"));
    let yaml = yaml.replace("memfs://", "s3://state/");
    let shown = |problems: Vec<Problem>| {
        let lines: Vec<String> = problems
            .iter()
            .map(|one| format!("{one:?}").chars().take(300).collect())
            .collect();
        lines.join("\n")
    };
    let documents = read_documents_with("in.yaml", &yaml, options).map_err(shown)?;
    let mut cluster = None;
    let mut groups = Vec::new();
    for document in documents {
        match document.object {
            Object::Cluster(one) => cluster = Some(one),
            Object::InstanceGroup(one) => groups.push(one),
            _ => {}
        }
    }
    let keys = [read_text(&scenario.join("id_rsa.pub"))];
    let cluster = cluster.expect("a cluster");
    let found = validate(&ClusterInput {
        cluster: &cluster,
        instance_groups: &groups,
        ssh_keys: &[],
    });
    let errors: Vec<_> = found.into_iter().filter(Problem::is_error).collect();
    if !errors.is_empty() {
        return Err(shown(errors));
    }
    let expanded = expand(
        &cluster,
        &groups,
        &keys,
        &facts::kops_facts(),
        &Catalog::default(),
    )
    .map_err(shown)?;
    Ok(expanded.full)
}

fn count_equal(
    table: &mut BTreeMap<String, BTreeMap<String, (usize, usize)>>,
    scenario: &str,
    theirs: &BTreeMap<(String, String), Attributes>,
    found: &[Difference],
) {
    let differing: BTreeSet<(&str, &str)> = found
        .iter()
        .map(|one| (one.kind.as_str(), one.name.as_str()))
        .collect();
    for (kind, name) in theirs.keys() {
        let cell = table
            .entry(kind.clone())
            .or_default()
            .entry(scenario.to_owned())
            .or_default();
        cell.1 += 1;
        if !differing.contains(&(kind.as_str(), name.as_str())) {
            cell.0 += 1;
        }
    }
}

/// Kinds down, scenarios across: how many of kOps' objects ours equal in every attribute.
fn format_table(table: &BTreeMap<String, BTreeMap<String, (usize, usize)>>) -> String {
    let scenarios: BTreeSet<&String> = table.values().flat_map(BTreeMap::keys).collect();
    let mut lines: Vec<String> = scenarios
        .iter()
        .enumerate()
        .map(|(number, one)| format!("{:>3} {one}", number + 1))
        .collect();
    let header: Vec<String> = (1..=scenarios.len())
        .map(|number| format!("{number:>7}"))
        .collect();
    lines.push(format!("{:34}{}", "equal / all", header.concat()));
    for (kind, row) in table {
        let cell = |scenario: &&String| match row.get(*scenario) {
            Some((equal, all)) => format!("{:>7}", format!("{equal}/{all}")),
            None => format!("{:>7}", "-"),
        };
        let cells: Vec<String> = scenarios.iter().map(cell).collect();
        lines.push(format!("{kind:34}{}", cells.concat()));
    }
    lines.join("\n")
}
