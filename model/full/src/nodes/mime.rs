//! User data of several parts as MIME multipart for cloud-init, in kOps' format.

/// kOps' boundary, fixed so that equal parts give equal text.
const BOUNDARY: &str = "MIMEBOUNDARY";

/// Parts (name, MIME type, content) as one multipart text. A part must not contain the boundary on a line of its
/// own: it would end there. This is not checked.
pub(super) fn mime_multipart<'a>(
    parts: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>,
) -> String {
    let head = format!(
        "Content-Type: multipart/mixed; boundary=\"{BOUNDARY}\"\r\nMIME-Version: 1.0\r\n\r\n"
    );
    let end = format!("--{BOUNDARY}--\r\n");
    let part = |(name, kind, content): (&str, &str, &str)| {
        let name = name.replace(['"', '\\', '\r', '\n'], "_");
        format!(
            "--{BOUNDARY}\r\nContent-Disposition: attachment; filename=\"{name}\"\r\n\
             Content-Transfer-Encoding: 7bit\r\nContent-Type: {kind}\r\nMIME-Version: 1.0\r\n\r\n\
             {content}\r\n"
        )
    };
    let parts: Vec<String> = parts.into_iter().map(part).collect();
    format!("{head}{}{end}", parts.concat())
}
