//! A spec that is read and written says the same as before, and no text makes the reader panic.

use std::path::{Path, PathBuf};

use node::yaml::{to_yaml, to_yaml_documents};
use proptest::prelude::*;
use serde_json::Value;
use spec::read::{
    Document, ReadOptions, Severity, read_documents, read_documents_with, render_problems,
};
use spec::validate::validate_documents;

fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(yaml_files(&path));
        } else if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn sample_files() -> Vec<(String, String)> {
    let folder = Path::new("tests/specs");
    let name = |path: &Path| {
        path.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    yaml_files(folder)
        .iter()
        .map(|path| {
            (
                name(path),
                std::fs::read_to_string(path).unwrap_or_default(),
            )
        })
        .collect()
}

#[test]
fn what_is_written_as_kops_writes_it_comes_back_letter_by_letter() {
    let samples = sample_files();
    assert!(samples.len() >= 4);
    for (name, text) in samples {
        let documents = read_documents(&name, &text)
            .unwrap_or_else(|problems| panic!("{}", render_problems(&problems)));
        let objects: Vec<_> = documents
            .into_iter()
            .map(|document| document.object)
            .collect();
        assert_eq!(to_yaml_documents(&objects).unwrap(), text, "{name}");
    }
}

#[test]
fn the_samples_are_valid() {
    for (name, text) in sample_files() {
        let documents = read_documents(&name, &text)
            .unwrap_or_else(|problems| panic!("{}", render_problems(&problems)));
        let problems = validate_documents(&documents);
        assert!(problems.is_empty(), "{}", render_problems(&problems));
    }
}

#[test]
fn json_is_read_like_yaml() {
    for (name, text) in sample_files() {
        let documents = read_documents(&name, &text)
            .unwrap_or_else(|problems| panic!("{}", render_problems(&problems)));
        for document in documents {
            let json = serde_json::to_string_pretty(&document.object).unwrap();
            let tabs: Vec<String> = json.lines().map(tab_indented).collect();
            for text in [json, tabs.join("\n")] {
                let again = read_documents("spec.json", &text)
                    .unwrap_or_else(|problems| panic!("{}", render_problems(&problems)));
                assert_eq!(again.len(), 1);
                assert_eq!(again[0].object, document.object);
            }
        }
    }
}

fn tab_indented(line: &str) -> String {
    let bare = line.trim_start_matches(' ');
    format!("{}{bare}", "\t".repeat((line.len() - bare.len()) / 2))
}

/// kOps' own fixtures, where there is a copy of them: every one is read, or refused for nothing
/// but the features it uses; what is read is written back with the same meaning.
#[test]
fn kops_fixtures_keep_their_meaning() {
    let Some(folder) = std::env::var_os("KCTL_KOPS_FIXTURES") else {
        return;
    };
    let files = yaml_files(Path::new(&folder));
    // What kOps makes of its specs is compared elsewhere.
    let made = |path: &Path| path.components().any(|part| part.as_os_str() == "addons");
    let specs = files
        .iter()
        .filter(|path| !path.ends_with("options.yaml") && !path.ends_with("completed.yaml"))
        .filter(|path| !made(path));
    let mut read = 0;
    for path in specs {
        let text = std::fs::read_to_string(path).unwrap();
        let name = path.display().to_string();
        let options = ReadOptions {
            allow_unsupported: true,
        };
        let documents = read_documents_with(&name, &text, options)
            .unwrap_or_else(|problems| panic!("{}", render_problems(&problems)));
        let warnings = |documents: &[Document]| -> usize {
            documents.iter().map(|one| one.warnings.len()).sum()
        };
        let warned = warnings(&documents);
        match read_documents(&name, &text) {
            Ok(strictly) => assert_eq!(warned, warnings(&strictly), "{name}"),
            Err(problems) => assert_eq!(
                problems.len(),
                warned,
                "{name}: {}",
                render_problems(&problems)
            ),
        }
        let errors: Vec<_> = validate_documents(&documents)
            .into_iter()
            .filter(|problem| problem.severity == Severity::Error)
            .filter(|problem| !crate::kops::is_stated_refusal(problem))
            .collect();
        assert!(errors.is_empty(), "{}", render_problems(&errors));

        // What kOps wrote itself comes back letter by letter.
        if path.ends_with("expected.yaml") {
            let objects: Vec<_> = documents.iter().map(|document| &document.object).collect();
            assert_eq!(to_yaml_documents(&objects).unwrap(), text, "{name}");
        }
        let before: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        assert_eq!(before.len(), documents.len(), "{name}");
        for (before, document) in before.iter().zip(&documents) {
            let after: Value = serde_saphyr::from_str(&to_yaml(&document.object).unwrap()).unwrap();
            let mut before = before.clone();
            // kOps drops it too.
            before["spec"]
                .as_object_mut()
                .and_then(|spec| spec.remove("serviceOIDCProvider"));
            assert_eq!(parsed_meaning(&after), parsed_meaning(&before), "{name}");
            read += 1;
        }
    }
    assert!(read > 0, "no specs in {}", Path::new(&folder).display());
}

/// A value with all scalars as text and nothing that is empty, which is "not set" in a spec.
fn parsed_meaning(value: &Value) -> Value {
    match value {
        Value::Array(elements) => Value::Array(elements.iter().map(parsed_meaning).collect()),
        Value::Object(fields) => {
            let set = fields.iter().filter(|(_, value)| {
                !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty())
            });
            Value::Object(
                set.map(|(key, value)| (key.clone(), parsed_meaning(value)))
                    .collect(),
            )
        }
        Value::String(text) => Value::String(text.clone()),
        scalar => Value::String(scalar.to_string()),
    }
}

