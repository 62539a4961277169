//! docs/behaviours.md says where the behaviours of kOps, RKE and RKE2 are: the paths, tests and pages that it names are there.

use crate::documented_commands::collect_texts;
use crate::kctl::repository_folder;
use std::collections::BTreeSet;

/// How many rows each table has. A row with another number of cells is none.
const TABLES: [usize; 5] = [26, 34, 38, 25, 15];

/// Folders of sources and tests.
const SOURCES: [&str; 10] = [
    "aws",
    "cli",
    "etcd",
    "host",
    "kube-drain",
    "model",
    "nodeup",
    "protokube",
    "templates",
    "tests",
];

/// A row of a table.
struct Row<'a> {
    number: usize,
    /// Where the behaviour is in kctl.
    here: &'a str,
    /// The tests that show it.
    shown_by: &'a str,
}

fn read_row(line: &str) -> Option<Row<'_>> {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let ["", number, _, here, shown_by, ""] = cells[..] else {
        return None;
    };
    Some(Row {
        number: number.parse().ok()?,
        here,
        shown_by,
    })
}

/// Paths of sources between backticks.
fn named_paths(text: &str) -> Vec<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    let is_path = |word: &&str| {
        let folder = word.split_once('/').map(|(folder, _)| folder);
        folder.is_some_and(|folder| SOURCES.contains(&folder))
    };
    quoted.filter(is_path).collect()
}

/// Pages that links lead to.
fn linked_pages(text: &str) -> Vec<&str> {
    let links = text.split("](").skip(1);
    let pages = links.filter_map(|rest| rest.split([')', '#']).next());
    pages.collect()
}

/// Names of the tests in a source.
fn test_names(source: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim) {
        is_test |= line == "#[test]" || line.starts_with("#[tokio::test");
        let function = line.strip_prefix("async ").unwrap_or(line);
        if let Some(signature) = function.strip_prefix("fn ") {
            let name = signature.split(['(', '<']).next();
            names.extend(name.filter(|_| is_test));
            is_test = false;
        }
    }
    names
}

fn all_tests() -> BTreeSet<String> {
    let mut paths = Vec::new();
    for folder in SOURCES {
        collect_texts(&repository_folder().join(folder), &mut paths);
    }
    let mut tests = BTreeSet::new();
    for path in paths {
        let source = std::fs::read_to_string(path).expect("text");
        tests.extend(test_names(&source).into_iter().map(str::to_owned));
    }
    tests
}

/// Commands are checked with those of all pages.
#[test]
fn all_that_the_page_of_behaviours_names_is_there() {
    let docs = repository_folder().join("docs");
    let page = std::fs::read_to_string(docs.join("behaviours.md")).expect("the page");
    let rows: Vec<Row<'_>> = page.lines().filter_map(read_row).collect();
    let numbers: Vec<usize> = rows.iter().map(|row| row.number).collect();
    let expected: Vec<usize> = TABLES.into_iter().flat_map(|last| 1..=last).collect();
    assert_eq!(numbers, expected);

    let tests = all_tests();
    let mut wrong = Vec::new();
    for Row { here, shown_by, .. } in &rows {
        let (paths, pages) = (named_paths(here), linked_pages(here));
        let is_missing = here.starts_with("**Missing**");
        if !is_missing && paths.is_empty() && pages.is_empty() && !here.contains("`kctl ") {
            wrong.push(format!(
                "{here:?} says neither where nor that it is missing"
            ));
        }
        if !is_missing && !here.starts_with("**Otherwise**") && shown_by.is_empty() {
            wrong.push(format!("nothing shows {here:?}"));
        }
        let gone = paths
            .iter()
            .filter(|path| !repository_folder().join(path).exists());
        wrong.extend(gone.map(|path| format!("{path} does not exist")));
        let gone = pages.iter().filter(|page| !docs.join(page).exists());
        wrong.extend(gone.map(|page| format!("the page {page} does not exist")));
        let shown_by = shown_by.split(", ").filter(|one| !one.is_empty());
        let unknown = shown_by.filter(|one| !tests.contains(one.trim_matches('`')));
        wrong.extend(unknown.map(|one| format!("{one} is no test")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn tests_are_told_from_other_functions() {
    let source = "#[test]\n#[ignore = \"long\"]\nfn one() {}\nfn two() {}\n  #[tokio::test]\n  async fn three<T>() {}";
    assert_eq!(test_names(source), ["one", "three"]);
}
