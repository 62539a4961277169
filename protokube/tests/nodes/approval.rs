//! Serving certificates of kubelets are approved if EC2 confirms their names and addresses.

use crate::fakes::api::FakeApi;
use crate::fakes::aws::FakeAws;
use crate::fakes::{INSTANCE, LogLines, NAME, control_plane, running_instance};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};

struct ApprovalFixture {
    api: FakeApi,
    aws: FakeAws,
    lines: LogLines,
}

/// Starts the role with this API server and an EC2 with these instances.
async fn start_approval(api: FakeApi, instances: &[&str]) -> ApprovalFixture {
    let (aws, lines) = (FakeAws::default(), LogLines::default());
    let url = aws.start().await;
    let instance = control_plane(&aws, &url).await;
    for id in instances {
        aws.lock_state().instances.push(running_instance(id));
    }
    let (client, log) = (api.new_client().await, lines.new_log());
    tokio::spawn(async move {
        let ended = protokube::approval::approve_requests(client, instance, NAME, &log).await;
        panic!("{ended:?}");
    });
    ApprovalFixture { api, aws, lines }
}

/// kubelet's request for a serving certificate with these names and addresses.
pub fn serving_request(node: &str, names: &[&str]) -> Value {
    let user = format!("system:node:{node}");
    let params = signing_request(&user, names);
    json!({
        "signerName": "kubernetes.io/kubelet-serving",
        "username": user,
        "groups": ["system:nodes", "system:authenticated"],
        "usages": ["digital signature", "server auth"],
        "request": STANDARD.encode(params),
    })
}

/// kubelet's request to renew its client certificate.
pub fn renewal_request(node: &str) -> Value {
    let mut spec = serving_request(node, &[]);
    spec["signerName"] = json!("kubernetes.io/kube-apiserver-client-kubelet");
    spec["usages"] = json!(["digital signature", "client auth"]);
    spec
}

/// Requests that the API server reads as one for `evil`, but other parsers as one for `good`: Go's PEM parser skips a block with text
/// after the dashes of its first line, and one whose last line has another label.
pub fn double_requests(node: &str, good: &[&str], evil: &[&str]) -> [Value; 2] {
    let user = format!("system:node:{node}");
    let (good, evil) = (signing_request(&user, good), signing_request(&user, evil));
    [
        good.replacen("REQUEST-----\n", "REQUEST-----x\n", 1),
        good.replace("END CERTIFICATE REQUEST", "END X"),
    ]
    .map(|first| {
        let mut spec = serving_request(node, &[]);
        spec["request"] = json!(STANDARD.encode(format!("{first}{evil}")));
        spec
    })
}

fn signing_request(user: &str, names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name = DistinguishedName::new();
    let subject = &mut params.distinguished_name;
    subject.push(DnType::OrganizationName, "system:nodes");
    subject.push(DnType::CommonName, user);
    let key = KeyPair::generate().unwrap();
    params.serialize_request(&key).unwrap().pem().unwrap()
}

fn is_approved(api: &FakeApi, name: &str) -> bool {
    let conditions = &api.signing_request(name)["status"]["conditions"];
    conditions[0]["type"] == "Approved" && conditions[0]["status"] == "True"
}

#[tokio::test]
async fn what_ec2_confirms_is_approved_in_one_look() {
    let nodes = [
        "i-0123456789abcdef0",
        "i-0123456789abcdef1",
        "i-0123456789abcdef2",
    ];
    let api = FakeApi::new();
    for (index, node) in nodes.iter().enumerate() {
        let dns = format!("{node}.eu-west-1.compute.internal");
        let public = "ec2-203-0-113-7.eu-west-1.compute.amazonaws.com";
        let names = [
            node,
            dns.as_str(),
            public,
            "172.20.1.7",
            "203.0.113.7",
            "2001:db8::7",
        ];
        api.put_request(&format!("csr-{index}"), &serving_request(node, &names));
    }
    let fixture = start_approval(api, &nodes).await;
    let all = |api: &FakeApi| (0..3).all(|index| is_approved(api, &format!("csr-{index}")));
    fixture.api.wait_until(all).await;
    assert_eq!(fixture.aws.count_calls("DescribeInstances"), 1);
    let patches = &fixture.api.lock_objects().patches;
    assert!(
        patches.iter().all(|(path, _)| path.ends_with("/approval")),
        "{patches:?}"
    );
}

