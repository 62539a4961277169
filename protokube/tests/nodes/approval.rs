//! Serving certificates of kubelets are approved when EC2 confirms what is in them.

use crate::fakes::api::FakeApi;
use crate::fakes::aws::FakeAws;
use crate::fakes::{INSTANCE, Lines, NAME, control_plane, instance};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};

struct Fixture {
    api: FakeApi,
    aws: FakeAws,
    lines: Lines,
}

/// That API server, an EC2 with these instances, and the part that approves.
async fn start(api: FakeApi, instances: &[&str]) -> Fixture {
    let (aws, lines) = (FakeAws::default(), Lines::default());
    let url = aws.start().await;
    let machine = control_plane(&aws, &url).await;
    for id in instances {
        aws.state().instances.push(instance(id));
    }
    let (client, log) = (api.client().await, lines.log());
    tokio::spawn(async move {
        let ended = protokube::approval::approve_requests(client, machine, NAME, &log).await;
        panic!("{ended:?}");
    });
    Fixture { api, aws, lines }
}

/// What kubelet asks for, with those names and addresses.
pub fn spec(node: &str, names: &[&str]) -> Value {
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

/// What kubelet asks for to renew its client certificate.
pub fn renewal(node: &str) -> Value {
    let mut spec = spec(node, &[]);
    spec["signerName"] = json!("kubernetes.io/kube-apiserver-client-kubelet");
    spec["usages"] = json!(["digital signature", "client auth"]);
    spec
}

/// Requests that the API server reads as one for `evil`, and other readers as one for `good`: Go's reader passes over a block
/// whose first line has something behind its dashes, and over one whose last line has another label.
pub fn double_requests(node: &str, good: &[&str], evil: &[&str]) -> [Value; 2] {
    let user = format!("system:node:{node}");
    let (good, evil) = (signing_request(&user, good), signing_request(&user, evil));
    [
        good.replacen("REQUEST-----\n", "REQUEST-----x\n", 1),
        good.replace("END CERTIFICATE REQUEST", "END X"),
    ]
    .map(|first| {
        let mut spec = spec(node, &[]);
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

fn approved(api: &FakeApi, name: &str) -> bool {
    let conditions = &api.request(name)["status"]["conditions"];
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
        api.put_request(&format!("csr-{index}"), &spec(node, &names));
    }
    let fixture = start(api, &nodes).await;
    let all = |api: &FakeApi| (0..3).all(|index| approved(api, &format!("csr-{index}")));
    fixture.api.until(all).await;
    assert_eq!(fixture.aws.calls("DescribeInstances"), 1);
    let patches = &fixture.api.objects().patches;
    assert!(
        patches.iter().all(|(path, _)| path.ends_with("/approval")),
        "{patches:?}"
    );
}

#[tokio::test]
async fn what_comes_later_is_approved_too() {
    let fixture = start(FakeApi::new(), &[INSTANCE]).await;
    fixture
        .api
        .put_request("csr-later", &spec(INSTANCE, &["172.20.1.7"]));
    fixture.api.until(|api| approved(api, "csr-later")).await;
}

#[tokio::test]
async fn everything_else_is_left_alone_with_one_line() {
    let api = FakeApi::new();
    let other = "i-0123456789abcdef1";
    let mut foreign = spec(INSTANCE, &["172.20.1.7"]);
    foreign["username"] = json!("system:serviceaccount:kube-system:somebody");
    for (name, spec) in [
        ("csr-address", spec(INSTANCE, &["172.20.1.8"])),
        (
            "csr-name",
            spec(INSTANCE, &["172.20.1.7", "kubernetes.default.svc"]),
        ),
        ("csr-unknown", spec(other, &["172.20.1.7"])),
        ("csr-foreign", foreign),
    ] {
        api.put_request(name, &spec);
    }
    let fixture = start(api, &[INSTANCE]).await;
    // Once this one is approved, everything has been looked at more than once.
    fixture
        .api
        .put_request("csr-good", &spec(INSTANCE, &["172.20.1.7"]));
    fixture.api.until(|api| approved(api, "csr-good")).await;
    fixture
        .api
        .put_request("csr-good-2", &spec(INSTANCE, &["172.20.1.7"]));
    fixture.api.until(|api| approved(api, "csr-good-2")).await;
    for name in ["csr-address", "csr-name", "csr-unknown", "csr-foreign"] {
        assert_eq!(fixture.api.request(name)["status"], Value::Null, "{name}");
    }
    let lines = fixture.lines.json();
    let details = lines.iter().map(|line| line["detail"].as_str().unwrap());
    let left: Vec<&str> = details
        .filter(|detail| detail.contains("not approved"))
        .collect();
    let users = [INSTANCE, other].map(|node| format!("system:node:{node}"));
    let foreign = "system:serviceaccount:kube-system:somebody".to_owned();
    for user in users.into_iter().chain([foreign]) {
        let of = format!("of {user}: ");
        let told = left.iter().filter(|detail| detail.contains(&of));
        assert_eq!(told.count(), 1, "{user}: {left:?}");
    }
}

#[tokio::test]
async fn a_request_that_the_api_server_would_read_otherwise_is_left_alone() {
    let fixture = start(FakeApi::new(), &[INSTANCE]).await;
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
        .put_request("csr-good", &spec(INSTANCE, &["172.20.1.7"]));
    fixture.api.until(|api| approved(api, "csr-good")).await;
    for index in 0..attacks.len() {
        let attack = fixture.api.request(&format!("csr-attack-{index}"));
        assert_eq!(attack["status"], Value::Null, "{attack}");
    }
}

#[tokio::test]
async fn a_client_certificate_is_renewed_while_its_instance_runs_and_no_longer() {
    let fixture = start(FakeApi::new(), &[INSTANCE]).await;
    fixture.api.put_request("csr-renewal", &renewal(INSTANCE));
    fixture.api.until(|api| approved(api, "csr-renewal")).await;
    "terminated".clone_into(&mut fixture.aws.state().instances[0].state);
    fixture.api.put_request("csr-ghost", &renewal(INSTANCE));
    let mut other = renewal(INSTANCE);
    other["username"] = json!("system:node:i-0123456789abcdef1");
    fixture.api.put_request("csr-other", &other);
    let told = |_: &FakeApi| {
        let text = fixture.lines.text();
        text.contains("terminated, not running") && text.contains("EC2 does not know the instance")
    };
    fixture.api.until(told).await;
    for name in ["csr-ghost", "csr-other"] {
        assert!(!approved(&fixture.api, name), "{name}");
    }
}

#[tokio::test]
async fn who_asks_without_end_costs_a_call_of_ec2_a_second_and_one_line() {
    let fixture = start(FakeApi::new(), &[INSTANCE]).await;
    let begun = std::time::Instant::now();
    for number in 0..100 {
        let wrong = spec(INSTANCE, &["172.20.1.8"]);
        fixture.api.put_request(&format!("csr-{number}"), &wrong);
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    }
    fixture
        .api
        .put_request("csr-last", &spec(INSTANCE, &["172.20.1.7"]));
    fixture.api.until(|api| approved(api, "csr-last")).await;
    let seconds = usize::try_from(begun.elapsed().as_secs()).unwrap();
    let calls = fixture.aws.calls("DescribeInstances");
    assert!(calls <= seconds + 2, "{calls} calls in {seconds} s");
    let told = fixture.lines.text();
    assert_eq!(told.matches("not approved").count(), 1, "{told}");
}

#[tokio::test]
async fn an_approval_that_cannot_be_written_keeps_no_other_waiting() {
    let api = FakeApi::new();
    api.objects().stuck.insert("csr-0".to_owned());
    for name in ["csr-0", "csr-1"] {
        api.put_request(name, &spec(INSTANCE, &["172.20.1.7"]));
    }
    let fixture = start(api, &[INSTANCE]).await;
    fixture.api.until(|api| approved(api, "csr-1")).await;
    assert!(!approved(&fixture.api, "csr-0"));
    // And those that come later.
    let later = spec(INSTANCE, &["172.20.1.7"]);
    fixture.api.put_request("csr-2", &later);
    fixture.api.until(|api| approved(api, "csr-2")).await;
    let told = fixture.lines.text();
    assert!(told.contains("request is too large"), "{told}");
}

#[tokio::test]
async fn an_instance_that_does_not_run_gets_no_certificate() {
    let fixture = start(FakeApi::new(), &[INSTANCE]).await;
    "terminated".clone_into(&mut fixture.aws.state().instances[0].state);
    fixture
        .api
        .put_request("csr-late", &spec(INSTANCE, &["172.20.1.7"]));
    let told = |_: &FakeApi| fixture.lines.text().contains("terminated, not running");
    fixture.api.until(told).await;
    assert!(!approved(&fixture.api, "csr-late"));
}
