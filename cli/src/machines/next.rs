//! What to do about a machine's fault, as far as its stage and its words tell.

/// Which stage, a word of its error (in lower case), what to do; the first that fits.
const STEPS: &[(&str, &str, &str)] = &[
    (
        "user-data/identify",
        "image",
        "give the group an image of its machine type's architecture: spec.image, spec.machineType",
    ),
    (
        "user-data/fetch",
        "wrong sha256",
        "what lies there is not the nodeup of this machine's launch template: kctl update --yes uploads it; a mirror must have the same release",
    ),
    (
        "user-data/fetch",
        "403",
        "its role may not read nodeup in the state store: kctl update --yes puts the policy right, and look at the bucket's own policy",
    ),
    (
        "user-data/fetch",
        "404",
        "nodeup is not in the state store: kctl update --yes uploads it",
    ),
    (
        "user-data/fetch",
        "",
        "it cannot reach the state store: look at its subnet's route to S3 (NAT gateway or endpoint), its security group and spec.egressProxy",
    ),
    (
        "user-data/",
        "",
        "log in and look at /var/log/cloud-init-output.log",
    ),
    (
        "nodeup/",
        "run kctl update",
        "kctl update --yes writes what this machine's launch template names; it asks again by itself",
    ),
    (
        "nodeup/",
        "the api server does not answer",
        "a new control plane takes a few minutes; if this stays, see what it says itself: kctl get instances",
    ),
    (
        "nodeup/",
        "refused:",
        "a control plane answers and does not accept this machine; it tells more there: journalctl -u protokube",
    ),
    (
        "nodeup/",
        "3988",
        "no control plane answers there: see whether one is Ready (kctl get instances), and that its security group and the load balancer let port 3988 through",
    ),
    (
        "nodeup/",
        "control plane",
        "see what control planes say: kctl get instances, and protokube's log on them",
    ),
    (
        "nodeup/",
        "sha256",
        "a mirror has other content than the catalog says: correct the mirror or spec.assets",
    ),
    (
        "nodeup/report",
        "",
        "log in and look at kubelet: journalctl -u kubelet",
    ),
    ("nodeup/", "", "log in and look at: journalctl -u nodeup"),
    (
        "protokube/etcd",
        "attached to",
        "etcd's volume goes from machine to machine by itself: it is free once the machine that has it has ended (kctl get instances)",
    ),
    (
        "protokube/",
        "",
        "log in and look at: journalctl -u protokube",
    ),
    (
        "boot",
        "",
        "look at the group's image: it must boot this machine type and run cloud-init; aws ec2 get-console-output shows all it said",
    ),
    // "Access denied when attempting to assume role arn:aws:iam::...:role/aws-service-role/autoscaling.amazonaws.com/
    // AWSServiceRoleForAutoScaling. Validating load balancer configuration failed."; RaJiska/terraform-aws-fck-nat#85
    // measured how long it takes.
    (
        "launch",
        "awsserviceroleforautoscaling",
        "this account is new to Auto Scaling, which has just made its own role: wait, launches succeed within about four minutes",
    ),
    (
        "launch",
        "",
        "look at the group's activities in AWS: aws autoscaling describe-scaling-activities",
    ),
];

/// The next step for an error in a stage.
pub(super) fn next_step(stage: &str, error: &str) -> Option<String> {
    let error = error.to_lowercase();
    let fits = |(of, word, _): &&(&str, &str, &str)| stage.starts_with(of) && error.contains(word);
    STEPS
        .iter()
        .find(fits)
        .map(|(_, _, step)| (*step).to_owned())
}

#[cfg(test)]
mod tests {
    use super::next_step;

    #[test]
    fn an_account_that_is_new_to_auto_scaling_is_told_to_wait() {
        let said = "Access denied when attempting to assume role arn:aws:iam::123456789012:role/aws-service-role/\
                    autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling. Validating load balancer configuration failed.";
        let step = next_step("launch", said).unwrap();
        assert!(step.contains("wait"), "{step}");
        assert!(!next_step("launch", "no capacity").unwrap().contains("wait"));
    }
}
