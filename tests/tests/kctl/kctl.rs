//! Runs `kctl` in a world of its own: one simulator, one bucket, one home.

use crate::simulator::Simulator;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// The region all tests are in.
pub const REGION: &str = "us-east-1";

/// The cluster all tests make.
pub const CLUSTER: &str = "prod.example.com";

/// An operator at a terminal of their own.
pub struct Operator {
    /// The cloud they work on.
    pub simulator: Simulator,
    home: TempDir,
    /// Id and secret of their access key.
    keys: (String, String),
}

/// How a run ended.
#[derive(Debug)]
pub struct KctlOutput {
    /// The exit code; `None`: killed.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Operator {
    /// With an empty cloud but for the state store's bucket, and with binaries for instances (which no test boots).
    pub fn new() -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let keys = ("AKIAEXAMPLE".to_owned(), "secret".to_owned());
        Self::with_keys(Simulator::start_simulator(), home, keys)
    }

    /// One who may do these actions, on anything, and no others.
    pub fn with_permissions(actions: &BTreeSet<String>) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let simulator = Simulator::start_strict(&home.path().join("administrator"));
        let actions: Vec<&String> = actions.iter().collect();
        let policy = json!({
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}],
        });
        let keys = create_user(&simulator, "operator", &policy);
        Self::with_keys(simulator, home, keys)
    }

    /// An administrator in a cloud that asks others for permissions.
    pub fn new_strict() -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let simulator = Simulator::start_strict(&home.path().join("administrator"));
        let keys = simulator.keys.clone();
        Self::with_keys(simulator, home, keys)
    }

    /// Somebody else with this policy, at the same home.
    pub fn user_with_policy(&self, name: &str, policy: &Value) -> OtherUser<'_> {
        let keys = create_user(&self.simulator, name, policy);
        OtherUser {
            operator: self,
            keys,
        }
    }

    fn with_keys(simulator: Simulator, home: TempDir, keys: (String, String)) -> Self {
        simulator.run_python(REGION, "boto('s3').create_bucket(Bucket='state')");
        let binaries = home.path().join("assets/linux/amd64");
        std::fs::create_dir_all(&binaries).expect("a folder");
        for name in ["nodeup", "protokube"] {
            std::fs::write(binaries.join(name), format!("stands for {name}")).expect("a file");
        }
        Self {
            simulator,
            home,
            keys,
        }
    }

    /// A file of theirs.
    pub fn home_path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// The command with those arguments, in an environment that holds nothing else.
    pub fn kctl_command(&self, arguments: &[&str]) -> Command {
        let exe = std::env::current_exe().expect("the test's own path");
        let kctl = exe
            .parent()
            .and_then(|deps| deps.parent())
            .expect("target/debug")
            .join("kctl");
        assert!(
            kctl.is_file(),
            "{} is not built: cargo build --bin kctl",
            kctl.display()
        );
        let mut command = Command::new(kctl);
        command
            .args(arguments)
            .env_clear()
            .env("HOME", self.home.path())
            .env("KUBECONFIG", self.home_path("kubeconfig"))
            .env("AWS_ENDPOINT_URL", &self.simulator.endpoint)
            .env("AWS_ACCESS_KEY_ID", &self.keys.0)
            .env("AWS_SECRET_ACCESS_KEY", &self.keys.1)
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("KCTL_STATE_STORE", "s3://state")
            .env("KCTL_CLUSTER_NAME", CLUSTER)
            .env("KCTL_ASSETS", self.home_path("assets"))
            .stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub fn run(&self, arguments: &[&str]) -> KctlOutput {
        self.kctl_command(arguments)
            .output()
            .expect("kctl runs")
            .into()
    }

    /// Runs it and insists that it went well.
    pub fn run_ok(&self, arguments: &[&str]) -> KctlOutput {
        let ended = self.run(arguments);
        assert_eq!(
            ended.code,
            Some(0),
            "kctl {}\n{}\n{}",
            arguments.join(" "),
            ended.stdout,
            ended.stderr
        );
        ended
    }

    /// Lists everything that exists in AWS, with boto3.
    pub fn list_resources(&self) -> std::collections::BTreeSet<String> {
        self.simulator.list_resources(REGION)
    }
}

/// Somebody with an access key of their own.
pub struct OtherUser<'a> {
    operator: &'a Operator,
    keys: (String, String),
}

impl OtherUser<'_> {
    /// Runs kctl to its end.
    pub fn run(&self, arguments: &[&str]) -> KctlOutput {
        let mut command = self.operator.kctl_command(arguments);
        let command = command
            .env("AWS_ACCESS_KEY_ID", &self.keys.0)
            .env("AWS_SECRET_ACCESS_KEY", &self.keys.1);
        command.output().expect("kctl runs").into()
    }

    /// Runs it and insists that it went well.
    pub fn run_ok(&self, arguments: &[&str]) -> KctlOutput {
        let ended = self.run(arguments);
        let (code, stdout, stderr) = (ended.code, &ended.stdout, &ended.stderr);
        assert_eq!(code, Some(0), "{arguments:?}\n{stdout}\n{stderr}");
        ended
    }

    /// Whether AWS does this call of boto3; a refusal is the only failure that is expected.
    pub fn may_call(&self, service: &str, call: &str) -> bool {
        let (endpoint, (id, secret)) = (&self.operator.simulator.endpoint, &self.keys);
        let said = self.operator.simulator.run_python(
            REGION,
            &format!(
                "import botocore.exceptions\nc = boto3.client({service:?}, region_name={REGION:?}, endpoint_url={endpoint:?}, aws_access_key_id={id:?}, aws_secret_access_key={secret:?})\ntry:\n  c.{call}\n  print('done')\nexcept botocore.exceptions.ClientError as error:\n  print(error.response['Error']['Code'])"
            ),
        );
        assert!(["done", "AccessDenied"].contains(&said.as_str()), "{said}");
        said == "done"
    }
}

/// Creates a user, and returns id and secret of an access key.
fn create_user(simulator: &Simulator, name: &str, policy: &Value) -> (String, String) {
    let made = simulator.run_python(
        REGION,
        &format!(
            "i = boto('iam')\ni.create_user(UserName={name:?})\ni.put_user_policy(UserName={name:?}, PolicyName='kctl', PolicyDocument={:?})\nk = i.create_access_key(UserName={name:?})['AccessKey']\nprint(k['AccessKeyId'], k['SecretAccessKey'])",
            policy.to_string()
        ),
    );
    let (id, secret) = made.split_once(' ').expect("a key");
    (id.to_owned(), secret.to_owned())
}

impl From<Output> for KctlOutput {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }
}
