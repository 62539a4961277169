//! `kctl render` in full.

use crate::kctl::Kctl;
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
