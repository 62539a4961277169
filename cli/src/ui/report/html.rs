//! HTML from plain functions. A text of AWS, of the cluster or of a user becomes HTML in `escape` alone; all else is constants of kctl.

use node::terminal::is_terminal_control;

/// Markup: constants around escaped text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Html(String);

impl Html {
    /// The markup as text.
    pub fn into_text(self) -> String {
        self.0
    }
}

impl FromIterator<Html> for Html {
    fn from_iter<T: IntoIterator<Item = Html>>(parts: T) -> Self {
        Self(parts.into_iter().map(Html::into_text).collect())
    }
}

/// Attributes of an element: names are constants, values are escaped.
pub type Attributes<'a> = &'a [(&'static str, &'a str)];

/// Text as the content of an element or the value of an attribute. Characters that control a terminal or turn the direction of text
/// become blanks, as on a terminal: they would hide what is said.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other if is_terminal_control(other) => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Text.
pub fn text(text: &str) -> Html {
    Html(escape(text))
}

/// An element with its content.
pub fn element(
    name: &'static str,
    attributes: Attributes<'_>,
    content: impl IntoIterator<Item = Html>,
) -> Html {
    let content: Html = content.into_iter().collect();
    Html(format!(
        "{}{}</{name}>",
        open_tag(name, attributes),
        content.0
    ))
}

/// An element without attributes.
pub fn plain(name: &'static str, content: impl IntoIterator<Item = Html>) -> Html {
    element(name, &[], content)
}

/// An element of a class with text.
pub fn words(name: &'static str, class: &str, said: &str) -> Html {
    element(name, &[("class", class)], [text(said)])
}

/// An element that has neither content nor an end: `meta`.
pub fn void(name: &'static str, attributes: Attributes<'_>) -> Html {
    Html(open_tag(name, attributes))
}

/// `style` or `script`. Browsers read its content as it is, and it is a constant of kctl.
pub fn code(name: &'static str, content: &'static str) -> Html {
    Html(format!("<{name}>{content}</{name}>"))
}

/// A whole file.
pub fn document(head: Html, body: Html) -> String {
    let root = element("html", &[("lang", "en")], [head, body]);
    format!("<!doctype html>\n{}\n", root.0)
}

fn open_tag(name: &'static str, attributes: Attributes<'_>) -> String {
    let attributes = attributes.iter();
    let attributes = attributes.map(|(name, value)| format!(" {name}=\"{}\"", escape(value)));
    format!("<{name}{}>", attributes.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a browser makes of escaped text.
    fn unescape(html: &str) -> String {
        let entities = [
            ("&lt;", "<"),
            ("&gt;", ">"),
            ("&quot;", "\""),
            ("&#39;", "'"),
            // The last: it must not make another entity.
            ("&amp;", "&"),
        ];
        let all = entities.iter();
        all.fold(html.to_owned(), |text, (entity, character)| {
            text.replace(entity, character)
        })
    }

    proptest! {
        #[test]
        fn no_text_is_markup_and_every_text_is_shown(said in any::<String>(), mark in "[<>&\"'/=`a-z -]*") {
            for said in [said, mark] {
                let shown = said.replace(is_terminal_control, " ");
                let escaped = escape(&said);
                prop_assert!(!escaped.contains(['<', '>', '"', '\'']), "{escaped}");
                prop_assert_eq!(unescape(&escaped), shown);
                let whole = words("p", &said, &said).into_text();
                prop_assert_eq!(whole, format!("<p class=\"{escaped}\">{escaped}</p>"));
            }
        }
    }
}
