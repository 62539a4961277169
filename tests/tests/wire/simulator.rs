//! One AWS simulator for each test that wants one.

use aws::{Access, Clients, Keys};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A running simulator; it ends with its owner.
pub struct Simulator {
    child: Child,
    pub endpoint: String,
    python: PathBuf,
    /// Who the tests are: anybody, or with `--strict` its administrator. Id and secret.
    keys: (String, String),
}

impl Drop for Simulator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The tests' folder, also for tests of another package.
fn folder() -> PathBuf {
    PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs this")).join("../tests")
}

impl Simulator {
    /// Starts one and waits until it answers.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// One whose instances, volumes and consoles are as they are reported to be.
    pub fn with_machines() -> Self {
        Self::start_with(&["--machines"])
    }

    /// One that lets nobody do what no policy allows. Its administrator's credentials are written to that file.
    pub fn strict(credentials: &std::path::Path) -> Self {
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
        let venv = Command::new(folder().join("simulator/venv.sh"))
            .output()
            .expect("the simulator's Python environment");
        let venv = String::from_utf8(venv.stdout).expect("a path");
        let python = PathBuf::from(venv.trim()).join("bin/python");
        let mut child = Command::new(&python)
            .args(["-m", "simulator", "--port", "0", "--settle", "0.2"])
            .arg("--until-stdin-closes")
            .args(options)
            .current_dir(folder())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the simulator");
        let out = child.stdout.take().expect("its output");
        let line = BufReader::new(out).lines().next();
        let line = line.expect("a first line").expect("text");
        let endpoint = line.strip_prefix("listening on ").expect("an address");
        Self {
            endpoint: endpoint.to_owned(),
            child,
            python,
            keys: ("AKIAEXAMPLE".to_owned(), "secret".to_owned()),
        }
    }

    pub async fn clients(&self, region: &str) -> Clients {
        Clients::reach(&Access {
            region: Some(region.to_owned()),
            profile: None,
            endpoint: Some(self.endpoint.clone()),
            keys: Some(Keys {
                id: self.keys.0.clone(),
                secret: self.keys.1.clone(),
                session: None,
            }),
            ..Access::default()
        })
        .await
    }

    /// Everything that exists, tagged or not, by another client in another language.
    pub fn listing(&self, region: &str) -> BTreeSet<String> {
        let out = Command::new(&self.python)
            .args(["-m", "simulator.listing", "--region", region])
            .args(["--endpoint", &self.endpoint])
            .current_dir(folder())
            .env("AWS_ACCESS_KEY_ID", &self.keys.0)
            .env("AWS_SECRET_ACCESS_KEY", &self.keys.1)
            .output()
            .expect("the listing");
        assert!(
            out.status.success(),
            "{}",
            String::from_utf8_lossy(&out.stderr)
        );
        let text = String::from_utf8(out.stdout).expect("text");
        text.lines().map(ToOwned::to_owned).collect()
    }

    /// Runs Python with `boto3` as `boto(SERVICE)` in the region; for what the tests need beside the cluster.
    pub fn python(&self, region: &str, code: &str) -> String {
        let head = format!(
            "import boto3\ndef boto(s): return boto3.client(s, region_name={region:?}, endpoint_url={:?}, aws_access_key_id={:?}, aws_secret_access_key={:?})\n",
            self.endpoint, self.keys.0, self.keys.1
        );
        let out = Command::new(&self.python)
            .args(["-c", &(head + code)])
            .output()
            .expect("Python");
        assert!(
            out.status.success(),
            "{}",
            String::from_utf8_lossy(&out.stderr)
        );
        String::from_utf8(out.stdout)
            .expect("text")
            .trim()
            .to_owned()
    }

    /// Calls by service and operation since the last reset of the counts.
    pub fn calls(&self) -> Value {
        serde_json::from_str(&self.control("GET", "calls", "")).expect("JSON")
    }

    /// How many calls there were, S3's too; asked often it costs little.
    pub fn count(&self) -> u64 {
        let address = self.endpoint.trim_start_matches("http://");
        let mut to = TcpStream::connect(address).expect("the simulator");
        to.write_all(b"GET /_simulator/calls HTTP/1.0\r\n\r\n")
            .expect("a request");
        let mut answer = String::new();
        to.read_to_string(&mut answer).expect("an answer");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        let calls: Value = serde_json::from_str(body).expect("JSON");
        calls["total"].as_u64().expect("a number")
    }

    /// Waits until no call is under way any more, whoever made it and whether or not they still wait for its answer.
    pub fn rests(&self) {
        let look = || {
            let calls = self.calls();
            (calls["underway"].as_u64(), calls["total"].as_u64())
        };
        let mut seen = look();
        loop {
            // A call that has arrived begins within that.
            std::thread::sleep(Duration::from_millis(100));
            let now = look();
            if now.0 == Some(0) && now == seen {
                return;
            }
            seen = now;
        }
    }

    pub fn forget_calls(&self) {
        self.control("POST", "calls/reset", "");
    }

    /// Milliseconds that every call takes longer.
    pub fn latency(&self, milliseconds: u32) {
        self.control("POST", "latency", &milliseconds.to_string());
    }

    /// Milliseconds for which Auto Scaling does not see what was made.
    pub fn lag(&self, milliseconds: u32) {
        let seconds = f64::from(milliseconds) / 1000.0;
        self.control("POST", "lag", &seconds.to_string());
    }

    /// Tags that somebody else puts on everything that has tags, from here on.
    pub fn foreign_tags(&self, tags: &Value) {
        self.control("POST", "foreign-tags", &tags.to_string());
    }

    /// What is left of the faults.
    pub fn faults_left(&self) -> Value {
        serde_json::from_str(&self.control("GET", "faults", "")).expect("JSON")
    }

    pub fn faults(&self, faults: &Value) {
        self.control("POST", "faults", &faults.to_string());
    }

    /// What machines are reported to be; with [`Simulator::with_machines`].
    pub fn report(&self, report: &Value) {
        self.control("POST", "report", &report.to_string());
    }

    fn control(&self, method: &str, name: &str, body: &str) -> String {
        let url = format!("{}/_simulator/{name}", self.endpoint);
        let code = "import sys,urllib.request as u\nr=u.Request(sys.argv[2],method=sys.argv[1],data=sys.argv[3].encode() or None)\nprint(u.urlopen(r).read().decode())";
        let out = Command::new("python3")
            .args(["-c", code, method, &url, body])
            .output()
            .expect("Python");
        assert!(
            out.status.success(),
            "{}",
            String::from_utf8_lossy(&out.stderr)
        );
        String::from_utf8(out.stdout).expect("text")
    }
}
