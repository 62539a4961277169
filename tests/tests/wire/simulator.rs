//! One AWS simulator for each test that wants one.

use aws_client::{AccessKey, AccessOptions, Clients};
use aws_cloud::CloudClients;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// A running simulator; it ends with its owner.
pub struct Simulator {
    pub endpoint: String,
    /// Who the tests are: anybody, or with `--strict` its administrator. Id and secret.
    pub keys: (String, String),
    /// Its standard input, with which it ends.
    _life: TcpStream,
}

/// A warm Python that forks (`tests/simulator/prefork.py`); a simulator that starts by itself takes seconds.
struct Prefork {
    address: String,
    /// It ends when its standard input closes, so with this process.
    _child: Child,
}

/// One for all tests of this process: nothing that happens in a copy of it reaches another.
static PREFORK: OnceLock<Prefork> = OnceLock::new();

/// The tests' folder, also for tests of another package.
fn tests_folder() -> PathBuf {
    PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs this")).join("../tests")
}

impl Prefork {
    fn start_prefork() -> Self {
        let venv = Command::new(tests_folder().join("simulator/venv.sh"))
            .output()
            .expect("the simulator's Python environment");
        let venv = String::from_utf8(venv.stdout).expect("a path");
        let mut child = Command::new(PathBuf::from(venv.trim()).join("bin/python"))
            .args(["-m", "simulator.prefork"])
            .current_dir(tests_folder())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python");
        let out = child.stdout.take().expect("its output");
        Self {
            address: read_address(out),
            _child: child,
        }
    }
}

/// What the line `listening on ADDRESS` says.
fn read_address(from: impl Read) -> String {
    let line = BufReader::new(from).lines().next();
    let line = line.expect("a first line").expect("text");
    let address = line.strip_prefix("listening on ");
    address.unwrap_or_else(|| panic!("{line}")).to_owned()
}

/// Gives this code to a warm Python, whose standard input and output the connection is.
fn run_python(code: &str) -> TcpStream {
    let prefork = PREFORK.get_or_init(Prefork::start_prefork);
    let mut python = TcpStream::connect(&prefork.address).expect("a warm Python");
    let line = serde_json::to_string(code).expect("JSON") + "\n";
    python.write_all(line.as_bytes()).expect("code");
    python
}

/// All that this code prints.
fn print_with_python(code: &str) -> String {
    let mut printed = String::new();
    let mut python = run_python(code);
    python.read_to_string(&mut printed).expect("text");
    let printed = printed
        .strip_suffix('\0')
        .unwrap_or_else(|| panic!("{printed}"));
    printed.trim().to_owned()
}

impl Simulator {
    /// Starts one and waits until it answers.
    pub fn start_simulator() -> Self {
        Self::start_with(&[])
    }

    /// One whose instances, volumes and consoles are as they are reported to be.
    pub fn with_machines() -> Self {
        Self::start_with(&["--machines"])
    }

