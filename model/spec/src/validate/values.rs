//! Reads every text and number of a spec by its type, so that nothing is passed on that nobody has read.

mod eviction;
mod types;

pub use eviction::signal_without_grace;

use super::assets::is_sha256;
use super::text::is_dns_name;
use crate::read::{Problem, nearest, path};
use ipnet::IpNet;
use node::components::check_containerd_config;
use node::config::parse_user_parameters;
use node::duration::parse_seconds;
use node::values::{self, Refusal};
use serde::Serialize;
use serde_json::Value;
pub use types::{ValueType, is_map, is_opaque, known_keys, value_type};

/// Checks every value of a spec.
pub fn check<T: Serialize>(spec: &T, problems: &mut Vec<Problem>) {
    // A spec that has no JSON form does not exist: its keys are all text.
    if let Ok(value) = serde_json::to_value(spec) {
        check_values("spec", "spec", &value, problems);
    }
}

/// `pattern` is the path without indexes and with `*` for keys of maps, as the table of types has it.
fn check_values(at: &str, pattern: &str, value: &Value, problems: &mut Vec<Problem>) {
    let problem = match value {
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                check_values(&path::element_path(at, index), pattern, element, problems);
            }
            return;
        }
        Value::Object(fields) => {
            let map = is_map(pattern);
            for (name, value) in fields {
                let below = format!("{pattern}.{}", if map { "*" } else { name.as_str() });
                if map
                    && let Some(keys) = known_keys(pattern)
                    && !keys.contains(&name.as_str())
                {
                    problems.push(unknown_key(path::field_path(at, name), name, keys));
                    continue;
                }
                if !is_opaque(&below) {
                    check_values(&path::field_path(at, name), &below, value, problems);
                }
            }
            return;
        }
        Value::String(text) => match value_type(pattern) {
            Some(kind) => parse_text(kind, text),
            None => Ok(()),
        },
        Value::Number(number) => parse_number(value_type(pattern), number.as_i64()),
        Value::Null | Value::Bool(_) => Ok(()),
    };
    // A rule that knows more about the field has spoken already.
    let told = |other: &Problem| other.object.is_none() && other.path == at;
    if let Err(Refusal { message, hint }) = problem
        && !problems.iter().any(told)
    {
        problems.push(Problem::error(at, message).hint(hint));
    }
}

fn unknown_key(at: String, name: &str, keys: &[&str]) -> Problem {
    let problem = Problem::error(at, format!("{name:?} is not one of {}", keys.join(", ")));
    problem.hint(nearest::choice_hint(name, keys))
}

/// Reads a number. Those without a type of their own count something.
fn parse_number(kind: Option<ValueType>, number: Option<i64>) -> Result<(), Refusal> {
    let number = number.unwrap_or(i64::MAX);
    let (fits, hint) = match kind {
        Some(ValueType::PortOrNone) => (
            (0..=65_535).contains(&number),
            "use 1 to 65535, or 0 for none",
        ),
        Some(ValueType::ApiPort) => (
            number == i64::from(node::ports::API),
            "leave it out: load balancer, security groups and instances use 443",
        ),
        Some(ValueType::AnyNumber | ValueType::Text) => (true, ""),
        _ => (number >= 0, "use 0 or more"),
    };
    let refusal = || Err(Refusal::new(format!("{number} is not possible here"), hint));
    if fits { Ok(()) } else { refusal() }
}

