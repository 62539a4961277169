//! Volumes of pods: claims of the default StorageClass, which the EBS CSI driver (in the lab: a stand-in) makes, attaches and mounts.

use super::PATIENCE;
use super::cluster::CLUSTER;
use anyhow::{Context, Result, ensure};
use lab::scenario::{LIMIT, Lab};
use serde_json::{Value, json};

/// A claim and a pod that uses it, as YAML; the claim's name is the pod's.
const POD: &str = include_str!("volumes/pod.yaml");

/// The tag of a volume that names its claim.
const CLAIM_TAG: &str = "kubernetes.io/created-for/pvc/name";

/// The volume of a claim, as EC2 describes it.
pub struct ClaimVolume {
    pub id: String,
    pub described: Value,
}

impl ClaimVolume {
    /// The value of one of its tags.
    pub fn tag(&self, key: &str) -> Option<&str> {
        let tags = self.described["Tags"].as_array()?;
        tags.iter().find(|tag| tag["Key"] == key)?["Value"].as_str()
    }

    /// The instance that has it.
    pub fn instance(&self) -> Option<&str> {
        self.described["Attachments"][0]["InstanceId"].as_str()
    }
}

/// Every volume of the cluster's claims.
pub fn list_claim_volumes(lab: &Lab) -> Result<Vec<ClaimVolume>> {
    let filters = json!({"Filters": [{"Name": "tag-key", "Values": [CLAIM_TAG]}]});
    let told = lab.call_aws("ec2", "DescribeVolumes", &filters)?;
    let told = told["Volumes"].as_array().context("volumes")?;
    told.iter()
        .map(|one| {
            let id = one["VolumeId"].as_str().context("an id")?.to_owned();
            Ok(ClaimVolume {
                id,
                described: one.clone(),
            })
        })
        .collect()
}

/// The volume of a claim in `default`.
pub fn find_claim_volume(lab: &Lab, claim: &str) -> Result<ClaimVolume> {
    let of_claim = |one: &ClaimVolume| one.tag(CLAIM_TAG) == Some(claim);
    let found = list_claim_volumes(lab)?.into_iter().find(of_claim);
    found.with_context(|| format!("no volume is there for the claim {claim}"))
}

/// Waits until the driver's pods run, and kubelet of each node knows the driver.
pub fn expect_driver(lab: &mut Lab) -> Result<()> {
    for what in ["deployment/ebs-csi-controller", "daemonset/ebs-csi-node"] {
        lab.rolled_out("kube-system", what, PATIENCE)?;
    }
    lab.wait_until("kubelets know the driver", LIMIT, |lab| {
        let nodes = lab.get_objects(&["csinodes"])?;
        for node in nodes["items"].as_array().context("CSINodes")? {
            let driver = &node["spec"]["drivers"][0];
            let known = driver["name"] == "ebs.csi.aws.com"
                && driver["nodeID"] == node["metadata"]["name"]
                && driver["allocatable"]["count"].is_u64();
            ensure!(known, "{node}");
        }
        Ok(())
    })
}

/// A claim, and what its volume is to be like.
struct Claim {
    /// Of the pod too.
    name: &'static str,
    /// `None`: the default one.
    class: Option<&'static str>,
    kind: &'static str,
    zone: &'static str,
    /// The pod runs on a control plane.
    on_control_plane: bool,
}

/// One on a worker.
const CLAIM: Claim = Claim {
    name: "claimed",
    class: None,
    kind: "gp3",
    zone: "us-east-1a",
    on_control_plane: false,
};

/// Creates a claim and a pod that uses it, and waits until the pod runs.
fn run_pod(lab: &Lab, claim: &Claim) -> Result<()> {
    let class = claim
        .class
        .map(|class| format!("storageClassName: {class}"));
    let tolerations = if claim.on_control_plane {
        "[{operator: Exists}]"
    } else {
        "[]"
    };
    let text = POD
        .replace("@NAME@", claim.name)
        .replace("@CLASS@", &class.unwrap_or_default())
        .replace("@ZONE@", claim.zone)
        .replace("@TOLERATIONS@", tolerations);
    let file = lab.place().run().join("claim.yaml");
    std::fs::write(&file, text)?;
    lab.run_kubectl(&["apply", "--filename", &file.display().to_string()])?;
    wait_for_pod(lab, claim.name)
}

