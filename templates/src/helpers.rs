//! Quoting: how a value becomes part of a shell script, a unit, a Corefile or YAML without changing its meaning.

use handlebars::{Handlebars, Helper, HelperResult, Output, RenderContext, RenderErrorReason};

/// Quotes a value for the POSIX shell: one word, no expansion.
pub fn sh(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\'', r"'\''"))
}

/// Quotes the value of `NAME=` in an environment file.
pub fn systemd(value: &str) -> String {
    let escaped = value
        .replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', r"\n");
    format!("\"{escaped}\"")
}

/// Quotes one word of a unit's `ExecStart=`, where `%` and `$` would be expanded.
pub fn systemd_word(value: &str) -> String {
    systemd(&value.replace('%', "%%").replace('$', "$$"))
}

/// A here document: operator, text and delimiter. The delimiter is quoted, so nothing in the text is expanded,
/// and lengthened until no line of the text is equal to it.
pub fn heredoc(text: &str) -> String {
    let mut delimiter = "END".to_owned();
    while text.lines().any(|line| line == delimiter) {
        delimiter.push('_');
    }
    let newline = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("<<'{delimiter}'\n{text}{newline}{delimiter}")
}

/// Quotes a word of a Corefile.
pub fn corefile(value: &str) -> String {
    let special = |c: char| c.is_whitespace() || "\"\\{}#`".contains(c);
    if !value.is_empty() && !value.contains(special) {
        return value.to_owned();
    }
    format!("\"{}\"", value.replace('\\', r"\\").replace('"', "\\\""))
}

/// A value of any sort as YAML in one line: JSON is YAML.
fn yaml(
    helper: &Helper<'_>,
    _: &Handlebars<'_>,
    _: &handlebars::Context,
    _: &mut RenderContext<'_, '_>,
    out: &mut dyn Output,
) -> HelperResult {
    let value = helper.param(0).filter(|value| !value.is_value_missing());
    let value = value.ok_or(RenderErrorReason::ParamNotFoundForIndex("yaml", 0))?;
    Ok(out.write(&value.value().to_string())?)
}

pub(crate) fn register(engine: &mut Handlebars<'_>) {
    for (name, quote) in [
        ("sh", sh as fn(&str) -> String),
        ("systemd", systemd),
        ("heredoc", heredoc),
        ("corefile", corefile),
    ] {
        let helper = move |helper: &Helper<'_>,
                           _: &Handlebars<'_>,
                           _: &handlebars::Context,
                           _: &mut RenderContext<'_, '_>,
                           out: &mut dyn Output|
              -> HelperResult {
            // In strict mode a missing path is an error only where it stands alone, not as a parameter.
            let text = helper.param(0).filter(|value| !value.is_value_missing());
            let text = text.and_then(|value| value.value().as_str());
            let text = text.ok_or(RenderErrorReason::ParamNotFoundForIndex(name, 0))?;
            Ok(out.write(&quote(text))?)
        };
        engine.register_helper(name, Box::new(helper));
    }
    engine.register_helper("yaml", Box::new(yaml));
}
