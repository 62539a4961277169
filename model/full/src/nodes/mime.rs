//! User data of several parts as MIME multipart for cloud-init, in kOps' format. Every part arrives byte for byte.

/// kOps' boundary, fixed so that equal parts give equal text.
const BOUNDARY: &str = "MIMEBOUNDARY";

/// Parts (name, MIME type, content) as one multipart text. Names are plain file names (`spec` checks them).
///
/// A part is sent as it is if cloud-init reads it unchanged, and as quoted-printable otherwise: cloud-init decodes user data as
/// text first, and Python's `get_payload(decode=True)` then turns characters beyond ASCII into others.
pub(super) fn mime_multipart<'a>(
    parts: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>,
) -> String {
    let head = format!(
        "Content-Type: multipart/mixed; boundary=\"{BOUNDARY}\"\r\nMIME-Version: 1.0\r\n\r\n"
    );
    let end = format!("--{BOUNDARY}--\r\n");
    let part = |(name, kind, content): (&str, &str, &str)| {
        let (encoding, content) = if is_kept_as_it_is(content) {
            ("7bit", content.to_owned())
        } else {
            ("quoted-printable", to_quoted_printable(content))
        };
        format!(
            "--{BOUNDARY}\r\nContent-Disposition: attachment; filename=\"{name}\"\r\n\
             Content-Transfer-Encoding: {encoding}\r\nContent-Type: {kind}\r\nMIME-Version: 1.0\r\n\r\n\
             {content}\r\n"
        )
    };
    let parts: Vec<String> = parts.into_iter().map(part).collect();
    format!("{head}{}{end}", parts.concat())
}

/// True for printable ASCII in lines, none of which could be taken for the end of the part.
fn is_kept_as_it_is(content: &str) -> bool {
    let plain = |byte: u8| matches!(byte, b'\t' | b'\n' | b' '..=b'~');
    content.bytes().all(plain) && !content.lines().any(is_like_boundary)
}

fn is_like_boundary(line: &str) -> bool {
    line.trim_end().starts_with("--") && line.contains(BOUNDARY)
}

/// Quoted-printable (RFC 2045, 6.7) without the limit of 76 characters, which no reader needs: a placeholder in the text stays
/// whole.
fn to_quoted_printable(content: &str) -> String {
    let lines: Vec<String> = content.split('\n').map(quote_line).collect();
    lines.join("\n")
}

fn quote_line(line: &str) -> String {
    let last = line.len().saturating_sub(1);
    let quote = |(at, byte): (usize, u8)| {
        let kept = match byte {
            b'=' => false,
            // Readers drop blanks at the end of a line.
            b' ' | b'\t' => at != last,
            b'-' => at != 0,
            byte => byte.is_ascii_graphic(),
        };
        if kept {
            char::from(byte).to_string()
        } else {
            format!("={byte:02X}")
        }
    };
    line.bytes().enumerate().map(quote).collect()
}