/// A sample with one stretch of it replaced.
fn mutate_text() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        Just(String::new()),
        "[ -~\n\t]{0,12}",
        ".{0,4}",
        Just("\n- ".to_owned()),
        Just(": &a [*a]".to_owned()),
        Just("\n---\n".to_owned()),
        Just("!!binary ".to_owned()),
        Just("<<: *x".to_owned()),
        Just("\"\u{1b}[2J".to_owned()),
        Just("\r\n\u{feff}\u{2028}".to_owned()),
        "[0-9]{1,40}",
    ];
    let sample = prop::sample::select(sample_files());
    (sample, any::<prop::sample::Index>(), 0usize..40, pieces).prop_map(
        |((_, text), start, length, piece)| {
            let start = start.index(text.chars().count());
            let before = text.chars().take(start);
            before
                .chain(piece.chars())
                .chain(text.chars().skip(start + length))
                .collect()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_reader_panic_and_every_finding_points_into_it(text in mutate_text()) {
        let problems = match read_documents("spec.yaml", &text) {
            Ok(documents) => validate_documents(&documents),
            Err(problems) => problems,
        };
        let lines = text.strip_prefix('\u{feff}').unwrap_or(&text).split('\n').count();
        for problem in &problems {
            if let Some(place) = &problem.place {
                prop_assert!(place.line <= lines + 1, "{}", problem.render());
            }
            prop_assert!(problem.hint.is_some(), "{}", problem.render());
            let shown = problem.render();
            prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{}", shown);
        }
    }

    #[test]
    fn what_is_read_is_read_the_same_after_it_is_written(text in mutate_text()) {
        let Ok(documents) = read_documents("spec.yaml", &text) else { return Ok(()) };
        for document in documents {
            let written = to_yaml(&document.object).unwrap();
            let again = read_documents("written.yaml", &written);
            let again = again.map_err(|problems| TestCaseError::fail(format!("{}\n{written}", render_problems(&problems))))?;
            prop_assert_eq!(again.len(), 1);
            prop_assert_eq!(&again[0].object, &document.object, "{}", written);
        }
    }

    #[test]
    fn any_text_at_all_is_an_object_or_a_finding(text in "(?s).{0,200}") {
        let _ = read_documents("spec.yaml", &text);
    }
}
