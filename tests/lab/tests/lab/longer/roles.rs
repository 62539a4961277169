//! Pods with AWS roles of their own: the addons work with theirs, a pod gets exactly the role of its service account and nothing of its
//! instance, and nobody else gets it.

use super::super::cluster::{self, CLUSTER};
use super::super::{PATIENCE, Step, volumes};
use super::identities;
use anyhow::{Context, Result, ensure};
use lab::scenario::Lab;
use serde_json::json;

const PODS: &str = include_str!("roles.yaml");

/// Bucket of the issuer's documents.
const ISSUERS: &str = "kctl-lab-issuers";

/// What the pods of the service account `reader` in `shop` may do.
const POLICY: &str = r#"[{"Effect": "Allow", "Action": "ec2:DescribeVpcs", "Resource": "*"}]"#;

const TOKEN: &str = "/var/run/secrets/amazonaws.com/token";

pub const STEPS: [Step; 11] = [
    ("kctl makes a cluster whose pods have roles", make_cluster),
    ("three instances become Ready nodes", |lab| {
        cluster::expect_ready(lab, 1)
    }),
    ("kctl says that it is healthy", cluster::expect_healthy),
    (
        "the EBS CSI driver runs on every node",
        volumes::expect_driver,
    ),
    (
        "a pod writes to a volume that the driver's role made",
        volumes::use_claim,
    ),
    (
        "the control plane may not make volumes itself",
        call_as_instance,
    ),
    ("a pod gets its role and no more", use_role),
    ("no other token gets it", use_other_tokens),
    (
        "a role of IAM is a user of the cluster",
        identities::use_identity,
    ),
    ("a pod gets nothing from the metadata service", ask_metadata),
    ("a role leaves with its service account", remove_role),
];

fn make_cluster(lab: &mut Lab) -> Result<()> {
    let settings = identities::mapping_settings();
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    make_cluster_with(lab, &settings)
}

/// A cluster of one control plane with a published issuer, and a role for `reader` in `shop`.
pub fn make_cluster_with(lab: &Lab, others: &[&str]) -> Result<()> {
    let bucket = json!({"Bucket": ISSUERS, "ObjectOwnership": "BucketOwnerPreferred"});
    lab.call_aws("s3", "CreateBucket", &bucket)?;
    let entry = "--set=spec.iam.serviceAccountExternalPermissions[0]";
    let words = [
        "--networking=flannel".to_owned(),
        "--dns=none".to_owned(),
        "--set=spec.etcdClusters[*].etcdMembers[*].volumeSize=1".to_owned(),
        format!("--discovery-store=s3://{ISSUERS}"),
        format!("{entry}.name=reader"),
        format!("{entry}.namespace=shop"),
        format!("{entry}.aws.inlinePolicy={POLICY}"),
    ];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    cluster::create_cluster(lab, &[&words, others].concat())
}

/// Exchanges a token for credentials of a role and calls EC2 with them; prints the status of each call.
const ASSUME: &str = r#"
role=$1 token=$2
shift 2
call() { curl -sS --max-time 30 -o answer -w '%{http_code}\n' "$@"; }
cd "$(mktemp -d)"
status=$(call https://sts.us-east-1.amazonaws.com/ -d Action=AssumeRoleWithWebIdentity -d Version=2011-06-15 \
    -d RoleSessionName=pod --data-urlencode "RoleArn=$role" --data-urlencode "WebIdentityToken=$token")
part() { sed -n "s|.*<$1>\(.*\)</$1>.*|\1|p" answer | head -n 1; }
echo "$status $(part Code)"
[ "$status" = 200 ] || exit 0
user="$(part AccessKeyId):$(part SecretAccessKey)" session=$(part SessionToken)
for action; do
    call --aws-sigv4 aws:amz:us-east-1:ec2 --user "$user" -H "x-amz-security-token: $session" \
        https://ec2.us-east-1.amazonaws.com/ -d "Action=$action" -d Version=2016-11-15
done
"#;

pub fn role_arn() -> String {
    format!("arn:aws:iam::123456789012:role/reader.shop.sa.{CLUSTER}")
}

/// Takes the role of `reader` with that token, on a worker, and makes those calls of EC2. Returns a line for each call.
fn assume_role(lab: &Lab, token: &str, actions: &[&str]) -> Result<Vec<String>> {
    let worker = cluster::worker_instances(lab)?.remove(0);
    let role = role_arn();
    let words = [&["sh", "-ec", ASSUME, "assume", &role, token], actions].concat();
    let said = lab.exec_in_host(&worker.id, &words)?;
    Ok(said.lines().map(|line| line.trim().to_owned()).collect())
}

/// The token for AWS in the pod `reader` of a namespace.
fn token_in(lab: &Lab, namespace: &str) -> Result<String> {
    let words = [
        "exec",
        "--namespace",
        namespace,
        "reader",
        "--",
        "cat",
        TOKEN,
    ];
    Ok(lab.run_kubectl(&words)?.trim().to_owned())
}

