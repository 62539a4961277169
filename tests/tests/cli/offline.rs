//! What needs neither AWS nor a store.

use crate::kctl::Kctl;

const DRY_RUN: [&str; 6] = [
    "create",
    "cluster",
    "demo.example.com",
    "--zones",
    "eu-west-1a",
    "--dry-run",
];

fn dry_run(more: &[&str]) -> Vec<String> {
    DRY_RUN
        .iter()
        .chain(more)
        .map(|word| (*word).to_owned())
        .collect()
}

#[test]
fn a_dry_run_prints_the_spec_and_stores_nothing() {
    let kctl = Kctl::new();
    let ran = kctl.run(&DRY_RUN);
    insta::assert_snapshot!(ran.all_output());
    assert!(!kctl.home_path(".local").exists());
}

/// Whether the FIPS module runs is what the library says, in a build of either kind.
#[test]
fn a_version_says_whether_the_fips_module_runs() {
    let kctl = Kctl::new();
    let (version, fips) = (env!("CARGO_PKG_VERSION"), cfg!(feature = "fips"));
    let said = kctl.run(&["version"]).expect_success();
    let module = if fips { " (FIPS module)" } else { "" };
    assert_eq!(said, format!("kctl {version}{module}\n"));
    let said = kctl.run(&["version", "-o", "json"]).expect_success();
    let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    let wanted = serde_json::json!({"format": 1, "version": version, "fips": fips});
    assert_eq!(said, wanted);
}

#[test]
fn a_dry_run_in_json_is_one_document() {
    let words = dry_run(&["-o", "json"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let objects: serde_json::Value =
        serde_json::from_str(&Kctl::new().run(&words).expect_success()).expect("JSON");
    assert_eq!(objects[0]["kind"], "Cluster");
}

#[test]
fn deprecated_flags_of_kops_work_and_are_not_shown() {
    let kctl = Kctl::new();
    let flags = [
        ("--master-size", "--control-plane-size", "m5.large"),
        ("--vpc", "--network-id", "vpc-1"),
    ];
    for (old, new, value) in flags {
        let with = |flag: &str| {
            let words = dry_run(&[flag, value]);
            kctl.run(&words.iter().map(String::as_str).collect::<Vec<_>>())
                .expect_success()
        };
        assert_eq!(with(old), with(new));
        assert!(
            !kctl
                .run(&["create", "cluster", "--help"])
                .expect_success()
                .contains(old)
        );
    }
}

#[test]
fn everything_wrong_is_said_at_once_with_a_next_step() {
    let words = [
        "create",
        "cluster",
        "x.example.com",
        "--dry-run",
        "--networking",
        "kopeio",
        "--bastion",
    ];
    insta::assert_snapshot!(Kctl::new().run(&words).all_output());
}

#[test]
fn a_typo_in_a_field_is_an_error_with_the_nearest_name() {
    let words = dry_run(&["--set", "spec.sshAcess=10.0.0.0/8"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    insta::assert_snapshot!(Kctl::new().run(&words).all_output());
}

#[test]
fn what_only_kops_does_is_refused_with_the_reason() {
    for flag in [
        "--target=terraform",
        "--cloud=gce",
        "--instance-manager=karpenter",
    ] {
        let words = dry_run(&[flag]);
        let ran = Kctl::new().run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(ran.code, 2, "{flag}");
        assert!(
            ran.err.contains("kctl ") && ran.err.contains("hint: "),
            "{}",
            ran.err
        );
    }
}

#[test]
fn colour_is_there_when_asked_for_and_never_else() {
    let wrong = ["create", "cluster", "--dry-run"];
    let coloured = |kctl: &Kctl, words: &[&str]| kctl.run(words).err.contains('\x1b');
    assert!(!coloured(&Kctl::new(), &wrong));
    assert!(coloured(
        &Kctl::new(),
        &[&wrong[..], &["--color", "always"]].concat()
    ));
    let mut forced = Kctl::new();
    forced.set_variable("CLICOLOR_FORCE", "1");
    assert!(coloured(&forced, &wrong));
    assert!(!coloured(
        &forced,
        &[&wrong[..], &["--color", "never"]].concat()
    ));
    forced.set_variable("NO_COLOR", "1");
    assert!(!coloured(&forced, &wrong));
}

#[test]
fn nobody_reading_is_no_failure() {
    let kctl = Kctl::new();
    let mut child = kctl.start_command(&["completion", "bash"], std::process::Stdio::null());
    drop(child.stdout.take());
    let ran = kctl.wait_for_end(child);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
}

#[test]
fn an_instance_group_that_is_defined_twice_is_refused_at_its_second_name() {
    let kctl = Kctl::new();
    let spec = kctl.run(&DRY_RUN).expect_success();
    let is_nodes = |document: &&str| document.contains("name: nodes-eu-west-1a");
    let nodes = spec.split("---\n").find(is_nodes).expect("a group");
    let file = kctl.home_path("twice.yaml");
    std::fs::write(&file, format!("{spec}---\n{nodes}")).expect("a file");
    let store = format!("file://{}", kctl.home_path("store").display());
    let path = file.display().to_string();
    let ran = kctl.run(&["create", "-f", &path, "--state", &store]);
    assert_eq!(ran.code, 2, "{}", ran.all_output());
    let twice = "InstanceGroup nodes-eu-west-1a is defined twice";
    assert!(ran.err.contains(twice), "{}", ran.err);
    let second = spec.lines().count() + 1;
    let place = ran.err.split("twice.yaml:").nth(1).expect("a place");
    let line: usize = place
        .split(':')
        .next()
        .and_then(|line| line.parse().ok())
        .expect("a line");
    assert!(line > second, "{line}: {}", ran.err);
    assert!(!kctl.home_path("store").exists());
}
