//! What programs read: its shape is written down in `docs/operations/json.md`, all of it.

use crate::kctl::{Kctl, repository_folder};
use crate::plans::stored_cluster;
use crate::simulator::Simulator;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Below these is what AWS or a user has, in its own words.
const FOREIGN: [&str; 6] = ["before", "after", "observed", "spec", "steps", "resource"];

/// Every name of a field, but for those in foreign values. A map's keys are no names: what its values have are.
fn collect_names(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                found.insert(name.clone());
                match (name.as_str(), value) {
                    // Ids and what is said of each: steps of plans and operations.
                    ("steps", Value::Object(steps)) => {
                        steps.values().for_each(|step| collect_names(step, found));
                    }
                    ("steps" | "spec", Value::Array(_)) => collect_names(value, found),
                    // The object as it was observed has fields of ours around AWS' own.
                    ("before", Value::Object(seen)) if seen.contains_key("physical") => {
                        found.extend(seen.keys().cloned());
                    }
                    (name, _) if FOREIGN.contains(&name) => {}
                    _ => collect_names(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_names(item, found)),
        _ => {}
    }
}

fn parse_lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON in each line"))
        .collect()
}

fn parse_one(text: &str) -> Value {
    serde_json::from_str(text).expect("one JSON document")
}

/// Documents and lines of every kind that kctl writes, from one cluster's life with a failure in it.
struct WrittenJson {
    documents: Vec<Value>,
    streams: Vec<Vec<Value>>,
    operations: Vec<Value>,
    plans: Vec<Value>,
}

fn written_json() -> WrittenJson {
    let simulator = Simulator::start_simulator();
    let kctl = stored_cluster(&simulator);
    let run = |words: &[&str]| kctl.run(words).out;
    let mut all = WrittenJson {
        documents: Vec::new(),
        streams: Vec::new(),
        operations: Vec::new(),
        plans: Vec::new(),
    };
    all.documents.push(parse_one(&run(&[
        "update",
        "--plan-out",
        "p.plan",
        "-o",
        "json",
    ])));
    all.documents.push(parse_one(&run(&[
        "update", "--plan", "p.plan", "-o", "json",
    ])));
    all.streams.push(parse_lines(&run(&[
        "update", "--plan", "p.plan", "-o", "events",
    ])));
    let fault = |times: u32, code: &str| {
        simulator.set_faults(&json!([{"service": "ec2", "operation": "CreateSubnet", "times": times, "code": code, "message": "no", "status": 400}]));
    };
    fault(1, "RequestLimitExceeded");
    all.streams.push(parse_lines(&run(&[
        "update", "--plan", "p.plan", "--yes", "-o", "events",
    ])));
    kctl.run(&[
        "edit",
        "ig",
        "nodes-eu-west-1a",
        "--set",
        "spec.maxSize=2",
        "--set",
        "spec.kubelet.maxPods=50",
    ])
    .expect_success();
    all.documents.push(parse_one(&run(&[
        "update", "--plan", "p.plan", "-o", "json",
    ])));
    all.streams.push(parse_lines(&run(&[
        "update", "--plan", "p.plan", "-o", "events",
    ])));
    all.plans.push(read_saved(&kctl, "p.plan"));
    kctl.run(&["update", "--plan-out", "q.plan"])
        .expect_success();
    all.plans.push(read_saved(&kctl, "q.plan"));
    simulator.set_faults(&json!([{"service": "ec2", "operation": "CreateLaunchTemplateVersion", "times": 9, "code": "VersionLimitExceeded", "message": "no", "status": 400}]));
    all.documents
        .push(parse_one(&run(&["update", "--yes", "-o", "json"])));
    all.streams
        .push(parse_lines(&run(&["update", "--yes", "-o", "events"])));
    simulator.set_faults(&json!([]));
    let operations = kctl.run(&["get", "operations", "-o", "json"]).out;
    all.operations = serde_json::from_str(&operations).expect("a list");
    all.streams.push(parse_lines(&run(&[
        "delete",
        "cluster",
        crate::scenario::NAME,
        "--yes",
        "-o",
        "events",
    ])));
    all
}

fn read_saved(kctl: &Kctl, file: &str) -> Value {
    parse_one(&std::fs::read_to_string(kctl.home_path(file)).expect("a plan"))
}

#[test]
fn every_field_that_is_written_is_documented_and_streams_are_whole() {
    let all = written_json();
    assert_documented(&all);
    assert_whole(&all.streams);
}

