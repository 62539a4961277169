//! Configuration of containerd: `config.toml`, and `hosts.toml` for each registry with mirrors.

use crate::config::Containerd;
use crate::values::Refusal;
use toml::{Table, Value};

/// Names of the CRI plugin in containerd 1 and of its parts since containerd 2.
const CRI_V1: &str = "io.containerd.grpc.v1.cri";
const CRI_RUNTIME: &str = "io.containerd.cri.v1.runtime";
const CRI_IMAGES: &str = "io.containerd.cri.v1.images";
/// Name of the plugin that runs the plugins of the Node Resource Interface.
const NRI: &str = "io.containerd.nri.v1.nri";

/// Inputs of the configuration from the cluster and the instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerdHost {
    /// True if kubelet's cgroup driver is systemd.
    pub systemd_cgroup: bool,
    /// Path of the template from which containerd writes the CNI configuration once the Node has its pod CIDR (kubenet).
    pub cni_template: Option<String>,
    /// True if processes may not lower their OOM score.
    pub restrict_oom_score_adj: bool,
}

/// Folder with a `hosts.toml` for each registry that has mirrors.
const REGISTRIES: &str = "/etc/containerd/certs.d";

/// Renders `config.toml`. The user's `configOverride` replaces it; `configAdditions` are applied on top.
pub fn containerd_config(config: &Containerd, host: &ContainerdHost) -> Result<String, Refusal> {
    if let Some(whole) = &config.config_override {
        return Ok(whole.clone());
    }
    let mut table = own_config(config, host);
    let mut added: Vec<(Vec<String>, &str)> = Vec::new();
    for (text, value) in &config.config_additions {
        let path = parse_config_path(text)?;
        let inside =
            |(other, _): &&(Vec<String>, &str)| path.starts_with(other) || other.starts_with(&path);
        if let Some((_, other)) = added.iter().find(inside) {
            let message = format!("{text} and {other} cannot both be set: one is inside the other");
            return Err(Refusal::new(message, "keep one of them"));
        }
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        set_value(&mut table, &names, to_toml_value(value));
        added.push((path, text.as_str()));
    }
    check_registries(&table)?;
    Ok(table.to_string())
}

/// kctl's own settings.
fn own_config(config: &Containerd, host: &ContainerdHost) -> Table {
    let old = is_first_generation(config);
    let (runtime, images) = if old {
        (CRI_V1, CRI_V1)
    } else {
        (CRI_RUNTIME, CRI_IMAGES)
    };
    let mut table = Table::new();
    let mut set = |path: &[&str], value: Value| set_value(&mut table, path, value);
    set(&["version"], Value::Integer(if old { 2 } else { 3 }));
    for (path, value) in runtime_settings(config, host) {
        let runtimes = ["plugins", runtime, "containerd", "runtimes"];
        set(&[&runtimes[..], path].concat(), value);
    }
    // Not without mirrors, as in kOps: with it containerd refuses the settings of registries in this file.
    if !config.registry_mirrors.is_empty() {
        set(
            &["plugins", images, "registry", "config_path"],
            REGISTRIES.into(),
        );
    }
    if let Some(image) = &config.sandbox_image {
        let path: &[&str] = if old {
            &["plugins", CRI_V1, "sandbox_image"]
        } else {
            &["plugins", CRI_IMAGES, "pinned_images", "sandbox"]
        };
        set(path, image.as_str().into());
    }
    if let Some(template) = &host.cni_template {
        set(
            &["plugins", runtime, "cni", "conf_template"],
            template.as_str().into(),
        );
    }
    if host.restrict_oom_score_adj {
        set(&["plugins", runtime, "restrict_oom_score_adj"], true.into());
    }
    if config.selinux_enabled {
        set(&["plugins", runtime, "enable_selinux"], true.into());
    }
    if let Some(nri) = &config.nri {
        let mut set = |name: &str, value: Value| set(&["plugins", NRI, name], value);
        set("disable", (!nri.enabled).into());
        for (name, timeout) in [
            ("plugin_registration_timeout", &nri.registration_timeout),
            ("plugin_request_timeout", &nri.request_timeout),
        ] {
            if let Some(timeout) = timeout {
                set(name, timeout.as_str().into());
            }
        }
    }
    table
}

