//! Edits of etcd's members, and volumes with the tags of others: whatever `kctl update --yes` makes of them, every volume with
//! data is there afterwards, and the cluster serves.

use super::{CLUSTER, cluster, etcd};
use anyhow::{Context, Result, bail, ensure};
use lab::scenario::Lab;
use serde_json::{Value, json};

/// What happens to the members of every etcd cluster of a spec.
type Edit = (&'static str, fn(&mut Vec<Value>));

const EDITS: [Edit; 3] = [
    ("a renamed", |members| members[0]["name"] = json!("z")),
    ("c removed", |members| members.truncate(2)),
    ("b and c removed", |members| members.truncate(1)),
];

pub fn edited(lab: &mut Lab) -> Result<()> {
    let before = etcd::volumes(lab)?;
    let spec = lab.kctl(&["get", "cluster", CLUSTER, "-o", "json"])?;
    for (title, edit) in EDITS {
        let mut edited: Value = serde_json::from_str(&spec)?;
        let clusters = edited["spec"]["etcdClusters"].as_array_mut();
        for cluster in clusters.context("etcd clusters")? {
            let members = cluster["etcdMembers"].as_array_mut();
            edit(members.context("members")?);
        }
        let said = match replace(lab, &edited.to_string()) {
            Ok(()) => lab.kctl(&["update", CLUSTER, "--yes"]),
            Err(refused) => Err(refused),
        };
        // Back before anything is asked, so that what follows finds the spec as it was.
        replace(lab, &spec)?;
        let Err(refused) = said else {
            bail!("{title}: kctl update did not refuse it");
        };
        eprintln!("       {title}: {refused:#}");
        let now = etcd::volumes(lab)?;
        ensure!(now == before, "{title}: {before:?} became {now:?}");
    }
    lab.kctl(&["update", CLUSTER, "--yes"])?;
    ensure!(
        etcd::volumes(lab)? == before,
        "the spec as it was changed volumes"
    );
    cluster::healthy(lab)
}

fn replace(lab: &Lab, spec: &str) -> Result<()> {
    let file = lab.place().run().join("cluster.json");
    std::fs::write(&file, spec)?;
    lab.kctl(&["replace", "-f", &file.display().to_string()])
        .map(drop)
}

/// What a restored copy looks like that somebody put beside the volume itself: its tags, and nobody has it.
pub fn doubled(lab: &mut Lab) -> Result<()> {
    let before = etcd::volumes(lab)?;
    let own = etcd::volume(lab, "a")?;
    let told = lab.aws("ec2", "DescribeVolumes", &json!({"VolumeIds": [own]}))?;
    let tags = &told["Volumes"][0]["Tags"];
    let copy = json!({
        "AvailabilityZone": "us-east-1a",
        "Size": 1,
        "VolumeType": "gp3",
        "TagSpecifications": [{"ResourceType": "volume", "Tags": tags}],
    });
    let copy = lab.aws("ec2", "CreateVolume", &copy)?["VolumeId"].clone();
    let copy = copy.as_str().context("a volume's id")?;
    let mut wanted = before.clone();
    wanted.insert(copy.to_owned(), before[&own].clone());
    // It may refuse to choose between them, and has to leave both.
    match lab.kctl(&["update", CLUSTER, "--yes"]) {
        Ok(_) => eprintln!("       kept"),
        Err(refused) => eprintln!("       {refused:#}"),
    }
    let now = etcd::volumes(lab)?;
    ensure!(now == wanted, "{wanted:?} became {now:?}");
    lab.aws("ec2", "DeleteVolume", &json!({"VolumeId": copy}))?;
    lab.kctl(&["update", CLUSTER, "--yes"])?;
    ensure!(
        etcd::volumes(lab)? == before,
        "the copy's end changed volumes"
    );
    cluster::healthy(lab)
}
