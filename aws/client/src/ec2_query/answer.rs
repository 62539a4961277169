//! Answers of the query protocol (XML), and their errors.

use crate::failure::local_failure;
use crate::json_answer::service_failure;
use engine::{Class, Failure};
use roxmltree::{Document, Node};

/// The text of a good answer; else what went wrong.
pub(super) fn response_text(call: &str, (status, text): (u16, String)) -> Result<String, Failure> {
    if (200..300).contains(&status) {
        return Ok(text);
    }
    let error = Document::parse(&text).ok();
    let part = |name| {
        let root = error.as_ref()?.root_element();
        element_text(root, name)
    };
    let code = part("Code").unwrap_or_else(|| format!("HTTP {status}"));
    Err(Failure {
        request_id: part("RequestId").or_else(|| part("RequestID")),
        ..service_failure(call, status, code, part("Message").unwrap_or_default())
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
    find_element(of, name)?.text().map(str::to_owned)
}

/// The first element of that name at any depth.
pub(super) fn find_element<'a, 'i>(of: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    let mut all = of.descendants();
    all.find(|node| node.has_tag_name_any(name))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json_answer::parse_json_answer;

    /// An agent's calls fail with the classes of kctl's own.
    #[test]
    fn what_an_agent_is_answered_has_its_class() {
        for (call, code, status, class) in [
            ("ec2:AttachVolume", "VolumeInUse", 400, Class::Blocked),
            (
                "ec2:AttachVolume",
                "InvalidVolume.NotFound",
                400,
                Class::Gone,
            ),
            (
                "ec2:DescribeVolumes",
                "RequestLimitExceeded",
                503,
                Class::Throttled,
            ),
            (
                "ec2:DescribeVolumes",
                "UnauthorizedOperation",
                403,
                Class::Denied,
            ),
        ] {
            let xml = format!(
                "<Response><Errors><Error><Code>{code}</Code><Message>why</Message></Error></Errors><RequestID>r</RequestID></Response>"
            );
            let json = format!(r#"{{"__type": "com.amazonaws#{code}", "message": "why"}}"#);
            for failure in [
                response_text(call, (status, xml)).unwrap_err(),
                parse_json_answer(call, (status, json)).unwrap_err(),
            ] {
                assert_eq!(
                    (failure.class, &*failure.code),
                    (class, code),
                    "{failure:?}"
                );
                assert_eq!(failure.message, "why");
            }
        }
    }
}
