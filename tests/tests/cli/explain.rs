//! `kctl explain`: what a field means, what it takes and what is below it.

use crate::kctl::Kctl;
use serde_json::{Value, json};

fn explained(words: &[&str]) -> String {
    Kctl::new()
        .run(&[&["explain"][..], words].concat())
        .expect_success()
}

#[test]
fn a_section_is_shown_with_its_fields() {
    insta::assert_snapshot!(explained(&["ig.spec.instanceMetadata"]), @r"
    KIND        InstanceGroup
    FIELD       spec.instanceMetadata
    TYPE        object

    The metadata service of the instances.

    NAME                      TYPE      DESCRIPTION
    httpPutResponseHopLimit   integer   Hops that an answer may travel, 1 to 64: 1 keeps pods away from the service, 3 lets them in.
    httpTokens                string    `required`: the service answers requests with a token only (IMDSv2).
    ");
}

#[test]
fn a_field_is_shown_with_its_words_and_its_values_in_a_new_cluster() {
    insta::assert_snapshot!(explained(&["cluster.spec.networking.cilium.ipam"]), @r"
    KIND        Cluster
    FIELD       spec.networking.cilium.ipam
    TYPE        string
    VALUES      crd, eni, hostscope, kubernetes
    DEFAULT     kubernetes

    Who gives addresses to pods: `kubernetes`, from the range of each Node, or `eni`, addresses of the VPC. Default `kubernetes`.

    Refused if it is crd: kctl does not support addresses of pods from cilium's own objects.

    Refused if it is hostscope: kctl does not support addresses of pods from cilium's configuration on each node.
    ");
    let written = explained(&["cluster.spec.iam.allowContainerRegistry"]);
    assert!(written.contains("CREATED AS  true\n"), "{written}");
    let by_role = explained(&["ig.spec.rootVolumeSize"]);
    let sizes = "DEFAULT     64 (Master), 128 (Node)\n";
    assert!(by_role.contains(sizes), "{by_role}");
}

#[test]
fn all_fields_below_a_section_can_be_listed() {
    let own = explained(&["cluster.spec.etcdClusters"]);
    let all = explained(&["cluster.spec.etcdClusters", "--recursive"]);
    let names = |text: &str| -> Vec<String> {
        let rows = text.lines().skip_while(|line| !line.starts_with("NAME "));
        let names = rows.skip(1).filter_map(|row| row.split(' ').next());
        names.map(str::to_owned).collect()
    };
    assert!(names(&own).contains(&"backups".to_owned()));
    assert!(names(&own).iter().all(|name| !name.contains('.')));
    for name in ["backups.changesSeconds", "etcdMembers[].volumeSize"] {
        assert!(names(&all).contains(&name.to_owned()), "{all}");
    }
}

#[test]
fn programs_get_the_same_as_json_or_yaml() {
    let text = explained(&["instancegroup.spec.warmPool.maxSize", "-o", "json"]);
    let told: Value = serde_json::from_str(&text).expect("JSON");
    let description = "Instances that the group and the pool have together at most; 0 for no pool. Default `maxSize` of the group.";
    assert_eq!(
        told,
        json!({
            "format": 1,
            "kind": "InstanceGroup",
            "field": "spec.warmPool.maxSize",
            "type": "integer",
            "description": description,
            "fields": [],
        })
    );
    let section = explained(&["cluster.spec.rollingUpdate", "-o", "json"]);
    let section: Value = serde_json::from_str(&section).expect("JSON");
    assert_eq!(
        section["fields"][1]["field"],
        "spec.rollingUpdate.maxUnavailable"
    );
    assert_eq!(section["fields"][1]["type"], "integer or string");
    let yaml = explained(&["cluster.spec.rollingUpdate", "-o", "yaml"]);
    assert!(yaml.contains("\nkind: Cluster\n"), "{yaml}");
}

#[test]
fn a_field_that_is_none_is_answered_with_what_was_meant() {
    for (field, said, hint) in [
        (
            "cluster.spec.networkCidr",
            "Cluster has no field spec.networkCidr",
            "did you mean spec.networkCIDR",
        ),
        (
            "instancegroup.spec.rootVolume",
            "InstanceGroup has no field spec.rootVolume",
            "in v1alpha2 spec.rootVolume.size is spec.rootVolumeSize",
        ),
        (
            "spec.kubelet",
            "\"spec\" is not a kind of object",
            "begin with one of cluster, instancegroup",
        ),
    ] {
        let ran = Kctl::new().run(&["explain", field]);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{field}");
        assert!(
            ran.err.contains(said) && ran.err.contains(hint),
            "{}",
            ran.err
        );
    }
}
