//! Configuration of containerd: `config.toml`, and `hosts.toml` for each registry with mirrors.

use crate::config::Containerd;
use toml::{Table, Value};

/// Names of the CRI plugin in containerd 1 and of its parts since containerd 2.
const CRI_V1: &str = "io.containerd.grpc.v1.cri";
const CRI_RUNTIME: &str = "io.containerd.cri.v1.runtime";
const CRI_IMAGES: &str = "io.containerd.cri.v1.images";

/// Inputs of the configuration from the cluster and the instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerdHost {
    /// True if kubelet's cgroup driver is systemd.
    pub systemd_cgroup: bool,
    /// Path of the template from which containerd writes the CNI configuration once the Node has its pod CIDR (kubenet).
    pub cni_template: Option<String>,
    /// True if processes may not lower their OOM score.
    pub restrict_oom_score_adj: bool,
}

/// Renders `config.toml`. The user's `configOverride` replaces it; `configAdditions` are applied on top.
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
    set_value(&mut table, &["version"], if old { 2 } else { 3 });
    let runc = ["plugins", runtime, "containerd", "runtimes", "runc"];
    set_value(
        &mut table,
        &[&runc[..], &["runtime_type"]].concat(),
        "io.containerd.runc.v2",
    );
    set_value(
        &mut table,
        &[&runc[..], &["options", "SystemdCgroup"]].concat(),
        host.systemd_cgroup,
    );
    set_value(
        &mut table,
        &["plugins", images, "registry", "config_path"],
        "/etc/containerd/certs.d",
    );
    if let Some(image) = &config.sandbox_image {
        if old {
            set_value(
                &mut table,
                &["plugins", CRI_V1, "sandbox_image"],
                image.as_str(),
            );
        } else {
            set_value(
                &mut table,
                &["plugins", CRI_IMAGES, "pinned_images", "sandbox"],
                image.as_str(),
            );
        }
    }
    if let Some(template) = &host.cni_template {
        set_value(
            &mut table,
            &["plugins", runtime, "cni", "conf_template"],
            template.as_str(),
        );
    }
    if host.restrict_oom_score_adj {
        set_value(
            &mut table,
            &["plugins", runtime, "restrict_oom_score_adj"],
            true,
        );
    }
    if config.selinux_enabled {
        set_value(&mut table, &["plugins", runtime, "enable_selinux"], true);
    }
    for (path, value) in &config.config_additions {
        let path = split_dotted(path);
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        set_value(&mut table, &path, to_toml_value(value));
    }
    table.to_string()
}

/// Renders `hosts.toml` for every registry with mirrors, as pairs of the folder below `/etc/containerd/certs.d` and the text.
pub fn containerd_hosts(config: &Containerd) -> Vec<(String, String)> {
    let hosts = config.registry_mirrors.iter().map(|(registry, mirrors)| {
        let mut table = Table::new();
        let (folder, server) = match registry.as_str() {
            "*" => ("_default", None),
            "docker.io" => ("docker.io", Some("https://registry-1.docker.io".to_owned())),
            registry => (registry, Some(format!("https://{registry}"))),
        };
        if let Some(server) = server {
            set_value(&mut table, &["server"], server);
        }
        for mirror in mirrors {
            let capabilities = Value::Array(vec!["pull".into(), "resolve".into()]);
            set_value(&mut table, &["host", mirror, "capabilities"], capabilities);
        }
        (folder.to_owned(), table.to_string())
    });
    hosts.collect()
}

/// Sets the value at a path, creating tables on the way and replacing values that are not tables.
fn set_value(table: &mut Table, path: &[&str], value: impl Into<Value>) {
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

/// Splits `a."b.c".d` into its parts.
fn split_dotted(path: &str) -> Vec<String> {
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

/// Converts a value of `configAdditions`. The texts `true` and `false` become booleans, because the spec has no other way to
/// write them.
fn to_toml_value(value: &serde_json::Value) -> Value {
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

    fn sample_host() -> ContainerdHost {
        ContainerdHost {
            systemd_cgroup: true,
            cni_template: None,
            restrict_oom_score_adj: false,
        }
    }

    fn parse_config(config: &Containerd, host: &ContainerdHost) -> Table {
        containerd_config(config, host).parse().unwrap()
    }

    fn value_at<'a>(table: &'a Table, path: &[&str]) -> Option<&'a Value> {
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
                ..sample_host()
            };
            let table = parse_config(&config, &host);
            assert_eq!(
                value_at(&table, &["version"]),
                Some(&Value::Integer(number))
            );
            assert_eq!(
                value_at(&table, &pause),
                Some(&Value::String("pause:1".into()))
            );
            let runc = [
                "plugins",
                runtime,
                "containerd",
                "runtimes",
                "runc",
                "options",
                "SystemdCgroup",
            ];
            assert_eq!(value_at(&table, &runc), Some(&Value::Boolean(true)));
            assert_eq!(
                value_at(&table, &["plugins", runtime, "cni", "conf_template"]),
                Some(&Value::String("/t".into()))
            );
            assert_eq!(
                value_at(&table, &["plugins", runtime, "restrict_oom_score_adj"]),
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
        let table = parse_config(&config, &sample_host());
        let runc = [
            "plugins",
            CRI_RUNTIME,
            "containerd",
            "runtimes",
            "runc",
            "options",
            "SystemdCgroup",
        ];
        assert_eq!(value_at(&table, &runc), Some(&Value::Boolean(false)));
        assert_eq!(
            value_at(&table, &["debug", "level"]),
            Some(&Value::String("debug".into()))
        );
        assert_eq!(value_at(&table, &["oom_score"]), Some(&Value::Integer(-5)));
        config.config_override = Some("version = 3\n".into());
        assert_eq!(containerd_config(&config, &sample_host()), "version = 3\n");
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
            value_at(
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
