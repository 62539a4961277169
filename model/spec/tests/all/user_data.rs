//! User data, run against a metadata service and a bucket that check what it sends.
use engine::{Id, Part, Text};
use full::EgressProxy;
use full::nodes::{UserData, user_data};
use node::config::{Agent, Agents, Arch, BootConfig, Role};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use spec::expand::Expanded;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use test_support::{expanded_spec, expanded_with, group_of, made_up_agents, write_script};

const CERTIFICATES: &str = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";

fn render_user_data(expanded: &Expanded, role: Role, agents: &Agents) -> Option<Text> {
    let group = group_of(&expanded.full, role);
    let of = UserData {
        full: &expanded.full,
        group: &group.name,
        node_config: &"3".repeat(64),
        trust_bundle: CERTIFICATES,
        agents,
    };
    user_data(&of).unwrap()
}

fn script_text(expanded: &Expanded, role: Role, agents: &Agents) -> String {
    render_user_data(expanded, role, agents)
        .unwrap()
        .as_known()
        .unwrap()
        .to_owned()
}

/// With names nowhere and a load balancer.
fn without_dns() -> Expanded {
    expanded_with(|cluster, _| {
        let api = json!({ "loadBalancer": { "class": "Network", "type": "Public" } });
        cluster.spec.api = serde_json::from_value(api).unwrap();
        let topology = json!({ "dns": { "type": "None" } });
        cluster.spec.topology = serde_json::from_value(topology).unwrap();
    })
}

/// Every group wants its user data compressed.
fn compress_user_data(expanded: &mut Expanded) {
    for group in &mut expanded.full.groups {
        group.compress_user_data = true;
    }
}

/// The server beside this file.
struct Server {
    child: Child,
    lines: std::sync::mpsc::Receiver<String>,
    address: String,
}

