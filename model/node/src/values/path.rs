//! Paths on an instance, and modes of files.

use super::Refusal;

/// The longest path and the longest name in it that Linux takes, in bytes.
const LONGEST: (usize, usize) = (4095, 255);

/// File systems of the kernel, in which no file can be made.
const KERNEL: [&str; 2] = ["/proc", "/sys"];

/// The path of a file that can be written: absolute, without `.`, `..`, empty parts and a slash at its end.
pub fn parse_file(text: &str) -> Result<String, Refusal> {
    let path = parse_folder(text)?;
    if text.ends_with('/') || text.ends_with("/.") || path == "/" {
        let message = format!("{text:?} is the path of a folder, not of a file");
        return Err(Refusal::new(message, "add the name of the file"));
    }
    if KERNEL.iter().any(|kernel| is_inside(&path, kernel)) {
        let message = format!("{path} is the kernel's: no file can be made there");
        let hint = "use sysctlParameters for what is below /proc/sys, a hook for the rest";
        return Err(Refusal::new(message, hint));
    }
    Ok(path)
}

/// The path of a folder: absolute, without `.`, `..` and empty parts. `/` is one.
pub fn parse_folder(text: &str) -> Result<String, Refusal> {
    let refuse = |why: &str, hint: &str| Err(Refusal::new(format!("{text:?} {why}"), hint));
    if !text.starts_with('/') {
        return refuse("is not an absolute path", "begin it with /");
    }
    if text.chars().any(char::is_control) {
        return refuse("has control characters", "write one path, on one line");
    }
    let parts: Vec<&str> = text
        .split('/')
        .filter(|part| !matches!(*part, "" | "."))
        .collect();
    if parts.contains(&"..") {
        return refuse(
            "leaves the folder it names: it has .. in it",
            "write the path without ..",
        );
    }
    if text.len() > LONGEST.0 || parts.iter().any(|part| part.len() > LONGEST.1) {
        return refuse("is longer than Linux takes", "use a shorter path");
    }
    Ok(format!("/{}", parts.join("/")))
}

/// True if a path is the folder or below it. Both are in the form that [`parse_folder`] returns.
pub fn is_inside(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The bits of a file's mode in octal: `0440`, `755`.
pub fn parse_mode(text: &str) -> Result<u32, Refusal> {
    let digits = !text.is_empty() && text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
    let bits = u32::from_str_radix(text, 8)
        .ok()
        .filter(|bits| digits && *bits <= 0o7777);
    bits.ok_or_else(|| {
        Refusal::new(
            format!("{text:?} is not a file mode"),
            "write it in octal and in quotes, such as \"0440\"",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{parse_file, parse_folder, parse_mode};

    #[test]
    fn a_file_has_one_absolute_path_below_no_other_folder_than_it_names() {
        for (text, path) in [
            ("/etc/agent.conf", "/etc/agent.conf"),
            ("//etc/./agent.d//x", "/etc/agent.d/x"),
            ("/a b/ü", "/a b/ü"),
            ("/...", "/..."),
        ] {
            assert_eq!(parse_file(text).as_deref(), Ok(path));
        }
        for text in [
            "",
            "etc/x",
            "./x",
            "~/x",
            "/",
            "//",
            "/etc/",
            "/etc/.",
            "/etc/..",
            "/../x",
            "/a/../../x",
            "/a\nb",
            "/a\0",
            "/proc/sys/vm/x",
            "/sys/x",
            "C:\\x",
            " /etc/x",
        ] {
            assert!(parse_file(text).is_err(), "{text:?}");
        }
        let long = format!("/{}", "a".repeat(256));
        assert!(parse_file(&long).is_err());
        assert_eq!(parse_folder("/var/lib/x/").as_deref(), Ok("/var/lib/x"));
        assert_eq!(parse_folder("/").as_deref(), Ok("/"));
    }

    #[test]
    fn modes_are_octal() {
        assert_eq!(parse_mode("0440"), Ok(0o440));
        assert_eq!(parse_mode("755"), Ok(0o755));
        assert_eq!(parse_mode("4755"), Ok(0o4755));
        for text in ["", "+644", "-1", "0o644", "888", "u+x", "17777", "06 44"] {
            assert!(parse_mode(text).is_err(), "{text:?}");
        }
    }
}
