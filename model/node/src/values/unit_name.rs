//! Names of systemd units.

use super::Refusal;

/// The types of units, which are the suffixes of their names (systemd.unit(5)).
pub const UNIT_TYPES: [&str; 11] = [
    "service",
    "socket",
    "device",
    "mount",
    "automount",
    "swap",
    "target",
    "path",
    "timer",
    "slice",
    "scope",
];

/// systemd's limit, in bytes.
const LONGEST: usize = 255;

/// The type in a name; `None` for a name without one: the dot in `tune-nic-v1.2` begins no type.
pub fn unit_type(name: &str) -> Option<&'static str> {
    let (_, suffix) = name.rsplit_once('.')?;
    UNIT_TYPES.into_iter().find(|kind| *kind == suffix)
}

/// The name of a unit with its type, which is `service` if the text has none.
pub fn parse_unit_name(text: &str) -> Result<String, Refusal> {
    let name = match unit_type(text) {
        Some(_) => text.to_owned(),
        None => format!("{text}.service"),
    };
    let stem = name.rsplit_once('.').map_or("", |(stem, _)| stem);
    let known =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '-' | '_' | '.' | '\\' | '@');
    // systemctl takes what begins with a dash for an option.
    let begins_badly = stem.starts_with(['@', '-']);
    if stem.is_empty() || begins_badly || !stem.chars().all(known) {
        let message = format!("{text:?} is not the name of a unit");
        let hint = "use letters, digits and the characters - _ . : @, such as prepare-disk.service";
        return Err(Refusal::new(message, hint));
    }
    if name.len() > LONGEST {
        let message = format!("{text:?} is longer than systemd takes");
        return Err(Refusal::new(message, "use a shorter name"));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::parse_unit_name;

    #[test]
    fn a_suffix_is_one_of_systemds_types() {
        for (text, name) in [
            ("tune-nic-v1.2", "tune-nic-v1.2.service"),
            ("a.timer", "a.timer"),
            ("a.b.mount", "a.b.mount"),
            ("a.conf", "a.conf.service"),
            ("a.Service", "a.Service.service"),
            ("a@b", "a@b.service"),
            ("dev-sda\\x2d1.swap", "dev-sda\\x2d1.swap"),
            ("1", "1.service"),
        ] {
            assert_eq!(parse_unit_name(text).as_deref(), Ok(name));
        }
        for text in [
            "",
            ".service",
            "@x.service",
            "-tune",
            "a/b",
            "../x",
            "a b",
            "ä",
            "a%i",
            "a\n",
            "a\"b",
        ] {
            assert!(parse_unit_name(text).is_err(), "{text:?}");
        }
        assert!(parse_unit_name(&"a".repeat(248)).is_err());
        assert!(parse_unit_name(&"a".repeat(247)).is_ok());
    }
}
