//! What a user reads about a broken spec: each `broken_specs/NN-NAME.yaml` has its findings beside
//! it, in `NN-NAME.txt`. `UPDATE_GOLDEN=1 cargo test -p model --test broken_specs` rewrites them;
//! review the change like code. Tests run in their package's folder.

use std::path::{Path, PathBuf};

use model::read::{Problem, ReadOptions, Severity, read_documents, read_documents_with, render};
use model::validate::validate_documents;

fn specs() -> Vec<PathBuf> {
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

fn findings(path: &Path) -> Vec<Problem> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let text = std::fs::read_to_string(path).unwrap_or_default();
    match read_documents(&name, &text) {
        Ok(documents) => validate_documents(&documents),
        Err(problems) => problems,
    }
}

#[test]
fn the_findings_are_those_reviewed() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let files = specs();
    assert!(files.len() >= 20, "{} specs", files.len());
    let mut changed = Vec::new();
    for path in files {
        let text = render(&findings(&path));
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
    for path in specs() {
        let found = findings(&path);
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
    for path in specs() {
        let text = render(&findings(&path));
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
    }
}

#[test]
fn what_kctl_does_not_do_is_a_warning_where_that_is_allowed() {
    let path = specs()
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
    let path = specs()
        .into_iter()
        .find(|path| path.to_string_lossy().contains("name-too-long"))
        .unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.replace(".in-a-subdomain-that-is-rather-long-too", "");
    let documents = read_documents("spec.yaml", &text).unwrap();
    let name = "a-cluster-name-that-leaves-no-room-in-a-launch-template.example.com";
    assert!(text.contains(name) && format!("masters.{name}").len() > 64);
    assert_eq!(render(&validate_documents(&documents)), "");
}
