//! What machines send to protokube, and what lies in the state store and on volumes. The first byte says which it is.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloud::facts::Facts;
use etcd_rules::{FormationRecord, Marker, as_existing, log_identity, read_log_position};
use node::bootstrap::{JoinRequest, check_report, check_requests, identify_caller, parse_identity};
use node::config::read_boot_config;
use node::pki::{read_keyset, trust_bundle, write_keyset};
use node::waits::{WAITS_LIMIT, read_waits};
use node::yaml::to_yaml;

pub fn law(data: &[u8]) {
    let Some((which, rest)) = data.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(rest);
    match which % 12 {
        0 => keyset(&text),
        1 => drop(FormationRecord::parse("record", rest).map(|record| record.to_json())),
        2 => drop(Marker::parse("marker", rest).map(|marker| marker.to_json())),
        3 => drop(as_existing(&text)),
        4 => drop(parse_identity(Some(&text))),
        5 => drop(parse_identity(Some(&STANDARD.encode(rest)))),
        6 => join(rest),
        7 => drop(identify_caller(
            "123456789012",
            &text,
            "arn:aws:iam::123456789012:role/x",
        )),
        8 => drop(check_report(
            rest,
            "i-0123456789abcdef0",
            "demo.example.com",
            "nodes",
        )),
        9 => boot(&text),
        10 => waits(rest),
        _ => {
            drop(log_identity(rest));
            drop(read_log_position(rest));
        }
    }
}

fn keyset(text: &str) {
    let Ok(keyset) = read_keyset("kubernetes-ca", text) else {
        return;
    };
    let _ = trust_bundle(&keyset);
    let written = write_keyset(&keyset).expect("a keyset has a YAML form");
    let again = read_keyset("kubernetes-ca", written.reveal());
    assert_eq!(
        again.expect("a keyset is read back").primary,
        keyset.primary
    );
}

fn join(data: &[u8]) {
    if let Ok(join) = serde_json::from_slice::<JoinRequest>(data) {
        let _ = check_requests(&join.requests, "i-0123456789abcdef0");
    }
}

/// What was read once is as long as a report may be, and stays as it is.
fn waits(data: &[u8]) {
    const INSTANCE: &str = "i-0123456789abcdef0";
    let Ok(waits) = read_waits(data, INSTANCE) else {
        return;
    };
    let written = serde_json::to_vec_pretty(&waits).expect("it has a JSON form");
    assert!(written.len() <= WAITS_LIMIT, "{}", written.len());
    assert_eq!(read_waits(&written, INSTANCE), Ok(waits));
}

fn boot(text: &str) {
    let Ok(boot) = read_boot_config(text) else {
        return;
    };
    let written = to_yaml(&boot).expect("it has a YAML form");
    assert_eq!(read_boot_config(&written).expect("it is read back"), boot);
    let _ = Facts::default();
}
