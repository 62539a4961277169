//! `kctl report`: what the page shows, that nothing in it is markup but kctl's own, and that it says what other commands say.

mod browser;
mod sample;

use crate::instances::Cluster;
use crate::scenario::{NAME, REGION};
use cli::ui::report::render;
use fleet::Membership;
use node::digest::to_hex;
use sample::{large_report, small_report};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// A text as somebody would write it who wants to be more than text.
fn hostile(text: &str) -> String {
    format!("{text}\"'><script>attacked=1</script><img src=x onerror=attacked=1>&lt;b&#62;\u{202e}")
}

/// What escaping does to a text.
fn shown(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let text = text.replace('>', "&gt;").replace('"', "&quot;");
    text.replace('\'', "&#39;").replace('\u{202e}', " ")
}

/// The text that a reader sees, a line for each paragraph, item or row.
fn visible_text(html: &str) -> String {
    let (_, main) = html.split_once("<main>").expect("a main part");
    let (main, _) = main.split_once("</main>").expect("its end");
    let mut text = String::new();
    for part in main.split('<').skip(1) {
        let (tag, said) = part.split_once('>').expect("the end of a tag");
        text.push_str(match tag {
            "/p" | "/li" | "/h1" | "/h2" | "/h3" | "/summary" | "/caption" | "/tr" => "\n",
            "/td" | "/th" => " | ",
            _ => "",
        });
        text.push_str(said);
    }
    let lines = text.lines().map(|line| line.trim_end_matches(" | "));
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    lines
        .join("\n")
        .replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

/// Elements and names of attributes: the page without its texts and without values of attributes.
fn markup(html: &str) -> String {
    let (mut markup, mut in_tag, mut in_value) = (String::new(), false, false);
    for character in html.chars() {
        match character {
            '<' if !in_value => in_tag = true,
            '"' if in_tag => in_value = !in_value,
            _ => {}
        }
        if in_tag && !in_value {
            markup.push(character);
        }
        if character == '>' && !in_value {
            in_tag = false;
        }
    }
    markup
}

/// The page without what is folded.
fn without_folded(html: &str) -> String {
    let mut open = String::new();
    for part in html.split("<details ") {
        let Some((inside, after)) = part.split_once("</details>") else {
            open.push_str(part);
            continue;
        };
        let (attributes, _) = inside.split_once('>').expect("the end of a tag");
        if attributes.contains(" open=\"\"") {
            open.push_str(inside);
        }
        open.push_str(after);
    }
    open
}

#[test]
fn a_small_cluster_is_shown_with_its_problems_first() {
    let page = render(&small_report(str::to_owned), None);
    insta::assert_snapshot!("small", visible_text(&page.html));
}

#[test]
fn every_instance_is_up_to_date_if_there_are_some_and_those_of_warm_pools_are_too() {
    const DONE: &str = "Every instance is up to date.";
    let mut report = small_report(str::to_owned);
    report.locks.clear();
    let outdated = report.instances.last_mut().expect("an instance");
    outdated.instance.lifecycle = Some("Warmed:Stopped".to_owned());
    (outdated.membership, outdated.node) = (Membership::WarmPool, None);
    let html = render(&report, None).html;
    assert!(!html.contains(DONE) && html.contains("nodes-a: 1 of 2 up to date"));
    report.instances.pop();
    assert!(render(&report, None).html.contains(DONE));
    report.instances.clear();
    let html = render(&report, None).html;
    assert!(!html.contains(DONE) && html.contains("There are no instances."));
}

/// The law: whatever AWS, the cluster and users write, the page has the same elements.
#[test]
fn no_text_from_outside_becomes_markup() {
    for refresh in [None, Some(Duration::from_secs(5))] {
        let plain = render(&small_report(str::to_owned), refresh).html;
        let attacked = render(&small_report(hostile), refresh).html;
        assert_eq!(markup(&attacked), markup(&plain));
        assert!(!attacked.contains("<img") && !attacked.contains('\u{202e}'));
        let count = attacked.matches(&shown(&hostile(""))).count();
        assert!(count > 30, "{count} texts are shown");
    }
}

/// What stands in the page unescaped is what its policy names by digest, and the policy allows no other source.
#[test]
fn the_policy_of_a_page_allows_its_own_style_and_script_and_nothing_else() {
    let digest = |html: &str, name: &str| {
        let (_, code) = html.split_once(&format!("<{name}>"))?;
        let (code, _) = code.split_once(&format!("</{name}>"))?;
        Some(to_hex(&Sha256::digest(code)))
    };
    for refresh in [None, Some(Duration::from_secs(5))] {
        let page = render(&small_report(hostile), refresh);
        let meta = format!(
            "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">",
            shown(&page.policy)
        );
        assert!(page.html.contains(&meta));
        let mut sources: Vec<String> = vec!["'none'".to_owned(), "'self'".to_owned()];
        for name in ["style", "script"] {
            let found = digest(&page.html, name);
            let expected = name == "style" || refresh.is_some();
            assert_eq!(found.is_some(), expected, "{name}");
            sources.extend(found);
        }
        for directive in page.policy.split("; ") {
            let (name, source) = directive.split_once(' ').expect("a source");
            let source = match source.strip_prefix("'sha256-") {
                Some(base64) => decoded_hex(base64.trim_end_matches('\'')),
                None => source.to_owned(),
            };
            assert!(sources.contains(&source), "{name} {source}");
            assert_eq!(source == "'self'", name == "connect-src", "{directive}");
        }
        for forbidden in [" style=", " src=", " on"] {
            assert!(!markup(&page.html).contains(forbidden), "{forbidden}");
        }
        let mut links = page.html.split(" href=\"").skip(1);
        assert!(links.all(|link| link.starts_with('#')));
    }
}

fn decoded_hex(base64: &str) -> String {
    use base64::Engine;
    let bytes = base64::engine::general_purpose::STANDARD.decode(base64);
    to_hex(&bytes.expect("base64"))
}

#[test]
fn of_three_hundred_instances_those_with_a_problem_are_open_and_the_others_folded() {
    let report = large_report(300);
    let html = render(&report, None).html;
    assert!(html.len() < 1 << 20, "{} bytes", html.len());
    let open = without_folded(&html);
    let mut failed = 0;
    for one in &report.instances {
        let id = &one.instance.id;
        let is_failed = one.boot.is_some();
        failed += usize::from(is_failed);
        assert!(html.contains(id));
        assert_eq!(open.contains(id), is_failed, "{id}");
    }
    assert_eq!(failed, 9);
    for group in ["nodes-a", "nodes-b", "nodes-c"] {
        let summary = "<summary>97 instances without a known problem</summary>";
        let folded = format!("<details id=\"group-{group}\">{summary}");
        assert!(html.contains(&folded), "{folded}");
    }
}

#[test]
fn a_page_says_what_other_commands_say() {
    let cluster = Cluster::new_cluster(2);
    cluster.report_boots(&[]);
    let api = cluster.start_api();
    let [well, failed] = &cluster.workers[..] else {
        panic!("{:?}", cluster.workers);
    };
    cluster.api_shows_joined(&api, &[well]);
    for (id, error) in [(well, None), (failed, Some("no space left on <device>"))] {
        let status = if error.is_some() {
            "failed"
        } else {
            "finished"
        };
        let report = json!({"format": 1, "instance": id, "cluster": NAME, "group": "nodes-eu-west-1a", "release": "0.1.0",
            "nodeConfig": "", "started": "2026-11-21T10:00:00Z", "changes": 3, "error": error,
            "stages": [{"name": "apply", "status": status, "seconds": 61.5}]});
        cluster.store_object(&format!("nodes/{id}.json"), &report.to_string());
    }
    let key = format!("clusters/{NAME}/nodes/{}.json", cluster.control_plane);
    let long = format!("boto('s3').put_object(Bucket='state', Key={key:?}, Body=70000 * 'x')");
    cluster.simulator.run_python(REGION, &long);
    let run = |words: &[&str]| {
        cluster
            .kctl
            .run(&[words, &["--api-server", &api.url]].concat())
    };
    let ran = run(&["report", NAME, "--html", "page.html"]);
    assert_eq!(ran.code, 0, "{}", ran.all_output());
    assert!(ran.out.is_empty() && ran.err.contains("wrote page.html"));
    let path = cluster.kctl.home_path("page.html");
    let mode = std::fs::metadata(&path).expect("the page").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let html = std::fs::read_to_string(&path).expect("the page");

    let parse = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let is_shown = |value: &Value| {
        let text = value.as_str();
        text.is_none_or(|text| html.contains(&shown(text)))
    };
    let validated = parse(&run(&["validate", NAME, "-o", "json"]).out);
    let found = validated["findings"].as_array().expect("a list");
    assert!(!found.is_empty());
    for found in found {
        let fields = ["name", "message", "next"];
        assert!(
            fields.iter().all(|field| is_shown(&found[*field])),
            "{found}"
        );
    }
    let listed = parse(&run(&["get", "instances", NAME, "-o", "json"]).expect_success());
    for one in listed.as_array().expect("a list") {
        let fields = ["id", "group", "zone", "machineType", "state"];
        assert!(fields.iter().all(|field| is_shown(&one[*field])), "{one}");
    }
    let log = ["get", "operations", "--name", NAME, "-o", "json"];
    let log = parse(&cluster.kctl.run(&log).expect_success());
    for operation in log.as_array().expect("a list") {
        assert!(is_shown(&operation["id"]), "{operation}");
    }
    // Of one that has joined too.
    assert!(html.contains("apply 1m01s; ") && html.contains("apply 1m01s failed; "));
    assert!(html.contains("no space left on &lt;device&gt;"));
    assert!(html.contains("has more than 65536 bytes, the limit of a boot report"));

    let ran = run(&["report", NAME, "--html", "/nowhere/page.html"]);
    assert_eq!(ran.code, 2, "{}", ran.all_output());
    assert!(ran.err.contains("name a file in a folder that is there"));
}
