//! `tests/release/catalog` against sites on this machine: what is published passes, and each thing that is not is named.

use crate::checkout_folder;
use node::digest::sha256_hex;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use test_support::write_script;

/// Stands for kctl: one instance group, and what it renders of it.
const KCTL: &str = r#"
case $1 in
    create) echo '[{"kind": "InstanceGroup", "spec": {"role": "Node", "image": "none"}}]' ;;
    render)
        while [ "$1" != --out ]; do shift; done
        mkdir -p "$2/addons/a" "$2/groups/nodes/manifests"
        printf '  image: 111122223333/debian-13\n' >"$2/cluster-completed.yaml"
        printf '        image: registry.example.org/tools/tool:v1\n        args:\n        - --helper=registry.example.org/helper:v2\n' >"$2/addons/a/v1.yaml"
        printf '  sandboxImage: pause\n  urls:\n  - https://new.example.org/program\n' >"$2/groups/nodes/nodeconfig.yaml"
        ;;
esac"#;

/// Stands for AWS' command line.
const AWS: &str =
    r#"case "$*" in *"--owners 111122223333"*Name=name,Values=debian-13*) echo ami-1 ;; esac"#;

/// Status, headers and body by path. A path with ` TOKEN` behind it is for requests with the token.
type Answers = BTreeMap<String, (u16, String, String)>;

fn published() -> Answers {
    let image = |repository: &str, tag: &str| format!("{repository}/manifests/{tag}");
    let digest = "Docker-Content-Digest: sha256:0123456789abcdef\r\n";
    let challenge =
        "WWW-Authenticate: Bearer realm=\"https://auth.example.org/token\",service=\"all\"\r\n";
    let tool = image("/registry.example.org/v2/tools/tool", "v1");
    let helper = image("/registry.example.org/v2/helper", "v2");
    let pause = image("/registry-1.docker.io/v2/library/pause", "latest");
    let kubelet = "/dl.example.org/release/v1.36.3/bin/linux/amd64/kubelet";
    let runc = "/files.example.org/runc/v1.0.0";
    let sums = format!(
        "{}  other\n{} *runc.amd64\n",
        sha256_hex("x"),
        sha256_hex("runc")
    );
    let answers = [
        (kubelet.to_owned(), 200, "", "kubelet".to_owned()),
        (format!("{kubelet}.sha256"), 200, "", sha256_hex("kubelet")),
        (format!("{runc}/runc.amd64"), 200, "", "runc".to_owned()),
        (format!("{runc}/runc.sha256sum"), 200, "", sums),
        (
            "/files.example.org/runc/v1.0.0/alone".to_owned(),
            200,
            "",
            "alone".to_owned(),
        ),
        (
            "/new.example.org/program".to_owned(),
            200,
            "",
            String::new(),
        ),
        (tool.clone(), 401, challenge, String::new()),
        (format!("{tool} TOKEN"), 200, digest, String::new()),
        (helper, 200, digest, String::new()),
        (pause, 200, digest, String::new()),
        (
            "/auth.example.org/token".to_owned(),
            200,
            "",
            "{\"token\": \"TOKEN\"}".to_owned(),
        ),
    ];
    let answers = answers.into_iter();
    answers
        .map(|(path, status, headers, body)| (path, (status, headers.to_owned(), body)))
        .collect()
}

/// Serves them until the test ends. Returns its URL.
fn serve(answers: Answers) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // Whoever asks may have hung up.
            let _ = answer(&stream.expect("a connection"), &answers);
        }
    });
    url
}

fn answer(mut stream: &TcpStream, answers: &Answers) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let target = first.split(' ').nth(1).unwrap_or_default();
    let mut path = target.split('?').next().unwrap_or_default().to_owned();
    for line in lines {
        let line = line?;
        if line.is_empty() {
            break;
        }
        if line.ends_with("Bearer TOKEN") {
            path.push_str(" TOKEN");
        }
    }
    let nothing = (404, String::new(), String::new());
    let (status, headers, body) = answers.get(&path).unwrap_or(&nothing);
    let length = body.len();
    let shown = if first.starts_with("HEAD") {
        ""
    } else {
        body.as_str()
    };
    write!(
        stream,
        "HTTP/1.1 {status} Said\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{shown}"
    )
}

