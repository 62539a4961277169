//! What a user reads about a broken spec: each `broken_specs/NN-NAME.yaml` has its findings beside
//! it, in `NN-NAME.txt`. `UPDATE_GOLDEN=1 cargo test --workspace --test all broken_specs` rewrites them;
//! review the change like code. Tests run in their package's folder.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cloud::facts::Facts;
use spec::api::Object;
use spec::catalog::Catalog;
use spec::expand::expand;

use spec::read::{
    Document, Problem, ReadOptions, Severity, read_documents, read_documents_with, render_problems,
};
use spec::validate::{locate_problems, open_access_warnings, validate_documents};

fn spec_files() -> Vec<PathBuf> {
    let folder = Path::new("tests/broken_specs");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml")
        })
        .collect();
    files.sort();
    files
}

/// What is found in a spec; where facts lie beside it in `NN-NAME.facts`, of a valid one also what its expansion finds.
fn findings_of_file(path: &Path) -> Vec<Problem> {
    findings_with(path, ReadOptions::default())
}

fn findings_with(path: &Path, options: ReadOptions) -> Vec<Problem> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let documents = match read_documents_with(&name, &text, options) {
        Ok(documents) => documents,
        Err(problems) => return problems,
    };
    let noticed = documents.iter().flat_map(|one| one.warnings.clone());
    let mut problems: Vec<Problem> = noticed.collect();
    problems.extend(validate_documents(&documents));
    problems.extend(access_warnings(&documents));
    if let Ok(facts) = std::fs::read_to_string(path.with_extension("facts"))
        && !problems.iter().any(Problem::is_error)
    {
        let facts: Facts = serde_saphyr::from_str(&facts).unwrap();
        problems.extend(expansion_findings(&documents, &facts));
    }
    problems
}

/// What commands that store a spec add to the findings.
fn access_warnings(documents: &[Document]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for document in documents {
        if let Object::Cluster(cluster) = &document.object {
            problems.extend(open_access_warnings(cluster));
        }
    }
    locate_problems(&mut problems, &documents.iter().collect::<Vec<_>>());
    problems
}

fn expansion_findings(documents: &[Document], facts: &Facts) -> Vec<Problem> {
    let (mut clusters, mut groups, mut keys) = (Vec::new(), Vec::new(), Vec::new());
    for document in documents {
        match document.object.clone() {
            Object::Cluster(cluster) => clusters.push(cluster),
            Object::InstanceGroup(group) => groups.push(group),
            Object::SSHCredential(key) => keys.push(key.spec.public_key),
            Object::Keyset(_) => {}
        }
    }
    let catalog = Catalog::embedded().unwrap();
    let mut problems = match expand(&clusters[0], &groups, &keys, facts, &catalog) {
        Ok(expanded) => expanded.warnings,
        Err(problems) => problems,
    };
    locate_problems(&mut problems, &documents.iter().collect::<Vec<_>>());
    problems
}

