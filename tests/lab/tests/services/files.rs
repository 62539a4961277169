//! The asset mirror, and ranges.

use crate::support::{TestFront, curl};
use lab::services::files::{Part, part};
use proptest::prelude::*;
use std::process::Stdio;
use tokio::process::Command;

async fn mirror() -> TestFront {
    TestFront::before("127.0.0.1:1".parse().expect("address")).await
}

const KUBELET: &str = "https://dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubelet";

#[tokio::test]
async fn a_file_is_served_under_its_public_name() {
    let front = mirror().await;
    let content = vec![7; 300_000];
    front.write(
        "mirror/dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubelet",
        &content,
    );
    let answer = front.get(&[KUBELET]).await.expect("an answer");
    assert_eq!(answer.status, 200);
    assert!(answer.body == content);
    assert_eq!(answer.header("accept-ranges"), Some("bytes"));
    let etag = answer.header("etag").expect("etag").to_owned();

    let head = front.get(&["--head", KUBELET]).await.expect("an answer");
    assert_eq!(head.status, 200);
    assert_eq!(head.header("content-length"), Some("300000"));
    let known = format!("If-None-Match: {etag}");
    let again = front
        .get(&["-H", &known, KUBELET])
        .await
        .expect("an answer");
    assert_eq!((again.status, again.body.len()), (304, 0));

    let log = front.log();
    assert_eq!(log[0]["service"], "mirror");
    assert_eq!(log[0]["host"], "dl.k8s.io");
    assert_eq!(log[0]["bytes"], 300_000);
    assert_eq!(log[1]["bytes"], 0);
}

#[tokio::test]
async fn what_is_not_there_is_said_to_be_not_there() {
    let front = mirror().await;
    front.write("mirror/dl.k8s.io/file", b"x");
    front.write("secret", b"x");
    front.write("outside/secret", b"x");
    for (url, status) in [
        ("https://dl.k8s.io/none", 404),
        ("https://dl.k8s.io/", 404),
        ("https://dl.k8s.io/file/below", 404),
        ("https://dl.k8s.io/../../secret", 400),
        ("https://dl.k8s.io/%2e%2e/%2e%2e/secret", 400),
        ("https://dl.k8s.io/..%2f..%2fsecret", 400),
        ("https://dl.k8s.io/%zz", 400),
        ("https://example.com/file", 404),
    ] {
        let answer = front.get(&["--path-as-is", url]).await.expect("an answer");
        assert_eq!(answer.status, status, "{url}");
    }
    let plain = format!("http://{}/secret", front.plain);
    for host in ["..", ".", "", "../outside", "dl.k8s.io/../../outside"] {
        let header = format!("Host: {host}");
        let answer = curl(&["-H", &header, &plain]).await;
        let status = answer.map_or(400, |answer| answer.status);
        assert!([400, 404].contains(&status), "host {host:?}: {status}");
    }
    let put = ["-X", "PUT", "https://dl.k8s.io/file"];
    assert_eq!(front.get(&put).await.expect("an answer").status, 405);
}

#[tokio::test]
async fn a_download_that_broke_off_is_resumed_unless_the_file_has_changed() {
    let front = mirror().await;
    let content: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    front.write("mirror/dl.k8s.io/big", &content);
    let partial = front.folder.path().join("partial");
    std::fs::write(&partial, &content[..123_457]).expect("file");
    let address = format!("dl.k8s.io:80:{}", front.plain);
    let resumed = Command::new("curl")
        .args([
            "--silent",
            "--fail",
            "--continue-at",
            "-",
            "--connect-to",
            &address,
        ])
        .args(["http://dl.k8s.io/big", "--output"])
        .arg(&partial)
        .stderr(Stdio::inherit())
        .status()
        .await
        .expect("curl");
    assert!(resumed.success());
    assert!(std::fs::read(&partial).expect("file") == content);

    let url = format!("http://{}/big", front.plain);
    let ask = async |header: &str| {
        let arguments = [
            "-H",
            "Host: dl.k8s.io",
            "-H",
            "Range: bytes=5-9",
            "-H",
            header,
            &url,
        ];
        curl(&arguments).await.expect("an answer")
    };
    let answer = ask("Accept: */*").await;
    assert_eq!(
        (answer.status, answer.body.as_slice()),
        (206, &content[5..10])
    );
    assert_eq!(answer.header("content-range"), Some("bytes 5-9/400000"));
    assert_eq!(ask("If-Range: \"of before\"").await.status, 200);
}

proptest! {
    /// RFC 9110, 14.1.2: `a-b` is bytes a to b as far as they are there, `a-` those from a, `-n` the last n.
    #[test]
    fn a_range_gives_the_bytes_it_names(size in 0_u64..40, first in 0_u64..50, last in 0_u64..50, form in 0..3) {
        let all: Vec<u64> = (0..size).collect();
        let named = |wanted: &dyn Fn(u64) -> bool| -> Vec<u64> {
            all.iter().copied().filter(|byte| wanted(*byte)).collect()
        };
        let (text, expected) = match form {
            0 => (format!("bytes={first}-{last}"), named(&|byte| (first..=last).contains(&byte))),
            1 => (format!("bytes={first}-"), named(&|byte| byte >= first)),
            _ => (format!("bytes=-{last}"), named(&|byte| byte + last >= size)),
        };
        match part(&text, size) {
            Part::Bytes(from, length) => {
                prop_assert_eq!(&expected, &(from..from + length).collect::<Vec<_>>());
            }
            Part::Unsatisfiable => prop_assert!(expected.is_empty()),
            Part::Whole => prop_assert!(form == 0 && last < first, "a range that is none"),
        }
    }
}