/// Settings of the runtimes, below the table of runtimes.
fn runtime_settings(
    config: &Containerd,
    host: &ContainerdHost,
) -> Vec<(&'static [&'static str], Value)> {
    let runc = "io.containerd.runc.v2";
    let mut settings: Vec<(&[&str], Value)> = vec![
        (&["runc", "runtime_type"], runc.into()),
        (
            &["runc", "options", "SystemdCgroup"],
            host.systemd_cgroup.into(),
        ),
    ];
    if config.gvisor.is_some() {
        settings.push((&["runsc", "runtime_type"], "io.containerd.runsc.v1".into()));
        // Without them the shim reads no file.
        let options = "io.containerd.runsc.v1.options";
        settings.push((&["runsc", "options", "TypeUrl"], options.into()));
        settings.push((&["runsc", "options", "ConfigPath"], RUNSC_CONFIG.into()));
    }
    if config.nvidia {
        let binary = "/usr/bin/nvidia-container-runtime";
        settings.push((&["nvidia", "runtime_type"], runc.into()));
        settings.push((&["nvidia", "options", "BinaryName"], binary.into()));
        settings.push((
            &["nvidia", "options", "SystemdCgroup"],
            host.systemd_cgroup.into(),
        ));
    }
    settings
}

/// The file from which gVisor's shim learns how to run a sandbox: <https://gvisor.dev/docs/user_guide/containerd/configuration/>.
pub const RUNSC_CONFIG: &str = "/etc/containerd/runsc.toml";

/// Renders that file. With systemd's cgroups, runsc must know that the paths that it is given are such: a sandbox would be outside of its
/// pod's, and of the pod's limits.
pub fn runsc_config(platform: &str, host: &ContainerdHost) -> String {
    let mut table = Table::new();
    set_value(&mut table, &["runsc_config", "platform"], platform);
    if host.systemd_cgroup {
        // A flag, whose value is a text.
        set_value(&mut table, &["runsc_config", "systemd-cgroup"], "true");
    }
    table.to_string()
}

fn is_first_generation(config: &Containerd) -> bool {
    let version = config.version.as_deref();
    version.is_some_and(|version| version.trim_start_matches('v').starts_with("1."))
}

/// containerd does not start its CRI plugin with `config_path` and `mirrors`, or `config_path` and `configs.HOST.tls`
/// (containerd's `ValidateImageConfig`).
fn check_registries(config: &Table) -> Result<(), Refusal> {
    // Of a file of version 3 containerd reads the plugins of containerd 2, of an older one those of containerd 1.
    let newer = config.get("version").and_then(Value::as_integer) >= Some(3);
    let plugin = if newer { CRI_IMAGES } else { CRI_V1 };
    let registry = config
        .get("plugins")
        .and_then(|all| all.get(plugin)?.get("registry"));
    let Some(registry) = registry.filter(|registry| {
        let path = registry.get("config_path").and_then(Value::as_str);
        path.is_some_and(|path| !path.is_empty())
    }) else {
        return Ok(());
    };
    let configs = registry.get("configs").and_then(Value::as_table);
    let tls = configs.is_some_and(|all| all.values().any(|one| one.get("tls").is_some()));
    let part = match registry.get("mirrors") {
        Some(_) => "registry.mirrors",
        None if tls => "registry.configs with tls",
        None => return Ok(()),
    };
    let message =
        format!("containerd does not start with {part} beside registryMirrors or config_path");
    let hint = "name mirrors in registryMirrors only; put TLS settings into a hosts.toml with fileAssets, or remove the mirrors";
    Err(Refusal::new(message, hint))
}

