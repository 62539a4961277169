//! Every text and number of a spec is read by its type: no field is passed on that nobody has read.

use crate::fields::{map_key, put_value};
use full::nodes::node_config;
use node::config::{InstanceFacts, host_files};
use serde_json::{Value, json};
use spec::api::cluster::ClusterSpec;
use spec::api::instance_group::InstanceGroupSpec;
use spec::expand::Expanded;
use spec::read::Problem;
use spec::validate::values::{ValueType, check, is_map, is_opaque, value_type};
use spec::validate::{ClusterInput, validate};
use std::path::{Component, Path};
use test_support::trace::{Leaf, LeafType, type_leaves};
use test_support::{made_up_agents, try_expanded_with};

fn all_leaves() -> Vec<(&'static str, Leaf)> {
    let cluster = type_leaves::<ClusterSpec>("spec");
    let group = type_leaves::<InstanceGroupSpec>("spec");
    let of = |kind, leaves: Vec<Leaf>| leaves.into_iter().map(move |leaf| (kind, leaf));
    of("Cluster", cluster)
        .chain(of("InstanceGroup", group))
        .collect()
}

/// The findings about a spec with one value.
fn findings(kind: &str, leaf: &Leaf, value: &Value) -> Vec<Problem> {
    let mut root = json!({ "spec": {} });
    put_value(&mut root, &leaf.path, value);
    let spec = root["spec"].take();
    let mut problems = Vec::new();
    match kind {
        "Cluster" => check(
            &serde_json::from_value::<ClusterSpec>(spec).unwrap(),
            &mut problems,
        ),
        _ => check(
            &serde_json::from_value::<InstanceGroupSpec>(spec).unwrap(),
            &mut problems,
        ),
    }
    problems
}

/// True if the field with an empty text is the same as without.
fn is_left_out(kind: &str, leaf: &Leaf) -> bool {
    let mut root = json!({ "spec": {} });
    put_value(&mut root, &leaf.path, &json!(""));
    let spec = root["spec"].take();
    let written = match kind {
        "Cluster" => serde_json::to_string(&serde_json::from_value::<ClusterSpec>(spec).unwrap()),
        _ => serde_json::to_string(&serde_json::from_value::<InstanceGroupSpec>(spec).unwrap()),
    };
    !written.unwrap().contains("\"\"")
}

