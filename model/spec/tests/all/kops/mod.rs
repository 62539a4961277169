//! The gate: kctl makes of kOps' own test cases what kOps makes of them, but for what docs/compat-cases.md states. It runs where
//! `KCTL_KOPS_FIXTURES` names the folder with the cases.

mod addons;
mod aws;
mod compare;
mod completed;
mod facts;
mod new_clusters;
mod stated;
mod terraform;

use addons::{compare_addons, kops_objects};
use aws::{Table, compare_aws};
use compare::Difference;
use completed::compare_completed;
use facts::kops_facts;
use new_clusters::compare_new_cluster;
use spec::api::{Cluster, InstanceGroup, Object};
use spec::catalog::Catalog;
use spec::expand::{Expanded, expand};
use spec::read::{Problem, ReadOptions, read_documents_with};
use spec::validate::{ClusterInput, validate};
use stated::{ADDONS, AWS_OBJECTS, COMPLETED_SPECS, NEW_CLUSTERS, REFUSED, find_row, read_rows};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A difference, the case that shows it, and the heading of docs/compat-cases.md that it belongs to.
struct Found {
    section: &'static str,
    case: String,
    difference: Difference,
}

/// What all cases come to.
#[derive(Default)]
struct Comparison {
    found: Vec<Found>,
    /// As docs/specification.md has them.
    figures: Vec<String>,
    table: Table,
}

impl Comparison {
    fn add(&mut self, section: &'static str, case: &Path, differences: Vec<Difference>) {
        let case = case_name(case);
        let found = differences.into_iter().map(|difference| Found {
            section,
            case: case.clone(),
            difference,
        });
        self.found.extend(found);
    }
}

/// Made once for all tests; `None` without the cases.
static COMPARISON: LazyLock<Option<Comparison>> = LazyLock::new(|| {
    let folder = std::env::var_os("KCTL_KOPS_FIXTURES").map(PathBuf::from)?;
    let mut comparison = Comparison::default();
    compare_new_clusters(&folder.join("create_cluster"), &mut comparison);
    compare_updates(&folder.join("update_cluster"), &mut comparison);
    Some(comparison)
});

fn comparison() -> Option<&'static Comparison> {
    let made = LazyLock::force(&COMPARISON).as_ref();
    if made.is_none() {
        eprintln!("skipped: KCTL_KOPS_FIXTURES is not set");
    }
    made
}

fn compare_new_clusters(folder: &Path, to: &mut Comparison) {
    let cases = case_folders(folder);
    let mut made = 0;
    for case in &cases {
        match compare_new_cluster(case) {
            Ok(objects) => {
                made += 1;
                let differences = objects.into_iter().flat_map(|one| one.differences);
                to.add(NEW_CLUSTERS, case, differences.collect());
            }
            Err(refused) => to.add(REFUSED, case, refused),
        }
    }
    let all = cases.len();
    to.figures
        .push(format!("of {all} create fixtures {made} are made"));
}

fn compare_updates(folder: &Path, to: &mut Comparison) {
    let cases = case_folders(folder);
    let (mut strictly, mut leniently) = (0, 0);
    let (mut values, mut equal_values) = (0, 0);
    let (mut objects, mut made_objects, mut equal_objects) = (0, 0, 0);
    for case in &cases {
        let theirs = kops_objects(case);
        objects += theirs.len();
        let strict = expand_case(case, ReadOptions::default());
        strictly += usize::from(strict.is_ok());
        let expanded = match strict.or_else(|_| expand_case(case, ReadOptions::AS_STORED)) {
            Ok(expanded) => expanded,
            Err(problems) => {
                to.add(REFUSED, case, refusals(&problems));
                continue;
            }
        };
        leniently += 1;

        let (found, all, equal) = compare_completed(&expanded.cluster, case);
        (values, equal_values) = (values + all, equal_values + equal);
        to.add(COMPLETED_SPECS, case, found);

        let resources = read_text(&case.join("resources.json"));
        let (compared, renamed) = compare_aws(&expanded.full, &resources);
        to.table.add(&case_name(case), &compared);
        to.add(AWS_OBJECTS, case, renamed);
        let found = compared.into_iter().flat_map(|one| one.differences);
        to.add(AWS_OBJECTS, case, found.collect());

        let [compared, entries] = compare_addons(&expanded.full, case, &theirs);
        let both = compared.iter().filter(|one| one.is_ours && one.is_theirs);
        // Who manages an object differs for all of them.
        let owner = |one: &Difference| one.place.ends_with(node::addons::MANAGED_BY_LABEL);
        let equal = both
            .clone()
            .filter(|one| one.differences.iter().all(owner))
            .count();
        (made_objects, equal_objects) = (made_objects + both.count(), equal_objects + equal);
        let all = compared.into_iter().chain(entries);
        let found = all.flat_map(|one| one.differences);
        to.add(ADDONS, case, found.collect());
    }
    let all = cases.len();
    let (equal_aws, aws) = to.table.sum();
    to.figures.extend([
        format!("of {all} update fixtures {strictly} as they are, {leniently} with `--allow-unsupported`"),
        format!("of {values} values of completed specs {equal_values} are equal"),
        format!("of {aws} AWS objects {equal_aws} are equal"),
        format!("of {objects} addon objects {made_objects} are made, {equal_objects} of them equal"),
    ]);
}

