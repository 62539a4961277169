//! `--cloud-labels`: `key=value,key="value"`.

use std::collections::BTreeMap;

/// Labels of a list. A key or value in double quotes may hold `=` and commas; `""` in it is a quote.
/// Blanks before a key or value do not count. Fails with what is wrong.
pub(super) fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut labels = BTreeMap::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (key, after) = parse_field(rest, &['=', ','])?;
        let Some(value) = after.strip_prefix('=') else {
            return Err(format!("{key:?} has no value"));
        };
        let (value, after) = parse_field(value.trim_start(), &['=', ','])?;
        if after.starts_with('=') {
            return Err(format!("the value of {key:?} holds a bare ="));
        }
        if key.is_empty() {
            return Err(format!("the value {value:?} has no key"));
        }
        labels.insert(key, value);
        rest = after.trim_start_matches(',').trim_start();
    }
    Ok(labels)
}

/// A quoted or bare field at the start of a text, and what comes after it.
fn parse_field<'a>(text: &'a str, ends: &[char]) -> Result<(String, &'a str), String> {
    let Some(mut quoted) = text.strip_prefix('"') else {
        let end = text.find(ends).unwrap_or(text.len());
        let (bare, after) = text.split_at(end);
        return Ok((bare.to_owned(), after));
    };
    let mut value = String::new();
    while let Some((part, after)) = quoted.split_once('"') {
        value.push_str(part);
        let Some(more) = after.strip_prefix('"') else {
            if after.is_empty() || after.starts_with(ends) {
                return Ok((value, after));
            }
            return Err(format!("text follows the quoted {value:?}"));
        };
        value.push('"');
        quoted = more;
    }
    Err(format!("a quote is open in {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::parse;

    fn parsed_text(text: &str) -> String {
        let labels = parse(text).unwrap();
        let pairs: Vec<String> = labels.iter().map(|(k, v)| format!("{k}→{v}")).collect();
        pairs.join("|")
    }

    #[test]
    fn labels_are_pairs_with_optional_quotes() {
        assert_eq!(parsed_text(""), "");
        assert_eq!(
            parsed_text("Owner=John Doe, foo/bar=fib+baz"),
            "Owner→John Doe|foo/bar→fib+baz"
        );
        assert_eq!(
            parsed_text(r#"dn="cn=John: dc=x, dc=y",a=b"#),
            "a→b|dn→cn=John: dc=x, dc=y"
        );
        assert_eq!(parsed_text(r#""a=b"="say ""hi""""#), r#"a=b→say "hi""#);
        assert_eq!(parsed_text("empty=,x=y,"), "empty→|x→y");
    }

    #[test]
    fn what_is_no_pair_is_refused() {
        for text in ["a", "a,b=c", "a=b=c", "=b", r#"a="b"#, r#"a="b"c"#] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