pub fn wait_for_pod(lab: &Lab, name: &str) -> Result<()> {
    lab.wait_until(&format!("{name} is ready"), PATIENCE, |lab| {
        let pod = lab.get_objects(&["pod", name])?;
        let ready = pod["metadata"]["deletionTimestamp"].is_null()
            && pod["status"]["containerStatuses"][0]["ready"] == true;
        ensure!(ready, "{}", pod["status"]);
        Ok(())
    })
}

/// Runs a script in a pod.
pub fn in_pod(lab: &Lab, pod: &str, script: &str) -> Result<String> {
    let words = ["exec", pod, "--", "sh", "-ec", script];
    Ok(lab.run_kubectl(&words)?.trim().to_owned())
}

/// A claim of the default class gets a volume, which its pod writes to; then both are deleted.
pub fn use_claim(lab: &mut Lab) -> Result<()> {
    use_once(lab, &CLAIM)
}

/// The same in a zone that has no worker: the volume is made where the pod can run.
pub fn use_other_zone(lab: &mut Lab) -> Result<()> {
    let claim = Claim {
        name: "elsewhere",
        zone: "us-east-1b",
        on_control_plane: true,
        ..CLAIM
    };
    use_once(lab, &claim)
}

/// The same with a class that names the driver as clusters did before CSI.
pub fn use_older_class(lab: &mut Lab) -> Result<()> {
    let claim = Claim {
        name: "older",
        class: Some("kops-ssd-1-17"),
        kind: "gp2",
        ..CLAIM
    };
    use_once(lab, &claim)
}

fn use_once(lab: &Lab, claim: &Claim) -> Result<()> {
    run_pod(lab, claim)?;
    in_pod(lab, claim.name, "echo written >/data/file; sync")?;
    expect_volume_of(lab, claim.name, claim.kind, claim.zone)?;
    let name = claim.name;
    let (pod, claim) = (format!("pod/{name}"), format!("pvc/{name}"));
    lab.run_kubectl(&["delete", "--wait=false", &pod, &claim])
        .map(drop)
}

/// Waits until EC2 has no volume of a claim but those.
pub fn expect_only_volumes(lab: &Lab, claims: &[&str]) -> Result<()> {
    lab.wait_until(
        "the volumes of deleted claims are deleted",
        PATIENCE,
        |lab| {
            for volume in list_claim_volumes(lab)? {
                let claim = volume.tag(CLAIM_TAG).context("a claim")?;
                ensure!(claims.contains(&claim), "{} of {claim} is there", volume.id);
            }
            Ok(())
        },
    )
}

/// The claim is bound to an encrypted volume of that kind in that zone, attached to the pod's instance, with the tags by which kctl finds it.
pub fn expect_volume_of(lab: &Lab, claim: &str, kind: &str, zone: &str) -> Result<ClaimVolume> {
    let bound = lab.get_objects(&["pvc", claim])?;
    ensure!(bound["status"]["phase"] == "Bound", "{}", bound["status"]);
    let volume = find_claim_volume(lab, claim)?;
    let said = &volume.described;
    let as_class =
        said["Encrypted"] == true && said["VolumeType"] == kind && said["State"] == "in-use";
    ensure!(as_class && said["AvailabilityZone"] == zone, "{said}");
    let owner = format!("kubernetes.io/cluster/{CLUSTER}");
    for (key, wanted) in [
        ("KubernetesCluster", CLUSTER),
        (&owner, "owned"),
        ("kubernetes.io/created-for/pvc/namespace", "default"),
        ("ebs.csi.aws.com/cluster", "true"),
    ] {
        ensure!(
            volume.tag(key) == Some(wanted),
            "{key} is not {wanted}: {said}"
        );
    }
    Ok(volume)
}
