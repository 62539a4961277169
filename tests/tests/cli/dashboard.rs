//! `kctl dashboard`: who gets its page, and how often it looks at the cluster.

use crate::api_server::ApiServer;
use crate::instances::Cluster;
use crate::scenario::NAME;
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// A dashboard that runs, and the two parts of the address that it printed: `127.0.0.1:PORT` and `/SECRET/`.
struct Dashboard {
    kctl: Child,
    address: String,
    path: String,
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.kctl.kill();
        let _ = self.kctl.wait();
    }
}

impl Dashboard {
    fn start(cluster: &Cluster, more: &[&str]) -> Self {
        let words = [&["dashboard", NAME][..], more].concat();
        let mut kctl = cluster.kctl.start_command(&words, Stdio::null());
        let mut line = String::new();
        let mut out = BufReader::new(kctl.stdout.take().expect("its output"));
        out.read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("http://");
        let parts = address.and_then(|address| address.split_once('/'));
        let (address, path) = parts.unwrap_or_else(|| panic!("{line:?}"));
        let (address, path) = (address.to_owned(), format!("/{path}"));
        Self {
            kctl,
            address,
            path,
        }
    }

    /// A connection on which a page was asked for.
    fn begin(&self, method: &str, path: &str, host: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").expect("a request");
        stream
    }

    /// The status, and the whole answer.
    fn ask(&self, method: &str, path: &str, host: &str) -> (u16, String) {
        let mut answer = String::new();
        let mut stream = self.begin(method, path, host);
        stream.read_to_string(&mut answer).expect("an answer");
        let status = answer.split(' ').nth(1).and_then(|text| text.parse().ok());
        (status.unwrap_or_else(|| panic!("{answer}")), answer)
    }

    fn page(&self) -> (u16, String) {
        self.ask("GET", &self.path, &self.address)
    }
}

/// Looks at AWS since the last reset of the counts.
fn looks(cluster: &Cluster) -> Option<u64> {
    let calls = cluster.simulator.calls_by_operation()["calls"].clone();
    calls["autoscaling.DescribeAutoScalingGroups"].as_u64()
}

#[test]
fn a_dashboard_serves_this_computer_alone_and_looks_once_in_its_interval() {
    let cluster = Cluster::new_cluster(1);
    cluster.report_boots(&[]);
    let api = cluster.start_api();
    cluster.api_shows_joined(&api, &[&cluster.workers[0]]);
    check_who_gets_the_page(&cluster, &api);
    check_that_a_browser_may_go_away(&cluster, &api);
    check_what_it_says_of_errors(&cluster, &api);
    check_that_it_reads_what_nodeup_says_later(&cluster, &api);
}

fn check_who_gets_the_page(cluster: &Cluster, api: &ApiServer) {
    let more = ["--api-server", &api.url, "--interval", "1h"];
    let mut dashboard = Dashboard::start(cluster, &more);
    assert!(dashboard.address.starts_with("127.0.0.1:"));
    let port = dashboard.address.trim_start_matches("127.0.0.1");
    // All of 127.0.0.0/8 leads here, and it listens at one address of it.
    assert!(TcpStream::connect(format!("127.0.0.2{port}")).is_err());

    cluster.simulator.forget_calls();
    for host in ["evil.example.com", &format!("evil.example.com{port}")] {
        let (status, answer) = dashboard.ask("GET", &dashboard.path, host);
        assert_eq!(status, 421, "{answer}");
        assert!(!answer.contains(NAME), "{answer}");
    }
    assert_eq!(
        dashboard.ask("POST", &dashboard.path, &dashboard.address).0,
        405
    );
    // Who does not know its path gets nothing.
    assert_eq!(dashboard.path.len(), 34);
    for path in ["/", "/nodes"] {
        let (status, answer) = dashboard.ask("GET", path, &dashboard.address);
        assert_eq!(status, 404, "{answer}");
        assert!(!answer.contains(&dashboard.path), "{answer}");
    }
    assert_eq!(looks(cluster), None, "nobody who may look has looked");

    for host in [&dashboard.address, &format!("localhost{port}")] {
        let (status, answer) = dashboard.ask("GET", &dashboard.path, host);
        assert_eq!(status, 200, "{answer}");
        for id in [&cluster.control_plane, &cluster.workers[0]] {
            assert!(answer.contains(id), "{id}");
        }
        let (head, _) = answer.split_once("\r\n\r\n").expect("a body");
        for header in [
            "content-type: text/html; charset=utf-8",
            "content-security-policy: default-src 'none'; style-src 'sha256-",
            "frame-ancestors 'none'",
            "cache-control: no-store",
            "x-content-type-options: nosniff",
        ] {
            assert!(head.contains(header), "{header}: {head}");
        }
    }
    assert_eq!(looks(cluster), Some(1), "the second page is the first");

    let id = dashboard.kctl.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status();
    assert!(sent.expect("kill").success());
    let ended = dashboard.kctl.wait().expect("its end");
    assert_eq!(ended.code(), Some(0));
}

fn check_that_a_browser_may_go_away(cluster: &Cluster, api: &ApiServer) {
    let more = ["--api-server", &api.url, "--interval", "1h"];
    let dashboard = Dashboard::start(cluster, &more);
    cluster.simulator.set_latency(100);
    cluster.simulator.forget_calls();
    let asking = dashboard.begin("GET", &dashboard.path, &dashboard.address);
    while looks(cluster).is_none() {
        sleep(Duration::from_millis(20));
    }
    drop(asking);
    assert_eq!(dashboard.page().0, 200);
    assert_eq!(looks(cluster), Some(1), "it goes on without its browser");
    cluster.simulator.set_latency(0);
}

fn check_what_it_says_of_errors(cluster: &Cluster, api: &ApiServer) {
    let more = ["--api-server", &api.url, "--interval", "1s"];
    let dashboard = Dashboard::start(cluster, &more);
    cluster.simulator.set_faults(
        &json!([{"service": "ec2", "operation": "DescribeInstances", "times": 1_000_000,
        "code": "UnauthorizedOperation", "message": "no", "status": 403}]),
    );
    let (status, answer) = dashboard.page();
    assert_eq!(status, 503, "{answer}");
    for words in ["text/plain", "ec2:DescribeInstances", "hint: "] {
        assert!(answer.contains(words), "{words}: {answer}");
    }
    cluster.simulator.set_faults(&json!([]));
    sleep(Duration::from_millis(1100));
    let (status, answer) = dashboard.page();
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains(&cluster.workers[0]), "{answer}");
}

fn check_that_it_reads_what_nodeup_says_later(cluster: &Cluster, api: &ApiServer) {
    let more = ["--api-server", &api.url, "--interval", "1s"];
    let dashboard = Dashboard::start(cluster, &more);
    for error in ["the first error", "the second error"] {
        cluster.store_report(&cluster.workers[0], error);
        sleep(Duration::from_millis(1100));
        let (_, answer) = dashboard.page();
        assert!(answer.contains(error), "{answer}");
    }
}
