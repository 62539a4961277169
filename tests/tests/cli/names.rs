//! Names that AWS makes trouble with: dots, dashes, lengths, and what two clusters or groups would have in common.

use crate::kctl::Kctl;
use crate::scenario::{REGION, kctl_with_cloud};
use crate::simulator::Simulator;

const ZONES: [&str; 4] = [
    "--zones",
    "eu-west-1a",
    "--control-plane-zones",
    "eu-west-1a",
];

fn create(kctl: &Kctl, name: &str) -> crate::kctl::KctlOutput {
    kctl.run(&[&["create", "cluster", name], &ZONES[..]].concat())
}

/// The simulator refuses every name, tag and description that AWS would refuse, so what passes here passes there.
fn lives(kctl: &Kctl, simulator: &Simulator, name: &str, group: &str) {
    let empty = simulator.list_resources(REGION);
    create(kctl, name).expect_success();
    let more = [
        "create",
        "instancegroup",
        group,
        "--name",
        name,
        "--subnet",
        "eu-west-1a",
    ];
    kctl.run(&more).expect_success();
    kctl.run(&["update", name, "--yes"]).expect_success();
    let ran = kctl.run(&["update", name]).expect_success();
    assert!(ran.contains("No changes."), "{ran}");
    let delete = ["delete", "cluster", name, "--yes"];
    kctl.run(&delete).expect_success();
    let left: Vec<String> = simulator
        .list_resources(REGION)
        .difference(&empty)
        .cloned()
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn dots_and_dashes_in_names_are_no_trouble() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    lives(
        &kctl,
        &simulator,
        "xn--bcher-kva.a--b.example.com",
        "nodes.gpu.v-1",
    );
}

#[test]
fn the_longest_names_are_no_trouble() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    // `control-plane-eu-west-1a.masters.NAME` has the 128 characters of a template's name.
    let name = format!("{}.{}.example.com", "a".repeat(62), "b".repeat(20));
    assert_eq!("control-plane-eu-west-1a.masters.".len() + name.len(), 128);
    lives(&kctl, &simulator, &name, &"n".repeat(32));
}

#[test]
fn a_name_that_is_too_long_for_tags_or_labels_is_refused() {
    let kctl = Kctl::with_store();
    let name = format!("{}.{}.com", "a".repeat(62), "b".repeat(40));
    let spec = format!(
        "apiVersion: kops.k8s.io/v1alpha2\nkind: Cluster\nmetadata: {{name: {name}}}\nspec: {{kubernetesVersion: 1.36.0}}\n"
    );
    let file = kctl.write_file("spec.yaml", &spec);
    let ran = kctl.run(&["create", "-f", &file]);
    assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
    let said = "the tag kubernetes.io/cluster/aaa";
    assert!(
        ran.err.contains(said) && ran.err.contains("AWS takes 128"),
        "{}",
        ran.err
    );
    let group = format!("{}.gpu", "n".repeat(60));
    let file = kctl.write_file(
        "group.yaml",
        &format!(
            "{}---\napiVersion: kops.k8s.io/v1alpha2\nkind: InstanceGroup\nmetadata: {{name: {group}}}\nspec: {{role: Node}}\n",
            spec.replace(&name, "a.example.com")
        ),
    );
    let ran = kctl.run(&["create", "-f", &file]);
    assert!(
        ran.err.contains("the name has 64 characters"),
        "{}",
        ran.err
    );
}

#[test]
fn names_that_would_be_the_same_in_aws_are_refused() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    create(&kctl, "a.b.example.com").expect_success();
    let ran = create(&kctl, "a-b.example.com");
    assert_eq!(ran.code, 4, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("a-b-example-com-nth"), "{}", ran.err);
    assert!(ran.err.contains("choose a name"), "{}", ran.err);
    // From a file as well.
    let spec = kctl
        .run(&["get", "cluster", "a.b.example.com", "-o", "yaml"])
        .expect_success();
    let groups = kctl
        .run(&["get", "ig", "--name", "a.b.example.com", "-o", "yaml"])
        .expect_success();
    let both = format!("{spec}---\n{groups}").replace("a.b.example.com", "a-b.example.com");
    let file = kctl.write_file("spec.yaml", &both);
    let ran = kctl.run(&["create", "-f", &file]);
    assert_eq!(ran.code, 4, "{}{}", ran.out, ran.err);
    // Two groups of one cluster.
    let group = "control-plane-eu-west-1a.masters";
    let more = [
        "create",
        "instancegroup",
        group,
        "--name",
        "a.b.example.com",
        "--subnet",
        "eu-west-1a",
    ];
    let ran = kctl.run(&more);
    assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
    let said = "its Auto Scaling group would be control-plane-eu-west-1a.masters.a.b.example.com";
    assert!(ran.err.contains(said), "{}", ran.err);
}