#[test]
fn every_difference_from_kops_is_stated() {
    let Some(comparison) = comparison() else {
        return;
    };
    let rows = read_rows();
    let found = comparison.found.iter();
    let unstated = found.filter(|one| find_row(&rows, one.section, &one.difference).is_none());
    let unstated: Vec<String> = unstated
        .map(|one| format!("{}: {}: {}", one.section, one.case, one.difference))
        .collect();
    let count = unstated.len();
    let list = unstated.join("\n");
    assert!(
        unstated.is_empty(),
        "{count} differences have no row in docs/compat-cases.md:\n{list}"
    );
}

#[test]
fn every_row_states_a_difference_and_the_specification_has_the_figures() {
    let Some(comparison) = comparison() else {
        return;
    };
    let figures = comparison.figures.join("\n");
    eprintln!("{}\n{figures}", comparison.table.as_text());
    let rows = read_rows();
    let found = comparison.found.iter();
    let shown = found.filter_map(|one| find_row(&rows, one.section, &one.difference));
    let shown: BTreeSet<&str> = shown.map(|row| row.line).collect();
    let idle = rows
        .iter()
        .filter(|row| row.is_shown && !shown.contains(row.line));
    let mut wrong: Vec<String> = idle
        .map(|row| format!("no case shows {}", row.line))
        .collect();
    let page = include_str!("../../../../../docs/specification.md");
    let unsaid = comparison.figures.iter().filter(|one| !page.contains(*one));
    wrong.extend(unsaid.map(|one| format!("docs/specification.md does not say: {one}")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_row_has_its_reason() {
    let page = include_str!("../../../../../docs/compat.md");
    for row in read_rows() {
        let start = format!("\n| `{}` |", row.topic);
        assert!(
            page.contains(&start),
            "docs/compat.md has no row for {}",
            row.line
        );
    }
}

#[test]
fn the_laws_of_expansion_hold_for_every_case() {
    let Some(folder) = std::env::var_os("KCTL_KOPS_FIXTURES") else {
        return;
    };
    for case in case_folders(&Path::new(&folder).join("update_cluster")) {
        let read = read_case(&case, ReadOptions::AS_STORED).and_then(checked);
        if let Ok((cluster, groups)) = read {
            crate::expand::laws::assert_laws(&cluster, &groups, &kops_facts());
        }
    }
}

/// True of an error that docs/compat-cases.md states.
pub fn is_stated_refusal(problem: &Problem) -> bool {
    find_row(&read_rows(), REFUSED, &refusal_of(problem)).is_some()
}

fn refusals(problems: &[Problem]) -> Vec<Difference> {
    problems.iter().map(refusal_of).collect()
}

fn refusal_of(problem: &Problem) -> Difference {
    refused(format!("{}: {}", problem.path, problem.message))
}

fn refused(place: String) -> Difference {
    Difference {
        place,
        ours: Some("refused".into()),
        theirs: Some("made".into()),
    }
}

fn case_folders(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the cases");
    let mut all: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    all.sort();
    all
}

fn case_name(case: &Path) -> String {
    let name = case.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn read_text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

type CaseSpec = (Cluster, Vec<InstanceGroup>);

fn read_case(case: &Path, options: ReadOptions) -> Result<CaseSpec, Vec<Problem>> {
    // kOps' tests keep state in memory and stand buckets of other names in for it; ours is one bucket.
    let text = read_text(&case.join("in.yaml")).replace("memfs://", "s3://state/");
    let (mut cluster, mut groups) = (None, Vec::new());
    for document in read_documents_with("in.yaml", &text, options)? {
        match document.object {
            Object::Cluster(one) => cluster = Some(one),
            Object::InstanceGroup(one) => groups.push(one),
            _ => {}
        }
    }
    Ok((cluster.expect("a cluster"), groups))
}

fn checked((cluster, groups): CaseSpec) -> Result<CaseSpec, Vec<Problem>> {
    let found = validate(&ClusterInput {
        cluster: &cluster,
        instance_groups: &groups,
        ssh_keys: &[],
    });
    let errors: Vec<Problem> = found.into_iter().filter(Problem::is_error).collect();
    if errors.is_empty() {
        Ok((cluster, groups))
    } else {
        Err(errors)
    }
}

/// What a case's spec comes to.
fn expand_case(case: &Path, options: ReadOptions) -> Result<Expanded, Vec<Problem>> {
    let (cluster, groups) = read_case(case, options).and_then(checked)?;
    let keys = [read_text(&case.join("id_rsa.pub"))];
    expand(&cluster, &groups, &keys, &kops_facts(), &Catalog::default())
}