#[tokio::test]
async fn what_comes_later_is_approved_too() {
    let fixture = start_approval(FakeApi::new(), &[INSTANCE]).await;
    fixture
        .api
        .put_request("csr-later", &serving_request(INSTANCE, &["172.20.1.7"]));
    fixture
        .api
        .wait_until(|api| is_approved(api, "csr-later"))
        .await;
}

#[tokio::test]
async fn everything_else_is_left_alone_with_one_line() {
    let api = FakeApi::new();
    let other = "i-0123456789abcdef1";
    let mut foreign = serving_request(INSTANCE, &["172.20.1.7"]);
    foreign["username"] = json!("system:serviceaccount:kube-system:somebody");
    for (name, spec) in [
        ("csr-address", serving_request(INSTANCE, &["172.20.1.8"])),
        (
            "csr-name",
            serving_request(INSTANCE, &["172.20.1.7", "kubernetes.default.svc"]),
        ),
        ("csr-unknown", serving_request(other, &["172.20.1.7"])),
        ("csr-foreign", foreign),
    ] {
        api.put_request(name, &spec);
    }
    let fixture = start_approval(api, &[INSTANCE]).await;
    // Once this request is approved, all others have been checked more than once.
    fixture
        .api
        .put_request("csr-good", &serving_request(INSTANCE, &["172.20.1.7"]));
    fixture
        .api
        .wait_until(|api| is_approved(api, "csr-good"))
        .await;
    fixture
        .api
        .put_request("csr-good-2", &serving_request(INSTANCE, &["172.20.1.7"]));
    fixture
        .api
        .wait_until(|api| is_approved(api, "csr-good-2"))
        .await;
    for name in ["csr-address", "csr-name", "csr-unknown", "csr-foreign"] {
        assert_eq!(
            fixture.api.signing_request(name)["status"],
            Value::Null,
            "{name}"
        );
    }
    let lines = fixture.lines.json_lines();
    let details = lines.iter().map(|line| line["detail"].as_str().unwrap());
    let left: Vec<&str> = details
        .filter(|detail| detail.contains("not approved"))
        .collect();
    let users = [INSTANCE, other].map(|node| format!("system:node:{node}"));
    let foreign = "system:serviceaccount:kube-system:somebody".to_owned();
    for user in users.into_iter().chain([foreign]) {
        let user_text = format!("of {user}: ");
        let matching = left.iter().filter(|detail| detail.contains(&user_text));
        assert_eq!(matching.count(), 1, "{user}: {left:?}");
    }
}

#[tokio::test]
async fn a_request_that_the_api_server_would_read_otherwise_is_left_alone() {
    let fixture = start_approval(FakeApi::new(), &[INSTANCE]).await;
    let evil = [
        "172.20.1.7",
        "kubernetes.default.svc",
        "api.internal.a.example.com",
    ];
    let attacks = double_requests(INSTANCE, &["172.20.1.7"], &evil);
    for (index, attack) in attacks.iter().enumerate() {
        fixture
            .api
            .put_request(&format!("csr-attack-{index}"), attack);
    }
    fixture
        .api
        .put_request("csr-good", &serving_request(INSTANCE, &["172.20.1.7"]));
    fixture
        .api
        .wait_until(|api| is_approved(api, "csr-good"))
        .await;
    for index in 0..attacks.len() {
        let attack = fixture.api.signing_request(&format!("csr-attack-{index}"));
        assert_eq!(attack["status"], Value::Null, "{attack}");
    }
}

#[tokio::test]
async fn a_client_certificate_is_renewed_while_its_instance_runs_and_no_longer() {
    let fixture = start_approval(FakeApi::new(), &[INSTANCE]).await;
    fixture
        .api
        .put_request("csr-renewal", &renewal_request(INSTANCE));
    fixture
        .api
        .wait_until(|api| is_approved(api, "csr-renewal"))
        .await;
    "terminated".clone_into(&mut fixture.aws.lock_state().instances[0].state);
    fixture
        .api
        .put_request("csr-ghost", &renewal_request(INSTANCE));
    let mut other = renewal_request(INSTANCE);
    other["username"] = json!("system:node:i-0123456789abcdef1");
    fixture.api.put_request("csr-other", &other);
    let is_logged = |_: &FakeApi| {
        let text = fixture.lines.all_text();
        text.contains("terminated, not running") && text.contains("EC2 does not know the instance")
    };
    fixture.api.wait_until(is_logged).await;
    for name in ["csr-ghost", "csr-other"] {
        assert!(!is_approved(&fixture.api, name), "{name}");
    }
}