fn assert_documented(all: &WrittenJson) {
    let page = std::fs::read_to_string(repository_folder().join("docs/operations/json.md"))
        .expect("the page");
    let mut found = BTreeSet::new();
    let streams = all.streams.iter().flatten();
    for value in all
        .documents
        .iter()
        .chain(streams)
        .chain(&all.operations)
        .chain(&all.plans)
    {
        collect_names(value, &mut found);
    }
    let missing: Vec<&String> = found
        .iter()
        .filter(|name| !page.contains(&format!("`{name}`")))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/operations/json.md does not say what these are: {missing:?}"
    );
    // And the test saw what it is about.
    for name in [
        "because",
        "failure",
        "request_id",
        "in_ms",
        "fields",
        "moved",
        "stand_ins",
        "physical",
        "objects",
        "counts",
        "hints",
        "skipped",
    ] {
        assert!(
            found.contains(name),
            "{name} was in nothing that was written"
        );
    }
}

/// A stream begins with its format and ends with its end; every step that began ends, one way.
fn assert_whole(streams: &[Vec<Value>]) {
    for stream in streams {
        let (first, last) = (
            stream.first().expect("a line"),
            stream.last().expect("a line"),
        );
        assert_eq!(
            (&first["event"], &first["format"]),
            (&json!("begun"), &json!(1))
        );
        assert_eq!(last["event"], "ended");
        assert!(
            last["exit_code"].is_u64() && last["outcome"].is_string(),
            "{last}"
        );
        let mut times: Vec<&str> = stream
            .iter()
            .map(|line| line["time"].as_str().expect("a time"))
            .collect();
        let told = times.clone();
        times.sort_unstable();
        assert_eq!(told, times, "in order");
        // Every step that began ended, one way.
        let mut ends: BTreeMap<&str, usize> = BTreeMap::new();
        for line in stream {
            if ["done", "failed", "skipped"].contains(&line["event"].as_str().expect("an event")) {
                *ends
                    .entry(line["step"].as_str().expect("a step"))
                    .or_default() += 1;
            }
        }
        assert!(ends.values().all(|count| *count == 1), "{ends:?}");
        if let Some(applied) = stream.iter().find(|line| line["event"] == "applied") {
            let sum: u64 = ["done", "failed", "skipped"]
                .iter()
                .map(|name| applied[name].as_u64().expect("a number"))
                .sum();
            assert_eq!(sum, ends.len() as u64);
        }
    }
    let codes: Vec<&Value> = streams
        .iter()
        .filter_map(|stream| Some(&stream.last()?["exit_code"]))
        .collect();
    assert_eq!(
        codes,
        [&json!(0), &json!(0), &json!(4), &json!(1), &json!(0)]
    );
}

/// A value with what differs from run to run made alike.
fn normalized(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let alike = fields.iter().map(|(name, value)| {
                let told = match name.as_str() {
                    "time" | "made" | "created" | "by" | "physical" | "account" | "sha256"
                    | "request_id" | "store" => json!("..."),
                    name if name.ends_with("_ms") => json!(0),
                    _ => normalized(value),
                };
                (name.clone(), told)
            });
            Value::Object(alike.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(normalized).collect()),
        Value::String(text) => Value::from(crate::scenario::normalize_output(text)),
        other => other.clone(),
    }
}

#[test]
fn the_forms_are_these() {
    let simulator = Simulator::start_simulator();
    let kctl = stored_cluster(&simulator);
    kctl.run(&["update", "--yes"]).expect_success();
    kctl.run(&["edit", "ig", "nodes-eu-west-1a", "--set", "spec.maxSize=3"])
        .expect_success();
    let document = parse_one(
        &kctl
            .run(&["update", "--plan-out", "max.plan", "-o", "json"])
            .expect_success(),
    );
    insta::assert_json_snapshot!("json_document", normalized(&document));
    let mut file = normalized(&read_saved(&kctl, "max.plan"));
    // The object itself is AWS' business.
    let step = &mut file["plan"]["steps"][format!(
        "autoscaling_group/nodes-eu-west-1a.{}",
        crate::scenario::NAME
    )];
    step["before"]["resource"] = json!("...");
    step["after"] = json!("...");
    for (_, hash) in file["made_from"]["spec"].as_object_mut().expect("the spec") {
        *hash = json!("...");
    }
    for (_, id) in file["made_from"]["observed"]
        .as_object_mut()
        .expect("objects")
    {
        *id = json!("...");
    }
    file["made_from"]["completed"] = json!("...");
    insta::assert_json_snapshot!("json_saved_plan", file);
    let stream = parse_lines(
        &kctl
            .run(&["update", "--plan", "max.plan", "--yes", "-o", "events"])
            .expect_success(),
    );
    let stream: Vec<String> = stream
        .iter()
        .map(|line| normalized(line).to_string())
        .collect();
    insta::assert_snapshot!("json_events", stream.join("\n"));
}
