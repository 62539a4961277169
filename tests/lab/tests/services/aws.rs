//! A real AWS client through the front to the real simulator, under AWS's own names.

use crate::support::TestFront;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// Names resolve to the front, whatever the port; everything else is as boto3 does it for AWS.
const CLIENT: &str = r#"
import socket, sys
real, front = socket.getaddrinfo, ("127.0.0.1", int(sys.argv[1]))
def getaddrinfo(host, port, *more, **named):
    assert host.endswith(".amazonaws.com"), host
    return real(*front, *more, **named)
socket.getaddrinfo = getaddrinfo
import boto3
session = boto3.Session("AKIDEXAMPLE", "secret", region_name="eu-west-1")
print(session.client("sts").get_caller_identity()["Account"])
ec2 = session.client("ec2")
vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
assert [v["VpcId"] for v in ec2.describe_vpcs()["Vpcs"]] == [vpc]
s3 = session.client("s3")
s3.create_bucket(Bucket="lab-bucket", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
body = bytes(range(256)) * 40000
s3.put_object(Bucket="lab-bucket", Key="a b/ü+c", Body=body)
assert s3.get_object(Bucket="lab-bucket", Key="a b/ü+c")["Body"].read() == body
assert s3.get_object(Bucket="lab-bucket", Key="a b/ü+c", Range="bytes=1-3")["Body"].read() == b"\1\2\3"
print(session.client("route53").list_hosted_zones()["HostedZones"])
"#;

struct RealSimulator {
    port: u16,
    /// Ends with the pipe to its input.
    _process: Child,
    _folder: TempDir,
}

async fn python() -> PathBuf {
    let venv = Command::new(lab::checkout::tests().join("simulator/venv.sh"));
    let output = { venv }
        .stderr(Stdio::inherit())
        .output()
        .await
        .expect("venv.sh runs");
    assert!(output.status.success(), "the simulator's environment");
    let path = String::from_utf8(output.stdout).expect("text");
    Path::new(path.trim()).join("bin/python")
}

impl RealSimulator {
    async fn start(python: &Path) -> Self {
        let folder = TempDir::new().expect("folder");
        let file = folder.path().join("port");
        let mut process = Command::new(python)
            .args([
                "-m",
                "simulator",
                "--port",
                "0",
                "--until-stdin-closes",
                "--port-file",
            ])
            .arg(&file)
            .current_dir(lab::checkout::tests())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the simulator starts");
        let port = loop {
            if let Ok(port) = std::fs::read_to_string(&file) {
                break port.trim().parse().expect("port");
            }
            let ended = process.try_wait().expect("the simulator's state");
            assert!(ended.is_none(), "the simulator ended: {ended:?}");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        };
        Self {
            port,
            _process: process,
            _folder: folder,
        }
    }
}

#[tokio::test]
async fn boto3_talks_to_the_simulator_under_awss_names() {
    let python = python().await;
    let simulator = RealSimulator::start(&python).await;
    let address = format!("127.0.0.1:{}", simulator.port);
    let front = TestFront::before(address.parse().expect("address")).await;
    let output = Command::new(&python)
        .args(["-c", CLIENT, &front.tls.port().to_string()])
        .env_clear()
        .env("AWS_CA_BUNDLE", front.ca())
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .stderr(Stdio::inherit())
        .output()
        .await
        .expect("the client runs");
    assert!(output.status.success());
    let said = String::from_utf8(output.stdout).expect("text");
    assert_eq!(said, "123456789012\n[]\n");
    let log = front.log();
    let hosts: Vec<&str> = log
        .iter()
        .filter_map(|line| line["host"].as_str())
        .collect();
    for host in [
        "sts.eu-west-1.amazonaws.com",
        "ec2.eu-west-1.amazonaws.com",
        "route53.amazonaws.com",
    ] {
        assert!(hosts.contains(&host), "{host} in {hosts:?}");
    }
    let bucket = "lab-bucket.s3.eu-west-1.amazonaws.com";
    assert!(hosts.contains(&bucket), "{bucket} in {hosts:?}");
}
