//! Renders a component's configuration as flags: the field `maxPods` becomes the flag `max-pods`, with few exceptions.

use super::Error;
use crate::validate::removed_flags;
use node::components::Flags;
use serde::Serialize;
use serde_json::Value;

/// The exceptions from the naming rule for one component. Fields are named as in the spec.
#[derive(Clone, Copy, Debug)]
pub(super) struct Naming {
    /// The component, for messages.
    pub component: &'static str,
    /// Fields whose flag has another name: field and flag.
    pub named: &'static [(&'static str, &'static str)],
    /// Fields without a flag.
    pub none: &'static [&'static str],
    /// Fields and the value with which the flag is left out.
    pub empty: &'static [(&'static str, &'static str)],
    /// Lists with one flag for each value. Other lists are one flag with commas.
    pub repeated: &'static [&'static str],
}

/// The flags of a configuration.
pub(super) fn collect_flags<T: Serialize>(config: &T, naming: &Naming) -> Result<Flags, Error> {
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
        let named = naming
            .named
            .iter()
            .find(|(exception, _)| *exception == field);
        let name = named.map_or_else(|| flag_name(&field), |(_, name)| (*name).to_owned());
        for text in flag_values(&value, naming.repeated.contains(&field.as_str())) {
            let empty = naming
                .empty
                .iter()
                .any(|(exception, empty)| *exception == field && *empty == text);
            let idle = removed_flags::is_idle(naming.component, &field, &text);
            if !empty && !idle && !text.is_empty() {
                flags.add(&name, text);
            }
        }
    }
    Ok(flags)
}

/// The texts of a value: one, or one for each element of a repeated list.
fn flag_values(value: &Value, repeated: bool) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => {
            let items: Vec<String> = items
                .iter()
                .flat_map(|item| flag_values(item, false))
                .collect();
            if repeated {
                items
            } else {
                vec![items.join(",")]
            }
        }
        Value::Object(map) => {
            let pair = |(key, value): (&String, &Value)| {
                format!("{key}={}", flag_values(value, false).concat())
            };
            vec![map.iter().map(pair).collect::<Vec<_>>().join(",")]
        }
        Value::Bool(_) | Value::Number(_) => vec![value.to_string()],
    }
}

/// `clientCAFile` as `client-ca-file`: a word begins at a capital after a small letter or digit, and at the last
/// capital of a run that a small letter follows.
fn flag_name(field: &str) -> String {
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
    use super::{Naming, collect_flags, flag_name};
    use node::components::Flags;
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
            assert_eq!(flag_name(field), flag);
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
        let flags = collect_flags(&config, &NAMING).unwrap();
        assert_eq!(flags.arguments(), expected);
        let written = serde_json::to_string(&flags).unwrap();
        assert_eq!(serde_json::from_str::<Flags>(&written).unwrap(), flags);
    }
}