/// Rules that no spec file reaches, by a piece of the line that tells of it, each with the reason.
const UNREACHED: &[(&str, &str)] = &[
    (
        "remove it, and back up the cluster's folder of the state store",
        "only a kctl that runs with the FIPS module asks this rule: fips.rs",
    ),
    (
        "shorten the name or the label that it is made of",
        "tags of what belongs to no group are made of the cluster's name and labels, whose lengths are checked before",
    ),
    (
        "report it: the addons could not be built",
        "the templates of addons always have a form",
    ),
    (
        "format!(\"{text:?} is not a range of ports\")",
        "validation refuses it: kubeAPIServer in components.rs",
    ),
    ("hint); } version }", "validation refuses it: versions.rs"),
    (
        "\"a volume needs a size\"",
        "validation refuses it: volumes.rs",
    ),
    (
        "format!(\"{text:?} is not a duration\")",
        "validation refuses it: values.rs",
    ),
    (
        "findings.add_group_error(group, path, message, \"name a subnet of the cluster\")",
        "validation refuses it: instance_groups.rs",
    ),
    (
        "\"a group needs a role\"",
        "validation refuses it: instance_groups.rs",
    ),
    (
        "findings.add_group_error(group, \"spec.kubelet\", error.to_string()",
        "a kubelet section always has a JSON form",
    ),
    (
        "findings.add_group_error(group, \"spec.containerd\", error.to_string()",
        "a containerd section always has a JSON form",
    ),
    (
        "findings.add_error(path, message, \"correct its fields\")",
        "the settings of a component always have a JSON form",
    ),
    (
        "findings.add_group_error(group, \"spec.fileAssets\", message, &hint)",
        "validation refuses it: host.rs",
    ),
    (
        "findings.add_group_error(group, \"spec.hooks\", message, &hint)",
        "validation refuses it: hooks.rs",
    ),
    (
        "\"spec.hooks\", format!(\"{name}: {error}\")",
        "a hook that validation lets through renders: host.rs",
    ),
    (
        "findings.add_error(\"spec.masterKubelet\", error.to_string()",
        "a kubelet section always has a JSON form",
    ),
    (
        "format!(\"this is not JSON: {error}\")",
        "validation refuses it: iam.rs",
    ),
    (
        "\"a subnet needs a zone\"",
        "validation refuses it: subnets.rs",
    ),
    (
        "\"a cluster needs a subnet\"",
        "validation refuses it: subnets.rs",
    ),
    (
        "findings.add_error(path, message, \"write it as 172.20.0.0/16\")",
        "validation refuses it: network.rs",
    ),
    (
        "\"this is not a range\"",
        "validation refuses it: network.rs",
    ),
    (
        "\"a range is needed here\"",
        "validation refuses it: network.rs",
    ),
    (
        "findings.add_error(path, message, hint); return None; }",
        "validation refuses it: ipv6.rs",
    ),
    (
        "\"an address is needed here\"",
        "validation refuses it: network.rs",
    ),
    (
        "\"the cluster's SSH key is not an OpenSSH public key\"",
        "validation refuses it: ssh_keys.rs",
    ),
    (
        "findings.add_error(PATH, message, \"use a state store in S3",
        "the bundle is read before: bundle.rs",
    ),
    (
        "findings.add_error(PATH, message, MAKE)",
        "the bundle is read before: bundle.rs",
    ),
    (
        "findings.add_error(PATH, message, OUTSIDE)",
        "the bundle is read before: bundle.rs",
    ),
    (
        "\"pass the spec file itself\"",
        "a file of 4 MiB: limits.rs",
    ),
    (
        "Err(Box::new(Problem::error(path, message)",
        "its callers are the rules",
    ),
    (
        "Problem::error(\"\", message) .hint(\"look for a long text",
        "a file of megabytes: limits.rs",
    ),
    (
        "Problem::error(\"\", \"the file is larger than any spec\") .hint(\"pass the objects",
        "a file of 100,000 values: limits.rs",
    ),
];

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let inside = std::fs::read_dir(folder).unwrap().flatten();
    let inside = inside.map(|entry| entry.path());
    let files = |path: PathBuf| match path.is_dir() {
        true => files_below(&path),
        false => vec![path],
    };
    inside.flat_map(files).collect()
}

/// The places in kctl's source where findings of the reader, of validation and of expansion are told.
fn rules_in_source() -> BTreeSet<(String, usize, String)> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap());
    let mut files: Vec<PathBuf> = ["read", "validate", "expand"]
        .iter()
        .flat_map(|area| {
            let folder = root.join("src").join(area);
            let own = folder.with_extension("rs");
            files_below(&folder).into_iter().chain([own])
        })
        .collect();
    // They make findings of what others tell them.
    files
        .retain(|file| !file.ends_with("read/problem.rs") && !file.ends_with("expand/findings.rs"));
    let told = [
        " refused(",
        "Problem::error(",
        "Problem::warning(",
        ".add_error(",
        ".add_warning(",
        ".add_group_error(",
        ".add_group_warning(",
    ];
    let mut rules = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let text = text
            .split("#[cfg(test)]")
            .next()
            .unwrap_or_default()
            .to_owned();
        let name = file.strip_prefix(&root).unwrap().display().to_string();
        let lines = text.lines().enumerate();
        let telling = lines.filter(|(_, line)| told.iter().any(|call| line.contains(call)));
        rules.extend(telling.map(|(index, _)| {
            let around: Vec<&str> = text.lines().skip(index).take(4).map(str::trim).collect();
            (name.clone(), index + 1, around.join(" "))
        }));
    }
    rules
}