/// Runs it in a checkout with a catalog of three files.
fn run(answers: Answers, aws: &str) -> Output {
    let parent = tempfile::tempdir().expect("a folder");
    let own = parent.path().join("checkout");
    let files = [
        ("files.example.org/runc/", "v1.0.0/runc.amd64", "runc"),
        ("files.example.org/runc/", "v1.0.0/alone", "alone"),
        (
            "dl.example.org/release/",
            "v1.36.3/bin/linux/amd64/kubelet",
            "kubelet",
        ),
    ];
    let sections = files.map(|(base, path, content)| {
        let sha256 = sha256_hex(content);
        format!("a:\n  base: https://{base}\n  files:\n  - path: {path}\n    sha256: {sha256}\n")
    });
    write(&own.join("model/spec/data/assets.yaml"), &sections.concat());
    write(&own.join("model/spec/tests/all/fields/base.yaml"), "a spec");
    let script = checkout_folder().join("tests/release/catalog");
    let script = std::fs::read_to_string(script).expect("the script");
    write(&own.join("tests/release/catalog"), &script);
    write_script(&parent.path().join("kctl"), KCTL);
    write_script(&parent.path().join("aws"), aws);
    let mut command = Command::new("python3");
    command
        .arg(own.join("tests/release/catalog"))
        .env("AWS_CLI", parent.path().join("aws"))
        .env("KCTL_CATALOG_SITES", serve(answers))
        .env("KCTL_BIN", parent.path().join("kctl"))
        .env("AWS_REGION", "us-east-1")
        .env("no_proxy", "*");
    command.output().expect("python3")
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    std::fs::write(path, text).expect("a file");
}

/// The rows of what is not as it should be.
fn wrong_rows(ran: &Output) -> Vec<String> {
    let said = String::from_utf8_lossy(&ran.stdout);
    let rows = said.lines().filter_map(|line| line.strip_prefix("NO  "));
    rows.map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

#[test]
fn what_is_published_passes() {
    let ran = run(published(), AWS);
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let last = said.lines().last();
    assert_eq!(last, Some("8 of 8 are published as the catalog has them"));
}

#[test]
fn what_is_not_published_or_other_is_named() {
    let kubelet = "/dl.example.org/release/v1.36.3/bin/linux/amd64/kubelet";
    let mut answers = published();
    let other = sha256_hex("another");
    answers.insert(
        format!("{kubelet}.sha256"),
        (200, String::new(), other.clone()),
    );
    answers.insert(
        "/files.example.org/runc/v1.0.0/alone".into(),
        (200, String::new(), "changed".into()),
    );
    answers.remove("/new.example.org/program");
    answers.remove("/registry.example.org/v2/tools/tool/manifests/v1 TOKEN");
    answers.remove("/registry.example.org/v2/helper/manifests/v2");
    let ran = run(answers, "exit 0");
    assert_eq!(ran.status.code(), Some(1));
    assert_eq!(
        wrong_rows(&ran),
        [
            format!(
                "file https:/{kubelet} SHA-256 {other}, in the catalog {}",
                sha256_hex("kubelet")
            ),
            format!(
                "file https://files.example.org/runc/v1.0.0/alone SHA-256 {}, in the catalog {}",
                sha256_hex("changed"),
                sha256_hex("alone")
            ),
            "file https://new.example.org/program answer 404".to_owned(),
            "image registry.example.org/helper:v2 answer 404".to_owned(),
            "image registry.example.org/tools/tool:v1 answer 404".to_owned(),
            "instance image 111122223333/debian-13 not in us-east-1".to_owned(),
        ]
    );
}

#[test]
fn what_could_not_be_asked_does_not_pass() {
    let ran = run(published(), "echo 'no credentials' >&2; exit 255");
    assert_eq!(ran.status.code(), Some(1));
    let row = "instance image 111122223333/debian-13 could not be asked: no credentials";
    assert_eq!(wrong_rows(&ran), [row]);
}