#[tokio::test]
async fn who_asks_without_end_costs_a_call_of_ec2_a_second_and_one_line() {
    let fixture = start_approval(FakeApi::new(), &[INSTANCE]).await;
    let begun = std::time::Instant::now();
    for number in 0..100 {
        let wrong = serving_request(INSTANCE, &["172.20.1.8"]);
        fixture.api.put_request(&format!("csr-{number}"), &wrong);
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    }
    fixture
        .api
        .put_request("csr-last", &serving_request(INSTANCE, &["172.20.1.7"]));
    fixture
        .api
        .wait_until(|api| is_approved(api, "csr-last"))
        .await;
    let seconds = usize::try_from(begun.elapsed().as_secs()).unwrap();
    let calls = fixture.aws.count_calls("DescribeInstances");
    assert!(calls <= seconds + 2, "{calls} calls in {seconds} s");
    let log_text = fixture.lines.all_text();
    assert_eq!(log_text.matches("not approved").count(), 1, "{log_text}");
}

#[tokio::test]
async fn an_approval_that_cannot_be_written_keeps_no_other_waiting() {
    let api = FakeApi::new();
    api.lock_objects().stuck.insert("csr-0".to_owned());
    for name in ["csr-0", "csr-1"] {
        api.put_request(name, &serving_request(INSTANCE, &["172.20.1.7"]));
    }
    let fixture = start_approval(api, &[INSTANCE]).await;
    fixture
        .api
        .wait_until(|api| is_approved(api, "csr-1"))
        .await;
    assert!(!is_approved(&fixture.api, "csr-0"));
    // Later requests are approved too.
    let later = serving_request(INSTANCE, &["172.20.1.7"]);
    fixture.api.put_request("csr-2", &later);
    fixture
        .api
        .wait_until(|api| is_approved(api, "csr-2"))
        .await;
    let log_text = fixture.lines.all_text();
    assert!(log_text.contains("request is too large"), "{log_text}");
}

#[tokio::test]
async fn an_instance_that_does_not_run_gets_no_certificate() {
    let fixture = start_approval(FakeApi::new(), &[INSTANCE]).await;
    "terminated".clone_into(&mut fixture.aws.lock_state().instances[0].state);
    fixture
        .api
        .put_request("csr-late", &serving_request(INSTANCE, &["172.20.1.7"]));
    let is_logged = |_: &FakeApi| fixture.lines.all_text().contains("terminated, not running");
    fixture.api.wait_until(is_logged).await;
    assert!(!is_approved(&fixture.api, "csr-late"));
}

/// A kubelet may create requests without end, and others ask other signers.
#[tokio::test]
async fn a_request_behind_many_others_is_approved() {
    let api = FakeApi::new();
    for number in 0..130 {
        let mut other = serving_request(INSTANCE, &["172.20.1.7"]);
        other["signerName"] = json!("example.com/own");
        api.put_request(&format!("csr-{number:03}"), &other);
        let refused = serving_request("i-0fffffffffffffff0", &["172.20.1.8"]);
        api.put_request(&format!("csr-refused-{number:03}"), &refused);
    }
    api.put_request("csr-y", &serving_request(INSTANCE, &["172.20.1.7"]));
    api.put_request("csr-z", &renewal_request(INSTANCE));
    let fixture = start_approval(api, &[INSTANCE]).await;
    for name in ["csr-y", "csr-z"] {
        let is_approved = |api: &FakeApi| {
            let request = api.signing_request(name);
            request["status"]["conditions"][0]["type"] == "Approved"
        };
        fixture.api.wait_until(is_approved).await;
    }
    let patched = fixture.api.lock_objects().patches.len();
    assert_eq!(patched, 2);
}
