//! Laws of reading objects of users.

use super::*;
use serde_json::json;

fn refusal(text: &str) -> Unreadable {
    read_own_objects("FILE", text).expect_err(text)
}

/// Texts that are refused, the line that is named, and why.
const REFUSED: &[(&str, usize, &str)] = &[
    (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: n}\n",
        1,
        "ConfigMap: metadata.name is no text",
    ),
    ("- a\n", 1, "a document is not an object"),
    ("kind: ConfigMap\n", 1, "the object has no apiVersion"),
    ("# x\n\napiVersion: v1\n", 3, "the object has no kind"),
    (
        "apiVersion: v1\nkind: ConfigMap\n",
        1,
        "ConfigMap has no metadata.name",
    ),
    (
        "apiVersion: v1\nkind: A/b\nmetadata: {name: a}\n",
        1,
        "\"A/b\" is not the name of a kind",
    ),
    (
        "apiVersion: v1\nkind: A\nmetadata: {name: a/../b}\n",
        1,
        "\"a/../b\" is not the name of an object",
    ),
    (
        "apiVersion: v1\nkind: A\nmetadata: {name: ..}\n",
        1,
        "\"..\" is not the name of an object",
    ),
    (
        "apiVersion: v1\nkind: A\nmetadata: {name: a, namespace: ../b}\n",
        1,
        "A a: metadata.namespace is not a name",
    ),
    (
        "apiVersion: v1\nkind: A\nmetadata: {name: a, labels: {b: 1}}\n",
        1,
        "A a: metadata.labels has a value that is no text",
    ),
    (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {b: '*'}\n",
        1,
        "Secret a: data has a value that is not base64",
    ),
    (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {b: 1}\n",
        1,
        "Secret a: stringData has a value that is no text",
    ),
    ("apiVersion: v1\nkind: List\n", 1, "the list has no items"),
    (
        "apiVersion: kops.k8s.io/v1alpha2\nkind: Cluster\nmetadata: {name: a}\n",
        1,
        "Cluster of kops.k8s.io/v1alpha2 is no object of a cluster's API",
    ),
    (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n",
        1,
        "KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1 configures a component, and is no object of a cluster's API",
    ),
];

#[test]
fn what_cannot_be_applied_is_refused_with_place_cause_and_next_step() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    for (text, line, why) in REFUSED.iter().copied() {
        for (before, lines) in [(String::new(), 0), (format!("{map}---\n"), 3)] {
            let said = refusal(&format!("{before}{text}"));
            let more = usize::from(lines > 0);
            assert_eq!(
                said.place,
                format!("FILE, line {}", line + lines + more),
                "{text}"
            );
            assert_eq!(said.why, why);
            assert!(!said.next_step.is_empty());
        }
    }
    let said = refusal(&format!("{map}---\napiVersion: v1\na: [\n"));
    assert!(said.place.starts_with("FILE, line "), "{said}");
}

#[test]
fn an_error_shows_no_value() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {b: hunter2\n";
    for text in [
        secret,
        &format!("{secret}}}\nstringData: {{}}\n"),
        &secret.replace('{', "["),
    ] {
        let said = refusal(text);
        assert!(
            !format!("{said} {}", said.next_step).contains("hunter2"),
            "{said}"
        );
    }
}

#[test]
fn lists_are_their_objects_and_empty_documents_are_nothing() {
    let text = "---\n---\n# nothing\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: a}}\n- {apiVersion: v1, kind: A, metadata: {name: b}}\n";
    let read = read_own_objects("FILE", text).unwrap();
    let names: Vec<&Value> = read
        .iter()
        .map(|own| &own.object["metadata"]["name"])
        .collect();
    assert_eq!(names, [&json!("a"), &json!("b")]);
    assert_eq!(read_own_objects("FILE", "").unwrap(), []);
}

#[test]
fn objects_of_users_leave_the_text_of_a_spec_and_every_line_stays_where_it_was() {
    let spec = "apiVersion: kops.k8s.io/v1alpha2\nkind: Cluster\nmetadata: {name: c}\n";
    let own = "--- # mine\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: |\n    --- not a document\n";
    let last = "---\nkind: InstanceGroup\napiVersion: kops.k8s.io/v1alpha2\n";
    let (rest, found) = split_own_objects("FILE", &format!("{spec}{own}{last}")).unwrap();
    assert_eq!(
        rest,
        format!("{spec}{}{last}", "\n".repeat(own.lines().count()))
    );
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].place, "FILE, line 5");
    assert_eq!(found[0].object["data"]["x"], json!("--- not a document\n"));
    // What has no API version, or cannot be parsed, is left to the reader of specs.
    for text in ["kind: Cluster\n", "a: [\n", ""] {
        assert_eq!(
            split_own_objects("FILE", text).unwrap(),
            (text.to_owned(), Vec::new())
        );
    }
}

#[test]
fn any_text_leads_to_objects_or_an_error() {
    let parts = [
        "apiVersion",
        ": ",
        "v1",
        "\n",
        "kind",
        "Secret",
        "---",
        "- ",
        "{",
        "}",
        "[",
        "]",
        "&a ",
        "*a",
        "!!binary ",
        "|",
        "\u{feff}",
        "\u{0}",
        "é",
        "  ",
        "'",
        "\"",
        "metadata",
        "name",
        "data",
        "List",
        "items",
        "%YAML",
    ];
    let mut state = 1_u64;
    let mut next = |most: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % most
    };
    for _ in 0..20_000 {
        let text: String = (0..next(24)).map(|_| parts[next(parts.len())]).collect();
        let _ = read_own_objects("FILE", &text);
        let _ = split_own_objects("FILE", &text);
        let _ = hide_secrets(&text);
    }
    let deep = format!(
        "apiVersion: v1\nkind: A\nmetadata: {{name: a}}\nx: {}",
        "[".repeat(5_000)
    );
    assert!(read_own_objects("FILE", &deep).is_err());
}

#[test]
fn what_a_secret_holds_is_not_shown() {
    let text = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {b: hunter2}\ndata: {c: aHVudGVyMg==}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {c: d}\n";
    let shown = hide_secrets(text).unwrap();
    assert!(
        !shown.contains("hunter2") && !shown.contains("aHVudGVyMg"),
        "{shown}"
    );
    assert!(shown.contains("c: d"), "{shown}");
    assert_eq!(
        hide_secrets("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"),
        None
    );
}

#[test]
fn a_namespace_does_not_make_another_object_of_a_kind_that_has_none() {
    let key = |namespace: Value| {
        ObjectKey::of(
            &json!({"apiVersion": "x.io/v1", "kind": "A", "metadata": {"name": "a", "namespace": namespace}}),
        )
    };
    let (none, default, own) = (key(json!(null)), key(json!("default")), key(json!("own")));
    assert!(own.is_the_same(&none) && none.is_the_same(&default) && default.is_the_same(&none));
    assert!(!own.is_the_same(&default) && !none.is_the_same(&own));
}
