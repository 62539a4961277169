//! The page as a whole: its head, which forbids everything but its own style and script, and its sections.

use super::html::{Html, code, document, element, plain, text, void, words};
use super::{Report, backups, count_text, etcd, instances, operations, problems, rolling_update};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fleet::Membership;
use sha2::{Digest, Sha256};
use std::time::Duration;
use time::format_description::well_known::Rfc3339;

const STYLE: &str = include_str!("style.css");

/// Fetches the page again and puts its content in the place of the old one.
const SCRIPT: &str = include_str!("refresh.js");

/// Sections: id and name in the list of sections.
const SECTIONS: [(&str, &str); 6] = [
    ("#problems", "Problems"),
    ("#rolling-update", "Rolling update"),
    ("#instances", "Instances"),
    ("#etcd", "etcd"),
    ("#backups", "Backups"),
    ("#operations", "Operations"),
];

/// A file, and the content security policy that it has.
#[derive(Clone, Debug)]
pub struct Page {
    pub html: String,
    pub policy: String,
}

/// The page of a report. `refresh`: the browser asks again after that time; otherwise the page has no script.
pub fn render(report: &Report, refresh: Option<Duration>) -> Page {
    let policy = content_security_policy(refresh.is_some());
    let title = format!("{}: {}", report.cluster, verdict(report));
    let head = [
        void("meta", &[("charset", "utf-8")]),
        void(
            "meta",
            &[
                ("http-equiv", "Content-Security-Policy"),
                ("content", policy.as_str()),
            ],
        ),
        named_meta("viewport", "width=device-width, initial-scale=1"),
        named_meta("color-scheme", "light dark"),
        named_meta("referrer", "no-referrer"),
        plain("title", [text(&title)]),
        code("style", STYLE),
    ];
    let content = [
        header(report),
        problems::section(report),
        rolling_update::section(report),
        instances::section(report),
        etcd::section(report),
        backups::section(report),
        operations::section(report),
    ];
    let content = plain("main", content);
    let body = match refresh {
        None => plain("body", [content]),
        Some(pause) => live_body(content, pause),
    };
    Page {
        html: document(plain("head", head), body),
        policy,
    }
}

/// A body that asks for the page again.
fn live_body(content: Html, pause: Duration) -> Html {
    // Empty as long as all is well; what is written there is read out.
    let state = element("p", &[("id", "state"), ("role", "status")], []);
    let pause = pause.as_millis().to_string();
    let body = [state, content, code("script", SCRIPT)];
    element("body", &[("data-refresh-ms", pause.as_str())], body)
}

fn named_meta(name: &str, content: &str) -> Html {
    void("meta", &[("name", name), ("content", content)])
}

/// Nothing is loaded from anywhere. The style and the script are allowed by their digests, so that no other runs, whatever a text is
/// taken for; the script may ask for this page alone.
fn content_security_policy(is_live: bool) -> String {
    let style = source_of(STYLE);
    let policy =
        format!("default-src 'none'; style-src {style}; base-uri 'none'; form-action 'none'");
    match is_live {
        true => format!(
            "{policy}; script-src {}; connect-src 'self'",
            source_of(SCRIPT)
        ),
        false => policy,
    }
}

fn source_of(code: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(code)))
}

fn verdict(report: &Report) -> String {
    match report.health.findings.len() {
        0 => "healthy".to_owned(),
        count => count_text(count, "problem"),
    }
}

fn header(report: &Report) -> Html {
    let all = report.instances.iter();
    let ready = all.filter(|one| one.membership == Membership::Ready);
    let class = match report.health.healthy {
        true => "good",
        false => "bad",
    };
    let at = report.at.replace_nanosecond(0).unwrap_or(report.at);
    let said = format!(
        "{}, {} of them Ready nodes. Read at {} by kctl {}.",
        count_text(report.instances.len(), "instance"),
        ready.count(),
        at.format(&Rfc3339).unwrap_or_default(),
        env!("CARGO_PKG_VERSION"),
    );
    let sections = SECTIONS.map(|(link, name)| {
        let link = element("a", &[("href", link)], [text(name)]);
        plain("li", [link])
    });
    let sections = plain("ul", sections);
    plain(
        "header",
        [
            plain("h1", [text(&report.cluster)]),
            plain(
                "p",
                [
                    words("strong", class, &verdict(report)),
                    text(". "),
                    text(&said),
                ],
            ),
            element("nav", &[("aria-label", "Sections")], [sections]),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn what_stands_in_the_page_unescaped_cannot_end_its_element() {
        for code in [STYLE, SCRIPT] {
            assert!(!code.contains("</") && !code.contains("<!--"), "{code}");
        }
    }

    /// The luminance of each colour that the style names, by its name (WCAG 2.2, relative luminance).
    fn luminances(style: &str) -> BTreeMap<&str, f64> {
        let lines = style.lines().filter_map(|line| {
            let (name, value) = line.trim().strip_prefix("--")?.split_once(": #")?;
            let part = |from: usize| {
                let part = u8::from_str_radix(&value[from..from + 2], 16).unwrap();
                let part = f64::from(part) / 255.0;
                match part <= 0.04045 {
                    true => part / 12.92,
                    false => ((part + 0.055) / 1.055).powf(2.4),
                }
            };
            Some((name, 0.2126 * part(0) + 0.7152 * part(2) + 0.0722 * part(4)))
        });
        lines.collect()
    }

    #[test]
    fn text_is_readable_in_the_light_and_in_the_dark() {
        let (light, dark) = STYLE.split_once("prefers-color-scheme: dark").unwrap();
        for style in [light, dark] {
            let of = luminances(style);
            for (text, ground) in ["ink", "faint", "link", "good", "bad"]
                .into_iter()
                .flat_map(|text| [(text, "paper"), (text, "card")])
            {
                let (one, other) = (of[text], of[ground]);
                let contrast = (one.max(other) + 0.05) / (one.min(other) + 0.05);
                assert!(contrast >= 4.5, "{text} on {ground}: {contrast}");
            }
        }
    }
}
