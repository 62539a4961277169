//! Flags of a component from its configuration: a field `maxPods` is the flag `max-pods`, with few exceptions.

use super::Error;
use node::components::Flags;
use serde::Serialize;
use serde_json::Value;

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
    use super::{Naming, flags, kebab};
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