/// Reads a text of this type.
#[allow(clippy::too_many_lines)] // One arm for each type.
pub fn parse_text(kind: ValueType, text: &str) -> Result<(), Refusal> {
    match kind {
        // Of numbers no text is read.
        ValueType::Text | ValueType::PortOrNone | ValueType::ApiPort | ValueType::AnyNumber => {
            Ok(())
        }
        ValueType::Line => one_line(text),
        ValueType::Word => parse_word(text),
        ValueType::Switch => must(
            parse_switch(text).is_some(),
            text,
            "true or false",
            "write true or false",
        ),
        ValueType::OneOf(words) => one_of(text, words),
        ValueType::Quantity => must(
            is_quantity(text),
            text,
            "a quantity",
            "write a number and a unit, such as 100m, 0.5, 170Mi or 2G",
        ),
        ValueType::Amount => must(
            is_amount(text),
            text,
            "a quantity of 0 or more",
            "write a number and a unit, such as 100m, 0.5, 170Mi or 2G",
        ),
        ValueType::Duration => must(
            parse_seconds(text).is_some(),
            text,
            "a duration",
            "write numbers with units, such as 30s, 15m or 1h30m",
        ),
        ValueType::Decimal => must(
            is_decimal(text),
            text,
            "a number",
            "write a number such as 0.05",
        ),
        ValueType::Evictions => eviction::parse_thresholds(text),
        ValueType::Reclaims => eviction::parse_reclaims(text),
        ValueType::GracePeriods => eviction::parse_grace_periods(text),
        ValueType::DnsName => must(
            is_dns_name(text),
            text,
            "a DNS name",
            "use lowercase letters, digits, dashes and dots",
        ),
        ValueType::Host => values::parse_host(text),
        ValueType::ProxyExcludes => text.split(',').map(str::trim).try_for_each(parse_exclude),
        ValueType::Address => values::parse_address(text).map(|_| ()),
        ValueType::Addresses => each_part(text, |part| values::parse_address(part).map(|_| ())),
        ValueType::Endpoint => values::parse_endpoint(text),
        ValueType::Ranges => each_part(text, |part| {
            must(
                part.parse::<IpNet>().is_ok(),
                part,
                "a CIDR",
                "write an address and a prefix length, such as 10.0.48.0/20",
            )
        }),
        ValueType::Url => values::parse_web_url(text),
        ValueType::SecureUrl => values::parse_url(text, &["https"]),
        ValueType::Store => parse_store(text),
        ValueType::Image => values::parse_image(text).map(|_| ()),
        ValueType::Tag => must(
            !text.contains('/') && values::parse_image(&format!("a:{text}")).is_ok(),
            text,
            "the tag of an image",
            "write a version as its project publishes it, such as v1.58.0",
        ),
        ValueType::Pattern => must(
            regex_lite::Regex::new(text).is_ok(),
            text,
            "a regular expression",
            "write one such as //console[.]example[.]com$",
        ),
        ValueType::RegistryPrefix => values::parse_registry_prefix(text).map(|_| ()),
        ValueType::File => values::parse_file(text).map(|_| ()),
        ValueType::FileIfAny | ValueType::ModeIfAny if text.is_empty() => Ok(()),
        ValueType::FileIfAny => values::parse_file(text).map(|_| ()),
        ValueType::FileOrOutput if text == "-" => Ok(()),
        ValueType::FileOrOutput => values::parse_file(text).map(|_| ()),
        ValueType::Folder => values::parse_folder(text).map(|_| ()),
        ValueType::MountPoint => parse_mount_point(text),
        ValueType::ModeIfAny => values::parse_mode(text).map(|_| ()),
        ValueType::Only(only, why) => {
            let wrong = || {
                Err(Refusal::new(
                    format!("{text:?} cannot be used: {why}"),
                    format!("leave it out, or write {only}"),
                ))
            };
            if text == only { Ok(()) } else { wrong() }
        }
        ValueType::NodeName => parse_node_name(text),
        ValueType::VariableName => must(
            is_variable(text),
            text,
            "the name of an environment variable",
            "use letters, digits and _",
        ),
        ValueType::Package => values::parse_package(text).map(|_| ()),
        ValueType::Parameters => parse_user_parameters(text).map(|_| ()),
        ValueType::ContainerdConfig => check_containerd_config(text),
        ValueType::Sha256 => must(
            is_sha256(text),
            text,
            "a SHA-256",
            "write the 64 hex digits that sha256sum prints",
        ),
        ValueType::Units => text.split_whitespace().try_for_each(parse_other_unit),
        ValueType::CipherSuite => must(
            text.starts_with("TLS_")
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_'),
            text,
            "a cipher suite",
            "write Go's name of one, such as TLS_AES_128_GCM_SHA256",
        ),
    }
}