impl Server {
    fn start(content: &Path, settings: &Value) -> Self {
        let program = Path::new("tests/user_data/server.py");
        let mut child = Command::new("python3")
            .arg(program)
            .arg(content)
            .arg(settings.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = std::sync::mpsc::channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            output
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        let port = lines.recv_timeout(Duration::from_secs(30)).unwrap();
        Self {
            child,
            lines,
            address: format!("http://127.0.0.1:{port}"),
        }
    }

    /// What it answered so far.
    fn answered_requests(&self) -> Vec<String> {
        std::thread::sleep(Duration::from_millis(100));
        self.lines.try_iter().collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder that stands for the instance's root, and the script in it.
struct Machine {
    root: PathBuf,
}

impl Machine {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("user-data-{}-{name}", std::process::id()));
        std::fs::create_dir_all(root.join("bin")).unwrap();
        std::fs::create_dir_all(root.join("units")).unwrap();
        let systemctl = format!("echo \"$*\" >>{}/systemctl", root.display());
        write_script(&root.join("bin/systemctl"), &systemctl);
        std::fs::write(root.join("content"), "#!/bin/sh\necho I am nodeup\n").unwrap();
        Self { root }
    }

    fn content_sha256(&self) -> String {
        format!(
            "{:x}",
            Sha256::digest(std::fs::read(self.root.join("content")).unwrap())
        )
    }

    /// Our binaries: the content, for both architectures.
    fn test_agents(&self, mirrors: &[String]) -> Agents {
        let agent = |arch| Agent {
            arch,
            sha256: self.content_sha256(),
            mirrors: mirrors.to_vec(),
        };
        Agents {
            nodeup: vec![agent(Arch::Amd64), agent(Arch::Arm64)],
            protokube: Vec::new(),
        }
    }

    /// Starts the script with its folders under the root and its console on standard output.
    fn run(&self, script: &str, server: &Server) -> Child {
        let root = self.root.display();
        let script = script
            .replace("/opt/kctl", &format!("{root}/kctl"))
            .replace("/etc/environment", &format!("{root}/environment"))
            .replace("/etc/systemd/system", &format!("{root}/units"))
            .replace("in /dev/console /dev/ttyS0;", "in;");
        let file = self.root.join("nodeup.sh");
        std::fs::write(&file, script).unwrap();
        let path = format!("{root}/bin:{}", std::env::var("PATH").unwrap());
        Command::new("sh")
            .arg(file)
            .env("PATH", path)
            .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", &server.address)
            .env("AWS_ENDPOINT_URL_S3", &server.address)
            .env("http_proxy", "http://127.0.0.1:9")
            .env("no_proxy", "127.0.0.1")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Runs the script to its end; its stages.
    fn run_to_end(&self, script: &str, server: &Server) -> Vec<Value> {
        let mut child = self.run(script, server);
        let deadline = Instant::now() + Duration::from_mins(1);
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > deadline {
                child.kill().unwrap();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let output = child.wait_with_output().unwrap();
        let stages = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.success(),
            "{stages}\n{errors}\n{:?}",
            server.answered_requests()
        );
        assert_eq!(errors, "");
        stages
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

fn file_mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// `stage status` of each line.
fn stage_outline(stages: &[Value]) -> Vec<String> {
    let text = |stage: &Value, key: &str| stage[key].as_str().unwrap().to_owned();
    stages
        .iter()
        .map(|stage| format!("{} {}", text(stage, "stage"), text(stage, "status")))
        .collect()
}

/// A store whose bucket holds the content where `full` says, and a full spec.
fn start_server(machine: &Machine, settings: &Value) -> (Expanded, Server) {
    let mut expanded = expanded_spec();
    let full = &mut expanded.full;
    full.groups
        .iter_mut()
        .for_each(|group| group.arch = own_arch());
    // What S3 takes in a key and a URL does not.
    full.state.prefix = "state & more/é+(1)~*/a.example.com".into();
    let quoted = "/store/state%20%26%20more/%C3%A9%2B%281%29~%2A/a.example.com";
    let path = format!(
        "{quoted}/assets/{}/{}/nodeup",
        machine.content_sha256(),
        own_arch().as_str()
    );
    let mut all = json!({ "region": "eu-west-1", "path": path });
    all.as_object_mut()
        .unwrap()
        .extend(settings.as_object().unwrap().clone());
    let server = Server::start(&machine.root.join("content"), &all);
    (expanded, server)
}

fn own_arch() -> Arch {
    if cfg!(target_arch = "aarch64") {
        Arch::Arm64
    } else {
        Arch::Amd64
    }
}

#[test]
fn a_machine_fetches_nodeup_with_a_valid_signature_and_starts_it() {
    for token in [None, Some("session/token+with=signs")] {
        let machine = Machine::new(&format!("boots-{}", token.is_some()));
        let (expanded, server) = start_server(&machine, &json!({ "token": token }));
        let script = script_text(&expanded, Role::ControlPlane, &machine.test_agents(&[]));
        let stages = machine.run_to_end(&script, &server);
        assert_eq!(
            stage_outline(&stages),
            ["fetch started", "fetch finished", "start finished"]
        );
        assert_eq!(server.answered_requests().last().unwrap(), "s3");

        let nodeup = machine.root.join("kctl/nodeup");
        assert_eq!(
            std::fs::read(&nodeup).unwrap(),
            std::fs::read(machine.root.join("content")).unwrap()
        );
        assert_eq!(file_mode(&nodeup) & 0o100, 0o100, "executable");
        let boot = std::fs::read_to_string(machine.root.join("kctl/boot.yaml")).unwrap();
        let boot: BootConfig = serde_saphyr::from_str(&boot).unwrap();
        assert_eq!(boot.group, "control-plane-eu-west-1a");
        assert_eq!(
            boot.config_base,
            Some(expanded.full.state.config_base.clone())
        );
        let calls = std::fs::read_to_string(machine.root.join("systemctl")).unwrap();
        let calls: Vec<&str> = calls.lines().collect();
        assert_eq!(
            calls,
            [
                "daemon-reload",
                "enable --quiet nodeup.service",
                "restart --no-block nodeup.service"
            ]
        );
        let unit = std::fs::read_to_string(machine.root.join("units/nodeup.service")).unwrap();
        assert!(unit.contains("/kctl/nodeup --boot-config "), "{unit}");

        // A second boot finds it there and asks nobody.
        machine.run_to_end(&script, &server);
        assert_eq!(server.answered_requests(), Vec::<String>::new());
    }
}

#[test]
fn a_bucket_in_another_region_is_asked_there() {
    let machine = Machine::new("region");
    let (expanded, server) = start_server(&machine, &json!({ "bucket_region": "us-west-2" }));
    machine.run_to_end(
        &script_text(&expanded, Role::ControlPlane, &machine.test_agents(&[])),
        &server,
    );
    let answered = server.answered_requests();
    assert_eq!(
        answered[answered.len() - 2..],
        ["s3 in another region", "s3"]
    );
}

#[test]
fn failures_are_retried_and_told() {
    let machine = Machine::new("retry");
    let (expanded, server) = start_server(&machine, &json!({ "failures": [500, 503] }));
    let stages = machine.run_to_end(
        &script_text(&expanded, Role::ControlPlane, &machine.test_agents(&[])),
        &server,
    );
    assert_eq!(
        stage_outline(&stages),
        [
            "fetch started",
            "fetch failed",
            "fetch failed",
            "fetch finished",
            "start finished"
        ]
    );
    let detail = stages[1]["detail"].as_str().unwrap();
    assert!(
        detail.contains("500") && detail.contains("s3://store/"),
        "{detail}"
    );
    assert_eq!(server.answered_requests().last().unwrap(), "s3");
}

#[test]
fn what_has_the_wrong_hash_is_never_executable() {
    let machine = Machine::new("hash");
    let (expanded, server) =
        start_server(&machine, &json!({ "body": "#!/bin/sh\ntouch executed\n" }));
    let mut child = machine.run(
        &script_text(&expanded, Role::ControlPlane, &machine.test_agents(&[])),
        &server,
    );
    let deadline = Instant::now() + Duration::from_mins(1);
    let mut served = 0;
    while served < 2 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
        served += server.lines.try_iter().filter(|line| line == "s3").count();
        for entry in std::fs::read_dir(machine.root.join("kctl"))
            .into_iter()
            .flatten()
        {
            let path = entry.unwrap().path();
            assert_eq!(file_mode(&path), 0o600, "{}", path.display());
            assert_ne!(path.file_name().unwrap(), "nodeup");
        }
    }
    assert_eq!(served, 2, "it goes on trying");
    child.kill().unwrap();
    let stages = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert!(stages.contains("wrong sha256"), "{stages}");
    assert!(
        !machine.root.join("systemctl").exists(),
        "nothing was started"
    );
}

#[test]
fn mirrors_stand_in_for_the_store_and_a_lying_one_is_passed_over() {
    let machine = Machine::new("mirror");
    let (expanded, server) = start_server(&machine, &json!({ "failures": [403] }));
    let mirrors = [
        format!("{}/wrong/nodeup", server.address),
        format!("{}/mirror/nodeup", server.address),
    ];
    let stages = machine.run_to_end(
        &script_text(
            &expanded,
            Role::ControlPlane,
            &machine.test_agents(&mirrors),
        ),
        &server,
    );
    assert_eq!(
        stage_outline(&stages),
        ["fetch started", "fetch finished", "start finished"]
    );
    let answered = server.answered_requests();
    assert_eq!(
        answered[answered.len() - 3..],
        ["failed", "wrong mirror", "mirror"]
    );

    let mut without_bucket = expanded;
    without_bucket.full.state.bucket = None;
    let other = Machine::new("mirror-only");
    other.run_to_end(
        &script_text(
            &without_bucket,
            Role::ControlPlane,
            &other.test_agents(&mirrors),
        ),
        &server,
    );
    assert_eq!(server.answered_requests(), ["wrong mirror", "mirror"]);
}

#[test]
fn workers_learn_where_to_ask_and_whom_to_trust_and_nothing_of_the_store() {
    let script = script_text(&expanded_spec(), Role::Node, &made_up_agents());
    assert!(script.contains("https://kops-controller.internal.a.example.com:3988"));
    assert!(!script.contains("configBase"));
    let boot = script
        .split("<<'END'\n")
        .find(|part| part.starts_with("bootstrapServers:"))
        .unwrap();
    let boot: BootConfig = serde_saphyr::from_str(boot.split("\nEND\n").next().unwrap()).unwrap();
    assert_eq!(boot.ca_certificates.unwrap(), CERTIFICATES);
}

#[test]
fn without_dns_workers_wait_for_the_load_balancers_private_addresses() {
    let mut expanded = without_dns();
    // Even where the group wants it compressed: what is not known yet could not be written in later.
    compress_user_data(&mut expanded);
    let text = render_user_data(&expanded, Role::Node, &made_up_agents()).unwrap();
    let load_balancer = Id::new("lb", "api.a.example.com");
    assert_eq!(text.needs(), [load_balancer]);
    let resolved = text.resolved(&|_, attribute| {
        (attribute == "private_addresses").then(|| "10.0.0.4,10.0.1.4".into())
    });
    assert!(
        resolved
            .as_known()
            .unwrap()
            .contains("controlPlaneAddresses: 10.0.0.4,10.0.1.4")
    );
    assert!(
        render_user_data(&expanded, Role::ControlPlane, &made_up_agents())
            .unwrap()
            .needs()
            .is_empty()
    );
}

/// Name, type and bytes of each part, as cloud-init reads them (`util.decode_binary`, `email.message_from_string`,
/// `get_payload(decode=True)`; of a text it encodes what it decoded, so the bytes are the file's).
fn parts_as_cloud_init_reads_them(user_data: &str) -> Vec<(String, String, Vec<u8>)> {
    let parse = "import email, json, sys; m = email.message_from_string(sys.stdin.buffer.read().decode('utf-8')); \
                 print(json.dumps([[p.get_filename(), p.get_content_type(), list(p.get_payload(decode=True))] for p in m.get_payload()]))";
    let mut child = Command::new("python3")
        .args(["-c", parse])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(user_data.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn parts_of_the_users_follow_ours_and_arrive_byte_for_byte() {
    let contents = [
        "#!/bin/sh\necho '<late> END'\n",
        "#!/bin/sh\necho größer — 日本\n",
        "#!/bin/sh\r\necho crlf\r\n",
        "no last newline",
        "ends in blanks \t",
        "blanks at \t\nthe end of lines \n",
        "\n\n--MIMEBOUNDARY\nstill the part\n--MIMEBOUNDARY--\n",
        "ä\n--MIMEBOUNDARY--\n",
        "a=b=3D=\nÄ=\n",
        "bell \u{7} and \u{85} and \u{2028}\n",
        "one\rtwo\r",
        "From me\n.\n",
        "\n",
    ];
    let mut expanded = without_dns();
    // kctl's own script has text beyond ASCII, and a part that is known late.
    expanded.full.state.prefix = "größe/a.example.com".into();
    for group in &mut expanded.full.groups {
        let parts = contents.iter().enumerate();
        group.additional_user_data = parts
            .map(|(index, content)| {
                let kind = "text/x-shellscript".to_owned();
                (format!("part-{index}.sh"), kind, (*content).to_owned())
            })
            .collect();
    }
    let late = |text: &Text| {
        let parts = text.parts().iter();
        parts
            .filter(|part| matches!(part, Part::Late { .. }))
            .count()
    };
    let known = |text: &Text| {
        let known = text.resolved(&|_, _| Some("10.0.0.4,10.0.1.4".into()));
        known.as_known().unwrap().to_owned()
    };
    for role in [Role::Node, Role::Bastion] {
        let text = render_user_data(&expanded, role, &made_up_agents()).unwrap();
        let mut parts = parts_as_cloud_init_reads_them(&known(&text));
        if role == Role::Node {
            assert_eq!(late(&text), 1);
            let (name, _, script) = parts.remove(0);
            assert_eq!(name, "nodeup.sh");
            let mut alone = without_dns();
            alone
                .full
                .state
                .prefix
                .clone_from(&expanded.full.state.prefix);
            let alone = render_user_data(&alone, role, &made_up_agents()).unwrap();
            assert_eq!(String::from_utf8(script).unwrap(), known(&alone));
        }
        assert_eq!(parts.len(), contents.len());
        for (index, ((name, kind, bytes), content)) in parts.iter().zip(contents).enumerate() {
            assert_eq!(
                (name, kind.as_str()),
                (&format!("part-{index}.sh"), "text/x-shellscript")
            );
            assert_eq!(String::from_utf8_lossy(bytes), content, "part {index}");
        }
    }
    let none = render_user_data(&expanded_spec(), Role::Bastion, &made_up_agents());
    assert_eq!(none, None);
}

/// Auto Scaling may stop an instance before cloud-init has run the script, which it would not run again.
#[test]
fn a_script_that_a_warm_pool_cut_off_runs_again_until_nodeup_is_set_up() {
    let plain = render_user_data(&expanded_spec(), Role::Node, &made_up_agents());
    let mut expanded = expanded_spec();
    let pool = full::WarmPool {
        min_size: 0,
        max_size: None,
        hook_seconds: None,
        images: Vec::new(),
    };
    for group in &mut expanded.full.groups {
        group.warm_pool = Some(pool.clone()).filter(|_| group.role == Role::Node);
    }
    let text = render_user_data(&expanded, Role::Node, &made_up_agents()).unwrap();
    let mut parts = parts_as_cloud_init_reads_them(text.as_known().unwrap());
    let (name, kind, script) = parts.remove(0);
    assert_eq!((&*name, &*kind), ("nodeup.sh", "text/x-shellscript"));
    assert_eq!(script, plain.unwrap().as_known().unwrap().as_bytes());
    let [(name, kind, hook)] = &parts[..] else {
        panic!("{parts:?}");
    };
    assert_eq!(
        (&**name, &**kind),
        ("kctl-warm-pool.sh", "text/cloud-boothook")
    );

    let machine = Machine::new("warm-pool");
    let (root, semaphores) = (&machine.root, machine.root.join("instance/sem"));
    std::fs::create_dir_all(&semaphores).unwrap();
    let is_enabled = format!(
        "[ \"$*\" = 'is-enabled --quiet nodeup.service' ] && [ -e {}/enabled ]",
        root.display()
    );
    write_script(&root.join("bin/systemctl"), &is_enabled);
    let instance = format!("{}/instance", root.display());
    let hook = String::from_utf8(hook.clone()).unwrap();
    std::fs::write(
        root.join("hook"),
        hook.replace("/var/lib/cloud/instance", &instance),
    )
    .unwrap();
    for (enabled, left) in [
        (false, vec!["config_ssh"]),
        (true, vec!["config_scripts_user", "config_ssh"]),
    ] {
        for name in ["config_scripts_user", "config_ssh"] {
            std::fs::write(semaphores.join(name), "").unwrap();
        }
        if enabled {
            std::fs::write(root.join("enabled"), "").unwrap();
        }
        let path = format!("{}/bin:{}", root.display(), std::env::var("PATH").unwrap());
        let ran = Command::new("sh")
            .arg(root.join("hook"))
            .env("PATH", path)
            .output()
            .unwrap();
        assert!(ran.status.success() && ran.stderr.is_empty(), "{ran:?}");
        let found = std::fs::read_dir(&semaphores).unwrap();
        let mut found: Vec<_> = found
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        found.sort();
        assert_eq!(found, left);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 48, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_text_arrives_byte_for_byte(content in "[ -~\n\r\t=äß—\u{0}-\u{1f}]{0,80}") {
        let mut expanded = expanded_spec();
        for group in &mut expanded.full.groups {
            let part = ("a.sh".to_owned(), "text/x-shellscript".to_owned(), content.clone());
            group.additional_user_data = vec![part];
        }
        let text = render_user_data(&expanded, Role::Bastion, &made_up_agents()).unwrap();
        let parts = parts_as_cloud_init_reads_them(text.as_known().unwrap());
        proptest::prop_assert_eq!(&parts[0].2, content.as_bytes());
    }
}

#[test]
fn compressed_user_data_boots_the_same() {
    let machine = Machine::new("compressed");
    let (mut expanded, server) = start_server(&machine, &json!({}));
    let plain = script_text(&expanded, Role::Node, &machine.test_agents(&[]));
    compress_user_data(&mut expanded);
    let compressed = script_text(&expanded, Role::Node, &machine.test_agents(&[]));
    assert!(!compressed.contains("kops-controller"));
    machine.run_to_end(&plain, &server);
    let boot = std::fs::read(machine.root.join("kctl/boot.yaml")).unwrap();
    std::fs::remove_file(machine.root.join("kctl/boot.yaml")).unwrap();
    machine.run_to_end(&compressed, &server);
    assert_eq!(
        std::fs::read(machine.root.join("kctl/boot.yaml")).unwrap(),
        boot
    );
}

#[test]
fn a_machine_behind_a_proxy_uses_it_and_so_does_what_follows() {
    let machine = Machine::new("proxy");
    let (mut expanded, server) = start_server(&machine, &json!({}));
    expanded.full.egress_proxy = Some(EgressProxy {
        url: "http://127.0.0.1:9".into(),
        excludes: vec!["mine.example.com".into()],
    });
    let script = script_text(&expanded, Role::Node, &machine.test_agents(&[]));
    // Whatever the image has: in either spelling, exported, indented, without a last newline, or nothing at all.
    for image in [
        None,
        Some(""),
        Some("LANG=C"),
        Some("PATH=/opt/bin\nLANG=C.UTF-8\n"),
        Some("https_proxy=\"http://other\"\nhttp_proxy=http://other\nno_proxy=other\n"),
        Some("HTTPS_PROXY=http://other\nHTTP_PROXY=http://other\nNO_PROXY=*\nLANG=C"),
        Some("  export Http_Proxy=http://other\nexport\tNO_PROXY=other\nno_proxy = other"),
    ] {
        let environment = machine.root.join("environment");
        let _ = std::fs::remove_file(&environment);
        if let Some(image) = image {
            std::fs::write(&environment, image).unwrap();
        }
        // Nothing listens there: the instance boots because the store, like the metadata service, is excluded.
        machine.run_to_end(&script, &server);
        let written = std::fs::read_to_string(&environment).unwrap();
        let lines: Vec<&str> = written.lines().collect();
        let kept = image.unwrap_or_default().lines();
        let kept: Vec<&str> = kept
            .filter(|line| !line.to_lowercase().contains("_proxy"))
            .collect();
        assert_eq!(lines[..kept.len()], kept, "what is not a proxy stays");
        let [http, upper_http, https, upper_https, direct, upper_direct] = &lines[kept.len()..]
        else {
            panic!("{written}");
        };
        let url = "http://127.0.0.1:9";
        assert_eq!(*http, format!("http_proxy=\"{url}\""));
        assert_eq!(*upper_http, format!("HTTP_PROXY=\"{url}\""));
        assert_eq!(*https, format!("https_proxy=\"{url}\""));
        assert_eq!(*upper_https, format!("HTTPS_PROXY=\"{url}\""));
        assert_eq!(direct.replace("no_proxy", "NO_PROXY"), **upper_direct);
        for excluded in [
            "mine.example.com",
            "169.254.169.254",
            "a.example.com",
            "172.20.0.0/16",
        ] {
            assert!(direct.contains(excluded), "{excluded}");
        }
        if image.is_none() {
            assert_eq!(file_mode(&environment), 0o644);
        }
        machine.run_to_end(&script, &server);
        let again = std::fs::read_to_string(&environment).unwrap();
        assert_eq!(again, written, "once");
    }
}

#[test]
fn without_a_proxy_in_the_spec_the_images_environment_stays() {
    let machine = Machine::new("no-proxy");
    let (expanded, server) = start_server(&machine, &json!({}));
    let image = "http_proxy=http://127.0.0.1:9\nLANG=C";
    std::fs::write(machine.root.join("environment"), image).unwrap();
    let script = script_text(&expanded, Role::Node, &machine.test_agents(&[]));
    machine.run_to_end(&script, &server);
    let after = std::fs::read_to_string(machine.root.join("environment")).unwrap();
    assert_eq!(after, image);
}

#[test]
fn the_largest_user_data_is_under_8_kb() {
    let source =
        &mut node::pki::SystemKeys::issuing_at(time::macros::datetime!(2026-11-21 12:00 UTC));
    let mut mint = || {
        node::pki::mint_keyset("kubernetes-ca", node::pki::KeyAlgorithm::Rsa2048, source).unwrap()
    };
    // Two RSA authorities, as during a rotation on a cluster that kOps made.
    let bundle = [mint(), mint()]
        .map(|keyset| node::pki::trust_bundle(&keyset))
        .concat();
    let mut expanded = expanded_spec();
    let full = &mut expanded.full;
    full.name = format!("{}.{}.example.com", "a".repeat(40), "b".repeat(20));
    full.state.prefix = format!("prefix/{}", full.name);
    let of = UserData {
        full: &expanded.full,
        group: "nodes-eu-west-1a",
        node_config: &"3".repeat(64),
        trust_bundle: &bundle,
        agents: &made_up_agents(),
    };
    let size = user_data(&of).unwrap().unwrap().as_known().unwrap().len();
    assert!(size < 8192, "{size}");
}

#[test]
fn shells_and_their_critics_accept_the_script() {
    let egress = json!({ "httpProxy": { "host": "proxy.example.com", "port": 3128 } });
    let mut expanded = expanded_with(|cluster, _| {
        cluster.spec.egress_proxy = serde_json::from_value(egress).unwrap();
    });
    let mut agents = made_up_agents();
    agents.nodeup[0].mirrors = vec!["https://mirror.example.com/node up".into()];
    let plain = script_text(&expanded, Role::Node, &agents);
    compress_user_data(&mut expanded);
    let machine = Machine::new("shellcheck");
    let file = machine.root.join("nodeup.sh");
    let checks = [
        ("sh", &["-n"][..]),
        ("dash", &["-n"]),
        ("bash", &["--posix", "-n"]),
        ("shellcheck", &[]),
    ];
    for script in [plain, script_text(&expanded, Role::Node, &agents)] {
        std::fs::write(&file, script).unwrap();
        for (shell, arguments) in checks {
            let output = Command::new(shell).args(arguments).arg(&file).output();
            let output = output.unwrap_or_else(|_| panic!("{shell}, which `make test` brings"));
            assert!(output.status.success(), "{shell}: {output:?}");
        }
    }
}
