//! `kctl render` in full.

use crate::kctl::{Kctl, repository_folder};
use std::collections::BTreeMap;
use std::path::Path;

fn read_tree(dir: &Path, under: &Path, into: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read_tree(&path, under, into);
        } else {
            let name = path
                .strip_prefix(under)
                .expect("below")
                .display()
                .to_string();
            into.insert(name, std::fs::read_to_string(&path).expect("text"));
        }
    }
}

fn render_files(kctl: &Kctl, zones: &str) -> BTreeMap<String, String> {
    let spec = kctl
        .run(&[
            "create",
            "cluster",
            "demo.example.com",
            "--zones",
            zones,
            "--dry-run",
        ])
        .expect_success();
    kctl.run_with(&["render", "-f", "-", "--out", "out"], &spec)
        .expect_success();
    let mut files = BTreeMap::new();
    read_tree(&kctl.home_path("out"), &kctl.home_path("out"), &mut files);
    files
}

#[test]
fn a_render_shows_everything_and_is_the_same_every_time() {
    let kctl = Kctl::new();
    let first = render_files(&kctl, "eu-west-1a");
    let names: Vec<&str> = first.keys().map(String::as_str).collect();
    insta::assert_snapshot!(names.join("\n"));
    assert!(first["README.md"].contains("stand_in: true"));
    assert_eq!(render_files(&kctl, "eu-west-1a"), first);
    assert!(first.values().all(|text| !text.contains("PRIVATE KEY")));
    // What an earlier render left and this one does not have is gone.
    assert!(
        render_files(&kctl, "eu-west-1b")
            .keys()
            .all(|name| !name.contains("eu-west-1a"))
    );
}

#[test]
fn user_data_is_small() {
    for (name, text) in render_files(&Kctl::new(), "eu-west-1a,eu-west-1b,eu-west-1c") {
        assert!(
            !name.ends_with("user-data.sh") || text.len() < 8 * 1024,
            "{name} has {} bytes",
            text.len()
        );
    }
}

#[test]
fn a_folder_of_somebody_elses_is_left_alone() {
    let kctl = Kctl::new();
    let spec = kctl
        .run(&[
            "create",
            "cluster",
            "demo.example.com",
            "--zones",
            "eu-west-1a",
            "--dry-run",
        ])
        .expect_success();
    std::fs::create_dir(kctl.home_path("out")).expect("a folder");
    kctl.write_file("out/mine", "");
    assert_eq!(
        kctl.run_with(&["render", "-f", "-", "--out", "out"], &spec)
            .code,
        2
    );
    assert!(kctl.home_path("out/mine").exists());
}

#[test]
fn facts_take_the_place_of_what_is_made_up() {
    let kctl = Kctl::new();
    let spec = kctl
        .run(&[
            "create",
            "cluster",
            "demo.example.com",
            "--zones",
            "eu-west-1a",
            "--dry-run",
        ])
        .expect_success();
    let image = "136693071363/debian-13-amd64-20260713-2537";
    let facts = kctl.write_file(
        "facts.yaml",
        &format!(
            "account: '111122223333'\npartition: aws\nimages:\n  {image}: {{id: ami-1, rootDevice: /dev/sda1, arch: amd64}}\n\
             instanceTypes:\n  t3.medium: {{arch: amd64}}\n"
        ),
    );
    kctl.run_with(
        &["render", "-f", "-", "--out", "out", "--facts", &facts],
        &spec,
    )
    .expect_success();
    let cloud = std::fs::read_to_string(kctl.home_path("out/cloud.json")).expect("text");
    assert!(cloud.contains("\"image_id\": \"ami-1\"") && cloud.contains("111122223333"));
    let readme = std::fs::read_to_string(kctl.home_path("out/README.md")).expect("text");
    assert!(readme.contains("stand_in: false"));
}

