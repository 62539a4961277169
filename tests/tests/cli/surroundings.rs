//! kctl in surroundings that lack what programs usually have: it works, or ends with an error that says why, and never panics.

use crate::kctl::Kctl;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

/// Shell lines before kctl is executed.
const SURROUNDINGS: [&str; 22] = [
    "unset HOME USER PATH COLUMNS",
    "export HOME=/nonexistent",
    "export HOME=",
    "export SSL_CERT_FILE=/nonexistent",
    "export SSL_CERT_FILE=/etc",
    "export SSL_CERT_FILE=/dev/null",
    "export SSL_CERT_FILE=/etc/passwd",
    "printf -- '-----BEGIN CERTIFICATE-----\\nMIIB' >cut.pem; export SSL_CERT_FILE=cut.pem",
    "printf -- '-----BEGIN CERTIFICATE-----\\nMIIB\\n-----END CERTIFICATE-----\\n' >bad.pem; export SSL_CERT_FILE=bad.pem",
    "export SSL_CERT_DIR=/nonexistent",
    "export SSL_CERT_FILE= SSL_CERT_DIR=",
    "export TMPDIR=/nonexistent",
    "export LANG=xx_YY.broken LC_ALL=broken TZ=Nowhere/There",
    "export TERM=broken COLUMNS=-1 LINES=x",
    "export COLUMNS=0",
    "export ODD=\"$(printf '\\377')\" USER=\"$(printf '\\377')\"",
    "export HTTPS_PROXY=: http_proxy=not-a-url NO_PROXY=[",
    "export AWS_CONFIG_FILE=/nonexistent AWS_SHARED_CREDENTIALS_FILE=/etc",
    "mkdir gone; cd gone; rmdir ../gone",
    "exec <&-",
    "exec >&-",
    "exec 2>&-",
];

const COMMANDS: [&str; 5] = [
    "version",
    "get clusters",
    "create cluster demo.example.com --zones eu-west-1a --dry-run",
    "update demo.example.com",
    "export kubeconfig demo.example.com",
];

/// Runs a command of kctl in a shell after these lines, with an empty state store in the home.
fn run_in(kctl: &Kctl, lines: &str, command: &str, wrapper: &[&str]) -> Output {
    let script = format!("{lines}\nexec \"$0\" {command}");
    let program = env!("CARGO_BIN_EXE_kctl");
    let words = [wrapper, &["sh", "-c", &script, program]].concat();
    let store = format!("file://{}", kctl.home_path("store").display());
    let mut child = Command::new(words[0]);
    child
        .args(&words[1..])
        .current_dir(kctl.dir.path())
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", kctl.dir.path())
        .env("KCTL_STATE_STORE", store)
        .envs([("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")])
        .envs([("AWS_REGION", "eu-west-1"), ("USER", "tester")])
        .stdin(Stdio::null());
    child.output().expect("a shell")
}

/// An S3 on plain http that denies everything.
fn denying_store() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("its address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            let body = "<Error><Code>AccessDenied</Code><Message>denied</Message></Error>";
            let _ = write!(
                stream,
                "HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
        }
    });
    address
}

fn assert_ended(ran: &Output, what: &str) -> String {
    let text = String::from_utf8_lossy(&[&ran.stdout[..], &ran.stderr].concat()).into_owned();
    assert!(!text.contains("panicked"), "{what}: {text}");
    assert_eq!(ran.status.signal(), None, "{what}: {text}");
    let code = ran.status.code().unwrap_or_default();
    assert!(code < 100, "{what} ends with {code}: {text}");
    text
}

#[test]
fn no_surroundings_lead_to_a_panic() {
    let kctl = Kctl::new();
    for surroundings in SURROUNDINGS {
        for command in COMMANDS {
            let what = format!("{surroundings}: {command}");
            let ran = run_in(&kctl, surroundings, command, &[]);
            assert_ended(&ran, &what);
            if command == "version" && surroundings != "exec >&-" {
                assert!(ran.status.success(), "{what}");
            }
        }
    }
}

#[test]
fn output_that_nobody_takes_is_an_error_or_the_end_and_no_panic() {
    let kctl = Kctl::new();
    for command in COMMANDS {
        let ran = run_in(&kctl, "exec >/dev/full 2>/dev/full", command, &[]);
        assert_ended(&ran, command);
        let ran = run_in(&kctl, "exec >/dev/full", command, &[]);
        assert_ended(&ran, command);
    }
}

/// The folders of authorities are hidden in a mount namespace, which needs root.
#[test]
fn without_ca_certificates_http_works_and_https_says_what_to_install() {
    let hide = "for folder in /etc/ssl /etc/pki /usr/share/ca-certificates /usr/local/share/certs; do \
                [ ! -d $folder ] || mount -t tmpfs none $folder; done";
    let namespace = ["unshare", "--mount"];
    let kctl = Kctl::new();
    let ran = run_in(&kctl, hide, "version", &namespace);
    if !ran.status.success() {
        println!(
            "SKIPPED: no mount namespace: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
        return;
    }
    let s3 = "export KCTL_STATE_STORE=s3://state/clusters";
    let http = denying_store();
    for more in [
        "",
        "SSL_CERT_FILE=/nonexistent",
        "SSL_CERT_DIR=/nonexistent",
    ] {
        let lines = format!("{hide}\nexport A= {more}");
        for command in COMMANDS {
            let text = assert_ended(&run_in(&kctl, &lines, command, &namespace), command);
            assert!(!text.contains("CA certificates"), "{command}: {text}");
        }
        let plain = format!("{lines}\n{s3} AWS_ENDPOINT_URL={http}");
        let text = assert_ended(&run_in(&kctl, &plain, "get clusters", &namespace), "http");
        let denied = text.contains("denied") && !text.contains("CA certificates");
        assert!(denied, "{text}");
        let https = format!("{lines}\n{s3} AWS_ENDPOINT_URL=https://127.0.0.1:9");
        let text = assert_ended(&run_in(&kctl, &https, "get clusters", &namespace), "https");
        for words in ["no CA certificates", "ca-certificates", "SSL_CERT_FILE"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        if !more.is_empty() {
            assert!(text.contains("/nonexistent"), "{text}");
        }
    }
}
