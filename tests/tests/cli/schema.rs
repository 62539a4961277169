//! `kctl schema` and the reader say the same of every object. The validator is Python's jsonschema, which moto brings into the
//! simulator's environment.

use crate::kctl::{Kctl, repository_folder};
use crate::toolbox::files_below;
use serde_json::{Value, json};
use spec::field::{Field, objects};
use spec::read::read_documents;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Prints for each object whether it is valid.
const VALIDATE: &str = "\
import json, sys, jsonschema
given = json.load(sys.stdin)
jsonschema.Draft202012Validator.check_schema(given['schema'])
validator = getattr(jsonschema, given['draft'])(given['schema'])
print(json.dumps([validator.is_valid(one) for one in given['objects']]))
";

/// What each object is by the schema; `draft`: by whose rules it is read.
fn verdicts(objects: &[Value], draft: &str) -> Vec<bool> {
    let schema = Kctl::new().run(&["schema"]).expect_success();
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    let venv = Command::new(repository_folder().join("tests/simulator/venv.sh")).output();
    let venv = String::from_utf8(venv.expect("Python").stdout).expect("a path");
    let python = Command::new(PathBuf::from(venv.trim()).join("bin/python"))
        .args(["-c", VALIDATE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut python = python.expect("Python");
    let given = json!({ "schema": schema, "draft": draft, "objects": objects });
    let mut stdin = python.stdin.take().expect("its input");
    stdin
        .write_all(given.to_string().as_bytes())
        .expect("the objects");
    drop(stdin);
    let ended = python.wait_with_output().expect("its end");
    assert!(ended.status.success(), "{draft}");
    let verdicts: Vec<bool> = serde_json::from_slice(&ended.stdout).expect("verdicts");
    assert_eq!(verdicts.len(), objects.len());
    verdicts
}

/// What it is by the reader.
fn is_read(object: &Value) -> bool {
    read_documents("object.json", &object.to_string()).is_ok()
}

/// An object with a value in one place.
fn object_with(kind: &str, path: &str, value: &Value) -> Value {
    let below = path.rsplit('.').fold(value.clone(), |below, step| {
        let name = step.trim_end_matches("[]");
        let lists = step.matches("[]").count();
        let value = (0..lists).fold(below, |value, _| json!([value]));
        json!({ name: value })
    });
    let mut object = json!({
        "apiVersion": "kops.k8s.io/v1alpha2", "kind": kind, "metadata": { "name": "a" }, "spec": {},
    });
    for (name, value) in below.as_object().expect("an object") {
        object[name] = value.clone();
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.entry("name").or_insert(json!("a"));
    }
    object
}

/// Values of every type, with what matters to this field.
fn samples(field: &Field) -> Vec<Value> {
    let any = [
        json!(null),
        json!(true),
        json!(7),
        json!(-1),
        json!(99_999_999_999_i64),
        json!(1.5),
        json!("text"),
        json!([]),
        json!(["text"]),
        json!([null]),
        json!({}),
        json!({ "a": "b" }),
        json!({ "a": 7 }),
        json!({ "enabled": false }),
    ];
    let words = field.choices().into_iter();
    let words = words.flat_map(|word| {
        [
            json!(word),
            json!([word.to_lowercase()]),
            json!(word.to_lowercase()),
        ]
    });
    let listed = [
        json!(false),
        json!(""),
        json!("False"),
        json!([{}]),
        json!({ "enabled": true }),
        json!("cilium"),
        json!("Leases"),
        json!("docker"),
        json!("kubedns"),
        json!("legacy"),
    ];
    let listed = listed.into_iter().filter(|_| !field.refusals.is_empty());
    any.into_iter().chain(words).chain(listed).collect()
}

#[test]
fn the_schema_takes_of_every_field_what_the_reader_takes() {
    let objects = objects();
    let mut all = Vec::new();
    for object in &objects {
        for field in object.below(true) {
            let samples = samples(field).into_iter();
            all.extend(samples.map(|value| object_with(&object.name, &field.path, &value)));
        }
    }
    assert!(all.len() > 10_000, "{} objects", all.len());
    let verdicts = verdicts(&all, "Draft202012Validator");
    let differ = all.iter().zip(verdicts);
    let differ = differ.filter(|(object, valid)| is_read(object) != *valid);
    let differ: Vec<String> = differ
        .map(|(object, valid)| format!("valid by the schema: {valid}: {object}"))
        .collect();
    let first: Vec<&str> = differ.iter().take(20).map(String::as_str).collect();
    assert!(differ.is_empty(), "{}:\n{}", differ.len(), first.join("\n"));
}

/// The spec files of the tests below a folder.
fn spec_files(folder: &Path, names: &[&str]) -> Vec<PathBuf> {
    let mut all = files_below(folder);
    all.retain(|path| {
        let name = path.to_string_lossy();
        names.iter().any(|end| name.ends_with(end))
    });
    all
}

/// The documents of a file, within the limits of the reader; `None` if it is not YAML.
fn documents_of(text: &str) -> Option<Vec<Value>> {
    let options = serde_saphyr::options! {
        budget: node::yaml::read_limits(),
        alias_limits: node::yaml::alias_limits(),
        with_snippet: false,
    };
    serde_saphyr::from_multiple_with_options(text, options).ok()
}

/// kOps' own specs are among them where `KCTL_KOPS_FIXTURES` names their folder.
#[test]
fn the_schema_takes_the_files_that_the_reader_takes_and_no_others() {
    let tests = repository_folder().join("model/spec/tests");
    let mut files = spec_files(&tests, &[".yaml"]);
    if let Some(fixtures) = std::env::var_os("KCTL_KOPS_FIXTURES") {
        let kops = ["in.yaml", "expected.yaml", "completed.yaml"];
        files.extend(spec_files(Path::new(&fixtures), &kops));
    }
    let (mut all, mut wanted) = (Vec::new(), Vec::new());
    for file in files {
        let text = std::fs::read_to_string(&file).expect("text");
        let taken = read_documents("file.yaml", &text).is_ok();
        let Some(documents) = documents_of(&text) else {
            assert!(!taken, "{}", file.display());
            continue;
        };
        for document in documents.into_iter().filter(|one| !one.is_null()) {
            // Files that are refused may have valid objects.
            wanted.push((taken || is_read(&document), file.clone()));
            all.push(document);
        }
    }
    let (valid, refused): (Vec<_>, Vec<_>) = wanted.iter().partition(|(valid, _)| *valid);
    assert!(valid.len() > 200 && refused.len() > 5);
    // Language servers of YAML read the schema as one of draft 7.
    for draft in ["Draft202012Validator", "Draft7Validator"] {
        let verdicts = verdicts(&all, draft).into_iter();
        for (is, (should, file)) in verdicts.zip(&wanted) {
            assert_eq!(is, *should, "{draft}: {}", file.display());
        }
    }
}

#[test]
fn a_schema_is_one_of_all_kinds_or_of_one() {
    let kctl = Kctl::new();
    let kinds = |words: &[&str]| {
        let schema = kctl.run(words).expect_success();
        let schema: Value = serde_json::from_str(&schema).expect("JSON");
        schema["properties"]["kind"]["enum"].clone()
    };
    let all = ["Cluster", "InstanceGroup", "SSHCredential", "Keyset"];
    assert_eq!(kinds(&["schema"]), json!(all));
    assert_eq!(
        kinds(&["schema", "--kind", "instancegroup"]),
        json!(["InstanceGroup"])
    );
}

/// The blocks of a page in one language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let mark = format!("```{language}\n");
    let begun = page.split(mark.as_str()).skip(1);
    begun.filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn the_page_about_editors_works_as_written() {
    let page = std::fs::read_to_string(repository_folder().join("docs/editors.md"));
    let page = page.expect("a page");
    let kctl = Kctl::new();
    let commands = blocks(&page, "sh").into_iter().flat_map(str::lines);
    let commands: Vec<&str> = commands.filter(|line| !line.is_empty()).collect();
    assert!(commands.len() > 3, "{commands:?}");
    for command in commands {
        let typed = command.split(['>', '#']).next().unwrap_or_default();
        let words: Vec<&str> = typed.split_whitespace().skip(1).collect();
        kctl.run(&words).expect_success();
    }
    let examples = blocks(&page, "yaml");
    let examples: Vec<Value> = examples
        .into_iter()
        .flat_map(|text| documents_of(text).expect("YAML"))
        .collect();
    assert!(!examples.is_empty());
    assert!(
        verdicts(&examples, "Draft7Validator")
            .into_iter()
            .all(|valid| valid)
    );
}
