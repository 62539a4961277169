//! Answers of the query protocol: XML, or an error in XML.

use crate::failure::local_failure;
use engine::{Class, Failure};
use roxmltree::{Document, Node};

/// The text of a good answer; else what went wrong.
pub(super) fn response_text(
    call: &str,
    sent: reqwest::Result<(u16, String)>,
) -> Result<String, Failure> {
    let (status, text) =
        sent.map_err(|error| local_failure(Class::Unknown, call, engine::error_chain(&error)))?;
    if (200..300).contains(&status) {
        return Ok(text);
    }
    let error = Document::parse(&text).ok();
    let part = |name| {
        let root = error.as_ref()?.root_element();
        element_text(root, name)
    };
    let code = part("Code").unwrap_or_else(|| format!("HTTP {status}"));
    let class = match (status, code.as_str()) {
        (_, "RequestLimitExceeded" | "Throttling" | "ThrottlingException") | (429 | 503, _) => {
            Class::Throttled
        }
        (_, "UnauthorizedOperation" | "AccessDenied" | "AuthFailure") | (401 | 403, _) => {
            Class::Denied
        }
        (_, code) if code.ends_with(".NotFound") => Class::Gone,
        (500.., _) => Class::Unknown,
        _ => Class::Invalid,
    };
    Err(Failure {
        code,
        request_id: part("RequestId").or_else(|| part("RequestID")),
        ..local_failure(class, call, part("Message").unwrap_or_default())
    })
}

/// What `read` finds in an answer.
pub(super) fn parse_answer<T>(
    call: &str,
    text: &str,
    read: impl FnOnce(Node<'_, '_>) -> Option<T>,
) -> Result<T, Failure> {
    let unreadable = |why: String| local_failure(Class::Unknown, call, why);
    let document = Document::parse(text).map_err(|error| unreadable(error.to_string()))?;
    read(document.root_element()).ok_or_else(|| unreadable("the answer lacks a part".to_owned()))
}

/// The text of the first element of that name at any depth.
pub(super) fn element_text(of: Node<'_, '_>, name: &str) -> Option<String> {
    let mut all = of.descendants();
    let found = all.find(|node| node.has_tag_name_any(name))?;
    found.text().map(str::to_owned)
}

/// The text of a child of that name.
pub(super) fn child_value(of: Node<'_, '_>, name: &str) -> Option<String> {
    child_element(of, name)?.text().map(str::to_owned)
}

/// A child of that name.
pub(super) fn child_element<'a, 'i>(of: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    of.children().find(|node| node.has_tag_name_any(name))
}

/// The items of a list that is a child of that name.
pub(super) fn list_items<'a, 'i>(
    of: Node<'a, 'i>,
    list: &str,
) -> impl Iterator<Item = Node<'a, 'i>> + use<'a, 'i> {
    let list = child_element(of, list);
    let items = list.into_iter().flat_map(|list| list.children());
    items.filter(|node| node.has_tag_name_any("item"))
}

/// Names without their namespace, which differs by version.
trait Named {
    fn has_tag_name_any(&self, name: &str) -> bool;
}

impl Named for Node<'_, '_> {
    fn has_tag_name_any(&self, name: &str) -> bool {
        self.is_element() && self.tag_name().name() == name
    }
}