/// Additions that the installed containerd does not read, because they name a plugin of the other generation: each with the plugin
/// that has the settings now.
pub fn unread_additions(config: &Containerd) -> Vec<(&str, String)> {
    let old = is_first_generation(config);
    let unread = |text: &str| {
        let path = parse_config_path(text).ok()?;
        let [plugins, plugin, setting, ..] = path.as_slice() else {
            return None;
        };
        if plugins != "plugins" {
            return None;
        }
        let of_images = [
            "discard_unpacked_layers",
            "image_pull_progress_timeout",
            "image_pull_with_sync_fs",
            "max_concurrent_downloads",
            "registry",
            "snapshotter",
            "stats_collect_period",
        ];
        let elsewhere = match plugin.as_str() {
            CRI_V1 if old || STREAMING.contains(&setting.as_str()) => return None,
            CRI_V1 if setting == "sandbox_image" => CRI_IMAGES,
            CRI_V1 if of_images.contains(&setting.as_str()) => CRI_IMAGES,
            CRI_V1 => CRI_RUNTIME,
            CRI_RUNTIME | CRI_IMAGES if old => CRI_V1,
            _ => return None,
        };
        Some(elsewhere.to_owned())
    };
    let additions = config.config_additions.keys();
    additions
        .filter_map(|text| Some((text.as_str(), unread(text)?)))
        .collect()
}

/// Settings that the plugin of containerd 1 still has in containerd 2, where it serves the CRI.
const STREAMING: [&str; 6] = [
    "disable_tcp_service",
    "enable_tls_streaming",
    "stream_idle_timeout",
    "stream_server_address",
    "stream_server_port",
    "x509_key_pair_streaming",
];

/// Reads a whole `config.toml` as containerd would.
pub fn check_containerd_config(text: &str) -> Result<(), Refusal> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| {
            let before = text.get(..span.start).unwrap_or(text);
            before.matches('\n').count() + 1
        });
        let message = format!("this is not TOML: line {line}: {}", error.message());
        Refusal::new(message, "write the whole config.toml of containerd")
    })?;
    check_registries(&table)
}

/// Renders `hosts.toml` for every registry with mirrors, as pairs of the folder below `/etc/containerd/certs.d` and the text. As
/// in kOps containerd asks mirrors in the order of the spec, which is why the text is not made from a sorted table, and then the
/// registry.
pub fn containerd_hosts(config: &Containerd) -> Vec<(String, String)> {
    let hosts = config.registry_mirrors.iter().map(|(registry, mirrors)| {
        let folder = if registry == "*" {
            "_default"
        } else {
            registry
        };
        let mut text = String::new();
        for mirror in mirrors {
            let mirror = &mirror_url(mirror);
            let override_path = if names_api_root(mirror) {
                "override_path = true\n"
            } else {
                ""
            };
            let mirror = Value::from(mirror.as_str());
            text.push_str(&format!(
                "[host.{mirror}]\ncapabilities = [\"pull\", \"resolve\"]\n{override_path}\n"
            ));
        }
        (folder.to_owned(), text)
    });
    hosts.collect()
}

/// The URL of a mirror, which is at `https://` if it does not say otherwise, as containerd has it.
pub fn mirror_url(mirror: &str) -> String {
    if mirror.contains("://") {
        mirror.to_owned()
    } else {
        format!("https://{mirror}")
    }
}

