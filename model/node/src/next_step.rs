//! What an operator can do about an error, chosen by the boot stage and by words of the error.

/// Prefix of the stage, text that the error contains (in lower case), next step. The first row that matches counts.
const NEXT_STEPS: &[(&str, &str, &str)] = &[
    (
        "user-data/identify",
        "image",
        "use an image for the architecture of the group's instance type: spec.image, spec.machineType",
    ),
    (
        "user-data/fetch",
        "wrong sha256",
        "the file is not the nodeup that the instance's launch template names: kctl update --yes uploads it; a mirror must have the same release",
    ),
    (
        "user-data/fetch",
        "403",
        "the instance's IAM role may not read nodeup in the state store: kctl update --yes restores the role's policy; check the bucket policy as well",
    ),
    (
        "user-data/fetch",
        "404",
        "nodeup is not in the state store: kctl update --yes uploads it",
    ),
    (
        "user-data/fetch",
        "",
        "the instance cannot reach the state store: check the subnet's route to S3 (NAT gateway or endpoint), the security group and spec.egressProxy",
    ),
    (
        "user-data/",
        "",
        "log in to the instance and read /var/log/cloud-init-output.log",
    ),
    (
        "nodeup/",
        "kctl update",
        "kctl update --yes writes what the instance's launch template names; the instance retries by itself",
    ),
    (
        "nodeup/",
        "the api server is not available",
        "a new control plane takes a few minutes; if this persists, see what the control planes report: kctl get instances",
    ),
    (
        "nodeup/",
        "refused:",
        "a control plane refused the instance; its log has the reason: journalctl -u protokube, on the control plane",
    ),
    (
        "nodeup/",
        "3988",
        "no control plane answers: check that one is Ready (kctl get instances), and that its security group and the load balancer allow port 3988",
    ),
    (
        "nodeup/",
        "control plane",
        "see what the control planes report: kctl get instances, and protokube's log on them",
    ),
    (
        "nodeup/",
        "sha256",
        "the content of a mirror differs from the catalog: correct the mirror or spec.assets",
    ),
    (
        "nodeup/report",
        "",
        "if etcd was restored to a moment before it joined: kctl rolling-update --yes replaces it; otherwise log in to the instance and read kubelet's log: journalctl -u kubelet",
    ),
    (
        "nodeup/",
        "",
        "log in to the instance and read nodeup's log: journalctl -u nodeup",
    ),
    (
        "protokube/etcd",
        "attached to",
        "wait: the etcd volume becomes available once the instance that has it is terminated (kctl get instances)",
    ),
    (
        "protokube/upkeep",
        "nospace",
        "delete objects that nobody needs, or raise the quota; protokube does the rest: docs/operations/full-disk.md",
    ),
    (
        "protokube/upkeep",
        "corrupt",
        "replace the member whose data differ before anything else: docs/operations/etcd.md#a-corrupt-member",
    ),
    (
        "protokube/",
        "",
        "log in to the instance and read protokube's log: journalctl -u protokube",
    ),
    (
        "boot",
        "",
        "check the group's image: it must boot on this instance type and run cloud-init; aws ec2 get-console-output shows the whole console",
    ),
    // "Access denied when attempting to assume role arn:aws:iam::...:role/aws-service-role/autoscaling.amazonaws.com/
    // AWSServiceRoleForAutoScaling. Validating load balancer configuration failed."; RaJiska/terraform-aws-fck-nat#85
    // measured how long it takes.
    (
        "launch",
        "awsserviceroleforautoscaling",
        "wait: AWS has just created Auto Scaling's service-linked role in this account, and launches succeed within about four minutes",
    ),
    (
        "launch",
        "",
        "see the group's scaling activities: aws autoscaling describe-scaling-activities",
    ),
];

/// The next step for an error in a stage; `None` if no row matches.
pub fn next_step(stage: &str, error: &str) -> Option<String> {
    let error = error.to_lowercase();
    let matches =
        |(of, word, _): &&(&str, &str, &str)| stage.starts_with(of) && error.contains(word);
    NEXT_STEPS
        .iter()
        .find(matches)
        .map(|(_, _, step)| (*step).to_owned())
}

#[cfg(test)]
mod tests {
    use super::next_step;
    use crate::bootstrap::Refusal;

    #[test]
    fn refusals_that_an_operator_can_end_have_a_next_step_of_their_own() {
        let step = |refusal: &Refusal| {
            let said = format!("https://kops-controller:3988 refused: {refusal}");
            next_step("nodeup/fetch", &said).unwrap()
        };
        let unknown = Refusal::UnknownNodeConfig {
            group: "nodes".to_owned(),
            sha256: "0".repeat(64),
        };
        assert!(step(&unknown).contains("kctl update --yes writes"));
        let unavailable = Refusal::Unavailable {
            what: "the API server",
        };
        assert!(step(&unavailable).contains("takes a few minutes"));
        assert!(step(&Refusal::Busy).contains("journalctl -u protokube"));
    }

    #[test]
    fn in_an_account_that_is_new_to_auto_scaling_the_next_step_is_to_wait() {
        let said = "Access denied when attempting to assume role arn:aws:iam::123456789012:role/aws-service-role/\
                    autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling. Validating load balancer configuration failed.";
        let step = next_step("launch", said).unwrap();
        assert!(step.contains("wait"), "{step}");
        assert!(!next_step("launch", "no capacity").unwrap().contains("wait"));
    }
}