/// Texts that are no values of a type.
#[allow(clippy::too_many_lines)] // One arm for each type.
fn wrong_texts(kind: ValueType) -> &'static [&'static str] {
    match kind {
        ValueType::Line => &["a\nb", "a\u{1b}[31m"],
        ValueType::Word => &["a b", "a\nb", "a\"b", "$(id)", "a;b"],
        ValueType::Switch => &["", "tRUE", "yes", "2", "on"],
        ValueType::OneOf(_) => &["no such thing", "EXTERNAL", "1.2"],
        ValueType::Quantity => &["", "many", "1GiB", "1 Gi", "1,5"],
        ValueType::Amount => &["", "many", "1GiB", "1 Gi", "-1", "-100m"],
        ValueType::Duration => &["", "15", "1 hour", "1d", "h"],
        ValueType::Decimal => &["", "-1", "1e3", "cheap", "0,05"],
        ValueType::Evictions => &[
            "memory.available",
            "memory<1Mi",
            "memory.available=1Mi",
            "memory.available<110%",
            "memory.available<-1Mi",
            "memory.available<0",
        ],
        ValueType::Reclaims => &[
            "memory.available",
            "memory.available<1Mi",
            "memory.available=x",
        ],
        ValueType::GracePeriods => &["memory.available=1", "memory.available<1m", "x=1m"],
        ValueType::DnsName => &["", "http://x", "X.example.com", "a_b", "a..b", "x/"],
        ValueType::Host => &[
            "",
            "http://proxy",
            "proxy:3128",
            "a b",
            "-a",
            "10.0.0",
            "user@x",
        ],
        ValueType::ProxyExcludes => &["http://x", "a b", "x/y", "10.0.0.0/33"],
        ValueType::Address => &[
            "",
            "@aws",
            "host",
            "10.0.0.256",
            "10.0.0.0/8",
            "10.0.0.1:80",
        ],
        ValueType::Addresses => &["", "host", "10.0.0.1,", "10.0.0.1 10.0.0.2"],
        ValueType::Endpoint => &["", "@aws", "host:1", "0.0.0.0:", "0.0.0.0:99999"],
        ValueType::Ranges => &["", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/8,"],
        ValueType::Url => &[
            "",
            "x",
            "https:/x",
            "ftp://x",
            "https://a b",
            "https://u:p@x",
        ],
        ValueType::SecureUrl => &["", "http://x", "x", "https://"],
        ValueType::Store => &["", "bucket", "https://x", "s3://", "s3:///x"],
        ValueType::Image => &[
            "",
            "https://x/y",
            "Busybox",
            "x:",
            "x@sha256:1",
            "a b",
            "x.io//y",
        ],
        ValueType::Pattern => &["*.x", "(", "[a"],
        ValueType::Tag => &["", "a b", "5000/x", "v1:2", "-v1"],
        ValueType::RegistryPrefix => &["", "https://x/y", "//x", "x/A", "x:0", "user@x", "x/y:tag"],
        ValueType::File => &[
            "",
            "x",
            "./x",
            "/",
            "/x/",
            "/x/.",
            "/../x",
            "/a/../../x",
            "/proc/x",
            "/a\nb",
            "~/x",
        ],
        ValueType::FileIfAny | ValueType::FileOrOutput => {
            &["x", "/", "/x/", "/../x", "/sys/x", "/a\0b"]
        }
        ValueType::Folder => &["", "x", "/a/../../x", "/a\nb", "~"],
        ValueType::MountPoint => &["", "/", "//", "x", "/a/..", "/proc", "/dev/shm"],
        ValueType::ModeIfAny => &["+644", "0o644", "999", "u+x", "-1", "77777"],
        ValueType::Only(..) => &["", "/elsewhere"],
        ValueType::NodeName => &["node-1", "@azure", "$HOSTNAME"],
        ValueType::VariableName => &["", "A B", "1A", "A=B", "A-B"],
        ValueType::Package => &[
            "",
            "-y",
            "a b",
            "/tmp/x.rpm",
            "https://x/y.deb",
            "lib*",
            "htop-",
        ],
        ValueType::Parameters => &[
            "vm.swappiness",
            "=1",
            "swappiness=1",
            "vm/../a=1",
            "vm.*=1",
            "vm.a=1 # x",
            "net.core.somaxconn=many",
            "net.ipv4.tcp_rmem=4096 lots 1",
            "kernel.panic=",
        ],
        ValueType::ContainerdConfig => {
            &["[plugins", "version", "a = b", "version = 2\nversion = 2"]
        }
        ValueType::Sha256 => &["", "12", "sha256:00", "g"],
        ValueType::Units => &["docker", "a/b.service", "a b", "x.conf"],
        ValueType::CipherSuite => &["", "AES", "TLS_A B", "tls_aes_128"],
        ValueType::Text | ValueType::PortOrNone | ValueType::ApiPort | ValueType::AnyNumber => &[],
    }
}

/// Texts that are values of a type.
#[allow(clippy::too_many_lines)] // One arm for each type.
fn right_texts(kind: ValueType) -> &'static [&'static str] {
    match kind {
        ValueType::Text => &["", "a\nb", "a b"],
        ValueType::Line => &["", "a b"],
        ValueType::Word => &["", "a,b=c/d:e"],
        ValueType::Switch => &["true", "false", "True", "FALSE", "1", "0", "t", "f"],
        ValueType::OneOf(words) => words,
        ValueType::Quantity => &["1", "100m", "0.5", "170Mi", "-1"],
        ValueType::Amount => &["1", "100m", "0.5", "170Mi", "0", "+1"],
        ValueType::Duration => &["0", "30s", "1h30m", "1.5s"],
        ValueType::Decimal => &["0.05", "1", ".5"],
        ValueType::Evictions => &["", "memory.available<100Mi, nodefs.available<10%"],
        ValueType::Reclaims => &["", "memory.available=0Mi,imagefs.available=2Gi"],
        ValueType::GracePeriods => &["", "memory.available=1m30s"],
        ValueType::DnsName => &["example.com", "cluster.local"],
        ValueType::Host => &["proxy", "proxy.internal", "10.0.0.1", "fd00::1"],
        ValueType::ProxyExcludes => &[
            "",
            "localhost, .internal,*.x.io,10.0.0.0/8,169.254.169.254,x:80,*,fd00::1",
        ],
        ValueType::Address => &["0.0.0.0", "10.0.0.1", "::"],
        ValueType::Addresses => &["10.0.0.1", "10.0.0.1,fd00::1"],
        ValueType::Endpoint => &["0.0.0.0", "127.0.0.1:10249", "[::]:10249"],
        ValueType::Ranges => &["10.0.0.0/8", "10.0.0.0/8,fd00::/64"],
        ValueType::Url => &["https://x.io/a", "http://10.0.0.1:80"],
        ValueType::SecureUrl => &["https://x.io/a"],
        ValueType::Store => &["s3://bucket/path", "memfs://x/y"],
        ValueType::Image => &["busybox", "registry.k8s.io/pause:3.10.1", "host:5000/a/b"],
        ValueType::Pattern => &["", "//a[.]example[.]com$", ".*"],
        ValueType::Tag => &["v1.58.0", "1.32.7", "v1.58.0_1"],
        ValueType::RegistryPrefix => &["registry.internal/mirror", "registry.internal:5000/"],
        ValueType::File => &["/etc/x", "/etc//./x y"],
        ValueType::FileIfAny => &["", "/etc/x"],
        ValueType::FileOrOutput => &["-", "/var/log/x"],
        ValueType::Folder => &["/", "/var/lib/x/"],
        ValueType::MountPoint => &["/data", "/var/lib/x/"],
        ValueType::ModeIfAny => &["", "0440", "755"],
        ValueType::Only(only, _) => match only {
            "/etc/kubernetes/manifests" => &["/etc/kubernetes/manifests"],
            "/run/containerd/containerd.sock" => &["/run/containerd/containerd.sock"],
            // The others are files that kctl makes, and etcd on the same instance.
            _ => &[],
        },
        ValueType::NodeName => &["", "@aws", "@AWS", "@hostname"],
        ValueType::VariableName => &["A", "a_1"],
        ValueType::Package => &["htop", "g++", "nginx=1.24", "libc6:arm64"],
        ValueType::Parameters => &[
            "",
            "# raised for search",
            "vm.a=1",
            "-vm.a = 1 2",
            "vm.a=",
            "kernel.panic=-1",
        ],
        ValueType::ContainerdConfig => &["", "version = 3\n[plugins]\n"],
        ValueType::Sha256 => &["00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"],
        ValueType::Units => &["docker.service", "a.mount b.target", "x@%i.service"],
        ValueType::CipherSuite => &["TLS_AES_128_GCM_SHA256"],
        ValueType::PortOrNone | ValueType::ApiPort | ValueType::AnyNumber => &[],
    }
}

