//! etcd members are edited in the spec, and a volume gets a copy with the same tags: `kctl update --yes` deletes no volume with data,
//! and the cluster stays healthy.

use super::super::cluster::{self, CLUSTER};
use super::super::etcd;
use anyhow::{Context, Result, bail, ensure};
use lab::scenario::Lab;
use serde_json::{Value, json};

/// Title and edit of the members of every etcd cluster in the spec.
type Edit = (&'static str, fn(&mut Vec<Value>));

const EDITS: [Edit; 3] = [
    ("a renamed", |members| members[0]["name"] = json!("z")),
    ("c removed", |members| members.truncate(2)),
    ("b and c removed", |members| members.truncate(1)),
];

pub fn edit_members(lab: &mut Lab) -> Result<()> {
    let before = etcd::list_volumes(lab)?;
    let spec = lab.run_kctl(&["get", "cluster", CLUSTER, "-o", "json"])?;
    for (title, edit) in EDITS {
        let mut edited: Value = serde_json::from_str(&spec)?;
        let clusters = edited["spec"]["etcdClusters"].as_array_mut();
        for cluster in clusters.context("etcd clusters")? {
            let members = cluster["etcdMembers"].as_array_mut();
            edit(members.context("members")?);
        }
        let said = match replace_spec(lab, &edited.to_string()) {
            Ok(()) => lab.run_kctl(&["update", CLUSTER, "--yes"]),
            Err(refused) => Err(refused),
        };
        // Before any check, so that the next fault finds the original spec.
        replace_spec(lab, &spec)?;
        let Err(refused) = said else {
            bail!("{title}: kctl update did not refuse it");
        };
        eprintln!("       {title}: {refused:#}");
        let now = etcd::list_volumes(lab)?;
        ensure!(now == before, "{title}: {before:?} became {now:?}");
    }
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    ensure!(
        etcd::list_volumes(lab)? == before,
        "the spec as it was changed volumes"
    );
    cluster::expect_healthy(lab)
}

fn replace_spec(lab: &Lab, spec: &str) -> Result<()> {
    let file = lab.place().run().join("cluster.json");
    std::fs::write(&file, spec)?;
    lab.run_kctl(&["replace", "-f", &file.display().to_string()])
        .map(drop)
}

/// Creates an unattached volume with the tags of an etcd volume, like one restored from a snapshot.
pub fn copy_volume(lab: &mut Lab) -> Result<()> {
    let before = etcd::list_volumes(lab)?;
    let own = etcd::find_volume(lab, "a")?;
    let told = lab.call_aws("ec2", "DescribeVolumes", &json!({"VolumeIds": [own]}))?;
    let tags = &told["Volumes"][0]["Tags"];
    let copy = json!({
        "AvailabilityZone": "us-east-1a",
        "Size": 1,
        "VolumeType": "gp3",
        "TagSpecifications": [{"ResourceType": "volume", "Tags": tags}],
    });
    let copy = lab.call_aws("ec2", "CreateVolume", &copy)?["VolumeId"].clone();
    let copy = copy.as_str().context("a volume's id")?;
    let mut wanted = before.clone();
    wanted.insert(copy.to_owned(), before[&own].clone());
    // kctl may refuse to choose one, but must keep both.
    match lab.run_kctl(&["update", CLUSTER, "--yes"]) {
        Ok(_) => eprintln!("       kept"),
        Err(refused) => eprintln!("       {refused:#}"),
    }
    let now = etcd::list_volumes(lab)?;
    ensure!(now == wanted, "{wanted:?} became {now:?}");
    lab.call_aws("ec2", "DeleteVolume", &json!({"VolumeId": copy}))?;
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    ensure!(
        etcd::list_volumes(lab)? == before,
        "the copy's end changed volumes"
    );
    cluster::expect_healthy(lab)
}
