//! Shapes of text that several rules ask for.

use crate::read::Problem;

/// True for one label of a DNS name (RFC 1123): up to 63 lowercase letters, digits and inner dashes.
pub fn is_dns_label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty()
        && text.len() <= 63
        && text.chars().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// True for a DNS name: labels with dots between them, 253 characters at most.
pub fn is_dns_name(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_label)
}

/// True for a Kubernetes qualified name: `name` or `prefix/name`.
pub fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_dns_name(prefix) && is_label_name(name),
        None => is_label_name(text),
    }
}

/// True for a label value: empty, or shaped like a name.
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_label_name(text)
}

fn is_label_name(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let outer = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.len() <= 63
        && text.chars().all(inner)
        && outer(text.chars().next())
        && outer(text.chars().next_back())
}

/// True for `sg-`, `subnet-` and the like followed by something. The rest is not looked at: old
/// ids have 8 hex digits, new ones 17.
pub fn is_id(prefix: &str, text: &str) -> bool {
    text.strip_prefix(prefix)
        .is_some_and(|rest| rest.starts_with('-') && rest.len() > 1)
}

/// True for `arn:PARTITION:SERVICE:...`.
pub fn is_arn(service: &str, text: &str) -> bool {
    let mut parts = text.splitn(6, ':');
    let start = parts.next() == Some("arn")
        && parts
            .next()
            .is_some_and(|partition| partition.starts_with("aws"));
    start && parts.next() == Some(service) && parts.count() == 3
}

/// An error unless the text is one of the values.
pub fn check_one_of(
    path: impl Into<String>,
    text: &str,
    values: &[&str],
    problems: &mut Vec<Problem>,
) {
    if values.contains(&text) {
        return;
    }
    let message = format!("\"{text}\" is not one of {}", values.join(", "));
    problems
        .push(Problem::error(path, message).hint(crate::read::nearest::choice_hint(text, values)));
}

/// An error for every element that came before.
pub fn check_unique<'a>(
    values: impl IntoIterator<Item = (String, &'a str)>,
    problems: &mut Vec<Problem>,
) {
    let mut seen = std::collections::BTreeMap::new();
    for (path, value) in values {
        match seen.get(value) {
            None => {
                seen.insert(value, path);
            }
            Some(first) => problems.push(
                Problem::error(path, format!("\"{value}\" is taken already, by {first}"))
                    .hint("give each its own"),
            ),
        }
    }
}
