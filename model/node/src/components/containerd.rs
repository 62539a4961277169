//! containerd's configuration: `config.toml`, and `hosts.toml` of each registry with mirrors.

use crate::config::Containerd;
use toml::{Table, Value};

/// The CRI plugin's parts before and since containerd 2.
const CRI_V1: &str = "io.containerd.grpc.v1.cri";
const CRI_RUNTIME: &str = "io.containerd.cri.v1.runtime";
const CRI_IMAGES: &str = "io.containerd.cri.v1.images";

/// What of the cluster and of the machine the configuration depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerdHost {
    /// kubelet's cgroup driver is systemd.
    pub systemd_cgroup: bool,
    /// containerd writes the CNI configuration from this template when the Node gets its range (kubenet).
    pub cni_template: Option<String>,
    /// The kernel does not let processes lower their OOM score here.
    pub restrict_oom_score_adj: bool,
}

/// `config.toml`. The user's `configOverride` takes its place, `configAdditions` are written over it.
pub fn containerd_config(config: &Containerd, host: &ContainerdHost) -> String {
    if let Some(whole) = &config.config_override {
        return whole.clone();
    }
    let old = config
        .version
        .as_deref()
        .is_some_and(|version| version.trim_start_matches('v').starts_with("1."));
    let (runtime, images) = if old {
        (CRI_V1, CRI_V1)
    } else {
        (CRI_RUNTIME, CRI_IMAGES)
    };
    let mut table = Table::new();
    set(&mut table, &["version"], if old { 2 } else { 3 });
    let runc = ["plugins", runtime, "containerd", "runtimes", "runc"];
    set(
        &mut table,
        &[&runc[..], &["runtime_type"]].concat(),
        "io.containerd.runc.v2",
    );
    set(
        &mut table,
        &[&runc[..], &["options", "SystemdCgroup"]].concat(),
        host.systemd_cgroup,
    );
    set(
        &mut table,
        &["plugins", images, "registry", "config_path"],
        "/etc/containerd/certs.d",
    );
    if let Some(image) = &config.sandbox_image {
        if old {
            set(
                &mut table,
                &["plugins", CRI_V1, "sandbox_image"],
                image.as_str(),
            );
        } else {
            set(
                &mut table,
                &["plugins", CRI_IMAGES, "pinned_images", "sandbox"],
                image.as_str(),
            );
        }
    }
    if let Some(template) = &host.cni_template {
        set(
            &mut table,
            &["plugins", runtime, "cni", "conf_template"],
            template.as_str(),
        );
    }
    if host.restrict_oom_score_adj {
        set(
            &mut table,
            &["plugins", runtime, "restrict_oom_score_adj"],
            true,
        );
    }
    if config.selinux_enabled {
        set(&mut table, &["plugins", runtime, "enable_selinux"], true);
    }
    for (path, value) in &config.config_additions {
        let path = dotted(path);
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        set(&mut table, &path, addition(value));
    }
    table.to_string()
}

/// `hosts.toml` by the folder of its registry below `/etc/containerd/certs.d`, for every registry with mirrors.
pub fn containerd_hosts(config: &Containerd) -> Vec<(String, String)> {
    let hosts = config.registry_mirrors.iter().map(|(registry, mirrors)| {
        let mut table = Table::new();
        let (folder, server) = match registry.as_str() {
            "*" => ("_default", None),
            "docker.io" => ("docker.io", Some("https://registry-1.docker.io".to_owned())),
            registry => (registry, Some(format!("https://{registry}"))),
        };
        if let Some(server) = server {
            set(&mut table, &["server"], server);
        }
        for mirror in mirrors {
            let capabilities = Value::Array(vec!["pull".into(), "resolve".into()]);
            set(&mut table, &["host", mirror, "capabilities"], capabilities);
        }
        (folder.to_owned(), table.to_string())
    });
    hosts.collect()
}

/// Sets a value; tables on the way to it come into being, other values there give way.
fn set(table: &mut Table, path: &[&str], value: impl Into<Value>) {
    let Some((last, tables)) = path.split_last() else {
        return;
    };
    let mut table = table;
    for name in tables {
        let entry = table
            .entry(*name)
            .or_insert_with(|| Value::Table(Table::new()));
        if !entry.is_table() {
            *entry = Value::Table(Table::new());
        }
        let Value::Table(next) = entry else { return };
        table = next;
    }
    table.insert((*last).to_owned(), value.into());
}

/// `a."b.c".d` as its parts.
fn dotted(path: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for character in path.chars() {
        match character {
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            other => parts
                .last_mut()
                .into_iter()
                .for_each(|part| part.push(other)),
        }
    }
    parts
}