/// True if a mirror's path has the root of the registry's API in it, as in `https://harbor.internal/v2/hub`. containerd adds `/v2`
/// to every other path.
fn names_api_root(mirror: &str) -> bool {
    let rest = mirror.split_once("://").map_or(mirror, |(_, rest)| rest);
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    path.split('/').skip(1).any(|part| part == "v2")
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

/// Splits `a."b.c".d` into its parts, which kOps reads as values with dots between them: a part in quotes may have dots, and two
/// quotes for one.
fn parse_config_path(text: &str) -> Result<Vec<String>, Refusal> {
    let refused = || {
        let message = format!("{text:?} is not a path of containerd's settings");
        let hint = "write names with dots between them, and quotes around a name with dots, as in plugins.\"io.containerd.cri.v1.images\".registry";
        Refusal::new(message, hint)
    };
    let mut parts = Vec::new();
    let mut rest = Some(text);
    while let Some(now) = rest {
        let (part, behind) = match now.strip_prefix('"') {
            Some(quoted) => split_quoted(quoted).ok_or_else(refused)?,
            None => match now.find('.') {
                Some(dot) => (
                    now.get(..dot).unwrap_or_default().to_owned(),
                    now.get(dot..).unwrap_or_default(),
                ),
                None => (now.to_owned(), ""),
            },
        };
        let plain = !now.starts_with('"') && part.contains('"');
        if part.is_empty() || plain || part.chars().any(char::is_control) {
            return Err(refused());
        }
        parts.push(part);
        rest = match behind.strip_prefix('.') {
            Some(more) => Some(more),
            None if behind.is_empty() => None,
            None => return Err(refused()),
        };
    }
    Ok(parts)
}

/// The text up to the closing quote, and what follows it.
fn split_quoted(quoted: &str) -> Option<(String, &str)> {
    let mut part = String::new();
    let mut rest = quoted;
    loop {
        let (before, after) = rest.split_once('"')?;
        part.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                part.push('"');
                rest = more;
            }
            None => return Some((part, after)),
        }
    }
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
    use crate::config::Nri;

    fn sample_host() -> ContainerdHost {
        ContainerdHost {
            systemd_cgroup: true,
            cni_template: None,
            restrict_oom_score_adj: false,
        }
    }

    fn parse_config(config: &Containerd, host: &ContainerdHost) -> Table {
        containerd_config(config, host).unwrap().parse().unwrap()
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
        assert_eq!(
            containerd_config(&config, &sample_host()).as_deref(),
            Ok("version = 3\n")
        );
    }

    #[test]
    fn mirrors_are_asked_in_the_order_of_the_spec_by_their_own_paths() {
        let mirrors = [
            "https://z.example.com",
            "https://a.example.com/v2/hub",
            "http://m.example.com:5000/",
            "https://b.example.com/artifactory/hub",
            "https://c.example.com/v2",
        ];
        let mut config = Containerd::default();
        for registry in ["docker.io", "*", "own:5000"] {
            let mirrors = mirrors.map(str::to_owned).to_vec();
            config.registry_mirrors.insert(registry.into(), mirrors);
        }
        let hosts = containerd_hosts(&config);
        let folders: Vec<&str> = hosts.iter().map(|(folder, _)| folder.as_str()).collect();
        assert_eq!(folders, ["_default", "docker.io", "own:5000"]);
        for (_, text) in hosts {
            let places = mirrors.map(|mirror| text.find(&format!("[host.\"{mirror}\"]")).unwrap());
            assert!(places.is_sorted(), "{text}");
            let table: Table = text.parse().unwrap();
            let overridden = mirrors.map(|mirror| {
                let value = value_at(&table, &["host", mirror, "override_path"]);
                value == Some(&Value::Boolean(true))
            });
            assert_eq!(overridden, [false, true, false, false, true]);
            assert_eq!(table.get("server"), None, "containerd knows it best");
        }
    }

    #[test]
    fn settings_of_registries_have_one_place() {
        for (version, plugin) in [("1.7.29", CRI_V1), ("2.3.4", CRI_IMAGES)] {
            let path = |rest: &str| format!("plugins.\"{plugin}\".registry.{rest}");
            let tls = path("configs.\"host:5000\".tls.insecure_skip_verify");
            let mut config = Containerd {
                version: Some(version.into()),
                ..Containerd::default()
            };
            config.config_additions.insert(tls, "true".into());
            let table = parse_config(&config, &sample_host());
            let registry = value_at(&table, &["plugins", plugin, "registry"]).unwrap();
            assert!(registry.get("config_path").is_none(), "{version}");
            assert!(registry.get("configs").unwrap().get("host:5000").is_some());
            let mirrors = vec!["https://m.example.com".to_owned()];
            config.registry_mirrors.insert("docker.io".into(), mirrors);
            assert!(
                containerd_config(&config, &sample_host()).is_err(),
                "{version}"
            );
            config.config_additions.clear();
            let table = parse_config(&config, &sample_host());
            let at = ["plugins", plugin, "registry", "config_path"];
            assert!(value_at(&table, &at).is_some(), "{version}");
            let mirror = path("mirrors.\"docker.io\".endpoint");
            config.config_additions.insert(mirror, "x".into());
            assert!(
                containerd_config(&config, &sample_host()).is_err(),
                "{version}"
            );
        }
    }

    #[test]
    fn settings_of_the_other_generation_are_not_read() {
        let registry = "registry.mirrors.\"docker.io\".endpoint";
        for (version, plugin, setting, instead) in [
            ("1.7.29", CRI_V1, "sandbox_image", None),
            ("1.7.29", CRI_RUNTIME, "enable_cdi", Some(CRI_V1)),
            ("1.7.29", CRI_IMAGES, registry, Some(CRI_V1)),
            ("2.3.4", CRI_V1, "enable_cdi", Some(CRI_RUNTIME)),
            ("2.3.4", CRI_V1, registry, Some(CRI_IMAGES)),
            ("2.3.4", CRI_V1, "stream_server_port", None),
            ("2.3.4", CRI_RUNTIME, "enable_cdi", None),
            ("2.3.4", NRI, "disable", None),
        ] {
            let text = format!("plugins.\"{plugin}\".{setting}");
            let mut config = Containerd {
                version: Some(version.into()),
                ..Containerd::default()
            };
            let mirrors = vec!["https://m.example.com".to_owned()];
            config.registry_mirrors.insert("docker.io".into(), mirrors);
            config.config_additions.insert(text.clone(), "x".into());
            let found = unread_additions(&config);
            let expected = instead.map(|instead| (text.as_str(), instead.to_owned()));
            assert_eq!(found, Vec::from_iter(expected), "{version}");
            // What is not read does not keep containerd from starting.
            assert!(containerd_config(&config, &sample_host()).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_mirror_without_a_scheme_is_asked_with_tls() {
        let mut config = Containerd::default();
        let mirrors = vec!["mirror.internal:5000/v2/hub".to_owned()];
        config.registry_mirrors.insert("docker.io".into(), mirrors);
        let (_, text) = &containerd_hosts(&config)[0];
        assert!(
            text.contains("[host.\"https://mirror.internal:5000/v2/hub\"]"),
            "{text}"
        );
        assert!(text.contains("override_path = true"), "{text}");
    }

    #[test]
    fn paths_of_additions_are_those_of_kops() {
        for (text, parts) in [
            ("a", vec!["a"]),
            ("a.\"b.c\".d", vec!["a", "b.c", "d"]),
            ("a.\"host:5000\".b-c", vec!["a", "host:5000", "b-c"]),
            ("\"a\"\"b\"", vec!["a\"b"]),
        ] {
            assert_eq!(parse_config_path(text).unwrap(), parts, "{text}");
        }
        for text in [
            "", ".", "a.", ".a", "a..b", "\"a", "a\"b", "a.\"b\"c", "a.\"\".b", "a\n",
        ] {
            assert!(parse_config_path(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn plugins_of_nri_are_turned_on_and_off() {
        let nri = |enabled, timeout: Option<&str>| {
            let config = Containerd {
                nri: Some(Nri {
                    enabled,
                    registration_timeout: timeout.map(str::to_owned),
                    request_timeout: None,
                }),
                ..Containerd::default()
            };
            let table = parse_config(&config, &sample_host());
            value_at(&table, &["plugins", NRI]).unwrap().to_string()
        };
        assert_eq!(nri(false, None), "{ disable = true }");
        assert_eq!(
            nri(true, Some("10s")),
            "{ disable = false, plugin_registration_timeout = \"10s\" }"
        );
        let without = parse_config(&Containerd::default(), &sample_host());
        assert!(value_at(&without, &["plugins", NRI]).is_none());
    }

    #[test]
    fn one_setting_is_not_inside_another() {
        let mut config = Containerd::default();
        config.config_additions.insert("debug".into(), "x".into());
        config
            .config_additions
            .insert("debug.level".into(), "x".into());
        assert!(containerd_config(&config, &sample_host()).is_err());
    }
}