/// A truth value as Kubernetes reads it (Go's `strconv.ParseBool`).
pub fn parse_switch(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

fn must(fits: bool, text: &str, what: &str, hint: &str) -> Result<(), Refusal> {
    if fits {
        return Ok(());
    }
    Err(Refusal::new(format!("{text:?} is not {what}"), hint))
}

fn one_of(text: &str, words: &[&str]) -> Result<(), Refusal> {
    let message = || format!("{text:?} is not one of {}", words.join(", "));
    let refusal = || Err(Refusal::new(message(), nearest::choice_hint(text, words)));
    if words.contains(&text) {
        Ok(())
    } else {
        refusal()
    }
}

/// Reads every part of a list with commas, which has one at least.
fn each_part(text: &str, parse: impl Fn(&str) -> Result<(), Refusal>) -> Result<(), Refusal> {
    text.split(',').map(str::trim).try_for_each(parse)
}

fn one_line(text: &str) -> Result<(), Refusal> {
    must(
        !text.chars().any(char::is_control),
        text,
        "one line of text",
        "remove line breaks and control characters",
    )
}

/// What programs understand in `no_proxy`: `*`, a name, a suffix, an address, each with or without a port, or a range.
fn parse_exclude(part: &str) -> Result<(), Refusal> {
    let name = part.trim_start_matches("*.").trim_start_matches('.');
    if matches!(part, "" | "*") || part.parse::<IpNet>().is_ok() || values::parse_host(part).is_ok()
    {
        return Ok(());
    }
    values::parse_host_and_port(name)
}

/// `s3://BUCKET/PATH`; tests have stores in memory and in folders.
fn parse_store(text: &str) -> Result<(), Refusal> {
    if text.starts_with("memfs://") || text.starts_with("file:///") {
        return one_line(text);
    }
    values::parse_url(text, &["s3"])
}

fn parse_mount_point(text: &str) -> Result<(), Refusal> {
    let path = values::parse_folder(text)?;
    let taken = ["/proc", "/sys", "/dev"]
        .iter()
        .any(|kernel| values::is_inside(&path, kernel));
    must(
        path != "/" && !taken,
        text,
        "a folder for a volume",
        "write where it is mounted, such as /var/lib/data",
    )
}

/// A word of a command line or of a file with settings, which has no syntax for blanks in it.
fn parse_word(text: &str) -> Result<(), Refusal> {
    let breaks = |c: char| c.is_whitespace() || c.is_control() || "\"'`\\$;".contains(c);
    must(
        !text.contains(breaks),
        text,
        "one word",
        "remove blanks, quotes and the characters \\ $ ; `",
    )
}

/// kOps has placeholders for the name of a Node, and replaces what stands here by the id of the instance in any case.
fn parse_node_name(text: &str) -> Result<(), Refusal> {
    if ["", "@aws", "@hostname"].contains(&text.trim().to_ascii_lowercase().as_str()) {
        return Ok(());
    }
    let message = format!(
        "{text:?} cannot be the name of a Node: it has the id of its instance, for which its certificate is made"
    );
    Err(Refusal::new(message, "leave it out"))
}

fn parse_other_unit(name: &str) -> Result<(), Refusal> {
    // systemd replaces %i and the like.
    values::parse_unit_name(&name.replace('%', ""))?;
    if values::unit_type(name).is_some() {
        return Ok(());
    }
    let message = format!("{name:?} has no type of a unit, so that systemd ignores it");
    Err(Refusal::new(
        message,
        format!("did you mean {name}.service?"),
    ))
}

fn is_variable(text: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(first) && text.chars().all(|c| first(c) || c.is_ascii_digit())
}

fn is_decimal(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
        && text.parse::<f64>().is_ok()
}

/// Kubernetes' grammar: a decimal number, then a unit or an exponent.
fn is_quantity(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let is_number =
        number.matches('.').count() <= 1 && number.bytes().any(|byte| byte.is_ascii_digit());
    let units = [
        "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
    ];
    let exponent = unit
        .strip_prefix(['e', 'E'])
        .is_some_and(|exponent| exponent.parse::<i32>().is_ok());
    is_number && (units.contains(&unit) || exponent)
}

/// A quantity that is not negative.
fn is_amount(text: &str) -> bool {
    is_quantity(text) && (!text.starts_with('-') || is_zero(text))
}

/// True of a quantity without a digit above 0 before its unit.
fn is_zero(quantity: &str) -> bool {
    let number = quantity.trim_start_matches(['+', '-']);
    let mut digits = number
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == '.');
    !digits.any(|c| ('1'..='9').contains(&c))
}

#[cfg(test)]
mod tests {
    use super::is_quantity;

    #[test]
    fn quantities_are_those_of_kubernetes() {
        for text in ["1", "100m", "3.14", "170Mi", "2G", "1e3", "12E", "-1", ".5"] {
            assert!(is_quantity(text), "{text}");
        }
        for text in ["", "m", "1 Gi", "1GiB", "1.2.3", "many", "1e"] {
            assert!(!is_quantity(text), "{text}");
        }
    }
}