pub fn use_role(lab: &mut Lab) -> Result<()> {
    lab.run_kubectl(&["create", "namespace", "shop"])?;
    for namespace in ["shop", "default"] {
        let file = lab.place().run().join("roles.yaml");
        std::fs::write(&file, PODS.replace("@NAMESPACE@", namespace))?;
        lab.run_kubectl(&["apply", "--filename", &file.display().to_string()])?;
        let ready = [
            "wait",
            "--for=condition=Ready",
            "--timeout=120s",
            "--namespace",
            namespace,
            "pod/reader",
        ];
        lab.run_kubectl(&ready)?;
    }
    let said = assume_role(
        lab,
        &token_in(lab, "shop")?,
        &["DescribeVpcs", "DescribeSubnets", "CreateVolume"],
    )?;
    ensure!(said == ["200", "200", "403", "403"], "{said:?}");
    Ok(())
}

fn use_other_tokens(lab: &mut Lab) -> Result<()> {
    let said = assume_role(lab, &token_in(lab, "default")?, &[])?;
    ensure!(said == ["403 AccessDenied"], "another namespace: {said:?}");
    for (account, audience, expected) in [
        (
            "reader",
            "kubernetes.svc.default",
            "400 InvalidIdentityToken",
        ),
        ("default", "amazonaws.com", "403 AccessDenied"),
    ] {
        let audience = format!("--audience={audience}");
        let words = ["create", "token", account, "--namespace=shop", &audience];
        let token = lab.run_kubectl(&words)?;
        let said = assume_role(lab, token.trim(), &[])?;
        ensure!(said == [expected], "{account} {audience}: {said:?}");
    }
    Ok(())
}

/// Makes a call of EC2 with the credentials of the control plane.
fn call_as_instance(lab: &mut Lab) -> Result<()> {
    const CALL: &str = "curl -sS --max-time 30 -o /dev/null -w '%{http_code}' --aws-sigv4 aws:amz:us-east-1:ec2 --user \"$1\" \
        -H \"x-amz-security-token: $2\" https://ec2.us-east-1.amazonaws.com/ -d \"$3\" -d Version=2016-11-15";
    let control = cluster::control_plane(lab, 0)?;
    let own = lab.instance_caller(&control.id)?.credentials;
    let user = format!("{}:{}", own.access_key_id, own.secret_access_key);
    let volume = "Action=CreateVolume&AvailabilityZone=us-east-1a&Size=1&TagSpecification.1.ResourceType=volume\
        &TagSpecification.1.Tag.1.Key=KubernetesCluster&TagSpecification.1.Tag.1.Value=demo.example.com";
    for (call, expected) in [("Action=DescribeVolumes", "200"), (volume, "403")] {
        let words = ["sh", "-ec", CALL, "call", &user, &own.token, call];
        let said = lab.exec_in_host(&control.id, &words)?;
        ensure!(said.trim() == expected, "{call}: {said}");
    }
    Ok(())
}

/// The metadata service's answers do not come as far as a pod: each carries a TTL of one hop.
fn ask_metadata(lab: &mut Lab) -> Result<()> {
    const ASK: &str = "printf 'PUT %s HTTP/1.0\\r\\nX-aws-ec2-metadata-token-ttl-seconds: 60\\r\\n\\r\\n' $2 | nc -w 5 $1 || :";
    let ask = |address: &str, path: &str| {
        let words = [
            "exec",
            "--namespace=shop",
            "reader",
            "--",
            "sh",
            "-c",
            ASK,
            "ask",
        ];
        lab.run_kubectl(&[&words[..], &[address, path]].concat())
    };
    // An answer is heard: the pod's own server takes no PUT.
    let said = ask("127.0.0.1 8080", "/healthz")?;
    ensure!(said.contains("405 Method Not Allowed"), "{said}");
    let said = ask("169.254.169.254 80", "/latest/api/token")?;
    ensure!(said.trim().is_empty(), "{said}");
    Ok(())
}

fn remove_role(lab: &mut Lab) -> Result<()> {
    let unset = "--unset=spec.iam.serviceAccountExternalPermissions";
    lab.run_kctl(&["edit", "cluster", CLUSTER, unset])?;
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    let token = token_in(lab, "shop")?;
    lab.wait_until("the role is gone", PATIENCE, |lab| {
        let said = assume_role(lab, &token, &[])?;
        ensure!(said == ["403 AccessDenied"], "{said:?}");
        Ok(())
    })?;
    lab.run_kctl(&["delete", "cluster", CLUSTER, "--yes"])?;
    let left = lab.call_aws("s3", "ListObjectsV2", &json!({"Bucket": ISSUERS}))?;
    ensure!(left["KeyCount"] == 0, "{left}");
    let providers = lab.call_aws("iam", "ListOpenIDConnectProviders", &json!({}))?;
    let providers = providers["OpenIDConnectProviderList"].as_array();
    ensure!(providers.context("a list")?.is_empty(), "{providers:?}");
    Ok(())
}