#[test]
fn every_rule_has_a_broken_spec() {
    // What kctl does not do is refused before anything else is looked at, unless that is allowed.
    let reached: BTreeSet<(String, usize)> = spec_files()
        .iter()
        .flat_map(|path| {
            [false, true]
                .map(|allow_unsupported| findings_with(path, ReadOptions { allow_unsupported }))
        })
        .flatten()
        .map(|problem| {
            let file = problem.rule.file();
            let file = file.strip_prefix("model/spec/").unwrap_or(file).to_owned();
            (file, problem.rule.line() as usize)
        })
        .collect();
    let rules = rules_in_source();
    assert!(rules.len() > 200, "{} rules", rules.len());
    let excused = |text: &str| UNREACHED.iter().any(|(piece, _)| text.contains(piece));
    let (mut missing, mut stale) = (Vec::new(), Vec::new());
    for (file, line, text) in &rules {
        match (reached.contains(&(file.clone(), *line)), excused(text)) {
            (false, false) => missing.push(format!("{file}:{line}: {text}")),
            (true, true) => stale.push(format!("{file}:{line}: is reached")),
            _ => {}
        }
    }
    let known = |piece: &str| rules.iter().any(|(.., text)| text.contains(piece));
    let gone = UNREACHED.iter().filter(|(piece, _)| !known(piece));
    stale.extend(gone.map(|(piece, _)| format!("no rule says {piece:?}")));
    assert!(
        missing.is_empty() && stale.is_empty(),
        "{} of {} without a broken spec:\n{}\n{}",
        missing.len(),
        rules.len(),
        missing.join("\n"),
        stale.join("\n")
    );
}

#[test]
fn the_findings_are_those_reviewed() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let files = spec_files();
    assert!(files.len() >= 20, "{} specs", files.len());
    let mut changed = Vec::new();
    for path in files {
        let text = render_problems(&findings_of_file(&path));
        let golden = path.with_extension("txt");
        if update {
            std::fs::write(&golden, &text).unwrap();
        } else if std::fs::read_to_string(&golden).unwrap_or_default() != text {
            changed.push(format!("{}:\n{text}", path.display()));
        }
    }
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}

#[test]
fn every_finding_says_where_why_and_what_next() {
    for path in spec_files() {
        let found = findings_of_file(&path);
        assert!(!found.is_empty(), "{} is not broken", path.display());
        for problem in found {
            let place = problem
                .place
                .as_ref()
                .unwrap_or_else(|| panic!("no place: {}", problem.render()));
            assert!(place.line > 0 && place.column > 0, "{}", problem.render());
            assert!(!problem.message.is_empty(), "{}", problem.render());
            assert!(problem.hint.is_some(), "no next step: {}", problem.render());
        }
    }
}

#[test]
fn no_finding_sends_control_characters_to_the_terminal() {
    for path in spec_files() {
        let text = render_problems(&findings_of_file(&path));
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
    }
}

#[test]
fn what_kctl_does_not_do_is_a_warning_where_that_is_allowed() {
    let path = spec_files()
        .into_iter()
        .find(|path| path.to_string_lossy().contains("not-done-by-kctl"))
        .unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let refused = read_documents("spec.yaml", &text).unwrap_err();
    let options = ReadOptions {
        allow_unsupported: true,
    };
    let documents = read_documents_with("spec.yaml", &text, options).unwrap();
    let warnings: Vec<&Problem> = documents
        .iter()
        .flat_map(|document| &document.warnings)
        .collect();
    let paths = |problems: &[&Problem]| {
        problems
            .iter()
            .map(|problem| problem.path.clone())
            .collect::<Vec<_>>()
    };
    let mut allowed = paths(&warnings);
    let mut named = paths(&refused.iter().collect::<Vec<_>>());
    allowed.sort();
    named.sort();
    assert_eq!(allowed, named);
    assert!(
        warnings
            .iter()
            .all(|problem| problem.severity == Severity::Warning)
    );
}

#[test]
fn a_cluster_name_too_long_for_a_role_is_no_mistake_since_the_role_is_cut_as_in_kops() {
    let path = spec_files()
        .into_iter()
        .find(|path| path.to_string_lossy().contains("name-too-long"))
        .unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.replace(".in-a-subdomain-that-is-rather-long-too", "");
    let documents = read_documents("spec.yaml", &text).unwrap();
    let name = "a-cluster-name-that-leaves-no-room-in-a-launch-template.example.com";
    assert!(text.contains(name) && format!("masters.{name}").len() > 64);
    assert_eq!(render_problems(&validate_documents(&documents)), "");
}
