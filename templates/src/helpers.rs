//! Template helpers that quote values for shell scripts, units, Corefiles and YAML.

use handlebars::{Handlebars, Helper, HelperResult, Output, RenderContext, RenderErrorReason};

/// Quotes a value for the POSIX shell as one word without expansion.
pub fn quote_sh(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\'', r"'\''"))
}

/// Quotes the value of `NAME=` in a systemd environment file.
pub fn quote_systemd(value: &str) -> String {
    let escaped = value
        .replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', r"\n");
    format!("\"{escaped}\"")
}

/// Quotes one word of a unit's `ExecStart=`, where systemd expands `%` and `$`.
pub fn quote_systemd_word(value: &str) -> String {
    quote_systemd(&value.replace('%', "%%").replace('$', "$$"))
}

/// Writes a here document: operator, text and delimiter. The delimiter is quoted, so nothing in the text is expanded,
/// and lengthened until no line of the text is equal to it.
pub fn here_document(text: &str) -> String {
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
pub fn quote_corefile(value: &str) -> String {
    let special = |c: char| c.is_whitespace() || "\"\\{}#`".contains(c);
    if !value.is_empty() && !value.contains(special) {
        return value.to_owned();
    }
    format!("\"{}\"", value.replace('\\', r"\\").replace('"', "\\\""))
}

/// Writes any value as YAML on one line, in JSON syntax.
fn write_yaml(
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

pub(crate) fn register_helpers(engine: &mut Handlebars<'_>) {
    for (name, quote) in [
        ("sh", quote_sh as fn(&str) -> String),
        ("systemd", quote_systemd),
        ("heredoc", here_document),
        ("corefile", quote_corefile),
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
    engine.register_helper("yaml", Box::new(write_yaml));
}