#[test]
fn every_field_has_a_type_by_which_it_is_read() {
    let mut untyped = Vec::new();
    for (kind, leaf) in all_leaves() {
        let known = match leaf.takes {
            LeafType::Text => value_type(&leaf.path).is_some(),
            // `is_opaque` is asked on the way down.
            LeafType::Anything => {
                let above = leaf.path.rsplit_once('.').map_or("", |(above, _)| above);
                is_opaque(&leaf.path) || value_type(&leaf.path).is_some() || is_opaque(above)
            }
            _ => true,
        };
        if !known {
            untyped.push(format!("{kind} {}", leaf.path));
        }
        let in_map = leaf.path.rsplit_once(".*").map(|(map, _)| map);
        if let Some(map) = in_map.filter(|map| !is_map(map)) {
            untyped.push(format!("{kind} {map} is a map"));
        }
    }
    assert!(
        untyped.is_empty(),
        "say in types.rs how they are read:\n{}",
        untyped.join("\n")
    );
}

#[test]
fn every_field_takes_the_values_of_its_type_and_no_others() {
    let mut wrong = Vec::new();
    for (kind, leaf) in all_leaves() {
        let Some(of) = value_type(&leaf.path).filter(|_| leaf.takes == LeafType::Text) else {
            continue;
        };
        for text in right_texts(of) {
            let found = findings(kind, &leaf, &json!(text));
            wrong.extend(
                found
                    .iter()
                    .map(|problem| format!("{kind} {}: {}", leaf.path, problem.render())),
            );
        }
        for text in wrong_texts(of) {
            // Where no text is the default, it says nothing, and a rule of its own asks for one.
            if text.is_empty() && is_left_out(kind, &leaf) {
                continue;
            }
            let found = findings(kind, &leaf, &json!(text));
            let there = leaf.path.replace("[]", "[0]");
            let there = there.replace('*', map_key(&leaf.path));
            if !found
                .iter()
                .any(|problem| problem.path == there && problem.hint.is_some())
            {
                wrong.push(format!("{kind} {there} takes {text:?}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} findings:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn numbers_count_something_or_are_ports() {
    for (kind, leaf) in all_leaves() {
        if leaf.takes != LeafType::Number {
            continue;
        }
        let refused = |number: i64| !findings(kind, &leaf, &json!(number)).is_empty();
        let wanted = match value_type(&leaf.path) {
            Some(ValueType::ApiPort) => [true, true, false, true],
            Some(ValueType::PortOrNone) => [true, false, false, true],
            Some(ValueType::AnyNumber) => [false; 4],
            _ => [true, false, false, false],
        };
        assert_eq!(
            [-1, 0, 443, 70_000].map(refused),
            wanted,
            "{kind} {}",
            leaf.path
        );
    }
}

/// Names and paths that lead elsewhere when they are put behind a folder.
const HOSTILE: [&str; 3] = ["../../../../tmp/x", "/../../tmp/x", "/etc/agent.d/"];

/// The cluster or its groups with one value, if validation lets it through and it can be expanded.
fn expand_with(kind: &str, leaf: &Leaf, value: &Value) -> Option<Expanded> {
    let mut passed = false;
    let expanded = try_expanded_with(|cluster, groups| {
        let change = |spec: Value| {
            let mut root = json!({ "spec": spec });
            put_value(&mut root, &leaf.path, value);
            root["spec"].take()
        };
        if kind == "Cluster" {
            let changed = change(serde_json::to_value(&cluster.spec).unwrap());
            cluster.spec = serde_json::from_value(changed).unwrap();
        } else {
            for group in groups.iter_mut() {
                let changed = change(serde_json::to_value(&group.spec).unwrap());
                group.spec = serde_json::from_value(changed).unwrap();
            }
        }
        let input = ClusterInput {
            cluster,
            instance_groups: groups,
            ssh_keys: &[],
        };
        passed = !validate(&input).iter().any(Problem::is_error);
    });
    expanded.ok().filter(|_| passed)
}

fn is_inside(path: &str) -> bool {
    let normal = |part| matches!(part, Component::Normal(_));
    !path.is_empty() && !path.ends_with('/') && Path::new(path).components().all(normal)
}

#[test]
fn no_value_of_a_spec_leads_out_of_the_folder_it_is_put_in() {
    let mut rendered = 0;
    for (kind, leaf) in all_leaves() {
        if leaf.takes != LeafType::Text {
            continue;
        }
        for text in HOSTILE {
            let Some(expanded) = expand_with(kind, &leaf, &json!(text)) else {
                continue;
            };
            for group in &expanded.full.groups {
                let config = node_config(&expanded.full, &group.name, "", &made_up_agents());
                let Ok(Some(config)) = config else { continue };
                let files = host_files(&config, &InstanceFacts::placeholder()).unwrap();
                let files = files.iter().map(|file| file.path.trim_start_matches('/'));
                let units = config.units.iter().map(|unit| unit.name.as_str());
                let pods = config
                    .control_plane
                    .iter()
                    .flat_map(|of| of.static_pods.keys().map(String::as_str));
                for path in files.chain(units).chain(pods).chain([group.name.as_str()]) {
                    assert!(
                        is_inside(path),
                        "{kind} {}: {text} leads to {path}",
                        leaf.path
                    );
                }
                rendered += 1;
            }
        }
    }
    assert!(rendered > 100, "{rendered}");
}