/// As TOML has it. `true` and `false` as text are what they say: the spec has no other way to write them.
fn addition(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Number(number) => number
            .as_i64()
            .map_or_else(|| Value::String(number.to_string()), Value::Integer),
        serde_json::Value::String(text) => match text.as_str() {
            "true" => Value::Boolean(true),
            "false" => Value::Boolean(false),
            text => Value::String(text.to_owned()),
        },
        other => Value::String(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> ContainerdHost {
        ContainerdHost {
            systemd_cgroup: true,
            cni_template: None,
            restrict_oom_score_adj: false,
        }
    }

    fn parsed(config: &Containerd, host: &ContainerdHost) -> Table {
        containerd_config(config, host).parse().unwrap()
    }

    fn at<'a>(table: &'a Table, path: &[&str]) -> Option<&'a Value> {
        let (first, rest) = path.split_first().unwrap();
        rest.iter()
            .try_fold(table.get(*first)?, |value, name| value.get(*name))
    }

    #[test]
    fn each_generation_of_containerd_finds_its_settings_where_it_looks() {
        for (version, number, runtime, pause) in [
            (
                "1.7.29",
                2,
                CRI_V1,
                vec!["plugins", CRI_V1, "sandbox_image"],
            ),
            (
                "2.3.4",
                3,
                CRI_RUNTIME,
                vec!["plugins", CRI_IMAGES, "pinned_images", "sandbox"],
            ),
        ] {
            let config = Containerd {
                version: Some(version.into()),
                sandbox_image: Some("pause:1".into()),
                ..Containerd::default()
            };
            let host = ContainerdHost {
                cni_template: Some("/t".into()),
                restrict_oom_score_adj: true,
                ..host()
            };
            let table = parsed(&config, &host);
            assert_eq!(at(&table, &["version"]), Some(&Value::Integer(number)));
            assert_eq!(at(&table, &pause), Some(&Value::String("pause:1".into())));
            let runc = [
                "plugins",
                runtime,
                "containerd",
                "runtimes",
                "runc",
                "options",
                "SystemdCgroup",
            ];
            assert_eq!(at(&table, &runc), Some(&Value::Boolean(true)));
            assert_eq!(
                at(&table, &["plugins", runtime, "cni", "conf_template"]),
                Some(&Value::String("/t".into()))
            );
            assert_eq!(
                at(&table, &["plugins", runtime, "restrict_oom_score_adj"]),
                Some(&Value::Boolean(true))
            );
        }
    }

    #[test]
    fn additions_go_over_ours_and_an_override_takes_its_place() {
        let mut config = Containerd::default();
        let path =
            format!("plugins.\"{CRI_RUNTIME}\".containerd.runtimes.runc.options.SystemdCgroup");
        config.config_additions.insert(path, "false".into());
        config
            .config_additions
            .insert("debug.level".into(), "debug".into());
        config
            .config_additions
            .insert("oom_score".into(), (-5).into());
        let table = parsed(&config, &host());
        let runc = [
            "plugins",
            CRI_RUNTIME,
            "containerd",
            "runtimes",
            "runc",
            "options",
            "SystemdCgroup",
        ];
        assert_eq!(at(&table, &runc), Some(&Value::Boolean(false)));
        assert_eq!(
            at(&table, &["debug", "level"]),
            Some(&Value::String("debug".into()))
        );
        assert_eq!(at(&table, &["oom_score"]), Some(&Value::Integer(-5)));
        config.config_override = Some("version = 3\n".into());
        assert_eq!(containerd_config(&config, &host()), "version = 3\n");
    }

    #[test]
    fn mirrors_are_asked_before_the_registry() {
        let mut config = Containerd::default();
        config
            .registry_mirrors
            .insert("docker.io".into(), vec!["https://a.example.com".into()]);
        config
            .registry_mirrors
            .insert("*".into(), vec!["https://b.example.com/v2/x".into()]);
        let hosts = containerd_hosts(&config);
        let folders: Vec<&str> = hosts.iter().map(|(folder, _)| folder.as_str()).collect();
        assert_eq!(folders, ["_default", "docker.io"]);
        let default: Table = hosts[0].1.parse().unwrap();
        assert_eq!(default.get("server"), None);
        assert!(
            at(
                &default,
                &["host", "https://b.example.com/v2/x", "capabilities"]
            )
            .is_some()
        );
        let hub: Table = hosts[1].1.parse().unwrap();
        assert_eq!(
            hub.get("server"),
            Some(&Value::String("https://registry-1.docker.io".into()))
        );
    }
}