#[test]
fn the_facts_of_the_page_are_read_and_wrong_ones_lead_there() {
    const PAGE: &str = "docs/operations/render.md";
    let page = std::fs::read_to_string(repository_folder().join(PAGE)).expect("a page");
    let example = page.split("```yaml\n").nth(1).expect("an example");
    let example = example.split("```").next().expect("its end");
    let kctl = Kctl::new();
    let create = ["create", "cluster", "demo.example.com", "--dry-run"];
    let spec = kctl
        .run(&[&create[..], &["--zones", "eu-west-1a"]].concat())
        .expect_success();
    let render = |facts: &str| {
        let facts = kctl.write_file("facts.yaml", facts);
        let words = ["render", "-f", "-", "--out", "out", "--facts", &facts];
        kctl.run_with(&words, &spec)
    };
    render(example).expect_success();
    let cloud = std::fs::read_to_string(kctl.home_path("out/cloud.json")).expect("text");
    assert!(cloud.contains("111122223333"));
    let wrong = render(&format!("{example}machineTypes: {{}}\n"));
    assert_eq!(wrong.code, 2, "{}", wrong.err);
    assert!(wrong.err.contains(PAGE), "{}", wrong.err);
    // Without the first line, what is not among them does not exist.
    let told = example.split_once('\n').expect("more lines").1;
    let told = told.replace("t3.medium", "t3.large");
    let missing = render(&told);
    assert_eq!(missing.code, 2, "{}", missing.err);
    assert!(
        missing.err.contains("does not offer t3.medium"),
        "{}",
        missing.err
    );
}

#[test]
fn input_chooses_no_place_outside_the_folder_and_is_blamed_itself() {
    let kctl = Kctl::new();
    let spec = kctl
        .run(&[
            "create",
            "cluster",
            "demo.example.com",
            "--zones",
            "eu-west-1a",
            "--dry-run",
        ])
        .expect_success();
    let outside = kctl.home_path("x");
    let file =
        |path: &str| format!("  fileAssets:\n  - name: mine\n    path: {path}\n    content: x\n");
    let named = |name: &str| format!("  fileAssets:\n  - name: {name}\n    content: x\n");
    let hook =
        |name: &str| format!("  hooks:\n  - name: {name}\n    manifest: ExecStart=/bin/true\n");
    for (fields, said) in [
        (file("/../../../../x"), "spec.fileAssets[0].path"),
        (
            file(&format!("/../../../..{}", outside.display())),
            "spec.fileAssets[0].path",
        ),
        (file("/etc/agent.d/"), "spec.fileAssets[0].path"),
        (file("etc/agent"), "spec.fileAssets[0].path"),
        (named("../../../../../../x"), "spec.fileAssets[0].name"),
        (hook("../../x"), "spec.hooks[0].name"),
        (hook("kubelet.service"), "spec.hooks[0].name"),
        (file("/etc/crictl.yaml"), "/etc/crictl.yaml"),
        (file("/etc"), "/etc and below it"),
    ] {
        let spec = spec.replacen("spec:\n", &format!("spec:\n{fields}"), 1);
        let ended = kctl.run_with(&["render", "-f", "-", "--out", "out"], &spec);
        assert_eq!(ended.code, 2, "{fields}: {}", ended.err);
        assert!(ended.err.contains(said), "{fields}: {}", ended.err);
        assert!(
            !ended.err.contains("name a folder"),
            "{fields}: {}",
            ended.err
        );
        assert!(
            !kctl.home_path("out").exists() && !outside.exists(),
            "{fields}"
        );
    }
    let normal = spec.replacen(
        "spec:\n",
        &format!("spec:\n{}", file("//etc/./agent.d//x")),
        1,
    );
    kctl.run_with(&["render", "-f", "-", "--out", "out"], &normal)
        .expect_success();
    let written = "out/groups/nodes-eu-west-1a/files/etc/agent.d/x";
    assert!(kctl.home_path(written).exists());
}
