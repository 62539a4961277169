//! Flags of a component from its configuration: a field `maxPods` is the flag `max-pods`, with few exceptions.

use super::Error;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Flags by name. Written as a list of `--name=value`, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<String>", from = "Vec<String>")]
pub struct Flags(BTreeMap<String, Vec<String>>);

/// Flags of the control plane's components whose value is a file that they read (kube-apiserver --help and the others').
pub const FILES: [&str; 33] = [
    "admission-control-config-file",
    "audit-policy-file",
    "audit-webhook-config-file",
    "authentication-config",
    "authentication-kubeconfig",
    "authentication-token-webhook-config-file",
    "authorization-kubeconfig",
    "authorization-webhook-config-file",
    "basic-auth-file",
    "client-ca-file",
    "cluster-signing-cert-file",
    "cluster-signing-key-file",
    "config",
    "encryption-provider-config",
    "etcd-cafile",
    "etcd-certfile",
    "etcd-keyfile",
    "experimental-encryption-provider-config",
    "kubeconfig",
    "kubelet-certificate-authority",
    "kubelet-client-certificate",
    "kubelet-client-key",
    "oidc-ca-file",
    "proxy-client-cert-file",
    "proxy-client-key-file",
    "requestheader-client-ca-file",
    "root-ca-file",
    "service-account-key-file",
    "service-account-private-key-file",
    "service-account-signing-key-file",
    "tls-cert-file",
    "tls-private-key-file",
    "token-auth-file",
];

impl Flags {
    /// Sets a flag in the place of what it was.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), vec![value.into()]);
    }

    /// Sets a flag that is not set.
    pub fn fill(&mut self, name: &str, value: impl Into<String>) {
        self.0
            .entry(name.to_owned())
            .or_insert_with(|| vec![value.into()]);
    }

    /// Gives a flag one value more.
    pub fn add(&mut self, name: &str, value: impl Into<String>) {
        self.0
            .entry(name.to_owned())
            .or_default()
            .push(value.into());
    }

    /// First value of a flag.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.first().map(String::as_str)
    }

    /// The files that the component reads, each with the flag that names it.
    pub fn files(&self) -> Vec<(&str, &str)> {
        let named = self
            .0
            .iter()
            .filter(|(name, _)| FILES.contains(&name.as_str()));
        named
            .flat_map(|(name, paths)| paths.iter().map(|path| (name.as_str(), path.as_str())))
            .collect()
    }

    /// `--name=value`, sorted by name.
    pub fn arguments(&self) -> Vec<String> {
        let each = |(name, values): (&String, &Vec<String>)| -> Vec<String> {
            values
                .iter()
                .map(|value| format!("--{name}={value}"))
                .collect()
        };
        self.0.iter().flat_map(each).collect()
    }
}

impl From<Flags> for Vec<String> {
    fn from(flags: Flags) -> Self {
        flags.arguments()
    }
}

impl From<Vec<String>> for Flags {
    fn from(arguments: Vec<String>) -> Self {
        let mut flags = Self::default();
        for argument in arguments {
            let bare = argument.strip_prefix("--").unwrap_or(&argument);
            let (name, value) = bare.split_once('=').unwrap_or((bare, "true"));
            flags.add(name, value);
        }
        flags
    }
}

/// How a configuration's fields become flags where the rule does not hold. Fields are named as in the spec.
#[derive(Clone, Copy, Debug)]
pub(super) struct Naming {
    /// The component, for messages.
    pub component: &'static str,
    /// Flags with another name.
    pub named: &'static [(&'static str, &'static str)],
    /// Fields that are no flags.
    pub none: &'static [&'static str],
    /// Values that mean the flag is not given.
    pub empty: &'static [(&'static str, &'static str)],
    /// Lists that are one flag for each value, where others are one flag with commas.
    pub repeated: &'static [&'static str],
}