    /// One that lets nobody do what no policy allows. Its administrator's credentials are written to that file.
    pub fn start_strict(credentials: &std::path::Path) -> Self {
        let file = credentials.to_str().expect("a path");
        let mut started = Self::start_with(&["--strict", "--operator-credentials", file]);
        let text = std::fs::read_to_string(credentials).expect("credentials");
        let value = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once('='));
            let found = lines.find(|(key, _)| key.trim() == name);
            found.expect("a key").1.trim().to_owned()
        };
        started.keys = (value("aws_access_key_id"), value("aws_secret_access_key"));
        started
    }

    fn start_with(options: &[&str]) -> Self {
        let mut all = vec!["--settle", "0.2", "--until-stdin-closes"];
        all.extend(options);
        let options = serde_json::to_string(&all).expect("JSON");
        let python = run_python(&format!(
            "from simulator.__main__ import main\nmain({options})"
        ));
        let endpoint = read_address(&python);
        Self {
            endpoint,
            keys: ("AKIAEXAMPLE".to_owned(), "secret".to_owned()),
            _life: python,
        }
    }

    pub async fn new_clients(&self, region: &str) -> Clients {
        Clients::from_access(&AccessOptions {
            region: Some(region.to_owned()),
            profile: None,
            endpoint: Some(self.endpoint.clone()),
            keys: Some(AccessKey {
                id: self.keys.0.clone(),
                secret: self.keys.1.clone(),
                session: None,
            }),
            ..AccessOptions::default()
        })
        .await
    }

    pub async fn cloud_clients(&self, region: &str) -> CloudClients {
        CloudClients::new(&self.new_clients(region).await)
    }

    /// Everything that exists, tagged or not, by another client in another language.
    pub fn list_resources(&self, region: &str) -> BTreeSet<String> {
        let (id, secret) = &self.keys;
        let text = print_with_python(&format!(
            "import os\nos.environ.update(AWS_ACCESS_KEY_ID={id:?}, AWS_SECRET_ACCESS_KEY={secret:?})\nfrom simulator.listing import main\nmain(['--region', {region:?}, '--endpoint', {:?}])",
            self.endpoint
        ));
        text.lines().map(ToOwned::to_owned).collect()
    }

    /// Runs Python with `boto3` as `boto(SERVICE)` in the region; for what the tests need beside the cluster.
    pub fn run_python(&self, region: &str, code: &str) -> String {
        let head = format!(
            "import boto3\ndef boto(s): return boto3.client(s, region_name={region:?}, endpoint_url={:?}, aws_access_key_id={:?}, aws_secret_access_key={:?})\n",
            self.endpoint, self.keys.0, self.keys.1
        );
        print_with_python(&(head + code))
    }

    /// Calls by service and operation since the last reset of the counts.
    pub fn calls_by_operation(&self) -> Value {
        serde_json::from_str(&self.send_control("GET", "calls", "")).expect("JSON")
    }

    /// How many calls there were, S3's too.
    pub fn call_count(&self) -> u64 {
        self.calls_by_operation()["total"]
            .as_u64()
            .expect("a number")
    }

    /// Waits until no call is under way any more, whoever made it and whether or not they still wait for its answer.
    pub fn wait_until_idle(&self) {
        let look = || {
            let calls = self.calls_by_operation();
            (calls["underway"].as_u64(), calls["total"].as_u64())
        };
        let mut seen = look();
        loop {
            // A call that has arrived begins within that.
            std::thread::sleep(Duration::from_millis(200));
            let now = look();
            if now.0 == Some(0) && now == seen {
                return;
            }
            seen = now;
        }
    }

    pub fn forget_calls(&self) {
        self.send_control("POST", "calls/reset", "");
    }

    /// Milliseconds that every call takes longer.
    pub fn set_latency(&self, milliseconds: u32) {
        self.send_control("POST", "latency", &milliseconds.to_string());
    }

    /// Milliseconds for which Auto Scaling does not see what was made.
    pub fn set_lag(&self, milliseconds: u32) {
        let seconds = f64::from(milliseconds) / 1000.0;
        self.send_control("POST", "lag", &seconds.to_string());
    }

    /// How many vCPUs Auto Scaling may run in a region from here on.
    pub fn set_vcpus(&self, count: u32) {
        self.send_control("POST", "vcpus", &count.to_string());
    }

    /// Quotas that hold for the account, by their codes, in the place of those before.
    pub fn set_quotas(&self, quotas: &Value) {
        self.send_control("POST", "quotas", &quotas.to_string());
    }

    /// Tags that somebody else puts on everything that has tags, from here on.
    pub fn foreign_tags(&self, tags: &Value) {
        self.send_control("POST", "foreign-tags", &tags.to_string());
    }

    /// What is left of the faults.
    pub fn faults_left(&self) -> Value {
        serde_json::from_str(&self.send_control("GET", "faults", "")).expect("JSON")
    }

    pub fn set_faults(&self, faults: &Value) {
        self.send_control("POST", "faults", &faults.to_string());
    }

    /// What instances are reported to be; with [`Simulator::with_machines`].
    pub fn report_hosts(&self, report: &Value) {
        self.send_control("POST", "report", &report.to_string());
    }

    fn send_control(&self, method: &str, name: &str, body: &str) -> String {
        let address = self.endpoint.trim_start_matches("http://");
        let mut simulator = TcpStream::connect(address).expect("the simulator");
        let length = body.len();
        write!(
            simulator,
            "{method} /_simulator/{name} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .expect("a request");
        let mut answer = String::new();
        simulator.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a body");
        assert!(head.contains(" 200 OK"), "{answer}");
        body.to_owned()
    }
}