/// The flags that a configuration says.
pub(super) fn flags<T: Serialize>(config: &T, naming: &Naming) -> Result<Flags, Error> {
    let fields = serde_json::to_value(config);
    let fields = fields.map_err(|source| Error {
        component: naming.component,
        source,
    })?;
    let mut flags = Flags::default();
    let Value::Object(fields) = fields else {
        return Ok(flags);
    };
    for (field, value) in fields {
        if naming.none.contains(&field.as_str()) {
            continue;
        }
        let named = naming.named.iter().find(|(of, _)| *of == field);
        let name = named.map_or_else(|| kebab(&field), |(_, name)| (*name).to_owned());
        for text in texts(&value, naming.repeated.contains(&field.as_str())) {
            let empty = naming
                .empty
                .iter()
                .any(|(of, empty)| *of == field && *empty == text);
            if !empty && !text.is_empty() {
                flags.add(&name, text);
            }
        }
    }
    Ok(flags)
}

/// The values of a flag: one, or all of a repeated list.
fn texts(value: &Value, repeated: bool) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => {
            let items: Vec<String> = items.iter().flat_map(|item| texts(item, false)).collect();
            if repeated {
                items
            } else {
                vec![items.join(",")]
            }
        }
        Value::Object(map) => {
            let pair =
                |(key, value): (&String, &Value)| format!("{key}={}", texts(value, false).concat());
            vec![map.iter().map(pair).collect::<Vec<_>>().join(",")]
        }
        Value::Bool(_) | Value::Number(_) => vec![value.to_string()],
    }
}

/// `clientCAFile` as `client-ca-file`: a word begins at a capital after a small letter or digit, and at the last
/// capital of a run that a small letter follows.
fn kebab(field: &str) -> String {
    let mut name = String::new();
    let mut characters = field.chars().peekable();
    let mut before: Option<char> = None;
    while let Some(character) = characters.next() {
        let next_is_small = characters.peek().is_some_and(char::is_ascii_lowercase);
        let begins = before.is_some_and(|before| !before.is_ascii_uppercase() || next_is_small);
        if character.is_ascii_uppercase() && begins {
            name.push('-');
        }
        name.push(character.to_ascii_lowercase());
        before = Some(character);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::{Flags, Naming, flags, kebab};
    use serde_json::json;

    const NAMING: Naming = Naming {
        component: "test",
        named: &[("logLevel", "v")],
        none: &["image"],
        empty: &[("logLevel", "0")],
        repeated: &["keys"],
    };

    #[test]
    fn fields_become_flags_as_kops_names_them() {
        for (field, flag) in [
            ("clientCAFile", "client-ca-file"),
            ("serviceClusterIPRange", "service-cluster-ip-range"),
            (
                "http2MaxStreamsPerConnection",
                "http2-max-streams-per-connection",
            ),
            ("oidcIssuerURL", "oidc-issuer-url"),
            ("ClusterSigningDuration", "cluster-signing-duration"),
            ("configureCbr0", "configure-cbr0"),
            ("nodeCIDRMaskSize", "node-cidr-mask-size"),
            ("terminatedPodGCThreshold", "terminated-pod-gc-threshold"),
        ] {
            assert_eq!(kebab(field), flag);
        }
    }

    #[test]
    fn values_are_written_as_components_read_them() {
        let config = json!({
            "image": "no flag", "logLevel": 0, "emptyText": "", "emptyList": [], "off": false, "zero": 0,
            "list": ["b", "a"], "keys": ["x", "y"], "gates": { "B": "false", "A": "true" }, "unset": null,
        });
        let expected = [
            "--gates=A=true,B=false",
            "--keys=x",
            "--keys=y",
            "--list=b,a",
            "--off=false",
            "--zero=0",
        ];
        let flags = flags(&config, &NAMING).unwrap();
        assert_eq!(flags.arguments(), expected);
        let written = serde_json::to_string(&flags).unwrap();
        assert_eq!(serde_json::from_str::<Flags>(&written).unwrap(), flags);
    }
}
